"""What each speaker is asked: the words of its `.md` file, and a record of everything it may know.

A file has its parts between lines of `---`: who you are (the system message, the same in every game, so that it is read once), what to
do now (the end of the user message; the second one where there is a wish), and what is said to an answer that cannot be taken: the
keeper's are read as a whole, of the DM's and the narrator's a part may have been heard.

Story text is data. Whatever comes from players, packs and models, names included, stands in the record, on lines that we begin; it can
neither end its block nor open another (see `rendering`). Nothing of it ever stands in the system message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from importlib import resources

from talekeeper.context.rendering import defuse, label, render
from talekeeper.memory.moments import MOMENT_TYPES
from talekeeper.ports import Message
from talekeeper.table.brain import Ask, Objection, Ruling, Scene, Someone
from talekeeper.table.rules import dice
from talekeeper.table.world.commands import COMMANDS, FOR_MODELS
from talekeeper.table.world.events import Event, event_to_json

_LONGEST_ACTION, _LONGEST_WISH = 4000, 600
_WORDS_PER_TOKEN = 0.6
_OPEN = ("present", "party")
_PLACE = re.compile(r"\((\w+)\) ")
"""Where something was, as the story's folds tell it."""


@cache
def _parts(role: str) -> list[str]:
    text = resources.files("talekeeper.table.cast").joinpath(f"{role}.md").read_text("utf-8")
    return [part.strip() for part in text.split("\n---\n")]


def messages(ask: Ask, max_tokens: int) -> list[Message]:
    """The complete messages for one ask. What seldom changes comes first: providers and llama.cpp do not read it twice."""
    who, now, wished, *_ = _parts(ask.role)
    system = who.format(moments=", ".join(MOMENT_TYPES), commands=_commands()) if ask.role == "keeper" else who
    closing = (wished if ask.nudge else now).format(words=max(12, int(max_tokens * _WORDS_PER_TOKEN)))
    remembered = _PLACE.sub(lambda found: f"({label(ask.names.get(found[1], found[1]))}) ", ask.context.text)
    record = "".join(block for block in (remembered, *_blocks(ask)) if block)
    asked: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": f"{record}## Now\n{closing}"}]
    if ask.objection is not None:
        asked += [{"role": "assistant", "content": ask.objection.text or "(nothing)"}, _objected(ask.role, ask.objection)]
    return asked


def _objected(role: str, objection: Objection) -> Message:
    """What a speaker is told whose answer contradicts the game."""
    part = 4 if objection.heard else 3
    return {"role": "user", "content": _parts(role)[part].format(problem=_line(objection.reason, 400), heard=_line(objection.heard)[-200:])}


def repair(problem: str) -> Message:
    """What a keeper is told whose ruling cannot be read."""
    return {"role": "user", "content": _parts("keeper")[3].format(problem=_line(problem, 400))}


@cache
def _commands() -> str:
    return "\n".join(f"  {name}: {_fields(name)}" for name in FOR_MODELS)


def _fields(name: str) -> str:
    return ", ".join(one.name if one.default is MISSING else f"[{one.name}]" for one in fields(COMMANDS[name])) or "no fields"


# -- the record --------------------------------------------------------------------------------------------------------


def _blocks(ask: Ask) -> Iterator[str]:
    yield _block("The Scene", _scene(ask.scene))
    if ask.role in ("pc", "keeper"):
        yield _block("You" if ask.role == "pc" else "Who Acts", _self(ask.scene))
    yield _block("What Was Ruled", _rulings(ask.rulings, ask.names) if ask.role == "narrator" else ())
    yield _block("Moments", (f"{label(one.type)}: {_line(one.summary)}" for one in ask.moments) if ask.role == "epilogue" else ())
    yield _block("The Arc", [_line(ask.pacing)] if ask.pacing else ())
    yield _block("A Wish", [_line(ask.nudge, _LONGEST_WISH)] if ask.nudge else ())
    if ask.role == "pc":
        yield _spoken("What Is Before You", [(ask.actor or "DM", ask.action)], ask.names)
    yield _spoken("Said This Round", ask.said, ask.names)
    if ask.role != "pc":
        heading = "The Action" if ask.role == "keeper" else "What Was Last Done"
        yield _spoken(heading, [(ask.actor or "the party", ask.action)], ask.names)
    yield _block("The Die", [_die(ask)] if ask.role == "keeper" else ())


def _block(heading: str, lines: Iterable[str]) -> str:
    said = [f"- {line}\n" for line in lines if line]
    return f"## {heading}\n{''.join(said)}" if said else ""


def _spoken(heading: str, said: Iterable[tuple[str, str]], names: Mapping[str, str]) -> str:
    lines = [render("said", names.get(who, who), _clipped(text, _LONGEST_ACTION)) for who, text in said if text.strip()]
    return f"## {heading}\n{''.join(lines)}" if lines else ""


def _scene(scene: Scene) -> Iterator[str]:
    around = ", ".join(_line(part) for part in (scene.time, scene.weather, scene.danger) if part)
    yield f"Place: {_line(scene.place_name)}{f' ({around})' if around else ''}{f'. {_line(scene.look)}' if scene.look else ''}"
    yield _listed("Here", map(_person, scene.here))
    yield _listed("Lying here", (_about(one.name, one.look) for one in scene.lying))
    yield _listed("Ways", (_about(way.name, way.way, way.blocked and f"blocked: {way.blocked}") for way in scene.exits))
    yield _listed("Goals", (_about(goal.title, goal.hint) for goal in scene.goals))
    yield _listed("Promises", map(_line, scene.promises))
    yield _listed("Going on", [_line(scene.encounter)] if scene.encounter else ())
    yield _listed("Act", [_line(scene.act)] if scene.act else ())


def _person(one: Someone) -> str:
    voice, wants = one.voice and f"voice: {one.voice}", one.wants and f"wants {one.wants}"
    return _about(one.name, one.look, one.feeling, one.condition, voice, wants)


def _self(scene: Scene) -> Iterator[str]:
    yield _listed("Name", [_about(label(scene.name), scene.calling)])
    yield _listed("Voice", [_line(scene.voice)] if scene.voice else ())
    yield _listed("Condition", [_line(scene.condition)] if scene.condition else ())
    yield _listed("Holds", (_about(one.name, one.look) for one in scene.items))
    yield _listed("Knows a secret", map(_line, scene.secrets))


def _rulings(rulings: Sequence[Ruling], names: Mapping[str, str]) -> Iterator[str]:
    """Rulings for a narrator whom all who stand by can hear: of what is secret, nothing. Where everything is, it is told to those who
    know of it alone."""
    private = all(ruling.is_secret for ruling in rulings)
    for ruling in rulings:
        if private or not ruling.is_secret:
            refused = f" Refused: {'; '.join(map(_line, ruling.refused))}." if ruling.refused else ""
            tried = f"{label(names.get(ruling.actor, ruling.actor))} tried: {_line(ruling.action, _LONGEST_WISH)}"
            outcome = f" Outcome: {_line(ruling.resolution)}" if ruling.resolution.strip() else ""
            yield f"{tried}{outcome}{refused}"
        open_or_all = (event for event in ruling.events if private or (event.known_to in _OPEN and not getattr(event, "secretly", False)))
        yield from (_happened(event, names) for event in open_or_all)


def _happened(event: Event, names: Mapping[str, str]) -> str:
    """`item gained: item brass key, who Rook`."""
    given = event_to_json(event)
    told = [(name, value) for name, value in given.items() if name != "type" and not (name == "promise" and given.get("text"))]
    listed = [(name, value if isinstance(value, list) else [value]) for name, value in told]
    values = [f"{name} {' and '.join(_called(one, names) for one in value)}" for name, value in listed]
    return ": ".join(part for part in (event.type.replace("_", " "), ", ".join(values)) if part)


def _called(value: object, names: Mapping[str, str]) -> str:
    """What stands for something in an event: its name, where it has one. `@` is before places where things lie."""
    id = str(value).removeprefix("@")
    return _line(names.get(id) or (id.replace("_", " ") if " " not in id else id))


def _die(ask: Ask) -> str:
    return dice.throw("d20", ask.seed, ask.round, ask.actor or ask.seat, "ruling").text


def _listed(what: str, values: Iterable[str]) -> str:
    found = [value for value in values if value]
    return f"{what}: {'; '.join(found)}" if found else ""


def _about(name: str, *more: str) -> str:
    said = ", ".join(_line(part) for part in more if part)
    return f"{_line(name)} ({said})" if said else _line(name)


def _line(text: str, most: int = 2000) -> str:
    """The text on one line, defused."""
    return " ".join(defuse(_clipped(text, most)).split())


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def told(asked: Sequence[Message]) -> str:
    """All that a model was given: what it may repeat without lying."""
    return "\n".join(message["content"] for message in asked)
