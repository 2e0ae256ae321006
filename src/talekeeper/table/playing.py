"""Playing a table round by round: what is spoken comes as it is spoken, and a person's turn can wait until tomorrow.

    async for beat in game.round():            # one round, or as far as the next person's turn
        ...
    if game.waiting is not None:
        async for beat in game.answer("I open the door."):
            ...

Streaming and blocking are the same path: whoever does not care for the beats just lets them pass.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from talekeeper.errors import InvalidInput
from talekeeper.table.flight import DM, Told, take_off
from talekeeper.table.graph import turn_graph
from talekeeper.table.table import ROUND, Table


@dataclass(frozen=True, slots=True)
class Beat:
    """Something that a front end may show: a piece of speech, its end, a ruling, something that cannot be and was not told, a person's
    turn, or the end of the round.

    `hearers` may see it, and nobody else."""

    kind: Literal["speech", "end", "ruling", "refused", "turn", "done"]
    role: str = ""
    seat: str = ""
    text: str = ""
    hearers: tuple[str, ...] = ()
    scene: Mapping[str, Any] | None = None


class Game:
    """A table in play. Use it as an async context manager.

    `saver` is a file for rounds that wait for a person; without one they live as long as the program."""

    def __init__(self, table: Table, saver: Path | None = None) -> None:
        self.table = table
        self.waiting: Beat | None = None
        self._path = saver
        self._stack = AsyncExitStack()
        self._saver: BaseCheckpointSaver[Any]
        self._seated: Table | None = None

    async def __aenter__(self) -> Game:
        if self._path is None:
            self._saver = InMemorySaver()
        else:
            self._saver = await self._stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(self._path)))
        await self.look()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def look(self) -> None:
        """Finds out whether a round is waiting for a person at this point of the story."""
        if self._seated is not self.table:
            self._seated, self._graph = self.table, turn_graph(self.table, self._saver)
        newest = await self.table.story.marks(None, ROUND, limit=1)
        story = self.table.story
        self._thread = f"{story.key.composite()} {story.branch} {newest[0].id if newest else 'start'}"
        found = await self._graph.aget_state(self._config)
        waiting = [interrupt.value for task in found.tasks for interrupt in task.interrupts]
        self.waiting = _turn(waiting[0]) if waiting else None

    @property
    def _config(self) -> Any:
        return {"configurable": {"thread_id": self._thread}, "recursion_limit": 100}

    async def round(self, nudge: str | None = None) -> AsyncGenerator[Beat, None]:
        """Plays a round, as far as the next person's turn. One that was left waiting is dropped and begun anew."""
        await self.look()
        await self._saver.adelete_thread(self._thread)
        state = await self.table.state()
        flight = take_off(await self.table.round_now(), self.table.story.version, state.able, nudge)
        async for beat in self._run(flight):
            yield beat

    async def answer(self, text: str) -> AsyncGenerator[Beat, None]:
        """A person acts, and the round goes on. A blank text lets the turn pass."""
        if self.waiting is None:
            raise InvalidInput("nobody's turn is being waited for: begin a round first")
        async for beat in self._run(Command(resume=text)):
            yield beat

    async def finish(self) -> AsyncGenerator[Beat, None]:
        """An ending now, wherever the story is: the epilogue is told and written."""
        table = self.table
        state = await table.state()
        flight = take_off(await table.round_now(), table.story.version, ())
        ask = await table.ask("epilogue", DM, state, flight, Told(viewer=state.party[0]))
        pieces: list[str] = []
        async for piece in table.brain("epilogue").speak(ask):
            pieces.append(piece)
            yield Beat("speech", "epilogue", DM, piece, state.party)
        yield Beat("end", "epilogue", DM, "", state.party)
        await self._saver.adelete_thread(self._thread)
        await table.commit({**flight, "epilogue": "".join(pieces).strip()})
        self.waiting = None
        yield Beat("done")

    async def _run(self, given: Any) -> AsyncGenerator[Beat, None]:
        self.waiting = None
        async for mode, chunk in self._graph.astream(given, self._config, stream_mode=["custom", "updates"]):
            if mode == "custom":
                yield Beat(chunk["kind"], chunk["role"], chunk["seat"], chunk["text"], tuple(chunk["hearers"]))
            elif "__interrupt__" in chunk:
                self.waiting = _turn(chunk["__interrupt__"][0].value)
        if self.waiting is not None:
            yield self.waiting
            return
        await self._saver.adelete_thread(self._thread)
        yield Beat("done")


def _turn(value: Mapping[str, Any]) -> Beat:
    return Beat("turn", "pc", value["seat"], "", (value["seat"],), value["scene"])
