"""What could be done, and what it would lead to: the pack as a graph of actions and facts.

Everything a pack allows (going, asking, doing, fighting, waiting) is an action with what it needs and what it makes true. Forgetting
that actions can also undo things, one pass over them tells what can still come true, how far away it is, and what to do first. The
soundness check asks it of the beginning, the storyteller of the present: for hints, for offers, and for companions who know what they want.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from talekeeper.kept import kept
from talekeeper.table.rules.conditions import is_over, watch
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.language import Clause, Condition, Effect
from talekeeper.table.world.scenario import Scenario

P = ParamSpec("P")
V = TypeVar("V")
FAR = 10**6
_BEFRIENDING = 3
"""What a step of somebody's liking counts."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that could be done. `kind` and `id` say what: ("topic", "oda/bell"), ("go", "mill"), ("deed", "climb")."""

    kind: str
    id: str
    needs: tuple[Condition, ...]
    makes: tuple[str, ...]
    cost: int = 1
    place: str = ""


class _Same:
    """Anything that is never changed, as a key: by its identity, held so that the identity stays its own."""

    __slots__ = ("it",)

    def __init__(self, it: object) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


def worked_out_once(make: Callable[Concatenate[Scenario, GameState, P], V]) -> Callable[Concatenate[Scenario, GameState, P], V]:
    """What follows from a pack and a state, worked out once for the same two: a round asks again and again."""

    @kept(512)
    def known(scenario: _Same, state: _Same, *args: Any, **more: Any) -> Any:
        return make(scenario.it, state.it, *args, **more)  # type: ignore[arg-type]

    @functools.wraps(make)
    def ask(scenario: Scenario, state: GameState, /, *args: P.args, **more: P.kwargs) -> V:
        return known(_Same(scenario), _Same(state), *args, **more)  # type: ignore[arg-type,no-any-return]

    return ask


@functools.lru_cache(maxsize=8)
def _actions(pack: _Same) -> tuple[Action, ...]:
    return tuple(_all_actions(pack.it))  # type: ignore[arg-type]


def actions(scenario: Scenario) -> tuple[Action, ...]:
    """Everything that the pack allows, whatever the state."""
    return _actions(_Same(scenario))


@functools.lru_cache(maxsize=8)
def _hanging_on(pack: _Same) -> Mapping[str, list[int]]:
    """For each fact the places of the actions that need it, among all of them. Whoever must be near someone needs `at` and `npc_at`."""
    found: dict[str, list[int]] = {}
    for place, action in enumerate(_actions(pack)):
        for clause in (clause for condition in action.needs for clause in condition):
            near = clause.verb == "near"
            for name in ("at", f"npc_at {clause.args[0]}") if near else (f"not {clause.fact}" if clause.negated else clause.fact,):
                found.setdefault(name, []).append(place)
    return found


def _need(verb: str, *args: str) -> Condition:
    return (Clause(verb, args),)


def _all_actions(pack: Scenario) -> Iterator[Action]:
    yield from _goings(pack)
    for npc in pack.npcs.values():
        by, alive = _need("near", npc.id), (Clause("dead", (npc.id,), negated=True),)
        yield Action("meet", npc.id, (by, alive), (f"met {npc.id}",))
        for step in range(-4, 6):
            yield Action("befriend", npc.id, (by, alive), (f"attitude {npc.id} {step}",), max(1, step * _BEFRIENDING))
        for topic in npc.topics:
            liked = _need("attitude", npc.id, str(topic.attitude))
            yield Action("topic", f"{npc.id}/{topic.id}", (by, alive, liked, *topic.when), _made(topic.do, pack))
        if npc.mortal:
            yield Action("kill", npc.id, (by, alive), (f"dead {npc.id}",), 40)
    yield from _doings(pack)
    yield from _bookkeeping(pack)


def _goings(pack: Scenario) -> Iterator[Action]:
    for place in pack.places.values():
        for exit in place.exits:
            yield Action("go", exit.to, (_need("at", place.id), *exit.when), (f"at {exit.to}", f"visited {exit.to}"), 1, place.id)
        for item in pack.items.values():
            if item.at == place.id:
                yield Action("take", item.id, (_need("at", place.id), _need("lying", item.id)), (f"has {item.id}",), 1, place.id)
    yield Action("wait", "night", (), ("night",), 3)
    for number in {int(clause.args[0]) for clause in _clauses(pack) if clause.verb == "clock"}:
        yield Action("wait", "clock", (), (f"clock {number}",), 60)


def _clauses(pack: Scenario) -> Iterator[Clause]:
    lists = [one.when for one in pack.endings] + [one.when for one in pack.happenings] + [one.when for one in pack.deeds]
    lists += [act.until for act in pack.acts] + [topic.when for npc in pack.npcs.values() for topic in npc.topics]
    yield from (clause for conditions in lists for condition in conditions for clause in condition)


def _doings(pack: Scenario) -> Iterator[Action]:
    for deed in pack.deeds:
        made = (*_made(deed.success.do, pack), f"did {deed.id}")
        where = [_need("near", deed.npc)] if deed.npc else [_need("at", place) for place in deed.at or tuple(pack.places)]
        fresh = () if deed.repeat else ((Clause("did", (deed.id,), negated=True),),)
        alive = ((Clause("dead", (deed.npc,), negated=True),),) if deed.npc else ()
        for one in where:
            place = "" if deed.npc else one[0].args[0]
            yield Action("deed", deed.id, (one, *alive, *fresh, *deed.when), made, 2 if deed.skill else 1, place)
    for encounter in pack.encounters.values():
        ways = tuple(effect for way in encounter.ways for effect in way.success.do)
        made = (f"over {encounter.id}", f"won {encounter.id}", *_made((*encounter.won.do, *ways), pack))
        for place in encounter.at:
            fresh = ((Clause("over", (encounter.id,), negated=True),),)
            yield Action("encounter", encounter.id, (_need("at", place), *fresh, *encounter.when), made, 1 + encounter.grit, place)
    for happening in pack.happenings:
        made = _made(happening.do, pack)
        if made:
            for place in _places_of(happening.at, happening.regions, pack):
                yield Action("happening", happening.id, (_need("at", place), *happening.when), made, 4, place)


def _places_of(at: tuple[str, ...], regions: tuple[str, ...], pack: Scenario) -> list[str]:
    return [id for id, place in pack.places.items() if (not at and not regions) or id in at or place.region in regions]


def _bookkeeping(pack: Scenario) -> Iterator[Action]:
    for objective in pack.objectives.values():
        for path in objective.paths:
            yield Action("objective", objective.id, (_need("act", objective.act), *path.when), (f"done {objective.id}",), 0)
    for quest in pack.quests.values():
        wanted = tuple(_need("done", one.id) for one in pack.objectives.values() if one.quest == quest.id and not one.optional)
        yield Action("quest", quest.id, wanted, (f"quest {quest.id}",), 0)
    for act, following in zip(pack.acts, pack.acts[1:], strict=False):
        yield Action("act", following.id, (_need("act", act.id), *act.until), (f"act {following.id}",), 0)
    for ending in pack.endings:
        yield Action("ending", ending.id, ending.when, (f"ending {ending.id}", "ended"), 0)


def _made(effects: Iterable[Effect], pack: Scenario) -> tuple[str, ...]:
    """What effects make true, in the words of conditions."""
    return tuple(made for effect in effects for made in _made_by(effect, pack))


def _made_by(effect: Effect, pack: Scenario) -> Iterable[str]:
    verb, args = effect.verb, effect.args
    match verb:
        case "gain":
            return (f"has {args[0]}",)
        case "give":
            return (f"holds {args[1]} {args[0]}",)
        case "learn":
            return (f"knows {args[0]}",)
        case "flag":
            return (f"flag {args[0]}",)
        case "attitude":
            return tuple(f"attitude {args[0]} {step}" for step in range(-4, 1 + effect.number + pack.npcs[args[0]].attitude))
        case "promise":
            return (f"promised {args[0]}",)
        case "keep":
            return (f"kept {args[0]}",)
        case "break":
            return (f"broken {args[0]}",)
        case "kill":
            return (f"dead {args[0]}",)
        case "end":
            return (f"over {args[0]}", f"won {args[0]}")
        case "lose_to":
            return (f"over {args[0]}",)
        case "move":
            return (f"npc_at {args[0]} {args[1]}",)
        case "go":
            return (f"at {args[0]}", f"visited {args[0]}")
        case "complete":
            return (f"done {args[0]}",)
        case "finish":
            return (f"ending {args[0]}", "ended")
        case "lose" | "unflag":
            return (f"not {'has' if verb == 'lose' else 'flag'} {args[0]}",)
    return ()


def facts(state: GameState, scenario: Scenario) -> frozenset[str]:
    """What is true now, in the words of conditions."""
    alive = state.alive
    found = {f"at {state.where[one]}" for one in alive} | {f"visited {place}" for place in state.visits} | {f"hero {one}" for one in alive}
    found |= {f"npc_at {npc} {state.where[npc]}" for npc in scenario.npcs if npc not in state.dead}
    found |= {f"done {id}" for id in state.objectives} | {f"quest {id}" for id in state.quests} | {f"dead {id}" for id in state.dead}
    found |= {f"act {act.id}" for act in scenario.acts[: scenario.act_number(state.act)]}
    found |= {f"knows {id}" for id, known in state.knows.items() if any(one in known for one in alive)}
    found |= {f"{'has' if holder in alive else 'lying' if holder.startswith('@') else 'held'} {id}" for id, holder in state.items.items()}
    found |= {f"holds {holder} {id}" for id, holder in state.items.items() if holder in scenario.npcs}
    found |= {f"over {id}" for id in state.encounters if is_over(state, id)}
    found |= {f"won {id}" for id, outcome in state.encounters.items() if outcome in ("won", "settled")}
    found |= {f"promised {id}" for id in state.promises} | {f"{one.state} {id}" for id, one in state.promises.items()}
    for name, value in state.flags.items():
        kind, _, id = name.partition(".")
        if value > 0 and kind in ("plot", "met", "did"):
            found.add(f"{'flag' if kind == 'plot' else kind} {id}")
    for npc in scenario.npcs:
        felt = max((state.feels(npc, one) for one in alive), default=-5)
        found |= {f"attitude {npc} {step}" for step in range(-5, felt + 1)}
    if watch(state) in ("evening", "night"):
        found.add("night")
    if state.ending:
        found.add("ended")
    return frozenset(found)


def _going(whereabouts: str) -> str:
    """Where one has to be for `npc_at oda mill`."""
    return f"at {whereabouts.rsplit(' ', 1)[1]}"


def _of_whereabouts(name: str) -> str:
    """What those hang on who must be near someone: `at` of `at mill`, `npc_at oda` of `npc_at oda mill`."""
    return name.rpartition(" ")[0] if name.startswith(("at ", "npc_at ")) else ""


class Outlook:
    """What can come true from some facts on: how far away each is, and by which action it would come."""

    def __init__(self, scenario: Scenario, known: frozenset[str]) -> None:
        self.cost: dict[str, int] = dict.fromkeys(known, 0)
        self.best: dict[str, Action] = {}
        self._known = known
        self._seen_at: dict[str, list[str]] = {}
        for name in known:
            self._note_where(name)
        self._spread(actions(scenario), _hanging_on(_Same(scenario)))

    def _spread(self, everything: tuple[Action, ...], hanging_on: Mapping[str, Sequence[int]]) -> None:
        """Goes over the actions until nothing comes nearer, and over none again for which nothing has."""
        due = [True] * len(everything)
        while True in due:
            for place, action in enumerate(everything):
                if not due[place]:
                    continue
                due[place] = False
                far = self.far(action.needs)
                for made in action.makes if far < FAR else ():
                    if far + action.cost < self.cost.get(made, FAR):
                        if made not in self.cost:
                            self._note_where(made)
                        self.cost[made] = far + action.cost
                        self.best[made] = action
                        for other in (*hanging_on.get(made, ()), *hanging_on.get(_of_whereabouts(made), ())):
                            due[other] = True

    def far(self, conditions: Iterable[Condition]) -> int:
        """How much it takes until all the conditions hold; `FAR` if they never will."""
        total = 0
        for condition in conditions:
            total += self._far(condition[0])[0] if len(condition) == 1 else min([self._far(clause)[0] for clause in condition])
            if total >= FAR:
                return FAR
        return total

    def _far(self, clause: Clause) -> tuple[int, str]:
        """How far a clause is, and the fact that makes it true."""
        name = clause.fact
        if clause.negated:
            if clause.verb in ("night", "lost") or name not in self._known:
                return (0 if name not in self._known else 1), ""
            undone = f"not {name}"
            return self.cost.get(undone, FAR), undone
        if clause.verb == "near":
            seen = self._seen_at.get(clause.args[0], ())
            return min(((self.cost[made] + self.cost.get(_going(made), FAR), made) for made in seen), default=(FAR, ""))
        return self.cost.get(name, FAR), name

    def _note_where(self, name: str) -> None:
        """Facts such as `npc_at oda mill`, by the one they are about."""
        if name.startswith("npc_at "):
            self._seen_at.setdefault(name.split(" ")[1], []).append(name)

    def way_to(self, conditions: Iterable[Condition]) -> list[Action]:
        """The actions that lead to the conditions, those that come first in front; none where they never come true."""
        conditions = tuple(conditions)
        if self.far(conditions) >= FAR:
            return []
        found: dict[tuple[str, str, str], Action] = {}
        self._collect(conditions, found, set())
        return [action for action in found.values() if action.cost]

    def _collect(self, conditions: Iterable[Condition], found: dict[tuple[str, str, str], Action], seen: set[str]) -> None:
        for condition in conditions:
            _, name = min((self._far(clause) for clause in condition), key=lambda pair: pair[0])
            wanted = [name, _going(name)] if name.startswith("npc_at ") else [name]
            for one in wanted:
                action = self.best.get(one)
                if action is None or one in seen or one in self._known:
                    continue
                seen.add(one)
                self._collect(action.needs, found, seen)
                found.setdefault((action.kind, action.id, action.place), action)

    def ready(self, action: Action) -> bool:
        """Whether an action could be done at once."""
        return self.far(action.needs) == 0


@functools.lru_cache(maxsize=256)
def _outlook(pack: _Same, known: frozenset[str]) -> Outlook:
    return Outlook(pack.it, known)  # type: ignore[arg-type]


@worked_out_once
def outlook(scenario: Scenario, state: GameState) -> Outlook:
    return _outlook(_Same(scenario), facts(state, scenario))


@worked_out_once
def open_objectives(scenario: Scenario, state: GameState) -> tuple[str, ...]:
    """The objectives of the acts so far that are not done, nearest first."""
    view = outlook(scenario, state)
    now = scenario.act_number(state.act)
    found = [one.id for one in scenario.objectives.values() if one.id not in state.objectives and scenario.act_number(one.act) <= now]
    order: Mapping[str, int] = {id: view.cost.get(f"done {id}", FAR) for id in found}
    return tuple(sorted(found, key=lambda id: (scenario.objectives[id].optional, order[id])))
