"""Every store keeps every word of the port."""

from __future__ import annotations

from typing import Any

import pytest

pytest.register_assert_rewrite("talekeeper.testing.stores")

from talekeeper.ports import Store  # noqa: E402
from talekeeper.stores import InMemoryStore, SqliteStore  # noqa: E402
from talekeeper.testing.stores import StoreContract  # noqa: E402


class TestInMemoryStore(StoreContract):
    durable = shared = False

    async def open_store(self, place: Any) -> Store:
        return InMemoryStore()


class TestSqliteStore(StoreContract):
    async def open_store(self, place: Any) -> Store:
        return await SqliteStore.open(place)
