"""Following a story: what has happened on a branch since a place in its log, for one seat or for its author.

A *place* names an entry and nothing else: it is opaque, holds across processes and restarts, and tells a seat nothing of entries that it
did not hear (I3). Who comes back with the last place they got misses nothing: what was told since comes in order, and what was undone
meanwhile comes as one piece of news first, the place that they have to go back to.

    follower = Follower(story, seat="rogue")
    await follower.start("t-5d1f…")         # the last place that was seen; None: from now on
    for news in await follower.news(): …    # everything since, oldest first; empty when there is nothing
"""

from __future__ import annotations

from typing import NamedTuple

from talekeeper import rim
from talekeeper.folds.nodes import Path
from talekeeper.live.shared import path_to
from talekeeper.model import AUTHOR_KINDS, HEARD_KINDS, Turn
from talekeeper.ports import Position
from talekeeper.story.inside import hot_of
from talekeeper.story.story import Story

EVERYTHING = HEARD_KINDS | AUTHOR_KINDS
START = "0"
"""The place before the first entry."""
PAGE = 256
_WORDLESS = ("pin", "unpin")


class News(NamedTuple):
    """Something that happened. `kind` is the entry's, or "rewind". `entry` is what was appended, or the newest that is left after a
    rewind (None where nothing is)."""

    kind: str
    place: str
    entry: Turn | None


class Follower:
    """Reads what is new on one branch. `seat=None`: all of it."""

    def __init__(self, story: Story, seat: str | None = None) -> None:
        self._story = story
        self._hot = hot_of(story)
        self._seat = seat
        self._read: Position | None = None  # everything up to here was looked at; None: nothing
        self._told: Position | None = None  # the last of it that was news
        if seat is not None:
            rim.known_seat(seat, self._hot.state.seats)

    @property
    def place(self) -> str:
        """The place of the last news: who comes back with it misses nothing."""
        return self._name(self._told)

    async def start(self, after: str | None) -> bool:
        """Begins after that place, or now. False where it is no place of this story that was news here: then it begins now as well."""
        await self._hot.refresh()
        known = after is not None
        if after is not None and after != START:
            at = await self._heard_at(after)
            self._read = self._told = at
            known = at is not None
        if not known:
            self._read = self._hot.path.position(self._hot.head)
            self._told = self._place_of(await self._newest(self._hot.head))
        return known or after is None

    async def news(self) -> list[News]:
        """What has come since the last time, oldest first; at most a page of it."""
        hot = self._hot
        while True:
            await hot.refresh()
            path, head = hot.path, hot.head
            found = await self._undone(path)
            seen = path.parts_from(self._way()) if self._read is not None else 0
            turns = await self._story.turns(seat=self._seat, kinds=EVERYTHING, after=seen, before=head + 1, limit=PAGE)
            if hot.path is path:  # else it was rewound while it was read
                break
        found += [News(turn.kind, self._name(path.position(turn.seq)), turn) for turn in turns if turn.text or turn.kind in _WORDLESS]
        self._read = path.position(turns[-1].seq if len(turns) == PAGE else head)
        if found:
            self._told = self._place_of(found[-1].entry)
        return found

    async def _undone(self, path: Path) -> list[News]:
        """The news of a rewind, for those who had heard of what is gone."""
        if self._told is None or path.has(*self._told):
            return []
        left = await self._newest(path.parts_from(self._way()))
        return [News("rewind", self._name(self._place_of(left)), left)]

    def _way(self) -> Path:
        """The way to what was looked at last, whether or not the branch still goes there."""
        assert self._read is not None
        return path_to(self._hot.shared.record.branches, *self._read)

    async def _newest(self, until: int) -> Turn | None:
        """The newest entry up to that number that is news here."""
        found = await self._story.turns(seat=self._seat, kinds=EVERYTHING, before=until + 1, limit=1, newest=True)
        return found[0] if found else None

    async def _heard_at(self, place: str) -> Position | None:
        """The entry that a place names, on whatever branch, if it was news here."""
        hot, record = self._hot, self._hot.shared.record
        at = hot.shared.names.position(place)
        if at is None:
            entries = (await hot.read(ids=[place])).entries
        elif at.branch in record.branches and at.seq <= (await hot.shared.store.head(record.id, at.branch)).seq:
            entries = (await hot.read(positions=[at])).entries
        else:
            return None
        heard = [entry.position for entry in entries if self._seat is None or self._seat in record.channels[entry.channel]]
        return heard[0] if heard else None

    def _place_of(self, turn: Turn | None) -> Position | None:
        return self._hot.path.position(turn.seq) if turn is not None else None

    def _name(self, at: Position | None) -> str:
        return self._hot.shared.names.name(*at) if at is not None else START
