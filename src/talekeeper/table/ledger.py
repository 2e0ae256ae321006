"""The ledger: promises, items, deaths, and who knows which secret. Derived from the state, and so rewound with the story.

The handlers refuse commands that contradict it. Free prose cannot be refused that way, so `contradictions` reads it: a dead one who
speaks or acts, something used by one who has it no longer. It would rather miss one than find one that is not there: names are matched
as whole words, what is quoted or remembered does not count, and a name that two share is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from talekeeper.table.events import Event, audience
from talekeeper.table.game import GameState, apply
from talekeeper.table.scenario import Named, Scenario


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


def ledger(state: GameState, scenario: Scenario) -> Ledger:
    """What is owed, held, lost and known. For one seat, give it the state that `seen_by` makes."""
    name = scenario.name
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


def seen_by(seat: str, start: GameState, events: Iterable[Event]) -> GameState:
    """The game as one seat knows it: the fold of what it may know. Others' secrets are not even a gap in it."""
    whole = seen = _without_secrets(start, seat)
    for event in events:
        if seat in audience(event, whole):
            seen = apply(seen, event)
        whole = apply(whole, event)
    return _without_secrets(seen, seat)


def _without_secrets(state: GameState, seat: str) -> GameState:
    """The state without what other player characters know and this seat does not."""
    return replace(state, knows={secret: known for secret, known in state.knows.items() if seat in known}, flags={})


# -- free prose --------------------------------------------------------------------------------------------------------

_SAYS = (
    "says|said|asks|asked|answers|answered|replies|replied|whispers|whispered|mutters|muttered|murmurs|murmured|shouts|shouted|tells|told|"
    "explains|explained|calls|called|adds|added|agrees|agreed|warns|warned|insists|insisted|laughs|nods|smiles|grins|shrugs|sighs|speaks"
)
_DOES = "walks|steps|turns|hands|offers|gives|opens|closes|pours|leads|follows|draws|raises|reaches|sits|stands|waits|looks|watches"
_USES = (
    "uses|use|draws|draw|raises|raise|lifts|lift|swings|swing|wields|wield|hands|hand|gives|give|offers|offer|shows|show|plays|play|"
    "lights|light|throws|throw|unlocks|unlock|brandishes|brandish|holds|hold|produces|produce|wears|wear"
)
_REMEMBERED = re.compile(
    r"\b(had|once|remember\w*|recall\w*|before|used to|dream\w*|ghost|late|dead|died|corpse|body|grave|memory|last words|would have|if)\b",
    re.I,
)
_DENIED = re.compile(r"\b(not|no|never|without|cannot|can't|lost|missing|wish\w*|want\w*|if|had|remember\w*|would|gone)\b", re.I)
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|‘[^’]*’(?!\w)|«[^»]*»")


def contradictions(text: str, state: GameState, scenario: Scenario, speaker: str = "") -> list[str]:
    """What in the text cannot be, one sentence each. `speaker` is who says "I"."""
    sentences = re.split(r"(?<=[.!?…])\s+|\n+", _QUOTED.sub("“”", text))
    found = [*_dead_who_act(sentences, state, scenario), *_things_not_held(sentences, state, scenario, speaker)]
    return list(dict.fromkeys(found))


def _dead_who_act(sentences: Sequence[str], state: GameState, scenario: Scenario) -> Iterator[str]:
    for who in state.dead:
        person = scenario.person(who)
        if person is None:
            continue
        names = _pattern(person, _others_names(scenario, state, who))
        acts = re.compile(
            rf"\b{names}\s+(?:\w+ly\s+)?(?:{_SAYS}|{_DOES})\b|“”,?\s+(?:{_SAYS})\s+{names}(?!['’]s)\b|^\W*{names}\W*:\s", re.I
        )
        if any(acts.search(sentence) and not _REMEMBERED.search(sentence) for sentence in sentences):
            yield f"{person.name} is dead and can neither speak nor act"


def _things_not_held(sentences: Sequence[str], state: GameState, scenario: Scenario, speaker: str) -> Iterator[str]:
    for item, holder in state.items.items():
        thing = scenario.items.get(item)
        if thing is None:
            continue
        names = _pattern(thing, {name.casefold() for id, one in scenario.items.items() if id != item for name in one.names})
        for who in state.alive:
            if who == holder:
                continue
            subject = _pattern(scenario.heroes[who], _others_names(scenario, state, who))
            subject = rf"(?:{subject}|I)" if who == speaker else subject
            uses = re.compile(
                rf"\b{subject}\s+(?:\w+ly\s+)?(?:{_USES})\s+(?:up\s+|out\s+)?(?:the|a|an|his|her|their|my)?\s*{names}\b", re.I
            )
            if any(uses.search(sentence) and not _DENIED.search(sentence) for sentence in sentences):
                yield f"{scenario.heroes[who].name} does not have {thing.name}" + (
                    f": {scenario.name(holder)} has it" if holder in state.where else ""
                )


def _others_names(scenario: Scenario, state: GameState, who: str) -> set[str]:
    people: list[Named] = [*scenario.npcs.values(), *(scenario.heroes[id] for id in state.party)]
    return {name.casefold() for one in people if one.id != who for name in one.names}


def _pattern(one: Named, shared: set[str]) -> str:
    """Any of the names, longest first, without an article and without those that others share too."""
    names = {re.sub(r"^(the|an?) ", "", name, flags=re.I) for name in one.names if name.casefold() not in shared}
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name))) + ")" if names else r"(?!)"
