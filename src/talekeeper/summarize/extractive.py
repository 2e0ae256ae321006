"""Folds without a model: the sentences of a run of turns that a careful game master would write down.

Every sentence gets a worth: what happens in it (promises, deaths, gifts, secrets …), whom and what it names, what it counts.
Chatter, dice and table talk have none. Then sentences are taken while they fit, the best for their length first; one counts
less when its turn (or its stretch of the story) is told already, and more when it names someone new. The text is what was
said: nothing is made up, only attributed (`Rogue: "I swear it."`), and a "He" after a sentence about Voss becomes "[Voss]".

Pure and deterministic: the same turns give the same fold, for ever.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from itertools import pairwise
from operator import or_

from talekeeper.kept import kept
from talekeeper.model import Sentence, Turn
from talekeeper.summarize.names import known_terms, study, terms_in
from talekeeper.summarize.salience import Read
from talekeeper.summarize.speech import (
    ASIDE,
    IDLE_TALK,
    OPENING,
    PLAIN,
    SPEAKER,
    TABLE_TALK,
    UNREAD,
    Draft,
    Told,
    clip,
    drafts_of,
    is_narrator,
    marks_with,
    tell,
)
from talekeeper.summarize.words import (
    CJK,
    CONTENT,
    MARK,
    NAMEABLE,
    NUMBER,
    PERSON,
    SAY,
    STOP,
    TIME,
    Pattern,
    Phrases,
    Word,
    is_cjk,
    languages,
    listed,
    normalise,
    phrases_in,
)  # fmt: skip
from talekeeper.tokens import estimate_tokens

# --- worth -----------------------------------------------------------------------------------------------------------

_EVENTS = {
    "promise": 4.0, "death": 4.0, "betray": 3.5, "threat": 2.8, "reveal": 2.5, "quest": 2.5, "outcome": 2.0, "decide": 2.0, "gain": 2.0,
}  # fmt: skip
_ABOUT = {"thing": 1.2, "money": 1.2, "number": 1.0, "person": 0.6, "place": 0.6, "time": 0.5}
_CUES = reduce(or_, (MARK[name] for name in _EVENTS))
_WEIGHED = reduce(or_, (MARK[name] for name in _ABOUT), _CUES)
_OFFER = MARK["gain"] | MARK["quest"] | MARK["promise"] | MARK["decide"]
_ORDER = MARK["gain"] | MARK["quest"] | MARK["death"]
_GAIN, _THING = MARK["gain"], MARK["thing"]
_GOODS = _THING | MARK["money"] | NUMBER
_DEATH, _MONEY = MARK["death"], MARK["money"]
_PROMISE = MARK["promise"]
_DUTY = _PROMISE | MARK["quest"] | MARK["threat"]
_DENIABLE = _PROMISE | _GAIN | _DEATH
_FIRST, _PRONOUN = MARK["first"], MARK["pronoun"]
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
_DEADLINE, _HOUR, _INTENT = 4.0, 1.5, 0.8
_MOVES = frozenset({"enter", "leave"})
_MOVE = 2.0
"""By how much coming and going is less than what happens."""
_DETAIL = 0.3
"""What a word is worth that tells anything at all."""
_BASE = 25.0
"""Tokens by which every sentence seems longer when it is chosen: a short one is not all that cheap."""


@lru_cache(maxsize=1 << 12)
def _weight(marks: int) -> float:
    """What happens, the foremost thing in full and the rest by half; what it is about, up to a point; a vow or a bargain above all; a gift.

    To give or take is an event where there is something to have.
    """
    events = sorted((weight for name, weight in _EVENTS.items() if marks & MARK[name]), reverse=True)
    if marks & _GAIN and not marks & _GOODS:
        events.remove(_EVENTS["gain"])
    about = min(2.0, sum(weight for name, weight in _ABOUT.items() if marks & MARK[name]))
    vow = 3.0 if marks & _PROMISE and marks & _FIRST else 0.0
    bargain = 3.0 if marks & _OFFER and marks & _MONEY and marks & NUMBER else 0.0
    gift = 1.0 if marks & _GAIN and marks & _THING else 0.0
    return sum(events[:1]) + 0.5 * sum(events[1:3]) + about + bargain + gift + vow


def _judge(drafts: list[Draft], known: Collection[str], voices: Collection[str], phrases: Mapping[str, Phrases] | None = None) -> None:
    """Gives each draft its rank, its names and its worth, in the light of all of them."""
    speakers = {norm for voice in voices for piece in voice.split() if (norm := normalise(piece))}
    sure = set(speakers)
    for draft in drafts:
        if draft.reading is UNREAD:
            draft.reading = study(draft.body, draft.lang)
        sure.update(draft.reading.sure)
    whole = " ".join([draft.body for draft in drafts])
    registry = known_terms(known, whole)
    if phrases is None:
        phrases = {lang: phrases_in(whole, lang) for lang in {draft.lang for draft in drafts}}
    met: set[str] = set()
    for draft in drafts:
        body, reading = draft.body, draft.reading
        if reading.doubtful:
            draft.reading = reading = reading.given(sure, draft.lang)
        draft.keys, marks = reading.keys, marks_with(draft, phrases[draft.lang])
        if marks & _DENIABLE:
            marks &= ~_only_seems(reading.words, marks)
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
        if draft.rank == PLAIN:
            draft.worth += _weight(marks & (_WEIGHED | _FIRST)) + _form(draft) + min(3, len(familiar))
            if draft.keys:
                new = [key for key in draft.keys if key not in met]
                draft.worth += 0.5 * min(3, len(draft.keys)) + 0.5 * min(2, len(new))
                draft.worth += _by_name(marks) if named else 0.0
                met.update(new)


def _by_name(marks: int) -> float:
    """What it adds to a sentence that it says who: died, was promised or given something, said something."""
    if marks & _DEATH:
        return 3.0
    if marks & _PROMISE and marks & _FIRST:
        return 2.0
    return 1.2 if marks & _GAIN and marks & _THING else 0.8 if marks & SAY else 0.0


def _only_seems(words: Sequence[Word], marks: int) -> int:
    """The cues that are there by their words alone: what was not promised, "the dead" as such, a death in an "if", a debt of nothing."""
    seems = real = 0
    supposed = _DEATH if words and words[0].norm in listed("if") else 0
    for at, word in enumerate(words):
        if cue := word.marks & _DENIABLE:
            before = [near.norm for near in words[max(0, at - 3) : at]]
            if cue & supposed or not listed("not").isdisjoint(before) or (word.norm == "dead" and before[-1:] == ["the"]):
                seems |= cue
            elif cue & _PROMISE and not marks & _GOODS and word.norm in listed("owing"):
                seems |= _PROMISE
            else:
                real |= cue
    return seems & ~real


def _rank(draft: Draft, voices: Collection[str]) -> int:
    """Whether a sentence tells something, or is chatter, or is about dice and the table."""
    words, marks = draft.reading.words, draft.marks
    if marks & _TABLE:
        return TABLE_TALK
    if marks & _ROLL:
        rolls = len([word for word in words if word.marks & _ROLL])
        if rolls > 1 or (marks & NUMBER and not marks & _DEATH):
            return TABLE_TALK
    if (marks & _ROLL or (marks & NUMBER and len(words) <= _DICE_TALK_WORDS)) and _talks_dice(draft.body):
        return TABLE_TALK
    if marks & NUMBER and all(word.marks & (NUMBER | NAMEABLE) for word in words) and len(_DIGITS.findall(draft.body)) > 1:
        return TABLE_TALK  # "Elena 15, Borin 11"
    if is_cjk(draft.lang):
        idle = sum(len(word.norm) for word in words if word.marks & _CHATTER)
        return IDLE_TALK if idle * 2 >= len(draft.body.strip("。！？…「」“”，、 ")) else PLAIN
    if marks & _WEIGHED & ~(PERSON | NUMBER | TIME) or any(key not in voices for key in draft.reading.keys):
        return PLAIN
    if marks & _CHATTER and 2 * len([word for word in words if word.marks & _CHATTER]) >= len(words):
        return IDLE_TALK
    return PLAIN if marks & CONTENT else IDLE_TALK


def _talks_dice(text: str) -> bool:
    """Whether a number in the sentence is one of dice or rules; looks around each number only, because most sentences have none such."""
    return any(_DICE_TALK.search(text, max(0, run.start() - 32), run.end() + 12) for run in _DIGITS.finditer(text))


def _put_behind(draft: Draft, turn: Turn) -> None:
    """Coming and going is less than what happens, and dice have nothing to tell."""
    if turn.kind not in _MOVES:
        draft.rank = TABLE_TALK
        return
    draft.worth -= _MOVE
    if not draft.marks & _CUES and _told_beside(draft, f"{turn.voice} {turn.location or ''}") <= 1:
        draft.rank = IDLE_TALK


def _told_beside(draft: Draft, names: str) -> int:
    """How many words of a sentence tell something beside its names, and beside those."""
    known = {normalise(piece) for piece in names.split()}
    places = {at for name in draft.reading.names for at in name.places}
    return sum(word.detail for at, word in enumerate(draft.reading.words) if at not in places and word.norm not in known)


def tells(sentence: str, lang: str) -> bool:
    """Whether a sentence tells something of a story: it is neither chatter nor talk of dice and the table."""
    draft = Draft(sentence, lang)
    _judge([draft], (), ())
    return draft.rank == PLAIN


def _form(draft: Draft) -> float:
    """What the shape of a sentence does to its worth: an order; a question, a stump, a pronoun in the place of a name."""
    words, text = draft.reading.words, draft.body
    worth = 1.0 if text[0] in OPENING and any(word.marks & _ORDER for word in words[:2]) else 0.0
    if text[-1] in "?？" or text[-2:-1] in ("?", "？"):
        worth -= 1.5
    worth += _DETAIL * min(14, draft.reading.detail)
    if is_cjk(draft.lang):
        return worth - (1.0 if len(text) < 7 else 0.0) - (0.8 if not draft.keys and draft.marks & _PRONOUN else 0.0)
    if len(words) < 4:
        worth -= 2.5
    if draft.marks & TIME and not listed("deadline").isdisjoint([word.norm for word in words]):
        worth += _DEADLINE if draft.marks & _DUTY or _ahead(text) else _HOUR
    if draft.marks & _FIRST and _ahead(text) and _intends(words):
        worth += _INTENT
    if " one " in text and _stands_in(words):
        worth -= 2.0
    if not draft.keys and words and words[0].marks & _PRONOUN:
        return worth - 1.2
    return worth - (0.6 if len(words) > 2 and (words[1].marks | words[2].marks) & _PRONOUN else 0.0)


def _stands_in(words: Sequence[Word]) -> bool:
    """Whether a "one" stands for a thing that was named before: found one, bought one."""
    return any(
        word.marks & _GAIN and after.norm == "one" and follows.marks & STOP
        for word, after, follows in zip(words, words[1:], words[2:], strict=False)
    )


def _ahead(text: str) -> bool:
    """Whether a sentence may tell what is to come."""
    return " will " in text or " shall " in text


def _intends(words: Sequence[Word]) -> bool:
    """Whether someone says what they will do."""
    return any(word.marks & _FIRST and after.norm in ("will", "shall") for word, after in pairwise(words))


# --- choice ----------------------------------------------------------------------------------------------------------

_ENOUGH = 1.5
"""What a sentence must be worth to be taken once the fold is half full, and into a larger fold beside others."""
_NEXT_TO_NOTHING = 0.01
_NEW = (0.0, 0.6, 0.6 * 2, 0.6 * 3)
"""What new names add to the worth of a sentence, by their number."""
_END = (math.inf, -1)
_WEIGHTY = 8.0
"""From this worth on, sentences of larger folds are held against each other: do they say the same?"""
_FILLER = 3.0
"""What any sentence is worth: some sentences are better than one only by what they have above that."""


def _choose(drafts: list[Draft], limit: int, fade: float) -> tuple[Sentence, ...]:
    """The best drafts that fit together, in their order; never none, if there is a draft at all."""
    if not drafts:
        return ()
    chosen = _take(drafts, limit, fade)
    best = min([(draft.rank, -draft.worth, at) for at, draft in enumerate(drafts)])[2]
    if not chosen or (best not in chosen and sum(drafts[at].worth for at in chosen) < drafts[best].worth / 2):
        return (_sentence(drafts[best], clip(drafts[best].text, limit)),)
    slack = limit - sum([_cost(drafts[at].text) for at in chosen])
    while slack * 2 <= len(chosen) > 1 and estimate_tokens(" ".join(drafts[at].text for at in sorted(chosen))) > limit:
        chosen.pop()  # each count was rounded: it may be half a token more
    return tuple(_sentence(drafts[at], drafts[at].text) for at in sorted(chosen))


def _sentence(draft: Draft, text: str) -> Sentence:
    """The draft as it goes into a fold, with what it was found worth; talk that only filled the room is worth next to nothing."""
    if draft.origin is not None and text is draft.text:
        return draft.origin
    weight = max(_NEXT_TO_NOTHING, round(draft.worth, 2)) if draft.rank == PLAIN else _NEXT_TO_NOTHING
    return Sentence(text, draft.sources, draft.estimated, weight, tuple(draft.keys), draft.place, draft.at)


_MOST_TOLD = 64
"""From here on a stretch has been told of so often that one more makes no difference."""


@cache
def _lost(fade: float) -> list[float]:
    """Which part of its worth a sentence loses after so many of its stretch."""
    return [1 - fade**before for before in range(_MOST_TOLD + 1)]


def _take(drafts: list[Draft], limit: int, fade: float) -> list[int]:
    """Places of drafts that fit together, in the order they were taken: worth for length, new names more, told stretches less."""
    said: set[str] = set()
    worths, stretches = [draft.worth for draft in drafts], [draft.stretch for draft in drafts]
    told = [0] * (max(stretches) + 1)
    lost = _lost(fade)
    lengths = [_BASE + len(draft.text) * (1.3 if is_cjk(draft.lang) else 0.25) for draft in drafts]
    fresh = [len(draft.keys) for draft in drafts]  # how many names of each have not been told yet
    holders = _holders(drafts)
    heap = [
        (-(draft.worth + _NEW[new if new < 3 else 3]) / length, at)
        for at, (draft, new, length) in enumerate(zip(drafts, fresh, lengths, strict=True))
        if draft.rank == PLAIN and draft.worth > -1
    ]
    heap += [_END] * 3
    heapq.heapify(heap)
    costs: dict[int, int] = {}
    weighty = Told()
    spare: list[int] = []
    room = limit
    while heap[0] is not _END and (room > 4 or not costs):
        at = heap[0][1]
        worth, before, new = worths[at], told[stretches[at]], fresh[at]  # some hundred times for a large fold: no calls in here
        if before:
            less, most = worth * lost[before if before < _MOST_TOLD else _MOST_TOLD], 2.0 * before
            worth -= less if less < most else most
        now = -(worth + _NEW[new if new < 3 else 3]) / lengths[at]
        if now > heap[1][0] or now > heap[2][0]:  # others have overtaken it meanwhile
            heapq.heapreplace(heap, (now, at))
            continue
        heapq.heappop(heap)
        draft = drafts[at]
        if draft.worth < _ENOUGH and (room * 2 < limit or (draft.origin is not None and costs)):
            continue
        cost = _cost(draft.text)
        if cost > room:
            spare.append(at)
        elif (key := _key(draft)) not in said:
            if worths[at] >= _WEIGHTY and draft.origin is not None:
                if (news := weighty.news_in(draft)) < 1:
                    worths[at] *= news
                    if news:
                        heapq.heappush(heap, (now * news, at))
                    continue
                weighty.add(draft)
            said.add(key)
            costs[at] = cost
            room -= cost
            told[draft.stretch] += 1
            for name in draft.keys:
                for other in holders.pop(name, ()):
                    fresh[other] -= 1
    spare += [at for _, at in heap if at >= 0]
    best = heapq.nsmallest(6, [at for at in spare if drafts[at].worth >= _ENOUGH], key=lambda at: (-drafts[at].worth, at))
    better = {key: at for at in reversed(best) if (key := _key(drafts[at])) not in said}
    if costs and better:
        over = {at: _faded(worths[at], told[stretches[at]] - 1, lost) - _FILLER for at in costs}
        over |= {at: _faded(worths[at], told[stretches[at]], lost) - _FILLER for at in better.values()}
        _exchange(over, costs, {at: _cost(drafts[at].text) for at in sorted(better.values(), key=best.index)}, room)
    return list(costs)


def _faded(worth: float, before: int, lost: Sequence[float]) -> float:
    """What a sentence is still worth after so many of its stretch: what matters most fades little."""
    less, most = worth * lost[before if before < _MOST_TOLD else _MOST_TOLD], 2.0 * before
    return worth - (less if less < most else most)


def _holders(drafts: Sequence[Draft]) -> dict[str, list[int]]:
    """For each name the drafts that have it."""
    holders: dict[str, list[int]] = {}
    for at, draft in enumerate(drafts):
        for name in draft.keys:
            if name in holders:
                holders[name].append(at)
            else:
                holders[name] = [at]
    return holders


_cost = kept(1 << 12)(estimate_tokens)
"""What a sentence takes of the room. The same sentences come back in larger folds and digests."""


def _key(draft: Draft) -> str:
    """What two drafts have in common that say the same."""
    if draft.origin is not None:
        return draft.text
    return f"{draft.voice}: {normalise(draft.body)}"


def _exchange(over: dict[int, float], costs: dict[int, int], spare: dict[int, int], room: int) -> None:
    """Makes better use of the room: some spare drafts (best first) in the place of a lesser one, or one in the place of up to three."""
    least_first = sorted(over, key=lambda at: (over[at], at))
    most = sum([over[at] for at in spare if over[at] > 0])
    for out in [at for at in least_first if at in costs]:
        if over[out] + 0.3 >= most:
            break
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
        for out in [other for other in least_first if other in costs][:3] if left < 0 else ():
            if left < 0:
                gone.append(out)
                left += costs[out]
        if at not in costs and left >= 0 and (not gone or sum([over[out] for out in gone]) + 0.3 < over[at]):
            for out in gone:
                del costs[out]
            costs[at] = spare[at]
            room = left


# --- the three doors -------------------------------------------------------------------------------------------------


def condense(turns: Sequence[Turn], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of some turns that matter most, in order, within `limit` tokens; each cites its turn.

    Never empty if a turn has text: a sentence that alone is too long is clipped. `known` are names and things that the
    story has on its books.
    """
    return choose(judged(turns, known), limit)


def choose(drafts: list[Draft], limit: int) -> tuple[Sentence, ...]:
    """The same of sentences that were judged before."""
    return _choose(drafts, limit, fade=0.8)


def words_of(drafts: Iterable[Draft], turns: int) -> list[Read]:
    """What was read in each of so many turns, while their sentences were judged."""
    read: list[list[Word]] = [[] for _ in range(turns)]
    langs = [""] * turns
    for draft in drafts:
        read[draft.stretch] += draft.reading.words
        langs[draft.stretch] = draft.lang
    return list(map(Read, langs, read))


def judged(turns: Sequence[Turn], known: Collection[str] = ()) -> list[Draft]:
    """All sentences of some turns, in order, each with its worth and with the text with which it would stand in a fold."""
    drafts: list[Draft] = []
    narrators = [is_narrator(turn) for turn in turns]
    texts = [turn.text for turn in turns]
    langs, whole = languages(texts), "\n".join(texts)
    phrases = {lang: phrases_in(whole, lang) for lang in set(langs)}
    for stretch, (turn, lang) in enumerate(zip(turns, langs, strict=True)):
        text = turn.text
        if "(" in text or "[" in text or "（" in text:
            text = ASIDE.sub("", text).strip() or text
        for draft in drafts_of(text, lang, not narrators[stretch], phrases[lang]):
            draft.sources, draft.stretch = (turn.id,), stretch
            draft.voice = draft.voice if narrators[stretch] else turn.voice
            if turn.kind == "event" or turn.kind == "note":
                draft.worth = 1.0
            drafts.append(draft)
    _judge(drafts, known, dict.fromkeys(draft.voice for draft in drafts if draft.voice), phrases)
    lesser = {at for at, turn in enumerate(turns) if turn.kind in _MOVES or turn.voice.casefold() in listed("dice_voice")}
    for draft in drafts if lesser else ():
        if draft.stretch in lesser:
            _put_behind(draft, turns[draft.stretch])
    tell(drafts, turns, narrators)
    return drafts


judged_once = kept(32)(judged)
"""The same drafts for the same turns, for all who read them and change nothing in them."""


def merge(sentences: Sequence[Sentence], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of smaller folds that matter most, in order, spread over the whole run, within `limit` tokens."""
    told = [sentence for sentence in sentences if sentence.text and not sentence.text.isspace()]
    drafts = [_draft_again(sentence, at * 8 // len(told)) for at, sentence in enumerate(told)]
    unread = [draft for draft in drafts if draft.origin is None]
    if unread:
        for draft, lang in zip(unread, languages([draft.text for draft in unread]), strict=True):
            draft.lang = lang
        _judge(unread, known, ())
    return _choose(drafts, limit, fade=0.6)


def _draft_again(sentence: Sentence, stretch: int) -> Draft:
    """A sentence of a smaller fold as a draft for a larger one."""
    text = sentence.text
    if sentence.weight:
        lang = "" if text.isascii() or not CJK.search(text) else "zh"
        rank = PLAIN if sentence.weight > _NEXT_TO_NOTHING else IDLE_TALK
        return Draft(
            text, lang, sentence.sources, stretch, sentence.weight, sentence.estimated, None, "", text, UNREAD, sentence.about, 0, rank,
            origin=sentence,
        )  # fmt: skip
    speaker = SPEAKER.match(text)
    voice, body = (speaker[1], text[speaker.end() :]) if speaker else ("", text)
    return Draft(body, "", sentence.sources, stretch, 0.0, sentence.estimated, None, voice, text, place=sentence.place, at=sentence.at)
