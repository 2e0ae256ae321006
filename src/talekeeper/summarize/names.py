"""What a sentence is about, without a model: its names, its numbers, and the known things in it.

Capitals tell names in English, French, Spanish and Russian, but not at the start of a sentence, where something else must
speak for a name. German has capitals on all nouns: there a name needs a title, an apposition or a place without an article.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.summarize.words import (
    BREAKS,
    CJK,
    COMMON,
    CUE_MARKS,
    ELISION,
    ENDS,
    LISTED,
    MARK,
    MONEY,
    NOT_ALONE,
    NUMBER,
    OPENS,
    OWNS,
    PERSON,
    PLACE,
    STOP,
    THING,
    TIME,
    UNSPACED,
    Pattern,
    Row,
    Word,
    belongs,
    language,
    listed,
    normalise,
    phrases_in,
    read,
    read_cjk,
    side_by_side,
)

_TITLE = PERSON | MARK["starter"]
_NEAR = 4
"""Words of one name are nearer to each other than this."""
_LINKS = frozenset({("of", "the"), ("de", "la"), ("de", "los"), ("de", "las"), ("de", "l"), ("von", "der"), ("von", "den"), ("van", "der")})
_NOT_A_NAME = Pattern(r"(?:ing|ly|ness|ment|tion|less|ful)$")
_VERB_AFTER = {
    "en": Pattern(r"(?:[^s]s|ed|is|was|has|had|will|would|can|could|must|and|or|who|does|did|to|of|from|[a-z]+n't)$"),
    "fr": Pattern(r"(?:e|t|a|d|ut|it|et|ont|ent)$"),
    "es": Pattern(r"(?:a|e|ó|y|n|dio|fue)$"),
    "ru": Pattern(r"(?:ет|ит|ют|ут|ат|ят|л|ла|ли|ло|ся|сь|и|ет)$"),
    "de": Pattern(r"(?:t|te|ten|ß|ief|am|ab|ah|at|ar|und)$"),
}  # fmt: skip
_GERMAN_NOUN = Pattern(r"(?:ung|heit|keit|schaft|nis|tion|tum|chen|lein|ling|ung|ungen|heiten|stück|stücke|stücken|ien|ern|eln)$")


# --- known terms -----------------------------------------------------------------------------------------------------


class Term(NamedTuple):
    """A known name: as it is called, its words for comparing (none in a script without blanks), and what to probe a text for."""

    name: str
    words: tuple[str, ...]
    probe: str

    def among(self, norms: Sequence[str]) -> bool:
        size = len(self.words)
        return any(norms[at] == self.words[0] and tuple(norms[at : at + size]) == self.words for at in range(len(norms) - size + 1))


@kept(256)
def _terms(known: frozenset[str]) -> tuple[Term, ...]:
    found: list[Term] = []
    for name in sorted(known, key=lambda name: (-len(name), name)):
        words = tuple(norm for piece in name.split() if (norm := normalise(piece)))
        if words:
            found.append(Term(name, (), name.strip().lower()) if CJK.search(name) else Term(name, words, words[0]))
    return tuple(found)


def known_terms(known: Collection[str], text: str) -> tuple[Term, ...]:
    """Those known names that may be in a text, in a form for looking them up; longest first."""
    if not known:
        return ()
    lowered = text.lower().replace("ё", "е").replace("’", "'")
    return tuple(term for term in _terms(known if isinstance(known, frozenset) else frozenset(known)) if term.probe in lowered)


def terms_in(text: str, words: Sequence[Word], known: Iterable[Term]) -> list[str]:
    """The known names in a text that was read: whole words, whatever the case; in a script without blanks, anywhere."""
    lowered = text.lower()
    if "ё" in lowered:
        lowered = lowered.replace("ё", "е")
    found: list[str] = []
    norms: list[str] = []
    for term in known:
        if term.probe in lowered:
            norms = norms or [word.norm for word in words]
            if not term.words or term.among(norms):
                found.append(term.name)
    return found


# --- names -----------------------------------------------------------------------------------------------------------


def _joins(row: Row, left: int, right: int) -> bool:
    """Whether two capitalised words that are near each other belong to one name."""
    marks, norms = row.marks, row.norms
    if marks[left] & BREAKS or marks[right] & OPENS:
        return False
    if right > left + 1 and (marks[left + 1] | marks[right - 1]) & BREAKS:
        return False
    if marks[left] & OWNS:
        return right == left + 1 and bool(marks[right] & PLACE or norms[right] in listed("site"))
    if right == left + 1:
        return True
    if right == left + 2:
        between = norms[left + 1]
        return between in listed("connector") or (between == "the" and norms[right] in listed("epithet"))
    return (norms[left + 1], norms[left + 2]) in _LINKS


def _runs(row: Row) -> list[list[int]]:
    """The places of capitalised words that may be names, those of one name together."""
    runs: list[list[int]] = []
    last = -_NEAR
    for at in row.capitals:
        if at - last < _NEAR and _joins(row, last, at):
            runs[-1].append(at)
        else:
            runs.append([at])
        last = at
    return runs


def _opens_sentence(row: Row, at: int) -> bool:
    return at == 0 or bool(row.marks[at - 1] & ENDS or row.marks[at] & OPENS) or not row.norms[at - 1]


def _strip_start(row: Row, run: list[int], lang: str) -> list[int]:
    """A run at the start of a sentence, without its first word if that is capitalised only because it stands there."""
    marks = row.marks[run[0]]
    if marks & LISTED:
        return run if len(run) > 1 and marks & (PERSON | PLACE | THING) else run[1:]
    if lang == "en" and _NOT_A_NAME.search(row.norms[run[0]]):
        return run[1:]
    return run


def _is_name(row: Row, run: list[int], lang: str, sure: Collection[str]) -> bool:
    at = run[0]
    marks, norm = row.marks[at], row.norms[at]
    if norm in sure:
        return True
    if len(row.words[at].plain) < 2:
        return len(run) > 1
    if lang == "de":
        return _is_german_name(row, run)
    if len(run) > 1:
        return True
    if not _opens_sentence(row, at):
        return not marks & NOT_ALONE
    if marks & OWNS or (marks & BREAKS and not marks & ENDS):
        return True
    if at + 1 == len(row.words) or marks & ENDS or "-" in norm:
        return False
    after = row.words[at + 1]
    if lang != "en" and after.marks & STOP:
        return after.norm in listed("copula")
    return bool(after.marks & CUE_MARKS or after.norm in listed("past") or _VERB_AFTER[lang].search(after.plain.lower()))


def _is_german_name(row: Row, run: list[int]) -> bool:
    """All nouns have capitals: a title, an apposition, or a place that a common noun would not have."""
    at, last = run[0], run[-1]
    if row.marks[last] & COMMON or _GERMAN_NOUN.search(row.norms[last]):
        return False
    if len(run) > 1:
        return True
    if _opens_sentence(row, at):
        after = row.norms[at + 1] if at + 1 < len(row.norms) else ""
        return bool(_VERB_AFTER["de"].search(after)) and not row.marks[at] & ENDS
    return row.norms[at - 1] in listed("before") or bool(row.marks[at - 1] & (PERSON | PLACE))


class Name(NamedTuple):
    """A name among words that were read: the places of its words (none in a script without blanks), and the word that tells it from
    others, "Voss" of "Captain Voss"."""

    row: Row
    places: list[int]
    key: str

    @property
    def text(self) -> str:
        """The name as it was written; put together when it is asked for, which is seldom."""
        return _surface(self.row, self.places) if self.places else self.key


def _find(row: Row, lang: str, sure: Collection[str] = ()) -> tuple[list[list[int]], list[str], list[str], list[str]]:
    """The names among words that were read, in order: the places of each, and its key; `sure` holds words that are names wherever they
    have a capital. Then those that have a capital within a sentence, and so are names at the start of another too (not in German, where
    any noun has); and the first words of runs that are not in a name."""
    marks, norms, german = row.marks, row.norms, lang == "de"
    named: list[list[int]] = []
    keys: list[str] = []
    within: list[str] = []
    doubtful: list[str] = []
    for run in _runs(row):
        first, several = run[0], len(run) > 1
        starts = first == 0 or marks[first - 1] & ENDS or marks[first] & OPENS or not norms[first - 1]
        if starts or german:
            kept = _strip_start(row, run, lang) if starts else run
            if german and len(kept) > 1 and marks[kept[0]] & LISTED and not marks[kept[0]] & PERSON:
                kept = kept[1:]
            if kept and not _is_name(row, kept, lang, sure):
                kept = []
        else:
            kept = run if several or not (marks[first] & NOT_ALONE or len(row.words[first].plain) < 2) else []
        if not (starts or german or marks[first] & COMMON):
            within.append(norms[first])
        if several and not german:
            within += [norms[at] for at in run[1:] if norms[at - 1] and not marks[at] & COMMON]
        if not kept or kept[0] != first:
            doubtful.append(norms[first])
        if kept:
            for key in kept:
                if not marks[key] & _TITLE:
                    break
            else:
                key = kept[0]
            named.append(kept)
            keys.append(norms[key])
    return named, keys, within, doubtful


def _surface(row: Row, run: list[int]) -> str:
    first, last = run[0], run[-1]
    if first == last:
        return _without_article(row.words[first].plain)
    words = row.words[first : last + 1]
    plains = [word.plain + "'s" if word.marks & OWNS and at < last else word.plain for at, word in enumerate(words, first)]
    plains[0] = _without_article(plains[0])
    return " ".join(plains)


def _without_article(plain: str) -> str:
    """ "Ordre" of "l'Ordre"; "D'Artagnan" stays."""
    return plain if plain[0].isupper() and plain[0] != "L" else ELISION.sub("", plain)


_KATAKANA = Pattern(r"[\u30a1-\u30fa][\u30a1-\u30ff]+")
_QUOTED = Pattern(r"[「『《“]([^「」『』《》“”。！？，、\s]{2,8})[」』》”]")
_HONOURED = Pattern(
    r"([\u4e00-\u9fff\u30a1-\u30ff]{1,5}?)(?:さん|様|殿下?|卿|先生|ちゃん|陛下|大人|将军|将軍|队长|隊長|船长|船長|女王|国王|公主|王子|公爵|伯爵|男爵|爵士|法师|长老|長老)(?![\u4e00-\u9fff]*[子孫])"
)
_DOTTED = Pattern(
    r"[^\W\d_a-zA-Z的是在和与对向把被给从等见找救杀问叫让跟同为由到去来有名位个]{1,5}(?:[·・][^\W\d_a-zA-Z的是在和与对向把被给从也就将会已又站走看拿点问答说道死了着]{1,6})+"
)


@cache
def _foreign_signs() -> tuple[re.Pattern[str], frozenset[str]]:
    """Runs of signs that write foreign names in Chinese, and those signs that hardly do anything else."""
    return re.compile(f"[{''.join(listed('foreign'))}]{{2,6}}"), frozenset("".join(listed("foreign_sure")))


def names_in_cjk(text: str, lang: str) -> list[str]:
    """Names by script: runs of katakana, quoted terms, words before or after a title, foreign names in Chinese."""
    found: dict[str, None] = {}
    patterns = [_QUOTED, _DOTTED] if lang == "zh" else [_QUOTED]
    for pattern in patterns:
        for match in pattern.finditer(text):
            found[match[match.lastindex or 0]] = None
    if lang == "ja":
        found.update((name, None) for name in _KATAKANA.findall(text) if name.strip("ー・") not in listed("loanword"))
        found.update((name, None) for name in _HONOURED.findall(text) if len(name) > 1)
    else:
        signs, sure = _foreign_signs()
        found.update((name, None) for name in signs.findall(text) if not sure.isdisjoint(name))
    return [name for name in found if not any(name != other and name in other for other in found)]


def find_names(text: str) -> list[str]:
    """The names in a text, in order of first mention: "Elena Swift", "Captain Voss", "Ash Crown"."""
    lang = language(text)
    if lang in UNSPACED:
        return names_in_cjk(text, lang)
    row = side_by_side(read(text, lang))
    _, _, sure, _ = _find(row, lang)
    named, _, _, _ = _find(row, lang, set(sure))
    return list(dict.fromkeys([_surface(row, places) for places in named]))


# --- numbers ---------------------------------------------------------------------------------------------------------

_UNITS = MONEY | THING | PERSON | PLACE | TIME
_NO_NOUN = STOP | MARK["roll"] | MARK["table"]
_OWN_UNIT = Pattern(r"\d[\d.,]*(?:[%€$£°]|(?!(?:st|nd|rd|th)$)[^\W\d_]{1,4})|\d\d?[:.]\d\d")
_CJK_NUMBER = Pattern(
    r"(?:金貨|銀貨|銅貨)?(?:[0-9０-９][0-9０-９,.]*[百千万]*|[一二两兩三四五六七八九十百千万零〇]+)\s?"
    r"(?:枚|个|個|名|位|天|日|年|月|周|週間|岁|歳|里|把|块|次|人|夜|小时|時間|本|匹|头|只|倍|点)?(?:金币|银币|铜币|金貨|銀貨|黄金|金子)?"
)  # fmt: skip


def _is_number(word: Word) -> bool:
    return bool(word.marks & NUMBER)


def numbers_in(words: Sequence[Word], lang: str) -> list[str]:
    """The numbers among words that were read, each with what it counts or what is counted by it: "300 gold", "day 8", "14 June",
    "12 Mill Lane". A number of which that is not plain is none."""
    found: dict[str, None] = {}
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and _is_number(words[end]):
            end += 1
            if words[end - 1].marks & BREAKS:
                break
        if end == at:
            at += 1
            continue
        stop = _noun_end(words, end, lang)
        if stop > end and _is_told_apart(words, at, lang):
            stop = end
        start = at - 1 if stop == end and at and _is_counter(words[at - 1], lang) else at
        if stop - start > end - at or _OWN_UNIT.fullmatch(words[end - 1].plain):
            *first, last = words[start:stop]
            found[" ".join([*(word.plain + "." * bool(word.marks & ENDS) for word in first), last.plain])] = None  # "14. Juni"
        at = stop
    return list(found)


def _is_counter(word: Word, lang: str) -> bool:
    """Whether a number behind a word says which of them it is: "day 8", "June 14"."""
    return not word.marks & BREAKS and (belongs(word.norm, "counter", lang) or is_month(word, lang))


def _is_told_apart(words: Sequence[Word], at: int, lang: str) -> bool:
    """Whether a number in digits only says which: of "the rain of day 4 goes on", not of "on that day 4 goblins came"."""
    if lang != "en" or not at or not words[at].norm[:1].isdigit() or not _is_counter(words[at - 1], lang):
        return False
    return at < 2 or (words[at - 2].norm in listed("preposition") and not words[at - 2].marks & BREAKS)


def is_month(word: Word, lang: str) -> bool:
    """Whether a word names a month."""
    return belongs(word.norm, "calendar", lang) and (word.plain[0].isupper() or lang not in ("en", "de"))


def _noun_end(words: Sequence[Word], at: int, lang: str) -> int:
    """Where the counted noun ends: "300 | gold pieces", "three | long days"; a verb, a small word or a name is no noun."""
    if at == len(words):
        return at
    first = words[at]
    if is_month(first, lang):
        return at + 1
    if first.norm == "de" and at + 1 < len(words) and is_month(words[at + 1], lang):
        return at + 2
    if words[at - 1].marks & BREAKS:
        return at
    if first.plain[:1].isupper() and lang != "de":
        return _address_end(words, at)
    if lang == "de" and not first.plain[:1].isupper() and not first.norm.endswith(("e", "en", "er")):
        return at
    for end in (at + 1, at + 2):
        last = words[end - 1] if end <= len(words) else None
        if last is None or last.marks & _NO_NOUN or not last.norm.isalpha() or (end > at + 1 and last.capital and lang != "de"):
            return at + 1 if end > at + 1 and _is_plural(first, lang) else at + (first.norm == "o'clock")
        if last.marks & _UNITS:
            more = end < len(words) and words[end].marks & MONEY and not last.marks & BREAKS
            return end + 1 if more else end
        if last.marks & BREAKS:
            return end if lang != "en" or not (last.marks & CUE_MARKS or last.norm in listed("past")) else at
    return next((end for end in (at + 1, at + 2) if _is_plural(words[end - 1], lang)), at)


def _address_end(words: Sequence[Word], at: int) -> int:
    """Where an address ends whose number stands before it; a name that begins a clause is no address, and is not counted."""
    end = at + 1
    while end < len(words) and words[end].plain[:1].isupper() and not words[end - 1].marks & BREAKS:
        end += 1
    last = words[end - 1]
    if end > at + 1 and (last.marks & PLACE or last.norm in listed("street")):
        return end
    return at + 1 if words[at].marks & _UNITS and (words[at].marks & MONEY or words[at].norm.endswith("s")) else at


def _is_plural(word: Word, lang: str) -> bool:
    """Whether a word may be a noun that is counted, by its form."""
    if word.marks & (CUE_MARKS & ~MARK["gain"]) or word.norm in listed("past"):
        return False
    if lang == "de":
        return word.plain[0].isupper()
    return lang == "ru" or word.norm.endswith(("s", "x")) or word.norm in listed("measure")


def find_numbers(text: str, lang: str = "") -> list[str]:
    """The numbers in a text, in order, each with what it counts: "300 gold", "three days", "day 8"."""
    lang = lang or language(text)
    return numbers_in_cjk(text) if lang in UNSPACED else numbers_in(read(text, lang), lang)


def numbers_in_cjk(text: str) -> list[str]:
    """Numbers with a counting word, or in digits; a lone 一 is an article and no number."""
    found: dict[str, None] = {}
    for match in _CJK_NUMBER.finditer(text):
        number = match[0].strip()
        digits = any(char.isdigit() for char in number)
        counted = number[-1] not in "一二两兩三四五六七八九十百千万零〇"
        if (digits or counted) and not (number[0] == "一" and len(number) == 2):
            found[number] = None
    return list(found)


# --- a sentence, read ------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Reading:
    """What a sentence by itself says: its words, the places and the keys of its names, its marks, and how many of its words tell
    something. Then what is found of names elsewhere by it, and what may be a name if it is one elsewhere."""

    row: Row
    named: list[list[int]]
    keys: list[str]
    marks: int
    detail: float
    sure: list[str]
    doubtful: list[str]

    @property
    def words(self) -> list[Word]:
        return self.row.words

    @property
    def names(self) -> list[Name]:
        """The names; made when they are asked for, because their keys are what is mostly needed."""
        return [Name(self.row, places, key) for places, key in zip(self.named, self.keys, strict=True)]

    def then(self, other: Reading) -> Reading:
        """The reading of this sentence and another behind it."""
        shift = len(self.words)
        return Reading(
            self.row.then(other.row), self.named + [[at + shift for at in places] for places in other.named], self.keys + other.keys,
            self.marks | other.marks, self.detail + other.detail, self.sure + other.sure, self.doubtful + other.doubtful,
        )  # fmt: skip

    def given(self, sure: Collection[str], lang: str) -> Reading:
        """The reading in the light of other sentences, whose names are `sure`."""
        if frozenset(self.doubtful).isdisjoint(sure):
            return self
        named, keys, _, _ = _find(self.row, lang, sure)
        return replace(self, named=named, keys=keys, marks=_marks_outside(self.row, named))


def _marks_outside(row: Row, named: Iterable[list[int]]) -> int:
    """The marks of a sentence. A word within a name is no cue: nobody drowned in "the Drowned Rat"."""
    marks = reduce(or_, row.marks, 0)
    if marks & CUE_MARKS and (cues := [at for places in named for at in places if row.marks[at] & CUE_MARKS]):
        marks = reduce(or_, [mark & ~CUE_MARKS if at in cues else mark for at, mark in enumerate(row.marks)])
    return marks


def study(text: str, lang: str) -> Reading:
    """A sentence, read."""
    if lang in UNSPACED:
        row, keys = side_by_side(read_cjk(text, lang)), names_in_cjk(text, lang)
        marks = reduce(or_, row.marks, NUMBER if numbers_in_cjk(text) else 0)
        return Reading(row, [[] for _ in keys], keys, marks, len(text) / 3, [], [])
    row = side_by_side(read(text, lang))
    if not row.capitals:  # a sentence that names nobody
        return Reading(row, [], [], reduce(or_, row.marks, 0), row.telling(), [], [])
    named, keys, sure, doubtful = _find(row, lang)
    return Reading(row, named, keys, _marks_outside(row, named), row.telling(), sure, doubtful)


_study_again = kept(1 << 8)(study)


def studied(text: str, lang: str) -> Reading:
    """A sentence that may have been read before: what a model wrote comes back in digests. (What is read once is better not kept: memory
    that was let go of is at hand for the next.)"""
    return _study_again(text, lang) if len(text) < 400 else study(text, lang)


def marks_of(text: str, lang: str) -> int:
    """The marks of the words and phrases of a sentence."""
    reading = studied(text, lang)
    return reduce(or_, [marks for _, marks in phrases_in(text, reading.row, lang)], reading.marks)
