"""A conversation in someone else's state store, under its own key and under no other.

The store holds one state per conversation, with the newest turns, and in front of it pages of older turns that are written once, and
anew only where one of them was undone or forgotten. So every turn is in the store, while what is written per turn does not grow with
the conversation (I9). Others may write to it at the same time, or put an old copy of it in its place, and it cannot be locked: so what
counts is what it holds now, never what was once written to it. A turn that it lacks is written again, and what it holds counts as seen
only once it is in the log. Of what was forgotten it keeps the ids, so that no other writer brings it back.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from talekeeper.memory.session.message import Pair
from talekeeper.memory.session.states import Stored, dump_state, parse_state
from talekeeper.model import HealthState

PAGE = 64
"""So many turns are on a page; a state has fewer than twice as many."""
Leaf = tuple[str, ...]
"""The ids of the turns on a page."""


class Archive:
    """What a state store holds of one conversation."""

    def __init__(self, store: Any, name: str) -> None:
        self.store = store
        self.name = name
        self.ids: set[str] = set()
        self.tail: list[Pair] = []
        self.seen = ""
        """The version of the conversation that was last compared with it."""
        self.lacks = False
        """Whether it has lost turns that it had: the whole log is to be compared with it."""
        self.owes = False
        """Whether it is to be written although no turn is new."""
        self.forgotten: set[str] = set()
        """The ids of turns that were forgotten for good, here or by others."""
        self.soiled = False
        """Whether it holds something that was forgotten, or may, as it does not say that it was: it is to be looked through."""
        self._leaves: list[Leaf] = []
        self._read = 0
        """So many of the pages were read; others we have written, and someone may have written them at the same time."""

    async def read(self, take_in: Callable[[Stored], Awaitable[set[str]]]) -> None:
        """Has everything taken in that may be new, and forgotten what others forgot. Only when that is done does any of it count as
        seen. `take_in` returns what is forgotten in the log."""
        if not hasattr(self.store, "load_memory_state"):
            return
        state = await result(self.store.load_memory_state(self.name))
        stored = parse_state(state) if state is not None else Stored()
        pages, leaves, sound = await self._turned(stored)
        pairs = [pair for page in pages for pair in page] + list(stored.pairs)
        self.forgotten |= await take_in(stored._replace(pairs=pairs, forgotten={*self.forgotten, *stored.forgotten}))
        held = {name for leaf in leaves for name in leaf}.union(pair.id for pair in stored.pairs)
        self.lacks = self.lacks or not self.ids <= held | self.forgotten
        self.soiled = self.soiled or not self.forgotten.issubset(stored.forgotten) or not self.forgotten.isdisjoint(held)
        self.owes = self.owes or self.soiled or not sound
        self.ids, self.tail, self._leaves, self._read = held, list(stored.pairs), leaves, stored.pages

    async def _turned(self, stored: Stored) -> tuple[list[list[Pair]], list[Leaf], bool]:
        """Pages that were not read before, and what is on all pages. Where these are not the pages that we know, all are read; the last
        is whether the state knows them."""
        first = self._read if self._read <= stored.pages else 0
        while True:
            pages = [await self._page(number) for number in range(first, stored.pages)]
            leaves = self._leaves[:first] + [_leaf(page) for page in pages]
            sound = stored.pages_id == _pages_id(leaves)
            if sound or not first:
                return pages, leaves, sound
            first = 0

    async def _page(self, number: int) -> list[Pair]:
        page = await result(self.store.load_memory_state(self._page_name(number)))
        await asyncio.sleep(0)  # a store in memory gives nobody else a turn
        return list(parse_state(page).pairs) if page is not None else []

    def _page_name(self, number: int) -> str:
        """No key has more than two colons that are not escaped: a page's name is no conversation's."""
        return f"{self.name}:page:{number}"

    async def revise(self, now: Callable[[Pair], Awaitable[Pair | None]], *, all_pages: bool) -> None:
        """Writes pages anew on which a turn reads differently now, or is gone: the newest first, until one is as it was, or all of them."""
        for number in range(len(self._leaves) - 1, -1, -1):
            page = await self._page(number)
            kept = [pair for pair in page if pair.id not in self.forgotten]
            told = [pair for before in kept if (pair := await now(before)) is not None]
            if told != page:
                self.owes = True
                await self._write_page(number, told)
            elif not all_pages:
                break
        if all_pages:
            await self._clean_beyond()

    async def _clean_beyond(self) -> None:
        """A page that no state counts, as saving failed after it was written, may hold what was forgotten as well."""
        number = len(self._leaves)
        while page := await self._page(number):
            kept = [pair for pair in page if pair.id not in self.forgotten]
            if len(kept) < len(page):
                await self._save_page(number, kept)
            number += 1

    async def _write_page(self, number: int, pairs: Sequence[Pair]) -> None:
        await self._save_page(number, pairs)
        self._leaves[number : number + 1] = [_leaf(pairs)]

    async def _save_page(self, number: int, pairs: Sequence[Pair]) -> None:
        await result(self.store.save_memory_state(self._page_name(number), dump_state("", "", pairs, 0, HealthState.HEALTHY)))

    def is_behind(self, pairs: Iterable[Pair]) -> bool:
        """Whether one of the newest turns that it holds lacks a half which is there by now."""
        held = {pair.id: pair for pair in self.tail}
        return any(
            (old := held.get(pair.id)) and ((pair.user and not old.user) or (pair.assistant and not old.assistant)) for pair in pairs
        )

    async def write(self, pairs: Iterable[Pair], earlier: str, summary: str, recent: int, health: HealthState) -> None:
        """Makes these turns the newest in the store; pages that are full by it are written first."""
        tail = [pair for pair in pairs if pair.id not in self.forgotten]
        while len(tail) >= 2 * PAGE:
            await self._write_page(len(self._leaves), tail[:PAGE])
            tail = tail[PAGE:]
        state = dump_state(earlier, summary, tail, recent, health, len(self._leaves), _pages_id(self._leaves), self.forgotten)
        await result(self.store.save_memory_state(self.name, state))
        self.ids = {name for leaf in self._leaves for name in leaf}.union(pair.id for pair in tail)
        self.tail, self.owes, self.soiled = tail, False, False


def _leaf(page: Iterable[Pair]) -> Leaf:
    return tuple(pair.id for pair in page)


def _pages_id(leaves: Sequence[Leaf]) -> str:
    """What names the pages by what is on them."""
    return hashlib.blake2b(json.dumps(leaves).encode(), digest_size=12).hexdigest() if leaves else ""


async def result(value: Any) -> Any:
    """What a function gave, whether it is async or not."""
    return await value if inspect.isawaitable(value) else value
