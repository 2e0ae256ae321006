"""Reading scenario packs: one TOML file, read into frozen nouns, with every problem found at once and each named by its place.

`load` gives the scenario or raises `BadScenario` with all problems; `check` gives the problems, and warnings of what can be played and
reads wrong. What reads well but cannot be played (a place nobody can reach, an objective that cannot come true) is found by `soundness`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from talekeeper.errors import InvalidInput
from talekeeper.memory.moments import MOMENT_TYPES
from talekeeper.table.packs import soundness
from talekeeper.table.packs.fields import Problem, Table, line_finder
from talekeeper.table.world import scenario as sc
from talekeeper.table.world.gamestate import DANGERS

VERBS = (
    "go", "look", "search", "talk", "ask", "persuade", "threaten", "deceive", "give", "take", "use", "attack", "sneak", "climb", "open",
    "break", "help", "pray", "play", "swim", "read", "follow", "hide", "steal", "trade", "make", "wait", "burn", "dig", "flee", "calm",
    "listen",
)  # fmt: skip
LINE_POOLS = ("travel", "quiet", "unease", "camp", "wounded", "after")


class BadScenario(InvalidInput):
    """A pack that cannot be played as it stands; `problems` has all of them."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        more = f" (and {len(problems) - 1} more; run talekeeper scenario check)" if len(problems) > 1 else ""
        super().__init__(f"{name}: {problems[0]}{more}")
        self.problems = problems


# -- nouns -------------------------------------------------------------------------------------------------------------


def _mark(t: Table) -> sc.Mark | None:
    kind = t.one_of("moment", MOMENT_TYPES, "")
    summary, weight = t.text("summary", ""), t.get("weight", float, 0.6)
    if kind and not summary:
        t.wrong("summary", "is missing: a moment needs words that read on after “we”")
    if not 0 <= weight <= 1:
        t.wrong("weight", f"must be between 0 and 1, not {weight}")
    return sc.Mark(type=kind, summary=summary, weight=weight) if kind and summary else None


def _outcome(t: Table, prefix: str = "") -> sc.Outcome:
    return sc.Outcome(say=t.texts(f"{prefix}say"), do=t.do(f"{prefix}do"))


def _deed(t: Table) -> sc.Deed:
    skill, cost, failure = t.one_of("skill", sc.SKILLS, ""), _outcome(t, "cost_"), _outcome(t, "fail_")
    success = _outcome(t)
    if not success.say:
        t.wrong("say", "is missing: a deed has to be told")
    if skill and not failure.say:
        t.wrong("fail_say", "is missing: what can fail has to be told")
    return sc.Deed(
        id=t.id(),
        offer=t.text("offer"),
        verbs=t.some_of("verbs", VERBS, 1),
        words=t.texts("words"),
        at=t.texts("at"),
        npc=t.text("npc", ""),
        when=t.when(),
        skill=skill,
        difficulty=t.get("difficulty", int, 9),
        success=success,
        cost=cost if cost.say else None,
        failure=failure if skill else None,
        mark=_mark(t),
        secretly=t.get("secretly", bool, False),
        repeat=t.get("repeat", bool, False),
        ends=t.one_of("ends", ("won", "escaped", "settled"), ""),
    )


def _topic(t: Table) -> sc.Topic:
    return sc.Topic(
        id=t.id(),
        words=t.texts("words", 1),
        say=t.texts("say", 1),
        again=t.texts("again"),
        offer=t.text("offer", ""),
        when=t.when(),
        attitude=t.get("attitude", int, -2),
        do=t.do(),
        mark=_mark(t),
        secretly=t.get("secretly", bool, False),
    )


def _exit(t: Table) -> sc.Exit:
    exit = sc.Exit(
        to=t.text("to"), way=t.text("way", ""), when=t.when(), blocked=t.text("blocked", ""), hidden=t.get("hidden", bool, False)
    )
    if exit.when and not (exit.blocked or exit.hidden):
        t.wrong("blocked", "is missing: say why the way is closed, or make it hidden")
    return exit


def _place(t: Table) -> sc.Place:
    return sc.Place(
        id=t.id(),
        name=t.text("name"),
        aliases=t.texts("aliases"),
        look=t.lines("look", 1),
        again=t.lines("again", 2),
        air=t.lines("air", 3),
        region=t.text("region", ""),
        danger=t.one_of("danger", DANGERS, "safe"),
        shelter=t.get("shelter", bool, False),
        sky=t.get("sky", bool, True),
        exits=tuple(_exit(one) for one in t.tables("exits")),
        details=tuple(
            sc.Detail(name=one.text("name"), words=one.texts("words", 1), say=one.texts("say", 1)) for one in t.tables("details")
        ),
    )


def _npc(t: Table) -> sc.Npc:
    return sc.Npc(
        id=t.id(),
        name=t.text("name"),
        aliases=t.texts("aliases"),
        place=t.text("place"),
        look=t.text("look"),
        pronouns=t.one_of("pronouns", tuple(sc.PRONOUNS), "they"),
        calling=t.text("calling", ""),
        voice=t.text("voice", ""),
        wants=t.text("wants", ""),
        attitude=t.get("attitude", int, 0),
        cold=t.lines("cold", 1),
        greet=t.lines("greet", 2),
        warm=t.lines("warm", 1),
        idle=t.lines("idle", 2),
        refuse=t.texts("refuse", 1),
        topics=tuple(_topic(one) for one in t.tables("topics")),
        errands=t.get("errands", bool, True),
        mortal=t.get("mortal", bool, True),
        difficulty=t.get("difficulty", int, 10),
    )


def _hero(t: Table) -> sc.Hero:
    skills, says = t.table("skills"), t.table("says")
    hero = sc.Hero(
        id=t.id(),
        name=t.text("name"),
        aliases=t.texts("aliases"),
        look=t.text("look"),
        pronouns=t.one_of("pronouns", tuple(sc.PRONOUNS), "they"),
        calling=t.text("calling", ""),
        voice=t.text("voice", ""),
        skills={name: skills.get(name, int, 0) for name in sc.SKILLS},
        says={name: says.texts(name) for name in says.raw if name in sc.SAYS or name.startswith(("at_", "to_"))},
    )
    says.seen.update(sc.SAYS)
    skills.finish()
    says.finish()
    return hero


def _vow(t: Table) -> sc.Vow:
    return sc.Vow(id=t.id(), to=t.text("to"), text=t.text("text"), lasting=t.get("lasting", bool, False))


def _item(t: Table) -> sc.Item:
    return sc.Item(
        id=t.id(),
        name=t.text("name"),
        aliases=t.texts("aliases"),
        look=t.text("look"),
        at=t.text("at", ""),
        held=t.text("held", ""),
        plural=t.get("plural", bool, False),
    )


def _secret(t: Table) -> sc.Secret:
    return sc.Secret(id=t.id(), text=t.text("text"), about=t.text("about", ""), words=t.texts("words"), known=t.texts("known"))


def _encounter(t: Table) -> sc.Encounter:
    return sc.Encounter(
        id=t.id(),
        name=t.text("name"),
        at=t.texts("at", 1),
        when=t.when(),
        intro=t.texts("intro", 1),
        press=t.texts("press", 2),
        grit=t.get("grit", int, 2),
        deadly=t.get("deadly", bool, False),
        ways=tuple(_deed(one) for one in t.tables("ways", 2)),
        won=_outcome(t, "won_"),
        lost=_outcome(t, "lost_"),
        escaped=_outcome(t, "escaped_"),
        mark=_mark(t),
    )


def _happening(t: Table) -> sc.Happening:
    return sc.Happening(
        id=t.id(),
        say=t.texts("say", 1),
        at=t.texts("at"),
        regions=t.texts("regions"),
        when=t.when(),
        do=t.do(),
        repeat=t.get("repeat", bool, False),
    )


def _objective(t: Table) -> sc.Objective:
    return sc.Objective(
        id=t.id(),
        title=t.text("title"),
        quest=t.text("quest"),
        act=t.text("act"),
        hint=t.texts("hint", 1),
        done=t.texts("done"),
        paths=tuple(sc.Path(when=one.when(), how=one.text("how", "")) for one in t.tables("paths", 1)),
        optional=t.get("optional", bool, False),
        mark=_mark(t),
    )


def _act(t: Table) -> sc.Act:
    return sc.Act(id=t.id(), title=t.text("title"), opening=t.texts("opening", 1), until=t.when("until"), signs=t.lines("signs"))


def _ending(t: Table) -> sc.Ending:
    return sc.Ending(id=t.id(), title=t.text("title"), when=t.when(), say=t.texts("say", 1))


def _by_id(t: Table, key: str, make: Callable[[Table], Any], least: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in t.tables(key, least):
        one = make(table)
        if one.id in found:
            table.wrong("id", f"{one.id!r} is used twice")
        found[one.id] = one
    return found


def _lines(t: Table) -> dict[str, tuple[str, ...]]:
    known = {*LINE_POOLS, *sc.WATCHES}
    found = {key: t.lines(key) for key in t.raw}
    for key in found:
        if key not in known and not key.startswith("weather_"):
            t.wrong(key, f"is no pool of lines; there are: {', '.join(sorted(known))}, weather_…")
    return found


def _scenario(t: Table) -> sc.Scenario:
    head = t.table("scenario")
    pack = sc.Scenario(
        id=head.id(),
        title=head.text("title"),
        tagline=head.text("tagline"),
        mood=head.text("mood", ""),
        start=head.text("start"),
        premise=head.texts("premise", 1),
        weathers=head.texts("weathers", 1),
        rumours=head.lines("rumours"),
        acts=tuple(_by_id(t, "acts", _act, 1).values()),
        quests=_by_id(t, "quests", lambda one: sc.Quest(id=one.id(), title=one.text("title")), 1),
        objectives=_by_id(t, "objectives", _objective, 1),
        heroes=_by_id(t, "heroes", _hero, 1),
        places=_by_id(t, "places", _place, 2),
        npcs=_by_id(t, "npcs", _npc, 1),
        items=_by_id(t, "items", _item),
        secrets=_by_id(t, "secrets", _secret),
        vows=_by_id(t, "vows", _vow),
        deeds=tuple(_by_id(t, "deeds", _deed).values()),
        encounters=_by_id(t, "encounters", _encounter),
        happenings=tuple(_by_id(t, "happenings", _happening).values()),
        endings=tuple(_by_id(t, "endings", _ending, 1).values()),
        lines=_lines(t.table("lines")),
    )
    head.finish()
    t.finish(head)
    return pack


# -- files -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def read(text: str) -> tuple[sc.Scenario | None, tuple[Problem, ...]]:
    """The pack and everything that is wrong with it, the grave first; no pack where the file is not even TOML. Read once, whoever plays
    it."""
    try:
        return _read(text)
    except RecursionError:
        return None, (Problem("the file", "has tables or lists within each other too deep to be read: an adventure needs a few at most"),)


def _read(text: str) -> tuple[sc.Scenario | None, tuple[Problem, ...]]:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        if text.lstrip().startswith("{"):
            return None, (Problem("the file", "is JSON, it seems: an adventure is written in TOML, see docs/scenarios.md"),)
        return None, (Problem("the file", f"is not TOML: {exc}"),)
    noted: list[Problem] = []
    warned: list[Problem] = []
    lines = line_finder(text)

    def note(where: str, message: str) -> None:
        noted.append(Problem(where, message, lines(where)))

    def warn(where: str, message: str) -> None:
        warned.append(Problem(where, message, lines(where), grave=False))

    pack = _scenario(Table(raw, "", note))
    if not noted:
        soundness.examine(pack, note)
    soundness.proofread(pack, warn)
    return pack, (*noted, *warned)


def shipped() -> dict[str, str]:
    """The packs that come with Talekeeper: their text by name."""
    folder = resources.files(__package__) / "scenarios"
    found = {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
    return {name: found[name].read_text("utf-8") for name in sorted(found)}


def source(name: str | Path) -> str:
    """The text of a shipped pack by its name, or of a file."""
    packs = shipped()
    if str(name) in packs:
        return packs[str(name)]
    path = Path(name)
    if not path.is_file():
        raise InvalidInput(f"no scenario {str(name)!r}: give a file, or one of {', '.join(packs)}")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{str(name)!r} is not UTF-8 text: {exc.reason} at byte {exc.start}") from exc


def check(name: str | Path) -> list[Problem]:
    """Everything that is wrong with a pack; nothing grave if it can be played."""
    return list(read(source(name))[1])


def load(name: str | Path) -> sc.Scenario:
    """A pack that can be played: a shipped one by its name, or a file."""
    pack, problems = read(source(name))
    grave = [problem for problem in problems if problem.grave]
    if pack is None or grave:
        raise BadScenario(str(name), grave)
    return pack
