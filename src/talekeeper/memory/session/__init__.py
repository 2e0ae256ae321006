"""Session memory: what a chat or an agent remembers of one conversation, ready for a prompt. A face on the story engine.

    memory = tk.DefaultShortTermMemory(tk.ShortTermMemoryConfig(strategy="rolling_summary"))
    await memory.add_turn("My name is Ana.", "Hello, Ana!")
    await memory.system_message()

A conversation is a story of two seats, so there is one log and one way of folding. The newest turns are shown as they are (the *full
zone*); older ones are `pending` as they are while a model is to summarise them; everything before is under folds, the `summary`. Each
turn is in exactly one of the three at any moment, and the message, wrapper included, never has more tokens than it may (I1, I2). A
memory belongs to one key and knows of no other; without a key there is none (I10).

    memories   of many conversations, one per key
    memory     of one conversation: turns go in, a system message comes out
    message    that message, within its budget
    entries    its turns in the story's log
    archive    its turns in someone else's state store
    states     what is written there
    config     strategy, budget, whose it is, whom it tells of changes
"""

from talekeeper.memory.session.config import ConversationTurn, MemoryBudget, MemoryIsolation, ShortTermMemoryConfig
from talekeeper.memory.session.memories import SessionMemories
from talekeeper.memory.session.memory import DefaultShortTermMemory
from talekeeper.memory.session.message import CLOSE, OPEN

__all__ = [
    "CLOSE",
    "OPEN",
    "ConversationTurn",
    "DefaultShortTermMemory",
    "MemoryBudget",
    "MemoryIsolation",
    "SessionMemories",
    "ShortTermMemoryConfig",
]
