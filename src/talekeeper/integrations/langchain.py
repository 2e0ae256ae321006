"""Any LangChain chat model as a summarizer. Needs the extra `langchain`.

    from langchain_openai import ChatOpenAI
    from talekeeper.integrations.langchain import summarizer

    keeper = tk.open("saga.db", summarizer=summarizer(ChatOpenAI(model="gpt-5-mini")))

Only text counts as an answer. An answer without any, or one that was cut off by a token limit, is an error and never a summary: it
shows in `health`, and the extractive fold stays (I6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from talekeeper.errors import InvalidInput, SummaryFailed, WrongType, how_to_install, quoted
from talekeeper.ports import ChatModel, Message
from talekeeper.table.cast.models import CUT_OFF, stop_reason

try:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError(f"LangChain models need langchain-core: {how_to_install('langchain')}", name=exc.name) from exc

_CLASSES = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def summarizer(model: BaseChatModel) -> ChatModel:
    """The model as an async callable from messages to text, for `talekeeper.open(summarizer=…)`.

    What `bind`, `with_retry` or `with_fallbacks` make of a chat model will do as well."""
    if isinstance(model, type) or not callable(getattr(model, "ainvoke", None)):
        raise WrongType(f"expected a LangChain chat model, found {quoted(model)}")

    async def ask(messages: Sequence[Message]) -> str:
        return _text(await model.ainvoke([_translate(message) for message in messages]))

    return ask


def _translate(message: Message) -> BaseMessage:
    kind = _CLASSES.get(message["role"])
    if kind is None:
        raise InvalidInput(f"a message's role must be one of {', '.join(_CLASSES)}, not {message['role']!r}")
    return kind(content=message["content"])


def _text(answer: Any) -> str:
    """The answer's text blocks, joined. Raises `SummaryFailed` where there is no text, or only the beginning of one."""
    content = getattr(answer, "content", None)
    if not isinstance(content, str | list):
        raise SummaryFailed(f"expected a chat message from the LangChain model, found {type(answer).__name__}")
    reason = stop_reason(answer)
    if reason in CUT_OFF:
        raise SummaryFailed(f"the LangChain model's answer was cut off ({reason!r}): allow it more tokens")
    blocks = [content] if isinstance(content, str) else content
    text = "".join(filter(None, map(_block_text, blocks)))
    if not text.strip():
        found = ", ".join(dict.fromkeys(_block_kind(block) for block in blocks)) or "nothing"
        raise SummaryFailed(f"the LangChain model's answer has no text: found {found}")
    return text


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type", "text") == "text" else None
    return text if isinstance(text, str) else None


def _block_kind(block: Any) -> str:
    if isinstance(block, Mapping):
        return f"a block of type {block.get('type')!r}"
    return "blank text" if isinstance(block, str) else type(block).__name__


__all__ = ["summarizer"]
