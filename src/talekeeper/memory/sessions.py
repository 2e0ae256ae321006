"""Sessions: what happened in each of them, and what to say when the story is taken up again. A face on a story.

A campaign is one story, and a session is what lies between two of its markers (`begin_session`). What happened in one is told by the
folds that lie in it; nothing outside is read, and the log is not read at all. Everything is told to one seat, from what that seat
heard: its own facts, its own loose ends, the moments it knows of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from talekeeper import rim
from talekeeper.context.assembly import Row, choose, note_row
from talekeeper.context.recipe import FACTS_PART, LOOSE_ENDS_PART, MOMENTS_PART, RECENT_PART, STORY_PART, Note
from talekeeper.context.rendering import line
from talekeeper.errors import InvalidInput, quoted
from talekeeper.memory.callbacks import callback_notes, find_callbacks
from talekeeper.memory.facts import character_facts, fact_notes
from talekeeper.memory.moments import AdventureMoment, adventure_moments, moment_notes
from talekeeper.model import Block, Context, Item, LeftOut, Turn
from talekeeper.story.inside import check_story, heard_by_then
from talekeeper.story.remembering import Remembering

LAST_TURNS = 3
LOOSE_ENDS = 5
LAST_SESSION = "session"
_SHOWN = (STORY_PART.name, LAST_SESSION, FACTS_PART.name, MOMENTS_PART.name, LOOSE_ENDS_PART.name, RECENT_PART.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as the seat knows it. `turn`: the number of its first turn in the seat's own count. `after` and `before`: the entries
    between which it lies; `before` is None while it lasts."""

    number: int
    title: str
    turn: int
    after: int
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What happened in a session, for one seat: folds as one text, and the moments that the seat knows of."""

    number: int
    title: str
    text: str
    tokens: int
    sources: tuple[str, ...] = ()
    moments: tuple[AdventureMoment, ...] = ()


Marker: TypeAlias = "list[Any]"
"""Where a session begins, and its title: a list, as it comes back from the store."""


class SessionsRead:
    """Finds where sessions begin. A `Gathering`."""

    name = "sessions.1"

    def read(self, turns: Sequence[Turn]) -> list[Marker]:
        """The markers among some turns."""
        return [[turn.seq, turn.text] for turn in turns if turn.kind == "session"]

    def merge(self, parts: Sequence[list[Marker]]) -> list[Marker]:
        """All of them in order, the newest thousand."""
        return sorted([list(marker) for part in parts for marker in part], key=itemgetter(0))[-1000:]


READER = SessionsRead()


async def list_sessions(story: Remembering, seat: str) -> list[Session]:
    """The sessions that the seat heard begin, from number 1 on; 0 is what came before the first, if anything did."""
    check_story(story)
    marks: list[Marker] = await story.gather(seat, READER)
    numbers = await heard_by_then(story, seat, [seq for seq, _ in marks])
    rows = [(number, title, turn, seq) for number, ((seq, title), turn) in enumerate(zip(marks, numbers, strict=True), 1)]
    if not numbers or numbers[0] > 1:  # something was heard before the first
        rows.insert(0, (0, "", 1, 0))
    ends: list[int | None] = [*(seq for *_, seq in rows[1:]), None]
    return [
        Session(number=number, title=title, turn=turn, after=seq, before=end)
        for (number, title, turn, seq), end in zip(rows, ends, strict=True)
    ]


async def session_summary(story: Remembering, seat: str, number: int, *, budget: int = 500) -> SessionSummary:
    """What happened in that session, as the seat knows it, in at most `budget` tokens."""
    rim.whole(number, "number")
    known = {session.number: session for session in await list_sessions(story, seat)}
    if number not in known:
        raise InvalidInput(f"the seat {seat!r} knows of no session {quoted(number)}; it knows of: {', '.join(map(str, known))}")
    session = known[number]
    told = await story.stretch(seat, after=session.after, before=session.before, budget=rim.whole(budget, "budget"))
    ends = (await heard_by_then(story, seat, [session.before]))[0] if session.before is not None else None
    moments = [one for one in await adventure_moments(story, seat) if session.turn <= one.turn and (ends is None or one.turn < ends)]
    sources = tuple(dict.fromkeys(source for item in told.items for source in item.sources))
    return SessionSummary(
        number=number, title=session.title, text=told.text.rstrip("\n"), tokens=told.tokens, sources=sources, moments=tuple(moments)
    )


async def recap(story: Remembering, seat: str, *, budget: int = 800) -> Context:
    """What to tell the seat when the story is taken up again: what happened before, the session before this one, who it is, what
    is still open, what mattered most, and the last scene."""
    rim.whole(budget, "budget")
    known = await list_sessions(story, seat)
    last = known[-2] if len(known) > 1 else known[-1]
    moments = await adventure_moments(story, seat)
    scene = await story.turns(seat=seat, before=last.before, after=last.after, newest=True, limit=LAST_TURNS)
    notes: list[tuple[str, str, float, Sequence[Note]]] = [
        (FACTS_PART.name, "## Who You Are\n", 0.15, fact_notes(await character_facts(story, seat))),
        (LOOSE_ENDS_PART.name, LOOSE_ENDS_PART.heading, 0.2, callback_notes(await find_callbacks(story, seat, limit=LOOSE_ENDS))),
        (MOMENTS_PART.name, "## What Mattered\n", 0.15, moment_notes(moments)),
    ]
    page = _Page(story, seat, budget)
    page.lines(RECENT_PART.name, "## The Last Scene\n", 0.3, [_item(story, turn) for turn in scene])
    for name, heading, share, rows in notes:
        page.notes(name, heading, share, rows)
    await page.folds(LAST_SESSION, f"## Last Time{f': {last.title}' if last.title else ''}\n", 0.6, last.after, last.before)
    if last.after:
        await page.folds(STORY_PART.name, "## Before That\n", 1.0, 0, last.after)
    return page.context(_SHOWN)


def _item(story: Remembering, turn: Turn) -> Item:
    text = line(turn)
    return Item(text=text, tokens=story.counter.count(text), kind="turn", sources=(turn.id,))


class _Page:
    """A context that is filled part by part: each takes its share of what is left of the budget."""

    def __init__(self, story: Remembering, seat: str, budget: int) -> None:
        self._story = story
        self._seat = seat
        self._budget = self._left = budget
        self._count = story.counter.count
        self._blocks: dict[str, Block] = {}
        self._left_out: list[LeftOut] = []

    def lines(self, name: str, heading: str, share: float, items: Sequence[Item]) -> None:
        """Items, the newest first, in their order."""
        self._choose(name, heading, share, [Row(item, rank) for rank, item in enumerate(items)])

    def _choose(self, name: str, heading: str, share: float, rows: Sequence[Row]) -> None:
        room = int(self._left * share) - self._count(heading)
        taken, dropped = choose(rows, room, self._count)
        self._put(name, heading, taken)
        for item in dropped:
            self._left_out.append(
                LeftOut(block=name, reason="no room", turn_count=len(item.sources), tokens=item.tokens, sources=item.sources)
            )

    def notes(self, name: str, heading: str, share: float, notes: Sequence[Note]) -> None:
        """Notes, by their rank."""
        self._choose(name, heading, share, [note_row(note, self._count) for note in notes])

    async def folds(self, name: str, heading: str, share: float, after: int, before: int | None) -> None:
        """What the seat heard between two entries."""
        room = max(0, int(self._left * share) - self._count(heading))
        self._put(name, heading, (await self._story.stretch(self._seat, after=after, before=before, budget=room)).items)

    def _put(self, name: str, heading: str, items: Sequence[Item]) -> None:
        if items:
            tokens = self._count(heading) + sum(item.tokens for item in items)
            self._blocks[name] = Block(name=name, heading=heading, items=tuple(items), tokens=tokens, stable=False)
            self._left -= tokens

    def context(self, order: Sequence[str]) -> Context:
        """All of it; parts go where counts do not add up."""
        blocks = [self._blocks[name] for name in order if name in self._blocks]
        while blocks and self._count("".join(block.text for block in blocks)) > self._budget:
            gone = blocks.pop(0)
            self._left_out.append(LeftOut(block=gone.name, reason="no room", turn_count=len(gone.sources), tokens=gone.tokens))
        text = "".join(block.text for block in blocks)
        return Context(
            seat=self._seat, budget=self._budget, text=text, tokens=self._count(text) if text else 0, stable_tokens=0,
            counter=self._story.counter.id, blocks=tuple(blocks), left_out=tuple(self._left_out),
        )  # fmt: skip
