"""The little language in which packs say when something holds and what it does.

A condition is a line such as `has iron_key`, `not dead oda` or `flag warned | attitude oda 2`; a list of lines holds when each does. An
effect is a line such as `gain iron_key` or `attitude oda +1`. This module knows the words and what they take; `rules` knows what they
mean, and `packs` checks that whatever they name is there.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from talekeeper.errors import InvalidInput

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "has": ("item",),
    "holds": ("npc", "item"),
    "knows": ("secret",),
    "done": ("objective",),
    "quest": ("quest",),
    "act": ("act",),
    "dead": ("person",),
    "met": ("npc",),
    "at": ("place",),
    "visited": ("place",),
    "attitude": ("npc", "number"),
    "flag": ("flag",),
    "over": ("encounter",),
    "won": ("encounter",),
    "promised": ("promise",),
    "kept": ("promise",),
    "broken": ("promise",),
    "clock": ("number",),
    "night": (),
    "hero": ("hero",),
    "ended": (),
    "lost": (),
}
EFFECTS: Mapping[str, tuple[str, ...]] = {
    "gain": ("item",),
    "lose": ("item",),
    "give": ("item", "npc"),
    "learn": ("secret",),
    "flag": ("flag",),
    "unflag": ("flag",),
    "attitude": ("npc", "number"),
    "promise": ("promise",),
    "keep": ("promise",),
    "break": ("promise",),
    "kill": ("person",),
    "wound": ("number",),
    "mend": ("number",),
    "danger": ("place", "danger"),
    "start": ("encounter",),
    "end": ("encounter",),
    "lose_to": ("encounter",),
    "turn": ("number",),
    "move": ("npc", "place"),
    "go": ("place",),
    "complete": ("objective",),
    "finish": ("ending",),
    "time": ("number",),
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One word and what it takes: `has iron_key`. A negated one holds when the rest does not."""

    verb: str
    args: tuple[str, ...] = ()
    negated: bool = False
    fact: str = field(init=False, repr=False, compare=False)
    """What it is about, in the words of the pack and without the "not"."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fact", " ".join((self.verb, *self.args)))

    @property
    def number(self) -> int:
        return int(self.args[-1])


Condition = tuple[Clause, ...]
"""Clauses of which one has to hold."""
Effect = Clause


def read_condition(line: str) -> Condition:
    """`a | not b`: either."""
    return tuple(_clause(part, CONDITIONS, "condition") for part in line.split("|"))


_LINE = re.compile(r"\[([^\]]+)\]\s+(?=\S)")


@functools.lru_cache(maxsize=1 << 12)
def read_line(line: str) -> tuple[tuple[Condition, ...], str]:
    """`[not ended, flag lit] The lamps are lit.` as the conditions under which a line may be told, and the line."""
    found = _LINE.match(line)
    return (tuple(map(read_condition, found[1].split(","))), line[found.end() :]) if found else ((), line)


def read_effect(line: str) -> Effect:
    clause = _clause(line, EFFECTS, "effect")
    if clause.negated:
        raise InvalidInput(f"{line.strip()!r}: an effect cannot be negated")
    return clause


def _clause(line: str, words: Mapping[str, tuple[str, ...]], what: str) -> Clause:
    parts = line.split()
    negated = parts[:1] == ["not"]
    verb, *args = parts[negated:] or [""]
    if verb not in words:
        close = difflib.get_close_matches(verb, words, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(words)}"
        raise InvalidInput(f"{line.strip()!r}: no {what} begins with {verb!r}; {hint}")
    if len(args) != len(words[verb]):
        raise InvalidInput(f"{line.strip()!r}: {verb!r} takes {' and '.join(f'one {kind}' for kind in words[verb]) or 'nothing'}")
    for arg, kind in zip(args, words[verb], strict=True):
        if kind == "number" and not arg.lstrip("+-").isdecimal():
            raise InvalidInput(f"{line.strip()!r}: {arg!r} is not a whole number")
    return Clause(verb, tuple(args), negated)


def references(clause: Clause, words: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """What a clause names: pairs of a kind (item, npc, place …) and an id."""
    return list(zip(words[clause.verb], clause.args, strict=True))
