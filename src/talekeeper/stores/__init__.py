"""Where stories are kept. Every store honours the port `talekeeper.ports.Store` and passes `talekeeper.testing.stores.StoreContract`.

`in_memory` is for tests and throwaway stories, `sqlite` (the default) for one durable file; `refusals` are in the words of both.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TypeAlias

from talekeeper.errors import InvalidInput, WrongType, quoted, reason_of
from talekeeper.ports import Store
from talekeeper.stores.in_memory import InMemoryStore
from talekeeper.stores.sqlite import SqliteStore

Target: TypeAlias = "str | os.PathLike[str] | Store"
"""A file's path, ":memory:", or a store."""


def check_target(target: Target) -> Target:
    """The same target, if it can be one at all. Nothing is opened or made."""
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise WrongType(f'pass a file\'s path, ":memory:", or a store of your own, not {type(target).__name__}')
        return target
    scheme = re.match(r"(\w+)://", target) if isinstance(target, str) else None
    if scheme is not None:
        raise InvalidInput(f'there is no store for {quoted(scheme[0])} addresses: pass a file\'s path, ":memory:", or a store of your own')
    _check_path(os.fspath(target))
    return target


def _check_path(path: object) -> None:
    if not isinstance(path, str):
        raise WrongType(f"a file's path must be text, not {type(path).__name__}")
    if not path:
        raise InvalidInput('the path of the file is empty: name a file, or ":memory:"')
    try:
        os.stat(f"{path}-wal")  # the longest of the names that are needed
    except (OSError, ValueError) as exc:
        if isinstance(exc, ValueError) or exc.errno == errno.ENAMETOOLONG:  # a NUL byte, half a sign; else it may be that nothing is there
            raise InvalidInput(f"{quoted(path)} cannot be the path of a file: {reason_of(exc)}") from exc


async def open_store(target: Target, *, durable: bool = True) -> Store:
    """The store for a file's path or ":memory:"; a store is returned as it is."""
    checked = check_target(target)
    if checked == ":memory:":
        return InMemoryStore()
    return await SqliteStore.open(checked, durable=durable) if isinstance(checked, str | os.PathLike) else checked


__all__ = ["InMemoryStore", "SqliteStore", "check_target", "open_store"]
