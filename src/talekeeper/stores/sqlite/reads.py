"""Everything that is asked of the file, as functions of a connection. Each answers from one consistent state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TypeVar

from talekeeper.model import MemoryKey
from talekeeper.ports import (
    Branch,
    Entry,
    Extent,
    Found,
    Head,
    Outline,
    Position,
    Postings,
    Read,
    Snapshot,
    Span,
    Spending,
    StoryRecord,
)  # fmt: skip
from talekeeper.stores import refusals
from talekeeper.stores.sqlite.file import SQL, transaction
from talekeeper.stores.sqlite.rows import (
    FIRST_BRANCH,
    MAX_STORY,
    Row,
    decode_as,
    encode,
    entries_of,
    fold_of,
    gathered_of,
    outlines_of,
    postings,
    span,
    text_of,
    token,
)  # fmt: skip

T = TypeVar("T")

OUTLINES_TO_A_ROW = 5
"""So many outlines are as quickly read as a row with its text, about."""
MANY_CHANNELS = 16
"""Up to so many, looking for a term in each channel is quicker than looking through the vocabulary."""


def read_keys(db: sqlite3.Connection, tenant_id: str | None) -> list[MemoryKey]:
    rows = db.execute(SQL["keys"]) if tenant_id is None else db.execute(SQL["keys_of_tenant"], (tenant_id,))
    return [MemoryKey(*row) for row in rows]


def load_story(db: sqlite3.Connection, key: MemoryKey) -> StoryRecord | None:
    with transaction(db, "BEGIN"):
        return read_story(db, key)


def read_story(db: sqlite3.Connection, key: MemoryKey) -> StoryRecord | None:
    """The story under the key. To be called within a transaction."""
    row = db.execute(SQL["story_by_key"], (key.tenant_id, key.user_id, key.session_id)).fetchone()
    if row is None:
        return None
    story, rev, config, health, *spent = row
    return StoryRecord(
        id=story,
        key=key,
        rev=rev,
        config=decode_as(dict, config),
        branches=read_branches(db, story),
        channels={number: tuple(decode_as(list, hearers)) for number, hearers in db.execute(SQL["channels_of"], (story,))},
        spending=Spending(*spent),
        health=decode_as(dict, health) if health else {},
    )


def read_branches(db: sqlite3.Connection, story: int) -> dict[int, Branch]:
    return {number: Branch(number, *rest) for number, *rest in db.execute(SQL["branches_of"], (story,))}


def read_rev(db: sqlite3.Connection, story: int) -> int | None:
    row = db.execute(SQL["rev"], (story,)).fetchone() if 0 < story <= MAX_STORY else None
    return None if row is None else int(row[0])


def read_head(db: sqlite3.Connection, story: int, branch: int) -> Head:
    """The revision and the branch's last entry. Raises `UnknownStory` and `UnknownBranch`."""
    first, last = span(story, branch)
    wanted = {"story": story, "branch": branch, "first": first, "last": last}
    row = db.execute(SQL["head"], wanted).fetchone() if 0 < story <= MAX_STORY else None
    if row is None:
        raise refusals.no_story(story)
    rev, seq = row
    if seq is None:
        raise refusals.no_branch(story, branch)
    return Head(rev, seq)


def fetch(db: sqlite3.Connection, request: Read) -> Found:
    """What the request names, from one state."""
    with transaction(db, "BEGIN") if _is_several(request) else nullcontext():
        return Found(
            entries=_entries(db, request),
            outlines=_outlines(db, request),
            folds=_of_folds(db, request, "folds", "all_folds", fold_of),
            texts=_of_folds(db, request, "texts", "all_texts", text_of),
            gathered=_of_folds(db, request, "gathered", "all_gathered", gathered_of),
            snapshot=_snapshot(db, request.story, request.snapshot_on),
        )


def _is_several(request: Read) -> bool:
    """Whether it takes more than one statement, which must then see the same state."""
    more = request.spans or request.ids or request.targeting or request.folds or request.all_folds or request.snapshot_on
    return bool(more) or bool(request.positions and request.outlines)


def weight(request: Read) -> int:
    """About how many rows the request will bring."""
    if request.all_folds:
        return 1 << 30
    wide = sum(each.last - each.first + 1 for each in request.spans if each.last >= each.first)
    named = len(request.positions) + len(request.ids) + len(request.targeting) + 3 * len(request.folds)
    return wide + named + len(request.outlines) // OUTLINES_TO_A_ROW


def _entries(db: sqlite3.Connection, request: Read) -> list[Entry]:
    story = request.story
    entries: list[Entry] = []
    for each in request.spans:
        first, last = span(story, each.branch, each.first, each.last)
        entries += entries_of(db.execute(SQL["span"], {"first": first, "last": last}))
    places = _places(story, request.positions)
    for wanted, statement in ((request.ids, "positions_of_ids"), (request.targeting, "positions_targeting")):
        if wanted:
            places += [place for (place,) in db.execute(SQL[statement], {"story": story, "wanted": encode(wanted)})]
    if places:
        rows = db.execute(SQL["positions"], {"places": encode(places)}).fetchall()
        found = dict(zip([row[0] for row in rows], entries_of(rows), strict=True))
        entries += [found[place] for place in places if place in found]
    return entries


def _outlines(db: sqlite3.Connection, request: Read) -> list[Outline]:
    places = _places(request.story, request.outlines)
    return outlines_of(db.execute(SQL["outlines"], {"places": encode(places)})) if places else []


def _places(story: int, positions: Sequence[Position]) -> list[int]:
    """The numbers under which entries are kept, as far as there can be any."""
    starts = {branch: span(story, branch) for branch in {branch for branch, _ in positions}}
    return [place for branch, seq in positions for start, end in (starts[branch],) if start <= (place := start + seq) <= end]


def _of_folds(db: sqlite3.Connection, request: Read, of_some: str, of_all: str, noun: Callable[[Row], T]) -> list[T]:
    """What there is of the folds that are asked for: themselves, the texts of models, or what was gathered over them. By the names of the
    statements for some of them, and for all."""
    if request.all_folds:
        rows = db.execute(SQL[of_all], (request.story,))
    elif request.folds:
        rows = db.execute(SQL[of_some], {"story": request.story, "wanted": encode(request.folds)})
    else:
        return []
    return [noun(row) for row in rows]


def is_all(db: sqlite3.Connection, story: int, extent: Extent | None) -> bool:
    """Whether nothing has come since someone looked."""
    if extent is None:
        return True
    found: tuple[int, int] = db.execute(SQL["extent"], {"story": story, "about": encode(extent.about)}).fetchone()
    return found == (extent.folds, extent.entries)


def _snapshot(db: sqlite3.Connection, story: int, path: Sequence[Span]) -> Snapshot | None:
    for each in path:
        row = db.execute(SQL["snapshot"], (story, each.branch, each.first, each.last)).fetchone()
        if row is not None:
            branch, seq, state = row
            return Snapshot(branch, seq, decode_as(dict, state))
    return None


def search(db: sqlite3.Connection, story: int, terms: Sequence[str]) -> list[list[Postings]]:
    """For each term the indexed entries that contain it."""
    found: list[list[Postings]] = [[] for _ in terms]
    if not terms or not 0 < story <= MAX_STORY:
        return found
    with transaction(db, "BEGIN"):
        (channels,) = db.execute(SQL["count_indexed"], (story,)).fetchone()
        look = _look_in_channels if channels <= MANY_CHANNELS else _look_in_vocabulary
        for place, channel, offsets in look(db, story, [token(story, term) for term in terms]):
            found[place] += postings(channel, offsets)
    return found


def _look_in_channels(db: sqlite3.Connection, story: int, tokens: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """The place of a token among the given ones, a channel that has it, and where."""
    wanted = {"story": story, "start": span(story, FIRST_BRANCH)[0], "tokens": encode(tokens)}
    return (row for row in db.execute(SQL["search_channels"], wanted) if row[2] is not None)


def _look_in_vocabulary(db: sqlite3.Connection, story: int, tokens: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    start = span(story, FIRST_BRANCH)[0]
    for place, wanted in enumerate(tokens):
        for term, offsets in db.execute(SQL["search_vocabulary"], {"start": start, "token": wanted}):
            yield place, int(term.rpartition(".")[2]), offsets
