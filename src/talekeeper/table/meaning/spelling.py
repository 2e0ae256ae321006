"""Words as players type them: found, compared, and mended where the fingers slipped.

Mending comes first and is careful: a word that anyone may mean as it stands (a common word, a verb, a word of the pack's own prose) is
never taken for another one, so “I have” is no “Hale” and “it might” no “fight”. What nobody knows is taken for the nearest thing that
could be meant here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from talekeeper.kept import kept
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import Scenario

VERBS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads((resources.files(__package__) / "verbs.toml").read_text("utf-8"))
SMALL = frozenset(VERBS["small"]["words"])
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ARTICLES = frozenset({"the", "a", "an"})
_LONG = 8
"""In words of so many letters two may be wrong."""


def words_of(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in WORD.findall(text)]


def content(text: str) -> list[str]:
    return [word for word in words_of(text) if word not in SMALL]


@kept(1 << 14)
def bare(word: str) -> str:
    """A word without what makes a plural or a possessive of it."""
    word = word.removesuffix("'s")
    return word.rstrip("s") or word


def alike(one: str, other: str) -> bool:
    """Whether two words are the same, but for a plural or a possessive."""
    return bare(one) == bare(other)


@kept(1 << 8)
def _in_a_row(words: tuple[str, ...]) -> str:
    """Words in a row, without articles: no name is told apart by those, wherever they stand in it."""
    return f" {' '.join(bare(word) for word in words if word not in _ARTICLES)} "


@kept(1 << 12)
def _wanted(name: str) -> tuple[int, str]:
    """How many words a name is known by, and these in a row."""
    row = _in_a_row(tuple(words_of(name)))
    return len(row.split()), row


def mention(tokens: Sequence[str], names: Iterable[str]) -> int:
    """How many words of the longest of the names are there in a row; 0 if none is whole."""
    said = _in_a_row(tuple(tokens))
    return max([size for size, name in map(_wanted, names) if name in said], default=0)


# -- mending -----------------------------------------------------------------------------------------------------------


class Speller:
    """Mends what was typed, for one pack."""

    def __init__(self, scenario: Scenario) -> None:
        named = {word for name in _names(scenario) for word in words_of(name)}
        self._meant = tuple(sorted(named | _verbs()))
        self._known = _common() | named | {word for text in _prose(scenario) for word in words_of(text)}
        self._mended: dict[str, str] = {}

    def words(self, text: str) -> list[str]:
        """The words of a text, those that nobody knows mended."""
        return [self._word(word) for word in words_of(text)]

    def knows(self, word: str) -> bool:
        """Whether it is a word that means something, here or anywhere."""
        plain = word.removesuffix("'s")
        return plain in self._known or plain.rstrip("s") in self._known

    def _word(self, word: str) -> str:
        plain = word.removesuffix("'s")
        if len(plain) < 4 or self.knows(word) or not plain.isalpha():
            return word
        if word not in self._mended:
            most = 1 if len(plain) < _LONG else 2
            near = ((_distance(plain, one, most), one) for one in self._meant if one[0] == plain[0] and len(one) >= 4)
            far, found = min(near, default=(most + 1, ""))
            self._mended[word] = found if far <= most else word
        return self._mended[word]


@kept(8)
def speller(scenario: Scenario) -> Speller:
    """One per pack."""
    return Speller(scenario)


@cache
def _verbs() -> frozenset[str]:
    return frozenset(word for lines in VERBS["verbs"].values() for line in lines for word in line.split() if word.isalpha())


@cache
def _common() -> frozenset[str]:
    """Words that mean themselves: verbs, small words, and those of the lines that belong to no pack."""
    told = (word for lines in phrases().values() for line in lines for word in words_of(line))
    return frozenset((*_verbs(), *SMALL, *VERBS["common"]["words"], *told))


def _names(scenario: Scenario) -> Iterator[str]:
    for kind in (scenario.npcs, scenario.heroes, scenario.places, scenario.items):
        for one in kind.values():
            yield from one.names
    for npc in scenario.npcs.values():
        yield from (word for topic in npc.topics for word in topic.words)
    yield from (word for deed in scenario.deeds for word in deed.words)
    yield from (word for place in scenario.places.values() for detail in place.details for word in (detail.name, *detail.words))


def _prose(scenario: Scenario) -> Iterator[str]:
    """What the pack tells in its own words: nobody mistypes those as often as they mean them."""
    for place in scenario.places.values():
        yield from (*place.look, *place.again, *place.air)
    for npc in scenario.npcs.values():
        yield from (npc.look, *npc.greet, *npc.warm, *npc.cold, *npc.idle, *(line for topic in npc.topics for line in topic.say))
    ways = (way for encounter in scenario.encounters.values() for way in encounter.ways)
    yield from (text for deed in (*scenario.deeds, *ways) for text in (deed.offer, *deed.words, *deed.success.say))
    yield from (line for hero in scenario.heroes.values() for lines in hero.says.values() for line in lines)
    yield from (line for lines in scenario.lines.values() for line in lines)
    yield from scenario.premise


def _distance(one: str, other: str, most: int) -> int:
    """How many letters are wrong, missing, too many or swapped; more than `most` is as good as any."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
