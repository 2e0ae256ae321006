"""A branch goes on where it left its parent, and has a name of its own."""

from __future__ import annotations

import pytest

from talekeeper.errors import Conflict, InvalidInput, UnknownBranch, UnknownStory
from talekeeper.ports import Branch, Commit, Head, Read, Span, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, everything, fill, loaded, log, whole_commit


class Branches(Opening):
    async def test_a_branch_goes_on_where_it_left_its_parent(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(seq) for seq in (1, 2, 3)]))
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "what if", 1, 2)]))
        assert await store.head(story.id, 2) == Head(rev, 2)
        with pytest.raises(Conflict):
            await store.write(Commit(story.id, rev, entries=[entry(4, branch=2)]))
        rev = await store.write(
            Commit(story.id, rev, touch=True, branches=[Branch(3, "deeper", 2, 3)], entries=[entry(3, branch=2), entry(4, branch=3)])
        )
        assert [await store.head(story.id, branch) for branch in (1, 2, 3)] == [Head(rev, 3), Head(rev, 3), Head(rev, 4)]
        assert (await loaded(store)).branches == {1: Branch(1, "main"), 2: Branch(2, "what if", 1, 2), 3: Branch(3, "deeper", 2, 3)}
        found = await store.read(Read(story.id, spans=[Span(1, 1, 2), Span(2, 3, 3), Span(3, 4, 9)]))
        assert found.entries == [entry(1), entry(2), entry(3, branch=2), entry(4, branch=3)]

    async def test_a_branch_may_be_renamed_and_keeps_its_entries(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2)]))
        renamed = [Branch(1, "main~1"), Branch(2, "main", 1, 1)]
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=renamed))
        assert list((await loaded(store)).branches.values()) == renamed
        assert [await store.head(story.id, branch) for branch in (1, 2)] == [Head(rev, 2), Head(rev, 1)]
        await store.write(Commit(story.id, rev, entries=[entry(3), entry(2, branch=2)]))
        assert await log(store, story) == [entry(1), entry(2), entry(3)]

    async def test_nothing_but_the_name_of_a_branch_ever_changes(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        await store.write(Commit(story.id, rev, branches=[Branch(2, "what else", 1, 1)]))
        assert (await loaded(store)).branches[2] == Branch(2, "what else", 1, 2)
        assert await log(store, story, branch=2) == [entry(3, branch=2, extra={"target": "t-2", "mentions": ["Elena"]})]

    @pytest.mark.parametrize(
        ("branches", "error"),
        [
            ([Branch(9, "new", None, 2)], InvalidInput),
            ([Branch(9, "new", 77, 2)], UnknownBranch),
            ([Branch(9, "new", 9, 2)], UnknownBranch),
            ([Branch(9, "new", 10, 1), Branch(10, "newer", 1, 1)], UnknownBranch),
            ([Branch(9, "main", 1, 2)], InvalidInput),
            ([Branch(9, "new", 1, 2), Branch(10, "new", 1, 2)], InvalidInput),
            ([Branch(2, "main", 1, 2)], InvalidInput),
            ([Branch(1, "what if")], InvalidInput),
        ],
    )
    async def test_a_branch_that_could_not_be_read_or_found_is_refused_and_leaves_nothing(
        self, store: Store, branches: list[Branch], error: type[Exception]
    ) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        before = await everything(store, story)
        for commit in (Commit(story.id, rev, branches=branches), whole_commit(story.id, rev, [entry(4)])._replace(branches=branches)):
            with pytest.raises(error):
                await store.write(commit)
        assert await everything(store, story) == before
        assert await store.write(Commit(story.id, rev, entries=[entry(4)])) == rev

    async def test_branches_may_swap_their_names_and_begin_at_the_beginning(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await fill(store, story)
        lines = [Branch(1, "what if"), Branch(2, "main", 1, 2), Branch(3, "anew", None, 0), Branch(4, "further", 3, 0)]
        await store.write(Commit(story.id, rev, branches=lines))
        assert list((await loaded(store)).branches.values()) == lines

    async def test_what_there_is_not_has_no_head(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        for branch in (0, 2, 99, -1, 2**40):
            with pytest.raises(UnknownBranch):
                await store.head(story.id, branch)
        for number in (0, story.id + 1, -1, 2**40):
            with pytest.raises(UnknownStory):
                await store.head(number, 1)
            with pytest.raises(UnknownStory):
                await store.write(Commit(number, story.rev, entries=[entry(1)]))
