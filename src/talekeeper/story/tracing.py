"""Tracing: what a fold says, what stood in its place before, and which turns it stands for. What a context is made of, piece by piece."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from operator import attrgetter

from talekeeper.context.cuts import model_cut
from talekeeper.context.paragraphs import Sources, as_fold
from talekeeper.errors import Conflict, UnknownFold, WrongType, quoted
from talekeeper.folds.nodes import Node, first_key, rewritten_key
from talekeeper.folds.trees import leaves_after
from talekeeper.live.hot import Hot
from talekeeper.model import Block, Context, Fold, Item


class Tracing:
    """Looks at single folds of one branch of a story."""

    _hot: Hot

    async def fold(self, fold: str, *, seat: str | None = None) -> Fold:
        """One fold by its id; as the seat remembers it, where one is named. `UnknownFold` for what is not in that seat's memory."""
        node = await self._node_for(fold, seat)
        return await self._hot.supply(lambda: as_fold(node, self._sources(seat)))

    async def history(self, fold: str, *, seat: str | None = None) -> list[Fold]:
        """What has stood in this fold's place, oldest first: what was picked from the turns, what a model made of it, what the author
        wrote over it. The last one is the fold itself."""
        hot = self._hot
        node = await self._node_for(fold, seat)
        line = [first_key(node)]
        while line[-1] != node.key:
            written = [entry for entry in (await hot.read(targeting=line[-1:])).entries if hot.path.has(entry.branch, entry.seq)]
            line += [rewritten_key(line[-1], hot.turn(entry).id) for entry in written if entry.text][-1:] or [node.key]
        kept = await hot.read(folds=line)
        known = {record.key for record in kept.folds} | {key for key in line if hot.state.shelf.get(key) is not None}
        nodes = [await self._node_at(key) for key in line if key in known]  # what an author wrote may have been forgotten since
        return await hot.supply(lambda: [made for one in nodes for made in self._tellings(one, seat)])

    def _tellings(self, node: Node, seat: str | None) -> list[Fold]:
        sources = self._sources(seat)
        shown = as_fold(node, sources)
        return [shown] if shown.made_by != "model" else [as_fold(node, dataclasses.replace(sources, modelled=lambda: 0)), shown]

    def _sources(self, seat: str | None) -> Sources:
        """What folds are read from. For a seat, models' texts are shown as far as its contexts show them (I3)."""
        sources = self._hot.sources()
        if seat is None:
            return sources
        return dataclasses.replace(sources, modelled=cache(partial(model_cut, self._hot.state.seats[seat], seat, sources)))

    async def _node_for(self, fold: str, seat: str | None) -> Node:
        """A fold that is in the seat's memory."""
        hot = self._hot
        if seat is not None:
            await hot.seated(seat)
        await hot.refresh()
        node = await self._node(fold)
        if seat is not None and not await hot.supply(lambda: hot.state.holds(seat, node)):
            raise UnknownFold(f"no fold {quoted(fold)} in the memory of {seat!r}")
        return node

    async def _node(self, fold: str) -> Node:
        if not isinstance(fold, str):
            raise WrongType(f"a fold is named by its id, a string, not by {type(fold).__name__}")
        try:
            return await self._node_at(self._hot.shared.names.fold(fold))
        except Conflict:
            raise UnknownFold(f"no fold {quoted(fold)} in this story: `folds` lists those of a seat") from None

    async def _node_at(self, key: str) -> Node:
        return await self._hot.supply(lambda: self._hot.state.shelf.node(key))

    async def sources(self, thing: Context | Block | Item | Fold | str) -> tuple[str, ...]:
        """The ids of all turns that a context, a block, an item or a fold stands for: those of a fold in the order in which they were told,
        parts in the order in which they are shown."""
        hot = self._hot
        if isinstance(thing, Context | Block):
            parts = thing.blocks if isinstance(thing, Context) else thing.items
            ids = [turn for part in parts for turn in await self.sources(part)]
        elif isinstance(thing, Item):
            ids = [turn for fold in thing.folds for turn in await self.sources(fold)] + list(thing.sources)
        else:
            node = await self._node(thing.id if isinstance(thing, Fold) else thing)
            leaves = await hot.supply(lambda: list(leaves_after([node], 0, hot.state.shelf.children)))
            ids = [ref.id for ref in sorted((ref for leaf in leaves for ref in leaf.refs), key=attrgetter("seq"))]
        return tuple(dict.fromkeys(ids))
