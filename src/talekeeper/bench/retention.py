"""Does the context still hold what matters? A memory for the retention benchmark, made of the public API alone.

One story on a real file, with one seat that hears everything; story time is the time of the turns. Contexts are made with
`QUESTION_RECIPE`: a question brings turns back, and without one the most telling turns of the past are shown.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import talekeeper as tk

_PIECE = re.compile(r"[A-Za-z]{1,8}|\d{1,3}|[^\w\s]|[^\W\dA-Za-z]{1,8}")


class Pieces:
    """The benchmark's currency: a token is up to eight letters of a word, up to three digits, or one sign. Additive over lines."""

    id = "pieces-8"
    additive = True

    def count(self, text: str) -> int:
        return len(_PIECE.findall(text))


class Memory:
    """What the benchmark asks of a memory: `add` turns, then ask for a `context` in so many tokens, with a query or without."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="talekeeper-retention-")
        self._keeper = tk.sync.open(Path(self._folder.name) / "story.db", counter=Pieces(), durable=False)
        self._story = self._keeper.story(tk.MemoryKey("bench", "retention", "story"), seats=[tk.Seat("listener", role="dm", keep=1)])

    def add(self, speaker: str, text: str, turn_id: str, time: str | None = None) -> None:
        self._story.append("listener", text, voice=speaker, when=time)

    def context(self, query: str | None, budget_tokens: int) -> str:
        context: tk.Context = self._story.context("listener", budget=budget_tokens, query=query, recipe=tk.QUESTION_RECIPE)
        return context.text

    def close(self) -> None:
        self._keeper.close()
        self._folder.cleanup()
