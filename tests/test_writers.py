"""Several who write to one story at the same time, each in a process of its own: all of them get through, and nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import talekeeper as tk
from talekeeper.ports import Commit
from talekeeper.stores import open_store

KEY = tk.MemoryKey("acme", "ana", "crowd")
WRITERS, EACH = 3, 150


async def write(path: str, name: str) -> None:
    """Appends as fast as it can, in both ways of appending."""
    async with tk.open(path) as keeper:
        story = await keeper.story(KEY)
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(EACH):
            await story.append("dm", f"{name} tells of {number}.", id=f"{name}-{number}" if number % 2 else None)


async def test_three_processes_that_write_as_fast_as_they_can_all_get_through(tmp_path: Path) -> None:
    path = str(tmp_path / "crowd.db")
    async with tk.open(path) as keeper:
        await keeper.story(KEY, seats=[tk.Seat("dm", role="dm")])
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([sys.executable, __file__, path, f"writer {n}"], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for n in range(WRITERS)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=100)
        assert (writer.returncode, errors) == (0, "")
    async with tk.open(path) as keeper:
        told = [turn.text for turn in await (await keeper.story(KEY)).turns()]
    assert sorted(told) == sorted(f"writer {n} tells of {number}." for n in range(WRITERS) for number in range(EACH))
    for n in range(WRITERS):
        mine = [text for text in told if text.startswith(f"writer {n} ")]
        assert mine == [f"writer {n} tells of {number}." for number in range(EACH)], "in the order in which it was told"


async def test_who_loses_a_hundred_times_gets_through_after_all() -> None:
    store = await open_store(":memory:")
    write, losses = store.write, 0

    async def lose(commit: Commit) -> int:
        nonlocal losses
        if commit.entries and losses < 100:
            losses += 1
            raise tk.Conflict("someone else was first")
        return await write(commit)

    async with tk.open(store) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm")])
        store.write = lose  # type: ignore[method-assign]
        await story.append("dm", "At last.")
        losses = 0
        await story.append("dm", "At last, once more.", id="mine")
        assert [turn.text for turn in await story.turns()] == ["At last.", "At last, once more."]


if __name__ == "__main__":
    asyncio.run(write(*sys.argv[1:]))
