"""The one who writes: commits of all stories, as many as are waiting, in one transaction.

The writer's thread takes everything that was handed over since it last looked, lets the ledger check and write it, commits once and
then tells all callers at once. A refused commit does not disturb the others of its batch. After any other error the batch is rolled
back and its commits are tried one by one, so that only the guilty one fails.

A commit that comes alone while nobody else writes is written right where it comes from: on a quick disk the way to another thread and
back costs more than the commit itself. As soon as that takes long, or others come, the thread does it.
"""

from __future__ import annotations

import sqlite3
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple

from talekeeper.ports import Commit, Head
from talekeeper.stores.sqlite.file import StoreFile, is_busy, patiently
from talekeeper.stores.sqlite.ledger import Erased, Ledger, Work
from talekeeper.stores.sqlite.upkeep import Upkeep


class Jobs(NamedTuple):
    """What is to be done, and the futures for its outcomes, in the same order."""

    works: list[Work]
    futures: list[Future[Any]]


TOLD_AT_ONCE = 64
"""So many callers are told in one round of the event loop that what they waited for is durable."""
SHORT = 8
"""A commit of so many entries, and nothing beside them that takes long, may be written on the event loop's thread …"""
LONG_SECONDS = 0.005
"""… unless such commits have been taking so long of late."""
SELDOM = 32
"""After so many of them it is looked whether something is due for the file."""


class Writer:
    """Takes jobs from the event loop's thread and answers there. The lock is held by whoever uses the write connection."""

    def __init__(self, file: StoreFile, loop: AbstractEventLoop) -> None:
        self._file = file
        self._loop = loop
        self._db = file.connect(busy_timeout=0)
        self._ledger = Ledger(self._db)
        self._lock = Lock()
        self._queue: SimpleQueue[Jobs | None] = SimpleQueue()
        self._under_way = 0  # jobs in the queue or in the thread's hands, as the loop knows
        self.telling = 0  # batches whose callers are not all told yet: what these write next is better waited for, and taken in one go
        self._pace = 0.0  # how long a short commit takes of late
        self._written_here = 0
        self._upkeep = Upkeep(file, self._ledger, self._lock)
        self._thread = Thread(target=self._run, name=f"talekeeper-writer-{file.path.name}", daemon=True)
        self._thread.start()

    def take(self, jobs: Jobs) -> None:
        """Accepts jobs; their futures are resolved when they are durable. On the loop's thread."""
        if len(jobs.works) == 1 and (outcomes := self.write_here(jobs.works)):
            _resolve(jobs.futures, outcomes)
        else:
            self._under_way += len(jobs.works)
            self._queue.put(jobs)

    def head(self, story: int, branch: int) -> Head | None:
        """The head from what the writer remembers, which costs next to nothing; None where it does not know or is at work."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._ledger.known_head(story, branch)
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Finishes what was accepted. Blocks."""
        self._queue.put(None)
        self._thread.join()
        self._upkeep.close()
        self._db.close()

    def write_here(self, works: list[Work]) -> list[Any]:
        """The outcome of one short commit, which is durable; none where it is not short, or someone else is at the file."""
        if self._under_way or self._pace > LONG_SECONDS or not self._lock.acquire(blocking=False):
            return []
        try:
            outcomes = self._append_alone(works)
            if not outcomes:
                if not _is_short(works[0]):
                    return []
                self._db.execute("BEGIN IMMEDIATE")
                outcomes = self._write_timed(works)
        except Exception as exc:  # as in _write: it must reach the one who caused it
            if is_busy(exc):
                return []
            outcomes = self._fail(works, exc)
        finally:
            self._lock.release()
        self._written_here += 1
        if self._written_here % SELDOM == 0:
            self._upkeep.wrote()
        return outcomes

    # -- the thread ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._work_off_next():
            pass  # nothing of a work is held while the next is waited for: it may be what was forgotten

    def _work_off_next(self) -> bool:
        """Waits for work and does all that is there. False after the last."""
        works: list[Work] = []
        futures: list[Future[Any]] = []
        taken = self._queue.get()
        while taken is not None:
            works += taken.works
            futures += taken.futures
            if self._queue.empty():
                break
            taken = self._queue.get()
        if works:
            self._work_off(works, futures)
        return taken is not None

    def _work_off(self, works: list[Work], futures: list[Future[Any]]) -> None:
        with self._lock:
            outcomes = self._begin_and_write(works)
        works.clear()  # before anyone goes on: whoever gave us a commit frees it, and Python's garbage collector has less to look for
        erased = [(future, outcome.outcome) for future, outcome in zip(futures, outcomes, strict=True) if type(outcome) is Erased]
        if erased:
            done = [(future, outcome) for future, outcome in zip(futures, outcomes, strict=True) if type(outcome) is not Erased]
            self._upkeep.purge(lambda: self._answer(*zip(*erased, strict=True)))
            futures, outcomes = [future for future, _ in done], [outcome for _, outcome in done]
        self._answer(futures, outcomes)
        self._upkeep.wrote()

    def _begin_and_write(self, works: list[Work]) -> list[Any]:
        """One transaction for all, or one for each after an error."""
        outcomes: list[Any] = []
        try:
            if len(works) == 1 and (outcomes := patiently(self._file.busy_timeout, lambda: self._append_alone(works))):
                return outcomes
            self._begin()
            outcomes = self._write_timed(works)
            for work in works[len(outcomes) :]:
                self._begin()
                outcomes += self._write([work])
        except Exception as exc:  # someone else has the file, or a value cannot be stored
            return outcomes + self._fail(works[len(outcomes) :], exc)
        return outcomes

    def _begin(self) -> None:
        patiently(self._file.busy_timeout, lambda: self._db.execute("BEGIN IMMEDIATE"))

    # -- both ------------------------------------------------------------------------------------------------------------

    def _append_alone(self, works: list[Work]) -> list[Any]:
        """The outcome of one work, if it was a plain append that one statement could make durable; else none."""
        work = works[0]
        if len(works) > 1 or type(work) is not Commit:
            return []
        began = time.perf_counter()
        rev = self._ledger.append_alone(work)
        if rev is None:
            return []
        self._took(time.perf_counter() - began)
        return [rev]

    def _write_timed(self, works: list[Work]) -> list[Any]:
        """The same as `_write`, which one short commit is timed in."""
        began = time.perf_counter()
        outcomes = self._write(works)
        if len(works) == 1 and _is_short(works[0]):
            self._took(time.perf_counter() - began)
        return outcomes

    def _took(self, seconds: float) -> None:
        self._pace += (seconds - self._pace) / 8

    def _write(self, works: list[Work]) -> list[Any]:
        """The outcomes of the works, once they are durable. Empty where several were rolled back because of one."""
        ledger = self._ledger
        try:
            ledger.look()
            outcomes = ledger.apply_all(works)
            ledger.flush()
            self._db.execute("COMMIT")
        except BaseException as exc:  # whatever it is, it must reach the one who caused it, and nobody else
            ledger.forget()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if not isinstance(exc, Exception):
                raise
            return self._fail(works, exc) if len(works) == 1 else []
        return outcomes

    def _fail(self, works: list[Work], exc: Exception) -> list[Any]:
        return [_caused(self._file.error(exc), exc) for _ in works]

    def _answer(self, futures: Sequence[Future[Any]], outcomes: Sequence[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._settle, futures, outcomes)

    def _settle(self, futures: Sequence[Future[Any]], outcomes: Sequence[Any]) -> None:
        self._under_way -= len(futures)
        self.telling += 1
        self._tell(futures, outcomes)

    def _tell(self, futures: Sequence[Future[Any]], outcomes: Sequence[Any]) -> None:
        """Tells the callers, a few in each round of the loop: others get their turn, and what wakes them does not pile up in memory, where
        Python's garbage collector would look for it."""
        if not futures:
            self.telling -= 1
            return
        try:
            _resolve(futures[:TOLD_AT_ONCE], outcomes[:TOLD_AT_ONCE])
        finally:  # also after Ctrl-C: the others wait, and so does whoever closes the store
            self._loop.call_soon(self._tell, futures[TOLD_AT_ONCE:], outcomes[TOLD_AT_ONCE:])


def _is_short(work: Work) -> bool:
    if type(work) is not Commit or len(work.entries) > SHORT:
        return False
    return not (work.index or work.folds or work.gathered or work.erase or work.snapshot)


def _caused(failure: Exception, exc: Exception) -> Exception:
    if failure is not exc:
        failure.__cause__ = exc
    return failure


def _resolve(futures: Sequence[Future[Any]], outcomes: Sequence[Any]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():
            continue  # the caller was cancelled; what was accepted is done
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
