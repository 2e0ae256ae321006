"""What to recall: a ranking of turns by the words (see `terms`) that they share with a query. Pure.

The store finds entries that contain a word. Everything that ranks them is counted over what the asking seat heard, so the order tells
nothing about other turns (I3):

- how rare the words are that turn and query share, and how long the turn is (BM25 over the words that it has, however often); the
  commonest verbs count for little, and a word without its marks ("Artemis" for "Artémis") less than with them;
- what stands around it: a turn lends a part of its score to those near it in the view, for the answer seldom repeats the question;
- who speaks: where the query names exactly one of the speakers, others count less;
- when: a turn told near a time that the query names counts double;
- the session: where much of a session answers, all of it counts a little more;
- how telling the turn is by itself: a name, a number, a day more than small talk.

A turn that holds the query word for word comes first, so a distinctive phrase finds its turn in a story of any length (I1). It is looked
for among all turns that have every word of the query, the common ones as well, and not among the best by their words alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import nlargest
from itertools import chain, groupby
from operator import or_
from typing import NamedTuple, TypeAlias

from talekeeper.recall.terms import bare, bare_forms, holds, index_terms, sought, words
from talekeeper.recall.times import Times, near, times_in
from talekeeper.summarize.salience import Known, Said, tellings

K1, B = 1.2, 0.5
"""The constants of BM25."""
CANDIDATES, MOST_CANDIDATES = 200, 2000
"""How many turns are ranked: the best by their words, or more where all of them share every word."""
MANY, MOST_SPLIT = 1024, 8
"""From how many on the places of a word are kept as bits; and how many such rows are held against each other."""
READ_AT_ONCE, MOST_READ = 64, 2000
"""Of turns that may hold the query so many are read as they come; where there are more, its common words make them fewer first."""
LENDERS, MOST_LENT_TO = 48, 480
"""How many turns lend of their score, and to how many in all."""
PHRASE_BONUS, BARE_SHARE = 1000.0, 0.9
"""What is added for the query word for word, and how much of that where marks differ."""

LENT_AFTER, LENT_BEFORE = 0.5, 0.4
"""What a turn lends of its score to the one after and the one before it. Talk goes forward: what follows is more often the answer."""
HALVED, MOST_AROUND = 64, 12
"""Further away it is half as much every so many tokens, up to so many turns. In tokens, because a scene of short exchanges is as long as
one of few speeches."""
LEAST_LENT, LOANS = 0.05, 3
"""Less of the best one's score is not worth lending; and how many loans a turn takes from each side."""

OTHER_SPEAKERS = 0.5
"""By what a score is multiplied where the query names another speaker."""
NEAR_IN_TIME = 2.0
"""By what it is multiplied where the turn was told near a time that the query names."""
SESSION_SHARE, SESSION_BEST = 0.3, 3
"""How much of what its best few turns score on average all turns of a session get."""
TELLING_SHARE, WEIGHED = 0.5, 32
"""How much being telling adds to a score at the most, and of how many of the best turns that is looked at."""

AROUND = 0.2
"""How much of the best one's score a turn must have to be brought back into a context unasked."""

_LIGHT = frozenset(words("get go make take say come tell give put let want know think see look find keep happen thing"))
_LIGHT_WEIGHT = 0.3
"""What the commonest verbs count of what they would by their rarity: a question has one for its grammar, and an answer needs none."""

# -- places ------------------------------------------------------------------------------------------------------------

Places: TypeAlias = Sequence[int] | int
"""The numbers of turns, each of them once; where there are many, as the bits of one number. A word may stand in every turn of a long story:
what a hundred thousand turns have in common is found in no time that way."""


def packed(places: Places) -> int:
    """The same as bits."""
    if isinstance(places, int):
        return places
    flags = bytearray((max(places, default=0) >> 3) + 1)
    for number in places:
        flags[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(flags, "little")


def unpacked(bits: int, most: int | None = None) -> list[int]:
    """The same as numbers, the greatest first; the first so many of them."""
    row = f"{bits:b}"
    last, at, numbers = len(row) - 1, row.find("1"), list[int]()
    while at >= 0 and len(numbers) != most:
        numbers.append(last - at)
        at = row.find("1", at + 1)
    return numbers


def numbers(places: Places) -> Sequence[int]:
    """The same as numbers, in any order."""
    return unpacked(places) if isinstance(places, int) else places


def up_to(last: int, places: Places) -> Places:
    """Those up to that number, of places in order."""
    return places & ((2 << last) - 1) if isinstance(places, int) else places[: bisect_right(places, last)]


def united(pieces: Sequence[Places]) -> Places:
    """What is in any of the pieces, which have nothing in common."""
    few = [piece for piece in pieces if not isinstance(piece, int)]
    numbers = few[0] if len(few) == 1 else list(chain.from_iterable(few))
    if len(few) == len(pieces) and len(numbers) <= MANY:
        return numbers
    bits = packed(numbers)
    for piece in pieces:
        bits |= piece if isinstance(piece, int) else 0
    return bits


def _count(places: Places | set[int]) -> int:
    return places.bit_count() if isinstance(places, int) else len(places)


# -- candidates --------------------------------------------------------------------------------------------------------


class Query:
    """A question to a memory: its telling words, how those with marks read without them, and the times it names.

    `common`: its other words, where it has any, the rarer ones first as a rule; `quotes`: whether it may be a quotation."""

    __slots__ = ("bare", "common", "quotes", "text", "times", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = sought(text)
        every = words(text)
        self.common = sorted(set(every).difference(self.words), key=lambda word: (-len(word), word))  # the shorter, the commoner
        self.quotes = len(every) > 1
        self.bare = {} if text.isascii() else bare_forms(text, self.words)
        self.times: Times = times_in(text)


class Told(NamedTuple):
    """How something was told: what a ranking must know of an entry before it reads its words, but for its length. Most turns have it in
    common with many others. `edits`: the number of the turn that an edit changed, else 0."""

    kind: str
    voice: str
    when: str | None
    channel: int
    id: str | None = None
    edits: int = 0


class Candidates(NamedTuple):
    """Turns by their number: what the words they share with the query are worth, best first, newest first among equals.

    `bare`: what some of the words are without their marks, and what they are worth where a turn has them that way."""

    worth: dict[int, float]
    weights: dict[str, float]
    bare: Mapping[str, tuple[str, float]] = {}

    def adding(self, said: Mapping[int, Said]) -> Candidates:
        """With these turns among them, as they read."""
        new = {number: worth_of(turn, self) for number, turn in said.items() if number not in self.worth}
        return self._replace(worth=new | self.worth) if new else self


def _total(weights: Iterable[float]) -> float:
    total = 0.0
    for weight in weights:
        total += weight
    return total


def effort(room: int | None) -> float:
    """How much is looked at for an answer of so many tokens: half of it at least, and all for a large one, or where nobody says."""
    return 1.0 if room is None else min(1.0, 0.5 + room / 8000)


def candidates(
    words: Sequence[str], postings: Sequence[Places], heard: int, effort: float = 1.0,
    bare: Mapping[str, tuple[str, Places]] = {},
) -> Candidates:  # fmt: skip
    """The turns that share the most telling words with the query.

    `postings` has, for each word, the numbers of the turns that the seat heard; `heard` is how many it heard in all. `bare` has, for some
    of the words, what they are without their marks, and the turns that have that."""
    enough = int(CANDIDATES * effort)
    found = [(word, places if isinstance(places, int) else set(places)) for word, places in zip(words, postings, strict=True)]
    weights = {word: _weight(word, _count(places), heard) for word, places in found}
    rows = [(weights[word], places) for word, places in found]
    less: dict[str, tuple[str, float]] = {}
    for word, places in found if bare else ():
        form, others = bare.get(word, ("", ()))
        if more := _besides(others, places):
            less[word] = form, _weight(word, _count(places) + _count(more), heard)
            rows.append((less[word][1], more))
    rows.sort(key=lambda row: (-row[0], _count(row[1])))
    worth = _worth(rows, enough)
    last = _last_of(enough, worth)
    known = [(each, place) for place, each in worth.items() if each >= last]
    best = sorted([row for row in known if row[0] > last], reverse=True)
    # Where all of them share every word, many are as good as each other, and may read the same.
    most = enough if best else MOST_CANDIDATES
    even = sorted([place for each, place in known if each == last], reverse=True)[: most - len(best)]
    return Candidates({place: each for each, place in best} | dict.fromkeys(even, last), weights, less)


def _besides(others: Places, places: int | set[int]) -> int | set[int]:
    """Those of the others that are not among the places."""
    if isinstance(others, int) or isinstance(places, int):
        return packed(others) & ~(places if isinstance(places, int) else packed(list(places)))
    return set(others) - places


def having_all(words: Sequence[str], postings: Sequence[Places], bare: Mapping[str, tuple[str, Places]]) -> int:
    """The turns that have every word, in one form or the other."""
    rows = [(places, bare[word][1] if word in bare else 0) for word, places in zip(words, postings, strict=True)]
    rows.sort(key=lambda row: _count(row[0]) + _count(row[1]))
    bits = packed(rows[0][0]) | packed(rows[0][1]) if rows else 0
    for places, others in rows[1:]:
        if not bits:
            break
        bits &= packed(places) | packed(others)
    return bits


def _weight(word: str, times: int, heard: int) -> float:
    """What a word counts: the more, the fewer turns have it."""
    rarity = math.log(1 + (max(heard, times) - times + 0.5) / (times + 0.5))
    return _LIGHT_WEIGHT * rarity if word in _LIGHT else rarity


def _worth(rows: Sequence[tuple[float, int | set[int]]], enough: int) -> dict[int, float]:
    """What turns are worth by the words they have, given with their weights, the rarest first. Turns that have nothing but words that many
    have are not counted one by one: of those that have the same ones, the newest will do."""
    rows = _with_few_long(rows)
    long = [(weight, places) for weight, places in rows if isinstance(places, int)]
    counted = packed(list(set[int]().union(*(places for _, places in rows if isinstance(places, set))))) if long else 0
    worth = _add_up([(weight, set(unpacked(row & counted)) if isinstance(row, int) else row) for weight, row in rows], enough)
    left = enough
    for each, bits in sorted(_alike(long, counted).items(), reverse=True):
        if left > 0:
            worth |= dict.fromkeys(unpacked(bits, MOST_CANDIDATES), each)
            left -= bits.bit_count()
    return worth


def _with_few_long(rows: Sequence[tuple[float, int | set[int]]]) -> Sequence[tuple[float, int | set[int]]]:
    """The same, with no more rows of bits than can all be held against each other."""
    lengths = sorted([(places.bit_count(), at) for at, (_, places) in enumerate(rows) if isinstance(places, int)])
    spread = {at for _, at in lengths[:-MOST_SPLIT]}
    return [(weight, set(unpacked(row)) if isinstance(row, int) and at in spread else row) for at, (weight, row) in enumerate(rows)]


def _alike(rows: Sequence[tuple[float, int]], without: int) -> dict[float, int]:
    """By what they are worth, the turns that have any of these words, and are none of those that are counted without."""
    alike = {0.0: reduce(or_, [places for _, places in rows], 0) & ~without}
    for weight, places in rows:
        parted: dict[float, int] = defaultdict(int)
        for worth, bits in alike.items():
            having = bits & places
            parted[worth + weight] |= having
            parted[worth] |= bits ^ having
        alike = {worth: bits for worth, bits in parted.items() if bits}
    return alike


def _add_up(rows: Sequence[tuple[float, set[int]]], enough: int) -> dict[int, float]:
    """What turns are worth by the words they have, given with their weights, the rarest first. Most turns share a single word and need no
    adding up; they are taken in from the rarest word on, until none of the others can be among the best."""
    seen, shared = set[int](), set[int]()
    for _, places in rows:
        shared |= seen & places
        seen |= places
    worth: dict[int, float] = {}
    for weight, places in rows:
        for place in shared & places:
            worth[place] = worth.get(place, 0.0) + weight
    for weight, same in groupby(rows, key=lambda row: row[0]):
        if sum([each > weight for each in worth.values()]) >= enough:
            break
        worth |= dict.fromkeys(set[int]().union(*(places for _, places in same)) - shared, weight)
    return worth


def _last_of(best: int, worth: Mapping[int, float]) -> float:
    """What the last of so many best candidates is worth; 0 while there is room for more."""
    if len(worth) < best:
        return 0.0
    times = Counter(worth.values())  # few, as words are few
    return next(value for value in sorted(times, reverse=True) if (best := best - times[value]) <= 0)


def worth_of(turn: Said, found: Candidates) -> float:
    """What the words that the turn shares with the query are worth, read off its text."""
    there = set(index_terms(turn.text, turn.voice))
    forms = [(word, weight) if word in there else found.bare.get(word, (word, weight)) for word, weight in found.weights.items()]
    return _total(weight for form, weight in forms if form in there)


def lending(found: Candidates, average: float, effort: float) -> dict[int, int]:
    """Who lends, and to how many turns on each side where turns are that long. The better reach further, and in all it is a bounded number
    of turns that must be read for them (I9)."""
    best = max(found.worth.values(), default=0.0)
    lenders: dict[int, int] = {}
    left = int(MOST_LENT_TO * effort)
    for number, worth in found.worth.items():
        reach = HALVED * math.log2(LENT_AFTER * worth / (LEAST_LENT * best))
        wide = min(MOST_AROUND, 1 + int(reach / max(1.0, average)))
        left -= 2 * wide
        if reach <= 0 or left < 0 or len(lenders) == LENDERS:
            break
        lenders[number] = wide
    return lenders


# -- ranking -----------------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """What a ranking knows of a view: how turns were told and how long they are, by number; the turns around each lender; where sessions
    begin; how long turns are on the whole."""

    turns: Mapping[int, Told]
    sizes: Mapping[int, int]
    after: Mapping[int, Sequence[int]]
    before: Mapping[int, Sequence[int]]
    sessions: Sequence[int]
    average: float


class Scored(NamedTuple):
    """A turn by its number, how well it answers, and whether it shares a word with the query itself."""

    seq: int
    score: float
    own: bool


class Ranking:
    """The turns of a view that answer a query. It says whose words it has to see, which are few, and then in what order they answer."""

    def __init__(self, query: Query, found: Candidates, view: View, quoted: Mapping[int, float]) -> None:
        """`quoted`: the turns that hold the query word for word, and what that is worth."""
        self._view, self._quoted = view, quoted
        sizes = view.sizes
        average = max(1.0, view.average)
        counts = {size: _by_length(size, average) for size in {sizes[number] for number in found.worth}}
        self._own = {number: worth * counts[sizes[number]] for number, worth in found.worth.items()}
        self._scores = _lend(self._own, view)
        _weigh_speakers(self._scores, query, view)
        _weigh_times(self._scores, query, view)
        self._best = [number for _, number in nlargest(WEIGHED, zip(self._scores.values(), self._scores, strict=True))]

    @property
    def unread(self) -> set[int]:
        """The turns whose words it has to see: the best, and what stands before each of them."""
        return {*self._best, *(before for before in map(self._before, self._best) if before is not None)}

    def _before(self, number: int) -> int | None:
        close = self._view.before.get(number)
        return close[0] if close else None

    def order(self, said: Mapping[int, Said], features: Known, least: float = 0.0) -> Iterator[Scored]:
        """The turns, best first; `least`: how much of the best one's score a turn must have. What makes texts telling is put into
        `features`, and taken from there."""
        scores = dict(self._scores)
        before = [None if close is None else said[close] for close in map(self._before, self._best)]
        for number, telling in zip(self._best, tellings([said[number] for number in self._best], before, features), strict=True):
            scores[number] *= 1 + TELLING_SHARE * telling
        enough = least * max(scores.values(), default=0.0)
        scores = {number: score for number, score in scores.items() if score >= enough}
        _weigh_sessions(scores, self._view)
        for number, bonus in self._quoted.items():
            scores[number] = scores.get(number, 0.0) + bonus
        for score, number in sorted([(score, number) for number, score in scores.items() if score > 0], reverse=True):
            yield Scored(number, round(score, 6), number in self._own)


def bonus(text: str, phrase: str) -> float:
    """What it is worth that a text holds the phrase: nothing where it does not, and a little less where not all marks are the same."""
    if holds(text, phrase):
        return PHRASE_BONUS
    if text.isascii() and phrase.isascii():
        return 0.0
    return BARE_SHARE * PHRASE_BONUS if holds(bare(text), bare(phrase)) else 0.0


def _by_length(tokens: int, average: float) -> float:
    """What a word counts in a turn of that length."""
    return (K1 + 1) / (1 + K1 * (1 - B + B * max(1, tokens) / average))


def _lend(own: Mapping[int, float], view: View) -> dict[int, float]:
    """Scores with what is lent. From each side a turn takes what the best few lend it: many weak ones in a row are no strong one."""
    scores, sizes, fading = dict(own), view.sizes, _FADING
    for numbers, share in ((view.after, LENT_AFTER), (view.before, LENT_BEFORE)):
        offers: dict[int, list[float]] = defaultdict(list)
        for lender, around in numbers.items():
            lent = share * own.get(lender, 0.0)
            for number in around:
                offers[number].append(lent)
                lent *= fading[sizes[number]]
        for number, each in offers.items():
            lent = each[0] if len(each) == 1 else sum(each if len(each) <= LOANS else nlargest(LOANS, each))
            scores[number] = scores.get(number, 0.0) + lent
    return scores


class _Fading(dict[int, float]):
    """What is left of a loan behind a turn of that length."""

    def __missing__(self, tokens: int) -> float:
        self[tokens] = left = float(0.5 ** (tokens / HALVED))
        return left


_FADING = _Fading()


def _weigh_speakers(scores: dict[int, float], query: Query, view: View) -> None:
    voices = {voice for number in scores if (voice := view.turns[number].voice)}
    asked = set(words(query.text))
    named = {voice for voice in voices if asked.issuperset(words(voice))}
    if not named and not all(map(str.isascii, (query.text, *voices))):
        asked = set(words(bare(query.text)))
        named = {voice for voice in voices if asked.issuperset(words(bare(voice)))}
    if len(named) == 1:
        for number in scores:
            if view.turns[number].voice not in named:
                scores[number] *= OTHER_SPEAKERS


def _weigh_times(scores: dict[int, float], query: Query, view: View) -> None:
    if query.times:
        for number in scores:
            when = view.turns[number].when
            if when is not None and near(times_in(when), query.times):
                scores[number] *= NEAR_IN_TIME


def _weigh_sessions(scores: dict[int, float], view: View) -> None:
    """Adds a share of what the best of a session have. Where a story has times, a session is what was told at the same time."""
    times: dict[str | None, list[int]] = defaultdict(list)
    for number in scores:
        times[view.turns[number].when].append(number)
    for told in times.values():
        sessions = _sessions(told, view.sessions) if view.sessions else [told]
        for session in sessions:
            more = SESSION_SHARE * sum(nlargest(SESSION_BEST, [scores[number] for number in session])) / SESSION_BEST
            for number in session:
                scores[number] += more


def _sessions(numbers: Iterable[int], begin: Sequence[int]) -> Iterable[list[int]]:
    """The numbers by the session that they are in."""
    sessions: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        sessions[bisect_right(begin, number)].append(number)
    return sessions.values()
