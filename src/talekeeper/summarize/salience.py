"""How telling a turn is by itself, without a model: what people would ask about later, rather than small talk.

Names, days, numbers and what happens make a turn worth keeping word for word; an answer is worth more than its question, a statement
more than talk to the listener. Each feature is capped, so that no list of names outweighs a story. Only the turn itself and the one
before it in the same run are looked at: the same turns are as telling for everyone who heard them, for ever (I3, I4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from typing import NamedTuple, Protocol, TypeAlias

from talekeeper.summarize.words import (
    CONTENT,
    ENDS,
    MARK,
    NAMEABLE,
    NUMBER,
    OPENS,
    TIME,
    Word,
    is_cjk,
    languages,
    normalise,
    read,
    read_cjk,
)

_HAPPENS = MARK["promise"] | MARK["death"] | MARK["threat"] | MARK["reveal"] | MARK["quest"] | MARK["outcome"] | MARK["decide"]
_TO_LISTENER = MARK["second"] | MARK["chatter"]
_COUNTED = (TIME, NUMBER, _HAPPENS, CONTENT, _TO_LISTENER, NAMEABLE)
_QUESTION = ("?", "？", "؟", '?"', "?”", "？」", "?*", "?)")
_NAME, _TIME, _NUMBER, _EVENT, _DETAIL, _ANSWER, _ASKS, _IDLE = 1.0, 1.0, 0.5, 0.5, 0.08, 1.0, 0.5, 0.1
_MOST_NAMES, _MOST_TIMES, _MOST_NUMBERS, _MOST_EVENTS, _MOST_DETAILS = 4, 3, 2, 2, 12
_FULL = 6.0
"""What makes a turn as telling as any."""


class Said(Protocol):
    """Who said what."""

    @property
    def voice(self) -> str: ...
    @property
    def text(self) -> str: ...


class Features(NamedTuple):
    """What makes a text telling: what it is worth but for names, and the names in it."""

    worth: float
    names: frozenset[str]


Known: TypeAlias = "dict[tuple[str, str], Features]"
"""Features by text and language."""


def tellings(turns: Sequence[Said], before: Iterable[Said | None], known: Known | None = None) -> list[float]:
    """How telling each turn is, from 0 to 1, in the light of the one before it as far as that is known. What is found out of texts is
    put into `known`, and taken from there."""
    alone = _alone(turns, {} if known is None else known)
    return [min(1.0, max(0.0, worth / _FULL)) for worth in map(add, alone, map(_answering, turns, before))]


def worths(turns: Sequence[Said]) -> list[float]:
    """What each turn of a run is worth, one by one and in the light of the one before it."""
    return list(map(add, _alone(turns, {}), map(_answering, turns, [None, *turns])))


def _alone(turns: Sequence[Said], known: Known) -> list[float]:
    if not turns:
        return []
    speakers = {norm for voice in {turn.voice for turn in turns} for piece in voice.split() if (norm := normalise(piece))}
    langs = languages([turn.text for turn in turns])
    worths = []
    for turn, lang in zip(turns, langs, strict=True):
        features = known.get((turn.text, lang))
        if features is None:
            features = known[turn.text, lang] = _features(turn.text, lang)
        names = min(_MOST_NAMES, len(features.names - speakers))
        worths.append(_NAME * names + features.worth - (_ASKS if _asks(turn) else 0.0))
    return worths


def _answering(turn: Said, before: Said | None) -> float:
    return _ANSWER if before is not None and _asks(before) and before.voice != turn.voice and not _asks(turn) else 0.0


def _asks(turn: Said) -> bool:
    return turn.text.rstrip().endswith(_QUESTION)


class _Counts(dict[int, int]):
    """For the marks of a word what it adds to the counts of a turn, all of them in one number, sixteen bits each."""

    def __missing__(self, marks: int) -> int:
        counted = sum(1 << 16 * place for place, group in enumerate(_COUNTED) if marks & group)
        self[marks] = counted
        return counted


_COUNTS = _Counts()


def _features(text: str, lang: str) -> Features:
    words = read_cjk(text, lang) if is_cjk(lang) else read(text, lang)
    marks = [word.marks for word in words]
    counts = sum(map(_COUNTS.__getitem__, marks))
    times, numbers, events, details, idle = [counts >> 16 * place & 0xFFFF for place in range(5)]
    if is_cjk(lang):
        details = len(text) // 4
    worth = (
        _TIME * min(_MOST_TIMES, times) + _NUMBER * min(_MOST_NUMBERS, numbers)
        + _EVENT * min(_MOST_EVENTS, events) + _DETAIL * min(_MOST_DETAILS, details) - _IDLE * idle
    )  # fmt: skip
    return Features(worth, _names(words, marks) if counts >> 80 else _NOBODY)


_NOBODY = frozenset[str]()


def _names(words: Sequence[Word], marks: Sequence[int]) -> frozenset[str]:
    """Words with a capital that is not that of a sentence."""
    return frozenset(
        words[at].norm for at, mark in enumerate(marks)
        if mark & (NAMEABLE | OPENS) == NAMEABLE and at and not marks[at - 1] & ENDS and words[at - 1].norm
    )  # fmt: skip
