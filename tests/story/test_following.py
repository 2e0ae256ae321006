"""Following a story: nothing is missed, whatever comes between, and nothing is told that was not heard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stories import KEY, TABLE, deed, tell

import talekeeper as tk
from talekeeper.model import HEARD_KINDS
from talekeeper.story.following import START, Follower, News

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


async def follow(story: tk.Story, seat: str | None = None, after: str | None = None) -> Follower:
    follower = Follower(story, seat)
    assert await follower.start(after)
    return follower


async def everything(follower: Follower) -> list[News]:
    found: list[News] = []
    while page := await follower.news():
        found += page
    return found


class Listener:
    """Keeps a copy of the log by what it is told: turns are added, and taken away again by a rewind."""

    def __init__(self) -> None:
        self.places = [START]
        self.texts = [""]

    def hear(self, news: News) -> None:
        if news.kind == "rewind":
            cut = self.places.index(news.place) + 1
            del self.places[cut:], self.texts[cut:]
        else:
            assert news.entry is not None
            self.places.append(news.place)
            self.texts.append(f"{news.kind} {news.entry.text}")


async def test_a_follower_is_told_what_is_appended_and_done(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    follower = await follow(story)
    turns = await tell(story, 3)
    await story.edit(turns[0], "It was otherwise.")
    await story.pin(turns[1])
    kinds = [(news.kind, news.entry and news.entry.target) for news in await everything(follower)]
    assert kinds == [("said", None)] * 3 + [("edit", turns[0].id), ("pin", turns[1].id)]
    assert await follower.news() == []


async def test_it_takes_up_where_it_was_also_in_another_process(open_file: OpenKeeper) -> None:
    story = await (await open_file()).story(KEY, seats=TABLE)
    first = await follow(story)
    await tell(story, 5)
    place = (await everything(first))[2].place
    await tell(story, 700, first=6)
    again = await (await open_file()).story(KEY)
    found = await everything(await follow(again, after=place))
    assert [news.entry.text for news in found if news.entry] == [deed(n) for n in range(4, 706)]


async def test_a_turn_of_ones_own_id_is_a_place_as_well(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    await story.append("dm", "One.", id="one")
    await story.append("dm", "Two.")
    assert [news.entry.text for news in await everything(await follow(story, after="one")) if news.entry] == ["Two."]


async def test_what_was_undone_is_told_once_with_what_is_left(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    follower = await follow(story, after=START)
    await tell(story, 6)
    told = await everything(follower)
    await story.rewind(4)
    await story.append("rogue", "Another way.")
    (back, new) = await everything(follower)
    assert (back.kind, back.place) == ("rewind", told[3].place)
    assert back.entry is not None
    assert back.entry.text == deed(4)
    assert new.entry is not None
    assert new.entry.text == "Another way."
    assert [news.kind for news in await everything(await follow(story, after=told[5].place))] == ["rewind", "said"]
    await story.rewind(0)
    assert [(news.kind, news.place, news.entry) for news in await everything(follower)] == [("rewind", START, None)]


async def test_a_seat_is_told_what_it_heard_and_of_no_rewind_of_anything_else(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    follower = await follow(story, "rogue")
    await story.append("dm", "For you.", heard_by=["rogue"])
    await story.append("dm", "For the bard.", heard_by=["bard"])
    (heard,) = await everything(follower)
    assert heard.entry is not None
    assert heard.entry.text == "For you."
    await story.rewind(1)
    assert await everything(follower) == []
    await story.append("dm", "Another for the bard.", heard_by=["bard"])
    await story.regenerate("A third for the bard.")
    assert await everything(follower) == []
    await story.rewind(0)
    assert [news.kind for news in await everything(follower)] == ["rewind"]


async def test_a_place_that_was_not_heard_is_no_better_than_one_that_is_not_there(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    await story.append("dm", "For you.", heard_by=["rogue"])
    secret = await story.append("dm", "For the bard.", heard_by=["bard"], id="for-the-bard")
    other = await story.append("dm", "For the bard too.", heard_by=["bard"])
    for place in (secret.id, other.id, "t-0123456789abcdef", "t-ffffffffffffffff", "nowhere", ""):
        follower = Follower(story, "rogue")
        assert not await follower.start(place)
        assert await follower.news() == []
        await story.append("dm", "Go on.", id=f"after {place}")
        assert [news.kind for news in await everything(follower)] == ["said"]


async def test_going_over_to_another_line_is_a_rewind_and_what_is_told_there(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    await tell(story, 5)
    await story.rewind(2)
    await tell(story, 1, first=100)
    follower = await follow(story)
    assert await story.adopt("main~1") == 5
    found = await everything(follower)
    assert [news.entry.text for news in found if news.entry] == [deed(n) for n in (2, 3, 4, 5)]
    assert [news.kind for news in found] == ["rewind", "said", "said", "said"]


acts = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["both", "rogue", "bard"]), st.just(0)), st.tuples(st.just("rewind"), st.integers(0, 99)),
        st.tuples(st.sampled_from(["look", "come back", "regenerate", "edit"]), st.integers(0, 99)),
    ),
    min_size=1, max_size=40,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(script=acts)
@pytest.mark.parametrize("seat", [None, "rogue"])
async def test_a_listener_who_comes_and_goes_has_the_log_in_the_end(seat: str | None, script: list[tuple[str, int]]) -> None:
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=TABLE)
        follower, listener = await follow(story, seat, START), Listener()
        for number, (act, at) in enumerate([*script, ("look", 0)]):
            if act == "rewind":
                await story.rewind(at % (story.head + 1))
            elif act == "regenerate" and (await story.turns(limit=1)):
                await story.regenerate(f"again {number}")
            elif act == "edit" and (heard := await story.turns()):
                await story.edit(heard[at % len(heard)], f"edited {number}")
            elif act == "come back":
                follower = await follow(story, seat, listener.places[-1])
            elif act == "look":
                for news in await everything(follower):
                    listener.hear(news)
            elif act in ("both", "rogue", "bard"):
                await story.append("dm", f"turn {number}", heard_by=["rogue", "bard"] if act == "both" else [act])
        log = await story.turns(seat=seat, kinds=HEARD_KINDS | {"edit"})
        assert [text.split(" ", 1)[0] for text in listener.texts[1:]] == [turn.kind for turn in log]
        assert len(listener.texts) == len(log) + 1


async def test_a_follower_and_a_rewind_at_the_same_time_lose_nothing(open_file: OpenKeeper) -> None:
    story = await (await open_file()).story(KEY, seats=TABLE)
    other = await (await open_file()).story(KEY)
    follower, listener = await follow(story, None, START), Listener()

    async def act() -> None:
        for number in range(60):
            await other.append("dm", f"turn {number}")
            if number % 7 == 6:
                await other.rewind(other.head - 3)

    acting = asyncio.create_task(act())
    while not acting.done():
        for news in await follower.news():
            listener.hear(news)
        await asyncio.sleep(0)
    await acting
    for news in await everything(follower):
        listener.hear(news)
    assert listener.texts[1:] == [f"said {turn.text}" for turn in await other.turns()]
