"""The server under load: many stories played at once against one process, over real HTTP, and nothing may be lost.

Each story has a past (see `pasts`), a person (the benchmark) and companions, told by the built-in storyteller. A round is begun, the
person's turn is waited for, one of the choices is taken, and the round is followed to its end on the stream of events. Nobody waits
between two rounds unless `think` says so, so the process is never idle: turns per second are what it can do, and the times are those
under full load.

Afterwards every log is read and compared with what was done and with what the streams have told, turn by turn. The memory of the process
is read all the while (Linux only); it is flat where the last fifth of the run has no more than the second fifth, when caches are warm.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any, ClassVar

from talekeeper.bench.pasts import give_pasts
from talekeeper.bench.players import TENANT, Diary, Player
from talekeeper.bench.targets import Judged, Placed, Progress, Target, machine
from talekeeper.table import packs

LONG_ENOUGH = 120.0
"""Seconds below which nothing is said of whether the memory is flat: caches are still filling."""
SAMPLES = 200
STORIES = "stories.db"
_UNSEEN = "not measured: needs Linux's /proc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Placed):
    """How many stories are played, for how long, and how long people think before they answer."""

    stories: int = 100
    seconds: float = 600.0
    think: float = 0.0
    past: int = 100
    """How many rounds were played in each story before."""
    party: int = 2
    seed: int = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds: how long half of them took at most, and how long 99 of 100."""

    count: int
    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        some = [*seconds, *seconds] or [0.0, 0.0]
        cuts = quantiles(some, n=100, method="inclusive")
        return cls(count=len(seconds), p50=cuts[49], p99=cuts[98])


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Judged):
    """The result of `talekeeper bench server`."""

    benchmark: ClassVar = "server"
    seconds: float
    rounds: int
    turns: int
    lost: int
    requests: Times
    answers: Times
    errors: tuple[str, ...]
    memory: tuple[tuple[float, float], ...]
    """Pairs of seconds since the beginning and megabytes."""
    cpu: float | None

    @property
    def growth(self) -> float | None:
        """The memory in the last fifth of the run by that in the second fifth; None where it was too short to say."""
        if not self.memory or self.seconds < LONG_ENOUGH:
            return None
        early = [size for at, size in self.memory if 0.2 <= at / self.seconds < 0.4]
        late = [size for at, size in self.memory if at / self.seconds >= 0.8]
        return fmean(late) / fmean(early) if early and late else None

    def targets(self) -> list[Target]:
        note = f"needs {LONG_ENOUGH:g} seconds and Linux's /proc" if self.growth is None else ""
        return [
            Target(name="errors", sense="<=", bound=0, value=len(self.errors)),
            Target(name="lost turns", sense="<=", bound=0, value=self.lost),
            Target(name="every story was played, rounds per story", sense=">=", bound=1, value=self.rounds / self.options["stories"]),
            Target(name="memory, last fifth by second fifth", sense="<=", bound=1.1, value=self.growth, unit="x", note=note),
            Target(name="99 of 100 requests are answered within", sense="<=", bound=2, value=self.requests.p99, unit=" s"),
        ]

    def measured(self) -> dict[str, Any]:
        return {**asdict(self), "turns_per_second": self.turns / self.seconds, "growth": self.growth}

    def table(self) -> str:
        requests, sizes, options = self.requests, [size for _, size in self.memory], self.options
        spent = f"{(self.cpu or 0) / self.seconds:.2f} cores, {(self.cpu or 0) / max(1, self.turns) * 1e3:.1f} ms a turn"
        rows = [
            ("stories at once", f"{options['stories']:,}, for {self.seconds:,.0f} s, each behind {options.get('past', 0):,} rounds"),
            ("turns", f"{self.turns:,} in {self.rounds:,} rounds: {self.turns / self.seconds:,.1f} a second"),
            ("from an answer to the end of its round", f"p50 {self.answers.p50:.2f} s, p99 {self.answers.p99:.2f} s"),
            ("a request", f"p50 {requests.p50 * 1e3:,.0f} ms, p99 {requests.p99 * 1e3:,.0f} ms ({requests.count:,} of them)"),
            ("memory of the process", f"{sizes[0]:,.0f} MB at first, {sizes[-1]:,.0f} at last" if sizes else _UNSEEN),
            ("processor", spent if self.cpu is not None else _UNSEEN),
        ]  # fmt: skip
        parts = ["\n".join(f"  {name:<40} {value}" for name, value in rows)]
        if self.errors:
            parts.append("\n".join(["Errors", *(f"  {error}" for error in self.errors[:10])]))
        return "\n\n".join([*parts, self.verdicts()]) + "\n"


def run(options: Options, progress: Progress) -> Report:
    """Starts a server, plays, and looks back. `progress` is told, a line at a time, what is going on."""
    return asyncio.run(_run(options, progress))


async def _run(options: Options, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="talekeeper-bench-", dir=options.directory) as directory:
        tokens = [f"tk_{secrets.token_urlsafe(32)}" for _ in range(options.stories)]
        if options.past:
            players = [_player(options, "", *one) for one in enumerate(tokens)]
            await give_pasts(Path(directory) / STORIES, players, options.past, progress)
        process, url = await _start(Path(directory), tokens)
        try:
            return await _play(options, process.pid, [_player(options, url, *one) for one in enumerate(tokens)], progress)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _start(directory: Path, tokens: Sequence[str]) -> tuple[asyncio.subprocess.Process, str]:
    """A server of its own, with a token for each story, and its address."""
    known = directory / "tokens.toml"
    known.touch(0o600)
    rows = [f'[[token]]\nname = "{number}"\ntoken = "{token}"\ntenant = "{TENANT}"\ndm = true\n' for number, token in enumerate(tokens)]
    known.write_text("\n".join(rows))
    command = ["-m", "talekeeper", "serve", "--port", "0", "--file", str(directory / STORIES), "--tokens", str(known), "--json"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("TALEKEEPER_")}
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE, env=env, cwd=directory)
    assert process.stdout is not None
    said = b""
    while not said.rstrip().endswith(b"}"):
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: it ended with {await process.wait()}")
        said += line
    return process, json.loads(said)["url"]


def _player(options: Options, url: str, number: int, token: str) -> Player:
    names = list(packs.shipped())
    scenario = names[number % len(names)]
    party = list(packs.load(scenario).heroes)[: options.party]
    return Player(url, token, f"story-{number}", scenario, party, options.seed + number)


async def _play(options: Options, pid: int, players: Sequence[Player], progress: Progress) -> Report:
    progress(f"sitting down at {len(players):,} stories")
    for player in players:
        await (player.take_up() if options.past else player.begin())
    memory: list[tuple[float, float]] = []
    began, busy = time.monotonic(), _cpu(pid)
    playing = asyncio.gather(*(player.play(began + options.seconds, options.think) for player in players))
    while not playing.done():
        memory += _memory(pid, time.monotonic() - began)
        rounds = sum(player.diary.rounds for player in players)
        progress(
            f"{time.monotonic() - began:,.0f} of {options.seconds:,.0f} s: {rounds:,} rounds, {memory[-1][1] if memory else 0:,.0f} MB"
        )
        await asyncio.wait({playing}, timeout=max(0.2, options.seconds / SAMPLES))
    await playing
    seconds, spent = time.monotonic() - began, _cpu(pid)
    for number, player in enumerate(players):
        progress(f"reading log {number + 1:,} of {len(players):,}")
        await player.look_back()
        await player.leave()
    diaries = [player.diary for player in players]
    return _report(options, diaries, seconds, memory, spent - busy if spent is not None and busy is not None else None)


def _report(options: Options, diaries: Sequence[Diary], seconds: float, memory: Sequence[tuple[float, float]], cpu: float | None) -> Report:
    return Report(
        seconds=seconds,
        rounds=sum(diary.rounds for diary in diaries),
        turns=sum(diary.turns for diary in diaries),
        lost=sum(diary.lost for diary in diaries),
        requests=Times.of([one for diary in diaries for one in diary.requests]),
        answers=Times.of([one for diary in diaries for one in diary.answers]),
        errors=tuple(error for diary in diaries for error in diary.errors),
        memory=tuple(memory), cpu=cpu, machine=machine(),
        options=options.to_json(),
    )  # fmt: skip


def _memory(pid: int, at: float) -> list[tuple[float, float]]:
    """What the process has in memory, in megabytes; nothing where nobody counts."""
    try:
        rows = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return [(round(at, 1), int(row.split()[1]) / 1024) for row in rows.splitlines() if row.startswith("VmRSS:")]


def _cpu(pid: int) -> float | None:
    """Seconds of processor time that the process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
