"""Checks at the rim: what comes in from outside is looked at once, here, and trusted afterwards.

Every refusal names what was expected and what was found, and leaves everything as it was.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from talekeeper.errors import InvalidInput, MissingKey, UnknownSeat, WrongType, quoted
from talekeeper.model import Mark, MemoryKey, Seat, Turn

MAX_TEXT_BYTES = 100 * 1024
MAX_NAME = 200
LATEST = 1e12
MOST = 2**63 - 1
"""The greatest whole number that every store can keep."""
LARGEST = 1e100
"""Beyond it sums and products of a few numbers might no longer be finite."""
_ROLES = ("dm", "pc", "npc")
_SEEN = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A sign that can be seen: no blank, no control character, nothing of what Unicode lets be ignored."""


def text(value: object, what: str = "text", *, too_long: str = "split it into several turns") -> str:
    """A text that may be stored: a non-blank string of at most 100 KB, without NUL bytes or lone surrogates. `too_long`: what to do about
    one that is longer."""
    if not isinstance(value, str):
        raise WrongType(f"{what} must be a string, not {type(value).__name__}")
    if value.isascii():
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as exc:
            raise InvalidInput(
                f"{what} has a lone surrogate at character {exc.start}: it was not read as UTF-8, or was cut in two"
            ) from exc
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(f"{what} has {size} bytes, at most {MAX_TEXT_BYTES} (100 KB) are taken: {too_long}")
    if "\0" in value:
        raise InvalidInput(f"{what} has a NUL byte at character {value.index(chr(0))}: take it out")
    if not "!" <= value < "\x7f" and not seen(value):  # what begins with an ASCII sign needs no look
        raise InvalidInput(f"{what} is blank: it needs at least one sign that can be seen")
    return value


def query(value: object) -> str:
    """What is asked of a memory: such a text, too."""
    return text(value, "query", too_long="ask in fewer words, the telling ones are enough")


def seen(value: str) -> bool:
    """Whether there is a sign in the text that can be seen."""
    return _SEEN.search(value) is not None


def name(value: object, what: str) -> str:
    """A short text on one line: an id, a label, a place."""
    checked = text(value, what, too_long="shorten it")
    if len(checked) > MAX_NAME:
        raise InvalidInput(f"{what} has {len(checked)} characters, at most {MAX_NAME} are taken")
    if not checked.isprintable():
        raise InvalidInput(f"{what} {quoted(checked)} has characters that cannot be printed")
    return checked


def string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise WrongType(f"{what} must be a string, not {type(value).__name__}")
    return value


def several(values: object, what: str) -> tuple[Any, ...]:
    """What was handed in as several, in a form that can be looked at more than once. One alone is not several."""
    if isinstance(values, str | bytes | Turn) or not isinstance(values, Iterable):
        raise WrongType(f"{what} must be a list, not {quoted(values)}")
    return values if type(values) is tuple else tuple(values)


def names(values: object, what: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name(value, f"an entry of {what}") for value in several(values, what)))


def key(value: object) -> MemoryKey:
    """A whole key. A bare session id is no key."""
    if value is None:
        raise MissingKey("no memory key: pass MemoryKey(tenant_id=…, user_id=…, session_id=…)")
    if not isinstance(value, MemoryKey):
        raise WrongType(f"a memory key must be a MemoryKey, not {type(value).__name__}")
    for part in ("tenant_id", "user_id", "session_id"):
        content = getattr(value, part)
        if isinstance(content, str) and not content.strip():
            raise MissingKey(f"the key's {part} is empty: without it there is no memory")
        text(content, f"the key's {part}")
        if len(content) > MAX_NAME:
            raise InvalidInput(f"the key's {part} has {len(content)} characters, at most {MAX_NAME} are taken")
    return value


def seats(values: object) -> tuple[Seat, ...]:
    """The seats of a story: each with its own id."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise WrongType(f"seats must be a list of Seat, not {type(values).__name__}")
    checked = tuple(_seat(value) for value in values)
    twice = [seat.id for index, seat in enumerate(checked) if seat.id in {other.id for other in checked[:index]}]
    if twice:
        raise InvalidInput(f"two seats have the id {twice[0]!r}")
    return checked


def _seat(value: object) -> Seat:
    if not isinstance(value, Seat):
        raise WrongType(f"a seat must be a Seat, not {type(value).__name__}")
    if type(value.aliases) is not tuple:
        value = replace(value, aliases=several(value.aliases, f"aliases of seat {value.id!r}"))
    name(value.id, "a seat's id")
    if value.id == "*":
        raise InvalidInput("a seat cannot have the id '*': it stands for what all player characters heard")
    if value.role not in _ROLES:
        raise InvalidInput(f"the role of seat {value.id!r} must be one of {', '.join(_ROLES)}, not {quoted(value.role)}")
    if value.name != "":
        name(value.name, f"the name of seat {value.id!r}")
    names(value.aliases, f"the aliases of seat {value.id!r}")
    whole(value.token_limit, f"the token limit of seat {value.id!r}", least=1)
    if not 0 < number(value.fold_at, f"fold_at of seat {value.id!r}") <= 1:
        raise InvalidInput(f"fold_at of seat {value.id!r} must be above 0 and at most 1, not {quoted(value.fold_at)}")
    whole(value.keep, f"keep of seat {value.id!r}", least=1)
    return value


def version(value: object) -> str | None:
    """The version that a caller saw of a story, if they say which."""
    if value is not None and not isinstance(value, str):
        raise WrongType(f"expected_version must be a story's version, a string, not {type(value).__name__}")
    return value


def whole(value: object, what: str, *, least: int = 0) -> int:
    """A whole number, not below `least` nor above `MOST`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongType(f"{what} must be a whole number, not {type(value).__name__}")
    if value < least:
        raise InvalidInput(f"{what} must be at least {least}, not {quoted(value)}")
    if value > MOST:
        raise InvalidInput(f"{what} must be at most {MOST}, not {quoted(value)}")
    return value


def extras(value: object) -> Mapping[str, Any]:
    """Notes by the parts of a context that they belong to; none where there are none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise WrongType(f"extras must map parts to notes, not {type(value).__name__}")
    return {part: _notes(notes) for part, notes in value.items()}


def _notes(values: object) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise WrongType(f"extras must map each part to a list of notes, not to {type(values).__name__}")
    return tuple(values)


def number(value: object, what: str) -> float:
    """A number that can be compared with others: neither infinite nor none at all, nor beyond `LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{what} must be a number, not {type(value).__name__}")
    if not abs(value) <= LARGEST:
        raise InvalidInput(f"{what} must be a number from {-LARGEST:g} to {LARGEST:g}, not {quoted(value)}")
    return value


def seconds(value: object, what: str) -> float:
    """How long something may take: a number of seconds, not below 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{what} must be a number of seconds, not {type(value).__name__}")
    if not 0 <= value < LATEST:
        raise InvalidInput(f"{what} must be a number of seconds from 0 up, not {quoted(value)}")
    return value


def time(value: object, what: str) -> float:
    """A point in time, in seconds. What is beyond the year 33000 was measured in something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{what} must be a number of seconds, not {type(value).__name__}")
    if not abs(value) < LATEST:
        raise InvalidInput(f"{what} must be in seconds, not {quoted(value)}")
    return value


def own_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Refuses whoever comes from another event loop than that one."""
    if asyncio.get_running_loop() is not loop:
        raise InvalidInput(
            "the keeper was opened in another event loop: open it in the one where it is used, or take `talekeeper.sync`, which has its own"
        )


def known_seat(value: object, seats: Mapping[str, Any]) -> str:
    """The id of a seat of this story."""
    if not isinstance(value, str):
        raise WrongType(f"a seat must be named by its id, a string, not {type(value).__name__}")
    if value not in seats:
        close = difflib.get_close_matches(value, seats, n=1, cutoff=0.7)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownSeat(f"no seat {quoted(value)} in this story{hint} (there are: {', '.join(sorted(seats)) or 'none'})")
    return value


def marks(values: object) -> tuple[Mark, ...]:
    """Marks that may be put into the log."""
    if isinstance(values, Mark | Mapping | str) or not isinstance(values, Iterable):
        raise WrongType(f"marks must be a list of Mark, not {type(values).__name__}")
    return tuple(mark(value) for value in values)


def mark(value: object) -> Mark:
    """A mark that may be put into the log, once the turns it is of were found there."""
    if not isinstance(value, Mark):
        raise WrongType(f"each mark must be a Mark, not {type(value).__name__}")
    if not all(type(part) is tuple for part in (value.of, value.drops, () if value.heard_by is None else value.heard_by)):
        known = several(value.heard_by, "heard_by") if value.heard_by is not None else None
        value = replace(value, of=several(value.of, "of"), heard_by=known, drops=several(value.drops, "drops"))
    name(value.topic, "topic")
    mark_text(value)
    number(value.rank, "rank")
    if value.lasting is not None:
        number(value.lasting, "lasting")
    whole(value.keep, "keep", least=1)
    for turn in value.of:
        if not isinstance(turn, Turn):
            raise WrongType(f"a mark is of turns, not of {type(turn).__name__}")
    names(value.drops, "drops")
    return value


def mark_text(value: Mark) -> str:
    """A mark's data as it is stored."""
    if not isinstance(value.data, Mapping):
        raise WrongType(f"a mark's data must be a mapping, not {type(value.data).__name__}")
    try:
        data = text(json.dumps(dict(value.data), ensure_ascii=False, allow_nan=False, separators=(",", ":")), "a mark's data")
    except (TypeError, ValueError, RecursionError) as exc:
        if isinstance(exc, InvalidInput):
            raise
        raise InvalidInput(f"a mark's data must be made of JSON values: {exc}") from exc
    if "\\u0000" in data.replace("\\\\", ""):
        raise InvalidInput("a mark's data has a NUL byte in it")
    return data
