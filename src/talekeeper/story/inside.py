"""The door for the faces: what they need of a story that its users should not count on.

`memory` and `table` are views of one story. They ask it the same several times in a round, and so keep what they have read; and some of
what they have to know has no place among a story's own verbs. Whoever stands above the story and needs more than its public face comes
through here, and reaches for nothing else. None of it is part of the public API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

from talekeeper.errors import WrongType, quoted
from talekeeper.folds import snapshots
from talekeeper.live.hot import Hot
from talekeeper.live.shared import branch_called
from talekeeper.model import Recap, Seat
from talekeeper.story.folding import Ended, how_it_ended
from talekeeper.story.remembering import Remembering
from talekeeper.story.replay import snapshot_before

T = TypeVar("T")


def check_story(value: object) -> None:
    """Refuses what is neither a story nor its past, before anything is read or written: one of `tk.sync` would do what it is asked, and
    only then fail to be awaited."""
    if not isinstance(value, Remembering):
        raise WrongType(
            f"expected a Story, found {quoted(value)}; what `tk.sync.open` gave is passed with `tk.sync.call(function, story, …)`"
        )


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


async def heard_by_then(story: Remembering, seat: str, numbers: Sequence[int]) -> list[int]:
    """`Story.ordinals` for numbers that were read off the story a moment ago: someone may have gone back behind them meanwhile."""
    hot = story._hot
    return await story._steadily(lambda: hot.supply(lambda: hot.state.ordinals(seat, numbers)))


async def ever_told(story: Remembering, ids: Sequence[str]) -> dict[str, bool]:
    """Which of the callers' own ids were ever told, on whatever branch; False for those that were forgotten since."""
    hot = story._hot
    await hot.refresh()
    found = (await hot.read(ids=list(ids))).entries
    return {entry.id: bool(entry.text) for entry in found if entry.id is not None}


class Stored(NamedTuple):
    """What is stored of a branch beside its log: how many folds have been made, and up to which entry."""

    folds: int
    entries: int


async def stored(story: Remembering) -> Stored:
    """How far the stored folds reach on this branch."""
    hot = story._hot
    await hot.refresh()
    record = hot.shared.record
    branch = branch_called(story.branch, record.branches.values())
    snapshot = await snapshot_before(hot.shared.store, record, branch, story.head)
    return Stored(snapshots.folds_made(snapshot.state), snapshot.seq) if snapshot is not None else Stored(0, 0)


async def last_model(story: Remembering) -> Ended | None:
    """How the last process that had a model for this story ended; None where none ever had."""
    shared = story._hot.shared
    await shared.reload()
    return how_it_ended(shared.record)


def recap_at_once(story: Remembering, seat: str, keep: int, budget: int, pending: bool) -> Awaitable[Recap]:
    """`Story.recap` with a model's texts as soon as they are there: for one who heard everything, to whom they tell nothing (I3)."""
    return story._recap(seat, keep, budget, pending, at_once=True)
