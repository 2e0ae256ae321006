"""A round at the table: asked, ruled, told and written in one step; a person's turn waits, and nothing is half-written."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.conftest import OpenKeeper
from tests.table.tables import PARTY

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask
from talekeeper.table.playing.rounds import Beat, Game, Rounds
from talekeeper.table.playing.seating import Setup, Table, begin, resume
from talekeeper.table.rules.ledger import ledger
from talekeeper.table.storyteller import Storyteller

KEY = tk.MemoryKey("local", "local", "game")
PACK = str(Path(__file__).with_name("small.toml"))


class Plain:
    """Answers in the plainest words, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.fail_at = ""
        self.commands: dict[str, Sequence[Mapping[str, object]]] = {}

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        self.asks.append(ask)
        if ask.role == self.fail_at:
            raise tk.ModelFailed("the model is not reachable")
        yield f"{ask.role} speaks "
        yield f"in round {ask.round}."

    async def rule(self, ask: Ask) -> KeeperResponse:
        self.asks.append(ask)
        if ask.role == self.fail_at:
            raise tk.ModelFailed("the model is not reachable")
        found = tuple(next((commands for words, commands in self.commands.items() if words in ask.action), ()))
        kind = "discovery" if found else None
        return KeeperResponse(f"Rolled 12. {ask.actor} acts.", kind, f"{ask.actor} did it" if kind else None, 0.7, found)


async def table_of(keeper: tk.Keeper, brain: Plain, *humans: str, seed: int = 3) -> Table:
    return await begin(keeper, KEY, Setup(PACK, PARTY, humans, seed), lambda scenario: brain)


async def play(game: Game, *answers: str) -> list[Beat]:
    """One round, with what people say in it."""
    beats = [beat async for beat in game.round()]
    for answer in answers:
        assert game.waiting is not None
        beats += [beat async for beat in game.answer(answer)]
    return beats


GET_KEY = ({"type": "gain_item", "item": "mill_key", "who": "wren"},)
GO = ({"type": "change_location", "to": "road"},)


async def test_a_round_is_asked_in_order_and_written_in_one_step(keeper: tk.Keeper) -> None:
    brain = Plain()
    table = await table_of(keeper, brain)
    async with Game(table) as game:
        beats = await play(game)
    assert [ask.role for ask in brain.asks] == ["dm", "pc", "keeper", "pc", "keeper", "narrator"]
    assert [(turn.kind, turn.speaker) for turn in await table.story.turns()][1:] == [
        ("said", "dm"), ("said", "wren"), ("event", ""), ("said", "tam"), ("event", ""), ("said", "dm"),
    ]  # fmt: skip
    assert beats[-1].kind == "done"
    assert "".join(beat.text for beat in beats if beat.role == "dm") == "dm speaks in round 1."
    assert await table.round_now() == 2


async def test_a_crash_before_memories_are_noted_makes_none_of_them_twice(keeper: tk.Keeper) -> None:
    brain = Plain()
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        brain.commands = {"I take the key": GET_KEY, "Let us go": GO}
        await play(game, "I take the key.")
        await play(game, "Let us go.")
    before = await memories(table)
    assert len(before) > 1
    await table.story.mark("table:remembered", {"seq": 0}, heard_by=(), keep=1)  # as it stands after a crash: made, and not noted
    again = await resume(keeper, KEY, lambda scenario: Plain())
    assert await memories(again) == before


async def memories(table: Table) -> list[str]:
    topics = await table.story.topics(None, prefix="scope:")
    return [mark.id for topic in topics for mark in await table.story.marks(None, topic)]


async def test_what_was_ruled_changes_the_game_and_leaves_a_moment_and_memories(keeper: tk.Keeper) -> None:
    brain = Plain()
    brain.commands = {"key": GET_KEY, "road": GO}
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        await play(game, "I ask Mara Holt for the key.")
        assert (await table.state()).items["mill_key"] == "wren"
        assert "get_key" in (await table.state()).objectives
        await play(game, "To the mill road!")
    state = await table.state()
    assert {state.where[seat] for seat in PARTY} == {"road"}
    context = await table.story.context("tam", budget=1000)
    assert "(discovery): wren did it" in context.text
    assert "Objective completed: “The errand”, “Get the key”." in await table.memory.world_memory("tam")
    assert "Mara" in await table.memory.location_memory("wren", "inn")
    assert await table.memory.entries("dm", "npc", "mara")


async def test_a_persons_turn_waits_until_tomorrow(open_file: OpenKeeper, tmp_path: Path) -> None:
    brain = Plain()
    keeper = await open_file()
    async with Game(await table_of(keeper, brain, "tam"), tmp_path / "rounds") as game:
        async for _ in game.round():
            pass
        assert game.waiting is not None
        assert game.waiting.seat == "tam"
    asked = len(brain.asks)
    await keeper.close()
    keeper = await open_file()
    table = await resume(keeper, KEY, lambda scenario: brain)
    async with Game(table, tmp_path / "rounds") as game:
        assert game.waiting is not None
        assert game.waiting.scene is not None
        assert [beat.kind async for beat in game.answer("I wait at the window.")][-1] == "done"
        assert game.waiting is None
    texts = [turn.text for turn in await table.story.turns()]
    assert texts.count("dm speaks in round 1.") == 1, "what was said before is not said again"
    assert "I wait at the window." in texts
    assert [ask.role for ask in brain.asks[asked:]].count("dm") == 0


@pytest.mark.parametrize("role", ["keeper", "narrator"])
async def test_a_round_that_is_cut_short_after_an_answer_is_taken_up_after_it(open_file: OpenKeeper, tmp_path: Path, role: str) -> None:
    brain = Plain()
    keeper = await open_file()
    async with Game(await table_of(keeper, brain, "wren"), tmp_path / "rounds") as game:
        async for _ in game.round("more rain"):
            pass
        brain.fail_at = role
        with pytest.raises(tk.ModelFailed):
            [beat async for beat in game.answer("I bar the door.")]
    await keeper.close()
    brain.fail_at, asked = "", len(brain.asks)
    table = await resume(await open_file(), KEY, lambda scenario: brain)
    async with Game(table, tmp_path / "rounds") as game:
        assert game.waiting is None
        beats = [beat async for beat in game.round()]
    assert [beat.text for beat in beats if beat.kind == "speech"][:2] == ["dm speaks in round 1.", "I bar the door."]
    assert brain.asks[asked].role == role
    texts = [turn.text for turn in await table.story.turns()]
    assert texts.count("I bar the door.") == texts.count("dm speaks in round 1.") == 1


class Slow(Plain):
    """Takes its time, so that it can be caught in the middle."""

    pause = 0.0

    async def rule(self, ask: Ask) -> KeeperResponse:
        await asyncio.sleep(self.pause)
        return await super().rule(ask)


async def test_an_answer_is_kept_or_asked_for_again_whenever_the_program_dies(open_file: OpenKeeper, tmp_path: Path) -> None:
    """The files as they were at many moments after an answer, each taken up by itself."""
    brain, moments = Slow(), 0
    keeper = await open_file()
    async with Game(await table_of(keeper, brain, "wren"), tmp_path / "rounds") as game:
        async for _ in game.round():
            pass
        brain.pause = 0.05
        answering = asyncio.ensure_future(_all(game.answer("I bar the door.")))
        while not answering.done():
            shutil.copytree(tmp_path, tmp_path / f"moment {moments}", ignore=shutil.ignore_patterns("moment *"))
            moments += 1
            await asyncio.sleep(0.002 if moments < 15 else 0.02)
    brain.pause, asked_again = 0.0, 0
    for moment in range(moments):
        folder = tmp_path / f"moment {moment}"
        async with tk.open(folder / keeper_file(tmp_path)) as again:
            table = await resume(again, KEY, lambda scenario: brain)
            async with Game(table, folder / "rounds") as game:
                asked_again += game.waiting is not None
                await _all(game.answer("I bar the door.") if game.waiting is not None else game.round())
            assert [turn.text for turn in await table.story.turns()].count("I bar the door.") == 1, moment
    assert 0 < asked_again < moments


async def _all(beats: AsyncIterator[Beat]) -> list[Beat]:
    return [beat async for beat in beats]


def keeper_file(folder: Path) -> str:
    return next(path.name for path in folder.glob("*.db"))


async def test_a_seat_that_is_waited_for_can_be_handed_to_the_ai(open_file: OpenKeeper, tmp_path: Path) -> None:
    brain = Plain()
    table = await table_of(await open_file(), brain, "wren")
    async with Game(table, tmp_path / "rounds") as game:
        async for _ in game.round():
            pass
        await table.seat_people([])
        await game.look()
        assert game.waiting is None
        assert [beat async for beat in game.round()][-1].kind == "done"
    assert [ask.role for ask in brain.asks].count("dm") == 1, "the round went on"


async def test_a_round_that_waits_ends_with_its_story(open_file: OpenKeeper, tmp_path: Path) -> None:
    keeper = await open_file()
    async with Rounds(tmp_path / "rounds") as rounds:
        for drop in (False, True):
            table = await table_of(keeper, Plain(), "wren")
            async with Game(table, rounds) as game:
                assert game.waiting is None, "another story of that name has nothing to wait for"
                async for _ in game.round():
                    pass
            if drop:
                await rounds.drop(tk.MemoryKey("local", "local", "gam"))
                assert [one async for one in rounds.saver.alist(None)]
                await rounds.drop(KEY)
                assert not [one async for one in rounds.saver.alist(None)]
            await keeper.delete(KEY)


@pytest.mark.parametrize("role", ["dm", "pc", "keeper", "narrator"])
async def test_a_round_that_fails_leaves_the_story_exactly_as_it_was(keeper: tk.Keeper, role: str) -> None:
    brain = Plain()
    table = await table_of(keeper, brain)
    async with Game(table) as game:
        await play(game)
        before = [turn.id for turn in await table.story.turns()], await table.state(), table.story.head
        brain.fail_at = role
        with pytest.raises(tk.ModelFailed):
            await play(game)
        assert ([turn.id for turn in await table.story.turns()], await table.state(), table.story.head) == before
        brain.fail_at = ""
        await play(game)
    assert await table.round_now() == 3


async def test_who_stops_listening_loses_nothing(keeper: tk.Keeper) -> None:
    brain = Plain()
    table = await table_of(keeper, brain)
    async with Game(table) as game:
        head = table.story.head
        beats = game.round()
        async for beat in beats:
            if beat.role == "pc":
                break
        await beats.aclose()
        assert table.story.head == head
        await play(game)
    assert await table.round_now() == 2


async def test_a_story_that_moved_on_meanwhile_is_not_written_over(keeper: tk.Keeper) -> None:
    brain = Plain()
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        async for _ in game.round():
            pass
        await table.story.append("dm", "Somebody else tells on.")
        with pytest.raises(tk.Conflict):
            [beat async for beat in game.answer("I go.")]
    assert "I go." not in [turn.text for turn in await table.story.turns()]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_turn_that_was_taken_elsewhere_is_waited_for_no_more(open_file: OpenKeeper, tmp_path: Path, goes_on: bool) -> None:
    brain = Plain()
    table = await table_of(await open_file(), brain, *PARTY)
    other = await resume(await open_file(), KEY, lambda scenario: brain)
    async with Game(table, tmp_path / "rounds") as game:
        [beat async for beat in game.round()]
        async with Game(other, tmp_path / "rounds") as second:
            [beat async for beat in second.answer("I was first.")]
            if goes_on:
                [beat async for beat in second.answer("So was I.")]
                [beat async for beat in second.round()]
        with pytest.raises(tk.Conflict, match="moved on since this round began: play it again"):
            [beat async for beat in game.answer("I come too late.")]
        assert game.waiting is not None
        assert game.waiting.seat == PARTY[0 if goes_on else 1]
        [beat async for beat in game.answer("Then I go.")]
    assert "I come too late." not in [turn.text for turn in await table.story.turns()]


@pytest.mark.parametrize("text", ["a\0b", "caf\udce9", "x" * (100 * 1024 + 1), "I wait. " * 501])
async def test_what_cannot_be_stored_is_refused_before_it_is_kept(open_file: OpenKeeper, tmp_path: Path, text: str) -> None:
    table = await table_of(await open_file(), Plain(), "wren")
    async with Game(table, tmp_path / "rounds") as game:
        with pytest.raises(tk.InvalidInput, match="the nudge"):
            [beat async for beat in game.round(text)]
        [beat async for beat in game.round()]
        with pytest.raises(tk.InvalidInput, match="the answer"):
            [beat async for beat in game.answer(text)]
        assert game.waiting is not None
    async with Game(table, tmp_path / "rounds") as game:
        assert game.waiting is not None
        assert [beat.kind async for beat in game.answer("é" * 4000)][-1] == "done"
        await play(game, " ")


async def test_rounds_are_not_kept_in_a_file_that_can_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Rounds(tmp_path / "rounds"):
        pass
    read_only = f"file:{tmp_path / 'rounds'}?mode=ro"
    monkeypatch.setattr("aiosqlite.core.sqlite3.connect", lambda path, **how: sqlite3.Connection(read_only, uri=True, **how))
    with pytest.raises(tk.StoreReadOnly, match="cannot be written: check its permissions"):
        async with Rounds(tmp_path / "rounds"):
            pass


@pytest.mark.parametrize("in_the_way", ["a directory", "a link to nowhere", "no database"])
def test_a_file_of_rounds_that_cannot_be_opened_leaves_no_thread_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, in_the_way: str
) -> None:
    """Also where threads are slow to end, as on a busy machine: the loop is closed by then."""
    file = tmp_path / "rounds"
    if in_the_way == "a directory":
        file.mkdir()
    elif in_the_way == "a link to nowhere":
        file.symlink_to("nowhere/at/all")
    else:
        file.write_bytes(b"no database " * 400)
    before = set(threading.enumerate())
    wrong: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: wrong.append(args.exc_value))
    caplog.set_level(logging.DEBUG, "aiosqlite")
    monkeypatch.setattr(logging.getLogger("aiosqlite"), "handlers", [Slowly()])
    with pytest.raises(tk.StoreError):
        asyncio.run(Rounds(file).__aenter__())
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()
    assert wrong == []


class Slowly(logging.Handler):
    """Takes its time for every word of a log."""

    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(0.02)


async def test_a_whisper_does_not_disturb_a_round_that_waits(open_file: OpenKeeper, tmp_path: Path) -> None:
    brain = Plain()
    table = await table_of(await open_file(), brain, "wren")
    async with Game(table, tmp_path / "rounds") as game:
        async for _ in game.round():
            pass
        await table.whisper("wren", ["tam"], "Meet me at the mill.")
    async with Game(table, tmp_path / "rounds") as game:
        assert game.waiting is not None
        assert [beat.kind async for beat in game.answer("I go out.")][-1] == "done"
    assert "Meet me at the mill." in (await table.story.context("tam", budget=1000)).text
    assert "Meet me at the mill." not in (await table.story.context("mara", budget=1000)).text
    assert [ask.role for ask in brain.asks].count("dm") == 1


async def test_undo_takes_story_game_and_memories_back_and_replay_is_the_same(keeper: tk.Keeper) -> None:
    brain = Plain()
    brain.commands = {"key": GET_KEY, "road": GO}
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        await play(game, "I look around.")
        before = await table.state()
        told = []
        for _ in range(2):
            await play(game, "I ask Mara Holt for the key.")
            await play(game, "To the road!")
            told.append(([turn.text for turn in await table.story.turns()], await table.state()))
            assert await table.undo(2) == 2
            assert await table.state() == before
            assert await table.memory.location_memory("wren", "inn") == ""
            assert "discovery" not in (await table.story.context("tam", budget=1000)).text
        assert told[0] == told[1]
        with pytest.raises(tk.InvalidInput, match="1 round can be taken back, not"):
            await table.undo(5)


async def heard(table: Table, seat: str, text: str) -> list[str]:
    """What a seat heard in which a text stands."""
    return [turn.text for turn in await table.story.turns(seat=seat) if text in turn.text]


async def test_those_who_stand_by_see_that_there_was_a_whisper_and_nobody_else_is_told_so(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell", "osric", "ibbi"), ("nell", "osric", "ibbi"), 3), Storyteller)
    async with Game(table) as game:
        beats = await play(game, "I whisper to Ibbi: I do not trust Osric.", "", "")
    whispered = [beat for beat in beats if beat.role == "narrator" and "Ibbi" in beat.text]
    assert [beat.hearers for beat in whispered] == [("osric", "marlo", "brine")]
    seen = whispered[0].text
    assert {"osric": [seen], "marlo": [seen], "brine": [seen], "nell": [], "ibbi": []} == {
        seat: await heard(table, seat, seen) for seat in ("osric", "marlo", "brine", "nell", "ibbi")
    }
    assert "Nell" in seen
    assert "trust" not in seen
    assert [len(await heard(table, seat, "trust")) > 0 for seat in ("nell", "ibbi", "osric", "marlo", "brine")] == [True] * 2 + [False] * 3


async def test_a_whisper_is_hidden_from_whoever_stands_by_and_is_not_of_the_party(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell", "ibbi"), ("nell", "ibbi"), 3), Storyteller)
    async with Game(table) as game:
        await play(game, "I whisper to Ibbi: I do not trust Marlo.", "I wait.")
    assert not await heard(table, "marlo", "trust")
    assert [text for text in await heard(table, "marlo", "Ibbi") if "Nell" in text]


async def test_what_is_done_beside_a_whisper_is_in_no_ledger_of_those_who_were_not_told(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell", "osric", "ibbi"), ("nell", "osric", "ibbi"), 3), Storyteller)
    async with Game(table) as game:
        await play(game, "I take the bottle of brandy and I whisper to Ibbi: it is for you.", "", "")
    state, brandy = await table.state(), "Nell Tarn has a bottle of brandy"
    assert [brandy in ledger(state, table.scenario, (seat,)).lines for seat in ("nell", "osric")] == [True, False]


async def test_what_one_has_promised_comes_to_ones_own_mind(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell", "osric"), ("nell", "osric"), 3), Storyteller)
    async with Game(table) as game:
        await play(game, "I promise Brine that I will mend the roof.", "I wait.")
        beats = await play(game, "What did I promise?", "I wait.")
    told = [beat.hearers for beat in beats if beat.role == "narrator" and "mend the roof (open)" in beat.text]
    assert told == [("nell",)]


async def test_what_one_carries_is_told_to_nobody_else(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell", "osric"), ("nell", "osric"), 3), Storyteller)
    async with Game(table) as game:
        beats = await play(game, "What do I carry?", "I wait.")
    told = [beat.hearers for beat in beats if beat.role == "narrator" and "roll of picks" in beat.text]
    assert told == [("nell",)]


async def test_of_a_whisper_no_model_tells_those_who_stand_by(keeper: tk.Keeper) -> None:
    brain = Plain()
    brain.commands = {"I murmur": ({"type": "whisper", "to": ["tam"], "text": "The word is Larkspur."},)}
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        beats = await play(game, "I murmur to Tam that the word is Larkspur.")
    told = [(beat.text, beat.hearers) for beat in beats if beat.role == "narrator" and beat.hearers == ("mara",) and beat.text]
    assert told
    assert not any("Larkspur" in text or "speaks" in text for text, _ in told)
    assert not await heard(table, "mara", "Larkspur")


async def test_what_is_done_in_secret_is_told_to_those_who_know(keeper: tk.Keeper) -> None:
    brain = Plain()
    brain.commands = {"pocket": ({"type": "gain_item", "item": "silver spoon", "who": "wren", "secretly": True},)}
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        beats = await play(game, "I pocket the spoon, unseen by all.")
        await play(game, "I smile.")
    assert "pocket" in (await table.story.context("wren", budget=2000)).text
    for other in ("tam", "mara"):
        assert "pocket" not in (await table.story.context(other, budget=2000)).text
    assert [beat.hearers for beat in beats if beat.kind == "ruling" and beat.seat == "wren"] == [("wren",)]
    for asked in (ask for ask in brain.asks if ask.role == "pc" and ask.seat == "tam"):
        assert "pocket" not in asked.context.text + str(asked.said) + str(asked.scene)


async def test_the_round_in_flight_is_all_that_is_kept_and_it_does_not_grow(open_file: OpenKeeper, tmp_path: Path) -> None:
    table = await table_of(await open_file(), Plain())
    sizes = []
    for rounds in (10, 40):
        async with Game(table, tmp_path / "rounds") as game:
            for _ in range(rounds):
                await play(game)
        sizes.append(sum(path.stat().st_size for path in tmp_path.glob("rounds*")))
    assert sizes[1] <= 2 * sizes[0]


async def test_the_state_is_the_same_after_many_rounds_and_a_restart(open_file: OpenKeeper) -> None:
    brain = Plain()
    brain.commands = {"key": GET_KEY}
    keeper = await open_file()
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        await play(game, "I ask for the key.")
        for number in range(40):
            await play(game, f"I wait, {number}.")
    state = await table.state()
    await keeper.close()
    again = await resume(await open_file(), KEY, lambda scenario: brain)
    assert await again.state() == state
    assert await again.round_now() == 42


async def test_a_nudge_is_in_the_next_prompts_and_then_gone(keeper: tk.Keeper) -> None:
    brain = Plain()
    table = await table_of(keeper, brain)
    async with Game(table) as game:
        async for _ in game.round("more rain"):
            pass
        first = {ask.role: ask.nudge for ask in brain.asks}
        brain.asks.clear()
        await play(game)
    assert first["dm"] == "more rain"
    assert first["pc"] is None
    assert {ask.nudge for ask in brain.asks} == {None}
    assert all("more rain" not in turn.text for turn in await table.story.turns())


async def test_the_end_of_the_arc_brings_the_epilogue_once(keeper: tk.Keeper) -> None:
    brain = Plain()
    brain.commands = {"finish": ({"type": "kill", "who": "wren"}, {"type": "kill", "who": "tam"})}
    table = await table_of(keeper, brain, "wren")
    async with Game(table) as game:
        await play(game, "I finish it.")
        with pytest.raises(tk.InvalidInput, match="told already"):
            await anext(game.finish())
    assert (await table.state()).ending == "bad"
    assert [turn.text for turn in await table.story.turns()][-1] == "epilogue speaks in round 1."
    assert [ask.role for ask in brain.asks].count("epilogue") == 1


async def test_an_ending_on_request(keeper: tk.Keeper) -> None:
    table = await table_of(keeper, Plain(), "wren")
    async with Game(table) as game:
        await play(game, "I look around.")
        assert [beat.kind async for beat in game.finish()][-1] == "done"
        assert (await table.story.turns())[-1].text == "epilogue speaks in round 2."
        with pytest.raises(tk.InvalidInput, match="told already"):
            await anext(game.finish())
        await play(game, "I look around.")
        assert [beat.kind async for beat in game.finish()][-1] == "done", "the story has gone on since"


async def test_bad_beginnings_are_refused(keeper: tk.Keeper) -> None:
    with pytest.raises(tk.InvalidInput, match="not of the party"):
        await begin(keeper, KEY, Setup(PACK, PARTY, ("bruno",)), lambda scenario: Plain())
    await table_of(keeper, Plain())
    with pytest.raises(tk.InvalidInput, match="already"):
        await table_of(keeper, Plain())
    other = tk.MemoryKey("local", "local", "plain")
    await keeper.story(other, seats=[tk.Seat("dm", role="dm")])
    with pytest.raises(tk.InvalidInput, match="begin a game under another name"):
        await resume(keeper, other, lambda scenario: Plain())


async def test_a_beginning_that_is_cut_short_is_none(tmp_path: Path) -> None:
    async with tk.open(tmp_path / "saga.db") as keeper:
        for steps in range(12):
            beginning = asyncio.create_task(table_of(keeper, Plain()))
            for _ in range(steps):
                await asyncio.sleep(0)
            if beginning.done():
                break
            beginning.cancel()
            with pytest.raises(asyncio.CancelledError):
                await beginning
            assert await keeper.keys() == [], steps
        await keeper.delete(KEY)
        assert await (await table_of(keeper, Plain())).round_now() == 1
