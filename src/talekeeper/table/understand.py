"""What a player means: free text to intents, by verbs, names, aliases, synonyms, and a little patience with typing.

Nothing here decides what happens. An intent names what is there to be named (whom, where, which thing, which deed of the pack) and keeps
the words that were spoken. Text in which nothing is recognised is still something said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from talekeeper.summarize.words import language
from talekeeper.table import oddities
from talekeeper.table.brain import Choice
from talekeeper.table.choices import deeds_here, offers, people_here, told, topic_name, ways_here
from talekeeper.table.game import GameState
from talekeeper.table.phrases import phrases
from talekeeper.table.rules import holds
from talekeeper.table.scenario import ANSWER, Deed, Npc, Scenario, Topic
from talekeeper.table.spelling import SMALL, VERBS, alike, content, mention, speller, words_of

KIN: tuple[frozenset[str], ...] = (
    frozenset({"look", "search", "read", "listen", "ask"}),
    frozenset({"attack", "break", "threaten"}),
    frozenset({"persuade", "calm", "talk", "ask", "trade", "deceive"}),
    frozenset({"sneak", "hide", "steal", "take", "climb", "go", "swim"}),
    frozenset({"use", "open", "make", "burn", "break", "dig", "play", "pray"}),
    frozenset({"give", "trade"}),
    frozenset({"help", "calm", "use"}),
    frozenset({"flee", "hide", "sneak"}),
)
_PHRASES: tuple[tuple[tuple[str, ...], str], ...] = tuple(
    sorted(((tuple(phrase.split()), verb) for verb, all in VERBS["verbs"].items() for phrase in all), key=lambda pair: -len(pair[0]))
)
_BY_FIRST_WORD: Mapping[str, list[tuple[tuple[str, ...], str]]] = {
    first: [pair for pair in _PHRASES if pair[0][0] == first] for first in {phrase[0] for phrase, _ in _PHRASES}
}
_GAP = "*"
_WIDEST = 3
"""So many words may stand in a gap: `ask old Mother Brine for work`."""
_SINGLE: Mapping[str, str] = {phrase[0]: verb for phrase, verb in reversed(_PHRASES) if len(phrase) == 1}
_QUOTE = re.compile(r"[“\"]([^”\"]*)[”\"]|(?<!\w)[‘']([^’']{3,}(?:[’'](?=\w)[^’']*)*)[’'](?!\w)")
_CLAUSES = re.compile(r"[.;!?:\n]+|,? (?:and )?then |, and (?=i\b)|, (?=i\b)| and (?=i\b)", re.I)
_JOINT = re.compile(r",? and |, ", re.I)
_COLON = re.compile(r"^([^“”\":.!?]*\b(?:whisper|murmur|say|tell|ask|shout|answer|reply|call)\w*\b[^“”\":.!?]*):\s+(\S.*)$", re.I | re.S)
_QUESTION = re.compile(
    r"\?|^\W*(?:who|whom|whose|what|whats|where|why|when|how|which|is|are|am|was|were|do|does|did|can|could|will|would|should|have|has)\b",
    re.I,
)
_WHO = re.compile(r"\bwho (?:are|is|r) (?:you|u|this|that|he|she|they|there)\b|\bwhat(?:'s| is) your name\b|\byour name\b", re.I)
_ONESELF: Mapping[str, re.Pattern[str]] = {
    "carried": re.compile(
        r"\b(?:what (?:am i|are we) (?:carry|hold)ing|what (?:do|have) (?:i|we) (?:have|got|carry)|inventory|how much money"
        r"|(?:what(?:'s| is) in|check|look (?:in|into|through)|search|empty) my (?:bag|pockets?|coat|things))\b", re.I,
    ),
    "sky": re.compile(
        r"\b(?:what time|how late|what day|what hour)\b|\bis it (?:raining|snowing|day|night|late|cold)\b|\bthe weather\b", re.I
    ),
    "owed": re.compile(
        r"\b(?:what|whom?) (?:(?:did|do|have|had) (?:i|we)|(?:i|we)(?: have| had|['’]ve)?)"
        r" (?:promised?|sworn|swear|swore|vow(?:ed)?|owed?)\b"
        r"|\b(?:what (?:is|was|are|were)|do i remember) my (?:word|promises?|vows?|debts?)\b", re.I,
    ),
    "present": re.compile(r"\bwho (?:else )?is (?:here|there|around|with us)\b|\bwho are (?:these|those|they|all)\b", re.I),
    "self": re.compile(r"\bwho am i\b|\blook at myself\b|\bhow am i\b", re.I),
    "here": re.compile(
        r"\bwhere (?:am i|are we)\b|\bwhat(?:'s| is) (?:this place|here)\b|\bwhat place is this\b|\bwhat do (?:i|we) see\b", re.I
    ),
}  # fmt: skip
_TRYING = re.compile(
    r"\b(i|we) (?:(?:will|shall|would|am|are|['’]ll|['’]d|['’]m) )?"
    r"(?:try|attempt|want|wish|decide|intend|plan|begin|start|like|need|going) to (?!know\b)(?=\w)", re.I,
)  # fmt: skip
_OPENING = re.compile(
    r"\bwhat (?:do you|does (?:he|she)|he|she|they|you) wants?\b|\bany news\b|\bwhat (?:has )?happened(?: here)?\W*$"
    r"|\bwhat(?:'s| is) (?:(?:it|this|all this) about|new|going on|wrong|the matter)\b", re.I,
)  # fmt: skip
"""A question that leaves it to the other one what to speak of."""
_TOLD_OF = re.compile(
    r"\b(?:know (?:about|of)|heard (?:about|of)|tell me (?:about|of)|what about|(?:ask|talk|speak)\w*\b.* (?:about|of))\b", re.I
)
_RETOLD = re.compile(r"\bwhat\b.*\b(?:told|said|confided|confessed|whispered|learned|learnt|heard)\b", re.I)
_WANTED = re.compile(r"\b(?:got|have|sell|serve|like|want|need|buy|order)\b", re.I)
_WHO_IS = re.compile(r"\bwho(?:'s| is|s)\b", re.I)
_MAY_I = re.compile(r"^\s*(?:can|could|may|might|should) (?:i|we) (?=\w)(?!.*\b(?:do|get|have)\b)", re.I)
_ASKING = frozenset({"ask", "talk", "hint", "persuade", "trade", "reveal", "whisper", "work", "promise", "threaten", "deceive"})
_WHERE = re.compile(
    r"\bwhere(?:'s|s)?\b|\bhow (?:do|can) (?:i|we) (?:get|find|reach|go)\b|\bwhich way\b|\b(?:find|looking for|look for)\b", re.I
)
SERVED = frozenset(VERBS["served"]["words"])
"""What one is given to eat and drink wherever somebody serves it."""
_ALOUD = frozenset(
    {
        "you", "your", "yours", "u", "hello", "hi", "hey", "greetings", "thanks", "thank", "please", "yes", "no", "yeah", "nope", "ok",
        "okay", "sorry", "welcome", "goodbye", "bye", "morning", "evening", "well", "listen",
    }
)  # fmt: skip
_SPOKEN = frozenset({"say", "tell", "answer", "reply", "ask", "nobody", "others", "said", "call"})
_WEAK = frozenset({"say", "wait", "look", "listen"})
_DOINGS = frozenset({"go", "look", "search", "take", "use", "open", "drop", "rest", "wait", "follow", "flee"})
_MOST_INTENTS = 2
_PROPOSED = re.compile(
    r"^\W*(?:(?:i (?:say|suggest|propose|think|vote)(?: that)?|perhaps|maybe) we(?: should| could)?"
    r"|let(?:['’]?s| us)|(?:shall|should) we)\s+",
    re.I,
)
_MOVING = frozenset({"go", "climb", "sneak", "swim", "follow", "flee"})
_GOING = frozenset(word for phrase in VERBS["verbs"]["go"] for word in phrase.split()) - {"leave", "exit"} | {"off", "away", "back"}


@dataclass(frozen=True, slots=True)
class Intent:
    """What someone wants to do, as far as it was understood."""

    verb: str
    npc: str = ""
    hero: str = ""
    place: str = ""
    item: str = ""
    deed: str = ""
    topic: str = ""
    secret: str = ""
    detail: str = ""
    words: str = ""
    asks: bool = True
    """It is a question, and not a remark that touches on something."""


def _is_weak(intent: Intent) -> bool:
    """Whether it may be passed over where something else is meant as well: a look, a wait, a step towards someone."""
    if intent.verb == "go":
        return not (intent.place or intent.npc or goal_of(intent.words))
    return intent.verb in _WEAK and not intent.detail


def is_served(tokens: Iterable[str]) -> bool:
    """Whether it is about something to eat or to drink."""
    return any(token in SERVED or token.removesuffix("s") in SERVED for token in tokens)


def goal_of(words: str) -> list[str]:
    """What is left of a wish to go somewhere without the going: words for a goal, if there are any."""
    return [word for word in content(words) if word not in _GOING]


def _best(tokens: Sequence[str], named: Iterable[tuple[str, Iterable[str]]]) -> str:
    """The id whose name is mentioned at the greatest length; of several, the first."""
    found = [(mention(tokens, names), id) for id, names in named]
    longest = max((size for size, _ in found), default=0)
    return next((id for size, id in found if size == longest), "") if longest else ""


# -- understanding -----------------------------------------------------------------------------------------------------


class Listener:
    """Understands what one player says, where they are."""

    def __init__(self, scenario: Scenario, state: GameState, actor: str) -> None:
        self.scenario, self.state, self.actor = scenario, state, actor
        self._words = speller(scenario).words
        self.place = scenario.places[state.where[actor]]
        self.people = people_here(state, scenario, self.place.id)
        ways = ways_here(state, scenario, actor) if state.encounter else []
        self.ways = {way.id for way in ways}
        self.deeds = ways or deeds_here(state, scenario, actor)

    def intents(self, text: str) -> list[Intent]:
        """What is meant, in order; at least one intent, `say` or `none` if nothing else."""
        spoken = _asides(self.scenario, self.actor).sub(" ", text)
        if text.strip() and not spoken.strip():
            return [Intent("aside", words=text)]
        chosen = self._chosen(spoken)
        if chosen is not None:
            return [chosen]
        text = _TRYING.sub(r"\1 ", self._in_first_person(spoken))
        text = f"I {text[found.end() :].rstrip('? ')}" if (found := _MAY_I.match(text)) else text
        quotes = [found[1] or found[2] or "" for found in _QUOTE.finditer(text)]
        speech, rest = " ".join(quotes).strip(), _QUOTE.sub(" ", text)
        if not quotes and (colon := _COLON.match(text)):
            rest, speech = colon[1], colon[2].strip()
        if not speech and _is_foreign(rest):
            return [Intent("foreign", npc=self._npc(self._words(text)), words=text)]
        odd = self._odd(rest, speech)
        if odd is not None:
            return [odd]
        asked = self._asked(rest) if not speech else None
        if asked is not None:
            return [asked]
        meant = [intent for clause in self._clauses(rest) for intent in self._clause(clause)]
        meant = [replace(intent, words=speech) if speech and intent.verb not in _DOINGS else intent for intent in meant]
        meant = [one for at, one in enumerate(meant) if not one.deed or one.deed not in {before.deed for before in meant[:at]}]
        away = [intent for intent in meant if intent.verb == "flee"] if self.ways else []
        strong = away or [intent for intent in meant if not _is_weak(intent)] or meant
        return strong[:_MOST_INTENTS] or [self._speech(text, speech or rest)]

    def _odd(self, rest: str, speech: str) -> Intent | None:
        """What no character would say or do: a question about the game, an insult to anyone near, a noise."""
        said, tokens = speech or rest, self._words(rest)
        about = oddities.about_play(rest) if not speech and _QUESTION.search(rest) else ""
        if about:
            return Intent("rules", topic=about, words=rest)
        if find_verb(tokens) in ("", "talk") and oddities.is_insult(said, of_someone=bool(self._npc(tokens))):
            return Intent("insult", npc=self._npc(self._words(f"{rest} {speech}")), hero=self._hero(tokens), words=said)
        if oddities.is_at_a_loss(tokens):
            return Intent("hint")
        return None if speech or self._means_something(tokens) else Intent("unclear", words=rest)

    def _means_something(self, tokens: list[str]) -> bool:
        """Whether there is a word in it that anyone here would know, and not only the small change between words."""
        knows = speller(self.scenario).knows
        if len(tokens) > 1:
            return tokens[0] in ("i", "we") or any(map(knows, tokens))
        return any(token in _ALOUD or token.isdecimal() or (knows(token) and token not in SMALL) for token in tokens)

    def _chosen(self, text: str) -> Intent | None:
        """An offer that was taken, by its number or word for word."""
        plain = " ".join(self._words(text))
        number = re.fullmatch(r"\s*#?(\d{1,2})[.)]?\s*", text)
        choices = offers(self.scenario, self.state, self.actor)
        if number and 0 < int(number[1]) <= len(choices):
            return self._offered(choices[int(number[1]) - 1])
        for choice in choices:
            if plain.removeprefix("i ") == " ".join(self._words(choice.text)):
                return self._offered(choice)
        return None

    def _in_first_person(self, text: str) -> str:
        """`Nell walks over and asks Pell` as `I walk over and ask Pell`."""
        names = "|".join(re.escape(name) for name in sorted(self.scenario.heroes[self.actor].names, key=len, reverse=True))
        own = re.match(rf"\s*(?:{names})\s+(?=\w+s\b)", text)
        if own is None:
            return text

        def verb(found: re.Match[str]) -> str:
            return found[1] if found[1].casefold() in _SINGLE else found[0]

        return "I " + re.sub(r"\b(\w+?)(?:es|s)\b", verb, text[own.end() :])

    def _asked(self, text: str) -> Intent | None:
        """A question that the rules can answer by themselves: who someone is, and where something is; or one that no verb explains."""
        tokens = self._words(text)
        oneself = next((about for about, words in _ONESELF.items() if words.search(text)), "")
        if oneself:
            return Intent(oneself, npc=self._npc(tokens), hero=self._hero(tokens), words=text)
        if _OPENING.search(text) and self._topic(tokens, "ask") is None and (first := self._first_topic(tokens)):
            return first
        if _WANTED.search(text) and "?" in text and is_served(tokens):
            return Intent("trade", npc=self._npc(tokens), words=text)
        of_hero = self._hero(self._told_to(tokens))
        if _TOLD_OF.search(text) and not of_hero and (whom := self._spoken_of(tokens)) and self._topic(tokens, "ask") is None:
            return Intent("about", npc=whom, words=text)
        if _WHO_IS.search(text) and (npc := self._npc(tokens)) and self._topic(tokens, "ask") is None:
            return Intent("about", npc=npc, words=text)
        if "?" in text and find_verb(tokens) not in _ASKING:
            topic = self._topic(tokens, "ask")
            if topic is not None:
                return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=text)
            if not _WHO.search(text) and not (_WHERE.search(text) and (self._npc(tokens) or self._place(tokens))):
                return Intent("wonder", npc=self._npc(tokens), hero=self._hero(tokens), words=text)
        if _WHO.search(text):
            return Intent("who", npc=self._npc(tokens), words=text)
        npc, place = self._npc(tokens), self._place(tokens)
        if _WHERE.search(text) and (npc or place) and self._topic(tokens, "") is None and find_verb(tokens) not in ("ask", "talk", "give"):
            here = npc in {one.id for one in self.people}
            return Intent("talk" if here else "where", npc=npc, place="" if npc else place, words=text)
        return None

    def _spoken_of(self, tokens: list[str]) -> str:
        """Who is asked about, and not asked: the last who is named behind an “about”."""
        behind = range(len(tokens) - 1, min((at for at, token in enumerate(tokens) if token in ("about", "of")), default=len(tokens)), -1)
        return next((npc for at in behind if (npc := self._npc(tokens[at : at + 1]))), "")

    def _offered(self, choice: Choice) -> Intent:
        if choice.verb in ("deed", "way"):
            return Intent(choice.verb, deed=choice.about[0])
        return next(iter(self._clause(choice.text)), Intent("none", words=choice.text))

    def _clauses(self, text: str) -> Iterator[str]:
        """What is done one after the other: sentences, and what “and” joins where another verb follows it."""
        for clause in _CLAUSES.split(text):
            begin = 0
            for joint in _JOINT.finditer(clause):
                if _verb_at(self._words(clause[joint.end() :])) and find_verb(self._words(clause[begin : joint.start()])):
                    yield clause[begin : joint.start()]
                    begin = joint.end()
            yield clause[begin:]

    def _clause(self, clause: str) -> Iterator[Intent]:
        clause = _PROPOSED.sub("we ", clause)
        tokens = self._words(clause)
        if not tokens:
            return
        verb = find_verb(tokens)
        deed = self._deed(tokens, verb)
        topic = self._topic(tokens, verb)
        if deed is not None and (topic is None or verb not in ("ask", "talk")):
            yield Intent("way" if deed.id in self.ways else "deed", npc=deed.npc, deed=deed.id, words=clause.strip())
            return
        meant = self._meant(tokens, verb, clause.strip(), topic)
        if meant is not None:
            yield meant

    def _meant(self, tokens: list[str], verb: str, clause: str, topic: tuple[Npc, Topic] | None) -> Intent | None:
        item, whom = self._item(tokens), self._told_to(tokens) if verb in ("talk", "whisper", "ask") else tokens
        npc, hero = self._npc(whom), self._hero(whom)
        place, detail = self._place(tokens), self._detail(tokens)
        if verb in ("ask", "talk", "search", "") and topic is not None:
            return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=clause)
        retold = verb in ("talk", "whisper") and hero and _RETOLD.search(clause)
        if verb == "reveal" or retold or (verb in ("talk", "whisper") and {"secret", "truth"} & set(tokens)):
            return Intent("reveal", npc="" if retold else npc, hero=hero, secret=self._secret(tokens), words=clause)
        if verb == "ask" and not npc and hero:
            return Intent("say", hero=hero, words=clause)
        if verb == "go" and npc and not place and npc in {one.id for one in self.people}:
            return Intent("talk", npc=npc, words=clause)
        if not verb and _QUESTION.search(clause) and len(tokens) > 2:
            return Intent("wonder", npc=npc, hero=hero, words=clause)
        if verb in _MOVING and place == self.place.id and not npc and not {"leave", "exit", "out", "outside"} & set(tokens):
            return Intent("look", words=clause)
        if place and place != self.place.id and (verb in _MOVING or (verb == "use" and "try" in tokens and not item)):
            return Intent("go", place=place, words=clause)
        if verb == "help" and not (npc or hero) and len(content(clause)) < 2:
            return Intent("hint")
        if verb == "give" and item and not (npc or hero):
            npc = self.people[0].id if len(self.people) == 1 else ""
        if verb in ("search", "look", "read", "open", "use") and detail and not npc:
            return Intent("look", detail=detail, words=clause)
        if verb == "talk" and not npc and {token for token in tokens if token not in SMALL} <= _SPOKEN:
            return None  # “…,” I say: what counts is what was said
        if not verb:
            return self._wordless(clause, npc, place, item)
        return Intent(verb, npc=npc, hero=hero, item=item, place=place, detail=detail, words=clause)

    def _told_to(self, tokens: list[str]) -> list[str]:
        """The words that say to whom something is said, without those that say what: `whisper to Marlo | that Osric is a spy`."""
        ends = [at for at, token in enumerate(tokens) if token in ("that", "about", "how", "what", "why", "where", "who")]
        head = tokens[: ends[0]] if ends else tokens
        return head if self._npc(head) or self._hero(head) or {"everyone", "everybody", "all", "others"} & set(head) else tokens

    def _wordless(self, clause: str, npc: str, place: str, item: str) -> Intent | None:
        """Without a verb a bare name still says something: `the mill`, `Oda`."""
        named = [name for id in (npc, place, item) if id for name in self._names_of(id)]
        if not {word.removesuffix("'s") for word in content(clause)} <= {word for name in named for word in words_of(name)}:
            return None
        if place and place != self.place.id:
            return Intent("go", place=place, words=clause)
        return Intent("talk", npc=npc, words=clause) if npc else Intent("look", item=item, words=clause) if item else None

    def _speech(self, text: str, speech: str) -> Intent:
        tokens = self._words(text)
        npc, hero = self._npc(tokens), self._hero(tokens)
        topic = self._topic(self._words(speech), "talk")
        if topic is not None:
            return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=speech, asks=bool(_QUESTION.search(speech)))
        if not tokens:
            return Intent("none")
        if _QUESTION.search(speech):
            return Intent("wonder", npc=npc, hero=hero, words=speech.strip())
        aloud = _QUOTE.search(text) or _COLON.match(text) or npc or hero or _ALOUD & set(tokens)
        return Intent("say" if aloud else "none", npc=npc, hero=hero, words=speech.strip())

    # what is named

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

    def _secret(self, tokens: list[str]) -> str:
        mine = [secret for id, secret in self.scenario.secrets.items() if self.actor in self.state.knows.get(id, ())]
        named = _best(tokens, ((secret.id, (*secret.words, secret.about)) for secret in mine if secret.words or secret.about))
        own = [secret.id for secret in mine if secret.known == (self.actor,)]
        return named or next(iter((*own, *(secret.id for secret in mine))), "")

    def _topic(self, tokens: list[str], verb: str) -> tuple[Npc, Topic] | None:
        """What an NPC here could be asked, if its words are there: of the one who is named, or of anyone."""
        asked = self._npc(tokens)
        near = any(npc.id == asked for npc in self.people)
        if asked and not near and not self._is_addressed(tokens, asked):
            asked = ""  # “ask where Quill keeps it” is no question to Quill
        people = [npc for npc in self.people if npc.id == asked] or ([] if asked or verb not in ("ask", "talk") else self.people)
        found: list[tuple[int, int, Npc, Topic]] = []
        for npc in people:
            rest = [token for token in tokens if not any(alike(token, word) for name in npc.names for word in words_of(name))]
            for rank, topic in enumerate(npc.topics):
                if holds(topic.when, self.state, self.scenario, self.actor):
                    size = max(
                        mention(rest, topic.words), mention(rest, (topic_name(topic),)) + 1 if mention(rest, (topic_name(topic),)) else 0
                    )
                    if size:
                        found.append((-size, rank, npc, topic))
                    elif verb == "ask" and asked and _touches(rest, topic):
                        found.append((0, rank, npc, topic))
        best = min(found, key=lambda one: one[:2], default=None)
        return (best[2], best[3]) if best is not None else None

    def _first_topic(self, tokens: list[str]) -> Intent | None:
        """What is on the mind of the one who is asked, and has not been said yet."""
        near = [npc for npc in self.people if npc.id == self._npc(tokens)] or self.people[:1]
        fresh = (
            Intent("ask", npc=npc.id, topic=topic.id)
            for npc in near
            for topic in npc.topics
            if holds(topic.when, self.state, self.scenario, self.actor) and not told(self.state, npc.id, topic, self.actor)
        )
        return next(fresh, None)

    def _is_addressed(self, tokens: list[str], npc: str) -> bool:
        """Whether someone's name follows upon the asking itself."""
        behind = (tokens[at + 1 : at + 5] for at, token in enumerate(tokens) if token in ("ask", "question", "tell", "to", "with"))
        names = self.scenario.npcs[npc].names
        return any(mention(words[:size], names) == size for words in behind for size in (1, 2, 3)) or any(
            mention(tokens[:size], names) == size for size in (1, 2, 3)
        )

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


@lru_cache(maxsize=64)
def _asides(scenario: Scenario, hero: str) -> re.Pattern[str]:
    """What a hero of the pack says and does for its own sake, as companions say it: words of theirs, and no deed, whatever they name."""
    own = [spoken for lines in scenario.heroes[hero].says.values() for line in lines for spoken in line.split(ANSWER)]
    shared = [line for kind in ("mind", "hurt", "down", "quote", "moment", "promise", "killing") for line in phrases()[f"pc.{kind}"]]
    told = (".{1,240}?".join(map(re.escape, re.split(r"\{\w+\}", line))) for line in sorted((*own, *shared), key=len, reverse=True))
    return re.compile("|".join(told))


def _is_foreign(text: str) -> bool:
    """Whether it is in a language in which no game is told here; one word tells nothing."""
    tokens = words_of(text)
    if not tokens or any(token in _SINGLE for token in tokens):
        return False
    return language(text) != "en" and (len(tokens) > 1 or not text.isascii())


def _verb_at(plain: Sequence[str]) -> str:
    """The verb with which the words begin, the longest phrase first."""
    phrases = _BY_FIRST_WORD.get(plain[0], ()) if plain else ()
    return next((verb for phrase, verb in phrases if _begins(plain, phrase)), "")


def _begins(plain: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether words begin with a phrase, in whose gaps anything may stand."""
    if not phrase:
        return True
    if phrase[0] == _GAP:
        return any(_begins(plain[skipped:], phrase[1:]) for skipped in range(1, _WIDEST + 1))
    return bool(plain) and plain[0] == phrase[0] and _begins(plain[1:], phrase[1:])


def _touches(tokens: Sequence[str], topic: Topic) -> bool:
    """Whether a telling word of the topic is there, if not all of them."""
    words = {word for text in (topic_name(topic), *topic.words) for word in content(text) if len(word) >= 5}
    return any(alike(token, word) for token in tokens for word in words)


def find_verb(tokens: Sequence[str]) -> str:
    """The first verb that is there, as a phrase or as a word."""
    plain = list(tokens[1:] if tokens[:1] in (["i"], ["we"]) else tokens)
    found = next((verb for start in range(len(plain)) if (verb := _verb_at(plain[start:]))), "")
    return found or next((_SINGLE[stem] for token in plain[:2] if (stem := token.removesuffix("ing")) in _SINGLE), "")
