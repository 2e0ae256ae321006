"""What all tests share: keepers on every store, a clock that stands still, a counter that needs nothing, and no network."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_socket

import talekeeper as tk

NOW = 1_750_000_000.0
"""What the clock of every keeper shows, always."""

OpenKeeper: TypeAlias = Callable[..., Awaitable[tk.Keeper]]
"""Opens another keeper on the same target, with settings of its own; it is closed after the test."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The network is off, whatever the command line says. Event loops talk to themselves over unix sockets."""
    if item.get_closest_marker("enable_socket") is None:
        pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture(params=["memory", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where stories are kept: in memory, or in a real SQLite file."""
    return ":memory:" if request.param == "memory" else str(tmp_path / "stories.db")


@pytest.fixture
def sqlite_file(tmp_path: Path) -> str:
    """A real SQLite file, for what only a file can show."""
    return str(tmp_path / "stories.db")


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


@pytest.fixture
async def open_keeper(target: str, loop_errors: list[str]) -> AsyncIterator[OpenKeeper]:
    opened: list[tk.Keeper] = []

    async def open_one(where: Any = None, **settings: Any) -> tk.Keeper:
        keeper = await tk.open(where or target, **{"counter": tk.Heuristic(), "clock": lambda: NOW, "durable": False, **settings})
        opened.append(keeper)
        return keeper

    yield open_one
    for keeper in opened:
        await keeper.close()


@pytest.fixture
async def keeper(open_keeper: OpenKeeper) -> tk.Keeper:
    """A keeper on each store in turn, without a summarizer."""
    return await open_keeper()
