"""What a game costs that plays by itself: the built-in storyteller, a whole party, round after round, and every prompt made in full.

A round asks the DM, each of the party, the keeper on each action, and the narrator, and every one of them gets the context that a language
model would get. What is measured is processor time of the whole process: of a round, and in it of the memory's work (contexts, and writing
the round with the memories that it gives reason for). The memory's work is flat where rounds at the end cost no more than rounds that
have a past to fold; the first few, whose whole past fits a prompt, cost less.

Every prompt is looked at: whether it is within its budget, and whether each turn that it quotes was heard by the one who gets it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, TypeVar

import talekeeper as tk
from talekeeper.bench.targets import Judged, Placed, Progress, Target, machine
from talekeeper.errors import InvalidInput
from talekeeper.model import Context, Turn
from talekeeper.table import packs
from talekeeper.table.brain import Ask, Part
from talekeeper.table.playing.flight import DM, Flight, Told
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Setup, Table, begin
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.gamestate import GameState

V = TypeVar("V")
WINDOW = 20
"""So many rounds together say what one costs at some place of the story."""
FULL = 30
"""From this round on prompts are full, and there is a past to fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Placed):
    """What is played, and for how long."""

    rounds: int = 300
    scenario: str = "tidelamp"
    party: int = 3
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Judged):
    """The result of `talekeeper bench table`. `cpu` and `memory`: seconds of processor time, round by round."""

    benchmark: ClassVar = "table"
    cpu: tuple[float, ...]
    memory: tuple[float, ...]
    setup: float
    turns: int
    prompts: int
    fullest: float
    """The fullest prompt, as a share of its budget."""
    leaks: int
    """Turns in prompts that the one who got it did not hear."""

    @property
    def per_hundred(self) -> float:
        """Seconds of processor time for a hundred rounds."""
        return sum(self.cpu) * 100 / len(self.cpu)

    @property
    def places(self) -> list[int]:
        """Rounds at which it is told what one costs: early, when prompts have just become full, in the middle and at the end."""
        last = len(self.cpu) - WINDOW // 2
        return sorted({place for place in (10, FULL + WINDOW // 2, len(self.cpu) // 2, last) if 10 <= place <= last})

    def at(self, spent: Sequence[float], place: int) -> float:
        """What a round costs around that one: the median."""
        return median(spent[max(0, place - WINDOW // 2) : place + WINDOW // 2])

    @property
    def growth(self) -> float | None:
        """The memory's work at the end by that when prompts had just become full; None where the game was too short to say."""
        if len(self.memory) < FULL + 2 * WINDOW:
            return None
        return self.at(self.memory, len(self.memory) - WINDOW // 2) / self.at(self.memory, FULL + WINDOW // 2)

    def targets(self) -> list[Target]:
        flat = f"memory's work, at the end by round {FULL + WINDOW // 2}"
        note = f"needs {FULL + 2 * WINDOW} rounds" if self.growth is None else ""
        return [
            Target(name="a hundred rounds, CPU", sense="<=", bound=6, value=self.per_hundred, unit=" s"),
            Target(name=flat, sense="<=", bound=1.5, value=self.growth, unit="x", note=note),
            Target(name="the fullest prompt, of its budget", sense="<=", bound=1, value=self.fullest),
            Target(name="turns in prompts of those who did not hear them", sense="<=", bound=0, value=self.leaks),
        ]  # fmt: skip

    def measured(self) -> dict[str, Any]:
        return {**asdict(self), "per_hundred": self.per_hundred, "growth": self.growth}

    def table(self) -> str:
        share = sum(self.memory) / sum(self.cpu)
        rows = [
            ("rounds", f"{len(self.cpu):,}: {self.turns:,} turns, {self.prompts:,} prompts"),
            ("a hundred rounds", f"{self.per_hundred:.2f} s of CPU, {share:.0%} of it the memory's; {self.setup:.1f} s before the first"),
            *((f"around round {place}", self._around(place)) for place in self.places),
        ]
        parts = ["\n".join(f"  {name:<24} {value}" for name, value in rows)]
        return "\n\n".join([*parts, self.verdicts()]) + "\n"

    def _around(self, place: int) -> str:
        return f"{self.at(self.cpu, place) * 1e3:.1f} ms, the memory's work {self.at(self.memory, place) * 1e3:.1f} ms"


class Measured(Table):
    """A table that keeps count of what its memory costs and of what is in its prompts."""

    def __init__(self, begun: Table) -> None:
        super().__init__(begun.story, begun.setup, begun.scenario, Storyteller(begun.scenario), budgets=begun.budgets)
        self.spent, self.prompts, self.fullest = 0.0, 0, 0.0
        self.quoted: dict[str, set[str]] = {}

    async def remember(self, seat: str, *, place: str | None, present: Sequence[str], query: str | None = None) -> Context:
        return await self._timed(super().remember(seat, place=place, present=present, query=query))

    async def commit(self, flight: Flight) -> list[Turn]:
        return await self._timed(super().commit(flight))

    async def _timed(self, work: Awaitable[V]) -> V:
        start = time.process_time()
        try:
            return await work
        finally:
            self.spent += time.process_time() - start

    async def ask(self, role: Part, seat: str, state: GameState, flight: Flight, told: Told) -> Ask:
        ask = await super().ask(role, seat, state, flight, told)
        self.prompts += 1
        self.fullest = max(self.fullest, ask.context.tokens / ask.context.budget)
        if seat != DM:
            quoted = self.quoted.setdefault(seat, set())
            quoted.update(source for block in ask.context.blocks for item in block.items for source in item.sources)
        return ask

    async def leaks(self) -> int:
        """Turns in prompts of someone who did not hear them."""
        heard = {turn.id: turn.audience for turn in await self.story.turns()}
        return sum(seat not in heard[turn] for seat, turns in self.quoted.items() for turn in turns)


def run(options: Options, progress: Progress) -> Report:
    """Plays a game. `progress` is told, a line at a time, what is going on."""
    return asyncio.run(_run(options, progress))


async def _run(options: Options, progress: Progress) -> Report:
    start = time.process_time()
    scenario = packs.load(options.scenario)
    if options.party > len(scenario.heroes):
        raise InvalidInput(f"{scenario.title!r} has {len(scenario.heroes)} heroes, not {options.party}")
    setup = Setup(options.scenario, tuple(scenario.heroes)[: options.party], (), options.seed)
    key = tk.MemoryKey(tenant_id="bench", user_id="bench", session_id="table")
    with tempfile.TemporaryDirectory(prefix="talekeeper-bench-", dir=options.directory) as directory:
        async with tk.open(Path(directory) / "story.db") as keeper:
            table = Measured(await begin(keeper, key, setup, Storyteller))
            async with Game(table) as game:
                before = time.process_time() - start
                cpu, memory = await _play(game, table, options.rounds, progress)
            stats = await table.story.stats()
            return Report(
                cpu=tuple(cpu), memory=tuple(memory), setup=before, turns=stats.turns, prompts=table.prompts, fullest=table.fullest,
                leaks=await table.leaks(), machine=machine(),
                options=options.to_json(),
            )  # fmt: skip


async def _play(game: Game, table: Measured, rounds: int, progress: Progress) -> tuple[list[float], list[float]]:
    """What each round costs, and in it the memory's work."""
    cpu: list[float] = []
    memory: list[float] = []
    for number in range(1, rounds + 1):
        start, table.spent = time.process_time(), 0.0
        async for _ in game.round():
            pass
        cpu.append(time.process_time() - start)
        memory.append(table.spent)
        progress(f"round {number:,} of {rounds:,}: {cpu[-1] * 1e3:.0f} ms")
    return cpu, memory
