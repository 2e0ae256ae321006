"""The real small model, got by the same call as `talekeeper models get smollm2`, once and kept in the user's cache; and a place to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from talekeeper.table.cast import shelf


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Where the model is. pip gets it in a process of its own; where it cannot, every test that needs it fails and says why."""
    return shelf.get("smollm2")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, and an environment without keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "TALEKEEPER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
