"""Who said it: how a sentence of a fold names its speaker, and how that is read again.

`Rogue: "I swear it."`, `Rogue (thinking): …` for what was not said aloud, and `… "I swear it."` where it is not plain who says it: not
the narrator. A "He" after a sentence about Voss becomes "[Voss]".
Nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from talekeeper.kept import kept
from talekeeper.model import Turn
from talekeeper.summarize.persons import he_of, meant_for_good, subject_of
from talekeeper.summarize.posing import breaks_out, may_mislead
from talekeeper.summarize.quotations import PARTNER, STARRED, has_marks, held, in_quotes
from talekeeper.summarize.sentences import PLAIN, Draft
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
SPEAKER = Pattern(r"(\[[^\]\n]{1,60}\]|[^\s:：,;\"“„«「]{1,30}(?: [^\s:：,;\"“„«「]{1,30}){0,3}) ?[:：] ?(?=[\"“„«「『*])")


def is_narrator(turn: Turn) -> bool:
    """Whether a turn is told rather than said. A narrator who lends someone a voice speaks for them, unless in the manner of a narrator."""
    if turn.kind in _TOLD_BARE or turn.voice.casefold() in listed("narrator"):
        return True
    return turn.speaker.casefold() in listed("narrator") and (not turn.voice or has_marks(turn.text))


def voice_lent(turn: Turn) -> str:
    """The voice of a turn, if it is not the narrator's own: what a narrator quotes, somebody else says."""
    return "" if turn.voice.casefold() in listed("narrator") else turn.voice


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
                    draft.text = held(draft.text, draft.lang)
                _attribute(draft, turn.voice, turn.kind)
        elif draft.outside == "":
            about = None if draft.reply else about
            subject = subject_of(about.body, about.reading) if about is not None and not draft.voice else ""
            voice = draft.voice or (f"[{subject}]" if subject else voice_lent(turn))
            if voice:
                _attribute(draft, voice, turn.kind)
            else:
                draft.text = _by_somebody(draft.text, draft.lang, turn.kind)
        elif draft.outside is None and draft.marks & _FIRST and turn.kind not in _TOLD_BARE and _speaks_of_itself(draft):
            _attribute(draft, turn.voice, turn.kind)
        elif lead and lead.norm in listed("he") and draft.text.startswith(lead.plain):
            subject = meant_for_good(about, lead.norm) if about is not None else ""
            draft.text = f"[{subject}]{draft.text[len(lead.plain) :]}" if subject else draft.text
            draft.worth += _PLAIN_WHO if subject else -_NO_WHO
            draft.dangling = not subject
        elif draft.outside:
            if draft.voice:
                draft.text = _named_in_tag(draft.text, draft.outside, draft.voice)
            if about is not None and not _is_of(draft, draft.outside, about):
                about = None  # someone else has spoken
        elif lead and not (lead.marks & (_PRONOUN | _SECOND) and draft.text.startswith(lead.plain)):
            about = draft


def _attribute(draft: Draft, voice: str, kind: str = "") -> None:
    """`Rogue: "I promise."`, `Rogue (thinking): "I lied."`; an emote, or what has quotes of its own, gets no quotes."""
    draft.voice = voice
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


def _is_of(draft: Draft, tag: str, about: Draft) -> bool:
    """Whether the tag of a quotation says that the one spoke of whom a sentence before it tells."""
    if not (he := he_of(tag)):
        return subject_of(about.body, about.reading) in tag
    return (draft.voice != "" or draft.stretch != about.stretch) and meant_for_good(about, he) != ""


def _named_in_tag(text: str, tag: str, name: str) -> str:
    """`"I promise," he says.` as `"I promise," [Voss] says.`"""
    he = he_of(tag)
    start = text.find(PARTNER[text[0]], 1) if text[0] in PARTNER else 0
    at = text.find(tag.split(",")[0], start)
    first = tag.partition(" ")[0]
    at += 0 if first.lower() == he else len(first) + 1
    return f"{text[:at]}[{name}]{text[at + len(he) :]}" if he and text[at : at + len(he)].lower() == he else text


def _speaks_of_itself(draft: Draft) -> bool:
    """Whether the "I" in what is told stands elsewhere, too, than in what was written and stands between stars."""
    if draft.lang in UNSPACED or "*" not in draft.body:
        return draft.lang not in UNSPACED
    return any(word.marks & _FIRST for word in read(STARRED.sub("", draft.body), draft.lang))


def _names_itself(draft: Draft, voice: str) -> bool:
    """Whether a seat tells of itself by name: at the start of a sentence, beside a quotation, or with no "I" in it."""
    told = draft.body[: len(voice) + 12] if draft.outside is None and draft.marks & (_FIRST | _SECOND) else draft.outside or draft.body
    if voice.lower() not in told.lower():
        return False
    return bool(CJK.search(voice)) or re.search(rf"(?<!\w){re.escape(voice)}(?!\w)", told, re.I) is not None


def _ended(text: str, lang: str) -> str:
    """The text with a full stop, if it ends in a letter or a comma."""
    if text[-1] in " ,;，、；":
        text = text.rstrip(" ,;，、；") or text
    return text + ("。" if lang in UNSPACED else ".") if text[-1].isalnum() else text


@kept(1 << 9)
def quotation(text: str) -> tuple[str, str]:
    """Who speaks a sentence of a fold that is one quotation, and the quotation; ("", the text) where it is anything else."""
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
