"""What models put around an answer: thinking aloud, a word before it, headings, fences, an offer of more. None of it is story. Pure.

Only what no story would say is taken off; what stands in the story itself stays.
"""

from __future__ import annotations

import re
from itertools import pairwise

from talekeeper.summarize.words import CJK, Pattern

_THOUGHT = Pattern(r"<(think(?:ing)?|reasoning|reflection|scratchpad|analysis)>.*?(?:</\1>|\Z)", re.I | re.S)
_END_OF_THOUGHT = Pattern(r"\A.*</(?:think(?:ing)?|reasoning|reflection|scratchpad|analysis)>", re.I | re.S)
_WRAPPER = Pattern(r"</?(?:summary|answer|output|response|result|chronicle|entry|text)>", re.I)
_FENCE = Pattern(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*\w*[ \t]*$", re.M)
_RULE = Pattern(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", re.M)
_HEADING = Pattern(r"^[ \t]*(?:#{1,6}[ \t][^\n]*|\*\*[^*\n]{1,60}\*\*:?|__[^_\n]{1,60}__:?)[ \t]*$", re.M)
_BOLD = Pattern(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*|__(?=\S)([^_\n]+?)(?<=\S)__")
_ITEM = Pattern(r"^[ \t]*(?:[-*+•–]|\d{1,2}[.)])[ \t]+(?=\S)", re.M)
_LEAD = Pattern(r"^[ \t]*(?:(?:[-*+•–]|\d{1,2}[.)])[ \t]+(?=\S)|\*\*[^*\n]{1,60}\*\*)", re.M)
"""With which an item of a list begins, or a line that is set apart like one."""
_NAME = (
    r"(?:(?:the|your|a|an|brief|short|concise|updated|final|requested|die|eine|kurze|le|un|la|una|el|bref|breve)\s+)*"
    r"(?:summary|chronicle(?:\s+entry)?|recap|synopsis|zusammenfassung|chronik|résumé|chronique|resumen|crónica|sinopsis"
    r"|краткое\s+(?:содержание|изложение)|пересказ|хроника|摘要|总结|概要|纪要|要約|まとめ|年代記)"
)
_LABEL = Pattern(rf"\A\W*{_NAME}(?:[ \t][^\n:：]{{1,60}})?\s*(?:[:：]|\n)\s*", re.I)
_ASIDE = (
    r"sure(?: thing)?|certainly|of course|okay|ok|absolutely|understood|got it|alright|gerne?|natürlich|klar|selbstverständlich|bien sûr"
    r"|certainement|d'accord|volontiers|claro(?: que sí)?|por supuesto|desde luego|конечно|хорошо|разумеется|好的|当然(?:可以)?|没问题|はい"
    r"|承知しました|承知いたしました|かしこまりました|もちろん(?:です)?"
)
_ASSENT = Pattern(rf"\A\W*(?:{_ASIDE})\s*[!.,:—–！。，：]+\s*", re.I)
_HERE = Pattern(
    rf"\A\W*(?:(?:{_ASIDE})\s*[!.,:—–！。，：]+\s*)?(?:here(?:['’]s| is| are| you)|below (?:is|are)|this is|hier (?:ist|sind|kommt|folgt)"
    rf"|voici|aquí (?:está|tienes|tiene|va)|вот|ниже|以下是|这是|下面是|以下(?:は|が|に)|こちら(?:は|が))"
    rf"(?:[^\n:：]{{0,160}}[:：][ \t]*\n|[^\n:：]{{0,80}}(?:{_NAME})[^\n:：]{{0,80}}[:：])\s*",
    re.I,
)
_OFFER = Pattern(
    r"(?:(?:\n\s*|(?<=[.!?\]）)。！？]\s))(?:(?:please )?(?:let me know|feel free|i hope (?:this|that|it) (?:help|work|is)"
    r"|hope (?:this|that) helps|would you like (?:me|any|another)|do you want me|if you(?:'d| would) like|is there anything"
    r"|(?:shall|should) i (?:add|continue|go on|expand)|as an ai\b|(?:note(?: that)?:? (?:that )?)?this (?:summary|recap)\b)"
    r"|[*_]*[(\[（][*_]*(?:notes?|n\.b\.|hinweis|anmerkung|remarque|nota|примечание|注|备注|注記)[*_]*\s?[:：]"
    r"|sag(?:en sie)? mir|lass(?:en sie)? mich wissen|ich hoffe,? (?:das|dies)|möchte(?:n sie|st du),? dass ich|soll ich"
    r"|dites-moi|n'hésite[zr]? pas|j'espère que (?:ce|cela)|souhaite[zs]-"
    r"|avísame|dime si|espero que (?:esto|te|le)|no dude|¿(?:quieres|quiere|desea) que"
    r"|дайте знать|надеюсь, (?:это|что)|если (?:хотите|нужно)|обращайтесь)"
    r"|(?:\n\s*|(?<=[。！？\]])\s*)(?:如果您|如果你|希望(?:这|對|对)|如需|请告诉我|需要我"
    r"|ご(?:希望|要望|不明)|必要(?:であれば|でしたら)|何か(?:他|ほか)))[^\n;]*\s*\Z",
    re.I,
)
_COUNT = Pattern(
    r"(?:\n[ \t\n]*[(\[（*_]*|[ \t]*[(\[（][*_]*)(?:(?:word count|words|wörter|wortzahl|字数|文字数)\s*[:：]\s*(?:about |~)?\d+(?: words)?"
    r"|(?:ca?\.|about|approximately|~|約|约)?\s*\d+\s*(?:words?|wörter|worte|mots|palabras|слов\w*|字|文字|語)(?: total)?)"
    r"[)\]）*_.]*\s*\Z",
    re.I,
)
_CORNERS = Pattern(r"【\s*(\d+(?:\s*[,，、;–-]\s*\d+)*)\s*(?:†[^】]*)?】")
_NUMBERS = r"\d+(?:\s?[,;–-]\s?\d+)*"
_ROUND = Pattern(rf"(?<=[.!?。！？\"”»])\s?\(\s?({_NUMBERS})\s?\)(?=\s|\Z)|\s?\(\s?({_NUMBERS})\s?\)(?=[.!?。！？](?:\s|\Z))")
_BEFORE_THE_END = Pattern(rf"\s?(\[{_NUMBERS}\])([.!?。！？])(?=\s|\Z)")
_NUMBERED = Pattern(rf"\[\s?(?:#|n[or]\.|(?:source|turn|piece|line)s?)\s?({_NUMBERS})\s?\]", re.I)
_OF_NOTHING = Pattern(r"\s?\[-\d+\]")
_UNENDED = Pattern(rf"(\w)((?:\s?\[{_NUMBERS}\])*)\Z")
_BLANKS = Pattern(r"[ \t]{2,}")
_LOOKED_AT = 400
"""So many signs are looked at before an answer's own words, and behind them."""


def unwrapped(answer: str, told: str, pieces: int) -> str:
    """The answer without what a model puts around it. `told`: the story, whose words stay; `pieces`: how many can be cited, as `[1, 2]`."""
    text = _WRAPPER.sub("", _END_OF_THOUGHT.sub("", _THOUGHT.sub("", answer))) if "<" in answer else answer
    text, known = _BLANKS.sub(" ", text.strip()), told.casefold()
    text = _OF_NOTHING.sub("", _NUMBERED.sub(r"[\1]", text)) if "[" in text else text
    for pattern in (_FENCE, _RULE, _HEADING):
        text = pattern.sub("", text)
    text = _ITEM.sub("", _with_stops(text))
    text = _BOLD.sub(r"\1\2", text).strip()
    for pattern in (_HERE, _ASSENT, _LABEL):
        head = _without(pattern, text[:_LOOKED_AT], known)
        text = f"{head}{text[_LOOKED_AT:]}"
    for pattern in (_OFFER, _COUNT):
        tail = _without(pattern, text[-_LOOKED_AT:], known)
        text = f"{text[:-_LOOKED_AT]}{tail}".strip()
    text = _ROUND.sub(lambda match: _in_brackets(match, pieces), _CORNERS.sub(r"[\1]", text))
    return _BEFORE_THE_END.sub(r"\2 \1", text).strip()


def _with_stops(text: str) -> str:
    """The text with a full stop behind each item of a list that has none: its items become sentences that stand one behind the other."""
    starts = [match.start() for match in _LEAD.finditer(text)]
    items = [text[start:end].rstrip() for start, end in pairwise([*starts, len(text)])]
    return text[: starts[0]] + "\n".join(_UNENDED.sub(_stopped, item) for item in items) if starts else text


def _stopped(end: re.Match[str]) -> str:
    return f"{end[1]}{'。' if CJK.match(end[1]) else '.'}{end[2]}"


def _without(pattern: Pattern, part: str, known: str) -> str:
    """A part of the text without what the pattern finds, unless that is all there is, or the story says so itself."""
    match = pattern.search(part)
    if match is None or match[0].strip().casefold() in known:
        return part
    return f"{part[: match.start()]}{part[match.end() :]}" if match[0].strip() != part.strip() else part


def _in_brackets(match: re.Match[str], pieces: int) -> str:
    """A citation in the form that was asked for; a number that is none stays as it is."""
    numbers = match[1] or match[2]
    cited = all(1 <= int(number[:9]) <= pieces for number in re.findall(r"\d+", numbers))
    return f" [{numbers}]" if cited else match[0]
