"""The memories that the retention benchmark asks: Talekeeper, and the two plain ones that it must beat.

Talekeeper is a story on a real file with one seat that hears everything; story time is the time of the turns. It is used through the
public API alone, with `QUESTION_RECIPE`: a question brings turns back, and without one the most telling turns of the past are shown.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import talekeeper as tk
from talekeeper.recall.terms import sought, words

_PIECE = re.compile(r"[A-Za-z]{1,8}|\d{1,3}|[^\w\s]|[^\W\dA-Za-z]{1,8}")


class Pieces:
    """The benchmark's currency: a token is up to eight letters of a word, up to three digits, or one sign. Additive over lines."""

    id = "pieces-8"
    additive = True

    def count(self, text: str) -> int:
        return len(_PIECE.findall(text))


class Remembers(Protocol):
    """What the benchmark asks of a memory: `add` turns, then ask for a `context` in so many tokens, with a query or without."""

    @property
    def name(self) -> str: ...

    def add(self, speaker: str, text: str, time: str | None = None) -> None: ...

    def context(self, query: str | None, budget_tokens: int) -> str: ...

    def close(self) -> None: ...


class Memory:
    """Talekeeper."""

    name = "Talekeeper"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="talekeeper-retention-")
        self._keeper = tk.sync.open(Path(self._folder.name) / "story.db", counter=Pieces(), durable=False)
        self._story = self._keeper.story(tk.MemoryKey("bench", "retention", "story"), seats=[tk.Seat("listener", role="dm", keep=1)])

    def add(self, speaker: str, text: str, time: str | None = None) -> None:
        self._story.append("listener", text, voice=speaker, when=time)

    def context(self, query: str | None, budget_tokens: int) -> str:
        context: tk.Context = self._story.context("listener", budget=budget_tokens, query=query, recipe=tk.QUESTION_RECIPE)
        return context.text

    def close(self) -> None:
        self._keeper.close()
        self._folder.cleanup()


class LastTurns:
    """The newest turns that fit: what is left where a conversation is cut to its length."""

    name = "last turns"

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._tokens: list[int] = []

    def add(self, speaker: str, text: str, time: str | None = None) -> None:
        self._lines.append(f"[{speaker}]: {text}\n")  # times would only take room from what is looked for
        self._tokens.append(Pieces().count(self._lines[-1]))

    def context(self, query: str | None, budget_tokens: int) -> str:
        first = len(self._lines)
        while first and self._tokens[first - 1] <= budget_tokens:
            first -= 1
            budget_tokens -= self._tokens[first]
        return "".join(self._lines[first:])

    def close(self) -> None:
        pass


class PlainSearch(LastTurns):
    """The turns that BM25 ranks highest, in order of time; without a query the last ones."""

    name = "plain BM25"
    _k1, _b = 1.2, 0.75

    def __init__(self) -> None:
        super().__init__()
        self._lengths: list[int] = []
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def add(self, speaker: str, text: str, time: str | None = None) -> None:
        super().add(speaker, text, time)
        told = words(f"{speaker} {text}")
        for word, times in Counter(told).items():
            self._postings[word].append((len(self._lengths), times))
        self._lengths.append(len(told))

    def context(self, query: str | None, budget_tokens: int) -> str:
        if query is None:
            return super().context(query, budget_tokens)
        scores = self._scores(sought(query))
        shown: list[int] = []
        for turn in sorted(scores, key=lambda turn: (-scores[turn], turn)):
            if self._tokens[turn] <= budget_tokens:
                shown.append(turn)
                budget_tokens -= self._tokens[turn]
        return "".join(self._lines[turn] for turn in sorted(shown))

    def _scores(self, asked: Iterable[str]) -> dict[int, float]:
        average = sum(self._lengths) / max(1, len(self._lengths))
        scores: dict[int, float] = defaultdict(float)
        for word in asked:
            places = self._postings.get(word, ())
            weight = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for turn, times in places:
                longer = 1 - self._b + self._b * self._lengths[turn] / average
                scores[turn] += weight * times * (self._k1 + 1) / (times + self._k1 * longer)
        return scores
