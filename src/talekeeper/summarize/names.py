"""What a text is about, without a model: its language, its names and numbers, and the cue words of `words.txt`.

A text is read piece by piece, cut at blanks. Each piece is looked up once, and the answer is kept (words come back all
the time, and a story's folds must be cheap). The marks of a `Word` are bits: the groups of `words.txt`, and how the word
stands in its text. Chinese and Japanese have no blanks: there the groups are looked for anywhere in the text.

Capitals tell names in English, French, Spanish and Russian, but not at the start of a sentence, where something else must
speak for a name. German has capitals on all nouns: there a name needs a title, an apposition or a place without an article.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple


class Pattern:
    """A regular expression that is compiled when it is first used: some take longer than the rest of the import."""

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    findall: Callable[[str], list[str]]
    split: Callable[[str], list[str]]
    sub: Callable[[str, str], str]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, method: str) -> object:
        compiled = re.compile(self._pattern, self._flags)
        for name in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub"):
            setattr(self, name, getattr(compiled, name))
        return getattr(compiled, method)


CUES = ("promise", "threat", "death", "gain", "decide", "reveal", "quest", "outcome", "travel")
ABOUT = ("money", "thing", "person", "place", "time", "number")
SPEECH = ("say", "first", "second", "pronoun")
NOISE = ("roll", "table", "chatter", "stop", "starter")
FORMS = ("nameable", "content", "opens", "breaks", "ends", "owns")
MARK = {name: 1 << bit for bit, name in enumerate(CUES + ABOUT + SPEECH + NOISE + FORMS)}  # 30 bits at most are quick in Python
MARK |= {"betray": MARK["threat"], "dice": MARK["table"], "neutral": 0}

NAMEABLE, CONTENT, OPENS, BREAKS, ENDS, OWNS = (MARK[name] for name in FORMS)
MONEY, THING, PERSON, PLACE, TIME, NUMBER = (MARK[name] for name in ABOUT)
SAY, STOP = MARK["say"], MARK["stop"]
SMALL = STOP | MARK["first"] | MARK["second"] | MARK["pronoun"]
IDLE = SMALL | MARK["chatter"] | MARK["starter"]
_LISTED = (1 << len(CUES + ABOUT + SPEECH + NOISE)) - 1
_COMMON = _LISTED & ~SAY
_CUE_MARKS = (1 << len(CUES)) - 1 | SAY
_NOT_ALONE = PERSON | TIME | NUMBER | MARK["chatter"]

_EDGES = " \t\r\n.,;:!?…\"'“”„‘’‚‹›«»()[]{}<>*_~`—–-¡¿#|/\\=+&。、！？，；：（）「」『』·•"
_BREAK = Pattern(r"[^\w'’]$")
_END = Pattern(r"[.!?…:][\"'”’»)\]*_]*$")
_OPEN = Pattern(r"^[\"'“„‘‚«(\[*_¿¡「『—–-]")
_ELISION = Pattern(r"^(?:[ldjmtsnc]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.I)
_CYRILLIC = Pattern(r"[а-яё]", re.I)
_CYRILLIC_ENDING = Pattern(
    r"(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|ов|ев|ом|ем|ой|ей|ою|ею|ах|ях|ам|ям|ым|им|ых|их|ую|юю|ая|яя|а|я|у|ю|е|ы|и|о|ь|й)$"
)
_KANA = Pattern(r"[\u3041-\u30fa]")
_HAN = Pattern(r"[\u3400-\u9fff\uf900-\ufaff\u3005]")
CJK = Pattern(r"[\u3005\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_LATIN = ("en", "de", "fr", "es")
_LETTERS = {"de": frozenset("äöüß"), "fr": frozenset("àâçèêëîïôœùû"), "es": frozenset("ñ¿¡íóúá")}
_TELLING_LETTERS = Pattern(r"[äöüßàâçèêëîïôœùûñ¿¡íóúá]")
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


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of text: its marks, its form for comparing, itself without signs around it, and 1 if it tells, -1 if it chatters."""

    marks: int
    norm: str
    plain: str
    detail: int = 0


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


@cache
def _phrases(lang: str) -> tuple[tuple[str, int], ...]:
    """What is looked for across blanks, with the marks of its groups."""
    return tuple((word.replace("_", " "), marks) for word, marks in _lexicon(lang)[0].items() if "_" in word)


def normalise(piece: str) -> str:
    """A word for comparing: lower case, no marks around it, no English possessive, no Russian ending."""
    norm = piece.strip(_EDGES).lower().replace("’", "'").replace("ё", "е")
    if norm.endswith("'s"):
        norm = norm[:-2]
    return _CYRILLIC_ENDING.sub("", norm) if len(norm) > 3 and _CYRILLIC.match(norm) else norm


def _groups_of(word: str, lang: str) -> int:
    whole, begin = _lexicon(lang)
    marks = whole.get(word, 0)
    for end in range(min(len(word), 24), 1, -1):
        marks |= begin.get(word[:end], 0)
    if not marks and "-" in word:
        marks = whole.get(word.partition("-")[0], 0) & NUMBER
    return marks


def _look(piece: str, lang: str) -> Word:
    bare = piece.strip(_EDGES)
    marks = 0
    whole = bare
    if lang == "fr" and (elided := _ELISION.match(bare)):
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
    return Word(marks, normalise(bare), whole, 1 if marks & CONTENT else -1 if marks & MARK["chatter"] and not marks & SMALL else 0)


class _Reader(dict[str, Word]):
    """The pieces of a language that were looked up. Bounded: long pieces are not kept, and a full table starts afresh."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __missing__(self, piece: str) -> Word:
        word = _look(piece, self.lang)
        if len(piece) <= 40:
            if len(self) >= 10_000:
                self.clear()
            self[piece] = word
        return word


@cache
def _reader(lang: str) -> Callable[[str], Word]:
    return _Reader(lang).__getitem__


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
    return [Word(marks[word], word, word) for word in pattern.findall(text.lower())]


def phrases_in(text: str, lang: str) -> list[tuple[str, int]]:
    """The phrases in a text, each with the marks of its groups."""
    return [(phrase, marks) for phrase, marks in _phrases(lang) if phrase in text]


@cache
def _voters() -> tuple[frozenset[str], list[tuple[str, frozenset[str], frozenset[str]]]]:
    """All small words; and per language its own, and those that no other has."""
    small = {lang: frozenset(word for word, marks in _lexicon(lang)[0].items() if marks & SMALL) for lang in _LATIN}
    own = {lang: small[lang].difference(*(small[other] for other in _LATIN if other != lang)) for lang in _LATIN}
    return frozenset().union(*small.values()), [(lang, small[lang], own[lang]) for lang in _LATIN]


def language(text: str, default: str = "en") -> str:
    """The language of a text by its letters and small words; `default` where they do not say."""
    letters = ""
    if not text.isascii():
        han = len(_HAN.findall(text))
        kana = len(_KANA.findall(text))
        if (han + kana) * 5 > len(text):
            return "ja" if kana or default == "ja" else "zh"
        if len(_CYRILLIC.findall(text)) * 3 > len(text):
            return "ru"
        letters = "".join(_TELLING_LETTERS.findall(text.lower()))
    small, voters = _voters()
    found = small.intersection(text.lower().replace("’", "'").replace("'", "' ").split())
    votes = [len(words & found) + len(own & found) + _hints(letters, lang) for lang, words, own in voters]
    most = max(votes)
    best = [lang for lang, vote in zip(_LATIN, votes, strict=True) if vote == most]
    return default if not most or default in best else best[0]


def _hints(letters: str, lang: str) -> int:
    """What the letters with marks say for a language that uses them."""
    return 2 if letters and not _LETTERS.get(lang, frozenset()).isdisjoint(letters) else 0


def languages(texts: Sequence[str]) -> list[str]:
    """The language of each text: that of all of them together, unless its letters may be those of another."""
    common = language("\n".join([text[:200] for text in texts])[:1200])
    return [common if text.isascii() and common in _LATIN else language(text, common) for text in texts]


def is_cjk(lang: str) -> bool:
    return lang in ("zh", "ja")


# --- known terms -----------------------------------------------------------------------------------------------------


class Term(NamedTuple):
    """A known name: as it is called, its words for comparing (none in a script without blanks), and what to probe a text for."""

    name: str
    words: tuple[str, ...]
    probe: str

    def among(self, norms: Sequence[str]) -> bool:
        size = len(self.words)
        return any(norms[at] == self.words[0] and tuple(norms[at : at + size]) == self.words for at in range(len(norms) - size + 1))


@lru_cache(maxsize=256)
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
    runs: list[list[int]] = []
    for at in [at for at, word in enumerate(words) if word.marks & NAMEABLE]:
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
    if word.marks & _LISTED:
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
        return not word.marks & _NOT_ALONE
    if word.marks & OWNS or (word.marks & BREAKS and not word.marks & ENDS):
        return True
    after = words[run[0] + 1] if run[0] + 1 < len(words) else None
    if after is None or word.marks & ENDS or "-" in word.norm:
        return False
    if lang != "en" and after.marks & STOP:
        return after.norm in listed("copula")
    return bool(after.marks & _CUE_MARKS or after.norm in listed("past") or _VERB_AFTER[lang].search(after.plain.lower()))


def _is_german_name(words: Sequence[Word], run: list[int]) -> bool:
    """All nouns have capitals: a title, an apposition, or a place that a common noun would not have."""
    word, at = words[run[-1]], run[0]
    if word.marks & _COMMON or _GERMAN_NOUN.search(word.norm):
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
            if not word.marks & _NOT_ALONE and len(word.plain) > 1:
                names.append(Name(_without_article(word.plain), run, word.norm))
            continue
        kept = _strip_start(words, run, lang)
        if lang == "de" and len(kept) > 1 and words[kept[0]].marks & _LISTED and not words[kept[0]].marks & PERSON:
            kept = kept[1:]
        if kept and _is_name(words, kept, lang, sure):
            key = next((words[at].norm for at in kept if not words[at].marks & PERSON), words[kept[0]].norm)
            names.append(Name(" ".join(_surface(words, kept)), kept, key))
    return names


def _surface(words: Sequence[Word], run: list[int]) -> Iterator[str]:
    for at in range(run[0], run[-1] + 1):
        plain = words[at].plain + ("'s" if words[at].marks & OWNS and at < run[-1] else "")
        yield _without_article(plain) if at == run[0] else plain


def _without_article(plain: str) -> str:
    """ "Ordre" of "l'Ordre"; "D'Artagnan" stays."""
    return plain if plain[0].isupper() and plain[0] != "L" else _ELISION.sub("", plain)


def sure_names(words: Sequence[Word], runs: Iterable[list[int]]) -> list[str]:
    """Words that have a capital within a sentence: they are names at the start of another sentence too."""
    return [words[at].norm for run in runs for at in run if not words[at].marks & _COMMON and not _opens_sentence(words, at)]


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
            marks[at] &= ~_CUE_MARKS
    return reduce(or_, marks, 0)


def _study(text: str, lang: str) -> Reading:
    if is_cjk(lang):
        words = read_cjk(text, lang)
        names = [Name(name, [], name) for name in names_in_cjk(text, lang)]
        marks = reduce(or_, [word.marks for word in words], NUMBER if numbers_in_cjk(text) else 0)
        return Reading(words, names, [name.key for name in names], marks, len(text) / 3, [], [])
    words = read(text, lang)
    runs = runs_in(words)
    names = names_in(words, runs, lang) if runs else []
    taken = [at for name in names for at in name.places]
    sure = sure_names(words, runs) if runs and lang != "de" else []
    doubtful = [words[run[0]].norm for run in runs if run[0] not in taken] if runs else []
    detail = sum([word.detail for word in words])
    return Reading(words, names, [name.key for name in names], _marks_outside(words, names), detail, sure, doubtful)


_study_again = lru_cache(maxsize=1 << 11)(_study)


def study(text: str, lang: str) -> Reading:
    """A sentence, read. The same sentence comes back in the folds of folds, so readings are kept for a while."""
    return _study_again(text, lang) if len(text) < 400 else _study(text, lang)


def marks_of(text: str, lang: str) -> int:
    """The marks of the words and phrases of a sentence."""
    return reduce(or_, [marks for _, marks in phrases_in(text, lang)], study(text, lang).marks)
