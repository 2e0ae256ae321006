"""A round in flight: what has been said and decided since the last one was written, and how it becomes turns. Pure values.

It is all that the turn graph carries, it is made of JSON values, and it is gone when the round is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, NotRequired, TypedDict

from talekeeper.memory.moments import AdventureMoment, KeeperResponse, build_moment_from_keeper, moment_mark
from talekeeper.model import Mark
from talekeeper.story.telling import Draft
from talekeeper.table.brain import Ruling
from talekeeper.table.meaning.secrecy import OPEN, Confidence
from talekeeper.table.rules import conditions
from talekeeper.table.rules.settling import Settled
from talekeeper.table.world import events as ev
from talekeeper.table.world.events import Event, audience, event_from_json, event_to_json
from talekeeper.table.world.gamestate import GameState, apply

DM = "dm"
GAME = "table:game"
KEPT_RULINGS = 48


class Words(TypedDict):
    """Something told: by whom, where, before whose ears."""

    speaker: str
    text: str
    place: str | None
    hearers: list[str]
    private: bool


class Decision(TypedDict):
    """What became of an action."""

    actor: str
    action: str
    resolution: str
    events: list[dict[str, Any]]
    triggers: list[dict[str, Any]]
    refused: list[str]
    moment: list[Any] | None
    place: str | None
    hearers: list[str]
    private: bool
    unaware: NotRequired[list[str]]
    """Those who stood by when it was done in secret."""


class Flight(TypedDict):
    """The turn graph's whole state."""

    round: int
    version: str
    nudge: str | None
    todo: list[str]
    scenes: list[Words]
    said: list[Words]
    decisions: list[Decision]
    tales: list[Words]
    refusals: NotRequired[list[str]]
    """What was to be told and cannot be, each as a clause."""
    epilogue: str


def take_off(round: int, version: str, party: Iterable[str], nudge: str | None = None) -> Flight:
    """A round that has just begun."""
    return Flight(
        round=round, version=version, nudge=nudge, todo=list(party), scenes=[], said=[], decisions=[], tales=[], refusals=[], epilogue=""
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What an ask is about, beyond what its seat remembers."""

    viewer: str = ""
    action: str = ""
    actor: str = ""
    said: tuple[tuple[str, str], ...] = ()
    rulings: tuple[Ruling, ...] = ()


def said_before(flight: Flight, seat: str) -> tuple[tuple[str, str], ...]:
    """What others have said they do in this round, as far as the seat heard it: pairs of speaker and text."""
    return tuple((words["speaker"], words["text"]) for words in flight["said"] if seat in (DM, *words["hearers"]))


def scene_for(flight: Flight, seat: str) -> str:
    """What the DM told this seat at the beginning of the round."""
    return "\n\n".join(words["text"] for words in flight["scenes"] if seat in words["hearers"])


class Course:
    """The states that the game goes through in a round, each worked out once."""

    def __init__(self) -> None:
        self._decided: list[Decision] = []
        self._states: list[GameState] = []

    def states(self, flight: Flight, state: GameState) -> Sequence[GameState]:
        """All of them so far, from the one in which the round began to the newest."""
        count = len(self._decided)
        if not self._states or self._states[0] is not state or self._decided != flight["decisions"][:count]:
            self._decided, self._states, count = [], [state], 0
        for decision in flight["decisions"][count:]:
            self._states += [*accumulate(map(event_from_json, decision["events"]), apply, initial=self._states[-1])][1:]
            self._decided.append(decision)
        return tuple(self._states)


def rulings_of(decisions: Iterable[Decision]) -> tuple[Ruling, ...]:
    """Decisions as a narrator is told of them."""
    return tuple(
        Ruling(one["actor"], one["action"], one["resolution"], tuple(map(event_from_json, one["events"])), tuple(one["refused"]))
        for one in decisions
    )


def places_of(state: GameState) -> list[tuple[str, list[str]]]:
    """Where the party is: each place with those of the living who are there."""
    groups: dict[str, list[str]] = {}
    for seat in state.alive:
        groups.setdefault(state.where[seat], []).append(seat)
    return list(groups.items())


def hearing(state: GameState, seat: str) -> list[str]:
    """Everyone who hears what someone says aloud."""
    return list(state.here(state.where[seat]))


def decide(
    state: GameState, actor: str, action: str, response: KeeperResponse, settled: Settled, meant: Confidence = OPEN
) -> Decision:  # fmt: skip
    """A ruling with all that follows from it, and who may know of it. `meant`: for whom the action was. Where that was not for everyone,
    no ruling makes it so."""
    everyone = hearing(state, actor)
    private = _insiders(settled.events, state, actor)
    if meant.manner != "open":
        private = {actor, *meant.to, *(_noticing(settled.events) if meant.manner == "unseen" else ())}
    unaware = [one for one in everyone if private is not None and one not in private]
    is_whispered = any(isinstance(event, ev.Whispered) for event in settled.events)
    hidden = bool(unaware) and (meant.manner != "open" or is_whispered or bool(set(unaware) & set(state.party)))
    moment = build_moment_from_keeper(response, 0)
    return Decision(
        actor=actor, action=action, resolution=response.resolution,
        events=[event_to_json(_kept_secret(event) if hidden else event) for event in settled.events],
        triggers=[_trigger(one, state) for one in settled.triggers], refused=list(settled.refused),
        moment=[moment.type, moment.summary, moment.significance] if moment is not None else None, place=state.where.get(actor),
        hearers=sorted(private) if hidden and private is not None else everyone, private=hidden, unaware=unaware if hidden else [],
    )  # fmt: skip


def _insiders(events: Sequence[Event], state: GameState, actor: str) -> set[str] | None:
    """Those who may know of what was done in secret; None where nothing was."""
    secret = [
        event for event in events
        if isinstance(event, ev.Whispered | ev.Revealed | ev.SecretLearned) or getattr(event, "secretly", False)
    ]  # fmt: skip
    return {actor}.union(*(audience(event, state) for event in secret)) if secret else None


def _noticing(events: Iterable[Event]) -> set[str]:
    """Whoever thinks otherwise of somebody for what was done in secret has noticed it."""
    return {event.npc for event in events if isinstance(event, ev.RelationshipChanged)}


def _kept_secret(event: Event) -> Event:
    """What is done beside something secret is told with it, and so to nobody else."""
    kinds = ev.ItemGained | ev.ItemLost | ev.ItemGiven | ev.PromiseMade
    return replace(event, secretly=True) if isinstance(event, kinds) else event


def _whispers(events: Iterable[Event], actor: str) -> list[ev.Whispered]:
    return [event for event in events if isinstance(event, ev.Whispered) and event.by == actor]


def overseen(decision: Decision) -> Ruling | None:
    """What those see of it who stood by and did not hear it: that somebody whispered, and to whom. Of other secrets nothing is seen."""
    events = map(event_from_json, decision["events"])
    to = dict.fromkeys(one for whisper in _whispers(events, decision["actor"]) for one in whisper.to)
    if not to or not decision.get("unaware"):
        return None
    return Ruling(decision["actor"], "", "", (ev.Beat("murmur", decision["actor"], tuple(to)),))


def _trigger(trigger: Any, state: GameState) -> dict[str, Any]:
    place = trigger.related.get("location_id")
    return {"kind": trigger.kind, "related": dict(trigger.related), "present": list(state.here(place)) if place else []}


# -- into the log ----------------------------------------------------------------------------------------------------------


def drafts_of(flight: Flight, state: GameState) -> list[Draft]:
    """The round as turns, in the order in which it was told; what it changes rides with the ruling that changed it."""
    when = f"Day {conditions.day(state)}, {conditions.watch(state)}"
    drafts = [_spoken(words, when) for words in flight["scenes"]]
    ruled = {decision["actor"]: decision for decision in flight["decisions"]}
    for words in flight["said"]:
        drafts.append(_spoken(words))
        if words["speaker"] in ruled and _is_worth_a_turn(ruled[words["speaker"]]):
            drafts.append(_ruled(ruled[words["speaker"]]))
    drafts += [_spoken(words) for words in flight["tales"]]
    drafts += [Draft("", f"(Not so: {reason}.)", heard_by=(DM,), kind="event") for reason in flight.get("refusals", ())]
    if flight["epilogue"]:
        drafts.append(Draft(DM, flight["epilogue"], heard_by=state.party))
    return drafts


def _spoken(words: Words, when: str | None = None) -> Draft:
    kind: Literal["whisper", "said"] = "whisper" if words["private"] else "said"
    return Draft(words["speaker"], words["text"], heard_by=tuple(words["hearers"]), location=words["place"], kind=kind, when=when)


def _is_worth_a_turn(decision: Decision) -> bool:
    """Whether a ruling says or changes anything: a remark that was merely heard leaves nothing to remember."""
    changed = any(event["type"] != ev.Beat.type for event in decision["events"])
    return bool(decision["resolution"] or decision["refused"] or decision["triggers"] or decision["moment"] or changed)


def _without_words(event: dict[str, Any]) -> dict[str, Any]:
    """What was whispered stands in the turn in which it was, and nowhere else: so it is gone when that turn is forgotten."""
    return {name: value for name, value in event.items() if name != "text"} if event["type"] == ev.Whispered.type else event


def _ruled(decision: Decision) -> Draft:
    marks = [
        Mark(GAME, {"events": [_without_words(event) for event in decision["events"]], "triggers": decision["triggers"]}, keep=KEPT_RULINGS)
    ]
    if decision["moment"] is not None:
        marks.append(moment_mark(AdventureMoment(0, *decision["moment"])))
    words = " ".join([decision["resolution"], *(f"(Not so: {reason}.)" for reason in decision["refused"])])
    return Draft("", words, heard_by=tuple(decision["hearers"]), location=decision["place"], kind="event", marks=tuple(marks))
