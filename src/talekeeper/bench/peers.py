"""The memories that people use today, each by its public API and with the settings that suit it best for 8k tokens of tail.

Installed by the extra `bench`; imported when an object is made, so that a missing one is a line in the report and not an error.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from talekeeper.bench.systems import BUDGET, CHUNK, System
from talekeeper.bench.workload import MASTER, Line

TAIL = 160
"""How many lines of the synthetic story make up the budget, for systems that count messages instead of tokens."""


def _role(line: Line) -> str:
    return "assistant" if line.speaker == MASTER else "user"


class AgentsSession(System):
    """OpenAI Agents `SQLiteSession`, asked for as many items as fit the budget."""

    name = f"OpenAI Agents SQLiteSession, limit={TAIL}"
    needs = "openai-agents"
    limit: int | None = TAIL

    def __init__(self) -> None:
        self._agents = import_module("agents")

    async def open(self, path: Path) -> None:
        self._session = self._agents.SQLiteSession("story", path)

    async def prefill(self, lines: Sequence[Line]) -> None:
        await self._session.add_items([self._item(line) for line in lines])

    async def append(self, line: Line) -> None:
        await self._session.add_items([self._item(line)])

    async def context(self, seat: str) -> Any:
        return await self._session.get_items(limit=self.limit)

    async def close(self) -> None:
        self._session.close()

    @staticmethod
    def _item(line: Line) -> dict[str, str]:
        return {"role": _role(line), "content": line.text}


class WholeAgentsSession(AgentsSession):
    """The same as it comes: every item, each time."""

    name = "OpenAI Agents SQLiteSession"
    limit = None


class LangGraphSaver(System):
    """LangGraph: messages in the graph's state, `SqliteSaver` as the checkpointer, `trim_messages` before the model."""

    name = "LangGraph SqliteSaver"
    needs = "langgraph langgraph-checkpoint-sqlite"

    def __init__(self) -> None:
        self._graphs = import_module("langgraph.graph")
        self._savers = import_module("langgraph.checkpoint.sqlite")
        self._messages = import_module("langchain_core.messages")
        self._config = {"configurable": {"thread_id": "story"}}
        self._prompt: Any = None

    async def open(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False)
        graph = self._graphs.StateGraph(self._graphs.MessagesState)
        graph.add_node("narrate", self._narrate)
        graph.add_edge(self._graphs.START, "narrate")
        self._graph = graph.compile(checkpointer=self._savers.SqliteSaver(self._db))

    async def prefill(self, lines: Sequence[Line]) -> None:
        self._graph.invoke({"messages": [self._message(line) for line in lines]}, self._config)

    async def append(self, line: Line) -> None:
        self._graph.invoke({"messages": [self._message(line)]}, self._config)

    async def context(self, seat: str) -> Any:
        """What the node of this turn saw; after a resume there is none, so the state is read."""
        if self._prompt is None:
            self._narrate(self._graph.get_state(self._config).values)
        return self._prompt

    async def close(self) -> None:
        self._db.close()

    def _narrate(self, state: Any) -> dict[str, list[Any]]:
        self._prompt = self._messages.trim_messages(
            state["messages"], max_tokens=BUDGET, token_counter=self._messages.utils.count_tokens_approximately, strategy="last"
        )
        return {"messages": []}

    def _message(self, line: Line) -> Any:
        return (self._messages.AIMessage if line.speaker == MASTER else self._messages.HumanMessage)(line.text)


class PenguiflowMemory(System):
    """penguiflow's rolling summary over a SQLite state store: it keeps the tail only, and writes all of it on every turn."""

    name = "penguiflow rolling_summary"
    needs = "penguiflow"

    def __init__(self) -> None:
        self._kit = import_module("penguiflow.planner.memory")

    async def open(self, path: Path) -> None:
        self._store = _StateStore(path)
        budget = self._kit.MemoryBudget(full_zone_turns=TAIL * 3 // 4, summary_max_tokens=BUDGET // 8, total_max_tokens=BUDGET)
        config = self._kit.ShortTermMemoryConfig(strategy="rolling_summary", budget=budget)
        self._memory = self._kit.DefaultShortTermMemory(config=config, summarizer=_gist)
        await self._memory.hydrate(self._store, "story")

    async def prefill(self, lines: Sequence[Line]) -> None:
        for line in lines[-2 * TAIL :]:
            await self._memory.add_turn(self._turn(line))
            await self._memory.flush()
        await self._memory.persist(self._store, "story")

    async def append(self, line: Line) -> None:
        await self._memory.add_turn(self._turn(line))
        await self._memory.persist(self._store, "story")

    async def context(self, seat: str) -> Any:
        return await self._memory.get_llm_context()

    async def settle(self) -> None:
        await self._memory.flush()

    async def close(self) -> None:
        self._store.db.close()

    def _turn(self, line: Line) -> Any:
        return self._kit.ConversationTurn(user_message=line.text, assistant_response="")


async def _gist(request: Mapping[str, Any]) -> Mapping[str, str]:
    """A summarizer that costs next to nothing: the first words of each turn, the newest of them."""
    said = " ".join(turn["user"][:60] for turn in request["turns"])
    return {"summary": f"{request['previous_summary']} {said}"[-2 * BUDGET // 8 :]}


class _StateStore:
    """The least that penguiflow asks of a durable store: one row per key, committed like the limit's rows."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, state TEXT)")

    async def save_memory_state(self, key: str, state: dict[str, Any]) -> None:
        self.db.execute("INSERT OR REPLACE INTO memory VALUES (?, ?)", (key, json.dumps(state)))

    async def load_memory_state(self, key: str) -> Any:
        row = self.db.execute("SELECT state FROM memory WHERE key = ?", (key,)).fetchone()
        return row and json.loads(row[0])


class LlamaIndexMemory(System):
    """LlamaIndex `Memory` on a SQLite file: a token-limited queue, the rest archived. Its own tokenizer counts."""

    name = "LlamaIndex Memory"
    needs = "llama-index-core aiosqlite"

    def __init__(self) -> None:
        self._core = import_module("llama_index.core.memory")
        self._llms = import_module("llama_index.core.llms")
        self._status = import_module("llama_index.core.storage.chat_store.sql").MessageStatus
        self._sql = import_module("sqlalchemy.ext.asyncio")
        import_module("aiosqlite")

    async def open(self, path: Path) -> None:
        self._engine = self._sql.create_async_engine(f"sqlite+aiosqlite:///{path}")
        self._memory = self._core.Memory.from_defaults(
            session_id="story", token_limit=BUDGET, chat_history_token_ratio=1.0, async_engine=self._engine
        )

    async def prefill(self, lines: Sequence[Line]) -> None:
        await self._add(lines[:-TAIL], self._status.ARCHIVED)
        await self._add(lines[-TAIL:], self._status.ACTIVE)

    async def append(self, line: Line) -> None:
        await self._memory.aput(self._message(line))

    async def context(self, seat: str) -> Any:
        return await self._memory.aget()

    async def close(self) -> None:
        await self._engine.dispose()

    async def _add(self, lines: Sequence[Line], status: Any) -> None:
        for start in range(0, len(lines), CHUNK):
            messages = [self._message(line) for line in lines[start : start + CHUNK]]
            await self._memory.sql_store.add_messages("story", messages, status=status)

    def _message(self, line: Line) -> Any:
        return self._llms.ChatMessage(role=_role(line), content=line.text)


PEERS: tuple[type[System], ...] = (PenguiflowMemory, AgentsSession, WholeAgentsSession, LlamaIndexMemory, LangGraphSaver)
