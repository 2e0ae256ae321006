"""The face of the SQLite store: the port's methods, on one event loop.

Writes made in the same round of the event loop are handed to the writer's thread together, and so are those of callers who were waiting
for the same batch; those of a story that is alone with the store are made at once, without a turn of the loop. What takes a few
microseconds is read right here; larger reads have a thread and a connection of their own, so that the loop goes on.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from asyncio import get_running_loop
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any, TypeVar

from talekeeper import rim
from talekeeper.errors import StoreClosed, TalekeeperError
from talekeeper.model import MemoryKey
from talekeeper.ports import Commit, Found, Head, Postings, Read, StoryRecord
from talekeeper.stores.sqlite import reads
from talekeeper.stores.sqlite.file import StoreFile, is_busy, open_file
from talekeeper.stores.sqlite.ledger import Work
from talekeeper.stores.sqlite.writer import Jobs, Writer

T = TypeVar("T")

HELD_SECONDS = 0.005
"""So long a story that writes alone may keep the event loop from others. Until then its commits return without a turn of the loop, which
would cost as much as the commit itself."""

FEW_ROWS = 128
"""Up to so many, a read costs less than the way to another thread and back."""


class SqliteStore:
    """Stories in one file. Get one from `SqliteStore.open`, and `close` it in the end."""

    def __init__(self, file: StoreFile, loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor, writer: Writer | None) -> None:
        self._file = file
        self._loop = loop
        self._thread = thread
        self._writer = writer
        self._near = file.connect(busy_timeout=0)
        self._far = file.connect()
        self._works: list[Work] = []  # of this round of the loop
        self._futures: list[asyncio.Future[Any]] = []  # for their outcomes
        self._closing: asyncio.Task[None] | None = None
        self._alone = False  # whether in the last round one story wrote, and no other
        self._held, self._story = 0.0, 0  # since when the one that writes at once has kept the loop waiting; 0 after its turn

    @classmethod
    async def open(
        cls, path: str | os.PathLike[str], *, durable: bool = True, busy_timeout: float = 5.0, read_only: bool = False
    ) -> SqliteStore:
        """The store in that file, which is made if it is not there.

        `durable=False` may lose the newest commits when the machine loses power (not when the process dies). `busy_timeout`: seconds to
        wait for other processes before `StoreBusy`. A file that cannot be written is opened for reading, and refuses writes."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="talekeeper-reader")

        def start() -> SqliteStore:
            file = open_file(Path(path), durable=durable, busy_timeout=busy_timeout, read_only=read_only)
            writer = None
            try:
                writer = None if file.read_only else Writer(file, loop)
                return cls(file, loop, thread, writer)
            except sqlite3.Error as exc:
                if writer is not None:
                    writer.close()
                raise file.error(exc) from exc

        opening = loop.run_in_executor(thread, start)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # a thread cannot be stopped half-way: what it opens is closed again
            with suppress(TalekeeperError):
                await (await opening).close()
            raise
        except BaseException:
            thread.shutdown(wait=False)
            raise

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only, by wish or because the file cannot be written."""
        return self._writer is None

    async def create(self, key: MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        found = await self.load(key)
        if found is not None:
            return found
        record: StoryRecord = await self._submit(lambda ledger: ledger.create(key, config))
        return record

    async def load(self, key: MemoryKey) -> StoryRecord | None:
        return await self._ask(partial(reads.load_story, key=key), near=True)

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        return await self._ask(partial(reads.read_keys, tenant_id=tenant_id), near=False)

    async def head(self, story: int, branch: int) -> Head:
        if self._closing is not None or get_running_loop() is not self._loop:
            self._refuse()
        if self._writer is not None and (head := self._writer.head(story, branch)) is not None:
            return head
        try:
            return reads.read_head(self._near, story, branch)
        except sqlite3.Error:
            return await self._ask(partial(reads.read_head, story=story, branch=branch), near=False)

    async def read(self, request: Read) -> Found:
        return await self._ask(partial(reads.fetch, request=request), near=reads.weight(request) <= FEW_ROWS)

    async def search(self, story: int, terms: Sequence[str]) -> list[list[Postings]]:
        return await self._ask(partial(reads.search, story=story, terms=terms), near=False)

    async def write(self, commit: Commit) -> int:
        if self._closing is not None or get_running_loop() is not self._loop:
            self._refuse()
        outcomes = self._write_at_once(commit)
        if not outcomes:
            rev: int = await self._submit(commit)
            return rev
        (outcome,) = outcomes
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    async def delete(self, key: MemoryKey) -> bool:
        gone: bool = await self._submit(lambda ledger: ledger.delete(key))
        return gone

    async def close(self) -> None:
        if self._loop.is_closed():  # nobody is left there who could wait for anything
            if self._closing is None:
                await asyncio.to_thread(self._let_go)
                self._thread.shutdown(wait=False)
            return
        rim.own_loop(self._loop)
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._hand_over()
        await self._loop.run_in_executor(self._thread, self._let_go)
        self._thread.shutdown(wait=False)
        while self._writer is not None and self._writer.telling:  # noqa: ASYNC110 - a few rounds at most
            await asyncio.sleep(0)

    def _let_go(self) -> None:
        for db in (self._near, self._far):
            db.close()
        if self._writer is not None:
            self._writer.close()

    def _write_at_once(self, commit: Commit) -> list[Any]:
        """The outcome of a commit of a story that writes alone, durable without a turn of the loop; none where others write or wait."""
        if not self._alone or self._works or self._writer is None or self._closing is not None:
            return []
        now = time.perf_counter()
        if not self._held:
            self._loop.call_soon(self._hand_over)  # first: whatever interrupts us, the turn ends
            self._held, self._story = now, commit.story
        elif commit.story != self._story or now - self._held > HELD_SECONDS:
            return []
        return self._writer.write_here([commit])

    def _submit(self, work: Work) -> asyncio.Future[Any]:
        """A future for the outcome of a write; it goes out with all others of this round of the loop."""
        if self._closing is not None or get_running_loop() is not self._loop:
            self._refuse()
        if self._writer is None:
            raise self._file.refusal()
        works, loop = self._works, self._loop
        if not works and not self._held:
            loop.call_soon(self._hand_over)
        works.append(work)
        future: asyncio.Future[Any] = asyncio.Future(loop=loop)
        self._futures.append(future)
        return future

    def _hand_over(self) -> None:
        """Runs at the end of a round of the loop, and gives the writer everything that waits. While callers of an earlier batch are still
        being told, it waits a round longer, so that what they write next comes along. Who wrote alone may write at once from now on.

        (Two halves of a crowd, one written while the other renders, would take longer: both need Python's one lock all the time.)"""
        if self._works and self._writer is not None and self._writer.telling and self._closing is None:
            self._loop.call_soon(self._hand_over)
            return
        only = self._works[0] if len(self._works) == 1 else None
        same = type(only) is Commit and only.story == self._story  # as the one that wrote at once, until its time was up
        self._alone = len(self._works) + (bool(self._held) and not same) == 1
        self._held = 0.0
        if self._works and self._writer is not None:
            jobs = Jobs(self._works, self._futures)
            self._works, self._futures = [], []
            self._writer.take(jobs)

    def _refuse(self) -> None:
        """Says why nothing can be asked of the store: it is closed, or was opened in another event loop."""
        if self._closing is not None:
            raise _closed(self._file)
        rim.own_loop(self._loop)

    async def _ask(self, question: Callable[[sqlite3.Connection], T], *, near: bool) -> T:
        """The answer, from right here or from the reader's thread; the latter waits where the file is locked."""
        if self._closing is not None or get_running_loop() is not self._loop:
            self._refuse()
        try:
            if near:
                try:
                    return question(self._near)
                except sqlite3.OperationalError as exc:
                    if not is_busy(exc):
                        raise
            return await self._loop.run_in_executor(self._thread, question, self._far)
        except (sqlite3.Error, UnicodeError, OverflowError, JSONDecodeError) as exc:
            raise self._file.error(exc) from exc


def _closed(file: StoreFile) -> StoreClosed:
    return StoreClosed(f"the store {str(file.path)!r} was closed")
