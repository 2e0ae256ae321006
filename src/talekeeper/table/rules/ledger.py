"""The ledger: promises, items, deaths, and who knows which secret. Derived from the state, and so rewound with the story.

The handlers refuse commands that contradict it. Free prose cannot be refused that way, so `contradictions` reads it: a dead one who
speaks or acts, something used or given by one who has it no longer. It would rather miss one than find one that is not there: names are
matched as whole words, what is quoted or remembered does not count, and a name that two share is left alone. That the dead neither speak
nor act is read in all the languages of `acts.toml`, and so is who gives away what another has; who uses it, in English alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Hero, Named, Npc, Scenario


@dataclass(frozen=True, slots=True)
class PromiseLine:
    by: str
    to: str
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """Names, not ids: a ledger is for reading."""

    promises: tuple[PromiseLine, ...] = ()
    items: tuple[tuple[str, str], ...] = ()
    """Each thing that someone has, with its holder."""
    deaths: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each secret with those who know it."""

    @property
    def lines(self) -> tuple[str, ...]:
        return (
            *(f"{one.by} promised {one.to}: {one.text} ({one.state})" for one in self.promises),
            *(f"{holder} has {item}" for item, holder in self.items),
            *(f"{who} is dead" + (f": {how}" if how else "") for who, how in self.deaths),
            *(f"{' and '.join(who)} {'knows' if len(who) == 1 else 'know'}: {text}" for text, who in self.secrets),
        )


def ledger(state: GameState, scenario: Scenario, people: Sequence[str] = ()) -> Ledger:
    """What is owed, held, lost and known: as far as some of the party know, or all of it."""
    state, name = _known_to(people, state), scenario.name
    return Ledger(
        promises=tuple(PromiseLine(name(one.by), name(one.to), one.text, one.state) for one in state.promises.values()),
        items=tuple((name(item), name(holder)) for item, holder in state.items.items() if holder in state.party),
        deaths=tuple((name(who), how) for who, how in state.dead.items()),
        secrets=tuple(
            (scenario.secrets[secret].text, tuple(name(one) for one in known if one in state.party))
            for secret, known in state.knows.items()
            if any(one in state.party for one in known)
        ),
    )


def _known_to(people: Sequence[str], state: GameState) -> GameState:
    """The state as far as some of the party may look into it: the promises that they heard, the secrets that they know (and not who else
    does), the deaths that they saw, and of things what they hold and what they saw others take. Nobody: all of it."""
    if not people:
        return state

    def saw(who: Sequence[str] | None) -> bool:
        return who is None or bool(set(people) & set(who))

    theirs = {
        item: holder for item, holder in state.items.items() if holder in people or (item not in state.hidden and saw(state.seen.get(item)))
    }
    dead = {who: how for who, how in state.dead.items() if saw(state.witnesses.get(who))}
    knows = {secret: tuple(one for one in who if one in people) for secret, who in state.knows.items() if set(people) & set(who)}
    promises = {name: one for name, one in state.promises.items() if any(map(one.is_known_to, people))}
    return replace(state, items=theirs, dead=dead, knows=knows, promises=promises)


# -- free prose --------------------------------------------------------------------------------------------------------

_SAYS = (
    "say|ask|answer|reply|replie|whisper|mutter|murmur|shout|explain|call|add|agree|warn|insist|laugh|nod|nodd|smile|grin|grinn|shrug|shrugg|"
    "sigh|speak|growl|hiss|hisse|mumble|snort|cry|crie|continue|begin|beckon|wink|frown|greet|snap|snapp|chuckle|tell|promise"
)
_DOES = (
    "walk|step|stepp|turn|hand|offer|give|open|close|pour|lead|follow|draw|raise|reach|reache|sit|stand|wait|look|watch|watche|lean|come|appear|"
    "enter|arrive|point|shake|pull|push|pushe|lift|bow|run|return|stare|press|presse|slip|slipp|slide|wave|kneel|take|put|hold|show"
)
_DID = "said|told|spoke|began|gave|led|drew|sat|stood|came|shook|ran|slid|knelt|took|held|goes on|went on"
_GIVES = "hand|give|gave|offer|press|presse|pass|passe|slide|slid|slip|slipp|produce"
_USES = f"{_GIVES}|use|draw|drew|raise|lift|swing|wield|show|play|light|throw|unlock|brandish|brandishe|hold|wear"
_ACTS = rf"(?:(?:{_SAYS}|{_DOES})(?:s|d|ed)|{_DID})"
_SPEAKS = rf"(?:(?:{_SAYS})(?:s|d|ed)|said|told|began|spoke)"
_RECIPIENT = r"(?:(?:out|up|over|you|him|her|them|us|me|(?-i:[A-Z])[\w’'-]*(?:\s(?-i:[A-Z])[\w’'-]*)?)\s+)?"
_REMEMBERED = re.compile(
    r"\b(had|once|remember\w*|recall\w*|before|used to|dream\w*|ghost|late|dead|died|dies|dying|corpse|body|grave|memory|last words?|"
    r"last breath|would have|if|as though|nobody|no one)\b",
    re.I,
)
_DENIED = re.compile(
    r"\b(not|no|never|without|cannot|can't|lost|missing|wish\w*|want\w*|if|had|remember\w*|would|could|gone|back|nobody|no one)\b", re.I
)
_TONGUES: Mapping[str, Mapping[str, str]] = tomllib.loads((resources.files(__package__) / "acts.toml").read_text("utf-8"))
QUOTED = re.compile(r"„[^“”]*[“”]|“[^”]*”|\"[^\"]*\"|‘[^’]*’(?!\w)|«[^»]*»")
"""What somebody says, with its quotation marks."""
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be, as a clause. `hidden`: it is about something that not everyone may know of."""

    text: str
    hidden: bool = False


def contradictions(text: str, states: Sequence[GameState], scenario: Scenario) -> list[Contradiction]:
    """What in the text is true of none of the states: those that the game went through while what is told came about."""
    sentences = _SENTENCES.split(QUOTED.sub("“”", text))
    first, *more = (dict(_found(sentences, state, scenario)) for state in states)
    return [found for key, found in first.items() if all(key in other for other in more)]


def _found(sentences: Sequence[str], state: GameState, scenario: Scenario) -> Iterator[tuple[tuple[str, str], Contradiction]]:
    for who in state.dead:
        if _acts(sentences, who, state, scenario):
            yield (who, ""), Contradiction(f"{scenario.name(who)} is dead and can neither speak nor act")
    for item, holder in state.items.items():
        if holder and item in scenario.items and _is_named(scenario.items[item], sentences):
            for who in _who_has_it_not(sentences, item, state, scenario):
                kept = f": {scenario.name(holder)} has it" if holder in state.where else ""
                yield (who, item), Contradiction(f"{scenario.name(who)} does not have {scenario.name(item)}{kept}", item in state.hidden)


def _acts(sentences: Sequence[str], who: str, state: GameState, scenario: Scenario) -> bool:
    """Whether a dead one does something in the present of the tale."""
    person = scenario.person(who)
    if person is None or not _is_named(person, sentences):
        return False
    names = _pattern(person, _others_names(scenario, state, who))
    acts = re.compile(rf"\b{names}\s+(?:\w+ly\s+)?{_ACTS}\b|“”,?\s+{_SPEAKS}\s+{names}(?!['’]s)\b|^\W*{names}\W*:\s", re.I)
    told = [sentence for sentence in sentences if not _REMEMBERED.search(sentence)]
    return any(acts.search(sentence) for sentence in told) or _acts_in_another_tongue(told, names)


def _acts_in_another_tongue(sentences: Sequence[str], names: str) -> bool:
    """The same in the other languages that the package knows: their verbs are told apart well enough without asking which it is."""
    acts = re.compile(
        rf"(?:(\w+)\s+)?\b{names}\s+(?:{_words('says', 'does')})\b|“”,?\s*(?:[—–-]\s*)?(?:{_words('says')})\s+{names}\b", re.I
    )
    remembered = re.compile(rf"\b(?:{_words('remembered')})\b", re.I)
    towards = _words("towards").split("|")
    found = (acts.search(sentence) for sentence in sentences if not remembered.search(sentence))
    return any(one and (one[1] or "").casefold() not in towards for one in found)


@cache
def _words(*kinds: str) -> str:
    return "|".join(word for tongue in _TONGUES.values() for kind in kinds for word in tongue[kind].split())


def _who_has_it_not(sentences: Sequence[str], item: str, state: GameState, scenario: Scenario) -> Iterator[str]:
    """Those who use or give an item that another holds, or that is gone for good."""
    thing, others = scenario.items[item], {name.casefold() for id, one in scenario.items.items() if id != item for name in one.names}
    loose = {name.casefold() for name in thing.names if " " not in _bare(name)}  # "a bottle" may be any
    things = rf"(?:(?:the|his|her|their|another|a second)\s+{_pattern(thing, others)}|an?\s+{_pattern(thing, others | loose)})"
    people: list[Npc | Hero] = [*(scenario.heroes[id] for id in state.alive), *scenario.npcs.values()]
    for person in people:
        if person.id == state.items[item] or not _is_named(person, sentences):
            continue
        verbs = _USES if person.id in state.party else _GIVES
        names = _pattern(person, _others_names(scenario, state, person.id))
        uses = re.compile(rf"\b{names}\s+(?:\w+ly\s+)?(?:{verbs})(?:s|d|ed)?\s+{_RECIPIENT}{things}\b", re.I)
        if any(uses.search(sentence) and not _DENIED.search(sentence) for sentence in sentences) or any(
            _gives(sentences, names, _pattern(thing, others), tongue) for tongue in _TONGUES.values()
        ):
            yield person.id


def _gives(sentences: Sequence[str], names: str, things: str, tongue: Mapping[str, str]) -> bool:
    """Whether somebody gives away this very thing, in a language in which the one who gives comes first."""
    the, verbs, no = ("|".join(tongue[kind].split()) for kind in ("the", "gives", "denied"))
    this_very = rf"(?:{the})\s*\b" if the else r"\b"
    gives = re.compile(rf"\b{names}\s+(?:\w+\s+)?(?:{verbs})\s+(?:[\w’'-]+\s+){{0,3}}?{this_very}{things}\b", re.I)
    refused = re.compile(rf"\b(?:{no}|{'|'.join(tongue['remembered'].split())})\b", re.I)
    return any(gives.search(sentence) and not refused.search(sentence) for sentence in sentences)


def _is_named(one: Named, sentences: Sequence[str]) -> bool:
    """Whether any of the names may be there: most are not, and need no second look."""
    return any(_bare(name).casefold() in sentence.casefold() for name in one.names for sentence in sentences)


def _others_names(scenario: Scenario, state: GameState, who: str) -> set[str]:
    people: list[Named] = [*scenario.npcs.values(), *(scenario.heroes[id] for id in state.party)]
    return {name.casefold() for one in people if one.id != who for name in one.names}


def _pattern(one: Named, shared: set[str]) -> str:
    """Any of the names, longest first, without an article and without those that others share too."""
    names = {_bare(name) for name in one.names if name.casefold() not in shared}
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name))) + ")" if names else r"(?!)"


def _bare(name: str) -> str:
    return re.sub(r"^(?:(?:the|an?|some|der|die|das|eine?|le|la|les|une?|el|los|las|una) |l['’])", "", name, flags=re.I)
