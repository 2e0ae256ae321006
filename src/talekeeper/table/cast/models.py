"""Chat models that stream: one small port, and how a model is found by its name.

    openai:NAME   anthropic:NAME   google:NAME   ollama:NAME     hosted models, through pydantic-ai (extras of the same names)
    openai:NAME with a base URL                                  anything that speaks OpenAI's protocol
    local:PATH, local:smollm2                                    a GGUF file in this process (extra `local`)
    an object with `stream`, an async callable                   your own; pydantic-ai's and LangChain's models as they are

Whatever is missing (a package, a key, a file) is said when a model is found, before a game begins. There is no blocking twin: an
answer is its pieces joined (`chat`). Models are never trusted: they may raise, hang, and lie; `listen` bounds the first two.
"""

from __future__ import annotations

import asyncio
import difflib
import itertools
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from talekeeper.errors import InvalidInput, ModelFailed, WrongType, quoted
from talekeeper.ports import ChatModel, Message, Spending
from talekeeper.tokens import estimate_tokens

MAX_TOKENS = 600
"""How long an answer may become where nobody says otherwise."""
_GRACE = 1.0
"""Seconds that a stream has to close before it is left behind."""


def _unaccounted(spending: Spending) -> None:
    """Nobody asked what it costs."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked. `schema`: the answer is to be JSON of that form. `sober`: it is to be true rather than lively. `seed` is
    honoured by models that can. What the answer costs is told to `spend`, once, when the stream ends, however it ends."""

    messages: Sequence[Message]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = MAX_TOKENS
    seed: int | None = None
    sober: bool = False
    spend: Callable[[Spending], None] = _unaccounted

    def spending(self, said: str, tokens_in: int = 0, tokens_out: int = 0) -> Spending:
        """What it costs that this was said: as it was counted, or estimated where nobody has."""
        asked = tokens_in or sum(estimate_tokens(message["content"]) for message in self.messages)
        return Spending(calls=1, tokens_in=asked, tokens_out=tokens_out or estimate_tokens(said))


@runtime_checkable
class Model(Protocol):
    """A chat model that streams.

    The pieces of `stream` joined are the answer; an empty piece is a sign of life (a long prompt is being read, or the model
    thinks). Raises `ModelFailed`, with `cut` where the answer reached its limit. Closing the stream stops the model."""

    @property
    def name(self) -> str: ...
    def stream(self, request: Request) -> AsyncGenerator[str, None]: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a model is waited for: `silence` seconds without a sign of life, `whole` seconds for an answer; how often it is asked
    (`attempts`), and the pause in between, which doubles."""

    silence: float = 60.0
    whole: float = 300.0
    attempts: int = 2
    pause: float = 1.0


class Called:
    """Any async callable from messages to text, as a model that streams in one piece."""

    def __init__(self, ask: ChatModel) -> None:
        self.ask = ask
        self.name: str = getattr(ask, "__qualname__", type(ask).__name__)

    async def stream(self, request: Request) -> AsyncGenerator[str, None]:
        answer: object = ""
        try:
            answer = await self.ask(request.messages)
        finally:
            request.spend(request.spending(answer if isinstance(answer, str) else ""))
        if not isinstance(answer, str):
            raise ModelFailed(f"{self.name} returned {type(answer).__name__}, not text")
        yield answer


CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
"""What LangChain's providers call it where an answer has reached its limit."""


def stop_reason(answer: Any) -> str:
    """Why a LangChain model stopped, in lower case, as far as an answer or a piece of one says it; providers have two names for it."""
    metadata = getattr(answer, "response_metadata", None)
    if not isinstance(metadata, Mapping):
        return ""
    return str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").lower()


class Chained:
    """A LangChain chat model, which streams by itself. Nothing of LangChain is imported: it is known by what it does."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.name = type(model).__name__

    async def stream(self, request: Request) -> AsyncGenerator[str, None]:
        said, reason = "", ""
        usage: Mapping[str, int] = {}
        try:
            async for chunk in self.model.astream([dict(message) for message in request.messages]):
                reason = stop_reason(chunk) or reason
                usage = getattr(chunk, "usage_metadata", None) or usage
                said += (piece := str(chunk.text))
                yield piece
            if reason in CUT_OFF:
                raise ModelFailed(f"{self.name} reached its limit of tokens", cut=True)
        finally:
            request.spend(request.spending(said, usage.get("input_tokens", 0), usage.get("output_tokens", 0)))


Modelled: TypeAlias = str | Model | ChatModel | Any
"""Whatever `find` makes a model of: a name, a model of ours, a pydantic-ai or LangChain model, an async callable."""


def find(model: Modelled, *, base_url: str | None = None, key_from: str | None = None, **settings: Any) -> Model:
    """The model of that name, ready to be asked. Raises `ModelUnavailable` where something is missing, and says what to do.

    `base_url`: a server that speaks OpenAI's protocol; `key_from`: the environment variable that holds its key. `settings` go to the
    provider (`temperature=0.7`), or to the local model (`context=4096`, `threads=4`)."""
    if isinstance(model, str):
        return _by_name(model, base_url, key_from, settings)
    if _is_from("pydantic_ai", model):
        return _served(model, settings)
    if not isinstance(model, type):
        if callable(getattr(model, "astream", None)):
            return Chained(model)
        if isinstance(model, Model):
            return model
        if callable(model):
            return Called(model)
    raise WrongType(f"expected a model's name such as 'openai:gpt-5-mini', a model or an async callable, found {quoted(model)}")


def _served(model: Any, settings: Mapping[str, Any]) -> Model:
    from talekeeper.table.cast.hosted import Hosted

    return Hosted(model.model_name, model, settings)


def _is_from(package: str, thing: object) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(thing).__mro__)


def _by_name(text: str, base_url: str | None, key_from: str | None, settings: Mapping[str, Any]) -> Model:
    from talekeeper.table.cast import hosted, local

    provider, colon, name = text.strip().partition(":")
    if not colon or not name.strip():
        raise InvalidInput(f"a model is named provider:name, such as {_EXAMPLES}; found {quoted(text)}")
    if provider == "local":
        if base_url is not None:
            raise InvalidInput(f"{quoted(text)} runs in this process and has no base URL: leave one of the two out")
        return local.open_model(name.strip(), **settings)
    if base_url is None and provider not in hosted.PROVIDERS:
        known = hosted.knows(provider)
        close = difflib.get_close_matches(provider, [*hosted.PROVIDERS, "local"], n=1)
        if known is False or (known is None and close):
            raise InvalidInput(f"no provider {quoted(provider)}" + (f"; did you mean {close[0]!r}?" if close else f"; write {_EXAMPLES}"))
    return hosted.open_model(provider, name.strip(), base_url, key_from, settings)


_EXAMPLES = "openai:gpt-5-mini, anthropic:claude-sonnet-4-5, google:gemini-2.5-flash, ollama:llama3.2 or local:smollm2"


async def listen(model: Model, request: Request, patience: Patience) -> AsyncGenerator[str, None]:
    """The model's answer, piece by piece, never waited for longer than patience allows. Raises `ModelFailed` and nothing else.

    The model speaks in a task of its own, so that one that ignores being cancelled cannot hold anyone up."""
    pieces: asyncio.Queue[str | ModelFailed | None] = asyncio.Queue(maxsize=32)
    speaking = asyncio.ensure_future(_speak(model, request, pieces))
    loop = asyncio.get_running_loop()
    end = loop.time() + patience.whole
    try:
        while True:
            left = min(patience.silence, end - loop.time())
            try:
                async with asyncio.timeout(left):  # not wait_for, which forgets being cancelled where a piece comes in at the same moment
                    piece = await pieces.get()
            except TimeoutError:
                late = f"was silent for {patience.silence:g} s" if loop.time() < end else f"did not finish within {patience.whole:g} s"
                raise ModelFailed(f"{model.name} {late}") from None
            if piece is None:
                return
            if isinstance(piece, ModelFailed):
                raise piece
            yield piece
    finally:
        speaking.cancel()
        await asyncio.wait({speaking}, timeout=_GRACE)


async def _speak(model: Model, request: Request, pieces: asyncio.Queue[str | ModelFailed | None]) -> None:
    last: ModelFailed | None = None
    try:
        async with aclosing(model.stream(request)) as stream:
            async for piece in stream:
                await pieces.put(piece)
    except ModelFailed as exc:
        last = exc
    except Exception as exc:  # the edge: anyone's callable, anything
        last = ModelFailed(f"{model.name} failed: {type(exc).__name__}: {exc}")
        last.__cause__ = exc
    await pieces.put(last)


def chat(
    model: Modelled, *, base_url: str | None = None, key_from: str | None = None, max_tokens: int = MAX_TOKENS,
    patience: Patience | None = None, **settings: Any,
) -> ChatModel:  # fmt: skip
    """The model as an async callable from messages to text, for `talekeeper.open(summarizer=…)`.

    Of an answer that reaches its limit the whole sentences are kept: a small model seldom ends by itself, and what a summary misses
    then is noticed and made up for by those who check it. The n-th question has the seed n, so a run tells the same twice."""
    found = find(model, base_url=base_url, key_from=key_from, **settings)
    waiting = patience or Patience()
    asked = itertools.count()

    async def ask(messages: Sequence[Message]) -> str:
        said = ""
        try:
            request = Request(messages, max_tokens=max_tokens, seed=next(asked), sober=True)
            async with aclosing(listen(found, request, waiting)) as pieces:
                async for piece in pieces:
                    said += piece
        except ModelFailed as exc:
            whole = _WHOLE_SENTENCES.match(said)
            if not exc.cut or whole is None:
                raise
            return whole[0]
        return said

    return ask


_WHOLE_SENTENCES = re.compile(r".*[.!?…。！？][\"'”’»)\]」』]*(?=\s|$|[^\x00-\x7f])(?:\s*\[[\d,;\s–-]+\])?", re.S)
