"""The stable part of a context: a cut through a seat's view, folds before it, raw turns behind it. Pure.

    canon        notes that have left the recent part        ┐
    story        folds over everything else before the cut   │ the next one extends this one, until the cut moves (I8)
    recent       every turn behind the cut, raw              ┘

The volatile parts come behind it (see `recipe` and `assembly`).

The cut is an entry of the log (see `cuts`). Every turn that the seat heard up to it stands under exactly one rendered fold, every turn
behind it is raw: coverage is a partition by construction (I1).

Folds before the cut become paragraphs that fit their room (see `paragraphs`), so the story fits any budget from `FLOOR` up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import Literal, NamedTuple

from talekeeper.context.clipping import clip_item
from talekeeper.context.cuts import ChunkPart, Chunks, Cut, Wish, chunks_until, find_cut, model_cut, own_cut
from talekeeper.context.paragraphs import Line, Sources, Unfold, fit, fold_item
from talekeeper.context.recipe import CANON_PART, DEFAULT_RECIPE, RECENT_PART, STORY_PART, Recipe
from talekeeper.folds.nodes import PEAKS, Node, Ref, key_of_part, make_leaf, peaks
from talekeeper.folds.state import CANON, COMMON, STORY, State
from talekeeper.folds.trees import roots_until
from talekeeper.model import Block, Item, LeftOut, Recap, Seat

FLOOR = 128
"""From this budget up (plus what is pinned) every turn that a seat heard is represented in its context."""

MORE_TO_CHOOSE = 1.5
"""So many times what fits is looked for as highlights, since some of them will be shown elsewhere or tell the same."""
_RUN = 3
"""Turns are compared by runs of so many words, to show once what is told twice."""
MOST_OPENED = 256
"""So many folds are opened at the most to find highlights."""

LEAST_STORY, LEAST_CANON = 44, 19
"""Tokens for folds and for notes, however small their share in a recipe: what they have at the floor."""
LEAST_RECENT = 40
"""Tokens for the newest turn, however large those shares are."""

# -- the plan: what stands before the cut, and behind it -----------------------------------------------------------------


@dataclass(slots=True)
class Plan:
    """The stable part of a context, ready to be extended by new lines until it no longer `holds`."""

    seat: Seat
    recipe: Recipe
    epoch: int
    cut: int
    until: float
    """It holds as long as fewer tokens were heard."""
    whole: bool
    """Whether so little was heard that it was wished to be shown as it is."""
    canon: bool
    lasting: bool
    waiting: bool
    """Whether models' texts are there that the next turn will show."""
    blocks: list[Block]
    text: str
    tokens: int
    recent_heading: str
    heading_tokens: int
    items: list[Item]
    texts: list[str]
    """The stable part in pieces, from its beginning to the newest turn: see `told`."""
    recent_tokens: int
    left_out: list[LeftOut]
    room: int
    highlights: list[Line]

    def holds(self, wish: Wish, heard: int) -> bool:
        """Whether the same would be planned for a wish of that budget, after so many tokens."""
        same = self.recipe is wish.recipe and self.seat is wish.seat
        return same and heard < self.until and (heard <= wish.whole) == self.whole and self.recent_tokens <= self.room

    def told(self) -> str:
        """The stable part as text. Put together once: the next time, only what was heard since is put behind it."""
        if len(self.texts) > 1:
            self.texts = ["".join(self.texts)]
        return self.texts[0] if self.items else self.text

    def extend(self, item: Item) -> None:
        """One more turn was heard."""
        self.items.append(item)
        self.texts.append(item.text)
        self.recent_tokens += item.tokens


def make_plan(wish: Wish, sources: Sources) -> Plan:
    """The stable part for this wish. Raises `Missing`."""
    found, known = find_cut(wish, sources), list[int]()

    def modelled() -> int:
        if not known:
            known.append(model_cut(wish.seat, wish.view, sources))
        return known[0]

    seen = sources.seen_by(_name(wish.seat, wish.view), modelled)
    behind = _clipped(wish, _fitting(wish, found, seen), sources)
    blocks, items, recipe = behind.blocks, behind.items, wish.recipe
    until, waiting = found.step.until, False
    if known:  # models' texts are there, and are shown as far as the cut at the seat's own limit has come
        until = min(until, Wish(wish.seat, wish.view, wish.seat.token_limit).step(found.heard, found.canon).until)
        waiting = modelled() < own_cut(wish.seat, wish.view, seen)
    text = "".join(block.text for block in blocks)
    return Plan(
        seat=wish.seat, recipe=recipe, epoch=sources.state.epoch, cut=behind.cut, until=until, whole=found.heard <= wish.whole,
        canon=found.canon, lasting=behind.lasting, waiting=waiting, blocks=blocks, text=text, tokens=sum(block.tokens for block in blocks),
        recent_heading=recipe.recent_heading, heading_tokens=sources.count(recipe.recent_heading), items=items,
        texts=[text, recipe.recent_heading, *[item.text for item in items]], recent_tokens=sum([item.tokens for item in items]),
        left_out=behind.left_out, room=behind.room, highlights=_highlights(wish, found.chunks, behind.cut, blocks, seen),
    )  # fmt: skip


class _Behind(NamedTuple):
    """The cut that was taken, what stands before it, and the turns behind it with the room that they have."""

    cut: int
    blocks: list[Block]
    left_out: list[LeftOut]
    items: list[Item]
    room: int
    lasting: bool
    """Whether the cut is where the wish would have it, and nothing had to give way."""


def _fitting(wish: Wish, found: Cut, sources: Sources) -> _Behind:
    """The cut as it was found; a later one if too much is behind it for the budget, up to one that leaves nothing but the newest turn."""
    start, cutting, lasting, count, recipe = found.start, bool(found.step.behind), True, sources.count, wish.recipe
    while True:
        cut = found.refs[start - 1].seq if start else found.chunks.horizon if cutting else 0
        lines = sources.lines_of(found.refs[start:])
        blocks, left_out = _before(wish, found.chunks, cut, sources, found.canon)
        lead = 0 if cutting else _leading_notes(found.refs, found.chunks.notes())
        if lead:
            blocks = [block_of(CANON_PART.name, recipe.canon_heading, [one.item for one in lines[:lead]], count)]
            lines = lines[lead:]
        room = wish.budget - sum(block.tokens for block in blocks) - count(recipe.recent_heading)
        items = [item for one in lines if (item := one.item).text]
        if sum([item.tokens for item in items]) <= room or (len(items) <= 1 and not lead):
            return _Behind(cut, blocks, left_out, items, room, lasting)
        start = _advance(lines, start + lead, room)  # behind the notes at the beginning
        cutting, lasting = True, False


def _clipped(wish: Wish, behind: _Behind, sources: Sources) -> _Behind:
    """The same, with its one turn clipped if that alone is too long; without what stands before it if even that has no room."""
    items, room = behind.items, behind.room
    if sum([item.tokens for item in items]) <= room:
        return behind
    clipped = clip_item(items[0], room, sources.count) if room > 0 else None
    return behind._replace(
        blocks=behind.blocks if sum(block.tokens for block in behind.blocks) <= wish.budget else [],
        left_out=[*behind.left_out, *_oversized(items, room)], items=[clipped] if clipped else [], lasting=False,
    )  # fmt: skip


def _name(seat: Seat, view: str) -> str:
    """By which name the one who remembers speaks in folds; none for what all have in common."""
    return "" if view == COMMON else seat.label


def _advance(lines: Sequence[Line], start: int, room: int) -> int:
    """The earliest start from which the lines fit the room; the newest line always stays."""
    size = 0
    for index in range(len(lines) - 1, -1, -1):
        size += lines[index].item.tokens
        if size > room:
            return start + min(index + 1, len(lines) - 1)
    return start


def _oversized(items: Sequence[Item], room: int) -> list[LeftOut]:
    reason: Literal["clipped", "below floor"] = "clipped" if room > 0 else "below floor"
    return [LeftOut(block=RECENT_PART.name, reason=reason, turn_count=1, tokens=item.tokens, sources=item.sources) for item in items]


def _leading_notes(refs: Sequence[Ref], notes: set[int]) -> int:
    """How many notes stand before the first thing that happened."""
    for index, ref in enumerate(refs):
        if ref.seq not in notes:
            return index
    return len(refs)


# -- what stands before the cut ------------------------------------------------------------------------------------------


def _before(wish: Wish, chunks: Chunks, cut: int, sources: Sources, canon: bool) -> tuple[list[Block], list[LeftOut]]:
    """The canon and story blocks over everything up to the cut."""
    if not cut:
        return [], []
    blocks: list[Block] = []
    left_out: list[LeftOut] = []
    recipe = wish.recipe
    story_heading = recipe.story_heading_dm if wish.seat.role == "dm" or wish.view == COMMON else recipe.story_heading
    tracks = [(CANON, CANON_PART.name, recipe.canon_heading)] if canon else []
    rooms = _rooms(wish, canon)
    spare = 0
    for track, name, heading in (*tracks, (STORY, STORY_PART.name, story_heading)):
        spare += rooms[track]  # the story may have what the canon leaves
        items, turns, tokens = _track(wish.view, track, chunks, cut, spare - sources.count(heading), sources)
        if items:
            blocks.append(block_of(name, heading, items, sources.count))
            spare -= blocks[-1].tokens
            left_out += _told_shorter(name, items, tokens)
        elif turns:
            left_out.append(LeftOut(block=name, reason="below floor", turn_count=turns, tokens=tokens))
    return blocks, left_out


def _track(view: str, track: int, chunks: Chunks, cut: int, room: int, sources: Sources) -> tuple[list[Item], int, int]:
    """Everything of a track up to the cut as items that fit the room, how many turns that are, and how many tokens they have raw. Notes are
    shown as they are, where they fit, and then not counted: none of them is left out."""
    notes = _raw_notes(view, chunks, cut, room, sources) if track == CANON else None
    if notes is not None:
        items, tokens = notes
        return items, 0, tokens
    nodes = _folds_until(view, track, chunks, cut, sources)
    items = fit(nodes, room, sources) if nodes else []
    return items, sum([node.turn_count for node in nodes]), sum([node.tokens for node in nodes])


def _told_shorter(name: str, items: Sequence[Item], tokens: int) -> list[LeftOut]:
    """What stands in a block in fewer words than it has raw, of so many tokens together; nothing where every turn stands word for word."""
    turns = sum(item.turn_count for item in items if item.kind != "turn")
    raw = tokens - sum(item.tokens for item in items if item.kind == "turn")
    return [LeftOut(block=name, reason="folded", turn_count=turns, tokens=max(0, raw))] if turns else []


def _rooms(wish: Wish, canon: bool) -> dict[int, int]:
    """How many tokens story and canon may take, with their headings: their shares, with enough for each of them and for the newest turn."""
    budget, recipe = wish.budget, wish.recipe
    least = {STORY: min(LEAST_STORY, int(budget * DEFAULT_RECIPE.story)), CANON: min(LEAST_CANON, int(budget * DEFAULT_RECIPE.canon))}
    most = budget - min(LEAST_RECENT, budget // 2)
    notes = min(max(least[CANON], int(budget * recipe.canon)), most - least[STORY]) if canon else 0
    return {CANON: notes, STORY: min(max(least[STORY], int(budget * recipe.story)), most - notes)}


def _highlights(wish: Wish, chunks: Chunks, cut: int, blocks: Sequence[Block], sources: Sources) -> list[Line]:
    """The most telling turns before the cut that are not shown as they are, for the recipe's part of that name; best first."""
    part = wish.recipe.highlights
    if part is None or not cut:
        return []
    shown = {source for block in blocks for item in block.items if item.kind == "turn" for source in item.sources}
    refs = most_telling(_folds_until(wish.view, STORY, chunks, cut, sources), int(wish.budget * part.share * MORE_TO_CHOOSE), sources)
    return _told_once([line for line in sources.lines_of(refs) if line.turn.id not in shown and line.item.text])


def _told_once(lines: Iterable[Line]) -> list[Line]:
    """The lines without those that tell again, in nearly the same words, what one before them tells."""
    told: set[tuple[str, ...]] = set()
    kept: list[Line] = []
    for line in lines:
        words = line.turn.text.casefold().split()
        runs = {tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
        if 2 * len(runs & told) <= len(runs):
            kept.append(line)
        told |= runs
    return kept


def most_telling(nodes: Sequence[Node], room: int, sources: Sources) -> list[Ref]:
    """The most telling turns under the folds, best first, as many as may fit. A fold whose best are all among them is opened, so they
    are the best of all, at a cost that follows the room and not the story (I9)."""
    opened = 0
    while True:
        found = {node.key: peaks(node, sources.children_of, sources.turns_of) for node in nodes}
        ranked = sorted([peak for each in found.values() for peak in each])
        sizes = accumulate(peak.ref.tokens for peak in ranked)
        taken = [peak.ref for peak, size in zip(ranked, sizes, strict=True) if size <= room]
        numbers = {ref.seq for ref in taken}
        full = {
            node.key: node for node in nodes
            if node.level and len(found[node.key]) == PEAKS and found[node.key][-1].ref.seq in numbers
        }  # fmt: skip
        if not full or opened >= MOST_OPENED:
            return taken
        opened += len(full)
        nodes = [*(node for node in nodes if node.key not in full), *sources.all_children_of(list(full.values()))]


def block_of(name: str, heading: str, items: Sequence[Item], count: Callable[[str], int], *, stable: bool = True) -> Block:
    tokens = count(heading) + sum(item.tokens for item in items)
    return Block(name=name, heading=heading, items=tuple(items), tokens=tokens, stable=stable)


def _late(chunks: Chunks, track: int, cut: int, state: State) -> list[tuple[ChunkPart, list[Ref]]]:
    """What stands before the cut in chunks that were closed behind it, or are still open."""
    late = []
    for part in chunks.parts:
        if part.track == track and (part.closed is None or part.closed > cut):
            refs = [state.current(ref) for ref in part.refs if ref.seq <= cut]
            if refs:
                late.append((part, refs))
    return late


def _folds_until(view: str, track: int, chunks: Chunks, cut: int, sources: Sources) -> list[Node]:
    """Folds over everything of that track up to the cut, in order of their first turn: whole ones, and parts of late chunks."""
    state = sources.state
    nodes = roots_until(state.views[view].trees[track].roots(), cut, sources.children_of)
    nodes += _parts([(refs, part.channel, cut) for part, refs in _late(chunks, track, cut, state)], sources)
    return sorted(nodes, key=lambda node: node.first)


def _parts(parts: Sequence[tuple[Sequence[Ref], int, int]], sources: Sources) -> list[Node]:
    """Folds over parts of chunks, each of its turns, its channel, and where it ends, at the place that its own turns name: the chunk may
    find its own later, and what is shown must not change by that. Raises `Missing`, for all of them at once: they may be many."""
    shelf = sources.state.shelf
    nodes = [shelf.get(key_of_part(refs)) for refs, _, _ in parts]
    if None not in nodes:
        return nodes  # type: ignore[return-value]
    sources.lines_of([ref for (refs, _, _), node in zip(parts, nodes, strict=True) if node is None for ref in refs])
    return [node or _part(*part, sources) for part, node in zip(parts, nodes, strict=True)]


def _part(refs: Sequence[Ref], channel: int, closed: int, sources: Sources) -> Node:
    place = next((line.turn.location for line in sources.lines_of(refs) if line.turn.location is not None), None)
    return sources.state.shelf.put(make_leaf(refs, channel=channel, location=place, closed=closed, closer=""))


def _raw_notes(view: str, chunks: Chunks, cut: int, room: int, sources: Sources) -> tuple[list[Item], int] | None:
    """All notes up to the cut as they were written, or as the author wrote over their fold, and the tokens that they have raw; None where
    they are too many for the room."""
    roots = roots_until(sources.state.views[view].trees[CANON].roots(), cut, sources.children_of)
    if sum(node.tokens for node in roots) > room * 2:
        return None
    nodes = list(_opened(roots, sources))
    refs = [ref for node in nodes if not node.author for ref in node.refs]
    refs += [ref for _, late in _late(chunks, CANON, cut, sources.state) for ref in late]
    placed = [(line.seq, line.item) for line in sources.lines_of(refs)]
    raw = sum(item.tokens for _, item in placed) + sum(node.tokens for node in nodes if node.author)
    placed += [(node.first, fold_item(node, sources)) for node in nodes if node.author]
    items = [item for _, item in sorted(placed, key=lambda row: row[0]) if item.text]
    return (items, raw) if sum(item.tokens for item in items) <= room else None


def _opened(nodes: Sequence[Node], sources: Sources) -> Iterator[Node]:
    """The chunks under the folds; in the place of those that the author has summed up, that fold."""
    for node in nodes:
        if node.level and not node.author:
            yield from _opened(sources.children_of(node), sources)
        else:
            yield node


# -- a view in two -----------------------------------------------------------------------------------------------------


def make_recap(seat: Seat, keep: int, since: int | None, room: int, sources: Sources, unfold: Unfold, *, at_once: bool) -> Recap:
    """The newest turns of a seat, from the entry `since` on at the least, and folds over everything before them. `at_once`: with models'
    texts as soon as they are there, where nobody has anything to hide. Raises `Missing`."""

    def enough(chunks: Chunks, _: int) -> bool:
        if sum(len(part.refs) for part in chunks.parts) <= keep:
            return False
        refs = chunks.refs()
        return len(refs) > keep and (since is None or refs[0].seq <= since)

    chunks = chunks_until(seat.id, enough, sources)
    refs = chunks.refs()
    newest = max(0, len(refs) - keep)
    start = newest if since is None else min(newest, sum(ref.seq < since for ref in refs))
    cut = refs[start - 1].seq if start else chunks.horizon
    modelled = cache(partial(own_cut if at_once else model_cut, seat, seat.id, sources))
    sources = sources.seen_by(_name(seat, seat.id), modelled)
    nodes = [node for track in (CANON, STORY) for node in _folds_until(seat.id, track, chunks, cut, sources)] if cut and room else []
    items = fit(sorted(nodes, key=lambda node: node.first), room, sources, unfold)
    turns = [line.turn for line in sources.lines_of(refs[start:])]
    return Recap(seat=seat.id, items=tuple(item for item in items if item.text), turns=tuple(turns), waiting=newest - start)


def make_stretch(seat: Seat, after: int, before: int, room: int, sources: Sources) -> Recap:
    """Folds over what a seat heard between two entries, neither included, without reading what lies outside. Raises `Missing`."""
    sources = sources.seen_by(_name(seat, seat.id), cache(partial(model_cut, seat, seat.id, sources)))
    state = sources.state
    nodes: list[Node] = []
    parts: list[tuple[Sequence[Ref], int, int]] = []

    def part(refs: Sequence[Ref], channel: int) -> None:
        within = [state.current(ref) for ref in refs if after < ref.seq < before]
        if within:
            parts.append((within, channel, within[-1].seq))

    def descend(node: Node) -> None:
        if node.last <= after or node.first >= before:
            return
        if after < node.first and node.last < before:
            nodes.append(node)
        elif node.level:
            for child in sources.children_of(node):
                descend(child)
        else:
            part(node.refs, node.channel)

    for root in state.views[seat.id].roots():
        descend(root)
    for chunk in state.open_for(seat.id):
        part(chunk.refs, chunk.channel)
    nodes += _parts(parts, sources)
    items = fit(sorted(nodes, key=lambda node: node.first), room, sources, "none")
    return Recap(seat=seat.id, items=tuple(item for item in items if item.text), turns=())
