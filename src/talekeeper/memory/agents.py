"""The agents' memory: for each seat a short-term buffer, a long-term summary and its character's facts. A face on a story.

    short_term_buffer     the turns that the seat heard since its buffer was last compressed, as they were said: `[DM]: …`
    long_term_summary     folds over everything before them

Nothing is copied: both are views of the one log. To compress a buffer is to say where the raw part begins; that is a mark of the log,
for this seat alone, so it is rewound with the story, survives a restart, and moves nobody else's view. Whatever the buffer no longer
shows is under a fold, so there is no gap between the two.

`context_manager` is to run before the dungeon master's turn. It waits for no model: folds are there already. After it everything fits
the seat's limit, headings included, also where two passes of compressing do not suffice.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, overload

from talekeeper import rim
from talekeeper.context.recipe import DEFAULT_RECIPE, FACTS_PART, KNOWLEDGE_PART, PINNED_PART, RECENT_PART, STORY_PART
from talekeeper.context.rendering import line
from talekeeper.errors import BudgetTooSmall, InvalidInput, WrongType, quoted
from talekeeper.memory.facts import CharacterFacts, Fact, character_facts, fit_facts, format_character_facts
from talekeeper.memory.parts import NEWEST_OF_EACH, newest_of_each
from talekeeper.model import LeftOut, Recap, Seat, Turn
from talekeeper.story.inside import check_story, heard_by_then
from talekeeper.story.marking import shaped
from talekeeper.story.story import Story

log = logging.getLogger("talekeeper")
T = TypeVar("T")

DM_CONTEXT_RECENT_EVENTS_LIMIT = 10
DM_CONTEXT_PLAYER_ENTRIES_LIMIT = NEWEST_OF_EACH
PC_CONTEXT_RECENT_EVENTS_LIMIT = 10
RETAIN_AFTER_COMPRESSION = 3
"""How many of the newest entries stay in a buffer that is compressed."""
MAX_COMPRESSION_PASSES = 2
"""How often a memory is compressed in one go before what is left is made to fit."""
NEAR = 0.8
SUMMARY_FLOOR = 32
"""Tokens below which a summary says nothing: then one entry less stays as it was."""
TOPIC = "buffer:"
_ATTRIBUTED = re.compile(r"\[([^\[\]\n]{1,200})\]:\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    """What an agent has in memory, at one moment. `short_term_buffer` has the newest entry last; `pinned` are turns that are kept word
    for word beside it."""

    long_term_summary: str = ""
    short_term_buffer: tuple[str, ...] = ()
    token_limit: int = 8000
    character_facts: CharacterFacts | None = None
    pinned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rim.whole(self.token_limit, "token_limit", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What `context_manager` did for an agent: its total tokens before and after, in how many passes, by whom the summary that is shown
    was made, what lost detail; `error` where it failed, and then nothing was changed."""

    agent: str
    token_limit: int
    before: int = 0
    after: int = 0
    passes: int = 0
    made_by: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    error: str = ""


class _Cut(NamedTuple):
    """How an agent's memory is shown: how many turns are folded, and what the summary and the facts may take (None: all they need)."""

    folded: int = 0
    room: int | None = None
    facts: int | None = None


@dataclass(slots=True)
class _Shown:
    """An agent's memory with what it was made of."""

    seat: Seat
    recap: Recap
    entries: list[Turn]
    memory: AgentMemory
    folded: int = 0
    dropped: list[Fact] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All of it under its headings, as it is counted."""
        memory = self.memory
        facts = format_character_facts(memory.character_facts)
        parts = (
            (_heading(self.seat), memory.long_term_summary), (RECENT_PART.heading, "\n".join(memory.short_term_buffer)),
            (PINNED_PART.heading, "\n".join(memory.pinned)), (FACTS_PART.heading, facts),
        )  # fmt: skip
        return _page(parts)


def _heading(seat: Seat) -> str:
    return DEFAULT_RECIPE.story_heading_dm if seat.role == "dm" else STORY_PART.heading


def _page(parts: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{heading}{text}\n" for heading, text in parts if text)


class MemoryManager:
    """The memory of a story's agents. Methods are async; for code without an event loop: `tk.sync.call(MemoryManager, story)`.

    An agent is a seat, by its id. One that the story does not have remembers nothing: it is answered with "", 0, False or an empty list.
    """

    def __init__(self, story: Story) -> None:
        check_story(story)
        if not isinstance(story, Story):
            raise WrongType(f"agents' memory is that of a Story, not of a {type(story).__name__}")
        self._story = story

    # -- looking ---------------------------------------------------------------------------------------------------------

    async def get_context(self, agent_name: str) -> str:
        """What goes into the agent's prompt, within its limit: what it remembers and its ten newest entries; for a DM also what the
        others know, the three newest entries of each. No entry of its buffer is left out: what is not among the ten is in the summary."""
        seat = self._seat(agent_name)
        if seat is None:
            return ""
        is_dm = seat.role == "dm"
        most = DM_CONTEXT_RECENT_EVENTS_LIMIT if is_dm else PC_CONTEXT_RECENT_EVENTS_LIMIT
        cut, heard = await self._cut(seat)
        entries, pins = await self._newest(seat, min(most, heard - cut.folded)), await self._pins(seat)
        known = await self._knowledge(int(seat.token_limit * KNOWLEDGE_PART.share)) if is_dm else ""
        keep, room = self._share(seat, entries, pins, known, past=heard > len(entries))
        summary = await self._summary(seat, keep, room if cut.room is None else min(room, cut.room))
        return _page([(_heading(seat), summary.text.rstrip("\n"))]) + _raw(entries[len(entries) - keep :], pins) + known

    async def agent_memory(self, agent_name: str) -> AgentMemory | None:
        """The agent's memory as a value; None where there is no such agent."""
        seat = self._seat(agent_name)
        return None if seat is None else (await self._shown(seat)).memory

    async def agent_memories(self) -> dict[str, AgentMemory]:
        """The memories of all agents, by their ids."""
        return {seat.id: (await self._shown(seat)).memory for seat in self._story.seats}

    async def get_long_term_summary(self, agent_name: str) -> str:
        """What stands in for all that is no longer in the agent's buffer."""
        memory = await self.agent_memory(agent_name)
        return memory.long_term_summary if memory is not None else ""

    async def get_buffer_entries(self, agent_name: str, limit: int = 10) -> list[str]:
        """The newest entries of the agent's buffer, the oldest of them first."""
        rim.whole(limit, "limit")
        seat = self._seat(agent_name)
        if seat is None:
            return []
        cut, heard = await self._cut(seat)
        return _lines(await self._newest(seat, min(limit, heard - cut.folded)))

    async def get_buffer_token_count(self, agent_name: str) -> int:
        """How many tokens the agent's whole buffer has."""
        seat = self._seat(agent_name)
        if seat is None:
            return 0
        cut, heard = await self._cut(seat)
        return self._count(await self._newest(seat, heard - cut.folded))

    async def is_near_limit(self, agent_name: str, threshold: float = NEAR) -> bool:
        """Whether the agent's buffer fills that share of its limit. Looks no further than it has to."""
        rim.number(threshold, "threshold")
        seat = self._seat(agent_name)
        if seat is None:
            return False
        enough = int(seat.token_limit * threshold)
        cut, heard = await self._cut(seat)
        size, most = 32, heard - cut.folded
        while True:
            if self._count(await self._newest(seat, min(size, most))) >= enough:
                return True
            if size >= most:
                return False
            size *= 2

    async def get_total_context_tokens(self, agent_name: str) -> int:
        """How many tokens the agent's summary, buffer and facts have together, headings and pinned turns included."""
        seat = self._seat(agent_name)
        return 0 if seat is None else self._story.counter.count((await self._shown(seat)).text)

    async def is_total_context_over_limit(self, agent_name: str) -> bool:
        """Whether all that is more than the agent's limit."""
        seat = self._seat(agent_name)
        return seat is not None and await self.get_total_context_tokens(agent_name) > seat.token_limit

    # -- changing --------------------------------------------------------------------------------------------------------

    async def add_to_buffer(self, agent_name: str, content: str | None) -> Turn | None:
        """Appends a turn that this agent hears, and every DM. `[Name]: …` says who speaks; without it, it is an event.

        For an agent that the story does not have nothing is added, and None returned."""
        rim.text(content, "content")
        assert content is not None
        seat = self._seat(agent_name)
        if seat is None:
            log.warning("nothing added to a buffer", extra={"agent": agent_name, "reason": "the story has no such seat"})
            return None
        said = _ATTRIBUTED.fullmatch(content)
        if said is None:
            return await self._story.append("", content, kind="event", heard_by=[seat.id])
        dm = next((other for other in self._story.seats if other.role == "dm" and said[1] in (other.label, "DM")), None)
        speaker = dm or seat
        return await self._story.append(speaker.id, said[2], heard_by=[seat.id], voice=None if said[1] == speaker.label else said[1])

    async def compress_buffer(self, agent_name: str, retain_count: int = RETAIN_AFTER_COMPRESSION) -> str:
        """Keeps the newest entries of the agent's buffer and gives the rest to its summary, which is returned; "" if there is nothing
        to compress. No other agent's memory changes."""
        rim.whole(retain_count, "retain_count")
        seat = self._seat(agent_name)
        if seat is None:
            return ""
        return await self.get_long_term_summary(agent_name) if await self._compress(seat, retain_count) else ""

    async def _compress(self, seat: Seat, retain: int) -> bool:
        cut, heard = await self._cut(seat)
        if heard - cut.folded <= retain:
            return False
        await self._set(seat, cut._replace(folded=heard - retain))
        return True

    async def compress_long_term_summary(self, agent_name: str) -> str:
        """Tells the agent's summary in half the tokens it has now, by coarser folds, and returns it; "" if it cannot be shorter."""
        seat = self._seat(agent_name)
        if seat is None:
            return ""
        shown = await self._shown(seat)
        if not shown.memory.long_term_summary:
            return ""
        room = max(SUMMARY_FLOOR, shown.recap.tokens // 2)
        if room >= shown.recap.tokens:
            log.warning("summary not compressed", extra={"agent": agent_name, "reason": "it is as short as it can be"})
            return ""
        await self._set(seat, (await self._cut(seat))[0]._replace(room=room))
        return await self.get_long_term_summary(agent_name)

    async def manage(self, agent_name: str) -> AgentReport:
        """What `context_manager` does for one agent."""
        seat = self._seat(agent_name)
        if seat is None:
            raise InvalidInput(f"the story has no agent {quoted(agent_name)}; it has: {', '.join(other.id for other in self._story.seats)}")
        count, passes = self._story.counter.count, 0
        shown = await self._shown(seat)
        before = after = count(shown.text)
        if self._count(shown.entries) >= int(seat.token_limit * seat.fold_at) and await self._compress(seat, seat.keep):
            passes += 1
            shown = await self._shown(seat)
            after = count(shown.text)
        while passes < MAX_COMPRESSION_PASSES and after > seat.token_limit and await self.compress_long_term_summary(agent_name):
            passes += 1
            shown = await self._shown(seat)
            after = count(shown.text)
        if after > seat.token_limit:
            await self._make_fit(seat, shown)
            shown = await self._shown(seat)
        return AgentReport(
            agent=agent_name, token_limit=seat.token_limit, before=before, after=count(shown.text), passes=passes,
            made_by=await self._made_by(shown), left_out=self._left_out(shown),
        )  # fmt: skip

    async def _make_fit(self, seat: Seat, shown: _Shown) -> None:
        """Divides the limit: what is pinned, as many of the newest entries as there is room for, facts by rank, and the rest for folds."""
        cut, heard = await self._cut(seat)
        pins = await self._pins(seat)
        for facts in (int(seat.token_limit * FACTS_PART.share), 0):
            taken, _ = fit_facts(shown.memory.character_facts, facts, self._story.counter.count)
            others = _page([(FACTS_PART.heading, format_character_facts(taken))])
            keep, room = self._share(seat, shown.entries, pins, others, past=cut.folded > 0)
            if keep or not facts:
                break
        await self._set(seat, _Cut(heard - keep, room, facts))
        while room and await self.is_total_context_over_limit(seat.id):  # counts of parts need not add up to the count of the whole
            room = int(room * 0.8)
            await self._set(seat, _Cut(heard - keep, room, facts))

    # -- parts -----------------------------------------------------------------------------------------------------------

    def _seat(self, agent_name: str) -> Seat | None:
        return next((seat for seat in self._story.seats if seat.id == agent_name), None)

    async def _cut(self, seat: Seat) -> tuple[_Cut, int]:
        """How the agent's memory is shown, and how many turns it has heard."""
        heard = (await heard_by_then(self._story, seat.id, [self._story.head]))[0]
        marks = shaped(await self._story.marks(seat.id, f"{TOPIC}{seat.id}"), folded=int, room=int | None, facts=int | None)
        data = marks[-1].data if marks else {}
        return _Cut(**{name: data[name] for name in _Cut._fields if name in data}), heard

    async def _set(self, seat: Seat, cut: _Cut) -> None:
        await self._story.mark(f"{TOPIC}{seat.id}", cut._asdict(), heard_by=[seat.id], keep=1)

    async def _newest(self, seat: Seat, count: int) -> list[Turn]:
        return [turn for turn in (await self._story.recap(seat.id, keep=count, budget=0)).turns if turn.text] if count > 0 else []

    async def _summary(self, seat: Seat, keep: int, room: int) -> Recap:
        """Folds over everything but the newest entries."""
        return await self._story.recap(seat.id, keep=keep, budget=room, folded=True)

    async def _shown(self, seat: Seat) -> _Shown:
        cut, heard = await self._cut(seat)
        room = int(seat.token_limit * STORY_PART.share) if cut.room is None else cut.room
        recap = await self._summary(seat, heard - cut.folded, room)
        entries = [turn for turn in recap.turns if turn.text]
        facts = None if seat.role == "dm" else await character_facts(self._story, seat.id)
        dropped: list[Fact] = []
        if cut.facts is not None:
            facts, dropped = fit_facts(facts, cut.facts, self._story.counter.count)
        memory = AgentMemory(
            long_term_summary=recap.text.rstrip("\n"), short_term_buffer=tuple(_lines(entries)), token_limit=seat.token_limit,
            character_facts=facts or None, pinned=tuple(_lines(_beside(entries, await self._pins(seat)))),
        )  # fmt: skip
        return _Shown(seat, recap, entries, memory, cut.folded, dropped)

    async def _pins(self, seat: Seat) -> list[Turn]:
        return [turn for turn in await self._story.pins() if seat.id in turn.audience]

    async def _knowledge(self, room: int) -> str:
        """What the others know, one line each; who does not fit the room is left out."""
        lines: list[str] = []
        async for seat, _, newest in newest_of_each(self._story):
            told = f"[{seat.id} knows]: {newest}\n"
            if self._story.counter.count(KNOWLEDGE_PART.heading + "".join(lines) + told) <= room:
                lines.append(told)
        return KNOWLEDGE_PART.heading + "".join(lines) if lines else ""

    def _count(self, turns: Sequence[Turn]) -> int:
        return self._story.counter.count("".join(line(turn) for turn in turns))

    def _share(self, seat: Seat, entries: Sequence[Turn], pins: Sequence[Turn], others: str, *, past: bool) -> tuple[int, int]:
        """How many of the newest entries stay as they were, and what is left for the summary of the rest."""
        count, limit = self._story.counter.count, seat.token_limit
        if pins and (needed := count(_raw([], pins))) > limit:
            raise BudgetTooSmall(needed, limit)
        left = 0
        for keep in range(len(entries), -1, -1):
            left = limit - count(_raw(entries[len(entries) - keep :], pins) + others)
            if past or keep < len(entries):
                left -= count(_heading(seat))
                if left >= SUMMARY_FLOOR:
                    return keep, left
            elif left >= 0:
                return keep, 0
        return 0, max(0, left)

    async def _made_by(self, shown: _Shown) -> tuple[str, ...]:
        folds = [fold for item in shown.recap.items for fold in item.folds]
        makers = {(await self._story.fold(fold)).made_by for fold in folds}
        return tuple(sorted(makers or ({"extractive"} if shown.recap.items else set())))

    def _left_out(self, shown: _Shown) -> tuple[LeftOut, ...]:
        left: list[LeftOut] = []
        if shown.folded:
            reason = "folded" if shown.recap.items else "below floor"
            left.append(LeftOut(block=STORY_PART.name, reason=reason, turn_count=shown.folded, tokens=0))  # type: ignore[arg-type]
        count = self._story.counter.count
        for fact in shown.dropped:
            tokens = count(f"- {fact.text}\n")
            left.append(LeftOut(block=FACTS_PART.name, reason="no room", turn_count=len(fact.sources), tokens=tokens, sources=fact.sources))
        return tuple(left)


def _lines(turns: Sequence[Turn]) -> list[str]:
    return [line(turn).rstrip("\n") for turn in turns]


def _beside(entries: Sequence[Turn], pins: Sequence[Turn]) -> list[Turn]:
    """What is pinned and not among the entries."""
    ids = {turn.id for turn in entries}
    return [turn for turn in pins if turn.id not in ids]


def _raw(entries: Sequence[Turn], pins: Sequence[Turn]) -> str:
    """What is shown as it was said."""
    pinned = _beside(entries, pins)
    return _page([(RECENT_PART.heading, "\n".join(_lines(entries))), (PINNED_PART.heading, "\n".join(_lines(pinned)))])


# -- before the dungeon master's turn ----------------------------------------------------------------------------------------


@overload
async def context_manager(state: Story) -> dict[str, AgentReport]: ...
@overload
async def context_manager(state: Mapping[str, Any]) -> dict[str, Any]: ...
async def context_manager(state: Story | Mapping[str, Any]) -> dict[str, Any]:
    """Makes every agent's memory fit its limit. Run it before the dungeon master's turn; it waits for no model.

    Of a story it returns a report per agent. As a node of a graph it takes the state, with the story under "story", and returns it with
    the reports under "memory_reports". One agent's failure is in its report and harms no other."""
    if isinstance(state, Mapping):
        if "story" not in state:
            raise InvalidInput('the state has no story: put it under "story"')
        reports = await context_manager(state["story"])
        return {**state, "memory_reports": reports, "summarization_in_progress": False}
    manager = MemoryManager(state)
    return {seat.id: await _safely(seat, manager.manage) for seat in state.seats}


async def _safely(seat: Seat, work: Callable[[str], Awaitable[AgentReport]]) -> AgentReport:
    try:
        return await work(seat.id)
    except Exception as exc:  # whatever one agent's data is like, the others get their turn
        log.warning("an agent's memory was left as it is", extra={"agent": seat.id, "error": f"{type(exc).__name__}: {exc}"})
        return AgentReport(agent=seat.id, token_limit=seat.token_limit, error=f"{type(exc).__name__}: {exc}")
