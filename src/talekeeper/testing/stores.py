"""The contract of the port `Store`, as tests that any backend can run. For a store of your own:

    from talekeeper.testing.stores import StoreContract

    class TestMyStore(StoreContract):
        async def open_store(self, place):
            return await MyStore.open(place)

`place` is a fixture, a fresh path by default; override it if your store lives elsewhere. Opening the same place again must find what was
written there (else say `durable = False`), and two stores may have it open at once (else say `shared = False`).
The tests are coroutines: run them with pytest-asyncio (`asyncio_mode = auto`), or mark your class for anyio's plugin.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from talekeeper.errors import Conflict, InvalidInput, StoreClosed, UnknownBranch, UnknownStory
from talekeeper.model import MemoryKey
from talekeeper.ports import (
    Branch,
    Commit,
    Entry,
    Erase,
    Extent,
    FoldRecord,
    GatheredRecord,
    Head,
    Outline,
    Position,
    Postings,
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

NOWHERE = [Position(1, 4), Position(9, 1), Position(2, 1), Position(1, 2**33), Position(2**33, 1), Position(1, -1)]
ODD_TERMS = [
    "dragon", "Dragon", "DRAGON", "7", "007", "1e5", "_", "__init__", "snake_case", "ドラゴン", "龍", "ド", "дракон", "ДРАКОН", "ñandú",
    unicodedata.normalize("NFD", "ñandú"), "क्षत्रिय", "التنين", "ไทย", "ﬁ", "fi", "ß", "ss", "İ", "i̇", "𝔡𝔯𝔞𝔤𝔬𝔫", "🐉", "a" * 64, "a" * 65,
    "a" * 5000, "龍" * 70, "it's", "co-op", "3.14", "two words", "two", "words", "AND", "NOT", "near", '"', "*", "a*", "^a", "-", ".",
    "a.b", "-aa", "", " ", "%", "null", "0x1f", "x.1", "1.dragon", "dragon.1", "dragon_1",
]  # fmt: skip


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


class StoreContract:
    """Subclass it, say how to open your store, and pytest does the rest. See the module."""

    durable: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    async def open_store(self, place: Any) -> Store:
        """A store at that place; called again for the same place, one that finds what was written there."""
        raise NotImplementedError

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        return tmp_path / "store"

    @pytest.fixture
    async def store(self, place: Any) -> AsyncIterator[Store]:
        store = await self.open_store(place)
        yield store
        await store.close()

    # -- stories and keys ------------------------------------------------------------------------------------------------

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

    # -- appending -------------------------------------------------------------------------------------------------------

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

    # -- revisions and conflicts -----------------------------------------------------------------------------------------

    async def test_touch_makes_a_new_revision(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        first = await store.write(Commit(story.id, story.rev, touch=True))
        second = await store.write(Commit(story.id, first, touch=True, entries=[entry(1)]))
        assert story.rev < first < second
        assert await store.head(story.id, 1) == Head(second, 1)
        assert await store.write(Commit(story.id, second, health={"state": "retry"}, spending=Spending(1))) == second

    async def test_a_writer_who_saw_another_revision_conflicts_and_leaves_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        before = await everything(store, story)
        for stale in (rev - 1, rev + 1, story.rev):
            for commit in all_kinds(story.id, stale, 4):
                with pytest.raises(Conflict):
                    await store.write(commit)
        assert await everything(store, story) == before

    async def test_a_commit_with_one_bad_entry_leaves_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
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

    # -- what belongs to a story -----------------------------------------------------------------------------------------

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

    async def test_a_branch_goes_on_where_it_left_its_parent(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(seq) for seq in (1, 2, 3)]))
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "what if", 1, 2)]))
        assert await store.head(story.id, 2) == Head(rev, 2)
        with pytest.raises(Conflict):
            await store.write(Commit(story.id, rev, entries=[entry(4, branch=2)]))
        rev = await store.write(
            Commit(story.id, rev, touch=True, branches=[Branch(3, "deeper", 2, 3)], entries=[entry(3, branch=2), entry(4, branch=3)])
        )
        assert [await store.head(story.id, branch) for branch in (1, 2, 3)] == [Head(rev, 3), Head(rev, 3), Head(rev, 4)]
        assert (await loaded(store)).branches == {1: Branch(1, "main"), 2: Branch(2, "what if", 1, 2), 3: Branch(3, "deeper", 2, 3)}
        found = await store.read(Read(story.id, spans=[Span(1, 1, 2), Span(2, 3, 3), Span(3, 4, 9)]))
        assert found.entries == [entry(1), entry(2), entry(3, branch=2), entry(4, branch=3)]

    async def test_a_branch_may_be_renamed_and_keeps_its_entries(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2)]))
        renamed = [Branch(1, "main~1"), Branch(2, "main", 1, 1)]
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=renamed))
        assert list((await loaded(store)).branches.values()) == renamed
        assert [await store.head(story.id, branch) for branch in (1, 2)] == [Head(rev, 2), Head(rev, 1)]
        await store.write(Commit(story.id, rev, entries=[entry(3), entry(2, branch=2)]))
        assert await log(store, story) == [entry(1), entry(2), entry(3)]

    @pytest.mark.parametrize(
        ("branches", "error"),
        [
            ([Branch(9, "new", None, 2)], InvalidInput),
            ([Branch(9, "new", 77, 2)], UnknownBranch),
            ([Branch(9, "new", 9, 2)], UnknownBranch),
            ([Branch(9, "new", 10, 1), Branch(10, "newer", 1, 1)], UnknownBranch),
            ([Branch(9, "main", 1, 2)], InvalidInput),
            ([Branch(9, "new", 1, 2), Branch(10, "new", 1, 2)], InvalidInput),
            ([Branch(2, "main", 1, 2)], InvalidInput),
            ([Branch(1, "what if")], InvalidInput),
        ],
    )
    async def test_a_branch_that_could_not_be_read_or_found_is_refused_and_leaves_nothing(
        self, store: Store, branches: list[Branch], error: type[Exception]
    ) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        before = await everything(store, story)
        for commit in (Commit(story.id, rev, branches=branches), whole_commit(story.id, rev, [entry(4)])._replace(branches=branches)):
            with pytest.raises(error):
                await store.write(commit)
        assert await everything(store, story) == before
        assert await store.write(Commit(story.id, rev, entries=[entry(4)])) == rev

    async def test_branches_may_swap_their_names_and_begin_at_the_beginning(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        lines = [Branch(1, "what if"), Branch(2, "main", 1, 2), Branch(3, "anew", None, 0), Branch(4, "further", 3, 0)]
        await store.write(Commit(story.id, rev, branches=lines))
        assert list((await loaded(store)).branches.values()) == lines

    async def test_what_there_is_not_has_no_head(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for branch in (0, 2, 99, -1, 2**40):
            with pytest.raises(UnknownBranch):
                await store.head(story.id, branch)
        for number in (0, story.id + 1, -1, 2**40):
            with pytest.raises(UnknownStory):
                await store.head(number, 1)
            with pytest.raises(UnknownStory):
                await store.write(Commit(number, story.rev, entries=[entry(1)]))

    # -- reading ---------------------------------------------------------------------------------------------------------

    async def test_a_read_brings_what_it_names_in_that_order(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await self._fill(store, story)
        found = await store.read(
            Read(
                story.id,
                spans=[Span(2, 3, 3), Span(1, 2, 3), Span(1, 1, 1)],
                positions=[Position(1, 3), Position(1, 1), Position(2, 3)],
                ids=["own"],
                targeting=["t-2"],
            )
        )
        places = [(each.branch, each.seq) for each in found.entries]
        assert places == [(2, 3), (1, 2), (1, 3), (1, 1), (1, 3), (1, 1), (2, 3), (1, 2), (1, 3), (2, 3)]
        assert (found.folds, found.texts, found.snapshot) == ([], [], None)

    async def test_a_read_that_names_nothing_brings_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await self._fill(store, story)
        found = await store.read(Read(story.id))
        assert (list(found.entries), list(found.folds), list(found.texts), found.snapshot) == ([], [], [], None)

    async def test_what_is_not_there_is_left_out(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await self._fill(store, story)
        for number in (story.id, story.id + 1, 2**40):
            found = await store.read(
                Read(
                    number,
                    spans=[Span(1, 4, 9), Span(1, 3, 2), Span(9, 1, 9), Span(1, -5, 0), Span(2, 1, 2), Span(2**40, 1, 2), Span(-1, 1, 9)],
                    positions=NOWHERE,
                    outlines=NOWHERE,
                    ids=["nobody's", ""],
                    folds=["no such", ""],
                    targeting=["no such", ""],
                    snapshot_on=[Span(1, 4, 9), Span(9, 1, 9)],
                )
            )
            assert (list(found.entries), list(found.folds), list(found.texts), found.snapshot) == ([], [], [], None)
            assert list(found.outlines) == []

    async def test_an_outline_is_an_entry_without_its_words(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 1)]))
        extra = {"when": "Day 3", "at": [1, 1], "mentions": ["mira"]}
        entries = [entry(1, voice="Mira", tokens=7), entry(2, channel=5, id="own", extra=extra), entry(3), entry(2, branch=2, kind="event")]
        await store.write(Commit(story.id, rev, entries=entries))
        await store.write(Commit(story.id, rev, erase=Erase(entries=[entries[2]._replace(text="")])))
        wanted = [Position(2, 2), Position(1, 3), Position(1, 1), Position(1, 2), Position(1, 9)]
        found = await store.read(Read(story.id, outlines=wanted))
        assert sorted(found.outlines, key=lambda each: each[:2]) == [
            Outline(1, 1, "said", "Mira", 1, 7, blank=False),
            Outline(1, 2, "said", entries[1].voice, 5, entries[1].tokens, blank=False, id="own", extra=extra),
            Outline(1, 3, "said", entries[2].voice, 1, entries[2].tokens, blank=True),
            Outline(2, 2, "event", entries[3].voice, 1, entries[3].tokens, blank=False),
        ]
        assert list(found.entries) == []

    async def test_a_span_may_be_open_ended_and_is_clipped_to_its_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await self._fill(store, story)
        assert [each.seq for each in (await store.read(Read(story.id, spans=[Span(1, 0, 2**60)]))).entries] == [1, 2, 3]
        assert [each.seq for each in (await store.read(Read(story.id, spans=[Span(2, 0, 2**60)]))).entries] == [3]

    async def test_many_rows_by_span_and_by_position(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        entries = [entry(seq) for seq in range(1, 1501)]
        await store.write(Commit(story.id, story.rev, entries=entries))
        assert list((await store.read(Read(story.id, spans=[Span(1, 101, 1400)]))).entries) == entries[100:1400]
        places = [Position(1, seq) for seq in range(1499, 0, -2)]
        assert [each.position for each in (await store.read(Read(story.id, positions=places))).entries] == places

    async def test_targets_are_found_on_every_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 0)]))
        edits = [entry(1, extra={"target": "t-1"}), entry(1, branch=2, extra={"target": "t-1"}), entry(2, extra={"target": "t-2", "x": 1})]
        await store.write(Commit(story.id, rev, entries=edits))
        assert (await store.read(Read(story.id, targeting=["t-1"]))).entries == edits[:2]
        assert (await store.read(Read(story.id, targeting=["t-2", "t-1"]))).entries == [edits[2], *edits[:2]]

    # -- what was derived ------------------------------------------------------------------------------------------------

    async def test_folds_are_found_by_key_and_the_first_of_a_key_stays(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, folds=[fold("b"), fold("a"), fold("c", "龍 “quoted” \n")]))
        await store.write(Commit(story.id, story.rev, folds=[fold("a", "Something else."), fold("d")]))
        assert (await store.read(Read(story.id, folds=["c", "no", "a"]))).folds == [fold("c", "龍 “quoted” \n"), fold("a")]
        found = await store.read(Read(story.id, all_folds=True))
        assert sorted(found.folds, key=lambda each: each.key) == [fold("a"), fold("b"), fold("c", "龍 “quoted” \n"), fold("d")]

    async def test_a_text_is_written_once_per_fold_and_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, folds=[fold("a"), fold("b")], texts=[text_of("a"), text_of("b")]))
        await store.write(Commit(story.id, rev, texts=[text_of("a", born=9, text="Later."), text_of("a", branch=2, born=4)]))
        found = await store.read(Read(story.id, folds=["a"]))
        assert sorted(found.texts, key=lambda each: each.branch) == [text_of("a"), text_of("a", branch=2, born=4)]
        found = await store.read(Read(story.id, all_folds=True))
        assert sorted(found.texts, key=lambda each: (each.key, each.branch)) == [text_of("a"), text_of("a", branch=2, born=4), text_of("b")]

    async def test_what_was_gathered_over_a_fold_is_found_with_it_and_the_first_of_a_name_stays(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, folds=[fold("a"), fold("b")], gathered=[gathered("a")]))
        await store.write(Commit(story.id, story.rev, gathered=[gathered("a", value="other"), gathered("a", "names.2"), gathered("b")]))
        assert await gathered_over(store, story, "a") == [gathered("a"), gathered("a", "names.2")]
        assert await gathered_over(store, story, "b", "a", "no") == [gathered("a"), gathered("a", "names.2"), gathered("b")]
        assert await gathered_over(store, story) == [gathered("a"), gathered("a", "names.2"), gathered("b")]
        assert (await store.read(Read(story.id, folds=["a"]))).folds == [fold("a")], "the fold itself is as it was"

    async def test_what_was_gathered_comes_back_exactly_as_it_was(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        values: list[Any] = [
            None,
            "",
            "龍 “quoted” \n",
            0,
            -1.5,
            True,
            [],
            {},
            [[1, "Mira", None], {"é": [2.5, {"b": False}]}],
            "x" * 20_000,
        ]
        records = [gathered("a", f"{number:02} 龍", value) for number, value in enumerate(values)]
        await store.write(Commit(story.id, story.rev, folds=[fold("a")], gathered=records))
        assert await gathered_over(store, story, "a") == records

    async def test_what_was_gathered_over_a_fold_that_is_not_there_is_dropped(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        await store.write(Commit(other.id, other.rev, folds=[fold("a")]))
        assert await store.write(Commit(story.id, story.rev, gathered=[gathered("a")])) == story.rev
        await store.write(Commit(story.id, story.rev, folds=[fold("a")]))
        assert await gathered_over(store, story, "a") == await gathered_over(store, other, "a") == []

    async def test_what_is_derived_is_the_stores_own_once_it_was_written(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        of_fold, of_text, state, value = fold("a"), text_of("a"), {"seats": {"dm": [1]}}, {"Mira": [1, [2]]}
        shape: dict[str, Any] = {"gathered": {"names.1": [1]}}
        records = [of_fold, FoldRecord("b", shape, [])]
        snapshot, names = Snapshot(1, 3, state), [gathered("a", value=value)]
        await store.write(Commit(story.id, story.rev, folds=records, texts=[of_text], snapshot=snapshot, gathered=names))
        request = Read(story.id, folds=["a", "b"], snapshot_on=[Span(1, 1, 9)])
        before = await store.read(request)
        shape["gathered"]["names.1"].append(2)
        shape["gathered"]["names.2"] = []
        state["seats"]["dm"].append(2)
        value["Mira"][1] = value["Rook"] = [3]
        for sentences in (of_fold.sentences, of_text.sentences):
            sentences[0].append("more")  # type: ignore[attr-defined]
        after = await store.read(request)
        assert after == before
        assert (after.folds, after.texts) == ([fold("a"), FoldRecord("b", {"gathered": {"names.1": [1]}}, [])], [text_of("a")])
        assert after.snapshot == Snapshot(1, 3, {"seats": {"dm": [1]}})
        assert after.gathered == [gathered("a", value={"Mira": [1, [2]]})]

    async def test_the_newest_snapshot_on_the_path_is_found(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for branch, seq in ((1, 10), (1, 30), (1, 20), (2, 15), (2, 25), (3, 40)):
            await store.write(Commit(story.id, story.rev, snapshot=Snapshot(branch, seq, {"at": [branch, seq], "龍": None})))
        await store.write(Commit(story.id, story.rev, snapshot=Snapshot(1, 30, {"other": True})))

        async def newest(*path: Span) -> tuple[int, int] | None:
            snapshot = (await store.read(Read(story.id, snapshot_on=path))).snapshot
            assert snapshot is None or snapshot.state == {"at": [snapshot.branch, snapshot.seq], "龍": None}
            return None if snapshot is None else (snapshot.branch, snapshot.seq)

        assert await newest(Span(1, 1, 2**60)) == (1, 30)
        assert await newest(Span(1, 1, 29)) == (1, 20)
        assert await newest(Span(1, 1, 9)) is None
        assert await newest(Span(2, 13, 50), Span(1, 1, 12)) == (2, 25)
        assert await newest(Span(2, 13, 14), Span(1, 1, 12)) == (1, 10)
        assert await newest(Span(4, 13, 14), Span(2, 1, 12), Span(1, 1, 9)) is None
        assert await newest() is None

    # -- searching -------------------------------------------------------------------------------------------------------

    async def test_a_search_answers_each_term_with_its_entries(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 1)]))
        await store.write(Commit(story.id, rev, entries=[entry(1), entry(2, channel=5), entry(3)]))
        index = {Position(1, 1): ["dragon", "gate", "dragon"], Position(1, 2): ["dragon"], Position(2, 2): ["dragon", "龍"]}
        await store.write(Commit(story.id, rev, entries=[entry(2, branch=2, channel=7)], index=index))
        assert await hits(store, story, "dragon", "nothing", "龍", "gate") == [
            [(1, 1, 1), (1, 2, 5), (2, 2, 7)], [], [(2, 2, 7)], [(1, 1, 1)],
        ]  # fmt: skip
        assert await store.search(story.id, []) == []

    async def test_what_a_search_finds_comes_in_columns(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 3), Branch(5, "third", 2, 4)]))
        entries = [entry(seq, channel=channel) for seq, channel in enumerate((1, 7, 1, 7, 1, 1), 1)]
        entries += [entry(seq, branch=2, channel=1) for seq in range(4, 8)] + [entry(5, branch=5, channel=7)]
        await store.write(Commit(story.id, rev, entries=entries))
        for order in (entries[::-2], entries):  # indexed in any order, in several commits
            await store.write(Commit(story.id, rev, index={each.position: ["dragon"] for each in order}))
        (found,) = await store.search(story.id, ["dragon"])
        assert all(isinstance(each, Postings) for each in found)
        columns = {(branch, channel): list(seqs) for branch, channel, seqs in found}
        assert columns == {(1, 1): [1, 3, 5, 6], (1, 7): [2, 4], (2, 1): [4, 5, 6, 7], (5, 7): [5]}
        assert len(found) == len(columns)

    async def test_every_term_is_found_by_itself_and_by_nothing_else(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        terms = list(dict.fromkeys(ODD_TERMS))
        entries = [entry(seq) for seq in range(1, len(terms) + 1)]
        await store.write(
            Commit(story.id, story.rev, entries=entries, index={Position(1, seq): [term] for seq, term in enumerate(terms, 1)})
        )
        found = await hits(store, story, *terms)
        assert dict(zip(terms, found, strict=True)) == {term: [(1, seq, 1)] for seq, term in enumerate(terms, 1)}

    async def test_an_entry_with_odd_terms_is_found_by_each(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1)], index={Position(1, 1): ODD_TERMS}))
        assert await hits(store, story, *ODD_TERMS) == [[(1, 1, 1)]] * len(ODD_TERMS)

    async def test_indexing_again_changes_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2)], index={Position(1, 1): ["dragon"]}))
        again = {Position(1, 1): ["dragon", "gate"], Position(1, 2): ["gate"]}
        await store.write(Commit(story.id, story.rev, index=again))
        await store.write(Commit(story.id, story.rev, index=again))
        assert await hits(store, story, "dragon", "gate") == [[(1, 1, 1)], [(1, 2, 1)]]

    async def test_a_story_with_many_channels_is_searched_all_the_same(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        entries = [entry(seq, channel=seq % 100) for seq in range(1, 301)]
        index = {each.position: ["every", f"at{each.seq}", f"in{each.channel}"] for each in entries}
        await store.write(Commit(story.id, story.rev, entries=entries, index=index))
        every, one, some = await hits(store, story, "every", "at123", "in42")
        assert every == [(1, each.seq, each.channel) for each in entries]
        assert (one, some) == ([(1, 123, 23)], [(1, seq, 42) for seq in (42, 142, 242)])

    # -- erasing ---------------------------------------------------------------------------------------------------------

    async def test_erased_entries_leave_what_is_left_of_them(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        left = [entry(1)._replace(text="", speaker=""), entry(2)._replace(text="", id=None, extra=None), entry(99, "never was")]
        after = await store.write(Commit(story.id, rev, touch=True, erase=Erase(entries=left)))
        assert after > rev
        assert (await log(store, story))[:2] == left[:2]
        assert await store.head(story.id, 1) == Head(after, 3)
        found = await store.read(Read(story.id, ids=["own"], targeting=["t-1", "t-2"]))
        assert [(each.branch, each.seq) for each in found.entries] == [(1, 3), (2, 3)]
        await store.write(Commit(story.id, after, entries=[entry(4, id="own")]))

    async def test_whoever_erases_is_told_where_there_is_more_than_was_looked_through(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2, extra={"target": "t-1"})], folds=[fold("a"), fold("b")]))
        extent = Extent(2, ["t-1", "a", "none"], 1)
        erase = Commit(story.id, story.rev, erase=Erase([entry(1)._replace(text="")], ["a"], extent=extent))
        besides = [entry(3, extra={"target": "t-3"})]
        await store.write(Commit(story.id, story.rev, entries=besides, folds=[fold("b")], gathered=[gathered("a")]))
        more = [
            Commit(story.id, story.rev, entries=[entry(4, extra={"target": ["a", "b"]})]),
            Commit(story.id, story.rev, folds=[fold("c")]),
        ]
        for each in more:
            await store.write(each)
            with pytest.raises(Conflict):
                await store.write(erase)
            assert [each.text for each in (await log(store, story))[:1]] == [entry(1).text]
            assert (await store.read(Read(story.id, folds=["a"]))).folds == [fold("a")]
        erase = erase._replace(erase=Erase([entry(1)._replace(text="")], ["a"], extent=Extent(3, ["t-1", "a", "none"], 2)))
        await store.write(erase)
        assert not (await store.read(Read(story.id, folds=["a"]))).folds

    async def test_an_erased_entry_may_keep_its_id(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        left = entry(2, id="own")._replace(text="", extra={"target": "t-9"})
        await store.write(Commit(story.id, rev, erase=Erase(entries=[left])))
        assert (await store.read(Read(story.id, ids=["own"], targeting=["t-1", "t-9"]))).entries == [left, left]

    async def test_erased_folds_go_with_their_texts_and_may_be_made_anew(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        await store.write(Commit(story.id, rev, gathered=[gathered("a", "names.2")]))
        await store.write(Commit(story.id, rev, erase=Erase(folds=["a", "no such"]), folds=[fold("a", "Anew."), fold("n")]))
        assert await gathered_over(store, story, "a", "b") == [gathered("b")]
        found = await store.read(Read(story.id, folds=["a", "b", "n"]))
        assert found.folds == [fold("a", "Anew."), fold("b"), fold("n")]
        assert found.texts == [text_of("b")]
        await store.write(Commit(story.id, rev, texts=[text_of("a", born=3)]))
        assert (await store.read(Read(story.id, folds=["a"]))).texts == [text_of("a", born=3)]
        await store.write(Commit(story.id, rev, erase=Erase(folds=["a"]), folds=[fold("a")], gathered=[gathered("a", value="Anew.")]))
        assert await gathered_over(store, story, "a") == [gathered("a", value="Anew.")]

    async def test_erased_index_rows_are_found_by_no_term_and_may_be_made_anew(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        gone = Erase(index={Position(1, 1): ["dragon", "gate"], Position(1, 3): ["never", "indexed"], Position(5, 5): ["dragon"]})
        await store.write(Commit(story.id, rev, erase=gone, index={Position(1, 1): ["ember"]}))
        assert await hits(store, story, "dragon", "gate", "ember", "never") == [[(1, 2, 1)], [], [(1, 1, 1)], []]
        await store.write(Commit(story.id, rev, erase=Erase(index={Position(1, 1): ["ember"]})))
        await store.write(Commit(story.id, rev, index={Position(1, 1): ["dragon"]}))
        assert await hits(store, story, "dragon", "ember") == [[(1, 1, 1), (1, 2, 1)], []]

    async def test_snapshots_are_erased_if_asked_for_and_one_may_be_made_in_the_same_commit(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await self._fill(store, story)
        await store.write(Commit(story.id, rev, erase=Erase(folds=["b"])))
        on = [Span(1, 1, 9)]
        assert (await store.read(Read(story.id, snapshot_on=on))).snapshot == Snapshot(1, 3, {"turns": 3})
        await store.write(Commit(story.id, rev, erase=Erase(snapshots=True), snapshot=Snapshot(1, 2, {"turns": 2})))
        assert (await store.read(Read(story.id, snapshot_on=on))).snapshot == Snapshot(1, 2, {"turns": 2})

    async def test_erasing_touches_no_other_story(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        rev, other_rev = await self._fill(store, story), await self._fill(store, other)
        before = await everything(store, other)
        erase = Erase([entry(1)._replace(text="")], ["a", "b"], {Position(1, 1): ["dragon", "gate"]}, snapshots=True)
        await store.write(Commit(story.id, rev, erase=erase))
        assert await everything(store, other) == before
        assert await store.write(Commit(other.id, other_rev, entries=[entry(4)])) == other_rev

    # -- deleting --------------------------------------------------------------------------------------------------------

    async def test_a_deleted_story_is_gone_and_its_number_is_not_used_again(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        await self._fill(store, story)
        await self._fill(store, other)
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

    # -- closing ---------------------------------------------------------------------------------------------------------

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
        rev = await self._fill(store, story)
        await store.delete(gone.key)
        before = await everything(store, story)
        await store.close()
        store = await self.open_store(place)
        assert await everything(store, story) == before
        assert await store.write(Commit(story.id, rev, entries=[entry(4)])) == rev
        assert (await store.create(gone.key, {})).id not in (story.id, gone.id)
        await store.close()

    # -- two at one place ------------------------------------------------------------------------------------------------

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

    async def _fill(self, store: Store, story: StoryRecord) -> int:
        """A story with something of everything; returns its revision."""
        rev = await store.write(
            Commit(story.id, story.rev, touch=True, branches=[Branch(2, "what if", 1, 2)], channels={1: ("dm", "rogue")})
        )
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


def parts_of(key: MemoryKey) -> tuple[str, str, str]:
    return key.tenant_id, key.user_id, key.session_id


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


async def settled_head(store: Store, story: StoryRecord) -> Head:
    """The head after everything that was accepted so far."""
    await store.write(Commit(story.id, story.rev))
    return await store.head(story.id, 1)


async def everything(store: Store, story: StoryRecord) -> Sequence[Any]:
    """All that can be read of a story that `_fill` made."""
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


def whole_commit(story: int, rev: int, entries: Sequence[Entry]) -> Commit:
    """A commit that would change everything of a story that `_fill` made."""
    return Commit(
        story, rev, touch=True, entries=entries, channels={9: ("new",)}, branches=[Branch(1, "renamed"), Branch(9, "new", 1, 1)],
        config={"new": True}, folds=[fold("new")], texts=[text_of("new"), text_of("a", branch=9)], snapshot=Snapshot(1, 1, {"new": True}),
        gathered=[gathered("new"), gathered("a", "new")], index={Position(1, 3): ["new"]},
        spending=Spending(9, 9, 9, 9), health={"new": True},
        erase=Erase([entry(1)._replace(text="")], ["a", "b"], {Position(1, 1): ["dragon", "gate"]}, snapshots=True),
    )  # fmt: skip


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
