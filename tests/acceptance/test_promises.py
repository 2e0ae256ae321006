"""The page of promises names tests that exist, and has a part for every file of acceptance tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "promises.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^In `(tests/acceptance/\w+\.py)`\.\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


TESTS = {name for path in HERE.parent.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))}


@pytest.mark.parametrize("path", sorted(SECTIONS))
def test_what_is_promised_is_tested(path: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", SECTIONS[path]))
    assert named
    assert named <= TESTS, "named on the page, and not there"


@pytest.mark.parametrize("path", sorted(path for path in SECTIONS if path.startswith("tests/acceptance/")))
def test_what_is_tested_is_promised(path: str) -> None:
    tests = set(re.findall(r"^(?:async )?def (test_\w+)", (HERE / Path(path).name).read_text("utf-8"), re.M))
    assert tests <= set(re.findall(r"`(test_\w+)`", SECTIONS[path])), "there, and not named on the page"


def test_every_acceptance_test_file_is_on_the_page() -> None:
    files = {f"tests/acceptance/{path.name}" for path in HERE.glob("test_*.py")}
    assert files - set(SECTIONS) == {"tests/acceptance/test_promises.py"}
