"""The built-in keeper: from what a player means to what the game is asked to do, with dice where dice decide.

A ruling is commands, so the same rules that hold a model in check hold the storyteller. The first of them is a beat: what the action was
understood to be, and how it came out. The narrator tells the round from those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.meaning.understand import Intent, Listener
from talekeeper.table.rules import contest
from talekeeper.table.rules.conditions import commands_for, holds
from talekeeper.table.rules.settling import settle
from talekeeper.table.shown.prose import Prose
from talekeeper.table.storyteller import dealings, doings
from talekeeper.table.storyteller.case import Case, Ruled
from talekeeper.table.world import commands as cm
from talekeeper.table.world import events as ev
from talekeeper.table.world.commands import Command, command_to_json
from talekeeper.table.world.gamestate import DOWN, GameState
from talekeeper.table.world.scenario import Happening, Mark, Scenario

_WATCH_EVERY = 3
_HAPPENING_EVERY = 4
_NO_ROLL = "No roll"
_RESOLUTION = 400
_SUMMARY = 160
Rule = Callable[[Case, Intent], Ruled]

_RULES: Mapping[str, Rule] = {
    "go": doings.go, "look": doings.look, "read": doings.look, "search": doings.search, "deed": doings.deed, "way": doings.way,
    "flee": doings.flee, "help": doings.help_someone, "rest": doings.rest, "take": doings.take, "steal": doings.steal,
    "give": doings.give, "use": doings.use, "open": doings.use, "drop": doings.drop, "work": doings.work, "trade": dealings.order,
    "follow": doings.follow, "wait": doings.wait, "listen": doings.wait, "hide": doings.wait,
    "talk": dealings.talk, "ask": dealings.ask, "say": dealings.say, "persuade": dealings.persuade, "calm": dealings.persuade,
    "deceive": dealings.persuade, "threaten": dealings.threaten, "attack": dealings.attack, "promise": dealings.promise,
    "keep": dealings.keep, "renounce": dealings.renounce, "reveal": dealings.reveal, "whisper": dealings.whisper,
    "wonder": dealings.wonder, "where": dealings.where, "who": dealings.who, "about": dealings.about, "foreign": dealings.foreign,
    "insult": dealings.insult, "self": dealings.oneself, "carried": dealings.carried, "here": dealings.oneself, "sky": dealings.oneself,
    "present": dealings.oneself, "owed": dealings.owed,
    "known": dealings.known, "recall": dealings.recall, "thought": dealings.thought, "doubt": dealings.thought,
    "play": doings.perform, "pray": doings.perform,
    "aside": lambda case, intent: Ruled("No roll. It is heard.", [case.beat("follow")]),
    "hint": lambda case, intent: Ruled("No roll.", [case.beat("hint")]),
    "unclear": lambda case, intent: Ruled("No roll.", [case.beat("unclear")]),
    "rules": lambda case, intent: Ruled("No roll.", [case.beat("rules", intent.topic)]),
}  # fmt: skip
_ANY_TIME = frozenset({
    "aside", "carried", "deed", "doubt", "flee", "foreign", "give", "help", "here", "hint", "owed", "present", "recall", "reveal",
    "rules", "say", "self", "sky", "thought", "unclear", "way", "where", "whisper", "who", "wonder",
})  # fmt: skip
"""What an encounter does not turn into a way through it."""


def rule(scenario: Scenario, state: GameState, actor: str, action: str, prose: Prose, *, leads: bool) -> KeeperResponse:
    """The ruling on an action. Whoever leads also moves the world along: time, chance, what lies in wait."""
    case = Case(scenario, state, actor, prose, leads=leads)
    found = [_down(case)] if state.wounds.get(actor, 0) >= DOWN else _each(case, action)
    commands = [command for one in found for command in one.commands]
    after = settle(state, scenario, commands, actor).state
    commands += _world(case, after) if leads else _ambush(case, after)
    settled = settle(state, scenario, commands, actor)
    mark = _weightiest(scenario, [one.mark for one in found if one.mark is not None], settled.events)
    text = " ".join([*_outcomes(found, settled.events), *(f"Refused: {reason}." for reason in settled.refused)])[:_RESOLUTION]
    asked = tuple(map(command_to_json, commands))
    return KeeperResponse(text, mark.type, mark.summary[:_SUMMARY], mark.weight, asked) if mark else KeeperResponse(text, commands=asked)


def _outcomes(found: Iterable[Ruled], events: Iterable[ev.Event]) -> list[str]:
    """The keeper's words, without those that only say that nothing was thrown; none at all where nothing came of it either."""
    words = [one.resolution for one in found]
    telling = [one for one in words if not one.startswith(_NO_ROLL)]
    return telling or (words if any(not isinstance(event, ev.Beat) for event in events) else [])


def _down(case: Case) -> Ruled:
    return Ruled(f"{case.name(case.actor)} is down.", [case.beat("down")])


def _nothing(case: Case, intent: Intent) -> Ruled:
    return case.nothing()


def _each(case: Case, action: str) -> list[Ruled]:
    """Each intent of an action is decided on what the one before has left behind."""
    found: list[Ruled] = []
    been = [case.place]
    for intent in Listener(case.scenario, case.state, case.actor).intents(action):
        if len(been) > 1 and intent.verb == "go" and intent.place in ("", *been):
            continue  # “the market, then: out by the front door” is one way, told twice
        if len(been) > 1 and intent.words and not intent.hero:  # what is meant depends on where one is by then
            intent = Listener(case.scenario, case.state, case.actor).intents(intent.words)[0]
        case.secretly = intent.secretly
        fighting = bool(case.state.encounter) and intent.verb not in _ANY_TIME
        one = (doings.way_by_verb if fighting else _RULES.get(intent.verb, _nothing))(case, intent)
        found.append(one)
        case.state = settle(case.state, case.scenario, one.commands, case.actor).state
        been += [case.place] if case.place != been[-1] else []
    return [one for one in found if not one.is_nothing] or found[:1]


def _weightiest(scenario: Scenario, marks: list[Mark], events: Iterable[ev.Event]) -> Mark | None:
    """Of all that happened, what is most worth remembering."""
    for event in events:
        if isinstance(event, ev.ObjectiveCompleted):
            mark = scenario.objectives[event.objective].mark
            marks += [mark] if mark is not None else []
        elif isinstance(event, ev.EncounterEnded):
            marks += _encounter_mark(scenario, event)
        elif isinstance(event, ev.Died):
            how = "lost {}" if event.who in scenario.heroes else "saw {} die"
            own = [mark for mark in marks if mark.summary == f"killed {scenario.name(event.who)}"]
            marks += [] if own else [Mark(type="turning_point", summary=how.format(scenario.name(event.who)), weight=0.95)]
    return max(marks, key=lambda mark: mark.weight, default=None)


def _encounter_mark(scenario: Scenario, event: ev.EncounterEnded) -> list[Mark]:
    encounter = scenario.encounters[event.encounter]
    if event.outcome == "lost":
        return [Mark(type="combat_defeat", summary=f"were beaten by {encounter.name}", weight=0.8)]
    return [encounter.mark] if encounter.mark is not None and event.outcome in ("won", "settled") else []


# -- the world ---------------------------------------------------------------------------------------------------------


def _world(case: Case, state: GameState) -> list[Command]:
    time: list[Command] = [cm.PassTime()] if case.prose.round % _WATCH_EVERY == 0 else []
    return time + (_ambush(case, state) or ([] if state.encounter else _happening(case, state)))


def _ambush(case: Case, state: GameState) -> list[Command]:
    encounter = contest.due(case.scenario, state, case.actor)
    return [cm.StartEncounter(encounter.id)] if encounter is not None else []


def _happening(case: Case, state: GameState) -> list[Command]:
    """Now and then something comes to pass by itself: what never did before first, then what did least."""
    if case.actor in state.dead or not case.prose.once_in(_HAPPENING_EVERY, "happening"):
        return []
    place = case.scenario.places[state.where[case.actor]]

    below = not place.sky and any(other.sky for other in case.scenario.places.values() if other.region == place.region)

    def times(one: Happening) -> int:
        return state.flags.get(f"happened.{one.id}", 0)

    def fits(one: Happening) -> bool:
        anywhere = place.sky and not one.at and not one.regions
        local = anywhere or place.id in one.at or (place.region in one.regions and not below)
        return local and (one.repeat or not times(one)) and holds(one.when, state, case.scenario)

    fitting = [one for one in case.scenario.happenings if fits(one)]
    if not fitting:
        return []
    one = min(fitting, key=lambda one: (times(one), case.prose.chance(1 << 30, one.id)))
    told = [cm.TellBeat("happening", (one.id,)), cm.SetFlag(f"happened.{one.id}", times(one) + 1)]
    return [*told, *commands_for(one.do, state, case.scenario, case.actor)]
