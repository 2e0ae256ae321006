"""The front door: one branch of one story, to append to and to remember from.

Every method reads, thinks and writes once. `append` is durable when it returns and never waits for a model; `context` is built from
what is in memory, in time that follows the budget and not the length of the story. Telling and remembering are in modules of their
own; here is what an author does with a story: going back, branching, editing, forgetting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from talekeeper import rim
from talekeeper.context.paragraphs import as_fold
from talekeeper.errors import Conflict, InvalidInput, NameTaken, UnknownBranch, UnknownFold, UnknownTurn, WrongType, quoted
from talekeeper.folds.nodes import rewritten_key
from talekeeper.folds.state import COMMON
from talekeeper.live.shared import nothing_told_on, path_to
from talekeeper.model import SPOKEN_KINDS, BranchInfo, Fold, Health, HealthState, Mark, Marked, Stats, Turn, TurnRef
from talekeeper.ports import MAIN, Branch, Commit, Entry, Position, StoryRecord, targets
from talekeeper.story.forgetting import erasure
from talekeeper.story.marking import Gathering, V, marked, marks_named, sources_of, store_gathered
from talekeeper.story.races import TRIES, step_aside
from talekeeper.story.remembering import Remembering
from talekeeper.story.replay import Past, look_back
from talekeeper.story.retelling import carried_over, newest, tellings
from talekeeper.story.telling import Draft, Made, Telling


class Story(Telling, Remembering):
    """A story on one of its branches. Get one from `Keeper.story` or `Story.fork`."""

    async def reveal(self, turn: TurnRef, to: Sequence[str], *, text: str | None = None, speaker: str = "", id: str | None = None) -> Turn:
        """Tells others of an old turn. Who heard the old one never changes: this is a new turn that cites it."""
        hot = self._hot
        hearers = rim.several(to, "to")  # required: without it, those present would hear what was a secret

        async def draft() -> list[Draft]:
            nonlocal turn
            _, turn = await hot.located(turn)
            words = text if text is not None else f"{turn.voice}: {turn.text}" if turn.voice else turn.text
            return [self._check(Draft(speaker, words, hearers, kind="said" if speaker else "event", cites=[turn.id], id=id))]

        async def known() -> list[Turn]:
            return await self._known_ids(await draft())

        async def make() -> Made:
            return await self._entries(await draft())

        async with hot.lock:
            await hot.refresh()
            return (await self._write(make, told_before=None if id is None else known))[0]

    async def at(self, turn: TurnRef) -> Past:
        """The story as it stood just after that turn (0: before the first), to look at. Nothing is changed by it."""
        await self._hot.refresh()
        return await look_back(self._hot, (await self._place(turn)).seq)

    async def gather(self, seat: str, gathering: Gathering[V], *, beside: Sequence[V] = ()) -> V:
        """The gathering's value over all that the seat heard, at a cost that follows what is new. `beside`: values of yours in it."""
        value = await super().gather(seat, gathering, beside=beside)
        self._residents.gathered(self._hot)
        return value

    # -- time travel -----------------------------------------------------------------------------------------------------

    async def rewind(self, to: TurnRef, *, expected_version: str | None = None) -> int:
        """Goes back to just after that turn; 0 is the beginning. What came after stays as a branch of its own (see `branches`)."""
        hot = self._hot
        rim.version(expected_version)
        target: TurnRef | Position = to

        async def make(record: StoryRecord) -> Commit | None:
            nonlocal target
            self._expect(expected_version)
            target = await self._place(target)
            if target.seq == hot.state.seq:
                return None
            heads = {} if expected_version is None else {hot.path.branch: hot.head}
            return Commit(story=record.id, rev=record.rev, touch=True, heads=heads, branches=self._rewound(target))

        async with hot.lock:
            await hot.refresh()
            await self._amend(make)
        assert isinstance(target, Position)
        return target.seq

    async def _place(self, of: TurnRef | Position) -> Position:
        """Where an entry of this branch stands, be it a turn or not; 0 is before the first. A place that was found before is looked for
        again: whoever names a turn by its number means the one that had it then, and someone else may have gone back behind it."""
        path = self._hot.path
        if isinstance(of, Position):
            if of.seq and not path.has(*of):
                raise UnknownTurn(f"entry {of.seq} is no longer on branch {self.branch!r}: someone else went back meanwhile")
            return of
        if isinstance(of, int) and not isinstance(of, bool):
            at = path.position(of) if of else Position(path.branch, 0)
            if at is None:
                raise UnknownTurn(f"no entry number {quoted(of)} on branch {self.branch!r}; it goes from 0 to {self._hot.state.seq}")
            return at
        return (await self._hot.located(of))[0]

    async def _amend(self, make: Callable[[StoryRecord], Awaitable[Commit | None]]) -> Commit | None:
        """Writes a change to the story itself, which `make` builds on the record it gets, and returns it; None where there is nothing to
        change. The lock is held.

        It is made again each time someone else was first (our own background folds, if nobody else): whatever it builds on, it has to
        look for it itself. What it raises is for the caller."""
        hot, shared = self._hot, self._hot.shared
        for attempt in range(TRIES):
            if not hot.in_step:
                await hot.refresh()
            record, version = shared.record, self.version
            commit = await make(record)
            if commit is None:
                return None
            try:
                self._expect(version)  # something may have been taken in meanwhile
                rev = await shared.store.write(commit)
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                await step_aside(attempt)
                await hot.refresh()
                continue
            if commit.erase is not None:
                shared.drop()  # before any branch can take in the new record beside what it still has of the old
            await shared.reload(rev)
            await hot.refresh()
            return commit
        raise AssertionError("unreachable")

    def _rewound(self, to: Position) -> list[Branch]:
        """What becomes of the branches when this one goes back: the tail keeps its entries under a new name. The last one is ours."""
        return [self._left_behind(), self._new_branch(self.branch, to)]

    def _new_branch(self, name: str, at: Position) -> Branch:
        """A branch that goes on behind that entry. Only one that begins at the beginning has no parent: else nobody could read it."""
        return Branch(max(self._hot.shared.record.branches) + 1, name, at.branch if at.seq else None, at.seq)

    def _left_behind(self) -> Branch:
        """This branch, once its name has gone to another."""
        old = self._hot.shared.record.branches[self._hot.path.branch]
        return Branch(old.id, self._free_name(f"{old.name}~"), old.parent, old.at)

    def _free_name(self, stem: str) -> str:
        taken = {branch.name for branch in self._hot.shared.record.branches.values()}
        return next(name for number in range(1, len(taken) + 2) if (name := f"{stem}{number}") not in taken)

    async def fork(self, *, at: TurnRef | None = None, name: str | None = None) -> Story:
        """A new branch from that turn on (by default from now), as a story of its own; this one goes on as it was."""
        hot = self._hot
        if name is not None and "~" in rim.name(name, "the branch's name"):
            raise InvalidInput(f"the name {name!r} has a ~ in it: such names are kept for what rewinds leave behind")
        start: TurnRef | Position = 0 if at is None else at
        called = name or ""

        async def make(record: StoryRecord) -> Commit:
            nonlocal start, called
            start = await self._place(hot.state.seq if at is None else start)
            called = name or self._free_name("fork-")
            if any(called == branch.name for branch in record.branches.values()):
                raise NameTaken(f"there is a branch {quoted(called)} already: choose another name, or go on with that one")
            return Commit(story=record.id, rev=record.rev, touch=True, branches=[self._new_branch(called, start)])

        async with hot.lock:
            await hot.refresh()
            await self._amend(make)
        return await self._keeper.story(self.key, branch=called)

    async def branches(self) -> list[BranchInfo]:
        """All lines of the story, the oldest first."""
        shared = self._hot.shared
        await self._hot.refresh()
        record = shared.record
        rows = []
        for branch in sorted(record.branches.values(), key=lambda branch: branch.id):
            head = await shared.store.head(record.id, branch.id)
            if nothing_told_on(branch, head.seq) and branch.name != self.branch:
                continue
            parent = record.branches[branch.parent].name if branch.parent is not None else None
            rows.append(BranchInfo(name=branch.name, parent=parent, forked_at=branch.at, head=head.seq, current=branch.name == self.branch))
        return rows

    async def switch(self, branch: str) -> Story:
        """The story on another of its branches, such as one that a rewind left behind. This one stays where it is."""
        return await self._keeper.story(self.key, branch=branch)

    async def adopt(self, branch: str) -> int:
        """Goes over to another line of the story, such as one that a rewind left behind: from now on it bears this branch's name, and
        what bore it stays under another. The line "main" keeps its name for those who look for it: this branch goes on from its end.
        Returns the number of its newest entry."""
        hot = self._hot
        rim.string(branch, "branch")
        meant: int | None = None

        async def make(record: StoryRecord) -> Commit | None:
            nonlocal meant
            if branch == self.branch:
                return None
            other = hot.shared.branch(branch)
            if meant not in (None, other.id):
                raise Conflict(f"the name {branch!r} has gone to another line meanwhile: look at the branches again")
            meant = other.id
            heads, line = {}, dataclasses.replace(other, name=self.branch)
            if branch == MAIN:
                heads = {other.id: (await hot.shared.store.head(record.id, other.id)).seq}
                line = self._new_branch(self.branch, self._end_of(record, other.id, heads[other.id]))
            return Commit(story=record.id, rev=record.rev, touch=True, heads=heads, branches=[self._left_behind(), line])

        async with hot.lock:
            await hot.refresh()
            await self._amend(make)
            return self.head

    def _end_of(self, record: StoryRecord, branch: int, head: int) -> Position:
        """Where the newest entry of a branch stands, which may be on one that it left."""
        return path_to(record.branches, branch, head).position(head) or Position(branch, 0)

    async def regenerate(
        self, text: str, *, voice: str | None = None, mentions: Sequence[str] = (), when: str | None = None, id: str | None = None,
        expected_version: str | None = None,
    ) -> Turn:  # fmt: skip
        """Replaces the newest turn by another of the same speaker, heard by the same seats; the old one stays as a swipe.

        Raises `Conflict` where someone else has told or undone something meanwhile, so that another turn is the newest one by now."""
        rim.text(text)
        rim.version(expected_version)
        named = rim.names(mentions, "mentions")
        hot = self._hot
        meant: Turn | None = None
        told: Turn | None = None

        async def make(record: StoryRecord) -> Commit | None:
            nonlocal meant, told
            told = await self._told_before(id, text)
            if told is not None:
                return None
            self._expect(expected_version)
            old, later = await newest(hot)
            if meant is not None and (old is None or old.id != meant.id):
                raise Conflict("another turn is the newest one by now: read again, then retry")
            meant = _tellable(old)
            draft = self._check(Draft(
                meant.speaker, text, meant.audience, meant.location, meant.kind,  # type: ignore[arg-type]
                voice or meant.voice or None, named, when or meant.when, id,
            ))  # fmt: skip
            later = [entry for entry in later if meant.id not in targets(entry.extra)]
            later = [entry for entry in later if entry.kind != "override" or await hot.has_fold(entry)]
            behind = await self._place(meant.seq - 1)
            return await hot.supply(lambda: self._retold(record, draft, behind, later))

        async with hot.lock:
            await hot.refresh()
            written = await self._amend(make)
            if written is None:
                assert told is not None
                return told
            self._residents.appended(hot)
            return hot.turn(written.entries[0])

    def _retold(self, record: StoryRecord, draft: Draft, behind: Position, later: Sequence[Entry]) -> Commit:
        """The draft in the place of the newest turn, and behind it what the author did later. May raise `Missing`."""
        hot = self._hot
        branches, channels = self._rewound(behind), dict[int, tuple[str, ...]]()
        told = self._entry(draft, behind.seq + 1, channels)._replace(branch=branches[-1].id)
        copies, folds = carried_over(hot, later, told.position)
        return Commit(
            story=record.id, rev=record.rev, touch=True, heads={hot.path.branch: hot.head}, channels=channels, branches=branches,
            entries=[told, *copies], folds=[fold.record() for fold in folds],
        )  # fmt: skip

    async def swipes(self) -> list[Turn]:
        """The other tellings of the newest turn, and that one as the last: what stood in its place on any branch, of the same kind and
        speaker, heard by the same seats."""
        await self._hot.refresh()
        return await tellings(self._hot)

    # -- the author's hand -----------------------------------------------------------------------------------------------

    async def edit(self, turn: TurnRef, text: str, *, expected_version: str | None = None) -> Turn:
        """Changes what a turn says, on this branch, for all who heard it; every fold made from it follows. A rewind undoes it."""
        rim.text(text)
        rim.version(expected_version)
        edited = await self._author("edit", turn, text, expected_version)
        return edited._replace(text=text, revision=edited.revision + 1)

    async def pin(self, turn: TurnRef) -> Turn:
        """Keeps a turn word for word in the context of everyone who heard it, whatever the budget. Once is enough."""
        return await self._author("pin", turn, "")

    async def unpin(self, turn: TurnRef) -> Turn:
        """Takes a pin back, if there is one."""
        return await self._author("unpin", turn, "")

    async def mark(
        self, topic: str, data: Mapping[str, Any], *, of: Sequence[TurnRef] = (), heard_by: Sequence[str] | None = None,
        rank: float = 0.0, keep: int = 16, drops: Sequence[str] = (), lasting: float | None = None,
    ) -> Marked:  # fmt: skip
        """Notes something in the log about the turns it is `of`. Those who heard all of them may know it, or of these the ones in
        `heard_by`. Of a topic, the `keep` of the highest `rank` last, and beside them all of the rank `lasting` or above.
        `drops`: ids of marks that it replaces. A rewind undoes it."""
        known = rim.several(heard_by, "heard_by") if heard_by is not None else None
        mark = rim.mark(Mark(topic, data, rank, keep, (), known, rim.several(drops, "drops"), lasting))
        return (await self._mark_all([mark], [rim.several(of, "of")]))[0]

    async def mark_many(self, marks: Sequence[Mark], *, expected_version: str | None = None) -> list[Marked]:
        """Notes several things in one step: all of them stand in the log, or none does.

        `expected_version`: raise `Conflict` if anything came between."""
        checked = rim.marks(marks)
        if not checked and rim.version(expected_version) is None:
            return []
        return await self._mark_all(checked, [mark.of for mark in checked], rim.version(expected_version))

    async def _mark_all(
        self, marks: Sequence[Mark], of: Sequence[Sequence[TurnRef]], expected_version: str | None = None
    ) -> list[Marked]:  # fmt: skip
        hot = self._hot
        meant = list(of)

        async def make() -> Made:
            channels: dict[int, tuple[str, ...]] = {}
            entries: list[Entry] = []
            dropped = await marks_named(hot, (name for mark in marks for name in mark.drops))
            for place, mark in enumerate(marks):
                meant[place] = turns = [await self._resolve(turn) for turn in meant[place]]
                entries.append(self._mark_entry(mark, sources_of(hot, turns), dropped, channels, place + 1))
            return entries, channels

        async with hot.lock:
            await hot.refresh()
            places = [Position(hot.path.branch, entry.seq) for entry in await self._write(make, expected_version)]
            return [marked(hot, entry) for entry in await hot.marks_at(places)]

    async def _author(self, kind: str, turn: TurnRef, text: str, expected_version: str | None = None) -> Turn:
        """Puts something that the author does to a turn into the log; returns that turn as it read before."""
        hot = self._hot
        target: TurnRef = turn

        async def make() -> Made:
            nonlocal target
            at, target = await hot.located(target)
            if kind in ("pin", "unpin") and (target.id in hot.state.pins) == (kind == "pin"):
                return [], {}
            number = hot.channel_number(target.audience)
            assert number is not None
            return [self._event(kind, "", text, None, number, 1, {"target": target.id, "at": list(at)})], {}

        async with hot.lock:
            await hot.refresh()
            await self._write(make, expected_version)
        assert isinstance(target, Turn)
        return target

    async def override(self, fold: str, text: str) -> Fold:
        """Puts your own text in the place of a fold, until one of its sources changes. A rewind undoes it."""
        rim.text(text)
        hot = self._hot

        async def make() -> Made:
            node = await self._node(fold)
            seats = await hot.supply(lambda: hot.state.holders(node))
            if not seats:
                raise UnknownFold(f"the fold {quoted(fold)} is not part of any seat's memory on branch {self.branch!r}")
            channels: dict[int, tuple[str, ...]] = {}
            number = self._channel(tuple(sorted(seats)), channels)
            await hot.store(node)
            return [self._event("override", "", text, None, number, 1, {"target": node.key})], channels

        async with hot.lock:
            await hot.refresh()
            event = (await self._write(make))[0]
            made = await self._node_at(rewritten_key(hot.shared.names.fold(fold), event.id))
            return as_fold(made, hot.sources())

    async def forget(self, turn: TurnRef) -> None:
        """Removes a turn for good: its text, edits, index entries and every summary made from it, on all branches. There is no undo."""
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            at, target = await hot.located(turn)  # once: should someone else go back meanwhile, it is still to be forgotten everywhere
            await self._amend(partial(erasure, self._keeper, hot, target.id, at))
            for each in {hot, *self._residents.lines_of(self.key)}:
                try:
                    await each.refresh()  # now, and not when it is next looked at: until then it would hold what was forgotten
                except UnknownBranch:
                    each.let_go()

    async def _first_waiting(self) -> int | None:
        """The first turn whose fold a model is about to make. One that was given up for now is not waited for."""
        folder = self._residents.folder(self._hot)
        if folder.health.state not in (HealthState.HEALTHY, HealthState.RETRY):
            return None
        return min((node.first for node in await folder.pending() if node.level == 0), default=None)

    # -- upkeep ----------------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Waits until no fold waits for a model (or the model is given up for now: see `health`) and what is due is stored."""
        hot = self._hot
        await hot.refresh()
        await self._residents.folder(hot).settle()
        if hot.due or hot.saving.locked():
            await hot.checkpoint()
        await store_gathered(hot)

    def watch(self, watcher: Callable[[Health, Health], None]) -> Callable[[], None]:
        """Calls the watcher, with the health before and after, when a model's fold has come in and when health changes, until what
        this returns is called."""
        if not callable(watcher):
            raise WrongType(f"a watcher must be a function of two healths, not {type(watcher).__name__}")
        watchers = self._hot.watchers
        watchers.append(watcher)
        return lambda: watchers.remove(watcher) if watcher in watchers else None

    async def health(self) -> Health:
        """How the summarizer of this story is doing, and how many folds wait for it."""
        await self._hot.refresh()
        folder = self._residents.folder(self._hot)
        waiting = await folder.pending(most=256, given_up=folder.health.state is HealthState.DEGRADED)
        return dataclasses.replace(folder.health, pending=len(waiting))

    async def stats(self) -> Stats:
        """What the story holds on this branch, and what it has cost in all."""
        hot, branches = self._hot, len(await self.branches())
        await hot.shared.reload()
        await hot.refresh()
        state, record, spent = hot.state, hot.shared.record, hot.shared.record.spending
        folds_shared = state.folds_shared - state.folds_common
        shared = folds_shared / max(1, state.folds_made)
        return Stats(
            turns=state.turns, tokens=state.tokens, sessions=state.sessions, branches=branches, channels=len(record.channels),
            seats={seat: {"turns": view.turns, "tokens": view.tokens} for seat, view in state.views.items() if seat != COMMON},
            folds=state.folds_made, folds_shared=folds_shared, model_calls=spent.calls,
            model_tokens_in=spent.tokens_in, model_tokens_out=spent.tokens_out, model_failures=spent.failures,
            model_calls_saved=round(spent.calls * shared), model_tokens_saved=round((spent.tokens_in + spent.tokens_out) * shared),
        )  # fmt: skip


def _tellable(newest: Turn | None) -> Turn:
    """The newest turn, if it is one that can be told again."""
    if newest is None:
        raise UnknownTurn("the story has no turn yet that could be told again")
    if newest.kind not in SPOKEN_KINDS:
        raise InvalidInput(f"the newest turn is {newest.kind!r}: only what was told can be told again")
    if not newest.text:
        raise InvalidInput("the newest turn was forgotten, and cannot be told again: append another")
    return newest
