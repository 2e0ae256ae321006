"""Files that earlier versions of Talekeeper made, as they made them: a story with a note, whispers, an edit, a pin, a fork, something
forgotten and something undone. A migration that is added gets a file here that the version before it made."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import talekeeper as tk
from talekeeper.doctor import examine, examine_file

DATA = Path(__file__).parent / "data"
KEY = tk.MemoryKey("acme", "ana", "ash-crown")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_a_story_of_an_earlier_version_goes_on_as_it_was(version: int, tmp_path: Path) -> None:
    path = tmp_path / "saga.db"
    path.write_bytes(gzip.decompress((DATA / f"version-{version}.db.gz").read_bytes()))
    for again in range(2):
        async with tk.open(path, counter=tk.Heuristic()) as keeper:
            story = await keeper.story(KEY)
            other = await keeper.story(KEY, branch="what if")
            assert (story.head, other.head) == (66 + again, 40)
            assert [turn.seq for turn in await story.pins()] == [15]
            for seat in ("rogue", "bard"):
                text = (await story.context(seat, budget=2000)).text
                assert "The Ash Crown burns liars." in text
                assert "The coins were false, every last one." in text
                assert len(await story.turns(seat=seat)) == 43 + again
            (hit,) = await story.recall("rogue", "counts 54 gold coins at gate 0", limit=1)
            assert "counts 54 gold coins at gate 0" not in hit.turn.text  # the bard alone heard it
            (hit,) = await story.recall("dm", "counts 54 gold coins at gate 0", limit=1)
            assert "counts 54 gold coins at gate 0" in hit.turn.text
            (hit,) = await other.recall("rogue", "I sell lantern 4 to Mira", limit=1)
            assert hit.turn.text == "I sell lantern 4 to Mira for 6 crowns."
            assert "undone" not in (await story.context("bard", budget=8000)).text
            assert await examine(keeper, KEY) == []
            await story.append("bard", "The story goes on.")
    assert examine_file(path) == []
