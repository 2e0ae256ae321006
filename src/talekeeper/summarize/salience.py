"""How telling a turn is by itself, without a model: what people would ask about later, rather than small talk.

Names, days, numbers and what happens make a turn worth keeping word for word; an answer is worth more than its question, a statement
more than talk to the listener. Each feature is capped, so that no list of names outweighs a story. Only the turn itself and the one
before it in the same run are looked at: the same turns are as telling for everyone who heard them, for ever (I3, I4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from talekeeper.summarize.words import ENDS, OPENS, UNSPACED, Row, languages, read, read_cjk, side_by_side, words_of_names

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
Read: TypeAlias = tuple[str, Sequence[Row]]
"""What was read in a text: its language and its words, sentence by sentence or all in one row."""


def tellings(turns: Sequence[Said], before: Iterable[Said | None], known: Known | None = None) -> list[float]:
    """How telling each turn is, from 0 to 1, in the light of the one before it as far as that is known. What is found out of texts is
    put into `known`, and taken from there."""
    found = _found(turns, {} if known is None else known)
    return [min(1.0, max(0.0, worth / _FULL)) for worth in _worths(turns, before, found)]


def worths(turns: Sequence[Said], read: Sequence[Read] | None = None) -> list[float]:
    """What each turn of a run is worth, one by one and in the light of the one before it. `read`: what was read in each, if it was."""
    if read is None:
        found = _found(turns, {})
    else:
        found = [_weigh(turn.text, lang, rows) for turn, (lang, rows) in zip(turns, read, strict=True)]
    return _worths(turns, [None, *turns], found)


def _found(turns: Sequence[Said], known: Known) -> list[Features]:
    """What makes the text of each turn telling."""
    found = []
    for turn, lang in zip(turns, languages([turn.text for turn in turns]) if turns else (), strict=True):
        features = known.get((turn.text, lang))
        if features is None:
            words = read_cjk(turn.text, lang) if lang in UNSPACED else read(turn.text, lang)
            features = known[turn.text, lang] = _weigh(turn.text, lang, [side_by_side(words)])
        found.append(features)
    return found


def _worths(turns: Sequence[Said], before: Iterable[Said | None], features: Sequence[Features]) -> list[float]:
    """What each turn is worth by its features, less where it asks, and more where it answers."""
    speakers, worths = words_of_names({turn.voice for turn in turns}), list[float]()
    for turn, last, (worth, names) in zip(turns, before, features, strict=False):
        several = len(names - speakers)
        worth += _NAME * (several if several < _MOST_NAMES else _MOST_NAMES)
        if _asks(turn.text):
            worth -= _ASKS
        elif last is not None and _asks(last.text) and last.voice != turn.voice:
            worth += _ANSWER
        worths.append(worth)
    return worths


def _asks(text: str) -> bool:
    return ("?" in text or "？" in text or "؟" in text) and text.rstrip().endswith(_QUESTION)


def _weigh(text: str, lang: str, rows: Sequence[Row]) -> Features:
    count = "".join([row.signs for row in rows]).count
    times, numbers, events, details = count("t"), count("n"), count("e"), len(text) // 4 if lang in UNSPACED else count("d")
    worth = (
        _TIME * (times if times < _MOST_TIMES else _MOST_TIMES)
        + _NUMBER * (numbers if numbers < _MOST_NUMBERS else _MOST_NUMBERS)
        + _EVENT * (events if events < _MOST_EVENTS else _MOST_EVENTS)
        + _DETAIL * (details if details < _MOST_DETAILS else _MOST_DETAILS)
        - _IDLE * count("i")
    )
    return Features(worth, _names(rows))


def _names(rows: Sequence[Row]) -> frozenset[str]:
    """Words with a capital that is not that of a sentence."""
    names: list[str] = []
    last, before = 0, ""
    for row in rows:
        marks, norms = row.marks, row.norms
        if not norms:
            continue
        for at in row.capitals:
            ended, word = (marks[at - 1], norms[at - 1]) if at else (last, before)
            if word and not (marks[at] & OPENS or ended & ENDS):
                names.append(norms[at])
        last, before = marks[-1], norms[-1]
    return frozenset(names)
