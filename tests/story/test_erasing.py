"""Forgetting, as seen from the front door: the text is nowhere any more. On every store."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stories import KEY, SECRET, SMALL, TRACES, all_folds, bytes_below, contexts, leaf_over, tell

import talekeeper as tk
from talekeeper import memory
from talekeeper.testing.models import MoodyModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


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
