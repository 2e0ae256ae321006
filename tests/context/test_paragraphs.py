"""What stands before the recent part of a context: in order, with places, without mere coming and going, one's own words first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import talekeeper as tk
from talekeeper.ports import Message
from talekeeper.testing.models import ScriptedModel

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = [tk.Seat("dm", role="dm"), tk.Seat("mira", name="Mira"), tk.Seat("borin", name="Borin")]
IDLE = "The rain goes on and on, and the fire burns lower, and someone puts another log on it."


async def tell(story: tk.Story, *lines: tuple[str, str]) -> None:
    for speaker, text in lines:
        await story.append(speaker, text)


async def story_lines(story: tk.Story, seat: str, budget: int) -> list[str]:
    block = (await story.context(seat, budget=budget)).block("story")
    return [item.text.rstrip() for item in block.items] if block else []


async def two_scenes(keeper: tk.Keeper) -> tk.Story:
    """A scene at the mill, one at the bridge, and enough talk after them that both are folded."""
    story = await keeper.story(KEY, seats=SEATS)
    for place in ("mill", "bridge"):
        for seat in ("mira", "borin"):
            await story.enter(seat, place)
        await story.append("dm", f"Captain Voss gives Mira the silver key of the {place}.", location=place)
        await story.append("mira", f"I promise you to guard the {place}, Captain.")
        await story.append("dm", "Mind the dog, Mira.", location=place, heard_by=["mira"], kind="whisper")
        for number in range(8):
            await story.append("borin", f"I find the {number + 2} lost coins of the {place} under a stone.")
    return story


async def test_a_place_is_named_where_it_changes(keeper: tk.Keeper) -> None:
    story = await two_scenes(keeper)
    first, second, *_ = await story_lines(story, "borin", 400)
    assert first.startswith("- (mill) Captain Voss gives Mira the silver key of the mill.")
    assert second.startswith('- Borin: "I find the 7 lost coins of the mill under a stone.')
    (digest,) = await story_lines(story, "borin", 300)
    assert digest.index("(mill)") < digest.index("of the mill") < digest.index("(bridge)") < digest.index("of the bridge")


async def test_mere_coming_and_going_stands_under_its_neighbours_and_is_still_there(keeper: tk.Keeper) -> None:
    story = await two_scenes(keeper)
    for budget in (200, 300, 460):
        context = await story.context("mira", budget=budget)
        folded = [item for block in context.blocks for item in block.items if item.kind != "turn"]
        assert folded
        assert not any(" leaves " in item.text or " comes to " in item.text for item in folded)
        assert set(await story.sources(context)) == {turn.id for turn in await story.turns(seat="mira")}


async def test_where_there_is_nothing_else_coming_and_going_is_told(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    for number in range(40):
        await story.enter("mira", f"room {number}")
    assert any("Mira" in line for line in await story_lines(story, "mira", 200))


async def test_who_speaks_on_is_not_named_again(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    await tell(story, ("mira", "I promise Borin the silver key of the mill."), ("mira", "I owe the captain twelve gold crowns."))
    await tell(story, *[("dm", IDLE)] * 30)
    assert any('Mira: "I promise Borin the silver key of the mill. … I owe the captain twelve gold crowns."' in line
               for line in await story_lines(story, "borin", 400))  # fmt: skip


async def test_what_one_promised_oneself_comes_first_where_not_everything_fits(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    for number in range(24):
        speaker, other = ("mira", "Borin") if number % 2 else ("borin", "Mira")
        await story.append(speaker, f"I promise {other} to bring home {number + 20} silver crowns from the old mine.")
    await tell(story, *[("dm", IDLE)] * 4)
    for seat, name in (("mira", "Mira"), ("borin", "Borin")):
        (digest, *_) = await story_lines(story, seat, 160)
        assert digest.startswith(f"- {name}: ")


async def test_memories_are_in_the_order_of_what_they_tell(keeper: tk.Keeper) -> None:
    """A chunk of whispers is closed long after it began; what was whispered is remembered where it was whispered."""
    story = await keeper.story(KEY, seats=SEATS)
    await tell(story, ("dm", "Captain Voss swears to burn the mill."))
    await story.append("dm", "Old Marta swears to poison every well in Harrow.", heard_by=["mira"], kind="whisper")
    await tell(story, *[("dm", IDLE)] * 20, ("borin", "I promise you to hang the duke for it."), *[("dm", IDLE)] * 60)
    digest = (await story_lines(story, "mira", 260))[0]
    assert digest.index("Voss swears") < digest.index("Marta swears") < digest.index("hang the duke")


async def test_a_secret_stands_between_what_came_before_and_after_it(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    await tell(story, ("dm", "Baron Piers drinks from the silver cup at the feast of Arn."))
    await story.append("dm", "You see Lord Dorn slip 3 drops of poison into the cup.", heard_by=["mira"], kind="whisper")
    await story.append("mira", "I promise Lord Dorn that I will keep silent, for 50 crowns.", heard_by=[])
    await tell(story, ("dm", "Baron Piers is dead, and Lord Dorn is hanged for it."), *[("dm", IDLE)] * 60)
    for budget in (260, 700, 1000, 1600):
        context = await story.context("mira", budget=budget)
        places = [context.text.index(words) for words in ("drinks from", "drops of poison", "keep silent", "is hanged")]
        assert places == sorted(places), context.text
        assert set(await story.sources(context)) == {turn.id for turn in await story.turns(seat="mira")}


async def test_nothing_is_told_in_the_same_words_by_two_folds(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    for number in range(60):
        await tell(
            story,
            ("mira", "I count our 40 crowns again, out of habit."),
            ("dm", IDLE),
            ("borin", f"We find {number + 3} silver coins at the milestone."),
        )
    for budget in (1500, 3000):
        context = await story.context("mira", budget=budget)
        block = context.block("story")
        assert block is not None
        told = [item.text for item in block.items if item.kind == "fold"]
        assert len(told) > 1
        assert sum("out of habit" in text for text in told) == 1
        assert set(await story.sources(context)) == {turn.id for turn in await story.turns(seat="mira")}


async def test_what_was_thought_or_whispered_does_not_read_as_said_aloud(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    await story.append("mira", "I will kill Captain Voss before the ninth night.", kind="thought")
    await story.append("mira", "Borin, I stole the 75 crowns from Voss.", kind="whisper", heard_by=["borin"])
    await tell(story, ("mira", "I promise Captain Voss the 75 crowns."), *[("dm", IDLE)] * 60)
    for budget in (300, 1000):
        text = (await story.context("dm", budget=budget)).text
        assert 'Mira (thinking): "I will kill Captain Voss before the ninth night."' in text
        assert 'Mira (whispering): "Borin, I stole the 75 crowns from Voss."' in text
        assert 'Mira: "I promise Captain Voss the 75 crowns."' in text


async def test_what_one_says_on_ends_with_the_mark_that_it_began_with(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    await tell(
        story,
        ("mira", "I swear to give Captain Voss the silver key."),
        ("mira", "“I promise Borin the 40 crowns of the mill.”"),
        *[("dm", IDLE)] * 30,
    )
    for budget in (200, 300):
        told = " ".join(await story_lines(story, "dm", budget))
        assert 'Mira: "I swear to give Captain Voss the silver key. … I promise Borin the 40 crowns of the mill."' in told


def chronicle(messages: Sequence[Message]) -> str:
    """Every other piece, cited."""
    pieces = re.findall(r"^\[(\d+)\] (?:\[DM\]: )?(Day\d+ \w+ pays \w+ \d+ crowns)", messages[1]["content"], re.M)
    return " ".join(f"{text}. [{number}]" for number, text in pieces[::2])


async def test_models_folds_of_a_party_that_was_split_are_told_in_order() -> None:
    people = ("Voss", "Mira", "Osric", "Elena", "Borin", "Tamsin", "Jory", "Wenna", "Pip", "Grist", "Sable", "Anselm", "Lisbet")
    async with tk.open(":memory:", counter=tk.Heuristic(), summarizer=ScriptedModel(chronicle)) as keeper:
        seats = [tk.Seat("dm", role="dm"), *(tk.Seat(each, token_limit=900) for each in ("rogue", "bard"))]
        story = await keeper.story(KEY, seats=seats)
        for day in range(1, 140):
            who, whom = people[day % 13], people[day * day % 11]
            text = f"Day{day} {who} pays {whom} {day + 20} crowns for the horse, and they ride on through the rain to the hills beyond the river."
            await story.append("dm", text, heard_by=["rogue"] if 4 < day < 77 else ["rogue", "bard"])
        await story.settle()
        await story.append("dm", "Nobody comes.")
        told = (await story.context("rogue", budget=900)).text
    days = [int(day) for day in re.findall(r"Day(\d+)", told)]
    assert len([day for day in days if day < 100]) > 5
    assert days == sorted(days), told
