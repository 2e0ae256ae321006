"""Reading tables of a TOML file field by field: every problem is noted with its place, and reading goes on.

Nothing here knows what a pack is; `reader` does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from talekeeper.errors import InvalidInput
from talekeeper.table.world.language import Condition, Effect, read_condition, read_effect, read_line

T = TypeVar("T")
_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a pack: where (`npcs.oda.topics[2].do`), in which line if that is known, and what.

    `grave`: it cannot be played like that."""

    where: str
    message: str
    line: int = 0
    grave: bool = True

    def __str__(self) -> str:
        return f"{f'line {self.line}, ' if self.line else ''}{self.where}: {'' if self.grave else 'warning: '}{self.message}"


@dataclass(slots=True)
class Table:
    """A table of the file, read field by field. Whatever is wrong is noted, and reading goes on with something harmless."""

    raw: Mapping[str, Any]
    where: str
    note: Callable[[str, str], None]
    seen: set[str] = field(default_factory=set)

    def wrong(self, key: str, message: str) -> None:
        self.note(f"{self.where}.{key}" if self.where else key, message)

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        self.seen.add(key)
        value = self.raw.get(key, default)
        if value is None:
            self.wrong(key, "is missing")
            return kind()
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            self.wrong(key, f"must be {_KINDS[kind]}, not {value!r}"[:160])
            return kind() if default is None else default
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.get(key, str, default)
        if key in self.raw and not value.strip():
            self.wrong(key, "is blank")
        return " ".join(value.split())

    def texts(self, key: str, least: int = 0) -> tuple[str, ...]:
        self.seen.add(key)
        value = self.raw.get(key, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            self.wrong(key, "must be a text or a list of texts, none of them blank")
            return ()
        if len(value) < least:
            self.wrong(key, f"needs at least {least} of them, there {'is one' if len(value) == 1 else f'are {len(value)}'}")
        return tuple(" ".join(one.split()) for one in value)

    def lines(self, key: str, least: int = 0) -> tuple[str, ...]:
        """Texts, each of which may begin with the conditions under which it is told: `[not ended] …`."""
        found = self.texts(key, least)
        for line in found:
            try:
                read_line(line)
            except InvalidInput as exc:
                self.wrong(key, str(exc))
        return found

    def one_of(self, key: str, values: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in values and value != default:
            self.wrong(key, f"must be one of {', '.join(values)}, not {value!r}")
            return values[0]
        return value

    def some_of(self, key: str, values: tuple[str, ...], least: int = 0) -> tuple[str, ...]:
        found = self.texts(key, least)
        for value in found:
            if value not in values:
                self.wrong(key, f"{value!r} is none of {', '.join(values)}")
        return found

    def clauses(self, key: str, read: Callable[[str], T]) -> tuple[T, ...]:
        found = []
        for line in self.texts(key):
            try:
                found.append(read(line))
            except InvalidInput as exc:
                self.wrong(key, str(exc))
        return tuple(found)

    def when(self, key: str = "when") -> tuple[Condition, ...]:
        return self.clauses(key, read_condition)

    def do(self, key: str = "do") -> tuple[Effect, ...]:
        return self.clauses(key, read_effect)

    def id(self) -> str:
        value = self.text("id")
        if value and not _ID.fullmatch(value):
            self.wrong("id", f"must be lower case letters, digits and underscores, not {value!r}")
        return value

    def tables(self, key: str, least: int = 0) -> Iterator[Table]:
        """The tables of an array, each called by its id where it has one."""
        self.seen.add(key)
        value = self.raw.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            self.wrong(key, f"must be a list of tables: [[{key}]]")
            return
        if len(value) < least:
            self.wrong(key, f"needs at least {least}, there {'is one' if len(value) == 1 else f'are {len(value)}'}")
        for number, one in enumerate(value):
            name = f".{one['id']}" if isinstance(one.get("id"), str) else f"[{number}]"
            table = Table(one, f"{self.where}.{key}{name}" if self.where else f"{key}{name}", self.note)
            yield table
            table.finish()

    def table(self, key: str) -> Table:
        return Table(self.get(key, dict, {}), f"{self.where}.{key}" if self.where else key, self.note)

    def finish(self, inner: Table | None = None) -> None:
        """Whatever nobody asked for is a mistake, most likely of spelling, or belongs into a table within this one."""
        for key in self.raw:
            if key not in self.seen:
                close = difflib.get_close_matches(key, self.seen, n=1)
                if inner is not None and key in inner.seen:
                    self.wrong(key, f"belongs into the table {inner.where}: move it below the line [{inner.where}]")
                elif close:
                    self.wrong(key, f"is not known here; did you mean {close[0]!r}?")
                else:
                    self.wrong(key, f"is not known here: {', '.join(sorted(self.seen))}")


_KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", bool: "true or false", dict: "a table", float: "a number"}


def line_finder(text: str) -> Callable[[str], int]:
    """Finds the line of `npcs.oda.topics.bell.say`: that of the key, else of its table. 0 where it cannot tell."""
    ids: dict[str, int] = {}
    heads: list[tuple[str, str]] = []
    keys: dict[tuple[str, str], int] = {}
    where = ""
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[\[?([\w.]+)\]?\]", line)
        key = re.match(r"\s*([\w.]+)\s*=", line)
        if head:
            *outer, last = head[1].split(".")
            parent = next((path for name, path in reversed(heads) if name == ".".join(outer)), "") if outer else ""
            count = counts.get(f"{parent}.{last}", 0)
            counts[f"{parent}.{last}"] = count + 1
            where = f"{parent}.{last}[{count}]".lstrip(".") if "[[" in line else head[1]
            heads.append((head[1], where))
            ids[where] = number
        elif key:
            found = re.match(r'\s*id\s*=\s*"([^"]+)"', line)
            if found:
                named = f"{entry[1]}.{found[1]}" if (entry := re.fullmatch(r"(.*)\[\d+\]", where)) else where
                ids[named] = ids.get(where, number)
                heads = [(name, named if path == where else path) for name, path in heads]
                where = named
            keys.setdefault((where, key[1]), number)

    def find(path: str) -> int:
        while path:
            table, _, key = path.rpartition(".")
            if found := keys.get((table, key)) or ids.get(path):
                return found
            path = table
        return 0

    return find
