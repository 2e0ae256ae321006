"""Folds in memory: those used last, and whatever is not stored yet, with what was gathered over them.

A fold is one object for all who hold it, as long as anyone does: a model's text that reaches it reaches them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from talekeeper.folds.nodes import Missing, Node
from talekeeper.ports import FoldRecord, GatheredRecord
from talekeeper.recent import Recent


class Shelf:
    """The folds of one branch. Raises `Missing` for what is not there."""

    def __init__(self) -> None:
        self.unsaved: dict[str, Node] = {}
        self._tried: dict[str, FoldRecord] = {}
        self.gathered: dict[str, dict[str, Any]] = {}  # over folds that were stored before it, by their keys: not stored yet
        self._nodes: Recent[str, Node] = Recent()
        self._in_use: WeakValueDictionary[str, Node] = WeakValueDictionary()

    def get(self, key: str) -> Node | None:
        """The fold of that key, if it is in memory: as long as anyone holds it (a tree, if nobody else), it is the same one for all."""
        node = self.unsaved.get(key) or self._nodes.get(key)
        if node is None and (node := self._in_use.get(key)) is not None:
            self._nodes.put(key, node)
        return node

    def add(self, node: Node) -> None:
        """A new one, which is not stored yet."""
        self.unsaved[node.key] = self._in_use[node.key] = node

    def node(self, key: str) -> Node:
        node = self.get(key)
        if node is None:
            raise Missing(folds=[key])
        return node

    def children(self, parent: Node) -> list[Node]:
        unsaved, stored = self.unsaved.get, self._nodes.get
        nodes = [unsaved(key) or stored(key) or self.get(key) for key in parent.children]
        if None in nodes:
            raise Missing(folds=[key for key, node in zip(parent.children, nodes, strict=True) if node is None])
        return nodes  # type: ignore[return-value]

    def put(self, node: Node) -> Node:
        """The node of that key that is in memory already, else this one."""
        here = self.get(node.key)
        if here is None:
            self._in_use[node.key] = node
            self._keep(node)
        return here or node

    def _keep(self, node: Node) -> None:
        self._nodes.put(node.key, node)
        if node.level or node.closer:  # a part of a chunk is never stored, nor is anything of it
            node.unstored = self.gathered

    def trim(self, room: int) -> None:
        """Lets go of folds that were not used for long and are stored."""
        self._nodes.trim(room)

    def records(self, nodes: Iterable[Node]) -> list[FoldRecord]:
        """Folds as they are to be stored. Those that were tried before are what they were then: whoever was interrupted does not know
        whether they are there, and the first of a key stays."""
        found = [self._tried.get(node.key) or node.record() for node in nodes]
        self._tried.update((record.key, record) for record in found)
        return found

    def saved(self, nodes: Iterable[Node]) -> None:
        """These are stored now, as their records have them: they may leave memory when the room is needed."""
        for node in nodes:
            record = self._tried.pop(node.key, None)
            if record is None:
                continue  # by someone else meanwhile
            self.unsaved.pop(node.key, None)
            self._keep(node)
            for name in node.gathered.keys() - record.shape.get("gathered", {}).keys():  # came while they were being stored
                node.note(name, node.gathered[name])

    def unstored(self, most: int) -> list[GatheredRecord]:
        """Some of what was gathered over folds that were stored before it."""
        waiting = (GatheredRecord(key, name, value) for key, values in self.gathered.items() for name, value in values.items())
        return list(islice(waiting, most))

    def stored(self, gathered: Iterable[GatheredRecord]) -> None:
        """It waits no longer."""
        for one in gathered:
            values = self.gathered.get(one.key, {})
            values.pop(one.name, None)
            if not values:
                self.gathered.pop(one.key, None)

    def take_over(self, other: Shelf) -> None:
        """What the other one knows of the same folds, and has not stored yet, need not be made again."""
        for key, node in self.unsaved.items():
            twin = other.unsaved.get(key)
            if twin is not None:
                node.gathered.update(twin.gathered)
                if twin.sentences is not None:
                    node.sentences, node.peaks, node.turns = twin.sentences, twin.peaks, None
        for key, values in other.gathered.items():
            self.gathered.setdefault(key, {}).update(values)

    def drop_saved(self) -> None:
        """Forgets what is stored anyway, so that it is read again with its newest texts."""
        self._nodes.clear()
        self._in_use = WeakValueDictionary(self.unsaved)
