"""Schemathesis on the whole API of a real server: no 5xx, nothing that its description does not say, no way around tokens.

A free run makes up every id; runs with the ids of a story and of a game that are there get behind the doors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import TOKENS, Server
from tests.stories import deed

import talekeeper as tk
from talekeeper.table.playing.seating import Setup, begin
from talekeeper.table.storyteller import Storyteller

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
KNOWN = """
[parameters]
"path.story" = "ana.ash-crown"
"path.turn" = "{turn}"
"path.seat_id" = "rogue"
"path.memory" = "{fold}"
"query.seat" = "rogue"
"query.branch" = "main"
"query.at" = "{turn}"
"query.after" = "{turn}"
"query.before" = "{turn}"

# What would end it all for the others is tried on a story of its own.
[[operations]]
include-name = "DELETE /api/v1/stories/{{story}}"
parameters = {{ "path.story" = "ana.short-lived" }}

[[operations]]
include-name = "DELETE /api/v1/stories/{{story}}/turns/{{turn}}"
parameters = {{ "path.story" = "ana.short-lived", "path.turn" = "1" }}
"""

PLAYED = """
[parameters]
"path.story" = "ana.lamp"
"query.seat" = "nell"
"query.branch" = "main"
"query.at" = "1"
"""


@pytest.fixture
async def known(tmp_path: Path) -> str:
    """The configuration that names what is there."""
    seats = [tk.Seat("dm", role="dm", token_limit=500), tk.Seat("rogue", token_limit=300), tk.Seat("bard")]
    async with tk.open(tmp_path / "s.db") as keeper:
        for name in ("short-lived", "ash-crown"):
            story = await keeper.story(tk.MemoryKey("acme", "ana", name), seats=seats)
            turns = await story.append_many([tk.Draft("dm", deed(number)) for number in range(60)])
        fold = (await story.folds("rogue"))[0]
        setup = Setup("tidelamp", ("nell", "osric"), ("nell",), 7)
        await begin(keeper, tk.MemoryKey("acme", "ana", "lamp"), setup, Storyteller)
    return (HERE / "schemathesis.toml").read_text() + KNOWN.format(turn=turns[0].id, fold=fold.id)


@pytest.fixture
def server(tmp_path: Path, tokens_file: Path, known: str) -> Iterator[Server]:
    unhurried = "guesses = 1000000\nstream_seconds = 0.05\n"
    tokens_file.write_text(tokens_file.read_text().replace("rate = 10000.0\nburst = 10000", "rate = 1e6\nburst = 1000000\n" + unhurried))
    made = Server(tmp_path, tokens_file).start()
    yield made
    made.stop()


def schemathesis(server: Server, config: str, name: str, *args: str, seed: int | None = None) -> None:
    where = server.folder / "schemathesis.toml"
    where.write_text(config)
    # Not as a part of `tests`: some libraries install a package of that name, which hides ours from other processes.
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(where), "run", f"{server.url}/api/v1/openapi.json",
            "--header", f"Authorization: Bearer {TOKENS[name]}", "--no-color", *args,
            *(["--generation-deterministic"] if seed is None else ["--seed", str(seed)]),
        ],
        capture_output=True, text=True, cwd=server.folder, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    assert "Tested: " in done.stdout


def test_made_up_requests_are_answered_as_described(server: Server) -> None:
    schemathesis(server, (HERE / "schemathesis.toml").read_text(), "owner", "--phases", "examples,coverage")


def test_requests_about_a_story_that_is_there_are_answered_as_described(server: Server, known: str) -> None:
    schemathesis(server, known, "owner", "--phases", "examples,fuzzing,stateful", "--max-examples", "8")


@pytest.mark.parametrize("name", ["owner", "nell"])
def test_requests_about_a_game_are_answered_as_described(server: Server, name: str) -> None:
    config = (HERE / "schemathesis.toml").read_text() + PLAYED
    schemathesis(server, config, name, "--include-tag", "play", "--phases", "examples,fuzzing", "--max-examples", "6")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("owner", "free"), ("rogue", "free"), ("owner", "known"), ("rogue", "known"), ("owner", "played"), ("nell", "played")],
)
def test_many_requests_are_answered_as_described(server: Server, known: str, name: str, kind: str, seed: int) -> None:
    config = {"free": "", "known": known.removeprefix((HERE / "schemathesis.toml").read_text()), "played": PLAYED}[kind]
    schemathesis(server, (HERE / "schemathesis.toml").read_text() + config, name, "--max-examples", "80", seed=seed)
