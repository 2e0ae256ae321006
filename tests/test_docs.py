"""The documentation is true: its code runs, what it shows is what comes out, its links lead somewhere, and it names every public thing.

```python           runs, in the order of the page, in one namespace, in an empty directory; `await` may stand at the top level
```python no-run    does not run, but must be valid Python; for what needs a network
```text output      what the block before it printed; "…" stands for anything. With TALEKEEPER_REFRESH_DOCS=1 in the environment,
                    blocks that no longer fit and have no "…" are written anew instead
<!-- run -->        the console block that follows runs as well; lines below a command are what it prints
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import inspect
import io
import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

import talekeeper as tk
from talekeeper import memory

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
MOST_NOT_RUN = 4
RUN_MARK = "<!-- run -->"


class Fence(NamedTuple):
    """A fenced block: what stands behind the backticks, its text, the line it begins at, and the line of text before it."""

    info: str
    text: str
    line: int
    before: str


def fences(page: Path) -> list[Fence]:
    found: list[Fence] = []
    lines = page.read_text("utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        mark = re.fullmatch(r" *```(.*)", line)
        if mark and start is None:
            start = number
        elif mark and start is not None:
            before = next((text.strip() for text in reversed(lines[:start]) if text.strip()), "")
            text = textwrap.dedent("\n".join(lines[start + 1 : number]) + "\n")
            found.append(Fence(lines[start].strip().removeprefix("```").strip(), text, start + 2, before))
            start = None
    assert start is None, f"{page.name}: a block that begins at line {start} never ends"
    return found


def named(page: Path) -> str:
    return page.name


def compiled(fence: Fence, page: Path) -> CodeType:
    """The block as code whose tracebacks name the page and its line."""
    return compile("\n" * (fence.line - 1) + fence.text, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


async def run_python(code: CodeType, namespace: dict[str, Any]) -> str:
    """What the code printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = eval(code, namespace)
        if inspect.isawaitable(result):
            await result
    return out.getvalue()


def commands(fence: Fence) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it is shown to print."""
    for part in re.split(r"^\$ ", fence.text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command.partition("  #")[0], output


async def run_command(command: str) -> str:
    from talekeeper.cli import main

    name, *args = shlex.split(command)
    assert name == "talekeeper", f"only talekeeper can be run from the docs, not {name!r}"
    done = await asyncio.to_thread(CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke, main, args)
    assert done.exit_code == 0, f"$ {command}\n{done.output}"
    return done.output


def assert_shown(shown: str, printed: str, page: Path, line: int) -> None:
    """Trailing blanks and blank lines at the end do not count."""
    shown, printed = trimmed(shown), trimmed(printed)
    pattern = ".*".join(re.escape(piece) for piece in shown.split("…"))
    fits = re.fullmatch(pattern, printed, re.DOTALL) is not None
    if not fits and "…" not in shown and os.environ.get("TALEKEEPER_REFRESH_DOCS"):
        page.write_text(page.read_text("utf-8").replace(f"\n{shown}\n```", f"\n{printed}\n```"), "utf-8")
        return
    assert fits, f"{page.name}, line {line}, shows\n{shown}\nbut what came out is\n{printed}"


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page)], ids=named)
async def test_every_block_runs_and_prints_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for fence in fences(page):
        if fence.info == "python":
            printed = await run_python(compiled(fence, page), namespace)
        elif fence.info == "text output":
            assert_shown(fence.text, printed, page, fence.line)
        elif fence.info == "console" and fence.before == RUN_MARK:
            for command, output in commands(fence):
                came_out = await run_command(command)
                if output.strip():
                    assert_shown(output, came_out, page, fence.line)


def test_few_blocks_are_left_out_and_those_are_valid_python() -> None:
    python = [(page, fence) for page in PAGES for fence in fences(page) if fence.info.startswith("py")]
    assert {fence.info for _, fence in python} <= {"python", "python no-run"}
    left_out = [(page, fence) for page, fence in python if fence.info != "python"]
    assert len(left_out) <= MOST_NOT_RUN
    assert len(left_out) * 5 <= len(python)
    for page, fence in left_out:
        compiled(fence, page)


# -- links -------------------------------------------------------------------------------------------------------------


def without_code(page: Path) -> str:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.+?) *$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=named)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}, but {target.name} has no such heading"


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (DOCS / "index.md").read_text("utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


# -- invariants --------------------------------------------------------------------------------------------------------


def rows_of_invariants() -> list[list[str]]:
    lines = (DOCS / "invariants.md").read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| I\d+ ", line)]


def test_the_invariants_are_ten_and_name_files_that_exist() -> None:
    rows = rows_of_invariants()
    assert [row[0] for row in rows] == [f"I{number}" for number in range(1, 11)]
    for row in rows:
        for column, folder in ((2, ROOT / "src/talekeeper"), (3, ROOT / "tests")):
            for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", row[column]):
                assert (folder / name).exists(), f"{row[0]} names {name}, which is not in {folder.relative_to(ROOT)}"


# -- the reference -----------------------------------------------------------------------------------------------------

FACES: dict[str, type] = {"Keeper": tk.Keeper, "Story": tk.Story}


def entries() -> dict[str, str]:
    """The reference's entries by name, those of a keeper and a story by `Keeper.name`. An entry is a bullet: - **`name(…)`** …"""
    text = (DOCS / "reference.md").read_text("utf-8")
    found: dict[str, str] = {}
    heading = ""
    for part in re.split(r"^(?=#|- \*\*`)", text, flags=re.M):
        if part.startswith("#"):
            heading = part.splitlines()[0].strip("# `")
        entry = re.match(r"- \*\*`([\w.]+)", part)
        if entry:
            found[f"{heading}.{entry[1]}" if heading in FACES else entry[1]] = part
    return found


ENTRIES = entries()


def documented_call(entry: str) -> dict[str, tuple[bool, Any]] | None:
    """The parameters that an entry gives: whether each is keyword-only, and its default. None where the entry is no call."""
    call = re.match(r"- \*\*`[\w.]+(\(.*?\))`\*\*", entry, re.S)
    if call is None:
        return None
    function = ast.parse(f"def f{call[1]}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    defaults = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
    positional = {one.arg: (False, default and ast.unparse(default)) for one, default in zip(given.args, defaults, strict=True)}
    return positional | {
        one.arg: (True, default and ast.unparse(default)) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    }


def actual_call(call: Any) -> dict[str, tuple[bool, Any]]:
    found = {}
    for one in inspect.signature(call).parameters.values():
        if one.name != "self":
            plain = is_plain(one.default)
            default = None if one.default is one.empty else repr(one.default) if plain else ...
            found[one.name] = (one.kind is one.KEYWORD_ONLY, default)
    return found


def is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float) or (isinstance(value, tuple) and all(map(is_plain, value)))


def assert_spelled(name: str, call: Any) -> None:
    """The entry gives the call's parameters, in order, with their defaults as far as these are plain values."""
    documented, actual = documented_call(ENTRIES[name]), actual_call(call)
    assert documented is not None, f"the entry of {name} does not say how it is called"
    assert list(documented) == list(actual), f"the parameters of {name} are {inspect.signature(call)}"
    for parameter, (keyword_only, default) in actual.items():
        assert documented[parameter][0] == keyword_only, f"{parameter} of {name}"
        assert documented[parameter][1] == default or (default is ... and documented[parameter][1]), f"{parameter} of {name}: {default}"


def test_the_reference_has_every_public_name() -> None:
    assert set(tk.__all__) <= set(ENTRIES), sorted(set(tk.__all__) - set(ENTRIES))


MEMBERS = [(face, name) for face, kind in FACES.items() for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize(("face", "name"), MEMBERS)
def test_the_reference_has_every_member_of_keeper_and_story_as_it_is_called(face: str, name: str) -> None:
    internal = re.search(r"^Not for callers:.*", (DOCS / "reference.md").read_text("utf-8"), re.M)
    if face == "Keeper" and internal and f"`{name}`" in internal[0]:
        return
    assert f"{face}.{name}" in ENTRIES
    member = inspect.getattr_static(FACES[face], name)
    if inspect.isfunction(member):
        assert_spelled(f"{face}.{name}", member)


def test_the_reference_names_no_member_that_does_not_exist() -> None:
    for entry in ENTRIES:
        face, _, name = entry.partition(".")
        if face in FACES and name:
            assert hasattr(FACES[face], name) or name in ("counter", "clock"), entry


CALLS = ["MemoryBudget", "MemoryIsolation", "ConversationTurn", "DefaultShortTermMemory", "SessionMemories", "ShortTermMemoryConfig"]
CALLS += ["open", "MemoryKey", "Seat", "Draft", "RetryPolicy", "Note", "Part", "Heuristic", "Exact", "Janitor"]


@pytest.mark.parametrize("name", [*CALLS, "best_counter", "counter_for", "estimate_tokens", "to_json"])
def test_the_reference_spells_what_callers_make_and_call(name: str) -> None:
    assert_spelled(name, getattr(tk, name))


NOUNS = [name for name in tk.__all__ if hasattr(getattr(tk, name), "_fields") or dataclasses.is_dataclass(getattr(tk, name))]


@pytest.mark.parametrize("name", NOUNS)
def test_the_reference_names_every_field_of_a_noun(name: str) -> None:
    noun = getattr(tk, name)
    fields = noun._fields if hasattr(noun, "_fields") else [field.name for field in dataclasses.fields(noun)]
    for field in fields:
        assert re.search(rf"\b{field}\b", "".join(re.findall(r"`[^`]*`", ENTRIES[name]))), f"{name}.{field}"


@pytest.mark.parametrize("name", memory.__all__)
def test_the_reference_has_every_memory_of_a_story_as_it_is_called(name: str) -> None:
    assert name in ENTRIES
    value = getattr(memory, name)
    if inspect.isfunction(value) or (inspect.isclass(value) and documented_call(ENTRIES[name]) is not None):
        assert_spelled(name, value)
    for field in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
        assert re.search(rf"\b{field.name}\b", "".join(re.findall(r"`[^`]*`", ENTRIES[name]))), f"{name}.{field.name}"


FACES_OF_MEMORY = [
    (kind, name, member)
    for kind in (memory.MemoryManager, memory.MemoryService, tk.DefaultShortTermMemory)
    for name, member in vars(kind).items()
    if inspect.isfunction(member) and not name.startswith("_") and name != "let_go"
]


@pytest.mark.parametrize(("kind", "name", "member"), FACES_OF_MEMORY, ids=[f"{kind.__name__}.{name}" for kind, name, _ in FACES_OF_MEMORY])
def test_the_reference_spells_every_method_of_a_memory(kind: type, name: str, member: Any) -> None:
    call = re.search(rf"`{name}(\([^`]*\))`", ENTRIES[kind.__name__])
    assert call is not None, f"{kind.__name__}.{name} is not in the reference"
    ENTRIES[f"{kind.__name__}.{name}"] = f"- **`{name}{call[1]}`**"
    assert_spelled(f"{kind.__name__}.{name}", member)


def test_the_reference_names_every_state_of_health() -> None:
    for state in tk.HealthState:
        assert f"`{state.name}`" in ENTRIES["HealthState"]
