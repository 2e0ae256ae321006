"""Looking back: `Story.at` shows what a rewind would show, and changes nothing. And what has stood in a fold's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.stories import KEY, SMALL, TABLE, deed, tell

import talekeeper as tk
from talekeeper.doctor import examine
from talekeeper.memory import (
    AdventureMoment,
    MemoryService,
    add_adventure_moment,
    build_context,
    epilogue_material,
    list_sessions,
    recap,
    remember,
)
from talekeeper.ports import Commit, Entry
from talekeeper.testing.models import MoodyModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def shown(story: tk.Story | tk.Past) -> dict[str, Any]:
    """Everything that can be read at some moment."""
    found: dict[str, Any] = {"presence": story.presence(), "head": story.head, "log": await story.turns(), "pins": await story.pins()}
    for seat in story.seats:
        for budget in (150, 400, 4000):
            found[f"{seat.id} {budget}"] = await story.context(seat.id, budget=budget, query="Mira hides the brass key")
            found[f"{seat.id} {budget} folds"] = await story.folds(seat.id, budget=budget)
        found[f"{seat.id} recall"] = await story.recall(seat.id, "mark7x ferryman", limit=20)
        found[f"{seat.id} brief"] = await story.brief(seat.id)
        found[f"{seat.id} recap"] = await story.recap(seat.id, pending=True)
    return found


@pytest.mark.parametrize("count", [3, 40, 600])
async def test_at_an_earlier_turn_everything_is_as_it_was_then(keeper: tk.Keeper, count: int) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, count)
    await story.edit(2, "The ferryman never said a word of it.")
    await story.pin(3)
    await story.enter("rogue", "mill")
    then, at = await shown(story), story.head
    await tell(story, 30, first=1000)
    await story.edit(1, "Nobody counts anything any more.")
    await story.unpin(3)
    now = await shown(story)
    assert await shown(await story.at(at)) == then
    assert await shown(story) == now
    assert (await story.branches())[0].head == story.head
    await story.rewind(at)
    assert await shown(story) == then


async def test_the_past_says_that_it_cannot_be_changed(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 5)
    past: Any = await story.at(3)
    moment = AdventureMoment(1, "discovery", "Found the key")
    for change in (
        lambda: past.append("dm", "It never rained."),
        lambda: past.forget(1),
        lambda: add_adventure_moment(past, moment, of=1),
    ):  # fmt: skip
        with pytest.raises(tk.StoreReadOnly, match="can be read, not changed"):
            await change()
    assert not hasattr(past, "append")


async def test_every_face_that_reads_a_story_reads_its_past(keeper: tk.Keeper) -> None:
    async def seen(story: tk.Story | tk.Past) -> list[Any]:
        found: list[Any] = [await list_sessions(story, "rogue"), await recap(story, "rogue"), await epilogue_material(story, "rogue")]
        found += [await build_context(story, "rogue"), await MemoryService(story).notes("rogue"), await remember(story, "dm")]
        return [*found, await remember(story, "rogue", query="Mira hides the brass key")]

    async def date(past: tk.Past, seat: tk.Seat) -> dict[str, list[tk.Note]]:
        return {"world": [tk.Note(f"It was entry {past.head}.")]}

    story = await keeper.story(KEY, seats=TABLE)
    await tell(story, 40)
    at = story.head
    then = await seen(story)
    await story.append("dm", "Mira throws the brass key into the river.")
    past = await story.at(at)
    assert await seen(past) == then
    assert f"It was entry {at}." in (await remember(past, "rogue", contributors=[date])).text


async def test_the_past_of_a_branch_goes_back_beyond_its_fork(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 20)
    then = await shown(story)
    await tell(story, 20, first=21)
    other = await story.fork(at=30, name="what if")
    await tell(other, 5, first=100)
    await story.rewind(25)
    await tell(story, 9, first=200)
    assert await shown(await other.at(20)) == then
    assert await shown(await story.at(20)) == then
    assert (await (await story.at(0)).context("rogue")).text == ""


async def test_model_texts_that_came_later_are_not_shown_earlier(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper(summarizer=MoodyModel())
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await story.settle()
    then, at = await shown(story), story.head
    await tell(story, 60, first=61)
    await story.settle()
    assert any(fold.made_by == "model" for fold in await story.folds("rogue"))
    assert await shown(await story.at(at)) == then


async def test_the_past_cannot_be_changed(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    await tell(story, 3)
    past = await story.at(2)
    assert not hasattr(past, "append")
    with pytest.raises(tk.UnknownTurn):
        await past.turn(3)
    with pytest.raises(tk.UnknownTurn):
        await story.at(4)


async def test_what_is_forgotten_is_gone_from_the_past_as_well(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 50)
    past = await story.at(40)
    await story.forget(7)
    for one in (past, await story.at(40)):
        assert "mark7x" not in (await one.context("rogue", budget=4000)).text
        assert await one.recall("rogue", "mark7x") == []


async def test_the_history_of_a_fold_tells_who_wrote_it_when(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper(summarizer=MoodyModel())
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await story.settle()
    (fold, *_) = [fold for fold in await story.folds("rogue") if fold.made_by == "model"]
    assert [one.made_by for one in await story.history(fold.id)] == ["extractive", "model"]
    first = await story.override(fold.id, "It rained, and Voss counted his coins.")
    second = await story.override(first.id, "It rained.")
    told = await story.history(second.id)
    assert [one.made_by for one in told] == ["extractive", "model", "author", "author"]
    assert [one.text for one in told[2:]] == ["It rained, and Voss counted his coins.", "It rained."]
    assert told[1] == fold
    assert await story.history(first.id) == told[:3]


async def test_a_seat_knows_the_folds_of_its_own_memory_alone(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    for number in range(1, 40):
        await story.append("dm", deed(number), heard_by=["rogue"] if number % 20 < 10 else ["bard"])
    mine, theirs = await story.folds("rogue"), await story.folds("bard")
    for fold in mine:
        assert await story.fold(fold.id, seat="rogue") == fold
        for reader in (story.fold, story.history):
            with pytest.raises(tk.UnknownFold):
                await reader(fold.id, seat="bard")
    assert theirs


async def test_a_fold_is_shown_to_a_seat_as_in_its_contexts_whatever_others_had_made(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper(summarizer=MoodyModel())
    story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=400), tk.Seat("rogue", token_limit=9000)])
    await tell(story, 60)
    await story.settle()
    (fold, *_) = await story.folds("dm")
    assert fold.made_by == "model"
    assert (await story.fold(fold.id, seat="rogue")).made_by == "extractive"
    assert {one.made_by for one in await story.folds("rogue", budget=400)} == {"extractive"}


async def test_pins_lists_the_pinned_turns(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    turns = await tell(story, 4)
    await story.pin(turns[2])
    await story.pin(turns[0])
    await story.edit(turns[0], "It was otherwise.")
    assert [(turn.id, turn.text) for turn in await story.pins()] == [(turns[0].id, "It was otherwise."), (turns[2].id, turns[2].text)]
    await story.unpin(turns[0])
    await story.forget(turns[2])
    assert await story.pins() == []


async def test_ordinals_count_what_the_seat_heard_and_nothing_else(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    for number in range(1, 60):
        await story.append("dm", deed(number), heard_by=["rogue"] if number % 3 else ["bard"])
    for seat in ("rogue", "bard"):
        heard = await story.turns(seat=seat)
        assert await story.ordinals(seat, heard) == list(range(1, len(heard) + 1))


async def test_between_two_edits_a_fold_knows_nothing_of_the_second(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=200)])
    await story.append_many([tk.Draft("dm", f"Turn {n} tells of Mira and the {n} crowns at the gate of the mill.") for n in range(40)])
    await story.edit(5, "Hm.")
    between = story.head
    await story.edit(3, "Hm, hm.")
    await story._hot.checkpoint()
    await story.rewind(between)
    await story.append("dm", "On it goes.")
    await story._hot.checkpoint()
    again = await (await open_file()).story(KEY)
    assert await again.folds("dm") == await story.folds("dm")
    assert await examine(again._keeper, KEY) == []


async def test_what_was_written_over_a_fold_that_is_not_on_this_line_changes_nothing(open_file: OpenKeeper) -> None:
    """Earlier versions could write that, where two processes raced; the branch could not be read then."""
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 40)
    before = (await story.context("dm", budget=300)).text
    record = story._hot.shared.record
    stray = Entry(1, story.head + 1, "override", "", "", "Mine.", 1, None, 0, "heuristic", 0.0, None, {"target": "0123456789abcdef"})
    await keeper.store.write(Commit(record.id, record.rev, [stray]))
    for each in (story, await (await open_file()).story(KEY)):
        assert (await each.context("dm", budget=300)).text == before
        assert (await each.append("dm", "On it goes.")).text == "On it goes."
        await each.rewind(stray.seq)
