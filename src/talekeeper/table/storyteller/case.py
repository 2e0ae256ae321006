"""One action before the keeper: who acts, where, in which state, and the few things every ruling needs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from talekeeper.table.meaning.spelling import words_of
from talekeeper.table.meaning.understand import Intent
from talekeeper.table.rules import contest
from talekeeper.table.rules.conditions import ways_out
from talekeeper.table.rules.contest import Check
from talekeeper.table.shown.choices import people_here
from talekeeper.table.shown.prose import Prose
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Deed, Mark, Npc, Scenario


@dataclass(slots=True)
class Ruled:
    """What an intent leads to: the keeper's words, what the game is asked to do, and why it may be worth remembering."""

    resolution: str
    commands: list[Command] = field(default_factory=list)
    mark: Mark | None = None

    @property
    def is_nothing(self) -> bool:
        return any(isinstance(one, cm.TellBeat) and one.what == "nothing" for one in self.commands)


class Case:
    """An action, seen from where it is done. `state` moves on from one intent of the action to the next, and so does
    `secretly`: whether this one is meant to be seen by nobody."""

    def __init__(self, scenario: Scenario, state: GameState, actor: str, prose: Prose, *, leads: bool = True) -> None:
        self.scenario, self.state, self.actor, self.prose, self.leads = scenario, state, actor, prose, leads
        self.secretly = False
        prose.about(actor, state.company(actor))

    @property
    def place(self) -> str:
        return self.state.where[self.actor]

    @property
    def people(self) -> list[Npc]:
        return people_here(self.state, self.scenario, self.place)

    def npc(self, id: str) -> Npc | None:
        """Someone of that id, if they are here."""
        return next((npc for npc in self.people if npc.id == id), None)

    def meant(self, intent: Intent) -> Npc | None:
        """Whoever is meant; where nobody is named and only one is there who can be, that one: no “him” is a woman."""
        if intent.hero and not intent.npc:
            return None  # who stands by is not spoken to
        words = set(words_of(intent.words))
        he, she = bool({"he", "him", "his"} & words), bool({"she", "her", "hers"} & words)
        wrong = {"she": he and not she, "he": she and not he}
        fits = [one for one in self.people if not wrong.get(one.pronouns)]
        is_clear = len(fits) == 1 and (len(self.people) == 1 or he or she)
        return self.npc(intent.npc) or (fits[0] if not intent.npc and is_clear else None)

    def listener(self, intent: Intent) -> str:
        """Whoever is here and spoken to, of the party or not."""
        npc = self.meant(intent)
        return npc.id if npc is not None else intent.hero if intent.hero in self.state.company(self.actor) and not intent.npc else ""

    def name(self, id: str) -> str:
        return self.scenario.name(id)

    def beat(self, what: str, *about: str, degree: str = "", secretly: bool = False) -> Command:
        """What the action was understood to be: the first command of a ruling."""
        return cm.TellBeat(what, about, degree, secretly or self.secretly)

    def check(self, skill: str, difficulty: int, what: str) -> Check:
        return contest.check(self.scenario, self.state, self.actor, skill, difficulty, self.prose.seed, self.prose.round, what)

    def try_deed(self, deed: Deed) -> Check:
        return self.check(deed.skill, deed.difficulty, deed.id) if deed.skill else Check("good", "No roll needed.")

    def critical(self, seen: Check, deed: Deed) -> Mark | None:
        return None if deed.secretly or self.secretly else contest.critical(seen.degree, self.name(self.actor), deed)

    def moved(self, who: str, by: int) -> list[Command]:
        """What somebody thinks of the one who acts, where that is counted: what the party think of each other they know themselves."""
        return [cm.ChangeRelationship(who, by, self.actor)] if who in self.scenario.npcs else []

    def met(self, npc: Npc) -> Command:
        return cm.SetFlag(f"met.{npc.id}")

    def pick_up(self, item: str) -> Ruled:
        return Ruled(f"Takes {self.name(item)}.", [self.beat("take", item), cm.GainItem(item, self.actor)])

    def nothing(self) -> Ruled:
        return Ruled("No roll. Nothing comes of it.", [self.beat("nothing")])

    def missing(self, intent: Intent) -> Ruled:
        """The one who is meant is not here, or dead."""
        if not intent.npc:
            return self.nothing()
        dead = intent.npc in self.state.dead
        gone = self.beat("absent", intent.npc, degree="dead" if dead else "")
        return Ruled(f"{self.name(intent.npc)} is {'dead' if dead else 'not here'}.", [gone])

    def path(self, goal: str) -> list[str]:
        """The places on the shortest open way to a place; none where there is no way."""
        came: dict[str, str] = {self.place: ""}
        todo = deque([self.place])
        while todo and goal not in came:
            here = todo.popleft()
            for exit, is_open in ways_out(self.state, self.scenario, here):
                if is_open and exit.to not in came:
                    came[exit.to] = here
                    todo.append(exit.to)
        if goal not in came or goal == self.place:
            return []
        path = [goal]
        while came[path[-1]] != self.place:
            path.append(came[path[-1]])
        return path[::-1]
