"""What is done for the file off the hot path, in a thread of its own: checkpoints, sorting in arrivals, making erasures physical.

- A *checkpoint* copies the write-ahead log into the file, so that the log starts over. The log is not cut: overwriting it is cheaper.
- *Arrivals*, written in the order in which a crowd of stories appended them, are put in their places, many of a story at a time.
- An *erasure* is committed like any write, and answered when it is physical: the index is merged into one segment, so that none keeps an
  erased term; the file is rewritten, since SQLite may leave copies of moved rows in the slack of its pages; the log is cut to nothing.
  What is not finished (a large file, another process that reads for too long, no room, a crash) stays noted in the file and is done when it
  is closed, or next opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from queue import SimpleQueue
from threading import Event, Lock, Thread

from talekeeper.stores.sqlite.file import SQL, StoreFile, finishing, patiently
from talekeeper.stores.sqlite.ledger import Ledger
from talekeeper.stores.sqlite.rows import BRANCH_BITS, SEQ_BITS, STORY_BITS

log = logging.getLogger(__name__)

FULL_HOUSE = 64
"""When there are so many crowds, their arrivals are put in their places …"""
PLACED_AT_ONCE = 500
"""… about so many at a time."""
MERGED_AT_ONCE = 500
CHECKPOINT_PAGES = 1_000
REWRITTEN_AT_ONCE = 256 << 20
"""A file of more bytes is rewritten for an erasure only when it is closed: before, that would stop all writers for too long."""
LAST_BRANCH = (1 << STORY_BITS + BRANCH_BITS) - 1
"""Of the last story; as a mask, what tells the branch of an arrival by its number."""
LAST_WAIT_MS = 100
"""So long a closing store waits for others at the file to cut the log; then whoever closes last does it."""
_PAUSE = 0.001  # between two steps, so that the writer gets the lock


class Upkeep:
    """Uses the writer's connection under its lock, and one of its own for checkpoints."""

    def __init__(self, file: StoreFile, ledger: Ledger, lock: Lock) -> None:
        self._file = file
        self._ledger = ledger
        self._lock = lock
        self._db = file.connect()
        self._checkpointed = 0
        self._placing = False
        self._closing = Event()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=f"talekeeper-upkeep-{file.path.name}", daemon=True)
        self._thread.start()
        if ledger.db.execute(SQL["newest_erasure"]).fetchone()[0] is not None:
            self.purge(lambda: None)

    def wrote(self) -> None:
        """The writer tells that it has; from time to time something is due."""
        pages = self._ledger.pages
        if pages - self._checkpointed >= CHECKPOINT_PAGES:
            self._checkpointed = pages
            self._queue.put(self._checkpoint)
        if self._ledger.crowds >= FULL_HOUSE and not self._placing:
            self._placing = True
            self._queue.put(self._place)

    def purge(self, done: Callable[[], None]) -> None:
        """Makes erasures physical, then calls back, whether it could or not: they are committed in any case."""
        self._queue.put(lambda: self._purge(done))

    def close(self) -> None:
        """Finishes erasures, checkpoints and lets go. Blocks."""
        self._closing.set()
        self.purge(lambda: None)
        self._queue.put(None)
        self._thread.join()
        self._db.execute(f"PRAGMA busy_timeout = {LAST_WAIT_MS}")
        self._do(self._truncate)
        self._db.close()

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            self._do(task)

    def _do(self, task: Callable[[], object]) -> None:
        try:
            task()
        except Exception as exc:  # the thread goes on: what failed is still due, and will be tried again
            with self._lock:
                self._ledger.forget()
            log.warning("upkeep failed: %s", exc, extra={"path": str(self._file.path), "reason": str(exc)})

    def _checkpoint(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with self._lock:  # the few pages that came meanwhile; else the log would never start over while someone writes
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _place(self) -> None:
        ledger = self._ledger
        try:
            branches = sorted(number & LAST_BRANCH for (number,) in self._db.execute(SQL["arrivals"]))
            edges = [0, *(branch << SEQ_BITS for branch in branches[PLACED_AT_ONCE::PLACED_AT_ONCE]), LAST_BRANCH + 1 << SEQ_BITS]
            for first, end in pairwise(edges):
                if self._closing.wait(_PAUSE):
                    return
                with self._lock, self._transaction():
                    ledger.look()
                    ledger.place(first, end - 1)
            with self._lock, self._transaction():
                ledger.close_crowds()
        finally:
            self._placing = False

    def _purge(self, done: Callable[[], None]) -> None:
        db, lock = self._ledger.db, self._lock
        try:
            with lock:
                (newest,) = db.execute(SQL["newest_erasure"]).fetchone()
            if newest is None:
                return  # one of the erasures before has done it for all
            self._merge()
            with lock:
                rewritten = self._rewrite()
                if self._truncate() and rewritten:
                    with self._transaction():
                        db.execute(SQL["clear_erasures"], (newest,))
        finally:
            done()

    def _merge(self) -> None:
        """Merges the whole index into one segment, step by step."""
        db, pages = self._ledger.db, -MERGED_AT_ONCE
        more = True
        while more:
            with self._lock, self._transaction():
                before = db.total_changes
                db.execute(SQL["merge_words"], (pages,))
                more = db.total_changes - before >= 2
            pages = MERGED_AT_ONCE
            self._closing.wait(_PAUSE)

    def _rewrite(self) -> bool:
        """Rewrites the file. False where it is too large to do so before it is closed."""
        db = self._ledger.db
        ((pages,), (size,)) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        if pages * size > REWRITTEN_AT_ONCE and not self._closing.is_set():
            return False
        patiently(self._file.busy_timeout, lambda: db.execute("VACUUM"))
        return True

    def _truncate(self) -> bool:
        """Copies the log into the file and cuts it. False where someone reads in it for too long."""
        busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """On the writer's connection, which does not wait by itself."""
        db = self._ledger.db
        patiently(self._file.busy_timeout, lambda: db.execute("BEGIN IMMEDIATE"))
        with finishing(db):
            yield
