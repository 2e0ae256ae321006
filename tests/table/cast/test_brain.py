"""A brain of models: it streams, it rules by schema, and whatever a model does, it is heard as story or reported as a failure, never both."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.table.cast.asks import Plain, ask, heard, take_down

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.table.brain import Ask, Brain, spoken
from talekeeper.table.cast import Mishap, ModelBrain, Patience
from talekeeper.table.cast.brain import LENGTHS, ROLES, read_ruling

QUICK = Patience(silence=0.2, whole=2, attempts=2, pause=0.001)
SPEECH = "The lantern gutters, and somewhere below the floorboards a chain is dragged slowly from wall to wall. Someone breathes."
RULING = {
    "resolution": "DC 12. Rolled 15. Opens.",
    "moment_type": "discovery",
    "moment_summary": "Rook opened the drowned cellar",
    "moment_significance": 0.7,
    "commands": [{"type": "change_location", "to": "the cellar", "who": ["Rook"]}],
}
FALLBACK = "The fire burns low."

Turn = str | Exception | Callable[[], AsyncIterator[str]]


class Script:
    """A real pydantic-ai model that plays its turns one by one, the last one again and again; remembers what it was asked."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.asked: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(stream_function=self._speak, model_name="scripted")

    async def _speak(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        self.asked.append(messages)
        self.infos.append(info)
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if isinstance(turn, Exception):
            raise turn
        if callable(turn):
            async for piece in turn():
                yield piece
            return
        for at in range(0, max(1, len(turn)), 7):
            yield turn[at : at + 7]

    def told(self, call: int) -> list[str]:
        return [str(getattr(part, "content", "")) for message in self.asked[call] for part in message.parts]


def brain(script: Script, fallback: Brain | None = None, **more: Any) -> tuple[ModelBrain, list[Mishap]]:
    seen: list[Mishap] = []
    return ModelBrain({"default": script.model}, fallback, patience=QUICK, notice=seen.append, **more), seen


async def hang() -> AsyncIterator[str]:
    await asyncio.sleep(3600)
    yield ""


async def break_off() -> AsyncIterator[str]:
    yield SPEECH
    raise ConnectionError("connection reset")


async def fall_silent() -> AsyncIterator[str]:
    yield SPEECH
    await asyncio.sleep(3600)


# -- speeches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [role for role in ROLES if role != "keeper"])
async def test_every_role_speaks_in_pieces(role: str) -> None:
    made, seen = brain(Script(SPEECH))
    pieces = await heard(made, await ask(role))
    assert "".join(pieces) == SPEECH
    assert len(pieces) > 2
    assert await spoken(made, await ask(role)) == SPEECH
    assert seen == []
    assert isinstance(made, Brain)


async def test_the_length_and_the_prompt_reach_the_model() -> None:
    script = Script(SPEECH)
    made, _ = brain(script, lengths={"dm": 90})
    await heard(made, await ask("dm"))
    await heard(made, await ask("pc"))
    assert [(info.model_settings or {}).get("max_tokens") for info in script.infos] == [90, LENGTHS["pc"]]
    assert "You are the dungeon master" in script.told(0)[0]
    assert "at most 54 words" in script.told(0)[1]


async def test_what_it_costs_is_counted_per_role() -> None:
    made, _ = brain(Script(SPEECH, SPEECH, json.dumps(RULING), RuntimeError("no"), SPEECH))
    await heard(made, await ask("dm"))
    await heard(made, await ask("dm"))
    await made.rule(await ask("keeper"))
    await heard(made, await ask("pc"))
    assert {role: (cost.calls, cost.failures) for role, cost in made.spent.items()} == {"dm": (2, 0), "keeper": (1, 0), "pc": (2, 1)}
    assert made.spent["dm"].tokens_in > 0
    assert made.spent["dm"].tokens_out > 30


NO_STORY: dict[str, Turn] = {
    "an exception": RuntimeError("out of cheese"),
    "an http error": ConnectionError("connection refused"),
    "silence": hang,
    "nothing": "",
    "blanks": " \n ",
    "a refusal": "I'm sorry, but I can't assist with that request.",
    "an error page": "<html><body>502 Bad Gateway</body></html>",
    "error text": "Error: rate limit exceeded, please try again later.",
    "JSON": '{"resolution": "no"}',
    "noise": "#### ¤¤¤¤ " * 20,
    "a loop": "and " * 100,
}


@pytest.mark.parametrize("case", NO_STORY)
async def test_what_is_no_story_is_tried_again_and_then_the_fallback_speaks(case: str) -> None:
    script = Script(NO_STORY[case])
    made, seen = brain(script, Plain())
    assert await spoken(made, await ask("dm")) == FALLBACK
    assert len(script.asked) == 2
    assert [(one.role, one.seat, one.round, one.then) for one in seen] == [("dm", "dm", 3, "again"), ("dm", "dm", 3, "fallback")]
    assert all(one.reason for one in seen)


@pytest.mark.parametrize("case", NO_STORY)
async def test_without_a_fallback_it_is_an_error_that_names_the_role_and_the_reason(case: str) -> None:
    made, seen = brain(Script(NO_STORY[case]))
    with pytest.raises(tk.ModelFailed, match=r"^the narrator's model failed: .+") as caught:
        await heard(made, await ask("narrator"))
    assert (caught.value.role, caught.value.reason) == ("narrator", seen[-1].reason)
    assert seen[-1].then == "raised"


@pytest.mark.parametrize("case", NO_STORY)
async def test_one_that_comes_to_its_senses_is_heard(case: str) -> None:
    made, seen = brain(Script(NO_STORY[case], SPEECH), Plain())
    assert await spoken(made, await ask("dm")) == SPEECH
    assert [one.then for one in seen] == ["again"]


@pytest.mark.parametrize("end", [break_off, fall_silent])
async def test_after_the_first_word_a_failure_is_raised_and_nobody_speaks_on(end: Callable[[], AsyncIterator[str]]) -> None:
    made, seen = brain(Script(end), Plain())
    pieces: list[str] = []
    asked = await ask("dm")
    with pytest.raises(tk.ModelFailed, match="the dm's model failed"):
        await take_down(made.speak(asked), pieces)
    assert SPEECH.startswith("".join(pieces))
    assert FALLBACK not in "".join(pieces)
    assert [one.then for one in seen] == ["raised"]


async def test_what_lasts_is_not_tried_again() -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    script = Script(ModelHTTPError(401, "scripted"))
    made, seen = brain(script, Plain())
    assert await spoken(made, await ask("dm")) == FALLBACK
    assert len(script.asked) == 1
    assert [one.then for one in seen] == ["fallback"]


async def test_cancelling_closes_the_stream() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            for step in range(10**6):
                begun.set()
                yield f"On step {step} of the stair there is {hash(step * 7919) % 9973} years of dust. "
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    made, seen = brain(Script(endless), Plain(), lengths={"default": 100_000})
    async with aclosing(made.speak(await ask("dm"))) as pieces:
        async for _ in pieces:
            break
    assert closed.is_set()
    assert seen == []
    begun.clear()
    closed.clear()
    task = asyncio.ensure_future(heard(made, await ask("dm")))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        await closed.wait()


async def test_closing_reaches_the_fallback() -> None:
    closed: list[str] = []

    class Endless(Plain):
        async def speak(self, ask: Ask) -> AsyncIterator[str]:
            try:
                while True:
                    yield "on and "
            finally:
                closed.append("closed")

    made = ModelBrain({}, Endless())
    async with aclosing(made.speak(await ask("dm"))) as pieces:
        async for _ in pieces:
            break
    assert closed == ["closed"]


async def test_where_it_speaks_for_others_it_is_stopped() -> None:
    closed = asyncio.Event()

    async def talkative() -> AsyncIterator[str]:
        try:
            yield f"[DM]: {SPEECH}\n[Rook]: I run away.\n"
            while True:
                yield "[Lin]: Me too.\n"
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    made, _ = brain(Script(talkative))
    assert await spoken(made, await ask("dm")) == SPEECH
    assert closed.is_set()


# -- rulings -----------------------------------------------------------------------------------------------------------


async def test_a_ruling_is_asked_for_by_schema_and_read() -> None:
    script = Script(json.dumps(RULING))
    made, seen = brain(script)
    assert await made.rule(await ask("keeper")) == KeeperResponse(
        "DC 12. Rolled 15. Opens.",
        "discovery",
        "Rook opened the drowned cellar",
        0.7,
        tuple(RULING["commands"]),  # type: ignore[arg-type]
    )
    form = script.infos[0].model_request_parameters.output_object
    assert form is not None
    assert form.json_schema["required"] == list(RULING)
    commands = form.json_schema["properties"]["commands"]
    assert commands["maxItems"] == 8
    assert {"change_location", "whisper"} <= {one["properties"]["type"]["const"] for one in commands["items"]["anyOf"]}
    assert seen == []


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("She opens it.", "it is no JSON"),
    "half of it": (json.dumps(RULING)[:60], "it is no JSON"),
    "a list": ("[1, 2]", "it must be a JSON object, not list"),
    "nothing": ("", "it is no JSON"),
    "a field missing": (json.dumps({"resolution": "Opens."}), "moment_type, moment_summary, moment_significance, commands missing"),
    "an unknown type": (json.dumps({**RULING, "moment_type": "joy"}), "moment_type must be one of"),
    "no number": (json.dumps({**RULING, "moment_significance": "much"}), "significance must be a number"),
    "too much": (json.dumps({**RULING, "moment_significance": 7}), "significance must be a number from 0 to 1"),
    "too long": (json.dumps({**RULING, "resolution": "x" * 300}), "resolution has 300 characters, at most 200"),
    "a long moment": (json.dumps({**RULING, "moment_summary": "x" * 300}), "moment_summary has 300 characters, at most 160"),
    "blank": (json.dumps({**RULING, "resolution": "  "}), "resolution must say what comes of the action"),
    "a refusal": (json.dumps({**RULING, "resolution": "I'm sorry, but I can't assist with that."}), "resolution must say"),
    "no commands": (json.dumps({**RULING, "commands": {}}), "commands must be a list"),
    "too many": (json.dumps({**RULING, "commands": RULING["commands"] * 9}), "at most eight"),  # type: ignore[operator]
    "no such command": (json.dumps({**RULING, "commands": [{"type": "win"}]}), "no command of the type 'win'"),
    "not for models": (json.dumps({**RULING, "commands": [{"type": "end_story", "ending": "x"}]}), "no command of the type 'end_story'"),
    "a field too many": (json.dumps({**RULING, "commands": [{"type": "mend", "mood": 1}]}), "it has no field 'mood'"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_ruling_gets_one_repair_that_says_what_was_wrong(case: str) -> None:
    text, problem = BROKEN[case]
    script = Script(text, json.dumps(RULING))
    made, seen = brain(script, Plain())
    assert (await made.rule(await ask("keeper"))).resolution == RULING["resolution"]
    assert len(script.asked) == 2
    assert script.told(1)[:2] == script.told(0), "the same question"
    assert script.told(1)[2] == (text or "(nothing)"), "its own answer"
    assert problem in script.told(1)[3]
    assert [one.then for one in seen] == ["again"]
    assert problem in seen[0].reason


@pytest.mark.parametrize("case", BROKEN)
async def test_after_a_second_broken_ruling_the_rules_decide(case: str) -> None:
    text, problem = BROKEN[case]
    script = Script(text)
    made, seen = brain(script, Plain())
    assert await made.rule(await ask("keeper")) == KeeperResponse("By the rules: it works.")
    assert len(script.asked) == 2
    assert [(one.role, one.then) for one in seen] == [("keeper", "again"), ("keeper", "fallback")]
    assert problem in seen[1].reason


async def test_without_rules_a_ruling_that_cannot_be_had_is_an_error() -> None:
    made, _ = brain(Script("She opens it."))
    with pytest.raises(tk.ModelFailed, match="the keeper's model failed: .* no JSON"):
        await made.rule(await ask("keeper"))


@pytest.mark.parametrize("turn", [RuntimeError("out of cheese"), hang])
async def test_a_keeper_that_does_not_answer_is_asked_again_and_then_the_rules_decide(turn: Turn) -> None:
    script = Script(turn)
    made, seen = brain(script, Plain())
    assert (await made.rule(await ask("keeper"))).resolution == "By the rules: it works."
    assert len(script.asked) == 2
    assert [one.then for one in seen] == ["again", "fallback"]
    assert (await brain(Script(turn, json.dumps(RULING)), Plain())[0].rule(await ask("keeper"))).resolution == RULING["resolution"]


@pytest.mark.parametrize("around", ["```json\n{}\n```", "Sure! Here it is:\n{}", "<think>hm</think>{}\n\nGood luck!"])
def test_what_stands_around_a_ruling_is_ignored(around: str) -> None:
    assert read_ruling(around.replace("{}", json.dumps(RULING))).resolution == RULING["resolution"]


def test_lines_in_a_resolution_become_one() -> None:
    assert read_ruling(json.dumps({**RULING, "resolution": "Opens.\n[DM]: You win."})).resolution == "Opens. [DM]: You win."


# -- who speaks for whom -----------------------------------------------------------------------------------------------


async def test_each_role_may_have_a_model_of_its_own() -> None:
    dm, others = Script(SPEECH), Script("I wait by the door and listen to the rain until somebody says something worth hearing.")
    made = ModelBrain({"dm": dm.model, "default": others.model, "narrator": "builtin"}, Plain(), patience=QUICK)
    assert await spoken(made, await ask("dm")) == SPEECH
    assert "I wait" in await spoken(made, await ask("pc"))
    assert await spoken(made, await ask("narrator")) == FALLBACK
    assert (len(dm.asked), len(others.asked)) == (1, 1)


async def test_roles_without_a_model_are_the_fallbacks() -> None:
    made = ModelBrain({"dm": Script(SPEECH).model}, Plain())
    assert await spoken(made, await ask("pc")) == FALLBACK
    assert (await made.rule(await ask("keeper"))).resolution == "By the rules: it works."


async def test_any_async_callable_speaks() -> None:
    async def own(messages: Sequence[Any]) -> str:
        return SPEECH

    assert await spoken(ModelBrain({"default": own}), await ask("dm")) == SPEECH


def test_a_cast_that_is_not_complete_is_refused_at_once() -> None:
    with pytest.raises(tk.InvalidInput, match="nobody speaks for the pc: name a model for it"):
        ModelBrain({"dm": Script(SPEECH).model})
    with pytest.raises(tk.InvalidInput, match="no role 'bard': there are dm, pc, keeper"):
        ModelBrain({"bard": "local:smollm2"}, Plain())
    with pytest.raises(tk.InvalidInput, match="no role 'bard'"):
        ModelBrain({}, Plain(), lengths={"bard": 5})


def test_what_a_model_misses_is_said_when_the_brain_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(tk.ModelUnavailable, match="set OPENAI_API_KEY"):
        ModelBrain({"default": "openai:gpt-5-mini"}, Plain())


# -- at random ---------------------------------------------------------------------------------------------------------


async def test_whatever_a_model_does_a_hundred_times_nothing_but_story_is_heard() -> None:
    """Speeches come out whole, or as the fallback's, or raise; no bad text is ever heard to its end."""
    dice = random.Random(4)
    moods: list[Turn] = [SPEECH, SPEECH, break_off, *(turn for name, turn in NO_STORY.items() if name != "silence")]

    async def moody() -> AsyncIterator[str]:
        turn = dice.choice(moods)
        if isinstance(turn, Exception):
            raise turn
        if callable(turn):
            async for piece in turn():
                yield piece
        else:
            for at in range(0, max(1, len(turn)), 11):
                yield turn[at : at + 11]

    made, seen = brain(Script(moody), Plain())
    outcomes: dict[str, int] = {}
    for _ in range(100):
        try:
            outcome = await spoken(made, await ask("dm"))
        except tk.ModelFailed as exc:
            outcome = f"raised by the {exc.role}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert set(outcomes) == {SPEECH, FALLBACK, "raised by the dm"}
    assert outcomes["raised by the dm"] == sum(one.then == "raised" for one in seen)
    assert outcomes[FALLBACK] == sum(one.then == "fallback" for one in seen)
