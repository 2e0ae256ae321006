"""Nothing is left of a forgotten turn, in the file or in memory, whoever was at it at that moment; and nobody sees half of a story that is
loaded anew."""

from __future__ import annotations

import asyncio
import gc
import itertools
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import talekeeper as tk
from talekeeper.doctor import examine
from talekeeper.errors import StoreBusy
from talekeeper.live.hot import Hot
from talekeeper.ports import Commit, Found, Message, Read
from talekeeper.stores.sqlite.file import open_file as open_store_file
from talekeeper.story import forgetting
from talekeeper.story.replay import snapshot_before

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

KEY = tk.MemoryKey("acme", "ana", "forgotten")
SEATS = (tk.Seat("dm", role="dm", token_limit=200), tk.Seat("a", token_limit=150))
WORD = "xyzzyplugh"
SECRET = f"I swear to Mira that {WORD} owes her 500 gold crowns."
Race = Callable[[tk.Keeper, tk.Story], Awaitable[None]]


def drafts(first: int, last: int, secret: int = 0) -> list[tk.Draft]:
    """Turns for these numbers; one of them has the word in it."""
    plain = "Turn {0} tells of Mira and the {0} crowns at the gate of the mill, and of much else beside that nobody counts."
    return [tk.Draft("dm", SECRET if number == secret else plain.format(number)) for number in range(first, last + 1)]


async def careful_model(messages: Sequence[Message]) -> str:
    """Keeps the beginning of everything, and the word."""
    pieces = re.findall(r"^\[(\d+)\] (.*)$", messages[1]["content"], re.M)
    told = [(number, [*words[:4], *(word for word in words if WORD in word)]) for number, text in pieces if (words := text.split())]
    return " ".join(f"{' '.join(words).rstrip('.')}. [{number}]" for number, words in told)


class Clean:
    """Opens keepers on one file, and looks in the end whether anything is left of the word."""

    def __init__(self, open_file: OpenKeeper, path: Path) -> None:
        self.open = open_file
        self.path = path
        self.checked = False

    async def story(self, keeper: tk.Keeper, turns: int = 60, secret: int = 4) -> tk.Story:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append_many(drafts(1, turns, secret))
        return story

    async def check(self, *keepers: tk.Keeper) -> None:
        """The word is in no context of any line, in no keeper, not found, and nowhere in the file."""
        self.checked = True
        for keeper in keepers:
            for branch in await (await keeper.story(KEY)).branches():
                line = await keeper.story(KEY, branch=branch.name)
                for seat in ("dm", "a"):
                    for budget in (150, 400, 2000, 20_000):
                        assert WORD not in (await line.context(seat, budget=budget)).text, (branch.name, seat, budget)
                    assert not await line.recall(seat, WORD)
                await line._hot.checkpoint()
            assert await examine(keeper, KEY) == []
            await keeper.close()
        for file in self.path.parent.glob(f"{self.path.name}*"):
            assert WORD.encode() not in file.read_bytes(), file.name


@pytest.fixture
async def clean(open_file: OpenKeeper, tmp_path: Path) -> AsyncIterator[Clean]:
    found = Clean(open_file, tmp_path / "stories.db")
    yield found
    assert found.checked


# -- what nobody can derive again ----------------------------------------------------------------------------------------


async def test_a_models_text_goes_with_the_turn_also_on_a_line_that_was_left_behind(clean: Clean) -> None:
    keeper = await clean.open(summarizer=careful_model)
    story = await clean.story(keeper, secret=19)
    await story.settle()
    assert any(WORD in fold.text and fold.made_by == "model" for fold in await story.folds("dm", budget=700))
    await story.rewind(20)
    await story.forget(19)
    await clean.check(keeper)


async def test_a_models_text_goes_with_the_turn_also_where_the_line_is_not_in_step(clean: Clean) -> None:
    keeper = await clean.open(summarizer=careful_model)
    story = await clean.story(keeper, secret=19)
    await story.settle()
    elsewhere = await story.fork(name="elsewhere", at=20)
    for line, first in ((elsewhere, 100), (story, 200)):
        await line.append_many(drafts(first, first + 40))
        await line.settle()
    await story.forget(19)
    await clean.check(keeper)


async def test_the_authors_words_go_with_the_turn_also_on_a_line_that_was_left_behind(clean: Clean) -> None:
    keeper = await clean.open()
    story = await clean.story(keeper, turns=40, secret=18)
    turn = await story.turn(18)
    (fold,) = [fold for fold in await story.folds("dm", budget=400) if fold.level == 0 and turn.id in await story.sources(fold.id)]
    await story.override(fold.id, f"The author says {WORD}.")
    await story.rewind(20)
    await story.forget(18)
    await clean.check(keeper)


# -- at the same moment --------------------------------------------------------------------------------------------------


def strings_in(thing: object) -> set[str]:
    """All strings that an object leads to."""
    found: set[str] = set()
    seen, todo = set[int](), [thing]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            found.add(each)
        elif id(each) not in seen and not isinstance(each, type):
            seen.add(id(each))
            todo += [*gc.get_referents(each), *(each if isinstance(each, dict) else ())]  # Python leaves keys out that are strings
    return found


async def test_no_word_is_left_in_the_store_in_memory() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append_many(drafts(1, 60, 4))
        await story._hot.checkpoint()
        stories = keeper.store._stories  # type: ignore[attr-defined]
        assert WORD in strings_in(stories)
        await story.forget(4)
        assert not [text for text in strings_in(stories) if WORD in text]


def just_before(keeper: tk.Keeper, wanted: Callable[[Commit], bool], first: Callable[[], Awaitable[Any]]) -> list[Commit]:
    """Does something just before the first such commit is written; returns those that were."""
    store, write, seen = keeper.store, keeper.store.write, list[Commit]()

    async def late(commit: Commit) -> int:
        if wanted(commit):
            seen.append(commit)
            if len(seen) == 1:
                await first()
        return await write(commit)

    store.write = late  # type: ignore[method-assign]
    return seen


def erases(commit: Commit) -> bool:
    return commit.erase is not None


@pytest.mark.parametrize("alone", [True, False], ids=["one process", "two processes"])
async def test_what_the_author_writes_over_a_fold_while_a_turn_of_it_is_forgotten_goes_too(clean: Clean, alone: bool) -> None:
    keeper = await clean.open()
    story = await clean.story(keeper)
    await story._hot.checkpoint()
    other = keeper if alone else await clean.open()
    line = await story.fork(name="elsewhere") if alone else await other.story(KEY)
    turn = await story.turn(4)
    fold, *_ = [fold for fold in await line.folds("dm", budget=700) if turn.id in await line.sources(fold.id)]
    seen = just_before(keeper, erases, lambda: line.override(fold.id, f"The author says {WORD} himself."))
    await story.forget(4)
    assert len(seen) == 2, "the first try must have been in vain"
    await clean.check(*{keeper, other})


async def test_what_is_noted_of_other_turns_meanwhile_holds_nobody_up(clean: Clean) -> None:
    keeper, other = await clean.open(), await clean.open()
    story = await clean.story(keeper)
    line = await other.story(KEY)

    async def note_and_tell() -> None:
        await line.mark("moment", {"type": "discovery", "summary": "A door.", "significance": 0.5}, of=[50])
        await line.pin(51)
        await line.append("dm", "And on it goes.")

    seen = just_before(keeper, erases, note_and_tell)
    await story.forget(4)
    assert len(seen) == 1
    await clean.check(keeper, other)


async def test_whoever_dies_while_forgetting_has_forgotten_all_or_nothing(clean: Clean) -> None:
    keeper, other = await clean.open(), await clean.open()
    story = await clean.story(keeper, turns=59, secret=58)
    line = await other.story(KEY)
    await line.context("dm", budget=400)

    async def store_more() -> None:
        await line.append_many(drafts(100, 111))
        await line._hot.checkpoint()

    just_before(keeper, erases, store_more)
    write = keeper.store.write

    async def dying(commit: Commit) -> int:
        await write(commit)
        raise asyncio.CancelledError

    keeper.store.write = dying  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await story.forget(58)
    keeper.store.write = write  # type: ignore[method-assign]
    await clean.check(keeper, other)


@pytest.mark.parametrize("name", ["turn", "context"])
async def test_an_answer_that_was_on_its_way_brings_nothing_back(clean: Clean, name: str) -> None:
    keeper = await clean.open()
    story = await clean.story(keeper, turns=400, secret=58)
    await story._hot.checkpoint()
    await keeper.close()
    keeper = await clean.open()
    story = await keeper.story(KEY)
    answer, go = slow_answers(keeper, lambda found: WORD in f"{found.entries if name == 'turn' else found.folds}")
    call: Awaitable[Any] = story.turn(58) if name == "turn" else story.context("dm", budget=3000)
    reading = asyncio.ensure_future(call)
    await answer.wait()
    await story.forget(58)
    go.set()
    await asyncio.gather(reading, return_exceptions=True)
    with pytest.raises(tk.UnknownTurn):
        await story.turn(58)
    await story.append_many(drafts(1000, 1300))
    await clean.check(keeper)


def slow_answers(keeper: tk.Keeper, which: Callable[[Found], bool]) -> tuple[asyncio.Event, asyncio.Event]:
    """The first such answer of the store takes a while: the first event says that it is on its way, the second lets it come."""
    store, read, answer, go = keeper.store, keeper.store.read, asyncio.Event(), asyncio.Event()

    async def slow(request: Read) -> Found:
        found = await read(request)
        if not request.all_folds and not answer.is_set() and which(found):
            answer.set()
            await go.wait()
        return found

    store.read = slow  # type: ignore[method-assign]
    return answer, go


@pytest.mark.parametrize("alone", [True, False], ids=["one process", "two processes"])
async def test_a_text_that_is_taken_over_from_another_line_is_not_if_a_turn_of_it_is_forgotten_meanwhile(clean: Clean, alone: bool) -> None:
    keeper, other = await clean.open(summarizer=careful_model, retry=tk.RetryPolicy(pause=0.2)), await clean.open()
    story = await clean.story(keeper)
    await story.settle()
    await story._hot.checkpoint()
    line = await story.fork(name="elsewhere", at=20)
    busy = asyncio.Event()

    async def refuse() -> None:
        busy.set()
        raise StoreBusy("someone else is at the file")

    just_before(keeper, lambda commit: any(WORD in f"{text.sentences}" for text in commit.texts), refuse)
    await line.append_many(drafts(100, 130))
    settling = asyncio.create_task(line.settle())
    await busy.wait()
    await (story if alone else await other.story(KEY)).forget(4)
    await settling
    await clean.check(keeper, other)


@pytest.mark.parametrize("alone", [True, False], ids=["one process", "two processes"])
async def test_a_turn_that_mentions_someone_is_forgotten_though_others_are_told_for_the_first_time_meanwhile(
    clean: Clean, alone: bool
) -> None:
    keeper = await clean.open()
    seats = (*SEATS, *(tk.Seat(f"s{number}") for number in range(5)))
    story = await keeper.story(KEY, seats=seats)
    told = [tk.Draft("dm", f"Captain Voss counts {number} coins.", mentions=["Captain Voss"]) for number in range(40)]
    turns = await story.append_many(told)
    other = await story.fork(name="side") if alone else await (await clean.open()).story(KEY)
    circles = (circle for size in (1, 2, 3) for circle in itertools.combinations([f"s{number}" for number in range(5)], size))

    async def tell_others(pause: int) -> None:
        for _ in range(pause):
            await asyncio.sleep(0)
        await other.append("dm", "A secret.", heard_by=next(circles))

    for number, turn in enumerate(turns[:20]):
        await asyncio.gather(story.forget(turn), tell_others(number % 7))
    left = {turn.id for turn in await story.turns() if turn.text}
    assert [turn.seq for turn in turns if turn.id in left] == list(range(21, 41))
    await clean.check(keeper)


async def test_a_line_that_has_lost_its_name_stands_in_nobodys_way(clean: Clean) -> None:
    keeper = await clean.open()
    story = await clean.story(keeper)
    elsewhere = await story.fork(name="elsewhere", at=20)
    await elsewhere.append("dm", "There.")
    keeper._residents.folder(Hot(story._hot.shared, "never looked at"))
    await story.adopt("elsewhere")
    await story.forget(4)
    assert WORD not in repr([each.turn for each in elsewhere._hot._lines._kept.values()])
    with pytest.raises(tk.UnknownBranch):
        await elsewhere.turns()
    await clean.check(keeper)


async def test_lines_that_are_renamed_meanwhile_are_found(clean: Clean, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, other = await clean.open(), await clean.open()
    story = await keeper.story(KEY, seats=SEATS)
    told = drafts(1, 60, secret=4)
    told[3] = told[3]._replace(mentions=["Mira", WORD])
    await story.append_many(told)
    elsewhere = await story.fork(name="elsewhere", at=30)
    await elsewhere.append_many(drafts(100, 140))
    line, look = await other.story(KEY), snapshot_before
    renamed = False

    async def late(*args: Any) -> Any:
        nonlocal renamed
        found = await look(*args)
        if not renamed:
            renamed = True
            await line.adopt("elsewhere")
        return found

    monkeypatch.setattr(forgetting, "snapshot_before", late)
    await story.forget(4)
    assert renamed
    await clean.check(keeper, other)


# -- a story that is loaded anew -----------------------------------------------------------------------------------------


async def test_whoever_remembers_while_someone_goes_back_sees_a_whole_story(open_file: OpenKeeper) -> None:
    story = await (await open_file()).story(KEY, seats=SEATS)
    await story.append_many(drafts(1, 250))
    for number in range(6):
        await story.append_many(drafts(900, 901))
        context, _ = await asyncio.gather(story.context("dm", budget=20_000, query=f"crowns {number}"), story.rewind(250))
        assert context.text.count("tells of Mira") in (250, 252)
        await story.append_many(drafts(900, 901))
        found, _ = await asyncio.gather(story.recall("dm", "Turn 17 tells of Mira and the 17 crowns", limit=3), story.rewind(250))
        assert 17 in [each.turn.seq for each in found]


async def test_whoever_remembers_gets_through_beside_one_who_goes_back_again_and_again(open_keeper: OpenKeeper) -> None:
    story = await (await open_keeper()).story(KEY, seats=SEATS)
    await story.append_many(drafts(1, 1500))
    remembering = asyncio.create_task(story.context("dm", budget=2000, query="crowns"))
    rewinds = 0
    while not remembering.done() and rewinds < 400:
        await story.append("dm", "Not this way.")
        await story.rewind(1500)
        await asyncio.sleep(0)
        rewinds += 1
    assert remembering.done()
    assert (await remembering).tokens <= 2000


async def test_the_past_stays_what_it_was_when_someone_goes_back_before_it(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper()
    story = await keeper.story(KEY, seats=SEATS)
    await story.append_many(drafts(1, 8, secret=2))
    past = await story.at(6)
    before, version = await past.context("dm", budget=2000), past.version
    await story.rewind(3)
    await story.append_many(drafts(100, 105))
    assert (await past.context("dm", budget=2000), past.version) == (before, version)
    await story.forget(2)
    assert WORD not in (await past.context("dm", budget=2000)).text
    assert [turn.seq for turn in await past.turns()] == [1, 3, 4, 5, 6]


@pytest.mark.parametrize("name", ["turn", "recall"])
async def test_an_edit_that_is_undone_while_it_is_read_is_not_kept(open_file: OpenKeeper, name: str) -> None:
    keeper = await open_file()
    story = await keeper.story(KEY, seats=SEATS)
    await story.append_many(drafts(1, 59))
    await story._hot.checkpoint()
    await story.edit(58, SECRET)
    story._hot._lines.clear()
    answer, go = slow_answers(keeper, lambda found: WORD in f"{found.entries}")
    call: Awaitable[Any] = story.turn(58) if name == "turn" else story.recall("dm", WORD)
    reading = asyncio.ensure_future(call)
    await answer.wait()
    await story.rewind(59)
    go.set()
    assert WORD not in f"{await reading}"
    assert WORD not in (await story.turn(58)).text
    assert WORD not in (await story.context("dm", budget=20_000)).text


def test_a_file_is_opened_while_someone_else_is_at_it(tmp_path: Path) -> None:
    path = tmp_path / "stories.db"
    file = open_store_file(path, durable=True, busy_timeout=5.0, read_only=False)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    later = threading.Timer(0.2, other.close)
    later.start()
    db = file.connect(busy_timeout=0)
    later.join()
    assert db.execute("PRAGMA busy_timeout").fetchone() == (0,)
    db.close()


@pytest.mark.parametrize("forgotten", [2, 20, 60])
async def test_a_turn_is_forgotten_beside_what_the_author_wrote_before_the_last_turn_was_told_again(clean: Clean, forgotten: int) -> None:
    keeper = await clean.open()
    story = await clean.story(keeper, 120, forgotten)
    edited = await story.edit(5, "Elena takes the silver key, and promises to return it by dawn.")
    above = [fold for fold in await story.folds("dm") if fold.level and edited.id in await story.sources(fold)]
    await story.override(above[0].id, "They count, day after day.")
    await story.regenerate("The last turn tells of nothing but rain.")
    await story.forget(forgotten)
    context = await story.context("dm", budget=600)
    assert {turn.id for turn in await story.turns(seat="dm")} <= set(await story.sources(context))
    await clean.check(keeper)


async def test_a_turn_is_forgotten_beside_one_that_told_of_someone_before_it_was_edited(clean: Clean) -> None:
    keeper = await clean.open()
    story = await keeper.story(KEY, seats=SEATS)
    await story.append("dm", "Nobody is here.", mentions=["Mira"])
    await story.append_many(drafts(2, 40, 5))
    await story.edit(3, "He counts the crowns, and goes.")  # the chunk knows Mira all the same
    await story.edit(4, "It rains on the mill.")
    for number in (2, 6, 7, 8):
        await story.edit(number, f"It rains on day {number}.")
    await story._hot.checkpoint()
    await story.forget(5)
    await story._hot.checkpoint()
    await story.edit(20, "Nobody rings anything.")
    await clean.check(keeper)
