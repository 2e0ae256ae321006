"""What a player means: free text to intents, by verbs, names, aliases, synonyms, and a little patience with typing.

Nothing here decides what happens. An intent names what is there to be named (whom, where, which thing, which deed of the pack) and keeps
the words that were spoken. Text in which nothing is recognised is still something said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from talekeeper.table.brain import Choice
from talekeeper.table.meaning import oddities, pledges, questions
from talekeeper.table.meaning.secrecy import OPEN, Confidence, confidence
from talekeeper.table.meaning.spelling import SMALL, VERBS, alike, content, mention, speller, words_of
from talekeeper.table.meaning.verbs import KIN, SINGLE, find_verb, is_served, verb_at
from talekeeper.table.rules.conditions import holds
from talekeeper.table.shown.choices import deeds_here, offers, people_here, told, topic_name, ways_here
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import ANSWER, Deed, Npc, Scenario, Topic

_QUOTE = re.compile(r"[“\"]([^”\"]*)[”\"]|(?<!\w)[‘']([^’']{3,}(?:[’'](?=\w)[^’']*)*)[’'](?!\w)")
_CLAUSES = re.compile(r"[.;!?:\n]+|,? (?:and )?then |, and (?=i\b)|, (?=i\b)| and (?=i\b)", re.I)
_JOINT = re.compile(r",? and |, ", re.I)
_QUESTIONS = re.compile(r"[^.!?]*\?")
_COLON = re.compile(r"^([^“”\":.!?]*\b(?:whisper|murmur|say|tell|ask|shout|answer|reply|call)\w*\b[^“”\":.!?]*):\s+(\S.*)$", re.I | re.S)
_TRYING = re.compile(
    r"\b(i|we) (?:(?:will|shall|would|am|are|['’]ll|['’]d|['’]m) )?"
    r"(?:try|attempt|want|wish|decide|intend|plan|begin|start|like|need|going) to (?!know\b)(?=\w)", re.I,
)  # fmt: skip
_MAY_I = re.compile(r"^\s*(?:can|could|may|might|should) (?:i|we) (?=\w)(?!.*\b(?:do|get|have)\b)", re.I)
_ASKING = frozenset({"ask", "talk", "hint", "persuade", "trade", "reveal", "work", "promise", "threaten", "deceive"})
_ALOUD = frozenset(
    {
        "you", "your", "yours", "u", "hello", "hi", "hey", "greetings", "thanks", "thank", "please", "yes", "no", "yeah", "nope", "ok",
        "okay", "sorry", "welcome", "goodbye", "bye", "morning", "evening", "well", "listen",
    }
)  # fmt: skip
_SPOKEN = frozenset({"say", "tell", "answer", "reply", "ask", "nobody", "others", "said", "call"})
_WEAK = frozenset({"say", "wait", "look", "listen"})
_DOINGS = frozenset({"go", "look", "search", "take", "use", "open", "drop", "rest", "wait", "follow", "flee"})
_SAID_TO_SOMEONE = frozenset({"ask", "talk", "give", "promise", "threaten", "deceive", "reveal"})
"""What has “find” in it is then no question where somebody is."""
_MOST_INTENTS = 2
_PROPOSED = re.compile(
    r"^\W*(?:(?:i (?:say|suggest|propose|think|vote)(?: that)?|perhaps|maybe) we(?: should| could)?"
    r"|let(?:['’]?s| us)|(?:shall|should) we)\s+",
    re.I,
)
_MOVING = frozenset({"go", "climb", "sneak", "swim", "follow", "flee", "hide", "wait"})
_IN_SIGHT = frozenset({"attack", "flee", "rest", "play", "way"})
_ANSWERED = frozenset({"ask", "recall", "promise", "keep", "renounce", "persuade", "threaten", "deceive", "insult", "trade", "work"})
_BESIDE = frozenset({"take", "give", "drop", "use", "open", "deed", "steal"})
_AND_GO = "One thing after the other: whisper here, or go there first and whisper then."
_UNSEEN = "That cannot be done unseen: say it without what makes it a secret, or do something else."
_PALMED = re.compile(r"\bpalms?\b(?!.*\b(?:to|into)\b)", re.I)
_SLIPPED = re.compile(r"\b(?:slip|palm|slide)(?:s|es)?\b(?! (?:past|out|away|off|in|by)\b)", re.I)
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
    to: tuple[str, ...] = ()
    """Who is to hear it, and nobody else."""
    secretly: bool = False


def _is_weak(intent: Intent) -> bool:
    """Whether it may be passed over where something else is meant as well: a look, a wait, a step towards someone."""
    if intent.verb == "go":
        return not (intent.place or intent.npc or goal_of(intent.words))
    return intent.verb in _WEAK and not intent.detail


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
        spoken = self._spoken(text)
        if text.strip() and not spoken.strip():
            return [Intent("aside", words=text)]
        chosen = self._chosen(spoken)
        if chosen is not None:
            return [chosen]
        found = self.confidence(text)
        if found.doubt:
            return [Intent("doubt", words=text)]
        if found.manner == "thought":
            return [Intent("thought", words=text)]
        if found.manner == "whisper":
            return [*self._beside(found), self._whispered(found, spoken)]
        meant = self._meanings(spoken)
        return [replace(one, secretly=True) for one in meant] if found.manner == "unseen" else meant

    def confidence(self, text: str) -> Confidence:
        """Whom the words or the deed are for. What the rules offer they keep as secret as the pack wants it."""
        spoken = self._spoken(text)
        if not spoken.strip() or self._chosen(spoken) is not None:
            return OPEN
        found = confidence(self.scenario, self.state, self.actor, self._in_first_person(spoken))
        if found.doubt or found.manner not in ("unseen", "whisper"):
            return found
        if found.manner == "whisper":
            leaves = any(one.verb == "go" and one.place != self.place.id for one in self._meanings(found.beside) if one.place)
            return replace(found, doubt=_AND_GO) if leaves else found
        meant = self._meanings(spoken)
        verbs = {intent.verb for intent in meant}
        if verbs <= _MOVING - {"follow", "hide"} and not any(intent.item for intent in meant):
            return OPEN  # whoever goes along sees it
        return replace(found, doubt=_UNSEEN) if verbs & (_IN_SIGHT | _MOVING - {"hide", "wait"}) else found

    def _spoken(self, text: str) -> str:
        return _asides(self.scenario, self.actor).sub(" ", text)

    def _beside(self, found: Confidence) -> list[Intent]:
        """What is done besides the whispering."""
        return [one for one in self._meanings(found.beside) if one.verb in _BESIDE]

    def _whispered(self, found: Confidence, text: str) -> Intent:
        """Words for some: a secret of one's own, something to which the one who hears it has an answer, or just words."""
        asked = next((one for one in self._meanings(text) if one.verb in _ANSWERED), None) if not found.plain else None
        if asked is not None and found.to == (asked.npc or (asked.hero if asked.verb == "recall" else ""),):
            return replace(asked, secretly=True)
        who = found.to[0]
        if len(found.to) == 1 and "?" in found.words and questions.SAID_BEFORE.search(found.words):
            npc, hero = (who, "") if who in self.scenario.npcs else ("", who)
            return Intent("recall", npc=npc, hero=hero, words=found.words, secretly=True)
        told = _QUESTIONS.sub("", text)  # who asks gives nothing away
        tokens = self._words(told)
        is_own = questions.OWN_SECRET.search(told) or {"secret", "truth"} & set(tokens)
        if (is_own or questions.RETOLD.search(told)) and (secret := self._secret(tokens, told)):
            return Intent("reveal", to=found.to, secret=secret, words=found.words)
        return Intent("whisper", to=found.to, words=found.words)

    def _meanings(self, text: str) -> list[Intent]:
        """What is meant, whoever may know of it."""
        text = _SLIPPED.sub("give", _PALMED.sub("take", text))
        text = _TRYING.sub(r"\1 ", self._in_first_person(text))
        text = pledges.joined(f"I {text[found.end() :].rstrip('? ')}" if (found := _MAY_I.match(text)) else text)
        quotes = [found[1] or found[2] or "" for found in _QUOTE.finditer(text)]
        speech, rest = " ".join(quotes).strip(), _QUOTE.sub(" ", text)
        if not quotes and (colon := _COLON.match(text)):
            rest, speech = colon[1], colon[2].strip()
        if not speech and oddities.is_foreign(rest):
            return [Intent("foreign", npc=self._npc(self._words(text)), words=text)]
        if pledges.is_pledge(speech) and find_verb(self._words(rest)) in ("", "talk"):
            return self._pledged(self._words(text), speech)
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
        about = oddities.about_play(rest) if not speech and questions.QUESTION.search(rest) else ""
        if about:
            return Intent("rules", topic=about, words=rest)
        if find_verb(tokens) in ("", "talk") and oddities.is_insult(said, of_someone=bool(self._npc(tokens))):
            return Intent("insult", npc=self._npc(self._words(f"{rest} {speech}")), hero=self._hero(tokens), words=said)
        if oddities.is_at_a_loss(rest, tokens):
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
            bare = (found[0][:-1], found[0].removesuffix("es"))
            return next((word for word in bare if word.casefold() in SINGLE), found[0])

        return "I " + re.sub(r"\b\w+s\b", verb, text[own.end() :])

    def _asked(self, text: str) -> Intent | None:
        """A question that the rules can answer by themselves: who someone is, and where something is; or one that no verb explains."""
        tokens = self._words(text)
        oneself = next((about for about, words in questions.ONESELF.items() if words.search(text)), "")
        if oneself:
            return Intent(oneself, npc=self._npc(tokens), hero=self._hero(tokens), words=text)
        if questions.SAID_BEFORE.search(text) and ("?" in text or find_verb(tokens) == "ask"):
            asked = self._told_to(tokens)
            return Intent("recall", npc=self._npc(asked), hero=self._hero(asked), words=text)
        of_hero = self._hero(self._told_to(tokens))
        is_open = questions.OPENING.search(text) and not (of_hero and not self._npc(tokens)) and self._topic(tokens, "ask") is None
        if is_open and (first := self._first_topic(tokens)):
            return first
        if questions.WANTED.search(text) and "?" in text and is_served(tokens) and not of_hero:
            return Intent("trade", npc=self._npc(tokens), words=text)
        if questions.TOLD_OF.search(text) and not of_hero and (whom := self._spoken_of(tokens)) and self._topic(tokens, "ask") is None:
            return Intent("about", npc=whom, words=text)
        if questions.WHO_IS.search(text) and (npc := self._npc(tokens)) and self._topic(tokens, "ask") is None:
            return Intent("about", npc=npc, words=text)
        if "?" in text and find_verb(tokens) not in _ASKING:
            topic = self._topic(tokens, "ask")
            if topic is not None:
                return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=text)
            if not questions.WHO.search(text) and not (questions.WHERE.search(text) and (self._npc(tokens) or self._place(tokens))):
                return Intent("wonder", npc=self._npc(tokens), hero=self._hero(tokens), words=text)
        if questions.WHO.search(text):
            return Intent("who", npc=self._npc(tokens), words=text)
        npc, place = self._npc(tokens), self._place(tokens)
        is_asked = questions.WHERE.search(text) and find_verb(tokens) not in _SAID_TO_SOMEONE
        if is_asked and (npc or place) and self._topic(tokens, "") is None:
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
                if verb_at(self._words(clause[joint.end() :])) and find_verb(self._words(clause[begin : joint.start()])):
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
        if verb == "promise" and pledges.gives_word(clause):
            yield from self._pledged(tokens, clause.strip())
            return
        meant = self._meant(tokens, verb, clause.strip(), topic)
        if meant is not None:
            yield meant

    def _meant(self, tokens: list[str], verb: str, clause: str, topic: tuple[Npc, Topic] | None) -> Intent | None:
        item, whom = self._item(tokens), self._told_to(tokens) if verb in ("talk", "whisper", "ask", "promise") else tokens
        npc, hero = self._npc(whom), self._hero(whom)
        place, detail = self._place(tokens), self._detail(tokens)
        if verb in ("ask", "talk", "search", "") and topic is not None:
            return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=clause)
        if verb == "promise":
            return Intent("wonder" if questions.QUESTION.search(clause) else "say", npc=npc, hero=hero, words=clause)
        retold = verb in ("talk", "whisper") and hero and questions.RETOLD.search(clause)
        if verb == "reveal" or retold or (verb in ("talk", "whisper") and {"secret", "truth"} & set(tokens)):
            return Intent("reveal", npc="" if retold else npc, hero=hero, secret=self._secret(tokens, clause), words=clause)
        if verb == "ask" and not npc and hero:
            return Intent("say", hero=hero, words=clause)
        if verb == "go" and npc and not place and npc in {one.id for one in self.people}:
            return Intent("talk", npc=npc, words=clause)
        if not verb and questions.QUESTION.search(clause) and len(tokens) > 2:
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

    def _pledged(self, tokens: list[str], words: str) -> list[Intent]:
        """A word that is given: to each of those who are named behind it, else to whoever is named at all."""
        names = {who: self._names_of(who) for who in (*(npc.id for npc in self.people), *self.state.party) if who != self.actor}
        to = pledges.given_to(tokens, names)
        people = [who for who in dict.fromkeys(to) if who in self.scenario.npcs]
        if people:
            return [Intent("promise", npc=who, words=words) for who in people]
        whom = self._told_to(tokens)
        return [Intent("promise", npc="" if to else self._npc(whom), hero=to[0] if to else self._hero(whom), words=words)]

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
            return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=speech, asks=bool(questions.QUESTION.search(speech)))
        if not tokens:
            return Intent("none")
        if questions.QUESTION.search(speech):
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


def _touches(tokens: Sequence[str], topic: Topic) -> bool:
    """Whether a telling word of the topic is there, if not all of them."""
    words = {word for text in (topic_name(topic), *topic.words) for word in content(text) if len(word) >= 5}
    return any(alike(token, word) for token in tokens for word in words)
