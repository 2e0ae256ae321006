"""Who is meant: the one with whom a sentence begins, the "he" after it, and who speaks a quotation beside it.

Nobody is named unless it is plain who it is: where two could be meant, or the one who was is dead, it stays open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from talekeeper.summarize.names import Name, Reading, study
from talekeeper.summarize.quotations import OPENING
from talekeeper.summarize.sentences import Draft
from talekeeper.summarize.somebody import FAR, NO_CAST, Cast, brings_a_stranger, brings_others, gender_of, is_somebody, known_by
from talekeeper.summarize.words import (
    BREAKS,
    MARK,
    OWNS,
    PERSON,
    SAY,
    STOP,
    TIME,
    UNSPACED,
    Word,
    belongs,
    listed,
    words_of,
    words_of_names,
)

_DEATH, _PRONOUN = MARK["death"], MARK["pronoun"]
_WHEN = TIME | MARK["starter"]
_OF_SEVERAL = tuple("们們ら達た")
_AND = tuple("和与與跟とや")
_FRONT = 5
"""Among so many words at the front of a sentence a "he" is looked for."""


def find_tellers(drafts: list[Draft], speakers: Collection[str] = ()) -> None:
    """Names whoever speaks a bare quotation: by its tag, or by the sentence before it in the same turn, or the one after. A "he" who says
    something is whoever did something last, if the turn has told of nobody else who may be meant, and not one of several who answers the
    last, nor whoever is answered; else nobody is named: not the next who does something, either. Of whom it was once "he", it is never
    "she". `speakers`: the words of the names of those who speak in the story."""
    cast = Cast(drafts, speakers)
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
            voice = (
                _meant_by(he, about, last, drafts[:at], cast)
                if gender in ("", gender_of([he])) and not (draft.reply and len(doers) > 1)
                else ""
            )
            if voice and draft.outside and _is_another(draft, about, same=voice == said, known=gender != ""):
                voice = ""
            if voice == said and not (draft.outside or gender) and len(doers) > 1:
                voice = ""
            gender = gender_of([he]) if voice else gender
            draft.voice, hidden = voice if draft.outside else "", not voice
        elif (doer := _doer(draft, reading)) or draft.outside is None:
            voice, hidden = (doer, False) if draft.outside else _whose_beat(doer, draft, drafts[:at], cast)
            doers.update([doer] if doer else ())
            if doer or (last and _brings_another(reading)):
                gender = gender if doer == last else gender_of(doer.lower().split())
                last, about = doer, draft if doer and draft.outside is None else None
        else:  # a quotation that comes from nobody: "comes the answer"
            voice, hidden = "", True
        said = voice if draft.outside else said


def _whose_beat(doer: str, draft: Draft, before: Sequence[Draft], cast: Cast) -> tuple[str, bool]:
    """Who speaks a bare quotation behind a sentence in which someone does something, and whether that stays hidden: where the name may be
    that of a place or a thing, where another does something right before, who is not quoted, or where it is "someone" who does it."""
    name = subject_name(draft.body, draft.reading)
    if not doer:
        return "", draft.lang not in UNSPACED and brings_a_stranger(draft.reading.words, (), draft.lang)
    if name is not None and not is_somebody(name, draft, cast):
        return "", True
    known, opens = words_of_names([doer]) if draft.lang not in UNSPACED else {doer}, draft.opens
    for other in reversed(before[-FAR:]):
        if opens or other.outside is not None:
            break
        if _has_another_doer(other, "", known):
            return "", True
        opens = other.opens
    return doer, False


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


def _meant_by(he: str, about: Draft | None, last: str, told: Sequence[Draft], cast: Cast) -> str:
    """Whom a "he" means after a sentence about someone, by name or "the innkeeper"; where there is none, after what the last one said.
    Nobody, where anyone else may be meant of whom the turn has `told`, beside what is quoted in it."""
    if he not in listed("he") or not last:
        return ""
    if about is not None and about.reading.names:
        who = meant(about, he, cast, turned=True)
    else:
        gender = gender_of(last.lower().split())
        who = last if gender in ("", gender_of([he])) else ""
    return "" if not who or _tells_of_another(told, who, he) else who


def _tells_of_another(told: Sequence[Draft], who: str, he: str) -> bool:
    """Whether sentences before a "he", beside what is quoted in them, have anyone but `who` who may be meant."""
    gender, known = gender_of([he]), words_of_names([who]) - listed("article")
    for draft in told[-FAR:]:
        if draft.outside == "":
            continue
        beside = draft if draft.outside is None else Draft(draft.outside, draft.lang, reading=_beside(draft))
        if brings_others(beside, gender, known, goes_on=True):
            return True
    return False


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


def meant_for_good(draft: Draft, he: str, cast: Cast, told: Iterable[Draft] = ()) -> str:
    """Whom of a sentence a "He" means, if that is plain and nobody else may be meant of whom is `told` around it; after it, no "She" means
    them."""
    if not (who := meant(draft, he, cast)) or _tells_of_others(told, draft, he):
        return ""
    draft.gender = gender_of([he])
    return who


def means_one(draft: Draft, cast: Cast, told: Iterable[Draft] = ()) -> str:
    """Whom of a sentence nobody could take for anyone else, whoever was ever a "he": who does what it tells, where it is somebody, and
    none of whom is `told` around it."""
    name = subject_name(draft.body, draft.reading)
    if name is None or not is_somebody(name, draft, cast) or brings_others(draft, "", known_by(name)):
        return ""
    return "" if _tells_of_others(told, draft, "") else name.text


def _tells_of_others(told: Iterable[Draft], about: Draft, he: str) -> bool:
    """Whether some sentences have anyone else who may be meant: in an earlier turn, only whoever does something there."""
    gender, name = gender_of([he]), subject_name(about.body, about.reading)
    known = known_by(name) if name is not None else frozenset[str]()
    for draft in told:
        if draft is about:
            continue
        if _has_another_doer(draft, gender, known) if draft.stretch < about.stretch else brings_others(draft, gender, known):
            return True
    return False


def reach(drafts: Sequence[Draft], at: int, he: str) -> int:
    """So many sentences before a "he" tell of two who may be meant, in the same turn and behind what anyone has said there: without the
    first of these, he would be taken for the second. If they do not, the one before it."""
    found, gender = 0, gender_of([he])
    for back in range(at - 1, max(-1, at - 1 - FAR), -1):
        draft = drafts[back]
        if draft.stretch != drafts[at].stretch or draft.outside == "" or draft.voice:
            break
        if brings_others(draft, gender):
            name = subject_name(draft.body, draft.reading)
            found += 2 if name is not None and brings_others(draft, gender, known_by(name)) else 1
            if found > 1:
                return at - back
    return 1


def _has_another_doer(draft: Draft, gender: str, known: Set[str]) -> bool:
    """Whether someone else does or says something in a sentence who may be meant by a pronoun of this gender."""
    who = draft.voice or doer_beside(draft)
    own = words_of_names([who]) if draft.lang not in UNSPACED else {who}
    if who and known.isdisjoint(own):
        return not gender or gender_of(own) in ("", gender)
    return (
        draft.outside is None and draft.lang not in UNSPACED and brings_a_stranger(draft.reading.words, {0, 1} if who else (), draft.lang)
    )


def meant(draft: Draft, he: str, cast: Cast = NO_CAST, *, turned: bool = False) -> str:
    """Whom of a sentence a "He" or "She" after it means, if that is plain and they are somebody, and alive: nobody else in it may be meant,
    however little is said of them.

    `turned`: nor whom someone turns to, as they may be the one who speaks next."""
    reading, his = draft.reading, gender_of([he])
    if draft.gender not in ("", his):
        return ""
    name = None if reading.marks & _DEATH else subject_name(draft.body, reading)
    if name is None or brings_others(draft, his, known_by(name)) or not is_somebody(name, draft, cast):
        return ""
    if not name.places:
        return name.text
    words, first = reading.words, name.places[0]
    own = {first - 1, *name.places}
    gender = gender_of([words[at].norm for at in sorted(own) if at >= 0]) or gender_of(
        [word.norm for word in words if word.marks & _PRONOUN]
    )
    if any(word.marks & _PRONOUN and gender_of([word.norm]) == his and _is_object(words, at) for at, word in enumerate(words)):
        return ""
    if gender:
        return name.text if gender == his else ""
    return name.text if first <= 1 and not (turned and _turns_to_someone(reading, name)) else ""


def _turns_to_someone(reading: Reading, name: Name) -> bool:
    others = (other for other in reading.names if other.places != name.places)
    return any(reading.words[other.places[0] - 1].norm in listed("toward") for other in others)


def _is_object(words: Sequence[Word], at: int) -> bool:
    """Whether a pronoun is one of whom something is done: a "him", who is not the one who does it, or a "her" that owns nothing."""
    if words[at].norm not in listed("whom"):
        return False
    return words[at].norm != "her" or at + 1 == len(words) or bool(words[at].marks & BREAKS or words[at + 1].marks & STOP)
