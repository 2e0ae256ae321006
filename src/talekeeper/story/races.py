"""Of those who write at the same time one is first. The others look again at what they build on, and try anew."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from talekeeper.errors import Conflict, TalekeeperError

T = TypeVar("T")

TRIES = 256
"""How often a write is tried where others were faster each time: enough to get through beside a few who write as fast as they can."""


async def retried(
    work: Callable[[], Awaitable[T]], *, refresh: Callable[[], Awaitable[object]] | None = None, tries: int = TRIES,
    lost: type[TalekeeperError] = Conflict,
) -> T:  # fmt: skip
    """What the work gives. It is done anew, after a `refresh`, each time it finds that someone else was first; what it finds the last time
    is for the caller."""
    for attempt in range(tries - 1):
        try:
            return await work()
        except lost:
            await step_aside(attempt)
        if refresh is not None:
            await refresh()
    return await work()


async def step_aside(attempt: int) -> None:
    """Waits a moment before the next try: at random, so that those who lost do not collide again, and the shorter the more often one has
    lost, so that whoever has waited longest is next."""
    await asyncio.sleep(random.random() * 0.004 / (1 + attempt / 4))
