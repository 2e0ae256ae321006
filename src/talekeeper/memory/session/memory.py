"""The memory of one conversation: turns go in, a counted system message comes out. A thin face on one story.

Adding a turn is durable when it returns and never waits for a model. What is shown is made when it is asked for, from the log: there is
no buffer that a summary could overwrite, and no cursor that could run ahead of it. Whatever state a foreign store holds is taken in
before ours is written, turn by turn and by the turns' ids, so that neither of the two ever replaces the other.
"""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import logging
import os
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from operator import attrgetter, index
from types import TracebackType
from typing import Any, NamedTuple

from talekeeper import rim
from talekeeper.errors import InvalidInput, MemoryBudgetExceeded, MissingKey, StoreClosed, UnknownTurn, WrongType, quoted
from talekeeper.keeper import Keeper
from talekeeper.memory.session import entries, message, states
from talekeeper.memory.session.archive import Archive, result
from talekeeper.memory.session.config import ConversationTurn, ShortTermMemoryConfig
from talekeeper.memory.session.entries import ASSISTANT, USER
from talekeeper.memory.session.message import Pair
from talekeeper.model import Health, HealthState, MemoryKey, Recap, Seat
from talekeeper.ports import ChatModel, Store
from talekeeper.story.inside import recap_at_once
from talekeeper.story.story import Story
from talekeeper.summarize.janitor import Janitor

log = logging.getLogger("talekeeper")

EVERYTHING = 1_000_000_000
"""A token limit that no conversation reaches: nothing is ever due for a model."""
AT_ONCE = 1e-9
"""The share of its limit that raw turns may fill: older turns than a seat keeps are folded as soon as there are any."""


class Home:
    """The keeper behind memories: someone else's, or one of their own that is opened when it is first used and closed with them."""

    def __init__(
        self, keeper: Keeper | str | os.PathLike[str] | Store, config: ShortTermMemoryConfig, summarizer: ChatModel | Janitor | None
    ) -> None:
        if isinstance(keeper, Keeper) and summarizer is not None:
            raise InvalidInput("the keeper has a summarizer of its own: pass yours to talekeeper.open(…, summarizer=…)")
        self.own = not isinstance(keeper, Keeper)
        self.keeper = keeper if isinstance(keeper, Keeper) else Keeper(keeper, summarizer=summarizer, retry=config.retry)
        self._opening = asyncio.Lock()
        self._closed = False

    async def open(self) -> Keeper:
        if self._closed:
            raise StoreClosed("the memory was closed")
        if self.own:
            async with self._opening:
                await self.keeper
        return self.keeper

    async def close(self) -> None:
        self._closed = True
        if self.own:
            await self.keeper.close()


class Shown(NamedTuple):
    """What a prompt gets: the memory as JSON values, the message made of it, its tokens."""

    memory: dict[str, Any]
    text: str
    tokens: int


class DefaultShortTermMemory:
    """Remembers one conversation.

    `key`: whose it is. It may be left out only where nobody else can reach the conversation: with a keeper in memory of its own.
    `keeper`: where it is kept: an open `Keeper`, a file's path, a store, or in memory by default. `summarizer`: a chat model for
    `rolling_summary`; without one, summaries are extractive and nothing leaves the machine."""

    def __init__(
        self, config: ShortTermMemoryConfig | None = None, *, key: MemoryKey | None = None,
        keeper: Keeper | str | os.PathLike[str] | Store | Home = ":memory:", summarizer: ChatModel | Janitor | None = None,
    ) -> None:  # fmt: skip
        self.config: ShortTermMemoryConfig = config if config is not None else ShortTermMemoryConfig()
        if not isinstance(self.config, ShortTermMemoryConfig):
            raise WrongType(f"config must be a ShortTermMemoryConfig, not {type(config).__name__}")
        if key is None and keeper != ":memory:":
            raise MissingKey("no memory key: pass key=MemoryKey(tenant_id=…, user_id=…, session_id=…), or there is no memory to speak of")
        self.key: MemoryKey = rim.key(key) if key is not None else MemoryKey("own", "own", uuid.uuid4().hex)
        self._named = key is not None
        self._home = keeper if isinstance(keeper, Home) else Home(keeper, self.config, summarizer)
        self._shares_home = isinstance(keeper, Home)
        self._story: Story | None = None
        self._opening, self._saving, self._comparing = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._health = HealthState.HEALTHY
        self._stop: Callable[[], None] = lambda: None
        self._archive: Archive | None = None
        self._tokens = 0
        self._summary = ""
        self._tasks: set[asyncio.Task[None]] = set()

    # -- the conversation --------------------------------------------------------------------------------------------------

    async def add_turn(self, turn: ConversationTurn | Any, assistant: str | None = None, *, id: str | None = None) -> None:
        """Adds a question and its answer: as two texts, or as one `ConversationTurn` (or anything with `user_message` and
        `assistant_response`). Durable when it returns.

        `id`: an id of yours; adding it again adds nothing. A question that was added without its answer gets it by adding both under
        the same id, while no other turn came between."""
        told = _as_turn(turn, assistant)
        name = states.turn_id(id) if id is not None else uuid.uuid4().hex
        if self.config.strategy == "none":
            return
        story = await self._opened()
        await entries.add(story, Pair(name, told.user_message, told.assistant_response, digest=told.trajectory_digest, time=told.ts))
        self._call("on_turn_added", told)
        self._compare()

    async def get_llm_context(self) -> dict[str, Any]:
        """What is remembered, as JSON values under the name `conversation_memory`; `{}` where there is nothing, or memory is off.

        Raises `MemoryBudgetExceeded` under the policy `error`, and under no other."""
        shown = await self._shown()
        return {"conversation_memory": shown.memory} if shown.memory else {}

    async def system_message(self) -> str:
        """The same as a text to put before the conversation as a system message: read-only, delimited, and within the budget."""
        return (await self._shown()).text

    def estimate_tokens(self) -> int:
        """How many tokens the message had that was last made."""
        return self._tokens

    @property
    def health(self) -> HealthState:
        """How the summarizer is doing. Memory is complete in every state."""
        return self._health

    async def flush(self) -> None:
        """Waits until no turn waits for a summary, or the summarizer is given up for now (see `health`)."""
        if self.config.strategy == "rolling_summary":
            await (await self._opened()).settle()
            await self._compare_now()

    async def story(self) -> Story | None:
        """The story behind the memory, for everything that a story can do; None where memory is off."""
        return None if self.config.strategy == "none" else await self._opened()

    # -- opening and closing -----------------------------------------------------------------------------------------------

    async def _opened(self) -> Story:
        async with self._opening:
            keeper = await self._home.open()
            if self._story is None:
                story = await keeper.story(self.key, seats=self._seats())
                if self.config.strategy == "rolling_summary":
                    self._health = (await story.health()).state
                self._stop = story.watch(self._changed)
                self._story = story
            return self._story

    def _seats(self) -> list[Seat]:
        budget = self.config.budget
        folding = self.config.strategy == "rolling_summary"
        settings: dict[str, Any] = {
            "token_limit": max(1, budget.total_max_tokens) if folding else EVERYTHING,
            "fold_at": AT_ONCE if folding else 1.0, "keep": max(1, 2 * budget.full_zone_turns),
        }  # fmt: skip
        return [Seat(USER, name="User", **settings), Seat(ASSISTANT, role="npc", name="Assistant", **settings)]

    async def close(self) -> None:
        """Stops calling back, and closes the keeper if it is the memory's own. What was added is safe without it."""
        self.let_go()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._shares_home:
            await self._home.close()

    def let_go(self) -> None:
        """Stops watching the story; the next call takes it up again."""
        self._stop()
        self._story = None

    async def __aenter__(self) -> DefaultShortTermMemory:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # -- what is shown -----------------------------------------------------------------------------------------------------

    def _count(self, text: str) -> int:
        if self.config.token_estimator is None:
            return self._home.keeper.counter.count(text)
        tokens: object = self.config.token_estimator(text)
        try:
            return rim.whole(index(tokens), "what token_estimator returns")  # type: ignore[arg-type]
        except TypeError as exc:
            raise WrongType(f"token_estimator must return a whole number of tokens, not {type(tokens).__name__}") from exc

    @property
    def _adds_up(self) -> bool:
        """Whether counts of lines add up to the count of a text."""
        return self.config.token_estimator is None and self._home.keeper.counter.additive

    async def _shown(self) -> Shown:
        shown = Shown({}, "", 0) if self.config.strategy == "none" else await self._fitted()
        self._tokens = shown.tokens
        return shown

    async def _fitted(self) -> Shown:
        """The memory in its budget. What it takes is measured on the message itself; where counts of lines do not add up to that, it is
        made smaller until it fits."""
        limit, policy = self.config.budget.total_max_tokens, self.config.budget.overflow_policy
        summary, pairs = await self._whole()
        shown = self._measured(summary, pairs)
        if shown.tokens <= limit:
            return shown
        if policy == "error":
            raise MemoryBudgetExceeded(shown.tokens, limit)
        sizes = [message.size(pair, self._count) for pair in pairs]
        frame = self._count(message.SKELETON)
        allowed = limit
        while shown.tokens > limit:
            shown = self._measured(*(await self._reduced(pairs, sizes, allowed - frame) if allowed > frame else ("", [])))
            allowed = min(allowed - 1, allowed * limit // max(1, shown.tokens))
        return shown

    def _measured(self, summary: str, pairs: Sequence[Pair]) -> Shown:
        memory = message.compose(summary, pairs, self.config.budget.full_zone_turns)
        text = message.render(memory)
        return Shown(memory, text, self._count(text) if text else 0)

    async def _whole(self) -> tuple[str, list[Pair]]:
        """The summary, and all turns that are to be shown as they are."""
        zone, limit = self.config.budget.full_zone_turns, self._summary_limit()
        summary, pairs = await self._view(2 * zone, limit, pending=True)
        if len(pairs) > zone and not pairs[0].user:  # turns of a single entry among them: begin where a turn begins
            return await self._view(sum(pair.entries for pair in pairs[1:]), limit, pending=True)
        return summary, pairs

    async def _reduced(self, pairs: Sequence[Pair], sizes: Sequence[int], room: int) -> tuple[str, list[Pair]]:
        """Less than all: the newest turns that find room, and everything before them in the summary."""
        limit = self._summary_limit()
        held = min(limit, room // 2) if self.config.budget.overflow_policy == "truncate_oldest" else 0
        kept = message.newest_within(pairs, sizes, room - held)
        newest = list(pairs[len(pairs) - kept :])
        taken = sum(sizes[len(pairs) - kept :])
        if not kept and pairs:
            clipped = message.clip_pair(pairs[-1], room - held, self._count)
            newest = [clipped] if clipped else []
            taken = message.size(clipped, self._count) if clipped else 0
        summary, _ = await self._view(sum(pair.entries for pair in newest), min(limit, room - taken))
        return summary, newest

    def _summary_limit(self) -> int:
        return self.config.budget.summary_max_tokens if self.config.strategy == "rolling_summary" else 0

    async def _view(self, keep: int, limit: int, *, pending: bool = False) -> tuple[str, list[Pair]]:
        """The conversation in two: the newest `keep` entries as turns, and what came before as a summary within the limit."""
        story = await self._opened()
        room = limit - self._count(message.SUMMARY_OPEN) - self._count(message.SUMMARY_CLOSE)
        while True:
            recap = await recap_at_once(story, ASSISTANT, keep, max(0, room), pending and limit > 0)  # both hear everything
            told = message.disarm(recap.text)
            summary = message.SUMMARY_OPEN + told + message.SUMMARY_CLOSE if told else ""
            if not summary or (self._adds_up and told == recap.text) or self._count(summary) <= limit:
                return summary, await self._pairs(story, recap)
            room = min(room - 1, room * limit // self._count(summary))

    async def _pairs(self, story: Story, recap: Recap) -> list[Pair]:
        turns = [turn for turn in recap.turns if turn.text]
        return message.pairs_of(turns, await entries.digests(story, turns) if self.config.include_trajectory_digest else {})

    # -- telling others ----------------------------------------------------------------------------------------------------

    def _changed(self, before: Health, after: Health) -> None:
        """A model's fold has come in, or failed to."""
        self._health = after.state
        if before.state is not after.state:
            self._call("on_health_changed", before.state, after.state)
        self._compare()

    def _compare(self) -> None:
        """Looks soon whether the summary is another by now, where someone wants to know."""
        if self.config.on_summary_updated is not None and self.config.strategy == "rolling_summary":
            self._soon(_called("on_summary_updated", self._compare_now, ()))

    async def _compare_now(self) -> None:
        if self.config.on_summary_updated is None:
            return
        async with self._comparing:
            before, (self._summary, _) = self._summary, await self._whole()
            if before != self._summary:
                self._call("on_summary_updated", before, self._summary)

    def _call(self, name: str, *values: object) -> None:
        callback = getattr(self.config, name)
        if callback is not None:
            self._soon(_called(name, callback, values))

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- someone else's state store ----------------------------------------------------------------------------------------

    async def state(self) -> dict[str, Any]:
        """The whole conversation as JSON. `restore` takes it in again."""
        if self.config.strategy == "none":
            return states.dump_state("", "", [], 0, self._health)
        story = await self._opened()
        pairs = await entries.told(story)
        return states.dump_state(await entries.earlier(story), "", pairs, self.config.budget.full_zone_turns, self._health)

    async def restore(self, state: Mapping[str, Any]) -> None:
        """Takes in the turns of a state that this conversation does not have yet: all of them or, where one cannot be taken in, none.
        Nothing that is here is replaced."""
        stored = states.parse_state(state)
        if self.config.strategy != "none":
            await entries.take_in(await self._opened(), stored)

    async def hydrate(self, store: Any, key: str | None = None) -> None:
        """Takes in what `store.load_memory_state(key)` has of this conversation; nothing where the store has no such method."""
        name = self._own_key(key)
        if self.config.strategy != "none" and hasattr(store, "load_memory_state"):
            async with self._saving:
                await self._read(self._archive_in(store, name))

    async def persist(self, store: Any, key: str | None = None) -> None:
        """Gives the conversation to `store.save_memory_state(key, state)`; nothing where the store has no such method.

        What the store holds is taken in first, and an empty conversation is not saved: so nothing newer is ever overwritten."""
        name = self._own_key(key)
        if self.config.strategy == "none" or not hasattr(store, "save_memory_state"):
            return
        async with self._saving:
            archive = self._archive_in(store, name)
            await self._read(archive)
            await self._save(archive)

    async def _read(self, archive: Archive) -> None:
        await archive.read(partial(entries.take_in, await self._opened()))

    async def _save(self, archive: Archive) -> None:
        """Writes what the store does not have. Only what came after the last time is looked at, while the branch is the same and the
        store still has what it had."""
        story = await self._opened()
        branch, _, head = story.version.partition(".")
        before, _, seen = archive.seen.partition(".")
        came = await entries.told(story, int(seen) if before == branch and not archive.lacks else 0)
        news = [pair for pair in came if pair.id not in archive.ids and not pair.event]
        if archive.soiled or (before and before != branch):
            await archive.revise(partial(entries.now, story), all_pages=archive.soiled)
        if news or archive.owes or archive.is_behind(came):
            await self._write(story, archive, news)
        archive.seen, archive.lacks = f"{branch}.{head}", False

    async def _write(self, story: Story, archive: Archive, news: Sequence[Pair]) -> None:
        time = attrgetter("time")
        tail = list(heapq.merge(await entries.still_told(story, archive.tail), sorted(news, key=time), key=time))
        summary, _ = await self._view(2 * len(tail), self._summary_limit())
        await archive.write(tail, await entries.earlier(story), summary, self.config.budget.full_zone_turns, self._health)

    async def forget(self, turn: str, store: Any = None, key: str | None = None) -> None:
        """Forgets a turn for good, by its id: here, and in the state store, by default the one that was last used. There is no undo.

        What a store holds is looked through to its first page, and keeps the id, so that whoever else uses it forgets the turn as well
        with the next `hydrate` or `persist`. Where that fails, call it again."""
        if self.config.strategy == "none":
            return
        story, name = await self._opened(), rim.name(turn, "turn")
        found = await entries.forget(story, name)
        store = store if store is not None else self._archive.store if self._archive is not None else None
        if hasattr(store, "load_memory_state") and hasattr(store, "save_memory_state"):
            async with self._saving:
                found = await self._forget_in(self._archive_in(store, self._own_key(key)), story, name, found)
        if not found:
            raise UnknownTurn(f"this conversation has no turn {quoted(turn)}")

    async def _forget_in(self, archive: Archive, story: Story, name: str, found: bool) -> bool:
        """Leaves nothing of the turn in the store but its id; whether it was found, in the log before or there."""
        await self._read(archive)
        found = await entries.forget(story, name) or found or name in archive.ids | archive.forgotten
        if found:
            archive.forgotten.add(name)
            archive.soiled = archive.owes = True
            await self._save(archive)
        return found

    def _archive_in(self, store: Any, name: str) -> Archive:
        if self._archive is None or self._archive.store is not store or self._archive.name != name:
            self._archive = Archive(store, name)
        return self._archive

    def _own_key(self, key: str | None) -> str:
        """The name under which the conversation is stored. Another key's conversation is never touched."""
        if key is None:
            if not self._named:
                raise MissingKey("a memory without a key cannot be stored under one: pass key=… here, or to the memory")
            return self.key.composite()
        if self._named and rim.text(key, "key") != self.key.composite():
            raise InvalidInput(f"this is the memory of {self.key.composite()!r}: it cannot be stored or read as {quoted(key)}")
        return key


def _as_turn(turn: Any, assistant: str | None) -> ConversationTurn:
    if isinstance(turn, str):
        told = ConversationTurn(turn, "" if assistant is None else assistant)
    elif assistant is not None or not hasattr(turn, "user_message") or not hasattr(turn, "assistant_response"):
        raise WrongType(f"a turn is two texts, or has a user_message and an assistant_response; not {type(turn).__name__}")
    else:
        told = ConversationTurn(
            turn.user_message, turn.assistant_response, _as_json(getattr(turn, "trajectory_digest", None)), getattr(turn, "ts", None) or 0.0
        )
        rim.time(told.ts, "ts")
    for text, name in ((told.user_message, "user_message"), (told.assistant_response, "assistant_response")):
        if not isinstance(text, str):
            raise WrongType(f"{name} must be text, not {type(text).__name__}")
        if rim.seen(text):
            rim.text(text, name)
    if not rim.seen(told.user_message) and not rim.seen(told.assistant_response):
        raise InvalidInput("both halves of the turn are blank: there is nothing to remember")
    return told


def _as_json(digest: Any) -> Mapping[str, Any] | None:
    return dataclasses.asdict(digest) if dataclasses.is_dataclass(digest) and not isinstance(digest, type) else digest


async def _called(name: str, callback: Callable[..., Any], values: Sequence[object]) -> None:
    """Runs what nobody waits for; what goes wrong in it is logged."""
    try:
        await result(callback(*values))
    except Exception:  # someone else's code: it must not harm the conversation
        log.exception("callback failed", extra={"callback": name})
