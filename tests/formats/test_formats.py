from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import talekeeper as tk
from talekeeper.doctor import examine
from talekeeper.formats import export_story, import_story
from talekeeper.ports import Read, TextRecord
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("acme", "ana:b\\c", "ash crown")
COPY = tk.MemoryKey("acme", "ana", "copy")
SEATS = (
    tk.Seat("dm", role="dm", token_limit=900),
    tk.Seat("rogue", name="Wren", aliases=("the rogue",), token_limit=500, keep=2),
    tk.Seat("bard", token_limit=400, fold_at=0.7),
    tk.Seat("smith", role="npc", token_limit=300),
)
KINDS = ("said", "whisper", "thought", "event", "note", "session", "enter", "leave", "edit", "pin", "unpin", "override")
LINES = (
    "Captain Voss counts forty gold coins, twice, and smiles at Elena Swift.",
    "I promise to bring the silver key back before the third bell!",
    "The rain has not stopped since the bridge at Harrow, and nobody speaks of what was left there.",
    "老人把银钥匙交给了米拉，说三天后在桥边等她。",
    "Two lines\nof one turn, with \x1b[31mcolour\x1b[0m and a \u2028 separator.",
    "The bell tolls thrice; the Ash Crown is gone from the crypt below Saint Orla's.",
)


def open_keeper(target: str | Path, model: MoodyModel | None = None) -> tk.Keeper:
    return tk.open(target, summarizer=model, counter=tk.Heuristic(), clock=lambda: 1700000000.123456, durable=False)


async def talk(story: tk.Story, turns: int, tag: str) -> None:
    audiences: tuple[list[str] | None, ...] = (None, None, ["rogue"], None, ["bard", "smith"], None, ["rogue", "bard"])
    for i in range(turns):
        text = f"{tag}{i}: {LINES[i % len(LINES)]}"
        await story.append("dm", text, heard_by=audiences[i % 7], mentions=["silver key"] if i % 9 == 4 else [])


async def tell(keeper: tk.Keeper) -> tk.Story:
    """A story with everything in it."""
    story = await keeper.story(KEY, seats=SEATS)
    await story.note("The Ash Crown burns whoever lies while wearing it.", heard_by=["bard"])
    await story.append("rogue", "I know this house.", id="my-own-id", when="day 1, dusk", voice="Wren, hooded")
    await story.enter("rogue", "tavern")
    await story.enter("bard", "tavern")
    await talk(story, 60, "a")
    await story.settle()
    await story.edit(9, "An edit: the coins were counterfeit, and Voss knew it.")
    await story.pin("my-own-id")
    await story.begin_session("The second evening")
    await talk(story, 50, "b")
    await story.settle()
    folds = await story.folds("rogue")
    await story.override(folds[-1].id, "By the author's hand: they trusted no one that night.")
    fork = await story.fork(at=70, name="what if")
    await fork.append("bard", "Or I could simply tell them.", id="another id")
    await talk(fork, 40, "c")
    await fork.settle()
    await story.leave("bard")
    await talk(story, 30, "d")
    await story.settle()
    await story.rewind(story.head - 20)
    await story.regenerate("Told anew, and better.")
    await story.settle()
    await story.forget(20)
    await fork.forget("another id")
    await talk(story, 12, "e")
    await story.settle()
    await story._hot.checkpoint()
    await keeper.story(KEY, seats=[tk.Seat("late", token_limit=200)])
    await talk(story, 5, "f")
    return story


async def export(keeper: tk.Keeper, key: tk.MemoryKey = KEY) -> list[str]:
    return [line async for line in export_story(keeper, key)]


async def memory(keeper: tk.Keeper, key: tk.MemoryKey) -> dict[str, Any]:
    """Everything that anyone can see of a story, on every branch."""
    story = await keeper.story(key)
    seen: dict[str, Any] = {"branches": [tk.to_json(branch) for branch in await story.branches()], "stats": tk.to_json(await story.stats())}
    for branch in await story.branches():
        story = await keeper.story(key, branch=branch.name)
        seen[branch.name] = [tk.to_json(turn) for turn in await story.turns(kinds=KINDS)]
        seen[f"{branch.name} presence"] = dict(story.presence())
        for seat in story.seats:
            seen[f"{branch.name} {seat.id}"] = await views(story, seat.id)
    return seen


async def texts(keeper: tk.Keeper) -> list[TextRecord]:
    """Everything that models wrote, on any branch."""
    record = await keeper.store.load(KEY)
    assert record is not None
    found = (await keeper.store.read(Read(record.id, all_folds=True))).texts
    return sorted(found, key=lambda text: (text.key, text.branch))


async def views(story: tk.Story, seat: str) -> list[Any]:
    views: list[Any] = []
    for budget in (300, 500, 1500):
        context = await story.context(seat, budget=budget, query="the silver key")
        views += [tk.to_json(context), await story.sources(context)]
    views += [
        tk.to_json(hit) for query in ("third bell", "counterfeit", "forty gold coins", "银钥匙") for hit in await story.recall(seat, query)
    ]
    return [*views, tk.to_json(await story.brief(seat)), [tk.to_json(fold) for fold in await story.folds(seat)]]


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str | Path]:
    return lambda name: ":memory:" if request.param == "memory" else tmp_path / f"{name}.db"


async def test_a_copy_remembers_byte_for_byte_like_the_original(place: Callable[[str], str | Path]) -> None:
    async with open_keeper(place("one"), MoodyModel()) as keeper:
        await tell(keeper)
        lines = await export(keeper)
        original = await memory(keeper, KEY)
        async with open_keeper(place("two")) as other:
            assert await import_story(other, lines) == KEY
            assert await memory(other, KEY) == original
            assert await export(other) == lines
            assert await texts(other) == await texts(keeper)
    kinds = [json.loads(line)["type"] for line in lines]
    assert {"text", "fold", "checkpoint"} <= set(kinds)


async def test_a_copy_rewinds_like_the_original(place: Callable[[str], str | Path]) -> None:
    async with open_keeper(place("one"), MoodyModel()) as keeper, open_keeper(place("two")) as other:
        story = await tell(keeper)
        await import_story(other, await export(keeper), key=COPY)
        copy = await other.story(COPY)
        for back in (3, 17, 31, 58, 90, 130):
            to = max(0, story.head - back)
            assert await story.rewind(to) == await copy.rewind(to)
            for seat in story.seats:
                assert await views(story, seat.id) == await views(copy, seat.id), (to, seat.id)


async def test_a_copy_goes_on_like_the_original(place: Callable[[str], str | Path]) -> None:
    async with open_keeper(place("one")) as keeper, open_keeper(place("two")) as other:
        story = await tell(keeper)
        await import_story(other, await export(keeper))
        copy = await other.story(KEY)
        for each in (story, copy):
            await talk(each, 40, "g")
            await each.edit(5, "Another edit, in both.")
        for seat in story.seats:
            assert await views(story, seat.id) == await views(copy, seat.id)


async def test_a_copy_beside_the_original_shares_nothing_with_it(tmp_path: Path) -> None:
    async with open_keeper(tmp_path / "one.db") as keeper:
        story = await tell(keeper)
        await import_story(keeper, await export(keeper), key=COPY)
        copy = await keeper.story(COPY)
        await copy.append("dm", "Only here: a xylophone plays.")
        assert not await story.recall("dm", "a xylophone plays")
        assert await copy.recall("dm", "a xylophone plays")
        assert await keeper.delete(KEY)
        assert await copy.recall("dm", "a xylophone plays")


async def test_what_was_forgotten_is_not_in_the_file() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await talk(story, 20, "a")
        turn = await story.append("dm", "The password is swordfish.")
        await talk(story, 20, "b")
        await story.settle()
        await story.forget(turn)
        assert "swordfish" not in "".join(await export(keeper))


@pytest.mark.parametrize("back_to", [None, 20])
async def test_the_copy_of_what_an_edited_turn_was_forgotten_from_is_sound(back_to: int | None) -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await talk(story, 150, "a")
        await story._hot.checkpoint()
        if back_to is not None:
            await story.rewind(back_to)
        await story.edit(3, "Something else entirely.")
        await story.forget(3)
        lines = await export(keeper)
        assert any('"type":"fold"' in line for line in lines)
        await import_story(keeper, lines, key=COPY)
        assert await examine(keeper, KEY) == await examine(keeper, COPY) == []
        assert (await export(keeper, COPY))[1:] == lines[1:], "and nothing more is in it than in the original"


async def test_an_empty_story_can_be_copied() -> None:
    async with open_keeper(":memory:") as keeper:
        await keeper.story(KEY, seats=SEATS)
        await import_story(keeper, await export(keeper), key=COPY)
        assert (await keeper.story(COPY)).seats == SEATS


async def test_a_story_that_is_there_is_not_written_over() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append("dm", "Here first.")
        lines = await export(keeper)
        with pytest.raises(tk.InvalidInput, match="there is a story under the key"):
            await import_story(keeper, lines)
        assert [turn.text for turn in await story.turns()] == ["Here first."]


async def test_a_story_that_is_not_there_cannot_be_exported() -> None:
    async with open_keeper(":memory:") as keeper:
        with pytest.raises(tk.UnknownStory):
            await export(keeper)


async def test_a_story_that_changes_meanwhile_is_exported_again() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await talk(story, 10, "a")

        async def export_and_forget() -> None:
            async for line in export_story(keeper, KEY):
                if '"seq":5,' in line:
                    await story.forget(2)

        with pytest.raises(tk.Conflict, match="export it again"):
            await export_and_forget()


async def test_so_is_one_in_which_something_is_told_to_others_than_before() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append("dm", "Heard by all.")
        lines = export_story(keeper, KEY)
        assert json.loads(await anext(lines))["type"] == "story"
        await story.append("dm", "For one alone.", heard_by=[SEATS[1].id])
        with pytest.raises(tk.Conflict, match="export it again"):
            async for _ in lines:
                pass


def change(line: str, **fields: Any) -> str:
    row = {**json.loads(line), **fields}
    return json.dumps({name: value for name, value in row.items() if value is not ...}) + "\n"


def first(lines: list[str], kind: str) -> int:
    return next(at for at, line in enumerate(lines) if json.loads(line)["type"] == kind)


def at_21(**fields: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[:20], change(lines[20], **fields), *lines[21:]]


def at_first(kind: str, skip: int = 0, **fields: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: [change(line, **fields) if at == first(lines, kind) + skip else line for at, line in enumerate(lines)]


def at_mark(**fields: Any) -> Callable[[list[str]], list[str]]:
    """A mark in the place of line 21."""
    sound = {"topic": "moment", "rank": 1, "keep": 16, "target": ["t-1"], "sources": [["t-1", "", 1]], "drops": []}
    return at_21(kind="mark", text='{"a":1}', extra={**sound, **fields})


def in_shape(**parts: Any) -> Callable[[list[str]], list[str]]:
    """Another part of the shape of the first fold."""

    def harm(lines: list[str]) -> list[str]:
        shape = json.loads(lines[first(lines, "fold")])["shape"]
        return at_first("fold", shape={**shape, **parts})(lines)

    return harm


OTHER_PARTS: dict[str, Any] = {
    "level": "x", "first": None, "last": [], "closed": [1], "turns": {}, "tokens": "x", "children": [5], "refs": [["x"]], "known": "x",
    "gathered": [],
}  # fmt: skip
DAMAGE: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing at all": (lambda lines: [], "line 1: this is no exported story"),
    "another file": (lambda lines: ["# A recipe for bread\n"], "line 1: not JSON"),
    "another kind of JSON": (lambda lines: ['{"messages": []}\n'], "line 1: no line of a story"),
    "a newer version": (at_first("story", version=9), "line 1: the file is of version 9, this program reads 1"),
    "no seats": (at_first("story", config={}), "line 1: the story's config cannot be understood"),
    "cut off": (lambda lines: lines[:-40], "the file ends too early"),
    "cut off within a line": (lambda lines: [*lines[:30], lines[30][:25]], "line 31: not JSON"),
    "a line lost": (lambda lines: lines[:20] + lines[21:], "line 21: entry .* is not the next one"),
    "a line twice": (lambda lines: lines[:20] + lines[19:], "line 21: "),
    "a text lost": (lambda lines: [line for at, line in enumerate(lines) if at != first(lines, "text")], "the file is not whole"),
    "something behind the end": (lambda lines: [*lines, lines[-2]], "there is more behind the last line"),
    "a number as a string": (at_21(seq="11"), "line 21: 'seq' must be a whole number"),
    "a number that is none": (lambda lines: [*lines[:20], lines[20].replace('"seq":', '"seq":NaN,"x":'), *lines[21:]], "line 21: not JSON"),
    "a field that is missing": (at_21(text=...), "line 21: .* needs 'text'"),
    "a field too many": (at_21(mood="sad"), "line 21: .* has no 'mood'"),
    "a kind that is unknown": (at_21(kind="sung"), "line 21: there is no kind 'sung'"),
    "a channel that is unknown": (at_21(channel=99), "line 21: there is no channel 99"),
    "an id twice": (at_21(id="my-own-id"), "the lines up to here do not fit together: .*'my-own-id'"),
    "an edit of nothing": (at_21(kind="edit", extra={"target": "x", "at": "y"}), "line 21: .* needs the place of its target"),
    "a lone surrogate": (at_21(text="\ud800"), "line 21: a lone surrogate"),
    "a NUL in a text": (at_21(text="a\0b"), "line 21: a text without NUL"),
    "mentions that are no names": (at_21(extra={"mentions": [5]}), "line 21: .* lists of strings"),
    "mentions that are no list": (at_21(extra={"mentions": 5}), "line 21: .* lists of strings"),
    "a time of the story that is a number": (at_21(extra={"when": 5}), "line 21: .* as a string"),
    "more tokens than there can be": (at_21(tokens=10**30), "line 21: no number of tokens"),
    "a time beyond all times": (at_21(time=10**400), "line 21: no number of tokens, or no time"),
    "spending that is no number": (at_first("story", spending={"calls": "x"}), "line 1: .*spending must be numbers"),
    "a branch from nowhere": (at_first("branch", 1, parent=77), "leaves its parent where there is none"),
    "no main": (
        lambda lines: [line.replace('"name":"main"', '"name":"x"').replace('"name": "main"', '"name": "x"') for line in lines],
        "none of the branches before it is called 'main'",
    ),
    "hearers that are no seats": (at_first("channel", hearers=[["dm"]]), r"line \d+: no channel of this story"),
    "hearers that are numbers": (at_first("channel", hearers=[5]), r"line \d+: no channel of this story"),
    "a mark of nothing": (at_mark(sources=[5]), r"line \d+: a mark's sources must each be an id, a revision and a number"),
    "a mark of half a turn": (at_mark(sources=[["t-1", ""]]), r"line \d+: a mark's sources must each be"),
    "a mark of a list": (at_mark(sources=[[[], "", 1]]), r"line \d+: a mark's sources must each be"),
    "a mark with a target that is no id": (at_mark(target=[{}]), r"line \d+: a mark's sources must each be"),
    "a mark that drops a number": (at_mark(drops=[5]), r"line \d+: no marks that could have been dropped"),
    "an edit of a turn to come": (at_21(kind="edit", extra={"target": "x", "at": [1, 999]}), "line 21: .* needs the place of its target"),
    "a stranger among the hearers": (at_first("channel", hearers=["spy"]), "no channel of this story"),
    "a sentence without sources": (at_first("text", sentences=["x"]), "no sentences with their sources"),
    **{
        f"a sentence with {what}": (at_first("text", sentences=[sentence]), "no sentences with their sources")
        for what, sentence in {
            "a source that is a number": ["Text.", [5], 0, 1.0, []],
            "a weight that is none": ["Text.", ["t-1"], 0, "x", []],
            "names that are none": ["Text.", ["t-1"], 0, 1.0, "voss"],
            "a place but no time": ["Text.", ["t-1"], 0, 1.0, [], "cellar"],
            "a time that is none": ["Text.", ["t-1"], 0, 1.0, [], "cellar", "x"],
        }.items()
    },
    **{f"a fold with another {part}": (in_shape(**{part: value}), "no shape of a fold") for part, value in OTHER_PARTS.items()},
    "a fold without a shape": (at_first("fold", shape={"level": 0}), "no shape of a fold"),
    "a text too early": (at_first("text", born=1), "a text must stand behind the entry it was born at"),
}


@pytest.fixture(scope="module")
def exported() -> list[str]:
    import asyncio

    async def make() -> list[str]:
        async with open_keeper(":memory:", MoodyModel()) as keeper:
            await tell(keeper)
            return await export(keeper)

    return asyncio.run(make())


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_file_is_refused_with_the_line_and_nothing_is_left(damage: str, exported: list[str], tmp_path: Path) -> None:
    harm, message = DAMAGE[damage]
    async with open_keeper(tmp_path / "x.db") as keeper:
        with pytest.raises(tk.InvalidInput, match=message):
            await import_story(keeper, harm(list(exported)))
        assert await keeper.keys() == []
        await import_story(keeper, exported)  # the place is free


async def test_an_import_that_is_interrupted_leaves_nothing(exported: list[str], tmp_path: Path) -> None:
    def lines() -> Any:
        yield from exported[:100]
        raise KeyboardInterrupt

    async with open_keeper(tmp_path / "x.db") as keeper:
        with pytest.raises(KeyboardInterrupt):
            await import_story(keeper, lines())
        assert await keeper.keys() == []


class Deadly:
    """A store whose writer dies in the middle, and can clean nothing up."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, commit: Any) -> int:
        self.writes += 1
        if self.writes > 3:
            raise KeyboardInterrupt
        return int(await self._store.write(commit))

    async def delete(self, key: tk.MemoryKey) -> bool:
        raise KeyboardInterrupt


async def test_what_an_import_left_that_was_killed_cannot_be_opened_but_deleted(exported: list[str], tmp_path: Path) -> None:
    async with open_keeper(tmp_path / "x.db") as keeper:
        whole = keeper.store
        keeper._store = Deadly(whole)
        with pytest.raises(KeyboardInterrupt):
            await import_story(keeper, exported)
        keeper._store = whole
    async with open_keeper(tmp_path / "x.db") as keeper:
        for opening in (keeper.story(KEY), keeper.story(KEY, seats=SEATS), export(keeper)):
            with pytest.raises(tk.UnknownStory, match="not finished: wait, .* in another process; .* delete it and import it again"):
                await opening
        assert [(finding.severity, finding.code) for finding in await examine(keeper, KEY)] == [("warning", "I1")]
        assert await keeper.delete(KEY)
        await import_story(keeper, exported)
        assert await (await keeper.story(KEY)).turns()


class Spy:
    """A store that notes down how much is asked of it at once."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.most = 0
        self.entries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, request: Any) -> Any:
        found = await self._store.read(request)
        self.most = max(self.most, len(found.entries), len(found.folds))
        return found

    async def write(self, commit: Any) -> int:
        self.entries += len(commit.entries)
        return int(await self._store.write(commit))


async def long_story(keeper: tk.Keeper, turns: int) -> None:
    story = await keeper.story(KEY, seats=SEATS[:2])
    for start in range(0, turns, 200):
        await story.append_many([tk.Draft("dm", f"{start + i}: {LINES[i % 4]}") for i in range(200)])
        await story._hot.checkpoint()


async def test_both_directions_go_page_by_page() -> None:
    async with open_keeper(":memory:") as keeper, open_keeper(":memory:") as other:
        await long_story(keeper, 2400)
        keeper._store = reading = Spy(keeper.store)
        other._store = writing = Spy(other.store)
        lines = await export(keeper)
        assert reading.most <= 512

        def watched() -> Any:
            for number, line in enumerate(lines):
                assert number - writing.entries < 600, "lines are piling up"
                yield line

        await import_story(other, watched())
        assert writing.most <= 512


@pytest.mark.slow
async def test_neither_direction_holds_the_story_in_memory(tmp_path: Path) -> None:
    async def peak(turns: int, folder: Path) -> tuple[int, int]:
        folder.mkdir()
        async with open_keeper(folder / "told.db") as keeper:
            await long_story(keeper, turns)
        tracemalloc.start()
        async with open_keeper(folder / "told.db") as keeper:
            with (folder / "story.jsonl").open("w") as file:
                async for line in export_story(keeper, KEY):
                    file.write(line)
        wrote = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        async with open_keeper(folder / "copy.db") as keeper:
            with (folder / "story.jsonl").open() as file:
                await import_story(keeper, file)
        read = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return wrote, read

    await peak(8000, tmp_path / "first")  # from then on, what is kept of words and sentences is not counted
    short, long = await peak(2000, tmp_path / "short"), await peak(8000, tmp_path / "long")
    assert long[0] < 1.5 * short[0]
    assert long[1] < 1.5 * short[1]
