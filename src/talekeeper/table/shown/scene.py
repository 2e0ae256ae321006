"""What one seat may know of the game: where they are, who is there, what they carry, owe, know and could do.

A scene is made for one seat from the whole state, and holds nothing that this seat could not see or has not been told.
"""

from __future__ import annotations

from collections.abc import Iterable

from talekeeper.table.brain import Goal, Scene, Someone, Thing, Way
from talekeeper.table.rules import dice
from talekeeper.table.rules.conditions import day, sayable, watch, ways_out
from talekeeper.table.rules.plan import open_objectives
from talekeeper.table.shown.choices import encounter_here, offers
from talekeeper.table.world.gamestate import BADLY_HURT, DOWN, HURT, GameState
from talekeeper.table.world.scenario import Scenario

_CONDITIONS = {0: "", HURT: "hurt", BADLY_HURT: "badly hurt", DOWN: "down"}


def weather(scenario: Scenario, state: GameState, seed: int) -> str:
    """What the sky is like today."""
    return scenario.weathers[dice.number(len(scenario.weathers), seed, day(state), "sky", "weather")]


def feeling(attitude: int) -> str:
    """What an NPC's attitude looks like from outside."""
    names = ((-3, "hostile"), (-1, "cold"), (1, "guarded"), (3, "friendly"))
    return next((name for most, name in names if attitude < most), "devoted")


def viewpoint(state: GameState, seat: str) -> str:
    """Through whose eyes a seat sees: its own, or for those who know everything, the first of the party who can act."""
    return seat if seat in state.party else (state.able or state.alive or state.party)[0]


def condition(state: GameState, who: str) -> str:
    """How one of the party is: unhurt (empty), hurt, down, dead."""
    return "dead" if who in state.dead else _CONDITIONS[state.wounds.get(who, 0)]


def scene(scenario: Scenario, state: GameState, seat: str, seed: int = 0) -> Scene:
    """What a seat may know. A seat that is not of the party (DM, keeper) sees the party's place, and all secrets."""
    eyes, all_seeing = viewpoint(state, seat), seat not in state.party
    hero = None if all_seeing else scenario.heroes.get(seat)
    place = scenario.places[state.where[eyes]]
    encounter = encounter_here(state, scenario)
    return Scene(
        seat=seat,
        name=scenario.name(seat) if not all_seeing else "DM",
        place=place.id,
        place_name=place.name,
        look=" ".join(sayable(place.look, state, scenario)),
        danger=state.danger.get(place.id, place.danger),
        time=f"day {day(state)}, {watch(state)}",
        weather=weather(scenario, state, seed),
        act=next(act.title for act in scenario.acts if act.id == state.act),
        calling=hero.calling if hero is not None else "",
        voice=hero.voice if hero is not None else "",
        condition=condition(state, eyes),
        exits=tuple(
            Way(exit.to, scenario.name(exit.to), exit.way, "" if is_open else exit.blocked)
            for exit, is_open in ways_out(state, scenario, place.id, "" if all_seeing else eyes)
        ),
        here=tuple(_people(scenario, state, eyes, place.id, all_seeing=all_seeing)),
        lying=_things(scenario, state.lying(place.id)),
        items=_things(scenario, state.holds(eyes)),
        goals=tuple(_goals(scenario, state)),
        promises=tuple(
            f"{scenario.name(one.by)} to {scenario.name(one.to)}: {one.text}"
            for one in state.promises.values()
            if one.state == "open" and (all_seeing or eyes in (one.by, one.to))
        ),
        secrets=tuple(scenario.secrets[id].text for id, known in state.knows.items() if all_seeing or eyes in known),
        encounter=encounter.name if encounter is not None and place.id in encounter.at else "",
        over=bool(state.ending),
        choices=offers(scenario, state, eyes),
    )


def _people(scenario: Scenario, state: GameState, eyes: str, place: str, *, all_seeing: bool) -> Iterable[Someone]:
    for one in state.here(place):
        if one in scenario.npcs:
            npc = scenario.npcs[one]
            met = state.flags.get(f"met.{one}", 0) > 0
            inner = (npc.voice, npc.wants) if all_seeing else ("", "")
            yield Someone(one, npc.name, npc.look, feeling(state.feels(one, eyes)) if met else "", "", *inner)
        elif one != eyes:
            yield Someone(one, scenario.name(one), scenario.heroes[one].look, "", _CONDITIONS[state.wounds.get(one, 0)])


def _things(scenario: Scenario, items: Iterable[str]) -> tuple[Thing, ...]:
    return tuple(Thing(id, scenario.name(id), scenario.items[id].look if id in scenario.items else "") for id in items)


def _goals(scenario: Scenario, state: GameState) -> Iterable[Goal]:
    for id in open_objectives(scenario, state):
        objective = scenario.objectives[id]
        yield Goal(id, objective.title, objective.hint[state.clock % len(objective.hint)])
