"""Keys: whose story it is, and that none meets another. On every store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stories import DM, KEY, SECRET, TABLE, TRACES, bytes_below

import talekeeper as tk


async def test_keys_whose_joined_parts_look_alike_never_meet(keeper: tk.Keeper) -> None:
    keys = [
        tk.MemoryKey("acme:bob", "1", "s"), tk.MemoryKey("acme", "bob:1", "s"), tk.MemoryKey("acme", "bob", "1:s"),
        tk.MemoryKey("acme\\", "bob", "s"), tk.MemoryKey("acme", "\\bob", "s"), tk.MemoryKey("acme", "bob", "s"),
        tk.MemoryKey("acme ", "bob", "s"), tk.MemoryKey("ACME", "bob", "s"), tk.MemoryKey("%", "bob", "s"),
        tk.MemoryKey("_cme", "bob", "s"), tk.MemoryKey("é", "bob", "s"), tk.MemoryKey("e\u0301", "bob", "s"), tk.MemoryKey("acme", "bob\n1", "s"),
    ]  # fmt: skip
    for number, key in enumerate(keys):
        story = await keeper.story(key, seats=[DM])
        await story.append("dm", f"This is story number {number}.")
    for number, key in enumerate(keys):
        story = await keeper.story(key)
        assert [turn.text for turn in await story.turns()] == [f"This is story number {number}."]
        assert len(await story.recall("dm", "story number", limit=50)) == 1
    assert sorted(keys, key=repr) == sorted(await keeper.keys(), key=repr)
    assert await keeper.keys("acme:bob") == [keys[0]]
    assert await keeper.keys("%") == [keys[8]]
    assert len({key.composite() for key in keys}) == len(keys)


def test_composite_joins_with_colons_and_escapes_what_would_be_ambiguous() -> None:
    assert tk.MemoryKey("acme", "ana", "s1").composite() == "acme:ana:s1"
    assert tk.MemoryKey("acme:bob", "1", "s").composite() == "acme\\:bob:1:s"
    assert tk.MemoryKey("a\\", ":b", "c").composite() == "a\\\\:\\:b:c"


async def test_a_deleted_story_is_gone_and_its_key_is_free_for_a_new_one(keeper: tk.Keeper, target: str, tmp_path: Path) -> None:
    story = await keeper.story(KEY, seats=TABLE)
    other = await keeper.story(tk.MemoryKey("acme", "ana", "other"), seats=TABLE)
    await story.append("dm", SECRET, id="post-1")
    await story.settle()
    await other.append("dm", "Still here.")
    assert await keeper.delete(KEY) is True
    assert await keeper.delete(KEY) is False
    assert await keeper.keys() == [other.key]
    with pytest.raises(tk.UnknownStory):
        await keeper.story(KEY)
    with pytest.raises(tk.UnknownStory):
        await story.context("rogue", budget=500)
    if target != ":memory:":
        left = bytes_below(tmp_path).lower()
        assert not [trace for trace in TRACES if trace.isalpha() and trace.lower().encode() in left]  # digits may be part of a hash
    fresh = await keeper.story(KEY, seats=[DM])
    assert await fresh.turns() == []
    assert await fresh.recall("dm", "Vraxholm") == []
    assert (await fresh.append("dm", "New.", id="post-1")).seq == 1
    assert [turn.text for turn in await other.turns()] == ["Still here."]


async def test_an_old_handle_of_a_deleted_story_never_writes_into_the_new_one(keeper: tk.Keeper) -> None:
    old = await keeper.story(KEY, seats=TABLE)
    await old.append("dm", "Old.")
    await keeper.delete(KEY)
    fresh = await keeper.story(KEY, seats=TABLE)
    with pytest.raises(tk.TalekeeperError):
        await old.append("dm", "A ghost speaks.")
    assert await fresh.turns() == []
