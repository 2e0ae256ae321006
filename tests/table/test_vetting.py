"""What contradicts the game is not told, whoever would tell it: one word of warning, then the rules' own telling; and it is said so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.table.tables import PARTY, SMALL, after, start
from tests.table.test_rounds import GET_KEY, KEY, PACK, play

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask
from talekeeper.table.cast import ModelBrain, Patience
from talekeeper.table.playing.rounds import Beat, Game
from talekeeper.table.playing.seating import Setup, Table, begin
from talekeeper.table.rules.ledger import contradictions
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world import commands as cm

DEAD_SPEAKS = "The fire has burned down to a red line. “Sit, you two. I kept the soup warm,” says Mara Holt. The rain goes on and on."
SOUND = "The fire has burned down to a red line, and nobody has fed it since. The rain goes on and on, as it has all week."
QUIET: dict[str, Any] = {
    "resolution": "No roll. Nothing changes.",
    "moment_type": None,
    "moment_summary": None,
    "moment_significance": 0.1,
    "commands": [],
}
KILL: dict[str, Any] = {**QUIET, "resolution": "DC 10. Rolled 19. Mara Holt dies.", "commands": [{"type": "kill", "who": "mara"}]}
IS_DEAD = "Mara Holt is dead and can neither speak nor act"


class Script:
    """A pydantic-ai model that says its lines one after the other, the last one again and again."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.asked: list[str] = []
        self.model = FunctionModel(stream_function=self._speak, model_name="scripted")

    async def _speak(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.asked.append("\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts))
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        for at in range(0, max(1, len(line)), 9):
            yield line[at : at + 9]


async def table_of(memory: tk.Keeper, /, *humans: str, **models: Script) -> Table:
    voices: dict[str, Any] = {role: script.model for role, script in models.items()}
    patience = Patience(silence=5, whole=5, attempts=1, pause=0.001)
    return await begin(
        memory, KEY, Setup(PACK, PARTY, humans, 3), lambda scenario: ModelBrain(voices, Storyteller(scenario), patience=patience)
    )


async def told(table: Table) -> str:
    return "\n".join(turn.text for turn in await table.story.turns())


def refusals(beats: list[Beat]) -> list[str]:
    return [beat.text for beat in beats if beat.kind == "refused"]


async def test_a_dead_one_who_speaks_is_told_again_once_and_it_is_said(keeper: tk.Keeper) -> None:
    dm = Script(SOUND, DEAD_SPEAKS, "The soup has long gone cold. Nobody has touched it, and nobody will. The rain goes on and on.")
    table = await table_of(keeper, "wren", dm=dm, keeper=Script(json.dumps(KILL), json.dumps(QUIET)))
    async with Game(table) as game:
        await play(game, "I strike Mara down.")
        assert "mara" in (await table.state()).dead
        beats = await play(game, "I look around.")
    assert refusals(beats) == [IS_DEAD]
    assert len(dm.asked) == 3, "one repair, and no more"
    assert IS_DEAD in dm.asked[2]
    assert "red line" in dm.asked[2], "it hears how far it was heard"
    assert "I kept the soup warm" not in await told(table)
    assert "The fire has burned down to a red line. The soup has long gone cold." in await told(table), "it goes on from what was heard"
    assert f"(Not so: {IS_DEAD}.)" in await told(table)
    assert "Not so" not in (await table.story.context("wren", budget=2000)).text, "a note for the DM"
    assert "Not so" in (await table.story.context("dm", budget=2000)).text


async def test_one_who_will_not_listen_is_replaced_by_the_rules(keeper: tk.Keeper) -> None:
    narrator = Script(SOUND, "Mara Holt nods and hands Wren a cup of something hot, as though nothing had happened at all tonight.")
    table = await table_of(keeper, "wren", narrator=narrator, keeper=Script(json.dumps(KILL), json.dumps(QUIET)))
    async with Game(table) as game:
        await play(game, "I strike Mara down.")
        said = len(await table.story.turns())
        narrator.lines = ["Mara Holt nods and hands Wren a cup of something hot, and the evening goes on like that for a good while."]
        beats = await play(game, "I look around.")
    assert refusals(beats) == [IS_DEAD, IS_DEAD]
    assert "a cup of something hot" not in await told(table)
    tale = [turn for turn in (await table.story.turns())[said:] if turn.speaker == "dm"][-1].text
    assert tale, "the round was told by the rules"
    assert "".join(beat.text for beat in beats if beat.kind == "speech" and beat.role == "narrator").strip() == tale


async def test_an_item_is_given_once(keeper: tk.Keeper) -> None:
    narrator = Script("Mara Holt slides the mill key across the counter, and it is heavier than it looks. “Mind the step,” says Mara.")
    gain = {**QUIET, "resolution": "Given.", "commands": list(GET_KEY)}
    table = await table_of(keeper, "wren", narrator=narrator, keeper=Script(json.dumps(gain), json.dumps(QUIET)))
    async with Game(table) as game:
        first = await play(game, "I ask Mara for the key.")
        second = await play(game, "I ask Mara for the key once more.")
    assert refusals(first) == []
    assert refusals(second) == ["Mara Holt does not have the mill key: Wren has it"] * 2
    assert (await told(table)).count("slides the mill key") == 1


async def test_a_ruling_that_contradicts_the_game_is_repaired_and_then_made_by_the_rules(keeper: tk.Keeper) -> None:
    wrong = {**QUIET, "resolution": "Mara Holt nods and lets them in."}
    rulings = Script(json.dumps(KILL), json.dumps(QUIET), json.dumps(wrong))
    table = await table_of(keeper, "wren", keeper=rulings)
    async with Game(table) as game:
        await play(game, "I strike Mara down.")
        rulings.asked.clear()
        beats = await play(game, "I ask Mara to let us in.")
    assert refusals(beats)[:2] == [IS_DEAD, IS_DEAD]
    assert IS_DEAD in rulings.asked[1]
    assert "lets them in" not in await told(table)


class Silent:
    """Says nothing, whoever it is asked for."""

    async def speak(self, ask: Ask) -> AsyncIterator[str]:
        yield " \n"

    async def rule(self, ask: Ask) -> KeeperResponse:
        return KeeperResponse("  ")


async def test_silence_is_filled_by_the_rules(keeper: tk.Keeper) -> None:
    table = await begin(keeper, KEY, Setup(PACK, PARTY, ("wren",), 3), lambda scenario: Silent())
    async with Game(table) as game:
        await play(game, "I take the lantern.")
        await play(game, "I look around.")
    assert (await table.state()).items["lantern"] == "wren"
    assert await table.round_now() == 3
    assert all(turn.text.strip() for turn in await table.story.turns())


@pytest.mark.parametrize(
    "text",
    [
        "“Come in,” says Mara Holt.", "Mara Holt: come in.", "Mara Holt slowly turns to the window.", "“Sit. Eat,” Mara Holt said.",
        "Mara nods.", "Then Mara Holt pours two cups.",
    ],
)  # fmt: skip
def test_the_dead_do_nothing(text: str) -> None:
    dead = after(cm.Kill("mara", "a fall"))
    assert [one.text for one in contradictions(text, [dead], SMALL)] == [IS_DEAD]
    assert contradictions(text, [start()], SMALL) == [], "the living may"
    assert contradictions(text, [start(), dead], SMALL) == [], "nor did they do it before they died"


@pytest.mark.parametrize(
    "text",
    [
        "Wren remembers how Mara Holt nodded.", "“Mara Holt says no,” Bruno mutters.", "Mara Holt is dead.", "Mara Holt lies where she fell.",
        "Nobody answers for Mara Holt now.", "Amara says nothing.", "Mara’s cups stand in their row.", "With her last breath Mara Holt whispers a name.",
    ],
)  # fmt: skip
def test_the_dead_may_be_spoken_of(text: str) -> None:
    assert contradictions(text, [after(cm.Kill("mara", "a fall"))], SMALL) == []


@pytest.mark.parametrize(
    "text",
    [
        "„Kommt herein“, sagt Mara Holt.", "Mara nickt.", "Dann gießt sie ein, und Mara Holt lächelte.", "« Entrez », dit Mara Holt.", "Mara sourit.",
        "«Pasad», dice Mara Holt.", "Mara asiente.", "«Входи», — говорит Mara Holt.", "Mara кивнула.",
    ],
)  # fmt: skip
def test_the_dead_do_nothing_in_other_languages(text: str) -> None:
    dead = after(cm.Kill("mara", "a fall"))
    assert [one.text for one in contradictions(text, [dead], SMALL)] == [IS_DEAD]
    assert contradictions(text, [start()], SMALL) == []


@pytest.mark.parametrize(
    "text",
    [
        "Wren erinnert sich, wie Mara Holt nickte.", "„Mara Holt sagt nein“, murmelt Bruno.", "Zu Mara sagt niemand etwas.", "Mit Mara ging viel verloren.",
        "Maras Becher stehen in einer Reihe.", "Mara Holt est morte.", "À Mara, Bruno dit adieu.", "Mara Holt está muerta.", "Bruno помнит, как Mara кивнула.",
        "Si Mara dit cela, elle ment.",
    ],
)  # fmt: skip
def test_the_dead_may_be_spoken_of_in_other_languages(text: str) -> None:
    assert contradictions(text, [after(cm.Kill("mara", "a fall"))], SMALL) == []


def test_things_are_where_they_are() -> None:
    taken = after(cm.GainItem("mill_key", "wren"))
    for text in (
        "Mara Holt hands you the mill key.",
        "Tam draws the mill key.",
        "Mara gives Tam the mill key.",
        "Bruno offers them the mill key.",
    ):
        assert contradictions(text, [taken], SMALL), text
    for text in (
        "Wren shows the mill key.", "Mara Holt looks at the mill key.", "Tam does not use the mill key.", "Wren gives Mara the mill key back.",
        "Mara hands you a key.", "Tam holds out a hand for the mill key.",
    ):  # fmt: skip
        assert contradictions(text, [taken], SMALL) == [], text
    assert contradictions("Mara Holt hands you the mill key.", [start(), taken], SMALL) == [], "that is how it came about"


@pytest.mark.parametrize(
    ("name", "told", "possible"),
    [
        (
            "der Mühlenschlüssel",
            ["Mara Holt reicht dir den Mühlenschlüssel.", "Mara gab Tam lächelnd ihren Mühlenschlüssel.", "Bruno drückt Tam den Mühlenschlüssel in die Hand."],
            ["Wren zeigt den Mühlenschlüssel.", "Mara gibt den Mühlenschlüssel nicht her.", "Mara sucht den Mühlenschlüssel.",
             "Mara gab dir einst den Mühlenschlüssel.", "Mara reicht Tam einen Mühlenschlüssel.", "Mara gibt Tam den Krug und sieht den Mühlenschlüssel."],
        ),
        (
            "la clé du moulin",
            ["Mara Holt tend la clé du moulin à Tam.", "Mara lui donne la clé du moulin."],
            ["Wren montre la clé du moulin.", "Mara ne donne pas la clé du moulin.", "Mara regarde la clé du moulin.", "Si Mara donne la clé du moulin, tant mieux."],
        ),
        ("l’anneau", ["Bruno tend l’anneau à Tam."], ["Bruno cherche l’anneau."]),
        (
            "la llave del molino",
            ["Mara Holt le entrega la llave del molino.", "Mara dio a Tam la llave del molino."],
            ["Wren muestra la llave del molino.", "Mara no da la llave del molino.", "Mara mira la llave del molino."],
        ),
        ("ключ от мельницы", ["Mara протягивает ему ключ от мельницы."], ["Wren показывает ключ от мельницы.", "Mara не даёт ему ключ от мельницы."]),
    ],
)  # fmt: skip
def test_nobody_gives_what_another_has_in_other_languages(name: str, told: list[str], possible: list[str]) -> None:
    key = replace(SMALL.items["mill_key"], name=name, aliases=())
    pack = replace(SMALL, items={**SMALL.items, "mill_key": key})
    taken = after(cm.GainItem("mill_key", "wren"))
    for text in told:
        assert [one.text for one in contradictions(text, [taken], pack)], text
        assert contradictions(text, [start(), taken], pack) == [] or "Mara" not in text, "that is how it came about"
    for text in possible:
        assert contradictions(text, [taken], pack) == [], text


def test_what_was_pocketed_in_secret_is_not_named_to_all() -> None:
    taken = after(cm.GainItem("lantern", "wren", secretly=True))
    assert [one.hidden for one in contradictions("Tam raises the lantern.", [taken], SMALL)] == [True]
