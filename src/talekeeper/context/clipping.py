"""Fitting text into a budget: clipping what is too long. Pure.

Counts are taken of whole rendered lines, newline included, so that they add up to the count of the text (I2).
"""

from __future__ import annotations

from collections.abc import Callable

from talekeeper.model import Item

MARK = " […]\n"


def clip(line: str, room: int, count: Callable[[str], int]) -> tuple[str, int]:
    """The beginning of a line that fits the room, with a mark at its end, and its count; ("", 0) where nothing of it fits."""
    tokens = count(line)
    if tokens <= room:
        return line, tokens
    body = line.rstrip("\n")
    length = len(body)
    while length > 0:
        length = min(length - 1, int(length * room / max(1, tokens) * 0.97))
        cut = body[: max(length, 0)]
        space = cut.rfind(" ", max(0, len(cut) - 40))
        begun = (cut[:space] if space > 0 else cut).rstrip()
        tokens = count(begun + MARK)
        if begun and tokens <= room:
            return begun + MARK, tokens
    return "", 0


def clip_item(item: Item, room: int, count: Callable[[str], int]) -> Item | None:
    """The item cut to the room, or None where nothing readable is left of it."""
    text, tokens = clip(item.text, room, count)
    return item._replace(text=text, tokens=tokens, clipped=text != item.text) if text else None
