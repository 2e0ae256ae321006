"""Scoped memories: what happened at a place, with someone, in the world at large. Short entries, made when there is reason to.

An entry is a mark of the log: it is rewound with the story, and only those who heard what it was made from may know it. One is made per
scope and set of hearers, and joined for the one who asks. Each entry says up to which turn it covers its scope: that is the cursor, so
nothing is summarised twice, and nothing is passed over that was not summarised. Entries are extractive at once; with a model, its text
replaces them when it arrives. When a scope has many entries, the oldest are merged into one: the tenth visit still knows the first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from talekeeper import rim
from talekeeper.context.recipe import LOCATION_PART, NPCS_PART, WORLD_PART, Note
from talekeeper.errors import InvalidInput, TalekeeperError, UnknownTurn, WrongType, quoted
from talekeeper.memory.entries import (
    CAUSE_TOKENS,
    MAX_ENTRIES,
    MERGE_AT,
    MERGED,
    PRUNED,
    SCOPED,
    SUMMARY_TOKENS,
    MemoryEntry,
    MemorySource,
    PrunePolicy,
    Scope,
    Told,
    by_hearers,
    condense,
    entry_of,
    event_of,
    headline_of,
    memories_of,
    merged,
    modelled,
    pruned,
    related_of,
    rows_of,
    section,
    titled,
)
from talekeeper.memory.naming import named_in, names_of
from talekeeper.model import Mark, Marked, Seat, Sentence, Turn
from talekeeper.ports import ChatModel
from talekeeper.story.inside import check_story, heard_by_then, made_once
from talekeeper.story.marking import shaped
from talekeeper.story.races import retried
from talekeeper.story.remembering import Remembering
from talekeeper.story.story import Story
from talekeeper.summarize import extractive
from talekeeper.summarize.janitor import Janitor

T = TypeVar("T")
log = logging.getLogger("talekeeper")


class MemoryService:
    """Makes and shows the scoped memories of a story. Without a summarizer everything is extractive, and nothing leaves the machine.

    `labels` are the names of places, and of whatever else memories are about, by id. `shown`: how many entries of a scope are shown one by
    one."""

    def __init__(
        self, story: Remembering, *, summarizer: ChatModel | Janitor | None = None, labels: Mapping[str, str] | None = None,
        shown: int = MAX_ENTRIES, policy: PrunePolicy | None = None,
    ) -> None:  # fmt: skip
        check_story(story)
        if summarizer is not None and not isinstance(summarizer, Janitor) and not callable(summarizer):
            raise WrongType("a summarizer must be an async callable from messages to text")
        if labels is not None and not isinstance(labels, Mapping):
            raise WrongType(f"labels must map ids to names, not {type(labels).__name__}")
        self._story = cast(Story, story)  # or its past, which refuses whatever would write by itself
        self._janitor = summarizer if isinstance(summarizer, Janitor) or summarizer is None else Janitor(summarizer)
        self._labels = dict(labels or {})
        self._shown = rim.whole(shown, "shown", least=1)
        self._policy = _policy(policy)
        self._tasks: set[asyncio.Task[None]] = set()

    # -- making ------------------------------------------------------------------------------------------------------------

    async def on_location_exit(self, location_id: str, *, present: Iterable[str] | None = None) -> list[MemoryEntry]:
        """Call it before someone leaves: one memory of the place per set of hearers, and one of each NPC who is there and was spoken of.

        `present`: who is there, for a game that keeps track of that itself."""
        rim.name(location_id, "location_id")
        known = None if present is None else rim.names(present, "present")
        place = Scope(MemorySource.LOCATION, location_id, self._label(location_id), ("session", f"location:{location_id}"),
                       {"location_id": location_id})  # fmt: skip
        made = await self._write(place, partial(self._of_place, place, location_id))
        here = [seat for seat, place in self._story.presence().items() if place == location_id] if known is None else known
        for npc in (seat for seat in self._story.seats if seat.role == "npc" and seat.id in here):
            tags = ("npc-session", f"location:{location_id}", f"npc:{npc.id}")
            scope = Scope(MemorySource.NPC, npc.id, npc.label, tags, {"location_id": location_id, "npc_ids": [npc.id]})
            made += await self._write(scope, partial(self._of_npc, scope, npc, location_id))
        return made

    async def _of_place(self, scope: Scope, location_id: str) -> list[Told]:
        channels = by_hearers(await self._unseen(scope, location_id))
        return [Told(condense(told), told, audience) for audience, told in channels.items()]

    async def _of_npc(self, scope: Scope, npc: Seat, location_id: str) -> list[Told]:
        """What those who heard the same remember of someone: what was said by and of them, and the turns next to that."""
        names, tellings = names_of(npc), []
        for audience, heard in by_hearers(await self._unseen(scope, location_id)).items():
            about = {
                near
                for at, turn in enumerate(heard) if npc.id in audience and (turn.speaker == npc.id or named_in(turn.text, names))
                for near in range(max(0, at - 1), min(len(heard), at + 2))
            }  # fmt: skip
            if about:
                told = [heard[at] for at in sorted(about)]
                tellings.append(Told(condense(told), told, audience))
        return tellings

    async def on_world_event(
        self, event_kind: str, tags: Sequence[str] | None = None, related: Mapping[str, Any] | None = None, *,
        of: Turn | str | int | None = None,
    ) -> MemoryEntry | None:  # fmt: skip
        """A memory of what moved the story on: `of` is the turn in which it did, by default the newest. Who heard that turn may know it.

        Several events in one turn each get a memory of their own; the same one again gets none. None where the story has no turn yet."""
        rim.name(event_kind, "event_kind")
        ids, tagged = related_of(related), rim.names(tags or (), "tags")
        newest = await self._story.turns(newest=True, limit=1)
        if not newest:
            return None
        cause = newest[0] if of is None else await self._story.turn(of)
        event = event_of(cause, event_kind, ids)
        headline = Sentence(headline_of(event_kind, ids, self._labels), (cause.id,))
        scope = Scope(
            MemorySource.WORLD, "", event_kind.replace("_", " "), (f"world:{event_kind}", *tagged), {**ids, "events": [event]}, headline
        )
        made = await self._write(scope, partial(self._of_event, scope, event, cause))
        return made[0] if made else await self._known_event(scope, event)

    async def _known_event(self, scope: Scope, event: str) -> MemoryEntry | None:
        for mark in await self._memories(None, scope.topic):
            if event in mark.data.get("events", ()):
                return entry_of(mark, await self._sentences(mark))
        return None

    async def _of_event(self, scope: Scope, event: str, cause: Turn) -> list[Told]:
        if await self._known_event(scope, event) is not None:
            return []
        since = await self._cursor(scope.topic, cause.audience)
        told = [turn for turn in await self._told(after=since) if set(cause.audience) <= set(turn.audience)]
        before = [turn for turn in told if turn.id != cause.id]
        headlines = [scope.headline] if scope.headline else []
        sentences = (*headlines, *condense(before, SUMMARY_TOKENS - CAUSE_TOKENS), *condense([cause], CAUSE_TOKENS))
        return [Told(sentences, [cause, *told], cause.audience)]

    async def _unseen(self, scope: Scope, location_id: str) -> list[Turn]:
        """The turns at a place that no memory of the scope covers yet."""
        return await self._told(location=location_id, after=await self._cursor(scope.topic))

    async def _told(self, *, after: int, location: str | None = None) -> list[Turn]:
        told = await self._story.turns(location=location, after=after)  # canon has its own place in a context
        return [turn for turn in told if turn.kind not in ("enter", "leave", "session", "note")]

    async def _cursor(self, topic: str, audience: tuple[str, ...] | None = None) -> int:
        """The last turn that a memory covers, of those hearers or of any, also where the memory itself was pruned."""
        marks = [*await self._memories(None, topic), *shaped(await self._story.marks(None, PRUNED + topic), until=int)]
        return max((mark.data["until"] for mark in marks if audience is None or mark.audience == audience), default=0)

    async def _write(self, scope: Scope, tell: Callable[[], Awaitable[list[Told]]]) -> list[MemoryEntry]:
        """Puts entries into the log, all in one step: the cursor is theirs, and must not pass over what another was to cover."""

        async def write(version: str) -> list[tuple[Marked, Told]]:
            tellings = await tell()
            marks = await self._story.mark_many([telling.as_mark(scope) for telling in tellings], expected_version=version)
            return list(zip(marks, tellings, strict=True))

        made = await self._unmoved(write)
        for mark, telling in made:
            await self._unmoved(partial(self._merge_old, scope.topic, telling.audience))
            if self._janitor is not None:
                self._spawn(self._improve(self._janitor, scope, mark, telling.told))
        return [entry_of(mark, mark.data["sentences"]) for mark, _ in made]

    async def _unmoved(self, work: Callable[[str], Awaitable[T]]) -> T:
        """What the work returns, done anew if anything came between its reading and its writing: two at once remember nothing twice."""
        return await retried(lambda: work(self._story.version))

    async def _merge_old(self, topic: str, audience: tuple[str, ...], version: str) -> None:
        """Merges the oldest entries of a scope into one, so that what is kept stays small and the first visit is not lost."""
        mine = [mark for mark in await self._memories(None, topic) if mark.audience == audience]
        if len(mine) < MERGE_AT:
            return
        old = mine[:MERGED]
        data, sources = merged([(mark, await self._sentences(mark)) for mark in old])
        of, drops = [await self._story.turn(source) for source in sources], tuple(mark.id for mark in old)
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

    async def _improve(self, janitor: Janitor, scope: Scope, mark: Marked, told: Sequence[Turn]) -> None:
        """Puts the model's text in the place of the extractive one, if it comes and is faithful; else the memory stays as it is."""
        sentences = await modelled(janitor, scope, told)
        if scope.headline:
            sentences = (scope.headline, *sentences) if sentences else ()
        if not sentences:
            return

        async def write(version: str) -> None:
            if not await self._stands(mark, told):
                log.info("memory was edited, merged, pruned or rewound meanwhile", extra={"scope": scope.topic})
                return
            data = {**mark.data, "sentences": rows_of(sentences), "made_by": "model"}
            of = tuple([await self._story.turn(turn.id) for turn in told])  # whoever forgets one of these turns forgets the text
            new = Mark(mark.topic, data, keep=2 * MERGE_AT, of=of, heard_by=mark.audience, drops=(mark.id,))
            await self._story.mark_many([new], expected_version=version)

        try:
            await self._unmoved(write)
        except TalekeeperError as exc:
            log.warning("memory kept extractive", extra={"scope": scope.topic, "reason": str(exc)})

    async def _stands(self, mark: Marked, told: Sequence[Turn]) -> bool:
        """Whether a memory is still there as it was made, and the turns it was made from say what they said."""
        if mark.id not in {other.id for other in await self._memories(None, mark.topic)}:
            return False
        try:
            return all([(await self._story.turn(turn.id)).text == turn.text for turn in told])
        except UnknownTurn:
            return False

    async def summarize_location_session(self, location_id: str, turns: Sequence[Turn]) -> str:
        """What happened at the place in these turns, in two or three sentences: the model's if it comes and is faithful, else extractive.
        Nothing is kept; it is for those who heard all of them."""
        rim.name(location_id, "location_id")
        return await self._summarize(Scope(MemorySource.LOCATION, location_id, self._label(location_id), ()), turns)

    async def summarize_npc_interactions(self, npc_id: str, turns: Sequence[Turn]) -> str:
        """The same of how things went with an NPC."""
        known = {seat.id: seat for seat in self._story.seats}
        return await self._summarize(Scope(MemorySource.NPC, npc_id, known[rim.known_seat(npc_id, known)].label, ()), turns)

    async def summarize_world_update(self, event_kind: str, turns: Sequence[Turn]) -> str:
        """The same of what moved the story on."""
        kind = rim.name(event_kind, "event_kind").replace("_", " ")
        return await self._summarize(Scope(MemorySource.WORLD, "", kind, ()), turns)

    async def _summarize(self, scope: Scope, turns: Sequence[Turn]) -> str:
        given: object = turns
        if not isinstance(given, Sequence) or not all(isinstance(turn, Turn) for turn in given):
            raise WrongType("turns must be a list of Turn")
        said = await modelled(self._janitor, scope, turns) if self._janitor is not None and turns else ()
        return " ".join(sentence.text for sentence in said or condense(turns))

    # -- showing -------------------------------------------------------------------------------------------------------------

    async def entries(self, seat: str | None, source: MemorySource | str, name: str = "") -> list[MemoryEntry]:
        """All memories of a scope that the seat may know, oldest first. The seat None is the author, who sees all."""
        if source not in tuple(MemorySource):
            raise InvalidInput(f"a memory is of one of {', '.join(MemorySource)}, not of {quoted(source)}")
        known = await self._known(seat, MemorySource(source), name)
        ends = [mark.data["until"] for mark, _ in known]
        numbers = ends if seat is None else await heard_by_then(self._story, seat, ends)
        return [entry_of(mark, rows, number) for (mark, rows), number in zip(known, numbers, strict=True)]

    async def _memories(self, seat: str | None, topic: str) -> list[Marked]:
        """The memories under a topic that the seat may know."""
        return memories_of(await self._story.marks(seat, topic))

    async def _known(self, seat: str | None, source: MemorySource, name: str) -> list[tuple[Marked, list[Sequence[Any]]]]:
        """The marks of a scope that the seat may know, oldest first, each with what it says now."""
        marks = await self._memories(seat, f"{SCOPED}{source}:{name}")
        return [(mark, rows) for mark in marks if (rows := await self._sentences(mark))]

    async def _sentences(self, mark: Marked) -> list[Sequence[Any]]:
        """What a memory says now: after an edit of one of its turns it is made anew from what they say now."""
        if not mark.stale:
            return list(mark.data["sentences"])
        turns = [await self._story.turn(source) for source in mark.sources]
        return [*mark.data.get("headlines", ()), *rows_of(condense(turns))]

    async def location_memory(self, seat: str, location_id: str | None = None) -> str:
        """What the seat remembers of a place, by default of where it is."""
        return section(LOCATION_PART, await self._location_notes(seat, location_id))

    async def npc_memory(self, seat: str, npc_ids: Iterable[str] | None = None) -> str:
        """What the seat remembers of these NPCs, by default of those who are where it is."""
        return section(NPCS_PART, await self._npc_notes(seat, npc_ids))

    async def world_memory(self, seat: str) -> str:
        """What the seat remembers of how the story moved on."""
        return section(WORLD_PART, await self._world_notes(seat))

    async def notes(self, seat: str, *, location_id: str | None = None, npc_ids: Iterable[str] | None = None) -> dict[str, list[Note]]:
        """The three sections as parts of a context: pass them to `Story.context` as `extras`."""
        parts = {
            LOCATION_PART.name: await self._location_notes(seat, location_id), NPCS_PART.name: await self._npc_notes(seat, npc_ids),
            WORLD_PART.name: await self._world_notes(seat),
        }  # fmt: skip
        return {name: notes for name, notes in parts.items() if notes}

    async def _location_notes(self, seat: str, location_id: str | None) -> list[Note]:
        place = await self._place_of(seat) if location_id is None else rim.name(location_id, "location_id")
        if place is None:
            return []
        return await self._newest(seat, MemorySource.LOCATION, place, self._label(place))

    async def _npc_notes(self, seat: str, npc_ids: Iterable[str] | None) -> list[Note]:
        known = {other.id: other for other in self._story.seats}
        if npc_ids is None:
            presence, here = self._story.presence(), await self._place_of(seat)
            wanted = [other for other in known.values() if other.role == "npc" and here is not None and presence.get(other.id) == here]
        else:
            wanted = [known[rim.known_seat(name, known)] for name in rim.several(npc_ids, "npc_ids")]
        return [note for npc in wanted for note in await self._newest(seat, MemorySource.NPC, npc.id, npc.label)]

    async def _place_of(self, seat: str) -> str | None:
        """Where the seat is; for one who is nowhere, such as a DM, where the story is."""
        place = self._story.presence().get(rim.string(seat, "a seat's id"))
        if place is None:
            newest = await self._story.turns(seat=seat, newest=True, limit=1)
            place = newest[0].location if newest else None
        return place

    async def _world_notes(self, seat: str) -> list[Note]:
        return await self._newest(seat, MemorySource.WORLD, "", "")

    async def _newest(self, seat: str, source: MemorySource, name: str, label: str) -> list[Note]:
        """What the seat knows of a scope, as notes. None, which asks for all as the author, is no seat of a prompt."""
        rim.string(seat, "a seat's id")
        known = await self._known(seat, source, name)
        return made_once(self._story, ("scope", seat, source, name, label, self._shown), known, lambda: self._as_notes(known, label))

    def _as_notes(self, known: Sequence[tuple[Marked, Sequence[Sequence[Any]]]], label: str) -> list[Note]:
        """The newest entries one by one, behind one line for all that came before."""
        entries = [entry_of(mark, rows) for mark, rows in known]
        old, new = entries[: -self._shown], entries[-self._shown :]
        notes = []
        if old:
            sentences = [Sentence(entry.summary, entry.sources) for entry in old]
            kept = extractive.merge(sentences, limit=SUMMARY_TOKENS)
            sources = tuple(dict.fromkeys(source for sentence in kept for source in sentence.sources))
            notes.append(Note(titled(label, f"(earlier) {' '.join(sentence.text for sentence in kept)}"), sources, rank=0.5))
        notes += [Note(titled(label, entry.line), entry.sources, rank=1.0 + place) for place, entry in enumerate(new)]
        return notes

    def _label(self, location_id: str) -> str:
        return self._labels.get(location_id, location_id)

    # -- pruning -------------------------------------------------------------------------------------------------------------

    async def prune(self, policy: PrunePolicy | None = None) -> int:
        """Removes memories by the policy given here or at the beginning; without one, nothing. Returns how many. A rewind undoes it."""
        policy = _policy(policy) or self._policy
        if policy is None:
            return 0
        count = 0
        for topic in await self._story.topics(None, prefix=SCOPED):
            scopes: dict[tuple[str, ...], list[Marked]] = {}
            for mark in await self._memories(None, topic):
                scopes.setdefault(mark.audience, []).append(mark)
            for audience, marks in scopes.items():
                drops = pruned(marks, policy)
                if drops:
                    until = max(mark.data["until"] for mark in marks)
                    await self._story.mark(PRUNED + topic, {"until": until}, heard_by=audience, keep=1, drops=drops)
                    count += len(drops)
        return count


def _policy(policy: object) -> PrunePolicy | None:
    if policy is not None and not isinstance(policy, PrunePolicy):
        raise WrongType(f"a policy must be a PrunePolicy, not {type(policy).__name__}")
    return policy
