"""Scoped memories: what happened at a place, with someone, in the world at large. Short entries, made when there is reason to.

An entry is a mark of the log: it is rewound with the story, and only those who heard what it was made from may know it. One is made per
scope and set of hearers, and joined for the one who asks. Each entry says up to which turn it covers its scope: that is the cursor, so
nothing is summarised twice, and nothing is passed over that was not summarised. Entries are extractive at once; with a model, its text
replaces them when it arrives. When a scope has many entries, the oldest are merged into one: the tenth visit still knows the first.
"""

from __future__ import annotations

import asyncio
import enum
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, SummaryFailed
from talekeeper.memory.naming import named_in, names_of
from talekeeper.model import Mark, Marked, Seat, Sentence, Turn
from talekeeper.ports import ChatModel, Spending
from talekeeper.recipe import Note
from talekeeper.rendering import line
from talekeeper.story import Story
from talekeeper.summarize import extractive
from talekeeper.summarize.janitor import Janitor, Piece
from talekeeper.telling import TRIES, step_aside

T = TypeVar("T")
log = logging.getLogger("talekeeper")

MAX_ENTRIES = 3
"""How many of a scope's entries are shown one by one, the newest; what is older is shown as one."""
SUMMARY_TOKENS, CAUSE_TOKENS = 90, 40
"""What a memory may take, and of a world memory the turn that was the reason for it."""
ATTEMPTS = 2
MERGE_AT = 12
MERGED = 8
EVENTS_KNOWN = 32
"""So many of the events that an entry stands for are known by name, so that none is remembered twice after a crash."""
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
    listener's own count; `since_message_index` is the last turn it covers. `made_by`: extractive or model."""

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
class _Scope:
    """A scope with what its entries say of it."""

    source: MemorySource
    name: str
    label: str
    tags: tuple[str, ...]
    related: Mapping[str, Any] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return f"{SCOPED}{self.source}:{self.name}"


class _Telling(NamedTuple):
    """What is to be remembered of a scope by some hearers: sentences, and the turns that they stand for."""

    sentences: Sequence[Sentence]
    told: Sequence[Turn]
    audience: tuple[str, ...]

    def as_mark(self, scope: _Scope) -> Mark:
        cited = {source for sentence in self.sentences for source in sentence.sources}
        data: dict[str, Any] = {
            "sentences": _rows(self.sentences), "tags": list(scope.tags), **scope.related,
            "until": max(turn.seq for turn in self.told), "when": next((turn.when for turn in self.told if turn.when), None), "visits": 1,
        }  # fmt: skip
        of = {turn.id: turn for turn in self.told if turn.id in cited}
        return Mark(scope.topic, data, keep=2 * MERGE_AT, of=tuple(of.values()), heard_by=self.audience)


class MemoryService:
    """Makes and shows the scoped memories of a story. Without a summarizer everything is extractive, and nothing leaves the machine.

    `labels` are the names of places, and of whatever else memories are about, by id. `shown`: how many entries of a scope are shown one by
    one."""

    def __init__(
        self, story: Story, *, summarizer: ChatModel | Janitor | None = None, labels: Mapping[str, str] | None = None,
        shown: int = MAX_ENTRIES, policy: PrunePolicy | None = None,
    ) -> None:  # fmt: skip
        self._story = story
        self._janitor = summarizer if isinstance(summarizer, Janitor) or summarizer is None else Janitor(summarizer)
        self._labels = dict(labels or {})
        self._shown = rim.whole(shown, "shown", least=1)
        self._policy = policy
        self._tasks: set[asyncio.Task[None]] = set()

    # -- making ------------------------------------------------------------------------------------------------------------

    async def on_location_exit(self, location_id: str, *, present: Iterable[str] | None = None) -> list[MemoryEntry]:
        """Call it before someone leaves: one memory of the place per set of hearers, and one of each NPC who is there and was spoken of.

        `present`: who is there, for a game that keeps track of that itself."""
        rim.name(location_id, "location_id")
        place = _Scope(MemorySource.LOCATION, location_id, self._label(location_id), ("session", f"location:{location_id}"),
                       {"location_id": location_id})  # fmt: skip
        made = await self._write(place, partial(self._of_place, place, location_id))
        here = [seat for seat, place in self._story.presence().items() if place == location_id] if present is None else list(present)
        for npc in (seat for seat in self._story.seats if seat.role == "npc" and seat.id in here):
            tags = ("npc-session", f"location:{location_id}", f"npc:{npc.id}")
            scope = _Scope(MemorySource.NPC, npc.id, npc.label, tags, {"location_id": location_id, "npc_ids": [npc.id]})
            made += await self._write(scope, partial(self._of_npc, scope, npc, location_id))
        return made

    async def _of_place(self, scope: _Scope, location_id: str) -> list[_Telling]:
        return _by_hearers(await self._unseen(scope, location_id))

    async def _of_npc(self, scope: _Scope, npc: Seat, location_id: str) -> list[_Telling]:
        heard = [turn for turn in await self._unseen(scope, location_id) if npc.id in turn.audience]
        names = names_of(npc)
        about = {
            near
            for index, turn in enumerate(heard) if turn.speaker == npc.id or named_in(turn.text, names)
            for near in range(max(0, index - 1), min(len(heard), index + 2)) if heard[near].audience == turn.audience
        }  # fmt: skip
        return _by_hearers([heard[index] for index in sorted(about)])

    async def on_world_event(
        self, event_kind: str, tags: Sequence[str] | None = None, related: Mapping[str, Any] | None = None, *,
        of: Turn | str | int | None = None,
    ) -> MemoryEntry | None:  # fmt: skip
        """A memory of what moved the story on: `of` is the turn in which it did, by default the newest. Who heard that turn may know it.

        Several events in one turn each get a memory of their own; the same one again gets none. None where the story has no turn yet."""
        rim.name(event_kind, "event_kind")
        newest = await self._story.turns(newest=True, limit=1)
        if not newest:
            return None
        cause = newest[0] if of is None else await self._story.turn(of)
        ids = {name: value for name, value in (related or {}).items() if value is not None}
        event = json.dumps([cause.id, event_kind, ids], sort_keys=True, default=str)
        scope = _Scope(
            MemorySource.WORLD, "", event_kind.replace("_", " "), (f"world:{event_kind}", *(tags or ())), {**ids, "events": [event]}
        )
        headline = Sentence(_headline(event_kind, ids, self._labels), (cause.id,))
        made = await self._write(scope, partial(self._of_event, scope, event, cause, headline))
        return made[0] if made else await self._known_event(scope, event)

    async def _known_event(self, scope: _Scope, event: str) -> MemoryEntry | None:
        for mark in await self._story.marks(None, scope.topic):
            if event in mark.data.get("events", ()):
                return _entry(mark, await self._sentences(mark))
        return None

    async def _of_event(self, scope: _Scope, event: str, cause: Turn, headline: Sentence) -> list[_Telling]:
        if await self._known_event(scope, event) is not None:
            return []
        since = await self._cursor(scope.topic, cause.audience)
        told = [turn for turn in await self._told(after=since) if set(cause.audience) <= set(turn.audience)]
        before = [turn for turn in told if turn.id != cause.id]
        sentences = (headline, *_condense(before, SUMMARY_TOKENS - CAUSE_TOKENS), *_condense([cause], CAUSE_TOKENS))
        return [_Telling(sentences, [cause, *told], cause.audience)]

    async def _unseen(self, scope: _Scope, location_id: str) -> list[Turn]:
        """The turns at a place that no memory of the scope covers yet."""
        return await self._told(location=location_id, after=await self._cursor(scope.topic))

    async def _told(self, *, after: int, location: str | None = None) -> list[Turn]:
        return [turn for turn in await self._story.turns(location=location, after=after) if turn.kind not in ("enter", "leave", "session")]

    async def _cursor(self, topic: str, audience: tuple[str, ...] | None = None) -> int:
        """The last turn that a memory covers, of those hearers or of any, also where the memory itself was pruned."""
        marks = [*await self._story.marks(None, topic), *await self._story.marks(None, PRUNED + topic)]
        return max((mark.data["until"] for mark in marks if audience is None or mark.audience == audience), default=0)

    async def _write(self, scope: _Scope, tell: Callable[[], Awaitable[list[_Telling]]]) -> list[MemoryEntry]:
        """Puts entries into the log, all in one step: the cursor is theirs, and must not pass over what another was to cover."""

        async def write(version: str) -> list[tuple[Marked, _Telling]]:
            tellings = await tell()
            marks = await self._story.mark_many([telling.as_mark(scope) for telling in tellings], expected_version=version)
            return list(zip(marks, tellings, strict=True))

        made = await self._unmoved(write)
        for mark, telling in made:
            await self._unmoved(partial(self._merge_old, scope.topic, telling.audience))
            if self._janitor is not None:
                self._spawn(self._improve(self._janitor, scope, mark, telling.told))
        return [_entry(mark, mark.data["sentences"]) for mark, _ in made]

    async def _unmoved(self, work: Callable[[str], Awaitable[T]]) -> T:
        """What the work returns, done anew if anything came between its reading and its writing: two at once remember nothing twice."""
        for attempt in range(TRIES):
            try:
                return await work(self._story.version)
            except Conflict:
                if attempt == TRIES - 1:
                    raise
            await step_aside(attempt)
        raise AssertionError("unreachable")

    async def _merge_old(self, topic: str, audience: tuple[str, ...], version: str) -> None:
        """Merges the oldest entries of a scope into one, so that what is kept stays small and the first visit is not lost."""
        mine = [mark for mark in await self._story.marks(None, topic) if mark.audience == audience]
        if len(mine) < MERGE_AT:
            return
        old = mine[:MERGED]
        rows = [row for mark in old for row in await self._sentences(mark)]
        kept = extractive.merge([Sentence(text, tuple(sources)) for text, sources in rows], limit=2 * SUMMARY_TOKENS)
        cited = dict.fromkeys(source for sentence in kept for source in sentence.sources)
        data = {
            **old[-1].data, "sentences": _rows(kept),
            "visits": sum(mark.data["visits"] for mark in old), "when": old[0].data.get("when"),
            "events": [event for mark in old for event in mark.data.get("events", ())][-EVENTS_KNOWN:],
        }  # fmt: skip
        of, drops = [await self._story.turn(source) for source in cited], tuple(mark.id for mark in old)
        mark = Mark(topic, data, keep=2 * MERGE_AT, of=tuple(of), heard_by=audience, drops=drops)
        await self._story.mark_many([mark], expected_version=version)

    # -- a model's words -----------------------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Waits until no memory waits for the model."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _improve(self, janitor: Janitor, scope: _Scope, mark: Marked, told: Sequence[Turn]) -> None:
        """Puts the model's text in the place of the extractive one, if it comes and is faithful; else the memory stays as it is."""
        sentences = await _modelled(janitor, scope, told)
        if not sentences:
            return
        data = {**mark.data, "sentences": _rows(sentences), "made_by": "model"}
        try:
            # of all that was in the prompt: whoever forgets one of these turns forgets the text
            await self._story.mark(mark.topic, data, of=[turn.id for turn in told], heard_by=mark.audience, keep=2 * MERGE_AT,
                                   drops=[mark.id])  # fmt: skip
        except InvalidInput:
            log.info("memory was rewound or merged meanwhile", extra={"scope": scope.topic})

    async def summarize_location_session(self, location_id: str, turns: Sequence[Turn]) -> str:
        """What happened at the place in these turns, in two or three sentences: the model's if it comes and is faithful, else extractive.
        Nothing is kept; it is for those who heard all of them."""
        return await self._summarize(_Scope(MemorySource.LOCATION, location_id, self._label(location_id), ()), turns)

    async def summarize_npc_interactions(self, npc_id: str, turns: Sequence[Turn]) -> str:
        """The same of how things went with an NPC."""
        known = {seat.id: seat for seat in self._story.seats}
        return await self._summarize(_Scope(MemorySource.NPC, npc_id, known[rim.known_seat(npc_id, known)].label, ()), turns)

    async def summarize_world_update(self, event_kind: str, turns: Sequence[Turn]) -> str:
        """The same of what moved the story on."""
        return await self._summarize(_Scope(MemorySource.WORLD, "", event_kind.replace("_", " "), ()), turns)

    async def _summarize(self, scope: _Scope, turns: Sequence[Turn]) -> str:
        modelled = await _modelled(self._janitor, scope, turns) if self._janitor is not None and turns else ()
        return " ".join(sentence.text for sentence in modelled or _condense(turns))

    # -- showing -------------------------------------------------------------------------------------------------------------

    async def entries(self, seat: str | None, source: MemorySource | str, name: str = "") -> list[MemoryEntry]:
        """All memories of a scope that the seat may know, oldest first. The seat None is the author, who sees all."""
        return [_entry(mark, rows) for mark, rows in await self._known(seat, MemorySource(source), name)]

    async def _known(self, seat: str | None, source: MemorySource, name: str) -> list[tuple[Marked, list[Sequence[Any]]]]:
        """The marks of a scope that the seat may know, oldest first, each with what it says now."""
        marks = await self._story.marks(seat, f"{SCOPED}{source}:{name}")
        return [(mark, rows) for mark in marks if (rows := await self._sentences(mark))]

    async def _sentences(self, mark: Marked) -> list[Sequence[Any]]:
        """What a memory says now: after an edit of one of its turns it is made anew from what they say now."""
        if not mark.stale:
            return list(mark.data["sentences"])
        turns = [await self._story.turn(source) for source in mark.sources]
        sentences = _condense(turns)
        return [[sentence.text, sentence.sources] for sentence in sentences]

    async def location_memory(self, seat: str, location_id: str | None = None) -> str:
        """What the seat remembers of a place, by default of where it is."""
        return _section("Recent Location Memory", await self._location_notes(seat, location_id))

    async def npc_memory(self, seat: str, npc_ids: Iterable[str] | None = None) -> str:
        """What the seat remembers of these NPCs, by default of those who are where it is."""
        return _section("NPC Memory", await self._npc_notes(seat, npc_ids))

    async def world_memory(self, seat: str) -> str:
        """What the seat remembers of how the story moved on."""
        return _section("World Memory", await self._world_notes(seat))

    async def notes(self, seat: str, *, location_id: str | None = None, npc_ids: Iterable[str] | None = None) -> dict[str, list[Note]]:
        """The three sections as parts of a context: pass them to `Story.context` as `extras`."""
        parts = {
            "location": await self._location_notes(seat, location_id), "npcs": await self._npc_notes(seat, npc_ids),
            "world": await self._world_notes(seat),
        }  # fmt: skip
        return {name: notes for name, notes in parts.items() if notes}

    async def _location_notes(self, seat: str, location_id: str | None) -> list[Note]:
        place = location_id if location_id is not None else await self._place_of(seat)
        if place is None:
            return []
        return await self._newest(seat, MemorySource.LOCATION, place, self._label(place))

    async def _npc_notes(self, seat: str, npc_ids: Iterable[str] | None) -> list[Note]:
        known = {other.id: other for other in self._story.seats}
        if npc_ids is None:
            presence, here = self._story.presence(), await self._place_of(seat)
            wanted = [other for other in known.values() if other.role == "npc" and here is not None and presence.get(other.id) == here]
        else:
            wanted = [known[rim.known_seat(name, known)] for name in npc_ids]
        return [note for npc in wanted for note in await self._newest(seat, MemorySource.NPC, npc.id, npc.label)]

    async def _place_of(self, seat: str) -> str | None:
        """Where the seat is; for one who is nowhere, such as a DM, where the story is."""
        place = self._story.presence().get(seat)
        if place is None:
            newest = await self._story.turns(seat=seat, newest=True, limit=1)
            place = newest[0].location if newest else None
        return place

    async def _world_notes(self, seat: str) -> list[Note]:
        return await self._newest(seat, MemorySource.WORLD, "", "")

    async def _newest(self, seat: str, source: MemorySource, name: str, label: str) -> list[Note]:
        """What the seat knows of a scope, as notes."""
        known = await self._known(seat, source, name)
        return self._story._made_once(("scope", seat, source, name, label, self._shown), known, lambda: self._as_notes(known, label))

    def _as_notes(self, known: Sequence[tuple[Marked, Sequence[Sequence[Any]]]], label: str) -> list[Note]:
        """The newest entries one by one, behind one line for all that came before."""
        entries = [_entry(mark, rows) for mark, rows in known]
        old, new = entries[: -self._shown], entries[-self._shown :]
        notes = []
        if old:
            sentences = [Sentence(entry.summary, entry.sources) for entry in old]
            kept = extractive.merge(sentences, limit=SUMMARY_TOKENS)
            sources = tuple(dict.fromkeys(source for sentence in kept for source in sentence.sources))
            notes.append(Note(_titled(label, f"(earlier) {' '.join(sentence.text for sentence in kept)}"), sources, rank=0.5))
        notes += [Note(_titled(label, entry.line), entry.sources, rank=1.0 + place) for place, entry in enumerate(new)]
        return notes

    def _label(self, location_id: str) -> str:
        return self._labels.get(location_id, location_id)

    # -- pruning -------------------------------------------------------------------------------------------------------------

    async def prune(self, policy: PrunePolicy | None = None) -> int:
        """Removes memories by the policy given here or at the beginning; without one, nothing. Returns how many. A rewind undoes it."""
        policy = policy or self._policy
        if policy is None:
            return 0
        count = 0
        for topic in await self._story.topics(None, prefix=SCOPED):
            scopes: dict[tuple[str, ...], list[Marked]] = {}
            for mark in await self._story.marks(None, topic):
                scopes.setdefault(mark.audience, []).append(mark)
            for audience, marks in scopes.items():
                drops = _pruned(marks, policy)
                if drops:
                    until = max(mark.data["until"] for mark in marks)
                    await self._story.mark(PRUNED + topic, {"until": until}, heard_by=audience, keep=1, drops=drops)
                    count += len(drops)
        return count


async def _modelled(janitor: Janitor, scope: _Scope, told: Sequence[Turn]) -> tuple[Sentence, ...]:
    """The turns in the words of a model, which is asked again once; nothing where it fails."""
    pieces = [Piece(line(turn).rstrip("\n"), (turn.id,)) for turn in told]
    known = [scope.label] if scope.source is MemorySource.NPC else []
    focus = FOCUS[scope.source].format(name=scope.label)
    spent: list[Spending] = []
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await janitor.summarize(pieces, known, SUMMARY_TOKENS, spent.append, focus=focus)
        except SummaryFailed as failure:
            log.warning("memory kept extractive", extra={"scope": scope.topic, "attempt": attempt, "reason": str(failure)})
    return ()


def _by_hearers(turns: Sequence[Turn]) -> list[_Telling]:
    """What is to be remembered of the turns, per set of hearers from what they heard and nothing else."""
    channels: dict[tuple[str, ...], list[Turn]] = {}
    for turn in turns:
        channels.setdefault(turn.audience, []).append(turn)
    return [_Telling(_condense(told), told, audience) for audience, told in channels.items()]


def _rows(sentences: Sequence[Sentence]) -> list[list[Any]]:
    return [[sentence.text, list(sentence.sources)] for sentence in sentences]


def _condense(turns: Sequence[Turn], limit: int = SUMMARY_TOKENS) -> tuple[Sentence, ...]:
    """Turns in two or three sentences. Where none is worth keeping, the last one stands for them: what was seen counts as summarised."""
    told = [turn for turn in turns if turn.text]
    found = extractive.condense(told, limit=limit)
    return found or tuple(Sentence(line(turn).strip()[:200], (turn.id,)) for turn in told[-1:])


def _pruned(marks: Sequence[Marked], policy: PrunePolicy) -> list[str]:
    tagged = {mark.id for mark in marks if not set(policy.tags).isdisjoint(mark.data["tags"])}
    rest = [mark.id for mark in marks if mark.id not in tagged]
    surplus = rest[: max(0, len(rest) - policy.max_entries)] if policy.max_entries is not None else []
    return [mark.id for mark in marks if mark.id in tagged or mark.id in surplus]


def _entry(mark: Marked, rows: Sequence[Sequence[Any]]) -> MemoryEntry:
    data = mark.data
    when = data.get("when")
    return MemoryEntry(
        id=mark.id, source=MemorySource(mark.topic.split(":")[1]), summary=" ".join(text for text, _ in rows),
        created_at=when or f"turn {mark.turn}", tags=tuple(data["tags"]), location_id=data.get("location_id"),
        npc_ids=tuple(data.get("npc_ids", ())), quest_id=data.get("quest_id"), encounter_id=data.get("encounter_id"),
        since_timestamp=when, since_message_index=data["until"], sources=mark.sources, visits=data["visits"],
        made_by=data.get("made_by", "extractive"),
    )  # fmt: skip


def _headline(kind: str, related: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    ids = [str(related[name]) for name in related if name.endswith("_id")]
    about = [labels.get(id, id.replace("_", " ").replace("-", " ")) for id in ids]
    said = kind.replace("_", " ").capitalize()
    return f"{said}: {', '.join(about)}." if about else f"{said}."


def _titled(label: str, text: str) -> str:
    return f"{label}: {text}" if label else text


def _section(title: str, notes: Sequence[Note]) -> str:
    return "\n".join([f"## {title}", *(f"- {' '.join(note.text.split())}" for note in notes)]) if notes else ""
