"""A past for the stories of the server's benchmark: they are met in the middle, when contexts are full and much has been folded.

One game of each scenario is played for so many rounds; every story of that scenario begins as a copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from talekeeper.bench.players import TENANT, USER, Player
from talekeeper.bench.targets import Progress
from talekeeper.formats import export_story, import_story
from talekeeper.keeper import Keeper, open
from talekeeper.model import MemoryKey
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Setup, begin
from talekeeper.table.storyteller import Storyteller


async def give_pasts(file: Path, players: Sequence[Player], rounds: int, progress: Progress) -> None:
    """Makes the stories of these players in a file that no server has open."""
    async with open(file, durable=False) as keeper:
        pasts: dict[str, list[str]] = {}
        for number, player in enumerate(players):
            if player.scenario not in pasts:
                progress(f"playing {rounds:,} rounds of {player.scenario}")
                pasts[player.scenario] = await _play(keeper, player, rounds)
            progress(f"beginning story {number + 1:,} of {len(players):,}")
            await import_story(keeper, pasts[player.scenario], key=MemoryKey(TENANT, USER, player.name))


async def _play(keeper: Keeper, player: Player, rounds: int) -> list[str]:
    key = MemoryKey(TENANT, USER, f"past of {player.scenario}")
    table = await begin(keeper, key, Setup(player.scenario, tuple(player.party), (player.me,), player.seed), Storyteller)
    async with Game(table) as game:
        for number in range(rounds):
            async for _ in game.round():
                pass
            while game.waiting is not None and game.waiting.scene is not None:
                choices = game.waiting.scene["choices"]
                async for _ in game.answer(choices[number % min(3, len(choices))]["text"]):
                    pass
    lines = [line async for line in export_story(keeper, key)]
    await keeper.delete(key)
    return lines
