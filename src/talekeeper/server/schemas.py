"""What goes over the wire, in both directions. Requests are taken as they are described here and not otherwise."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from talekeeper.model import Kind, Role, SpokenKind
from talekeeper.server import limits

Name = Annotated[str, StringConstraints(min_length=1, max_length=limits.NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=limits.TEXT)]
Names = Annotated[list[Name], Field(max_length=limits.NAMES)]


class Model(BaseModel):
    """An answer."""

    model_config = ConfigDict(from_attributes=True)


class Body(BaseModel):
    """A request's body: unknown fields are refused, and so is a "2" for a 2."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class FieldError(Model):
    at: str = Field(description="Where in the request.", examples=["body.text"])
    message: str


class Problem(Model):
    """What went wrong, and what to do about it (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Which kind of problem this is, for programs.", examples=["urn:talekeeper:unknown-turn"])
    title: str
    status: int
    detail: str = Field(description="What happened, and what to do.")
    errors: list[FieldError] | None = Field(None, description="Which fields were not understood.")
    needed: int | None = Field(None, description="Of a budget that is too small: the smallest that will do.")


# -- who ---------------------------------------------------------------------------------------------------------------


class Me(Model):
    """What the token allows."""

    name: str = Field(examples=["ana"])
    tenant: str = Field(examples=["acme"])
    dm: bool = Field(description="Everything in the stories below.")
    seats: list[str] = Field(description="The seats whose view it shows, where it is not the dm's.", examples=[["rogue"]])
    stories: list[str] | None = Field(description="The ids of the stories; null: all of the tenant's.")


class SeatIn(Body):
    """Someone who sits at the table."""

    role: Role = Field("pc", description="A dm hears everything. A seat keeps its role.")
    name: Annotated[str, StringConstraints(max_length=limits.NAME)] = Field("", description="How it is called; its id where this is empty.")
    aliases: Names = Field(default_factory=list, description="Other names.")
    token_limit: int = Field(8000, ge=1, le=limits.BUDGET, description="The budget of its contexts where none is asked for.")
    fold_at: float = Field(0.8, gt=0, le=1, description="The share of a budget that raw turns may fill before older ones are folded.")
    keep: int = Field(3, ge=1, le=1000, description="How many of the newest turns stay raw whatever happens.")


class NewSeat(SeatIn):
    id: Name = Field(examples=["rogue"])


class Seat(Model):
    """A seat, as far as it is known to the one who asks: of others, a seat knows the ids and names."""

    id: str
    name: str = Field(description="How it is called in contexts.")
    role: Role | None = None
    aliases: list[str] | None = None
    token_limit: int | None = None
    fold_at: float | None = None
    keep: int | None = None
    location: str | None = Field(None, description="Where it is; null where it has no place.")


# -- stories -----------------------------------------------------------------------------------------------------------


class NewStory(Body):
    """A story to be begun."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"user": "ana", "name": "ash-crown", "seats": [{"id": "dm", "role": "dm"}, {"id": "rogue"}]}]}
    )

    user: Name = Field("local", description="Whose story it is, within the tenant.")
    name: Name = Field(description="The story's name (its session id).")
    seats: Annotated[list[NewSeat], Field(min_length=1, max_length=limits.SEATS)]


class StoryRow(Model):
    id: str = Field(description="The story's id in this API.", examples=["ana.ash-crown"])
    user: str = Field(examples=["ana"])
    name: str = Field(examples=["ash-crown"])


class Stories(Model):
    stories: list[StoryRow]


class Story(StoryRow):
    """A story, as the one who asks may see it."""

    branch: str = Field(examples=["main"])
    version: str = Field(description="Changes with everything that happens in this view of the story. Pass it as `If-Match`.")
    seat: str | None = Field(description="Whose view this is; null: everything.")
    seats: list[Seat]
    turns: int = Field(
        description="How many turns can be heard in this view. Entries of the author (edits, pins …) have numbers, and are not counted."
    )
    game: bool = Field(description="Whether it is played at the table: only then is there anything at `/play` and the like.")


# -- turns -------------------------------------------------------------------------------------------------------------


class NewTurn(Body):
    """A turn to be appended."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"speaker": "dm", "text": "The innkeeper slides you a key.", "heard_by": ["rogue"]}]}
    )

    speaker: Annotated[str, StringConstraints(max_length=limits.NAME)] | None = Field(
        None, description="The seat that speaks; a player's own where it is left out. The dm may leave it empty for an event."
    )
    text: Text = Field(examples=["The innkeeper slides you a key."])
    kind: SpokenKind = Field("said", description="A player may say, whisper and think.")
    heard_by: Names | None = Field(None, description="Who hears it besides the speaker and every DM; by default those present.")
    mentions: Names = Field(default_factory=list, description="Names that the turn is about, and that memories should keep.")
    location: Name | None = Field(None, description="Where it happens; by default where the speaker is. For the dm.")
    voice: Name | None = Field(None, description="The name to show, where the speaker speaks for someone without a seat. For the dm.")
    when: Name | None = Field(None, description="Story time, shown with the turn. For the dm.")
    id: Name | None = Field(
        None, description="An id of your own; the same turn again changes nothing. For the dm; others use Idempotency-Key."
    )


class NewNote(Body):
    text: Text = Field(examples=["The Ash Crown burns whoever lies while wearing it."])
    heard_by: Names | None = Field(None, description="Who knows it; by default everyone.")
    mentions: Names = Field(default_factory=list)


class Turn(Model):
    """A turn, as the view shows it. Of others, a seat sees the voice that it heard and not who lent it."""

    id: str = Field(examples=["t-5d1f0c9b7a3e2468"])
    number: int = Field(description="Its number among the turns of this view: what the seat heard, or the branch.", examples=[12])
    kind: Kind
    speaker: str = Field(description="The seat that spoke; empty where nobody did, or where the view does not tell.")
    voice: str = Field(description="The name that was heard.")
    text: str = Field(description="As it reads now.")
    audience: list[str] | None = Field(description="Who heard it; null in the view of a seat, which cannot know.")
    location: str | None
    place_name: str | None = Field(None, description="How the location is called, in a game.", examples=["the Crooked Eel"])
    mentions: list[str]
    when: str | None
    time: float = Field(description="When it was told, in seconds since 1970.")
    tokens: int
    revision: int = Field(description="How often it was edited.")
    pinned: bool
    cites: list[str] = Field(description="The ids of older turns that it tells of.")
    target: str | None = Field(None, description="Of an author's entry: what it was done to.")


class Turns(Model):
    turns: list[Turn]
    more: bool = Field(description="Whether there are more in the direction that was asked for.")


class Edit(Body):
    text: Text = Field(examples=["The innkeeper slides you a rusty key."])


class Reveal(Body):
    to: Annotated[list[Name], Field(min_length=1, max_length=limits.NAMES)] = Field(examples=[["bard"]])
    text: Text | None = Field(None, description="Other words for it.")
    speaker: Annotated[str, StringConstraints(max_length=limits.NAME)] = Field("", description="Who tells; nobody where it is empty.")


class Retelling(Body):
    text: Text = Field(examples=["Morning comes, grey and late."])
    voice: Name | None = None
    mentions: Names = Field(default_factory=list)
    when: Name | None = None


class Move(Body):
    location: Name = Field(examples=["tavern"])
    text: Text | None = Field(None, description="What those who are there see.")


class Going(Body):
    text: Text | None = Field(None, description="What those who are there see.")


class Session(Body):
    title: Text | None = Field(None, examples=["Session 2: the road north"])


# -- memory ------------------------------------------------------------------------------------------------------------


class Item(Model):
    """One line or paragraph: a turn, a fold over turns, a digest of folds, or an entry of another kind."""

    text: str
    tokens: int
    kind: Literal["turn", "fold", "digest", "entry"]
    sources: list[str] = Field(description="The ids of the turns that it names.")
    folds: list[str] = Field(description="The ids of the memories that it is.")
    turn_count: int = Field(description="For how many turns it stands.")
    clipped: bool


class Block(Model):
    name: str = Field(examples=["story"])
    heading: str
    tokens: int
    stable: bool = Field(description="Whether the next context begins with the same, for providers' prompt caches.")
    items: list[Item]


class LeftOut(Model):
    block: str
    reason: Literal["folded", "clipped", "no room", "below floor"]
    turn_count: int
    tokens: int
    sources: list[str]


class Context(Model):
    """What goes into a seat's prompt."""

    seat: str
    budget: int
    text: str
    tokens: int = Field(description="Never above the budget.")
    stable_tokens: int
    counter: str = Field(description="Who counted.")
    blocks: list[Block]
    left_out: list[LeftOut] = Field(description="What lost detail or did not fit, and why.")


class Recollection(Model):
    turn: Turn
    score: float


class Recalled(Model):
    found: list[Recollection] = Field(description="The best first.")


class Sentence(Model):
    text: str
    sources: list[str] = Field(description="The ids of the turns that it came from.")
    estimated: bool = Field(description="The sources are a guess and not a citation.")


class Memory(Model):
    """A fold: a text that stands in for turns (level 0) or for smaller folds."""

    id: str
    level: int
    made_by: Literal["extractive", "model", "author"]
    text: str
    sentences: list[Sentence]
    children: list[str] = Field(description="The ids of the turns (level 0) or of the smaller folds that it stands for.")
    below: list[Memory] | None = Field(None, description="The smaller folds themselves, as deep as was asked for.")
    turn_count: int
    location: str | None


class Memories(Model):
    memories: list[Memory] = Field(description="The folds that the seat's context stands on, oldest first.")


class Override(Body):
    text: Text = Field(examples=["It rained for three days, and Voss kept the map."])


class Mark(Model):
    """Data that is tied to turns: a moment, an event of the game."""

    id: str
    topic: str
    data: dict[str, Any]
    rank: float
    sources: list[str]
    turn: int = Field(description="The number of its last turn in this view; 0 where it has none.")
    stale: bool = Field(description="One of its turns was edited since.")


class Marks(Model):
    marks: list[Mark]


class Topics(Model):
    topics: list[str]


# -- time --------------------------------------------------------------------------------------------------------------


class Point(Model):
    """A turn on the timeline; `at=` its id goes there."""

    id: str
    number: int = Field(description="Its number in this view.")
    kind: Kind
    speaker: str
    location: str | None
    place_name: str | None
    when: str | None


class Timeline(Model):
    turns: int = Field(description="How many turns there are in this view.")
    points: list[Point] = Field(
        description="All of them, or as many as were asked for: of each stretch of the story the one that stands out."
    )


class Rewind(Body):
    to: str = Field(max_length=limits.NAME, description="The turn to go back to: its id or number; 0 is the beginning.", examples=["41"])


class Fork(Body):
    at: str | None = Field(None, max_length=limits.NAME, description="The turn to begin after: its id or number; by default the newest.")
    name: Annotated[Name, StringConstraints(pattern="^[^~]*$")] | None = Field(
        None, description="The branch's name; one is made up where it is left out.", examples=["what-if"]
    )


class Switch(Body):
    to: Name = Field(description="The line to go over to.", examples=["main~1"])


class Branch(Model):
    name: str
    parent: str | None
    forked_at: int
    head: int
    current: bool


class Branches(Model):
    branches: list[Branch]


# -- care --------------------------------------------------------------------------------------------------------------


class Health(Model):
    state: Literal["healthy", "retry", "degraded", "recovering"]
    reason: str
    failures: int
    pending: int
    summarizer: str


class Heard(Model):
    turns: int
    tokens: int


class Stats(Model):
    """What there is in this view; for the whole story also what it has cost."""

    turns: int
    tokens: int
    seats: dict[str, Heard] | None = None
    sessions: int | None = None
    branches: int | None = None
    channels: int | None = None
    folds: int | None = None
    folds_shared: int | None = None
    model_calls: int | None = None
    model_tokens_in: int | None = None
    model_tokens_out: int | None = None
    model_failures: int | None = None
    model_calls_saved: int | None = None
    model_tokens_saved: int | None = None


class Status(Model):
    status: Literal["ok"] = "ok"
