"""The adventures that are shipped: large enough, sound, different each time, and every one of them can be played to its end."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.table.driver import Game, auto

from talekeeper.table.packs import BadScenario, check, load, shipped
from talekeeper.table.packs.soundness import conditional_lines
from talekeeper.table.rules.conditions import sayable
from talekeeper.table.world import events as ev
from talekeeper.table.world.language import read_line
from talekeeper.table.world.scenario import Scenario

PACKS = sorted(shipped())
SEEDS = range(1, 7)


@cache
def played(name: str, seed: int) -> Game:
    pack = load(name)
    heroes = list(pack.heroes)
    return auto(pack, heroes[:3] if seed % 2 else heroes[1:4], seed, 90, stop=True)


def needed(pack: Scenario) -> set[str]:
    return {objective.id for objective in pack.objectives.values() if not objective.optional}


def test_two_are_shipped() -> None:
    assert len(PACKS) >= 2


@pytest.mark.parametrize("id", [r"../../x\u0000", r"\\1", r"\\g<x>", "a" + ".a" * 5000])
def test_any_id_is_told_of(tmp_path: Path, id: str) -> None:
    file = tmp_path / "pack.toml"
    file.write_text(f'[scenario]\nid = "x"\n\n[[places]]\nid = "{id}"\n')
    found = check(file)
    assert any(problem.where.startswith("places.") for problem in found), found


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 5000 + "]" * 5000, "x = " + "{a=" * 5000 + "1" + "}" * 5000, "scenario.title" + ".x" * 5000 + " = 1"]
)
def test_a_file_that_is_nested_too_deep_is_a_problem_of_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pack.toml"
    file.write_text(f"{text}\n")
    assert check(file)
    with pytest.raises(BadScenario):
        load(file)


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_is_sound_and_no_toy(name: str) -> None:
    assert check(name) == []
    pack = load(name)
    assert len(pack.places) >= 12
    assert len(pack.npcs) >= 10
    assert len(pack.objectives) >= 8
    assert len(pack.acts) >= 3
    assert len(pack.heroes) >= 3
    assert len(pack.endings) >= 3
    assert any(len(objective.paths) > 1 for objective in pack.objectives.values()), "several ways through"
    assert {secret.known for secret in pack.secrets.values()} & {(hero,) for hero in pack.heroes}, "the heroes have secrets"


@pytest.mark.parametrize("name", PACKS)
def test_a_party_that_plays_by_itself_reaches_an_ending_and_every_objective(name: str) -> None:
    games = [played(name, seed) for seed in SEEDS]
    assert all(game.state.ending for game in games)
    assert needed(load(name)) <= set().union(*(game.state.objectives for game in games))
    assert all(len(game.log) >= 50 for game in games)
    assert len({tuple(turn.text for turn in game.log[:12]) for game in games}) == len(games), "another seed, another story"


@pytest.mark.parametrize("name", PACKS)
def test_the_same_seed_tells_the_same(name: str) -> None:
    pack = load(name)
    again = auto(pack, list(pack.heroes)[:3], 1, 15)
    first = auto(pack, list(pack.heroes)[:3], 1, 15)
    assert [turn.line for turn in again.log] == [turn.line for turn in first.log]


@pytest.mark.parametrize("name", PACKS)
def test_the_epilogue_tells_of_what_was_done(name: str) -> None:
    game = played(name, 1)
    text = game.epilogue()
    assert len(text) > 200
    assert any(moment.summary.split()[-1].strip(".") in text for moment in game.moments)


@pytest.mark.parametrize("name", PACKS)
def test_the_prose_does_not_repeat_itself_soon(name: str) -> None:
    """No sentence of the narration of any length comes twice within a dozen turns."""
    game = played(name, 3)
    told = [turn.text for turn in game.log if turn.speaker == "DM" and turn.kind == "said"]
    repeated: Counter[str] = Counter()
    for at, text in enumerate(told):
        near = " ".join(told[max(0, at - 12) : at])
        for sentence in re.split(r"(?<=[.!?”])\s+", text):
            if len(sentence) > 45 and sentence in near:
                repeated[sentence] += 1
    assert sum(repeated.values()) <= len(told) // 15, repeated.most_common(5)


@pytest.mark.parametrize("name", PACKS)
def test_the_storyteller_asks_for_nothing_that_its_own_rules_refuse(name: str) -> None:
    assert [ruling for seed in SEEDS for ruling in played(name, seed).rulings if ruling.refused] == []


@pytest.mark.parametrize("name", PACKS)
def test_no_id_is_ever_told(name: str) -> None:
    told = " ".join(turn.text for seed in SEEDS for turn in played(name, seed).log)
    assert re.findall(r"\b[a-z]+_[a-z_]+\b", told) == []


@pytest.mark.parametrize("name", PACKS)
def test_after_an_ending_the_world_is_another(name: str) -> None:
    """What was true before it is told no more, nothing decides it a second time, and every place still looks like something."""
    pack = load(name)
    before = [read_line(line)[1] for _, line in conditional_lines(pack) if line.startswith("[not ended]")]
    assert len(before) > 20
    for seed in (1, 2):
        game = auto(pack, list(pack.heroes)[:3], seed, 60, stop=True)
        assert game.state.ending
        done, told = len(game.rulings), len(game.log)
        for _ in range(20):
            game.play()
        after = " ".join(turn.text for turn in game.log[told:] if turn.speaker == "DM")
        assert [line for line in before if line in after] == []
        again = {
            event.about[0]
            for ruling in game.rulings[done:]
            for event in ruling.events
            if isinstance(event, ev.Beat) and event.what == "deed"
        }
        ends = {clause for ending in pack.endings for condition in ending.when for clause in condition}
        assert not [deed.id for deed in pack.deeds if deed.id in again and ends & {*deed.success.do}]
        assert all(sayable(place.look, game.state, pack) for place in pack.places.values())


def test_playing_without_end_goes_on() -> None:
    pack = load(PACKS[0])
    game = auto(pack, list(pack.heroes)[:3], 4, 120)
    assert game.round == 120 or not game.state.alive


def test_a_file_of_another_kind_is_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "pack.json"
    file.write_text('{"scenario": {"title": "The Mill"}}\n')
    assert [str(problem) for problem in check(file)] == [
        "the file: is JSON, it seems: an adventure is written in TOML, see docs/scenarios.md"
    ]


def test_what_stands_at_the_wrong_level_is_told_where_it_belongs(tmp_path: Path) -> None:
    file = tmp_path / "pack.toml"
    file.write_text('title = "The Mill"\nplase = 1\n\n[scenario]\nid = "mill"\n')
    said = [str(problem) for problem in check(file)]
    assert "line 1, title: belongs into the table scenario: move it below the line [scenario]" in said
    assert "line 2, plase: is not known here; did you mean 'places'?" in said


CLIMB = "I climb the tower from outside."


def test_what_is_told_of_a_deed_is_true_of_whoever_tried_it() -> None:
    """Sparrow fails, and then the doctor, for the first time. Whoever plays Maren reads of neither as of herself, and of no second try."""
    told: list[str] = []
    for seed in range(1, 40):
        game = Game(load("quiet_snow"), ("maren", "sparrow", "quillon"), seed)
        game.play({"maren": "I go to the square.", "sparrow": "Yes.", "quillon": "Yes."})
        game.play({"maren": "I wait.", "sparrow": CLIMB, "quillon": CLIMB})
        others = game.rulings[-2:]
        if all("fails" in one.resolution or "wrong" in one.resolution for one in others):
            told.append("\n".join(game.log[-1].text.split("\n\n")[-2:]))
    assert len(told) > 5
    assert all("It puts Sparrow down in a snowdrift, which closes over them with interest." in text for text in told)
    assert [text for text in told if re.search(r"\byou|tries again|has been here before", text, re.I)] == []
    assert len({text.partition("\n")[2] for text in told}) > 2


YOU = """
[[deeds]]
id = "knock"
offer = "Knock"
verbs = ["use"]
at = ["inn"]
say = ["“Who are you?” asks a voice.", "{Who} {knocks|raps}, and {they} {waits/wait}, {party} {listens~listen}."]
cost_say = ["A dog barks, and you laugh."]
skill = "might"
fail_say = ["You knock in vain. “You”, says the door."]
"""


def checked(tmp_path: Path, more: str) -> tuple[Path, list[str]]:
    """The small pack with something added: the file, and what the check says of it."""
    file = tmp_path / "pack.toml"
    file.write_text(Path(__file__).with_name("small.toml").read_text("utf-8") + more)
    return file, [str(problem) for problem in check(file)]


def test_the_check_warns_of_a_deed_that_says_you_and_it_can_be_played(tmp_path: Path) -> None:
    file, said = checked(tmp_path, YOU)
    line = file.read_text("utf-8").splitlines().index('cost_say = ["A dog barks, and you laugh."]') + 1
    fits = "of whoever acts, and everybody reads it: write {who}, or words that fit any hero"
    assert said == [
        f"line {line}, deeds.knock.cost_say: warning: says “you” {fits}",
        f"line {line + 2}, deeds.knock.fail_say: warning: says “You” {fits}",
    ]
    assert load(file).deeds[0].id == "knock"


def test_a_slot_that_nothing_fills_is_a_problem(tmp_path: Path) -> None:
    file, said = checked(tmp_path, YOU.replace("{Who}", "{Whoo}").replace("you", "they").replace("You", "They"))
    assert [re.sub(r"^line [0-9]+, ", "", one) for one in said] == [
        "deeds.knock.say: a text with the slot 'Whoo' is never told: there is none of that name; did you mean 'who'?"
    ]
    with pytest.raises(BadScenario, match="Whoo"):
        load(file)
