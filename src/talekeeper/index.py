"""What a branch in memory knows of its search index and of its entries without their words, as far as it was asked for.

Two queries of one story have much in common: names come back, and so does what stands around them. Nothing here is counted for anyone;
whoever asks takes out what a seat did not hear (I3). Bounded, however long the story is: a full table starts afresh (I9).
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from talekeeper.ports import Outline, Postings
from talekeeper.recall import Told

Table: TypeAlias = "dict[int, Told | None]"

_new_told = partial(tuple.__new__, Told)


class Index:
    """Postings by term, which hold until more is indexed, and outlines by number, which hold until something is forgotten."""

    __slots__ = ("_postings", "_size", "_told")

    def __init__(self) -> None:
        self._postings: dict[str, Sequence[Postings]] = {}
        self._size = 0
        self._told: dict[int, Told | None] = {}

    def grown(self) -> None:
        """More was indexed."""
        self._postings = {}
        self._size = 0

    async def search(
        self, terms: Sequence[str], look: Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Postings]]]]
    ) -> list[Sequence[Postings]]:
        """What `look` finds for each term, asked once."""
        known = self._postings
        absent = [term for term in terms if term not in known]
        if not absent:
            return [known[term] for term in terms]
        found = dict(zip(absent, await look(absent), strict=True))
        answer = [found[term] if term in found else known[term] for term in terms]
        if known is self._postings:  # else it has grown meanwhile
            self._keep(found)
        return answer

    def _keep(self, found: dict[str, Sequence[Postings]]) -> None:
        self._postings.update(found)
        self._size += sum(len(each.seqs) for places in found.values() for each in places)

    def table(self) -> Table:
        """Entries by number, to be filled in; None for those without words."""
        return self._told

    def trim(self, postings: int, told: int) -> None:
        """Starts afresh where there is more than that; whoever holds the old tables goes on with them."""
        if self._size > postings:
            self.grown()
        if len(self._told) > told:
            self._told = {}


def fill(table: Table, outlines: Iterable[Outline]) -> None:
    """Puts these in. Names are shared: a story has few of them."""
    for _, seq, kind, voice, channel, tokens, blank, own_id, extra in outlines:
        when, edits = None, 0
        if extra:
            when, edits = extra.get("when"), extra["at"][1] if kind == "edit" else 0
        table[seq] = None if blank else _new_told((seq, sys.intern(kind), sys.intern(voice), when, tokens, channel, own_id, edits))
