"""Whether a model's summary can stand for its turns: what must survive, what is missing, and what is no summary at all.

Pure: texts in, texts out. Ranked and capped, so that names and numbers never crowd out the telling: at most 30% of a fold.
The checks know words, not meaning, and give the benefit of the doubt: a short answer passes that has a word, a name or a number of
its sources, and so does a translation; an apology, an error page or noise does not, nor what has nothing in common with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple
from unicodedata import combining, normalize

from talekeeper import rim
from talekeeper.errors import InvalidInput
from talekeeper.kept import kept
from talekeeper.summarize.extractive import tells
from talekeeper.summarize.names import Term, find_names, find_numbers, is_month, known_terms, marks_of, studied, terms_in
from talekeeper.summarize.sentences import split_sentences
from talekeeper.summarize.words import CJK, MARK, PERSON, SMALL, STOP, UNSPACED, Pattern, Word, language, languages, listed, read
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
    """
    finds: dict[str, _Find] = {}
    registry = known_terms(known, "\n".join(sources))
    for at, (source, lang) in enumerate(zip(sources, languages(sources), strict=True)):
        for sentence in split_sentences(source):
            _collect(sentence, lang, at, registry, finds)
    kept = [find for find in finds.values() if find.known or find.bound or (len(find.sources) > 1 and not find.number)]
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
    led = LED.match(sentence)
    said = sentence[led.end() :] if led else sentence
    if counts and said and tells(said, lang):
        for number in find_numbers(said, lang):
            which = number[0].isalpha() and number[-1].isdigit()  # "day 8" counts nothing
            _note(finds, f"#{number.casefold()}", number, at, number=True, bound=not which or bool(marks & _BOND))


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


# --- what is no summary ----------------------------------------------------------------------------------------------

_CANNOT = r"(?:can't|cannot|can not|unable|won't|not able)"
_REFUSAL = Pattern(
    rf"\W*(?:(?:i'?m|i am) (?:really |very |so |truly )?sorry,?(?: but)?,? (?:i|as an ai|that)\b.{{0,30}}{_CANNOT}"
    rf"|sorry,? (?:but )?(?:i|as an ai)\b.{{0,20}}{_CANNOT}|(?:i apologi[sz]e|my apologies)\b.{{0,40}}(?:{_CANNOT}|but)"
    r"|(?:unfortunately,? )?(?:i|we) (?:can't|cannot|can not|am unable to|am not able to|won't) (?:assist|help with|provide|summari[sz]e"
    r"|comply|fulfil|continue with|process|create|generate|complete|access|discuss|engage|do that|answer)"
    r"|as an? (?:ai|artificial|large language|language model)|(?:i am|i'm) an? (?:ai|language model)"
    r"|(?:please|could you|can you)(?: please)? (?:provide|share|paste|send|give me)\b"
    r".{0,40}(?:text|turns?|conversation|content|story|transcript|summar)"
    r"|(?:there is|there's|i see|you haven't provided|no) (?:no )?(?:text|content|conversation)\b.{0,20}to summari[sz]e"
    r"|es tut mir leid,? (?:aber )?ich (?:kann|darf)|als (?:ki|künstliche|sprachmodell)\b|ich kann (?:dabei|das|diese anfrage) nicht"
    r"|(?:je suis )?désolée?,? (?:mais )?je ne (?:peux|puis)|en tant qu'(?:ia|intelligence)\b"
    r"|lo siento,? (?:pero )?no (?:puedo|me es)|como (?:una )?(?:ia|inteligencia artificial|modelo de lenguaje)\b"
    r"|(?:извините|простите|к сожалению),? (?:но )?я не могу|как (?:языковая модель|ии)\b"
    r"|(?:很?抱歉|对不起)[，,].{0,8}(?:无法|不能)|作为(?:一个)?(?:AI|人工智能|语言模型)"
    r"|申し訳(?:ありません|ございません)が.{0,40}(?:でき|ませ)|(?:私は)?AI(?:言語モデル)?として)",
    re.I | re.S,
)
_ERROR = Pattern(
    r"traceback \(most recent call last\)|\b(?:rate.?limit(?:ed|s)?|too many requests|internal server error|bad gateway|service unavailable"
    r"|gateway time-?out|insufficient_quota|quota exceeded|invalid api key|incorrect api key|unauthorized|context.?length|maximum context"
    r"|overloaded_error|model is overloaded|connection (?:refused|reset|timed out|error)|re(?:ad|quest) timed out|apierror|httperror"
    r"|statuscode)\b|\b(?:status|http|code|error)\W{0,3}(?:4\d\d|5\d\d)\b|\b(?:4\d\d|5\d\d) (?:error|client error|server error)\b",
    re.I,
)
_ERROR_HEAD = Pattern(
    r"\s*(?:\[?(?:error|exception|fatal|warning|err)\]?\s*[:(\[-]|\w*(?:error|exception)\b\s*[:(]|<(?:!doctype|html|\?xml|head|body)\b)",
    re.I,
)
_NOTHING = Pattern(r"\W*(?:null|none|undefined|nan|n/?a|true|false|ok|okay|test|todo|summary)?\W*", re.I)
_REPEATED = Pattern(r"(.)\1{15,}|(.{2,12}?)\2{9,}", re.S)
_EMPTY = Pattern(
    r"(?:(?:sure|okay|ok|well)\W+)?(?:(?:there (?:is|was) )?nothing (?:\w+ ){0,2}?(?:happen(?:s|ed)|to (?:report|tell|summari[sz]e))"
    r"|(?:i|we) (?:refuse|decline))\W*",
    re.I,
)
_IDLE_SIGNS = "的了着过是有我你您他她它们这那不没也都就和与个一么什吗呢吧很何"
_IDLE_PAIR = Pattern(rf"[\u3041-\u309f]{{2}}|[{_IDLE_SIGNS}]|.[{_IDLE_SIGNS}]")
_OTHER_SCRIPTS = "\u0590"
"""From here on words have what they mean elsewhere than at their beginning, or no blanks between them."""
_RUN = 6
"""So many words in a row are no accident."""
_FEW = 40
"""So many tokens are about two sentences."""


def refuse(summary: str, sources: Sequence[str], asked: str = "") -> str | None:
    """Why a model's answer cannot stand for its sources, or None if it can. `asked`: what the model was told to do."""
    text = summary.strip().replace("’", "'")
    told = "\n".join(sources).replace("’", "'")
    if not text:
        return "it is empty"
    if not _is_shorter(text, sources):
        return "it is no shorter than what it was made from"
    try:
        rim.text(text, "it")
    except InvalidInput as exc:
        return str(exc)
    if declines(text, told):
        return "the model declines"
    if recites(text, told, asked):
        return "it repeats what the model was told to do"
    return unfit(text, told) or _void(text, told) or _foreign(text, told) or _invented(text, told)


def _is_shorter(text: str, sources: Sequence[str]) -> bool:
    """Whether it takes less room than its sources, each counted as one line, which a fold is shown as. Of a few words nothing can be
    left out: they may come back as they were."""
    given, taken = (estimate_tokens(" ".join(one.split())) for one in (" ".join(sources), text))
    return taken < given or taken == given <= _FEW


def unfit(text: str, told: str) -> str | None:
    """Why a text is no prose at all but an error or noise, or None. What stands in `told` may be said again."""
    return _error(text, told) or _noise(text)


def is_error(text: str, told: str) -> bool:
    """Whether a text is that of an error, and not in words of the story: whoever gives it has not answered."""
    return bool(text) and _error(text.replace("’", "'"), told.replace("’", "'")) is not None


def declines(text: str, told: str) -> bool:
    """Whether a model refuses to answer, and not in words of the story."""
    match = _REFUSAL.match(text)
    return match is not None and match[0].strip().lower() not in told.lower()


def recites(text: str, told: str, asked: str) -> bool:
    """Whether a text has a run of words from what was asked, and not from the story: small models say their instructions again."""
    return not _runs(text).isdisjoint(_runs(asked) - _runs(told))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def _error(text: str, told: str) -> str | None:
    """An error, unless the story itself speaks so."""
    if text[0] in "{[" and _is_json(text):
        return "it is JSON, not prose"
    head = _ERROR_HEAD.match(text)
    if head and head[0].strip().lower() not in told.lower():
        return "it is an error message"
    error = _ERROR.search(text[:400])
    if error and error[0].lower() not in told.lower() and (len(text) < 400 or error.start() < 80):
        return "it is an error message"
    return None


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return bool(re.match(r'[{\[]\s*"?(?:error|detail|message|code|status)"?\s*:', text, re.I))


def _noise(text: str) -> str | None:
    """No words, next to no letters, or the same over and over."""
    letters = sum(char.isalnum() for char in text)
    signs = sum(not char.isspace() for char in text)
    if letters * 2 < signs or not any(char.isalpha() for char in text) or _NOTHING.fullmatch(text):
        return "it has no words"
    words = text.lower().split()
    if (len(set(text)) < 4 and len(text) > 5) or _REPEATED.search(text) or (len(words) >= 20 and len(set(words)) * 6 < len(words)):
        return "it repeats itself"
    return None


def _void(text: str, told: str) -> str | None:
    """An answer that tells nothing in any story, unless this one says so."""
    said = text.strip(".!? ").lower()
    return "it tells nothing" if _EMPTY.fullmatch(text) and said not in told.lower() else None


def _foreign(text: str, told: str) -> str | None:
    """Nothing in common with the sources, however short it is. A translation has other words, and may."""
    lang = language(told, "")
    if language(text, lang) != lang:
        return None
    content, known = content_of(text, lang or "en"), content_of(told, lang or "en")
    common = common_to(content, known)
    if known and (not common or (len(content) >= 40 and len(common) * 25 < len(content))):
        return "it has nothing in common with what it was made from"
    return None


def _invented(text: str, told: str) -> str | None:
    """Someone whom the sources do not know, in a text that has less than half of its words from them."""
    lang = language(told)
    if language(text, lang) != lang:
        return None
    content, known = content_of(text, lang), told.lower()
    if 2 * len(common_to(content, content_of(told, lang))) >= len(content):
        return None
    stranger = next((name for name in find_names(text) if not any(word.lower() in known for word in name.split())), None)
    return f"it tells of {stranger}, whom what it was made from does not know" if stranger else None


def common_to(content: set[str], known: set[str]) -> set[str]:
    """What of a text's content the sources have too, with a letter more or less: "rents" for "rent", "Haus" for "Häuser"."""
    shorter = {root[:-1] for root in known if len(root) > 3}
    return {root for root in content if root in known or root in shorter or (len(root) > 3 and root[:-1] in known)}


def content_of(text: str, lang: str) -> set[str]:
    """The words that carry a text, its names and its numbers; words cut to their beginnings, of scripts without blanks pairs of signs."""
    if lang in UNSPACED:
        return {*_pairs("".join(CJK.findall(text))), *re.findall(r"[a-z]{2,}|\d+", text.lower())}
    words = [word for word in read(text, lang) if word.norm.strip("-'") and not word.marks & SMALL]
    told = [word.norm for word in words if len(word.norm) > 2 or word.norm[0].isdigit() or word.plain[:2].istitle()]
    return set().union(*(_pairs(norm) if norm[0] >= _OTHER_SCRIPTS else [_root(norm)] for norm in told))


def _root(norm: str) -> str:
    """A word's beginning, without marks on its letters: what most of its forms have in common."""
    if norm.isascii():
        return norm[:5]
    return "".join([letter for letter in normalize("NFD", norm) if not combining(letter)])[:5]


def _pairs(signs: str) -> list[str]:
    """Signs side by side, but for those that only hold a sentence together."""
    return [pair for pair in map("".join, pairwise(signs)) if not _IDLE_PAIR.match(pair)]
