"""Quotations: the marks between which something is quoted, in every language, and what is within and without them.

Where one is looked for, an apostrophe is no mark, »so« is «so», and what is set off by ">" or goes on between stars over several
sentences is like any other. What is cut or put together leaves none open, and nothing within can close the one that is put around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from talekeeper.summarize.posing import contained
from talekeeper.summarize.words import UNSPACED, Pattern
from talekeeper.tokens import estimate_tokens

_QUOTES = {"de": ("„", "“"), "fr": ("« ", " »"), "ru": ("«", "»"), "es": ("«", "»"), "zh": ("“", "”"), "ja": ("「", "」")}
MARKS = Pattern(r"[\"“”„«»「」『』]")
_SINGLE = Pattern(r"(?<!\w)['‘](?=\w)((?:[^'‘’]|(?<=\w)['’](?=\w)|(?<=s)['’](?= [a-z]))*?[.,!?…—-])['’](?=\s|$|[—)])")
_STAR = Pattern(r"(?<![\w*])\*(?=[\w\"'“‘„«—–])|(?<=[^\s*])\*(?![\w*])")
STARRED = Pattern(r"\*+[^*]+\*+")
_BLOCK = Pattern(r"^>[^\n]*(?:\n>[^\n]*)*", re.M)
_STARRED_QUOTE = Pattern(r"(?<![\w*])(\*{1,3})([\"“„«「][^*\"“”„«»「」]+[\"“”«»」])\1(?![\w*])")
_ONE_STARRED = Pattern(r"\*[^*]+\*")
_TURNED = Pattern(r"(?<![^\s(\[])»(?=[\w…])|(?<=[\w.!?…,;*])«(?!\w)")
"""Marks of a German quotation: »so«, where others write «so»."""
PARTNER = {"“": "”", "„": "“", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
OPENING, CLOSING = "".join(PARTNER), "".join(PARTNER.values())


def has_marks(text: str) -> bool:
    """Whether something is quoted in a text, or a quotation begins or ends there."""
    return '"' in text or not (text.isascii() or MARKS.search(text) is None)


def _still_open(text: str, inside: bool) -> bool:
    for mark in MARKS.findall(_like_others(text)):
        inside = _opens(mark, inside)
    return inside


def _like_others(text: str) -> str:
    """The text, sign for sign, with »so« as «so»: for judging where quotations begin and end."""
    for match in _TURNED.finditer(text) if "»" in text or "«" in text else ():
        text = f"{text[: match.start()]}{PARTNER[match[0]]}{text[match.end() :]}"
    return text


def _opens(mark: str, inside: bool) -> bool:
    """Whether a quotation is open after a mark."""
    return not inside if mark in '"“' else mark in "„«「『"


def unquoted(text: str, inside: bool) -> tuple[str, bool]:
    """What of a sentence is not within quotes, and whether one is open behind it."""
    parts: list[str] = []
    at = 0
    for match in MARKS.finditer(_like_others(text)):
        if not inside:
            parts.append(text[at : match.start()])
        inside = _opens(match[0], inside)
        at = match.end()
    if not inside:
        parts.append(text[at:])
    return " ".join(parts).strip(" ,.;:!?…—–-，。、："), inside


def double_quoted(text: str) -> str:
    """The text with quotations between single marks between double ones: an apostrophe is no mark, and no quotation is cut open."""
    may_open = "‘" in text
    if not may_open and "'" in text:  # most stand within a word
        may_open = " '" in text or text[0] == "'" or "\n'" in text or "('" in text or "—'" in text
    return _SINGLE.sub(r"“\1”", text) if may_open and not has_marks(text) else text


def unstarred(text: str) -> str:
    """The text without stars right around a quotation, which would be cut where it ends within them: *"Stop. Go back."*"""
    return _STARRED_QUOTE.sub(r"\2", text)


def with_stars(sentences: Sequence[str]) -> list[str]:
    """The sentences, where what stands between two stars goes over several, each with stars of its own; a lone star opens nothing."""
    stars = [len(_STAR.findall(sentence)) for sentence in sentences]
    if sum(stars) % 2:
        return list(sentences)
    whole, inside = list[str](), False
    for sentence, count in zip(sentences, stars, strict=True):
        was, inside = inside, inside ^ (count % 2 == 1)
        whole.append(f"{'*' * was}{sentence}{'*' * inside}")
    return whole


def unblocked(text: str, lang: str) -> str:
    """What is told, with what is set off by ">" as a quotation: a note, a letter, an inscription."""
    pieces, at = list[str](), 0
    for block in _BLOCK.finditer(text):
        lines = "\n".join([line.lstrip("> ").rstrip() for line in block[0].split("\n")])
        parts = [" ".join(part.split()) for part in lines.split("\n\n") if part.strip()]
        inner = " ".join([part[1:-1] if _ONE_STARRED.fullmatch(part) else part for part in parts])
        pieces += [text[at : block.start()], in_quotes(inner, lang) if inner and not has_marks(inner) else inner]
        at = block.end()
    return "".join(pieces) + text[at:]


def in_quotes(text: str, lang: str) -> str:
    opening, closing = _QUOTES.get(lang, ('"', '"'))
    return f"{opening}{text}{closing}"


def held(text: str, lang: str) -> str:
    """A text as one quotation that nothing in it can close; its own marks around all of it stay."""
    whole = len(text) > 2 and PARTNER.get(text[0]) == text[-1]
    inner = contained(text[1:-1] if whole else text)
    return f"{text[0]}{inner}{text[-1]}" if whole else in_quotes(inner, lang)


def together(before: str, after: str, lang: str) -> str:
    """Two sentences as one text; of two quotations, one."""
    if before[-1] in CLOSING and after[0] in OPENING and PARTNER[after[0]] == before[-1]:
        before, after = before[:-1].rstrip(), after[1:].lstrip()
    return f"{before}{'' if lang in UNSPACED else ' '}{after}"


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
    closing = text[-1] if text[-1] in CLOSING else ""
    while low <= high:
        middle = (low + high) // 2
        stump = text[: ends[middle]].rstrip(" ,;:.…-–—，、；：。") + "…"
        stump += closing if closing and _still_open(stump, False) else ""
        if estimate_tokens(stump) <= limit:
            low, best = middle + 1, stump
        else:
            high = middle - 1
    return best
