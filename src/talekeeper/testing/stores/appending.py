"""The log grows at its end, a place at a time, and brings back every entry exactly as it was."""

from __future__ import annotations

import asyncio

import pytest

from talekeeper.errors import Conflict
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Entry, Head, Position, Read, Store, StoryRecord
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, log, text_of


class Appending(Opening):
    async def test_appends_move_the_head_and_not_the_revision(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for seq in range(1, 6):
            assert await store.write(Commit(story.id, story.rev, entries=[entry(seq)])) == story.rev
            assert await store.head(story.id, 1) == Head(story.rev, seq)
        assert await store.write(Commit(story.id, story.rev, entries=[entry(seq) for seq in range(6, 106)])) == story.rev
        assert await log(store, story) == [entry(seq) for seq in range(1, 106)]

    async def test_entries_come_back_exactly_as_they_were(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        entries = [
            entry(1, "Ünïcödé 龍 🐉 क्षत्रिय \u0301 \u202e\ttabs\nlines\r\n \\ ' \" % {} \x01\x7f"),
            entry(2, "x" * 100 * 1024),
            entry(3)._replace(text="", voice="", speaker="", kind="note", location=None, tokens=0, counter="", time=0.0),
            entry(4, time=1700000000.1234567, tokens=2**31, channel=12345, location="the Gate: “north”"),
            entry(
                5,
                id="my own: id/🐉",
                extra={"mentions": ["Elena", "博倫"], "when": "day 3", "deep": {"a": [1, 2.5, None, True, {"b": []}]}},
            ),
            entry(6, extra={"target": "t-0123456789abcdef", "at": [1, 3]}, kind="edit"),
        ]
        await store.write(Commit(story.id, story.rev, entries=entries[:3]))
        for each in entries[3:]:
            await store.write(Commit(story.id, story.rev, entries=[each]))
        found = await log(store, story)
        assert found == entries
        assert all(isinstance(each, Entry) for each in found)
        assert [each.position for each in found] == [Position(1, seq) for seq in range(1, 7)]

    @pytest.mark.parametrize("seqs", [[2], [0], [-1], [1, 3], [1, 1], [2, 1], [1, 2, 4]])
    async def test_an_entry_that_is_not_right_behind_the_head_conflicts(self, store: Store, seqs: list[int]) -> None:
        story = await store.create(KEY, CONFIG)
        with pytest.raises(Conflict):
            await store.write(Commit(story.id, story.rev, entries=[entry(seq) for seq in seqs]))
        assert await store.head(story.id, 1) == Head(story.rev, 0)
        assert await log(store, story) == []

    async def test_a_writer_who_expects_another_head_conflicts_and_leaves_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2)]))
        for heads in ({1: 1}, {1: 3}, {7: 2}, {-1: 2}, {1 << 18 | 1: 2}, {2**40: 2}, {1: 2, 7: 0}):
            with pytest.raises(Conflict):
                await store.write(Commit(story.id, story.rev, heads=heads, entries=[entry(3)], texts=[text_of("a")]))
        assert (await store.read(Read(story.id, folds=["a"]))).texts == []
        assert await store.head(story.id, 1) == Head(story.rev, 2)
        await store.write(Commit(story.id, story.rev, heads={1: 2}, entries=[entry(3)], texts=[text_of("a")]))
        assert (await store.read(Read(story.id, folds=["a"]))).texts == [text_of("a")]
        await store.write(
            Commit(story.id, story.rev, heads={1: 3, 2: 1}, branches=[Branch(2, "other", 1, 1)], entries=[entry(2, branch=2)])
        )

    async def test_a_place_is_taken_once(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1, "first")]))
        with pytest.raises(Conflict):
            await store.write(Commit(story.id, story.rev, entries=[entry(1, "second")]))
        assert await log(store, story) == [entry(1, "first")]

    async def test_of_those_who_race_for_a_place_one_wins(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for seq in range(1, 4):
            commits = [Commit(story.id, story.rev, entries=[entry(seq, f"from {number}")]) for number in range(40)]
            results = await asyncio.gather(*map(store.write, commits), return_exceptions=True)
            assert results.count(story.rev) == 1
            assert sum(isinstance(result, Conflict) for result in results) == 39
            (winner,) = (commit.entries[0] for commit, result in zip(commits, results, strict=True) if result == story.rev)
            assert (await log(store, story))[-1] == winner

    async def test_an_own_id_is_taken_once_per_story(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        other = await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1, id="mine")]))
        await store.write(Commit(other.id, other.rev, entries=[entry(1, id="mine")]))
        for entries in ([entry(2, id="mine")], [entry(2, id="two"), entry(3, id="two")]):
            with pytest.raises(Conflict):
                await store.write(Commit(story.id, story.rev, entries=entries))
        assert await store.head(story.id, 1) == Head(story.rev, 1)
        assert await store.write(Commit(story.id, story.rev, entries=[entry(2, id="two")])) == story.rev

    async def test_two_hundred_appends_to_fifty_stories_at_once(self, store: Store) -> None:
        stories = await asyncio.gather(*(store.create(MemoryKey("acme", "ana", str(number)), CONFIG) for number in range(50)))
        for first in (1, 5):
            turns = [(story, entry(seq, f"{story.id}.{seq}")) for seq in range(first, first + 4) for story in stories]
            await asyncio.gather(*(store.write(Commit(story.id, story.rev, entries=[turn])) for story, turn in turns))
        for story in stories:
            assert await store.head(story.id, 1) == Head(story.rev, 8)
            assert [each.text for each in await log(store, story)] == [f"{story.id}.{seq}" for seq in range(1, 9)]
            assert (await store.read(Read(story.id, positions=[Position(1, 7)]))).entries == [entry(7, f"{story.id}.7")]

    async def test_a_caller_who_gives_up_disturbs_nobody(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        impatient = asyncio.create_task(store.write(Commit(story.id, story.rev, entries=[entry(1)])))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        head = await settled_head(store, story)
        assert head.seq in (0, 1)
        await store.write(Commit(story.id, story.rev, entries=[entry(head.seq + 1)]))


async def settled_head(store: Store, story: StoryRecord) -> Head:
    """The head after everything that was accepted so far."""
    await store.write(Commit(story.id, story.rev))
    return await store.head(story.id, 1)
