"""Asks as the table makes them: a real story's contexts, a scene with something of everything, and someone to fall back on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import talekeeper as tk
from talekeeper.memory.moments import AdventureMoment, KeeperResponse
from talekeeper.model import Context
from talekeeper.table import brain as tb
from talekeeper.table.world import events as ev

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = [tk.Seat("dm", role="dm"), tk.Seat("rook", name="Rook"), tk.Seat("lin", name="Lin")]

SCENE = tb.Scene(
    seat="rook", name="Rook", place="tavern", place_name="The Drowned Rat", look="A low room that smells of tallow.", danger="uneasy",
    time="evening", weather="rain", act="The Bell", calling="a locksmith", voice="dry and quick", condition="hurt", exits=(tb.Way("mill", "the mill", "north"), tb.Way("cellar", "the cellar", "down", "locked")),
    here=(tb.Someone("mira", "Mira", "the innkeeper", "wary", voice="warm and low", wants="her sister back"), tb.Someone("voss", "Captain Voss")), lying=(tb.Thing("lantern", "a lantern"),),
    items=(tb.Thing("key", "brass key", "marked with a nine"),), goals=(tb.Goal("miller", "Find the miller", "ask at the mill"),),
    promises=("Rook to Mira: to bring the key back before the third bell",), secrets=("The innkeeper's key opens the cellar.",),
)  # fmt: skip

RULINGS = (
    tb.Ruling("Rook", "I ask Mira about the miller.", "Easy. She talks.", (ev.RelationshipChanged("mira", "rook", 1),)),
    tb.Ruling("Lin", "I slip the map into my sleeve.", "DC 14. Rolled 17. Unseen.", (ev.ItemGained("map", "lin", "voss", secretly=True),)),
    tb.Ruling("Rook", "I take the lantern.", "Done.", (ev.ItemGained("lantern", "rook", "@tavern"),), ("the cellar is locked",)),
)

NAMES = {"rook": "Rook", "lin": "Lin", "mira": "Mira", "voss": "Captain Voss", "lantern": "a lantern", "tavern": "The Drowned Rat"}

MOMENTS = (
    AdventureMoment(5, "combat_victory", "Rook beat the ferryman's dogs off the bridge", 0.8),
    AdventureMoment(40, "turning_point", "Mira handed over the second key", 0.9),
)


async def context(seat: str = "rook", budget: int = 400) -> Context:
    """What a seat remembers of a short story that was really told."""
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: 0.0) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append("dm", "Mira slides Rook a brass key. “Room nine. Tell no one.”", heard_by=["rook"])
        await story.append("rook", "I swear I will bring it back before the third bell.", heard_by=["rook"])
        await story.append("dm", "Rain drums on the roof. Captain Voss counts his coins and watches the door.")
        await story.append("lin", "I hum something harmless.")
        return await story.context(seat, budget=budget)


async def ask(role: Any = "dm", **more: Any) -> tb.Ask:
    """An ask of that role, complete but for what `more` says."""
    seat = "rook" if role == "pc" else "dm"
    roles: dict[str, dict[str, Any]] = {
        "dm": {"action": "I sit down by the fire.", "actor": "Lin", "pacing": "The first third: make them curious."},
        "pc": {"action": "The door opens, and the rain comes in.", "said": (("Lin", "I sit down by the fire."),)},
        "keeper": {"action": "I lift the latch without a sound.", "actor": "Rook"},
        "narrator": {"rulings": RULINGS},
        "epilogue": {"moments": MOMENTS},
    }
    given = {"role": role, "seat": seat, "scene": SCENE, "round": 3, "seed": 11, "names": NAMES, **roles[role], **more}
    return tb.Ask(**{"context": more.get("context") or await context(seat), **given})


class Plain:
    """A brain that needs no model, and says so."""

    async def speak(self, ask: tb.Ask) -> AsyncIterator[str]:
        yield "The fire "
        yield "burns low."

    async def rule(self, ask: tb.Ask) -> KeeperResponse:
        return KeeperResponse("By the rules: it works.")


async def take_down(pieces: AsyncIterator[str], into: list[str]) -> None:
    """Writes every piece down, so that what was heard before an error is known."""
    async for piece in pieces:
        into.append(piece)  # noqa: PERF401


async def heard(brain: tb.Brain, one: tb.Ask) -> list[str]:
    return [piece async for piece in brain.speak(one)]
