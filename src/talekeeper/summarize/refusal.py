"""Whether a model's answer is a summary at all, or an apology, an error page, noise, or words out of its instructions. Pure.

The checks know words, not meaning, and give the benefit of the doubt: a short answer passes that has a word, a name or a number of
its sources, and so does a translation; what has nothing in common with them does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import combining, normalize

from talekeeper import rim
from talekeeper.errors import InvalidInput
from talekeeper.summarize.names import find_names
from talekeeper.summarize.words import (
    CJK,
    SMALL,
    UNSPACED,
    Pattern,
    language,
    read,
)
from talekeeper.tokens import estimate_tokens

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
_FRAGMENT = Pattern(r"[{\[,]\s*\"\w+\"\s*:\s*(?:[\d\[{\"]|true|false|null)")
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
_A_FEW = 3
"""So many words, names and numbers may have no more than a number in common with the sources."""
_MANY = 12
"""Of so many a fifth at the least are from the sources."""
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
    return not runs_of_words(text).isdisjoint(runs_of_words(asked) - runs_of_words(told))


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    """All words of a text that follow each other, so many at a time that no two texts have them by accident."""
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def _error(text: str, told: str) -> str | None:
    """An error, unless the story itself speaks so."""
    if text[0] in "{[" and _is_json(text):
        return "it is JSON, not prose"
    head = _ERROR_HEAD.match(text)
    if head and head[0].strip().lower() not in told.lower():
        return "it is an error message"
    if _FRAGMENT.search(text) and not _FRAGMENT.search(told):
        return "it is JSON, not prose"
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
    telling = [word for word in common if not word.isdigit()]
    if known and (not common or (len(content) > _A_FEW and not telling) or (len(content) >= _MANY and len(common) * 5 < len(content))):
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
