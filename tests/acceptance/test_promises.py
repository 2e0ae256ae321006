"""The page of promises names tests that exist, and every acceptance test is on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "promises.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^In `(tests/acceptance/\w+\.py)`\.\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))


def named_tests(path: str) -> set[str]:
    return set(re.findall(r"def (test_\w+)", (HERE.parents[1] / path).read_text("utf-8")))


@pytest.mark.parametrize("path", sorted(SECTIONS))
def test_what_is_promised_is_tested(path: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", SECTIONS[path]))
    assert named
    assert named <= named_tests(path), "named on the page, and not there"
