"""A lock that is had at once where it is free, without a turn of the event loop; those who wait get it in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class Turnstile:
    """For one event loop. `if not free(): await turn()` … `release()`, or `async with`."""

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def free(self) -> bool:
        """Whether it was free. Then it is ours from now on."""
        if self._taken:
            return False
        self._taken = True
        return True

    async def turn(self) -> None:
        """Waits until it is ours."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except BaseException:  # cancelled, or dropped for good: whoever gave up must not be given it
            if mine.done() and not mine.cancelled():
                self.release()  # it was given to us already
            else:
                mine.cancel()
                with suppress(ValueError):  # passed over by now
                    self._waiting.remove(mine)
            raise

    def release(self) -> None:
        """Gives it to the next who waits, so that nobody who comes later is first."""
        while self._waiting:
            mine = self._waiting.popleft()
            if not mine.done():
                mine.set_result(None)
                return
        self._taken = False

    async def __aenter__(self) -> None:
        if not self.free():
            await self.turn()

    async def __aexit__(self, *_: object) -> None:
        self.release()
