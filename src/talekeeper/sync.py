"""For people without an event loop: the front door with methods that wait for their result.

    with tk.sync.open("saga.db") as keeper:
        story = keeper.story(key, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        story.append("dm", "The innkeeper slides you a key.")
        print(story.context("rogue", budget=2000).text)

What the names stand for is in `portal`; for type checkers, `sync.pyi` says it, which `tests/sync_types.py` writes.
"""

from __future__ import annotations

from talekeeper.portal import Synchronous, SynchronousOwner, call, memory, open

Keeper = DefaultShortTermMemory = SynchronousOwner
Story = Past = Store = MemoryManager = MemoryService = SessionMemories = Synchronous

__all__ = [
    "DefaultShortTermMemory",
    "Keeper",
    "MemoryManager",
    "MemoryService",
    "Past",
    "SessionMemories",
    "Store",
    "Story",
    "call",
    "memory",
    "open",
]
