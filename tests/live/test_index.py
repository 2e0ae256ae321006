"""What is kept between two queries: asked for once, never out of date, and bounded; and the choice of candidates, held against all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import talekeeper as tk
from talekeeper.live.index import Heard, Index, Posted
from talekeeper.ports import Entry, Outline, Postings
from talekeeper.recall.ranking import CANDIDATES, candidates, packed, unpacked
from talekeeper.summarize.salience import Features

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue"), tk.Seat("bard"))


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=SEATS)


async def found(story: tk.Story | tk.Past, query: str, seat: str = "rogue") -> list[str]:
    return [hit.turn.text for hit in await story.recall(seat, query, limit=50)]


async def tell(story: tk.Story, turns: int, text: str = "The ferryman waits, hour {}.") -> None:
    await story.append_many([tk.Draft("dm", text.format(n)) for n in range(turns)])
    await story.settle()


# -- never out of date ---------------------------------------------------------------------------------------------------


async def test_what_is_told_between_two_queries_is_found_at_once_and_after_it_was_indexed(story: tk.Story) -> None:
    await tell(story, 300)
    assert await found(story, "falcon") == []
    await story.append("dm", "A falcon sits on the wall.")
    assert await found(story, "falcon") == ["A falcon sits on the wall."]
    await tell(story, 300)
    assert await found(story, "falcon") == ["A falcon sits on the wall."]
    await story.append("dm", "The falcon flies.")
    await tell(story, 300)
    assert set(await found(story, "falcon")) == {"A falcon sits on the wall.", "The falcon flies."}


async def test_a_turn_that_was_edited_between_two_queries_is_found_by_its_new_words_alone(story: tk.Story) -> None:
    turn = await story.append("dm", "A falcon sits on the wall.")
    await tell(story, 300)
    assert await found(story, "falcon wall") == ["A falcon sits on the wall."]
    await story.edit(turn.id, "A raven sits on the roof.")
    assert await found(story, "falcon") == []
    assert await found(story, "raven roof") == ["A raven sits on the roof."]
    await tell(story, 300)
    assert await found(story, "falcon") == []
    assert await found(story, "raven roof") == ["A raven sits on the roof."]
    context = await story.context("rogue", budget=800, query="raven roof", recipe=tk.QUESTION_RECIPE)
    assert "A raven sits on the roof." in context.text
    assert "falcon" not in context.text


async def test_branches_do_not_share_what_was_found(story: tk.Story) -> None:
    await tell(story, 20)
    head = story.head
    await story.append("dm", "A falcon sits on the wall.")
    await tell(story, 300)
    assert await found(story, "falcon") == ["A falcon sits on the wall."]
    other = await story.fork(at=head, name="what if")
    await other.append("dm", "A falcon sits on the roof.")
    await tell(other, 300)
    assert await found(other, "falcon") == ["A falcon sits on the roof."]
    assert await found(story, "falcon") == ["A falcon sits on the wall."]
    await story.rewind(to=head)
    assert await found(story, "falcon") == []
    await story.append("dm", "A falcon sits on the gate.", heard_by=["bard"])
    assert await found(story, "falcon") == []
    assert await found(story, "falcon", "bard") == ["A falcon sits on the gate."]


async def test_what_another_process_told_and_forgot_is_known(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "s.db") as one, tk.open(tmp_path / "s.db") as other:
        mine = await one.story(KEY, seats=SEATS)
        theirs = await other.story(KEY)
        secret = await mine.append("dm", "The falcon is hollow.", when="Day 3")
        await tell(mine, 300)
        assert await found(mine, "falcon") == ["The falcon is hollow."]
        await theirs.append("dm", "A second falcon.")
        await tell(theirs, 300)
        assert set(await found(mine, "falcon")) == {"The falcon is hollow.", "A second falcon."}
        await theirs.forget(secret.id)
        assert await found(mine, "falcon") == ["A second falcon."]
        context = await mine.context("rogue", budget=600, query="the falcon of day 3", recipe=tk.QUESTION_RECIPE)
        assert "hollow" not in context.text
        assert "Day 3" not in context.text


# -- asked for once, and bounded -----------------------------------------------------------------------------------------


class Shelf:
    """An index that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def look(self, terms: Sequence[str]) -> list[list[Postings]]:
        self.asked += terms
        return [[Postings(1, 1, [len(self.asked)])] for _ in terms]


def entry(seq: int, *, channel: int = 1) -> Entry:
    return Entry(1, seq, "said", "dm", "DM", "The gate.", channel, None, 3, "heuristic", 0.0)


async def test_a_term_is_asked_for_once_however_much_is_indexed_after_that() -> None:
    index, shelf = Index(), Shelf()
    first = await index.search(["gate", "mill"], shelf.look)
    assert await index.search(["mill", "gate"], shelf.look) == first[::-1]
    assert await index.search(["mill", "oak"], shelf.look) == [first[1], [Posted(1, 1, [3])]]
    assert shelf.asked == ["gate", "mill", "oak"]
    index.grown([(entry(2), ["gate", "tower"]), (entry(7), ["gate"]), (entry(8, channel=2), ["gate", "oak"])])
    assert await index.search(["gate", "oak"], shelf.look) == [
        [Posted(1, 1, [2, 7]), Posted(1, 2, [8])],
        [Posted(1, 1, [3]), Posted(1, 2, [8])],
    ]
    index.grown([(entry(seq), ["gate"]) for seq in range(9, 2000)])
    index.grown([(entry(2000), ["gate"])])
    assert (await index.search(["gate"], shelf.look))[0][0] == Posted(1, 1, packed([2, 7, *range(9, 2001)]))
    assert shelf.asked == ["gate", "mill", "oak"]
    await index.search(["tower"], shelf.look)
    assert shelf.asked[-1] == "tower", "of which nothing was known when more of it was indexed"


async def test_what_was_found_while_more_was_indexed_is_not_kept() -> None:
    index, shelf = Index(), Shelf()

    async def slow(terms: Sequence[str]) -> list[list[Postings]]:
        found = await shelf.look(terms)
        index.grown([(entry(9), terms)])
        return found

    assert await index.search(["gate"], slow) == [[Posted(1, 1, [1])]]
    await index.search(["gate"], shelf.look)
    assert shelf.asked == ["gate", "gate"]


def outline(seq: int, *, voice: str = "DM", channel: int = 1, kind: str = "said", blank: bool = False) -> Outline:
    return Outline(1, seq, kind, voice, channel, seq % 90, blank)


def test_outlines_come_back_as_they_were_taken_and_only_to_those_who_heard_them() -> None:
    index = Index()
    index.take([
        outline(1), outline(700, voice="Mira"), outline(701, channel=2), outline(702, kind="enter"), outline(703, blank=True),
        Outline(1, 704, "edit", "DM", 1, 3, False, None, {"at": [1, 7]}), outline(705, kind="pin"),
    ])  # fmt: skip
    heard = Heard({1}, {}, {}, set(), {})
    assert index.tell([1, 2, 700, 701, 702, 703, 704, 705, 9999], heard) == [2, 9999]
    assert {number: (told.voice, heard.sizes[number]) for number, told in heard.turns.items()} == {
        1: ("DM", 1), 700: ("Mira", 70), 702: ("DM", 72),
    }  # fmt: skip
    assert (heard.spoken, heard.edits) == ({1, 700}, {704: 7})


async def test_it_does_not_grow_with_the_story() -> None:
    index, shelf = Index(), Shelf()
    for start in range(0, 100_000, 1000):
        index.take(outline(seq, voice=f"voice {seq}") for seq in range(start, start + 1000))
        await index.search([f"term {start + n}" for n in range(1000)], shelf.look)
        index.features.update({(f"text {start + n}", "en"): Features(0.0, frozenset()) for n in range(1000)})
        index.trim(64)
        assert len(index._postings) <= 128 * 64
        assert len(index._pages) <= 32
        assert len(index._manners) <= 4 * 64
        assert len(index.features) <= 64
    index.take([outline(5)])
    assert index.tell([5, 6], Heard({1}, {}, {}, set(), {})) == [6]


# -- candidates ----------------------------------------------------------------------------------------------------------


def best_of_all(words: Sequence[str], postings: Sequence[Sequence[int]], heard: int, enough: int) -> list[tuple[int, float]]:
    """The same, by adding up and sorting everything."""
    worth: dict[int, float] = {}
    for _, places in sorted(zip(words, postings, strict=True), key=lambda row: len(row[1])):
        weight = math.log(1 + (max(heard, len(places)) - len(places) + 0.5) / (len(places) + 0.5))
        for place in places:
            worth[place] = worth.get(place, 0.0) + weight
    ranked = sorted(worth.items(), key=lambda row: (row[1], row[0]), reverse=True)
    alike = [row for row in ranked if row[1] == ranked[0][1]]
    return alike[:2000] if len(alike) > enough else ranked[:enough]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 2**32)), max_size=7), st.sampled_from([0.5, 0.7, 1.0]))
def test_the_candidates_are_the_best_of_all(sizes: list[tuple[int, int]], effort: float) -> None:
    words = [f"w{n}" for n in range(len(sizes))]
    postings = [sorted({(seed + n * n * 7919) % 1200 + 1 for n in range(size)}) for size, seed in sizes]
    found = candidates(words, postings, 1200, effort)
    expected = best_of_all(words, postings, 1200, int(CANDIDATES * effort))
    assert [place for place, _ in found.worth.items()] == [place for place, _ in expected]
    assert list(found.worth.values()) == pytest.approx([each for _, each in expected])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1100), st.integers(0, 2**32), st.booleans(), st.booleans()), max_size=12),
    st.sampled_from([0.5, 1.0]),
)
def test_the_candidates_are_the_same_where_words_that_many_turns_have_are_kept_as_bits(
    sizes: list[tuple[int, int, bool, bool]], effort: float
) -> None:
    words = [f"w{n}" for n in range(len(sizes))]
    postings = [sorted({(seed + n * n * 7919) % 1200 + 1 for n in range(size)}) for size, seed, _, _ in sizes]
    bare = {word: (word + "e", places[::3]) for word, places, (_, _, marked, _) in zip(words, postings[::-1], sizes, strict=True) if marked}
    kept = [packed(places) if many else places for places, (_, _, _, many) in zip(postings, sizes, strict=True)]
    one, other = candidates(words, postings, 1200, effort, bare), candidates(words, kept, 1200, effort, bare)
    assert list(one.worth.items()) == list(other.worth.items())
    assert (one.weights, one.bare) == (other.weights, other.bare)


@given(st.sets(st.integers(0, 5000)), st.integers(0, 50))
def test_bits_are_the_numbers_they_were_made_of(numbers: set[int], most: int) -> None:
    assert unpacked(packed(list(numbers))) == sorted(numbers, reverse=True)
    assert unpacked(packed(list(numbers)), most) == sorted(numbers, reverse=True)[:most]
