"""The whole of a context: the stable part that was planned, then the volatile parts in what is left of the budget. Pure.

What volatile parts want to say comes as rows with ranks. Parts are served by their priority, and each takes the best of its rows that
fit. Turns that are brought back are shown in order of time; where all of them have a time, it stands once above those that share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from talekeeper.context.cuts import Wish
from talekeeper.context.paragraphs import Line
from talekeeper.context.plan import Plan, block_of
from talekeeper.context.recipe import RECENT_PART, Note, Part
from talekeeper.context.rendering import defuse, label
from talekeeper.model import Block, Context, Item, LeftOut

PINNED = float("inf")
"""The rank of what never drops."""


class Row(NamedTuple):
    """Something that a volatile part may say, and its rank. `under`: a line above it, shown once for all neighbours that have the same."""

    item: Item
    rank: float
    under: str = ""


Rows = Mapping[str, Sequence[Row]]
"""What volatile parts may say: per part its rows, in the order of their showing."""


def note_row(note: Note, count: Callable[[str], int]) -> Row:
    text = f"- {defuse(note.text)}\n"
    return Row(Item(text=text, tokens=count(text), kind="entry", sources=note.sources), PINNED if note.pinned else note.rank)


def turn_rows(lines: Iterable[tuple[Line, float]]) -> list[Row]:
    """Turns with their ranks as rows, in order of time."""
    told = sorted(lines, key=lambda row: row[0].seq)
    if len(told) > 1 and all(line.turn.when is not None for line, _ in told):
        return [Row(line.undated, rank, f"({label(line.turn.when or '')})\n") for line, rank in told]
    return [Row(line.item, rank) for line, rank in told]


def assemble(wish: Wish, plan: Plan, rows: Rows, budget: int, counter: str, count: Callable[[str], int]) -> Context:
    """The context: the plan's stable part, then the volatile parts in what is left of the budget."""
    blocks = list(plan.blocks)
    text = plan.told()
    stable = tokens = plan.tokens
    left_out = list(plan.left_out)
    if plan.items:
        recent = Block(
            name=RECENT_PART.name,
            heading=plan.recent_heading,
            items=tuple(plan.items),
            tokens=plan.heading_tokens + plan.recent_tokens,
            stable=True,
        )
        blocks.append(recent)
        stable = tokens = stable + recent.tokens
    if any(rows.values()):
        volatile, dropped = _volatile(wish.recipe.volatile, rows, budget, budget - stable, count)
        blocks += volatile
        left_out += dropped
        text += "".join(block.text for block in volatile)
        tokens += sum(block.tokens for block in volatile)
    return Context(
        seat=wish.seat.id, budget=budget, text=text, tokens=tokens, stable_tokens=stable, counter=counter, blocks=tuple(blocks),
        left_out=tuple(left_out),
    )  # fmt: skip


def _volatile(parts: Sequence[Part], rows: Rows, budget: int, room: int, count: Callable[[str], int]) -> tuple[list[Block], list[LeftOut]]:
    made: dict[str, Block] = {}
    left_out: list[LeftOut] = []
    waiting = sorted((part for part in parts if rows.get(part.name)), key=lambda part: -part.priority)
    pinned = [sum(row.item.tokens for row in rows[part.name] if row.rank == PINNED) for part in waiting]
    floors = [max(int(part.floor * budget), kept and kept + count(part.heading)) for part, kept in zip(waiting, pinned, strict=True)]
    for index, part in enumerate(waiting):
        mine = min(int(part.share * budget), room - sum(floors[index + 1 :])) - count(part.heading)
        mine = max(mine, pinned[index])
        taken, dropped = choose(rows[part.name], mine, count)
        if taken:
            made[part.name] = block_of(part.name, part.heading, taken, count, stable=False)
            room -= made[part.name].tokens
        left_out += [
            LeftOut(block=part.name, reason="no room", turn_count=len(item.sources), tokens=item.tokens, sources=item.sources)
            for item in dropped
        ]
    return [made[part.name] for part in parts if part.name in made], left_out


def choose(rows: Sequence[Row], room: int, count: Callable[[str], int]) -> tuple[list[Item], list[Item]]:
    """The best-ranked items that fit together, in their given order and with the lines above them, and those that do not fit."""
    runs = [run for run, (_, same) in enumerate(groupby(rows, key=lambda row: row.under)) for _ in same]
    heads = {under: count(under) if under else 0 for under in {row.under for row in rows}}
    taken: set[int] = set()
    opened: set[int] = set()
    for index in sorted(range(len(rows)), key=lambda index: (-rows[index].rank, index)):
        row = rows[index]
        cost = row.item.tokens + (0 if runs[index] in opened else heads[row.under])
        if cost <= room:
            taken.add(index)
            opened.add(runs[index])
            room -= cost
    items: list[Item] = []
    above = ""
    for index in sorted(taken):
        item, _, under = rows[index]
        items.append(item if under == above else item._replace(text=under + item.text, tokens=item.tokens + heads[under]))
        above = under
    return items, [row.item for index, row in enumerate(rows) if index not in taken]
