"""A conversation in someone else's state store: as JSON states, under its own key and under no other.

The store holds one state per conversation, with the newest turns, and in front of it pages of older turns that are written once, and
anew only where one of them was undone or forgotten. So every turn is in the store, while what is written per turn does not grow with
the conversation (I9). The fields are those that planners of the PenguiFlow family write (version 1), so that a conversation can move in
either direction. A turn's `id` names it for ever: whatever is stored is taken in by the ids, and neither an old state nor an empty
conversation can displace anything.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from talekeeper.errors import InvalidInput, WrongType
from talekeeper.memory.session.message import Pair
from talekeeper.model import HealthState

VERSION = 1
PAGE = 64
"""So many turns are on a page; a state has fewer than twice as many."""


class Stored(NamedTuple):
    """What a state says: a summary of turns that it does not have, the turns, and how many pages stand before them."""

    earlier: str
    pairs: list[Pair]
    pages: int


def dump_state(earlier: str, summary: str, pairs: Sequence[Pair], recent: int, health: HealthState, pages: int = 0) -> dict[str, Any]:
    """The state of a conversation. `earlier`: what is known of turns that nobody has any more; `summary`: of all that are not in it."""
    turns = [dump_pair(pair) for pair in pairs if not pair.event]
    pending = max(0, len(turns) - recent)
    return {
        "version": VERSION, "health": health.value, "summary": summary, "pending": turns[:pending], "turns": turns[pending:], "backlog": [],
        "earlier": earlier, "pages": pages,
    }  # fmt: skip


def dump_pair(pair: Pair) -> dict[str, Any]:
    return {
        "id": pair.id, "user_message": pair.user, "assistant_response": pair.assistant, "trajectory_digest": pair.digest, "ts": pair.time,
    }  # fmt: skip


def parse_state(state: object) -> Stored:
    """What a state says. Refuses what is no state, and what a newer version wrote."""
    if not isinstance(state, Mapping):
        raise WrongType(f"a memory state must be a JSON object, not {type(state).__name__}")
    if state.get("version") != VERSION:
        raise InvalidInput(f"the memory state has version {state.get('version')!r}, and this program reads version {VERSION}")
    pages = state.get("pages", 0)
    if isinstance(pages, bool) or not isinstance(pages, int) or pages < 0:
        raise InvalidInput(f"pages of the memory state must be a whole number, not {pages!r}")
    rows: list[object] = []
    for name in ("backlog", "pending", "turns"):
        part = state.get(name) or []
        if not isinstance(part, list | tuple):
            raise InvalidInput(f"{name} of the memory state must be a list, not {type(part).__name__}")
        rows += part
    seen: Counter[str] = Counter()
    return Stored(_text(state, "earlier" if "earlier" in state else "summary"), [_parse(row, seen) for row in rows], pages)


def _parse(row: object, seen: Counter[str]) -> Pair:
    if not isinstance(row, Mapping):
        raise InvalidInput(f"a turn of the memory state must be a JSON object, not {type(row).__name__}")
    user, assistant, digest, ts = (row.get(name) for name in ("user_message", "assistant_response", "trajectory_digest", "ts"))
    if digest is not None and not isinstance(digest, Mapping):
        raise InvalidInput(f"trajectory_digest of the memory state must be a JSON object, not {type(digest).__name__}")
    user, assistant = _text(row, "user_message"), _text(row, "assistant_response")
    time = float(ts) if isinstance(ts, int | float) else 0.0
    return Pair(_text(row, "id") or _name(user, assistant, time, seen), user, assistant, digest=digest, time=time)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} of the memory state must be text, not {type(value).__name__}")
    return value or ""


def _name(user: str, assistant: str, time: float, seen: Counter[str]) -> str:
    """A name for a turn that came without one; the same turn has the same name the next time."""
    content = hashlib.blake2b(json.dumps([user, assistant, time]).encode(), digest_size=12).hexdigest()
    seen[content] += 1
    return f"s-{content}-{seen[content]}"


class Archive:
    """What a state store holds of one conversation, as far as we have seen or written it."""

    def __init__(self, store: Any, name: str) -> None:
        self.store = store
        self.name = name
        self.ids: set[str] = set()
        self.tail: list[Pair] = []
        self.seen = ""
        """The version of the conversation that was last compared with it."""
        self._pages = 0

    async def read(self) -> Stored:
        """What the store holds that was not seen before, oldest first."""
        state = await result(self.store.load_memory_state(self.name)) if hasattr(self.store, "load_memory_state") else None
        stored = parse_state(state) if state is not None else Stored("", [], 0)
        if hasattr(self.store, "load_memory_state") and (stored.pages < self._pages or state is None):
            self.ids, self.tail, self.seen, self._pages = set(), [], "", 0  # cleared by someone: everything is to be written again
        pages = [await self._page(number) for number in range(self._pages, stored.pages)]
        found = [pair for page in pages for pair in page] + stored.pairs
        new = [pair for pair in found if pair.id not in self.ids]
        if state is not None:
            self._pages, self.tail = stored.pages, stored.pairs
        self.ids.update(pair.id for pair in found)
        return Stored(stored.earlier, new, stored.pages)

    async def _page(self, number: int) -> list[Pair]:
        page = await result(self.store.load_memory_state(self._page_name(number)))
        return parse_state(page).pairs if page is not None else []

    def _page_name(self, number: int) -> str:
        """No key has more than two colons that are not escaped: a page's name is no conversation's."""
        return f"{self.name}:page:{number}"

    async def revise(self, now: Callable[[Pair], Awaitable[Pair | None]], *, all_pages: bool) -> None:
        """Writes pages anew on which a turn reads differently now, or is gone: the newest first, until one is as it was, or all of them."""
        for number in range(self._pages - 1, -1, -1):
            page = await self._page(number)
            told = [pair for before in page if (pair := await now(before)) is not None]
            if told != page:
                await result(self.store.save_memory_state(self._page_name(number), dump_state("", "", told, 0, HealthState.HEALTHY)))
            elif not all_pages:
                break

    async def write(self, pairs: Iterable[Pair], earlier: str, summary: str, recent: int, health: HealthState) -> None:
        """Makes these turns the newest in the store; pages that are full by it are written first."""
        tail = list(pairs)
        while len(tail) >= 2 * PAGE:
            page = dump_state("", "", tail[:PAGE], 0, health)
            await result(self.store.save_memory_state(self._page_name(self._pages), page))
            self._pages += 1
            tail = tail[PAGE:]
        await result(self.store.save_memory_state(self.name, dump_state(earlier, summary, tail, recent, health, self._pages)))
        self.tail = tail
        self.ids.update(pair.id for pair in tail)


async def result(value: Any) -> Any:
    """What a function gave, whether it is async or not."""
    return await value if inspect.isawaitable(value) else value
