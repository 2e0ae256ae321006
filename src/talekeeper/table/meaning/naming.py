"""What is named in a player's words, and whom they are said to, where that player is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from talekeeper.table.meaning import address, questions
from talekeeper.table.meaning.address import Names
from talekeeper.table.meaning.spelling import alike, content, mention, speller, words_of
from talekeeper.table.meaning.verbs import KIN
from talekeeper.table.shown.choices import deeds_here, people_here, ways_here
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Deed, Scenario

ADDRESSING = frozenset({
    "", "ask", "talk", "whisper", "promise", "persuade", "calm", "threaten", "deceive", "insult", "reveal", "keep", "renounce", "work",
})  # fmt: skip
"""With these verbs somebody is spoken to; with none it may be so as well."""


def _best(tokens: Sequence[str], named: Iterable[tuple[str, Iterable[str]]]) -> str:
    """The id whose name is mentioned at the greatest length; of several, the first."""
    found = [(mention(tokens, names), id) for id, names in named]
    longest = max((size for size, _ in found), default=0)
    return next((id for size, id in found if size == longest), "") if longest else ""


@lru_cache(maxsize=256)
def _names(scenario: Scenario, people: tuple[str, ...], party: tuple[str, ...]) -> Names:
    """Everybody by name: those who are here first, and these by what they are as well."""
    here = {one: (*scenario.npcs[one].names, scenario.npcs[one].calling) for one in people}
    with_us = {one: scenario.heroes[one].names for one in party}
    return Names({**here, **with_us, **{one: npc.names for one, npc in scenario.npcs.items() if one not in here}})


class Naming:
    """Knows what is meant by a name where one of the party is: the nearest first."""

    def __init__(self, scenario: Scenario, state: GameState, actor: str) -> None:
        self.scenario, self.state, self.actor = scenario, state, actor
        self._words = speller(scenario).words
        self.place = scenario.places[state.where[actor]]
        self.people = people_here(state, scenario, self.place.id)
        self.names = _names(scenario, tuple(npc.id for npc in self.people), tuple(one for one in state.party if one != actor))
        ways = ways_here(state, scenario, actor) if state.encounter else []
        self.ways = {way.id for way in ways}
        self.deeds = ways or deeds_here(state, scenario, actor)

    # -- things and people

    def _npc(self, tokens: list[str]) -> str:
        here = [(npc.id, (*npc.names, npc.calling)) for npc in self.people]
        return _best(tokens, [*here, *((npc.id, npc.names) for npc in self.scenario.npcs.values())])

    def _hero(self, tokens: list[str]) -> str:
        return _best(tokens, ((id, self.scenario.heroes[id].names) for id in self.state.party if id != self.actor))

    def _place(self, tokens: list[str]) -> str:
        near = [(exit.to, (*self.scenario.places[exit.to].names, exit.way)) for exit in self.place.exits]
        return _best(tokens, [*near, *((place.id, place.names) for place in self.scenario.places.values())])

    def _item(self, tokens: list[str]) -> str:
        near = (*self.state.holds(self.actor), *self.state.lying(self.place.id))
        return _best(tokens, [(id, self._names(id)) for id in (*near, *self.state.items)])

    def _names_of(self, id: str) -> tuple[str, ...]:
        known = self.scenario.person(id) or self.scenario.places.get(id)
        ways = tuple(exit.way for exit in self.place.exits if exit.to == id)
        return (*known.names, *ways) if known is not None else self._names(id)

    def _names(self, item: str) -> tuple[str, ...]:
        known = self.scenario.items.get(item)
        return known.names if known is not None else (self.scenario.name(item),)

    def _detail(self, tokens: list[str]) -> str:
        return _best(tokens, ((detail.name, (detail.name, *detail.words)) for detail in self.place.details))

    def _secret(self, tokens: list[str], text: str) -> str:
        """Which secret is told: the one whose words are there; one's own, if it is called that; something that one was told, if that is
        what one passes on. “The secret of good soup” is none."""
        if questions.HELD_BACK.search(text):
            return ""
        mine = [secret for id, secret in self.scenario.secrets.items() if self.actor in self.state.knows.get(id, ())]
        me = {word for name in self.scenario.heroes[self.actor].names for word in words_of(name)}
        telling = ((secret.id, [word for word in (*secret.words, secret.about) if word and word not in me]) for secret in mine)
        named = _best(tokens, telling)
        own = [secret.id for secret in mine if secret.known == (self.actor,)]
        if named or questions.OWN_SECRET.search(text):
            return named or next(iter((*own, *(secret.id for secret in mine))), "")
        learned = (secret.id for secret in mine if self.actor not in secret.known)
        return next(learned, "") if questions.RETOLD.search(text) else ""

    def _spoken_of(self, tokens: list[str]) -> str:
        """Who is asked about, and not asked: the last who is named behind an “about”."""
        behind = range(len(tokens) - 1, min((at for at, token in enumerate(tokens) if token in ("about", "of")), default=len(tokens)), -1)
        return next((npc for at in behind if (npc := self._npc(tokens[at : at + 1]))), "")

    def _deed(self, tokens: list[str], verb: str) -> Deed | None:
        """The deed that fits best: by its verb and its words, or by the words of its offer."""
        scored = [(self._fit(deed, tokens, verb), -rank, deed) for rank, deed in enumerate(self.deeds)]
        best = max(scored, key=lambda one: one[:2], default=None)
        return best[2] if best is not None and best[0] >= 1.0 else None

    def _fit(self, deed: Deed, tokens: list[str], verb: str) -> float:
        offer = content(deed.offer)
        share = sum(any(alike(word, token) for token in tokens) for word in offer) / len(offer) if offer else 0.0
        if len(offer) > 1 and share >= 0.99:
            return 3.0
        named = mention(tokens, deed.words) if deed.words else 0
        if verb in deed.verbs:
            bare = not deed.words and (len(self.ways) > 0 or bool(deed.npc and deed.npc == self._npc(tokens)))
            return 1.5 + named + share if named or bare or share >= 0.6 else share
        kin = any(verb in group and any(one in group for one in deed.verbs) for group in KIN)
        kin = kin and (not deed.npc or deed.npc == self._npc(tokens))
        return 0.3 + 0.3 * named + share if kin and named else share

    # -- whom words are said to

    def _called(self, text: str) -> Sequence[str]:
        """Those who are called by name in the first sentence that calls somebody."""
        calls = (address.called(sentence, self._words(sentence), self.names).to for sentence in address.sentences(text))
        return next(filter(None, calls), ())

    def _is_call(self, text: str) -> bool:
        """Whether somebody is called by name, and nothing is done besides: `Osric, look at that!`"""
        words = set(self._words(text))
        return bool(self._called(text)) and (not {"i", "we"} & words or "think" in words)

    def _to(self, tokens: list[str], verb: str, called: Sequence[str], before: Sequence[str] = ()) -> Sequence[str] | None:
        """Whom words are said to: those who are named behind the saying, or called. Nobody where it is somebody who is not named, and
        None where it does not say."""
        told = address.told(tokens, self.names) if verb in ADDRESSING else None
        if told is None and verb in ADDRESSING and verb:
            told = address.turned(before, self.names)
        if told is None or (called and not {"i", "we"} & set(tokens[: told.end])):
            return called or None
        if told.pronoun:
            return self._named_before([*before, *tokens[: told.end]], told.pronoun)
        here = {one.id for one in self.people} | set(self.state.party)
        return told.to if verb else [one for one in told.to if one in here] or None

    def _named_before(self, tokens: list[str], pronoun: str) -> list[str]:
        """Who is meant by “him”: the last who was named and is no woman."""
        wrong = {"him": "she", "her": "he"}.get(pronoun)
        here = {one.id for one in self.people} | set(self.state.party)
        named = (who for who in self.names.last(tokens) if who in here)
        return next(([who] for who in named if (one := self.scenario.person(who)) and one.pronouns != wrong), [])

    def _is_for_heroes(self, to: Sequence[str] | None) -> bool:
        return bool(to) and not self._pair(to, [])[0]

    def _pair(self, to: Sequence[str] | None, tokens: list[str]) -> tuple[str, str]:
        """The first NPC and the first of the party to whom something is said; where it does not say, whoever is named in the words."""
        if to is None:
            return self._npc(tokens), self._hero(tokens)
        npcs = [one for one in to if one in self.scenario.npcs]
        return next(iter(npcs), ""), next((one for one in to if one not in npcs), "")

    def _told_to(self, tokens: list[str]) -> list[str]:
        """The words that say to whom something is said, without those that say what: `whisper to Marlo | that Osric is a spy`."""
        ends = [at for at, token in enumerate(tokens) if token in ("that", "about", "how", "what", "why", "where", "who")]
        head = tokens[: ends[0]] if ends else tokens
        return head if self._npc(head) or self._hero(head) or {"everyone", "everybody", "all", "others"} & set(head) else tokens
