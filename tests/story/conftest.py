"""A story of four at a table, on every store."""

from __future__ import annotations

import pytest
from tests.stories import KEY, TABLE

import talekeeper as tk


@pytest.fixture
async def story(keeper: tk.Keeper) -> tk.Story:
    return await keeper.story(KEY, seats=TABLE)
