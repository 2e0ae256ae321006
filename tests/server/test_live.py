"""A real server: a process of its own, a real port, real files, lines that break, and kill -9."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from tests.server.conftest import SEATS, STORY, TOKENS, Client, Server
from tests.server.test_stream import parse
from tests.stories import deed

import talekeeper as tk
from talekeeper.cli import main
from talekeeper.server import gate, run
from talekeeper.server.app import create_app

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1", "::1"])]


@pytest.fixture
async def owner(server: Server) -> AsyncIterator[Client]:
    async with server.client("owner") as client:
        await client.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        yield client


@asynccontextmanager
async def line(client: Client, after: str | None = None, story: str = STORY) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """The events of the story over a real line, which breaks at the end."""
    headers = {**client.headers, **({"Last-Event-ID": after} if after else {})}
    async with client.http.stream("GET", f"{story}/events", headers=headers) as answer:
        assert answer.status_code == 200

        async def frames() -> AsyncIterator[dict[str, Any]]:
            held: list[str] = []
            async for text in answer.aiter_lines():
                held.append(text)
                if not text and (frame := parse("\n".join(held))):
                    if "event" in frame:
                        yield frame
                    held = []

        yield frames()


async def some(frames: AsyncIterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return [await asyncio.wait_for(anext(frames), 10) for _ in range(count)]


async def test_a_broken_line_is_taken_up_also_after_a_restart(server: Server, owner: Client) -> None:
    async with server.client("rogue") as rogue:
        async with line(rogue) as frames:
            assert [frame["event"] for frame in await some(frames, 1)] == ["hello"]
            await owner.tell(deed(0))
            (first,) = await some(frames, 1)
        for number in range(1, 4):
            await owner.tell(deed(number), heard_by=["rogue"] if number != 2 else ["bard"])
    server.stop(signal.SIGKILL)
    server.start()
    async with server.client("owner") as again, server.client("rogue") as rogue:
        await again.tell(deed(4))
        async with line(rogue, first["id"]) as frames:
            found = await some(frames, 4)
            assert [frame["data"].get("text") for frame in found] == [None, deed(1), deed(3), deed(4)]
        await again.do("POST", f"{STORY}/rewind", {"to": "2"})
    server.stop(signal.SIGTERM)
    server.start()
    async with server.client("rogue") as rogue, line(rogue, found[-1]["id"]) as frames:
        hello, back = await some(frames, 2)
        assert (hello["event"], back["event"], back["data"]) == ("hello", "rewound", {"to": found[1]["data"]["id"]})


async def test_a_retried_request_is_told_once_whenever_the_server_dies(server: Server, owner: Client) -> None:
    """The server is killed at moments spread over an append; the client asks again until it is answered."""
    lost = 0
    for number in range(5):
        async with server.client("owner") as client:
            body, headers = {"speaker": "dm", "text": f"turn {number}"}, {"Idempotency-Key": f"key-{number}"}
            asked = asyncio.create_task(client("POST", f"{STORY}/turns", body, headers=headers))
            await asyncio.sleep(number * 0.003)
            server.stop(signal.SIGKILL)
            try:
                answer = await asked
                assert answer.status_code == 201
            except httpx.TransportError:
                lost += 1
        server.start()
        async with server.client("owner") as client:
            first = await client.do("POST", f"{STORY}/turns", body, headers=headers)
            assert first == await client.do("POST", f"{STORY}/turns", body, headers=headers)
            turns = (await client.get(f"{STORY}/turns", limit=200))["turns"]
            assert [turn["text"] for turn in turns] == [f"turn {told}" for told in range(number + 1)]
    assert lost, "no answer was ever lost: the test proves nothing"


async def test_a_client_that_goes_away_in_the_middle_loses_nothing(server: Server, owner: Client) -> None:
    host, port = "127.0.0.1", server.port
    for number in range(10):
        body = json.dumps({"speaker": "dm", "text": f"turn {number}"}).encode()
        _, writer = await asyncio.open_connection(host, port)
        head = (
            f"POST /api/v1{STORY}/turns HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKENS['owner']}\r\n"
            f"Idempotency-Key: gone-{number}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()  # without waiting for the answer
        answer = await owner("POST", f"{STORY}/turns", json.loads(body), headers={"Idempotency-Key": f"gone-{number}"})
        assert answer.status_code == 201
    turns = (await owner.get(f"{STORY}/turns", limit=200))["turns"]
    assert sorted(turn["text"] for turn in turns) == sorted(f"turn {number}" for number in range(10))


async def test_two_clients_at_once_lose_nothing_and_both_see_all(server: Server, owner: Client) -> None:
    async def speak(name: str, count: int) -> None:
        async with server.client(name) as client:
            for number in range(count):
                await client.do("POST", f"{STORY}/turns", {"text": f"{name} {number}"})

    async with server.client("rogue") as rogue, server.client("bard") as bard, line(rogue) as one, line(bard) as other:
        await some(one, 1)
        await some(other, 1)
        await asyncio.gather(speak("rogue", 25), speak("bard", 25))
        heard = [[frame["data"]["text"] for frame in await some(frames, 50)] for frames in (one, other)]
    told = [turn["text"] for turn in (await owner.get(f"{STORY}/turns", limit=200))["turns"]]
    assert heard == [told, told]
    assert sorted(told) == sorted(f"{name} {number}" for name in ("rogue", "bard") for number in range(25))
    assert [text for text in told if text.startswith("bard")] == [f"bard {number}" for number in range(25)]


async def test_it_goes_down_in_peace_with_streams_open_and_requests_under_way(server: Server, owner: Client) -> None:
    async with server.client("rogue") as rogue, line(rogue) as frames:
        await some(frames, 1)
        told = [asyncio.create_task(owner.tell(f"turn {number}")) for number in range(20)]
        await asyncio.wait(told, return_when=asyncio.FIRST_COMPLETED)
        code, seconds = await asyncio.to_thread(server.stop)
        assert (code, seconds < 20) == (0, True)
        async with asyncio.timeout(5):
            assert [frame async for frame in frames if frame["event"] != "turn"] == [], "what was told, and then the end"
        answered = [one.result() for one in told if one.done() and not one.exception()]
        await asyncio.gather(*told, return_exceptions=True)
    server.start()
    async with server.client("owner") as again:
        kept = {turn["id"] for turn in (await again.get(f"{STORY}/turns", limit=200))["turns"]}
        assert {turn["id"] for turn in answered} <= kept


async def test_a_token_that_is_taken_out_of_the_file_is_worth_nothing_any_more(server: Server, owner: Client, tokens_file: Path) -> None:
    async with server.client("bard") as bard, line(bard) as frames:
        await some(frames, 1)
        text = tokens_file.read_text()
        tokens_file.write_text(text.replace('name = "bard"', 'name = "gone"').replace("seats = ['bard']", "seats = ['nobody']"))
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(frames), 5)
        await bard.refused(404, "GET", STORY)


async def test_a_slow_sender_and_a_malformed_one_harm_nobody(server: Server, owner: Client) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /api/v1/stories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n")
    other, bad = await asyncio.open_connection("127.0.0.1", server.port)
    bad.write(b"\x00\xff\r\n\r\n")
    assert b"400" in await asyncio.wait_for(other.readline(), 5)
    await owner.tell("Still here.")
    for one in (writer, bad):
        one.close()


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch, **settings: float) -> AsyncIterator[tuple[tk.Story, Any, int]]:
    """A server in this process, less patient than usual; its story, its app and its port."""
    for name, value in settings.items():
        monkeypatch.setattr(run, name, value)
    async with tk.open(":memory:") as keeper:
        story = await keeper.story(tk.MemoryKey("local", "ana", "ash-crown"), seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        app, ready = create_app(keeper), asyncio.Event()
        with run.listen("127.0.0.1", 0, guarded=False) as made:
            served = asyncio.create_task(run.serve(app, made, ready=ready.set))
            await ready.wait()
            yield story, app, made.getsockname()[1]
            signal.raise_signal(signal.SIGTERM)
            await served


async def test_who_does_not_come_to_the_point_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch, HEAD=0.6) as (_, _, port):
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        whole = f"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        lines[1][1].write(whole)
        assert b"200" in await lines[1][0].readline()

        async def trickle(writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError):
                while True:
                    writer.write(b"X")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        trickling = [asyncio.create_task(trickle(writer)) for _, writer in lines[1:]]
        for reader, writer in lines:
            with suppress(ConnectionError):
                async with asyncio.timeout(5):
                    await reader.read()
            writer.close()
        for task in trickling:
            task.cancel()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1") as http, line(Client(http, None)) as frames:
            await some(frames, 1)
            await asyncio.sleep(1.5)  # a request that is being answered is not idle
            assert (await http.get("/me")).status_code == 200
            await http.post(f"{STORY}/turns", json={"speaker": "dm", "text": "Still here."})
            assert (await some(frames, 1))[0]["data"]["text"] == "Still here."


def half_a_turn(port: int) -> bytes:
    head = f"POST /api/v1{STORY}/turns HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"
    return head.encode() + b'\r\n{"speaker": "dm", '


async def test_half_a_body_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BODY", 0.5)
    async with serving(monkeypatch) as (_, _, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(half_a_turn(port))
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 5)
        assert b"Send the request again." in await asyncio.wait_for(reader.read(), 5)
        writer.close()


async def test_half_a_body_does_not_hold_it_up_when_it_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch) as (_, _, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(half_a_turn(port))
        async with httpx.AsyncClient() as http:  # by then it has read the half
            await http.get(f"http://127.0.0.1:{port}/health/live")
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < gate.BODY / 2
    assert b" 503 " in await reader.readline()
    writer.close()


@pytest.mark.parametrize("declared", [True, False])
async def test_who_sends_too_much_is_told_so_and_not_cut_off(server: Server, owner: Client, declared: bool) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b" " * 50_000

    for _ in range(3):  # on the same connection
        content = b" " * 20_000_000 if declared else parts()
        answer = await owner.http.post(f"{STORY}/turns", content=content, headers={**owner.headers, "Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:talekeeper:too-large"
    await owner.tell("Still here.")


async def test_a_reader_who_takes_nothing_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(monkeypatch, STALLED=1.0) as (story, app, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(f"GET /api/v1{STORY}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        while not app.state.house.hub.count:
            await asyncio.sleep(0.01)
        for number in range(150):
            await story.append("dm", f"{number} " + "and on and on " * 7000)
        async with asyncio.timeout(30):
            while app.state.house.hub.count:
                app.state.house.hub.wake(story.key)
                await asyncio.sleep(0.05)
        writer.close()


async def test_what_goes_wrong_is_logged_and_tokens_are_not(server: Server, owner: Client, tokens_file: Path) -> None:
    await owner.tell("The bell tolls for the rogue alone.", heard_by=["rogue"])
    await owner.refused(404, "GET", f"{STORY}/turns/nothing")
    tokens_file.write_text("[[")
    async with asyncio.timeout(10):
        while (await owner("GET", STORY)).status_code == 200:  # the file is not looked at for every request
            await asyncio.sleep(0.05)
    await owner.refused(401, "GET", STORY)
    assert server.process is not None
    server.process.terminate()
    logged = server.process.communicate()[1]
    assert re.match(r"\d{4}-\d\d-\d\dT\S+ ERROR talekeeper.server: tokens cannot be read file='.*' error=\".*is not TOML", logged)
    assert not [word for word in (*TOKENS.values(), "bell") if word in logged]


async def test_without_tokens_it_serves_this_machine(tmp_path: Path) -> None:
    server = Server(tmp_path, None).start("--tenant", "home")
    async with server.client(None) as anyone:
        assert (await anyone.get("/me"))["tenant"] == "home"
        await anyone.refused(421, "GET", "/me", headers={"Host": "evil.example"})
    assert server.stop(signal.SIGINT)[0] == 0


def failing(tmp_path: Path, *args: str, **env: str) -> str:
    """What the command says that cannot serve."""
    done = CliRunner().invoke(main, ["serve", "--file", str(tmp_path / "new.db"), *args], env=env)
    assert (done.exit_code, done.stdout) != (0, "")
    assert not (tmp_path / "new.db").exists()
    return done.stderr


def test_without_tokens_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::"):
        assert "talekeeper tokens new --dm" in failing(tmp_path, "--host", host, "--port", "0")


def test_what_cannot_be_listened_on_is_named(server: Server, tmp_path: Path, tokens_file: Path) -> None:
    assert "choose another with --port" in failing(tmp_path, "--port", str(server.port))
    assert "'nowhere.invalid' is not known" in failing(tmp_path, "--host", "nowhere.invalid")
    assert "No such file" in failing(tmp_path, "--tokens", str(tmp_path / "nothing.toml"))
    tokens_file.write_text("[[")
    assert "is not TOML" in failing(tmp_path, "--tokens", str(tokens_file))


def test_a_token_may_come_from_the_environment(tmp_path: Path) -> None:
    assert "at least 32" in failing(tmp_path, TALEKEEPER_TOKEN="short")
    assert "not from both" in failing(tmp_path, TALEKEEPER_TOKEN="x" * 40, TALEKEEPER_TOKENS="t.toml")
    assert "'nowhere.invalid' is not known" in failing(tmp_path, "--host", "nowhere.invalid", TALEKEEPER_TOKEN="x" * 40)
