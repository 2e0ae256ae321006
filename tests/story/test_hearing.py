"""Who hears what: presence, places, whispers, reveals. On every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories import KEY, SMALL, tell

import talekeeper as tk

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def test_a_story_without_places_has_everyone_present_even_where_a_turn_names_one(story: tk.Story) -> None:
    everyone = ("bard", "dm", "innkeeper", "rogue")
    assert (await story.append("rogue", "Hello.")).audience == everyone
    assert (await story.append("dm", "The tavern is loud.", location="tavern")).audience == everyone


async def test_with_places_a_turn_is_heard_by_who_is_there_and_by_the_dm(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("innkeeper", "tavern")
    await story.enter("bard", "crypt")
    said = await story.append("rogue", "Is anyone listening?")
    assert said.location == "tavern"
    assert said.audience == ("dm", "innkeeper", "rogue")
    assert (await story.append("bard", "It is dark.")).audience == ("bard", "dm")
    assert (await story.append("dm", "A mug falls.", location="tavern")).audience == ("dm", "innkeeper", "rogue")
    assert (await story.append("dm", "A stone moves.", location="crypt")).audience == ("bard", "dm")
    assert (await story.append("dm", "Nobody is on the moor.", location="moor")).audience == ("dm",)


async def test_what_happens_nowhere_in_particular_is_heard_by_all_who_have_not_left(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("bard", "crypt")
    await story.leave("bard")
    assert (await story.append("dm", "Thunder.")).audience == ("dm", "innkeeper", "rogue")


async def test_who_left_hears_nothing_until_they_enter_again(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("bard", "tavern")
    left = await story.leave("bard")
    assert left is not None
    assert (left.kind, left.audience) == ("leave", ("bard", "dm", "rogue"))
    assert (await story.append("rogue", "Gone at last.")).audience == ("dm", "rogue")
    assert story.presence()["bard"] is None
    entered = await story.enter("bard", "tavern", text="Lark kicks the door open.")
    assert entered is not None
    assert (entered.kind, entered.text, entered.location) == ("enter", "Lark kicks the door open.", "tavern")
    assert entered.audience == ("bard", "dm", "rogue")
    assert (await story.append("rogue", "You again.")).audience == ("bard", "dm", "rogue")
    heard = [turn.text for turn in await story.turns(seat="bard")]
    assert "Gone at last." not in heard
    assert "You again." in heard


async def test_who_is_there_or_gone_already_is_not_told_of_again(story: tk.Story) -> None:
    assert await story.leave("innkeeper") is not None, "who was nowhere in particular heard everything"
    first = await story.enter("bard", "tavern", id="came")
    assert await story.enter("bard", "tavern") is None
    assert await story.enter("bard", "tavern", id="again") is None
    assert await story.enter("bard", "tavern", id="came") == first
    waved = await story.enter("bard", "tavern", text="Lark waves from the window.")
    assert waved is not None
    assert (waved.text, waved.audience) == ("Lark waves from the window.", ("bard", "dm"))
    with pytest.raises(tk.DuplicateId, match="another location"):
        await story.enter("bard", "crypt", id="came")
    assert await story.leave("bard") is not None
    assert await story.leave("bard", text="Lark slips out.") is None
    assert await story.leave("innkeeper") is None
    assert [turn.kind for turn in await story.turns()] == ["leave", "enter", "enter", "leave"]
    assert await story.enter("bard", "tavern") is not None


async def test_whom_another_process_has_moved_can_come_back(open_file: OpenKeeper) -> None:
    one = await (await open_file()).story(KEY, seats=SMALL)
    two = await (await open_file()).story(KEY)
    await one.enter("bard", "tavern")
    await two.enter("bard", "crypt")
    assert await one.enter("bard", "tavern") is not None
    await two.leave("bard")
    assert await one.leave("bard") is None


async def test_a_pin_that_is_there_or_not_there_changes_nothing(story: tk.Story) -> None:
    vow = await story.append("dm", "The vow of the lantern.")
    assert await story.unpin(vow) == vow
    assert story.head == 1
    await story.pin(vow)
    assert await story.pin(vow) == vow
    assert story.head == 2
    await story.unpin(vow)
    await story.unpin(vow)
    assert story.head == 3
    assert await story.append_many([]) == []


async def test_who_goes_elsewhere_is_heard_to_leave_first(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("innkeeper", "tavern")
    await story.enter("bard", "crypt")
    before = story.head
    await story.enter("rogue", "crypt")
    moves = await story.turns(after=before)
    assert [(turn.kind, turn.location, turn.audience) for turn in moves] == [
        ("leave", "tavern", ("dm", "innkeeper", "rogue")),
        ("enter", "crypt", ("bard", "dm", "rogue")),
    ]
    assert story.presence()["rogue"] == "crypt"


async def test_presence_is_part_of_the_log_and_goes_back_with_a_rewind(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    at = story.head
    await story.enter("rogue", "crypt")
    await story.rewind(at)
    assert story.presence() == {"rogue": "tavern"}
    assert (await story.append("rogue", "Where was I?")).location == "tavern"


async def test_a_whisper_needs_hearers_and_is_heard_by_them_the_speaker_and_the_dm(story: tk.Story) -> None:
    with pytest.raises(tk.InvalidInput, match="heard_by"):
        await story.append("rogue", "Psst.", kind="whisper")
    turn = await story.append("rogue", "Psst.", kind="whisper", heard_by=["innkeeper"])
    assert turn.audience == ("dm", "innkeeper", "rogue")
    assert "Psst" not in (await story.context("bard", budget=500)).text
    assert "[rogue, whispering]: Psst.\n" in (await story.context("innkeeper", budget=500)).text


async def test_a_thought_is_heard_by_its_thinker_and_the_dm_alone_wherever_they_are(story: tk.Story) -> None:
    assert (await story.append("rogue", "He lies.", kind="thought")).audience == ("dm", "rogue")
    await story.enter("rogue", "tavern")
    await story.enter("bard", "tavern")
    assert (await story.append("rogue", "He still lies.", kind="thought")).audience == ("dm", "rogue")
    assert "[rogue, thinking]: He lies.\n" in (await story.context("rogue", budget=500)).text


async def test_naming_hearers_never_leaves_out_the_speaker_or_a_dm(keeper: tk.Keeper) -> None:
    seats = [tk.Seat("dm", role="dm"), tk.Seat("second", role="dm"), tk.Seat("a"), tk.Seat("b"), tk.Seat("c")]
    story = await keeper.story(KEY, seats=seats)
    assert (await story.append("a", "Only you.", heard_by=["b"])).audience == ("a", "b", "dm", "second")
    assert (await story.append("a", "To myself.", heard_by=[])).audience == ("a", "dm", "second")


async def test_an_event_may_have_no_speaker(story: tk.Story) -> None:
    turn = await story.append("", "The lights go out.", kind="event")
    assert (turn.speaker, turn.voice, turn.kind) == ("", "", "event")
    assert "* The lights go out.\n" in (await story.context("bard", budget=500)).text


async def test_a_note_is_canon_for_those_who_are_elsewhere_or_gone_too(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("bard", "crypt")
    await story.leave("bard")
    lore = await story.note("Gods never lie in this world.")
    assert lore.audience == ("bard", "dm", "innkeeper", "rogue")
    assert "Gods never lie" in (await story.context("bard", budget=500)).text


async def test_a_note_is_canon_for_everyone_or_for_those_who_are_named(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    lore = await story.note("Gods never lie in this world.")
    secret = await story.note("The rogue is the duke's lost heir.", heard_by=["bard"])
    assert (lore.kind, lore.speaker, lore.audience) == ("note", "", ("bard", "dm", "innkeeper", "rogue"))
    assert secret.audience == ("bard", "dm")
    rogue, bard = await story.context("rogue", budget=500), await story.context("bard", budget=500)
    assert "- Gods never lie in this world.\n" in rogue.text
    assert "heir" not in rogue.text
    assert "- The rogue is the duke's lost heir.\n" in bard.text


async def test_canon_stays_word_for_word_when_the_story_around_it_is_folded(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    await story.note("Gods never lie in this world.")
    await tell(story, 200)
    canon = (await story.context("rogue")).block("canon")
    assert canon is not None
    assert canon.text == "## Canon\n- Gods never lie in this world.\n"


async def test_a_new_session_is_heard_by_all_and_memory_goes_on(story: tk.Story) -> None:
    await story.append("dm", "The crown is found.")
    await story.enter("rogue", "tavern")
    begun = await story.begin_session("Part two")
    assert (begun.kind, begun.text, begun.audience) == ("session", "Part two", ("bard", "dm", "innkeeper", "rogue"))
    await story.begin_session()
    text = (await story.context("bard", budget=500)).text
    assert "The crown is found." in text
    assert "* Part two\n" in text
    assert (await story.stats()).sessions == 2


async def test_a_reveal_is_a_new_turn_that_cites_the_old_one(story: tk.Story) -> None:
    secret = await story.append("rogue", "I stole the crown.", heard_by=["innkeeper"])
    told = await story.reveal(secret, to=["bard"])
    assert (told.kind, told.cites, told.audience) == ("event", (secret.id,), ("bard", "dm"))
    assert told.text == "rogue: I stole the crown."
    confession = await story.reveal(secret.id, to=["bard"], text="It was me.", speaker="rogue")
    assert (confession.kind, confession.speaker, confession.audience) == ("said", "rogue", ("bard", "dm", "rogue"))
    assert (await story.turn(secret.id)).audience == ("dm", "innkeeper", "rogue"), "who heard the old turn never changes"
    assert secret.text not in {turn.text for turn in await story.turns(seat="bard")}
