"""Rulings on what is done with places and things, on deeds of the pack, on encounters, and on errands."""

from __future__ import annotations

from dataclasses import replace

from talekeeper.table.meaning.spelling import words_of
from talekeeper.table.meaning.understand import Intent, goal_of
from talekeeper.table.rules import contest
from talekeeper.table.rules.conditions import commands_for, ways_out
from talekeeper.table.rules.handlers import STORYTELLER
from talekeeper.table.rules.settling import settle
from talekeeper.table.shown.choices import ERRAND, Errand, errands, ways_here
from talekeeper.table.shown.prose import capital, definite
from talekeeper.table.storyteller.case import Case, Ruled
from talekeeper.table.storyteller.dealings import say
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command
from talekeeper.table.world.phrases import errand_things
from talekeeper.table.world.scenario import Exit, Mark, Npc

_OUT = frozenset({"leave", "out", "outside", "exit", "depart"})

# -- places ------------------------------------------------------------------------------------------------------------


def go(case: Case, intent: Intent) -> Ruled:
    """All the way there, unless something lies in wait on it."""
    if not intent.place and not intent.npc and _OUT & set(words_of(intent.words)):
        intent = replace(intent, place=next((exit.to for exit, is_open in ways_out(case.state, case.scenario, case.place) if is_open), ""))
    if not intent.place and goal_of(intent.words) and not (intent.npc or intent.detail or intent.item):
        return Ruled("No way there.", [case.beat("nowhere")])
    if not intent.place or intent.place == case.place:
        return look(case, intent)
    path = case.path(intent.place)
    if not path:
        shut = any(exit.to == intent.place and exit.blocked for exit in case.scenario.places[case.place].exits)
        return Ruled("No way there.", [case.beat("blocked", intent.place, degree="shut" if shut else "far")])
    found, state = list[Command](), case.state
    for step in path:
        found.append(cm.ChangeLocation(step))
        state = settle(state, case.scenario, [cm.ChangeLocation(step)], case.actor).state
        if contest.due(case.scenario, state, case.actor) is not None:
            break
    places = case.scenario.places
    far: list[Command] = [cm.PassTime()] if places[case.place].region != places[state.where[case.actor]].region else []
    reached = state.where[case.actor]
    return Ruled(f"They go to {case.name(reached)}.", [case.beat("go", case.place, reached), *found, *far])


def look(case: Case, intent: Intent) -> Ruled:
    npc = case.npc(intent.npc)
    seen = [(kind, id) for kind, id in (("detail", intent.detail), ("item", intent.item), ("npc", npc.id if npc else "")) if id]
    return Ruled("No roll.", [case.beat("look", *(seen or [("place", "")])[0])])


def search(case: Case, intent: Intent) -> Ruled:
    if intent.detail:
        return look(case, intent)
    lying = case.state.lying(case.place)
    return case.pick_up(lying[0]) if lying else Ruled("No roll. Nothing to find.", [case.beat("search")])


def rest(case: Case, intent: Intent) -> Ruled:
    shelter = case.scenario.places[case.place].shelter
    hurt = [one for one in case.state.company(case.actor) if case.state.wounds.get(one, 0)]
    mended = [cm.Mend(one, 2 if shelter else 1) for one in hurt]
    return Ruled("They rest.", [case.beat("rest", degree="shelter" if shelter else "rough"), *mended, cm.PassTime(2)])


def follow(case: Case, intent: Intent) -> Ruled:
    if case.leads and (npc := case.npc(intent.npc)) is not None:
        return Ruled("No roll.", [case.beat("shadow", npc.id), case.met(npc)])
    if case.leads and not intent.hero:
        return search(case, intent)  # a trail, a sign, a sound: one sees where it leads
    return Ruled("No roll.", [case.beat("follow")])


def perform(case: Case, intent: Intent) -> Ruled:
    """A song or a prayer that the pack makes nothing of is still heard."""
    if {"ring", "toll", "bell"} & set(words_of(intent.words)):
        return case.nothing()  # that wants a bell, and the pack says where there is one
    what = "pray" if intent.verb == "pray" else "dance" if "dance" in words_of(intent.words) else "play"
    return Ruled("No roll. It is heard.", [case.beat(what)])


def wait(case: Case, intent: Intent) -> Ruled:
    return Ruled("No roll. Time passes.", [case.beat("wait")])


# -- deeds and encounters ----------------------------------------------------------------------------------------------


def deed(case: Case, intent: Intent) -> Ruled:
    """Something that the pack foresees."""
    one = next((one for one in case.scenario.deeds if one.id == intent.deed), None)
    if one is None:
        return case.nothing()
    seen = case.try_deed(one)
    outcome, secretly = contest.outcome_of(one, seen.degree), one.secretly or case.secretly
    found = [case.beat("deed", one.id, degree=seen.degree, secretly=secretly)]
    if secretly and outcome.say:
        found.append(cm.Whisper((case.actor,), case.prose.must(outcome.say, one.id), one.npc or STORYTELLER))
    if seen.succeeded:
        found.append(cm.SetFlag(f"did.{one.id}"))
    found += commands_for(outcome.do, case.state, case.scenario, case.actor, secretly=secretly)
    if seen.degree == "cost" and one.cost is None:
        found.append(cm.PassTime())
    mark = one.mark if seen.succeeded and not secretly else None
    return Ruled(seen.text, found, mark or case.critical(seen, one))


def way(case: Case, intent: Intent) -> Ruled:
    """A way through the encounter that is going on."""
    encounter = case.scenario.encounters[case.state.encounter]
    one = next((one for one in encounter.ways if one.id == intent.deed), None)
    if one is None:
        return case.nothing()
    seen = case.try_deed(one)
    found = contest.fight(case.scenario, case.state, case.actor, one, seen)
    return Ruled(seen.text, [case.beat("way", encounter.id, one.id, degree=seen.degree), *found], case.critical(seen, one))


def way_by_verb(case: Case, intent: Intent) -> Ruled:
    """In an encounter everything is a way through it: the one whose verb fits, else the first for whoever fights, else a way out."""
    ways = ways_here(case.state, case.scenario, case.actor)
    fitting = [one for one in ways if intent.verb in one.verbs]
    if not fitting and intent.verb == "go":
        return flee(case, intent)
    if not fitting and intent.verb not in ("attack", "use", "break", "threaten"):
        return Ruled("No roll. It is not the moment.", [case.beat("nothing")])
    return way(case, Intent("way", deed=(fitting or ways)[0].id)) if ways else case.nothing()


def flee(case: Case, intent: Intent) -> Ruled:
    if not case.state.encounter:
        return go(case, intent) if intent.place else Ruled("No roll. Nothing to flee from.", [case.beat("no_foe")])
    seen = case.check("grace", 8, "flee")
    found = contest.flee(case.scenario, case.state, case.actor, seen)
    goal = next((one.to for one in found if isinstance(one, cm.ChangeLocation)), "")
    return Ruled(seen.text, [case.beat("flee", goal, degree=seen.degree), *found])


def help_someone(case: Case, intent: Intent) -> Ruled:
    """Wounds are tended; a cry for help that names nobody wants advice."""
    hurt = [one for one in case.state.company(case.actor) if case.state.wounds.get(one, 0) > 0]
    target = intent.hero if intent.hero in hurt else next((one for one in hurt if one != case.actor), "")
    if not target or intent.npc:
        return case.nothing() if intent.npc or intent.hero else Ruled("No roll.", [case.beat("hint")])
    seen = case.check("wits", 8, f"tend/{target}")
    return Ruled(seen.text, [case.beat("tend", target, degree=seen.degree), *([cm.Mend(target)] if seen.succeeded else [])])


# -- things ------------------------------------------------------------------------------------------------------------


def take(case: Case, intent: Intent) -> Ruled:
    holder = case.state.items.get(intent.item, "")
    if not intent.item:
        return search(case, intent)
    if holder == f"@{case.place}":
        return case.pick_up(intent.item)
    if holder in case.state.company(case.actor):
        return Ruled("No roll.", [case.beat("held", intent.item, holder)])
    npc = case.npc(holder)
    return Ruled(f"{npc.name} keeps it.", [case.beat("refuse", npc.id), case.met(npc)]) if npc is not None else case.nothing()


def steal(case: Case, intent: Intent) -> Ruled:
    npc = case.npc(case.state.items.get(intent.item, "")) or case.meant(intent)
    held = case.state.holds(npc.id) if npc is not None else ()
    item = intent.item if npc is None or intent.item in held else next(iter(held), "")
    if npc is not None and not item:
        seen = case.check("grace", npc.difficulty, f"steal/{npc.id}")
        found = (
            [case.beat("empty", npc.id)] if seen.succeeded else [case.beat("caught", npc.id), cm.ChangeRelationship(npc.id, -2, case.actor)]
        )
        return Ruled(seen.text, found)
    if npc is None or case.state.items.get(item) != npc.id:
        return take(case, intent)
    seen = case.check("grace", npc.difficulty, f"steal/{item}")
    if not seen.succeeded:
        return Ruled(seen.text, [case.beat("caught", npc.id), cm.ChangeRelationship(npc.id, -2, case.actor)])
    whisper = cm.Whisper((case.actor,), f"{capital(definite(case.name(item)))} is yours now, and nobody saw.", STORYTELLER)
    return Ruled(seen.text, [case.beat("alone", secretly=True), cm.GainItem(item, case.actor, secretly=True), whisper])


def give(case: Case, intent: Intent) -> Ruled:
    npc = case.npc(intent.npc)
    target = intent.hero or (npc.id if npc is not None else "")
    if not intent.item or not target:
        return case.missing(intent) if intent.npc and npc is None else case.nothing()
    handed = cm.GiveItem(intent.item, target, case.actor)
    holder = case.state.items.get(intent.item)
    if holder != case.actor:
        with_us = holder in case.state.company(case.actor)
        return Ruled("Not theirs to give.", [case.beat("held", intent.item, str(holder))] if with_us else [case.beat("refused"), handed])
    errand = next((one for one in errands(case.state, case.scenario) if (one.thing, one.target) == (intent.item, target)), None)
    if errand is not None:
        return _deliver(case, errand)
    if npc is not None and intent.item in case.scenario.items:
        return Ruled("Not wanted.", [case.beat("returned", npc.id, intent.item)])
    liked = [cm.ChangeRelationship(target, 1, case.actor)] if npc is not None else []
    return Ruled("It changes hands.", [case.beat("give", intent.item, target), handed, *liked])


def use(case: Case, intent: Intent) -> Ruled:
    near = (*case.state.company(case.actor), f"@{case.place}")
    if case.state.items.get(intent.item) not in near:
        return case.nothing()
    opened = [exit for exit, is_open in ways_out(case.state, case.scenario, case.place) if is_open and _is_key(intent.item, exit)]
    if opened:
        return go(case, replace(intent, verb="go", place=opened[0].to))
    return Ruled("No roll. Nothing comes of it.", [case.beat("use", intent.item)])


def _is_key(item: str, exit: Exit) -> bool:
    """Whether a way is open to those who have the thing."""
    return any(clause.verb == "has" and clause.args == (item,) for condition in exit.when for clause in condition)


def drop(case: Case, intent: Intent) -> Ruled:
    if case.state.items.get(intent.item) != case.actor:
        return case.nothing()
    return Ruled("Left behind.", [case.beat("drop", intent.item), cm.LoseItem(intent.item, case.actor, dropped=True)])


# -- errands -----------------------------------------------------------------------------------------------------------


def work(case: Case, intent: Intent) -> Ruled:
    """An errand, if this one has any: something to be carried to somebody else."""
    npc = case.meant(intent)
    if npc is None:
        return say(case, intent) if intent.hero else case.missing(intent)
    busy = any(one.sender == npc.id for one in errands(case.state, case.scenario))
    things = [thing for thing in errand_things() if case.state.items.get(thing, npc.id) == npc.id]
    targets = _addressees(case, npc)
    if busy or not things or not targets or not npc.errands or case.state.feels(npc.id, case.actor) < 0:
        return Ruled("No work.", [case.beat("no_work", npc.id), case.met(npc)])
    thing, target = case.prose.order(things, "thing")[0], targets[case.prose.chance(len(targets), "target")]
    promised = f"to bring {definite(case.name(thing))} to {target.name}"
    promise = cm.MakePromise(f"{ERRAND}.{thing}.{target.id}.{case.prose.round}", npc.id, promised, case.actor)
    return Ruled("An errand.", [case.beat("work", npc.id, thing, target.id), case.met(npc), cm.GainItem(thing, case.actor), promise])


def _addressees(case: Case, sender: Npc) -> list[Npc]:
    alive = (one for one in case.scenario.npcs.values() if one.errands and one.id != sender.id and one.id not in case.state.dead)
    return [one for one in alive if case.path(case.state.where[one.id])]


def _deliver(case: Case, errand: Errand) -> Ruled:
    thing, sender, target = (case.name(one) for one in (errand.thing, errand.sender, errand.target))
    found = [case.beat("deliver", errand.thing, errand.target, errand.sender), cm.GiveItem(errand.thing, errand.target, case.actor)]
    thanks = [one for one in (errand.target, errand.sender) if one not in case.state.dead]
    found += [cm.KeepPromise(errand.promise), *(cm.ChangeRelationship(one, 1, case.actor) for one in thanks)]
    return Ruled("Delivered.", found, Mark(type="achievement", summary=f"carried {definite(thing)} from {sender} to {target}", weight=0.3))
