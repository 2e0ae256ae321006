"""Nobody speaks of what they have not heard: people of a pack know what was said and done where they were, and an ending is told to all."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

import talekeeper as tk
from talekeeper.memory.moments import adventure_moments
from talekeeper.table.brain import Ask, Part
from talekeeper.table.packs import load
from talekeeper.table.playing.flight import DM
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Setup, Table, begin
from talekeeper.table.rules.conditions import begin as first_state
from talekeeper.table.rules.ledger import ledger
from talekeeper.table.rules.settling import settle
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.storyteller.reminders import as_seen_by, retold
from talekeeper.table.world.commands import MakePromise
from talekeeper.table.world.events import Beat


class Listening(Storyteller):
    """The storyteller, and what it was asked and answered."""

    def __init__(self, scenario: object) -> None:
        super().__init__(scenario)  # type: ignore[arg-type]
        self.told: list[tuple[Ask, str]] = []

    def text(self, ask: Ask) -> str:
        self.told.append((ask, super().text(ask)))
        return self.told[-1][1]


async def table_of(keeper: tk.Keeper, pack: str, seed: int, *humans: str) -> Table:
    party = ("nell", "osric", "ibbi")
    return await begin(keeper, tk.MemoryKey("local", "local", f"s{seed}"), Setup(pack, party, humans, seed), Listening)


def tales(table: Table, role: Part = "narrator") -> list[tuple[Ask, str]]:
    brain = table.brain(role)
    assert isinstance(brain, Listening)
    return [(ask, text) for ask, text in brain.told if ask.role == role]


async def say(game: Game, text: str) -> None:
    async for _ in game.round():
        pass
    async for _ in game.answer(text):
        pass


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Tidelamp, in which every deed that is worth remembering has a word of its own that stands nowhere else."""
    text = (resources.files("talekeeper.table.packs") / "scenarios" / "tidelamp.toml").read_text("utf-8")
    numbers = iter(range(1000))
    text = re.sub(r'^summary = ".*"$', lambda _: f'summary = "did what is called canary{next(numbers)}x"', text, flags=re.M)
    path = tmp_path_factory.mktemp("packs") / "marked.toml"
    path.write_text(text, "utf-8")
    return path


async def test_people_speak_of_what_they_were_there_for_and_of_nothing_else(marked: Path) -> None:
    spoken = 0
    here, there = ["I talk to Marlo.", "I talk to Brine."] * 2, ["I talk to Dorrit.", "I talk to Wick."] * 2
    script = ["I ask Marlo about the job.", *here, "I go to the fish market.", *there, "I go to the Crooked Eel.", *here]
    async with tk.open(":memory:") as keeper:
        for seed in (1, 2, 3, 4):
            table = await table_of(keeper, str(marked), seed, "nell")
            async with Game(table) as game:
                for action in script:
                    known = {npc: {one.summary for one in await adventure_moments(table.story, npc)} for npc in table.scenario.npcs}
                    before = len(tales(table))
                    await say(game, action)
                    for ask, text in tales(table)[before:]:
                        talks = [
                            one.about[0] for ruling in ask.rulings for one in ruling.events if isinstance(one, Beat) and one.what == "talk"
                        ]
                        for canary in re.findall(r"canary\d+x", text):
                            spoken += 1
                            assert any(canary in summary for npc in talks for summary in known[npc]), (seed, ask.round, text)
    assert spoken, "somebody did bring up what they had seen"


async def test_words_are_remembered_by_those_who_heard_them() -> None:
    remembered = 0
    async with tk.open(":memory:") as keeper:
        for seed in (1, 2, 3):
            table = await table_of(keeper, "tidelamp", seed, "nell")
            async with Game(table) as game:
                await say(game, "“I shall rob Dorrit Scale of every herring she has,” I say to Osric.")
                await say(game, "I go to the fish market.")
                await say(game, "“Somebody will tell you about the Gannet, Dorrit.”")
                for _ in range(3):
                    await say(game, "I talk to Dorrit.")
            told = " ".join(text for _, text in tales(table))
            assert "herring she has" not in told, told
            remembered += "tell you about the Gannet" in told
    assert remembered, "what was said to her face she keeps in mind"


async def test_an_ending_is_made_of_what_all_of_the_party_know_and_of_its_last_deed() -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 1)
        secret = {"type": "discovery", "summary": "read the letter under the floor", "significance": 1.0}
        async with Game(table) as game:
            async for _ in game.round():
                pass
            await table.story.append("", "A letter.", kind="event", heard_by=("nell",), marks=[tk.Mark("moment", secret)])
            while not (await table.state()).ending:
                async for _ in game.round():
                    pass
        asked, _ = tales(table, "epilogue")[-1]
        told = [one.summary for one in asked.moments]
        everything = [one.summary for one in await adventure_moments(table.story, DM)]
        assert "read the letter under the floor" in everything
        assert "read the letter under the floor" not in told
        assert any("Tidelamp" in one or "tower" in one for one in told[-2:]), told


def test_a_deed_is_told_by_the_one_who_tells_it() -> None:
    assert retold("walked through the drowse without closing our eyes", "they") == "walked through the drowse without closing their eyes"
    assert as_seen_by("took on Marlo Finch's job", ["Marlo Finch", "Marlo"]) == "took on my job"
    assert as_seen_by("got a seal from Old Pell", ["Old Pell", "Pell"]) == "got a seal from me"
    assert as_seen_by("won Captain Hale of the watch, who will look away", ["Captain Hale", "Hale"]) == ""


def test_a_ledger_shows_the_promises_that_one_heard() -> None:
    """Osric gives Marlo his word where nobody hears it, and Brine before all."""
    pack = load("tidelamp")
    given = [MakePromise("a", "marlo", "to sing", secretly=True), MakePromise("b", "brine", "to mend the roof")]
    state = settle(first_state(pack, ("nell", "osric")), pack, given, "osric").state
    assert [one.text for one in ledger(state, pack, ("nell",)).promises] == ["to mend the roof"]
    assert [one.text for one in ledger(state, pack, ("osric",)).promises] == ["to sing", "to mend the roof"]
    assert len(ledger(state, pack, ()).promises) == 2, "whoever looks behind the screen sees all of it"


def test_a_ledger_does_not_tell_who_else_knows_a_secret() -> None:
    pack = load("tidelamp")
    state = replace(first_state(pack, ("nell", "osric")), knows={"pact": ("nell", "osric")})
    assert ledger(state, pack, ("nell",)).secrets == ((pack.secrets["pact"].text, ("Nell Tarn",)),)


async def test_memories_of_the_world_name_things_as_people_do() -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 1, "nell")
        async with Game(table) as game:
            await say(game, "I ask Marlo about the job.")
            await say(game, "I look around.")
        context = (await table.remember("nell", place="crooked_eel", present=())).text
    assert "Objective completed: “Rob the Customs House”, “Find out what the job is”." in context
    assert "the offer" not in context


@pytest.mark.parametrize(
    "said", ["I tell Marlo that the key lies under the mill wheel.", "“The key lies under the mill wheel,” I say to Marlo."]
)
@pytest.mark.parametrize("asked", ["Marlo, what did I tell you about the key?", "I ask Marlo what I told him about the key."])
async def test_who_was_told_something_long_ago_says_it_again_when_they_are_asked(said: str, asked: str) -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, said)
            for number in range(12):
                await say(game, f"I tell Marlo that I have counted {number + 20} gulls today.")
            await say(game, asked)
            assert "‘The key lies under the mill wheel.’" in tales(table)[-1][1]
            await say(game, "Marlo, what did I tell you about the elephant?")
            assert "‘" not in tales(table)[-1][1], "of that they were told nothing"


@pytest.mark.parametrize("asked", ["I talk to Marlo.", "Marlo, what did I tell you about the key?"])
async def test_what_was_told_in_confidence_is_said_again_to_nobody_else(asked: str) -> None:
    async with tk.open(":memory:") as keeper:
        for seed in range(1, 5):
            table = await table_of(keeper, "tidelamp", seed, "nell")
            async with Game(table) as game:
                await say(game, "“The key lies under the mill wheel,” I whisper to Marlo.")
                await say(game, asked)
            assert not [text for ask, text in tales(table) if "mill wheel" in text]


async def test_who_asks_in_confidence_is_told_again_what_was_told_in_confidence() -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, "“The key lies under the mill wheel,” I whisper to Marlo.")
            await say(game, "I quietly ask Marlo what I told him about the key.")
        turns = [turn for turn in await table.story.turns(speaker=DM) if "mill wheel" in turn.text]
        assert [set(turn.audience) for turn in turns] == [{"nell", "marlo", DM}]


@pytest.mark.parametrize("asked", ["What did I tell Osric about the key?", "I ask Osric what I told him.", "Osric, what did I tell you?"])
async def test_companions_too_say_again_what_they_were_told(asked: str) -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, "I tell Osric that the key lies under the mill wheel.")
            await say(game, "I ask Osric about the weather.")
            await say(game, asked)
            assert "‘The key lies under the mill wheel.’" in tales(table)[-1][1]


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I say to Osric: I trust you.", "I trust you."), ("I tell Osric that I trust you", "I trust you."), ("I tell Osric that I trust him.", "I trust him."),
        ("I tell Osric about my brother", "About my brother."), ("Osric, I trust you.", "I trust you."), ("“I trust you,” I say to Osric.", "I trust you."),
        ("“I trust you, Osric. Do you trust me?”", "I trust you, Osric."), ("I tell Ibbi and Osric how I lost my brother", "How I lost my brother."),
        ("I look at Osric and tell him that I am tired.", "I am tired."), ("I give Osric my word that I will protect him.", "I will protect him."),
        ("I tell Osric that I counted the doors and the windows and the chimneys of this house, and that there are more of them than I like.",
         "I counted the doors and the windows and the chimneys of this house, and that there are more of them than I like."),
    ],
)  # fmt: skip
async def test_companions_say_again_what_they_were_told_as_it_was_said(said: str, quote: str) -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, said)
            await say(game, "Osric, what did I tell you?")
            assert f"‘{quote}’" in tales(table)[-1][1]


async def test_what_one_trusts_a_companion_with_is_not_said_before_others() -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, "I quietly tell Osric about my brother.")
            await say(game, "Osric, what did I tell you?")
            assert "brother" not in tales(table)[-1][1]
            await say(game, "I whisper to Osric: what did I tell you?")
        turns = [turn for turn in await table.story.turns(speaker=DM) if "my brother" in turn.text]
        assert [set(turn.audience) for turn in turns] == [{"nell", "osric", DM}]


@pytest.mark.parametrize("whispered", ["I whisper to Ibbi: the key lies under the mill wheel", "I wait."])
async def test_what_was_whispered_is_asked_aloud_in_vain_and_in_a_whisper_not(whispered: str) -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell")
        async with Game(table) as game:
            await say(game, whispered)
            await say(game, "Ibbi, do you remember what I whispered to you?")
            assert re.search("Not aloud|Not here", tales(table)[-1][1]), "whether there was anything or not"
            await say(game, "I whisper to Ibbi: do you remember what I told you?")
        turns = [turn for turn in await table.story.turns(speaker=DM) if "mill wheel" in turn.text]
        assert [set(turn.audience) for turn in turns] == ([{"nell", "ibbi", DM}] if "key" in whispered else [])


async def test_people_speak_for_themselves() -> None:
    async with tk.open(":memory:") as keeper:
        table = await table_of(keeper, "tidelamp", 3, "nell", "osric")
        async with Game(table) as game:
            for line in (
                "I ask Osric what he thinks of me.",
                "Osric, what do you want?",
                "I hug Osric.",
                "What did I tell Osric?",
                "I promise Osric that I will come back.",
                "Good night!",
            ):
                await say(game, line)
                async for _ in game.answer(""):
                    pass
        assert len(tales(table)) >= 5
        assert not [text for _, text in tales(table) if "Osric" in text]
