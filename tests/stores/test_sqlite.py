"""What only the SQLite store promises: about its file, its threads, its erasures, and what goes wrong outside of it."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import talekeeper as tk
from talekeeper.doctor import examine_file
from talekeeper.errors import (
    Conflict,
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    TalekeeperError,
    UnknownBranch,
    UnknownStory,
    WrongStore,
)  # fmt: skip
from talekeeper.model import MemoryKey
from talekeeper.ports import Branch, Commit, Erase, Position, Read, Snapshot, Span, Store, StoryRecord
from talekeeper.stores import open_store
from talekeeper.stores.in_memory import InMemoryStore
from talekeeper.stores.sqlite import SqliteStore, file, upkeep, writer
from talekeeper.stores.sqlite import store as sqlite_store
from talekeeper.stores.sqlite.ledger import Ledger
from talekeeper.testing.stores.samples import KEY, entry, everything, fold, gathered, gathered_over, hits, log, text_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "saga.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path)
    yield store
    await store.close()


async def test_an_opening_that_is_cancelled_leaves_nothing_open(path: Path) -> None:
    opening = asyncio.create_task(SqliteStore.open(path))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not path.with_name(f"{path.name}-wal").exists(), "closed again"


def raw(path: Path, statement: str, *values: Any) -> list[Any]:
    """What SQLite itself says."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return db.execute(statement, values).fetchall()


async def made(path: Path, turns: int = 3) -> StoryRecord:
    """A file with a story of a few turns, closed again."""
    store = await SqliteStore.open(path)
    story = await store.create(KEY, {})
    await store.write(Commit(story.id, story.rev, entries=[entry(seq) for seq in range(1, turns + 1)]))
    await store.close()
    return story


def child(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A Python process that runs a script; what it prints can be read."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen([*options.pop("before", []), *command], stdout=subprocess.PIPE, text=True, **options)


PRELUDE = """
import asyncio, sys
from pathlib import Path
from talekeeper.errors import *
from talekeeper.ports import *
from talekeeper.stores.sqlite import SqliteStore
from talekeeper.testing.stores.samples import KEY, entry, log
"""


# -- the file ----------------------------------------------------------------------------------------------------------------


async def test_the_file_says_whose_it_is(path: Path) -> None:
    await made(path)
    assert raw(path, "PRAGMA application_id") == [(file.APPLICATION_ID,)]
    assert raw(path, "PRAGMA user_version") == [(len(file.MIGRATIONS),)]
    assert raw(path, "PRAGMA journal_mode") == [("wal",)]
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_closed_store_leaves_one_file(path: Path) -> None:
    await made(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["with space.db", "what?mode=ro#x%20.db", "龍🐉.db", "a'b\"c.db", "no-suffix"])
async def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    story = await made(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    store = await SqliteStore.open(str(tmp_path / name))
    assert await store.load(KEY) == story
    await store.close()


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    await made(path)


async def test_a_relative_path_stays_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    await made(Path("here.db"))
    assert (path.parent / "here.db").exists()


async def test_a_newer_file_is_refused(path: Path) -> None:
    await made(path)
    raw(path, f"PRAGMA user_version = {len(file.MIGRATIONS) + 1}")
    with pytest.raises(WrongStore, match=r"newer Talekeeper.*upgrade"):
        await SqliteStore.open(path)


@pytest.mark.parametrize("statement", ["CREATE TABLE theirs (x)", "PRAGMA application_id = 7"])
async def test_the_file_of_another_program_is_refused_and_untouched(path: Path, statement: str) -> None:
    raw(path, statement)
    before = path.read_bytes()
    with pytest.raises(WrongStore, match="another program"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


async def test_a_file_that_someone_else_is_just_making_is_not_judged_half_made(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, others = file.connect, list[threading.Thread]()

    def make() -> None:
        file.open_file(path, durable=True, busy_timeout=20, read_only=False)

    class Looking(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if "sqlite_master" in statement and not others:  # half of the questions are answered
                others.append(threading.Thread(target=make))
                others[0].start()
                others[0].join(0.5)
            return super().execute(statement, *values)

    def looking(path: Path, access: str, busy_timeout: float) -> sqlite3.Connection:
        if others:
            return connect(path, access, busy_timeout)
        uri = f"{path.as_uri()}?{access}"
        return sqlite3.connect(uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False, factory=Looking)

    monkeypatch.setattr(file, "connect", looking)
    await made(path)
    others[0].join(20)
    assert raw(path, "PRAGMA application_id") == [(file.APPLICATION_ID,)]


@pytest.mark.parametrize("content", [b"Once upon a time", b"\0" * 5000, os.urandom(9000), b"SQLite format 4\0" + b"x" * 4096])
async def test_a_file_that_is_no_database_is_refused_and_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(WrongStore, match="not a Talekeeper store"):
        await SqliteStore.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("at", "value"), [(47, 255), (63, 0), (63, 1)], ids=["format", "no version", "an older version"])
async def test_a_damaged_header_says_what_to_do(path: Path, at: int, value: int) -> None:
    await made(path)
    content = bytearray(path.read_bytes())
    content[at] = value
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="is damaged: its header does not fit what is in it; restore a backup"):
        await SqliteStore.open(path)


async def test_upkeep_that_fails_says_why(path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> bool:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(upkeep.Upkeep, "_truncate", fail)
    await made(path)
    assert "upkeep failed: disk I/O error" in caplog.messages


async def test_a_directory_or_a_missing_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a directory"):
        await SqliteStore.open(tmp_path)
    with pytest.raises(StoreError, match="there is no directory"):
        await SqliteStore.open(tmp_path / "no" / "such.db")
    with pytest.raises(StoreError, match="there is no store"):
        await SqliteStore.open(tmp_path / "none.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


async def test_damage_to_the_schema_is_found_when_opening(path: Path) -> None:
    await made(path)
    data = bytearray(path.read_bytes())
    data[100:4000] = b"\xee" * 3900
    path.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="damaged"):
        await SqliteStore.open(path)


async def test_a_schema_that_is_no_text_any_more_is_found_when_opening_and_by_the_doctor(path: Path) -> None:
    await made(path)
    path.write_bytes(path.read_bytes().replace(b"AUTOINCREMENT", b"AUT\x97INCREMENT"[:13], 1))
    with pytest.raises(StoreCorrupt, match="is damaged: .* restore a backup"):
        await SqliteStore.open(path)
    assert [(finding.code, finding.severity) for finding in examine_file(path)] == [("file", "error")]


async def test_damage_to_a_text_is_found_when_reading_and_the_text_is_not_told(path: Path) -> None:
    story = await made(path, turns=20)
    with sqlite3.connect(path) as db:
        for table in ("turns", "arrivals"):
            db.execute(f"UPDATE {table} SET text = CAST(x'5365637265743aff' AS TEXT)")
    db.close()
    store = await SqliteStore.open(path)
    with pytest.raises(StoreCorrupt, match="is damaged: .* run `talekeeper doctor`, restore a backup") as raised:
        await log(store, story)
    assert "Secret" not in str(raised.value)
    await store.close()


async def everything_of(store: Store, story: StoryRecord) -> None:
    await store.load(story.key)
    await store.read(Read(story.id, spans=[Span(1, 1, 21)], all_folds=True, snapshot_on=[Span(1, 1, 21)]))


@pytest.mark.parametrize("value", ["Secret:", "5", '"Secret"', "null", "true"])
@pytest.mark.parametrize(
    ("table", "column"),
    [("stories", "config"), ("stories", "health"), ("channels", "hearers"), ("turns", "extra"), ("folds", "shape"),
     ("folds", "sentences"), ("texts", "sentences"), ("snapshots", "state")],
)  # fmt: skip
async def test_damage_to_a_value_is_found_when_reading_and_the_value_is_not_told(path: Path, table: str, column: str, value: str) -> None:
    story = await made(path, turns=20)
    store = await SqliteStore.open(path)
    snapshot, extra = Snapshot(1, 20, {"a": 1}), {"when": "day 3"}
    await store.write(
        Commit(
            story.id, story.rev, [entry(21, extra=extra)], folds=[fold("a")], texts=[text_of("a")], snapshot=snapshot,
            channels={7: ("dm",)}, health={"state": "healthy"},
        )
    )  # fmt: skip
    await store.close()
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
    db.close()
    store = await SqliteStore.open(path)
    with pytest.raises(StoreCorrupt, match="is damaged: .* run `talekeeper doctor`, restore a backup") as raised:
        await everything_of(store, story)
    assert "Secret" not in str(raised.value)
    await store.close()


async def test_damage_to_a_value_is_found_when_writing(path: Path) -> None:
    story = await made(path, turns=20)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE turns SET extra = 'Secret:'")
    db.close()
    store = await SqliteStore.open(path)
    with pytest.raises(StoreCorrupt, match="no JSON"):
        await store.write(Commit(story.id, story.rev, touch=True, erase=Erase(entries=[entry(5)])))
    await store.close()


async def test_damage_to_the_log_is_found_when_reading(path: Path) -> None:
    story = await made(path, turns=2000)
    data = bytearray(path.read_bytes())
    for page in range(len(data) // 4096 // 2, len(data) // 4096):
        data[page * 4096 : (page + 1) * 4096] = b"\xee" * 4096
    path.write_bytes(data)
    store = await SqliteStore.open(path)
    with pytest.raises(StoreCorrupt, match="damaged"):
        await log(store, story)
    with pytest.raises(StoreCorrupt, match="damaged"):
        await store.read(Read(story.id, positions=[Position(1, seq) for seq in range(1900, 2000)]))
    await store.close()


async def test_open_store_knows_paths_memory_and_stores(path: Path) -> None:
    store = await open_store(path)
    assert isinstance(store, SqliteStore)
    assert await open_store(store) is store
    await store.close()
    memory = await open_store(":memory:")
    assert isinstance(memory, InMemoryStore)
    await memory.close()
    with pytest.raises(InvalidInput, match="postgresql://"):
        await open_store("postgresql://localhost/saga")


# -- migrations --------------------------------------------------------------------------------------------------------------


async def test_an_older_file_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = await made(path)
    newer = [*file.MIGRATIONS, "ALTER TABLE stories ADD COLUMN mood TEXT;\nUPDATE stories SET mood = 'calm; as ever';"]
    monkeypatch.setattr(file, "MIGRATIONS", newer)
    with pytest.raises(StoreReadOnly, match="older"):
        await SqliteStore.open(path, read_only=True)
    for _ in range(2):
        store = await SqliteStore.open(path)
        assert len(await log(store, story)) == 3
        await store.close()
    assert raw(path, "SELECT mood FROM stories") == [("calm; as ever",)]
    assert raw(path, "PRAGMA user_version") == [(len(newer),)]
    monkeypatch.setattr(file, "MIGRATIONS", newer[:-1])
    with pytest.raises(WrongStore, match="newer"):
        await SqliteStore.open(path)


OLD_ROWS = """
INSERT INTO stories (id, tenant, user, session, config) VALUES (1, 'acme', 'ana', 'ash-crown', '{}');
INSERT INTO branches (story, id, name, parent, at) VALUES (1, 1, 'main', NULL, 0);
INSERT INTO channels (story, id, hearers) VALUES (1, 1, '["dm"]');
INSERT INTO turns (pos, channel, kind, speaker, voice, tokens, counter, time, text)
    VALUES (1 << 42 | (1 << 24) | 1, 1, 'said', 'dm', 'DM', 5, 'none', 0.5, 'In its place.');
INSERT INTO arrivals (pos, channel, kind, speaker, voice, tokens, counter, time, text)
    VALUES (1 << 42 | (1 << 24) | 2, 1, 'said', 'dm', 'DM', 5, 'none', 0.5, 'On its way.');
INSERT INTO folds (story, key, shape, sentences) VALUES (1, 'f1', '{"a":1}', '[]'), (1, '00000003f0', '{"a":2}', '[["They parted."]]');
"""
"""What a file of any version before the third may hold."""
NEWER_ROWS = OLD_ROWS.replace("INTO arrivals (", "INTO crowds (number) VALUES (1);\nINSERT INTO arrivals (number, ").replace(
    "VALUES (1 << 42 | (1 << 24) | 2,", "VALUES ((1 << 39) | (1 << 18) | 1, 1 << 42 | (1 << 24) | 2,"
)
"""The same from the third on."""


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_file_of_an_older_version_opens_with_all_that_is_in_it(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for script in (*file.MIGRATIONS[:version], OLD_ROWS if version < 3 else NEWER_ROWS):
            db.executescript(script)
        db.execute(f"PRAGMA application_id = {file.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {version}")
    store = await SqliteStore.open(path)
    story = await store.load(MemoryKey("acme", "ana", "ash-crown"))
    assert story is not None
    assert [each.text for each in await log(store, story)] == ["In its place.", "On its way."]
    assert (await store.head(story.id, 1)).seq == 2
    found = await store.read(Read(story.id, folds=["f1", "nowhere", "00000003f0"]))
    assert {each.key: (each.shape, each.sentences) for each in found.folds} == {
        "f1": ({"a": 1}, []),
        "00000003f0": ({"a": 2}, [["They parted."]]),
    }
    await store.write(Commit(story.id, story.rev, entries=[entry(3)], gathered=[gathered("f1"), gathered("nowhere")]))
    assert await gathered_over(store, story) == [gathered("f1")]
    await store.close()
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]
    assert raw(path, "PRAGMA user_version") == [(len(file.MIGRATIONS),)]


async def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = await made(path)
    known = file.MIGRATIONS
    monkeypatch.setattr(file, "MIGRATIONS", [*known, "CREATE TABLE half (x);", "ALTER TABLE nowhere ADD COLUMN x;"])
    with pytest.raises(StoreError, match="nowhere"):
        await SqliteStore.open(path)
    monkeypatch.setattr(file, "MIGRATIONS", known)
    assert raw(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]
    store = await SqliteStore.open(path)
    assert len(await log(store, story)) == 3
    await store.close()


# -- reading only ------------------------------------------------------------------------------------------------------------


async def refuses_writes(store: SqliteStore, story: StoryRecord, advice: str) -> None:
    with pytest.raises(StoreReadOnly, match=advice):
        await store.write(Commit(story.id, story.rev, entries=[entry(4)]))
    with pytest.raises(StoreReadOnly, match=advice):
        await store.create(MemoryKey("a", "b", "c"), {})
    with pytest.raises(StoreReadOnly, match=advice):
        await store.delete(KEY)
    assert await log(store, story) == [entry(1), entry(2), entry(3)]
    assert await store.create(KEY, {}) == story


async def test_a_store_opened_for_reading_refuses_writes(path: Path) -> None:
    story = await made(path)
    store = await SqliteStore.open(path, read_only=True)
    assert store.read_only
    await refuses_writes(store, story, "was opened for reading: open it for writing")
    await store.close()


async def test_on_a_slow_disk_commits_of_any_kind_leave_the_event_loops_thread_until_it_is_quick_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = await store.create(KEY, {})
    flush, here, slow = Ledger.flush, [0], True

    def slowly(ledger: Ledger) -> None:
        here[0] += threading.current_thread() is threading.main_thread()
        time.sleep(2 * writer.LONG_SECONDS if slow else 0)
        flush(ledger)

    monkeypatch.setattr(Ledger, "flush", slowly)
    for seq in range(1, 31):
        await store.write(Commit(story.id, story.rev, entries=[entry(seq, id=f"own {seq}")]))
        await asyncio.sleep(0)
    assert 0 < here[0] < 15
    slow, here[0] = False, 0
    while not here[0]:
        seq += 1
        await store.write(Commit(story.id, story.rev, entries=[entry(seq, id=f"own {seq}")]))
        await asyncio.sleep(0)


async def test_a_reader_sees_what_a_writer_writes(store: SqliteStore, path: Path) -> None:
    story = await store.create(KEY, {})
    reader = await SqliteStore.open(path, read_only=True)
    await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
    assert (await reader.head(story.id, 1)).seq == 1
    await reader.close()


async def test_an_empty_file_cannot_be_read(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreReadOnly, match="is empty"):
        await SqliteStore.open(path, read_only=True)


def in_own_mounts(script: str, *mounts: str) -> list[str]:
    """What a script prints that runs behind mounts of its own, which vanish with it."""
    before = ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]
    try:
        subprocess.run([*before, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        pytest.skip(f"mounting is not allowed here: {exc}")
    process = child(script, before=before)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output.splitlines()


@pytest.mark.parametrize("left_open", [False, True])
async def test_a_read_only_disk_is_read(path: Path, left_open: bool) -> None:
    story = await made(path)
    store = await SqliteStore.open(path)
    if left_open:
        await store.write(Commit(story.id, story.rev, entries=[entry(4)]))
    else:
        await store.close()
    script = f"""{PRELUDE}
async def main():
    for read_only in (False, True):
        store = await SqliteStore.open({str(path)!r}, read_only=read_only)
        story = await store.load(KEY)
        print(len(await log(store, story)), (await store.head(story.id, 1)).seq)
        try:
            await store.write(Commit(story.id, story.rev, entries=[entry(9)]))
        except StoreReadOnly as exc:
            print("copy it to one that can be written" in str(exc), "open it for writing" in str(exc))
        await store.close()
    try:
        await SqliteStore.open({str(path.parent / "new.db")!r})
    except StoreError as exc:
        print(type(exc).__name__)
asyncio.run(main())
"""
    turns = "4 4" if left_open else "3 3"
    mounts = [f"mount --bind {path.parent} {path.parent}", f"mount -o remount,ro,bind {path.parent}"]
    assert in_own_mounts(script, *mounts) == [turns, "True False", turns, "False True", "StoreError"]
    await store.close()


@contextmanager
def unprivileged() -> Iterator[None]:
    """As somebody who may not write whatever there is: root may, and is nobody in particular meanwhile."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o777, 0o555])
async def test_a_file_that_may_not_be_written_is_read(mode: int) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:  # nobody may look into a test's own
        path = Path(directory) / "story.db"
        story = await made(path)
        path.chmod(0o444)
        path.parent.chmod(mode)
        with unprivileged():
            store = await SqliteStore.open(path)
            await refuses_writes(store, story, "may be read but not written: check its permissions")
            await store.close()
        path.parent.chmod(0o777)


@pytest.mark.parametrize("own", [True, False])
async def test_a_look_at_a_file_that_may_not_be_written_does_not_keep_it_from_being_written_later(own: bool) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        path = Path(directory) / "story.db"
        story = await made(path)
        path.parent.chmod(0o777)
        path.chmod(0o444)
        with unprivileged():
            await (await SqliteStore.open(path)).close()
        left = [beside for end in ("-wal", "-shm") if (beside := Path(f"{path}{end}")).exists()]
        for beside in left:
            assert not beside.stat().st_mode & 0o222
        path.chmod(0o666)
        if os.geteuid() == 0 and not own:
            for beside in left:
                os.chown(beside, 65533, 65533)  # it was somebody else who looked
        elif not own:
            pytest.skip("only root can be two people")
        with unprivileged():
            store = await SqliteStore.open(path)
            if own:
                await store.write(Commit(story.id, story.rev, entries=[entry(4)]))
            else:
                with pytest.raises(StoreReadOnly, match="story.db' cannot be written since .*story.db-wal.* make that writable, too"):
                    await store.write(Commit(story.id, story.rev, entries=[entry(4)]))
            await store.close()


# -- locked, full ------------------------------------------------------------------------------------------------------------


async def test_a_file_that_is_locked_for_too_long_is_busy(path: Path) -> None:
    story = await made(path)
    store = await SqliteStore.open(path, busy_timeout=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        commits = [Commit(story.id, story.rev, entries=[entry(4)]), Commit(story.id, story.rev, touch=True)]
        results = await asyncio.gather(*map(store.write, commits), return_exceptions=True)
        assert [type(result) for result in results] == [StoreBusy, StoreBusy]
        assert time.monotonic() - began < 2
        with pytest.raises(StoreBusy, match="locked"):
            await store.write(commits[0])
        assert (await store.head(story.id, 1)).seq == 3
        other.execute("ROLLBACK")
    assert await store.write(commits[0]) == story.rev
    await store.close()


async def test_a_reader_neither_waits_for_a_writer_nor_when_it_closes(path: Path) -> None:
    story = await made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        store = await SqliteStore.open(path)
        assert len(await log(store, story)) == 3
        await store.close()
        assert time.monotonic() - began < 2


async def test_a_writer_waits_for_another_process_and_the_loop_goes_on(path: Path) -> None:
    story = await made(path)
    store = await SqliteStore.open(path, busy_timeout=5)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.write(Commit(story.id, story.rev, entries=[entry(4)])))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not waiting.done()
        assert len(await log(store, story)) == 3
        other.execute("ROLLBACK")
    assert await waiting == story.rev
    await store.close()


async def test_one_who_writes_as_fast_as_can_be_lets_others_have_their_turn(store: SqliteStore) -> None:
    """A story that is alone with the store writes without a turn of the loop, but not for long."""
    story = await store.create(KEY, {})
    turns = 0

    async def look_in() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(look_in())
    began = time.perf_counter()
    for seq in range(1, 501):
        await store.write(Commit(story.id, story.rev, entries=[entry(seq)]))
    spent = time.perf_counter() - began
    other.cancel()
    assert turns > spent / 0.05
    assert len(await log(store, story)) == 500


async def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    script = f"""{PRELUDE}
async def main():
    place = Path({str(tmp_path)!r})
    ballast = place / "ballast"
    ballast.write_bytes(b"x" * 500_000)
    store = await SqliteStore.open(place / "saga.db")
    story = await store.create(KEY, {{}})
    seq = 0
    while True:
        try:
            await store.write(Commit(story.id, story.rev, entries=[entry(seq + 1, "x" * 20_000)]))
            seq += 1
        except StoreFull as exc:
            print("alone", "free some space" in str(exc))
            break
    results = await asyncio.gather(*(
        store.write(Commit(story.id, story.rev, touch=True, entries=[entry(seq + 1, "y" * 200_000)])) for _ in range(3)
    ), return_exceptions=True)
    print("together", {{type(result).__name__ for result in results}})
    print((await store.head(story.id, 1)).seq == seq, len(await log(store, story)) == seq)
    ballast.unlink()
    await store.write(Commit(story.id, story.rev, entries=[entry(seq + 1, "x" * 20_000)]))
    await store.close()
    store = await SqliteStore.open(place / "saga.db")
    print(len(await log(store, story)) == seq + 1)
    await store.close()
asyncio.run(main())
"""
    assert in_own_mounts(script, f"mount -t tmpfs -o size=2m tmpfs {tmp_path}") == [
        "alone True", "together {'StoreFull'}", "True True", "True",
    ]  # fmt: skip


async def test_a_story_on_a_full_disk_is_what_was_acknowledged_and_goes_on(tmp_path: Path) -> None:
    script = f"""{PRELUDE}
import talekeeper as tk
from talekeeper.doctor import examine
async def refused(call):
    try:
        await call
    except StoreFull:
        return True
async def look(story):
    return [turn.text for turn in await story.turns()], (await story.context("rogue", budget=500)).text, await story.branches()
async def main():
    ballast = Path({str(tmp_path)!r}) / "ballast"
    ballast.write_bytes(b"x" * 500_000)
    async with tk.open({str(tmp_path / "saga.db")!r}, counter=tk.Heuristic()) as keeper:
        story = await keeper.story(KEY, seats=[tk.Seat("dm", role="dm"), tk.Seat("rogue")])
        told = 0
        while not await refused(story.append("dm", f"m{{told}}m The bridge will not hold. " + "x" * 8000)):
            told += 1
        before, large = await look(story), "y" * 90_000
        print([await refused(call) for call in (story.append("dm", large), story.edit(3, large), story.note(large),
               story.append_many([tk.Draft("dm", large)] * 3), story.regenerate(large))])
        print(told == story.head == len(before[0]), await look(story) == before)
        ballast.unlink()
        print((await story.append("dm", "The bridge holds.")).seq == told + 1, await examine(keeper, KEY))
    async with tk.open({str(tmp_path / "saga.db")!r}, counter=tk.Heuristic()) as keeper:
        print((await look(await keeper.story(KEY)))[0] == [*before[0], "The bridge holds."], await examine(keeper, KEY))
asyncio.run(main())
"""
    assert in_own_mounts(script, f"mount -t tmpfs -o size=2m tmpfs {tmp_path}") == [str([True] * 5), "True True", "True []", "True []"]


# -- how it is made durable ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "level"), [({}, 2), ({"durable": True}, 2), ({"durable": False}, 1)])
async def test_a_commit_is_on_the_disk_when_it_returns_unless_that_was_not_wished_for(
    path: Path, settings: dict[str, bool], level: int
) -> None:  # fmt: skip
    async with tk.open(path, **settings) as keeper:  # type: ignore[arg-type]
        assert isinstance(keeper.store, SqliteStore)
        assert keeper.store._writer is not None
        assert keeper.store._writer._db.execute("PRAGMA synchronous").fetchone() == (level,), "2: the log is synced at every commit"
        assert keeper.store._writer._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_stories_that_append_at_once_share_their_commits(store: SqliteStore) -> None:
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(200)]
    assert store._writer is not None
    done: list[str] = []
    store._writer._db.set_trace_callback(done.append)
    for seq in range(1, 6):
        await asyncio.gather(*(store.write(Commit(story.id, story.rev, entries=[entry(seq)])) for story in stories))
    store._writer._db.set_trace_callback(None)
    inserts = sum(sql.startswith("INSERT INTO") for sql in done)
    commits = sum(sql.startswith("COMMIT") for sql in done)
    assert inserts, "whoever counts must see them"
    assert 5 <= commits <= 5 * 4, "a commit for each of a thousand appends would be a thousand"


async def test_a_story_that_writes_alone_waits_for_others_no_more_than_it_must(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "HELD_SECONDS", 0.0)  # after each commit that is made at once, others get their turn
    story, turns = await store.create(KEY, {}), [0]

    def turn() -> None:
        turns[0] += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    waited = []
    for seq in range(1, 10):
        before = turns[0]
        await store.write(Commit(story.id, story.rev, entries=[entry(seq)]))
        waited.append(turns[0] > before)
    assert waited == [False, True] * 4 + [False]


# -- one bad commit among many -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crowd", [5, 100])
@pytest.mark.parametrize(
    "bad",
    [
        lambda story: Commit(story.id, story.rev, entries=[entry(1, "lone \ud800 surrogate")]),
        lambda story: Commit(story.id, story.rev, entries=[entry(1, tokens=2**70)]),
        lambda story: Commit(story.id, story.rev, entries=[entry(1)._replace(text=object())]),  # type: ignore[arg-type]
        lambda story: Commit(story.id, story.rev, entries=[entry(1, extra={"x": object()})]),
        lambda story: Commit(story.id, story.rev, touch=True, entries=[entry(1)], health={"x": {1, 2}}),
    ],
)
async def test_only_the_guilty_one_of_a_batch_fails(store: SqliteStore, crowd: int, bad: Callable[[StoryRecord], Commit]) -> None:
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(crowd)]
    commits = [Commit(story.id, story.rev, entries=[entry(1)]) for story in stories]
    commits[crowd // 2] = bad(stories[crowd // 2])
    results = await asyncio.gather(*map(store.write, commits), return_exceptions=True)
    for number, (story, result) in enumerate(zip(stories, results, strict=True)):
        if number == crowd // 2:
            assert isinstance(result, InvalidInput)
            assert await log(store, story) == []
        else:
            assert result == story.rev
            assert await log(store, story) == [entry(1)]
    with pytest.raises(InvalidInput):
        await store.write(commits[crowd // 2])
    story = stories[0]
    assert await store.write(Commit(story.id, story.rev, entries=[entry(2)])) == story.rev
    alone = bad(story)
    alone = alone._replace(entries=[each._replace(seq=3) for each in alone.entries])
    with pytest.raises(InvalidInput):
        await store.write(alone)
    assert await store.write(Commit(story.id, story.rev, entries=[entry(3)])) == story.rev


async def test_questions_that_cannot_be_asked_are_refused(store: SqliteStore) -> None:
    story = await store.create(KEY, {})
    for asking in (
        store.load(MemoryKey("\ud800", "x", "y")),
        store.create(MemoryKey("\ud800", "x", "y"), {}),
        store.search(story.id, ["\ud800"]),
        store.create(MemoryKey("x", "y", "z"), {"x": object()}),
    ):
        with pytest.raises(InvalidInput):
            await asking


# -- numbers -----------------------------------------------------------------------------------------------------------------


async def test_a_number_that_does_not_fit_is_refused(store: SqliteStore, path: Path) -> None:
    story = await store.create(KEY, {})
    last = 2**24 - 1
    rev = await store.write(Commit(story.id, story.rev, touch=True, branches=[Branch(2**18 - 1, "far", 1, last - 1)]))
    await store.write(Commit(story.id, rev, entries=[entry(last, branch=2**18 - 1)], index={Position(2**18 - 1, last): ["far"]}))
    assert await hits(store, story, "far") == [[(2**18 - 1, last, 1)]]
    for commit in (
        Commit(story.id, rev, entries=[entry(last + 1, branch=2**18 - 1)]),
        Commit(story.id, rev, branches=[Branch(2**18, "too far", 1, 0)]),
        Commit(story.id, rev, branches=[Branch(3, "too far", 1, last + 1)]),
    ):
        with pytest.raises(StoreError, match="does not fit"):
            await store.write(commit)
    raw(path, "UPDATE sqlite_sequence SET seq = ?", 2**21 - 2)
    newest = await store.create(MemoryKey("a", "b", "last"), {})
    assert newest.id == 2**21 - 1
    await store.write(Commit(newest.id, newest.rev, entries=[entry(1)], index={Position(1, 1): ["far"]}))
    assert await hits(store, newest, "far") == [[(1, 1, 1)]]
    with pytest.raises(StoreError, match="takes no more"):
        await store.create(MemoryKey("a", "b", "one more"), {})
    assert len(await store.keys()) == 2


# -- erasures are physical ---------------------------------------------------------------------------------------------------


def holds(path: Path, *words: str) -> set[str]:
    """Which of the words are anywhere in the file or its log. By another process: reading the file in this one would drop its locks."""
    command = ["grep", "--text", "--only-matching", "--no-filename", "--fixed-strings", *(f"--regexp={word}" for word in words)]
    files = [each for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if each.exists()]
    return set(subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False).stdout.split())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("large", [False, True])
async def test_what_was_forgotten_is_nowhere_in_the_file(path: Path, seed: int, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large one, it is nowhere once that is closed."""
    if large:
        monkeypatch.setattr(upkeep, "REWRITTEN_AT_ONCE", 0)
    chance = random.Random(seed)
    store = await SqliteStore.open(path, durable=False)
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(8)]
    seqs = dict.fromkeys((story.id for story in stories), 0)
    told: list[tuple[StoryRecord, int, str]] = []
    for number in range(600):
        story = chance.choice(stories)
        seqs[story.id] = seq = seqs[story.id] + 1
        word = f"xq{number}zz"
        padding = " and so on" * chance.randrange(60)
        told.append((story, seq, word))
        told_turn = entry(seq, f"{word}{padding}{word}", id=f"id-{word}", extra={"mentions": [word], "target": word})
        folds, texts = [fold(f"{chance.random()}"[2:] + word, padding)], [text_of(word, text=word)]
        index = {Position(1, seq): [word, "common"]}
        await store.write(Commit(story.id, story.rev, entries=[told_turn], folds=folds, texts=texts, index=index))
        await store.write(Commit(story.id, story.rev, gathered=[gathered(folds[0].key, value=[word + padding])]))
        if number % 100 == 0:
            await store.write(Commit(story.id, story.rev, snapshot=Snapshot(1, seq, {"said": word})))
    every = [word for _, _, word in told]
    assert holds(path, *every) == set(every)

    gone = chance.sample(told, 60)
    for story in stories:
        mine = [(seq, word) for owner, seq, word in gone if owner is story]
        keys = {each.key for each in (await store.read(Read(story.id, all_folds=True))).folds}
        erase = Erase(
            entries=[entry(seq)._replace(text="", extra=None) for seq, _ in mine],
            folds=[key for key in keys for _, word in mine if key.endswith(word)] + [word for _, word in mine],
            index={Position(1, seq): ["the caller", "may err"] for seq, _ in mine},
            snapshots=True,
        )
        await store.write(Commit(story.id, story.rev, erase=erase))
    forgotten = {word for _, _, word in gone}
    assert large or holds(path, *every) == set(every) - forgotten

    doomed = stories[0]
    assert await store.delete(doomed.key)
    kept = {word for story, _, word in told if story is not doomed} - forgotten
    assert large or holds(path, *every) == kept
    assert raw(path, "SELECT count(*) > 0 FROM erasures") == [(large,)]
    for story, seq, word in chance.sample(told, 40):
        found = [] if story is doomed or word in forgotten else [(1, seq, 1)]
        assert await hits(store, story, word) == [found]
    await store.close()
    assert holds(path, *every) == kept
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]
    assert raw(path, "SELECT count(*) FROM erasures") == [(0,)]
    raw(path, "INSERT INTO words (words) VALUES ('integrity-check')")


async def test_an_erasure_that_was_interrupted_is_finished_when_next_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await SqliteStore.open(path)
    story = await store.create(KEY, {})
    entries = [entry(seq, f"secret{seq}z") for seq in range(1, 200)]
    index = {each.position: [f"term{each.seq}z"] for each in entries}
    await store.write(Commit(story.id, story.rev, entries=entries, index=index))
    with monkeypatch.context() as patch:
        patch.setattr(upkeep.Upkeep, "purge", lambda self, done: done())
        await store.write(Commit(story.id, story.rev, erase=Erase([entry(5)._replace(text="")], index={Position(1, 5): ["term5z"]})))
        await store.close()
    assert holds(path, "term5z") == {"term5z"}
    assert raw(path, "SELECT count(*) FROM erasures") == [(1,)]
    store = await SqliteStore.open(path)
    await store.close()
    assert holds(path, "term5z", "secret5z", "secret6z") == {"secret6z"}
    assert raw(path, "SELECT count(*) FROM vocabulary") == [(198,)]
    assert raw(path, "SELECT count(*) FROM erasures") == [(0,)]


async def test_appends_go_on_while_an_erasure_becomes_physical(store: SqliteStore) -> None:
    story, other = await store.create(KEY, {}), await store.create(MemoryKey("a", "b", "c"), {})
    entries = [entry(seq) for seq in range(1, 1001)]
    await store.write(Commit(story.id, story.rev, entries=entries, index={each.position: [f"w{each.seq}"] for each in entries}))
    erasures = [Erase([entry(seq)._replace(text="")], index={Position(1, seq): []}) for seq in range(1, 6)]
    erasing = [asyncio.create_task(store.write(Commit(story.id, story.rev, erase=erase))) for erase in erasures]
    for seq in range(1, 101):
        await store.write(Commit(other.id, other.rev, entries=[entry(seq)]))
    assert await asyncio.gather(*erasing) == [story.rev] * 5
    assert len(await log(store, other)) == 100
    assert await hits(store, story, "w1", "w5", "w6") == [[], [], [(1, 6, 1)]]


async def test_an_erasure_does_not_wait_for_ever_for_a_reader(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    story = await made(path)
    store = await SqliteStore.open(path, busy_timeout=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM turns").fetchone()
        await store.write(Commit(story.id, story.rev, erase=Erase([entry(1)._replace(text="")])))
        assert (await log(store, story))[0].text == ""
        await store.close()
    assert raw(path, "SELECT count(*) FROM erasures") == [(1,)]
    store = await SqliteStore.open(path)
    await store.close()
    assert raw(path, "SELECT count(*) FROM erasures") == [(0,)]


# -- crowds and upkeep -------------------------------------------------------------------------------------------------------


async def test_arrivals_are_put_in_their_places(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "FULL_HOUSE", 5)
    monkeypatch.setattr(upkeep, "PLACED_AT_ONCE", 60)
    store = await SqliteStore.open(path, durable=False)
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(100)]
    for seq in range(1, 21):
        await asyncio.gather(*(store.write(Commit(story.id, story.rev, entries=[entry(seq)])) for story in stories))
        story = stories[seq]
        assert await log(store, story) == [entry(each) for each in range(1, seq + 1)]
        index = {Position(1, seq): ["dragon"]}
        await store.write(Commit(story.id, story.rev, entries=[entry(seq + 1)], index=index))
        assert await hits(store, story, "dragon") == [[(1, seq, 1)]]
        stories[seq] = await store.create(MemoryKey("acme", "ana", f"new {seq}"), {})
        await asyncio.gather(*(store.write(Commit(stories[seq].id, stories[seq].rev, entries=[entry(each)])) for each in range(1, seq + 1)))
    await store.close()
    ((placed,),) = raw(path, "SELECT count(*) FROM turns")
    ((waiting,),) = raw(path, "SELECT count(*) FROM arrivals")
    assert placed > 600, f"{waiting} still wait"  # how far the upkeep has come depends on the machine
    assert raw(path, "SELECT count(*) FROM turns JOIN arrivals USING (pos)") == [(0,)]
    store = await SqliteStore.open(path)
    for key in await store.keys():
        found = await store.load(key)
        assert found is not None
        assert [each.seq for each in await log(store, found)] == list(range(1, (await store.head(found.id, 1)).seq + 1))
    await store.close()


async def test_the_write_ahead_log_stays_small(store: SqliteStore, path: Path) -> None:
    story = await store.create(KEY, {})
    for seq in range(1, 4001):
        await store.write(Commit(story.id, story.rev, entries=[entry(seq)]))
    assert Path(f"{path}-wal").stat().st_size < 12 << 20


async def test_a_store_that_nobody_closes_does_not_keep_the_process(path: Path) -> None:
    script = f"""{PRELUDE}
async def main():
    store = await SqliteStore.open({str(path)!r})
    story = await store.create(KEY, {{}})
    await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
asyncio.run(main())
"""
    process = child(script)
    process.communicate(timeout=20)
    assert process.returncode == 0
    store = await SqliteStore.open(path)
    assert len(await log(store, (await store.load(KEY)) or pytest.fail("lost"))) == 1
    await store.close()


async def test_importing_the_library_does_not_import_pytest() -> None:
    script = "import talekeeper, talekeeper.stores, sys; talekeeper.Keeper; print([name for name in sys.modules if 'pytest' in name])"
    output, _ = child(script).communicate(timeout=20)
    assert output.strip() == "[]"


# -- processes ---------------------------------------------------------------------------------------------------------------


TELL = f"""{PRELUDE}
async def tell(store, story, name):
    number = 0
    while True:
        head = await store.head(story.id, 1)
        try:
            await store.write(Commit(story.id, head.rev, entries=[entry(head.seq + 1, f"{{name}} {{number}}")]))
        except Conflict:
            continue
        print(story.id, number, flush=True)
        number += 1

async def main():
    store = await SqliteStore.open(sys.argv[1])
    stories = [await store.create(MemoryKey("t", "u", str(each)), {{}}) for each in range(int(sys.argv[3]))]
    await asyncio.gather(*(tell(store, story, sys.argv[2]) for story in stories))

from talekeeper.model import MemoryKey
asyncio.run(main())
"""


@pytest.mark.parametrize("stories", [1, 2, 60])
async def test_what_was_acknowledged_survives_kill_9(path: Path, stories: int) -> None:
    acknowledged: dict[str, set[str]] = {}
    for life in range(3):
        process = child(TELL, path, f"life{life}", stories)
        assert process.stdout is not None
        wanted = 40 + 30 * stories
        lines = [process.stdout.readline().split() for _ in range(wanted)]
        process.send_signal(signal.SIGKILL)
        while select.select([process.stdout], [], [], 5)[0] and (line := process.stdout.readline()):
            if line.endswith("\n"):
                lines.append(line.split())
        process.wait()
        process.stdout.close()
        for story, number in lines:
            acknowledged.setdefault(story, set()).add(f"life{life} {number}")
        store = await SqliteStore.open(path)
        for key in await store.keys():
            record = await store.load(key)
            assert record is not None
            entries = await log(store, record)
            assert [each.seq for each in entries] == list(range(1, len(entries) + 1))
            assert acknowledged.get(str(record.id), set()) <= {each.text for each in entries}
            assert len({each.text for each in entries}) == len(entries)
            assert (await store.head(record.id, 1)).seq == len(entries)
        await store.close()
        assert raw(path, "PRAGMA integrity_check") == [("ok",)]


async def test_several_processes_share_a_new_file(path: Path) -> None:
    count = 4
    script = TELL.replace("while True", "while number < 40")
    processes = [child(script, path, f"p{number}", 2) for number in range(count)]
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(output.splitlines()) == 80
    store = await SqliteStore.open(path)
    assert len(await store.keys()) == 2
    for key in await store.keys():
        record = await store.load(key)
        assert record is not None
        told = [each.text for each in await log(store, record)]
        assert sorted(told) == sorted(f"p{name} {number}" for name in range(count) for number in range(40))
    await store.close()


async def test_a_store_notices_what_was_written_behind_its_back(store: SqliteStore, path: Path) -> None:
    story = await store.create(KEY, {})
    await store.write(Commit(story.id, story.rev, entries=[entry(1)]))
    other: Store = await SqliteStore.open(path)
    rev = await other.write(Commit(story.id, story.rev, touch=True, entries=[entry(2)]))
    for commit in (Commit(story.id, story.rev, entries=[entry(2)]), Commit(story.id, rev, entries=[entry(2)])):
        with pytest.raises(Conflict):
            await store.write(commit)
    await store.write(Commit(story.id, rev, entries=[entry(3)]))
    assert await everything(store, story) == await everything(other, story)
    await other.delete(KEY)
    with pytest.raises(UnknownStory):
        await store.write(Commit(story.id, rev, entries=[entry(4)]))
    with pytest.raises(UnknownStory):
        await store.head(story.id, 1)
    await other.close()


async def test_a_span_that_crosses_two_tables_is_in_order(store: SqliteStore) -> None:
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(64)]
    for seq in range(1, 7):
        together = stories if seq % 2 else stories[:3]
        await asyncio.gather(*(store.write(Commit(story.id, story.rev, entries=[entry(seq)])) for story in together))
        stories = together if seq % 2 else stories[:3]
    found = await store.read(Read(stories[0].id, spans=[Span(1, 1, 99)], positions=[Position(1, seq) for seq in (6, 1, 5, 2)]))
    assert [each.seq for each in found.entries] == [1, 2, 3, 4, 5, 6, 6, 1, 5, 2]


async def test_what_is_no_commit_fails_by_itself_and_keeps_nobody_waiting(store: SqliteStore) -> None:
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(40)]
    bad = Commit(stories[0].id, stories[0].rev, False)  # type: ignore[arg-type]
    with pytest.raises(TalekeeperError):
        await asyncio.wait_for(store.write(bad), 10)
    good = [Commit(story.id, story.rev, [entry(1)]) for story in stories]
    outcomes = await asyncio.wait_for(asyncio.gather(*map(store.write, [*good, bad]), return_exceptions=True), 10)
    assert outcomes[:-1] == [story.rev for story in stories]
    assert isinstance(outcomes[-1], TalekeeperError)


def test_a_store_can_be_closed_after_ctrl_c_while_callers_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def tell() -> SqliteStore:
        store = await SqliteStore.open(path)
        stories = [(await store.create(MemoryKey("acme", "ana", str(number)), {})).id for number in range(100)]
        monkeypatch.setattr(writer, "_resolve", interrupted)
        for story in stories:
            asyncio.ensure_future(store.write(Commit(story, 1, [entry(1)])))  # noqa: RUF006
        opened.append(store)
        await asyncio.sleep(60)
        return store

    def interrupted(*_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    opened: list[SqliteStore] = []
    with asyncio.Runner() as runner:
        with pytest.raises(KeyboardInterrupt):
            runner.get_loop().run_until_complete(tell())
        runner.get_loop().run_until_complete(asyncio.wait_for(opened[0].close(), 10))


async def test_a_branch_beyond_the_last_number_is_no_branch_of_the_next_story(store: SqliteStore) -> None:
    stories = [await store.create(MemoryKey("acme", "ana", str(number)), {}) for number in range(40)]
    await asyncio.gather(*(store.write(Commit(story.id, story.rev, [entry(1)])) for story in stories))
    stray = [Commit(story.id, story.rev, [entry(2, branch=2**18 | 1)]) for story in stories[:-1]]
    outcomes = [
        *await asyncio.gather(*map(store.write, stray), return_exceptions=True),
        *[await _outcome(store, commit) for commit in stray],
    ]
    assert {type(outcome) for outcome in outcomes} == {UnknownBranch}
    assert [(await store.head(story.id, 1)).seq for story in stories] == [1] * len(stories)


async def _outcome(store: SqliteStore, commit: Commit) -> object:
    try:
        return await store.write(commit)
    except TalekeeperError as refusal:
        return refusal
