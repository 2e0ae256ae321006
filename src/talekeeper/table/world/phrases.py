"""The words that belong to no pack: lines for every occasion, and the things that people have carried from one to another."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources


@functools.cache
def phrases() -> Mapping[str, tuple[str, ...]]:
    """The lines that belong to no pack, by the name of their pool."""
    raw = tomllib.loads((resources.files(__package__) / "phrases.toml").read_text("utf-8"))
    return {f"{group}.{name}": tuple(lines) for group, pools in raw.items() for name, lines in pools.items()}


def slug(name: str) -> str:
    """The plain id of a thing that came up in play; empty where nothing in the name can be one."""
    return re.sub(r"^(the|an?)_(?=.)", "", re.sub(r"\W+", "_", name.casefold()).strip("_"))


@functools.cache
def errand_things() -> Mapping[str, str]:
    """What people have carried from one to another: names by id."""
    return {slug(thing): thing for thing in phrases()["errand.things"]}
