"""The portal for code without an event loop: the same calls, the same results, the same errors, from any thread."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import pytest
from tests import sync_types

import talekeeper as tk
from talekeeper import memory
from talekeeper.formats import export_story
from talekeeper.memory import callbacks, facts
from talekeeper.story.following import Follower
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
SEATS = (tk.Seat("dm", role="dm"), tk.Seat("rogue", token_limit=400), tk.Seat("bard", token_limit=400))


@pytest.fixture
def keeper(target: str) -> Iterator[tk.sync.Keeper]:
    with tk.sync.open(target, counter=tk.Heuristic(), clock=lambda: 0.0, durable=False) as keeper:
        yield keeper


@pytest.fixture
def story(keeper: tk.sync.Keeper) -> tk.sync.Story:
    return keeper.story(KEY, seats=SEATS)


def assert_only(threads: set[threading.Thread]) -> None:
    """No other threads than these are left; ones that are on their way out are waited for."""
    for thread in set(threading.enumerate()) - threads:
        thread.join(2)
    assert set(threading.enumerate()) <= threads


def words(number: int) -> str:
    return f"m{number}m: Captain Voss counts the silver coins on the table twice and says that nobody leaves before the bell."


def test_the_portal_gives_what_the_async_door_gives(story: tk.sync.Story) -> None:
    async def told() -> list[Any]:
        async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: 0.0) as keeper:
            other = await keeper.story(KEY, seats=SEATS)
            for number in range(60):
                await other.append("dm", words(number), heard_by=["bard"] if number % 7 == 0 else None)
            await other.edit(3, "Edited.")
            return [
                [(await other.context(seat.id, budget=budget, query="silver")).text for seat in SEATS for budget in (150, 400, 3000)],
                [(hit.turn.text, hit.score) for hit in await other.recall("rogue", "silver coins")],
                [(turn.seq, turn.text) for turn in await other.turns()],
                await other.stats(), other.presence(), other.head, other.seats, other.version,
            ]  # fmt: skip

    for number in range(60):
        story.append("dm", words(number), heard_by=["bard"] if number % 7 == 0 else None)
    story.edit(3, "Edited.")
    assert [
        [story.context(seat.id, budget=budget, query="silver").text for seat in SEATS for budget in (150, 400, 3000)],
        [(hit.turn.text, hit.score) for hit in story.recall("rogue", "silver coins")],
        [(turn.seq, turn.text) for turn in story.turns()],
        story.stats(), story.presence(), story.head, story.seats, story.version,
    ] == asyncio.run(told())  # fmt: skip


def test_errors_pass_through_as_they_are(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    with pytest.raises(tk.UnknownSeat, match="did you mean 'rogue'"):
        story.append("rouge", "Hi.")
    with pytest.raises(tk.WrongType):
        story.append("dm", None)  # type: ignore[arg-type]
    with pytest.raises(tk.MissingKey):
        keeper.story(None)  # type: ignore[arg-type]
    story.append("dm", "A pinned line.")
    story.pin(1)
    with pytest.raises(tk.BudgetTooSmall) as raised:
        story.context("rogue", budget=1)
    assert raised.value.needed > 1
    with pytest.raises(AttributeError):
        story.no_such_method  # type: ignore[attr-defined]  # noqa: B018


def test_stories_that_come_back_are_wrapped_too(story: tk.sync.Story) -> None:
    story.append("dm", "One.")
    fork = story.fork(name="what if")
    fork.append("dm", "Two.")
    assert [turn.text for turn in fork.turns()] == ["One.", "Two."]
    main = fork.switch("main")
    assert [turn.text for turn in main.turns()] == ["One."]
    assert (fork.branch, main.branch, fork.key) == ("what if", "main", KEY)


def test_whatever_has_to_be_waited_for_is_wrapped_too(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    for number in range(60):
        story.append("dm", words(number))
    past = story.at(5)
    assert [turn.seq for turn in past.turns()] == [1, 2, 3, 4, 5]
    assert "m4m" in past.context("rogue").text
    assert past.head == 5
    assert keeper.store.keys() == [KEY]
    follower = tk.sync.call(Follower, story)
    assert follower.start("0")
    assert len(follower.news()) == 60
    lines = list(tk.sync.call(export_story, keeper, KEY))
    assert len(lines) > 60
    assert all(isinstance(line, str) for line in lines)
    assert len(list(tk.sync.call(export_story, keeper=keeper, key=KEY))) == len(lines)


def test_faces_and_what_they_give_are_wrapped_too(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    story.append("dm", "Lin promises the brass key to Voss.")
    manager = tk.sync.call(memory.MemoryManager, story)
    assert "brass key" in manager.get_context("rogue")
    memories = tk.sync.call(tk.SessionMemories, tk.ShortTermMemoryConfig(strategy="rolling_summary"), keeper=keeper)
    chat = memories.memory(tk.MemoryKey("acme", "ana", "chat"))
    chat.add_turn("What is in the box?", "A brass key.")
    assert "brass key" in str(chat.get_llm_context())


def test_no_method_gives_what_would_have_to_be_awaited(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    story.append("dm", "One.")
    for each in (keeper, story, story.at(1), keeper.store):
        for name in (name for name in dir(each) if not name.startswith("_")):
            assert not inspect.iscoroutinefunction(getattr(each, name, None)), name


def test_a_type_checker_knows_what_comes_back(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    assert_type(story.append("dm", "Lin promises the brass key to Voss."), tk.Turn)
    assert_type(story.context("rogue", budget=500).text, str)
    assert_type(keeper.story(KEY).fork(name="what if").branches(), list[tk.BranchInfo])
    assert_type(story.at(1), tk.sync.Past)
    assert_type(keeper.store.keys(), list[tk.MemoryKey])
    assert_type(tk.sync.call(memory.MemoryManager, story), tk.sync.MemoryManager)
    assert_type(tk.sync.call(memory.find_callbacks, story, "dm"), list[memory.Callback])
    assert_type(tk.sync.call(export_story, keeper, KEY), Iterator[str])
    with tk.sync.memory() as chat:
        assert_type(chat, tk.sync.DefaultShortTermMemory)
        assert_type(chat.get_llm_context(), dict[str, Any])
    with pytest.raises(TypeError):
        story.append("dm", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        story.append("dm", "Hi.", audience=["rogue"])  # type: ignore[call-arg]


def test_what_a_type_checker_knows_is_what_the_async_faces_say() -> None:
    assert sync_types.FILE.read_text("utf-8") == sync_types.written(), "run `python -m tests.sync_types`"
    assert sorted(re.findall(r"^(?:class|def) (\w+)", sync_types.written(), re.M)) == sorted([*tk.sync.__all__, *["call"] * 8])


def test_what_a_type_checker_knows_is_all_that_is_there(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    faces: dict[str, object] = {
        "Keeper": keeper,
        "Story": story,
        "Past": story.at(0),
        "DefaultShortTermMemory": tk.DefaultShortTermMemory(),
    }
    for name, face in faces.items():
        known = re.search(rf"^class {name}:\n((?: .*\n|\n)+)", sync_types.FILE.read_text("utf-8"), re.M)
        assert known is not None
        assert {member for member in dir(face) if member[0] != "_"} == set(re.findall(r"^    (?:def )?([a-z]\w*)[(:]", known[1], re.M))


def test_values_come_back_as_they_are(story: tk.sync.Story) -> None:
    turn = story.append("dm", "One.")
    assert isinstance(turn, tk.Turn)
    assert isinstance(story.context("rogue"), tk.Context)
    assert story.rewind(0) == 0
    assert story.turns() == []
    assert {"append", "context", "fork"} <= set(dir(story))


def test_all_stories_of_a_keeper_are_within_reach(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    assert keeper.keys() == [KEY]
    assert keeper.delete(KEY) is True
    assert keeper.keys() == []
    with pytest.raises(tk.UnknownStory):
        story.turns()


def test_what_was_told_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "saga.db"
    with tk.sync.open(path) as keeper:
        keeper.story(KEY, seats=SEATS).append("dm", "The innkeeper slides you a key.")
    with tk.sync.open(path) as keeper:
        assert [turn.text for turn in keeper.story(KEY).turns()] == ["The innkeeper slides you a key."]


def test_after_closing_nothing_works_and_no_thread_is_left(target: str) -> None:
    before = set(threading.enumerate())
    keeper = tk.sync.open(target)
    story = keeper.story(KEY, seats=SEATS)
    assert set(threading.enumerate()) - before
    keeper.close()
    assert_only(before)
    with pytest.raises(tk.TalekeeperError, match=r"closed|open"):
        story.append("dm", "Too late.")
    with pytest.raises(tk.TalekeeperError, match=r"closed|open"):
        keeper.keys()


def test_closing_twice_is_harmless(target: str) -> None:
    keeper = tk.sync.open(target)
    keeper.close()
    keeper.close()


def test_a_keeper_that_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(tk.TalekeeperError):
        tk.sync.open("ftp://nowhere")
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"This is no database at all." * 100)
    with pytest.raises(tk.StoreError):
        tk.sync.open(broken)
    assert_only(before)


def test_many_threads_may_use_one_story_at_once(story: tk.sync.Story) -> None:
    def tell(number: int) -> None:
        for n in range(10):
            story.append("dm", f"Thread {number}, line {n}.")
            story.context("rogue", budget=300)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(tell, number) for number in range(8)]:
            future.result()
    texts = [turn.text for turn in story.turns()]
    assert len(texts) == len(set(texts)) == 80
    for number in range(8):
        mine = [text for text in texts if text.startswith(f"Thread {number},")]
        assert mine == [f"Thread {number}, line {n}." for n in range(10)], "each thread's own order is kept"


def test_many_threads_may_use_many_stories_at_once(keeper: tk.sync.Keeper) -> None:
    def play(number: int) -> list[str]:
        story = keeper.story(tk.MemoryKey("acme", "ana", f"story {number}"), seats=SEATS)
        for n in range(15):
            story.append("dm", f"Story {number}, line {n}.")
        return [turn.text for turn in story.turns()]

    with ThreadPoolExecutor(8) as pool:
        for number, texts in enumerate(pool.map(play, range(16))):
            assert texts == [f"Story {number}, line {n}." for n in range(15)]
    assert len(keeper.keys()) == 16


def test_one_slow_call_does_not_hold_up_the_others(target: str) -> None:
    started, released = threading.Event(), threading.Event()

    async def model(messages: Sequence[tk.Message]) -> str:
        started.set()
        await asyncio.to_thread(released.wait)
        return ""

    with tk.sync.open(target, summarizer=model, counter=tk.Heuristic(), timeout=30, retry=tk.RetryPolicy(attempts=1)) as keeper:
        story = keeper.story(KEY, seats=SEATS)
        story.append_many([tk.Draft("dm", words(number)) for number in range(60)])
        waiter = threading.Thread(target=story.settle)
        waiter.start()
        assert started.wait(10)
        start = time.perf_counter()
        story.append("dm", "Meanwhile.")
        assert "Meanwhile." in story.context("rogue").text
        assert time.perf_counter() - start < 5
        assert waiter.is_alive()
        released.set()
        waiter.join()


def test_folds_are_made_behind_the_portal_too(target: str) -> None:
    with tk.sync.open(target, summarizer=MoodyModel(), counter=tk.Heuristic()) as keeper:
        story = keeper.story(KEY, seats=SEATS)
        story.append_many([tk.Draft("dm", words(number)) for number in range(60)])
        story.settle()
        story.append("dm", "The rain stops.")  # models' texts are shown with the next turn that is heard
        assert {fold.made_by for fold in story.folds("rogue")} == {"model"}
        assert story.health().state is tk.HealthState.HEALTHY


async def hits(action: str) -> memory.KeeperResponse:
    return memory.KeeperResponse("Hits.")


@pytest.mark.parametrize(
    "call",
    [
        lambda story: memory.remember(story, "rogue"),
        lambda story: memory.character_facts(story, "rogue"),
        lambda story: facts.add(story, "rogue", "trait", "Rook cannot swim.", of=1),
        lambda story: memory.find_callbacks(story, "rogue"),
        lambda story: callbacks.add(story, "the key", "item", of=1),
        lambda story: callbacks.resolve(story, "the key", of=1),
        lambda story: memory.recap(story, "rogue"),
        lambda story: memory.session_summary(story, "rogue", 0),
        lambda story: memory.add_adventure_moment(story, memory.AdventureMoment(1, "discovery", "A key"), of=1),
        lambda story: memory.pin_moment(story, memory.AdventureMoment(1, "discovery", "A key")),
        lambda story: memory.epilogue_material(story, "rogue"),
        lambda story: memory.build_context(story, "rogue"),
        lambda story: memory.resolve_action_with_moments(story, hits, "I hit."),
        lambda story: memory.context_manager(story),
    ],
)
def test_a_story_of_the_portal_is_refused_by_what_is_async_before_anything_is_written(
    story: tk.sync.Story, call: Callable[[Any], Awaitable[Any]]
) -> None:
    story.append("dm", "Mira slides you a key.")
    before = story.version

    async def try_it() -> None:
        with pytest.raises(tk.WrongType, match=re.escape("tk.sync.call(function, story")):
            await call(story)

    asyncio.run(try_it())
    assert story.version == before


async def test_the_portal_may_be_used_from_a_thread_of_an_async_program(target: str) -> None:
    def play() -> str:
        with tk.sync.open(target) as keeper:
            story = keeper.story(KEY, seats=SEATS)
            story.append("dm", "Hello.")
            return story.context("rogue").text

    assert "Hello." in await asyncio.to_thread(play)


def test_whoever_uses_a_keeper_while_it_is_closed_is_told_so_and_not_kept_waiting(target: str) -> None:
    seen: list[str] = []

    def tell(story: tk.sync.Story) -> None:
        try:
            while True:
                story.append("dm", "On and on.")
        except tk.StoreClosed:
            seen.append("closed")

    for _ in range(8):
        keeper = tk.sync.open(target)
        story = keeper.story(KEY, seats=SEATS)
        threads = [threading.Thread(target=tell, args=(story,), daemon=True) for _ in range(4)]
        threads += [threading.Thread(target=keeper.close, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert seen == ["closed"] * 4
        seen.clear()


def test_a_call_that_waits_for_something_else_ends_with_the_keeper(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.portal.PATIENCE", 0.05)
    ended, failures = list[str](), list[BaseException]()
    started = threading.Event()

    async def endless(story: tk.Story) -> None:
        try:
            started.set()
            await asyncio.sleep(3600)
        finally:
            ended.append("cleaned up")

    def wait() -> None:
        try:
            tk.sync.call(endless, story)
        except tk.StoreClosed as exc:
            failures.append(exc)

    with tk.sync.open(target) as keeper:
        story = keeper.story(KEY, seats=SEATS)
        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        assert started.wait(10)
    waiter.join(20)
    assert (waiter.is_alive(), ended, [str(failure) for failure in failures]) == (
        False, ["cleaned up"], ["the keeper was closed: open it again"],
    )  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_told_that_the_keeper_is_not_its_own(keeper: tk.sync.Keeper, story: tk.sync.Story) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            with pytest.raises(tk.StoreClosed):
                story.append("dm", "Nobody is there to hear it.")
            keeper.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    story.append("dm", "The one who opened it goes on.")
