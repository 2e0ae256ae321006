"""Names of turns and folds for the outside: they can be found again without an index, and tell nothing of what a seat did not hear (I3)."""

from __future__ import annotations

import re

from talekeeper.folds.nodes import HASH, PLACE
from talekeeper.ports import Position

_WORD = (1 << 64) - 1
_GENERATED = re.compile(r"t-[0-9a-f]{16}")
_PLACED_KEY = re.compile(f"[0-9a-f]{{{PLACE + HASH}}}")


def looks_generated(name: str) -> bool:
    """Whether a turn id has the form that is kept for generated ones."""
    return _GENERATED.fullmatch(name) is not None


class Names:
    """Opaque names for entries: a keyed permutation of positions. A name can be found again without an index, and tells nothing of how
    many entries there are beside it (I3)."""

    __slots__ = ("_end", "_first", "_second", "_start", "_undo_first", "_undo_second")

    def __init__(self, secret: int) -> None:
        self._start, self._end = secret & _WORD, secret >> 64 & _WORD
        self._first, self._second = (secret * 2 + 1) & _WORD, ((secret >> 64) * 2 + 1) & _WORD
        self._undo_first, self._undo_second = pow(self._first, -1, 1 << 64), pow(self._second, -1, 1 << 64)

    def name(self, branch: int, seq: int) -> str:
        """The name of the entry at a position."""
        value = ((branch << 32 | seq) ^ self._start) * self._first & _WORD
        value = (value ^ value >> 32) * self._second & _WORD
        return "t-" + ((value ^ value >> 32) ^ self._end).to_bytes(8, "big").hex()

    def position(self, name: str) -> Position | None:
        """The position behind a name; None where it is none of ours."""
        if not looks_generated(name):
            return None
        value = int(name[2:], 16) ^ self._end
        value = (value ^ value >> 32) * self._undo_second & _WORD
        value = ((value ^ value >> 32) * self._undo_first & _WORD) ^ self._start
        return Position(value >> 32, value & 0xFFFFFFFF)

    def fold(self, key: str) -> str:
        """The name of the fold of that key; and, since masking twice undoes it, the key of the fold of that name. Masked is the place in
        the key, because it would tell how much was told beside what a seat heard (I3). What has no place, or is no key, stays as it is."""
        if _PLACED_KEY.fullmatch(key) is None:
            return key
        place, rest = key[:PLACE], key[PLACE:]
        value = (int(rest[:16], 16) ^ self._start) * self._first & _WORD
        value = (value ^ value >> 32) * self._second & _WORD
        return f"{int(place, 16) ^ value >> 32:08x}{rest}"
