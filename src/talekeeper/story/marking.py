"""What the log knows beside its turns: marks that were put into it, and values gathered over everything that a seat heard.

A *mark* is an entry of the log with data of its own (a moment, an event of the game, a memory of a place), tied to the turns it is
about. It is rewound, forked, exported and forgotten with them, and only those who heard them may know it.

A *gathering* is a value that is read off chunks of turns and merged up the same trees that hold the folds: what it costs follows the
new turns and not the length of the story (I9), an edit renews exactly what it touches, and each view has its own (I3). It follows from a
fold's sources and from the gathering's name alone, so it is stored with the fold, or beside it where that was stored before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, StoreCorrupt, TalekeeperError, quoted
from talekeeper.folds.nodes import Node
from talekeeper.folds.state import CANON, STORY, Chunk, Placed
from talekeeper.live.hot import AT_A_TIME, Hot
from talekeeper.live.stepping import AT_ONCE
from talekeeper.model import Mark, Marked, Turn
from talekeeper.ports import Commit, Entry, Position

V = TypeVar("V")


class Gathering(Protocol[V]):
    """Reads a value off turns and merges values. Pure, and made of JSON values.

    `merge` gets its parts roughly in the order of time, but chunks of several channels overlap: it must not depend on that order
    beyond what the values themselves say. `name` changes when the rules do, so that what older rules found is not taken for new."""

    @property
    def name(self) -> str: ...
    def read(self, turns: Sequence[Turn]) -> V: ...
    def merge(self, parts: Sequence[V]) -> V: ...


class Source(NamedTuple):
    """A turn that a mark is about: its id, the edit that gave it its present text, its place in the log, who heard it."""

    id: str
    revision: str
    seq: int
    audience: tuple[str, ...]


def sources_of(hot: Hot, turns: Iterable[Turn]) -> list[Source]:
    """The turns that a mark is of, as they read now."""
    edits = hot.state.revisions
    return [Source(turn.id, edits[turn.id].event if turn.id in edits else "", turn.seq, turn.audience) for turn in turns]


def may_know(hot: Hot, mark: Mark, sources: Sequence[Source]) -> tuple[str, ...]:
    """Those who heard every source, or those of them who are named; every DM in any case (I3)."""
    state = hot.state
    if not sources and mark.heard_by is None:
        raise InvalidInput("a mark that is of no turn needs heard_by: who may know it?")
    heard = set.intersection(*(set(source.audience) for source in sources)) if sources else set(state.seats)
    if mark.heard_by is not None:
        named = {rim.known_seat(seat, state.seats) for seat in mark.heard_by}
        if not named <= heard:
            raise InvalidInput(f"{', '.join(sorted(named - heard))} did not hear every turn that the mark is of")
        heard = named | {seat for seat in state.dms if seat in heard}
    if not heard:
        raise InvalidInput("nobody heard all the turns that the mark is of")
    return tuple(sorted(heard))


async def marks_named(hot: Hot, names: Iterable[str]) -> dict[str, Entry]:
    """The marks of these ids, which are to be dropped and must be on this branch."""
    places: dict[str, Position] = {}
    for name in names:
        at = hot.shared.names.position(name)
        if at is None or at.seq < 1 or not hot.path.has(*at):
            raise InvalidInput(f"there is no mark {quoted(name)} on branch {hot.name!r}")
        places[name] = at
    found = {entry.position: entry for entry in await hot.marks_at(list(places.values()))} if places else {}
    for name, at in places.items():
        if at not in found or found[at].kind != "mark":
            raise InvalidInput(f"{quoted(name)} is no mark that could be dropped")
    return {name: found[at] for name, at in places.items() if found[at].text}


def as_extra(
    hot: Hot, mark: Mark, audience: tuple[str, ...], sources: Sequence[Source], drops: Mapping[str, Entry]
) -> dict[str, Any]:  # fmt: skip
    """What stands beside a mark in the log, from which `marked` reads it. None is dropped that someone knows who may not know this one."""
    dropped = []
    for name in mark.drops:
        entry = drops.get(name)
        if entry is None:
            continue  # forgotten meanwhile
        others = set(hot.shared.record.channels[entry.channel]) - set(audience)
        if others:
            raise InvalidInput(f"a mark that {', '.join(sorted(others))} may not know cannot drop {name!r}, which they know")
        assert entry.extra is not None
        dropped.append([entry.extra["topic"], entry.channel, entry.extra["rank"], entry.seq, entry.branch])
    return {
        "topic": mark.topic, "rank": float(mark.rank), "keep": mark.keep, "target": [source.id for source in sources],
        "sources": [list(source[:3]) for source in sources], "drops": dropped,
        **({"lasting": float(mark.lasting)} if mark.lasting is not None else {}),
    }  # fmt: skip


async def read_marks(hot: Hot, seat: str | None, topic: str, limit: int | None) -> list[Marked]:
    """The marks of a topic that the seat may know, in order of their turns; the `limit` highest in rank. None: all there are."""
    return list(await hot.once(("marks", seat, topic, limit), lambda: _read_marks(hot, seat, topic, limit)))


def shaped(marks: Iterable[Marked], **fields: Any) -> list[Marked]:
    """Those of the marks whose data has these fields, of these types and no numbers beyond all measure. Anyone may note anything under
    any topic: who reads one passes over what it does not know."""
    return [mark for mark in marks if all(_fits(mark.data.get(name), kind) for name, kind in fields.items())]


def _fits(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not (isinstance(value, int) and abs(value) > rim.MOST)


async def _read_marks(hot: Hot, seat: str | None, topic: str, limit: int | None) -> list[Marked]:
    state = hot.state
    placed: list[Placed] = []
    for (name, channel), kept in state.marks.items():
        if name == topic and (seat is None or seat in state.hearers(channel)):
            placed += kept
    placed.sort()
    if limit is not None:
        placed = placed[max(0, len(placed) - limit) :]
    places = [Position(mark.branch, mark.seq) for mark in placed]
    known = {place: rows[seat] for place in places if (rows := hot.marked.get(place)) is not None and seat in rows}
    absent = [place for place in places if place not in known]
    if absent:
        known |= await _get_to_know(hot, seat, absent)
    return [mark for _, _, mark in sorted(known.values())]


async def _get_to_know(hot: Hot, seat: str | None, places: Sequence[Position]) -> dict[Position, tuple[int, int, Marked]]:
    """The marks at some places as the seat may know them, each behind its place in the order of turns."""
    loaded = hot.loaded
    entries = [entry for entry in await hot.marks_at(places) if entry.text]
    told = [_told(entry) for entry in entries]
    numbers = told if seat is None or not any(told) else await hot.supply(lambda: hot.state.ordinals(seat, told))
    known: dict[Position, tuple[int, int, Marked]] = {}
    for entry, at, number in zip(entries, told, numbers, strict=True):
        rows = hot.marked.get(entry.position) or {None: (at or entry.seq, entry.seq, marked(hot, entry))}
        first, then, mark = rows[None]
        known[entry.position] = rows[seat] = first, then, mark if seat is None else replace(mark, turn=number if at else 0)
        if loaded is hot.loaded:
            hot.marked.put(entry.position, rows)
    return known


def _told(entry: Entry) -> int:
    """The last of the turns that a mark is about; 0 where it is about none."""
    return max([seq for _, _, seq in (entry.extra or {}).get("sources", ())], default=0)


def _data(entry: Entry) -> Any:
    try:
        return json.loads(entry.text)
    except json.JSONDecodeError as exc:
        raise StoreCorrupt(f"the mark at entry {entry.seq} is damaged: its data is no JSON; run `talekeeper doctor`") from exc


def marked(hot: Hot, entry: Entry) -> Marked:
    """A mark as its author knows it: the last of its turns has the number that it has on the branch."""
    extra = entry.extra or {}
    sources: Sequence[Sequence[Any]] = extra.get("sources", ())
    revisions = hot.state.revisions
    stale = any((revisions[turn].event if turn in revisions else "") != revision for turn, revision, _ in sources)
    return Marked(
        id=hot.turn(entry).id, seq=entry.seq, topic=extra["topic"], data=_data(entry), rank=extra["rank"],
        audience=hot.shared.record.channels[entry.channel], sources=tuple(turn for turn, _, _ in sources),
        turn=_told(entry), stale=stale,
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
    """The gathering's value over all that the seat heard. What was gathered stays with the folds, and is stored with them, or later."""
    name = gathering.name

    def told(turns: Sequence[Turn]) -> V:
        return gathering.read([turn for turn in turns if turn.text])

    def value(node: Node) -> V:
        if name not in node.gathered:
            if node.level:
                node.note(name, gathering.merge([value(child) for child in hot.state.shelf.children(node)]))
            else:
                node.note(name, told(node.turns if node.turns is not None else hot.turns_of(node.refs)))
        return node.gathered[name]  # type: ignore[no-any-return]

    def still_open(chunk: Chunk) -> V:
        return hot.made(("open", name, chunk.channel, chunk.track), list(chunk.turns), lambda: told(chunk.turns))

    def look() -> V:
        closed = _added_up(hot, seat, name, value, gathering.merge)
        return gathering.merge([*closed, *map(still_open, hot.state.open_for(seat)), *beside])

    await _gather_by_and_by(hot, seat, name, value)
    return await hot.supply(look)


async def _gather_by_and_by(hot: Hot, seat: str, name: str, value: Callable[[Node], V]) -> None:
    """Reads what the folds of a seat have not been read for, a few at a time, so that others get their turn. What is added up already
    needs no look."""
    added = {key for (of, _), sums in hot.gathered.items() if of == name for roots, _ in sums for key in roots}
    count = 0

    async def fill(nodes: Sequence[Node]) -> None:
        nonlocal count
        for node in nodes:
            if name in node.gathered:
                continue
            if node.level:
                await fill(await hot.supply(partial(hot.state.shelf.children, node)))
            await hot.supply(partial(value, node))
            count += 1
            if count % AT_A_TIME == 0:
                await asyncio.sleep(0)

    roots = await hot.supply(lambda: hot.state.views[seat].roots())
    await fill([node for node in roots if node.key not in added])


def gathered_much(hot: Hot) -> bool:
    """Whether so much was gathered over stored folds that it should not wait for a checkpoint."""
    return len(hot.state.shelf.gathered) >= AT_ONCE


async def store_gathered(hot: Hot) -> None:
    """Stores what was gathered over stored folds, a little at a time. It fails nobody: what cannot be stored is gathered again."""
    while True:
        async with hot.saving:
            if not hot.in_step:  # what others forgot must not come back
                return
            shelf, record = hot.state.shelf, hot.shared.record
            some = shelf.unstored(AT_ONCE // 4)
            if not some:
                return
            try:
                await hot.shared.store.write(Commit(story=record.id, rev=record.rev, gathered=some))
            except Conflict:
                return
            except TalekeeperError:
                pass
            shelf.stored(some)


def _added_up(hot: Hot, seat: str, name: str, value: Callable[[Node], V], merge: Callable[[Sequence[V]], V]) -> list[V]:
    """What the seat's roots add up to, from the oldest on. The sum behind each level of the trees is kept, with the roots of that level: as
    long as a level only gets more roots, adding goes on from there, also for another seat with the same roots."""
    trees = hot.state.views[seat].trees
    levels = [level for tree in (trees[CANON], trees[STORY]) for level in reversed(tree.levels)]
    keys = [tuple([node.key for node in level]) for level in levels]
    nearest = max((sums for (of, _), sums in hot.gathered.items() if of == name), key=lambda sums: _in_common(sums, keys), default=[])
    known = iter(nearest)
    sums: list[tuple[tuple[str, ...], list[V]]] = []
    total: list[V] = []
    for level, own in zip(levels, keys, strict=True):
        roots, so_far = next(known, ((), total))
        if own != roots:
            known = iter(())  # what comes behind was added to something else
            if own[: len(roots)] != roots:
                roots, so_far = (), total
        total = so_far
        for node in level[len(roots) :]:
            total = [merge([*total, value(node)])]
        sums.append((own, total))
    hot.gathered[name, seat] = sums
    return total


def _in_common(sums: Sequence[tuple[tuple[str, ...], Any]], keys: Sequence[tuple[str, ...]]) -> int:
    """How many roots were added up before anything else was."""
    count = 0
    for (roots, _), own in zip(sums, keys, strict=False):
        if own[: len(roots)] != roots:
            break
        count += len(roots)
        if own != roots:
            break
    return count
