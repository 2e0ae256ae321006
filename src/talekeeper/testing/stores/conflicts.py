"""A commit is all or nothing, for the writer who knows the story as it is."""

from __future__ import annotations

import asyncio

import pytest

from talekeeper.errors import Conflict, UnknownBranch
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Erase, Head, Position, Read, Snapshot, Span, Spending, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, everything, fill, fold, gathered, text_of, whole_commit


class Conflicts(Opening):
    async def test_touch_makes_a_new_revision(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        first = await store.write(Commit(story.id, story.rev, touch=True))
        second = await store.write(Commit(story.id, first, touch=True, entries=[entry(1)]))
        assert story.rev < first < second
        assert await store.head(story.id, 1) == Head(second, 1)
        assert await store.write(Commit(story.id, second, health={"state": "retry"}, spending=Spending(1))) == second

    async def test_a_writer_who_saw_another_revision_conflicts_and_leaves_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        before = await everything(store, story)
        for stale in (rev - 1, rev + 1, story.rev):
            for commit in all_kinds(story.id, stale, 4):
                with pytest.raises(Conflict):
                    await store.write(commit)
        assert await everything(store, story) == before

    async def test_a_commit_with_one_bad_entry_leaves_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        before = await everything(store, story)
        for bad in ([entry(4), entry(6)], [entry(3)], [entry(4, id="own")], [entry(4), entry(5, branch=2)]):
            with pytest.raises(Conflict):
                await store.write(whole_commit(story.id, rev, bad))
        with pytest.raises(UnknownBranch):
            await store.write(whole_commit(story.id, rev, [entry(4), entry(1, branch=77)]))
        assert await everything(store, story) == before

    async def test_a_refused_commit_does_not_disturb_its_neighbours(self, store: Store) -> None:
        stories = [await store.create(MemoryKey("acme", "ana", str(number)), CONFIG) for number in range(60)]
        commits = [Commit(story.id, story.rev + number % 2, entries=[entry(1 + (number % 5 == 0))]) for number, story in enumerate(stories)]
        results = await asyncio.gather(*map(store.write, commits), return_exceptions=True)
        for number, (story, result) in enumerate(zip(stories, results, strict=True)):
            good = number % 2 == 0 and number % 5 != 0
            assert result == story.rev if good else isinstance(result, Conflict)
            assert await store.head(story.id, 1) == Head(story.rev, int(good))

    async def test_each_of_a_crowd_is_held_to_the_rules(self, store: Store) -> None:
        *crowd, odd = [await store.create(MemoryKey("acme", "ana", str(number)), CONFIG) for number in range(60)]
        strange: list[tuple[list[Commit], list[object]]] = [
            ([Commit(odd.id, odd.rev, [entry(1)])], [odd.rev]),
            ([Commit(odd.id, odd.rev + 1, [entry(2)])], [Conflict]),
            ([Commit(odd.id, odd.rev, [entry(3)])], [Conflict]),
            ([Commit(odd.id, odd.rev, [entry(2, branch=9)])], [UnknownBranch]),
            ([Commit(odd.id, odd.rev, [entry(2)]), Commit(odd.id, odd.rev, [entry(2)])], [odd.rev, Conflict]),
            ([Commit(odd.id, odd.rev, [entry(3, id="mine")])], [odd.rev]),
            ([Commit(odd.id, odd.rev, [entry(4, id="mine")])], [Conflict]),
            ([Commit(odd.id, odd.rev, [entry(4, extra={"target": "mine"})])], [odd.rev]),
            ([Commit(odd.id, odd.rev, [entry(5), entry(6)])], [odd.rev]),
            ([Commit(odd.id, odd.rev, [entry(7)], touch=True)], [odd.rev + 1]),
        ]
        for seq, (commits, expected) in enumerate(strange, 1):
            plain = [Commit(story.id, story.rev, [entry(seq)]) for story in crowd]
            results = await asyncio.gather(*map(store.write, [*plain, *commits]), return_exceptions=True)
            assert results[: len(crowd)] == [story.rev for story in crowd]
            assert [type(result) if isinstance(result, Exception) else result for result in results[len(crowd) :]] == expected
        assert await store.head(odd.id, 1) == Head(odd.rev + 1, 7)
        assert [each.seq for each in (await store.read(Read(odd.id, ids=["mine"], targeting=["mine"]))).entries] == [3, 4]
        for story in crowd:
            assert (await store.head(story.id, 1)).seq == len(strange)

    async def test_a_reader_sees_a_commit_wholly_or_not_at_all(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 0)]))

        async def write() -> None:
            for seq in range(1, 60):
                pair = [entry(seq, branch=1), entry(seq, branch=2)]
                await store.write(Commit(story.id, rev, entries=pair, folds=[fold(f"k{seq}")]))

        async def look() -> None:
            while True:
                found = await store.read(Read(story.id, spans=[Span(1, 1, 1000), Span(2, 1, 1000)], all_folds=True))
                assert len(found.entries) == 2 * len(found.folds)
                assert [each.seq for each in found.entries] == [*range(1, len(found.folds) + 1)] * 2
                if len(found.folds) == 59:
                    return
                await asyncio.sleep(0)

        await asyncio.gather(write(), look(), look())


def all_kinds(story: int, rev: int, seq: int) -> list[Commit]:
    """A commit of every kind there is."""
    return [
        Commit(story, rev),
        Commit(story, rev, touch=True),
        Commit(story, rev, entries=[entry(seq)]),
        Commit(story, rev, entries=[entry(seq, id="new")]),
        Commit(story, rev, heads={1: seq - 1}),
        Commit(story, rev, channels={9: ("new",)}),
        Commit(story, rev, branches=[Branch(9, "new", 1, 1)]),
        Commit(story, rev, config={"new": True}),
        Commit(story, rev, folds=[fold("new")]),
        Commit(story, rev, texts=[text_of("new")]),
        Commit(story, rev, gathered=[gathered("a", "new")]),
        Commit(story, rev, snapshot=Snapshot(1, seq, {})),
        Commit(story, rev, index={Position(1, 3): ["new"]}),
        Commit(story, rev, erase=Erase(folds=["a"])),
        Commit(story, rev, spending=Spending(1)),
        Commit(story, rev, health={"new": True}),
        whole_commit(story, rev, [entry(seq)]),
    ]
