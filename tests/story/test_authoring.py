"""The author's hand: edits, overrides, notes. On every store."""

from __future__ import annotations

from pathlib import Path

from tests.stories import KEY, SMALL, TABLE, all_folds, contexts, deed, leaf_over, tell

import talekeeper as tk
from talekeeper.doctor import examine
from talekeeper.ports import Commit, Read


async def test_an_edit_reaches_log_contexts_folds_and_recall_and_is_undone_by_a_rewind(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    told = await tell(story, 120)
    await story.settle()
    before, head = await contexts(story), story.head
    old_folds = {fold.id for fold in await story.folds("rogue")}
    edited = await story.edit(told[4], "Zalgath the Unburnt swears to pay 777 crowns to Mira before the third bell.")
    assert (edited.id, edited.seq, edited.revision, edited.audience) == (told[4].id, 5, 1, told[4].audience)
    assert (await story.turn(5)).text == edited.text
    assert (await story.turns(before=6))[-1] == edited
    folds = await story.folds("rogue")
    touched = [fold for fold in folds if told[4].id in await story.sources(fold)]
    assert len(touched) == 1
    assert touched[0].id not in old_folds, "a fold made from an edited turn is another fold"
    leaf = await leaf_over(story, touched[0], told[4])
    assert "Zalgath" in leaf.text
    assert "mark5x" not in leaf.text
    assert [hit.turn.id for hit in await story.recall("rogue", "Zalgath the Unburnt", limit=1)] == [told[4].id]
    assert all(hit.turn.id != told[4].id for hit in await story.recall("rogue", "mark5x"))
    await story.rewind(head)
    assert await contexts(story) == before
    assert (await story.turn(5)).text == deed(5)
    assert (await story.turn(5)).revision == 0


async def test_a_turn_that_nobody_heard_can_be_edited(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("rogue"), tk.Seat("bard")])
        await story.enter("rogue", "inn")
        fallen = await story.append("", "A tree falls in the wood.", kind="event", location="wood")
        noted = await story.note("The wood is old.", heard_by=[])
        assert fallen.audience == noted.audience == ()
        await story.edit(fallen, "A beech falls in the wood.")
        for n in range(20):  # enough to be folded
            await story.append("", deed(n), kind="event", heard_by=[])
        await story.edit(5, "Nobody hears of this, either.")
        await story.edit(noted, "The wood is very old.")
        await story.append("rogue", "Did you hear that?")
        told = await contexts(story)
        assert await examine(keeper, KEY) == []
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic()) as keeper:  # made from the log: a file that was closed after such an edit
        story = await keeper.story(KEY)
        assert story._hot.saved_at == 0
        assert [(await story.turn(turn)).text for turn in (fallen.id, 5, noted.id)] == [
            "A beech falls in the wood.", "Nobody hears of this, either.", "The wood is very old.",
        ]  # fmt: skip
        assert await contexts(story) == told
        assert await examine(keeper, KEY) == []


async def test_an_edit_of_a_recent_turn_shows_at_once_for_all_who_heard_it(story: tk.Story) -> None:
    await tell(story, 3)
    secret = await story.append("dm", "The old wording.", heard_by=["rogue"])
    assert (await story.edit(secret, "The new wording.")).revision == 1
    assert (await story.edit(secret, "The newest wording.")).revision == 2
    text = (await story.context("rogue", budget=500)).text
    assert "The newest wording." in text
    assert "old wording" not in text
    assert "wording" not in (await story.context("bard", budget=500)).text


async def shown_fold(story: tk.Story, seat: str, budget: int) -> str:
    """The id of the first fold that stands in the seat's context as a paragraph of its own."""
    block = (await story.context(seat, budget=budget)).block("story")
    assert block is not None
    return next(item.folds[0] for item in block.items if item.kind == "fold" and item.folds)


async def test_an_override_stands_until_a_source_changes(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    before, head = await contexts(story), story.head
    fold = await story.fold(await shown_fold(story, "rogue", 1200))
    sources = await story.sources(fold)
    made = await story.override(fold.id, "In short: the table went west, and Mira lied.")
    assert (made.made_by, made.text, made.level) == ("author", "In short: the table went west, and Mira lied.", fold.level)
    assert await story.sources(made) == sources
    assert "- In short: the table went west, and Mira lied.\n" in (await story.context("rogue", budget=1200)).text
    assert made.id in {fold.id for fold in await story.folds("rogue", budget=1200)}
    await tell(story, 3, first=1000)
    assert "Mira lied" in (await story.context("rogue", budget=1200)).text
    outside = next(turn for turn in await story.turns() if turn.id not in sources)
    await story.edit(outside, "A change elsewhere does not matter.")
    assert "Mira lied" in (await story.context("rogue", budget=1200)).text
    await story.edit(sources[0], "Something quite different happened: the mill burned.")
    assert "Mira lied" not in (await story.context("rogue", budget=1200)).text
    await story.rewind(head)
    assert await contexts(story) == before


async def test_an_override_of_a_larger_fold_goes_with_any_turn_below_it(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    turns = await tell(story, 200)
    fold = next(fold for fold in await story.folds("rogue") if fold.level == 1)
    sources = await story.sources(fold)
    made = await story.override(fold.id, "In short: the table went west, and Mira lied.")
    await story.edit(next(turn for turn in turns if turn.id not in sources), "A change elsewhere does not matter.")
    assert made.id in {fold.id for fold in await story.folds("rogue")}
    assert "Mira lied" in (await story.context("rogue")).text
    await story.edit(sources[len(sources) // 2], "Something quite different happened: the mill burned.")
    assert {fold.made_by for fold in await story.folds("rogue")} == {"extractive"}
    for budget in (150, 400, 4000):
        assert "Mira lied" not in (await story.context("rogue", budget=budget)).text


async def test_an_override_of_notes_is_shown_in_their_place_also_where_there_is_room_for_them(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await story.note("The river Aven runs from Castle Morrow to Grevenmouth.")
    await story.begin_session("One")
    await tell(story, 60)
    await story.note("Only iron hurts the fair folk.")
    await story.begin_session("Two")
    await tell(story, 60, first=100)
    notes = [fold for fold in await story.folds("rogue", budget=1500) if "Aven" in fold.text]
    before = (await story.context("rogue", budget=1500)).block("canon")
    assert before is not None
    await story.override(notes[0].id, "The Aven is dry.")
    for budget in (200, 1500):
        context = await story.context("rogue", budget=budget)
        canon = context.block("canon") or before
        assert "The Aven is dry." in canon.text
        assert "Grevenmouth" not in context.text
        assert any(out.block == "canon" and out.reason == "folded" for out in context.left_out)
    assert canon.text == before.text.replace("The river Aven runs from Castle Morrow to Grevenmouth.", "The Aven is dry.")
    assert set(await story.sources(canon)) == set(await story.sources(before))
    await story.edit(1, "The river Aven is nowhere.")
    assert "The river Aven is nowhere." in (await story.context("rogue", budget=1500)).text


async def test_an_override_is_undone_by_a_rewind_and_comes_back_with_its_branch(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 64)
    before, head = await contexts(story), story.head
    await story.override((await story.folds("rogue"))[0].id, "In short: Mira lied.")
    after = await contexts(story)
    await story.rewind(head)
    assert await contexts(story) == before
    left = next(branch for branch in await story.branches() if not branch.current)
    assert await contexts(await story.switch(left.name)) == after


async def test_names_of_folds_do_not_tell_how_much_was_told(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    await tell(story, 400)
    await story.settle()
    folds = await all_folds(story, "rogue")
    record = await keeper.store.load(KEY)
    assert record is not None
    stored = {fold.key for fold in (await keeper.store.read(Read(record.id, all_folds=True))).folds}
    assert len({fold.id for fold in folds}) == len(folds)
    assert stored.isdisjoint(fold.id for fold in folds)
    for fold in folds:
        assert await story.fold(fold.id) == fold
    places = [int(fold.id[:8], 16) for fold in folds]
    assert max(places) > 1 << 28, "a place in clear would be a small number"


async def test_a_story_from_before_folds_had_places_keeps_their_keys(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "saga.db", counter=tk.Heuristic()) as keeper:
        await keeper.story(KEY, seats=TABLE)
        record = await keeper.store.load(KEY)
        assert record is not None
        config = {name: value for name, value in record.config.items() if name != "placed"}
        await keeper.store.write(Commit(story=record.id, rev=record.rev, touch=True, config=config))
    async with tk.open(tmp_path / "saga.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY)
        await tell(story, 300)
        await story.override((await story.folds("rogue"))[0].id, "In short: Mira lied.")
        await tell(story, 300)
        folds = await all_folds(story, "rogue")
        before = await story.context("rogue", budget=900)
    assert {len(fold.id) for fold in folds} == {24}
    async with tk.open(tmp_path / "saga.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY)
        assert await all_folds(story, "rogue") == folds
        assert await story.context("rogue", budget=900) == before


async def test_an_override_is_seen_only_by_those_whose_memory_has_the_fold(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await story.append_many([tk.Draft("dm", deed(n), heard_by=["rogue"] if n <= 40 else None) for n in range(1, 101)])
    before = [(await story.context("bard", budget=budget)).text for budget in (150, 400, 4000)]
    await story.override((await story.folds("rogue"))[0].id, "In short: Mira lied.")
    assert "Mira lied" in (await story.context("rogue")).text
    assert [(await story.context("bard", budget=budget)).text for budget in (150, 400, 4000)] == before
