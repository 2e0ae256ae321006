"""What is erased is gone for every reader; what is left of it, and all else, stays."""

from __future__ import annotations

import pytest

from talekeeper.errors import Conflict
from talekeeper.model import MemoryKey
from talekeeper.ports import Commit, Erase, Extent, Head, Position, Read, Snapshot, Span, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, everything, fill, fold, gathered, gathered_over, hits, log, text_of


class Erasing(Opening):
    async def test_erased_entries_leave_what_is_left_of_them(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        left = [entry(1)._replace(text="", speaker=""), entry(2)._replace(text="", id=None, extra=None), entry(99, "never was")]
        after = await store.write(Commit(story.id, rev, touch=True, erase=Erase(entries=left)))
        assert after > rev
        assert (await log(store, story))[:2] == left[:2]
        assert await store.head(story.id, 1) == Head(after, 3)
        found = await store.read(Read(story.id, ids=["own"], targeting=["t-1", "t-2"]))
        assert [(each.branch, each.seq) for each in found.entries] == [(1, 3), (2, 3)]
        await store.write(Commit(story.id, after, entries=[entry(4, id="own")]))

    async def test_whoever_erases_is_told_where_there_is_more_than_was_looked_through(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2, extra={"target": "t-1"})], folds=[fold("a"), fold("b")]))
        extent = Extent(2, ["t-1", "a", "none"], 1)
        erase = Commit(story.id, story.rev, erase=Erase([entry(1)._replace(text="")], ["a"], extent=extent))
        besides = [entry(3, extra={"target": "t-3"})]
        await store.write(Commit(story.id, story.rev, entries=besides, folds=[fold("b")], gathered=[gathered("a")]))
        more = [
            Commit(story.id, story.rev, entries=[entry(4, extra={"target": ["a", "b"]})]),
            Commit(story.id, story.rev, folds=[fold("c")]),
        ]
        for each in more:
            await store.write(each)
            with pytest.raises(Conflict):
                await store.write(erase)
            assert [each.text for each in (await log(store, story))[:1]] == [entry(1).text]
            assert (await store.read(Read(story.id, folds=["a"]))).folds == [fold("a")]
        erase = erase._replace(erase=Erase([entry(1)._replace(text="")], ["a"], extent=Extent(3, ["t-1", "a", "none"], 2)))
        await store.write(erase)
        assert not (await store.read(Read(story.id, folds=["a"]))).folds

    async def test_an_entry_that_names_a_target_twice_is_one_entry_and_can_be_erased(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        twice = entry(2, id="own", extra={"target": ["t-1", "t-1", "t-2"]})
        await store.write(Commit(story.id, story.rev, entries=[entry(1), twice], folds=[fold("a")]))
        for target in ("t-1", "t-2"):
            assert [each.seq for each in (await store.read(Read(story.id, targeting=[target]))).entries] == [2]
        left = [each._replace(text="", id=None, extra=None) for each in (entry(1), twice)]
        await store.write(Commit(story.id, story.rev, erase=Erase(left, ["a"], extent=Extent(1, ["t-1"], 1))))
        assert await log(store, story) == left
        found = await store.read(Read(story.id, ids=["own"], targeting=["t-1", "t-2"], folds=["a"]))
        assert (list(found.entries), list(found.folds)) == ([], [])

    async def test_an_erased_entry_may_keep_its_id(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        left = entry(2, id="own")._replace(text="", extra={"target": "t-9"})
        await store.write(Commit(story.id, rev, erase=Erase(entries=[left])))
        assert (await store.read(Read(story.id, ids=["own"], targeting=["t-1", "t-9"]))).entries == [left, left]

    async def test_erased_folds_go_with_their_texts_and_may_be_made_anew(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        await store.write(Commit(story.id, rev, gathered=[gathered("a", "names.2")]))
        await store.write(Commit(story.id, rev, erase=Erase(folds=["a", "no such"]), folds=[fold("a", "Anew."), fold("n")]))
        assert await gathered_over(store, story, "a", "b") == [gathered("b")]
        found = await store.read(Read(story.id, folds=["a", "b", "n"]))
        assert found.folds == [fold("a", "Anew."), fold("b"), fold("n")]
        assert found.texts == [text_of("b")]
        await store.write(Commit(story.id, rev, texts=[text_of("a", born=3)]))
        assert (await store.read(Read(story.id, folds=["a"]))).texts == [text_of("a", born=3)]
        await store.write(Commit(story.id, rev, erase=Erase(folds=["a"]), folds=[fold("a")], gathered=[gathered("a", value="Anew.")]))
        assert await gathered_over(store, story, "a") == [gathered("a", value="Anew.")]

    async def test_erased_index_rows_are_found_by_no_term_and_may_be_made_anew(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        gone = Erase(index={Position(1, 1): ["dragon", "gate"], Position(1, 3): ["never", "indexed"], Position(5, 5): ["dragon"]})
        await store.write(Commit(story.id, rev, erase=gone, index={Position(1, 1): ["ember"]}))
        assert await hits(store, story, "dragon", "gate", "ember", "never") == [[(1, 2, 1)], [], [(1, 1, 1)], []]
        await store.write(Commit(story.id, rev, erase=Erase(index={Position(1, 1): ["ember"]})))
        await store.write(Commit(story.id, rev, index={Position(1, 1): ["dragon"]}))
        assert await hits(store, story, "dragon", "ember") == [[(1, 1, 1), (1, 2, 1)], []]

    async def test_snapshots_are_erased_if_asked_for_and_one_may_be_made_in_the_same_commit(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        await store.write(Commit(story.id, rev, erase=Erase(folds=["b"])))
        on = [Span(1, 1, 9)]
        assert (await store.read(Read(story.id, snapshot_on=on))).snapshot == Snapshot(1, 3, {"turns": 3})
        await store.write(Commit(story.id, rev, erase=Erase(snapshots=True), snapshot=Snapshot(1, 2, {"turns": 2})))
        assert (await store.read(Read(story.id, snapshot_on=on))).snapshot == Snapshot(1, 2, {"turns": 2})

    async def test_erasing_touches_no_other_story(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        rev, other_rev = await fill(store, story), await fill(store, other)
        before = await everything(store, other)
        erase = Erase([entry(1)._replace(text="")], ["a", "b"], {Position(1, 1): ["dragon", "gate"]}, snapshots=True)
        await store.write(Commit(story.id, rev, erase=erase))
        assert await everything(store, other) == before
        assert await store.write(Commit(other.id, other_rev, entries=[entry(4)])) == other_rev
