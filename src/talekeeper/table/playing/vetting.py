"""What is told must be possible: answers are read before they are heard, whoever gives them.

A speech is heard sentence by sentence. The first one that contradicts the game (see `ledger`) ends it: the speaker is told what is wrong,
once, and goes on from what was heard; where that cannot be either, or where nothing is said at all, the built-in storyteller tells it by
the rules. Rulings are read in the same way. Every contradiction is told to `notice`, and none of them gets into the story.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace

from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask, Brain, Objection
from talekeeper.table.rules.ledger import Contradiction, contradictions
from talekeeper.table.rules.settling import settle
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Scenario

_SENTENCE = re.compile(r"[^.!?…\n]*(?:[.!?…]+[”’\")»]*\s+|\n+)")
_ANSWERS = 2
"""The first one, and one more where that contradicts the game."""
Notice = Callable[[Contradiction], None]


class Vetting:
    """Reads along with whoever speaks at a table."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._rules = Storyteller(scenario)

    async def speech(self, brain: Brain, ask: Ask, states: Sequence[GameState], notice: Notice) -> AsyncGenerator[str, None]:
        """What is heard of the answer. `states`: the game as it was while what is told came about; none where anything may be told."""
        if not states or isinstance(brain, Storyteller):
            async for piece in brain.speak(ask):
                yield piece
            return
        asked, heard = ask, ""
        for _ in range(_ANSWERS):
            found, text = list[Contradiction](), ""
            pieces = brain.speak(asked)
            try:
                async for sentence in _sentences(pieces):
                    text += sentence
                    found = contradictions(sentence, states, self._scenario)
                    if found:
                        break
                    heard += sentence
                    yield sentence
            finally:
                if isinstance(pieces, AsyncGenerator):
                    await pieces.aclose()
            if not found:
                break
            asked = replace(ask, objection=_objection(found, text, heard, notice))
        if found or not heard.strip():
            if heard.strip():
                yield "\n\n"
            async for piece in self._rules.speak(ask):
                yield piece

    async def ruling(self, brain: Brain, ask: Ask, state: GameState, notice: Notice) -> KeeperResponse:
        """A ruling whose words contradict neither the game as it is nor as it will be; in the end the one by the rules."""
        asked = ask
        for _ in range(_ANSWERS):
            answer = await brain.rule(asked)
            if isinstance(brain, Storyteller):
                return answer
            if not answer.resolution.strip():
                break
            after = settle(state, self._scenario, answer.commands, ask.actor).state
            found = contradictions(f"{answer.resolution}\n{answer.moment_summary or ''}", [state, after], self._scenario)
            if not found:
                return answer
            asked = replace(ask, objection=_objection(found, answer.resolution, "", notice))
        return await self._rules.rule(ask)


def _objection(found: Sequence[Contradiction], text: str, heard: str, notice: Notice) -> Objection:
    for one in found:
        notice(one)
    return Objection("; ".join(one.text for one in found), text.strip(), heard.strip())


def _is_whole(sentence: str) -> bool:
    """Whether no quotation is open at its end: “English”, „Deutsch“, «français»."""
    low, high = sentence.count("„"), sentence.count("“")
    quoted = low <= high + sentence.count("”") if low else high <= sentence.count("”")
    return quoted and sentence.count("«") <= sentence.count("»") and not sentence.count('"') % 2


async def _sentences(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """The same text, cut behind sentences; what is quoted stays with the one who says it."""
    waiting = ""
    async for piece in pieces:
        waiting += piece
        begin = 0
        for found in _SENTENCE.finditer(waiting):
            sentence = waiting[begin : found.end()]
            if _is_whole(sentence) or sentence.endswith("\n"):
                yield sentence
                begin = found.end()
        waiting = waiting[begin:]
    if waiting:
        yield waiting
