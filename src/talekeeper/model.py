"""The nouns: what a story is made of. Frozen, and made of JSON-friendly values.

A story is an append-only log of turns; folds, contexts and everything else are derived from turns of that log.
Turn ids are opaque: they carry no position, so that an id tells a seat nothing about turns it did not hear (I3).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from talekeeper.errors import WrongType

SpokenKind = Literal["said", "whisper", "thought", "event", "note"]
"""What is told with `append`."""
HeardKind = Literal[SpokenKind, "session", "enter", "leave"]
"""What seats hear."""
AuthorKind = Literal["edit", "pin", "unpin", "override", "mark"]
"""What the author does to the log."""
Kind = Literal[HeardKind, AuthorKind]
SPOKEN_KINDS: frozenset[str] = frozenset(get_args(SpokenKind))
HEARD_KINDS: frozenset[str] = frozenset(get_args(HeardKind))
AUTHOR_KINDS: frozenset[str] = frozenset(get_args(AuthorKind))

Role = Literal["dm", "pc", "npc"]


@dataclass(frozen=True, slots=True)
class MemoryKey:
    """Whose story this is. Two different keys never meet, whatever characters they contain (I10)."""

    tenant_id: str
    user_id: str
    session_id: str

    def composite(self) -> str:
        r"""One string for the three parts, unambiguous: `\` and `:` inside a part are escaped."""
        for part in (self.tenant_id, self.user_id, self.session_id):
            if not isinstance(part, str):
                raise WrongType(f"each part of a memory key must be a string, not {type(part).__name__}")
        return ":".join(part.replace("\\", "\\\\").replace(":", "\\:") for part in (self.tenant_id, self.user_id, self.session_id))


@dataclass(frozen=True, slots=True)
class Seat:
    """Someone with a view of the story and a token limit: the DM, a player character or an NPC.

    `fold_at` is the share of the limit that raw turns may fill before older ones are folded; `keep` is how many of
    the newest turns stay raw whatever happens.
    """

    id: str
    role: Role = "pc"
    name: str = ""
    aliases: tuple[str, ...] = ()
    token_limit: int = 8000
    fold_at: float = 0.8
    keep: int = 3

    @property
    def label(self) -> str:
        """How the seat is called in a context."""
        return self.name or ("DM" if self.role == "dm" else self.id)


class Turn(NamedTuple):
    """One entry of the log. `text` is as of the branch and head it was read at: an edit shows, with its revision.

    (A named tuple like others that every turn or context makes: to build one costs a third of a frozen dataclass.)"""

    id: str
    seq: int
    kind: Kind
    speaker: str
    voice: str
    text: str
    audience: tuple[str, ...]
    location: str | None = None
    mentions: tuple[str, ...] = ()
    when: str | None = None
    time: float = 0.0
    tokens: int = 0
    revision: int = 0
    target: str | None = None
    cites: tuple[str, ...] = ()


TurnRef: TypeAlias = int | str | Turn
"""A turn: by its number on the branch, by its id, or itself."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to be noted in the log about turns: a moment, an event of the game, a memory of a place. It is rewound with the story.

    Who may know it: those who heard all the turns it is `of`, or of these the ones in `heard_by`, and every DM. Of one topic and one
    set of hearers the `keep` marks of the highest `rank` last, of equal ones the newest. `drops`: the ids of marks that it replaces.
    `lasting`: marks of this rank or above all last, and are not counted among those."""

    topic: str
    data: Mapping[str, Any]
    rank: float = 0.0
    keep: int = 16
    of: tuple[Turn, ...] = ()
    heard_by: tuple[str, ...] | None = None
    drops: tuple[str, ...] = ()
    lasting: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A mark of the log. `turn` is the number of its last source among the turns that the listener heard (0 where it has none);
    `stale`: one of its sources was edited since."""

    id: str
    seq: int
    topic: str
    data: Mapping[str, Any]
    rank: float
    audience: tuple[str, ...]
    sources: tuple[str, ...]
    turn: int = 0
    stale: bool = False


class Sentence(NamedTuple):
    """A sentence of a fold and the turns it came from. `estimated`: the sources are a guess, not a citation (I7).

    `weight` and `about` are what the extractive summarizer found it worth and whom it names, so that larger folds need not read it
    again; 0 where nobody has looked. `place` and `at`: where it happened and at which entry, as far as a larger fold
    knows."""

    text: str
    sources: tuple[str, ...]
    estimated: bool = False
    weight: float = 0.0
    about: tuple[str, ...] = ()
    place: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A text that stands in for a run of turns (level 0) or of smaller folds (level 1 and up)."""

    id: str
    level: int
    made_by: Literal["extractive", "model", "author"]
    sentences: tuple[Sentence, ...]
    children: tuple[str, ...]
    turn_count: int
    location: str | None = None

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


class Item(NamedTuple):
    """One line or paragraph of a context: a raw turn, or a fold that stands for `turn_count` turns."""

    text: str
    tokens: int
    kind: Literal["turn", "fold", "digest", "entry"]
    sources: tuple[str, ...] = ()
    folds: tuple[str, ...] = ()
    turn_count: int = 1
    clipped: bool = False


class Block(NamedTuple):
    """A headed part of a context."""

    name: str
    heading: str
    items: tuple[Item, ...]
    tokens: int
    stable: bool

    @property
    def text(self) -> str:
        return self.heading + "".join(item.text for item in self.items)

    @property
    def sources(self) -> tuple[str, ...]:
        """The turn ids that this block's items name directly; a fold's turns are behind `item.folds`."""
        return tuple(dict.fromkeys(source for item in self.items for source in item.sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that lost detail or did not fit, and why."""

    block: str
    reason: Literal["folded", "clipped", "no room", "below floor"]
    turn_count: int
    tokens: int
    sources: tuple[str, ...] = ()


class Context(NamedTuple):
    """What goes into a seat's prompt, counted, with its sources and with what was left out."""

    seat: str
    budget: int
    text: str
    tokens: int
    stable_tokens: int
    counter: str
    blocks: tuple[Block, ...]
    left_out: tuple[LeftOut, ...] = ()

    def block(self, name: str) -> Block | None:
        """The block of that name, if the context has it."""
        return next((block for block in self.blocks if block.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """A view in two: the newest turns as they are, and folds over everything before them.

    `waiting`: how many of these turns, from the oldest on, are only here because their fold waits for a model."""

    seat: str
    items: tuple[Item, ...]
    turns: tuple[Turn, ...]
    waiting: int = 0

    @property
    def text(self) -> str:
        """The folds, one per line."""
        return "".join(item.text for item in self.items)

    @property
    def tokens(self) -> int:
        """What the folds take."""
        return sum(item.tokens for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """A turn that answers a query, with its score among what the seat heard."""

    turn: Turn
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchInfo:
    """A line of the story: where it left its parent, where it ends."""

    name: str
    parent: str | None
    forked_at: int
    head: int
    current: bool = False


class HealthState(enum.StrEnum):
    """How the summarizer of a story is doing. Memory itself is complete in every state."""

    HEALTHY = "healthy"
    RETRY = "retry"
    DEGRADED = "degraded"
    RECOVERING = "recovering"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The summarizer's state for one story, with the reason, and how many folds wait for a model."""

    state: HealthState = HealthState.HEALTHY
    reason: str = ""
    failures: int = 0
    pending: int = 0
    summarizer: str = "extractive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a story holds and what it has cost."""

    turns: int
    tokens: int
    sessions: int
    branches: int
    channels: int
    seats: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    folds: int = 0
    folds_shared: int = 0
    model_calls: int = 0
    model_tokens_in: int = 0
    model_tokens_out: int = 0
    model_failures: int = 0
    model_calls_saved: int = 0
    """About how many more it would have been, had each seat its own folds."""
    model_tokens_saved: int = 0


new_item: Callable[[tuple[Any, ...]], Item] = partial(tuple.__new__, Item)
new_sentence: Callable[[tuple[Any, ...]], Sentence] = partial(tuple.__new__, Sentence)
"""Of all fields, in their order: the quickest way to make very many."""


def to_json(noun: Any) -> Any:
    """A noun as plain JSON values: dicts, lists, strings, numbers."""
    if dataclasses.is_dataclass(noun) and not isinstance(noun, type):
        return {f.name: to_json(getattr(noun, f.name)) for f in dataclasses.fields(noun)}
    if isinstance(noun, tuple) and hasattr(noun, "_fields"):
        return {name: to_json(value) for name, value in zip(noun._fields, noun, strict=True)}
    if isinstance(noun, Mapping):
        return {str(name): to_json(value) for name, value in noun.items()}
    if isinstance(noun, list | tuple | set | frozenset):
        return [to_json(value) for value in noun]
    if isinstance(noun, enum.Enum):
        return noun.value
    return noun
