"""What is lastingly true of a character: traits, relationships, notable events, each with the turn it comes from.

The game says some of it (`add`: a mark of the log). The rest is read off the story by a gathering: sentences in which a character
speaks of itself, or in which the story says what someone is, how two stand to each other, and what was sworn, won or lost. Nothing is
made up; where a sentence does not say plainly whom it is about, it says nothing. What a seat is told of a character comes only from
what that seat heard (I3), is rewound with the story, and follows every edit (I4).

Kinds are capped. Of two that say the same the newer stays, and of one pair the newest truth: who was loyal yesterday and betrays us
today is a traitor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from talekeeper import rim
from talekeeper.context.recipe import Note
from talekeeper.errors import InvalidInput, WrongType, quoted
from talekeeper.kept import kept
from talekeeper.memory.naming import cast_of, key_of, met_seats, named_in
from talekeeper.model import Marked, Seat, Turn, TurnRef
from talekeeper.story.inside import check_story, heard_by_then, read_once
from talekeeper.story.marking import shaped
from talekeeper.story.remembering import Remembering
from talekeeper.story.story import Story
from talekeeper.summarize.claims import YOU, Claim, claims
from talekeeper.summarize.extractive import judged_once

FactKind = Literal["trait", "relationship", "event"]
KINDS: tuple[str, ...] = get_args(FactKind)
MAX_FACTS: Mapping[str, int] = {"trait": 8, "relationship": 10, "event": 10}
"""How many facts of a kind a character has: traits and relationships the newest, events the weightiest."""
TOPIC = "fact:"
_TOPICS = tuple(f"{TOPIC}{kind}:" for kind in KINDS)
_RANK = {"relationship": 3.0, "trait": 2.0, "event": 1.0}
_HEADINGS = {"trait": "Traits", "relationship": "Relationships", "event": "Notable events"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something lastingly true of a character. `about`: of a relationship, the other one. `turn`: the number of its turn among those
    that the listener heard. `made_by`: "game" where the game said so, else "story"."""

    kind: FactKind
    text: str
    about: str = ""
    turn: int = 0
    sources: tuple[str, ...] = ()
    weight: float = 1.0
    made_by: Literal["game", "story"] = "story"


@dataclass(frozen=True, slots=True)
class CharacterFacts:
    """What someone knows of a character, in order of time."""

    name: str
    traits: tuple[Fact, ...] = ()
    relationships: tuple[Fact, ...] = ()
    notable_events: tuple[Fact, ...] = ()

    @property
    def all(self) -> tuple[Fact, ...]:
        return self.traits + self.relationships + self.notable_events

    def __bool__(self) -> bool:
        return bool(self.all)


def format_character_facts(facts: CharacterFacts | None) -> str:
    """The facts as text: a line with the name, then each kind that there is under its heading; nothing where there are none."""
    if facts is None:
        return ""
    if not isinstance(facts, CharacterFacts):
        raise WrongType(f"facts must be CharacterFacts, not {type(facts).__name__}")
    if not facts:
        return ""
    lines = [f"### {facts.name}"]
    for kind in KINDS:
        rows = [fact for fact in facts.all if fact.kind == kind]
        if rows:
            lines += [f"{_HEADINGS[kind]}:", *(f"- {' '.join(fact.text.split())}" for fact in rows)]
    return "\n".join(lines)


# -- on a story ----------------------------------------------------------------------------------------------------------


async def add(
    story: Story, character: str, kind: FactKind, text: str, *, of: TurnRef | None = None, about: str = "",
    heard_by: Sequence[str] | None = None, weight: float = 10.0,
) -> Fact:  # fmt: skip
    """Notes a fact about a character, from the turn `of`; those who heard the turn may know it. Without a turn, `heard_by` must say who.

    A relationship is `about` someone: the newest about the same two stands. A rewind undoes it."""
    check_story(story)
    rim.text(text)
    rim.name(character, "character")
    if kind not in KINDS:
        raise InvalidInput(f"a fact's kind must be one of {', '.join(KINDS)}, not {quoted(kind)}")
    if kind == "relationship":
        rim.name(about, "about (the other one of a relationship)")
    data = {"character": character, "text": text, "about": about, "weight": weight}
    topic = f"{TOPIC}{kind}:{key_of(character)}"
    mark = await story.mark(topic, data, of=[] if of is None else [of], heard_by=heard_by, rank=weight, keep=2 * MAX_FACTS[kind])
    return _fact(_of_mark(mark), mark.turn)


async def character_facts(story: Remembering, seat: str, character: str | None = None) -> CharacterFacts:
    """What the seat knows of a character: by default of itself. A character is a seat's id, or any name."""
    check_story(story)
    rim.string(seat, "a seat's id")
    if character is not None and not isinstance(character, str):
        raise WrongType(f"a character must be a seat's id or a name, not {type(character).__name__}")
    asked = character if character is not None else seat
    seats = await met_seats(story, seat, asked)
    marks, value = await read_once(story, ("all facts", seat), lambda: _all_facts(story, seat))
    whose = _Whose(seats, [one.id for one in story.seats if one.role == "dm"], asked, value)
    rows = [row for key, rows in value.items() for row in map(Row._make, rows) if whose.has(key) or whose.is_met(row)]
    rows = [row for kind in KINDS for row in _capped(_newest(rows), kind, MAX_FACTS[kind])]
    told = {mark.seq: mark.turn for mark in marks if mark.sources}
    heard = await heard_by_then(story, seat, [row.seq for row in rows])
    numbers = [told.get(row.seq, number) for row, number in zip(rows, heard, strict=True)]
    facts = [_fact(row, number) for row, number in zip(rows, numbers, strict=True)]
    kinds = {kind: tuple(fact for fact in facts if fact.kind == kind) for kind in KINDS}
    label = next((one.label for one in seats if one.id == whose.seat), asked)
    return CharacterFacts(label, kinds["trait"], kinds["relationship"], kinds["event"])


async def _all_facts(story: Remembering, seat: str) -> tuple[list[Marked], Value]:
    """What the game noted, and all that the seat knows of anyone, with that in it."""
    topics = [topic for topic in await story.topics(seat, prefix=TOPIC) if topic.startswith(_TOPICS)]
    told = [mark for topic in topics for mark in await story.marks(seat, topic)]
    marks = shaped(told, character=str, text=str, about=str, weight=int | float)
    noted: list[Value] = [{mark.topic.split(":", 2)[2]: [_of_mark(mark)]} for mark in marks]
    return marks, await story.gather(seat, READER, beside=noted)


def fact_notes(facts: CharacterFacts, *, most: int | None = None) -> list[Note]:
    """The facts as entries of a context: how two stand to each other first, then what someone is, then what happened."""
    notes = [Note(_named(fact.text, facts.name), fact.sources, _RANK[fact.kind] + min(fact.weight, 20) / 20) for fact in facts.all]
    return sorted(notes, key=lambda note: -note.rank)[:most]


def fit_facts(facts: CharacterFacts | None, room: int, count: Callable[[str], int]) -> tuple[CharacterFacts | None, list[Fact]]:
    """As many of the facts as fit the room together, the highest in rank, and those that do not."""
    if not facts or count(format_character_facts(facts)) <= room:
        return facts, []
    ranked = sorted(facts.all, key=lambda fact: (_RANK[fact.kind], fact.weight), reverse=True)
    taken: list[Fact] = []
    for fact in ranked:
        if count(format_character_facts(_only(facts, [*taken, fact]))) <= room:
            taken.append(fact)
    return _only(facts, taken), [fact for fact in ranked if fact not in taken]


def _only(facts: CharacterFacts, kept: Sequence[Fact]) -> CharacterFacts:
    traits, bonds, events = ([fact for fact in of if fact in kept] for of in (facts.traits, facts.relationships, facts.notable_events))
    return CharacterFacts(facts.name, tuple(traits), tuple(bonds), tuple(events))


def _named(text: str, name: str) -> str:
    return text if named_in(text, [name]) else f"{name}: {text}"


class _Whose:
    """Which keys stand for the one who is asked about: a seat, or else whoever is called so, by more or by less of the name."""

    def __init__(self, seats: tuple[Seat, ...], dms: Collection[str], asked: str, keys: Iterable[str]) -> None:
        self._cast = cast_of(seats)
        self._dms = dms
        key = key_of(asked)
        self.seat = asked if any(seat.id == asked for seat in seats) else self._cast.seat(key)
        self._name = {*key.split()}
        longer = [words for other in keys if not other.startswith(YOU) and self._name < (words := {*other.split()})]
        self._whole = longer[0] if len(longer) == 1 else self._name

    def is_met(self, row: Row) -> bool:
        """Whether it tells how someone else stands to the one who is asked about."""
        return row.kind == "relationship" and self.has(key_of(row.about))

    def has(self, key: str) -> bool:
        if key.startswith(YOU):
            return self.seat is not None and {*key[1:].split(",")} - {*self._dms} == {self.seat}
        if self.seat is not None:
            return self._cast.seat(key) == self.seat
        words = {*key.split()}
        return self._cast.seat(key) is None and (words <= self._whole or words > self._name)


# -- rows: what is gathered ------------------------------------------------------------------------------------------------

Value: TypeAlias = "dict[str, list[Sequence[Any]]]"
"""Rows by the key of the character that they are about."""
EXACTLY = "="
"""Begins the key of what the game said: only the same words say the same."""


class Row(NamedTuple):
    """A fact as it is gathered. `key`: two of one kind and key say the same, or of the same two; the newer stands."""

    kind: str
    text: str
    seq: int
    turn: str
    weight: float
    key: str
    about: str = ""
    made_by: str = "story"


def _of_mark(mark: Marked) -> Row:
    kind, data = mark.topic.split(":", 2)[1], mark.data
    pair = f"{key_of(data['character'])}>{key_of(data['about'])}|bond"
    key = pair if kind == "relationship" else f"{EXACTLY} {' '.join(data['text'].casefold().split())}"
    return Row(kind, data["text"], mark.seq, mark.sources[0] if mark.sources else "", data["weight"], key, data["about"], "game")


def _of_claim(claim: Claim, turn: Turn) -> Row:
    key = f"{key_of(claim.owner)}>{key_of(claim.about)}|{claim.way}" if claim.kind == "relationship" else claim.gist
    return Row(claim.kind, claim.text, turn.seq, turn.id, claim.weight, key, claim.about)


def _fact(row: Row, number: int) -> Fact:
    sources = (row.turn,) if row.turn else ()
    return Fact(
        kind=row.kind, text=row.text, about=row.about, turn=number, sources=sources, weight=row.weight, made_by=row.made_by,  # type: ignore[arg-type]
    )  # fmt: skip


def _newest(rows: Iterable[Sequence[Any]]) -> list[Row]:
    """One row of each key, the newest; in order of time, and those of one turn in the order in which it tells them."""
    kept: dict[tuple[str, str], Row] = {}
    for row in sorted((Row(*row) for row in rows), key=lambda row: (row.seq, row.made_by == "story")):
        same = (row.kind, row.key) if row.kind != "trait" else next((old for old in kept if _says_the_same(old, row)), (row.kind, row.key))
        kept.pop(same, None)
        kept[row.kind, row.key] = row
    return list(kept.values())


def _says_the_same(old: tuple[str, str], row: Row) -> bool:
    one, other = set(old[1].split()), set(row.key.split())
    if EXACTLY in one | other:
        return old == (row.kind, row.key)
    return old[0] == row.kind and len(one & other) * 2 >= len(one | other)


def _capped(rows: Iterable[Row], kind: str, most: int) -> list[Row]:
    """Of one kind the newest, of events the weightiest; in the order in which they stand."""
    told = [row for row in rows if row.kind == kind]
    if len(told) <= most:
        return told
    ranked = sorted(range(len(told)), key=lambda at: (told[at].weight if kind == "event" else 0.0, told[at].seq, at), reverse=True)
    return [told[at] for at in sorted(ranked[:most])]


def _together(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    newest = _newest(rows)
    return [list(row) for kind in KINDS for row in _capped(newest, kind, MAX_FACTS[kind] + 2)]


class FactsRead:
    """Reads facts off turns. A `Gathering`."""

    name = "facts.3"
    characters = 40

    def read(self, turns: Sequence[Turn]) -> Value:
        """The facts in some turns."""
        return _read(tuple(turns))

    def merge(self, parts: Sequence[Value]) -> Value:
        """All of them together, capped per character and kind; characters of whom little is known give way first."""
        told: dict[str, list[list[Sequence[Any]]]] = {}
        for owner, rows in ((owner, rows) for part in parts for owner, rows in part.items()):
            told.setdefault(owner, []).append(rows)
        joined = {owner: rows[0] if len(rows) == 1 else _together([row for part in rows for row in part]) for owner, rows in told.items()}
        worth = {owner: sum([2 + row[4] for row in rows]) for owner, rows in joined.items()}
        kept = sorted(joined, key=lambda owner: (-worth[owner], owner))[: self.characters]
        return {owner: joined[owner] for owner in sorted(kept)}


READER = FactsRead()


@kept(64)
def _read(turns: tuple[Turn, ...]) -> Value:
    """What is still open is read again and again, and by several seats."""
    value: Value = {}
    for claim, turn in claims(judged_once(turns), turns):
        owner = claim.owner if claim.owner.startswith(YOU) else key_of(claim.owner)
        value.setdefault(owner, []).append(_of_claim(claim, turn))
    return READER.merge([{owner: _together(rows) for owner, rows in value.items()}])
