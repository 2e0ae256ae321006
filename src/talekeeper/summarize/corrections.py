"""Corrections: "No, the gate is at the north, not the south." is no repetition of what it corrects, and weighs more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import compress, count, pairwise
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.summarize.attribution import quotation
from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.words import (
    BREAKS,
    CJK,
    CONTENT,
    CORRECTS,
    DENIES,
    NAMEABLE,
    NUMBER,
    UNSPACED,
    Word,
    listed,
    read,
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
    if len(words) <= _SHORT and (_denied(words) or (denies and _instead(words))):
        return True
    return not words_of("corrects", "*").isdisjoint(norms) or not words_of("corrects_first", "*").isdisjoint(first)


@cache
def _telling() -> frozenset[str]:
    """The words of which a correction has one."""
    return words_of("corrects", "*") | words_of("corrects_first", "*") | words_of("no", "*") | words_of("not_so", "*")


def _denied(words: Sequence[Word]) -> frozenset[str]:
    """What is denied for something else: the east pier of "Not the east pier, the west pier!", nine of "At ten, not nine."."""
    start = next((at + 1 for at, word in enumerate(words) if word.norm in listed("not_so")), 0)
    if start > _AND and not words[start - 2].marks & BREAKS:
        return frozenset()
    end = next((at + 1 for at in range(start, len(words)) if words[at].marks & BREAKS), len(words))
    if not start or (start <= _AND) == (end == len(words)):
        return frozenset()
    return frozenset([word.norm for word in words[start:end] if word.marks & _TOLD])


def _instead(words: Sequence[Word]) -> tuple[str, str] | None:
    """What is named in the place of something of its kind: "No, the north gate."."""
    if len(words) > _NAMED or len(words) < 3 or not all(word.marks & _TOLD for word in words[-2:]):
        return None
    return words[-2].norm, words[-1].norm


class _Correction(NamedTuple):
    """What a correction says, what it denies, and what it names instead."""

    said: set[str]
    denied: frozenset[str]
    instead: tuple[str, str] | None

    @classmethod
    def of(cls, said: set[str], words: Sequence[Word]) -> _Correction:
        short = len(words) <= _SHORT
        denies = bool(words) and words[0].marks & BREAKS > 0 and words[0].norm in listed("no")
        return cls(said, _denied(words) if short else frozenset(), _instead(words) if denies else None)

    def hits(self, told: set[str], words: Sequence[Word], *, near: bool) -> bool:
        """Whether it corrects a sentence, by the words by which that is known again; what it only denies must stand `near` before it."""
        shared = len(self.said & told)
        if shared > 1 and 2 * shared >= len(told):
            return True
        if not near:
            return False
        if self.denied and (len(self.denied) > 1 or not all(word.isalpha() and word not in listed("number") for word in self.denied)):
            return self.denied <= {word.norm for word in words}
        if self.instead is None:
            return False
        which, what = self.instead
        return any(word.norm == what and before.norm != which and before.marks & _TOLD for before, word in pairwise(words))


def heed(drafts: Sequence[Draft]) -> None:
    """Gives corrections more worth than what they correct: what a sentence before them says of the same."""
    for at, place in corrected(drafts):
        drafts[at].worth = max(drafts[at].worth, drafts[place].worth + _RIGHT)
        drafts[place].worth *= _WRONG


def corrected(drafts: Sequence[Draft]) -> Iterator[tuple[int, int]]:
    """The places of each correction and of what it corrects, in that order."""
    perhaps = [
        at
        for at, draft in enumerate(drafts)
        if draft.lang in UNSPACED or CORRECTS in (row := draft.reading.row).signs or (DENIES in row.signs and len(row.norms) <= _SHORT)
    ]
    if not perhaps:
        return
    compared = cache(lambda at: _compared(drafts[at]))
    for at in perhaps:
        draft = drafts[at]
        if draft.rank == PLAIN and corrects(draft.body, draft.reading.words, draft.reading.row.norms):
            correction = _Correction.of(compared(at), [] if draft.lang in UNSPACED else draft.reading.words)
            for place in range(max(0, at - _FAR), at):
                before = drafts[place]
                if before.rank == PLAIN and correction.hits(compared(place), before.reading.words, near=at - place <= _NEAR):
                    yield at, place


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
    """Whether a sentence of a fold may be a correction: most have been asked before."""
    lowered = text.lower()
    for probe in _PROBES if text.isascii() else _PROBES_BEYOND:  # noqa: SIM110 - quicker, as nearly all sentences have none
        if probe in lowered:
            return True
    return False


def heeded(texts: Sequence[str], worths: Sequence[float]) -> Sequence[float]:
    """What the sentences of some folds are worth, with the same done to them: a correction may stand in another fold than what it
    corrects."""
    found = list(compress(count(), map(_corrects_perhaps, texts)))
    if not found:
        return worths
    weighed, read_before = list(worths), dict[int, tuple[set[str], list[Word]]]()
    for at in found:
        _, quoted = quotation(texts[at])
        words = read(quoted, "en")  # words are compared alike in all languages
        if not words or not corrects(quoted, words, [word.norm for word in words]):
            continue
        correction = _Correction.of({word.norm for word in words if len(word.norm) > 3}, words)
        for place in range(at):
            if place not in read_before:
                before = read(quotation(texts[place])[1], "en")
                read_before[place] = {word.norm for word in before if len(word.norm) > 3}, before
            if correction.hits(*read_before[place], near=at - place <= _NEAR):
                weighed[at] = max(weighed[at], weighed[place] + _RIGHT)
                weighed[place] *= _WRONG
    return weighed


def _compared(draft: Draft) -> set[str]:
    """The words by which a sentence is known again; of a script without blanks, pairs of signs."""
    if draft.lang in UNSPACED:
        return {one + other for one, other in pairwise(draft.body) if one.isalpha() and other.isalpha()}
    return {norm for norm in draft.reading.row.norms if len(norm) > 3}
