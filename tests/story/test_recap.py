"""A view in two (the newest turns as they are, folds before them), and what watches the folding."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import talekeeper as tk
from talekeeper.testing.models import MoodyModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

KEY = tk.MemoryKey("acme", "ana", "mill")
QUICK = tk.RetryPolicy(attempts=2, pause=0.001, longest=0.002, recover_after=3600)
KEEPER = tk.Seat("ana", keep=4, fold_at=0.0001, token_limit=400)
DEEDS = (
    "the miller counts the sacks of flour on the cart twice and says that nobody leaves before the third bell",
    "rain comes down from the hills and the road to the mill is gone until somebody clears the fallen trees",
)


async def tell(story: tk.Story, count: int) -> None:
    for number in range(count):
        await story.append("ana", f"mark{number}x: {DEEDS[number % 2]}.")


async def covered(story: tk.Story, recap: tk.Recap) -> list[str]:
    """The ids of all turns that the recap stands for, each as often as it does."""
    folded = [source for item in recap.items for source in await story.sources(item)]
    return folded + [turn.id for turn in recap.turns]


@pytest.mark.parametrize("keep", [0, 1, 3, 8, 11, 100])
@pytest.mark.parametrize("budget", [60, 300, 3000])
async def test_every_turn_is_as_it_was_or_under_exactly_one_fold(keeper: tk.Keeper, keep: int, budget: int) -> None:
    story = await keeper.story(KEY, seats=[tk.Seat("ana"), tk.Seat("ben")])
    for number in range(70):
        if number % 5 == 3:
            await story.append("ben", f"mark{number}y: {DEEDS[number % 2]}", heard_by=[])
        await story.append("ana", f"mark{number}x: {DEEDS[number % 2]}.", heard_by=["ben"] if number % 3 else [])
    heard = [turn.id for turn in await story.turns(seat="ana")]
    recap = await story.recap("ana", keep=keep, budget=budget)
    assert sorted(await covered(story, recap)) == sorted(heard)
    assert [turn.id for turn in recap.turns] == heard[max(0, len(heard) - keep) :]
    assert recap.tokens <= budget
    assert recap.tokens == keeper.counter.count(recap.text)


async def test_without_room_there_are_no_folds_and_of_nothing_there_is_nothing(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=[KEEPER])
    assert await story.recap("ana") == tk.Recap(seat="ana", items=(), turns=())
    await tell(story, 20)
    recap = await story.recap("ana", budget=0)
    assert (recap.text, len(recap.turns), recap.waiting) == ("", 4, 0)


async def test_a_turn_reads_as_it_does_now(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=[KEEPER])
    await tell(story, 6)
    await story.edit(6, "Mira has the brass key.")
    assert (await story.recap("ana", keep=1)).turns[0].text == "Mira has the brass key."
    await story.forget(1)
    assert "mark0x" not in (await story.recap("ana", keep=1)).text


async def test_turns_that_wait_for_a_model_can_stay_as_they_are(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("slow")
    story = await (await open_keeper(summarizer=model, retry=QUICK)).story(KEY, seats=[KEEPER])
    await tell(story, 30)
    held = await story.recap("ana", pending=True)
    assert held.waiting >= 16
    assert [turn.text[:5] for turn in held.turns] == ["mark" + str(n)[0] for n in range(30 - len(held.turns), 30)]
    assert (await story.recap("ana")).waiting == 0
    assert sorted(await covered(story, held)) == sorted(turn.id for turn in await story.turns())


async def test_what_a_model_wrote_is_shown_and_not_unfolded(open_keeper: OpenKeeper) -> None:
    story = await (await open_keeper(summarizer=MoodyModel(), retry=QUICK)).story(KEY, seats=[KEEPER])
    await tell(story, 22)
    await story.settle()
    recap = await story.recap("ana", budget=5000, pending=True)
    assert recap.waiting == 0
    assert [item.kind for item in recap.items] == ["fold", "fold", *["turn"] * 2]
    assert {(await story.fold(item.folds[0])).made_by for item in recap.items[:2]} == {"model"}


async def test_those_who_watch_hear_of_folds_and_of_health_until_they_stop(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("failing")
    story = await (await open_keeper(summarizer=model, retry=QUICK)).story(KEY, seats=[KEEPER])
    seen: list[tuple[str, str]] = []
    stop = story.watch(lambda before, after: seen.append((before.state.value, after.state.value)))
    await tell(story, 22)
    await story.settle()
    assert seen[:2] == [("healthy", "retry"), ("retry", "degraded")]
    model.mood = "good"
    await story.settle()
    assert ("degraded", "recovering") in seen
    assert seen[-1] == ("healthy", "healthy"), "a fold came in"
    count = len(seen)
    stop()
    stop()
    await tell(story, 30)
    await story.settle()
    assert len(seen) == count


async def test_a_watcher_that_fails_stops_nothing(open_keeper: OpenKeeper) -> None:
    story = await (await open_keeper(summarizer=MoodyModel(), retry=QUICK)).story(KEY, seats=[KEEPER])

    def fail(before: tk.Health, after: tk.Health) -> None:
        raise RuntimeError("no")

    story.watch(fail)
    await tell(story, 22)
    await asyncio.sleep(0)
    await story.settle()
    assert {fold.made_by for fold in await story.folds("ana")} == {"model"}


async def test_a_story_that_is_put_away_while_it_is_used_keeps_its_health(open_keeper: OpenKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.STORIES_IN_MEMORY", 2)
    model = MoodyModel("failing")
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=[KEEPER])
    for number in range(3):
        await keeper.story(tk.MemoryKey("acme", "ben", f"mill-{number}"), seats=[KEEPER])
    await tell(story, 22)
    await story.settle()
    assert (await story.health()).state is tk.HealthState.DEGRADED
