"""Every store keeps every word of the port."""

from __future__ import annotations

from typing import Any

from talekeeper.ports import Store
from talekeeper.stores import InMemoryStore, SqliteStore
from talekeeper.testing.stores import StoreContract


class TestInMemoryStore(StoreContract):
    durable = shared = False

    async def open_store(self, place: Any) -> Store:
        return InMemoryStore()


class TestSqliteStore(StoreContract):
    async def open_store(self, place: Any) -> Store:
        return await SqliteStore.open(place)
