"""What is whispered, thought and done unseen reaches whom it is meant for, and nobody else: in the words that people use for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import OpenKeeper
from tests.table.test_rounds import Plain, play, table_of

import talekeeper as tk
from talekeeper.table.playing.rounds import Game
from talekeeper.table.playing.seating import Setup, Table, begin
from talekeeper.table.rules.ledger import ledger
from talekeeper.table.storyteller import Storyteller

KEY = tk.MemoryKey("local", "local", "game")
pytestmark = pytest.mark.parametrize("target", [":memory:"])
PARTY = ("nell", "osric", "ibbi")
THERE = {*PARTY, "marlo", "brine"}


async def tidelamp(keeper: tk.Keeper) -> Table:
    return await begin(keeper, KEY, Setup("tidelamp", PARTY, PARTY, 3), Storyteller)


async def ears(table: Table, word: str) -> set[str]:
    """Who has heard anything in which a word stands, besides the game master."""
    turns = [turn for turn in await table.story.turns() if word.casefold() in turn.text.casefold()]
    return {seat for turn in turns for seat in turn.audience} - {"dm"}


async def heard(keeper: tk.Keeper, line: str, word: str) -> set[str]:
    """Who hears of what Nell says or does before the others."""
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, line, "", "")
    return await ears(table, word)


@pytest.mark.parametrize(
    "line",
    [
        "I whisper to Ibbi, not Osric, that larkspur is the word.", "I whisper to Ibbi so that Osric does not hear: larkspur is the word",
        "I whisper about Osric to Ibbi. Larkspur!", "I whisper to Ibbi about Osric and the larkspur", "I whisper Osric's larkspur to Ibbi",
        "I whisper to Ibbi that Osric and Marlo know of the larkspur", "I wisper to Ibbi that larkspur is the word",
        "“Not a word to Osric: larkspur,” I whisper to Ibbi.", "I whisper “larkspur, and not a word to Osric” to Ibbi.",
        "I tell Ibbi in confidence that larkspur is the word", "In confidence I tell Ibbi that larkspur is the word",
        "I quietly tell only Ibbi that larkspur is the word", "I tell Ibbi alone that larkspur is the word", "I tell only Ibbi: larkspur",
        "I tell Ibbi, but not Osric, that larkspur is the word", "I tell Ibbi behind Osric's back that larkspur is the word",
        "Without Osric hearing it I tell Ibbi that larkspur is the word", "I tell Ibbi not to tell Osric of the larkspur",
        "I say to Ibbi in a low voice that larkspur is the word", "I say in Ibbi's ear: larkspur", "I take Ibbi aside and tell them of the larkspur",
        "I lean over to Ibbi and whisper that larkspur is the word", "I slip Ibbi a note: larkspur", "I pass a note to Ibbi that says larkspur",
        "I confide in Ibbi that larkspur is the word", "Ibbi, between you and me, larkspur is the word", "Psst, Ibbi! Larkspur.",
        "I share a secret with Ibbi: larkspur", "*whispers to Ibbi* larkspur", "(whispering to Ibbi) larkspur", "Nell whispers to Ibbi: larkspur",
        "I say, so that only Ibbi can hear it: larkspur", "I murmur to Ibbi that larkspur is the word", "I speak to Ibbi in private of the larkspur",
        "I whisper to everyone but Osric: larkspur", "I tell Ibbi when nobody listens that larkspur is the word", "I want to whisper to Ibbi that larkspur is the word",
        "I pull Ibbi close and whisper, “Larkspur.”", "I whisper to my friend Ibbi that larkspur is the word", "I whisper to Ibbi's ear: larkspur",
        "I tell Ibbi (not Osric) that larkspur is the word", "I have a private word with Ibbi: larkspur", "I mouth to Ibbi that larkspur is the word",
        "Quietly, to Ibbi: larkspur", "I lower my voice and tell Ibbi that larkspur is the word", "I lean in close to Ibbi: larkspur",
        "I tell no one but Ibbi that larkspur is the word", "I tell Ibbi without Osric knowing that Marlo has the larkspur",
        "Ibbi, don't tell Osric: larkspur", "Ibbi, keep this to yourself: larkspur", "Just between us, Ibbi: larkspur", "Confidentially, Ibbi, larkspur",
        "What a night! I whisper to Ibbi: larkspur", "Is it safe? I whisper to Ibbi: larkspur", "How about this: I whisper to Ibbi: larkspur",
        "When the bell rings, I whisper to Ibbi: larkspur", "I say softly to Ibbi, “larkspur”", "I tell Ibbi that larkspur is the word, whispering.",
        "When Osric is out of earshot, I tell Ibbi that larkspur is the word", "I tell Ibbi, nobody else may hear, that larkspur is the word",
        "Ibbi, nobody else may hear this: larkspur", "I tell Ibbi that larkspur is the word. Nobody else may hear it.",
        "Hush, Ibbi. Not a word to Osric: larkspur", "Shh, Ibbi: larkspur", "Once we're alone, I tell Ibbi that larkspur is the word",
        "I say sotto voce to Ibbi: larkspur", "Sotto voce to Ibbi: larkspur", "Aside to Ibbi: larkspur", "I scribble a note for Ibbi: larkspur",
        "Ibbi, a word in private: I know of the larkspur", "That larkspur stays between us, Ibbi.", "“Ibbi, larkspur is the word,” I whisper.",
        "I whisper, “Ibbi, larkspur is the word.”", "I'm whispering to Ibbi that larkspur is the word", "I tell Ibbi, whispering, that larkspur is the word",
        "I kiss Ibbi and whisper that larkspur is the word", "I leave a note for Ibbi on the table: larkspur",
        "I tell Ibbi low enough that Marlo can't hear: larkspur", "I sign to Ibbi that larkspur is the word", "I pass Ibbi a slip of paper: larkspur",
        "Whispering, I tell Ibbi that larkspur is the word", "I say “larkspur” in a whisper to Ibbi.", "I breathe a word into Ibbi's ear: larkspur", "In Ibbi's ear: larkspur",
        "I speak so low that only Ibbi hears me: larkspur", "To Ibbi only: larkspur", "Only to Ibbi: larkspur", "For Ibbi's ears only: larkspur", "Ibbi, just for you: larkspur",
        "Ibbi, our little secret: larkspur", "Ibbi, can you keep a secret? larkspur", "I tell Ibbi, out of the others' hearing, that larkspur is the word",
        "I tell Ibbi away from the others that larkspur is the word", "I tell Ibbi that larkspur is the word, but nobody else.",
        "I tell Ibbi that larkspur is the word, keeping it from Marlo.", "I whisper to Ibbi that if Marlo sleeps, I take the larkspur", "I whisper to Ibbi: If Marlo sleeps, I take the larkspur and you keep watch.",
        "I whisper to Ibbi to take the larkspur and run", "I lean over, lower my voice and tell Ibbi: take the larkspur", "As soon as Osric leaves, I tell Ibbi that larkspur is the word",
        "I whisper to Ibbi that we should go and take the larkspur", "I tell Ibbi in confidence I stole the larkspur",
    ],
)  # fmt: skip
async def test_a_whisper_reaches_the_one_it_is_for_and_nobody_else(keeper: tk.Keeper, line: str) -> None:
    assert await heard(keeper, line, "larkspur") == {"nell", "ibbi"}


@pytest.mark.parametrize(
    ("line", "to"),
    [
        ("I whisper to Ibbi and Osric: larkspur", {"ibbi", "osric"}), ("I whisper to Ibbi, Osric and Marlo that larkspur is the word", {"ibbi", "osric", "marlo"}),
        ("I turn to Ibbi and Marlo and whisper: larkspur", {"ibbi", "marlo"}), ("I tell Marlo and Ibbi in secret that larkspur is the word", {"marlo", "ibbi"}),
        ("I whisper to the others: larkspur", {"ibbi", "osric"}), ("I whisper to the landlady that larkspur is the word", {"brine"}),
        ("I whisper to her that larkspur is the word", {"brine"}), ("I whisper to Ibbi, Osric is the larkspur", {"ibbi"}),
    ],
)  # fmt: skip
async def test_a_whisper_to_several_reaches_exactly_those(keeper: tk.Keeper, line: str, to: set[str]) -> None:
    assert await heard(keeper, line, "larkspur") == {"nell", *to}


@pytest.mark.parametrize(
    "line",
    [
        "I mutter under my breath that larkspur is the word", "“Larkspur,” I say to myself.", "I think to myself: larkspur", "I say to myself that larkspur is the word",
        "I silently vow that larkspur is the word", "I secretly hope for the larkspur", "I think about the larkspur", "I don't tell Osric about the larkspur",
        "I say nothing to Osric about the larkspur", "I make a mental note of the larkspur", "I keep it to myself that larkspur is the word", "I tell nobody about the larkspur",
        "I tell myself that larkspur is the word", "I ask myself whether larkspur is the word", "I wonder whether larkspur is the word", "I wonder who has the larkspur",
        "I decide to betray Osric for the larkspur", "I plan to cheat Marlo of the larkspur", "I curse Osric and the larkspur silently",
        "I whisper a prayer for the larkspur.", "I promise myself that larkspur is the word",
    ],
)  # fmt: skip
async def test_a_thought_is_nobodys_but_ones_own(keeper: tk.Keeper, line: str) -> None:
    assert await heard(keeper, line, "larkspur") == {"nell"}


@pytest.mark.parametrize(
    "line",
    [
        "I secretly take the bottle of brandy", "When nobody looks, I take the bottle of brandy", "I take the bottle of brandy when nobody is watching",
        "Unseen, I take the bottle of brandy.", "I take the bottle of brandy behind Osric's back", "I discreetly pocket the bottle of brandy",
        "While Osric looks away I take the bottle of brandy", "I take the bottle of brandy without anyone noticing",
        "I palm the bottle of brandy", "I take the bottle of brandy without being seen", "I take the bottle of brandy without Brine's knowledge",
        "I hope nobody sees me take the bottle of brandy", "I take the bottle of brandy before Brine notices", "What a night! When nobody looks I take the bottle of brandy",
        "I take the bottle of brandy without telling Osric", "I wait for Brine to look away and take the bottle of brandy",
    ],
)  # fmt: skip
async def test_a_deed_that_nobody_is_to_see_is_known_to_the_doer_alone(keeper: tk.Keeper, line: str) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, line, "", "")
    told = [turn for turn in await table.story.turns() if turn.text in (line, "Takes a bottle of brandy.")]
    assert {seat for turn in told for seat in turn.audience} == {"nell", "dm"}
    state = await table.state()
    has = "Nell Tarn has a bottle of brandy"
    assert [has in ledger(state, table.scenario, (seat,)).lines for seat in PARTY] == [True, False, False]


async def test_a_word_that_is_given_in_secret_is_known_to_the_two_of_them(keeper: tk.Keeper) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, "I quietly promise Ibbi that I will find the larkspur.", "", "")
    assert await ears(table, "larkspur") == {"nell", "ibbi"}
    promised = "Nell Tarn promised Ibbi Sandlark: that I will find the larkspur (open)"
    assert [promised in ledger(await table.state(), table.scenario, (seat,)).lines for seat in PARTY] == [True, False, True]


async def test_what_is_slipped_to_someone_is_known_to_the_two_of_them(keeper: tk.Keeper) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, "I slip the picks to Ibbi.", "", "")
    assert await ears(table, "slip the picks") == {"nell", "ibbi"}
    assert (await table.state()).items["picks"] == "ibbi"


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("I whisper to Ibby that larkspur is the word", "There is no Ibby here. Did you mean Ibbi?"), ("I whisper to Quill: larkspur", "There is no Quill here. Here are Osric, Ibbi, Marlo and Brine."),
        ("I whisper to the king that larkspur is the word", "There is no king here."), ("I whisper Ibby the larkspur", "There is no Ibby here."),
        ("I tell only Ibby that larkspur is the word", "There is no Ibby here."), ("I whisper to Ibbi and Bob: larkspur", "There is no Bob here."),
        ("I whisper: larkspur", "Who is to hear that"), ("I whisper that Osric is the larkspur", "Who is to hear that"), ("I whisper to him: larkspur", "Who is to hear that"),
        ("I whisper to Ibbi or Osric: larkspur", "Who is to hear that"), ("I look at Osric and whisper that larkspur is the word", "Who is to hear that"),
        ("I slip a note: larkspur", "Who is to hear that"), ("I say quietly: larkspur", "Who is to hear that"), ("I keep whispering to Ibbi that larkspur is the word", "Who is to hear that"),
        ("I whisper to Ibbi: larkspur. I whisper to Osric: no larkspur", "One secret at a time"), ("I secretly take the brandy and whisper to Ibbi: larkspur", "One secret at a time"),
        ("I whisper to Osric, so that Osric does not hear: larkspur", "Is Osric to know of it, or not?"), ("I secretly attack Marlo with the larkspur", "cannot be done unseen"),
        ("I go to the fish market and whisper to Ibbi: larkspur", "One thing after the other"),
        ("I tell Brine of larkspur and secretly take the brandy.", "One secret at a time"), ("I tell Brine a larkspur joke and secretly take the brandy.", "One secret at a time"),
        ("I tell Brine that larkspur is the word, and take the brandy behind her back.", "Is Brine to know of it, or not?"),
        ("I thank Brine for the larkspur and take the brandy when she isn't looking.", "Is Brine to know of it, or not?"),
        ("I ask Marlo about the larkspur, and when he looks away I take the brandy.", "Is Marlo to know of it, or not?"),
        ("I ask Marlo about the larkspur, and when nobody looks I take the brandy.", "One secret at a time"),
        ("I promise Marlo the larkspur, but secretly I plan to cheat him.", "One secret at a time"), ("I greet Marlo with larkspur and secretly slip Osric the picks.", "One secret at a time"),
        ("I tell Marlo “We will do it.” Then, under my breath to Osric: “larkspur”", "One secret at a time"), ("I agree with Marlo, but in truth I plan to cheat him of the larkspur.", "One secret at a time"),
        ("I ask Marlo about the job and whisper to Osric that larkspur is the word.", "One secret at a time"), ("I tell Marlo that we agree and whisper to Osric that larkspur is the word.", "One secret at a time"),
        ("I say to Marlo: “Good night.” To Osric I whisper: “larkspur”", "One secret at a time"), ("I talk about the larkspur and secretly slip Osric the picks.", "One secret at a time"),
        ("I whisper to Osric that larkspur is the word and take the brandy.", "One secret at a time"), ("I secretly take the brandy and tell Marlo of the larkspur", "One secret at a time"),
        ("When nobody looks, I take the brandy and tell Marlo of the larkspur", "One secret at a time"), ("I secretly follow Marlo to the larkspur", "cannot be done unseen"),
        ("I talk to Marlo of larkspur while secretly taking the brandy.", "One secret at a time"), ("I tell Marlo the larkspur is here; secretly I hope he dies.", "One secret at a time"),
        ("I tell Marlo we agree, then lean to Osric and whisper that larkspur is the word.", "One secret at a time"), ("I say “Yes” to Marlo and whisper “larkspur” to Osric.", "One secret at a time"),
        ("I whisper to Osric, “larkspur”, then ask Marlo about the job.", "One secret at a time"), ("I whisper to Osric “larkspur” and say aloud “Good night.”", "One secret at a time"),
        ("Marlo, we agree. (to Osric, quietly) larkspur", "One secret at a time"), ("How are you, Marlo? I whisper to Osric that larkspur is the word.", "One secret at a time"),
        ("Marlo, I agree to the larkspur. When nobody looks I take the brandy.", "One secret at a time"), ("Marlo, thanks for the larkspur. I take the brandy behind Osric's back.", "One secret at a time"),
        ("I tell Osric and no one else that larkspur is the word.", "Who is to hear that"), ("In a whisper: Osric, larkspur", "Who is to hear that"),
        ("My voice is a whisper as I tell Osric larkspur.", "Who is to hear that"), ("I tell Osric in my lowest voice: larkspur", "Who is to hear that"),
        ("I make sure Ibbi can't hear and tell Osric larkspur.", "Who is to hear that"), ("I nod at Osric. I whisper to her: larkspur", "Who is to hear that"),
        pytest.param("I look around. " * 200 + "I whisper to Osric: larkspur", "One secret at a time", id="very long"),
        ("Ich flüstere Osric zu: larkspur", "Say it in English"), ("je chuchote à Osric: larkspur", "Say it in English"), ("susurro a Osric: larkspur", "Say it in English"),
    ],
)  # fmt: skip
async def test_where_nobody_knows_for_whom_it_is_the_player_is_asked_and_nobody_hears_it(keeper: tk.Keeper, line: str, asked: str) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        with pytest.raises(tk.InvalidInput) as found:
            await play(game, line)
        assert asked in str(found.value)
        assert game.waiting is not None
        assert game.waiting.seat == "nell", "the turn is not used up"
        assert [beat.kind async for beat in game.answer("I whisper to Ibbi: thyme")][-1] == "turn"
        for _ in PARTY[1:]:
            assert [beat async for beat in game.answer("")]
    assert (await ears(table, "larkspur"), await ears(table, "thyme")) == (set(), {"nell", "ibbi"})


@pytest.mark.parametrize(
    "line",
    [
        "What did you whisper to Ibbi?", "Did Osric whisper something?", "Osric, did you whisper to Ibbi?", "Who whispered?", "I ask Ibbi what Osric whispered to Marlo.",
        "I ask Ibbi not to whisper.", "I tell Ibbi that Osric secretly sold the key.", "I ask Marlo what the secret is.", "I hear a whisper.", "I listen to the whispers.",
        "I keep the lantern to myself.", "I quietly open the door.", "Nobody told me.", "I tell Osric that Marlo told me in confidence that Wick knows.", "I think about it for a moment, then I ask Marlo about the job.",
        "I tell Marlo a secret passage leads to the tower.", "I tell Marlo privately owned mines are dangerous.", "I draw Osric aside to look at the door.",
        "What did you whisper to Ibbi? I want to know.", "Marlo, I wonder whether you lie.", "I wonder aloud who took the lamp.", "I give Marlo the paper.",
        "I ask Brine when Marlo leaves.", "I ask Brine where Marlo was when he left.", "I tell Marlo that nobody may know where the lamp is.", "I plan to steal the lamp.", "I tell Marlo that nobody knows where the lamp is.", "I look under the table.",
    ],
)  # fmt: skip
async def test_what_is_only_said_of_secrets_is_said_aloud(keeper: tk.Keeper, line: str) -> None:
    assert await heard(keeper, line, line) == THERE


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("I tell Brine the secret of good soup.", False), ("Nell tells Brine the secret of good soup.", False), ("I tell Brine the truth about soup.", False),
        ("I share my secret recipe with Brine.", False), ("I tell Brine my secret.", True), ("I whisper my darkest secret to Brine.", True), ("I tell Brine the truth about me.", True), ("I confess to Brine.", True),
        ("I tell Brine the secret of my brother and Quill.", True), ("I whisper to Brine: do you remember what I told you?", False),
        ("I will never tell Brine my secret.", False), ("I refuse to tell Brine my secret.", False), ("I'll never whisper my secret to Brine.", False),
        ("I am not going to tell Brine the truth about me.", False), ("I tell Brine everything but my secret.", False),
        ("I can't keep it to myself any longer and tell Brine my secret.", True), ("I would never lie. I tell Brine my secret.", True),
        ("I want to tell Brine my secret, and I do not care who hears it.", True), ("I tell Brine what Marlo said.", False), ("I whisper to Brine what I heard.", False), ("I whisper to Brine: do you know Quill's secret?", False),
    ],
)  # fmt: skip
async def test_what_one_must_not_tell_is_told_when_one_says_so_and_not_by_the_way(keeper: tk.Keeper, line: str, is_told: bool) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, line, "", "")
    assert ("brine" in (await table.state()).knows["nells_debt"]) is is_told


async def test_no_ruling_makes_a_whisper_public(keeper: tk.Keeper) -> None:
    table = await table_of(keeper, Plain(), "wren", "tam")
    async with Game(table) as game:
        await play(game, "I whisper to Tam that larkspur is the word.", "I wait.")
    assert await ears(table, "larkspur") == {"wren", "tam"}


async def test_a_question_that_is_asked_in_secret_is_answered_in_secret(keeper: tk.Keeper) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, "I quietly ask Marlo about the job.", "", "")
        answer = next(turn for turn in await table.story.turns(speaker="dm") if "says Marlo Finch" in turn.text and turn.kind == "whisper")
        assert set(answer.audience) <= {"nell", "marlo", "dm"}
        await play(game, "", "I ask Marlo about the job.", "")
    told = [turn for turn in await table.story.turns(speaker="dm") if "The Tidelamp,” says Marlo Finch" in turn.text]
    assert len(told) == 2, "who did not hear it is told as well"


async def test_a_promise_that_is_made_in_secret_is_known_to_the_two_of_them(keeper: tk.Keeper) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, "I secretly promise Brine that I will mend the roof.", "", "")
    state = await table.state()
    assert [bool(ledger(state, table.scenario, (seat,)).promises) for seat in PARTY] == [True, False, False]


@pytest.mark.parametrize(
    "line",
    [
        "Marlo, what did you promise me?", "I promise nothing.", "I promise you nothing, Marlo.", "Do you promise?", "I never promised.", "I never promised you that, Marlo.",
        "I can't promise that.", "I will not promise Marlo anything.", "Did I promise Marlo anything?", "You promise me the lamp, Marlo.", "I refuse to promise that.",
        "I don't swear to anything.", "What is a promise worth, Marlo?", "Your promise, Marlo, is worth nothing.",
        "I promise nobody.", "I promise nobody anything.", "I promise myself to come back.", "I swear, this beer is awful.", "I swear that fish is off.", "I swear I saw that man before.",
        "I swear loudly.", "I swear to God, this fish is bad.", "Promise me you will come back, Marlo.", "Marlo, promise me to come back.", "“Promise me you will come back, Marlo,” I say.",
        "I tell Osric that Marlo told me in confidence that he will come back.", "I tell Osric that Marlo promised me a third.", "My word, this beer is good!",
    ],
)  # fmt: skip
async def test_a_question_or_a_refusal_is_no_promise(keeper: tk.Keeper, line: str) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, line, "", "")
    assert not (await table.state()).promises


@pytest.mark.parametrize(
    "line",
    [
        "I promise Marlo to come back.", "I promise Marlo not to tell.", "I promise: if you help us, Marlo, I will come back.", "Nell promises Marlo to come back.",
        "I give Marlo my word that I will come back.", "No, Marlo, I do promise to come back.", "I solemnly swear to Marlo that I will come back.", "I will promise Marlo to come back.",
        "“Marlo, I promise that I will come back,” I say.", "I say: “Marlo, I promise that I will come back.”", "You have my word, Marlo: I will mend the roof.", "I promise you, Marlo, I'll be back.",
        "“You have my word, Marlo. I will mend the roof.”", "I swear I will come back, Marlo.", "I swear to come back, Marlo.", "I promise Marlo to kill Brine.", "I promise Marlo that nobody will know.",
    ],
)  # fmt: skip
async def test_a_promise_is_one(keeper: tk.Keeper, line: str) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, line, "", "")
    assert [one.to for one in (await table.state()).promises.values()] == ["marlo"]


async def test_what_was_whispered_is_nowhere_in_the_file_once_it_is_forgotten(open_file: OpenKeeper, tmp_path: Path, target: str) -> None:
    keeper = await open_file()
    table = await tidelamp(keeper)
    async with Game(table, tmp_path / "rounds") as game:
        await play(game, "I whisper to Ibbi that larkspur is the word.", "", "")
        await play(game, "I wait.", "", "")
    assert "larkspur" in kept(tmp_path)
    for turn in await table.story.turns():
        if "larkspur" in turn.text:
            await table.story.forget(turn.seq)
    await keeper.close()
    assert "larkspur" not in kept(tmp_path)
    assert "whispered" in kept(tmp_path), "that there was a whisper is still known to the game"


def kept(folder: Path) -> str:
    """All that stands in the rows of the databases in a folder."""
    found = []
    for file in (folder / "stories.db", folder / "rounds"):
        with closing(sqlite3.connect(file)) as database:
            tables = [
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
            ]
            found += [str(row) for name in tables for row in database.execute(f"SELECT * FROM '{name}'")]
    return "\n".join(found)


async def test_whoever_catches_a_thief_knows_of_it_and_nobody_else(keeper: tk.Keeper) -> None:
    table, line = await tidelamp(keeper), "I secretly rob Marlo."
    async with Game(table) as game:
        for _ in range(8):
            await play(game, line, "", "")
    told = [turn for turn in await table.story.turns(speaker="nell") if turn.text == line]
    assert {frozenset(turn.audience) - {"dm"} for turn in told} == {frozenset({"nell"}), frozenset({"nell", "marlo"})}


async def test_nobody_is_reminded_of_a_secret_promise_before_others(keeper: tk.Keeper) -> None:
    table = await tidelamp(keeper)
    async with Game(table) as game:
        await play(game, "I secretly promise Brine that I will mend the larkspur roof.", "", "")
        for _ in range(3):
            await play(game, "I talk to Brine.", "", "")
    assert await ears(table, "larkspur") == {"nell", "brine"}


async def test_what_only_one_gets_to_know_is_not_heard_by_those_who_stand_by_and_are_not_of_the_party(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup("tidelamp", ("nell",), ("nell",), 3), Storyteller)
    async with Game(table) as game:
        await play(game, "What am I carrying?")
    turns = [turn for turn in await table.story.turns(speaker="dm") if "picks" in turn.text]
    assert [set(turn.audience) for turn in turns] == [{"nell", "dm"}]
