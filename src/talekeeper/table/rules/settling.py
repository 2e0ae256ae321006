"""What becomes of a ruling: all commands of a keeper, decided one after the other, and what follows by itself.

Objectives come true, quests end, acts and the arc move on because of what happened, whoever told it: no keeper has to remember them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from talekeeper.errors import InvalidInput
from talekeeper.table.rules.handlers import Accepted, Refused, Trigger, handle
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command, command_from_json
from talekeeper.table.world.events import Event
from talekeeper.table.world.gamestate import GameState, apply, fold
from talekeeper.table.world.scenario import Scenario

_MOST_FOLLOWING = 40


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a ruling's commands."""

    state: GameState
    events: tuple[Event, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    refused: tuple[str, ...] = ()


def settle(state: GameState, scenario: Scenario, asked: Iterable[object], actor: str = "") -> Settled:
    """Decides all commands of one ruling (typed, or as JSON objects), each on the state that the ones before left, and what follows."""
    events: list[Event] = []
    found: list[Trigger] = []
    refused: list[str] = []
    for one in asked:
        try:
            answer = handle(state, scenario, one if isinstance(one, Command) else command_from_json(one), actor)
        except InvalidInput as exc:
            answer = Refused(str(exc))
        if isinstance(answer, Refused):
            refused.append(answer.reason)
            continue
        events += answer.events
        found += answer.triggers
        state = fold(state, answer.events)
    for event, trigger in _following(state, scenario):
        events.append(event)
        found += trigger
        state = apply(state, event)
    return Settled(state, tuple(events), tuple(found), tuple(refused))


def _following(state: GameState, scenario: Scenario) -> Iterator[tuple[Event, tuple[Trigger, ...]]]:
    """What comes true by itself, one after the other, until nothing more does."""
    for _ in range(_MOST_FOLLOWING):
        wished = (handle(state, scenario, command) for command in _due(state, scenario))
        answer = next((answer for answer in wished if isinstance(answer, Accepted)), None)
        if answer is None:
            return
        yield answer.events[0], answer.triggers
        state = fold(state, answer.events)


def _due(state: GameState, scenario: Scenario) -> Iterator[Command]:
    yield from (cm.CompleteObjective(id) for id in scenario.objectives if id not in state.objectives)
    yield from (cm.CompleteQuest(id) for id in scenario.quests if id not in state.quests)
    yield cm.ProgressAct()
    if not state.ending:
        yield from (cm.EndStory(ending.id) for ending in scenario.endings)
