"""What makes a turn come back: each signal of the ranking by itself, seen through the front door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import talekeeper as tk
from talekeeper.live.hot import Hot
from talekeeper.ports import Found

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard"))
IDLE = ("We walk on.", "It is as before.", "They sit and wait there.", "So it goes.", "And on we go.")


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


async def pass_time(story: tk.Story, turns: int = 12, *, when: str | None = None, location: str | None = None) -> None:
    """Turns that share no word with any query, so that what is told stands alone."""
    await story.append_many([tk.Draft("dm", IDLE[n % len(IDLE)], when=when, location=location) for n in range(turns)])


async def long_ago(story: tk.Story) -> None:
    """More of the same than any budget here holds: what fits is shown as it is, and nothing is brought back."""
    await pass_time(story, 500)


async def order(story: tk.Story, query: str) -> list[str]:
    return [hit.turn.id for hit in await story.recall("rogue", query, limit=60)]


async def brought_back(story: tk.Story, query: str, budget: int = 400) -> list[str]:
    """The turns that a query brings back into a context."""
    block = (await story.context("rogue", budget=budget, query=query, recipe=tk.QUESTION_RECIPE)).block("recall")
    return [source for item in block.items for source in item.sources] if block is not None else []


# -- neighbours ----------------------------------------------------------------------------------------------------------


async def test_the_answer_comes_back_with_its_question_though_it_shares_no_word_with_the_query(story: tk.Story) -> None:
    await long_ago(story)
    await pass_time(story)
    question = await story.append("rogue", "Ferryman, where did you hide the lantern?")
    answer = await story.append("dm", "Under the third oak, by the mill.")
    await pass_time(story)
    found = await brought_back(story, "the ferryman's lantern")
    assert {question.id, answer.id} <= set(found)
    assert answer.id not in await order(story, "the ferryman's lantern"), "recall itself names only what shares a word"


async def test_what_others_say_in_between_does_not_move_neighbours_apart(story: tk.Story) -> None:
    await long_ago(story)
    await pass_time(story)
    await story.append("rogue", "Ferryman, where did you hide the lantern?", heard_by=["rogue"])
    await story.append_many([tk.Draft("bard", f"An aside, number {n}.", heard_by=["bard"]) for n in range(40)])
    answer = await story.append("dm", "Under the third oak, by the mill.", heard_by=["rogue"])
    await pass_time(story)
    assert answer.id in await brought_back(story, "the ferryman's lantern")
    await story.settle()
    assert answer.id in await brought_back(story, "the ferryman's lantern")


async def test_comings_and_goings_are_no_answers(story: tk.Story) -> None:
    await long_ago(story)
    await story.enter("rogue", "mill")
    await pass_time(story, location="mill")
    await story.append("rogue", "Ferryman, where did you hide the lantern?", location="mill")
    move = await story.enter("bard", "mill")
    assert move is not None
    answer = await story.append("dm", "Under the third oak.", location="mill")
    await pass_time(story, location="mill")
    found = await brought_back(story, "the ferryman's lantern")
    assert answer.id in found
    assert move.id not in found


async def test_a_turn_between_two_that_answer_is_worth_more_than_one_at_the_edge(story: tk.Story) -> None:
    await pass_time(story)
    await story.append("dm", "The lantern is lit.")
    between = await story.append("dm", "A bell rings.")
    await story.append("dm", "The lantern goes out.")
    for _ in range(12):
        edge = await story.append("dm", "A dog barks.")
    await pass_time(story)
    found = await brought_back(story, "lantern", budget=170)
    assert between.id in found
    assert edge.id not in found


async def test_how_far_it_reaches_is_counted_in_words_and_not_in_turns(story: tk.Story) -> None:
    await long_ago(story)
    for mood, between in (("", ["Well.", "Hm.", "Let me see.", "Yes.", "Now then."]), ("!", ["He talks of this and of that. " * 40])):
        await pass_time(story, 20)
        await story.append("rogue", f"Ferryman, where did you hide the lantern?{mood}")  # what reads the same would come back once
        await story.append_many([tk.Draft("dm", text) for text in between])
        await story.append("dm", f"Under the third oak, by the mill.{mood}")
        await pass_time(story, 20)
    block = (await story.context("rogue", budget=2000, query="the ferryman's lantern", recipe=tk.QUESTION_RECIPE)).block("recall")
    assert block is not None
    assert block.text.count("hide the lantern") == 2
    assert block.text.count("third oak") == 1


async def test_many_weak_ones_in_a_row_are_no_strong_one(story: tk.Story) -> None:
    await pass_time(story)
    strong = await story.append("dm", "The silver lantern hangs in the crypt.")
    await pass_time(story, 20)
    for _ in range(15):
        await story.append("dm", "A lantern.")
    await pass_time(story)
    assert (await order(story, "the silver lantern of the crypt"))[0] == strong.id


async def test_what_is_far_behind_the_best_is_not_brought_back(story: tk.Story) -> None:
    best = await story.append("dm", "The zanzibar with the seven silver sails came in at noon.")
    await pass_time(story, 40)
    for _ in range(30):
        weak = await story.append("dm", "So the evening came, and they sat there.")
    await pass_time(story, 40)
    found = await brought_back(story, "When came the zanzibar with seven silver sails?", budget=800)
    assert best.id in found
    assert weak.id not in found
    assert weak.id in await order(story, "When came the zanzibar with seven silver sails?")


# -- who and when --------------------------------------------------------------------------------------------------------


async def test_where_the_query_names_one_speaker_others_count_less(story: tk.Story) -> None:
    mira = await story.append("dm", "The ledger is with me.", voice="Mira")
    await pass_time(story)
    voss = await story.append("dm", "The ledger? Mira!", voice="Voss")
    await pass_time(story)
    assert await order(story, "ledger") == [voss.id, mira.id], "of equals the newest"
    assert await order(story, "What did Mira say of the ledger?") == [mira.id, voss.id]


async def test_where_the_query_names_two_speakers_neither_counts_less(story: tk.Story) -> None:
    mira = await story.append("dm", "The ledger is with me.", voice="Mira")
    await pass_time(story)
    voss = await story.append("dm", "The ledger? Mira!", voice="Voss")
    await pass_time(story)
    assert await order(story, "What did Mira and Voss say of the ledger?") == [voss.id, mira.id]


@pytest.mark.parametrize(
    ("first", "second", "query"),
    [
        ("2023-05-08T13:56", "2023-07-08T13:56", "Who saw the falcon on 7 May 2023?"),
        ("2023-05-08T13:56", "2023-07-08T13:56", "Who saw the falcon in May 2023?"),
        ("Day 3, dusk", "Day 12, noon", "Who saw the falcon on day 3?"),
    ],
)
async def test_what_was_told_near_the_time_that_is_asked_for_counts_double(story: tk.Story, first: str, second: str, query: str) -> None:
    early = await story.append("dm", "A falcon sits on the wall.", when=first)
    await pass_time(story, when=first)
    await pass_time(story, when="2023-06-15")
    late = await story.append("dm", "A falcon sits on the wall.", when=second)
    await pass_time(story, when=second)
    assert await order(story, "Who saw the falcon?") == [late.id, early.id]
    assert (await order(story, query))[0] == early.id


async def two_sessions(story: tk.Story, marked: str) -> tuple[tk.Turn, tk.Turn]:
    """Nearly the same turn in a session that has more of it, and later in one that has not."""
    turns = []
    for session, others in enumerate((("The falcon is hurt.", "We feed the falcon."), ("We eat.", "We rest."))):
        when = f"2023-0{session + 1}-08" if marked == "when" else None
        if marked == "begin_session":
            await story.begin_session()
        turns.append(await story.append("dm", ("A falcon sits on the wall.", "A falcon sat on the wall.")[session], when=when))
        for text in others:
            await pass_time(story, when=when)
            await story.append("dm", text, when=when)
        await pass_time(story, when=when)
    return turns[0], turns[1]


@pytest.mark.parametrize("marked", ["begin_session", "when"])
async def test_where_much_of_a_session_answers_all_of_it_counts_more(story: tk.Story, marked: str) -> None:
    first, second = await two_sessions(story, marked)
    assert (await order(story, "falcon wall"))[:2] == [first.id, second.id]
    await pass_time(story, 300, when="2023-09-08" if marked == "when" else None)
    await story.settle()
    assert (await order(story, "falcon wall"))[:2] == [first.id, second.id], "indexed, it is no different"


async def test_without_sessions_of_equal_turns_the_newest_comes_first(story: tk.Story) -> None:
    first, second = await two_sessions(story, "not at all")
    assert (await order(story, "falcon wall"))[:2] == [second.id, first.id]


# -- the turn itself -----------------------------------------------------------------------------------------------------


async def test_a_turn_that_tells_something_comes_before_small_talk(story: tk.Story) -> None:
    telling = await story.append("dm", "On Friday the duke of Harrow, Aldous, gave 40 crowns for the falcon.")
    await pass_time(story)
    talk = await story.append("dm", "Well, yes, thank you, the falcon, okay.")
    await pass_time(story)
    assert await order(story, "falcon") == [telling.id, talk.id]


async def test_of_turns_with_the_same_words_the_shorter_comes_first(story: tk.Story) -> None:
    short = await story.append("dm", "The falcon flies.")
    await pass_time(story)
    await story.append(
        "dm", "The falcon flies over stone and water and grass and sand and ash and snow and mud and reed and fern and foam."
    )
    await pass_time(story)
    assert (await order(story, "falcon flies"))[0] == short.id


# -- what is shown -------------------------------------------------------------------------------------------------------


async def test_a_time_that_neighbours_share_stands_above_them_once(story: tk.Story) -> None:
    for day in (1, 2):
        for n in range(2):
            await story.append("dm", f"The falcon was seen, sighting {n} of day {day}.", when=f"2023-05-0{day}")
            await pass_time(story, 3, when=f"2023-05-0{day}")
    await pass_time(story, 40, when="2023-06-01")
    context = await story.context("rogue", budget=800, query="falcon sightings", recipe=tk.QUESTION_RECIPE)
    recalled = context.block("recall")
    assert recalled is not None
    assert recalled.text.count("(2023-05-01)\n") == recalled.text.count("(2023-05-02)\n") == 1
    assert (
        recalled.text.index("(2023-05-01)")
        < recalled.text.index("day 1")
        < recalled.text.index("(2023-05-02)")
        < recalled.text.index("day 2")
    )
    assert context.tokens == story.counter.count(context.text) <= 800


async def test_where_some_turns_have_no_time_it_stays_with_those_that_have_one(story: tk.Story) -> None:
    await long_ago(story)
    await story.append("dm", "The falcon was seen on a wall.", when="Day 3")
    await pass_time(story, 6)
    await story.append("dm", "The falcon was seen on a roof.")
    await pass_time(story, 40)
    recalled = (await story.context("rogue", budget=400, query="falcon", recipe=tk.QUESTION_RECIPE)).block("recall")
    assert recalled is not None
    assert "[DM] (Day 3): The falcon was seen on a wall.\n" in recalled.text
    assert "[DM]: The falcon was seen on a roof.\n" in recalled.text


# -- cost ----------------------------------------------------------------------------------------------------------------


async def test_what_is_looked_at_is_bounded_and_follows_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tk.open(tmp_path / "long.db") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append_many([tk.Draft("dm", f"The gate is {'shut' if n % 30 == 0 else 'open'} at hour {n}.") for n in range(1500)])
        await story.settle()
    looked: list[int] = []
    read = Hot.read

    async def watched(self: Hot, **wanted: Any) -> Found:
        looked.append(len(wanted.get("positions", ())) + len(wanted.get("outlines", ())))
        return await read(self, **wanted)

    monkeypatch.setattr(Hot, "read", watched)
    spent = []
    for budget in (500, 4000):
        async with tk.open(tmp_path / "long.db") as keeper:  # opened anew, so that nothing is in memory
            story = await keeper.story(KEY)
            await story.context("rogue", budget=budget, recipe=tk.QUESTION_RECIPE)
            looked.clear()
            await story.context("rogue", budget=budget, query="Who says that the gate is shut?", recipe=tk.QUESTION_RECIPE)
            spent.append(sum(looked))
    assert 100 < spent[0] < spent[1] < 800


async def test_a_question_of_words_that_all_turns_have_reads_no_more_of_a_longer_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, turns = Hot.read, 0
    words: list[int] = []

    async def watched(self: Hot, **wanted: Any) -> Found:
        words.append(len(wanted.get("positions", ())))
        return await read(self, **wanted)

    monkeypatch.setattr(Hot, "read", watched)
    spent = []
    for length in (600, 3000):
        async with tk.open(tmp_path / "long.db") as keeper:
            story = await keeper.story(KEY, seats=SEATS)
            await story.append_many([tk.Draft("dm", f"The captain is at the gate of the ship, hour {n}.") for n in range(turns, length)])
            await story.settle()
            turns = length
        async with tk.open(tmp_path / "long.db") as keeper:  # opened anew, so that nothing is in memory
            story = await keeper.story(KEY)
            words.clear()
            await story.recall("rogue", "Where is the captain of the ship?")
            spent.append(sum(words))
    assert spent[0] == spent[1] < 100


async def test_what_is_told_again_in_the_same_words_is_shown_once(story: tk.Story) -> None:
    await long_ago(story)
    for _ in range(6):
        await story.append("dm", "The lantern is lit.")
        await pass_time(story)
    other = await story.append("dm", "Marek the ferryman buys a lantern of green glass.")
    await long_ago(story)
    block = (await story.context("rogue", budget=600, query="lantern", recipe=tk.QUESTION_RECIPE)).block("recall")
    assert block is not None
    assert block.text.count("The lantern is lit.") == 1
    assert other.text in block.text
    assert len(await order(story, "lantern")) == 2, "and so it is for whoever asks for turns"


async def test_the_title_of_a_session_answers_only_where_nothing_else_does(story: tk.Story) -> None:
    await story.begin_session(title="The letter of Marek")
    await pass_time(story)
    told = await story.append("dm", "A letter lies under the door, and it is sealed with black wax.")
    await long_ago(story)
    assert await order(story, "What was in the letter?") == [told.id]
    assert (await story.recall("rogue", "Marek"))[0].turn.kind == "session"
    assert (await story.recall("rogue", "The letter of Marek"))[0].turn.kind == "session", "word for word"


async def test_the_commonest_verbs_of_a_question_weigh_little(story: tk.Story) -> None:
    told = await story.append(
        "dm", "While the others sleep, Toma the ferryman presses a blue glass bead into your palm. Show it at the gate."
    )
    for _ in range(6):
        await pass_time(story, 3)
        await story.append("bard", "Okay, I am getting pizza.")
    assert (await order(story, "Where did I get the bead?"))[0] == told.id
