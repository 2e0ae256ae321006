"""Playing in a terminal, as a person would: typed lines in, a story out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from talekeeper.cli import main


def run(*args: str, typed: str = "") -> str:
    result = CliRunner().invoke(main, list(args), input=typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "game.db")


def test_a_person_plays_looks_and_leaves(file: str) -> None:
    out = run(
        "play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/moments\n/ledger\n/why\n/knows osric tidelamp\n/quit\n"
    )
    assert "The Tidelamp" in out
    assert "says Marlo Finch" in out
    assert "took Marlo Finch's job" in out
    assert "promised Marlo Finch" in out
    assert "tokens" in out
    assert "Until next time" in out


def test_a_story_is_taken_up_where_it_was_left(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/quit\n")
    out = run("play", "--file", file, typed="/moments\n/quit\n")
    assert "took Marlo Finch's job" in out
    assert "game.db" in out
    assert "main" in run("stories", "--file", file)


def test_undo_takes_it_back(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/undo\n/moments\n/branches\n/quit\n")
    assert "back before round 1" in out
    assert "nothing yet" in out
    assert "main~1" in out


def test_a_whisper_is_heard_by_one(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="/whisper osric Meet me on the roofs.\nI wait.\n/quit\n")
    assert "Meet me on the roofs." in run("context", "osric", "--file", file)
    assert "Meet me on the roofs." not in run("context", "ibbi", "--file", file)


def test_the_end_of_the_input_is_leaving_and_a_wrong_command_is_told(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="/dance\n/memory nobody\n")
    assert "there is no /dance" in out
    assert "nobody here is called" in out
    assert "Until next time" in out


def test_an_ending_on_request(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/end\n")
    assert "Epilogue" in out


def test_the_party_plays_by_itself_the_same_story_for_the_same_seed(tmp_path: Path) -> None:
    told = []
    for name in ("a.db", "b.db"):
        turns = json.loads(run("play", "--file", str(tmp_path / name), "--auto", "--rounds", "4", "--seed", "9", "--json"))
        told.append([(turn["speaker"], turn["text"]) for turn in turns])
    assert told[0] == told[1]
    assert {speaker for speaker, _ in told[0]} >= {"dm", "nell", "osric", "ibbi"}


def test_scenarios_are_listed_and_checked(tmp_path: Path) -> None:
    assert "tidelamp" in run("scenario", "list")
    assert "nothing is wrong" in run("scenario", "check", "tidelamp")
    bad = tmp_path / "bad.toml"
    bad.write_text('[scenario]\nid = "x"\n')
    result = CliRunner().invoke(main, ["scenario", "check", str(bad)])
    assert result.exit_code == 1
    assert "title" in result.output


def test_bad_wishes_are_one_line(file: str) -> None:
    for args, problem in (
        (("--party", "nobody"), "heroes"), (("--human", "marlo"), "not of the party"), (("--scenario", "nowhere"), "nowhere"),
        (("--base-url", "http://x"), "--model"),
    ):  # fmt: skip
        result = CliRunner().invoke(main, ["play", "--file", file, *args])
        assert result.exit_code != 0
        assert problem in str(result.exception) + result.output


def refused(*args: str) -> str:
    """What is said where the program will not do it."""
    result = CliRunner().invoke(main, list(args), catch_exceptions=False)
    assert result.exit_code == 1, result.output
    return result.output


def test_a_new_game_says_who_you_are_and_why(file: str) -> None:
    out = run("play", "--file", file, "--party", "nell,osric", "--human", "osric", typed="/quit\n")
    assert "You are Osric Vey, a lieutenant, formerly. Tall, shaved with care" in out
    assert "With you: Nell Tarn, a burglar." in out
    assert "You owe money in this city" in out


def test_whoever_comes_back_is_told_where_they_are(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/quit\n")
    out = run("play", "--file", file, typed="/quit\n")
    assert "Round 2" in out
    assert "took Marlo Finch's job" in out
    assert "“The Tidelamp,” says Marlo Finch" in out
    assert "Nell Tarn > /quit" in out
    assert "You are Nell Tarn" not in out


def test_a_story_that_is_there_is_not_begun_in_another_way(file: str) -> None:
    run("play", "--file", file, "--seed", "5", "--party", "nell,osric", typed="/quit\n")
    for option, value, now in (("--seed", "6", "5"), ("--party", "nell", "nell,osric"), ("--scenario", "quiet_snow", "tidelamp")):
        said = refused("play", "--file", file, option, value)
        assert f"the story 'main' is there already, with {option} {now}" in said
        assert "--story NAME" in said
    run("play", "--file", file, "--seed", "5", "--party", "nell,osric", "--scenario", "tidelamp", typed="/quit\n")


def test_a_story_goes_on_by_itself_and_then_with_its_person(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="/quit\n")
    assert "Nell Tarn >" not in run("play", "--file", file, "--auto", "--rounds", "2")
    out = run("play", "--file", file, typed="/quit\n")
    assert "Round 3" in out
    assert "Nell Tarn >" in out
    assert "Osric Vey >" in run("play", "--file", file, "--human", "osric", typed="/quit\n")


def test_what_was_watched_can_be_played(file: str) -> None:
    run("play", "--file", file, "--auto", "--rounds", "1")
    assert "Nell Tarn >" in run("play", "--file", file, typed="/quit\n")


def test_the_branch_that_was_played_last_is_gone_on_with(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/fork a b\n/fork bold\nI wait.\n/quit\n")
    assert "a name of one word" in out
    assert "on the branch bold." in out
    out = run("play", "--file", file, typed="/switch nowhere\n/switch main\n/quit\n")
    assert "Round 3, branch bold" in out
    assert "no branch 'nowhere'" in out
    assert "now on main, before round 2" in out
    assert "Round 2\n" in run("play", "--file", file, typed="/quit\n")
    assert "Round 3, branch bold" in run("play", "--file", file, "--branch", "bold", typed="/quit\n")
