"""What may be asked of the game: typed commands, read from the JSON that a keeper writes.

A command is a wish. The handlers turn it into events, or refuse it with a reason. People, places and things may be named by id, name
or alias. Where `who` or `by` is left empty, whoever acts is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from talekeeper.table.world import wire
from talekeeper.table.world.wire import Record, prose


@dataclass(frozen=True, slots=True)
class Command(Record):
    """A wish to change the game."""


@dataclass(frozen=True, slots=True)
class ChangeLocation(Command):
    """Go to a place that can be reached from here; without `who` the whole party goes."""

    type: ClassVar[str] = "change_location"
    to: str
    who: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateLocation(Command):
    """Change how dangerous a place is (safe, uneasy, dangerous, deadly, cleared), or complete the encounter there, or both."""

    type: ClassVar[str] = "update_location"
    place: str
    danger: str = ""
    complete_encounter: str = ""


@dataclass(frozen=True, slots=True)
class CompleteObjective(Command):
    """An open objective has been reached."""

    type: ClassVar[str] = "complete_objective"
    objective: str
    way: str = ""


@dataclass(frozen=True, slots=True)
class CompleteQuest(Command):
    """A quest whose objectives are done is finished."""

    type: ClassVar[str] = "complete_quest"
    quest: str


@dataclass(frozen=True, slots=True)
class ProgressAct(Command):
    """The story moves on to its next act."""

    type: ClassVar[str] = "progress_act"
    act: str = ""


@dataclass(frozen=True, slots=True)
class StartEncounter(Command):
    """A fight, a chase or a confrontation begins."""

    type: ClassVar[str] = "start_encounter"
    encounter: str


@dataclass(frozen=True, slots=True)
class TurnEncounter(Command):
    """The encounter that is going on comes nearer to its end, or farther from it."""

    type: ClassVar[str] = "turn_encounter"
    by: int = 1


@dataclass(frozen=True, slots=True)
class ResolveEncounter(Command):
    """An encounter ends: won, lost, escaped or settled."""

    type: ClassVar[str] = "resolve_encounter"
    encounter: str
    outcome: str = "won"


@dataclass(frozen=True, slots=True)
class GainItem(Command):
    """Someone takes or is given an item that lies here or that an NPC here has."""

    type: ClassVar[str] = "gain_item"
    item: str
    who: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class LoseItem(Command):
    """Someone no longer has an item: it is dropped here (`dropped`), or gone for good."""

    type: ClassVar[str] = "lose_item"
    item: str
    who: str = ""
    dropped: bool = False
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class GiveItem(Command):
    """An item goes from one hand to another."""

    type: ClassVar[str] = "give_item"
    item: str
    to: str
    who: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class MakePromise(Command):
    """Someone gives their word; `promise` is a short name under which it can be kept or broken later."""

    type: ClassVar[str] = "make_promise"
    promise: str
    to: str
    text: str = prose("")
    by: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class KeepPromise(Command):
    """An open promise has been kept."""

    type: ClassVar[str] = "keep_promise"
    promise: str


@dataclass(frozen=True, slots=True)
class BreakPromise(Command):
    """An open promise has been broken."""

    type: ClassVar[str] = "break_promise"
    promise: str


@dataclass(frozen=True, slots=True)
class ChangeRelationship(Command):
    """An NPC thinks better (1, 2) or worse (-1, -2) of someone."""

    type: ClassVar[str] = "change_relationship"
    npc: str
    by: int
    who: str = ""


@dataclass(frozen=True, slots=True)
class Kill(Command):
    """Someone dies."""

    type: ClassVar[str] = "kill"
    who: str
    how: str = prose("")


@dataclass(frozen=True, slots=True)
class Wound(Command):
    """A player character is hurt. Three wounds and they are down; one more and they are dead."""

    type: ClassVar[str] = "wound"
    who: str = ""
    by: int = 1


@dataclass(frozen=True, slots=True)
class Mend(Command):
    """A player character gets better."""

    type: ClassVar[str] = "mend"
    who: str = ""
    by: int = 1


@dataclass(frozen=True, slots=True)
class Whisper(Command):
    """Someone says something that only some hear."""

    type: ClassVar[str] = "whisper"
    to: tuple[str, ...]
    text: str = prose()
    by: str = ""


@dataclass(frozen=True, slots=True)
class Reveal(Command):
    """One who knows a secret tells it to others; without `to`, to everyone of the party who is here."""

    type: ClassVar[str] = "reveal"
    secret: str
    to: tuple[str, ...] = ()
    by: str = ""


@dataclass(frozen=True, slots=True)
class LearnSecret(Command):
    """Someone finds a secret out."""

    type: ClassVar[str] = "learn_secret"
    secret: str
    who: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassTime(Command):
    """Some of the six watches of a day go by."""

    type: ClassVar[str] = "pass_time"
    watches: int = 1


@dataclass(frozen=True, slots=True)
class SetFlag(Command):
    """A thread of the plot is tied (1) or untied (0)."""

    type: ClassVar[str] = "set_flag"
    flag: str
    value: int = 1


@dataclass(frozen=True, slots=True)
class TellBeat(Command):
    """What an action was understood to be; for the narrator's use."""

    type: ClassVar[str] = "tell_beat"
    what: str
    about: tuple[str, ...] = ()
    degree: str = ""
    secretly: bool = False


@dataclass(frozen=True, slots=True)
class EndStory(Command):
    """The arc comes to one of its endings."""

    type: ClassVar[str] = "end_story"
    ending: str


COMMANDS: Mapping[str, type[Command]] = {
    kind.type: kind
    for kind in (
        ChangeLocation, UpdateLocation, CompleteObjective, CompleteQuest, ProgressAct, StartEncounter, TurnEncounter, ResolveEncounter,
        GainItem, LoseItem, GiveItem, MakePromise, KeepPromise, BreakPromise, ChangeRelationship, Kill, Wound, Mend, Whisper, Reveal,
        LearnSecret, PassTime, SetFlag, TellBeat, EndStory,
    )
}  # fmt: skip
FOR_MODELS = tuple(name for name in COMMANDS if name not in ("set_flag", "tell_beat", "end_story"))
"""The commands that a model may use: the others belong to packs and to the built-in storyteller."""


def command_to_json(command: Command) -> dict[str, Any]:
    return wire.write(command)


def command_from_json(raw: object) -> Command:
    """The command that a JSON object stands for; `InvalidInput` names everything that is wrong with it."""
    return wire.read(COMMANDS, raw, "command")


def commands_schema() -> dict[str, Any]:
    """A JSON schema for one command of a model, with bounded strings and lists."""
    return wire.schema({name: COMMANDS[name] for name in FOR_MODELS})
