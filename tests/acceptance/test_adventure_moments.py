"""Adventure moments: what a keeper finds significant stays in every narrator's context, and is what an epilogue is made of."""

from __future__ import annotations

import pytest
from tests.conftest import OpenKeeper

import talekeeper as tk
from talekeeper.memory.moments import (
    MAX_ADVENTURE_MOMENTS,
    MOMENT_TYPES,
    AdventureMoment,
    KeeperResponse,
    add_adventure_moment,
    adventure_moments,
    build_context,
    build_moment_from_keeper,
    epilogue_material,
    format_moments_for_context,
    moment_mark,
    pin_moment,
    resolve_action_with_moments,
)

KEY = tk.MemoryKey("acme", "ana", "moments")
SEATS = [tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard")]
WON = KeeperResponse("14. Hits. 6 damage.", "combat_victory", "Defeated the goblin chief in single combat", 0.8)


async def tell(keeper: tk.Keeper, turns: int) -> tk.Story:
    story = await keeper.story(KEY, seats=SEATS)
    await story.append_many([tk.Draft("dm", f"The road goes on, mile {number}.") for number in range(1, turns + 1)])
    return story


def moment(turn: int, significance: float = 0.5, summary: str = "") -> AdventureMoment:
    return AdventureMoment(turn, "discovery", summary or f"what was found at {turn}", significance)


# -- the keeper's ruling ---------------------------------------------------------------------------------------------------


async def test_resolving_an_action_gives_a_structured_ruling_and_a_turn(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 2)

    async def keeper_says(action: str) -> KeeperResponse:
        assert action == "I strike the chief."
        return WON

    turn, ruling = await resolve_action_with_moments(story, keeper_says, "I strike the chief.")
    assert (turn.text, turn.kind, ruling) == ("14. Hits. 6 damage.", "event", WON)
    [kept] = await adventure_moments(story, "rogue")
    assert (kept.turn, kept.type, kept.summary, kept.significance) == (3, "combat_victory", WON.moment_summary, 0.8)


async def test_a_routine_action_leaves_no_moment(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 1)

    async def keeper_says(action: str) -> KeeperResponse:
        return KeeperResponse("DC 10. Rolled 12. Fine.")

    await resolve_action_with_moments(story, keeper_says, "I tie my boots.")
    assert await adventure_moments(story, "dm") == []


def test_the_seven_types_are_these() -> None:
    assert set(MOMENT_TYPES) == {
        "combat_victory", "combat_defeat", "critical_success", "critical_failure", "discovery", "achievement", "turning_point",
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad", [{"moment_type": "picnic"}, {"moment_significance": 1.5}, {"moment_significance": True}, {"commands": ("x",)}]
)
def test_a_ruling_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(tk.TalekeeperError):
        KeeperResponse("x", **bad)  # type: ignore[arg-type]


def test_a_ruling_with_a_moment_becomes_one() -> None:
    assert build_moment_from_keeper(WON, 5) == AdventureMoment(5, "combat_victory", "Defeated the goblin chief in single combat", 0.8)


@pytest.mark.parametrize("ruling", [KeeperResponse("ok"), KeeperResponse("ok", "discovery", None), KeeperResponse("ok", None, "a summary")])
def test_a_ruling_without_one_gives_none(ruling: KeeperResponse) -> None:
    assert build_moment_from_keeper(ruling, 5) is None


# -- how they are shown ------------------------------------------------------------------------------------------------------


def test_no_moments_no_text() -> None:
    assert format_moments_for_context([]) == ""


def test_at_most_so_many_are_shown_the_most_significant() -> None:
    moments = [moment(turn, turn / 10) for turn in range(1, 9)]
    lines = format_moments_for_context(moments).splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["4", "5", "6", "7", "8"]
    assert len(format_moments_for_context(moments, max_count=2).splitlines()) == 3


def test_they_are_shown_in_order_of_time_in_this_form() -> None:
    text = format_moments_for_context([
        AdventureMoment(18, "achievement", "Retrieved the idol from the temple", 0.9),
        AdventureMoment(5, "combat_victory", "Defeated the cave goblin", 0.8),
    ])  # fmt: skip
    assert text == (
        "[STORY SO FAR]\n- Turn 5 (combat_victory): Defeated the cave goblin\n- Turn 18 (achievement): Retrieved the idol from the temple"
    )


async def test_they_are_in_every_narrators_context_by_default_long_after(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 4)
    await story.append("dm", "The chief falls!", marks=[moment_mark(AdventureMoment(0, "combat_victory", "Defeated the chief", 0.8))])
    for _ in range(40):
        await story.append("dm", "The road goes on and on, through rain and rain again, and nothing happens at all.")
        context = await story.context("dm", budget=400)
        assert "[STORY SO FAR]\n- Turn 5 (combat_victory): Defeated the chief\n" in context.text
        assert context.tokens <= 400
    assert "Defeated the chief" in (await build_context(story, "dm", budget=400)).text
    assert "[STORY SO FAR]" not in (await build_context(story, "dm", include_moments=False, budget=400)).text


# -- how they are kept ---------------------------------------------------------------------------------------------------------


async def test_a_moment_is_stored(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await tell(keeper, 3)
    added = await add_adventure_moment(story, moment(0, 0.7, "the hidden stair"), of=2)
    assert (added.turn, added.summary) == (2, "the hidden stair")
    await keeper.close()
    again = await (await open_file()).story(KEY)
    assert [(each.turn, each.summary) for each in await adventure_moments(again, "bard")] == [(2, "the hidden stair")]


async def test_fifteen_are_kept_by_significance_and_of_equals_the_newer(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 20)
    for turn in range(1, 21):
        await add_adventure_moment(story, moment(0, 0.9 if turn <= 3 else 0.5, f"m{turn}"), of=turn)
    kept = await adventure_moments(story, "dm")
    assert len(kept) == MAX_ADVENTURE_MOMENTS == 15
    assert [each.turn for each in kept] == [1, 2, 3, *range(9, 21)]


async def test_pinned_ones_stay(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 20)
    first = await add_adventure_moment(story, moment(0, 0.1, "the first kiss"), of=1)
    pinned = await pin_moment(story, first)
    assert pinned.pinned
    for turn in range(2, 21):
        await add_adventure_moment(story, moment(0, 0.9), of=turn)
    assert "the first kiss" in [each.summary for each in await adventure_moments(story, "bard")]
    await pin_moment(story, pinned, pinned=False)
    await add_adventure_moment(story, moment(0, 0.9), of=20)
    assert "the first kiss" not in [each.summary for each in await adventure_moments(story, "bard")]


async def test_all_that_are_pinned_stay_and_take_no_place_from_the_others(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await tell(keeper, 40)
    for turn in range(1, 21):
        await add_adventure_moment(story, AdventureMoment(0, "achievement", f"pinned {turn}", 0.1, pinned=True), of=turn)
    for turn in range(21, 41):
        await add_adventure_moment(story, moment(0, 0.9, f"m{turn}"), of=turn)
    await keeper.close()
    again = await (await open_file()).story(KEY)
    expected = [*(f"pinned {turn}" for turn in range(1, 21)), *(f"m{turn}" for turn in range(26, 41))]
    assert [each.summary for each in await adventure_moments(again, "bard")] == expected


async def test_they_are_rewound_with_the_story(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 3)
    await add_adventure_moment(story, moment(0, summary="kept"), of=1)
    at = story.head
    await add_adventure_moment(story, moment(0, summary="undone"), of=2)
    await story.rewind(at)
    assert [each.summary for each in await adventure_moments(story, "dm")] == ["kept"]


async def test_a_moment_is_known_to_those_who_were_there(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 1)
    secret = await story.append("dm", "You alone see the dagger.", heard_by=["rogue"])
    await add_adventure_moment(story, moment(0, 0.9, "the dagger"), of=secret)
    assert "the dagger" in (await story.context("rogue", budget=300)).text
    assert "[STORY SO FAR]" not in (await story.context("bard", budget=300)).text
    assert "the dagger" not in await epilogue_material(story, "bard")


async def test_the_epilogue_has_all_of_them_and_falls_back_to_memory(keeper: tk.Keeper) -> None:
    story = await tell(keeper, 9)
    assert "mile 9" in await epilogue_material(story, "dm")
    for turn in range(1, 10):
        await add_adventure_moment(story, moment(0, summary=f"deed {turn}"), of=turn)
    lines = (await epilogue_material(story, "dm")).splitlines()
    assert [line.rsplit(": ")[1] for line in lines[1:]] == [f"deed {turn}" for turn in range(1, 10)]


@pytest.mark.parametrize("budget", [0, 1, 10, 40, 100, 300])
async def test_the_epilogue_fits_its_budget_with_the_pinned_and_the_most_significant(keeper: tk.Keeper, budget: int) -> None:
    story = await tell(keeper, 15)
    for turn in range(1, 16):
        found = AdventureMoment(0, "discovery", f"deed {turn} " + "of many words " * (1 + turn % 4), turn / 20, pinned=turn == 4)
        await add_adventure_moment(story, found, of=turn)
    text = await epilogue_material(story, "rogue", budget=budget)
    assert story.counter.count(text) <= budget
    if budget >= 40:
        assert "deed 4 " in text
        assert ("deed 15 " in text) or budget == 40
        assert text.startswith("[STORY SO FAR]")
