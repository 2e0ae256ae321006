"""What was used last stays in memory, as long as there is room; the rest is in the store, and is read again when it is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST, LEAST, IN_ALL = 512, 64, 8192
"""How many lines one story keeps at the most and at the least, and how many all stories share between those bounds."""


class Allowance:
    """How much of their past the stories of one process keep in memory: `lines` each. One line takes about a kilobyte."""

    __slots__ = ("lines",)

    def __init__(self, stories: int = 1) -> None:
        self.share(stories)

    def share(self, stories: int) -> None:
        """One story by itself has plenty; many share what there is."""
        self.lines = max(LEAST, min(MOST, IN_ALL // max(1, stories)))


class Recent(Generic[K, V]):
    """Values by key, the one used last at the end. Nothing leaves by itself: see `trim`."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def get(self, key: K) -> V | None:
        """The value, which was used just now; None where it is not in memory."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)

    def drop(self, key: K) -> None:
        self._kept.pop(key, None)

    def clear(self) -> None:
        self._kept.clear()

    def trim(self, room: int) -> None:
        """Lets go of what was not used for longest. Never in the middle of work that needs more than there is room for."""
        while len(self._kept) > room:
            self._kept.popitem(last=False)
