"""The most telling turns of the past: what is worth keeping word for word, and how it gets into a context that nobody asked anything."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import OpenKeeper

import talekeeper as tk
from talekeeper.folds.nodes import Ref, peak_of
from talekeeper.ports import Found, Read
from talekeeper.summarize.salience import tellings, worths

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard"))
IDLE = ("Well, so it goes, you know.", "And on we walk, as ever.", "Hm, yes, that may be so.", "You and your ways, my dear.")
PLACES = ("Brinewick", "Hollowmere", "Tarnholt", "Oldgate", "Skerry", "Fenwold", "Ashby", "Corrin", "Durness", "Eastmark", "Farrow", "Galt")


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


def fact(number: int) -> str:
    return f"The old keeper sold {number + 3} lamps to Captain {PLACES[number % 12]}{number} in the winter."


async def talk(story: tk.Story, turns: int, *, when: str | None = None) -> None:
    await story.append_many([tk.Draft("dm", f"{IDLE[n % 4]} {'So it is. ' * (n % 3)}", when=when) for n in range(turns)])


async def tell(story: tk.Story, facts: int, *, first: int = 0, idle: int = 12, when: str | None = None) -> list[tk.Turn]:
    """Facts with small talk between them."""
    told = []
    for number in range(first, first + facts):
        await talk(story, idle, when=when)
        told.append(await story.append("dm", fact(number), when=when))
    await talk(story, idle, when=when)
    return told


async def highlights(story: tk.Story, budget: int = 500, seat: str = "rogue", query: str | None = None) -> tk.Block | None:
    return (await story.context(seat, budget=budget, query=query, recipe=tk.QUESTION_RECIPE)).block("highlights")


def sources(block: tk.Block | None) -> list[str]:
    return [] if block is None else [source for item in block.items for source in item.sources]


# -- a story that fits ---------------------------------------------------------------------------------------------------


def word_for_word(context: tk.Context) -> list[str]:
    return [source for block in context.blocks for item in block.items if item.kind == "turn" for source in item.sources]


@pytest.mark.parametrize("query", [None, "How many lamps did the keeper sell?"])
@pytest.mark.parametrize("canon", [False, True])
async def test_a_story_that_fits_is_shown_whole_whatever_is_asked(story: tk.Story, query: str | None, canon: bool) -> None:
    notes = [await story.note("The town of Brinewick lies by the sea.")] if canon else []
    told = [await story.append("dm", fact(n) if n % 3 else IDLE[0]) for n in range(60)]
    everything = [turn.id for turn in (*notes, *told)]
    whole = await story.context("rogue", budget=5000, query=query, recipe=tk.QUESTION_RECIPE)
    assert word_for_word(whole) == everything
    assert whole.left_out == ()
    tight = await story.context("rogue", budget=whole.tokens, query=query, recipe=tk.QUESTION_RECIPE)
    assert tight.text == whole.text
    less = await story.context("rogue", budget=whole.tokens - 1, query=query, recipe=tk.QUESTION_RECIPE)
    assert less.tokens < whole.tokens
    assert set(word_for_word(less)) < set(everything)
    await story.append("dm", "And on.")
    grown = await story.context("rogue", budget=whole.tokens, query=query, recipe=tk.QUESTION_RECIPE)
    assert grown.tokens <= whole.tokens


async def test_a_story_that_fits_leaves_room_for_what_else_there_is_to_say(story: tk.Story) -> None:
    told = [await story.append("dm", fact(n)) for n in range(40)]
    plain = await story.context("rogue", budget=5000, recipe=tk.QUESTION_RECIPE)
    facts = [tk.Note("The rogue owes the ferryman forty crowns.", rank=1.0)]
    both = await story.context("rogue", budget=5000, recipe=tk.QUESTION_RECIPE, extras={"facts": facts})
    assert word_for_word(both) == [turn.id for turn in told]
    for budget in range(plain.tokens - 2, both.tokens + 3):
        context = await story.context("rogue", budget=budget, recipe=tk.QUESTION_RECIPE, extras={"facts": facts})
        assert "forty crowns" in context.text, "it does not give way to the past"
        assert (context.text == both.text) == (budget >= both.tokens)


# -- in a context --------------------------------------------------------------------------------------------------------


async def test_the_most_telling_turns_of_the_past_are_shown_word_for_word(story: tk.Story) -> None:
    told = await tell(story, 6)
    await talk(story, 60)
    block = await highlights(story)
    assert set(sources(block)) >= {turn.id for turn in told}
    assert block is not None
    assert all(turn.text in block.text for turn in told)
    assert not block.stable


async def test_they_are_shown_in_order_of_time_with_the_time_above_those_that_share_it(story: tk.Story) -> None:
    first = await tell(story, 2, when="Day 1")
    later = await tell(story, 2, first=2, when="Day 9")
    await talk(story, 60, when="Day 10")
    block = await highlights(story, budget=420)
    assert block is not None
    assert [source for source in sources(block) if source in {turn.id for turn in (*first, *later)}] == [
        turn.id for turn in (*first, *later)
    ]
    assert block.text.count("(Day 1)\n") == 1
    assert block.text.index("(Day 1)") < block.text.index(first[0].text) < block.text.index("(Day 9)") < block.text.index(later[0].text)


async def test_a_recipe_without_that_part_shows_none(story: tk.Story) -> None:
    await tell(story, 6)
    await talk(story, 60)
    assert (await story.context("rogue", budget=500)).block("highlights") is None


async def test_what_is_told_again_in_nearly_the_same_words_is_shown_once(story: tk.Story) -> None:
    long = (
        "In the year of the Red Moon, Percy of Whitestone fled from Lord Briarwood across the frozen river, and lost his sister Cassandra"
    )
    for number in range(5):
        await talk(story, 10)
        await story.append("dm", f"{long}, as he told us for the {number + 2}th time.")
    other = (await tell(story, 1))[0]
    await talk(story, 60)
    block = await highlights(story, budget=400)
    assert block is not None
    assert block.text.count(long) == 1
    assert other.text in block.text


async def test_nothing_is_shown_twice_in_a_context(story: tk.Story) -> None:
    told = await tell(story, 6)
    await talk(story, 60)
    await story.pin(told[0])
    context = await story.context("rogue", budget=600, query="Captain Hollowmere1", recipe=tk.QUESTION_RECIPE)
    recalled = context.block("recall")
    assert recalled is not None
    assert told[1].id in sources(recalled)
    assert {told[0].id, *sources(recalled)}.isdisjoint(sources(context.block("highlights")))
    assert all(context.text.count(turn.text) <= 2 for turn in told), "in the fold, and word for word"


async def test_what_is_recalled_comes_before_them(story: tk.Story) -> None:
    told = await tell(story, 12)
    await talk(story, 60)
    assert len(sources(await highlights(story, budget=300))) > 2
    context = await story.context("rogue", budget=300, query="lamps of the old keeper in the winter", recipe=tk.QUESTION_RECIPE)
    assert len({turn.id for turn in told} & set(sources(context.block("recall")))) >= 4
    assert sources(context.block("highlights")) == []


async def test_they_tell_only_what_the_seat_heard(story: tk.Story) -> None:
    await tell(story, 3)
    secret = await story.append("dm", "Baron Vexley of Thornwall hid 900 crowns in Castle Mourn.", heard_by=["bard"])
    await talk(story, 60)
    assert secret.id in sources(await highlights(story, seat="bard"))
    assert secret.id not in sources(await highlights(story, seat="rogue"))


async def test_what_others_hear_does_not_change_them(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper()
    seen = []
    for name, secrets in (("one", 0), ("other", 40)):
        story = await keeper.story(tk.MemoryKey("acme", "ana", name), seats=SEATS)
        await tell(story, 3)
        await story.append_many([tk.Draft("dm", fact(n + 20), heard_by=["bard"]) for n in range(secrets)])
        await tell(story, 3, first=3)
        await talk(story, 60)
        seen.append((await story.context("rogue", budget=500, recipe=tk.QUESTION_RECIPE)).text)
    assert seen[0] == seen[1]


async def test_the_best_of_a_long_story_are_found_though_they_stand_together(story: tk.Story) -> None:
    await talk(story, 300)
    told = [await story.append("dm", fact(number)) for number in range(20)]
    await talk(story, 600)
    shown = set(sources(await highlights(story, budget=1200)))
    assert shown >= {turn.id for turn in told}, "though a fold knows but a few of them"


async def test_edits_and_forgetting_reach_them(story: tk.Story) -> None:
    told = await tell(story, 4)
    await talk(story, 60)
    await story.edit(told[0], "Duchess Ilvane of Marrowgate bought 77 lamps in the spring.")
    await story.edit(told[1], "Well, you know.")
    await story.forget(told[2])
    block = await highlights(story)
    assert block is not None
    assert "Duchess Ilvane of Marrowgate" in block.text
    assert told[3].text in block.text
    assert not {told[1].id, told[2].id} & set(sources(block))


async def test_what_the_author_wrote_over_is_not_told_by_them(story: tk.Story) -> None:
    told = await tell(story, 2)
    await talk(story, 200)
    fold, *_ = [fold for fold in await story.folds("rogue", budget=300) if told[0].id in await story.sources(fold)]
    assert told[0].id in sources(await highlights(story, budget=300))
    await story.override(fold.id, "It was a quiet winter.")
    assert told[0].id not in sources(await highlights(story, budget=300))


async def test_they_are_the_same_after_rewinding_and_reopening(open_keeper: OpenKeeper, target: str) -> None:
    keeper = await open_keeper()
    story = await keeper.story(KEY, seats=SEATS)
    await tell(story, 6)
    await talk(story, 60)
    before, head = (await story.context("rogue", budget=500, recipe=tk.QUESTION_RECIPE)).text, story.head
    await tell(story, 6, first=6)
    assert (await story.context("rogue", budget=500, recipe=tk.QUESTION_RECIPE)).text != before
    await story.rewind(head)
    assert (await story.context("rogue", budget=500, recipe=tk.QUESTION_RECIPE)).text == before
    if target != ":memory:":
        await story.settle()
        await keeper.close()
        again = await (await open_keeper()).story(KEY)
        assert (await again.context("rogue", budget=500, recipe=tk.QUESTION_RECIPE)).text == before


# -- how telling a turn is -----------------------------------------------------------------------------------------------


class Said(NamedTuple):
    voice: str
    text: str


@pytest.mark.parametrize(
    "more_and_less",
    [
        ("We met Captain Orrin in Fenwold.", "We met the man in the town."),
        ("It was in the winter, on Monday.", "It was as it was, as they say."),
        ("She has 40 crowns and 3 horses.", "She has some crowns and horses."),
        ("I swear that I will bring it back.", "I think that I will see it there."),
        ("The road to the mill runs along the river.", "Oh, you know, you and your ways!"),
        ("The road runs to the mill.", "Does the road run to the mill?"),
        ("Мы встретили капитана Орлова в Туле.", "Мы его там не встретили."),
    ],
)
def test_names_days_numbers_and_deeds_tell_more(more_and_less: tuple[str, str]) -> None:
    more, less = (worths([Said("Ana", text)])[0] for text in more_and_less)
    assert more > less


def test_an_answer_tells_more_than_the_same_words_unasked() -> None:
    answer = Said("Ben", "In the mill by the river.")
    unasked, own, asked = (worths([before, answer])[1] for before in (Said("Ana", "Hm."), Said("Ben", "Where?"), Said("Ana", "Where?")))
    assert asked > unasked == own, "who answers oneself was not asked"
    assert tellings([answer, answer], [Said("Ana", "Where?"), None])[0] > tellings([answer], [None])[0]


def test_a_list_of_names_is_not_worth_more_than_a_few() -> None:
    few, many = ("We saw " + " and ".join(PLACES[:n]) + "." for n in (4, 12))
    assert worths([Said("Ana", few)])[0] == pytest.approx(worths([Said("Ana", many)])[0], abs=0.7)


def test_the_names_of_the_speakers_tell_nothing() -> None:
    turns = [Said("Ana Vey", "I was there with Ben."), Said("Ben", "It was so, Ana.")]
    alone = worths([Said("Cid", "I was there with Ben.")])[0]
    assert worths(turns)[0] < alone


def test_how_telling_is_between_nothing_and_all() -> None:
    texts = ["", "Oh, you!", fact(3) + " " + fact(4) + " On Monday, 3 May 2023, Queen Mab of Galt swore to kill Lord Ash.", "嗯。"]
    assert all(0 <= telling <= 1 for telling in tellings([Said("Ana", text) for text in texts], [None] * 4))
    assert tellings([], []) == []
    assert worths([]) == []


def test_of_turns_worth_the_same_the_shorter_comes_first_and_then_the_newer() -> None:
    peaks = [peak_of(4.0, Ref(1, seq, f"t{seq}", "", tokens)) for seq, tokens in ((1, 200), (2, 20), (3, 20), (4, 5), (5, 8))]
    assert [peak.ref.seq for peak in sorted(peaks)] == [5, 4, 3, 2, 1]
    longer = peak_of(6.0, Ref(1, 6, "t6", "", 24))
    assert longer < peaks[1], "a few words more for much more is worth it"


async def test_what_newer_rules_find_most_telling_in_an_older_file_is_kept(open_file: OpenKeeper, tmp_path: Path) -> None:
    async def looked_at() -> tuple[int, str]:
        """How many entries a context reads where the story was not in memory, and the context."""
        keeper, read_so_far = await open_file(), 0
        story, read = await keeper.story(KEY), keeper.store.read

        async def counted(request: Read) -> Found:
            nonlocal read_so_far
            found = await read(request)
            read_so_far += len(found.entries)
            return found

        keeper.store.read = counted  # type: ignore[method-assign]
        text = (await story.context("dm", budget=1500, recipe=tk.QUESTION_RECIPE)).text
        keeper.store.read = read  # type: ignore[method-assign]
        await keeper.close()
        return read_so_far, text

    keeper = await open_file()
    story = await keeper.story(KEY, seats=SEATS)
    await story.append_many([tk.Draft("dm", f"Mile {number}: Mira pays {number} crowns to the ferryman Odd.") for number in range(900)])
    await story._hot.checkpoint()
    await keeper.close()
    few, wanted = await looked_at()
    with closing(sqlite3.connect(tmp_path / "stories.db")) as db, db:
        db.execute("UPDATE folds SET shape = replace(shape, 'telling-', 'formerly-')")
    many, text = await looked_at()
    assert (many > 800, text) == (True, wanted)
    assert await looked_at() == (few, wanted)
