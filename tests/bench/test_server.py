"""The benchmark of the server: a short run for real, and a report that says what is wrong."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.server.conftest import Server

from talekeeper.bench.players import Player
from talekeeper.bench.server import Report, Times
from talekeeper.cli import main

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(300)]


def test_many_stories_at_once_lose_nothing() -> None:
    done = CliRunner().invoke(
        main, ["bench", "server", "--stories", "12", "--seconds", "5", "--past", "3", "--json"], catch_exceptions=False
    )
    found = json.loads(done.stdout)
    assert (found["errors"], found["lost"]) == ([], 0)
    assert found["rounds"] >= 12
    assert found["turns"] > 5 * found["rounds"]
    assert found["answers"]["count"] >= 12
    assert 0 < found["requests"]["p50"] <= found["requests"]["p99"]
    assert found["memory"][-1][1] > 20
    assert found["growth"] is None, "so short a run says nothing of it"
    assert "reached  lost turns" in report(**{name: found[name] for name in ("rounds", "turns", "lost")}).table()


async def test_what_is_lost_or_not_heard_is_seen(tmp_path: Path) -> None:
    server = Server(tmp_path, None).start()
    player = Player(server.url, "none", "one", "tidelamp", ["nell", "osric"], 3)
    await player.begin()
    await player.play(time.monotonic() + 0.1, 0.0)
    await player.look_back()
    assert (player.diary.rounds, player.diary.lost, player.diary.errors) == (1, 0, [])
    player.diary.did += Counter({"I did what nobody wrote down.": 2})
    player.diary.heard.pop()
    await player.look_back()
    assert player.diary.lost == 3
    await player._line.ask("DELETE", "/stories/bench.one")
    await player.play(time.monotonic() + 0.1, 0.0)
    assert "404" in player.diary.errors[-1]
    await player.leave()
    server.stop()


def report(**given: Any) -> Report:
    times = Times.of([0.1, 0.2, 0.3])
    whole: dict[str, Any] = {
        "seconds": 600.0, "rounds": 300, "turns": 3000, "lost": 0, "requests": times, "answers": times, "errors": (), "cpu": 500.0,
        "memory": tuple((float(at), 200.0 + (at if at < 100 else 100)) for at in range(0, 601, 10)), "options": {"stories": 10},
    }  # fmt: skip
    return Report(**{**whole, **given})


def test_memory_that_fills_caches_is_flat_and_memory_that_grows_is_not() -> None:
    assert report().growth == pytest.approx(1.0)
    assert report().missed() == []
    growing = report(memory=tuple((float(at), 200.0 + at) for at in range(0, 601, 10)))
    assert growing.growth == pytest.approx(740 / 380, rel=0.05)
    assert [line for line in growing.missed() if "memory" in line]
    assert "not measured" in report(memory=(), cpu=None).table()


def test_every_error_and_every_lost_turn_is_a_missed_target() -> None:
    assert len(report(errors=("Refused: 503",)).missed()) == 1
    assert "Refused: 503" in report(errors=("Refused: 503",)).table()
    assert len(report(lost=1).missed()) == 1
    assert len(report(rounds=9).missed()) == 1
    assert len(report(requests=Times.of([0.1] * 90 + [30.0] * 10)).missed()) == 1
    assert report().to_json()["turns_per_second"] == 5.0


def test_times_of_few_are_theirs() -> None:
    assert (Times.of([]).p99, Times.of([0.5]).p50, Times.of([0.5]).p99) == (0.0, 0.5, 0.5)
