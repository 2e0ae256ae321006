"""Who said it: how a sentence of a fold names its speaker, and how that is read again.

`Rogue: "I swear it."`, `Rogue (thinking): …` for what was not said aloud, `Rogue (quoting Voss): …` for the words of another, and
`… "I swear it."` where it is not plain who says it: not the narrator. A "He" after a sentence about Voss becomes "[Voss]".
Nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from talekeeper.kept import kept
from talekeeper.model import Turn
from talekeeper.summarize.persons import he_of, in_front, means_one, meant_for_good, reach, subject_of
from talekeeper.summarize.posing import breaks_out, may_mislead
from talekeeper.summarize.quotations import CLOSING, OPENING, PARTNER, STARRED, has_marks, held, in_quotes
from talekeeper.summarize.sentences import DASHES, PLAIN, Draft
from talekeeper.summarize.somebody import FAR, Cast
from talekeeper.summarize.words import CJK, MARK, UNSPACED, Pattern, listed, read

_FIRST, _SECOND, _PRONOUN = MARK["first"], MARK["second"], MARK["pronoun"]
_TOLD_BARE = frozenset({"event", "note", "session", "enter", "leave"})
_MANNERS = {"whisper": " (whispering)", "thought": " (thinking)"}
"""What was not said aloud must not read as if it was."""
_NOT_ALOUD = tuple(_MANNERS.values())
_PLAIN_WHO = 1.0
"""What it is worth that a sentence's "He" could be given a name …"""
_NO_WHO = 2.0
"""… and what it costs if it could not."""
_WORDS_OF_SPEAKER = 4
"""So many words are read as a speaker."""
SPEAKER = Pattern(r"(\[[^\]\n]{1,60}\]|[^\s:：,;\"“„«「]{1,30}(?: [^\s:：,;\"“„«「]{1,30}){0,3}) ?[:：] ?(?=[\"“„«「『*])")


def is_narrator(turn: Turn) -> bool:
    """Whether a turn is told rather than said. A narrator who lends someone a voice speaks for them, unless in the manner of a narrator."""
    if turn.kind in _TOLD_BARE or turn.voice.casefold() in listed("narrator"):
        return True
    return turn.speaker.casefold() in listed("narrator") and (not turn.voice or has_marks(turn.text))


def voice_lent(turn: Turn) -> str:
    """The voice of a turn, if it is not the narrator's own: what a narrator quotes, somebody else says."""
    return "" if turn.voice.casefold() in listed("narrator") else turn.voice


def tell(drafts: list[Draft], turns: Sequence[Turn], narrators: Sequence[bool], speakers: Collection[str] = ()) -> None:
    """Gives each draft the text with which it would stand in the fold. A pronoun gets a name until someone else has had their say.

    `speakers`: the words of the names of those who speak in the story."""
    cast = Cast(drafts, speakers)
    about: Draft | None = None  # the sentence with their name: it is looked for when a "He" comes, which is seldom
    for at, draft in enumerate(drafts):
        turn, words = turns[draft.stretch], draft.reading.row.words
        lead = words[0] if words else None
        draft.text = _ended(draft.body, draft.lang)
        if not narrators[draft.stretch]:
            if draft.rank == PLAIN:
                about = None
            if turn.voice and (turn.kind == "thought" or not _names_itself(draft, turn.voice) or may_mislead(draft.body, turn.voice)):
                if breaks_out(draft.body, turn.voice):
                    draft.text = held(draft.text, draft.lang)
                _attribute(draft, turn.voice, turn.kind, quoting=draft.quoted and draft.outside == "")
        elif draft.outside == "":
            about = None if draft.reply else about
            subject = means_one(about, cast, _since(about, drafts, at, narrators)) if about is not None and not draft.voice else ""
            draft.who = "" if draft.voice else subject
            voice = draft.voice or (f"[{subject}]" if subject else voice_lent(turn))
            if voice:
                _attribute(draft, voice, turn.kind)
            else:
                draft.text = _by_somebody(draft.text, draft.lang, turn.kind)
        elif draft.outside is None and draft.marks & _FIRST and turn.kind not in _TOLD_BARE and _speaks_of_itself(draft):
            _attribute(draft, turn.voice, turn.kind)
        elif (
            draft.reading.marks & _PRONOUN
            and draft.body[0] not in OPENING
            and (he := in_front(listed("he"), draft.body, draft.reading, draft.lang))
        ):
            draft.who = meant_for_good(about, he[1], cast, _since(about, drafts, at, narrators)) if about is not None else ""
            _name_him(draft, *he)
            draft.back = 1 if draft.who else reach(drafts, at, he[1])
        elif draft.outside:
            if draft.voice:
                draft.text = _named_in_tag(draft.text, draft.outside, draft.voice)
                draft.who = draft.voice if draft.text[0] == "[" else ""
            elif tagged := he_of(draft.outside):
                draft.dangling, draft.back = True, reach(drafts, at, tagged)
                draft.text = f"{lead_off(draft.lang)}{draft.text}"
            if about is not None and not _is_of(draft, draft.outside, about, cast):
                about = None  # someone else has spoken
        elif lead and not (lead.marks & (_PRONOUN | _SECOND) and draft.text.startswith(lead.plain)):
            about = draft
        if draft.marks & _SECOND and draft.outside is None and narrators[draft.stretch]:
            _say_whom(draft, turns)


def _since(about: Draft, drafts: Sequence[Draft], at: int, narrators: Sequence[bool]) -> Sequence[Draft]:
    """What is told before a sentence, from the turn on in which the one `about` whom it may be was named, and from the turn before it if
    that tells, too."""
    first = about.stretch - 1 if about.stretch and narrators[about.stretch - 1] else about.stretch
    start = at
    while start and at - start < FAR and drafts[start - 1].stretch >= first:
        start -= 1
    return drafts[start:at]


def _name_him(draft: Draft, at: int, he: str) -> None:
    """`Then [Voss] swears it.`, if it is plain who is meant, else `… Then he swears it.`: of someone else than the one before it tells."""
    draft.dangling = not draft.who
    draft.worth += _PLAIN_WHO if draft.who else -_NO_WHO
    text = draft.text
    draft.text = f"{text[:at]}[{draft.who}]{text[at + len(he) :]}" if draft.who else f"{lead_off(draft.lang)}{text}"


def _say_whom(draft: Draft, turns: Sequence[Turn]) -> None:
    """`You [Osric] take the key.`, where it is plain who is told so, and that it is not several."""
    you = in_front(listed("thou"), draft.body, draft.reading, draft.lang)
    if you is None or not draft.text.startswith(draft.body[: you[0] + len(you[1])]):
        return
    words = draft.reading.words
    after = next((words[at + 1].norm for at, word in enumerate(words[:-1]) if word.norm == you[1]), "")
    name = "" if after in listed("and") | listed("several") else _spoken_to(turns, draft.stretch)
    if name and name.casefold() not in draft.body.casefold():
        end = you[0] + len(you[1])
        blank = "" if draft.lang in UNSPACED else " "
        draft.text = f"{draft.text[:end]}{blank}[{name}]{draft.text[end:]}"


def _spoken_to(turns: Sequence[Turn], at: int) -> str:
    """Who is "you" in what is told: the only one who hears it, by the name with which they spoke."""
    hearers = {seat for seat in turns[at].audience if seat != turns[at].speaker and seat.casefold() not in listed("narrator")}
    return next((turn.voice for turn in turns if turn.speaker in hearers), "") if len(hearers) == 1 else ""


def lead_off(lang: str) -> str:
    """What stands before a sentence that has nothing to do with the one before it."""
    return "…" if lang in UNSPACED else "… "


def _attribute(draft: Draft, voice: str, kind: str = "", *, quoting: bool = False) -> None:
    """`Rogue: "I promise."`, `Rogue (thinking): "I lied."`, `Rogue (quoting Voss): "I promise."`; an emote, or what has quotes of its own,
    gets no quotes."""
    if not draft.quoted:
        draft.voice = voice
    elif quoting:
        voice += f" (quoting {draft.voice})" if draft.voice and len(f"{voice} {draft.voice}".split()) < _WORDS_OF_SPEAKER else " (quoting)"
    colon = "：" if draft.lang in UNSPACED else " : " if draft.lang == "fr" else ": "
    if draft.text[0] != "*" and not has_marks(draft.text):
        draft.text = in_quotes(draft.text, draft.lang)
    draft.text = f"{voice}{_MANNERS.get(kind, '')}{colon}{draft.text}"


def _by_somebody(text: str, lang: str, kind: str) -> str:
    """`… "I promise."`, `… (whispering) "I lied."`: bare, it would pass for what the one before it says."""
    return f"…{_MANNERS.get(kind, '')}{'' if lang in UNSPACED else ' '}{text}"


def attributed(text: str, lang: str, voice: str) -> str:
    """A text that may not pass for another's, as someone's: `Tam: "Mira: 'I promise.'"`."""
    draft = Draft(text, lang, text=held(text, lang))
    _attribute(draft, voice)
    return draft.text


def _is_of(draft: Draft, tag: str, about: Draft, cast: Cast) -> bool:
    """Whether the tag of a quotation says that the one spoke of whom a sentence before it tells."""
    if not (he := he_of(tag)):
        return subject_of(about.body, about.reading) in tag
    return (draft.voice != "" or draft.stretch != about.stretch) and meant_for_good(about, he, cast) != ""


def _named_in_tag(text: str, tag: str, name: str) -> str:
    """`"I promise," he says.` as `"I promise," [Voss] says.`"""
    he = he_of(tag)
    start = text.find(PARTNER[text[0]], 1) if text[0] in PARTNER else 0
    at = text.find(" ".join(tag.partition(",")[0].split()[:2]), start)  # what stands beside several quotations is not in one piece
    first = tag.partition(" ")[0]
    at += 0 if first.lower() == he else len(first) + 1
    return f"{text[:at]}[{name}]{text[at + len(he) :]}" if he and text[at : at + len(he)].lower() == he else text


def _speaks_of_itself(draft: Draft) -> bool:
    """Whether the "I" in what is told stands elsewhere, too, than in what was written and stands between stars, or behind a dash, where
    someone speaks."""
    if draft.body[0] in DASHES:
        return False
    if draft.lang in UNSPACED or "*" not in draft.body:
        return draft.lang not in UNSPACED
    return any(word.marks & _FIRST for word in read(STARRED.sub("", draft.body), draft.lang))


def _names_itself(draft: Draft, voice: str) -> bool:
    """Whether a seat tells of itself by name, and not as an "I": beside a quotation, or at the start of what it tells a "you"."""
    told = draft.body[: len(voice) + 12] if draft.outside is None and draft.marks & _SECOND else draft.outside or draft.body
    if voice.lower() not in told.lower() or (draft.outside is None and _says_i(draft, voice)):
        return False
    return bool(CJK.search(voice)) or re.search(rf"(?<!\w){re.escape(voice)}(?!\w)", told, re.I) is not None


def _says_i(draft: Draft, voice: str) -> bool:
    """Whether a seat speaks as an "I", in whatever language; not where it puts its own name before what it says."""
    if draft.body.lower().startswith((f"{voice.lower()}:", f"{voice.lower()} (")):
        return False
    if draft.lang in UNSPACED and draft.body.isascii():
        return any(word.marks & _FIRST for word in read(draft.body, "en"))
    return bool(draft.reading.marks & _FIRST)


def _ended(text: str, lang: str) -> str:
    """The text with a full stop, if it ends in a letter or a comma."""
    if text[-1] in " ,;，、；":
        text = text.rstrip(" ,;，、；") or text
    return text + ("。" if lang in UNSPACED else ".") if text[-1].isalnum() else text


@kept(1 << 9)
def quotation(text: str) -> tuple[str, str]:
    """Who speaks a sentence of a fold that is one quotation, and the quotation; ("", the text) where it is anything else."""
    if text[-1:] not in CLOSING:  # no quotation, and most of what a narrator tells
        return "", text
    match = SPEAKER.match(text)
    if match is None or text[match.end()] not in PARTNER or text[-1] != PARTNER[text[match.end()]]:
        return "", text
    quoted = text[match.end() :]
    return ("", text) if has_marks(quoted[1:-1]) else (match[1], quoted)


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
