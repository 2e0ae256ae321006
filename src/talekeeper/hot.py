"""A story while it is played: the state of one branch in memory, kept in step with the store.

Everything here can be dropped at any time and made again: load the newest snapshot on the path, replay the entries behind it.
Other processes may write to the same story; before a context the head is asked for, and entries that came from elsewhere are
replayed like any others.

A *checkpoint* stores what was derived since the last one, off the hot path: extractive folds, index rows and a snapshot, in one
commit. Until then they exist in memory only; after a crash they are derived again from the log (I1, I5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from talekeeper import rim, snapshots, terms
from talekeeper.context import Plan
from talekeeper.errors import Conflict, StoreCorrupt, TalekeeperError, UnknownSeat
from talekeeper.folds import Node, extract
from talekeeper.index import Index
from talekeeper.model import AUTHOR_KINDS, Health, Seat, Turn
from talekeeper.ports import (
    Branch,
    Commit,
    Entry,
    Position,
    Snapshot,
    Span,
    TextRecord,
    new_entry,
)  # fmt: skip
from talekeeper.reading import Reading
from talekeeper.recent import LEAST, Recent
from talekeeper.shared import Shared, path_to, seats_of
from talekeeper.shelf import Shelf
from talekeeper.state import SCENE_KINDS, State
from talekeeper.turnstile import Turnstile

if TYPE_CHECKING:
    from talekeeper.folding import Folder

AT_ONCE = 128
"""Where there may be very many entries, so many are handled before other tasks get their turn."""
AT_A_TIME = 4
"""So many folds are made before other tasks get their turn."""
FEW = 8
"""After so many new turns, what need not stay in memory is let go of."""
CHECKPOINT_EVERY = 256
"""Entries after which what was derived from them is stored; sooner where many stories share the memory that it takes until then."""
FAR_BEHIND = 2
"""Appends are held back once the unsaved entries are so many times what the story may keep in memory."""

FURLED = 2 * CHECKPOINT_EVERY
"""Where more entries than this are unsaved, the folds that contexts stand on are made a few at a time, not all in one go."""

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


class Hot(Reading):
    """One branch of a story in memory. See the module."""

    # There may be a thousand of them, and Python gives an object with more than thirty fields and no slots a large table of its own.
    __slots__ = (
        "__weakref__", "_backlog", "_extracted_at", "_generation", "_grown", "_known", "_made", "_newest", "_tail_terms", "_texts_version",
        "folder", "gathered", "head", "index", "lock", "manners", "marked", "plans", "put_off_at", "ready", "saved_at", "saving", "tail",
        "watchers",
    )  # fmt: skip

    def __init__(self, shared: Shared, name: str) -> None:
        super().__init__(shared, name)
        self.lock = Turnstile()
        self.saving = asyncio.Lock()
        self.watchers: list[Callable[[Health, Health], None]] = []
        self.ready = False
        self.folder: Folder | None = None  # who makes model folds of this branch, while there is one: the keeper's to give and to take
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

    async def unfurl(self) -> None:
        """Makes what contexts stand on, where very much came at once; else whoever looks would make all of it in one go."""
        if self.head - max(self.saved_at, self._extracted_at) > FURLED:
            async with self.saving:  # else whoever goes back meanwhile would have it begin again
                await self._extract_unsaved()

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
            anew = Hot(shared, self.name)  # aside: whoever is at work with this one shall not see half of another
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

    def _become(self, other: Hot) -> None:
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
            anew = Hot(self.shared, self.name)
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
            self._tail_terms.append(terms.index_terms(turn.text, turn.voice, turn.kind) if findable else {})

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

    # -- checkpoints -----------------------------------------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """Whether there is enough to store for a checkpoint."""
        return self.ready and self._is_much(self.head - self.saved_at)

    @property
    def overdue(self) -> bool:
        """The same, unless it was tried of late, and failed."""
        return self.due and self._is_much(self.head - self.put_off_at)

    def _is_much(self, entries: int) -> bool:
        return entries >= min(CHECKPOINT_EVERY, self.shared.allowance.lines)

    @property
    def lag(self) -> float:
        """How far what is stored is behind what was told. From 1 on it is too far: several checkpoints have been due, and none was made."""
        return (self.head - self.saved_at) / (FAR_BEHIND * self.shared.allowance.lines)

    async def checkpoint(self, *, in_steps: bool = True) -> None:
        """Stores the folds, index rows and the snapshot that are due. Losing a race changes nothing. `in_steps`: with a snapshot here and
        there on the way, where very much came at once."""
        async with self.saving:
            if in_steps and self.head - self.saved_at > FURLED:
                await self._retrace()
            await self._extract_unsaved()
            while len(self.tail) - len(self._tail_terms) > AT_ONCE:
                self._find_terms(AT_ONCE)
                await asyncio.sleep(0)
            await self._extract_unsaved()
            state, shared = self._state, self.shared
            position = self.path.position(state.seq)
            if position is None or state.seq == self.saved_at or not self.in_step:  # what others forgot must not come back
                return
            nodes = list(state.shelf.unsaved.values())
            tail = self.tail_terms()
            index = {entry.position: list(terms) for entry, terms in tail if terms}
            commit = Commit(
                story=shared.record.id, rev=shared.record.rev, folds=state.shelf.records(nodes), index=index,
                snapshot=Snapshot(position.branch, state.seq, snapshots.to_json(state)),
            )  # fmt: skip
            try:
                await shared.store.write(commit)
            except Conflict:
                return
            state.shelf.saved(nodes)
            del self.tail[: len(tail)], self._tail_terms[: len(tail)]
            self.index.grown(tail)
            self.saved_at = position.seq

    async def _retrace(self) -> None:
        """Replays very much that came at once, from the newest snapshot on and beside this state, and stores snapshots on the way. Without
        them, whoever goes back a step would have to replay all of it again (I9)."""
        loaded, shared, branch = self.loaded, self.shared, self.shared.record.branches.get(self.path.branch)
        if branch is None or not self.in_step:
            return
        anew = Hot(shared, self.name)
        await anew._load(branch, self.head)
        while loaded is self.loaded and anew._generation == shared.generation:
            if not anew.in_step:
                await anew._take_in_record()
            elif anew.due:
                before = anew.saved_at
                anew.state.shelf.take_over(self._state.shelf)
                await anew.checkpoint()
                if anew.saved_at == before and anew.in_step:
                    return  # someone else was first
            elif anew.state.seq < self.head:
                await anew._replay(min(self.head, anew.state.seq + AT_ONCE))
            else:
                anew.state.shelf.take_over(self.state.shelf)
                self._become(anew)
                return

    async def store(self, node: Node) -> None:
        """Stores a fold, and what it is made of, if it is not stored yet. What nobody can derive again, a model's text or the author's own
        words, comes after the fold it is about: else nobody could tell what it was made from, and forget it with that. May raise
        `Conflict`."""
        nodes = await self.supply(lambda: list(self._unsaved_of(node)))
        if nodes:
            if not self.in_step:
                raise Conflict("the story moved on; try again")
            shelf, record = self._state.shelf, self.shared.record
            await self.shared.store.write(Commit(record.id, record.rev, folds=shelf.records(nodes)))
            shelf.saved(nodes)

    def _unsaved_of(self, node: Node) -> Iterator[Node]:
        shelf = self.state.shelf
        if node.key in shelf.unsaved:
            for child in shelf.children(node):
                yield from self._unsaved_of(child)
            extract(node, shelf.children, self.turns_of)
            yield node

    async def _extract_unsaved(self) -> None:
        """Makes the extractive texts that are missing, a few at a time, so that others get their turn."""
        while True:
            shelf = self.state.shelf
            todo = [node for node in shelf.unsaved.values() if node.sentences is None]
            if not todo:
                self._extracted_at = self._state.seq
                return
            for count, node in enumerate(todo):
                await self.supply(partial(extract, node, shelf.children, self.turns_of))
                if count % AT_A_TIME == AT_A_TIME - 1:
                    await asyncio.sleep(0)


_LASTING = {"__weakref__", "_at_work", "folder", "lock", "name", "saving", "shared", "watchers"}
_KNOWLEDGE = [slot for slot in (*Reading.__slots__, *Hot.__slots__) if slot not in _LASTING]
"""What a branch in memory knows of the story."""
