"""Reading words, without a model: the language of a text, and the marks of its words.

A text is read piece by piece, cut at blanks. Each piece is looked up once, and the answer is kept (words come back all
the time, and a story's folds must be cheap). The marks of a `Word` are bits: the groups of `words.txt`, and how the word
stands in its text. Chinese and Japanese have no blanks: there the groups are looked for anywhere in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress, count, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from talekeeper.kept import kept, kept_table


class Pattern:
    """A regular expression that is compiled when it is first used: some take longer than the rest of the import."""

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[[str], list[str]]
    split: Callable[[str], list[str]]
    sub: Callable[..., str]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, method: str) -> object:
        compiled = re.compile(self._pattern, self._flags)
        for name in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub"):
            setattr(self, name, getattr(compiled, name))
        return getattr(compiled, method)


CUES = ("promise", "threat", "death", "gain", "decide", "reveal", "quest", "outcome", "betray")
ABOUT = ("money", "thing", "person", "place", "time", "number")
SPEECH = ("say", "first", "second", "pronoun")
NOISE = ("roll", "table", "chatter", "stop", "starter")
FORMS = ("nameable", "content", "opens", "breaks", "ends", "owns")
MARK = {name: 1 << bit for bit, name in enumerate(CUES + ABOUT + SPEECH + NOISE + FORMS)}  # 30 bits at most are quick in Python
MARK |= {"dice": MARK["table"], "neutral": 0}

NAMEABLE, CONTENT, OPENS, BREAKS, ENDS, OWNS = (MARK[name] for name in FORMS)
MONEY, THING, PERSON, PLACE, TIME, NUMBER = (MARK[name] for name in ABOUT)
SAY, STOP = MARK["say"], MARK["stop"]
SMALL = STOP | MARK["first"] | MARK["second"] | MARK["pronoun"]
IDLE = SMALL | MARK["chatter"] | MARK["starter"]
LISTED = (1 << len(CUES + ABOUT + SPEECH + NOISE)) - 1
COMMON = LISTED & ~SAY
CUE_MARKS = (1 << len(CUES)) - 1 | SAY
NOT_ALONE = PERSON | TIME | NUMBER | MARK["chatter"]

CORRECTS = "c"
"""The sign of a word with which someone may correct what was said, or take it back."""
DENIES = "o"
"""The sign of a word with which someone may deny it in few words."""
PAYS = "p"
"""The sign of a word with which someone may pay what they owe."""
UNDOING = ("alive", "lives", "undone", "finished")
"""The groups of words with which what was may be no more."""
_EDGES = " \t\r\n.,;:!?…\"'“”„‘’‚‹›«»()[]{}<>*_~`—–-¡¿#|/\\=+&。、！？，；：（）「」『』·•"
_BREAK = Pattern(r"[^\w'’]$")
_END = Pattern(r"[.!?…:][\"'”’»)\]*_]*$")
_OPEN = Pattern(r"^[\"'“„‘‚«(\[*_¿¡「『—–-]")
ELISION = Pattern(r"^(?:[ldjmtsnc]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.I)
_CYRILLIC = Pattern(r"[а-яё]", re.I)
_CYRILLIC_ENDING = Pattern(
    r"(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|ов|ев|ом|ем|ой|ей|ою|ею|ах|ях|ам|ям|ым|им|ых|их|ую|юю|ая|яя|а|я|у|ю|е|ы|и|о|ь|й)$"
)
_KANA = Pattern(r"[\u3041-\u30fa]")
_HAN = Pattern(r"[\u3400-\u9fff\uf900-\ufaff\u3005]")
CJK = Pattern(r"[\u3005\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")
UNSPACED = frozenset({"zh", "ja"})
"""The languages that are written without blanks."""
_WIDE = Pattern(r"[\u0400-\u04ff\u3041-\u30fa\u3400-\u9fff\uf900-\ufaff]")
_LATIN = ("en", "de", "fr", "es")
_VOTES = {lang: 12 * at for at, lang in enumerate(_LATIN)}
"""Where the votes for a language stand in the number that has them all."""
_MOST_VOTES = (1 << 12) - 1
_LETTERS = {"de": frozenset("äöüß"), "fr": frozenset("àâçèêëîïôœùû"), "es": frozenset("ñ¿¡íóúá")}
_TELLING_LETTERS = Pattern(f"[{''.join(sorted(frozenset().union(*_LETTERS.values())))}]")


class Word(NamedTuple):
    """A piece of text: its marks, its form for comparing, whether it may be a name, those of its marks that are counted, by their
    letters, and itself without signs around it."""

    marks: int
    norm: str
    capital: bool
    signs: str
    plain: str


@dataclass(slots=True)
class Row:
    """The words of a text; side by side, for those who look at one thing of all of them. `capitals`: the places of what may be names."""

    words: list[Word]
    marks: tuple[int, ...]
    norms: tuple[str, ...]
    capitals: list[int]
    signs: str

    def then(self, other: Row) -> Row:
        """The words of this text and another behind it."""
        shift = len(self.words)
        return Row(
            self.words + other.words, self.marks + other.marks, self.norms + other.norms,
            self.capitals + [at + shift for at in other.capitals], self.signs + other.signs,
        )  # fmt: skip

    def telling(self) -> int:
        """How many words tell something, less those that chatter."""
        return self.signs.count("d") - self.signs.count("x")


def side_by_side(words: list[Word]) -> Row:
    if not words:
        return Row([], (), (), [], "")
    marks, norms, capitals, signs = islice(zip(*words), 4)  # noqa: B905 - each word has all of them
    return Row(words, marks, norms, list(compress(count(), capitals)), "".join(signs))


_COUNTED = {
    "t": TIME, "n": NUMBER, "d": CONTENT, "i": MARK["second"] | MARK["chatter"],
    "e": MARK["promise"] | MARK["death"] | MARK["threat"] | MARK["reveal"] | MARK["quest"] | MARK["outcome"] | MARK["decide"],
}  # fmt: skip


class _Signs(dict[int, str]):
    """For the marks of a word a letter for each group that is counted: time, number, detail, talk to the listener, event, mere chatter.
    Beside them stand one for words that may correct something, and signs beyond ASCII for a word that may be of a phrase."""

    def __missing__(self, marks: int) -> str:
        signs = [sign for sign, group in _COUNTED.items() if marks & group]
        if marks & MARK["chatter"] and not marks & SMALL:
            signs.append("x")
        self[marks] = "".join(signs)
        return self[marks]


_SIGNS = _Signs()


@cache
def _lines() -> list[tuple[str, str, list[str]]]:
    lines = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()
    return [(group, lang, words) for group, lang, *words in (line.split() for line in lines if line and line[0] != "#")]


@cache
def listed(group: str) -> frozenset[str]:
    """The words of a group in all languages."""
    return frozenset(word.replace("_", " ") for name, _, words in _lines() if name == group for word in words)


@cache
def _lexicon(lang: str) -> tuple[dict[str, int], dict[str, int]]:
    """Whole words and beginnings of words of a language, each with the marks of its groups."""
    whole: dict[str, int] = {}
    begin: dict[str, int] = {}
    for group, tongue, words in _lines():
        if tongue == lang and group in MARK:
            for word in words:
                into, key = (begin, word[:-1]) if word.endswith("*") else (whole, word)
                into[key] = into.get(key, 0) | MARK[group]
    return whole, begin


Phrases: TypeAlias = Sequence[tuple[str, int]]
"""Words that are looked for across blanks, each with the marks of its groups."""


@cache
def _phrases(lang: str) -> Mapping[str, tuple[re.Pattern[str], Phrases]]:
    """What is looked for across blanks, with the marks of its groups, by how its longest word stands in a piece of text: where no piece
    is like that, there is no such phrase. Each has a sign of its own."""
    phrases: dict[str, list[tuple[str, int]]] = {}
    for phrase, marks in _lexicon(lang)[0].items():
        if "_" in phrase:
            words = phrase.split("_")
            longest = max(reversed(words), key=len)
            piece = f"{'^' if longest in words[1:] else ''}{re.escape(longest)}{'$' if longest in words[:-1] else ''}"
            phrases.setdefault(piece, []).append((" ".join(words), marks))
    return {chr(0x100 + at): (re.compile(piece), phrases[piece]) for at, piece in enumerate(phrases)}


@cache
def _in_phrases(lang: str) -> Callable[[str], object]:
    """Finds whether a piece of text may be of a phrase."""
    return re.compile("|".join([piece.pattern for piece, _ in _phrases(lang).values()]) or "(?!)").search


def normalise(piece: str) -> str:
    """A word for comparing: lower case, no marks around it, no English possessive, no Russian ending."""
    norm = piece.strip(_EDGES).lower().replace("’", "'").replace("ё", "е")
    if norm.endswith("'s"):
        norm = norm[:-2]
    return _CYRILLIC_ENDING.sub("", norm) if len(norm) > 3 and _CYRILLIC.match(norm) else norm


@kept(1 << 8)
def _words_of_name(name: str) -> frozenset[str]:
    return frozenset([norm for piece in name.split() if (norm := normalise(piece))])


def words_of_names(names: Iterable[str]) -> set[str]:
    """The words of some names, for comparing. A story has few voices, and all of them come back in every chunk."""
    return set().union(*map(_words_of_name, names))


@cache
def _group(group: str, lang: str) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """Whole words as they are compared, beginnings of words, and phrases of a group in a language."""
    words = [word for name, tongue, words in _lines() if name == group and tongue == lang for word in words]
    whole = frozenset(form for word in words if word[-1] != "*" and "_" not in word for form in (word, normalise(word)))
    return whole, tuple(word[:-1] for word in words if word[-1] == "*"), tuple(word.replace("_", " ") for word in words if "_" in word)


def words_of(group: str, lang: str) -> frozenset[str]:
    """The whole words of a group in a language."""
    return _group(group, lang)[0]


@cache
def words_and_beginnings(lang: str, *groups: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The whole words of several groups in a language, and the beginnings of words."""
    found = [_group(group, lang) for group in groups]
    return frozenset().union(*(whole for whole, _, _ in found)), tuple(begin for _, begins, _ in found for begin in begins)


def belongs(norm: str, group: str, lang: str) -> bool:
    """Whether a word, as it is compared, is in a group of its language."""
    whole, begin, _ = _group(group, lang)
    return norm in whole or norm.startswith(begin)


def holds(text: str, norms: Sequence[str], group: str, lang: str) -> bool:
    """Whether a text whose words were read has a word or a phrase of a group; in Chinese and Japanese, anywhere."""
    whole, begin, phrases = _group(group, lang)
    if lang in UNSPACED:
        return any(word in text for word in whole)
    if not whole.isdisjoint(norms) or (begin and any(norm.startswith(begin) for norm in norms)):
        return True
    lower = text.lower() if phrases else ""
    return any(phrase in lower and has_phrase(lower, phrase) for phrase in phrases)


@cache
def _openings(group: str, lang: str) -> dict[str, list[list[str]]]:
    """The words and phrases of a group as they are compared, by their first word."""
    whole, _, phrases = _group(group, lang)
    openings: dict[str, list[list[str]]] = {word: [[word]] for word in whole}
    for parts in ([normalise(part) for part in phrase.split()] for phrase in phrases):
        openings.setdefault(parts[0], []).append(parts)
    return openings


def places_of(words: Sequence[Word], group: str, lang: str) -> list[tuple[int, int]]:
    """Where whole words and phrases of a group stand in a text that was read: the first and the last word of each."""
    openings = _openings(group, lang)
    norms = [word.norm for word in words]
    opened = [(at, openings[norm]) for at, norm in enumerate(norms) if norm in openings]
    return [(at, at + len(parts) - 1) for at, known in opened for parts in known if norms[at : at + len(parts)] == parts]


@cache
def _starts(lang: str) -> frozenset[str]:
    """The first two letters of those beginnings: most words have others."""
    return frozenset(word[:2] for word in _lexicon(lang)[1])


def _groups_of(word: str, lang: str) -> int:
    whole, begin = _lexicon(lang)
    marks = whole.get(word, 0)
    if word[:2] in _starts(lang):
        for end in range(min(len(word), 24), 1, -1):
            marks |= begin.get(word[:end], 0)
    if not marks and "-" in word:
        marks = whole.get(word.partition("-")[0], 0) & NUMBER
    return marks


def _look(piece: str, lang: str) -> Word:
    bare = piece.strip(_EDGES)
    marks = 0
    whole = bare
    if lang == "fr" and (elided := ELISION.match(bare)):
        marks = _groups_of(elided[0].lower()[:-1], lang) & ~STOP
        bare = bare[elided.end() :]
    full = bare.lower().replace("’", "'").replace("ё", "е")
    marks |= _groups_of(full, lang)
    if full.endswith("'s"):
        bare = whole = bare[:-2]
        marks = marks or _groups_of(full[:-2], lang)
        marks |= OWNS
    if bare[:1].isupper() and not marks & (SMALL | MARK["dice"]) and not (len(bare) > 1 and bare.isupper()):
        marks |= NAMEABLE
    if bare[:1].isdigit():
        marks |= NUMBER
    if bare and not marks & IDLE:
        marks |= CONTENT
    if _OPEN.search(piece):
        marks |= OPENS
    if _BREAK.search(piece) and not (full in listed("abbreviation") or (len(bare) == 1 and bare.isupper() and piece.endswith("."))):
        marks |= BREAKS | (ENDS if _END.search(piece) else 0)
    signs = _SIGNS[marks]
    if _in_phrases(lang)(piece):
        signs += "".join([sign for sign, (like, _) in _phrases(lang).items() if like.search(piece)])
    norm = normalise(bare)
    undoing, begins = words_and_beginnings(lang, *UNDOING, "dream", "tale")
    if norm in undoing or norm.startswith(begins) or full in listed("corrects") or full in listed("corrects_first") or full in listed("no"):
        signs += CORRECTS
    if full in listed("not_so") or full.endswith("n't"):
        signs += DENIES
    if full in listed("pays"):
        signs += PAYS
    return Word(marks, norm, bool(marks & NAMEABLE), signs, whole)


class _Reader(dict[str, Word]):
    """The pieces of a language that were looked up. Bounded: long pieces are not kept, and a full table starts afresh."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __missing__(self, piece: str) -> Word:
        word = _look(piece, self.lang)
        if len(piece) <= 40:
            if len(self) >= 32_000:
                self.clear()
            self[piece] = word
        return word


@cache
def _reader(lang: str) -> Callable[[str], Word]:
    return kept_table(_Reader(lang)).__getitem__


def read(text: str, lang: str) -> list[Word]:
    """The words of a text of a language with blanks, marked."""
    if not text.isascii() and ("—" in text or "–" in text):
        text = text.replace("—", " — ").replace("–", " – ")
    return list(map(_reader(lang), text.split()))


@cache
def _cjk_groups(lang: str) -> tuple[re.Pattern[str], dict[str, int]]:
    whole = _lexicon(lang)[0]
    return re.compile("|".join(re.escape(word) for word in sorted(whole, key=lambda word: (-len(word), word)))), whole


def read_cjk(text: str, lang: str) -> list[Word]:
    """The listed words in a Chinese or Japanese text, marked; the rest of the text is passed over."""
    pattern, marks = _cjk_groups(lang)
    return [Word(marks[word], word, False, _SIGNS[marks[word]], word) for word in pattern.findall(text.lower())]


def has_phrase(text: str, phrase: str) -> bool:
    """Whether a phrase stands in a text, and not only as the beginning of another: no "was me" in "was meant"."""
    at = text.find(phrase)
    return at >= 0 and not text[at + len(phrase) : at + len(phrase) + 1].isalpha()


def phrases_in(text: str, row: Row, lang: str) -> Phrases:
    """The phrases in a text that was read, each with the marks of its groups."""
    if row.signs.isascii():
        return ()
    return [phrase for sign, (_, phrases) in _phrases(lang).items() if sign in row.signs for phrase in phrases if phrase[0] in text]


@cache
def _voters() -> tuple[frozenset[str], dict[str, int]]:
    """All small words; and for which languages each votes, twice if for one only: all votes in one number, so that one sum counts them."""
    small = {lang: frozenset(word for word, marks in _lexicon(lang)[0].items() if marks & SMALL) for lang in _LATIN}
    words = frozenset().union(*small.values())
    votes = {word: [lang for lang in _LATIN if word in small[lang]] for word in words}
    return words, {word: sum(1 << _VOTES[lang] for lang in langs) << (len(langs) == 1) for word, langs in votes.items()}


def language(text: str, default: str = "en") -> str:
    """The language of a text by its letters and small words; `default` where they do not say."""
    letters, lowered = "", text.lower()
    if not text.isascii():
        han = len(_HAN.findall(text))
        kana = len(_KANA.findall(text))
        if (han + kana) * 5 > len(text):
            return "ja" if kana or default == "ja" else "zh"
        if len(_CYRILLIC.findall(text)) * 3 > len(text):
            return "ru"
        letters = "".join(_TELLING_LETTERS.findall(lowered))
        lowered = lowered.replace("’", "'")
    small, voters = _voters()
    counted = sum(map(voters.__getitem__, small.intersection(lowered.replace("'", "' ").split())))
    votes = [counted >> shift & _MOST_VOTES for shift in _VOTES.values()]
    if letters:
        votes = [vote + _hints(letters, lang) for lang, vote in zip(_LATIN, votes, strict=True)]
    most = max(votes)
    best = [lang for lang, vote in zip(_LATIN, votes, strict=True) if vote == most]
    return default if not most or default in best else best[0]


def is_wide(text: str) -> bool:
    """Whether a text has anything in a script of which the same content is counted as many more tokens than it is in English."""
    return not text.isascii() and _WIDE.search(text) is not None


def _hints(letters: str, lang: str) -> int:
    """What the letters with marks say for a language that uses them."""
    return 0 if _LETTERS.get(lang, frozenset()).isdisjoint(letters) else 2


_language_of_run = kept(64)(language)
"""The same run is looked at by several, one after the other."""


def languages(texts: Sequence[str]) -> list[str]:
    """The language of each text: that of all of them together, unless its letters may be those of another."""
    common = _language_of_run("\n".join([text[:120] for text in texts])[:600])
    return [common if text.isascii() and common in _LATIN else language(text, common) for text in texts]
