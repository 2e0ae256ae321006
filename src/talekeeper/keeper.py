"""The keeper of stories: one open store, and the way to the stories in it."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any

from talekeeper import rim
from talekeeper.errors import InvalidInput, UnknownStory, WrongType
from talekeeper.kept import let_go
from talekeeper.live.hot import Hot
from talekeeper.live.shared import Shared, branch_called, check_finished, seat_to_json, seats_of
from talekeeper.live.turnstile import Turnstile
from talekeeper.model import MemoryKey, Seat
from talekeeper.ports import MAIN, Branch, ChatModel, Clock, Commit, Store, TokenCounter, wall_clock
from talekeeper.stores import check_target, open_store
from talekeeper.story.folding import RetryPolicy
from talekeeper.story.races import retried
from talekeeper.story.residents import Residents
from talekeeper.story.story import Story
from talekeeper.summarize.janitor import Janitor
from talekeeper.tokens import Exact, Heuristic, best_counter


class Keeper:
    """Keeps stories. Made by `open`; use it with `async with`, or `await` it and `close` it yourself."""

    def __init__(
        self, target: str | os.PathLike[str] | Store, *, summarizer: ChatModel | Janitor | None = None, counter: TokenCounter | None = None,
        clock: Clock = wall_clock, retry: RetryPolicy | None = None, timeout: float = 60.0, models_at_once: int = 2, durable: bool = True,
    ) -> None:  # fmt: skip
        _check_settings(counter, clock, retry, timeout)
        self._target = check_target(target)
        self._durable = durable
        janitor = summarizer if isinstance(summarizer, Janitor) or summarizer is None else Janitor(summarizer, timeout=timeout)
        self._residents = Residents(janitor, retry or RetryPolicy(), rim.whole(models_at_once, "models_at_once", least=1))
        self.counter: TokenCounter = best_counter() if counter is None else counter if type(counter) in _OURS else _WholeCounts(counter)
        self.clock: Clock = clock if clock is wall_clock else _checked(clock)
        self._store: Store | None = None
        self._door = Turnstile()
        self._loop: asyncio.AbstractEventLoop

    # -- opening and closing ---------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Keeper:
        async with self._door:  # who enters while it is opened waits for the one store
            if self._store is None:
                self._store = await open_store(self._target, durable=self._durable)
                self._loop = asyncio.get_running_loop()  # perhaps another than when it was last open
                self._residents.begin(self._store)
        return self

    def __await__(self) -> Generator[Any, None, Keeper]:
        return self.__aenter__().__await__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops what runs in the background, stores what was derived, and closes the store. Acknowledged turns are safe without it."""
        if self._store is not None and not self._loop.is_closed():
            rim.own_loop(self._loop)
        async with self._door:  # who closes it a second time waits for the first
            store, self._store = self._store, None
            if store is not None:
                try:
                    await self._residents.end(in_peace=not self._loop.is_closed())
                finally:  # also where whoever closes it is cancelled
                    await store.close()

    @property
    def store(self) -> Store:
        if self._store is None:
            raise InvalidInput("the keeper is not open: use it with `async with tk.open(…) as keeper`, or `await tk.open(…)`")
        return self._store

    # -- stories ---------------------------------------------------------------------------------------------------------

    async def story(self, key: MemoryKey, *, seats: Sequence[Seat] | None = None, branch: str = MAIN) -> Story:
        """The story under the key. `seats` make it if it is new, and join it if it is not; without them it must exist."""
        key = rim.key(key)
        rim.string(branch, "branch")
        wanted = rim.seats(seats) if seats is not None else ()
        if seats is not None and branch != MAIN:  # nothing is made, and nobody joins, where that is not what was asked for
            record = await self.store.load(key)
            branch_called(branch, record.branches.values() if record is not None else [Branch(0, MAIN)])
        shared, hots = await self._shared(key, wanted if seats is not None else None)
        await self._join(shared, wanted)
        if branch not in hots:
            if all(branch != known.name for known in shared.record.branches.values()):
                await shared.reload()  # another process may have made it
            shared.branch(branch)
        hot = await self._residents.line(shared, hots, branch)
        await hot.refresh()
        return Story(self, self._residents, hot)

    async def _shared(self, key: MemoryKey, seats: Sequence[Seat] | None) -> tuple[Shared, dict[str, Hot]]:
        known = self._residents.find(key)
        record = await self.store.load(key) if seats is None or known is not None else None
        if record is None and seats is not None:
            config = {"seats": [seat_to_json(seat) for seat in seats], "since": {}, "secret": secrets.randbits(128), "placed": True}
            record = await self.store.create(key, config)
        if known is not None and self._residents.stories.get(key) is known and (record is None or record.id != known[0].record.id):
            self._residents.take_out(key)  # deleted, and perhaps made again, by someone else
        if record is None:
            raise UnknownStory(f"no story under the key {key.composite()!r}; pass seats=[…] to begin one")
        check_finished(record)
        return await self._residents.admit(record, self.counter)

    async def _join(self, shared: Shared, seats: Sequence[Seat]) -> None:
        """Takes seats into a story: new ones join at its present head, known ones get their new settings."""

        async def join() -> None:
            record = shared.record
            config = record.config
            known = {seat.id: seat for seat in seats_of(config)}
            changed = [seat for seat in seats if known.get(seat.id) != seat]
            for seat in changed:
                if seat.id in known and known[seat.id].role != seat.role:
                    was = known[seat.id].role
                    raise InvalidInput(f"seat {seat.id!r} has the role {was!r} for as long as the story lasts: seat someone new instead")
            if not changed:
                return
            heads = {branch: (await self.store.head(record.id, branch)).seq for branch in record.branches}
            begun = {str(branch): head for branch, head in heads.items() if head}  # who joins was not there for what has been told so far
            since = {**config["since"], **{seat.id: begun for seat in changed if seat.id not in known and begun}}
            merged = {**known, **{seat.id: seat for seat in changed}}
            config = {**config, "seats": [seat_to_json(seat) for seat in merged.values()], "since": since}
            seen = heads if any(seat.id not in known for seat in changed) else {}
            rev = await self.store.write(Commit(story=record.id, rev=record.rev, touch=True, heads=seen, config=config))
            await shared.reload(rev)

        await retried(join, refresh=shared.reload)

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        """The keys of all stories, or of one tenant's."""
        return await self.store.keys(tenant_id)

    async def delete(self, key: MemoryKey) -> bool:
        """Removes a story with everything of it, for good. False where there was none."""
        rim.key(key)
        self._residents.take_out(key)
        let_go()
        return await self.store.delete(key)


def _check_settings(counter: object, clock: object, retry: object, timeout: object) -> None:
    if counter is not None and not (callable(getattr(counter, "count", None)) and hasattr(counter, "id") and hasattr(counter, "additive")):
        raise WrongType(f"a counter must have `id`, `additive` and `count`, as tk.Heuristic() has; {type(counter).__name__} has not")
    if counter is not None:
        rim.name(counter.id, "a counter's id")
    if not callable(clock):
        raise WrongType(f"a clock must be a function that gives seconds, not {type(clock).__name__}")
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise WrongType(f"retry must be a RetryPolicy, not {type(retry).__name__}")
    rim.seconds(timeout, "timeout")


_OURS = (Heuristic, Exact)


class _WholeCounts:
    """Someone's own counter, of which nothing but whole numbers is taken."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.id, self.additive = counter.id, counter.additive

    def count(self, text: str) -> int:
        found = self._counter.count(text)
        return found if type(found) is int and 0 <= found <= rim.MOST else rim.whole(found, "what the token counter gives")

    def __repr__(self) -> str:
        return repr(self._counter)


def _checked(clock: Clock) -> Clock:
    """Someone's own clock, of which nothing but points in time is taken. The system's needs no look: it is asked at every append."""

    def now() -> float:
        value = clock()
        if type(value) is float and -rim.LATEST < value < rim.LATEST:
            return value
        return float(rim.time(value, "what the clock gives"))

    return now


def open(
    target: str | os.PathLike[str] | Store, *, summarizer: ChatModel | Janitor | None = None, counter: TokenCounter | None = None,
    clock: Clock = wall_clock, retry: RetryPolicy | None = None, timeout: float = 60.0, models_at_once: int = 2, durable: bool = True,
) -> Keeper:  # fmt: skip
    """Opens the place where stories are kept: a file's path, ":memory:", or a store of your own.

    `summarizer`: an async callable from chat messages to text; without one, folds are extractive and nothing leaves the machine.
    `counter`: who counts tokens; by default the best one that is installed. `clock`: seconds since the epoch, for the log's own records.
    `retry`: how long a failing model is tried. `timeout`: seconds that it may take for an answer. `models_at_once`: how many answers may be
    waited for at the same time. `durable=False` trades the last moments before a power cut for speed."""
    return Keeper(
        target, summarizer=summarizer, counter=counter, clock=clock, retry=retry, timeout=timeout, models_at_once=models_at_once,
        durable=durable,
    )  # fmt: skip


__all__ = ["Keeper", "open"]
