"""The front door, as someone who builds on it sees it: telling, presence, time travel, the author's hand, upkeep. On every store."""

from __future__ import annotations

import asyncio
import gc
import re
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import talekeeper as tk
from talekeeper import memory
from talekeeper.doctor import examine
from talekeeper.folds import Node
from talekeeper.ports import Commit, Message, Read
from talekeeper.stores.in_memory import InMemoryStore
from talekeeper.testing.models import MoodyModel, ScriptedModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
DM = tk.Seat("dm", role="dm")
TABLE = (DM, tk.Seat("rogue"), tk.Seat("bard", name="Lark the Loud"), tk.Seat("innkeeper", role="npc"))
SMALL = (tk.Seat("dm", role="dm", token_limit=600), tk.Seat("rogue", token_limit=400), tk.Seat("bard", token_limit=400))
DEEDS = (
    "Captain Voss counts the silver coins on the table twice and says that nobody leaves before the third bell",
    "the old ferryman swears that the bridge will not hold another winter, whatever the duke has promised them",
    "Mira hides the brass key under the loose stone behind the altar and tells nobody about the second door",
    "rain comes down from the hills and the road to the mill is gone until somebody clears the fallen trees",
)


def deed(number: int) -> str:
    """A turn's text that holds one word which is in no other."""
    return f"mark{number}x: {DEEDS[number % len(DEEDS)]}."


async def tell(story: tk.Story, count: int, first: int = 1, **settings: object) -> list[tk.Turn]:
    return await story.append_many([tk.Draft("dm", deed(n), **settings) for n in range(first, first + count)])  # type: ignore[arg-type]


async def contexts(story: tk.Story, budgets: Sequence[int] = (150, 400, 4000)) -> list[str]:
    return [(await story.context(seat.id, budget=budget)).text for seat in story.seats for budget in budgets]


async def leaf_over(story: tk.Story, fold: tk.Fold, turn: tk.Turn) -> tk.Fold:
    """The smallest fold below this one that the turn went into."""
    while fold.level:
        below = [await story.fold(child) for child in fold.children]
        (fold,) = [child for child in below if turn.id in await story.sources(child)]
    return fold


async def all_folds(story: tk.Story, seat: str, budget: int | None = None) -> list[tk.Fold]:
    """The folds that a seat's context stands on, and all that they are made of."""
    found: list[tk.Fold] = []
    todo = await story.folds(seat, budget=budget)
    while todo:
        fold = todo.pop()
        found.append(fold)
        todo += [await story.fold(child) for child in fold.children] if fold.level else []
    return found


async def until(claim: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Waits until the claim holds."""
    end = time.monotonic() + seconds
    while not await claim():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.005)


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=TABLE)


# -- telling -----------------------------------------------------------------------------------------------------------


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


# -- who hears what ----------------------------------------------------------------------------------------------------


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


# -- one who joins late ------------------------------------------------------------------------------------------------

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


# -- looking at the log ------------------------------------------------------------------------------------------------


async def test_turns_can_be_filtered_by_seat_kind_speaker_and_place(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("bard", "crypt")
    await story.append("rogue", "In the tavern.")
    await story.append("bard", "In the crypt.")
    await story.append("bard", "A thought.", kind="thought")
    await story.note("Lore.")
    await story.edit(3, "In the old tavern.")
    await story.pin(3)

    async def found(**wanted: object) -> list[str]:
        return [turn.text for turn in await story.turns(**wanted)]  # type: ignore[arg-type]

    assert await found(seat="rogue", kinds=["said", "thought"]) == ["In the old tavern."]
    assert await found(speaker="bard", kinds=["said"]) == ["In the crypt."]
    assert await found(location="crypt", kinds=["said", "thought"]) == ["In the crypt.", "A thought."]
    assert await found(kinds=["note"]) == ["Lore."]
    assert [turn.kind for turn in await story.turns()] == ["enter", "enter", "said", "said", "thought", "note"]
    assert [turn.kind for turn in await story.turns(kinds=["edit", "pin"])] == ["edit", "pin"]


async def test_turns_are_paged_by_number_in_both_directions(story: tk.Story) -> None:
    await story.append_many([tk.Draft("dm", f"Line {n}.", heard_by=["rogue"] if n % 2 else ["bard"]) for n in range(1, 1301)])
    everything = await story.turns()
    assert [turn.seq for turn in everything] == list(range(1, 1301))
    pages: list[tk.Turn] = []
    while page := await story.turns(after=pages[-1].seq if pages else 0, limit=333):
        pages += page
    assert pages == everything
    back: list[tk.Turn] = []
    while page := await story.turns(before=back[0].seq if back else None, limit=333, newest=True):
        back = page + back
    assert back == everything
    assert [turn.seq for turn in await story.turns(seat="rogue", limit=3, newest=True)] == [1295, 1297, 1299]
    assert [turn.seq for turn in await story.turns(seat="rogue", limit=3)] == [1, 3, 5]
    assert [turn.seq for turn in await story.turns(after=4, before=8)] == [5, 6, 7]
    assert await story.turns(limit=0) == []
    assert await story.turns(after=99_999) == []


async def test_a_turn_is_found_by_number_by_id_and_by_itself(story: tk.Story) -> None:
    turn = (await tell(story, 3))[1]
    own = await story.append("dm", "Mine.", id="my own id")
    assert await story.turn(2) == await story.turn(turn.id) == await story.turn(turn) == turn
    assert await story.turn("my own id") == own


# -- pins --------------------------------------------------------------------------------------------------------------


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


# -- going back and branching ------------------------------------------------------------------------------------------


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


# -- the author's hand -------------------------------------------------------------------------------------------------


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


# -- forgetting --------------------------------------------------------------------------------------------------------

SECRET = "Quillon's true name is Vraxholm Ezzerine, and he owes 4711 sovereigns"
TRACES = ("Vraxholm", "Ezzerine", "4711", "Quillon", "vraxholm", "ezzerin", "quillon")


async def everything_said(story: tk.Story) -> str:
    """All that the story gives out: contexts, briefs, folds of every level, log, recall."""
    parts = await contexts(story, (150, 400, 4000, 40_000))
    for seat in story.seats:
        parts.append((await story.brief(seat.id, budget=4000)).text)
        parts += [fold.text for budget in (200, 400, 2000) for fold in await all_folds(story, seat.id, budget)]
        for trace in TRACES:
            parts += [hit.turn.text for hit in await story.recall(seat.id, trace, limit=50)]
    parts += [turn.text for turn in [*await story.turns(), *await story.turns(kinds=["edit", "override"])]]
    return "\n".join(parts)


async def test_a_forgotten_turn_is_gone_everywhere_and_for_good(open_keeper: OpenKeeper, target: str, tmp_path: Path) -> None:
    keeper = await open_keeper(summarizer=MoodyModel())
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 10)
    secret = await story.append("dm", SECRET + ".", mentions=["Vraxholm"])
    await tell(story, 150, first=100)
    await story.edit(secret, SECRET + ", as Ezzerine himself admits.")
    await story.edit(secret, SECRET + ".")
    await story.settle()
    fork = await story.fork(at=100, name="elsewhere")
    await fork.append("dm", "On we go.")
    await fork.settle()
    over = [fold for fold in await story.folds("rogue") if secret.id in await story.sources(fold)]
    await story.override((await leaf_over(story, over[0], secret)).id, "The author says: Quillon is Vraxholm.")
    assert "Vraxholm" in await everything_said(story)
    if target != ":memory:":
        assert b"Vraxholm" in bytes_below(tmp_path)

    await story.forget(secret)

    for branch in (story, fork):
        said = await everything_said(branch)
        assert not [trace for trace in TRACES if trace in said]
        with pytest.raises(tk.UnknownTurn):
            await branch.turn(secret.id)
    if target != ":memory:":
        left = bytes_below(tmp_path).lower()
        assert not [trace for trace in TRACES if trace.isalpha() and trace.lower().encode() in left]  # digits may be part of a hash
    await story.rewind(50)
    assert "Vraxholm" not in await everything_said(story)
    rest = {turn.id for turn in await story.turns(seat="rogue")}
    for budget in (tk.FLOOR, 4000):
        shown = set(await story.sources(await story.context("rogue", budget=budget)))
        assert shown - {secret.id} == rest, "nothing else is lost"


async def test_a_turn_is_forgotten_while_it_is_recent_pinned_and_not_yet_stored_in_any_fold(story: tk.Story) -> None:
    await tell(story, 3)
    secret = await story.append("dm", SECRET + ".", heard_by=["rogue"])
    await story.pin(secret)
    await story.forget(secret.id)
    said = await everything_said(story)
    assert not [trace for trace in TRACES if trace in said]
    assert (await story.append("dm", "And on.")).seq == 6


@pytest.mark.parametrize("counter", [tk.Exact, tk.Heuristic])
@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_what_was_forgotten_is_in_no_text_that_the_process_still_holds(
    open_keeper: OpenKeeper, how: str, counter: Callable[[], tk.TokenCounter]
) -> None:
    keeper = await open_keeper(counter=counter())
    story = await keeper.story(KEY, seats=SMALL)
    name = await tell_a_secret(story)
    await tell(story, 60)
    await look_back(story)
    fork = await story.fork()
    await look_back(fork)
    assert len(held()) > 3
    if how == "forget":
        await story.forget(name)
        await look_back(story, "the lantern")
    else:
        del story, fork
        await keeper.delete(KEY)
    assert not held()


@pytest.mark.parametrize("seen", [False, True], ids=["before anyone looked", "after a look"])
async def test_the_newest_turn_leaves_nothing_in_memory_when_it_is_forgotten(open_keeper: OpenKeeper, seen: bool) -> None:
    story = await (await open_keeper()).story(KEY, seats=SMALL)
    await tell(story, 8)
    number = (await story.append("dm", f"The grey lantern behind {BACKWARDS[0][::-1].title()} was lit.")).seq
    if seen:
        await story.context("rogue", budget=400)
    assert held()
    await story.forget(number)
    assert not held()


BACKWARDS = ("avarzzo", "kciwelzzov", "yadznehw", "xalbroz")
"""Names of the secret, the wrong way round: so nothing but the story itself holds them."""


async def tell_a_secret(story: tk.Story) -> str:
    """The id of a turn with the secret, of which nothing is left here."""
    place, voice, day, person = (name[::-1].title() for name in BACKWARDS)
    said = f"The grey lantern behind {place} was lit on 3 May 2023. I promise you, Voss, that {person} gets his 77 silver. {person} is my brother."
    return (await story.append("dm", said, voice=voice, when=day, mentions=[place])).id


async def look_back(story: tk.Story, query: str = "") -> None:
    """Everything that reads the story, for everyone. By default the query names the secret."""
    query = query or "Who lit the lantern behind {0}, and what is {3} to me?".format(*(name[::-1].title() for name in BACKWARDS))
    for seat in story.seats:
        for budget in (tk.FLOOR, 400, 3000):
            await story.context(seat.id, budget=budget, query=query)
        await story.recall(seat.id, query)
        await memory.remember(story, seat.id)
        await memory.find_callbacks(story, seat.id)
        await memory.character_facts(story, seat.id)


def held() -> set[str]:
    """The strings with a name of the secret in them, in whatever the process holds, caches included."""
    gc.collect()
    texts = {text for each in gc.get_objects() for text in gc.get_referents(each) if isinstance(text, str)}
    return {text for text in texts if any(name in text.casefold()[::-1] for name in BACKWARDS)}


async def test_no_voice_of_a_forgotten_turn_is_left_in_the_file(open_file: OpenKeeper, tmp_path: Path) -> None:
    story = await (await open_file()).story(KEY, seats=SMALL)
    lent = await story.append("dm", "Psst.", voice="Hollowmere")
    heard = await story.append("", "A voice in the dark.", kind="event", voice="Morgrave")
    own = await story.append("rogue", "Who is there?")
    await tell(story, 60)
    assert b"Hollowmere" in bytes_below(tmp_path)
    assert b"Morgrave" in bytes_below(tmp_path)
    for turn in (lent, heard, own):
        await story.forget(turn)
    assert b"Hollowmere" not in bytes_below(tmp_path)
    assert b"Morgrave" not in bytes_below(tmp_path)


async def test_a_swipe_and_a_turn_of_another_branch_can_be_forgotten_there(story: tk.Story) -> None:
    await tell(story, 3)
    await story.append("dm", SECRET + ".")
    await story.regenerate("Nothing of the kind.")
    left = next(branch for branch in await story.branches() if not branch.current)
    other = await story.switch(left.name)
    await other.forget(4)
    assert [turn.text for turn in await story.swipes()] == ["Nothing of the kind."]
    said = await everything_said(other)
    assert not [trace for trace in TRACES if trace in said]
    assert [turn.text for turn in await other.swipes()] == ["Nothing of the kind."]


async def test_what_one_process_forgets_is_gone_from_the_memory_of_another(open_file: OpenKeeper) -> None:
    one = await (await open_file()).story(KEY, seats=SMALL)
    two = await (await open_file()).story(KEY)
    await tell(one, 30)
    old = await one.append("dm", SECRET + ".")
    await tell(one, 30, first=100)
    recent = await one.append("dm", SECRET + ", again.")
    await two.pin(recent)
    assert "Vraxholm" in await everything_said(two)
    await one.forget(old)
    await one.forget(recent)
    said = await everything_said(two)
    assert not [trace for trace in TRACES if trace in said]
    await tell(two, 3, first=200)
    assert await contexts(one) == await contexts(two)


async def test_what_was_forgotten_stays_forgotten_when_the_file_is_opened_again(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 40)
    secret = await story.append("dm", SECRET + ".")
    await tell(story, 40, first=100)
    await story.settle()
    await story.forget(secret)
    before = await contexts(story)
    await keeper.close()
    again = await (await open_file()).story(KEY)
    assert await contexts(again) == before
    assert not [trace for trace in TRACES if trace in await everything_said(again)]


# -- keys --------------------------------------------------------------------------------------------------------------


async def test_keys_whose_joined_parts_look_alike_never_meet(keeper: tk.Keeper) -> None:
    keys = [
        tk.MemoryKey("acme:bob", "1", "s"), tk.MemoryKey("acme", "bob:1", "s"), tk.MemoryKey("acme", "bob", "1:s"),
        tk.MemoryKey("acme\\", "bob", "s"), tk.MemoryKey("acme", "\\bob", "s"), tk.MemoryKey("acme", "bob", "s"),
        tk.MemoryKey("acme ", "bob", "s"), tk.MemoryKey("ACME", "bob", "s"), tk.MemoryKey("%", "bob", "s"),
        tk.MemoryKey("_cme", "bob", "s"), tk.MemoryKey("é", "bob", "s"), tk.MemoryKey("e\u0301", "bob", "s"), tk.MemoryKey("acme", "bob\n1", "s"),
    ]  # fmt: skip
    for number, key in enumerate(keys):
        story = await keeper.story(key, seats=[DM])
        await story.append("dm", f"This is story number {number}.")
    for number, key in enumerate(keys):
        story = await keeper.story(key)
        assert [turn.text for turn in await story.turns()] == [f"This is story number {number}."]
        assert len(await story.recall("dm", "story number", limit=50)) == 1
    assert sorted(keys, key=repr) == sorted(await keeper.keys(), key=repr)
    assert await keeper.keys("acme:bob") == [keys[0]]
    assert await keeper.keys("%") == [keys[8]]
    assert len({key.composite() for key in keys}) == len(keys)


def test_composite_joins_with_colons_and_escapes_what_would_be_ambiguous() -> None:
    assert tk.MemoryKey("acme", "ana", "s1").composite() == "acme:ana:s1"
    assert tk.MemoryKey("acme:bob", "1", "s").composite() == "acme\\:bob:1:s"
    assert tk.MemoryKey("a\\", ":b", "c").composite() == "a\\\\:\\:b:c"


async def test_a_deleted_story_is_gone_and_its_key_is_free_for_a_new_one(keeper: tk.Keeper, target: str, tmp_path: Path) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    other = await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=TABLE)
    await story.append("dm", SECRET, id="post-1")
    await story.settle()
    await other.append("dm", "Still here.")
    assert await keeper.delete(KEY) is True
    assert await keeper.delete(KEY) is False
    assert await keeper.keys() == [other.key]
    with pytest.raises(tk.UnknownStory):
        await keeper.story(KEY)
    with pytest.raises(tk.UnknownStory):
        await story.context("rogue", budget=500)
    if target != ":memory:":
        left = bytes_below(tmp_path).lower()
        assert not [trace for trace in TRACES if trace.isalpha() and trace.lower().encode() in left]  # digits may be part of a hash
    fresh = await keeper.story(KEY, seats=[DM])
    assert await fresh.turns() == []
    assert await fresh.recall("dm", "Vraxholm") == []
    assert (await fresh.append("dm", "New.", id="post-1")).seq == 1
    assert [turn.text for turn in await other.turns()] == ["Still here."]


async def test_an_old_handle_of_a_deleted_story_never_writes_into_the_new_one(keeper: tk.Keeper) -> None:
    old = await keeper.story(KEY, seats=TABLE)
    await old.append("dm", "Old.")
    await keeper.delete(KEY)
    fresh = await keeper.story(KEY, seats=TABLE)
    with pytest.raises(tk.TalekeeperError):
        await old.append("dm", "A ghost speaks.")
    assert await fresh.turns() == []


# -- opening again -----------------------------------------------------------------------------------------------------


async def test_a_story_that_is_opened_again_is_byte_for_byte_the_same(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SMALL)
    await story.note("Gods never lie.")
    await story.enter("rogue", "tavern")
    for n in range(1, 300, 10):
        await tell(story, 10, first=n, location="tavern" if n % 3 else None)
    await story.edit(20, "An edit: the mill burned.")
    await story.pin(25)
    before, presence, stats = await contexts(story), story.presence(), await story.stats()
    recalled = await story.recall("rogue", "silver coins at the third bell", limit=20)
    await keeper.close()
    again = await (await open_file()).story(KEY)
    assert await contexts(again) == before
    assert (again.presence(), again.head, again.seats) == (presence, story.head, SMALL)
    assert await again.recall("rogue", "silver coins at the third bell", limit=20) == recalled
    assert await again.stats() == stats


async def test_a_closed_keeper_says_so(keeper: tk.Keeper, story: tk.Story) -> None:
    await keeper.close()
    await keeper.close()
    with pytest.raises(tk.TalekeeperError):
        await keeper.story(KEY, seats=TABLE)
    with pytest.raises(tk.StoreClosed):
        await story.append("dm", "Too late.")


async def test_whoever_closes_a_keeper_too_waits_until_it_is_closed(open_file: OpenKeeper, tmp_path: Path) -> None:
    keeper = await open_file()
    await tell(await keeper.story(KEY, seats=TABLE), 40)
    first = asyncio.create_task(keeper.close())
    await asyncio.sleep(0)
    await keeper.close()
    assert not list(tmp_path.glob("*-wal")), "the last connection takes the write-ahead log along"
    await first


async def test_the_sources_of_a_fold_over_several_circles_come_in_the_order_of_telling(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SMALL)
    circles = (None, ["rogue"], ["bard"])
    told = await story.append_many([tk.Draft("dm", deed(n), heard_by=circles[n % 3]) for n in range(300)])
    order = {turn.id: turn.seq for turn in told}
    folds = [fold for fold in await story.folds("dm") if fold.level]
    assert folds
    for fold in folds:
        numbers = [order[id] for id in await story.sources(fold)]
        assert numbers == sorted(numbers)


# -- counting ----------------------------------------------------------------------------------------------------------


async def test_stats_say_what_a_story_holds(keeper: tk.Keeper, story: tk.Story) -> None:
    turns = [*await tell(story, 3), await story.append("dm", "A secret.", heard_by=["rogue"]), await story.begin_session()]
    await story.edit(1, "Changed.")
    await story.fork()
    stats = await story.stats()
    assert (stats.turns, stats.sessions, stats.branches, stats.channels) == (5, 1, 2, 2)
    assert stats.tokens == sum(turn.tokens for turn in turns)
    assert {seat: row["turns"] for seat, row in stats.seats.items()} == {"dm": 5, "rogue": 5, "bard": 4, "innkeeper": 4}
    assert stats.seats["bard"]["tokens"] == stats.tokens - turns[3].tokens
    assert (stats.model_calls, stats.model_tokens_in, stats.model_tokens_out, stats.model_failures) == (0, 0, 0, 0)


async def test_seats_with_the_same_past_share_their_folds(keeper: tk.Keeper) -> None:
    made = []
    for count in (1, 5):
        seats = [DM, *(tk.Seat(f"pc{n}") for n in range(count))]
        story = await keeper.story(tk.MemoryKey("acme", "ana", f"{count} players"), seats=seats)
        await tell(story, 160)
        made.append(await story.stats())
    one, five = made
    assert five.folds == one.folds == 160 // 8 + 160 // 64, "five seats do not cost five times"
    assert one.folds_shared == one.folds, "of two who heard the same, one has all folds for nothing"
    assert five.folds_shared == 5 * five.folds, "and so have five of six"
    alone = await keeper.story(tk.MemoryKey("acme", "ana", "alone"), seats=[tk.Seat("pc0")])
    await alone.append_many([tk.Draft("pc0", deed(n)) for n in range(160)])
    await alone.edit(3, "Something quite different happened: the mill burned.")
    assert (await alone.stats()).folds_shared == 0, "whoever is alone shares nothing"


# -- models ------------------------------------------------------------------------------------------------------------

QUICK = tk.RetryPolicy(attempts=3, pause=0.001, longest=0.002, recover_after=3600)


async def told_with(open_keeper: OpenKeeper, model: tk.ChatModel, turns: int = 40, **settings: object) -> tk.Story:
    keeper = await open_keeper(summarizer=model, **{"retry": QUICK, "timeout": 0.05, **settings})
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, turns)
    return story


async def is_in(story: tk.Story, state: tk.HealthState) -> bool:
    return (await story.health()).state is state


async def test_model_folds_replace_extractive_ones_once_they_are_there(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    folds = await story.folds("rogue")
    assert folds
    assert {fold.made_by for fold in folds} == {"model"}
    assert {fold.made_by for fold in await all_folds(story, "rogue")} == {"model"}
    health = await story.health()
    assert (health.state, health.pending, health.reason, health.summarizer) == (tk.HealthState.HEALTHY, 0, "", "model")
    assert len(await story.sources(await story.context("rogue"))) == 120


async def test_a_models_citations_are_its_sentences_sources(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel(), 60)
    await story.settle()
    fold = next(fold for fold in await story.folds("rogue") if fold.level == 0)
    heard = set(await story.sources(fold))
    assert all(set(sentence.sources) <= heard for sentence in fold.sentences)
    assert any(not sentence.estimated and len(sentence.sources) == 1 for sentence in fold.sentences)


async def test_without_citations_sources_are_marked_as_estimated(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel("uncited"), 60)
    await story.settle()
    fold = next(fold for fold in await story.folds("rogue") if fold.level == 0)
    assert fold.made_by == "model"
    heard = set(await story.sources(fold))
    assert all(sentence.estimated and set(sentence.sources) <= heard for sentence in fold.sentences)


def overheard() -> tuple[tk.ChatModel, list[str]]:
    """A good model, and all that it is asked."""
    asked: list[str] = []
    good = MoodyModel()

    async def model(messages: Sequence[tk.Message]) -> str:
        asked.append(messages[-1]["content"])
        return await good(messages)

    return model, asked


async def test_a_model_is_told_of_every_scene_that_it_sums_up_though_nobody_has_looked_yet(open_keeper: OpenKeeper) -> None:
    model, asked = overheard()
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=400)])
    for day in range(12):
        await story.append_many([tk.Draft("dm", deed(day * 10 + n), location="hall") for n in range(8)])
        await story.append("dm", f"Mira{day} hides {day + 20} crowns under the stone.", location="mill")  # too short for a fold of its own
    await story.settle()
    coarse = [fold for fold in await story.folds("dm") if fold.level]
    scenes = [
        turn.text.split()[0] for fold in coarse for each in await story.sources(fold) if "Mira" in (turn := await story.turn(each)).text
    ]
    assert scenes
    assert [scene for scene in scenes if not any(scene in text for text in asked)] == []


async def test_a_model_is_told_nothing_that_not_all_hearers_of_a_fold_heard(open_keeper: OpenKeeper) -> None:
    model, asked = overheard()
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    for n in range(1, 121):
        await story.append("dm", f"{'forrogue' if n % 2 else 'forbard'} {deed(n)}", heard_by=["rogue"] if n % 2 else ["bard"])
    await story.settle()
    assert asked
    bardless = [text for text in asked if "forrogue" in text]
    assert bardless
    for seat, word in (("rogue", "forbard"), ("bard", "forrogue")):
        for fold in await story.folds(seat):
            assert word not in fold.text


async def test_coming_back_to_folds_that_a_model_made_costs_no_call(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    calls, head = model.calls, story.head
    assert calls > 0
    await story.settle()
    assert model.calls == calls
    await story.rewind(head - 10)
    await story.settle()
    assert model.calls == calls
    await story.append("dm", "Okay.")
    await story.settle()
    assert model.calls == calls, "a text that was made once is taken again"
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}


async def test_contexts_before_a_rewind_come_back_as_they_last_were_with_model_folds(open_keeper: OpenKeeper) -> None:
    story = await told_with(open_keeper, MoodyModel(), 100)
    await story.settle()
    before, head = await contexts(story), story.head
    await tell(story, 100, first=500)
    await story.settle()
    await story.rewind(head)
    assert await contexts(story) == before
    await story.settle()
    assert await contexts(story) == before


async def test_model_texts_survive_in_the_file(open_file: OpenKeeper) -> None:
    model = MoodyModel()
    keeper = await open_file(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    before, calls, stats = await contexts(story), model.calls, await story.stats()
    await keeper.close()
    again = await (await open_file(summarizer=model, retry=QUICK)).story(KEY)
    assert await contexts(again) == before
    await again.settle()
    assert model.calls == calls
    assert await again.stats() == stats


async def test_what_models_cost_is_counted(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    stats = await story.stats()
    assert stats.model_calls == model.calls > 0
    assert stats.model_tokens_in > stats.model_tokens_out > 0
    assert stats.model_failures == 0
    assert stats.model_calls_saved == round(stats.model_calls * stats.folds_shared / stats.folds) > 0, "three seats do not cost three times"
    assert stats.model_tokens_saved > stats.model_calls_saved


REASONS = {
    "failing": "the model is not reachable", "empty": "refused", "garbage": "refused", "too long": "refused", "refusing": "refused", "reciting": "refused",
    "echoing": "it is no shorter than what it was made from", "cut off": "it has a lone surrogate", "nul": "it has a NUL byte",
    "inventing": "it has nothing in common with what it was made from",
    "not text": "NoneType", "slow": "did not answer", "cancelled": "CancelledError",
}  # fmt: skip


@pytest.mark.parametrize("mood", REASONS)
async def test_a_model_in_a_bad_mood_loses_nothing_and_shows_in_health(open_keeper: OpenKeeper, mood: str) -> None:
    plain = await (await open_keeper(":memory:")).story(KEY, seats=SMALL)
    await tell(plain, 120)
    model = MoodyModel(mood)
    story = await told_with(open_keeper, model, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert REASONS[mood] in health.reason
    assert health.failures >= 3
    assert health.pending > 0
    assert await contexts(story) == await contexts(plain), "the extractive folds are there"
    assert {fold.made_by for fold in await story.folds("rogue")} == {"extractive"}
    stats = await story.stats()
    assert stats.model_calls == stats.model_failures == model.calls


async def test_a_model_that_answers_with_an_error_is_given_up_like_one_that_does_not_answer(open_keeper: OpenKeeper) -> None:
    asked: list[float] = []

    async def limited(messages: Sequence[Message]) -> str:
        asked.append(asyncio.get_running_loop().time())
        return "Error: rate limit exceeded, please try again later."

    keeper = await open_keeper(":memory:", summarizer=limited, retry=tk.RetryPolicy(attempts=3, pause=0.05))
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    assert (await story.health()).state is tk.HealthState.DEGRADED
    assert len(asked) == 4  # with growing pauses; and one more, in case it was that fold
    assert asked[1] - asked[0] >= 0.04
    assert asked[2] - asked[1] >= 0.09


class _Choosy(InMemoryStore):
    """A store that takes anything but model texts."""

    def __init__(self, error: tk.TalekeeperError) -> None:
        super().__init__()
        self.error: tk.TalekeeperError | None = error

    async def write(self, commit: Commit) -> int:
        if commit.texts and self.error is not None:
            raise self.error
        return await super().write(commit)


@pytest.mark.parametrize("error", [tk.InvalidInput("that cannot be stored"), tk.StoreBusy("locked for too long")])
async def test_a_text_that_the_store_does_not_take_is_a_failed_summary(open_keeper: OpenKeeper, error: tk.TalekeeperError) -> None:
    model, store = MoodyModel(), _Choosy(error)
    keeper = await open_keeper(store, summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert f"could not be stored: {type(error).__name__}: {error}" in health.reason
    assert (await story.stats()).model_calls == model.calls <= 20, "what it has cost is known, and the tries are bounded"
    store.error = None
    await story.settle()
    assert (await story.health()).state is tk.HealthState.HEALTHY
    assert (await story.stats()).model_calls == model.calls


async def test_what_a_model_says_when_it_fails_can_be_stored_and_is_not_long(open_keeper: OpenKeeper) -> None:
    async def model(messages: Sequence[tk.Message]) -> str:
        raise ValueError("half \ud83d a\0 smile " + "x" * 100_000)

    story = await told_with(open_keeper, model, 60)
    await story.settle()
    reason = (await story.health()).reason
    assert reason.startswith("the model failed: ValueError: half ? a smile xxx")
    assert len(reason) < 600
    assert (await story.stats()).model_calls >= QUICK.attempts


async def test_what_was_spent_on_a_story_that_was_rewound_meanwhile_is_counted(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()
    forks: list[tk.Story] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        for fork in forks:
            await fork.rewind(120)  # to where it left its parent: nothing is due there
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 120)
    await story.settle()
    before, fork = good.calls, await story.fork()
    forks.append(fork)
    await tell(fork, 60, first=500)
    await fork.settle()
    assert good.calls > before
    assert (await story.stats()).model_calls == good.calls


@pytest.mark.parametrize("attempts", [1, 4])
async def test_retries_are_bounded_by_the_policy(open_keeper: OpenKeeper, attempts: int) -> None:
    model = MoodyModel("failing")
    policy = tk.RetryPolicy(attempts=attempts, pause=0.001, longest=0.002, recover_after=3600)
    story = await told_with(open_keeper, model, 120, retry=policy)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    await asyncio.sleep(0.05)
    calls = model.calls
    assert attempts <= calls <= attempts + 1, "tried, given up, and one other fold tried, in case it was the fold"
    for n in range(60):
        await story.append("dm", deed(500 + n))
    await asyncio.sleep(0.05)
    assert model.calls == calls, "a model that was given up is left alone until it is time"


@pytest.mark.parametrize("mood", ["garbage", "empty", "refusing"])
async def test_a_model_whose_answers_are_all_refused_is_not_asked_for_every_fold(open_keeper: OpenKeeper, mood: str) -> None:
    model = MoodyModel(mood)
    story = await told_with(open_keeper, model, 600)
    await story.settle()
    health = await story.health()
    assert (health.state, health.pending > 40) == (tk.HealthState.DEGRADED, True)
    assert model.calls < 40
    calls = model.calls
    await tell(story, 30, first=1000)
    await asyncio.sleep(0.05)
    assert model.calls == calls, "a model that was given up is left alone until it is time"


async def test_pauses_between_tries_double_up_to_the_longest(open_keeper: OpenKeeper) -> None:
    policy = tk.RetryPolicy(attempts=9, pause=1, longest=5)
    assert [policy.pause_after(failures) for failures in (1, 2, 3, 4, 5, 2000)] == [1, 2, 4, 5, 5, 5]
    asked: list[float] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        asked.append(time.monotonic())
        raise ConnectionError("gone")

    keeper = await open_keeper(summarizer=model, retry=tk.RetryPolicy(attempts=4, pause=0.04, longest=0.1, recover_after=3600))
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await story.settle()
    paused = [later - earlier for earlier, later in pairwise(asked[:4])]
    assert [pause >= least for pause, least in zip(paused, (0.04, 0.08, 0.1), strict=True)] == [True] * 3, paused


async def test_health_goes_from_retry_to_degraded_to_recovering_to_healthy(open_keeper: OpenKeeper) -> None:
    gate = asyncio.Event()
    seen: list[tk.HealthState] = []
    good = MoodyModel()
    story: tk.Story

    async def model(messages: Sequence[tk.Message]) -> str:
        seen.append((await story.health()).state)
        if not gate.is_set():
            raise ConnectionError("gone")
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    assert (await story.health()).state is tk.HealthState.HEALTHY
    await tell(story, 60)
    await story.settle()
    assert seen[:3] == [tk.HealthState.HEALTHY, tk.HealthState.RETRY, tk.HealthState.RETRY]
    assert (await story.health()).state is tk.HealthState.DEGRADED
    gate.set()
    seen.clear()
    await story.settle()
    assert seen[0] is tk.HealthState.RECOVERING
    assert seen[-1] is tk.HealthState.HEALTHY
    health = await story.health()
    assert (health.state, health.reason, health.failures, health.pending) == (tk.HealthState.HEALTHY, "", 0, 0)


async def test_a_recovering_model_that_fails_again_is_given_up_again(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("failing")
    story = await told_with(open_keeper, model, 60)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    await asyncio.sleep(0.05)
    calls = model.calls
    await story.settle()
    assert (await story.health()).state is tk.HealthState.DEGRADED
    assert calls < model.calls <= calls + 2


async def test_a_given_up_model_is_tried_again_by_itself_and_makes_up_for_what_was_missed(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("failing")
    policy = tk.RetryPolicy(attempts=2, pause=0.001, longest=0.002, recover_after=0.05)
    story = await told_with(open_keeper, model, 60, retry=policy)
    await until(lambda: is_in(story, tk.HealthState.DEGRADED))
    model.mood = "good"
    await until(lambda: is_in(story, tk.HealthState.HEALTHY))

    async def all_made() -> bool:
        return (await story.health()).pending == 0

    await until(all_made)
    await story.append("dm", "The rain stops.")  # models' texts are shown with the next turn that is heard
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}


async def test_the_turn_that_makes_a_fold_due_has_it_made(open_keeper: OpenKeeper) -> None:
    model = MoodyModel()
    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)
    waiting: list[Node] = []
    while not waiting:
        await story.append("dm", deed(story.head))
        waiting = await keeper._folder(story._hot).pending()
        await asyncio.sleep(0.002)  # what was begun before has come to its end
    await until(lambda: _asked(model), 5)


async def _asked(model: MoodyModel) -> bool:
    return model.calls > 0


@pytest.mark.parametrize("outage", [3, 5])
async def test_a_fold_that_was_given_up_is_made_up_for_when_the_model_has_answered_for_others(open_keeper: OpenKeeper, outage: int) -> None:
    good = MoodyModel()
    failed: list[str] = []

    async def model(messages: Sequence[tk.Message]) -> str:
        asked = messages[1]["content"]
        if len(failed) < outage and asked in (failed or [asked]):
            failed.append(asked)
            raise ConnectionError("overloaded")
        return await good(messages)

    story = await told_with(open_keeper, model, 120)
    await story.settle()
    assert len(failed) >= QUICK.attempts
    assert (await story.health()).state is tk.HealthState.HEALTHY
    for n in range(3):
        await tell(story, 40, first=200 + 40 * n)
        await story.settle()
    assert await story._keeper._folder(story._hot).pending(given_up=True) == []
    assert len(failed) == outage


async def test_a_fold_that_poisons_the_model_does_not_hold_up_the_others(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()
    poisoned = 0

    async def model(messages: Sequence[tk.Message]) -> str:
        nonlocal poisoned
        if "mark13x" in messages[1]["content"]:
            poisoned += 1
            raise ValueError("content policy")
        return await good(messages)

    story = await told_with(open_keeper, model, 120)
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.HEALTHY
    assert health.pending == 0
    hands = [fold.made_by for fold in await all_folds(story, "rogue") if fold.level == 0]
    assert hands.count("extractive") == 1
    assert hands.count("model") == len(hands) - 1 > 5
    assert poisoned <= QUICK.attempts + 1


async def test_a_summary_that_forgets_a_name_is_repaired_once_or_completed(open_keeper: OpenKeeper) -> None:
    model = ScriptedModel(lambda messages: "Someone counted coins on a table while rain came down from the hills. [1]")
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story = await keeper.story(KEY, seats=SMALL)
    for n in range(1, 61):
        await story.append("dm", deed(n), mentions=["Captain Voss"])
    await story.settle()
    leaf = (await all_folds(story, "rogue"))[-1]
    assert (leaf.level, leaf.made_by) == (0, "model")
    assert "Captain Voss" in leaf.text
    repairs = [messages for messages in model.asked if len(messages) == 4]
    assert repairs
    assert "Captain Voss" in repairs[0][-1]["content"]
    assert all(len(messages) in (2, 4) for messages in model.asked)


async def test_a_hanging_model_never_blocks_append_or_context(open_keeper: OpenKeeper) -> None:
    model = MoodyModel("slow")
    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=30)
    story = await keeper.story(KEY, seats=SMALL)
    await tell(story, 60)
    await asyncio.sleep(0.01)
    assert model.calls, "the model is hanging"
    longest = 0.0
    for n in range(40):
        start = time.perf_counter()
        await story.append("dm", deed(100 + n))
        await story.context("rogue")
        await story.recall("rogue", "silver coins")
        longest = max(longest, time.perf_counter() - start)
    await story.rewind(80)
    await story.edit(70, "Edited while it hangs.")
    assert longest < 2.0, f"one turn took {longest:.2f} s"


async def test_a_model_that_cannot_be_cancelled_blocks_nobody_either(open_keeper: OpenKeeper) -> None:
    release = asyncio.Event()

    async def model(messages: Sequence[tk.Message]) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "Too late."

    story = await told_with(open_keeper, model, 60)
    start = time.perf_counter()
    await story.settle()
    assert time.perf_counter() - start < 5.0
    assert (await story.health()).state is tk.HealthState.DEGRADED
    release.set()


async def test_turns_that_arrive_while_a_fold_is_made_are_kept_in_order(open_keeper: OpenKeeper) -> None:
    good = MoodyModel()

    async def model(messages: Sequence[tk.Message]) -> str:
        await asyncio.sleep(0.002)
        return await good(messages)

    keeper = await open_keeper(summarizer=model, retry=QUICK, timeout=5)
    story = await keeper.story(KEY, seats=SMALL)

    async def talk(first: int) -> None:
        for n in range(first, first + 40):
            await story.append("dm", deed(n))
            await asyncio.sleep(0)

    await asyncio.gather(talk(1), talk(1000), story.settle(), talk(2000))
    await story.settle()
    assert len(await story.turns()) == 120
    context = await story.context("rogue")
    assert len(await story.sources(context)) == 120
    health = await story.health()
    assert (health.state, health.pending) == (tk.HealthState.HEALTHY, 0)


# -- told once, told to what was seen ------------------------------------------------------------------------------------


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


# -- resuming ------------------------------------------------------------------------------------------------------------


async def long_story(path: Path, turns: int) -> list[str]:
    """A story of several hundred turns, some of them whispered, in a file; and what everyone remembers of it."""
    async with tk.open(path) as keeper:
        story = await keeper.story(KEY, seats=SMALL)
        drafts = [tk.Draft("dm", deed(n), heard_by=("rogue",) if n % 11 == 0 else None) for n in range(1, turns + 1)]
        await story.append_many(drafts)
        return await contexts(story)


async def test_who_resumes_reads_the_folds_of_the_view_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = await long_story(tmp_path / "tale.db", 900)
    async with tk.open(tmp_path / "tale.db") as keeper:
        asked: list[str] = []
        read = keeper.store.read

        async def overheard(request: Read) -> object:
            asked.extend(request.folds)
            return await read(request)

        monkeypatch.setattr(keeper.store, "read", overheard)
        story = await keeper.story(KEY)
        assert not asked
        await story.context("rogue")
        alone = len(set(asked))
        assert alone
        assert await contexts(story) == remembered
        assert len(set(asked)) > alone


async def test_a_story_that_is_resumed_over_and_over_is_the_same_as_one_that_never_was(tmp_path: Path) -> None:
    remembered = await long_story(tmp_path / "at once.db", 700)
    for first in range(1, 701, 50):
        async with tk.open(tmp_path / "bit by bit.db") as keeper:
            story = await keeper.story(KEY, seats=SMALL)
            drafts = [tk.Draft("dm", deed(n), heard_by=("rogue",) if n % 11 == 0 else None) for n in range(first, first + 50)]
            await story.append_many(drafts)
    async with tk.open(tmp_path / "bit by bit.db") as keeper:
        assert await contexts(await keeper.story(KEY)) == remembered


@pytest.mark.parametrize("later", [["roots"], ["common"], ["roots", "common"]])
async def test_snapshots_from_before_they_had_all_that_they_have_now_are_taken_over(tmp_path: Path, later: list[str]) -> None:
    remembered = await long_story(tmp_path / "tale.db", 700)
    with closing(sqlite3.connect(tmp_path / "tale.db")) as db, db:
        for part in later:
            assert db.execute(f"UPDATE snapshots SET state = json_remove(state, '$.{part}') WHERE state LIKE '%\"{part}\"%'").rowcount
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY)
        assert await contexts(story) == remembered
        await tell(story, 100, first=701)
        last = await contexts(story)
        assert await examine(keeper, KEY) == []
    async with tk.open(tmp_path / "tale.db") as keeper:
        assert await contexts(await keeper.story(KEY)) == last


async def test_views_share_their_folds_in_whatever_order_they_are_asked_for(tmp_path: Path) -> None:
    await long_story(tmp_path / "tale.db", 900)
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY)
        await story.context("rogue")
        state = story._hot.state
        state.shelf.trim(0)  # as where many stories share the memory
        await story.context("dm")
        mine, theirs = ({node.key: node for node in state.views[seat].roots()} for seat in ("rogue", "dm"))
        shared = mine.keys() & theirs.keys()
        assert shared
        assert [key for key in shared if mine[key] is not theirs[key]] == []


async def test_forgetting_leaves_no_label_behind_in_what_a_story_is_resumed_from(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY, seats=SMALL)
        await story.append("dm", "A moonstone lies on the road.", mentions=["moonstone"])
        await tell(story, 20, first=2)
        hidden = await story.append("dm", "I bury the moonstone under the old oak.")
        await tell(story, 20, first=30)
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY)
        await story.forget(hidden.id)
        assert await examine(keeper, KEY) == []
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY)
        await tell(story, 60, first=100)
        await story.settle()
    async with tk.open(tmp_path / "tale.db") as keeper:
        assert await examine(keeper, KEY) == []


async def test_a_snapshot_stays_as_it_was_taken_while_people_move_on(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper()
    story = await keeper.story(KEY, seats=[DM, tk.Seat("rogue"), tk.Seat("bard")])
    await story.enter("rogue", "mill")
    await story._hot.checkpoint()
    await story.enter("bard", "mill")
    assert await examine(keeper, KEY) == []
    before = await story.fork(at=1)
    assert (await before.append("rogue", "Is anyone here?")).audience == ("dm", "rogue")


async def test_what_the_author_wrote_over_is_made_of_its_turns_as_they_were_also_when_one_is_edited_later(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY, seats=[DM, tk.Seat("rogue")])
        await story.append_many(
            [tk.Draft("dm", f"Mira promised {number} gold marks to the king of the Iron Tower.") for number in range(20)]
        )
        await story.edit(2, "Olga bought 99 lamps for the mayor of Lowtown.")
        before, told = story.head, (await story.context("rogue", budget=300)).text
        await story.override((await story.folds("rogue", budget=300))[0].id, "The author says so.")
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY)  # too short for a snapshot: everything is replayed
        await story.edit(1, "Wanda gave 77 rubies to nobody in the Glass Hall.")
        await story._hot.checkpoint()
        assert await examine(keeper, KEY) == []
        await story.rewind(before)
        assert (await story.context("rogue", budget=300)).text == told


@pytest.mark.parametrize("others", ["nobody", "someone before", "someone after", "only in a whisper"])
async def test_what_only_a_forgotten_turn_mentioned_is_no_name_to_anyone_who_tells_of_it(tmp_path: Path, others: str) -> None:
    async with tk.open(tmp_path / "tale.db") as keeper:
        story = await keeper.story(KEY, seats=SMALL)
        if others == "someone before":
            await story.append("dm", "There are moonstones in this land.", mentions=["moonstone"])
        hidden = await story.append("dm", "A moonstone lies on the road.", mentions=["moonstone"])
        if others == "someone after":
            await story.append("dm", "Another moonstone lies there.", mentions=["moonstone"])
        if others == "only in a whisper":
            await story.append("dm", "Psst, a moonstone.", heard_by=["rogue"], kind="whisper", mentions=["moonstone"])
        await tell(story, 20, first=2)
        await story.append("dm", "I bury the moonstone under the old oak.")
        await tell(story, 20, first=30)
        fork = await story.fork(at=story.head - 12)
        await tell(fork, 10, first=60)
        await fork.append("dm", "I dig for the moonstone again.")
        await tell(fork, 20, first=80)
        await story.settle()
        await story.forget(hidden.id)
        assert await examine(keeper, KEY) == []
    async with tk.open(tmp_path / "tale.db") as keeper:
        assert await examine(keeper, KEY) == []
        record = await keeper.store.load(KEY)
        assert record is not None
        folds = (await keeper.store.read(Read(record.id, all_folds=True))).folds
        assert folds
        known = {label for fold in folds for label in fold.shape.get("known", ())}
        assert known == ({"moonstone"} if others.startswith("someone") else set())


async def test_an_edit_reaches_what_a_newcomer_is_told_of_a_chunk_in_which_someone_joined(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper()
    story = await keeper.story(KEY, seats=[DM, tk.Seat("rogue")])
    await story.append_many([tk.Draft("dm", f"Mira owes Borin {number} gold crowns for the bridge of Varn.") for number in range(301, 305)])
    story = await keeper.story(KEY, seats=[DM, tk.Seat("rogue"), tk.Seat("bard")])
    await story.append_many([tk.Draft("dm", f"Only the rogue hears of cellar {number}.", heard_by=["rogue"]) for number in range(4)])
    await tell(story, 40)
    assert "302 gold" in (await story.brief("bard", budget=400)).text
    await story.edit(2, "Mira owes Borin 777 gold crowns for the bridge of Varn.")
    told = (await story.brief("bard", budget=400)).text
    assert "777 gold" in told
    assert "302 gold" not in told
    assert await examine(keeper, KEY) == []


async def test_an_authors_words_are_kept_without_the_blanks_around_them(open_keeper: OpenKeeper) -> None:
    story = await (await open_keeper()).story(KEY, seats=SMALL)
    await tell(story, 40)
    first = (await all_folds(story, "rogue", 150))[-1]
    made = await story.override(first.id, "  Stone and stone again, and nothing else, fell in Varn.  ")
    assert [sentence.text for sentence in made.sentences] == ["Stone and stone again, and nothing else, fell in Varn."]


@pytest.mark.parametrize("damage", ["'{}'", "json_set(state, '$.roots', json('{}'))", "json_set(state, '$.open', json('[[1]]'))"])
async def test_a_snapshot_that_cannot_be_read_is_named(damage: str, tmp_path: Path) -> None:
    await long_story(tmp_path / "tale.db", 300)
    with closing(sqlite3.connect(tmp_path / "tale.db")) as db, db:
        assert db.execute(f"UPDATE snapshots SET state = {damage}").rowcount
    async with tk.open(tmp_path / "tale.db") as keeper:
        with pytest.raises(tk.StoreCorrupt, match="snapshot at 300 of branch 'main' cannot be read; run `talekeeper doctor`"):
            await keeper.story(KEY)
