"""The door for the faces: what they need of a story that its users should not count on.

`memory` and `table` are views of one story. They ask it the same several times in a round, and so keep what they have read; and some of
what they have to know has no place among a story's own verbs. Whoever stands above the story and needs more than its public face comes
through here, and reaches for nothing else. None of it is part of the public API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from talekeeper.hot import Hot
from talekeeper.model import Recap, Seat
from talekeeper.remembering import Remembering

T = TypeVar("T")


def hot_of(story: Remembering) -> Hot:
    """The story's branch as it is in memory: for those who examine or follow it."""
    return story._hot


async def seat_of(story: Remembering, seat: str) -> Seat:
    """A seat by its id, also one that has joined meanwhile, in the story as it is now. Raises `UnknownSeat`."""
    hot = story._hot
    await hot.seated(seat)
    await hot.refresh()
    return hot.state.seats[seat]


async def read_once(story: Remembering, what: Hashable, make: Callable[[], Awaitable[T]]) -> T:
    """What `make` reads off the story as it stands, read once until that changes: for what is asked several times in a round."""
    hot = story._hot
    await hot.refresh()
    return await hot.once(what, make)


def made_once(story: Remembering, what: Hashable, of: object, make: Callable[[], T]) -> T:
    """What `make` makes of some values, made once until they are others: for what changes less often than the story."""
    return story._hot.made(what, of, make)


async def ever_told(story: Remembering, ids: Sequence[str]) -> dict[str, bool]:
    """Which of the callers' own ids were ever told, on whatever branch; False for those that were forgotten since."""
    hot = story._hot
    await hot.refresh()
    found = (await hot.read(ids=list(ids))).entries
    return {entry.id: bool(entry.text) for entry in found if entry.id is not None}


def recap_at_once(story: Remembering, seat: str, keep: int, budget: int, pending: bool) -> Awaitable[Recap]:
    """`Story.recap` with a model's texts as soon as they are there: for one who heard everything, to whom they tell nothing (I3)."""
    return story._recap(seat, keep, budget, pending, at_once=True)
