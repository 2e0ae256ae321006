"""Remembering: what a seat knows under a budget, what it recalls, and the log itself. The reading half of a story.

Nothing here changes a story. What is in memory is used as it is; what is missing is loaded; what another process wrote meanwhile is
taken in first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest

from talekeeper import rim
from talekeeper.context.assembly import PINNED, Row, assemble, note_row, turn_rows
from talekeeper.context.cuts import Wish, has_canon
from talekeeper.context.paragraphs import Line, Unfold, as_fold
from talekeeper.context.plan import MORE_TO_CHOOSE, Plan, make_plan, make_recap, make_stretch
from talekeeper.context.recipe import DEFAULT_RECIPE, HIGHLIGHTS_PART, PINNED_PART, RECALL_PART, Note, Part, Recipe, mark_note
from talekeeper.errors import BudgetTooSmall, InvalidInput, UnknownTurn, WrongType, quoted
from talekeeper.folds.nodes import Missing
from talekeeper.folds.state import COMMON
from talekeeper.folds.trees import roots_until
from talekeeper.live.hot import FURLED
from talekeeper.model import (
    AUTHOR_KINDS,
    HEARD_KINDS,
    Context,
    Fold,
    Marked,
    MemoryKey,
    Recap,
    Recollection,
    Seat,
    Turn,
    TurnRef,
)
from talekeeper.ports import Span, TokenCounter
from talekeeper.story.marking import Gathering, V, gather, read_marks, topics
from talekeeper.story.recalling import recollect
from talekeeper.story.tracing import Tracing

PAGE = 512
"""So many entries of the log are read at once; fewer, where only a few are wanted."""
PATIENCE = 3
"""How often a read begins again because the story was loaded anew meanwhile; after that it takes the lock, and rewinds have to wait."""


class Remembering(Tracing):
    """Reads one branch of a story."""

    @property
    def key(self) -> MemoryKey:
        return self._hot.shared.key

    @property
    def branch(self) -> str:
        """The name of the branch that this story is on."""
        return self._hot.name

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(self._hot.state.seats.values())

    @property
    def head(self) -> int:
        """The number of the newest entry, as far as this process has read."""
        return self._hot.state.seq

    @property
    def turn_count(self) -> int:
        """How many turns there are on this branch that can be heard: without edits, pins and other entries of the author."""
        return self._hot.state.turns

    @property
    def counter(self) -> TokenCounter:
        """Who counts tokens."""
        return self._hot.shared.counter

    def presence(self) -> Mapping[str, str | None]:
        """Where each seat that has been placed is now; None for those who left."""
        return dict(self._hot.state.presence)

    async def context(
        self, seat: str, *, budget: int | None = None, query: str | None = None, recipe: Recipe = DEFAULT_RECIPE,
        extras: Mapping[str, Sequence[Note]] | None = None,
    ) -> Context:  # fmt: skip
        """What the seat remembers, in at most `budget` tokens (by default its limit), with its sources and with what was left out.

        `query` brings back turns that answer it. `extras` fills the recipe's other parts (facts, moments, …), by their names."""
        hot = self._hot
        await hot.seated(seat)
        if budget is not None:
            rim.whole(budget, "budget")
        if query is not None:
            rim.query(query)
        if not isinstance(recipe, Recipe):
            raise WrongType(f"recipe must be a Recipe, not {type(recipe).__name__}")
        given = rim.extras(extras)
        for notes in given.values():
            for note in notes:
                _check_note(note)

        async def look() -> Context:
            if hot.head - hot.saved_at > FURLED:
                await hot.unfurl()
            who = hot.seats[seat]
            room = who.token_limit if budget is None else budget
            hits = await recollect(hot, seat, query, tokens=room) if query is not None else []
            notes = {**await self._noted(seat, recipe), **given} if hot.state.marks else given
            return await self._context(who, seat, room, recipe, notes, hits)

        return await self._steadily(look)

    async def _steadily(self, look: Callable[[], Awaitable[V]]) -> V:
        """What is found in the story as it stands now. Should all of it be loaded anew meanwhile (someone went back, or a turn was
        forgotten), what was found holds no more, nor does what went wrong: then it is looked at again."""
        for _ in range(PATIENCE):
            if found := await self._undisturbed(look):
                return found[0]
        async with self._hot.lock:  # now nobody of this process goes back meanwhile
            while not (found := await self._undisturbed(look)):
                pass
            return found[0]

    async def _undisturbed(self, look: Callable[[], Awaitable[V]]) -> tuple[V] | None:
        hot = self._hot
        await hot.refresh()
        loaded = hot.loaded
        try:
            found = await look()
        except Exception:
            if loaded is hot.loaded:
                raise
            return None
        return (found,) if loaded is hot.loaded else None

    async def _noted(self, seat: str, recipe: Recipe) -> dict[str, Sequence[Note]]:
        """What the parts with a topic show."""
        shown = {part.name: await self._noted_in(seat, part) for part in recipe.volatile if part.topic}
        return {name: notes for name, notes in shown.items() if notes}

    async def _noted_in(self, seat: str, part: Part) -> list[Note]:
        """The best of a topic's marks that say what the part shows, in order of time."""
        notes: list[tuple[Marked, Note]] = []
        for limit in (part.most, 4 * part.most, 16 * part.most):  # what is passed over takes nobody's place, within reason (I9)
            marks = await read_marks(self._hot, seat, part.topic, limit)
            notes = [(mark, note) for mark in marks if (note := mark_note(part, mark)) is not None]
            if len(notes) >= part.most or len(marks) < limit:
                break
        best = {mark.id for mark, _ in nlargest(part.most, notes, key=lambda row: (row[0].rank, row[0].seq))}
        return [note for mark, note in notes if mark.id in best]

    async def _context(
        self, seat: Seat, view: str, budget: int, recipe: Recipe, extras: Mapping[str, Sequence[Note]], hits: Sequence[tuple[Line, float]]
    ) -> Context:
        hot = self._hot
        counter = hot.shared.counter
        if not extras and not hits and not hot.state.pins and counter.additive:  # nothing but the stable part
            wish = Wish(seat, view, budget, recipe, self._whole(view, budget, recipe, {}) if recipe.highlights else 0)
            try:
                plan = self._plan(wish)
            except Missing:
                plan = await hot.supply(lambda: self._plan(wish))
            if not plan.highlights:
                return assemble(wish, plan, {}, budget, counter.id, counter.count)
        unknown = set(extras) - {part.name for part in recipe.volatile}
        if unknown:
            raise InvalidInput(
                f"the recipe has no part {quoted(min(unknown, key=str))}; it has: {', '.join(part.name for part in recipe.volatile)}"
            )
        pins = await self._pins(view)
        rows = {name: [note_row(note, counter.count) for note in notes] for name, notes in extras.items()}
        kept = self._kept(rows, pins, recipe)
        if kept > budget:
            raise BudgetTooSmall(kept, budget)
        allowed = budget - kept
        while True:
            wish = Wish(seat, view, allowed, recipe, self._whole(view, allowed, recipe, rows) if recipe.highlights else 0)
            context = await self._fill(wish, budget, rows, pins, hits)
            if counter.additive or not context.text:
                return context
            exact = counter.count(context.text)  # counts of lines do not add up: measure the whole, and go down until it fits
            if exact <= budget:
                stable = counter.count("".join(block.text for block in context.blocks if block.stable))
                return context._replace(tokens=exact, stable_tokens=stable)
            if not allowed:
                return context._replace(text="", tokens=0, stable_tokens=0, blocks=())
            allowed = min(allowed - 1, int(allowed * budget / exact))
            rows = {name: [row for row in each if row.rank == PINNED] for name, each in rows.items()}
            hits = ()

    def _whole(self, view: str, budget: int, recipe: Recipe, rows: Mapping[str, Sequence[Row]]) -> int:
        """How long a view may be to be shown as it is, beside what else there is to say, by a recipe with highlights."""
        headings = recipe.recent_heading + (recipe.canon_heading if has_canon(self._hot.state, view) else "")
        headings += "".join(part.heading for part in recipe.volatile if rows.get(part.name))
        beside = sum(row.item.tokens for each in rows.values() for row in each if row.rank != PINNED)
        return budget - beside - self._hot.shared.counter.count(headings)

    def _kept(self, rows: Mapping[str, Sequence[Row]], pins: Sequence[Line], recipe: Recipe) -> int:
        """What pinned things take of a budget, with their headings."""
        texts = {name: "".join(row.item.text for row in each if row.rank == PINNED) for name, each in rows.items()}
        texts[PINNED_PART.name] = texts.get(PINNED_PART.name, "") + "".join(line.item.text for line in pins)
        return self._hot.shared.counter.count("".join(part.heading + texts[part.name] for part in recipe.volatile if texts.get(part.name)))

    async def _fill(
        self, wish: Wish, budget: int, rows: Mapping[str, Sequence[Row]], pins: Sequence[Line], hits: Sequence[tuple[Line, float]]
    ) -> Context:
        hot, count = self._hot, self._hot.shared.counter.count
        plan = await hot.supply(lambda: self._plan(wish))
        filled = dict(rows)
        if pins or hits or plan.highlights:
            items = [*plan.items, *(item for block in plan.blocks for item in block.items if item.kind == "turn")]
            shown = {source for item in items for source in item.sources}
            whole = {source for item in items if not item.clipped for source in item.sources}
            kept = (Row(line.item, PINNED) for line in pins if line.turn.id not in whole)
            filled[PINNED_PART.name] = [*rows.get(PINNED_PART.name, ()), *kept]
            shown.update(line.turn.id for line in pins)
            recalled = [(line, score) for line, score in hits if line.turn.id not in shown]
            filled[RECALL_PART.name] = [*rows.get(RECALL_PART.name, ()), *turn_rows(recalled)]
            left = budget - plan.tokens - plan.recent_tokens - sum(row.item.tokens for row in filled[RECALL_PART.name])
            shown.update(line.turn.id for line, _ in hits)
            telling = [(line, -float(place)) for place, line in enumerate(_few(plan.highlights, left)) if line.turn.id not in shown]
            filled[HIGHLIGHTS_PART.name] = [*rows.get(HIGHLIGHTS_PART.name, ()), *turn_rows(telling)]
        return assemble(wish, plan, filled, budget, hot.shared.counter.id, count)

    def _plan(self, wish: Wish) -> Plan:
        """The stable part, from the last one where that still holds."""
        hot = self._hot
        key = (wish.view, wish.budget, id(wish.recipe))
        state = hot.state
        plan = hot.plans.get(key)
        if plan is not None and plan.epoch == state.epoch and plan.holds(wish, state.views[wish.view].tokens):
            return plan
        plan = make_plan(wish, hot.sources())
        if wish.view != COMMON and plan.lasting:
            if len(hot.plans) >= 64:
                hot.plans.clear()
            hot.plans[key] = plan
        return plan

    async def _pins(self, view: str) -> list[Line]:
        hot = self._hot
        state = hot.state
        mine = [at for at, channel in state.pins.values() if view in state.hearers(channel)]
        if not mine:
            return []
        lines = await hot.supply(lambda: hot.lines_at(mine))
        return sorted((line for line in lines if line.item.text), key=lambda line: line.seq)

    async def recall(self, seat: str, query: str, *, limit: int = 5) -> list[Recollection]:
        """The turns that the seat heard which answer the query best, best first. What was said several times, by the same speaker in the
        same words and at the same story time, is there once: where it answers best, and of equals the newest."""
        hot = self._hot
        await hot.seated(seat)
        rim.whole(limit, "limit")
        rim.query(query)
        found = await self._steadily(lambda: recollect(hot, seat, query, limit=limit, own=True))
        return [Recollection(turn=line.turn, score=score) for line, score in found]

    async def brief(self, seat: str, *, budget: int | None = None) -> Context:
        """What a newcomer may be told: only what every player character heard, whoever asks."""
        hot = self._hot
        await hot.seated(seat)
        if budget is not None:
            rim.whole(budget, "budget")

        def look() -> Awaitable[Context]:
            who = hot.state.seats[seat]
            return self._context(who, COMMON, who.token_limit if budget is None else budget, DEFAULT_RECIPE, {}, [])

        return await self._steadily(look)

    # -- what is noted beside the turns ------------------------------------------------------------------------------------

    async def marks(self, seat: str | None, topic: str, *, limit: int | None = None) -> list[Marked]:
        """The marks of a topic that the seat may know (None: all there are), in order of their turns; the `limit` highest in rank."""
        await self._know(seat)
        rim.name(topic, "topic")
        if limit is not None:
            rim.whole(limit, "limit")
        return await self._steadily(lambda: read_marks(self._hot, seat, topic, limit))

    async def topics(self, seat: str | None, *, prefix: str = "") -> list[str]:
        """The topics of marks that the seat may know of (None: all there are), sorted."""
        await self._know(seat)
        return topics(self._hot, seat, rim.string(prefix, "prefix"))

    async def gather(self, seat: str, gathering: Gathering[V], *, beside: Sequence[V] = ()) -> V:
        """The gathering's value over all that the seat heard, at a cost that follows what is new. `beside`: values of yours in it."""
        await self._hot.seated(seat)
        if not (isinstance(getattr(gathering, "name", None), str) and hasattr(gathering, "read") and hasattr(gathering, "merge")):
            raise WrongType(f"gathering must be a Gathering, with a name, read and merge, not {type(gathering).__name__}")
        values = rim.several(beside, "beside")
        return await self._steadily(lambda: gather(self._hot, seat, gathering, values))

    async def recap(self, seat: str, *, keep: int | None = None, budget: int = 1000, pending: bool = False, folded: bool = False) -> Recap:
        """The newest `keep` turns that the seat heard (by default as many as it keeps), as they are, and everything before them as folds
        in at most `budget` tokens.

        `pending`: turns whose fold still waits for a model stay as they are as well. `folded`: no turn before them is shown as it is, not
        even where there would be room for it."""
        return await self._recap(seat, keep, budget, pending, folded)

    async def _recap(
        self, seat: str, keep: int | None, budget: int, pending: bool, folded: bool = False, *, at_once: bool = False
    ) -> Recap:
        hot = self._hot
        await hot.seated(seat)
        rim.whole(budget, "budget")
        if keep is not None:
            rim.whole(keep, "keep")
        unfold: Unfold = "none" if folded else "unless a model"

        async def look() -> Recap:
            await hot.unfurl()
            since = await self._first_waiting() if pending else None
            who = hot.state.seats[seat]
            count = who.keep if keep is None else keep
            return await hot.supply(lambda: make_recap(who, count, since, budget, hot.sources(), unfold, at_once=at_once))

        return await self._steadily(look)

    async def _first_waiting(self) -> int | None:
        """The first turn whose fold a model is about to make. Of what is past, none is."""
        return None

    async def stretch(self, seat: str, *, after: int = 0, before: int | None = None, budget: int = 1000) -> Recap:
        """What the seat heard between two entries, given by number and not included, as folds in at most `budget` tokens."""
        hot = self._hot
        await hot.seated(seat)
        if before is not None:
            rim.whole(before, "before")
        rim.whole(after, "after")
        rim.whole(budget, "budget")

        def stretch() -> Recap:
            end = hot.state.seq + 1 if before is None else before
            return make_stretch(hot.state.seats[seat], after, end, budget, hot.sources())

        return await self._steadily(lambda: hot.supply(stretch))

    async def _know(self, seat: str | None) -> None:
        if seat is not None:
            await self._hot.seated(seat)
        await self._hot.refresh()

    # -- looking ---------------------------------------------------------------------------------------------------------

    async def pins(self) -> list[Turn]:
        """The turns that are pinned, in order."""
        hot = self._hot
        turns = await self._steadily(lambda: hot.fetch_turns([at for at, _ in hot.state.pins.values()]))
        return sorted((turn for turn in turns if turn.text), key=lambda turn: turn.seq)

    async def turns(
        self, *, seat: str | None = None, kinds: Iterable[str] | None = None, speaker: str | None = None, location: str | None = None,
        after: int = 0, before: int | None = None, limit: int | None = None, newest: bool = False,
    ) -> list[Turn]:  # fmt: skip
        """The log, in order: what `seat` heard, of these `kinds` (by default what can be heard, not the author's edits and pins).

        `after` and `before` are numbers, not included; page by passing the last one you got. `newest`: the last `limit` of them."""
        hot = self._hot
        if seat is not None:
            await hot.seated(seat)
        wanted = rim.several(HEARD_KINDS if kinds is None else kinds, "kinds")
        unknown = [kind for kind in wanted if not isinstance(kind, str) or kind not in HEARD_KINDS | AUTHOR_KINDS]
        if unknown:
            raise InvalidInput(
                f"kinds must be a list out of {', '.join(sorted(HEARD_KINDS | AUTHOR_KINDS))}; {quoted(unknown[0])} is none of them"
            )
        rim.whole(after, "after")
        for number, what in ((before, "before"), (limit, "limit")):
            if number is not None:
                rim.whole(number, what)

        def fits(turn: Turn) -> bool:
            heard = seat is None or seat in turn.audience
            return turn.kind in wanted and heard and speaker in (None, turn.speaker) and location in (None, turn.location)

        def look() -> Awaitable[list[Turn]]:
            last = hot.state.seq if before is None else min(hot.state.seq, before - 1)
            return self._turns(fits, after + 1, last, limit, newest=newest)

        return await self._steadily(look)

    async def _turns(self, fits: Callable[[Turn], bool], first: int, last: int, limit: int | None, *, newest: bool) -> list[Turn]:
        found: list[Turn] = []
        size = PAGE if limit is None else min(PAGE, max(16, 2 * limit))
        while first <= last and (limit is None or len(found) < limit):
            low, high = (max(first, last - size + 1), last) if newest else (first, min(last, first + size - 1))
            size = min(PAGE, 2 * size)
            page = [turn for turn in await self._page(low, high) if fits(turn)]
            found = page + found if newest else found + page
            first, last = (first, low - 1) if newest else (high + 1, last)
        if limit is None:
            return found
        return found[len(found) - min(limit, len(found)) :] if newest else found[:limit]

    async def _page(self, first: int, last: int) -> list[Turn]:
        """Entries by number, as they read now."""
        hot = self._hot
        found = await hot.read(spans=[Span(*piece) for piece in hot.path.spans(first, last)])
        return [turn for _, turn in await hot.as_of_now(found.entries) if turn.text or turn.kind in AUTHOR_KINDS]

    async def turn(self, turn: TurnRef) -> Turn:
        """One turn of this branch, as it reads now."""
        return await self._steadily(lambda: self._resolve(turn))

    async def _resolve(self, turn: TurnRef) -> Turn:
        """The turn that is meant; raises `UnknownTurn` where this branch has none, or where it was forgotten."""
        return (await self._hot.located(turn))[1]

    async def ordinals(self, seat: str, turns: Sequence[Turn | int]) -> list[int]:
        """The numbers that turns, themselves or by their number on the branch, have among those which the seat heard: how many it had
        heard by then. They tell nothing of others (I3)."""
        await self._hot.seated(seat)
        asked = rim.several(turns, "turns")
        numbers = [turn.seq if isinstance(turn, Turn) else rim.whole(turn, "a turn's number") for turn in asked]
        hot = self._hot

        def look() -> Awaitable[list[int]]:
            if (newest := max(numbers, default=0)) > hot.state.seq:
                raise UnknownTurn(f"no entry number {quoted(newest)} on branch {self.branch!r}; it goes from 0 to {hot.state.seq}")
            return hot.supply(lambda: hot.state.ordinals(seat, numbers))

        return await self._steadily(look)

    async def folds(self, seat: str, *, budget: int | None = None) -> list[Fold]:
        """The folds that the seat's context stands on at that budget (by default its limit), oldest first."""
        hot = self._hot
        await hot.seated(seat)
        if budget is not None:
            rim.whole(budget, "budget")

        def look() -> list[Fold]:
            who = hot.state.seats[seat]
            wish = Wish(who, seat, who.token_limit if budget is None else budget)
            sources = self._sources(seat)
            cut = self._plan(wish).cut
            nodes = [node for tree in hot.state.views[seat].trees for node in roots_until(tree.roots(), cut, sources.children_of)]
            return [as_fold(node, sources) for node in sorted(nodes, key=lambda node: node.first)]

        return await self._steadily(lambda: hot.supply(look))


def _few(lines: Iterable[Line], room: int) -> Iterator[Line]:
    """The first of the lines: more than fit into the room, for some will be shown already, but not by far."""
    left = MORE_TO_CHOOSE * room
    for line in lines:
        if left <= 0:
            return
        left -= line.item.tokens
        yield line


def _check_note(note: object) -> None:
    if not isinstance(note, Note):
        raise WrongType(f"extras are made of Note, not {type(note).__name__}")
    rim.text(note.text, "a note's text")
    rim.number(note.rank, "a note's rank")
    rim.names(note.sources, "a note's sources")
