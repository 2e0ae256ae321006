"""Trees of folds: the roots that a view's closed chunks hang on, and ways through what hangs below them. Pure values and functions.

Whatever is asked for and not in memory is named by `Missing`; the story loads it and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from talekeeper.folds.nodes import FANOUT, ChildrenOf, Missing, Node, Sketch, make_parent


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


def replace(tree: Tree, old: Node, new: Node, children_of: ChildrenOf, intern: Callable[[Node], Node]) -> None:
    """Puts `new` in the place of `old`, if the tree has that, and renews every fold above it, lowest first. Raises `Missing`."""

    def renewed(node: Node) -> Node | None:
        if node.key == old.key:
            return new
        if not _may_hold(node, old):
            return None
        children = list(children_of(node))
        for index, child in enumerate(children):
            below = renewed(child)
            if below is not None:
                children[index] = below
                return intern(make_parent(children))
        return None

    for level in tree.levels:
        for index, root in enumerate(level):
            made = renewed(root)
            if made is not None:
                level[index] = made
                return


def contains(tree: Tree, fold: Node, children_of: ChildrenOf) -> bool:
    """Whether the tree has that fold. Raises `Missing`."""
    return find(tree.roots(), lambda node: node.key == fold.key, lambda node: _may_hold(node, fold), children_of) is not None


def _may_hold(node: Node, fold: Node) -> bool:
    """Whether the fold may hang somewhere below the node."""
    return node.level > fold.level and node.closed_first <= fold.closed_first and fold.closed <= node.closed


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
