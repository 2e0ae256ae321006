"""The stream of what happens, read frame by frame from the app itself. What needs a real line is in test_live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.server.conftest import SEATS, STORY, Table, served
from tests.stories import deed

import talekeeper as tk
from talekeeper.server import stream
from talekeeper.server.limits import Limits
from talekeeper.server.stream import Stream
from talekeeper.server.views import View
from talekeeper.testing.models import MoodyModel


def parse(frame: str) -> dict[str, Any]:
    rows = dict(line.split(": ", 1) for line in frame.strip().splitlines() if ": " in line)
    return {**rows, "data": json.loads(rows["data"])} if "data" in rows else rows


class Listening:
    """A stream, and what has come of it."""

    def __init__(self, frames: AsyncIterator[str]) -> None:
        self._frames = frames

    async def next(self) -> dict[str, Any]:
        """The next event; it must come soon."""
        while True:
            frame = parse(await asyncio.wait_for(anext(self._frames), 5))
            if "event" in frame:
                return frame

    async def expect(self, *wanted: str) -> list[dict[str, Any]]:
        found = [await self.next() for _ in wanted]
        assert [frame["event"] for frame in found] == list(wanted)
        return found

    async def silent(self, seconds: float = 0.2) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(self._frames), seconds)


@asynccontextmanager
async def listening(
    table: Table, seat: str | None = None, after: str | None = None, granted: Callable[[], bool] = lambda: True, seconds: float = 60.0
) -> AsyncIterator[Listening]:
    story = await table.keeper.story(table.key)
    frames = Stream(table.app.state.house.hub, story, View(story, seat, table.app.state.house.rooms.places), granted, seconds).frames(
        "someone", after
    )
    try:
        yield Listening(frames)
    finally:
        await frames.aclose()  # type: ignore[attr-defined]


async def test_everything_that_is_done_comes_as_an_event_at_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "GLANCE", 60.0)  # so that it is the bell that rings
    async with listening(table) as line:
        (hello,) = await line.expect("hello")
        assert hello["data"] == {"branch": "main", "seat": None}
        turn = await table.owner.tell("The key is brass.", heard_by=["rogue"])
        (told,) = await line.expect("turn")
        assert told["data"] == turn
        await table.owner.do("PATCH", f"{STORY}/turns/1", {"text": "The key is iron."})
        await table.owner.do("PUT", f"{STORY}/turns/1/pin")
        await table.owner.do("DELETE", f"{STORY}/turns/1/pin")
        done = await line.expect("edited", "pinned", "unpinned")
        assert done[0]["data"]["text"] == "The key is iron."
        await table.owner.do("POST", f"{STORY}/seats/rogue/enter", {"location": "mill"})
        await line.expect("turn")
        await table.owner.do("POST", f"{STORY}/rewind", {"to": "1"})
        seen = {frame["event"]: frame for frame in [await line.next(), await line.next()]}
        assert seen.keys() == {"rewound", "branches"}
        assert seen["rewound"]["data"] == {"to": turn["id"]}
        await table.owner.do("DELETE", f"{STORY}/turns/1")
        assert (await line.next())["data"] == {"id": turn["id"]}
        await table.owner.do("PUT", f"{STORY}/seats/smith", {"role": "npc"})
        await line.expect("seats")
        story = await table.keeper.story(table.key)
        await story.append("dm", "The goblin falls.", marks=[tk.Mark("moment", {"summary": "x"})])
        table.app.state.house.hub.wake(table.key)
        await line.expect("turn", "marked")
        await table.owner.do("DELETE", STORY)
        await line.expect("deleted")


async def test_a_seat_is_sent_what_it_hears_and_nothing_else(table: Table) -> None:
    async with listening(table, "rogue") as line:
        await line.expect("hello")
        await table.owner.tell("For the bard.", heard_by=["bard"])
        mine = await table.owner.tell("For you.", heard_by=["rogue"])
        (told,) = await line.expect("turn")
        assert told["data"] == await table.rogue.get(f"{STORY}/turns/{mine['id']}")
        assert (told["data"]["number"], told["data"]["audience"]) == (1, None)
        await table.owner.do("PATCH", f"{STORY}/turns/1", {"text": "For the bard alone."})
        await table.owner.do("PUT", f"{STORY}/turns/1/pin")
        await table.owner.do("DELETE", f"{STORY}/turns/1")
        await table.owner.do("PUT", f"{STORY}/seats/smith", {"role": "npc"})
        await table.owner.do("POST", f"{STORY}/fork", {})
        last = await table.owner.tell("More for the bard.", heard_by=["bard"])
        await table.owner.do("POST", f"{STORY}/regenerate", {"text": "Still more."})
        await line.silent()
        await table.owner.do("DELETE", f"{STORY}/turns/2")
    assert last


async def test_a_forgotten_turn_is_told_to_those_who_heard_it(table: Table) -> None:
    turn = await table.owner.tell("For you.", heard_by=["rogue"])
    async with listening(table, "rogue") as rogue, listening(table, "bard") as bard:
        await rogue.expect("hello")
        await bard.expect("hello")
        await table.owner.do("DELETE", f"{STORY}/turns/{turn['id']}")
        assert (await rogue.next())["data"] == {"id": turn["id"]}
        await bard.silent()


async def test_a_stream_is_taken_up_where_it_broke(table: Table) -> None:
    for number in range(10):
        await table.owner.tell(deed(number), heard_by=["rogue"] if number % 2 else ["bard"])
    async with listening(table, "rogue", after="0") as line:
        await line.expect("hello")
        seen = await line.expect(*["turn"] * 5)
        assert [frame["data"]["text"] for frame in seen] == [deed(number) for number in range(1, 10, 2)]
    for number in range(10, 14):
        await table.owner.tell(deed(number), heard_by=["rogue"] if number % 2 else ["bard"])
    for after in (seen[2]["id"], seen[2]["data"]["id"]):
        async with listening(table, "rogue", after=after) as line:
            (hello,) = await line.expect("hello")
            assert hello["id"] == seen[2]["id"]
            assert [(await line.next())["data"]["text"] for _ in range(4)] == [deed(number) for number in (7, 9, 11, 13)]
            await line.silent(0.05)


async def test_what_was_undone_in_the_meantime_comes_first(table: Table) -> None:
    told = [await table.owner.tell(deed(number)) for number in range(5)]
    async with listening(table, "rogue", after="0") as line:
        await line.expect("hello", *["turn"] * 4)
        (last,) = await line.expect("turn")
    await table.owner.do("POST", f"{STORY}/rewind", {"to": told[1]["id"]})
    await table.owner.tell("Another way.")
    async with listening(table, "rogue", after=last["id"]) as line:
        hello, back, new = await line.expect("hello", "rewound", "turn")
        assert back["data"] == {"to": told[1]["id"]}
        assert new["data"]["text"] == "Another way."
    await table.owner.do("POST", f"{STORY}/switch", {"to": "main~1"})
    async with listening(table, "rogue", after=new["id"]) as line:
        found = await line.expect("hello", "rewound", "turn", "turn", "turn")
        assert [frame["data"]["text"] for frame in found[2:]] == [deed(number) for number in (2, 3, 4)]
    assert hello


@pytest.mark.parametrize("after", ["nothing", "t-0123456789abcdef", "UNHEARD"])
async def test_an_id_that_is_not_known_is_told_so(table: Table, after: str) -> None:
    secret = await table.owner.tell("For the bard.", heard_by=["bard"])
    async with listening(table, "rogue", after=after.replace("UNHEARD", secret["id"])) as line:
        await line.expect("reset")
        await table.owner.tell("For you.", heard_by=["rogue"])
        await line.expect("turn")


async def test_what_another_process_wrote_is_sent_as_well(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "GLANCE", 0.05)
    target = str(tmp_path / "s.db")
    async with served(target) as table, tk.open(target) as other:
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        async with listening(table) as line:
            await line.expect("hello")
            await (await other.story(table.key)).append("dm", "From elsewhere.")
            (told,) = await line.expect("turn")
            assert told["data"]["text"] == "From elsewhere."


async def test_a_model_that_makes_a_memory_is_told_to_the_dm_alone(target: str) -> None:
    async with served(target, summarizer=MoodyModel()) as table:
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        story = await table.keeper.story(table.key)
        await story.append_many([tk.Draft("dm", deed(number)) for number in range(60)])
        async with listening(table) as owner, listening(table, "rogue") as rogue:
            await owner.expect("hello")
            await rogue.expect("hello")
            listening_on = asyncio.create_task(owner.next())
            await story.settle()
            assert (await listening_on)["event"] == "memories"
            await rogue.silent(0.1)


async def test_a_stream_ends_with_its_token_with_its_time_and_with_the_server(table: Table) -> None:
    granted = [True]
    async with listening(table, granted=lambda: granted[0]) as line:
        await line.expect("hello")
        granted[0] = False
        await table.owner.tell("Too late.")
        with pytest.raises(StopAsyncIteration):
            await line.next()
    async with listening(table, seconds=0.05) as line:
        await line.expect("hello")
        with pytest.raises(StopAsyncIteration):
            await line.next()
    async with listening(table) as line:
        await line.expect("hello")
        waiting = asyncio.create_task(line.next())
        await asyncio.sleep(0.01)
        table.app.state.house.hub.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
    assert table.app.state.house.hub.count == 0


async def test_a_silent_stream_shows_that_it_is_alive_at_times_that_tell_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PING", 0.3)
    monkeypatch.setattr(stream, "GLANCE", 0.05)
    story = await table.keeper.story(table.key)
    view = View(story, "rogue", table.app.state.house.rooms.places)
    frames = Stream(table.app.state.house.hub, story, view, lambda: True, 60).frames("someone", None)
    assert (await anext(frames), "hello" in await anext(frames)) == ("retry: 1000\n\n", True)
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def murmur() -> None:
        while True:
            await table.owner.tell("For the bard.", heard_by=["bard"])
            await asyncio.sleep(0.02)

    murmuring = asyncio.create_task(murmur())
    assert await asyncio.wait_for(anext(frames), 5) == ":\n\n"
    murmuring.cancel()
    assert loop.time() - began >= 0.3
    await frames.aclose()  # type: ignore[attr-defined]


async def test_a_token_may_have_so_many_streams_and_no_more() -> None:
    async with served(":memory:", limits=Limits(streams=2, stream_seconds=3.0)) as table:
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        asked = [asyncio.create_task(table.owner("GET", f"{STORY}/events")) for _ in range(2)]
        while table.app.state.house.hub.count < 2:
            await asyncio.sleep(0.01)
        assert "event streams" in (await table.owner.refused(429, "GET", f"{STORY}/events"))["detail"]
        assert (await table.bard("GET", f"{STORY}/events")).status_code == 200
        assert [(await one).status_code for one in asked] == [200, 200]
        at_once = await asyncio.gather(*(table.owner("GET", f"{STORY}/events") for _ in range(8)))
        assert sorted(one.status_code for one in at_once) == [200] * 2 + [429] * 6, "also of those who come at the same moment"
        answer = await table.owner("GET", f"{STORY}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"
