"""Models of every kind behind one port: they stream, they are waited for no longer than is good, they can be stopped, and they cost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, FunctionModel
from pydantic_ai.models.test import TestModel

import talekeeper as tk
from talekeeper.ports import Message, Spending
from talekeeper.table.cast import Patience, Request, chat, find
from talekeeper.table.cast.hosted import Hosted
from talekeeper.table.cast.models import listen

ASKED: list[Message] = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": "Rain on the bridge."}]
QUICK = Patience(silence=0.2, whole=0.5, attempts=2, pause=0.001)


def hosted(*pieces: Any, error: Exception | None = None) -> Hosted:
    """A real pydantic-ai model that streams these pieces, and then perhaps raises."""

    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for piece in pieces:
            yield piece
        if error is not None:
            raise error

    return Hosted("scripted", FunctionModel(stream_function=speak))


async def pieces_of(model: Any, patience: Patience = QUICK, **more: Any) -> list[str]:
    return [piece async for piece in listen(find(model), Request(ASKED, **more), patience)]


# -- streaming ---------------------------------------------------------------------------------------------------------


async def test_a_hosted_model_streams_piece_by_piece_and_counts() -> None:
    spent: list[Spending] = []
    pieces = await pieces_of(hosted("The ", "rain ", "falls."), spend=spent.append)
    assert [piece for piece in pieces if piece] == ["The ", "rain ", "falls."]
    assert len(spent) == 1
    assert (spent[0].calls, spent[0].failures) == (1, 0)
    assert spent[0].tokens_in > 0
    assert spent[0].tokens_out > 0


async def test_thinking_is_a_sign_of_life_and_no_text() -> None:
    pieces = await pieces_of(hosted({0: DeltaThinkingPart(content="hm")}, "Rain."))
    assert pieces[0] == ""
    assert "".join(pieces) == "Rain."


async def test_a_pydantic_ai_model_will_do_as_it_is() -> None:
    assert "".join(await pieces_of(TestModel(custom_output_text="The rain falls."))) == "The rain falls."


async def test_a_langchain_model_will_do_as_it_is_and_streams() -> None:
    spent: list[Spending] = []
    model = GenericFakeChatModel(messages=iter([AIMessage("The rain falls.")]))
    pieces = await pieces_of(model, spend=spent.append)
    assert "".join(pieces) == "The rain falls."
    assert len([piece for piece in pieces if piece.strip()]) == 3
    assert spent[0].tokens_out > 0


async def test_an_async_callable_will_do() -> None:
    heard: list[Sequence[Message]] = []

    async def ask(messages: Sequence[Message]) -> str:
        heard.append(messages)
        return "The rain falls."

    spent: list[Spending] = []
    assert await pieces_of(ask, spend=spent.append) == ["The rain falls."]
    assert heard == [ASKED]
    assert (spent[0].calls, spent[0].tokens_out > 0) == (1, True)


async def test_a_model_of_ones_own_needs_a_name_and_a_stream() -> None:
    class Own:
        name = "own"

        async def stream(self, request: Request) -> AsyncGenerator[str, None]:
            yield request.messages[-1]["content"]

    own = Own()
    assert find(own) is own
    assert "".join(await pieces_of(own)) == "Rain on the bridge."


async def test_chat_makes_a_summarizer_of_it() -> None:
    ask = chat(TestModel(custom_output_text="It rained."))
    assert await ask(ASKED) == "It rained."


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Mira left. [1] Rook st", "Mira left. [1]"),
        ("Mira left. [1, 2] Voss paid 4.50 gol", "Mira left. [1, 2]"),
        ("“Go!” said Mira. “Why", "“Go!” said Mira."),
        ("雨が降る。船長は", "雨が降る。"),
    ],
)
async def test_of_an_answer_that_was_cut_off_the_whole_sentences_are_kept(said: str, kept: str) -> None:
    class Cut:
        name = "cut"

        async def stream(self, request: Request) -> AsyncGenerator[str, None]:
            yield said
            raise tk.ModelFailed("reached its limit", cut=True)

    assert await chat(Cut())(ASKED) == kept


async def test_one_without_a_whole_sentence_is_a_failure() -> None:
    class Cut:
        name = "cut"

        async def stream(self, request: Request) -> AsyncGenerator[str, None]:
            yield "Mira left with the"
            raise tk.ModelFailed("reached its limit", cut=True)

    with pytest.raises(tk.ModelFailed, match="reached its limit"):
        await chat(Cut())(ASKED)


async def test_a_schema_is_passed_on_as_the_models_own() -> None:
    seen: list[AgentInfo] = []

    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.append(info)
        yield '{"a": 1}'

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert "".join(await pieces_of(FunctionModel(stream_function=speak), schema=schema, max_tokens=77)) == '{"a": 1}'
    parameters = seen[0].model_request_parameters
    assert parameters.output_mode == "native"
    assert parameters.output_object is not None
    assert parameters.output_object.json_schema["required"] == ["a"]
    assert (seen[0].model_settings or {}).get("max_tokens") == 77


# -- failing -----------------------------------------------------------------------------------------------------------


async def fail(model: Any, patience: Patience = QUICK) -> tk.ModelFailed:
    with pytest.raises(tk.ModelFailed) as caught:
        await pieces_of(model, patience)
    return caught.value


async def test_what_a_provider_raises_is_a_failed_model_with_its_cause() -> None:
    failed = await fail(hosted("The ", error=ConnectionError("connection reset")))
    assert failed.reason == "scripted failed: ConnectionError: connection reset"
    assert isinstance(failed.__cause__, ConnectionError)
    assert not failed.lasting


@pytest.mark.parametrize(("status", "lasting"), [(401, True), (404, True), (429, False), (500, False), (503, False)])
async def test_whether_it_helps_to_try_again_is_said(status: int, lasting: bool) -> None:
    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        raise ModelHTTPError(status, "some-model", body={"error": "no"})
        yield ""

    failed = await fail(FunctionModel(stream_function=speak))
    assert failed.lasting is lasting


async def test_silence_is_not_waited_out() -> None:
    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "The "
        await asyncio.sleep(3600)

    assert "was silent for 0.2 s" in (await fail(FunctionModel(stream_function=speak, model_name="slow"))).reason


async def test_an_answer_that_never_ends_is_ended() -> None:
    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        while True:
            await asyncio.sleep(0.01)
            yield "on and "

    assert "did not finish within 0.5 s" in (await fail(FunctionModel(stream_function=speak))).reason


async def test_one_that_will_not_be_cancelled_holds_nobody_up() -> None:
    async def stubborn(messages: Sequence[Message]) -> str:
        for _ in range(15):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        return "late"

    began = asyncio.get_running_loop().time()
    assert "silent" in (await fail(stubborn)).reason
    assert asyncio.get_running_loop().time() - began < 2.5


async def test_a_callable_that_raises_or_returns_no_text_is_a_failed_model() -> None:
    async def broken(messages: Sequence[Message]) -> str:
        raise RuntimeError("out of cheese")

    async def silent(messages: Sequence[Message]) -> Any:
        return None

    assert "RuntimeError: out of cheese" in (await fail(broken)).reason
    assert "returned NoneType, not text" in (await fail(silent)).reason


# -- stopping ----------------------------------------------------------------------------------------------------------


async def endless(closed: list[str]) -> Any:
    async def speak(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        try:
            while True:
                yield "word "
                await asyncio.sleep(0)
        finally:
            closed.append("closed")

    return FunctionModel(stream_function=speak)


async def test_who_stops_listening_closes_the_stream() -> None:
    closed: list[str] = []
    spent: list[Spending] = []
    async with aclosing(listen(find(await endless(closed)), Request(ASKED, spend=spent.append), Patience())) as pieces:
        async for piece in pieces:
            if piece:
                break
    assert closed == ["closed"]
    assert len(spent) == 1


async def test_cancelling_closes_the_stream_whenever_it_comes() -> None:
    """Also in the very moment in which a piece arrives."""
    for moment in range(60):
        closed: list[str] = []
        heard = asyncio.ensure_future(pieces_of(await endless(closed), Patience()))
        await asyncio.sleep(0.01)
        for _ in range(moment % 12):
            await asyncio.sleep(0)
        heard.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(heard, 5)
        await asyncio.sleep(0)
        assert closed == ["closed"]


# -- finding -----------------------------------------------------------------------------------------------------------

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL", "TALEKEEPER_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai", "a model is named provider:name, such as openai:gpt-5-mini"),
        ("openai:", "a model is named provider:name"),
        ("", "a model is named provider:name"),
        ("opnai:gpt-5", "no provider 'opnai'; did you mean 'openai'?"),
        ("nobody:gpt-5", "no provider 'nobody'; write openai:gpt-5-mini"),
    ],
)
def test_a_name_that_means_nothing_is_answered_with_one_that_does(name: str, message: str) -> None:
    with pytest.raises(tk.InvalidInput, match=message):
        find(name)


@pytest.mark.parametrize("thing", [None, 5, TestModel, object()])
def test_what_is_no_model_is_refused(thing: Any) -> None:
    with pytest.raises(tk.WrongType, match="a model or an async callable"):
        find(thing)


def test_a_missing_key_is_named_before_anything_is_asked() -> None:
    with pytest.raises(tk.ModelUnavailable, match="openai:gpt-5-mini needs a key: set OPENAI_API_KEY in the environment"):
        find("openai:gpt-5-mini")


def test_with_its_key_a_hosted_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    found = find("openai:gpt-5-mini", temperature=0.5)
    assert isinstance(found, Hosted)
    assert (found.name, found.settings) == ("openai:gpt-5-mini", {"temperature": 0.5})


def test_a_key_that_was_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tk.ModelUnavailable, match="needs a key: set MY_KEY in the environment"):
        find("openai:anything", base_url="http://localhost:1/v1", key_from="MY_KEY")
    monkeypatch.setenv("MY_KEY", "secret")
    assert find("openai:anything", base_url="http://localhost:1/v1", key_from="MY_KEY").name == "openai:anything"


def test_the_key_for_openai_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "for openai")
    found = find("openai:anything", base_url="http://localhost:1/v1")
    assert isinstance(found, Hosted)
    assert found.model.client.api_key != "for openai"  # type: ignore[attr-defined]


def test_ollama_is_on_this_machine_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    found = find("ollama:llama3.2")
    assert isinstance(found, Hosted)
    assert str(found.model.base_url).startswith("http://localhost:11434/v1")
    elsewhere = find("ollama:llama3.2", base_url="http://box:11434/v1")
    assert isinstance(elsewhere, Hosted)
    assert str(elsewhere.model.base_url).startswith("http://box:11434/v1")


def test_a_base_url_is_one() -> None:
    with pytest.raises(tk.InvalidInput, match="begins with http:// or https://"):
        find("openai:anything", base_url="localhost:8080")
    with pytest.raises(tk.InvalidInput, match="begins with http:// or https://"):
        find("ollama:llama3.2", base_url="notaurl")
    with pytest.raises(tk.InvalidInput, match="has no base URL"):
        find("local:smollm2", base_url="http://localhost:8080/v1")


MISSING = {
    "openai:gpt-5-mini": ("openai", "openai"),
    "anthropic:claude-sonnet-4-5": ("anthropic", "anthropic"),
    "google:gemini-2.5-flash": ("google.genai", "google"),
    "ollama:llama3.2": ("openai", "openai"),
    "local:smollm2": ("xllamacpp", "local"),
}


def without(packages: list[str], name: str) -> str:
    """What is said of a model where these packages are missing."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
        "import talekeeper.table.cast as cast\n"  # works without any extra
        "import talekeeper as tk\n"
        f"try: cast.find({name!r})\n"
        "except tk.TalekeeperError as exc: print(type(exc).__name__, exc)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(name: str, all_of_it: bool) -> None:
    package, extra = MISSING[name]
    said = without([package, *(["pydantic_ai"] if all_of_it else [])], name)
    assert said.startswith("ModelUnavailable ")
    assert f"pip install 'talekeeper[{extra}]'" in said


def test_what_a_name_means_is_told_as_far_as_can_be_known() -> None:
    assert "did you mean 'openai'?" in without(["pydantic_ai"], "opnai:gpt-5")
    assert "groq:some needs the package 'pydantic_ai': pip install 'talekeeper[pydantic-ai]'" in without(["pydantic_ai"], "groq:some")
    assert "pydantic-ai-slim[groq]" in without(["groq"], "groq:some")


def test_importing_the_cast_imports_no_framework() -> None:
    code = (
        "import sys, talekeeper.table.cast\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'pydantic_ai', 'pydantic', 'openai', 'httpx', 'xllamacpp', 'langchain_core'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
