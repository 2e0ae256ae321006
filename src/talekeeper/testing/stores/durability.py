"""What was written outlives the store that wrote it, and is seen by another at the same place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from talekeeper.errors import Conflict, StoreClosed, UnknownStory
from talekeeper.model import MemoryKey
from talekeeper.ports import Commit, Head, Read, Store, StoryRecord
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, everything, fill, log


class Durability(Opening):
    async def test_a_closed_store_says_so(self, place: Any) -> None:
        store = await self.open_store(place)
        story = await store.create(KEY, CONFIG)
        await store.close()
        await store.close()
        calls = [
            store.create(KEY, CONFIG), store.load(KEY), store.keys(), store.head(story.id, 1), store.read(Read(story.id)),
            store.write(Commit(story.id, story.rev, entries=[entry(1)])), store.search(story.id, ["dragon"]), store.delete(KEY),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(StoreClosed):
                await call

    async def test_closing_finishes_what_was_accepted(self, place: Any) -> None:
        store = await self.open_store(place)
        story = await store.create(KEY, CONFIG)
        writes = [asyncio.create_task(store.write(Commit(story.id, story.rev, entries=[entry(seq)]))) for seq in range(1, 21)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*writes) == [story.rev] * 20
        if self.durable:
            store = await self.open_store(place)
            assert await store.head(story.id, 1) == Head(story.rev, 20)
            await store.close()

    async def test_what_was_written_is_there_when_opened_again(self, place: Any) -> None:
        if not self.durable:
            pytest.skip("keeps nothing")
        store = await self.open_store(place)
        story, gone = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        rev = await fill(store, story)
        await store.delete(gone.key)
        before = await everything(store, story)
        await store.close()
        store = await self.open_store(place)
        assert await everything(store, story) == before
        assert await store.write(Commit(story.id, rev, entries=[entry(4)])) == rev
        assert (await store.create(gone.key, {})).id not in (story.id, gone.id)
        await store.close()

    async def test_two_stores_at_one_place_see_each_other(self, store: Store, place: Any) -> None:
        if not self.shared:
            pytest.skip("one store at a time")
        other = await self.open_store(place)
        story = await store.create(KEY, CONFIG)
        assert await other.create(KEY, {}) == story
        await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
        assert await other.head(story.id, 1) == Head(story.rev, 1)
        with pytest.raises(Conflict):
            await other.write(Commit(story.id, story.rev, entries=[entry(1, "too late")]))
        rev = await other.write(Commit(story.id, story.rev, touch=True, entries=[entry(2)]))
        with pytest.raises(Conflict):
            await store.write(Commit(story.id, story.rev, entries=[entry(3)]))
        assert await store.write(Commit(story.id, rev, entries=[entry(3)])) == rev
        assert await everything(store, story) == await everything(other, story)
        await other.delete(KEY)
        with pytest.raises(UnknownStory):
            await store.head(story.id, 1)
        with pytest.raises(UnknownStory):
            await store.write(Commit(story.id, rev, entries=[entry(4)]))
        await other.close()

    async def test_two_stores_at_one_place_lose_and_double_nothing(self, store: Store, place: Any) -> None:
        if not self.shared:
            pytest.skip("one store at a time")
        other = await self.open_store(place)
        stories = [await store.create(MemoryKey("acme", "ana", str(number)), CONFIG) for number in range(3)]

        async def tell(mine: Store, name: str, story: StoryRecord) -> None:
            for number in range(15):
                while True:
                    head = await mine.head(story.id, 1)
                    try:
                        await mine.write(Commit(story.id, head.rev, entries=[entry(head.seq + 1, f"{name} {number}")]))
                        break
                    except Conflict:
                        await asyncio.sleep(0)

        await asyncio.gather(*(tell(mine, name, story) for story in stories for mine, name in ((store, "one"), (other, "two"))))
        for story in stories:
            told = [each.text for each in await log(store, story)]
            assert sorted(told) == sorted(f"{name} {number}" for name in ("one", "two") for number in range(15))
            assert told == [each.text for each in await log(other, story)]
        await other.close()
