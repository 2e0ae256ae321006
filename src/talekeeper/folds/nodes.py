"""What to fold: chunks of channels, and trees of chunks for each view. Pure values and functions.

Level 0 is per channel. A chunk is a run of what exactly one set of seats heard; where it ends is decided by things that all of them
heard (its own size, a change of place, someone coming or going, a new session), never by anyone's token limit, so every member of
the channel has the same chunks and a chunk's boundary tells nothing (I3).

Levels 1 and up belong to a view: eight neighbours of one level make a fold of the next, in the order in which chunks were closed.
That order only ever grows, so a tree is never rebuilt, a turn is summarised O(log n) times, and a view of n turns hangs on
O(log n) roots (I9).

A fold's key is the hash of its sources (turn ids with revisions, or the keys of smaller folds). Same sources, same key, same
extractive text, for ever: seats with the same past share folds, a crash in mid-fold loses nothing, two workers cannot make two (I5),
and a rewind finds the very folds that were there before (I4). An edit gives the chunk a new key, and so every fold above it.
Before the hash a key has its *place*, the entry at which the last source was closed: folds that are made together are stored together.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from talekeeper.model import Item, Sentence, Turn, new_sentence
from talekeeper.ports import FoldRecord, Position, TextRecord
from talekeeper.summarize import extractive
from talekeeper.summarize.salience import Read, worths

CHUNK_TURNS, CHUNK_CHARS = 8, 6000
"""A chunk is closed when it has so many turns, or so many characters."""
FANOUT = 8
"""So many folds of one level make one of the next."""
PEAKS = 8
"""How many of its most telling turns a larger fold knows."""
_TELLING = "telling-2"
"""The name under which it is stored with a fold how telling its turns are. It changes when the rules do."""
_SHORT = 8
"""Below so many tokens, being shorter counts no more."""
LEAF_SHARE = 0.4
"""How much of its turns' tokens the text of a chunk may have."""
BY_HAND = 20.0
"""What the author's own words are worth beside what was picked from turns: they come first in larger folds and digests."""


class Ref(NamedTuple):
    """A turn as a fold's source: where it stands, its id, the id of the edit that gave it its present text ("" where none did), and
    what it weighs in raw tokens. Edits of one turn on two branches are two revisions: branches never share what they changed (I4)."""

    branch: int
    seq: int
    id: str
    revision: str
    tokens: int

    @property
    def position(self) -> Position:
        return Position(self.branch, self.seq)


class Missing(Exception):
    """Something needed is not in memory. Pure code raises it; the story loads what it names and calls again."""

    def __init__(self, folds: Iterable[str] = (), positions: Iterable[Position] = ()) -> None:
        super().__init__("not in memory")
        self.folds = tuple(folds)
        self.positions = tuple(positions)


class Shown(NamedTuple):
    """How a fold was last shown in a context, kept for the next."""

    text: TextRecord | None
    """The model's text that was shown, if one was: with another, nothing else here holds."""
    quiet: bool
    """Whether it has nothing to tell."""
    texts: frozenset[str]
    """Its sentences, if they were picked from turns; none of a model's or the author's."""
    first: int
    last: int
    """The first and the last entry that these are of; 0 where there are none."""
    items: dict[bool | tuple[bool, frozenset[str]] | tuple[str, ...], Item]
    """Its paragraphs: with its place or without, without some sentences, told together with other folds."""


class Node:
    """A fold in a tree. Its identity never changes; its texts are filled in as they are made."""

    __slots__ = (
        "__weakref__",
        "author", "channel", "children", "closed", "closed_first", "closer", "first", "gathered", "key", "known", "last", "level",
        "location", "peaks", "placed", "refs", "rules", "sentences", "shown", "texts", "tokens", "turn_count", "turns", "unstored",
    )  # fmt: skip

    key: str
    level: int
    children: tuple[str, ...]
    refs: tuple[Ref, ...]
    first: int
    last: int
    closed_first: int
    closed: int
    turn_count: int
    tokens: int
    channel: int
    closer: str
    location: str | None
    known: tuple[str, ...]
    author: bool
    rules: int
    """The edition of the rules by which it is told, and what it is made of: the older where they differ."""
    turns: tuple[Turn, ...] | None
    sentences: tuple[Sentence, ...] | None
    texts: list[TextRecord]
    gathered: dict[str, Any]
    unstored: dict[str, dict[str, Any]] | None
    shown: Shown | None
    placed: tuple[Sequence[Sentence], Sequence[Sentence]] | None
    peaks: Sequence[Peak] | None

    def __init__(self, key: str, level: int) -> None:
        self.key = key
        self.level = level
        self.children = ()
        self.refs = ()
        self.channel = -1
        self.closer = ""
        self.location = None
        self.known = ()
        self.author = False
        self.rules = extractive.RULES
        self.turns = None
        self.sentences = None
        self.texts = []
        self.gathered = {}
        self.unstored = None
        self.shown = None
        self.placed = None
        self.peaks = None

    def take_over(self, part: Node) -> None:
        """Tells its turns as they were told when they stood for a part of a chunk, if they were: it is the same text."""
        if part.sentences is not None:
            self.sentences, self.gathered, self.turns = part.sentences, {_TELLING: part.gathered[_TELLING]}, None

    def note(self, name: str, value: Any) -> None:
        """Keeps what was gathered over the fold. Where the fold is stored already, that is noted: its record says nothing of it."""
        self.gathered[name] = value
        if self.unstored is not None:
            self.unstored.setdefault(self.key, {})[name] = value

    def limit(self) -> int:
        """How many tokens the fold's own text may have, in English."""
        if self.level == 0:
            return max(48, min(150, int(self.tokens * LEAF_SHARE)))
        return 120 + 40 * min(self.level, 5)

    def record(self) -> FoldRecord:
        """The fold as it is stored; its extractive text must have been made."""
        assert self.sentences is not None
        shape: dict[str, Any] = {
            "level": self.level, "first": self.first, "last": self.last, "closed": [self.closed_first, self.closed],
            "turns": self.turn_count, "tokens": self.tokens,
        }  # fmt: skip
        if self.level:
            shape["children"] = self.children
        else:
            shape["refs"] = self.refs
            shape["channel"] = self.channel
            shape["closer"] = self.closer
            if self.location is not None:
                shape["location"] = self.location
        if self.known:
            shape["known"] = self.known
        if self.author:
            shape["author"] = True
        if self.rules:
            shape["rules"] = self.rules
        if self.gathered:
            shape["gathered"] = dict(self.gathered)
        return FoldRecord(self.key, shape, pack_sentences(self.sentences))

    @classmethod
    def from_record(cls, record: FoldRecord, texts: Iterable[TextRecord] = (), gathered: Mapping[str, Any] | None = None) -> Node:
        shape = record.shape
        node = cls(record.key, shape["level"])
        node.children = tuple(shape.get("children", ()))
        node.refs = tuple(Ref(*ref) for ref in shape.get("refs", ()))
        node.first, node.last = shape["first"], shape["last"]
        node.closed_first, node.closed = shape["closed"]
        node.turn_count, node.tokens = shape["turns"], shape["tokens"]
        node.channel = shape.get("channel", -1)
        node.closer = shape.get("closer", "")
        node.location = shape.get("location")
        node.known = tuple(shape.get("known", ()))
        node.author = bool(shape.get("author"))
        node.rules = shape.get("rules", 0)
        node.gathered = {**shape.get("gathered", {}), **(gathered or {})}
        node.sentences = unpack_sentences(record.sentences)
        node.texts = list(texts)
        return node


class Sketch(NamedTuple):
    """A fold of which no more is in memory than a larger one has to know of it."""

    key: str
    level: int
    first: int
    last: int
    closed_first: int
    closed: int
    turn_count: int
    tokens: int
    known: tuple[str, ...] = ()


def sketch(node: Node | Sketch) -> Sketch:
    return Sketch(
        node.key, node.level, node.first, node.last, node.closed_first, node.closed, node.turn_count, node.tokens, node.known
    )  # fmt: skip


def pack_sentences(sentences: Iterable[Sentence]) -> list[Sequence[Any]]:
    """Sentences as they are stored; one that has no time is without place and time."""
    return [(s.text, s.sources, int(s.estimated), s.weight, s.about, s.place, s.at)[: 7 if s.at else 5] for s in sentences]


def unpack_sentences(rows: Iterable[Sequence[Any]]) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(text, tuple(sources), bool(estimated), weight, tuple(about), *where)
        for text, sources, estimated, weight, about, *where in rows
    )


PLACE = 8
"""How many characters of a key are its place. Keys of stories from before there were places have none."""
HASH = 24


def place_at(seq: int) -> str:
    return f"{seq:08x}"


def _hash(*parts: Any) -> str:
    return hashlib.blake2b(json.dumps(parts, ensure_ascii=True).encode(), digest_size=HASH // 2).hexdigest()


def make_leaf(
    refs: Sequence[Ref], *, channel: int, location: str | None, closed: int, closer: str, known: tuple[str, ...] = (), place: str = ""
) -> Node:
    """A fold over a run of turns of one channel. `closer` is the id of the turn that ended the run, at the entry `closed`; "" where it is
    a part of a chunk, to be shown and never stored."""
    node = Node(place + _hash([(ref.id, ref.revision) for ref in refs], closer) if closer else key_of_part(refs), 0)
    node.closer = closer
    node.refs = tuple(refs)
    node.first, node.last = refs[0].seq, refs[-1].seq
    node.closed_first = node.closed = closed
    node.turn_count = len(refs)
    node.tokens = sum([ref.tokens for ref in refs])
    node.channel, node.location, node.known = channel, location, known
    return node


def key_of_part(refs: Sequence[Ref]) -> str:
    """A key for as long as the story is in memory: of one channel, all between the first turn and the last, with their edits."""
    edits = "".join([f" {ref.seq}:{ref.revision}" for ref in refs if ref.revision])
    return f"{refs[0].branch}.{refs[0].seq}-{refs[-1].branch}.{refs[-1].seq}{edits}"


def make_parent(children: Sequence[Node | Sketch]) -> Node:
    """A fold over a run of folds of one level."""
    node = Node(children[-1].key[:-HASH] + _hash([child.key for child in children]), children[0].level + 1)
    node.children = tuple(child.key for child in children)
    node.first = min([child.first for child in children])
    node.last = max([child.last for child in children])
    node.closed_first, node.closed = children[0].closed_first, children[-1].closed
    node.turn_count = sum([child.turn_count for child in children])
    node.tokens = sum([child.tokens for child in children])
    node.known = tuple(dict.fromkeys(label for child in children for label in child.known))[:64]
    return node


def rewritten_key(key: str, event: str) -> str:
    return key[:-HASH] + _hash(key, event)


def first_key(node: Node) -> str:
    """The key that the fold had before an author wrote over it."""
    made = _hash(list(node.children)) if node.level else _hash([(ref.id, ref.revision) for ref in node.refs], node.closer)
    return node.key[:-HASH] + made


def rewrite(node: Node, text: str, event: str) -> Node:
    """The same fold with a text by the author's hand; it holds until one of its sources changes."""
    sources = tuple(ref.id for ref in node.refs)  # of a larger fold, its children name them
    copy = replant(node, rewritten_key(node.key, event))
    copy.author = True
    copy.sentences = (Sentence(text.strip(), sources, estimated=True, weight=BY_HAND),)
    return copy


def revise(leaf: Node, turn_id: str, revision: str) -> Node:
    """The chunk after one of its turns was edited."""
    refs = [ref._replace(revision=revision) if ref.id == turn_id else ref for ref in leaf.refs]
    return make_leaf(
        refs, channel=leaf.channel, location=leaf.location, closed=leaf.closed, closer=leaf.closer, known=leaf.known,
        place=leaf.key[:-HASH],
    )  # fmt: skip


def replant(node: Node, key: str) -> Node:
    """A fold of the same place in the tree under another key, without texts."""
    copy = Node(key, node.level)
    for slot in (
        "children", "refs", "first", "last", "closed_first", "closed", "closer", "turn_count", "tokens", "channel", "location", "known",
    ):  # fmt: skip
        setattr(copy, slot, getattr(node, slot))
    return copy


ChildrenOf: TypeAlias = Callable[[Node], Sequence[Node]]
"""The smaller folds that a fold is made of; raises `Missing` where they are not in memory."""

TurnsOf: TypeAlias = Callable[[Sequence[Ref]], Sequence[Turn]]
"""The turns that a chunk is made of; raises `Missing` where they are not in memory."""


# -- texts -------------------------------------------------------------------------------------------------------------


class Path:
    """The way from the story's first entry to a head: which entries of which branches are on it."""

    __slots__ = ("base", "branch", "head", "limits", "segments")

    def __init__(self, segments: Sequence[tuple[int, int, int]], head: int) -> None:
        """`segments`: (branch, first, last) newest first; the last of the newest is open-ended and follows the head."""
        self.segments = list(segments)
        self.branch, first, _ = self.segments[0]
        self.base = first - 1
        self.head = head
        self.limits: Mapping[int, int] = {branch: last for branch, _, last in self.segments[1:]}

    def has(self, branch: int, seq: int) -> bool:
        if branch == self.branch:
            return seq <= self.head
        return seq <= self.limits.get(branch, -1)

    def position(self, seq: int) -> Position | None:
        """Where the entry of that number stands on this path."""
        if not 1 <= seq <= self.head:
            return None
        for branch, first, _ in self.segments:
            if seq >= first:
                return Position(branch, seq)
        return None

    def parts_from(self, other: Path) -> int:
        """The number of the last entry that this path has in common with another of the same story."""
        theirs = {branch: min(last, other.head) for branch, _, last in other.segments}
        for branch, first, last in self.segments:
            common = min(last, self.head, theirs.get(branch, 0))
            if common >= first:
                return common
        return 0

    def spans(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """The pieces (branch, first, last) of the entries `first` … `last`, oldest first."""
        pieces = []
        for branch, start, end in self.segments:
            low, high = max(first, start), min(last, self.head if branch == self.branch else end)
            if low <= high:
                pieces.append((branch, low, high))
        return pieces[::-1]


def visible_text(node: Node, path: Path) -> TextRecord | None:
    """The newest model text of the fold that was born on this path."""
    best = None
    for text in node.texts:
        if path.has(text.branch, text.born) and (best is None or text.born > best.born):
            best = text
    return best


def extract(node: Node, children_of: ChildrenOf, turns_of: TurnsOf) -> tuple[Sentence, ...]:
    """The fold's extractive text, made if it was not there. Asks for smaller folds and turns only if it must make it."""
    if node.sentences is None:
        node.rules = extractive.RULES
        if node.level:
            children = children_of(node)
            parts = in_order((child, extract(child, children_of, turns_of)) for child in children)
            node.rules = min([node.rules, *(child.rules for child in children)])
            limit = extractive.room_for([part.text for part in parts], node.limit())
            node.sentences = extractive.merge(parts, limit=limit, known=node.known)
        else:
            turns = node.turns if node.turns is not None else turns_of(node.refs)
            told = [turn for turn in turns if turn.text]
            drafts = extractive.judged(told, node.known) if told else []
            node.sentences = extractive.choose(drafts, extractive.room_for([turn.text for turn in told], node.limit()))
            node.gathered[_TELLING] = _worths(turns, told, extractive.words_of(drafts, len(told)))
        if node.level:
            peaks(node, children_of, turns_of)
        node.turns = None
    return node.sentences


class Peak(NamedTuple):
    """A turn under a fold, and how telling it is. The best come first: long turns have more to tell, and take the room of several short
    ones; of two alike, the newer."""

    rank: float
    newest: int
    worth: float
    ref: Ref


def peak_of(worth: float, ref: Ref) -> Peak:
    return Peak(-worth / math.sqrt(max(_SHORT, ref.tokens)), -ref.seq, worth, ref)


def peaks(node: Node, children_of: ChildrenOf, turns_of: TurnsOf) -> Sequence[Peak]:
    """The most telling turns under a fold, best first: all of a chunk that tell anything, the best few of a larger fold.

    They are found when the fold's text is made, and are stored with it. What the author wrote over has none."""
    if node.author:
        return ()
    if node.peaks is None:
        node.peaks = _stored_peaks(node) if _TELLING in node.gathered else _find_peaks(node, children_of, turns_of)
    return node.peaks


def knows_peaks(node: Node) -> bool:
    """Whether the most telling turns under a fold are known without reading any."""
    return node.author or node.peaks is not None or _TELLING in node.gathered


def _stored_peaks(node: Node) -> list[Peak]:
    known = node.gathered[_TELLING]
    if node.level:
        return [peak_of(worth, Ref(*ref)) for worth, *ref in known]
    return sorted([peak_of(worth, ref) for worth, ref in zip(known, node.refs, strict=True) if worth > 0])


def _find_peaks(node: Node, children_of: ChildrenOf, turns_of: TurnsOf) -> list[Peak]:
    if node.level:
        found = sorted([peak for child in children_of(node) for peak in peaks(child, children_of, turns_of)])[:PEAKS]
        node.note(_TELLING, [[peak.worth, *peak.ref] for peak in found])
        return found
    turns = node.turns if node.turns is not None else turns_of(node.refs)
    node.note(_TELLING, _worths(turns, [turn for turn in turns if turn.text]))
    return _stored_peaks(node)


def _worths(turns: Sequence[Turn], told: Sequence[Turn], read: Sequence[Read] | None = None) -> list[float]:
    """What each turn is worth; those that were forgotten, nothing."""
    found = iter(worths(told, read))
    return [round(next(found), 2) if turn.text else 0.0 for turn in turns]


def in_order(folds: Iterable[tuple[Node, Sequence[Sentence]]]) -> list[Sentence]:
    """The sentences of several folds in the order of what they tell, each with its place: chunks of several channels overlap."""
    return sorted([sentence for node, sentences in folds for sentence in _placed(node, sentences)], key=_at)


def span_of(node: Node, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """The first and the last entry of which the sentences of a fold tell."""
    times = list(map(_at, _placed(node, sentences)))
    return min(times), max(times)


_at = attrgetter("at")


def _placed(node: Node, sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """The sentences of a fold, each with where and when it was; found once, because several larger folds and digests are made of them."""
    if node.placed is None or node.placed[0] is not sentences:
        if node.level:
            placed = [one if one.at else _at_place(one, one.place, node.first) for one in sentences]
        else:
            seqs = {ref.id: ref.seq for ref in node.refs}
            placed = [
                _at_place(one, node.location or "", min([seqs[source] for source in one.sources if source in seqs], default=node.first))
                for one in sentences
            ]
        node.placed = sentences, placed
    return node.placed[1]


def _at_place(one: Sentence, place: str, at: int) -> Sentence:
    return new_sentence((*one[:5], place, at))


def known_in(text: str, registries: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The registered labels that occur in the text."""
    folded = text.casefold()
    return tuple(dict.fromkeys(label for labels in registries for label in labels if label in folded))
