"""Whom a line is said to: whoever is named right behind the saying, or is called by name. All others in it are only spoken of.

`I tell Osric that Marlo lies` is said to Osric, and so is `Osric, ask Marlo about it.`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.table.meaning.spelling import SMALL, WORD, bare, words_of
from talekeeper.table.meaning.verbs import SINGLE, verb_with_end
from talekeeper.table.shown.prose import capital
from talekeeper.table.world.scenario import Named, Scenario

_QUOTE = re.compile(r"[“\"]([^”\"]*)[”\"]|(?<!\w)[‘']([^’']{3,}(?:[’'](?=\w)[^’']*)*)[’'](?!\w)")
_COLON = re.compile(r"^([^“”\":.!?]*\b(?:whisper|murmur|say|tell|ask|shout|answer|reply|call)\w*\b[^“”\":.!?]*):\s+(\S.*)$", re.I | re.S)
_SENTENCES = re.compile(r"[^.!?;\n]+[.!?;…”’\")]*")
_ARTICLES = frozenset({"the", "a", "an"})
_LONGEST = 4
"""So many words a name has at the most."""
_BETWEEN = _ARTICLES | {
    "to", "with", "at", "of", "in", "both", "also", "old", "good", "dear", "my", "our", "friend", "you", "again", "then", "only", "over",
    "up", "back", "round", "around", "towards", "toward", "across",
}  # fmt: skip
"""What may stand between the saying and a name."""
_TOWARDS = frozenset({"to", "with", "at"})
_WANTS_TO = frozenset({"say", "said", "introduce", "explain", "mention", "describe"})
"""Whoever is named right behind these is spoken of: `I say Osric is late`."""
_TURNS = frozenset({"turn", "look", "lean", "bend", "go", "walk", "step", "approach", "face", "nod"})
_PAST = frozenset({"told", "asked", "said", "warned", "reminded", "promised", "thanked", "spoke", "spoken", "talked", "whispered"})
_CONTENT = frozenset({"that", "about", "how", "what", "why", "where", "who", "whether", "if"})
"""Behind these stands what is said."""
_THEM = frozenset({"him", "her", "them"})
_CALLS = _ARTICLES | {
    "hey", "hi", "hello", "oh", "ah", "well", "now", "so", "and", "but", "please", "yes", "no", "ok", "okay", "listen", "look", "my",
    "dear", "old", "friend", "good", "evening", "morning", "thanks",
}  # fmt: skip
"""What may stand before a name that is called."""
_SPOKEN_ON = frozenset({"what", "where", "why", "how", "please", "tell", "listen", "you", "i", "let's"})
_ASKED_ON = frozenset({"who", "when", "do", "did", "does", "can", "could", "will", "would", "should", "shall", "have", "are", "is"})
"""How it goes on behind a name that is called without a comma; in the second case, in a question."""
_TELLS = frozenset({
    "tell", "told", "say", "said", "inform", "warn", "remind", "assure", "promise", "swear", "vow", "pledge", "confess", "admit", "answer",
    "reply", "whisper", "murmur", "mutter", "explain", "confide", "speak", "talk", "chat", "shout", "mention", "describe", "reveal",
})  # fmt: skip
_MANNER = re.compile(
    r"^,? ?(?:in|with|by|not|but|once|only|alone|again|under|behind|without|when|before|after|my word|\w+ly)\b[^.:!?]{0,60}?"
    r"(?=[ ,]+that\b|:)", re.I,
)  # fmt: skip
"""How it is told, where what is told comes behind."""
_THAT = re.compile(r"that\b[\s,]*", re.I)
_NEAR = 40
_APPOSED = re.compile(r",\s*(?:(?:my|dear|old|good|friend|the)\s+)*$", re.I)


class Names:
    """Those who could be meant, by what they are called; of two with one name, the first."""

    def __init__(self, people: Mapping[str, Iterable[str]]) -> None:
        self._known: dict[str, list[tuple[list[str], str]]] = {}
        for who, names in people.items():
            for name in names:
                row = [bare(word) for word in words_of(name) if word not in _ARTICLES]
                if row:
                    self._known.setdefault(row[0], []).append((row, who))
        for found in self._known.values():
            found.sort(key=lambda one: -len(one[0]))

    def first(self, tokens: Sequence[str]) -> tuple[str, int]:
        """Who is named where words begin, and in how many of them. Whatever is somebody's is nobody."""
        for row, who in self._known.get(bare(tokens[0]), ()) if tokens else ():
            size = len(row)
            if [bare(token) for token in tokens[:size]] == row and not tokens[size - 1].endswith("'s"):
                return who, size
        return "", 0

    def listed(self, tokens: Sequence[str]) -> tuple[list[str], int]:
        """All who are named where words begin, several where an “and” joins them, and in how many words."""
        found: list[str] = []
        at = sure = end = 0
        is_joined = True
        while name := self._next(tokens[at : at + _LONGEST]):
            found.append(name[0])
            at += name[1]
            if is_joined:
                sure, end = len(found), at
            is_joined = tokens[at : at + 1] == ["and"]
            at += is_joined
            while is_joined and tokens[at : at + 1] and tokens[at] in _BETWEEN:
                at += 1
        return list(dict.fromkeys(found[:sure])), end

    def _next(self, tokens: Sequence[str]) -> tuple[str, int] | None:
        who, size = self.first(tokens)
        return (who, size) if who else None

    def last(self, tokens: Sequence[str]) -> list[str]:
        """All who are named anywhere, the last of them first."""
        return [who for at in range(len(tokens) - 1, -1, -1) if (who := self.first(tokens[at : at + _LONGEST])[0])]


@kept(8)
def everyone(scenario: Scenario) -> Names:
    """All who are in a pack."""
    people: list[Named] = [*scenario.heroes.values(), *scenario.npcs.values()]
    return Names({one.id: one.names for one in people})


class Told(NamedTuple):
    """To whom something is said: by name, or by a `pronoun`; and with which word the saying ends."""

    to: list[str]
    pronoun: str
    end: int


def told(tokens: Sequence[str], names: Names) -> Told | None:
    """To whom something is said in a clause, by its verb; None where it does not say."""
    at = _saying(tokens)
    if at and tokens[at - 1] not in _WANTS_TO and (found := _behind(tokens, at, names)):
        return found
    begin = next((at for at, token in enumerate(tokens) if token in ("i", "we")), 0)
    for at in range(begin, len(tokens)):
        if tokens[at] in _CONTENT:
            break
        if tokens[at] in _TOWARDS and (found := _behind(tokens, at + 1, names)) and not found.pronoun:
            return found
    return None


def turned(tokens: Sequence[str], names: Names) -> Told | None:
    """To whom one turned, last of all, before one spoke: `I look at Osric and | ask about the job`."""
    turns = (at for at in range(len(tokens) - 1, -1, -1) if tokens[at] in _TURNS and "with" not in tokens[at + 1 : at + 3])
    found = (_behind(tokens, at + 1, names) for at in turns)
    return next((Told(one.to, "", 0) for one in found if one is not None and one.to), None)


def _saying(tokens: Sequence[str]) -> int:
    """Behind how many words somebody may be named: behind the verb, or behind what one does whose name nobody knows."""
    verb, end = verb_with_end(tokens)
    past = next((at for at, token in enumerate(tokens) if token in _PAST), -1) + 1
    return end if verb else past or (2 if tokens[:1] in (["i"], ["we"]) and len(tokens) > 2 else 0)


def _behind(tokens: Sequence[str], at: int, names: Names) -> Told | None:
    last = min(at + _LONGEST, len(tokens))
    while at < last and (tokens[at] in _BETWEEN or tokens[at].endswith("ly")) and not names.first(tokens[at : at + _LONGEST])[0]:
        at += 1
    to, size = names.listed(tokens[at:])
    if to:
        return Told(to, "", at + size)
    following = tokens[at + 1 : at + 2]
    is_somebody = tokens[at : at + 1] and tokens[at] in _THEM
    if is_somebody and (not following or following[0] in SMALL or names.first(tokens[at + 1 : at + 1 + _LONGEST])[0]):
        return Told([], tokens[at], at + 1)  # and not “her secret”
    return None


# -- calling -----------------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """Those who are called by name in a sentence, in which words, and what is left of it without that."""

    to: Sequence[str]
    rest: str
    names: Sequence[str] = ()


def sentences(text: str) -> list[str]:
    return [found[0].strip() for found in _SENTENCES.finditer(text) if found[0].strip()]


def called(sentence: str, tokens: Sequence[str], names: Names) -> Call:
    """Who is called in a sentence: `Osric, …`, `…, Osric?`, `I thank you, Osric, for …`"""
    spans = [found.span() for found in WORD.finditer(sentence)]
    at = 0
    while at < min(_LONGEST, len(tokens)) and tokens[at] in _CALLS and not names.first(tokens[at : at + _LONGEST])[0]:
        at += 1
    to, size = names.listed(tokens[at:])
    if to and _is_set_apart(sentence, spans[at + size - 1][1], tokens[at + size : at + size + 1]):
        return Call(
            to, sentence[spans[at + size - 1][1] :].lstrip(" ,:;.!?…—–-") or sentence[: spans[at][0]].rstrip(" ,"), tokens[at : at + size]
        )
    return _called_later(sentence, spans, tokens, names)


def _is_set_apart(sentence: str, end: int, following: Sequence[str]) -> bool:
    """Whether a name with which a sentence begins is called, and not what it tells of."""
    behind = sentence[end : end + 3].lstrip()
    is_asked = "?" in sentence and following and following[0] in _ASKED_ON
    return not behind or behind[0] in ",:;.!?…—–-" or bool(following and following[0] in _SPOKEN_ON) or bool(is_asked)


def _called_later(sentence: str, spans: Sequence[tuple[int, int]], tokens: Sequence[str], names: Names) -> Call:
    for at in range(1, len(tokens)):
        comma = _APPOSED.search(sentence, max(0, spans[at][0] - _NEAR), spans[at][0])
        who, size = names.first(tokens[at : at + _LONGEST]) if comma else ("", 0)
        if comma is None or not who or _is_name(tokens[max(0, at - _LONGEST) : at], names):
            continue
        end = spans[at + size - 1][1]
        behind, following = sentence[end:].lstrip(' ”’")'), tokens[at + size : at + size + 1]
        if not behind or behind[0] in ".!?;…" or (behind[0] == "," and following and following[0] not in ("and", "or")):
            return Call([who], f"{sentence[: comma.start()]}{sentence[end:]}".strip(), tokens[at : at + size])
    return Call([], sentence)


def _is_name(tokens: Sequence[str], names: Names) -> bool:
    """Whether words end with a name."""
    return any(names.first(tokens[at:])[1] == len(tokens) - at for at in range(len(tokens)))


# -- what is said ------------------------------------------------------------------------------------------------------


class Saying(NamedTuple):
    """What is said to somebody, as it was said. It begins with a small letter where it is no sentence: `about the lamp`."""

    to: Sequence[str]
    words: str


def parts(text: str) -> tuple[str, str]:
    """What is said in so many words, and the text without it."""
    quotes = [found[1] or found[2] or "" for found in _QUOTE.finditer(text)]
    if not quotes and (colon := _COLON.match(text)):
        return colon[2].strip(), colon[1]
    return " ".join(quotes).strip(), _QUOTE.sub(" ", text)


def sayings(text: str, words: Callable[[str], list[str]], names: Names) -> Iterator[Saying]:
    """What is said in a line, and to whom, as far as it says that. `words` are those of a text."""
    speech, rest = parts(text)
    if not speech:
        yield from _said(rest, words, names)
        return
    named = (found.to for sentence in sentences(rest) if (found := told(words(sentence), names)))
    calls = (called(sentence, words(sentence), names).to for sentence in (*sentences(speech), *sentences(rest)))
    if to := next(filter(None, (*named, *calls)), None):
        yield Saying(to, speech)


def _said(text: str, words: Callable[[str], list[str]], names: Names) -> Iterator[Saying]:
    """What is said without quotation marks: what somebody tells that they say, and all that follows upon a call and is no deed."""
    to: Sequence[str] = ()
    for sentence in sentences(text):
        call = called(sentence, words(sentence), names)
        tokens = words(call.rest)
        if saying := _retold(call.rest, tokens, names):
            to = ()
            yield saying
            continue
        is_deed = not call.to and tokens[:1] in (["i"], ["we"]) and tokens[1:2] and tokens[1] in SINGLE
        to = () if is_deed else call.to or to
        if to and call.rest:
            yield Saying(to, call.rest)


def _retold(sentence: str, tokens: Sequence[str], names: Names) -> Saying | None:
    """What somebody tells that they say: `I tell Osric that …`"""
    ends = [found.end() for found in WORD.finditer(sentence)]
    for at, token in enumerate(tokens):
        if not {token, token.removesuffix("s")} & _TELLS and not (token == "give" and "word" in tokens):
            continue
        towards = next((here for here in range(at + 1, min(at + 4, len(tokens))) if tokens[here] in _TOWARDS), len(tokens))
        found = _behind(tokens, towards + 1 if token in _WANTS_TO else at + 1, names)
        to = found.to or names.last(tokens[:at])[:1] if found is not None else []
        if found is not None and to:
            words = _MANNER.sub("", sentence[ends[found.end - 1] :]).strip(" ,:")
            that = _THAT.match(words)
            return Saying(to, capital(words[that.end() :]) if that else words)
    return None
