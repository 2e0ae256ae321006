"""Who is meant: the one with whom a sentence begins, the "he" after it, and who speaks a quotation beside it.

Nobody is named unless it is plain who it is: where two could be meant, or the one who was is dead, it stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from talekeeper.summarize.names import Name, Reading, study
from talekeeper.summarize.quotations import OPENING
from talekeeper.summarize.sentences import Draft
from talekeeper.summarize.words import BREAKS, MARK, OWNS, PERSON, PLACE, SAY, STOP, THING, TIME, UNSPACED, Word, belongs, listed, words_of

_DEATH, _PRONOUN = MARK["death"], MARK["pronoun"]
_WHEN = TIME | MARK["starter"]
_NOBODY = PLACE | THING | TIME
_OF_SEVERAL = tuple("们們ら達た")
_AND = tuple("和与與跟とや")
_FRONT = 5
"""Among so many words at the front of a sentence a "he" is looked for."""


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
            if voice == said and not (draft.outside or gender) and len(doers) > 1:
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
        return meant(about, he, turned=True)
    return last


def _brings_another(reading: Reading) -> bool:
    """Whether a sentence may bring someone else upon the scene: it names them, and not behind a small word, or it has a "guard"."""
    if reading.marks & PERSON or not listed("somebody").isdisjoint(reading.row.norms):
        return True
    return any(not name.places or not name.places[0] or not reading.words[name.places[0] - 1].marks & STOP for name in reading.names)


def _doer(draft: Draft, reading: Reading) -> str:
    """Who a sentence begins with, as it reads without quotes: someone by name, or "the innkeeper"; where it has quotes, the only name
    beside them, if that is not whom they are spoken to; and the one right before the word with which it comes to them."""
    if draft.outside and reading.names and (says := _who_says(draft, reading)) is not None:
        return says
    named = subject_of(draft.body if draft.outside is None else draft.outside, reading) or _somebody(reading)
    if named or draft.outside is None or len(reading.names) != 1:
        return named
    (name,), words = reading.names, reading.words
    before = words[name.places[0] - 1] if name.places and name.places[0] else None
    return "" if before is not None and before.marks & STOP and before.norm not in listed("article") else name.text


def _who_says(draft: Draft, reading: Reading) -> str | None:
    """Who stands right before the "mutters" that leads to a quotation: Finn of "Voss glares until Finn mutters:", nobody for sure of "Voss
    glares at Finn until he mutters:"; None where neither a name nor a "he" does."""
    words = reading.words
    if len(words) < 2 or not words[-1].marks & SAY or draft.body[0] in OPENING:
        return None
    who = next((name.text for name in reading.names if name.places and name.places[-1] == len(words) - 2), None)
    several = len(reading.names) > 1 or _somebody(reading) != ""
    return "" if who is None and several and words[-2].norm in listed("one_who") else who


def _somebody(reading: Reading) -> str:
    """The nameless one with whom a sentence begins: "The innkeeper", "An old ferryman"."""
    words = reading.words
    if not words or words[0].norm not in listed("article"):
        return ""
    for at, word in enumerate(words[1:4], 1):
        if word.marks & PERSON or word.norm in listed("somebody"):
            if at + 1 < len(words) and words[at + 1].marks & PERSON and not word.marks & (BREAKS | OWNS):
                continue  # "the guard captain"
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
        return first if text.startswith(first.text) and text[len(first.text) : len(first.text) + 1] not in _AND else None
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


def in_front(wanted: frozenset[str], text: str, reading: Reading, lang: str) -> tuple[int, str] | None:
    """The pronoun of those `wanted` that does what a sentence tells, and where it stands: first, or behind a "then" or "at dawn"."""
    if lang in UNSPACED:
        start = max([len(word) for word in words_of("then", lang) if text.startswith(word)], default=0)
        start += text[start : start + 1] in ("，", "、")
        he = next((word.norm for word in reading.words if word.norm in wanted and text.startswith(word.norm, start)), "")
        return (start, he) if he and text[start + len(he) : start + len(he) + 1] not in _OF_SEVERAL else None
    if wanted.isdisjoint(reading.row.norms[:_FRONT]):  # as a rule
        return None
    start, words = 0, reading.words
    for at, word in enumerate(words[:_FRONT]):
        start = text.find(word.plain, start)
        if word.norm in wanted:
            return start, word.norm
        inverted = lang == "de" and at > 0 and at + 1 < len(words) and words[at + 1].norm in wanted  # "Dann schwört er"
        if not (inverted or _leads_on(word)):
            return None
        start += len(word.plain)
    return None


def _leads_on(word: Word) -> bool:
    """Whether a word only leads on to whoever does something: "then", "at", "the", "dawn"."""
    norm = word.norm
    if norm in listed("clause"):  # "As he speaks, Voss nods"
        return False
    return belongs(norm, "then", "*") or word.marks & _WHEN > 0 or norm in listed("preposition") or norm in listed("article")


def _is_another(draft: Draft, about: Draft | None, *, same: bool, known: bool) -> bool:
    """Whether the "she" of a tag may be someone else than who did something last: where that one was quoted right before (`same`), and it
    is an answer, or not `known` who is a "she"; or where it is an answer, and another is named beside that one."""
    if same and (draft.reply or not known):
        return True
    answers = not listed("answer").isdisjoint((draft.outside or "").lower().replace(",", " ").split())
    return answers and (same or (about is not None and len(about.reading.names) > 1))


def meant_for_good(draft: Draft, he: str, told: Iterable[Draft] = ()) -> str:
    """Whom of a sentence a "He" means, if that is plain and nobody else may be meant of whom is `told` around it; after it, no "She" means
    them."""
    if (who := meant(draft, he)) and not _tells_of_others(told, draft, he):
        draft.gender = _gender([he])
    return who


def _tells_of_others(told: Iterable[Draft], about: Draft, he: str) -> bool:
    """Whether some sentences have anyone else who may be meant."""
    gender, name = _gender([he]), subject_name(about.body, about.reading)
    known = {about.reading.words[at].norm for at in name.places} if name is not None else set[str]()
    for draft in told:
        if draft is about:
            continue
        names = draft.reading.names
        if about.lang in UNSPACED:
            if any(name is None or each.text != name.text for each in names):
                return True
            continue
        itself = next((each for each in names if not known.isdisjoint([draft.reading.words[at].norm for at in each.places])), None)
        if brings_others(draft, gender, but=itself):
            return True
    return False


def meant(draft: Draft, he: str, *, turned: bool = False) -> str:
    """Whom of a sentence a "He" or "She" after it means, if that is plain and they are alive: nobody else in it may be meant, however
    little is said of them.

    `turned`: nor whom someone turns to, as they may be the one who speaks next."""
    reading, his = draft.reading, _gender([he])
    if draft.gender not in ("", his):
        return ""
    name = None if reading.marks & _DEATH else subject_name(draft.body, reading)
    if name is None or brings_others(draft, his, but=name):
        return ""
    if not name.places:
        return name.text
    words, first = reading.words, name.places[0]
    own = {first - 1, *name.places}
    gender = _gender([words[at].norm for at in sorted(own) if at >= 0]) or _gender([word.norm for word in words if word.marks & _PRONOUN])
    if any(word.marks & _PRONOUN and _gender([word.norm]) == his and _is_object(words, at) for at, word in enumerate(words)):
        return ""
    if gender:
        return name.text if gender == his else ""
    return name.text if first <= 1 and not (turned and _turns_to_someone(reading, name)) else ""


def _turns_to_someone(reading: Reading, name: Name) -> bool:
    others = (other for other in reading.names if other.places != name.places)
    return any(reading.words[other.places[0] - 1].norm in listed("toward") for other in others)


def brings_others(draft: Draft, gender: str, *, but: Name | None = None) -> bool:
    """Whether a sentence has anyone who may be meant by a pronoun of this gender: a name that is no place or thing, or "a son", beside
    the one it is about (`but`). Whoever is known to be of another gender, is not meant."""
    reading, lang = draft.reading, draft.lang
    if lang in UNSPACED:
        return _brings_others_unspaced(draft, but)
    words, own = reading.words, set[int]()
    if but is not None:
        known = {words[at].norm for at in but.places}
        own = {but.places[0] - 1, *but.places}
    for name in reading.names:
        places = {*range(max(0, name.places[0] - 1), name.places[-1] + 1)}
        if but is not None and not known.isdisjoint([words[at].norm for at in name.places]):
            own |= places
        elif _may_be_meant(words, name, gender):
            return True
        else:
            own |= places
    return any(_is_someone(word, lang) and _gender([word.norm]) in ("", gender) for at, word in enumerate(words) if at not in own)


def _may_be_meant(words: Sequence[Word], name: Name, gender: str) -> bool:
    """Whether a name may be that of someone who is a "he": it is no place, thing or time, and has no title of another gender."""
    first, last = words[name.places[0]], words[name.places[-1]]
    before = words[name.places[0] - 1] if name.places[0] else None
    known = _gender([each.norm for each in (before, first, last) if each is not None and not each.marks & _PRONOUN])
    if known:
        return known == gender
    if (first.marks | (before.marks if before else 0)) & PERSON:
        return True
    if last.marks & _NOBODY or last.norm in listed("site"):
        return False
    if before is None or before.norm in listed("toward"):
        return True
    if before.norm in listed("within") or before.norm in listed("article"):
        return False
    return not (before.norm in listed("of") and name.places[0] > 1 and words[name.places[0] - 2].marks & PLACE)  # "the mill of Harrow"


def _is_someone(word: Word, lang: str) -> bool:
    """Whether a word is a noun for one person: "a son", "the guard"."""
    norm = word.norm
    if not (word.marks & PERSON or norm in listed("somebody") or norm in listed("lord") or norm in listed("lady")):
        return belongs(norm, "kin", lang) and not (lang == "en" and norm[-1:] == "s")
    return not (lang == "en" and norm[-1:] == "s" and norm[-2:] != "ss")


def _brings_others_unspaced(draft: Draft, but: Name | None) -> bool:
    """The same in Chinese and Japanese, where a title stands right beside its name."""
    names, body = {name.text for name in draft.reading.names}, draft.body
    if names - {but.text if but else ""}:
        return True
    titles = {word.norm for word in draft.reading.words if word.marks & PERSON}
    beside = (but is not None and (f"{but.text}{title}" in body or f"{title}{but.text}" in body or title in but.text) for title in titles)
    return not all(beside)


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
