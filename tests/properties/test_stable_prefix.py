"""I8: the next stable part extends the last, except for a few moves of the cut. I4: a context has no memory of earlier contexts, and a
story in memory says what the same story says when it is opened again. I9: what a context costs does not follow the story."""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import talekeeper as tk
from talekeeper.context.recipe import DEFAULT_RECIPE
from talekeeper.ports import Commit, Found, Head, Postings, Read, StoryRecord
from talekeeper.stores import InMemoryStore, open_store
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SENTENCES = (
    "Captain Voss counts the silver coins on the table twice and says that nobody leaves before the third bell.",
    "The old ferryman swears that the bridge will not hold another winter, whatever the duke has promised.",
    "Okay.",
    "Mira hides the brass key under the loose stone behind the altar and tells nobody about the second door.",
    "I roll a 14 and open the door.",
)


def words(number: int) -> str:
    return f"m{number}m {SENTENCES[number % len(SENTENCES)]}"


def stable_text(context: tk.Context) -> str:
    return "".join(block.text for block in context.blocks if block.stable)


def stride(seat: tk.Seat, budget: int, *, canon: bool = False) -> float:
    """How many tokens a seat must hear, at the least, before its cut moves again: a third of what recent may hold."""
    shares = DEFAULT_RECIPE.story + (DEFAULT_RECIPE.canon if canon else 0)
    return budget * (seat.fold_at - shares) / 3


# -- I8 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [300, 700, 2000, 5000])
@pytest.mark.parametrize("circles", [False, True], ids=["everyone hears all", "several circles"])
async def test_the_next_stable_part_extends_the_last_but_for_rare_moves(budget: int, circles: bool) -> None:
    seat = tk.Seat("rogue")
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm"), seat, tk.Seat("bard"), tk.Seat("cat")])
        audiences: Sequence[list[str] | None] = [None, None, ["rogue"], ["bard"], ["rogue", "cat"]] if circles else [None]
        last, moves, heard = "", 0, 0
        for number in range(600):
            turn = await story.append("dm", words(number), heard_by=audiences[number % 7 % len(audiences)])
            context = await story.context("rogue", budget=budget, query="silver" if number % 5 == 0 else None)
            now = stable_text(context)
            assert context.text.startswith(now)
            assert context.stable_tokens == keeper.counter.count(now)
            if "rogue" not in turn.audience:
                assert now == last, "what a seat did not hear moves nothing"
            elif not now.startswith(last):
                moves += 1
            heard += turn.tokens if "rogue" in turn.audience else 0
            last = now
        assert moves <= heard / stride(seat, budget) + 2, f"{moves} moves in {heard} tokens"
        assert moves >= 1 or heard < budget


@pytest.mark.parametrize("budget", [2000, 5000])
async def test_recent_shrinks_by_whole_chunks_where_chunks_are_small(budget: int) -> None:
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        firsts: list[int] = []
        for number in range(600):
            await story.append("dm", words(number))
            context = await story.context("rogue", budget=budget)
            recent = context.block("recent")
            assert recent is not None
            first = (await story.turn(recent.items[0].sources[0])).seq
            if not firsts or first != firsts[-1]:
                firsts.append(first)
        leaves: set[int] = set()
        todo = await story.folds("rogue", budget=budget)
        while todo:
            fold = todo.pop()
            if fold.level:
                todo += [await story.fold(child) for child in fold.children]
            else:
                leaves.add((await story.turn(fold.children[-1])).seq)
        assert len(firsts) > 2
        assert firsts == sorted(firsts)
        for first in firsts[1:]:
            assert first - 1 in leaves, f"recent began in the middle of a chunk, at turn {first}"


async def test_pins_facts_and_queries_stay_out_of_the_stable_part() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        await story.append_many([tk.Draft("dm", words(number)) for number in range(300)])
        plain = await story.context("rogue", budget=1500)
        extras = {"facts": [tk.Note("Voss is rich.")], "moments": [tk.Note("The bridge fell.")]}
        full = await story.context("rogue", budget=1500, query="silver", extras=extras)
        assert stable_text(full) == stable_text(plain) == plain.text
        assert full.stable_tokens == plain.tokens


# -- no memory of earlier contexts ---------------------------------------------------------------------------------------


class TenALine:
    """A counter by which every line has ten tokens, so that all limits are met exactly now and then."""

    id = "ten a line"
    additive = True

    def count(self, text: str) -> int:
        return 10 * text.count("\n")


class LastingStore(InMemoryStore):
    """Outlives the keepers that use it."""

    async def close(self) -> None:
        pass


TRIO = (tk.Seat("dm", role="dm", token_limit=500), tk.Seat("rogue", token_limit=300), tk.Seat("bard", token_limit=400, keep=1))
SIZES = (60, 150, 300, 800, 3000)


async def everything(story: tk.Story, sizes: Sequence[int] = SIZES) -> dict[str, str]:
    """All contexts and briefs of all seats."""
    texts: dict[str, str] = {}
    for seat in TRIO:
        for budget in sizes:
            try:
                texts[f"context of {seat.id} in {budget}"] = (await story.context(seat.id, budget=budget)).text
            except tk.BudgetTooSmall as small:
                texts[f"context of {seat.id} in {budget}"] = str(small)
            texts[f"brief of {seat.id} in {budget}"] = (await story.brief(seat.id, budget=budget)).text
    return texts


async def check_against(store: tk.Store, story: tk.Story, counter: tk.TokenCounter, sizes: Sequence[int] = SIZES) -> None:
    """What a story says that has been in memory all along is what one says that was opened just now."""
    async with tk.open(store, counter=counter) as fresh:
        again = await everything(await fresh.story(KEY, branch=story.branch), sizes)
    for name, text in (await everything(story, sizes)).items():
        assert text == again[name], f"the {name} depends on what was asked before"


@pytest.mark.parametrize("counter", [TenALine(), tk.Heuristic()], ids=["ten a line", "heuristic"])
async def test_a_context_asked_for_at_every_turn_is_the_one_asked_for_once(counter: tk.TokenCounter) -> None:
    store = LastingStore()
    async with tk.open(store, counter=counter) as keeper:
        story = await keeper.story(KEY, seats=TRIO)
        for number in range(90):
            await story.append("dm", words(number), heard_by=["rogue"] if number % 5 == 0 else None)
            await check_against(store, story, counter)


async def test_where_a_later_turn_happens_does_not_change_what_stands_before_the_cut() -> None:
    store, counter = LastingStore(), tk.Heuristic()
    async with tk.open(store, counter=counter) as keeper:
        story = await keeper.story(KEY, seats=TRIO)
        for number in range(40):
            await story.append("dm", words(number), location="mill" if number % 9 == 8 else None)
            await check_against(store, story, counter)


Told = tuple[str, int]
told = st.tuples(
    st.sampled_from(["talk"] * 5 + ["one"] * 4 + ["note", "enter", "leave", "session", "edit", "pin", "override", "rewind", "regenerate", "fork"]),
    st.integers(0, 19),
)  # fmt: skip


async def tell_one(story: tk.Story, what: str, number: int, serial: int) -> tk.Story:
    """Does one thing to a story, decided by two numbers."""
    text, seat, turns = words(serial * 20 + number), ("rogue", "bard")[number % 2], await story.turns()
    if what == "talk":
        audiences: Sequence[list[str] | None] = (None, None, ["rogue"], ["bard"])
        await story.append_many([tk.Draft("dm", words(serial * 20 + n), heard_by=audiences[(n + number) % 4]) for n in range(number)])
    elif what == "one":
        await story.append("dm", text, location=(None, "mill", "moor")[number % 3])
    elif what == "note":
        await story.note(text)
    elif what == "enter":
        await story.enter(seat, ("mill", "moor")[number % 2])
    elif what == "leave":
        await story.leave(seat)
    elif what == "session":
        await story.begin_session()
    elif what == "override":
        for fold in (await story.folds(seat))[:1]:
            await story.override(fold.id, text)
    elif what == "rewind":
        await story.rewind(max(0, story.head - number))
    elif what == "fork":
        return await story.fork(at=max(0, story.head - number))
    elif what == "edit" and turns:
        await story.edit(turns[number % len(turns)], text)
    elif what == "pin" and turns:
        await (story.pin if number % 3 else story.unpin)(turns[number % len(turns)])
    elif what == "regenerate" and turns and turns[-1].kind in ("said", "note"):
        await story.regenerate(text)
    return story


usual = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(usual, max_examples=20)
@given(script=st.lists(told, min_size=3, max_size=18))
async def test_a_story_in_memory_says_what_the_same_story_says_when_it_is_opened_again(script: list[Told]) -> None:
    store, counter = LastingStore(), tk.Heuristic()
    async with tk.open(store, counter=counter) as keeper:
        story = await keeper.story(KEY, seats=TRIO)
        for serial, (what, number) in enumerate(script):
            story = await tell_one(story, what, number, serial)
            await check_against(store, story, counter)


@settings(usual, max_examples=10)
@given(script=st.lists(told, min_size=3, max_size=15))
async def test_so_it_does_where_a_model_makes_the_folds(script: list[Told]) -> None:
    store, counter = LastingStore(), tk.Heuristic()
    async with tk.open(store, counter=counter, summarizer=MoodyModel()) as keeper:
        story = await keeper.story(KEY, seats=TRIO)
        for serial, (what, number) in enumerate(script):
            await everything(story)
            story = await tell_one(story, what, number, serial)
            if serial % 3 == 2:
                await story.settle()
                await check_against(store, story, counter)


async def test_a_models_text_is_shown_from_the_same_turn_on_whoever_asked_before() -> None:
    """The dungeon master's small limit has folds made before the rogue needs them; at which turn the rogue sees them must not depend on
    whether it asked in between."""
    store, counter = LastingStore(), tk.Heuristic()
    async with tk.open(store, counter=counter, summarizer=MoodyModel()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=300), tk.Seat("rogue", token_limit=700), TRIO[2]])
        for number in range(100):
            await story.append("dm", f"m{number}m {SENTENCES[number % 5].split(' and ')[0]}")
            await story.settle()
            await check_against(store, story, counter, sizes=(450, 600))


@settings(usual, max_examples=8)
@given(script=st.lists(st.tuples(told, st.booleans()), min_size=3, max_size=15))
async def test_two_processes_on_one_file_always_say_the_same(script: list[tuple[Told, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        async with tk.open(path, counter=tk.Heuristic(), durable=False) as one, tk.open(path, counter=tk.Heuristic(), durable=False) as two:
            stories = [await one.story(KEY, seats=TRIO), await two.story(KEY, seats=TRIO)]
            for serial, ((what, number), second) in enumerate(script):
                if what != "fork":
                    await tell_one(stories[second], what, number, serial)
                texts = [await everything(story) for story in stories]
                assert texts[0] == texts[1]


# -- I9 ----------------------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """What a store was asked for."""

    calls: int = 0
    entries: int = 0
    folds: int = 0


class CountingStore:
    """A store that counts what is read from it."""

    def __init__(self, inner: tk.Store) -> None:
        self.inner = inner
        self.counts = Counts()

    async def create(self, key: tk.MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        return await self.inner.create(key, config)

    async def load(self, key: tk.MemoryKey) -> StoryRecord | None:
        self.counts.calls += 1
        return await self.inner.load(key)

    async def keys(self, tenant_id: str | None = None) -> list[tk.MemoryKey]:
        return await self.inner.keys(tenant_id)

    async def head(self, story: int, branch: int) -> Head:
        self.counts.calls += 1
        return await self.inner.head(story, branch)

    async def read(self, request: Read) -> Found:
        found = await self.inner.read(request)
        self.counts.calls += 1
        self.counts.entries += len(found.entries) + len(found.outlines)
        self.counts.folds += len(found.folds)
        return found

    async def write(self, commit: Commit) -> int:
        return await self.inner.write(commit)

    async def search(self, story: int, terms: Sequence[str]) -> list[list[Postings]]:
        self.counts.calls += 1
        return await self.inner.search(story, terms)

    async def delete(self, key: tk.MemoryKey) -> bool:
        return await self.inner.delete(key)

    async def close(self) -> None:
        """The store under it lives on, for the next keeper."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


SIX = [tk.Seat("dm", role="dm"), *(tk.Seat(f"pc{n}", token_limit=2000) for n in range(5))]
PLACES = ("tavern", "crypt", "moor", "mill")


async def tell_scenes(story: tk.Story, scenes: range, turns: int) -> None:
    """Scenes of that many turns each; before each some come and some go."""
    for scene in scenes:
        luck = random.Random(scene)
        for seat in luck.sample([seat.id for seat in SIX[1:]], 2):
            await story.enter(seat, luck.choice(PLACES))
        if scene % 5 == 4:
            await story.leave(luck.choice([seat.id for seat in SIX[1:]]))
        here = story.presence()
        speakers = [seat for seat, place in here.items() if place is not None]
        drafts = [tk.Draft(luck.choice(speakers), words(scene * turns + n)) for n in range(turns)]
        drafts[::3] = [tk.Draft("dm", draft.text, location=luck.choice(PLACES)) for draft in drafts[::3]]
        await story.append_many(drafts)


@asynccontextmanager
async def keeper_on(store: CountingStore) -> AsyncIterator[tk.Keeper]:
    async with tk.open(store, counter=tk.Heuristic()) as keeper:
        yield keeper


class Cost(NamedTuple):
    """What a context was made of: items shown, calls to the store, entries and folds that it gave."""

    items: int
    calls: int
    entries: int
    folds: int


def most(costs: Sequence[Cost]) -> Cost:
    return Cost(*(max(column) for column in zip(*costs, strict=True)))


async def cost(store: CountingStore, story: tk.Story, budget: int) -> list[Cost]:
    """What a context costs, for each seat."""
    rows = []
    for seat in SIX:
        store.counts = Counts()
        context = await story.context(seat.id, budget=budget)
        assert context.tokens <= budget
        items = sum(len(block.items) for block in context.blocks)
        rows.append(Cost(items, store.counts.calls, store.counts.entries, store.counts.folds))
    return rows


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_a_context_touches_no_more_after_5000_turns_than_after_500(where: str, tmp_path: Path) -> None:
    inner = InMemoryStore() if where == "memory" else await open_store(tmp_path / "s.db", durable=False)
    store = CountingStore(inner)
    hot: dict[int, list[Cost]] = {}
    cold: dict[int, list[Cost]] = {}
    per_turn: dict[int, float] = {}
    for told, scenes in ((500, range(4)), (5000, range(4, 40))):
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY, seats=SIX)
            await tell_scenes(story, scenes, 125)
            await story.settle()
            await cost(store, story, 2000)
            await story.append("dm", "And on.")
            hot[told] = await cost(store, story, 2000)
            stats = await story.stats()
            per_turn[told] = stats.folds / stats.turns
            assert stats.turns >= told
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY)
            cold[told] = await cost(store, story, 2000)
            assert [row.items for row in cold[told]] == [row.items for row in hot[told]]
            log = await story.turns(seat="pc1")
            covered = await story.sources(await story.context("pc1", budget=2000))
            assert len(covered) == len(set(covered)) == len(log)
    await inner.close()
    assert per_turn[5000] <= max(1.0, 1.25 * per_turn[500]), f"folds per turn: {per_turn}"
    early, late = most(hot[500]), most(hot[5000])
    assert late.items <= 2 * early.items + 20, f"items of a context: {early.items}, then {late.items}"
    assert late.calls <= 4, f"a hot context called the store {late.calls} times"
    assert late.entries + late.folds <= 64, f"a hot context read {late.entries} entries and {late.folds} folds"
    early, late = most(cold[500]), most(cold[5000])
    assert late.calls <= 2 * early.calls + 12, f"a cold context called the store {early.calls} times, then {late.calls}"
    assert late.entries <= 2 * early.entries + 200, f"a cold context read {early.entries} entries, then {late.entries}"
    assert late.folds <= 3 * early.folds + 100, f"a cold context read {early.folds} folds, then {late.folds}"


def written() -> int:
    """How many bytes this process has had written."""
    return int(next(line.split()[1] for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar")))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="bytes are counted on Linux only")
async def test_what_is_written_for_a_turn_does_not_grow_with_the_story(tmp_path: Path) -> None:
    per_turn: list[float] = []
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic(), durable=False) as keeper:
        story = await keeper.story(KEY, seats=SIX)
        for first in range(0, 4000, 1000):
            before = written()
            for number in range(first, first + 1000):
                await story.append("dm", words(number), heard_by=["pc1"] if number % 7 == 0 else None)
            await story.settle()
            per_turn.append((written() - before) / 1000)
    assert max(per_turn) < 16_000, f"bytes per turn: {per_turn}"
    assert sum(per_turn[2:]) < 1.25 * sum(per_turn[:2]), f"bytes per turn: {per_turn}"


async def test_opening_a_long_story_reads_a_bounded_part_of_it(tmp_path: Path) -> None:
    store = CountingStore(await open_store(tmp_path / "s.db", durable=False))
    reads: list[int] = []
    for _ in range(2):
        async with keeper_on(store) as keeper:
            await tell_scenes(await keeper.story(KEY, seats=SIX), range(10), 200)
        store.counts = Counts()
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY)
            await story.append("dm", "And on.")
            reads.append(store.counts.entries)
    await store.inner.close()
    assert reads[1] <= reads[0] + 100
    assert reads[1] < 600, f"{reads[1]} of 4,000 entries were read to go on"


async def test_a_cold_context_asks_no_more_often_where_very_many_circles_have_talked(tmp_path: Path) -> None:
    store = CountingStore(await open_store(tmp_path / "s.db", durable=False))
    crowd = [f"npc{number}" for number in range(10)]
    circles = [[seat for place, seat in enumerate(crowd) if number >> place & 1] for number in range(1, 1024)]
    calls: list[tuple[int, int]] = []
    for few in (circles[:16], circles[16:]):
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY, seats=[*SIX, *map(tk.Seat, crowd)])
            await story.append_many([tk.Draft("pc1", words(number), heard_by=circle) for number, circle in enumerate(few)])
            await story.append_many([tk.Draft("pc1", words(number), heard_by=["pc2"]) for number in range(700)])
            await story.settle()
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY)
            store.counts = Counts()
            await story.context("pc1", budget=600)
            context = store.counts.calls
            store.counts = Counts()
            await story.stretch("pc1", after=2, before=story.head - 2)
            calls.append((context, store.counts.calls))
    await store.inner.close()
    (context, stretch), (contexts, stretches) = calls
    assert contexts <= context + 6, f"{contexts} calls for a context among 1,023 circles, {context} among 16"
    assert stretches <= stretch + 6, f"{stretches} calls for a stretch among 1,023 circles, {stretch} among 16"


async def test_a_cold_context_asks_no_more_often_after_very_many_scenes_with_nothing_to_tell(tmp_path: Path) -> None:
    store = CountingStore(await open_store(tmp_path / "s.db", durable=False))
    calls: list[int] = []
    for scenes in (range(300), range(300, 3000)):
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY, seats=SIX)
            await story.append_many([tk.Draft("pc1", "Hello there.", location=f"road {number}") for number in scenes])
            await story.settle()
        async with keeper_on(store) as keeper:
            story = await keeper.story(KEY)
            store.counts = Counts()
            context = await story.context("pc1", budget=500)
            calls.append(store.counts.calls)
            assert len(await story.sources(context)) == story.head
    await store.inner.close()
    assert calls[1] <= calls[0] + 20, f"{calls[0]} calls for a context after 300 scenes, {calls[1]} after 3,000"
