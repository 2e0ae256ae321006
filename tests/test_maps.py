"""A newcomer finds the room: every module is on a map, with what it is for."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import talekeeper

HOUSE = Path(talekeeper.__file__).parent
MAPPED = (
    *("bench", "cli", "formats", "integrations", "memory", "server", "stores", "stores.sqlite", "summarize", "table"),
    *("context", "folds", "live", "memory.session", "recall", "server.routes", "story"),
    *(f"table.{room.parent.name}" for room in sorted((HOUSE / "table").glob("*/__init__.py"))),
)
"""The packages whose docstring is a map of them."""
OF_THE_WHOLE = {"acceptance", "properties", "web", "test_docs", "test_maps", "test_public_api"}
"""Tests of no module alone: of what was asked for, of the invariants, of the page in a browser, of the docs and the house."""


def rooms(package: Path) -> set[str]:
    """The modules and packages in a package."""
    inside = [one for one in package.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()]
    return {one.stem for one in inside} - {"__init__", "__main__"}


def test_the_table_of_the_house_has_every_module_once_and_says_what_each_is_for() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+) \|$", (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    named = [re.findall(r"\w+", names) for names, _ in rows]
    assert sorted(name for names in named for name in names) == sorted(rooms(HOUSE))
    for names, (_, told) in zip(named, rows, strict=True):
        assert len(names) == 1 or len(told.split(";")) == len(names), f"a phrase for each of {names}"


@pytest.mark.parametrize("package", MAPPED)
def test_the_map_of_a_package_has_every_module(package: str) -> None:
    drawn = importlib.import_module(f"talekeeper.{package}").__doc__ or ""
    missing = {room for room in rooms(HOUSE / package.replace(".", "/")) if not re.search(rf"\b{room}\b", drawn)}
    assert not missing


def test_tests_lie_where_the_code_does_that_they_are_of() -> None:
    here = Path(__file__).parent
    tests = {*(folder.name for folder in here.iterdir() if any(folder.glob("test_*.py"))), *(file.stem for file in here.glob("test_*.py"))}
    assert tests - OF_THE_WHOLE <= {*rooms(HOUSE), *(f"test_{room}" for room in rooms(HOUSE) if (HOUSE / f"{room}.py").exists())}
