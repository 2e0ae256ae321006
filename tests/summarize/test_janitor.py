"""A model's summary is asked for, checked, repaired once, completed, or refused."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import pytest

import talekeeper as tk
from talekeeper.ports import Spending
from talekeeper.summarize.janitor import Piece, cite
from talekeeper.summarize.wrapping import unwrapped
from talekeeper.testing.models import MoodyModel, ScriptedModel

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper

TURNS = [
    "Mira slides Rook a brass key across the counter of the Drowned Rat.",
    "Captain Voss pays Rook 40 gold for the map of the mill and keeps Lin's dagger as a pledge.",
    "The miller is dead. His daughter Oda hides in the cellar and begs Lin to tell nobody where she is.",
]
PIECES = [Piece(text, (f"t{number}",)) for number, text in enumerate(TURNS)]


async def summary(*answers: str) -> str:
    spent: list[Spending] = []
    sentences = await tk.Janitor(ScriptedModel(answers)).summarize(PIECES, [], 200, spent.append)
    assert sum(each.calls for each in spent) == len(answers)
    return " ".join(sentence.text for sentence in sentences)


async def test_what_a_repair_does_not_bring_back_is_appended() -> None:
    told = "Mira gave Rook a key, and a captain paid for the map of the mill. [1, 2]"
    text = await summary(told, told)
    assert text.startswith("Mira gave Rook a key")
    assert "Captain Voss pays Rook 40 gold for the map of the mill and keeps Lin's dagger as a pledge." in text
    assert all(name in text for name in ("Voss", "Lin", "Oda", "40 gold"))


async def test_a_repair_is_told_what_was_promised_and_not_only_by_whom() -> None:
    told = "Mira gave Rook a key, and a captain paid for the map of the mill. [1, 2]"
    model = ScriptedModel([told, told])
    sentences = await tk.Janitor(model).summarize(PIECES, [], 200, lambda _: None)
    assert "keeps Lin's dagger as a pledge" in model.asked[1][-1]["content"]
    assert next(sentence.sources for sentence in sentences if "pledge" in sentence.text) == ("t1",)


async def test_a_promise_that_a_summary_does_not_tell_is_appended_though_everyone_is_named() -> None:
    pieces = [Piece("[Rook]: I swear to Mira to bring the lantern back.", ("t1",)), Piece("[DM]: Mira and Rook sleep at the inn.", ("t2",))]
    model = ScriptedModel(["Mira and Rook slept at the inn. [2]"])
    sentences = await tk.Janitor(model).summarize(pieces, [], 60, lambda _: None)
    assert [sentence.text for sentence in sentences][1:] == ['Rook: "I swear to Mira to bring the lantern back."']


@pytest.mark.parametrize("numbers", ["1" * 5000, "1, " + "9" * 5000, "1 -" + " " * 20 + "2" * 5000])
async def test_a_citation_beyond_all_measure_is_none(numbers: str) -> None:
    told = "Mira gave Rook a key, and Captain Voss paid 40 gold for the map of the mill and kept Lin's dagger; Oda hides."
    (sentence,) = await tk.Janitor(ScriptedModel([f"{told} [{numbers}]"])).summarize(PIECES, [], 200, lambda spent: None)
    assert (sentence.text, sentence.estimated) == (told, True)


@pytest.mark.parametrize("numbers", ["1-2-3", "2026-11-18", "1, 2–3-4", "1-2 - 3"])
async def test_a_citation_that_is_neither_numbers_nor_a_range_is_none(numbers: str) -> None:
    told = "Mira gave Rook a key, and Captain Voss paid 40 gold for the map of the mill and kept Lin's dagger; Oda hides."
    (sentence,) = await tk.Janitor(ScriptedModel([f"{told} [{numbers}]"])).summarize(PIECES, [], 200, lambda spent: None)
    assert (sentence.text, sentence.estimated) == (told, True)


TOLD = "Mira gave Rook a brass key, Captain Voss paid 40 gold for the map and kept Lin's dagger as a pledge; Oda hides. [1-3]"
BARE = TOLD.removesuffix(" [1-3]")


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>Piece 1 is about Mira. Sure, I keep Rook.\n\nHm.</think>\n\n{TOLD}", f"Piece 1 names Mira.\n</think>\n\n{TOLD}",
        f"<thinking>{' '.join(TURNS)} {' '.join(TURNS)}</thinking>{TOLD}", f"Sure! Here is the chronicle entry:\n\n{TOLD}", f"Certainly. {TOLD}",
        f"Here’s a brief summary of the pieces: {TOLD}", f"{TOLD}\n\nLet me know if you'd like changes!", f"{TOLD} Would you like me to go on?",
        f"**Summary**\n{TOLD}", f"## Summary\n\n{TOLD}", f"Summary: {TOLD}", f"### Chronicle of pieces 1 to 3\n---\n{TOLD}", f"```text\n{TOLD}\n```",
        f"<summary>{TOLD}</summary>", f"- {TOLD}", f"1. {TOLD}", f"{TOLD} (38 words)", f"{TOLD}\n\n*Word count: 38*", f"{BARE} (1, 2, 3)",
        f"{TOLD}\n\n(Note: I left out the dialogue, as I was told. Word count: 38)", f"{TOLD} This summary covers pieces 1 to 3. As an AI, I kept all.",
        f"{TOLD}\nShall I add more?", f"{BARE[:-1]} (1-3).", f"{BARE}【1, 2, 3】", BARE.replace("Mira", "**Mira**") + " [1-3]",
    ],
)  # fmt: skip
async def test_what_a_model_puts_around_its_answer_is_no_story(answer: str) -> None:
    (sentence,) = await tk.Janitor(ScriptedModel([answer])).summarize(PIECES, [], 200, lambda _: None)
    assert (sentence.text, sentence.sources, sentence.estimated) == (BARE, ("t0", "t1", "t2"), False)


@pytest.mark.parametrize(
    "answer",
    [
        "- Mira gave Rook a key [1]\n- Voss paid 40 gold [2]\n- Oda hides [3]", "1. Mira gave Rook a key [1]\n2. Voss paid 40 gold [2].\n3. Oda hides [3]",
        "Summary\n* Mira gave Rook a key. [#1]\n\n* Voss paid 40 gold [turn 2]\n* Oda hides [-1] [3]", "**Mira** gave Rook a key [1]\n**Voss** paid 40 gold [2]\n**Oda** hides [3]",
    ],
)  # fmt: skip
async def test_the_items_of_a_list_are_sentences(answer: str) -> None:
    told = await tk.Janitor(ScriptedModel([answer, answer])).summarize(PIECES, [], 200, lambda _: None)
    assert [(one.text, one.sources) for one in told[:3]] == [
        ("Mira gave Rook a key.", ("t0",)), ("Voss paid 40 gold.", ("t1",)), ("Oda hides.", ("t2",)),
    ]  # fmt: skip


def test_the_items_of_a_list_end_as_their_script_does() -> None:
    assert unwrapped("- 李将军拿了剑\n- 他走了", "", 3) == "李将军拿了剑。\n他走了。"
    assert unwrapped("- Mira went to the mill\nby the river\n- Oda hides", "", 3) == "Mira went to the mill\nby the river.\nOda hides."
    assert unwrapped("Mira went to the mill\nby the river", "", 3) == "Mira went to the mill\nby the river"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Hier ist die Zusammenfassung:\n\nElena ging nach Ashford. [1]\n\nSag mir, wenn du mehr möchtest.", "Elena ging nach Ashford. [1]"),
        ("Bien sûr ! Voici le résumé : Elena est partie. [1]", "Elena est partie. [1]"),
        ("Claro. Resumen:\nElena se fue. [1]\n\n¿Quieres que lo acorte?", "Elena se fue. [1]"),
        ("Конечно! Вот краткое содержание: Елена ушла. [1]", "Елена ушла. [1]"),
        ("好的，以下是摘要：李将军拿了剑。[1] 如果您需要修改，请告诉我。", "李将军拿了剑。[1]"),
        ("はい。以下が要約です：\n李は剣を取った。[1]", "李は剣を取った。[1]"),
    ],
)  # fmt: skip
def test_nor_is_it_in_other_languages(answer: str, told: str) -> None:
    assert unwrapped(answer, "", 3) == told


@pytest.mark.parametrize(
    "answer",
    [
        "Here is where it ends: the inn burned. [1]", "Sure of foot, Rook climbed on. [1]", "Rook paid 40 (of 60) gold. [1]", "Of Rook (12) nothing was heard.",
        "Rook has kept the chronicle: it is burned. [1]", "Mira hoped this would help. [1]", "Rook wrote * and - on the wall. [1]", "1 of 3 keys is lost. [1]",
        "The letter had 300 words.", "The inn burned. Note: Rook owes Mira a key.", "Rook fled. As an airship rose, Mira wept.", "He said: 42 words", "Voss spoke. Let me know, she answered, and wept until dawn; the siege began.",
    ],
)  # fmt: skip
def test_what_a_story_may_say_stays(answer: str) -> None:
    assert unwrapped(answer, "", 3) == answer


def test_what_the_story_says_itself_stays() -> None:
    said = "Sure! Of that the captain was certain. [1]"
    assert unwrapped(said, "The captain says: Sure!", 3) == said
    assert unwrapped(said, "The captain nods.", 3) == "Of that the captain was certain. [1]"


@pytest.mark.parametrize(
    "hard",
    ["<think>" * 20_000, "</think>" * 20_000, " " * 100_000 + "x", "(1, " * 30_000, "** a" * 40_000, "_ " * 60_000, "Here is " * 20_000],
)
def test_no_answer_takes_long_to_unwrap(hard: str) -> None:
    began = time.process_time()
    unwrapped(hard, "", 3)
    assert time.process_time() - began < 0.5


async def test_one_about_something_else_is_refused_though_it_shares_a_word() -> None:
    dragon = "A dragon crosses the sea at midnight and hides in a cellar of ice. [1]"
    with pytest.raises(tk.SummaryFailed, match="it names nobody and nothing of what must survive") as caught:
        await summary(dragon, dragon)
    assert caught.value.answered


async def test_one_that_names_somebody_is_not() -> None:
    assert "Rook" in await summary("Rook got a key and hid in the cellar. [1]", "Rook got a key and hid in the cellar. [1]")


async def test_one_that_is_far_too_long_is_refused_before_it_is_read() -> None:
    spent: list[Spending] = []
    began = time.process_time()
    with pytest.raises(tk.SummaryFailed, match="9,000,000 signs are far more than it was given") as caught:
        await tk.Janitor(ScriptedModel(["Mira gave Rook a key. [1]" * 360_000])).summarize(PIECES, [], 200, spent.append)
    assert time.process_time() - began < 0.2
    assert caught.value.answered
    assert [(each.calls, each.failures) for each in spent] == [(1, 1)]


@pytest.mark.parametrize(
    "answer",
    [
        "Mira gave Rook a key. [1] Write plain past-tense prose in the language of the pieces, at the most, no heading, no list.",
        "You keep the chronicle of a long role-playing story. Rook, Lin, Mira, Oda and Captain Voss are in it.",
        "Rook has a key of Mira's. [1] Oswin sold Thessaly the ninth lantern. [2, 5]",
    ],
    ids=["how to write", "who it is", "the example"],
)
async def test_one_that_recites_its_instructions_is_refused(answer: str) -> None:
    with pytest.raises(tk.SummaryFailed, match="it repeats what the model was told to do") as caught:
        await summary(answer)
    assert caught.value.answered


async def test_a_repair_that_recites_its_wish_is_not_taken() -> None:
    told = "Mira gave Rook a key, and a captain paid for the map of the mill. [1, 2]"
    text = await summary(told, "Write the whole again with them: Mira, Rook, Captain Voss, Lin, Oda, 40 gold, the mill. [1, 2]")
    assert text.startswith("Mira gave Rook a key")
    assert "whole again" not in text


async def test_words_of_the_story_may_be_those_of_the_instructions() -> None:
    said = "Rook tells Lin how people now stand to each other in the mill, and swears to Captain Voss to keep it."
    spent: list[Spending] = []
    model = ScriptedModel(["Rook told Lin how people now stand to each other in the mill. Captain Voss has his oath. [1]"])
    assert await tk.Janitor(model).summarize([Piece(said, ("t1",))], [], 200, spent.append)


async def test_a_recital_of_what_is_to_be_told_above_all_is_refused_too() -> None:
    focus = "Tell in two or three sentences how things went with Oda: relationships, promises, conflicts."
    model = ScriptedModel(["Two or three sentences how things went with Oda: Rook, Lin, Mira, Voss."])
    with pytest.raises(tk.SummaryFailed, match="told to do"):
        await tk.Janitor(model).summarize(PIECES, [], 200, lambda _: None, focus=focus)


DEALS = [Piece(f"[DM]: Mira pays Harrow {number} gold for the {number}th crate.", (f"t{number}",)) for number in range(8)]


@pytest.mark.parametrize(
    "answer", ["Potatoes are tasty.", "Sure! Nothing happened.", "The dragon Smaug killed Mira and burned Harrow to the ground."]
)
async def test_nonsense_is_refused_however_short_it_is(answer: str) -> None:
    with pytest.raises(tk.SummaryFailed, match="refused"):
        await tk.Janitor(ScriptedModel([answer, answer])).summarize(DEALS, (), 200, lambda _: None)


async def test_what_is_appended_is_named_once() -> None:
    told = "Mira pays for crates [1]."
    sentences = await tk.Janitor(ScriptedModel([told, told])).summarize(DEALS, (), 200, lambda _: None)
    *_, also = [sentence.text for sentence in sentences]
    numbers = also.removeprefix("Also: ").rstrip(".").split(", ")
    assert not [one for one in numbers if any(other.startswith(f"{one} ") for other in numbers)]


async def test_a_plain_function_is_a_failure_that_says_what_to_do() -> None:
    def plain(messages: object) -> str:
        return "Mira pays Harrow."

    with pytest.raises(tk.SummaryFailed, match="async def"):
        await tk.Janitor(plain).summarize(DEALS, (), 200, lambda _: None)  # type: ignore[arg-type]


async def test_a_model_that_cancels_itself_has_failed() -> None:
    spent: list[Spending] = []
    with pytest.raises(tk.SummaryFailed, match="the model failed: CancelledError"):
        await tk.Janitor(MoodyModel("cancelled")).summarize(PIECES, [], 200, spent.append)
    assert [one.failures for one in spent] == [1]


class Panic(BaseException):
    """As native code raises it, which is no `Exception`."""


class Unspeakable(Exception):
    """Fails once more when it is asked what it says."""

    def __str__(self) -> str:
        raise ValueError("nothing to say")


@pytest.mark.parametrize("error", [Panic("index out of bounds"), Unspeakable(), GeneratorExit()], ids=lambda error: type(error).__name__)
async def test_whatever_a_model_raises_is_a_failure_of_the_model(open_keeper: OpenKeeper, error: BaseException) -> None:
    async def model(messages: object) -> str:
        raise error

    keeper = await open_keeper(":memory:", summarizer=model, retry=tk.RetryPolicy(attempts=2, pause=0.0))
    story = await keeper.story(tk.MemoryKey("acme", "ana", "panic"), seats=[tk.Seat("dm", role="dm", token_limit=200)])
    await story.append_many([tk.Draft("dm", f"{number}: {TURNS[number % 3]}") for number in range(60)])
    await story.settle()
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert health.reason.startswith(f"the model failed: {type(error).__name__}")
    assert (await story.stats()).model_calls == (await story.stats()).model_failures > 0


@pytest.mark.parametrize("blanks", [" ", "\n", " \n"])
async def test_a_model_that_falls_into_endless_blanks_holds_up_nobody(blanks: str) -> None:
    told = "Mira pays Harrow [1]."

    async def seconds(answer: str) -> float:
        began = time.process_time()
        with contextlib.suppress(tk.SummaryFailed):
            await tk.Janitor(ScriptedModel([answer, answer])).summarize(DEALS, (), 200, lambda _: None)
        return time.process_time() - began

    await seconds(told)
    assert await seconds(told + blanks * (100_000 // len(blanks))) < 2.0, "in proportion to its length, and not to the square of that"


async def test_who_is_cancelled_while_waiting_for_a_model_is_cancelled() -> None:
    asked = asyncio.Event()

    async def never(messages: object) -> str:
        asked.set()
        await asyncio.sleep(3600)
        return ""

    waiting = asyncio.ensure_future(tk.Janitor(never).summarize(PIECES, [], 200, lambda spending: None))
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("line", ["Word{} of the mill and the river. ", "Tam{}: I give you the mill. "], ids=["sentences", "roles"])
def test_what_was_read_out_is_cited_in_a_time_that_follows_its_length(line: str) -> None:
    text = "".join(line.format(at) for at in range(2500))
    began = time.process_time()
    sentences = cite(text, [Piece(f"[Rook]: {text}", ("t1",)), Piece("[Mira]: Oh.", ("t2",))])
    assert (len(sentences), {sentence.sources for sentence in sentences}) == (2500, {("t1",)})
    assert time.process_time() - began < 2.0, "and not its square"


async def test_a_number_that_is_made_up_is_asked_about_once_and_then_left_out() -> None:
    wrong = "Mira gave Rook a key. Captain Voss paid 900 gold for the map and keeps Lin's dagger. The miller is dead, Oda hides. [1, 2, 3]"
    right = "Mira gave Rook a brass key. Captain Voss paid 40 gold for the map and keeps Lin's dagger as a pledge. Oda hides. [1, 2, 3]"
    model = ScriptedModel([wrong, right])
    sentences = await tk.Janitor(model).summarize(PIECES, [], 200, lambda _: None)
    assert "900" in model.asked[1][-1]["content"]
    told = " ".join(sentence.text for sentence in sentences)
    assert "40 gold" in told
    assert "900" not in told
    told = " ".join(
        sentence.text for sentence in await tk.Janitor(ScriptedModel([wrong, wrong])).summarize(PIECES, [], 200, lambda _: None)
    )
    assert "Mira gave Rook a key." in told
    assert "Oda hides." in told
    assert "900" not in told
    assert "40 gold" in told, "what must survive is added"
    alone = "Captain Voss paid 900 gold to Rook for the map of the mill. [2]"
    with pytest.raises(tk.SummaryFailed, match="it counts 900") as caught:
        await summary(alone, alone)
    assert caught.value.answered


async def test_what_was_corrected_does_not_come_back() -> None:
    said = ["Marta died in the fire at the mill.", "Kestrel: I pay for the grave.", "No, it was Marla who died in the fire, not Marta."]
    pieces = [Piece(f"[DM]: {text}", (f"t{number}",)) for number, text in enumerate(said)]
    model = ScriptedModel(["Marla died in the fire at the mill, and Kestrel pays for the grave. [2, 3]"])
    sentences = await tk.Janitor(model).summarize(pieces, [], 200, lambda _: None)
    assert [sentence.text for sentence in sentences] == ["Marla died in the fire at the mill, and Kestrel pays for the grave."]


async def test_a_death_that_a_summary_does_not_tell_is_appended_though_everyone_is_named() -> None:
    pieces = [Piece("[DM]: The blade goes in. Ilse dies on the threshold.", ("t1",)), Piece("[DM]: Dov carries her to the mill.", ("t2",))]
    for told, added in [("Ilse survived, and Dov carried her to the mill.", 1), ("Ilse died, and Dov carried her to the mill.", 0)]:
        model = ScriptedModel([f"{told} [1, 2]"])
        sentences = await tk.Janitor(model).summarize(pieces, [], 80, lambda _: None)
        assert [sentence.text for sentence in sentences] == [told, *["Ilse dies on the threshold."] * added]
