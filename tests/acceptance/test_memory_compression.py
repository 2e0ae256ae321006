"""Compression: when memory nears its limit, the older part is folded, for that agent alone; and afterwards it all fits, always."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import NOW, OpenKeeper

import talekeeper as tk
from talekeeper.memory import MAX_COMPRESSION_PASSES, RETAIN_AFTER_COMPRESSION, AgentReport, MemoryManager, context_manager, facts
from talekeeper.testing.models import MoodyModel, ScriptedModel

KEY = tk.MemoryKey("acme", "ana", "compression")
DM, ROGUE, BARD = tk.Seat("dm", role="dm"), tk.Seat("rogue", name="Rook", token_limit=400), tk.Seat("bard", token_limit=400)
QUICK = tk.RetryPolicy(attempts=2, pause=0.001, longest=0.002, recover_after=3600)


def night(number: int) -> str:
    return f"On night {number} Captain Voss counts {40 + number} lamps at the harbour gate, and nobody says a word about the missing one."


async def begin(keeper: tk.Keeper, *seats: tk.Seat) -> tuple[tk.Story, MemoryManager]:
    story = await keeper.story(KEY, seats=seats or (DM, ROGUE, BARD))
    return story, MemoryManager(story)


async def tell(story: tk.Story, count: int, *, to: str | None = None, after: int = 0) -> None:
    for number in range(after, after + count):
        await story.append("dm", night(number), heard_by=None if to is None else [to])


async def shown(manager: MemoryManager, *agents: str) -> list[Any]:
    """All that can be seen of some agents' memories."""
    return [
        row for agent in agents
        for row in (await manager.agent_memory(agent), await manager.get_context(agent), await manager.get_total_context_tokens(agent))
    ]  # fmt: skip


# -- the total ----------------------------------------------------------------------------------------------------------------


async def test_the_total_of_an_empty_memory_is_nothing(keeper: tk.Keeper) -> None:
    _, manager = await begin(keeper)
    assert await manager.get_total_context_tokens("rogue") == 0


async def test_the_total_of_a_buffer_alone(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await story.append("dm", "A bell tolls.")
    assert await manager.get_total_context_tokens("rogue") == keeper.counter.count("## Recent Events\n[DM]: A bell tolls.\n")


async def test_the_total_of_a_summary_alone(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 6)
    summary = await manager.compress_buffer("rogue", retain_count=0)
    assert summary
    assert await manager.get_buffer_entries("rogue") == []
    assert await manager.get_total_context_tokens("rogue") == keeper.counter.count(f"## What You Remember\n{summary}\n")


async def test_the_total_has_the_characters_facts_in_it(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await story.append("dm", "A bell tolls.")
    before = await manager.get_total_context_tokens("rogue")
    await facts.add(story, "rogue", "trait", "Rook is afraid of deep water.", of=1)
    assert await manager.get_total_context_tokens("rogue") >= before + keeper.counter.count("- Rook is afraid of deep water.\n")


async def test_the_total_of_summary_buffer_and_facts(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 8)
    await facts.add(story, "rogue", "trait", "Rook is afraid of deep water.", of=1)
    await manager.compress_buffer("rogue")
    memory = await manager.agent_memory("rogue")
    assert memory is not None
    assert memory.long_term_summary
    assert len(memory.short_term_buffer) == 3
    assert memory.character_facts
    recent = "\n".join(memory.short_term_buffer)
    text = f"## What You Remember\n{memory.long_term_summary}\n## Recent Events\n{recent}\n## Facts\n{facts.format_character_facts(memory.character_facts)}\n"
    assert await manager.get_total_context_tokens("rogue") == keeper.counter.count(text)


async def test_under_the_limit_is_not_over_it_and_over_it_is(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 2)
    assert not await manager.is_total_context_over_limit("rogue")
    await tell(story, 30)
    assert await manager.is_total_context_over_limit("rogue")
    assert not await manager.is_total_context_over_limit("dm"), "whose limit is larger"


# -- before the dungeon master's turn -----------------------------------------------------------------------------------------


async def test_each_agent_is_looked_at_before_the_dms_turn(keeper: tk.Keeper) -> None:
    story, _ = await begin(keeper)
    await tell(story, 2)
    reports = await context_manager(story)
    assert list(reports) == ["dm", "rogue", "bard"]
    for agent, report in reports.items():
        assert (report.agent, report.passes, report.before, report.error) == (agent, 0, report.after, "")
    assert story.head == 2, "there was nothing to do, and nothing was written"


async def test_as_a_node_of_a_graph_it_takes_the_state_and_gives_it_back(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 20)
    state = {"story": story, "turn": 7}
    after = await context_manager(state)
    assert (after["story"], after["turn"], after["summarization_in_progress"]) == (story, 7, False)
    assert isinstance(after["memory_reports"]["rogue"], AgentReport)
    assert not await manager.is_total_context_over_limit("rogue")
    assert state == {"story": story, "turn": 7}, "what was given is not changed"


async def test_four_fifths_of_the_limit_trigger_it(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    number = 0
    while not await manager.is_near_limit("rogue"):
        assert (await context_manager(story))["rogue"].passes == 0
        await tell(story, 1, after=number)
        number += 1
    assert await manager.get_buffer_token_count("rogue") >= 0.8 * 400
    assert (await context_manager(story))["rogue"].passes == 1
    assert not await manager.is_near_limit("rogue")


async def test_a_seat_may_have_its_own_threshold_and_its_own_number_of_kept_turns(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=400, fold_at=0.3, keep=1), BARD)
    await tell(story, 6)
    reports = await context_manager(story)
    assert (reports["rogue"].passes, reports["bard"].passes) == (1, 0)
    assert len(await manager.get_buffer_entries("rogue")) == 1


async def test_older_entries_go_into_the_summary_and_leave_the_buffer(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 10)
    entries = await manager.get_buffer_entries("rogue")
    summary = await manager.compress_buffer("rogue")
    assert summary == await manager.get_long_term_summary("rogue")
    left = await manager.get_buffer_entries("rogue")
    assert left == entries[-3:]
    assert "Captain Voss" in summary
    assert keeper.counter.count(summary) < keeper.counter.count("\n".join(entries[:-3]))


async def test_the_newest_three_stay_word_for_word(keeper: tk.Keeper) -> None:
    assert RETAIN_AFTER_COMPRESSION == 3
    story, manager = await begin(keeper)
    await tell(story, 12)
    await manager.compress_buffer("rogue")
    assert await manager.get_buffer_entries("rogue") == [f"[DM]: {night(number)}" for number in (9, 10, 11)]


async def test_new_turns_join_the_buffer_after_it_was_compressed(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 10)
    await manager.compress_buffer("rogue")
    await tell(story, 2, after=10)
    assert await manager.get_buffer_entries("rogue") == [f"[DM]: {night(number)}" for number in range(7, 12)]


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_there_is_nothing_to_compress_in_a_short_buffer(keeper: tk.Keeper, turns: int) -> None:
    story, manager = await begin(keeper)
    await tell(story, turns)
    assert await manager.compress_buffer("rogue") == ""
    assert await manager.compress_long_term_summary("rogue") == ""
    assert len(await manager.get_buffer_entries("rogue")) == turns
    assert story.head == turns


async def test_every_turn_is_raw_or_under_a_fold_after_any_compression(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    for number in range(60):
        if number % 7 == 3:
            await story.append("dm", f"Psst, {number}.", heard_by=["bard"])
        await tell(story, 1, after=number)
        await context_manager(story)
        buffer = await manager.get_buffer_entries("rogue", limit=1000)
        recap = await story.recap("rogue", keep=len(buffer), budget=140, folded=True)
        covered = [source for item in recap.items for source in await story.sources(item)] + [turn.id for turn in recap.turns]
        assert sorted(covered) == sorted(turn.id for turn in await story.turns(seat="rogue"))


# -- it fits ------------------------------------------------------------------------------------------------------------------


async def test_one_pass_suffices_where_the_buffer_was_the_trouble(keeper: tk.Keeper) -> None:
    story, _ = await begin(keeper)
    await tell(story, 11)
    report = (await context_manager(story))["rogue"]
    assert report.passes == 1
    assert report.after <= 400 < report.before or report.after < report.before <= 400


async def test_a_second_pass_shortens_the_summary(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 60)
    for number in range(3):
        await story.append("dm", f"{night(number)} {'And the rain goes on. ' * 12}")
    report = (await context_manager(story))["rogue"]
    assert report.passes == 2
    assert report.after <= 400
    assert len(await manager.get_buffer_entries("rogue")) == 3
    assert await manager.get_long_term_summary("rogue")


async def test_the_summary_itself_can_be_told_in_half_the_tokens(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=2000))
    await tell(story, 80)
    long = await manager.compress_buffer("rogue")
    short = await manager.compress_long_term_summary("rogue")
    assert short == await manager.get_long_term_summary("rogue")
    assert 0 < keeper.counter.count(short) <= keeper.counter.count(long) / 2 + 1
    assert "Captain Voss" in short


async def test_a_summary_that_cannot_be_shorter_says_so_and_stays(keeper: tk.Keeper, caplog: pytest.LogCaptureFixture) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=2000))
    await tell(story, 80)
    await manager.compress_buffer("rogue")
    with caplog.at_level(logging.WARNING, "talekeeper"):
        for _ in range(12):
            before = await manager.get_long_term_summary("rogue")
            if not await manager.compress_long_term_summary("rogue"):
                break
    assert await manager.get_long_term_summary("rogue") == before != ""
    assert [record.message for record in caplog.records] == ["summary not compressed"]


async def test_there_are_two_passes_at_most(keeper: tk.Keeper) -> None:
    assert MAX_COMPRESSION_PASSES == 2
    story, _ = await begin(keeper, DM, tk.Seat("rogue", token_limit=60))
    await tell(story, 100)
    assert (await context_manager(story))["rogue"].passes <= MAX_COMPRESSION_PASSES


async def test_where_two_passes_do_not_suffice_coarser_folds_do(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=240))
    await tell(story, 60)
    for number in range(3):
        await story.append("dm", f"{night(number)} {'And the rain goes on. ' * 16}")
    report = (await context_manager(story))["rogue"]
    assert report.passes == MAX_COMPRESSION_PASSES
    assert report.after == await manager.get_total_context_tokens("rogue") <= 240
    memory = await manager.agent_memory("rogue")
    assert memory is not None
    assert memory.short_term_buffer[-1].startswith(f"[DM]: {night(2)} And the rain")
    assert "Voss" in memory.long_term_summary


@pytest.mark.parametrize("limit", [1, 2, 5, 10, 20, 40, 60, 90, 150])
async def test_it_fits_a_tiny_limit(keeper: tk.Keeper, limit: int) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=limit))
    await tell(story, 30)
    await facts.add(story, "rogue", "trait", "Rook is afraid of deep water.", of=1)
    report = (await context_manager(story))["rogue"]
    assert report.error == ""
    assert report.after == await manager.get_total_context_tokens("rogue") <= limit
    assert keeper.counter.count(await manager.get_context("rogue")) <= limit


async def test_huge_facts_are_cut_by_rank_and_named(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", name="Rook", token_limit=300))
    await tell(story, 5)
    for number in range(8):
        await facts.add(story, "rogue", "trait", f"Rook knows the {number}th verse of the song of the drowned bell, and much else.", of=1)
    await facts.add(story, "rogue", "relationship", "Rook owes Mira three silver.", of=1, about="Mira")
    report = (await context_manager(story))["rogue"]
    assert report.after <= 300
    memory = await manager.agent_memory("rogue")
    assert memory is not None
    assert memory.character_facts is not None
    assert [fact.text for fact in memory.character_facts.relationships] == ["Rook owes Mira three silver."]
    dropped = [left for left in report.left_out if left.block == "facts"]
    assert len(dropped) == 8 - len(memory.character_facts.traits) > 0
    assert all(left.reason == "no room" and left.sources for left in dropped)
    assert len(memory.short_term_buffer) >= 1


async def test_one_huge_turn_fits_too(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await story.append("dm", "The dragon Smarrow counts its gold, coin by coin, and curses the thief. " * 400)
    report = (await context_manager(story))["rogue"]
    assert report.before > 400 >= report.after
    assert "Smarrow" in await manager.get_context("rogue")


async def test_a_counter_whose_counts_do_not_add_up_is_obeyed(open_keeper: OpenKeeper) -> None:
    class Rounding:
        id = "rounding"
        additive = False

        def count(self, text: str) -> int:
            return len(text.encode()) // 3 + 7 if text else 0

    keeper = await open_keeper(counter=Rounding())
    story, manager = await begin(keeper)
    await tell(story, 40)
    for report in (await context_manager(story)).values():
        assert report.error == ""
        assert report.after <= report.token_limit
        assert keeper.counter.count(await manager.get_context(report.agent)) <= report.token_limit


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(1, 600), texts=st.lists(st.text(min_size=1, max_size=300).filter(lambda text: text.strip(" \0")), max_size=30),
    known=st.integers(0, 6), pinned=st.booleans(),
)  # fmt: skip
async def test_it_always_fits(limit: int, texts: list[str], known: int, pinned: bool) -> None:
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        story = await keeper.story(KEY, seats=[DM, tk.Seat("rogue", token_limit=limit)])
        for text in texts:
            try:
                await story.append("dm", text)
            except tk.InvalidInput:
                continue
        for number in range(known if story.head else 0):
            await facts.add(story, "rogue", "event", f"Rook won the {number}th wager against the smith of Vell.", of=1)
        if pinned and story.head:
            await story.pin(1)
        report = (await context_manager(story))["rogue"]
        if report.error:
            assert "BudgetTooSmall" in report.error
            assert pinned
        else:
            assert report.after <= limit
            assert keeper.counter.count(await MemoryManager(story).get_context("rogue")) <= limit


async def test_what_is_pinned_and_cannot_fit_is_said_and_not_dropped(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper, DM, tk.Seat("rogue", token_limit=10), BARD)
    await tell(story, 20)
    await story.pin(1)
    reports = await context_manager(story)
    assert "BudgetTooSmall" in reports["rogue"].error
    assert reports["bard"].error == ""
    assert reports["bard"].after <= 400
    with pytest.raises(tk.BudgetTooSmall):
        await manager.get_context("rogue")


# -- one agent, and no other --------------------------------------------------------------------------------------------------


async def test_compressing_one_agent_changes_nothing_for_another(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 12)
    before = await shown(manager, "bard", "dm")
    contexts = [await story.context(seat, budget=300) for seat in ("dm", "rogue", "bard")]
    await manager.compress_buffer("rogue")
    await manager.compress_long_term_summary("rogue")
    bard, dm = await shown(manager, "bard"), await shown(manager, "dm")
    assert bard == before[:3]
    assert dm[0] == before[3]
    assert [await story.context(seat, budget=300) for seat in ("dm", "rogue", "bard")] == contexts
    assert await story.turns() == await story.turns(seat="dm"), "and the log has no turn more"


async def test_several_agents_compress_in_one_go_each_by_itself(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 4, to="rogue")
    await tell(story, 15)
    reports = await context_manager(story)
    assert [reports[agent].passes > 0 for agent in ("dm", "rogue", "bard")] == [False, True, True]
    assert len(await manager.get_buffer_entries("rogue")) == 3
    assert await manager.get_long_term_summary("rogue") != await manager.get_long_term_summary("bard")


async def test_an_agent_remembers_in_its_summary_only_what_it_heard(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await story.append("dm", "Mira slides Rook a brass key and swears him to silence.", heard_by=["rogue"])
    await tell(story, 15)
    await context_manager(story)
    assert "brass key" in await manager.get_long_term_summary("rogue")
    assert "brass key" not in await manager.get_context("bard")


async def test_bad_data_of_an_agent_are_passed_over(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 20)
    await story.mark("fact:trait:rook", {"nonsense": True}, of=[1], heard_by=["rogue"])
    await story.mark("buffer:dm", {"unheard": "of"}, heard_by=["dm"])
    reports = await context_manager(story)
    assert [reports[agent].error for agent in ("dm", "rogue", "bard")] == ["", "", ""]
    assert not await manager.is_total_context_over_limit("rogue")


async def test_an_agent_whose_memory_fails_harms_no_other(
    keeper: tk.Keeper, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, manager = await begin(keeper)
    await tell(story, 20)
    recap = tk.Story.recap

    async def failing(story: tk.Story, seat: str, **settings: Any) -> tk.Recap:
        if seat != "bard":
            raise KeyError(seat)
        return await recap(story, seat, **settings)

    with caplog.at_level(logging.WARNING, "talekeeper"), monkeypatch.context() as patch:
        patch.setattr(tk.Story, "recap", failing)
        reports = await context_manager(story)
    assert [bool(reports[agent].error) for agent in ("dm", "rogue", "bard")] == [True, True, False]
    assert reports["bard"].after <= 400
    assert not await manager.is_total_context_over_limit("bard")
    assert len([record for record in caplog.records if "left as it is" in record.message]) == 2


@pytest.mark.parametrize("mood", ["failing", "empty", "garbage", "too long", "slow"])
async def test_a_model_that_fails_blocks_nobody_and_loses_nothing(open_keeper: OpenKeeper, mood: str) -> None:
    keeper = await open_keeper(summarizer=MoodyModel(mood), retry=QUICK)
    story, manager = await begin(keeper)
    await tell(story, 30)
    reports = await context_manager(story)
    for agent in ("rogue", "bard"):
        assert reports[agent].after <= 400
        assert reports[agent].made_by == ("extractive",)
        assert "Voss" in await manager.get_long_term_summary(agent)


async def test_what_a_model_wrote_is_in_the_summary_when_it_has_arrived(open_keeper: OpenKeeper) -> None:
    model = ScriptedModel(lambda messages: "Captain Voss counted lamps, and one was missing. [1]")
    keeper = await open_keeper(summarizer=model, retry=QUICK)
    story, manager = await begin(keeper)
    await tell(story, 60)
    await story.settle()
    report = (await context_manager(story))["rogue"]
    assert "model" in report.made_by
    assert "one was missing" in await manager.get_long_term_summary("rogue")


# -- what must survive --------------------------------------------------------------------------------------------------------

SAGA = (
    "Kira gives you a quest: rescue her brother Tomas from the mines of Vell before the new moon.",
    "Rook takes the torch and the rope.",
    "I promise Kira that Tomas comes home alive.",
    "The road to Vell is long and wet.",
    "Ondrej is Kira's cousin, and he hates the Baron.",
    "Someone coughs. The fire burns low.",
)


async def saga(keeper: tk.Keeper) -> str:
    story, manager = await begin(keeper)
    for number, text in enumerate(SAGA):
        await story.append("rogue" if number == 2 else "dm", text)
    await tell(story, 4)
    return await manager.compress_buffer("rogue")


async def test_names_survive(keeper: tk.Keeper) -> None:
    summary = await saga(keeper)
    assert "Kira" in summary
    assert "Tomas" in summary


async def test_quests_and_promises_survive(keeper: tk.Keeper) -> None:
    summary = await saga(keeper)
    assert "mines of Vell" in summary
    assert "promise" in summary


async def test_relationships_survive(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    for text in SAGA:
        await story.append("dm", text)
    await tell(story, 12)
    await context_manager(story)
    known = await facts.character_facts(story, "rogue", "Kira")
    assert "Ondrej is Kira's cousin, and he hates the Baron." in [fact.text for fact in known.relationships]
    assert "Kira" in await manager.get_long_term_summary("rogue")


async def test_recent_entries_are_always_there(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    for number in range(50):
        await tell(story, 1, after=number)
        await context_manager(story)
        entries = await manager.get_buffer_entries("rogue")
        assert entries[-min(3, number + 1) :] == [f"[DM]: {night(n)}" for n in range(max(0, number - 2), number + 1)]


# -- it is part of the story --------------------------------------------------------------------------------------------------


async def test_compression_survives_a_restart(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story, manager = await begin(keeper)
    await tell(story, 20)
    await context_manager(story)
    before = await shown(manager, "dm", "rogue", "bard")
    await keeper.close()
    again = MemoryManager(await (await open_file()).story(KEY))
    assert await shown(again, "dm", "rogue", "bard") == before


async def test_compression_is_rewound_with_the_story(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    await tell(story, 12)
    head, before = story.head, await shown(manager, "rogue")
    await manager.compress_buffer("rogue")
    await tell(story, 3, after=12)
    other = MemoryManager(await story.fork(at=head))
    await story.rewind(head)
    assert await shown(manager, "rogue") == before
    assert await shown(other, "rogue") == before


async def test_a_forgotten_turn_is_gone_from_summaries(keeper: tk.Keeper) -> None:
    story, manager = await begin(keeper)
    secret = await story.append("dm", "Ana Fuentes of Mill Lane pays 40 crowns for the map.")
    await tell(story, 12)
    assert "Fuentes" in await manager.compress_buffer("rogue")
    await story.forget(secret)
    assert "Fuentes" not in await manager.get_context("rogue")
    assert len(await manager.get_buffer_entries("rogue")) == 3


async def test_the_cost_of_a_round_does_not_grow_with_the_story(open_keeper: OpenKeeper) -> None:
    keeper = await open_keeper()
    story, manager = await begin(keeper)
    sizes: dict[int, Mapping[str, int]] = {}
    for size in (100, 800):
        await story.append_many([tk.Draft("dm", night(number)) for number in range(story.head, size)])
        await context_manager(story)
        memory = await manager.agent_memory("rogue")
        assert memory is not None
        sizes[size] = {"buffer": len(memory.short_term_buffer), "total": await manager.get_total_context_tokens("rogue")}
    assert sizes[800]["buffer"] == sizes[100]["buffer"] == 3
    assert sizes[800]["total"] <= 400
