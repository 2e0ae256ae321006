"""Any pydantic-ai model as a summarizer, by its provider string or as an object. Needs the extra `pydantic-ai`.

    from talekeeper.integrations.pydantic_ai import summarizer

    keeper = tk.open("saga.db", summarizer=summarizer("openai:gpt-5-mini", temperature=0.2))

A provider has a package of its own (`pip install "pydantic-ai-slim[openai]"`) and mostly a key in the environment; what is missing is
said when the summarizer is made, not when the first fold is due. Only text counts as an answer: thinking is left out, and an answer
without text, or one that was cut off, is an error that shows in `health` (I6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from talekeeper.errors import InvalidInput, SummaryFailed, WrongType, how_to_install
from talekeeper.ports import ChatModel, Message
from talekeeper.table.cast.hosted import translate

try:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, infer_model
    from pydantic_ai.settings import ModelSettings
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError(f"pydantic-ai models need pydantic-ai-slim: {how_to_install('pydantic-ai')}", name=exc.name) from exc

_REASONS = {"length": "was cut off: allow it more tokens", "content_filter": "was stopped by the provider's content filter"}


def summarizer(model: str | Model, **settings: Any) -> ChatModel:
    """The model as an async callable from messages to text, for `talekeeper.open(summarizer=…)`.

    `settings` are pydantic-ai's model settings, such as `temperature`, `max_tokens` or `timeout`."""
    found = _find(model)

    async def ask(messages: Sequence[Message]) -> str:
        return _text(await model_request(found, translate(messages), model_settings=cast(ModelSettings, settings) if settings else None))

    return ask


def _find(model: str | Model) -> Model:
    if not isinstance(model, str | Model):
        raise WrongType(f"expected a pydantic-ai model or a string such as 'openai:gpt-5-mini', found {type(model).__name__}")
    try:
        return infer_model(model)
    except Exception as exc:  # pydantic-ai's own, or whatever the provider's package raises where a key is missing
        raise InvalidInput(f"the summarizer's model {model!r} cannot be used: {exc}") from exc


def _text(response: ModelResponse) -> str:
    """The response's text. Raises `SummaryFailed` where there is none, or only the beginning of one."""
    reason = _REASONS.get(response.finish_reason or "")
    if reason is not None:
        raise SummaryFailed(f"the answer of {response.model_name or 'the model'} {reason}")
    text = response.text
    if text is None or not text.strip():
        found = ", ".join(dict.fromkeys(part.part_kind for part in response.parts)) or "nothing"
        raise SummaryFailed(f"the answer of {response.model_name or 'the model'} has no text: found {found}")
    return text


__all__ = ["summarizer"]
