"""For people without an event loop: one portal through which every async method of the front door can be called.

    with tk.sync.open("saga.db") as keeper:
        story = keeper.story(key, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        story.append("dm", "The innkeeper slides you a key.")
        print(story.context("rogue", budget=2000).text)

The portal wraps whatever it is given: methods that return awaitables are run to their end on a loop in a thread of its own, and
keepers and stories that come back are wrapped in turn. There is no second implementation of anything.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from talekeeper import keeper as keepers
from talekeeper.errors import InvalidInput, StoreClosed
from talekeeper.keeper import Keeper
from talekeeper.memory.session import DefaultShortTermMemory
from talekeeper.story import Story


class Portal:
    """An event loop in a thread of its own, to run coroutines on."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="talekeeper-portal", daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        """What the awaitable gives, or what it raises. Ctrl-C cancels it."""
        if threading.current_thread() is self._thread:
            raise InvalidInput("the portal cannot be used from its own loop: use the async API there")
        if self._loop.is_closed():
            awaitable.close()
            raise StoreClosed("the keeper was closed")
        future = asyncio.run_coroutine_threadsafe(_wait(awaitable), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _wait(awaitable: Any) -> Any:
    return await awaitable


class Synchronous:
    """Stands for a keeper, a story or a face on one; its methods wait for their result."""

    def __init__(self, portal: Portal, target: Any) -> None:
        self._portal = portal
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = self._portal.run(value(*args, **kwargs))
            return Synchronous(self._portal, result) if isinstance(result, Keeper | Story) else result

        return call

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<synchronous {self._target!r}>"


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls an async function of Talekeeper's, or makes one of its faces, on what this portal gave you.

    `tk.sync.call(find_callbacks, story, "rogue")` waits for the result; `tk.sync.call(MemoryManager, story)` gives a manager whose
    methods do."""
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, Synchronous)]
    if not given:
        raise InvalidInput("one of the arguments must be a keeper or a story that `tk.sync.open` gave you")
    portal = given[0]._portal
    bare = [value._target if isinstance(value, Synchronous) else value for value in args]
    named = {name: value._target if isinstance(value, Synchronous) else value for name, value in kwargs.items()}
    if inspect.isclass(function):
        return Synchronous(portal, function(*bare, **named))
    return portal.run(function(*bare, **named))


class SynchronousOwner(Synchronous):
    """A keeper or a memory behind its own portal."""

    def __enter__(self) -> SynchronousOwner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the keeper or memory, and its loop."""
        assert not isinstance(self._target, Story)
        if not self._portal.closed:
            try:
                self._portal.run(self._target.close())
            finally:
                self._portal.close()


def open(*args: Any, **kwargs: Any) -> SynchronousOwner:
    """Like `talekeeper.open`, for code without an event loop."""

    async def start() -> Keeper:
        return await keepers.open(*args, **kwargs)

    return _behind_a_portal(start)


def memory(*args: Any, **kwargs: Any) -> SynchronousOwner:
    """Like `talekeeper.DefaultShortTermMemory`, for code without an event loop."""

    async def start() -> DefaultShortTermMemory:
        return DefaultShortTermMemory(*args, **kwargs)

    return _behind_a_portal(start)


def _behind_a_portal(start: Callable[[], Awaitable[Keeper | DefaultShortTermMemory]]) -> SynchronousOwner:
    portal = Portal()
    try:
        return SynchronousOwner(portal, portal.run(start()))
    except BaseException:
        portal.close()
        raise
