"""The benchmark of the table: a short game for real, and a report that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import talekeeper as tk
from talekeeper.bench.table import FULL, WINDOW, Measured, Report
from talekeeper.cli import main
from talekeeper.table.playing.seating import Setup, begin
from talekeeper.table.storyteller import Storyteller

LONG = FULL + 2 * WINDOW


@pytest.mark.timeout(120)
def test_a_game_that_plays_by_itself_is_measured() -> None:
    done = CliRunner().invoke(main, ["bench", "table", "--rounds", "6", "--party", "2", "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert len(found["cpu"]) == len(found["memory"]) == 6
    assert all(0 < memory < cpu for memory, cpu in zip(found["memory"], found["cpu"], strict=True))
    assert found["per_hundred"] == pytest.approx(sum(found["cpu"]) * 100 / 6)
    assert found["prompts"] >= 6 * 5, "the DM, two of the party, the keeper on each, the narrator"
    assert found["turns"] >= 6 * 5
    assert 0 < found["fullest"] <= 1
    assert found["leaks"] == 0
    assert found["growth"] is None, "so short a game says nothing of it"


async def test_a_turn_in_the_prompt_of_one_who_did_not_hear_it_is_seen(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "story.db") as keeper:
        setup = Setup("tidelamp", ("nell", "osric"), (), 1)
        key = tk.MemoryKey(tenant_id="a", user_id="b", session_id="c")
        table = Measured(await begin(keeper, key, setup, Storyteller))
        turn = await table.whisper("nell", ["nell"], "Nobody else knows.")
        table.quoted = {"nell": {turn.id}}
        assert await table.leaks() == 0
        table.quoted = {"nell": {turn.id}, "osric": {turn.id}}
        assert await table.leaks() == 1


def report(**given: Any) -> Report:
    whole: dict[str, Any] = {
        "cpu": (0.05,) * LONG, "memory": (0.02,) * LONG, "setup": 1.0, "turns": 900, "prompts": 800, "fullest": 1.0, "leaks": 0,
    }  # fmt: skip
    return Report(**{**whole, **given})


def test_a_flat_game_within_its_budgets_misses_nothing() -> None:
    assert report().growth == pytest.approx(1.0)
    assert report().missed() == []
    assert "5.00 s of CPU, 40% of it the memory's" in report().table()
    assert f"around round {LONG - WINDOW // 2}" in report().table()


def test_every_fault_is_a_missed_target() -> None:
    assert len(report(cpu=(0.07,) * LONG).missed()) == 1
    growing = report(memory=tuple(0.01 + 1e-5 * number**2 for number in range(LONG)))
    assert growing.growth is not None
    assert growing.growth > 1.5
    assert len(growing.missed()) == 1
    assert len(report(fullest=1.01).missed()) == 1
    assert len(report(leaks=1).missed()) == 1


def test_one_slow_round_says_nothing_of_growth() -> None:
    assert report(memory=(*((0.02,) * (LONG - 1)), 5.0)).growth == pytest.approx(1.0)
