"""A story of sixty turns that has settled, and what a summarizer is asked; the same for every framework."""

from __future__ import annotations

import talekeeper as tk

KEY = tk.MemoryKey("acme", "ana", "ash-crown")
QUICK = tk.RetryPolicy(attempts=2, pause=0.001, longest=0.002, recover_after=3600)
SUMMARY = "A captain counted coins while rain fell on the road and on the mill below it. [1, 2]"
ASKED: list[tk.Message] = [
    {"role": "system", "content": "Keep the chronicle."},
    {"role": "user", "content": "[1] Rain."},
    {"role": "assistant", "content": "It rained."},
    {"role": "user", "content": "Shorter."},
]

_DEEDS = (
    "the captain counts the silver coins on the table twice and says that nobody leaves before the bell rings again tonight",
    "rain comes down from the hills and the road to the mill is gone until somebody clears away the trees that fell on it",
)


async def sixty_turns(keeper: tk.Keeper) -> tk.Story:
    seats = [tk.Seat("dm", role="dm", token_limit=600), tk.Seat("rogue", token_limit=400)]
    story = await keeper.story(KEY, seats=seats)
    for number in range(60):
        await story.append("dm", f"This time, {_DEEDS[number % 2]}.")
    await story.settle()
    return story
