"""What must go for a turn to be forgotten, in one commit: its text and edits, and every fold made from it, put back made anew.

What a turn mentioned lives on where others tell of it: chunks note which of the names that were heard of occur in them. So the folds of a
story, from that turn on, are asked what they would know of had it never been told. A chunk notes that when it is closed, and keeps it when
a turn of it is edited: then it is asked, too, since its present text does not tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from talekeeper.folds.nodes import Node, Ref, extract, knows_peaks
from talekeeper.folds.snapshots import to_json
from talekeeper.live.shared import path_to
from talekeeper.model import AUTHOR_KINDS, Turn
from talekeeper.ports import Commit, Entry, Erase, Extent, FoldRecord, Position, Snapshot, StoryRecord
from talekeeper.recall.terms import index_terms
from talekeeper.story.replay import Replay, snapshot_before

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper
    from talekeeper.live.hot import Hot

Known = Mapping[str, tuple[str, ...]]
"""The names that a fold knows of, by its key."""


async def erasure(keeper: Keeper, hot: Hot, name: str, at: Position, story: StoryRecord) -> Commit:
    """Blanks the turn and its edits, takes the folds made from it out, and puts them back made anew from what is left: all that there is.
    Whatever someone else adds meanwhile makes the commit fail, to be made again; what comes after it is made of what is left."""
    records = {record.key: record for record in (await hot.read(all_folds=True)).folds}
    made_from_it = _made_from(name, (), records.values())
    told = (await hot.read(positions=[at])).entries
    about = (await hot.read(targeting=[name, *made_from_it])).entries
    entries = [entry for entry in (*told, *about) if entry.text]
    blank = {entry.position: _blank(hot, entry) for entry in entries}
    mentioned = any((entry.extra or {}).get("mentions") for entry in entries)
    known = await _known_without(keeper, story, at, blank) if mentioned or _knew_before_an_edit(made_from_it, records) else {}
    labels = {key: tuple(record.shape.get("known", ())) for key, record in records.items()}
    elsewhere = [key for key, record in records.items() if key in known and not record.shape["level"] and labels[key] != known[key]]
    tainted = _made_from(name, elsewhere, records.values()) if elsewhere else made_from_it
    again = await _remade(hot, {key: Node.from_record(record) for key, record in records.items()}, tainted, blank, known)
    authors = any(entry.kind in AUTHOR_KINDS for entry in entries)
    erase = Erase(
        entries=list(blank.values()), folds=tainted, extent=Extent(len(records), [name, *made_from_it], len(about)),
        # a snapshot knows what was mentioned, in which folds, and what the author did: those must be made anew, too
        snapshots=mentioned or authors or any(node.known != labels[node.key] for node in again),
        index={one.position: list(index_terms(one.text, one.voice, one.kind)) for one in entries if one.kind != "mark"},
    )  # fmt: skip
    return Commit(story=story.id, rev=story.rev, touch=True, erase=erase, folds=[node.record() for node in again])


def _knew_before_an_edit(keys: Iterable[str], records: Mapping[str, FoldRecord]) -> bool:
    """Whether one of these folds may know names that stood in a turn of it before that was edited."""
    shapes = (records[key].shape for key in keys)
    return any(shape.get("known") and any(revision for _, _, _, revision, _ in shape.get("refs", ())) for shape in shapes)


def _blank(hot: Hot, entry: Entry) -> Entry:
    """What is left of a forgotten entry: its place, its size, who spoke and who heard it. A voice that the speaker lent goes, too."""
    extra = {name: value for name, value in (entry.extra or {}).items() if name in ("target", "at")}
    voice = hot.seats[entry.speaker].label if entry.speaker else ""
    return entry._replace(voice=voice, text="", extra={**extra, "forgotten": len(entry.text)})


def _made_from(turn: str, others: Collection[str], records: Iterable[FoldRecord]) -> list[str]:
    """The keys of all folds that a turn went into, or any of some folds, smaller ones first; and of such as lack a part."""
    tainted: dict[str, None] = {}
    whole: set[str] = set()
    for record in sorted(records, key=lambda record: record.shape["level"]):
        shape = record.shape
        direct = record.key in others or any(ref[2] == turn for ref in shape.get("refs", ()))
        if direct or not whole.issuperset(shape.get("children", ())):
            tainted[record.key] = None
        else:
            whole.add(record.key)
    return list(tainted)


async def _known_without(keeper: Keeper, story: StoryRecord, at: Position, blank: Mapping[Position, Entry]) -> Known:
    """What the folds from that turn on would know of, on every branch that has it, were those entries blank. Every entry is replayed once:
    a branch goes on from how its parent stood where it left it."""
    known: dict[str, tuple[str, ...]] = {}
    left: dict[tuple[int | None, int], tuple[Snapshot | None, dict[str, Node]]] = {}
    for branch in sorted(story.branches.values(), key=lambda branch: branch.id):
        rev, head = await keeper.store.head(story.id, branch.id)
        if rev != story.rev:
            return {}  # there may be channels that its record does not have: the commit is refused in any case, and made again
        if not path_to(story.branches, branch.id, head).has(*at):
            continue
        if branch.id == at.branch:
            start, nodes = await snapshot_before(keeper.store, story, branch, at.seq - 1), dict[str, Node]()
        else:
            start, nodes = left[branch.parent, branch.at]
        replay = Replay(keeper, story, branch, start, blank)
        await replay.go(start.seq if start is not None else 0)
        replay.hot.state.shelf.unsaved.update(nodes)
        leaving = {child.at for child in story.branches.values() if child.parent == branch.id and child.at >= at.seq}
        for stop in sorted({*leaving, head}):
            made = await replay.go(stop)
            known.update((key, node.known) for key, node in made.items())
            nodes = {**nodes, **made}
            if stop in leaving:
                left[branch.id, stop] = Snapshot(branch.id, stop, to_json(replay.hot.state)), nodes
    return known


async def _remade(hot: Hot, nodes: Mapping[str, Node], keys: Sequence[str], blank: Collection[Position], known: Known) -> list[Node]:
    """Folds made anew as if what stood at some places had never been there. Those by the author's hand, and what stood on them, are not:
    their words go. `keys` have smaller folds first."""
    made: list[Node] = []
    gone: set[str] = set()
    for node in (nodes[key] for key in keys):
        if node.author or any(child in gone or child not in nodes for child in node.children):
            gone.add(node.key)
        else:
            made.append(node)
    again = {node.key for node in made}
    read = [*made, *(chunk for node in made for chunk in _unread(node, nodes, again))]
    places = {_text_at(hot, ref): ref for node in read for ref in node.refs}
    texts = {entry.position: entry for entry in (await hot.read(positions=list(places))).entries}
    owners = {entry.position: entry for entry in (await hot.read(positions=[ref.position for ref in places.values()])).entries}

    def turns_of(refs: Sequence[Ref]) -> list[Turn]:
        return [
            hot.turn(owners[ref.position])._replace(text="" if _text_at(hot, ref) in blank else texts[_text_at(hot, ref)].text)
            for ref in refs
        ]

    for node in made:
        node.sentences = None
        node.gathered = {}
        told = "\n".join(turn.text for turn in turns_of(node.refs)).casefold()
        children = [nodes[key] for key in node.children]
        kept = [label for child in children for label in child.known] if node.level else [label for label in node.known if label in told]
        node.known = known[node.key] if node.key in known else tuple(dict.fromkeys(kept))[:64]
        extract(node, lambda parent: [nodes[key] for key in parent.children], turns_of)
    return made


def _unread(fold: Node, nodes: Mapping[str, Node], again: Collection[str]) -> Iterator[Node]:
    """The chunks under a fold that stay as they are, and of which nobody has noted how telling their turns are: the fold has to know."""
    for child in (nodes[key] for key in fold.children):
        if child.key in again or knows_peaks(child):
            continue
        if child.level:
            yield from _unread(child, nodes, again)
        else:
            yield child


def _text_at(hot: Hot, ref: Ref) -> Position:
    """Where the text stands that a fold was made from: the turn itself, or the edit of it."""
    edited = hot.shared.names.position(ref.revision) if ref.revision else None
    return edited or ref.position
