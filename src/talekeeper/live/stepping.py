"""Keeping in step: the state of a branch moves over the log, entry by entry, whoever wrote them.

What we tell ourselves is durable before it is taken in: it waits in a backlog until someone looks. What another process wrote is asked for
before a context, and taken in like anything else. Where the branch went back, or something was forgotten, all of it is loaded anew: the
newest snapshot on the path, then a replay of the entries behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

from talekeeper import rim
from talekeeper.context.plan import Plan
from talekeeper.errors import Conflict, StoreCorrupt, TalekeeperError, UnknownSeat
from talekeeper.folds import snapshots
from talekeeper.folds.nodes import Node, extract
from talekeeper.folds.shelf import Shelf
from talekeeper.folds.state import SCENE_KINDS, State
from talekeeper.live.index import Index
from talekeeper.live.reading import Reading
from talekeeper.live.shared import Shared, path_to, seats_of
from talekeeper.live.turnstile import Turnstile
from talekeeper.model import AUTHOR_KINDS, Seat, Turn
from talekeeper.ports import Branch, Entry, Position, Span, TextRecord, new_entry
from talekeeper.recall.terms import index_terms
from talekeeper.recent import LEAST, Recent

AT_ONCE = 128
"""Where there may be very many entries, so many are handled before other tasks get their turn."""
FEW = 8
"""After so many new turns, what need not stay in memory is let go of."""

T = TypeVar("T")

_WIDTH = len(Entry._fields)


class Manner(NamedTuple):
    """What follows from how something is said, as long as no one moves: who hears it, where it is said, under what name, and how its line
    begins."""

    channel: int
    audience: tuple[str, ...]
    location: str | None
    voice: str
    lead: str


class Stepping(Reading):
    """A branch in memory that is in step with the log; `Hot` stores what it derives."""

    # There may be a thousand of them, and Python gives an object with more than thirty fields and no slots a large table of its own.
    __slots__ = (
        "_backlog", "_extracted_at", "_generation", "_grown", "_known", "_made", "_newest", "_tail_terms", "_texts_version", "gathered",
        "head", "index", "lock", "manners", "marked", "plans", "put_off_at", "ready", "saved_at", "saving", "tail",
    )  # fmt: skip

    def __init__(self, shared: Shared, name: str) -> None:
        super().__init__(shared, name)
        self.lock = Turnstile()
        self.saving = asyncio.Lock()
        self.ready = False
        self._newest: tuple[Turn | None, str] = None, ""  # the last turn of the backlog, and how it reads as a line if that is known
        self._backlog: list[Any] = []  # the fields of entries, one behind the other: no object of their own for Python's garbage collector
        self.plans: dict[tuple[Any, ...], Plan] = {}
        self.tail: list[tuple[Entry, Turn]] = []
        self._tail_terms: list[dict[str, None]] = []
        self._grown = 0
        self.index = Index()
        self.marked: Recent[Position, dict[str | None, Any]] = Recent()  # marks as seats may know them, until a turn is edited
        self.gathered: dict[tuple[str, str], list[tuple[tuple[str, ...], list[Any]]]] = {}  # what roots add up to: see `marking`
        self._known: dict[Any, Any] = {}  # what was read off the story as it stands: gone with the next entry
        self._made: Recent[Any, tuple[Any, Any]] = Recent()  # what was made, behind what it was made of
        self._texts_version = -1
        self._generation = -1
        self.head = self.saved_at = self.put_off_at = self._extracted_at = 0
        self.manners: dict[tuple[Any, ...], Manner] = {}  # by speaker, kind, location and heard_by, until someone moves

    @property
    def state(self) -> State:
        """What the log adds up to now. Turns of our own are taken in when someone looks, so that appending need not wait for it."""
        if self._backlog:
            self._take_in()
        return self._state

    def _take_in(self) -> None:
        backlog, self._backlog = self._backlog, []
        self._take_all(backlog)
        self._grown += len(backlog) // _WIDTH
        if self._grown >= FEW:
            self._trim()

    def _take_all(self, backlog: Sequence[Any]) -> None:
        newest, shown = self._newest
        for at in range(0, len(backlog), _WIDTH):
            entry = new_entry(tuple(backlog[at : at + _WIDTH]))
            if newest is not None and entry.seq == newest.seq:
                self._newest = None, ""  # it may be forgotten while nobody tells anything
                self._take(entry, newest, shown)
            else:
                self._take(entry, self.turn(entry))

    async def take_in(self) -> None:
        """Takes in turns of our own, a few at a time, so that others get their turn."""
        while self._backlog:
            backlog, self._backlog = self._backlog, []
            self._take_all(backlog[: AT_ONCE * _WIDTH])
            self._backlog = backlog[AT_ONCE * _WIDTH :]
            await asyncio.sleep(0)
        self._trim()

    async def once(self, what: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` reads off the story as it stands, read once until that changes."""
        if self._backlog:
            self._take_in()
        known = self._known
        if what not in known:
            known[what] = await make()
        return known[what]  # type: ignore[no-any-return]

    def made(self, what: Hashable, of: object, make: Callable[[], T]) -> T:
        """What `make` makes of some values, made once until they are others."""
        known = self._made.get(what)
        if known is None or known[0] != of:
            known = of, make()
            self._made.put(what, known)
        return known[1]

    @property
    def version(self) -> str:
        """Where the branch is: another with every entry and every rewind."""
        return f"{self.path.branch}.{self.head}"

    @property
    def seats(self) -> Mapping[str, Seat]:
        return self._state.seats

    async def seated(self, seat: object) -> str:
        """The id of a seat of this story, also of one that has joined meanwhile by another branch or another process."""
        try:
            return rim.known_seat(seat, self.seats)
        except UnknownSeat:
            await self.refresh()
            return rim.known_seat(seat, self.seats)

    @property
    def presence(self) -> Mapping[str, str | None]:
        return self._state.presence

    # -- keeping in step -------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Takes in whatever this or another process has written since."""
        shared = self.shared
        if self.ready:
            head = await shared.store.head(shared.record.id, self.path.branch)
            fresh = self._texts_version == shared.texts_version and self._generation == shared.generation
            if fresh and head.rev == shared.record.rev and head.seq == self.head:
                return
        async with self.saving:
            await self._catch_up()
            while not self.in_step:  # another branch has learnt of more meanwhile
                await self._catch_up()

    @property
    def in_step(self) -> bool:
        """Whether this branch has taken in what the process knows of the story. Who writes must have: a name may stand for another line by
        now, and the record that all branches share would vouch for a state that this one has not seen."""
        shared = self.shared
        return self.ready and self._texts_version == shared.texts_version and self._generation == shared.generation

    async def _catch_up(self) -> None:
        shared = self.shared
        while True:
            if all(known.name != self.name for known in shared.record.branches.values()):
                await shared.reload()  # another process may have made it anew
            record, branch = shared.record, shared.branch(self.name)
            head = await shared.store.head(record.id, branch.id)
            if head.rev != shared.record.rev:
                await shared.reload()
            elif record is shared.record:
                break
        known = self.ready and self._generation == shared.generation
        if not known or self.path.branch != branch.id or self.path.base != branch.at:
            anew = type(self)(shared, self.name)  # aside: whoever is at work with this one shall not see half of another
            await anew._load(branch, head.seq)
            await anew._replay(head.seq)
            self._become(anew)
        else:
            if self._texts_version != shared.texts_version:
                await self._take_in_record()
            await self._replay(head.seq)

    async def _replay(self, head: int) -> None:
        """Takes in the entries up to the head."""
        behind = self.state.seq < head
        while self.state.seq < head:
            last = min(head, self.state.seq + 1024)
            self.path.head = max(self.path.head, last)
            found = await self.read(spans=[Span(*piece) for piece in self.path.spans(self.state.seq + 1, last)])
            for at, entry in enumerate(found.entries, 1):
                await self.take(entry)
                if at % AT_ONCE == 0:
                    await asyncio.sleep(0)
            if self.state.seq < last:
                raise Conflict("the log moved while it was read; try again")
        if behind:
            await self._fetch_texts(self.state.shelf.unsaved)  # replayed folds may have been through a model before

    def _become(self, other: Self) -> None:
        """Takes over all that the other knows of the story. Those who wait for this one, or are at work with it, stay with it."""
        for slot in _KNOWLEDGE:
            setattr(self, slot, getattr(other, slot))

    @property
    def loaded(self) -> object:
        """Another one whenever all was loaded anew: what was begun before that holds no more."""
        return self._state

    def let_go(self) -> None:
        """Keeps nothing in memory: for a branch that nobody can load any more, because its name is gone."""
        if self.ready:
            anew = type(self)(self.shared, self.name)
            anew.path, anew._state = self.path, self._blank_state()
            self._become(anew)

    def _blank_state(self) -> State:
        record = self.shared.record
        config = record.config
        return State(seats_of(config), config["since"], record.channels, Shelf(), placed=bool(config.get("placed")))

    async def _take_in_record(self) -> None:
        """Seats, channels and model texts may have come from elsewhere."""
        record, state, version = self.shared.record, self.state, self.shared.texts_version
        state.seat_up(seats_of(record.config), record.config["since"], record.channels)
        self.manners.clear()
        self.marked.clear()
        self._known = {}
        roots = {
            node.key: node
            for view in state.views.values() for tree in view.trees for node in tree.sketches() if isinstance(node, Node)
        }  # fmt: skip
        await self._fetch_texts({**roots, **state.shelf.unsaved})
        state.shelf.drop_saved()
        for node in roots.values():
            state.shelf.put(node)
        self.plans.clear()
        self._texts_version = version

    async def _fetch_texts(self, nodes: Mapping[str, Node]) -> None:
        if nodes:
            found = await self.read(folds=list(nodes))
            for node in nodes.values():
                node.texts = [text for text in found.texts if text.key == node.key]

    def add_text(self, text: TextRecord, rev: int) -> None:
        """A model's text was stored for a fold of this branch: the first of the branch, or else it was dropped."""
        in_step, node = self.in_step, self.state.shelf.get(text.key)  # as it is now: all may have been loaded anew meanwhile
        if node is not None and all(known.branch != text.branch for known in node.texts):
            node.texts.append(text)
        self.shared.record = replace(self.shared.record, rev=rev)
        self.shared.texts_version += 1
        if in_step:
            self._texts_version = self.shared.texts_version
        self._known = {}
        self.plans.clear()

    async def _load(self, branch: Branch, head: int) -> None:
        """The state from the newest snapshot on the path; the entries behind it are yet to be replayed."""
        version, generation = self.shared.texts_version, self.shared.generation
        self.path = path_to(self.shared.record.branches, branch.id, head)
        self._state = self._blank_state()
        found = await self.read(snapshot_on=[Span(*piece) for piece in reversed(self.path.spans(1, head))])
        if found.snapshot is not None:
            try:
                await self._take_over(found.snapshot.state)
            except (LookupError, TypeError, ValueError, AttributeError) as exc:
                if isinstance(exc, TalekeeperError):
                    raise
                at = f"the snapshot at {found.snapshot.seq} of branch {self.name!r}"
                raise StoreCorrupt(f"{at} cannot be read; run `talekeeper doctor`") from exc
        self.saved_at = self.head = self._extracted_at = self.state.seq
        self._texts_version, self._generation = version, generation
        self.ready = True

    async def _take_over(self, snapshot: Mapping[str, Any]) -> None:
        self._state.revisions = snapshots.edits_named(snapshot)
        if "roots" not in snapshot:  # an older one: it does not say of its folds what is needed before someone looks at them
            await self._fetch_folds(snapshots.folds_named(snapshot))
        await self.supply(lambda: snapshots.load_json(self._state, snapshot, self.turns_of))

    async def take(self, entry: Entry) -> Turn:
        """Moves the state over one entry, if it is the next."""
        turn = self.turn(entry)
        if entry.kind == "override" and not await self.has_fold(entry):
            entry = entry._replace(text="")  # what it stood for is not part of this line: as if it had never been
        await self.supply(lambda: self._take(entry, turn))
        return turn

    async def has_fold(self, override: Entry) -> bool:
        """Whether the fold is there that the author has written over."""
        assert override.extra is not None
        target = override.extra["target"]
        return self.state.shelf.get(target) is not None or bool((await self.read(folds=[target])).folds)

    def told(self, entry: Entry, turn: Turn, shown: str = "") -> Turn:
        """A turn of our own is durable now; it is taken in later. Only what moves no one and changes nothing may come this way.

        `shown`: how it reads as a line, where that is known."""
        seq, path = turn.seq, self.path
        if seq == self.head + 1 and entry.branch == path.branch:
            self._backlog.extend(entry)
            self._newest = turn, shown
            self.head = path.head = seq
        return turn

    def _take(self, entry: Entry, turn: Turn, shown: str = "") -> None:
        state = self.state if self._backlog else self._state
        if entry.seq != state.seq + 1 or (entry.branch != self.path.branch and not self.path.has(entry.branch, entry.seq)):
            return  # the branch may have gone back while it was written
        state.add_channel(entry.channel, turn.audience)
        for node in state.replaced_by(entry) if entry.kind in AUTHOR_KINDS else ():
            extract(node, state.shelf.children, self.turns_of)  # from its turns as they still are: it is what a rewind comes back to
        state.apply(entry, turn)
        self._known = {}  # also where it is empty: whoever is still reading for it has read the story as it was
        if entry.seq > self.head:
            self.head = entry.seq
        if entry.seq > self.path.head:
            self.path.head = entry.seq
        if entry.kind in SCENE_KINDS:
            self.manners.clear()
        self.tail.append((entry, turn))
        if entry.kind == "mark":
            self._marks.put(entry.position, entry)
        elif entry.kind in AUTHOR_KINDS:
            assert entry.extra is not None
            self.plans.clear()
            if entry.kind == "edit":
                self.marked.clear()
                self._lines.drop(tuple(entry.extra["at"]))
        else:
            self._show(entry, turn, shown)

    def _show(self, entry: Entry, turn: Turn, shown: str) -> None:
        item = self.line(entry, turn, shown).item
        note, hearers = turn.kind == "note", self._state.hearers(entry.channel)
        stale = []
        for key, plan in self.plans.items():
            if key[0] in hearers:
                if plan.waiting or (note and not (plan.canon and plan.items)):
                    stale.append(key)  # a note before anything has happened belongs to the canon, and the first one makes room for it
                elif item.text:
                    plan.extend(item)
        for key in stale:
            del self.plans[key]

    def tail_terms(self) -> list[tuple[Entry, dict[str, None]]]:
        """The entries that are not indexed yet, in order, each with the terms under which it will be found."""
        if self._backlog:
            self._take_in()
        self._find_terms(len(self.tail))
        return [(entry, terms) for (entry, _), terms in zip(self.tail, self._tail_terms, strict=True)]

    def _find_terms(self, most: int) -> None:
        start = len(self._tail_terms)
        for entry, turn in self.tail[start : start + most]:
            findable = turn.text and entry.kind != "mark"
            self._tail_terms.append(index_terms(turn.text, turn.voice, turn.kind) if findable else {})

    def _trim(self) -> None:
        """Lets go of what is in the store anyway, but for what contexts are made of; never what someone is at work with."""
        if self._at_work:
            return
        self._grown = 0
        room = self.shared.allowance.lines
        if len(self._lines) > room:
            self._lines.trim(max(room, 2 * max((len(plan.items) for plan in self.plans.values()), default=0)))
        few = max(LEAST // 2, room // 4)  # folds and marks take more, and one of them goes further
        self._marks.trim(max(few, self._marks_at_once))
        self.marked.trim(max(2 * few, 3 * self._marks_at_once))
        self.index.trim(room)
        self._made.trim(few)
        self._state.shelf.trim(room // 2)
        self._digests.trim(few // 4)


_LASTING = {"_at_work", "lock", "name", "saving", "shared"}
_KNOWLEDGE = [slot for slot in (*Reading.__slots__, *Stepping.__slots__) if slot not in _LASTING]
"""What a branch in memory knows of the story."""
