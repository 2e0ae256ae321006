"""A branch of a story as it was, or derived anew from its log: for those who look back, examine or copy. Nothing is written.

The engine itself does the work, on a store that shows the log up to some entry and one snapshot at most, and that keeps what the
engine wants to store to itself. Whoever replays from snapshot to snapshot never holds more than what lies between two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from talekeeper.errors import StoreReadOnly
from talekeeper.folds.nodes import Node
from talekeeper.live.hot import Hot
from talekeeper.live.shared import Shared, path_to
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Entry, FoldRecord, Found, Head, Position, Postings, Read, Snapshot, Span, Store, StoryRecord
from talekeeper.story.remembering import Remembering

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper


class Bounds:
    """A store that shows the log up to some entry of a branch, under the name that it has now, and cannot be changed."""

    def __init__(self, store: Store, limit: int, branch: Branch) -> None:
        self._store = store
        self._branch = branch
        self.limit = limit

    async def head(self, story: int, branch: int) -> Head:
        head = await self._store.head(story, branch)
        return head._replace(seq=min(head.seq, self.limit))

    async def load(self, key: MemoryKey) -> StoryRecord | None:
        """The story, with the branch under the name that it had; whichever bears that name now has the branch's present one instead."""
        record, branch = await self._store.load(key), self._branch
        if record is None or branch.id not in record.branches:
            return record
        called = record.branches[branch.id].name
        branches = {
            number: replace(other, name=branch.name if number == branch.id else called if other.name == branch.name else other.name)
            for number, other in record.branches.items()
        }
        return replace(record, branches=branches)

    async def read(self, request: Read) -> Found:
        return await self._store.read(request)

    async def write(self, commit: Commit) -> int:
        raise StoreReadOnly("the past cannot be changed: rewind the story, or fork it")

    async def search(self, story: int, terms: Sequence[str]) -> list[list[Postings]]:
        return await self._store.search(story, terms)

    async def create(self, key: MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        raise StoreReadOnly("the past cannot be changed")

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        return await self._store.keys(tenant_id)

    async def delete(self, key: MemoryKey) -> bool:
        raise StoreReadOnly("the past cannot be changed")

    async def close(self) -> None:
        """The store goes on."""


class _NotInThePast(StoreReadOnly, AttributeError):
    """What a story can do and its past cannot."""


class Past(Remembering):
    """A story as it stood just after some entry: everything that can be read of a story can be read of it. Made by `Story.at`."""

    def __init__(self, hot: Hot) -> None:
        self._hot = hot

    @property
    def version(self) -> str:
        """The version that the story had then."""
        return self._hot.version

    if not TYPE_CHECKING:  # a type checker says it all by itself

        def __getattr__(self, name: str) -> None:
            raise _NotInThePast(f"the past of a story has no {name!r}: it can be read, not changed. Rewind the story to here, or fork it.")


async def look_back(hot: Hot, to: int) -> Past:
    """The branch as it stood just after that entry."""
    record = hot.shared.record
    at = hot.path.position(to)
    branch = record.branches[at.branch if at is not None else hot.path.segments[-1][0]]
    store = Bounds(hot.shared.store, to, branch)
    then = Hot(Shared(record.key, store, hot.shared.counter, record, allowance=hot.shared.allowance), branch.name)
    await then.refresh()
    return Past(then)


class Replay:
    """One branch, derived anew behind a snapshot, or from the first entry on. `instead`: entries that stand in the place of others."""

    def __init__(
        self, keeper: Keeper, record: StoryRecord, branch: Branch, start: Snapshot | None, instead: Mapping[Position, Entry] | None = None
    ) -> None:
        self._past = _Past(keeper.store, branch, start, instead or {}, record.rev)
        self.hot = Hot(Shared(record.key, self._past, keeper.counter, record), branch.name)

    async def go(self, to: int) -> Mapping[str, Node]:
        """Goes on to that entry and returns the folds that were made on the way, with the texts that models wrote for them."""
        before = set(self.hot.state.shelf.unsaved) if self.hot.ready else set()
        self._past.limit = to
        await self.hot.refresh()
        return {key: node for key, node in self.hot.state.shelf.unsaved.items() if key not in before}

    async def derive(self) -> Commit | None:
        """What the engine would store here: folds, index rows, a snapshot. None where it would store nothing."""
        self._past.written = None
        await self.hot.checkpoint(in_steps=False)
        return self._past.written


class _Past(Bounds):
    """A store as it was at an entry, without memory of what was derived, except for the snapshot to start from. Whatever is done to the
    story meanwhile goes unnoticed."""

    def __init__(self, store: Store, branch: Branch, start: Snapshot | None, instead: Mapping[Position, Entry], rev: int) -> None:
        super().__init__(store, 0, branch)
        self._rev = rev
        self._start = start
        self._instead = instead
        self._made: dict[str, FoldRecord] = {}
        self.written: Commit | None = None

    async def head(self, story: int, branch: int) -> Head:
        return (await super().head(story, branch))._replace(rev=self._rev)

    async def read(self, request: Read) -> Found:
        """What the store has; folds that were made anew go before those that are stored."""
        found = await self._store.read(replace(request, snapshot_on=()))
        made = [self._made[key] for key in request.folds if key in self._made]
        stored = [fold for fold in found.folds if fold.key not in self._made]
        entries = [self._instead.get(entry.position, entry) for entry in found.entries] if self._instead else found.entries
        return replace(found, entries=entries, folds=[*made, *stored], snapshot=self._start if request.snapshot_on else None)

    async def write(self, commit: Commit) -> int:
        self.written = commit
        self._made.update((fold.key, fold) for fold in commit.folds)
        return commit.rev


async def snapshot_before(store: Store, record: StoryRecord, branch: Branch, seq: int) -> Snapshot | None:
    """The newest snapshot up to that entry, on the way that leads to the branch."""
    on = reversed(path_to(record.branches, branch.id, seq).spans(1, seq))
    return (await store.read(Read(record.id, snapshot_on=[Span(*piece) for piece in on]))).snapshot


async def snapshots_of(store: Store, story: int, branch: Branch, head: int) -> list[int]:
    """The entries of a branch that have a snapshot, in order."""
    found: list[int] = []
    while head > branch.at:
        snapshot = (await store.read(Read(story, snapshot_on=[Span(branch.id, branch.at + 1, head)]))).snapshot
        if snapshot is None:
            break
        found.append(snapshot.seq)
        head = snapshot.seq - 1
    return found[::-1]
