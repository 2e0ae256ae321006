"""Talekeeper's memory for PenguiFlow's `ReactPlanner`. Needs the extra `penguiflow`.

    from talekeeper.integrations.penguiflow import RememberingPlanner

    memories = tk.SessionMemories(tk.ShortTermMemoryConfig(strategy="rolling_summary"), keeper="chat.db")
    planner = RememberingPlanner(llm="gpt-5-mini", catalog=catalog, memories=memories)
    await planner.run("Help me set up alerts", memory_key=tk.MemoryKey("acme", "u123", "chat_001"))

A planner hands its memory no key, and makes planners of its own class for each session. So there is one memory object for all of them,
which knows by a context variable whose call it is in. A call without a whole key has no memory (I10); a call whose memory is over a
budget with the policy `error` raises before the model is asked. For a planner that serves one conversation, a
`DefaultShortTermMemory` can be passed as `short_term_memory` as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from talekeeper.errors import MemoryBudgetExceeded, SummaryFailed, TalekeeperError, how_to_install
from talekeeper.memory.session import DefaultShortTermMemory, SessionMemories
from talekeeper.model import HealthState, MemoryKey
from talekeeper.ports import ChatModel, Message
from talekeeper.rim import MAX_TEXT_BYTES

try:
    from penguiflow.planner import PlannerFinish, PlannerPause, ReactPlanner
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError(f"the planner needs penguiflow: {how_to_install('penguiflow')}", name=exc.name) from exc

log = logging.getLogger("talekeeper")
_CUT = " […]"


@dataclass(slots=True)
class _Call:
    """One call of the planner: whose memory it uses, and what it shows."""

    memory: DefaultShortTermMemory
    context: dict[str, Any] = field(default_factory=dict)


_call: ContextVar[_Call | None] = ContextVar("talekeeper_planner_call", default=None)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A turn of the planner as it may be stored."""

    user_message: str
    assistant_response: str
    trajectory_digest: Any


class PlannerMemory:
    """What the planner takes for its short-term memory: the memory of whoever's call it is in."""

    def __init__(self, memories: SessionMemories) -> None:
        self.memories = memories

    @property
    def health(self) -> HealthState:
        call = _call.get()
        return call.memory.health if call is not None else HealthState.HEALTHY

    async def get_llm_context(self) -> Mapping[str, Any]:
        call = _call.get()
        return call.context if call is not None else {}

    async def add_turn(self, turn: Any) -> None:
        call = _call.get()
        if call is not None:
            digest = turn.trajectory_digest
            await call.memory.add_turn(_Exchange(_storable(turn.user_message), _storable(turn.assistant_response), digest))

    def estimate_tokens(self) -> int:
        call = _call.get()
        return call.memory.estimate_tokens() if call is not None else 0

    async def flush(self) -> None:
        call = _call.get()
        if call is not None:
            await call.memory.flush()

    async def persist(self, store: Any, key: str) -> None:
        call = _call.get()
        if call is not None:
            await call.memory.persist(store, key)


class RememberingPlanner(ReactPlanner):  # type: ignore[misc]
    """A `ReactPlanner` that remembers each conversation under its key. Everything but `memories` goes to the planner.

    What it forks are plain planners: within a call they share that call's memory, by themselves they have none."""

    def __init__(self, llm: Any = None, *, memories: SessionMemories, **options: Any) -> None:
        super().__init__(llm, short_term_memory=PlannerMemory(memories), **options)
        self.memories = memories
        self._saved_in = options.get("state_store")
        self._turns: WeakValueDictionary[MemoryKey | None, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self, query: str, *, tool_context: Mapping[str, Any] | None = None, memory_key: Any = None, **options: Any
    ) -> PlannerFinish | PlannerPause:
        """Like the planner's own. The key is `memory_key`, else what the tool context holds of all three ids; without one, memory is off
        for this call, with a warning."""
        async with self._remembering(memory_key, tool_context) as key:
            return await super().run(query, tool_context=tool_context, memory_key=key, **options)

    async def resume(
        self, token: str, user_input: str | None = None, *, tool_context: Mapping[str, Any] | None = None, memory_key: Any = None,
        **options: Any,
    ) -> PlannerFinish | PlannerPause:  # fmt: skip
        """Like the planner's own. Pass the key, or the tool context that holds it, on resuming as well."""
        async with self._remembering(memory_key, tool_context) as key:
            return await super().resume(token, user_input, tool_context=tool_context, memory_key=key, **options)

    @asynccontextmanager
    async def _remembering(self, memory_key: Any, tool_context: Mapping[str, Any] | None) -> AsyncIterator[MemoryKey | None]:
        key = self.memories.find_key(_as_key(memory_key), tool_context)
        turns = self._turns.setdefault(key, asyncio.Lock())  # one after the other: each sees what the last one added
        async with turns if key is not None else nullcontext():
            mark = _call.set(await self._begin(self.memories.memory(key)) if key is not None else None)
            try:
                yield key
            finally:
                _call.reset(mark)

    async def _begin(self, memory: DefaultShortTermMemory) -> _Call:
        """The call, with what its memory shows. A store that fails leaves the call without what it holds, not without an answer."""
        call = _Call(memory)
        try:
            if self._saved_in is not None:
                await memory.hydrate(self._saved_in)
        except Exception:  # someone else's store
            log.exception("memory state not loaded", extra={"story": memory.key.composite()})
        try:
            call.context = await memory.get_llm_context()
        except MemoryBudgetExceeded:
            raise
        except TalekeeperError:
            log.exception("memory not read", extra={"story": memory.key.composite()})
        return call


def summarizer(client: Any) -> ChatModel:
    """A planner's client (anything with its `complete`) as a summarizer for `SessionMemories`."""

    async def ask(messages: Sequence[Message]) -> str:
        answer = await client.complete(messages=[dict(message) for message in messages])
        text = answer[0] if isinstance(answer, tuple) else answer
        if not isinstance(text, str) or not text.strip():
            raise SummaryFailed(f"the client's answer has no text: found {type(text).__name__}")
        return text

    return ask


def _as_key(key: Any) -> Any:
    """The planner's own kind of key as ours; anything else is left as it is, to be refused."""
    if key is None or isinstance(key, MemoryKey) or not all(hasattr(key, part) for part in ("tenant_id", "user_id", "session_id")):
        return key
    return MemoryKey(key.tenant_id, key.user_id, key.session_id)


def _storable(text: str) -> str:
    """A planner's text as it may be stored: without NUL bytes or lone surrogates, and cut at what a turn may have."""
    clean = text.replace("\0", "").encode("utf-8", "replace")
    if len(clean) <= MAX_TEXT_BYTES:
        return clean.decode()
    return clean[: MAX_TEXT_BYTES - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT


__all__ = ["PlannerMemory", "RememberingPlanner", "summarizer"]
