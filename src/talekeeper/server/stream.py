"""Server-sent events: what happens in a story, as it happens, to those who may hear of it.

A stream reads the log (see `talekeeper.story.following`), so it shows what any process wrote and cannot miss anything; a bell only tells
it when to look. The id of an event is a place in the log. Whoever comes back with the last one they got is sent what came since, also when
the server was restarted meanwhile, and first of all what was undone.

Some things are not in the log and reach only those who listen at that moment: that a turn was forgotten, what is being said in a round
that is not yet written, and (for the dm) that something else changed: branches, seats, a memory that a model has made.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from talekeeper.errors import UnknownBranch, UnknownStory, UnknownTurn
from talekeeper.model import HEARD_KINDS, MemoryKey
from talekeeper.server.views import View
from talekeeper.story.following import Follower, News
from talekeeper.story.story import Story

MEDIA_TYPE = "text/event-stream"
GLANCE = 1.0
"""Seconds between two looks at the log where no bell rings: another process may have written."""
PING = 15.0
"""Seconds of silence after which a comment is sent, so that nothing in between takes the line for dead."""
WAITING = 64
"""How many passing messages wait for a slow listener."""


@dataclass(frozen=True, slots=True)
class Passing:
    """Something that is not in the log. `hearers=None`: for the author alone. `branch=None`: for whoever listens to any."""

    event: str
    data: Mapping[str, Any]
    hearers: tuple[str, ...] | None = None
    branch: str | None = None


@dataclass(eq=False)
class Bell:
    """One listener's bell, and what is put beside it. `owner`: the name of the token."""

    owner: str
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    passing: deque[Passing] = field(default_factory=lambda: deque(maxlen=WAITING))

    def put(self, passing: Passing) -> None:
        self.passing.append(passing)
        self.rung.set()

    async def wait(self, seconds: float) -> None:
        """Until it rings, and at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # not wait_for, which can lose a cancellation
                await self.rung.wait()
        self.rung.clear()


class Hub:
    """Who listens to what."""

    def __init__(self) -> None:
        self._bells: dict[MemoryKey, set[Bell]] = {}
        self.closing = False

    @property
    def count(self) -> int:
        """How many listen."""
        return sum(len(bells) for bells in self._bells.values())

    def count_of(self, owner: str) -> int:
        """How many listen with that token."""
        return sum(bell.owner == owner for bells in self._bells.values() for bell in bells)

    @contextmanager
    def listen(self, key: MemoryKey, owner: str) -> Iterator[Bell]:
        bell = Bell(owner)
        self._bells.setdefault(key, set()).add(bell)
        try:
            yield bell
        finally:
            self._bells[key].discard(bell)
            if not self._bells[key]:
                del self._bells[key]

    def wake(self, key: MemoryKey) -> None:
        """Something may have happened in that story."""
        for bell in self._bells.get(key, ()):
            bell.rung.set()

    def tell(self, key: MemoryKey, passing: Passing) -> None:
        """Something happened that is not in the log."""
        for bell in self._bells.get(key, ()):
            bell.put(passing)

    def close(self) -> None:
        """Ends all streams, so that the server can go down; their readers come back."""
        self.closing = True
        for key in list(self._bells):
            self.wake(key)


class Stream:
    """The events of one view, as they go over the line."""

    def __init__(self, hub: Hub, story: Story, view: View, granted: Callable[[], bool], seconds: float) -> None:
        self._hub, self._story, self._view = hub, story, view
        self._seat = seat = view.seat
        self._granted = granted
        self._until = time.monotonic() + seconds
        self._follower = Follower(story, seat)

    async def frames(self, owner: str, after: str | None) -> AsyncIterator[str]:
        """Events from that place on, until the server goes down, the token does not hold any more, or the time is over."""
        with self._hub.listen(self._story.key, owner) as bell, self._watched(bell):
            try:
                known = await self._follower.start(after)
                yield "retry: 1000\n\n"
                yield _frame("hello" if known else "reset", {"branch": self._story.branch, "seat": self._seat}, self._follower.place)
                async for frame in self._live(bell):
                    yield frame
            except (UnknownStory, UnknownBranch):
                yield _frame("deleted", {})

    @contextmanager
    def _watched(self, bell: Bell) -> Iterator[None]:
        """Tells the author of memories that models make. A seat is not told: what is made for others may tell of them (I3)."""
        unwatch = self._story.watch(lambda before, after: bell.put(Passing("memories", {"health": after.state.value})))
        try:
            yield
        finally:
            unwatch()

    async def _live(self, bell: Bell) -> AsyncIterator[str]:
        spoke = time.monotonic()
        while not self._hub.closing and self._granted():
            page = await self._follower.news()
            for frame in [*[await self._told(news) for news in page], *self._passing(bell)]:
                if frame:
                    yield frame
                    spoke = time.monotonic()
            if time.monotonic() - spoke >= PING:
                yield ":\n\n"
                spoke = time.monotonic()
            if not page:
                left = self._until - time.monotonic()
                if left <= 0:  # what is there is sent first
                    return
                await bell.wait(min(GLANCE, left))

    def _passing(self, bell: Bell) -> Iterator[str]:
        while bell.passing:
            one = bell.passing.popleft()
            if one.branch not in (None, self._story.branch):
                continue
            if self._seat is None or (one.hearers is not None and self._seat in one.hearers):
                yield _frame(one.event, one.data)

    async def _told(self, news: News) -> str:
        """The event for a piece of news; empty where what it is about is gone by now."""
        entry = news.entry
        if news.kind == "rewind":
            return _frame("rewound", {"to": entry.id if entry else None}, news.place)
        assert entry is not None
        if news.kind in HEARD_KINDS:
            return _frame("turn", await self._view.turn(entry), news.place)
        if news.kind in _DONE_TO_TURNS:
            try:
                turn = await self._story.turn(entry.target or "")
            except UnknownTurn:
                return ""
            return _frame(_DONE_TO_TURNS[news.kind], await self._view.turn(turn), news.place)
        if news.kind == "override":
            return _frame("overridden", {"memory": entry.target, "text": entry.text}, news.place)
        return _frame("marked", {"id": entry.id}, news.place)


_DONE_TO_TURNS = {"edit": "edited", "pin": "pinned", "unpin": "unpinned"}


def _frame(event: str, data: Mapping[str, Any] | BaseModel, place: str | None = None) -> str:
    written = data.model_dump_json() if isinstance(data, BaseModel) else json.dumps(dict(data), ensure_ascii=False, separators=(",", ":"))
    return (f"id: {place}\n" if place is not None else "") + f"event: {event}\ndata: {written}\n\n"
