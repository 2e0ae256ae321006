"""What a sentence opens, and what closes it: someone or something met, a promise, a threat; a death, a defeat, a gift, a word kept.

Names are classed by what stands around them (a title, a voice, "the", a place's own noun); things are told by a listed noun with
something that tells it apart ("a brass key", not "the key"). In scripts without blanks there are names, promises and threats only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from talekeeper.model import Turn
from talekeeper.summarize.claims import LONGEST, doer, is_denied, is_question, speaker_of
from talekeeper.summarize.names import Name
from talekeeper.summarize.quotations import clip
from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.words import (
    BREAKS,
    CONTENT,
    MARK,
    MONEY,
    NUMBER,
    OWNS,
    PAYS,
    PERSON,
    PLACE,
    STOP,
    THING,
    TIME,
    UNSPACED,
    belongs,
    holds,
    listed,
    normalise,
    places_of,
    words_of,
)

PEOPLE, PLACES, ITEMS, NEVER = "person", "place", "item", ""
_PROMISE, _FIRST, _SECOND = MARK["promise"], MARK["first"], MARK["second"]
_APART = STOP | BREAKS | OWNS | NUMBER | _FIRST | _SECOND
_FATES = {"dead": "dies", "beaten": "yields"}
"""What someone may come to be, and the verbs that say so by themselves."""
_FEWEST = 2
"""Telling words that a promise needs: "I promise." promises nothing."""
_WHOLE = 7
"""Words with which it promises something even so: "I'll be back for you, I promise."."""
_NEAR = 5


class Met(NamedTuple):
    """Someone or something that a sentence names. `kind` is what it seems to be here; "" for a day or an hour."""

    name: str
    kind: str


class Vow(NamedTuple):
    """A promise or a threat, who makes it, and the words it is about."""

    kind: str
    who: str
    text: str
    words: tuple[str, ...]


class End(NamedTuple):
    """What ends something: the death or defeat of someone, a thing given away or destroyed."""

    how: str
    name: str


def met(draft: Draft, turn: Turn) -> Iterator[Met]:
    """Whom and what a sentence names."""
    words = draft.reading.words
    if draft.marks & MARK["roll"]:
        return
    for name in draft.reading.names:
        text = _whole(draft, name)
        if text and not belongs(name.key, "kin", draft.lang) and name.key not in listed("nobody"):
            yield Met(text, _kind(draft, name, turn))
    if draft.lang not in UNSPACED:
        inside = {at for name in draft.reading.names for at in name.places}
        for at, word in enumerate(words):
            if word.marks & THING and at not in inside and (item := _item(draft, at)):
                yield Met(item, ITEMS)


def _whole(draft: Draft, name: Name) -> str:
    """The name with the one whose it is: "Fuller's Row"; "" for the one, who is named there only for that. No title stands alone."""
    words = draft.reading.words
    if not name.places:
        return name.text
    first, last = name.places[0], name.places[-1]
    if words[last].marks & OWNS and last + 1 < len(words) and words[last + 1].plain[:1].isupper():
        return ""
    if len(name.places) == 1 and words[first].marks & PERSON:
        return ""
    owner = words[first - 1] if first else None
    return f"{owner.plain}'s {name.text}" if owner is not None and owner.marks & OWNS and owner.plain[:1].isupper() else name.text


def _kind(draft: Draft, name: Name, turn: Turn) -> str:
    if turn.location is not None and name.text.casefold() in turn.location.casefold():
        return PLACES
    if not name.places:
        return PEOPLE
    words = draft.reading.words
    first, last = words[name.places[0]], words[name.places[-1]]
    lead = [word for word in words[max(0, name.places[0] - 3) : name.places[0]] if not word.marks & BREAKS]
    before = lead[-1].norm if lead else ""
    if first.marks & PERSON or (lead and lead[-1].marks & PERSON):
        return PEOPLE
    if before in listed("when") or last.marks & TIME or last.norm == "eve" or any(word.marks & TIME for word in lead):
        return NEVER
    if last.marks & PLACE or last.norm in listed("site") or before in listed("where") or any(word.marks & PLACE for word in lead):
        return PLACES
    if last.marks & THING:
        return ITEMS
    return PLACES if before == "the" or (lead and lead[-1].marks & OWNS) else PEOPLE


def _item(draft: Draft, at: int) -> str:
    """A thing with what tells it apart: "brass key" of "a small brass key"."""
    words = draft.reading.words
    start = at
    while start and at - start < 2 and words[start - 1].norm and not words[start - 1].marks & _APART:
        start -= 1
    pointed = start and (words[start - 1].norm in listed("pointer") or words[start - 1].marks & OWNS)
    qualified = [word for word in words[start:at] if word.marks & (CONTENT | MONEY)]
    return " ".join(word.norm for word in words[start : at + 1]) if pointed and qualified else ""


def vow(draft: Draft, turn: Turn) -> Vow | None:
    """The promise or the threat that a sentence makes."""
    if draft.rank != PLAIN or is_question(draft) or (settles(draft) and not any(_seconds(draft))):
        return None
    telling = tuple(dict.fromkeys(telling_words(draft)))
    bare = len(telling) < _FEWEST and len(draft.reading.words) < _WHOLE and draft.lang not in UNSPACED
    promises = bool(draft.marks & _PROMISE) or bool(places_of(draft.reading.words, "oath", draft.lang))
    if _menaces(draft, turn) or (not promises and _bodes(draft)):
        who = speaker_of(draft, turn) or (doer(draft, turn) if draft.clear >= len(draft.reading.words) else "")
        return Vow("threat", who, clip(draft.text, LONGEST), telling) if who else None
    who = _promiser(draft, turn) if promises and not bare else ""
    return Vow("promise", who, clip(draft.text, LONGEST), telling) if who else None


def _menaces(draft: Draft, turn: Turn) -> bool:
    """Whether a sentence threatens: by a word for it, or by what the one who speaks will do to the one who is spoken to."""
    words, lang = draft.reading.words, draft.lang
    if holds(draft.body, draft.reading.row.norms, "menace", lang):
        return True
    harms = ((at, group == "maim") for group in ("harm", "maim") for at, _ in places_of(words, group, lang))
    return any(_harms(draft, at, maims) for at, maims in harms) and speaker_of(draft, turn) != ""


def _harms(draft: Draft, at: int, maims: bool) -> bool:
    """Whether a word is harm that is meant: "I will gut you". To cut or break is harm if it is a hand or a house of theirs."""
    words, lang = draft.reading.words, draft.lang
    before, after = words[max(0, at - _NEAR) : at], words[at + 1 : at + 1 + _NEAR]
    if maims and not any(belongs(word.norm, "limb", lang) for word in after):
        return False
    if any(belongs(word.norm, "denial", lang) for word in before[-3:]):
        return False
    if lang == "en":  # English alone says by the order of its words to whom it is done, and needs a word for what is to come
        meant = any(belongs(word.norm, "ego", lang) for word in before) and any(belongs(word.norm, "intends", lang) for word in before)
        return meant and any(word.marks & _SECOND for word in after[: _NEAR if maims else 2])
    around = [*before, words[at], *after]
    ego = lang == "es" or any(belongs(word.norm, "ego", lang) for word in around)
    return ego and any(word.marks & _SECOND for word in around)


def _bodes(draft: Draft) -> bool:
    """Whether a sentence has what is a threat where it stands for itself: "I will find you.", not "I will find you a room"."""
    words = draft.reading.words
    return any(words[last].marks & BREAKS or last == len(words) - 1 for _, last in places_of(words, "omen", draft.lang))


def _promiser(draft: Draft, turn: Turn) -> str:
    """Who gives their word here and now; to tell of it, to deny it or to ask for it is no promise."""
    speaker = speaker_of(draft, turn)
    if draft.lang in UNSPACED:
        return speaker or (doer(draft, turn) if draft.clear >= len(draft.reading.words) else "")
    words = draft.reading.words
    if speaker and any(not is_denied(draft, at, near=3) for at, _ in places_of(words, "oath", draft.lang)):
        return speaker
    for at in (at for at, word in enumerate(words) if word.marks & _PROMISE):
        if is_denied(draft, at, near=3):
            continue
        if not speaker:
            first = draft.reading.names[0].places[-1:] if draft.reading.names else []
            close = at - (first[0] if first else 0) <= 4 or at in _seconds(draft)
            return doer(draft, turn) if close and at < draft.clear else ""
        near = [*words[max(0, at - 3) : at + 3], *(words[:1] if at in _seconds(draft) else ())]
        if words[at].norm not in listed("told_again") and any(belongs(word.norm, "ego", draft.lang) for word in near):
            return speaker
    return ""


def _seconds(draft: Draft) -> Iterator[int]:
    """Where a word is given as a second thing that the same one does: "I pay Pim 6 silver and promise to find Tam"."""
    words, lang = draft.reading.words, draft.lang
    for at, word in enumerate(words[:-2]):
        if word.marks & _PROMISE and at > 1:
            before = words[at - 2] if belongs(words[at - 1].norm, "ego", lang) else words[at - 1]
            if before.norm in listed("and"):
                yield at


def telling_words(draft: Draft) -> Iterator[str]:
    """The words that a sentence is about, for comparing; of scripts without blanks, names and pairs of signs."""
    if draft.lang in UNSPACED:
        signs = [sign for sign in draft.body if sign.isalpha()]
        yield from map("".join, pairwise(signs))
        return
    for word in draft.reading.words:
        if word.norm and word.marks & (CONTENT | NUMBER) and not word.marks & (_PROMISE | STOP):
            yield word.norm[:-1] if len(word.norm) > 4 and word.norm.endswith("s") else word.norm


def ends(draft: Draft) -> Iterator[End]:
    """What ends in a sentence."""
    if is_question(draft):
        return
    yield from _fates(draft)
    words = draft.reading.words
    if draft.lang not in UNSPACED and holds(draft.body, draft.reading.row.norms, "spent", draft.lang):
        for at, word in enumerate(words):
            if word.marks & THING:
                item = _item(draft, at)
                if item and not is_denied(draft, at, near=6):
                    yield End("spent", item)


def _fates(draft: Draft) -> Iterator[End]:
    """Who dies or is defeated: the name stands right before the word, or right after one who kills."""
    words, lang = draft.reading.words, draft.lang
    for name in draft.reading.names:
        if not name.places:
            yield from (End(how, name.text) for how in _FATES if any(name.text + word in draft.body for word in words_of(how, lang)))
            continue
        start, end = name.places[0], name.places[-1]
        for at in range(end + 1, min(len(words), end + 6)):
            if words[at - 1].marks & BREAKS:
                break
            norm = words[at].norm
            for how, finite in _FATES.items():
                comes = belongs(norm, finite, lang) or (belongs(norm, how, lang) and _is_so(draft, at, end))
                if comes and not is_denied(draft, at):
                    yield End(how, name.text)
        if start and belongs(words[start - 1].norm, "fells", lang) and not is_denied(draft, start - 1):
            yield End("dead", name.text)


def _is_so(draft: Draft, at: int, end: int) -> bool:
    """Whether someone *is* it: "Grist lies dead", not "Grist enters the drowned church"."""
    before = draft.reading.words[end + 1 : at]
    return any(belongs(word.norm, "being", draft.lang) for word in before) or (draft.lang == "ru" and not before)


def settles(draft: Draft) -> bool:
    """Whether a sentence says that a word was kept or a score settled."""
    norms = draft.reading.row.norms
    if len(norms) == 1 and belongs(norms[0], "quits", draft.lang):
        return True
    return not is_question(draft) and (pays_up(draft) or holds(draft.body, norms, "settled", draft.lang))


def pays_up(draft: Draft) -> bool:
    """Whether a sentence that asks nothing says that what is owed is paid here and now: "I pay Tamsin her three crowns", "Here are the
    three crowns I owe you". To buy something is no such thing, nor is a part of it."""
    row, lang = draft.reading.row, draft.lang
    norms = row.norms
    if not draft.marks & (NUMBER | MONEY) or lang in UNSPACED:
        return False
    if norms and norms[0] in listed("here"):
        return any(belongs(norm, "debt", lang) or norm == "promised" for norm in norms[1:])
    if PAYS not in row.signs:
        return False
    for at in [at for at, word in enumerate(row.words) if PAYS in word.signs]:
        if not at or not belongs(norms[at], "pays", lang):  # not "Pay him, Borin."
            continue
        due = norms[at - 1] == "to" or norms[at - 1] in listed("unpaid")
        if not (due or is_denied(draft, at)):
            behind = norms[at + 1 :]
            parts = not listed("of").isdisjoint(behind) and any(
                mark & NUMBER and norm in listed("of") for mark, norm in zip(row.marks[at + 1 :], behind[1:], strict=False)
            )
            return not parts and listed("in_return").isdisjoint(behind)
    return False


def item_key(name: str) -> str:
    """A thing for comparing: its noun, and the beginnings of what tells it apart ("eisernen Schlüssel" is "eiserne Schlüssel")."""
    *told, noun = [normalise(word) for word in name.split()] or [""]
    return " ".join([*(word[:5] for word in told[-1:]), noun])
