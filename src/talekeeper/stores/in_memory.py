"""Stories in plain dictionaries: for tests, and for stories that may vanish with the process. The same rules as any store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from talekeeper.errors import InvalidInput, StoreClosed
from talekeeper.model import MemoryKey
from talekeeper.ports import (
    ENTRIES_ONLY,
    MAIN,
    Branch,
    Commit,
    Entry,
    Erase,
    Extent,
    FoldRecord,
    Found,
    GatheredRecord,
    Head,
    Outline,
    Position,
    Postings,
    Read,
    Snapshot,
    Span,
    StoryRecord,
    TextRecord,
    check_branches,
    targets,
)  # fmt: skip
from talekeeper.stores import refusals


@dataclass(slots=True)
class _Story:
    """One story and everything of it."""

    record: StoryRecord
    logs: dict[int, list[Entry]]
    ids: dict[str, Position] = field(default_factory=dict)
    targets: dict[str, dict[Position, None]] = field(default_factory=dict)
    folds: dict[str, FoldRecord] = field(default_factory=dict)
    texts: dict[str, dict[int, TextRecord]] = field(default_factory=dict)
    gathered: dict[str, dict[str, GatheredRecord]] = field(default_factory=dict)
    snapshots: dict[int, dict[int, Snapshot]] = field(default_factory=dict)
    index: dict[str, dict[Position, None]] = field(default_factory=dict)
    indexed: dict[Position, frozenset[str]] = field(default_factory=dict)

    def head(self, branch: int) -> int:
        return self.record.branches[branch].at + len(self.logs[branch])

    def is_all(self, extent: Extent | None) -> bool:
        """Whether nothing has come since someone looked."""
        if extent is None:
            return True
        entries = sum(len(self.targets.get(name, ())) for name in extent.about)
        return (len(self.folds), entries) == (extent.folds, extent.entries)

    def get(self, position: Position) -> Entry | None:
        branch = self.record.branches.get(position.branch)
        if branch is None or not branch.at < position.seq <= self.head(branch.id):
            return None
        return self.logs[branch.id][position.seq - branch.at - 1]

    # -- writing: checked first, so that a refused commit leaves nothing behind ------------------------------------------

    def check(self, commit: Commit) -> None:
        if commit.rev != self.record.rev:
            raise refusals.other_revision(commit.story, self.record.rev, commit.rev)
        if commit.branches:
            check_branches(self.record.branches, commit.branches)
        heads = {branch.id: branch.at for branch in commit.branches}
        heads |= {branch: self.head(branch) for branch in self.record.branches}
        for number, seq in commit.heads.items():
            if heads.get(number) != seq:
                raise refusals.other_head(commit.story, number, heads.get(number), seq)
        for entry in commit.entries:
            if entry.branch not in heads:
                raise refusals.no_branch(commit.story, entry.branch)
            if entry.seq != heads[entry.branch] + 1:
                raise refusals.out_of_line(entry.branch, heads[entry.branch], entry.seq)
            heads[entry.branch] = entry.seq
        if commit.erase is not None and not self.is_all(commit.erase.extent):
            raise refusals.more_to_erase(commit.story)
        ids = [entry.id for entry in commit.entries if entry.id is not None]
        if len(set(ids)) < len(ids) or not self.ids.keys().isdisjoint(ids):
            raise refusals.id_taken(commit.story, ids)

    def apply(self, commit: Commit) -> int:
        if commit.erase is not None:
            self._erase(commit.erase)
        self._update(commit)
        for entry in commit.entries:
            self.logs[entry.branch].append(entry)
            self._tie(entry)
        for fold in commit.folds:
            self.folds.setdefault(fold.key, fold)
        for text in commit.texts:
            self.texts.setdefault(text.key, {}).setdefault(text.branch, text)
        for one in commit.gathered:
            if one.key in self.folds:
                self.gathered.setdefault(one.key, {}).setdefault(one.name, one)
        if commit.snapshot is not None:
            self.snapshots.setdefault(commit.snapshot.branch, {}).setdefault(commit.snapshot.seq, commit.snapshot)
        for position, terms in commit.index.items():
            if position not in self.indexed and self.get(position) is not None:
                self.indexed[position] = frozenset(terms)
                for term in self.indexed[position]:
                    self.index.setdefault(term, {})[position] = None
        return self.record.rev

    def _update(self, commit: Commit) -> None:
        record = self.record
        branches = {**record.branches}
        for branch in commit.branches:
            known = branches.get(branch.id)
            branches[branch.id] = branch if known is None else replace(known, name=branch.name)
            self.logs.setdefault(branch.id, [])
        self.record = replace(
            record,
            rev=record.rev + commit.touch,
            config=record.config if commit.config is None else commit.config,
            branches=branches,
            channels={**record.channels, **commit.channels},
            spending=record.spending if commit.spending is None else record.spending + commit.spending,
            health=record.health if commit.health is None else commit.health,
        )

    def _tie(self, entry: Entry) -> None:
        if entry.id is not None:
            self.ids[entry.id] = entry.position
        for target in targets(entry.extra):
            self.targets.setdefault(target, {})[entry.position] = None

    def _erase(self, erase: Erase) -> None:
        for entry in erase.entries:
            old = self.get(entry.position)
            if old is not None:
                if old.id is not None:
                    del self.ids[old.id]
                for target in targets(old.extra):
                    _take_out(self.targets, target, old.position)
                self.logs[entry.branch][entry.seq - self.record.branches[entry.branch].at - 1] = entry
                self._tie(entry)
        for key in erase.folds:
            self.folds.pop(key, None)
            self.texts.pop(key, None)
            self.gathered.pop(key, None)
        if erase.snapshots:
            self.snapshots.clear()
        for position in erase.index:
            for term in self.indexed.pop(position, ()):
                _take_out(self.index, term, position)

    # -- reading ---------------------------------------------------------------------------------------------------------

    def entries(self, request: Read) -> list[Entry]:
        entries: list[Entry] = []
        for span in request.spans:
            if span.branch in self.logs:
                start = self.record.branches[span.branch].at + 1
                entries += self.logs[span.branch][max(span.first - start, 0) : max(span.last - start + 1, 0)]
        places = [*request.positions, *(self.ids[own] for own in request.ids if own in self.ids)]
        for target in request.targeting:
            places += sorted(self.targets.get(target, ()))
        return entries + [entry for entry in map(self.get, places) if entry is not None]

    def snapshot(self, path: Sequence[Span]) -> Snapshot | None:
        for span in path:
            newest = max((seq for seq in self.snapshots.get(span.branch, ()) if span.first <= seq <= span.last), default=None)
            if newest is not None:
                return self.snapshots[span.branch][newest]
        return None

    def found(self, request: Read) -> Found:
        keys: Sequence[str] = list(self.folds) if request.all_folds else request.folds
        texts: Sequence[str] = list(self.texts) if request.all_folds else request.folds
        return Found(
            entries=self.entries(request),
            outlines=[_outline(entry) for entry in map(self.get, request.outlines) if entry is not None],
            folds=[self.folds[key] for key in keys if key in self.folds],
            texts=[text for key in texts for text in self.texts.get(key, {}).values()],
            gathered=[one for key in keys for one in self.gathered.get(key, {}).values()],
            snapshot=self.snapshot(request.snapshot_on),
        )

    def postings(self, term: str) -> list[Postings]:
        found: dict[tuple[int, int], list[int]] = {}
        for entry in map(self.get, self.index.get(term, ())):
            if entry is not None:
                found.setdefault((entry.branch, entry.channel), []).append(entry.seq)
        return [Postings(branch, channel, sorted(seqs)) for (branch, channel), seqs in found.items()]


def _take_out(rows: dict[str, dict[Position, None]], name: str, position: Position) -> None:
    """Removes a position from a row, and with the last one the row: its name may be what is to be forgotten."""
    del rows[name][position]
    if not rows[name]:
        del rows[name]


def _outline(entry: Entry) -> Outline:
    return Outline(entry.branch, entry.seq, entry.kind, entry.voice, entry.channel, entry.tokens, not entry.text, entry.id, entry.extra)


def _own(commit: Commit) -> Commit:
    """The same with copies of what was derived: whoever made it may go on with it."""
    return commit._replace(
        config=_copy(commit.config),
        folds=[replace(fold, shape=_copy(fold.shape), sentences=_copy(fold.sentences)) for fold in commit.folds],
        texts=[replace(text, sentences=_copy(text.sentences)) for text in commit.texts],
        gathered=[replace(one, value=_copy(one.value)) for one in commit.gathered],
        snapshot=None if commit.snapshot is None else replace(commit.snapshot, state=_copy(commit.snapshot.state)),
        health=_copy(commit.health),
    )


def _copy(value: Any) -> Any:
    """What another store would make of a value: JSON, and back."""
    try:
        return json.loads(json.dumps(value, default=dict))
    except (TypeError, ValueError) as exc:
        raise InvalidInput(f"a value cannot be stored: {exc}") from exc


class InMemoryStore:
    """Keeps stories as long as the process lives. Entries are shared as they are given; what was derived is copied."""

    def __init__(self) -> None:
        self._stories: dict[MemoryKey, _Story] = {}
        self._numbered: dict[int, _Story] = {}
        self._numbers = count(1)
        self._closed = False

    async def create(self, key: MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        self._check_open()
        if key not in self._stories:
            main = Branch(1, MAIN)
            record = StoryRecord(next(self._numbers), key, 1, _copy(config), {main.id: main}, {})
            self._stories[key] = self._numbered[record.id] = _Story(record, {main.id: []})
        return self._stories[key].record

    async def load(self, key: MemoryKey) -> StoryRecord | None:
        self._check_open()
        return self._stories[key].record if key in self._stories else None

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        self._check_open()
        mine = (key for key in self._stories if tenant_id is None or key.tenant_id == tenant_id)
        return sorted(mine, key=lambda key: (key.tenant_id, key.user_id, key.session_id))

    async def head(self, story: int, branch: int) -> Head:
        held = self._held(story)
        if branch not in held.logs:
            raise refusals.no_branch(story, branch)
        return Head(held.record.rev, held.head(branch))

    async def read(self, request: Read) -> Found:
        self._check_open()
        held = self._numbered.get(request.story)
        return Found() if held is None else held.found(request)

    async def write(self, commit: Commit) -> int:
        held = self._held(commit.story)
        held.check(commit)
        return held.apply(commit if commit[3:] == ENTRIES_ONLY else _own(commit))

    async def search(self, story: int, terms: Sequence[str]) -> list[list[Postings]]:
        self._check_open()
        held = self._numbered.get(story)
        return [[] if held is None else held.postings(term) for term in terms]

    async def delete(self, key: MemoryKey) -> bool:
        self._check_open()
        held = self._stories.pop(key, None)
        if held is None:
            return False
        del self._numbered[held.record.id]
        return True

    async def close(self) -> None:
        self._closed = True
        self._stories.clear()
        self._numbered.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store in memory was closed")

    def _held(self, story: int) -> _Story:
        self._check_open()
        if story not in self._numbered:
            raise refusals.no_story(story)
        return self._numbered[story]
