"""The stories that are in memory, and what runs behind them: checkpoints, folds by a model, what was gathered.

Those that were opened last stay. One that is put away stores what is worth it, and whoever still holds it goes on with it; it is taken
back when it is opened again. What runs in the background fails nobody, and ends with the keeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from talekeeper.errors import StoreClosed, TalekeeperError, UnknownBranch
from talekeeper.live.hot import Hot
from talekeeper.live.shared import Shared
from talekeeper.model import HealthState, MemoryKey
from talekeeper.ports import Store, StoryRecord, TokenCounter
from talekeeper.recent import Allowance
from talekeeper.story.folding import Folder, RetryPolicy
from talekeeper.story.marking import gathered_much, store_gathered
from talekeeper.summarize.janitor import Janitor

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


class Residents:
    """The stories in memory. The keeper opens and closes them; a story tells what has happened to it."""

    def __init__(self, janitor: Janitor | None, retry: RetryPolicy, models_at_once: int) -> None:
        self.has_model = janitor is not None
        self.stories: OrderedDict[MemoryKey, tuple[Shared, dict[str, Hot]]] = OrderedDict()
        self.running: dict[tuple[int, str], asyncio.Task[None]] = {}  # what runs in the background, by what it is for
        self.allowance = Allowance()
        self._janitor, self._retry, self._models_at_once = janitor, retry, models_at_once
        self._held: WeakValueDictionary[tuple[int, str], Hot] = WeakValueDictionary()  # put away, for as long as someone else has them
        self._store: Store | None = None
        self._slots: asyncio.Semaphore
        self._saving: asyncio.Semaphore

    # -- opening and closing ---------------------------------------------------------------------------------------------

    def begin(self, store: Store) -> None:
        """From now on what is due is done behind the stories of this store."""
        self._store = store
        self._slots = asyncio.Semaphore(self._models_at_once)
        self._saving = asyncio.Semaphore(CHECKPOINTS_AT_ONCE)

    async def end(self, *, in_peace: bool) -> None:
        """Nobody stays. What runs is stopped, and what was derived is stored; not `in_peace`: all that ran has ended with its loop."""
        running, lines = list(self.running.values()), [hot for _, hots in self.stories.values() for hot in hots.values()]
        self._store = None
        self.running.clear()
        self.stories.clear()
        if not in_peace:
            return
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

    # -- who is there ------------------------------------------------------------------------------------------------------

    def find(self, key: MemoryKey) -> tuple[Shared, dict[str, Hot]] | None:
        """The story of that key and its branches, if it is there; it was opened last, then."""
        if key in self.stories:
            self.stories.move_to_end(key)
        return self.stories.get(key)

    async def admit(self, record: StoryRecord, counter: TokenCounter) -> tuple[Shared, dict[str, Hot]]:
        """The story of that record; another has to go where there is no room."""
        key = record.key
        while key not in self.stories and len(self.stories) >= STORIES_IN_MEMORY:
            for hot in self.take_out(next(iter(self.stories))):
                await self._put_away(hot)
        if key not in self.stories:  # else someone who opened it at the same time was first: there is one of it for all
            if self._store is None:
                raise StoreClosed("the keeper was closed meanwhile: open it again")
            self.stories[key] = Shared(key, self._store, counter, record, allowance=self.allowance), {}
            self.allowance.share(len(self.stories))
        return self.stories[key]

    def take_out(self, key: MemoryKey) -> list[Hot]:
        """Takes a story out of memory, of which the others have more then. Returns the branches that were there."""
        _, hots = self.stories.pop(key, (None, dict[str, Hot]()))
        self.allowance.share(len(self.stories))
        return list(hots.values())

    async def line(self, shared: Shared, hots: dict[str, Hot], branch: str) -> Hot:
        """A branch of a story that is there; it was opened last, then."""
        if branch not in hots:
            hots[branch] = self._held.get((id(shared), branch)) or Hot(shared, branch)
        hots[branch] = hot = hots.pop(branch)  # the one that was opened last stands at the end
        if hot.folder is not None:
            hot.folder.is_kept = True
        while len(hots) > BRANCHES_IN_MEMORY:
            await self._put_away(hots.pop(next(iter(hots))))
        return hot

    async def _put_away(self, hot: Hot) -> None:
        """Stores what is worth it of a branch that was taken out of memory. Who still holds it goes on with it, and so does whoever is at
        work on its folds; nobody waits for a model to come back, which would keep it in memory until then."""
        self._held[id(hot.shared), hot.name] = hot
        task = self.running.get((id(hot), "folds"))
        if hot.folder is not None:
            hot.folder.is_kept = False
            if task is not None and hot.folder.health.state is HealthState.DEGRADED:
                task.cancel()
            if not hot.folder.busy:
                hot.folder = None  # they hold each other
        await _save(hot)
        await store_gathered(hot)

    def lines_of(self, key: MemoryKey) -> list[Hot]:
        """The branches of a story that are in memory, also those that somebody else holds."""
        if key not in self.stories:
            return []
        shared, hots = self.stories[key]
        return [*hots.values(), *(hot for hot in list(self._held.values()) if hot.shared is shared)]

    # -- what runs behind them ---------------------------------------------------------------------------------------------

    def folder(self, hot: Hot) -> Folder:
        """Who makes the model folds of a branch. One, however often the branch was put away: two would ask for the same."""
        shared, hots = self.stories.setdefault(hot.shared.key, (hot.shared, {}))
        if shared is hot.shared:
            hots.setdefault(hot.name, hot)  # put away while someone holds it: taken back
        hot.folder = folder = hot.folder or Folder(hot, self._janitor, self._retry, self._slots)
        folder.is_kept = hots.get(hot.name) is hot
        return folder

    def appended(self, hot: Hot) -> None:
        """Something was appended: starts what is due, off the hot path."""
        if self._store is not hot.shared.store:
            return  # closed meanwhile: what nobody would stop is not begun
        if hot.overdue:
            self._spawn((id(hot), "checkpoint"), partial(self._checkpoint, hot))
        if self.has_model:
            folder = self.folder(hot)
            if folder.moved():
                self._spawn((id(hot), "folds"), folder.work)

    def gathered(self, hot: Hot) -> None:
        """Something was gathered: much of it is stored at once, off the hot path, and a little with the next checkpoint."""
        if gathered_much(hot):
            self._spawn((id(hot), "gathered"), partial(self._store_gathered, hot))

    async def hold_back(self, hot: Hot) -> None:
        """Waits for the story's checkpoint, the longer the more there is to store: stories that are all told faster than they can be kept
        must not fill the memory."""
        task = self.running.get((id(hot), "checkpoint"))
        if task is not None:
            await asyncio.wait([task], timeout=min(MOST_HELD, HELD * hot.lag**2))

    async def _checkpoint(self, hot: Hot) -> None:
        async with self._saving:
            try:
                await hot.checkpoint()
            except TalekeeperError:
                hot.put_off_at = hot.head
                raise
            await store_gathered(hot)

    async def _store_gathered(self, hot: Hot) -> None:
        async with self._saving:
            await store_gathered(hot)

    def _spawn(self, name: tuple[int, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        running = self.running.get(name)
        if running is None or running.done():  # one that was cancelled before it began is still there
            self.running[name] = asyncio.get_running_loop().create_task(self._run(name, work))

    async def _run(self, name: tuple[int, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except TalekeeperError as exc:
            reason = f"{type(exc).__name__}: {exc}"
            log.warning("background work failed: %s", reason, extra={"error": reason})
        finally:
            self.running.pop(name, None)


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
