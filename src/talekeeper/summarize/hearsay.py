"""Hearsay: who speaks what a seat quotes in its own turn.

A seat that reads a letter aloud, or tells what the guard said, says none of it for itself. A quotation is its own where it says so
(`I say: "…"`, `"…," says Mira.`), where only what it does itself leads to it, or where nothing stands beside it. It is another's where
they are plainly named as the one who said it. Else it is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from talekeeper.summarize.names import Reading, study
from talekeeper.summarize.quotations import OPENING
from talekeeper.summarize.sentences import Draft
from talekeeper.summarize.somebody import brings_others
from talekeeper.summarize.words import (
    BREAKS,
    MARK,
    OWNS,
    PERSON,
    SAY,
    STOP,
    UNSPACED,
    Pattern,
    Word,
    belongs,
    holds,
    listed,
    normalise,
    words_of,
    words_of_names,
)

_FIRST, _SECOND, _PRONOUN = MARK["first"], MARK["second"], MARK["pronoun"]
_MAY_SAY_I = _FIRST | SAY
_SAYS = _MAY_SAY_I | _SECOND
_APOSTROPHES = ("'", "’")
_LED_IN = Pattern(rf"[,:]\s*[{OPENING}]")
_OMITTED = frozenset({"es", "ru"})
"""Languages in which someone else may speak though no word says who."""
_NEAR = 3
_BACK = 24
"""So many sentences back somebody may have been named who can be "she"."""
_LED = 3
"""So many signs may stand before an "I" with which a sentence of a script without blanks begins."""


class _Party(NamedTuple):
    """Someone in a sentence who may be the one who speaks: the place of the word, and who; "" if nobody can tell."""

    at: int
    who: str
    bare: bool  # whether it is a pronoun


def find_quoted(drafts: Sequence[Draft], own: str) -> None:
    """Marks what a seat quotes of others in its own turn, each quotation with its speaker, if that is plain."""
    if all(draft.outside == "" for draft in drafts):
        return
    speaker, told = own, list[int]()  # told: since the last quotation
    for at, draft in enumerate(drafts):
        if draft.outside is None:
            told.append(at)
            continue
        if draft.outside:
            if not (draft.reading.marks & _SAYS or draft.body[0] in OPENING or draft.lang in UNSPACED or _LED_IN.search(draft.body)):
                continue  # a title, or a word that is only named
            told = [at]
        if told:
            sayers = (_sayer(drafts, one, own) for one in reversed(told))
            plain = next((sayer for sayer in sayers if sayer is not None), None)
            speaker = (own if speaker == own else "") if plain is None else plain
            told = []
        if draft.reply and not draft.outside:
            speaker = ""
        if speaker != own:
            draft.quoted, draft.voice = True, speaker


def _beside(draft: Draft) -> Reading:
    """A sentence as it reads without what is quoted in it."""
    if draft.outside is None and not (draft.lang == "fr" and "-" in draft.body):
        return draft.reading
    text = draft.body if draft.outside is None else draft.outside
    return study(text.replace("-", " ") if draft.lang == "fr" else text, draft.lang)  # "dit-il"


def _sayer(drafts: Sequence[Draft], at: int, own: str) -> str | None:
    """Who speaks what is quoted in a sentence, or right behind it; None where it has nothing to do with anyone."""
    draft = drafts[at]
    reading, beside, lang = _beside(draft), draft.body if draft.outside is None else draft.outside, draft.lang
    if lang in UNSPACED:
        return _unspaced(beside, reading, lang, own)
    words, leads = reading.words, draft.body[0] not in OPENING
    says = [place for place, word in enumerate(words) if word.marks & SAY]
    if any(belongs(word.norm, "nothing", "*") for place in says for word in words[place + 1 : place + 2]):
        return None
    relayed = leads and holds(beside, reading.row.norms, "relay", lang)
    if not says and (relayed or holds(beside, reading.row.norms, "written", lang)):
        return ""
    if not says and words and _pronouns(lang).get(words[0].norm) is False:
        return own  # as a rule
    parties = _parties(reading, lang, own)
    if any(party.bare and not party.who for party in parties) and (
        beside[0] == "*" or _tells_of_itself(drafts[max(0, at - _BACK) : at], own)
    ):
        parties = [party._replace(who=own) if party.bare else party for party in parties]
    if says:
        sayers = {_who_says(words, place, parties, lang, leads) for place in says}
        (sayer,) = sayers if len(sayers) == 1 else ("",)
        return "" if sayer == own and relayed else sayer
    if parties:
        return own if parties[0].who == own else ""
    if reading.marks & _FIRST:
        return own
    return "" if words and words[0].norm in listed("article") else None


def _tells_of_itself(before: Sequence[Draft], own: str) -> bool:
    """Whether a seat has told of itself by name, and of nobody else, by name or as "the merchant": then "she" is the seat."""
    seat = words_of_names([own])
    names = [name for draft in before for name in draft.reading.names]
    if not names or any(seat.isdisjoint(map(normalise, name.text.split())) for name in names):
        return False
    return not any(brings_others(draft, "", seat) for draft in before if draft.outside is None)


def _parties(reading: Reading, lang: str, own: str) -> list[_Party]:
    """Who is in a sentence and may speak there: not those to whom something is said."""
    words, seat, pronouns = reading.words, words_of_names([own]), _pronouns(lang)
    names = {name.places[0]: name for name in reading.names if name.places}
    inside = {at for name in names.values() for at in name.places}
    found: list[_Party] = []
    for at, word in enumerate(words):
        norm, marks = word.norm, word.marks
        if at in names:
            itself = not seat.isdisjoint([words[place].norm for place in names[at].places])
            owns = words[names[at].places[-1]].marks & OWNS
            found += [_Party(at, own if itself else names[at].text, False)] if not (owns or _is_spoken_to(words, at)) else []
        elif at in inside:
            continue
        elif norm in pronouns or (marks & _MAY_SAY_I and _says_i(word, lang)):
            found.append(_Party(at, "" if pronouns.get(norm) else own, True))
        elif norm in seat and not marks & STOP:
            found.append(_Party(at, own, False))
        elif (marks & PERSON or norm in listed("somebody")) and not (marks & OWNS or _is_spoken_to(words, at)):
            found += [_Party(at, _nameless(words, at), False)] if word.plain[1:2] not in _APOSTROPHES else []  # no "m'" for "Monsieur"
    return found


@cache
def _pronouns(lang: str) -> dict[str, bool]:
    """The words for "I", and those for someone else."""
    return dict.fromkeys(listed("one_who"), True) | dict.fromkeys(words_of("ego", lang), False)


def _says_i(word: Word, lang: str) -> bool:
    """Whether a word has an "I" in it, or a verb has none because it says so itself."""
    if lang == "fr":
        return word.plain[:1] in "jJ" and word.plain[1:2] in _APOSTROPHES
    return lang == "ru" and word.marks & SAY > 0 and word.plain.lower().endswith(("ю", "у"))


def _is_spoken_to(words: Sequence[Word], at: int) -> bool:
    """Whether "to", "with" or the like stands before a name, a person, or the small word before them."""
    before = [word.norm for word in words[max(0, at - 2) : at] if not word.marks & BREAKS]
    if before and before[-1] in listed("preposition"):
        return True
    return len(before) > 1 and before[-2] in listed("preposition") and words[at - 1].marks & (STOP | _FIRST | _PRONOUN) > 0


def _nameless(words: Sequence[Word], at: int) -> str:
    """ "The guard", if no more than that is said of them."""
    if not at or words[at - 1].norm not in listed("article"):
        return ""
    who = f"{words[at - 1].plain} {words[at].plain}"
    return who[0].upper() + who[1:]


def _who_says(words: Sequence[Word], at: int, parties: Sequence[_Party], lang: str, leads: bool) -> str | None:
    """Who does what a word of saying tells: "dit il", the nearest before it, the first of the sentence, "said Osric". Whom an "I" hears or
    makes say it is not plain. `leads`: the quotation comes behind it."""
    around = {party.at: party for party in parties}
    if at in around and around[at].who:
        return around[at].who
    if at + 1 in around and around[at + 1].bare:
        return around[at + 1].who
    before = [party for party in parties if party.at < at]
    near = [party for party in before if not any(word.marks & BREAKS for word in words[party.at : at])]
    if near:
        several = len({party.who for party in near}) > 1
        if several and words[at - 1].norm in listed("and"):
            return near[0].who
        return "" if several and near[-1].bare is False and near[0].bare else near[-1].who
    if before:
        return before[0].who
    behind = [party.who for party in parties if at < party.at <= at + _NEAR]
    if behind and not (leads and lang == "en"):  # "Tells Osric: …" is told of oneself
        return behind[0]
    alone = at < 2 and lang not in _OMITTED and words[0].norm not in listed("article")
    return None if alone else ""


def _unspaced(beside: str, reading: Reading, lang: str, own: str) -> str | None:
    """The same in Chinese and Japanese: who comes first, and by what stands around an "I" whether it does or suffers it."""
    said = [at for word in words_of("say", lang) if (at := beside.find(word)) >= 0]
    relayed = any(word in beside for group in ("relay", "written") for word in words_of(group, lang))
    ego = min([at for word in {*words_of("ego", lang), *([own] if own else [])} if (at := _does(beside, word, lang)) >= 0], default=-1)
    others = {name.text: beside.find(name.text) for name in reading.names if name.text not in own}
    people = [at for word in words_of("person", lang) | words_of("pronoun", lang) if (at := beside.find(word)) >= 0 and word not in own]
    first = min([*people, *[at for at in others.values() if at >= 0]], default=-1)
    if relayed:
        return ""
    if ego >= 0 and (first < 0 or ego < first):
        return own
    if said:
        leading = [name for name, at in others.items() if at == 0 and at == first]
        return leading[0] if leading else "" if first >= 0 or min(said) > _LED else None
    return "" if first >= 0 else None


def _does(text: str, who: str, lang: str) -> int:
    """Where an "I" or a name does something: it begins the text, or has the particle for that. -1 if nowhere."""
    at = text.find(who)
    if at < 0 or (lang == "ja" and text[at + len(who) : at + len(who) + 1] not in ("は", "が", "も")):
        return -1
    objects = text[max(0, at - 1) : at]
    return -1 if lang == "zh" and (at > _LED or (objects and objects in "对對诉跟给向和让叫问")) else at
