"""Folds without a model: the sentences of a run of turns that a careful game master would write down.

Every sentence gets a worth: what happens in it (promises, deaths, gifts, secrets …), whom and what it names, what it counts.
Chatter, dice and table talk have none. Then the best are taken while they fit (see `choice`). The text is what was said: nothing
is made up, only attributed (`Rogue: "I swear it."`), and a "He" after a sentence about Voss becomes "[Voss]".

Pure and deterministic: the same turns give the same fold, for ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache, reduce
from operator import or_

from talekeeper.kept import kept
from talekeeper.model import Sentence, Turn, new_sentence
from talekeeper.summarize import choice
from talekeeper.summarize.attribution import SPEAKER, is_narrator, lead_off, tell, voice_lent
from talekeeper.summarize.corrections import heed, heeded
from talekeeper.summarize.names import known_terms, studied, terms_in
from talekeeper.summarize.quotations import OPENING, clip
from talekeeper.summarize.salience import Read
from talekeeper.summarize.sentences import IDLE_TALK, PLAIN, TABLE_TALK, UNREAD, Draft
from talekeeper.summarize.speech import drafts_of, marks_with_phrases
from talekeeper.summarize.threads import settles
from talekeeper.summarize.words import (
    BREAKS,
    CONTENT,
    MARK,
    NAMEABLE,
    NUMBER,
    PAYS,
    PERSON,
    SAY,
    STOP,
    TIME,
    UNSPACED,
    Pattern,
    Row,
    is_wide,
    language,
    languages,
    listed,
    normalise,
    side_by_side,
    words_of_names,
)  # fmt: skip
from talekeeper.tokens import estimate_tokens

# --- worth -----------------------------------------------------------------------------------------------------------

_EVENTS = {
    "promise": 4.0, "death": 4.0, "betray": 3.5, "threat": 2.8, "reveal": 2.5, "quest": 2.5, "outcome": 2.0, "decide": 2.0, "gain": 2.0,
}  # fmt: skip
_ABOUT = {"thing": 1.2, "money": 1.2, "number": 1.0, "person": 0.6, "place": 0.6, "time": 0.5}
_CUES = reduce(or_, (MARK[name] for name in _EVENTS))
_WEIGHED = reduce(or_, (MARK[name] for name in _ABOUT), _CUES)
_HAPPENS = _WEIGHED & ~(PERSON | NUMBER | TIME)
_OFFER = MARK["gain"] | MARK["quest"] | MARK["promise"] | MARK["decide"]
_ORDER = MARK["gain"] | MARK["quest"] | MARK["death"]
_GAIN, _THING = MARK["gain"], MARK["thing"]
_GOODS = _THING | MARK["money"] | NUMBER
_DEATH, _MONEY = MARK["death"], MARK["money"]
_PROMISE = MARK["promise"]
_DUTY = _PROMISE | MARK["quest"] | MARK["threat"]
_DENIABLE = _PROMISE | _GAIN | _DEATH
_TERMS = _GOODS | TIME | PERSON | MARK["place"]
_BARE = 40
"""A promise of no more signs that names nobody and nothing is none worth telling."""
_FIRST, _PRONOUN = MARK["first"], MARK["pronoun"]
_FOR_WEIGHT = _WEIGHED | _FIRST
_FOR_NAME = _DEATH | _PROMISE | _GAIN | SAY
_ROLL, _TABLE, _CHATTER = MARK["roll"], MARK["table"], MARK["chatter"]
_FOR_TABLE = _TABLE | _ROLL | NUMBER
_LISTING = NUMBER | NAMEABLE
_DIGITS = Pattern(r"\d+")
_END = Pattern(r"[.!?…]")
_ASIDE = Pattern(
    r"\s?[(\[（][^()\[\]（）]{0,60}?(?:\b(?:\d*[dwкд]\d+|dc|ac|hp|ooc|roll\w*|nat(?:ural)?\s?\d+|crit\w*|würf\w*|wurf|tirada|jet"
    r"|броск?\w*)\b|骰|检定|ダイス|判定|出目)[^()\[\]（）]{0,60}[)\]）]",
    re.I,
)
_DICE_TALK = Pattern(
    r"\d\s*(?:\+|plus|minus|más|mas|плюс|加|足す|プラス)\s*\d"
    r"|\b(?=\w)(?:\d*[dwкд]\d{1,3}\b|to hit\b|nat(?:ural)?[ -]?(?:20|1|twenty|one)\b"
    r"|(?:i|i've|we|ich habe|j'ai|he sacado|у меня|выпало)\s+(?:(?:got|get|rolled|have|fait|gewürfelt|saqué|eine?)\s+)*"
    r"(?:an?\s+|un\s+)?\d+\b(?!\s+[a-zà-ÿа-я])"
    r"|(?:that's|it's|that is|does|das ist|das sind|ça fait|eso es|это)\s+(?:an?\s+|eine\s+|un\s+)?\d+\b(?!\s+[a-zà-ÿа-я]{4}))",
    re.I,
)
_BEFORE_DICE = frozenset({
    "plus", "minus", "mas", "nat", "natural", "i", "we", "habe", "sacado", "got", "get", "rolled", "have", "fait", "a", "an", "un", "ein",
    "eine", "is", "does", "ist", "sind", "es",
})  # fmt: skip
"""The plain words that stand right before a number in talk of dice."""
_DICE_TALK_WORDS = 16
"""Talk of dice is short, unless it says so: a number in a longer sentence is one of the story."""
_DEADLINE, _HOUR, _INTENT = 4.0, 1.5, 0.8
_MOVES = frozenset({"enter", "leave"})
_MOVE = 2.0
"""By how much coming and going is less than what happens."""
_DETAIL = 0.3
"""What a word is worth that tells anything at all."""


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


def _judge(drafts: list[Draft], known: Collection[str], voices: Collection[str], said: str = "") -> None:
    """Gives each draft its rank, its names and its worth, in the light of all of them. `said`: the text they are from, if it is another."""
    speakers = words_of_names(voices)
    sure = set(speakers)
    for draft in drafts:
        if draft.reading is UNREAD:
            draft.reading = studied(draft.body, draft.lang)
        sure.update(draft.reading.sure)
    whole = " ".join([draft.body for draft in drafts]) if known or not said else ""
    registry = known_terms(known, whole)
    met: set[str] = set()
    for draft in drafts:
        body, reading, lang = draft.body, draft.reading, draft.lang
        if reading.doubtful and not sure.isdisjoint(reading.doubtful):
            draft.reading = reading = reading.given(sure, lang)
        keys, marks = reading.keys, reading.marks
        if not reading.row.signs.isascii():
            marks = marks_with_phrases(draft, said or whole)
        if marks & _DENIABLE:
            marks &= ~_only_seems(reading.row, marks, asked="?" in body and _asks(body))
        draft.marks = marks
        familiar = terms_in(body, reading.words, registry) if registry else ()
        if familiar:
            keys = [*keys, *(term for term in map(str.lower, familiar) if not any(key in term for key in keys))]
        if voices and lang in UNSPACED:
            keys = [*keys, *(voice for voice in voices if voice in body and voice not in keys)]
        named = bool(keys)
        if draft.voice and draft.voice not in voices and draft.voice.casefold() not in listed("narrator"):
            keys = [*keys, normalise(draft.voice.split()[-1])]
        draft.keys = keys
        draft.rank = rank = _rank(draft, speakers)
        if rank == PLAIN:
            if marks & _PROMISE and not (keys or marks & _TERMS) and len(body) <= _BARE and reading.detail < 3:
                marks &= ~_CUES  # an "I will, I promise.": of what, nobody will know
            if PAYS in reading.row.signs and settles(draft):
                draft.worth += _weight(_PROMISE | (marks & _FIRST)) - _weight(marks & _PROMISE)
            worth = draft.worth + (_weight(marks & _FOR_WEIGHT) + _form(draft) + (min(3, len(familiar)) if familiar else 0))
            if keys:
                several = len(keys)
                fresh = several if met.isdisjoint(keys) else len([key for key in keys if key not in met])
                worth += 0.5 * (several if several < 3 else 3) + 0.5 * (fresh if fresh < 2 else 2)
                if named and marks & _FOR_NAME:
                    worth += _by_name(marks)
                met.update(keys)
            draft.worth = worth


def _by_name(marks: int) -> float:
    """What it adds to a sentence that it says who: died, was promised or given something, said something."""
    if marks & _DEATH or (marks & _PROMISE and marks & _FIRST):
        return 3.0
    return 1.2 if marks & _GAIN and marks & _THING else 0.8 if marks & SAY else 0.0


@cache
def _denials() -> frozenset[str]:
    """The words without which, but for an "if", nothing only seems to happen."""
    return listed("not") | listed("owing") | listed("nothing") | listed("dream") | {"dead"}


def _asks(text: str) -> bool:
    """Whether a sentence, or the first of several, is a question: someone may say behind it who asks."""
    end = _END.search(text)
    return end is not None and end[0] == "?"


def _only_seems(row: Row, marks: int, *, asked: bool) -> int:
    """The cues that are there by their words alone: what was not promised, "the dead" as such, a death in an "if", a dream or a question,
    a debt or a promise of nothing."""
    norms = row.norms
    supposed = _DEATH if asked or (norms and norms[0] in listed("if")) else 0
    if not supposed and _denials().isdisjoint(norms):
        return 0
    seems = real = 0
    nothing = not listed("nothing").isdisjoint(norms)
    for at in [at for at, each in enumerate(row.marks) if each & _DENIABLE]:
        cue, before = row.marks[at] & _DENIABLE, norms[max(0, at - 3) : at]
        if cue & supposed or not listed("not").isdisjoint(before) or (norms[at] == "dead" and before[-1:] == ("the",)):
            seems |= cue
        elif cue & _DEATH and not listed("dream").isdisjoint(norms[:at]):
            seems |= _DEATH
        elif cue & _PROMISE and ((not marks & _GOODS and norms[at] in listed("owing")) or (nothing and _of_nothing(row, at))):
            seems |= _PROMISE
        else:
            real |= cue
    return seems & ~real


def _of_nothing(row: Row, at: int) -> bool:
    """Whether a "nothing" ends what a word says: "I promised Marta nothing.", not "I swear that nothing will harm you."."""
    last = len(row.norms) - 1
    near = range(at + 1, min(at + 4, last + 1))
    return any(row.norms[place] in listed("nothing") and (place == last or row.marks[place] & BREAKS) for place in near)


def _rank(draft: Draft, voices: set[str]) -> int:
    """Whether a sentence tells something, or is chatter, or is about dice and the table."""
    each, marks = draft.reading.row.marks, draft.marks
    if marks & _FOR_TABLE and _is_table_talk(draft.body, each, marks):
        return TABLE_TALK
    if draft.lang in UNSPACED:
        idle = sum(len(word.norm) for word in draft.reading.words if word.marks & _CHATTER)
        return IDLE_TALK if idle * 2 >= len(draft.body.strip("。！？…「」“”，、 ")) else PLAIN
    if marks & _HAPPENS or not voices.issuperset(draft.reading.keys):
        return PLAIN
    if marks & _CHATTER and 2 * len([mark for mark in each if mark & _CHATTER]) >= len(each):
        return IDLE_TALK
    return PLAIN if marks & CONTENT else IDLE_TALK


def _is_table_talk(text: str, each: Sequence[int], marks: int) -> bool:
    """Whether a sentence is about dice, rules or the table, by its words and the marks of `each` of them."""
    if marks & _TABLE:
        return True
    if marks & _ROLL:
        rolls = len([mark for mark in each if mark & _ROLL])
        if rolls > 1 or (marks & NUMBER and not marks & _DEATH):
            return True
    if (marks & _ROLL or len(each) <= _DICE_TALK_WORDS) and _talks_dice(text):
        return True
    if not marks & NUMBER or (each and not each[0] & _LISTING):
        return False
    return all(mark & _LISTING for mark in each) and len(_DIGITS.findall(text)) > 1  # "Elena 15, Borin 11"


def _talks_dice(text: str) -> bool:
    """Whether a number in the sentence is one of dice or rules; looks around each number only, because most sentences have none such."""
    runs = list(_DIGITS.finditer(text))
    for run in runs:
        if _may_be_rolled(text, run.start()):
            break
    else:
        lowered = text.lower() if runs else ""
        if "nat" not in lowered and "to hit" not in lowered:
            return False
    return any(_DICE_TALK.search(text, max(0, run.start() - 32), run.end() + 12) for run in runs)


def _may_be_rolled(text: str, at: int) -> bool:
    """Whether a number may be one of dice by what stands before it: anything but a plain word that has nothing to do with them."""
    if at and not text[at - 1].isspace():
        return True
    before = text[:at].rsplit(None, 1)
    return bool(before) and (not (before[-1].isascii() and before[-1].isalpha()) or before[-1].lower() in _BEFORE_DICE)


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
    words = [word for at, word in enumerate(draft.reading.words) if at not in places and word.norm not in known]
    return side_by_side(words).telling()


def tells(sentence: str, lang: str) -> bool:
    """Whether a sentence tells something of a story: it is neither chatter nor talk of dice and the table."""
    draft = Draft(sentence, lang)
    _judge([draft], (), ())
    return draft.rank == PLAIN


def _form(draft: Draft) -> float:
    """What the shape of a sentence does to its worth: an order; a question, a stump, a pronoun in the place of a name."""
    row, marks, text, detail = draft.reading.row, draft.marks, draft.body, draft.reading.detail
    each = row.marks
    worth = 1.0 if text[0] in OPENING and any(mark & _ORDER for mark in each[:2]) else 0.0
    if "?" in (end := text[-2:]) or "？" in end:
        worth -= 1.5
    worth += _DETAIL * (detail if detail < 14 else 14)
    if draft.lang in UNSPACED:
        return worth - (1.0 if len(text) < 7 else 0.0) - (0.8 if not draft.keys and marks & _PRONOUN else 0.0)
    if len(each) < 4:
        worth -= 2.5
    if marks & TIME and not listed("deadline").isdisjoint(row.norms):
        worth += _DEADLINE if marks & _DUTY or _ahead(text) else _HOUR
    if marks & _FIRST and _ahead(text) and _intends(row):
        worth += _INTENT
    if " one " in text and _stands_in(row):
        worth -= 2.0
    if not marks & _PRONOUN:
        return worth
    if not draft.keys and each[0] & _PRONOUN:
        return worth - 1.2
    return worth - (0.6 if len(each) > 2 and (each[1] | each[2]) & _PRONOUN else 0.0)


def _stands_in(row: Row) -> bool:
    """Whether a "one" stands for a thing that was named before: found one, bought one."""
    marks, norms = row.marks, row.norms
    ones = [at for at, norm in enumerate(norms) if norm == "one"]
    return any(0 < at < len(norms) - 1 and marks[at - 1] & _GAIN and marks[at + 1] & STOP for at in ones)


def _ahead(text: str) -> bool:
    """Whether a sentence may tell what is to come."""
    return " will " in text or " shall " in text or "'ll " in text or "’ll " in text


def _intends(row: Row) -> bool:
    """Whether someone says what they will do."""
    pairs = zip(row.marks, row.norms, row.norms[1:], strict=False)
    return any(mark & _FIRST and (after in ("will", "shall") or norm.endswith("'ll")) for mark, norm, after in pairs)


# --- the three doors -------------------------------------------------------------------------------------------------

_NEXT_TO_NOTHING = 0.01
_BEHIND = 1000.0
"""By how much idle talk is put behind what tells something, and talk of the table behind that."""
RULES = 8
"""The edition of these rules: one more whenever the same turns may be told in other words, so that nobody takes what an earlier version
has stored for damage."""
_ROOM = {"ru": 1.5, "zh": 1.6, "ja": 1.9}
"""How many tokens by estimate a text has for each that the same would have in English, in languages where that is many more."""
_STRETCHES = 8
"""Into so many parts the run is cut that a larger fold tells of."""


def room_for(texts: Iterable[str], limit: int) -> int:
    """So many tokens as texts of their language take to tell what those in English tell in `limit` tokens: a fold is as long as what it
    tells, and no promise is lost for the letters in which it was made."""
    whole = "".join(texts)
    return int(limit * _ROOM.get(language(whole), 1.0)) if is_wide(whole) else limit


def condense(turns: Sequence[Turn], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of some turns that matter most, in order, within `limit` tokens; each cites its turn.

    Never empty if a turn has text: a sentence that alone is too long is clipped. `known` are names and things that the
    story has on its books.
    """
    return choose(judged(turns, known), limit)


def choose(drafts: list[Draft], limit: int) -> tuple[Sentence, ...]:
    """The same of sentences that were judged before."""
    texts, worths = [draft.text for draft in drafts], [draft.worth - _BEHIND * draft.rank for draft in drafts]
    chosen = choice.choose(texts, worths, [draft.stretch for draft in drafts], limit, [draft.keys for draft in drafts])
    if not any(drafts[at].dangling for at in chosen):
        return _fitting([_sentence(drafts[at]) for at in chosen], limit)
    return _fitting(_with_those_before(drafts, chosen, limit), limit)


def _with_those_before(drafts: Sequence[Draft], chosen: Sequence[int], limit: int) -> list[Sentence]:
    """The sentences; one that begins with a "He" goes as one with the sentence before it, where that fits, if need be in the place of the
    least: behind any other it would tell of someone else."""
    kept, room = set(chosen), limit - sum([estimate_tokens(drafts[at].text) for at in chosen])
    for at in chosen:
        if at not in kept or not (those := _those_before(drafts, at, kept)):
            continue
        need = sum([estimate_tokens(drafts[other].text) for other in those])
        least = min(kept - {at}, key=lambda other: drafts[other].worth, default=at)
        if need > room and drafts[least].worth < drafts[at].worth and need <= room + (spared := estimate_tokens(drafts[least].text)):
            room += spared
            kept.discard(least)
        if need <= room:
            room -= need
            kept.update(those)
    told: list[tuple[int, Sentence]] = []  # each with the first of its sentences
    for at in sorted(kept):
        one, lang, first, back = _sentence(drafts[at]), drafts[at].lang, at, at - drafts[at].back
        if told and _goes_with(drafts[at - 1], drafts[at]) and kept.issuperset(range(back, at)):
            one = one._replace(text=one.text.removeprefix(lead_off(lang)))
            while first > back:
                first, before = told.pop()
                one = _as_one(before, one, lang)
        told.append((first, one))
    return [one for _, one in told]


def _as_one(before: Sentence, one: Sentence, lang: str) -> Sentence:
    about, sources = (tuple(dict.fromkeys(both)) for both in ((*before.about, *one.about), (*before.sources, *one.sources)))
    text = f"{before.text}{'' if lang in UNSPACED else ' '}{one.text}"
    return one._replace(text=text, sources=sources, weight=max(before.weight, one.weight), about=about)


def _those_before(drafts: Sequence[Draft], at: int, kept: Collection[int]) -> list[int]:
    """The sentences without which nobody knows whom a "He" may mean, up to those that are told anyway."""
    before: list[int] = []
    while at and _goes_with(drafts[at - 1], drafts[at]):
        back = range(at - drafts[at].back, at)
        if not (missing := [other for other in back if other not in kept]):
            break
        before += missing
        at = back.start
    return before


def _goes_with(before: Draft, draft: Draft) -> bool:
    """Whether a sentence begins with a "He" of whom the one before it may tell; a quotation of nobody tells of no one."""
    return draft.dangling and not before.voice and not (draft.outside and before.outside == "")


def _sentence(draft: Draft) -> Sentence:
    """The draft as it goes into a fold, with what it was found worth; talk that only filled the room is worth next to nothing."""
    weight = max(_NEXT_TO_NOTHING, round(draft.worth, 2)) if draft.rank == PLAIN else _NEXT_TO_NOTHING
    return new_sentence((draft.text, draft.sources, draft.estimated, weight, tuple(draft.keys), draft.place, draft.at))


def _fitting(chosen: Sequence[Sentence], limit: int) -> tuple[Sentence, ...]:
    """The sentences that were chosen; one that is too long by itself is clipped."""
    if len(chosen) == 1 and (text := clip(chosen[0].text, limit)) != chosen[0].text:
        return (chosen[0]._replace(text=text),)
    return tuple(chosen)


def words_of(drafts: Iterable[Draft], turns: int) -> list[Read]:
    """What was read in each of so many turns, while their sentences were judged."""
    langs, rows = [""] * turns, [list[Row]() for _ in range(turns)]
    for draft in drafts:
        langs[draft.stretch] = draft.lang
        rows[draft.stretch].append(draft.reading.row)
    return list(zip(langs, rows, strict=True))


def judged(turns: Sequence[Turn], known: Collection[str] = ()) -> list[Draft]:
    """All sentences of some turns, in order, each with its worth and with the text with which it would stand in a fold."""
    drafts: list[Draft] = []
    narrators = [is_narrator(turn) for turn in turns]
    texts = [turn.text for turn in turns]
    langs, whole = languages(texts), "\n".join(texts)
    speakers = words_of_names([turn.voice for turn in turns])
    for stretch, (turn, lang) in enumerate(zip(turns, langs, strict=True)):
        text, spoken = turn.text, not narrators[stretch]
        if "(" in text or "[" in text or "（" in text:
            text = _ASIDE.sub("", text).strip() or text
        sources = (turn.id,)
        lent = not spoken and voice_lent(turn) != ""
        for draft in drafts_of(text, lang, spoken, whole, lent=lent, own=turn.voice, speakers=speakers):
            draft.sources, draft.stretch = sources, stretch
            if spoken and not draft.quoted:
                draft.voice = turn.voice
            if turn.kind == "event" or turn.kind == "note":
                draft.worth += 1.0
            drafts.append(draft)
    _judge(drafts, known, dict.fromkeys(draft.voice for draft in drafts if draft.voice), whole)
    lesser = {at for at, turn in enumerate(turns) if turn.kind in _MOVES or turn.voice.casefold() in listed("dice_voice")}
    for draft in drafts if lesser else ():
        if draft.stretch in lesser:
            _put_behind(draft, turns[draft.stretch])
    heed(drafts)
    tell(drafts, turns, narrators, speakers)
    return drafts


judged_once = kept(32)(judged)
"""The same drafts for the same turns, for all who read them and change nothing in them."""


def merge(sentences: Sequence[Sentence], *, limit: int, known: Collection[str] = ()) -> tuple[Sentence, ...]:
    """The sentences of smaller folds that matter most, in order, spread over the whole run, within `limit` tokens."""
    if not sentences:
        return ()
    told = sentences
    texts, _, _, worths, names, *_ = zip(*told, strict=True)
    if 0.0 in worths:
        told = _weighed([sentence for sentence in told if not sentence.text.isspace() and sentence.text], known)
        if not told:
            return ()
        texts, _, _, worths, names, *_ = zip(*told, strict=True)
    size = len(told)
    stretches = [at * _STRETCHES // size for at in range(size)]
    chosen = choice.choose_again(texts, heeded(texts, worths, names), stretches, limit, names)
    return _fitting([told[at] for at in chosen], limit)


def _weighed(sentences: Sequence[Sentence], known: Collection[str]) -> list[Sentence]:
    """The sentences, those included that nobody has looked at yet: a model's, or an author's."""
    unread = [sentence for sentence in sentences if not sentence.weight]
    drafts = list(map(_draft_of, unread, languages([sentence.text for sentence in unread])))
    _judge(drafts, known, ())
    weighed = map(_sentence, drafts)
    return [sentence if sentence.weight else next(weighed) for sentence in sentences]


def _draft_of(sentence: Sentence, lang: str) -> Draft:
    """A sentence of a smaller fold as a draft for a larger one."""
    speaker = SPEAKER.match(sentence.text)
    voice, body = (speaker[1], sentence.text[speaker.end() :]) if speaker else ("", sentence.text)
    return Draft(
        body, lang, sentence.sources, estimated=sentence.estimated, voice=voice, text=sentence.text, place=sentence.place, at=sentence.at
    )
