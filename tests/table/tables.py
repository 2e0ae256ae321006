"""What tests of the table share: the small pack, and short ways to play on it."""

from __future__ import annotations

from pathlib import Path

from talekeeper.table.packs import load
from talekeeper.table.rules.conditions import begin
from talekeeper.table.rules.handlers import Accepted, Refused, handle
from talekeeper.table.rules.settling import settle
from talekeeper.table.world.commands import Command
from talekeeper.table.world.events import Event
from talekeeper.table.world.gamestate import GameState

SMALL = load(Path(__file__).parent / "small.toml")
PARTY = ("wren", "tam")


def start() -> GameState:
    return begin(SMALL, PARTY)


def after(*commands: object, actor: str = "wren") -> GameState:
    """The state after commands, none of which may be refused."""
    settled = settle(start(), SMALL, commands, actor)
    assert not settled.refused, settled.refused
    return settled.state


def events(state: GameState, command: Command, actor: str = "wren") -> tuple[Event, ...]:
    answer = handle(state, SMALL, command, actor)
    assert isinstance(answer, Accepted), answer
    return answer.events


def refusal(state: GameState, command: Command, actor: str = "wren") -> str:
    answer = handle(state, SMALL, command, actor)
    assert isinstance(answer, Refused), answer
    return answer.reason
