"""Moments: significant turns, with a type and a significance, that a narrator should keep in mind and an epilogue is made of.

The keeper says with its ruling whether something significant happened (`KeeperResponse`). What is kept is capped by significance and
shown in order of time. The number of a moment's turn is the listener's own count: it tells nothing of turns they did not hear (I3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, Literal, get_args

from talekeeper import rim
from talekeeper.context.recipe import DEFAULT_RECIPE, MOMENTS_PART, Note, Recipe
from talekeeper.errors import InvalidInput, WrongType, quoted
from talekeeper.model import Context, Mark, Marked, Turn, TurnRef
from talekeeper.story.inside import check_story
from talekeeper.story.marking import shaped
from talekeeper.story.remembering import Remembering
from talekeeper.story.story import Story

MomentType = Literal[
    "combat_victory", "combat_defeat", "critical_success", "critical_failure", "discovery", "achievement", "turning_point"
]  # fmt: skip
MOMENT_TYPES: tuple[str, ...] = get_args(MomentType)
MAX_ADVENTURE_MOMENTS = 15
"""How many moments are kept: the most significant ones; of two that are equal, the newer. Pinned ones stay beside them, all of them."""
SHOWN_MOMENTS = MOMENTS_PART.most
TOPIC = MOMENTS_PART.topic
_PINNED = 10.0  # above every significance


def _significance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"significance must be a number from 0 to 1, not {quoted(value)}")
    return float(value)


@dataclass(frozen=True, slots=True)
class AdventureMoment:
    """A turn worth remembering. `turn` is its number among the turns that the listener heard."""

    turn: int
    type: str
    summary: str
    significance: float = 0.5
    pinned: bool = False
    sources: tuple[str, ...] = ()
    id: str = ""

    def __post_init__(self) -> None:
        rim.whole(self.turn, "turn")
        rim.name(self.type, "type")
        rim.text(self.summary, "summary")
        object.__setattr__(self, "significance", _significance(self.significance))

    @property
    def line(self) -> str:
        """How a moment is shown: `- Turn 5 (combat_victory): Defeated the cave goblin`."""
        return f"- {MOMENTS_PART.line.format(turn=self.turn, type=self.type, summary=' '.join(self.summary.split()))}"


@dataclass(frozen=True, slots=True)
class KeeperResponse:
    """A keeper's ruling: the outcome first, whether it was a moment, and what it changes in the game (`commands`, as JSON objects)."""

    resolution: str
    moment_type: str | None = None
    moment_summary: str | None = None
    moment_significance: float = 0.5
    commands: tuple[Mapping[str, Any], ...] = field(default=())

    def __post_init__(self) -> None:
        rim.string(self.resolution, "resolution")
        if self.moment_type is not None and self.moment_type not in MOMENT_TYPES:
            raise InvalidInput(f"moment_type must be one of {', '.join(MOMENT_TYPES)}, or None, not {quoted(self.moment_type)}")
        if self.moment_summary is not None:
            rim.text(self.moment_summary, "moment_summary")
        object.__setattr__(self, "moment_significance", _significance(self.moment_significance))
        commands = rim.several(self.commands, "commands")
        if not all(isinstance(command, Mapping) for command in commands):
            raise WrongType("each command must be a JSON object")
        object.__setattr__(self, "commands", commands)


KEEPER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "resolution": {
            "type": "string", "maxLength": 200,
            "description": "The outcome, numbers first, in under ten words: '14. Hits. 6 damage.' or 'DC 15. Rolled 12. Fails.'",
        },
        "moment_type": {
            "anyOf": [{"type": "string", "enum": list(MOMENT_TYPES)}, {"type": "null"}],
            "description": "What kind of significant moment this is; null if it is routine.",
        },
        "moment_summary": {
            "anyOf": [{"type": "string", "maxLength": 160}, {"type": "null"}],
            "description": "What happened, in five to ten words, if it is significant; else null.",
        },
        "moment_significance": {
            "type": "number", "minimum": 0, "maximum": 1,
            "description": "0 is routine, 1 is the climax. A won fight is about 0.8, a discovery 0.7, a critical hit 0.9.",
        },
        "commands": {
            "type": "array", "maxItems": 8, "items": {"type": "object"},
            "description": "What changes in the game, as commands.",
        },
    },
    "required": ["resolution", "moment_type", "moment_summary", "moment_significance", "commands"],
}  # fmt: skip
"""What a model is asked for, so that its answer reads as a `KeeperResponse`. Strings and lists are bounded: small models run on."""


def build_moment_from_keeper(keeper_response: KeeperResponse, turn: int) -> AdventureMoment | None:
    """The moment that a ruling tells of; None if it was routine."""
    _check_ruling(keeper_response)
    kind, summary = keeper_response.moment_type, keeper_response.moment_summary
    if kind is None or summary is None or not summary.strip():
        return None
    return AdventureMoment(turn, kind, summary, keeper_response.moment_significance)


def keep_moments(moments: Iterable[AdventureMoment], limit: int = MAX_ADVENTURE_MOMENTS) -> list[AdventureMoment]:
    """The most significant ones in order of time; of two equals the newer. All that are pinned are there beside them."""
    ranked = _ranked(moments)
    pinned = sum(moment.pinned for moment in ranked)
    return sorted(ranked[: pinned + limit], key=lambda moment: moment.turn)


def _ranked(moments: Iterable[AdventureMoment]) -> list[AdventureMoment]:
    """The pinned ones first, then the most significant; of two equals the newer."""
    return sorted(moments, key=lambda moment: (moment.pinned, moment.significance, moment.turn), reverse=True)


def moment_notes(moments: Iterable[AdventureMoment]) -> list[Note]:
    """Moments as entries of a context."""
    return [Note(moment.line.removeprefix("- "), moment.sources, moment.significance) for moment in moments]


def format_moments_for_context(moments: Iterable[AdventureMoment], max_count: int = SHOWN_MOMENTS) -> str:
    """The most significant moments in order of time, under their heading; nothing where there are none. Pinned ones come first, and
    are shown even where there are more of them."""
    given = rim.several(moments, "moments")
    for moment in given:
        _check_moment(moment)
    ranked = _ranked(given)
    shown = ranked[: max(rim.whole(max_count, "max_count"), sum(moment.pinned for moment in ranked))]
    return _told(shown)


def _told(moments: Iterable[AdventureMoment]) -> str:
    lines = [moment.line for moment in sorted(moments, key=lambda moment: moment.turn)]
    return "\n".join([MOMENTS_PART.heading.rstrip("\n"), *lines]) if lines else ""


# -- on a story ----------------------------------------------------------------------------------------------------------


def moment_mark(moment: AdventureMoment) -> Mark:
    """The moment as a mark, to be appended with the turn in which it happened: `story.append(…, marks=[moment_mark(moment)])`."""
    _check_moment(moment)
    data = {"type": moment.type, "summary": moment.summary, "significance": moment.significance}
    return Mark(TOPIC, data, rank=moment.significance + _PINNED * moment.pinned, keep=MAX_ADVENTURE_MOMENTS, lasting=_PINNED)


def _check_moment(moment: object) -> None:
    if not isinstance(moment, AdventureMoment):
        raise WrongType(f"a moment must be an AdventureMoment, not {type(moment).__name__}")


async def add_adventure_moment(story: Story, moment: AdventureMoment, *, of: TurnRef) -> AdventureMoment:
    """Notes a moment of the turn `of`. Those who heard the turn may know it; a rewind undoes it."""
    check_story(story)
    mark = moment_mark(moment)
    return _moment(await story.mark(mark.topic, mark.data, of=[of], rank=mark.rank, keep=mark.keep, lasting=mark.lasting))


async def pin_moment(story: Story, moment: AdventureMoment, pinned: bool = True) -> AdventureMoment:
    """Keeps a moment whatever happens, or lets go of it again."""
    check_story(story)
    _check_moment(moment)
    marks = {mark.id: mark for mark in await story.marks(None, TOPIC) if _moments([mark])}
    if moment.id not in marks:
        raise InvalidInput(f"the story has no such moment now: {moment.line}")
    old = marks[moment.id]
    mark = moment_mark(replace(_moment(old), pinned=pinned))
    return _moment(await story.mark(
        TOPIC, old.data, of=old.sources, heard_by=old.audience, rank=mark.rank, keep=mark.keep, lasting=mark.lasting, drops=[old.id]
    ))  # fmt: skip


async def adventure_moments(story: Remembering, seat: str | None, *, limit: int = MAX_ADVENTURE_MOMENTS) -> list[AdventureMoment]:
    """The moments that the seat may know (None: all), the `limit` most significant and all that are pinned, in order of time."""
    check_story(story)
    return keep_moments(_moments(await story.marks(seat, TOPIC)), rim.whole(limit, "limit"))


def _moments(marks: Iterable[Marked]) -> list[AdventureMoment]:
    """Those of the marks that are moments."""
    found: list[AdventureMoment] = []
    for mark in shaped(marks, type=str, summary=str, significance=int | float):
        with suppress(InvalidInput):
            found.append(_moment(mark))
    return found


def _moment(mark: Marked) -> AdventureMoment:
    data = mark.data
    return AdventureMoment(mark.turn, data["type"], data["summary"], data["significance"], mark.rank >= _PINNED, mark.sources, mark.id)


async def resolve_action_with_moments(
    story: Story, keeper: Callable[[str], Awaitable[KeeperResponse]], action: str, *, heard_by: Sequence[str] | None = None,
    location: str | None = None, marks: Sequence[Mark] = (),
) -> tuple[Turn, KeeperResponse]:  # fmt: skip
    """Asks the keeper about an action and appends the outcome as an event, with its moment, in one step."""
    check_story(story)
    given = rim.marks(marks)
    ruling = await _ruling(keeper, action)
    moment = build_moment_from_keeper(ruling, 0)
    noted = [*given, moment_mark(moment)] if moment is not None else given
    turn = await story.append("", ruling.resolution, kind="event", heard_by=heard_by, location=location, marks=noted)
    return turn, ruling


async def _ruling(keeper: Callable[[str], Awaitable[object]], action: str) -> KeeperResponse:
    if not callable(keeper):
        raise WrongType(f"keeper must be an async function of the action, not {type(keeper).__name__}")
    answer: object = keeper(action)
    return _check_ruling(await answer if isawaitable(answer) else answer)


def _check_ruling(ruling: object) -> KeeperResponse:
    if not isinstance(ruling, KeeperResponse):
        raise WrongType(f"the keeper must answer with a KeeperResponse, not {type(ruling).__name__}")
    return ruling


async def build_context(
    story: Remembering, seat: str, *, include_moments: bool = True, budget: int | None = None, query: str | None = None,
    recipe: Recipe = DEFAULT_RECIPE, extras: Mapping[str, Sequence[Note]] | None = None,
) -> Context:  # fmt: skip
    """`Story.context`, with the moments or without."""
    check_story(story)
    given = rim.extras(extras)
    notes = given if include_moments else {**given, MOMENTS_PART.name: ()}
    return await story.context(seat, budget=budget, query=query, recipe=recipe, extras=notes)


async def epilogue_material(story: Remembering, seat: str, *, budget: int = 1000) -> str:
    """What an ending is made of: the moments that the seat knows of, in order of time; where there is none, what it remembers. Where
    not all of them fit the budget, the pinned ones come first, and then the most significant."""
    rim.whole(budget, "budget")
    fitting: list[AdventureMoment] = []
    for moment in _ranked(await adventure_moments(story, seat)):
        if story.counter.count(_told([*fitting, moment])) <= budget:
            fitting.append(moment)
    return _told(fitting) or (await story.context(seat, budget=budget)).text
