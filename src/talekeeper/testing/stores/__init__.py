"""The contract of the port `Store`, as tests that any backend can run. For a store of your own:

    from talekeeper.testing.stores import StoreContract

    class TestMyStore(StoreContract):
        async def open_store(self, place):
            return await MyStore.open(place)

`place` is a fixture, a fresh path by default; override it if your store lives elsewhere. Opening the same place again must find what was
written there (else say `durable = False`), and two stores may have it open at once (else say `shared = False`).
The tests are coroutines: run them with pytest-asyncio (`asyncio_mode = auto`), or mark your class for anyio's plugin.

Each kind of promise has a module of its own here; `opening` opens the store, and `samples` has what the tests write into it.
"""

from __future__ import annotations

from talekeeper.testing.stores.appending import Appending
from talekeeper.testing.stores.branches import Branches
from talekeeper.testing.stores.conflicts import Conflicts
from talekeeper.testing.stores.derived import Derived
from talekeeper.testing.stores.durability import Durability
from talekeeper.testing.stores.erasing import Erasing
from talekeeper.testing.stores.reading import Reading
from talekeeper.testing.stores.searching import Searching
from talekeeper.testing.stores.stories import Stories


# Pytest begins with the last of them: the simplest rules, without which no other can hold.
class StoreContract(Durability, Erasing, Searching, Derived, Reading, Branches, Conflicts, Appending, Stories):
    """Subclass it, say how to open your store, and pytest does the rest. See the module."""
