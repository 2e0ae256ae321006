"""What a player means: free text to intents, by verbs, names, aliases, synonyms, and a little patience with typing.

Nothing here decides what happens. An intent names what is there to be named (whom, where, which thing, which deed of the pack) and keeps
the words that were spoken. Text in which nothing is recognised is still something said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from talekeeper.table.brain import Choice
from talekeeper.table.meaning import address, oddities, pledges, questions
from talekeeper.table.meaning.address import Call
from talekeeper.table.meaning.naming import ADDRESSING, Naming
from talekeeper.table.meaning.secrecy import OPEN, Confidence, confidence
from talekeeper.table.meaning.spelling import SMALL, VERBS, alike, content, mention, speller, words_of
from talekeeper.table.meaning.verbs import SINGLE, find_verb, is_served, verb_at
from talekeeper.table.rules.conditions import holds
from talekeeper.table.shown.choices import offers, told, topic_name
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import ANSWER, Npc, Scenario, Topic

_CLAUSES = re.compile(r"[.;!?:\n]+|,? (?:and )?then |, and (?=i\b)|, (?=i\b)| and (?=i\b)", re.I)
_JOINT = re.compile(r",? and |, ", re.I)
_QUESTIONS = re.compile(r"[^.!?]*\?")
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
_REMEMBERED = 40
"""So many words back a “him” may be named."""
_MOST_INTENTS = 2
_PROPOSED = re.compile(
    r"^\W*(?:(?:i (?:say|suggest|propose|think|vote)(?: that)?|perhaps|maybe) we(?: should| could)?"
    r"|let(?:['’]?s| us)|(?:shall|should) we)\s+",
    re.I,
)
_MOVING = frozenset({"go", "climb", "sneak", "swim", "follow", "flee", "hide", "wait"})
_IN_SIGHT = frozenset({"attack", "flee", "rest", "play", "way"})
_ANSWERED = frozenset({"ask", "recall", "promise", "keep", "renounce", "persuade", "threaten", "deceive", "insult", "trade", "work"})
_HEROES_TOO = frozenset({"recall", "promise", "keep", "renounce"})
"""Of these even one of the party may be asked."""
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
    """Whether it may be passed over where something else is meant as well: a look, a wait, a step towards someone, words to nobody."""
    if intent.verb == "go":
        return not (intent.place or intent.npc or goal_of(intent.words))
    return intent.verb in _WEAK and not intent.detail and not (intent.verb == "say" and intent.hero)


def goal_of(words: str) -> list[str]:
    """What is left of a wish to go somewhere without the going: words for a goal, if there are any."""
    return [word for word in content(words) if word not in _GOING]


def _first_few(intents: list[Intent]) -> list[Intent]:
    """Not too much at once. A word that is given to many is given once."""
    kept = intents[:_MOST_INTENTS]
    return [*kept, *(one for one in intents[_MOST_INTENTS:] if one.verb == "promise" and one.words == kept[-1].words)]


# -- understanding -----------------------------------------------------------------------------------------------------


class Listener(Naming):
    """Understands what one player says, where they are."""

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
        if asked is not None and found.to == (asked.npc or (asked.hero if asked.verb in _HEROES_TOO else ""),):
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
        speech, rest = address.parts(text)
        if not speech and oddities.is_foreign(rest):
            return [Intent("foreign", npc=self._npc(self._words(text)), words=text)]
        if pledges.is_pledge(speech) and find_verb(self._words(rest)) in ("", "talk"):
            tokens = self._words(rest)
            return self._pledged(self._words(text), speech, self._to(tokens, find_verb(tokens), self._called(speech) or self._called(rest)))
        odd = self._odd(rest, speech)
        if odd is not None:
            return [odd]
        asked = self._asked(rest) if not speech else None
        if asked is not None:
            return [asked]
        called = self._called(speech)
        meant = [intent for sentence in address.sentences(rest) for intent in self._sentence(sentence, called, speech)]
        meant = [replace(intent, words=speech) if speech and intent.verb not in _DOINGS else intent for intent in meant]
        meant = [one for at, one in enumerate(meant) if not one.deed or one.deed not in {before.deed for before in meant[:at]}]
        away = [intent for intent in meant if intent.verb == "flee"] if self.ways else []
        strong = away or [intent for intent in meant if not _is_weak(intent)]
        strong = strong or ([intent for intent in meant if intent.verb == "say"] if self._is_call(rest) else meant)
        return _first_few(strong) or [self._speech(text, speech, rest)]

    def _odd(self, rest: str, speech: str) -> Intent | None:
        """What no character would say or do: a question about the game, an insult to anyone near, a noise."""
        said, tokens = speech or rest, self._words(rest)
        about = oddities.about_play(rest) if not speech and questions.QUESTION.search(rest) else ""
        if about:
            return Intent("rules", topic=about, words=rest)
        if find_verb(tokens) in ("", "talk") and oddities.is_insult(said, of_someone=bool(self._npc(tokens))):
            return self._insult(self._words(f"{rest} {speech}"), self._to(tokens, "talk", self._called(speech or rest)), said)
        if oddities.is_at_a_loss(rest, tokens):
            return Intent("hint")
        return None if speech or self._means_something(tokens) else Intent("unclear", words=rest)

    def _insult(self, tokens: list[str], to: Sequence[str] | None, said: str) -> Intent:
        """A bad name for whoever hears it; behind the back of somebody it is only said to those who do."""
        npc, hero = self._npc(tokens), self._pair(to, tokens)[1]
        return Intent("insult", npc=npc if not to or npc in {one.id for one in self.people} else "", hero=hero, words=said)

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
        to = self._to(tokens, find_verb(tokens), self._called(text))
        npc, hero = self._pair(to, self._told_to(tokens))
        if questions.SAID_BEFORE.search(text) and ("?" in text or find_verb(tokens) == "ask"):
            return Intent("recall", npc=npc, hero=hero, words=text)
        if to and not npc:  # nobody answers for one of the party
            return Intent("wonder", hero=hero, words=text) if "?" in text else None
        return self._asked_of(text, tokens, to, of_hero=bool(hero))

    def _asked_of(self, text: str, tokens: list[str], to: Sequence[str] | None, *, of_hero: bool) -> Intent | None:
        topic = self._topic(tokens, "ask", to)
        is_open = questions.OPENING.search(text) and not (of_hero and not self._npc(tokens)) and topic is None
        if is_open and (first := self._first_topic(tokens)):
            return first
        if questions.WANTED.search(text) and "?" in text and is_served(tokens) and not of_hero:
            return Intent("trade", npc=self._npc(tokens), words=text)
        if questions.TOLD_OF.search(text) and not of_hero and (whom := self._spoken_of(tokens)) and topic is None:
            return Intent("about", npc=whom, words=text)
        if questions.WHO_IS.search(text) and (npc := self._npc(tokens)) and topic is None:
            return Intent("about", npc=npc, words=text)
        if "?" in text and find_verb(tokens) not in _ASKING:
            if topic is not None:
                return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=text)
            if not questions.WHO.search(text) and not (questions.WHERE.search(text) and (self._npc(tokens) or self._place(tokens))):
                return Intent("wonder", npc=self._npc(tokens), hero=self._hero(tokens), words=text)
        if questions.WHO.search(text):
            return Intent("who", npc=self._npc(tokens), words=text)
        npc, place = self._npc(tokens), self._place(tokens)
        is_asked = questions.WHERE.search(text) and find_verb(tokens) not in _SAID_TO_SOMEONE
        if is_asked and (npc or place) and self._topic(tokens, "", to) is None:
            here = npc in {one.id for one in self.people}
            return Intent("talk" if here else "where", npc=npc, place="" if npc else place, words=text)
        return None

    def _offered(self, choice: Choice) -> Intent:
        if choice.verb in ("deed", "way"):
            return Intent(choice.verb, deed=choice.about[0])
        return next(iter(self._clause(choice.text, Call([], ""), [])), Intent("none", words=choice.text))

    def _sentence(self, sentence: str, called: Sequence[str], speech: str) -> Iterator[Intent]:
        """What a sentence means, clause by clause; in quotation marks something may be said beside it, to those who are called there."""
        call = address.called(sentence, self._words(sentence), self.names)
        before: list[str] = []
        for clause in self._clauses(call.rest or sentence):
            yield from self._clause(clause, call._replace(to=called or call.to), before, speech)
            before = [*before, *self._words(clause)][-_REMEMBERED:]

    def _clauses(self, text: str) -> Iterator[str]:
        """What is done one after the other: sentences, and what “and” joins where another verb follows it."""
        for clause in _CLAUSES.split(text):
            begin = 0
            for joint in _JOINT.finditer(clause):
                if verb_at(self._words(clause[joint.end() :])) and find_verb(self._words(clause[begin : joint.start()])):
                    yield clause[begin : joint.start()]
                    begin = joint.end()
            yield clause[begin:]

    def _clause(self, clause: str, call: Call, before: list[str], speech: str = "") -> Iterator[Intent]:
        """What a clause means. `call`: who is called by name beside it; `before`: the words before it, where a “him” may be named."""
        clause = _PROPOSED.sub("we ", clause)
        tokens = self._words(clause)
        if not tokens:
            return
        verb = find_verb(tokens)
        to = self._to(tokens, verb, call.to, before) if verb in ADDRESSING else None
        named = [*tokens, *call.names]
        deed = self._deed(named, verb) if not self._is_for_heroes(to) else None
        topic = self._topic([*tokens, *(self._words(speech) if verb == "ask" else ())], verb, to)
        if deed is not None and (topic is None or verb not in ("ask", "talk")):
            yield Intent("way" if deed.id in self.ways else "deed", npc=deed.npc, deed=deed.id, words=clause.strip())
            return
        if verb == "promise" and pledges.gives_word(clause):
            yield from self._pledged(tokens, clause.strip(), to)
            return
        meant = self._meant(tokens if verb in ADDRESSING else named, verb, clause.strip(), topic, to)
        if meant is not None:
            yield meant

    def _meant(self, tokens: list[str], verb: str, clause: str, topic: tuple[Npc, Topic] | None, to: Sequence[str] | None) -> Intent | None:
        item = self._item(tokens)
        npc, hero = self._pair(to, self._told_to(tokens) if verb in ("talk", "whisper", "ask", "promise") else tokens)
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

    def _pledged(self, tokens: list[str], words: str, to: Sequence[str] | None) -> list[Intent]:
        """A word that is given: to each of those who are named behind it, else to whoever is spoken to."""
        given = pledges.given_to(tokens, self.names) or to or [one for one in self._pair(to, self._told_to(tokens)) if one][:1] or [""]
        npcs = self.scenario.npcs
        return [Intent("promise", npc=who if who in npcs else "", hero="" if who in npcs else who, words=words) for who in given]

    def _wordless(self, clause: str, npc: str, place: str, item: str) -> Intent | None:
        """Without a verb a bare name still says something: `the mill`, `Oda`."""
        named = [name for id in (npc, place, item) if id for name in self._names_of(id)]
        if not {word.removesuffix("'s") for word in content(clause)} <= {word for name in named for word in words_of(name)}:
            return None
        if place and place != self.place.id:
            return Intent("go", place=place, words=clause)
        return Intent("talk", npc=npc, words=clause) if npc else Intent("look", item=item, words=clause) if item else None

    def _speech(self, text: str, speech: str, rest: str) -> Intent:
        tokens, around = self._words(text), self._words(rest)
        said = speech or rest
        to = self._to(around, find_verb(around), self._called(speech) or self._called(rest))
        npc, hero = self._pair(to, tokens)
        topic = self._topic(self._words(said), "talk", to)
        if topic is not None:
            return Intent("ask", npc=topic[0].id, topic=topic[1].id, words=said, asks=bool(questions.QUESTION.search(said)))
        if not tokens:
            return Intent("none")
        if questions.QUESTION.search(said):
            return Intent("wonder", npc=npc, hero=hero, words=said.strip())
        aloud = rest != text or npc or hero or _ALOUD & set(tokens)
        return Intent("say" if aloud else "none", npc=npc, hero=hero, words=said.strip())

    def _topic(self, tokens: list[str], verb: str, to: Sequence[str] | None) -> tuple[Npc, Topic] | None:
        """What an NPC here could be asked, if its words are there: of the one who is spoken to, or named, or of anyone."""
        if self._is_for_heroes(to):
            return None
        asked = self._pair(to or None, tokens)[0]
        if asked and not to and asked not in {npc.id for npc in self.people}:
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
