from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import talekeeper as tk
from talekeeper.cli import main
from talekeeper.cli.screen import width
from talekeeper.demo import BUDGET, KEY, SCRIPT, SEATS, SECRET, play
from talekeeper.doctor import examine


async def test_each_seat_remembers_what_it_heard_and_no_more(tmp_path: Path) -> None:
    shown = await play(tmp_path / "demo.db", pause=False, quiet=True)
    contexts = shown["contexts"]
    assert "Piers" in contexts["rogue"]
    assert "Piers" in contexts["dm"]
    assert "Piers" not in contexts["bard"]
    assert any("twenty marks" in text for text in shown["only_the_rogue_knows"])
    assert "Piers Vale paid me" in shown["recall"]["rogue"][0]
    assert all("Piers" not in text for text in shown["recall"]["bard"])


async def test_the_story_has_everything_it_is_to_show(tmp_path: Path) -> None:
    await play(tmp_path / "demo.db", pause=False, quiet=True)
    async with tk.open(tmp_path / "demo.db") as keeper:
        story = await keeper.story(KEY, branch="main~1")
        kinds = {turn.kind for turn in await story.turns(kinds=["said", "whisper", "thought", "note", "session", "enter", "leave", "edit"])}
        assert kinds == {"said", "whisper", "thought", "note", "session", "enter", "leave", "edit"}
        assert 35 <= len(SCRIPT) <= 50
        for seat in SEATS:
            context = await story.context(seat.id, budget=BUDGET)
            assert context.tokens <= BUDGET
            assert context.block("story") is not None
        assert await examine(keeper, KEY) == []


async def test_the_file_holds_the_story_that_was_shown(tmp_path: Path) -> None:
    shown = await play(tmp_path / "demo.db", pause=False, quiet=True)
    async with tk.open(tmp_path / "demo.db") as keeper:
        story = await keeper.story(KEY)
        assert [hit.turn.text for hit in await story.recall("rogue", SECRET, limit=2)] == shown["recall"]["rogue"]


async def test_a_story_that_is_there_is_not_told_over(tmp_path: Path) -> None:
    await play(tmp_path / "demo.db", pause=False, quiet=True)
    with pytest.raises(tk.InvalidInput, match="choose another file"):
        await play(tmp_path / "demo.db", pause=False, quiet=True)


@pytest.mark.parametrize("columns", [80, 100])
def test_it_fits_the_terminal_and_is_plain_where_there_is_none(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = CliRunner().invoke(main, ["demo"]).stdout
    assert max(width(line) for line in out.splitlines()) <= columns
    assert "\x1b" not in out
    assert "every memory is what it was, to the byte" in " ".join(out.split())
    for act in ("The story", "What each remembers", "What Wren knows and Corin does not", "Why this", "three answers", "Going back"):
        assert re.search(rf"^── \d  .*{act}", out, re.M), act


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "talekeeper", "demo", "--fast"]
    done = subprocess.run(command, cwd=tmp_path, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
