"""Who is somebody: whether a name is that of a person, and no place or thing, and whether a sentence has anyone else who may be meant.

A name is taken for somebody's only if something says so; of whom nothing is known, they may always be the other who is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from talekeeper.summarize.names import Name
from talekeeper.summarize.sentences import Draft
from talekeeper.summarize.words import (
    BREAKS,
    LISTED,
    MARK,
    OWNS,
    PERSON,
    PLACE,
    SAY,
    STOP,
    THING,
    TIME,
    UNSPACED,
    Word,
    belongs,
    listed,
    words_of,
    words_of_names,
)

_PRONOUN = MARK["pronoun"]
_NOBODY = PLACE | THING | TIME
_LIFELESS = _NOBODY | MARK["money"] | MARK["number"] | MARK["starter"]
_WHO = frozenset({"who", "quien"})
"""The words for "who" that are no words for "which"."""
_FRONT = 5
"""Among so many words at the front of a sentence the one is looked for with whom it begins."""
_NEAR = 3
"""Among so many words behind a name it is told what they do."""


FAR = 16
"""So many sentences before a "he" at most are looked at for another who may be meant: a turn may have thousands."""
_LOOKED_AT = 128
"""So many of what is told are looked at for a sign that someone is somebody."""


class Cast(NamedTuple):
    """By what it is known who is somebody: sentences that tell of them, and the words of the names of those who speak in the story."""

    told: Sequence[Draft] = ()
    speakers: Collection[str] = ()


NO_CAST = Cast()


def is_somebody(name: Name, draft: Draft, cast: Cast) -> bool:
    """Whether a name is plainly that of somebody, and of no place or thing: someone who speaks has it, it has a title, or what it does,
    here or elsewhere in what is told, only somebody does."""
    known, told = known_by(name), cast.told[:_LOOKED_AT]
    if not known.isdisjoint(cast.speakers) or not known.isdisjoint(words_of_names({each.voice for each in told})):
        return True
    if not name.places:
        return any(_is_told_of_somebody(name, draft) for draft in (draft, *told))
    last = name.row.words[name.places[-1]]
    if last.marks & _NOBODY or last.norm in listed("site"):
        return False
    if _acts(name, draft.lang):
        return True
    those = (other for each in told if name.key in each.reading.keys for other in each.reading.names if other.key == name.key)
    return any(_acts(other, draft.lang) for other in those if other.places)


def known_by(name: Name) -> frozenset[str]:
    """The words of a name, for comparing."""
    return frozenset([name.row.words[at].norm for at in name.places] or [name.text])


def _acts(name: Name, lang: str) -> bool:
    """Whether a name has a title, or what is told right behind it only somebody does."""
    words, end = name.row.words, name.places[-1] + 1
    if _has_title(words, name.places):
        return True
    if words[end - 1].marks & OWNS:
        return end < len(words) and belongs(words[end].norm, "body", lang)
    for at in range(end, min(end + _NEAR, len(words))):
        if words[at - 1].marks & BREAKS:
            return False
        if _is_deed(words, at, lang) or (_is_with_their_own(words, at) and not belongs(words[at].norm, "being", lang)):
            return True
        if not (words[at].marks & STOP or words[at].norm.endswith("ly")) or (lang == "en" and belongs(words[at].norm, "being", lang)):
            return False
    return False


def _has_title(words: Sequence[Word], places: Sequence[int]) -> bool:
    """Whether a name has a title in it, before it or behind it: "Captain Voss", "the guard Brigg", "Anselm, a fat monk", "Brigg, who …"."""
    start, before = places[0], words[max(0, places[0] - 1)]
    start -= start > 0 and not before.marks & (BREAKS | OWNS | STOP)
    if any(word.marks & PERSON or gender_of([word.norm]) for word in words[start : places[-1] + 1]):
        return True
    last, after = words[places[-1]], words[places[-1] + 1 : places[-1] + 2 + _NEAR]
    if not last.marks & BREAKS or last.marks & OWNS or not after:
        return False
    if after[0].norm in _WHO:
        return True
    return after[0].norm in listed("article") and any(word.marks & PERSON or word.norm in listed("somebody") for word in after)


def _is_deed(words: Sequence[Word], at: int, lang: str) -> bool:
    """Whether a word, or with the one behind it, tells what only somebody does."""
    word = words[at]
    if word.marks & SAY or belongs(word.norm, "deed", lang):
        return True
    return at + 1 < len(words) and not word.marks & BREAKS and f"{word.norm} {words[at + 1].norm}" in listed("deed")


def _is_with_their_own(words: Sequence[Word], at: int) -> bool:
    """Whether somebody does it with what is theirs: "lights his pipe", "rummages in her bag"."""
    own = next((word for word in words[at + 1 : at + 3] if word.marks & _PRONOUN), None)
    return own is not None and own.norm in listed("their_own")


def _is_told_of_somebody(name: Name, draft: Draft) -> bool:
    """The same in Chinese and Japanese: a title beside the name, or anything that somebody does behind it."""
    body, lang, who = draft.body, draft.lang, name.text
    if lang not in UNSPACED or who not in body:
        return False
    titles = [word.norm for word in draft.reading.words if word.marks & PERSON]
    if any(f"{who}{title}" in body or f"{title}{who}" in body or title in who for title in titles):
        return True
    behind = body[body.find(who) + len(who) :]
    return any(word in behind for group in ("deed", "say") for word in words_of(group, lang))


def brings_others(draft: Draft, gender: str, known: Set[str] = frozenset(), *, goes_on: bool = False) -> bool:
    """Whether a sentence has anyone who may be meant by a pronoun of this gender ("": by any): a name that is no place or thing, "a son" or
    "the cobbler", beside the one it is about, whose name has the words `known`. Whoever is known to be of another gender, is not meant.

    `goes_on`: where the sentence begins with that pronoun, whoever is given something is not meant by the next."""
    reading, lang = draft.reading, draft.lang
    if lang in UNSPACED:
        return _brings_others_unspaced(draft, known)
    words, own = reading.words, set[int]()
    goes_on = goes_on and bool(words) and words[0].norm in listed("he") and gender_of([words[0].norm]) == gender
    for name in reading.names:
        places = {*range(max(0, name.places[0] - 1), name.places[-1] + 1)}
        itself = any(words[at].norm in known for at in name.places)
        if itself or (goes_on and _is_given(words, name.places[0])) or not _may_be_meant(words, name, gender):
            own |= places
        else:
            return True
    if not own:  # "the innkeeper", "the guard captain"
        first = next((at for at, word in enumerate(words) if word.norm in known), len(words))
        own.update(takewhile(lambda at: words[at].norm in known, range(first, len(words))))
    if any(
        _is_someone(word, lang) and (not gender or gender_of([word.norm]) in ("", gender)) for at, word in enumerate(words) if at not in own
    ):
        return True
    return brings_a_stranger(words, own, lang)


def _is_given(words: Sequence[Word], at: int) -> bool:
    """Whether one who stands here is given something: "it to Mira", not "turns to Mira"."""
    return at > 1 and words[at - 1].norm in listed("toward") and bool(words[at - 2].marks & (_PRONOUN | THING))


def brings_a_stranger(words: Sequence[Word], own: Collection[int], lang: str) -> bool:
    """Whether someone is in a sentence of whom no list knows: "someone", "the cobbler", or who does what only somebody does."""
    if any(word.norm in listed("someone") for word in words):
        return True
    if words and 0 not in own and 1 not in own and _begins_with_a_noun(words):
        return True
    return any(_is_done_by_a_stranger(words, at, own) for at in range(1, len(words)) if at not in own and _is_deed(words, at, lang))


def _begins_with_a_noun(words: Sequence[Word]) -> bool:
    """Whether a sentence begins with "the cobbler", or any other of whom it is not known that they are a place or a thing."""
    start = next((at for at, word in enumerate(words[:_FRONT]) if not belongs(word.norm, "then", "*")), 0)
    if words[start].norm not in listed("article"):
        return False
    for word in words[start + 1 : start + 1 + _NEAR]:
        if word.norm in listed("adjective"):
            continue
        if word.marks & _LIFELESS or word.norm in listed("lifeless"):
            return False
        if word.marks & (STOP | BREAKS):
            break
    return True


def _is_done_by_a_stranger(words: Sequence[Word], at: int, own: Collection[int]) -> bool:
    """Whether the word before what somebody does is a noun or begins the sentence, and it is not known who or what that is."""
    before = at - 1
    while before > 0 and (words[before].norm.endswith("ly") or words[before].norm in listed("adverb")) and not words[before].marks & BREAKS:
        before -= 1
    word = words[before]
    if before in own or word.marks & (STOP | BREAKS | SAY | _PRONOUN | _LIFELESS) or word.norm in listed("lifeless"):
        return False
    if before == 0:
        return word.capital and not word.marks & LISTED
    return any(each.norm in listed("article") for each in words[max(0, before - 2) : before])


def _may_be_meant(words: Sequence[Word], name: Name, gender: str) -> bool:
    """Whether a name may be that of someone who is a "he": it is no place, thing or time, and has no title of another gender."""
    first, last = words[name.places[0]], words[name.places[-1]]
    before = words[name.places[0] - 1] if name.places[0] else None
    known = gender_of([each.norm for each in (before, first, last) if each is not None and not each.marks & _PRONOUN])
    if known:
        return gender in ("", known)
    if (first.marks | (before.marks if before else 0)) & PERSON:
        return True
    if last.marks & _NOBODY or last.norm in listed("site"):
        return False
    if before is None or before.norm in listed("toward"):
        return True
    if before.norm in listed("within") or before.norm in listed("article") or before.norm in listed("fused"):
        return False
    return not (before.norm in listed("of") and name.places[0] > 1 and words[name.places[0] - 2].marks & PLACE)  # "the mill of Harrow"


def _is_someone(word: Word, lang: str) -> bool:
    """Whether a word is a noun for one person: "a son", "the guard"."""
    norm = word.norm
    if not (word.marks & PERSON or norm in listed("somebody") or norm in listed("lord") or norm in listed("lady")):
        return belongs(norm, "kin", lang) and not (lang == "en" and norm[-1:] == "s")
    return not (lang == "en" and norm[-1:] == "s" and norm[-2:] != "ss")


def _brings_others_unspaced(draft: Draft, known: Set[str]) -> bool:
    """The same in Chinese and Japanese, where a title stands right beside its name."""
    names, body = {name.text for name in draft.reading.names}, draft.body
    if names - {*known}:
        return True
    titles = {word.norm for word in draft.reading.words if word.marks & PERSON}
    beside = (any(f"{who}{title}" in body or f"{title}{who}" in body or title in who for who in known) for title in titles)
    return not all(beside)


def gender_of(words: Iterable[str]) -> str:
    """The gender of the first word that has one: a pronoun or a title."""
    for word in words:
        if word in listed("male") or word in listed("lord"):
            return "male"
        if word in listed("female") or word in listed("lady"):
            return "female"
    return ""
