"""What people type at a table and no character would say: questions about the game, insults, and being at a loss, and other languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from talekeeper.summarize.words import language
from talekeeper.table.meaning.spelling import SMALL, VERBS, words_of
from talekeeper.table.meaning.verbs import SINGLE

_OF_PLAY: Mapping[str, re.Pattern[str]] = {
    "teller": re.compile(
        r"\bare you (?:an? )?(?:ai|bot|robot|computer|machine|program|language model|human|real)\b|\bwho (?:tells|writes|made) this\b", re.I
    ),
    "dice": re.compile(
        r"\bhow (?:do|does)\b.{0,20}\b(?:fight\w*|combat|dice|magic|rolls?|skills?|wounds?|heal\w*|chance)\b.{0,12}\bworks?\b", re.I
    ),
    "goal": re.compile(
        r"\bhow (?:do|can|could) (?:i|we) win\b|\bwhat (?:am i|are we) supposed to do\b"
        r"|\bwhat(?:'s| is| are) (?:the|my|our) (?:goals?|point|aim|objectives?|quests?|mission)\b", re.I,
    ),
    "play": re.compile(
        r"\b(?:the|any|what) rules\b|\bhow (?:do|can) (?:i|we|you|one) play\b|\bhow does (?:this|it|the game|this game) work\b", re.I
    ),
}  # fmt: skip
_INSULTS = frozenset(VERBS["insults"]["words"])
_CURSES = re.compile(r"\b(?:fuck (?:you|off|all of you)|screw you|damn you|shut up|go to hell|piss off|get lost|you suck)\b", re.I)
_AT_A_LOSS = frozenset({"what", "why", "how", "huh", "where", "who", "when", "and", "so", "now", "then", "hm", "hmm", "um"})


_LOST = re.compile(
    r"^\W*(?:(?:so|and|but|well|now),? )*(?:what|where) (?:should|shall|can|could|do) (?:we|i) (?:do|go|try|look|begin|start)"
    r"(?: now| next| then| first)*\W*$|^\W*(?:so |and )?what(?: comes|['’]s| is)? (?:next|now)\W*$", re.I,
)  # fmt: skip


def about_play(question: str) -> str:
    """What somebody wants to know from the one who tells: about the `teller`, the `dice`, the `goal`, or how to `play`. Empty: nothing."""
    return next((about for about, words in _OF_PLAY.items() if words.search(question)), "")


def is_insult(said: str, *, of_someone: bool) -> bool:
    """Whether it is meant to hurt: a curse, or a bad name for those who are spoken to or of."""
    tokens = set(words_of(said))
    aimed = {"you", "u", "your", "you're", "youre"} & tokens or (of_someone and {"is", "are"} & tokens) or tokens <= _INSULTS | SMALL
    return bool(_CURSES.search(said) or (_INSULTS & tokens and aimed and not {"no", "not", "never", "am"} & tokens))


def is_at_a_loss(said: str, tokens: Sequence[str]) -> bool:
    """Whether somebody does not know what to do."""
    return bool(tokens) and (set(tokens) <= _AT_A_LOSS or _LOST.search(said) is not None)


def is_foreign(text: str) -> bool:
    """Whether it is in a language in which no game is told here; one word tells nothing."""
    tokens = words_of(text)
    if not tokens or any(token in SINGLE for token in tokens):
        return False
    return language(text) != "en" and (len(tokens) > 1 or not text.isascii())
