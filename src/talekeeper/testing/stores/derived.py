"""What was derived from the log: folds with their texts and what was gathered over them, and snapshots."""

from __future__ import annotations

from typing import Any

from talekeeper.model import MemoryKey
from talekeeper.ports import Commit, FoldRecord, Read, Snapshot, Span, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, fold, gathered, gathered_over, text_of


class Derived(Opening):
    async def test_folds_are_found_by_key_and_the_first_of_a_key_stays(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, folds=[fold("b"), fold("a"), fold("c", "龍 “quoted” \n")]))
        await store.write(Commit(story.id, story.rev, folds=[fold("a", "Something else."), fold("d")]))
        assert (await store.read(Read(story.id, folds=["c", "no", "a"]))).folds == [fold("c", "龍 “quoted” \n"), fold("a")]
        found = await store.read(Read(story.id, all_folds=True))
        assert sorted(found.folds, key=lambda each: each.key) == [fold("a"), fold("b"), fold("c", "龍 “quoted” \n"), fold("d")]

    async def test_a_text_is_written_once_per_fold_and_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, folds=[fold("a"), fold("b")], texts=[text_of("a"), text_of("b")]))
        await store.write(Commit(story.id, rev, texts=[text_of("a", born=9, text="Later."), text_of("a", branch=2, born=4)]))
        found = await store.read(Read(story.id, folds=["a"]))
        assert sorted(found.texts, key=lambda each: each.branch) == [text_of("a"), text_of("a", branch=2, born=4)]
        found = await store.read(Read(story.id, all_folds=True))
        assert sorted(found.texts, key=lambda each: (each.key, each.branch)) == [text_of("a"), text_of("a", branch=2, born=4), text_of("b")]

    async def test_what_was_gathered_over_a_fold_is_found_with_it_and_the_first_of_a_name_stays(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, folds=[fold("a"), fold("b")], gathered=[gathered("a")]))
        await store.write(Commit(story.id, story.rev, gathered=[gathered("a", value="other"), gathered("a", "names.2"), gathered("b")]))
        assert await gathered_over(store, story, "a") == [gathered("a"), gathered("a", "names.2")]
        assert await gathered_over(store, story, "b", "a", "no") == [gathered("a"), gathered("a", "names.2"), gathered("b")]
        assert await gathered_over(store, story) == [gathered("a"), gathered("a", "names.2"), gathered("b")]
        assert (await store.read(Read(story.id, folds=["a"]))).folds == [fold("a")], "the fold itself is as it was"

    async def test_what_was_gathered_comes_back_exactly_as_it_was(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        values: list[Any] = [
            None,
            "",
            "龍 “quoted” \n",
            0,
            -1.5,
            True,
            [],
            {},
            [[1, "Mira", None], {"é": [2.5, {"b": False}]}],
            "x" * 20_000,
        ]
        records = [gathered("a", f"{number:02} 龍", value) for number, value in enumerate(values)]
        await store.write(Commit(story.id, story.rev, folds=[fold("a")], gathered=records))
        assert await gathered_over(store, story, "a") == records

    async def test_what_was_gathered_over_a_fold_that_is_not_there_is_dropped(self, store: Store) -> None:
        story, other = await store.create(KEY, CONFIG), await store.create(MemoryKey("acme", "ana", "2"), CONFIG)
        await store.write(Commit(other.id, other.rev, folds=[fold("a")]))
        assert await store.write(Commit(story.id, story.rev, gathered=[gathered("a")])) == story.rev
        await store.write(Commit(story.id, story.rev, folds=[fold("a")]))
        assert await gathered_over(store, story, "a") == await gathered_over(store, other, "a") == []

    async def test_what_is_derived_is_the_stores_own_once_it_was_written(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        of_fold, of_text, state, value = fold("a"), text_of("a"), {"seats": {"dm": [1]}}, {"Mira": [1, [2]]}
        shape: dict[str, Any] = {"gathered": {"names.1": [1]}}
        records = [of_fold, FoldRecord("b", shape, [])]
        snapshot, names = Snapshot(1, 3, state), [gathered("a", value=value)]
        await store.write(Commit(story.id, story.rev, folds=records, texts=[of_text], snapshot=snapshot, gathered=names))
        request = Read(story.id, folds=["a", "b"], snapshot_on=[Span(1, 1, 9)])
        before = await store.read(request)
        shape["gathered"]["names.1"].append(2)
        shape["gathered"]["names.2"] = []
        state["seats"]["dm"].append(2)
        value["Mira"][1] = value["Rook"] = [3]
        for sentences in (of_fold.sentences, of_text.sentences):
            sentences[0].append("more")  # type: ignore[attr-defined]
        after = await store.read(request)
        assert after == before
        assert (after.folds, after.texts) == ([fold("a"), FoldRecord("b", {"gathered": {"names.1": [1]}}, [])], [text_of("a")])
        assert after.snapshot == Snapshot(1, 3, {"seats": {"dm": [1]}})
        assert after.gathered == [gathered("a", value={"Mira": [1, [2]]})]

    async def test_the_newest_snapshot_on_the_path_is_found(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for branch, seq in ((1, 10), (1, 30), (1, 20), (2, 15), (2, 25), (3, 40)):
            await store.write(Commit(story.id, story.rev, snapshot=Snapshot(branch, seq, {"at": [branch, seq], "龍": None})))
        await store.write(Commit(story.id, story.rev, snapshot=Snapshot(1, 30, {"other": True})))

        async def newest(*path: Span) -> tuple[int, int] | None:
            snapshot = (await store.read(Read(story.id, snapshot_on=path))).snapshot
            assert snapshot is None or snapshot.state == {"at": [snapshot.branch, snapshot.seq], "龍": None}
            return None if snapshot is None else (snapshot.branch, snapshot.seq)

        assert await newest(Span(1, 1, 2**60)) == (1, 30)
        assert await newest(Span(1, 1, 29)) == (1, 20)
        assert await newest(Span(1, 1, 9)) is None
        assert await newest(Span(2, 13, 50), Span(1, 1, 12)) == (2, 25)
        assert await newest(Span(2, 13, 14), Span(1, 1, 12)) == (1, 10)
        assert await newest(Span(4, 13, 14), Span(2, 1, 12), Span(1, 1, 9)) is None
        assert await newest() is None
