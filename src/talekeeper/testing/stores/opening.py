"""How the tests come by a store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from talekeeper.ports import Store


class Opening:
    """What a store says of itself, and a fresh one for each test."""

    durable: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    async def open_store(self, place: Any) -> Store:
        """A store at that place; called again for the same place, one that finds what was written there."""
        raise NotImplementedError

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        return tmp_path / "store"

    @pytest.fixture
    async def store(self, place: Any) -> AsyncIterator[Store]:
        store = await self.open_store(place)
        yield store
        await store.close()
