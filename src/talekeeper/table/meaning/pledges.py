"""Whether somebody gives their word, and to whom: `I promise` and `I swear` are said of much that is no promise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from talekeeper.table.meaning.address import Names
from talekeeper.table.meaning.spelling import VERBS, alike, content, words_of

_WORD = r"(?:promise|swear|vow|pledge|word)"
_NONE = re.compile(
    r"^\W*(?:\w+, )?(?:who|whom|what|which|why|when|where|how|did|do|does|have|has|had|will|would|can|could|should|shall|is|was)\b"
    r"(?! (?:hereby|solemnly)\b)|"
    rf"\b(?:not|never|cannot|\w+n['’]t|refuse to|nobody|no one|would|could|might|unless|(?<!give )you(?! have (?:my|our))|he|she|they)"
    rf"\s+(?:(?!i\b|we\b)\w+\s+){{0,2}}{_WORD}\b|"
    rf"\b(?:the|your|his|her|their|any|no|that|this|every|broken)\s+(?:promise|vow|pledge)\b|"
    rf"\b{_WORD}\s+(?:\w+\s+)?(?:nothing|none|neither|no|nobody|no-one|noone)\b(?! (?:one )?(?:will|shall|is to|else)\b)|"
    rf"\b{_WORD}\s+(?:to\s+)?(?:me|us|myself|ourselves)\b", re.I,
)  # fmt: skip
"""A question about a promise, a refusal to make one, a wish for one, somebody else's word: nobody has given theirs."""
_SWEAR = re.compile(r"\bswear\b(.*)", re.I | re.S)
_TO_COME = re.compile(
    r"\b(?:will|shall|won['’]t|shan['’]t|never to|not to|going to)\b|['’]ll\b|^ (?:an oath|loyalty|allegiance|fealty|revenge|vengeance)\b|"
    r"\bto (?!(?:god|gods|heaven|you|him|her|them|the|my|our|all|every|everyone|this|what)\b)[a-z]+"
)
"""One swears to what one will do. All else is only said with force: `I swear that fish is off`."""
_SAYS = re.compile(
    r"^\W*(?:(?!i\b)[\w'’]+[,.!]? ){0,4}?(?:i (?:do |will |hereby |solemnly |can )*(?:promise|swear|vow|pledge|give (?:you )?my word)"
    r"|you have (?:my|our) word)\b", re.I,
)  # fmt: skip
_PAUSE = re.compile(
    rf"\b((?:i|we) (?:(?:do|will|hereby|solemnly) )?{_WORD}(?: (?:to )?you)?|my word)"
    r"((?:,? (?!i\b|we\b)[\w'’]+){0,3}?)[,:] (?=(?:i|we)\b)",
    re.I,
)
_BEFORE = frozenset({"to", "and", "both", "also", "old", "good", "dear", "you", "the"})


def gives_word(clause: str) -> bool:
    """Whether somebody gives their word in a clause with a verb for it."""
    sworn = _SWEAR.search(clause)
    bare = sworn is not None and not words_of(sworn[1])
    return _NONE.search(clause) is None and (sworn is None or bare or _TO_COME.search(sworn[1]) is not None)


def is_pledge(speech: str) -> bool:
    """Whether what is said begins with a word that is given: `Marlo, I promise that …`"""
    return _SAYS.match(speech) is not None and gives_word(speech)


def joined(text: str) -> str:
    """A text in which what is promised is not set apart from the promise: `I promise you, Marlo, I will …`"""
    return _PAUSE.sub(r"\1\2 that ", text)


def given_to(tokens: Sequence[str], names: Names) -> list[str]:
    """To whom a word is given, as far as that stands right behind it: `I promise Marlo and Brine that …`"""
    at = next((at for at, token in enumerate(tokens) if token in ("promise", "swear", "vow", "pledge", "word")), len(tokens)) + 1
    while at < len(tokens) and tokens[at] in _BEFORE and not names.first(tokens[at:])[0]:
        at += 1
    return names.listed(tokens[at:])[0]


def is_meant(vow: str, words: str, to: Iterable[str]) -> bool:
    """Whether the words of a promise are those of a vow of the pack: what tells it apart from others, and not to whom it is made."""
    named = {word for name in to for word in words_of(name)}
    common = {word for phrases in VERBS["verbs"].values() for phrase in phrases for word in phrase.split()}
    telling = [word for word in dict.fromkeys(content(vow)) if word not in named | common]
    said = words_of(words)
    return bool(telling) and 2 * sum(any(alike(one, word) for word in said) for one in telling) >= len(telling)


def promised(words: str, names: Iterable[str]) -> str:
    """The words of a promise, without “I promise Oda”."""
    anyone = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    rest = re.sub(r"^.*?\b(?:promise|swear|vow|pledge|word)\b[,:.!]?\s*", "", " ".join(words.split()), flags=re.I)
    for _ in range(8):
        rest, count = re.subn(rf"^(?:(?:to )?(?:{anyone}|you(?! (?:that|to|i|we)\b))\b|and\b|&)[,:.!]?\s*", "", rest, flags=re.I)
        if not count:
            break
    return re.sub(r"^you (?=(?:that|to|i|we)\b)", "", rest, flags=re.I).rstrip('., !”"')[:300] or "what was said"
