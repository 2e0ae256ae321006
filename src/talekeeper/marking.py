"""What the log knows beside its turns: marks that were put into it, and values gathered over everything that a seat heard.

A *mark* is an entry of the log with data of its own (a moment, an event of the game, a memory of a place), tied to the turns it is
about. It is rewound, forked, exported and forgotten with them, and only those who heard them may know it.

A *gathering* is a value that is read off chunks of turns and merged up the same trees that hold the folds: what it costs follows the
new turns and not the length of the story (I9), an edit renews exactly what it touches, and each view has its own (I3).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from talekeeper.folds import Node
from talekeeper.hot import Hot
from talekeeper.model import Marked, Turn
from talekeeper.ports import Entry, Position
from talekeeper.state import Placed

V = TypeVar("V")


class Gathering(Protocol[V]):
    """Reads a value off turns and merges values. Pure, and made of JSON values.

    `merge` gets its parts roughly in the order of time, but chunks of several channels overlap: it must not depend on that order
    beyond what the values themselves say. `name` changes when the rules do, so that what older rules found is not taken for new."""

    @property
    def name(self) -> str: ...
    def read(self, turns: Sequence[Turn]) -> V: ...
    def merge(self, parts: Sequence[V]) -> V: ...


async def read_marks(hot: Hot, seat: str | None, topic: str, limit: int | None = None) -> list[Marked]:
    """The marks of a topic that the seat may know, in order of their turns; the `limit` highest in rank. None: all there are."""
    return list(await hot.once(("marks", seat, topic, limit), lambda: _read_marks(hot, seat, topic, limit)))


async def _read_marks(hot: Hot, seat: str | None, topic: str, limit: int | None) -> list[Marked]:
    state = hot.state
    placed: list[Placed] = []
    for (name, channel), kept in state.marks.items():
        if name == topic and (seat is None or seat in state.hearers(channel)):
            placed += kept
    placed.sort()
    if limit is not None:
        placed = placed[max(0, len(placed) - limit) :]
    entries = await hot.marks_at([Position(mark.branch, mark.seq) for mark in placed])
    entries = [entry for entry in entries if entry.text]
    told = [_told(entry) for entry in entries]
    numbers = told if seat is None or not any(told) else await hot.supply(lambda: hot.state.ordinals(seat, told))
    in_order = sorted(zip(entries, told, numbers, strict=True), key=lambda row: (row[1] or row[0].seq, row[0].seq))
    return [marked(hot, entry, number if at else 0) for entry, at, number in in_order]


def _told(entry: Entry) -> int:
    """The last of the turns that a mark is about; 0 where it is about none."""
    return max([seq for _, _, seq in (entry.extra or {}).get("sources", ())], default=0)


def marked(hot: Hot, entry: Entry, number: int | None = None) -> Marked:
    """A mark as one may know it for whom the last of its turns has that number; the author's is the one on the branch."""
    extra = entry.extra or {}
    sources: Sequence[Sequence[Any]] = extra.get("sources", ())
    revisions = hot.state.revisions
    stale = any((revisions[turn].event if turn in revisions else "") != revision for turn, revision, _ in sources)
    return Marked(
        id=hot.turn(entry).id, seq=entry.seq, topic=extra["topic"], data=json.loads(entry.text), rank=extra["rank"],
        audience=hot.shared.record.channels[entry.channel], sources=tuple(turn for turn, _, _ in sources),
        turn=_told(entry) if number is None else number, stale=stale,
    )  # fmt: skip


def topics(hot: Hot, seat: str | None, prefix: str) -> list[str]:
    """The topics of which the seat may know something, sorted."""
    state = hot.state
    known = {
        topic for (topic, channel), kept in state.marks.items()
        if kept and topic.startswith(prefix) and (seat is None or seat in state.hearers(channel))
    }  # fmt: skip
    return sorted(known)


async def gather(hot: Hot, seat: str, gathering: Gathering[V], beside: Sequence[V] = ()) -> V:
    """The gathering's value over all that the seat heard. What was gathered stays with the folds, and is stored with them."""
    name = gathering.name

    def told(turns: Sequence[Turn]) -> V:
        return gathering.read([turn for turn in turns if turn.text])

    def value(node: Node) -> V:
        if name not in node.gathered:
            if node.level:
                node.gathered[name] = gathering.merge([value(child) for child in hot.state.shelf.children(node)])
            else:
                node.gathered[name] = told(node.turns if node.turns is not None else hot.turns_of(node.refs))
        return node.gathered[name]  # type: ignore[no-any-return]

    def look() -> V:
        roots = hot.state.views[seat].roots()
        keys = tuple(root.key for root in roots)
        if hot.gathered.get((seat, name), ((),))[0] != keys:  # it changes with every closed chunk, not with every turn
            hot.gathered[seat, name] = keys, gathering.merge([value(root) for root in roots])
        closed = [hot.gathered[seat, name][1]] if roots else []
        return gathering.merge([*closed, *(told(chunk.turns) for chunk in hot.state.open_for(seat)), *beside])

    return await hot.supply(look)
