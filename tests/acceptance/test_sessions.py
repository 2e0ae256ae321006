"""Sessions: what happened in each, what to say when the story is taken up again, and all that a seat knows in one context."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.tale import Teller
from tests.acceptance.test_the_ninth_bell import SEATS as NINTH_BELL
from tests.acceptance.test_the_ninth_bell import TALE
from tests.conftest import NOW, OpenKeeper

import talekeeper as tk
from talekeeper.live.hot import CHECKPOINT_EVERY
from talekeeper.memory import CONTRIBUTORS, Session, facts, list_sessions, recap, remember, session_summary
from talekeeper.ports import Found, Read
from talekeeper.stores import InMemoryStore

KEY = tk.MemoryKey("acme", "ana", "sessions")
SEATS = [tk.Seat("dm", role="dm"), tk.Seat("rogue", name="Rook"), tk.Seat("bard")]
EVENINGS = (
    (
        "The mill",
        "Captain Voss pays 40 gold for the map of the crypt.",
        "I swear that I will bring the ring back to Mira before the third bell.",
    ),
    ("The crypt", "The lich Ormund kills the old miller and takes the silver crown.", "I am afraid of the dark, and I always was."),
    ("The crown", "The Duke gives Rook a brass key to the treasury.", "I buy a round for the house: 12 silver!"),
)


async def campaign(keeper: tk.Keeper, evenings: int = 3, filler: int = 12) -> tk.Story:
    story = await keeper.story(KEY, seats=SEATS)
    for title, event, words in EVENINGS[:evenings]:
        await story.begin_session(title)
        await story.append("dm", event, marks=[tk.Mark("moment", {"type": "discovery", "summary": event, "significance": 0.7}, rank=0.7)])
        await story.append_many(
            [tk.Draft("dm", f"In {title.lower()} the hours pass, one after the other ({number}).") for number in range(filler)]
        )
        await story.append("rogue", words)
    return story


# -- what happened in a session --------------------------------------------------------------------------------------------------


async def test_sessions_are_numbered_by_their_markers(keeper: tk.Keeper) -> None:
    story = await campaign(keeper)
    assert [(session.number, session.title, session.turn) for session in await list_sessions(story, "bard")] == [
        (1, "The mill", 1), (2, "The crypt", 16), (3, "The crown", 31),
    ]  # fmt: skip


async def test_what_comes_before_the_first_marker_is_session_zero(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    await story.append("dm", "Long ago the lich Ormund stole the silver crown.")
    assert await list_sessions(story, "bard") == [Session(number=0, title="", turn=1, after=0, before=None)]
    await story.begin_session()
    assert [session.number for session in await list_sessions(story, "bard")] == [0, 1]
    assert "Ormund" in (await session_summary(story, "bard", 0)).text


async def test_a_session_is_summarised_from_what_happened_in_it(keeper: tk.Keeper) -> None:
    story = await campaign(keeper)
    summaries = {number: await session_summary(story, "bard", number) for number in (1, 2, 3)}
    for number, words in ((1, "Captain Voss"), (2, "Ormund"), (3, "brass key")):
        assert words in summaries[number].text
        assert [other for other in summaries if words in summaries[other].text] == [number]
        assert [moment.summary for moment in summaries[number].moments] == [EVENINGS[number - 1][1]]
    assert summaries[2].title == "The crypt"
    heard = {turn.id: turn.text for turn in await story.turns()}
    assert all("crypt" in heard[source] or heard[source] in EVENINGS[1] for source in summaries[2].sources if "hours" in heard[source])
    with pytest.raises(ValueError, match="knows of no session 4"):
        await session_summary(story, "bard", 4)


@pytest.mark.parametrize("budget", [0, 20, 60, 200, 2000])
async def test_a_session_summary_fits_its_budget(keeper: tk.Keeper, budget: int) -> None:
    story = await campaign(keeper, filler=60)
    summary = await session_summary(story, "bard", 2, budget=budget)
    assert summary.tokens == (keeper.counter.count(f"{summary.text}\n") if summary.text else 0) <= budget
    assert ("Ormund" in summary.text) is (budget >= 20)


async def test_a_session_summary_keeps_secrets(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, 1)
    await story.append("dm", "Mira gives Rook 40 gold for a brass key.", heard_by=["rogue"])
    assert "brass key" in (await session_summary(story, "rogue", 1)).text
    assert "brass key" not in (await session_summary(story, "bard", 1)).text


async def test_who_joins_late_knows_of_the_sessions_it_heard(keeper: tk.Keeper) -> None:
    await campaign(keeper, 2)
    story = await keeper.story(KEY, seats=[*SEATS, tk.Seat("druid")])
    await story.begin_session("The crown")
    assert [(session.number, session.title) for session in await list_sessions(story, "druid")] == [(1, "The crown")]


class Lasting(InMemoryStore):
    """Can be opened again."""

    async def close(self) -> None:
        """It goes on."""


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> InMemoryStore | Path:
    """Where a story can be found again."""
    return Lasting() if request.param == "memory" else tmp_path / "stories.db"


async def told_again(place: InMemoryStore | Path) -> tuple[int, int]:
    """How many entries are read for a session's summary, and for a recap behind it, where the story was not in memory."""
    read_so_far = 0
    async with tk.open(place, counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        story, read = await keeper.story(KEY), keeper.store.read

        async def counted(request: Read) -> Found:
            nonlocal read_so_far
            found = await read(request)
            read_so_far += len(found.entries)
            return found

        keeper.store.read = counted  # type: ignore[method-assign]
        assert "Ormund" in (await session_summary(story, "bard", 2)).text
        for_summary = read_so_far
        assert "Ormund" in (await recap(story, "bard", budget=2000)).text
        keeper.store.read = read  # type: ignore[method-assign]
        return for_summary, read_so_far - for_summary


@pytest.mark.parametrize("told", ["as it goes", "when all is stored", "never"])
async def test_a_session_is_told_without_reading_the_log(place: InMemoryStore | Path, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.story.residents.CLOSING", 60.0)  # however busy the machine is
    async with tk.open(place, counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        story = await campaign(keeper, filler=700)
        if told == "when all is stored":
            await story.settle()
            await story._hot.checkpoint()
        if told != "never":
            await session_summary(story, "bard", 2)
            await recap(story, "bard")
    if told == "never":
        assert sum(await told_again(place)) > 2000, "someone has to read it once, and who does may be one who only reads"
    for_summary, for_recap = await told_again(place)
    few = CHECKPOINT_EVERY  # what came after the last checkpoint may be read: how much that is depends on how busy the machine was
    assert (for_summary < few, for_recap < few) == (True, True), f"{for_summary} and {for_recap} entries of 2112 were read"


# -- when the story is taken up again -----------------------------------------------------------------------------------------------


async def test_a_recap_has_the_last_session_what_came_before_and_the_last_scene(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, 2)
    await story.begin_session("The crown")
    context = await recap(story, "bard", budget=800)
    assert [block.name for block in context.blocks] == ["story", "session", "moments", "callbacks", "recent"]
    last = context.block("session")
    before = context.block("story")
    scene = context.block("recent")
    assert last is not None
    assert before is not None
    assert scene is not None
    assert last.heading == "## Last Time: The crypt\n"
    assert "Ormund" in last.text
    assert "Captain Voss" in before.text
    assert scene.items[-1].text == "[Rook]: I am afraid of the dark, and I always was.\n"
    assert context.tokens == keeper.counter.count(context.text) <= 800


async def test_a_new_session_begins_with_what_mattered(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, 2)
    await story.begin_session("The crown")
    text = (await recap(story, "rogue", budget=1000)).text
    assert '## Who You Are\n- Rook: "I am afraid of the dark, and I always was."' in text
    assert "## Loose Ends\n" in text
    assert "I swear that I will bring the ring back to Mira" in text
    assert "## What Mattered\n- Turn 2 (discovery): Captain Voss pays 40 gold" in text


async def test_a_recap_keeps_secrets(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, 1)
    secret = await story.append(
        "dm", "Mira gives Rook 40 gold for a brass key. I swear that it opens the vault.", heard_by=["rogue"], voice="Mira"
    )
    await facts.add(story, "rogue", "trait", "Rook works for the Baron.", of=secret)
    await story.begin_session()
    assert "brass key" in (await recap(story, "rogue")).text
    assert "works for the Baron" in (await recap(story, "rogue")).text
    bard = (await recap(story, "bard", budget=5000)).text
    assert "brass key" not in bard
    assert "Baron" not in bard


@pytest.mark.parametrize("budget", [0, 1, 10, 40, 120, 400, 3000])
async def test_a_recap_fits_its_budget(keeper: tk.Keeper, budget: int) -> None:
    story = await campaign(keeper, filler=40)
    context = await recap(story, "rogue", budget=budget)
    assert context.tokens == (keeper.counter.count(context.text) if context.text else 0) <= budget


async def test_a_recap_of_a_story_that_has_just_begun(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    assert (await recap(story, "bard")).text == ""
    await story.begin_session("The mill")
    await story.append("dm", "A bell tolls.")
    assert "A bell tolls." in (await recap(story, "bard")).text


async def test_a_recap_is_the_same_after_a_restart_and_a_rewind(open_file: OpenKeeper) -> None:
    keeper = await open_file()
    story = await campaign(keeper, 2, filler=200)
    await story.begin_session()
    head = story.head
    before = await recap(story, "rogue")
    await story.append("rogue", "I hate Mira.")
    await story.rewind(head)
    assert await recap(story, "rogue") == before
    await story.settle()
    await keeper.close()
    assert await recap(await (await open_file()).story(KEY), "rogue") == before


async def test_on_a_real_story_a_recap_tells_the_evening_before() -> None:
    async with tk.open(":memory:", counter=tk.Heuristic(), clock=lambda: NOW) as keeper:
        teller = Teller(await keeper.story(KEY, seats=NINTH_BELL))
        for beat in TALE:
            await teller.tell(beat)
            if beat.do == "session" and "fourth" in beat.text:
                break
        elena, borin = [await recap(teller.story, seat, budget=1200) for seat in ("elena", "borin")]
        for context in (elena, borin):
            assert context.tokens <= 1200
            assert "## Last Time: The third evening: the Weir" in context.text
            assert "Hob Grist dies on the chain" in context.text
        assert "Wenna shall have a roof" in elena.text
        assert "Jory's betrayal" in elena.text
        assert "Jory's betrayal" not in borin.text
        assert "Lisbet" not in borin.text


# -- all of it in one context --------------------------------------------------------------------------------------------------------


async def test_a_seat_remembers_its_facts_and_its_loose_ends(keeper: tk.Keeper) -> None:
    story = await campaign(keeper)
    context = await remember(story, "rogue", budget=2000)
    assert '## Facts\n- Rook: "I am afraid of the dark, and I always was."' in context.text
    assert "## Loose Ends\n" in context.text
    assert "## Player Knowledge" not in context.text
    assert context.tokens == keeper.counter.count(context.text) <= 2000


async def test_a_dm_remembers_the_facts_of_all_players_and_what_they_know(keeper: tk.Keeper) -> None:
    story = await campaign(keeper)
    await story.append("dm", "Mira gives Rook a brass key.", heard_by=["rogue"])
    text = (await remember(story, "dm", budget=3000)).text
    assert 'Rook: "I am afraid of the dark' in text
    assert "## Player Knowledge\n- Rook knows: [DM]:" in text
    assert "[DM]: Mira gives Rook a brass key." in text.partition("- Rook knows: ")[2].splitlines()[0]
    assert "brass key." not in text.partition("- bard knows: ")[2].splitlines()[0]


async def test_what_is_remembered_may_be_had_from_others_and_replaced(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, 1)

    async def weather(story: tk.Story, seat: tk.Seat) -> dict[str, list[tk.Note]]:
        return {"world": [tk.Note(f"It rains on {seat.label}.")], "unknown part": [tk.Note("x")]}

    context = await remember(story, "rogue", budget=2000, contributors=(*CONTRIBUTORS, weather), extras={"callbacks": [tk.Note("Mine.")]})
    assert "## World Memory\n- It rains on Rook.\n" in context.text
    assert "## Loose Ends\n- Mine.\n" in context.text
    plain = tk.Recipe(volatile=())
    assert (await remember(story, "rogue", budget=2000, recipe=plain)).text == (
        await story.context("rogue", budget=2000, recipe=plain)
    ).text


async def test_a_query_brings_turns_back_beside_all_that(keeper: tk.Keeper) -> None:
    story = await campaign(keeper, filler=80)
    context = await remember(story, "bard", budget=700, query="Who pays 40 gold for the map of the crypt?")
    assert context.block("recall") is not None or "Captain Voss pays 40 gold" in context.text
    assert context.tokens <= 700


async def test_no_seat_remembers_another_seats_secrets(keeper: tk.Keeper) -> None:
    contexts = []
    for secret in ("Mira gives Rook a brass key and swears revenge.", "Ormund is a lich and Rook hates Ormund, who promises 90 gold."):
        story = await keeper.story(tk.MemoryKey("acme", "ana", secret[:4]), seats=SEATS)
        for title, event, words in EVENINGS:
            await story.begin_session(title)
            await story.append("dm", event)
            await story.append("rogue", secret, heard_by=[])
            await story.append("rogue", words)
        contexts.append(await remember(story, "bard", budget=1500))
    assert contexts[0].text == contexts[1].text
    with pytest.raises(tk.UnknownSeat):
        await remember(story, "nobody")


async def test_a_stretch_covers_exactly_what_was_heard_between_two_entries(keeper: tk.Keeper) -> None:
    story = await keeper.story(KEY, seats=SEATS)
    for number in range(150):
        await story.append("dm", f"Mile {number} of the road, and 3 gold found.", heard_by=["rogue"] if number % 4 == 1 else None)
    for after, before in ((0, 151), (10, 90), (33, 36), (149, None), (70, 71)):
        wanted = [turn.id for turn in await story.turns(seat="bard", after=after, before=before)]
        for budget in (40, 300, 5000):
            stretch = await story.stretch("bard", after=after, before=before, budget=budget)
            assert sorted({source for item in stretch.items for source in await story.sources(item)}) == sorted(wanted)
            assert stretch.tokens <= budget
    assert all(item.kind != "turn" for item in (await story.stretch("bard", budget=9000)).items)
