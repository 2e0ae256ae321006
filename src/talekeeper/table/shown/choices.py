"""What could be done next: offers for a player who looks for one, and for companions who play by themselves.

Each offer is a line that one could type, with its pull: how much the story leans that way just now. The outlook of the arc decides that,
never what somebody else keeps secret: an offer is made from what the one who gets it knows and carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from talekeeper.table.brain import Choice
from talekeeper.table.rules.conditions import holds, ways_out
from talekeeper.table.rules.ledger import contradictions
from talekeeper.table.rules.plan import Action, open_objectives, outlook, worked_out_once
from talekeeper.table.shown.prose import definite, proper_name_in, short
from talekeeper.table.world.gamestate import BADLY_HURT, DOWN, GameState
from talekeeper.table.world.language import Clause
from talekeeper.table.world.scenario import Deed, Encounter, Npc, Scenario, Topic

Pulls = Mapping[tuple[str, str], float]
_MOST = 16
ERRAND = "errand"


@dataclass(frozen=True, slots=True)
class Errand:
    """Something to be carried from one NPC to another: a promise whose name says what and to whom."""

    promise: str
    thing: str
    sender: str
    target: str
    by: str


def errands(state: GameState, scenario: Scenario) -> list[Errand]:
    """The errands that are still to be run, and can be."""
    found = []
    for name, promise in state.promises.items():
        kind, *rest = name.split(".")
        if kind != ERRAND or promise.state != "open" or len(rest) != 3:
            continue
        thing, target, _ = rest
        if target in scenario.npcs and target not in state.dead and state.items.get(thing) in state.alive:
            found.append(Errand(name, thing, promise.to, target, promise.by))
    return found


def people_here(state: GameState, scenario: Scenario, place: str) -> list[Npc]:
    return [scenario.npcs[one] for one in state.here(place) if one in scenario.npcs]


def told(state: GameState, npc: str, topic: Topic, actor: str) -> bool:
    """Whether someone has been told this: in secret, each is told apart."""
    mark = f"told.{npc}/{topic.id}"
    return bool(state.flags.get(f"{mark}/{actor}") or (not topic.secretly and state.flags.get(mark)))


def deeds_here(state: GameState, scenario: Scenario, actor: str) -> list[Deed]:
    """The deeds that can be done where someone is."""
    place = state.where[actor]
    here = set(state.here(place))
    return [
        deed
        for deed in scenario.deeds
        if (place in deed.at if not deed.npc else deed.npc in here)
        and (deed.repeat or not state.flags.get(f"did.{deed.id}"))
        and not (state.ending and decides(scenario, deed))
        and holds(deed.when, state, scenario, actor)
        and not (state.dead and _needs_the_dead(state, scenario, deed))
    ]


def _needs_the_dead(state: GameState, scenario: Scenario, deed: Deed) -> bool:
    """Whether a deed is offered or told with somebody who is dead by now."""
    people = (scenario.person(one) for one in state.dead)
    named = any(proper_name_in(deed.offer, one) for one in people if one is not None)
    return named or bool(contradictions(" ".join(deed.success.say), [state], scenario))


def decides(scenario: Scenario, deed: Deed) -> bool:
    """Whether a deed brings about an ending: that can be done once, and not again afterwards."""
    ends = {clause for ending in scenario.endings for condition in ending.when for clause in condition if clause.verb == "flag"}
    return any(Clause("flag", effect.args) in ends for effect in deed.success.do if effect.verb == "flag")


def encounter_here(state: GameState, scenario: Scenario) -> Encounter | None:
    return scenario.encounters.get(state.encounter)


def ways_here(state: GameState, scenario: Scenario, actor: str) -> list[Deed]:
    """The ways through the encounter that is going on."""
    encounter = encounter_here(state, scenario)
    return [way for way in encounter.ways if holds(way.when, state, scenario, actor)] if encounter else []


def topic_name(topic: Topic) -> str:
    return topic.offer or topic.words[0]


def asked(topic: str) -> str:
    """What one asks: `about the job`, but `how things are at home`."""
    return topic if is_clause(topic) else f"about {topic}"


def is_clause(topic: str) -> bool:
    return topic.split(" ", 1)[0] in ("who", "what", "where", "when", "why", "how", "whether")


# -- pulls -------------------------------------------------------------------------------------------------------------


@worked_out_once
def pulls(scenario: Scenario, state: GameState) -> Pulls:
    """What the arc asks for now: actions that can be done at once, by kind and id."""
    view, found = outlook(scenario, state), dict[tuple[str, str], float]()
    wishes: list[tuple[Clause, float]] = [
        (Clause("done", (id,)), 0.95 - 0.12 * rank) for rank, id in enumerate(open_objectives(scenario, state)[:4])
    ]
    wishes += [(Clause("near", (errand.target,)), 0.5 if not state.ending else 0.8) for errand in errands(state, scenario)[:2]]
    for clause, strength in wishes:
        for action in view.way_to([(clause,)]):
            if view.ready(action):
                key = (action.kind, action.id)
                found[key] = max(found.get(key, 0.0), strength - _delay(action))
    return found


def _delay(action: Action) -> float:
    """What can be done on the spot comes before going away."""
    return {"go": 0.05, "wait": 0.1, "befriend": 0.03, "happening": 0.3}.get(action.kind, 0.0)


# -- offers ------------------------------------------------------------------------------------------------------------


@worked_out_once
def offers(scenario: Scenario, state: GameState, seat: str) -> tuple[Choice, ...]:
    """What someone could do now, the most pressing first."""
    if seat in state.dead:
        return ()
    if state.wounds.get(seat, 0) >= DOWN:
        return (Choice("Hold on", 0.9, "down"),)
    encounter = encounter_here(state, scenario)
    fighting = encounter is not None and state.where[seat] in encounter.at
    found = list(_in_encounter(scenario, state, seat) if fighting else _at_peace(scenario, state, seat))
    return tuple(sorted(found, key=lambda choice: -choice.pull)[:_MOST])


def _in_encounter(scenario: Scenario, state: GameState, seat: str) -> Iterator[Choice]:
    for way in ways_here(state, scenario, seat):
        skill = scenario.heroes[seat].skills.get(way.skill, 0) if way.skill else 3
        yield Choice(way.offer, round(min(0.95, 0.7 + 0.05 * (skill + 9 - way.difficulty)), 3), "way", (way.id,))
    yield from _tending(scenario, state, seat, 0.75)
    yield Choice("Flee", 0.3 if len(state.able) > 1 and state.wounds.get(seat, 0) < BADLY_HURT else 0.72, "flee")


def _tending(scenario: Scenario, state: GameState, seat: str, pull: float) -> Iterator[Choice]:
    for one in state.company(seat):
        if one != seat and state.wounds.get(one, 0) >= BADLY_HURT:
            name = scenario.name(one)
            yield Choice(f"Tend {name}’s wounds", pull + 0.2 * (state.wounds[one] >= DOWN), "tend", (name,))


def _at_peace(scenario: Scenario, state: GameState, seat: str) -> Iterator[Choice]:
    pull = pulls(scenario, state)
    yield from _tending(scenario, state, seat, 0.78)
    yield from _resting(scenario, state, seat, pull)
    yield from _with_people(scenario, state, seat, pull)
    for deed in deeds_here(state, scenario, seat):
        yield Choice(deed.offer, pull.get(("deed", deed.id), 0.55), "deed", (deed.id,))
    yield from _with_things(scenario, state, seat, pull)
    for exit, is_open in ways_out(state, scenario, state.where[seat], seat):
        if is_open:
            name = scenario.name(exit.to)
            fresh = 0.42 if exit.to not in state.visits else 0.4 if state.ending else 0.25
            yield Choice(f"Go to {name}", pull.get(("go", exit.to), fresh), "go", (name, exit.way))
    yield Choice("Look around", 0.24, "look")
    yield Choice("Search the place", 0.22, "search")


def _resting(scenario: Scenario, state: GameState, seat: str, pull: Pulls) -> Iterator[Choice]:
    worst = max(state.wounds.get(one, 0) for one in state.company(seat))
    shelter = scenario.places[state.where[seat]].shelter
    light = 0.95 if shelter and state.ending else 0.45 if shelter else 0.3
    want = (0.1, light, 0.99 if shelter else 0.8, 0.99)[worst]
    yield Choice("Rest", max(want, pull.get(("wait", "night"), 0.0)), "rest")


def _with_people(scenario: Scenario, state: GameState, seat: str, pull: Pulls) -> Iterator[Choice]:
    for npc in people_here(state, scenario, state.where[seat]):
        name = short(npc)
        if not state.flags.get(f"met.{npc.id}"):
            yield Choice(f"Talk to {name}", max(0.6, pull.get(("meet", npc.id), 0.0)), "talk", (name,))
        for topic in npc.topics:
            if told(state, npc.id, topic, seat) or not holds(topic.when, state, scenario, seat):
                continue
            wanted = pull.get(("topic", f"{npc.id}/{topic.id}"), 0.5)
            if state.feels(npc.id, seat) >= topic.attitude:
                yield Choice(f"Ask {name} {asked(topic_name(topic))}", wanted, "ask", (name, topic_name(topic)))
        if ("befriend", npc.id) in pull:
            yield Choice(f"Try to win {name} over", pull["befriend", npc.id], "persuade", (name,))
        if npc.errands and not any(errand.sender == npc.id for errand in errands(state, scenario)):
            yield Choice(f"Ask {name} for work", 0.6 if state.ending else 0.2, "work", (name,))


def _with_things(scenario: Scenario, state: GameState, seat: str, pull: Pulls) -> Iterator[Choice]:
    for item in state.lying(state.where[seat]):
        name = definite(scenario.name(item))
        yield Choice(f"Take {name}", pull.get(("take", item), 0.58), "take", (name,))
    here = {npc.id for npc in people_here(state, scenario, state.where[seat])}
    for errand in errands(state, scenario):
        if errand.target in here and state.items[errand.thing] == seat:
            name, target = definite(scenario.name(errand.thing)), short(scenario.npcs[errand.target])
            yield Choice(f"Give {name} to {target}", 0.88, "give", (name, target))
