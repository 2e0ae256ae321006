"""What a model's summary has lost, told in the words of its sources: whole sentences where there is room, promises and debts first.

A bare name says that somebody was there, the sentence says what for. Pure, like `faithful`, which says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.model import Turn
from talekeeper.summarize.attribution import quotation
from talekeeper.summarize.claims import is_question
from talekeeper.summarize.corrections import corrected
from talekeeper.summarize.extractive import judged
from talekeeper.summarize.faithful import LED, SHARE, also, complete, missing
from talekeeper.summarize.names import marks_of
from talekeeper.summarize.posing import may_mislead
from talekeeper.summarize.refusal import common_to, content_of
from talekeeper.summarize.sentences import PLAIN, Draft, split_sentences
from talekeeper.summarize.threads import ends, settles, telling_words
from talekeeper.summarize.words import MARK, MONEY, NAMEABLE, NUMBER, PERSON, PLACE, THING, TIME, UNSPACED, language, normalise, read
from talekeeper.tokens import estimate_tokens

_VOW = MARK["promise"] | MARK["threat"]
_DEATH = MARK["death"]
_HAPPENS = _VOW | MARK["quest"] | MARK["death"] | MARK["decide"] | MARK["reveal"] | MARK["betray"] | MARK["gain"]
_ABOUT = MONEY | THING | PERSON | PLACE | TIME | NUMBER | NAMEABLE
"""A vow that has nothing of these is a phrase: "I will remember that, I promise."."""

_TRIED = 100
"""So many of the best sentences are tried: more than a chunk has, unless someone reads out a book."""


class Telling(NamedTuple):
    """A sentence of the sources as it can stand in a fold, and which source it is from."""

    text: str
    source: int


def retell(summary: str, lost: Sequence[str], sources: Sequence[str], *, limit: int) -> tuple[tuple[Telling, ...], tuple[str, ...]]:
    """What tells of that which a summary has lost, in the words of its sources: promises, threats, debts and deaths that it does not
    tell, and what else happens to the lost; then those of the lost that are left to be named.

    It all fits into what the summary leaves of `limit`, or into 30% of that. Nothing gives way to a sentence."""
    room = max(limit * SHARE, limit - estimate_tokens(summary))
    chosen: list[Telling] = []
    text, rest = "", tuple(lost)
    for due, draft in _tellings(summary, lost, sources)[:_TRIED]:
        telling = Telling(_standing(draft), draft.stretch)
        more = f"{text} {telling.text}".lstrip()
        if estimate_tokens(more) > room:
            continue
        still = missing(more, lost)
        if (due or len(still) < len(rest)) and estimate_tokens(f"{more} {complete('', still)}") <= room:
            chosen.append(telling)
            text, rest = more, still
    return tuple(sorted(chosen, key=lambda telling: telling.source)), rest


def _tellings(summary: str, lost: Sequence[str], sources: Sequence[str]) -> list[tuple[bool, Draft]]:
    """The sentences that could tell what a summary has lost, the best first: vows and deaths, which are due whatever else is told, then
    those with most of the lost."""
    lang = language("\n".join(sources))
    if language(summary, lang) != lang:
        return []
    content, found = content_of(summary, lang), dict[str, tuple[float, bool, Draft]]()
    drafts = _drafts(tuple(sources))
    wrong = {place for _, place in corrected(drafts)}
    telling = [sentence for sentence in split_sentences(summary) if marks_of(sentence, lang) & _DEATH]
    dead = {word.norm for sentence in telling for word in read(sentence, lang)}
    for draft in [draft for place, draft in enumerate(drafts) if place not in wrong]:
        has, vow = len(lost) - len(missing(draft.body, lost)), _is_vow(draft)
        fate = bool(draft.marks & _DEATH) and not _dead_in(draft) <= dead
        wanted = fate or (has and draft.marks & _HAPPENS) or (vow and draft.marks & _ABOUT and not _is_told(draft, content))
        if wanted and _stands_alone(draft) and not draft.body.startswith(also(lang)):
            found.setdefault(draft.body, (1000.0 * (vow or fate) + 100.0 * has + draft.worth, vow or fate, draft))
    return [(due, draft) for _, due, draft in sorted(found.values(), key=lambda each: -each[0])]


@kept(4)
def _drafts(sources: tuple[str, ...]) -> list[Draft]:
    """The sentences of the sources: they are looked at before and after a repair."""
    return judged([as_turn(at, source) for at, source in enumerate(sources)])


def _is_vow(draft: Draft) -> bool:
    """Whether a sentence promises or threatens something, or says that it is owed."""
    return bool(draft.marks & _VOW) and (draft.lang in UNSPACED or len(set(telling_words(draft))) > 1)


def _dead_in(draft: Draft) -> set[str]:
    """Who dies in a sentence, by the last word of the name."""
    return {normalise(end.name.split()[-1]) for end in ends(draft) if end.how == "dead"}


def _is_told(draft: Draft, content: set[str]) -> bool:
    """Whether a summary has at least half of the words of a sentence."""
    words = content_of(draft.body, draft.lang)
    return 2 * len(common_to(words, content)) >= len(words)


def _stands_alone(draft: Draft) -> bool:
    """Whether a sentence tells something that still holds, and of whom: not of a "She" for whom no name was found."""
    words = draft.reading.words
    lone = bool(words) and bool(words[0].marks & MARK["pronoun"]) and draft.lang not in UNSPACED and not draft.who
    return draft.rank == PLAIN and not (lone or is_question(draft) or settles(draft))


def _standing(draft: Draft) -> str:
    """A sentence as it stands in a fold; who says it is only told where it speaks of "I" or "you", or could pass for another's."""
    ego = draft.lang not in ("en", "de", "fr") or draft.marks & (MARK["first"] | MARK["second"]) or may_mislead(draft.body, draft.voice)
    if ego or draft.outside == "" or draft.who:
        return draft.text
    return draft.body + ("。" if draft.lang in UNSPACED else ".") * draft.body[-1].isalnum()


def as_turn(at: int, source: str) -> Turn:
    """A turn as it was before it was written as a line; what is no quotation in a smaller fold is told by nobody."""
    led = LED.match(source)
    voice, text = (led[1] or "", source[led.end() :]) if led else quotation(source)
    if voice and not led:
        text = text[1:-1].strip()
    return Turn(str(at), at, "said" if voice else "event", voice, voice, text.replace("\n  | ", "\n"), ())
