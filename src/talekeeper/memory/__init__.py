"""The faces of memory: agents' buffers, facts, loose ends, sessions, scoped memories, moments. Each is thin; the story beneath is one.

    from talekeeper.memory import MemoryManager, context_manager, find_callbacks, recap, remember

    agents     buffers with a limit for each agent       moments    what a game must not forget
    facts      what is known of characters               callbacks  loose ends, and what ties them
    scopes     memories with a scope and a lifetime      sessions   recaps of sessions
    session/   a chat's short-term memory                entries    one remembered thing of a scope, as a value
    parts      what a context shows of all these         naming     who is meant by a name

The names below are imported when they are first used. What the game adds by hand is in their modules: `facts.add`, `callbacks.add`,
`callbacks.resolve`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talekeeper.memory.agents import (
        MAX_COMPRESSION_PASSES,
        RETAIN_AFTER_COMPRESSION,
        AgentMemory,
        AgentReport,
        MemoryManager,
        context_manager,
    )
    from talekeeper.memory.callbacks import Callback, find_callbacks
    from talekeeper.memory.entries import MemoryEntry, MemorySource, PrunePolicy
    from talekeeper.memory.facts import CharacterFacts, Fact, character_facts, format_character_facts
    from talekeeper.memory.moments import (
        MAX_ADVENTURE_MOMENTS,
        AdventureMoment,
        KeeperResponse,
        add_adventure_moment,
        adventure_moments,
        build_context,
        build_moment_from_keeper,
        epilogue_material,
        format_moments_for_context,
        moment_mark,
        pin_moment,
        resolve_action_with_moments,
    )
    from talekeeper.memory.parts import CONTRIBUTORS, Contributor, remember
    from talekeeper.memory.scopes import MemoryService
    from talekeeper.memory.sessions import Session, SessionSummary, list_sessions, recap, session_summary

_HOMES = {
    "agents": "AgentMemory AgentReport MAX_COMPRESSION_PASSES MemoryManager RETAIN_AFTER_COMPRESSION context_manager",
    "callbacks": "Callback find_callbacks",
    "facts": "CharacterFacts Fact character_facts format_character_facts",
    "moments": "AdventureMoment KeeperResponse MAX_ADVENTURE_MOMENTS add_adventure_moment adventure_moments build_context "
    "build_moment_from_keeper epilogue_material format_moments_for_context moment_mark pin_moment resolve_action_with_moments",
    "parts": "CONTRIBUTORS Contributor remember",
    "entries": "MemoryEntry MemorySource PrunePolicy",
    "scopes": "MemoryService",
    "sessions": "Session SessionSummary list_sessions recap session_summary",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CONTRIBUTORS",
    "MAX_ADVENTURE_MOMENTS",
    "MAX_COMPRESSION_PASSES",
    "RETAIN_AFTER_COMPRESSION",
    "AdventureMoment",
    "AgentMemory",
    "AgentReport",
    "Callback",
    "CharacterFacts",
    "Contributor",
    "Fact",
    "KeeperResponse",
    "MemoryEntry",
    "MemoryManager",
    "MemoryService",
    "MemorySource",
    "PrunePolicy",
    "Session",
    "SessionSummary",
    "add_adventure_moment",
    "adventure_moments",
    "build_context",
    "build_moment_from_keeper",
    "character_facts",
    "context_manager",
    "epilogue_material",
    "find_callbacks",
    "format_character_facts",
    "format_moments_for_context",
    "list_sessions",
    "moment_mark",
    "pin_moment",
    "recap",
    "remember",
    "resolve_action_with_moments",
    "session_summary",
]


if not TYPE_CHECKING:  # a type checker knows the names, and refuses others

    def __getattr__(name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'talekeeper.memory' has no attribute {name!r}")
        value = getattr(import_module(f"talekeeper.memory.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
