"""The built-in storyteller: a brain that needs no model, no key and no network, and tells a pack as a game.

It keeps nothing between two asks. What it says depends on the pack, the seed, the round, the state and the listener's own context, so the
same game told twice is the same story, and one that was wound back goes on from where it is.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable

from talekeeper.errors import InvalidInput
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask
from talekeeper.table.shown.prose import Prose
from talekeeper.table.storyteller import companions, epilogue, rulings
from talekeeper.table.storyteller.narration import Narrator
from talekeeper.table.storyteller.stage import set_scene
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Scenario

_PIECES = re.compile(r".+?(?:[.!?…]+[”’\")]*\s+|$)", re.S)


class Storyteller:
    """Plays everyone at the table who is not a person, from one pack."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        """The answer, sentence by sentence."""
        for piece in _PIECES.findall(self.text(ask)):
            yield piece

    async def rule(self, ask: Ask) -> KeeperResponse:
        state = _whole(ask)
        actor = ask.actor or ask.seat
        leader = ask.leader if ask.leader in state.able else next(iter(state.able), actor)
        return rulings.rule(self.scenario, state, actor, ask.action, self._prose(ask, actor), leads=actor == leader)

    def text(self, ask: Ask) -> str:
        """The whole answer at once."""
        prose = self._prose(ask, ask.seat)
        if ask.role == "pc":
            return companions.act(self.scenario, ask, prose)
        state = _whole(ask)
        if ask.role == "dm":
            return set_scene(self.scenario, ask, state, prose)
        if ask.role == "narrator":
            return Narrator(self.scenario, ask, state, prose).tell()
        if ask.role == "epilogue":
            return epilogue.tell(self.scenario, ask, state, prose)
        raise InvalidInput("the keeper rules and does not speak: ask it with rule")

    def _prose(self, ask: Ask, who: str) -> Prose:
        return Prose(self.scenario, ask.seed, ask.round, f"{ask.role}/{who}", _heard(ask), ask.state)


def _whole(ask: Ask) -> GameState:
    if ask.state is None:
        raise InvalidInput(f"the {ask.role} knows everything: give the ask the whole state")
    return ask.state


def _heard(ask: Ask) -> str:
    """What was said lately, as far as this speaker heard it, this round included."""
    said: Iterable[str] = (text for _, text in ask.said)
    return "\n".join((ask.context.text, *said, *(ruling.action for ruling in ask.rulings)))
