"""The newest turn told again: which one that is, what goes along to the line on which it is told, and how else it was told before.

What the author did after it (edits, pins, marks, folds written over) holds on the new line, too: it is copied, and the copies refer to
each other as the originals did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from talekeeper.folds.nodes import Node, extract, make_parent, revise, rewrite, rewritten_key
from talekeeper.live.hot import Hot
from talekeeper.model import AUTHOR_KINDS, Turn
from talekeeper.ports import Entry, Position, Span


async def newest(hot: Hot) -> tuple[Turn | None, list[Entry]]:
    """The newest turn (as it was written, blank if it was forgotten), and what the author did after it."""
    later: list[Entry] = []
    last = hot.state.seq
    while last:
        first = max(1, last - 63)
        found = await hot.read(spans=[Span(*piece) for piece in hot.path.spans(first, last)])
        for entry in reversed(found.entries):
            if entry.kind not in AUTHOR_KINDS:
                return hot.turn(entry), later[::-1]
            later.append(entry)
        last = first - 1
    return None, []


def carried_over(hot: Hot, later: Iterable[Entry], behind: Position) -> tuple[list[Entry], Iterable[Node]]:
    """Copies of what the author did after the newest turn, to stand behind an entry of another line, and the folds that get new keys
    by that. Copies have new ids, so where they refer to each other (a mark that drops a mark, a revision that is an edit, a fold that
    was written over) the new ones take the place of the old. The folds are stored with the copies: else nobody could tell which turns
    the author's texts are about, and forget them with those. May raise `Missing`."""
    names, shelf = hot.shared.names, hot.state.shelf
    entries: list[Entry] = []
    ids, folds, touched = dict[str, str](), dict[str, Node](), list[int]()
    places: dict[tuple[int, ...], tuple[int, int]] = {}

    def fold(key: str) -> Node:
        node = folds.get(key) or shelf.node(key)
        if key in folds or node.author or not any(node.first <= seq <= node.last for seq in touched):
            return node
        made = make_parent([fold(child) for child in node.children]) if node.level else node
        for ref in node.refs:
            made = revise(made, ref.id, ids[ref.revision]) if ref.revision in ids else made
        if made.key != key:
            made.sentences, folds[key] = extract(node, shelf.children, hot.turns_of), made
        return folds.get(key, node)

    for entry in later:
        extra: dict[str, Any] = {**(entry.extra or {})}
        place = Position(behind.branch, behind.seq + len(entries) + 1)
        old, new = names.name(*entry.position), names.name(*place)
        if entry.kind == "mark" and entry.text:
            extra["sources"] = [[turn, ids.get(revision, revision), seq] for turn, revision, seq in extra["sources"]]
            extra["drops"] = [[*row[:3], *places.get(tuple(row[3:]), row[3:])] for row in extra.get("drops", ())]
        elif entry.kind == "edit":
            touched.append(extra["at"][1])
        elif entry.kind == "override" and entry.text:
            node = fold(extra["target"])
            if node.closed >= behind.seq:
                continue  # made of the turn that is told again, or ended by it
            folds[rewritten_key(extra["target"], old)] = rewrite(node, entry.text, new)
            touched.append(node.first)
            extra["target"] = node.key
        ids[old], places[entry.seq, entry.branch] = new, (place.seq, place.branch)
        entries.append(entry._replace(branch=place.branch, seq=place.seq, extra=extra))
    return entries, folds.values()


async def tellings(hot: Hot) -> list[Turn]:
    """The tellings of the newest turn on all branches, itself as the last and as it reads now."""
    current, _ = await newest(hot)
    if current is None:
        return []
    before = hot.path.position(current.seq - 1)
    found: list[Turn] = []
    for branch in sorted(hot.shared.record.branches.values(), key=lambda branch: branch.id):
        parent = Position(branch.parent, branch.at) if branch.parent is not None and branch.at else None
        goes_on = before is not None and branch.id == before.branch
        if goes_on or (branch.at == current.seq - 1 and parent == before):
            found += [turn for _, turn in await hot.read_turns([Position(branch.id, current.seq)])]
    dms = hot.state.dms  # one may have joined since: every DM hears everything

    def like(turn: Turn) -> tuple[str, str, set[str]]:
        return turn.kind, turn.speaker, set(turn.audience).difference(dms)

    told = [turn for turn in found if turn.text and like(turn) == like(current)]
    return [turn for turn in told if turn.id != current.id] + [turn for turn in told if turn.id == current.id]
