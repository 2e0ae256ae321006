"""Several who write at the same time, each in a process of its own: all of them get through, and nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import talekeeper as tk
from talekeeper.ports import Commit
from talekeeper.stores import open_store

KEY = tk.MemoryKey("acme", "ana", "crowd")
DM = tk.Seat("dm", role="dm")
WRITERS, EACH = 3, 150
STORIES, LINES = 40, 40


async def write(path: str, name: str) -> None:
    """Appends as fast as it can, in both ways of appending."""
    async with tk.open(path) as keeper:
        story = await keeper.story(KEY)
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(EACH):
            await story.append("dm", f"{name} tells of {number}.", id=f"{name}-{number}" if number % 2 else None)


async def write_to_many(path: str, name: str) -> None:
    """Appends to many stories at once: they come as crowds, which are put in their places meanwhile."""

    async def tell(story: tk.Story) -> None:
        for number in range(LINES):
            await story.append("dm", f"{name} tells of {number}.", location="mill" if number % 3 else None)

    async with tk.open(path) as keeper:
        stories = [await keeper.story(key_of(number)) for number in range(STORIES)]
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*map(tell, stories))


def key_of(number: int) -> tk.MemoryKey:
    return tk.MemoryKey("acme", "ana", f"story {number}")


def run_at_once(how: str, path: str, names: list[str]) -> None:
    """Starts a process for each name, lets them all go at the same moment, and waits until they are done."""
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([sys.executable, __file__, how, path, name], stdin=pipe, stdout=pipe, stderr=pipe, text=True) for name in names
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


def check_told(told: list[str], names: list[str], each: int) -> None:
    """Everything is there once, and of each writer in the order in which it was told."""
    assert len(told) == len(names) * each
    for name in names:
        assert [text for text in told if text.startswith(f"{name} ")] == [f"{name} tells of {number}." for number in range(each)]


async def test_three_processes_that_write_as_fast_as_they_can_all_get_through(tmp_path: Path) -> None:
    path, names = str(tmp_path / "crowd.db"), [f"writer {n}" for n in range(WRITERS)]
    async with tk.open(path) as keeper:
        await keeper.story(KEY, seats=[DM])
    run_at_once("one", path, names)
    async with tk.open(path) as keeper:
        check_told([turn.text for turn in await (await keeper.story(KEY)).turns()], names, EACH)


async def test_two_processes_that_tell_many_stories_at_once_lose_nothing(tmp_path: Path) -> None:
    path, names = str(tmp_path / "crowds.db"), ["Ana", "Ben"]
    async with tk.open(path) as keeper:
        for number in range(STORIES):
            await keeper.story(key_of(number), seats=[DM])
    run_at_once("many", path, names)
    async with tk.open(path) as keeper:
        for number in range(STORIES):
            turns = await (await keeper.story(key_of(number))).turns()
            check_told([turn.text for turn in turns], names, LINES)
            assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
            assert all((turn.location is None) == (int(turn.text.split()[-1][:-1]) % 3 == 0) for turn in turns)


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
        story = await keeper.story(KEY, seats=[DM])
        store.write = lose  # type: ignore[method-assign]
        await story.append("dm", "At last.")
        losses = 0
        await story.append("dm", "At last, once more.", id="mine")
        assert [turn.text for turn in await story.turns()] == ["At last.", "At last, once more."]


if __name__ == "__main__":
    asyncio.run({"one": write, "many": write_to_many}[sys.argv[1]](*sys.argv[2:]))
