"""Dice that fall the same way for the same (seed, round, seat, what), on every machine and after every rewind.

A throw is data: notation, faces, modifier, total. Nothing here keeps a state, so a round played again falls as it fell.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from talekeeper.errors import InvalidInput, quoted

_NOTATION = re.compile(r"\s*(\d{0,2})\s*[dD]\s*(\d{1,3})\s*(?:([+-])\s*(\d{1,3}))?\s*")
_MOST_DICE = 50


@dataclass(frozen=True, slots=True)
class Throw:
    """What the dice show."""

    notation: str
    faces: tuple[int, ...]
    modifier: int = 0

    @property
    def total(self) -> int:
        return sum(self.faces) + self.modifier

    @property
    def text(self) -> str:
        """`2d6+1: 4 + 3 + 1 = 8`."""
        parts = " + ".join(str(face) for face in self.faces)
        sign = f" {'+' if self.modifier > 0 else '-'} {abs(self.modifier)}" if self.modifier else ""
        return f"{self.notation}: {parts}{sign} = {self.total}"


def throw(notation: str, seed: int, round: int, seat: str, what: str) -> Throw:
    """Throws dice such as `2d6+1`, `d20` or `3d8-2`."""
    count, sides, modifier = read(notation)
    canonical = f"{count}d{sides}{modifier:+d}" if modifier else f"{count}d{sides}"
    faces = tuple(1 + number(sides, seed, round, seat, f"{what}/{die}") for die in range(count))
    return Throw(canonical, faces, modifier)


def read(notation: str) -> tuple[int, int, int]:
    """How many dice, of how many sides, and what is added."""
    found = _NOTATION.fullmatch(notation)
    if found is None:
        raise InvalidInput(f"dice are written like 2d6+1, not {quoted(notation)}")
    count, sides = int(found[1] or 1), int(found[2])
    if not 1 <= count <= _MOST_DICE or sides < 2:
        raise InvalidInput(f"{quoted(notation)}: between 1 and {_MOST_DICE} dice of at least two sides can be thrown")
    return count, sides, int(found[4] or 0) * (-1 if found[3] == "-" else 1)


def number(below: int, seed: int, round: int, seat: str, what: str) -> int:
    """A whole number from 0 up to `below`, fair as far as anyone can tell, fixed by its arguments."""
    key = repr((seed, round, seat, what)).encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") % below
