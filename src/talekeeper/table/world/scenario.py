"""What a scenario pack holds: an adventure as data, frozen once it is read.

A pack says what there is (places, people, things, secrets), what can be done about it (topics, deeds, encounters, happenings), what it
is all for (objectives, quests, acts, endings), and in which words. `packs` reads and checks the file; `docs/scenarios.md` describes it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from talekeeper.table.world.language import Condition, Effect
from talekeeper.table.world.phrases import errand_things

Texts = tuple[str, ...]
Conditions = tuple[Condition, ...]
SKILLS = ("might", "grace", "wits", "heart")
WATCHES = ("dawn", "morning", "midday", "dusk", "evening", "night")
PRONOUNS: Mapping[str, tuple[str, str, str, str]] = {
    "she": ("she", "her", "her", "hers"),
    "he": ("he", "him", "his", "his"),
    "they": ("they", "them", "their", "theirs"),
    "it": ("it", "it", "its", "its"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Something with an id and names that people may use for it."""

    id: str
    name: str
    aliases: Texts = ()

    @property
    def names(self) -> Texts:
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is told, one of several ways, and what it does."""

    say: Texts = ()
    do: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why something is worth remembering. The summary reads on after "we": "drove the wolves from the ford"."""

    type: str
    summary: str
    weight: float = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that can be done: at places, or to an NPC, or in an encounter. Without a skill it simply succeeds."""

    id: str
    offer: str
    verbs: Texts
    words: Texts = ()
    at: tuple[str, ...] = ()
    npc: str = ""
    when: Conditions = ()
    skill: str = ""
    difficulty: int = 9
    success: Outcome = Outcome()
    cost: Outcome | None = None
    failure: Outcome | None = None
    mark: Mark | None = None
    secretly: bool = False
    repeat: bool = False
    ends: str = ""
    """In an encounter: the outcome to which a success leads at once, instead of wearing it down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What an NPC says when asked about something; whether they say it depends on what they think of the one who asks."""

    id: str
    words: Texts
    say: Texts
    again: Texts = ()
    offer: str = ""
    when: Conditions = ()
    attitude: int = -2
    do: tuple[Effect, ...] = ()
    mark: Mark | None = None
    secretly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A way to another place. Where it is not open, `blocked` says why; a hidden one is not seen until it is open."""

    to: str
    way: str = ""
    when: Conditions = ()
    blocked: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Something to look at."""

    name: str
    words: Texts
    say: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Named):
    look: Texts
    again: Texts = ()
    air: Texts = ()
    region: str = ""
    danger: str = "safe"
    shelter: bool = False
    sky: bool = True
    """Whether one sees the weather and hears the world from there; not under a mountain."""
    exits: tuple[Exit, ...] = ()
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Npc(Named):
    place: str
    look: str
    pronouns: str = "they"
    calling: str = ""
    voice: str = ""
    wants: str = ""
    attitude: int = 0
    cold: Texts = ()
    greet: Texts = ()
    warm: Texts = ()
    idle: Texts = ()
    refuse: Texts = ()
    topics: tuple[Topic, ...] = ()
    errands: bool = True
    mortal: bool = True
    difficulty: int = 10


ANSWER = " // "
"""Between what one hero says to another and what that one answers."""
SAYS = ("mind", "danger", "hurt", "wins", "fails", "after", "remember", "quote", "promise", "down")
"""The kinds of lines that a hero may have, beside those at a place (`at_…`) and to someone (`to_…`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hero(Named):
    """A player character that comes with the pack."""

    look: str
    pronouns: str = "they"
    calling: str = ""
    voice: str = ""
    skills: Mapping[str, int] = field(default_factory=dict)
    says: Mapping[str, Texts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Named):
    look: str
    at: str = ""
    held: str = ""
    plural: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    id: str
    text: str
    about: str = ""
    words: Texts = ()
    known: tuple[str, ...] = ()
    """Who knows it from the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vow:
    """A promise that the pack foresees. A lasting one is kept as long as it is not broken: nobody can be done with it."""

    id: str
    to: str
    text: str
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Encounter:
    """A fight, a chase, a confrontation: several ways through it, and what comes of it. `grit` is how many successes it takes."""

    id: str
    name: str
    at: tuple[str, ...]
    when: Conditions = ()
    intro: Texts
    press: Texts
    grit: int = 2
    deadly: bool = False
    ways: tuple[Deed, ...] = ()
    won: Outcome = Outcome()
    lost: Outcome = Outcome()
    escaped: Outcome = Outcome()
    mark: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that comes to pass by itself: a rumour, a stranger, a sign."""

    id: str
    say: Texts
    at: tuple[str, ...] = ()
    regions: Texts = ()
    when: Conditions = ()
    do: tuple[Effect, ...] = ()
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way of reaching an objective: when it counts as reached, and how to call it."""

    when: Conditions
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    id: str
    title: str
    quest: str
    act: str
    hint: Texts
    paths: tuple[Path, ...]
    done: Texts = ()
    optional: bool = False
    mark: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quest:
    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A part of the arc. It is over when its conditions hold; the last one ends with an ending."""

    id: str
    title: str
    opening: Texts
    until: Conditions = ()
    signs: Texts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    id: str
    title: str
    when: Conditions
    say: Texts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """A whole pack. It is compared by identity, so that what was worked out for one can be kept."""

    id: str
    title: str
    tagline: str
    mood: str
    start: str
    premise: Texts
    acts: tuple[Act, ...]
    quests: Mapping[str, Quest]
    objectives: Mapping[str, Objective]
    heroes: Mapping[str, Hero]
    places: Mapping[str, Place]
    npcs: Mapping[str, Npc]
    items: Mapping[str, Item]
    secrets: Mapping[str, Secret]
    vows: Mapping[str, Vow]
    deeds: tuple[Deed, ...]
    encounters: Mapping[str, Encounter]
    happenings: tuple[Happening, ...]
    endings: tuple[Ending, ...]
    weathers: Texts
    lines: Mapping[str, Texts]
    rumours: Texts = ()

    def name(self, id: str) -> str:
        """How something is called in a sentence: what is of no pack by its own name, and what came up in play by its id."""
        for kind in (self.npcs, self.heroes, self.places, self.items):
            if id in kind:
                return kind[id].name
        return errand_things().get(id) or id.replace("_", " ")

    def person(self, id: str) -> Npc | Hero | None:
        return self.npcs.get(id) or self.heroes.get(id)

    def act_number(self, id: str) -> int:
        """The place of an act in the arc, from 1."""
        return next((number for number, act in enumerate(self.acts, 1) if act.id == id), 0)


@functools.lru_cache(maxsize=64)
def _ids_by_name(kind: tuple[tuple[str, Texts], ...]) -> dict[str, str]:
    return {name.casefold(): id for id, names in reversed(kind) for name in reversed((*names, id))}


def find(kind: Mapping[str, Named], reference: str) -> str | None:
    """The id of what is meant by an id, a name or an alias, in any case and with or without an article."""
    if reference in kind:
        return reference
    plain = reference.casefold().strip()
    known = _ids_by_name(tuple((id, one.names) for id, one in kind.items()))
    bare = plain.removeprefix("the ").removeprefix("a ").removeprefix("an ")
    return next((known[form] for form in (plain, bare, f"the {bare}") if form in known), None)
