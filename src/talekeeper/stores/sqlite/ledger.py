"""What a commit means in rows, and whether it holds.

The ledger remembers revisions and heads, so that a plain append is checked without asking SQLite; when another connection has written
to the file (`PRAGMA data_version`, read inside the transaction), it forgets them and looks again.

A commit is checked before anything of it is written, so that a refused one leaves nothing behind in the transaction it shares with others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from talekeeper.errors import Conflict, StoreError, UnknownBranch, UnknownStory
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Entry, Erase, Head, Position, Spending, StoryRecord, targets
from talekeeper.stores.sqlite.file import SQL, statements
from talekeeper.stores.sqlite.reads import read_head, read_rev, read_story
from talekeeper.stores.sqlite.rows import (
    BRANCH_BITS,
    MAX_BRANCH,
    MAX_SEQ,
    MAX_STORY,
    SEQ_BITS,
    Row,
    branch_row,
    decode,
    encode,
    entry_row,
    pack,
    tokens,
    whole,
)  # fmt: skip

CROWD = 32
"""So many plain appends in one batch go to `arrivals` instead of to their places."""
REMEMBERED = 100_000

_NOTHING = Spending()
_NOWHERE: Mapping[int, int] = {}


class Erased(NamedTuple):
    """The outcome of a commit whose caller has to wait until what it erased is physically gone."""

    outcome: Any


Work = Commit | Callable[["Ledger"], Any]


class Ledger:
    """The write connection, and what is known of the stories in it. One thread at a time; within a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.arrivals: int = db.execute(SQL["count_arrivals"]).fetchone()[0]
        self._revs: dict[int, int] = {}
        self._heads: dict[int, int] = {}
        self._version = -1
        self._rows: list[Row] = []  # of plain appends that are checked, and not yet inserted
        self._plain = 0

    def look(self) -> None:
        """To be called first in each transaction: forgets what is known if anyone else has written."""
        (version,) = self.db.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self._heads) > REMEMBERED:
            self.forget()
            self._version = version

    def forget(self) -> None:
        self._revs.clear()
        self._heads.clear()
        self._rows.clear()
        self._plain = 0
        self._version = -1

    def apply(self, work: Work) -> Any:
        """Does the work and returns its outcome. Raises a `TalekeeperError` only before anything is written."""
        if type(work) is not Commit:
            self.flush()
            return work(self)  # type: ignore[operator]
        story = work.story
        rev = self._revs.get(story)
        if rev is None:
            rev = self._revs[story] = self._rev(story)
        if rev != work.rev:
            raise Conflict(f"story {story} is at revision {rev}, not {work.rev}: read again, then retry")
        if self._is_special(work):
            return self._apply_whole(work)
        if not self._append_one(work):
            rows, heads, tied = self._check(work)
            if tied:
                self.flush()
                self._insert_entries(work, rows)
            else:
                self._rows += rows
            self._heads.update(heads)
        self._plain += 1
        return rev

    def _append_one(self, commit: Commit) -> bool:
        """The hot path: one entry without id and extra, right behind a head that is known. False for anything else."""
        if len(commit.entries) != 1:
            return False
        entry = commit.entries[0]
        seq = entry[1]
        key = commit.story << BRANCH_BITS | entry[0]
        if self._heads.get(key) != seq - 1 or entry[11] is not None or entry[12] is not None or seq > MAX_SEQ:
            return False
        self._heads[key] = seq
        self._rows.append((key << SEQ_BITS | seq,) + entry[2:])  # noqa: RUF005 - twice as quick as unpacking
        return True

    def append_alone(self, commit: Commit) -> int | None:
        """The revision, after one plain entry was checked and committed by a single statement of its own; None where that cannot be done.

        What is remembered may be out of date here; the statement looks for itself."""
        if len(commit.entries) != 1 or self._is_special(commit):
            return None
        entry = commit.entries[0]
        key = commit.story << BRANCH_BITS | entry[0]
        seq = entry[1]
        if self._heads.get(key) != seq - 1 or entry[11] is not None or entry[12] is not None or seq > MAX_SEQ:
            return None
        try:
            pos = key << SEQ_BITS | seq
            done = self.db.execute(SQL["insert_turn_alone"], (pos, *entry[2:11], commit.story, commit.rev, pos)).rowcount
        except sqlite3.IntegrityError:
            done = 0
        if not done:  # someone else was here: the long way finds out what to say about it
            self.forget()
            return None
        self._heads[key] = seq
        return commit.rev

    @staticmethod
    def _is_special(work: Commit) -> bool:
        """Whether there is more to a commit than entries."""
        return bool(
            work.touch or work.heads or work.channels or work.branches or work.folds or work.texts or work.index
            or work.snapshot is not None or work.erase is not None or work.spending is not None or work.config is not None
            or work.health is not None
        )  # fmt: skip

    def flush(self) -> None:
        """Inserts the plain appends that were collected."""
        if self._rows:
            if self._plain >= CROWD:
                self.db.executemany(SQL["insert_arrival"], self._rows)
                self.arrivals += len(self._rows)
            else:
                self.db.executemany(SQL["insert_turn"], self._rows)
            self._rows.clear()
        self._plain = 0

    def known_head(self, story: int, branch: int) -> Head | None:
        """The story's revision and the branch's head as they are on disk, if both are known without looking there."""
        self.look()
        rev, head = self._revs.get(story), self._heads.get(story << BRANCH_BITS | branch)
        return None if rev is None or head is None else Head(rev, head)

    def _rev(self, story: int) -> int:
        rev = read_rev(self.db, story)
        if rev is None:
            raise UnknownStory(f"there is no story number {story}: it was deleted, or never made")
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
        for number, seq in commit.heads.items():
            head = self._head(story, number, heads)
            if head != seq:
                raise Conflict(f"branch {number} of story {story} is at {head}, not {seq}: read again, then retry")
        for entry in commit.entries:
            number, seq = entry[0], entry[1]
            head = self._head(story, number, heads)
            if head is None:
                raise UnknownBranch(f"story {story} has no branch number {number}")
            if seq != head + 1:
                raise Conflict(f"entry {seq} of branch {number} is not right behind its head {head}: read again, then retry")
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
            raise Conflict(f"one of the ids {ids!r} belongs to another entry of story {commit.story}: read again, then retry")

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
        self.flush()
        db, story = self.db, commit.story
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

    def _index(self, story: int, index: Mapping[Position, Sequence[str]]) -> None:
        wanted = {pack(story, *position): terms for position, terms in index.items()}
        channels = dict(self.db.execute(SQL["channels_to_index"], {"places": encode(list(wanted))}).fetchall())
        self.db.executemany(SQL["insert_words"], [(pos, tokens(story, channel, wanted[pos])) for pos, channel in sorted(channels.items())])
        self.db.executemany(SQL["insert_indexed"], [(story, channel) for channel in set(channels.values())])

    def _erase(self, story: int, erase: Erase) -> None:
        db = self.db
        self.place(*whole(story))
        for entry in erase.entries:
            self._replace(story, entry)
        keys = [(story, key) for key in erase.folds]
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
        for target in targets(decode(extra) if extra is not None else None):
            self.db.execute(SQL["erase_target"], (story, target, pos))
        self.db.execute(SQL["erase_turn"], (*entry_row(pos, entry)[1:], pos))
        self._tie(story, [entry])

    def _erase_words(self, story: int, positions: list[int] | None) -> None:
        """Takes index rows of a story out, all of them for None. By the tokens that the index really has: a wrong one would damage it."""
        places = None if positions is None else encode(positions)
        self.db.execute(SQL["erase_words"], {"first": f"{story:x}.", "last": f"{story:x}/", "places": places})

    def place(self, first: int, last: int) -> None:
        """Puts arrivals of that range in their places."""
        self.db.execute(SQL["place_arrivals"], (first, last))
        self.arrivals -= self.db.execute(SQL["clear_arrivals"], (first, last)).rowcount

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
        self.db.execute(SQL["upsert_branch"], branch_row(made, Branch(1, "main")))
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
        self._erase_words(story, None)
        for statement in statements(SQL["delete_story"]):
            self.db.execute(statement, {"story": story, "first": first, "last": last})
        self.db.execute(SQL["note_erasure"])
        version = self._version
        self.forget()
        self._version = version
        return Erased(True)
