"""A synthetic story for benchmarks: the same lines for the same seed, and a longer story begins with the shorter one.

Four seats sit at a table. A scene lasts a few dozen lines at one place; about one line in twelve is a whisper. Lines have names,
places, numbers and promises in them, about 35 words each, so that folding has something to keep. No data from outside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

MASTER = "dm"
PLAYERS = ("rogue", "bard", "cleric")
SEATS = (MASTER, *PLAYERS)
TOKENS_PER_WORD = 1.3


@dataclass(frozen=True, slots=True)
class Line:
    """One turn of the story. `tokens` is an estimate for systems that are told the count instead of counting."""

    speaker: str
    text: str
    heard_by: tuple[str, ...]
    location: str
    tokens: int


_PEOPLE = (
    "Maren", "Old Tobin", "Captain Hale", "Sister Ysolde", "Brannoc", "Lady Veyra", "Pip", "the ferryman Odo", "Garrick Stone", "Nessa",
)  # fmt: skip
_PLACES = (
    "the Gilded Heron", "Ashford mill", "the drowned chapel", "Crow Bridge", "the salt mines", "Lantern Row", "the Red Tower",
    "Fenwick's barge",
)  # fmt: skip
_THINGS = (
    "a silver key", "the cracked bell", "a sealed letter", "the ash crown", "a vial of moonwater", "the harbour ledger", "a bone flute",
)  # fmt: skip
_OPENINGS = {
    MASTER: (
        "{person} leans across the table at {place} and whispers that {other} has been asking about {thing} since dawn.",
        "Rain drums on the roof of {place} while {person} counts out {number} coins and pushes {thing} towards you.",
        "The door of {place} swings open; {person} stumbles in, soaked, and swears that {number} riders follow.",
    ),
    "rogue": (
        "I slip behind {person} and feel along the wall, counting {number} bricks as {other} once told me.",
        "I pocket {thing} before {person} turns around, with one eye on the way back to {place}.",
    ),
    "bard": (
        "I strike a low chord and sing of {place}, watching whether {person} flinches at the verse about {thing}.",
        "I bow to {person}, tell them that {other} sends greetings, and ask lightly what {thing} would cost.",
    ),
    "cleric": (
        "I kneel beside {person}, bind the wound, and ask the light for {number} more breaths before we move on.",
        "I hold up the lantern so that all can see {thing}, and remind {person} of the vow made at {place}.",
    ),
}
_CLOSINGS = (
    "If we return by midnight with {thing}, {person} pays {number} silver marks.",
    "Remember that {other} owes us a favour for what happened near {place} {number} nights ago.",
    "Nobody speaks, and somewhere below {place} a bell rings {number} times.",
    '"Bring {thing} to {place}," says {person}, "and the debt of {number} crowns is paid."',
    "That makes {number} by my count, and not one has ever seen {thing}.",
)


def story(count: int, seed: int = 7) -> list[Line]:
    """The first `count` lines of the story of that seed."""
    return list(islice(_lines(random.Random(seed)), count))


def _lines(chance: random.Random) -> Iterator[Line]:
    speaker = MASTER
    while True:
        place = chance.choice(_PLACES)
        for _ in range(chance.randint(20, 60)):
            text = _say(chance, speaker)
            yield Line(speaker, text, _hearers(chance, speaker), place, round(len(text.split()) * TOKENS_PER_WORD))
            speaker = chance.choice(PLAYERS) if speaker == MASTER or chance.random() < 0.3 else MASTER


def _say(chance: random.Random, speaker: str) -> str:
    return f"{_fill(chance, _OPENINGS[speaker])} {_fill(chance, _CLOSINGS)}"


def _fill(chance: random.Random, shapes: tuple[str, ...]) -> str:
    person, other = chance.sample(_PEOPLE, 2)
    place, thing, number = chance.choice(_PLACES), chance.choice(_THINGS), chance.randint(2, 999)
    return chance.choice(shapes).format(person=person, other=other, place=place, thing=thing, number=number)


def _hearers(chance: random.Random, speaker: str) -> tuple[str, ...]:
    if chance.random() >= 1 / 12:
        return SEATS
    confidant = chance.choice([seat for seat in PLAYERS if seat != speaker])
    return tuple(seat for seat in SEATS if seat in {speaker, confidant, MASTER})
