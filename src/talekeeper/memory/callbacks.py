"""Loose ends: people, places, things, promises and threats that came up earlier and are worth bringing back.

They are read off the story by a gathering, so that finding them costs what is new and not the whole log, and each seat has its own:
who did not hear of something is not reminded of it, and its counts are in the listener's own turns (I3). The game may add some, and
may say that one is over (`add`, `resolve`: marks of the log). What was not mentioned for twenty turns is dormant; what was kept, given
away, defeated or buried is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from talekeeper import rim
from talekeeper.context.recipe import Note
from talekeeper.errors import InvalidInput, quoted
from talekeeper.kept import kept
from talekeeper.memory.moments import TOPIC as MOMENTS
from talekeeper.memory.naming import Cast, cast_of, key_of, met_seats
from talekeeper.model import Marked, Seat, Turn, TurnRef
from talekeeper.story.inside import check_story, heard_by_then
from talekeeper.story.marking import shaped
from talekeeper.story.remembering import Remembering
from talekeeper.story.story import Story
from talekeeper.summarize.extractive import judged_once
from talekeeper.summarize.quotations import clip
from talekeeper.summarize.sentences import PLAIN, Draft
from talekeeper.summarize.threads import ITEMS, ends, item_key, met, pays_up, settles, telling_words, vow
from talekeeper.summarize.words import ENDS, NUMBER, read

CallbackKind = Literal["person", "place", "item", "promise", "threat"]
Status = Literal["active", "dormant", "resolved"]
KINDS: tuple[str, ...] = get_args(CallbackKind)
DORMANT_AFTER = 20
"""Turns without a mention after which something is dormant."""
TOPIC = "callback"
RESOLVED = "callback:resolved"
_BASE: Mapping[str, float] = {"promise": 1.0, "threat": 0.9, "item": 0.7, "person": 0.6, "place": 0.45}
_SILENCE = 0.6
"""What something is worth that was mentioned just now, beside what it is worth after a long silence."""
_KEEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A loose end. `turn` and `last_turn`: when it first and last came up, in the listener's own count. `mentions`: in how many turns.
    `text`: the words with which it was introduced. `score`: from 0 to 1, how much it is worth bringing back."""

    name: str
    kind: CallbackKind
    turn: int
    last_turn: int
    mentions: int
    score: float
    status: Status
    text: str = ""
    sources: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """How it is shown: `Captain Nan (turn 89, last 104): This is Captain Nan, queen of the Rookery.`"""
        when = f"turn {self.turn}" if self.last_turn == self.turn else f"turn {self.turn}, last {self.last_turn}"
        if self.kind in ("promise", "threat"):
            return f"{self.kind.capitalize()} ({when}): {self.text}"
        return f"{self.name} ({when}): {self.text}" if self.text not in ("", self.name) else f"{self.name} ({when})"


# -- on a story ----------------------------------------------------------------------------------------------------------


async def add(story: Story, name: str, kind: CallbackKind, *, of: TurnRef, text: str = "", weight: float = 10.0) -> None:
    """Notes a loose end of the turn `of`, for those who heard it: what the game knows need not be found. One that was over is open
    again."""
    check_story(story)
    if kind not in KINDS:
        raise InvalidInput(f"a callback's kind must be one of {', '.join(KINDS)}, not {quoted(kind)}")
    told = rim.text(text, "text") if text != "" else name
    data = {"name": rim.name(name, "name"), "kind": kind, "text": told, "weight": rim.number(weight, "weight")}
    await story.mark(TOPIC, data, of=[of], rank=weight, keep=_KEEP)


async def resolve(story: Story, name: str, *, of: TurnRef) -> None:
    """Notes that a loose end was tied up in the turn `of`; those who heard it know. `name`: as `find_callbacks` gives it.

    It stays over though it is mentioned: the dead are spoken of. `add` opens it again; and a promise or a threat that is made later is a
    loose end of its own."""
    check_story(story)
    await story.mark(RESOLVED, {"name": rim.name(name, "name")}, of=[of], keep=_KEEP)


async def find_callbacks(story: Remembering, seat: str, *, limit: int = 5, resolved: bool = False) -> list[Callback]:
    """What is worth bringing back for the seat, the best first. `resolved`: what is over as well, behind the rest."""
    check_story(story)
    rim.whole(limit, "limit")
    value = await story.gather(seat, READER, beside=[await _noted(story, seat)])
    seats = await met_seats(story, seat)
    rows = _united(value["threads"], seat, {one.id: one for one in seats}, cast_of(seats))
    given = await story.marks(seat, TOPIC)
    over, again = _last_said(await story.marks(seat, RESOLVED)), _last_said(given)
    rows = [_as_said(row, over, again) for row in rows]
    rows = [row for row in rows if resolved or not row.is_over]
    if len(rows) > limit:  # those alone that may be among the best, however long ago they came up
        worths = [row.worth for row in rows]
        least = _SILENCE * sorted(worths, reverse=True)[max(0, limit - 1)]
        rows = [row for row, worth in zip(rows, worths, strict=True) if worth >= least]
    now, *numbers = await heard_by_then(story, seat, [story.head, *(row.seq for row in rows), *(row.last for row in rows)])
    of = {mark.seq: mark.turn for mark in given if mark.sources}  # the game may speak of a turn long after it was told
    firsts = [of.get(row.seq, number) for row, number in zip(rows, numbers[: len(rows)], strict=True)]
    lasts = [number if row.mentions > 1 else of.get(row.last, number) for row, number in zip(rows, numbers[len(rows) :], strict=True)]
    told = zip(rows, firsts, map(max, firsts, lasts), strict=True)
    best = sorted(told, key=lambda row: (-_score(row[0], now - row[2]), row[0].seq, row[0].name))[:limit]
    return [_callback(row, first, last, now) for row, first, last in best]


def _last_said(marks: Iterable[Marked]) -> Mapping[str, int]:
    """By each name, where the game spoke of it last."""
    last: dict[str, int] = {}
    for mark in shaped(marks, name=str):
        key = key_of(mark.data["name"])
        last[key] = max(last.get(key, 0), mark.seq)
    return last


def _as_said(row: Thread, over: Mapping[str, int], again: Mapping[str, int]) -> Thread:
    """A thread as the game says that it stands: over, or open again, whichever was said last."""
    ended = max(over.get(name, 0) for name in row.by_names)
    if row.is_met and again.get(key_of(row.name), 0) > max(ended, row.end):
        return row._replace(end=0)
    return row._replace(end=row.last) if ended >= row.seq else row


def callback_notes(callbacks: Iterable[Callback]) -> list[Note]:
    """Loose ends as entries of the part `callbacks` of a context."""
    return [Note(callback.line, callback.sources, callback.score) for callback in callbacks]


async def _noted(story: Remembering, seat: str) -> Value:
    """What the game said, and what its moments say: these are read like the story, but are no further mentions."""
    moments = [mark for mark in shaped(await story.marks(seat, MOMENTS), type=str, summary=str) if mark.sources]
    told = READER.read([Turn(mark.sources[-1], mark.seq, "event", "", "", mark.data["summary"], mark.audience) for mark in moments])
    rows = [row._replace(mentions=0) for row in told["threads"]]
    for mark in shaped(await story.marks(seat, TOPIC), name=str, kind=str, weight=int | float, text=str):
        data = mark.data
        if data["kind"] not in KINDS or not mark.sources:
            continue
        is_met = data["kind"] in _MET
        key, votes = (key_of(data["name"]), {data["kind"]: _GIVEN}) if is_met else (mark.sources[0], {})
        names = {data["name"]: _GIVEN}
        rows.append(Thread(data["kind"], key, names, mark.seq, mark.sources[0], mark.seq, 1, data["weight"], data["text"], votes))
    done: list[Sequence[Any]] = [
        ["settled", "", mark.seq, _words(mark.data["summary"])] for mark in moments if mark.data["type"] in _SUCCESS
    ]
    return {"threads": rows, "ends": [*told["ends"], *done]}


@kept(256)
def _words(text: str) -> tuple[str, ...]:
    turn = Turn("", 0, "event", "", "", text, ())
    return tuple(sorted({word for draft in judged_once((turn,)) for word in telling_words(draft)}))


@kept(1024)
def _introduced(text: str) -> str:
    """As much of a sentence as introduces something."""
    return clip(text, _INTRODUCED)


def _score(row: Thread, silent: int) -> float:
    return round(row.worth * (_SILENCE + (1 - _SILENCE) * min(1.0, silent / DORMANT_AFTER)), 3)


def _callback(row: Thread, turn: int, last: int, now: int) -> Callback:
    silent = now - last
    status = "resolved" if row.is_over else "dormant" if silent >= DORMANT_AFTER else "active"
    return Callback(
        name=row.name, kind=row.kind, turn=turn, last_turn=last, mentions=max(1, row.mentions), score=_score(row, silent), status=status,  # type: ignore[arg-type]
        text=row.text, sources=(row.turn,),
    )  # fmt: skip


# -- threads: what is gathered ---------------------------------------------------------------------------------------------

Value: TypeAlias = "dict[str, list[Any]]"
"""`threads`: what was opened (a `Thread`, or its fields as a list, where it was stored). `ends`: what may close it, each how, of whom or
what, at which entry, in what words."""
_MET = frozenset({"person", "place", "item"})
_KEPT = frozenset({"settled", "paid"})
_SUCCESS = frozenset({"achievement", "combat_victory"})
_MOST = {"met": 64, "vow": 32, "end": 48}
_TELLING = 5.0
_INTRODUCED = 40
"""Tokens of the sentence that introduces something."""
_GIVEN = 1 << 20
_NAMES = 4
"""By so many names something is known."""


class Thread(NamedTuple):
    """Something that was opened. `key`: what it is the same by. `names` and `votes`: how it was called, and what it seemed to be, how
    often. `who` and `words`: of a promise or a threat, by whom and about what. `end`: the entry that closed it, or 0."""

    kind: str
    key: str
    names: Mapping[str, int]
    seq: int
    turn: str
    last: int
    mentions: int
    weight: float
    text: str
    votes: Mapping[str, int] = {}
    who: str = ""
    words: Sequence[str] = ()
    end: int = 0

    @property
    def name(self) -> str:
        return max(self.names, key=lambda name: (self.names[name], len(name), name))

    @property
    def worth(self) -> float:
        """From 0 to 1, what it is worth after a long silence."""
        worth = _BASE[self.kind] * (0.55 + 0.3 * min(1.0, max(0.0, self.weight) / 10) + 0.15 * min(1.0, self.mentions / 6))
        return worth * (0.1 if self.is_over else 1.0)

    @property
    def is_met(self) -> bool:
        return self.kind in _MET

    @property
    def is_someone(self) -> bool:
        """Whether it is a person or a place, who may be called by a part of their name."""
        return self.is_met and self.kind != "item"

    @property
    def word(self) -> str:
        """A word that whatever closes it must name."""
        return (self.key if self.is_met else self.who).partition(" ")[0]

    @property
    def by_names(self) -> tuple[str, ...]:
        """By what it may be said that it is over: its name, and of a threat whose it is."""
        return (key_of(self.name), self.who) if self.kind == "threat" else (key_of(self.name),)

    @property
    def is_given(self) -> bool:
        """Whether the game said that it is one."""
        return _GIVEN in self.votes.values()

    @property
    def is_over(self) -> bool:
        """A thing that is mentioned after it was given away is still in play."""
        return bool(self.end) and (self.kind != "item" or self.end >= self.last)

    def joined(self, other: Thread) -> Thread:
        """Both as one: it began with the earlier."""
        first, then = (self, other) if (self.seq, self.turn) <= (other.seq, other.turn) else (other, self)
        votes, names = _added(first.votes, then.votes), _added(first.names, then.names)
        kind = max(votes, key=lambda kind: (votes[kind], kind)) if votes else first.kind
        return Thread(
            kind, first.key, names if len(names) <= _NAMES else dict(list(names.items())[:_NAMES]), first.seq, first.turn,
            max(first.last, then.last), first.mentions + then.mentions, max(first.weight, then.weight), first.text or then.text, votes,
            first.who, first.words, max(first.end, then.end),
        )  # fmt: skip


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    """Both together, the most frequent first."""
    if not other:
        return one
    total = dict(one)
    for name, count in other.items():
        total[name] = total.get(name, 0) + count
    return total if len(total) == 1 else dict(sorted(total.items(), key=lambda row: (-row[1], row[0])))


class ThreadsRead:
    """Reads loose ends off turns. A `Gathering`."""

    name = "threads.5"

    def read(self, turns: Sequence[Turn]) -> Value:
        """What some turns open and close."""
        return _read(tuple(turns))

    def merge(self, parts: Sequence[Value]) -> Value:
        """All of them together, each as one, with what closed them; what matters least gives way first."""
        threads = [row if type(row) is Thread else Thread(*row) for part in parts for row in part["threads"]]
        return _closed(threads, [end for part in parts for end in part["ends"]])


@kept(64)
def _read(turns: tuple[Turn, ...]) -> Value:
    """What is still open is read again and again, and by several seats."""
    threads: list[Thread] = []
    closing: list[Sequence[Any]] = []
    kept: dict[int, list[str]] = {}
    paid: set[int] = set()
    drafts = judged_once(turns)
    for draft in drafts:
        turn = turns[draft.stretch]
        if draft.rank == PLAIN and turn.kind != "session":
            threads += _opened(draft, turn)
            closing += [[end.how, _key(end.name, end.how == "spent"), turn.seq, []] for end in ends(draft)]
        if settles(draft) and not draft.quoted:
            paid.update([draft.stretch] if pays_up(draft) else ())
            kept[draft.stretch] = [word for one in drafts if one.stretch == draft.stretch for word in telling_words(one)]
            threads = [_kept_at_once(thread, draft, turn) for thread in threads]
    for at, words in kept.items():
        closing.append(["paid" if at in paid else "settled", key_of(turns[at].voice), turns[at].seq, sorted(set(words))])
    return _closed(_once(threads), closing)


def _closed(threads: Iterable[Thread], closing: Iterable[Sequence[Any]]) -> Value:
    together: dict[tuple[str, str], Thread] = {}
    for thread in threads:
        same = ("met" if thread.kind in _MET else thread.kind, thread.key)
        known = together.get(same)
        together[same] = thread if known is None else known.joined(thread)
    closing = sorted(closing, key=lambda end: (-end[2], end[0], end[1]))[: _MOST["end"]]
    settled = [(how, key, seq, frozenset(words)) for how, key, seq, words in closing if how in _KEPT]
    by_word: dict[str, list[Sequence[Any]]] = {}
    for end in closing:
        for word in end[1].split() if end[0] not in _KEPT else ():
            by_word.setdefault(word, []).append(end)
    met_rows: list[Thread] = []
    vows: list[Thread] = []
    for thread in together.values():
        thread = _ended(thread, by_word.get(thread.word, ()))
        if thread.kind in _MET:
            met_rows.append(thread)
        else:
            vows.append(_settled(thread, settled) if thread.kind == "promise" else thread)
    return {"threads": [*_weightiest(met_rows, _MOST["met"]), *_weightiest(vows, _MOST["vow"])], "ends": closing}


def _weightiest(rows: list[Thread], most: int) -> list[Thread]:
    return sorted(rows, key=lambda row: (-(row.weight + row.mentions), -row.seq, row.key))[:most]


READER = ThreadsRead()


def _opened(draft: Draft, turn: Turn) -> list[Thread]:
    moved = turn.kind in ("enter", "leave")
    text = "" if moved and len(draft.reading.words) < 6 else _introduced(draft.text)
    at = (turn.seq, turn.id, turn.seq, 1, 0.0 if moved else round(draft.worth, 2))
    found = [Thread(kind, _key(name, kind == ITEMS), {name: 1}, *at, text, {kind: 1}) for name, kind in met(draft, turn)]
    made = vow(draft, turn)
    if made is not None:
        found.append(Thread(made.kind, turn.id, {clip(made.text, 24): 1}, *at, made.text, {}, key_of(made.who), list(made.words)))
    return found


def _key(name: str, is_item: bool) -> str:
    return item_key(name) if is_item and name.islower() else key_of(name)


def _once(threads: Iterable[Thread]) -> list[Thread]:
    """One of each turn: to be named twice in a turn, by the whole name and by a part of it, is one mention."""
    kept: dict[tuple[bool, str, str], Thread] = {}
    threads = list(threads)
    named = {(thread.turn, thread.key) for thread in threads if thread.is_met}
    for thread in threads:
        longer = [key for turn, key in named if turn == thread.turn and {*thread.key.split()} < {*key.split()}] if thread.is_met else []
        if len(longer) == 1:
            thread = thread._replace(key=longer[0])
        same = (thread.is_met, thread.key, thread.turn)
        kept[same] = kept[same].joined(thread)._replace(mentions=1) if same in kept else thread
    return list(kept.values())


def _ended(thread: Thread, closing: Iterable[Sequence[Any]]) -> Thread:
    """The thread with what closed it, if anything did."""
    for how, key, seq, _ in closing:
        if seq > max(thread.end, thread.seq - (how == "dead")) and _closes(thread, how, key):
            thread = thread._replace(end=seq)
    return thread


def _closes(thread: Thread, how: str, key: str) -> bool:
    """Who dies is meant by the name, or by less of it."""
    if how == "spent":
        return thread.kind == "item" and key == thread.key
    mine = thread.key if thread.is_met else thread.who
    same = mine != "" and {*mine.split()} <= {*key.split()}
    return same and (how == "dead" or thread.kind == "threat") and thread.kind in ("person", "promise", "threat")


def _settled(promise: Thread, settled: Iterable[tuple[str, str, int, frozenset[str]]]) -> Thread:
    """A word is kept by the one who gave it, in much the same words; a debt is paid to the one to whom it is owed."""
    who, about, end = {*promise.who.split()}, {*promise.words}, promise.end
    for how, key, seq, words in settled:
        common = len(words & about) if seq > max(end, promise.seq) and (key == promise.who or who <= words) else 0
        if common < 2 or common * 3 < len(promise.words) or (how == "paid" and not _owed(promise) <= {*words, *key.split()}):
            continue
        end = seq
    return promise if end == promise.end else promise._replace(end=end)


def _kept_at_once(thread: Thread, draft: Draft, turn: Turn) -> Thread:
    """The thread, over if it is a promise or a debt of the same turn that a later sentence of it settles: "I owe him nine crowns. I pay
    him his nine crowns."."""
    if thread.kind != "promise" or thread.turn != turn.id:
        return thread
    how = "paid" if pays_up(draft) else "settled"
    return _settled(thread._replace(seq=turn.seq - 1), [(how, key_of(turn.voice), turn.seq, frozenset(telling_words(draft)))])._replace(
        seq=thread.seq
    )


def _owed(promise: Thread) -> set[str]:
    """The names and the numbers in a promise, but for whoever gave it."""
    words = read(promise.text, "en")
    told = {word.norm for before, word in pairwise(words) if word.marks & NUMBER or (word.capital and not before.marks & ENDS)}
    return (told & {*promise.words}) - {*promise.who.split()}


# -- who is who ------------------------------------------------------------------------------------------------------------


def _united(rows: Sequence[Thread], me: str, seats: Mapping[str, Seat], cast: Cast) -> list[Thread]:
    """Those that are the same by different names as one, without the players and the listener, and without what was only mentioned in
    passing."""
    people: dict[str, list[frozenset[str]]] = {}
    for words in {frozenset(row.key.split()) for row in rows if row.is_someone}:
        for word in words:
            people.setdefault(word, []).append(words)
    together: dict[str, Thread] = {}
    for row in rows:
        seat = cast.seat(row.key) if row.is_met else None
        if seat is not None and (seat == me or seats[seat].role != "npc"):
            continue
        same = f"seat {seat}" if seat is not None else _longest(row.key, people) if row.is_someone else f"{row.kind} {row.key}"
        if seat is not None:
            row = row._replace(names={**row.names, seats[seat].label: _GIVEN})
        known = together.get(same)
        together[same] = row if known is None else known.joined(row)
    vowed = {_introduced(row.text) for row in rows if not row.is_met}
    return [
        row for row in together.values()
        if row.kind and (not row.is_met or row.mentions > 1 or row.is_given or (row.weight >= _TELLING and row.text not in vowed))
    ]  # fmt: skip


def _longest(key: str, people: Mapping[str, Sequence[frozenset[str]]]) -> str:
    """The one longer name that this one is a part of, if there is one and no other. `people`: the names by each of their words."""
    words = frozenset(key.split())
    longer = [other for other in people[min(words)] if words < other] if words else []
    top = [one for one in longer if not any(one < other for other in longer)]
    return " ".join(sorted(top[0] if len(top) == 1 else words))
