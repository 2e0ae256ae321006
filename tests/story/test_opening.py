"""Opening a story again. On every store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stories import KEY, SMALL, TABLE, contexts, deed, tell

import talekeeper as tk

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


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
