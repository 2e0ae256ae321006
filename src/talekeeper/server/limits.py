"""How much anyone may ask for: sizes, rates, times. Whatever is refused here was not looked at, and changed nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from talekeeper.rim import MAX_NAME, MAX_TEXT_BYTES

TEXT = MAX_TEXT_BYTES
NAME = MAX_NAME
ACT = 4000
"""Characters of what a person does in one turn of a game."""
QUERY = 4000
"""Characters of a query."""
PAGE = 200
"""Turns on a page."""
POINTS = 1000
"""Turns on a timeline."""
RECALLED = 50
NAMES = 64
"""Names in a list: mentions, hearers, aliases."""
SEATS = 200
BUDGET = 1_000_000
"""Tokens of a context."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server allows. Bytes and seconds; `rate` and `burst` are requests of one token; `guesses` are wrong tokens that an
    address may come with at once, and a hundredth of them in every second after."""

    body: int = 1_000_000
    upload: int = 256_000_000
    rate: float = 50.0
    burst: int = 200
    guesses: int = 20
    seconds: float = 30.0
    streams: int = 32
    stream_seconds: float = 3600.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    since: float


class Buckets:
    """A token bucket for everyone who asks. Those who have not asked for long have a full one, and are not kept."""

    def __init__(self, *, room: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._room, self._clock = room, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, who: str, rate: float, burst: int) -> float:
        """0 where there was one to take; else how many seconds it takes until there is. `rate` and `burst` are those of this moment."""
        now = self._clock()
        bucket = self._buckets.pop(who, None) or _Bucket(burst, now)
        self._buckets[who] = bucket
        if len(self._buckets) > self._room:
            self._buckets.popitem(last=False)
        bucket.tokens = min(burst, bucket.tokens + (now - bucket.since) * rate)
        bucket.since = now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / rate
        bucket.tokens -= 1
        return 0.0
