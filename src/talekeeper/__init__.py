"""Talekeeper: memory for long stories told by language models.

    import talekeeper as tk

    async with tk.open("saga.db") as keeper:
        story = await keeper.story(key, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        await story.append("dm", "The innkeeper slides you a key.", heard_by=["rogue"])
        context = await story.context("rogue", budget=2000, query="Who gave me the key?")

The names below are the public API. They are imported when first used, so that `import talekeeper` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talekeeper import sync
    from talekeeper.context.plan import FLOOR
    from talekeeper.context.recipe import QUESTION_RECIPE, Note, Part, Recipe
    from talekeeper.errors import (
        BudgetTooSmall,
        Conflict,
        DuplicateId,
        InvalidInput,
        MemoryBudgetExceeded,
        MissingKey,
        ModelFailed,
        ModelUnavailable,
        NameTaken,
        StoreBusy,
        StoreClosed,
        StoreCorrupt,
        StoreError,
        StoreFull,
        StoreReadOnly,
        SummaryFailed,
        TalekeeperError,
        UnknownBranch,
        UnknownFold,
        UnknownSeat,
        UnknownStory,
        UnknownTurn,
        WrongStore,
        WrongType,
    )  # fmt: skip
    from talekeeper.keeper import Keeper, open
    from talekeeper.memory.session import (
        ConversationTurn,
        DefaultShortTermMemory,
        MemoryBudget,
        MemoryIsolation,
        SessionMemories,
        ShortTermMemoryConfig,
    )  # fmt: skip
    from talekeeper.model import (
        Block,
        BranchInfo,
        Context,
        Fold,
        Health,
        HealthState,
        Item,
        LeftOut,
        Mark,
        Marked,
        MemoryKey,
        Recap,
        Recollection,
        Seat,
        Sentence,
        Stats,
        Turn,
        to_json,
    )  # fmt: skip
    from talekeeper.ports import ChatModel, Message, Store, TokenCounter
    from talekeeper.story.folding import RetryPolicy
    from talekeeper.story.replay import Past
    from talekeeper.story.story import Story
    from talekeeper.story.telling import Draft
    from talekeeper.summarize.janitor import Janitor
    from talekeeper.tokens import Exact, Heuristic, best_counter, counter_for, estimate_tokens

__version__ = "0.1.0"

_HOMES = {
    "context.plan": "FLOOR",
    "errors": "BudgetTooSmall Conflict DuplicateId InvalidInput MemoryBudgetExceeded MissingKey ModelFailed ModelUnavailable "
    "NameTaken StoreBusy StoreClosed StoreCorrupt StoreError StoreFull StoreReadOnly SummaryFailed TalekeeperError UnknownBranch "
    "UnknownFold UnknownSeat UnknownStory UnknownTurn WrongStore WrongType",
    "story.folding": "RetryPolicy",
    "keeper": "Keeper open",
    "memory.session": "ConversationTurn DefaultShortTermMemory MemoryBudget MemoryIsolation SessionMemories ShortTermMemoryConfig",
    "model": "Block BranchInfo Context Fold Health HealthState Item LeftOut Mark Marked MemoryKey Recap Recollection Seat Sentence Stats "
    "Turn to_json",
    "ports": "ChatModel Message Store TokenCounter",
    "story.story": "Story",
    "context.recipe": "Note Part QUESTION_RECIPE Recipe",
    "story.replay": "Past",
    "story.telling": "Draft",
    "summarize.janitor": "Janitor",
    "tokens": "Exact Heuristic best_counter counter_for estimate_tokens",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "FLOOR",
    "QUESTION_RECIPE",
    "Block",
    "BranchInfo",
    "BudgetTooSmall",
    "ChatModel",
    "Conflict",
    "Context",
    "ConversationTurn",
    "DefaultShortTermMemory",
    "Draft",
    "DuplicateId",
    "Exact",
    "Fold",
    "Health",
    "HealthState",
    "Heuristic",
    "InvalidInput",
    "Item",
    "Janitor",
    "Keeper",
    "LeftOut",
    "Mark",
    "Marked",
    "MemoryBudget",
    "MemoryBudgetExceeded",
    "MemoryIsolation",
    "MemoryKey",
    "Message",
    "MissingKey",
    "ModelFailed",
    "ModelUnavailable",
    "NameTaken",
    "Note",
    "Part",
    "Past",
    "Recap",
    "Recipe",
    "Recollection",
    "RetryPolicy",
    "Seat",
    "Sentence",
    "SessionMemories",
    "ShortTermMemoryConfig",
    "Stats",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "Story",
    "SummaryFailed",
    "TalekeeperError",
    "TokenCounter",
    "Turn",
    "UnknownBranch",
    "UnknownFold",
    "UnknownSeat",
    "UnknownStory",
    "UnknownTurn",
    "WrongStore",
    "WrongType",
    "best_counter",
    "counter_for",
    "estimate_tokens",
    "open",
    "sync",
    "to_json",
]


if not TYPE_CHECKING:  # a type checker knows the names, and refuses others

    def __getattr__(name: str) -> Any:
        if name == "sync":
            return import_module("talekeeper.sync")
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'talekeeper' has no attribute {name!r}")
        value = getattr(import_module(f"talekeeper.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
