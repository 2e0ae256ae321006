"""What a branch reads: its turns, lines, marks and folds, out of memory where they are there, else out of the store.

What was read stays in memory for a while. Whoever works on folds and lines does so in one go, without waiting for anything: where one is
missing, `Missing` is raised, it is loaded, and the work is done again (`supply`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from talekeeper.context.paragraphs import Digests, Line, Sources
from talekeeper.errors import Conflict, StoreCorrupt, UnknownTurn, WrongType, quoted
from talekeeper.folds.nodes import Missing, Node, Path, Ref
from talekeeper.folds.state import State
from talekeeper.live.shared import Shared
from talekeeper.model import AUTHOR_KINDS, Turn, TurnRef
from talekeeper.ports import Entry, Found, Position, Read
from talekeeper.recent import Recent

T = TypeVar("T")

new_turn: Callable[[tuple[Any, ...]], Turn] = partial(tuple.__new__, Turn)


class Reading(ABC):
    """The reading half of a branch in memory; `Stepping` keeps it in step with the log."""

    __slots__ = ("_at_work", "_digests", "_lines", "_marks", "_marks_at_once", "_numbers", "_state", "name", "path", "shared")
    path: Path
    _state: State

    def __init__(self, shared: Shared, name: str) -> None:
        self.shared = shared
        self.name = name
        self._at_work = 0
        self._digests: Digests = Recent()
        self._lines: Recent[tuple[int, int], Line] = Recent()
        self._marks: Recent[tuple[int, int], Entry] = Recent()
        self._marks_at_once = 0
        self._numbers: dict[tuple[str, ...], int] = {}

    @property
    @abstractmethod
    def state(self) -> State:
        """What the log adds up to now."""

    @abstractmethod
    def _trim(self) -> None:
        """Lets go of what is in the store anyway, unless someone is at work."""

    # -- turns and lines -------------------------------------------------------------------------------------------------

    def turn(self, entry: Entry) -> Turn:
        """The entry as a noun, as it was written."""
        shared = self.shared
        branch, seq, kind, speaker, voice, text, channel, location, tokens, _, time, own_id, extra = entry
        name = own_id or shared.names.name(branch, seq)
        audience = shared.record.channels[channel]
        if extra is None:
            return new_turn((name, seq, kind, speaker, voice, text, audience, location, (), None, time, tokens, 0, None, ()))
        target = None if kind == "mark" else extra.get("target")
        if kind == "override" and target is not None:
            target = shared.names.fold(target)
        mentions, when, cites = tuple(extra.get("mentions", ())), extra.get("when"), tuple(extra.get("cites", ()))
        return new_turn((name, seq, kind, speaker, voice, text, audience, location, mentions, when, time, tokens, 0, target, cites))

    def line(self, entry: Entry, turn: Turn, shown: str = "") -> Line:
        """The turn as a line, which stays in memory for a while."""
        counter = self.shared.counter
        fresh = entry.counter == counter.id and turn.revision == 0 and bool(entry.text)
        line = Line(turn, counter, entry.tokens if fresh else None, shown)
        self._lines.put((entry.branch, entry.seq), line)
        return line

    def lines_at(self, places: Sequence[tuple[int, int]]) -> list[Line]:
        """The lines of the turns at these places, as of now. Raises `Missing`."""
        lines = [self._lines.get(place) for place in places]
        if None in lines:
            raise Missing(positions=[Position(*place) for place, line in zip(places, lines, strict=True) if line is None])
        return lines  # type: ignore[return-value]

    def lines_of(self, refs: Sequence[Ref]) -> list[Line]:
        """The lines of these turns, as of now. Raises `Missing`."""
        return self.lines_at([(ref.branch, ref.seq) for ref in refs])

    def line_or_none(self, at: Position) -> Line | None:
        return self._lines.get((at.branch, at.seq))

    async def marks_at(self, places: Sequence[Position]) -> list[Entry]:
        """The marks at these places, in their order."""
        self._marks_at_once = max(self._marks_at_once, len(places))
        known = {place: mark for place in places if (mark := self._marks.get(place)) is not None}
        absent = [place for place in places if place not in known]
        if absent:
            state = self._state
            for entry in (await self.read(positions=absent)).entries:
                known[entry.position] = entry
                if state is self._state:  # else it may have been forgotten since
                    self._marks.put(entry.position, entry)
        return [known[place] for place in places if place in known]

    def channels_of(self, seat: str) -> set[int]:
        """The channels that the seat is in."""
        return {number for number, hearers in self.shared.record.channels.items() if seat in hearers}

    def channel_number(self, hearers: tuple[str, ...]) -> int | None:
        """The channel with exactly these hearers."""
        if len(self._numbers) != len(self.shared.record.channels):
            self._numbers = {known: number for number, known in self.shared.record.channels.items()}
        return self._numbers.get(hearers)

    def turns_of(self, refs: Sequence[Ref]) -> list[Turn]:
        return [line.turn for line in self.lines_of(refs)]

    def sources(self) -> Sources:
        return Sources(self.state, self.path, self.lines_of, self.shared.counter.count, self.shared.names.fold, self._digests)

    async def supply(self, work: Callable[[], T]) -> T:
        """What the work returns, after loading what it misses, which stays until the work is done."""
        self._at_work += 1
        try:
            return await self._supplied(work)
        finally:
            self._at_work -= 1
            self._trim()

    async def _supplied(self, work: Callable[[], T]) -> T:
        last: tuple[Any, ...] = ()  # with the state in which it was missing: after that is made anew, it may be missing again
        while True:
            try:
                return work()
            except Missing as missing:
                if last == (missing.folds, missing.positions, self._state):
                    raise StoreCorrupt(f"the store lacks what its own records name: {last[:2]}; run `talekeeper doctor`") from missing
                last = missing.folds, missing.positions, self._state
                if missing.folds:
                    await self._fetch_folds(missing.folds)
                if missing.positions:
                    await self.fetch_turns(missing.positions)

    async def read(self, **wanted: Any) -> Found:
        return await self.shared.store.read(Read(self.shared.record.id, **wanted))

    async def _fetch_folds(self, keys: Iterable[str]) -> None:
        wanted = [key for key in keys if self.state.shelf.get(key) is None]
        if not wanted:
            return
        state = self._state
        found = await self.read(folds=wanted)
        if state is not self._state:
            return  # read before all was loaded anew, and perhaps forgotten since
        texts: dict[str, list[Any]] = {}
        for text in found.texts:
            texts.setdefault(text.key, []).append(text)
        gathered: dict[str, dict[str, Any]] = {}
        for one in found.gathered:
            gathered.setdefault(one.key, {})[one.name] = one.value
        for record in found.folds:
            waiting = state.shelf.gathered.get(record.key, {})
            state.shelf.put(Node.from_record(record, texts.get(record.key, ()), {**gathered.get(record.key, {}), **waiting}))
        absent = set(wanted) - {record.key for record in found.folds}
        if absent:
            gone = f"folds are gone from the store: {sorted(absent)[:3]}; another process may have forgotten a turn, try again"
            raise Conflict(f"{gone}; if they stay away, run `talekeeper doctor`")

    async def fetch_turns(self, positions: Iterable[Position]) -> list[Turn]:
        """Turns by position, as of now, edits applied. Their lines stay in memory for a while."""
        state = self._state
        turns = await self.read_turns(positions)
        for entry, turn in turns if state is self._state else ():  # else they may have been forgotten since
            if entry.kind not in AUTHOR_KINDS:
                self.line(entry, turn)
        return [turn for _, turn in turns]

    async def read_turns(self, positions: Iterable[Position]) -> list[tuple[Entry, Turn]]:
        """Entries by position with their turns as of now, edits applied."""
        return await self.as_of_now((await self.read(positions=list(positions))).entries)

    async def as_of_now(self, entries: Iterable[Entry]) -> list[tuple[Entry, Turn]]:
        """Entries with their turns, edits applied."""
        turns = [(entry, self.turn(entry)) for entry in entries]
        revisions = self.state.revisions
        edits = {turn.id: revisions[turn.id] for _, turn in turns if turn.id in revisions} if revisions else {}
        if edits:
            rewritten = await self.read(positions=[edit.at for edit in edits.values()])
            texts = {entry.position: entry.text for entry in rewritten.entries}
            turns = [
                (entry, turn._replace(text=texts[edits[turn.id].at], revision=edits[turn.id].times))
                if turn.id in edits and entry.text else (entry, turn)
                for entry, turn in turns
            ]  # fmt: skip
        return turns

    async def find(self, name: str) -> Position | None:
        """Where the turn of that id stands, if it is on this path."""
        at = self.shared.names.position(name)
        if at is None:
            found = (await self.read(ids=[name])).entries
            at = found[0].position if found else None
        return at if at is not None and at.seq >= 1 and self.path.has(*at) else None

    async def located(self, turn: TurnRef) -> tuple[Position, Turn]:
        """Where the turn that is meant stands, and how it reads now; raises `UnknownTurn` where this branch has none, or where it was
        forgotten."""
        if isinstance(turn, Turn):
            turn = turn.id
        if isinstance(turn, bool) or not isinstance(turn, int | str):
            raise WrongType(f"a turn is named by its number or its id, not by {type(turn).__name__}")
        at = self.path.position(turn) if isinstance(turn, int) else await self.find(turn)
        if at is None:
            what = f"{'number' if isinstance(turn, int) else 'id'} {quoted(turn)}"
            known = f"it goes from 1 to {self.state.seq}" if self.state.seq else "nothing has been told on it yet"
            raise UnknownTurn(f"no turn with the {what} on branch {self.name!r}; {known}")
        line = self.line_or_none(at)
        found = [line.turn] if line is not None else await self.fetch_turns([at])
        if not found or found[0].kind in AUTHOR_KINDS:
            raise UnknownTurn(f"entry {at.seq} is no turn that anyone heard")
        if not found[0].text:
            raise UnknownTurn(f"turn {at.seq} was forgotten")
        return at, found[0]
