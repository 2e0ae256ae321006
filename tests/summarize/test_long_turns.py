"""A turn of 100 KB is read in a time that follows its length, whatever stands in it."""

from __future__ import annotations

import time

import pytest

import talekeeper as tk

MOST = 98_000
TURNS = {
    "prose": "Captain Voss walks to the mill and counts the sacks. ",
    "self": 'Mira waits. "I swear it," she says. ',
    "quotes": "“I swear it” “and so do I” ",
    "bars": "a | b\n--- | ---\n",
    "corrections": "No, the gate of mill 7 is in the north, not in the south. ",
    "zh": "不对，城门7在北边，不在南边。",
    "pronouns": "Liesl looks at Corvin Hale. He waits. ",
    "nobody": "He waits. ",
    "nobody, ja": "彼は歩く。",
    "nobody, ru": "Он идет. ",
    "one": "Liesl. He? She! He. ",
    "tags": '"I wait," he says. She nods. ',
    "places": "Fennmoor burns. He waits. ",
    "breath": "He nods and he says he ",
    "pacts": "broken treaty ",
    "deaths": "Dorn dies at the ford. Dorn is alive! ",
    "stars": "*she waits* and **goes** ",
}


def blanks() -> str:
    return "a | b\n" + " " * (MOST - 20) + "x |"


def seconds(text: str) -> float:
    """The processor time of a context over two such turns, for whoever told them."""
    with tk.sync.open(":memory:", counter=tk.Heuristic()) as keeper:
        story = keeper.story(tk.MemoryKey("a", "b", "c"), seats=[tk.Seat("dm", role="dm"), tk.Seat("mira", name="Mira")])
        for speaker in ("mira", "dm"):
            story.append(speaker, text)
        story.append("dm", "Night falls.")
        began = time.process_time()
        story.context("mira", budget=500)
        return time.process_time() - began


@pytest.mark.parametrize("kind", [*TURNS, "blanks"])
def test_a_long_turn_takes_a_time_that_follows_its_length(kind: str) -> None:
    whole = blanks() if kind == "blanks" else TURNS[kind]
    times = MOST // len(whole.encode())
    took = seconds(whole * max(1, times))
    assert took < 3.0, f"{took:.1f} s"  # ten times what it takes: what grows with the square takes a minute
