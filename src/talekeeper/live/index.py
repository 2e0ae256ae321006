"""What a branch in memory knows of its search index and of its entries without their words, as far as it was asked for.

Two queries of one story have much in common: names come back, and so does what stands around them. Nothing here is counted for anyone;
whoever asks takes out what a seat did not hear (I3). Bounded, however long the story is: a full table starts afresh (I9).
"""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from talekeeper.folds.state import SCENE_KINDS
from talekeeper.model import AUTHOR_KINDS
from talekeeper.ports import Entry, Outline, Postings
from talekeeper.recall.ranking import Places, Told, packed, united
from talekeeper.summarize.salience import Features

PAGE_BITS = 8
"""Outlines are kept in pages, because there are many: two numbers a turn, its length and a code for how it was told. 0: not known."""

_EMPTY = bytes(4 << PAGE_BITS)
_BLANK = 1
_NOTHING = Told("", "", None, -1)
_new_told = partial(tuple.__new__, Told)


class Heard(NamedTuple):
    """What someone who is in these channels heard, by the numbers of the entries."""

    channels: Collection[int]
    turns: dict[int, Told]
    """How turns were told."""
    sizes: dict[int, int]
    """How many tokens they have."""
    spoken: set[int]
    """Those of them that are more than comings and goings."""
    edits: dict[int, int]
    """Edits, with the numbers of the turns that they changed."""


class Posted(NamedTuple):
    """`Postings` as they are kept: as bits where there are many."""

    branch: int
    channel: int
    places: Places


class Index:
    """Postings by term and outlines by number, which hold until something is forgotten."""

    __slots__ = ("_codes", "_manners", "_pages", "_postings", "_size", "features")

    def __init__(self) -> None:
        self._postings: dict[str, Sequence[Posted]] = {}
        self._size = 0
        self._pages: dict[int, tuple[array[int], array[int]]] = {}
        self._codes: dict[Told, int] = {}
        self._manners = [_NOTHING, _NOTHING]
        self.features: dict[tuple[str, str], Features] = {}
        """What makes texts telling, by text and language."""

    def grown(self, entries: Iterable[tuple[Entry, Iterable[str]]]) -> None:
        """More was indexed: these entries, each under its terms. So what is known of a term stays known, however long the story is."""
        more: dict[str, dict[tuple[int, int], list[int]]] = {}
        for entry, terms in entries if self._postings else ():  # as a rule, nobody has looked for anything yet
            for term in terms:
                if term in self._postings:
                    more.setdefault(term, {}).setdefault((entry.branch, entry.channel), []).append(entry.seq)
        known, self._postings, self._size = self._postings, {}, 0  # another table: what is being looked up now is not kept in it
        self._keep({term: _joined(posted, more[term]) if term in more else posted for term, posted in known.items()})

    def trim(self, lines: int) -> None:
        """Starts afresh with whatever takes more memory than half as many lines: a posting four bytes, a page as much as two lines."""
        if self._size > 128 * lines:
            self._postings, self._size = {}, 0
        if len(self._pages) > lines // 2 or len(self._manners) > 4 * lines:
            self._pages, self._codes, self._manners = {}, {}, [_NOTHING, _NOTHING]
        if len(self.features) > lines:
            self.features = {}

    async def search(
        self, terms: Sequence[str], look: Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Postings]]]]
    ) -> list[Sequence[Posted]]:
        """What `look` finds for each term, asked once."""
        known = self._postings
        absent = [term for term in terms if term not in known]
        if not absent:
            return [known[term] for term in terms]
        places = [[Posted(each.branch, each.channel, united([each.seqs])) for each in row] for row in await look(absent)]
        found = dict(zip(absent, places, strict=True))
        answer = [found[term] if term in found else known[term] for term in terms]
        if known is self._postings:  # else it has grown meanwhile
            self._keep(found)
        return answer

    def _keep(self, found: Mapping[str, Sequence[Posted]]) -> None:
        self._postings.update(found)
        self._size += sum(_size(each.places) for places in found.values() for each in places)

    def tell(self, numbers: Iterable[int], heard: Heard) -> list[int]:
        """Puts in what was heard of the entries of these numbers; returns those of which nothing is known."""
        channels, turns, sizes, spoken, edits = heard
        unknown: list[int] = []
        pages, manners, within = self._pages, self._manners, (1 << PAGE_BITS) - 1
        for number in numbers:
            page = pages.get(number >> PAGE_BITS)
            if page is None or not (code := page[0][number & within]):
                unknown.append(number)
            elif (told := manners[code])[3] in channels:
                if (kind := told[0]) not in AUTHOR_KINDS:
                    turns[number], sizes[number] = told, page[1][number & within]
                    if kind not in SCENE_KINDS:
                        spoken.add(number)
                elif told.edits:
                    edits[number] = told.edits
        return unknown

    def take(self, outlines: Iterable[Outline]) -> None:
        """Keeps these. A story has few speakers and times: they are kept once."""
        pages, codes, within = self._pages, self._codes, (1 << PAGE_BITS) - 1
        for _, seq, kind, voice, channel, tokens, blank, own_id, extra in outlines:
            when, edits = None, 0
            if extra:
                when, edits = extra.get("when"), extra["at"][1] if kind == "edit" else 0
            manner = _new_told((kind, voice, when, channel, own_id, edits))
            code = _BLANK if blank else codes.get(manner) or self._code(manner)
            page = pages.get(seq >> PAGE_BITS)
            if page is None:
                page = pages[seq >> PAGE_BITS] = array("I", _EMPTY), array("I", _EMPTY)
            page[0][seq & within], page[1][seq & within] = code, tokens

    def _code(self, manner: Told) -> int:
        self._codes[manner] = code = len(self._manners)
        self._manners.append(manner)
        return code


def _joined(posted: Sequence[Posted], more: Mapping[tuple[int, int], Sequence[int]]) -> Sequence[Posted]:
    """With more of them, by branch and channel; another process may have indexed some of these before."""
    rows = {(branch, channel): places for branch, channel, places in posted}
    for row, seqs in more.items():
        known = rows.get(row, ())
        rows[row] = known | packed(seqs) if isinstance(known, int) else united([sorted({*known, *seqs})])
    return [Posted(branch, channel, places) for (branch, channel), places in rows.items()]


def _size(places: Places) -> int:
    """How much memory it takes, in numbers of four bytes."""
    return places.bit_length() >> 5 if isinstance(places, int) else len(places)
