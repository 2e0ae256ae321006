"""What it costs to have Talekeeper around: the time of its import, and the packages that its core brings with it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import talekeeper
from talekeeper.bench.report import Footprint
from talekeeper.bench.targets import Progress

_BARE, _OURS, _YARDSTICK = "pass", "import talekeeper", "import asyncio, sqlite3, pydantic"
_READY = """
import asyncio, sys, talekeeper
async def ready():
    async with talekeeper.open(sys.argv[1], counter=talekeeper.Heuristic()) as keeper:
        key = talekeeper.MemoryKey(tenant_id="bench", user_id="table", session_id="1")
        story = await keeper.story(key, seats=[talekeeper.Seat("dm", role="dm")])
        await story.append("dm", "Once upon a time.")
        await story.context("dm", budget=1000)
asyncio.run(ready())
"""


def footprint(directory: Path, starts: int, progress: Progress) -> Footprint:
    """Start Python `starts` times for each statement, in turn; the time of a bare start is taken off."""
    statements = [_BARE, _OURS, _READY] + ([_YARDSTICK] if find_spec("pydantic") else [])
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    for number in range(starts + 1):  # the first start warms the disk and writes .pyc files; it does not count
        progress(f"import time: start {number} of {starts}")
        for statement in statements:
            times[statement].append(_start(statement, directory / "ready.db"))
    cost = {statement: (median(found[1:]) - median(times[_BARE][1:])) * 1e3 for statement, found in times.items()}
    return Footprint(import_ms=cost[_OURS], ready_ms=cost[_READY], yardstick_ms=cost.get(_YARDSTICK), packages=_packages("talekeeper"))


def _start(statement: str, file: Path) -> float:
    source = Path(talekeeper.__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement, str(file)], check=True, env=os.environ | {"PYTHONPATH": path})
    return time.perf_counter() - began


def _packages(root: str) -> tuple[str, ...] | None:
    """Every installed package that `root` needs, itself included. Markers other than extras count as true: an upper bound."""
    found: set[str] = set()
    due = [(root, frozenset[str]())]
    while due:
        name, extras = due.pop()
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            if name == root:
                return None
            continue
        found.add(name)
        needed = [need for need in (_parse(requirement, extras) for requirement in requirements) if need and need[0] not in found]
        due.extend(needed)
    return tuple(sorted(found))


def _parse(requirement: str, extras: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """The package that a requirement names, with the extras it asks for; None if it belongs to an extra that nobody asked for."""
    wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
    if wanted and wanted[1] not in extras:
        return None
    match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", requirement)
    if match is None:
        return None
    return re.sub(r"[-_.]+", "-", match[1]).lower(), frozenset(part.strip() for part in (match[2] or "").split(",") if part.strip())
