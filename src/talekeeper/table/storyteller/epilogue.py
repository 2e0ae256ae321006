"""The built-in epilogue: how it ended, what is told of it, and what became of everyone, made of the moments of this game."""

from __future__ import annotations

from talekeeper.memory.moments import AdventureMoment, keep_moments
from talekeeper.table.brain import Ask
from talekeeper.table.rules.conditions import is_lasting
from talekeeper.table.shown.prose import Prose, actor_slots, called, capital, joined, listed, short
from talekeeper.table.storyteller.reminders import retold
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import Scenario

_MOMENTS = 7
_DEVOTED = 3
_HOSTILE = -3


def tell(scenario: Scenario, ask: Ask, state: GameState, prose: Prose) -> str:
    """The epilogue, in paragraphs."""
    prose.about((state.alive or state.party)[0], state.party)
    ending = next((one for one in scenario.endings if one.id == state.ending), None)
    first = " ".join(ending.say) if ending is not None else prose.must("end.opening")
    paragraphs = [
        first,
        _deeds(scenario, ask, state, prose),
        _people(scenario, state, prose),
        _words(scenario, state, prose),
        prose.must("end.close"),
    ]
    return "\n\n".join(one for one in paragraphs if one)


def _deeds(scenario: Scenario, ask: Ask, state: GameState, prose: Prose) -> str:
    moments: list[AdventureMoment] = keep_moments(ask.moments, _MOMENTS)
    if not moments:
        return ""
    party = listed([called(scenario, one) for one in state.party])
    ways = prose.order(phrases()["end.moment"], "moments")  # one after the other, so that no two in a row begin alike
    told = [
        prose.render(ways[index % len(ways)], party="they" if index else party, deed=retold(moment.summary.rstrip("."), "they"))
        for index, moment in enumerate(moments)
    ]
    return f"{prose.must('end.after')} {'; '.join(one[:1].lower() + one[1:] for one in told)}."


def _people(scenario: Scenario, state: GameState, prose: Prose) -> str:
    lines: list[str] = []
    left = {pool: list(phrases()[pool]) for pool in ("end.dead", "end.scarred", "end.alive")}
    for one in state.party:
        hero = scenario.heroes[one]
        slots = actor_slots(hero)
        pool = "end.dead" if one in state.dead else "end.scarred" if state.wounds.get(one, 0) > 1 else "end.alive"
        template = prose.order(left[pool] or phrases()[pool], f"{pool}/{one}")[0]  # nobody's end is told in another's words
        left[pool] = [other for other in left[pool] if other != template]
        lines.append(prose.render(template, one, **slots))
    return joined(*lines)


def _words(scenario: Scenario, state: GameState, prose: Prose) -> str:
    """What was promised, and who thinks what of them now."""
    lines = []
    ways = {name: prose.order(phrases()[f"end.{name}"], name) for name in ("kept", "broken", "open", "late")}
    known = [(name, one) for name, one in state.promises.items() if all(map(one.is_known_to, state.party))]
    for name, promise in [one for one in known if not one[0].startswith("errand.")][-4:]:
        slots = {"who": called(scenario, promise.by), "npc": called(scenario, promise.to), "promise": promise.text}
        outcome = "kept" if promise.state == "open" and is_lasting(scenario, name) else promise.state
        outcome = "late" if outcome == "open" and promise.to in state.dead else outcome
        lines.append(prose.render(ways[outcome][0], name, **slots))
        ways[outcome] = [*ways[outcome][1:], ways[outcome][0]]  # no two are told in the same words
    for npc in scenario.npcs.values():
        felt = [state.feels(npc.id, one) for one in state.party]
        if npc.id not in state.dead and max(felt) >= _DEVOTED and prose.once_in(2, f"friend/{npc.id}"):
            lines.append(prose.pick("end.friend", npc.id, npc=short(npc)))
        elif npc.id not in state.dead and min(felt) <= _HOSTILE:
            lines.append(prose.pick("end.enemy", npc.id, npc=short(npc)))
    return capital(joined(*lines[:6]))
