"""Scoped memories: what happened at a place, with someone, in the world; made when there is reason to, known to those who heard it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.conftest import OpenKeeper

import talekeeper as tk
from talekeeper.memory.entries import MERGE_AT, MemorySource, PrunePolicy
from talekeeper.memory.naming import named_in, names_of
from talekeeper.memory.scopes import MemoryService
from talekeeper.testing.models import MoodyModel, ScriptedModel

KEY = tk.MemoryKey("acme", "ana", "scopes")
SEATS = [
    tk.Seat("dm", role="dm"), tk.Seat("rogue", name="Rook"), tk.Seat("bard", name="Lark"),
    tk.Seat("elena", role="npc", name="Elena Swift"), tk.Seat("borin", role="npc", name="Borin"), tk.Seat("al", role="npc", name="Al"),
]  # fmt: skip


async def at_the_tavern(keeper: tk.Keeper, *who: str) -> tk.Story:
    story = await keeper.story(KEY, seats=SEATS)
    for seat in who or ("rogue", "bard", "elena", "borin"):
        await story.enter(seat, "tavern")
    return story


async def visit(story: tk.Story, service: MemoryService, text: str, place: str = "tavern") -> None:
    await story.append("dm", text, location=place)
    await service.on_location_exit(place)


async def summaries(service: MemoryService, seat: str | None, source: str, name: str = "") -> list[str]:
    return [entry.summary for entry in await service.entries(seat, source, name)]


# -- places --------------------------------------------------------------------------------------------------------------


async def test_leaving_a_place_makes_one_memory_and_moves_the_cursor(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    turn = await story.append("dm", "Rook wins the brass key from the innkeeper at dice.", location="tavern")
    [entry] = [entry for entry in await service.on_location_exit("tavern") if entry.source is MemorySource.LOCATION]
    assert "brass key" in entry.summary
    assert entry.tags == ("session", "location:tavern")
    assert (entry.location_id, entry.since_message_index, entry.sources) == ("tavern", turn.seq, (turn.id,))
    assert await service.on_location_exit("tavern") == [], "nothing is summarised twice"


async def test_a_visit_with_nothing_new_leaves_no_memory(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    assert await service.on_location_exit("tavern") == []
    assert await service.on_location_exit("nowhere at all") == []


async def test_a_place_must_be_named(keeper: tk.Keeper) -> None:
    service = MemoryService(await at_the_tavern(keeper))
    with pytest.raises(tk.TalekeeperError, match="location_id"):
        await service.on_location_exit("")


async def test_the_cursor_passes_over_nothing_that_was_not_summarised(keeper: tk.Keeper) -> None:
    """Every one of a hundred facts told at a place is in a memory of some visit, or in the log that the next one is made of."""
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    covered: set[int] = set()
    last = 0
    for number in range(40):
        turn = await story.append("dm", f"Rook pays {number + 2} crowns to the ferryman for the map of isle {number}.", location="tavern")
        if number % 3 == 2:
            for entry in await service.on_location_exit("tavern"):
                covered.update(range(last + 1, entry.since_message_index + 1))
                last = entry.since_message_index
            assert last == turn.seq
    assert {turn.seq for turn in await story.turns(location="tavern", before=last + 1)} <= covered


async def test_two_places_of_one_name_are_kept_apart(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    service = MemoryService(story, labels={"inn-1": "The Red Lion", "inn-2": "The Red Lion"})
    await visit(story, service, "Rook finds a silver ring under the bed.", "inn-1")
    await visit(story, service, "Lark loses 12 crowns to a stranger.", "inn-2")
    assert "ring" in (await service.location_memory("rogue", "inn-1"))
    assert "ring" not in (await service.location_memory("rogue", "inn-2"))
    assert "The Red Lion: " in (await service.location_memory("rogue", "inn-2"))


async def test_whispers_at_a_place_are_remembered_by_those_who_heard_them_alone(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("dm", "The hall celebrates the harvest with 3 barrels of ale.", location="tavern")
    await story.append("dm", "Rook alone finds the murderer's dagger.", heard_by=["rogue"], location="tavern", kind="whisper")
    await service.on_location_exit("tavern")
    assert "dagger" in await service.location_memory("rogue")
    assert "dagger" not in await service.location_memory("bard")
    assert "harvest" in await service.location_memory("bard")
    assert "dagger" in await service.location_memory("dm")


async def test_an_unheard_visit_changes_nothing_for_others(open_keeper: OpenKeeper) -> None:
    seen = []
    for secret in (False, True):
        keeper = await open_keeper(":memory:")
        story = await at_the_tavern(keeper)
        service = MemoryService(story)
        if secret:
            await story.append("dm", "Rook alone finds the dagger.", heard_by=["rogue"], location="tavern")
            await service.on_location_exit("tavern")
        await story.append("dm", "The hall celebrates the harvest.", location="tavern")
        await service.on_location_exit("tavern")
        await service.on_world_event("quest_completed", related={"quest_id": "harvest"})
        seen.append([await service.location_memory("bard"), await service.npc_memory("bard"), await service.world_memory("bard")])
    assert seen[0] == seen[1]


# -- people ----------------------------------------------------------------------------------------------------------------


async def test_npcs_remember_when_they_are_there_and_spoken_of(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("rogue", "Elena, I promise to bring your brother home.")
    await story.append("bard", "What a night.")
    made = await service.on_location_exit("tavern")
    assert {npc for entry in made for npc in entry.npc_ids} == {"elena"}
    [entry] = await service.entries("rogue", "npc", "elena")
    assert "promise" in entry.summary
    assert entry.tags == ("npc-session", "location:tavern", "npc:elena")


async def test_an_npc_who_is_elsewhere_remembers_nothing_of_it(keeper: tk.Keeper) -> None:
    """A confession to Elena is not in absent Borin's memory."""
    story = await at_the_tavern(keeper, "rogue", "elena")
    await story.enter("borin", "mill")
    service = MemoryService(story)
    await story.append("rogue", "Elena, it was I who burnt Borin's mill.")
    await service.on_location_exit("tavern")
    assert await service.entries("dm", "npc", "borin") == []
    assert await service.entries("elena", "npc", "elena") != []


async def test_an_npc_remembers_only_what_it_heard(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("rogue", "Borin must never know that I took 40 crowns.", heard_by=["elena"])
    await story.append("rogue", "Borin, the roof needs a carpenter.")
    await service.on_location_exit("tavern")
    [entry] = await service.entries(None, "npc", "borin")
    assert "40 crowns" not in entry.summary


@pytest.mark.parametrize(
    ("npc", "text", "meant"),
    [
        ("elena", "Elena smiles.", True), ("elena", "Ask Elena Swift herself.", True), ("elena", "ELENA!", True),
        ("elena", "The swift river", True), ("elena", "Helena waits.", False), ("al", "Behind the wall, all is calm.", False),
        ("al", "Al laughs.", True), ("al", "al-Rashid speaks", True),
    ],
)  # fmt: skip
def test_names_are_whole_words_and_parts_of_a_name_count(npc: str, text: str, meant: bool) -> None:
    seat = next(seat for seat in SEATS if seat.id == npc)
    assert named_in(text, names_of(seat)) is meant


def test_titles_do_not_stand_for_a_person_and_aliases_do() -> None:
    names = names_of(tk.Seat("voss", role="npc", name="Captain Voss", aliases=("the Grey Wolf", "米拉")))
    assert named_in("Voss nods.", names)
    assert named_in("They say the grey wolf is back.", names)
    assert named_in("老人把钥匙交给了米拉。", names)
    assert not named_in("The captain of the guard sleeps.", names)


async def test_the_turns_beside_a_mention_count_if_the_npc_heard_them(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("dm", "Far away the mill of Karst burns down.")
    await story.append("bard", "The price is 70 crowns.")
    await story.append("rogue", "Elena, do we have a deal?")
    await story.append("elena", "We have a deal, and you have my word.")
    await story.append("bard", "Then let us seal it with 2 cups of wine.")
    await story.append("dm", "Outside the bell of Saint Orla rings.")
    await service.on_location_exit("tavern")
    [entry] = await service.entries("dm", "npc", "elena")
    turns = {turn.id: turn.text for turn in await story.turns()}
    used = " ".join(turns[source] for source in entry.sources)
    assert "my word" in used
    assert "mill of Karst" not in used
    assert "Saint Orla" not in used


# -- the world ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["objective_completed", "quest_completed", "act_progressed", "location_cleared", "encounter_completed"])
async def test_every_kind_of_world_event_makes_a_memory(keeper: tk.Keeper, kind: str) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    turn = await story.append("dm", "The beacon on Crow Hill burns again.")
    entry = await service.on_world_event(kind, ["beacon"], {"quest_id": "beacon", "encounter_id": "crows"})
    assert entry is not None
    assert entry.tags == (f"world:{kind}", "beacon")
    assert (entry.quest_id, entry.encounter_id, entry.since_message_index) == ("beacon", "crows", turn.seq)
    assert "Crow Hill" in entry.summary


async def test_a_world_memory_tells_of_the_turn_that_was_the_reason_for_it(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    for number in range(6):
        await story.append("dm", f"Captain Voss swears to pay Rook {number + 20} gold crowns for the silver bell of tower {number}.")
    lit = await story.append("dm", "The lamp catches, and the whole coast is there again.")
    entry = await MemoryService(story).on_world_event("objective_completed", related={"objective_id": "light-the-lamp"}, of=lit)
    assert entry is not None
    assert entry.summary.startswith("Objective completed: light the lamp. ")
    assert entry.summary.endswith("The lamp catches, and the whole coast is there again.")
    assert "Captain Voss swears" in entry.summary


async def test_a_world_memory_does_not_repeat_the_canon(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    await story.note("Captain Voss swore never to light the lamp of Harrow Mill again.")
    await story.append("dm", "Captain Voss pays Rook 20 gold crowns for the silver bell.")
    entry = await MemoryService(story).on_world_event("quest_completed")
    assert entry is not None
    assert "silver bell" in entry.summary
    assert "Harrow Mill" not in entry.summary


async def test_several_events_in_one_turn_are_each_kept(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("dm", "With the third seal the gate falls shut.")
    for kind in ("objective_completed", "quest_completed", "act_progressed"):
        await service.on_world_event(kind, related={"quest_id": "seals"})
    kinds = [entry.tags[0] for entry in await service.entries("rogue", "world")]
    assert kinds == ["world:objective_completed", "world:quest_completed", "world:act_progressed"]


async def test_the_same_event_is_remembered_once(keeper: tk.Keeper) -> None:
    """A crash between making a memory and noting that it was made leaves the caller to say it again."""
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    told = [await story.append("dm", f"Rook brings home the lost bell number {number}.") for number in range(MERGE_AT + 3)]
    events = [("objective_completed", {"quest_id": "bells", "objective_id": f"bell-{turn.seq}"}, turn) for turn in told]
    for kind, related, turn in [*events, *events]:
        await MemoryService(story).on_world_event(kind, related=related, of=turn)
    entries = await service.entries("rogue", "world")
    assert sum(entry.visits for entry in entries) == len(events)
    assert len(entries) < len(events), "some were merged, and are known all the same"
    again = await service.on_world_event(*events[-1][:1], related=events[-1][1], of=told[-1])
    assert again == entries[-1]
    other = await service.on_world_event("quest_completed", related={"quest_id": "bells"}, of=told[-1])
    assert other is not None
    assert other.id != entries[-1].id


async def test_a_story_without_turns_has_no_world_memory(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    assert await MemoryService(story).on_world_event("quest_completed") is None


async def test_those_who_remember_the_same_at_once_make_one_memory(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    turn = await story.append("dm", "The beacon burns again, and the fleet turns for home.", location="tavern")
    services = [MemoryService(story) for _ in range(4)]
    made = await asyncio.gather(*(one.on_world_event("quest_completed", related={"quest_id": "beacon"}, of=turn) for one in services))
    assert len({entry.id for entry in made if entry is not None}) == 1
    await asyncio.gather(*(one.on_location_exit("tavern") for one in services))
    assert len(await services[0].entries(None, "world")) == 1
    assert len(await services[0].entries(None, "location", "tavern")) == 1


async def test_two_keepers_of_one_file_remember_a_visit_once(open_file: OpenKeeper) -> None:
    told = await at_the_tavern(await open_file())
    other = await (await open_file()).story(KEY)
    for number in range(MERGE_AT + 3):
        await told.append("dm", f"Rook pays {number + 2} crowns to Borin for barrel {number}.", location="tavern")
        await asyncio.gather(*(MemoryService(story).on_location_exit("tavern") for story in (told, other)))
    entries = await MemoryService(other).entries(None, "location", "tavern")
    assert sum(entry.visits for entry in entries) == MERGE_AT + 3
    assert [entry.since_message_index for entry in entries] == sorted({entry.since_message_index for entry in entries})


async def test_who_did_not_hear_of_an_event_does_not_remember_it(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    secret = await story.append("dm", "Rook opens the vault alone.", heard_by=["rogue"])
    await service.on_world_event("objective_completed", related={"objective_id": "vault"}, of=secret)
    assert await service.world_memory("bard") == ""
    assert "vault" in await service.world_memory("rogue")


# -- showing ---------------------------------------------------------------------------------------------------------------


async def test_the_newest_three_are_shown_and_the_tenth_visit_knows_the_first(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    await visit(story, service, "Rook promises Mother Agnes to find her lost amulet.")
    for number in range(2, 11):
        await visit(story, service, f"Rook wins {number} crowns from the sailors of ship number {number}.")
    text = await service.location_memory("rogue")
    lines = text.splitlines()
    assert lines[0] == "## Recent Location Memory"
    assert len(lines) == 1 + 1 + 3
    assert "(earlier)" in lines[1]
    assert "Agnes" in lines[1]
    assert all(f" {number} crowns" in line for number, line in zip((8, 9, 10), lines[2:], strict=True))
    one = MemoryService(story, shown=1)
    assert len((await one.location_memory("rogue")).splitlines()) == 3


async def test_many_visits_are_kept_in_few_entries_and_the_first_is_still_there(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    await visit(story, service, "Rook promises Mother Agnes to find her lost amulet.")
    for number in range(2, 40):
        await visit(story, service, f"Rook wins {number} crowns at the table.")
    entries = await service.entries("rogue", "location", "tavern")
    assert len(entries) <= MERGE_AT
    assert sum(entry.visits for entry in entries) == 39
    assert "Agnes" in entries[0].summary


async def test_the_three_sections_are_parts_of_a_context(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("rogue", "Elena, I promise to bring your brother home before winter.")
    await service.on_location_exit("tavern")
    await service.on_world_event("objective_completed", related={"objective_id": "oath"})
    for number in range(60):
        await story.append("dm", f"The road goes on past milestone {number}, and the rain with it.", location="tavern")
    context = await story.context("rogue", budget=900, extras=await service.notes("rogue"))
    for heading in ("## Recent Location Memory\n", "## NPC Memory\n", "## World Memory\n"):
        assert heading in context.text
    assert context.tokens <= 900


async def test_dates_are_story_time(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    await story.append("dm", "Rook finds the map.", location="tavern", when="Day 3")
    await service.on_location_exit("tavern")
    assert "(Day 3) " in await service.location_memory("rogue")
    await visit(story, service, "Rook loses the map.")
    assert "(turn 3) " in await service.location_memory("rogue")


# -- time travel, editing, pruning -------------------------------------------------------------------------------------------


async def test_rewinding_takes_memories_and_cursors_back(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    await visit(story, service, "Rook finds the map.")
    at = story.head
    await visit(story, service, "Rook burns the map.")
    await story.rewind(at)
    assert await summaries(service, "rogue", "location", "tavern") == ["Rook finds the map."]
    await visit(story, service, "Rook hides the map.")
    assert await summaries(service, "rogue", "location", "tavern") == ["Rook finds the map.", "Rook hides the map."]


async def test_an_edit_reaches_the_memory_made_from_it(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    turn = await story.append("dm", "Rook finds the silver crown of Orla.", location="tavern")
    await service.on_location_exit("tavern")
    await story.edit(turn, "Rook finds the copper crown of Orla.")
    text = await service.location_memory("rogue")
    assert "copper" in text
    assert "silver" not in text


async def test_forgetting_a_turn_takes_its_memory_away(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    turn = await story.append("dm", "Rook finds the silver crown.", location="tavern")
    await service.on_location_exit("tavern")
    await story.forget(turn)
    assert await service.location_memory("rogue") == ""


async def test_pruning_is_off_unless_there_is_a_policy(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story)
    for number in range(5):
        await visit(story, service, f"Rook wins {number + 2} crowns.")
    assert await service.prune() == 0
    assert len(await service.entries("rogue", "location", "tavern")) == 5
    assert await service.prune(PrunePolicy(max_entries=2)) == 3
    assert [entry.summary for entry in await service.entries("rogue", "location", "tavern")] == [
        "Rook wins 5 crowns.",
        "Rook wins 6 crowns.",
    ]
    assert await service.on_location_exit("tavern") == [], "what was pruned is not summarised again"


async def test_pruning_by_tags_and_its_undoing(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    service = MemoryService(story, policy=PrunePolicy(tags=("world:act_progressed",)))
    await story.append("dm", "The gate falls.")
    await service.on_world_event("act_progressed")
    await service.on_world_event("quest_completed")
    at = story.head
    assert await service.prune() == 1
    assert [entry.tags[0] for entry in await service.entries("dm", "world")] == ["world:quest_completed"]
    await story.rewind(at)
    assert len(await service.entries("dm", "world")) == 2


async def test_memories_survive_reopening(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await at_the_tavern(keeper, "rogue")
    await visit(story, MemoryService(story), "Rook finds the map.")
    text = await MemoryService(story).location_memory("rogue")
    await keeper.close()
    story = await (await open_file()).story(KEY)
    service = MemoryService(story)
    assert await service.location_memory("rogue") == text
    assert await service.on_location_exit("tavern") == [], "the cursor is where it was: nothing is torn"


# -- with a model ------------------------------------------------------------------------------------------------------------


async def test_a_models_text_replaces_the_extractive_one_when_it_arrives(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue")
    model = ScriptedModel(["Rook won the brass key of the cellar from Joss. [1, 2]"])
    service = MemoryService(story, summarizer=model)
    await story.append("dm", "Rook plays dice with Joss the innkeeper, all night long, for the brass key of the cellar.", location="tavern")
    await story.append("dm", "At dawn Rook throws three sixes. The brass key of the cellar is hers, and Joss curses.", location="tavern")
    [entry] = await service.on_location_exit("tavern")
    assert entry.made_by == "extractive"
    await service.settle()
    [entry] = await service.entries("rogue", "location", "tavern")
    assert (entry.made_by, "won the brass key" in entry.summary) == ("model", True)
    assert "this place" in model.asked[0][0]["content"]


@pytest.mark.parametrize("mood", ["failing", "empty", "garbage", "too long", "refusing", "reciting", "slow", "cancelled"])
async def test_a_model_that_fails_costs_no_memory(keeper: tk.Keeper, mood: str) -> None:
    story = await at_the_tavern(keeper, "rogue")
    model = MoodyModel(mood)
    service = MemoryService(story, summarizer=tk.Janitor(model, timeout=0.05))
    await story.append("dm", "Rook wins the brass key of the cellar from Joss the innkeeper.", location="tavern")
    await service.on_location_exit("tavern")
    await service.settle()
    [entry] = await service.entries("rogue", "location", "tavern")
    assert (entry.made_by, "brass key" in entry.summary) == ("extractive", True)
    assert model.calls == 2, "two attempts, then it is left alone"


async def test_turns_are_summarised_for_each_scope_without_being_kept(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue", "elena")
    turns = [await story.append("rogue", "Elena, I promise to bring your brother home before the first snow.")]
    plain = MemoryService(story)
    for summary in (
        await plain.summarize_location_session("tavern", turns), await plain.summarize_npc_interactions("elena", turns),
        await plain.summarize_world_update("quest_completed", turns),
    ):  # fmt: skip
        assert summary == 'Rook: "Elena, I promise to bring your brother home before the first snow."'
    model = ScriptedModel(lambda messages: "Rook promised Elena to bring her brother home before the first snow. [1]")
    modelled = MemoryService(story, summarizer=model)
    assert (
        await modelled.summarize_npc_interactions("elena", turns) == "Rook promised Elena to bring her brother home before the first snow."
    )
    assert "how things went with Elena Swift" in model.asked[0][0]["content"]
    failing = MemoryService(story, summarizer=MoodyModel("failing"))
    assert "first snow" in await failing.summarize_world_update("quest_completed", turns)
    assert await plain.summarize_location_session("tavern", []) == ""
    with pytest.raises(tk.UnknownSeat):
        await plain.summarize_npc_interactions("nobody", turns)
    assert await plain.entries(None, "location", "tavern") == []


async def test_each_scope_has_its_own_question(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper, "rogue", "elena")
    model = ScriptedModel(lambda messages: "x")
    service = MemoryService(story, summarizer=model)
    await story.append("rogue", "Elena, I promise to bring your brother home.")
    await service.on_location_exit("tavern")
    await service.on_world_event("quest_completed")
    await service.settle()
    asked = [messages[0]["content"] for messages in model.asked]
    assert any("this place" in system for system in asked)
    assert any("Elena Swift" in system for system in asked)
    assert any("quest completed" in system for system in asked)


# -- what comes between ---------------------------------------------------------------------------------------------------


class WaitingModel:
    """Tells of everything it is shown in one sentence, and cites the first piece alone; waits to be let go first."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, messages: Sequence[tk.Message]) -> str:
        await self.go.wait()
        if "ruby" in messages[-1]["content"]:
            return "Mira hid the ruby in the well while Rook waited at the tavern with Lark, Elena Swift and Borin. [1]"
        return "Rook pays the ferryman in crowns for the map of yet another isle. [1]"


async def test_a_late_answer_does_not_bring_back_what_was_edited(keeper: tk.Keeper) -> None:
    story, model = await at_the_tavern(keeper), WaitingModel()
    service = MemoryService(story, summarizer=model)
    await story.append("dm", "Rook waits at the tavern with Lark, Elena Swift and Borin for an hour.", location="tavern")
    turn = await story.append("dm", "Mira hid the ruby in the well behind the house, and said so to Borin.", location="tavern")
    await service.on_location_exit("tavern")
    await story.edit(turn, "Mira hid nothing at all, and said so to Borin.")
    model.go.set()
    await service.settle()
    assert "ruby" not in " ".join(await summaries(service, None, "location", "tavern") + await summaries(service, None, "npc", "borin"))


async def test_a_late_answer_does_not_bring_back_what_was_pruned_or_merged(keeper: tk.Keeper) -> None:
    story, model = await at_the_tavern(keeper, "rogue"), WaitingModel()
    service = MemoryService(story, summarizer=model)
    for number in range(MERGE_AT + 2):
        await visit(story, service, f"Rook pays {number + 2} crowns to the ferryman for the map of isle {number}.")
    before = [(entry.visits, entry.since_message_index) for entry in await service.entries(None, "location", "tavern")]
    assert sum(visits for visits, _ in before) == MERGE_AT + 2
    await service.prune(PrunePolicy(max_entries=2))
    model.go.set()
    await service.settle()
    after = [(entry.visits, entry.since_message_index) for entry in await service.entries(None, "location", "tavern")]
    assert after == before[-2:]


async def test_what_is_forgotten_leaves_merged_memories_too(keeper: tk.Keeper) -> None:
    story, model = await at_the_tavern(keeper, "rogue"), WaitingModel()
    model.go.set()
    service = MemoryService(story, summarizer=model)
    secrets = []
    for number in range(MERGE_AT + 1):
        await story.append("dm", f"Rook waits at the tavern for hour {number} with Lark, Elena Swift and Borin.", location="tavern")
        secrets.append(await story.append("dm", f"Mira hid the ruby in the well, under stone {number}.", location="tavern"))
        await service.on_location_exit("tavern")
        await service.settle()
    assert "ruby" in await service.location_memory("rogue", "tavern")
    for secret in secrets:
        await story.forget(secret)
    assert "ruby" not in await service.location_memory("rogue", "tavern")
    assert "ruby" not in " ".join(await summaries(service, None, "location", "tavern"))


@pytest.mark.parametrize("whispered", [0, 1, 3])
async def test_a_whisper_changes_nothing_in_what_others_remember_of_someone(keeper: tk.Keeper, whispered: int) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    await story.append("dm", "Borin bars the door with the iron bar.", location="tavern")
    for _ in range(whispered):
        await story.append("dm", "The ruby is under the bed.", location="tavern", heard_by=["rogue", "borin"], kind="whisper")
    await story.append("rogue", "Then we wait until the tide has turned and the captain is asleep.", location="tavern")
    await service.on_location_exit("tavern")
    shown = await service.npc_memory("bard", ["borin"])
    assert "Then we wait" in shown
    [entry] = await service.entries("bard", "npc", "borin")
    heard = len(await story.turns(seat="bard"))
    assert (entry.created_at, entry.since_message_index) == (f"turn {heard}", heard)


async def test_a_world_memory_keeps_its_headline_when_a_turn_is_edited(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    trimmed = await story.append("dm", "The lamp is trimmed by Tobin.")
    lit = await story.append("dm", "Rook lights the great lamp.")
    await service.on_world_event("quest_completed", related={"quest_id": "lantern"}, of=lit)
    await story.edit(trimmed, "The lamp is trimmed by Tobias.")
    [said] = await summaries(service, "rogue", "world")
    assert said.startswith("Quest completed: lantern.")
    assert "Tobias" in said


async def test_an_event_is_known_after_its_memory_was_merged(keeper: tk.Keeper) -> None:
    story = await at_the_tavern(keeper)
    service = MemoryService(story)
    turns = [await story.append("dm", f"Seal {number} of sixty is broken.") for number in range(60)]
    for _ in range(2):
        for number, turn in enumerate(turns):
            await service.on_world_event("objective_completed", related={"objective_id": f"seal-{number}"}, of=turn)
        assert sum(entry.visits for entry in await service.entries(None, "world")) == 60


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s.on_world_event("quest_completed", related={"sentences": "x"}),
        lambda s: s.on_world_event("quest_completed", related={"npc_ids": 5}),
        lambda s: s.on_world_event("quest_completed", related={"quest_id": 5}),
        lambda s: s.on_world_event("quest_completed", related={"weather": [1]}),
        lambda s: s.on_world_event("quest_completed", related={1: "x"}),
        lambda s: s.on_world_event("quest_completed", related="x"),
        lambda s: s.on_world_event("quest_completed", "abc"),
        lambda s: s.on_world_event("quest_completed", 5),
        lambda s: s.on_location_exit("tavern", present="borin"),
        lambda s: s.entries("bard", "nope"),
        lambda s: s.prune("x"),
        lambda s: s.summarize_location_session("tavern", None),
    ],
)
async def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    keeper: tk.Keeper, wrong: Callable[[MemoryService], Awaitable[object]]
) -> None:
    story = await at_the_tavern(keeper)
    await story.append("dm", "The bell rings.", location="tavern")
    service, head = MemoryService(story), story.head
    with pytest.raises(tk.TalekeeperError):
        await wrong(service)
    assert story.head == head


@pytest.mark.parametrize("wrong", [{"summarizer": 5}, {"labels": 5}, {"policy": 5}, {"shown": 0}])
async def test_a_service_says_what_it_is_made_of(keeper: tk.Keeper, wrong: dict[str, Any]) -> None:
    story = await at_the_tavern(keeper)
    with pytest.raises(tk.TalekeeperError):
        MemoryService(story, **wrong)
    with pytest.raises(tk.TalekeeperError, match="Story"):
        MemoryService(None)  # type: ignore[arg-type]
