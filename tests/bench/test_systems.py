from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from talekeeper.bench.peers import PEERS
from talekeeper.bench.systems import BUDGET, Limit, System, Talekeeper
from talekeeper.bench.workload import MASTER, story

LINES = story(330)


def make(kind: type[System]) -> System:
    try:
        return kind()
    except ImportError:
        pytest.skip(f"needs {kind.needs}")


@pytest.mark.filterwarnings("ignore")  # a peer's warnings are its own affair
@pytest.mark.parametrize("kind", [Limit, Talekeeper, *PEERS], ids=lambda kind: kind.__name__)
async def test_a_system_shows_its_newest_turn_at_once_and_after_a_resume(kind: type[System], tmp_path: Path) -> None:
    newest = LINES[300]
    words = max(re.split("[\"']", newest.text), key=len)
    system = make(kind)
    await system.open(tmp_path / "story.db")
    await system.prefill(LINES[:300])
    await system.append(newest)
    assert words in system.show(await system.context(newest.speaker))
    await system.settle()
    await system.close()

    system = make(kind)
    await system.open(tmp_path / "story.db")
    assert words in system.show(await system.context(MASTER))
    await system.close()


@pytest.mark.parametrize("kind", [Limit, Talekeeper], ids=lambda kind: kind.__name__)
async def test_a_context_is_near_the_budget_once_the_story_is_long_enough(kind: type[System], tmp_path: Path) -> None:
    system = kind()
    await system.open(tmp_path / "story.db")
    await system.prefill(LINES)
    words = len(system.show(await system.context(MASTER)).split())
    await system.close()
    assert BUDGET * 0.4 < words * 1.3 < BUDGET * 1.1


async def test_the_limit_is_durable_and_keeps_each_row_whole(tmp_path: Path) -> None:
    limit = Limit()
    await limit.open(tmp_path / "limit.db")
    await limit.prefill(LINES[:10])
    await limit.append(LINES[10])
    with closing(sqlite3.connect(tmp_path / "limit.db")) as other:
        rows = other.execute("SELECT seq, speaker, text, audience, location, tokens FROM turns ORDER BY seq").fetchall()
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await limit.close()
    assert rows == [(n, ln.speaker, ln.text, ",".join(ln.heard_by), ln.location, ln.tokens) for n, ln in enumerate(LINES[:11], 1)]
