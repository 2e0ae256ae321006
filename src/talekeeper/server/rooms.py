"""All games in play: one room per story and branch, and whoever asks plays the same one.

Rounds that people play in are kept beside the stories until they are written, so they outlast this process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from talekeeper.errors import InvalidInput, UnknownStory, how_to_install
from talekeeper.keeper import Keeper
from talekeeper.model import MemoryKey
from talekeeper.ports import ChatModel
from talekeeper.server.problems import Problem
from talekeeper.server.room import Room, Ticket, unhurried
from talekeeper.server.stream import Hub
from talekeeper.story.replay import Past
from talekeeper.story.story import Story
from talekeeper.table import packs
from talekeeper.table.playing.seating import SETUP, Brains, Setup, Table, begin, resume
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.scenario import Scenario

if TYPE_CHECKING:
    from talekeeper.table.playing.rounds import Rounds

ROOMS = 256
"""How many games are kept at hand; one that was put away is found again in its story."""
AT_ONCE = 2
"""How many rounds are thought about at once; those that wait for a model do not count."""


@cache
def _places(pack: str) -> Mapping[str, str]:
    return {id: place.name for id, place in packs.load(pack).places.items()}


class Rooms:
    """All games that this process plays.

    `more` are packs beside those that come with Talekeeper; `kept` is a file for the rounds in flight."""

    def __init__(
        self, keeper: Keeper, hub: Hub, brains: Callable[[Scenario], Brains] = Storyteller, more: Collection[str] = (), *,
        summarizer: ChatModel | None = None, kept: Path | None = None,
    ) -> None:  # fmt: skip
        self._keeper, self._hub = keeper, hub
        self._brains, self._summarizer = brains, summarizer
        self._packs = (*packs.shipped(), *more)
        self._kept = kept
        self._rounds: Rounds | None = None
        self._rooms: OrderedDict[tuple[MemoryKey, str], Room] = OrderedDict()
        self._opening: dict[tuple[MemoryKey, str], asyncio.Task[Room]] = {}
        self._tickets = asyncio.Semaphore(AT_ONCE)
        self._expecting: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()

    def scenarios(self) -> dict[str, Scenario]:
        """The packs that can be played here, by name."""
        return {name: packs.load(name) for name in self._packs}

    async def plays(self, story: Story | Past) -> bool:
        """Whether it is a game."""
        return bool(await story.marks(None, SETUP))

    async def places(self, story: Story | Past) -> Mapping[str, str]:
        """How the places of a game are called, by their ids; empty where it is no game of ours."""
        noted = await story.marks(None, SETUP)
        pack = str(noted[-1].data["pack"]) if noted else ""
        return _places(pack) if pack in self._packs else {}

    async def begin(self, key: MemoryKey, setup: Setup) -> Table:
        """A new game."""
        self._check_pack(setup.pack)
        return await begin(self._keeper, key, setup, self._brains, summarizer=self._summarizer)

    async def find(self, story: Story) -> Room:
        """The game of that story and branch. Raises `InvalidInput` where the story is not played at the table."""
        place = (story.key, story.branch)
        try:
            return await self._found(place, story)
        except UnknownStory:  # it was removed elsewhere, and another was made in its place
            await self.drop(story.key)
            return await self._found(place, story)

    async def _found(self, place: tuple[MemoryKey, str], story: Story) -> Room:
        room = self._rooms.pop(place, None)
        if room is None:
            if place not in self._opening:
                self._opening[place] = asyncio.create_task(self._open(story))
                self._opening[place].add_done_callback(lambda _: self._opening.pop(place, None))
            room = await asyncio.shield(self._opening[place])
        self._rooms[place] = room
        await self._tidy()
        await room.glance(story.version)
        return room

    async def _open(self, story: Story) -> Room:
        rounds = await self._opened()
        from talekeeper.table.playing.rounds import Game

        noted = await story.marks(None, SETUP)
        if noted:
            self._check_pack(str(noted[-1].data["pack"]))
        ticket = Ticket(self._tickets)
        table = await resume(
            self._keeper, story.key, lambda scenario: unhurried(self._brains(scenario), ticket), branch=story.branch,
            summarizer=self._summarizer,
        )  # fmt: skip
        return Room(await Game(table, rounds).__aenter__(), self._hub, ticket)

    def expect(self) -> None:
        """Someone may soon play: begins to load what games need, so that they need not wait for it."""
        if self._rounds is None and self._expecting is None:
            self._expecting = asyncio.create_task(self._get_ready())

    async def _get_ready(self) -> None:
        with suppress(Problem):  # where nobody can play, those who try are told so
            await self._opened()

    async def _opened(self) -> Rounds:
        async with self._lock:
            if self._rounds is None:
                try:
                    # It takes a second or two, in which others are to be answered.
                    playing = await asyncio.to_thread(import_module, "talekeeper.table.playing.rounds")
                except ModuleNotFoundError as exc:
                    raise Problem(503, "no-game", f'Playing needs the extra "play": {how_to_install("serve,play")}.') from exc
                opened: Rounds = await self._stack.enter_async_context(playing.Rounds(self._kept))
                self._rounds = opened
            return self._rounds

    def _check_pack(self, name: str) -> None:
        """A story may come from elsewhere: it cannot make the server read files."""
        if name not in self._packs:
            raise InvalidInput(f"no scenario {name!r} here: there are {', '.join(self._packs)}")

    async def _tidy(self) -> None:
        idle = [place for place, room in self._rooms.items() if not room.running] if len(self._rooms) > ROOMS else []
        for place in idle[: len(self._rooms) - ROOMS]:
            await self._rooms.pop(place).close()

    async def drop(self, key: MemoryKey) -> None:
        """Ends the games of a story that is no more."""
        for place in [place for place in self._rooms if place[0] == key]:
            await self._rooms.pop(place).close()
        if self._rounds is not None or self._kept is not None:
            await (await self._opened()).drop(key)

    async def close(self) -> None:
        for place in list(self._rooms):
            await self._rooms.pop(place).close()
        if self._expecting is not None:
            self._expecting.cancel()
            await asyncio.gather(self._expecting, return_exceptions=True)
        self._rounds = self._expecting = None
        await self._stack.aclose()
