"""A game in play, and the round that is in flight.

A round runs by itself, whether or not anyone listens: it is told to those who hear it as it is spoken, and written at its end. So a
client that goes away loses nothing, and one that comes back finds the round in `Room.lines`. Only one thing happens in a room at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talekeeper.errors import DuplicateId, InvalidInput, TalekeeperError
from talekeeper.memory.moments import KeeperResponse
from talekeeper.server.problems import Problem
from talekeeper.server.stream import Hub, Passing
from talekeeper.table.brain import Ask, Brain
from talekeeper.table.playing.flight import DM
from talekeeper.table.playing.seating import Brains, Table
from talekeeper.table.storyteller import Storyteller

if TYPE_CHECKING:
    from talekeeper.table.playing.rounds import Beat, Game

log = logging.getLogger("talekeeper.server")
TELL_EVERY = 0.04
"""Seconds between two looks at a line that is being spoken."""
REQUESTS_KNOWN = 256
"""How many requests of a game are known by name, so that one that is sent again does nothing twice."""
BREATH = 0.6
"""Seconds between two rounds that play by themselves."""


class Ticket:
    """One game's right to be thought about. There are only so many, so that those who ask for something are answered meanwhile."""

    def __init__(self, tickets: asyncio.Semaphore) -> None:
        self._tickets = tickets
        self._held = False

    async def __aenter__(self) -> None:
        await self._tickets.acquire()
        self._held = True

    async def __aexit__(self, *_: object) -> None:
        if self._held:
            self._held = False
            self._tickets.release()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """For others to use, while this game waits for a model."""
        await self.__aexit__()
        try:
            yield
        finally:
            await self.__aenter__()


class Unhurried:
    """A brain that takes its time, in which other games are thought about."""

    def __init__(self, brain: Brain, ticket: Ticket) -> None:
        self._brain, self._ticket = brain, ticket

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        async with self._ticket.lent():
            async for piece in self._brain.speak(ask):
                yield piece

    async def rule(self, ask: Ask) -> KeeperResponse:
        async with self._ticket.lent():
            return await self._brain.rule(ask)


def unhurried(brains: Brains, ticket: Ticket) -> Brains:
    """The same, where they may have to wait for something; the built-in storyteller does not."""
    if isinstance(brains, Mapping):
        return {part: brain if isinstance(brain, Storyteller) else Unhurried(brain, ticket) for part, brain in brains.items()}
    return brains if isinstance(brains, Storyteller) else Unhurried(brains, ticket)


@dataclass
class Line:
    """Something said in the round that is in flight. `hearers` may see it, and nobody else."""

    role: str
    seat: str
    hearers: tuple[str, ...]
    text: str = ""
    ended: bool = False
    key: str = ""


class Room:
    """One game, and the round that is in flight."""

    def __init__(self, game: Game, hub: Hub, ticket: Ticket) -> None:
        self.game = game
        self.lines: list[Line] = []
        self.failed: str = ""
        self.auto = False
        self._hub, self._ticket = hub, ticket
        self._seen = ""
        self._owed = False  # somebody's turn came, and went when the story moved on
        self._round = ""
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._done: dict[str, str] = {}

    @property
    def table(self) -> Table:
        return self.game.table

    @property
    def waiting(self) -> str:
        """Whose turn is being waited for; empty where nobody's is."""
        return self.game.waiting.seat if self.game.waiting is not None else ""

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def glance(self, version: str) -> None:
        """Looks, where the story is not where it was."""
        if version != self._seen:
            await self.look()

    async def look(self) -> None:
        """Takes note of what happened to the story meanwhile."""
        if self.running or self._lock.locked():
            return
        async with self._lock:
            await self._look()

    async def _look(self) -> None:
        waited = self.waiting
        await self.table.look_who_plays()
        await self.game.look()
        if self.game.waiting is None:
            self.lines, self._owed = [], bool(waited) or self._owed
        elif not self.lines:  # it began to wait before this process did
            await self._name_round()
            for beat in self.game.so_far():
                self._hear(beat)
        self._seen = self.table.story.version

    # -- rounds ----------------------------------------------------------------------------------------------------------------

    def did(self, request: str | None, words: str = "") -> bool:
        """Whether what a request of that name asks for was done already; with other words it was another. The newest names are kept while
        the game is at hand."""
        if request is None or request not in self._done:
            return False
        if self._done[request] != words:
            raise DuplicateId("that key belongs to another request")
        return True

    def note(self, request: str | None, words: str = "") -> None:
        """What a request asks for is done, or will be."""
        if request is not None:
            self._done[request] = words
            if len(self._done) > REQUESTS_KNOWN:
                del self._done[next(iter(self._done))]

    async def step(self, nudge: str | None = None, request: str | None = None) -> None:
        """Begins a round."""
        await self.look()
        if self.did(request):
            return
        self._must_rest()
        if self.waiting:
            raise Problem(409, "someones-turn", f"It is {self.waiting}'s turn: let that seat act, or have it played by the AI.")
        self.note(request)
        self._begin(self._rounds(nudge, once=True))

    async def act(self, seat: str, text: str, request: str | None = None, *, hosts: bool = False) -> None:
        """A person acts. Where the story has moved on since their turn came, the round is brought there again first. Who `hosts` may act at
        any time: that begins a round."""
        await self.look()
        if self.did(request, text):
            return
        self._must_rest()
        if self.waiting and self.waiting != seat:
            raise Problem(409, "someones-turn", "It is another seat's turn. Wait for yours.")
        if not (self.waiting or hosts or self._owed):
            raise Problem(409, "nobodys-turn", "Nobody's turn is being waited for. Wait for yours: the dm begins the rounds.")
        if not self.waiting and seat not in self.table.setup.humans:
            raise InvalidInput(f"{seat!r} is played by the AI: take the seat over first")
        if not self.waiting and seat != self.table.leader(await self.table.state()):  # whose it is, is not everyone's to know
            raise Problem(409, "someones-turn", "The round begins anew, with another seat's turn. Wait for yours.")
        if self.waiting and (doubt := await self.game.doubt(text)):
            raise Problem(422, "unclear", doubt)
        self._must_rest()  # somebody may have acted meanwhile
        if self.did(request, text):
            return
        self.note(request, text)
        self._begin(self._answered(seat, text))

    async def finish(self, request: str | None = None) -> None:
        """An ending now."""
        await self.look()
        if self.did(request):
            return
        self._must_rest()
        await self.table.check_untold()
        self.note(request)
        self._begin(self._told(self.game.finish()))

    async def play(self, on: bool) -> None:
        """Lets rounds follow each other as far as the next person's turn, or stops after the one that is in flight."""
        self.auto = on
        if on and not self.running:
            await self.look()
            if not self.waiting:
                self._begin(self._rounds(None, once=False))
        self._say("auto", {"on": self.auto})

    def _must_rest(self) -> None:
        if self.running:
            raise Problem(409, "round-in-flight", "A round is being played. Wait for its end.", headers={"Retry-After": "1"})

    async def _rounds(self, nudge: str | None, *, once: bool) -> None:
        while True:
            if (await self.table.state()).ending:
                self.auto = False
                if not once:
                    return
            await self._told(self.game.round(nudge))
            if self.waiting or not self.auto:
                return
            nudge, once = None, False
            await asyncio.sleep(BREATH)

    async def _answered(self, seat: str, text: str) -> None:
        if not self.waiting:
            await self._told(self.game.round())
        if self.waiting != seat:
            raise InvalidInput(f"it is not the turn of {seat!r}")
        if text.strip():
            self._show(self._open(Line("pc", seat, (seat, DM), text, ended=True)))
        await self._told(self.game.answer(text))
        if self.auto and not self.waiting:
            await asyncio.sleep(BREATH)
            await self._rounds(None, once=False)

    def _begin(self, work: Awaitable[None]) -> None:
        self.failed = ""
        self._task = asyncio.ensure_future(self._guarded(work))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            async with self._lock:
                await work
        except TalekeeperError as exc:
            self.auto, self.failed, self.lines = False, str(exc), []
            log.warning("round failed", extra={"error": f"{type(exc).__name__}: {exc}"})
        except Exception:
            self.auto, self.failed, self.lines = False, "Something went wrong that should not. Nothing was written.", []
            log.exception("round failed")
        self._say("rested", {})  # whose turn it is, and why a round failed, is not everyone's to know: it is asked for

    async def _told(self, beats: AsyncIterator[Beat]) -> None:
        """Lets a round be heard, line by line, as it is spoken."""
        if self.game.waiting is None:
            self.lines, self._owed = [], False
            await self._name_round()
            self._say("round", {})
        shown = 0.0
        async with self._ticket:
            async for beat in beats:
                self._hear(beat)
                if beat.kind == "end" and self.lines:
                    self._show(self.lines[-1])
                elif beat.kind in ("speech", "ruling") and time.monotonic() - shown >= TELL_EVERY:
                    shown = time.monotonic()
                    self._show(self.lines[-1])
                    await asyncio.sleep(0)
                elif beat.kind == "done":
                    self.lines = []
                    self._hub.wake(self.table.story.key)
        self.table.asked.clear()  # whole prompts, which nobody asks a server for

    def _hear(self, beat: Beat) -> None:
        if beat.kind in ("speech", "ruling"):
            self._add(beat)
        elif beat.kind == "end" and self.lines:
            self.lines[-1].ended = True

    def _add(self, beat: Beat) -> None:
        """What someone does may turn out to be secret: until it is ruled on, nobody else sees it."""
        hearers = (beat.seat, DM) if beat.role == "pc" else (*beat.hearers, DM)
        last = self.lines[-1] if self.lines else None
        if beat.kind == "ruling":
            for line in self.lines:
                if (line.role, line.seat) == ("pc", beat.seat):
                    line.hearers = hearers
                    self._show(line)
            self._show(self._open(Line("ruling", beat.seat, hearers, beat.text, ended=True)))
        elif last is None or last.ended or (last.role, last.seat) != (beat.role, beat.seat):
            self._open(Line(beat.role, beat.seat, hearers, beat.text))
        else:
            last.text += beat.text

    async def _name_round(self) -> None:
        """What the keys of its lines are made from: the same in any process, and with a part that no seat knows (the oldest mark is the
        dm's), so that a key does not tell how much was said unheard (I3)."""
        story = self.table.story
        oldest = [mark.id for mark in await story.turns(kinds=("mark",), limit=1)]
        self._round = f"{oldest} {story.branch} {await self.table.round_now()}"

    def _open(self, line: Line) -> Line:
        before = sum((one.role, one.seat) == (line.role, line.seat) for one in self.lines)
        line.key = hashlib.sha256(f"{self._round} {line.role} {line.seat} {before}".encode()).hexdigest()[:12]
        self.lines.append(line)
        return line

    def _show(self, line: Line) -> None:
        data = {"line": line.key, "role": line.role, "seat": line.seat, "text": line.text, "ended": line.ended}
        self._say("line", data, line.hearers)

    def _say(self, event: str, data: Mapping[str, Any], hearers: tuple[str, ...] | None = None) -> None:
        story = self.table.story
        self._hub.tell(story.key, Passing(event, data, hearers or tuple(seat.id for seat in story.seats), story.branch))

    # -- beside playing --------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[Table]:
        """The table while nothing else happens at it."""
        self._must_rest()
        async with self._lock:
            await self.table.look_who_plays()
            yield self.table
            await self._look()

    async def close(self) -> None:
        """Ends what is in flight; the story is as it was before."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
