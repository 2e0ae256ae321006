"""Rulings on what is done with people: talk, questions, charm, threats, blows, promises, secrets."""

from __future__ import annotations

import re

from talekeeper.table.meaning.pledges import is_meant, promised
from talekeeper.table.meaning.questions import WHISPERED
from talekeeper.table.meaning.spelling import mention, words_of
from talekeeper.table.meaning.understand import Intent
from talekeeper.table.meaning.verbs import is_served
from talekeeper.table.rules.conditions import commands_for, holds
from talekeeper.table.rules.handlers import STORYTELLER
from talekeeper.table.shown.choices import told
from talekeeper.table.shown.prose import listed
from talekeeper.table.storyteller.case import Case, Ruled
from talekeeper.table.world import commands as cm
from talekeeper.table.world.commands import Command
from talekeeper.table.world.scenario import Mark, Npc, Topic

LETHAL = frozenset({"kill", "murder", "slay", "execute", "assassinate"})


def say(case: Case, intent: Intent) -> Ruled:
    """Words without a deed. Whoever leads is answered; a companion's remark is for everyone and for nobody, unless it names someone."""
    npc = _listener(case, intent)
    if intent.hero or npc is None or not (case.leads or _is_for(npc, intent.words)):
        return Ruled("No roll. It is heard.", [case.beat("banter", intent.hero)])
    return Ruled("No roll. It is heard.", [case.beat("say", npc.id), case.met(npc)])


def _listener(case: Case, intent: Intent) -> Npc | None:
    """Whoever is spoken to. Where whoever leads names nobody, the first who is here listens."""
    return case.npc(intent.npc) or next(iter(case.people if case.leads else ()), None)


def _is_for(npc: Npc, words: str) -> bool:
    """Whether someone is spoken to, and not of: their name begins or ends what is said, behind or before a comma."""
    names = "|".join(re.escape(name) for name in npc.names)
    return bool(re.search(rf"^\W*(?:{names}),|,\s+(?:{names})\W*$", words))


def talk(case: Case, intent: Intent) -> Ruled:
    npc = case.meant(intent)
    if npc is None:
        return case.missing(intent) if intent.npc else say(case, intent)
    times = case.state.flags.get(f"talk.{npc.id}", 0) + 1
    return Ruled(f"{npc.name} answers.", [case.beat("talk", npc.id), case.met(npc), cm.SetFlag(f"talk.{npc.id}", times)])


def wonder(case: Case, intent: Intent) -> Ruled:
    """A question that no topic answers."""
    npc = _listener(case, intent)
    if intent.hero or npc is None:
        return Ruled("No roll. It is heard.", [case.beat("banter" if intent.hero or not case.leads else "wonder", intent.hero)])
    return Ruled(f"{npc.name} cannot say.", [case.beat("unknown", npc.id), case.met(npc)])


def recall(case: Case, intent: Intent) -> Ruled:
    """What one told somebody: as far as they heard it, and everyone may hear it who stands by. What was whispered nobody says aloud,
    and that does not depend on whether anything was."""
    npc = None if intent.hero and not intent.npc else _listener(case, intent)
    if npc is None and not intent.hero:
        return wonder(case, intent)
    aloud = "quietly" if not case.secretly and WHISPERED.search(intent.words) else ""
    beat = case.beat("recall", npc.id if npc is not None else intent.hero, degree=aloud)
    return Ruled(f"{case.name(npc.id if npc is not None else intent.hero)} thinks back.", [beat, *([case.met(npc)] if npc else [])])


def where(case: Case, intent: Intent) -> Ruled:
    """Where somebody or some place is: whoever lives here knows, else one looks about for oneself."""
    goal = intent.place or case.state.where.get(intent.npc, "")
    npc = next((one for one in case.people if one.id != intent.npc), None)
    if not goal or intent.npc in case.state.dead:
        return case.missing(intent) if intent.npc else wonder(case, intent)
    path = case.path(goal)
    told_of = {"by": npc.id if npc is not None else "", "whom": intent.npc, "at": goal, "first": path[0] if path else ""}
    beat = case.beat("where", *(f"{name} {value}" for name, value in told_of.items() if value))
    return Ruled("No roll.", [beat, *([case.met(npc)] if npc is not None else [])])


def who(case: Case, intent: Intent) -> Ruled:
    npc = case.meant(intent) or next(iter(case.people), None)
    if npc is None:
        return case.missing(intent) if intent.npc else wonder(case, intent)
    return Ruled(f"{npc.name} answers.", [case.beat("who", npc.id), case.met(npc)])


def about(case: Case, intent: Intent) -> Ruled:
    """Who somebody is: whoever stands by can say that much."""
    others = [one for one in case.people if one.id != intent.npc]
    npc = next((one for one in others if mention(words_of(intent.words), one.names)), next(iter(others), None))
    if npc is None:
        return look(case, intent) if case.npc(intent.npc) is not None else wonder(case, Intent("wonder"))
    return Ruled(f"{npc.name} answers.", [case.beat("about", npc.id, intent.npc), case.met(npc)])


def look(case: Case, intent: Intent) -> Ruled:
    return Ruled("No roll.", [case.beat("look", "npc", intent.npc)])


def oneself(case: Case, intent: Intent) -> Ruled:
    """Who one is, where one is: nobody has to be asked for that."""
    return Ruled("No roll.", [case.beat(intent.verb, case.actor)])


def carried(case: Case, intent: Intent) -> Ruled:
    """What one carries. One feels for it: not everyone who stands by saw it come into the pocket."""
    things = listed([case.name(item) for item in case.state.holds(case.actor)])
    return _comes_to_mind(case, "carried", case.prose.must("act.carried" if things else "act.empty_hands", thing=things))


def owed(case: Case, intent: Intent) -> Ruled:
    """What one has promised, to someone or at all. It comes to one's mind: not everyone who stands by heard it."""
    whom = intent.npc or intent.hero
    given = [one for one in case.state.promises.values() if one.by == case.actor and whom in ("", one.to)]
    words = [f"to {case.name(one.to)}, {one.text} ({one.state})" for one in given]
    nothing = {"whom": case.name(whom) if whom else "anybody"}
    answer = case.prose.must("act.owed", list="; ".join(words)) if words else case.prose.must("act.owes_nothing", **nothing)
    return _comes_to_mind(case, "owed", answer)


def known(case: Case, intent: Intent) -> Ruled:
    """What one has learned that not everyone knows."""
    learned = [secret.text for secret in case.scenario.secrets.values() if case.actor in case.state.knows.get(secret.id, ())]
    answer = case.prose.must("act.known", list=" ".join(learned)) if learned else case.prose.must("act.knows_nothing")
    return _comes_to_mind(case, "known", answer)


def _comes_to_mind(case: Case, verb: str, answer: str) -> Ruled:
    """Something that nobody but the one who asks gets to know."""
    return Ruled("No roll.", [case.beat(verb, case.actor, secretly=True), cm.Whisper((case.actor,), answer, STORYTELLER)])


def foreign(case: Case, intent: Intent) -> Ruled:
    """Words in a language that nobody here has."""
    npc = case.npc(intent.npc) or next(iter(case.people), None)
    return Ruled("No roll. It is heard.", [case.beat("foreign", npc.id if npc is not None else "")])


def order(case: Case, intent: Intent) -> Ruled:
    """What lies here is bought by taking it; a drink is a drink; otherwise it is a matter of business."""
    if case.state.items.get(intent.item) == f"@{case.place}":
        return case.pick_up(intent.item)
    npc = case.meant(intent) or next(iter(case.people), None)
    if npc is None:
        return case.missing(intent) if intent.npc else case.nothing()
    served = is_served(words_of(intent.words))
    return Ruled("No roll.", [case.beat("served" if served else "unsold", npc.id), case.met(npc)])


def ask(case: Case, intent: Intent) -> Ruled:
    if not case.leads and not intent.npc:
        return say(case, intent)
    npc = case.meant(intent)
    if npc is None:
        return case.missing(intent) if intent.npc else say(case, intent)
    topic = next((one for one in npc.topics if one.id == intent.topic), None)
    if topic is None:
        return Ruled(f"{npc.name} cannot say.", [case.beat("unknown", npc.id), case.met(npc)])
    if not case.leads and not intent.asks:
        return say(case, intent)
    if told(case.state, npc.id, topic, case.actor):
        return Ruled(f"{npc.name} has said so before.", [case.beat("topic", npc.id, topic.id, degree="again")])
    if case.state.feels(npc.id, case.actor) < topic.attitude:
        return Ruled(f"{npc.name} will not say, not yet.", [case.beat("topic", npc.id, topic.id, degree="closed"), case.met(npc)])
    return tell(case, npc, topic)


def tell(case: Case, npc: Npc, topic: Topic) -> Ruled:
    """An NPC says what they know; in secret, into one ear."""
    secretly = topic.secretly or case.secretly
    mark = f"told.{npc.id}/{topic.id}" + (f"/{case.actor}" if secretly else "")
    found = [case.beat("topic", npc.id, topic.id, degree="new", secretly=secretly), cm.SetFlag(mark), case.met(npc)]
    if secretly:
        found.append(cm.Whisper((case.actor,), case.prose.must(topic.say, topic.id), npc.id))
    found += commands_for(topic.do, case.state, case.scenario, case.actor, secretly=secretly)
    return Ruled(f"{npc.name} tells.", found, None if secretly else topic.mark)


def persuade(case: Case, intent: Intent) -> Ruled:
    npc = case.meant(intent)
    if npc is None:
        return say(case, intent) if intent.hero else case.missing(intent)
    seen = case.check("heart", max(6, 8 - case.state.feels(npc.id, case.actor)), f"persuade/{npc.id}")
    found = [case.beat("persuade", npc.id, degree=seen.degree), case.met(npc)]
    if seen.succeeded:
        found.append(cm.ChangeRelationship(npc.id, 1, case.actor))
    elif seen.degree == "awful":
        found.append(cm.ChangeRelationship(npc.id, -1, case.actor))
    return Ruled(seen.text, found)


def insult(case: Case, intent: Intent) -> Ruled:
    """Words that hurt are remembered; said to nobody in particular they are only words."""
    npc = case.meant(intent) or (next(iter(case.people if case.leads else ()), None) if not (intent.npc or intent.hero) else None)
    if npc is None:
        return case.missing(intent) if intent.npc else say(case, intent)
    return Ruled(f"{npc.name} heard that.", [case.beat("insult", npc.id), case.met(npc), cm.ChangeRelationship(npc.id, -1, case.actor)])


def threaten(case: Case, intent: Intent) -> Ruled:
    """Fear opens a mouth that trust has not, and closes everything else."""
    npc = case.meant(intent)
    if npc is None:
        return say(case, intent) if intent.hero else case.missing(intent)
    seen = case.check("might", npc.difficulty, f"threaten/{npc.id}")
    found = [case.beat("threaten", npc.id, degree=seen.degree), case.met(npc), cm.ChangeRelationship(npc.id, -2, case.actor)]
    open_topics = (one for one in npc.topics if holds(one.when, case.state, case.scenario, case.actor))
    kept = next((one for one in open_topics if not told(case.state, npc.id, one, case.actor)), None)
    return Ruled(seen.text, found + tell(case, npc, kept).commands if seen.succeeded and kept is not None else found)


def attack(case: Case, intent: Intent) -> Ruled:
    """Violence against someone who is not fighting: everyone who sees it remembers."""
    npc = case.npc(intent.npc)
    if npc is None:
        return case.missing(intent) if intent.npc else Ruled("No roll. Nobody to fight.", [case.beat("no_foe")])
    seen = case.check("might", npc.difficulty, f"attack/{npc.id}")
    lethal = npc.mortal and bool(LETHAL & set(words_of(intent.words))) and seen.succeeded
    found = [case.beat("attack", npc.id, degree="kill" if lethal else seen.degree)]
    found += [cm.ChangeRelationship(one.id, -3, who) for one in case.people for who in case.state.company(case.actor)]
    if not seen.succeeded or seen.degree == "cost":
        found.append(cm.Wound(case.actor))
    if not lethal:
        return Ruled(seen.text, found)
    found.append(cm.Kill(npc.id, f"killed by {case.name(case.actor)}"))
    return Ruled(seen.text, found, Mark(type="turning_point", summary=f"killed {npc.name}", weight=0.9))


def promise(case: Case, intent: Intent) -> Ruled:
    """A promise that the pack foresees, or one in the player's own words. Made to nobody by name, whoever listens holds one to it."""
    npc = _listener(case, intent) if not (intent.npc or intent.hero) else None
    to = case.listener(intent) or (npc.id if npc is not None else "")
    if not to:
        return case.missing(intent) if intent.npc else say(case, intent)
    people = {**case.scenario.npcs, **case.scenario.heroes}
    vows = (vow for vow in case.scenario.vows.values() if vow.to == to and vow.id not in case.state.promises)
    vow = next((vow for vow in vows if is_meant(vow.text, intent.words, people[to].names)), None)
    if vow is not None:
        name, text = vow.id, vow.text
    else:
        everyone = [name for one in people.values() for name in one.names]
        name, text = f"word.{case.actor}.{case.prose.round}.{to}", promised(intent.words, everyone)
    made = [cm.MakePromise(name, to, text, case.actor), *case.moved(to, 1)]
    return Ruled(f"A promise to {case.name(to)}.", [case.beat("promise", to, name), *_met(case, to), *made])


def _met(case: Case, who: str) -> list[Command]:
    npc = case.npc(who)
    return [case.met(npc)] if npc is not None else []


def keep(case: Case, intent: Intent) -> Ruled:
    """A promise in a player's own words is kept when they say so to the one it was made to."""
    to = case.listener(intent)
    mine = (name for name, one in case.state.promises.items() if (one.to, one.by, one.state) == (to, case.actor, "open"))
    name = next((one for one in mine if one.startswith("word.")), "")
    if not to or not name:
        return case.nothing()
    return Ruled("A promise kept.", [case.beat("kept", to, name), cm.KeepPromise(name), *case.moved(to, 1)])


def renounce(case: Case, intent: Intent) -> Ruled:
    """A promise is broken to the face of the one it was made to."""
    to = case.listener(intent)
    if not to:
        return case.missing(intent)
    mine = (name for name, one in case.state.promises.items() if (one.to, one.by, one.state) == (to, case.actor, "open"))
    name = next(mine, "")
    if not name:
        return case.nothing()
    broken = [cm.BreakPromise(name), *case.moved(to, -2)]
    return Ruled("A promise broken.", [case.beat("renounced", to), *_met(case, to), *broken])


def reveal(case: Case, intent: Intent) -> Ruled:
    everyone = tuple(one for one in case.state.company(case.actor) if one != case.actor)
    targets = intent.to or tuple(one for one in (intent.hero, intent.npc) if one) or everyone
    if not intent.secret or not targets:
        return whisper(case, intent)
    return Ruled("A secret is told.", [case.beat("reveal", *targets), cm.Reveal(intent.secret, targets, case.actor)])


def whisper(case: Case, intent: Intent) -> Ruled:
    if not intent.to:
        return say(case, intent)  # somebody speaks of a whisper, and does not whisper
    return Ruled("Heard by few.", [case.beat("whisper", *intent.to), cm.Whisper(intent.to, intent.words[:1000], case.actor)])


def thought(case: Case, intent: Intent) -> Ruled:
    """What one keeps to oneself, and what cannot be told because nobody knows to whom."""
    return Ruled("No roll.", [case.beat("thought", secretly=True)])
