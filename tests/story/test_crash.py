"""What was acknowledged survives SIGKILL, and two processes may write to one file."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import talekeeper as tk
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("t", "u", "crash")
SEATS = [tk.Seat("dm", role="dm", token_limit=600), tk.Seat("rogue", token_limit=300), tk.Seat("bard", token_limit=300)]
KILLS = 200
CHANGED = "It was the miller who owed it."


async def tell_until_killed(path: str, acknowledged: int, seed: int) -> None:
    """Appends, folds, rewinds and edits for ever; writes a line to the pipe for everything that was acknowledged."""
    chance = random.Random(seed)
    async with tk.open(path, summarizer=MoodyModel(), counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        while True:
            heard_by = chance.choice([None, None, ["rogue"], ["bard"]])
            turn = await story.append(
                "dm", f"Mira owes Voss {chance.randint(2, 900)} gold at the mill by the old bridge.", heard_by=heard_by
            )
            report = {"id": turn.id, "text": turn.text, "seq": turn.seq, "branch": story.version.split(".")[0]}
            os.write(acknowledged, json.dumps(report).encode() + b"\n")
            act = chance.random()
            if act < 0.15:
                await story.settle()
            elif act < 0.2:
                await story.context("rogue", budget=300)
            elif act < 0.22 and story.head > 3:
                await story.edit(story.head - 1, CHANGED)
            elif act < 0.23 and story.head > 8:
                await story.rewind(story.head - 2)


def run_and_kill(path: str, seed: int) -> list[dict[str, str]]:
    """Forks a teller, kills it at a random moment, and returns what it had acknowledged."""
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiver)
        try:
            asyncio.run(tell_until_killed(path, sender, seed))
        finally:
            os._exit(3)
    os.close(sender)
    heard = b""
    deadline = time.monotonic() + 20
    while b"\n" not in heard and time.monotonic() < deadline:  # it must have begun
        if select.select([receiver], [], [], 1)[0]:
            heard += os.read(receiver, 65536)
    time.sleep(random.Random(seed).random() * 0.03)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the teller died by itself: {status}"
    while part := os.read(receiver, 65536):
        heard += part
    os.close(receiver)
    return [json.loads(line) for line in heard.decode().split("\n")[:-1]]


async def look(path: str, acknowledged: dict[str, str]) -> dict[str, object]:
    """What the file holds after the last kill, checked against what was acknowledged."""
    from talekeeper.doctor import examine

    async with tk.open(path, counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY)
        there = {}
        for branch in await story.branches():
            on = await story.switch(branch.name)
            for turn in await on.turns():
                there[turn.id] = turn.text
        findings = await examine(keeper, KEY)
        lost = [name for name, text in acknowledged.items() if there.get(name) not in (text, CHANGED)]
        folds = (await story.stats()).folds
        return {"lost": lost, "turns": len(there), "folds": folds, "findings": [str(f) for f in findings]}


def crash_many_times(path: str) -> None:
    """Runs in a process of its own, without threads, so that it may fork."""
    acknowledged: dict[str, str] = {}
    for seed in range(KILLS):
        for report in run_and_kill(path, seed):
            acknowledged[report["id"]] = report["text"]
    result = asyncio.run(look(path, acknowledged))
    print(json.dumps({**result, "acknowledged": len(acknowledged)}))


@pytest.mark.timeout(600)
def test_two_hundred_kills_lose_nothing_and_fold_nothing_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "crash.db")
    done = subprocess.run([sys.executable, __file__, path], capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["turns"] >= result["acknowledged"] > KILLS
    assert result["folds"] > KILLS / 8, "there were folds to be made twice"
    assert result["lost"] == []
    assert result["findings"] == []


async def append_in_steps(path: str, name: str, count: int) -> None:
    async with tk.open(path, counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        for number in range(count):
            await story.append("dm", f"{name} tells number {number}.", id=f"{name}-{number}")


def test_two_processes_on_one_file_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    asyncio.run(append_in_steps(path, "first", 1))
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    code = f"{here}; import asyncio, test_crash as t; asyncio.run(t.append_in_steps({path!r}, sys.argv[1], 150))"
    tellers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("ana", "bo", "cy")]
    assert [teller.wait(timeout=60) for teller in tellers] == [0, 0, 0]

    async def count() -> list[tk.Turn]:
        async with tk.open(path, counter=tk.Heuristic()) as keeper:
            return await (await keeper.story(KEY)).turns()

    turns = asyncio.run(count())
    assert len(turns) == 451
    assert [turn.seq for turn in turns] == list(range(1, 452))
    for name in ("ana", "bo", "cy"):
        mine = [turn.id for turn in turns if turn.id.startswith(name)]
        assert mine == [f"{name}-{number}" for number in range(150)]


async def test_a_writer_who_saw_an_older_story_gets_a_conflict(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    async with tk.open(path, counter=tk.Heuristic()) as one, tk.open(path, counter=tk.Heuristic()) as two:
        mine = await one.story(KEY, seats=SEATS)
        yours = await two.story(KEY, seats=SEATS)
        await mine.append("dm", "The bell rings once.")
        await yours.context("rogue")
        seen = yours.version
        await mine.append("dm", "The bell rings twice.")
        try:
            await yours.append("dm", "The bell rings for the second time.", expected_version=seen)
        except tk.Conflict:
            pass
        else:
            raise AssertionError("no conflict")
        after = await yours.append("dm", "The bell rings thrice.")
        assert after.seq == 3
        assert [turn.text for turn in await mine.turns()] == [turn.text for turn in await yours.turns()]
        await mine.rewind(1)
        turn = await yours.append("dm", "Silence.")
        assert turn.seq == 2, "the other process follows a rewind"
        assert (await mine.context("rogue")).text == (await yours.context("rogue")).text


async def test_two_processes_see_each_others_model_folds(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    model = MoodyModel()
    async with tk.open(path, counter=tk.Heuristic(), summarizer=model) as one, tk.open(path, counter=tk.Heuristic()) as two:
        mine = await one.story(KEY, seats=SEATS)
        yours = await two.story(KEY, seats=SEATS)
        await mine.append_many([tk.Draft("dm", f"Number {n}: Captain Voss pays Mira {n} gold for the silver key.") for n in range(60)])
        before = await yours.context("rogue", budget=300)
        await mine.settle()
        assert model.calls
        after = await yours.context("rogue", budget=300)
        assert after.text == (await mine.context("rogue", budget=300)).text
        assert after.text != before.text


if __name__ == "__main__":
    crash_many_times(sys.argv[1])
