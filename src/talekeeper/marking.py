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
    marks = [await marked(hot, seat, entry) for entry in entries if entry.text]
    return [mark for _, mark in sorted(marks, key=lambda row: row[0])]


async def marked(hot: Hot, seat: str | None, entry: Entry) -> tuple[tuple[int, int], Marked]:
    """A mark as the seat may know it, behind what its order goes by."""
    extra = entry.extra or {}
    sources: Sequence[Sequence[Any]] = extra.get("sources", ())
    revisions = hot.state.revisions
    stale = any((revisions[turn].event if turn in revisions else "") != revision for turn, revision, _ in sources)
    told = max((seq for _, _, seq in sources), default=0)
    number = told if seat is None or not told else await hot.supply(lambda: hot.state.ordinal(seat, told))
    mark = Marked(
        id=hot.turn(entry).id, seq=entry.seq, topic=extra["topic"], data=json.loads(entry.text), rank=extra["rank"],
        audience=hot.shared.record.channels[entry.channel], sources=tuple(turn for turn, _, _ in sources), turn=number, stale=stale,
    )  # fmt: skip
    return (told or entry.seq, entry.seq), mark


def topics(hot: Hot, seat: str | None, prefix: str) -> list[str]:
    """The topics of which the seat may know something, sorted."""
    state = hot.state
    known = {
        topic for (topic, channel), kept in state.marks.items()
        if kept and topic.startswith(prefix) and (seat is None or seat in state.hearers(channel))
    }  # fmt: skip
    return sorted(known)


async def gather(hot: Hot, seat: str, gathering: Gathering[V]) -> V:
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
        return gathering.merge([*closed, *(told(chunk.turns) for chunk in hot.state.open_for(seat))])

    return await hot.supply(look)
