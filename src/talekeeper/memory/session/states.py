"""A conversation as JSON states, for someone else's state store: how they are written and read. Pure.

The fields are those that planners of the PenguiFlow family write (version 1), and a few of our own beside them that others ignore, so
that a conversation can move in either direction. A turn's `id` names it for ever. What is read is checked here, all of it, before
anybody takes anything in.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from talekeeper import rim
from talekeeper.errors import InvalidInput, WrongType, quoted
from talekeeper.memory.session.message import Pair
from talekeeper.model import HealthState, Mark

VERSION = 1
MAX_ID = rim.MAX_NAME - len("/assistant")
"""The longest id of a turn: its entries' ids, with the speaker behind it, are names of the log."""


class Stored(NamedTuple):
    """What a state says: a summary of turns that it does not have, the turns, how many pages stand before them, what tells whether
    these are the pages that one knows, and the ids of turns that were forgotten for good."""

    earlier: str = ""
    pairs: Sequence[Pair] = ()
    pages: int = 0
    pages_id: str = ""
    forgotten: Collection[str] = ()


def dump_state(
    earlier: str, summary: str, pairs: Sequence[Pair], recent: int, health: HealthState, pages: int = 0, pages_id: str = "",
    forgotten: Collection[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """The state of a conversation. `earlier`: what is known of turns that nobody has any more; `summary`: of all that are not in it."""
    turns = [dump_pair(pair) for pair in pairs if not pair.event]
    pending = max(0, len(turns) - recent)
    return {
        "version": VERSION, "health": health.value, "summary": summary, "pending": turns[:pending], "turns": turns[pending:], "backlog": [],
        "earlier": earlier, "pages": pages, "pages_id": pages_id, "forgotten": sorted(forgotten),
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
        raise InvalidInput(f"the memory state has version {quoted(state.get('version'))}, and this program reads version {VERSION}")
    pages = rim.whole(state.get("pages", 0), "pages of the memory state")
    rows: list[object] = []
    for name in ("backlog", "pending", "turns"):
        part = state.get(name) or []
        if not isinstance(part, list | tuple):
            raise InvalidInput(f"{name} of the memory state must be a list, not {type(part).__name__}")
        rows += part
    seen: Counter[str] = Counter()
    earlier = _text(state, "earlier" if "earlier" in state else "summary", "the memory state")
    forgotten = state.get("forgotten") or []
    if not isinstance(forgotten, list | tuple) or not all(isinstance(name, str) for name in forgotten):
        raise InvalidInput("forgotten of the memory state must be a list of ids")
    return Stored(earlier, [_parse(row, seen) for row in rows], pages, _text(state, "pages_id", "the memory state"), forgotten)


def _parse(row: object, seen: Counter[str]) -> Pair:
    if not isinstance(row, Mapping):
        raise InvalidInput(f"a turn of the memory state must be a JSON object, not {type(row).__name__}")
    name = _text(row, "id", "a turn of the memory state")
    where = f"turn {name!r:.200} of the memory state" if name else "a turn of the memory state"
    if name:
        turn_id(name, f"the id of {where}")
    user, assistant = _text(row, "user_message", where), _text(row, "assistant_response", where)
    digest = row.get("trajectory_digest")
    if digest is not None:
        if not isinstance(digest, Mapping):
            raise InvalidInput(f"trajectory_digest of {where} must be a JSON object, not {type(digest).__name__}")
        rim.mark(Mark("trajectory_digest", digest))
    time = _time(row.get("ts"))
    return Pair(name or _name(user, assistant, time, seen), user, assistant, digest=digest, time=time)


def turn_id(value: object, what: str = "id") -> str:
    """An id of a turn: a name that is short enough for its entries to be named after it."""
    name = rim.name(value, what)
    if len(name) > MAX_ID:
        raise InvalidInput(f"{what} has {len(name)} characters, at most {MAX_ID} are taken")
    return name


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    """A text that can be taken in as it is; "" where there is none."""
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} of {where} must be text, not {type(value).__name__}")
    if value and rim.seen(value):
        rim.text(value, f"{name} of {where}")
    return value or ""


def _time(value: object) -> float:
    """When a turn was told, as far as it is known; 0 where it is not."""
    try:
        time = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
    return time if math.isfinite(time) else 0.0


def _name(user: str, assistant: str, time: float, seen: Counter[str]) -> str:
    """A name for a turn that came without one; the same turn has the same name the next time."""
    content = hashlib.blake2b(json.dumps([user, assistant, time]).encode(), digest_size=12).hexdigest()
    seen[content] += 1
    return f"s-{content}-{seen[content]}"
