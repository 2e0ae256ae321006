"""What happened in the game. Events ride in the story's log, and the state is nothing but their fold.

Each event knows who may know of it (`audience`): those who took part, those who stood by, the whole party, or nobody but the DM.
A DM may know everything and is never named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from talekeeper.table.world import wire
from talekeeper.table.world.wire import Record, prose

if TYPE_CHECKING:
    from talekeeper.table.world.gamestate import GameState

Audience = Literal["party", "present", "named", "nobody"]


@dataclass(frozen=True, slots=True)
class Event(Record):
    """Something that happened. `known_to` says who may know: the whole party, those present, those named in it, or nobody."""

    known_to: ClassVar[Audience] = "present"


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """Some went from one place to another."""

    type: ClassVar[str] = "moved"
    who: tuple[str, ...]
    origin: str
    to: str


@dataclass(frozen=True, slots=True)
class PlaceChanged(Event):
    """How dangerous a place is has changed."""

    type: ClassVar[str] = "place_changed"
    place: str
    danger: str


@dataclass(frozen=True, slots=True)
class EncounterStarted(Event):
    type: ClassVar[str] = "encounter_started"
    encounter: str
    place: str


@dataclass(frozen=True, slots=True)
class EncounterTurned(Event):
    """An encounter came nearer to its end, or farther from it."""

    type: ClassVar[str] = "encounter_turned"
    encounter: str
    place: str
    by: int = 1


@dataclass(frozen=True, slots=True)
class EncounterEnded(Event):
    """An encounter is over: won, lost, escaped or settled by words."""

    type: ClassVar[str] = "encounter_ended"
    encounter: str
    place: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ObjectiveCompleted(Event):
    type: ClassVar[str] = "objective_completed"
    known_to: ClassVar[Audience] = "party"
    objective: str
    quest: str
    way: str = ""


@dataclass(frozen=True, slots=True)
class QuestCompleted(Event):
    type: ClassVar[str] = "quest_completed"
    known_to: ClassVar[Audience] = "party"
    quest: str


@dataclass(frozen=True, slots=True)
class ActProgressed(Event):
    type: ClassVar[str] = "act_progressed"
    known_to: ClassVar[Audience] = "party"
    act: str


@dataclass(frozen=True, slots=True)
class ItemGained(Event):
    """Someone has an item now. `source` is who or which place had it; empty if it came from nowhere in particular."""

    type: ClassVar[str] = "item_gained"
    item: str
    who: str
    source: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class ItemLost(Event):
    """Someone has an item no longer. It lies at `left_at`, or is gone for good."""

    type: ClassVar[str] = "item_lost"
    item: str
    who: str
    left_at: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class ItemGiven(Event):
    type: ClassVar[str] = "item_given"
    item: str
    giver: str
    taker: str
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class PromiseMade(Event):
    type: ClassVar[str] = "promise_made"
    promise: str
    by: str
    to: str
    text: str = prose()
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class PromiseKept(Event):
    type: ClassVar[str] = "promise_kept"
    promise: str
    by: str
    to: str


@dataclass(frozen=True, slots=True)
class PromiseBroken(Event):
    type: ClassVar[str] = "promise_broken"
    promise: str
    by: str
    to: str


@dataclass(frozen=True, slots=True)
class RelationshipChanged(Event):
    """Someone thinks better or worse of someone."""

    type: ClassVar[str] = "relationship_changed"
    known_to: ClassVar[Audience] = "named"
    npc: str
    who: str
    by: int


@dataclass(frozen=True, slots=True)
class Died(Event):
    type: ClassVar[str] = "died"
    who: str
    how: str = prose("")


@dataclass(frozen=True, slots=True)
class Wounded(Event):
    type: ClassVar[str] = "wounded"
    who: str
    by: int = 1


@dataclass(frozen=True, slots=True)
class Mended(Event):
    type: ClassVar[str] = "mended"
    who: str
    by: int = 1


@dataclass(frozen=True, slots=True)
class Whispered(Event):
    """Words for some ears only."""

    type: ClassVar[str] = "whispered"
    known_to: ClassVar[Audience] = "named"
    by: str
    to: tuple[str, ...]
    text: str = prose("")


@dataclass(frozen=True, slots=True)
class Revealed(Event):
    """One who knows a secret tells it to others."""

    type: ClassVar[str] = "revealed"
    known_to: ClassVar[Audience] = "named"
    secret: str
    by: str
    to: tuple[str, ...]
    text: str = prose("")


@dataclass(frozen=True, slots=True)
class SecretLearned(Event):
    type: ClassVar[str] = "secret_learned"
    known_to: ClassVar[Audience] = "named"
    secret: str
    who: tuple[str, ...]
    text: str = prose("")


@dataclass(frozen=True, slots=True)
class TimePassed(Event):
    type: ClassVar[str] = "time_passed"
    known_to: ClassVar[Audience] = "party"
    watches: int = 1


@dataclass(frozen=True, slots=True)
class Flagged(Event):
    """A thread of the plot: something a pack wants to be remembered under a name."""

    type: ClassVar[str] = "flagged"
    known_to: ClassVar[Audience] = "nobody"
    flag: str
    value: int = 1


@dataclass(frozen=True, slots=True)
class Beat(Event):
    """What the keeper saw in an action, so that the narrator can tell of it. It changes nothing."""

    type: ClassVar[str] = "beat"
    known_to: ClassVar[Audience] = "nobody"
    what: str
    who: str
    about: tuple[str, ...] = ()
    degree: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The arc has come to its end."""

    type: ClassVar[str] = "ended"
    known_to: ClassVar[Audience] = "party"
    ending: str


EVENTS: Mapping[str, type[Event]] = {
    kind.type: kind
    for kind in (
        Moved, PlaceChanged, EncounterStarted, EncounterTurned, EncounterEnded, ObjectiveCompleted, QuestCompleted, ActProgressed,
        ItemGained, ItemLost, ItemGiven, PromiseMade, PromiseKept, PromiseBroken, RelationshipChanged, Died, Wounded, Mended, Whispered,
        Revealed, SecretLearned, TimePassed, Flagged, Beat, Ended,
    )
}  # fmt: skip


def event_to_json(event: Event) -> dict[str, Any]:
    return wire.write(event)


def event_from_json(raw: object) -> Event:
    return wire.read(EVENTS, raw, "event")


def audience(event: Event, state: GameState) -> tuple[str, ...]:
    """Who may know of the event, as of the state before it: ids of player characters and NPCs, sorted. A DM knows in any case."""
    if event.known_to == "nobody":
        return ()
    if event.known_to == "party":
        return tuple(sorted(state.party))
    named = {one for one in _people(event) if one in state.where}
    if event.known_to == "named" or getattr(event, "secretly", False):
        return tuple(sorted(named))
    places = {state.where[one] for one in named} | {place for place in _places(event) if place}
    return tuple(sorted(named | {one for one, place in state.where.items() if place in places and one not in state.dead}))


def _people(event: Event) -> tuple[str, ...]:
    """Everyone whom the event names, in any of its fields."""
    found: list[str] = []
    for name in ("who", "by", "to", "npc", "giver", "taker", "source"):
        value = getattr(event, name, ())
        found += [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    return tuple(found)


def _places(event: Event) -> tuple[str, ...]:
    values = (getattr(event, name, "") for name in ("place", "origin", "to", "left_at"))
    return tuple(value for value in values if isinstance(value, str))
