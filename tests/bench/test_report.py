from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from talekeeper.bench.report import Bare, Footprint, Point, Rate, Report, Throughput, exponent

SIZES = (100, 1_000, 10_000, 100_000)


def point(system: str, turns: int, times: float = 1.0) -> Point:
    return Point(
        system=system, turns=turns, cpu_us=300 * times, cpu_ratio=times, cpu_mean_us=320 * times, bytes_written=5_000 * times,
        resume_us=600 * times, context_chars=34_000, measured=500,
    )  # fmt: skip


def report(
    *points: Point, share: float = 0.5, packages: tuple[str, ...] | None = ("click", "talekeeper"), import_ms: float = 50
) -> Report:  # fmt: skip
    ceiling = Rate(rows_per_second=300_000, cpu_us=3)
    return Report(
        points=(*(point("L", size) for size in SIZES), *points),
        limit="L",
        ours="ours",
        throughput=Throughput(
            stories=1_000,
            ours=Rate(rows_per_second=300_000 * share, cpu_us=9),
            bare=(Bare(table="a table", rate=ceiling, share=share), Bare(table="a leaner one", rate=ceiling, share=share / 2)),
            waited_ms=40,
        ),
        footprint=Footprint(import_ms=import_ms, ready_ms=90, yardstick_ms=100, packages=packages),
        skipped={"a peer": "to compare, install it"},
    )


def test_the_exponent_is_the_slope_in_logarithms() -> None:
    assert exponent([(1_000, 7), (10_000, 7), (100_000, 7)]) == pytest.approx(0)
    assert exponent([(1_000, 2), (100_000, 200)]) == pytest.approx(1)
    assert exponent([(1_000, 5), (10_000, 5 * 10**0.5), (100_000, 50)]) == pytest.approx(0.5)
    assert exponent([(1_000, 5)]) is None


def test_all_targets_are_met_by_a_system_like_the_limit() -> None:
    good = report(*(point("ours", size, 1.4) for size in SIZES))
    assert good.missed() == []
    assert [(target.sense, target.bound) for target in good.targets()] == [
        ("<=", 2), ("<=", 3), ("<=", 0.05), ("<=", 0.05), ("<=", 0.05), (">=", 0.2), ("<=", 1.5), ("<=", 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        (report(*(point("ours", size, 2.5) for size in SIZES)), ["folding included: CPU"]),
        (report(*(point("ours", size, 3.5) for size in SIZES)), ["folding included: CPU", "bytes written"]),
        (report(*(point("ours", size) for size in SIZES), import_ms=160), ["import talekeeper"]),
        (report(*(point("ours", size, 1 + size / 200_000) for size in SIZES)), ["exponent: cpu", "exponent: bytes", "exponent: resume"]),
        (report(*(point("ours", size) for size in SIZES), share=0.1), ["stories at once"]),
        (report(*(point("ours", size) for size in SIZES), packages=tuple("abcdefghi")), ["packages of the core"]),
    ],
)
def test_a_missed_target_is_named(changed: Report, missed: list[str]) -> None:
    lines = changed.missed()
    assert len(lines) == len(missed)
    assert all(name in line for name, line in zip(missed, lines, strict=True))


def test_the_worst_length_of_story_decides() -> None:
    ours = report(point("ours", 100), point("ours", 1_000, 2.2), point("ours", 10_000), point("ours", 100_000))
    assert any("worst at 1,000 turns" in line for line in ours.missed())


def test_what_was_not_measured_is_no_miss_but_is_said() -> None:
    short = Report(points=(point("L", 100), point("ours", 100)), limit="L", ours="ours")
    assert short.missed() == []
    assert "needs 1,000 and 100,000 turns" in short.table()


def test_the_table_shows_ratios_dashes_and_what_to_install() -> None:
    table = report(*(point("ours", size, 1.4) for size in SIZES), point("peer", 100, 12)).table()
    (peer,) = [line for line in table.splitlines() if line.startswith("  peer") and "3,600" in line]
    assert "(12.0)" in peer
    assert peer.count("–") == 4  # three lengths of story and the growth
    assert "a peer: to compare, install it" in table


def test_json_is_plain_and_complete() -> None:
    found = json.loads(json.dumps(report(*(point("ours", size, 1.4) for size in SIZES)).to_json()))
    assert {target["name"] for target in found["targets"] if target["missed"]} == set()
    assert found["growth"]["ours"] == pytest.approx({"cpu": 0, "bytes": 0, "resume": 0})
    assert [bare["share"] for bare in found["throughput"]["bare"]] == [0.5, 0.25]


def test_the_plot_is_well_formed_and_names_every_system() -> None:
    svg = report(*(point("ours", size, 1.4) for size in SIZES), point("peer <1 & only>", 100, 12)).svg()
    texts = {element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"L", "ours", "peer <1 & only>", "100k", "turns in the story"} <= texts
