"""Trees of folds: the roots that a view's closed chunks hang on, and ways through what hangs below them. Pure values and functions.

Whatever is asked for and not in memory is named by `Missing`; the story loads it and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from talekeeper.folds import FANOUT, ChildrenOf, Missing, Node, Sketch, make_parent


class Tree:
    """The roots that a view's closed chunks hang on: fewer than `FANOUT` of each level, oldest (and highest) first when read.

    Those that are known as sketches only are looked for on a shelf when someone asks for them: whoever resumes a story mostly looks at one
    view of it."""

    __slots__ = ("_levels", "_shelf")

    def __init__(self, levels: Sequence[Sequence[Node | Sketch]] = ((),), shelf: Callable[[str], Node | None] | None = None) -> None:
        self._levels = [list(level) for level in levels]
        self._shelf = shelf

    @property
    def levels(self) -> list[list[Node]]:
        """The roots of each level, chunks first. Raises `Missing`."""
        if self._shelf is not None:
            found = {node.key: self._shelf(node.key) for node in self.sketches() if isinstance(node, Sketch)}
            absent = [key for key, node in found.items() if node is None]
            if absent:
                raise Missing(folds=absent)
            self._levels = [[found.get(node.key) or node for node in level] for level in self._levels]
            self._shelf = None
        return self._levels  # type: ignore[return-value]

    def sketches(self) -> list[Node | Sketch]:
        """All roots as far as they are known, chunks first."""
        return [node for level in self._levels for node in level]

    def keys(self) -> list[list[str]]:
        """The keys of the roots of each level, chunks first."""
        return [[node.key for node in level] for level in self._levels]

    def push(self, leaf: Node, intern: Callable[[Node], Node]) -> None:
        """Hangs the newest closed chunk on the tree, and makes the folds that are complete by it."""
        levels = self._levels
        levels[0].append(leaf)
        level = 0
        while len(levels[level]) == FANOUT:
            if level + 1 == len(levels):
                levels.append([])
            levels[level + 1].append(intern(make_parent(levels[level])))
            levels[level] = []
            level += 1

    def roots(self) -> list[Node]:
        """All roots, oldest first. Raises `Missing`."""
        return [node for level in reversed(self.levels) for node in level]

    def copy(self) -> Tree:
        return Tree(self.levels)


def leaves_after(roots: Sequence[Node], closed: int, children_of: ChildrenOf) -> Iterator[Node]:
    """The chunks that were closed after that entry, newest first."""
    for node in reversed(roots):
        if node.closed <= closed:
            return
        if node.level == 0:
            yield node
        else:
            yield from leaves_after(children_of(node), closed, children_of)


def roots_until(roots: Sequence[Node], closed: int, children_of: ChildrenOf) -> list[Node]:
    """The largest folds that together cover exactly the chunks closed no later than that entry, oldest first."""
    kept: list[Node] = []
    for node in roots:
        if node.closed <= closed:
            kept.append(node)
        elif node.closed_first > closed:
            break
        elif node.level:
            kept += roots_until(children_of(node), closed, children_of)
    return kept


def replace(tree: Tree, old: Node, new: Node, children_of: ChildrenOf, intern: Callable[[Node], Node]) -> list[tuple[Node, Node]]:
    """Puts `new` in the place of `old` and renews every fold above it; returns the pairs that changed, lowest first."""

    def descend(node: Node) -> list[tuple[Node, Node]] | None:
        if node.key == old.key:
            return [(old, new)]
        if node.level <= old.level or not (node.closed_first <= old.closed_first and old.closed <= node.closed):
            return None
        children = list(children_of(node))
        for index, child in enumerate(children):
            below = descend(child)
            if below is not None:
                children[index] = below[-1][1]
                return [*below, (node, intern(make_parent(children)))]
        return None

    for level in tree.levels:
        for index, root in enumerate(level):
            changed = descend(root)
            if changed is not None:
                level[index] = changed[-1][1]
                return changed
    return []


def find(roots: Iterable[Node], wanted: Callable[[Node], bool], within: Callable[[Node], bool], children_of: ChildrenOf) -> Node | None:
    """The first fold that is wanted, looking only below folds that may contain it."""
    for node in roots:
        if wanted(node):
            return node
        if node.level and within(node):
            found = find(children_of(node), wanted, within, children_of)
            if found is not None:
                return found
    return None
