"""Results kept for a while, by the texts they were made from: the same lines come back in every context, the same sentences in folds.

They belong to the process and not to a story, so nobody knows whose they are; whoever forgets a text lets go of all of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

T = TypeVar("T")
Table = TypeVar("Table", bound=dict[Any, Any])

_caches: weakref.WeakSet[_lru_cache_wrapper[object]] = weakref.WeakSet()
_tables: list[dict[Any, Any]] = []


def kept(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Keeps the newest `size` results of a function of texts, until `let_go`."""

    def keep(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(size)(function)
        _caches.add(cached)
        return cached

    return keep


def kept_table(table: Table) -> Table:
    """The same table; whoever looks words up in it as they come, and keeps it for good, has it emptied by `let_go`."""
    _tables.append(table)
    return table


def let_go() -> None:
    """Keeps nothing of what was kept so far."""
    for cache in list(_caches):
        cache.cache_clear()
    for table in _tables:
        table.clear()
