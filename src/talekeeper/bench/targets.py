"""What is to be reached, and what every report says of it, of the machine and of how it was asked."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

Progress = Callable[[str], None]
"""Is told, a line at a time, what is going on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Options of a benchmark that makes files: where."""

    directory: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """All of the options, with the directory that was meant."""
        return asdict(self) | {"directory": str(self.directory or tempfile.gettempdir())}


def machine() -> dict[str, str]:
    """What was measured on."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A number to reach. `value` is None where it was not measured, and `note` says why, or at what length of story it was worst."""

    name: str
    sense: Literal["<=", ">="]
    bound: float
    value: float | None
    unit: str = ""
    note: str = ""

    @property
    def missed(self) -> bool:
        return self.value is not None and (self.value > self.bound if self.sense == "<=" else self.value < self.bound)

    def __str__(self) -> str:
        verdict = "–" if self.value is None else "MISSED" if self.missed else "reached"
        value = "not measured" if self.value is None else f"{self.value:.3g}{self.unit}"
        note = f"   ({self.note})" if self.note else ""
        return f"{verdict:<7}  {self.name:<46} {value:>12}  {self.sense} {self.bound:g}{self.unit}{note}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(ABC):
    """The result of a benchmark, on what machine and with which options it was got."""

    benchmark: ClassVar[str]
    machine: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @abstractmethod
    def targets(self) -> Sequence[Target]:
        """Every target, met or not."""

    @abstractmethod
    def measured(self) -> Mapping[str, Any]:
        """The numbers as plain JSON values."""

    @abstractmethod
    def table(self) -> str:
        """The report for a terminal."""

    def missed(self) -> list[str]:
        """A line for each target that was measured and missed."""
        return [str(target) for target in self.targets() if target.missed]

    def verdicts(self) -> str:
        """All targets as lines."""
        return "\n".join(["Targets", *(f"  {target}" for target in self.targets())])

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        targets = [asdict(target) | {"missed": target.missed} for target in self.targets()]
        about = {"benchmark": self.benchmark, "machine": dict(self.machine), "options": dict(self.options)}
        return {**about, **self.measured(), "targets": targets}
