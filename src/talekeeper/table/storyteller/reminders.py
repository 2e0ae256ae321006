"""What a listener could bring up again: words that were said, deeds that were done, as they stand in that listener's own context.

Nothing is looked up anywhere else, so nobody is reminded of what they did not hear, and what memory has folded away is remembered in the
words of the fold.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from talekeeper.context.recipe import MOMENTS_PART, RECENT_PART, Part
from talekeeper.model import Context
from talekeeper.table.meaning.address import everyone, sayings
from talekeeper.table.meaning.questions import SAID_BEFORE
from talekeeper.table.meaning.spelling import speller
from talekeeper.table.shown.prose import capital
from talekeeper.table.world.scenario import Scenario

_QUOTE = re.compile(r"“([^“”]{16,160})”")
_OURS = re.compile(r"\b(?:our|us|we|ourselves)\b")
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]")
_LONGEST = 14
_MOST = 240
"""Of what was said so many characters are said again at the most."""
_ENDS = re.compile(r"(?<=[.!?…])\s+")
_WORN = 2
"""What stands in a context so often has been brought up already."""


def _shown(context: Context, part: Part) -> list[str]:
    """What stands in a part of a context, piece by piece."""
    return [item.text for block in context.blocks if block.name == part.name for item in block.items]


def since(context: Context, speaker: str) -> tuple[str, list[str]]:
    """What someone said last, if it is among the newest turns of a context, and the turns after that; else all of these."""
    turns = _shown(context, RECENT_PART)
    said = (place for place in range(len(turns) - 1, -1, -1) if turns[place].startswith(f"[{speaker}]: "))
    at = next(said, -1)
    return turns[at] if at >= 0 else "", turns[at + 1 :]


def deeds(context: Context) -> list[str]:
    """The moments in a context: what reads on after “we”."""
    found = (text.partition("): ")[2].strip().rstrip(".") for text in _shown(context, MOMENTS_PART))
    return [summary for summary in found if context.text.count(summary) < _WORN]


@functools.lru_cache(maxsize=8)
def _sayings(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """What people of the pack say for all to hear when they are asked: pairs of who and a sentence that can stand alone."""
    return tuple(
        (npc.name, words)
        for npc in scenario.npcs.values()
        for topic in npc.topics
        if not topic.secretly
        for line in topic.say
        for quote in _QUOTE.findall(line)
        if (words := _whole(quote)) and words.rstrip(".!?…") in line
    )


def heard_of(context: Context, scenario: Scenario) -> list[tuple[str, str]]:
    """What people said that still stands in a context, and has not been brought up again: pairs of who and what."""
    return [(who, words) for who, words in _sayings(scenario) if context.text.count(words.rstrip(".!?…")) == 1]


def said_to(turns: Iterable[str], who: str, scenario: Scenario) -> list[str]:
    """What the one whose turns these are said to somebody, as they said it: the last comes first. What they asked is not among it."""
    words, names = speller(scenario).words, everyone(scenario)
    said = (" ".join(one.words for one in sayings(text, words, names) if who in one.to) for text in turns)
    told = [_claims(text.strip(" ,")) for text in said if not SAID_BEFORE.search(text)]
    return list(dict.fromkeys(one for one in reversed(told) if one))


def _claims(said: str) -> str:
    return " ".join(one for one in _ENDS.split(said) if not one.endswith("?"))


def again(said: str) -> str:
    """What was said, as one says it again: from the beginning, and as much of it as one can keep in mind."""
    text = capital(said if said[-1:] in ".!?…" else f"{said}.")
    if len(text) <= _MOST:
        return text
    cut = text[:_MOST]
    end = max(cut.rfind(mark) for mark in (". ", "! ", "… ")) + 1
    return cut[:end] if end else f"{cut.rpartition(' ')[0].rstrip(',;:')} …"


def of_note(said: Iterable[str]) -> list[str]:
    """Of what was said what one may come back to unasked: a sentence out of each that can stand alone."""
    return [words for one in said if (words := _whole(one))]


def retold(deed: str, we: str) -> str:
    """A deed that read on after “we”, for one who says “you” or “they” instead."""
    forms = {"you": ("your", "you", "you", "yourselves"), "they": ("their", "them", "they", "themselves")}[we]
    return _OURS.sub(lambda found: dict(zip(("our", "us", "we", "ourselves"), forms, strict=True))[found[0]], deed)


def as_seen_by(deed: str, names: Iterable[str]) -> str:
    """A deed as one tells it who was there; nothing where they would have to speak of themselves as of somebody else."""
    them = "(?:" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + ")"
    told = re.sub(rf"\b{them}['’]s\b", "my", retold(deed.rstrip(". "), "you"))
    told = re.sub(rf"\b{them}$", "me", told)
    return "" if re.search(rf"\b{them}\b", told) else told


def _whole(quote: str) -> str:
    """A sentence out of a quotation that can stand alone and is not too long to be said again."""
    fitting = [one.strip() for one in _SENTENCE.findall(quote if quote.rstrip()[-1:] in ".!?…" else quote.rstrip(", ") + ".")]
    fitting = [one for one in fitting if 4 <= len(one.split()) <= _LONGEST and one[:1].isupper()]
    return max(fitting, key=len, default="")
