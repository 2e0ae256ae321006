"""I3, by difference: two stories that agree in everything a seat heard, and in nothing else, give that seat the same memory to the byte.

A script has what x and y hear (the same in both stories) and, in between, what only others hear or do (drawn for each story by itself):
whispers, thoughts, notes, moves elsewhere, mentions, edits, pins, overrides, forgetting, rewinds, seats that come late. x and y are then
asked for everything they can know.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import talekeeper as tk
from talekeeper.memory import AgentMemory, MemoryManager, character_facts, find_callbacks, list_sessions, recap, remember
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (
    tk.Seat("dm", role="dm", token_limit=700),
    tk.Seat("x", token_limit=420),
    tk.Seat("p", role="npc", token_limit=300),
    tk.Seat("y", role="npc", token_limit=300, keep=2, fold_at=0.6),
    tk.Seat("q", role="npc", token_limit=500),
    tk.Seat("r", role="npc"),
    tk.Seat("s", role="npc"),
)
SPIES = (tk.Seat("spy", role="npc"), tk.Seat("agent", role="npc", token_limit=200))
LABELS = ("silver key", "Captain Voss", "the mill", "Elena Swift", "third bell", "Zalgath")
TEXTS = (
    "Captain Voss gives the silver key to Elena Swift and asks her to be back before the third bell.",
    "I promise to bring 40 crowns to the mill, whatever Zalgath may say about it.",
    "The rain has not stopped since the bridge, and nobody speaks of what was left there.",
    "Okay.",
    "Elena Swift is dead, says the ferryman, and the silver key lies at the bottom of the lake.",
    "Nobody knows who lit the fire at the mill, but Captain Voss paid 12 silver for the oil.",
    "老人把银钥匙交给了米拉，说三天后在桥边等她。",
    "Zalgath swears that the third bell will never ring again while he lives in the tower.",
)
QUERIES = ("silver key", "Captain Voss paid silver for the oil", "who lit the fire at the mill?", "银钥匙", "bell", "zebra")
BUDGETS = (0, 70, tk.FLOOR, 260, 420, 1100, 6000)


@dataclass(frozen=True)
class Heard:
    """Something that x or y hears: the same in both stories."""

    what: Literal["talk", "note", "move", "session", "edit", "pin"]
    who: tuple[str, ...] = ("x", "y")
    texts: tuple[int, ...] = (0,)
    mentions: tuple[int, ...] = ()
    place: str | None = None
    number: int = 0


@dataclass(frozen=True)
class Unheard:
    """Something that neither x nor y hears of."""

    what: Literal[
        "talk", "think", "note", "move", "edit", "pin", "unpin", "override", "forget", "undone", "flood", "echo", "join", "regenerate"
    ]
    who: tuple[str, ...] = ("p",)
    texts: tuple[int, ...] = (0,)
    mentions: tuple[int, ...] = ()
    place: str | None = None
    number: int = 0


@dataclass(frozen=True)
class Act:
    """What is heard, and what comes before it in the one story and in the other."""

    heard: Heard
    one: tuple[Unheard, ...] = ()
    other: tuple[Unheard, ...] = ()


texts = st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=14).map(tuple)
mentions = st.lists(st.integers(0, len(LABELS) - 1), max_size=3, unique=True).map(tuple)
heard = st.builds(
    Heard,
    what=st.sampled_from(["talk", "talk", "talk", "talk", "note", "move", "session", "edit", "pin"]),
    who=st.sampled_from([("x", "y"), ("x",), ("x", "y", "p"), ("x", "p", "q"), ("y",), ("x", "y", "p", "q")]),
    texts=texts,
    mentions=mentions,
    place=st.sampled_from(["tavern", "mill", None]),
    number=st.integers(0, 99),
)
unheard = st.builds(
    Unheard,
    what=st.sampled_from([
        "talk", "talk", "talk", "think", "note", "move", "move", "edit", "pin", "unpin", "override", "forget", "undone", "flood", "echo",
        "join", "regenerate",
    ]),
    who=st.sampled_from([("p",), ("q",), ("p", "q"), ()]),
    texts=texts,
    mentions=mentions,
    place=st.sampled_from(["crypt", "moor", None]),
    number=st.integers(0, 99),
)  # fmt: skip
acts = st.builds(Act, heard, st.lists(unheard, max_size=4).map(tuple), st.lists(unheard, max_size=4).map(tuple))


@dataclass
class Teller:
    """Tells one of the two stories."""

    keeper: tk.Keeper
    story: tk.Story
    ours: list[str] = field(default_factory=list)
    theirs: list[str] = field(default_factory=list)
    ids: int = 0
    seen: list[dict[str, Any]] | None = None
    """What x and y saw after each turn, where the story is told turn by turn and the model is waited for."""

    def labels(self, act: Heard | Unheard) -> list[str]:
        return [LABELS[number] for number in act.mentions]

    # -- what x and y hear ---------------------------------------------------------------------------------------------

    async def hear(self, act: Heard, *, crowd: bool) -> None:
        story = self.story
        if act.what == "talk":
            drafts = [
                tk.Draft("dm", TEXTS[number], heard_by=act.who, location=act.place, mentions=self.labels(act), id=self.name())
                for number in act.texts
            ]  # fmt: skip
            for part in [drafts] if self.seen is None else [[draft] for draft in drafts]:
                self.ours += [turn.id for turn in await story.append_many(part)]
                await self.look()
        elif act.what == "note":
            self.ours.append((await story.note(TEXTS[act.texts[0]], heard_by=act.who, mentions=self.labels(act), id=self.name())).id)
        elif act.what == "move":
            for seat in ("x", "y"):
                self.ours += await self.move(seat, act.place)
        elif act.what == "session" and not crowd:
            self.ours.append((await story.begin_session(TEXTS[act.texts[0]])).id)
        elif act.what == "edit" and self.ours:
            await story.edit(self.ours[act.number % len(self.ours)], TEXTS[act.texts[0]])
        elif act.what == "pin" and self.ours:
            await story.pin(self.ours[act.number % len(self.ours)])

    async def look(self) -> None:
        """Looks at once, and again when the model has had its time."""
        if self.seen is not None:
            for _ in range(2):
                for seat in ("x", "y"):
                    number = {turn.id: index for index, turn in enumerate(await self.story.turns(seat=seat))}
                    contexts = {f"context {budget}": await asked(self.story, seat, number, budget, None) for budget in BUDGETS}
                    made_by = [(fold.level, fold.made_by) for fold in await self.story.folds(seat)]
                    self.seen.append({"ids": self.ids, **contexts, "folds": made_by})
                await self.story.settle()

    async def move(self, seat: str, place: str | None) -> list[str]:
        """Comes, or goes from where one is; who goes from nowhere would be heard by all."""
        if place is not None:
            moved = await self.story.enter(seat, place)
        else:
            moved = await self.story.leave(seat) if self.story.presence().get(seat) else None
        return [moved.id] if moved is not None else []

    def name(self) -> str:
        self.ids += 1
        return f"heard-{self.ids}"

    # -- what they do not hear -----------------------------------------------------------------------------------------

    async def do(self, act: Unheard) -> None:
        story = self.story
        if act.what in ("talk", "note"):
            kind: Literal["note", "said"] = "note" if act.what == "note" else "said"
            await self.tell(
                [tk.Draft("dm", TEXTS[n], heard_by=act.who, location=act.place, mentions=self.labels(act), kind=kind) for n in act.texts]
            )
        elif act.what == "think":
            await self.tell([tk.Draft(act.who[0] if act.who else "q", TEXTS[n], kind="thought") for n in act.texts])
        elif act.what == "move":
            for seat in act.who:
                await self.move(seat, act.place)
        elif act.what == "flood":
            await self.tell([tk.Draft("dm", "So many names.", heard_by=act.who, mentions=[f"name {act.number}-{n}" for n in range(300)])])
        elif act.what == "echo":  # the same names in one small circle after the other
            circles: Sequence[list[str]] = (["p"], ["q"], ["r"], ["s"], ["p", "q"], ["r", "s"])
            await self.tell([tk.Draft("dm", TEXTS[0], heard_by=who, mentions=LABELS) for who in circles])
        elif act.what == "undone":
            await self.tell([tk.Draft("dm", TEXTS[n], heard_by=act.who, mentions=self.labels(act)) for n in act.texts])
            del self.theirs[len(self.theirs) - len(act.texts) :]
            await story.rewind(story.head - len(act.texts))
        elif act.what == "join":
            self.story = await self.keeper.story(KEY, seats=[SPIES[act.number % 2]])
        elif act.what == "override":
            await self.override(act)
        elif self.theirs:
            await self.author(act, self.theirs[act.number % len(self.theirs)])

    async def tell(self, drafts: list[tk.Draft]) -> None:
        self.theirs += [turn.id for turn in await self.story.append_many(drafts)]

    async def author(self, act: Unheard, turn: str) -> None:
        story = self.story
        if act.what == "edit":
            await story.edit(turn, TEXTS[act.texts[0]])
        elif act.what == "pin":
            await story.pin(turn)
        elif act.what == "unpin":
            await story.unpin(turn)
        elif act.what == "forget":
            await story.forget(turn)
            self.theirs.remove(turn)
        elif act.what == "regenerate":
            await self.tell([tk.Draft("dm", TEXTS[act.texts[0]], heard_by=act.who)])
            self.theirs[-1] = (await story.regenerate(TEXTS[act.number % len(TEXTS)])).id

    async def override(self, act: Unheard) -> None:
        for fold in await self.story.folds("q", budget=200):
            if not set(await self.story.sources(fold)) & set(self.ours):
                await self.story.override(fold.id, f"Nobody else knows: {TEXTS[act.texts[0]]}")
                return


async def known_to(story: tk.Story, seat: str, *, brief: bool) -> dict[str, Any]:
    """Everything that a seat can get to know, with turns numbered as that seat heard them."""
    heard = await story.turns(seat=seat)
    number = {turn.id: index for index, turn in enumerate(heard)}
    known: dict[str, Any] = {
        "log": [(turn.kind, turn.voice, turn.text, turn.location, turn.when, turn.revision, turn.tokens) for turn in heard]
    }
    for budget in BUDGETS:
        for query in (None, QUERIES[0], QUERIES[1]):
            known[f"context {budget} {query}"] = await asked(story, seat, number, budget, query)
        known[f"folds {budget}"] = [
            (fold.text, fold.level, fold.turn_count, fold.location, fold.made_by) for fold in await story.folds(seat, budget=budget)
        ]  # fmt: skip
        if brief:
            known[f"brief {budget}"] = (await story.brief(seat, budget=budget)).text
    for query in QUERIES:
        hits = await story.recall(seat, query, limit=60)
        known[f"recall {query}"] = [(number[hit.turn.id], hit.score, hit.turn.text) for hit in hits]
    known["stats"] = (await story.stats()).seats[seat]
    for budget in (260, 1100):
        known[f"remember {budget}"] = await anyway(remember(story, seat, budget=budget))
    for name in (seat, "Elena Swift", "Captain Voss"):
        facts = await character_facts(story, seat, name)
        known[f"facts of {name}"] = [(fact.kind, fact.text, fact.about, fact.turn, fact.weight) for fact in facts.all]
    ends = await find_callbacks(story, seat, limit=99, resolved=True)
    known["loose ends"] = [dataclasses.replace(end, sources=()) for end in ends]
    known["sessions"] = [(one.number, one.title, one.turn) for one in await list_sessions(story, seat)]
    known["recap"] = (await recap(story, seat, budget=600)).text
    known["agent"] = await anyway(MemoryManager(story).agent_memory(seat))
    return known


async def anyway(asking: Awaitable[Any]) -> Any:
    """What is answered, without ids, or how much what is pinned would need."""
    try:
        answer = await asking
    except tk.BudgetTooSmall as small:
        return small.needed
    if isinstance(answer, AgentMemory):
        facts = answer.character_facts
        return dataclasses.replace(answer, character_facts=None), [fact.text for fact in facts.all] if facts else []
    return answer.text


async def asked(story: tk.Story, seat: str, number: dict[str, int], budget: int, query: str | None) -> Any:
    try:
        context = await story.context(seat, budget=budget, query=query)
    except tk.BudgetTooSmall as small:
        return small.needed
    blocks = [
        (block.name, block.heading, block.tokens, block.stable, [
            (item.text, item.tokens, item.kind, [number[source] for source in item.sources], item.turn_count, item.clipped, len(item.folds))
            for item in block.items
        ])
        for block in context.blocks
    ]  # fmt: skip
    left_out = [
        (left.block, left.reason, left.turn_count, left.tokens, [number[source] for source in left.sources]) for left in context.left_out
    ]
    return context.text, context.tokens, context.stable_tokens, blocks, left_out


async def tell(target: str, script: Sequence[Act], which: Literal["one", "other"], *, crowd: bool, model: bool) -> list[dict[str, Any]]:
    """One of the two stories, and what x and y know in the middle and at the end of it."""
    async with tk.open(
        target, counter=tk.Heuristic(), clock=lambda: 0.0, durable=False, summarizer=MoodyModel() if model else None
    ) as keeper:  # fmt: skip
        seats = SEATS if which == "one" or not crowd else (SEATS[0], SPIES[0], *SEATS[1:])
        teller = Teller(keeper, await keeper.story(KEY, seats=seats))
        seen: list[dict[str, Any]] = []
        for index, act in enumerate(script):
            for unheard_act in act.one if which == "one" else act.other:
                await teller.do(unheard_act)
            await teller.hear(act.heard, crowd=crowd)
            if index in (len(script) // 2, len(script) - 1) and not model:
                seen += [await known_to(teller.story, seat, brief=not crowd) for seat in ("x", "y")]
        if model:
            await teller.story.settle()
            seen += [await known_to(teller.story, seat, brief=not crowd) for seat in ("x", "y")]
        return seen


async def tell_by_turns(script: Sequence[Act], which: Literal["one", "other"]) -> list[dict[str, Any]]:
    """One of the two stories, with a model that is done before the next turn, and what x and y see after each turn that they hear."""
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: 0.0, summarizer=MoodyModel()) as keeper:
        teller = Teller(keeper, await keeper.story(KEY, seats=SEATS), seen=[])
        for act in script:
            for unheard_act in act.one if which == "one" else act.other:
                await teller.do(unheard_act)
                await teller.story.settle()
            await teller.hear(act.heard, crowd=False)
            await teller.look()
        assert teller.seen is not None
        return teller.seen


async def compare(target: str, script: Sequence[Act], *, crowd: bool = False, model: bool = False) -> None:
    # Joins belong to crowds: who is new hears of every session that begins.
    if not crowd:
        script = [Act(act.heard, *(tuple(u for u in us if u.what != "join") for us in (act.one, act.other))) for act in script]
    one = await tell(target.format(1), script, "one", crowd=crowd, model=model)
    other = await tell(target.format(2), script, "other", crowd=crowd, model=model)
    for first, second in zip(one, other, strict=True):
        for name in first:
            assert first[name] == second[name], f"{name} tells of what was not heard"


usual = settings(  # to look for the smallest script takes minutes: add Phase.shrink for that
    deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)  # fmt: skip
NAMES = Heard("talk", texts=(3,), mentions=(0, 2, 5))
TALK = Heard("talk", texts=(2, 0, 5, 4, 2, 1, 7, 2, 5, 2, 4, 7))


@settings(usual, max_examples=30)
@given(script=st.lists(acts, min_size=2, max_size=9))
@example(script=[Act(NAMES), Act(TALK, other=(Unheard("flood"),)), Act(TALK), Act(TALK)])
@example(script=[Act(NAMES), Act(TALK, other=(Unheard("echo"), Unheard("echo"))), Act(TALK), Act(TALK)])
async def test_nothing_that_a_seat_did_not_hear_changes_what_it_knows(script: list[Act]) -> None:
    await compare(":memory:", script)


@settings(usual, max_examples=12)
@given(script=st.lists(acts, min_size=2, max_size=8))
async def test_nor_do_seats_that_it_never_met(script: list[Act]) -> None:
    await compare(":memory:", script, crowd=True)


@settings(usual, max_examples=6)
@given(script=st.lists(acts, min_size=2, max_size=7))
async def test_nor_does_it_on_a_real_file(script: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare(str(Path(folder) / "{}.db"), script)


@settings(usual, max_examples=8)
@given(script=st.lists(acts, min_size=3, max_size=8))
async def test_nor_does_it_where_a_model_makes_the_folds(script: list[Act]) -> None:
    await compare(":memory:", script, model=True)


@settings(usual, max_examples=10)
@given(script=st.lists(acts, min_size=3, max_size=8))
@example(script=[Act(TALK), Act(TALK, other=(Unheard("talk", texts=tuple(range(8)) * 4),)), Act(TALK), Act(TALK)])
async def test_nor_when_a_seat_gets_to_see_what_a_model_made(script: list[Act]) -> None:
    script = [Act(act.heard, *(tuple(u for u in us if u.what != "join") for us in (act.one, act.other))) for act in script]
    one, other = await tell_by_turns(script, "one"), await tell_by_turns(script, "other")
    for first, second in zip(one, other, strict=True):
        for name in first:
            assert first[name] == second[name], f"{name} tells of what was not heard"


async def test_whether_a_model_is_asked_for_a_fold_does_not_depend_on_what_others_heard() -> None:
    """A chunk that is worth a call, among seven that are not: in the dungeon master's memory it has larger neighbours."""
    seen = []
    for unheard in (0, 16):
        async with tk.open(":memory:", counter=tk.Heuristic(), summarizer=MoodyModel()) as keeper:
            seats = [tk.Seat("dm", role="dm", token_limit=2600), tk.Seat("x", token_limit=2000), tk.Seat("p")]
            story = await keeper.story(KEY, seats=seats)
            told = [(TEXTS[n], "inn") for n in (0, 1, 2, 4, 5, 7)], [("Okay.", place) for place in "abcdefgh"]
            long = [(TEXTS[n * 3 % 8], f"road {n // 12}") for n in range(150)]
            await story.append_many([tk.Draft("dm", text, heard_by=["x"], location=place) for text, place in told[0]])
            await story.append_many([tk.Draft("dm", TEXTS[n % 8], heard_by=["p"]) for n in range(unheard)])
            await story.append_many([tk.Draft("dm", text, heard_by=["x"], location=place) for text, place in told[1] + long])
            await story.settle()
            await story.append("dm", "Onwards.", heard_by=["x"])
            seen.append([(await story.context("x", budget=budget)).text for budget in (*BUDGETS, 2000, 4000)])
    assert seen[0] == seen[1]


async def test_which_folds_a_model_has_made_tells_nothing_of_what_others_heard() -> None:
    """A dungeon master with little room and much to hear needs folds earlier than the player who shares them."""
    seen = []
    for unheard in (0, 40):
        async with tk.open(":memory:", counter=tk.Heuristic(), summarizer=MoodyModel()) as keeper:
            story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm", token_limit=700), tk.Seat("x", token_limit=4000), tk.Seat("p")])
            await story.append_many([tk.Draft("dm", TEXTS[n % 6], heard_by=["x"], id=f"heard-{n}") for n in range(16)])
            await story.append_many([tk.Draft("dm", TEXTS[n % 8], heard_by=["p"]) for n in range(unheard)])
            await story.settle()
            seen.append([(await story.context("x", budget=budget)).text for budget in BUDGETS])
    assert seen[0] == seen[1]


async def test_a_brief_does_not_tell_whether_another_heard_more_than_all_have_in_common() -> None:
    seen = []
    for unheard in (0, 16):
        async with tk.open(":memory:", counter=tk.Heuristic(), summarizer=MoodyModel()) as keeper:
            story = await keeper.story(KEY, seats=[tk.Seat(name, token_limit=700) for name in ("x", "z")])
            await story.append_many([tk.Draft("x", TEXTS[n % 8], heard_by=["x"]) for n in range(8)])
            await story.append_many([tk.Draft("z", TEXTS[n % 8], heard_by=["z"]) for n in range(unheard)])
            await story.append_many([tk.Draft("z", TEXTS[n * 3 % 8], ["x", "z"], f"road {n // 12}") for n in range(150)])
            await story.settle()
            await story.append("z", "Onwards.")
            seen.append([(await story.brief("x", budget=budget)).text for budget in BUDGETS])
    assert seen[0] == seen[1]


LONG = [
    Act(
        Heard("talk", who=(("x", "y"), ("x",), ("x", "y", "p"))[n % 3], texts=tuple((n + i) % 8 for i in range(12)), mentions=(n % 6,)),
        other=(Unheard("talk", who=("p", "q"), texts=tuple((n * 3 + i) % 8 for i in range(9)), mentions=((n + 1) % 6,)),),
    )
    for n in range(60)
]  # fmt: skip


@pytest.mark.parametrize("where", [":memory:", "file"])
async def test_a_long_story_with_twice_as_many_unheard_turns_tells_nothing_of_them(where: str, tmp_path: Path) -> None:
    await compare(where if where == ":memory:" else str(tmp_path / "{}.db"), LONG)


@pytest.mark.parametrize("where", [":memory:", "file"])
async def test_what_happens_in_another_story_changes_nothing(where: str, tmp_path: Path) -> None:
    async with tk.open(where if where == ":memory:" else tmp_path / "s.db", counter=tk.Heuristic(), durable=False) as keeper:
        teller = Teller(keeper, await keeper.story(KEY, seats=SEATS))
        for act in LONG[:8]:
            await teller.hear(act.heard, crowd=False)
        before = [await teller.story.context(seat.id, budget=budget, query=QUERIES[1]) for seat in SEATS for budget in BUDGETS]
        recalled = [await teller.story.recall("x", query, limit=50) for query in QUERIES]
        stats, version = await teller.story.stats(), teller.story.version
        for key in (
            tk.MemoryKey("acme", "ana", "other"),
            tk.MemoryKey("acme:ana", "ash-crown", "x"),
            tk.MemoryKey("acme", "ana:ash-crown", "x"),
        ):
            other = Teller(keeper, await keeper.story(key, seats=SEATS))
            for act in LONG[4:12]:
                await other.do(act.other[0])
                await other.hear(act.heard, crowd=False)
            await other.story.edit(3, TEXTS[1])
            await other.story.pin(4)
            await other.story.forget(5)
            await other.story.rewind(40)
            await other.story.settle()
        await keeper.delete(key)
        after = [await teller.story.context(seat.id, budget=budget, query=QUERIES[1]) for seat in SEATS for budget in BUDGETS]
        assert after == before
        assert [await teller.story.recall("x", query, limit=50) for query in QUERIES] == recalled
        assert (await teller.story.stats(), teller.story.version) == (stats, version)
