"""Playing a table round by round: what is spoken comes as it is spoken, and a person's turn can wait until tomorrow.

    async for beat in game.round():            # one round, or as far as the next person's turn
        ...
    if game.waiting is not None:
        async for beat in game.answer("I open the door."):
            ...

Streaming and blocking are the same path: whoever does not care for the beats just lets them pass.

While people play, every step of the round in flight is kept beside the story until the round is written. A program that dies in the
middle of one finds it again: waiting for the same person, or to be taken up after the last answer. Without people there is nothing in
a round that could not be played again, and it costs nothing to keep.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, StoreBusy, StoreCorrupt, StoreError, StoreReadOnly
from talekeeper.model import Context, MemoryKey
from talekeeper.table.meaning.understand import Listener
from talekeeper.table.playing.flight import DM, Flight, Told, said_before, scene_for, take_off
from talekeeper.table.playing.graph import turn_graph
from talekeeper.table.playing.seating import MOVED_ON, ROUND, Table

LONGEST = 4000
"""Characters of what a person does in one turn."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Something that a front end may show: a piece of speech, its end, a ruling, something that cannot be and was not told, a person's
    turn, or the end of the round.

    `hearers` may see it, and nobody else. `private`: of a ruling, that others stood by and know nothing of it."""

    kind: Literal["speech", "end", "ruling", "refused", "turn", "done"]
    role: str = ""
    seat: str = ""
    text: str = ""
    hearers: tuple[str, ...] = ()
    scene: Mapping[str, Any] | None = None
    private: bool = False


class Rounds:
    """Where rounds in flight are kept. Use it as an async context manager; any number of games may share it.

    Without a file they live as long as the program."""

    saver: BaseCheckpointSaver[Any]

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Rounds:
        if self._path is None:
            self.saver = _InMemory()
        else:
            try:
                self.saver = await self._opened(self._path)
            except sqlite3.Error as exc:
                await self._stack.aclose()
                raise _unusable(exc, self._path) from exc
        return self

    async def _opened(self, path: Path) -> AsyncSqliteSaver:
        """The file, ready to be written to: a round that cannot be kept is not begun."""
        sqlite3.connect(path).close()  # where this fails no thread is begun, which might answer when the loop is closed
        saver = await self._stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path)))
        await saver.setup()
        await saver.conn.execute("DELETE FROM writes WHERE 0")  # nothing, but refused where nothing can be written
        await saver.conn.rollback()
        return saver

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def drop(self, key: MemoryKey) -> None:
        """Removes every round of that story."""
        kept = {found.config["configurable"]["thread_id"] async for found in self.saver.alist(None)}
        for thread in kept:
            if thread.startswith(f"{key.composite()} "):
                await self.saver.adelete_thread(thread)


def _unusable(exc: sqlite3.Error, path: Path) -> StoreError:
    """What to tell of a file of rounds that cannot be used."""
    code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{str(path)!r} is locked by another process: retry later ({exc})")
    kept = "it only keeps rounds in flight, the story itself is not in it"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreCorrupt(f"{str(path)!r} is damaged: remove it and play on; {kept} ({exc})")
    if path.is_dir():
        return StoreError(f"{str(path)!r} is a directory, and the place for a file: move it away; {kept}")
    kind = StoreReadOnly if code == sqlite3.SQLITE_READONLY else StoreError
    return kind(f"{str(path)!r} cannot be written: check its permissions and those of its directory, or remove it; {kept} ({exc})")


class _InMemory(InMemorySaver):  # type: ignore[misc]
    """Does not remember what was merely asked for."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return super().get_tuple(config) if config["configurable"]["thread_id"] in self.storage else None


class Game:
    """A table in play. Use it as an async context manager.

    `rounds`: where rounds in flight are kept, or a file for them; without one they live as long as the program."""

    def __init__(self, table: Table, rounds: Rounds | Path | None = None) -> None:
        self.table = table
        self.waiting: Beat | None = None
        self._rounds = rounds
        self._stack = AsyncExitStack()
        self._flight: Flight | None = None

    async def __aenter__(self) -> Game:
        if isinstance(self._rounds, Rounds):
            self._saver = self._rounds.saver
        else:
            self._saver = (await self._stack.enter_async_context(Rounds(self._rounds))).saver
        self._graph = turn_graph().copy({"checkpointer": self._saver})
        await self.look()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def look(self) -> None:
        """Finds out whether a round is in flight at this point of the story, and whether it waits for a person."""
        self._thread = await self._name()
        self._flight, turns = await self._kept()
        self.waiting = next((turn for turn in turns if turn.seat in self.table.setup.humans), None)

    async def _kept(self) -> tuple[Flight | None, list[Beat]]:
        """The round in flight at this point of the story, if one is, and whose turn it waits for."""
        found = await self._graph.aget_state(self._config)
        turns = [_turn(interrupt.value) for task in found.tasks for interrupt in task.interrupts]
        # Tasks, and not `next`: between a step and the one after it there is nothing next, and yet it goes on.
        in_flight = bool(found.tasks) and await self.table.takes(found.values["version"])
        return (found.values, turns) if in_flight else (None, [])

    async def _name(self) -> str:
        """What the round at this point of the story is kept under; one that was begun anew under the same key has another first turn."""
        story = self.table.story
        newest = await story.marks(None, ROUND, limit=1)
        begun = newest[0].id if newest else (await story.turns(limit=1))[0].id
        return f"{story.key.composite()} {story.branch} {begun}"

    @property
    def _config(self) -> Any:
        return {"configurable": {"thread_id": self._thread}, "recursion_limit": 100}

    def so_far(self) -> Iterator[Beat]:
        """What was said in the round in flight, as far as it is kept."""
        if self._flight is None:
            return
        for words in self._flight["scenes"]:
            yield from _speech("dm", words["speaker"], words["text"], words["hearers"])
        ruled = {decision["actor"]: decision for decision in self._flight["decisions"]}
        for words in self._flight["said"]:
            seat = words["speaker"]
            yield from _speech("pc", seat, words["text"], words["hearers"] if seat in ruled else [seat])
            if seat in ruled:
                one = ruled[seat]
                yield Beat("ruling", "keeper", seat, one["resolution"], tuple(one["hearers"]), private=one["private"])

    async def next_prompt(self, seat: str) -> Context:
        """What would be in the next prompt of the DM or of somebody of the party, as things are now. Nobody is asked."""
        flight, _ = await self._kept()
        state = (await self.table.states(flight))[-1] if flight is not None else await self.table.state()
        if seat == DM:
            return await self.table.prompt("dm", DM, state, Told(viewer=next(iter(state.alive), "")))
        told = Told(action=scene_for(flight, seat), said=said_before(flight, seat)) if flight is not None else Told()
        return await self.table.prompt("pc", seat, state, told)

    async def round(self, nudge: str | None = None) -> AsyncGenerator[Beat, None]:
        """Plays a round, as far as the next person's turn. One that was left waiting is dropped and begun anew; one that was cut short
        is taken up, and what was said in it before comes first."""
        nudge = None if nudge is None else sayable(nudge, "the nudge")
        await self.look()
        if self._flight is not None and self.waiting is None:
            given: Flight | None = None
            for beat in self.so_far():
                yield beat
        else:
            await self._saver.adelete_thread(self._thread)
            state = await self.table.state()
            given = take_off(await self.table.round_now(), self.table.story.version, state.able, nudge)
        async for beat in self._run(given):
            yield beat

    async def answer(self, text: str) -> AsyncGenerator[Beat, None]:
        """A person acts, and the round goes on. A blank text lets the turn pass. Raises `Conflict` where the turn is waited for no more,
        since somebody else has played on, and `InvalidInput` where there is a `doubt`: the turn is still waited for."""
        asked, thread = self.waiting, self._thread
        if asked is None:
            raise InvalidInput("nobody's turn is being waited for: begin a round first")
        said = sayable(text, "the answer")  # before it is kept: a round cannot get rid of it again
        await self.look()
        if self.waiting is None or (self.waiting.seat, self._thread) != (asked.seat, thread):
            raise Conflict(MOVED_ON)
        if doubt := await self.doubt(said):
            raise InvalidInput(doubt)
        async for beat in self._run(Command(resume=said)):
            yield beat

    async def doubt(self, text: str) -> str:
        """What to ask whose turn it is before this can be told: something in it is for some ears only, and nobody knows for whose."""
        if self.waiting is None or self._flight is None:
            return ""
        state = (await self.table.states(self._flight))[-1]
        found = Listener(self.table.scenario, state, self.waiting.seat).confidence(text)
        return f"{found.doubt} Nobody has heard it: say it in another way." if found.doubt else ""

    async def finish(self) -> AsyncGenerator[Beat, None]:
        """An ending now, wherever the story is: the epilogue is told and written. Raises `InvalidInput` where it was told already."""
        table = self.table
        await table.check_untold()
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
        kept = given is None or self.waiting is not None or bool(self.table.setup.humans)
        self.waiting = None
        graph = self._graph if kept else turn_graph()
        heard = ["custom", "updates"] if kept else ["custom"]  # only a person's turn is told as an update
        async for mode, chunk in graph.astream(given, self._config, context=self.table, stream_mode=heard):
            if mode == "custom":
                hearers, private = tuple(chunk["hearers"]), chunk.get("private", False)
                yield Beat(chunk["kind"], chunk["role"], chunk["seat"], chunk["text"], hearers, private=private)
            elif "__interrupt__" in chunk:
                self.waiting = _turn(chunk["__interrupt__"][0].value)
        if self.waiting is not None:
            yield self.waiting
            return
        if kept:
            await self._saver.adelete_thread(self._thread)
        yield Beat("done")


def sayable(value: object, what: str) -> str:
    """What a person types into a round: a text that may be stored and is short enough to be understood, or nothing."""
    if isinstance(value, str) and not value.strip():
        return ""
    if isinstance(value, str) and len(value) > LONGEST:
        raise InvalidInput(f"{what} has {len(value):,} characters, at most {LONGEST:,} are taken: say it in several turns")
    return rim.text(value, what)


def _speech(role: str, seat: str, text: str, hearers: list[str]) -> Iterator[Beat]:
    yield Beat("speech", role, seat, text, tuple(hearers))
    yield Beat("end", role, seat, "", tuple(hearers))


def _turn(value: Mapping[str, Any]) -> Beat:
    return Beat("turn", "pc", value["seat"], "", (value["seat"],), value["scene"])
