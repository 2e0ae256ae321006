"""Corrections: "No, the gate is at the north, not the south." is no repetition of what it corrects, and weighs more.

So does what takes back a state: "Dorn is alive." after his death, "The treaty is broken." after its oath; and "It is only a tale." after
one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import compress, count, pairwise
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.summarize.attribution import quotation, spoken_by
from talekeeper.summarize.names import studied
from talekeeper.summarize.reversals import CLOSE, DYING, Reversal, State, named, wakes
from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.words import (
    BREAKS,
    CJK,
    CONTENT,
    CORRECTS,
    DENIES,
    MARK,
    NAMEABLE,
    NUMBER,
    UNDOING,
    UNSPACED,
    Pattern,
    Word,
    languages,
    listed,
    read,
    words_and_beginnings,
    words_of,
)

_FIRST = 3
"""Among so many words an "actually" stands that corrects something."""
_SHORT = 12
"""A correction that says no more than what is wrong has so many words at most …"""
_NAMED = 6
"""… and one that only names something else so many."""
_NEAR = 12
"""So many sentences before it that stands which it corrects, if it has little in common with it."""
_CUT = Pattern(r"[;；—–]")
"""Behind one of these a correction may go on with anything."""
_FEW = 3
"""So many words at most are denied in the midst of a sentence: "…, not 400, …"."""
_LIKE = 2
"""A correction that counts something and has more words than that of a sentence near before it corrects its numbers."""
_AND = 2
"""With so many words a "Not the east pier, …" begins, or an "And not the …"."""
_TOLD = CONTENT | NUMBER | NAMEABLE
_PROBES = ("not ", "no, ", "orrection", "ctually", "istaken", "isspoke", "nicht ", "nein, ", "non, ", "pas ")
_PROBES_BEYOND = (*_PROBES, "нет, ", "не ")
"""What a correction in a fold has one of, in small letters; the second where it has signs beyond ASCII."""
_FAR = 64
"""So many sentences before a correction may be what it corrects."""
_RIGHT = 1.0
"""By how much a correction is more than what it corrects …"""
_WRONG = 0.5
"""… and what that counts beside what it would have counted."""
_NO_MORE = 3.0
"""By how much it is more that someone is alive after all, or that a bond is broken."""
_WAKING = 3.0
"""By how much a waking is more than its dream: what begins with a "He" will count for less."""
_WORD = Pattern(r"\w+")
_LANGUAGES = ("en", "de", "fr", "es", "ru")
_DEATH = MARK["death"]


def corrects(text: str, words: Sequence[Word], norms: Collection[str]) -> bool:
    """Whether a sentence that was read may correct what was said before: "No, at the north, not the south."."""
    if not text.isascii() and CJK.search(text):
        return any(word in text for lang in UNSPACED for word in words_of("corrects", lang))
    if _telling().isdisjoint(norms):
        return False
    first = [word.norm for word in words[:_FIRST]]
    denies = bool(words[0].marks & BREAKS) and first[0] in listed("no")
    if denies and not listed("not").isdisjoint([word.norm for word in words[1:]]):
        return True
    short = _clause(text, words)
    if len(short) <= _SHORT and (_denied(short) or (denies and _instead(short))):
        return True
    return _says_so(norms, first)


def _says_so(norms: Collection[str], first: Sequence[str]) -> bool:
    """Whether a sentence says by its words that it corrects something: "Actually …", "I was mistaken"."""
    return not words_of("corrects", "*").isdisjoint(norms) or not words_of("corrects_first", "*").isdisjoint(first)


def _clause(text: str, words: Sequence[Word]) -> Sequence[Word]:
    """The words of a sentence up to a semicolon or a dash."""
    cut = _CUT.search(text)
    return words if cut is None else words[: len(text[: cut.start()].split())] or words


@cache
def _telling() -> frozenset[str]:
    """The words of which a correction has one."""
    return words_of("corrects", "*") | words_of("corrects_first", "*") | words_of("no", "*") | words_of("not_so", "*")


def _denied(words: Sequence[Word], *, amid: bool = False) -> frozenset[str]:
    """What is denied for something else: the east pier of "Not the east pier, the west pier!", nine of "At ten, not nine."; `amid`, where
    the sentence is known to correct something: "…, not nine, …"."""
    start = next((at + 1 for at, word in enumerate(words) if word.norm in listed("not_so")), 0)
    if start > _AND and not words[start - 2].marks & BREAKS:
        return frozenset()
    end = next((at + 1 for at in range(start, len(words)) if words[at].marks & BREAKS), len(words))
    if not start or ((start <= _AND) == (end == len(words)) and not (amid and start > _AND and end - start <= _FEW)):
        return frozenset()
    return frozenset([word.norm for word in words[start:end] if word.marks & _TOLD])


def _instead(words: Sequence[Word]) -> tuple[str, str] | None:
    """What is named in the place of something of its kind: "No, the north gate."."""
    if len(words) > _NAMED or len(words) < 3 or not all(word.marks & _TOLD for word in words[-2:]):
        return None
    return words[-2].norm, words[-1].norm


def _numbers(words: Sequence[Word]) -> frozenset[str]:
    return frozenset([word.norm for word in words if word.marks & NUMBER])


class _Correction(NamedTuple):
    """What a correction says, what it denies, and what it names instead; and what it counts, if it says that it corrects."""

    said: set[str]
    denied: frozenset[str]
    instead: tuple[str, str] | None
    counted: frozenset[str]

    @classmethod
    def of(cls, said: set[str], text: str, words: Sequence[Word]) -> _Correction:
        short, norms = _clause(text, words), [word.norm for word in words]
        denies = bool(words) and words[0].marks & BREAKS > 0 and norms[0] in listed("no")
        outright = denies or _says_so(norms, norms[:_FIRST])
        denied = _denied(short, amid=outright) if outright or len(short) <= _SHORT else frozenset()
        return cls(said, denied, _instead(short) if denies else None, _numbers(words) if outright else frozenset())

    def hits(self, told: set[str], words: Sequence[Word], *, near: bool) -> bool:
        """Whether it corrects a sentence, by the words by which that is known again; what it only denies must stand `near` before it."""
        shared = len(self.said & told)
        if shared > 1 and 2 * shared >= len(told):
            return True
        if not near:
            return False
        if shared > _LIKE and self.counted and (numbers := _numbers(words)) and not numbers <= self.counted:
            return True
        if self.denied and (len(self.denied) > 1 or not all(word.isalpha() and word not in listed("number") for word in self.denied)):
            return self.denied <= {word.norm for word in words}
        if self.instead is None:
            return False
        which, what = self.instead
        return any(word.norm == what and before.norm != which and before.marks & _TOLD for before, word in pairwise(words))


def heed(drafts: Sequence[Draft]) -> None:
    """Gives corrections more worth than what they correct: what a sentence before them says of the same; and so what takes back a state."""
    if not (perhaps := _perhaps(drafts)):
        return
    for at, place in _corrected(drafts, perhaps):
        drafts[at].worth = max(drafts[at].worth, drafts[place].worth + _RIGHT)
        drafts[place].worth *= _WRONG
    for at, _ in (found := _reversals(drafts, perhaps)):
        drafts[at].worth += _NO_MORE if drafts[at].keys else 0.0
    for at, place, _ in _taking_back(drafts, found):  # what was so stays worth what it is: it may have been a lie that it is no more
        drafts[at].worth = max(drafts[at].worth, drafts[place].worth + _RIGHT)
    for at in perhaps:
        if at + 1 < len(drafts) and wakes(drafts[at], drafts[at + 1]):
            drafts[at + 1].worth = max(drafts[at + 1].worth, drafts[at].worth + _WAKING)


def corrected(drafts: Sequence[Draft]) -> Iterator[tuple[int, int]]:
    """The places of what corrects or takes something back, and of what is wrong by that, in this order."""
    perhaps = _perhaps(drafts)
    yield from _corrected(drafts, perhaps)
    yield from ((at, place) for at, place, wrong in _taking_back(drafts, _reversals(drafts, perhaps)) if wrong)


def _perhaps(drafts: Sequence[Draft]) -> list[int]:
    """The places of what may correct something, or take it back."""
    return [
        at
        for at, draft in enumerate(drafts)
        if draft.lang in UNSPACED
        or CORRECTS in (row := draft.reading.row).signs
        or (DENIES in row.signs and (len(row.norms) <= _SHORT or draft.reading.marks & _DEATH or _CUT.search(draft.body)))
    ]


def _corrected(drafts: Sequence[Draft], perhaps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The places of each correction and of what it corrects."""
    compared = cache(lambda at: _compared(drafts[at]))
    for at in perhaps:
        draft = drafts[at]
        if draft.rank == PLAIN and corrects(draft.body, draft.reading.words, draft.reading.row.norms):
            correction = _Correction.of(compared(at), draft.body, [] if draft.lang in UNSPACED else draft.reading.words)
            for place in range(max(0, at - _FAR), at):
                before = drafts[place]
                if before.rank == PLAIN and correction.hits(compared(place), before.reading.words, near=at - place <= _NEAR):
                    yield at, place


def _reversals(drafts: Sequence[Draft], perhaps: Sequence[int]) -> list[tuple[int, Reversal]]:
    """What some sentences take back, with their places."""
    return [(at, reversal) for at in perhaps if drafts[at].rank == PLAIN and (reversal := Reversal.of(drafts[at]))]


def _taking_back(drafts: Sequence[Draft], found: Sequence[tuple[int, Reversal]]) -> Iterator[tuple[int, int, bool]]:
    """The places of what takes back a state, and of what told of that; and whether this is wrong now, and not only over."""
    state = cache(lambda place: State.of(drafts[place]))
    for at, reversal in found:
        for place in range(max(0, at - _FAR), at):
            before = drafts[place]
            if before.rank == PLAIN and reversal.may_be_of(named(before), near=at - place <= CLOSE) and reversal.is_of(state(place)):
                yield at, place, reversal.alive


def taken_back(sentences: Sequence[str], lang: str) -> frozenset[str]:
    """The words that some sentences take back, for comparing: nine of "At ten, not nine.", and of "In nine days." before "Correction:
    ten."."""
    taken: set[str] = set()
    before: list[str] = []
    for sentence in sentences if lang not in UNSPACED else ():
        words = read(sentence, lang)
        numbers = [word.norm for word in words if word.marks & NUMBER]
        if words and corrects(sentence, words, [word.norm for word in words]):
            denied = _denied(words) if len(words) <= _SHORT else frozenset()
            taken.update(denied or (before if len(numbers) == 1 and numbers != before else ()))
        before = numbers
    return frozenset(taken)


@kept(1 << 12)
def _corrects_perhaps(text: str) -> bool:
    """Whether a sentence of a fold may be a correction, or take something back: most have been asked before."""
    lowered = text.lower()
    for probe in _PROBES if text.isascii() else _PROBES_BEYOND:
        if probe in lowered:
            return True
    words, dead, parts = _undoing()
    said = frozenset(_WORD.findall(lowered))
    if not words.isdisjoint(said) or (not dead.isdisjoint(said) and ("n't" in lowered or not listed("not").isdisjoint(said))):
        return True
    return not text.isascii() and any(part in lowered for part in parts)


@cache
def _undoing() -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """The words with which what was may be taken back, in all languages; those that do where they are denied; and what does wherever it
    stands in a text."""
    groups = [words_and_beginnings(lang, *UNDOING) for lang in _LANGUAGES]
    dead = [words_and_beginnings(lang, *DYING)[0] for lang in _LANGUAGES]
    parts = [part for _, begins in groups for part in begins]
    parts += [word for lang in UNSPACED for group in UNDOING for word in words_of(group, lang)]
    return frozenset().union(*(words for words, _ in groups)), frozenset().union(*dead), tuple(parts)


def heeded(texts: Sequence[str], worths: Sequence[float], names: Sequence[Sequence[str]]) -> Sequence[float]:
    """What the sentences of some folds are worth, with the same done to them: a correction may stand in another fold than what it
    corrects. `names`: whom each names."""
    found = list(compress(count(), map(_corrects_perhaps, texts)))
    if not found:
        return worths
    weighed, read_before = list(worths), dict[int, tuple[set[str], list[Word]]]()
    for at in found:
        _, quoted = quotation(texts[at])
        words = read(quoted, "en")  # words are compared alike in all languages
        if not words or not corrects(quoted, words, [word.norm for word in words]):
            continue
        correction = _Correction.of({word.norm for word in words if len(word.norm) > 3}, quoted, words)
        for place in range(at):
            if place not in read_before:
                before = read(quotation(texts[place])[1], "en")
                read_before[place] = {word.norm for word in before if len(word.norm) > 3}, before
            if correction.hits(*read_before[place], near=at - place <= _NEAR):
                weighed[at] = max(weighed[at], weighed[place] + _RIGHT)
                weighed[place] *= _WRONG
    langs = languages(texts)
    drafted = cache(lambda at: _drafted(texts[at], langs[at], names[at]))
    state = cache(lambda place: State.of(drafted(place)))
    for at in found:
        if reversal := Reversal.of(drafted(at)):
            for place in [place for place in range(at) if reversal.may_be_of(names[place], near=at - place <= CLOSE)]:
                if reversal.is_of(state(place)):
                    weighed[at] = max(weighed[at], weighed[place] + _RIGHT)
    return weighed


def _drafted(text: str, lang: str, names: Sequence[str]) -> Draft:
    """A sentence of a fold, read in its language."""
    by, quoted = quotation(text)
    reading = studied(quoted, lang)
    return Draft(quoted, lang, voice=spoken_by(text) if by else "", reading=reading, keys=names, marks=reading.marks)


def _compared(draft: Draft) -> set[str]:
    """The words by which a sentence is known again; of a script without blanks, pairs of signs."""
    if draft.lang in UNSPACED:
        return {one + other for one, other in pairwise(draft.body) if one.isalpha() and other.isalpha()}
    return {norm for norm in draft.reading.row.norms if len(norm) > 3}
