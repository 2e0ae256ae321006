"""What the retention benchmark found: how much of the evidence was in the contexts, how long these took, and which targets are met."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, ClassVar, Literal

from talekeeper.bench.targets import Judged, Target

Asked = Literal["question", "nothing"]

_TITLES = {"locomo": "LoCoMo", "crd3": "CRD3"}
_HOW: Mapping[Asked, str] = {"question": "with the question", "nothing": "with nothing asked"}
_MEASURES = {
    "strict": "evidence word for word in the context, % (strict)",
    "facts": "facts whose words stand together in the context, % (facts)",
}
_GOALS: Sequence[tuple[str, Asked, int, float]] = (("locomo", "question", 1_000, 72), ("locomo", "nothing", 4_000, 25))
"""Suite, what is asked, tokens, and how much of the evidence should be there, in percent."""
_MOST_MS = 10


@dataclass(slots=True)
class Cell:
    """One memory under one budget: by measure, how much was looked for and how much was there."""

    suite: str
    memory: str
    asked: Asked
    budget: int
    sought: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def put(self, measure: str, *, held: bool) -> None:
        self.sought[measure] += 1
        self.held[measure] += held

    def percent(self, measure: str) -> float | None:
        return 100 * self.held[measure] / self.sought[measure] if self.sought.get(measure) else None


@dataclass(slots=True)
class Timing:
    """How long the contexts of one memory took, in seconds."""

    suite: str
    memory: str
    asked: Asked
    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def put(self, *, clock: float, cpu: float) -> None:
        self.clock.append(clock)
        self.cpu.append(cpu)

    def to_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite, "memory": self.memory, "asked": self.asked, "contexts": len(self.clock),
            "p50_ms": quantile(self.clock, 0.5), "p99_ms": quantile(self.clock, 0.99),
            "cpu_p50_ms": quantile(self.cpu, 0.5), "cpu_p99_ms": quantile(self.cpu, 0.99),
        }  # fmt: skip


def quantile(seconds: Sequence[float], share: float) -> float | None:
    """What so much of the times stay within, in milliseconds."""
    if not seconds:
        return None
    return 1e3 * (median(seconds) if share == 0.5 else sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))])


@dataclass(frozen=True, slots=True)
class Size:
    """What a suite is made of."""

    suite: str
    histories: int
    turns: int
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Judged):
    """The result of `talekeeper bench retention`."""

    benchmark: ClassVar = "retention"
    ours: str
    cells: tuple[Cell, ...]
    timings: tuple[Timing, ...]
    sizes: tuple[Size, ...]

    def percent(self, suite: str, memory: str, asked: Asked, budget: int) -> float | None:
        """One number of the tables."""
        found = (cell for cell in self.cells if (cell.suite, cell.memory, cell.asked, cell.budget) == (suite, memory, asked, budget))
        return next((cell.percent("strict") for cell in found), None)

    def targets(self) -> list[Target]:
        """Every target, met or not: the goals that were set, what the plain memories keep, and the time of a context with a question."""
        return [target for size in self.sizes for target in (*self._goals(size), *self._beside(size), self._quick(size))]

    def measured(self) -> dict[str, Any]:
        """The numbers as plain JSON values; shares in percent, times in milliseconds."""
        return {
            "suites": [asdict(size) for size in self.sizes],
            "cells": [
                {"suite": cell.suite, "memory": cell.memory, "asked": cell.asked, "budget": cell.budget, "sought": dict(cell.sought)}
                | {measure: cell.percent(measure) for measure in cell.sought}
                for cell in self.cells
            ],
            "timings": [timing.to_json() for timing in self.timings],
        }

    def table(self) -> str:
        parts = ["\n".join(lines) for size in self.sizes for lines in self._tables(size)]
        return "\n\n".join([*parts, self.verdicts()]) + "\n"

    def _tables(self, size: Size) -> Iterator[list[str]]:
        cells = [cell for cell in self.cells if cell.suite == size.suite]
        yield [f"{_title(size.suite)}: {size.histories:,} histories, {size.turns:,} turns, {size.questions:,} questions"]
        for measure, title in _MEASURES.items():
            measured = [cell for cell in cells if measure in cell.sought]
            if measured:
                yield list(_grid(title, measured, measure))
        yield list(_times([timing for timing in self.timings if timing.suite == size.suite]))

    def _goals(self, size: Size) -> Iterator[Target]:
        for suite, asked, budget, bound in _GOALS:
            if suite == size.suite:
                value = self.percent(suite, self.ours, asked, budget)
                note = "" if value is not None else f"needs a budget of {budget:,}"
                yield Target(name=_name(suite, asked, budget), sense=">=", bound=bound, value=value, unit="%", note=note)

    def _beside(self, size: Size) -> Iterator[Target]:
        """At no budget worse than a plain memory."""
        for memory in dict.fromkeys(cell.memory for cell in self.cells if cell.memory != self.ours):
            asked: Asked = "question" if "BM25" in memory else "nothing"
            gaps = [
                (ours - theirs, cell.budget)
                for cell in self.cells
                if (cell.suite, cell.memory, cell.asked) == (size.suite, memory, asked)
                and (theirs := cell.percent("strict")) is not None
                and (ours := self.percent(size.suite, self.ours, asked, cell.budget)) is not None
            ]
            if gaps:
                gap, budget = min(gaps)
                name = f"{_title(size.suite)} {_HOW[asked]}, above {memory}"
                yield Target(name=name, sense=">=", bound=0, value=gap, unit="%", note=f"least at {budget:,} tokens")

    def _quick(self, size: Size) -> Target:
        timing = next((each for each in self.timings if (each.suite, each.memory, each.asked) == (size.suite, self.ours, "question")), None)
        value = quantile(timing.cpu, 0.5) if timing else None
        clock = quantile(timing.clock, 0.5) if timing else None
        note = "" if clock is None else f"median; {clock:.3g} ms on the clock"
        return Target(
            name=f"{_title(size.suite)}: CPU of a context with a question", sense="<=", bound=_MOST_MS, value=value, unit=" ms", note=note
        )


def _title(suite: str) -> str:
    return _TITLES.get(suite, suite)


def _name(suite: str, asked: Asked, budget: int) -> str:
    return f"{_title(suite)} {_HOW[asked]}, {budget:,} tokens"


def _grid(title: str, cells: Iterable[Cell], measure: str) -> Iterator[str]:
    rows: dict[tuple[Asked, str], dict[int, float]] = defaultdict(dict)
    for cell in cells:
        rows[cell.asked, cell.memory][cell.budget] = cell.percent(measure) or 0.0
    budgets = sorted({budget for row in rows.values() for budget in row})
    yield title
    yield f"  {'tokens':<34}" + "".join(f"{budget:>9,}" for budget in budgets)
    for (asked, memory), row in rows.items():
        yield f"  {_HOW[asked]:<20}{memory:<14}" + "".join(f"{row[budget]:>9.1f}" if budget in row else f"{'–':>9}" for budget in budgets)


def _times(timings: Iterable[Timing]) -> Iterator[str]:
    yield "milliseconds for a context"
    yield f"  {'':<34}{'p50':>9}{'p99':>9}{'CPU p50':>9}{'CPU p99':>9}{'contexts':>10}"
    for timing in timings:
        if timing.clock:
            figures = [quantile(times, share) for times in (timing.clock, timing.cpu) for share in (0.5, 0.99)]
            shown = "".join(f"{figure:>9.2f}" for figure in figures)
            yield f"  {_HOW[timing.asked]:<20}{timing.memory:<14}{shown}{len(timing.clock):>10,}"
