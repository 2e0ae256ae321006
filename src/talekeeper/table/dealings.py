"""Rulings on what is done with people: talk, questions, charm, threats, blows, promises, secrets."""

from __future__ import annotations

import re

from talekeeper.table import commands as cm
from talekeeper.table.case import Case, Ruled
from talekeeper.table.choices import company, told
from talekeeper.table.handlers import STORYTELLER
from talekeeper.table.prose import listed
from talekeeper.table.rules import commands_for, holds
from talekeeper.table.scenario import Mark, Npc, Topic
from talekeeper.table.spelling import mention, words_of
from talekeeper.table.understand import Intent, is_served

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
        return Ruled(f"Takes {case.name(intent.item)}.", [case.beat("take", intent.item), cm.GainItem(intent.item, case.actor)])
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
    mark = f"told.{npc.id}/{topic.id}" + (f"/{case.actor}" if topic.secretly else "")
    found = [case.beat("topic", npc.id, topic.id, degree="new", secretly=topic.secretly), cm.SetFlag(mark), case.met(npc)]
    if topic.secretly:
        found.append(cm.Whisper((case.actor,), case.prose.must(topic.say, topic.id), npc.id))
    found += commands_for(topic.do, case.state, case.scenario, case.actor, secretly=topic.secretly)
    return Ruled(f"{npc.name} tells.", found, None if topic.secretly else topic.mark)


def persuade(case: Case, intent: Intent) -> Ruled:
    npc = case.meant(intent) if intent.npc or not intent.hero else None
    if npc is None and intent.hero:
        return say(case, intent)
    if npc is None:
        return case.missing(intent)
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
        return case.missing(intent)
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
    found += [cm.ChangeRelationship(one.id, -3, who) for one in case.people for who in company(case.state, case.actor)]
    if not seen.succeeded or seen.degree == "cost":
        found.append(cm.Wound(case.actor))
    if not lethal:
        return Ruled(seen.text, found)
    found.append(cm.Kill(npc.id, f"killed by {case.name(case.actor)}"))
    return Ruled(seen.text, found, Mark(type="turning_point", summary=f"killed {npc.name}", weight=0.9))


def promise(case: Case, intent: Intent) -> Ruled:
    """A promise that the pack foresees, or one in the player's own words. Made to nobody by name, whoever listens holds one to it."""
    npc = case.meant(intent) or (None if intent.npc or intent.hero else _listener(case, intent))
    if npc is None:
        return case.missing(intent) if intent.npc else say(case, intent)
    vow = next((vow for vow in case.scenario.vows.values() if vow.to == npc.id and vow.id not in case.state.promises), None)
    if vow is not None and len(set(words_of(vow.text)) & set(words_of(intent.words))) >= 2:
        name, text = vow.id, vow.text
    else:
        name, text = f"word.{case.actor}.{case.prose.round}", _promised(intent.words, npc)
    made = [cm.MakePromise(name, npc.id, text, case.actor), cm.ChangeRelationship(npc.id, 1, case.actor)]
    return Ruled(f"A promise to {npc.name}.", [case.beat("promise", npc.id, name), case.met(npc), *made])


def _promised(words: str, npc: Npc) -> str:
    """The words of a promise, without “I promise Oda”."""
    rest = re.sub(r"^.*?\b(?:promise|swear|vow|pledge|word)\b[,:]?\s*", "", " ".join(words.split()), flags=re.I)
    for name in sorted(npc.names, key=len, reverse=True):
        rest = re.sub(rf"^(?:to )?{re.escape(name)}\b[,:]?\s*", "", rest, flags=re.I)
    return rest.rstrip(".! ")[:300] or "what was said"


def keep(case: Case, intent: Intent) -> Ruled:
    """A promise in a player's own words is kept when they say so to the one it was made to."""
    npc = case.meant(intent)
    mine = (name for name, one in case.state.promises.items() if npc is not None and one.to == npc.id and one.state == "open")
    name = next((one for one in mine if one.startswith("word.")), "")
    if npc is None or not name:
        return case.nothing()
    kept = [cm.KeepPromise(name), cm.ChangeRelationship(npc.id, 1, case.actor)]
    return Ruled("A promise kept.", [case.beat("kept", npc.id, name), *kept])


def renounce(case: Case, intent: Intent) -> Ruled:
    """A promise is broken to the face of the one it was made to."""
    npc = case.meant(intent)
    if npc is None:
        return case.missing(intent)
    mine = (name for name, one in case.state.promises.items() if (one.to, one.by, one.state) == (npc.id, case.actor, "open"))
    name = next(mine, "")
    if not name:
        return case.nothing()
    broken = [cm.BreakPromise(name), cm.ChangeRelationship(npc.id, -2, case.actor)]
    return Ruled("A promise broken.", [case.beat("renounced", npc.id), case.met(npc), *broken])


def reveal(case: Case, intent: Intent) -> Ruled:
    everyone = tuple(one for one in company(case.state, case.actor) if one != case.actor)
    targets = tuple(one for one in (intent.hero, intent.npc) if one) or everyone
    if not intent.secret or not targets:
        return say(case, intent)
    return Ruled("A secret is told.", [case.beat("reveal", *targets), cm.Reveal(intent.secret, targets, case.actor)])


def whisper(case: Case, intent: Intent) -> Ruled:
    target = intent.hero or intent.npc
    if not target:
        return say(case, intent)
    words = re.sub(r"^.*?(?:\bthat\b|:)\s+", "", intent.words, count=1) or intent.words
    if target not in case.state.where or case.state.where[target] != case.place:
        return case.missing(intent) if intent.npc else say(case, intent)
    return Ruled("Heard by few.", [case.beat("whisper", target), cm.Whisper((target,), words[:1000], case.actor)])
