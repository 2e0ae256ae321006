"""What a listener could bring up again: words that were said, deeds that were done, as they stand in that listener's own context.

Nothing is looked up anywhere else, so nobody is reminded of what they did not hear, and what memory has folded away is remembered in the
words of the fold.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from talekeeper.table.scenario import Scenario

_MOMENT = re.compile(r"^- Turn \d+ \(\w+\): (.+)$", re.M)
_QUOTE = re.compile(r"“([^“”]{16,160})”")
_OURS = re.compile(r"\b(?:our|us|we|ourselves)\b")
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]")
RECENT = "## Recent Events\n"
_NEXT_PART = re.compile(r"\n(?=## |\[STORY SO FAR\])")
_LONGEST = 14
_WORN = 2
"""What stands in a context so often has been brought up already."""


def recent(context: str) -> str:
    """The newest turns of a context, as they are, without what stands around them."""
    _, heading, behind = context.partition(RECENT)
    return _NEXT_PART.split(behind if heading else context, maxsplit=1)[0]


def deeds(context: str) -> list[str]:
    """The moments in a context: what reads on after “we”."""
    found = (summary.strip().rstrip(".") for summary in _MOMENT.findall(context))
    return [summary for summary in found if context.count(summary) < _WORN]


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


def heard_of(context: str, scenario: Scenario) -> list[tuple[str, str]]:
    """What people said that still stands in a context, and has not been brought up again: pairs of who and what."""
    return [(who, words) for who, words in _sayings(scenario) if context.count(words.rstrip(".!?…")) == 1]


def said_to(turns: Iterable[str], npc: Iterable[str]) -> list[str]:
    """What somebody said to an NPC in so many words, newest first."""
    them = r"\b(?:" + "|".join(re.escape(name) for name in npc) + r")\b"
    to_them = re.compile(rf"\b(?:to|tell|ask|answer|promise)\s+{them}")
    quotes = [(text, quote) for text in turns for quote in re.findall(r"[“\"]([^“”\"]{12,120})[”\"]", text)]
    spoken = [quote for text, quote in quotes if re.search(them, quote) or to_them.search(text)]
    return list(dict.fromkeys(words for quote in reversed(spoken) if (words := _whole(quote))))


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
