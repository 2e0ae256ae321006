"""One portal through which every async method of the front door can be called: what `talekeeper.sync` is made of.

The portal wraps whatever it is given: what would be awaited is run to its end on a loop in a thread of its own, what would be iterated
asynchronously is iterated, and whatever comes back that has such methods (a story, its past, a conversation's memory) is wrapped in turn.
There is no second implementation of anything.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from talekeeper import keeper as keepers
from talekeeper.errors import InvalidInput, StoreClosed
from talekeeper.keeper import Keeper
from talekeeper.memory.session import DefaultShortTermMemory

PATIENCE = 1.0
"""Seconds that whoever closes a portal waits for what others are still doing behind it, before that is ended."""


class Portal:
    """An event loop in a thread of its own, to run coroutines on."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls: set[asyncio.Task[Any] | None] = set()  # that somebody waits for
        self._lock = threading.Lock()  # of whoever makes a call or lets nobody in any more
        self.closed = False
        self._thread = threading.Thread(target=self._serve, name="talekeeper-portal", daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        """What the awaitable gives, or what it raises. Ctrl-C cancels it; where the portal is closed meanwhile, it is `StoreClosed`."""
        if threading.current_thread() is self._thread:
            raise InvalidInput("the portal cannot be used from its own loop: use the async API there")
        future = self._call(awaitable)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        except CancelledError:
            if self.closed:
                raise _closed() from None
            raise

    def _call(self, awaitable: Any) -> Future[Any]:
        if self._thread.is_alive():  # else it may be that of the process of which this is a fork, and the lock for ever someone's
            with self._lock:
                if not self.closed:
                    return asyncio.run_coroutine_threadsafe(self._wait(awaitable), self._loop)
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        raise _closed()

    async def _wait(self, awaitable: Any) -> Any:
        self._calls.add(call := asyncio.current_task())
        try:
            return await awaitable
        finally:
            self._calls.discard(call)

    def close(self) -> None:
        """Lets nobody in any more, and ends what is still under way. Whoever closes it as well waits until that is done."""
        if self._thread.is_alive():
            with self._lock:
                if not self.closed:
                    self.closed = True
                    self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self.closed = True

    def _serve(self) -> None:
        loop = self._loop
        try:
            loop.run_forever()
            loop.run_until_complete(self._end())
        finally:
            loop.close()

    async def _end(self) -> None:
        """Waits for all calls, for a moment: what they ask of a closed store is refused. What waits for something else is cancelled."""
        for _ in range(2):
            if calls := [call for call in self._calls if call is not None]:
                _, late = await asyncio.wait(calls, timeout=PATIENCE)
                for call in late:
                    call.cancel()

    def give(self, value: Any) -> Any:
        """A value as code without a loop can use it: waited for, iterated, or wrapped where it has methods that would be awaited."""
        if inspect.isawaitable(value):
            value = self.run(value)
        if isinstance(value, AsyncIterator):
            return self._each(value)
        kind: Any = type(value)
        if not _is_async(kind):
            return value
        return SynchronousResource(self, value) if hasattr(kind, "__aexit__") else Synchronous(self, value)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function gives. Arguments that a portal has wrapped are unwrapped first."""
        return self.give(function(*map(_bare, args), **{name: _bare(value) for name, value in kwargs.items()}))

    def _each(self, source: AsyncIterator[Any]) -> Iterator[Any]:
        while (found := self.run(_next(source))) is not None:
            yield self.give(found[0])


def _closed() -> StoreClosed:
    return StoreClosed("the keeper was closed: open it again")


async def _next(source: AsyncIterator[Any]) -> tuple[Any] | None:
    async for value in source:
        return (value,)
    return None


def _bare(value: Any) -> Any:
    return value._target if isinstance(value, Synchronous) else value


@functools.cache
def _is_async(kind: type) -> bool:
    """Whether its values have methods that are awaited, or iterated asynchronously."""
    members = (member for base in kind.__mro__ for name, member in vars(base).items() if not name.startswith("_"))
    return any(inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member) for member in members)


class Synchronous:
    """Stands for a keeper, a story or a face on one; its methods wait for their result."""

    def __init__(self, portal: Portal, target: Any) -> None:
        self._portal = portal
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.isroutine(value):
            return self._portal.give(value)

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._portal.call(value, args, kwargs)

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
    return given[0]._portal.call(function, args, kwargs)


class SynchronousResource(Synchronous):
    """One that is to be closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class SynchronousOwner(SynchronousResource):
    """A keeper or a memory behind its own portal."""

    def close(self) -> None:
        """Closes the keeper or memory, and its loop."""
        try:
            with suppress(StoreClosed):  # someone else was first
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
