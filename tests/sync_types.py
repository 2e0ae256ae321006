"""Writes `sync.pyi`: what a type checker knows of `talekeeper.sync`, read off the async faces. `python -m tests.sync_types` writes it anew.

Each face has the signatures of its async twin, with what one would wait for in the place of the waiting."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import talekeeper
from talekeeper import keeper, ports
from talekeeper.memory import MemoryManager, MemoryService

FACES: tuple[type, ...] = (
    talekeeper.Keeper, talekeeper.Story, talekeeper.Past, ports.Store, MemoryManager, MemoryService,
    talekeeper.DefaultShortTermMemory, talekeeper.SessionMemories,
)  # fmt: skip
CALLED = (MemoryManager, MemoryService, talekeeper.SessionMemories)
"""Faces that are made with `call`."""
RETURNED = (talekeeper.Keeper, talekeeper.Story, talekeeper.Past)
"""Those that a function may give."""
FILE = Path(talekeeper.__file__).with_name("sync.pyi")
WAITED = ("Awaitable", "AsyncIterator")
HEAD = '''"""What a type checker knows of `talekeeper.sync`. Written by `tests/sync_types.py`; change that, or the async faces."""
'''
CALL = """
@overload
def call(function: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T: ...
@overload
def call(function: Callable[..., AsyncIterator[_T]], *args: Any, **kwargs: Any) -> Iterator[_T]: ...
@overload
def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
"""


class Imports:
    """Where the names in annotations come from."""

    def __init__(self) -> None:
        self._wanted: dict[str, set[str]] = {}

    def take(self, annotation: str, module: str) -> None:
        """Sees to it that the annotation of that module can be read. Names of faces stand for those of the stub."""
        homes = names_of(module)
        for node in ast.walk(ast.parse(annotation, mode="eval")):
            if (
                isinstance(node, ast.Name)
                and node.id[0] != "_"
                and not hasattr(builtins, node.id)
                and node.id not in {kind.__name__ for kind in FACES}
            ):
                home = homes.get(node.id, module)
                self.add(home, None if home == node.id else node.id)

    def as_async(self, annotation: ast.expr) -> None:
        """Names of faces stand for the async ones."""
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                for kind in (kind for kind in FACES if kind.__name__ == node.id):
                    node.id = self.face(kind)

    def face(self, kind: type) -> str:
        """An async face, under another name than that of the stub."""
        self.add(kind.__module__, f"{kind.__name__} as _{kind.__name__}")
        return f"_{kind.__name__}"

    def add(self, home: str, name: str | None) -> None:
        self._wanted.setdefault(home, set()).update([name] if name is not None else [])

    def lines(self) -> Iterator[str]:
        for home, names in self._wanted.items():
            yield f"from {home} import {', '.join(sorted(names))}" if names else f"import {home}"


def names_of(module: str) -> dict[str, str]:
    """Where the names that a module imports come from, also those that only a type checker sees."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: node.module for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name: alias.name for alias in node.names}
    return found


def waited_for(annotation: str) -> str:
    """What there is once it has been waited for."""
    tree = ast.parse(annotation, mode="eval").body
    if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name) and tree.value.id in WAITED:
        inner = ast.unparse(tree.slice)
        return f"Iterator[{inner}]" if tree.value.id == "AsyncIterator" else inner
    return annotation


def declared(name: str, function: Any, imports: Imports, gives: str = "") -> str:
    """A function as a stub has it: what it takes, and what it gives in the end. `gives`: the face that it makes, of async ones."""
    (told,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(told, ast.FunctionDef | ast.AsyncFunctionDef)
    taken = [*told.args.posonlyargs, *told.args.args, *told.args.kwonlyargs]
    for annotation in (one.annotation for one in taken if one.annotation is not None):
        if gives:
            imports.as_async(annotation)
        imports.take(ast.unparse(annotation), function.__module__)
    if not gives:
        assert told.returns is not None
        gives = waited_for(ast.unparse(told.returns))
        imports.take(gives, function.__module__)
    told.args.defaults = [shown(default) for default in told.args.defaults]
    told.args.kw_defaults = [default and shown(default) for default in told.args.kw_defaults]
    fields = {field: getattr(told, field) for field in told._fields}
    body = [ast.Expr(ast.Constant(...))]
    stub = ast.FunctionDef(**fields | {"name": name, "body": body, "decorator_list": [], "returns": ast.parse(gives, mode="eval").body})
    return ast.unparse(ast.fix_missing_locations(stub))


def shown(default: ast.expr) -> ast.expr:
    """A default as it is, if it can be read without looking anything up."""
    try:
        ast.literal_eval(default)
    except ValueError:
        return ast.Constant(...)
    return default


def values_of(kind: type) -> dict[str, str]:
    """What its instances have beside methods, as `__init__` says."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind.__dict__["__init__"])))
    except (KeyError, TypeError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and not node.target.attr.startswith("_"):
            found[node.target.attr] = ast.unparse(node.annotation)
    return found


def members(kind: type) -> dict[str, Any]:
    """Its public methods and properties, as they are defined."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        found |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return {name: member for name, member in found.items() if isinstance(member, property) or inspect.isfunction(member)}


def face(kind: type, imports: Imports) -> str:
    """One face as a stub has it."""
    lines = [f"class {kind.__name__}:", f'    """As `{kind.__module__}.{kind.__name__}`; its methods wait for their result."""']
    for name, annotation in values_of(kind).items():
        imports.take(annotation, kind.__module__)
        lines.append(f"    {name}: {annotation}")
    for name, member in members(kind).items():
        if isinstance(member, property):
            lines.append("    @property")
            member = member.fget
        lines.append(textwrap.indent(declared(name, member, imports), "    "))
    if hasattr(kind, "__aenter__"):
        imports.add("types", "TracebackType")
        lines.append("    def __enter__(self) -> Self: ...")
        lines.append(
            "    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ..."
        )
    return "\n".join(lines)


def written() -> str:
    """The whole stub."""
    imports = Imports()
    for name in ("Any", "Self", "TypeVar", "overload"):
        imports.add("typing", name)
    for name in ("AsyncIterator", "Awaitable", "Callable", "Iterator"):
        imports.add("collections.abc", name)
    faces = [face(kind, imports) for kind in FACES]
    opened = declared("open", keeper.open, imports, "Keeper")
    memory = declared("memory", talekeeper.DefaultShortTermMemory.__init__, imports, "DefaultShortTermMemory").replace("self, ", "", 1)
    kinds: dict[str, type] = {f"type[{imports.face(kind)}]": kind for kind in CALLED}
    kinds |= {f"Callable[..., Awaitable[{imports.face(kind)}]]": kind for kind in RETURNED}
    calls = [f"@overload\ndef call(function: {made}, *args: Any, **kwargs: Any) -> {kind.__name__}: ..." for made, kind in kinds.items()]
    body = "\n\n".join([*faces, opened, memory, "\n".join(calls) + CALL])
    whole = "\n".join([HEAD, *imports.lines(), "", "__all__: list[str]", "_T = TypeVar('_T')", body])
    return tidied(whole)


def tidied(code: str) -> str:
    """As ruff sorts and formats it."""
    root = Path(__file__).parent.parent
    for step in (["check", "--fix-only", "--quiet", "--select=I,F401,UP"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *step, "--no-cache", f"--stdin-filename={FILE}", "-"]
        code = subprocess.run(command, input=code, capture_output=True, text=True, check=True, cwd=root).stdout
    return code


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
