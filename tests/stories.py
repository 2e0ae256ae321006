"""Small stories to try things on, and ways to look at them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import talekeeper as tk

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
DM = tk.Seat("dm", role="dm")
TABLE = (DM, tk.Seat("rogue"), tk.Seat("bard", name="Lark the Loud"), tk.Seat("innkeeper", role="npc"))
SMALL = (tk.Seat("dm", role="dm", token_limit=600), tk.Seat("rogue", token_limit=400), tk.Seat("bard", token_limit=400))
DEEDS = (
    "Captain Voss counts the silver coins on the table twice and says that nobody leaves before the third bell",
    "the old ferryman swears that the bridge will not hold another winter, whatever the duke has promised them",
    "Mira hides the brass key under the loose stone behind the altar and tells nobody about the second door",
    "rain comes down from the hills and the road to the mill is gone until somebody clears the fallen trees",
)

SECRET = "Quillon's true name is Vraxholm Ezzerine, and he owes 4711 sovereigns"
TRACES = ("Vraxholm", "Ezzerine", "4711", "Quillon", "vraxholm", "ezzerin", "quillon")


def deed(number: int) -> str:
    """A turn's text that holds one word which is in no other."""
    return f"mark{number}x: {DEEDS[number % len(DEEDS)]}."


async def tell(story: tk.Story, count: int, first: int = 1, **settings: object) -> list[tk.Turn]:
    return await story.append_many([tk.Draft("dm", deed(n), **settings) for n in range(first, first + count)])  # type: ignore[arg-type]


async def contexts(story: tk.Story, budgets: Sequence[int] = (150, 400, 4000)) -> list[str]:
    return [(await story.context(seat.id, budget=budget)).text for seat in story.seats for budget in budgets]


async def leaf_over(story: tk.Story, fold: tk.Fold, turn: tk.Turn) -> tk.Fold:
    """The smallest fold below this one that the turn went into."""
    while fold.level:
        below = [await story.fold(child) for child in fold.children]
        (fold,) = [child for child in below if turn.id in await story.sources(child)]
    return fold


async def all_folds(story: tk.Story, seat: str, budget: int | None = None) -> list[tk.Fold]:
    """The folds that a seat's context stands on, and all that they are made of."""
    found: list[tk.Fold] = []
    todo = await story.folds(seat, budget=budget)
    while todo:
        fold = todo.pop()
        found.append(fold)
        todo += [await story.fold(child) for child in fold.children] if fold.level else []
    return found


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
