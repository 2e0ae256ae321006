"""The one who writes: commits of all stories, as many as are waiting, in one transaction.

The writer's thread takes everything that was handed over since it last looked, lets the ledger check and write it, commits once and
then tells all callers at once. A refused commit does not disturb the others of its batch. After any other error the batch is rolled
back and its commits are tried one by one, so that only the guilty one fails.
"""

from __future__ import annotations

import sqlite3
from asyncio import AbstractEventLoop, Future
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from talekeeper.errors import TalekeeperError
from talekeeper.stores.sqlite.file import StoreFile
from talekeeper.stores.sqlite.ledger import Erased, Ledger, Work
from talekeeper.stores.sqlite.upkeep import Upkeep

Job = tuple[Work, "Future[Any]"]
Answer = tuple["Future[Any]", Any]


class Writer:
    """Takes jobs from the event loop's thread and answers there. The lock is held by whoever uses the write connection."""

    def __init__(self, file: StoreFile, loop: AbstractEventLoop) -> None:
        self._file = file
        self._loop = loop
        self._db = file.connect()
        self._ledger = Ledger(self._db)
        self._lock = Lock()
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._upkeep = Upkeep(file, self._ledger, self._lock)
        self._thread = Thread(target=self._run, name=f"talekeeper-writer-{file.path.name}", daemon=True)
        self._thread.start()

    def take(self, jobs: list[Job]) -> None:
        """Accepts jobs; their futures are resolved when they are durable."""
        self._queue.put(jobs)

    def close(self) -> None:
        """Finishes what was accepted. Blocks."""
        self._queue.put(None)
        self._thread.join()
        self._upkeep.close()
        self._db.close()

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
            answers = self._write(jobs)
        erased = [(future, outcome.outcome) for future, outcome in answers if type(outcome) is Erased]
        if erased:
            answers = [answer for answer in answers if type(answer[1]) is not Erased]
            self._upkeep.purge(lambda: self._answer(erased))
        self._answer(answers)
        self._upkeep.wrote(len(jobs))

    def _write(self, jobs: list[Job]) -> list[Answer]:
        """One transaction for all, or one for each after an error."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:
            return [(future, self._failure(exc)) for _, future in jobs]
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
        except Exception as exc:  # whatever it is, it must reach the one who caused it, and nobody else
            self._roll_back()
            if len(jobs) == 1:
                return [(jobs[0][1], self._failure(exc))]
            return [answer for job in jobs for answer in self._write([job])]
        return answers

    def _roll_back(self) -> None:
        self._ledger.forget()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _failure(self, exc: Exception) -> Exception:
        failure = self._file.error(exc)
        if failure is not exc:
            failure.__cause__ = exc
        return failure

    def _answer(self, answers: list[Answer]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Iterable[Answer]) -> None:
    for future, outcome in answers:
        if future.done():
            continue  # the caller was cancelled; what was accepted is done
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
