"""A story as lines of JSON, from which a copy remembers, recalls, branches and rewinds byte for byte like the original.

    {"type": "story", "format": "talekeeper", "version": 1, "key": {…}, "config": {…}, "spending": {…}, "health": {…}}
    {"type": "branch", "id": 1, "name": "main", "at": 0}                     every branch, the oldest first
    {"type": "channel", "id": 1, "hearers": ["bard", "dm"]}                  every set of hearers
    {"type": "entry", "branch": 1, "seq": 1, "kind": "said", "text": …}      the log, branch by branch
    {"type": "text", "key": …, "branch": 1, "born": 40, "sentences": […]}    what a model wrote, behind the entry it was born at
    {"type": "fold", "key": …, "shape": {…}, "sentences": […]}               what is left of a fold that lost a forgotten turn
    {"type": "checkpoint", "branch": 1, "seq": 256}                          where the original has a snapshot, so will the copy
    {"type": "end", "entries": 256, …}                                       how many lines of each kind: nothing was cut off

Lines stand in the order in which they can be applied: an entry behind its predecessors, a text behind the entry that was its branch's
head. What can be derived from the log (other folds, snapshots, the index, what was gathered) is derived again, and not in the file.

Here is what a line is: how it is written, and the checks of what comes in that need no more than the line itself. `exporting` and
`importing` stream: the log passes by in pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from talekeeper import rim
from talekeeper.errors import InvalidInput, TalekeeperError
from talekeeper.live.shared import seats_of
from talekeeper.ports import Entry, Spending

FORMAT, VERSION = "talekeeper", 1
PAGE = 512
"""So many entries pass by at once."""
Row: TypeAlias = dict[str, Any]


def as_line(kind: str, row: Mapping[str, Any]) -> str:
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps({"type": kind, **present}, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


_HEADER = {"format": str, "version": int, "key": dict, "config": dict, "spending": dict, "health": dict}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "story": _HEADER,
    "branch": {"id": int, "name": str, "parent": int, "at": int},
    "channel": {"id": int, "hearers": list},
    "entry": {
        "branch": int, "seq": int, "kind": str, "speaker": str, "voice": str, "text": str, "channel": int, "location": str, "tokens": int,
        "counter": str, "time": (int, float), "id": str, "extra": dict,
    },
    "fold": {"key": str, "shape": dict, "sentences": list},
    "text": {"key": str, "branch": int, "born": int, "sentences": list},
    "checkpoint": {"branch": int, "seq": int},
    "end": dict.fromkeys(("story", "branch", "channel", "entry", "fold", "text", "checkpoint"), int),
}  # fmt: skip
_FOLD: Mapping[str, tuple[Any, Any]] = {
    **dict.fromkeys(("level", "first", "last", "turns", "tokens"), (int, None)), "closed": (list, None), "channel": (int, -1),
    **dict.fromkeys(("children", "refs", "known"), (list, [])), "closer": (str, ""), "location": (str, ""), "author": (bool, False),
    "rules": (int, 0), "gathered": (dict, {}),
}  # fmt: skip
"""What a fold's shape is made of: the type of each part, and what it is where it is left out."""
_WORDS = {int: "a whole number", str: "a string", list: "a list", dict: "an object", (int, float): "a number"}
_OPTIONAL = {"branch": {"parent"}, "entry": {"location", "id", "extra"}, "end": {"channel", "entry", "fold", "text", "checkpoint"}}


def bad_line(number: int, message: str) -> InvalidInput:
    return InvalidInput(f"line {number}: {message}")


_HALVES = re.compile(r"\\u[dD][89a-fA-F]")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse(lines: Iterable[str]) -> Iterator[tuple[int, str, Row]]:
    """The lines as numbered rows of known kinds, whose fields have the right types."""
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            row = json.loads(line, parse_constant=_no_constant)
            if _HALVES.search(line):
                json.dumps(row, ensure_ascii=False).encode()  # half a character by itself is no text
            kind = str(row.pop("type", None)) if isinstance(row, dict) else ""
            if kind not in _SHAPES:
                raise bad_line(number, f"no line of a story: it needs a type out of {', '.join(_SHAPES)}, not {kind!r:.40}")
            _check_shape(number, kind, row)
            yield number, kind, row
    except UnicodeDecodeError as exc:
        raise bad_line(number + 1, f"not UTF-8: {exc.reason}") from exc
    except UnicodeEncodeError as exc:
        raise bad_line(number, "a lone surrogate is no valid Unicode") from exc
    except (json.JSONDecodeError, RecursionError, ValueError) as exc:
        if isinstance(exc, TalekeeperError):
            raise
        what = "not JSON" if number > 1 else "not JSON, so this is no story that Talekeeper has exported"
        raise bad_line(number, f"{what}: {exc}") from exc


def _check_shape(number: int, kind: str, row: Row) -> None:
    shape, optional = _SHAPES[kind], _OPTIONAL.get(kind, set())
    for name, types in shape.items():
        if name not in row:
            if name not in optional:
                raise bad_line(number, f"a line of type {kind!r} needs {name!r}")
        elif not isinstance(row[name], types) or isinstance(row[name], bool):
            raise bad_line(number, f"{name!r} must be {_WORDS[types]}, not {row[name]!r:.60}")
    unknown = row.keys() - shape.keys()
    if unknown:
        raise bad_line(number, f"a line of type {kind!r} has no {sorted(unknown)[0]!r}")


def check_header(number: int, kind: str, header: Row) -> None:
    if kind != "story" or header["format"] != FORMAT:
        raise bad_line(number, "this is no exported story: its first line says what it is")
    if header["version"] != VERSION:
        raise bad_line(number, f"the file is of version {header['version']}, this program reads {VERSION}: upgrade")
    config = header["config"]
    try:
        rim.seats(seats_of(config))
        if header["key"].keys() != {"tenant_id", "user_id", "session_id"}:
            raise ValueError("its key needs a tenant_id, a user_id and a session_id, and nothing else")
        Spending(**header["spending"])
        sound = all(isinstance(value, int) for value in header["spending"].values()) and isinstance(config["secret"], int)
        sound = sound and all(isinstance(since, dict) for since in config["since"].values())
    except (TypeError, KeyError, ValueError, AttributeError) as exc:
        raise bad_line(number, f"the story's config cannot be understood: {exc}") from exc
    if not sound:
        raise bad_line(number, "the story's config cannot be understood: secret, since and spending must be numbers")


def problem_of_mark(entry: Entry) -> str | None:
    """What is wrong with a mark. One that was forgotten has nothing left to be wrong."""
    extra = entry.extra or {}
    if not entry.text:
        return None
    kinds = {"topic": str, "rank": int | float, "keep": int, "target": list, "sources": list}
    kinds |= {"lasting": int | float} if "lasting" in extra else {}
    kinds |= {"drops": list} if "drops" in extra else {}
    wrong = [name for name, kind in kinds.items() if not isinstance(extra.get(name), kind)]
    if wrong:
        return f"a mark needs {wrong[0]!r} of another kind than {extra.get(wrong[0])!r:.40}"
    if not _are_rows(extra["sources"], str, str, int) or not all(isinstance(name, str) for name in extra["target"]):
        return f"a mark's sources must each be an id, a revision and a number: {extra['sources']!r:.60}"
    if not _are_rows([row for row in extra.get("drops", ()) if row], str, int, int | float, int, int):
        return f"no marks that could have been dropped: {extra['drops']!r:.60}"
    try:
        data = json.loads(entry.text)
    except ValueError:
        data = None
    return None if isinstance(data, dict) else "the text of a mark must be a JSON object"


def _are_rows(rows: Sequence[Any], *types: Any) -> bool:
    """Whether each is a list of values of these types."""
    return all(isinstance(row, list) and len(row) == len(types) and all(map(isinstance, row, types)) for row in rows)


def are_sentences(rows: Sequence[Any]) -> bool:
    """Whether they are what `unpack_sentences` takes."""
    return (
        all(isinstance(row, list) for row in rows)
        and _are_rows([row[:5] for row in rows], str, list, int, int | float, list)
        and _are_rows([row[5:] for row in rows if row[5:]], str, int)
        and all(isinstance(name, str) for row in rows for name in (*row[1], *row[4]))
    )


def is_shape(shape: Mapping[str, Any]) -> bool:
    """Whether it is what `Node.from_record` takes."""
    return (
        all(isinstance(shape.get(name, given), kind) for name, (kind, given) in _FOLD.items())
        and _are_rows([shape["closed"]], int, int)
        and _are_rows(shape.get("refs", []), int, int, str, str, int)
        and all(isinstance(name, str) for name in (*shape.get("children", ()), *shape.get("known", ())))
    )


def is_about(extra: Mapping[str, Any]) -> bool:
    """Whether what stands beside a turn's text has the right types."""
    names = (*extra.get("mentions", ()), *extra.get("cites", ())) if _lists(extra) else (None,)
    return all(isinstance(name, str) for name in (*names, extra.get("when", "")))


def _lists(extra: Mapping[str, Any]) -> bool:
    return isinstance(extra.get("mentions", []), list) and isinstance(extra.get("cites", []), list)


def is_position(value: Any, heads: Mapping[int, int]) -> bool:
    return _are_rows([value], int, int) and 1 <= value[1] <= heads.get(value[0], 0)
