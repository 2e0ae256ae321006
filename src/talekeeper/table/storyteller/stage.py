"""How the DM sets the scene at the beginning of a round: the hour, the weather, the place, its people, and what presses."""

from __future__ import annotations

from collections.abc import Callable

from talekeeper.table.brain import Ask
from talekeeper.table.meaning.spelling import alike, content, words_of
from talekeeper.table.rules.conditions import sayable, watch
from talekeeper.table.rules.plan import open_objectives
from talekeeper.table.shown.choices import encounter_here, people_here
from talekeeper.table.shown.prose import Prose, introduced, joined
from talekeeper.table.shown.scene import viewpoint, weather
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Scenario

_SIGN_EVERY = 5
_HINT_EVERY = 4


def set_scene(scenario: Scenario, ask: Ask, state: GameState, prose: Prose) -> str:
    """What the DM says before the others act."""
    stage = _Stage(scenario, ask, state, prose)
    if ask.round <= 1:
        return stage.opening()
    return stage.encounter() if state.encounter else stage.round()


def _fits(line: str, hour: str) -> bool:
    """Whether a line can be said at this hour: clear nights are not for the morning."""
    words = set(words_of(line))
    dark = hour in ("dusk", "evening", "night")
    return not (words & _DARK and not dark) and not (words & _BRIGHT and dark)


_DARK = frozenset({"night", "nights", "stars", "moon", "moonlight", "dark"})
_OUTSIDE = frozenset({"wind", "sky", "sun", "rain", "snow", "street", "streets", "roof", "roofs", "gulls", "hill", "houses", "quay"})
_BRIGHT = frozenset({"sun", "sunlight", "morning", "noon", "midday", "daylight"})


class _Stage:
    def __init__(self, scenario: Scenario, ask: Ask, state: GameState, prose: Prose) -> None:
        self.scenario, self.ask, self.state, self.prose = scenario, ask, state, prose
        self.eyes = viewpoint(state, ask.seat)
        self.place = scenario.places[state.where[self.eyes]]
        prose.about(self.eyes, state.company(self.eyes))

    def opening(self) -> str:
        """The first words of a game. What everyone knows before it stands in the canon, and need not be said again."""
        act = self.scenario.acts[0]
        people = people_here(self.state, self.scenario, self.place.id)
        here = joined(*sayable(self.place.look, self.state, self.scenario), *(introduced(npc) for npc in people))
        return "\n\n".join((" ".join(act.opening), joined(here, self._nudged())))

    def encounter(self) -> str:
        encounter = encounter_here(self.state, self.scenario)
        line = self.prose.pick(encounter.press, "press") if encounter is not None else ""
        more = self._pool("unease") if not line or self.prose.once_in(3, "unease") else ""
        return joined(self._nudged(), line, more) or self._anything()

    def round(self) -> str:
        """Two or three lines, never the same ones; a wish of the player's comes first."""
        kinds: list[Callable[[], str]] = [self._air, self._sky, self._people, self._mood]
        start = self.prose.chance(len(kinds), "kinds")
        lines = [self._nudged()]
        lines += [kind() for kind in (kinds[start:] + kinds[:start])[: 2 + self.prose.chance(2, "count")]]
        lines += [self._sign(), self._hint()]
        return joined(*lines) or self._anything()

    def _anything(self) -> str:
        """What is left to say where everything has been said: something small, out of many parts."""
        return self.prose.must("dm.small", place=self.place.name)

    def _pool(self, name: str) -> str:
        lines = self.scenario.lines.get(name, ())
        return self.prose.pick([line for line in lines if self.place.sky or not _OUTSIDE & set(words_of(line))], name)

    def _air(self) -> str:
        return self.prose.pick(self.place.air, "air")

    def _sky(self) -> str:
        if not self.place.sky:
            return ""
        hour = watch(self.state)
        pools = [hour, f"weather_{weather(self.scenario, self.state, self.ask.seed)}"]
        lines = ([one for one in self.scenario.lines.get(name, ()) if _fits(one, hour)] for name in self.prose.order(pools, "sky"))
        return next((line for pool in lines if (line := self.prose.pick(pool, "sky"))), "")

    def _people(self) -> str:
        people = people_here(self.state, self.scenario, self.place.id)
        names = self.prose.order([npc.id for npc in people], "people")
        return next((line for id in names if (line := self.prose.pick(self.scenario.npcs[id].idle, f"idle/{id}"))), "")

    def _mood(self) -> str:
        if any(self.state.wounds.get(one, 0) for one in self.state.alive) and self.prose.once_in(3, "wounded"):
            return self._pool("wounded")
        uneasy = self.state.danger.get(self.place.id, "safe") not in ("safe", "cleared")
        name = "after" if self.state.ending else "unease" if uneasy else "quiet"
        return self._pool(name) or self.prose.pick("dm.small", place=self.place.name)

    def _sign(self) -> str:
        """Something larger stirs, as long as the arc is not over."""
        if self.state.ending or self.ask.round % _SIGN_EVERY or not self.place.sky:
            return ""
        act = next(act for act in self.scenario.acts if act.id == self.state.act)
        return self.prose.pick(act.signs, "sign")

    def _hint(self) -> str:
        """What is still to be done, said so that it sounds like a thought."""
        if self.state.ending or self.ask.round % _HINT_EVERY != 2:
            return ""
        goals = open_objectives(self.scenario, self.state)
        return self.prose.pick(self.scenario.objectives[goals[0]].hint, "hint") if goals else ""

    def _nudged(self) -> str:
        """The line that comes closest to what a player wished for; none where none has a word of it."""
        wish = content(self.ask.nudge or "")
        if not wish:
            return ""
        pools = [
            *self.scenario.lines.values(),
            self.place.air,
            *(npc.idle for npc in self.scenario.npcs.values() if npc.id in self.state.here(self.place.id)),
        ]
        lines = [line for pool in pools for line in pool]

        def fits(line: str) -> int:
            words = content(line)
            return sum(any(alike(one, word) for word in words) for one in wish)

        best = max((fits(line) for line in lines), default=0)
        nearest = [line for line in lines if fits(line) == best] if best else []
        return self.prose.pick(nearest, "nudge")
