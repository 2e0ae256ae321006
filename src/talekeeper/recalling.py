"""Recalling: from a query to the turns of a view that answer it. Reads the index and the log; `recall` does the ranking.

One search and, as a rule, one read: the best candidates with what stands around the best of them. Where others have spoken in between,
reading goes on until the neighbours *in the seat's view* are found, for what a seat did not hear must not move them apart (I3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from talekeeper import recall
from talekeeper.hot import Hot
from talekeeper.model import AUTHOR_KINDS, Turn
from talekeeper.ports import Entry, Position
from talekeeper.recall import SESSION_MARK, Candidates, Query, Told, View
from talekeeper.state import SCENE_KINDS

_new_told = partial(tuple.__new__, Told)
_new_position = partial(tuple.__new__, Position)


async def recollect(
    hot: Hot, seat: str, text: str, *, limit: int | None = None, tokens: int | None = None, own: bool = False
) -> list[tuple[Turn, float]]:  # fmt: skip
    """The turns that the seat heard which the query brings back, best first, each with its score.

    At most `limit` of them, or as many as have that many `tokens`. `own`: all that share a word with the query themselves; else what
    stands around these as well, and nothing that is far behind the best."""
    query = Query(text)
    *postings, sessions = await _postings(hot, seat, [*query.words, SESSION_MARK])
    heard = hot.state.views[seat]
    effort = recall.effort(tokens)
    found = recall.candidates(query.words, postings, heard.turns, effort)
    if not found.worth:
        return []
    reader = _Reader(hot, seat)
    average = heard.tokens / max(1, heard.turns)
    lenders = recall.lending(found, average, effort)
    near = {at for number, wide in lenders.items() for at in range(number - wide, number + wide + 1)}
    await reader.look(near | found.worth.keys())
    found = await _as_it_reads(reader, found)
    lenders = {number: wide for number, wide in lenders.items() if number in found.worth}
    after, before = await reader.around(lenders, 1), await reader.around(lenders, -1)
    view = View(reader.heard, after, before, sorted(sessions), average)
    best: list[tuple[Turn, float]] = []
    stamps = cache(lambda when: hot.shared.counter.count(f" ({when})"))  # a time is shown once for all that have it
    for seq, score, shares_a_word in recall.rank(query, found, view, 0.0 if own else recall.AROUND):
        if (limit is not None and len(best) >= limit) or (tokens is not None and tokens < 0):
            break
        if shares_a_word or not own:
            best.append((reader.turn(seq), score))
            if tokens is not None:
                told = reader.heard[seq]
                tokens -= told.tokens - (0 if told.when is None else stamps(told.when))
    return best


async def _postings(hot: Hot, seat: str, wanted: Sequence[str]) -> list[list[int]]:
    """For each word the numbers of the entries that the seat heard: the tail that is not indexed yet, and indexed ones on this path."""
    tail = hot.tail_terms()
    start = tail[0][0].seq if tail else hot.path.head + 1
    last = {branch: min(limit, start - 1) for branch, limit in [*hot.path.limits.items(), (hot.path.branch, hot.path.head)]}
    mine = {number for number, hearers in hot.shared.record.channels.items() if seat in hearers}
    found = await hot.shared.store.search(hot.shared.record.id, wanted)
    postings = [[seq for branch, seq, channel in places if channel in mine and seq <= last.get(branch, 0)] for places in found]
    for entry, terms in tail:
        if entry.channel in mine:
            for places, word in zip(postings, wanted, strict=True):
                if word in terms:
                    places.append(entry.seq)
    return postings


class _Reader:
    """Turns of a view by number, read as they are needed."""

    def __init__(self, hot: Hot, seat: str) -> None:
        self._hot = hot
        self._mine = {number for number, hearers in hot.shared.record.channels.items() if seat in hearers}
        self._seat = seat
        self._seen: set[int] = set()
        self._entries: dict[int, Entry] = {}
        self._turns: dict[int, Turn] = {}
        self.heard: dict[int, Told] = {}
        self.edits: dict[int, int] = {}
        """Edits that were met, by number, and the numbers of the turns that they changed."""

    async def look(self, numbers: Iterable[int]) -> None:
        """Reads the turns of these numbers, as far as the seat heard them."""
        hot, path, absent = self._hot, self._hot.path, list[Position]()
        branch, base, head = path.branch, path.base, path.head
        new = set(numbers) - self._seen
        self._seen |= new
        for number in new:
            place = _new_position((branch, number)) if base < number <= head else path.position(number)
            line = hot.line_or_none(place) if place is not None else None
            if line is not None:
                if line.turn.text and self._seat in line.turn.audience:
                    self._take(line.turn)
            elif place is not None and not hot.is_mark(place):
                absent.append(place)
        if absent:
            await self._read(absent)

    async def _read(self, places: Sequence[Position]) -> None:
        revisions, mine, heard, entries = self._hot.state.revisions, self._mine, self.heard, self._entries
        edited: list[Position] = []
        for entry in (await self._hot.read(positions=places)).entries:
            _, seq, kind, _, voice, text, channel, _, tokens, _, _, _, extra = entry
            if channel not in mine or not text:
                continue
            if kind not in AUTHOR_KINDS:
                entries[seq] = entry
                if revisions and self._hot.turn(entry).id in revisions:
                    edited.append(entry.position)
                else:
                    heard[seq] = _new_told((seq, kind, voice, text, extra.get("when") if extra else None, tokens, False))
            elif kind == "edit" and extra is not None:
                self.edits[seq] = extra["at"][1]
        if edited:
            for turn in await self._hot.fetch_turns(edited):
                self._take(turn)

    def _take(self, turn: Turn) -> None:
        self._turns[turn.seq] = turn
        self.heard[turn.seq] = Told(turn.seq, turn.kind, turn.voice, turn.text, turn.when, turn.tokens, turn.revision > 0)

    def turn(self, number: int) -> Turn:
        """A turn that was read, as a noun."""
        return self._turns[number] if number in self._turns else self._hot.turn(self._entries[number])

    async def around(self, numbers: Mapping[int, int], step: int) -> dict[int, list[int]]:
        """For each turn as many as it says of the next that the seat heard told, in one direction; comings and goings are no answer."""
        head, seen, heard = self._hot.path.head, self._seen, self.heard
        found: dict[int, list[int]] = {}
        more = 1
        while True:
            missing: list[int] = []
            for number, wanted in numbers.items():
                if len(found.get(number, ())) == wanted:
                    continue
                at, near = number + step, list[int]()
                while len(near) < wanted and at in seen:
                    if at in heard and heard[at].kind not in SCENE_KINDS:
                        near.append(at)
                    at += step
                if len(near) < wanted and 1 <= at <= head:
                    missing += range(at, at + step * wanted * more, step)
                found[number] = near
            if not missing:
                return found
            more *= 4
            await self.look(missing)


async def _as_it_reads(reader: _Reader, found: Candidates) -> Candidates:
    """The candidates by what they say now: an edit stands for the turn it changed, and an edited turn for its new words alone."""
    if reader.edits:
        await reader.look(reader.edits.values())
    worth: dict[int, float] = {}
    for number, by_index in found.worth.items():
        told = reader.heard.get(reader.edits.get(number, number))
        if told is not None and told.seq not in worth:
            known = recall.worth_of(told, found.weights) if told.edited else by_index
            if known > 0:
                worth[told.seq] = known
    return Candidates(worth, found.weights)
