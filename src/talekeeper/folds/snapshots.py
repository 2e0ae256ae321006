"""A snapshot: the state of a branch as JSON values, written down now and then, and taken over again.

It names the folds it stands on and sketches the roots, which is all that the next larger folds need. Ones that were written by older
versions, which had less in them, can still be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from talekeeper.folds.nodes import Ref, Sketch, TurnsOf, sketch
from talekeeper.folds.shelf import Shelf
from talekeeper.folds.state import Chunk, Edit, Placed, State, View
from talekeeper.folds.trees import Tree
from talekeeper.ports import Position


def to_json(state: State) -> dict[str, Any]:
    """The state as JSON values. Every fold it names must be stored."""
    return {
        "seq": state.seq, "turns": state.turns, "tokens": state.tokens, "sessions": state.sessions,
        "folds": [state.folds_made, state.folds_shared], "common": state.folds_common, "epoch": state.epoch,
        "presence": dict(state.presence),
        "revisions": {turn: [edit.times, *edit.at, edit.event] for turn, edit in state.revisions.items()},
        "pins": {turn: [*at, channel] for turn, (at, channel) in state.pins.items()},
        "marks": [[*place, [list(mark) for mark in kept]] for place, kept in state.marks.items()],
        "registry": [[channel, list(labels)] for channel, labels in state.registry.items()],
        "open": [[c.channel, c.track, c.location, c.chars, [list(ref) for ref in c.refs]] for c in state.open.values()],
        "views": {
            seat: [view.turns, view.tokens, [tree.keys() for tree in view.trees]] for seat, view in state.views.items() if view.turns
        },
        "roots": {
            node.key: [*sketch(node)[1:-1], *node.known]
            for view in state.views.values() if view.turns for tree in view.trees for node in tree.sketches()
        },
    }  # fmt: skip


def folds_made(data: Mapping[str, Any]) -> int:
    """How many folds had been made when the snapshot was written."""
    made: int = data["folds"][0]
    return made


def load_json(state: State, data: Mapping[str, Any], turns_of: TurnsOf) -> None:
    """Takes over a snapshot. Raises `Missing` for the folds and turns it needs."""
    views: dict[str, View] = {seat: View() for seat in state.views}
    for seat, (turns, tokens, trees) in data["views"].items():
        views[seat] = View(turns, tokens, [_tree(state.shelf, levels, data.get("roots")) for levels in trees])
    revisions = edits_named(data)
    opened: dict[tuple[int, int], Chunk] = {}
    for channel, track, location, chars, refs in data["open"]:
        chunk = opened[channel, track] = Chunk(channel, track, location)
        chunk.refs = [Ref(*ref) for ref in refs]
        chunk.chars = chars
    told = iter(turns_of([ref for chunk in opened.values() for ref in chunk.refs]))  # all that are missing are asked for at once
    for chunk in opened.values():
        chunk.turns = list(islice(told, len(chunk.refs)))
    state.seq, state.turns, state.tokens, state.sessions = data["seq"], data["turns"], data["tokens"], data["sessions"]
    state.folds_made, state.folds_shared = data["folds"]
    state.folds_common = data.get("common", 0)  # older snapshots do not tell
    state.epoch = data["epoch"]
    state.presence = dict(data["presence"])
    state.revisions, state.open, state.views = revisions, opened, views
    state.pins = {turn: (Position(row[0], row[1]), row[2]) for turn, row in data["pins"].items()}
    state.registry = {channel: dict.fromkeys(labels) for channel, labels in data["registry"]}
    state.marks = {(topic, channel): [Placed(*mark) for mark in kept] for topic, channel, kept in data.get("marks", ())}


def _tree(shelf: Shelf, levels: Sequence[Sequence[str]], roots: Mapping[str, Sequence[Any]] | None) -> Tree:
    """The tree of a snapshot. Older snapshots have no sketches of its roots, which must be here by now."""
    if roots is None:
        return Tree([[shelf.node(key) for key in level] for level in levels])
    sketches = [[Sketch._make((key, *roots[key][:7], tuple(roots[key][7:]))) for key in level] for level in levels]
    return Tree(sketches, shelf.get if any(sketches) else None)


def edits_named(data: Mapping[str, Any]) -> dict[str, Edit]:
    """The edits that a snapshot knows of."""
    return {turn: Edit(times, Position(branch, seq), event) for turn, (times, branch, seq, event) in data["revisions"].items()}


def folds_named(data: Mapping[str, Any]) -> list[str]:
    """The keys of all folds that a snapshot names."""
    return list(dict.fromkeys(key for _, _, trees in data["views"].values() for levels in trees for level in levels for key in level))
