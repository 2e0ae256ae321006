"""Whether a model's summary can stand for its turns: what must survive, what is missing, and what is no summary at all.

Pure: texts in, texts out. Ranked and capped, so that names and numbers never crowd out the telling: at most 30% of a fold.
The checks know words, not meaning, and give the benefit of the doubt: a paraphrase, a short answer or a translation passes; an
apology, an error page or noise does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from talekeeper import rim
from talekeeper.errors import InvalidInput
from talekeeper.summarize.extractive import tells
from talekeeper.summarize.names import Term, find_names, find_numbers, known_terms, marks_of, studied, terms_in
from talekeeper.summarize.speech import split_sentences
from talekeeper.summarize.words import CJK, MARK, PERSON, STOP, UNSPACED, Pattern, Word, language, languages, read
from talekeeper.tokens import estimate_tokens

SHARE = 0.3
"""How much of a fold what must survive may fill."""

_BOND = MARK["promise"] | MARK["quest"] | MARK["threat"] | MARK["death"] | MARK["decide"] | MARK["reveal"] | MARK["betray"]
_COUNTED = _BOND | MARK["gain"] | MARK["money"] | MARK["time"]

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

    Known terms that occur; names that occur in two sources or in a promise, a quest, a death; numbers that count something.
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
    return tuple([text for text in chosen if not any(other.startswith(f"{text} ") for other in chosen)])


def _collect(sentence: str, lang: str, at: int, registry: Collection[Term], finds: dict[str, _Find]) -> None:
    """Adds what a sentence names and counts to what was found."""
    reading, marks = studied(sentence, lang), marks_of(sentence, lang)
    bound = bool(marks & _BOND or (marks & MARK["gain"] and marks & MARK["money"]))
    for term in terms_in(sentence, reading.words, registry):
        _note(finds, term.casefold(), _as_written(term, sentence), at, known=True, bound=bound)
    for name in reading.given(reading.sure, lang).names:
        if not any(name.key in term.words or (not term.words and name.text in term.name) for term in registry):
            _note(finds, name.key, name.text, at, bound=bound)
    if marks & _COUNTED and tells(sentence, lang):
        for number in find_numbers(sentence):
            _note(finds, f"#{number.casefold()}", number, at, number=True, bound=True)


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
    lang = language(summary)
    words = read(summary, "en" if lang in UNSPACED else lang)
    return tuple(term for term in needed if not (_has_cjk(summary, term) if CJK.search(term) else _has(words, term)))


def _has(words: Sequence[Word], term: str) -> bool:
    norms = [word.norm for word in words]
    parts = [part for part in read(term, "en") if part.norm]
    value, counted = _leading_number(parts)
    if value is not None:
        return _has_number(words, value, [part.norm for part in counted])
    if not parts or _find_run(norms, [part.norm for part in parts]):
        return True
    capitals = {_stem(word.norm) for word in words if word.plain[:1].isupper()}
    return len(parts) > 1 and any(_stem(part.norm) in capitals for part in parts if _tells_apart(part, term))


def _tells_apart(part: Word, term: str) -> bool:
    """Whether one word of a name may stand for the whole: no title, no small word; "Key" not for "silver Key"."""
    return len(part.norm) > 2 and not part.marks & (PERSON | STOP) and (part.plain[0].isupper() or term.islower())


def _has_cjk(summary: str, term: str) -> bool:
    parts = [part for part in re.split("[·・]", term) if len(part) > 1]
    return any(part in summary for part in parts or [term]) or _has_han_number(summary, term)


def _stem(norm: str) -> str:
    return norm[:-1] if len(norm) > 3 and norm.endswith("s") else norm


def _find_run(norms: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether words stand side by side; the last may be a plural or a genitive."""
    *first, last = wanted
    for at in range(len(norms) - len(first)):
        if _stem(norms[at + len(first)]) == _stem(last) and list(norms[at : at + len(first)]) == first:
            return True
    return False


def _value(word: str) -> int | None:
    if word in _VALUES:
        return _VALUES[word]
    if "-" in word:
        tens, _, unit = word.partition("-")
        return _VALUES[tens] + _VALUES[unit] if tens in _VALUES and unit in _VALUES else None
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


def _has_number(words: Sequence[Word], value: int, counted: Sequence[str]) -> bool:
    """Whether a number stands in a text: a telling one by itself, another with what it counts close by."""
    for at in range(len(words)):
        found, rest = _leading_number(words[at : at + 6])
        if found == value:
            near = {_stem(word.norm) for word in (*words[max(0, at - 2) : at], *rest[:4])}
            if value >= _TELLING or not counted or any(_stem(norm) in near for norm in counted):
                return True
    return False


def _han_numbers(text: str) -> Iterator[tuple[int, int]]:
    """The numbers in a Chinese or Japanese text, each with the place where it ends."""
    for match in _HAN_NUMBER.finditer(text):
        total = part = 0
        for sign in match[0]:
            if sign in _HAN_SCALES:
                total, part = ((total + part or 1) * 10000, 0) if sign == "万" else (total + (part or 1) * _HAN_SCALES[sign], 0)
            elif sign in _HAN_VALUES or (sign.isascii() and sign.isdigit()):
                part = part * 10 + (_HAN_VALUES[sign] if sign in _HAN_VALUES else int(sign))
        yield total + part, match.end()


def _has_han_number(summary: str, term: str) -> bool:
    """三百枚金币 is also 300枚金币: the same number, and if it is a small one before the same sign."""
    found = [(value, summary[end : end + 1]) for value, end in _han_numbers(summary)]
    wanted = [(value, term[end : end + 1]) for value, end in _han_numbers(term)]
    return bool(wanted) and all(
        any(have == value and (value >= _TELLING or sign == unit) for have, sign in found) for value, unit in wanted
    )


# --- what is added ---------------------------------------------------------------------------------------------------

_ALSO = {"de": "Außerdem: ", "fr": "Aussi : ", "es": "También: ", "ru": "Также: ", "zh": "另有：", "ja": "ほかに："}


def complete(summary: str, lost: Sequence[str]) -> str:
    """The summary with a short last sentence that names what it had lost."""
    if not lost:
        return summary
    lang = language(summary or ", ".join(lost))
    told = summary.rstrip()
    if told and told[-1].isalnum():
        told += "。" if lang in UNSPACED else "."
    also = _ALSO.get(lang, "Also: ") + ("、" if lang in UNSPACED else ", ").join(lost) + ("。" if lang in UNSPACED else ".")
    return f"{told}{'' if lang in UNSPACED or not told else ' '}{also}"


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
    return unfit(text, told) or _foreign(text, told) or _invented(text, told)


def _is_shorter(text: str, sources: Sequence[str]) -> bool:
    """Whether it takes less room than its sources, each counted as one line, which a fold is shown as. Of a few words nothing can be
    left out: they may come back as they were."""
    given, taken = (estimate_tokens(" ".join(one.split())) for one in (" ".join(sources), text))
    return taken < given or taken == given <= _FEW


def unfit(text: str, told: str) -> str | None:
    """Why a text is no prose at all but an error or noise, or None. What stands in `told` may be said again."""
    return _error(text, told) or _noise(text)


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


def _foreign(text: str, told: str) -> str | None:
    """Nothing in common with the sources, though it is long enough, and in their language or in none."""
    lang, source_lang = language(text, ""), language(told, "")
    content = _content(text, lang or "en")
    if lang not in ("", source_lang):
        return None
    if len(content) < (8 if lang in UNSPACED else 5) and not _is_babble(text, content):
        return None
    common = content & _content(told, source_lang or "en")
    if not common or (len(content) >= 40 and len(common) * 25 < len(content)):
        return "it has nothing in common with what it was made from"
    return None


def shares_nothing(summary: str, sources: Sequence[str]) -> bool:
    """Whether a summary, however short, has not a word that carries meaning in common with its sources, though it is in their language."""
    told = "\n".join(sources)
    lang = language(told)
    return language(summary, lang) == lang and _content(summary, lang).isdisjoint(_content(told, lang))


def _invented(text: str, told: str) -> str | None:
    """Someone whom the sources do not know, in a text that has less than half of its words from them."""
    lang = language(told)
    if language(text, lang) != lang:
        return None
    content, known = _content(text, lang), told.lower()
    if 2 * len(content & _content(told, lang)) >= len(content):
        return None
    stranger = next((name for name in find_names(text) if not any(word.lower() in known for word in name.split())), None)
    return f"it tells of {stranger}, whom what it was made from does not know" if stranger else None


def _is_babble(text: str, content: set[str]) -> bool:
    """Whether a text says the same few words over and over."""
    return len(text.split()) >= 4 * max(1, len(content))


def _content(text: str, lang: str) -> set[str]:
    """The words that carry a text, cut to their beginnings; of Chinese and Japanese, pairs of signs."""
    if lang in UNSPACED:
        signs = "".join(CJK.findall(text))
        return {signs[at : at + 2] for at in range(len(signs) - 1)}
    return {word.norm[:5] for word in read(text, lang) if len(word.norm) > 2 and not word.marks & STOP and word.norm.strip("-'")}
