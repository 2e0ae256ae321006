"""A model's summary is asked for, checked, repaired once, completed, or refused."""

from __future__ import annotations

import pytest

import talekeeper as tk
from talekeeper.ports import Spending
from talekeeper.summarize.janitor import Piece
from talekeeper.testing.models import ScriptedModel

TURNS = [
    "Mira slides Rook a brass key across the counter of the Drowned Rat.",
    "Captain Voss pays Rook 40 gold for the map of the mill and keeps Lin's dagger as a pledge.",
    "The miller is dead. His daughter Oda hides in the cellar and begs Lin to tell nobody where she is.",
]
PIECES = [Piece(text, (f"t{number}",)) for number, text in enumerate(TURNS)]


async def summary(*answers: str) -> str:
    spent: list[Spending] = []
    sentences = await tk.Janitor(ScriptedModel(answers)).summarize(PIECES, [], 200, spent.append)
    assert len(spent) == len(answers)
    return " ".join(sentence.text for sentence in sentences)


async def test_what_a_repair_does_not_bring_back_is_appended() -> None:
    told = "Mira gave Rook a key, and a captain paid for the map of the mill. [1, 2]"
    text = await summary(told, told)
    assert text.startswith("Mira gave Rook a key")
    assert "Also: " in text
    assert all(name in text for name in ("Voss", "Lin", "Oda", "40 gold"))


async def test_one_about_something_else_is_refused_though_it_shares_a_word() -> None:
    dragon = "A dragon crosses the sea at midnight and hides in a cellar of ice. [1]"
    with pytest.raises(tk.SummaryFailed, match="it names nobody and nothing of what must survive") as caught:
        await summary(dragon, dragon)
    assert caught.value.answered


async def test_one_that_names_somebody_is_not() -> None:
    assert "Rook" in await summary("Rook got a key and hid in the cellar. [1]", "Rook got a key and hid in the cellar. [1]")
