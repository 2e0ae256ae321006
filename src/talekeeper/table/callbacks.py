"""What a listener could bring up again: words that were said, deeds that were done, as they stand in that listener's own context.

Nothing is looked up anywhere else, so nobody is reminded of what they did not hear, and what memory has folded away is remembered in the
words of the fold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MOMENT = re.compile(r"^- Turn \d+ \(\w+\): (.+)$", re.M)
_QUOTE = re.compile(r"“([^“”]{16,160})”")
_SPEAKER = re.compile(r"^\s*\[?([^\]:\n]{1,40})\]?(?:, whispering)?: (.*)$", re.M)
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]")
_NEAR = 60
_LONGEST = 14
_WORN = 2
"""What stands in a context so often has been brought up already."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """Something that somebody said."""

    speaker: str
    words: str


def deeds(context: str) -> list[str]:
    """The moments in a context: what reads on after “we”."""
    found = (summary.strip().rstrip(".") for summary in _MOMENT.findall(context))
    return [summary for summary in found if context.count(summary) < _WORN]


def quotes(context: str, speakers: Iterable[str]) -> list[Quoted]:
    """What these said, oldest first: a quotation with the name of its speaker close to it."""
    names = re.compile(r"\b(" + "|".join(re.escape(name) for name in sorted(speakers, key=len, reverse=True)) + r")\b(?!['’]s)")
    found: list[Quoted] = []
    for quote in _QUOTE.finditer(context):
        after, before = context[quote.end() : quote.end() + _NEAR], context[max(0, quote.start() - _NEAR) : quote.start()]
        speaker = names.search(re.split(r"[.!?]\s", after)[0]) or names.search(re.split(r"[.!?\n]\s*", before)[-1])
        words = _whole(quote[1])
        if speaker and words and context.count(words) < _WORN:
            found.append(Quoted(speaker[1], words))
    return list(dict.fromkeys(found))


def said_to(context: str, who: str, npc: Iterable[str]) -> list[str]:
    """What somebody said in so many words in a turn of their own that names an NPC."""
    names = re.compile(r"\b(?:" + "|".join(re.escape(name) for name in npc) + r")\b")
    found = []
    for line in _SPEAKER.finditer(context):
        if line[1] == who and names.search(line[2]):
            found += [words for quote in re.findall(r"[“\"]([^“”\"]{12,120})[”\"]", line[2]) if (words := _whole(quote))]
    return list(dict.fromkeys(found))


def _whole(quote: str) -> str:
    """A sentence out of a quotation that can stand alone and is not too long to be said again."""
    fitting = [one.strip() for one in _SENTENCE.findall(quote if quote.rstrip()[-1:] in ".!?…" else quote.rstrip(", ") + ".")]
    fitting = [one for one in fitting if 4 <= len(one.split()) <= _LONGEST and one[:1].isupper()]
    return max(fitting, key=len, default="")
