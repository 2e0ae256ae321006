"""Companions who play by themselves: they know what they want, speak in their own voice, and remember what they heard.

A companion decides from its own scene and its own context alone. Whoever leads takes up what the story asks for; the others do something
of their own where they are, or come along.
"""

from __future__ import annotations

from collections.abc import Sequence

from talekeeper.table import callbacks
from talekeeper.table.brain import Ask, Choice
from talekeeper.table.prose import Prose, joined, person_slots, short
from talekeeper.table.scenario import Hero, Scenario
from talekeeper.table.spelling import mention, words_of
from talekeeper.table.understand import find_verb

_EXPLORES = 4
"""One time out of so many, a leader does what pleases rather than what presses."""
_WORTH_DOING = 0.34
_PHRASE_ROUNDS = 3
"""For so many rounds it is the turn of one phrase."""
_CONFESSES_FROM = 12
_CONFESSES = 14


def act(scenario: Scenario, ask: Ask, prose: Prose) -> str:
    """What a player character says and does."""
    one = _Companion(scenario, ask, prose)
    return one.turn()


class _Companion:
    def __init__(self, scenario: Scenario, ask: Ask, prose: Prose) -> None:
        self.scenario, self.ask, self.prose, self.scene = scenario, ask, prose, ask.scene
        self.hero: Hero = scenario.heroes[ask.seat]
        self.others = [one for one in self.scene.here if one.id in scenario.heroes]
        prose.about(ask.seat, [one.id for one in self.others])

    def turn(self) -> str:
        if self.scene.condition == "down":
            return self.prose.must("pc.down")
        if not self._leads() and (leader := self._going()):
            return joined(self.prose.must("pc.follow", leader=self.scenario.name(leader)), self._remark(2))
        secret = self._confession()
        if secret:
            return secret
        choice = self._choose()
        if choice is None:
            return self._remark(1) or self.prose.must("pc.wait")
        action = self._say(choice)
        remark = self._remark(2 if choice.verb != "way" else 4)
        return joined(remark, action) if self.prose.once_in(2, "order") else joined(action, remark)

    def _leads(self) -> bool:
        return self.ask.leader == self.ask.seat or (not self.ask.leader and not self.ask.said)

    def _going(self) -> str:
        """Who of those who spoke before takes the party elsewhere."""
        for seat, text in self.ask.said:
            tokens = words_of(text)
            named = any(mention(tokens, (exit.name, exit.way)) for exit in self.scene.exits if not exit.blocked)
            if (find_verb(tokens) == "go" or "go" in tokens or "head" in tokens) and named:
                return seat
        return ""

    # -- choosing

    def _choose(self) -> Choice | None:
        taken = {_plain(text) for _, text in self.ask.said}
        free = [choice for choice in self.scene.choices if not any(_plain(choice.text) in text for text in taken)]
        if self._leads():
            return self._lead(free)
        mine = [choice for choice in free if choice.verb not in ("go", "flee", "rest", "work") and choice.pull >= _WORTH_DOING]
        mine = [choice for choice in mine if not any(_same_matter(choice, text) for _, text in self.ask.said)]
        return self._weighed(mine) if mine and (self.scene.encounter or not self.prose.once_in(3, "idle")) else None

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
        if not self.prose.once_in(_CONFESSES, "confess") or ("tell" in self.prose.recent and "my secret" in self.prose.recent):
            return ""
        return self.prose.must(
            ("I take {other} aside, and tell {other} my secret.", "It has been mine for long enough. I tell {other} my secret."), "confess"
        )

    # -- words

    def _say(self, choice: Choice) -> str:
        """A choice in this one's own words; one that the pack words itself is said as it stands."""
        pool = f"pc.{choice.verb}"
        names = (*choice.about, "", "")
        slots = {"npc": names[0], "topic": names[1], "thing": names[0], "target": names[0], "place": names[0], "way": names[1]}
        if choice.verb == "give":
            slots |= {"thing": names[0], "npc": names[1]}
        npc = next((one for one in self.scenario.npcs.values() if short(one) == slots["npc"]), None)
        slots |= {key: value for key, value in (person_slots("npc", npc) if npc else {}).items() if key != "npc"}
        if choice.verb in ("deed", "way"):
            return f"I {choice.text[:1].lower()}{choice.text[1:]}."
        return (
            self.prose.pick(pool, **{key: value for key, value in slots.items() if value})
            or f"I {choice.text[:1].lower()}{choice.text[1:]}."
        )

    def _remark(self, out_of: int) -> str:
        """Now and then something more: a memory, a worry, a joke."""
        if not self.prose.once_in(out_of, "remark"):
            return ""
        kinds = [self._danger, self._quote, self._deed, self._promise, self._hurt, self._own, self._own, self._mind]
        start = self.prose.chance(len(kinds), "kind")
        return next((line for kind in kinds[start:] + kinds[:start] if (line := kind())), "")

    def _danger(self) -> str:
        return self.prose.pick(self.hero.says.get("danger", ()), "danger") if self.scene.encounter else ""

    def _own(self) -> str:
        """A turn of phrase of one's own: each has its time, so that none comes again too soon."""
        return self.prose.turn_of(self.hero.says.get("mind", ()), "own", _PHRASE_ROUNDS)

    def _mind(self) -> str:
        return self.prose.pick("pc.mind", place=self.scene.place_name) if self.others else ""

    def _quote(self) -> str:
        speakers = {short(npc) for npc in self.scenario.npcs.values()} | {npc.name for npc in self.scenario.npcs.values()}
        found = [one for one in callbacks.quotes(self.ask.context.text, speakers) if len(one.words) < 90]
        if not found:
            return ""
        one = found[self.prose.chance(len(found), "quote")]
        return self.prose.pick("pc.quote", quote=one.words, speaker=one.speaker)

    def _deed(self) -> str:
        found = callbacks.deeds(self.ask.context.text)
        return self.prose.pick("pc.moment", deed=found[self.prose.chance(len(found), "deed")]) if found else ""

    def _promise(self) -> str:
        mine = [line for line in self.scene.promises if line.startswith(f"{self.hero.name} to ")]
        if not mine:
            return ""
        to, _, promise = mine[self.prose.chance(len(mine), "promise")].removeprefix(f"{self.hero.name} to ").partition(": ")
        return self.prose.pick("pc.promise", npc=to, promise=promise)

    def _hurt(self) -> str:
        return self.prose.pick("pc.hurt") if self.scene.condition in ("hurt", "badly hurt") else ""


def _plain(text: str) -> str:
    return " ".join(words_of(text))


def _same_matter(choice: Choice, text: str) -> bool:
    """Whether somebody has just said that they do much the same."""
    tokens = words_of(text)
    return bool(choice.about) and choice.verb not in ("way", "deed") and all(mention(tokens, (name,)) for name in choice.about if name)
