"""A long game with models that fail at random: they time out, break off, decline, talk nonsense, run on. The game goes on, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.conftest import OpenKeeper
from tests.table.test_long_games import BUDGETS, KEY, PARTY

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask, Brain
from talekeeper.table.cast import Mishap, ModelBrain, Patience
from talekeeper.table.playing.rounds import Beat, Game
from talekeeper.table.playing.seating import Setup, Table, begin
from talekeeper.table.storyteller import Storyteller

PATIENT = Patience(silence=0.1, whole=5, attempts=2, pause=0.0)
QUIET: dict[str, Any] = {
    "resolution": "DC 9. Rolled 12. Done.", "moment_type": None, "moment_summary": None, "moment_significance": 0.1, "commands": [],
}  # fmt: skip
BAD_SPEECHES = ("", " \n ", "I'm sorry, but I can't assist with that request.", '{"oops": ', "<html>502 Bad Gateway</html>", "and " * 200)
BAD_RULINGS = (
    "", "{", "I cannot help with that.", "[]", json.dumps({"resolution": "Yes."}), json.dumps({**QUIET, "resolution": "x" * 5000}),
    json.dumps({**QUIET, "commands": [{"type": "fly_to_the_moon"}]}), json.dumps({**QUIET, "commands": [{"type": "kill"}] * 20}),
    json.dumps({**QUIET, "moment_significance": "very"}), json.dumps({**QUIET, "moment_type": "birthday"}),
)  # fmt: skip
_ASIDE = re.compile(r"I whisper to (\w+): (.*?canary-\d+[^\n]*)")


class Moody:
    """A model that answers well most of the time. Player characters whisper canaries to each other; every prompt is kept."""

    def __init__(self, seed: int, trouble: float) -> None:
        self.random = random.Random(seed)
        self.trouble = trouble
        self.numbers = itertools.count(1)
        self.prompts: list[tuple[str, str]] = []
        self.canaries: dict[str, set[str]] = {}
        self.model = FunctionModel(stream_function=self._speak, model_name="moody")

    async def _speak(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        told = [str(getattr(part, "content", "")) for message in messages for part in message.parts]
        ruling = "keeper of the rules" in told[0]
        found = re.search(r"## You\n- Name: (\w+)", told[1])
        seat = found[1].casefold() if found else "dm"
        self.prompts.append((seat, "\n".join(told)))
        mood = self.random.random()
        if mood < self.trouble:
            async for piece in self._trouble(ruling):
                yield piece
            return
        answer = self._ruling(told[1]) if ruling else self._speech(seat)
        for at in range(0, len(answer), 40):
            yield answer[at : at + 40]

    async def _trouble(self, ruling: bool) -> AsyncIterator[str]:
        kind = self.random.randrange(10)
        if kind == 0:
            await asyncio.sleep(3600)
        elif kind == 1:
            raise ConnectionError("connection reset by peer")
        elif kind == 2:
            yield self._story() * 2
            raise TimeoutError("read timed out")
        elif kind == 3:
            for _ in range(200):
                yield self._story()
        else:
            yield self.random.choice(BAD_RULINGS if ruling else BAD_SPEECHES)

    def _story(self) -> str:
        number = next(self.numbers)
        return (
            f"Somewhere a shutter bangs {number} times, and {self.random.choice(('rain', 'smoke', 'fog', 'gull song'))} comes in with it. "
        )

    def _speech(self, seat: str) -> str:
        if seat != "dm" and self.random.random() < 0.25:
            other = self.random.choice([one for one in PARTY if one != seat])
            canary = f"canary-{next(self.numbers)}"
            self.canaries[canary] = {seat, other}
            return f"I whisper to {other.capitalize()}: the word is {canary}, and nobody else is to have it from you or from me."
        return (
            (self._story() + self._story()).strip() if seat == "dm" else f"I look around, for the {next(self.numbers)}th time in this game."
        )

    def _ruling(self, prompt: str) -> str:
        aside = _ASIDE.search(prompt.rpartition("## The Action")[2])
        commands = [{"type": "whisper", "to": [aside[1]], "text": aside[2]}] if aside else []
        return json.dumps({**QUIET, "resolution": f"DC 9. Rolled {next(self.numbers) % 20}. Done.", "commands": commands})


class Watched:
    """A brain that keeps what it is asked."""

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.asks: list[Ask] = []

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        self.asks.append(ask)
        async for piece in self.brain.speak(ask):
            yield piece

    async def rule(self, ask: Ask) -> KeeperResponse:
        self.asks.append(ask)
        return await self.brain.rule(ask)


async def begun(keeper: tk.Keeper, moody: Moody, seen: list[Mishap]) -> tuple[Table, Watched]:
    made: list[Watched] = []

    def brains(scenario: Any) -> Brain:
        made.append(Watched(ModelBrain({"default": moody.model}, Storyteller(scenario), patience=PATIENT, notice=seen.append)))
        return made[-1]

    table = await begin(keeper, KEY, Setup("tidelamp", PARTY, (), 7), brains, budgets=BUDGETS)
    return table, made[0]


async def played(game: Game) -> tuple[list[str], int]:
    """One round, begun anew where a model breaks off in the middle of its words: what was heard in the end, and how often it broke."""
    for broken in itertools.count():
        said: list[Beat] = []
        try:
            async for beat in game.round():
                said.append(beat)  # noqa: PERF401
            return _speeches(said), broken
        except tk.ModelFailed:
            continue
    raise AssertionError


def _speeches(beats: list[Beat]) -> list[str]:
    """What was said to its end."""
    whole, text = list[str](), ""
    for beat in beats:
        if beat.kind == "speech":
            text += beat.text
        elif beat.kind == "end":
            whole.append(text.strip())
            text = ""
    return [one for one in whole if one]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("rounds", "seed"), [(60, 3), pytest.param(300, 4, marks=pytest.mark.slow)])
async def test_models_that_fail_at_random_lose_nothing(open_file: OpenKeeper, rounds: int, seed: int) -> None:
    moody, seen, spent, broken = Moody(seed, trouble=0.2), list[Mishap](), list[float](), 0
    remembered: set[str] = set()
    table, brain = await begun(await open_file(), moody, seen)
    async with Game(table) as game:
        for number in range(1, rounds + 1):
            before = len(await table.story.turns())
            moody.prompts.clear()
            brain.asks.clear()
            heard, failures = await played(game)
            broken += failures
            turns = (await table.story.turns())[before:]
            told = [turn.text for turn in turns]
            assert not [text for text in told if not text.strip()]
            assert await table.round_now() == number + 1
            assert {ask.seat for ask in brain.asks} == {"dm", *PARTY}, "everyone had a turn, though the storyteller may say nothing in it"
            assert len({turn.speaker for turn in turns} & {"dm", *PARTY}) >= 3
            assert not [text for text in heard if text not in told], "what was heard is what was written"
            assert all(ask.context.tokens <= ask.context.budget for ask in brain.asks)
            assert {ask.context.budget for ask in brain.asks} == {BUDGETS.dm, BUDGETS.pc}
            for seat, prompt in moody.prompts:
                named = set(re.findall(r"canary-\d+", prompt)) if seat != "dm" else set()
                leaked = [name for name in named if seat not in moody.canaries[name]]
                assert not leaked, (number, seat, leaked)
                remembered |= named
            start = time.process_time()
            for seat in PARTY:
                await table.remember(seat, place=None, present=(), query="the word is canary")
            spent.append(time.process_time() - start)
    reasons = {(mishap.role, mishap.then) for mishap in seen}
    assert {"again", "fallback", "raised"} <= {then for _, then in reasons}
    assert {"dm", "pc", "keeper", "narrator"} <= {role for role, _ in reasons}
    assert broken >= 1
    assert len(moody.canaries) >= rounds // 4
    assert remembered, "those who heard a secret have it in their prompts"
    texts = "\n".join(turn.text for turn in await table.story.turns())
    assert "assist with that request" not in texts
    assert "Bad Gateway" not in texts
    early, late = sorted(spent[10:30])[10], sorted(spent[-20:])[10]
    assert late < 3 * early, f"remembering took {early * 1e3:.1f} ms at first and {late * 1e3:.1f} ms in the end"
    await kept(table, moody)


async def kept(table: Table, moody: Moody) -> None:
    """Whoever heard a secret can still say it, and nobody else ever could."""
    whispered = {name: hearers for name, hearers in moody.canaries.items() if await table.story.recall("dm", name, limit=1)}
    assert whispered
    for name, hearers in list(whispered.items())[:: max(1, len(whispered) // 20)]:
        for seat in PARTY:
            found = any(re.search(rf"{name}\b", hit.turn.text) for hit in await table.story.recall(seat, name, limit=3))
            assert not found or seat in hearers, (name, seat)
