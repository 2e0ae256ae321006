"""Who says what: a turn's text as sentences that can stand alone, each with its speaker.

A sentence is taken as it was said. A quotation over several sentences gets its marks back and its speaker's name; a bare "I promise."
stays with what is promised; a "He" after a sentence about Voss becomes "[Voss]". Nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from talekeeper.kept import kept
from talekeeper.model import Turn
from talekeeper.summarize.names import Name, Reading, study
from talekeeper.summarize.posing import breaks_out, contained, may_mislead
from talekeeper.summarize.words import (
    CJK,
    MARK,
    OWNS,
    PERSON,
    SAY,
    STOP,
    UNSPACED,
    Pattern,
    Word,
    has_phrase,
    listed,
    phrases_in,
    read,
    side_by_side,
)
from talekeeper.tokens import estimate_tokens

# --- sentences -------------------------------------------------------------------------------------------------------

_BOUNDARY = Pattern(r"[.!?…。！？\n][.!?…。！？]*(?:\s?»(?=\s|$)|«(?=\s|$)|[\"'”’)\]*_」』）》])*\s*")
_CLAUSE = Pattern(r"(?<=[,;:])\s+|(?<=[，、；：])|\s+(?=(?:and|but|then|so|und|aber|dann|et|mais|puis|y|pero|luego|и|но|потом)\s)")
_CJK_TAG = Pattern(r"[^。！？…\n「『“]{0,8}(?:说|道|问|喊|答|と[言叫答尋囁])")
_FIRST_WORD = Pattern(r"\w+")
LONGEST = 60
"""Words that a sentence may have before it is cut at its clauses."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with its closing marks; overlong ones in clauses."""
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end()
        if end < len(text) and not _is_boundary(text, start, match):
            continue
        sentence = text[start:end].strip()
        start = end
        if len(sentence) > 2 * LONGEST or "\n" in sentence:  # each word has a sign, and a blank behind it
            sentences += _clauses(sentence)
        elif sentence:
            sentences.append(sentence)
    if start < len(text) and (rest := text[start:].strip()):
        sentences += _clauses(rest)
    return sentences


def _is_boundary(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a mark ends a sentence: a blank and no small letter follow, and it is no dot of a short form."""
    mark, follows = match[0], text[match.end()]
    if mark[0] in "。！？":
        return mark[-1] not in "」』”" or not _CJK_TAG.match(text, match.end())
    if not mark[-1].isspace():
        return mark[0] == "…" and mark[-1] in "」』"
    if follows.islower():
        return mark.count("\n") > 1
    if mark[0] != "." or mark[1] == ".":
        return True
    at = match.start()
    before = text[max(start, at - 12) : at].split()
    word = before[-1].lstrip("\"'“„‘«([") if before else ""
    if word.isdigit():
        following = _FIRST_WORD.match(text, match.end())
        return not (len(word) < 3 and (start + len(word) == at or (following and following[0] in listed("month"))))
    if follows.isdigit() and word.lower() == "no":
        return False
    return not (word.lower() in listed("abbreviation") or "." in word or (len(word) == 1 and word.isupper() and word != "I"))


def _clauses(sentence: str) -> list[str]:
    """A sentence, cut in pieces of 12 to 30 words if it is longer than anyone would quote."""
    if _size(sentence) <= LONGEST:
        return [" ".join(sentence.split()) if "\n" in sentence else sentence]
    pieces: list[str] = []
    for clause in _CLAUSE.split(sentence):
        clause = clause.strip()
        if pieces and _size(pieces[-1]) < 12 and _size(pieces[-1]) + _size(clause) <= 30:
            pieces[-1] += ("" if CJK.search(clause) else " ") + clause
        elif clause:
            pieces += _hard_cut(clause)
    return pieces


def _size(text: str) -> int:
    """Words; two signs of a script without blanks count as one."""
    words = text.split()
    return len(words) if text.isascii() or len(text) < 12 * len(words) else len(text) // 2


def _hard_cut(clause: str) -> list[str]:
    if _size(clause) <= 30:
        return [clause]
    words = clause.split()
    if len(clause) < 12 * len(words):
        return [" ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
    return [clause[at : at + 40].strip() for at in range(0, len(clause), 40) if clause[at : at + 40].strip()]


PLAIN, IDLE_TALK, TABLE_TALK = 0, 1, 2
UNREAD = Reading(side_by_side([]), [], [], 0, 0.0, [], [])


@dataclass(slots=True)
class Draft:
    """A sentence that may go into a fold: `body` as it was said, `text` as it would stand there, said by `voice`."""

    body: str
    lang: str
    sources: tuple[str, ...] = ()
    stretch: int = 0
    worth: float = 0.0
    estimated: bool = False
    outside: str | None = None  # what is not in quotes, if something is
    voice: str = ""
    text: str = ""
    reading: Reading = UNREAD
    keys: Sequence[str] = ()
    marks: int = 0
    rank: int = PLAIN
    place: str = ""
    at: int = 0
    dangling: bool = False  # whether it begins with a "He" of whom only the sentence before it tells


# --- speech ----------------------------------------------------------------------------------------------------------

_BOND = MARK["promise"] | MARK["decide"]
_DEATH, _FIRST, _SECOND, _PRONOUN = MARK["death"], MARK["first"], MARK["second"], MARK["pronoun"]
_TABLE = MARK["table"]
_HANDLED = MARK["promise"] | MARK["decide"] | MARK["gain"]
_HAPPENS = _HANDLED | MARK["reveal"] | MARK["threat"] | MARK["betray"] | _DEATH
_MAY_LEAN = _BOND | _PRONOUN
_TOGETHER, _SHORT = 240, 110
"""How many signs two sentences may have that are put together, and the one on which the other leans."""
_TOLD_BARE = frozenset({"event", "note", "session", "enter", "leave"})
_MANNERS = {"whisper": " (whispering)", "thought": " (thinking)"}
"""What was not said aloud must not read as if it was."""
_NOT_ALOUD = tuple(_MANNERS.values())
_QUOTES = {"de": ("„", "“"), "fr": ("« ", " »"), "ru": ("«", "»"), "es": ("«", "»"), "zh": ("“", "”"), "ja": ("「", "」")}
_MARKS = Pattern(r"[\"“”„«»「」『』]")
_SINGLE = Pattern(r"(?<!\w)['‘](?=\w)((?:[^'‘’]|(?<=\w)['’](?=\w)|(?<=s)['’](?= [a-z]))*?[.,!?…—-])['’](?=\s|$|[—)])")
_STAR = Pattern(r"(?<![\w*])\*(?=[\w\"'“‘„«])|(?<=[^\s*])\*(?![\w*])")
_TURNED = Pattern(r"(?<![^\s(\[])»(?=[\w…])|(?<=[\w.!?…,;*])«(?!\w)")
"""Marks of a German quotation: »so«, where others write «so»."""
_PARTNER = {"“": "”", "„": "“", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_PLAIN_WHO = 1.0
"""What it is worth that a sentence's "He" could be given a name …"""
_NO_WHO = 2.0
"""… and what it costs if it could not."""
OPENING, _CLOSING = "".join(_PARTNER), "".join(_PARTNER.values())
ASIDE = Pattern(
    r"\s?[(\[（][^()\[\]（）]{0,60}?(?:\b(?:\d*[dwкд]\d+|dc|ac|hp|ooc|roll\w*|nat(?:ural)?\s?\d+|crit\w*|würf\w*|wurf|tirada|jet"
    r"|броск?\w*)\b|骰|检定|ダイス|判定|出目)[^()\[\]（）]{0,60}[)\]）]",
    re.I,
)
SPEAKER = Pattern(r"(\[[^\]\n]{1,60}\]|[^\s:：,;\"“„«「]{1,30}(?: [^\s:：,;\"“„«「]{1,30}){0,3}) ?[:：] ?(?=[\"“„«「『*])")


def _has_marks(text: str) -> bool:
    """Whether something is quoted in a text, or a quotation begins or ends there."""
    return '"' in text or not (text.isascii() or _MARKS.search(text) is None)


def _still_open(text: str, inside: bool) -> bool:
    for mark in _MARKS.findall(_like_others(text)):
        inside = _opens(mark, inside)
    return inside


def _like_others(text: str) -> str:
    """The text, sign for sign, with »so« as «so»: for judging where quotations begin and end."""
    for match in _TURNED.finditer(text) if "»" in text or "«" in text else ():
        text = f"{text[: match.start()]}{_PARTNER[match[0]]}{text[match.end() :]}"
    return text


def _opens(mark: str, inside: bool) -> bool:
    """Whether a quotation is open after a mark."""
    return not inside if mark in '"“' else mark in "„«「『"


def _outside(text: str, inside: bool) -> str:
    """What of a sentence is not within quotes."""
    parts: list[str] = []
    at = 0
    for match in _MARKS.finditer(_like_others(text)):
        if not inside:
            parts.append(text[at : match.start()])
        inside = _opens(match[0], inside)
        at = match.end()
    if not inside:
        parts.append(text[at:])
    return " ".join(parts).strip(" ,.;:!?…—–-，。、：")


def _double_quoted(text: str) -> str:
    """What is told, with quotations between single marks between double ones: an apostrophe is no mark, and no quotation is cut open."""
    return _SINGLE.sub(r"“\1”", text) if ("'" in text or "‘" in text) and not _has_marks(text) else text


def _with_stars(sentences: Sequence[str]) -> list[str]:
    """The sentences, where what stands between two stars goes over several, each with stars of its own; a lone star opens nothing."""
    stars = [len(_STAR.findall(sentence)) for sentence in sentences]
    if sum(stars) % 2:
        return list(sentences)
    whole, inside = list[str](), False
    for sentence, count in zip(sentences, stars, strict=True):
        was, inside = inside, inside ^ (count % 2 == 1)
        whole.append(f"{'*' * was}{sentence}{'*' * inside}")
    return whole


def drafts_of(text: str, lang: str, spoken: bool, whole: str) -> list[Draft]:
    """The sentences of a turn's text, read; quotations over several sentences get their marks back, and their speaker.

    `spoken`: it is said, not told. `whole`: all that was said, where its phrases are."""
    text = text if spoken else _double_quoted(text)
    sentences = split_sentences(text)
    if "*" in text:
        sentences = _with_stars(sentences)
    drafts: list[Draft] = []
    if not _has_marks(text):
        for sentence in sentences:
            drafts.append(Draft(sentence, lang, reading=study(sentence, lang)))
            if len(drafts) > 1:
                _join_leaning(drafts, spoken, whole)
        return drafts
    inside, opening = False, '"'
    for sentence in sentences:
        outside, was = _outside(sentence, inside), inside
        inside = _still_open(sentence, inside)
        body = f"{opening}{sentence}" if was else sentence
        if inside:
            opening = next((mark for mark in reversed(_MARKS.findall(sentence)) if mark in _PARTNER), opening)
            body += _PARTNER[opening]
        if drafts and drafts[-1].outside == "" and body == sentence and _is_tag(sentence, lang):
            body = f"{drafts.pop().body} {sentence}"
        drafts.append(Draft(body, lang, outside=outside if _has_marks(body) else None, reading=study(body, lang)))
        if len(drafts) > 1:
            _join_leaning(drafts, spoken or was, whole)
    if any(draft.outside == "" for draft in drafts):
        _find_tellers(drafts)
    return drafts


def _join_leaning(drafts: list[Draft], spoken: bool, whole: str) -> None:
    """Puts the last draft to the one before it where either says little alone: an "I promise.", an "I give it to you."."""
    before, last = drafts[-2], drafts[-1]
    if len(before.body) + len(last.body) > _TOGETHER:
        return
    one, other = before.reading, last.reading
    if not (one.marks | other.marks) & _MAY_LEAN and one.row.signs.isascii() and other.row.signs.isascii():  # and no phrase
        return
    if (before.outside == "") != (last.outside == ""):
        return
    if _is_bare_vow(last, whole) or (len(drafts) == 2 and _is_bare_vow(before, whole)) or _leans(last, before, spoken, whole):
        outside = None if last.outside is None else f"{before.outside}{last.outside}"
        body = _together(before.body, last.body, last.lang)
        drafts[-2:] = [Draft(body, last.lang, outside=outside, reading=one.then(other))]


def _is_bare_vow(draft: Draft, whole: str) -> bool:
    """Whether a sentence is no more than an "I promise."."""
    return len(draft.body) <= 40 and draft.reading.detail < 4 and bool(marks_with_phrases(draft, whole) & _BOND)


def marks_with_phrases(draft: Draft, whole: str) -> int:
    """The marks of a sentence's words, and of the phrases in it; these must stand in the `whole` text too, and not be of two lines."""
    marks = draft.reading.marks
    for phrase, mark in phrases_in(draft.body, draft.reading.row, draft.lang):
        if has_phrase(draft.body, phrase) and phrase in whole:
            marks |= mark
    return marks


def _leans(draft: Draft, before: Draft, spoken: bool, whole: str) -> bool:
    """Whether something happens in a sentence to an "it" or, in speech, a "he", that stands in the short sentence before it."""
    words, marks = draft.reading.words, draft.reading.marks
    if not marks & _PRONOUN or len(before.body) > _SHORT or draft.lang in UNSPACED:
        return False
    lead, anaphors = words[0].norm, listed("anaphor")
    if not spoken and (lead in listed("male") or lead in listed("female")):
        leans = bool(draft.reading.keys or marks & _HAPPENS) and not (_meant(before, words[0]) or _begins_with_pronoun(before))
    elif lead in anaphors or (spoken and lead in listed("he")):
        leans = bool(marks_with_phrases(draft, whole) & _HAPPENS)
    else:
        leans = bool(marks & _HANDLED) and any(word.marks & _HANDLED and after.norm in anaphors for word, after in pairwise(words))
    return leans and not before.reading.marks & _TABLE and "?" not in before.body[-2:]


def _begins_with_pronoun(draft: Draft) -> bool:
    words = draft.reading.words
    return bool(words and words[0].marks & _PRONOUN)


def _together(before: str, after: str, lang: str) -> str:
    """Two sentences as one text; of two quotations, one."""
    if before[-1] in _CLOSING and after[0] in OPENING and _PARTNER[after[0]] == before[-1]:
        before, after = before[:-1].rstrip(), after[1:].lstrip()
    return f"{before}{'' if lang in UNSPACED else ' '}{after}"


def _is_tag(sentence: str, lang: str) -> bool:
    """Whether a sentence says who spoke the quotation before it: `"Stop!" Voss shouts.`"""
    return not _has_marks(sentence) and len(sentence.split()) < 7 and any(word.marks & SAY for word in read(sentence, lang))


def _find_tellers(drafts: list[Draft]) -> None:
    """Names whoever speaks a bare quotation: by its tag, or by the sentence before it in the same turn, or the one after."""
    voice = ""
    for at, draft in enumerate(drafts):
        if draft.outside is None:
            voice = _doer(draft)
        elif draft.outside:
            voice = _doer(draft) or voice
        else:
            draft.voice = voice = voice or next((_doer(later) for later in drafts[at + 1 : at + 3] if later.outside != ""), "")


def _doer(draft: Draft) -> str:
    """Who a sentence begins with, quotes apart: someone by name, or "the innkeeper"; where it has quotes, the only name beside them."""
    text = draft.body if draft.outside is None else draft.outside
    reading = draft.reading if draft.outside is None else study(text, draft.lang)
    named = _subject(text, reading) or _somebody(reading)
    return named or (reading.names[0].text if draft.outside is not None and len(reading.names) == 1 else "")


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


def _subject(text: str, reading: Reading) -> str:
    """The name with which a sentence begins, or the only one in it that has a title."""
    name = _subject_name(text, reading)
    return "" if name is None else name.text


def _subject_name(text: str, reading: Reading) -> Name | None:
    names, words = reading.names, reading.words
    if not names:
        return None
    first = names[0]
    if not first.places:  # a script without blanks
        return first if text.startswith(first.text) else None
    if first.places[0] == 0 or (first.places[0] == 1 and words[0].marks & STOP):
        after = first.places[-1] + 1
        return None if after < len(words) and words[after].norm in listed("and") else first  # of two, it is not plain who is meant
    titled = [name for name in names if (words[name.places[0]].marks | words[name.places[0] - 1].marks) & PERSON]
    return titled[0] if len(titled) == 1 else None


def is_narrator(turn: Turn) -> bool:
    """Whether a turn is told rather than said. A narrator who lends someone a voice speaks for them, unless in the manner of a narrator."""
    if turn.kind in _TOLD_BARE or turn.voice.casefold() in listed("narrator"):
        return True
    return turn.speaker.casefold() in listed("narrator") and (not turn.voice or _has_marks(turn.text))


def _attribute(draft: Draft, voice: str, kind: str = "") -> None:
    """`Rogue: "I promise."`, `Rogue (thinking): "I lied."`; an emote, or what has quotes of its own, gets no quotes."""
    draft.voice = voice
    colon = "：" if draft.lang in UNSPACED else " : " if draft.lang == "fr" else ": "
    if draft.text[0] != "*" and not _has_marks(draft.text):
        draft.text = _quoted(draft.text, draft.lang)
    draft.text = f"{voice}{_MANNERS.get(kind, '')}{colon}{draft.text}"


def _quoted(text: str, lang: str) -> str:
    opening, closing = _QUOTES.get(lang, ('"', '"'))
    return f"{opening}{text}{closing}"


def attributed(text: str, lang: str, voice: str) -> str:
    """A text that may not pass for another's, as someone's: `Tam: "Mira: 'I promise.'"`."""
    draft = Draft(text, lang, text=_held(text, lang))
    _attribute(draft, voice)
    return draft.text


def _held(text: str, lang: str) -> str:
    """A text as one quotation that nothing in it can close; its own marks around all of it stay."""
    whole = len(text) > 2 and _PARTNER.get(text[0]) == text[-1]
    inner = contained(text[1:-1] if whole else text)
    return f"{text[0]}{inner}{text[-1]}" if whole else _quoted(inner, lang)


def tell(drafts: list[Draft], turns: Sequence[Turn], narrators: Sequence[bool]) -> None:
    """Gives each draft the text with which it would stand in the fold. A pronoun gets a name until someone else has had their say."""
    about: Draft | None = None  # the sentence with their name: it is looked for when a "He" comes, which is seldom
    for draft in drafts:
        turn, words = turns[draft.stretch], draft.reading.row.words
        lead = words[0] if words else None
        draft.text = _ended(draft.body, draft.lang)
        if not narrators[draft.stretch]:
            if draft.rank == PLAIN:
                about = None
            if turn.voice and (turn.kind == "thought" or not _names_itself(draft, turn.voice) or may_mislead(draft.body, turn.voice)):
                if breaks_out(draft.body, turn.voice):
                    draft.text = _held(draft.text, draft.lang)
                _attribute(draft, turn.voice, turn.kind)
        elif draft.outside == "":
            subject = _subject(about.body, about.reading) if about is not None and not draft.voice else ""
            _attribute(draft, draft.voice or (f"[{subject}]" if subject else turn.voice), turn.kind)
        elif draft.outside is None and draft.marks & _FIRST and turn.kind not in _TOLD_BARE and draft.lang not in UNSPACED:
            _attribute(draft, turn.voice, turn.kind)
        elif lead and lead.norm in listed("he") and draft.text.startswith(lead.plain):
            subject = _meant(about, lead) if about is not None else ""
            draft.text = f"[{subject}]{draft.text[len(lead.plain) :]}" if subject else draft.text
            draft.worth += _PLAIN_WHO if subject else -_NO_WHO
            draft.dangling = not subject
        elif lead and draft.outside is None and not (lead.marks & (_PRONOUN | _SECOND) and draft.text.startswith(lead.plain)):
            about = draft


def _meant(draft: Draft, he: Word) -> str:
    """Whom of a sentence a "He" or "She" after it means, if that is plain and they are alive: nobody else in it may be meant as well."""
    reading, his = draft.reading, _gender([he.norm])
    name = None if reading.marks & _DEATH else _subject_name(draft.body, reading)
    if name is None or not name.places:
        return name.text if name is not None else ""
    words, first = reading.words, name.places[0]
    own = {first - 1, *name.places}
    gender = _gender([words[at].norm for at in sorted(own) if at >= 0]) or _gender([word.norm for word in words if word.marks & _PRONOUN])
    for at, word in enumerate(words):  # "the Lady of Arn", "his sister": not "the boy", who is looked at
        if at not in own and not word.marks & _PRONOUN and _gender([word.norm]) == his and (word.capital or words[at - 1].marks & _PRONOUN):
            return ""
    if gender:
        return name.text if gender == his else ""
    alone = all(other.places == name.places or words[other.places[0] - 1].marks & STOP for other in reading.names)
    return name.text if first <= 1 and alone else ""


def _names_itself(draft: Draft, voice: str) -> bool:
    """Whether a seat tells of itself by name: at the start of a sentence, beside a quotation, or with no "I" in it."""
    told = draft.body[: len(voice) + 12] if draft.outside is None and draft.marks & (_FIRST | _SECOND) else draft.outside or draft.body
    if voice.lower() not in told.lower():
        return False
    return bool(CJK.search(voice)) or re.search(rf"(?<!\w){re.escape(voice)}(?!\w)", told, re.I) is not None


@kept(1 << 9)
def quotation(text: str) -> tuple[str, str]:
    """Who speaks a sentence of a fold that is one quotation, and the quotation; ("", the text) where it is anything else."""
    match = SPEAKER.match(text)
    if match is None or text[match.end()] not in _PARTNER or text[-1] != _PARTNER[text[match.end()]]:
        return "", text
    quoted = text[match.end() :]
    return ("", text) if _has_marks(quoted[1:-1]) else (match[1], quoted)


def is_aloud(by: str) -> bool:
    """Whether someone who speaks a sentence of a fold neither whispers nor thinks it."""
    return not by.endswith(_NOT_ALOUD)


def spoken_by(text: str) -> str:
    """Who speaks a sentence of a fold that is one quotation, aloud or not."""
    by, _ = quotation(text)
    return by if is_aloud(by) else by.rpartition(" (")[0]


def speak_on(before: str, quoted: str, *, same_turn: bool) -> str:
    """A text that ends with a quotation, and another of the same speaker, as one quotation."""
    return f"{before[:-1].rstrip()}{' ' if same_turn else ' … '}{quoted[1:-1].strip()}{before[-1]}"


def _gender(words: Iterable[str]) -> str:
    """The gender of the first word that has one: a pronoun or a title."""
    for word in words:
        if word in listed("male") or word in listed("lord"):
            return "male"
        if word in listed("female") or word in listed("lady"):
            return "female"
    return ""


def _ended(text: str, lang: str) -> str:
    """The text with a full stop, if it ends in a letter or a comma."""
    if text[-1] in " ,;，、；":
        text = text.rstrip(" ,;，、；") or text
    return text + ("。" if lang in UNSPACED else ".") if text[-1].isalnum() else text


def clip(text: str, limit: int) -> str:
    """The longest beginning of a text that fits, cut between words (signs, where there are no blanks), with an ellipsis."""
    if estimate_tokens(text) <= limit:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if len(ends) * 20 < len(text):
        ends = list(range(1, len(text) + 1))
    return _longest(text, ends, limit) or _longest(text, range(1, ends[0] + 1), limit) or "…"


def _longest(text: str, ends: Sequence[int], limit: int) -> str:
    """The text up to the last of the ends at which it fits, with an ellipsis and the quotation marks that it opened."""
    low, high, best = 0, len(ends) - 1, ""
    closing = text[-1] if text[-1] in _CLOSING else ""
    while low <= high:
        middle = (low + high) // 2
        stump = text[: ends[middle]].rstrip(" ,;:.…-–—，、；：。") + "…"
        stump += closing if closing and _still_open(stump, False) else ""
        if estimate_tokens(stump) <= limit:
            low, best = middle + 1, stump
        else:
            high = middle - 1
    return best
