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
_COUNTED = {"t": TIME, "n": NUMBER, "e": _HAPPENS, "d": CONTENT, "i": _TO_LISTENER, "c": NAMEABLE}
_QUESTION = ("?", "？", "؟", '?"', "?”", "？」", "?*", "?)")
_NAME, _TIME, _NUMBER, _EVENT, _DETAIL, _ANSWER, _ASKS, _IDLE = 1.0, 1.0, 0.5, 0.5, 0.08, 1.0, 0.5, 0.1
_MOST_NAMES, _MOST_TIMES, _MOST_NUMBERS, _MOST_EVENTS, _MOST_DETAILS = 4, 3, 2, 2, 12
_CAPITAL = NAMEABLE | OPENS
_FULL = 6.0
"""What makes a turn as telling as any."""


class Said(Protocol):
    """Who said what."""

    @property
    def voice(self) -> str: ...
    @property
    def text(self) -> str: ...


class Read(NamedTuple):
    """What was read in a text: its language and its words."""

    lang: str
    words: Sequence[Word]


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


def worths(turns: Sequence[Said], read: Sequence[Read] | None = None) -> list[float]:
    """What each turn of a run is worth, one by one and in the light of the one before it. `read`: what was read in each, if it was."""
    alone = _alone(turns, {}) if read is None else _worths(turns, [_weigh(each, turn.text) for turn, each in zip(turns, read, strict=True)])
    return list(map(add, alone, map(_answering, turns, [None, *turns])))


def _alone(turns: Sequence[Said], known: Known) -> list[float]:
    found = []
    for turn, lang in zip(turns, languages([turn.text for turn in turns]) if turns else (), strict=True):
        features = known.get((turn.text, lang))
        if features is None:
            words = read_cjk(turn.text, lang) if is_cjk(lang) else read(turn.text, lang)
            features = known[turn.text, lang] = _weigh(Read(lang, words), turn.text)
        found.append(features)
    return _worths(turns, found)


def _worths(turns: Sequence[Said], features: Sequence[Features]) -> list[float]:
    speakers = {norm for voice in {turn.voice for turn in turns} for piece in voice.split() if (norm := normalise(piece))}
    return [
        _NAME * min(_MOST_NAMES, len(each.names - speakers)) + each.worth - (_ASKS if _asks(turn) else 0.0)
        for turn, each in zip(turns, features, strict=True)
    ]


def _answering(turn: Said, before: Said | None) -> float:
    return _ANSWER if before is not None and _asks(before) and before.voice != turn.voice and not _asks(turn) else 0.0


def _asks(turn: Said) -> bool:
    return turn.text.rstrip().endswith(_QUESTION)


class _Signs(dict[int, str]):
    """For the marks of a word a letter for each group that counts and that it belongs to."""

    def __missing__(self, marks: int) -> str:
        signs = self[marks] = "".join([sign for sign, group in _COUNTED.items() if marks & group])
        return signs


_SIGNS = _Signs()


def _weigh(read: Read, text: str) -> Features:
    marks = [word.marks for word in read.words]
    signs = "".join([_SIGNS[each] for each in marks])
    details = len(text) // 4 if is_cjk(read.lang) else signs.count("d")
    worth = (
        _TIME * min(_MOST_TIMES, signs.count("t")) + _NUMBER * min(_MOST_NUMBERS, signs.count("n"))
        + _EVENT * min(_MOST_EVENTS, signs.count("e")) + _DETAIL * min(_MOST_DETAILS, details) - _IDLE * signs.count("i")
    )  # fmt: skip
    return Features(worth, _names(read.words, marks) if "c" in signs else _NOBODY)


_NOBODY = frozenset[str]()


def _names(words: Sequence[Word], marks: Sequence[int]) -> frozenset[str]:
    """Words with a capital that is not that of a sentence."""
    capital = [at for at, mark in enumerate(marks) if mark & _CAPITAL == NAMEABLE]
    return frozenset([words[at].norm for at in capital if at and not marks[at - 1] & ENDS and words[at - 1].norm])
