"""The port behind which someone speaks: the built-in storyteller, or a language model. Both are asked in the same words.

A round asks the DM to set the scene, each player character to act, the keeper to rule on each action, and the narrator to tell what
came of it; the epilogue is asked for once, at the end. An `Ask` carries everything the answer may depend on, so a brain needs no
memory of its own, and the same ask gets the same answer from a brain that throws no dice of its own.

What is in an ask is what that seat may know: its own context, its own scene. The whole state is given to the roles that know
everything (DM, keeper, narrator, epilogue) and never to a player character.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from talekeeper.memory.moments import AdventureMoment, KeeperResponse
from talekeeper.model import Context
from talekeeper.table.world.events import Event
from talekeeper.table.world.gamestate import GameState

_SECRET = ("whispered", "revealed", "secret_learned")
Part = Literal["dm", "pc", "keeper", "narrator", "epilogue"]


@dataclass(frozen=True, slots=True)
class Way:
    """A way out of a place. One that is not open says why in `blocked`."""

    to: str
    name: str
    way: str = ""
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class Someone:
    """Someone who is here, as the one who looks knows them; how they talk and what they want, for those who speak for them."""

    id: str
    name: str
    look: str = ""
    feeling: str = ""
    condition: str = ""
    voice: str = ""
    wants: str = ""


@dataclass(frozen=True, slots=True)
class Thing:
    """An item that one holds or sees."""

    id: str
    name: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """An open objective, and what one knows of how to get there."""

    id: str
    title: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that could be done now: as a player would type it. `pull` is how strongly the scene asks for it, 0 to 1.

    `verb` and `about` are the same in parts, for those who would rather say it in their own words."""

    text: str
    pull: float = 0.5
    verb: str = ""
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What one seat may know of the game just now."""

    seat: str
    name: str
    place: str
    place_name: str
    look: str = ""
    danger: str = "safe"
    time: str = ""
    weather: str = ""
    act: str = ""
    calling: str = ""
    voice: str = ""
    condition: str = ""
    exits: tuple[Way, ...] = ()
    here: tuple[Someone, ...] = ()
    lying: tuple[Thing, ...] = ()
    items: tuple[Thing, ...] = ()
    goals: tuple[Goal, ...] = ()
    promises: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    encounter: str = ""
    over: bool = False
    """The arc is over: what follows is aftermath."""
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of one action of this round: the keeper's words, what happened, and what the rules refused, with the reason."""

    actor: str
    action: str
    resolution: str
    events: tuple[Event, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def is_secret(self) -> bool:
        """Whether there is something in it that not everyone may hear of."""
        return any(event.type in _SECRET or getattr(event, "secretly", False) for event in self.events)


@dataclass(frozen=True, slots=True)
class Known:
    """What someone who is not of the party may speak of: the moments they were there for, and what was said in their hearing by the one
    who talks to them now."""

    moments: tuple[AdventureMoment, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an answer was not taken: what is wrong with it, its words, and what of them was heard before."""

    reason: str
    text: str = ""
    heard: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to a brain."""

    role: Part
    seat: str
    context: Context
    scene: Scene
    action: str = ""
    """The text to resolve (keeper) or to answer (DM: what was last done; a nudge is in `nudge`)."""
    actor: str = ""
    """Whose action it is."""
    pacing: str = ""
    """Where in the arc we are."""
    nudge: str | None = None
    """A wish of the player: in this prompt, and then gone."""
    round: int = 0
    seed: int = 0
    state: GameState | None = None
    """The whole game, for those who know everything. Never for a player character."""
    said: tuple[tuple[str, str], ...] = ()
    """What others have said they do, earlier in this round: pairs of seat and text, as far as this seat heard them."""
    leader: str = ""
    """Whom the party follows: a person, if there is one. Empty: the first of the party who can act."""
    humans: tuple[str, ...] = ()
    """Who of the party are played by people: they speak for themselves."""
    rulings: tuple[Ruling, ...] = ()
    """What was decided in this round, in order: what the narrator tells of."""
    knowing: Mapping[str, Known] = field(default_factory=dict)
    """For the narrator: what those know to whom somebody talks in this round. They were not everywhere, as the DM is."""
    moments: tuple[AdventureMoment, ...] = ()
    """What the epilogue is made of: what all of the party know."""
    names: Mapping[str, str] = field(default_factory=dict)
    """How people, places, things and goals are called, by id: nobody should read ids."""
    objection: Objection | None = None
    """The last answer to this very ask contradicted the game: another one is wanted, that goes on from what was heard of it."""


@runtime_checkable
class Brain(Protocol):
    """Someone who speaks when asked.

    `speak` answers as DM, player character, narrator or epilogue: text in pieces, whose concatenation is the answer. `rule` answers as
    keeper. Both may be called for several stories at once. What cannot be answered is raised as an error, never told as story. Whoever
    stops listening in the middle closes the iterator, and nothing is left behind.
    """

    def speak(self, ask: Ask) -> AsyncIterator[str]: ...

    async def rule(self, ask: Ask) -> KeeperResponse: ...


async def spoken(brain: Brain, ask: Ask) -> str:
    """The whole answer. Blocking is streaming, joined."""
    return "".join([piece async for piece in brain.speak(ask)])
