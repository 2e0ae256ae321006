"""A Talekeeper file: how it is opened, how we know that it is ours, and what SQLite's errors mean to the caller.

The file is never opened by other means than SQLite: closing any descriptor of it would drop the locks that this process holds on it.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from json import JSONDecodeError
from pathlib import Path
from typing import TypeVar

from talekeeper.errors import InvalidInput, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, WrongStore

APPLICATION_ID = 0x54414C45  # "TALE"
_LOG_LIMIT = 64 << 20
_CACHE_KIB = 8 << 10

T = TypeVar("T")


def _load() -> dict[str, str]:
    text = resources.files(__package__).joinpath("sqlite.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {name: script.strip() for name, script in zip(parts[1::2], parts[2::2], strict=True)}


SQL = _load()
"""The statements of `sqlite.sql`, by name."""

MIGRATIONS = [script for name, script in SQL.items() if name.startswith("migration_")]
"""What brings a file from version 0, 1, 2 … to the next. Only ever appended to."""


def many_rows(insert: str, count: int) -> str:
    """An insertion of one row as an insertion of so many."""
    head, row = insert.rstrip(";").split("VALUES")
    return f"{head}VALUES {', '.join([row] * count)}"


def statements(script: str) -> Iterator[str]:
    """The single statements of a script, since `executescript` would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file that was found to be ours and up to date; connections to it come from here."""

    path: Path
    durable: bool
    busy_timeout: float
    access: str = "mode=rw"
    for_reading: bool = False
    """Whether it was opened for reading by wish, and not because it cannot be written."""

    @property
    def read_only(self) -> bool:
        return self.access != "mode=rw"

    def connect(self, busy_timeout: float | None = None) -> sqlite3.Connection:
        """A connection in autocommit mode that any thread may use, one at a time. While it is made, others are waited for in any case."""
        db = connect(self.path, self.access, self.busy_timeout)
        db.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT}")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if busy_timeout is not None:
            db.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
        return db

    def refusal(self) -> StoreReadOnly:
        """What someone is told who would write to a file that was opened for reading."""
        by_wish = f"{str(self.path)!r} was opened for reading: open it for writing, then retry"
        return StoreReadOnly(by_wish if self.for_reading else unwritable(self.path))

    def error(self, exc: Exception) -> Exception:
        """What the caller gets to see for an error of SQLite or of its driver."""
        return translate(exc, self.path)


def open_file(path: Path, *, durable: bool, busy_timeout: float, read_only: bool) -> StoreFile:
    """The file, made if need be, checked and brought up to date."""
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a directory: name a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"there is no directory {str(path.parent)!r}: create it first")
    if read_only and not path.exists():
        raise StoreError(f"there is no store at {str(path)!r} that could be read: open it for writing once, or check the path")
    if not read_only and path.exists():
        _free_sidecars(path)
    last: sqlite3.Error | None = None
    for access in ways_in(path, read_only):
        file = StoreFile(path, durable, busy_timeout, access, read_only)
        try:
            _prepare(file)
        except sqlite3.Error as exc:
            if not is_barred(exc):
                raise translate(exc, path) from exc
            last = exc
        except UnicodeDecodeError as exc:  # SQLite quotes what it cannot understand, and that is no text
            raise translate(exc, path) from exc
        else:
            return file
    assert last is not None
    raise translate(last, path) from last


def ways_in(path: Path, read_only: bool) -> Iterator[str]:
    """How to open a file, best first: for writing, for reading, and as a file that nobody can write beside us.

    The last is for a read-only disk, where the log and its index cannot be made; it would not see what is still in a log."""
    if not read_only and (_writable(path) or not path.exists()):
        yield "mode=rw"
    if path.exists():
        yield "mode=ro"
        log = Path(f"{path}-wal")
        if not log.exists() or not log.stat().st_size:
            yield "mode=ro&immutable=1"


def _sidecars(path: Path) -> list[Path]:
    """The log and its index, as far as they are there."""
    return [beside for beside in (Path(f"{path}-wal"), Path(f"{path}-shm")) if beside.is_file() and not beside.is_symlink()]


def _free_sidecars(path: Path) -> None:
    """Lets those write the log and its index who may write the file. SQLite makes them with the file's mode; whoever only looked at it
    while it could not be written leaves them behind, and it could not be written for ever. (To remove them may hurt who uses them.)"""
    mode = stat.S_IMODE(path.stat().st_mode)
    for beside in _sidecars(path):
        with suppress(OSError):  # somebody else's: what is written will tell
            if mode & ~beside.stat().st_mode & 0o222:
                beside.chmod(mode)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def unwritable(path: Path) -> str:
    """Why a file cannot be written, and what to do: it may be its disk, or its log or index, that is in the way."""
    with suppress(OSError):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return f"{str(path)!r} is on a read-only disk: copy it to one that can be written"
    barred = [repr(str(beside)) for beside in _sidecars(path) if _writable(path) and not _writable(beside)]
    if not barred:
        return f"{str(path)!r} may be read but not written: check its permissions"
    return f"{str(path)!r} cannot be written since {' and '.join(barred)} beside it may not be: make that writable, too"


def connect(path: Path, access: str, busy_timeout: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{access}"
    return sqlite3.connect(uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=256)


def _prepare(file: StoreFile) -> None:
    """Makes sure that the file is ours and of this version; makes it so where it is empty or older."""
    db = connect(file.path, file.access if file.read_only else "mode=rwc", file.busy_timeout)
    try:
        with transaction(db, "BEGIN"):  # somebody else may be making it right now: it is all there, or nothing of it is
            version = _version(db, file.path)
        if version == len(MIGRATIONS):
            if not file.read_only:
                _use_log(db, file)
            return
        if file.read_only:
            found = f"is of version {version}, older than this program's {len(MIGRATIONS)}" if version else "is empty"
            raise StoreReadOnly(f"{str(file.path)!r} {found}: open it for writing once")
        _use_log(db, file)
        with transaction(db):
            for script in MIGRATIONS[_version(db, file.path) :]:
                for statement in statements(script):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    finally:
        db.close()


def _version(db: sqlite3.Connection, path: Path) -> int:
    """The version of a file of ours, 0 for an empty one. To be asked in a transaction, since three answers must be of one state."""
    try:
        ((application,), (version,)) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as exc:
        if _code(exc) == sqlite3.SQLITE_NOTADB:
            raise WrongStore(
                f"{str(path)!r} is not a Talekeeper store, nor any SQLite file: choose another path, or restore a backup of it"
            ) from exc
        raise
    if application == APPLICATION_ID:
        if version > len(MIGRATIONS):
            raise WrongStore(f"{str(path)!r} was made by a newer Talekeeper (file version {version}, known: {len(MIGRATIONS)}): upgrade")
        return int(version)
    if application or tables:
        raise WrongStore(f"{str(path)!r} is the SQLite file of another program: choose another path")
    return 0


def _use_log(db: sqlite3.Connection, file: StoreFile) -> None:
    """Turns on the write-ahead log."""
    (mode,) = patiently(file.busy_timeout, lambda: db.execute("PRAGMA journal_mode = WAL").fetchone())
    if mode != "wal":
        raise StoreError(f"{str(file.path)!r} is on a file system that cannot keep a write-ahead log: choose a local disk")


def patiently(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns, tried again while the file is locked. For where SQLite itself does not wait, or must not.

    Pauses stay short, however long it takes: who waited longest would else be the last to notice that the file is free."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        try:
            return work()
        except sqlite3.OperationalError as exc:
            if not is_busy(exc) or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = random.uniform(0.001, 0.004)


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All or nothing. `begin="BEGIN"` is for reading from one state."""
    db.execute(begin)
    with finishing(db):
        yield


@contextmanager
def finishing(db: sqlite3.Connection) -> Iterator[None]:
    """Ends the transaction that was begun: with a commit, or on any error with a rollback."""
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def is_busy(exc: Exception) -> bool:
    return _code(exc) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_barred(exc: Exception) -> bool:
    """Whether the file cannot be opened in that way, and may be in another."""
    return _code(exc) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _code(exc: Exception) -> int:
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF


_MEANINGS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "is locked by another process: retry later"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked: retry later"),
    sqlite3.SQLITE_FULL: (StoreFull, "has no room left: free some space, then retry"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "is damaged: restore a backup"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "is damaged: restore a backup"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "cannot be opened: check its permissions and those of its directory"),
}


_MISFIT = re.compile("^unsupported file format|^(table|index) .* already exists|^no such (table|column)|^duplicate column")
"""What SQLite says where a file of ours does not have the tables that its version has."""


def translate(exc: Exception, path: Path) -> Exception:
    """What the caller gets to see for an error of SQLite or of its driver; what is neither stays as it is."""
    name, code = repr(str(path)), _code(exc)
    if code == sqlite3.SQLITE_READONLY:
        return StoreReadOnly(f"{unwritable(path)} ({exc})")
    if code in _MEANINGS:
        kind, advice = _MEANINGS[code]
        return kind(f"{name} {advice} ({exc})")
    if code == sqlite3.SQLITE_IOERR and _no_room(path):
        return StoreFull(f"{name} has no room left: free some space, then retry ({exc})")
    if isinstance(exc, UnicodeDecodeError):
        return StoreCorrupt(f"{name} is damaged: a name in it is no UTF-8; restore a backup")
    if isinstance(exc, UnicodeError | OverflowError | TypeError | sqlite3.InterfaceError | sqlite3.ProgrammingError):
        return InvalidInput(f"a value cannot be stored: {exc}")
    if isinstance(exc, sqlite3.OperationalError) and str(exc).startswith("Could not decode"):  # and then it quotes the story
        return StoreCorrupt(f"{name} is damaged: a text in it is no UTF-8; run `talekeeper doctor`, restore a backup")
    if isinstance(exc, sqlite3.OperationalError) and _MISFIT.search(str(exc)):
        return StoreCorrupt(f"{name} is damaged: its header does not fit what is in it; restore a backup ({exc})")
    if isinstance(exc, JSONDecodeError):
        return StoreCorrupt(f"{name} is damaged: a value in it is no JSON; run `talekeeper doctor`, restore a backup")
    if isinstance(exc, sqlite3.Error):
        return StoreError(f"{name}: {exc}")
    return exc


def _no_room(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 1 << 20
