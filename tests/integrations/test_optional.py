"""Frameworks stay outside: the library never imports them by itself, and says what to install where one is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = {"langchain": "langchain_core", "pydantic_ai": "pydantic_ai", "penguiflow": "penguiflow"}


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_using_the_library_imports_no_framework() -> None:
    code = (
        "import sys, talekeeper as tk, talekeeper.integrations\n"
        "[getattr(tk, name) for name in tk.__all__]\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'langchain_core', 'penguiflow', 'pydantic_ai', 'pydantic', 'langsmith'}))"
    )
    done = run(code)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_a_missing_framework_is_named_with_the_extra_that_brings_it(module: str) -> None:
    done = run(f"import sys; sys.modules[{FRAMEWORKS[module]!r}] = None; import talekeeper.integrations.{module}")
    assert done.returncode == 1
    extra = module.replace("_", "-")
    assert done.stderr.rstrip().endswith(f"pip install 'talekeeper[{extra}]', or in a checkout pip install '.[{extra}]'")
