"""Companions who play by themselves: they know what they want, speak in their own voice, and remember what they heard.

A companion decides from its own scene and its own context alone. Whoever leads takes up what the story asks for; the others do something
of their own where they are, say what the moment asks for, or hold their tongue. What one of them says is, in this order, an answer, and
then what fits: the danger, what came of the last try, a wound, the place, who is here, what was done, heard and promised before, and what
is always on their mind. Each line has its time, by the number of the round, so that none comes again within sixteen rounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from talekeeper.table.brain import Ask, Choice
from talekeeper.table.meaning.spelling import content, mention, words_of
from talekeeper.table.shown.choices import asked, decides
from talekeeper.table.shown.prose import Prose, joined, person_slots, sentences, short
from talekeeper.table.storyteller import reminders
from talekeeper.table.storyteller.dealings import LETHAL
from talekeeper.table.world.scenario import ANSWER, Hero, Scenario

_EXPLORES = 4
"""One time out of so many, a leader does what pleases rather than what presses."""
_WORTH_DOING = 0.34
_PRESSING = 0.7
"""What the story asks for that strongly is for the one who leads, mostly."""
_CONFESSES_FROM = 12
_CONFESSES = 14
_YOURS = {"your": "my", "yours": "mine", "yourself": "myself", "yourselves": "us", "you": "me"}
_THROWN = re.compile(r" against \d+\. (Brilliant|It works|It fails|It goes badly wrong)")


def act(scenario: Scenario, ask: Ask, prose: Prose) -> str:
    """What a player character says and does; nothing where one would rather listen."""
    return _Companion(scenario, ask, prose).turn()


class _Companion:
    def __init__(self, scenario: Scenario, ask: Ask, prose: Prose) -> None:
        self.scenario, self.ask, self.prose, self.scene = scenario, ask, prose, ask.scene
        self.hero: Hero = scenario.heroes[ask.seat]
        self.others = [one for one in self.scene.here if one.id in scenario.heroes]
        self.strangers = [one for one in self.scene.here if one.id in scenario.npcs]
        prose.about(ask.seat, [one.id for one in self.others])

    def turn(self) -> str:
        if self.scene.condition == "down":
            return self.prose.in_turn(self._own("pc.down", "down"), "down")
        shock = self._killing()
        if shock:
            return shock
        answer = self._answer()
        secret = "" if answer else self._confession()
        if secret:
            return secret
        choice = self._choose()
        if choice is None:
            return answer or self._remark()
        remark = answer or (self._remark() if self.prose.once_in(3 if self.scene.encounter else 2, "speaks") else "")
        return joined(remark, self._say(choice)) if answer or self.prose.once_in(2, "order") else joined(self._say(choice), remark)

    def _leads(self) -> bool:
        return self.ask.leader == self.ask.seat or (not self.ask.leader and not self.ask.said)

    # -- choosing

    def _choose(self) -> Choice | None:
        taken = {_plain(text) for _, text in self.ask.said}
        free = [choice for choice in self.scene.choices if not any(_plain(choice.text) in text for text in taken)]
        if self._leads():
            return self._lead(free)
        if self.scene.encounter and not self._is_told_of():
            return None  # whoever leads has not seen it yet
        mine = [choice for choice in free if choice.verb not in ("go", "flee", "rest", "work") and self._is_mine(choice)]
        mine = [choice for choice in mine if not any(_same_matter(choice, text) for _, text in self.ask.said)]
        return self._weighed(mine) if mine and (self.scene.encounter or not self.prose.once_in(3, "idle")) else None

    def _is_told_of(self) -> bool:
        """Whether the encounter that is going on was told before, and did not begin in this very round."""
        met = (one for one in self.scenario.encounters.values() if one.name == self.scene.encounter)
        return all(any(sentences(line)[0] in self.prose.recent for line in one.intro) for one in met)

    def _ends_it(self, choice: Choice) -> bool:
        """Whether the story would end with it: that is not for a companion to decide."""
        return choice.verb == "deed" and any(deed.id == choice.about[0] and decides(self.scenario, deed) for deed in self.scenario.deeds)

    def _is_mine(self, choice: Choice) -> bool:
        """Whether one would do it unasked: not nothing, and now and then only what is for the one who leads."""
        if self._ends_it(choice):
            return False
        if self.scene.encounter or choice.verb == "tend":
            return True
        return choice.pull >= _WORTH_DOING and (choice.pull < _PRESSING or self.prose.once_in(4, f"takes up/{choice.text}"))

    def _lead(self, free: Sequence[Choice]) -> Choice | None:
        if not free:
            return None
        pleasing = [choice for choice in free[1:] if choice.pull >= 0.4 and choice.verb not in ("go", "flee", "rest")]
        if pleasing and not self.scene.encounter and free[0].pull < 0.97 and self.prose.once_in(_EXPLORES, "explore"):
            return self._weighed(pleasing)
        close = [choice for choice in free if choice.pull >= free[0].pull - (0.04 if free[0].pull > 0.6 else 0.2)]
        return self._weighed(close)

    def _weighed(self, choices: Sequence[Choice]) -> Choice:
        return max(choices, key=lambda choice: choice.pull * (1 + self.prose.chance(1000, f"weigh/{choice.text}") / 1000))

    def _confession(self) -> str:
        """Late enough, in a quiet hour, a secret of one's own is shared with one of the others."""
        own = {secret.text for secret in self.scenario.secrets.values() if secret.known == (self.ask.seat,)}
        quiet = not self.scene.encounter and self.others and self.scene.danger in ("safe", "cleared")
        if not quiet or not own & set(self.scene.secrets) or self.ask.round < _CONFESSES_FROM or self._leads():
            return ""
        if not self.prose.once_in(_CONFESSES, "confess") or "my secret" in self.prose.recent:
            return ""
        return self.prose.must("pc.confess")

    # -- words for what is done

    def _say(self, choice: Choice) -> str:
        """A choice in this one's own words; one that the pack words itself is said nearly as it stands."""
        plain = f"I {choice.text[:1].lower()}{choice.text[1:]}."
        if choice.verb in ("deed", "way"):
            return re.sub(r"\b(?:yourselves|yourself|yours|your|you)\b", lambda found: _YOURS[found[0]], plain)
        names = (*choice.about, "", "")
        slots = {
            "npc": names[0],
            "asked": asked(names[1]) if names[1] else "",
            "thing": names[0],
            "target": names[0],
            "place": names[0],
            "way": names[1],
        }
        if choice.verb == "give":
            slots |= {"thing": names[0], "npc": names[1]}
        npc = next((one for one in self.scenario.npcs.values() if short(one) == slots["npc"]), None)
        slots |= {key: value for key, value in (person_slots("npc", npc) if npc else {}).items() if key != "npc"}
        return self.prose.pick(f"pc.{choice.verb}", **{key: value for key, value in slots.items() if value}) or plain

    # -- words for their own sake

    def _remark(self) -> str:
        """What the moment asks for, the most pressing first; each only so often."""
        kinds: tuple[tuple[Callable[[], str], int], ...] = (
            (self._danger, 2), (self._outcome, 1), (self._hurt, 3), (self._at_place, 1), (self._to_someone, 2), (self._deed, 3),
            (self._promise, 4), (self._quote, 3), (self._after, 1), (self._mind, 1),
        )  # fmt: skip
        found = (kind() for kind, times in kinds if self.prose.once_in(times, kind.__name__))
        return next((line for line in found if line), "")

    def _own(self, pool: str, kind: str) -> Sequence[str]:
        """One's own lines of a kind; where the pack has none, one's share of those that belong to nobody."""
        shared = self.prose.pool(pool)
        mine = tuple(self.scenario.heroes).index(self.hero.id)
        return self.hero.says.get(kind) or shared[mine :: len(self.scenario.heroes)] or shared

    def _line(self, kind: str, pool: str, **slots: str) -> str:
        return self.prose.in_turn(self._own(pool, kind), kind, **slots)

    def _danger(self) -> str:
        return self.prose.in_turn(self.hero.says.get("danger", ()), "danger") if self.scene.encounter else ""

    def _outcome(self) -> str:
        """What one makes of one's own last try, while it is fresh."""
        mine, since = reminders.since(self.ask.context, self.hero.name)
        told = next((turn for turn in since if turn.startswith("* ")), "") if mine else ""
        ruled = _THROWN.search(told.partition("\n")[0])
        if ruled is None or sum(turn.startswith("[DM]") for turn in since) > 2:
            return ""
        return self.prose.in_turn(self.hero.says.get("wins" if ruled[1] in ("Brilliant", "It works") else "fails", ()), "outcome")

    def _hurt(self) -> str:
        return self._line("hurt", "pc.hurt") if self.scene.condition in ("hurt", "badly hurt") else ""

    def _at_place(self) -> str:
        here = self.hero.says.get(f"at_{self.scene.place}", ())
        return "" if self.scene.encounter or self.scene.over else self.prose.in_turn(here, "place")

    def _to_someone(self) -> str:
        """A word to one who is here, or about them."""
        if self.scene.encounter:
            return ""
        standing = [one.id for one in (*self.others, *self.strangers) if one.condition != "down" and self.hero.says.get(f"to_{one.id}")]
        pools = ([line.partition(ANSWER)[0] for line in self.hero.says[f"to_{id}"]] for id in self.prose.order(standing, "whom"))
        return next((line for pool in pools if (line := self.prose.in_turn(pool, "to"))), "")

    def _killing(self) -> str:
        """What one says when somebody of the party has just killed one of those who live here."""
        for killer, text in self.ask.said:
            tokens = words_of(text)
            near = {one.id for one in self.strangers}
            gone = [npc for npc in self.scenario.npcs.values() if npc.place == self.scene.place and npc.id not in near]
            known = self.ask.context.text
            dead = next((npc for npc in gone if mention(tokens, npc.names) and f"killed {npc.name}" not in known), None)
            if dead is not None and killer in self.scenario.heroes and LETHAL & set(tokens):
                killers = {"killer": short(self.scenario.heroes[killer])}
                return self.prose.must(self._own("pc.killing", "killing"), "killing", **killers, **person_slots("npc", dead))
        return ""

    def _answer(self) -> str:
        """What one says to something that was said to one, in this round or since one last spoke."""
        mine, since = reminders.since(self.ask.context, self.hero.name)
        heard = "\n".join((mine, *since, *(text for _, text in self.ask.said)))
        for other in self.scenario.heroes.values():
            for line in other.says.get(f"to_{self.hero.id}", ()):
                spoken, _, answer = line.partition(ANSWER)
                if answer and spoken in heard and answer not in self.prose.recent:
                    return answer
        return ""

    def _deed(self) -> str:
        """Something that all of them did, brought up among themselves: what has to do with this place first."""
        if self.strangers or self.scene.encounter:
            return ""
        return self._brought_up(reminders.deeds(self.ask.context), lambda deed: self._line("remember", "pc.moment", deed=deed))

    def _quote(self) -> str:
        heard = [(words, name) for name, words in reminders.heard_of(self.ask.context, self.scenario)]
        speakers = dict(heard)
        near = [words for words, _ in heard if self._is_near(words)]
        return self._brought_up(near, lambda words: self._line("quote", "pc.quote", quote=words, speaker=speakers[words]))

    def _brought_up(self, found: Sequence[str], tell: Callable[[str], str]) -> str:
        ordered = self.prose.order(found, "brought up")
        return next((line for one in sorted(ordered, key=lambda one: not self._is_near(one)) if (line := tell(one))), "")

    def _is_near(self, text: str) -> bool:
        """Whether something has to do with where one is, whom one sees and what one is after."""
        words = set(words_of(text))
        return any(word in words for name in self._at_hand() for word in content(name) if len(word) > 3)

    def _at_hand(self) -> Iterator[str]:
        yield from (self.scene.place_name, self.scene.encounter)
        yield from (one.name for one in self.strangers)
        yield from (thing.name for thing in (*self.scene.lying, *self.scene.items))
        yield from (goal.title for goal in self.scene.goals)

    def _promise(self) -> str:
        lasting = {vow.text for vow in self.scenario.vows.values() if vow.lasting}
        mine = [line.removeprefix(f"{self.hero.name} to ") for line in self.scene.promises if line.startswith(f"{self.hero.name} to ")]
        owed = [(to, text) for to, _, text in (line.partition(": ") for line in mine) if text not in lasting]
        if not owed or self.scene.encounter:
            return ""
        to, text = owed[self.prose.chance(len(owed), "promise")]
        return self._line("promise", "pc.promise", npc=to, promise=text)

    def _after(self) -> str:
        return self.prose.in_turn(self.hero.says.get("after", ()), "after") if self.scene.over else ""

    def _mind(self) -> str:
        return "" if self.scene.encounter or self.scene.over else self._line("mind", "pc.mind")


def _plain(text: str) -> str:
    return " ".join(words_of(text))


def _same_matter(choice: Choice, text: str) -> bool:
    """Whether somebody has just said that they do much the same."""
    tokens = words_of(text)
    return bool(choice.about) and choice.verb not in ("way", "deed") and all(mention(tokens, (name,)) for name in choice.about if name)
