"""The keeper of stories: one open store, the stories in memory, and what runs behind them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, TalekeeperError, UnknownBranch, UnknownStory, WrongType
from talekeeper.folding import Folder, RetryPolicy
from talekeeper.hot import Hot
from talekeeper.kept import let_go
from talekeeper.marking import gathered_much, store_gathered
from talekeeper.model import HealthState, MemoryKey, Seat
from talekeeper.ports import Branch, ChatModel, Clock, Commit, Store, TokenCounter, wall_clock
from talekeeper.recent import Allowance
from talekeeper.shared import MAIN, Shared, branch_called, check_finished, seat_to_json, seats_of
from talekeeper.stores import check_target, open_store
from talekeeper.story import Story
from talekeeper.summarize.janitor import Janitor
from talekeeper.telling import TRIES, step_aside
from talekeeper.tokens import best_counter
from talekeeper.turnstile import Turnstile

log = logging.getLogger("talekeeper")
STORIES_IN_MEMORY, BRANCHES_IN_MEMORY = 2048, 16
"""Stories, and branches of one of them; those that were not opened for longest are put away."""
CHECKPOINT_ON_CLOSE, CLOSING = 32, 5.0
"""When the keeper is closed, a branch with so many unsaved entries is worth a checkpoint. All of them together may take so many seconds:
the rest is derived again when it is needed."""
CHECKPOINTS_AT_ONCE = 2
"""How many stories make a checkpoint at the same time, so that nobody's append waits for long."""
HELD, MOST_HELD = 0.1, 1.0
"""How many seconds an append waits where its story lags too far behind with its checkpoints: the first times the lag, squared, and no more
than the second."""


class Keeper:
    """Keeps stories. Made by `open`; use it with `async with`, or `await` it and `close` it yourself."""

    def __init__(
        self, target: str | os.PathLike[str] | Store, *, summarizer: ChatModel | Janitor | None = None, counter: TokenCounter | None = None,
        clock: Clock = wall_clock, retry: RetryPolicy | None = None, timeout: float = 60.0, models_at_once: int = 2, durable: bool = True,
    ) -> None:  # fmt: skip
        _check_settings(counter, clock, retry, timeout)
        self._target = check_target(target)
        self._durable = durable
        self._janitor = summarizer if isinstance(summarizer, Janitor) or summarizer is None else Janitor(summarizer, timeout=timeout)
        self._has_model = self._janitor is not None
        self.counter: TokenCounter = counter if counter is not None else best_counter()
        self.clock = clock if clock is wall_clock else _checked(clock)
        self._retry = retry or RetryPolicy()
        self._models_at_once = rim.whole(models_at_once, "models_at_once", least=1)
        self._store: Store | None = None
        self._door = Turnstile()
        self._stories: OrderedDict[MemoryKey, tuple[Shared, dict[str, Hot]]] = OrderedDict()
        self._held: WeakValueDictionary[tuple[int, str], Hot] = WeakValueDictionary()  # put away, for as long as someone else has them
        self._allowance = Allowance()
        self._slots: asyncio.Semaphore
        self._saving: asyncio.Semaphore
        self._behind: dict[tuple[int, str], asyncio.Task[None]] = {}  # what runs in the background, by what it is for

    # -- opening and closing ---------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Keeper:
        async with self._door:  # who enters while it is opened waits for the one store
            if self._store is None:
                self._store = await open_store(self._target, durable=self._durable)
                self._slots = asyncio.Semaphore(self._models_at_once)  # of this event loop, perhaps another than when it was last open
                self._saving = asyncio.Semaphore(CHECKPOINTS_AT_ONCE)
        return self

    def __await__(self) -> Generator[Any, None, Keeper]:
        return self.__aenter__().__await__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops what runs in the background, stores what was derived, and closes the store. Acknowledged turns are safe without it."""
        async with self._door:  # who closes it a second time waits for the first
            store, self._store = self._store, None
            if store is not None:
                await self._wind_up(store)

    async def _wind_up(self, store: Store) -> None:
        running, lines = list(self._behind.values()), [hot for _, hots in self._stories.values() for hot in hots.values()]
        self._behind.clear()
        self._stories.clear()
        try:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            clock = asyncio.get_running_loop().time
            until = clock() + CLOSING
            for hot in lines:
                if clock() < until:
                    await _save(hot)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    for hot in lines:
                        await store_gathered(hot)
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
            if branch not in hots:
                hots[branch] = self._held.get((id(shared), branch)) or Hot(shared, branch)
        hots[branch] = hot = hots.pop(branch)  # the one that was opened last stands at the end
        if hot.folder is not None:
            hot.folder.is_kept = True
        while len(hots) > BRANCHES_IN_MEMORY:
            await self._put_away(hots.pop(next(iter(hots))))
        await hot.refresh()
        return Story(self, hot)

    async def _shared(self, key: MemoryKey, seats: Sequence[Seat] | None) -> tuple[Shared, dict[str, Hot]]:
        known = self._stories.get(key)
        if known is not None:
            self._stories.move_to_end(key)
        record = await self.store.load(key) if seats is None or known is not None else None
        if record is None and seats is not None:
            config = {"seats": [seat_to_json(seat) for seat in seats], "since": {}, "secret": secrets.randbits(128), "placed": True}
            record = await self.store.create(key, config)
        if known is not None and self._stories.get(key) is known and (record is None or record.id != known[0].record.id):
            self._take_out(key)  # deleted, and perhaps made again, by someone else
        if record is None:
            raise UnknownStory(f"no story under the key {key.composite()!r}; pass seats=[…] to begin one")
        check_finished(record)
        while key not in self._stories and len(self._stories) >= STORIES_IN_MEMORY:
            for hot in self._take_out(next(iter(self._stories))):
                await self._put_away(hot)
        if key not in self._stories:  # else someone who opened it at the same time was first: there is one of it for all
            self._stories[key] = Shared(key, self.store, self.counter, record, allowance=self._allowance), {}
            self._allowance.share(len(self._stories))
        return self._stories[key]

    def _take_out(self, key: MemoryKey) -> list[Hot]:
        """Takes a story out of memory, of which the others have more then. Returns the branches that were there."""
        _, hots = self._stories.pop(key, (None, dict[str, Hot]()))
        self._allowance.share(len(self._stories))
        return list(hots.values())

    async def _put_away(self, hot: Hot) -> None:
        """Stores what is worth it of a branch that was taken out of memory. Who still holds it goes on with it, and so does whoever is at
        work on its folds; nobody waits for a model to come back, which would keep it in memory until then."""
        self._held[id(hot.shared), hot.name] = hot
        task = self._behind.get((id(hot), "folds"))
        if hot.folder is not None:
            hot.folder.is_kept = False
            if task is not None and hot.folder.health.state is HealthState.DEGRADED:
                task.cancel()
            if not hot.folder.busy:
                hot.folder = None  # they hold each other
        await _save(hot)
        await store_gathered(hot)

    async def _join(self, shared: Shared, seats: Sequence[Seat]) -> None:
        """Takes seats into a story: new ones join at its present head, known ones get their new settings."""
        for attempt in range(TRIES):
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
            try:
                rev = await self.store.write(Commit(story=record.id, rev=record.rev, touch=True, heads=seen, config=config))
            except Conflict:
                if attempt == TRIES - 1:
                    raise
                await step_aside(attempt)
                await shared.reload()
                continue
            await shared.reload(rev)
            return

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        """The keys of all stories, or of one tenant's."""
        return await self.store.keys(tenant_id)

    async def delete(self, key: MemoryKey) -> bool:
        """Removes a story with everything of it, for good. False where there was none."""
        rim.key(key)
        self._take_out(key)
        let_go()
        return await self.store.delete(key)

    # -- what stories ask of their keeper ----------------------------------------------------------------------------------

    def _folder(self, hot: Hot) -> Folder:
        """Who makes the model folds of a branch. One, however often the branch was put away: two would ask for the same."""
        shared, hots = self._stories.setdefault(hot.shared.key, (hot.shared, {}))
        if shared is hot.shared:
            hots.setdefault(hot.name, hot)  # put away while someone holds it: taken back
        hot.folder = folder = hot.folder or Folder(hot, self._janitor, self._retry, self._slots)
        folder.is_kept = hots.get(hot.name) is hot
        return folder

    def _branches_of(self, key: MemoryKey) -> list[Hot]:
        """The branches of a story that are in memory, also those that somebody else holds."""
        if key not in self._stories:
            return []
        shared, hots = self._stories[key]
        return [*hots.values(), *(hot for hot in list(self._held.values()) if hot.shared is shared)]

    def _appended(self, hot: Hot) -> None:
        """Something was appended: starts what is due, off the hot path."""
        if self._store is not hot.shared.store:
            return  # closed meanwhile: what nobody would stop is not begun
        if hot.overdue:
            self._spawn((id(hot), "checkpoint"), partial(self._checkpoint, hot))
        if self._has_model:
            folder = self._folder(hot)
            if folder.moved():
                self._spawn((id(hot), "folds"), folder.work)

    async def _checkpoint(self, hot: Hot) -> None:
        async with self._saving:
            try:
                await hot.checkpoint()
            except TalekeeperError:
                hot.put_off_at = hot.head
                raise
            await store_gathered(hot)

    def _gathered(self, hot: Hot) -> None:
        """Something was gathered: much of it is stored at once, off the hot path, and a little with the next checkpoint."""
        if gathered_much(hot):
            self._spawn((id(hot), "gathered"), partial(self._store_gathered, hot))

    async def _store_gathered(self, hot: Hot) -> None:
        async with self._saving:
            await store_gathered(hot)

    async def _hold_back(self, hot: Hot) -> None:
        """Waits for the story's checkpoint, the longer the more there is to store: stories that are all told faster than they can be kept
        must not fill the memory."""
        task = self._behind.get((id(hot), "checkpoint"))
        if task is not None:
            await asyncio.wait([task], timeout=min(MOST_HELD, HELD * hot.lag**2))

    def _spawn(self, name: tuple[int, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        running = self._behind.get(name)
        if running is None or running.done():  # one that was cancelled before it began is still there
            self._behind[name] = asyncio.get_running_loop().create_task(self._run(name, work))

    async def _run(self, name: tuple[int, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except TalekeeperError as exc:
            reason = f"{type(exc).__name__}: {exc}"
            log.warning("background work failed: %s", reason, extra={"error": reason})
        finally:
            self._behind.pop(name, None)


async def _save(hot: Hot) -> None:
    """Makes a checkpoint before the branch is let go of, if it is worth one. It fails nobody: what it would store can be derived again."""
    if hot.ready and hot.state.seq - hot.saved_at >= CHECKPOINT_ON_CLOSE:
        try:
            if not hot.in_step:
                await hot.refresh()  # another branch has learnt of more: nothing would be stored
            await hot.checkpoint()
        except UnknownBranch:
            pass  # its name was given away, and nobody will look for it here again
        except TalekeeperError as exc:
            log.warning("last checkpoint failed: %s", exc, extra={"story": hot.shared.key.composite(), "error": str(exc)})


def _check_settings(counter: object, clock: object, retry: object, timeout: object) -> None:
    if counter is not None and not (callable(getattr(counter, "count", None)) and hasattr(counter, "id") and hasattr(counter, "additive")):
        raise WrongType(f"a counter must have `id`, `additive` and `count`, as tk.Heuristic() has; {type(counter).__name__} has not")
    if not callable(clock):
        raise WrongType(f"a clock must be a function that gives seconds, not {type(clock).__name__}")
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise WrongType(f"retry must be a RetryPolicy, not {type(retry).__name__}")
    rim.seconds(timeout, "timeout")


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
