"""What takes back a state: "Dorn is alive." after his death, "The treaty is broken." after it was signed, "He wakes." after a dream.

Rules of form over the words of a sentence, and over the sentence that it may take back: of the same people, of the same pact. A question,
a condition or a denial takes nothing back. In scripts without blanks, words that stand anywhere do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.threads import ends
from talekeeper.summarize.words import (
    BREAKS,
    MARK,
    OWNS,
    PERSON,
    UNSPACED,
    Word,
    belongs,
    listed,
    normalise,
    words_and_beginnings,
    words_of,
)

DYING = ("dead", "dies", "dying")
"""The groups of words with which something is taken back where they are denied."""
CLOSE = 2
"""So many sentences before a "He is alive!" at most stands who it is."""
_FIRST, _PRONOUN, _DEATH = MARK["first"], MARK["pronoun"], MARK["death"]
_BOUND = MARK["promise"] | MARK["decide"]
_BEFALLS = _DEATH | MARK["betray"] | MARK["outcome"] | MARK["promise"] | MARK["threat"]
_NEGATED = 4
"""So many words before a "dead" a "not" denies it."""
_ALIKE = 5
"""With so many letters the forms of a word for a pact begin."""
_CLOSED = " \"'”’»」』)"


def wakes(tale: Draft, draft: Draft) -> bool:
    """Whether a sentence goes on behind a dream or a tale in which something befalls someone: "He wakes.", "It is only a tale."."""
    words = draft.reading.words
    leans = bool(words) and words[0].marks & _PRONOUN > 0 and draft.stretch == tale.stretch and draft.rank == PLAIN
    if not leans or not tale.reading.marks & _BEFALLS:
        return False
    return bool(_places(tale, "dream", "tale"))


class Reversal(NamedTuple):
    """What a sentence takes back: the death of those it names, who are alive; else a pact, or a bond between two of them."""

    alive: bool
    whom: frozenset[str]
    pacts: frozenset[str]

    @classmethod
    def of(cls, draft: Draft) -> Reversal | None:
        if draft.body.rstrip(_CLOSED).endswith(("?", "？")):
            return None
        if _is_alive(draft):
            whom = named(draft)
            he = whom or draft.lang in UNSPACED or not listed("he").isdisjoint([norm.partition("'")[0] for norm in draft.reading.row.norms])
            return cls(True, whom, frozenset()) if he else None
        if not _is_undone(draft):
            return None
        whom = named(draft)
        pacts = _pacts(draft, undone=True)
        return cls(False, whom, pacts) if pacts or (len(whom) > 1 and _parts(draft)) else None

    def may_be_of(self, names: Collection[str], *, near: bool) -> bool:
        """Whether it may be of what a sentence tells that names these: of nobody it names, only `near` before it."""
        if self.pacts:
            return not (self.whom and names) or not self.whom.isdisjoint(names)
        shared = len(self.whom.intersection(names))
        return near if not self.whom else shared > (0 if self.alive else 1)

    def is_of(self, before: State) -> bool:
        """Whether a sentence tells of the death, the pact or the bond that is taken back."""
        if self.alive:
            return before.death and (not self.whom or not self.whom.isdisjoint(before.dead))
        if before.undone:
            return False
        return not self.pacts.isdisjoint(before.pacts) if self.pacts else before.binds


class State(NamedTuple):
    """What a sentence tells that another may take back: that someone is dead, and who; of which pacts it tells, and that they hold."""

    death: bool
    dead: Collection[str]
    undone: bool
    pacts: frozenset[str]
    binds: bool

    @classmethod
    def of(cls, draft: Draft) -> State:
        death = bool(draft.marks & _DEATH) and not _is_alive(draft)
        binds = bool(draft.marks & _BOUND) or _has(draft, "binds") or _has(draft, "bond")
        return cls(death, _dead(draft) if death else (), _is_undone(draft), _pacts(draft), binds)


def named(draft: Draft) -> frozenset[str]:
    """Whom a sentence names, with the one who says it of themselves."""
    own = [normalise(draft.voice.split()[-1])] if draft.voice.strip() and draft.reading.marks & _FIRST else ()
    return frozenset([*draft.keys, *own])


def _dead(draft: Draft) -> Collection[str]:
    """Who dies in a sentence that tells of a death, as they are compared."""
    dead = {normalise(end.name.split()[-1]) for end in ends(draft) if end.how == "dead"}
    return dead or (named(draft) if len(named(draft)) == 1 else ())


def _has(draft: Draft, group: str) -> bool:
    if draft.lang in UNSPACED:
        return any(word in draft.body for word in words_of(group, draft.lang))
    return bool(_places(draft, group))


def _places(draft: Draft, *groups: str) -> list[int]:
    """Where a sentence has words of some groups."""
    whole, begins = words_and_beginnings(draft.lang, *groups)
    norms = draft.reading.row.norms
    if whole.isdisjoint(norms) and not begins:
        return []
    return [at for at, norm in enumerate(norms) if norm in whole or norm.startswith(begins)]


def _is_alive(draft: Draft) -> bool:
    """Whether a sentence says that someone is alive, or not dead; not how they feel, nor how they live, nor that somebody says so."""
    if draft.outside is not None:
        return False
    if draft.lang in UNSPACED:
        return _has(draft, "alive")
    return any(_lives(draft, at) for at in _places(draft, "alive", "lives", *DYING) if at)


def _lives(draft: Draft, at: int) -> bool:
    """Whether a word says so."""
    lang, words, norms = draft.lang, draft.reading.words, draft.reading.row.norms
    norm, before = norms[at], _clause_before(draft, at)
    ends = _ends_at(words, at) or belongs(norms[at + 1], "lives_on", lang)
    if _is_supposed(draft, at) or (not _ends_at(words, at) and norms[at + 1] in listed("clause")):
        return False
    if any(word.marks & OWNS for word in words[:at]):  # "Dorn's son is alive"
        return False
    if not listed("not").isdisjoint(before):
        return ends and any(map(_is_subject, words[at - len(before) : at])) and any(belongs(norm, group, lang) for group in DYING)
    if not words_of("denial", lang).isdisjoint(before):
        return False
    about = _is_subject(words[at - 1]) or belongs(norms[at - 1], "lives_on", lang)
    if belongs(norm, "alive", lang):
        return about or (norms[at - 1] in listed("helper") and (at < 2 or _is_subject(words[at - 2])))
    return about and belongs(norm, "lives", lang) and ends


def _is_supposed(draft: Draft, at: int) -> bool:
    """Whether what a word says is only thought of, or said by somebody, or over: "if Dorn is alive", "Marta hopes that Dorn is alive"."""
    lang, before = draft.lang, _clause_before(draft, at)
    if not listed("clause").isdisjoint(before) or any(belongs(norm, "doubt", lang) for norm in before):
        return True
    said = draft.reading.row.norms
    return any(belongs(norm, "supposed", lang) for norm in said) or not listed("that").isdisjoint(said[:at])


def _is_subject(word: Word) -> bool:
    """Whether a word may be the one of whom something is said: a name, or "he"."""
    return word.capital or word.marks & PERSON > 0 or (word.marks & _PRONOUN > 0 and word.norm not in listed("whom"))


def _ends_at(words: Sequence[Word], at: int) -> bool:
    """Whether a clause ends with a word."""
    return at + 1 == len(words) or words[at].marks & BREAKS > 0


def _clause_before(draft: Draft, at: int) -> Sequence[str]:
    """The words right before another, from the last comma on."""
    start, marks = at, draft.reading.row.marks
    while start and at - start < _NEGATED and not marks[start - 1] & BREAKS:
        start -= 1
    return draft.reading.row.norms[start:at]


def _is_undone(draft: Draft) -> bool:
    """Whether a sentence says that something is broken, left or at an end."""
    return _has(draft, "undone") if draft.lang in UNSPACED else bool(_undone_at(draft))


def _undone_at(draft: Draft) -> list[int]:
    """Where it says so, and does not deny it."""
    lang, words = draft.lang, draft.reading.words
    whole, begins = words_and_beginnings(lang, "denial")
    return [
        at
        for at in _places(draft, "undone", "finished")
        if words[at].plain[:1].islower()
        and (belongs(words[at].norm, "undone", lang) or _ends_at(words, at))
        and not _is_supposed(draft, at)
        and not any(norm in whole or norm.startswith(begins) for norm in _clause_before(draft, at))
    ]


def _pacts(draft: Draft, *, undone: bool = False) -> frozenset[str]:
    """The pacts that a sentence is about, as they are compared; only those that it says are `undone`."""
    lang, words = draft.lang, draft.reading.words
    if lang in UNSPACED:
        return frozenset([word for word in words_of("pact", lang) if word in draft.body])
    places = _places(draft, "pact")
    if undone and places:
        places = [place for at in _undone_at(draft) for place in places if _is_of_pact(words, at, place, lang)]
    return frozenset([words[place].norm[:_ALIKE] for place in places])


def _is_of_pact(words: Sequence[Word], at: int, place: int, lang: str) -> bool:
    """Whether a "broken" is of a pact that stands at a place: "breaks the old treaty", "the treaty with Drell is broken"."""
    between = words[min(at, place) : max(at, place)]
    if any(word.marks & BREAKS for word in between):
        return False
    if at < place:
        return len(between) <= _NEGATED and listed("preposition").isdisjoint([word.norm for word in between])
    return lang == "ru" or place == at - 1 or words[at - 1].norm in listed("helper")


def _parts(draft: Draft) -> bool:
    """Whether it says that one leaves another: "Kestrel leaves Osric.", in German perhaps with the word behind both."""
    if draft.lang in UNSPACED:
        return True
    words = draft.reading.words
    places = {name.places[0] for name in draft.reading.names if name.places and not words[name.places[-1]].marks & OWNS}
    for at in [at for at in _undone_at(draft) if at]:
        who = words[at - 1]
        does = who.capital or who.norm in listed("he") or who.norm in listed("helper")
        if (does and not places.isdisjoint((at + 1, at + 2))) or (draft.lang == "de" and at - 1 in places):
            return True
    return False
