"""Many stories told at once: each appends and waits until its turn is durable, beside bare `executemany` of the same rows.

The ceiling is one connection in WAL mode with synchronous=FULL that writes 1,000 rows per transaction: no tasks, no answers, no views.
Volleys of both alternate; the medians count. The rate is by the clock on the wall, since waiting for the disk is what a group commit saves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import talekeeper as tk
from talekeeper.bench.report import Rate, Throughput
from talekeeper.bench.systems import CHUNK, Limit, key, seats
from talekeeper.bench.workload import Line, story


async def throughput(directory: Path, stories: int, volleys: int, seed: int, progress: Callable[[str], None]) -> Throughput:
    """How many appends come through per second, ours and the ceiling's."""
    lines = story(max(stories, CHUNK), seed)
    async with tk.open(str(directory / "crowd.db"), counter=tk.Heuristic()) as keeper, AsyncExitStack() as opened:
        bare = Limit()
        await bare.open(directory / "ceiling.db")
        opened.push_async_callback(bare.close)
        progress(f"opening {stories:,} stories")
        crowd = [await keeper.story(key(number), seats=seats()) for number in range(stories)]
        ours, ceiling = _Clock(stories), _Clock(CHUNK)
        for number in range(volleys + 1):  # the first volley warms up and does not count
            progress(f"{stories:,} stories at once: volley {number} of {volleys}")
            await ours.time(_volley(crowd, lines[:stories]))
            await ceiling.time(_transaction(bare, list(enumerate(lines[:CHUNK]))))
    return Throughput(stories=stories, ours=ours.rate(), ceiling=ceiling.rate())


async def _volley(crowd: Sequence[tk.Story], lines: Sequence[Line]) -> None:
    await asyncio.gather(
        *(
            each.append(line.speaker, line.text, heard_by=line.heard_by, location=line.location)
            for each, line in zip(crowd, lines, strict=True)
        )
    )


async def _transaction(bare: Limit, rows: list[tuple[int, Line]]) -> None:
    bare.write(rows)


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
        wall, cpu = (median(spent) for spent in zip(*self._spent[1:], strict=True))
        return Rate(rows_per_second=self._rows / wall, cpu_us=cpu / self._rows * 1e6)
