"""Pinned turns: word for word, or a clear refusal. On every store."""

from __future__ import annotations

import pytest
from tests.stories import KEY, SMALL, contexts, tell

import talekeeper as tk


async def test_a_pinned_turn_stays_word_for_word_until_it_is_unpinned(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    vow = await story.append("rogue", "I, Nim, swear on the seventh lantern to bring the Ash Crown home.", heard_by=["bard"])
    await tell(story, 300)
    assert f"[rogue]: {vow.text}" not in (await story.context("bard")).text
    assert (await story.pin(vow)).id == vow.id
    for budget in (150, 400, 2000):
        context = await story.context("bard", budget=budget)
        pinned = context.block("pinned")
        assert pinned is not None
        assert not pinned.stable
        assert pinned.text == f"## Pinned\n[rogue]: {vow.text}\n"
        assert pinned.sources == (vow.id,)
        assert context.tokens <= budget
    await story.unpin(vow)
    assert (await story.context("bard")).block("pinned") is None


async def test_a_pin_is_seen_by_those_who_heard_the_turn_and_by_no_one_else(story: tk.Story) -> None:
    secret = await story.append("dm", "The lantern is hollow.", heard_by=["rogue"])
    before = await story.context("bard", budget=100)
    await story.pin(secret)
    assert await story.context("bard", budget=100) == before
    assert "hollow" in (await story.context("rogue", budget=100)).text


async def test_a_pinned_turn_that_is_recent_is_not_shown_twice(story: tk.Story) -> None:
    turn = await story.append("dm", "The lantern is hollow.")
    await story.pin(turn)
    assert (await story.context("bard", budget=500)).text.count("hollow") == 1


async def test_a_telling_stays_a_swipe_also_where_a_dm_joined_before_it_was_told_again(keeper: tk.Keeper, story: tk.Story) -> None:
    first = await story.append("dm", "The lantern is hollow.", heard_by=["rogue"])
    await keeper.story(KEY, seats=[tk.Seat("second dm", role="dm")])
    again = await story.regenerate("The lantern is full of ash.")
    assert again.audience == ("dm", "rogue", "second dm")
    assert await story.swipes() == [first, again]


@pytest.mark.parametrize("before", [0, 30, 300])
async def test_a_pinned_turn_that_is_the_newest_stays_whole_in_any_budget(keeper: tk.Keeper, before: int) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, before)
    newest = await story.append("dm", "The lantern is hollow, and in it lies a ring of ash that none but Mira may wear.")
    await story.pin(newest)
    with pytest.raises(tk.BudgetTooSmall) as raised:
        await story.context("bard", budget=5)
    for budget in range(raised.value.needed, 150):
        context = await story.context("bard", budget=budget)
        assert f"[DM]: {newest.text}\n" in context.text, budget
        assert context.tokens == keeper.counter.count(context.text) <= budget


@pytest.mark.parametrize("turns", [1, 30, 300])
async def test_pins_that_cannot_fit_raise_and_what_they_need_then_works(keeper: tk.Keeper, turns: int) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    told = await tell(story, turns)
    for turn in told[:3]:
        await story.pin(turn)
    with pytest.raises(tk.BudgetTooSmall) as raised:
        await story.context("bard", budget=20)
    needed = raised.value.needed
    assert raised.value.budget == 20
    context = await story.context("bard", budget=needed)
    assert context.tokens <= needed
    assert all(turn.text in context.text for turn in told[:3])
    with pytest.raises(tk.BudgetTooSmall):
        await story.context("bard", budget=needed - 1)
    for turn in told[:3]:
        await story.unpin(turn)
    assert (await story.context("bard", budget=20)).tokens <= 20


async def test_a_pin_shows_the_edited_text_and_is_undone_by_a_rewind(story: tk.Story) -> None:
    turn = (await tell(story, 2))[0]
    before = await contexts(story)
    await story.pin(turn)
    await story.edit(turn, "Rewritten in gold.")
    context = await story.context("bard", budget=4000)
    assert "Rewritten in gold." in context.text
    await story.rewind(2)
    assert await contexts(story) == before
