"""What a sentence is about, without a model: its names, its numbers, and the known things in it.

Capitals tell names in English, French, Spanish and Russian, but not at the start of a sentence, where something else must
speak for a name. German has capitals on all nouns: there a name needs a title, an apposition or a place without an article.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    NAMEABLE,
    NOT_ALONE,
    NUMBER,
    OPENS,
    OWNS,
    PERSON,
    PLACE,
    STOP,
    THING,
    TIME,
    Pattern,
    Word,
    is_cjk,
    language,
    listed,
    normalise,
    phrases_in,
    read,
    read_cjk,
)

_STARTER = MARK["starter"]
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


def _joins(words: Sequence[Word], left: int, right: int) -> bool:
    """Whether two capitalised words belong to one name."""
    if right - left > 3 or words[left].marks & BREAKS or words[right].marks & OPENS:
        return False
    if right > left + 1 and (words[left + 1].marks | words[right - 1].marks) & BREAKS:
        return False
    if words[left].marks & OWNS:
        return right == left + 1 and bool(words[right].marks & PLACE or words[right].norm in listed("site"))
    if right == left + 1:
        return True
    if right == left + 2:
        between = words[left + 1].norm
        return between in listed("connector") or (between == "the" and words[right].norm in listed("epithet"))
    return right == left + 3 and (words[left + 1].norm, words[left + 2].norm) in _LINKS


def runs_in(words: Sequence[Word]) -> list[list[int]]:
    """The places of capitalised words that may be names, those of one name together."""
    return _runs(words, [at for at, word in enumerate(words) if word.marks & NAMEABLE])


def _runs(words: Sequence[Word], capitals: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for at in capitals:
        if runs and _joins(words, runs[-1][-1], at):
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _opens_sentence(words: Sequence[Word], at: int) -> bool:
    return at == 0 or bool(words[at - 1].marks & ENDS or words[at].marks & OPENS) or not words[at - 1].norm


def _strip_start(words: Sequence[Word], run: list[int], lang: str) -> list[int]:
    """The run without a first word that is capitalised only because a sentence starts there."""
    word = words[run[0]]
    if not _opens_sentence(words, run[0]):
        return run
    if word.marks & LISTED:
        return run if len(run) > 1 and word.marks & (PERSON | PLACE | THING) else run[1:]
    if lang == "en" and _NOT_A_NAME.search(word.norm):
        return run[1:]
    return run


def _is_name(words: Sequence[Word], run: list[int], lang: str, sure: Collection[str]) -> bool:
    word = words[run[0]]
    if word.norm in sure:
        return True
    if len(word.plain) < 2:
        return len(run) > 1
    if lang == "de":
        return _is_german_name(words, run)
    if len(run) > 1:
        return True
    if not _opens_sentence(words, run[0]):
        return not word.marks & NOT_ALONE
    if word.marks & OWNS or (word.marks & BREAKS and not word.marks & ENDS):
        return True
    after = words[run[0] + 1] if run[0] + 1 < len(words) else None
    if after is None or word.marks & ENDS or "-" in word.norm:
        return False
    if lang != "en" and after.marks & STOP:
        return after.norm in listed("copula")
    return bool(after.marks & CUE_MARKS or after.norm in listed("past") or _VERB_AFTER[lang].search(after.plain.lower()))


def _is_german_name(words: Sequence[Word], run: list[int]) -> bool:
    """All nouns have capitals: a title, an apposition, or a place that a common noun would not have."""
    word, at = words[run[-1]], run[0]
    if word.marks & COMMON or _GERMAN_NOUN.search(word.norm):
        return False
    if len(run) > 1:
        return True
    if _opens_sentence(words, at):
        after = words[at + 1].norm if at + 1 < len(words) else ""
        return bool(_VERB_AFTER["de"].search(after)) and not word.marks & ENDS
    return words[at - 1].norm in listed("before") or bool(words[at - 1].marks & (PERSON | PLACE))


class Name(NamedTuple):
    """A name, the places of its words, and the word that tells it from others: "Voss" of "Captain Voss"."""

    text: str
    places: list[int]
    key: str


def names_in(words: Sequence[Word], runs: Iterable[list[int]], lang: str, sure: Collection[str] = ()) -> list[Name]:
    """The names among words that were read, in order; `sure` holds words that are names wherever they have a capital."""
    names: list[Name] = []
    for run in runs:
        if len(run) == 1 and run[0] and lang != "de" and not _opens_sentence(words, run[0]):  # the usual case
            word = words[run[0]]
            if not word.marks & NOT_ALONE and len(word.plain) > 1:
                names.append(Name(_without_article(word.plain), run, word.norm))
            continue
        kept = _strip_start(words, run, lang)
        if lang == "de" and len(kept) > 1 and words[kept[0]].marks & LISTED and not words[kept[0]].marks & PERSON:
            kept = kept[1:]
        if kept and _is_name(words, kept, lang, sure):
            key = next((words[at].norm for at in kept if not words[at].marks & (PERSON | _STARTER)), words[kept[0]].norm)
            names.append(Name(" ".join(_surface(words, kept)), kept, key))
    return names


def _surface(words: Sequence[Word], run: list[int]) -> Iterator[str]:
    for at in range(run[0], run[-1] + 1):
        plain = words[at].plain + ("'s" if words[at].marks & OWNS and at < run[-1] else "")
        yield _without_article(plain) if at == run[0] else plain


def _without_article(plain: str) -> str:
    """ "Ordre" of "l'Ordre"; "D'Artagnan" stays."""
    return plain if plain[0].isupper() and plain[0] != "L" else ELISION.sub("", plain)


def sure_names(words: Sequence[Word], runs: Iterable[list[int]]) -> list[str]:
    """Words that have a capital within a sentence: they are names at the start of another sentence too."""
    return [words[at].norm for run in runs for at in run if not words[at].marks & COMMON and not _opens_sentence(words, at)]


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
    if is_cjk(lang):
        return names_in_cjk(text, lang)
    words = read(text, lang)
    runs = runs_in(words)
    return list(dict.fromkeys(name.text for name in names_in(words, runs, lang, () if lang == "de" else set(sure_names(words, runs)))))


# --- numbers ---------------------------------------------------------------------------------------------------------

_UNITS = MONEY | THING | PERSON | PLACE | TIME
_CJK_NUMBER = Pattern(
    r"(?:金貨|銀貨|銅貨)?(?:[0-9０-９][0-9０-９,.]*[百千万]*|[一二两兩三四五六七八九十百千万零〇]+)\s?"
    r"(?:枚|个|個|名|位|天|日|年|月|周|週間|岁|歳|里|把|块|次|人|夜|小时|時間|本|匹|头|只|倍|点)?(?:金币|银币|铜币|金貨|銀貨|黄金|金子)?"
)  # fmt: skip


def _is_number(word: Word) -> bool:
    return bool(word.marks & NUMBER)


def numbers_in(words: Sequence[Word]) -> list[str]:
    """The numbers among words that were read, with the noun that is counted where one follows."""
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
        if not words[end - 1].marks & BREAKS:
            end = _noun_end(words, end)
        found[" ".join(word.plain for word in words[at:end])] = None
        at = end
    return list(found)


def _noun_end(words: Sequence[Word], at: int) -> int:
    """Where the counted noun ends: "300 | gold pieces", "three | long days"; a verb or small word is no noun."""
    for end in (at + 1, at + 2):
        if end > len(words) or words[end - 1].marks & (STOP | MARK["roll"] | MARK["table"]) or not words[end - 1].norm.isalpha():
            return at
        if words[end - 1].marks & _UNITS:
            more = end < len(words) and words[end].marks & MONEY and not words[end - 1].marks & BREAKS
            return end + 1 if more else end
        if words[end - 1].marks & BREAKS:
            return end
    return at + 1


def find_numbers(text: str) -> list[str]:
    """The numbers in a text, in order, each with the noun it counts where that is plain: "300 gold", "three days"."""
    lang = language(text)
    if is_cjk(lang):
        return numbers_in_cjk(text)
    return numbers_in(read(text, lang))


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


class Reading(NamedTuple):
    """What a sentence by itself says: its words, names and marks, and how many of its words tell something."""

    words: list[Word]
    names: list[Name]
    keys: list[str]
    marks: int
    detail: float
    sure: list[str]
    doubtful: list[str]

    def then(self, other: Reading) -> Reading:
        """The reading of this sentence and another behind it."""
        shift = len(self.words)
        names = [*self.names, *(name._replace(places=[at + shift for at in name.places]) for name in other.names)]
        return Reading(
            [*self.words, *other.words], names, [*self.keys, *other.keys], self.marks | other.marks, self.detail + other.detail,
            [*self.sure, *other.sure], [*self.doubtful, *other.doubtful],
        )  # fmt: skip

    def given(self, sure: Collection[str], lang: str) -> Reading:
        """The reading in the light of other sentences, whose names are `sure`."""
        if not any(norm in sure for norm in self.doubtful):
            return self
        names = names_in(self.words, runs_in(self.words), lang, sure)
        return self._replace(names=names, keys=[name.key for name in names], marks=_marks_outside(self.words, names))


def _marks_outside(words: Sequence[Word], names: Iterable[Name]) -> int:
    """The marks of a sentence. A word within a name is no cue: nobody drowned in "the Drowned Rat"."""
    marks = [word.marks for word in words]
    for name in names:
        for at in name.places:
            marks[at] &= ~CUE_MARKS
    return reduce(or_, marks, 0)


def _study(text: str, lang: str) -> Reading:
    if is_cjk(lang):
        words = read_cjk(text, lang)
        names = [Name(name, [], name) for name in names_in_cjk(text, lang)]
        marks = reduce(or_, [word.marks for word in words], NUMBER if numbers_in_cjk(text) else 0)
        return Reading(words, names, [name.key for name in names], marks, len(text) / 3, [], [])
    words = read(text, lang)
    each = [word.marks for word in words]
    detail = sum([word.detail for word in words])
    marks = reduce(or_, each, 0)
    if not marks & NAMEABLE:  # a sentence that names nobody
        return Reading(words, [], [], marks, detail, [], [])
    runs = _runs(words, [at for at, mark in enumerate(each) if mark & NAMEABLE])
    names = names_in(words, runs, lang)
    taken = [at for name in names for at in name.places]
    sure = sure_names(words, runs) if lang != "de" else []
    doubtful = [words[run[0]].norm for run in runs if run[0] not in taken]
    if reduce(or_, [each[at] for at in taken], 0) & CUE_MARKS:
        marks = _marks_outside(words, names)
    return Reading(words, names, [name.key for name in names], marks, detail, sure, doubtful)


_study_again = kept(1 << 11)(_study)


def study(text: str, lang: str) -> Reading:
    """A sentence, read. The same sentence comes back in the folds of folds, so readings are kept for a while."""
    return _study_again(text, lang) if len(text) < 400 else _study(text, lang)


def marks_of(text: str, lang: str) -> int:
    """The marks of the words and phrases of a sentence."""
    return reduce(or_, [marks for _, marks in phrases_in(text, lang)], study(text, lang).marks)
