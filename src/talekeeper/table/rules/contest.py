"""Where dice decide: checks of a skill, and encounters that take several of them.

Two dice and a skill against a difficulty: at least that is a clean success, a little less a success at a cost, anything below a failure.
Two sixes and two ones are remembered.
"""

from __future__ import annotations

from dataclasses import dataclass

from talekeeper.table.rules import dice
from talekeeper.table.rules.conditions import commands_for, holds, is_over, ways_out
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command
from talekeeper.table.world.gamestate import BADLY_HURT, DOWN, GameState
from talekeeper.table.world.scenario import Deed, Encounter, Mark, Outcome, Scenario

COST = 2
"""How far a throw may miss and still succeed, at a cost."""

SUCCESSES = frozenset({"great", "good", "cost"})
_OUTCOMES = {
    "great": "Brilliant.",
    "good": "It works.",
    "cost": "It works, at a cost.",
    "bad": "It fails.",
    "awful": "It goes badly wrong.",
}


@dataclass(frozen=True, slots=True)
class Check:
    """How a throw came out: great, good, cost, bad or awful."""

    degree: str
    text: str

    @property
    def succeeded(self) -> bool:
        return self.degree in SUCCESSES


def check(scenario: Scenario, state: GameState, actor: str, skill: str, difficulty: int, seed: int, round: int, what: str) -> Check:
    """Throws for someone. Whoever is badly hurt throws with one less."""
    modifier = scenario.heroes[actor].skills.get(skill, 0) - (state.wounds.get(actor, 0) >= BADLY_HURT)
    thrown = dice.throw(f"2d6{modifier:+d}" if modifier else "2d6", seed, round, actor, what)
    short = difficulty - thrown.total
    if thrown.faces == (6, 6):
        degree = "great"
    elif thrown.faces == (1, 1):
        degree = "awful"
    else:
        degree = "good" if short <= 0 else "cost" if short <= COST else "bad"
    return Check(degree, f"{skill.capitalize()}, {thrown.text} against {difficulty}. {_OUTCOMES[degree]}")


def outcome_of(deed: Deed, degree: str) -> Outcome:
    """What a deed leads to. A cost that the pack does not spell out is a success that takes time, or a wound in a fight."""
    if degree in ("great", "good"):
        return deed.success
    if degree == "cost":
        return deed.cost or deed.success
    return deed.failure or Outcome()


def critical(degree: str, hero: str, deed: Deed) -> Mark | None:
    """Two sixes or two ones are a moment of their own."""
    offer = deed.offer[:1].lower() + deed.offer[1:]
    if degree == "great":
        return Mark(type="critical_success", summary=f"saw {hero} {offer}, and do it brilliantly", weight=0.75)
    if degree == "awful":
        return Mark(type="critical_failure", summary=f"saw {hero} try to {offer}, and fail for all to see", weight=0.65)
    return None


def due(scenario: Scenario, state: GameState, actor: str) -> Encounter | None:
    """The encounter that begins here and now, if one does."""
    if state.encounter or actor in state.dead:
        return None
    place = state.where[actor]
    waiting = (one for one in scenario.encounters.values() if place in one.at and not is_over(state, one.id))
    return next((one for one in waiting if holds(one.when, state, scenario)), None)


def fight(scenario: Scenario, state: GameState, actor: str, way: Deed, seen: Check) -> list[Command]:
    """What one way through an encounter leads to, with this throw."""
    encounter = scenario.encounters[state.encounter]
    outcome = outcome_of(way, seen.degree)
    found = commands_for(outcome.do, state, scenario, actor)
    if seen.succeeded:
        if seen.degree == "cost" and way.cost is None:
            found.append(cm.Wound(actor))
        return found + _gained(scenario, state, actor, encounter, way, 2 if seen.degree == "great" else 1)
    if not found:
        found.append(cm.Wound(actor, 2 if seen.degree == "awful" else 1))
    if encounter.deadly:
        found += [cm.Wound(one) for one in state.alive if state.wounds.get(one, 0) >= DOWN][:1]
    return found + _maybe_lost(scenario, state, actor, encounter, found)


def _gained(scenario: Scenario, state: GameState, actor: str, encounter: Encounter, way: Deed, by: int) -> list[Command]:
    if way.ends:
        outcome = {"won": encounter.won, "escaped": encounter.escaped}.get(way.ends, encounter.won)
        return [cm.ResolveEncounter(encounter.id, way.ends), *commands_for(outcome.do, state, scenario, actor)]
    if state.progress + by >= encounter.grit:
        return [cm.TurnEncounter(by), cm.ResolveEncounter(encounter.id, "won"), *commands_for(encounter.won.do, state, scenario, actor)]
    return [cm.TurnEncounter(by)]


def _maybe_lost(scenario: Scenario, state: GameState, actor: str, encounter: Encounter, so_far: list[Command]) -> list[Command]:
    """An encounter is lost when nobody is left standing. Those who fell come to themselves later, somewhere they can be found."""
    hurt = {one.who or actor: one.by for one in so_far if isinstance(one, cm.Wound)}
    standing = [one for one in state.able if state.wounds.get(one, 0) + hurt.get(one, 0) < DOWN]
    if standing:
        return []
    lost: list[Command] = [cm.ResolveEncounter(encounter.id, "lost"), *commands_for(encounter.lost.do, state, scenario, actor)]
    if encounter.deadly and len(state.alive) > 1:
        lost.append(cm.Kill(actor, f"fell to {encounter.name}"))
    lost += [cm.Mend(one) for one in state.alive if not (encounter.deadly and one == actor)]
    return [*lost, cm.PassTime(2)]


def flee(scenario: Scenario, state: GameState, actor: str, seen: Check) -> list[Command]:
    """Out of an encounter, to a place that is known, if the throw is good."""
    encounter = scenario.encounters[state.encounter]
    if not seen.succeeded:
        return [cm.Wound(actor)] if seen.degree == "awful" or encounter.deadly else []
    found: list[Command] = [cm.Wound(actor)] if seen.degree == "cost" else []
    back = refuge(scenario, state, actor)
    escape = commands_for(encounter.escaped.do, state, scenario, actor)
    return [*found, cm.ResolveEncounter(encounter.id, "escaped"), *escape, *([cm.ChangeLocation(back)] if back else [])]


def refuge(scenario: Scenario, state: GameState, actor: str) -> str:
    """Where to run: the best known place next to this one."""
    near = [exit.to for exit, is_open in ways_out(state, scenario, state.where[actor], actor) if is_open]
    known = [place for place in near if state.visits.get(place)] or near
    return max(known, key=lambda place: (scenario.places[place].shelter, state.visits.get(place, 0)), default="")
