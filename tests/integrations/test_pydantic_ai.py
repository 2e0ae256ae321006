"""pydantic-ai models as summarizers, with the real package and its own fake models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.integrations.sixty_turns import ASKED, QUICK, SUMMARY, sixty_turns

import talekeeper as tk
from talekeeper.integrations.pydantic_ai import summarizer

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


def answering(*parts: ModelResponsePart, **more: Any) -> FunctionModel:
    return FunctionModel(lambda messages, info: ModelResponse(parts=list(parts), **more))


async def test_each_role_becomes_its_part_and_requests_are_not_split() -> None:
    heard: list[list[ModelMessage]] = []

    def listen(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.append(messages)
        return ModelResponse(parts=[TextPart("Yes.")])

    assert await summarizer(FunctionModel(listen))(ASKED) == "Yes."
    assert [(message.kind, [(part.part_kind, getattr(part, "content", None)) for part in message.parts]) for message in heard[-1]] == [
        ("request", [("system-prompt", "Keep the chronicle."), ("user-prompt", "[1] Rain.")]),
        ("response", [("text", "It rained.")]),
        ("request", [("user-prompt", "Shorter.")]),
    ]


async def test_settings_reach_the_model() -> None:
    seen: list[object] = []

    def listen(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.model_settings)
        return ModelResponse(parts=[TextPart("Yes.")])

    await summarizer(FunctionModel(listen), temperature=0.2, max_tokens=300)(ASKED)
    await summarizer(FunctionModel(listen))(ASKED)
    assert seen == [{"temperature": 0.2, "max_tokens": 300}, None]


async def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tk.InvalidInput, match="'tool'"):
        await summarizer(TestModel())([{"role": "tool", "content": "x"}])


async def test_thinking_is_left_out_of_the_answer() -> None:
    assert await summarizer(answering(ThinkingPart("hm"), TextPart("Mira left.")))(ASKED) == "Mira left."


NO_TEXT: dict[str, tuple[FunctionModel, str]] = {
    "empty": (answering(TextPart("")), "no text: found text"),
    "blank": (answering(TextPart(" \n")), "no text: found text"),
    "nothing": (answering(), "no text: found nothing"),
    "thinking": (answering(ThinkingPart("hm")), "no text: found thinking"),
    "a tool call": (answering(ToolCallPart("look", {})), "no text: found tool-call"),
    "cut off": (answering(TextPart("Mira left with"), finish_reason="length"), "cut off"),
    "filtered": (answering(TextPart("Mira left with"), finish_reason="content_filter"), "content filter"),
}


@pytest.mark.parametrize("case", NO_TEXT)
async def test_an_answer_without_whole_text_is_an_error(case: str) -> None:
    model, said = NO_TEXT[case]
    with pytest.raises(tk.SummaryFailed, match=said):
        await summarizer(model)(ASKED)


@pytest.mark.parametrize("name", ["openai:gpt-5-mini", "anthropic:claude-sonnet-4-5"])
def test_a_missing_provider_package_or_key_is_said_when_the_summarizer_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(tk.InvalidInput, match=f"the summarizer's model '{name}' cannot be used: ") as caught:
        summarizer(name)
    assert caught.value.__cause__ is not None
    assert str(caught.value.__cause__) in str(caught.value), "pydantic-ai's own words are there"


@pytest.mark.parametrize("name", ["no such model", "nobody:gpt-5", ""])
def test_an_unknown_model_is_refused_at_once(name: str) -> None:
    with pytest.raises(tk.InvalidInput, match=r"Unknown (model|provider)"):
        summarizer(name)


@pytest.mark.parametrize("thing", [None, 5, TestModel])
def test_what_is_no_model_is_refused_at_once(thing: Any) -> None:
    with pytest.raises(tk.WrongType, match="pydantic-ai model"):
        summarizer(thing)


async def test_provider_strings_are_passed_on() -> None:
    assert await summarizer("test")(ASKED) == "success (no tool calls)"


def scribble(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[ThinkingPart("hm"), TextPart(SUMMARY)])


@pytest.mark.parametrize("model", [TestModel(custom_output_text=SUMMARY), FunctionModel(scribble)])
async def test_the_models_text_is_in_the_context(open_keeper: OpenKeeper, model: Model) -> None:
    story = await sixty_turns(await open_keeper(summarizer=summarizer(model, temperature=0.0), retry=QUICK))
    context = await story.context("rogue")
    assert "A captain counted coins while rain fell" in context.text
    assert "[1]" not in context.text
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}
    health = await story.health()
    assert (health.state, health.pending, health.summarizer) == (tk.HealthState.HEALTHY, 0, "model")
    assert (await story.stats()).model_calls > 0


def unreachable(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    raise ConnectionError("connection refused")


@pytest.mark.parametrize(
    ("model", "reason"),
    [(FunctionModel(unreachable), "ConnectionError: connection refused"), (answering(ThinkingPart("hm")), "no text: found thinking")],
)
async def test_failures_show_in_health_and_lose_nothing(open_keeper: OpenKeeper, model: Model, reason: str) -> None:
    story = await sixty_turns(await open_keeper(summarizer=summarizer(model), retry=QUICK))
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert reason in health.reason
    assert len(await story.sources(await story.context("rogue"))) == 60
    assert {fold.made_by for fold in await story.folds("rogue")} == {"extractive"}
