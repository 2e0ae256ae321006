"""LangChain chat models as summarizers, with the real package and its own fake models."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from tests.integrations.sixty_turns import ASKED, QUICK, SUMMARY, sixty_turns

import talekeeper as tk
from talekeeper.integrations.langchain import summarizer

if TYPE_CHECKING:
    from tests.conftest import OpenKeeper


class Listener(BaseChatModel):  # type: ignore[misc]
    """Remembers the messages it was asked with."""

    heard: list[list[BaseMessage]] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        self.heard.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Yes."))])

    @property
    def _llm_type(self) -> str:
        return "listener"


def saying(*answers: AIMessage | str) -> BaseChatModel:
    return GenericFakeChatModel(messages=itertools.cycle(answers))


async def test_each_role_becomes_its_message_class() -> None:
    model = Listener()
    assert await summarizer(model)(ASKED) == "Yes."
    assert [(type(message), message.content) for message in model.heard[-1]] == [
        (SystemMessage, "Keep the chronicle."), (HumanMessage, "[1] Rain."), (AIMessage, "It rained."), (HumanMessage, "Shorter."),
    ]  # fmt: skip


async def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tk.InvalidInput, match="'tool'"):
        await summarizer(Listener())([{"role": "tool", "content": "x"}])


async def test_text_blocks_are_joined_and_others_left_out() -> None:
    blocks: list[str | dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Mira left"}, " with ", {"type": "text", "text": "the key."},
    ]  # fmt: skip
    assert await summarizer(saying(AIMessage(content=blocks)))(ASKED) == "Mira left with the key."


NO_TEXT: dict[str, tuple[AIMessage, str]] = {
    "empty": (AIMessage(""), "no text"),
    "blank": (AIMessage(" \n "), "blank text"),
    "no blocks": (AIMessage(content=[]), "found nothing"),
    "an image": (AIMessage(content=[{"type": "image_url", "image_url": "x"}]), "'image_url'"),
    "empty block": (AIMessage(content=[{"type": "text", "text": ""}]), "no text"),
    "a tool call": (AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]), "no text"),
    "cut off (openai)": (AIMessage("Mira left with", response_metadata={"finish_reason": "length"}), "cut off"),
    "cut off (anthropic)": (AIMessage("Mira left with", response_metadata={"stop_reason": "max_tokens"}), "cut off"),
    "cut off (google)": (AIMessage("Mira left with", response_metadata={"finish_reason": "MAX_TOKENS"}), "cut off"),
}


@pytest.mark.parametrize("case", NO_TEXT)
async def test_an_answer_without_whole_text_is_an_error(case: str) -> None:
    answer, said = NO_TEXT[case]
    with pytest.raises(tk.SummaryFailed, match=said):
        await summarizer(saying(answer))(ASKED)


async def test_what_wraps_a_chat_model_will_do_as_well() -> None:
    wrapped: Any = saying("Yes.").with_retry().with_config(tags=["fold"])
    assert await summarizer(wrapped)(ASKED) == "Yes."


@pytest.mark.parametrize("thing", ["gpt-5", None, object(), FakeListChatModel])
def test_what_is_no_chat_model_is_refused_at_once(thing: Any) -> None:
    with pytest.raises(tk.WrongType, match="LangChain chat model"):
        summarizer(thing)


@pytest.mark.parametrize("make", [lambda: FakeListChatModel(responses=[SUMMARY]), lambda: saying(SUMMARY), lambda: saying(blocks())])
async def test_the_models_text_is_in_the_context(open_keeper: OpenKeeper, make: Any) -> None:
    story = await sixty_turns(await open_keeper(summarizer=summarizer(make()), retry=QUICK))
    context = await story.context("rogue")
    assert "A captain counted coins while rain fell" in context.text
    assert "[1]" not in context.text
    assert {fold.made_by for fold in await story.folds("rogue")} == {"model"}
    health = await story.health()
    assert (health.state, health.pending, health.summarizer) == (tk.HealthState.HEALTHY, 0, "model")
    assert (await story.stats()).model_calls > 0


def blocks() -> AIMessage:
    return AIMessage(content=[{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": SUMMARY}])


class Broken(BaseChatModel):  # type: ignore[misc]
    """Cannot be reached."""

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        raise ConnectionError("connection refused")

    @property
    def _llm_type(self) -> str:
        return "broken"


@pytest.mark.parametrize(
    ("model", "reason"),
    [(Broken(), "ConnectionError: connection refused"), (saying(""), "no text"), (saying(AIMessage([{"type": "image"}])), "'image'")],
)
async def test_failures_show_in_health_and_lose_nothing(open_keeper: OpenKeeper, model: BaseChatModel, reason: str) -> None:
    story = await sixty_turns(await open_keeper(summarizer=summarizer(model), retry=QUICK))
    health = await story.health()
    assert health.state is tk.HealthState.DEGRADED
    assert reason in health.reason
    assert len(await story.sources(await story.context("rogue"))) == 60
    assert {fold.made_by for fold in await story.folds("rogue")} == {"extractive"}
