"""What is said: a turn's text as sentences that can stand alone, each with its speaker.

A sentence is taken as it was said. A quotation over several sentences gets its marks back and its speaker's name; a bare "I promise."
stays with what is promised. Nothing is made up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from talekeeper.summarize.hearsay import find_quoted
from talekeeper.summarize.layout import bare, without_layout
from talekeeper.summarize.names import study
from talekeeper.summarize.persons import doer_beside, find_tellers, he_of, meant, subject_name
from talekeeper.summarize.quotations import (
    CLOSING,
    MARKS,
    OPENING,
    PARTNER,
    double_quoted,
    has_marks,
    together,
    unblocked,
    unquoted,
    unstarred,
    with_stars,
)
from talekeeper.summarize.sentences import DASHES, Draft, split_sentences
from talekeeper.summarize.words import MARK, SAY, UNSPACED, has_phrase, holds, listed, phrases_in, read

_BOND = MARK["promise"] | MARK["decide"]
_DEATH, _PRONOUN = MARK["death"], MARK["pronoun"]
_TABLE = MARK["table"]
_HANDLED = MARK["promise"] | MARK["decide"] | MARK["gain"]
_HAPPENS = _HANDLED | MARK["reveal"] | MARK["threat"] | MARK["betray"] | _DEATH
_VOWED = MARK["promise"] | MARK["threat"] | _DEATH
_MAY_LEAN = _BOND | _PRONOUN
_TOGETHER, _SHORT = 240, 110
"""How many signs two sentences may have that are put together, and the one on which the other leans."""
_WRITTEN = 3.0
"""What it is worth that a sentence tells what is written: nobody puts up a note in a story that does not matter."""


def drafts_of(
    text: str, lang: str, spoken: bool, whole: str, *, lent: bool = False, own: str = "", speakers: Collection[str] = ()
) -> list[Draft]:
    """The sentences of a turn's text, read; quotations over several sentences get their marks back, and their speaker.

    `spoken`: it is said, not told, by the seat `own`. `whole`: all that was said, where its phrases are. `lent`: where nobody else is
    plain, a voice that the narrator lends speaks. `speakers`: the words of the names of those who speak in the story."""
    text = without_layout(text)
    if not spoken and ">" in text:
        text = unblocked(text, lang).strip() or text
    text = double_quoted(text)
    quotes = has_marks(text)
    if quotes and "*" in text:
        text = unstarred(text)
    sentences, openings = _paragraphs(text) if quotes and "\n\n" in text else (split_sentences(text), ())
    if "| " in text:
        sentences = list(map(bare, sentences))
    if "*" in text:
        sentences = with_stars(sentences)
    if quotes:
        drafts = _quoting(sentences, openings, lang, spoken, whole)
        if spoken:
            find_quoted(drafts, own)
        else:
            _find_tellers_of(drafts, speakers)
        if ":" in text or "：" in text:
            _weigh_written(drafts)
        return drafts if spoken or lent else _joined(drafts)
    drafts = []
    for sentence in sentences:
        drafts.append(Draft(sentence, lang, reading=study(sentence, lang)))
        if len(drafts) > 1:
            _join_leaning(drafts, spoken, whole)
    if not spoken and not text.isascii():
        for draft in drafts:
            draft.voice = _behind_a_dash(draft) if draft.body[0] in DASHES else ""
    return drafts


def _behind_a_dash(draft: Draft) -> str:
    """Who says what stands behind a dash: whoever is named beside the only word for it."""
    said = [at for at, word in enumerate(draft.reading.words) if word.marks & SAY]
    beside = [name.text for name in draft.reading.names if name.places and {name.places[0] - 1, name.places[-1] + 1} & {*said}]
    return beside[0] if len(beside) == len(said) == 1 else ""


def _paragraphs(text: str) -> tuple[list[str], Collection[int]]:
    """The sentences of a text, and which of them begin a paragraph."""
    sentences, openings = list[str](), set[int]()
    for paragraph in text.split("\n\n"):
        openings.add(len(sentences))
        sentences += split_sentences(paragraph)
    return sentences, openings


def _quoting(sentences: Iterable[str], openings: Collection[int], lang: str, spoken: bool, whole: str) -> list[Draft]:
    """The sentences of a text in which something is quoted: each quotation has its marks, and stands with its tag or its introduction.

    `openings`: which of them begin a paragraph."""
    drafts: list[Draft] = []
    inside, heard = False, False  # heard: something is quoted in the paragraph before
    opening, gap = '"', ""  # gap: what French has between its marks and the words
    quotes = False
    for at, sentence in enumerate(sentences):
        if opens := at in openings:
            heard, quotes = quotes, False
        was, told = inside, not inside and not has_marks(sentence)
        quotes = quotes or not told
        reply = not was and sentence[0] in OPENING and bool(drafts)
        reply = reply and (heard and not spoken if opens else drafts[-1].body[-1] in CLOSING)
        outside, inside = (None, False) if told else unquoted(sentence, inside)
        body = f"{opening}{gap}{sentence}" if was else sentence
        if inside:
            opening = next((mark for mark in reversed(MARKS.findall(body)) if mark in PARTNER), opening)
            behind = body.rfind(opening) + 1
            gap = body[behind : behind + 1] if body[behind : behind + 1].isspace() else ""
            body += gap + PARTNER[opening]
        if drafts and drafts[-1].outside == "" and body == sentence and _is_tag(sentence, lang):
            before = drafts.pop()
            body, opens, reply = f"{before.body} {sentence}", before.opens, before.reply
        elif drafts and outside == "" and not reply and _introduces(drafts[-1], body):
            before = drafts.pop()
            body, opens, reply = together(before.body, body, lang), before.opens, before.reply
            outside = before.outside or before.body
        if told and body != sentence:  # a tag behind its quotation
            outside = unquoted(sentence, False)[0]
        drafts.append(Draft(body, lang, outside=outside, reading=study(body, lang), opens=opens, reply=reply))
        if len(drafts) > 1 and not reply:
            _join_leaning(drafts, spoken or was, whole)
    return drafts


def _find_tellers_of(drafts: list[Draft], speakers: Collection[str]) -> None:
    """Gives each quotation in what is told its speaker, if any is there that has none."""
    if any(draft.outside == "" or (draft.outside and he_of(draft.outside)) for draft in drafts):
        find_tellers(drafts, speakers)


def _weigh_written(drafts: Iterable[Draft]) -> None:
    """Gives what is written somewhere its worth."""
    for draft in drafts:
        if draft.outside and _is_written(draft):
            draft.worth = _WRITTEN


def _joined(drafts: Sequence[Draft]) -> list[Draft]:
    """The same, where a quotation that tells something stands with the sentence before it if it is not plain who speaks. An answer does
    not; and a "He" of whom an earlier turn tells may yet get his name, and lend it to the quotation."""
    joined: list[Draft] = []
    for draft in drafts:
        if draft.outside == "" and joined and not (draft.voice or draft.reply) and _may_hold(joined[-1], draft, first=len(joined) == 1):
            before = joined[-1]
            body, reading = together(before.body, draft.body, draft.lang), before.reading.then(draft.reading)
            joined[-1] = replace(before, body=body, outside=_beside_quotes(before), reading=reading)
        else:
            joined.append(draft)
    return joined


def _beside_quotes(draft: Draft) -> str:
    return draft.body if draft.outside is None else draft.outside


def _may_hold(before: Draft, draft: Draft, *, first: bool) -> bool:
    """Whether a sentence can take in the quotation behind it. `first`: the turn begins with it."""
    if len(before.body) + len(draft.body) > _TOGETHER or (before.outside == "" and before.voice):
        return False
    if before.body[-1] in CLOSING:  # the quotation goes on
        return True
    if before.outside is None and not (draft.reading.keys or draft.reading.marks & _HAPPENS):
        return False  # the sentence tells more without it
    return not first or not (he_of(before.outside or "") or _begins_with_pronoun(before))


def _introduces(before: Draft, quoted: str) -> bool:
    """Whether a quotation belongs to the sentence before it: that ends with a colon, or is the beginning of something written."""
    if len(before.body) + len(quoted) > _TOGETHER:
        return False
    return before.body[-1] in ":：" or (bool(before.outside) and before.body[-1] in CLOSING and _is_written(before))


def _is_written(draft: Draft) -> bool:
    """Whether a sentence tells what is written somewhere: `A note reads: "Come alone."`"""
    outside = draft.outside or ""
    return (":" in draft.body or "：" in draft.body) and holds(
        outside, [word.norm for word in read(outside, draft.lang)], "written", draft.lang
    )


def _join_leaning(drafts: list[Draft], spoken: bool, whole: str) -> None:
    """Puts the last draft to the one before it where either says little alone: an "I promise.", an "I give it to you."."""
    before, last = drafts[-2], drafts[-1]
    if len(before.body) + len(last.body) > _TOGETHER:
        return
    one, other = before.reading, last.reading
    if not (one.marks | other.marks) & _MAY_LEAN and one.row.signs.isascii() and other.row.signs.isascii():  # and no phrase
        return
    if (before.outside == "") != (last.outside == "") or last.body[0] in DASHES:
        return
    if _is_bare_vow(last, whole) or (len(drafts) == 2 and _is_bare_vow(before, whole)) or _leans(last, before, spoken, whole):
        if before.outside and last.outside and not spoken and doer_beside(last):
            return  # someone else says it
        outside = None if before.outside is last.outside is None else f"{_beside_quotes(before)} {_beside_quotes(last)}".strip()
        body = together(before.body, last.body, last.lang)
        drafts[-2:] = [Draft(body, last.lang, outside=outside, reading=one.then(other), opens=before.opens, reply=before.reply)]
        another = _begins_with_pronoun(last) and not _goes_on(before, other.words[0].norm)
        drafts[-1].clear = min(before.clear, len(one.words)) if another else before.clear


def _goes_on(before: Draft, lead: str) -> bool:
    """Whether a sentence that begins with this pronoun is about the one with whom the sentence before it begins, or about no person."""
    return lead not in listed("he") or _begins_with_pronoun(before) or meant(before, lead) != ""


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
    """Whether something happens in a sentence to an "it" or, in speech, a "he", that stands in the short sentence before it; or is vowed
    to happen to a "him" of whom that tells."""
    words, marks = draft.reading.words, draft.reading.marks
    if not marks & _PRONOUN or len(before.body) > _SHORT or draft.lang in UNSPACED:
        return False
    lead, anaphors = words[0].norm, listed("anaphor")
    if not spoken and (lead in listed("male") or lead in listed("female")):
        leans = bool(draft.reading.keys or marks & _HAPPENS) and not (meant(before, lead) or _begins_with_pronoun(before))
    elif lead in anaphors or (spoken and lead in listed("he")):
        leans = bool(marks_with_phrases(draft, whole) & _HAPPENS)
    else:
        leans = bool(marks & _HANDLED) and any(word.marks & _HANDLED and after.norm in anaphors for word, after in pairwise(words))
        leans = leans or (spoken and bool(marks & _VOWED) and _tells_of_whom(before, draft))
    return leans and not before.reading.marks & _TABLE and "?" not in before.body[-2:]


def _tells_of_whom(before: Draft, draft: Draft) -> bool:
    """Whether a sentence begins with the name of someone who is a "him" in the next, and nobody is named there."""
    if not before.reading.names or draft.reading.keys or listed("whom").isdisjoint(draft.reading.row.norms):
        return False
    return subject_name(before.body, before.reading) is not None


def _begins_with_pronoun(draft: Draft) -> bool:
    words = draft.reading.words
    return bool(words and words[0].marks & _PRONOUN)


def _is_tag(sentence: str, lang: str) -> bool:
    """Whether a sentence says who spoke the quotation before it: `"Stop!" Voss shouts.`"""
    return not has_marks(sentence) and len(sentence.split()) < 7 and any(word.marks & SAY for word in read(sentence, lang))
