from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import talekeeper as tk
from talekeeper.doctor import Finding, examine, examine_file
from talekeeper.summarize.extractive import RULES
from talekeeper.testing.models import MoodyModel

KEY = tk.MemoryKey("local", "local", "main")
SEATS = (tk.Seat("dm", role="dm", token_limit=900), tk.Seat("rogue", token_limit=400), tk.Seat("bard", token_limit=500))


def open_keeper(path: str | Path, model: MoodyModel | None = None) -> tk.Keeper:
    return tk.open(path, summarizer=model, counter=tk.Heuristic(), clock=lambda: 1.5, durable=False)


async def tell(story: tk.Story, turns: int, tag: str) -> None:
    audiences: tuple[list[str] | None, ...] = (None, None, ["rogue"], None, ["bard"])
    for i in range(turns):
        text = f"{tag}{i}: Captain Voss counts {i + 40} gold coins at gate {i % 7}, and promises Elena Swift the silver key."
        await story.append("dm", text, heard_by=audiences[i % 5], id=f"{tag}-{i}" if i % 10 == 3 else None)


async def make(path: Path) -> None:
    """A story with branches, edits, pins, overrides, texts of a model and a forgotten turn."""
    async with open_keeper(path, MoodyModel()) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.note("The Ash Crown burns liars.")
        await tell(story, 90, "a")
        await story.settle()
        await story.edit(12, "The coins were false, every one of them.")
        await story.pin(15)
        fork = await story.fork(at=80, name="what if")
        await tell(fork, 60, "b")
        await fork.settle()
        folds = await story.folds("rogue")
        await story.override(folds[0].id, "By hand: nobody trusted anybody.")
        await story.forget(30)
        await tell(story, 60, "c")
        await story.settle()
        await story.rewind(120)
        await tell(story, 5, "d")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doctor") / "sound.db"
    asyncio.run(make(path))
    return path


@pytest.fixture
def file(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sound, tmp_path / "story.db"))


async def findings(path: Path) -> list[Finding]:
    async with open_keeper(path) as keeper:
        return await examine(keeper, KEY)


async def test_turns_that_read_the_same_are_sound(tmp_path: Path) -> None:
    async with open_keeper(tmp_path / "same.db") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        await story.append_many([tk.Draft("dm", f"The bell tolls {n % 4} times.") for n in range(60)])
        assert await examine(keeper, KEY) == []


async def test_a_sound_story_has_no_findings(file: Path) -> None:
    assert examine_file(file) == []
    assert await findings(file) == []


async def test_a_story_in_memory_can_be_examined_while_it_is_told() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        assert await examine(keeper, KEY) == []
        steps: list[str] = []
        await tell(story, 40, "a")
        assert await examine(keeper, KEY, steps.append) == []
        assert len(steps) > 5


@pytest.mark.parametrize("forgets", [False, True], ids=["told on", "forgotten in"])
async def test_a_sound_story_has_no_findings_while_another_process_changes_it(tmp_path: Path, forgets: bool) -> None:
    async with open_keeper(tmp_path / "busy.db") as keeper, open_keeper(tmp_path / "busy.db") as other:
        story = await other.story(KEY, seats=SEATS)
        await tell(story, 150, "a")
        looking = True

        async def change() -> None:
            number = 0
            while looking:
                number += 1
                await story.append("dm", f"Captain Voss gives Elena coin {number}.", heard_by=["rogue"] if number % 2 else None)
                if forgets and number % 20 == 0:
                    await story.forget(number)
                await asyncio.sleep(0.002)

        changing = asyncio.create_task(change())
        try:
            for _ in range(3):
                with suppress(*([tk.Conflict] if forgets else [])):  # it has been changed each time it was looked at, which is said
                    assert await examine(keeper, KEY) == []
        finally:
            looking = False
            await changing
        assert await examine(keeper, KEY) == []


async def test_a_turn_that_is_one_of_very_many_with_the_same_words_is_no_damage() -> None:
    async with open_keeper(":memory:") as keeper:
        story = await keeper.story(KEY, seats=SEATS[:1])
        await story.append("dm", "The blue door stands beside the red door.")
        await story.append_many([tk.Draft("dm", "The red door stands beside the blue door.") for _ in range(300)])
        await story.settle()
        assert await examine(keeper, KEY) == []


@pytest.mark.parametrize("turns", [28, 300])
async def test_turns_that_begin_alike_are_no_damage_be_they_new_or_edited(turns: int, tmp_path: Path) -> None:
    alike = "The guard on the wall calls out the hour of the watch"
    async with open_keeper(tmp_path / "story.db") as keeper:
        story = await keeper.story(KEY, seats=SEATS[:1])
        await story.append("dm", "Nobody speaks.")
        for number in range(turns):
            await story.append("dm", f"{alike}, number {number}.")
        await story.edit(1, f"{alike}, and stops to look for the lantern that somebody left on the stair.")
        await story.append("dm", f"{alike} again.")
    assert await findings(tmp_path / "story.db") == []


async def test_examining_changes_nothing(file: Path) -> None:
    async with open_keeper(file) as keeper:
        record = await keeper.store.load(KEY)
        await examine(keeper, KEY)
        assert await keeper.store.load(KEY) == record


async def test_examining_stores_nothing_that_was_derived_on_the_way(tmp_path: Path) -> None:
    def rows() -> list[int]:
        with closing(sqlite3.connect(tmp_path / "story.db")) as db:
            return [db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("folds", "snapshots", "gathered", "turns")]

    async with open_keeper(tmp_path / "story.db") as keeper:
        await tell(await keeper.story(KEY, seats=SEATS), 100, "a")
        before = rows()
        assert await findings(tmp_path / "story.db") == []
        assert rows() == before
        assert before[0] == 0


async def test_a_story_that_is_not_there_cannot_be_examined(file: Path) -> None:
    async with open_keeper(file) as keeper:
        with pytest.raises(tk.UnknownStory):
            await examine(keeper, tk.MemoryKey("no", "such", "story"))


def run(statement: str, *values: object) -> Callable[[sqlite3.Connection], None]:
    def damage(db: sqlite3.Connection) -> None:
        db.execute(statement, values)

    return damage


def rewrite(table: str, column: str, change: Callable[[str], str], where: str = "1") -> Callable[[sqlite3.Connection], None]:
    """Changes one value of the first row that is found."""

    def damage(db: sqlite3.Connection) -> None:
        keys = {"folds": "key", "snapshots": "seq", "channels": "id", "texts": "key", "branches": "id", "stories": "id", "turns": "pos"}[
            table
        ]
        key, value = db.execute(f"SELECT {keys}, {column} FROM {table} WHERE {where} ORDER BY {keys} LIMIT 1").fetchone()
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {keys} = ?", (change(value), key))

    return damage


def in_json(**fields: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **fields})


def in_every_view_of(seat: str, change: Callable[[dict[str, Any], list[list[str]]], None]) -> Callable[[sqlite3.Connection], None]:
    """Changes, in every snapshot, which folds the seat's memory of the story is made of: per level their keys, oldest first."""

    def damage(db: sqlite3.Connection) -> None:
        for story, branch, seq, text in db.execute("SELECT story, branch, seq, state FROM snapshots").fetchall():
            state = json.loads(text)
            change(state, state["views"][seat][2][0])
            place = (json.dumps(state), story, branch, seq)
            db.execute("UPDATE snapshots SET state = ? WHERE story = ? AND branch = ? AND seq = ?", place)

    return damage


def of_another(state: dict[str, Any], levels: list[list[str]]) -> None:
    levels[:] = state["views"]["rogue"][2][0]


def without_the_oldest(state: dict[str, Any], levels: list[list[str]]) -> None:
    next(level for level in reversed(levels) if level).pop(0)


def with_the_newest_twice(state: dict[str, Any], levels: list[list[str]]) -> None:
    level = next(level for level in levels if level)
    level.append(level[-1])


def half(text: str) -> str:
    return text[: len(text) // 2]


DAMAGED = "cannot be read: what is stored of it is damaged"


@pytest.mark.parametrize("edition", [0, 1])
async def test_folds_that_an_earlier_version_told_otherwise_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edition: int
) -> None:
    path = tmp_path / "s.db"
    with monkeypatch.context() as earlier:
        earlier.setattr("talekeeper.folds.nodes.Node.limit", lambda node: 30)
        earlier.setattr("talekeeper.summarize.extractive.RULES", edition)
        async with open_keeper(path) as keeper:
            story = await keeper.story(KEY, seats=SEATS)
            await tell(story, 90, "a")
            await story.settle()
    async with open_keeper(path) as keeper:
        story = await keeper.story(KEY)
        await tell(story, 300, "b")  # larger folds, of those that are there and of others
        await story.settle()
        found = await examine(keeper, KEY)
    if edition < RULES:
        assert [finding.severity for finding in found] == ["warning"]
        assert "are told as an earlier version told them: they are sound" in found[0].message
    else:
        assert {(finding.severity, finding.message) for finding in found} == {("error", "its text is not what its turns give")}


AT = "(pos & 16777215)"  # an entry's number on its branch
ON = "(pos >> 24 & 262143)"  # its branch
LEAF = "key IN (SELECT key FROM folds WHERE json_extract(shape, '$.level') = 0 AND json_extract(shape, '$.last') < 25)"
PARENT = "json_extract(shape, '$.level') = 1"

DAMAGE: dict[str, tuple[Callable[[sqlite3.Connection], None], str, str]] = {
    "an entry gone": (run(f"DELETE FROM turns WHERE {AT} = 40 AND {ON} = 1"), "I1", "1 entries before it are gone from the log"),
    "the first entry gone": (run(f"DELETE FROM turns WHERE {AT} = 1 AND {ON} = 1"), "I1", "gone from the log"),
    "the newest entries gone": (
        run(f"DELETE FROM turns WHERE {ON} = 2 AND {AT} > 137"),
        "I1",
        "its newest entries are gone from the log",
    ),
    "an edit that is not known by its turn": (run("DELETE FROM targets"), "I1", "cannot be found by what it is about"),
    "a text gone": (run(f"UPDATE turns SET text = '' WHERE {AT} = 41 AND {ON} = 1"), "I1", "has lost its text"),
    "a text changed": (
        run(f"UPDATE turns SET text = 'Something else altogether happened to Lord Harrow.' WHERE {AT} = 5 AND {ON} = 1"),
        "I5",
        "its text is not what its turns give",
    ),
    "a channel gone": (run("DELETE FROM channels WHERE id = 2"), "I3", "there is no such channel"),
    "a seat in no list": (
        rewrite("channels", "hearers", lambda text: '["dm","spy"]'),
        "I3",
        "is heard by 'spy', and there is no such seat",
    ),
    "a stranger speaks": (run(f"UPDATE turns SET speaker = 'spy' WHERE {AT} = 7"), "I3", "is spoken by 'spy'"),
    "an unknown kind": (run(f"UPDATE turns SET kind = 'sung' WHERE {AT} = 7"), "I1", "unknown kind 'sung'"),
    "an edit without a target": (run("UPDATE turns SET extra = NULL WHERE kind = 'edit'"), "I1", "has no target"),
    "an id that leads nowhere": (run("DELETE FROM ids WHERE id = 'a-13'"), "I1", "cannot be found by its id 'a-13'"),
    "a branch without a parent": (
        run("UPDATE branches SET parent = 77 WHERE name = 'what if'"),
        "I4",
        "its parent, number 77, does not exist",
    ),
    "a branch beyond its parent": (run("UPDATE branches SET at = 9999 WHERE name = 'what if'"), "I4", "which the parent never reached"),
    "two branches of one name": (run("UPDATE branches SET name = 'main'"), "I4", "branches have this name"),
    "settings that make no sense": (rewrite("stories", "config", in_json(seats=[{"id": "dm"}])), "I4", "settings cannot be understood"),
    "a fold with other words": (
        rewrite("folds", "sentences", lambda text: text.replace("Voss", "Harrow"), LEAF),
        "I5",
        "its text is not what its turns give",
    ),
    "a fold in another place": (
        rewrite("folds", "shape", in_json(location="moon"), LEAF),
        "I5",
        "does not stand where it should: in 'location'",
    ),
    "a fold gone": (run(f"DELETE FROM folds WHERE {LEAF}"), "I7", "which does not exist"),
    "a fold of nothing": (rewrite("folds", "shape", in_json(children=["nothing"]), PARENT), "I7", "is made of fold nothing"),
    "a snapshot that counts wrong": (rewrite("snapshots", "state", in_json(turns=7)), "I4", "is not what the log adds up to: in 'turns'"),
    "a snapshot that forgot who is where": (rewrite("snapshots", "state", in_json(presence={"bard": "moon"})), "I4", "in 'presence'"),
    "a text of the future": (
        run("UPDATE texts SET born = 9999 WHERE key = (SELECT min(key) FROM texts)"),
        "I4",
        "was born at entry 9999",
    ),
    "a letter changed": (
        run(f"UPDATE turns SET text = replace(text, 'silver', 'silvcr') WHERE {AT} = 48 AND {ON} = 1"),
        "I1",
        "does not know 1 of the entries by all of their words, such as entry 48 of branch 'main~1' by 'silvcr'",
    ),
    "a time that is none": (run(f"UPDATE turns SET time = 'abc' WHERE {AT} = 8"), "I1", "has a time or a size that is no number"),
    "an index without words": (run("INSERT INTO words (words) VALUES ('delete-all')"), "I1", "cannot be recalled by its own words"),
    "an index that names what is no entry": (run("INSERT INTO words (rowid, tokens) VALUES (1, '1.voss.1')"), "I1", DAMAGED),
    "settings that are no JSON": (rewrite("stories", "config", half), "file", DAMAGED),
    "a health that is no JSON": (run("UPDATE stories SET health = 'x'"), "file", DAMAGED),
    "hearers that are no JSON": (rewrite("channels", "hearers", half), "file", DAMAGED),
    "an entry with half of what belongs to it": (run("UPDATE turns SET extra = '{' WHERE kind = 'edit'"), "I1", DAMAGED),
    "an entry of bytes that are no text": (run(f"UPDATE turns SET text = CAST(x'ff' AS TEXT) WHERE {AT} = 9"), "I1", DAMAGED),
    "a mark with half of its data": (
        run("UPDATE turns SET kind = 'mark', text = '{', extra = json_set(extra, '$.topic', 'x') WHERE kind = 'pin'"),
        "I1",
        "whose data is damaged: it is no JSON",
    ),
    "a fold with half of a shape": (rewrite("folds", "shape", half), "I7", DAMAGED),
    "a fold with half of its sentences": (rewrite("folds", "sentences", half), "I7", DAMAGED),
    "half a text of a model": (rewrite("texts", "sentences", half), "I7", DAMAGED),
    "half a snapshot": (rewrite("snapshots", "state", half), "I4", DAMAGED),
    "a snapshot without views": (rewrite("snapshots", "state", lambda text: text.replace('"views"', '"vistas"')), "I4", DAMAGED),
    "a snapshot with views that are none": (rewrite("snapshots", "state", in_json(views={"dm": 7})), "I4", DAMAGED),
    "a view with another's secrets": (in_every_view_of("bard", of_another), "I3", "has something of a turn that was not heard"),
    "a view with a gap": (in_every_view_of("bard", without_the_oldest), "I1", "turns neither raw nor in a fold"),
    "a view with something twice": (in_every_view_of("bard", with_the_newest_twice), "I1", "turns twice"),
    "an import without an end": (rewrite("stories", "config", in_json(importing="x")), "I1", "an import was never finished"),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_found(damage: str, file: Path) -> None:
    harm, code, message = DAMAGE[damage]
    with closing(sqlite3.connect(file)) as db, db:
        harm(db)
    found = await findings(file)
    assert any(finding.code == code and message in finding.message for finding in found), found
    assert len({(finding.message, finding.where) for finding in found}) == len(found)


async def test_damage_is_found_long_before_the_first_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "story.db"
    async with open_keeper(path) as keeper:
        story = await keeper.story(KEY, seats=SEATS)
        drafts = [tk.Draft("dm", f"Captain Voss promises Elena Swift the silver key of gate {number}.") for number in range(2000)]
        await story.append_many(drafts)
        await story._hot.checkpoint(in_steps=False)  # as earlier versions did
    assert await findings(path) == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE folds SET sentences = replace(sentences, 'Voss', 'Moss') WHERE number = (SELECT min(number) FROM folds)")
        db.commit()
    assert "I5" in {finding.code for finding in await findings(path)}


async def test_an_entry_that_cannot_be_read_is_named_and_not_missed_as_well(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(f"UPDATE turns SET extra = '{{' WHERE {AT} IN (40, 41) AND {ON} = 1")
    assert [finding.where for finding in await findings(file)] == ["entry 40 of branch 'main~1'", "entry 41 of branch 'main~1'"]


async def test_damage_to_one_story_is_not_seen_in_another(file: Path) -> None:
    async with open_keeper(file) as keeper:
        other = await keeper.story(tk.MemoryKey("local", "local", "other"), seats=SEATS)
        await tell(other, 40, "o")
        await other.settle()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(f"DELETE FROM turns WHERE {AT} = 40 AND {ON} = 1 AND pos < 2 << 42")
    async with open_keeper(file) as keeper:
        assert await examine(keeper, KEY)
        assert await examine(keeper, other.key) == []


def test_a_file_with_a_broken_page_is_found(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as raw:
        for page in range(4, size // 4096, 3):
            raw.seek(page * 4096)
            raw.write(b"\xff" * 64)
    assert {finding.code for finding in examine_file(file)} == {"file"}


def test_a_file_that_is_no_database_is_found(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 1000)
    assert "no story file at all" in examine_file(path)[0].message


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "cannot be read" in examine_file(tmp_path / "none.db")[0].message
    assert list(tmp_path.iterdir()) == []
