"""What all tests share: keepers on every store, a clock that stands still, a counter that needs nothing, and no network."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_socket
from hypothesis import settings

import talekeeper as tk

pytest.register_assert_rewrite("talekeeper.testing.stores")
"""The contract suite is part of the library: its assertions are to speak as clearly as those of tests."""

settings.register_profile("same", derandomize=True, deadline=None)  # how long an example takes says more about the neighbours
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile(os.environ.get("TALEKEEPER_HYPOTHESIS", "same"))
"""A run tells the same twice. `TALEKEEPER_HYPOTHESIS=explore scripts/test tests/properties` looks for new failures."""

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Whoever starts the tests in the background may have turned Ctrl-C off; programs that the tests start would inherit that."""

NOW = 1_750_000_000.0
"""What the clock of every keeper shows, always."""

OpenKeeper: TypeAlias = Callable[..., Awaitable[tk.Keeper]]
"""Opens another keeper on the same target, with settings of its own; it is closed after the test."""


async def until(claim: Callable[[], object], seconds: float = 20.0) -> None:
    """Waits until the claim holds, which may be async."""
    async with asyncio.timeout(seconds):
        while True:
            holds = claim()
            if isawaitable(holds):
                holds = await holds
            if holds:
                return
            await asyncio.sleep(0.005)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The network is off, whatever the command line says. Event loops talk to themselves over unix sockets."""
    if item.get_closest_marker("enable_socket") is None:
        pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture(params=["memory", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where stories are kept: in memory, or in a real SQLite file."""
    return ":memory:" if request.param == "memory" else str(tmp_path / "stories.db")


@pytest.fixture
async def loop_errors() -> AsyncIterator[list[str]]:
    """Whatever dies unseen in a background task; it fails the test at its end."""
    seen: list[str] = []

    def note(loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        seen.append(f"{what['message']}: {what.get('exception')!r}")

    asyncio.get_running_loop().set_exception_handler(note)
    yield seen
    await asyncio.sleep(0)
    gc.collect(1)  # tasks that died meanwhile tell of it when they are cleaned up
    assert not seen, "something died in the background"


@asynccontextmanager
async def opener(target: str) -> AsyncIterator[OpenKeeper]:
    """Opens keepers and closes them at the end."""
    opened: list[tk.Keeper] = []

    async def open_one(where: Any = None, **settings: Any) -> tk.Keeper:
        keeper = await tk.open(where or target, **{"counter": tk.Heuristic(), "clock": lambda: NOW, "durable": False, **settings})
        opened.append(keeper)
        return keeper

    yield open_one
    for keeper in opened:
        await keeper.close()


@pytest.fixture
async def open_keeper(target: str, loop_errors: list[str]) -> AsyncIterator[OpenKeeper]:
    """Opens keepers on each store in turn."""
    async with opener(target) as open_one:
        yield open_one


@pytest.fixture
async def open_file(tmp_path: Path, loop_errors: list[str]) -> AsyncIterator[OpenKeeper]:
    """Opens keepers on one real SQLite file, for what only a file can show."""
    async with opener(str(tmp_path / "stories.db")) as open_one:
        yield open_one


@pytest.fixture
async def keeper(open_keeper: OpenKeeper) -> tk.Keeper:
    """A keeper on each store in turn, without a summarizer."""
    return await open_keeper()
