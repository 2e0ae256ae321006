"""Markdown in a turn: a heading is no sentence, and the row of a table is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talekeeper.model import Turn
from talekeeper.summarize.extractive import condense
from talekeeper.summarize.layout import without_layout


def fold(text: str, voice: str = "DM") -> list[str]:
    return [sentence.text for sentence in condense([Turn("t", 1, "said", voice.lower(), voice, text, ("dm",))], limit=200)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "## The Bridge of Harrow\nthe guard takes the silver key from Mira.",
            ["the guard takes the silver key from Mira."],
        ),
        (
            "**Scene 2: The Bridge**\n\nElena dies at the bridge of Harrow.\n\n---\n\nMira takes the silver key.",
            ["Elena dies at the bridge of Harrow.", "Mira takes the silver key."],
        ),
        ("The Bridge of Harrow\n====\nElena dies at the bridge.", ["Elena dies at the bridge."]),
        ("# Die Brücke von Harrow\nder Wächter nimmt Mira den Schlüssel ab.", ["der Wächter nimmt Mira den Schlüssel ab."]),
        ("# 黑桥\n卫兵拿走了米拉的银钥匙。", ["卫兵拿走了米拉的银钥匙。"]),
        ("# Only a heading of Harrow", ["# Only a heading of Harrow."]),
        ("Mira takes key #3 of Harrow.\n#3 opens the crypt of Orla.", ["Mira takes key #3 of Harrow.", "#3 opens the crypt of Orla."]),
        (
            "**I swear I will burn the mill of Saint Orla!**\n\nVoss dies.",
            ["**I swear I will burn the mill of Saint Orla!**", "Voss dies."],
        ),
    ],
)
def test_a_heading_is_no_sentence(text: str, expected: list[str]) -> None:
    assert [sentence.removeprefix("DM: ") for sentence in fold(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "| Thing | Who | Price |\n|---|:-:|---|\n| Brass key. Old. | Captain Voss | 300 gold |\n| Crown of Ash! | Elena Swift | 40 silver |",
            ["Brass key. Old. | Captain Voss | 300 gold.", "Crown of Ash! | Elena Swift | 40 silver."],
        ),
        ("Thing | Who\n--- | ---\nBrass key. Old. | Captain Voss took it!", ["Brass key. Old. | Captain Voss took it!"]),
        (
            "Das ist die Beute:\n\n| Ding | Wer |\n|---|---|\n| Krone. Verflucht! | Elena Weber |\n\nElena Weber stirbt.",
            ["Krone. Verflucht! | Elena Weber.", "Elena Weber stirbt."],
        ),
        ("| 物品 | 谁 |\n|---|---|\n| 银钥匙。旧的。 | 沃斯队长 |", ["银钥匙。旧的。 | 沃斯队长。"]),
    ],
)
def test_the_row_of_a_table_stays_together(text: str, expected: list[str]) -> None:
    told = fold(text)
    assert set(expected) <= set(told)
    assert not [sentence for sentence in told if "---" in sentence or "Price" in sentence or "Ding" in sentence]


def test_the_row_of_a_table_that_a_seat_shows_is_the_seats() -> None:
    assert fold("| Thing | Who |\n|---|---|\n| Silver key. Old. | Captain Voss |", "Mira") == ['Mira: "Silver key. Old. | Captain Voss."']


@given(st.text(alphabet="ab #|*-=_\n.", max_size=60))
def test_something_is_left_of_any_text(text: str) -> None:
    assert bool(without_layout(text).strip()) == bool(text.strip())
    assert bool(fold(text)) == bool(text.strip())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "It says the salt pans were sold to Ottoline Brask by one *A. Fenwick*, for seven bells.",
            "It says the salt pans were sold to Ottoline Brask by one *A. Fenwick*, for seven bells.",
        ),
        (
            "Marta adds: *\"The map's wrong about the bridge. It's out since autumn.\"*",
            "Marta adds: \"The map's wrong about the bridge. It's out since autumn.\"",
        ),
        ("Marta adds: **“The bridge is out. Go round.”**", "Marta adds: “The bridge is out. Go round.”"),
    ],
)
def test_stars_are_not_cut_or_crossed(text: str, expected: str) -> None:
    told = " ".join(fold(text))
    assert told == expected or "*" not in told
