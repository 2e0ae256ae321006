"""Many stories told at once, beside bare `executemany` of the same rows.

Each story has a task of its own that appends turn after turn, every one durable before the next, as someone does who tells it. The
ceiling is one connection in WAL mode with synchronous=FULL that writes 1,000 rows per transaction: no tasks, no answers, no views. It
writes the same fields as ours into three tables. The first has an index by which a story can be read again without going through all the
others: this is what ours is held against. The second is a log clustered by story, the quickest to read: each row has a page of its own to
be written. The third has no index, and is the barest there is: in it no story can be found. The fourth is the third again, by tasks that
count the tokens of a line, and then wait until it is durable, with nothing of ours around them: more than its rate nobody reaches whose
appends are awaited one by one.

Short runs of all alternate, and a share is the median of the runs' own, because a machine that others use changes its pace within seconds.
The rate is by the clock on the wall, since waiting for the disk is what a group commit saves. It is that of appends by themselves: the runs
end before stories begin to store what is derived from them.

Then that begins for all stories at the same moment, while one more story is told: how long must its append wait at the most?
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import talekeeper as tk
from talekeeper.bench.report import Bare, Rate, Throughput
from talekeeper.bench.systems import CHUNK, Limit, key, seats
from talekeeper.bench.targets import Progress
from talekeeper.bench.workload import Line, story
from talekeeper.recent import LEAST

RUNS = 11
"""So often they alternate at the most: fewer times where stories would come to store what is derived from them."""
COUNTER = tk.Heuristic()
NUMBERS = count()
PAUSE = 0.01
"""Seconds between two appends of the one more story."""


class Table(Limit):
    """One of the others."""

    async def tell(self, lines: Sequence[Line], volleys: int) -> None:
        """So many lines so many times, each time in one transaction."""
        for _ in range(volleys):
            self.write(list(enumerate(lines)))


class Heap(Table):
    """Rows with all that a turn of ours has, in the order of arrival and nothing beside them: to find a story, all have to be read."""

    name = "the same rows, no index"
    _table = (
        "CREATE TABLE IF NOT EXISTS turns (seq INTEGER PRIMARY KEY, story INTEGER, branch INTEGER, kind TEXT, speaker TEXT, voice TEXT, "
        "text TEXT, channel INTEGER, location TEXT, tokens INTEGER, counter TEXT, time REAL)"
    )
    _insert = (
        "INSERT INTO turns (story, branch, kind, speaker, voice, text, channel, location, tokens, counter, time) "
        "VALUES (?, 1, 'said', ?, ?, ?, ?, ?, ?, ?, ?)"
    )

    @staticmethod
    def _row(story: int, line: Line) -> tuple[Any, ...]:
        return story, line.speaker, line.speaker, line.text, len(line.heard_by), line.location, line.tokens, COUNTER.id, 1_760_000_000.25


class Shelved(Heap):
    """The same, and an index by which the rows of one story are found."""

    name = "the same rows, an index by story"
    _table = f"{Heap._table}; CREATE INDEX IF NOT EXISTS of_story ON turns (story)"


class Clustered(Table):
    """The same rows, each where its story is."""

    name = "the same rows, clustered by story"
    _table = (
        "CREATE TABLE IF NOT EXISTS turns (pos INTEGER PRIMARY KEY, kind TEXT, speaker TEXT, voice TEXT, text TEXT, channel INTEGER, "
        "location TEXT, tokens INTEGER, counter TEXT, time REAL)"
    )
    _insert = "INSERT INTO turns VALUES (?, 'said', ?, ?, ?, ?, ?, ?, ?, ?)"

    @staticmethod
    def _row(story: int, line: Line) -> tuple[Any, ...]:
        row = Heap._row(story, line)
        return story << 32 | next(NUMBERS), *row[1:]


class Awaited(Heap):
    """The rows without an index, each told by a task that counts its tokens and waits until it is durable; all that wait go out in one
    transaction. The least that there can be around a group commit."""

    name = "the same rows, no index, awaited and counted"

    async def open(self, path: Path) -> None:
        await super().open(path)
        self._rows: list[tuple[int, Line]] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def tell(self, lines: Sequence[Line], volleys: int) -> None:
        await asyncio.gather(*(self._told(number, line, volleys) for number, line in enumerate(lines)))

    async def _told(self, number: int, line: Line, turns: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(turns):
            if not self._rows:
                loop.call_soon(self._commit)
            self._rows.append((number, line))
            self._waiting.append(durable := loop.create_future())
            await durable

    def _commit(self) -> None:
        rows, waiting, self._rows, self._waiting = self._rows, self._waiting, [], []
        self.write(rows)
        for durable in waiting:
            durable.set_result(None)

    @staticmethod
    def _row(story: int, line: Line) -> tuple[Any, ...]:
        row = Heap._row(story, line)
        return *row[:6], COUNTER.count(line.text), *row[7:]


async def throughput(directory: Path, stories: int, volleys: int, seed: int, progress: Progress) -> Throughput:
    """How many appends come through per second, ours and the ceiling's, when every story appends `volleys` times in a run."""
    lines = story(max(stories, CHUNK), seed)
    async with tk.open(str(directory / "crowd.db"), counter=COUNTER) as keeper, AsyncExitStack() as opened:
        tables: dict[Table, _Clock] = {kind(): _Clock(CHUNK * volleys) for kind in (Shelved, Clustered, Heap, Awaited)}
        for table in tables:
            await table.open(directory / f"{type(table).__name__}.db")
            opened.push_async_callback(table.close)
        progress(f"opening {stories:,} stories")
        crowd = [await keeper.story(key(number), seats=seats()) for number in range(stories + 1)]
        one_more = crowd.pop()
        ours = _Clock(stories * volleys)
        await _tell_all(crowd, lines, 1)  # warms up, as one transaction of the others
        for table in tables:
            await table.tell(lines[:CHUNK], 1)
        runs = max(1, min(RUNS, (LEAST - 2) // volleys))
        for number in range(runs):
            progress(f"{stories:,} stories at once: run {number + 1} of {runs}")
            await ours.time(_tell_all(crowd, lines, volleys))
            for table, clock in tables.items():
                await clock.time(table.tell(lines[:CHUNK], volleys))
        progress(f"{stories:,} stories store what they know: how long does one more wait?")
        waited = await _longest_wait(one_more, crowd, lines, until=LEAST + volleys)
    bare = tuple(Bare(table=table.name, rate=clock.rate(), share=ours.share_of(clock)) for table, clock in tables.items())
    return Throughput(stories=stories, ours=ours.rate(), bare=bare, waited_ms=waited * 1e3)


async def _longest_wait(one_more: tk.Story, crowd: Sequence[tk.Story], lines: Sequence[Line], until: int) -> float:
    """The longest that an append of one more story took, in seconds, while every story of the crowd was told until it had so many turns."""
    telling = asyncio.create_task(_tell_all(crowd, lines, max(1, until - crowd[0].head)))
    longest = 0.0
    while not telling.done():
        began = time.perf_counter()
        await one_more.append(lines[0].speaker, lines[0].text)
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(PAUSE)
    await telling
    return longest


async def _tell_all(crowd: Sequence[tk.Story], lines: Sequence[Line], turns: int) -> None:
    await asyncio.gather(*(_tell(each, line, turns) for each, line in zip(crowd, lines, strict=False)))


async def _tell(each: tk.Story, line: Line, turns: int) -> None:
    for _ in range(turns):
        await each.append(line.speaker, line.text, heard_by=line.heard_by, location=line.location)


class _Clock:
    """Collects how long `rows` rows took, by the wall and in CPU time."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._spent: list[tuple[float, float]] = []

    async def time(self, work: Awaitable[None]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        await work
        self._spent.append((time.perf_counter() - wall, time.process_time() - cpu))

    def rate(self) -> Rate:
        wall, cpu = (median(spent) for spent in zip(*self._spent, strict=True))
        return Rate(rows_per_second=self._rows / wall, cpu_us=cpu / self._rows * 1e6)

    def share_of(self, other: _Clock) -> float:
        """How fast it was beside the other in the same run."""
        pairs = zip(self._spent, other._spent, strict=True)
        return median(theirs / ours * self._rows / other._rows for (ours, _), (theirs, _) in pairs)
