"""How a budget is divided among the parts of a context. Data, to be replaced by your own.

The stable parts (canon, story, recent) have shares that do not depend on what else there is to say, so that they stay put (I8). The
volatile parts share what is left: each has a priority (who is served first), a floor (what is kept for it) and a share (what it may
take at the most). What is pinned never drops silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import Formatter

from talekeeper import rim
from talekeeper.errors import InvalidInput, WrongType, quoted
from talekeeper.model import Marked


def _check_shares(what: str, **shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= rim.number(share, f"{name} of {what}") <= 1:
            raise InvalidInput(f"{name} of {what} must be from 0 to 1, not {quoted(share)}")


def _check_heading(heading: str) -> None:
    """Counts of lines add up only if each ends with a newline and begins with something to see, other than a slash."""
    rim.text(heading, "a heading", too_long="shorten it")
    if not heading.endswith("\n") or heading[0].isspace() or heading[0] == "/":
        raise InvalidInput(
            f"a heading must be a whole line that begins with something to see and ends with a newline, not {quoted(heading)}"
        )


def _check_line(line: str, part: str) -> None:
    try:
        names = [name for _, name, _, _ in Formatter().parse(line) if name is not None]
    except ValueError as exc:
        raise InvalidInput(f"line of {part} is no format: {exc}; a brace by itself is written twice") from exc
    if any(not name or name[0].isdigit() for name in names):
        raise InvalidInput(f"line of {part} must say what goes into each pair of braces by name, as in {{text}}, not {quoted(line)}")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a context. `share`: the most it may take of the budget. `floor`: what is kept for it before others take more.

    `priority`: who is served first when room is short. A part with a `topic` shows, unless told otherwise, the marks of that topic that
    the seat may know: the `most` highest in rank, in order of time, each as `line` says, filled with the mark's data and its turn. A mark
    without a text or a number for a name in the line is passed over."""

    name: str
    heading: str
    share: float = 1.0
    floor: float = 0.0
    priority: int = 0
    topic: str = ""
    most: int = 5
    line: str = "{text}"

    def __post_init__(self) -> None:
        rim.name(self.name, "a part's name")
        _check_shares(self.name, share=self.share, floor=self.floor)
        rim.number(self.priority, f"priority of {self.name}")
        if self.topic != "":
            rim.name(self.topic, f"topic of {self.name}")
            rim.whole(self.most, f"most of {self.name}", least=1)
        _check_line(rim.text(self.line, f"line of {self.name}", too_long="shorten it"), self.name)
        _check_heading(self.heading)


CANON_PART = Part("canon", "## Canon\n", share=0.15)
STORY_PART = Part("story", "## What You Remember\n", share=0.35)
RECENT_PART = Part("recent", "## Recent Events\n")
"""The stable parts. A recipe says how much they take, and under which headings they stand."""

PINNED_PART = Part("pinned", "## Pinned\n", priority=9)
"""Where pinned turns are shown. A recipe without such a part gets this one: what is pinned never drops silently."""
FACTS_PART = Part("facts", "## Facts\n", share=0.15, floor=0.04, priority=8)
MOMENTS_PART = Part(
    "moments", "[STORY SO FAR]\n", share=0.10, floor=0.03, priority=7,
    topic="moment", line="Turn {turn} ({type}): {summary}",
)  # fmt: skip
LOCATION_PART = Part("location", "## Recent Location Memory\n", share=0.10, floor=0.02, priority=6)
NPCS_PART = Part("npcs", "## NPC Memory\n", share=0.10, floor=0.02, priority=6)
WORLD_PART = Part("world", "## World Memory\n", share=0.10, floor=0.02, priority=6)
LOOSE_ENDS_PART = Part("callbacks", "## Loose Ends\n", share=0.10, priority=4)
RECALL_PART = Part("recall", "## Recalled\n", share=1.0, floor=0.08, priority=5)
KNOWLEDGE_PART = Part("knowledge", "## Player Knowledge\n", share=0.25, priority=3)
HIGHLIGHTS_PART = Part("highlights", "## Worth Remembering\n", priority=2)

_PARTS = (
    PINNED_PART, FACTS_PART, MOMENTS_PART, LOCATION_PART, NPCS_PART, WORLD_PART, LOOSE_ENDS_PART, RECALL_PART, KNOWLEDGE_PART,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a budget is divided. The stable parts are the shares of `canon` and `story`; `recent` takes the rest up to `fold_at`, the share
    of the budget beyond which older turns are folded (None: as the seat has it).

    A volatile part named "recall" shows what a query brings back, one named "highlights" the most telling of the turns that are shown
    as folds only, word for word. With the latter nothing is folded as long as all turns fit beside what else there is to say."""

    canon: float = CANON_PART.share
    story: float = STORY_PART.share
    fold_at: float | None = None
    canon_heading: str = CANON_PART.heading
    story_heading: str = STORY_PART.heading
    story_heading_dm: str = "## Story So Far\n"
    recent_heading: str = RECENT_PART.heading
    volatile: tuple[Part, ...] = _PARTS
    highlights: Part | None = field(init=False, repr=False, compare=False)
    """The volatile part of that name, if there is one."""

    def __post_init__(self) -> None:
        _check_shares("the recipe", canon=self.canon, story=self.story)
        if self.fold_at is not None and not 0 < rim.number(self.fold_at, "fold_at of the recipe") <= 1:
            raise InvalidInput(f"fold_at of the recipe must be above 0 and at most 1, or None, not {quoted(self.fold_at)}")
        for heading in (self.canon_heading, self.story_heading, self.story_heading_dm, self.recent_heading):
            _check_heading(heading)
        parts: object = self.volatile
        if not isinstance(parts, tuple | list) or not all(isinstance(part, Part) for part in parts):
            raise WrongType(f"volatile of the recipe must be a tuple of Part, not {quoted(parts)}")
        if all(part.name != PINNED_PART.name for part in self.volatile):
            object.__setattr__(self, "volatile", (PINNED_PART, *self.volatile))
        object.__setattr__(self, "highlights", next((part for part in self.volatile if part.name == HIGHLIGHTS_PART.name), None))
        names = [part.name for part in self.volatile]
        if len(set(names)) < len(names):
            raise InvalidInput(f"two parts of the recipe have the same name: they are {', '.join(map(quoted, names))}")


DEFAULT_RECIPE = Recipe()

QUESTION_RECIPE = Recipe(
    canon=0.05, story=0.05, fold_at=0.1, volatile=(*_PARTS, HIGHLIGHTS_PART),
)  # fmt: skip
"""For looking back rather than for playing on: a word on the story and the newest turns, and all the rest for what the query brings
back. Without a query, for the most telling turns of the past."""


@dataclass(frozen=True, slots=True)
class Note:
    """One entry of a volatile part: its text, the turns it comes from, its rank among its neighbours; `pinned` never drops silently."""

    text: str
    sources: tuple[str, ...] = ()
    rank: float = 0.0
    pinned: bool = False


def mark_note(part: Part, mark: Marked) -> Note | None:
    """A mark as an entry of the part that shows its topic; None where it does not say all that the line needs: anyone may note anything
    under any topic."""
    try:
        text = part.line.format_map({**{name: value for name, value in mark.data.items() if _says(value)}, "turn": mark.turn})
    except (LookupError, ValueError, TypeError, AttributeError):
        return None
    return Note(" ".join(text.split()), mark.sources, mark.rank)


def _says(value: object) -> bool:
    return not value.isspace() and value != "" if isinstance(value, str) else isinstance(value, int | float)
