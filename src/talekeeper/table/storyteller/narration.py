"""The built-in narrator: what came of a round, told from the beats and events of its rulings.

What happened in secret is told only as far as anyone could see it; the rest went, as a whisper, to the one it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from talekeeper.table.brain import Ask, Known, Ruling
from talekeeper.table.rules.conditions import day, holds, is_lasting, sayable, watch, ways_out
from talekeeper.table.rules.contest import SUCCESSES, outcome_of
from talekeeper.table.rules.plan import open_objectives
from talekeeper.table.shown.choices import is_clause, offers, people_here, told, topic_name
from talekeeper.table.shown.prose import Prose, actor_slots, called, capital, definite, introduced, joined, listed, person_slots
from talekeeper.table.shown.scene import condition, weather
from talekeeper.table.storyteller import reminders
from talekeeper.table.world import events as ev
from talekeeper.table.world.gamestate import DOWN, HURT, GameState
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import Hero, Npc, Scenario


class Narrator:
    """Tells one round."""

    def __init__(self, scenario: Scenario, ask: Ask, state: GameState, prose: Prose) -> None:
        self.scenario, self.ask, self.state, self.prose = scenario, ask, state, prose
        self.actor = ""

    def tell(self) -> str:
        """The whole round: one paragraph per action, then what it brought about."""
        paragraphs = [self._ruling(ruling) for ruling in self.ask.rulings]
        if any(paragraphs):
            return "\n\n".join(one for one in paragraphs if one)
        leader = self.ask.leader or next(iter(self.state.able), "")
        if leader not in {ruling.actor for ruling in self.ask.rulings if not ruling.is_secret}:
            return ""  # the small doings of the others, and what was whispered: those who hear this were told
        self.prose.about(leader, ())
        return self.prose.must("act.wait")

    def _ruling(self, ruling: Ruling) -> str:
        self.actor = ruling.actor
        self.prose.about(ruling.actor, self.state.company(ruling.actor))
        parts = [self._event(event) for event in sorted(ruling.events, key=lambda one: getattr(one, "what", "") == "happening")]
        parts += [self.prose.pick("act.refused", reason=_lower(reason)) for reason in ruling.refused[:1] if not any(parts)]
        return joined(*parts)

    def _event(self, event: ev.Event) -> str:
        if isinstance(event, ev.Beat):
            return _BEATS.get(event.what, Narrator._nothing)(self, event)
        teller = _EVENTS.get(type(event))
        return teller(self, event) if teller is not None else ""

    # -- slots

    def _npc(self, id: str) -> dict[str, str]:
        person = self.scenario.person(id)
        return person_slots("npc", person) if person is not None else {"npc": self.scenario.name(id)}

    def _call(self, id: str) -> str:
        return called(self.scenario, id)

    def _pick(self, pool: Iterable[str], what: str, **slots: str) -> str:
        return self.prose.pick(tuple(pool), what, **slots)

    # -- beats: people

    def _nothing(self, beat: ev.Beat) -> str:
        if not self._is_leader():
            return ""
        over = any(isinstance(event, ev.EncounterEnded) for ruling in self.ask.rulings for event in ruling.events)
        return "" if over else self.prose.must("act.nothing")

    def _banter(self, beat: ev.Beat) -> str:
        others = [one for one in self.state.company(self.actor) if one not in (self.actor, *self.ask.humans)]
        other = next(iter(beat.about), "") or next(iter(others), "")
        if not other or other in self.ask.humans or not self._is_leader():
            return ""  # what companions say among themselves needs no teller, and people speak for themselves
        lines = [line for line in self.scenario.heroes[other].says.get("mind", ()) if line.startswith("“")]
        if beat.about and beat.about[0] and (line := self._pick(lines, "answer")):
            return self.prose.must("act.answer", other=self._call(other), line=line)
        return self.prose.pick("act.talk_party", other=self._call(other))

    def _self(self, beat: ev.Beat) -> str:
        hero = self.scenario.heroes[self.actor]
        how = condition(self.state, self.actor)
        return joined(f"{hero.name}, {hero.calling}." if hero.calling else f"{hero.name}.", hero.look, f"{capital(how)}." if how else "")

    def _here(self, beat: ev.Beat) -> str:
        place = self.scenario.places[self.state.where[self.actor]]
        return joined(f"{capital(place.name)}.", *sayable(place.look, self.state, self.scenario), self._who_is_here(place.id))

    def _sky(self, beat: ev.Beat) -> str:
        sky = self.scenario.lines.get(f"weather_{weather(self.scenario, self.state, self.ask.seed)}", ())
        return joined(self.prose.must("act.hour", hour=watch(self.state), day=str(day(self.state))), self._pick(sky, "sky"))

    def _present(self, beat: ev.Beat) -> str:
        ids = (one for one in self.state.here(self.state.where[self.actor]) if one != self.actor)
        people = [person for id in ids if (person := self.scenario.person(id)) is not None]
        known = [f"{one.name}, {one.calling}" if one.calling else one.name for one in people]
        return f"{capital('; '.join(known))}." if known else self.prose.must("act.nobody")

    def _where(self, beat: ev.Beat) -> str:
        told_of = dict(part.split(" ", 1) for part in beat.about)
        npc, whom, goal, first = (told_of.get(name, "") for name in ("by", "whom", "at", "first"))
        slots = {"place": self.scenario.name(goal), **self._npc(npc)}
        slots |= {"whom": self._call(whom)} if whom else {}
        here = self.scenario.places[self.state.where[self.actor]]
        way = next((exit.way for exit in here.exits if exit.to == first and exit.way), "")
        way = way or (f"by way of {self.scenario.name(first)}" if first and first != goal else "not far from here")
        slots |= {"way": way, "capital_way": capital(way)}
        return self.prose.must(f"talk.where_{'whom' if whom else 'place'}" if npc else "act.where", **slots)

    def _who(self, beat: ev.Beat) -> str:
        npc = self.scenario.npcs[beat.about[0]]
        calling = npc.calling if npc.calling != npc.name else ""
        pool = "talk.who" if calling else "talk.who_plain"
        return joined(
            introduced(npc) if not self.prose.said(introduced(npc)) else "",
            self.prose.must(pool, name=npc.name, calling=calling, **self._npc(npc.id)),
        )

    def _about(self, beat: ev.Beat) -> str:
        npc, whom = beat.about
        one = self.scenario.npcs[whom]
        slots = {**self._npc(npc), **person_slots("whom", one), "name": one.name, "calling": one.calling or "one of us"}
        pool = "talk.about_here" if self.state.where.get(whom) == self.state.where[self.actor] else "talk.about"
        return self.prose.must(pool, place=self.scenario.name(self.state.where[whom]), **slots)

    def _no_foe(self, beat: ev.Beat) -> str:
        return self.prose.must("act.no_foe") if self._is_leader() else ""

    def _perform(self, beat: ev.Beat) -> str:
        return self.prose.must(f"act.{beat.what}")

    def _foreign(self, beat: ev.Beat) -> str:
        return self.prose.must("talk.foreign", **self._npc(beat.about[0])) if beat.about[0] else self.prose.must("act.foreign")

    def _nowhere(self, beat: ev.Beat) -> str:
        ways = [
            self.scenario.name(exit.to) for exit, is_open in ways_out(self.state, self.scenario, self.state.where[self.actor]) if is_open
        ]
        return self.prose.must("move.nowhere", ways=listed(ways, "or"))

    def _say(self, beat: ev.Beat) -> str:
        return self.prose.pick("talk.reply", **self._npc(beat.about[0]))

    def _talk(self, beat: ev.Beat) -> str:
        """A greeting as this one feels, what they remember of whoever greets them, and where a talk could lead."""
        npc = self.scenario.npcs[beat.about[0]]
        feels = self.state.feels(npc.id, self.actor)
        pool = npc.cold if feels < 0 else npc.warm if feels >= 2 else npc.greet
        first = introduced(npc) if self.state.flags.get(f"talk.{npc.id}", 0) <= 1 else ""
        parts = [first if first and not self.prose.said(first) else "", self._pick(pool, "greet"), self._remembers(npc), self._leads(npc)]
        return joined(*parts) or self.prose.must("talk.unknown", **self._npc(npc.id))

    def _remembers(self, npc: Npc) -> str:
        """What an NPC has not forgotten of this one: what was promised, said and done where they were, and nothing else."""
        slots = self._npc(npc.id)
        known = self.ask.knowing.get(npc.id, Known())
        given = [(name, one) for name, one in self.state.promises.items() if one.to == npc.id and one.by == self.actor]
        mine = [(name, one) for name, one in given if all(map(one.is_known_to, self.state.company(self.actor)))]
        due = [one for name, one in mine if not is_lasting(self.scenario, name)]
        found = [self.prose.pick(f"talk.{one.state}_promise", promise=one.text, **slots) for one in due]
        said = reminders.of_note(reminders.said_to(known.said, npc.id, self.scenario))
        found += [self.prose.pick("talk.remember_words", quote=quote, **slots) for quote in said[:1]]
        if self.state.wounds.get(self.actor, 0) >= HURT and self.state.feels(npc.id, self.actor) >= 0:
            found.append(self.prose.pick("talk.wounded", **slots))
        dead = [self._call(one) for one in self.state.party if one in self.state.dead]
        found += [self.prose.pick("talk.grief", dead=listed(dead), **slots)] if dead else []
        deeds = [deed for one in known.moments if (deed := reminders.as_seen_by(one.summary, npc.names))]
        if deeds and self.prose.once_in(2, f"deed/{npc.id}"):
            found.append(self.prose.pick("talk.remember_deed", deed=deeds[self.prose.chance(len(deeds), "deed")], **slots))
        return next((line for line in found if line), "")

    def _recall(self, beat: ev.Beat) -> str:
        who = beat.about[0]
        if who in self.ask.humans:
            return ""
        told = reminders.said_to(self.ask.knowing.get(who, Known()).said, who, self.scenario)
        kind = "told_quietly" if beat.degree else "remember_words" if told else "told_nothing"
        return self.prose.must(f"talk.{kind}", quote=reminders.again(told[0]) if told else "", **self._npc(who))

    def _leads(self, npc: Npc) -> str:
        """What one could ask next, or a rumour."""
        waiting = [
            topic
            for topic in npc.topics
            if holds(topic.when, self.state, self.scenario, self.actor)
            and not told(self.state, npc.id, topic, self.actor)
            and self.state.feels(npc.id, self.actor) >= topic.attitude
        ]
        if waiting:
            topic = topic_name(waiting[0])
            return self.prose.pick("talk.lead_clause" if is_clause(topic) else "talk.lead", topic=topic, **self._npc(npc.id))
        heard = sayable(self.scenario.rumours, self.state, self.scenario)
        fresh = [one for one in heard if one not in self.prose.recent and not self.prose.names_the_dead(one)]
        rumour = _hearsay(self.prose.order(fresh, "rumour")[0]) if fresh else ""
        return self.prose.pick("talk.rumour", rumour=rumour, **self._npc(npc.id)) if self.prose.once_in(2, f"rumour/{npc.id}") else ""

    def _topic(self, beat: ev.Beat) -> str:
        npc = self.scenario.npcs[beat.about[0]]
        topic = next(one for one in npc.topics if one.id == beat.about[1])
        if beat.degree == "closed":
            return joined(self._pick(npc.refuse, "refuse") or self.prose.must("talk.closed", **self._npc(npc.id)))
        if beat.degree == "again":
            return self._pick(topic.again, "again") or self.prose.must("talk.again", **self._npc(npc.id))
        if beat.secretly:
            return self.prose.must("act.aside", **self._npc(npc.id))
        return self.prose.must(topic.say, topic.id)

    def _refuses(self, beat: ev.Beat) -> str:
        npc = self.scenario.npcs[beat.about[0]]
        return self._pick(npc.refuse, "refuse") or self.prose.must("talk.closed", **self._npc(npc.id))

    def _unknown(self, beat: ev.Beat) -> str:
        npc = self.scenario.npcs[beat.about[0]]
        return joined(self.prose.must("talk.unknown", **self._npc(npc.id)), self._leads(npc))

    def _unclear(self, beat: ev.Beat) -> str:
        """Nothing that anyone could make anything of: what could be done instead is said as well."""
        place = self.scenario.name(self.state.where[self.actor])
        return joined(self.prose.must("act.unclear", place=place), self._hint(beat)) if self._is_leader() else ""

    def _rules(self, beat: ev.Beat) -> str:
        """An answer to the one who plays, by the one who tells."""
        goals = open_objectives(self.scenario, self.state) if beat.about[0] == "goal" else []
        if beat.about[0] != "goal" or not goals:
            return self.prose.must(f"rules.{beat.about[0] if beat.about[0] != 'goal' else 'over'}")
        goal = self.scenario.objectives[goals[0]]
        return self.prose.must("rules.goal", goal=goal.title[:1].lower() + goal.title[1:], hint=goal.hint[0])

    def _contest(self, beat: ev.Beat, won: str, lost: str) -> str:
        return self.prose.must(won if beat.degree in SUCCESSES else lost, **self._npc(beat.about[0]))

    def _persuade(self, beat: ev.Beat) -> str:
        return self._contest(beat, "talk.persuaded", "talk.unpersuaded")

    def _threaten(self, beat: ev.Beat) -> str:
        return self._contest(beat, "talk.threatened", "talk.unthreatened")

    def _attack(self, beat: ev.Beat) -> str:
        if beat.degree == "kill":
            return self.prose.must("act.killed", **self._npc(beat.about[0]))
        return self._contest(beat, "act.attack_won", "act.attack_lost")

    def _absent(self, beat: ev.Beat) -> str:
        reason = f"{self._call(beat.about[0])} is {'dead' if beat.degree == 'dead' else 'not here'}"
        return self.prose.must("act.refused", reason=reason)

    def _reveal(self, beat: ev.Beat) -> str:
        return self.prose.must("act.reveal", target=listed([self._call(one) for one in beat.about]))

    def _murmur(self, beat: ev.Beat) -> str:
        return self.prose.must("act.whispering", target=listed([self._call(one) for one in beat.about]))

    # -- beats: places and things

    def _go(self, beat: ev.Beat) -> str:
        origin, goal = (self.scenario.places[one] for one in beat.about)
        way = next((exit.way for exit in origin.exits if exit.to == goal.id and exit.way), "")
        leaving = self.prose.pick("move.leave", way=way, **{"from": origin.name}) if way else ""
        travel = self._pick(self.scenario.lines.get("travel", ()), "travel") if origin.region != goal.region else ""
        return joined(leaving, travel)

    def _arrived(self, event: ev.Moved) -> str:
        """Only the end of a journey is told, and only by those who made it."""
        if self.actor not in event.who or self.state.where.get(self.actor) != event.to:
            return ""
        place = self.scenario.places[event.to]
        look = " ".join(sayable(place.look, self.state, self.scenario))
        if self.state.visits.get(place.id, 0) <= 1 and not self.prose.said(look):
            return joined(look, self._who_is_here(place.id))
        line = self._pick(place.again, "again")
        again = self.prose.pick("move.again", line=line, place=place.name) if line else ""
        return joined(again or self.prose.must("move.back", place=place.name, hour=watch(self.state)), self._who_is_here(place.id))

    def _who_is_here(self, place: str) -> str:
        """Those one has not met are seen, the others are at what they do."""
        people = people_here(self.state, self.scenario, place)
        first = self.state.visits.get(place, 0) <= 1  # whom others have greeted by now is still to be seen
        strangers = [npc for npc in people if first or not self.state.flags.get(f"met.{npc.id}")]
        lines = [introduced(npc) for npc in strangers[:3] if not self.prose.said(introduced(npc))]
        known = [npc for npc in people if npc not in strangers]
        lines += [self._pick(npc.idle, f"idle/{npc.id}") for npc in known[:1]]
        return joined(*lines)

    def _blocked(self, beat: ev.Beat) -> str:
        goal = beat.about[0]
        exits = self.scenario.places[self.state.where[self.actor]].exits
        reason = next((exit.blocked for exit in exits if exit.to == goal and exit.blocked), "")
        if beat.degree == "shut" and reason:
            return self.prose.must("move.blocked", reason=_lower(reason.rstrip(".")))
        return self.prose.must("move.far", place=self.scenario.name(goal))

    def _look(self, beat: ev.Beat) -> str:
        kind, id = beat.about[0], (*beat.about, "")[1]
        place = self.scenario.places[self.state.where[self.actor]]
        if kind == "detail":
            lines = next((one.say for one in place.details if one.name == id), ())
            return self.prose.must("act.detail", line=self.prose.must(lines, "detail")) if lines else self.prose.must("act.look_nothing")
        if kind == "npc" and id in self.scenario.npcs:
            return self.scenario.npcs[id].look
        if kind == "item":
            return self.scenario.items[id].look if id in self.scenario.items else self.prose.pick("act.use_nothing", **self._thing(id))
        line = self._pick((*place.air, *place.again, *(line for detail in place.details for line in detail.say[:1])), "look")
        if not self._is_leader():
            return ""
        return (self.prose.pick("act.look", line=line) if line else "") or self.prose.must("act.look_nothing")

    def _is_leader(self) -> bool:
        """Whether the one who acts is the one whom the party follows: of the others' small doings little is made."""
        return self.actor == (self.ask.leader or next(iter(self.state.able), self.actor))

    def _thing(self, item: str) -> dict[str, str]:
        """The slots of a thing: its name, and whether it is many."""
        known = self.scenario.items.get(item)
        return {"thing": definite(self.scenario.name(item)), "plural": "yes" if known is not None and known.plural else ""}

    def _search(self, beat: ev.Beat) -> str:
        place = self.scenario.places[self.state.where[self.actor]]
        unseen = [line for detail in place.details for line in detail.say if not self.prose.said(line)]
        return self.prose.render(unseen[0]) if unseen else self.prose.must("act.search_nothing")

    def _take(self, beat: ev.Beat) -> str:
        item = self.scenario.items.get(beat.about[0])
        return joined(_of_thing("act.take")(self, beat), item.look if item is not None and not self.prose.said(item.look) else "")

    def _held(self, beat: ev.Beat) -> str:
        item, holder = beat.about
        return self.prose.must("act.held_oneself" if holder == self.actor else "act.held", **self._thing(item), target=self._call(holder))

    def _give(self, beat: ev.Beat) -> str:
        item, target = beat.about
        pool = "talk.gift" if target in self.scenario.npcs else "act.hand_over"
        return self.prose.must(pool, **self._thing(item), target=self._call(target), **self._npc(target))

    def _returned(self, beat: ev.Beat) -> str:
        return self.prose.must("talk.returned", **self._thing(beat.about[1]), **self._npc(beat.about[0]))

    def _work(self, beat: ev.Beat) -> str:
        npc, thing, target = beat.about
        reasons = phrases()["errand.reasons"]
        slots = {
            "thing": self.scenario.name(thing),
            "target": self.scenario.name(target),
            "place": self.scenario.name(self.state.where[target]),
            **self._npc(npc),
        }
        return self.prose.must("talk.work", reason=self._pick(reasons, "reason") or reasons[0], **slots)

    def _deliver(self, beat: ev.Beat) -> str:
        thing, target, sender = beat.about
        return self.prose.must("talk.delivered", **self._thing(thing), sender=self._call(sender), **self._npc(target))

    # -- beats: deeds, encounters, rest

    def _deed(self, beat: ev.Beat) -> str:
        deed = next(one for one in self.scenario.deeds if one.id == beat.about[0])
        if beat.secretly:
            return self.prose.must("act.aside" if deed.npc else "act.alone", **(self._npc(deed.npc) if deed.npc else {}))
        say = outcome_of(deed, beat.degree).say
        if beat.degree in SUCCESSES:
            return self.prose.must(say, deed.id)
        return self._pick(say, deed.id) or self.prose.must("act.in_vain", deed.id)

    def _way(self, beat: ev.Beat) -> str:
        encounter = self.scenario.encounters[beat.about[0]]
        way = next(one for one in encounter.ways if one.id == beat.about[1])
        told = self._pick(outcome_of(way, beat.degree).say, way.id)
        if told:
            return joined(told, self.prose.pick("fight.hurt") if beat.degree == "cost" and way.cost is None else "")
        pool = "fight.hit" if beat.degree in SUCCESSES else "fight.hurt"
        return self.prose.must(pool, foe=encounter.name)

    def _flee(self, beat: ev.Beat) -> str:
        escaped = beat.degree in SUCCESSES and bool(beat.about[0])
        return self.prose.must("act.flee_good" if escaped else "act.flee_bad", place=self.scenario.name(beat.about[0]))

    def _tend(self, beat: ev.Beat) -> str:
        hero = self.scenario.heroes[beat.about[0]]
        return self.prose.must("act.tend_good" if beat.degree in SUCCESSES else "act.tend_bad", **person_slots("target", hero))

    def _rest(self, beat: ev.Beat) -> str:
        camp = self._pick(self.scenario.lines.get("camp", ()), "camp") if self.prose.once_in(2, "camp") else ""
        return joined(self.prose.must(f"act.rest_{beat.degree}"), camp)

    def _wait(self, beat: ev.Beat) -> str:
        place = self.scenario.places[self.state.where[self.actor]]
        if not self._is_leader():
            return self.prose.pick("act.wait") if self.prose.once_in(5, "wait") else ""
        return joined(self.prose.pick("act.wait"), self._pick(place.air, "air"))

    def _down(self, beat: ev.Beat) -> str:
        return self.prose.pick("act.down")

    def _hint(self, beat: ev.Beat) -> str:
        near = [choice.text for choice in offers(self.scenario, self.state, self.actor)[:_AT_HAND]]
        found = [text[:1].lower() + text[1:] for text in self.prose.order(near, "hint")[:_NAMED]]
        return self.prose.must("act.could", list=listed(found, "or")) if found else ""

    def _happening(self, beat: ev.Beat) -> str:
        one = next(one for one in self.scenario.happenings if one.id == beat.about[0])
        return self._pick(one.say, one.id)

    # -- events

    def _revealed(self, event: ev.Revealed) -> str:
        """A secret is told to those who hear this tale, and to nobody else."""
        return event.text

    def _whispered(self, event: ev.Whispered) -> str:
        """What somebody else confides is told where nobody else hears this tale; one's own words need no teller."""
        return event.text if all(ruling.is_secret for ruling in self.ask.rulings) and event.by not in self.state.party else ""

    def _started(self, event: ev.EncounterStarted) -> str:
        return self.prose.must(self.scenario.encounters[event.encounter].intro, "intro")

    def _ended(self, event: ev.EncounterEnded) -> str:
        encounter = self.scenario.encounters[event.encounter]
        outcome = {"lost": encounter.lost, "escaped": encounter.escaped}.get(event.outcome, encounter.won)
        return self._pick(outcome.say, event.outcome)

    def _wounded(self, event: ev.Wounded) -> str:
        hero = self.scenario.heroes[event.who]
        if self.state.wounds.get(event.who, 0) < DOWN or event.who in self.state.dead:
            return ""
        return self._of(hero, "fight.fall")

    def _died(self, event: ev.Died) -> str:
        hero = self.scenario.heroes.get(event.who)
        return self._of(hero, "fight.death") if hero is not None else ""

    def _of(self, hero: Hero, pool: str) -> str:
        return self.prose.must(pool, **actor_slots(hero))

    def _objective(self, event: ev.ObjectiveCompleted) -> str:
        return self._pick(self.scenario.objectives[event.objective].done, "done")

    def _act(self, event: ev.ActProgressed) -> str:
        act = next(one for one in self.scenario.acts if one.id == event.act)
        return f"\n\n{capital(act.title)}. " + " ".join(act.opening)


def _hearsay(rumour: str) -> str:
    """`They say the eels have left. Eels know things.` as what goes on after “they say that”."""
    first, *more = rumour.removeprefix("They say ").removeprefix("that ").rstrip(".").split(". ")
    return "; ".join((_lower(first), *(one[:1].lower() + one[1:] for one in more)))


def _lower(text: str) -> str:
    """A sentence that goes on inside another: `The gate is shut` as `the gate is shut`; a name keeps its capital."""
    return text[:1].lower() + text[1:] if text.split(" ", 1)[0] in _COMMON else text


_COMMON = frozenset({"The", "A", "An", "There", "Nobody", "That", "No", "You", "It", "This", "They"})
_AT_HAND, _NAMED = 6, 3
"""Of so many offers so many are named to somebody who does not know what to do."""


def _silence(narrator: Narrator, beat: ev.Beat) -> str:
    return ""


def _of_nobody(pool: str) -> Callable[[Narrator, ev.Beat], str]:
    return lambda narrator, beat: narrator.prose.must(pool)


def _of_thing(pool: str) -> Callable[[Narrator, ev.Beat], str]:
    return lambda narrator, beat: narrator.prose.must(pool, **(narrator._thing(beat.about[0]) if beat.about else {"thing": "it"}))


def _of_npc(pool: str) -> Callable[[Narrator, ev.Beat], str]:
    """A line about the one whom the beat names."""
    return lambda narrator, beat: narrator.prose.must(pool, **narrator._npc(beat.about[0]))


def _of_listener(pool: str) -> Callable[[Narrator, ev.Beat], str]:
    """The same of one who may be of the party: whoever is played by a person speaks for themselves."""
    return lambda narrator, beat: "" if beat.about[0] in narrator.ask.humans else _of_npc(pool)(narrator, beat)


_BEATS: Mapping[str, Callable[[Narrator, ev.Beat], str]] = {
    "unclear": Narrator._unclear, "rules": Narrator._rules, "wonder": _of_nobody("act.wonder"), "where": Narrator._where,
    "who": Narrator._who, "foreign": Narrator._foreign, "served": _of_npc("talk.served"), "unsold": _of_npc("talk.unsold"),
    "nowhere": Narrator._nowhere, "about": Narrator._about, "no_foe": Narrator._no_foe, "shadow": _of_npc("act.shadow"),
    "play": Narrator._perform, "pray": Narrator._perform, "dance": Narrator._perform,
    "insult": _of_npc("talk.insulted"), "empty": _of_npc("act.empty_pocket"),
    "self": Narrator._self, "carried": _silence, "here": Narrator._here, "sky": Narrator._sky,
    "present": Narrator._present,
    "banter": Narrator._banter, "say": Narrator._say, "talk": Narrator._talk, "topic": Narrator._topic, "unknown": Narrator._unknown,
    "persuade": Narrator._persuade, "threaten": Narrator._threaten, "attack": Narrator._attack, "absent": Narrator._absent,
    "promise": _of_listener("talk.vow"), "kept": _of_listener("talk.vow_kept"), "reveal": Narrator._reveal,
    "whisper": _silence, "murmur": Narrator._murmur, "owed": _silence,
    "known": _silence, "go": Narrator._go,
    "blocked": Narrator._blocked, "look": Narrator._look, "search": Narrator._search, "take": Narrator._take, "drop": _of_thing("act.drop"),
    "held": Narrator._held, "use": _of_thing("act.use_nothing"),
    "renounced": _of_listener("talk.renounced"), "give": Narrator._give, "returned": Narrator._returned,
    "caught": _of_npc("talk.caught"), "work": Narrator._work,
    "no_work": _of_npc("talk.no_work"), "deliver": Narrator._deliver, "deed": Narrator._deed, "way": Narrator._way, "flee": Narrator._flee,
    "tend": Narrator._tend, "rest": Narrator._rest, "wait": Narrator._wait, "down": Narrator._down,
    "alone": _of_nobody("act.alone"),
    "hint": Narrator._hint, "happening": Narrator._happening, "refuse": Narrator._refuses, "follow": _silence,
    "refused": _silence, "recall": Narrator._recall, "thought": _silence,
}  # fmt: skip
_EVENTS: Mapping[type[ev.Event], Callable[[Narrator, Any], str]] = {
    ev.Revealed: Narrator._revealed, ev.Whispered: Narrator._whispered,
    ev.Moved: Narrator._arrived, ev.EncounterStarted: Narrator._started, ev.EncounterEnded: Narrator._ended, ev.Wounded: Narrator._wounded,
    ev.Died: Narrator._died, ev.ObjectiveCompleted: Narrator._objective, ev.ActProgressed: Narrator._act,
}  # fmt: skip
