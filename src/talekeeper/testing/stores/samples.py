"""What the tests write, and how they look at what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from talekeeper.model import MemoryKey
from talekeeper.ports import (
    Branch,
    Commit,
    Entry,
    Erase,
    FoldRecord,
    GatheredRecord,
    Position,
    Read,
    Snapshot,
    Span,
    Spending,
    Store,
    StoryRecord,
    TextRecord,
)

KEY = MemoryKey("acme", "ana", "ash-crown")
CONFIG: Mapping[str, Any] = {"seats": [{"id": "dm", "aliases": ["the Keeper"]}], "secret": 2**127 + 1, "since": {}}


def entry(seq: int, text: str = "", *, branch: int = 1, channel: int = 1, **changes: Any) -> Entry:
    """An entry of the log with everything in it that a test does not care about."""
    words = text or f"turn {seq} of branch {branch}"
    return Entry(branch, seq, "said", "dm", "DM", words, channel, "tavern", 7, "heuristic", 1700000000.25)._replace(**changes)


def fold(key: str, text: str = "They met.") -> FoldRecord:
    return FoldRecord(key, {"level": 0, "refs": [[1, 1], [1, 2]]}, [[text, ["t-1"], False]])


def text_of(key: str, branch: int = 1, born: int = 2, text: str = "A model's words.") -> TextRecord:
    return TextRecord(key, branch, born, [[text, ["t-1", "t-2"], True]])


def gathered(key: str, name: str = "names.1", value: Any = ("Mira", 3)) -> GatheredRecord:
    return GatheredRecord(key, name, list(value) if isinstance(value, tuple) else value)


async def fill(store: Store, story: StoryRecord) -> int:
    """A story with something of everything; returns its revision."""
    rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "what if", 1, 2)], channels={1: ("dm", "rogue")}))
    entries = [
        entry(1), entry(2, id="own", extra={"target": "t-1"}), entry(3, extra={"target": "t-2"}),
        entry(3, branch=2, extra={"target": "t-2", "mentions": ["Elena"]}),
    ]  # fmt: skip
    return await store.write(
        Commit(
            story.id, rev, touch=True, entries=entries, folds=[fold("a"), fold("b")], texts=[text_of("a"), text_of("b")],
            gathered=[gathered("a"), gathered("b")], snapshot=Snapshot(1, 3, {"turns": 3}),
            index={Position(1, 1): ["dragon", "gate"], Position(1, 2): ["dragon"]},
            spending=Spending(1, 2, 3, 4), health={"state": "healthy"},
        )
    )  # fmt: skip


def whole_commit(story: int, rev: int, entries: Sequence[Entry]) -> Commit:
    """A commit that would change everything of a story that `fill` made."""
    return Commit(
        story, rev, touch=True, entries=entries, channels={9: ("new",)}, branches=[Branch(1, "renamed"), Branch(9, "new", 1, 1)],
        config={"new": True}, folds=[fold("new")], texts=[text_of("new"), text_of("a", branch=9)], snapshot=Snapshot(1, 1, {"new": True}),
        gathered=[gathered("new"), gathered("a", "new")], index={Position(1, 3): ["new"]},
        spending=Spending(9, 9, 9, 9), health={"new": True},
        erase=Erase([entry(1)._replace(text="")], ["a", "b"], {Position(1, 1): ["dragon", "gate"]}, snapshots=True),
    )  # fmt: skip


async def log(store: Store, story: StoryRecord, branch: int = 1) -> list[Entry]:
    """All entries of a branch."""
    return list((await store.read(Read(story.id, spans=[Span(branch, 1, 1 << 60)]))).entries)


async def loaded(store: Store, key: MemoryKey = KEY) -> StoryRecord:
    record = await store.load(key)
    assert record is not None
    return record


async def hits(store: Store, story: StoryRecord, *terms: str) -> list[list[tuple[int, int, int]]]:
    """What a search finds, as branch, number and channel, in order."""
    found = await store.search(story.id, terms)
    return [sorted((branch, seq, channel) for branch, channel, seqs in places for seq in seqs) for places in found]


async def gathered_over(store: Store, story: StoryRecord, *keys: str) -> list[GatheredRecord]:
    """What was gathered over some folds, or all there are, in order."""
    found = await store.read(Read(story.id, folds=keys, all_folds=not keys))
    return sorted(found.gathered, key=lambda each: (each.key, each.name))


async def everything(store: Store, story: StoryRecord) -> Sequence[Any]:
    """All that can be read of a story that `fill` made."""
    record = await loaded(store, story.key)
    found = await store.read(
        Read(
            story.id,
            spans=[Span(branch, 0, 1 << 60) for branch in record.branches],
            ids=["own", "new"],
            targeting=["t-1", "t-2"],
            all_folds=True,
            snapshot_on=[Span(1, 1, 1 << 60)],
        )
    )
    folds = sorted(found.folds, key=lambda each: each.key)
    texts = sorted(found.texts, key=lambda each: (each.key, each.branch))
    heads = [await store.head(story.id, branch) for branch in record.branches]
    derived = folds, texts, await gathered_over(store, story), found.snapshot
    return record, heads, list(found.entries), *derived, await hits(store, story, "dragon", "gate", "new")
