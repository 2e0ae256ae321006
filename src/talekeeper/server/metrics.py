"""What Prometheus asks for, in its text format.

Counters, one gauge and one histogram are all there is, so this is a page of our own rather than a dependency with a registry that is
global to the process: two servers in one process (as in tests) have a set of numbers each. Labels are route templates and never ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._refused: Counter[Labels] = Counter()
        self._buckets: dict[Labels, list[int]] = {}
        self._seconds: dict[Labels, float] = {}

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """One more request was answered; `seconds` is None for a stream, which lasts as long as someone listens."""
        self._requests[("method", method), ("route", route), ("status", str(status))] += 1
        if seconds is not None:
            labels = (("method", method), ("route", route))
            self._buckets.setdefault(labels, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[labels] = self._seconds.get(labels, 0.0) + seconds

    def refused(self, reason: str) -> None:
        self._refused[(("reason", reason),)] += 1

    def text(self, *, streams: int) -> str:
        """All of them. `streams`: how many event streams are open."""
        lines = [
            *_family("talekeeper_requests_total", "counter", "Requests answered.", self._requests),
            *_family("talekeeper_refused_total", "counter", "Requests refused before they were looked at.", self._refused),
            *_family("talekeeper_streams", "gauge", "Event streams that are open.", {(): streams}),
            *self._histogram("talekeeper_request_seconds"),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str) -> list[str]:
        lines = [f"# HELP {name} How long answers took.", f"# TYPE {name} histogram"]
        for labels, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
                total += count
                lines.append(f"{name}_bucket{_labels((*labels, ('le', bound)))} {total}")
            lines += [f"{name}_sum{_labels(labels)} {self._seconds[labels]:.6f}", f"{name}_count{_labels(labels)} {total}"]
        return lines


def _family(name: str, kind: str, help: str, values: Mapping[Labels, int]) -> list[str]:
    return [
        f"# HELP {name} {help}",
        f"# TYPE {name} {kind}",
        *(f"{name}{_labels(labels)} {value}" for labels, value in sorted(values.items())),
    ]


def _labels(labels: Labels) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
