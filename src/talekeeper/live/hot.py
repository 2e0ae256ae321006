"""A story while it is played: one of its branches in memory, in step with the store, and what is stored of what it derives.

Everything here can be dropped at any time and made again (see `stepping`).

A *checkpoint* stores what was derived since the last one, off the hot path: extractive folds, index rows and a snapshot, in one
commit. Until then they exist in memory only; after a crash they are derived again from the log (I1, I5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from talekeeper.errors import Conflict
from talekeeper.folds import snapshots
from talekeeper.folds.nodes import Node, extract
from talekeeper.live.shared import Shared
from talekeeper.live.stepping import AT_ONCE, Stepping
from talekeeper.model import Health
from talekeeper.ports import Commit, Snapshot

if TYPE_CHECKING:
    from talekeeper.story.folding import Folder

AT_A_TIME = 4
"""So many folds are made before other tasks get their turn."""
CHECKPOINT_EVERY = 256
"""Entries after which what was derived from them is stored; sooner where many stories share the memory that it takes until then."""
FAR_BEHIND = 2
"""Appends are held back once the unsaved entries are so many times what the story may keep in memory."""
FURLED = 2 * CHECKPOINT_EVERY
"""Where more entries than this are unsaved, the folds that contexts stand on are made a few at a time, not all in one go."""


class Hot(Stepping):
    """One branch of a story in memory. See the module."""

    __slots__ = ("__weakref__", "folder", "watchers")

    def __init__(self, shared: Shared, name: str) -> None:
        super().__init__(shared, name)
        self.folder: Folder | None = None  # who makes model folds of this branch, while there is one: the keeper's to give and to take
        self.watchers: list[Callable[[Health, Health], None]] = []

    @property
    def due(self) -> bool:
        """Whether there is enough to store for a checkpoint."""
        return self.ready and self._is_much(self.head - self.saved_at)

    @property
    def overdue(self) -> bool:
        """The same, unless it was tried of late, and failed."""
        return self.due and self._is_much(self.head - self.put_off_at)

    def _is_much(self, entries: int) -> bool:
        return entries >= min(CHECKPOINT_EVERY, self.shared.allowance.lines)

    @property
    def lag(self) -> float:
        """How far what is stored is behind what was told. From 1 on it is too far: several checkpoints have been due, and none was made."""
        return (self.head - self.saved_at) / (FAR_BEHIND * self.shared.allowance.lines)

    async def unfurl(self) -> None:
        """Makes what contexts stand on, where very much came at once; else whoever looks would make all of it in one go."""
        if self.head - max(self.saved_at, self._extracted_at) > FURLED:
            async with self.saving:  # else whoever goes back meanwhile would have it begin again
                await self._extract_unsaved()

    async def checkpoint(self, *, in_steps: bool = True) -> None:
        """Stores the folds, index rows and the snapshot that are due. Losing a race changes nothing. `in_steps`: with a snapshot here and
        there on the way, where very much came at once."""
        async with self.saving:
            if in_steps and self.head - self.saved_at > FURLED:
                await self._retrace()
            await self._extract_unsaved()
            while len(self.tail) - len(self._tail_terms) > AT_ONCE:
                self._find_terms(AT_ONCE)
                await asyncio.sleep(0)
            await self._extract_unsaved()
            state, shared = self._state, self.shared
            position = self.path.position(state.seq)
            if position is None or state.seq == self.saved_at or not self.in_step:  # what others forgot must not come back
                return
            nodes = list(state.shelf.unsaved.values())
            size = len(self.tail)
            self._find_terms(size)
            index = {entry.position: terms for (entry, _), terms in zip(self.tail, self._tail_terms, strict=True) if terms}
            commit = Commit(
                story=shared.record.id, rev=shared.record.rev, folds=state.shelf.records(nodes), index=index,
                snapshot=Snapshot(position.branch, state.seq, snapshots.to_json(state)),
            )  # fmt: skip
            try:
                await shared.store.write(commit)
            except Conflict:
                return
            state.shelf.saved(nodes)
            self.index.grown((entry, terms) for (entry, _), terms in zip(self.tail[:size], self._tail_terms[:size], strict=True))
            del self.tail[:size], self._tail_terms[:size]
            self.saved_at = position.seq

    async def _retrace(self) -> None:
        """Replays very much that came at once, from the newest snapshot on and beside this state, and stores snapshots on the way. Without
        them, whoever goes back a step would have to replay all of it again (I9)."""
        loaded, shared, branch = self.loaded, self.shared, self.shared.record.branches.get(self.path.branch)
        if branch is None or not self.in_step:
            return
        anew = Hot(shared, self.name)
        await anew._load(branch, self.head)
        while loaded is self.loaded and anew._generation == shared.generation:
            if not anew.in_step:
                await anew._take_in_record()
            elif anew.due:
                before = anew.saved_at
                anew.state.shelf.take_over(self._state.shelf)
                await anew.checkpoint()
                if anew.saved_at == before and anew.in_step:
                    return  # someone else was first
            elif anew.state.seq < self.head:
                await anew._replay(min(self.head, anew.state.seq + AT_ONCE))
            else:
                anew.state.shelf.take_over(self.state.shelf)
                self._become(anew)
                return

    async def store(self, node: Node) -> None:
        """Stores a fold, and what it is made of, if it is not stored yet. What nobody can derive again, a model's text or the author's own
        words, comes after the fold it is about: else nobody could tell what it was made from, and forget it with that. May raise
        `Conflict`."""
        nodes = await self.supply(lambda: list(self._unsaved_of(node)))
        if nodes:
            if not self.in_step:
                raise Conflict("the story moved on; try again")
            shelf, record = self._state.shelf, self.shared.record
            await self.shared.store.write(Commit(record.id, record.rev, folds=shelf.records(nodes)))
            shelf.saved(nodes)

    def _unsaved_of(self, node: Node) -> Iterator[Node]:
        shelf = self.state.shelf
        if node.key in shelf.unsaved:
            for child in shelf.children(node):
                yield from self._unsaved_of(child)
            extract(node, shelf.children, self.turns_of)
            yield node

    async def _extract_unsaved(self) -> None:
        """Makes the extractive texts that are missing, a few at a time, so that others get their turn."""
        while True:
            shelf = self.state.shelf
            todo = [node for node in shelf.unsaved.values() if node.sentences is None]
            if not todo:
                self._extracted_at = self._state.seq
                return
            for count, node in enumerate(todo):
                await self.supply(partial(extract, node, shelf.children, self.turns_of))
                if count % AT_A_TIME == AT_A_TIME - 1:
                    await asyncio.sleep(0)
