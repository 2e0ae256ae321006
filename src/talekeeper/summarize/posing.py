"""Whether what someone says could pass for what another says: story text is data, and nobody speaks with another's voice in a fold.

A fold puts a name before what was said, and a place before where it was. So what begins like that (`[DM]: …`, `Mira: "…"`,
`(The Vault) …`), or closes the quotation around it, has to stand behind its speaker's name and between marks that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from talekeeper.summarize.words import CJK, Pattern

_SUSPECT = Pattern(r"[:：﹕∶꞉\[(（【［\"“”„«»「」『』]")
_COLONS = Pattern(r"[:：﹕∶꞉]")
_LEAD = r"(?:^|[^\w\s,，、])\s*"
_COLON = r"(?=(?: ?[(（][^()（）]{1,20}[)）])?\s?[:：﹕∶꞉](?![/\d]))"
_BRACKETED = r"[\[【［]([^\[\]【】［］]{1,80})[\]】］]"
_WORD = r"[^\W\d_][\w'’.-]{0,30}"
_CAPITAL = r"[^\W\d_a-zß-öø-ÿа-яё][\w'’.-]{0,30}"
_ARTICLE = r"(?:The|An?|Old|Der|Die|Das|Eine?|Le|La|Les|Une?|El|Los|Las)"
_ROLE = Pattern(
    rf"{_LEAD}(?:{_BRACKETED}|({_CAPITAL}(?: (?:(?:of|the|de|du|la|von|van|der|den) ){{0,2}}{_CAPITAL}){{1,3}}"
    rf"|{_ARTICLE}(?: {_WORD}){{1,2}}|{_WORD})){_COLON}"
)
"""A name, or one word, with a colon behind it, where a sentence may begin: `[Mira]:`, `Captain Voss:`, `The smith:`, `Note:`."""
_LIKE_A_ROLE = Pattern(rf"{_LEAD}({_WORD}(?: {_WORD}){{1,3}}){_COLON}")
"""A few words with a colon behind them: `Mira says to Tam:`."""
_ANYWHERE = Pattern(rf"{_BRACKETED}{_COLON}|(?<!\w)(system|assistant|user|human|ai|dm|gm|game master|narrator){_COLON}", re.I)
_PLACE = Pattern(r"(?:^|[.!?…。！？\"”»」*])\s*[(（\[【［]")
_CLOSES = Pattern(r"[^\"“”„«»「」『』]*[^\s\d(\[（—–*:：\"-]([\"”»」』])")
_SINGLE = str.maketrans('"“”„«»「」', "'‘’‚‹›『』")


def may_mislead(text: str, own: str) -> bool:
    """Whether something in a text may be taken for what another says, or for a place, if its speaker is not named before it.

    `own`: the speaker's name, which may well stand there."""
    if not _is_suspect(text):
        return False
    if _PLACE.search(text) is not None or breaks_out(text, own):
        return True
    return _has_colon(text) and any(not _is_own(name, own) for name in _named(_LIKE_A_ROLE, text))


def breaks_out(text: str, own: str) -> bool:
    """Whether something in a text may be taken for what another says though its speaker is named before it: a role, or a mark that closes
    what nobody has opened."""
    if not _is_suspect(text):
        return False
    return any(not _is_own(name, own) for name in roles(text)) or _closes(text)


def _is_suspect(text: str) -> bool:
    """Whether a text has any mark that matters here: most have none."""
    if text.isascii():
        return ":" in text or '"' in text or "(" in text or "[" in text
    return _SUSPECT.search(text) is not None


def roles(text: str) -> Iterator[str]:
    """The names in a text that stand where a speaker's would."""
    if _has_colon(text):
        yield from _named(_ROLE, text)
        yield from _named(_ANYWHERE, text)


def _has_colon(text: str) -> bool:
    return ":" in text or not (text.isascii() or _COLONS.search(text) is None)


def _named(pattern: Pattern, text: str) -> Iterator[str]:
    return (match[match.lastindex or 0].strip() for match in pattern.finditer(text))


def _is_own(name: str, own: str) -> bool:
    """Whether a name is the speaker's own: "Tam", "Tam says"."""
    name, own = name.casefold(), own.casefold()
    return name.startswith(own) and not name[len(own) : len(own) + 1].isalnum()


def _closes(text: str) -> bool:
    """Whether the first mark in a text ends a quotation; a straight one behind a sign of a script without blanks may begin one."""
    match = _CLOSES.match(text)
    return match is not None and not (match[1] == '"' and CJK.match(text[match.start(1) - 1]))


def contained(text: str) -> str:
    """The text as it may stand within a quotation: with single marks in the place of double ones."""
    return text.translate(_SINGLE)
