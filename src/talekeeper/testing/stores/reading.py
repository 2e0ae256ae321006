"""A read brings what it names: entries, and outlines of them."""

from __future__ import annotations

from talekeeper.ports import Branch, Commit, Erase, Outline, Position, Read, Span, Store
from talekeeper.testing.stores.opening import Opening
from talekeeper.testing.stores.samples import CONFIG, KEY, entry, fill

NOWHERE = [Position(1, 4), Position(9, 1), Position(2, 1), Position(1, 2**33), Position(2**33, 1), Position(1, -1)]


class Reading(Opening):
    async def test_a_read_brings_what_it_names_in_that_order(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await fill(store, story)
        found = await store.read(
            Read(
                story.id,
                spans=[Span(2, 3, 3), Span(1, 2, 3), Span(1, 1, 1)],
                positions=[Position(1, 3), Position(1, 1), Position(2, 3)],
                ids=["own"],
                targeting=["t-2"],
            )
        )
        places = [(each.branch, each.seq) for each in found.entries]
        assert places == [(2, 3), (1, 2), (1, 3), (1, 1), (1, 3), (1, 1), (2, 3), (1, 2), (1, 3), (2, 3)]
        assert (found.folds, found.texts, found.snapshot) == ([], [], None)

    async def test_a_read_that_names_nothing_brings_nothing(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await fill(store, story)
        found = await store.read(Read(story.id))
        assert (list(found.entries), list(found.folds), list(found.texts), found.snapshot) == ([], [], [], None)

    async def test_what_is_not_there_is_left_out(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await fill(store, story)
        for number in (story.id, story.id + 1, 2**40):
            found = await store.read(
                Read(
                    number,
                    spans=[Span(1, 4, 9), Span(1, 3, 2), Span(9, 1, 9), Span(1, -5, 0), Span(2, 1, 2), Span(2**40, 1, 2), Span(-1, 1, 9)],
                    positions=NOWHERE,
                    outlines=NOWHERE,
                    ids=["nobody's", ""],
                    folds=["no such", ""],
                    targeting=["no such", ""],
                    snapshot_on=[Span(1, 4, 9), Span(9, 1, 9)],
                )
            )
            assert (list(found.entries), list(found.folds), list(found.texts), found.snapshot) == ([], [], [], None)
            assert list(found.outlines) == []

    async def test_an_outline_is_an_entry_without_its_words(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 1)]))
        extra = {"when": "Day 3", "at": [1, 1], "mentions": ["mira"]}
        entries = [entry(1, voice="Mira", tokens=7), entry(2, channel=5, id="own", extra=extra), entry(3), entry(2, branch=2, kind="event")]
        await store.write(Commit(story.id, rev, entries=entries))
        await store.write(Commit(story.id, rev, erase=Erase(entries=[entries[2]._replace(text="")])))
        wanted = [Position(2, 2), Position(1, 3), Position(1, 1), Position(1, 2), Position(1, 9)]
        found = await store.read(Read(story.id, outlines=wanted))
        assert sorted(found.outlines, key=lambda each: each[:2]) == [
            Outline(1, 1, "said", "Mira", 1, 7, blank=False),
            Outline(1, 2, "said", entries[1].voice, 5, entries[1].tokens, blank=False, id="own", extra=extra),
            Outline(1, 3, "said", entries[2].voice, 1, entries[2].tokens, blank=True),
            Outline(2, 2, "event", entries[3].voice, 1, entries[3].tokens, blank=False),
        ]
        assert list(found.entries) == []

    async def test_a_span_may_be_open_ended_and_is_clipped_to_its_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        await fill(store, story)
        assert [each.seq for each in (await store.read(Read(story.id, spans=[Span(1, 0, 2**60)]))).entries] == [1, 2, 3]
        assert [each.seq for each in (await store.read(Read(story.id, spans=[Span(2, 0, 2**60)]))).entries] == [3]

    async def test_many_rows_by_span_and_by_position(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        entries = [entry(seq) for seq in range(1, 1501)]
        await store.write(Commit(story.id, story.rev, entries=entries))
        assert list((await store.read(Read(story.id, spans=[Span(1, 101, 1400)]))).entries) == entries[100:1400]
        places = [Position(1, seq) for seq in range(1499, 0, -2)]
        assert [each.position for each in (await store.read(Read(story.id, positions=places))).entries] == places

    async def test_targets_are_found_on_every_branch(self, store: Store) -> None:
        story = await store.create(KEY, CONFIG)
        rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2, "other", 1, 0)]))
        edits = [entry(1, extra={"target": "t-1"}), entry(1, branch=2, extra={"target": "t-1"}), entry(2, extra={"target": "t-2", "x": 1})]
        await store.write(Commit(story.id, rev, entries=edits))
        assert (await store.read(Read(story.id, targeting=["t-1"]))).entries == edits[:2]
        assert (await store.read(Read(story.id, targeting=["t-2", "t-1"]))).entries == [edits[2], *edits[:2]]
