"""Who is meant: the one with whom a sentence begins, the "he" after it, and who speaks a quotation beside it.

Nobody is named unless it is plain who it is: where two could be meant, or the one who was is dead, it stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from talekeeper.summarize.names import Name, Reading, study
from talekeeper.summarize.sentences import Draft
from talekeeper.summarize.words import BREAKS, MARK, OWNS, PERSON, SAY, STOP, Word, listed

_DEATH, _PRONOUN = MARK["death"], MARK["pronoun"]


def find_tellers(drafts: list[Draft]) -> None:
    """Names whoever speaks a bare quotation: by its tag, or by the sentence before it in the same turn, or the one after. A "he" who says
    something is whoever did something last, if that is plain, and not one of several who answers the last, nor whoever is answered; else
    nobody is named: not the next who does something, either. Of whom it was once "he", it is never "she"."""
    voice, last, hidden, said, gender = "", "", False, "", ""  # said: by whom the last quotation was; gender: the last one's
    about: Draft | None = None  # the sentence that tells what the last one did
    doers: set[str] = set()
    for at, draft in enumerate(drafts):
        if draft.outside == "":
            if draft.reply or not (voice or hidden):
                voice = _teller_behind(drafts, at)
                hidden = draft.reply and not voice
            draft.voice = said = voice
            continue
        he = he_of(draft.outside) if draft.outside else ""
        reading = draft.reading if he else _beside(draft)
        he = he or _pronoun_in_front(reading)
        if he and (draft.outside or he in listed("he")):
            voice = _meant_by(he, about, last) if gender in ("", _gender([he])) and not (draft.reply and len(doers) > 1) else ""
            if voice and draft.outside and _is_another(draft, about, same=voice == said, known=gender != ""):
                voice = ""
            gender = _gender([he]) if voice else gender
            draft.voice, hidden = (voice, not voice) if draft.outside else ("", False)
        elif (doer := _doer(draft, reading)) or draft.outside is None:
            voice, hidden = doer, False
            doers.update([doer] if doer else ())
            if doer or (last and _brings_another(reading)):
                gender = gender if doer == last else _gender(doer.lower().split())
                last, about = doer, draft if doer and draft.outside is None else None
        else:  # a quotation that comes from nobody: "comes the answer"
            voice, hidden = "", True
        said = voice if draft.outside else said


def _teller_behind(drafts: Sequence[Draft], at: int) -> str:
    """Who does something right behind a quotation, before anyone answers it; behind an answer, in the same paragraph."""
    for later in drafts[at + 1 : at + 3]:
        if later.reply or (later.opens and drafts[at].reply):
            break
        if later.outside != "":
            return doer_beside(later)
    return ""


def doer_beside(draft: Draft) -> str:
    """Who does something in a sentence, beside what is quoted in it."""
    return _doer(draft, _beside(draft))


def _beside(draft: Draft) -> Reading:
    """A sentence as it reads without what is quoted in it."""
    return draft.reading if draft.outside is None else study(draft.outside, draft.lang)


def _pronoun_in_front(reading: Reading) -> str:
    """The "he" with whom a sentence begins, or the tag of a quotation: "he says", "flüstert sie"."""
    words = reading.words
    if words and words[0].marks & _PRONOUN:
        return words[0].norm
    return words[1].norm if len(words) > 1 and words[0].marks & SAY and words[1].marks & _PRONOUN else ""


def _meant_by(he: str, about: Draft | None, last: str) -> str:
    """Whom a "he" means after a sentence about someone, by name or "the innkeeper"; where there is none, after what the last one said."""
    if he not in listed("he"):
        return ""
    if about is not None and about.reading.names:
        return meant(about, he)
    return last


def _brings_another(reading: Reading) -> bool:
    """Whether a sentence may bring someone else upon the scene: it names them, and not behind a small word, or it has a "guard"."""
    if reading.marks & PERSON or not listed("somebody").isdisjoint(reading.row.norms):
        return True
    return any(not name.places or not name.places[0] or not reading.words[name.places[0] - 1].marks & STOP for name in reading.names)


def _doer(draft: Draft, reading: Reading) -> str:
    """Who a sentence begins with, as it reads without quotes: someone by name, or "the innkeeper"; where it has quotes, the only name
    beside them, if that is not whom they are spoken to."""
    named = subject_of(draft.body if draft.outside is None else draft.outside, reading) or _somebody(reading)
    if named or draft.outside is None or len(reading.names) != 1:
        return named
    (name,), words = reading.names, reading.words
    before = words[name.places[0] - 1] if name.places and name.places[0] else None
    return "" if before is not None and before.marks & STOP and before.norm not in listed("article") else name.text


def _somebody(reading: Reading) -> str:
    """The nameless one with whom a sentence begins: "The innkeeper", "An old ferryman"."""
    words = reading.words
    if not words or words[0].norm not in listed("article"):
        return ""
    for at, word in enumerate(words[1:4], 1):
        if word.marks & PERSON or word.norm in listed("somebody"):
            who = " ".join([each.plain for each in words[: at + 1]])
            return "" if word.marks & OWNS else who[0].upper() + who[1:]
        if word.marks & (STOP | SAY | OWNS):
            return ""
    return ""


def subject_of(text: str, reading: Reading) -> str:
    """The name with which a sentence begins, or the only one in it that has a title."""
    name = subject_name(text, reading)
    return "" if name is None else name.text


def subject_name(text: str, reading: Reading) -> Name | None:
    names, words = reading.names, reading.words
    if not names:
        return None
    first = names[0]
    if not first.places:  # a script without blanks
        return first if text.startswith(first.text) else None
    leads = first.places[0] == 1 and (words[0].marks & STOP or words[0].norm in listed("epithet"))
    if first.places[0] == 0 or (leads and words[0].norm not in listed("preposition")):
        after = first.places[-1] + 1
        return None if after < len(words) and words[after].norm in listed("and") else first  # of two, it is not plain who is meant
    titled = [name for name in names if (words[name.places[0]].marks | words[name.places[0] - 1].marks) & PERSON]
    return titled[0] if len(titled) == 1 else None


def he_of(tag: str) -> str:
    """The "he" of the tag of a quotation: "he says", "sagt er"; not of an "As he speaks, Voss nods"."""
    first, _, rest = tag.lower().partition(" ")
    second = rest.partition(" ")[0]
    if first in listed("he"):
        return first
    return second.rstrip(",") if (second == rest or second.endswith(",")) and second.rstrip(",") in listed("he") else ""


def _is_another(draft: Draft, about: Draft | None, *, same: bool, known: bool) -> bool:
    """Whether the "she" of a tag may be someone else than who did something last: where that one was quoted right before (`same`), and it
    is an answer, or not `known` who is a "she"; or where it is an answer, and another is named beside that one."""
    if same and (draft.reply or not known):
        return True
    answers = not listed("answer").isdisjoint((draft.outside or "").lower().replace(",", " ").split())
    return answers and (same or (about is not None and len(about.reading.names) > 1))


def meant_for_good(draft: Draft, he: str) -> str:
    """Whom of a sentence a "He" means, if that is plain; after it, no "She" means them."""
    if who := meant(draft, he):
        draft.gender = _gender([he])
    return who


def meant(draft: Draft, he: str) -> str:
    """Whom of a sentence a "He" or "She" after it means, if that is plain and they are alive: nobody else in it may be meant as well."""
    reading, his = draft.reading, _gender([he])
    if draft.gender not in ("", his):
        return ""
    name = None if reading.marks & _DEATH else subject_name(draft.body, reading)
    if name is None or not name.places:
        return name.text if name is not None else ""
    words, first = reading.words, name.places[0]
    own = {first - 1, *name.places}
    gender = _gender([words[at].norm for at in sorted(own) if at >= 0]) or _gender([word.norm for word in words if word.marks & _PRONOUN])
    for at, word in enumerate(words):  # "the Lady of Arn", "his sister", a "him": not "the boy", who is looked at
        if at in own or _gender([word.norm]) != his:
            continue
        if _is_object(words, at) if word.marks & _PRONOUN else word.capital or words[at - 1].marks & _PRONOUN:
            return ""
    if gender:
        return name.text if gender == his else ""
    alone = all(other.places == name.places or words[other.places[0] - 1].marks & STOP for other in reading.names)
    return name.text if first <= 1 and alone else ""


def _is_object(words: Sequence[Word], at: int) -> bool:
    """Whether a pronoun is one of whom something is done: a "him", who is not the one who does it, or a "her" that owns nothing."""
    if words[at].norm not in listed("whom"):
        return False
    return words[at].norm != "her" or at + 1 == len(words) or bool(words[at].marks & BREAKS or words[at + 1].marks & STOP)


def _gender(words: Iterable[str]) -> str:
    """The gender of the first word that has one: a pronoun or a title."""
    for word in words:
        if word in listed("male") or word in listed("lord"):
            return "male"
        if word in listed("female") or word in listed("lady"):
            return "female"
    return ""
