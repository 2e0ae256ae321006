"""Models behind an API, through pydantic-ai: OpenAI, Anthropic, Google, Ollama, whatever speaks OpenAI's protocol, and the rest of
pydantic-ai's providers. Each needs its package (an extra) and mostly a key in the environment; both are looked for before a game begins.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from talekeeper.errors import InvalidInput, ModelFailed, ModelUnavailable, how_to_install
from talekeeper.ports import Message, Spending
from talekeeper.table.cast.models import Request

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model as Served
    from pydantic_ai.models import ModelRequestParameters, StreamedResponse
    from pydantic_ai.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider needs: the extra that brings its package, that package, and the variables of which one holds its key."""

    extra: str
    package: str
    keys: tuple[str, ...] = ()


_OPENAI = Provider("openai", "openai", ("OPENAI_API_KEY",))
PROVIDERS: Mapping[str, Provider] = {
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "anthropic": Provider("anthropic", "anthropic", ("ANTHROPIC_API_KEY",)),
    "google": Provider("google", "google.genai", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "ollama": Provider("openai", "openai"),
}
OLLAMA_URL = "http://localhost:11434/v1"
KEY_VARIABLE = "TALEKEEPER_API_KEY"
"""Holds the key for a server that is named by its base URL. Never OPENAI_API_KEY: that one is for OpenAI alone."""
_PASSING = (408, 409, 425, 429)
"""Refusals that are over after a while: too slow, too early, too many."""
_REASONS = {"content_filter": "was stopped by the provider's content filter", "error": "ended in an error of the provider"}


def knows(provider: str) -> bool | None:
    """Whether pydantic-ai has a provider of that name, besides those above; None where nobody can tell, because it is not here."""
    try:
        from pydantic_ai.providers import infer_provider_class

        infer_provider_class(provider)
    except ModuleNotFoundError as exc:
        return None if (exc.name or "").startswith("pydantic_ai") else True
    except ImportError:
        return True  # it knows, and misses the provider's package: what to install is said when the model is opened
    except ValueError:
        return False
    return True


def open_model(provider: str, name: str, base_url: str | None, key_from: str | None, settings: Mapping[str, Any]) -> Hosted:
    """The model, with everything that it needs. Asks nothing of anyone yet."""
    full = f"{provider}:{name}"
    needs = PROVIDERS.get(provider)
    if base_url is not None or provider == "ollama":
        return Hosted(full, _compatible(full, name, base_url, key_from), settings)
    if needs is not None:
        _need(needs.package, needs.extra, full)
        if not any(os.environ.get(key) for key in needs.keys):
            raise ModelUnavailable(f"{full} needs a key: set {' or '.join(needs.keys)} in the environment")
    _need("pydantic_ai", "pydantic-ai", full)
    return Hosted(full, _inferred(full), settings)


def _need(package: str, extra: str, what: str) -> None:
    try:
        importlib.import_module("pydantic_ai")
        importlib.import_module(package)
    except ModuleNotFoundError as exc:
        raise ModelUnavailable(f"{what} needs the package {exc.name or package!r}: {how_to_install(extra)}") from exc


def _compatible(full: str, name: str, base_url: str | None, key_from: str | None) -> Served:
    """A model on a server that speaks OpenAI's protocol. One on this machine often needs no key."""
    _need("openai", "openai", full)
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    key = os.environ.get(key_from or KEY_VARIABLE)
    if key_from is not None and not key:
        raise ModelUnavailable(f"{full} needs a key: set {key_from} in the environment")
    url = base_url or os.environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"a base URL begins with http:// or https://, such as http://localhost:8080/v1; found {url!r}")
    if full.startswith("ollama:"):
        return OllamaModel(name, provider=OllamaProvider(base_url=url, api_key=key))
    return OpenAIChatModel(name, provider=OpenAICompatibleProvider("compatible", base_url=url, api_key=key))


def _inferred(full: str) -> Served:
    from pydantic_ai.models import infer_model

    try:
        return infer_model(full)
    except Exception as exc:  # pydantic-ai's own, or whatever the provider's package raises where something is missing
        raise ModelUnavailable(f"{full} cannot be used: {exc}") from exc


class Hosted:
    """A pydantic-ai model as ours."""

    def __init__(self, name: str, model: Served, settings: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.model = model
        self.settings = dict(settings or {})

    async def stream(self, request: Request) -> AsyncGenerator[str, None]:
        from pydantic_ai.direct import model_request_stream

        answer: StreamedResponse | None = None
        said: list[str] = []
        try:
            async with model_request_stream(
                self.model,
                translate(request.messages),
                model_settings=cast("ModelSettings", {"max_tokens": request.max_tokens, **self.settings}),
                model_request_parameters=self._form(request.schema),
            ) as answer:
                async for event in answer:
                    said.append(_text_of(event))
                    yield said[-1]
            self._judge(answer, request)
        except (ModelFailed, GeneratorExit):
            raise
        except Exception as exc:
            raise self._failed(exc) from exc
        finally:
            request.spend(_spent(answer, request, "".join(said)))

    def _form(self, schema: Mapping[str, Any] | None) -> ModelRequestParameters:
        """Structured output as the model's own where it has it; else it is asked for in words."""
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        if schema is None:
            return ModelRequestParameters()
        native = self.model.profile.get("supports_json_schema_output", False)
        form = OutputObjectDefinition(json_schema=dict(schema), name="answer")
        return ModelRequestParameters(output_mode="native" if native else "prompted", output_object=form)

    def _judge(self, answer: StreamedResponse, request: Request) -> None:
        if answer.finish_reason == "length":
            raise ModelFailed(f"{self.name} reached its limit of {request.max_tokens} tokens", cut=True)
        if answer.finish_reason in _REASONS:
            raise ModelFailed(f"the answer of {self.name} {_REASONS[answer.finish_reason]}")

    def _failed(self, exc: Exception) -> ModelFailed:
        """Trying again does not help where the request itself was refused, or cannot mean anything."""
        from pydantic_ai.exceptions import UserError

        status = getattr(exc, "status_code", None)
        lasting = isinstance(exc, UserError) or (isinstance(status, int) and 400 <= status < 500 and status not in _PASSING)
        return ModelFailed(f"{self.name} failed: {type(exc).__name__}: {exc}", lasting=lasting)


def _text_of(event: Any) -> str:
    """The text that an event adds; of thinking, nothing."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _spent(answer: StreamedResponse | None, request: Request, said: str) -> Spending:
    """As the provider counted, or estimated where it did not."""
    if answer is None:
        return request.spending(said)
    return request.spending(said, answer.usage.input_tokens, answer.usage.output_tokens)


def translate(messages: Sequence[Message]) -> list[ModelMessage]:
    """Chat messages as pydantic-ai keeps them: what goes to the model between two answers is one request."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    translated: list[ModelMessage] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            translated.append(ModelResponse(parts=[TextPart(content)]))
            continue
        if role not in ("system", "user"):
            raise InvalidInput(f"a message's role must be one of system, user, assistant, not {role!r}")
        part = SystemPromptPart(content) if role == "system" else UserPromptPart(content)
        last = translated[-1] if translated else None
        if isinstance(last, ModelRequest):
            translated[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            translated.append(ModelRequest(parts=[part]))
    return translated
