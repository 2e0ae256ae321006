"""The state of the game: what all its events add up to.

`apply` is the only way to change it, and it never refuses: whether something may happen is decided before, by the handlers. So the
state after any prefix of the log is a pure function of that prefix, and a rewind of the story is a rewind of the game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from talekeeper.errors import InvalidInput
from talekeeper.model import to_json
from talekeeper.table.world import events as ev
from talekeeper.table.world.events import Event, audience

DANGERS = ("safe", "uneasy", "dangerous", "deadly", "cleared")
HALE, HURT, BADLY_HURT, DOWN = range(4)
"""How wounds are counted: whoever is `DOWN` cannot act, and one wound more is death."""
FRIENDLIEST = 5
GONE = "-"
"""The holder of an item that is lost for good."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Promise:
    """Who gave whom their word, who heard it, and what became of it."""

    by: str
    to: str
    text: str
    state: str = "open"
    heard: tuple[str, ...] = ()

    def is_known_to(self, who: str) -> bool:
        return who in (self.by, self.to, *self.heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class GameState:
    """Everything that is true of the game. Frozen and JSON-friendly; the mappings are never changed in place."""

    party: tuple[str, ...]
    where: Mapping[str, str]
    act: str
    items: Mapping[str, str] = field(default_factory=dict)
    """Who holds each item: a player character, an NPC, `@place` where it lies, `GONE`, or empty while it is not yet in the world."""
    hidden: tuple[str, ...] = ()
    """The items that were gained in secret and have not been shown since."""
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Who saw it when an item last changed hands. What one brought along is plain to all."""
    danger: Mapping[str, str] = field(default_factory=dict)
    visits: Mapping[str, int] = field(default_factory=dict)
    attitude: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    wounds: Mapping[str, int] = field(default_factory=dict)
    dead: Mapping[str, str] = field(default_factory=dict)
    witnesses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Who saw each of the dead die."""
    knows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    promises: Mapping[str, Promise] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)
    """The completed ones, each with the way it was done."""
    quests: tuple[str, ...] = ()
    encounter: str = ""
    """The encounter that is going on; empty if there is none."""
    progress: int = 0
    encounters: Mapping[str, str] = field(default_factory=dict)
    """Those that are over, each with its outcome."""
    flags: Mapping[str, int] = field(default_factory=dict)
    clock: int = 0
    ending: str = ""

    def here(self, place: str) -> tuple[str, ...]:
        """Everyone alive at a place, in a fixed order."""
        return tuple(one for one, at in self.where.items() if at == place and one not in self.dead)

    def holds(self, who: str) -> tuple[str, ...]:
        """The items that someone holds."""
        return tuple(item for item, holder in self.items.items() if holder == who)

    def lying(self, place: str) -> tuple[str, ...]:
        """The items that lie at a place."""
        return self.holds(f"@{place}")

    def company(self, who: str) -> tuple[str, ...]:
        """The living of the party who are where someone is, that one included."""
        place = self.where.get(who)
        return tuple(one for one in self.alive if self.where[one] == place)

    @property
    def alive(self) -> tuple[str, ...]:
        """The party without its dead."""
        return tuple(one for one in self.party if one not in self.dead)

    @property
    def able(self) -> tuple[str, ...]:
        """Those of the party who can act."""
        return tuple(one for one in self.alive if self.wounds.get(one, HALE) < DOWN)

    def feels(self, npc: str, who: str) -> int:
        """What an NPC thinks of someone, from -5 to 5."""
        return self.attitude.get(npc, {}).get(who, 0)


def _with(mapping: Mapping[K, V], key: K, value: V) -> dict[K, V]:
    return {**mapping, key: value}


def _moved(state: GameState, event: ev.Moved) -> GameState:
    where = {**state.where, **dict.fromkeys(event.who, event.to)}
    arrived = any(who in state.party for who in event.who)
    visits = _with(state.visits, event.to, state.visits.get(event.to, 0) + 1) if arrived else state.visits
    return replace(state, where=where, visits=visits)


def _handed(state: GameState, event: ev.ItemGained | ev.ItemLost | ev.ItemGiven, holder: str) -> GameState:
    shown = tuple(item for item in state.hidden if item != event.item)
    hidden = (*shown, event.item) if event.secretly else shown
    seen = _with(state.seen, event.item, audience(event, state))
    return replace(state, items=_with(state.items, event.item, holder), hidden=hidden, seen=seen)


def _promised(state: GameState, event: ev.PromiseKept | ev.PromiseBroken, outcome: str) -> GameState:
    return replace(state, promises=_with(state.promises, event.promise, replace(state.promises[event.promise], state=outcome)))


def _related(state: GameState, event: ev.RelationshipChanged) -> GameState:
    felt = max(-FRIENDLIEST, min(FRIENDLIEST, state.feels(event.npc, event.who) + event.by))
    return replace(state, attitude=_with(state.attitude, event.npc, _with(state.attitude.get(event.npc, {}), event.who, felt)))


def _died(state: GameState, event: ev.Died) -> GameState:
    """What the dead held lies where they fell."""
    place = state.where.get(event.who, "")
    items = {item: f"@{place}" if holder == event.who and place else holder for item, holder in state.items.items()}
    witnesses = _with(state.witnesses, event.who, audience(event, state))
    return replace(state, dead=_with(state.dead, event.who, event.how), witnesses=witnesses, items=items)


def _hurt(state: GameState, who: str, by: int) -> GameState:
    return replace(state, wounds=_with(state.wounds, who, max(HALE, min(DOWN, state.wounds.get(who, HALE) + by))))


def _learned(state: GameState, secret: str, who: Iterable[str]) -> GameState:
    known = tuple(dict.fromkeys((*state.knows.get(secret, ()), *who)))
    return replace(state, knows=_with(state.knows, secret, known))


def _ended(state: GameState, event: ev.EncounterEnded) -> GameState:
    current = "" if state.encounter == event.encounter else state.encounter
    return replace(state, encounter=current, progress=0, encounters=_with(state.encounters, event.encounter, event.outcome))


_APPLY: Mapping[type[Event], Callable[[GameState, Any], GameState]] = {
    ev.Moved: _moved,
    ev.PlaceChanged: lambda state, event: replace(state, danger=_with(state.danger, event.place, event.danger)),
    ev.EncounterStarted: lambda state, event: replace(state, encounter=event.encounter, progress=0),
    ev.EncounterTurned: lambda state, event: replace(state, progress=state.progress + event.by),
    ev.EncounterEnded: _ended,
    ev.ObjectiveCompleted: lambda state, event: replace(state, objectives=_with(state.objectives, event.objective, event.way)),
    ev.QuestCompleted: lambda state, event: replace(state, quests=(*state.quests, event.quest)),
    ev.ActProgressed: lambda state, event: replace(state, act=event.act),
    ev.ItemGained: lambda state, event: _handed(state, event, event.who),
    ev.ItemLost: lambda state, event: _handed(state, event, f"@{event.left_at}" if event.left_at else GONE),
    ev.ItemGiven: lambda state, event: _handed(state, event, event.taker),
    ev.PromiseMade: lambda state, event: replace(
        state, promises=_with(state.promises, event.promise, Promise(event.by, event.to, event.text, heard=audience(event, state)))
    ),
    ev.PromiseKept: lambda state, event: _promised(state, event, "kept"),
    ev.PromiseBroken: lambda state, event: _promised(state, event, "broken"),
    ev.RelationshipChanged: _related,
    ev.Died: _died,
    ev.Wounded: lambda state, event: _hurt(state, event.who, event.by),
    ev.Mended: lambda state, event: _hurt(state, event.who, -event.by),
    ev.Whispered: lambda state, event: state,
    ev.Revealed: lambda state, event: _learned(state, event.secret, event.to),
    ev.SecretLearned: lambda state, event: _learned(state, event.secret, event.who),
    ev.TimePassed: lambda state, event: replace(state, clock=state.clock + event.watches),
    ev.Flagged: lambda state, event: replace(state, flags=_with(state.flags, event.flag, event.value)),
    ev.Beat: lambda state, event: state,
    ev.Ended: lambda state, event: replace(state, ending=event.ending),
}


def apply(state: GameState, event: Event) -> GameState:
    """The state after the event."""
    return _APPLY[type(event)](state, event)


def fold(state: GameState, events: Iterable[Event]) -> GameState:
    """The state after all of them, in order."""
    for event in events:
        state = apply(state, event)
    return state


def state_to_json(state: GameState) -> dict[str, Any]:
    """The state as plain JSON values. It can always be had by folding the events again; this is for looking at it, and for caches."""
    return dict(to_json(state))


def state_from_json(raw: Mapping[str, Any]) -> GameState:
    """What `state_to_json` wrote."""
    try:
        return GameState(
            **{
                **raw,
                "party": tuple(raw["party"]),
                "quests": tuple(raw["quests"]),
                "hidden": tuple(raw["hidden"]),
                **{name: {id: tuple(who) for id, who in raw.get(name, {}).items()} for name in ("knows", "seen", "witnesses")},
                "promises": {name: Promise(**{**one, "heard": tuple(one.get("heard", ()))}) for name, one in raw["promises"].items()},
            }
        )
    except (KeyError, TypeError, AttributeError) as exc:
        raise InvalidInput(f"this is not a game state: {exc!r}; fold the events of the log instead") from exc
