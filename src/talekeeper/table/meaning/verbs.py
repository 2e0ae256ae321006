"""Verbs as players use them: which one a line has, the longest phrase first, and what nearly means the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from talekeeper.table.meaning.spelling import VERBS

KIN: tuple[frozenset[str], ...] = (
    frozenset({"look", "search", "read", "listen", "ask"}),
    frozenset({"attack", "break", "threaten"}),
    frozenset({"persuade", "calm", "talk", "ask", "trade", "deceive"}),
    frozenset({"sneak", "hide", "steal", "take", "climb", "go", "swim"}),
    frozenset({"use", "open", "make", "burn", "break", "dig", "play", "pray"}),
    frozenset({"give", "trade"}),
    frozenset({"help", "calm", "use"}),
    frozenset({"flee", "hide", "sneak"}),
)
_PHRASES: tuple[tuple[tuple[str, ...], str], ...] = tuple(
    sorted(((tuple(phrase.split()), verb) for verb, all in VERBS["verbs"].items() for phrase in all), key=lambda pair: -len(pair[0]))
)
_BY_FIRST_WORD: Mapping[str, list[tuple[tuple[str, ...], str]]] = {
    first: [pair for pair in _PHRASES if pair[0][0] == first] for first in {phrase[0] for phrase, _ in _PHRASES}
}
_GAP = "*"
_WIDEST = 3
"""So many words may stand in a gap: `ask old Mother Brine for work`."""
SINGLE: Mapping[str, str] = {phrase[0]: verb for phrase, verb in reversed(_PHRASES) if len(phrase) == 1}
SERVED = frozenset(VERBS["served"]["words"])
"""What one is given to eat and drink wherever somebody serves it."""


def find_verb(tokens: Sequence[str]) -> str:
    """The first verb that is there, as a phrase or as a word."""
    return verb_with_end(tokens)[0]


def verb_with_end(tokens: Sequence[str]) -> tuple[str, int]:
    """The first verb that is there, and how many words go up to its end, or up to its gap."""
    first = 1 if tokens[:1] in (["i"], ["we"]) else 0
    for at in range(first, len(tokens)):
        phrase, verb = _phrase_at(tokens[at:])
        if verb:
            return verb, at + (phrase.index(_GAP) if _GAP in phrase else len(phrase))
    stems = ((token.removesuffix("ing"), at) for at, token in enumerate(tokens[first : first + 2], first))
    return next(((SINGLE[stem], at + 1) for stem, at in stems if stem in SINGLE), ("", 0))


def verb_at(plain: Sequence[str]) -> str:
    """The verb with which the words begin, the longest phrase first."""
    return _phrase_at(plain)[1]


def _phrase_at(plain: Sequence[str]) -> tuple[tuple[str, ...], str]:
    phrases = _BY_FIRST_WORD.get(plain[0], ()) if plain else ()
    return next((found for found in phrases if _begins(plain, found[0])), ((), ""))


def _begins(plain: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether words begin with a phrase, in whose gaps anything may stand."""
    if not phrase:
        return True
    if phrase[0] == _GAP:
        return any(_begins(plain[skipped:], phrase[1:]) for skipped in range(1, _WIDEST + 1))
    return bool(plain) and plain[0] == phrase[0] and _begins(plain[1:], phrase[1:])


def is_served(tokens: Iterable[str]) -> bool:
    """Whether it is about something to eat or to drink."""
    return any(token in SERVED or token.removesuffix("s") in SERVED for token in tokens)
