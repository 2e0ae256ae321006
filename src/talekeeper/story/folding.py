"""Model folds in the background: which are due, who makes them, what happens when the model fails.

A fold is due when some seat's context, at that seat's own limit, already stands on it and no model text of it was born on this path.
Smaller folds come first, so a model always summarises the best text there is. What is due follows from the story alone: nothing is
queued, so nothing can be lost with a process, and coming back to a branch whose folds were made elsewhere costs no call.

A story's summarizer is HEALTHY until a call fails, then in RETRY with growing pauses, then DEGRADED. It is tried again after a
while (RECOVERING), and what was missed is made up for. Memory is complete in every state: the extractive folds are there (I6).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from talekeeper import rim
from talekeeper.context.cuts import Step, Wish, has_canon, own_cut
from talekeeper.context.rendering import line
from talekeeper.errors import Conflict, InvalidInput, StoreClosed, StoreError, SummaryFailed, TalekeeperError, reason_of
from talekeeper.folds.nodes import ChildrenOf, Node, Path, in_order, pack_sentences, visible_text
from talekeeper.folds.trees import roots_until
from talekeeper.live.hot import Hot
from talekeeper.model import Health, HealthState, Sentence
from talekeeper.ports import Commit, Spending, StoryRecord, TextRecord
from talekeeper.story.races import retried
from talekeeper.summarize.janitor import Janitor, Piece
from talekeeper.tokens import estimate_tokens

log = logging.getLogger("talekeeper")


TRIES = 8
"""So often something is stored that others are faster with."""
REFUSALS = 16
"""After so many refused answers in a row, the model is given up like one that does not answer."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a failing model is tried: `attempts` in a row, the pause doubling from `pause` to `longest`; then again after
    `recover_after` seconds."""

    attempts: int = 3
    pause: float = 1.0
    longest: float = 30.0
    recover_after: float = 60.0

    def __post_init__(self) -> None:
        rim.whole(self.attempts, "attempts", least=1)
        for name in ("pause", "longest", "recover_after"):
            rim.seconds(getattr(self, name), name)

    def pause_after(self, failures: int) -> float:
        return min(self.longest, self.pause * 2.0 ** min(64, max(0, failures - 1)))


def worth_a_call(node: Node) -> bool:
    """Whether a model could make the fold shorter than the extractive one, which keeps small things whole."""
    return node.tokens > 2 * node.limit()


def due(roots: list[Node], path: Path, children_of: ChildrenOf, most: int, without: Collection[str] = ()) -> list[Node]:
    """Folds that wait for a model, newest first, none before what it is made of.

    What is worth no call may have parts that are: whether these get one must not depend on what else others have heard (I3)."""
    found: list[Node] = []

    def visit(node: Node) -> bool:
        if node.author or visible_text(node, path) is not None:
            return True
        if len(found) >= most or node.key in without:
            return False
        waiting = [child for child in reversed(children_of(node)) if not visit(child)] if node.level else []
        if not worth_a_call(node):
            return True
        if not waiting:
            found.append(node)
        return False

    for root in reversed(roots):
        visit(root)
    return found[:most]


class Ended(NamedTuple):
    """The health that a process with a model left behind."""

    state: str
    reason: str
    failures: int


class Folder:
    """Makes the model folds of one branch, and knows how the model is doing."""

    def __init__(self, hot: Hot, janitor: Janitor | None, policy: RetryPolicy, models_at_once: asyncio.Semaphore) -> None:
        self.hot = hot
        self.janitor = janitor
        self.policy = policy
        self.health = Health(summarizer="model" if janitor else "extractive")
        self.is_kept = True  # in memory, for whoever opens the story
        self._slots = models_at_once
        self._running = asyncio.Lock()
        self._steps: tuple[Step, ...] = ()
        self._given_up: dict[str, int] = {}  # folds, and how many tries they have left: none where the model answers but cannot make it
        self._has_spoken = False  # whether the model has made a fold since one was given up, or since those were last tried again
        self._spent: list[Spending] = []  # what no commit has told the store yet

    def moved(self) -> bool:
        """Whether any seat's cut has moved since the last time this was asked."""
        state = self.hot.state
        steps = tuple(
            Wish(seat, seat.id, seat.token_limit).step(state.views[seat.id].tokens, has_canon(state, seat.id))
            for seat in state.seats.values()
        )
        moved = steps != self._steps
        self._steps = steps
        return moved

    async def pending(self, most: int = 16, *, given_up: bool = False) -> list[Node]:
        """The folds that are due now. Nothing is due on a branch that has not moved since it left its parent (I4)."""
        hot = self.hot
        if self.janitor is None or hot.path.head <= hot.path.base:
            return []
        return await hot.supply(lambda: self._due(most, () if given_up else self._given_up))

    def _due(self, most: int, without: Collection[str]) -> list[Node]:
        hot, found = self.hot, dict[str, Node]()
        sources = hot.sources()
        for seat in hot.state.seats.values():
            if not hot.state.views[seat.id].turns:
                continue
            cut = own_cut(seat, seat.id, sources)
            for tree in hot.state.views[seat.id].trees:
                roots = roots_until(tree.roots(), cut, sources.children_of)
                found.update((node.key, node) for node in due(roots, hot.path, sources.children_of, most, without))
        return list(found.values())[:most]

    async def work(self) -> None:
        """Works in the background: until nothing is due, and again after a while for as long as the model is given up and the branch is
        in memory."""
        await self.settle()
        while self.is_kept and self.health.state is HealthState.DEGRADED:
            await asyncio.sleep(max(0.01, self.policy.recover_after))
            await self.settle()
        if not self.is_kept and self.hot.folder is self:
            self.hot.folder = None  # it was put away meanwhile: they hold each other

    @property
    def busy(self) -> bool:
        """Whether folds are being made just now."""
        return self._running.locked()

    async def settle(self) -> None:
        """Works until nothing is due, or until the model is given up for now.

        A fold that the model cannot make, for whatever reason, is left extractive and does not hold up the others."""
        if self.janitor is None:
            return
        before = self.health.state
        async with self._running:
            if self.health.state is HealthState.DEGRADED:
                if before is not HealthState.DEGRADED:
                    return  # given up by the one who was waited for
                self._given_up.clear()
                await self._report(replace(self.health, state=HealthState.RECOVERING))
            await self._make_all()
            if self.health.state is HealthState.RECOVERING:  # nothing was left that needed the model
                await self._report(Health(summarizer="model"))
            elif self._spent:  # on a text that came to nothing, since the story was rewound meanwhile
                await self._report(self.health)

    async def _make_all(self) -> None:
        silent = refused = 0
        moved: set[str] = set()
        while silent < 2 and refused < REFUSALS and (nodes := await self._next(most=1 if silent else 16)):
            generation = self.hot.shared.generation
            for node in nodes:
                if generation != self.hot.shared.generation:
                    break  # something may have been forgotten: they are to be looked at again
                again = node.key in self._given_up
                try:
                    failure = await self._fold(node.key, again)
                except Conflict:  # the log moved meanwhile, or a turn of it was forgotten: it is looked at again, if it is still due
                    if node.key in moved:
                        self._given_up[node.key] = self.policy.attempts
                    moved.add(node.key)
                    with suppress(Conflict):
                        await self.hot.refresh()
                    break
                if failure is None:
                    silent = refused = 0
                elif again:
                    self._given_up[node.key] -= 1  # the model is there: perhaps it is that fold
                elif failure.answered:
                    self._given_up[node.key] = 0
                    refused += 1  # perhaps it was that fold: the others are not to suffer for it
                else:
                    self._given_up[node.key] = self.policy.attempts
                    self._has_spoken = False
                    silent += 1
                    break

    async def _next(self, most: int) -> list[Node]:
        """The folds to make next: where no others are due and the model has spoken since, those that it did not answer before."""
        nodes = await self.pending(most)
        if nodes or not self._has_spoken:
            return nodes
        self._has_spoken = False
        over = [key for key, tries in self._given_up.items() if not tries]
        return [node for node in await self.hot.supply(lambda: self._due(most, over)) if node.key in self._given_up]

    async def _fold(self, key: str, once: bool) -> SummaryFailed | None:
        """Makes one fold, with retries unless it is tried `once`. Returns what stood against it, where it was given up. May raise
        `Conflict`."""
        while True:
            before = len(self._spent)
            try:
                node = await self._node(key)
                pieces = await self.hot.supply(partial(self._pieces, node))
                sentences = await self._sentences(node, pieces)
                has_spoken = len(self._spent) > before
                await self._commit(key, sentences, pieces)
            except SummaryFailed as failure:
                if once or not await self._failed(failure):
                    return failure
                continue
            self._given_up.pop(key, None)
            self._has_spoken = self._has_spoken or has_spoken
            if has_spoken and self.health.state is not HealthState.HEALTHY:  # the model has spoken, and well
                await self._report(Health(summarizer="model"))
            return None

    async def _node(self, key: str) -> Node:
        """The fold as it is now: whoever was loaded anew since has it without what was forgotten."""
        return await self.hot.supply(lambda: self.hot.state.shelf.node(key))

    async def _sentences(self, node: Node, pieces: list[Piece]) -> list[Sequence[Any]] | None:
        """What the model makes of the fold; None where it has done so on another branch, and no call is needed."""
        if node.texts:
            return None
        assert self.janitor is not None
        if sum(estimate_tokens(piece.text) for piece in pieces) <= node.limit():  # short enough as it is, or most of it was forgotten
            if node.level == 0:
                return pack_sentences(await self.hot.supply(lambda: self.hot.sources().sentences(node)))
            return pack_sentences(Sentence(piece.text, piece.sources, at=piece.at) for piece in pieces)
        async with self._slots:
            return pack_sentences(await self.janitor.summarize(pieces, node.known, node.limit(), self._spent.append))

    def _pieces(self, node: Node) -> list[Piece]:
        sources = self.hot.sources()
        if node.level == 0:
            turns = sources.turns_of(node.refs)
            return [Piece(line(turn).rstrip("\n"), (turn.id,)) for turn in turns if turn.text]
        told = in_order((child, sources.sentences(child)) for child in sources.children_of(node))
        return [Piece(sentence.text, sentence.sources, sentence.at) for sentence in told]

    async def _failed(self, failure: SummaryFailed) -> bool:
        """Notes a failure and waits before the next try. False where there is none."""
        failures = self.health.failures + 1
        trying = self.health.state in (HealthState.HEALTHY, HealthState.RETRY) and failures < self.policy.attempts
        state = HealthState.RETRY if trying else HealthState.DEGRADED
        await self._report(Health(state=state, reason=str(failure), failures=failures, summarizer="model"))
        if trying:
            await asyncio.sleep(self.policy.pause_after(failures))
        return trying

    async def _commit(self, key: str, made: list[Sequence[Any]] | None, pieces: list[Piece]) -> None:
        """Stores the text as born at the very head: no context that was shown before changes by it (I4). `SummaryFailed` where the
        store does not take it. Nothing is stored where the fold is no longer made of these pieces: a turn may have been forgotten."""
        hot = self.hot
        async with hot.lock:
            for _ in range(TRIES):
                if not hot.in_step:
                    await hot.refresh()
                record, node = hot.shared.record, await self._node(key)
                if hot.path.head <= hot.path.base or await hot.supply(partial(self._pieces, node)) != pieces:
                    return  # rewound, edited or forgotten meanwhile
                if made is None and not node.texts:
                    return  # forgotten with what it was made from
                sentences = [list(row) for row in node.texts[-1].sentences] if made is None else made
                try:
                    await hot.store(node)
                    text = TextRecord(key, hot.path.branch, hot.state.seq, sentences)
                    commit = Commit(
                        story=record.id, rev=record.rev, touch=True, heads={text.branch: text.born}, texts=[text],
                        spending=_sum(self._spent),
                    )  # fmt: skip
                    rev = await hot.shared.store.write(commit)
                except Conflict:
                    await hot.refresh()
                    continue
                except StoreClosed:
                    raise
                except (InvalidInput, StoreError) as exc:
                    reason = f"the model's summary could not be stored: {reason_of(exc)}"
                    raise SummaryFailed(reason, answered=isinstance(exc, InvalidInput)) from exc
                self._spent.clear()
                hot.add_text(text, rev)
                self._tell(self.health)
                return

    async def _report(self, health: Health) -> None:
        before, self.health = self.health, health
        self._tell(before)
        if before.state is not health.state:
            log.info("health", extra={"story": self.hot.shared.key.composite(), "state": health.state.value, "reason": health.reason})
        try:
            await self._store(health)
        except TalekeeperError as exc:
            log.warning("health not stored: %s", exc, extra={"story": self.hot.shared.key.composite(), "error": str(exc)})

    async def _store(self, health: Health) -> None:
        """Stores how the model is doing and what it has cost, also where someone else changes the story meanwhile."""
        hot = self.hot

        async def store() -> None:
            commit = Commit(
                story=hot.shared.record.id, rev=hot.shared.record.rev, spending=_sum(self._spent),
                health=_noted(health),
            )  # fmt: skip
            await hot.shared.store.write(commit)
            self._spent.clear()

        await retried(store, refresh=hot.refresh, tries=TRIES)

    def _tell(self, before: Health) -> None:
        """Something has changed for those who watch: a fold has come in, or the model's health is another."""
        for watcher in list(self.hot.watchers):
            try:
                watcher(before, self.health)
            except Exception:  # whoever watches must not stop the work
                log.exception("watcher failed", extra={"story": self.hot.shared.key.composite()})


def _noted(health: Health) -> dict[str, object]:
    """What the store remembers of a model's health."""
    return {"state": health.state.value, "reason": health.reason, "failures": health.failures}


def how_it_ended(record: StoryRecord) -> Ended | None:
    """How the last process that had a model ended, as the store remembers it; None where none ever had one."""
    noted = record.health
    if not (noted or record.spending.calls or record.spending.failures):
        return None
    failures = noted.get("failures", 0)
    return Ended(str(noted.get("state", "healthy")), str(noted.get("reason", "")), failures if isinstance(failures, int) else 0)


def _sum(spent: list[Spending]) -> Spending | None:
    return sum(spent, Spending()) if spent else None
