"""What all branches of a story in this process have in common: its record, its names, and how much it may keep in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from talekeeper.errors import StoreCorrupt, UnknownBranch, UnknownStory, quoted
from talekeeper.folds.nodes import Path
from talekeeper.kept import let_go
from talekeeper.live.names import Names
from talekeeper.model import MemoryKey, Seat
from talekeeper.ports import Branch, Store, StoryRecord, TokenCounter
from talekeeper.recent import Allowance

OPEN_ENDED = 1 << 60
UNFINISHED = "importing"
"""The mark in the config of a story whose import has not come to its end: all of it is there, or nothing, so nobody may open it."""


def is_finished(record: StoryRecord) -> bool:
    """Whether the story is all there: no import of it is under way, and none was broken off."""
    return UNFINISHED not in record.config


def check_finished(record: StoryRecord) -> None:
    """Raises `UnknownStory` where the story is not there yet, or never will be."""
    if not is_finished(record):
        raise UnknownStory(
            f"the import of the story {record.key.composite()!r} is not finished: wait, if it is under way in another process; if it was "
            f"broken off, delete it and import it again"
        )


def seat_to_json(seat: Seat) -> dict[str, Any]:
    return {
        "id": seat.id, "role": seat.role, "name": seat.name, "aliases": list(seat.aliases), "token_limit": seat.token_limit,
        "fold_at": seat.fold_at, "keep": seat.keep,
    }  # fmt: skip


def seats_of(config: Mapping[str, Any]) -> list[Seat]:
    return [Seat(**{**row, "aliases": tuple(row["aliases"])}) for row in config["seats"]]


def branch_called(name: str, branches: Collection[Branch]) -> Branch:
    for branch in branches:
        if branch.name == name:
            return branch
    known = ", ".join(sorted(branch.name for branch in branches))
    raise UnknownBranch(f"no branch {quoted(name)} in this story; there are: {known}")


def nothing_told_on(branch: Branch, head: int) -> bool:
    """Left behind by two rewinds in a row: no branch to anyone who looks at them."""
    return head == branch.at and "~" in branch.name


def path_to(branches: Mapping[int, Branch], branch: int, head: int) -> Path:
    """The way from the story's first entry to the head of a branch."""
    segments: list[tuple[int, int, int]] = []
    limit = OPEN_ENDED
    current: int | None = branch
    while current is not None:
        here = branches[current]
        if limit > here.at or not segments:
            segments.append((here.id, here.at + 1, limit))
        limit = min(limit, here.at)
        current = here.parent
    return Path(segments, head)


@dataclass(slots=True)
class Shared:
    """What all branches of a story in this process have in common."""

    key: MemoryKey
    store: Store
    counter: TokenCounter
    record: StoryRecord
    texts_version: int = 0
    generation: int = 0
    allowance: Allowance = field(default_factory=Allowance)
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.names = Names(self.record.config["secret"])
        except (KeyError, TypeError) as exc:
            raise StoreCorrupt(
                f"the settings of the story {self.key.composite()!r} are damaged: run talekeeper doctor, restore a backup"
            ) from exc

    async def reload(self, own: int | None = None) -> None:
        """Reads the record anew. `own`: the revision that this process has just made of the one it knew. Any other new revision is someone
        else's, who did more than append: something may have been forgotten, so every branch has to load itself anew."""
        record = await self.store.load(self.key)
        if record is None:
            raise UnknownStory(f"the story {self.key.composite()!r} was deleted")
        if record.id == self.record.id and record.rev < self.record.rev:
            return  # it was read before the one that is known: another branch was faster
        if record.rev not in (self.record.rev, own):
            self.drop()
        self.record = record
        self.texts_version += 1

    def drop(self) -> None:
        """Makes every branch load itself anew, and keeps nothing that was made of their texts."""
        self.generation += 1
        let_go()

    def branch(self, name: str) -> Branch:
        return branch_called(name, self.record.branches.values())
