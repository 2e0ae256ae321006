"""Games on a real server: what waits for a person outlasts the process, whoever listens may go away, and `play --web` opens the page."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from click.testing import CliRunner
from tests.server.conftest import Client, Server
from tests.server.test_live import line, some
from tests.server.test_play import GAME, LAMP, rested

from talekeeper.cli import main

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1", "::1"])]


def told(play: Any) -> list[tuple[str, str, str]]:
    return [(one["role"], one["seat"], one["text"]) for one in play["lines"]]


async def test_a_turn_that_is_waited_for_outlasts_the_server(server: Server) -> None:
    async with server.client("owner") as owner, server.client("nell") as nell:
        await owner.do("POST", "/games", GAME)
        await owner.do("POST", f"{LAMP}/step")
        waiting = await rested(owner)
        assert (waiting["waiting"], (await rested(nell))["waiting"]) == ("nell", "nell")
    server.stop(signal.SIGKILL)
    server.start()
    async with server.client("owner") as owner, server.client("nell") as nell:
        for client in (owner, nell):
            again = await rested(client)
            assert (again["waiting"], again["round"], again["lines"]) == ("nell", 1, waiting["lines"])
            assert all(one["ended"] for one in again["lines"])
        choice = (await nell.get(f"{LAMP}/scene"))["choices"][0]["text"]
        await nell.do("POST", f"{LAMP}/act", {"text": choice})
        after = await rested(owner)
        assert (after["waiting"], after["round"]) == (None, 2)
        texts = [turn["text"] for turn in (await owner.get(f"{LAMP}/turns"))["turns"]]
        assert texts.count(choice) == 1
        assert texts.count(told(waiting)[0][2]) == 1, "what was said before the restart is written, and once"
        await owner.do("POST", f"{LAMP}/step")
        await rested(owner)
        await owner.do("DELETE", LAMP)
        await owner.do("POST", "/games", GAME)
        assert (await rested(owner))["waiting"] is None, "a new game of the same name begins at its beginning"


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
async def test_an_answer_outlasts_the_server_that_it_was_given_to(server: Server, sig: int) -> None:
    """The server ends just after an answer. It is in the story afterwards, or its seat is waited for again."""
    words = "I look around, and around."
    async with server.client("owner") as owner:
        await owner.do("POST", "/games", GAME)
        await owner.do("POST", f"{LAMP}/step")
        assert (await rested(owner))["waiting"] == "nell"
        await owner.do("POST", f"{LAMP}/act", {"text": words})
        await asyncio.sleep(0.03)
    server.stop(sig)
    server.start()
    async with server.client("owner") as owner:
        if (await rested(owner))["waiting"] == "nell":
            await owner.do("POST", f"{LAMP}/act", {"text": words})
        elif (await rested(owner))["round"] == 1:
            await owner.do("POST", f"{LAMP}/step")  # cut short after the answer: it goes on
        await rested(owner)
        assert [turn["text"] for turn in (await owner.get(f"{LAMP}/turns"))["turns"]].count(words) == 1


async def test_who_goes_away_in_the_middle_of_a_round_takes_it_up_again(server: Server) -> None:
    async with server.client("owner") as owner, server.client("nell") as nell:
        await owner.do("POST", "/games", {**GAME, "humans": []})
        async with line(nell, story=LAMP) as frames:
            (hello,) = await some(frames, 1)
            await owner.do("POST", f"{LAMP}/step")
            while (frame := (await some(frames, 1))[0])["event"] != "line":
                assert frame["event"] == "round"
        await rested(owner)  # nobody listened, and it went on
        heard = [turn for turn in (await nell.get(f"{LAMP}/turns"))["turns"] if turn["kind"] != "note"]
        assert len(heard) >= 3
        async with line(nell, hello["id"], story=LAMP) as frames:
            again: list[Any] = []
            while len(again) < len(heard):
                again += [frame["data"] for frame in await some(frames, 1) if frame["event"] == "turn"]
        assert again == heard


# -- play --web --------------------------------------------------------------------------------------------------------


@contextmanager
def playing(folder: Path, *args: str, **env: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`talekeeper play --web`, and what it says is the page."""
    command = [sys.executable, "-m", "talekeeper", "play", "--web", "--file", str(folder / "s.db"), "--json", *args]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TALEKEEPER_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**clean, **env}, cwd=folder) as process:
        assert process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            read = process.stdout.readline()
            assert read, process.communicate()[1]
            said += read
        try:
            yield json.loads(said)["url"], process
        finally:
            process.kill()


@asynccontextmanager
async def at(url: str) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(base_url=url.partition("/#")[0] + "/api/v1", timeout=20) as http:
        yield Client(http, None)


async def test_playing_in_a_browser_opens_the_page_of_the_story(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{tmp_path}/opened"\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    with playing(tmp_path, "--story", "heist", "--party", "nell,bartle", "--seed", "3", BROWSER=str(browser)) as (url, process):
        parts = urlsplit(url)
        assert (parts.hostname, parse_qs(parts.fragment)) == ("127.0.0.1", {"story": ["local.heist"], "seat": ["nell"]})
        async with at(url) as client:
            play = await client.get("/stories/local.heist/play")
            assert [(one["id"], one["human"]) for one in play["party"]] == [("nell", True), ("bartle", False)]
            await client.do("POST", "/stories/local.heist/step")
            while (play := await client.get("/stories/local.heist/play"))["running"]:
                await asyncio.sleep(0.02)
            assert play["waiting"] == "nell"
        assert (tmp_path / "opened").read_text().strip() == url
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with playing(tmp_path, "--story", "heist", "--no-open", BROWSER=str(tmp_path / "nothing")) as (url, _):
        async with at(url) as client:
            assert (await client.get("/stories/local.heist/play"))["waiting"] == "nell", "the story waits where it was left"
    with playing(tmp_path, "--story", "two", "--party", "nell,bartle", "--human", "nell,bartle", "--no-open") as (url, _):
        assert parse_qs(urlsplit(url).fragment)["seat"] == ["nell"], "who plays sees no secrets, however many they are"


async def test_an_adventure_of_ones_own_is_played_in_a_browser_and_served(tmp_path: Path) -> None:
    pack = Path(__file__).parents[1] / "table" / "small.toml"
    with playing(tmp_path, "--no-open", "--scenario", str(pack), "--auto") as (url, _):
        async with at(url) as client:
            assert str(pack) in [one["id"] for one in (await client.get("/scenarios"))["scenarios"]]
            assert not any(one["human"] for one in (await client.get("/stories/local.main/play"))["party"])
    served = Server(tmp_path, None).start("--scenario", str(pack))
    async with served.client(None) as client:
        assert (await client.get("/stories/local.main/play"))["title"]
    served.stop()
    plain = Server(tmp_path, None).start()
    async with plain.client(None) as client:
        assert "No scenario" in (await client.refused(422, "GET", "/stories/local.main/play"))["detail"]
    plain.stop()


def test_what_cannot_be_played_is_said_at_once(tmp_path: Path) -> None:
    for command, args, problem in (
        ("play", ("--web", "--rounds", "3"), "--rounds is for the terminal"),
        ("play", ("--no-open",), "--no-open needs --web"),
        ("play", ("--web", "--model", "local:/nothing.gguf"), "no model at"),
        ("serve", ("--model", "local:/nothing.gguf"), "no model at"),
        ("serve", ("--scenario", "nowhere.toml"), "no scenario"),
        ("serve", ("--base-url", "http://x"), "--base-url needs --model"),
        ("serve", ("--config", "nothing.toml"), "no configuration"),
    ):
        done = CliRunner().invoke(main, [command, "--file", str(tmp_path / "s.db"), *args])
        assert done.exit_code != 0
        assert problem in done.stderr, (command, args)
