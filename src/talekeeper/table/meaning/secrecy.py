"""Whom a line is for: how a player says that words or a deed are not for everyone who stands by.

A line is open, a whisper to some, a thought, or a deed that nobody is to see. What says so is read from the telling and never from what
is told: `I tell Ibbi what Osric whispered` is no whisper, and neither is a question about one. Names count here as they are spelt, since
a guess would tell a secret to the wrong one. Where it stays unclear who is meant, there is a doubt for the player to clear up, and until
then nobody hears it. The wordings are in `manners`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from talekeeper.table.meaning import manners, several
from talekeeper.table.meaning.manners import SAID
from talekeeper.table.meaning.spelling import speller
from talekeeper.table.shown.prose import called, listed
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Hero, Npc, Scenario

Manner = Literal["open", "whisper", "thought", "unseen"]


@dataclass(frozen=True, slots=True)
class Confidence:
    """Whom a line is for. `to`: those besides the one whose line it is, unless it is open. `doubt`: what to ask before it can be told."""

    manner: Manner = "open"
    to: tuple[str, ...] = ()
    words: str = ""
    """What is said, where it can be told from the saying."""
    beside: str = ""
    """What stands beside the saying, and may be a deed of its own."""
    doubt: str = ""
    plain: bool = True
    """Nothing but saying: no promise, no question that somebody may answer."""


OPEN = Confidence()


class _Token(NamedTuple):
    mark: str
    """The word as it is matched."""
    begin: int
    end: int


_TOKEN = re.compile(r"(?<!\d)[“\"][^”\"]*[”\"]?|(?<!\w)[‘'][^’']{3,}(?:[’'](?=\w)[^’']*)*[’'](?!\w)|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]")
_ARTICLE = re.compile(r"^(?:the|an?|my|our) ", re.I)
_NEAR = 80
"""So many characters before a word can say whose it is."""
_READ = 400
"""Of a longer line so many words are read; what may be a secret behind them is asked for alone."""
_BREATH = re.compile(r"\bunder (?:my|his|her|their) breath\b", re.I)
_BEFORE_WORDS = frozenset({"that", ",", "*", ")", "]", "!", "and", ".", "tell", "say", "know", "alone", "only", "close", "–", "—"})
_ONE_BY_ONE = "One secret at a time: say it in two lines, or somebody would get to know what is not for them."
_IN_ENGLISH = "That looks like something that is not for everyone. Say it in English, for example: I whisper to {whom} that …"


def confidence(scenario: Scenario, state: GameState, actor: str, line: str) -> Confidence:
    """Whom a line of somebody's is for, where they are."""
    try:
        return _Reading(scenario, state, actor, line).found()
    except _Doubt as doubt:
        return Confidence("whisper", doubt=str(doubt))


class _Doubt(Exception):
    """What to ask."""


class _Reading:
    """One line, as it is matched: what has been understood of it is taken out of it."""

    def __init__(self, scenario: Scenario, state: GameState, actor: str, line: str) -> None:
        self.scenario, self.state, self.actor, self.line = scenario, state, actor, line
        self.here = [one for one in state.here(state.where[actor]) if one != actor]
        self.tokens = list(islice(self._tokens(), _READ))
        rest = line[self.tokens[-1].end :] if len(self.tokens) == _READ else ""
        if manners.MAY_HIDE.search(rest):
            raise _Doubt(_ONE_BY_ONE)
        self.called = self._called()
        self.kept_from: set[str] = set()
        self.kept_from_some: set[str] = set()
        """In what words: “him”."""
        self.asked: set[str] = set()
        """Of whom something is asked beforehand."""
        self.is_kept_late = False
        """What says from whom it is kept stands in what is told, or behind it."""
        self.let_in: list[str] = []

    def found(self) -> Confidence:
        """Whom the line is for. Raises where there is more in it than one confidence: some would get to know what is kept from them."""
        self._without_questions()
        if manners.WHISPER_ABROAD.search(self.line.casefold()) and not re.search(r"\bI\b", self.line):
            raise _Doubt(_IN_ENGLISH.format(whom=self._call(self.here[0]) if self.here else "Ibbi"))
        is_secret_later = several.is_secret_later(self.text, self._verb, self._head)
        found = self._found()
        is_for_some = found.manner in ("whisper", "thought")
        if is_secret_later or (found.manner != "open" and self.asked - set(found.to)) or (is_for_some and self._does_more(found.to)):
            raise _Doubt(_ONE_BY_ONE)
        return found

    def _found(self) -> Confidence:
        if pauses := manners.PAUSES.search(self.text):
            self._cut(pauses)
        is_kept = self._without_clauses()
        if not any(token.mark.lstrip("@").isalpha() for token in self.tokens) or several.is_question(self.text):
            return OPEN
        if self._is_thought():
            return Confidence("thought", words=self.line)
        ways = self._without_ways()
        told = self._telling(ways, is_kept=is_kept or bool(ways))
        if told is not None:
            return told
        if slips := manners.SLIPS.search(self.text):
            return self._slipped(slips.end())
        is_of_others = " i " not in self.text[: self._head + 1]
        self.called = self.called or self._called() or (self._called_last() if is_kept and is_of_others else [])
        if (is_kept or ways) and (SAID in self.text or (self.called and (is_of_others or is_kept)) or (self.let_in and " : " in self.text)):
            if self.called and SAID not in self.text and several.does_before(self.text[: self._head]):
                raise _Doubt(_ONE_BY_ONE)
            return self._told(0, 0)
        if "low" in ways and (" : " in self.text or any(map(manners.SAYS.fullmatch, self.text[: self._head].split()))):
            raise _Doubt(self._to_whom())
        if is_kept or "secret" in ways or manners.CONCEALS.search(self.text):
            return self._unseen()
        if manners.HUSHED.search(self.text):
            raise _Doubt(self._to_whom())
        return OPEN

    def _telling(self, ways: set[str], *, is_kept: bool) -> Confidence | None:
        """Words for some, if it is that: a note, a whisper, somebody taken aside, or whatever is said in such a way."""
        if note := manners.NOTE.search(self.text):
            return self._told(note.start(), note.end(), given=note[1])
        if whispers := self._whispers():
            is_mixed = "deed" in ways or (is_kept and several.does_before(self.text[: whispers.start(1)]))
            if is_mixed or self._tells_others_too(whispers.end()):
                raise _Doubt(_ONE_BY_ONE)
            return self._told(whispers.start(1), whispers.end(1))
        if aside := manners.ASIDE.search(self.text):
            return self._told(aside.start(), aside.end(), given=aside[1] or aside[2] or aside[3])
        head = self.text[: self._head + 1]
        if only := manners.ONLY.search(head):
            self._check_is_no_name(only.start(1))
        speaks = manners.SPEAKS.search(self.text)
        if speaks and (is_kept or manners.CLOSE.search(head)):
            if "doing" in ways or several.does_before(self.text[: speaks.start(1)]):
                raise _Doubt(_ONE_BY_ONE)
            return self._told(speaks.start(1), speaks.end(1), plain=bool(manners.SAYING.fullmatch(speaks[1])))
        return None

    # -- the line, as it is matched

    def _tokens(self) -> Iterator[_Token]:
        found = list(_TOKEN.finditer(self.line))
        words, names = [one[0].casefold().replace("’", "'") for one in found], self._names()
        at = 0
        while at < len(words):
            size, who, is_owner = self._named(words, at, names)
            begin, end = found[at].start(), found[at + size - 1].end()
            if who:
                yield _Token("i" if who == self.actor else f"@{who}", begin, end)
                yield from [_Token("'s", end, end)] * is_owner
            else:
                yield _Token(self._plain(words[at]), begin, end)
            at += size

    @staticmethod
    def _named(words: list[str], at: int, names: Mapping[str, str]) -> tuple[int, str, bool]:
        """How many words the longest name has that begins there, whose it is, and whether it is in the possessive."""
        for size in range(min(5, len(words) - at), 0, -1):
            name = " ".join(words[at : at + size])
            for form, is_owner in ((name, False), (name.removesuffix("'s"), True)):
                if form in names:
                    return size, names[form], is_owner
        return 1, "", False

    def _names(self) -> dict[str, str]:
        """Everybody's names; of two who share one, the one who is here. A name that two share who are here is nobody's."""
        people: list[Npc | Hero] = [*self.scenario.npcs.values(), *(self.scenario.heroes[one] for one in self.state.party)]
        found: dict[str, str] = {}
        for person in sorted(people, key=lambda one: one.id in (*self.here, self.actor)):
            calling = (person.calling,) if person.id in self.here and isinstance(person, Npc) else ()
            for name in (*person.names, *calling):
                plain = _ARTICLE.sub("", name.casefold().replace("’", "'"))
                is_shared = found.get(plain, person.id) != person.id and found[plain] in self.here
                found[plain] = "" if is_shared else person.id
        return {name: who for name, who in found.items() if name and who}

    def _plain(self, word: str) -> str:
        if word[0] in "“\"‘'" and len(word) > 1:
            return SAID
        if len(word) > 5 and not speller(self.scenario).knows(word):
            near = [one for one in manners.MISSPELT if abs(len(one) - len(word)) <= 1]
            return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=0.85)), word)
        return word

    @property
    def text(self) -> str:
        return f" {' '.join(token.mark for token in self.tokens)} "

    def _number(self, offset: int) -> int:
        """How many tokens stand before an offset of the text at which there is a blank."""
        return self.text.count(" ", 0, offset)

    def _raw(self, begin: int, end: int) -> str:
        """What was typed between two offsets, at which words begin and end."""
        tokens = self.tokens[self._number(begin) - 1 : self._number(end)]
        return self.line[tokens[0].begin : tokens[-1].end]

    @property
    def _verb(self) -> int:
        """Where the saying begins; 0 where nothing is said."""
        found = (manners.MINE.search(self.text), manners.SPEAKS.search(self.text))
        return min((one.start(1) for one in found if one), default=0)

    @property
    def _head(self) -> int:
        """Where the telling ends, and what is told begins."""
        ends = [one.start() for one in manners.TELLING.finditer(self.text, self._verb) if not self._is_no_end(one)]
        colon = self.text.find(" : ")
        return min([*ends, *([colon] if colon >= 0 else [])], default=len(self.text))

    def _is_no_end(self, telling: re.Match[str]) -> bool:
        """Whether more of the telling may follow: behind what stands in quotation marks, and behind “so that”."""
        return telling[0].strip() == SAID or self.text.startswith(" so ", telling.start() - 3)

    # -- how it is said or done

    def _without_clauses(self) -> bool:
        """Takes out what says from whom it is kept; whether there was anything."""
        is_kept = False
        for clause in manners.CLAUSES:
            while (one := clause.pattern.search(self.text)) and (one.start() <= self._head or not clause.early):
                people = re.findall(r"@(\w+)", " ".join(filter(None, one.groups())))
                if clause.lets_in:
                    self.let_in += people
                else:
                    self.kept_from |= set(people)
                    self.kept_from_some |= {manners.PRONOUNS[word] for word in one[0].split() if word in manners.PRONOUNS}
                    self.is_kept_late |= one.start() > self._head
                is_kept = True
                self._cut(one)
        hides = manners.HIDES.search(self.text[: self._head + 1])
        self.kept_from |= set(re.findall(r"@(\w+)", hides[1])) if hides else set()
        return is_kept or hides is not None

    def _without_ways(self) -> set[str]:
        """Takes out how it is said or done: in a “low” voice, in “secret”, and whether that is a “deed” beside what is said, one in so
        many words: “doing”."""
        found = set[str]()
        while way := next(filter(self._is_way, manners.WAYS.finditer(self.text)), None):
            behind = self.text[way.end() :]
            found |= {"low"} if way[1] else {"secret"} if manners.SAID_SO.match(behind) else {"secret", "deed"}
            if "deed" in found and not way[1] and not self.text[: way.start()].endswith(" to"):
                found |= {"doing"} if several.is_done_next(behind) else set()
            self._cut(way)
        return found

    def _is_way(self, way: re.Match[str]) -> bool:
        """Whether it belongs to the telling: it stands before what is told, or at the very end."""
        return not self._verb or way.start() < self._head or not self.text[way.end() :].strip(" .!)*")

    def _cut(self, found: re.Match[str]) -> None:
        del self.tokens[self._number(found.start()) : self._number(found.end())]

    def _is_thought(self) -> bool:
        thought = manners.THINKS.search(self.text)
        if thought is None or thought.start() >= self._head or manners.KEEPS.search(self.text):
            return False
        if manners.BEFORE_THOUGHT.search(self.text[: thought.end()]):
            raise _Doubt(_ONE_BY_ONE)
        return True

    def _whispers(self) -> re.Match[str] | None:
        """One's own whisper. Raises where there is one, and it is not plain whose."""
        found = next((one for one in manners.MINE.finditer(self.text) if not self._is_others(one.start(1))), None)
        if found is not None and found.start(1) > self._head:
            if found[1] == "whispered" and not self.text[: found.start(1)].endswith(" i "):
                return None  # `I tell Ibbi that Osric came and whispered`
            raise _Doubt(_ONE_BY_ONE)
        if found is not None:
            return found
        word = re.search(r"\bwhisper(?:ing|ed)?(?= )", self.text[: self._head])
        if word and not self._is_others(word.start()):
            raise _Doubt(self._to_whom())
        return None

    def _is_others(self, offset: int) -> bool:
        return manners.OTHERS.search(self.text[max(0, offset - _NEAR) : offset]) is not None

    def _tells_others_too(self, end: int) -> bool:
        """Whether there is a second whisper behind the first."""
        again = any(not self._is_others(one.start(1)) for one in manners.MINE.finditer(self.text, end))
        return again or manners.AND_TO.search(self.text, end if self.text.count(SAID) > 1 else self._head) is not None

    # -- whether there is more in it than one confidence

    def _without_questions(self) -> None:
        """Takes out the questions and cries that go before what is meant: `Is it safe? I whisper to Ibbi: …`"""
        while (end := manners.SENTENCE.search(self.text)) and several.is_question(self.text[: end.end() + 1]):
            if " secret " in self.text[: end.start() + 1]:
                return  # `Can you keep a secret?`
            if not any(token.mark.isalpha() or token.mark == SAID for token in self.tokens[self._number(end.end()) :]):
                return
            asked = manners.ASKED_OF.search(self.text[: end.end() + 1])
            self.asked |= set(re.findall(r"@(\w+)", asked[0])) if asked else set()
            del self.tokens[: self._number(end.end())]

    def _does_more(self, to: tuple[str, ...]) -> bool:
        """Whether something is done, or told to others, besides what is told or thought."""
        thought, other = manners.THINKS.search(self.text), manners.NOTE.search(self.text) or manners.ASIDE.search(self.text)
        begin = thought.end() - 1 if thought and not to else self._verb or (other.end() if other else self._head)
        mine = manners.MINE.search(self.text)
        return several.tells_others(self.text, mine.start(1) if mine else begin, to) or several.does_more(
            self.text, begin, self._head, to, is_kept_late=self.is_kept_late
        )

    # -- to whom

    def _told(self, begin: int, end: int, *, given: str | None = None, plain: bool = True) -> Confidence:
        """Words for some, and for nobody else."""
        found, after = (self._people(given), end) if given else self._addressed(begin, end)
        if not found and _BREATH.search(self.line):
            return Confidence("thought", words=self.line)
        to = self._checked(found or self.let_in or self._lead_in(begin) or self.called or self._called_in_quote())
        return Confidence("whisper", to, self._words(after), self._beside(begin), plain=plain)

    def _slipped(self, end: int) -> Confidence:
        owner = re.search(r" (?:to|into) (@\w+) 's ", self.text[end - 1 :])
        return Confidence("unseen", self._checked(self._people(owner[1]) if owner else self._addressed(end - 1, end - 1)[0]))

    def _unseen(self) -> Confidence:
        """A deed that nobody is to see, but for those whom it is done with."""
        handed = manners.HANDS.search(self.text)
        return Confidence("unseen", self._checked(self._people(handed[1] or handed[2])) if handed else ())

    def _checked(self, to: Iterable[str]) -> tuple[str, ...]:
        """Those to whom it is told, if they are there, and it is not kept from them."""
        for one in to:
            if one in self.kept_from or self._is_meant_by_pronoun(one, to):
                raise _Doubt(f"Is {self._call(one)} to know of it, or not?")
            if one not in self.here:
                typed = next(self.line[token.begin : token.end] for token in self.tokens if token.mark == f"@{one}")
                raise _Doubt(self._not_here(typed.removesuffix("'s").removesuffix("’s")))
        if not to:
            raise _Doubt(self._to_whom())
        return tuple(dict.fromkeys(to))

    def _is_meant_by_pronoun(self, who: str, to: Iterable[str]) -> bool:
        """Whether it is kept from “him”, and there is no other whom that can mean."""
        is_so = self._pronoun(who)
        named = {token.mark[1:] for token in self.tokens if token.mark.startswith("@")} | self.kept_from
        return is_so in self.kept_from_some and not any(self._pronoun(one) == is_so for one in named - set(to))

    def _addressed(self, begin: int, end: int) -> tuple[list[str], int]:
        """To whom it is said behind the saying, and where that ends."""
        rest = self.text[end:]
        if ear := manners.TO_EAR.match(rest):
            return self._people(ear[1] or ear[2]), end + ear.end()
        if group := manners.TO_GROUP.match(rest):
            return self._all(), end + group.end()
        if named := manners.TO_NAMED.match(rest):
            return self._listed(named[1], rest[named.end() :]), end + named.end()
        them = manners.TO_THEM.match(rest)
        if them and (them[1] or them[2] != "her" or not them[3] or them[3] in manners.ENDS):
            return self._lead_in(begin) or (self.called if them[2] == "you" else self._people(them[2])), end + them.end()
        if unknown := manners.TO_UNKNOWN.match(rest):
            called = _ARTICLE.sub("", self._raw(end + unknown.start(1), end + unknown.end(1) - 1))
            raise _Doubt(self._to_whom() if re.match(rf"(?:{manners.ANYONE}|me|i)\b", unknown[1]) else self._not_here(called))
        if word := manners.TO_WORD.match(rest):
            self._check_is_no_name(end + word.start(1))
        return self._behind(end)

    def _behind(self, end: int) -> tuple[list[str], int]:
        """To whom, where that stands behind what is said: `I whisper Osric's secret to Ibbi`, `I whisper about Osric to Ibbi`."""
        about = manners.ABOUT.match(self.text, end)
        head = self.text[about.end() :] if about else self.text[end : max(self._head, end) + 1]
        found = list(re.finditer(rf" (?:to|with) ({manners.LIST})(?= )", head))
        if len({one[1] for one in found}) > 1 or (about and found and found[0].start() > 0):
            raise _Doubt(self._to_whom())
        return (self._people(found[0][1]), len(self.text)) if found else ([], end)

    def _listed(self, names: str, behind: str) -> list[str]:
        """Those of a list. Raises where it may end earlier than it seems to: `I whisper to Ibbi, Osric and Marlo are spies`."""
        following = behind.split(" ")[1] if behind else ""
        is_sure = names.count("@") == 1 or following in manners.ENDS or following.endswith("ly")
        if not is_sure or manners.OR_WHO.match(behind):
            raise _Doubt(self._to_whom())
        more = manners.AND_MORE.match(behind)
        if more and more[1] not in manners.PRONOUNS:
            raise _Doubt(self._not_here(more[1].capitalize()))
        return [*self._people(names), *(self._people(more[1]) if more else ())]

    def _lead_in(self, begin: int) -> list[str]:
        """Whom one turned to before one spoke: `I lean over to Ibbi and whisper that …`"""
        found = manners.TOWARDS.findall(self.text[: begin + 1])
        return self._people(found[-1]) if found else []

    def _called(self) -> list[str]:
        """Whoever is called by name at the very beginning: `Ibbi, between you and me, …`"""
        found = re.match(rf" (?:[(*] )?(?:to )?({manners.LIST}) [,:)*] ", self.text)
        return self._people(found[1]) if found else []

    def _called_last(self) -> list[str]:
        """Whoever is called by name at the end: `That stays between us, Osric.`"""
        found = re.search(rf"(?:^| ,) ({manners.LIST}) [.!?]", self.text)
        return self._people(found[1]) if found else []

    def _called_in_quote(self) -> list[str]:
        """Whoever is called by name at the very beginning of what is said: `“Osric, he lies,” I whisper.`"""
        said = next((self.line[one.begin : one.end] for one in self.tokens if one.mark == SAID), "")
        said = said.strip("“”\"‘’' ").casefold()
        called = (who for name, who in self._names().items() if re.match(rf"{re.escape(name)}[,!:.—–]", said))
        return [who for who in called if who != self.actor][:1]

    def _people(self, names: str) -> list[str]:
        """Those who are named, or the only one who can be meant."""
        if named := re.findall(r"@(\w+)", names):
            return named
        is_so = manners.PRONOUNS.get(names)
        before = self.text.partition(f" {names} ")[0]
        named_before = re.findall(r"@(\w+)(?! 's)", before)
        spoken_of = {one for one in named_before if self._pronoun(one) == is_so}
        fits = spoken_of or {one for one in self.here if self._pronoun(one) == is_so}
        if len(fits) != 1 or (named_before and named_before[-1] not in fits):
            raise _Doubt(self._to_whom())
        return list(fits)

    def _all(self) -> list[str]:
        """All of the party who are here, but for those from whom it is kept."""
        return [one for one in self.here if one in self.state.party and one not in self.kept_from]

    def _pronoun(self, who: str) -> str:
        person = self.scenario.person(who)
        return person.pronouns if person is not None else ""

    # -- what is said, and what is asked

    def _words(self, after: int) -> str:
        """What is said, without the saying; the whole line where the two cannot be told apart."""
        quotes = [self.line[one.begin : one.end].strip("“”\"‘’'") for one in self.tokens if one.mark == SAID]
        behind = self.line.partition(":")[2].strip()
        if quotes or behind:
            return " ".join(quotes).strip(" ,") or behind
        rest = self.tokens[self._number(after) :]
        while len(rest) > 1 and (rest[0].mark in _BEFORE_WORDS or rest[0].mark in manners.PRONOUNS):
            rest = rest[1:]
        return self.line[rest[0].begin :].strip() if len(rest) > 1 else self.line.strip()

    def _beside(self, begin: int) -> str:
        """The line without what is said, or as far as the saying."""
        is_quoted = any(one.mark == SAID for one in self.tokens)
        kept = self.tokens if is_quoted else self.tokens[: max(self._number(begin) - 1, 0)]
        return " ".join(self.line[one.begin : one.end] for one in kept if one.mark != SAID)

    def _check_is_no_name(self, offset: int) -> None:
        """Raises where the word at an offset looks like a name, and is nobody's."""
        token = self.tokens[self._number(offset) - 1]
        word = self.line[token.begin : token.end]
        if word.istitle() and not token.mark.startswith("@") and not speller(self.scenario).knows(word.casefold()):
            raise _Doubt(self._not_here(word))

    def _call(self, who: str) -> str:
        return called(self.scenario, who)

    def _not_here(self, called: str) -> str:
        """No word of whether there is somebody of that name elsewhere: not everyone has met them."""
        names = {name.casefold(): one for one in self.here if (person := self.scenario.person(one)) for name in person.names}
        close = difflib.get_close_matches(called.casefold(), names, n=1, cutoff=0.6)
        return f"There is no {called} here. " + (f"Did you mean {self._call(names[close[0]])}?" if close else self._who_is_here())

    def _who_is_here(self) -> str:
        are = "is" if len(self.here) == 1 else "are"
        return f"Here {are} {listed([self._call(one) for one in self.here])}." if self.here else "Nobody else is here."

    def _to_whom(self) -> str:
        example = f" Say, for example: I whisper to {self._call(self.here[0])} that …" if self.here else ""
        return f"Who is to hear that, and nobody else? {self._who_is_here()}{example}"
