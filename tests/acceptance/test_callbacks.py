"""Loose ends: what came up earlier and is worth bringing back, for those who heard of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.acceptance.tale import Teller
from tests.acceptance.test_the_ninth_bell import SEATS as NINTH_BELL
from tests.acceptance.test_the_ninth_bell import TALE
from tests.conftest import NOW, OpenKeeper

import talekeeper as tk
from talekeeper.memory import AdventureMoment, Callback, add_adventure_moment, callbacks, find_callbacks
from talekeeper.memory.callbacks import DORMANT_AFTER, READER, callback_notes

KEY = tk.MemoryKey("acme", "ana", "callbacks")
SEATS = [
    tk.Seat("dm", role="dm"), tk.Seat("rogue", name="Rook"), tk.Seat("bard"),
    tk.Seat("elena", role="npc", name="Elena Swift", aliases=("the Swift",)),
]  # fmt: skip


async def begin(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


async def pass_time(story: tk.Story, turns: int = 25) -> None:
    await story.append_many([tk.Draft("dm", f"The road goes on and on, and the rain with it ({number}).") for number in range(turns)])


async def found(story: tk.Story, seat: str = "bard", *, resolved: bool = False) -> dict[str, Callback]:
    return {callback.name: callback for callback in await find_callbacks(story, seat, limit=50, resolved=resolved)}


async def one(story: tk.Story, word: str, seat: str = "bard", *, resolved: bool = True) -> Callback:
    vows = [
        callback for callback in await find_callbacks(story, seat, limit=50, resolved=resolved) if callback.kind in ("promise", "threat")
    ]
    fitting = [callback for callback in vows if word in callback.line]
    assert len(fitting) == 1, [callback.line for callback in fitting]
    return fitting[0]


# -- what is found ----------------------------------------------------------------------------------------------------------------


async def test_people_places_things_promises_and_threats_are_found(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Captain Voss of the harbour guard pays 40 gold for the map of the crypt.")
    await story.append("dm", "You come to the Gilded Eel, where 12 pirates are drinking. Captain Voss is at the Gilded Eel, too.")
    await story.append("dm", "The fire at the Gilded Eel is warm.")
    await story.append("dm", "The innkeeper slides Rook a brass key and 3 gold, and takes the ring.")
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    await story.append("dm", "You will regret this, thief, by the end of the week!", voice="Captain Voss")
    kinds = {(callback.kind, callback.name) for callback in (await found(story)).values()}
    assert {("person", "Captain Voss"), ("place", "Gilded Eel"), ("item", "brass key")} <= kinds
    assert {kind for kind, _ in kinds} == {"person", "place", "item", "promise", "threat"}


async def test_a_promise_to_find_someones_brother_is_no_threat(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I promise you, Mira: I will find your brother Tobin.")
    await story.append("dm", "The smuggler hisses at Rook: I will find you, locksmith.", voice="Sorrel")
    ends = {end.kind: end.text for end in await find_callbacks(story, "bard", limit=9)}
    assert "brother" in ends["promise"]
    assert "locksmith" in ends["threat"]


async def test_when_it_first_and_last_came_up_and_how_often(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    first = await story.append("dm", "Captain Voss pays 40 gold for the map, and Captain Voss smiles.")
    await pass_time(story, 5)
    await story.append("dm", "Captain Voss waves from the wall.")
    voss = (await found(story))["Captain Voss"]
    assert (voss.turn, voss.last_turn, voss.mentions, voss.sources) == (1, 7, 2, (first.id,))
    assert voss.text.startswith("Captain Voss pays 40 gold")
    assert 0 < voss.score <= 1


async def test_the_best_come_first_and_no_more_than_asked_for(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    for number in range(12):
        await story.append("rogue", f"I swear that I will pay {number + 20} gold to the widow of Vell{number} before winter.")
    five = await find_callbacks(story, "bard")
    assert len(five) == 5
    many = await find_callbacks(story, "bard", limit=100)
    assert many[:5] == five
    assert [callback.score for callback in many] == sorted((callback.score for callback in many), reverse=True)
    assert await find_callbacks(story, "bard", limit=0) == []
    with pytest.raises(ValueError, match="limit"):
        await find_callbacks(story, "bard", limit=-1)


async def test_what_was_not_mentioned_for_twenty_turns_is_dormant_and_worth_more(keeper: tk.Keeper) -> None:
    assert DORMANT_AFTER == 20
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    fresh = await one(story, "ring back")
    await pass_time(story, 19)
    assert (await one(story, "ring back")).status == "active"
    await pass_time(story, 1)
    old = await one(story, "ring back")
    assert (fresh.status, old.status) == ("active", "dormant")
    assert old.score > fresh.score


# -- names ---------------------------------------------------------------------------------------------------------------------------


async def test_a_name_is_the_same_by_any_of_its_parts(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Sergeant Hob Grist finds 5 gold crowns under the bridge.")
    await story.append("dm", "They say that Grist kept the crowns. They say that Hob Grist has a daughter.")
    await story.append("elena", "Halt!")
    await story.append("dm", "At the gate you see Elena, who lost 40 gold, and then Elena Swift vanishes.")
    names = await found(story)
    assert [name for name in names if "Grist" in name] == ["Sergeant Hob Grist"]
    assert names["Sergeant Hob Grist"].mentions == 2
    assert "Elena Swift" in names
    assert "Elena" not in names


async def test_a_name_is_a_whole_word(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "In the tower lives Al, who stole 40 gold from the king.")
    await story.append("dm", "The wall is always tall, and all the stalls are small.")
    assert (await found(story))["Al"].last_turn == 1


async def test_player_characters_are_no_loose_ends_but_others_are(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Rook gives 40 gold to Elena Swift, and Elena Swift gives the map to Rook.")
    await story.append("rogue", "I thank her.")
    await story.append("elena", "It was nothing.")
    await story.append("dm", "Rook leaves with Elena.")
    assert "Rook" not in await found(story)
    assert "Elena Swift" in await found(story)


async def test_nobody_is_a_loose_end_in_their_own_memory(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena Swift pays 40 gold for the map of the crypt, and Elena Swift is gone before the bell.")
    await story.append("elena", "I never paid for any map.")
    await story.append("dm", "Nobody believes Elena.")
    assert "Elena Swift" in await found(story)
    assert "Elena Swift" not in await found(story, "elena")


# -- what is over -------------------------------------------------------------------------------------------------------------------


async def test_a_promise_that_was_kept_is_resolved(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will pay Mira twelve silver before winter.")
    await pass_time(story)
    await story.append("rogue", "Here are the twelve silver, Mira. There. Even.")
    assert (await one(story, "before winter")).status == "resolved"
    assert not [callback for callback in (await found(story)).values() if callback.kind == "promise"]


async def test_one_promise_that_was_kept_is_not_another(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will pay Mira twelve silver before winter.")
    await story.append("bard", "I swear that I will sing at the grave of old Tobin.")
    await story.append("rogue", "Here are the twelve silver, Mira. There. Even.")
    assert (await one(story, "grave of old Tobin")).status == "active"


async def test_someone_who_died_is_resolved_and_so_are_their_threats(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Captain Voss finds 40 gold on the quay. Captain Voss laughs.")
    await story.append("dm", "You will regret this, thief, by the end of the week!", voice="Captain Voss")
    await pass_time(story, 3)
    assert (await one(story, "regret")).status == "active"
    await story.append("dm", "Captain Voss dies under the falling gate.")
    assert (await found(story, resolved=True))["Captain Voss"].status == "resolved"
    assert (await one(story, "regret")).status == "resolved"


async def test_a_threat_is_resolved_when_its_maker_is_defeated(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "You will regret this, thief, by the end of the week!", voice="Captain Voss")
    await story.append("dm", "In the end Voss is captured by the watch.")
    assert (await one(story, "regret")).status == "resolved"


async def test_a_thing_given_away_is_resolved_unless_it_comes_up_again(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Under the stone lies a silver crown worth 300 gold.")
    await pass_time(story, 3)
    await story.append("dm", "Rook hands the silver crown to the old king.")
    assert (await found(story, resolved=True))["silver crown"].status == "resolved"
    await story.append("dm", "A thief has been seen with the silver crown.")
    assert (await found(story))["silver crown"].status == "active"


async def test_the_game_may_add_and_resolve(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    turn = await story.append("dm", "Something hums behind the wall.")
    await callbacks.add(story, "the humming wall", "place", of=turn, text="Something hums behind the wall of the mill.")
    wall = (await found(story))["the humming wall"]
    assert (wall.kind, wall.turn, wall.text) == ("place", 1, "Something hums behind the wall of the mill.")
    await pass_time(story, 2)
    await callbacks.resolve(story, "the humming wall", of=story.head)
    assert (await found(story, resolved=True))["the humming wall"].status == "resolved"
    with pytest.raises(ValueError, match="kind"):
        await callbacks.add(story, "x", "mood", of=1)  # type: ignore[arg-type]


async def test_what_the_game_adds_came_up_in_the_turn_that_it_names_however_late_it_says_so(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "It rains.")
    turn = await story.append("dm", "A man in a grey coat looks at you for too long.")
    await pass_time(story, 3)
    await callbacks.add(story, "Captain Voss", "person", of=turn)
    voss = (await found(story))["Captain Voss"]
    assert (voss.turn, voss.last_turn, voss.line) == (2, 2, "Captain Voss (turn 2)")
    await story.append("dm", "Captain Voss pays 40 gold for the map of the crypt.")
    voss = (await found(story))["Captain Voss"]
    assert (voss.turn, voss.last_turn) == (2, 6)


async def test_what_was_resolved_is_open_again_when_the_game_adds_it(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Captain Sorrel threatens to hang Lark if she sees her on the pier again.")
    irons = await story.append("dm", "Captain Sorrel is led away in irons.")
    await callbacks.resolve(story, "Captain Sorrel", of=irons)
    escape = await story.append("dm", "Captain Sorrel is not in her cell, and the window is open.")
    assert (await found(story, resolved=True))["Captain Sorrel"].status == "resolved"
    await callbacks.add(story, "Captain Sorrel", "person", of=escape, text="Captain Sorrel is free again.")
    assert (await found(story))["Captain Sorrel"].status == "active"
    assert not [end for end in await find_callbacks(story, "bard", limit=9) if end.kind == "threat"], "that threat is over"
    await callbacks.resolve(story, "Captain Sorrel", of=escape)
    assert "Captain Sorrel" not in await found(story)


@pytest.mark.parametrize("bad", [{"text": 5}, {"text": None}, {"weight": "heavy"}, {"weight": float("nan")}])
async def test_what_the_game_adds_is_checked(keeper: tk.Keeper, bad: dict[str, Any]) -> None:
    story = await begin(keeper)
    await story.append("dm", "Something hums behind the wall.")
    with pytest.raises(tk.TalekeeperError):
        await callbacks.add(story, "the wall", "place", of=1, **bad)
    assert await story.marks(None, "callback") == []


async def test_whose_story_is_over_threatens_nobody(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Captain Sorrel threatens to hang Lark if she sees her on the pier again.")
    await story.append("dm", "Marta Reed threatens to poison the well of Harrow.")
    irons = await story.append("dm", "The watch leads her away in irons.")
    assert {"threat"} == {
        end.kind for end in await find_callbacks(story, "bard", limit=9) if "threatens" in end.text and end.kind == "threat"
    }
    await callbacks.resolve(story, "Captain Sorrel", of=irons)
    threats = [end.text for end in await find_callbacks(story, "bard", limit=9) if end.kind == "threat"]
    assert threats == ["Marta Reed threatens to poison the well of Harrow."]


async def test_a_promise_can_be_resolved_by_its_name(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    promise = await one(story, "ring back")
    await callbacks.resolve(story, promise.name, of=1)
    assert (await one(story, "ring back")).status == "resolved"


async def test_moments_open_and_close_loose_ends(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Well, then.", voice="Madam Sable")
    await add_adventure_moment(story, AdventureMoment(1, "turning_point", "Madam Sable threatens the bard's fingers", 0.7), of=1)
    await story.append("rogue", "I swear that I will find Pip a berth on the Marigold.")
    assert (await one(story, "fingers")).kind == "threat"
    await pass_time(story)
    await add_adventure_moment(story, AdventureMoment(9, "achievement", "Rook finds Pip a berth on the Marigold", 0.7), of=story.head)
    assert (await one(story, "I swear")).status == "resolved"


# -- who may know it ------------------------------------------------------------------------------------------------------------------


async def test_nobody_is_reminded_of_what_they_did_not_hear(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Mira slides Rook a brass key and 3 gold.", heard_by=["rogue"])
    await story.append("rogue", "I swear that I will hide the brass key from the Duke.", heard_by=[])
    await callbacks.add(story, "the vault", "place", of=1)
    assert {callback.kind for callback in (await found(story, "rogue")).values()} >= {"item", "promise", "place"}
    assert await find_callbacks(story, "bard", limit=50, resolved=True) == []


async def test_what_others_hear_changes_neither_scores_nor_numbers(keeper: tk.Keeper) -> None:
    seen = []
    for secrets in (0, 3):
        story = await keeper.story(tk.MemoryKey("acme", "ana", f"ends-{secrets}"), seats=SEATS)
        for number in range(40):
            await story.append("dm", f"Captain Voss{number % 9} pays {number + 20} gold for the map of Vell{number % 5}.")
            for secret in range(secrets):
                await story.append(
                    "dm", f"Captain Voss{secret} dies. I swear it by the {secret} silver keys of Vell{secret}.", heard_by=["rogue"]
                )
        rows = await find_callbacks(story, "bard", limit=50, resolved=True)
        seen.append([(row.name, row.kind, row.turn, row.last_turn, row.mentions, row.score, row.status, row.text) for row in rows])
    assert seen[0] == seen[1]
    assert seen[0]


# -- part of the story ----------------------------------------------------------------------------------------------------------------


async def test_loose_ends_are_rewound_edited_and_forgotten_with_the_story(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    at = story.head
    await story.append("dm", "In the tower lives Tobin, who stole 40 gold from the king.")
    await callbacks.resolve(story, (await one(story, "ring back")).name, of=2)
    await story.rewind(at)
    assert [callback.status for callback in (await found(story)).values() if callback.kind == "promise"] == ["active"]
    await story.edit(1, "I swear that I will bring the sword back to Mira before the third bell.")
    assert (await one(story, "sword back")).turn == 1
    await story.forget(1)
    assert await find_callbacks(story, "bard", limit=50, resolved=True) == []


async def test_loose_ends_survive_a_restart(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    await pass_time(story, 600)
    await story.settle()
    before = await find_callbacks(story, "bard", limit=50)
    await keeper.close()
    assert await find_callbacks(await (await open_file()).story(KEY), "bard", limit=50) == before
    assert before[0].turn == 1


async def test_what_is_gathered_stays_small_however_long_the_story_is(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append_many(
        [
            tk.Draft("dm", f"Captain Karl{number} swears to Mira{number} that {number} gold lie under the brass key of Vell{number}.")
            for number in range(900)
        ]
    )
    value = await story.gather("bard", READER)
    assert len(value["threads"]) <= 96
    assert len(value["ends"]) <= 48


async def test_loose_ends_as_entries_of_a_context(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I swear that I will bring the ring back to Mira before the third bell.")
    notes = callback_notes(await find_callbacks(story, "bard"))
    context = await story.context("bard", budget=500, extras={"callbacks": notes})
    assert (
        '## Loose Ends\n- Promise (turn 1): Rook: "I swear that I will bring the ring back to Mira before the third bell."\n'
        in context.text
    )


async def test_on_a_real_story_what_is_open_at_the_end_is_what_a_reader_would_say() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        teller = Teller(await keeper.story(KEY, seats=NINTH_BELL))
        for beat in TALE:
            await teller.tell(beat)
        ends = await find_callbacks(teller.story, "elena", limit=60, resolved=True)
        status = {callback.text: callback.status for callback in ends if callback.kind == "promise"}

        def of(words: str) -> str:
            return next(status[text] for text in status if words in text)

        assert of("Wenna shall have a roof") == "dormant"
        assert of("cast Little Grief anew") == "dormant"
        assert of("ring Old Patience with my own hands") == "resolved"
        assert of("I owe you twelve crowns") == "resolved"
        assert of("a berth on the Marigold") == "resolved"
        people = {callback.name: callback.status for callback in ends if callback.kind == "person"}
        assert people["Grist"] == "resolved"
        assert people["Wenna"] != "resolved"
        assert not {"Elena", "Borin", "Tamsin", "Jory", "Medicine", "Dad", "God"} & {callback.name for callback in ends}
        assert "brass key" in {callback.name for callback in ends if callback.kind == "item"}
        assert "brass key" not in {callback.name for callback in await find_callbacks(teller.story, "borin", limit=60, resolved=True)}


@pytest.mark.parametrize(
    ("seat", "paid", "settled"),
    [
        ("rogue", "I pay Elena her three crowns. And the drink.", True),
        ("rogue", "Here are the three crowns I owe you, Elena.", True),
        ("dm", "Rook pays Elena Swift the three crowns.", True),
        ("elena", "Three crowns and a plum brandy. We're square, Rook.", True),
        ("rogue", "I pay Grist three crowns.", False),
        ("rogue", "I pay Elena two crowns.", False),
        ("rogue", "I pay three crowns for the mule.", False),
        ("rogue", "I will pay Elena her three crowns.", False),
    ],
)
async def test_a_debt_is_closed_by_whoever_pays_it_to_whom_it_is_owed(keeper: tk.Keeper, seat: str, paid: str, settled: bool) -> None:
    story = await begin(keeper)
    await story.append("rogue", "I owe Elena three crowns and a drink.")
    await story.append(seat, paid)
    (debt,) = [
        callback
        for callback in await find_callbacks(story, "bard", limit=50, resolved=True)
        if callback.kind == "promise" and "I owe Elena three crowns and a drink." in callback.line
    ]
    assert (debt.status == "resolved") == settled


@pytest.mark.parametrize(
    ("said", "settled"),
    [
        ("I still owe Elena three crowns. I pay Elena her three crowns. A word's a word.", True),
        ("I pay Elena her three crowns. I owe Elena three crowns more, by the new moon.", False),
        ("I still owe Elena three crowns. I pay Grist three crowns.", False),
    ],
)
async def test_a_debt_that_is_paid_in_the_same_turn_is_over(keeper: tk.Keeper, said: str, settled: bool) -> None:
    story = await begin(keeper)
    await story.append("rogue", said)
    assert (await one(story, "owe Elena three crowns")).status == ("resolved" if settled else "active")


async def test_to_promise_nothing_is_no_promise(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rogue", "And I promise nothing, but I come along to the mill of Harrow.")
    await story.append("rogue", "I promise that nothing will harm Elena at the mill of Harrow.")
    vows = [callback.text for callback in await find_callbacks(story, "bard", limit=50) if callback.kind == "promise"]
    assert vows == ['Rook: "I promise that nothing will harm Elena at the mill of Harrow."']
