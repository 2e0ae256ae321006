"""What is measured: the limit of the machine, and Talekeeper. The peers are in `peers`.

A system keeps one story in one file. A turn is `append`, durable when it returns, and then `context`: what goes into the next
prompt, up to `BUDGET` tokens. To resume is to `open` the file with a new object and ask for the first context.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import talekeeper as tk
from talekeeper.bench.workload import MASTER, PLAYERS, Line

BUDGET = 8_000
CHUNK = 1_000


class System(ABC):
    """One way of keeping a story. Made without arguments; a peer that is not installed raises ImportError there."""

    name: ClassVar[str]
    needs: ClassVar[str] = ""
    """What to install for it."""

    @abstractmethod
    async def open(self, path: Path) -> None: ...

    @abstractmethod
    async def prefill(self, lines: Sequence[Line]) -> None:
        """Bring a new story to this length by the quickest way there is; not measured."""

    @abstractmethod
    async def append(self, line: Line) -> None: ...

    @abstractmethod
    async def context(self, seat: str) -> Any:
        """What the system hands to a model, in its own shape."""

    def show(self, context: Any) -> str:
        """A context as text, off the clock: to check that the newest turn is in it, and how long it is."""
        return str(context)

    async def settle(self) -> None:  # noqa: B027 - most systems leave nothing for later
        """Finish what was put off (summaries, folds); belongs to the turns that caused it."""

    @abstractmethod
    async def close(self) -> None: ...


class Limit(System):
    """L: one row committed in WAL mode with synchronous=FULL, then the newest rows up to the budget, joined. Nothing else.

    The leanest table that SQLite has for this: numbered by its rowid, so that an append touches one page. Tokens are told, not counted.
    """

    name = "the limit (L)"
    _table = (
        "CREATE TABLE IF NOT EXISTS turns (seq INTEGER PRIMARY KEY, story INTEGER, speaker TEXT, text TEXT, audience TEXT, "
        "location TEXT, tokens INTEGER)"
    )
    _insert = "INSERT INTO turns (story, speaker, text, audience, location, tokens) VALUES (?, ?, ?, ?, ?, ?)"
    _tail = "SELECT speaker, text, tokens FROM turns ORDER BY seq DESC"

    async def open(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(self._table)

    async def prefill(self, lines: Sequence[Line]) -> None:
        for start in range(0, len(lines), CHUNK):
            self.write((1, line) for line in lines[start : start + CHUNK])

    def write(self, rows: Any) -> None:
        """Many rows, pairs of story and line, in one transaction: the bare ceiling of `executemany`."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.executemany(self._insert, (self._row(story, line) for story, line in rows))

    async def append(self, line: Line) -> None:
        self._db.execute(self._insert, self._row(1, line))

    async def context(self, seat: str) -> str:
        left, lines = BUDGET, []
        for speaker, text, tokens in self._db.execute(self._tail):
            left -= tokens
            if left < 0:
                break
            lines.append(f"[{speaker}]: {text}")
        lines.reverse()
        return "\n".join(lines)

    async def close(self) -> None:
        self._db.close()

    @staticmethod
    def _row(story: int, line: Line) -> tuple[Any, ...]:
        return story, line.speaker, line.text, ",".join(line.heard_by), line.location, line.tokens


def seats() -> list[tk.Seat]:
    """The table of the synthetic story."""
    return [tk.Seat(MASTER, role="dm"), *(tk.Seat(player) for player in PLAYERS)]


def key(session: int) -> tk.MemoryKey:
    """The key of the benchmark's story of that number."""
    return tk.MemoryKey(tenant_id="bench", user_id="table", session_id=str(session))


class Talekeeper(System):
    """Ours, by its public API: all history kept, four seats, each asked for its own view in turn."""

    name = "Talekeeper"

    async def open(self, path: Path) -> None:
        self._stack = AsyncExitStack()
        keeper = await self._stack.enter_async_context(tk.open(str(path), counter=tk.Heuristic()))
        self._story = await keeper.story(key(1), seats=seats())

    async def prefill(self, lines: Sequence[Line]) -> None:
        for start in range(0, len(lines), CHUNK):
            await self._story.append_many([_draft(line) for line in lines[start : start + CHUNK]])
        await self._story.settle()

    async def append(self, line: Line) -> None:
        await self._story.append(line.speaker, line.text, heard_by=line.heard_by, location=line.location)

    async def context(self, seat: str) -> tk.Context:
        return await self._story.context(seat, budget=BUDGET)

    def show(self, context: tk.Context) -> str:
        return context.text

    async def settle(self) -> None:
        await self._story.settle()

    async def close(self) -> None:
        await self._stack.aclose()


def _draft(line: Line) -> tk.Draft:
    return tk.Draft(line.speaker, line.text, heard_by=line.heard_by, location=line.location)
