"""What a sentence claims, and of whom: that someone is or can do something, how two stand to each other, that something befell someone.

Rules of form over the words of a sentence, for sentences that say it plainly: "I am afraid of deep water" of the one who says it,
"Captain Nan, queen of the Rookery" of her, "Elena betrays us" of Elena and us. A question, a condition or a denial claims nothing.
English has the most rules. Where a language has none, or a rule might be wrong, nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from talekeeper.model import Turn
from talekeeper.summarize.names import Name
from talekeeper.summarize.quotations import clip
from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.words import BREAKS, CONTENT, CUES, MARK, OWNS, STOP, Pattern, belongs, listed, words_and_beginnings

YOU = "@"
"""Begins the owner of a claim about whoever is spoken to, where few hear it; the ids of these follow."""
US = "us"
LONGEST = 60
"""Tokens that a claim's text may have."""
_FEW = 3
_EVENTS = reduce(or_, (MARK[cue] for cue in CUES if cue != "travel"))
_WEIGHTY, _WEIGHTIER = 4.5, 6.0
_FIRST, _SECOND, _PRONOUN = MARK["first"], MARK["second"], MARK["pronoun"]
_MOVES = frozenset({"enter", "leave", "session"})


class Claim(NamedTuple):
    """What is claimed: the kind, of whom, the sentence and its telling words; of a relationship also with whom, and in what way."""

    kind: str
    owner: str
    text: str
    weight: float
    gist: str
    about: str = ""
    way: str = ""


def claims(drafts: Sequence[Draft], turns: Sequence[Turn]) -> Iterator[tuple[Claim, Turn]]:
    """What the sentences of some turns claim, each with its turn. They were judged together."""
    for before, draft in zip([None, *drafts], drafts, strict=False):
        doubtful = draft.who and before is not None and len(before.reading.names) > 1  # which of them is "she"?
        if draft.rank == PLAIN and not is_question(draft) and not doubtful:
            yield from ((claim, turns[draft.stretch]) for claim in _claims(draft, turns[draft.stretch]))


def _claims(draft: Draft, turn: Turn) -> Iterator[Claim]:
    """A relationship, a trait or an event. All that a note says of someone is lasting."""
    owner = doer(draft, turn)
    gist = " ".join(sorted({word.norm for word in draft.reading.words if word.marks & CONTENT}) or [draft.body])
    text = clip(draft.text, LONGEST)
    if bond := _bond(draft, turn, owner):
        one, other, way = bond
        yield Claim("relationship", one, text, draft.worth, gist, other, way)
        return
    described = owner if turn.kind == "note" and not draft.who else _described(draft, turn, owner)
    if described:
        yield Claim("trait", described, text, draft.worth, gist)
    elif owner and turn.kind not in _MOVES and _befalls(draft, owner):
        yield Claim("event", owner, text, draft.worth, gist)


def _befalls(draft: Draft, owner: str) -> bool:
    """Whether a sentence tells of something that matters, and does not deny it. To have given or taken must matter more."""
    weighty = draft.worth >= (_WEIGHTY if draft.marks & _EVENTS & ~MARK["gain"] else _WEIGHTIER)
    if not weighty or not draft.marks & _EVENTS or owner.startswith(YOU):
        return False
    words = draft.reading.words
    cues = [at for at, word in enumerate(words) if word.marks & _EVENTS] or [0]
    return not all(is_denied(draft, at) or at >= draft.clear for at in cues)


def is_denied(draft: Draft, at: int, *, near: int = 4) -> bool:
    """Whether what a word says is denied, or only thought of: "would", "if" or "not" stands right before it."""
    whole, begins = words_and_beginnings(draft.lang, "doubt", "denial")
    norms = draft.reading.row.norms[max(0, at - near) : at]
    return not whole.isdisjoint(norms) or True in [norm.startswith(begins) for norm in norms]


def is_question(draft: Draft) -> bool:
    """Whether a sentence asks."""
    return draft.body.rstrip("\"'”’»」』) ").endswith(("?", "？"))


def speaker_of(draft: Draft, turn: Turn) -> str:
    """Who says a sentence; "" where it is narrated, or a seat quotes it and it is not plain of whom."""
    if draft.voice or draft.quoted:
        return draft.voice
    spoken = turn.kind in ("said", "whisper", "thought") and turn.voice.casefold() not in listed("narrator")
    return turn.voice if spoken else ""


def doer(draft: Draft, turn: Turn) -> str:
    """Who does what a sentence tells: the one it begins with, else who speaks of themselves, else the few who are spoken to; or ""."""
    leading = _leading(draft)
    if leading:
        return leading
    speaker = speaker_of(draft, turn)
    if speaker:
        return speaker if any(belongs(word.norm, "ego", draft.lang) for word in draft.reading.words) else ""
    words = draft.reading.words
    if words and words[0].marks & _SECOND and len(turn.audience) <= _FEW:
        return YOU + ",".join(turn.audience)
    return ""


def _leading(draft: Draft) -> str:
    """The name with which a sentence begins, or the one that was found for its "He". Who is called upon does nothing yet."""
    if draft.who:
        return draft.who
    first = draft.reading.names[0] if draft.reading.names else None
    if first is None:
        return ""
    if not first.places:  # a script without blanks
        return first.text if draft.body.startswith(first.text) else ""
    words = draft.reading.words
    begins = first.places[0] == 0 or (first.places[0] == 1 and words[0].marks & STOP)
    return first.text if begins and not words[first.places[-1]].marks & OWNS and not _is_called(draft, first) else ""


def _called(draft: Draft) -> str:
    """Who is addressed by name, if it is one."""
    called = [name.text for name in draft.reading.names if name.places and _is_called(draft, name)]
    return called[0] if len(called) == 1 else ""


def _is_called(draft: Draft, name: Name) -> bool:
    """Whether someone is addressed by a name: it stands by itself within what is said."""
    words = draft.reading.words
    before, after = name.places[0] - 1, name.places[-1]
    return (
        (draft.voice != "" or draft.outside is not None)
        and (before < 0 or words[before].marks & BREAKS > 0)
        and words[after].marks & BREAKS > 0
    )


# -- traits --------------------------------------------------------------------------------------------------------------

_LEAD = r"(?:.*[,;] )?(?:and |but |because |well, |no, |yes, |und |aber |et |mais |y |pero |и |но )?"
_BEING = (
    r"(?:(?:still|also|really|just|only|quite|very) )*(?:an?|the|no|not an?|one of|(?:afraid|fond) of(?! (?:him|her|it|them|you|this)\b)|"
    r"allergic|called|born|from|known|famous|wanted|blind|deaf|lame|mute|heir|sworn|as \w+ as|[\w-]+ years old)\b"
    r"(?! (?:first|last|only|next|moment|little|bit|few|one who))"
)
_DOING = (
    r"(?:can(?:'t|not)? (?:swim|read|write|sing|fight|ride|climb|cook|heal|sail|shoot|speak|dance|fly|row|dive|see in the dark)|"
    r"always|never|hates?|fears?|limps|grew up|(?:was|were) (?:born|raised)|used to|comes? from|came from|owns?|collects?|believes? in)\b"
)
_HAVING = (
    r"ha(?:s|ve|d) (?:an?|no|one|two|three|the) (?:[\w-]+ )?(?:eyes?|scars?|limp|beard|voice|temper|gift|daughters?|sons?|sisters?|"
    r"brothers?|wife|husband|hands?|twin)\b"
)
_SELF = {
    "en": rf"my name is |i(?:'m| am) {_BEING}|i {_DOING}|i {_HAVING}|i have (?:always|never|been an?|served|sailed|cast|fought|rung)\b",
    "de": r"ich bin (?:ein|eine|der|die|das|kein|keine)\b|ich heiße |mein name ist |ich habe angst vor |ich kann nicht (?:schwimmen|lesen)",
    "fr": r"je suis (?:une?|le|la|l')\b|je m'appelle |mon nom est |j'ai peur d|je ne sais pas (?:nager|lire)",
    "es": r"(?:yo )?soy (?:una?|el|la)\b|me llamo |mi nombre es |tengo miedo (?:a|de)|no sé (?:nadar|leer)",
    "ru": r"меня зовут |я боюсь |я (?:всегда|никогда) |я не умею ",
}
_OTHER = {
    "en": rf"(?:is|was|are|were) {_BEING}|{_DOING}|{_HAVING}|, who (?:keeps|has|was|is|once|used|owns|serves|never|always)\b"
    r"|, (?:once|formerly|queen|king|keeper|captain|master|mistress|an?|the) ",
    "de": r"(?:ist|war) (?:ein|eine|der|die|das|kein|keine)\b|hat (?:keine )?angst vor",
    "fr": r"(?:est|était) (?:une?|le|la|l')\b|a peur d",
    "es": r"(?:es|era) (?:una?|el|la)\b|tiene miedo",
}
_SPOKEN_TO = Pattern(rf"you (?:are|were) {_BEING}|you {_DOING}|you {_HAVING}")
_SHOWN = Pattern(r"(?:(?:this|that|here|it) (?:is|was)|das ist|dies ist|c'est|voici|est[ae] es|es[ae] es) (?:the )?")
_OF = Pattern(r" of (?:the )?[\w' -]+(?=,)")
_PATTERNS = {
    "self": {lang: Pattern(f"{_LEAD}(?:{pattern})") for lang, pattern in _SELF.items()},
    "other": {lang: Pattern(f"(?:{pattern})") for lang, pattern in _OTHER.items()},
}


def _described(draft: Draft, turn: Turn, owner: str) -> str:
    """Whom a sentence describes, if that is what it does."""
    said = draft.body.strip("\"'“”„«»* ").replace("’", "'").lower()
    itself, other = (_PATTERNS[of].get(draft.lang) for of in ("self", "other"))
    speaker = speaker_of(draft, turn)
    if speaker and itself is not None and itself.match(said):
        return speaker
    if owner.startswith(YOU):
        return owner if _SPOKEN_TO.match(said) else ""
    shown = _SHOWN.match(said)
    name = draft.reading.names[0].text if draft.reading.names else ""
    if other is None or not name or not (owner == name or (shown and said.startswith(name.lower(), shown.end()))):
        return owner if owner and other is not None and draft.text.startswith("[") and other.match(said.partition(" ")[2]) else ""
    rest = said[said.find(name.lower()) + len(name) :]
    place = _OF.match(rest)
    return name if other.match(rest[place.end() if place else 0 :].lstrip()) else ""


# -- relationships ---------------------------------------------------------------------------------------------------------

_WAYS = ("debt", "bond", "kin")
_ALL_OF_US = frozenset({"us", "uns", "nous", "nos", "nosotros", "нас", "нам"})


def _bond(draft: Draft, turn: Turn, owner: str) -> tuple[str, str, str] | None:
    """Who stands to whom, and in what way: the first such pair, if there is one."""
    speaker, inside = speaker_of(draft, turn), {at for name in draft.reading.names for at in name.places}
    for at, word in enumerate(draft.reading.words):
        way = next((way for way in _WAYS if belongs(word.norm, way, draft.lang)), "")
        if way and at not in inside and at < draft.clear:
            one, other = _kin(draft, at, speaker, owner) if way == "kin" else _pair(draft, at, speaker, owner)
            if one and other and one != other:
                return one, other, way
    return None


def _kin(draft: Draft, at: int, speaker: str, owner: str) -> tuple[str, str]:
    """ "My sister Lisbet", of the one who says it; "Vale is Corin's brother", of Vale."""
    words = draft.reading.words
    after = _name_at(draft, at + 1)
    if after and not words[at].marks & BREAKS and at and belongs(words[at - 1].norm, "mine", draft.lang):
        return speaker, after
    before = next((name.text for name in draft.reading.names if at and name.places and name.places[-1] == at - 1), "")
    return (owner, before) if before and words[at - 1].marks & OWNS and not owner.startswith(YOU) else ("", "")


def _name_at(draft: Draft, place: int) -> str:
    return next((name.text for name in draft.reading.names if name.places and name.places[0] == place), "")


def _pair(draft: Draft, at: int, speaker: str, owner: str) -> tuple[str, str]:
    """Who does it, right before the word, and to whom, after it. Not to trust someone any more is a truth of its own."""
    near = draft.reading.words[max(0, at - 4) : at]
    if any(belongs(word.norm, "doubt", draft.lang) for word in near):
        return "", ""
    if near and near[-1].marks & _SECOND and (called := _called(draft)):
        return called, _object(draft, at, speaker)
    if speaker and any(belongs(word.norm, "ego", draft.lang) for word in near[-2:]):
        return speaker, _object(draft, at, speaker)
    named = any(name.text == owner and name.places and 0 < at - name.places[-1] <= 4 for name in draft.reading.names)
    if named or (owner and at <= 3 and (owner.startswith(YOU) or draft.who)):
        return owner, _object(draft, at, speaker)
    return "", ""


def _object(draft: Draft, at: int, speaker: str) -> str:
    """To whom: a name that follows soon, me, us, the one who is addressed; us where nothing follows."""
    words, lang = draft.reading.words, draft.lang
    if any(belongs(word.norm, "mine", lang) for word in words[max(0, at - 3) : at]):
        return speaker
    for place in range(at + 1, min(len(words), at + 6)):
        if words[place - 1].marks & BREAKS:
            break
        name = _name_at(draft, place)
        if name:
            return name
        if words[place].marks & _FIRST and not belongs(words[place].norm, "mine", lang):
            return US if words[place].norm in _ALL_OF_US else speaker
        if words[place].marks & _SECOND:
            return _called(draft)
        if words[place].marks & _PRONOUN:
            return ""
    return US if at == len(words) - 1 and belongs(words[at].norm, "bond", lang) else ""
