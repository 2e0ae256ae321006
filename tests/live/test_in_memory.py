"""What stays in memory: as much as contexts are made of, however long a story is and however many there are. The rest is read again."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.stories import deed

import talekeeper as tk
from talekeeper.live.hot import Hot
from talekeeper.live.shared import Shared
from talekeeper.ports import Message, StoryRecord
from talekeeper.recent import Allowance, Recent
from talekeeper.stores import InMemoryStore
from talekeeper.story.residents import BRANCHES_IN_MEMORY
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = [tk.Seat("dm", role="dm", token_limit=4000), tk.Seat("rogue", token_limit=2000), tk.Seat("bard", token_limit=2000)]
_NOT_OURS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)


def weight(hot: Hot) -> int:
    """Bytes of all that hangs on one branch in memory, without what it shares with the rest of the process."""
    seen: set[int] = set()

    def sum_of(things: Iterable[object]) -> int:
        total, stack = 0, list(things)
        while stack:
            one = stack.pop()
            if id(one) not in seen and not isinstance(one, _NOT_OURS):
                seen.add(id(one))
                total += sys.getsizeof(one)
                stack.extend(gc.get_referents(one))
        return total

    sum_of([hot.shared, hot.lock, hot.saving])
    return sum_of([hot])


@asynccontextmanager
async def told(file: Path, turns: int) -> AsyncIterator[tk.Story]:
    async with tk.open(file) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await tell(story, turns)
        yield story


async def tell(story: tk.Story, until: int) -> None:
    """Turns as a game tells them: some for all, some for one, some noted as moments, and contexts in between."""
    while story.turn_count < until:
        first = story.turn_count
        await story.append_many(
            [tk.Draft("dm", deed(first + n), heard_by=["rogue"] if n % 5 == 0 else None, marks=[tk.Mark("moment", {"n": n}, keep=15)] * (n % 4 == 0))
             for n in range(20)]
        )  # fmt: skip
        for seat in SEATS:
            await story.context(seat.id, query=deed(first // 2)[:60])
            await story.marks(seat.id, "moment")


async def grown(file: Path, early: int, late: int) -> float:
    async with told(file, early) as story:
        await story._hot.checkpoint()
        before = weight(story._hot)
        await tell(story, late)
        await story._hot.checkpoint()
        return weight(story._hot) / before


async def test_a_long_story_weighs_no_more_than_a_shorter_one(tmp_path: Path) -> None:
    assert await grown(tmp_path / "s.db", 2000, 3000) < 1.1


async def test_it_would_without_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.recent.MOST", 1 << 20)
    monkeypatch.setattr("talekeeper.recent.IN_ALL", 1 << 20)
    assert await grown(tmp_path / "s.db", 600, 1200) > 1.4


async def test_contexts_of_any_size_are_the_same_with_hardly_anything_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = (300, 2000, 20_000, 200_000)

    async def contexts(story: tk.Story) -> list[str]:
        found = await asyncio.gather(*(story.context(seat.id, budget=budget) for budget in budgets for seat in SEATS))
        return [context.text for context in found]

    async with told(tmp_path / "s.db", 800) as story:
        await story.pin((await story.turns(limit=3))[-1])
        await story.edit((await story.turns(limit=5))[-1], "The ferryman drops the brass key into the Ash.")
        wanted = await contexts(story)
    for name in ("MOST", "LEAST", "IN_ALL"):
        monkeypatch.setattr(f"talekeeper.recent.{name}", 2)
    monkeypatch.setattr("talekeeper.live.stepping.LEAST", 2)
    async with told(tmp_path / "s.db", 0) as story:
        assert await contexts(story) == wanted
        assert await contexts(story) == wanted, "made of what was let go of since"
        assert len(story._hot._lines) <= 2 * story.turn_count
        assert "brass key" in (await story.context("bard", budget=200_000)).text


async def test_a_large_context_keeps_the_lines_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.recent.MOST", 64)
    async with told(tmp_path / "s.db", 400) as story:
        await story.context("dm", budget=200_000)
        assert len(story._hot._lines) >= 400


def test_many_stories_share_what_there_is() -> None:
    alone, few, many = (Allowance(stories).lines for stories in (1, 40, 5000))
    assert alone > few > many >= 64
    assert 40 * few <= 8192


async def test_a_story_among_many_lets_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.recent.LEAST", 8)
    monkeypatch.setattr("talekeeper.recent.IN_ALL", 160)
    async with tk.open(tmp_path / "s.db") as keeper:
        stories = [await keeper.story(tk.MemoryKey("acme", "ana", f"s{n}"), seats=[tk.Seat("ana", token_limit=200)]) for n in range(10)]
        for story in stories:
            await story.append_many([tk.Draft("ana", deed(n)) for n in range(60)])
            await story.context("ana")
        assert all(len(story._hot._lines) <= 2 * 16 for story in stories)
        assert [turn.text for turn in await stories[0].turns(limit=3)] == [deed(n) for n in range(3)]


async def test_stories_that_were_not_used_for_longest_are_put_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.STORIES_IN_MEMORY", 3)
    keys = [tk.MemoryKey("acme", "ana", f"s{n}") for n in range(6)]
    async with tk.open(tmp_path / "s.db") as keeper:
        for key in keys:
            story = await keeper.story(key, seats=[tk.Seat("ana")])
            await story.append_many([tk.Draft("ana", f"{key.session_id}: {deed(n)}") for n in range(40)])
            await keeper.story(keys[0])
        assert list(keeper._residents.stories) == [keys[4], keys[5], keys[0]]
        for key in keys:
            text = (await (await keeper.story(key)).context("ana", budget=50_000)).text
            assert text.count(key.session_id) == 40, "nothing is lost by it"
        assert len(keeper._residents.stories) == 3


def hots_of(shared: Shared) -> list[Hot]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, Hot) and one.shared is shared]


async def test_branches_that_were_not_opened_for_longest_are_put_away(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append_many([tk.Draft("dm", deed(n)) for n in range(30)])
        held = await story.fork(name="held")
        await held.append_many([tk.Draft("dm", f"Aside: {deed(n)}") for n in range(40)])
        for _ in range(2 * BRANCHES_IN_MEMORY):
            await story.fork()
        assert len(keeper._residents.stories[KEY][1]) == BRANCHES_IN_MEMORY
        assert len(hots_of(story._hot.shared)) == BRANCHES_IN_MEMORY + 2, "and those that someone holds"
        assert held._hot.saved_at == held.head, "what was derived is stored"
        await held.append("dm", "Still aside.")
        again = await story.switch("held")
        assert again._hot is held._hot, "whoever holds one has the same as others"
        await again.append("dm", "Told by another.")
        assert [turn.text for turn in await held.turns(after=held.head - 2)] == ["Still aside.", "Told by another."]
        await story.append("dm", "And on.")
        assert (await keeper.story(KEY)).head == story.head == 31


async def test_a_fold_is_asked_for_once_though_its_branch_is_put_away_and_taken_back_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.BRANCHES_IN_MEMORY", 1)
    asked: list[str] = []

    async def slow(messages: Sequence[Message]) -> str:
        asked.append(messages[-1]["content"])
        await asyncio.sleep(0.05)
        return await MoodyModel()(messages)

    async with tk.open(":memory:", summarizer=slow, models_at_once=8, counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=300)])
        other = await story.fork(name="aside")
        for n in range(60):
            await story.append("dm", deed(n))
        while not asked:
            await asyncio.sleep(0.001)
        await story.switch("aside")
        back = await other.switch("main")
        await back.settle()
        assert back._hot is story._hot
        assert len(asked) == len(set(asked))


async def test_what_is_forgotten_leaves_a_branch_that_was_put_away_and_that_someone_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("talekeeper.story.residents.BRANCHES_IN_MEMORY", 1)
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        secret = await story.append("dm", "The password is xyzzyhunter.")
        held = await story.fork(name="held")
        await held.context("dm")
        other = await story.switch("main")
        assert list(keeper._residents.stories[KEY][1]) == ["main"]
        await other.forget(secret)
        assert "xyzzyhunter" not in str([line.turn for line in held._hot._lines._kept.values()])


async def test_a_model_that_is_away_keeps_no_story_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.STORIES_IN_MEMORY", 2)
    retry = tk.RetryPolicy(attempts=1, pause=0.001, recover_after=3600)
    async with tk.open(":memory:", counter=tk.Heuristic(), summarizer=MoodyModel("failing"), retry=retry) as keeper:
        for number in range(8):
            story = await keeper.story(tk.MemoryKey("acme", "ana", f"s{number}"), seats=[tk.Seat("dm", token_limit=400)])
            for n in range(40):
                await story.append("dm", deed(n))
                await asyncio.sleep(0 if number % 2 else 0.0005)  # some are put away before it fails, and some after
        await asyncio.sleep(0.2)
        assert len(keeper._residents.running) <= 2


async def test_stories_that_are_gone_take_no_room_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.recent.IN_ALL", 800)
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        keys = [tk.MemoryKey("acme", "ana", f"s{n}") for n in range(8)]
        for key in keys:
            await keeper.story(key, seats=SEATS)
        assert keeper._residents.allowance.lines == 100
        for key in keys[1:]:
            await keeper.delete(key)
        assert keeper._residents.allowance.lines == 512


class _Slow(InMemoryStore):
    """A store that is truly asynchronous, as one over a network is."""

    async def create(self, key: tk.MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        await asyncio.sleep(0.001)
        return await super().create(key, config)

    async def load(self, key: tk.MemoryKey) -> StoryRecord | None:
        await asyncio.sleep(0.001)
        return await super().load(key)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_story_that_several_open_at_once_is_in_memory_once(begun: bool) -> None:
    asked: list[str] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        asked.append(messages[-1]["content"])
        await asyncio.sleep(0.01)
        return "Captain Voss counts the silver, Mira hides the brass key, and the ferryman fears for the bridge. [1]"

    async with tk.open(_Slow(), counter=tk.Heuristic(), summarizer=model, models_at_once=50) as keeper:
        if begun:
            await keeper.story(KEY, seats=SEATS)
            keeper._residents.stories.clear()
        stories = await asyncio.gather(*(keeper.story(KEY, seats=None if begun else [tk.Seat("dm", token_limit=400)]) for _ in range(3)))
        assert len({id(story._hot) for story in stories}) == len({id(keeper._residents.folder(story._hot)) for story in stories}) == 1
        for story in stories:
            for n in range(30):
                await story.append("dm", deed(n))
                await asyncio.sleep(0)
        await stories[0].settle()
        assert len(asked) == len(set(asked)), "no fold is asked for twice"


async def test_a_branch_that_several_open_at_once_is_in_memory_once() -> None:
    store = _Slow()
    async with tk.open(store, counter=tk.Heuristic()) as keeper, tk.open(store, counter=tk.Heuristic()) as elsewhere:
        story = await keeper.story(KEY, seats=SEATS)
        await (await elsewhere.story(KEY)).fork(name="aside")
        one, other = await asyncio.gather(story.switch("aside"), story.switch("aside"))
        assert one._hot is other._hot


async def test_a_story_that_was_deleted_elsewhere_may_be_opened_by_several_at_once() -> None:
    store = _Slow()
    async with tk.open(store, counter=tk.Heuristic()) as keeper:
        await (await keeper.story(KEY, seats=SEATS)).append("dm", "It begins.")
        await store.delete(KEY)
        one, other = await asyncio.gather(keeper.story(KEY, seats=SEATS), keeper.story(KEY, seats=SEATS))
        assert one._hot is other._hot
        assert one.head == 0
        await store.delete(KEY)
        refused = await asyncio.gather(keeper.story(KEY), keeper.story(KEY), return_exceptions=True)
        assert [type(error) for error in refused] == [tk.UnknownStory] * 2


async def test_one_who_holds_a_story_that_others_opened_anew_has_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.STORIES_IN_MEMORY", 1)
    gate = asyncio.Event()

    async def model(messages: Sequence[tk.Message]) -> str:
        await gate.wait()
        return "Captain Voss counts the silver, Mira hides the brass key, and the ferryman fears for the bridge. [1]"

    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic(), summarizer=model) as keeper:
        held = await keeper.story(KEY, seats=[tk.Seat("dm", token_limit=400)])
        await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=SEATS)
        again = await keeper.story(KEY)
        assert again._hot is not held._hot
        for n in range(60):
            await held.append("dm", deed(n))
            await asyncio.sleep(0)
        assert len([name for name in keeper._residents.running if name[1] == "folds"]) == 1
        gate.set()


def test_what_was_used_last_stays() -> None:
    kept: Recent[str, int] = Recent()
    for number, name in enumerate("abcd"):
        kept.put(name, number)
    assert kept.get("a") == 0
    assert kept.get("z") is None
    kept.trim(2)
    assert ("a" in kept, "b" in kept, "c" in kept, "d" in kept, len(kept)) == (True, False, False, True, 2)
    kept.drop("a")
    kept.drop("a")
    kept.clear()
    assert len(kept) == 0
