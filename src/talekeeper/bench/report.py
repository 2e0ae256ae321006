"""What a run found: the numbers, their ratios to the limit L, how they grow with the story, and which targets they meet.

Growth is the exponent k in "cost = c · turnsᵏ": the slope of the line through log(cost) over log(turns), from 1,000 turns on.
A value that could not be measured here is None, shown as "–", and no verdict is passed on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from talekeeper.bench.plot import Curve, Panel, draw
from talekeeper.bench.targets import Judged, Target

GROWTH_FROM, GROWTH_TO = 1_000, 100_000
_UNCOUNTED = "needs Linux's /proc/self/io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One system at one length of story.

    `cpu_us` is the median over batches and `cpu_ratio` the median of the ratios to the limit's batches of the same rounds;
    `cpu_mean_us` is all CPU time over all turns.
    """

    system: str
    turns: int
    cpu_us: float
    cpu_ratio: float
    cpu_mean_us: float
    bytes_written: float | None
    resume_us: float
    context_chars: int
    measured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How fast appends come through when many stories are told at once; `cpu_us` is per row."""

    rows_per_second: float
    cpu_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """Bare `executemany` into a table of that kind, and our share of it."""

    table: str
    rate: Rate
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """`stories` stories that append at once, beside bare `executemany`: the first table is what we are held against. `waited_ms`: the
    longest append of one more, while all of them store what is derived from them."""

    stories: int
    ours: Rate
    bare: tuple[Bare, ...]
    waited_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What `import talekeeper` costs in milliseconds beside its yardstick, and which packages the core brings with it.

    Names are imported when first used, so `ready_ms` is told as well: import, open a file, one turn, one context, close.
    """

    import_ms: float
    ready_ms: float
    yardstick_ms: float | None
    packages: tuple[str, ...] | None


Value = Callable[[Point], float | None]

MEASURES: Mapping[str, tuple[str, Value]] = {
    "cpu": ("CPU µs per turn: a durable append and an 8k-token context", lambda point: point.cpu_us),
    "bytes": ("Bytes written per turn", lambda point: point.bytes_written),
    "resume": ("CPU µs to resume: open the file, first context", lambda point: point.resume_us),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Judged):
    """The result of `talekeeper bench engine`."""

    benchmark: ClassVar = "engine"
    points: tuple[Point, ...]
    limit: str
    ours: str
    throughput: Throughput | None = None
    footprint: Footprint | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        return sorted({point.turns for point in self.points})

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(point.system for point in self.points))

    def point(self, system: str, turns: int) -> Point | None:
        """What was measured of one system at one length of story."""
        return next((point for point in self.points if point.system == system and point.turns == turns), None)

    def value(self, measure: str, system: str, turns: int) -> float | None:
        """One number of the table."""
        point = self.point(system, turns)
        return None if point is None else MEASURES[measure][1](point)

    def ratio(self, measure: str, system: str, turns: int) -> float | None:
        """The same as a multiple of the limit's."""
        point, limit = self.point(system, turns), self.point(self.limit, turns)
        if point is None or limit is None:
            return None
        return point.cpu_ratio if measure == "cpu" else _divide(MEASURES[measure][1](point), MEASURES[measure][1](limit))

    def growth(self, measure: str, system: str) -> float | None:
        """The growth exponent between the shortest and the longest story from 1,000 turns on."""
        sizes = [size for size in self.sizes if GROWTH_FROM <= size <= GROWTH_TO]
        return exponent([(size, value) for size in sizes if (value := self.value(measure, system, size)) is not None])

    def targets(self) -> list[Target]:
        return [
            self._worst("the durable turn, folding included: CPU", "cpu", 2),
            self._worst("the durable turn: bytes written", "bytes", 3),
            *(self._growth(measure) for measure in MEASURES),
            *self._crowd(),
            *self._weight(),
        ]

    def measured(self) -> dict[str, Any]:
        return {
            "points": [asdict(point) for point in self.points],
            "growth": {system: {measure: self.growth(measure, system) for measure in MEASURES} for system in self.systems},
            "throughput": self.throughput and asdict(self.throughput),
            "footprint": self.footprint and asdict(self.footprint),
            "skipped": dict(self.skipped),
        }

    def table(self) -> str:
        parts = [self._grid(measure, title) for measure, (title, _) in MEASURES.items()]
        if self.throughput:
            parts.append(_crowd_lines(self.throughput))
        parts.append(self.verdicts())
        if self.skipped:
            parts.append("Left out\n" + "\n".join(f"  {name}: {why}" for name, why in self.skipped.items()))
        return "\n\n".join(parts) + "\n"

    def svg(self) -> str:
        """The same as three log-log plots."""
        panels = [
            Panel(title.partition(":")[0], [self._curve(measure, system) for system in self.systems])
            for measure, (title, _) in MEASURES.items()
        ]
        return draw([panel for panel in panels if any(curve.points for curve in panel.curves)])

    def _curve(self, measure: str, system: str) -> Curve:
        points = [(float(size), value) for size in self.sizes if (value := self.value(measure, system, size))]
        return Curve(system, points, bold=system == self.ours, dashed=system == self.limit)

    def _grid(self, measure: str, title: str) -> str:
        width = max(len(system) for system in self.systems)
        rows = [f"{title} (× L)", " " * (width + 2) + "".join(f"{size:>20,}" for size in self.sizes) + f"{'growth':>9}"]
        for system in self.systems:
            cells = "".join(f"{_cell(self.value(measure, system, size), self.ratio(measure, system, size)):>20}" for size in self.sizes)
            growth = self.growth(measure, system)
            rows.append(f"  {system:<{width}}{cells}{'–' if growth is None else f'{growth:.2f}':>9}")
        return "\n".join(rows)

    def _worst(self, name: str, measure: str, bound: float) -> Target:
        found = [(ratio, size) for size in self.sizes if (ratio := self.ratio(measure, self.ours, size)) is not None]
        value, size = max(found, default=(None, 0))
        note = f"worst at {size:,} turns{self._mean(size) if measure == 'cpu' else ''}" if found else _UNCOUNTED
        return Target(name=name, sense="<=", bound=bound, value=value, unit=" L", note=note)

    def _mean(self, turns: int) -> str:
        ours, limit = self.point(self.ours, turns), self.point(self.limit, turns)
        return f"; mean over all turns {ours.cpu_mean_us / limit.cpu_mean_us:.2f} L" if ours and limit else ""

    def _growth(self, measure: str) -> Target:
        spanned = {GROWTH_FROM, GROWTH_TO} <= set(self.sizes)
        value = self.growth(measure, self.ours) if spanned else None
        note = f"needs {GROWTH_FROM:,} and {GROWTH_TO:,} turns" if not spanned else _UNCOUNTED if value is None else ""
        return Target(name=f"growth exponent: {measure}", sense="<=", bound=0.05, value=value, note=note)

    def _crowd(self) -> list[Target]:
        if self.throughput is None:
            return []
        ceiling, *others = self.throughput.bare
        name = f"{self.throughput.stories:,} stories at once, share of executemany"
        note = "; ".join([ceiling.table, *(f"{other.share:.2f}: {other.table}" for other in others)])
        return [Target(name=name, sense=">=", bound=0.2, value=ceiling.share, note=note)]

    def _weight(self) -> list[Target]:
        if self.footprint is None:
            return []
        ours, yardstick, packages = self.footprint.import_ms, self.footprint.yardstick_ms, self.footprint.packages
        count = None if packages is None else len(packages)
        compared = f"with a first turn: {self.footprint.ready_ms / yardstick:.2f}x" if yardstick else "install pydantic to compare"
        listed = "install talekeeper to count" if packages is None else ", ".join(packages)
        return [
            Target(
                name="import talekeeper / asyncio, sqlite3, pydantic", sense="<=", bound=1.5, value=_divide(ours, yardstick), unit="x",
                note=compared,
            ),
            Target(name="packages of the core with its command line", sense="<=", bound=8, value=count, note=listed),
        ]  # fmt: skip


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The least-squares slope of log(value) over log(turns); None with fewer than two points."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(turns) for turns, _ in points], [math.log(value) for _, value in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def _divide(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None


def _cell(value: float | None, ratio: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if ratio is None else f"{value:,.0f} ({ratio:,.{0 if ratio >= 99.5 else 1 if ratio >= 9.95 else 2}f})"


def _crowd_lines(found: Throughput) -> str:
    rows = [("Talekeeper", found.ours, ""), *((bare.table, bare.rate, f"   our share {bare.share:.2f}") for bare in found.bare)]
    return "\n".join(
        [
            f"{found.stories:,} stories appending at once, beside bare executemany",
            *(
                f"  {name:<46}{rate.rows_per_second:>12,.0f} durable rows/s{rate.cpu_us:>10,.1f} CPU µs/row{share}"
                for name, rate, share in rows
            ),
            f"  the longest append of one more, while all of them store what they know: {found.waited_ms:,.0f} ms",
        ]
    )
