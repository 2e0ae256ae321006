"""Long games that play themselves: flat cost, budgets kept, secrets kept, undone and played again, killed and taken up."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conftest import OpenKeeper

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask, Brain
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Budgets, Setup, Table, begin, resume
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.scenario import Scenario

KEY = tk.MemoryKey("local", "local", "long")
PARTY = ("nell", "osric", "ibbi")
BUDGETS = Budgets(dm=1500, pc=900)


class Watched:
    """A storyteller whose every prompt is kept until someone has looked at it."""

    def __init__(self, scenario: Scenario) -> None:
        self._teller: Brain = Storyteller(scenario)
        self.asks: list[Ask] = []

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        self.asks.append(ask)
        async for piece in self._teller.speak(ask):
            yield piece

    async def rule(self, ask: Ask) -> KeeperResponse:
        self.asks.append(ask)
        return await self._teller.rule(ask)


class Failing(Watched):
    """The same, but every so often it does not answer, and the round has to be played again."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        super().__init__(scenario)
        self._random = random.Random(seed)

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        if self._random.random() < 0.06:
            yield "The door op"
            raise tk.ModelFailed("the model broke off")
        async for piece in super().speak(ask):
            yield piece

    async def rule(self, ask: Ask) -> KeeperResponse:
        if self._random.random() < 0.06:
            raise tk.ModelFailed("the model did not answer")
        return await super().rule(ask)


async def begun(keeper: tk.Keeper, brain: type[Watched] = Watched, seed: int = 11) -> tuple[Table, Watched]:
    made: list[Watched] = []

    def brains(scenario: Scenario) -> Brain:
        made.append(brain(scenario))
        return made[-1]

    table = await begin(keeper, KEY, Setup("tidelamp", PARTY, (), seed), brains, budgets=BUDGETS)
    return table, made[0]


async def play(game: Game) -> None:
    async for _ in game.round():
        pass


def prompt(ask: Ask) -> str:
    return "\n".join([ask.context.text, str(ask.scene), str(ask.said), ask.action])


async def told(table: Table) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(turn.speaker, turn.text, turn.audience) for turn in await table.story.turns()]


@pytest.mark.timeout(1800)
async def test_a_game_of_300_rounds_is_flat_within_budget_and_keeps_every_secret(open_file: OpenKeeper) -> None:
    table, brain = await begun(await open_file())
    spent: list[float] = []
    whole: list[float] = []
    secret: dict[str, set[str]] = {seat: set() for seat in PARTY}
    heard: dict[str, set[str]] = {seat: set() for seat in PARTY}
    seen = 0
    async with Game(table) as game:
        for number in range(1, 301):
            brain.asks.clear()
            start = time.process_time()
            await play(game)
            whole.append(time.process_time() - start)
            assert await table.round_now() == number + 1
            start = time.process_time()
            for seat in PARTY:
                await table.remember(seat, place=None, present=(), query="the lamp")
            spent.append(time.process_time() - start)
            turns = await table.story.turns(after=seen)
            seen = turns[-1].seq
            for seat in PARTY:
                heard[seat] |= {turn.text for turn in turns if seat in turn.audience}
                secret[seat] |= {turn.text for turn in turns if seat not in turn.audience and len(turn.text) > 30}
                secret[seat] -= heard[seat]
            for ask in brain.asks:
                assert ask.context.tokens <= ask.context.budget <= BUDGETS.dm
                if ask.role == "pc":
                    leaked = [text for text in secret[ask.seat] if text in prompt(ask)]
                    assert not leaked, (ask.seat, leaked)
    early, late = sorted(spent[10:30])[10], sorted(spent[-20:])[10]
    assert late < 3 * early, f"remembering took {early * 1e3:.1f} ms at first and {late * 1e3:.1f} ms in the end"
    first, last = sorted(whole[10:30])[10], sorted(whole[-20:])[10]
    assert last < 3 * first, f"a round took {first * 1e3:.1f} ms at first and {last * 1e3:.1f} ms in the end"
    assert (await table.state()).ending, "the story got to its end, and went on"


async def test_undo_at_any_point_and_the_same_story_comes_again(keeper: tk.Keeper) -> None:
    table, _ = await begun(keeper)
    async with Game(table) as game:
        for _ in range(12):
            await play(game)
        story, state = await told(table), await table.state()
        for back in (1, 5, 11):
            await table.undo(back)
            for _ in range(back):
                await play(game)
            assert await told(table) == story
            assert await table.state() == state


async def test_the_same_seed_tells_the_same_story_and_another_one_another(open_keeper: OpenKeeper) -> None:
    stories = []
    for seed in (11, 11, 12):
        table, _ = await begun(await open_keeper(":memory:"), seed=seed)
        async with Game(table) as game:
            for _ in range(6):
                await play(game)
        stories.append(await told(table))
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


async def test_a_cast_that_fails_at_random_loses_nothing(keeper: tk.Keeper) -> None:
    made: list[Failing] = []

    def brains(scenario: Scenario) -> Brain:
        made.append(Failing(scenario, 5))
        return made[-1]

    table = await begin(keeper, KEY, Setup("tidelamp", PARTY, (), 11), brains, budgets=BUDGETS)
    failures = played = 0
    async with Game(table) as game:
        while played < 25:
            before = await told(table)
            try:
                await play(game)
                played += 1
                assert len(await told(table)) > len(before)
            except tk.ModelFailed:
                failures += 1
                assert await told(table) == before
    assert failures >= 5
    assert not any("The door op" in text for _, text, _ in await told(table))
    assert await table.round_now() == 26


CHILD = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.table.test_long_games import main
asyncio.run(main({path!r}))
"""


async def main(path: str) -> None:
    """A process that plays until it is killed, and says after each round how far it is."""
    async with tk.open(path, counter=tk.Heuristic()) as keeper:
        table, _ = await begun(keeper)
        async with Game(table, Path(path + ".rounds")) as game:
            for number in range(1, 200):
                await play(game)
                print(number, flush=True)


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.75])
async def test_killed_in_the_middle_of_a_round_and_taken_up(tmp_path: Path, delay: float) -> None:
    path, root = str(tmp_path / "game.db"), str(Path(__file__).parents[2])
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD.format(root=root, path=path), stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    assert child.stdout is not None
    for _ in range(4):
        line = await child.stdout.readline()
    await asyncio.sleep(delay)
    child.send_signal(signal.SIGKILL)
    rest = await child.stdout.read()
    await child.wait()
    acknowledged = int((line + rest).split()[-1])
    async with tk.open(path, counter=tk.Heuristic()) as keeper:
        table = await resume(keeper, KEY, Storyteller, budgets=BUDGETS)
        assert await table.round_now() - 1 in (acknowledged, acknowledged + 1)
        async with Game(table, Path(path + ".rounds")) as game:
            await play(game)
            await play(game)
        taken_up = await told(table)
        rounds = await table.round_now() - 1
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        table, _ = await begun(keeper)
        async with Game(table) as game:
            for _ in range(rounds):
                await play(game)
        assert await told(table) == taken_up, "as if nothing had happened"
