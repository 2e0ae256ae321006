"""What goes over the wire of games, in both directions; the rest is in `schemas`."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from talekeeper.server import limits
from talekeeper.server.schemas import Body, Model, Name, Seat, Text


class Hero(Model):
    id: str
    name: str
    calling: str
    look: str


class Scenario(Model):
    """An adventure that can be played."""

    id: str = Field(examples=["tidelamp"])
    title: str
    tagline: str
    mood: str
    premise: list[str]
    heroes: list[Hero]


class Scenarios(Model):
    scenarios: list[Scenario]


class NewGame(Body):
    """A game to be begun."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "lamp", "scenario": "tidelamp", "party": ["nell", "osric"], "humans": ["nell"]}]}
    )

    user: Name = Field("local", description="Whose story it is, within the tenant.")
    name: Name = Field(description="The story's name (its session id).")
    scenario: Name
    party: Annotated[list[Name], Field(min_length=1, max_length=16)]
    humans: Annotated[list[Name], Field(max_length=16)] = Field(default_factory=list, description="Who is played by a person.")
    seed: int = Field(0, ge=0, le=2**31, description="The same seed and the same answers give the same game.")


class Player(Model):
    """One of the party."""

    id: str
    name: str
    calling: str
    human: bool
    condition: str = Field(description="Empty, or such as hurt, down, dead.")


class FlightLine(Model):
    """Something said in the round that is not yet written."""

    line: str = Field(description="A key of its own: the same line comes again as it grows.")
    role: str
    seat: str
    text: str
    ended: bool


class Play(Model):
    """A game, as the one who asks may see it."""

    scenario: str
    title: str
    round: int = Field(description="The number of the next round, or of the one in flight.")
    party: list[Player]
    running: bool = Field(description="Whether a round is being played right now.")
    auto: bool = Field(description="Whether rounds follow each other by themselves.")
    waiting: str | None = Field(description="The seat whose turn is being waited for; in the view of a seat: only its own.")
    ending: str = Field(description="How the story ended; empty as long as it has not.")
    told: bool = Field(description="Whether the epilogue was told in the last round; for the dm and the party.")
    failed: str = Field(description="Why the last round was given up; for the dm.")
    lines: list[FlightLine] = Field(description="The round in flight, as far as this view hears it.")


class Someone(Model):
    id: str
    name: str
    look: str = ""
    feeling: str = ""
    condition: str = ""


class Way(Model):
    to: str
    name: str
    way: str = ""
    blocked: str = ""


class Thing(Model):
    id: str
    name: str
    look: str = ""


class Goal(Model):
    id: str
    title: str
    hint: str = ""


class Choice(Model):
    text: str
    pull: float


class Scene(Model):
    """What a seat may know of the game just now."""

    seat: str
    name: str
    place: str
    place_name: str
    look: str
    danger: str
    time: str
    weather: str
    act: str
    condition: str
    exits: list[Way]
    here: list[Someone]
    lying: list[Thing]
    items: list[Thing]
    goals: list[Goal]
    promises: list[str]
    secrets: list[str]
    encounter: str
    choices: list[Choice] = Field(description="What could be done, the most pressing first.")


class Vow(Model):
    by: str
    to: str
    text: str
    state: str


class Held(Model):
    item: str
    holder: str


class Death(Model):
    who: str
    how: str


class Ledger(Model):
    """What is owed, held and lost, as far as this view knows."""

    promises: list[Vow]
    items: list[Held]
    deaths: list[Death]
    goals: list[Goal]
    done: list[str] = Field(description="The goals that were reached.")


class Secret(Model):
    id: str
    text: str
    known: list[str] = Field(description="The seats that know it.")


class Secrets(Model):
    seats: list[Seat]
    secrets: list[Secret]


class Act(Body):
    text: Annotated[str, StringConstraints(max_length=limits.ACT)] = Field(
        description="What you do or say; nothing lets the turn pass.", examples=["I try the door."]
    )


class Step(Body):
    nudge: Annotated[str, StringConstraints(min_length=1, max_length=limits.QUERY)] | None = Field(
        None, description="A wish for this round: in its prompts, and then gone.", examples=["more rain"]
    )


class Auto(Body):
    on: bool


class Undo(Body):
    rounds: int = Field(1, ge=1, le=100)


class People(Body):
    humans: Annotated[list[Name], Field(max_length=16)] = Field(description="Who of the party is played by a person from now on.")


class Whisper(Body):
    speaker: Name | None = Field(None, description="By default the seat whose view it is.", examples=["dm"])
    to: Annotated[list[Name], Field(min_length=1, max_length=limits.NAMES)] = Field(examples=[["nell"]])
    text: Text
