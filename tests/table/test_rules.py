"""The game's rules: what may happen, what may not and why, who may know, and that a fold of events is all there is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.table.tables import PARTY, SMALL, after, events, refusal, start

from talekeeper.errors import InvalidInput
from talekeeper.table.rules.conditions import begin
from talekeeper.table.rules.handlers import Accepted, Trigger, handle
from talekeeper.table.rules.ledger import ledger
from talekeeper.table.rules.settling import settle
from talekeeper.table.world import commands as cm
from talekeeper.table.world import events as ev
from talekeeper.table.world.commands import COMMANDS, Command, command_from_json, command_to_json, commands_schema
from talekeeper.table.world.events import Event, audience, event_from_json, event_to_json
from talekeeper.table.world.gamestate import DOWN, GONE, GameState, apply, fold, state_from_json, state_to_json

TAKE_KEY = cm.GainItem("mill_key", "wren")
TO_ROAD = cm.ChangeLocation("road")
TO_MILL = cm.ChangeLocation("mill")


# -- the ledger ---------------------------------------------------------------------------------------------------------


def test_a_ledger_shows_what_one_heard_and_saw() -> None:
    away = cm.ChangeLocation("road", ("tam",))
    taken = after(TAKE_KEY, cm.Kill("mara", "fell"), cm.MakePromise("word", "tam", "to be quick", "wren"))
    assert ledger(taken, SMALL, ("tam",)).lines == ledger(taken, SMALL, ("wren", "tam")).lines[:-1], "all but a secret of hers"
    apart = after(away, TAKE_KEY, cm.Kill("mara", "fell"))
    assert {"Wren has the mill key", "Mara Holt is dead: fell"} <= set(ledger(apart, SMALL, ("wren",)).lines)
    assert not {"key", "Mara"} & set(" ".join(ledger(apart, SMALL, ("tam",)).lines).split())
    secret = after(cm.GainItem("mill_key", "wren", secretly=True))
    assert "Wren has the mill key" in ledger(secret, SMALL).lines
    assert "Wren has the mill key" not in ledger(secret, SMALL, ("tam",)).lines


# -- places ------------------------------------------------------------------------------------------------------------


def test_the_whole_party_goes_where_one_of_it_goes() -> None:
    state = after(TO_ROAD)
    assert [state.where[one] for one in PARTY] == ["road", "road"]
    assert state.where["mara"] == "inn"


def test_one_may_go_alone() -> None:
    state = after(cm.ChangeLocation("road", ("tam",)))
    assert (state.where["wren"], state.where["tam"]) == ("inn", "road")


@pytest.mark.parametrize(
    ("state", "command", "reason"),
    [
        (start(), TO_MILL, "there is no way from the inn to the mill"),
        (after(TO_ROAD), TO_MILL, "the mill is locked"),
        (start(), cm.ChangeLocation("inn"), "Wren is at the inn already"),
        (start(), cm.ChangeLocation("Mil"), "there is no place 'Mil'; did you mean 'mill'?"),
        (start(), cm.UpdateLocation("mill", "scary"), "danger is one of safe, uneasy, dangerous, deadly, cleared, not 'scary'"),
        (start(), cm.UpdateLocation("mill"), "nothing changes at the mill"),
        (start(), cm.StartEncounter("rats"), "the rats cannot happen at the inn"),
        (start(), cm.TurnEncounter(), "no encounter is going on"),
        (after(TAKE_KEY, TO_ROAD, TO_MILL, cm.StartEncounter("rats")), TO_ROAD, "nobody gets away before the end of this: the rats"),
        (after(TAKE_KEY, TO_ROAD, TO_MILL, cm.ResolveEncounter("rats")), cm.StartEncounter("rats"), "that is over already: the rats"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_places_is_refused(state: GameState, command: Command, reason: str) -> None:
    assert refusal(state, command) == reason


def test_places_and_people_may_be_named_in_any_way() -> None:
    assert after(TO_ROAD, cm.ChangeLocation("The Tavern")).where["wren"] == "inn"
    assert after(cm.GainItem("Iron Key")).items["mill_key"] == "wren"
    assert after(TAKE_KEY, cm.GiveItem("key", "mara")).items["mill_key"] == "mara"


# -- things ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "command", "reason"),
    [
        (after(TAKE_KEY), TAKE_KEY, "Wren has the mill key already"),
        (after(TAKE_KEY), cm.GainItem("mill_key", "tam"), "Wren has the mill key, and would have to give it"),
        (after(TAKE_KEY), cm.GiveItem("mill_key", "mara", "tam"), "Tam does not have the mill key: Wren has it"),
        (after(TAKE_KEY, cm.GiveItem("mill_key", "mara")), cm.GiveItem("mill_key", "mara"), "Wren does not have the mill key: Mara Holt has it"),
        (start(), cm.GiveItem("knife", "bruno"), "Bruno is not where Wren is"),
        (after(TO_ROAD), cm.GainItem("lantern"), "a lantern is not here"),
        (after(cm.LoseItem("knife")), cm.GainItem("knife"), "a knife is lost for good"),
        (start(), cm.LoseItem("lantern"), "Wren does not have a lantern: nobody has it"),
    ],
)  # fmt: skip
def test_a_thing_is_in_one_hand_only(state: GameState, command: Command, reason: str) -> None:
    assert refusal(state, command) == reason


def test_what_is_dropped_can_be_picked_up_again() -> None:
    state = after(cm.LoseItem("knife", dropped=True), cm.GainItem("knife", "tam"))
    assert state.items["knife"] == "tam"


def test_a_thing_that_came_up_in_play_obeys_the_same_rules() -> None:
    state = after(cm.GainItem("A loaf of bread"))
    assert state.items["loaf_of_bread"] == "wren"
    assert "Tam does not have" in refusal(state, cm.GiveItem("loaf of bread", "mara", "tam"))


# -- people ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        cm.GiveItem("knife", "mara"), cm.Whisper(("wren",), "boo", "mara"), cm.MakePromise("x", "mara", "to come back"),
        cm.ChangeRelationship("mara", 1), cm.Kill("mara"), cm.ChangeLocation("road", ("mara",)), cm.GainItem("lantern", "mara"),
        cm.Reveal("truth", by="mara"), cm.LearnSecret("truth", ("mara",)),
    ],
)  # fmt: skip
def test_the_dead_neither_act_nor_are_dealt_with(command: Command) -> None:
    assert refusal(after(cm.Kill("mara", "of a fall")), command) == "Mara Holt is dead"


def test_what_the_dead_held_lies_where_they_fell() -> None:
    state = after(cm.Kill("mara"))
    assert state.lying("inn") == ("mill_key", "lantern")


@pytest.mark.parametrize(
    ("state", "command", "reason"),
    [
        (start(), cm.KeepPromise("return_key"), "nobody has promised Mara Holt to bring the mill key back"),
        (after(cm.MakePromise("return_key", "mara"), cm.KeepPromise("return_key")), cm.BreakPromise("return_key"),
         "the promise to Mara Holt was kept already"),
        (after(cm.MakePromise("return_key", "mara")), cm.MakePromise("return_key", "mara"), "that was promised to Mara Holt before"),
        (start(), cm.MakePromise("nothing", "mara"), "a promise needs words, and someone else to give them to"),
        (start(), cm.Reveal("truth"), "Wren does not know that secret"),
        (start(), cm.Reveal("truht"), "there is no such secret"),
        (after(cm.Reveal("wrens_own")), cm.Reveal("wrens_own"), "nobody here is new to that secret"),
        (start(), cm.Whisper(("bruno",), "psst"), "Bruno is not where Wren is"),
        (start(), cm.ChangeRelationship("mara", 9), "feelings change by 1 to 3, up or down"),
        (start(), cm.Mend(), "Wren has nothing to mend"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_people_is_refused(state: GameState, command: Command, reason: str) -> None:
    assert refusal(state, command) == reason


def test_a_promise_of_the_pack_brings_its_words() -> None:
    promise = after(cm.MakePromise("return_key", "mara")).promises["return_key"]
    assert (promise.by, promise.to, promise.text, promise.state) == ("wren", "mara", "to bring the mill key back", "open")


def test_whoever_is_down_dies_of_the_next_wound() -> None:
    state = after(cm.Wound(by=2), cm.Wound(by=2))
    assert state.wounds["wren"] == DOWN
    assert state.able == ("tam",)
    assert apply(state, events(state, cm.Wound())[0]).alive == ("tam",)


# -- the arc -----------------------------------------------------------------------------------------------------------


def test_objectives_acts_and_endings_come_true_by_themselves() -> None:
    settled = settle(start(), SMALL, [TAKE_KEY], "wren")
    assert settled.events == (
        ev.ItemGained("mill_key", "wren", "mara"),
        ev.ObjectiveCompleted("get_key", "errand", "by asking"),
        ev.ActProgressed("two"),
    )
    state = settle(
        settled.state, SMALL, [TO_ROAD, TO_MILL, cm.StartEncounter("rats"), cm.UpdateLocation("mill", "cleared", "rats")], "wren"
    ).state
    assert (state.quests, state.ending, state.encounter) == (("errand",), "good", "")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (cm.CompleteObjective("get_key"), "“Get the key” is not done: none of the ways to it has come true"),
        (cm.CompleteObjective("open_mill"), "“Open the mill” belongs to a later act"),
        (cm.CompleteQuest("errand"), "“The errand” still wants “Get the key”"),
        (cm.ProgressAct(), "“The Key” is not over yet"),
        (cm.EndStory("good"), "“Flour” has not come true"),
    ],
)
def test_the_arc_cannot_be_talked_into_its_end(command: Command, reason: str) -> None:
    assert refusal(start(), command) == reason


def test_the_story_is_lost_when_everyone_is_dead() -> None:
    assert after(cm.Kill("wren"), cm.Kill("tam")).ending == "bad"


# -- memory ------------------------------------------------------------------------------------------------------------


def test_a_place_is_remembered_before_it_is_left() -> None:
    answer = handle(start(), SMALL, TO_ROAD, "wren")
    assert isinstance(answer, Accepted)
    assert answer.triggers == (Trigger("location_exit", {"location_id": "inn"}, ("wren", "tam"), before=True),)


def test_every_event_of_weight_asks_for_a_memory_of_its_own() -> None:
    there = after(TAKE_KEY, TO_ROAD, TO_MILL, cm.StartEncounter("rats"))
    settled = settle(there, SMALL, [cm.UpdateLocation("mill", "CLEARED", "rats")], "wren")
    assert [(one.kind, dict(one.related)) for one in settled.triggers] == [
        ("encounter_completed", {"location_id": "mill", "encounter_id": "rats"}),
        ("location_cleared", {"location_id": "mill"}),
        ("objective_completed", {"quest_id": "errand", "objective_id": "open_mill"}),
        ("quest_completed", {"quest_id": "errand"}),
    ]
    assert [one.kind for one in settle(start(), SMALL, [TAKE_KEY]).triggers] == ["objective_completed", "act_progressed"]


@pytest.mark.parametrize(
    ("event", "hearers"),
    [
        (ev.ItemGained("mill_key", "wren", "mara"), ("mara", "tam", "wren")),
        (ev.ItemGained("mill_key", "wren", "mara", secretly=True), ("mara", "wren")),
        (ev.ItemLost("knife", "wren", secretly=True), ("wren",)),
        (ev.Moved(("tam",), "inn", "road"), ("bruno", "mara", "tam", "wren")),
        (ev.Whispered("mara", ("wren",), "psst"), ("mara", "wren")),
        (ev.Whispered("dm", ("wren",), "psst"), ("wren",)),
        (ev.SecretLearned("truth", ("tam",), "…"), ("tam",)),
        (ev.Revealed("wrens_own", "wren", ("mara",), "…"), ("mara", "wren")),
        (ev.RelationshipChanged("mara", "wren", 1), ("mara", "wren")),
        (ev.ObjectiveCompleted("get_key", "errand"), ("tam", "wren")),
        (ev.PlaceChanged("mill", "cleared"), ()),
        (ev.Flagged("plot.x"), ()),
    ],
)  # fmt: skip
def test_who_may_know_of_an_event(event: Event, hearers: tuple[str, ...]) -> None:
    assert audience(event, start()) == hearers


# -- JSON --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "a command must be a JSON object, not list"),
        ({}, "no command of the type 'None'; there are: change_location,"),
        ({"type": "change_loction"}, "did you mean 'change_location'?"),
        ({"type": "change_location", "too": "mill"}, "it has no field 'too'; to is missing (fields: to, who)"),
        ({"type": "wound", "by": "much"}, "by must be a whole number"),
        ({"type": "wound", "by": True}, "by must be a whole number"),
        ({"type": "wound", "by": 10**30}, "by must be a whole number"),
        ({"type": "gain_item", "item": "x" * 500}, "item has 500 characters, at most 120 are taken"),
        ({"type": "whisper", "to": ["a"] * 99, "text": "x"}, "to has 99 entries, at most 24 are taken"),
        ({"type": "whisper", "to": ["tam"], "text": "\ud800"}, "text has characters that cannot be stored"),
        ({"type": "gain_item", "item": "x", "secretly": 1}, "secretly must be true or false"),
        ({"type": "whisper", "to": 3, "text": "x"}, "to must be a list of strings, not int"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_read_says_what_is_wrong(raw: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        command_from_json(raw)
    assert message in str(caught.value)


def test_the_schema_for_models_admits_every_command_and_bounds_every_string() -> None:
    for one in commands_schema()["anyOf"]:
        assert one["properties"]["type"]["const"] in COMMANDS
        for name, field in one["properties"].items():
            assert name == "type" or field["type"] != "string" or field["maxLength"] <= 1200
            assert field["type"] != "array" or field["maxItems"]
    offered = {one["properties"]["type"]["const"] for one in commands_schema()["anyOf"]}
    assert "change_location" in offered
    assert "set_flag" not in offered


# -- always ------------------------------------------------------------------------------------------------------------

PEOPLE = st.sampled_from(["wren", "tam", "mara", "bruno", "nobody", ""])
SOME = st.lists(PEOPLE, max_size=2, unique=True).map(tuple)
THINGS = st.sampled_from(["mill_key", "lantern", "knife", "pebble"])
PLACES = st.sampled_from(["inn", "road", "mill", "moon"])
VOWS = st.sampled_from(["return_key", "other"])
SECRETS = st.sampled_from(["truth", "wrens_own"])
SMALL_NUMBERS = st.integers(-3, 3)
WISHES: st.SearchStrategy[Command] = st.one_of(
    st.builds(cm.ChangeLocation, PLACES, SOME),
    st.builds(cm.UpdateLocation, PLACES, st.sampled_from(["", "cleared", "deadly"]), st.sampled_from(["", "rats"])),
    st.builds(cm.GainItem, THINGS, PEOPLE, st.booleans()),
    st.builds(cm.LoseItem, THINGS, PEOPLE, st.booleans()),
    st.builds(cm.GiveItem, THINGS, PEOPLE, PEOPLE, st.booleans()),
    st.builds(cm.MakePromise, VOWS, PEOPLE, st.just("to help"), PEOPLE),
    st.builds(cm.KeepPromise, VOWS),
    st.builds(cm.BreakPromise, VOWS),
    st.builds(cm.ChangeRelationship, PEOPLE, SMALL_NUMBERS, PEOPLE),
    st.builds(cm.Kill, PEOPLE),
    st.builds(cm.Wound, PEOPLE, SMALL_NUMBERS),
    st.builds(cm.Mend, PEOPLE, SMALL_NUMBERS),
    st.builds(cm.Whisper, SOME, st.just("psst"), PEOPLE),
    st.builds(cm.Reveal, SECRETS, SOME, PEOPLE),
    st.builds(cm.LearnSecret, SECRETS, SOME),
    st.builds(cm.StartEncounter, st.just("rats")),
    st.builds(cm.TurnEncounter, SMALL_NUMBERS),
    st.builds(cm.ResolveEncounter, st.just("rats"), st.sampled_from(["won", "lost", "escaped"])),
    st.builds(cm.PassTime, SMALL_NUMBERS),
    st.builds(cm.CompleteObjective, st.sampled_from(["get_key", "open_mill"])),
    st.builds(cm.ProgressAct),
)
ACTING = ("who", "by", "giver", "taker", "to", "npc")


def named(event: Event) -> set[str]:
    found: set[str] = set()
    for name in ACTING:
        value = getattr(event, name, ())
        found |= set(value) if isinstance(value, tuple) else {value} if isinstance(value, str) else set()
    return found


@given(st.lists(WISHES, max_size=40))
@settings(max_examples=150, deadline=None)
def test_whatever_is_wished_for_the_game_stays_whole(wishes: list[Command]) -> None:
    state, told = start(), list[Event]()
    for wish in wishes:
        dead = set(state.dead)
        settled = settle(state, SMALL, [wish], "wren")
        for event in settled.events:
            if not isinstance(event, ev.PromiseKept | ev.PromiseBroken):
                assert not named(event) & dead, f"{event} is of someone dead"
        told += settled.events
        state = settled.state
        people = {*PARTY, *SMALL.npcs}
        for holder in state.items.values():
            assert holder in ("", GONE) or (holder in people - set(state.dead)) or holder.removeprefix("@") in SMALL.places
        assert set(state.where) == people
        assert all(0 <= wounds <= DOWN for wounds in state.wounds.values())
        assert all(-5 <= felt <= 5 for by in state.attitude.values() for felt in by.values())
    assert fold(begin(SMALL, PARTY), told) == state


@given(st.lists(WISHES, max_size=25), st.integers(0, 25))
@settings(max_examples=80, deadline=None)
def test_going_back_is_folding_less(wishes: list[Command], cut: int) -> None:
    """The state after any part of the log is a function of that part, also when the log went through JSON."""
    states, told = [start()], list[Event]()
    for wish in wishes:
        settled = settle(states[-1], SMALL, [wish], "tam")
        told += settled.events
        states.append(settled.state)
    log = json.loads(json.dumps([event_to_json(event) for event in told]))
    assert [event_from_json(raw) for raw in log] == told
    assert fold(start(), [event_from_json(raw) for raw in log]) == states[-1]
    seen = [fold(start(), told[:count]) for count in range(len(told) + 1)]
    assert seen[min(cut, len(told))] == fold(start(), told[: min(cut, len(told))])
    assert all(state in seen for state in states)


@given(WISHES)
def test_commands_go_through_json(wish: Command) -> None:
    assert command_from_json(json.loads(json.dumps(command_to_json(wish)))) == wish


@given(st.lists(WISHES, max_size=15))
@settings(max_examples=50, deadline=None)
def test_a_state_goes_through_json(wishes: list[Command]) -> None:
    state = settle(start(), SMALL, wishes, "wren").state
    assert state_from_json(json.loads(json.dumps(state_to_json(state)))) == state
