"""Recalling: from a query to the turns of a view that answer it. Reads the index and the log; `talekeeper.recall` does the ranking.

What ranks a turn is mostly known without its words: where it stands, who spoke, how long. So outlines are read of the candidates and of
what stands around the best of them, and words only of the few that are weighed by them or shown. Where others have spoken in between,
reading goes on until the neighbours *in the seat's view* are found, for what a seat did not hear must not move them apart (I3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial

from talekeeper.context.paragraphs import Line
from talekeeper.errors import Conflict
from talekeeper.live.hot import Hot
from talekeeper.live.index import Heard
from talekeeper.model import Turn
from talekeeper.ports import Entry, Position
from talekeeper.recall import ranking
from talekeeper.recall.ranking import Candidates, Places, Query, Ranking, Scored, View
from talekeeper.recall.terms import SESSION_MARK

_new_position = partial(tuple.__new__, Position)


async def recollect(
    hot: Hot, seat: str, text: str, *, limit: int | None = None, tokens: int | None = None, own: bool = False
) -> list[tuple[Line, float]]:  # fmt: skip
    """The turns that the seat heard which the query brings back, best first, each with its score.

    At most `limit` of them, or as many as have that many `tokens`. `own`: all that share a word with the query themselves; else what
    stands around these as well, and nothing that is far behind the best."""
    query = Query(text)
    *postings, sessions = await _postings(hot, seat, [*query.words, *query.bare.values(), SESSION_MARK])
    heard = hot.state.views[seat]
    effort = ranking.effort(tokens)
    known = len(query.words)
    bare = {word: (form, places) for (word, form), places in zip(query.bare.items(), postings[known:], strict=True)}
    found = ranking.candidates(query.words, postings[:known], heard.turns, effort, bare)
    if not found.worth:
        return []
    reader = _Reader(hot, seat)
    whole = ranking.having_all(query.words, postings[:known], bare) if query.quotes else 0
    quoted = await _quoted(reader, query, await _holders(hot, seat, query, whole, effort))
    found = found.adding({number: turn for number, (turn, _) in quoted.items()})
    average = heard.tokens / max(1, heard.turns)
    lenders = ranking.lending(found, average, effort)
    await reader.look(set(found.worth).union(*(range(number - wide, number + wide + 1) for number, wide in lenders.items())))
    found = await _as_it_reads(reader, found)
    lenders = {number: wide for number, wide in lenders.items() if number in found.worth}
    after, before = await reader.around(lenders, 1), await reader.around(lenders, -1)
    view = View(reader.heard.turns, reader.heard.sizes, after, before, sorted(ranking.numbers(sessions)), average)
    ranked = Ranking(query, found, view, {number: bonus for number, (_, bonus) in quoted.items()})
    said = await reader.read(ranked.unread)
    order = [row for row in ranked.order(said, hot.index.features, 0.0 if own else ranking.AROUND) if row.own or not own]
    # A session's title takes no turn's place, unless it is what was asked for, word for word (I1).
    told = [row for row in order if reader.heard.turns[row.seq].kind != "session" or row.score >= ranking.PHRASE_BONUS]
    return await _first(hot, reader, told or order, limit, tokens)


async def _holders(hot: Hot, seat: str, query: Query, places: int, effort: float) -> Sequence[int]:
    """The turns that may hold the query word for word: they have all its telling words (`places`) and, where these are many, its common
    words too. Of more than can be read, the newest."""
    for word in query.common:
        if places.bit_count() <= ranking.READ_AT_ONCE:
            break
        (having,) = await _postings(hot, seat, [word])
        places &= ranking.packed(having)
    return ranking.unpacked(places, int(ranking.MOST_READ * effort))


async def _quoted(reader: _Reader, query: Query, numbers: Sequence[int]) -> dict[int, tuple[Turn, float]]:
    """Those of the entries that hold the query word for word, as they read now, and what that is worth."""
    await reader.look(numbers)
    edits = reader.heard.edits
    await reader.look(edits.values())
    meant = [number for number in dict.fromkeys(edits.get(number, number) for number in numbers) if number in reader.heard.turns]
    said = await reader.read(meant)
    held = [(number, said[number], ranking.bonus(said[number].text, query.text)) for number in meant if number in said]
    return {number: (turn, bonus) for number, turn, bonus in held if bonus}


async def _first(
    hot: Hot, reader: _Reader, order: Sequence[Scored], limit: int | None, tokens: int | None
) -> list[tuple[Line, float]]:  # fmt: skip
    """The first of them, as many as there is room for. What reads the same is there once, at its best."""
    stamps = cache(lambda when: hot.shared.counter.count(f" ({when})"))  # a time is shown once for all that have it
    found: dict[tuple[str, str, str | None], tuple[Line, float]] = {}
    rest = iter(order)
    while True:
        best: dict[int, float] = {}
        left = tokens
        while (limit is None or len(found) + len(best) < limit) and (left is None or left >= 0) and (row := next(rest, None)) is not None:
            best[row.seq] = row.score
            left = None if left is None else left - _size(reader, row.seq, stamps)
        for line, score in zip(await reader.lines(list(best)), best.values(), strict=True):
            turn = line.turn
            if (said := (turn.voice, turn.text, turn.when)) not in found:
                found[said] = line, score
                tokens = None if tokens is None else tokens - _size(reader, turn.seq, stamps)
        if not best:
            return list(found.values())


def _size(reader: _Reader, seq: int, stamps: Callable[[str], int]) -> int:
    when = reader.heard.turns[seq].when
    return reader.heard.sizes[seq] - (0 if when is None else stamps(when))


async def _postings(hot: Hot, seat: str, wanted: Sequence[str]) -> list[Places]:
    """For each word the numbers of the entries that the seat heard: the tail that is not indexed yet, and indexed ones on this path."""
    tail = hot.tail_terms()
    start = tail[0][0].seq if tail else hot.path.head + 1
    last = {branch: min(limit, start - 1) for branch, limit in [*hot.path.limits.items(), (hot.path.branch, hot.path.head)]}
    mine = hot.channels_of(seat)
    found = await hot.index.search(wanted, partial(hot.shared.store.search, hot.shared.record.id))
    postings: list[Places] = []
    for word, posted in zip(wanted, found, strict=True):
        pieces = [ranking.up_to(last.get(branch, 0), places) for branch, channel, places in posted if channel in mine]
        pieces.append([entry.seq for entry, terms in tail if word in terms and entry.channel in mine])
        postings.append(ranking.united([piece for piece in pieces if piece]))
    return postings


class _Reader:
    """Turns of a view by number, read as they are needed."""

    def __init__(self, hot: Hot, seat: str) -> None:
        self._hot = hot
        self._loaded = hot.loaded
        self._seen: set[int] = set()
        self._turns: dict[int, Turn] = {}
        self._entries: dict[int, Entry] = {}
        self._lines: dict[int, Line] = {}
        self.heard = Heard(hot.channels_of(seat), {}, {}, set(), {})

    async def look(self, numbers: Iterable[int]) -> None:
        """Looks at the entries of these numbers, without their words, as far as the seat heard them."""
        index = self._hot.index
        new = set(numbers) - self._seen
        self._seen |= new
        unknown = index.tell(new, self.heard)
        absent = [place for number in unknown if (place := self._place(number)) is not None]
        if absent:
            index.take((await self._hot.read(outlines=absent)).outlines)
            index.tell(unknown, self.heard)

    def _place(self, number: int) -> Position | None:
        path = self._hot.path
        return _new_position((path.branch, number)) if path.base < number <= path.head else path.position(number)

    @property
    def edited(self) -> set[int]:
        """Those of the turns that read otherwise now than when they were told."""
        revisions, name = self._hot.state.revisions, self._hot.shared.names.name
        if not revisions:
            return set()
        branches = {number: place.branch for number in self.heard.turns if (place := self._place(number)) is not None}
        return {number for number, branch in branches.items() if (self.heard.turns[number].id or name(branch, number)) in revisions}

    async def read(self, numbers: Iterable[int]) -> Mapping[int, Turn]:
        """The turns that were read so far, these among them, as they read now."""
        absent: list[Position] = []
        for number in numbers:
            if number not in self._turns and (place := self._place(number)) is not None:
                line = self._hot.line_or_none(place)
                if line is None:
                    absent.append(place)
                else:
                    self._turns[number], self._lines[number] = line.turn, line
        for entry, turn in await self._hot.read_turns(absent) if absent else ():
            self._turns[turn.seq], self._entries[turn.seq] = turn, entry
        return self._turns

    async def lines(self, numbers: Sequence[int]) -> list[Line]:
        """Turns as lines, which stay in memory for a while. `Conflict` where the story was loaded anew since it was first looked at."""
        turns, known, entries, line = await self.read(numbers), self._lines, self._entries, self._hot.line
        if self._loaded is not self._hot.loaded:
            raise Conflict("the story was loaded anew meanwhile; try again")  # what was read may have been undone or forgotten
        return await self._hot.supply(lambda: [known.get(number) or line(entries[number], turns[number]) for number in numbers])

    async def around(self, numbers: Mapping[int, int], step: int) -> dict[int, Sequence[int]]:
        """For each turn as many as it says of the next that the seat heard told, in one direction; comings and goings are no answer."""
        head, seen, spoken = self._hot.path.head, self._seen, self.heard.spoken
        found: dict[int, Sequence[int]] = {}
        more = 1
        while True:
            missing: list[int] = []
            for number, wanted in numbers.items():
                if len(found.get(number, ())) == wanted:
                    continue
                if spoken.issuperset(next_to := range(number + step, number + step * (wanted + 1), step)):
                    found[number] = next_to  # nobody else spoke in between
                    continue
                at, near = number + step, list[int]()
                while len(near) < wanted and at in seen:
                    if at in spoken:
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
    worth: dict[int, float] = {}
    turns, edits = reader.heard.turns, reader.heard.edits
    if edits:
        await reader.look(edits.values())
    if edited := reader.edited:
        meant = {number: edits.get(number, number) for number in found.worth}
        said = await reader.read(edited.intersection(meant.values()))
        for number, seq in meant.items():
            if seq in turns and seq not in worth:
                worth[seq] = ranking.worth_of(said[seq], found) if seq in edited else found.worth[number]
    else:
        worth = {number: known for number, known in found.worth.items() if number in turns}
    return Candidates({number: known for number, known in worth.items() if known > 0}, found.weights, found.bare)
