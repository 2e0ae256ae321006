"""What one turn costs: a durable append and an 8k-token context, beside the limit L and the peers, in one run.

How it is measured:

- CPU time of the whole process (`time.process_time`: every thread, user and system), because the time that a disk takes to sync says
  more about the neighbours than about us. It is compared in ratios to L only.
- Each system has a file of its own at each length of story. Small batches of turns alternate between all of them, so that a noisy minute
  hits everyone. The cost is the median over the batches; the ratio is the median over the rounds of a batch to L's batch of the same
  round (two copies of L came out within 0.07 of each other where this was written). The mean, with rare things in it, stands beside.
- A batch ends when the system has settled and the process is idle: folding, summaries and checkpoints in the background belong to the
  turns that caused them.
- Bytes are what the process asked the kernel to write (`wchar` in /proc/self/io, Linux only), from the first measured turn until the
  file is closed, so that the last checkpoint of the write-ahead log is in; divided by the turns. Whatever the disk does, this repeats.
  L and Talekeeper append `written_turns` in all for this, so that what is written seldom, and much of it, has its due share.
- Every write-ahead log has its working size before the clock starts, as in a process that has been up for a while.
- Stories grow while they are measured, by `rounds * batch` turns and then up to `written_turns`, but not by more than their own length:
  a short one is not measured in as many rounds.
- Peers come after us, and are not even imported before: hundreds of megabytes of other people's modules and half-used memory would slow us
  down and not L, which hardly needs any. They alternate with L in a third of the rounds, since some of them are slow.
- What it takes to resume depends on where a story stands between two checkpoints and two cuts; L and Talekeeper are told on by a few turns
  between one resumption and the next, and the median counts.
- A peer gets at most `batch_seconds` per batch and stories of at most `peer_turns`; what is not measured shows as "–".
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from talekeeper.bench.crowd import throughput
from talekeeper.bench.footprint import footprint
from talekeeper.bench.peers import PEERS
from talekeeper.bench.report import Point, Report
from talekeeper.bench.systems import Limit, System, Talekeeper
from talekeeper.bench.targets import Placed, Progress, machine
from talekeeper.bench.workload import MASTER, Line, story

_LOG_FRAMES = 1_000
_WARM_TURNS = 3
_PEER_ROUNDS = 3
_IDLE_SECONDS, _IDLE_CPU = 0.002, 0.0005
_TOLD_ON = 29
"""So many turns lie between two resumptions: the number is prime, so that they stand at different places of whatever comes in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Placed):
    """What to measure, and how long to look."""

    sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    rounds: int = 48
    batch: int = 50
    written_turns: int = 24_000
    peers: bool = True
    peer_turns: int = 10_000
    batch_seconds: float = 0.5
    resumes: int = 9
    stories: int = 1_000
    volleys: int = 5
    starts: int = 7
    seed: int = 7

    @classmethod
    def quick(cls) -> Options:
        """A look within 20 seconds: short stories, few repetitions, no peers."""
        return cls(sizes=(100, 1_000), rounds=4, batch=25, written_turns=200, peers=False, resumes=3, stories=200, volleys=3, starts=3)


def run(options: Options, progress: Progress) -> Report:
    """Measure everything. `progress` is told, a line at a time, what is going on."""
    return asyncio.run(_run(options, progress))


async def _run(options: Options, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="talekeeper-bench-", dir=options.directory) as directory:
        points = await measure([Limit, Talekeeper], options, Path(directory), progress)
        crowd = await throughput(Path(directory), options.stories, options.volleys, options.seed, progress)
        weight = footprint(Path(directory), options.starts, progress)
        peers, skipped = find_peers() if options.peers else ([], {})
        points += await _beside(peers, options, Path(directory), progress)
    return Report(
        points=points, limit=Limit.name, ours=Talekeeper.name, throughput=crowd, footprint=weight,
        skipped=skipped, machine=machine(), options=options.to_json(),
    )  # fmt: skip


def find_peers() -> tuple[list[type[System]], dict[str, str]]:
    """The peers that can be measured here, and why each of the others cannot."""
    peers: list[type[System]] = []
    skipped: dict[str, str] = {}
    for peer in PEERS:
        try:
            peer()
        except ImportError:
            skipped[peer.name] = f"to compare, install {peer.needs} (or the extra `bench`)"
        else:
            peers.append(peer)
    return peers, skipped


async def _beside(peers: Sequence[type[System]], options: Options, directory: Path, progress: Progress) -> tuple[Point, ...]:
    """The peers at the lengths of story that they can be asked for, in turn with the limit."""
    sizes = tuple(size for size in options.sizes if size <= options.peer_turns)
    if not peers or not sizes:
        return ()
    with tempfile.TemporaryDirectory(dir=directory) as aside:
        fewer = replace(options, sizes=sizes, rounds=-(-options.rounds // _PEER_ROUNDS), written_turns=0)
        points = await measure([Limit, *peers], fewer, Path(aside), progress)
    return tuple(point for point in points if point.system != Limit.name)


async def measure(systems: Sequence[type[System]], options: Options, directory: Path, progress: Progress) -> tuple[Point, ...]:
    """Every system at every length of story, batch by batch in turn."""
    longest = max(options.rounds * (options.batch + 1), options.written_turns)
    lines = story(max(options.sizes) + _WARM_TURNS + longest + options.resumes * _TOLD_ON + 1, options.seed)
    cells = [_Cell(kind, size, directory / f"{number}-{size}.db", lines) for size in options.sizes for number, kind in enumerate(systems)]
    order = random.Random(options.seed)
    async with AsyncExitStack() as opened:
        for cell in cells:
            progress(f"{cell.kind.name}: a story of {cell.turns:,} turns")
            opened.push_async_callback(cell.close)
            await cell.prepare()
        gc.collect()
        gc.freeze()  # what one system has on the heap is not collected at another's expense
        for number in range(options.rounds):
            due = [cell for cell in cells if cell.is_due]
            for index, cell in enumerate(order.sample(due, len(due))):  # so that nobody always follows the same neighbour
                progress(f"round {number + 1} of {options.rounds}: {index + 1} of {len(due)}, {cell.kind.name} at {cell.turns:,} turns")
                await cell.batch(number, min(options.batch, max(1, cell.turns // 20)), options.batch_seconds)
        for cell in cells:
            if not cell.kind.needs:
                progress(f"bytes: {cell.kind.name} at {cell.turns:,} turns")
                await cell.lengthen(min(options.written_turns, cell.turns))
    for number in range(options.resumes):
        progress(f"resume {number + 1} of {options.resumes}")
        for cell in order.sample(cells, len(cells)):
            await cell.resume()
    gc.unfreeze()
    limits = {cell.turns: cell for cell in cells if cell.kind is Limit}
    return tuple(cell.point(limits[cell.turns]) for cell in cells)


@dataclass(slots=True)
class _Cell:
    """One system at one length of story, with what was measured so far."""

    kind: type[System]
    turns: int
    path: Path
    lines: list[Line]
    system: System = field(init=False)
    is_open: bool = False
    cpu: dict[int, tuple[float, int]] = field(default_factory=dict)
    """For each round the time and the turns that it was for."""
    written: int = 0
    extra: int = 0
    resumed: list[float] = field(default_factory=list)
    context_chars: int = 0
    next: int = 0

    async def prepare(self) -> None:
        """A story of the right length, opened anew, with its log at working size and a few turns behind it."""
        await self._open()
        await self.system.prefill(self.lines[: self.turns])
        await self.close()
        self.next = self.turns
        await self._open()
        await self._turns(_WARM_TURNS, seconds=60)
        _grow_log(self.path)
        await self._check()
        self.written = 0

    @property
    def is_due(self) -> bool:
        """Whether it takes part in another round: the story is not twice as long as it was."""
        return self.next < 2 * self.turns

    async def batch(self, number: int, count: int, seconds: float) -> None:
        """One turn to come back to the processor's caches, then some on the clock; the bytes of all of them count."""
        written = _written()
        await self._turns(1, seconds)
        await _idle()
        cpu = time.process_time()
        done = await self._turns(count, seconds)
        self.cpu[number] = await _idle() - cpu, done
        self.written += _written() - written

    async def lengthen(self, count: int) -> None:
        """Append until so many turns have been written since the clock started: contexts write nothing, and are left out."""
        written, end = _written(), self.turns + _WARM_TURNS + count
        while self.next < end:
            await self.system.append(self.lines[self.next])
            self.next += 1
            self.extra += 1
        await self.system.settle()
        self.written += _written() - written

    async def close(self) -> None:
        """Close the file if it is open; the checkpoint that this makes belongs to the turns before."""
        if self.is_open:
            self.is_open = False
            written = _written()
            await self.system.close()
            self.written += _written() - written

    async def resume(self) -> None:
        """Open the file with a new object and get the first context, on the clock; then a few turns on."""
        gc.collect()
        system, cpu = self.kind(), time.process_time()
        await system.open(self.path)
        try:
            await system.context(MASTER)
            self.resumed.append(await _idle() - cpu)
            for line in () if self.kind.needs else self.lines[self.next : self.next + _TOLD_ON]:
                await system.append(line)
                self.next += 1
        finally:
            await system.close()

    def point(self, limit: _Cell) -> Point:
        """The result, with its ratio to the limit's."""
        turns = sum(done for _, done in self.cpu.values())
        costs = {number: cpu / done for number, (cpu, done) in self.cpu.items()}
        bare = {number: cpu / done for number, (cpu, done) in limit.cpu.items()}
        return Point(
            system=self.kind.name,
            turns=self.turns,
            cpu_us=median(costs.values()) * 1e6,
            cpu_ratio=median(cost / bare[number] for number, cost in costs.items() if number in bare),
            cpu_mean_us=sum(cpu for cpu, _ in self.cpu.values()) / turns * 1e6,
            bytes_written=self.written / (turns + len(self.cpu) + self.extra) if _written() else None,
            resume_us=median(self.resumed) * 1e6,
            context_chars=self.context_chars,
            measured=turns,
        )

    async def _open(self) -> None:
        self.system = self.kind()
        await self.system.open(self.path)
        self.is_open = True

    async def _turns(self, count: int, seconds: float) -> int:
        """Up to `count` turns within that time, one at least: append a line, then the context of whoever speaks next."""
        deadline, start = time.perf_counter() + seconds, self.next
        while self.next < start + count:
            line, answer = self.lines[self.next], self.lines[self.next + 1]
            self.next += 1
            await self.system.append(line)
            await self.system.context(answer.speaker)
            if time.perf_counter() > deadline:
                break
        await self.system.settle()
        return self.next - start

    async def _check(self) -> None:
        """A system that does not show what it was given has not done the work."""
        newest = self.lines[self.next - 1]
        shown = self.system.show(await self.system.context(newest.speaker))
        words = max(re.split("[\"']", newest.text), key=len)  # some contexts are shown with their quotes escaped
        if words not in shown:
            raise RuntimeError(f"{self.kind.name} does not show the newest turn, {words!r}, in its context of {len(shown):,} characters")
        self.context_chars = len(shown)


async def _idle() -> float:
    """The CPU time spent so far, read when no thread has anything left to do."""
    for _ in range(1_000):
        spent = time.process_time()
        await asyncio.sleep(_IDLE_SECONDS)
        if time.process_time() - spent < _IDLE_CPU:
            break
    return spent


def _written() -> int:
    """How many bytes this process has asked the kernel to write; 0 where nobody counts them."""
    try:
        counters = Path("/proc/self/io").read_text()
    except OSError:
        return 0
    return int(next(line.split()[1] for line in counters.splitlines() if line.startswith("wchar:")))


def _grow_log(path: Path) -> None:
    """Give the write-ahead log of an open database its working size, by rewriting one header field as it is."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            return
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA synchronous = OFF")
        for _ in range(_LOG_FRAMES):
            db.execute(f"PRAGMA user_version = {version}")
        db.execute("PRAGMA wal_checkpoint(RESTART)")
