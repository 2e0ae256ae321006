"""Where the cut through a view is: what stands before it is told by folds, what stands behind it stays raw. Pure.

The cut is an entry of the log. It follows from how many tokens the seat has heard in all, in steps of a third of the recent part (up to
two thirds, where the budget is large), so it needs no memory of earlier contexts, stays put while the recent part fills up (I8), and then
moves by whole chunks. It moves for nothing that the seat did not hear (I3), and only the chunks near it are looked at (I9).
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from talekeeper.context.paragraphs import Sources
from talekeeper.context.recipe import DEFAULT_RECIPE, Recipe
from talekeeper.folds.nodes import Node, Ref
from talekeeper.folds.state import CANON, COMMON, STORY, State
from talekeeper.folds.trees import leaves_after
from talekeeper.model import Seat

RAW = 900
LEAST_RAW, MOST_RAW = 1 / 3, 2 / 3
"""So many tokens stay raw when the cut moves, but no smaller and no larger a part of the recent ones: the larger the budget, the more is
told anew with every move, and the longer should a step be, for which what a model has cached of the context holds (I8)."""


class Step(NamedTuple):
    """How many of the tokens heard lie before the cut, at the least, and after how many tokens that was decided. (0, 0): no cut yet.

    The cut depends on what was known at that moment alone, so it stays where it is until the next step."""

    behind: float
    since: float
    until: float
    """After so many tokens the next one may be due; surely not before."""
    full: float = 0.0

    def reached(self, heard: float) -> bool:
        """Whether it was decided once so many tokens had been heard."""
        return heard >= self.since and heard > self.full


class Wish(NamedTuple):
    """For whom, how much, and how the budget is to be divided. `whole`: up to so many tokens, a view is shown as it is."""

    seat: Seat
    view: str
    budget: int
    recipe: Recipe = DEFAULT_RECIPE
    whole: int = 0

    def step(self, heard: int, canon: bool) -> Step:
        """Where the view stands on its way from fold to fold, after that many tokens."""
        full = (self.recipe.fold_at or self.seat.fold_at) * self.budget
        most = max(0.0, full - self.budget * (self.recipe.story + (self.recipe.canon if canon else 0)))
        least = min(max(RAW, most * LEAST_RAW), most * MOST_RAW)
        if heard <= max(full, self.whole):
            return Step(0.0, 0.0, int(full) + 1 if heard <= full else math.inf)
        stride = max(1.0, most - least)
        number = (heard - least) // stride
        since = least + stride * number
        return Step(max(1.0, stride * number), since, int(since + stride), full)


class Cut(NamedTuple):
    """Where the cut through a view is, and what it was found by."""

    heard: int
    """How many tokens the view has heard."""
    step: Step
    canon: bool
    """Whether the view has any notes."""
    chunks: Chunks
    """The newest chunks, from the end of the view back to the cut at the least."""
    refs: list[Ref]
    """The turns in them, in order."""
    start: int
    """The first of these that stays raw."""

    @property
    def at(self) -> int:
        """The last entry before the cut; 0 where everything stays raw."""
        if self.start:
            return self.refs[self.start - 1].seq
        return self.chunks.horizon if self.step.behind else 0


def heard_tokens(state: State, view: str) -> int:
    """How many tokens of turns are in the view, by the counts in the log."""
    tokens = state.views[view].tokens
    if view == COMMON:
        tokens += sum(ref.tokens for chunk in state.open_for(COMMON) for ref in chunk.refs)
    return tokens


def has_canon(state: State, view: str) -> bool:
    """Whether the view has any notes."""
    return bool(state.views[view].trees[CANON].sketches()) or any(chunk.track == CANON for chunk in state.open_for(view))


def _had_canon(state: State, view: str, newest: Ref) -> bool:
    """Whether it had any before its newest turn."""
    notes = [chunk.refs[0].seq for chunk in state.open_for(view) if chunk.track == CANON]
    return min([*notes, *(root.first for root in state.views[view].trees[CANON].roots())], default=newest.seq) < newest.seq


def own_cut(seat: Seat, view: str, sources: Sources, *, before_newest: bool = False) -> int:
    """Where the cut is at the seat's own limit: folds up to there are worth a model's work, whatever others need."""
    return find_cut(Wish(seat, view, seat.token_limit), sources, before_newest).at


def model_cut(seat: Seat, view: str, sources: Sources) -> int:
    """Up to where models' texts are shown: the cut at the seat's own limit as it was before the newest turn that the seat heard.

    Others may have needed a fold earlier, and its text be there when this seat's cut gets to it. Showing it at once would tell of them;
    so a model always has the time from one turn to the next, whether it needs it or not (I3). For what all have in common no fold is made:
    which of its folds others happen to share would tell, too."""
    return 0 if view == COMMON else own_cut(seat, view, sources, before_newest=True)


def find_cut(wish: Wish, sources: Sources, before_newest: bool = False) -> Cut:
    """The cut for this wish; with `before_newest`, as it was before the newest turn that was heard. Raises `Missing`."""
    state = sources.state
    canon = has_canon(state, wish.view)
    heard = heard_tokens(state, wish.view)
    step = wish.step(heard, canon)
    chunks = _newest_chunks(wish, heard, step, sources)
    if before_newest and (refs := chunks.refs()):
        last = wish.step(heard - refs[-1].tokens, _had_canon(state, wish.view, refs[-1]))
        if last != step:
            step, chunks = last, _newest_chunks(wish, heard, last, sources)
    return Cut(heard, step, canon, chunks, chunks.refs(), _cut_index(wish, heard, step, chunks) if step.behind else 0)


# -- the chunks near it -----------------------------------------------------------------------------------------------

_seq = attrgetter("seq")


@dataclass(slots=True)
class ChunkPart:
    """A chunk near the view's end; `closed` is None while it is open."""

    track: int
    channel: int
    closed: int | None
    refs: Sequence[Ref]


@dataclass(slots=True)
class Chunks:
    """The newest chunks of a view, open ones included; complete for everything behind `horizon`."""

    parts: list[ChunkPart] = field(default_factory=list)
    horizon: int = 0
    _ordered: tuple[tuple[int, int], list[Ref], list[int]] | None = None

    def refs(self) -> list[Ref]:
        """Everything behind the horizon, in order."""
        return self.weighed()[0]

    def weighed(self) -> tuple[list[Ref], list[int]]:
        """The same, and how many tokens there are from each turn on."""
        if self._ordered is None or self._ordered[0] != (len(self.parts), self.horizon):
            horizon = self.horizon
            refs = [ref for part in self.parts for ref in (part.refs if part.refs[0].seq > horizon else _behind(part.refs, horizon))]
            refs.sort(key=_seq)
            after = list(accumulate([ref.tokens for ref in reversed(refs)]))
            after.reverse()
            self._ordered = (len(self.parts), horizon), refs, after
        return self._ordered[1:]

    def ends(self, at: int) -> set[int]:
        """The last turns of chunks that were closed by then."""
        return {part.refs[-1].seq for part in self.parts if part.closed is not None and part.closed <= at}

    def notes(self) -> set[int]:
        return {ref.seq for part in self.parts if part.track == CANON for ref in part.refs}


def _behind(refs: Sequence[Ref], horizon: int) -> list[Ref]:
    return [ref for ref in refs if ref.seq > horizon]


def _newest_chunks(wish: Wish, heard: int, step: Step, sources: Sources) -> Chunks:
    """Enough of the newest chunks to find the cut in, and everything behind it."""

    def enough(chunks: Chunks, tokens: int) -> bool:
        return tokens >= heard - step.behind and _reaches_back(chunks.weighed()[1], heard, step, wish.seat.keep)

    return chunks_until(wish.view, enough, sources)


def chunks_until(view: str, enough: Callable[[Chunks, int], bool], sources: Sources) -> Chunks:
    """The newest chunks of a view, from the open ones back until there are enough of them, by themselves and by their tokens."""
    state = sources.state
    chunks = Chunks([ChunkPart(one.track, one.channel, None, list(one.refs)) for one in state.open_for(view)])
    total = sum(ref.tokens for part in chunks.parts for ref in part.refs)
    roots = [tree.roots() for tree in state.views[view].trees]
    leaves = heapq.merge(*(_by_closing(roots[track], track, sources) for track in (STORY, CANON)), key=lambda row: row[0])
    for closed, track, leaf in leaves:
        chunks.horizon = -closed
        if enough(chunks, total):
            return chunks
        chunks.parts.append(ChunkPart(track, leaf.channel, leaf.closed, leaf.refs))
        total += leaf.tokens
    chunks.horizon = 0
    return chunks


def _reaches_back(after: Sequence[int], heard: int, step: Step, keep: int) -> bool:
    """Whether turns with so many tokens from each of them on hold the cut: more tokens than stay raw, and the newest few of the moment it
    was decided."""
    moment = heard - max(step.since, step.full)
    return bool(after) and after[0] > heard - step.behind and bisect_left(after, True, key=lambda left: left < moment) > keep + 1


def _by_closing(roots: Sequence[Node], track: int, sources: Sources) -> Iterator[tuple[int, int, Node]]:
    return ((-leaf.closed, track, leaf) for leaf in leaves_after(roots, 0, sources.children_of))


def _cut_index(wish: Wish, heard: int, step: Step, chunks: Chunks) -> int:
    """The first turn that stays raw: at the end of a chunk if one is near, and the newest few of that moment in any case."""
    refs, after = chunks.weighed()
    then = bisect_left(range(len(refs)), True, key=lambda index: step.reached(heard - after[index] + refs[index].tokens))
    latest = max(0, then + 1 - max(1, wish.seat.keep))
    tokens = heard - step.behind
    start = bisect_left(after, True, key=lambda left: left <= tokens)
    if start >= latest:
        return latest
    ends = chunks.ends(refs[then].seq)
    since = heard - after[then] + refs[then].tokens
    room = since - step.behind
    for index in range(max(1, start), latest + 1):
        if refs[index - 1].seq in ends and since - (heard - after[index]) >= room / 2:
            return index
    return start
