from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from talekeeper.bench import engine
from talekeeper.bench.engine import Options, measure, run
from talekeeper.bench.report import Point
from talekeeper.bench.systems import Limit, System, Talekeeper
from talekeeper.bench.workload import Line


def quiet(_: str) -> None:
    pass


class Forgetful(Limit):
    """Accepts everything, shows nothing."""

    name = "forgetful"

    async def context(self, seat: str) -> str:
        return ""


class Absent(Limit):
    name = "absent"
    needs = "absent-package"

    def __init__(self) -> None:
        raise ImportError


class Slow(Limit):
    name = "slow"
    needs = "patience"

    async def append(self, line: Line) -> None:
        time.sleep(0.02)
        await super().append(line)


async def measured(systems: Sequence[type[System]], directory: Path, **options: object) -> dict[tuple[str, int], Point]:
    directory.mkdir(parents=True, exist_ok=True)
    small = Options(**{"sizes": (100, 400), "rounds": 3, "batch": 10, "resumes": 1, **options})  # type: ignore[arg-type]
    return {(point.system, point.turns): point for point in await measure(systems, small, directory, quiet)}


def test_the_quick_run_ends_in_time_and_tells_what_it_does(tmp_path: Path) -> None:
    told: list[str] = []
    began = time.process_time()
    report = run(Options.quick(), told.append)
    assert time.process_time() - began < 20
    assert report.systems == [Limit.name, Talekeeper.name]
    assert all(target.value is not None for target in report.targets() if "turn" in target.name)
    assert report.throughput is not None
    assert report.footprint is not None
    assert len(told) > 10


async def test_bytes_written_repeat(tmp_path: Path) -> None:
    first = await measured([Limit], tmp_path / "first")
    second = await measured([Limit], tmp_path / "second")
    for cell, point in first.items():
        assert point.bytes_written == pytest.approx(second[cell].bytes_written, rel=0.02)


async def test_the_limit_is_one_times_itself(tmp_path: Path) -> None:
    assert [point.cpu_ratio for point in (await measured([Limit], tmp_path)).values()] == pytest.approx([1, 1])


async def test_a_system_that_does_not_show_the_newest_turn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="forgetful does not show the newest turn"):
        await measured([Limit, Forgetful], tmp_path)


def test_a_slow_peer_does_fewer_turns_and_only_short_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PEERS", (Slow, Absent))
    small = replace(Options.quick(), sizes=(100, 400), rounds=7, resumes=1, stories=40, starts=1)
    report = run(replace(small, peers=True, batch_seconds=0.01, peer_turns=100), quiet)
    assert report.systems == [Limit.name, Talekeeper.name, Slow.name]
    slow = report.point(Slow.name, 100)
    assert slow is not None
    assert slow.measured == 3  # one turn in a third of the rounds
    assert report.point(Slow.name, 400) is None
    assert "install absent-package" in report.skipped["absent"]


async def test_a_story_is_not_measured_when_it_is_twice_as_long_as_it_was(tmp_path: Path) -> None:
    points = await measured([Limit], tmp_path, rounds=30)
    assert points[Limit.name, 100].measured == 17 * 5  # with one more turn before each batch: 102, and three to warm up
    assert points[Limit.name, 400].measured == 30 * 10
