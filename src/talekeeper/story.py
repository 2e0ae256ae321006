"""The front door: one branch of one story, to append to and to remember from.

Every method reads, thinks and writes once. `append` is durable when it returns and never waits for a model; `context` is built from
what is in memory, in time that follows the budget and not the length of the story. Telling and remembering are in modules of their
own; here is what an author does with a story: going back, branching, editing, forgetting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from talekeeper import recall as ranking
from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, UnknownFold, UnknownTurn
from talekeeper.folds import Node, Ref, extract, rewritten_key
from talekeeper.marking import marked
from talekeeper.model import AUTHOR_KINDS, BranchInfo, Fold, Health, HealthState, Mark, Marked, Stats, Turn
from talekeeper.paragraphs import as_fold
from talekeeper.ports import Branch, Commit, Entry, Erase, FoldRecord, Position, Span, targets
from talekeeper.remembering import Remembering, TurnRef
from talekeeper.replay import Past, look_back
from talekeeper.state import COMMON
from talekeeper.telling import SPOKEN, TRIES, Draft, Made, Telling, step_aside


class Story(Telling, Remembering):
    """A story on one of its branches. Get one from `Keeper.story` or `Story.fork`."""

    async def reveal(self, turn: TurnRef, to: Sequence[str], *, text: str | None = None, speaker: str = "", id: str | None = None) -> Turn:
        """Tells others of an old turn. Who heard the old one never changes: this is a new turn that cites it."""
        await self._hot.refresh()
        old = await self._resolve(turn)
        words = text if text is not None else f"{old.voice}: {old.text}" if old.voice else old.text
        return await self.append(speaker, words, heard_by=to, kind="said" if speaker else "event", cites=[old.id], id=id)

    async def at(self, turn: TurnRef) -> Past:
        """The story as it stood just after that turn (0: before the first), to look at. Nothing is changed by it."""
        await self._hot.refresh()
        return await look_back(self._hot, await self._number(turn))

    # -- time travel -----------------------------------------------------------------------------------------------------

    async def rewind(self, to: TurnRef, *, expected_version: str | None = None) -> int:
        """Goes back to just after that turn; 0 is the beginning. What came after stays as a branch of its own (see `branches`)."""
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            self._expect(expected_version)
            target = await self._number(to)
            if target != hot.state.seq:
                await self._rewind(target, expected_version)
            return target

    async def _number(self, turn: TurnRef) -> int:
        if turn == 0 and not isinstance(turn, bool):
            return 0
        if isinstance(turn, int) and not isinstance(turn, bool):
            if self._hot.path.position(turn) is None:
                raise UnknownTurn(f"no entry number {turn} on branch {self.branch!r}; it goes from 0 to {self._hot.state.seq}")
            return turn
        return (await self._resolve(turn)).seq

    async def _amend(self, make: Callable[[], Awaitable[Commit]]) -> None:
        """Writes a change to the story itself, again after someone else was first (our own background folds, if nobody else)."""
        hot, shared = self._hot, self._hot.shared
        for attempt in range(TRIES):
            try:
                await shared.store.write(await make())
                break
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                await step_aside(attempt)
                await hot.refresh()
        await shared.reload()

    async def _rewind(self, target: int, expected_version: str | None) -> None:
        hot = self._hot

        async def make() -> Commit:
            self._expect(expected_version)
            record = hot.shared.record
            heads = {} if expected_version is None else {hot.path.branch: hot.head}
            return Commit(story=record.id, rev=record.rev, touch=True, heads=heads, branches=self._rewound(target))

        await self._amend(make)
        await self._hot.refresh()

    def _rewound(self, target: int) -> list[Branch]:
        """What becomes of the branches when this one goes back: the tail keeps its entries under a new name. The last one is ours."""
        hot = self._hot
        at = hot.path.position(target)
        new = Branch(max(hot.shared.record.branches) + 1, self.branch, at.branch if at else None, target)
        return [self._left_behind(), new]

    def _left_behind(self) -> Branch:
        """This branch, once its name has gone to another."""
        branches = self._hot.shared.record.branches
        old = branches[self._hot.path.branch]
        taken = {branch.name for branch in branches.values()}
        kept = next(name for number in range(1, len(taken) + 2) if (name := f"{old.name}~{number}") not in taken)
        return Branch(old.id, kept, old.parent, old.at)

    async def fork(self, *, at: TurnRef | None = None, name: str | None = None) -> Story:
        """A new branch from that turn on (by default from now), as a story of its own; this one goes on as it was."""
        hot, shared = self._hot, self._hot.shared
        async with hot.lock:
            await hot.refresh()
            target = hot.state.seq if at is None else await self._number(at)
            taken = {branch.name for branch in shared.record.branches.values()}
            if name is None:
                name = next(free for number in range(1, len(taken) + 2) if (free := f"fork-{number}") not in taken)
            elif rim.name(name, "the branch's name") in taken:
                raise InvalidInput(f"there is a branch {name!r} already")
            elif "~" in name:
                raise InvalidInput(f"the name {name!r} has a ~ in it: such names are kept for what rewinds leave behind")
            called = name

            async def make() -> Commit:
                start = hot.path.position(target)
                branch = Branch(max(shared.record.branches) + 1, called, start.branch if start else None, target)
                return Commit(story=shared.record.id, rev=shared.record.rev, touch=True, branches=[branch])

            await self._amend(make)
        return await self._keeper.story(self.key, branch=name)

    async def branches(self) -> list[BranchInfo]:
        """All lines of the story, the oldest first."""
        shared = self._hot.shared
        await self._hot.refresh()
        record = shared.record
        rows = []
        for branch in sorted(record.branches.values(), key=lambda branch: branch.id):
            head = await shared.store.head(record.id, branch.id)
            if head.seq == branch.at and "~" in branch.name and branch.name != self.branch:
                continue  # left behind by two rewinds in a row: nothing was ever told on it
            parent = record.branches[branch.parent].name if branch.parent is not None else None
            rows.append(BranchInfo(name=branch.name, parent=parent, forked_at=branch.at, head=head.seq, current=branch.name == self.branch))
        return rows

    async def switch(self, branch: str) -> Story:
        """The story on another of its branches, such as one that a rewind left behind."""
        return await self._keeper.story(self.key, branch=branch)

    async def adopt(self, branch: str) -> int:
        """Goes over to another line of the story, such as one that a rewind left behind: from now on it bears this branch's name, and
        what bore it stays under another. Returns the number of its newest entry."""
        hot = self._hot

        async def make() -> Commit:
            record = hot.shared.record
            other = hot.shared.branch(branch)
            lines = [self._left_behind(), dataclasses.replace(other, name=self.branch)]
            return Commit(story=record.id, rev=record.rev, touch=True, branches=lines)

        async with hot.lock:
            await hot.refresh()
            if branch != self.branch:
                await self._amend(make)
                await hot.refresh()
            return self.head

    async def regenerate(
        self, text: str, *, voice: str | None = None, mentions: Sequence[str] = (), when: str | None = None, id: str | None = None,
        expected_version: str | None = None,
    ) -> Turn:  # fmt: skip
        """Replaces the newest turn by another of the same speaker, heard by the same seats; the old one stays as a swipe."""
        rim.text(text)
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            again = await self._told_before(id, text)
            if again is not None:
                return again
            self._expect(expected_version)
            old, later = await self._newest()
            if old is None:
                raise UnknownTurn("the story has no turn yet that could be told again")
            if old.kind not in SPOKEN:
                raise InvalidInput(f"the newest turn is {old.kind!r}: only what was told can be told again")
            draft = Draft(
                old.speaker, text, old.audience, old.location, old.kind, voice or old.voice or None, mentions, when or old.when, id,  # type: ignore[arg-type]
            )  # fmt: skip
            self._check(draft)

            async def make() -> Commit:
                self._expect(expected_version)
                branches = self._rewound(old.seq - 1)
                kept = [entry for entry in later if old.id not in targets(entry.extra)]
                if any(entry.kind == "edit" for entry in kept):  # an author's fold lasts until a source of it changes, and one has
                    kept = [entry for entry in kept if entry.kind != "override"]
                entries = [self._entry(draft, old.seq, {}), *kept]
                entries = [entry._replace(branch=branches[-1].id, seq=old.seq + offset) for offset, entry in enumerate(entries)]
                record = hot.shared.record
                return Commit(
                    story=record.id, rev=record.rev, touch=True, heads={hot.path.branch: hot.head}, branches=branches, entries=entries
                )  # fmt: skip

            await self._amend(make)
            await hot.refresh()
            self._keeper._appended(hot)
            return await self._resolve(old.seq)

    async def _newest(self) -> tuple[Turn | None, list[Entry]]:
        """The newest turn (as it was written, blank if it was forgotten), and what the author did after it."""
        hot = self._hot
        later: list[Entry] = []
        last = hot.state.seq
        while last:
            first = max(1, last - 63)
            found = await hot.read(spans=[Span(*piece) for piece in hot.path.spans(first, last)])
            for entry in reversed(found.entries):
                if entry.kind not in AUTHOR_KINDS:
                    return hot.turn(entry), later[::-1]
                later.append(entry)
            last = first - 1
        return None, []

    async def swipes(self) -> list[Turn]:
        """The turns that stood, on any branch, where the newest one stands now; that one is the last."""
        hot = self._hot
        await hot.refresh()
        current, _ = await self._newest()
        if current is None:
            return []
        before = hot.path.position(current.seq - 1)
        found: list[Turn] = []
        for branch in sorted(hot.shared.record.branches.values(), key=lambda branch: branch.id):
            parent = Position(branch.parent, branch.at) if branch.parent is not None and branch.at else None
            goes_on = before is not None and branch.id == before.branch
            if goes_on or (branch.at == current.seq - 1 and parent == before):
                found += [hot.turn(entry) for entry in (await hot.read(positions=[Position(branch.id, current.seq)])).entries]
        told = [turn for turn in found if turn.text and turn.kind not in AUTHOR_KINDS]
        return [turn for turn in told if turn.id != current.id] + [turn for turn in told if turn.id == current.id]

    # -- the author's hand -----------------------------------------------------------------------------------------------

    async def edit(self, turn: TurnRef, text: str, *, expected_version: str | None = None) -> Turn:
        """Changes what a turn says, on this branch, for all who heard it; every fold made from it follows. A rewind undoes it."""
        rim.text(text)
        target, _ = await self._author("edit", turn, text, expected_version)
        return await self.turn(target.id)

    async def pin(self, turn: TurnRef) -> Turn:
        """Keeps a turn word for word in the context of everyone who heard it, whatever the budget."""
        return (await self._author("pin", turn, ""))[0]

    async def unpin(self, turn: TurnRef) -> Turn:
        """Takes a pin back."""
        return (await self._author("unpin", turn, ""))[0]

    async def mark(
        self, topic: str, data: Mapping[str, Any], *, of: Sequence[TurnRef] = (), heard_by: Sequence[str] | None = None,
        rank: float = 0.0, keep: int = 16, drops: Sequence[str] = (), lasting: float | None = None,
    ) -> Marked:  # fmt: skip
        """Notes something in the log about the turns it is `of`. Those who heard all of them may know it, or of these the ones in
        `heard_by`. Of a topic, the `keep` of the highest `rank` last, and beside them all of the rank `lasting` or above.
        `drops`: ids of marks that it replaces. A rewind undoes it."""
        known = tuple(heard_by) if heard_by is not None else None
        return (await self._mark_all([Mark(topic, data, rank, keep, (), known, tuple(drops), lasting)], [of]))[0]

    async def mark_many(self, marks: Sequence[Mark], *, expected_version: str | None = None) -> list[Marked]:
        """Notes several things in one step: all of them stand in the log, or none does.

        `expected_version`: raise `Conflict` if anything came between."""
        checked = rim.marks(marks)
        return await self._mark_all(checked, [mark.of for mark in checked], expected_version) if checked else []

    async def _mark_all(
        self, marks: Sequence[Mark], of: Sequence[Sequence[TurnRef]], expected_version: str | None = None
    ) -> list[Marked]:  # fmt: skip
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            self._expect(expected_version)
            about = [tuple([await self._resolve(turn) for turn in turns]) for turns in of]
            checked = [rim.mark(dataclasses.replace(mark, of=turns)) for mark, turns in zip(marks, about, strict=True)]
            dropped = await self._dropped(name for mark in checked for name in mark.drops)

            def make() -> Made:
                channels: dict[int, tuple[str, ...]] = {}
                rows = enumerate(checked, 1)
                return [self._mark_entry(mark, self._sources_of(mark), dropped, channels, place) for place, mark in rows], channels

            places = [Position(hot.path.branch, entry.seq) for entry in await self._write(make, expected_version)]
            return [marked(hot, entry) for entry in await hot.marks_at(places)]

    async def _author(self, kind: str, turn: TurnRef, text: str, expected_version: str | None = None) -> tuple[Turn, Turn]:
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            target = await self._resolve(turn)
            at = await self._find(target.id)
            assert at is not None
            extra = {"target": target.id, "at": list(at)}

            def make() -> Made:
                number = hot.channel_number(target.audience)
                assert number is not None
                return [self._event(kind, "", text, None, number, 1, extra)], {}

            return target, (await self._write(make, expected_version))[0]

    async def override(self, fold: str, text: str) -> Fold:
        """Puts your own text in the place of a fold, until one of its sources changes. A rewind undoes it."""
        rim.text(text)
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            node = await self._node(fold)
            seats = await hot.supply(lambda: hot.state.holders(node))
            if not seats:
                raise UnknownFold(f"the fold {fold!r} is not part of any seat's memory on branch {self.branch!r}")

            def make() -> Made:
                channels: dict[int, tuple[str, ...]] = {}
                number = self._channel(tuple(sorted(seats)), channels)
                return [self._event("override", "", text, None, number, 1, {"target": node.key})], channels

            event = (await self._write(make))[0]
            made = await self._node_at(rewritten_key(node.key, event.id))
            return as_fold(made, hot.sources())

    async def forget(self, turn: TurnRef) -> None:
        """Removes a turn for good: its text, edits, index entries and every summary made from it, on all branches. There is no undo."""
        hot = self._hot
        async with hot.lock:
            await hot.refresh()
            at = await self._find(turn.id if isinstance(turn, Turn) else turn) if isinstance(turn, Turn | str) else None
            target = await self._resolve(turn)
            at = at or hot.path.position(target.seq)
            assert at is not None
            for other in self._keeper._branches_of(self.key):
                await other.checkpoint()
            name, place = target.id, at
            await self._amend(lambda: self._forget(name, place))
            self._keeper._drop(self.key)
            await hot.refresh()

    async def _forget(self, name: str, at: Position) -> Commit:
        """Blanks the turn and its edits, takes the folds made from it out, and puts them back made anew from what is left."""
        hot, shared = self._hot, self._hot.shared
        found = await hot.read(positions=[at], targeting=[name], all_folds=True)
        tainted = _made_from(name, found.folds)
        authored = (await hot.read(targeting=tainted)).entries if tainted else ()
        entries = [entry for entry in (*found.entries, *authored) if entry.text]
        erase = Erase(
            entries=[_blank(entry) for entry in entries], folds=tainted,
            # a snapshot knows what was mentioned and what the author did: those must be made anew, too
            snapshots=any(entry.kind in AUTHOR_KINDS or (entry.extra or {}).get("mentions") for entry in entries),
            index={entry.position: ranking.index_terms(entry.text, entry.voice, entry.kind) for entry in entries if entry.kind != "mark"},
        )  # fmt: skip
        again = await self._remake({record.key: Node.from_record(record) for record in found.folds}, tainted, {e.position for e in entries})
        return Commit(story=shared.record.id, rev=shared.record.rev, touch=True, erase=erase, folds=[node.record() for node in again])

    async def _remake(self, nodes: Mapping[str, Node], keys: Sequence[str], blank: Collection[Position]) -> list[Node]:
        """Folds made anew as if what stood at some places had never been there. Those by the author's hand, and what stood on them, are
        not: their words go. `keys` have smaller folds first."""
        hot = self._hot
        made: list[Node] = []
        gone: set[str] = set()
        for node in (nodes[key] for key in keys):
            if node.author or not gone.isdisjoint(node.children):
                gone.add(node.key)
            else:
                made.append(node)
        places = {self._text_at(ref): ref for node in made for ref in node.refs}
        texts = {entry.position: entry for entry in (await hot.read(positions=list(places))).entries}
        owners = {entry.position: entry for entry in (await hot.read(positions=[ref.position for ref in places.values()])).entries}

        def turns_of(refs: Sequence[Ref]) -> list[Turn]:
            return [
                hot.turn(owners[ref.position])._replace(text="" if self._text_at(ref) in blank else texts[self._text_at(ref)].text)
                for ref in refs
            ]

        for node in made:
            node.sentences = None
            node.gathered = {}
            told = "\n".join(turn.text for turn in turns_of(node.refs)).casefold()
            children = [nodes[key] for key in node.children]
            kept = (
                [label for child in children for label in child.known] if node.level else [label for label in node.known if label in told]
            )
            node.known = tuple(dict.fromkeys(kept))[:64]
            extract(node, lambda parent: [nodes[key] for key in parent.children], turns_of)
        return made

    def _text_at(self, ref: Ref) -> Position:
        """Where the text stands that a fold was made from: the turn itself, or the edit of it."""
        edited = self._hot.shared.names.position(ref.revision) if ref.revision else None
        return edited or ref.position

    async def _first_waiting(self) -> int | None:
        """The first turn whose fold a model is about to make. One that was given up for now is not waited for."""
        folder = self._keeper._folder(self._hot)
        if folder.health.state not in (HealthState.HEALTHY, HealthState.RETRY):
            return None
        return min((node.first for node in await folder.pending() if node.level == 0), default=None)

    # -- upkeep ----------------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Waits until no fold waits for a model (or the model is given up for now: see `health`) and what is due is stored."""
        hot = self._hot
        await hot.refresh()
        await self._keeper._folder(hot).settle()
        if hot.overdue or hot.saving.locked():
            await hot.checkpoint()

    def watch(self, watcher: Callable[[Health, Health], None]) -> Callable[[], None]:
        """Calls the watcher, with the health before and after, when a model's fold has come in and when health changes, until what
        this returns is called."""
        watchers = self._hot.watchers
        watchers.append(watcher)
        return lambda: watchers.remove(watcher) if watcher in watchers else None

    async def health(self) -> Health:
        """How the summarizer of this story is doing, and how many folds wait for it."""
        await self._hot.refresh()
        folder = self._keeper._folder(self._hot)
        waiting = await folder.pending(most=256, given_up=folder.health.state is HealthState.DEGRADED)
        return dataclasses.replace(folder.health, pending=len(waiting))

    async def stats(self) -> Stats:
        """What the story holds on this branch, and what it has cost in all."""
        hot = self._hot
        await hot.refresh()
        await hot.shared.reload()
        await hot.refresh()
        state, record = hot.state, hot.shared.record
        return Stats(
            turns=state.turns, tokens=state.tokens, sessions=state.sessions, branches=len(record.branches), channels=len(record.channels),
            seats={seat: {"turns": view.turns, "tokens": view.tokens} for seat, view in state.views.items() if seat != COMMON},
            folds=state.folds_made, folds_shared=state.folds_shared, model_calls=record.spending.calls,
            model_tokens_in=record.spending.tokens_in, model_tokens_out=record.spending.tokens_out, model_failures=record.spending.failures,
        )  # fmt: skip


def _made_from(turn: str, records: Iterable[FoldRecord]) -> list[str]:
    """The keys of all folds that a turn went into."""
    ordered = sorted(records, key=lambda record: record.shape["level"])
    tainted: dict[str, None] = {}
    for record in ordered:
        shape = record.shape
        if any(ref[2] == turn for ref in shape.get("refs", ())) or any(child in tainted for child in shape.get("children", ())):
            tainted[record.key] = None
    return list(tainted)


def _blank(entry: Entry) -> Entry:
    """What is left of a forgotten entry: its place, its size and who heard it."""
    extra = {name: value for name, value in (entry.extra or {}).items() if name in ("target", "at")}
    return entry._replace(text="", extra={**extra, "forgotten": len(entry.text)})
