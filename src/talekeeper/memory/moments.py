"""Moments: significant turns, with a type and a significance, that a narrator should keep in mind and an epilogue is made of.

The keeper says with its ruling whether something significant happened (`KeeperResponse`). What is kept is capped by significance and
shown in order of time. The number of a moment's turn is the listener's own count: it tells nothing of turns they did not hear (I3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from talekeeper import rim
from talekeeper.errors import InvalidInput, WrongType

MomentType = Literal[
    "combat_victory", "combat_defeat", "critical_success", "critical_failure", "discovery", "achievement", "turning_point"
]  # fmt: skip
MOMENT_TYPES: tuple[str, ...] = get_args(MomentType)
MAX_ADVENTURE_MOMENTS = 15
"""How many moments are kept: the most significant ones; of two that are equal, the newer; pinned ones in any case."""
SHOWN_MOMENTS = 5
MOMENTS_HEADING = "[STORY SO FAR]"


def _significance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"significance must be a number from 0 to 1, not {value!r}")
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

    def __post_init__(self) -> None:
        rim.whole(self.turn, "turn")
        rim.name(self.type, "type")
        rim.text(self.summary, "summary")
        object.__setattr__(self, "significance", _significance(self.significance))

    @property
    def line(self) -> str:
        """How a moment is shown: `- Turn 5 (combat_victory): Defeated the cave goblin`."""
        return f"- Turn {self.turn} ({self.type}): {' '.join(self.summary.split())}"


@dataclass(frozen=True, slots=True)
class KeeperResponse:
    """A keeper's ruling: the outcome first, whether it was a moment, and what it changes in the game (`commands`, as JSON objects)."""

    resolution: str
    moment_type: str | None = None
    moment_summary: str | None = None
    moment_significance: float = 0.5
    commands: tuple[Mapping[str, Any], ...] = field(default=())

    def __post_init__(self) -> None:
        if not isinstance(self.resolution, str):
            raise WrongType(f"resolution must be text, not {type(self.resolution).__name__}")
        if self.moment_type is not None and self.moment_type not in MOMENT_TYPES:
            raise InvalidInput(f"moment_type must be one of {', '.join(MOMENT_TYPES)}, or None, not {self.moment_type!r}")
        if self.moment_summary is not None:
            rim.text(self.moment_summary, "moment_summary")
        object.__setattr__(self, "moment_significance", _significance(self.moment_significance))
        if not all(isinstance(command, Mapping) for command in self.commands):
            raise WrongType("each command must be a JSON object")
        object.__setattr__(self, "commands", tuple(self.commands))


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
    kind, summary = keeper_response.moment_type, keeper_response.moment_summary
    if kind is None or summary is None or not summary.strip():
        return None
    return AdventureMoment(turn, kind, summary, keeper_response.moment_significance)


def keep_moments(moments: Iterable[AdventureMoment], limit: int = MAX_ADVENTURE_MOMENTS) -> list[AdventureMoment]:
    """The most significant ones in order of time; of two equals the newer; pinned ones always."""
    ranked = sorted(moments, key=lambda moment: (moment.pinned, moment.significance, moment.turn), reverse=True)
    kept = [moment for place, moment in enumerate(ranked) if place < limit or moment.pinned]
    return sorted(kept, key=lambda moment: moment.turn)


def format_moments_for_context(moments: Iterable[AdventureMoment], max_count: int = SHOWN_MOMENTS) -> str:
    """The most significant moments in order of time, under their heading; nothing where there are none."""
    lines = [moment.line for moment in keep_moments(moments, rim.whole(max_count, "max_count"))]
    return "\n".join([MOMENTS_HEADING, *lines]) if lines else ""
