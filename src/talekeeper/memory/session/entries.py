"""The turns of a conversation as entries of its story's log: how they get in, and how they read now.

A turn is up to two entries, what the user said and what the assistant said, with ids made of the turn's. The log knows every id that it
ever had, also of what was undone or forgotten: that decides whether a turn that is stored elsewhere is new or is gone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from talekeeper import rim
from talekeeper.errors import DuplicateId, UnknownTurn
from talekeeper.memory.session import message
from talekeeper.memory.session.archive import PAGE
from talekeeper.memory.session.message import Pair
from talekeeper.memory.session.states import Stored
from talekeeper.model import Mark, Turn
from talekeeper.story.inside import ever_told
from talekeeper.story.races import retried
from talekeeper.story.story import Story
from talekeeper.story.telling import Draft

USER, ASSISTANT = "user", "assistant"
EARLIER = "earlier"
"""The id of the entry that stands for what a state had as a summary only."""
DIGESTS = "trajectory_digest"
DIGESTS_KEPT = 128


def drafts_of(pair: Pair) -> list[Draft]:
    """The turn as entries of the log, in one step; what was done for the answer goes with its last entry, and is never folded."""
    said = [(USER, pair.user), (ASSISTANT, pair.assistant)]
    time = pair.time if pair.time and abs(pair.time) < rim.LATEST else None
    drafts = [Draft(speaker, text, id=f"{pair.id}/{speaker}", time=time) for speaker, text in said if rim.seen(text)]
    if pair.digest is not None and drafts:
        drafts[-1] = drafts[-1]._replace(marks=(Mark(DIGESTS, pair.digest, keep=DIGESTS_KEPT),))
    return drafts


def _ids(name: str) -> list[str]:
    return [f"{name}/{half}" for half in (USER, ASSISTANT)]


async def add(story: Story, pair: Pair) -> None:
    """Appends a turn. One that is there with one half, and is the newest, gets its other half."""
    try:
        await story.append_many(drafts_of(pair))
    except DuplicateId as exc:
        known = await ever_told(story, _ids(pair.id))
        version, newest = story.version, await story.turns(newest=True, limit=1)
        drafts = {draft.id: draft for draft in drafts_of(pair)}
        begun = drafts.get(newest[-1].id) if newest else None
        rest = [draft for name, draft in drafts.items() if name not in known]
        if begun is None or begun.text != newest[-1].text or not rest:
            raise DuplicateId(
                f"the id {pair.id!r} belongs to another turn of this conversation: add this one under an id of its own"
            ) from exc
        await story.append_many(rest, expected_version=version)


async def forget(story: Story, name: str) -> bool:
    """Forgets a turn for good; whether there was anything to forget."""
    found = False
    for half in _ids(name):
        try:
            await story.forget(half)
            found = True
        except UnknownTurn:
            continue
    return found


async def take_in(story: Story, stored: Stored) -> set[str]:
    """Appends what the log never had, in one step: all of it is in the log then, or, where that fails or is interrupted, none of it. What
    others forgot is forgotten here. Returns the ids of what is forgotten."""

    async def once() -> set[str]:
        known = await ever_told(story, [EARLIER, *(half for name in _names(stored) for half in _ids(name))])
        for name in stored.forgotten:
            if any(known.get(half) for half in _ids(name)):
                await forget(story, name)
        gone = {name for name in _names(stored) if (had := [known[half] for half in _ids(name) if half in known]) and not any(had)}
        drafts = await _missing(story, stored, known)
        if drafts:
            await story.append_many(drafts)
        return gone.union(stored.forgotten)

    return await retried(once, lost=DuplicateId)  # someone took in the same meanwhile


def _names(stored: Stored) -> set[str]:
    return {*stored.forgotten, *(pair.id for pair in stored.pairs)}


async def _missing(story: Story, stored: Stored, known: Collection[str]) -> list[Draft]:
    missing: dict[str | None, Draft] = {}
    if rim.seen(stored.earlier) and not story.head and EARLIER not in known:
        missing[EARLIER] = Draft("", stored.earlier, kind="event", id=EARLIER)
    for pair in [pair for pair in stored.pairs if pair.id not in stored.forgotten]:
        fresh = {draft.id: draft for draft in drafts_of(pair) if draft.id not in known and draft.id not in missing}
        begun = any(name in known for name in _ids(pair.id))
        if fresh and (not begun or any([await _reads(story, name) for name in _ids(pair.id)])):
            missing |= fresh
    return list(missing.values())


async def _reads(story: Story, name: str) -> str:
    """What an entry says now; "" where it was undone or forgotten, or never was."""
    try:
        return (await story.turn(name)).text
    except UnknownTurn:
        return ""


async def told(story: Story, after: int = 0) -> list[Pair]:
    """The turns of the log behind that entry."""
    turns = await story.turns(seat=ASSISTANT, after=after)
    return message.pairs_of(turns, await digests(story, turns))


async def digests(story: Story, turns: Sequence[Turn]) -> dict[str, Mapping[str, Any]]:
    """What was done for these turns, by the ids of their entries."""
    marks = await story.marks(ASSISTANT, DIGESTS, limit=min(DIGESTS_KEPT, len(turns))) if turns else []
    return {source: mark.data for mark in marks for source in mark.sources}


async def earlier(story: Story) -> str:
    """What is known of turns from before the log, from a state that had them as a summary only."""
    return await _reads(story, EARLIER)


async def now(story: Story, pair: Pair) -> Pair | None:
    """A turn that is stored as it reads now; None where it was undone or forgotten. What the log never had stays as it is."""
    halves = {USER: pair.user, ASSISTANT: pair.assistant}
    known = await ever_told(story, _ids(pair.id))
    for half in halves:
        if f"{pair.id}/{half}" in known:
            halves[half] = await _reads(story, f"{pair.id}/{half}")
    if known and not any(halves.values()):
        return None
    digest = pair.digest if halves[ASSISTANT] or not pair.assistant else None
    return dataclasses.replace(pair, user=halves[USER], assistant=halves[ASSISTANT], digest=digest)


async def still_told(story: Story, pairs: Sequence[Pair]) -> list[Pair]:
    """Of turns that are stored, those that were not undone or forgotten meanwhile, as they read now."""
    recap = await story.recap(ASSISTANT, keep=4 * PAGE, budget=0)
    turns = [turn for turn in recap.turns if turn.text]
    mine = _whole(message.pairs_of(turns, await digests(story, turns)))
    read = [mine[pair.id] if pair.id in mine else await now(story, pair) for pair in pairs]
    return [dataclasses.replace(new, time=pair.time) for new, pair in zip(read, pairs, strict=True) if new is not None]


def _whole(pairs: Iterable[Pair]) -> dict[str, Pair]:
    """Turns by their ids, put together where their halves stand apart in the log."""
    whole: dict[str, Pair] = {}
    for pair in pairs:
        first = whole.get(pair.id, pair)
        whole[pair.id] = dataclasses.replace(
            first, user=first.user or pair.user, assistant=first.assistant or pair.assistant, digest=first.digest or pair.digest
        )
    return whole
