"""Whether a model's summary can stand for its turns: what must survive, what is missing, and what nobody told.

Pure: texts in, texts out. Ranked and capped, so that names and numbers never crowd out the telling: at most 30% of a fold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.summarize.corrections import taken_back
from talekeeper.summarize.extractive import tells
from talekeeper.summarize.names import Term, find_numbers, is_month, known_terms, marks_of, studied, terms_in
from talekeeper.summarize.sentences import split_sentences
from talekeeper.summarize.words import (
    BREAKS,
    CJK,
    MARK,
    NUMBER,
    PERSON,
    STOP,
    UNSPACED,
    Pattern,
    Word,
    belongs,
    language,
    languages,
    listed,
    read,
)
from talekeeper.tokens import estimate_tokens

SHARE = 0.3
"""How much of a fold what must survive may fill."""

_BOND = MARK["promise"] | MARK["quest"] | MARK["threat"] | MARK["death"] | MARK["decide"] | MARK["reveal"] | MARK["betray"]
_COUNTED = _BOND | MARK["gain"] | MARK["money"] | MARK["time"]
LED = Pattern(r"\[([^\]\n]{1,80}?)(?:, (?:whispering|thinking))?\](?: \([^)\n]{1,80}\))?: |[*-] (?:\([^)\n]{1,80}\) )?")
"""What stands before a turn's text in its line: who speaks, or that something happened."""

# --- what must survive -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Find:
    """Something worth keeping: how it is called, where it was first found, in which sources, and what for."""

    text: str
    order: int
    sources: set[int]
    known: bool = False
    number: bool = False
    bound: bool = False

    @property
    def importance(self) -> float:
        return 3.0 * self.known + 2.0 * self.bound + min(4, len(self.sources)) + 0.5 * self.number


def must_survive(sources: Sequence[str], known: Collection[str], *, limit: int) -> tuple[str, ...]:
    """What a summary of the sources has to name, the most important first: together at most 30% of `limit` tokens.

    Known terms that occur; names that occur in two sources or in a promise, a quest, a death; numbers with what they count, and dates.
    Nothing that a correction takes back.
    """
    finds: dict[str, _Find] = {}
    whole = "\n".join(sources)
    registry = known_terms(known, whole)
    sentences = list(map(split_sentences, sources))
    for at, (told, lang) in enumerate(zip(sentences, languages(sources), strict=True)):
        for sentence in told:
            _collect(sentence, lang, at, registry, finds)
    wrong = taken_back([_unled(sentence) for told in sentences for sentence in told], language(whole))
    kept = [
        find for find in finds.values()
        if (find.known or find.bound or (len(find.sources) > 1 and not find.number))
        and (not wrong or wrong.isdisjoint(word.norm for word in read(find.text, "en")))
    ]  # fmt: skip
    chosen: list[str] = []
    for find in sorted(kept, key=lambda find: (-find.importance, find.order)):
        if estimate_tokens(", ".join([*chosen, find.text])) <= limit * SHARE:
            chosen.append(find.text)
    return tuple([text for text in chosen if not any(text != other and f" {text} " in f" {other} " for other in chosen)])


def _collect(sentence: str, lang: str, at: int, registry: Collection[Term], finds: dict[str, _Find]) -> None:
    """Adds what a sentence names and counts to what was found."""
    reading, marks = studied(sentence, lang), marks_of(sentence, lang)
    bound = bool(marks & _BOND or (marks & MARK["gain"] and marks & MARK["money"]))
    for term in terms_in(sentence, reading.words, registry):
        _note(finds, term.casefold(), _as_written(term, sentence), at, known=True, bound=bound)
    for name in reading.given(reading.sure, lang).names:
        if not any(name.key in term.words or (not term.words and name.text in term.name) for term in registry):
            _note(finds, name.key, name.text, at, bound=bound)
    counts = marks & _COUNTED or any(is_month(word, lang) or word.norm in listed("street") for word in reading.words)
    said = _unled(sentence)
    if counts and said and tells(said, lang):
        for number in find_numbers(said, lang):
            which = number[0].isalpha() and number[-1].isdigit()  # "day 8" counts nothing
            _note(finds, f"#{number.casefold()}", number, at, number=True, bound=not which or bool(marks & _BOND))


def _unled(sentence: str) -> str:
    """A sentence without what stands before it in its line."""
    led = LED.match(sentence)
    return sentence[led.end() :] if led else sentence


def _note(finds: dict[str, _Find], key: str, text: str, at: int, *, known: bool = False, number: bool = False, bound: bool) -> None:
    find = finds.setdefault(key, _Find(text, len(finds), set(), known, number))
    find.sources.add(at)
    find.bound = find.bound or bound
    if len(text) > len(find.text) and not known:
        find.text = text


def _as_written(term: str, sentence: str) -> str:
    """A known term with the capitals of the story, where the registry has none."""
    if term != term.lower():
        return term
    place = sentence.lower().find(term)
    return sentence[place : place + len(term)] if place >= 0 and len(sentence.lower()) == len(sentence) else term


# --- what is missing -------------------------------------------------------------------------------------------------

_VALUES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "dozen": 12,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1000}
_HAN_VALUES = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_HAN_NUMBER = Pattern(r"[零〇一二两兩三四五六七八九十百千万]{1,15}|\d[\d,.]{0,15}")
_TELLING = 13
"""From here on a number is told by its digits alone; a smaller one needs what it counts beside it."""


def missing(summary: str, needed: Sequence[str]) -> tuple[str, ...]:
    """Those of the needed terms that a summary does not have: whole words, whatever the case.

    One word of a name will do ("Elena" for "Elena Swift"), and 3 is three.
    """
    text = _Text(summary)
    return tuple([term for term in needed if not _has(text, _wanted(term))])


class _Wanted(NamedTuple):
    """A term as it is looked for: signs of a script without blanks, or words side by side, any of those that may stand for the whole, or a
    number and what it counts."""

    signs: str
    norms: tuple[str, ...]
    any_of: frozenset[str]
    value: int | None
    counted: frozenset[str]


@kept(1 << 9)
def _wanted(term: str) -> _Wanted:
    if CJK.search(term):
        return _Wanted(term, (), frozenset(), None, frozenset())
    parts = [part for part in read(term, "en") if part.norm]
    value, counted = _leading_number(parts)
    if value is None and parts[1:] and (value := _value(parts[-1].norm)) is not None:
        counted = parts[:-1]  # "day 8"
    any_of = frozenset([_stem(part.norm) for part in parts if _tells_apart(part, term)]) if len(parts) > 1 else frozenset()
    return _Wanted("", tuple([part.norm for part in parts]), any_of, value, frozenset([_stem(part.norm) for part in counted]))


class _Text:
    """A text in which terms are looked for: it is read once for all of them."""

    def __init__(self, text: str) -> None:
        lang = language(text)
        self.text = text
        self.words = read(text, "en" if lang in UNSPACED else lang)
        self.norms = [word.norm for word in self.words]
        self.stems = [_stem(norm) for norm in self.norms]
        self.known = frozenset(self.stems)

    @cached_property
    def capitals(self) -> frozenset[str]:
        return frozenset([stem for word, stem in zip(self.words, self.stems, strict=True) if word.plain[:1].isupper()])

    @cached_property
    def numbers(self) -> dict[int, list[set[str]]]:
        """The numbers in the text, each with what stands close by, wherever it is."""
        numbers: dict[int, list[set[str]]] = {}
        for at in range(len(self.words)):
            found, rest = _leading_number(self.words[at : at + 6])
            if found is not None:
                near = {_stem(word.norm) for word in (*self.words[max(0, at - 2) : at], *rest[:4])}
                numbers.setdefault(found, []).append(near)
        return numbers

    @cached_property
    def han_numbers(self) -> list[tuple[int, str]]:
        return _han_numbers(self.text)


def _has(text: _Text, wanted: _Wanted) -> bool:
    if wanted.signs:
        return _has_signs(text, wanted.signs)
    if wanted.value is not None:
        return _has_number(text, wanted.value, wanted.counted)
    return not wanted.norms or _has_run(text, wanted.norms) or not wanted.any_of.isdisjoint(text.capitals)


def _tells_apart(part: Word, term: str) -> bool:
    """Whether one word of a name may stand for the whole: no title, no small word; "Key" not for "silver Key"."""
    return len(part.norm) > 2 and not part.marks & (PERSON | STOP) and (part.plain[0].isupper() or term.islower())


def _has_signs(text: _Text, term: str) -> bool:
    """三百枚金币 is also 300枚金币: the same number, and if it is a small one before the same sign."""
    parts = [part for part in re.split("[·・]", term) if len(part) > 1]
    if any(part in text.text for part in parts or [term]):
        return True
    numbers = _han_numbers(term)
    return bool(numbers) and all(
        any(have == value and (value >= _TELLING or sign == unit) for have, sign in text.han_numbers) for value, unit in numbers
    )


def _stem(norm: str) -> str:
    return norm[:-1] if len(norm) > 3 and norm.endswith("s") else norm


def _has_run(text: _Text, wanted: Sequence[str]) -> bool:
    """Whether words stand side by side; the last may be a plural or a genitive."""
    *first, last = wanted
    stem, size = _stem(last), len(first)
    if stem not in text.known:
        return False
    return any(text.stems[at + size] == stem and text.norms[at : at + size] == first for at in range(len(text.norms) - size))


def _value(word: str) -> int | None:
    if word in _VALUES:
        return _VALUES[word]
    if "-" in word:
        tens, _, unit = word.partition("-")
        return _VALUES[tens] + _VALUES[unit] if tens in _VALUES and unit in _VALUES else None
    if not word[:1].isdigit():
        return None
    digits = re.sub(r"(?<=\d)[,.'](?=\d{3}\b)", "", word)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def _leading_number(words: Sequence[Word]) -> tuple[int | None, Sequence[Word]]:
    """The number with which words begin ("three hundred", "300"), and what follows it."""
    if not words:
        return None, words
    value = _value(words[0].norm)
    if value is None:
        return None, words
    at = 1
    while at < len(words) and words[at].norm in _SCALES:
        value *= _SCALES[words[at].norm]
        at += 1
    return value, words[at:]


def _has_number(text: _Text, value: int, counted: frozenset[str]) -> bool:
    """Whether a number stands in a text: a telling one by itself, another with what it counts close by."""
    found = text.numbers.get(value, ())
    return bool(found) and (value >= _TELLING or not counted or any(not counted.isdisjoint(near) for near in found))


def _han_numbers(text: str) -> list[tuple[int, str]]:
    """The numbers in a Chinese or Japanese text, each with the sign behind it."""
    numbers: list[tuple[int, str]] = []
    for match in _HAN_NUMBER.finditer(text):
        total = part = 0
        for sign in match[0]:
            if sign in _HAN_SCALES:
                total, part = ((total + part or 1) * 10000, 0) if sign == "万" else (total + (part or 1) * _HAN_SCALES[sign], 0)
            elif sign in _HAN_VALUES or (sign.isascii() and sign.isdigit()):
                part = part * 10 + (_HAN_VALUES[sign] if sign in _HAN_VALUES else int(sign))
        numbers.append((total + part, text[match.end() : match.end() + 1]))
    return numbers


_COUNT = Pattern(
    r"(?<![\w.,:/%$€£#+-])\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+(?![\w:/%-]|[.,]\d)|(?<![\w.,:/%#+-])\d{1,15}(?![\w:/%°-]|[.,]\d)"
)
_LIST_COUNTER = Pattern(r"^\s*\(?\d{1,2}[.)]\s", re.M)
_ANY_DIGITS = Pattern(r"\d[\d,.' \u00a0\u202f]*")
_SPELT = Pattern(
    r"hundert|tausend|\w(?:zig|ßig|zehn)\b|\b(?:cent|mille|vingt|trente|quarante|cinquante|soixante)|cient|\bmil\b|(?:einte|enta|ecis\w+|veinti\w+)\b"
    r"|сот\w*\b|сто\b|\bсорок|тысяч|дцать|десят|hundred|thousand|dozen|score|million",
    re.I,
)
_ORDINALS = {
    "once": 1, "first": 1, "twice": 2, "second": 2, "both": 2, "pair": 2, "couple": 2, "thrice": 3, "third": 3, "fourth": 4, "fifth": 5,
    "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "twentieth": 20,
}  # fmt: skip


def strange_numbers(summary: str, sources: Sequence[str]) -> tuple[str, ...]:
    """The numbers of a summary, in digits, that none of its sources has, however it writes them. One of a list counts nothing, nor does a
    time, a part or a small one of things that the sources do not count; "300" may be three hundred."""
    text = _LIST_COUNTER.sub("", summary)
    found = {match[0]: int(re.sub(r"\D", "", match[0])) for match in _COUNT.finditer(text)}
    if not found:
        return ()
    told = "\n".join(sources)
    known = _known_numbers(told)
    lang = language(told)
    strange = [number for number, value in found.items() if value not in known and not _is_date(text, number, lang)]
    if not strange or (lang != "en" and lang not in UNSPACED and _SPELT.search(told)):
        return ()
    counted = {_stem(word.norm) for word in _behind_numbers(told, lang)}
    return tuple([number for number in strange if found[number] >= _TELLING or _counts_any(text, number, counted, lang)])


def _known_numbers(told: str) -> set[int]:
    """The numbers in a text, in digits or, in English, Chinese and Japanese, in words."""
    known = {int(digits) for match in _ANY_DIGITS.finditer(told) for digits in _readings(match[0]) if len(digits) < 16}
    known.update(value for value, _ in _han_numbers(told) if value)
    total = part = 0
    for word in [*read(told.replace("-", " "), "en"), None]:
        norm = word.norm if word is not None else ""
        value = _value(norm)
        if value is None and norm in _SCALES:
            part = (part or 1) * _SCALES[norm]
            total, part = (total + part, 0) if norm == "thousand" else (total, part)
            known.update({part, total + part})
        elif value is not None:
            part += value
            known.update({value, part, total + part})
        elif norm != "and":
            total = part = 0
        known.update({_ORDINALS[norm]} if norm in _ORDINALS else ())
    return known


def _readings(digits: str) -> Iterator[str]:
    """The numbers for which some digits with separators may stand: "1,000" for a thousand; "3. 12" for three and for twelve."""
    yield re.sub(r"\D", "", digits)
    yield from re.findall(r"\d+", digits)


def _behind_numbers(text: str, lang: str) -> Iterator[Word]:
    """What a text counts: the words right behind its numbers."""
    words = read(text, lang if lang not in UNSPACED else "en")
    return (after for word, after in pairwise(words) if word.marks & NUMBER and not after.marks & (STOP | NUMBER))


def _is_date(text: str, number: str, lang: str) -> bool:
    """Whether a number only says which day, month or room it is: "day 14", "14 June"."""
    before, _, after = text.partition(number)
    around = [*read(before[-24:], lang)[-1:], *read(after[:24], lang)[:1]] if lang not in UNSPACED else []
    return any(is_month(word, lang) for word in around) or (
        bool(before) and bool(around) and belongs(around[0].norm, "counter", lang) and not around[0].marks & BREAKS
    )


def _counts_any(text: str, number: str, counted: Collection[str], lang: str) -> bool:
    """Whether a small number counts what the sources count, too."""
    after = text.partition(number)[2].lstrip()
    words = read(after.partition("\n")[0][:60], lang if lang not in UNSPACED else "en")
    return bool(words) and after[:1].isalpha() and _stem(words[0].norm) in counted


# --- what is added ---------------------------------------------------------------------------------------------------

_ALSO = {"de": "Außerdem: ", "fr": "Aussi : ", "es": "También: ", "ru": "Также: ", "zh": "另有：", "ja": "ほかに："}


def also(lang: str) -> str:
    """What stands before things that are only named."""
    return _ALSO.get(lang, "Also: ")


def complete(summary: str, lost: Sequence[str]) -> str:
    """The summary with a short last sentence that names what it had lost."""
    if not lost:
        return summary
    lang = language(summary or ", ".join(lost))
    told = summary.rstrip()
    if told and told[-1].isalnum():
        told += "。" if lang in UNSPACED else "."
    named = also(lang) + ("、" if lang in UNSPACED else ", ").join(lost) + ("。" if lang in UNSPACED else ".")
    return f"{told}{'' if lang in UNSPACED or not told else ' '}{named}"
