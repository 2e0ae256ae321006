"""Sentences out of templates: seeded, grammatical, and never the same one twice in a row.

A template may hold slots `{who}`, alternatives `{old|ancient}`, and forms that go with the one who acts `{goes/go}` (she goes, they go),
with how many they are `{goes~go}`, or with the thing it is about `{lies^lie}`. What was said lately is known from the listener's own
context, so nothing has to be kept between two turns: a line that can still be read there is passed over, and where all have been said,
silence is better than repetition.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

from talekeeper.table.rules import dice
from talekeeper.table.rules.conditions import sayable
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.language import read_line
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import PRONOUNS, Hero, Npc, Scenario

_BRACES = re.compile(r"\{([^{}]+)\}")
_ENDS = re.compile(r"(?<=[.!?…])[”’\")]*\s+")
_FIRST = re.compile(r"(^|(?<!\b[A-Z])[.!?]\s+|^[“‘(])([“‘]?)([a-z])")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!(?:uni|use|usu|eu|one\b|once\b|ewe))", re.I)
_DESCRIBED = re.compile(r"(?:An?|Two|Three|Someone|Somebody|Something|The) ")
_TELLING = 4
"""Sentences of fewer words may be said again."""
_TRIES = 5
_APART = 16
"""How many rounds lie between two times of a line that has its time, at the least."""


def sentences(text: str) -> list[str]:
    return [one.strip() for one in _ENDS.split(text) if one.strip()]


def telling(text: str) -> list[str]:
    """The sentences that one would notice if they came again."""
    return [one for one in sentences(text) if len(one.split()) >= _TELLING]


def definite(name: str) -> str:
    """`a lantern`, `lantern` or `the lantern` as `the lantern`; a proper name stays as it is."""
    bare = re.sub(r"^(an?|some) ", "", name)
    return name if name.startswith("the ") or (bare == name and name[:1].isupper()) else f"the {bare}"


def listed(names: Sequence[str], joint: str = "and") -> str:
    """`Wren`, `Wren and Tam`, `Wren, Tam and Sif`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}" if names else "nobody"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def tidy(text: str) -> str:
    """Sentences begin with capitals, and `a` stands before no vowel."""
    text = _ARTICLE.sub(r"\1n ", " ".join(text.split()))
    return _FIRST.sub(lambda found: found[1] + found[2] + found[3].upper(), text)


def person_slots(prefix: str, one: Npc | Hero) -> dict[str, str]:
    """A name and its pronouns: `who`, `who_they`, `who_them`, `who_their`."""
    they, them, their, theirs = PRONOUNS[one.pronouns]
    return {prefix: short(one), f"{prefix}_they": they, f"{prefix}_them": them, f"{prefix}_their": their, f"{prefix}_theirs": theirs}


def short(one: Npc | Hero) -> str:
    """How someone is called once they are known: by the first of the other names."""
    return one.aliases[0] if one.aliases else one.name


def called(scenario: Scenario, id: str) -> str:
    """The same of whatever has that id: of somebody, and of anything else its name."""
    person = scenario.person(id)
    return short(person) if person is not None else scenario.name(id)


def actor_slots(one: Npc | Hero) -> dict[str, str]:
    """The slots of the one who acts, whose pronouns need no prefix."""
    slots = person_slots("who", one)
    return slots | {name: slots[f"who_{name}"] for name in ("they", "them", "their", "theirs")}


def introduced(npc: Npc) -> str:
    """Someone as one sees them first, with the name by which to speak to them: `A thin man in a yellow waistcoat: Marlo Finch.`"""
    bare = npc.look.rstrip(".")
    return f"{bare}: {npc.name}." if _DESCRIBED.match(npc.look) and not re.search(r"[.!?:]", bare) else npc.look


def proper_name_in(text: str, one: Npc | Hero) -> bool:
    """Whether someone is named, and not only spoken of as `the landlady`."""
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in one.names if name[:1].isupper())


class Prose:
    """One speaker's words in one turn."""

    def __init__(self, scenario: Scenario, seed: int, round: int, seat: str, recent: str = "", state: GameState | None = None) -> None:
        self.scenario, self.seed, self.round, self.seat, self.state = scenario, seed, round, seat, state
        self._recent = recent
        self.slots: dict[str, str] = {}
        self.many = False
        self._said: set[str] = set()

    @functools.cached_property
    def recent(self) -> str:
        """What was said lately, on one line."""
        return " ".join(self._recent.split())

    def about(self, actor: str, others: Iterable[str] = ()) -> None:
        """Sets the slots for whoever acts and those who are with them."""
        hero = self.scenario.person(actor)
        if hero is None:
            return
        self.slots |= actor_slots(hero)
        company = [short(person) for one in others if one != actor and (person := self.scenario.person(one)) is not None]
        self.slots["party"] = listed([short(hero), *company])
        self.slots["other"] = company[self.chance(len(company), "other")] if company else short(hero)
        self.many = bool(company)

    def chance(self, below: int, what: str) -> int:
        """A number from 0 up to `below` that belongs to this turn and purpose."""
        return dice.number(below, self.seed, self.round, self.seat, what)

    def once_in(self, times: int, what: str) -> bool:
        return self.chance(times, what) == 0

    def order(self, pool: Sequence[str], what: str) -> list[str]:
        """The pool, shuffled for this turn."""
        return [pool[index] for index in sorted(range(len(pool)), key=lambda index: self.chance(1 << 32, f"{what}/{index}"))]

    def said(self, text: str) -> bool:
        """Whether any of its sentences was said lately, or earlier in this turn."""
        whole = " ".join(text.split())
        return any(one in self._said or one in self.recent for one in telling(text)) or (" " in whole and whole in self.recent)

    def pick(self, pool: Sequence[str] | str, what: str = "", **slots: str) -> str:
        """A line that was not said lately, rendered; nothing where all of them were. A pool may be given by name."""
        return self._first(pool, what, slots, fresh=True)

    def pool(self, name: str) -> tuple[str, ...]:
        return phrases()[name]

    def in_turn(self, pool: Sequence[str], what: str, **slots: str) -> str:
        """The line whose time it is: each has one round, and none of them comes twice within sixteen. Nothing in between."""
        lines = [*pool, *[""] * (len(pool) == 1)]
        if not lines:
            return ""
        span = -(-_APART // (len(lines) - 1))
        time, now = divmod(self.round, span)
        line = lines[(dice.number(len(lines), self.seed, 0, self.seat, what) + time) % len(lines)]
        return self.pick([line], what, **slots) if line and now == dice.number(span, self.seed, time, self.seat, what) else ""

    def must(self, pool: Sequence[str] | str, what: str = "", **slots: str) -> str:
        """A line in any case, a fresh one if there is one."""
        return self._first(pool, what, slots, fresh=True) or self._first(pool, what, slots, fresh=False)

    def _first(self, pool: Sequence[str] | str, what: str, slots: Mapping[str, str], *, fresh: bool) -> str:
        name = f"{pool}/{what}" if isinstance(pool, str) else what
        lines = phrases()[pool] if isinstance(pool, str) else pool
        if not isinstance(pool, str):
            lines = [line for line in self._sayable(lines) if not (fresh and self.names_the_dead(line))]
        for template in self.order(lines, name):
            for attempt in range(_TRIES if "|" in template else 1):
                text = self.render(template, f"{name}/{attempt}", **slots)
                if text and not (fresh and self.said(text)):
                    self._said.update(telling(text))
                    return text
        return ""

    def _sayable(self, lines: Sequence[str]) -> Sequence[str]:
        """The lines that may be told now; where nobody knows how the game stands, those that are always true."""
        if self.state is None:
            return [line for line in lines if not read_line(line)[0]]
        return sayable(lines, self.state, self.scenario)

    def names_the_dead(self, line: str) -> bool:
        """Whether a line of the pack is about somebody who is dead by now: it was written for the living."""
        dead = self.state.dead if self.state is not None else ()
        return any(proper_name_in(line, person) for one in dead if (person := self.scenario.person(one)) is not None)

    def render(self, template: str, what: str = "", **slots: str) -> str:
        """The template as a text. A slot that nobody filled leaves the whole line unsaid."""
        known = {**self.slots, **slots}
        missing = False

        def fill(found: re.Match[str]) -> str:
            nonlocal missing
            content = found[1]
            if "|" in content:
                options = content.split("|")
                return options[self.chance(len(options), f"{what}/{template[:40]}/{found.start()}")]
            for mark, other in (("/", known.get("they") == "they"), ("~", self.many), ("^", bool(known.get("plural")))):
                if mark in content:
                    return content.split(mark)[other]
            value = known.get(content) or known.get(content[:1].lower() + content[1:])
            missing = missing or not value
            plain = (value or "").replace("{", "(").replace("}", ")")
            return capital(plain) if content[:1].isupper() else plain

        text = template
        for _ in range(3):
            text, count = _BRACES.subn(fill, text)
            if not count:
                break
        return "" if missing else tidy(text)


def joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
