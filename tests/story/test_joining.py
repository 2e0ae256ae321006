"""Seats that join later: what they have heard, and what they may be told. On every store."""

from __future__ import annotations

import pytest
from tests.stories import KEY, SMALL, deed, tell

import talekeeper as tk

LATE = tk.Seat("cleric")


async def test_a_seat_that_joins_later_starts_with_nothing_and_hears_from_then_on(keeper: tk.Keeper, story: tk.Story) -> None:
    await tell(story, 20)
    story = await keeper.story(KEY, seats=[LATE])
    assert [seat.id for seat in story.seats] == ["dm", "rogue", "bard", "innkeeper", "cleric"]
    assert (await story.context("cleric", budget=500)).text == ""
    assert await story.recall("cleric", "silver coins") == []
    turn = await story.append("dm", "A cleric walks in.")
    assert "cleric" in turn.audience
    assert (await story.context("cleric", budget=500)).text == "## Recent Events\n[DM]: A cleric walks in.\n"


async def test_a_brief_tells_a_newcomer_only_what_all_player_characters_heard(keeper: tk.Keeper, story: tk.Story) -> None:
    await tell(story, 12)
    await story.append("dm", "Known to rogue and bard alike.", heard_by=["rogue", "bard"])
    for n in range(10):
        await story.append("dm", f"The rogue alone knows secret{n}.", heard_by=["rogue"])
        await story.append("innkeeper", f"The innkeeper thinks secret{n}.", kind="thought")
    await story.append("rogue", "Not to the bard: secretx.", heard_by=["innkeeper"])
    story = await keeper.story(KEY, seats=[LATE])
    await story.append("dm", "The cleric hears this as well.")
    for seat in ("cleric", "bard", "rogue", "dm"):
        for budget in (200, 4000):
            assert "secret" not in (await story.brief(seat, budget=budget)).text
    brief = (await story.brief("cleric", budget=4000)).text
    assert "Known to rogue and bard alike." in brief
    assert "The cleric hears this as well." in brief
    assert all(f"mark{n}x" in brief for n in range(1, 13))


async def test_a_brief_keeps_what_all_heard_before_the_newcomer_when_the_old_ones_talk_on_among_themselves(
    keeper: tk.Keeper, story: tk.Story
) -> None:
    await story.append_many([tk.Draft("dm", deed(n), heard_by=["rogue", "bard"]) for n in (1, 2, 3)])
    story = await keeper.story(KEY, seats=[LATE])
    before = (await story.brief("cleric", budget=4000)).text
    assert "mark3x" in before
    await story.append("dm", "Not for the cleric: secret.", heard_by=["rogue", "bard"])
    after = (await story.brief("cleric", budget=4000)).text
    assert "secret" not in after
    assert after == before


@pytest.mark.parametrize("way", ["rewind", "fork"])
async def test_a_brief_keeps_a_secret_from_one_who_joined_before_the_story_went_back(keeper: tk.Keeper, story: tk.Story, way: str) -> None:
    await tell(story, 20)
    story = await keeper.story(KEY, seats=[LATE])
    if way == "fork":
        story = await story.fork(at=5)
    else:
        await story.rewind(5)
    await story.append("dm", "Not for the cleric: secret.", heard_by=["rogue", "bard"])
    await story.append("dm", "For all of them.")
    brief = (await story.brief("cleric", budget=4000)).text
    assert "For all of them." in brief
    assert "secret" not in brief


async def test_a_brief_fits_its_budget_and_covers_a_long_story(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 300)
    for budget in (0, 60, tk.FLOOR, 1000):
        brief = await story.brief("bard", budget=budget)
        assert brief.tokens <= budget
        assert brief.tokens == keeper.counter.count(brief.text)
        if budget >= tk.FLOOR:
            assert set(await story.sources(brief)) == {turn.id for turn in await story.turns()}


async def test_a_known_seat_gets_its_new_settings_and_keeps_its_memory(keeper: tk.Keeper, story: tk.Story) -> None:
    await tell(story, 100)
    story = await keeper.story(KEY, seats=[tk.Seat("rogue", name="Nim", token_limit=200)])
    assert {seat.id: seat.token_limit for seat in story.seats}["rogue"] == 200
    context = await story.context("rogue")
    assert context.budget == 200
    assert len(await story.sources(context)) == 100
    await story.append("rogue", "New name, same thief.")
    assert "[Nim]: New name" in (await story.context("bard", budget=300)).text


async def test_without_seats_a_story_must_exist(keeper: tk.Keeper) -> None:
    with pytest.raises(tk.UnknownStory, match="ash-crown"):
        await keeper.story(KEY)
    assert await keeper.keys() == []
