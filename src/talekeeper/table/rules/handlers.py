"""Commands to events: what may happen, and why something else may not.

`handle` decides one command, purely. Beside the events stand the triggers for memory: a place is summarised before it is left, the world
after something of weight. `settling` decides all commands of a ruling.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from talekeeper.table.rules.conditions import holds, is_over
from talekeeper.table.world import commands as cm
from talekeeper.table.world import events as ev
from talekeeper.table.world.commands import Command
from talekeeper.table.world.events import Event
from talekeeper.table.world.gamestate import DANGERS, DOWN, GONE, GameState
from talekeeper.table.world.phrases import slug
from talekeeper.table.world.scenario import Named, Scenario, find

STORYTELLER = "dm"
"""Who whispers what nobody in the story says."""
OUTCOMES = ("won", "lost", "escaped", "settled")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A reason to write a memory: `location_exit` (before the move), or a world event, with the ids it is about."""

    kind: str
    related: Mapping[str, str] = field(default_factory=dict)
    who: tuple[str, ...] = ()
    before: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The command's events, in order, and the memories that they ask for."""

    events: tuple[Event, ...]
    triggers: tuple[Trigger, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a command cannot be: a sentence for the keeper and the player."""

    reason: str


class _No(Exception):
    """A refusal on its way up."""


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a command is decided: the state before it, and who acts."""

    state: GameState
    scenario: Scenario
    actor: str

    def named(self, kind: Mapping[str, Named], reference: str, what: str) -> str:
        found = find(kind, reference)
        if found is None:
            known = [name.casefold().removeprefix("the ") for one in kind.values() for name in one.names]
            close = difflib.get_close_matches(reference.casefold(), known, n=1)
            raise _No(f"there is no {what} {reference!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return found

    def place(self, reference: str) -> str:
        return self.named(self.scenario.places, reference, "place")

    def npc(self, reference: str) -> str:
        return self.living(self.named(self.scenario.npcs, reference, "NPC"))

    def person(self, reference: str) -> str:
        """Someone of the party, or an NPC; whoever acts, if nobody is named."""
        people: dict[str, Named] = {**self.scenario.npcs, **{id: self.scenario.heroes[id] for id in self.state.party}}
        return self.named(people, reference or self.actor, "one")

    def hero(self, reference: str) -> str:
        return self.named({id: self.scenario.heroes[id] for id in self.state.party}, reference or self.actor, "player character")

    def living(self, who: str) -> str:
        if who in self.state.dead:
            raise _No(f"{self.scenario.name(who)} is dead")
        return who

    def item(self, reference: str) -> str:
        """A thing of the pack, or one that came up in play, under a plain id."""
        found = find(self.scenario.items, reference) or slug(reference)
        if not found:
            raise _No(f"{reference!r} is no name for a thing")
        return found

    def near(self, one: str, other: str) -> None:
        if self.state.where[one] != self.state.where[other]:
            raise _No(f"{self.scenario.name(other)} is not where {self.scenario.name(one)} is")

    def name(self, id: str) -> str:
        return self.scenario.name(id)


def _known(kind: Mapping[str, Any], id: str, what: str) -> str:
    if id not in kind:
        raise _No(f"there is no such {what}")  # a refusal is heard and remembered: it names no ids, and suggests no secrets
    return id


# -- places and encounters ---------------------------------------------------------------------------------------------


def _change_location(desk: _Desk, command: cm.ChangeLocation) -> list[Event]:
    to = desk.place(command.to)
    movers = tuple(desk.living(desk.person(one)) for one in command.who) or desk.state.company(desk.living(desk.hero("")))
    origins = dict.fromkeys(desk.state.where[one] for one in movers)
    for one in movers:
        if desk.state.where[one] == to:
            raise _No(f"{desk.name(one)} is at {desk.name(to)} already")
        _check_way(desk, one, desk.state.where[one], to)
    return [ev.Moved(tuple(one for one in movers if desk.state.where[one] == origin), origin, to) for origin in origins]


def _check_way(desk: _Desk, who: str, origin: str, to: str) -> None:
    if who not in desk.state.party:
        if to not in _connected(desk.scenario, origin):
            raise _No(f"there is no way from {desk.name(origin)} to {desk.name(to)}")
        return
    if desk.state.wounds.get(who, 0) >= DOWN and len(desk.state.company(who)) < 2:
        raise _No(f"{desk.name(who)} is down and cannot walk")
    exit = next((exit for exit in desk.scenario.places[origin].exits if exit.to == to), None)
    if exit is None:
        raise _No(f"there is no way from {desk.name(origin)} to {desk.name(to)}")
    if not holds(exit.when, desk.state, desk.scenario):
        raise _No(exit.blocked or f"the way from {desk.name(origin)} to {desk.name(to)} is not open")
    encounter = desk.scenario.encounters.get(desk.state.encounter)
    if encounter is not None and origin in encounter.at:
        raise _No(f"nobody gets away before the end of this: {encounter.name}")


def _connected(scenario: Scenario, origin: str) -> set[str]:
    found, todo = {origin}, [origin]
    while todo:
        for exit in scenario.places[todo.pop()].exits:
            if exit.to not in found:
                found.add(exit.to)
                todo.append(exit.to)
    return found


def _update_location(desk: _Desk, command: cm.UpdateLocation) -> list[Event]:
    place, events = desk.place(command.place), list[Event]()
    if command.complete_encounter:
        encounter = _known(desk.scenario.encounters, command.complete_encounter, "encounter")
        if place not in desk.scenario.encounters[encounter].at:
            raise _No(f"{desk.scenario.encounters[encounter].name} is not at {desk.name(place)}")
        events.append(_encounter_over(desk, encounter, place, "won"))
    if command.danger:
        danger = command.danger.casefold()
        if danger not in DANGERS:
            raise _No(f"danger is one of {', '.join(DANGERS)}, not {command.danger!r}")
        if desk.state.danger.get(place) != danger:
            events.append(ev.PlaceChanged(place, danger))
    if not events:
        raise _No(f"nothing changes at {desk.name(place)}")
    return events


def _encounter_over(desk: _Desk, encounter: str, place: str, outcome: str) -> ev.EncounterEnded:
    if is_over(desk.state, encounter):
        raise _No(f"that is over already: {desk.scenario.encounters[encounter].name}")
    return ev.EncounterEnded(encounter, place, outcome)


def _start_encounter(desk: _Desk, command: cm.StartEncounter) -> list[Event]:
    id = _known(desk.scenario.encounters, command.encounter, "encounter")
    encounter, place = desk.scenario.encounters[id], desk.state.where[desk.hero("")]
    if desk.state.encounter:
        raise _No(f"something else is going on: {desk.scenario.encounters[desk.state.encounter].name}")
    if is_over(desk.state, id):
        raise _No(f"that is over already: {encounter.name}")
    if place not in encounter.at:
        raise _No(f"{encounter.name} cannot happen at {desk.name(place)}")
    return [ev.EncounterStarted(id, place)]


def _turn_encounter(desk: _Desk, command: cm.TurnEncounter) -> list[Event]:
    if not desk.state.encounter:
        raise _No("no encounter is going on")
    return [ev.EncounterTurned(desk.state.encounter, _encounter_place(desk, desk.state.encounter), command.by)]


def _encounter_place(desk: _Desk, encounter: str) -> str:
    here = desk.state.where.get(desk.actor, "")
    places = desk.scenario.encounters[encounter].at
    return here if here in places else places[0]


def _resolve_encounter(desk: _Desk, command: cm.ResolveEncounter) -> list[Event]:
    id = _known(desk.scenario.encounters, command.encounter, "encounter")
    if command.outcome not in OUTCOMES:
        raise _No(f"an encounter ends {', '.join(OUTCOMES)}, not {command.outcome!r}")
    if desk.state.encounter not in ("", id):
        raise _No(f"something else is going on: {desk.scenario.encounters[desk.state.encounter].name}")
    return [_encounter_over(desk, id, _encounter_place(desk, id), command.outcome)]


# -- the arc -----------------------------------------------------------------------------------------------------------


def _complete_objective(desk: _Desk, command: cm.CompleteObjective) -> list[Event]:
    id = _known(desk.scenario.objectives, command.objective, "objective")
    objective = desk.scenario.objectives[id]
    if id in desk.state.objectives:
        raise _No(f"“{objective.title}” is done already")
    if desk.scenario.act_number(objective.act) > desk.scenario.act_number(desk.state.act):
        raise _No(f"“{objective.title}” belongs to a later act")
    path = next((path for path in objective.paths if holds(path.when, desk.state, desk.scenario)), None)
    if path is None:
        raise _No(f"“{objective.title}” is not done: none of the ways to it has come true")
    return [ev.ObjectiveCompleted(id, objective.quest, command.way or path.how)]


def _complete_quest(desk: _Desk, command: cm.CompleteQuest) -> list[Event]:
    id = _known(desk.scenario.quests, command.quest, "quest")
    if id in desk.state.quests:
        raise _No(f"“{desk.scenario.quests[id].title}” is done already")
    missing = [
        one.title for one in desk.scenario.objectives.values() if one.quest == id and not (one.optional or one.id in desk.state.objectives)
    ]
    if missing:
        raise _No(f"“{desk.scenario.quests[id].title}” still wants “{missing[0]}”")
    return [ev.QuestCompleted(id)]


def _progress_act(desk: _Desk, command: cm.ProgressAct) -> list[Event]:
    acts = desk.scenario.acts
    number = desk.scenario.act_number(desk.state.act)
    if number >= len(acts):
        raise _No("this is the last act")
    following = acts[number]
    if command.act not in ("", following.id):
        raise _No(f"“{following.title}” comes next, and no other act")
    if not holds(acts[number - 1].until, desk.state, desk.scenario):
        raise _No(f"“{acts[number - 1].title}” is not over yet")
    return [ev.ActProgressed(following.id)]


def _end_story(desk: _Desk, command: cm.EndStory) -> list[Event]:
    ending = next((one for one in desk.scenario.endings if one.id == command.ending), None)
    if ending is None:
        raise _No("there is no such ending")
    if desk.state.ending:
        raise _No("the story has ended already")
    if not holds(ending.when, desk.state, desk.scenario):
        raise _No(f"“{ending.title}” has not come true")
    return [ev.Ended(ending.id)]


# -- things ------------------------------------------------------------------------------------------------------------


def _gain_item(desk: _Desk, command: cm.GainItem) -> list[Event]:
    who, item = desk.living(desk.person(command.who)), desk.item(command.item)
    holder = desk.state.items.get(item, "")
    if holder == who:
        raise _No(f"{desk.name(who)} has {desk.name(item)} already")
    if holder == GONE:
        raise _No(f"{desk.name(item)} is lost for good")
    if holder in desk.state.party:
        raise _No(f"{desk.name(holder)} has {desk.name(item)}, and would have to give it")
    place = holder.removeprefix("@") if holder.startswith("@") else desk.state.where.get(holder, desk.state.where[who])
    if place != desk.state.where[who]:
        raise _No(f"{desk.name(item)} is not here")
    return [ev.ItemGained(item, who, holder.removeprefix("@"), command.secretly)]


def _held(desk: _Desk, item: str, who: str) -> None:
    if desk.state.items.get(item, "") != who:
        holder = desk.state.items.get(item, "")
        many = desk.scenario.items[item].plural if item in desk.scenario.items else False
        has = f"{desk.name(holder)} has {'them' if many else 'it'}" if holder in desk.state.where else "nobody has it"
        raise _No(f"{desk.name(who)} does not have {desk.name(item)}: {has}")


def _lose_item(desk: _Desk, command: cm.LoseItem) -> list[Event]:
    who, item = desk.living(desk.person(command.who)), desk.item(command.item)
    _held(desk, item, who)
    return [ev.ItemLost(item, who, desk.state.where[who] if command.dropped else "", command.secretly)]


def _give_item(desk: _Desk, command: cm.GiveItem) -> list[Event]:
    giver, taker, item = desk.living(desk.person(command.who)), desk.living(desk.person(command.to)), desk.item(command.item)
    _held(desk, item, giver)
    if giver == taker:
        raise _No(f"{desk.name(giver)} has {desk.name(item)} already")
    desk.near(giver, taker)
    return [ev.ItemGiven(item, giver, taker, command.secretly)]


# -- people ------------------------------------------------------------------------------------------------------------


def _make_promise(desk: _Desk, command: cm.MakePromise) -> list[Event]:
    by, to = desk.living(desk.person(command.by)), desk.living(desk.person(command.to))
    vow = desk.scenario.vows.get(command.promise)
    text = command.text or (vow.text if vow is not None else "")
    if command.promise in desk.state.promises:
        raise _No(f"that was promised to {desk.name(to)} before")
    if not text or by == to:
        raise _No("a promise needs words, and someone else to give them to")
    return [ev.PromiseMade(command.promise, by, to, text, command.secretly)]


def _promise(desk: _Desk, id: str) -> tuple[str, str, str]:
    promise = desk.state.promises.get(id)
    if promise is None:
        vow = desk.scenario.vows.get(id)
        raise _No(f"nobody has promised {desk.name(vow.to)} {vow.text}" if vow is not None else "that was never promised")
    if promise.state != "open":
        raise _No(f"the promise to {desk.name(promise.to)} was {promise.state} already")
    return id, promise.by, promise.to


def _change_relationship(desk: _Desk, command: cm.ChangeRelationship) -> list[Event]:
    if not 1 <= abs(command.by) <= 3:
        raise _No("feelings change by 1 to 3, up or down")
    return [ev.RelationshipChanged(desk.npc(command.npc), desk.living(desk.hero(command.who)), command.by)]


def _kill(desk: _Desk, command: cm.Kill) -> list[Event]:
    who = desk.living(desk.person(command.who))
    npc = desk.scenario.npcs.get(who)
    if npc is not None and not npc.mortal:
        raise _No(f"{npc.name} cannot be killed")
    return [ev.Died(who, command.how)]


def _wound(desk: _Desk, command: cm.Wound) -> list[Event]:
    who = desk.living(desk.hero(command.who))
    if command.by < 1:
        raise _No("a wound counts at least one")
    if desk.state.wounds.get(who, 0) >= DOWN:
        return [ev.Died(who)]
    return [ev.Wounded(who, command.by)]


def _mend(desk: _Desk, command: cm.Mend) -> list[Event]:
    who = desk.living(desk.hero(command.who))
    if command.by < 1 or not desk.state.wounds.get(who, 0):
        raise _No(f"{desk.name(who)} has nothing to mend")
    return [ev.Mended(who, command.by)]


def _whisper(desk: _Desk, command: cm.Whisper) -> list[Event]:
    by = command.by if command.by == STORYTELLER else desk.living(desk.person(command.by))
    hearers = tuple(desk.living(desk.person(one)) for one in command.to)
    if not hearers or not command.text or by in hearers:
        raise _No("a whisper needs words, and someone else to hear them")
    for one in hearers if by != STORYTELLER else ():
        desk.near(by, one)
    return [ev.Whispered(by, hearers, command.text)]


def _reveal(desk: _Desk, command: cm.Reveal) -> list[Event]:
    secret, by = _known(desk.scenario.secrets, command.secret, "secret"), desk.living(desk.person(command.by))
    known = desk.state.knows.get(secret, ())
    if by not in known:
        raise _No(f"{desk.name(by)} does not know that secret")
    hearers = tuple(desk.living(desk.person(one)) for one in command.to) or tuple(one for one in desk.state.company(by) if one != by)
    new = tuple(one for one in hearers if one not in known)
    if not new:
        raise _No("nobody here is new to that secret")
    for one in new:
        desk.near(by, one)
    return [ev.Revealed(secret, by, new, desk.scenario.secrets[secret].text)]


def _learn_secret(desk: _Desk, command: cm.LearnSecret) -> list[Event]:
    secret = _known(desk.scenario.secrets, command.secret, "secret")
    learners = tuple(desk.living(desk.person(one)) for one in command.who or ("",))
    new = tuple(one for one in learners if one not in desk.state.knows.get(secret, ()))
    if not new:
        raise _No(f"{desk.name(learners[0])} knows that secret already")
    return [ev.SecretLearned(secret, new, desk.scenario.secrets[secret].text)]


def _pass_time(desk: _Desk, command: cm.PassTime) -> list[Event]:
    if not 1 <= command.watches <= 12:
        raise _No("between one and twelve watches can go by at once")
    return [ev.TimePassed(command.watches)]


_HANDLERS: Mapping[type[Command], Callable[[_Desk, Any], list[Event]]] = {
    cm.ChangeLocation: _change_location,
    cm.UpdateLocation: _update_location,
    cm.CompleteObjective: _complete_objective,
    cm.CompleteQuest: _complete_quest,
    cm.ProgressAct: _progress_act,
    cm.StartEncounter: _start_encounter,
    cm.TurnEncounter: _turn_encounter,
    cm.ResolveEncounter: _resolve_encounter,
    cm.GainItem: _gain_item,
    cm.LoseItem: _lose_item,
    cm.GiveItem: _give_item,
    cm.MakePromise: _make_promise,
    cm.KeepPromise: lambda desk, command: [ev.PromiseKept(*_promise(desk, command.promise))],
    cm.BreakPromise: lambda desk, command: [ev.PromiseBroken(*_promise(desk, command.promise))],
    cm.ChangeRelationship: _change_relationship,
    cm.Kill: _kill,
    cm.Wound: _wound,
    cm.Mend: _mend,
    cm.Whisper: _whisper,
    cm.Reveal: _reveal,
    cm.LearnSecret: _learn_secret,
    cm.PassTime: _pass_time,
    cm.SetFlag: lambda desk, command: [ev.Flagged(command.flag, command.value)],
    cm.TellBeat: lambda desk, command: [ev.Beat(command.what, desk.actor, command.about, command.degree, command.secretly)],
    cm.EndStory: _end_story,
}


def handle(state: GameState, scenario: Scenario, command: Command, actor: str = "") -> Accepted | Refused:
    """Decides one command. `actor` is who is meant where the command names nobody."""
    try:
        events = tuple(_HANDLERS[type(command)](_Desk(state, scenario, actor or (state.alive or state.party)[0]), command))
    except _No as no:
        return Refused(str(no))
    return Accepted(events, tuple(triggers(events, state)))


def triggers(events: Iterable[Event], state: GameState) -> Iterator[Trigger]:
    """The memories that events ask for, each of them, in order."""
    for event in events:
        if isinstance(event, ev.Moved) and any(one in state.party for one in event.who):
            yield Trigger("location_exit", {"location_id": event.origin}, event.who, before=True)
        elif isinstance(event, ev.ObjectiveCompleted):
            yield Trigger("objective_completed", {"quest_id": event.quest, "objective_id": event.objective})
        elif isinstance(event, ev.QuestCompleted):
            yield Trigger("quest_completed", {"quest_id": event.quest})
        elif isinstance(event, ev.ActProgressed):
            yield Trigger("act_progressed", {"act_id": event.act})
        elif isinstance(event, ev.PlaceChanged) and event.danger == "cleared":
            yield Trigger("location_cleared", {"location_id": event.place})
        elif isinstance(event, ev.EncounterEnded) and event.outcome != "escaped":
            yield Trigger("encounter_completed", {"location_id": event.place, "encounter_id": event.encounter})
