"""What a session memory is told: its strategy, its budget, whose it is, and whom it tells of changes."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from talekeeper import rim
from talekeeper.errors import InvalidInput, WrongType, quoted
from talekeeper.model import HealthState, MemoryKey
from talekeeper.story.folding import RetryPolicy

Strategy = Literal["truncation", "rolling_summary", "none"]
OverflowPolicy = Literal["truncate_oldest", "truncate_summary", "error"]


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A question and its answer. `trajectory_digest`: what was done for the answer, as JSON; shown with the turn while it is shown."""

    user_message: str
    assistant_response: str
    trajectory_digest: Mapping[str, Any] | None = None
    ts: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How much is shown. `full_zone_turns`: so many of the newest turns as they are. `summary_max_tokens`: for the summary.
    `total_max_tokens`: for the whole system message, wrapper included; 0 is none at all.

    `overflow_policy`, where that is too little: `truncate_oldest` gives up detail of the oldest turns first, `truncate_summary` of the
    summary, and `error` raises `MemoryBudgetExceeded` from the call that asked. What loses its place is folded, not forgotten."""

    full_zone_turns: int = 5
    summary_max_tokens: int = 1000
    total_max_tokens: int = 10000
    overflow_policy: OverflowPolicy = "truncate_oldest"

    def __post_init__(self) -> None:
        for name in ("full_zone_turns", "summary_max_tokens", "total_max_tokens"):
            rim.whole(getattr(self, name), name)
        _one_of(self.overflow_policy, OverflowPolicy, "overflow_policy")


@dataclass(frozen=True, slots=True)
class MemoryIsolation:
    """Where a tool context says whose the conversation is: dotted paths to the three parts of a key.

    All three must be there, else there is no key and so no memory. `require_explicit_key=False`: calls without a key share a throwaway
    conversation of the process."""

    tenant_key: str = "tenant_id"
    user_key: str = "user_id"
    session_key: str = "session_id"
    require_explicit_key: bool = True

    def __post_init__(self) -> None:
        for name in ("tenant_key", "user_key", "session_key"):
            rim.name(getattr(self, name), name)

    def find_key(self, tool_context: Mapping[str, Any]) -> MemoryKey | None:
        """The key that the tool context holds, if it holds all of it."""
        parts = [_at(tool_context, path) for path in (self.tenant_key, self.user_key, self.session_key)]
        return MemoryKey(*(part for part in parts if part)) if all(parts) else None


def _at(context: Any, path: str) -> str:
    """The id at a dotted path as text; "" where there is none."""
    for part in path.split("."):
        if not isinstance(context, Mapping) or part not in context:
            return ""
        context = context[part]
    known = isinstance(context, str | int | uuid.UUID) and not isinstance(context, bool)
    return str(context) if known and str(context).strip() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermMemoryConfig:
    """How a conversation is remembered. `strategy`: `none` (off), `truncation` (the full zone alone; never asks a model) or
    `rolling_summary`.

    A failing summarizer is tried again `retry_attempts` times, with pauses that double from `retry_backoff_base_s` seconds, and given up
    then for `degraded_retry_interval_s`; these hold where the memory has a keeper of its own, else that keeper's policy does.
    `token_estimator` counts in the place of the keeper's counter. Callbacks may be async; they are called soon, and may fail."""

    strategy: Strategy = "none"
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    isolation: MemoryIsolation = field(default_factory=MemoryIsolation)
    include_trajectory_digest: bool = True
    retry_attempts: int = 3
    retry_backoff_base_s: float = 2.0
    degraded_retry_interval_s: float = 30.0
    token_estimator: Callable[[str], int] | None = None
    on_turn_added: Callable[[ConversationTurn], Awaitable[None] | None] | None = None
    on_summary_updated: Callable[[str, str], Awaitable[None] | None] | None = None
    on_health_changed: Callable[[HealthState, HealthState], Awaitable[None] | None] | None = None

    def __post_init__(self) -> None:
        _one_of(self.strategy, Strategy, "strategy")
        for value, kind, name in ((self.budget, MemoryBudget, "budget"), (self.isolation, MemoryIsolation, "isolation")):
            if not isinstance(value, kind):
                raise WrongType(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
        rim.whole(self.retry_attempts, "retry_attempts")
        for name in ("retry_backoff_base_s", "degraded_retry_interval_s"):
            rim.seconds(getattr(self, name), name)
        for name in ("token_estimator", "on_turn_added", "on_summary_updated", "on_health_changed"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise WrongType(f"{name} must be a function, not {type(getattr(self, name)).__name__}")

    @property
    def retry(self) -> RetryPolicy:
        """The same in the engine's words, where the first try counts as well."""
        pause = self.retry_backoff_base_s
        return RetryPolicy(self.retry_attempts + 1, pause, max(30.0, pause), self.degraded_retry_interval_s)


def _one_of(value: object, choices: Any, name: str) -> None:
    if value not in get_args(choices):
        raise InvalidInput(f"{name} must be one of {', '.join(get_args(choices))}, not {quoted(value)}")
