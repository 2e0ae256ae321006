"""Counting: what a story holds and costs."""

from __future__ import annotations

from tests.stories import DM, deed, tell

import talekeeper as tk


async def test_stats_say_what_a_story_holds(keeper: tk.Keeper, story: tk.Story) -> None:
    turns = [*await tell(story, 3), await story.append("dm", "A secret.", heard_by=["rogue"]), await story.begin_session()]
    await story.edit(1, "Changed.")
    await story.fork()
    stats = await story.stats()
    assert (stats.turns, stats.sessions, stats.branches, stats.channels) == (5, 1, 2, 2)
    assert stats.tokens == sum(turn.tokens for turn in turns)
    assert {seat: row["turns"] for seat, row in stats.seats.items()} == {"dm": 5, "rogue": 5, "bard": 4, "innkeeper": 4}
    assert stats.seats["bard"]["tokens"] == stats.tokens - turns[3].tokens
    assert (stats.model_calls, stats.model_tokens_in, stats.model_tokens_out, stats.model_failures) == (0, 0, 0, 0)


async def test_seats_with_the_same_past_share_their_folds(keeper: tk.Keeper) -> None:
    made = []
    for count in (1, 5):
        seats = [DM, *(tk.Seat(f"pc{n}") for n in range(count))]
        story = await keeper.story(tk.MemoryKey("acme", "ana", f"{count} players"), seats=seats)
        await tell(story, 160)
        made.append(await story.stats())
    one, five = made
    assert five.folds == one.folds == 160 // 8 + 160 // 64, "five seats do not cost five times"
    assert one.folds_shared == one.folds, "of two who heard the same, one has all folds for nothing"
    assert five.folds_shared == 5 * five.folds, "and so have five of six"
    alone = await keeper.story(tk.MemoryKey("acme", "ana", "alone"), seats=[tk.Seat("pc0")])
    await alone.append_many([tk.Draft("pc0", deed(n)) for n in range(160)])
    await alone.edit(3, "Something quite different happened: the mill burned.")
    assert (await alone.stats()).folds_shared == 0, "whoever is alone shares nothing"
