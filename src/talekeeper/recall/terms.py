"""Words: what a text is indexed under, and what a query looks for. Pure.

Case, punctuation and the form of a word do not matter, in any script: English words are stemmed, those of scripts without blanks are cut in
pairs of signs, and Latin letters are found with their marks and without ("Artemis" finds "Artémis").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from talekeeper.kept import kept, kept_table

SESSION_MARK = "a session begins"
"""The term under which beginnings of sessions are indexed. No word has a blank in it."""

_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
_UNSPACED = "\u0e01-\u0e2e\u0e30-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dd"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_EMOJI = "\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff"
_LETTER = rf"(?:[^\W_]|[{_MARKS}{_UNSPACED}])"
_PLAIN_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*", re.ASCII)
_PLAIN = bytes(ord(sign.lower()) if sign.isalnum() or sign == "'" else 32 for sign in map(chr, range(128))).ljust(256)
"""Every plain letter as a small one, and a blank for whatever is in no word."""
_WORD = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*|[{_EMOJI}]")
_RUN = re.compile(rf"(?P<cjk>[{_CJK}]+)|[{_UNSPACED}]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]|[a-z][\u0300-\u036f]")
_LOOSE = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_BARE = dict(zip(map(ord, "æœøłđħŧı"), ["ae", "oe", *"oldhti"], strict=True)) | {
    code: base
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    if "a" <= (base := unicodedata.normalize("NFD", chr(code))[0]) <= "z"
}
"""Small Latin letters with marks, and what is written for them where the keyboard has none. In other scripts marks make words."""

_COMMON = """
a about again all also am an and any are as at be because been being both but by can could did do does each few for from had has have he
her him his how i if in into is it its just many may me might more most much my no not of on only or other our out over own same she
should so some such than that the their them then there they this those to too up us very was we were what when where which while who
whom whose why will with would you your
"""
_IRREGULAR = """
be was were been am is are|bear bore borne|become became|begin began begun|bind bound|bite bit bitten|bleed bled|blow blew blown
break broke broken|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|creep crept|deal dealt
dig dug|do did done|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze
frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung|have had|hear heard|hide hid hidden|hold held|keep kept
kneel knelt|know knew known|lead led|learn learnt|leave left|lend lent|lie lay lain|lose lost|make made|mean meant|meet met|pay paid
ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|shake shook shaken
shine shone|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|slay slew slain|sleep slept|speak spoke spoken|spend spent
spill spilt|spring sprang sprung|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum
swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood
wake woke woken|wear wore worn|weep wept|win won|write wrote written|child children|foot feet|goose geese|man men|mouse mice|tooth teeth
woman women|knife knives|leaf leaves|life lives|thief thieves|wife wives|wolf wolves|half halves|elf elves|dwarf dwarves
"""
_FORMS = {form: base for line in _IRREGULAR.replace("\n", "|").split("|") for base, *forms in [line.split() or [""]] for form in forms}


def words(text: str) -> list[str]:
    """The text's words as they are indexed, in order: folded, and cut to their stems; runs of a script without blanks as pairs of signs;
    an emoji is a word. What stands behind an apostrophe ("l'anneau", "Do'Urden") is a word by itself, too."""
    if text.isascii():
        plain = _plain_words(text)
        return [*map(_STEMS.__getitem__, plain), *(_elided(plain) if "'" in text else ())]
    return _words_in(_folded(text))


def _words_in(folded: str) -> list[str]:
    mixed: list[str] = []
    found = _WORD.findall(folded)
    for word in found:
        end = 0
        for run in _RUN.finditer(word):
            if run.start() > end:
                mixed.append(word[end : run.start()])
            mixed += _pairs(run.group())
            end = run.end()
        if end < len(word):
            mixed.append(_STEMS[word[end:]])
    return mixed + _elided(found)


def _elided(found: Iterable[str]) -> list[str]:
    """What stands behind apostrophes, but for the endings of English contractions."""
    parts = [part for word in found if "'" in word or "’" in word for part in word.replace("’", "'").split("'")[1:]]
    return [_STEMS[part] for part in parts if len(part) > 1 and part not in _CONTRACTED]


def _plain_words(text: str) -> list[str]:
    """The words of a text of plain letters; an apostrophe belongs to a word that goes on behind it."""
    pieces = text.encode().translate(_PLAIN).decode().split()
    if "'" not in text:
        return pieces
    return [word for piece in pieces for word in (_PLAIN_WORD.findall(piece) if "'" in piece else (piece,))]


def _folded(text: str) -> str:
    """Without regard to case, and to the ways in which the same sign can be written."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def bare(text: str) -> str:
    """A text in small letters, without the marks of Latin ones, as people write names whose marks they cannot type."""
    return text.lower() if text.isascii() else _LOOSE.sub("", _folded(text).translate(_BARE))


class _Stems(dict[str, str]):
    """Stems of words, each worked out once: words come back all the time."""

    def __missing__(self, word: str) -> str:
        if len(self) >= 50_000:
            self.clear()
        stem = self[word] = _stem(word)
        return stem


_STEMS = kept_table(_Stems())
_CONTRACTED = frozenset({"ll", "re", "ve"})


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _stem(word: str) -> str:
    """A word without its English endings, and the commonest German one. Whatever language it is in: all that matters is that forms of one
    word come out the same."""
    if word.isdigit():
        return word
    word = word.replace("’", "'")
    if word.endswith("'s"):
        word = word[:-2]
    word = word.replace("'", "")
    word = _FORMS.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("ches", "shes", "xes", "sses", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 6), ("ed", 5), ("ly", 6)):
        if len(word) >= least and word.endswith(ending):
            word = word[: -len(ending)]
            if ending != "ly" and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if len(word) >= 6 and word.endswith("en") and word != "listen":
        return word[:-2]  # "Brücken" for "Brücke", "Drachen" for "Drache"; "wooden"
    return word[:-1] if len(word) >= 5 and word.endswith("e") else word


_STOP = frozenset(words(_COMMON))
_CJK_COMMON = re.compile(
    "在?哪(?:里|裡|儿|兒|个|個|些)?|谁|誰|(?:为|為)?(?:什么|什麼)|怎么样?|怎麼樣?|多少|[几幾]|何时|[吗嗎呢吧啊的了着著过過是有在把被给給和跟与與我你您他她它们們这這那说說就都也还還去来來会會能要不没沒]"
    "|[\u3041-\u309f]+|何[処時故]?|いつ"
    "|어디|누가|누구|무엇|언제|[은는이가을를에의로와과도]"
)
"""What a question is made of, beside what it asks about."""


def sought(text: str) -> list[str]:
    """The distinct words to look for; common words only where there are no others."""
    distinct = list(dict.fromkeys([*words(text), *([] if text.isascii() else _lone_signs(text))]))
    telling = [word for word in distinct if word not in _STOP]
    return telling or distinct


def _lone_signs(text: str) -> list[str]:
    """Words of one sign, among those that only ask: the sword in "剑在哪里", the key in "鍵はどこ", the blade in "칼은 어디"."""
    runs = [run[0] for run in _RUN.finditer(_folded(text)) if run["cjk"] and len(run[0]) > 1]
    return [piece for run in runs for piece in _CJK_COMMON.split(run) if len(piece) == 1]


def index_terms(text: str, voice: str, kind: str = "said") -> dict[str, None]:
    """All distinct words under which a turn is found: what was said, who said it, and whether a session begins with it.

    Single signs of Chinese, Japanese and Korean are among them, for some words have no more; and words with marks without them, too."""
    whole = f"{voice} {text}"
    if whole.isascii():
        found = dict.fromkeys(words(whole))
    else:
        folded = _folded(whole)
        found = dict.fromkeys(_words_in(folded))
        if _ACCENTED.search(folded):
            marked = " ".join([piece for piece in folded.split() if not piece.isascii() and _ACCENTED.search(piece)])
            found.update((word, None) for word in words(bare(marked)) if word not in _STOP)
    if not text.isascii():
        found.update((sign, None) for run in _RUN.finditer(_folded(text)) if run["cjk"] for sign in run[0])
    if kind == "session":
        found[SESSION_MARK] = None
    return found


def holds(text: str, phrase: str) -> bool:
    """Whether the text has the phrase in it, word for word; punctuation, case, line breaks and the form of apostrophes do not matter."""
    sought, flat = _flat(phrase), _flat(text)
    if sought == "  ":
        return False
    return sought in flat or (_RUN.search(sought) is not None and sought.strip() in flat)


@kept(1 << 10)
def _flat(text: str) -> str:
    found = _plain_words(text) if text.isascii() else _WORD.findall(_folded(text).replace("’", "'"))
    return f" {' '.join(found)} "


def bare_forms(text: str, wanted: Sequence[str]) -> dict[str, str]:
    """Those of the wanted words that have marks, and what they are without. Whoever looks for one may find the other, which is worth less:
    it was not asked for word for word."""
    folded = _folded(text)
    if not _ACCENTED.search(folded):
        return {}
    marked = [found for found in _WORD.findall(folded) if not found.isascii() and _ACCENTED.search(found)]
    forms = {word: plain for found in marked for word, plain in zip(_words_in(found), words(bare(found)), strict=False)}
    none = {*_STOP, *wanted}  # what is without marks as it is, too
    return {word: forms[word] for word in wanted if word in forms and forms[word] not in none}
