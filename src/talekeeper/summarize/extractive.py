"""Folds without a model: the sentences of a run of turns that a careful game master would write down.

Every sentence gets a worth: what happens in it (promises, deaths, gifts, secrets …), whom and what it names, what it counts.
Chatter, dice and table talk have none. Then sentences are taken while they fit, the best for their length first; one counts
less when its turn (or its stretch of the story) is told already, and more when it names someone new. The text is what was
said: nothing is made up, only attributed (`Rogue: "I swear it."`), and a "He" after a sentence about Voss becomes "[Voss]".

Pure and deterministic: the same turns give the same fold, for ever.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_

from talekeeper.model import Sentence, Turn
from talekeeper.summarize.names import (
    CJK,
    CONTENT,
    MARK,
    NUMBER,
    PERSON,
    SAY,
    STOP,
    TIME,
    Pattern,
    Reading,
    is_cjk,
    known_terms,
    languages,
    listed,
    marks_of,
    normalise,
    phrases_in,
    read,
    study,
    terms_in,
)
from talekeeper.tokens import estimate_tokens

# --- sentences -------------------------------------------------------------------------------------------------------

_BOUNDARY = Pattern(r"[.!?…。！？\n][.!?…。！？]*(?:\s?»(?=\s|$)|[\"'”’)\]*_」』）》])*\s*")
_CLAUSE = Pattern(r"(?<=[,;:])\s+|(?<=[，、；：])|\s+(?=(?:and|but|then|so|und|aber|dann|et|mais|puis|y|pero|luego|и|но|потом)\s)")
_CJK_TAG = Pattern(r"[^。！？…\n「『“]{0,8}(?:说|道|问|喊|答|と[言叫答尋囁])")
_FIRST_WORD = Pattern(r"\w+")
LONGEST = 60
"""Words that a sentence may have before it is cut at its clauses."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with its closing marks; overlong ones in clauses."""
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end()
        if end < len(text) and not _is_boundary(text, start, match):
            continue
        sentence = text[start:end].strip()
        start = end
        if len(sentence) > LONGEST or "\n" in sentence:
            sentences += _clauses(sentence)
        elif sentence:
            sentences.append(sentence)
    if start < len(text) and (rest := text[start:].strip()):
        sentences += _clauses(rest)
    return sentences


def _is_boundary(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a mark ends a sentence: a blank and no small letter follow, and it is no dot of a short form."""
    mark, follows = match[0], text[match.end()]
    if mark[0] in "。！？":
        return mark[-1] not in "」』”" or not _CJK_TAG.match(text, match.end())
    if not mark[-1].isspace():
        return mark[0] == "…" and mark[-1] in "」』"
    if follows.islower():
        return mark.count("\n") > 1
    if mark[0] != "." or mark[1] == ".":
        return True
    at = match.start()
    before = text[max(start, at - 12) : at].split()
    word = before[-1].lstrip("\"'“„‘«([") if before else ""
    if word.isdigit():
        following = _FIRST_WORD.match(text, match.end())
        return not (len(word) < 3 and (start + len(word) == at or (following and following[0] in listed("month"))))
    if follows.isdigit() and word.lower() == "no":
        return False
    return not (word.lower() in listed("abbreviation") or "." in word or (len(word) == 1 and word.isupper() and word != "I"))


def _clauses(sentence: str) -> list[str]:
    """A sentence, cut in pieces of 12 to 30 words if it is longer than anyone would quote."""
    if _size(sentence) <= LONGEST:
        return [" ".join(sentence.split()) if "\n" in sentence else sentence]
    pieces: list[str] = []
    for clause in _CLAUSE.split(sentence):
        clause = clause.strip()
        if pieces and _size(pieces[-1]) < 12 and _size(pieces[-1]) + _size(clause) <= 30:
            pieces[-1] += ("" if CJK.search(clause) else " ") + clause
        elif clause:
            pieces += _hard_cut(clause)
    return pieces


def _size(text: str) -> int:
    """Words; two signs of a script without blanks count as one."""
    words = text.split()
    return len(words) if text.isascii() or len(text) < 12 * len(words) else len(text) // 2


def _hard_cut(clause: str) -> list[str]:
    if _size(clause) <= 30:
        return [clause]
    words = clause.split()
    if len(clause) < 12 * len(words):
        return [" ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
    return [clause[at : at + 40].strip() for at in range(0, len(clause), 40) if clause[at : at + 40].strip()]


# --- worth -----------------------------------------------------------------------------------------------------------

_EVENTS = {
    "promise": 4.0, "death": 4.0, "threat": 2.8, "reveal": 2.5, "quest": 2.5, "outcome": 2.0, "decide": 2.0, "gain": 2.0, "travel": 1.0,
}  # fmt: skip
_ABOUT = {"thing": 1.2, "money": 1.2, "number": 1.0, "person": 0.6, "place": 0.6, "time": 0.5}
_CUES = reduce(or_, (MARK[name] for name in _EVENTS))
_WEIGHED = reduce(or_, (MARK[name] for name in _ABOUT), _CUES)
_OFFER = MARK["gain"] | MARK["quest"] | MARK["promise"] | MARK["decide"]
_ORDER = MARK["gain"] | MARK["quest"] | MARK["death"]
_GAIN, _GOODS = MARK["gain"], MARK["thing"] | MARK["money"] | NUMBER
_BOND = MARK["promise"] | MARK["decide"]
_DEATH, _MONEY = MARK["death"], MARK["money"]
_FIRST, _SECOND, _PRONOUN = MARK["first"], MARK["second"], MARK["pronoun"]
_ROLL, _TABLE, _CHATTER = MARK["roll"], MARK["table"], MARK["chatter"]
_DIGITS = Pattern(r"\d+")
_DICE_TALK = Pattern(
    r"\b\d*[dwкд]\d{1,3}\b|\d\s*(?:\+|plus|minus|más|mas|плюс|加|足す|プラス)\s*\d|\bto hit\b|\bnat(?:ural)?[ -]?(?:20|1|twenty|one)\b"
    r"|\b(?:i|i've|we|ich habe|j'ai|he sacado|у меня|выпало)\s+(?:(?:got|get|rolled|have|fait|gewürfelt|saqué|eine?)\s+)*"
    r"(?:an?\s+|un\s+)?\d+\b(?!\s+[a-zà-ÿа-я])"
    r"|\b(?:that's|it's|that is|does|das ist|das sind|ça fait|eso es|это)\s+(?:an?\s+|eine\s+|un\s+)?\d+\b(?!\s+[a-zà-ÿа-я]{4})",
    re.I,
)
_DICE_TALK_WORDS = 16
"""Talk of dice is short, unless it says so: a number in a longer sentence is one of the story."""
_DETAIL = 0.3
"""What a word is worth that tells anything at all."""
_BASE = 25.0
"""Tokens by which every sentence seems longer when it is chosen: a short one is not all that cheap."""
_PLAIN, _IDLE_TALK, _TABLE_TALK = 0, 1, 2
_UNREAD = Reading([], [], [], 0, 0.0, [], [])


@dataclass(slots=True)
class _Draft:
    """A sentence that may go into a fold: `body` as it was said, `text` as it would stand there, said by `voice`."""

    body: str
    lang: str
    sources: tuple[str, ...] = ()
    stretch: int = 0
    worth: float = 0.0
    estimated: bool = False
    outside: str | None = None  # what is not in quotes, if something is
    voice: str = ""
    text: str = ""
    reading: Reading = _UNREAD
    keys: Sequence[str] = ()
    marks: int = 0
    rank: int = _PLAIN
    weighed: bool = False  # the worth is known from a smaller fold


@lru_cache(maxsize=1 << 12)
def _weight(marks: int) -> float:
    """What happens, the foremost thing in full and the rest by half; what it is about, up to a point; a vow or a bargain above all.

    To give or take is an event where there is something to have.
    """
    events = sorted((weight for name, weight in _EVENTS.items() if marks & MARK[name]), reverse=True)
    if marks & _GAIN and not marks & _GOODS:
        events.remove(_EVENTS["gain"])
    about = min(2.0, sum(weight for name, weight in _ABOUT.items() if marks & MARK[name]))
    vow = 2.0 if marks & MARK["promise"] and marks & _FIRST else 0.0  # who speaks for a seat is in the first person
    bargain = 3.0 if marks & _OFFER and marks & _MONEY and marks & NUMBER else 0.0
    return sum(events[:1]) + 0.5 * sum(events[1:3]) + about + bargain + vow


def _judge(drafts: list[_Draft], known: Collection[str], voices: Collection[str]) -> None:
    """Gives each draft its rank, its names and its worth, in the light of all of them."""
    speakers = {norm for voice in voices for piece in voice.split() if (norm := normalise(piece))}
    sure = set(speakers)
    for draft in drafts:
        draft.reading = study(draft.body, draft.lang)
        sure.update(draft.reading.sure)
    whole = " ".join([draft.body for draft in drafts])
    registry = known_terms(known, whole)
    spoken = {lang: phrases_in(whole, lang) for lang in {draft.lang: None for draft in drafts}}
    met: set[str] = set()
    for draft in drafts:
        body, reading = draft.body, draft.reading
        if reading.doubtful:
            draft.reading = reading = reading.given(sure, draft.lang)
        draft.keys, marks = reading.keys, reading.marks
        for phrase, mark in spoken[draft.lang]:
            marks |= mark if phrase in body else 0
        draft.marks = marks
        familiar = terms_in(body, reading.words, registry) if registry else ()
        if familiar:
            draft.keys = [*draft.keys, *(term for term in map(str.lower, familiar) if not any(key in term for key in draft.keys))]
        if voices and is_cjk(draft.lang):
            draft.keys = [*draft.keys, *(voice for voice in voices if voice in body and voice not in draft.keys)]
        named = bool(draft.keys)
        if draft.voice and draft.voice not in voices and draft.voice.casefold() not in listed("narrator"):
            draft.keys = [*draft.keys, normalise(draft.voice.split()[-1])]
        draft.rank = _rank(draft, speakers)
        if draft.rank == _PLAIN:
            draft.worth += _weight(marks & (_WEIGHED | _FIRST) | (_FIRST if draft.voice else 0)) + _form(draft) + min(3, len(familiar))
            if draft.keys:
                new = [key for key in draft.keys if key not in met]
                draft.worth += 0.5 * min(3, len(draft.keys)) + 0.5 * min(2, len(new))
                draft.worth += 1.5 if named and marks & _DEATH else 0.8 if named and marks & SAY else 0.0
                met.update(new)


def _rank(draft: _Draft, voices: Collection[str]) -> int:
    """Whether a sentence tells something, or is chatter, or is about dice and the table."""
    words, marks = draft.reading.words, draft.marks
    if marks & _TABLE:
        return _TABLE_TALK
    if marks & _ROLL:
        rolls = len([word for word in words if word.marks & _ROLL])
        if rolls > 1 or (marks & NUMBER and not marks & _DEATH):
            return _TABLE_TALK
    if (marks & _ROLL or (marks & NUMBER and len(words) <= _DICE_TALK_WORDS)) and _talks_dice(draft.body):
        return _TABLE_TALK
    if is_cjk(draft.lang):
        idle = sum(len(word.norm) for word in words if word.marks & _CHATTER)
        return _IDLE_TALK if idle * 2 >= len(draft.body.strip("。！？…「」“”，、 ")) else _PLAIN
    if marks & _WEIGHED & ~(PERSON | NUMBER | TIME) or any(key not in voices for key in draft.reading.keys):
        return _PLAIN
    if marks & _CHATTER and 2 * len([word for word in words if word.marks & _CHATTER]) >= len(words):
        return _IDLE_TALK
    return _PLAIN if marks & CONTENT else _IDLE_TALK


def _talks_dice(text: str) -> bool:
    """Whether a number in the sentence is one of dice or rules; looks around each number only, because most sentences have none such."""
    return any(_DICE_TALK.search(text, max(0, run.start() - 32), run.end() + 12) for run in _DIGITS.finditer(text))


def tells(sentence: str, lang: str) -> bool:
    """Whether a sentence tells something of a story: it is neither chatter nor talk of dice and the table."""
    draft = _Draft(sentence, lang)
    _judge([draft], (), ())
    return draft.rank == _PLAIN


def _form(draft: _Draft) -> float:
    """What the shape of a sentence does to its worth: an order; a question, a stump, a pronoun in the place of a name."""
    words, text = draft.reading.words, draft.body
    worth = 1.0 if text[0] in _OPENING and any(word.marks & _ORDER for word in words[:2]) else 0.0
    if text[-1] in "?？" or text[-2:-1] in ("?", "？"):
        worth -= 1.5
    worth += _DETAIL * min(14, draft.reading.detail)
    if is_cjk(draft.lang):
        return worth - (1.0 if len(text) < 7 else 0.0) - (0.8 if not draft.keys and draft.marks & _PRONOUN else 0.0)
    if len(words) < 4:
        worth -= 2.5
    if not draft.keys and words and words[0].marks & _PRONOUN:
        return worth - 1.2
    return worth - (0.6 if len(words) > 2 and (words[1].marks | words[2].marks) & _PRONOUN else 0.0)


# --- choice ----------------------------------------------------------------------------------------------------------

_ENOUGH = 1.5
"""What a sentence must be worth to be taken once the fold is half full."""
_NEXT_TO_NOTHING = 0.01
_FILLER = 3.0
"""What any sentence is worth: some sentences are better than one only by what they have above that."""


def _choose(drafts: list[_Draft], limit: int, fade: float) -> tuple[Sentence, ...]:
    """The best drafts that fit together, in their order; never none, if there is a draft at all."""
    if not drafts:
        return ()
    chosen = _take(drafts, limit, fade)
    best = min(range(len(drafts)), key=lambda at: (drafts[at].rank, -drafts[at].worth, at))
    if not chosen or (best not in chosen and sum(drafts[at].worth for at in chosen) < drafts[best].worth / 2):
        return (_sentence(drafts[best], _clip(drafts[best].text, limit)),)
    while len(chosen) > 1 and estimate_tokens(" ".join(drafts[at].text for at in sorted(chosen))) > limit:
        chosen.pop()
    return tuple(_sentence(drafts[at], drafts[at].text) for at in sorted(chosen))


def _sentence(draft: _Draft, text: str) -> Sentence:
    """The draft as it goes into a fold, with what it was found worth; talk that only filled the room is worth next to nothing."""
    weight = max(_NEXT_TO_NOTHING, round(draft.worth, 2)) if draft.rank == _PLAIN else _NEXT_TO_NOTHING
    return Sentence(text, draft.sources, draft.estimated, weight, tuple(draft.keys))


def _take(drafts: list[_Draft], limit: int, fade: float) -> list[int]:
    """Places of drafts that fit together, in the order they were taken: worth for length, new names more, told stretches less."""
    told: dict[int, int] = {}
    said: set[str] = set()
    lengths = [_BASE + len(draft.text) * (1.3 if is_cjk(draft.lang) else 0.25) for draft in drafts]
    fresh = [len(draft.keys) for draft in drafts]  # how many names of each have not been told yet
    holders: dict[str, list[int]] = {}
    for at, draft in enumerate(drafts):
        for name in draft.keys:
            holders.setdefault(name, []).append(at)

    def faded(draft: _Draft, before: int) -> float:
        """What a draft is still worth after so many of its stretch: what matters most fades little."""
        return draft.worth - min(draft.worth * (1 - fade**before), 2.0 * before)

    def value(at: int) -> float:
        draft = drafts[at]
        worth = faded(draft, told[draft.stretch]) if draft.stretch in told else draft.worth
        new = fresh[at]
        return (worth + 0.6 * (new if new < 3 else 3)) / lengths[at]

    heap = [(-value(at), at) for at, draft in enumerate(drafts) if draft.rank == _PLAIN and draft.worth > -1]
    heapq.heapify(heap)
    costs: dict[int, int] = {}
    spare: list[int] = []
    room = limit
    while heap and (room > 4 or not costs):
        at = heap[0][1]
        draft = drafts[at]
        now = -value(at)
        if (len(heap) > 1 and now > heap[1][0]) or (len(heap) > 2 and now > heap[2][0]):  # others have overtaken it meanwhile
            heapq.heapreplace(heap, (now, at))
            continue
        heapq.heappop(heap)
        if draft.worth < _ENOUGH and room * 2 < limit:
            continue
        cost = _cost(draft.text)
        if cost > room:
            spare.append(at)
        elif (key := _key(draft)) not in said:
            said.add(key)
            costs[at] = cost
            room -= cost
            told[draft.stretch] = told.get(draft.stretch, 0) + 1
            for name in draft.keys:
                for other in holders.pop(name, ()):
                    fresh[other] -= 1
    spare += [at for _, at in heap]
    best = heapq.nsmallest(6, [at for at in spare if drafts[at].worth >= _ENOUGH], key=lambda at: (-drafts[at].worth, at))
    better = {key: at for at in reversed(best) if (key := _key(drafts[at])) not in said}
    if costs and better:
        over = {at: faded(drafts[at], told[drafts[at].stretch] - 1) - _FILLER for at in costs}
        over |= {at: faded(drafts[at], told.get(drafts[at].stretch, 0)) - _FILLER for at in better.values()}
        _exchange(over, costs, {at: _cost(drafts[at].text) for at in sorted(better.values(), key=best.index)}, room)
    return list(costs)


_cost = lru_cache(maxsize=1 << 12)(estimate_tokens)
"""What a sentence takes of the room. The same sentences come back in larger folds and digests."""


def _key(draft: _Draft) -> str:
    """What two drafts have in common that say the same."""
    if draft.weighed:
        return draft.text
    said = draft.body if is_cjk(draft.lang) else " ".join([word.norm for word in draft.reading.words])
    return f"{draft.voice}: {said}"


def _exchange(over: dict[int, float], costs: dict[int, int], spare: dict[int, int], room: int) -> None:
    """Makes better use of the room: some spare drafts (best first) in the place of a lesser one, or one in the place of up to three."""
    for out in sorted(costs, key=lambda at: (over[at], at)):
        left, into = room + costs[out], []
        for at in spare:
            if spare[at] <= left and at not in costs:
                into.append(at)
                left -= spare[at]
        if into and sum([over[at] for at in into]) > over[out] + 0.3:
            del costs[out]
            costs.update((at, spare[at]) for at in into)
            room = left
    for at in spare:
        left, gone = room - spare[at], []
        for out in sorted(costs, key=lambda at: (over[at], at))[:3] if left < 0 else ():
            if left < 0:
                gone.append(out)
                left += costs[out]
        if at not in costs and left >= 0 and (not gone or sum([over[out] for out in gone]) + 0.3 < over[at]):
            for out in gone:
                del costs[out]
            costs[at] = spare[at]
            room = left


def _clip(text: str, limit: int) -> str:
    """The longest beginning of a text that fits, cut between words (signs, where there are no blanks), with an ellipsis."""
    if estimate_tokens(text) <= limit:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if len(ends) * 20 < len(text):
        ends = list(range(1, len(text) + 1))
    return _longest(text, ends, limit) or _longest(text, range(1, ends[0] + 1), limit) or "…"


def _longest(text: str, ends: Sequence[int], limit: int) -> str:
    """The text up to the last of the ends at which it fits, with an ellipsis and the quotation marks that it opened."""
    low, high, best = 0, len(ends) - 1, ""
    closing = text[-1] if text[-1] in _CLOSING else ""
    while low <= high:
        middle = (low + high) // 2
        stump = text[: ends[middle]].rstrip(" ,;:.…-–—，、；：。") + "…"
        stump += closing if closing and _still_open(stump, False) else ""
        if estimate_tokens(stump) <= limit:
            low, best = middle + 1, stump
        else:
            high = middle - 1
    return best


# --- speech ----------------------------------------------------------------------------------------------------------

_TOLD_BARE = frozenset({"event", "note", "session", "enter", "leave"})
_QUOTES = {"de": ("„", "“"), "fr": ("« ", " »"), "ru": ("«", "»"), "es": ("«", "»"), "zh": ("“", "”"), "ja": ("「", "」")}
_MARKS = Pattern(r"[\"“”„«»「」『』]")
_PARTNER = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』", '"': '"'}
_OPENING, _CLOSING = "".join(_PARTNER), "".join(_PARTNER.values())
_ASIDE = Pattern(
    r"\s?[(\[（][^()\[\]（）]{0,60}?(?:\b(?:\d*[dwкд]\d+|dc|ac|hp|ooc|roll\w*|nat(?:ural)?\s?\d+|crit\w*|würf\w*|wurf|tirada|jet"
    r"|броск?\w*)\b|骰|检定|ダイス|判定|出目)[^()\[\]（）]{0,60}[)\]）]",
    re.I,
)
_SPEAKER = Pattern(r"(\[[^\]\n]{1,60}\]|[^\s:：,;\"“„«「]{1,30}(?: [^\s:：,;\"“„«「]{1,30}){0,3}) ?[:：] ?(?=[\"“„«「『*])")


def _still_open(text: str, inside: bool) -> bool:
    for mark in _MARKS.findall(text):
        inside = not inside if mark in '"“' else mark in "„«「『"
    return inside


def _outside(text: str, inside: bool) -> str:
    """What of a sentence is not within quotes."""
    parts: list[str] = []
    at = 0
    for match in _MARKS.finditer(text):
        if not inside:
            parts.append(text[at : match.start()])
        inside = _still_open(match[0], inside)
        at = match.end()
    if not inside:
        parts.append(text[at:])
    return " ".join(parts).strip(" ,.;:!?…—–-，。、：")


def _drafts_of(text: str, lang: str) -> list[_Draft]:
    """The sentences of a turn's text; quotations over several sentences get their marks back, and their speaker."""
    sentences = split_sentences(text)
    drafts: list[_Draft] = []
    if not _MARKS.search(text):
        for sentence in sentences:
            drafts.append(_Draft(sentence, lang))
            _join_stump(drafts)
        return drafts
    inside, opening = False, '"'
    for sentence in sentences:
        outside, was = _outside(sentence, inside), inside
        inside = _still_open(sentence, inside)
        whole = f"{opening}{sentence}" if was else sentence
        if inside:
            opening = next((mark for mark in reversed(_MARKS.findall(sentence)) if mark in _PARTNER), opening)
            whole += _PARTNER[opening]
        if drafts and drafts[-1].outside == "" and whole == sentence and _is_tag(sentence, lang):
            drafts[-1] = _Draft(f"{drafts[-1].body} {sentence}", lang, outside=outside)
        else:
            drafts.append(_Draft(whole, lang, outside=outside if _MARKS.search(whole) else None))
            _join_stump(drafts)
    _find_tellers(drafts)
    return drafts


def _join_stump(drafts: list[_Draft]) -> None:
    """Puts the last draft to the one before it, if it is no more than an "I promise.": to what, stands there."""
    if len(drafts) < 2 or len(drafts[-1].body) > 40 or len(drafts[-2].body) > 160:
        return
    before, stump = drafts[-2:]
    if study(stump.body, stump.lang).detail < 4 and marks_of(stump.body, stump.lang) & _BOND:
        outside = None if before.outside is None and stump.outside is None else f"{before.outside or ''}{stump.outside or ''}"
        drafts[-2:] = [_Draft(f"{before.body}{'' if is_cjk(before.lang) else ' '}{stump.body}", before.lang, outside=outside)]


def _is_tag(sentence: str, lang: str) -> bool:
    """Whether a sentence says who spoke the quotation before it: `"Stop!" Voss shouts.`"""
    return not _MARKS.search(sentence) and len(sentence.split()) < 7 and any(word.marks & SAY for word in read(sentence, lang))


def _find_tellers(drafts: list[_Draft]) -> None:
    """Names whoever speaks a bare quotation: by its tag, or by the sentence before it in the same turn, or the one after."""
    voice = ""
    for at, draft in enumerate(drafts):
        if draft.outside is None:
            voice = _doer(draft)
        elif draft.outside:
            voice = _doer(draft) or voice
        else:
            draft.voice = voice = voice or next((_doer(later) for later in drafts[at + 1 : at + 3] if later.outside != ""), "")


def _doer(draft: _Draft) -> str:
    """The name with which a sentence begins, quotes apart; where it has quotes, the only name beside them."""
    text = draft.body if draft.outside is None else draft.outside
    reading = study(text, draft.lang)
    return _subject(text, reading) or (reading.names[0].text if draft.outside is not None and len(reading.names) == 1 else "")


def _subject(text: str, reading: Reading) -> str:
    """The name with which a sentence begins, or the only one in it that has a title."""
    if not reading.names:
        return ""
    first, words = reading.names[0], reading.words
    if not first.places:  # a script without blanks
        return first.text if text.startswith(first.text) else ""
    if first.places[0] == 0 or (first.places[0] == 1 and words[0].marks & STOP):
        return first.text
    titled = [name.text for name in reading.names if (words[name.places[0]].marks | words[name.places[0] - 1].marks) & PERSON]
    return titled[0] if len(titled) == 1 else ""


def _is_narrator(turn: Turn) -> bool:
    return turn.kind in _TOLD_BARE or turn.voice.casefold() in listed("narrator") or turn.speaker.casefold() in listed("narrator")


def _attribute(draft: _Draft, voice: str) -> None:
    """`Rogue: "I promise."`; an emote, or what has quotes of its own, gets no quotes."""
    draft.voice = voice
    colon = "：" if is_cjk(draft.lang) else " : " if draft.lang == "fr" else ": "
    if draft.text[0] != "*" and not _MARKS.search(draft.text):
        opening, closing = _QUOTES.get(draft.lang, ('"', '"'))
        draft.text = f"{opening}{draft.text}{closing}"
    draft.text = f"{voice}{colon}{draft.text}"


def _tell(drafts: list[_Draft], turns: Sequence[Turn], narrators: Sequence[bool]) -> None:
    """Gives each draft the text with which it would stand in the fold."""
    subject = gender = ""
    for draft in drafts:
        turn, words = turns[draft.stretch], draft.reading.words
        lead = words[0] if words else None
        draft.text = _ended(draft.body, draft.lang)
        if not narrators[draft.stretch]:
            if turn.voice and not _names_itself(draft, turn.voice):
                _attribute(draft, turn.voice)
        elif draft.outside == "":
            _attribute(draft, draft.voice or (f"[{subject}]" if subject else turn.voice))
        elif draft.outside is None and draft.marks & _FIRST and turn.kind not in _TOLD_BARE and not is_cjk(draft.lang):
            _attribute(draft, turn.voice)
        elif lead and lead.norm in listed("he") and draft.text.startswith(lead.plain):
            his = _gender([lead.norm])
            if subject and gender in ("", his):
                draft.text, gender = f"[{subject}]{draft.text[len(lead.plain) :]}", his
            else:
                subject = ""
        elif lead and draft.outside is None and not (lead.marks & (_PRONOUN | _SECOND) and draft.text.startswith(lead.plain)):
            subject = "" if draft.marks & _DEATH else _subject(draft.body, draft.reading)
            gender = _gender([*subject.lower().split(), *(word.norm for word in words if word.marks & _PRONOUN)]) if subject else ""


def _names_itself(draft: _Draft, voice: str) -> bool:
    """Whether a seat tells of itself by name: at the start of a sentence, or beside a quotation."""
    told = draft.body[: len(voice) + 12] if draft.outside is None else draft.outside
    if voice.lower() not in told.lower():
        return False
    return bool(CJK.search(voice)) or re.search(rf"(?<!\w){re.escape(voice)}(?!\w)", told, re.I) is not None


def _gender(words: Iterable[str]) -> str:
    """The gender of the first word that has one: a pronoun or a title."""
    for word in words:
        if word in listed("male") or word in listed("lord"):
            return "male"
        if word in listed("female") or word in listed("lady"):
            return "female"
    return ""


def _ended(text: str, lang: str) -> str:
    """The text with a full stop, if it ends in a letter or a comma."""
    if text[-1] in " ,;，、；":
        text = text.rstrip(" ,;，、；") or text
    return text + ("。" if is_cjk(lang) else ".") if text[-1].isalnum() else text


# --- the two doors ---------------------------------------------------------------------------------------------------


def condense(turns: Sequence[Turn], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of some turns that matter most, in order, within `limit` tokens; each cites its turn.

    Never empty if a turn has text: a sentence that alone is too long is clipped. `known` are names and things that the
    story has on its books.
    """
    drafts: list[_Draft] = []
    narrators = [_is_narrator(turn) for turn in turns]
    for stretch, (turn, lang) in enumerate(zip(turns, languages([turn.text for turn in turns]), strict=True)):
        text = turn.text
        if "(" in text or "[" in text or "（" in text:
            text = _ASIDE.sub("", text).strip() or text
        for draft in _drafts_of(text, lang):
            draft.sources, draft.stretch = (turn.id,), stretch
            draft.voice = draft.voice if narrators[stretch] else turn.voice
            if turn.kind == "event" or turn.kind == "note":
                draft.worth = 1.0
            drafts.append(draft)
    _judge(drafts, known, dict.fromkeys(draft.voice for draft in drafts if draft.voice))
    _tell(drafts, turns, narrators)
    return _choose(drafts, limit, fade=0.8)


def merge(sentences: Sequence[Sentence], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of smaller folds that matter most, in order, spread over the whole run, within `limit` tokens."""
    told = [sentence for sentence in sentences if sentence.text and not sentence.text.isspace()]
    drafts = [_draft_again(sentence, at * 8 // len(told)) for at, sentence in enumerate(told)]
    unread = [draft for draft in drafts if not draft.weighed]
    if unread:
        for draft, lang in zip(unread, languages([draft.text for draft in unread]), strict=True):
            draft.lang = lang
        _judge(unread, known, ())
    return _choose(drafts, limit, fade=0.6)


def _draft_again(sentence: Sentence, stretch: int) -> _Draft:
    """A sentence of a smaller fold as a draft for a larger one."""
    text = sentence.text
    if sentence.weight:
        lang = "" if text.isascii() or not CJK.search(text) else "zh"
        rank = _PLAIN if sentence.weight > _NEXT_TO_NOTHING else _IDLE_TALK
        return _Draft(
            text, lang, sentence.sources, stretch, sentence.weight, sentence.estimated, None, "", text, _UNREAD, sentence.about, 0, rank,
            weighed=True,
        )  # fmt: skip
    speaker = _SPEAKER.match(text)
    voice, body = (speaker[1], text[speaker.end() :]) if speaker else ("", text)
    return _Draft(body, "", sentence.sources, stretch, 0.0, sentence.estimated, None, voice, text)
