"""Resuming: a story opened again goes on where it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stories import DM, KEY, SMALL, all_folds, contexts, deed, tell

import talekeeper as tk
from talekeeper.doctor import examine
from talekeeper.ports import Read

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


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
