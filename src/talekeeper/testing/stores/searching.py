"""The index: an entry is found by each of its terms, and by nothing else."""

from __future__ import annotations

import unicodedata

from talekeeper.ports import Branch, Commit, Position, Postings, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, hits

ODD_TERMS = [
    "dragon", "Dragon", "DRAGON", "7", "007", "1e5", "_", "__init__", "snake_case", "ドラゴン", "龍", "ド", "дракон", "ДРАКОН", "ñandú",
    unicodedata.normalize("NFD", "ñandú"), "क्षत्रिय", "التنين", "ไทย", "ﬁ", "fi", "ß", "ss", "İ", "i̇", "𝔡𝔯𝔞𝔤𝔬𝔫", "🐉", "a" * 64, "a" * 65,
    "a" * 5000, "龍" * 70, "it's", "co-op", "3.14", "two words", "two", "words", "AND", "NOT", "near", '"', "*", "a*", "^a", "-", ".",
    "a.b", "-aa", "", " ", "%", "null", "0x1f", "x.1", "1.dragon", "dragon.1", "dragon_1",
]  # fmt: skip


class Searching(Opening):
    async def test_a_search_answers_each_term_with_its_entries(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 1)]))
        await store.write(Commit(story.id, rev, entries=[entry(1), entry(2, channel=5), entry(3)]))
        index = {Position(1, 1): ["dragon", "gate", "dragon"], Position(1, 2): ["dragon"], Position(2, 2): ["dragon", "龍"]}
        await store.write(Commit(story.id, rev, entries=[entry(2, branch=2, channel=7)], index=index))
        assert await hits(store, story, "dragon", "nothing", "龍", "gate") == [
            [(1, 1, 1), (1, 2, 5), (2, 2, 7)], [], [(2, 2, 7)], [(1, 1, 1)],
        ]  # fmt: skip
        assert await store.search(story.id, []) == []

    async def test_what_a_search_finds_comes_in_columns(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 3), Branch(5, "third", 2, 4)]))
        entries = [entry(seq, channel=channel) for seq, channel in enumerate((1, 7, 1, 7, 1, 1), 1)]
        entries += [entry(seq, branch=2, channel=1) for seq in range(4, 8)] + [entry(5, branch=5, channel=7)]
        await store.write(Commit(story.id, rev, entries=entries))
        for order in (entries[::-2], entries):  # indexed in any order, in several commits
            await store.write(Commit(story.id, rev, index={each.position: ["dragon"] for each in order}))
        (found,) = await store.search(story.id, ["dragon"])
        assert all(isinstance(each, Postings) for each in found)
        columns = {(branch, channel): list(seqs) for branch, channel, seqs in found}
        assert columns == {(1, 1): [1, 3, 5, 6], (1, 7): [2, 4], (2, 1): [4, 5, 6, 7], (5, 7): [5]}
        assert len(found) == len(columns)

    async def test_every_term_is_found_by_itself_and_by_nothing_else(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        terms = list(dict.fromkeys(ODD_TERMS))
        entries = [entry(seq) for seq in range(1, len(terms) + 1)]
        await store.write(
            Commit(story.id, story.rev, entries=entries, index={Position(1, seq): [term] for seq, term in enumerate(terms, 1)})
        )
        found = await hits(store, story, *terms)
        assert dict(zip(terms, found, strict=True)) == {term: [(1, seq, 1)] for seq, term in enumerate(terms, 1)}

    async def test_an_entry_with_odd_terms_is_found_by_each(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1)], index={Position(1, 1): ODD_TERMS}))
        assert await hits(store, story, *ODD_TERMS) == [[(1, 1, 1)]] * len(ODD_TERMS)

    async def test_indexing_again_changes_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1), entry(2)], index={Position(1, 1): ["dragon"]}))
        again = {Position(1, 1): ["dragon", "gate"], Position(1, 2): ["gate"]}
        await store.write(Commit(story.id, story.rev, index=again))
        await store.write(Commit(story.id, story.rev, index=again))
        assert await hits(store, story, "dragon", "gate") == [[(1, 1, 1)], [(1, 2, 1)]]

    async def test_an_entry_that_is_not_there_is_not_indexed(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await store.write(Commit(story.id, story.rev, entries=[entry(1)], index={Position(1, 1): ["dragon"], Position(1, 2): ["dragon"]}))
        await store.write(Commit(story.id, story.rev, entries=[entry(2)]))
        assert await hits(store, story, "dragon") == [[(1, 1, 1)]]

    async def test_a_story_with_many_channels_is_searched_all_the_same(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        entries = [entry(seq, channel=seq % 100) for seq in range(1, 301)]
        index = {each.position: ["every", f"at{each.seq}", f"in{each.channel}"] for each in entries}
        await store.write(Commit(story.id, story.rev, entries=entries, index=index))
        every, one, some = await hits(store, story, "every", "at123", "in42")
        assert every == [(1, each.seq, each.channel) for each in entries]
        assert (one, some) == ([(1, 123, 23)], [(1, seq, 42) for seq in (42, 142, 242)])
