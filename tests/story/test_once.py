"""Told once, and told to what was seen: ids of one's own, expected versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
from tests.stories import KEY, TABLE, contexts, tell

import talekeeper as tk

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def test_everything_that_is_told_can_have_an_id_and_is_then_told_once(story: tk.Story) -> None:
    secret = await story.append("dm", "The key is under the stone.", heard_by=["rogue"])
    calls: list[Callable[[], Awaitable[tk.Turn | None]]] = [
        lambda: story.enter("rogue", "tavern", id="e"),
        lambda: story.enter("rogue", "mill", text="Rook slips in.", id="e2"),
        lambda: story.leave("rogue", id="l"),
        lambda: story.begin_session("Session 2", id="s"),
        lambda: story.reveal(secret, ["bard"], id="r"),
        lambda: story.note("The crown burns liars.", id="n"),
    ]
    for call in calls:
        told = await call()
        head = story.head
        assert told is not None
        assert await call() == told
        assert story.head == head
    first = await story.regenerate("The crown burns nobody.", id="again")
    assert await story.regenerate("The crown burns nobody.", id="again") == first
    assert len(await story.swipes()) == 2
    assert story.presence()["rogue"] is None


async def test_an_id_stands_for_one_turn_whatever_it_was_told_with(story: tk.Story) -> None:
    await story.enter("rogue", "tavern", id="once")
    for other in (
        story.leave("rogue", id="once"),
        story.enter("bard", "tavern", id="once"),
        story.begin_session(id="once"),
        story.append("dm", "A bell.", id="once"),
        story.regenerate("A bell.", id="once"),
    ):
        with pytest.raises(tk.DuplicateId):
            await other
    await story.rewind(0)
    with pytest.raises(tk.DuplicateId, match="undone"):
        await story.enter("rogue", "tavern", id="once")
    with pytest.raises(tk.InvalidInput, match="generated"):
        await story.leave("rogue", id="t-0123456789abcdef")


async def test_an_id_stands_for_one_coming_going_or_session_with_its_place_and_words(story: tk.Story) -> None:
    told = [
        await story.enter("rogue", "cellar", text="Wren climbs down.", id="in"), await story.leave("rogue", text="Wren is gone.", id="out"),
        await story.begin_session("The second evening", id="session"),
    ]  # fmt: skip
    for other in (
        story.enter("rogue", "attic", id="in"),
        story.enter("rogue", "attic", text="Wren climbs down.", id="in"),
        story.enter("rogue", "cellar", text="Wren falls down.", id="in"),
        story.leave("rogue", text="Wren has left.", id="out"),
        story.begin_session("The third evening", id="session"),
    ):
        with pytest.raises(tk.DuplicateId, match="different turn"):
            await other
    assert await story.enter("rogue", "cellar", id="in") == told[0], "what is not said is not compared"
    assert await story.leave("rogue", text="Wren is gone.", id="out") == told[1]
    assert await story.begin_session("The second evening", id="session") == told[2]
    assert await story.turns() == told


async def test_what_the_author_does_can_be_bound_to_what_was_seen(story: tk.Story) -> None:
    turns = await tell(story, 4)
    seen = story.version
    await story.append("rogue", "One more thing.")
    for change in (
        story.rewind(2, expected_version=seen),
        story.edit(turns[0], "Otherwise.", expected_version=seen),
        story.regenerate("Otherwise.", expected_version=seen),
    ):
        with pytest.raises(tk.Conflict):
            await change
    assert [turn.text for turn in await story.turns()][-1] == "One more thing."
    assert (await story.regenerate("Otherwise.", expected_version=story.version)).text == "Otherwise."
    assert (await story.edit(turns[0], "Otherwise.", expected_version=story.version)).revision == 1
    assert await story.rewind(2, expected_version=story.version) == 2


async def test_a_rewind_bound_to_a_version_loses_against_another_process(open_file: OpenKeeper) -> None:
    story = await (await open_file()).story(KEY, seats=TABLE)
    await tell(story, 4)
    seen = story.version
    other = await (await open_file()).story(KEY)
    await other.append("rogue", "One more thing.")
    with pytest.raises(tk.Conflict):
        await story.rewind(2, expected_version=seen)
    assert (await story.turns())[-1].text == "One more thing."


async def test_adopting_a_line_gives_it_the_name_and_keeps_the_other(story: tk.Story) -> None:
    await tell(story, 6)
    before = await contexts(story)
    await story.rewind(3)
    await story.append("rogue", "Another way.")
    other = await contexts(story)
    assert await story.adopt("main~1") == 6
    assert await contexts(story) == before
    assert {(branch.name, branch.head) for branch in await story.branches()} == {("main", 6), ("main~2", 4)}
    assert await story.adopt("main~2") == 4
    assert await contexts(story) == other
    assert await story.adopt("main") == 4
    await story.append("rogue", "And on.")
    with pytest.raises(tk.UnknownBranch):
        await story.adopt("main~2")


async def test_a_fork_that_adopts_main_goes_on_from_its_end_and_main_stays(keeper: tk.Keeper, story: tk.Story) -> None:
    await tell(story, 6)
    fork = await story.fork(at=3, name="what if")
    await fork.append("rogue", "Another way.")
    before = await contexts(story)
    assert await fork.adopt("main") == 6
    assert await contexts(fork) == before
    await fork.append("rogue", "And on, elsewhere.")
    main = await keeper.story(KEY)
    assert (main.head, await contexts(main)) == (6, before)
    assert {(line.name, line.parent, line.forked_at, line.head) for line in await main.branches()} == {
        ("main", None, 0, 6), ("what if~1", "main", 3, 4), ("what if", "main", 6, 7),
    }  # fmt: skip
    assert await main.adopt("what if") == 7


async def test_a_fork_adopts_a_main_that_has_gone_back_to_where_it_has_nothing_of_its_own(keeper: tk.Keeper, story: tk.Story) -> None:
    await tell(story, 4)
    fork = await story.fork(name="what if")
    for to in (2, 0):
        await story.rewind(to)
        assert await fork.adopt("main") == to
        assert await contexts(fork) == await contexts(await keeper.story(KEY))
        await fork.append("rogue", "On from there.")


async def test_a_fork_cannot_be_named_like_what_a_rewind_leaves_behind(story: tk.Story) -> None:
    await tell(story, 2)
    with pytest.raises(tk.InvalidInput, match="kept for what rewinds leave behind"):
        await story.fork(name="main~1")
    assert [branch.name for branch in await story.branches()] == ["main"]
