"""What a scoped memory is: its nouns, how it goes into a mark of the log and comes back, and the words it is made of.

Every sentence of a memory names the turns it stands for: of a model's sentence that is everything that the model was shown. Whoever
forgets one of them forgets the sentence, also where it has been merged into a larger memory since.
"""

from __future__ import annotations

import enum
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from talekeeper import rim
from talekeeper.context.recipe import Note, Part
from talekeeper.context.rendering import line
from talekeeper.errors import InvalidInput, SummaryFailed, WrongType, quoted
from talekeeper.model import Mark, Marked, Sentence, Turn
from talekeeper.ports import Spending
from talekeeper.story.marking import shaped
from talekeeper.summarize import extractive
from talekeeper.summarize.janitor import Janitor, Piece

log = logging.getLogger("talekeeper")

MAX_ENTRIES = 3
"""How many of a scope's entries are shown one by one, the newest; what is older is shown as one."""
SUMMARY_TOKENS, CAUSE_TOKENS = 90, 40
"""What a memory may take, and of a world memory the turn that was the reason for it."""
ATTEMPTS = 2
MERGE_AT = 12
MERGED = 8
EVENTS_KNOWN = 256
"""So many of the events that an entry stands for are known, so that none is remembered twice, after a crash or by mistake."""
OWN = frozenset({"sentences", "headlines", "tags", "until", "when", "visits", "events", "made_by"})
"""What a memory says of itself: nothing of these names can be `related`."""
SCOPED = "scope:"
PRUNED = "pruned:"

FOCUS = {
    "location": "Tell in two or three sentences what happened at this place during the visit: outcomes, and what is different now.",
    "npc": "Tell in two or three sentences how things went with {name}: relationships, promises, conflicts, and how they ended.",
    "world": "Tell in two or three sentences what has moved the story on ({name}): what was achieved, and what follows from it.",
}


class MemorySource(enum.StrEnum):
    """What a memory is a memory of."""

    LOCATION = "location"
    NPC = "npc"
    WORLD = "world"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """A short memory of a place, of someone, or of the world. `created_at` is story time: the day that was given, or the turn, in the
    listener's own count; so is `since_message_index`, the last turn that it covers (the author's count is the log's). `made_by`:
    extractive or model."""

    id: str
    source: MemorySource
    summary: str
    created_at: str = ""
    tags: tuple[str, ...] = ()
    location_id: str | None = None
    npc_ids: tuple[str, ...] = ()
    quest_id: str | None = None
    encounter_id: str | None = None
    since_timestamp: str | None = None
    since_message_index: int = 0
    sources: tuple[str, ...] = ()
    visits: int = 1
    made_by: str = "extractive"

    @property
    def line(self) -> str:
        """How an entry is shown: on one line, with its story time."""
        return f"({self.created_at}) {self.summary}" if self.created_at else self.summary


@dataclass(frozen=True, slots=True)
class PrunePolicy:
    """What `prune` removes: all but the newest `max_entries` of a scope, and those that have one of `tags`. None and empty: nothing."""

    max_entries: int | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_entries is not None:
            rim.whole(self.max_entries, "max_entries")
        rim.names(self.tags, "tags")


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope with what its entries say of it."""

    source: MemorySource
    name: str
    label: str
    tags: tuple[str, ...]
    related: Mapping[str, Any] = field(default_factory=dict)
    headline: Sentence | None = None
    """What is said of it in any case, whatever becomes of the turns."""

    @property
    def topic(self) -> str:
        return f"{SCOPED}{self.source}:{self.name}"


class Told(NamedTuple):
    """What is to be remembered of a scope by some hearers: sentences, and the turns that they stand for."""

    sentences: Sequence[Sentence]
    told: Sequence[Turn]
    audience: tuple[str, ...]

    def as_mark(self, scope: Scope) -> Mark:
        cited = {source for sentence in self.sentences for source in sentence.sources}
        data: dict[str, Any] = {
            "sentences": rows_of(self.sentences), "tags": list(scope.tags), **scope.related,
            "headlines": rows_of([scope.headline] if scope.headline else []),
            "until": max(turn.seq for turn in self.told), "when": next((turn.when for turn in self.told if turn.when), None), "visits": 1,
        }  # fmt: skip
        of = {turn.id: turn for turn in self.told if turn.id in cited}
        return Mark(scope.topic, data, keep=2 * MERGE_AT, of=tuple(of.values()), heard_by=self.audience)


async def modelled(janitor: Janitor, scope: Scope, told: Sequence[Turn]) -> tuple[Sentence, ...]:
    """The turns in the words of a model, which is asked again once; nothing where it fails."""
    pieces = [Piece(line(turn).rstrip("\n"), (turn.id,)) for turn in told]
    known = [scope.label] if scope.source is MemorySource.NPC else []
    focus = FOCUS[scope.source].format(name=scope.label)
    shown = tuple(turn.id for turn in told)
    spent: list[Spending] = []
    for attempt in range(1, ATTEMPTS + 1):
        try:
            said = await janitor.summarize(pieces, known, SUMMARY_TOKENS, spent.append, focus=focus)
            return tuple(Sentence(sentence.text, shown, estimated=True) for sentence in said)
        except SummaryFailed as failure:
            log.warning("memory kept extractive", extra={"scope": scope.topic, "attempt": attempt, "reason": str(failure)})
    return ()


def by_hearers(turns: Sequence[Turn]) -> dict[tuple[str, ...], list[Turn]]:
    """The turns per set of hearers: what some remember is made from what they all heard and nothing else."""
    channels: dict[tuple[str, ...], list[Turn]] = {}
    for turn in turns:
        channels.setdefault(turn.audience, []).append(turn)
    return channels


def rows_of(sentences: Sequence[Sentence]) -> list[list[Any]]:
    return [[sentence.text, list(sentence.sources)] for sentence in sentences]


def condense(turns: Sequence[Turn], limit: int = SUMMARY_TOKENS) -> tuple[Sentence, ...]:
    """Turns in two or three sentences. Where none is worth keeping, the last one stands for them: what was seen counts as summarised."""
    told = [turn for turn in turns if turn.text]
    found = extractive.condense(told, limit=limit)
    return found or tuple(Sentence(line(turn).strip()[:200], (turn.id,)) for turn in told[-1:])


def pruned(marks: Sequence[Marked], policy: PrunePolicy) -> list[str]:
    tagged = {mark.id for mark in marks if not set(policy.tags).isdisjoint(mark.data["tags"])}
    rest = [mark.id for mark in marks if mark.id not in tagged]
    surplus = rest[: max(0, len(rest) - policy.max_entries)] if policy.max_entries is not None else []
    return [mark.id for mark in marks if mark.id in tagged or mark.id in surplus]


def memories_of(marks: Sequence[Marked]) -> list[Marked]:
    """Those of the marks that are memories."""
    found = shaped(marks, sentences=list, tags=list, until=int, visits=int, when=str | None)
    lists = [mark for mark in found if all(isinstance(mark.data.get(name, []), list) for name in ("npc_ids", "events", "headlines"))]
    return [mark for mark in lists if all(map(_is_row, (*mark.data["sentences"], *mark.data.get("headlines", ()))))]


def _is_row(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], list)


def entry_of(mark: Marked, rows: Sequence[Sequence[Any]], until: int | None = None) -> MemoryEntry:
    """A mark as a memory. `until`: up to where it covers its scope, in the count of the one who asks."""
    data = mark.data
    when = data.get("when")
    return MemoryEntry(
        id=mark.id, source=MemorySource(mark.topic.split(":")[1]), summary=" ".join(text for text, _ in rows),
        created_at=when or f"turn {mark.turn}", tags=tuple(data["tags"]), location_id=data.get("location_id"),
        npc_ids=tuple(data.get("npc_ids", ())), quest_id=data.get("quest_id"), encounter_id=data.get("encounter_id"),
        since_timestamp=when, since_message_index=data["until"] if until is None else until, sources=mark.sources, visits=data["visits"],
        made_by=data.get("made_by", "extractive"),
    )  # fmt: skip


def headline_of(kind: str, related: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    ids = [str(related[name]) for name in related if name.endswith("_id")]
    about = [labels.get(id, id.replace("_", " ").replace("-", " ")) for id in ids]
    said = kind.replace("_", " ").capitalize()
    return f"{said}: {', '.join(about)}." if about else f"{said}."


def titled(label: str, text: str) -> str:
    return f"{label}: {text}" if label else text


def section(part: Part, notes: Sequence[Note]) -> str:
    return "\n".join([part.heading.rstrip("\n"), *(f"- {' '.join(note.text.split())}" for note in notes)]) if notes else ""


def merged(old: Sequence[tuple[Marked, Sequence[Sequence[Any]]]]) -> tuple[dict[str, Any], list[str]]:
    """Several memories of one scope, oldest first and each with what it says now, as the data of one, and the turns that it stands for."""
    rows = [row for _, said in old for row in said]
    kept = rows_of(extractive.merge([Sentence(text, tuple(sources)) for text, sources in rows], limit=2 * SUMMARY_TOKENS))
    marks = [mark for mark, _ in old]
    data = {
        **marks[-1].data, "sentences": kept, "headlines": [row for mark in marks for row in mark.data.get("headlines", ()) if row in kept],
        "visits": sum(mark.data["visits"] for mark in marks), "when": marks[0].data.get("when"),
        "events": [event for mark in marks for event in mark.data.get("events", ())][-EVENTS_KNOWN:],
    }  # fmt: skip
    return data, list(dict.fromkeys(source for _, sources in kept for source in sources))


def event_of(cause: Turn, kind: str, related: Mapping[str, Any]) -> str:
    """What an event is known by: the turn in which it happened, its kind, what it is about."""
    return hashlib.blake2b(json.dumps([cause.id, kind, related], sort_keys=True).encode(), digest_size=8).hexdigest()


def related_of(related: object) -> dict[str, Any]:
    """What an event is about, by ids: `quest_id`, `location_id`, `npc_ids` … Raises where that is not what was given."""
    if related is None:
        return {}
    if not isinstance(related, Mapping):
        raise WrongType(f"related must map names such as 'quest_id' to ids, not {type(related).__name__}")
    return {rim.name(name, "a name in related"): _id(name, value) for name, value in related.items() if value is not None}


def _id(name: str, value: object) -> Any:
    if name in OWN:
        raise InvalidInput(f"related cannot have {quoted(name)}: that is what a memory says of itself")
    if name.endswith("_ids"):
        return list(rim.names(value, f"related[{quoted(name)}]"))
    if name.endswith("_id"):
        return rim.name(value, f"related[{quoted(name)}]")
    if not isinstance(value, str | int | float | bool):
        raise WrongType(f"related[{quoted(name)}] must be a string or a number, not {type(value).__name__}")
    return value
