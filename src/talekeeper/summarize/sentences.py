"""A text's sentences: where each ends, in any script, and the draft that it is until it stands in a fold.

A mark ends a sentence unless it belongs to a short form, a date or a tag; what is longer than anyone would quote is cut at its clauses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from talekeeper.summarize.names import Reading
from talekeeper.summarize.words import CJK, Pattern, listed, side_by_side

_BOUNDARY = Pattern(r"[.!?…。！？\n][.!?…。！？]*(?:\s?»(?=\s|$)|[«“](?=\s|$)|[\"'”’)\]_」』）》]|(?<![”」』])\*|\*(?!\w))*\s*")
_ASCII_BOUNDARY = Pattern(r"[.!?\n][.!?]*[\"')\]_*]*\s*")
"""What of that is ASCII: a text that is nothing else is cut in the same places by it, and sooner."""
_ROW = Pattern(r"^(\|[ \t].*)$", re.M)
DASHES = "—–"
"""Where there are no quotation marks, what someone says begins with one of these."""
_LINE = Pattern(rf"^(\|[ \t].*|[ \t]*[{DASHES}].{{1,240}})$", re.M)
_CLAUSE = Pattern(r"(?<=[,;:])\s+|(?<=[，、；：])|(?<!\s)\s+(?=(?:and|but|then|so|und|aber|dann|et|mais|puis|y|pero|luego|и|но|потом)\s)")
_CJK_TAG = Pattern(r"[^。！？…\n「『“]{0,8}(?:说|道|问|喊|答|と[言叫答尋囁])")
_FIRST_WORD = Pattern(r"\w+")
LONGEST = 60
"""Words that a sentence may have before it is cut at its clauses."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with its closing marks; overlong ones in clauses. The row of a table is one, and a line that begins
    with a dash: what someone says there, and that they say it, no mark sets apart."""
    dashed = not text.isascii() and ("—" in text or "–" in text)
    if not dashed and "| " not in text:
        return _split(text)
    parts = enumerate((_LINE if dashed else _ROW).split(text))
    return [sentence for at, part in parts for sentence in ([part.strip()] if at % 2 else _split(part))]


def _split(text: str) -> list[str]:
    sentences: list[str] = []
    start = 0
    for match in (_ASCII_BOUNDARY if text.isascii() else _BOUNDARY).finditer(text):
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
    if follows.isdecimal() and text[match.end() + 1 : match.end() + 2] == ")" and f"{int(follows) - 1})" in text[start : match.end()]:
        return False  # 1) one thing. 2) another
    if mark[0] != "." or mark[1] == ".":
        return True
    at = match.start()
    before = text[max(start, at - 12) : at].split()
    word = before[-1].lstrip("\"'“„‘«([*_") if before else ""
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
    quoted: bool = False  # whether a seat quotes it in its own turn, and says it not for itself
    who: str = ""  # the name that was found for the "he" it tells of
    gender: str = ""  # of the one it tells of, once a "he" or a "she" has meant them
    text: str = ""
    reading: Reading = UNREAD
    keys: Sequence[str] = ()
    marks: int = 0
    rank: int = PLAIN
    place: str = ""
    at: int = 0
    dangling: bool = False  # whether it begins with a "He" of whom only the sentence before it tells …
    back: int = 1  # … or so many sentences before it, of which each tells of someone else who may be meant
    clear: int = 1 << 30  # so many of its words are about the one with whom it begins: the "he" behind them may be someone else
    opens: bool = False  # whether a paragraph begins with it
    reply: bool = False  # whether it begins with a quotation right behind another's: as a rule, someone else answers
