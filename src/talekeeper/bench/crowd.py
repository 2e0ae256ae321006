"""Many stories told at once, beside bare `executemany` of the same rows.

Each story has a task of its own that appends turn after turn, every one durable before the next, as someone does who tells it. The
ceiling is one connection in WAL mode with synchronous=FULL that writes 1,000 rows per transaction: no tasks, no answers, no views. Runs of
both alternate; the medians count. The rate is by the clock on the wall, since waiting for the disk is what a group commit saves.
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

RUNS = 3


async def throughput(directory: Path, stories: int, volleys: int, seed: int, progress: Callable[[str], None]) -> Throughput:
    """How many appends come through per second, ours and the ceiling's, when every story appends `volleys` times in a run."""
    lines = story(max(stories, CHUNK), seed)
    async with tk.open(str(directory / "crowd.db"), counter=tk.Heuristic()) as keeper, AsyncExitStack() as opened:
        bare = Limit()
        await bare.open(directory / "ceiling.db")
        opened.push_async_callback(bare.close)
        progress(f"opening {stories:,} stories")
        crowd = [await keeper.story(key(number), seats=seats()) for number in range(stories)]
        ours, ceiling = _Clock(stories * volleys), _Clock(CHUNK * volleys)
        await _tell_all(crowd, lines, 1)  # warms up, as one transaction of the other
        await _write(bare, lines[:CHUNK], 1)
        for number in range(RUNS):
            progress(f"{stories:,} stories at once: run {number + 1} of {RUNS}")
            await ours.time(_tell_all(crowd, lines, volleys))
            await ceiling.time(_write(bare, lines[:CHUNK], volleys))
    return Throughput(stories=stories, ours=ours.rate(), ceiling=ceiling.rate())


async def _tell_all(crowd: Sequence[tk.Story], lines: Sequence[Line], turns: int) -> None:
    await asyncio.gather(*(_tell(each, line, turns) for each, line in zip(crowd, lines, strict=False)))


async def _tell(each: tk.Story, line: Line, turns: int) -> None:
    for _ in range(turns):
        await each.append(line.speaker, line.text, heard_by=line.heard_by, location=line.location)


async def _write(bare: Limit, lines: Sequence[Line], transactions: int) -> None:
    for _ in range(transactions):
        bare.write(list(enumerate(lines)))


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
