"""What a commit means in rows, and whether it holds.

The ledger remembers revisions and heads, so that a plain append is checked without asking SQLite; when another connection has written
to the file (`PRAGMA data_version`, read inside the transaction), it forgets them and looks again.

A commit is checked before anything of it is written, so that a refused one leaves nothing behind in the transaction it shares with others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import gt
from typing import Any, NamedTuple

from talekeeper.errors import StoreError, TalekeeperError, UnknownBranch
from talekeeper.model import MemoryKey
from talekeeper.ports import (
    ENTRIES_ONLY,
    MAIN,
    Branch,
    Commit,
    Entry,
    Erase,
    Head,
    Position,
    Spending,
    StoryRecord,
    check_branches,
    targets,
)
from talekeeper.stores import refusals
from talekeeper.stores.sqlite.file import SQL, many_rows, statements
from talekeeper.stores.sqlite.reads import is_all, read_branches, read_head, read_rev, read_story
from talekeeper.stores.sqlite.rows import (
    BRANCH_BITS,
    MAX_BRANCH,
    MAX_SEQ,
    MAX_STORY,
    SEQ_BITS,
    STORY_BITS,
    Row,
    branch_row,
    decode_as,
    encode,
    entry_row,
    pack,
    tokens,
    whole,
)  # fmt: skip

CROWD = 32
"""So many plain appends in one batch go to `arrivals` instead of to their places."""
AT_ONCE = 64
"""So many of them are inserted by one statement. Between two statements the writer may have to wait for other threads."""
ARRIVALS_TO_A_PAGE = 8
"""So many arrivals are about one page of the file, where other rows are each on a page of their own."""
REMEMBERED = 100_000

_UNTIED = (None, None)
"""The last two fields of an entry that has neither an id of its own nor anything beside its text."""
_INSERT_ARRIVALS = many_rows(SQL["insert_arrival"], AT_ONCE)
_NOTHING = Spending()
_NOWHERE: Mapping[int, int] = {}


class Erased(NamedTuple):
    """The outcome of a commit whose caller has to wait until what it erased is physically gone."""

    outcome: Any


Work = Commit | Callable[["Ledger"], Any]


def columns_of(rows: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as columns. (`zip` would make an iterator for each of a thousand rows, and Python's garbage collector looks at them all.)"""
    values = list(chain.from_iterable(rows))
    return [values[at::width] for at in range(width)]


class Ledger:
    """The write connection, and what is known of the stories in it. One thread at a time; within a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.crowds: int = db.execute(SQL["count_crowds"]).fetchone()[0]
        self._arrived = 0
        self._revs: dict[int, int] = {}
        self._heads: dict[int, int] = {}
        self._version = -1
        self._looking, self._appending = db.cursor(), db.cursor()  # for what is asked every time: a connection notes each new one
        self._rows: list[Row] = []  # of plain appends that are checked, and not yet inserted

    @property
    def pages(self) -> int:
        """About how many pages were written so far."""
        return self.db.total_changes - self._arrived + self._arrived // ARRIVALS_TO_A_PAGE

    def look(self) -> None:
        """To be called first in each transaction: forgets what is known if anyone else has written."""
        (version,) = self._looking.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self._heads) > REMEMBERED:
            self.forget()
            self._version = version

    def forget(self) -> None:
        self._revs.clear()
        self._heads.clear()
        self._rows.clear()
        self._version = -1

    def apply_all(self, works: Sequence[Work]) -> list[Any]:
        """The outcome of each work: what it returns, or the `TalekeeperError` that refused it before anything of it was written."""
        if len(works) >= CROWD and (revs := self._append_crowd(works)):
            return revs
        outcomes: list[Any] = []
        for work in works:
            try:
                outcomes.append(self._apply(work))
            except TalekeeperError as refusal:
                outcomes.append(refusal)
        return outcomes

    def _append_crowd(self, works: Sequence[Work]) -> list[Any]:
        """The outcomes of plain appends, one entry each, right behind heads that are known; none where there is anything else among them.

        A crowd is looked at column by column: steps of Python for each of a thousand stories would cost more than their rows."""
        size = len(works)
        if set(map(type, works)) != {Commit}:
            return []
        stories, revs, entries, *others = columns_of(works, len(Commit._fields))  # type: ignore[arg-type]
        if [column.count(value) for column, value in zip(others, ENTRIES_ONLY, strict=True)] != [size] * len(others):
            return []
        if set(map(len, entries)) != {1} or list(map(self._revs.get, stories)) != revs:
            return []
        branches, seqs, *fields, ids, extras = columns_of(chain.from_iterable(entries), len(Entry._fields))
        keys = [story << BRANCH_BITS | branch for story, branch in zip(stories, branches, strict=True)]
        if len(set(keys)) < size or list(map(self._heads.get, keys)) != [seq - 1 for seq in seqs]:
            return []
        if max(seqs) > MAX_SEQ or min(branches) < 0 or max(branches) > MAX_BRANCH or ids.count(None) + extras.count(None) < 2 * size:
            return []
        self._arrive([key << SEQ_BITS | seq for key, seq in zip(keys, seqs, strict=True)], *fields)
        self._heads.update(zip(keys, seqs, strict=True))
        return revs

    def _arrive(self, *columns: Sequence[Any]) -> None:
        """Inserts a crowd, given by its columns: one entry of each branch, with no id and nothing beside its text."""
        if any(map(gt, columns[0], columns[0][1:])):
            columns = tuple(zip(*sorted(zip(*columns, strict=True)), strict=True))
        crowd = self.db.execute(SQL["insert_crowd"]).lastrowid
        assert crowd is not None
        crowd <<= STORY_BITS + BRANCH_BITS
        positions, kind, speaker, voice, text, channel, location, *rest = columns
        if None in location:
            location = ["\0" if place is None else place for place in location]
        columns = ([crowd | pos >> SEQ_BITS for pos in positions], positions, kind, speaker, voice, text, channel, location, *rest)
        width, size = len(columns), len(positions)
        values: list[Any] = [None] * (width * size)
        for at, column in enumerate(columns):
            values[at::width] = column
        step = AT_ONCE * width
        end = size // AT_ONCE * step
        self.db.executemany(_INSERT_ARRIVALS, [values[at : at + step] for at in range(0, end, step)])
        self.db.executemany(SQL["insert_arrival"], [values[at : at + width] for at in range(end, len(values), width)])
        self.crowds += 1
        self._arrived += size

    def _apply(self, work: Work) -> Any:
        if not isinstance(work, Commit):
            self.flush()
            return work(self)
        story = work.story
        rev = self._revs.get(story)
        if rev is None:
            rev = self._revs[story] = self._rev(story)
        if rev != work.rev:
            raise refusals.other_revision(story, rev, work.rev)
        if work[3:] != ENTRIES_ONLY:
            return self._apply_whole(work)
        if (row := self._next_row(work)) is not None:
            self._rows.append(row)
            return rev
        rows, heads, tied = self._check(work)
        if tied:
            self.flush()
            self._insert_entries(work, rows)
        else:
            self._rows += rows
        self._heads.update(heads)
        return rev

    def _next_row(self, commit: Commit) -> Row | None:
        """The row of one entry without id and extra, right behind a head that is known, which is moved; None for any other commit."""
        entries = commit.entries
        if len(entries) != 1 or commit[3:] != ENTRIES_ONLY:
            return None
        entry = entries[0]
        seq = entry.seq
        key = commit.story << BRANCH_BITS | entry.branch
        if self._heads.get(key) != seq - 1 or entry[11:] != _UNTIED or seq > MAX_SEQ or not 0 <= entry.branch <= MAX_BRANCH:
            return None
        self._heads[key] = seq
        return (key << SEQ_BITS | seq,) + entry[2:]  # noqa: RUF005 - twice as quick as unpacking

    def append_alone(self, commit: Commit) -> int | None:
        """The revision, after one plain entry was checked and committed by a single statement of its own; None where that cannot be done.

        What is remembered may be out of date here; the statement looks for itself."""
        row = self._next_row(commit)
        if row is None:
            return None
        done = 0
        try:
            values = (*row[:10], commit.story, commit.rev, row[0] >> SEQ_BITS, row[0])
            done = self._appending.execute(SQL["insert_turn_alone"], values).rowcount
        except sqlite3.IntegrityError:
            pass
        finally:
            if not done:  # someone else was here: the long way finds out what to say about it
                self.forget()
        return commit.rev if done else None

    def flush(self) -> None:
        """Inserts the plain appends that were collected."""
        if self._rows:
            crowd = self._rows if len(self._rows) >= CROWD else []
            if crowd and len({row[0] >> SEQ_BITS for row in crowd if row[10:] == _UNTIED}) == len(crowd):
                self._arrive(*columns_of(crowd, len(crowd[0]))[:-2])
            else:
                self.db.executemany(SQL["insert_turn"], self._rows)
            self._rows.clear()

    def known_head(self, story: int, branch: int) -> Head | None:
        """The story's revision and the branch's head as they are on disk, if both are known without looking there."""
        self.look()
        rev, head = self._revs.get(story), self._heads.get(story << BRANCH_BITS | branch)
        return None if rev is None or head is None else Head(rev, head)

    def _rev(self, story: int) -> int:
        rev = read_rev(self.db, story)
        if rev is None:
            raise refusals.no_story(story)
        return rev

    def _head(self, story: int, branch: int, moved: Mapping[int, int] = _NOWHERE) -> int | None:
        """The last entry of a branch, or where the commit at hand has moved it to; None where there is no such branch."""
        if not 0 <= branch <= MAX_BRANCH:
            return None
        key = story << BRANCH_BITS | branch
        head = moved.get(key)
        if head is None:
            head = self._heads.get(key)
        if head is None:
            try:
                head = self._heads[key] = read_head(self.db, story, branch).seq
            except UnknownBranch:
                return None
        return head

    def _check(self, commit: Commit) -> tuple[list[Row], dict[int, int], bool]:
        """The rows of the entries, the heads after them, and whether ids or targets go with them. Raises what forbids the commit."""
        story = commit.story
        rows: list[Row] = []
        heads: dict[int, int] = {}
        tied = False
        for branch in commit.branches:
            pack(story, branch.id, branch.at)
            head = self._head(story, branch.id)
            heads[story << BRANCH_BITS | branch.id] = branch.at if head is None else head
        if commit.branches:
            check_branches(read_branches(self.db, story), commit.branches)
        for number, seq in commit.heads.items():
            head = self._head(story, number, heads)
            if head != seq:
                raise refusals.other_head(story, number, head, seq)
        for entry in commit.entries:
            number, seq = entry[0], entry[1]
            head = self._head(story, number, heads)
            if head is None:
                raise refusals.no_branch(story, number)
            if seq != head + 1:
                raise refusals.out_of_line(number, head, seq)
            if seq > MAX_SEQ:
                pack(story, number, seq)
            key = story << BRANCH_BITS | number
            heads[key] = seq
            rows.append(entry_row(key << SEQ_BITS | seq, entry))
            tied = tied or entry.id is not None or bool(entry.extra and "target" in entry.extra)
        if tied:
            self._check_ids(commit)
        return rows, heads, tied

    def _check_ids(self, commit: Commit) -> None:
        ids = [entry.id for entry in commit.entries if entry.id is not None]
        if len(set(ids)) < len(ids) or self.db.execute(SQL["positions_of_ids"], {"story": commit.story, "wanted": encode(ids)}).fetchone():
            raise refusals.id_taken(commit.story, ids)

    def _insert_entries(self, commit: Commit, rows: Sequence[Row]) -> None:
        self.db.executemany(SQL["insert_turn"], rows)
        self._tie(commit.story, commit.entries)

    def _tie(self, story: int, entries: Sequence[Entry]) -> None:
        """Makes entries known by their own ids and by what they target."""
        for entry in entries:
            if entry.id is not None:
                self.db.execute(SQL["insert_id"], (story, entry.id, pack(story, entry.branch, entry.seq)))
            for target in targets(entry.extra):
                self.db.execute(SQL["insert_target"], (story, target, pack(story, entry.branch, entry.seq)))

    def _apply_whole(self, commit: Commit) -> Any:
        rows, heads, _ = self._check(commit)
        db, story = self.db, commit.story
        if commit.erase is not None and not is_all(db, story, commit.erase.extent):
            raise refusals.more_to_erase(story)
        self.flush()
        if commit.erase is not None:
            self._erase(story, commit.erase)
        if commit.touch or commit.spending is not None or commit.config is not None or commit.health is not None:
            self._update_story(commit)
        if commit.channels:
            rows_of = [(story, number, encode(hearers)) for number, hearers in commit.channels.items()]
            db.executemany(SQL["upsert_channel"], rows_of)
        if commit.branches:
            db.executemany(SQL["upsert_branch"], [branch_row(story, branch) for branch in commit.branches])
        if rows:
            self._insert_entries(commit, rows)
        if commit.folds:
            db.executemany(SQL["insert_fold"], [(story, fold.key, encode(fold.shape), encode(fold.sentences)) for fold in commit.folds])
        if commit.texts:
            db.executemany(SQL["insert_text"], [(story, text.key, text.branch, text.born, encode(text.sentences)) for text in commit.texts])
        if commit.gathered:
            db.executemany(SQL["insert_gathered"], [(one.name, encode(one.value), story, one.key) for one in commit.gathered])
        if commit.snapshot is not None:
            db.execute(SQL["insert_snapshot"], (story, commit.snapshot.branch, commit.snapshot.seq, encode(commit.snapshot.state)))
        if commit.index:
            self._index(story, commit.index)
        self._heads.update(heads)
        rev = self._revs[story] = commit.rev + commit.touch
        return rev if commit.erase is None else Erased(rev)

    def _update_story(self, commit: Commit) -> None:
        spent = commit.spending or _NOTHING
        config, health = (None if value is None else encode(value) for value in (commit.config, commit.health))
        self.db.execute(
            SQL["update_story"],
            {
                "story": commit.story, "touch": commit.touch, "config": config, "health": health,
                "calls": spent.calls, "tokens_in": spent.tokens_in, "tokens_out": spent.tokens_out, "failures": spent.failures,
            },
        )  # fmt: skip

    def _index(self, story: int, index: Mapping[Position, Collection[str]]) -> None:
        wanted = {pack(story, *position): terms for position, terms in index.items()}
        channels = dict(self.db.execute(SQL["channels_to_index"], {"places": encode(list(wanted))}))
        self.db.executemany(SQL["insert_words"], ((pos, tokens(story, channels[pos], wanted[pos])) for pos in sorted(channels)))
        self.db.executemany(SQL["insert_indexed"], [(story, channel) for channel in set(channels.values())])

    def _erase(self, story: int, erase: Erase) -> None:
        db = self.db
        self.place(*whole(story))
        for entry in erase.entries:
            self._replace(story, entry)
        keys = [(story, key) for key in erase.folds]
        db.executemany(SQL["erase_gathered"], keys)
        db.executemany(SQL["erase_fold"], keys)
        db.executemany(SQL["erase_texts"], keys)
        if erase.snapshots:
            db.execute(SQL["erase_snapshots"], (story,))
        if erase.index:
            self._erase_words(story, [pack(story, *position) for position in erase.index])
        db.execute(SQL["note_erasure"])

    def _replace(self, story: int, entry: Entry) -> None:
        pos = pack(story, entry.branch, entry.seq)
        found = self.db.execute(SQL["span"], {"first": pos, "last": pos}).fetchone()
        if found is None:
            return
        own_id, extra = found[10:]
        if own_id is not None:
            self.db.execute(SQL["erase_id"], (story, own_id))
        for target in targets(decode_as(dict, extra) if extra is not None else None):
            self.db.execute(SQL["erase_target"], (story, target, pos))
        self.db.execute(SQL["erase_turn"], (*entry_row(pos, entry)[1:], pos))
        self._tie(story, [entry])

    def _erase_words(self, story: int, positions: list[int] | None) -> None:
        """Takes index rows of a story out, all of them for None. By the tokens that the index really has: a wrong one would damage it."""
        places = None if positions is None else encode(positions)
        self.db.execute(SQL["erase_words"], {"first": f"{story:x}.", "last": f"{story:x}/", "places": places})

    def place(self, first: int, last: int) -> None:
        """Puts the arrivals of these branches in their places: from the one at `first` to the one at `last`."""
        for statement in ("place_arrivals", "clear_arrivals"):
            self.db.execute(SQL[statement], {"first": first, "last": last})

    def close_crowds(self) -> None:
        """Forgets crowds of which everyone is in place."""
        self.db.execute(SQL["clear_crowds"])
        (self.crowds,) = self.db.execute(SQL["count_crowds"]).fetchone()

    def create(self, key: MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        """The story under the key, made if it was not there."""
        found = read_story(self.db, key)
        if found is not None:
            return found
        newest = self.db.execute(SQL["newest_story"]).fetchone()
        if newest is not None and newest[0] >= MAX_STORY:
            raise StoreError(f"the file has had {MAX_STORY} stories, and takes no more: begin another file")
        made = self.db.execute(SQL["insert_story"], (key.tenant_id, key.user_id, key.session_id, encode(config))).lastrowid
        assert made is not None
        self.db.execute(SQL["upsert_branch"], branch_row(made, Branch(1, MAIN)))
        record = read_story(self.db, key)
        assert record is not None
        return record

    def delete(self, key: MemoryKey) -> Any:
        """Whether there was a story under the key; it is gone now."""
        found = self.db.execute(SQL["story_by_key"], (key.tenant_id, key.user_id, key.session_id)).fetchone()
        if found is None:
            return False
        story = found[0]
        first, last = whole(story)
        self.place(first, last)
        self._erase_words(story, None)
        for statement in statements(SQL["delete_story"]):
            self.db.execute(statement, {"story": story, "first": first, "last": last})
        self.db.execute(SQL["note_erasure"])
        version = self._version
        self.forget()
        self._version = version
        return Erased(True)
