"""What stays in memory: as much as contexts are made of, however long a story is and however many there are. The rest is read again."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.test_story import deed

import talekeeper as tk
from talekeeper.hot import Hot
from talekeeper.recent import Allowance, Recent

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
    monkeypatch.setattr("talekeeper.hot.LEAST", 2)
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
    monkeypatch.setattr("talekeeper.keeper.STORIES_IN_MEMORY", 3)
    keys = [tk.MemoryKey("acme", "ana", f"s{n}") for n in range(6)]
    async with tk.open(tmp_path / "s.db") as keeper:
        for key in keys:
            story = await keeper.story(key, seats=[tk.Seat("ana")])
            await story.append_many([tk.Draft("ana", f"{key.session_id}: {deed(n)}") for n in range(40)])
            await keeper.story(keys[0])
        assert list(keeper._stories) == [keys[4], keys[5], keys[0]]
        for key in keys:
            text = (await (await keeper.story(key)).context("ana", budget=50_000)).text
            assert text.count(key.session_id) == 40, "nothing is lost by it"
        assert len(keeper._stories) == 3


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
