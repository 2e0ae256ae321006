"""What the log adds up to at its head: who is where, what each seat has heard, which chunks are open, which folds stand for the rest.

The state is a pure function of the path from the first entry to the head. It is kept hot while a story is played, written down now
and then as a snapshot, and otherwise made again by replaying the entries behind the newest snapshot. That is all there is to
resuming, catching up with another process, rewinding and forking: the same entries give the same state (I4).

Counters are per view: what a seat did not hear moves nothing of its own (I3).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from talekeeper.folds.nodes import (
    CHUNK_CHARS,
    CHUNK_TURNS,
    Node,
    Ref,
    key_of_part,
    known_in,
    make_leaf,
    place_at,
    revise,
    rewrite,
)
from talekeeper.folds.shelf import Shelf
from talekeeper.folds.trees import Tree, contains, find, replace
from talekeeper.model import AUTHOR_KINDS, Seat, Turn
from talekeeper.ports import Entry, Position

COMMON = "*"
"""The view of what every player character heard: what a newcomer may be told."""

STORY, CANON = 0, 1
"""The two tracks of a channel or view, each with chunks and a tree of its own: what happened, and notes."""
MOST_COUNTED = 512
"""For so many entries a view remembers how many turns it had heard by then."""
REGISTRY_SIZE = 96
"""How many mentioned names a channel remembers, to look for in its chunks."""
SCENE_KINDS = frozenset({"enter", "leave", "session"})

_new_ref: Callable[[tuple[Any, ...]], Ref] = partial(tuple.__new__, Ref)


class View:
    """One seat's counters and trees. The trees are made when they are first asked for: of many stories in memory most are short."""

    __slots__ = ("_trees", "tokens", "turns")

    def __init__(self, turns: int = 0, tokens: int = 0, trees: Sequence[Tree] = ()) -> None:
        self.turns = turns
        self.tokens = tokens
        self._trees = trees

    @property
    def trees(self) -> Sequence[Tree]:
        """That of the story and that of the canon."""
        if not self._trees:
            self._trees = (Tree(), Tree())
        return self._trees

    def roots(self) -> list[Node]:
        return self.trees[STORY].roots() + self.trees[CANON].roots()


class Edit(NamedTuple):
    """What became of a turn: how often it was edited, and the entry (by place and id) that has its present text."""

    times: int
    at: Position
    event: str


class Placed(NamedTuple):
    """Where a mark stands in the log, behind its rank among others of its topic."""

    rank: float
    seq: int
    branch: int


class Chunk:
    """The open end of a channel: turns that no fold stands for yet."""

    __slots__ = ("channel", "chars", "location", "refs", "track", "turns")

    def __init__(self, channel: int, track: int, location: str | None) -> None:
        self.channel = channel
        self.track = track
        self.location = location
        self.refs: list[Ref] = []
        self.turns: list[Turn] = []
        self.chars = 0

    def only(self, refs: list[Ref]) -> Chunk:
        """The same chunk with some of its turns, to look at."""
        part = Chunk(self.channel, self.track, self.location)
        part.refs = refs
        return part


class State:
    """See the module. `apply` moves it one entry on."""

    def __init__(
        self, seats: Sequence[Seat], since: Mapping[str, Mapping[str, int]], channels: Mapping[int, tuple[str, ...]], shelf: Shelf,
        *, placed: bool = True,
    ) -> None:  # fmt: skip
        self.seq = 0
        self.epoch = 0  # grows when something other than the newest end changed: an edit, a pin, an author's fold
        self.turns = 0
        self.tokens = 0
        self.sessions = 0
        self.folds_made = 0
        self.folds_shared = 0
        self.folds_common = 0  # of these, what was found for the view that is no seat's
        self.presence: dict[str, str | None] = {}
        self.revisions: dict[str, Edit] = {}
        self._counted: dict[str, dict[int, int]] = {}  # per view and entry, how many turns had been heard: see `ordinals`
        self.pins: dict[str, tuple[Position, int]] = {}
        self.registry: dict[int, dict[str, None]] = {}  # what each channel has heard mentioned
        self.marks: dict[tuple[str, int], list[Placed]] = {}  # per topic and channel, the lowest rank first
        self.open: dict[tuple[int, int], Chunk] = {}
        self.views: dict[str, View] = {}
        self.shelf = shelf
        self._placed = placed
        self._masks: dict[int, int] = {}
        self._hearers: dict[int, tuple[str, ...]] = {}
        self.seat_up(seats, since, channels)

    def seat_up(self, seats: Sequence[Seat], since: Mapping[str, Mapping[str, int]], channels: Mapping[int, tuple[str, ...]]) -> None:
        """Takes in the seats and channels of the story; ones that are known already keep their views."""
        self.seats = {seat.id: seat for seat in seats}
        self.bits = {seat.id: 1 << index for index, seat in enumerate(seats)}
        self._players = [
            ({int(branch): head for branch, head in since.get(seat.id, {}).items()}, self.bits[seat.id])
            for seat in seats if seat.role == "pc"
        ]  # fmt: skip
        self._from_the_start = sum(bit for since, bit in self._players if not since)
        self.dms = tuple(seat.id for seat in seats if seat.role == "dm")
        for seat in (*self.seats, COMMON):
            self.views.setdefault(seat, View())
        for number, hearers in channels.items():
            self.add_channel(number, hearers)

    def add_channel(self, number: int, hearers: tuple[str, ...]) -> None:
        if number in self._hearers:
            return
        self._hearers[number] = hearers
        self._masks[number] = sum(self.bits[seat] for seat in hearers)

    def current(self, ref: Ref) -> Ref:
        """The source with the revision that its turn has now."""
        edited = self.revisions.get(ref.id)
        return ref if edited is None or ref.revision == edited.event else ref._replace(revision=edited.event)

    def hearers(self, channel: int) -> tuple[str, ...]:
        return self._hearers[channel]

    # -- who hears what is said now ------------------------------------------------------------------------------------

    def present_at(self, location: str | None) -> list[str]:
        """The seats that hear what happens there: those who are there, and everyone where no one has a place yet.

        What happens nowhere in particular is heard by all who have not left."""
        places = self.presence
        anyone_placed = any(place is not None for place in places.values())
        heard = []
        for seat in self.seats:
            if seat in places:
                place = places[seat]
                if place is not None and (location is None or place == location):
                    heard.append(seat)
            elif location is None or not anyone_placed:
                heard.append(seat)
        return heard

    def audience(self, speaker: str | None, heard_by: Iterable[str] | None, location: str | None) -> tuple[str, ...]:
        """The exact set of hearers: those named, or else those present; the speaker; and every DM, who hears all."""
        hearers = set(self.present_at(location) if heard_by is None else heard_by)
        hearers.update(self.dms)
        if speaker in self.seats:
            hearers.add(speaker)
        return tuple(sorted(hearers))

    # -- one entry on --------------------------------------------------------------------------------------------------

    def apply(self, entry: Entry, turn: Turn) -> None:
        """Moves the state one entry on. Raises `Missing` before anything has changed."""
        kind = entry.kind
        if kind not in AUTHOR_KINDS:
            self._hear(entry, turn)
        elif kind == "edit" or kind == "override":
            self._rewrite(entry, turn)
        elif kind == "mark":
            self._mark(entry)
        else:
            self._pin(entry)
        self.seq = entry.seq

    def _hear(self, entry: Entry, turn: Turn) -> None:
        channel, seq, kind = entry.channel, entry.seq, entry.kind
        mask = self._masks[channel]
        if kind in SCENE_KINDS:
            self._change_scene(entry, turn.id, mask)
        if turn.mentions:
            self._register(turn.mentions, channel)
        track = CANON if kind == "note" else STORY
        chunk = self.open.get((channel, track))
        size = len(entry.text) if entry.text else (entry.extra or {}).get("forgotten", 0)
        if chunk is not None and (_elsewhere(chunk.location, entry.location) or chunk.chars + size > CHUNK_CHARS):
            self._close(chunk, seq, turn.id)
            chunk = None
        if chunk is None:
            chunk = self.open[channel, track] = Chunk(channel, track, entry.location)
        elif chunk.location is None:
            chunk.location = entry.location
        chunk.refs.append(_new_ref((entry.branch, seq, turn.id, "", entry.tokens)))
        chunk.turns.append(turn)
        chunk.chars += size
        self.turns += 1
        self.tokens += entry.tokens
        views, tokens = self.views, entry.tokens
        for seat in self._hearers[channel]:
            view = views[seat]
            view.turns += 1
            view.tokens += tokens
        if len(chunk.refs) >= CHUNK_TURNS or chunk.chars >= CHUNK_CHARS or kind == "session":
            self._close(chunk, seq, turn.id)  # a session's title stands by itself, where the session begins

    def _common(self, chunk: Chunk) -> list[Ref]:
        """The turns of a chunk that every player character of their time heard."""
        mask = self._masks[chunk.channel]
        if self._from_the_start & ~mask:
            return []  # one who was there all the time did not hear it
        if self._from_the_start and all(mask & bit for _, bit in self._players):
            return chunk.refs

        def common(ref: Ref) -> bool:
            there = [bit for since, bit in self._players if ref.seq > since.get(ref.branch, 0)]
            return bool(there) and all(mask & bit for bit in there)

        return [ref for ref in chunk.refs if common(ref)]

    def _change_scene(self, entry: Entry, turn_id: str, mask: int) -> None:
        if entry.kind == "session":
            self.sessions += 1
        elif entry.kind == "enter":
            self.presence[entry.speaker] = entry.location
        else:
            self.presence[entry.speaker] = None
        for (channel, _), chunk in list(self.open.items()):
            if self._masks[channel] & mask == self._masks[channel]:
                self._close(chunk, entry.seq, turn_id)

    def _close(self, chunk: Chunk, seq: int, closer: str) -> None:
        """Turns the open end of a channel into a chunk, and hangs it on the tree of everyone who heard it."""
        del self.open[chunk.channel, chunk.track]
        mask = self._masks[chunk.channel]
        known: tuple[str, ...] = ()
        if self.registry:
            told = [labels for number, labels in self.registry.items() if mask & self._masks[number] == mask]
            known = known_in("\n".join(turn.text for turn in chunk.turns), told)
        refs = [self.current(ref) for ref in chunk.refs] if self.revisions else chunk.refs
        make = partial(
            make_leaf, channel=chunk.channel, location=chunk.location, closed=seq, closer=closer, known=known,
            place=place_at(seq) if self._placed else "",
        )  # fmt: skip
        leaf = make(refs)
        leaf.turns = tuple(chunk.turns)
        if not known and (part := self.shelf.get(key_of_part(refs))) is not None:
            leaf.take_over(part)
        leaf = self._intern(leaf)
        hearers = self._hearers[chunk.channel]
        self.folds_shared += max(0, len(hearers) - 1)
        for seat in hearers:
            self.views[seat].trees[chunk.track].push(leaf, self._intern)
        common = self._common(chunk)
        if common:
            if len(common) < len(refs):  # someone joined in the middle of it
                leaf = self._intern(make([self.current(ref) for ref in common]))
            view = self.views[COMMON]
            view.turns += leaf.turn_count
            view.tokens += leaf.tokens
            view.trees[chunk.track].push(leaf, self._intern_common)

    def _intern_common(self, node: Node) -> Node:
        """The same for what all players have in common, which no seat has to be spared of making."""
        before = self.folds_shared
        here = self._intern(node)
        self.folds_common += self.folds_shared - before
        return here

    def _intern(self, node: Node) -> Node:
        here = self.shelf.get(node.key)
        if here is not None:
            self.folds_shared += node.level > 0
            return here
        self.folds_made += 1
        self.shelf.add(node)
        return node

    def _register(self, mentions: Iterable[str], channel: int) -> None:
        """Notes what the hearers have heard of, per channel, so that nothing that others hear crowds it out (I3). What was not
        mentioned for long is dropped first."""
        labels = self.registry.setdefault(channel, {})
        for mention in mentions:
            label = mention.casefold()
            labels.pop(label, None)
            labels[label] = None
        while len(labels) > REGISTRY_SIZE:
            del labels[next(iter(labels))]

    # -- what the author does to the log -------------------------------------------------------------------------------

    def _pin(self, entry: Entry) -> None:
        assert entry.extra is not None
        target = entry.extra["target"]
        if entry.kind == "pin":
            self.pins[target] = (Position(*entry.extra["at"]), entry.channel)
        else:
            self.pins.pop(target, None)
        self.epoch += 1

    def _mark(self, entry: Entry) -> None:
        """What a topic holds is capped per channel, so that nothing crowds out what others do not know of (I3)."""
        if not entry.text:
            return  # forgotten: as if it had never been
        assert entry.extra is not None
        for topic, channel, *place in entry.extra.get("drops", ()):
            kept = self.marks.get((topic, channel), [])
            if (dropped := Placed(*place)) in kept:
                kept.remove(dropped)
        kept = self.marks.setdefault((entry.extra["topic"], entry.channel), [])
        insort(kept, Placed(entry.extra["rank"], entry.seq, entry.branch))
        del kept[: max(0, bisect_left(kept, (entry.extra.get("lasting", float("inf")),)) - entry.extra["keep"])]

    def ordinals(self, view: str, seqs: Sequence[int]) -> list[int]:
        """How many turns the view had heard when each of those was told. What was counted once stays so. May raise `Missing`."""
        known = self._counted.setdefault(view, {})
        asked = sorted({seq for seq in seqs if seq not in known})
        found = dict(zip(asked, self._count(view, asked), strict=True)) if asked else {}
        numbers = [known[seq] if seq in known else found[seq] for seq in seqs]
        if len(known) > MOST_COUNTED:
            known.clear()
        known.update((seq, number) for seq, number in found.items() if seq <= self.seq)
        return numbers

    def _count(self, view: str, asked: Sequence[int]) -> list[int]:
        """The same for numbers in order, each once, in one walk over the folds."""
        later = [0] * (len(asked) + 1)  # at i: how many turns came after asked[i - 1], and no later than asked[i]
        refs: list[Ref] = [ref for chunk in self.open_for(view) for ref in chunk.refs]
        nodes = self.views[view].roots()
        while nodes:
            node = nodes.pop()
            before = bisect_left(asked, node.first)
            if before == bisect_left(asked, node.last):
                later[before] += node.turn_count
            elif node.level:
                nodes += self.shelf.children(node)
            else:
                refs += node.refs
        for ref in refs:
            later[bisect_left(asked, ref.seq)] += 1
        return [self.views[view].turns - behind for behind in [*accumulate(reversed(later[1:]))][::-1]]

    def _rewrite(self, entry: Entry, turn: Turn) -> None:
        assert entry.extra is not None
        target = entry.extra["target"]
        if not entry.text:
            return  # forgotten: as if it had never been
        if entry.kind == "override":
            self._swap(self.replaced_by(entry), lambda node: rewrite(node, entry.text, turn.id))
        else:
            edited = self.revisions.get(target)
            revision = edited.times + 1 if edited else 1
            self._swap(self.replaced_by(entry), lambda node: revise(node, target, turn.id))
            self.revisions[target] = Edit(revision, entry.position, turn.id)
            for chunk in self.open.values():
                for index, ref in enumerate(chunk.refs):
                    if ref.id == target:
                        chunk.turns[index] = chunk.turns[index]._replace(text=entry.text, revision=revision)
        self.epoch += 1

    def replaced_by(self, entry: Entry) -> list[Node]:
        """The folds in whose place others come by what the author does, apart from those made of them. May raise `Missing`."""
        if not entry.text or entry.kind not in ("edit", "override"):
            return []
        assert entry.extra is not None
        return self._leaves_of(entry) if entry.kind == "edit" else [self.shelf.node(entry.extra["target"])]

    def _leaves_of(self, edit: Entry) -> list[Node]:
        """The chunk that an edit changes, if its turn is in a closed one; and the part of it that all have in common, where someone joined
        in the middle of it. May raise `Missing`."""
        assert edit.extra is not None
        target: str = edit.extra["target"]
        seq: int = edit.extra["at"][1]

        def wanted(node: Node) -> bool:
            return node.level == 0 and any(ref.id == target for ref in node.refs)

        def within(node: Node) -> bool:
            return node.first <= seq <= node.last

        views = (*self._hearers[edit.channel][:1], COMMON)  # nobody may have heard it: then it is in no view
        found = [find(self.views[view].roots(), wanted, within, self.shelf.children) for view in views]
        return list({leaf.key: leaf for leaf in found if leaf is not None}.values())

    def _swap(self, olds: Sequence[Node], make: Callable[[Node], Node]) -> None:
        """Replaces folds, and all above them, in every tree that has them. All reading comes before the first change."""
        children_of = self.shelf.children
        trees = [(tree, seat) for seat, view in self.views.items() for tree in view.trees]
        holders = [(old, tree, seat) for old in olds for tree, seat in trees if contains(tree, old, children_of)]
        news = {key: self._intern(make(old)) for key, old in {old.key: old for old, _, _ in holders}.items()}
        for old, tree, seat in holders:
            replace(tree, old, news[old.key], children_of, self._intern_common if seat == COMMON else self._intern)

    def holders(self, node: Node) -> list[str]:
        """The seats whose memory has this fold."""
        return [seat for seat in self.views if seat != COMMON and self.holds(seat, node)]

    def holds(self, seat: str, node: Node) -> bool:
        """Whether the fold is in the seat's memory as it is now."""
        return any(contains(tree, node, self.shelf.children) for tree in self.views[seat].trees)

    def open_for(self, seat: str) -> list[Chunk]:
        """The open chunks that the seat hears."""
        if seat == COMMON:
            return [chunk.only(common) for chunk in self.open.values() if (common := self._common(chunk))]
        return [chunk for (channel, _), chunk in self.open.items() if seat in self._hearers[channel]]


def _elsewhere(here: str | None, there: str | None) -> bool:
    """Whether the scene has moved. What happens nowhere in particular, such as a narrator's remark, does not move it."""
    return here is not None and there is not None and here != there
