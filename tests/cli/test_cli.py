from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from tests.cli.test_keyboard import Screen
from tests.stores.test_sqlite import unprivileged

import talekeeper as tk
from talekeeper.cli import main
from talekeeper.model import to_json
from talekeeper.testing.models import MoodyModel

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands())


def run(*args: str, stdin: str | None = None, ok: bool = True) -> Result:
    result = CliRunner().invoke(main, list(args), input=stdin, prog_name="talekeeper", catch_exceptions=False)
    if ok:
        assert result.exit_code == 0, result.output
    return result


def data(*args: str, stdin: str | None = None) -> Any:
    """What a command says with --json: one value on stdout, and nothing on stderr."""
    result = run(*args, "--json", stdin=stdin)
    assert result.stderr == ""
    return json.loads(result.stdout)


def error(*args: str, code: int = 1, stdin: str | None = None) -> str:
    """The one line that a command fails with."""
    result = run(*args, stdin=stdin, ok=False)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: "), result.stderr
    return lines[0].removeprefix("error: ")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test works in a directory of its own, with nothing in the environment."""
    for name in [name for name in os.environ if name.startswith("TALEKEEPER_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A story file with a few turns, a branch and another story in it."""
    path = tmp_path_factory.mktemp("cli") / "talekeeper.db"
    where = ("--file", str(path))
    run("init", "--seat", "dm:dm", "--seat", "rogue:pc:300", "--seat", "bard:pc:4000", *where)
    run("init", "--story", "old-campaign", *where)
    run("append", "dm", "The innkeeper slides you a key.", "--heard-by", "rogue", "--at", "tavern", *where)
    run("append", "rogue", "I promise to bring it back.", "--id", "promise", *where)
    for number in range(30):
        run("append", "dm", f"Mile {number}: the road to Harrow bends north, and Captain Voss counts {number + 3} lamps.", *where)
    run("fork", "side", "--at", "5", *where)
    run("fold", *where)
    return path


@pytest.fixture
def story(told: Path, desk: Path) -> Path:
    return Path(shutil.copy(told, desk / "talekeeper.db"))


# -- every command -----------------------------------------------------------------------------------------------------


def test_init_makes_a_story_with_a_dm_and_a_hero(desk: Path) -> None:
    made = data("init")
    assert [(seat["id"], seat["role"]) for seat in made["seats"]] == [("dm", "dm"), ("hero", "pc")]
    assert made["made"]
    assert (desk / "talekeeper.db").exists()


def test_init_takes_seats_with_roles_and_limits() -> None:
    seats = data("init", "--seat", "dm:dm", "--seat", "rogue", "--seat", "smith:npc:500")["seats"]
    assert [(seat["id"], seat["role"], seat["token_limit"]) for seat in seats] == [
        ("dm", "dm", 8000),
        ("rogue", "pc", 8000),
        ("smith", "npc", 500),
    ]


def test_init_lets_seats_join_a_story_that_is_there(story: Path) -> None:
    joined = data("init", "--seat", "smith:npc")
    assert not joined["made"]
    assert [seat["id"] for seat in joined["seats"]] == ["dm", "rogue", "bard", "smith"]
    assert "found the story 'main'" in run("init").stdout
    assert len(data("seats")) == 4


def test_init_changes_of_a_seat_that_is_there_only_what_is_given(desk: Path) -> None:
    bard = tk.Seat("bard", name="Kess the Bold", aliases=("Kay",), token_limit=4000, keep=6)
    with tk.sync.open("talekeeper.db") as keeper:
        keeper.story(tk.MemoryKey("local", "local", "main"), seats=[tk.Seat("dm", role="dm"), tk.Seat("smith", role="npc"), bard])

    joined = data("init", "--seat", "cleric", "--seat", "bard", "--seat", "smith")
    assert (joined["joined"], joined["changed"]) == (["cleric"], [])
    assert [seat for seat in joined["seats"] if seat["id"] == "bard"] == [to_json(bard)]
    assert [seat["role"] for seat in joined["seats"]] == ["dm", "npc", "pc", "pc"]
    assert "4 seats; nothing changed" in run("init", "--seat", "bard").stdout
    assert "4 seats; bard changed" in run("init", "--seat", "bard::500").stdout
    assert data("seats")[2]["seat"] == to_json(dataclasses.replace(bard, token_limit=500))
    assert "5 seats; thief joined" in run("init", "--seat", "thief").stdout
    assert "has the role 'npc'" in error("init", "--seat", "smith:pc")


def test_stories_lists_what_is_in_the_file(story: Path) -> None:
    rows = data("stories")
    assert [(row["tenant"], row["user"], row["story"], row["seats"]) for row in rows] == [
        ("local", "local", "main", 3),
        ("local", "local", "old-campaign", 2),
    ]
    assert rows[0]["entries"] == 32
    assert "old-campaign" in run("stories").stdout


def test_append_says_what_was_appended(story: Path) -> None:
    turn = data(
        "append", "dm", "A", "bell", "tolls.", "--heard-by", "rogue,bard", "--when", "dusk", "--voice", "Maud", "--mentions", "bell"
    )
    assert (turn["text"], turn["voice"], turn["when"], turn["mentions"]) == ("A bell tolls.", "Maud", "dusk", ["bell"])
    assert turn["audience"] == ["bard", "dm", "rogue"]
    assert "A bell tolls." in run("log", "--limit", "1", "--newest").stdout


@pytest.mark.parametrize("words", [[], ["-"]])
def test_append_reads_standard_input(story: Path, words: list[str]) -> None:
    assert data("append", "dm", *words, stdin="Two lines\nof one turn.\n")["text"] == "Two lines\nof one turn."


def test_append_with_an_id_is_done_once(story: Path) -> None:
    again = data("append", "rogue", "I promise to bring it back.", "--id", "promise")
    assert again["seq"] == 2
    assert "belongs to a different turn" in error("append", "rogue", "Something else.", "--id", "promise")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["hero", "psst", "--kind", "whisper"], "a whisper needs --heard-by"),
        (["", "A bell."], "add --kind event"),
        (["rogue", "One.", "--id", "12"], "put a letter into the id"),
    ],
    ids=["whisper", "nobody", "number"],
)
def test_append_says_which_option_is_missing_or_wrong(story: Path, words: list[str], advice: str) -> None:
    assert advice in error("append", *words, code=2)
    assert len(data("log")) == 32


def test_an_answer_that_gets_nowhere_is_no_deed_undone(story: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "talekeeper", "append", "rogue", "Kept."]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: standard output takes no more (No space left on device): all is done but this answer\n"
    assert data("log", "--newest", "--limit", "1")[0]["text"] == "Kept."


def test_a_story_under_another_key_is_named(story: Path) -> None:
    assert "(there are: main, old-campaign); choose with --story," in error("log", "--story", "nope")
    said = error("log", "--tenant", "acme")
    assert "no story 'main' of acme/local" in said
    assert "(there are: main of local/local, old-campaign of local/local); choose with --story, --tenant and --user" in said
    run("init", "--file", "other.db")
    run("delete", "--file", "other.db", "--yes")
    assert "(there is none yet)" in error("log", "--file", "other.db")


def test_options_without_a_default_show_none(desk: Path) -> None:
    assert "default: main" not in run("import", "--help").stdout
    assert "default: talekeeper.db" in run("import", "--help").stdout
    assert "default: main" in run("export", "--help").stdout


def test_the_world_itself_can_speak(story: Path) -> None:
    assert data("append", "", "Far away, a bell tolls.", "--kind", "event")["kind"] == "event"


def test_note_enter_leave_and_session(story: Path) -> None:
    assert data("note", "The crown burns liars.", "--heard-by", "dm")["audience"] == ["dm"]
    assert data("enter", "rogue", "tavern")["location"] == "tavern"
    assert [seat["where"] for seat in data("seats")] == [None, "tavern", None]
    assert data("leave", "rogue", "--text", "Gone.")["text"] == "Gone."
    assert "(gone)" in run("seats").stdout
    assert [(seat["where"], seat["gone"]) for seat in data("seats")] == [(None, False), (None, True), (None, False)]
    before = data("stories")[0]["entries"]
    assert "rogue is gone already: nothing changed" in run("leave", "rogue").stdout
    assert data("leave", "rogue") is None
    run("enter", "bard", "tavern")
    assert "bard is there already: nothing changed" in run("enter", "bard", "tavern").stdout
    assert data("stories")[0]["entries"] == before + 1
    assert data("session", "The", "road", "north")["text"] == "The road north"
    assert "── The road north ──" in run("log", "--newest", "--limit", "1").stdout


def test_log_shows_what_a_seat_heard(story: Path) -> None:
    assert len(data("log")) == 32
    assert [turn["seq"] for turn in data("log", "--after", "3", "--limit", "2")] == [4, 5]
    assert [turn["seq"] for turn in data("log", "--newest", "--limit", "2")] == [31, 32]
    assert "key" not in run("log", "--seat", "bard").stdout
    assert re.search(r"· tavern ·\n +1  DM +The innkeeper slides you a key.\n +heard by dm, rogue\n", run("log", "--seat", "rogue").stdout)
    run("pin", "2")
    assert [turn["kind"] for turn in data("log", "--kinds", "pin,edit")] == ["pin"]
    assert "--newest needs --limit" in error("log", "--newest", code=2)


def test_context_is_what_goes_into_the_prompt(story: Path) -> None:
    context = data("context", "rogue", "--budget", "300", "--query", "Who gave me the key?")
    assert context["tokens"] <= context["budget"] == 300
    assert run("context", "rogue", "--budget", "300", "--query", "Who gave me the key?").stdout == context["text"]
    assert "The innkeeper slides you a key." in context["text"]


def test_context_why_accounts_for_every_token(story: Path) -> None:
    context = data("context", "rogue", "--budget", "300", "--query", "the promise", "--why")
    table = run("context", "rogue", "--budget", "300", "--query", "the promise", "--why").stdout
    assert f"{context['tokens']} of 300 tokens" in table
    for block in context["blocks"]:
        assert re.search(rf"{block['name']}\s+{block['tokens']}\s", table), table
    assert sum(block["tokens"] for block in context["blocks"]) == context["tokens"]
    assert "folded: told shorter; recall finds the words" in table
    reasons = {(one["block"], one["reason"]) for one in context["left_out"]}
    assert len(reasons) == len(table.split("left out\n")[1].splitlines()) - 1
    bar = table.splitlines()[1]
    assert 40 <= len(bar) <= 100
    assert set(bar) <= set("█▓▒░·")


def test_recall_finds_what_the_seat_heard(story: Path) -> None:
    hits = data("recall", "rogue", "innkeeper", "key", "--limit", "1")
    assert [hit["turn"]["text"] for hit in hits] == ["The innkeeper slides you a key."]
    assert "exact" in run("recall", "rogue", "slides you a key").stdout
    assert run("recall", "bard", "innkeeper").stdout == "bard heard nothing of that\n"


def test_brief_tells_what_all_players_heard(story: Path) -> None:
    text = data("brief", "bard", "--budget", "400")["text"]
    assert "Harrow" in text
    assert "innkeeper" not in text
    assert run("brief", "hero", "--story", "old-campaign").stdout == "nothing yet that everyone heard\n"


def test_folds_and_override(story: Path) -> None:
    folds = data("folds", "rogue")
    assert folds
    assert folds[0]["id"] in run("folds", "rogue").stdout
    made = data("override", folds[0]["id"], "They", "trusted", "no", "one.")
    assert made["made_by"] == "author"
    assert "They trusted no one." in run("folds", "rogue").stdout
    assert "everything is raw" in run("folds", "bard", "--budget", "8000").stdout


def test_fold_makes_up_for_a_crash(desk: Path) -> None:
    run("init")
    crash = """
        import asyncio, os, talekeeper as tk
        async def main():
            keeper = await tk.open("talekeeper.db")
            story = await keeper.story(tk.MemoryKey("local", "local", "main"))
            await story.append_many([tk.Draft("dm", f"Mile {number} of the long road to Harrow.") for number in range(300)])
            os._exit(0)
        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(crash)], check=True, timeout=60)
    made = data("fold")
    assert (made["entries"], made["pending"], made["summarizer"]) == (300, 0, "extractive")
    assert made["folds"] >= 37
    assert run("fold").stdout == "nothing was due\n"


def test_adopt_takes_a_rewind_back(story: Path) -> None:
    before = run("log").stdout
    first, second = run("rewind", "10").stdout.splitlines()
    assert first == "'main' is at entry 10; what came after is the branch 'main~1'"
    told = second.removeprefix("take it back with: ")
    run("append", "dm", "Told anew.")
    assert run(*shlex.split(told)[1:]).stdout == "'main' goes on from entry 32 of 'main~1'; what it was is the branch 'main~2'\n"
    assert run("log").stdout == before
    assert data("adopt", "main~2") == {"branch": "main", "head": 11, "adopted": "main~2", "kept": "main~1"}
    assert "Told anew." in run("log").stdout
    assert "nothing changed" in run("adopt", "main").stdout
    assert "no branch 'nope'" in error("adopt", "nope")


def test_a_rewind_of_another_branch_says_how_to_take_that_back(story: Path) -> None:
    run("fork", "what if", "--at", "12")
    run("append", "dm", "Told elsewhere.", "--branch", "what if")
    told = run("rewind", "11", "--branch", "what if").stdout.splitlines()[1].removeprefix("take it back with: ")
    run(*shlex.split(told)[1:])
    assert "Told elsewhere." in run("log", "--branch", "what if").stdout
    run("rewind", "12", "--branch", "what if")
    assert "goes on from entry 32 of 'main'" in run("adopt", "main", "--branch", "what if").stdout
    assert data("log")[-1] == data("log", "--branch", "what if")[-1]


def test_commands_that_are_proposed_are_about_the_same_story(story: Path, desk: Path) -> None:
    run("export", "out.jsonl")
    where = ("--file", "my saga.db", "--tenant", "a b", "--user", "$x", "--story", "it's")
    assert "(use --tenant 'a b' --user '$x')" in run("import", "out.jsonl", *where).stdout
    before = run("log", *where).stdout
    told = run("rewind", "10", *where).stdout.splitlines()[1].removeprefix("take it back with: ")
    run(*shlex.split(told)[1:])
    assert run("log", *where).stdout == before
    told = run("fork", "what if", *where).stdout.rpartition("use it with ")[2]
    assert run("log", *where, *shlex.split(told)).stdout == before
    shown = run("demo", "my demo.db", "--fast").stdout.splitlines()
    assert "Corin" in run(*shlex.split(next(line for line in shown if "log --seat bard" in line))[1:]).stdout


def test_rewind_keeps_what_came_after(story: Path) -> None:
    assert data("rewind", "10") == {"branch": "main", "head": 10, "kept": "main~1"}
    assert len(data("log", "--branch", "main~1")) == 32
    assert len(data("log")) == 10
    assert "is at entry 2" in run("rewind", "promise").stdout


def test_fork_and_branches(story: Path) -> None:
    assert data("fork", "what-if", "--at", "4") == {"branch": "what-if", "from": "main", "head": 4}
    run("append", "dm", "Otherwise.", "--branch", "what-if")
    assert {branch["name"]: branch["head"] for branch in data("branches")} == {"main": 32, "side": 5, "what-if": 5}
    tree = run("branches").stdout.splitlines()
    assert tree[0].endswith("*")
    assert tree[-1].startswith("└─ what-if")


def test_edit_and_regenerate(story: Path) -> None:
    assert data("edit", "1", "The innkeeper keeps the key.")["revision"] == 1
    assert "edited, revision 1" in run("log", "--limit", "1").stdout
    run("append", "dm", "First try.")
    assert data("regenerate", "Second try.")["text"] == "Second try."
    assert "First try." not in run("log").stdout


def test_forget_asks_first(story: Path) -> None:
    refused = run("forget", "1", stdin="n\n", ok=False)
    assert refused.exit_code == 1
    assert "nothing was changed" in refused.stderr
    assert "pass --yes" in run("forget", "1", stdin="", ok=False).stderr
    assert "innkeeper" in run("log").stdout
    assert "is forgotten" in run("forget", "1", stdin="y\n").stdout
    assert "innkeeper" not in run("log").stdout
    assert data("forget", "promise", "--yes")["seq"] == 2


def test_pin_and_unpin(story: Path) -> None:
    assert data("pin", "1")["seq"] == 1
    assert "## Pinned" in run("context", "rogue", "--budget", "300").stdout
    assert "it is pinned already: nothing changed" in run("pin", "1").stdout
    assert "no longer pinned" in run("unpin", "1").stdout
    assert "## Pinned" not in run("context", "rogue", "--budget", "300").stdout
    assert "it was not pinned: nothing changed" in run("unpin", "1").stdout
    assert len(data("log", "--kinds", "pin,unpin")) == 2


def test_a_budget_that_pins_do_not_fit_says_how_much_is_needed(story: Path) -> None:
    run("pin", "1")
    assert re.search(r"needs \d+ tokens, the budget is 5", error("context", "rogue", "--budget", "5"))


def test_delete_asks_first(story: Path) -> None:
    run("rewind", "5")
    run("append", "dm", "Another road.")
    row = data("stories")[0]
    asked = run("delete", stdin="n\n", ok=False)
    assert asked.exit_code == 1
    assert (row["entries"], row["branches"]) == (33, 3)
    assert "with its 33 entries on 3 branches, for good?" in asked.stderr
    assert "with its 0 entries, for good?" in run("delete", "--story", "old-campaign", stdin="n\n", ok=False).stderr
    assert data("delete", "--story", "old-campaign", "--yes")["deleted"]["session_id"] == "old-campaign"
    assert [row["story"] for row in data("stories")] == ["main"]


def test_what_an_import_left_that_was_killed_can_be_listed_and_deleted(story: Path) -> None:
    with closing(sqlite3.connect("talekeeper.db")) as db, db:
        db.execute("UPDATE stories SET config = json_set(config, '$.importing', 'x') WHERE session = 'main'")
    assert "delete it and import it again" in error("context", "rogue")
    assert "main" in [row["story"] for row in data("stories")]
    assert "an import was never finished" in run("doctor").stdout
    run("delete", "--yes")
    assert "main" not in [row["story"] for row in data("stories")]


class Told(BaseHTTPRequestHandler):
    """A server that speaks OpenAI's protocol: it tells again what it was asked to sum up, in few words, and wants a key."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        known = self.headers["Authorization"] == "Bearer open sesame"
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "text/event-stream" if known else "application/json")
        self.end_headers()
        if not known:
            self.wfile.write(b'{"error": {"message": "bad key"}}')
            return
        said = asyncio.run(MoodyModel()(asked))
        for choice in ({"delta": {"role": "assistant", "content": said}}, {"delta": {}, "finish_reason": "stop"}):
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "x", "choices": [{"index": 0, **choice}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """It is quiet."""


@pytest.fixture
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.enable_socket
def test_fold_has_folds_written_by_a_model_and_tells_what_it_cost(story: Path, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("fold", "--model", "openai:x", "--base-url", served)
    failed = error(*asked)
    assert re.match(r"openai:x wrote none of the \d+ folds? that waits? for a model, which stay extractive: .*bad key", failed)
    waiting = data("health")["last_model"]["pending"]
    assert waiting

    monkeypatch.setenv("TALEKEEPER_API_KEY", "open sesame")
    made = data(*asked)
    assert (made["model"]["name"], made["summarizer"], made["pending"]) == ("openai:x", "model", 0)
    assert made["model"]["folds"] >= waiting
    assert made["model"]["calls"] >= made["model"]["folds"]
    assert made["model"]["tokens_in"] > made["model"]["tokens_out"] > 0
    assert data("health")["last_model"]["pending"] == 0
    assert "model" in {fold["made_by"] for fold in data("folds", "rogue")}
    assert run(*asked).stdout == "nothing is due that openai:x would write\n"

    for number in range(20):
        run("append", "dm", f"Day {number}: Captain Voss counts {number + 3} lamps at Harrow, and writes to the duke about each of them.")
    assert re.search(r"^\d+ folds? written by openai:x: \d+ calls?, [\d,]+ tokens in, [\d,]+ out$", run(*asked).stdout, re.M)


def test_fold_says_what_a_model_needs_before_anything_is_opened(desk: Path) -> None:
    assert "openai:gpt-5-mini needs a key" in error("fold", "--model", "openai:gpt-5-mini")
    assert "no model at" in error("fold", "--model", "local:/nothing.gguf")
    assert "a model is named provider:name" in error("fold", "--model", "gpt")
    assert "--base-url needs --model" in error("fold", "--base-url", "http://localhost:1/v1", code=2)


def test_health_tells_how_the_last_process_with_a_model_ended(story: Path) -> None:
    assert data("health")["last_model"] is None
    assert "model ended" not in run("health").stdout

    async def refuse(messages: object) -> str:
        raise RuntimeError("HTTP 401 bad key")

    with tk.sync.open(story, summarizer=refuse, retry=tk.RetryPolicy(attempts=1, pause=0)) as keeper:
        opened = keeper.story(tk.MemoryKey("local", "local", "main"))
        opened.settle()
        then = opened.health()
    assert then.pending
    told = data("health")
    assert (told["state"], told["pending"], told["summarizer"]) == ("healthy", 0, "extractive"), "it has no model itself"
    assert told["last_model"]["state"] == "degraded"
    assert (told["last_model"]["reason"], told["last_model"]["pending"]) == (then.reason, then.pending)
    first, second = run("health").stdout.splitlines()
    assert first.startswith("healthy")
    assert re.fullmatch(
        f"the last process that had a model ended degraded after .*bad key; {then.pending} folds? waits? for a model", second
    )


def test_health_and_stats(story: Path) -> None:
    assert data("health")["state"] == "healthy"
    assert "extractive" in run("health").stdout
    stats = data("stats")
    assert (stats["turns"], stats["seats"]["bard"]["turns"]) == (32, 31)
    assert "32 turns" in run("stats").stdout


def test_doctor_finds_nothing_and_then_something(story: Path) -> None:
    assert data("doctor", "--all")["ok"]
    assert run("doctor").stdout == "the file and 1 story examined: nothing wrong\n"
    with sqlite3.connect(story) as db:
        db.execute("DELETE FROM turns WHERE pos & 16777215 = 9")
    db.close()
    result = run("doctor", ok=False)
    assert result.exit_code == 1
    assert "error  I1" in result.stdout
    assert "gone from the log" in result.stdout
    assert not json.loads(run("doctor", "--json", ok=False).stdout)["ok"]


def test_doctor_examines_what_others_refuse_to_read(story: Path) -> None:
    with sqlite3.connect(story) as db:
        db.execute("UPDATE stories SET config = '{'")
    db.close()
    assert "run `talekeeper doctor`" in error("log")
    for arguments in ((), ("--all",)):
        result = run("doctor", *arguments, ok=False)
        assert result.exit_code == 1
        assert "what is stored of it is damaged" in result.stdout


@pytest.mark.parametrize("damaged", [False, True])
def test_doctor_examines_a_file_that_may_not_be_written(damaged: bool, story: Path) -> None:
    run("doctor")  # what it imports is not for everyone's eyes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:  # nobody may look into a test's own
        path = Path(directory) / "r.db"
        shutil.copy(story, path)
        if damaged:
            with closing(sqlite3.connect(path)) as db, db:  # closing it empties the log
                db.execute("DELETE FROM turns WHERE pos & 16777215 = 9")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        with unprivileged():
            done = run("doctor", "--file", str(path), ok=False)
        path.parent.chmod(0o777)
        assert [one.name for one in path.parent.iterdir()] == ["r.db"]
    assert done.exit_code == int(damaged)
    assert ("gone from the log" if damaged else "the file and 1 story examined: nothing wrong") in done.stdout


def test_doctor_on_a_file_that_is_damaged_or_not_ours(desk: Path) -> None:
    (desk / "talekeeper.db").write_text("dear diary, " * 500)
    result = run("doctor", ok=False)
    assert result.exit_code == 1
    assert "no story file at all" in result.stdout


@pytest.mark.parametrize("command", ["log", "doctor"])
def test_a_directory_is_no_story_file(command: str, desk: Path) -> None:
    (desk / "talekeeper.db").mkdir()
    assert error(command) == "'talekeeper.db' is a directory: name a file in it"


@pytest.mark.parametrize("command", ["context", "brief"])
@pytest.mark.parametrize("budget", ["0", "1"])
def test_a_budget_for_nothing_is_said_to_be_one(command: str, budget: str, story: Path) -> None:
    done = run(command, "rogue", "--budget", budget)
    assert done.stdout == "\n"
    assert done.stderr == f"a budget of {budget} is too small for all of it, however short: from 128 up nothing is left out\n"


@pytest.mark.parametrize("wrong", [("--story", ""), ("--story", "x" * 201), ("--seat", "a", "--seat", "a"), ("--seat", "a:pc:0")])
def test_an_init_that_is_refused_makes_no_file(wrong: tuple[str, ...], desk: Path) -> None:
    error("init", *wrong)
    assert not list(desk.iterdir())


def test_a_key_on_two_lines_is_one_row_of_the_table(desk: Path) -> None:
    run("init", "--story", "one\n\ttwo")
    run("init", "--story", "three")
    assert [line.split()[2] for line in run("stories").stdout.splitlines()] == ["story", "one\\n\\ttwo", "three"]


@pytest.mark.parametrize("option", ["--story", "--tenant", "--user", "--branch"])
def test_a_key_that_is_not_utf_8_is_not_understood(option: str, desk: Path) -> None:
    for command in ("init", "log"):
        assert error(command, option, "\udcff", code=2) == f"Invalid value for '{option}': it is not UTF-8; see talekeeper {command} --help"
    assert not list(desk.iterdir())


def test_branches_are_counted_as_they_are_shown(story: Path) -> None:
    run("rewind", "9")
    run("rewind", "4")
    shown = len(data("branches"))
    assert data("stats")["branches"] == data("stories")[0]["branches"] == shown
    assert f"on {shown} branches, for good?" in run("delete", stdin="n", ok=False).output


def test_a_turn_of_a_story_without_any_is_answered_with_that(desk: Path) -> None:
    run("init")
    for command in (["pin", "1"], ["edit", "1", "Other."], ["forget", "1", "--yes"], ["pin", "own"]):
        assert error(*command).endswith(" on branch 'main'; nothing has been told on it yet")
    run("append", "dm", "One.")
    assert error("pin", "2") == "no turn with the number 2 on branch 'main'; it goes from 1 to 1"


def test_export_and_import_make_a_copy(story: Path, desk: Path) -> None:
    assert data("export", "out.jsonl")["lines"] > 32
    assert "already" in error("export", "out.jsonl")
    run("export", "out.jsonl", "--force")
    assert run("export").stdout == run("export", "-").stdout == (desk / "out.jsonl").read_text()
    assert not (desk / "-").exists()
    assert "there is a story under the key" in error("import", "out.jsonl")
    assert data("import", "out.jsonl", "--story", "copy")["key"]["session_id"] == "copy"
    assert run("log", "--story", "copy").stdout == run("log").stdout
    assert "the story 'main' is in 'new.db'" in run("import", "out.jsonl", "--file", "new.db").stdout
    assert run("log", "--file", "new.db").stdout == run("log").stdout
    assert not list(desk.glob("*.part"))


def test_what_another_import_left_or_has_begun_beside_it_is_in_no_imports_way(story: Path, desk: Path) -> None:
    run("export", "out.jsonl")
    shutil.copy("talekeeper.db", "new.db.part")
    slow = [sys.executable, "-m", "talekeeper", "import", "-", "--file", "new.db"]
    with subprocess.Popen(slow, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stderr is not None
        lines = (desk / "out.jsonl").read_text()
        other.stdin.write(lines[:9000])
        other.stdin.flush()
        while len(list(desk.glob("new.db*"))) < 2:  # it has begun
            time.sleep(0.02)
        run("import", "out.jsonl", "--file", "new.db")
        assert run("log", "--file", "new.db").stdout == run("log").stdout
        other.stdin.write(lines[9000:])
        other.stdin.close()
        assert "somebody else has just made 'new.db'" in other.stderr.read()
    assert run("log", "--file", "new.db").stdout == run("log").stdout
    assert sorted(one.name for one in desk.glob("new.db*")) == ["new.db", "new.db.part"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_export_to_a_directory_says_what_to_do(force: tuple[str, ...], story: Path, desk: Path) -> None:
    (desk / "d").mkdir()
    assert error("export", "d", *force) == "'d' is a directory: name a file in it"


@pytest.mark.parametrize("target", ["talekeeper.db", "link", "twin"])
def test_export_never_writes_over_the_story_file(target: str, story: Path, desk: Path) -> None:
    (desk / "link").symlink_to("talekeeper.db")
    (desk / "twin").hardlink_to("talekeeper.db")
    before = run("log").stdout
    assert error("export", target, "--force") == f"{target!r} is the story file itself: name another to export to"
    assert run("log").stdout == before


def test_export_writes_to_a_pipe_and_through_a_link_and_leaves_both(story: Path, desk: Path) -> None:
    lines = run("export").stdout
    os.mkfifo("pipe")
    with os.fdopen(os.open("pipe", os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        run("export", "pipe")
        assert reader.read() == lines
    assert (desk / "pipe").is_fifo()
    (desk / "link").symlink_to("old.jsonl")
    (desk / "old.jsonl").write_text("old")
    assert "already" in error("export", "link")
    run("export", "link", "--force")
    assert (desk / "link").is_symlink()
    assert (desk / "old.jsonl").read_text() == lines


def test_export_touches_no_file_but_the_one_it_is_told(story: Path, desk: Path) -> None:
    (desk / "out.jsonl.part").write_text("mine")
    run("export", "out.jsonl")
    assert (desk / "out.jsonl.part").read_text() == "mine"
    assert sorted(one.name for one in desk.glob("out*")) == ["out.jsonl", "out.jsonl.part"]


def test_export_and_import_where_no_file_can_be_made_name_the_directory() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        inside = Path(folder) / "closed"
        inside.mkdir()
        Path(folder).chmod(0o755)
        source = Path(folder) / "talekeeper.db"
        run("init", "--file", str(source))
        run("export", f"{folder}/in.jsonl", "--file", str(source))
        source.chmod(0o444)
        inside.chmod(0o555)
        with unprivileged():
            said = error("export", f"{inside}/out.jsonl", "--file", str(source))
            assert error("import", f"{folder}/in.jsonl", "--file", f"{inside}/new.db") == said
        assert said == f"no file can be made in the directory {str(inside)!r}: check its permissions, or choose another"


def test_export_to_stdout_and_json_do_not_go_together(story: Path) -> None:
    assert "--json needs a FILE" in error("export", "--json", code=2)
    assert "--json needs a FILE" in error("export", "-", "--json", code=2)


def test_import_says_which_line_is_wrong_and_leaves_nothing(story: Path, desk: Path) -> None:
    run("export", "out.jsonl")
    lines = (desk / "out.jsonl").read_text().splitlines(keepends=True)
    (desk / "bad.jsonl").write_text("".join(lines[:20]) + "{oops\n")
    assert error("import", "bad.jsonl", "--story", "copy").startswith("line 21: not JSON")
    (desk / "bad.jsonl").write_bytes(b"\xff\xfe\x00 no text at all")
    assert error("import", "bad.jsonl", "--story", "copy").startswith("line 1: not UTF-8")
    assert [row["story"] for row in data("stories")] == ["main", "old-campaign"]
    assert error("import", "none.jsonl", "--story", "copy") == "No such file or directory: 'none.jsonl'; check the path"
    (desk / "bad.jsonl").write_text("A tale.\n")
    assert error("import", "bad.jsonl", "--story", "copy").startswith("line 1: not JSON, so this is no story that Talekeeper has exported")


def test_import_says_what_its_first_line_lacks_and_takes_no_hearers_out_of_order(story: Path, desk: Path) -> None:
    run("export", "out.jsonl")
    whole = (desk / "out.jsonl").read_text()
    (desk / "bad.jsonl").write_text(whole.replace('"tenant_id"', '"tenant"', 1))
    assert error("import", "bad.jsonl", "--story", "copy").startswith(
        "line 1: the story's config cannot be understood: its key needs a ten"
    )
    channels = re.compile(r'("hearers": ?)\["dm", ?"rogue"\]')
    assert channels.search(whole)
    (desk / "bad.jsonl").write_text(channels.sub(r'\1["rogue","dm"]', whole))
    assert "no channel of this story" in error("import", "bad.jsonl", "--story", "copy")
    assert [row["story"] for row in data("stories")] == ["main", "old-campaign"]


def test_import_changes_only_that_part_of_a_key_which_is_named(desk: Path) -> None:
    run("init", "--tenant", "acme", "--user", "ana", "--story", "s")
    run("export", "s.jsonl", "--tenant", "acme", "--user", "ana", "--story", "s")
    assert list(data("import", "s.jsonl", "--story", "t")["key"].values()) == ["acme", "ana", "t"]
    assert list(data("import", "s.jsonl", "--tenant", "local")["key"].values()) == ["local", "ana", "s"]
    assert "--tenant acme --user ben" in run("import", "s.jsonl", "--user", "ben").stdout


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal", ".table", ".table-wal"])
def test_export_writes_nothing_in_the_place_of_what_belongs_to_the_story_file(ending: str, story: Path, desk: Path) -> None:
    before = sorted(desk.iterdir())
    assert "is a place for a part of the story file" in error("export", f"talekeeper.db{ending}", "--force")
    assert sorted(desk.iterdir()) == before
    assert data("export", f"other.db{ending}")["lines"] > 32


def test_what_stands_on_standard_input_may_come_from_windows(story: Path) -> None:
    assert data("append", "dm", "--id", "twice", stdin="\ufeffOne\r\ntwo\r\n")["text"] == "One\ntwo"
    assert data("append", "dm", "--id", "twice", stdin="One\ntwo\n")["text"] == "One\ntwo"


def test_a_seat_has_no_comma_in_its_id(desk: Path) -> None:
    assert "'a,b' has a comma" in error("init", "--seat", "a,b", code=2)
    assert not list(desk.iterdir())


def test_a_forgotten_turns_id_is_not_used_again(story: Path) -> None:
    run("append", "rogue", "My secret.", "--id", "sec")
    run("forget", "sec", "--yes")
    assert "was forgotten: choose another" in error("append", "rogue", "Something else.", "--id", "sec")


def test_a_story_with_damaged_settings_is_said_to_be_damaged(story: Path) -> None:
    with closing(sqlite3.connect("talekeeper.db")) as db, db:
        db.execute("UPDATE stories SET config = '{}'")
    for command in (["log"], ["context", "rogue"], ["append", "dm", "Hello."]):
        assert "are damaged: run talekeeper doctor" in error(*command)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--dm", "--tenant", ""], "tenant_id is empty"), (["--dm", "--tenant", "x" * 300], "at most 200"), (["--seat", ""], "is blank"),
        (["--seat", "rogue", "--user", "", "--story", "s"], "user_id is empty"), (["--dm", "--name", "a\nb"], "cannot be printed"),
        (["--seat", "\udcff"], "lone surrogate"), (["--dm", "--name", "\udcff"], "lone surrogate"),
    ],
)  # fmt: skip
def test_a_token_that_no_server_would_take_is_not_made(wrong: list[str], message: str, desk: Path) -> None:
    run("tokens", "new", "--dm", "--tokens", "t.toml")
    before = (desk / "t.toml").read_text()
    assert message in error("tokens", "new", *wrong)
    assert message in error("tokens", "new", *wrong, "--tokens", "t.toml")
    assert (desk / "t.toml").read_text() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--json"], "add --auto"), (["--party", "nobody"], "must be of this adventure's heroes"), (["--party", ""], "names nobody"),
        (["--human", "nobody"], "nobody"), (["--model", "bogus"], "provider:name"), (["--scenario", "nowhere"], "nowhere"),
    ],
)  # fmt: skip
def test_a_game_that_cannot_be_played_is_not_begun(wrong: list[str], message: str, desk: Path) -> None:
    result = run("play", *wrong, stdin="", ok=False)
    assert (result.exit_code > 0, message in result.stderr) == (True, True), result.stderr
    assert not (desk / "talekeeper.db").exists() or data("stories") == []


def test_demo_can_be_kept(desk: Path) -> None:
    shown = data("demo", "demo.db", "--fast")
    assert set(shown["contexts"]) == {"dm", "rogue", "bard"}
    assert "Wren" in run("log", "--file", "demo.db").stdout
    assert "already" in error("demo", "demo.db")


def test_bench_engine_runs(desk: Path) -> None:
    small = ["--quick", "--sizes", "50,100", "--rounds", "2", "--batch", "5", "--stories", "20", "--volleys", "2", "--starts", "1"]
    report = data("bench", "engine", *small, "--resumes", "1", "--no-peers", "--plot", "engine.svg")
    assert report["benchmark"] == "engine"
    assert report["options"]["sizes"] == [50, 100]
    assert (desk / "engine.svg").read_text().startswith("<svg")


def test_bench_engine_does_not_measure_what_it_could_not_draw(desk: Path) -> None:
    assert "there is no directory 'nowhere'" in error("bench", "engine", "--quick", "--plot", "nowhere/engine.svg")


def test_bench_engine_check_fails_where_a_target_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    from talekeeper.bench import engine
    from talekeeper.bench.report import Footprint, Point, Report

    point = Point(
        system="us", turns=100, cpu_us=9, cpu_ratio=1, cpu_mean_us=9, bytes_written=9, resume_us=9, context_chars=9, measured=9,
    )  # fmt: skip
    slow = Report(
        points=(point,), limit="L", ours="us", footprint=Footprint(import_ms=900, ready_ms=900, yardstick_ms=100, packages=("one",))
    )
    monkeypatch.setattr(engine, "run", lambda options, progress: slow)
    checked = run("bench", "engine", "--check", ok=False)
    assert checked.exit_code == 1
    assert "MISSED   import talekeeper" in checked.stdout
    assert run("bench", "engine").stdout == checked.stdout
    assert "write numbers of turns" in error("bench", "engine", "--sizes", "many", code=2)


# -- which story -------------------------------------------------------------------------------------------------------


def test_options_may_stand_before_or_after_the_command_or_in_the_environment(
    story: Path, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.rename(desk / "saga.db")
    assert len(data("--file", "saga.db", "log")) == len(data("log", "-f", "saga.db")) == 32
    assert json.loads(run("--json", "-f", "saga.db", "stats").stdout)["turns"] == 32
    monkeypatch.setenv("TALEKEEPER_FILE", "saga.db")
    monkeypatch.setenv("TALEKEEPER_STORY", "old-campaign")
    assert data("log") == []
    assert len(data("log", "--story", "main")) == 32
    monkeypatch.setenv("TALEKEEPER_BRANCH", "side")
    assert len(data("log", "--story", "main")) == 5


def test_stories_of_others_are_not_seen(story: Path) -> None:
    assert "no story 'main' of acme/local" in error("log", "--tenant", "acme")
    run("init", "--tenant", "acme", "--user", "ana")
    assert data("log", "--tenant", "acme", "--user", "ana") == []
    assert len(data("log")) == 32


# -- what goes wrong -----------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "append": ["dm", "x"], "note": ["x"], "enter": ["rogue", "x"], "leave": ["rogue"], "context": ["rogue"], "recall": ["rogue", "x"],
    "brief": ["rogue"], "folds": ["rogue"], "rewind": ["1"], "adopt": ["side"], "fork": ["x"], "edit": ["1", "x"], "regenerate": ["x"],
    "pin": ["1"], "unpin": ["1"], "override": ["f", "x"], "delete": ["--yes"], "forget": ["1", "--yes"],
}  # fmt: skip
MAKERS = {
    "init",
    "import",
    "demo",
    "bench engine",
    "bench retention",
    "bench server",
    "bench table",
    "serve",
    "tokens new",
    "models get",
    "models list",
    "models check",
} | {
    "play",
    "scenario list",
    "scenario check",
}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - MAKERS))
def test_no_command_but_init_makes_a_file(name: str, desk: Path) -> None:
    message = error(name, *ARGUMENTS.get(name, []))
    assert "no story file at 'talekeeper.db'; begin a game with talekeeper play, or a story of your own with talekeeper init" in message
    assert list(desk.iterdir()) == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - MAKERS))
def test_no_command_but_init_makes_a_story_file_of_an_empty_one(name: str, desk: Path) -> None:
    (desk / "talekeeper.db").touch()
    assert "'talekeeper.db' is empty, and no story file; begin a game with talekeeper play" in error(name, *ARGUMENTS.get(name, []))
    assert [(one.name, one.stat().st_size) for one in desk.iterdir()] == [("talekeeper.db", 0)]


def test_init_fills_an_empty_file(desk: Path) -> None:
    (desk / "talekeeper.db").touch()
    run("init")
    assert data("log") == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - MAKERS - {"stories"}))
def test_a_story_that_is_not_in_the_file_is_named(name: str, story: Path) -> None:
    message = error(name, *ARGUMENTS.get(name, []), "--story", "nope")
    assert "no story 'nope' in 'talekeeper.db' (there are: main, old-campaign)" in message


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["append", "rouge", "x"], "did you mean 'rogue'?"),
        (["append", "dm", "x", "--heard-by", "spy"], "no seat 'spy'"),
        (["append", "dm", "  "], "text is blank"),
        (["context", "spy"], "no seat 'spy'"),
        (["rewind", "999"], "no entry number 999"),
        (["rewind", "t-nope"], "no turn with the id 't-nope'"),
        (["edit", "999", "x"], "no turn with the number 999"),
        (["override", "nope", "x"], "no fold 'nope'"),
        (["fork", "main"], "there is a branch 'main' already"),
        (["log", "--branch", "nope"], "no branch 'nope'"),
        (["log", "--kinds", "sung"], "kinds must be a list out of"),
        (["init", "--seat", "x:pc:0"], "must be at least 1"),
        (["context", "rogue", "--budget", "9" * 400], "budget must be at most 9223372036854775807"),
        (["rewind", "9" * 5000], "no turn with the id '999"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(args: list[str], message: str, story: Path) -> None:
    assert message in error(*args)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["sing"], "No such command 'sing'; see talekeeper --help"),
        (["context"], "Missing argument 'SEAT'; see talekeeper context --help"),
        (["context", "rogue", "--budget", "much"], "Invalid value for '--budget': 'much' is not a whole number"),
        (["context", "rogue", "--budget", "-1"], "Invalid value for '--budget'"),
        (["recall", "rogue", "x", "--limit", "0"], "Invalid value for '--limit'"),
        (["append", "dm", "x", "--mood", "sad"], "No such option"),
        (["init", "--seat", "a:b:c:d"], "write ID, ID:ROLE or ID:ROLE:LIMIT"),
        (["init", "--seat", "x:pc:" + "9" * 5000], "write ID, ID:ROLE or ID:ROLE:LIMIT"),
        (["init", "--seat", "x:king"], "a seat is dm, pc or npc"),
        (["bench", "nothing"], "No such command"),
        (["log", "-f", ""], "Invalid value for '--file' / '-f': the file's name is empty"),
    ],
)
def test_what_is_not_understood_is_said_in_one_line(args: list[str], message: str, story: Path) -> None:
    assert message in error(*args, code=2)


def test_files_that_are_not_ours_are_left_alone(desk: Path) -> None:
    (desk / "notes.txt").write_text("dear diary, " * 500)
    assert "is not a Talekeeper store" in error("log", "-f", "notes.txt")
    assert "is not a Talekeeper store" in error("init", "-f", "notes.txt")
    with sqlite3.connect(desk / "other.db") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    assert "the SQLite file of another program" in error("stories", "-f", "other.db")
    assert "is a directory" in error("log", "-f", ".")


def test_places_that_cannot_be_written_are_named(story: Path, desk: Path) -> None:
    assert "there is no directory 'none'" in error("init", "-f", "none/saga.db")
    assert "cannot be opened" in error("init", "-f", "/proc/saga.db")
    assert "there is no directory 'none': make it first" in error("export", "none/out.jsonl")
    assert "'/nope' does not exist" in error("bench", "engine", "--directory", "/nope", code=2)


def test_story_text_cannot_reach_the_terminal_as_anything_but_letters(story: Path) -> None:
    evil = "a\x1b[2J\x1b]0;owned\x07b\x9bc\u202ed\x7f"
    for args in (
        ["append", "dm", evil],
        ["log"],
        ["recall", "dm", "owned"],
        ["context", "dm"],
        ["context", "dm", "--json"],
        ["log", "--json"],
    ):
        out = run(*args).output
        assert not set(out) & set("\x1b\x07\x9b\u202e\x7f"), args
    assert "a\\x1b[2J" in run("log").stdout
    assert "[DM]: a[2J]0;ownedbcd" in run("context", "dm").stdout
    assert data("log", "--newest", "--limit", "1")[0]["text"] == evil
    assert not set(run("append", "\x1b[2J", "x", ok=False).stderr) & {"\x1b"}


def test_standard_input_that_is_no_text_is_refused(story: Path) -> None:
    result = CliRunner().invoke(main, ["append", "dm"], input=b"\xff\xfe")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "not UTF-8" in result.stderr


# -- help and documentation ----------------------------------------------------------------------------------------------


def examples(name: str) -> list[str]:
    text = COMMANDS[name].help or ""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("talekeeper ")]


def test_the_overview_names_every_command() -> None:
    for args in ([], ["--help"], ["-h"]):
        out = run(*args).stdout
        for name in main.commands:
            assert re.search(rf"^  {name} ", out, re.M), name
    assert "engine" in run("bench").stdout
    assert run("--version").stdout.startswith("talekeeper ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    out = run(*name.split(), "--help").stdout
    assert "Example:" in out
    assert f"talekeeper {name}" in out
    assert "--json" in out
    assert all(line.startswith(f"talekeeper {name}") or name == "fork" for line in examples(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_offers_only_what_has_an_effect(name: str) -> None:
    words = re.findall(r"--(file|story|tenant|user|branch)\b", run(*name.split(), "--help").stdout.partition("Options:")[2])
    if name.startswith(("bench", "scenario", "models")) or name == "demo":
        assert not {"file", "tenant", "user", "branch"} & set(words)
        assert "story" not in words
    elif name == "stories":
        assert set(words) == {"file"}
    elif name == "serve":
        assert set(words) == {"file", "tenant"}
    else:
        assert {"story", "tenant", "user"} <= set(words)
    if name == "stories":
        assert "No such option '--branch'" in error("stories", "--branch", "main", code=2)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"bench engine", "bench retention", "bench server", "bench table", "serve"}))
def test_every_example_works(name: str, story: Path, desk: Path) -> None:
    shutil.copy(story, desk / "saga.db")
    if name == "import":
        run("export", "ash-crown.jsonl")
    fold = data("folds", "rogue")[0]["id"]
    for example in [example for example in examples(name) if "--web" not in example]:  # a server is another test's affair
        run(*shlex.split(re.sub(r"\b[0-9a-f]{24}\b", fold, example))[1:])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_all_its_options(name: str) -> None:
    text = DOCS.read_text()
    section = re.search(rf"^### `{name}[` ].*?(?=^##)", text + "\n## ", re.M | re.S)
    assert section, f"docs/cli.md has no section for {name}"
    for param in COMMANDS[name].params:
        if isinstance(param, click.Option) and param.expose_value:
            assert f"{max(param.opts, key=len)}" in section[0], param.opts


def test_the_commands_in_the_documentation_work(desk: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", DOCS.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("talekeeper ")]
    assert len(lines) > 10
    for line in lines:
        if not line.startswith("talekeeper bench"):
            run(*shlex.split(line.partition(" #")[0])[1:])


# -- as a process ------------------------------------------------------------------------------------------------------


def process(*args: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "talekeeper", *args], capture_output=True, text=True, timeout=60, **settings)


def test_a_real_process_appends_and_reads(desk: Path) -> None:
    assert process("init").returncode == 0
    assert process("append", "hero", "I wake up.").returncode == 0
    assert "I wake up." in process("log").stdout
    failed = process("append", "villain", "I win.")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: no seat 'villain'")
    assert process("sing").returncode == 2


def test_help_is_there_at_once() -> None:
    code = "import sys, talekeeper.cli as cli; cli.main(['--help'], standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "Remembering" in done.stdout
    assert not loaded & {"asyncio", "sqlite3", "talekeeper.story.story", "talekeeper.keeper", "talekeeper.demo", "talekeeper.bench"}


@pytest.mark.parametrize(("command", "package", "extra"), [("serve", "uvicorn", "serve"), ("play", "langgraph", "play")])
def test_a_missing_extra_is_named_with_what_to_type(command: str, package: str, extra: str, desk: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from talekeeper.cli import main; main([{command!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"pip install 'talekeeper[{extra}]', or in a checkout pip install '.[{extra}]'\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_is_no_error(story: Path) -> None:
    many = "".join(f"line {number}\n" for number in range(9000))
    process("append", "dm", input=many)
    talk = f"{shlex.quote(sys.executable)} -m talekeeper log"
    done = subprocess.run(["bash", "-c", f"{talk} | head -n 1"], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def in_a_shell(command: str) -> subprocess.CompletedProcess[str]:
    """What becomes of `talekeeper` with arguments and redirections as in a shell."""
    line = f"{shlex.quote(sys.executable)} -m talekeeper {command}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("append rogue", "there is no text: write it behind the command"),
        ("recall rogue", "there is no query: write it behind the command"),
        ("forget 2", "no answer, so nothing was changed; pass --yes"),
        ("import -", "this is no exported story"),
    ],
)
def test_standard_input_that_is_closed_has_nothing_in_it(command: str, message: str, story: Path) -> None:
    done = in_a_shell(f"{command} <&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_game_that_nobody_can_answer_is_left(desk: Path) -> None:
    done = in_a_shell("play --scenario tidelamp <&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Until next time." in done.stdout


@pytest.mark.parametrize("command", ["log", "export", "stories --json", "append rogue 'I am not heard.'", "--help"])
def test_standard_output_that_is_closed_is_refused_before_anything_is_done(command: str, story: Path) -> None:
    done = in_a_shell(f"{command} >&-")
    assert done.returncode == 1
    assert done.stderr == "error: standard output is closed, so nothing was done: send it to a file, or to /dev/null\n"
    assert "I am not heard." not in run("log").stdout


def test_messages_may_be_closed(story: Path) -> None:
    assert in_a_shell("fold 2>&-").returncode == 0
    assert in_a_shell("log --seat nobody 2>&-").returncode == 1


def interrupted(*args: str, ready: Callable[[subprocess.Popen[str]], object]) -> tuple[int, str]:
    """What becomes of a command when Ctrl-C is pressed: by `ready`, or else once that is done. Its input does not end before it does."""
    child = subprocess.Popen(
        [sys.executable, "-m", "talekeeper", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        if ready(child) is None:
            child.send_signal(signal.SIGINT)
        child.wait(timeout=30)
    finally:
        child.kill()
        _, err = child.communicate()
    return child.returncode, err


def listening(child: subprocess.Popen[str]) -> None:
    """Half a line is typed, and the command has taken it."""
    assert child.stdin is not None
    child.stdin.write("Half a li")
    child.stdin.flush()
    while fcntl.ioctl(child.stdin, termios.FIONREAD, bytes(4)) != bytes(4):
        time.sleep(0.01)


@pytest.mark.parametrize("args", ["append dm", "append dm -", "note", "edit 2", "recall bard", "import -", "import - --file new.db"])
def test_ctrl_c_is_a_line_and_not_a_traceback(args: str, story: Path, desk: Path) -> None:
    before = run("log", "--json").stdout, run("stories").stdout
    code, err = interrupted(*args.split(), ready=listening)
    assert (code, err.strip()) == (130, "error: stopped")
    assert (run("log", "--json").stdout, run("stories").stdout) == before
    assert not list(desk.glob("new.db*"))


@pytest.mark.parametrize(
    ("args", "shown"),
    [("append dm", "end it with Ctrl-D"), ("append dm -", "end it with Ctrl-D"), ("forget 2", "[y/N]: "), ("delete", "[y/N]: ")],
)
def test_one_ctrl_c_at_a_terminal_ends_what_is_asked_there(args: str, shown: str, story: Path) -> None:
    before = run("log", "--json").stdout
    screen = Screen(*args.split())
    try:
        screen.until(shown)
        screen.press("y")
        time.sleep(0.5)  # as people take to think better of it
        screen.press("\x03")
        assert screen.ends(within=20) == 130
    finally:
        screen.close()
    assert "error:" in screen.shown.splitlines()[-1]
    assert "stopped" in screen.shown.splitlines()[-1]
    assert run("log", "--json").stdout == before


def half_a_story(desk: Path, told: signal.Signals = signal.SIGINT) -> Callable[[subprocess.Popen[str]], bool]:
    """Has the story `out.jsonl` come through a pipe, half of it; then Ctrl-C is pressed, or else it is told to end, and the pipe ends."""
    run("export", "out.jsonl")
    os.mkfifo(desk / "pipe")

    def feed(child: subprocess.Popen[str]) -> bool:
        lines = (desk / "out.jsonl").read_text().splitlines(keepends=True)
        with (desk / "pipe").open("w") as pipe:
            pipe.writelines(lines[:30])
            pipe.flush()
            time.sleep(1)
            child.send_signal(told)
            time.sleep(1)
        return True

    return feed


def test_an_import_that_is_interrupted_leaves_nothing(story: Path, desk: Path) -> None:
    code, err = interrupted("import", "pipe", "--story", "copy", ready=half_a_story(desk))
    assert code == 130
    assert "Traceback" not in err
    assert [row["story"] for row in data("stories")] == ["main", "old-campaign"]


def test_an_import_that_is_interrupted_leaves_no_file_either(story: Path, desk: Path) -> None:
    code, err = interrupted("import", "pipe", "--file", "new.db", ready=half_a_story(desk))
    assert (code, err.strip()) == (130, "error: stopped")
    assert [one.name for one in desk.iterdir() if one.name.startswith("new.db")] == []
    (desk / "half.jsonl").write_text((desk / "out.jsonl").read_text().splitlines(keepends=True)[0])
    assert "its last line is missing" in error("import", "half.jsonl", "--file", "new.db")
    assert [one.name for one in desk.iterdir() if one.name.startswith("new.db")] == []
    run("import", "out.jsonl", "--file", "new.db")
    assert [one.name for one in desk.iterdir() if one.name.startswith("new.db")] == ["new.db"]


def test_an_import_that_is_told_to_end_leaves_no_file_either(story: Path, desk: Path) -> None:
    code, err = interrupted("import", "pipe", "--file", "new.db", ready=half_a_story(desk, signal.SIGTERM))
    assert (code, err.strip()) == (130, "error: stopped")
    assert [one.name for one in desk.iterdir() if one.name.startswith("new.db")] == []


def test_a_benchmark_that_is_told_to_end_leaves_nothing_behind(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(desk))

    def measuring(child: subprocess.Popen[str]) -> bool:
        while not list(desk.glob("talekeeper-bench-*/*.db")):
            time.sleep(0.01)
        child.terminate()
        return True

    code, err = interrupted("bench", "engine", "--no-peers", ready=measuring)
    assert (code, err.splitlines()[-1]) == (130, "error: stopped")
    assert list(desk.iterdir()) == []


@pytest.mark.parametrize("pause", [0.03, 0.06])
def test_ctrl_c_pressed_twice_is_no_traceback_either(pause: float, story: Path) -> None:
    def impatient(child: subprocess.Popen[str]) -> None:
        listening(child)
        child.send_signal(signal.SIGINT)
        time.sleep(pause)

    code, err = interrupted("append", "dm", ready=impatient)
    assert (code, err.strip()) == (130, "error: stopped")


def test_ctrl_c_while_the_program_is_loaded_is_a_line(desk: Path) -> None:
    pressed = (
        "class Pressed:\n    def find_spec(self, name, *_):\n        if name == 'talekeeper.cli.look':\n            raise KeyboardInterrupt"
    )
    code = f"import sys\n{pressed}\nsys.meta_path.insert(0, Pressed())\nimport talekeeper.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "error: stopped\n")


def test_a_terminal_that_cannot_show_a_letter_shows_its_code(desk: Path) -> None:
    process("init")
    process("append", "dm", "Aethel says: 钥匙")
    done = process("log", env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Aethel says: \\u94a5\\u5319" in done.stdout
