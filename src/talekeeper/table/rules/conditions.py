"""What conditions and effects mean: a pack's little language, read against the state of the game.

With an actor, a condition is judged from where that one stands (what they know, what they and their companions openly carry), so that an
offer never tells what somebody else keeps secret. Without one, it is judged for the party as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from talekeeper.errors import InvalidInput
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.language import Clause, Condition, Effect, read_line
from talekeeper.table.world.scenario import WATCHES, Exit, Scenario

_PLOT = "plot"


def begin(scenario: Scenario, party: Iterable[str]) -> GameState:
    """The state in which a pack begins, for these of its heroes."""
    seats = tuple(dict.fromkeys(party))
    strangers = [seat for seat in seats if seat not in scenario.heroes]
    if strangers or not seats:
        raise InvalidInput(
            f"the party must be of this adventure's heroes ({', '.join(scenario.heroes)}), not {', '.join(strangers) or 'empty'}"
        )
    return GameState(
        party=seats,
        where={**dict.fromkeys(seats, scenario.start), **{npc.id: npc.place for npc in scenario.npcs.values()}},
        act=scenario.acts[0].id,
        items={id: _first_holder(scenario, id, seats) for id in scenario.items},
        danger={id: place.danger for id, place in scenario.places.items()},
        visits={scenario.start: 1},
        attitude={npc.id: dict.fromkeys(seats, npc.attitude) for npc in scenario.npcs.values()},
        knows={id: tuple(who for who in secret.known if who in seats or who in scenario.npcs) for id, secret in scenario.secrets.items()},
    )


def _first_holder(scenario: Scenario, id: str, seats: tuple[str, ...]) -> str:
    item = scenario.items[id]
    if item.held in seats or item.held in scenario.npcs:
        return item.held
    return f"@{item.at}" if item.at else ""


def holds(conditions: Iterable[Condition], state: GameState, scenario: Scenario, actor: str = "") -> bool:
    """Whether every one of the conditions holds."""
    return all(any(clause_holds(clause, state, scenario, actor) for clause in condition) for condition in conditions)


def sayable(lines: Iterable[str], state: GameState, scenario: Scenario) -> list[str]:
    """The lines that may be told now, without the conditions before them."""
    return [text for when, text in map(read_line, lines) if not when or holds(when, state, scenario)]


def clause_holds(clause: Clause, state: GameState, scenario: Scenario, actor: str = "") -> bool:
    return _CLAUSES[clause.verb](state, scenario, clause.args, actor) is not clause.negated


def _has(state: GameState, item: str, actor: str) -> bool:
    holder = state.items.get(item, "")
    return holder in state.alive and (not actor or holder == actor or item not in state.hidden)


def _knows(state: GameState, secret: str, actor: str) -> bool:
    known = state.knows.get(secret, ())
    return actor in known if actor else any(one in known for one in state.alive)


def _feels(state: GameState, npc: str, actor: str) -> int:
    return state.feels(npc, actor) if actor else max((state.feels(npc, one) for one in state.alive), default=-5)


def is_over(state: GameState, encounter: str) -> bool:
    """Whether an encounter is done with. One that was escaped can come again."""
    return state.encounters.get(encounter, "escaped") != "escaped"


_CLAUSES: Mapping[str, Callable[[GameState, Scenario, tuple[str, ...], str], bool]] = {
    "has": lambda state, pack, args, actor: _has(state, args[0], actor),
    "holds": lambda state, pack, args, actor: state.items.get(args[1]) == args[0],
    "knows": lambda state, pack, args, actor: _knows(state, args[0], actor),
    "done": lambda state, pack, args, actor: args[0] in state.objectives,
    "quest": lambda state, pack, args, actor: args[0] in state.quests,
    "act": lambda state, pack, args, actor: pack.act_number(state.act) >= pack.act_number(args[0]),
    "dead": lambda state, pack, args, actor: args[0] in state.dead,
    "met": lambda state, pack, args, actor: state.flags.get(f"met.{args[0]}", 0) > 0,
    "at": lambda state, pack, args, actor: any(state.where[one] == args[0] for one in ((actor,) if actor else state.alive)),
    "visited": lambda state, pack, args, actor: state.visits.get(args[0], 0) > 0,
    "attitude": lambda state, pack, args, actor: _feels(state, args[0], actor) >= int(args[1]),
    "flag": lambda state, pack, args, actor: state.flags.get(f"{_PLOT}.{args[0]}", 0) > 0,
    "over": lambda state, pack, args, actor: is_over(state, args[0]),
    "won": lambda state, pack, args, actor: state.encounters.get(args[0], "") in ("won", "settled"),
    "promised": lambda state, pack, args, actor: args[0] in state.promises,
    "kept": lambda state, pack, args, actor: args[0] in state.promises and state.promises[args[0]].state == "kept",
    "broken": lambda state, pack, args, actor: args[0] in state.promises and state.promises[args[0]].state == "broken",
    "clock": lambda state, pack, args, actor: state.clock >= int(args[0]),
    "night": lambda state, pack, args, actor: watch(state) in ("evening", "night"),
    "hero": lambda state, pack, args, actor: args[0] in state.alive,
    "ended": lambda state, pack, args, actor: bool(state.ending),
    "lost": lambda state, pack, args, actor: not state.alive,
}


def is_lasting(scenario: Scenario, promise: str) -> bool:
    """Whether a promise is kept by leaving something alone: nobody can be asked when it will be done."""
    return promise in scenario.vows and scenario.vows[promise].lasting


def watch(state: GameState) -> str:
    """Which of the six watches of the day it is."""
    return WATCHES[state.clock % len(WATCHES)]


def day(state: GameState) -> int:
    """Which day it is, from 1."""
    return 1 + state.clock // len(WATCHES)


def ways_out(state: GameState, scenario: Scenario, place: str, actor: str = "") -> list[tuple[Exit, bool]]:
    """The ways out of a place that can be seen, each with whether it is open."""
    found = ((exit, holds(exit.when, state, scenario, actor)) for exit in scenario.places[place].exits)
    return [(exit, is_open) for exit, is_open in found if is_open or not exit.hidden]


def commands_for(effects: Iterable[Effect], state: GameState, scenario: Scenario, actor: str, *, secretly: bool = False) -> list[Command]:
    """The commands by which effects come about when someone does something; in secret, only that one learns and gains."""
    return [command for effect in effects for command in _EFFECTS[effect.verb](_Doing(state, scenario, actor, secretly), effect.args)]


class _Doing:
    """Who does something, where, before whose eyes."""

    def __init__(self, state: GameState, scenario: Scenario, actor: str, secretly: bool) -> None:
        self.state, self.scenario, self.actor, self.secretly = state, scenario, actor, secretly

    def learners(self, secret: str) -> tuple[str, ...]:
        near = (self.actor,) if self.secretly else self.state.company(self.actor)
        return tuple(one for one in near if one not in self.state.knows.get(secret, ()))

    def holder(self, item: str) -> str:
        """Who of the party has it: whoever acts, if they do."""
        return self.state.items.get(item, "") if self.state.items.get(item) in self.state.party else self.actor

    def vow(self, promise: str) -> cm.MakePromise:
        vow = self.scenario.vows[promise]
        return cm.MakePromise(promise, vow.to, vow.text, self.actor, self.secretly)

    def is_open(self, promise: str) -> bool:
        """Whether a promise was made and is still owed: what nobody promised cannot be kept, and need not be."""
        return promise in self.state.promises and self.state.promises[promise].state == "open"

    def feel(self, npc: str, by: int) -> list[Command]:
        """What is done before all eyes is credited to all who stand by."""
        near = () if self.secretly else self.state.company(self.actor)
        return [cm.ChangeRelationship(npc, by, one) for one in dict.fromkeys((self.actor, *near))]


def _learn(doing: _Doing, args: tuple[str, ...]) -> list[Command]:
    learners = doing.learners(args[0])
    return [cm.LearnSecret(args[0], learners)] if learners else []


_EFFECTS: Mapping[str, Callable[[_Doing, tuple[str, ...]], list[Command]]] = {
    "gain": lambda doing, args: [cm.GainItem(args[0], doing.actor, doing.secretly)],
    "lose": lambda doing, args: [cm.LoseItem(args[0], doing.holder(args[0]))],
    "give": lambda doing, args: [cm.GiveItem(args[0], args[1], doing.holder(args[0]))],
    "learn": _learn,
    "flag": lambda doing, args: [cm.SetFlag(f"{_PLOT}.{args[0]}")],
    "unflag": lambda doing, args: [cm.SetFlag(f"{_PLOT}.{args[0]}", 0)],
    "attitude": lambda doing, args: doing.feel(args[0], int(args[1])),
    "promise": lambda doing, args: [doing.vow(args[0])] if args[0] not in doing.state.promises else [],
    "keep": lambda doing, args: [cm.KeepPromise(args[0])] if doing.is_open(args[0]) else [],
    "break": lambda doing, args: [cm.BreakPromise(args[0])] if doing.is_open(args[0]) else [],
    "kill": lambda doing, args: [cm.Kill(args[0])],
    "wound": lambda doing, args: [cm.Wound(doing.actor, int(args[0]))],
    "mend": lambda doing, args: [cm.Mend(doing.actor, int(args[0]))],
    "danger": lambda doing, args: [cm.UpdateLocation(args[0], args[1])],
    "start": lambda doing, args: [cm.StartEncounter(args[0])],
    "end": lambda doing, args: [cm.ResolveEncounter(args[0], "won")],
    "lose_to": lambda doing, args: [cm.ResolveEncounter(args[0], "lost")],
    "turn": lambda doing, args: [cm.TurnEncounter(int(args[0]))],
    "move": lambda doing, args: [cm.ChangeLocation(args[1], (args[0],))],
    "go": lambda doing, args: [cm.ChangeLocation(args[0])],
    "complete": lambda doing, args: [cm.CompleteObjective(args[0])],
    "finish": lambda doing, args: [cm.EndStory(args[0])],
    "time": lambda doing, args: [cm.PassTime(int(args[0]))],
}
