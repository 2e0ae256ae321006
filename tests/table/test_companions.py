"""Companions who play by themselves: what they say is theirs, fits, is no deed, and does not come again too soon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.table.driver import Game, auto

import talekeeper as tk
from talekeeper.table.packs import load, shipped
from talekeeper.table.playing.rounds import Game as Table
from talekeeper.table.playing.seating import Setup, begin
from talekeeper.table.shown.choices import asked, decides, offers
from talekeeper.table.shown.prose import Prose, person_slots, short
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world import events as ev
from talekeeper.table.world.language import read_line
from talekeeper.table.world.phrases import phrases
from talekeeper.table.world.scenario import ANSWER, WATCHES, Hero, Scenario

PACKS = sorted(shipped())
HARMLESS = {"banter", "nothing", "follow", "wait", "say"}


def remarks(pack: Scenario, hero: Hero) -> Iterator[str]:
    """Everything that a hero may say for its own sake."""
    slots = {"deed": "found the way", "npc": "Nobody", "promise": "to sing", "quote": "It was dark.", "speaker": "Somebody"}
    others = [one.name for one in pack.heroes.values() if one is not hero]
    shared = [line for name in ("mind", "hurt", "down") for line in phrases()[f"pc.{name}"]]
    prose = Prose(pack, 1, 1, hero.id)
    for line in (*(line for lines in hero.says.values() for line in lines), *shared):
        for spoken in line.split(ANSWER):
            text = prose.render(spoken, **slots, other=short(pack.heroes[next(id for id in pack.heroes if id != hero.id)]))
            assert text, (line, others)
            yield text


@pytest.mark.parametrize("name", PACKS)
def test_a_remark_is_no_deed(name: str) -> None:
    pack, wrong = load(name), list[object]()
    for hero in pack.heroes.values():
        others = [id for id in pack.heroes if id != hero.id][:2]
        for place in [pack.start, *(kind.removeprefix("at_") for kind in hero.says if kind.startswith("at_"))]:
            game = Game(pack, (*others, hero.id), 1, others[0])
            game.state = replace(game.state, where={**game.state.where, **dict.fromkeys(game.state.party, place)})
            wrong += [found for remark in remarks(pack, hero) if (found := _done(game, hero.id, remark))]
    assert wrong == []


def _done(game: Game, actor: str, remark: str) -> tuple[str, str, list[str]] | None:
    """What a remark was taken for, where it was taken for something; the game is as it was before."""
    before = game.state
    done = [event.what for event in game.rule(actor, remark).events if isinstance(event, ev.Beat)]
    changed = replace(game.state, flags={}, encounter="") != replace(before, flags={}, encounter="")
    game.state = before
    return (before.where[actor], remark, done) if changed or not set(done) <= HARMLESS else None


@pytest.mark.parametrize("name", PACKS)
def test_a_choice_in_a_companions_words_is_that_choice(name: str) -> None:
    """However it is worded: the keeper takes it for what was chosen."""
    pack = load(name)
    hero = next(iter(pack.heroes.values()))
    game = auto(pack, list(pack.heroes)[:3], 2, 9)
    for choice in offers(pack, game.state, hero.id):
        plain = _taken_for(game, hero.id, choice.text)
        for template in phrases().get(f"pc.{choice.verb}", ()):
            names = (*choice.about, "", "")
            given = (names[1], names[0]) if choice.verb == "give" else (names[0], names[0])
            npc = next((person_slots("npc", one) for one in pack.npcs.values() if short(one) == given[0]), {"npc": given[0]})
            slots = {
                "asked": asked(names[1]) if names[1] else "",
                "thing": given[1],
                "target": names[0],
                "place": names[0],
                "way": names[1],
                **npc,
            }
            prose = Prose(pack, 1, 1, hero.id)
            text = prose.render(template, **{key: value for key, value in slots.items() if value})
            if text:
                assert _taken_for(game, hero.id, text) == plain, (choice, text)


def _taken_for(game: Game, actor: str, text: str) -> tuple[str, tuple[str, ...]]:
    before = game.state
    found = next((event.what, event.about) for event in game.rule(actor, text).events if isinstance(event, ev.Beat))
    game.state = before
    return found


async def test_nobody_says_the_same_within_fifteen_rounds() -> None:
    """At a real table, with real memories, for several seeds: no sentence of a companion comes again too soon."""
    async with tk.open(":memory:") as keeper:
        for pack in PACKS:
            for seed in (1, 2):
                party = tuple(load(pack).heroes)[:3]
                table = await begin(keeper, tk.MemoryKey("t", pack, str(seed)), Setup(pack, party, (), seed), Storyteller)
                async with Table(table) as game:
                    rounds = [[beat async for beat in game.round()] for _ in range(30)]
                said = ("".join(beat.text for beat in beats if (beat.kind, beat.role) == ("speech", "pc")) for beats in rounds)
                _check_apart(list(said))


def _check_apart(rounds: list[str]) -> None:
    last: dict[str, int] = {}
    for number, text in enumerate(rounds):
        for quote in re.findall(r"“[^”]{20,}”", text):
            assert number - last.get(quote, -100) > 15, (quote, last[quote], number)
            last[quote] = number


def test_companions_talk_with_each_other() -> None:
    pack = load("tidelamp")
    answered = 0
    for seed in range(3):
        told = "\n".join(turn.text for turn in auto(pack, list(pack.heroes)[:3], seed, 20).log)
        for hero in pack.heroes.values():
            for line in (line for kind, lines in hero.says.items() if kind.startswith("to_") for line in lines):
                spoken, _, answer = line.partition(ANSWER)
                answered += bool(answer) and spoken in told and answer in told
                assert not answer or answer not in told or told.index(spoken) < told.index(answer)
    assert answered >= 5


def test_what_came_of_ones_own_try_is_remarked_on() -> None:
    pack = load("tidelamp")
    found = 0
    for seed in range(4):
        log = auto(pack, list(pack.heroes)[:3], seed, 24).log
        for hero in pack.heroes.values():
            found += sum(line in turn.text for turn in log for line in (*hero.says["wins"], *hero.says["fails"]))
    assert found >= 4


def test_an_encounter_is_seen_by_the_one_who_leads_before_it_is_over() -> None:
    """A companion does nothing about what has only just begun, and never decides how the story ends."""
    pack = load("quiet_snow")
    ends = {deed.id for deed in pack.deeds if decides(pack, deed)}
    assert ends
    for seed in range(1, 9):
        game = Game(pack, ("maren", "quillon", "sparrow"), seed, "maren")
        for _ in range(45):
            before, told = game.state.encounter, len(game.rulings)
            game.play()
            round = game.rulings[told:]
            beats = [(one.actor, event) for one in round for event in one.events if isinstance(event, ev.Beat)]
            if not before:
                assert [actor for actor, event in beats if event.what == "way" and actor != "maren"] == []
            assert [actor for actor, event in beats if event.what == "deed" and event.about[0] in ends and actor != "maren"] == []


def test_under_the_mountain_there_is_no_sky() -> None:
    pack = load("quiet_snow")
    game = Game(pack, ("maren",), 3, "maren")
    game.state = replace(game.state, where={**game.state.where, "maren": "deep_shaft"})
    for _ in range(12):
        game.play({"maren": "I wait."})
    told = " ".join(turn.text for turn in game.log if turn.speaker == "DM")
    above = [read_line(line)[1] for name, lines in pack.lines.items() if name.startswith("weather_") or name in WATCHES for line in lines]
    assert [line for line in above if line in told] == []
