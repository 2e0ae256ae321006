"""Looking at the log: filtered, paged, by seat. On every store."""

from __future__ import annotations

from tests.stories import tell

import talekeeper as tk


async def test_turns_can_be_filtered_by_seat_kind_speaker_and_place(story: tk.Story) -> None:
    await story.enter("rogue", "tavern")
    await story.enter("bard", "crypt")
    await story.append("rogue", "In the tavern.")
    await story.append("bard", "In the crypt.")
    await story.append("bard", "A thought.", kind="thought")
    await story.note("Lore.")
    await story.edit(3, "In the old tavern.")
    await story.pin(3)

    async def found(**wanted: object) -> list[str]:
        return [turn.text for turn in await story.turns(**wanted)]  # type: ignore[arg-type]

    assert await found(seat="rogue", kinds=["said", "thought"]) == ["In the old tavern."]
    assert await found(speaker="bard", kinds=["said"]) == ["In the crypt."]
    assert await found(location="crypt", kinds=["said", "thought"]) == ["In the crypt.", "A thought."]
    assert await found(kinds=["note"]) == ["Lore."]
    assert [turn.kind for turn in await story.turns()] == ["enter", "enter", "said", "said", "thought", "note"]
    assert [turn.kind for turn in await story.turns(kinds=["edit", "pin"])] == ["edit", "pin"]


async def test_turns_are_paged_by_number_in_both_directions(story: tk.Story) -> None:
    await story.append_many([tk.Draft("dm", f"Line {n}.", heard_by=["rogue"] if n % 2 else ["bard"]) for n in range(1, 1301)])
    everything = await story.turns()
    assert [turn.seq for turn in everything] == list(range(1, 1301))
    pages: list[tk.Turn] = []
    while page := await story.turns(after=pages[-1].seq if pages else 0, limit=333):
        pages += page
    assert pages == everything
    back: list[tk.Turn] = []
    while page := await story.turns(before=back[0].seq if back else None, limit=333, newest=True):
        back = page + back
    assert back == everything
    assert [turn.seq for turn in await story.turns(seat="rogue", limit=3, newest=True)] == [1295, 1297, 1299]
    assert [turn.seq for turn in await story.turns(seat="rogue", limit=3)] == [1, 3, 5]
    assert [turn.seq for turn in await story.turns(after=4, before=8)] == [5, 6, 7]
    assert await story.turns(limit=0) == []
    assert await story.turns(after=99_999) == []


async def test_a_turn_is_found_by_number_by_id_and_by_itself(story: tk.Story) -> None:
    turn = (await tell(story, 3))[1]
    own = await story.append("dm", "Mine.", id="my own id")
    assert await story.turn(2) == await story.turn(turn.id) == await story.turn(turn) == turn
    assert await story.turn("my own id") == own
