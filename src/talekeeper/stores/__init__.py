"""Where stories are kept. Every store honours the port `talekeeper.ports.Store` and passes `talekeeper.testing.stores.StoreContract`.

`in_memory` for tests and throwaway stories, `sqlite` (the default) for one durable file.
"""

from __future__ import annotations

import os
import re

from talekeeper.errors import InvalidInput, WrongType
from talekeeper.ports import Store
from talekeeper.stores.in_memory import InMemoryStore
from talekeeper.stores.sqlite import SqliteStore


async def open_store(target: str | os.PathLike[str] | Store, *, durable: bool = True) -> Store:
    """The store for a file's path or ":memory:"; a store is returned as it is."""
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise WrongType(f'pass a file\'s path, ":memory:", or a store of your own, not {type(target).__name__}')
        return target
    if target == ":memory:":
        return InMemoryStore()
    scheme = re.match(r"(\w+)://", target) if isinstance(target, str) else None
    if scheme is not None:
        raise InvalidInput(f'there is no store for {scheme[0]!r} addresses: pass a file\'s path, ":memory:", or a store of your own')
    return await SqliteStore.open(target, durable=durable)


__all__ = ["InMemoryStore", "SqliteStore", "open_store"]
