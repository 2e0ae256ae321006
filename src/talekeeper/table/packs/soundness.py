"""Whether a pack that reads well can also be played: everything named is there, and everything that should come true can.

References are checked one by one. Then the pack is played through in the abstract, from its beginning, with all heroes at the table and
everything that was ever possible staying so: what cannot be reached even then can never be reached.

What everybody reads of an action must fit whoever acts. It is proofread for that, and does not keep a pack from being played.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator

from talekeeper.table.rules.conditions import begin
from talekeeper.table.rules.ledger import QUOTED
from talekeeper.table.rules.plan import FAR, Outlook, facts
from talekeeper.table.world.language import CONDITIONS, EFFECTS, Condition, Effect, read_line, references
from talekeeper.table.world.scenario import Deed, Scenario

Note = Callable[[str, str], None]
_KINDS = {"item": "items", "npc": "npcs", "secret": "secrets", "objective": "objectives", "quest": "quests", "place": "places",
          "encounter": "encounters", "promise": "vows", "hero": "heroes"}  # fmt: skip
_SAID = (("at_", "place"), ("to_", "person"))
"""What the names of a hero's lines may end with."""
_SLOTS = frozenset({"who", "they", "them", "their", "theirs", "who_they", "who_them", "who_their", "who_theirs", "party", "other"})
"""What is filled in where it is told what somebody did: see `shown.prose`."""
_SLOT = re.compile(r"\{([^{}|/~^]*)\}")
_YOU = re.compile(r"\byou(?:r|rs|rself|rselves)?\b", re.I)


def examine(pack: Scenario, note: Note) -> None:
    """Notes everything that is wrong. Playing through makes sense only where all names are right."""
    count = 0

    def noting(where: str, message: str) -> None:
        nonlocal count
        count += 1
        note(where, message)

    _names(pack, noting)
    _links(pack, noting)
    for where, conditions, effects in clauses_of(pack):
        _clauses(pack, where, conditions, effects, noting)
    _flags(pack, noting)
    _slots(pack, noting)
    if not count:
        _reach(pack, noting)


def proofread(pack: Scenario, note: Note) -> None:
    """Notes what says “you” of the one who acts, and is read by everybody."""
    for where, texts in _told_of_one(pack):
        if found := next((found for text in texts if (found := _YOU.search(QUOTED.sub("", text)))), None):
            note(where, f"says “{found[0]}” of whoever acts, and everybody reads it: write {{who}}, or words that fit any hero")


def _told_of_one(pack: Scenario) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts that tell what one did, or how one was answered, with their places in the file."""
    for where, deed in _deeds(pack):
        outcomes = {"say": deed.success, "cost_say": deed.cost, "fail_say": deed.failure}
        yield from ((f"{where}.{key}", one.say) for key, one in outcomes.items() if one is not None)
    for npc in pack.npcs.values():
        where = f"npcs.{npc.id}"
        yield from ((f"{where}.{key}", getattr(npc, key)) for key in ("cold", "greet", "warm", "refuse"))
        yield from ((f"{where}.topics.{one.id}.{key}", getattr(one, key)) for one in npc.topics for key in ("say", "again"))


def _deeds(pack: Scenario) -> Iterator[tuple[str, Deed]]:
    """All that can be done, ways through encounters too."""
    yield from ((f"deeds.{deed.id}", deed) for deed in pack.deeds)
    for encounter in pack.encounters.values():
        yield from ((f"encounters.{encounter.id}.ways.{deed.id}", deed) for deed in encounter.ways)


def clauses_of(pack: Scenario) -> Iterator[tuple[str, tuple[Condition, ...], tuple[Effect, ...]]]:
    """Every condition and effect of a pack, with its place in the file."""
    for npc in pack.npcs.values():
        yield from ((f"npcs.{npc.id}.topics.{topic.id}", topic.when, topic.do) for topic in npc.topics)
    for encounter in pack.encounters.values():
        yield f"encounters.{encounter.id}", encounter.when, (*encounter.won.do, *encounter.lost.do, *encounter.escaped.do)
    for where, deed in _deeds(pack):
        yield where, deed.when, tuple(effect for one in (deed.success, deed.cost, deed.failure) if one is not None for effect in one.do)
    for place in pack.places.values():
        yield from ((f"places.{place.id}.exits[{number}]", exit.when, ()) for number, exit in enumerate(place.exits))
    yield from ((f"happenings.{one.id}", one.when, one.do) for one in pack.happenings)
    yield from ((f"objectives.{one.id}", path.when, ()) for one in pack.objectives.values() for path in one.paths)
    yield from ((f"acts.{one.id}", one.until, ()) for one in pack.acts)
    yield from ((f"endings.{one.id}", one.when, ()) for one in pack.endings)
    yield from ((where, read_line(line)[0], ()) for where, line in conditional_lines(pack))


def conditional_lines(pack: Scenario) -> Iterator[tuple[str, str]]:
    """The lines that may have conditions before them, with their places in the file."""
    for place in pack.places.values():
        yield from ((f"places.{place.id}", line) for line in (*place.look, *place.again, *place.air))
    for npc in pack.npcs.values():
        yield from ((f"npcs.{npc.id}", line) for line in (*npc.cold, *npc.greet, *npc.warm, *npc.idle))
    yield from ((f"acts.{act.id}.signs", line) for act in pack.acts for line in act.signs)
    yield from ((f"lines.{name}", line) for name, lines in pack.lines.items() for line in lines)
    yield from (("scenario.rumours", line) for line in pack.rumours)


# -- names -------------------------------------------------------------------------------------------------------------


def _names(pack: Scenario, note: Note) -> None:
    """People, places and things share one set of ids; nobody shares a name or an alias within a kind."""
    owner: dict[str, str] = {}
    for kind in ("places", "npcs", "heroes", "items"):
        for id in getattr(pack, kind):
            if id in owner:
                note(f"{kind}.{id}.id", f"{id!r} is the id of one of the {owner[id]} too")
            owner[id] = kind
    for kinds in (("places",), ("items",), ("npcs", "heroes")):
        taken: dict[str, str] = {}
        for kind in kinds:
            for one in getattr(pack, kind).values():
                for name in dict.fromkeys(name.casefold() for name in one.names):
                    if name in taken:
                        note(f"{kind}.{one.id}.aliases", f"{name!r} is also a name of {taken[name]!r}: nobody could tell them apart")
                    taken[name] = one.id


def _known(pack: Scenario, kind: str, id: str, where: str, note: Note) -> None:
    if kind == "person":
        if id not in pack.npcs and id not in pack.heroes:
            note(where, f"there is nobody {id!r}{_hint(id, (*pack.npcs, *pack.heroes))}")
    elif kind in _KINDS and id not in getattr(pack, _KINDS[kind]):
        note(where, f"there is no {kind} {id!r}{_hint(id, getattr(pack, _KINDS[kind]))}")
    elif kind == "act" and not pack.act_number(id):
        note(where, f"there is no act {id!r}{_hint(id, [act.id for act in pack.acts])}")
    elif kind == "ending" and id not in {one.id for one in pack.endings}:
        note(where, f"there is no ending {id!r}{_hint(id, [one.id for one in pack.endings])}")


def _hint(id: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(id, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _clauses(pack: Scenario, where: str, conditions: Iterable[Condition], effects: Iterable[Effect], note: Note) -> None:
    named = [pair for condition in conditions for clause in condition for pair in references(clause, CONDITIONS)]
    named += [pair for effect in effects for pair in references(effect, EFFECTS)]
    for kind, id in named:
        _known(pack, kind, id, where, note)


def _links(pack: Scenario, note: Note) -> None:
    """What is named outside of conditions and effects."""
    wanted: list[tuple[str, str, str]] = [("place", pack.start, "scenario.start")]
    wanted += [
        ("place", exit.to, f"places.{place.id}.exits[{n}].to") for place in pack.places.values() for n, exit in enumerate(place.exits)
    ]
    wanted += [("place", npc.place, f"npcs.{npc.id}.place") for npc in pack.npcs.values()]
    wanted += [("place", item.at, f"items.{item.id}.at") for item in pack.items.values() if item.at]
    wanted += [("person", item.held, f"items.{item.id}.held") for item in pack.items.values() if item.held]
    wanted += [("person", who, f"secrets.{one.id}.known") for one in pack.secrets.values() for who in one.known]
    wanted += [("npc", vow.to, f"vows.{vow.id}.to") for vow in pack.vows.values()]
    wanted += [("quest", one.quest, f"objectives.{one.id}.quest") for one in pack.objectives.values()]
    wanted += [("act", one.act, f"objectives.{one.id}.act") for one in pack.objectives.values()]
    wanted += [("place", at, f"deeds.{one.id}.at") for one in pack.deeds for at in one.at]
    wanted += [("npc", one.npc, f"deeds.{one.id}.npc") for one in pack.deeds if one.npc]
    for hero in pack.heroes.values():
        said = [(kind, name.removeprefix(prefix), name) for name in hero.says for prefix, kind in _SAID if name.startswith(prefix)]
        wanted += [(kind, id, f"heroes.{hero.id}.says.{name}") for kind, id, name in said]
    wanted += [("place", at, f"encounters.{one.id}.at") for one in pack.encounters.values() for at in one.at]
    wanted += [("place", at, f"happenings.{one.id}.at") for one in pack.happenings for at in one.at]
    for kind, id, where in wanted:
        _known(pack, kind, id, where, note)
    regions = {place.region for place in pack.places.values()}
    for one in pack.happenings:
        for region in one.regions:
            if region not in regions:
                note(f"happenings.{one.id}.regions", f"no place is in the region {region!r}{_hint(region, regions)}")
    for weather in pack.weathers:
        if f"weather_{weather}" not in pack.lines:
            note("scenario.weathers", f"the lines have no pool 'weather_{weather}'")


def _flags(pack: Scenario, note: Note) -> None:
    tied, asked = dict[str, str](), dict[str, str]()
    for where, conditions, effects in clauses_of(pack):
        asked |= {clause.args[0]: where for condition in conditions for clause in condition if clause.verb == "flag"}
        tied |= {effect.args[0]: where for effect in effects if effect.verb == "flag"}
    for flag in sorted(asked.keys() - tied.keys()):
        note(asked[flag], f"no effect ever sets the flag {flag!r}{_hint(flag, tied)}")
    for flag in sorted(tied.keys() - asked.keys()):
        note(tied[flag], f"nothing asks for the flag {flag!r}{_hint(flag, asked)}")


def _slots(pack: Scenario, note: Note) -> None:
    for where, texts in _told_of_one(pack):
        for slot in dict.fromkeys(slot for text in texts for slot in _SLOT.findall(text)):
            if (name := slot[:1].lower() + slot[1:]) not in _SLOTS:
                note(where, f"a text with the slot {slot!r} is never told: there is none of that name{_hint(name, _SLOTS)}")


# -- playing through ---------------------------------------------------------------------------------------------------


def _reach(pack: Scenario, note: Note) -> None:
    view = Outlook(pack, facts(begin(pack, pack.heroes), pack))
    for place in pack.places:
        if f"at {place}" not in view.cost:
            note(f"places.{place}", "cannot be reached from where the story starts")
    for objective in pack.objectives.values():
        for path in objective.paths:
            if view.far(path.when) >= FAR:
                note(f"objectives.{objective.id}", f"cannot be completed{_why(view, path.when)}")
    for act in pack.acts[:-1]:
        if view.far(act.until) >= FAR:
            note(f"acts.{act.id}.until", f"this act can never end{_why(view, act.until)}")
    for ending in pack.endings:
        if not any(clause.verb == "lost" for condition in ending.when for clause in condition) and view.far(ending.when) >= FAR:
            note(f"endings.{ending.id}.when", f"can never be reached{_why(view, ending.when)}")
    for npc in pack.npcs.values():
        for topic in npc.topics:
            if view.far(topic.when) >= FAR:
                note(f"npcs.{npc.id}.topics.{topic.id}.when", f"can never be talked about{_why(view, topic.when)}")
    for deed in pack.deeds:
        if view.far(deed.when) >= FAR:
            note(f"deeds.{deed.id}.when", f"can never be done{_why(view, deed.when)}")
    for encounter in pack.encounters.values():
        if view.far(encounter.when) >= FAR:
            note(f"encounters.{encounter.id}.when", f"can never happen{_why(view, encounter.when)}")
    for secret in pack.secrets.values():
        if not secret.known and f"knows {secret.id}" not in view.cost:
            note(f"secrets.{secret.id}", "nobody knows it and nobody can learn it")
    for item in pack.items.values():
        if not item.at and not item.held and f"has {item.id}" not in view.cost:
            note(f"items.{item.id}", "lies nowhere, belongs to nobody and cannot be gained")


def _why(view: Outlook, conditions: Iterable[Condition]) -> str:
    missing = [condition for condition in conditions if view.far((condition,)) >= FAR]
    return f": {' | '.join(' '.join((clause.verb, *clause.args)) for clause in missing[0])!r} never comes true" if missing else ""
