"""Examines a stored story: does everything hold that a story promises? Changes nothing.

In this order, since each step believes only what the ones before it have shown:

    the record     seats, branches, channels                                        I4, I3
    the log        no gaps, every entry in a channel, own ids lead back to it       I1
    the folds      made of turns and folds that exist; texts of models              I7, I5, I4
    a replay       everything derived anew from the log, beside what is stored      I1, I4, I5
    the memory     every seat on every branch: complete, within budget, no leak     I1, I2, I3

A finding's code is the invariant that is broken; "file" stands for the file itself. Errors are things that lose or leak
something, or will; warnings are things to know.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from talekeeper import rim
from talekeeper.errors import BudgetTooSmall, Conflict, StoreCorrupt, UnknownStory
from talekeeper.folds.snapshots import folds_named
from talekeeper.live.hot import Hot
from talekeeper.live.names import Names
from talekeeper.live.shared import UNFINISHED, Shared, path_to, seats_of
from talekeeper.model import AUTHOR_KINDS, HEARD_KINDS, Context, Item, MemoryKey, Turn
from talekeeper.ports import Branch, Commit, Entry, FoldRecord, Position, Read, Snapshot, Span, Store, StoryRecord, TextRecord, targets
from talekeeper.recall.terms import sought
from talekeeper.stores.sqlite.file import connect, is_barred, ways_in
from talekeeper.story.inside import hot_of
from talekeeper.story.replay import Bounds, Past, Replay, snapshots_of
from talekeeper.summarize.extractive import RULES

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper

BUDGETS = (128, 1000, 8000)
SAMPLES = 12
TRIES = 3
"""So often a story is examined that somebody changes meanwhile."""
PAGE = 512
TERMS_AT_ONCE = 256
_NEVER = 1 << 53
"""A number that no entry has."""

Progress: TypeAlias = Callable[[str], None]

_LATER = ("roots", "common")
"""Parts of a snapshot that those of earlier versions do not have."""
_DAMAGED = "cannot be read: what is stored of it is damaged; restore a backup"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, and where."""

    severity: Literal["error", "warning"]
    code: str
    message: str
    where: str


async def examine(keeper: Keeper, key: MemoryKey, progress: Progress | None = None) -> list[Finding]:
    """Everything that is wrong with the story under the key; an empty list is good news. Raises `UnknownStory`, and `Conflict` where
    somebody changes the story all the time: what looks wrong then may only be between two looks."""
    for _ in range(TRIES):
        try:
            record = await keeper.store.load(rim.key(key))
        except StoreCorrupt:
            return [Finding("error", "file", _DAMAGED, "story")]
        if record is None:
            raise UnknownStory(f"no story under the key {key.composite()!r}")
        patient = _Examination(keeper, record, progress or (lambda step: None))
        await patient.run()
        if not patient.findings or not await patient.has_moved():
            return patient.findings
    raise Conflict(f"the story under the key {key.composite()!r} was changed while it was examined: examine it again when it is at rest")


def examine_file(path: Path) -> list[Finding]:
    """What SQLite itself finds wrong with a story file. Reads all of it."""
    where = path.name
    found = [Finding("error", "file", "cannot be read: it is not there", where)]
    for access in ways_in(path, read_only=True):
        try:
            with closing(connect(path, access, busy_timeout=5)) as db:
                rows = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
        except sqlite3.OperationalError as exc:
            found = [Finding("error", "file", f"cannot be read: {exc}", where)]
            if not is_barred(exc):
                break
        except (sqlite3.DatabaseError, UnicodeDecodeError) as exc:  # the latter where SQLite quotes what is no text
            return [Finding("error", "file", f"is damaged, or no story file at all: {exc}", where)]
        else:
            return [Finding("error", "file", row, where) for row in rows if row != "ok"]
    return found


class _Examination:
    """One look at one story."""

    def __init__(self, keeper: Keeper, record: StoryRecord, progress: Progress) -> None:
        self.findings: list[Finding] = []
        self._keeper = keeper
        self._store: Store = keeper.store
        self._record = record
        self._progress = progress
        self._branches = sorted(record.branches.values(), key=lambda branch: branch.id)
        self._heads: dict[int, int] = {}
        self._unread: set[Position] = set()  # entries that are damaged
        self._forgotten: set[Position] = set()
        self._gone: set[str] = set()  # ids of forgotten turns
        self._overrides: dict[int, list[int]] = {}
        self._folds: dict[str, FoldRecord] = {}
        self._texts: Sequence[TextRecord] = ()
        self._tainted: set[str] = set()
        self._older: set[str] = set()  # folds that an earlier version would tell as they are told
        # By word and branch, what has to be known.
        self._indexed: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("q"))
        self._sound: set[Position] = set()  # where snapshots are that were found to be right

    def _error(self, code: str, message: str, where: str) -> None:
        finding = Finding("error", code, message, where)
        if finding not in self.findings:
            self.findings.append(finding)

    async def run(self) -> None:
        self._progress("seats, branches and channels")
        self._examine_record()
        if UNFINISHED in self._record.config:
            message = "an import was never finished, or is under way: if nobody is at it, delete the story and import it again"
            self.findings.append(Finding("warning", "I1", message, "story"))
            return  # what there is of it makes no story
        if not self.findings:
            await self._examine_log()
        if self.findings:
            return  # what is derived from a damaged log says nothing
        self._progress("folds and texts")
        if not await self._read_folds():
            return
        self._examine_folds()
        for branch in self._branches:
            await self._guarded("I4", branch, self._examine_derived)
        await self._examine_index()
        if self._older:
            message = f"{len(self._older)} of its folds are told as an earlier version told them: they are sound, and stay so"
            self.findings.append(Finding("warning", "I5", message, "story"))
        for branch in self._branches:
            await self._guarded("I1", branch, self._examine_memory)

    async def has_moved(self) -> bool:
        """Whether somebody has changed the story since this look began."""
        heads = {branch: await self._store.head(self._record.id, branch) for branch in self._heads}
        return any(head.rev != self._record.rev or head.seq != self._heads[branch] for branch, head in heads.items())

    async def _guarded(self, code: str, branch: Branch, look: Callable[[Branch], Coroutine[Any, Any, None]]) -> None:
        """A story that is damaged enough breaks whoever looks at it: that is a finding too."""
        try:
            await look(branch)
        except StoreCorrupt:
            self._error("I4", _DAMAGED, f"what is derived from branch {branch.name!r}")
        except Exception as exc:
            self._error(code, f"cannot be read: {type(exc).__name__}: {exc}", f"branch {branch.name!r}")

    # -- the record ------------------------------------------------------------------------------------------------------

    def _examine_record(self) -> None:
        record = self._record
        try:
            seats = {seat.id for seat in rim.seats(seats_of(record.config))}
            int(record.config["secret"]), dict(record.config["since"])
        except (KeyError, TypeError, ValueError) as exc:
            self._error("I4", f"the story's settings cannot be understood: {exc}", "story")
            return
        for branch in self._branches:
            if branch.parent is not None and (branch.parent not in record.branches or branch.parent >= branch.id):
                self._error("I4", f"its parent, number {branch.parent}, does not exist", f"branch {branch.name!r}")
        for name, times in Counter(branch.name for branch in self._branches).items():
            if times > 1:
                self._error("I4", f"{times} branches have this name", f"branch {name!r}")
        for number, hearers in record.channels.items():
            for seat in sorted(set(hearers) - seats):
                self._error("I3", f"is heard by {seat!r}, and there is no such seat", f"channel {number}")
            if list(hearers) != sorted(set(hearers)):
                self._error("I3", "its hearers are not sorted, or not distinct", f"channel {number}")

    # -- the log ---------------------------------------------------------------------------------------------------------

    async def _examine_log(self) -> None:
        for branch in self._branches:
            self._heads[branch.id] = (await self._store.head(self._record.id, branch.id)).seq
        for branch in self._branches:
            if branch.parent is not None and not 0 <= branch.at <= self._heads[branch.parent]:
                self._error("I4", f"leaves its parent at {branch.at}, which the parent never reached", f"branch {branch.name!r}")
            expected = branch.at + 1
            async for entry in self._entries(branch):
                where = f"entry {entry.seq} of branch {branch.name!r}"
                lost = entry.seq - expected - sum(at.branch == branch.id and expected <= at.seq < entry.seq for at in self._unread)
                if lost > 0:
                    self._error("I1", f"{lost} entries before it are gone from the log", where)
                elif entry.seq < expected:
                    self._error("I1", "stands in the log twice", where)
                expected = entry.seq + 1
                self._examine_entry(entry, where)
            beyond = await self._store.read(Read(self._record.id, snapshot_on=[Span(branch.id, expected, _NEVER)]))
            if beyond.snapshot is not None:
                message = f"had reached {beyond.snapshot.seq} once, and ends at {expected - 1}: its newest entries are gone from the log"
                self._error("I1", message, f"branch {branch.name!r}")

    async def _entries(self, branch: Branch) -> AsyncIterator[Entry]:
        """A branch's own entries. Those with an id of their own are looked up by it on the way."""
        head = self._heads[branch.id]
        for first in range(branch.at + 1, head + 1, PAGE):
            self._progress(f"the log: {first:,} of {head:,} on {branch.name}")
            entries = await self._page(branch, first, min(head, first + PAGE - 1))
            named = {entry.id: entry for entry in entries if entry.id is not None}
            about = {entry.position: targets(entry.extra) for entry in entries if targets(entry.extra)}
            wanted = Read(self._record.id, ids=list(named), targeting=list({target for one in about.values() for target in one}))
            reached = (await self._store.read(wanted)).entries
            found = {entry.id: entry for entry in reached}
            for name, entry in named.items():
                if found.get(name) != entry:
                    self._error("I1", f"cannot be found by its id {name!r}", f"entry {entry.seq} of branch {branch.name!r}")
            for at in about.keys() - {entry.position for entry in reached}:
                self._error("I1", "cannot be found by what it is about", f"entry {at.seq} of branch {branch.name!r}")
            for entry in entries:
                yield entry

    async def _page(self, branch: Branch, first: int, last: int) -> Sequence[Entry]:
        """Some of a branch's entries, without those that are damaged: they are looked for by halves."""
        try:
            return (await self._store.read(Read(self._record.id, spans=[Span(branch.id, first, last)]))).entries
        except StoreCorrupt:
            if first < last:
                middle = (first + last) // 2
                return [*await self._page(branch, first, middle), *await self._page(branch, middle + 1, last)]
            self._unread.add(Position(branch.id, first))
            self._error("I1", _DAMAGED, f"entry {first} of branch {branch.name!r}")
            return []

    def _examine_entry(self, entry: Entry, where: str) -> None:
        seats = {seat["id"] for seat in self._record.config["seats"]}
        extra = entry.extra or {}
        if entry.channel not in self._record.channels:
            self._error("I3", f"is in channel {entry.channel}, and there is no such channel", where)
        if entry.speaker and entry.speaker not in seats:
            self._error("I3", f"is spoken by {entry.speaker!r}, and there is no such seat", where)
        if not _is_measured(entry):
            self._error("I1", "has a time or a size that is no number; restore a backup", where)
        if entry.kind not in HEARD_KINDS | AUTHOR_KINDS:
            self._error("I1", f"is of the unknown kind {entry.kind!r}", where)
        if entry.kind in AUTHOR_KINDS and "target" not in extra:
            self._error("I1", f"is of kind {entry.kind!r} and has no target", where)
        if entry.kind == "mark" and entry.text and not _is_json(entry.text):
            self._error("I1", "is a mark whose data is damaged: it is no JSON; restore a backup", where)
        if entry.kind == "override":
            self._overrides.setdefault(entry.branch, []).append(entry.seq)
        if "forgotten" in extra:
            self._forgotten.add(entry.position)
            self._gone.add(entry.id or Names(self._record.config["secret"]).name(*entry.position))
        elif not entry.text and entry.kind in HEARD_KINDS:
            self._error("I1", "has lost its text", where)

    # -- folds and texts -------------------------------------------------------------------------------------------------

    async def _read_folds(self) -> bool:
        """Reads all folds and texts. False where they are damaged."""
        try:
            found = await self._store.read(Read(self._record.id, all_folds=True))
        except StoreCorrupt:
            self._error("I7", f"one of them {_DAMAGED}", "folds and their texts")
            return False
        self._folds = {fold.key: fold for fold in found.folds}
        self._texts = found.texts
        return True

    def _examine_folds(self) -> None:
        for fold in sorted(self._folds.values(), key=lambda fold: fold.shape.get("level", 0)):
            self._examine_fold(fold)
        times = Counter((text.key, text.branch) for text in self._texts)
        for text in self._texts:
            where = f"the model's text of fold {text.key}"
            branch = self._record.branches.get(text.branch)
            if times[text.key, text.branch] > 1:
                self._error("I5", f"there are {times[text.key, text.branch]} on one branch", where)
            if branch is None or not branch.at < text.born <= self._heads[branch.id]:
                self._error("I4", f"was born at entry {text.born} of branch {text.branch}, which does not exist", where)

    def _examine_fold(self, fold: FoldRecord) -> None:
        refs = [Position(*ref[:2]) for ref in fold.shape.get("refs", ())]
        children: Sequence[str] = fold.shape.get("children", ())
        for at in refs:
            branch = self._record.branches.get(at.branch)
            if branch is None or not branch.at < at.seq <= self._heads[branch.id]:
                self._error("I7", f"is made of entry {at.seq} of branch {at.branch}, which does not exist", f"fold {fold.key}")
        for child in children:
            if child not in self._folds:
                self._error("I7", f"is made of fold {child}, which does not exist", f"fold {fold.key}")
        if not self._forgotten.isdisjoint(refs) or not self._tainted.isdisjoint(children):
            self._tainted.add(fold.key)

    # -- everything derived, made anew -----------------------------------------------------------------------------------

    async def _examine_derived(self, branch: Branch) -> None:
        """Goes from one snapshot to the next, and compares what is derived on the way with what is stored."""
        stored = await snapshots_of(self._store, self._record.id, branch, self._heads[branch.id])
        indexed: dict[Position, Collection[str]] = {}
        replay = await self._begin(branch, branch.at)
        for seq in sorted({*stored, *(seq - 1 for seq in self._overrides.get(branch.id, ())), self._heads[branch.id]}):
            if seq <= branch.at:
                continue
            self._progress(f"replaying {seq:,} of {self._heads[branch.id]:,} on {branch.name}")
            await replay.go(seq)
            derived = await replay.derive()
            if derived is None:
                continue
            self._compare_folds(derived.folds)
            indexed |= derived.index
            if seq in stored:  # what is behind the last snapshot may not be in the index yet
                for at, terms in indexed.items():
                    for term in terms:
                        self._indexed[term, at.branch].append(at.seq)
                indexed = {}
            if seq in stored and await self._compare_snapshot(branch, derived):
                self._sound.add(Position(branch.id, seq))
                replay = await self._begin(branch, seq)

    async def _begin(self, branch: Branch, at: int) -> Replay:
        """A replay that stands at that entry, from the newest snapshot that was found to be right."""
        snapshot, limit = None, at
        current: Branch | None = branch
        while current is not None and snapshot is None:
            sound = [position.seq for position in self._sound if position.branch == current.id and position.seq <= limit]
            if sound:
                snapshot = await self._snapshot(current, max(sound))
            limit = min(limit, current.at)
            current = self._record.branches[current.parent] if current.parent is not None else None
        replay = Replay(self._keeper, self._record, branch, snapshot)
        await replay.go(at)
        return replay

    async def _snapshot(self, branch: Branch, seq: int) -> Snapshot | None:
        return (await self._store.read(Read(self._record.id, snapshot_on=[Span(branch.id, seq, seq)]))).snapshot

    async def _examine_index(self) -> None:
        """Whether it knows each entry by each of its words."""
        self._progress("the index")
        unknown: dict[Position, str] = {}
        terms = list(dict.fromkeys(term for term, _ in self._indexed))
        for first in range(0, len(terms), TERMS_AT_ONCE):
            some = terms[first : first + TERMS_AT_ONCE]
            try:
                found = await self._store.search(self._record.id, some)
            except StoreCorrupt:
                self._error("I1", _DAMAGED, "the index")
                return
            for term, places in zip(some, found, strict=True):
                for branch in self._branches:
                    known = {seq for place in places if place.branch == branch.id for seq in place.seqs}
                    absent = set(self._indexed.get((term, branch.id), ())) - known
                    unknown |= {Position(branch.id, seq): term for seq in absent}
        if unknown:
            at, term = min(unknown.items())
            where = f"such as entry {at.seq} of branch {self._record.branches[at.branch].name!r} by {term!r}"
            self._error("I1", f"does not know {len(unknown)} of the entries by all of their words, {where}", "the index")

    def _compare_folds(self, made: Iterable[FoldRecord]) -> None:
        for anew in made:
            fold = self._folds.get(anew.key)
            if fold is None or anew.key in self._tainted:
                continue
            if _plain(_place(fold)) != _plain(_place(anew)):
                self._error("I5", f"does not stand where it should: {_difference(_place(fold), _place(anew))}", f"fold {anew.key}")
            elif _plain(fold.sentences) != _plain(anew.sentences):
                if fold.shape.get("rules", 0) < RULES:
                    self._older.add(anew.key)
                else:
                    self._error("I5", "its text is not what its turns give", f"fold {anew.key}")

    async def _compare_snapshot(self, branch: Branch, derived: Commit) -> bool:
        assert derived.snapshot is not None
        where = f"the snapshot at {derived.snapshot.seq} of branch {branch.name!r}"
        stored = await self._snapshot(branch, derived.snapshot.seq)
        assert stored is not None
        try:
            named = [key for key in folds_named(stored.state) if key not in self._folds]
        except (LookupError, TypeError, ValueError, AttributeError):
            self._error("I4", _DAMAGED, where)
            return False
        if named:  # a checkpoint may have been made since they were read
            self._folds |= {fold.key: fold for fold in (await self._store.read(Read(self._record.id, folds=named))).folds}
            named = [key for key in named if key not in self._folds]
        if named:
            self._error("I7", f"names the fold {named[0]}, which does not exist", where)
        state = {part: value for part, value in derived.snapshot.state.items() if part not in _LATER or part in stored.state}
        same = _plain(stored.state) == _plain(state)
        if not same:
            self._error("I4", f"is not what the log adds up to: {_difference(stored.state, state)}", where)
        return same and not named

    # -- what seats remember ---------------------------------------------------------------------------------------------

    async def _examine_memory(self, branch: Branch) -> None:
        store = Bounds(self._store, self._heads[branch.id], branch)
        hot = Hot(Shared(self._record.key, store, self._keeper.counter, self._record), branch.name)
        await hot.refresh()
        story = Past(hot)  # which nobody writes down: the keeper would, what was derived for it
        for seat in story.seats:
            self._progress(f"what {seat.id} remembers on {branch.name}")
            where = f"{seat.id!r} on branch {branch.name!r}"
            heard = {turn.id: turn for turn in await story.turns(seat=seat.id)}
            pinned = await _needed_for_pins(story, seat.id)
            for budget in BUDGETS:
                await self._examine_context(story, await story.context(seat.id, budget=budget + pinned), heard.keys(), where)
            for turn in _sample(list(heard.values())):
                if not await self._can_be_recalled(story, branch, seat.id, turn):
                    self._error("I1", f"turn {turn.seq} cannot be recalled by its own words", where)

    async def _examine_context(self, story: Past, context: Context, heard: Set[str], where: str) -> None:
        where = f"the context of {where} in {context.budget} tokens"
        if context.tokens > context.budget or self._keeper.counter.count(context.text) > context.budget:
            self._error("I2", f"has {context.tokens} tokens", where)
        covered: Counter[str] = Counter()
        for block in context.blocks:
            for item in block.items:
                sources = await self._sources(story, item) - self._gone
                if not sources <= heard:
                    self._error("I3", f"has something of a turn that was not heard: {min(sources - heard)}", where)
                if block.stable:
                    covered.update(sources)
        twice = sorted(turn for turn, times in covered.items() if times > 1)
        lost = sorted(heard - covered.keys())
        if twice:
            self._error("I1", f"has {len(twice)} turns twice, such as {twice[0]}", where)
        if lost:
            self._error("I1", f"has {len(lost)} turns neither raw nor in a fold, such as {lost[0]}", where)

    async def _sources(self, story: Past, item: Item) -> set[str]:
        """The ids of all turns behind an item: from the stored folds, or from the story where they are not stored yet."""
        sources, waiting = set(item.sources), list(item.folds)
        names = Names(self._record.config["secret"])
        while waiting:
            name = waiting.pop()
            fold = self._folds.get(names.fold(name))
            if fold is None:
                sources.update(await story.sources(name))
            else:
                sources.update(ref[2] for ref in fold.shape.get("refs", ()))
                waiting += map(names.fold, fold.shape.get("children", ()))
        return sources

    async def _can_be_recalled(self, story: Past, branch: Branch, seat: str, turn: Turn) -> bool:
        """Whether the turn, or one that reads the same, is found by its words; where very many have the same words, whether the index at
        least knows it by them."""
        phrase = " ".join(turn.text.split()[:10])
        wanted = sought(phrase)
        hits = [hit.turn for hit in await story.recall(seat, phrase, limit=SAMPLES)]
        if not wanted or any((hit.voice, hit.text, hit.when) == (turn.voice, turn.text, turn.when) for hit in hits):
            return True
        edited = hot_of(story).state.revisions.get(turn.id)
        at = edited.at if edited else path_to(self._record.branches, branch.id, self._heads[branch.id]).position(turn.seq)
        waiting = {entry.position: terms for entry, terms in hot_of(story).tail_terms()}
        if at in waiting:  # it is not in the index yet
            return waiting[at].keys() >= set(wanted)
        found = await self._store.search(self._record.id, wanted)
        return at is not None and all(any(at.branch == each.branch and at.seq in each.seqs for each in places) for places in found)


async def _needed_for_pins(story: Past, seat: str) -> int:
    try:
        await story.context(seat, budget=0)
    except BudgetTooSmall as small:
        return small.needed
    return 0


def _sample(turns: Sequence[Turn]) -> list[Turn]:
    """Some turns from all over the story, the first and the last among them."""
    last = len(turns) - 1
    return [turns[at] for at in sorted({round(last * step / (SAMPLES - 1)) for step in range(SAMPLES)})] if turns else []


def _place(fold: FoldRecord) -> dict[str, Any]:
    """The shape without what was gathered over the fold, which is made when someone asks, and the edition of its text."""
    return {name: value for name, value in fold.shape.items() if name not in ("gathered", "rules")}


def _is_measured(entry: Entry) -> bool:
    """Whether its time and its size are numbers, as a story that is imported has them."""
    return type(entry.time) in (int, float) and abs(entry.time) < rim.LATEST and type(entry.tokens) is int and entry.tokens >= 0


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Where two objects differ."""
    return "in " + ", ".join(repr(name) for name in sorted({*one, *other}) if _plain(one.get(name)) != _plain(other.get(name)))
