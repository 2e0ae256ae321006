"""Whatever is done to them, and in whatever order, all stores give the same answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from talekeeper.errors import TalekeeperError
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Entry, Erase, Position, Read, Snapshot, Span, Spending, Store, StoryRecord
from talekeeper.stores import InMemoryStore, SqliteStore
from talekeeper.testing.stores.samples import entry, fold, gathered, hits, text_of

KEYS = [MemoryKey("acme", "ana", "1"), MemoryKey("acme", "ana:1", ""), MemoryKey("acme:ana", "1", "")]
WORDS = ["dragon", "gate", "龍", "Gate", "two words", "_"]
NAMES = ["a", "b", "c"]

numbers = st.integers(1, 4)
texts = st.text(max_size=12)
places = st.builds(Position, numbers, st.integers(0, 7))
spans = st.builds(Span, numbers, st.integers(-1, 6), st.integers(0, 9))
channels = st.integers(1, 3)
terms = st.lists(st.sampled_from(WORDS) | texts, max_size=4)
about = st.sampled_from(NAMES) | st.lists(st.sampled_from(NAMES), max_size=3)
extras = st.none() | st.fixed_dictionaries({}, optional={"target": about, "mentions": st.lists(texts, max_size=2)})
ids = st.none() | st.none() | st.sampled_from(NAMES)


def some(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=most)


def turn(branch: int, seq: int, text: str, **changes: Any) -> Entry:
    """An entry; its channel follows from its place, since no entry ever changes its audience."""
    return entry(seq, text, branch=branch, channel=1 + (branch + seq) % 3, **changes)


@st.composite
def commits(draw: st.DrawFn) -> Callable[[StoryRecord, dict[int, int]], Commit]:
    """A commit, to be aimed at a story as it is: mostly where the next entries belong, sometimes beside it."""
    aims = draw(st.lists(st.tuples(numbers, st.sampled_from([0, 0, 0, 0, 0, 1, -1]), texts, ids, extras), max_size=3))
    stale = draw(st.sampled_from([0, 0, 0, 0, 1]))
    branch = draw(
        some(st.tuples(numbers, st.sampled_from(["main", "other", "third", "fourth"]), st.none() | numbers, st.integers(0, 5)), 1)
    )
    left = draw(some(st.tuples(places, extras), 1))
    erase = draw(st.none() | st.none() | st.builds(
        Erase, folds=some(st.sampled_from(NAMES)), index=st.dictionaries(places, st.just(()), max_size=2), snapshots=st.booleans(),
    ))  # fmt: skip
    rest: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "touch": st.booleans(),
                "heads": st.dictionaries(numbers, st.integers(0, 3), max_size=1),
                "channels": st.dictionaries(channels, st.tuples(texts), max_size=2),
                "config": st.dictionaries(texts, texts, max_size=2),
                "folds": some(st.builds(fold, st.sampled_from(NAMES), texts)),
                "texts": some(st.builds(text_of, st.sampled_from(NAMES), numbers, numbers, texts)),
                "gathered": some(
                    st.builds(gathered, st.sampled_from(NAMES), st.sampled_from(WORDS), texts | st.lists(numbers, max_size=2))
                ),
                "snapshot": st.builds(Snapshot, numbers, numbers, st.dictionaries(texts, numbers, max_size=1)),
                "index": st.dictionaries(places, terms, max_size=3),
                "spending": st.builds(Spending, numbers, numbers, numbers, numbers),
                "health": st.dictionaries(texts, texts, max_size=1),
            },
        )
    )

    def aim(story: StoryRecord, heads: dict[int, int]) -> Commit:
        heads = {number: at for number, _, _, at in branch} | heads
        entries = []
        for number, beside, text, own, extra in aims:
            heads[number] = heads.get(number, 0) + 1
            entries.append(turn(number, heads[number] + beside, text, id=own, extra=extra or None))
        leftovers = [turn(at.branch, at.seq, "gone", extra=extra or None) for at, extra in left]
        gone = None if erase is None else replace(erase, entries=leftovers)
        branches = [Branch(*each) for each in branch]
        return Commit(story.id, story.rev + stale, entries=entries, branches=branches, erase=gone, **rest)

    return aim


steps = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.lists(commits(), min_size=1, max_size=3)),
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.lists(commits(), min_size=1, max_size=3)),
    st.tuples(st.just("write"), st.sampled_from(KEYS), st.lists(commits(), min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.sampled_from(KEYS), st.just(())),
    st.tuples(st.just("reopen"), st.sampled_from(KEYS), st.just(())),
)


async def outcome(asked: Any) -> Any:
    try:
        return await asked
    except TalekeeperError as exc:
        return type(exc)


async def seen(store: Store) -> list[Any]:
    """Everything there is to see in a store."""
    found: list[Any] = [await store.keys()]
    for key in found[0]:
        story = await store.load(key)
        assert story is not None
        heads = {branch: await store.head(story.id, branch) for branch in story.branches}
        everything = [Span(branch, 0, 99) for branch in sorted(story.branches)]
        read = await store.read(Read(story.id, spans=everything, ids=NAMES, targeting=NAMES, all_folds=True, snapshot_on=everything))
        folds = sorted(read.folds, key=lambda each: each.key)
        texts = sorted(read.texts, key=lambda each: (each.key, each.branch))
        postings = await hits(store, story, *WORDS)
        over = sorted(read.gathered, key=lambda each: (each.key, each.name))
        found += [story, heads, [plain(each) for each in read.entries], folds, texts, over, read.snapshot, postings]
    return found


def plain(each: Entry) -> Entry:
    return each._replace(extra=dict(each.extra) if each.extra else None)


async def agree(script: list[Any], path: Path) -> None:
    memory, sqlite = InMemoryStore(), await SqliteStore.open(path, durable=False)
    try:
        for what, key, aims in script:
            if what == "reopen":
                await sqlite.close()
                sqlite = await SqliteStore.open(path, durable=False)
            elif what == "delete":
                assert await memory.delete(key) == await sqlite.delete(key)
            else:
                story = await memory.create(key, {"key": key.composite()})
                assert await sqlite.create(key, {"key": key.composite()}) == story
                heads = {branch: (await memory.head(story.id, branch)).seq for branch in story.branches}
                batch = [aim(story, heads) for aim in aims]
                expected = [await outcome(memory.write(commit)) for commit in batch]
                assert await asyncio.gather(*(outcome(sqlite.write(commit)) for commit in batch)) == expected
            assert await seen(sqlite) == await seen(memory)
    finally:
        await sqlite.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(steps, min_size=1, max_size=10))
def test_all_stores_agree(script: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(agree(script, Path(directory) / "saga.db"))


@settings(max_examples=40, deadline=None)
@given(st.lists(terms, min_size=1, max_size=6), st.lists(st.lists(spans, max_size=2), max_size=3), some(places, 4))
def test_all_stores_find_the_same(indexed: list[list[str]], paths: list[list[Span]], positions: list[Position]) -> None:
    async def ask(store: Store) -> list[Any]:
        story = await store.create(KEYS[0], {})
        entries = [entry(seq, channel=seq % 3) for seq in range(1, len(indexed) + 1)]
        index = {each.position: words for each, words in zip(entries, indexed, strict=True)}
        await store.write(Commit(story.id, story.rev, entries=entries, index=index))
        wanted = list(dict.fromkeys(word for words in indexed for word in words)) + WORDS
        found = await hits(store, story, *wanted)
        reads = [await store.read(Read(story.id, spans=path, positions=positions, outlines=positions)) for path in paths]
        await store.close()
        return [found, [(list(read.entries), sorted(read.outlines, key=lambda each: each[:2])) for read in reads]]

    async def compare(path: Path) -> None:
        assert await ask(await SqliteStore.open(path, durable=False)) == await ask(InMemoryStore())

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(Path(directory) / "saga.db"))
