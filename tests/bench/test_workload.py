from __future__ import annotations

from itertools import pairwise
from statistics import mean

from talekeeper.bench.workload import MASTER, SEATS, story


def test_the_same_seed_tells_the_same_story_and_a_longer_one_begins_with_the_shorter() -> None:
    assert story(300, seed=3)[:100] == story(100, seed=3)
    assert story(100, seed=3) != story(100, seed=4)


def test_lines_are_about_thirty_five_words_and_hardly_ever_repeat() -> None:
    lines = story(5_000)
    assert 30 <= mean(len(line.text.split()) for line in lines) <= 40
    assert len({line.text for line in lines}) > 4_990


def test_about_one_line_in_twelve_is_a_whisper_that_its_speaker_and_the_master_hear() -> None:
    lines = story(5_000)
    whispers = [line for line in lines if line.heard_by != SEATS]
    assert 0.06 < len(whispers) / len(lines) < 0.11
    assert all({line.speaker, MASTER} <= set(line.heard_by) for line in whispers)


def test_scenes_change_every_few_dozen_lines() -> None:
    lines = story(5_000)
    changes = sum(before.location != after.location for before, after in pairwise(lines))
    assert 60 < changes < 250
