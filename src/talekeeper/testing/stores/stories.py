"""A story is found by its key and by no other, keeps what belongs to it, and is gone once it is deleted."""

from __future__ import annotations

import asyncio
import unicodedata

import pytest

from talekeeper.errors import UnknownStory
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Head, Position, Read, Span, Spending, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, everything, fill, hits, loaded, log

ODD_KEYS = [
    MemoryKey("acme:bob", "1", "x"),
    MemoryKey("acme", "bob:1", "x"),
    MemoryKey("acme", "bob", "1:x"),
    MemoryKey("acme\\", "bob", "1"),
    MemoryKey("acme", "\\bob", "1"),
    MemoryKey("a'; DROP TABLE stories; --", '"', "`"),
    MemoryKey("%", "_", "*"),
    MemoryKey("🐉", "👩‍🚀", "🏳️‍🌈"),
    MemoryKey("Acme", "bob", "1"),
    MemoryKey("acme ", "bob", "1"),
    MemoryKey("acme", " bob", "1"),
    MemoryKey("acme\n", "bob", "1"),
    MemoryKey(unicodedata.normalize("NFC", "é"), "bob", "1"),
    MemoryKey(unicodedata.normalize("NFD", "é"), "bob", "1"),
    MemoryKey("龍", "\u200b", "\u202e"),
    MemoryKey("1", "01", "1.0"),
    MemoryKey("{}", "[]", "null"),
    MemoryKey("x" * 200, "y" * 200, "z" * 200),
]


class Stories(Opening):
    async def test_a_new_story_has_its_config_a_main_branch_and_nothing_else(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        assert story.key == KEY
        assert story.config == CONFIG
        assert story.branches == {1: Branch(1, "main", None, 0)}
        assert (story.channels, story.spending, story.health) == ({}, Spending(), {})
        assert await store.head(story.id, 1) == Head(story.rev, 0)
        assert await log(store, story) == []

    async def test_creating_again_returns_the_story_that_is_there(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1)], channels={1: ("dm",)}, touch=True))
        again = await store.create(KEY, {"other": True})
        assert again == await store.load(KEY)
        assert (again.id, again.config, again.channels) == (story.id, CONFIG, {1: ("dm",)})

    async def test_creating_at_once_makes_one_story(self, store: Store) -> None:
        made = await asyncio.gather(*(store.create(KEY, {"maker": number}) for number in range(20)))
        assert len({story.id for story in made}) == 1
        assert len({story.config["maker"] for story in made}) == 1

    async def test_loading_finds_the_story_or_nothing(self, store: Store) -> None:
        assert await store.load(KEY) is None
        story = await store.create(KEY, CONFIG)
        assert await store.load(KEY) == story
        assert await store.load(MemoryKey(KEY.tenant_id, KEY.user_id, "another")) is None

    async def test_keys_are_sorted_and_may_be_those_of_one_tenant(self, store: Store) -> None:
        assert await store.keys() == []
        keys = [MemoryKey(*parts) for parts in ("bxy", "axz", "axy", "ayx", "Bxy", "éxy", "龍xy")]
        for key in keys:
            await store.create(key, {})
        assert await store.keys() == sorted(keys, key=parts_of)
        assert await store.keys("a") == [MemoryKey(*parts) for parts in ("axy", "axz", "ayx")]
        assert await store.keys("nobody") == []

    async def test_different_keys_never_meet(self, store: Store) -> None:
        stories = {key: await store.create(key, {"key": key.composite()}) for key in ODD_KEYS}
        assert len({story.id for story in stories.values()}) == len(ODD_KEYS)
        for key, story in stories.items():
            await store.write(Commit(story.id, story.rev, entries=[entry(1, key.composite())], index={Position(1, 1): ["shared"]}))
        assert await store.keys() == sorted(ODD_KEYS, key=parts_of)
        for key, story in stories.items():
            loaded = await store.load(key)
            assert loaded is not None
            assert (loaded.id, loaded.key, loaded.config) == (story.id, key, {"key": key.composite()})
            assert [turn.text for turn in await log(store, story)] == [key.composite()]
            assert await hits(store, story, "shared") == [[(1, 1, 1)]]

    async def test_channels_are_added(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, channels={1: ("dm", "rogue"), 2: ()}))
        await store.write(Commit(story.id, rev, touch=True, channels={7: ("龍", "a,b", "dm")}, entries=[entry(1, channel=7)]))
        assert (await loaded(store)).channels == {1: ("dm", "rogue"), 2: (), 7: ("龍", "a,b", "dm")}

    async def test_config_health_and_spending(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, config={"seats": []}, spending=Spending(1, 20, 3, 0)))
        await store.write(Commit(story.id, story.rev, health={"state": "retry", "failures": 1}, spending=Spending(2, 5, 0, 1)))
        await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
        record = await loaded(store)
        assert (record.config, record.health, record.spending) == ({"seats": []}, {"state": "retry", "failures": 1}, Spending(3, 25, 3, 1))
        await store.write(Commit(story.id, story.rev, health={}, config={}))
        record = await loaded(store)
        assert (record.config, record.health, record.spending) == ({}, {}, Spending(3, 25, 3, 1))

    async def test_spending_of_many_adds_up(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await asyncio.gather(*(store.write(Commit(story.id, story.rev, spending=Spending(1, 10, 2, 1))) for _ in range(30)))
        assert (await loaded(store)).spending == Spending(30, 300, 60, 30)

    async def test_a_deleted_story_is_gone_and_its_number_is_not_used_again(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        await fill(store, story)
        await fill(store, other)
        before = await everything(store, other)
        assert await store.delete(KEY) is True
        assert await store.delete(KEY) is False
        assert await store.load(KEY) is None
        assert await store.keys() == [other.key]
        with pytest.raises(UnknownStory):
            await store.head(story.id, 1)
        with pytest.raises(UnknownStory):
            await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
        again = await store.create(KEY, {})
        assert again.id not in (story.id, other.id)
        for number in (story.id, again.id):
            found = await store.read(Read(number, spans=[Span(1, 1, 9)], ids=["own"], all_folds=True, snapshot_on=[Span(1, 1, 9)]))
            assert (list(found.entries), list(found.folds), list(found.texts), found.snapshot) == ([], [], [], None)
            assert list(found.gathered) == []
            assert await store.search(number, ["dragon"]) == [[]]
        assert await everything(store, other) == before

    async def test_the_number_of_the_newest_story_is_not_used_again_either(self, store: Store) -> None:
        numbers = []
        for _ in range(4):
            numbers.append((await store.create(KEY, {})).id)
            await store.delete(KEY)
        assert len(set(numbers)) == 4


def parts_of(key: MemoryKey) -> tuple[str, str, str]:
    return key.tenant_id, key.user_id, key.session_id
