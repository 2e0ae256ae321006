"""Which sentences go together into a fold: the best for their length that fit, spread over the run that the fold tells of.

The run is cut into stretches: the turns of a chunk, or eighths of what a larger fold tells of. Each sentence has a rank within its
stretch, by its worth for its length. The stretches take turns: the next sentence comes from the one whose best is the best of all, and
every sentence that a stretch has told counts against its next. So nothing is weighed again but the next in line of one stretch, however
many sentences there are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heapreplace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from talekeeper.kept import kept, kept_table
from talekeeper.summarize.attribution import quotation, spoken_by
from talekeeper.summarize.corrections import corrects
from talekeeper.summarize.words import BREAKS, CONTENT, CUE_MARKS, MARK, SAY, Pattern, Word, language, listed, normalise, read
from talekeeper.tokens import estimate_hundredths

FADE = 0.8
"""What a stretch's next sentence counts, beside what it would have counted before the last."""
_FADES = 2.0
"""By how much it may count less at most, for each that was told: what matters most fades little."""
_BASE = 2500
"""Hundredths of a token by which every sentence seems longer when it is chosen: a short one is not all that cheap."""
_LEAST = -1.0
"""What a sentence must be worth to be taken at all."""
_ENOUGH = 1.5
"""What it must be worth to be taken once the fold is half full, and into a larger fold beside others."""
_WEIGHTY = 8.0
"""From this worth on, it counts as said again if half of it was said."""
_MANY = 3
"""So many words at least are said again in what is worth less."""
_FILLER = 3.0
"""What any sentence is worth: some sentences are better than one only by what they have above that."""
_BETTER = 0.3
"""By how much those must be better for which others go."""
_ROUNDING = 1e-6
_YOU = "@"
_TRIED = 6
_NO_ROOM = 500
_ENDS = " .!?…。！？\"'”’»」』"
"""How two sentences may end that say the same."""
_CLOSED = " \"'”’»」』"
_REMEMBERED = 4096
_ALIKE = MARK["promise"] | MARK["death"] | MARK["threat"] | MARK["betray"]
"""Two words for one of these say much the same: to swear and to vow, to die and to perish. To win and to lose something do not."""
_NOT_DONE = CUE_MARKS & ~SAY
_VOWELS = str.maketrans("", "", "aeiouyäöüàâáéèêëíîïóôúûùаеиоуыэюя'")
_LED = 2
"""So many words before a name a "by" may stand: by Captain Voss."""
_STEM = 2
"""So many of their consonants two forms of one word begin with: gives and gave, takes and took."""
_FEW = 16
"""Up to so many sentences it is worth trying others in their place; among more, one does not matter as much."""


class _Costs(dict[str, int]):
    """What a sentence takes of the room, in hundredths of a token. The same sentences come back in larger folds and digests. Bounded: a
    full table starts afresh."""

    def __missing__(self, text: str) -> int:
        self.note(text, cost := estimate_hundredths(text))
        return cost

    def note(self, text: str, cost: int) -> None:
        if len(self) >= _REMEMBERED:
            self.clear()
        self[text] = cost


_costs = kept_table(_Costs())


_Place: TypeAlias = tuple[float, int]
"""What a sentence is worth for its length, less than nothing so that the best comes first, and its place."""


def rank(worth: float, text: str) -> float:
    """What a sentence is worth for its length."""
    return worth / (_BASE + _costs[text])


def choose(
    texts: Sequence[str], worths: Sequence[float], stretches: Sequence[int], limit: int, names: Sequence[Sequence[str]]
) -> list[int]:
    """The places of the sentences that fit the limit together, in order; the best one alone, fitting or not, where they would be worth
    less than that. Never none, if there are any. `names`: whom each names."""
    costs = list(map(estimate_hundredths, texts))
    chosen = _chosen(texts, worths, stretches, limit, costs, names, again=False)
    for at in chosen:
        _costs.note(texts[at], costs[at])
    return chosen


def choose_again(
    texts: Sequence[str], worths: Sequence[float], stretches: Sequence[int], limit: int, names: Sequence[Sequence[str]]
) -> list[int]:
    """The same of sentences that were chosen before, for smaller folds: they fill no room for its own sake."""
    return _chosen(texts, worths, stretches, limit, list(map(_costs.__getitem__, texts)), names, again=True)


def _chosen(
    texts: Sequence[str], worths: Sequence[float], stretches: Sequence[int], limit: int, costs: Sequence[int],
    names: Sequence[Sequence[str]], *, again: bool,
) -> list[int]:  # fmt: skip
    if not texts:
        return []
    chosen = _take(texts, list(worths), stretches, limit, costs, names, again=again)
    best = max(worths)
    if not chosen or (sum([worths[at] for at in chosen]) < best / 2 and best not in [worths[at] for at in chosen]):
        return [worths.index(best)]
    return sorted(chosen)


def _take(
    texts: Sequence[str], worths: list[float], stretches: Sequence[int], limit: int, costs: Sequence[int],
    names: Sequence[Sequence[str]], *, again: bool,
) -> list[int]:  # fmt: skip
    """The same in the order in which they were taken, while there is room."""
    queues, heads = _queued(worths, costs, stretches)
    told, said, told_already = [0] * len(queues), set[str](), Told()
    chosen: list[int] = []
    spare: list[int] = []
    room = limit = 100 * limit + 49  # what is told is rounded once
    least = max(_NO_ROOM, min(costs))
    while heads and (room >= least or not chosen):
        at = heads[0][1]
        stretch, worth, cost = stretches[at], worths[at], costs[at]
        queue = queues[stretch]
        queue.pop()
        if cost > room:
            spare.append(at)
        elif worth >= _ENOUGH or (room * 2 >= limit and not (again and chosen)):
            text = texts[at]
            key = text.rstrip(_ENDS)
            news = 0.0 if key in said else told_already.add(text, names[at], weighty=worth >= _WEIGHTY)
            if news == 1:
                chosen.append(at)
                room -= cost
                told[stretch] += 1
                said.add(key)
            elif news:
                worths[at] = worth * news
                queue.append((-worths[at] / (_BASE + cost), at))
                queue.sort(reverse=True)
        if not queue:
            heappop(heads)
        elif before := told[stretch]:
            at = queue[-1][1]
            heapreplace(heads, (-_faded(worths[at], before) / (_BASE + costs[at]), at))
        else:
            heapreplace(heads, queue[-1])
    if len(chosen) > _FEW:
        return chosen
    spare += [at for queue in queues for _, at in queue]
    best = sorted([(-worths[at], at) for at in spare if worths[at] >= _ENOUGH])
    others = list(islice((at for _, at in best if texts[at].rstrip(_ENDS) not in said), _TRIED))
    if not others:
        return chosen
    over = {at: _faded(worths[at], told[stretches[at]] - 1) - _FILLER for at in chosen}
    over |= {at: _faded(worths[at], told[stretches[at]]) - _FILLER for at in others}
    return _exchanged(over, {at: costs[at] for at in chosen}, {at: costs[at] for at in others}, room)


def _queued(worths: Sequence[float], costs: Sequence[int], stretches: Sequence[int]) -> tuple[list[list[_Place]], list[_Place]]:
    """What is worth anything, stretch by stretch, the best for its length last; and the best of each, as a heap."""
    queues: list[list[_Place]] = [[] for _ in range(max(stretches) + 1)]
    for row in sorted([(-worth / (_BASE + costs[at]), at) for at, worth in enumerate(worths) if worth > _LEAST], reverse=True):
        queues[stretches[row[1]]].append(row)
    return queues, sorted([queue[-1] for queue in queues if queue])


def _faded(worth: float, before: int) -> float:
    """What a sentence is still worth after so many of its stretch."""
    share, rest = worth * FADE**before, worth - _FADES * before
    return share if share >= rest else rest


def _exchanged(over: dict[int, float], costs: dict[int, int], spare: dict[int, int], room: int) -> list[int]:
    """Makes better use of the room: some spare drafts (best first) in the place of a lesser one, or one in the place of up to three."""
    gains, cheapest = [over[at] for at in spare if over[at] > 0], min(spare.values())
    most, least = sum(gains), min([over[at] for at in costs], default=0.0)
    if cheapest > room and costs and least >= 0:  # mostly, no spare ones that fit in the place of any are better than the least
        fitting = (room + max(costs.values())) // cheapest or 1
        if sum(sorted(gains, reverse=True)[:fitting]) + _ROUNDING < least + _BETTER:
            return list(costs)
    least_first = sorted(sorted(over), key=over.__getitem__)
    for out in [at for at in least_first if at in costs]:
        bar = over[out] + _BETTER
        if bar >= most:
            break
        left, into = room + costs[out], list[int]()
        for at, cost in spare.items():
            if cost <= left and at not in costs:
                into.append(at)
                left -= cost
        if into and sum([over[at] for at in into]) > bar:
            del costs[out]
            costs.update((at, spare[at]) for at in into)
            room = left
    for at, cost in spare.items():
        if at in costs:
            continue
        left, gone = room - cost, list[int]()
        for out in least_first:
            if left >= 0 or len(gone) == 3:
                break
            if out in costs:
                if not gone and over[out] >= 0 and over[out] + _BETTER >= over[at]:
                    break
                gone.append(out)
                left += costs[out]
        if left >= 0 and (not gone or sum([over[out] for out in gone]) + _BETTER < over[at]):
            for out in gone:
                del costs[out]
            costs[at] = cost
            room = left
    return list(costs)


# --- what was told already -------------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """What a sentence of a fold says, for comparing: who speaks, and whether of themselves, its telling words, its numbers, and whether it
    asks, corrects something or pays."""

    by: str
    own: bool
    words: frozenset[str]
    numbers: frozenset[str]
    asks: bool
    corrects: bool
    pays: bool
    text: str

    def is_other_than(self, told: _Said) -> bool:
        """Whether it is news whatever it says: a question beside its answer, a correction beside what it corrects, a payment beside the
        debt."""
        return self.asks != told.asks or (self.corrects and not told.corrects) or (self.pays and not told.pays)


_norm = attrgetter("norm")
_DIGITS = Pattern(r"\d+")


@kept(_REMEMBERED)
def _digits_in(text: str) -> frozenset[str]:
    return frozenset(_DIGITS.findall(text))


@kept(1 << 9)
def _said(text: str) -> _Said:
    by, quoted = quotation(text)
    words = read(quoted, "en")  # words are compared alike in all languages
    norms = frozenset(map(_norm, words))
    numbers = frozenset([norm for norm in norms if norm[:1].isdigit()]) | (norms & listed("number"))
    telling = frozenset([norm for norm in norms if len(norm) > 3])
    teller = normalise(spoken_by(text).split()[-1]) if by else ""
    return _Said(
        teller,
        not norms.isdisjoint(listed("first")),
        telling,
        numbers,
        quoted.rstrip(_CLOSED).endswith(("?", "？")),
        corrects(quoted, words, norms),
        _pays(words, norms),
        quoted,
    )


def _pays(words: Sequence[Word], norms: Collection[str]) -> bool:
    """Whether a sentence may tell that something owed is paid: "I pay you three crowns", "Here is what I owe you"."""
    if words and words[0].norm in listed("here"):
        return "promised" in norms or not listed("owing").isdisjoint(norms)
    return not listed("pays").isdisjoint(norms) and listed("unpaid").isdisjoint(norms)


class _Deed(NamedTuple):
    """What a sentence says is done: its words in order, which of them may say it, those that stand for the one who speaks and the one who
    is spoken to, and whether it is denied."""

    norms: tuple[str, ...]
    verbs: dict[str, int]
    first: int
    second: int
    denies: bool

    def order(self, names: Collection[str], by: str) -> list[str]:
        """Whom it names, and the two who talk, as they come in it; first of all "by" whom it is done."""
        norms = self.norms
        places = {name: norms.index(name) for name in names if name in norms}
        for name, at in places.items():
            if not listed("agent").isdisjoint(norms[max(0, at - _LED) : at]) and not listed("helper").isdisjoint(norms[:at]):
                places[name] = at - len(norms)
        if self.first >= 0:
            places[by] = min(self.first, places.get(by, self.first))
        if self.second >= 0:
            places[_YOU] = self.second
        together: list[list[str]] = []  # "Voss and Tam" are "Tam and Voss"
        last = 0
        for name, at in sorted(places.items(), key=lambda row: row[1]):
            if together and not listed("and").isdisjoint(norms[max(0, last) : max(0, at)]):
                together[-1].append(name)
            else:
                together.append([name])
            last = at
        return [name for each in together for name in sorted(each)]

    def has(self, verb: str, marks: int) -> bool:
        """Whether it has a word that says what another says, in whatever form."""
        if verb in self.norms:
            return True
        stem = _stem(verb)
        return any(
            (marks & other & _ALIKE) or (marks == other and (stem.startswith(begun := _stem(one)) or begun.startswith(stem)))
            for one, other in self.verbs.items()
        )


@kept(1 << 9)
def _deed(text: str) -> _Deed:
    """What a sentence says is done: by its words that tell of an event, and by those right behind a name, a "to" or an "is"."""
    words = read(text, language(text))
    verbs: dict[str, int] = {}
    for before, word in zip([None, *words], words, strict=False):
        if not word.marks & CONTENT or not word.plain[:1].islower():
            continue
        behind = before is not None and not before.marks & BREAKS and (before.capital or before.norm in listed("helper"))
        if behind or word.marks & _NOT_DONE:
            verbs[word.norm] = word.marks & _NOT_DONE
    norms = tuple(map(_norm, words))
    denied = [at for at, norm in enumerate(norms) if norm in listed("not") or norm in listed("nothing")]
    return _Deed(
        norms,
        verbs,
        next((at for at, norm in enumerate(norms) if norm in listed("me")), -1),
        next((at for at, norm in enumerate(norms) if norm in listed("you")), -1),
        any(at or not words[at].marks & BREAKS for at in denied),
    )


def _stem(word: str) -> str:
    """How the forms of a word begin, whatever its vowels."""
    bare = word.removesuffix("s")
    return word[:1] + bare[1:].translate(_VOWELS)[: _STEM - 1]


def _is_reversed(said: _Said, told: _Said, names: Collection[str]) -> bool:
    """Whether a sentence says something else with the words of another: of the same in another order ("Voss owes Tam", "Tam owes Voss"),
    what the other denies, or that something else was done."""
    one, other = _deed(said.text), _deed(told.text)
    if one.denies != other.denies:
        return True
    whom, before = one.order(names, said.by), other.order(names, told.by)
    if [name for name in whom if name in before] != [name for name in before if name in whom]:
        return True
    return not all(other.has(*verb) for verb in one.verbs.items()) and not all(one.has(*verb) for verb in other.verbs.items())


class Told:
    """What has been told, to hold others against: a debt is not told three times, but two debts are."""

    __slots__ = ("_all", "_by_number", "_digits", "_pieces", "_texts", "_unread", "_unread_light")

    def __init__(self) -> None:
        self._all: list[tuple[_Said, frozenset[str]]] = []
        self._by_number: dict[str, list[tuple[_Said, frozenset[str]]]] = {}
        self._digits: set[str] = set()
        self._pieces: set[str] = set()
        self._texts: list[str] = []  # their pieces are not yet among those
        self._unread: list[tuple[str, Sequence[str]]] = []  # most say nothing that is said again, and need not be read
        self._unread_light: list[tuple[str, Sequence[str]]] = []

    def add(self, text: str, names: Sequence[str], *, weighty: bool) -> float:
        """Tells a sentence, if it is news, and how much of it is: nothing, if half of it was told by another, with all its names and
        numbers; half, if much of it was; else all of it. What has a number in it that was not told is news. Of what is not `weighty`, five
        in six words beside its names must have been told. A correction is news beside what it corrects, not the other way round; and so
        is what says something else with the same words."""
        digits = _digits_in(text)
        if digits and not digits <= self._digits:
            self._digits |= digits
            self._texts.append(text)
            (self._unread if weighty else self._unread_light).append((text, names))
            return 1.0
        again = not (weighty and not self._unread_light) and self._has_pieces_of(text)
        self._texts.append(text)
        if not (weighty or again):
            self._unread_light.append((text, names))
            return 1.0
        self._read(self._unread)
        if again:
            self._read(self._unread_light)
        said, of = _said(text), frozenset(names)
        news = self._news(said, of, weighty=weighty)
        if news == 1:
            self._note(said, of)
        return news

    def _has_pieces_of(self, text: str) -> bool:
        """Whether most of a text, as it is written, stands in what was told."""
        for told in self._texts:
            self._pieces.update(told.split())
        self._texts.clear()
        pieces = set(text.split())
        return 3 * len(pieces & self._pieces) >= 2 * len(pieces)

    def _read(self, unread: list[tuple[str, Sequence[str]]]) -> None:
        for text, names in unread:
            self._note(_said(text), frozenset(names))
        unread.clear()

    def _note(self, said: _Said, of: frozenset[str]) -> None:
        self._all.append((said, of))
        for number in said.numbers:
            self._by_number.setdefault(number, []).append((said, of))

    def _news(self, said: _Said, of: frozenset[str], *, weighty: bool) -> float:
        words, numbers, news, others = said.words, said.numbers, 1.0, 0
        for other, known in min([self._by_number.get(number, ()) for number in numbers], key=len) if numbers else self._all:
            same_names, shared = of <= known, len(words & other.words)
            if shared < 2 or not (same_names or numbers) or not numbers <= other.numbers or said.is_other_than(other):
                continue
            if weighty or other.corrects:
                repeated = 2 * shared >= len(words)
            else:
                repeated = shared >= _MANY and 6 * len((words & other.words) - of) >= 5 * len(words - of)
            if same_names and repeated and (not said.own or said.by == other.by or said.by in known):
                others += 1
                if others > 1 or not _is_reversed(said, other, of):
                    return 0.0
                continue
            if weighty and numbers and 5 * shared >= 2 * min(len(words), len(other.words)):
                news = 0.5
        return news
