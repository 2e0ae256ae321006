"""Character facts: what is lastingly true of someone, from the game and from the story, for those who heard it."""

from __future__ import annotations

import pytest
from tests.acceptance.tale import Teller
from tests.acceptance.test_the_ninth_bell import SEATS as NINTH_BELL
from tests.acceptance.test_the_ninth_bell import TALE
from tests.conftest import NOW, OpenKeeper

import talekeeper as tk
from talekeeper.formats import export_story, import_story
from talekeeper.memory import CharacterFacts, character_facts, facts, format_character_facts, remember
from talekeeper.memory.facts import MAX_FACTS, Fact

KEY = tk.MemoryKey("acme", "ana", "facts")
SEATS = [
    tk.Seat("dm", role="dm"),
    tk.Seat("rook", name="Rook", aliases=("Rook Harrow",)),
    tk.Seat("elena", name="Elena Swift"),
    tk.Seat("bard"),
]


async def begin(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


def texts(known: CharacterFacts) -> list[str]:
    return [fact.text for fact in known.all]


# -- from the story -------------------------------------------------------------------------------------------------------------


async def test_a_character_is_what_the_story_says_it_is(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    turn = await story.append("rook", "I am afraid of deep water.")
    await story.append("dm", "Elena Swift is a courier from the north, and she never takes the straight road.")
    await story.append("rook", "I swear that I will bring the silver key back to Mira before the third bell.")
    known = await character_facts(story, "bard", "rook")
    assert [fact.text for fact in known.traits] == ['Rook: "I am afraid of deep water."']
    assert [fact.text for fact in known.notable_events] == [
        'Rook: "I swear that I will bring the silver key back to Mira before the third bell."'
    ]
    assert known.traits[0] == Fact(
        kind="trait", text='Rook: "I am afraid of deep water."', turn=1, sources=(turn.id,), weight=known.traits[0].weight
    )
    assert (await character_facts(story, "bard", "elena")).traits[0].turn == 2


async def test_a_seat_asks_about_itself_unless_it_says_whom(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rook", "I am afraid of deep water.")
    assert await character_facts(story, "rook") == await character_facts(story, "rook", "rook")
    assert (await character_facts(story, "rook")).name == "Rook"


@pytest.mark.parametrize("called", ["Elena", "Elena Swift", "Swift", "elena"])
async def test_a_character_is_found_by_any_of_its_names(keeper: tk.Keeper, called: str) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena is a courier from the north.")
    await story.append("dm", "They say that Elena Swift is afraid of nothing. Elena Swift is a thief, says the captain.")
    assert "Elena is a courier from the north." in texts(await character_facts(story, "bard", called))


async def test_a_character_without_a_seat_has_facts_too(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "This is Captain Nan, queen of the Rookery, and she is nine years old.")
    assert len(texts(await character_facts(story, "bard", "Nan"))) == 1
    assert texts(await character_facts(story, "bard", "Al")) == [], "Al is not in wall, and not in Nan"


async def test_the_newest_truth_about_two_wins(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena is loyal.")
    assert [fact.text for fact in (await character_facts(story, "bard", "elena")).relationships] == ["Elena is loyal."]
    await story.append("bard", "Elena betrays us!")
    await story.append("dm", "Elena hates Rook.")
    known = (await character_facts(story, "bard", "elena")).relationships
    assert [(fact.about, fact.text) for fact in known] == [("us", 'bard: "Elena betrays us!"'), ("Rook", "Elena hates Rook.")]


async def test_the_newest_truth_wins_across_a_long_story(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena is loyal.")
    await story.append_many([tk.Draft("dm", f"Mile {number} of the road goes by.") for number in range(200)])
    await story.append("dm", "Elena betrays us.")
    await story.append_many([tk.Draft("dm", f"Mile {number} of the other road goes by.") for number in range(200)])
    assert [fact.turn for fact in (await character_facts(story, "bard", "elena")).relationships] == [202]


async def test_a_relationship_is_known_of_both(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("elena", "Pay him, Rook, and I owe you twelve crowns.")
    for seat in ("elena", "rook"):
        assert [fact.text for fact in (await character_facts(story, seat)).relationships] == [
            'Elena Swift: "Pay him, Rook, and I owe you twelve crowns."'
        ]


async def test_the_same_said_twice_is_one_fact_of_the_newer_turn(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    for _ in range(3):
        await story.append("rook", "I am afraid of deep water.")
    assert [fact.turn for fact in (await character_facts(story, "rook")).traits] == [3]


async def test_each_kind_is_capped(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    for number in range(40):
        place = f"Vell{number}"
        await story.append("rook", f"I swear to {place} that I will pay {number + 20} gold for the sword of {place}.")
        await story.append("dm", f"Rook hates {place}.")
        await facts.add(story, "rook", "trait", f"Rook once lived in {place}.", of=story.head)
    known = await character_facts(story, "rook")
    assert (len(known.traits), len(known.relationships), len(known.notable_events)) == tuple(MAX_FACTS.values())
    assert [fact.turn for fact in known.all] == sorted(fact.turn for fact in known.traits) + sorted(
        fact.turn for fact in known.relationships
    ) + sorted(fact.turn for fact in known.notable_events), "in order of time"
    assert known.traits[-1].text == "Rook once lived in Vell39."


async def test_what_one_turn_tells_stays_in_order(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rook", "I still owe this man nine crowns. I pay him his nine crowns.")
    events = (await character_facts(story, "bard", "rook")).notable_events
    assert [event.text for event in events] == ['Rook: "I still owe this man nine crowns."', 'Rook: "I pay him his nine crowns."']


async def test_dice_and_chatter_are_no_facts(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    for text in ("I rolled a 17!", "I'm in.", "Okay, cool, I'm hungry.", "Is this seat dry?"):
        await story.append("rook", text)
    assert not await character_facts(story, "rook")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ich bin ein Schmied aus Vell, und ich schwöre dir die Treue.", True),
        ("Je suis une voleuse, et je jure de rendre la couronne au roi.", True),
        ("我发誓要把王冠还给国王。", True),
        ("彼は静かに笑った。", False),
    ],
)
async def test_other_languages_are_read_or_left_alone(keeper: tk.Keeper, text: str, found: bool) -> None:
    story = await begin(keeper)
    await story.append("rook", text)
    assert bool(await character_facts(story, "rook")) is found


# -- who may know it --------------------------------------------------------------------------------------------------------------


async def test_facts_come_only_from_what_the_seat_heard(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Rook is a spy of the Baron.", heard_by=["elena"])
    await facts.add(story, "rook", "trait", "Rook sold the map.", of=1)
    assert texts(await character_facts(story, "elena", "rook")) == ["Rook is a spy of the Baron.", "Rook sold the map."]
    assert not await character_facts(story, "bard", "rook")
    assert not await character_facts(story, "rook")


async def test_what_others_hear_changes_nothing_and_numbers_are_the_listeners_own(keeper: tk.Keeper) -> None:
    seen = []
    for secrets in (0, 30):
        story = await keeper.story(tk.MemoryKey("acme", "ana", f"facts-{secrets}"), seats=SEATS)
        for number in range(30):
            await story.append("rook", f"I swear that I will pay {number + 20} gold to Mira on day {number}.")
            for secret in range(secrets // 10):
                await story.append("rook", f"I swear that I will steal {secret + 90} gold from Elena on day {number}!", heard_by=["elena"])
        known = await character_facts(story, "bard", "rook")
        seen.append([(fact.text, fact.turn, fact.weight) for fact in known.all])
    assert seen[0] == seen[1]
    assert seen[0]


async def test_what_is_told_to_one_alone_is_about_them(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.note("You owe Madam Sable 120 crowns. You are afraid of the dark.", heard_by=["rook"])
    assert [fact.kind for fact in (await character_facts(story, "rook")).all] == ["trait", "relationship"]
    assert not await character_facts(story, "elena", "rook")


# -- from the game ----------------------------------------------------------------------------------------------------------------


async def test_the_game_adds_facts(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    turn = await story.append("dm", "The medal is pinned to your coat.")
    fact = await facts.add(story, "rook", "event", "Rook was knighted at Vell.", of=turn, weight=20)
    assert (fact.turn, fact.sources, fact.made_by) == (1, (turn.id,), "game")
    assert (await character_facts(story, "bard", "rook")).notable_events == (fact,)


async def test_the_games_newer_truth_replaces_the_storys_and_the_other_way_round(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena hates Rook.")
    await facts.add(story, "elena", "relationship", "Elena and Rook are reconciled.", of=1, about="Rook")
    assert [fact.text for fact in (await character_facts(story, "bard", "elena")).relationships] == ["Elena and Rook are reconciled."]
    await story.append("dm", "Elena betrays Rook.")
    assert [fact.text for fact in (await character_facts(story, "bard", "elena")).relationships] == ["Elena betrays Rook."]


async def test_bad_facts_are_refused(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "A bell tolls.")
    for kind, text, problem in (("mood", "Rook is sad.", "kind"), ("trait", " ", "blank"), ("relationship", "Rook loves.", "about")):
        with pytest.raises(ValueError, match=problem):
            await facts.add(story, "rook", kind, text, of=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="who may know"):
        await facts.add(story, "rook", "trait", "Rook is tall.")
    assert story.head == 1


# -- part of the story --------------------------------------------------------------------------------------------------------------


async def test_facts_are_rewound_edited_and_forgotten_with_the_story(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("rook", "I am afraid of deep water.")
    at = story.head
    await story.append("rook", "I hate Mira.")
    await facts.add(story, "rook", "trait", "Rook is tall.", of=2)
    assert len((await character_facts(story, "rook")).all) == 3
    await story.edit(1, "I am fond of deep water.")
    assert 'Rook: "I am fond of deep water."' in texts(await character_facts(story, "rook"))
    await story.forget(2)
    assert texts(await character_facts(story, "rook")) == ['Rook: "I am fond of deep water."']
    await story.rewind(at)
    assert texts(await character_facts(story, "rook")) == ['Rook: "I am afraid of deep water."']


async def test_facts_survive_restarts_and_moves(open_file: OpenKeeper, open_keeper: OpenKeeper) -> None:
    keeper = await open_file()
    story = await begin(keeper)
    await story.append("rook", "I am afraid of deep water.")
    await story.append_many([tk.Draft("dm", f"Mile {number} of the road goes by.") for number in range(600)])
    await facts.add(story, "rook", "trait", "Rook is tall.", of=2)
    await story.settle()
    before = await character_facts(story, "rook")
    lines = [line async for line in export_story(keeper, KEY)]
    await keeper.close()
    assert await character_facts(await (await open_file()).story(KEY), "rook") == before
    copy = await open_keeper(":memory:")
    await import_story(copy, lines)
    assert await character_facts(await copy.story(KEY), "rook") == before


async def test_the_past_has_the_facts_of_its_time(keeper: tk.Keeper) -> None:
    story = await begin(keeper)
    await story.append("dm", "Elena is loyal.")
    await story.append("dm", "Elena betrays us.")
    past = await story.at(1)
    assert texts(await character_facts(past, "bard", "elena")) == ["Elena is loyal."]


# -- as text ------------------------------------------------------------------------------------------------------------------------


def test_facts_as_text() -> None:
    known = CharacterFacts(
        "Rook", (Fact(kind="trait", text="Rook is tall."),), (Fact(kind="relationship", text="Rook owes\nMira.", about="Mira"),), ()
    )
    assert format_character_facts(known) == "### Rook\nTraits:\n- Rook is tall.\nRelationships:\n- Rook owes Mira."
    assert format_character_facts(None) == format_character_facts(CharacterFacts("Rook")) == ""


async def test_on_a_real_story_a_characters_facts_read_sensibly() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        teller = Teller(await keeper.story(KEY, seats=NINTH_BELL))
        for beat in TALE:
            await teller.tell(beat)
        borin = format_character_facts(await character_facts(teller.story, "borin"))
        assert 'Borin: "I have cast bells, and I have broken them up for cannon."' in borin
        assert "I swear by my forge that I will ring Old Patience with my own hands" in borin
        assert 'Elena: "Pay him, Borin, and I owe you twelve crowns."' in borin
        jory = format_character_facts(await character_facts(teller.story, "jory"))
        assert "Jory owes Madam Sable 120 crowns." in jory
        assert "my sister Lisbet" in jory
        assert "[Jory] keeps" not in jory, "it is not Jory who keeps his sister locked up"
        assert "Madam Sable 120" not in format_character_facts(await character_facts(teller.story, "borin", "jory"))
        assert "I cannot write" in format_character_facts(await character_facts(teller.story, "elena", "odalys"))
        assert "dies on the chain" in format_character_facts(await character_facts(teller.story, "elena", "Hob Grist"))
        for seat in NINTH_BELL:
            known = await character_facts(teller.story, seat.id)
            heard = {turn.id for turn in await teller.story.turns(seat=seat.id)}
            assert {source for fact in known.all for source in fact.sources} <= heard
            assert not any(word in format_character_facts(known) for word in ("natural 20", "Perception", "crisps", "bathroom"))


async def test_what_is_a_fact_about_two_is_told_to_the_dm_once() -> None:
    async with tk.open(":memory:") as keeper:
        seats = [tk.Seat("dm", role="dm"), tk.Seat("bran", name="Brannoc"), tk.Seat("qiu", name="Qiu")]
        story = await keeper.story(tk.MemoryKey("a", "b", "c"), seats=seats)
        await story.append("qiu", "Brannoc, I ask you now what you owe me: do not fight it alone.")
        block = (await remember(story, "dm", budget=2000)).block("facts")
        assert block is not None
        assert block.text.count("do not fight it alone") == 1
