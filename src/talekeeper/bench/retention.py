"""Does the context still hold what matters? Histories are replayed, contexts asked for, and the evidence is looked for in them.

How it is measured:

- A history is told turn by turn to each memory: to Talekeeper, to one that searches with plain BM25 and shows the best turns that fit, and
  to one that shows the last turns that fit. They are given nothing but turns and questions, and are asked in turn, in one run.
- Then each question is asked under each budget, and once nothing is asked. String tests say whether the evidence is there (`evidence`).
- Tokens are counted the same way for all of them (`Pieces`). A context over its budget is an error, not a result.
- A context's time is taken on the clock and as CPU time of the whole process, which a busy machine disturbs less. Contexts without a
  question are timed while the last turns are being told, one after each turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from talekeeper.bench.evidence import Check, Shown
from talekeeper.bench.histories import SUITES, History, load
from talekeeper.bench.memories import LastTurns, Memory, Pieces, PlainSearch, Remembers
from talekeeper.bench.retained import Asked, Cell, Report, Size, Timing
from talekeeper.bench.targets import Progress, machine

BUDGETS = (500, 1_000, 2_000, 4_000)
_MEMORIES: dict[str, Callable[[], Remembers]] = {memory.name: memory for memory in (Memory, PlainSearch, LastTurns)}
_ASKED: dict[Asked, tuple[str, ...]] = {"question": tuple(_MEMORIES), "nothing": (Memory.name, LastTurns.name)}
_TIMED_TURNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure: the folder with the histories, which of them, and in how many tokens."""

    data: Path
    suites: tuple[str, ...] = SUITES
    budgets: tuple[int, ...] = BUDGETS


def run(options: Options, progress: Progress) -> Report:
    """Measure everything. `progress` is told, a line at a time, what is going on."""
    found = {suite: (_Suite(suite, options.budgets), histories) for suite, histories in load(options.data, options.suites).items()}
    for suite, (tally, histories) in found.items():
        for number, history in enumerate(histories, 1):
            title = f"{suite}, history {number} of {len(histories)}"
            tally.replay(history, lambda text, title=title: progress(f"{title}: {text}"))  # type: ignore[misc]
    return Report(
        ours=Memory.name,
        cells=tuple(cell for tally, _ in found.values() for cell in tally.cells.values()),
        timings=tuple(timing for tally, _ in found.values() for timing in tally.timings.values()),
        sizes=tuple(
            Size(suite, len(histories), sum(len(each.turns) for each in histories), sum(len(each.questions) for each in histories))
            for suite, (_, histories) in found.items()
        ),
        machine=machine(),
        options={"data": str(options.data), "suites": list(found), "budgets": list(options.budgets)},
    )


class _Suite:
    """What was found so far in the histories of one suite."""

    def __init__(self, name: str, budgets: Sequence[int]) -> None:
        self._budgets = budgets
        asked = [(memory, how) for how, names in _ASKED.items() for memory in names]
        self.cells = {(memory, how, budget): Cell(name, memory, how, budget) for memory, how in asked for budget in budgets}
        self.timings = {(memory, how): Timing(name, memory, how) for memory, how in asked}

    def replay(self, history: History, progress: Progress) -> None:
        """Tells a history to every memory, and asks about it."""
        with ExitStack() as opened:
            memories: list[Remembers] = []
            for name, make in _MEMORIES.items():
                progress(f"telling {len(history.turns):,} turns to {name}")
                memories.append(make())
                opened.callback(memories[-1].close)
                self._tell(memories[-1], history)
            self._ask(memories, None, history.unasked)
            for number, question in enumerate(history.questions, 1):
                progress(f"question {number:,} of {len(history.questions):,}")
                self._ask(memories, question.text, question.checks)

    def _tell(self, memory: Remembers, history: History) -> None:
        for left, turn in zip(range(len(history.turns), 0, -1), history.turns, strict=True):
            memory.add(turn.speaker, turn.text, turn.time)
            if left <= _TIMED_TURNS and memory.name in _ASKED["nothing"]:
                self._timed(memory, None, max(self._budgets))

    def _ask(self, memories: Iterable[Remembers], query: str | None, checks: Iterable[Check]) -> None:
        asked = _how(query)
        for budget in self._budgets:
            for memory in memories:
                if memory.name in _ASKED[asked]:
                    shown = Shown(self._timed(memory, query, budget))
                    for check in checks:
                        self.cells[memory.name, asked, budget].put(check.measure, held=check.holds(shown))

    def _timed(self, memory: Remembers, query: str | None, budget: int) -> str:
        clock, cpu = time.perf_counter(), time.process_time()
        text = memory.context(query, budget)
        timing = self.timings[memory.name, _how(query)]
        timing.put(clock=time.perf_counter() - clock, cpu=time.process_time() - cpu)
        if (tokens := Pieces().count(text)) > budget:
            raise RuntimeError(f"{memory.name} gave a context of {tokens:,} tokens under a budget of {budget:,}")
        return text


def _how(query: str | None) -> Asked:
    return "nothing" if query is None else "question"
