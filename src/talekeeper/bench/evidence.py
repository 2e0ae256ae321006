"""Is it still there? String tests on a context: no model, no judge, the same answer every time.

- *strict*: the words of a turn stand in the context one after the other, as they were said. Case, punctuation and line breaks do not
  matter; a list of key words does not pass.
- *facts*: most of the words that tell a fact stand close together. For what was said in other words than it was summed up in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from talekeeper.recall.terms import words

CLOSE_WORDS, FACT_SHARE = 100, 0.6
"""A fact is told where so much of the weight of its words stands within so many words."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def plain(text: str) -> str:
    """The words of a text, in small letters, with one blank between them."""
    return " ".join(_WORD.findall(text.lower()))


class Shown:
    """A context that is looked at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = f" {plain(text)} "

    def has(self, said: str) -> bool:
        """Whether it has these words in it, given as `plain` gives them."""
        return f" {said} " in self._plain

    @cached_property
    def places(self) -> Mapping[str, list[int]]:
        """For each word, in whatever form, where it stands."""
        found: dict[str, list[int]] = {}
        for place, word in enumerate(words(self._text)):
            found.setdefault(word, []).append(place)
        return found


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Holds where one of these texts is in the context word for word."""

    measure: ClassVar[str] = "strict"
    texts: tuple[str, ...]

    def holds(self, shown: Shown) -> bool:
        return any(shown.has(text) for text in self.texts)


@dataclass(frozen=True, slots=True)
class Together:
    """Holds where most of these words, by weight, stand close together."""

    measure: ClassVar[str] = "facts"
    weights: Mapping[str, float]

    def holds(self, shown: Shown) -> bool:
        places = sorted((place, word) for word in self.weights for form in forms(word) for place in shown.places.get(form, ()))
        return self._best(places) >= FACT_SHARE * sum(self.weights.values())

    def _best(self, places: Iterable[tuple[int, str]]) -> float:
        """The most weight that stands within the distance."""
        within: list[tuple[int, str]] = []
        inside: Counter[str] = Counter()
        best = 0.0
        first = 0
        for place, word in places:
            within.append((place, word))
            inside[word] += 1
            while within[first][0] <= place - CLOSE_WORDS:
                inside[within[first][1]] -= 1
                first += 1
            best = max(best, sum(self.weights[each] for each, times in inside.items() if times))
        return best


Check = Verbatim | Together


def forms(word: str) -> set[str]:
    """A word of a fact as it may be indexed: as it is given, for it may be a stem already, or cut to its stem."""
    return {word, *words(word)}
