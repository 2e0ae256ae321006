"""What to recall: words of turns, and a ranking of turns by the words they share with a query. Pure.

The store finds entries that contain a word; everything that ranks them (how common a word is, how long turns are) is counted over
what the asking seat heard, so the order tells nothing about other turns (I3). A turn that holds the query word for word comes first,
so a distinctive phrase finds its turn in a story of any length (I1).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from talekeeper.model import Turn

K1, B = 1.2, 0.5
CANDIDATES = 200
MOST_CANDIDATES = 2000
PHRASE_BONUS = 1000.0

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]+")
_COMMON = """
a an and are as at be been but by did do does for from had has have he her him his how i if in into is it its me my of on or our she so
than that the their them then there they this to us was we were what when where which who whom whose why will with would you your
"""
_STOP = frozenset(_COMMON.split())

Place = TypeVar("Place")


def words(text: str) -> list[str]:
    """The text's words as they are indexed, in order: folded, plurals and the like cut off, CJK runs as pairs of characters."""
    found = _WORD.findall(text.casefold())
    if text.isascii():
        return [_STEMS[word] for word in found]
    mixed: list[str] = []
    for word in found:
        end = 0
        for run in _CJK.finditer(word):
            if run.start() > end:
                mixed.append(word[end : run.start()])
            mixed += _pairs(run.group())
            end = run.end()
        if end < len(word):
            mixed.append(_STEMS[word[end:]])
    return mixed


class _Stems(dict[str, str]):
    """Stems of words, each worked out once: words come back all the time."""

    def __missing__(self, word: str) -> str:
        if len(self) >= 50_000:
            self.clear()
        stem = self[word] = _stem(word)
        return stem


_STEMS = _Stems()


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _stem(word: str) -> str:
    word = word.replace("’", "'")
    if word.endswith("'s"):
        word = word[:-2]
    word = word.replace("'", "")
    if len(word) > 4:
        if word.endswith("ies"):
            return word[:-3] + "y"
        for ending in ("ing", "ed", "es"):
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
        if word.endswith("e"):
            return word[:-1]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
        return word[:-1] if len(word) > 4 and word.endswith("e") else word
    return word


def terms(text: str) -> list[str]:
    """The distinct words to index or to look for; common words only where there are no others."""
    distinct = list(dict.fromkeys(words(text)))
    telling = [word for word in distinct if word not in _STOP]
    return telling or distinct


def index_terms(turn_text: str, voice: str) -> list[str]:
    """All distinct words under which a turn is found: what was said, and who said it."""
    return list(dict.fromkeys(words(f"{voice} {turn_text}")))


def candidates(postings: Sequence[Sequence[Place]], heard: int, newest: Callable[[Place], int]) -> tuple[list[Place], list[float]]:
    """The places that share the most telling words with the query, best first, and each word's weight.

    `postings` has, for each word, the places that the seat heard; `heard` is how many turns it heard in all."""
    weights = [math.log(1 + (max(heard, len(places)) - len(places) + 0.5) / (len(places) + 0.5)) for places in postings]
    scores: dict[Place, float] = {}
    for weight, places in zip(weights, postings, strict=True):
        for place in places:
            scores[place] = scores.get(place, 0.0) + weight
    best = sorted(scores, key=lambda place: (-scores[place], -newest(place)))
    enough = CANDIDATES
    while enough < min(len(best), MOST_CANDIDATES) and scores[best[enough]] == scores[best[0]]:
        enough += 1  # they share every word with the query: only their order can tell them apart
    return best[:enough], weights


def score(turn: Turn, query: str, weights: Mapping[str, float], average: float) -> float:
    """How well the turn answers the query, by the words they share; a turn that holds it word for word stands out."""
    counts = Counter(words(f"{turn.voice} {turn.text}"))
    length = K1 * (1 - B + B * max(1, turn.tokens) / max(1.0, average))
    total = sum(weight * counts[word] * (K1 + 1) / (counts[word] + length) for word, weight in weights.items() if word in counts)
    if len(weights) > 1 and holds(turn.text, query):
        total += PHRASE_BONUS
    return total


def holds(text: str, phrase: str) -> bool:
    """Whether the text has the phrase in it, word for word; punctuation, case and line breaks do not matter."""
    sought, flat = _flat(phrase), _flat(text)
    if sought == "  ":
        return False
    return sought in flat or (_CJK.search(phrase) is not None and sought.strip() in flat)


def _flat(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
