"""A GGUF file as a model: llama.cpp in this process, through the extra `local`. No network, no key.

One file is loaded once, whoever speaks with it, when it is first asked; requests take turns. What a prompt has in common with an
earlier one is not read again, so a context's stable part costs nothing the second time. Small models run on for ever where nothing
stops them: answers and schemas are always bounded, and what they repeat is made less likely.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from talekeeper import rim
from talekeeper.errors import InvalidInput, ModelFailed, ModelUnavailable, how_to_install
from talekeeper.ports import Spending
from talekeeper.table.cast import shelf
from talekeeper.table.cast.models import Request

CONTEXT = 8192
"""How many tokens of prompt and answer a local model holds, unless told otherwise."""
_REPEAT_PENALTY = 1.15
_BATCH = 128
"""Tokens of a prompt that are read between two signs of life: this is how soon a stream can be closed."""
_KEPT_PROMPTS_MIB = 256
_SOBER = 0.3
"""The temperature of answers that are to be true rather than lively."""
_STEPS = 10


def open_model(name: str, *, context: int = CONTEXT, threads: int | None = None, temperature: float = 0.8, **unknown: Any) -> Local:
    """The model in that file, or of that short name on the shelf. The file is looked at now and loaded when first asked."""
    if unknown:
        raise InvalidInput(f"a local model has no setting {next(iter(unknown))!r}: there are context, threads and temperature")
    rim.whole(context, "context", least=256)
    path = shelf.path_of(name) if name in shelf.SHELF else Path(name).expanduser()
    _check(name, path)
    return Local(path.resolve(), context, rim.whole(threads or _spare_threads(), "threads", least=1), temperature)


def _check(name: str, path: Path) -> None:
    try:
        import xllamacpp  # noqa: F401
    except ModuleNotFoundError as exc:
        raise ModelUnavailable(f"local models need xllamacpp: {how_to_install('local')}") from exc
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as exc:
        get = f"run talekeeper models get {name}" if name in shelf.SHELF else f"short names are: {', '.join(shelf.SHELF)}"
        raise ModelUnavailable(f"no model at {str(path)!r} ({exc.strerror}); {get}") from exc
    if magic != b"GGUF":
        raise ModelUnavailable(f"{str(path)!r} is no GGUF file: it begins with {magic!r}")


def _spare_threads() -> int:
    """All cores but one: llama.cpp's threads wait for each other, and collapse where one of them has to share its core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return max(1, cores - 1)


@lru_cache(maxsize=2)
def _load(path: Path, context: int, threads: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = _KEPT_PROMPTS_MIB
    params.verbosity = 0
    params.api_keys = [secrets.token_urlsafe()]  # it also listens on a port of this machine: for nobody
    try:
        return xllamacpp.Server(params)
    except RuntimeError as exc:
        raise ModelFailed(f"llama.cpp cannot load {str(path)!r}: damaged, of an unknown kind, or too large", lasting=True) from exc


_loading = threading.Lock()


class Local:
    """A GGUF file that speaks."""

    def __init__(self, path: Path, context: int, threads: int, temperature: float) -> None:
        self.path = path
        self.context = context
        self.threads = threads
        self.temperature = temperature
        self.name = f"local:{path.name}"

    def load(self) -> Any:
        """The loaded file; takes a second or more the first time."""
        with _loading:
            return _load(self.path, self.context, self.threads)

    async def stream(self, request: Request) -> AsyncGenerator[str, None]:
        told = _Told(asyncio.get_running_loop())
        working = asyncio.ensure_future(asyncio.to_thread(self._work, request, told))
        working.add_done_callback(_looked_at)
        try:
            while (chunk := await told.chunks.get()) is not None:
                yield told.take(chunk)
            await working
            if told.reason == "length" and not (request.schema is not None and _is_whole(told.text)):
                raise ModelFailed(f"{self.name} reached its limit of {request.max_tokens} tokens", cut=True)
        finally:
            told.stopped.set()
            request.spend(told.spending(request))

    def _work(self, request: Request, told: _Told) -> None:
        try:
            self.load().handle_chat_completions(self._body(request), told.hear)
        except ModelFailed:
            raise
        except Exception as exc:  # whatever llama.cpp makes of a request that it cannot serve
            raise ModelFailed(f"{self.name} failed: {exc}", lasting=True) from exc
        finally:
            told.put(None)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": [dict(message) for message in request.messages],
            "stream": True, "stream_options": {"include_usage": True}, "return_progress": True,
            "max_tokens": request.max_tokens, "repeat_penalty": _REPEAT_PENALTY,
            "temperature": min(self.temperature, _SOBER) if request.sober else self.temperature,
        }  # fmt: skip
        if request.seed is not None:
            body["seed"] = request.seed
        if request.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": bounded(request.schema, request.max_tokens)},
            }
        return body


def _is_whole(text: str) -> bool:
    """Whether JSON is complete: a grammar lets blanks follow, and small models like them up to the limit."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _looked_at(work: asyncio.Future[None]) -> None:
    """What goes wrong after nobody listens any more is of no interest."""
    if not work.cancelled():
        work.exception()


class _Told:
    """What a thread of llama.cpp says, on its way into the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.chunks: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self.stopped = threading.Event()
        self.text = ""
        self.reason: str | None = None
        self.usage: Mapping[str, int] = {}

    def hear(self, chunk: Mapping[str, Any]) -> bool:
        """Called in the thread, for each piece; True makes it stop."""
        self.put(chunk)
        return self.stopped.is_set()

    def put(self, chunk: Mapping[str, Any] | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.chunks.put_nowait, chunk)

    def take(self, chunk: Mapping[str, Any]) -> str:
        """The text of a chunk, often none."""
        if "error" in chunk:
            raise ModelFailed(str(chunk["error"].get("message", chunk["error"])), lasting=True)
        self.usage = chunk.get("usage") or self.usage
        piece = ""
        for choice in chunk.get("choices", ()):
            piece += choice["delta"].get("content") or ""
            self.reason = choice.get("finish_reason") or self.reason
        self.text += piece
        return piece

    def spending(self, request: Request) -> Spending:
        """As counted by llama.cpp, or estimated where it was stopped before it said."""
        return request.spending(self.text, self.usage.get("prompt_tokens", 0), self.usage.get("completion_tokens", 0))


def bounded(schema: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The schema with an end to everything, so that an answer that fits it fits into `room` tokens as well. llama.cpp's grammars cannot
    bound a number, so a bounded one becomes a choice of steps."""
    made = {key: _bounded_part(key, value, room) for key, value in schema.items() if key not in ("description", "title")}
    kind = made.get("type")
    if kind == "string" and not made.keys() & {"enum", "const"}:
        made["maxLength"] = min(made.get("maxLength", room), max(24, room // 3))
    elif kind == "array":
        made["maxItems"] = min(made.get("maxItems", room), max(1, room // 200))
    elif kind == "number" and "minimum" in made and "maximum" in made:
        low, high = made["minimum"], made["maximum"]
        return {"enum": [round(low + (high - low) * step / _STEPS, 6) for step in range(_STEPS + 1)]}
    elif kind == "object":
        made.setdefault("additionalProperties", False)
    return made


def _bounded_part(key: str, value: Any, room: int) -> Any:
    if key == "properties":
        return {name: bounded(part, room) for name, part in value.items()}
    if key in ("anyOf", "oneOf", "allOf"):
        return [bounded(part, room) for part in value]
    return bounded(value, room) if key == "items" and isinstance(value, Mapping) else value
