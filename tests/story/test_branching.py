"""Going back and branching: rewinds, forks, swipes, other lines. On every store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stories import KEY, SMALL, all_folds, bytes_below, contexts, deed, tell

import talekeeper as tk
from talekeeper.doctor import examine

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def test_a_rewind_gives_back_every_context_byte_for_byte(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    seen = {}
    for n in range(1, 81):
        await story.append("dm", deed(n), heard_by=["rogue"] if n % 6 == 0 else None)
        if n % 16 == 0:
            seen[n] = await contexts(story)
    for n in (64, 48, 16):
        assert await story.rewind(n) == n
        assert story.head == n
        assert await contexts(story) == seen[n]


async def test_a_rewind_goes_to_a_turn_by_number_id_or_itself_and_to_the_beginning(story: tk.Story) -> None:
    turns = await tell(story, 6)
    assert await story.rewind(5) == 5
    assert await story.rewind(turns[3].id) == 4
    assert await story.rewind(turns[2]) == 3
    assert await story.rewind(0) == 0
    assert await story.turns() == []
    assert (await story.context("bard", budget=500)).text == ""
    assert (await story.append("dm", "A new beginning.")).seq == 1


async def test_a_rewind_to_where_the_story_is_changes_nothing(story: tk.Story) -> None:
    await tell(story, 3)
    version, branches = story.version, await story.branches()
    assert await story.rewind(3) == 3
    assert (story.version, await story.branches()) == (version, branches)


async def test_what_a_rewind_leaves_behind_stays_as_a_branch_to_go_back_to(story: tk.Story) -> None:
    await tell(story, 5)
    before = await contexts(story)
    await story.rewind(2)
    await story.append("dm", "Another third turn.")
    kept = [branch for branch in await story.branches() if not branch.current]
    assert [(branch.parent, branch.forked_at, branch.head) for branch in kept] == [(None, 0, 5)]
    old = await story.switch(kept[0].name)
    assert await contexts(old) == before
    assert [turn.text for turn in await old.turns()] == [deed(n) for n in range(1, 6)]
    assert [turn.text for turn in await story.turns()] == [deed(1), deed(2), "Another third turn."]


async def test_a_fork_shares_the_past_and_nothing_after_it(story: tk.Story) -> None:
    turns = await tell(story, 6)
    other = await story.fork(at=4, name="what if")
    assert (other.branch, other.head, story.head) == ("what if", 4, 6)
    await other.append("dm", "Only over there: forkword.")
    await story.append("dm", "Only over here: mainword.")
    assert [turn.id for turn in (await other.turns())[:4]] == [turn.id for turn in turns[:4]]
    for budget in (150, 4000):
        assert "forkword" not in (await story.context("bard", budget=budget)).text
        assert "mainword" not in (await other.context("bard", budget=budget)).text
    assert await story.recall("bard", "forkword") == []
    assert await other.recall("bard", "mainword") == []
    assert await other.recall("bard", "mark6x") == []
    with pytest.raises(tk.UnknownTurn):
        await other.turn(turns[5].id)
    rows = {row.name: row for row in await other.branches()}
    assert rows["what if"] == tk.BranchInfo(name="what if", parent="main", forked_at=4, head=5, current=True)
    assert rows["main"] == tk.BranchInfo(name="main", parent=None, forked_at=0, head=7, current=False)


async def test_forks_of_forks_and_of_the_beginning_work_and_get_names_of_their_own(story: tk.Story) -> None:
    await tell(story, 3)
    one = await story.fork()
    await one.append("dm", "Four on one.")
    two = await one.fork(at=2)
    zero = await two.fork(at=0)
    await zero.append("dm", "A fresh start.")
    assert len({"main", one.branch, two.branch, zero.branch}) == 4
    assert [turn.text for turn in await two.turns()] == [deed(1), deed(2)]
    assert [turn.text for turn in await zero.turns()] == ["A fresh start."]
    assert [turn.text for turn in await one.turns()] == [deed(1), deed(2), deed(3), "Four on one."]


async def test_a_branch_name_is_used_once_and_unknown_ones_are_refused(story: tk.Story) -> None:
    await tell(story, 2)
    await story.fork(name="what if")
    with pytest.raises(tk.InvalidInput, match="what if"):
        await story.fork(name="what if")
    with pytest.raises(tk.UnknownBranch, match="what if"):
        await story.switch("what iff")


async def test_an_edit_on_one_branch_is_not_seen_on_another(story: tk.Story) -> None:
    await tell(story, 3)
    other = await story.fork()
    await other.edit(2, "Rewritten: forkword.")
    assert (await other.turn(2)).text == "Rewritten: forkword."
    assert (await story.turn(2)).text == deed(2)
    assert "forkword" not in (await story.context("bard", budget=500)).text


async def test_regenerate_replaces_the_newest_turn_and_keeps_the_old_one_as_a_swipe(story: tk.Story) -> None:
    await story.append("dm", "Before.")
    first = await story.append("rogue", "First try.", heard_by=["innkeeper"], voice="A hooded figure", when="day 2", location="tavern")
    second = await story.regenerate("Second try.")
    third = await story.regenerate("Third try.", when="day 3")
    assert [turn.text for turn in await story.turns()] == ["Before.", "Third try."]
    for turn in (second, third):
        assert (turn.seq, turn.speaker, turn.voice, turn.audience, turn.location) == (
            2,
            "rogue",
            "A hooded figure",
            first.audience,
            "tavern",
        )
    assert (second.when, third.when) == ("day 2", "day 3")
    assert len({first.id, second.id, third.id}) == 3
    assert [turn.text for turn in await story.swipes()] == ["First try.", "Second try.", "Third try."]
    text = (await story.context("innkeeper", budget=500)).text
    assert "Third try." in text
    assert "First" not in text
    assert {hit.turn.id for hit in await story.recall("innkeeper", "second try")} == {third.id}


async def test_a_forgotten_turn_is_not_told_again(story: tk.Story) -> None:
    """Else what is meant for the turn before it, a whisper perhaps, would be told to those who heard the forgotten one."""
    await story.append("dm", "The key is under the altar.", heard_by=["rogue"], kind="whisper")
    await story.forget(await story.append("bard", "My card number is 1234."))
    before = await story.turns()
    with pytest.raises(tk.InvalidInput, match="was forgotten, and cannot be told again: append another"):
        await story.regenerate("The key is under the third altar.")
    assert await story.turns() == before


async def test_a_swipe_that_was_edited_reads_as_it_does_now(story: tk.Story) -> None:
    await story.append("dm", "First try.")
    newest = await story.regenerate("Second try.")
    await story.edit(newest, "Second try, mended.")
    assert [(turn.text, turn.revision) for turn in await story.swipes()] == [("First try.", 0), ("Second try, mended.", 1)]


async def test_after_the_story_went_on_swipes_are_those_of_the_newest_turn(story: tk.Story) -> None:
    await story.append("dm", "One.")
    await story.regenerate("Uno.")
    last = await story.append("dm", "Two.")
    assert await story.swipes() == [last]


async def test_what_somebody_else_or_others_heard_in_the_same_place_is_no_swipe(story: tk.Story) -> None:
    door = await story.append("dm", "A door.")
    for speaker, hearers in (("bard", None), ("rogue", [])):
        await story.append(speaker, "I am the traitor.", heard_by=hearers)
        await story.rewind(door)
    await story.append("rogue", "I am the traitor.", kind="thought")
    await story.rewind(door)
    await story.append("rogue", "I open the door.")
    await story.regenerate("I kick the door in.")
    assert [turn.text for turn in await story.swipes()] == ["I open the door.", "I kick the door in."]


async def test_the_newest_turn_is_told_again_after_the_author_touched_an_older_one_and_that_touch_stays(story: tk.Story) -> None:
    await story.append("dm", "The vow of the lantern.")
    await story.append("rogue", "First try.")
    await story.pin(1)
    await story.edit(1, "The vow of the hollow lantern.")
    assert [turn.text for turn in await story.swipes()] == ["First try."]
    await story.regenerate("Second try.")
    assert [turn.text for turn in await story.turns()] == ["The vow of the hollow lantern.", "Second try."]
    assert [turn.text for turn in await story.swipes()] == ["First try.", "Second try."]
    await tell(story, 300)
    pinned = (await story.context("bard", budget=300)).block("pinned")
    assert pinned is not None
    assert "hollow lantern" in pinned.text


async def test_a_story_lives_on_when_the_newest_turn_is_told_again_after_an_edit_and_an_override(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 40)
    await story.edit(2, "The mill burned on the second day.")
    for fold in await story.folds("rogue"):
        if fold.level == 0:
            await story.override(fold.id, "In short: Mira lied.")
    await story.regenerate("Told again.")
    turns = await story.turns()
    assert (turns[1].text, turns[-1].text, len(turns)) == ("The mill burned on the second day.", "Told again.", 40)
    for seat in SMALL:
        assert len(await story.sources(await story.context(seat.id))) == 40
    assert (await story.append("dm", "And on.")).seq > 40


async def by_hand(story: tk.Story) -> dict[tuple[str, ...], list[str]]:
    """What has stood in the place of each fold that the author wrote over: by the turns it stands for."""
    return {
        await story.sources(fold): [each.text for each in await story.history(fold.id)]
        for fold in await all_folds(story, "rogue") if fold.made_by == "author"
    }  # fmt: skip


async def test_folds_that_the_author_wrote_over_stay_when_the_newest_turn_is_told_again(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    turns = await tell(story, 140)

    async def override(turn: tk.Turn, text: str, level: int = 0) -> None:
        (fold,) = [fold for fold in await all_folds(story, "rogue") if fold.level == level and turn.id in await story.sources(fold)]
        await story.override(fold.id, text)

    await override(turns[0], "In short: nobody left.")
    await story.edit(10, "The mill burned on the second day.")
    await override(turns[9], "In short: the mill burned.")
    await story.edit(10, "The mill did not burn.")
    await override(turns[9], "In short: the mill stood.")
    await override(turns[0], "In short: all left.")
    await override(turns[80], "In short: Mira lied.")
    await override(turns[0], "In short: much happened.", level=1)
    before = await by_hand(story)
    assert sorted(texts[1:] for texts in before.values()) == [
        ["In short: Mira lied."], ["In short: much happened."], ["In short: nobody left.", "In short: all left."], ["In short: the mill stood."],
    ]  # fmt: skip
    for text in ("Told again.", "And again."):
        await story.regenerate(text)
        assert await by_hand(story) == before
        assert await examine(keeper, KEY) == []


async def test_what_the_author_wrote_over_is_forgotten_also_where_the_newest_turn_was_told_again(
    open_file: OpenKeeper, tmp_path: Path
) -> None:
    story = await (await open_file()).story(KEY, seats=SMALL)
    await tell(story, 40)
    fold = (await story.folds("rogue"))[0]
    again = await story.override(fold.id, "In short: Vraxholm fell.")
    await story.override(again.id, "In short: Vraxholm burned.")
    await story.regenerate("Told again.")
    assert b"Vraxholm burned" in bytes_below(tmp_path)
    await story.forget((await story.sources(fold))[0])
    assert b"Vraxholm" not in bytes_below(tmp_path)


async def test_only_what_was_told_can_be_told_again(story: tk.Story) -> None:
    with pytest.raises(tk.UnknownTurn):
        await story.regenerate("Nothing to replace.")
    await story.enter("rogue", "tavern")
    with pytest.raises(tk.InvalidInput, match="enter"):
        await story.regenerate("No.")
    assert await story.swipes() != []
