"""Checkpoints, which store what was derived: many stories have one due at the same time, and nobody waits for that."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

import talekeeper as tk
from talekeeper.folds.nodes import Node, extract
from talekeeper.folds.shelf import Shelf
from talekeeper.formats import export_story
from talekeeper.live import hot
from talekeeper.memory import remember
from talekeeper.recent import IN_ALL, LEAST
from talekeeper.story import residents
from talekeeper.story.residents import CHECKPOINTS_AT_ONCE, HELD
from talekeeper.testing.models import MoodyModel

CROWD = IN_ALL // LEAST
"""So many stories have a checkpoint due after as few turns as can be."""
SEATS = [tk.Seat("dm", role="dm"), tk.Seat("ash")]


def key(session: int) -> tk.MemoryKey:
    return tk.MemoryKey(tenant_id="t", user_id="u", session_id=str(session))


def drafts(count: int) -> list[tk.Draft]:
    return [tk.Draft("ash", f"I swear to Maren that I bring {number} silver keys to the mill.") for number in range(count)]


async def test_whoever_appends_waits_for_few_folds_while_a_crowd_has_checkpoints_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def counted(*args: Any) -> Any:
        nonlocal made
        made += 1
        return extract(*args)

    async with tk.open(tmp_path / "crowd.db", counter=tk.Heuristic()) as keeper:
        crowd = [await keeper.story(key(number), seats=SEATS) for number in range(CROWD)]
        for story in crowd:
            await story.append_many(drafts(LEAST - 1))
        monkeypatch.setattr(hot, "extract", counted)
        stored = asyncio.gather(*(_saved(story) for story in crowd))
        most = before = 0
        while not stored.done():
            await asyncio.sleep(0)
            most, before = max(most, made - before), made
        assert made > CROWD
        assert most <= 2 * CHECKPOINTS_AT_ONCE * hot.AT_A_TIME


async def _saved(story: tk.Story) -> None:
    await story.append("ash", "And one more.")
    while story._hot.saved_at == 0:
        await asyncio.sleep(0.001)


async def test_who_tells_faster_than_can_be_stored_is_held_back_until_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = asyncio.Event()
    real = hot.Hot.checkpoint

    async def checkpoint(self: hot.Hot) -> None:
        await stored.wait()
        await real(self)

    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        monkeypatch.setattr(hot.Hot, "checkpoint", checkpoint)
        clock = asyncio.get_running_loop().time
        await story.append_many(drafts(hot.FAR_BEHIND * keeper._residents.allowance.lines - 1))
        began = clock()
        await story.append("ash", "Not yet too many.")
        assert clock() - began < HELD
        for text in ("One too many.", "And another."):
            began = clock()
            await story.append("ash", text)
            assert clock() - began >= HELD
        waiting = asyncio.create_task(story.append_many(drafts(1)))
        stored.set()
        await waiting
        while story._hot.lag >= 1:
            await asyncio.sleep(0.001)
        texts = [turn.text for turn in await story.turns(after=story.head - 4)]
        assert {"Not yet too many.", "One too many.", "And another."} <= set(texts)
        stored.clear()
        began = clock()
        await story.append("ash", "There is time again.")
        assert clock() - began < HELD
        stored.set()


@pytest.mark.parametrize("seconds", [60, 0])
async def test_a_keeper_closes_while_checkpoints_wait_for_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(residents, "CLOSING", seconds)
    async with tk.open(tmp_path / "crowd.db", counter=tk.Heuristic()) as keeper:
        crowd = [await keeper.story(key(number), seats=SEATS) for number in range(CROWD)]
        await asyncio.gather(*(story.append_many(drafts(LEAST)) for story in crowd))
    async with tk.open(tmp_path / "crowd.db", counter=tk.Heuristic()) as keeper:
        stories = [await keeper.story(key(number)) for number in range(CROWD)]
        stored = [story for story in stories if story._hot.saved_at == LEAST]
        assert len(stored) == CROWD if seconds else len(stored) < CROWD
        assert {len(await story.turns()) for story in stories} == {LEAST}
        assert len({(await story.context("ash", budget=500)).text for story in (stories[0], stories[-1])}) == 1


async def test_a_keeper_that_two_close_at_once_is_closed(tmp_path: Path) -> None:
    keeper = await tk.open(tmp_path / "story.db", counter=tk.Heuristic())
    story = await keeper.story(key(1), seats=SEATS)
    await story.append_many(drafts(LEAST))
    await asyncio.gather(keeper.close(), keeper.close())
    async with keeper:  # and may be opened again
        assert (await keeper.story(key(1)))._hot.saved_at == LEAST


async def test_a_keeper_whose_closing_is_cancelled_is_closed(tmp_path: Path) -> None:
    keeper = await tk.open(tmp_path / "story.db", counter=tk.Heuristic())
    story = await keeper.story(key(1), seats=SEATS)
    await story.append_many(drafts(LEAST))
    store = keeper.store
    closing = asyncio.create_task(keeper.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    with pytest.raises(tk.StoreClosed):
        await store.load(key(1))
    async with keeper:
        assert len(await (await keeper.story(key(1))).turns()) == LEAST


async def test_what_is_told_while_the_keeper_closes_begins_nothing_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = asyncio.Event()
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic(), summarizer=MoodyModel()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        real = keeper.store.write

        async def write(commit: Any) -> int:
            rev = await real(commit)
            await closed.wait()
            return rev

        monkeypatch.setattr(keeper.store, "write", write)
        telling = asyncio.create_task(story.append("ash", "The last one."))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(keeper.store, "write", real)
    closed.set()
    await telling
    assert not keeper._residents.running
    async with keeper:
        assert (await (await keeper.story(key(1))).append("ash", "One more.")).seq == 2


async def test_a_story_that_was_deleted_elsewhere_is_put_away_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residents, "STORIES_IN_MEMORY", 1)
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper, tk.open(tmp_path / "story.db") as elsewhere:
        await (await keeper.story(key(1), seats=SEATS)).append_many(drafts(LEAST))
        await elsewhere.delete(key(1))
        other = await keeper.story(key(2), seats=SEATS)
        assert (await other.append("ash", "Elsewhere.")).seq == 1


async def test_a_burst_of_appends_to_one_story_has_its_checkpoints_too(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append("ash", "The first one.")
        await asyncio.gather(*(story.append("ash", f"Number {number} of very many.") for number in range(3 * hot.CHECKPOINT_EVERY)))
        for _ in range(500):
            if story._hot.saved_at > hot.CHECKPOINT_EVERY:
                break
            await asyncio.sleep(0.01)
        assert story._hot.saved_at > hot.CHECKPOINT_EVERY


async def test_a_checkpoint_that_was_cancelled_before_it_began_is_begun_again(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(hot.CHECKPOINT_EVERY))
        (task,) = keeper._residents.running.values()
        task.cancel()
        await asyncio.sleep(0)
        await story.append("ash", "And one more.")
        await asyncio.wait_for(_stored(story), 5)


async def _stored(story: tk.Story) -> None:
    while story._hot.saved_at == 0:
        await asyncio.sleep(0.001)


class Reads:
    """Counts the entries that were read from a store."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entries = 0
        self._read = store.read
        monkeypatch.setattr(store, "read", self.read)

    async def read(self, request: Any) -> Any:
        found = await self._read(request)
        self.entries += len(found.entries)
        return found


async def test_who_goes_back_after_very_much_was_told_at_once_reads_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = 12 * hot.CHECKPOINT_EVERY + 7
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(told))
        await story.settle()
        piecemeal = await keeper.story(key(2), seats=SEATS)
        for at in range(0, told, 100):
            await piecemeal.append_many(drafts(told)[at : at + 100])
        await piecemeal.settle()
        remembered = await story.context("ash", budget=2000)
        assert remembered.text == (await piecemeal.context("ash", budget=2000)).text
        reads = Reads(keeper.store, monkeypatch)
        for back in (1, 1, hot.CHECKPOINT_EVERY, 5 * hot.CHECKPOINT_EVERY):
            before = reads.entries
            await story.rewind(story.head - back)
            assert reads.entries - before <= 2 * hot.CHECKPOINT_EVERY
            await piecemeal.rewind(story.head)
            assert (await story.context("ash", budget=2000)).text == (await piecemeal.context("ash", budget=2000)).text


async def test_a_story_may_be_told_on_and_gone_back_in_while_very_much_of_it_is_stored(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        for number in range(3):
            await story.append_many(drafts(4 * hot.CHECKPOINT_EVERY))
            storing = asyncio.create_task(story._hot.checkpoint())
            await asyncio.sleep(0.01 * number)
            for _ in range(20):
                await story.append("ash", f"And number {number} again.")
                await asyncio.sleep(0)
            if number:
                await story.rewind(story.head - 5)
            await story.append("dm", f"Maren takes {number} of the keys.")
            await storing
            await story.settle()
        told, text = await story.turns(), (await story.context("ash", budget=2000)).text
        assert [turn.text for turn in told].count("And number 1 again.") == 15
        assert len(told) == 3 * 4 * hot.CHECKPOINT_EVERY + 3 * 20 - 2 * 5 + 3
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1))
        assert await story.turns() == told
        assert (await story.context("ash", budget=2000)).text == text


async def test_a_checkpoint_that_fails_is_not_tried_with_every_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0
    broken = True
    real = hot.Hot.checkpoint

    async def checkpoint(self: hot.Hot) -> None:
        nonlocal tries
        tries += 1
        if broken:
            raise tk.StoreError("there is no room for anything so large")
        await real(self)

    monkeypatch.setattr(hot.Hot, "checkpoint", checkpoint)
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        for _ in range(2 * hot.CHECKPOINT_EVERY):
            await story.append("ash", "I bring one more silver key to the mill.")
            await asyncio.sleep(0)
        assert tries in (1, 2)
        broken = False
        await story.append("ash", "And one more.")
        await story.settle()
        assert story._hot.saved_at == story.head


async def test_a_model_is_asked_once_for_each_fold_however_much_was_told_at_once(tmp_path: Path) -> None:
    asked: list[str] = []

    async def model(messages: Any) -> str:
        asked.append(str(messages))
        return "Ash brings silver keys to the mill, as sworn to Maren."

    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic(), summarizer=model) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(8 * hot.CHECKPOINT_EVERY))
        await asyncio.wait_for(story.settle(), 60)
        folds = (await story.stats()).folds
    assert 0 < len(asked) <= 3 * folds  # each may be repaired or tried again a little, and then it is done


async def test_a_models_text_that_is_being_stored_while_very_much_is_gone_over_again_is_there_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def model(messages: Any) -> str:
        asked.append(str(messages))
        return f"Ash brings silver keys to the mill, as sworn to Maren, says number {len(asked)}."

    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic(), summarizer=model) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        real, slow = keeper.store.write, True

        async def write(commit: Any) -> int:
            if commit.texts and slow:
                await asyncio.sleep(0.3)
            return await real(commit)

        monkeypatch.setattr(keeper.store, "write", write)
        await story.append_many(drafts(3 * hot.CHECKPOINT_EVERY))
        before = story._hot.loaded
        while story._hot.loaded is before:
            await asyncio.sleep(0.01)
        slow = False
        await asyncio.wait_for(story.settle(), 60)
        texts = (await story.context("ash", budget=1500)).text, (await story.context("dm", budget=3000)).text
        stored = [text.key for text in (await story._hot.read(folds=[node.key for node in _folds(story)])).texts]
        assert all(len(node.texts) == 1 for node in _folds(story) if node.key in stored)
        assert len(stored) == len(set(stored))
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic(), summarizer=model) as keeper:
        story = await keeper.story(key(1))
        assert ((await story.context("ash", budget=1500)).text, (await story.context("dm", budget=3000)).text) == texts


def _folds(story: tk.Story) -> list[Node]:
    roots = [node for view in story._hot.state.views.values() for tree in view.trees for node in tree.roots()]
    return list({node.key: node for node in roots}.values())


async def test_a_branch_that_has_gone_to_another_name_is_let_go_of_with_very_much_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residents, "STORIES_IN_MEMORY", 1)
    async with tk.open(tmp_path / "story.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(3))
        fork = await story.fork(name="aside")
        await fork.append_many(drafts(3 * hot.CHECKPOINT_EVERY))
        await story.adopt("aside")
        other = await keeper.story(key(2), seats=SEATS)
        await other.append("ash", "Elsewhere.")
        assert len(await (await keeper.story(key(1))).turns()) == 3 + 3 * hot.CHECKPOINT_EVERY


def test_a_fold_that_someone_holds_is_the_same_for_all() -> None:
    shelf = Shelf()
    held = Node("held", 1)
    shelf.add(held)
    shelf.records([_made(held)])
    shelf.saved([held])
    for number in range(10):
        shelf.put(Node(f"other {number}", 1))
    shelf.trim(4)
    assert shelf.get("held") is held
    assert shelf.put(Node("held", 1)) is held
    assert shelf.get("other 0") is None


def _made(node: Node) -> Node:
    node.sentences, node.first, node.last, node.closed_first, node.closed, node.turn_count, node.tokens = (), 1, 1, 1, 1, 1, 1
    return node


def test_a_keeper_may_be_opened_again_in_another_event_loop(tmp_path: Path) -> None:
    keeper = tk.open(tmp_path / "crowd.db", counter=tk.Heuristic())
    failures: list[object] = []

    async def crowd() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with keeper:
            stories = [await keeper.story(key(number), seats=SEATS) for number in range(6)]
            await asyncio.gather(*(story.append_many(drafts(hot.CHECKPOINT_EVERY)) for story in stories))
            await asyncio.gather(*(_stored(story) for story in stories))

    asyncio.run(crowd())
    asyncio.run(crowd())
    gc.collect()
    assert failures == []


async def longest_hold(work: Awaitable[object]) -> tuple[float, float]:
    """For how long the work kept the event loop to itself at a stretch, and how long it took in all, in seconds of this thread's own time:
    others may be busy on this machine, and the garbage of all the tests is not counted either."""
    longest, began = 0.0, time.thread_time()
    doing = asyncio.ensure_future(work)
    gc.disable()
    try:
        while not doing.done():
            since = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - since)
    finally:
        gc.enable()
    await doing
    return longest, time.thread_time() - began


async def test_nobody_keeps_the_loop_to_themselves_with_a_story_that_came_at_once() -> None:
    async def lines(keeper: tk.Keeper) -> list[str]:
        return [line async for line in export_story(keeper, key(1))]

    async with tk.open(":memory:", counter=tk.Heuristic()) as keeper:  # where nothing is waited for
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(2000))
        await story.settle()
        held = {"remember": await longest_hold(remember(story, "ash", budget=4000)), "export": await longest_hold(lines(keeper))}
    for longest, all_of_it in held.values():
        assert longest < max(0.1, all_of_it / 4), held


async def test_a_counter_loads_its_tables_aside_before_it_counts_very_much() -> None:
    threads: list[int] = []

    class Counter(tk.Heuristic):
        def count(self, text: str) -> int:
            threads.append(threading.get_ident())
            return super().count(text)

    async with tk.open(":memory:", counter=Counter()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(200))
    assert threads[0] != threading.get_ident()
    assert set(threads[1:]) == {threading.get_ident()}


async def test_a_last_checkpoint_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: hot.Hot, **_: Any) -> None:
        raise tk.StoreFull("'crowd.db' has no room left")

    async with tk.open(tmp_path / "crowd.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append_many(drafts(residents.CHECKPOINT_ON_CLOSE))
        monkeypatch.setattr(hot.Hot, "checkpoint", fail)
    assert caplog.messages == ["last checkpoint failed: 'crowd.db' has no room left"]


async def test_a_branch_whose_name_was_taken_is_put_away_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with tk.open(tmp_path / "adopted.db", counter=tk.Heuristic()) as keeper:
        story = await keeper.story(key(1), seats=SEATS)
        await story.append("dm", "Once upon a time.")
        side = await story.fork(name="side")
        for draft in drafts(40):
            await side.append(draft.speaker, draft.text)
        await story.adopt("side")
    assert [record.message for record in caplog.records] == []


async def test_scenes_with_places_of_their_own_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "s.db", counter=tk.Heuristic(), durable=False) as keeper:
        story = await keeper.story(tk.MemoryKey("acme", "ana", "roads"), seats=[tk.Seat("dm", role="dm"), tk.Seat("ana")])
        for number in range(1500):
            turn = await story.append("dm", "On and on.", location=f"road {number}")
            await asyncio.sleep(0)
            assert (turn.location, turn.audience) == (f"road {number}", ("ana", "dm"))
        assert len(story._hot.manners) <= 1024
