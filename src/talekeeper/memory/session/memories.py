"""The memories of many conversations: one keeper, one configuration, one memory per key. Fails closed."""

from __future__ import annotations

import logging
import os
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from talekeeper import rim
from talekeeper.errors import WrongType
from talekeeper.keeper import Keeper
from talekeeper.memory.session.config import ShortTermMemoryConfig
from talekeeper.memory.session.memory import DefaultShortTermMemory, Home
from talekeeper.model import MemoryKey
from talekeeper.ports import ChatModel, Store
from talekeeper.summarize.janitor import Janitor

log = logging.getLogger("talekeeper")
MEMORIES_AT_HAND = 1024


class SessionMemories:
    """Remembers many conversations, each under its own key; none ever sees another. Arguments as for `DefaultShortTermMemory`."""

    def __init__(
        self, config: ShortTermMemoryConfig | None = None, *, keeper: Keeper | str | os.PathLike[str] | Store = ":memory:",
        summarizer: ChatModel | Janitor | None = None,
    ) -> None:  # fmt: skip
        self.config = config if config is not None else ShortTermMemoryConfig()
        if not isinstance(self.config, ShortTermMemoryConfig):
            raise WrongType(f"config must be a ShortTermMemoryConfig, not {type(config).__name__}")
        self._home = Home(keeper, self.config, summarizer)
        self._memories: OrderedDict[MemoryKey, DefaultShortTermMemory] = OrderedDict()
        self._throwaway = MemoryKey("default", "anonymous", uuid.uuid4().hex)

    def memory(self, key: MemoryKey) -> DefaultShortTermMemory:
        """The memory under the key. Without a whole key it raises `MissingKey`."""
        key = rim.key(key)
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = DefaultShortTermMemory(self.config, key=key, keeper=self._home)
            if len(self._memories) > MEMORIES_AT_HAND:
                self._memories.popitem(last=False)[1].let_go()
        self._memories.move_to_end(key)
        return memory

    def find_key(self, memory_key: MemoryKey | None = None, tool_context: Mapping[str, Any] | None = None) -> MemoryKey | None:
        """The key of a call: the one given, else the one in the tool context; None, with a warning, where neither is whole."""
        if self.config.strategy == "none":
            return None
        if memory_key is not None:
            return rim.key(memory_key)
        isolation = self.config.isolation
        found = isolation.find_key(tool_context or {})
        if found is not None:
            return rim.key(found)
        if not isolation.require_explicit_key:
            return self._throwaway
        wanted = f"{isolation.tenant_key}, {isolation.user_key} and {isolation.session_key}"
        log.warning("memory is off for this call: no memory_key was given, and the tool context does not hold %s", wanted)
        return None

    def for_call(
        self, *, memory_key: MemoryKey | None = None, tool_context: Mapping[str, Any] | None = None
    ) -> DefaultShortTermMemory | None:
        """The memory that a call is to use; None, with a warning, where it has no key: then memory is off for that call."""
        key = self.find_key(memory_key, tool_context)
        return None if key is None else self.memory(key)

    async def close(self) -> None:
        """Stops calling back, and closes the keeper if it is their own. What was added is safe without it."""
        for memory in self._memories.values():
            await memory.close()
        self._memories.clear()
        await self._home.close()

    async def __aenter__(self) -> SessionMemories:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
