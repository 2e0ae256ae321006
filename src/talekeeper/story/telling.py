"""Telling: how turns get into the log. The writing half of a story.

A turn is checked at the rim, gets its exact hearers and its token count, and is durable when the call returns. When another process was
first, the turn is made anew on top of what that one wrote, unless the caller asked to be told (`expected_version`).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from talekeeper import rim
from talekeeper.context.rendering import defuse, lead, render
from talekeeper.errors import Conflict, DuplicateId, InvalidInput, UnknownSeat, WrongType, quoted
from talekeeper.live.hot import FAR_BEHIND, Hot
from talekeeper.live.names import looks_generated
from talekeeper.live.reading import new_turn
from talekeeper.live.stepping import AT_ONCE, Manner
from talekeeper.model import AUTHOR_KINDS, SPOKEN_KINDS, Mark, SpokenKind, Turn
from talekeeper.ports import ENTRIES_ONLY, Commit, Entry, new_entry
from talekeeper.recent import LEAST
from talekeeper.story.marking import Source, as_extra, marks_named, may_know, sources_of
from talekeeper.story.races import TRIES, retried

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper
    from talekeeper.story.residents import Residents

Made: TypeAlias = "tuple[list[Entry], dict[int, tuple[str, ...]]]"
"""Entries to write, and the channels that are new with them."""

ALWAYS_FEW = LEAST - 1
"""With fewer unsaved entries no checkpoint can be due, however many stories share the memory: the keeper need not be asked."""
MANNERS = 1024
"""So many ways of saying something are remembered: scenes may have places of their own, and nobody may ever come or go."""
_new: Callable[[type[Commit], tuple[Any, ...]], Commit] = tuple.__new__


async def _breathe(at: int) -> None:
    """Lets others have their turn now and then, where there is very much to do."""
    if at % AT_ONCE == AT_ONCE - 1:
        await asyncio.sleep(0)


class Draft(NamedTuple):
    """A turn to be appended. `heard_by=None`: those who are present. `time=None`: now, in seconds as the keeper's clock counts them."""

    speaker: str
    text: str
    heard_by: Sequence[str] | None = None
    location: str | None = None
    kind: SpokenKind = "said"
    voice: str | None = None
    mentions: Sequence[str] = ()
    when: str | None = None
    id: str | None = None
    cites: Sequence[str] = ()
    marks: Sequence[Mark] = ()
    time: float | None = None


class Telling:
    """Appends to one branch of a story."""

    def __init__(self, keeper: Keeper, residents: Residents, hot: Hot) -> None:
        self._keeper = keeper
        self._residents = residents
        self._hot = hot

    @property
    def version(self) -> str:
        """Changes with every entry and every rewind. Pass it as `expected_version` to append only to what you saw."""
        return self._hot.version

    async def append(
        self, speaker: str, text: str, *, heard_by: Sequence[str] | None = None, location: str | None = None, kind: SpokenKind = "said",
        voice: str | None = None, mentions: Sequence[str] = (), when: str | None = None, id: str | None = None,
        cites: Sequence[str] = (), marks: Sequence[Mark] = (), expected_version: str | None = None,
    ) -> Turn:  # fmt: skip
        """Appends a turn and returns it once it is durable.

        `heard_by=None`: those present at `location` (by default where the speaker is); the speaker and every DM hear it in any case.
        `voice`: the name to show, where the speaker lends its voice to someone else. `when`: story time, shown with the turn.
        `id`: your own id; appending the same again returns the turn that is there. `marks`: what is to be noted about it, in the same step.
        `expected_version`: raise `Conflict` if anything came between."""
        hot = self._hot
        if voice is None and when is None and id is None and expected_version is None and not (mentions or cites or marks):
            rim.text(text)  # the common case in the fewest steps; whatever is special about it goes the long way
            shared, residents, lock = hot.shared, self._residents, hot.lock
            if not lock.free():
                await lock.turn()
            try:
                unsaved = hot.head - hot.saved_at
                if unsaved >= FAR_BEHIND * shared.allowance.lines:
                    await residents.hold_back(hot)
                manner = self._manner(speaker, kind, location, heard_by)
                if manner is not None and hot.in_step:
                    channel, audience, place, called, begins = manner
                    shown = f"{begins}{defuse(text)}\n"
                    counter, record, branch, seq = shared.counter, shared.record, hot.path.branch, hot.head + 1
                    tokens, now = counter.count(shown), self._keeper.clock()
                    entry = new_entry((branch, seq, kind, speaker, called, text, channel, place, tokens, counter.id, now, None, None))
                    try:
                        await shared.store.write(_new(Commit, (record.id, record.rev, (entry,)) + ENTRIES_ONLY))  # noqa: RUF005 - quicker
                    except Conflict:
                        await hot.refresh()
                    else:
                        name = shared.names.name(branch, seq)
                        turn = new_turn((name, seq, kind, speaker, called, text, audience, place, (), None, now, tokens, 0, None, ()))
                        hot.told(entry, turn, shown)
                        if unsaved >= ALWAYS_FEW or residents.has_model:
                            residents.appended(hot)
                        return turn
            finally:
                lock.release()
        draft = Draft(speaker, text, heard_by, location, kind, voice, mentions, when, id, cites, marks)
        return (await self.append_many([draft], expected_version=expected_version))[0]

    async def append_many(self, drafts: Sequence[Draft], *, expected_version: str | None = None) -> list[Turn]:
        """Appends several turns in one atomic step."""
        hot = self._hot
        rim.version(expected_version)
        given: object = drafts
        if isinstance(given, str | Draft) or not isinstance(given, Iterable):
            raise WrongType(f"drafts must be a list of Draft, not {type(given).__name__}")
        drafts = list(drafts)
        for at, draft in enumerate(drafts):
            if not isinstance(draft, Draft):
                raise WrongType(f"each draft must be a Draft, not {type(draft).__name__}")
            try:
                drafts[at] = self._check(draft)
            except UnknownSeat:
                await hot.refresh()  # they may have joined meanwhile
                drafts[at] = self._check(draft)
            await _breathe(at)
        if len(drafts) > AT_ONCE:
            await asyncio.to_thread(hot.shared.counter.count, "")  # the first time it may have tables to load
        known = partial(self._known_ids, drafts) if any(draft.id is not None for draft in drafts) else None
        async with hot.lock:
            if any(draft.cites or any(mark.of or mark.drops or mark.heard_by for mark in draft.marks) for draft in drafts):
                await hot.refresh()  # another process may have told what they are of, or seated who may know them
            return _turns(await self._write(lambda: self._entries(drafts), expected_version, known))

    def _check(self, draft: Draft) -> Draft:
        """The draft as it may be written: what came as an iterator can be looked at more than once now."""
        rim.text(draft.text)
        seats = self._hot.seats
        kind: object = draft.kind
        if not isinstance(kind, str) or kind not in SPOKEN_KINDS:
            raise InvalidInput(f"a turn's kind must be one of {', '.join(sorted(SPOKEN_KINDS))}, not {quoted(draft.kind)}")
        if draft.speaker != "" or draft.kind not in ("note", "event"):
            rim.known_seat(draft.speaker, seats)
        if draft.heard_by is not None:
            if type(draft.heard_by) not in (tuple, list):
                draft = draft._replace(heard_by=rim.several(draft.heard_by, "heard_by"))
            for seat in draft.heard_by or ():
                rim.known_seat(seat, seats)
        elif draft.kind == "whisper":
            raise InvalidInput("a whisper needs heard_by: who hears it?")
        for value, what in ((draft.location, "location"), (draft.voice, "voice"), (draft.when, "when")):
            if value is not None:
                rim.name(value, what)
        if draft.time is not None:
            rim.time(draft.time, "time")
        if draft.mentions or draft.cites or draft.marks != ():
            draft = draft._replace(
                mentions=rim.names(draft.mentions, "mentions"), cites=rim.names(draft.cites, "cites"), marks=rim.marks(draft.marks)
            )
        if draft.id is not None:
            _check_id(draft.id)
        return draft

    def _expect(self, version: str | None) -> None:
        """Raises `Conflict` where the story is not at the version that the caller saw."""
        if version is not None and version != self.version:
            raise Conflict(f"the story is at version {self.version}, not {quoted(version)}: read again, then retry")

    async def _told_before(self, id: str | None, text: str | None, kind: str = "", speaker: str = "") -> Turn | None:
        """The turn that was told before under an id of the caller's, if it was; it must be the same as far as the caller says."""
        if id is None:
            return None
        _check_id(id)
        found = (await self._hot.read(ids=[id])).entries
        return await self._same(found[0], text, kind, speaker) if found else None

    async def _same(self, entry: Entry, text: str | None, kind: str, speaker: str) -> Turn:
        """The turn under an id of the caller's; raises `DuplicateId` where it is another than the one that the caller means."""
        hot = self._hot
        if "forgotten" in (entry.extra or ()):
            raise DuplicateId(f"the id {entry.id!r} belongs to a turn that was forgotten: choose another")
        if (kind and (entry.kind, entry.speaker) != (kind, speaker)) or entry.text not in (text or entry.text, ""):
            raise DuplicateId(f"the id {entry.id!r} belongs to a different turn: choose another")
        if not hot.path.has(entry.branch, entry.seq):
            raise DuplicateId(f"the id {entry.id!r} belongs to a turn that is not on this branch: it was undone, or told elsewhere")
        return (await hot.fetch_turns([entry.position]))[0]

    async def _known_ids(self, drafts: Sequence[Draft]) -> list[Turn]:
        """The turns that were appended before under the drafts' own ids: all of them, or none."""
        wanted = {draft.id: draft for draft in drafts if draft.id is not None}
        if len(wanted) < sum(draft.id is not None for draft in drafts):
            raise DuplicateId("two of the turns have the same id")
        known = {}
        for entry in (await self._hot.read(ids=list(wanted))).entries:
            assert entry.id is not None
            draft = wanted[entry.id]
            known[entry.id] = turn = await self._same(entry, draft.text, draft.kind, draft.speaker)
            other = _difference(draft, turn, self._hot.state.dms)
            if other and entry.text:
                raise DuplicateId(f"the id {entry.id!r} belongs to a different turn, with another {other}")
        if known and len(known) < len(drafts):
            raise DuplicateId("some of these turns were appended before, some were not: append the new ones alone")
        return [known[draft.id] for draft in drafts if draft.id is not None and known]

    async def _write(
        self, make: Callable[[], Made | Awaitable[Made]], expected_version: str | None = None,
        told_before: Callable[[], Awaitable[list[Turn]]] | None = None,
    ) -> list[Turn]:  # fmt: skip
        """Writes what `make` says, if it is anything, and returns the turns; those that were told before, where there are any. The lock is
        held.

        After someone else was first, both are asked again: whatever they build on, they have to look for it themselves each time."""
        hot = self._hot
        shared = hot.shared
        if hot.lag >= 1:
            await self._residents.hold_back(hot)
        if expected_version is not None or told_before is not None:
            await hot.refresh()

        async def write() -> tuple[list[Turn], Made, int]:
            if told_before is not None and (known := await told_before()):
                return known, ([], {}), 0
            if not hot.in_step:
                await hot.refresh()
            self._expect(expected_version)
            record, version = shared.record, self.version
            made = make()
            entries, channels = made = made if isinstance(made, tuple) else await made
            self._expect(version)  # something may have been taken in meanwhile
            if not entries:
                return [], made, 0
            commit = Commit(record.id, record.rev, entries, channels=channels, touch=bool(channels))
            return [], made, await shared.store.write(commit)

        known, (entries, channels), rev = await retried(write, refresh=hot.refresh, tries=TRIES if expected_version is None else 1)
        if not entries:
            return known
        if channels:
            shared.record = dataclasses.replace(shared.record, rev=rev, channels={**shared.record.channels, **channels})
        turns = [hot.told(entry, hot.turn(entry)) if entry.kind in SPOKEN_KINDS else await hot.take(entry) for entry in entries]
        if len(entries) > AT_ONCE:
            await hot.take_in()
        self._residents.appended(hot)
        return turns

    async def _entries(self, drafts: Sequence[Draft]) -> Made:
        hot = self._hot
        drops = await marks_named(hot, (name for draft in drafts for mark in draft.marks for name in mark.drops))
        channels: dict[int, tuple[str, ...]] = {}
        entries: list[Entry] = []
        named: set[str | None] = set()
        for at, draft in enumerate(drafts):
            await _breathe(at)
            for cited in draft.cites:
                if cited not in named:
                    await hot.located(cited)
            named.add(draft.id)
            entry = self._entry(draft, hot.head + len(entries) + 1, channels)
            entries.append(entry)
            if draft.marks:
                audience = channels.get(entry.channel) or hot.shared.record.channels[entry.channel]
                told = Source(draft.id or hot.shared.names.name(entry.branch, entry.seq), "", entry.seq, audience)
                for mark in draft.marks:
                    sources = [*sources_of(hot, [(await hot.located(turn))[1] for turn in mark.of]), told]
                    entries.append(self._mark_entry(mark, sources, drops, channels, len(entries) + 1))
        return entries, channels

    def _mark_entry(
        self, mark: Mark, sources: Sequence[Source], drops: Mapping[str, Entry], channels: dict[int, tuple[str, ...]], offset: int
    ) -> Entry:
        audience = may_know(self._hot, mark, sources)
        extra = as_extra(self._hot, mark, audience, sources, drops)
        return self._event("mark", "", rim.mark_text(mark), None, self._channel(audience, channels), offset, extra)

    def _entry(self, draft: Draft, seq: int, channels: dict[int, tuple[str, ...]]) -> Entry:
        manner = self._manner(draft.speaker, draft.kind, draft.location, draft.heard_by)
        if manner is None:
            manner = self._new_manner(draft, channels)
            if not channels:
                if len(self._hot.manners) >= MANNERS:
                    self._hot.manners.clear()
                heard_by = draft.heard_by if draft.heard_by is None else tuple(draft.heard_by)
                self._hot.manners[draft.speaker, draft.kind, draft.location, heard_by] = manner
        extra = None
        if draft.mentions or draft.when or draft.cites:
            extra = {"mentions": list(draft.mentions), "when": draft.when, "cites": list(draft.cites)}
            extra = {name: value for name, value in extra.items() if value}
        if draft.voice:
            manner = manner._replace(voice=draft.voice)
        counter = self._hot.shared.counter
        tokens = counter.count(render(draft.kind, manner.voice, draft.text, draft.when))
        now = self._keeper.clock() if draft.time is None else float(draft.time)
        return Entry(
            self._hot.path.branch, seq, draft.kind, draft.speaker, manner.voice, draft.text, manner.channel, manner.location, tokens,
            counter.id, now, draft.id, extra,
        )  # fmt: skip

    def _manner(self, speaker: str, kind: str, location: str | None, heard_by: Sequence[str] | None) -> Manner | None:
        """How something of this kind was said, if it was since anyone last moved; then it needs no further check."""
        if type(heard_by) is list:
            heard_by = tuple(heard_by)
        try:
            return self._hot.manners.get((speaker, kind, location, heard_by))
        except TypeError:
            return None

    def _new_manner(self, draft: Draft, channels: dict[int, tuple[str, ...]]) -> Manner:
        location = draft.location
        if location is None and draft.kind != "note":
            location = self._hot.presence.get(draft.speaker)
        voice = self._hot.seats[draft.speaker].label if draft.speaker else ""
        audience = self._audience(draft, location)
        return Manner(self._channel(audience, channels), audience, location, voice, lead(draft.kind, voice))

    def _audience(self, draft: Draft, location: str | None) -> tuple[str, ...]:
        state = self._hot.state
        heard_by = draft.heard_by
        if heard_by is None and draft.kind == "thought":
            heard_by = (draft.speaker,)
        elif heard_by is None and draft.kind == "note":
            heard_by = tuple(state.seats)
        return state.audience(draft.speaker, heard_by, location)

    def _channel(self, hearers: tuple[str, ...], channels: dict[int, tuple[str, ...]]) -> int:
        """The number of the channel with exactly these hearers, a new one where there is none."""
        hot = self._hot
        number = hot.channel_number(hearers)
        if number is not None:
            return number
        for number, known in channels.items():
            if known == hearers:
                return number
        number = max((*hot.shared.record.channels, *channels), default=0) + 1
        channels[number] = hearers
        return number

    # -- who is where ----------------------------------------------------------------------------------------------------

    async def enter(self, seat: str, location: str, *, text: str | None = None, id: str | None = None) -> Turn | None:
        """Someone comes to a place; those who are there hear of it. Who comes from elsewhere is heard to leave first. Where they are
        there already, only a `text` of yours is told; None without one."""
        await self._hot.seated(seat)
        rim.name(location, "location")
        return await self._move(seat, location, text, id)

    async def leave(self, seat: str, *, text: str | None = None, id: str | None = None) -> Turn | None:
        """Someone goes, and hears nothing more until they enter again. None, and nothing is told, where they are gone already."""
        await self._hot.seated(seat)
        return await self._move(seat, None, text, id)

    async def _move(self, seat: str, location: str | None, text: str | None, id: str | None) -> Turn | None:
        hot = self._hot
        name = hot.state.seats[seat].label
        shown = rim.text(text) if text is not None else None

        def make() -> Made:
            state, channels, entries = hot.state, dict[int, tuple[str, ...]](), list[Entry]()
            here = state.presence.get(seat)
            if seat in state.presence and here == location and not (location and shown):
                return [], {}
            if (here is not None and here != location) or location is None:
                heard = state.audience(seat, None, here)
                words = shown if location is None and shown else f"{name} leaves {here}." if here else f"{name} leaves."
                entries.append(self._event("leave", seat, words, here, self._channel(heard, channels), 1))
            if location is not None:
                placed = {**state.presence, seat: location}
                there = [other for other in state.seats if placed.get(other) == location]
                words = shown or f"{name} comes to {location}."
                number = self._channel(state.audience(seat, there, location), channels)
                entries.append(self._event("enter", seat, words, location, number, len(entries) + 1))
            return [*entries[:-1], entries[-1]._replace(id=id)], channels

        async with hot.lock:
            await hot.refresh()  # someone else may have moved them
            told = await self._once(id, "leave" if location is None else "enter", seat, make, shown, location)
        return told[-1] if told else None

    async def _once(
        self, id: str | None, kind: str, speaker: str, make: Callable[[], Made], text: str | None, location: str | None = None
    ) -> list[Turn]:
        """Writes what `make` says and returns the turns; the one that is there, where it was told before. The lock is held."""

        async def told_before() -> list[Turn]:
            told = await self._told_before(id, text, kind, speaker)
            if told is not None and location not in (None, told.location):
                raise DuplicateId(f"the id {id!r} belongs to a different turn, with another location")
            return [] if told is None else [told]

        return await self._write(make, told_before=None if id is None else told_before)

    async def begin_session(self, title: str | None = None, *, id: str | None = None) -> Turn:
        """A new session of the same story: everyone hears of it, and memory goes on."""
        words = rim.text(title, "title") if title is not None else "A new session begins."

        def make() -> Made:
            channels: dict[int, tuple[str, ...]] = {}
            everyone = self._channel(tuple(sorted(self._hot.state.seats)), channels)
            return [self._event("session", "", words, None, everyone, 1)._replace(id=id)], channels

        async with self._hot.lock:
            return (await self._once(id, "session", "", make, title))[-1]

    def _event(
        self, kind: str, speaker: str, text: str, location: str | None, channel: int, offset: int, extra: Mapping[str, Any] | None = None
    ) -> Entry:
        hot = self._hot
        voice = hot.state.seats[speaker].label if speaker else ""
        counter = hot.shared.counter
        tokens = 0 if kind in AUTHOR_KINDS else counter.count(render(kind, voice, text))
        now = self._keeper.clock()
        seq = hot.head + offset
        return Entry(hot.path.branch, seq, kind, speaker, voice, text, channel, location, tokens, counter.id, now, None, extra)

    async def note(self, text: str, *, heard_by: Sequence[str] | None = None, mentions: Sequence[str] = (), id: str | None = None) -> Turn:
        """Adds to the canon: a character sheet, lore, an author's note. Everyone knows it unless `heard_by` says who."""
        return await self.append("", text, heard_by=heard_by, kind="note", mentions=mentions, id=id)


def _difference(draft: Draft, turn: Turn, dms: Iterable[str]) -> str:
    """What of the turn is another than the draft says; what that leaves open may have been anything. A DM may have joined since."""
    if draft.heard_by is not None and {*draft.heard_by, draft.speaker}.difference(dms, ("",)) != set(turn.audience).difference(dms):
        return "audience"
    for name in ("location", "voice", "when"):
        if getattr(draft, name) not in (None, getattr(turn, name)):
            return name
    given = (name for name in ("mentions", "cites") if getattr(draft, name))
    return next((name for name in given if set(getattr(draft, name)) != set(getattr(turn, name))), "")


def _turns(written: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in written if turn.kind != "mark"]


def _check_id(id: str) -> None:
    rim.name(id, "id")
    if looks_generated(id):
        raise InvalidInput(f"the id {id!r} has the form of a generated one; choose another")
