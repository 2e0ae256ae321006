"""Playing in a terminal, as a person would: typed lines in, a story out."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from talekeeper.cli import keyboard, main

DOCS = Path(__file__).parents[2] / "docs"


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
    assert "took on Marlo Finch's job" in out
    assert "promised Marlo Finch" in out
    assert "tokens" in out
    assert "Until next time" in out


def test_a_story_is_taken_up_where_it_was_left(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/quit\n")
    out = run("play", "--file", file, typed="/moments\n/quit\n")
    assert "took on Marlo Finch's job" in out
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


def test_a_line_that_cannot_be_stored_is_asked_for_again(file: str) -> None:
    typed = b"/nudge a\0b\na\0b\ncaf\xe9\nI ask Marlo about the job.\n/moments\n/quit\n"
    result = CliRunner().invoke(main, ["play", "--file", file, "--seed", "5"], input=typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "the nudge has a NUL byte" in result.output
    assert "the answer has a NUL byte" in result.output
    assert "it was not read as UTF-8" in result.output
    assert "took on Marlo Finch's job" in result.output
    assert "Until next time" in run("play", "--file", file, typed="/quit\n")


def test_a_line_that_is_too_long_is_refused_with_what_to_do_and_the_turn_is_still_there(file: str) -> None:
    for words in (2_000, 40_000):
        out = run("play", "--file", file, "--seed", "5", typed=f"{'word ' * words}\n/quit\n")
        assert "characters, at most 4,000 are taken: say it in several turns. It is still your turn." in out


def test_a_story_that_is_played_at_two_terminals_goes_on_at_both(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["I look at the harbour.", "I ask Marlo about the job.", "/moments", "/quit"])
    begun: list[str] = []

    def read(prompt: str) -> str:
        if not begun:
            call = [sys.executable, "-c", "from talekeeper.cli import main; main()", "play", "--file", file]
            done = subprocess.run(call, input="I wait.\n/quit\n", capture_output=True, text=True, timeout=60, check=True)
            begun.append(done.stdout)
        return next(lines)

    monkeypatch.setattr(keyboard, "_read", read)
    out = run("play", "--file", file, "--seed", "5")
    assert "Until next time" in begun[0]
    assert "The story has moved on since this round began" in out
    assert "Not told, so say it again if you still want to: I look at the harbour." in out
    assert "took on Marlo Finch's job" in out
    told = run("log", "--file", file)
    assert "I wait." in told
    assert "I look at the harbour." not in told


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
    small = (Path(__file__).parents[1] / "table" / "small.toml").read_text("utf-8")
    bad.write_text(small.replace("The rats bite.", "The rats bite you."))
    assert re.search(
        r"line [0-9]+, encounters.rats.ways.fight_rats.fail_say: warning: .*\n1 warning$", run("scenario", "check", str(bad)).strip()
    )


def test_only_dice_are_shown_between_the_lines(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I threaten Brine.\nI talk to Marlo.\n/quit\n")
    assert out.count("⚂") >= 1
    assert "No roll" not in out


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


def test_a_file_of_rounds_that_cannot_be_used_is_one_line(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="/quit\n")
    rounds = Path(f"{file}.table")
    rounds.write_bytes(b"no database " * 400)
    for command in (["play"], ["delete", "--yes"]):
        said = refused(*command, "--file", file)
        assert "game.db.table' is damaged: remove it and play on; it only keeps rounds in flight" in said
    rounds.unlink()
    rounds.mkdir()
    assert "game.db.table' is a directory" in refused("play", "--file", file)
    rounds.rmdir()
    rounds.symlink_to("nowhere/at/all")
    assert "game.db.table' cannot be written: check its permissions" in refused("play", "--file", file)
    rounds.unlink()
    assert "Until next time" in run("play", "--file", file, typed="/quit\n")


def test_a_story_that_cannot_be_written_is_not_begun_to_be_played(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("play", "--file", file, "--seed", "5", typed="/quit\n")
    monkeypatch.setattr("talekeeper.stores.sqlite.file.os.access", lambda path, mode, **how: False)
    said = refused("play", "--file", file)
    assert "game.db' may be read but not written, so it cannot be played: check its permissions" in said
    assert "Nell" not in said


def test_a_new_game_says_who_you_are_and_why(file: str) -> None:
    out = run("play", "--file", file, "--party", "nell,osric", "--human", "osric", typed="/quit\n")
    assert "You are Osric Vey, a lieutenant, formerly. Tall, shaved with care" in out
    assert "With you: Nell Tarn, a burglar." in out
    assert "You owe money in this city" in out


def test_whoever_comes_back_is_told_where_they_are(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/quit\n")
    out = run("play", "--file", file, typed="/quit\n")
    assert "Round 2" in out
    assert "took on Marlo Finch's job" in out
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
    watched = run("play", "--file", file, "--auto", "--rounds", "2")
    assert "Nell Tarn >" not in watched
    assert watched.rstrip().endswith(f"So far for now (2 rounds). The story is kept in {file}. Play again to go on.")
    out = run("play", "--file", file, typed="/quit\n")
    assert "Round 3" in out
    assert "Nell Tarn >" in out
    assert "Osric Vey >" in run("play", "--file", file, "--human", "osric", typed="/quit\n")


@pytest.mark.parametrize("scenario", ["tidelamp", "quiet_snow"])
def test_who_watches_sees_the_ending(file: str, scenario: str) -> None:
    out = run("play", "--file", file, "--scenario", scenario, "--auto")
    assert "Epilogue" in out
    assert out.rstrip().endswith("The story is over. Without --auto you can look back at it, and take the ending back.")


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


def test_a_branch_is_found_in_upper_and_lower_case(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I wait.\n/fork Bold\n/switch MAIN\n/switch bold\n/fork bold\n/switch BOLD\n")
    assert said_to(out, "/switch MAIN").startswith("now on main, before round 2")
    assert said_to(out, "/switch MAIN").count("before round 2") == 1
    assert said_to(out, "/switch bold").startswith("now on Bold")
    assert "which of them? There are Bold and bold" in said_to(out, "/switch BOLD")


def test_an_ending_is_told_for_nothing_but_the_bare_word(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I wait.\n/end of the street\n/quit\n")
    assert "/end stands alone: type it without “of the street”" in said_to(out, "/end of the street")
    assert "Epilogue" not in out


def test_who_comes_back_after_an_epilogue_is_told_so(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I ask Marlo about the job.\n/end\n")
    again = "That was the epilogue. The story goes on all the same; /undo takes the ending back"
    assert again in run("play", "--file", file, typed="/quit\n")
    out = run("play", "--file", file, typed="/undo\n/quit\n")
    assert "back before round 2" in out
    assert again not in run("play", "--file", file, typed="I wait.\n/quit\n")
    assert again not in run("play", "--file", file, typed="/quit\n")


def test_help_and_the_page_on_the_table_name_the_same_commands(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="/help\n/quit\n")
    shown = re.findall(r"^  (/.+?)  ", said_to(out, "/help"), re.M)
    rows = re.findall(r"^\| (`/.+?) \| ", (DOCS / "table.md").read_text("utf-8"), re.M)
    assert sorted(shown) == sorted(form for row in rows for form in re.findall(r"`(.+?)`", row))
    assert "/whisper NAME TEXT" in shown


def test_a_story_that_is_over_can_be_looked_at_and_is_not_played_on(file: str) -> None:
    small = str(Path(__file__).parents[1] / "table" / "small.toml")
    out = run("play", "--file", file, "--scenario", small, "--seed", "5", "--auto", "--rounds", "30")
    assert out.rstrip().endswith("The story is over. Without --auto you can look back at it, and take the ending back.")
    told = json.loads(run("log", "--file", file, "--json"))
    assert "The mill turns again." in told[-1]["text"], "nothing comes after the epilogue"
    assert "The story is over." in run("play", "--file", file, "--auto", "--rounds", "3")
    assert json.loads(run("play", "--file", file, "--auto", "--rounds", "3", "--json")) == []
    out = run("play", "--file", file, "--human", "wren", typed="/look\n/ledger\n/end\n/undo\n/look\n/quit\n")
    over, _, before = out.partition("back before round ")
    for line, answer in (("/look", "A dusty hall."), ("/ledger", "Wren has the mill key"), ("/end", "told already")):
        assert answer in over.split(f"> {line}\n", 1)[1].split("The story is over.", 1)[0], line
    assert "Goal" not in over
    assert "Goal" in before.partition("> /look\n")[2]
    assert (out.count("The mill turns again."), "── Epilogue" in out) == (1, False), "it was read again, and not told again"


def said_to(out: str, line: str) -> str:
    """What the table answered to a line that was typed."""
    return out.split(f"> {line}\n", 1)[1].split("Nell Tarn > ", 1)[0]


def test_what_is_no_action_costs_no_round(file: str) -> None:
    lines = ["99", "0", "-1", "help", "QUIT", "inventory", "undo", "/undo x", "/undo 0", "/undo", "/fork a b", "/", "/LOOK"]
    out = run("play", "--file", file, "--seed", "5", typed="\n".join(lines) + "\n")
    for line, answer in (
        ("99", "choose 1 to "), ("0", "choose 1 to "), ("-1", "choose 1 to "), ("help", "did you mean /help?"), ("QUIT", "did you mean /quit?"),
        ("inventory", "did you mean /look?"), ("undo", "did you mean /undo?"), ("/undo x", "/undo takes back the last round"),
        ("/undo 0", "/undo takes back the last round"), ("/undo", "no round has been played yet"), ("/fork a b", "one word"),
        ("/", "/whisper NAME TEXT"), ("/LOOK", "A tavern built from three wrecks"),
    ):  # fmt: skip
        assert answer in said_to(out, line), line
    assert "Round" not in run("play", "--file", file, typed="/quit\n")


def test_people_are_called_by_any_of_their_names(file: str) -> None:
    lines = [
        "/whisper",
        "/nudge",
        "/knows osric",
        "/whisper Doctor Quillon Don't tell, it's a secret.",
        "/knows Doctor Quillon secret",
        "/knows zed x",
        "/nudge more rain",
    ]
    out = run(
        "play", "--file", file, "--scenario", "quiet_snow", "--party", "maren,quillon", "--seed", "5", typed="\n".join(lines) + "\n"
    ).replace("Maren Holt > ", "Nell Tarn > ")
    assert "/whisper NAME TEXT" in said_to(out, "/whisper")
    assert "/nudge TEXT" in said_to(out, "/nudge")
    assert "the line of its own that comes nearest" in said_to(out, "/nudge more rain")
    assert "/knows NAME THING" in said_to(out, "/knows osric")
    assert "Doctor Quillon heard that, and nobody else but the game master" in said_to(out, lines[3])
    assert "Don't tell, it's a secret." in said_to(out, lines[4])
    unknown = said_to(out, "/knows zed x")
    assert "nobody here is called 'zed'; you know Maren Holt, Doctor Quillon" in unknown
    known = {"Maren Holt", "Doctor Quillon"} | set(unknown.split("you know ")[1].strip().split(", "))
    assert len(known) < 6, "those who were not met are not told of"


def test_secrets_of_companions_are_not_for_the_players_eyes(file: str) -> None:
    secret = "Osric gave the order"
    lines = ["/ledger", "/memory osric", "/moments ibbi", "/peek", "/memory osric", "/ledger"]
    out = run("play", "--file", file, "--seed", "5", typed="\n".join(lines) + "\n")
    hidden, shown = out.split("> /peek\n")
    assert secret not in hidden
    assert "Nell has sold the plan" in hidden
    assert "what Osric Vey knows is not for your eyes; /peek" in hidden
    assert "what Ibbi Sandlark knows is not for your eyes" in hidden
    assert secret in shown
    assert "What everyone knows" in shown


def test_knowing_is_told_as_far_as_the_player_knows(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="/quit\n")
    run("append", "osric", "The gannet was my fault.", "--file", file, "--kind", "whisper", "--heard-by", "ibbi")
    out = run("play", "--file", file, typed="/knows ibbi gannet fault\n/peek\n/knows Ibbi gannet fault\n")
    assert "Ibbi Sandlark has heard nothing of that, as far as you know" in out
    assert "The gannet was my fault." not in out.split("> /peek\n")[0]
    assert "The gannet was my fault." in out.split("> /peek\n")[1]


def test_memory_and_recap_are_told_in_plain_words(file: str) -> None:
    run("play", "--file", file, "--seed", "5", "--auto", "--rounds", "12")
    out = run("play", "--file", file, typed="/memory\n/recap\n/quit\n")
    assert "the Crooked Eel" in out
    for raw in ("##", "  | ", "(crooked_eel)", "[DM]", "[STORY", "- Turn"):
        assert raw not in out
    assert "What everyone knows" in out


def test_a_recap_before_the_first_round_says_that_there_is_nothing(file: str) -> None:
    assert "nothing yet" in run("play", "--file", file, "--seed", "5", typed="/recap\n/quit\n")


def test_a_game_is_listed_with_its_adventure_and_round(file: str) -> None:
    run("play", "--file", file, "--seed", "5", "--story", "heist", "--auto", "--rounds", "2")
    run("init", "--file", file, "--story", "plain", "--seat", "dm:dm")
    assert re.search(r"heist .* The Tidelamp, round 3$", run("stories", "--file", file), re.M)
    rows = json.loads(run("stories", "--file", file, "--json"))
    assert [(row["story"], row["adventure"], row["round"]) for row in rows] == [("heist", "The Tidelamp", 3), ("plain", None, None)]


def test_a_game_is_deleted_with_the_round_that_waits(file: str) -> None:
    for story in ("heist", "other"):
        run("play", "--file", file, "--seed", "5", "--story", story, typed="/quit\n")
    run("delete", "--file", file, "--story", "heist", "--yes")
    with sqlite3.connect(f"{file}.table") as kept:
        threads = {thread for (thread,) in kept.execute("SELECT DISTINCT thread_id FROM checkpoints")}
    assert len(threads) == 1
    assert "heist" not in str(threads)


def test_no_color_is_heeded(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def coloured() -> str:
        return CliRunner().invoke(main, ["play", "--file", file, "--seed", "5"], input="I wait.\n/nonsense\n", color=True).output

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in coloured()


def test_why_says_that_no_model_was_asked(file: str) -> None:
    out = run("play", "--file", file, "--seed", "5", typed="I wait.\n/why\n")
    assert "No model was asked" in out
    assert "tokens" in out


def blocks(told: str) -> list[str]:
    """The table of a prompt: its blocks, and what is in them."""
    return re.findall(r"^[█▓▒░] \w.*$", told, re.M)


def test_why_shows_the_next_prompt_where_none_was_asked_since_the_table_was_set(file: str) -> None:
    def asked_of(who: str) -> str:
        return f"Nothing was asked of {who} since this table was set. A model would be sent this next, as things are:\n"

    rounds = "I ask Marlo about the job.\nI ask Brine about the customs clerks.\n"
    out = run("play", "--file", file, "--seed", "5", typed=f"/why ibbi\n{rounds}/why\n/fork\n/why ibbi\n/why marlo\n/quit\n")
    asked = said_to(out, "/why")
    assert "the last prompt of pc:nell, round 3" in asked
    first, forked = (part.partition("Nell Tarn > ")[0] for part in out.split("> /why ibbi\n")[1:])
    assert first.startswith(f"{asked_of('Ibbi Sandlark')}the next prompt of pc:ibbi\n")
    assert forked.startswith(f"{asked_of('Ibbi Sandlark')}the next prompt of pc:ibbi\n")
    assert (any("recent" in line for line in blocks(first)), any("recent" in line for line in blocks(forked))) == (False, True)
    assert "Marlo Finch has no prompt: the game master speaks for all who are not of the party; see /why dm" in said_to(out, "/why marlo")

    out = run("play", "--file", file, "--branch", "main", typed="/why\n/why dm\n/quit\n")
    again, masters = said_to(out, "/why"), said_to(out, "/why dm")
    assert again.startswith(f"{asked_of('Nell Tarn')}the next prompt of pc:nell\n")
    assert blocks(again) == blocks(asked), "it is the one that was asked before the table was left"
    assert masters.startswith(f"{asked_of('the game master')}the next prompt of dm:dm\n")
    assert blocks(masters)


def test_a_model_is_said_to_be_sent_the_next_prompt_where_one_plays(file: str) -> None:
    run("play", "--file", file, "--seed", "5", typed="I wait.\n/quit\n")
    out = run("play", "--file", file, "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1", typed="/why osric\n/quit\n")
    assert "Nothing was asked of Osric Vey since this table was set. This would be sent next, as things are:" in out


CONFESSION = ("I go to the square.", "I go to the foundry.", "I ask Tilda about her hands.", "I ask Tilda what happened in the tower.")


def test_what_is_told_in_confidence_is_read_by_the_one_who_is_told_and_by_nobody_else(file: str) -> None:
    args = ("play", "--file", file, "--scenario", "quiet_snow", "--party", "maren,quillon", "--seed", "5")
    before, _, told = run(*args, typed="\n".join(CONFESSION) + "\n/quit\n").partition(f"> {CONFESSION[-1]}")
    assert "So I took its tongue" in told
    log = json.loads(run("log", "--file", file, "--json"))
    assert [set(turn["audience"]) & {"maren", "quillon"} for turn in log if "So I took its tongue" in turn["text"]] == [
        {"quillon"},
        {"maren"},
    ]
    hidden = [turn["text"] for turn in log if turn["kind"] == "whisper" and "maren" not in turn["audience"]]
    assert any("I ask Tilda what happened in the tower" in text for text in hidden), "the doctor has asked for himself"
    assert not any(text in before for text in hidden), "and nobody saw it"


def test_people_are_seen_before_they_do_anything(file: str) -> None:
    out = run("play", "--file", file, "--scenario", "quiet_snow", "--seed", "21", typed="I go to the square.\nI go to the chapel.\n/quit\n")
    arrived = out.partition("> I go to the chapel.")[2].partition("The pews have been pushed together")[2]
    assert arrived.index("A small upright nun") < arrived.index("Sister Agnes")
    assert arrived.count("A small upright nun") == 1, "whoever greets her in the same round sees nothing new"


def test_a_whisper_to_nobody_who_is_here_is_not_told_and_costs_no_turn(file: str) -> None:
    whisper = "I whisper to Ibby that larkspur is the word."
    out = run("play", "--file", file, "--seed", "5", typed=f"{whisper}\nI whisper to Ibbi that thyme is the word.\n/quit\n")
    asked = said_to(out, whisper)
    assert "There is no Ibby here. Did you mean Ibbi? Nobody has heard it: say it in another way." in asked
    assert asked.count("\n") == 1, "neither the scene nor the choices are told again"
    log = json.loads(run("log", "--file", file, "--json"))
    assert not [turn for turn in log if "larkspur" in turn["text"]]
    assert [turn["seq"] for turn in log if turn["speaker"] == "nell"], "the turn was still there to be taken"


def test_a_whisper_for_the_table_reaches_nobody_who_is_elsewhere_and_tells_of_nobody(file: str) -> None:
    marlo = "/whisper Marlo hello"
    lines = ["/whisper Quill hello", "/whisper Zed hello", marlo, "I ask Marlo about the job.", "I go to the fish market.", marlo]
    out = run("play", "--file", file, "--seed", "5", typed="\n".join(lines) + "\n")
    for stranger in ("Quill", "Zed"):
        assert f"nobody here is called '{stranger}'" in said_to(out, f"/whisper {stranger} hello")
    before, _, after = out.partition("> I go to the fish market.")
    assert "Marlo Finch heard that" in said_to(before, marlo)
    assert "Marlo Finch is not here" in said_to(after, marlo)
    assert len([turn for turn in json.loads(run("log", "--file", file, "--json")) if turn["text"] == "hello"]) == 1


def test_people_who_share_a_terminal_see_what_the_one_knows_whose_turn_it_is(file: str) -> None:
    hers, his, key = "Nell has sold the plan", "Osric gave the order", "I whisper to Ibbi that larkspur is the word."
    args = ("play", "--file", file, "--seed", "5", "--party", "nell,osric,ibbi", "--human", "nell,osric,ibbi")
    lines = ["/ledger", "/ledger osric", "/memory", key, "/ledger", "/memory", "/knows ibbi larkspur", "/knows osric larkspur"]
    out = run(*args, typed="\n".join(lines) + "\n")
    nells, _, osrics = out.partition(f"> {key}\n")

    def answer(typed: str, line: str) -> str:
        return re.split(r"(?:Nell Tarn|Osric Vey) > ", typed.split(f"> {line}\n", 1)[1], maxsplit=1)[0]

    mine, named, other = answer(nells, "/ledger"), answer(nells, "/ledger osric"), answer(osrics, "/ledger")
    assert (mine.startswith("what Nell Tarn knows:"), hers in mine, his in mine) == (True, True, False)
    assert (named.startswith("what Osric Vey knows:"), hers in named, his in named) == (True, False, True)
    assert (other.startswith("what Osric Vey knows:"), hers in other, his in other) == (True, False, True)
    assert answer(nells, "/memory").startswith("what Nell Tarn knows:")
    assert "larkspur" not in answer(osrics, "/memory")
    told = run("play", "--file", file, typed="I wait.\nI wait.\n/knows ibbi larkspur\nI wait.\n/knows ibbi larkspur\n/quit\n")
    nells, osrics = (part for part in told.split("> /knows ibbi larkspur\n")[1:])
    assert "larkspur is the word" in nells.partition("Nell Tarn >")[0]
    assert "Ibbi Sandlark has heard nothing of that, as far as Osric Vey knows" in osrics.partition("Osric Vey >")[0]


def test_whoever_confides_something_in_their_own_words_is_told_who_knows_of_it(file: str) -> None:
    lines = [
        "I whisper to Ibbi that larkspur is the word.", "I whisper to Ibbi and Osric that thyme is the word.", "I wonder whether to run.",
        "I ask Marlo about the job.",
    ]  # fmt: skip
    out = run("play", "--file", file, "--seed", "5", typed="\n".join(lines) + "\n")
    signs = [
        "Ibbi Sandlark knows of that, and nobody else but the game master", "Ibbi Sandlark and Osric Vey know of that, and nobody else but",
        "nobody but the game master knows of that",
    ]  # fmt: skip
    for line, sign in zip(lines, signs, strict=False):
        assert said_to(out, line).startswith(sign), line
    assert "of that, and nobody else" not in said_to(out, lines[3])
    assert out.count("knows of that") + out.count("know of that") == 3, "what companions whisper is not told of"


def test_of_those_who_share_a_terminal_the_one_who_comes_next_is_told_again_who_knows(file: str) -> None:
    key = "I whisper to Ibbi that larkspur is the word."
    args = ("play", "--file", file, "--seed", "5", "--party", "nell,osric,ibbi", "--human", "nell,osric,ibbi")
    sign = "Ibbi Sandlark knows of that, and nobody else but the game master"
    assert run(*args, typed=f"{key}\n/quit\n").count(sign) == 1
    assert run("play", "--file", file, typed="/quit\n").count(sign) == 1
