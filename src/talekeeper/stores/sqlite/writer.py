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
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from talekeeper.errors import TalekeeperError
from talekeeper.ports import Commit, Head
from talekeeper.stores.sqlite.file import StoreFile, is_busy, patiently
from talekeeper.stores.sqlite.ledger import Erased, Ledger, Work
from talekeeper.stores.sqlite.upkeep import Upkeep

Job = tuple[Work, "Future[Any]"]
Answer = tuple["Future[Any]", Any]

SHORT = 8
"""A commit of so many entries and nothing else may be written on the event loop's thread …"""
LONG_SECONDS = 0.005
"""… unless such commits have been taking so long of late."""


class Writer:
    """Takes jobs from the event loop's thread and answers there. The lock is held by whoever uses the write connection."""

    def __init__(self, file: StoreFile, loop: AbstractEventLoop) -> None:
        self._file = file
        self._loop = loop
        self._db = file.connect(busy_timeout=0)
        self._ledger = Ledger(self._db)
        self._lock = Lock()
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._under_way = 0  # jobs in the queue or in the thread's hands, as the loop knows
        self._pace = 0.0  # how long a short commit takes of late
        self._upkeep = Upkeep(file, self._ledger, self._lock)
        self._thread = Thread(target=self._run, name=f"talekeeper-writer-{file.path.name}", daemon=True)
        self._thread.start()

    def take(self, jobs: list[Job]) -> None:
        """Accepts jobs; their futures are resolved when they are durable. On the loop's thread."""
        if len(jobs) > 1 or self._under_way or not self._write_here(jobs):
            self._under_way += len(jobs)
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

    def _write_here(self, jobs: list[Job]) -> bool:
        """Writes one short commit at once. False where it is not short, or someone else is at the file."""
        work = jobs[0][0]
        if type(work) is not Commit or len(work.entries) > SHORT or work.index or work.folds or work.erase or work.snapshot:
            return False
        if self._pace > LONG_SECONDS or not self._lock.acquire(blocking=False):
            return False
        try:
            answers = self._append_alone(jobs)
            if not answers:
                self._db.execute("BEGIN IMMEDIATE")
                answers = self._write(jobs)
        except Exception as exc:  # as in _write: it must reach the one who caused it
            if is_busy(exc):
                return False
            answers = self._fail(jobs, exc)
        finally:
            self._lock.release()
        _resolve(answers)
        self._upkeep.wrote()
        return True

    # -- the thread ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        going = True
        while going:
            jobs: list[Job] = []
            taken = self._queue.get()
            while taken is not None:
                jobs += taken
                if self._queue.empty():
                    break
                taken = self._queue.get()
            going = taken is not None
            if jobs:
                self._work_off(jobs)

    def _work_off(self, jobs: list[Job]) -> None:
        with self._lock:
            answers = self._begin_and_write(jobs)
        erased = [(future, outcome.outcome) for future, outcome in answers if type(outcome) is Erased]
        if erased:
            answers = [answer for answer in answers if type(answer[1]) is not Erased]
            self._upkeep.purge(lambda: self._answer(erased))
        self._answer(answers)
        self._upkeep.wrote()

    def _begin_and_write(self, jobs: list[Job]) -> list[Answer]:
        """One transaction for all, or one for each after an error."""
        answers: list[Answer] = []
        try:
            if len(jobs) == 1 and (answers := patiently(self._file.busy_timeout, lambda: self._append_alone(jobs))):
                return answers
            self._begin()
            answers = self._write(jobs)
            for job in jobs[len(answers) :]:
                self._begin()
                answers += self._write([job])
        except Exception as exc:  # someone else has the file, or a value cannot be stored
            return answers + self._fail(jobs[len(answers) :], exc)
        return answers

    def _begin(self) -> None:
        patiently(self._file.busy_timeout, lambda: self._db.execute("BEGIN IMMEDIATE"))

    # -- both ------------------------------------------------------------------------------------------------------------

    def _append_alone(self, jobs: list[Job]) -> list[Answer]:
        """The answer to the one job, if it was a plain append that one statement could make durable; else none."""
        work, future = jobs[0]
        began = time.perf_counter()
        rev = self._ledger.append_alone(work) if type(work) is Commit else None
        if rev is None:
            return []
        self._pace += (time.perf_counter() - began - self._pace) / 8
        return [(future, rev)]

    def _write(self, jobs: list[Job]) -> list[Answer]:
        """The answers to the jobs, once they are durable. Empty where several were rolled back because of one."""
        ledger = self._ledger
        answers: list[Answer] = []
        try:
            ledger.look()
            for work, future in jobs:
                try:
                    answers.append((future, ledger.apply(work)))
                except TalekeeperError as refusal:
                    answers.append((future, refusal))
            ledger.flush()
            self._db.execute("COMMIT")
        except BaseException as exc:  # whatever it is, it must reach the one who caused it, and nobody else
            ledger.forget()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if not isinstance(exc, Exception):
                raise
            return self._fail(jobs, exc) if len(jobs) == 1 else []
        return answers

    def _fail(self, jobs: list[Job], exc: Exception) -> list[Answer]:
        return [(future, _caused(self._file.error(exc), exc)) for _, future in jobs]

    def _answer(self, answers: list[Answer]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._settle, answers)

    def _settle(self, answers: list[Answer]) -> None:
        self._under_way -= len(answers)
        _resolve(answers)


def _caused(failure: Exception, exc: Exception) -> Exception:
    if failure is not exc:
        failure.__cause__ = exc
    return failure


def _resolve(answers: Iterable[Answer]) -> None:
    for future, outcome in answers:
        if future.done():
            continue  # the caller was cancelled; what was accepted is done
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
