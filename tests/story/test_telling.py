"""Telling: what goes into the log, and what is refused. On every store."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories import DM, KEY, SMALL, TABLE, contexts, deed, tell

import talekeeper as tk

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def test_an_appended_turn_has_the_documented_defaults(keeper: tk.Keeper, story: tk.Story) -> None:
    turn = await story.append("rogue", "I try the door.")
    assert turn == tk.Turn(
        id=turn.id, seq=1, kind="said", speaker="rogue", voice="rogue", text="I try the door.",
        audience=("bard", "dm", "innkeeper", "rogue"), time=keeper.clock(), tokens=keeper.counter.count("[rogue]: I try the door.\n"),
    )  # fmt: skip
    assert (turn.location, turn.mentions, turn.when, turn.revision, turn.target, turn.cites) == (None, (), None, 0, None, ())


async def test_a_generated_id_tells_nothing_of_its_position_and_finds_the_turn_again(story: tk.Story) -> None:
    turns = await tell(story, 20)
    ids = [turn.id for turn in turns]
    assert len(set(ids)) == 20
    assert ids != sorted(ids), "ids in order of telling would tell a seat how much it did not hear"
    assert all(re.fullmatch(r"t-[0-9a-f]{16}", name) for name in ids)
    assert [(await story.turn(name)).seq for name in ids] == list(range(1, 21))


async def test_a_seat_speaks_under_its_name_else_its_id_and_the_dm_as_dm(story: tk.Story) -> None:
    for seat in ("dm", "rogue", "bard"):
        await story.append(seat, "Yes.")
    context = await story.context("dm", budget=500)
    assert "[DM]: Yes.\n[rogue]: Yes.\n[Lark the Loud]: Yes.\n" in context.text


async def test_a_speaker_may_lend_its_voice_to_someone_who_has_no_seat(story: tk.Story) -> None:
    turn = await story.append("dm", "Out of my tavern!", voice="Old Brannoc")
    assert (turn.speaker, turn.voice) == ("dm", "Old Brannoc")
    assert "[Old Brannoc]: Out of my tavern!\n" in (await story.context("rogue", budget=500)).text


async def test_story_time_is_shown_with_the_turn_and_the_wall_clock_never(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper(clock=lambda: 1234567890.0)
    story = await keeper.story(KEY, seats=TABLE)
    turn = await story.append("dm", "The bell tolls.", when="day 3, dusk")
    await story.append("", "The gate falls shut.", kind="event", when="day 4")
    assert turn.when == "day 3, dusk"
    text = (await story.context("rogue", budget=500)).text
    assert "[DM] (day 3, dusk): The bell tolls.\n" in text
    assert "* (day 4) The gate falls shut.\n" in text
    assert "12345" not in text
    assert "2009" not in text


async def test_mentions_and_cites_are_kept_with_the_turn(story: tk.Story) -> None:
    first = await story.append("dm", "The Ash Crown lies in the crypt.", mentions=["Ash Crown", "crypt"])
    second = await story.append("rogue", "You said so.", cites=[first.id])
    again = await story.turns()
    assert again[0].mentions == ("Ash Crown", "crypt")
    assert again[1].cites == (first.id,)
    assert second.cites == (first.id,)


async def test_only_turns_that_are_there_can_be_cited(story: tk.Story) -> None:
    first = await story.append("dm", "The vault is open.", id="open")
    undone = await story.append("dm", "Nobody hears this.")
    await story.rewind(to=first)
    for lost in ("nowhere", undone.id):
        with pytest.raises(tk.UnknownTurn, match=lost):
            await story.append("rogue", "You said so.", cites=[lost])
    told = await story.append_many([tk.Draft("rogue", "Look!", id="look", cites=["open"]), tk.Draft("dm", "I see.", cites=["look"])])
    with pytest.raises(tk.UnknownTurn, match="later"):
        await story.append_many([tk.Draft("dm", "Wait.", cites=["later"]), tk.Draft("dm", "Now.", id="later")])
    assert [turn.cites for turn in told] == [("open",), ("look",)]
    assert (await story.turns())[-1] == told[-1]


async def test_appending_the_same_id_again_returns_the_turn_that_is_there(story: tk.Story) -> None:
    first = await story.append("dm", "Once.", id="post-17")
    await story.append("dm", "Something else.")
    again = await story.append("dm", "Once.", id="post-17")
    assert again == first
    assert [turn.text for turn in await story.turns()] == ["Once.", "Something else."]


async def test_appending_the_same_id_again_returns_the_turn_as_it_reads_now(story: tk.Story) -> None:
    await story.append("dm", "Once.", id="post-17")
    edited = await story.edit("post-17", "Twice.")
    assert await story.append("dm", "Once.", id="post-17") == edited


async def test_an_id_that_arrives_twice_at_once_is_told_once(story: tk.Story) -> None:
    one, other = await asyncio.gather(story.append("dm", "Once.", id="post-17"), story.append("dm", "Once.", id="post-17"))
    assert one == other
    assert len(await story.turns()) == 1


async def test_a_batch_that_is_sent_again_returns_the_turns_that_are_there(story: tk.Story) -> None:
    batch = [tk.Draft("dm", f"Line {n}.", id=f"post-{n}") for n in range(5)]
    first = await story.append_many(batch)
    assert await story.append_many(batch) == first
    assert await story.append_many(batch[::-1]) == first[::-1]
    assert len(await story.turns()) == 5


@pytest.mark.parametrize(
    "draft",
    [tk.Draft("dm", "Other.", id="post-17"), tk.Draft("rogue", "Once.", id="post-17"), tk.Draft("dm", "Once.", kind="event", id="post-17")],
)
async def test_an_id_is_never_given_to_a_different_turn(story: tk.Story, draft: tk.Draft) -> None:
    await story.append("dm", "Once.", id="post-17")
    with pytest.raises(tk.DuplicateId, match="post-17"):
        await story.append_many([draft])
    assert [turn.text for turn in await story.turns()] == ["Once."]


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ({"heard_by": []}, "audience"),
        ({"heard_by": ["bard"], "location": "tavern"}, "audience"),
        ({"location": "cellar"}, "location"),
        ({"voice": "A hooded figure"}, "voice"),
        ({"when": "day 2"}, "when"),
        ({"mentions": ["Maud", "Voss"]}, "mentions"),
        ({"mentions": ["Voss"]}, "mentions"),
        ({"cites": ["post-16"]}, "cites"),
    ],
)
async def test_an_id_is_never_given_to_a_turn_for_other_ears(story: tk.Story, given: dict[str, Any], other: str) -> None:
    await story.append("dm", "Before.", id="post-16")
    await story.append(
        "rogue", "Once.", heard_by=["innkeeper"], location="tavern", voice="Rat", when="day 1", mentions=["Maud"], id="post-17"
    )
    with pytest.raises(tk.DuplicateId, match=f"post-17.*different turn, with another {other}"):
        await story.append("rogue", "Once.", id="post-17", **given)
    with pytest.raises(tk.DuplicateId, match=f"another {other}"):
        await story.append_many([tk.Draft("dm", "Before.", id="post-16"), tk.Draft("rogue", "Once.", id="post-17", **given)])
    assert len(await story.turns()) == 2


async def test_a_turn_that_is_sent_again_is_the_same_although_people_have_moved_or_come(keeper: tk.Keeper, story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    open_to_all = await story.append("rogue", "Once.", id="open")
    told: dict[str, Any] = {"heard_by": ["innkeeper"], "voice": "Rat", "mentions": ["Maud", "Voss"], "when": "day 1", "cites": ["open"]}
    secret = await story.append("rogue", "Psst.", id="secret", **told)
    await story.enter("rogue", "cellar")
    story = await keeper.story(KEY, seats=[tk.Seat("second", role="dm")])
    assert await story.append("rogue", "Once.", id="open") == open_to_all
    assert await story.append("rogue", "Psst.", id="secret") == secret
    assert await story.append("rogue", "Psst.", id="secret", **{**told, "heard_by": iter(["innkeeper", "rogue"])}) == secret
    again = [tk.Draft("rogue", "Psst.", id="secret", **told), tk.Draft("rogue", "Once.", location="tavern", id="open")]
    assert await story.append_many(again) == [secret, open_to_all]


async def test_an_id_is_not_used_again_after_its_turn_was_rewound(story: tk.Story) -> None:
    await story.append("dm", "Before.")
    await story.append("dm", "Once.", id="post-17")
    await story.rewind(1)
    with pytest.raises(tk.DuplicateId, match="undone"):
        await story.append("dm", "Once.", id="post-17")
    assert [turn.text for turn in await story.turns()] == ["Before."]


async def test_an_id_is_not_used_again_after_its_turn_was_forgotten(story: tk.Story) -> None:
    await story.append("dm", "Once.", id="post-17")
    await story.append("dm", "Twice.", id="post-18")
    await story.forget("post-17")
    for text in ("Once.", "Something else."):
        with pytest.raises(tk.DuplicateId, match="forgotten"):
            await story.append("dm", text, id="post-17")
        with pytest.raises(tk.DuplicateId, match="forgotten"):
            await story.append_many([tk.Draft("dm", text, id="post-17"), tk.Draft("dm", "Twice.", id="post-18")])
    assert [turn.text for turn in await story.turns()] == ["Twice."]


async def test_the_same_id_twice_in_a_batch_or_half_a_known_batch_is_refused_whole(story: tk.Story) -> None:
    with pytest.raises(tk.DuplicateId):
        await story.append_many([tk.Draft("dm", "A.", id="a"), tk.Draft("dm", "B.", id="a")])
    await story.append("dm", "A.", id="a")
    with pytest.raises(tk.DuplicateId):
        await story.append_many([tk.Draft("dm", "A.", id="a"), tk.Draft("dm", "B.", id="b")])
    assert [turn.text for turn in await story.turns()] == ["A."]


async def test_an_id_in_one_story_is_free_in_another(keeper: tk.Keeper, story: tk.Story) -> None:
    other = await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=TABLE)
    await story.append("dm", "Here.", id="post-1")
    assert (await other.append("dm", "There.", id="post-1")).text == "There."


async def test_expected_version_appends_only_to_what_was_seen(story: tk.Story) -> None:
    seen = story.version
    await story.append("dm", "One.", expected_version=seen)
    with pytest.raises(tk.Conflict, match="read again"):
        await story.append("dm", "Two.", expected_version=seen)
    await story.append("dm", "Two.", expected_version=story.version)
    assert [turn.text for turn in await story.turns()] == ["One.", "Two."]


async def test_of_two_who_saw_the_same_version_one_wins(story: tk.Story) -> None:
    seen = story.version
    results = await asyncio.gather(*(story.append("dm", f"Number {n}.", expected_version=seen) for n in range(5)), return_exceptions=True)
    assert sum(isinstance(result, tk.Turn) for result in results) == 1
    assert sum(isinstance(result, tk.Conflict) for result in results) == 4
    assert len(await story.turns()) == 1


async def test_the_version_changes_with_a_rewind_even_to_an_equal_length(story: tk.Story) -> None:
    await tell(story, 3)
    seen = story.version
    await story.rewind(2)
    await story.append("dm", "Another third.")
    assert story.version != seen
    with pytest.raises(tk.Conflict):
        await story.append("dm", "Late.", expected_version=seen)


async def test_many_appends_at_once_all_get_in_once(story: tk.Story) -> None:
    turns = await asyncio.gather(*(story.append("dm", f"Number {n}.") for n in range(50)))
    assert sorted(turn.seq for turn in turns) == list(range(1, 51))
    told = await story.turns()
    assert {turn.text for turn in told} == {f"Number {n}." for n in range(50)}
    assert [turn.seq for turn in told] == list(range(1, 51))


async def test_two_handles_of_one_story_see_each_other(keeper: tk.Keeper, story: tk.Story) -> None:
    other = await keeper.story(KEY)
    await story.append("dm", "From here.")
    await other.append("dm", "From there.")
    assert [turn.text for turn in await story.turns()] == ["From here.", "From there."]
    assert (await story.context("rogue", budget=500)).text == (await other.context("rogue", budget=500)).text


async def test_a_keeper_that_several_enter_at_once_opens_its_file_once(tmp_path: Path) -> None:
    keeper = tk.open(tmp_path / "saga.db")
    first, *others = [asyncio.create_task(keeper.__aenter__()) for _ in range(4)]
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == [keeper] * 3, "whoever gives up stops nobody else"
    with pytest.raises(asyncio.CancelledError):
        await first
    await keeper.story(KEY, seats=[DM])
    await keeper.close()
    assert [each.name for each in tmp_path.iterdir()] == ["saga.db"]
    assert not [thread.name for thread in threading.enumerate() if thread.name.endswith("saga.db")]


async def test_two_processes_on_one_file_interleave_and_agree(open_file: OpenKeeper) -> None:
    here, there = await open_file(), await open_file()
    one, two = await here.story(KEY, seats=TABLE), await there.story(KEY, seats=TABLE)
    for n in range(1, 41):
        await (one if n % 3 else two).append("dm", deed(n), heard_by=["rogue"] if n % 5 == 0 else None)
    assert [turn.text for turn in await one.turns()] == [deed(n) for n in range(1, 41)]
    assert await contexts(one) == await contexts(two)
    await one.rewind(20)
    assert await contexts(one) == await contexts(two)
    assert len(await two.turns()) == 20


async def test_a_caller_who_goes_away_leaves_a_whole_turn_or_none_and_may_come_back(story: tk.Story) -> None:
    for number in range(40):
        task = asyncio.ensure_future(story.append("dm", f"Turn {number}.", id=f"post-{number}"))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        if number % 2:
            await story.append("dm", f"Turn {number}.", id=f"post-{number}")
    texts = [turn.text for turn in await story.turns()]
    assert len(texts) == len(set(texts))
    assert {f"Turn {number}." for number in range(1, 40, 2)} <= set(texts)
    assert len(await story.sources(await story.context("rogue"))) == len(texts)


async def test_append_many_is_one_atomic_step(story: tk.Story) -> None:
    await story.append("dm", "Before.")
    version = story.version
    with pytest.raises(tk.UnknownSeat):
        await story.append_many([tk.Draft("dm", "Good."), tk.Draft("nobody", "Bad.")])
    assert story.version == version
    turns = await story.append_many([tk.Draft("dm", "Two."), tk.Draft("rogue", "Three.", kind="thought")])
    assert [(turn.seq, turn.text) for turn in turns] == [(2, "Two."), (3, "Three.")]
    assert [turn.text for turn in await story.turns()] == ["Before.", "Two.", "Three."]


async def test_appending_no_drafts_changes_nothing(story: tk.Story) -> None:
    version = story.version
    assert await story.append_many([]) == []
    assert story.version == version


async def test_append_and_append_many_give_the_same_memory(keeper: tk.Keeper) -> None:
    one = await keeper.story(KEY, seats=SMALL)
    many = await keeper.story(tk.MemoryKey("acme", "ana", "bulk"), seats=SMALL)
    for n in range(1, 61):
        await one.append("dm", deed(n), heard_by=["bard"] if n % 7 == 0 else None)
    await many.append_many([tk.Draft("dm", deed(n), heard_by=["bard"] if n % 7 == 0 else None) for n in range(1, 61)])
    assert await contexts(one) == await contexts(many)
