"""What a listener could bring up again: words that were said, deeds that were done, as they stand in that listener's own context.

Nothing is looked up anywhere else, so nobody is reminded of what they did not hear, and what memory has folded away is remembered in the
words of the fold.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from talekeeper.table.prose import phrases

_MOMENT = re.compile(r"^- Turn \d+ \(\w+\): (.+)$", re.M)
_QUOTE = re.compile(r"“([^“”]{16,160})”")
_OURS = re.compile(r"\b(?:our|us|we|ourselves)\b")
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]")
_SAYS = re.compile(r"\b(?:says|said|whispers|asks|answers|mutters|adds|calls)\b")
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
        said = re.split(r"[.!?“\n]", after)[0], re.split(r"[.!?”\n]\s*", before)[-1]
        speaker = next((name for part in said if _SAYS.search(part) and (name := names.search(part))), None)
        words = _whole(quote[1])
        if speaker and words and "‘" not in words and not _is_common(words) and context.count(words) < _WORN:
            found.append(Quoted(speaker[1], words))
    return list(dict.fromkeys(found))


@functools.cache
def _common_runs() -> frozenset[tuple[str, ...]]:
    """Every three words that follow each other in lines which belong to no pack."""
    parts = (part for lines in phrases().values() for line in lines for part in re.split(r"[{}|]", line))
    return frozenset(run for part in parts for run in _runs(part))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"[\w’']+", text.casefold())
    yield from zip(words, words[1:], words[2:], strict=False)


def _is_common(words: str) -> bool:
    """Whether anyone might have said it: not worth being told again."""
    return any(run in _common_runs() for run in _runs(words))


def said_to(turns: Iterable[str], npc: Iterable[str]) -> list[str]:
    """What somebody said in so many words in turns that name an NPC, newest first."""
    names = re.compile(r"\b(?:" + "|".join(re.escape(name) for name in npc) + r")\b")
    spoken = [quote for text in turns if names.search(text) for quote in re.findall(r"[“\"]([^“”\"]{12,120})[”\"]", text)]
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
