"""A table without memory or graph: DM, player characters, keeper, narrator, round after round, for tests of the storyteller.

Each seat hears what it may hear, and its context is the newest part of that, word for word, with the moments in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from talekeeper.context import recipe
from talekeeper.context.recipe import MOMENTS_PART, RECENT_PART
from talekeeper.memory.moments import AdventureMoment, KeeperResponse, build_moment_from_keeper, format_moments_for_context
from talekeeper.model import Block, Context, Item
from talekeeper.table.brain import Ask, Known, Part, Ruling
from talekeeper.table.rules.conditions import begin
from talekeeper.table.rules.settling import settle
from talekeeper.table.shown.scene import scene
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world import events as ev
from talekeeper.table.world.events import Event, audience
from talekeeper.table.world.gamestate import GameState, apply
from talekeeper.table.world.scenario import Scenario

REMEMBERED = 90
"""How many of the newest turns a seat has before it."""


@dataclass
class Turn:
    speaker: str
    text: str
    hearers: tuple[str, ...]
    kind: str = "said"

    @property
    def line(self) -> str:
        return f"* {self.text}" if self.kind == "event" else f"[{self.speaker}]: {self.text}"


def block(part: recipe.Part, lines: Sequence[str]) -> Block:
    items = tuple(Item(text=f"{line}\n", tokens=0, kind="entry") for line in lines)
    return Block(name=part.name, heading=part.heading, items=items, tokens=0, stable=False)


@dataclass
class Game:
    scenario: Scenario
    party: Sequence[str]
    seed: int = 1
    leader: str = ""
    log: list[Turn] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    moments: list[AdventureMoment] = field(default_factory=list)
    witnesses: list[tuple[str, ...]] = field(default_factory=list)
    """Who was there at each of the moments."""
    rulings: list[Ruling] = field(default_factory=list)
    round: int = 0
    begun: int = 0
    kept: int = 0
    """How many of the moments are of earlier rounds: those of this one are not yet in anyone's memory."""

    def __post_init__(self) -> None:
        self.state: GameState = begin(self.scenario, self.party)
        self.brain = Storyteller(self.scenario)

    def context(self, seat: str) -> Context:
        heard = [turn.line for turn in self.log if seat == "dm" or seat in turn.hearers][-REMEMBERED:]
        moments = format_moments_for_context(self.known(seat)).splitlines()[1:]
        blocks = [block(part, lines) for part, lines in ((MOMENTS_PART, moments), (RECENT_PART, heard)) if lines]
        text = "".join(block.text for block in blocks)
        return Context(seat=seat, budget=8000, text=text, tokens=0, stable_tokens=0, counter="none", blocks=tuple(blocks))

    def known(self, seat: str) -> list[AdventureMoment]:
        kept = zip(self.moments[: self.kept], self.witnesses, strict=False)
        return [one for one, there in kept if seat == "dm" or seat in there]

    def knowing(self, rulings: Sequence[Ruling]) -> dict[str, Known]:
        """What those know to whom somebody talks."""
        talks = [event for one in rulings for event in one.events if isinstance(event, ev.Beat) and event.what == "talk"]
        before = self.log[: self.begun]
        names = {talk.about[0]: self.scenario.name(talk.who) for talk in talks}
        said = {npc: [turn.text for turn in before if turn.speaker == who and npc in turn.hearers][-6:] for npc, who in names.items()}
        return {npc: Known(tuple(self.known(npc)), tuple(said[npc])) for npc in names}

    def ask(self, role: Part, seat: str, **more: object) -> Ask:
        knows = None if role == "pc" else self.state
        given = {"state": knows, "leader": self.leader, **more}
        return Ask(role=role, seat=seat, context=self.context(seat), scene=scene(self.scenario, self.state, seat, self.seed),
                   round=self.round, seed=self.seed, **given)  # type: ignore[arg-type]  # fmt: skip

    def here(self, seat: str = "") -> tuple[str, ...]:
        """Everyone who stands by where someone is."""
        return self.state.here(self.state.where[seat or self.state.alive[0]]) if self.state.alive else ()

    def say(self, speaker: str, text: str, hearers: tuple[str, ...], kind: str = "said") -> None:
        if text:
            self.log.append(Turn(speaker, text, hearers, kind))

    def play(self, people: Mapping[str, str] | None = None, nudge: str | None = None) -> None:
        """One round. `people` are the actions of those who are not played by the storyteller."""
        self.round += 1
        self.begun, self.kept = len(self.log), len(self.moments)
        self.say("DM", self.brain.text(self.ask("dm", "dm", nudge=nudge)), self.here())
        said: list[tuple[str, str]] = []
        rulings: list[Ruling] = []
        for seat in self.state.able:
            text = (people or {}).get(seat) or self.brain.text(self.ask("pc", seat, said=tuple(said)))
            if not text:
                continue
            said.append((seat, text))
            self.say(self.scenario.name(seat), text, self.here(seat))
            rulings.append(self.rule(seat, text))
            self.say("", rulings[-1].resolution, self.here(seat), "event")
        self.rulings += rulings
        self.say(
            "DM",
            self.brain.text(self.ask("narrator", "dm", rulings=tuple(rulings), knowing=self.knowing(rulings), said=tuple(said))),
            self.here(),
        )

    def rule(self, actor: str, action: str) -> Ruling:
        ask = self.ask("keeper", "dm", action=action, actor=actor)
        answer: KeeperResponse = _run(self.brain, ask)
        settled = settle(self.state, self.scenario, answer.commands, actor)
        there = self.here(actor)
        for event in settled.events:
            if isinstance(event, ev.Whispered | ev.SecretLearned | ev.Revealed):
                self.say("DM", event.text, audience(event, self.state), "whisper")
            self.state = apply(self.state, event)
        self.events += settled.events
        moment = build_moment_from_keeper(answer, len(self.log))
        self.moments += [moment] if moment else []
        self.witnesses += [there] if moment else []
        return Ruling(actor, action, answer.resolution, settled.events, settled.refused)

    def epilogue(self) -> str:
        return self.brain.text(self.ask("epilogue", "dm", moments=tuple(self.moments)))


def _run(brain: Storyteller, ask: Ask) -> KeeperResponse:
    """The storyteller awaits nothing, so its answer is there at once."""
    coroutine = brain.rule(ask)
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer: KeeperResponse = done.value
        return answer
    raise AssertionError("the storyteller waited for something")


def auto(scenario: Scenario, party: Sequence[str], seed: int, rounds: int, *, stop: bool = False) -> Game:
    """A game that plays itself."""
    game = Game(scenario, party, seed)
    for _ in range(rounds):
        if not game.state.alive or (stop and game.state.ending):
            break
        game.play()
    return game
