"""All that a seat knows, in one context: the story's own, with facts, loose ends and, for a DM, what the others know.

Each contributor gives notes for parts of the recipe. Another kind of memory joins by being one more contributor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from talekeeper import rim
from talekeeper.context.recipe import DEFAULT_RECIPE, FACTS_PART, KNOWLEDGE_PART, LOOSE_ENDS_PART, Note, Recipe
from talekeeper.context.rendering import line
from talekeeper.errors import WrongType, quoted
from talekeeper.memory.callbacks import callback_notes, find_callbacks
from talekeeper.memory.facts import character_facts, fact_notes
from talekeeper.memory.scopes import MemoryService
from talekeeper.model import Context, Seat, Turn
from talekeeper.story.inside import check_story, read_once, seat_of
from talekeeper.story.remembering import Remembering
from talekeeper.story.story import Story

Notes: TypeAlias = Mapping[str, Sequence[Note]]
Contributor: TypeAlias = Callable[[Story, Seat], Awaitable[Notes]]
"""Gives notes for a seat, by the parts of the recipe that they belong to."""
Book = TypeVar("Book", bound=Remembering)
"""A story, or its past."""

OWN_FACTS, FACTS_OF_EACH, NEWEST_OF_EACH = 12, 2, 3


async def facts(story: Remembering, seat: Seat) -> Notes:
    """A character's own facts; for a DM, the first few of every player character."""
    return await read_once(story, ("facts", seat.id), lambda: _facts(story, seat))


async def _facts(story: Remembering, seat: Seat) -> Notes:
    if seat.role != "dm":
        return {FACTS_PART.name: fact_notes(await character_facts(story, seat.id), most=OWN_FACTS)}
    players = [other.id for other in story.seats if other.role == "pc"]
    found = [fact_notes(await character_facts(story, seat.id, player), most=FACTS_OF_EACH) for player in players]
    told = {note.text: note for notes in found for note in notes}  # what is a fact about two of them is told once
    return {FACTS_PART.name: list(told.values())}


async def loose_ends(story: Remembering, seat: Seat) -> Notes:
    """What is worth bringing back."""
    return await read_once(story, ("loose ends", seat.id), lambda: _loose_ends(story, seat))


async def _loose_ends(story: Remembering, seat: Seat) -> Notes:
    return {LOOSE_ENDS_PART.name: callback_notes(await find_callbacks(story, seat.id))}


async def knowledge(story: Remembering, seat: Seat) -> Notes:
    """For a DM, the newest that each of the others heard."""
    if seat.role != "dm":
        return {}
    known = [(other.label, turns, told) async for other, turns, told in newest_of_each(story)]
    return {KNOWLEDGE_PART.name: [Note(f"{name} knows: {told}", tuple(turn.id for turn in turns)) for name, turns, told in known]}


async def newest_of_each(story: Remembering) -> AsyncIterator[tuple[Seat, list[Turn], str]]:
    """Whoever is no DM and has heard anything, with the newest turns that they heard, and these on one line."""
    for seat in (seat for seat in story.seats if seat.role != "dm"):
        turns = [turn for turn in (await story.recap(seat.id, keep=NEWEST_OF_EACH, budget=0)).turns if turn.text]
        if turns:
            yield seat, turns, "; ".join(" ".join(line(turn).split()) for turn in turns)


async def scopes(story: Remembering, seat: Seat) -> Notes:
    """What the seat remembers of where it is, of those who are there, and of how the story moved on."""
    return await MemoryService(story).notes(seat.id)


CONTRIBUTORS: tuple[Callable[[Remembering, Seat], Awaitable[Notes]], ...] = (facts, scopes, loose_ends, knowledge)


async def remember(
    story: Book, seat: str, *, budget: int | None = None, query: str | None = None, recipe: Recipe = DEFAULT_RECIPE,
    extras: Notes | None = None, contributors: Sequence[Callable[[Book, Seat], Awaitable[Notes]]] = CONTRIBUTORS,
) -> Context:  # fmt: skip
    """`Story.context`, or that of its past, with everything that the contributors know for the seat. `extras` are yours, in the place
    of theirs.

    Scoped memories are shown as a `MemoryService` with no settings shows them; `extras=await service.notes(seat)` has yours instead. What a
    recipe has no part for is not asked for to be shown."""
    check_story(story)
    who = await seat_of(story, seat)
    given = rim.extras(extras)
    asked: object = contributors
    if not isinstance(asked, Sequence) or not all(map(callable, asked)):
        raise WrongType(f"contributors must be a list of async functions of a story and a seat, not {quoted(contributors)}")
    if not isinstance(recipe, Recipe):
        raise WrongType(f"recipe must be a Recipe, not {type(recipe).__name__}")
    parts = {part.name for part in recipe.volatile}
    notes: dict[str, Sequence[Note]] = {}
    for contributor in contributors:
        for part, rows in (await contributor(story, who)).items():
            if part in parts and rows:
                notes[part] = [*notes.get(part, ()), *rows]
    return await story.context(seat, budget=budget, query=query, recipe=recipe, extras={**notes, **given})
