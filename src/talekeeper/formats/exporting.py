"""A story, line by line, into a file. The log passes by in pages; behind each entry stands what cannot be derived from the log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from typing import TYPE_CHECKING

from talekeeper import rim
from talekeeper.errors import Conflict, StoreCorrupt, UnknownStory
from talekeeper.folds.nodes import Node
from talekeeper.formats.jsonl import FORMAT, PAGE, VERSION, Row, as_line
from talekeeper.live.shared import check_finished
from talekeeper.live.stepping import AT_ONCE
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Entry, FoldRecord, Read, Span, StoryRecord, TextRecord
from talekeeper.story.replay import Replay, snapshot_before, snapshots_of

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper

_CHANGED = "the story changed while it was exported: export it again"


async def export_story(keeper: Keeper, key: MemoryKey) -> AsyncIterator[str]:
    """The story as lines, each with its newline.

    Raises `Conflict` where the story changed meanwhile (more than by plain appends, which are left out), `StoreCorrupt` where its log
    has a gap. Lines that came before are worth nothing then."""
    store = keeper.store
    record = await store.load(rim.key(key))
    if record is None:
        raise UnknownStory(f"no story under the key {key.composite()!r}")
    check_finished(record)
    counts: Counter[str] = Counter()
    async for kind, row in _rows(keeper, record):
        counts[kind] += 1
        yield as_line(kind, row)
        if counts[kind] % AT_ONCE == 0:
            await asyncio.sleep(0)
    now = await store.load(key)
    if now is None or (now.id, now.rev) != (record.id, record.rev):
        raise Conflict(_CHANGED)
    yield as_line("end", dict(counts))


async def _rows(keeper: Keeper, record: StoryRecord) -> AsyncIterator[tuple[str, Row]]:
    yield "story", {
        "format": FORMAT, "version": VERSION, "key": asdict(record.key), "config": dict(record.config), "spending": asdict(record.spending),
        "health": dict(record.health),
    }  # fmt: skip
    branches = sorted(record.branches.values(), key=lambda branch: branch.id)
    for branch in branches:
        yield "branch", asdict(branch)
    for number, hearers in sorted(record.channels.items()):
        yield "channel", {"id": number, "hearers": list(hearers)}
    log = _Log(keeper, record)
    for branch in branches:
        async for row in log.segment(branch):
            yield row


class _Log:
    """The entries of a story, and behind each what cannot be derived from them.

    The store finds folds by their keys alone, so the log is replayed beside: it tells which folds there ever were."""

    def __init__(self, keeper: Keeper, record: StoryRecord) -> None:
        self._keeper = keeper
        self._store = keeper.store
        self._record = record
        self._born: dict[tuple[int, int], set[str]] = {}  # folds with a text that was born there
        self._forgotten: set[tuple[int, int]] = set()
        self._tainted: set[str] = set()

    async def segment(self, branch: Branch) -> AsyncIterator[tuple[str, Row]]:
        """A branch's own entries with their company."""
        store, record = self._store, self._record
        rev, head = await store.head(record.id, branch.id)
        if rev != record.rev:
            raise Conflict(_CHANGED)  # what was told since may have hearers that the record does not know
        marks = set(await snapshots_of(store, record.id, branch, head))
        replay = await self._replay(branch, branch.at)
        for first, last in _pages(branch.at, head, marks):
            entries = await self._page(branch, first, last)
            lost = self._note_folds(await replay.go(last))
            for entry in entries:
                yield "entry", entry._asdict()
                for text in await self._texts(entry):
                    yield "text", asdict(text)
            for fold in await self._folds(lost):
                yield "fold", asdict(fold)
            if last in marks:
                yield "checkpoint", {"branch": branch.id, "seq": last}
                replay = await self._replay(branch, last)

    async def _replay(self, branch: Branch, at: int) -> Replay:
        replay = Replay(self._keeper, self._record, branch, await snapshot_before(self._store, self._record, branch, at))
        await replay.go(at)
        return replay

    async def _page(self, branch: Branch, first: int, last: int) -> Sequence[Entry]:
        entries = (await self._store.read(Read(self._record.id, spans=[Span(branch.id, first, last)]))).entries
        if [entry.seq for entry in entries] != list(range(first, last + 1)):
            raise StoreCorrupt(f"the log of branch {branch.name!r} is not whole between {first} and {last}: run talekeeper doctor")
        self._forgotten.update(entry.position for entry in entries if entry.extra and "forgotten" in entry.extra)
        return entries

    def _note_folds(self, nodes: Mapping[str, Node]) -> list[str]:
        """Notes down which of these folds have texts, and returns the keys of those that have lost a turn."""
        lost = []
        for key, node in nodes.items():
            for text in node.texts:
                self._born.setdefault((text.branch, text.born), set()).add(key)
            if not self._forgotten.isdisjoint(ref.position for ref in node.refs) or not self._tainted.isdisjoint(node.children):
                self._tainted.add(key)
                lost.append(key)
        return lost

    async def _texts(self, entry: Entry) -> list[TextRecord]:
        keys = self._born.pop(entry.position, None)
        if not keys:
            return []
        found = (await self._store.read(Read(self._record.id, folds=sorted(keys)))).texts
        return [text for text in found if (text.branch, text.born) == entry.position]

    async def _folds(self, keys: Sequence[str]) -> Sequence[FoldRecord]:
        return (await self._store.read(Read(self._record.id, folds=keys))).folds if keys else ()


def _pages(at: int, head: int, marks: Set[int]) -> Iterator[tuple[int, int]]:
    """Stretches of entries, none longer than a page, each mark at the end of one."""
    first = at + 1
    for last in range(first, head + 1):
        if last in marks or last - first + 1 == PAGE or last == head:
            yield first, last
            first = last + 1
