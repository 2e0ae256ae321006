"""A story as lines of JSON, and back: the copy remembers, recalls, branches and rewinds byte for byte like the original.

    {"type": "story", "format": "talekeeper", "version": 1, "key": {…}, "config": {…}, "spending": {…}, "health": {…}}
    {"type": "branch", "id": 1, "name": "main", "at": 0}                     every branch, the oldest first
    {"type": "channel", "id": 1, "hearers": ["bard", "dm"]}                  every set of hearers
    {"type": "entry", "branch": 1, "seq": 1, "kind": "said", "text": …}      the log, branch by branch
    {"type": "text", "key": …, "branch": 1, "born": 40, "sentences": […]}    what a model wrote, behind the entry it was born at
    {"type": "fold", "key": …, "shape": {…}, "sentences": […]}               what is left of a fold that lost a forgotten turn
    {"type": "checkpoint", "branch": 1, "seq": 256}                          where the original has a snapshot, so will the copy
    {"type": "end", "entries": 256, …}                                       how many lines of each kind: nothing was cut off

Lines stand in the order in which they can be applied: an entry behind its predecessors, a text behind the entry that was its branch's
head. What can be derived from the log (other folds, snapshots, the index, what was gathered) is derived again, and not in the file.

Both directions stream: the log passes by in pages. An import is all or nothing: until its last line was read, the new story is marked
as unfinished and cannot be opened, and a line that does not fit takes it away again.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, StoreCorrupt, TalekeeperError, UnknownStory
from talekeeper.folds import Node, unpack_sentences
from talekeeper.hot import AT_ONCE, Hot
from talekeeper.model import AUTHOR_KINDS, HEARD_KINDS, MemoryKey
from talekeeper.ports import Branch, Commit, Entry, FoldRecord, Read, Span, Spending, StoryRecord, TextRecord
from talekeeper.replay import Replay, snapshot_before, snapshots_of
from talekeeper.shared import MAIN, UNFINISHED, Shared, check_finished, seats_of

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper

FORMAT, VERSION = "talekeeper", 1
PAGE = 512

Row: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[str], None]


# -- export ------------------------------------------------------------------------------------------------------------


_CHANGED = "the story changed while it was exported: export it again"


async def export_story(keeper: Keeper, key: MemoryKey) -> AsyncIterator[str]:
    """The story as lines, each with its newline.

    Raises `Conflict` where the story changed meanwhile (more than by plain appends, which are left out), `StoreCorrupt` where its log
    has a gap. Lines that came before are worth nothing then."""
    store = keeper.store
    record = await store.load(rim.key(key))
    if record is None:
        raise UnknownStory(f"no story under the key {key.composite()!r}")
    check_finished(record)
    counts: Counter[str] = Counter()
    async for kind, row in _rows(keeper, record):
        counts[kind] += 1
        yield _line(kind, row)
        if counts[kind] % AT_ONCE == 0:
            await asyncio.sleep(0)
    now = await store.load(key)
    if now is None or (now.id, now.rev) != (record.id, record.rev):
        raise Conflict(_CHANGED)
    yield _line("end", dict(counts))


def _line(kind: str, row: Mapping[str, Any]) -> str:
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps({"type": kind, **present}, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


async def _rows(keeper: Keeper, record: StoryRecord) -> AsyncIterator[tuple[str, Row]]:
    yield "story", {
        "format": FORMAT, "version": VERSION, "key": asdict(record.key), "config": dict(record.config), "spending": asdict(record.spending),
        "health": dict(record.health),
    }  # fmt: skip
    branches = sorted(record.branches.values(), key=lambda branch: branch.id)
    for branch in branches:
        yield "branch", asdict(branch)
    for number, hearers in sorted(record.channels.items()):
        yield "channel", {"id": number, "hearers": list(hearers)}
    log = _Log(keeper, record)
    for branch in branches:
        async for row in log.segment(branch):
            yield row


class _Log:
    """The entries of a story, and behind each what cannot be derived from them.

    The store finds folds by their keys alone, so the log is replayed beside: it tells which folds there ever were."""

    def __init__(self, keeper: Keeper, record: StoryRecord) -> None:
        self._keeper = keeper
        self._store = keeper.store
        self._record = record
        self._born: dict[tuple[int, int], set[str]] = {}  # folds with a text that was born there
        self._forgotten: set[tuple[int, int]] = set()
        self._tainted: set[str] = set()

    async def segment(self, branch: Branch) -> AsyncIterator[tuple[str, Row]]:
        """A branch's own entries with their company."""
        store, record = self._store, self._record
        rev, head = await store.head(record.id, branch.id)
        if rev != record.rev:
            raise Conflict(_CHANGED)  # what was told since may have hearers that the record does not know
        marks = set(await snapshots_of(store, record.id, branch, head))
        replay = await self._replay(branch, branch.at)
        for first, last in _pages(branch.at, head, marks):
            entries = await self._page(branch, first, last)
            lost = self._note_folds(await replay.go(last))
            for entry in entries:
                yield "entry", entry._asdict()
                for text in await self._texts(entry):
                    yield "text", asdict(text)
            for fold in await self._folds(lost):
                yield "fold", asdict(fold)
            if last in marks:
                yield "checkpoint", {"branch": branch.id, "seq": last}
                replay = await self._replay(branch, last)

    async def _replay(self, branch: Branch, at: int) -> Replay:
        replay = Replay(self._keeper, self._record, branch, await snapshot_before(self._store, self._record, branch, at))
        await replay.go(at)
        return replay

    async def _page(self, branch: Branch, first: int, last: int) -> Sequence[Entry]:
        entries = (await self._store.read(Read(self._record.id, spans=[Span(branch.id, first, last)]))).entries
        if [entry.seq for entry in entries] != list(range(first, last + 1)):
            raise StoreCorrupt(f"the log of branch {branch.name!r} is not whole between {first} and {last}: run talekeeper doctor")
        self._forgotten.update(entry.position for entry in entries if entry.extra and "forgotten" in entry.extra)
        return entries

    def _note_folds(self, nodes: Mapping[str, Node]) -> list[str]:
        """Notes down which of these folds have texts, and returns the keys of those that have lost a turn."""
        lost = []
        for key, node in nodes.items():
            for text in node.texts:
                self._born.setdefault((text.branch, text.born), set()).add(key)
            if not self._forgotten.isdisjoint(ref.position for ref in node.refs) or not self._tainted.isdisjoint(node.children):
                self._tainted.add(key)
                lost.append(key)
        return lost

    async def _texts(self, entry: Entry) -> list[TextRecord]:
        keys = self._born.pop(entry.position, None)
        if not keys:
            return []
        found = (await self._store.read(Read(self._record.id, folds=sorted(keys)))).texts
        return [text for text in found if (text.branch, text.born) == entry.position]

    async def _folds(self, keys: Sequence[str]) -> Sequence[FoldRecord]:
        return (await self._store.read(Read(self._record.id, folds=keys))).folds if keys else ()


def _pages(at: int, head: int, marks: Set[int]) -> Iterator[tuple[int, int]]:
    """Stretches of entries, none longer than a page, each mark at the end of one."""
    first = at + 1
    for last in range(first, head + 1):
        if last in marks or last - first + 1 == PAGE or last == head:
            yield first, last
            first = last + 1


# -- import ------------------------------------------------------------------------------------------------------------


async def import_story(
    keeper: Keeper, lines: Iterable[str], *, key: MemoryKey | None = None, progress: Progress | None = None
) -> MemoryKey:  # fmt: skip
    """Makes the story that the lines tell, under its old key or the one given, and returns that key.

    Raises `InvalidInput` with the number of the line that does not fit, or where there is such a story already; nothing is left then."""
    rows = _parse(lines)
    number, kind, header = next(rows, (1, "", {}))
    _check_header(number, kind, header)
    key = rim.key(key if key is not None else MemoryKey(**header["key"]))
    if await keeper.store.load(key) is not None:
        raise InvalidInput(f"there is a story under the key {key.composite()!r} already: delete it first, or choose another key")
    mark = secrets.token_hex(16)
    record = await keeper.store.create(key, {**header["config"], UNFINISHED: mark})
    if record.config.get(UNFINISHED) != mark:
        raise Conflict(f"someone else has just made a story under the key {key.composite()!r}")
    try:
        await _Copy(keeper, record, header, progress).take_in(rows)
    except BaseException:
        await keeper.store.delete(key)
        raise
    return key


_HEADER = {"format": str, "version": int, "key": dict, "config": dict, "spending": dict, "health": dict}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "story": _HEADER,
    "branch": {"id": int, "name": str, "parent": int, "at": int},
    "channel": {"id": int, "hearers": list},
    "entry": {
        "branch": int, "seq": int, "kind": str, "speaker": str, "voice": str, "text": str, "channel": int, "location": str, "tokens": int,
        "counter": str, "time": (int, float), "id": str, "extra": dict,
    },
    "fold": {"key": str, "shape": dict, "sentences": list},
    "text": {"key": str, "branch": int, "born": int, "sentences": list},
    "checkpoint": {"branch": int, "seq": int},
    "end": dict.fromkeys(("story", "branch", "channel", "entry", "fold", "text", "checkpoint"), int),
}  # fmt: skip
_WORDS = {int: "a whole number", str: "a string", list: "a list", dict: "an object", (int, float): "a number"}
_OPTIONAL = {"branch": {"parent"}, "entry": {"location", "id", "extra"}, "end": {"channel", "entry", "fold", "text", "checkpoint"}}


def _bad(number: int, message: str) -> InvalidInput:
    return InvalidInput(f"line {number}: {message}")


_HALVES = re.compile(r"\\u[dD][89a-fA-F]")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse(lines: Iterable[str]) -> Iterator[tuple[int, str, Row]]:
    """The lines as numbered rows of known kinds, whose fields have the right types."""
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            row = json.loads(line, parse_constant=_no_constant)
            if _HALVES.search(line):
                json.dumps(row, ensure_ascii=False).encode()  # half a character by itself is no text
            kind = str(row.pop("type", None)) if isinstance(row, dict) else ""
            if kind not in _SHAPES:
                raise _bad(number, f"no line of a story: it needs a type out of {', '.join(_SHAPES)}, not {kind!r:.40}")
            _check_shape(number, kind, row)
            yield number, kind, row
    except UnicodeDecodeError as exc:
        raise _bad(number + 1, f"not UTF-8: {exc.reason}") from exc
    except UnicodeEncodeError as exc:
        raise _bad(number, "a lone surrogate is no valid Unicode") from exc
    except (json.JSONDecodeError, RecursionError, ValueError) as exc:
        if isinstance(exc, TalekeeperError):
            raise
        raise _bad(number, f"not JSON: {exc}") from exc


def _check_shape(number: int, kind: str, row: Row) -> None:
    shape, optional = _SHAPES[kind], _OPTIONAL.get(kind, set())
    for name, types in shape.items():
        if name not in row:
            if name not in optional:
                raise _bad(number, f"a line of type {kind!r} needs {name!r}")
        elif not isinstance(row[name], types) or isinstance(row[name], bool):
            raise _bad(number, f"{name!r} must be {_WORDS[types]}, not {row[name]!r:.60}")
    unknown = row.keys() - shape.keys()
    if unknown:
        raise _bad(number, f"a line of type {kind!r} has no {sorted(unknown)[0]!r}")


def _check_header(number: int, kind: str, header: Row) -> None:
    if kind != "story" or header["format"] != FORMAT:
        raise _bad(number, "this is no exported story: its first line says what it is")
    if header["version"] != VERSION:
        raise _bad(number, f"the file is of version {header['version']}, this program reads {VERSION}: upgrade")
    config = header["config"]
    try:
        rim.seats(seats_of(config))
        MemoryKey(**header["key"])
        Spending(**header["spending"])
        sound = all(isinstance(value, int) for value in header["spending"].values()) and isinstance(config["secret"], int)
        sound = sound and all(isinstance(since, dict) for since in config["since"].values())
    except (TypeError, KeyError, ValueError, AttributeError) as exc:
        raise _bad(number, f"the story's config cannot be understood: {exc}") from exc
    if not sound:
        raise _bad(number, "the story's config cannot be understood: secret, since and spending must be numbers")


class _Copy:
    """Fills a new story, line by line."""

    def __init__(self, keeper: Keeper, record: StoryRecord, header: Row, progress: Progress | None) -> None:
        self._keeper = keeper
        self._store = keeper.store
        self._counter = keeper.counter
        self._record = record
        self._header = header
        self._progress = progress or (lambda text: None)
        self._seats = {seat.id for seat in seats_of(header["config"])}
        self._branches: dict[int, Branch] = {}
        self._channels: dict[int, tuple[str, ...]] = {}
        self._heads: dict[int, int] = {}
        self._hot: Hot | None = None
        self._entries: list[Entry] = []
        self._texts: list[TextRecord] = []
        self._folds: list[FoldRecord] = []
        self._parted: dict[int, None] = {}  # branches with folds whose parts are not stored yet
        self._counts: Counter[str] = Counter({"story": 1})
        self._line = 1

    async def take_in(self, rows: Iterator[tuple[int, str, Row]]) -> None:
        """Takes in everything up to the last line, and makes the story a finished one."""
        take = {"entry": self._entry, "fold": self._fold, "text": self._text, "checkpoint": self._checkpoint}
        for self._line, kind, row in rows:
            if kind == "end":
                break
            self._counts[kind] += 1
            if kind in take:
                if not self._heads:
                    await self._begin()
                await take[kind](row)
            else:
                self._frame(kind, row)
            if self._line % 1000 == 0:
                self._progress(f"{self._line:,} lines")
        else:
            raise _bad(self._line + 1, "the file ends too early: its last line is missing")
        if row != dict(self._counts):
            raise _bad(self._line, f"the file is not whole: it had {row}, and has {dict(self._counts)}")
        if next(rows, None) is not None:
            raise _bad(self._line + 1, "there is more behind the last line")
        await self._finish()

    # -- branches and channels -------------------------------------------------------------------------------------------

    def _frame(self, kind: str, row: Row) -> None:
        if self._heads or kind == "story":
            raise _bad(self._line, f"a line of type {kind!r} cannot stand here")
        if kind == "branch":
            self._branch(Branch(**row))
        else:
            hearers = tuple(row["hearers"])
            known = all(isinstance(seat, str) and seat in self._seats for seat in hearers)
            if row["id"] in self._channels or hearers in self._channels.values() or not known:
                raise _bad(self._line, f"no channel of this story: {row['hearers']!r:.60}")
            self._channels[row["id"]] = hearers

    def _branch(self, branch: Branch) -> None:
        known = self._branches
        if branch.id in known or any(branch.name == other.name for other in known.values()):
            raise _bad(self._line, f"there are two branches {branch.name!r}")
        if (branch.parent is None and branch.at) or (branch.parent is not None and branch.parent not in known) or branch.at < 0:
            raise _bad(self._line, f"the branch {branch.name!r} leaves its parent where there is none")
        if not known and (branch.id, branch.parent) != (1, None):
            raise _bad(self._line, "the first branch must be number 1")
        known[branch.id] = branch

    async def _begin(self) -> None:
        """All branches and channels are known: entries may come."""
        if not self._branches:
            raise _bad(self._line, "entries come behind the branches")
        if all(branch.name != MAIN for branch in self._branches.values()):
            raise _bad(self._line, f"none of the branches before it is called {MAIN!r}: the story could not be opened without a name")
        self._heads = {branch.id: branch.at for branch in self._branches.values()}
        await self._write(branches=list(self._branches.values()), channels=self._channels)
        record = await self._store.load(self._record.key)
        assert record is not None
        self._record = record

    # -- what happened ---------------------------------------------------------------------------------------------------

    async def _entry(self, row: Row) -> None:
        entry = Entry(**{"location": None, **row})
        problem = self._problem(entry)
        if problem:
            raise _bad(self._line, problem)
        if self._texts or len(self._entries) >= PAGE or (self._entries and self._entries[-1].branch != entry.branch):
            await self._flush()
        self._entries.append(entry)
        self._heads[entry.branch] = entry.seq

    def _problem(self, entry: Entry) -> str | None:
        """What is wrong with an entry, beyond the types of its fields."""
        extra = entry.extra or {}
        if entry.branch not in self._heads:
            return f"there is no branch {entry.branch}"
        parent = self._branches[entry.branch].parent
        if parent is not None and self._branches[entry.branch].at > self._heads[parent]:
            return f"branch {entry.branch} leaves its parent behind its end"
        if entry.seq != self._heads[entry.branch] + 1:
            return f"entry {entry.seq} of branch {entry.branch} is not the next one, {self._heads[entry.branch] + 1}"
        if entry.kind not in HEARD_KINDS | AUTHOR_KINDS:
            return f"there is no kind {entry.kind!r}"
        if entry.channel not in self._channels or entry.speaker not in self._seats | {""}:
            return f"there is no channel {entry.channel}, or no seat {entry.speaker!r}"
        if not 0 <= entry.tokens < 1 << 31 or not abs(entry.time) < rim.LATEST:
            return f"no number of tokens, or no time: {entry.tokens!r:.40}, {entry.time!r:.40}"
        if entry.kind == "mark":
            return _problem_of_mark(entry)
        if "\0" in entry.text or not _is_about(extra):
            return "a text without NUL, names as lists of strings and a time of the story as a string are needed"
        if entry.kind in AUTHOR_KINDS and not isinstance(extra.get("target"), str):
            return f"an entry of kind {entry.kind!r} needs a target"
        if entry.kind in AUTHOR_KINDS - {"override"} and not _is_position(extra.get("at"), self._heads):
            return f"an entry of kind {entry.kind!r} needs the place of its target"
        return None

    async def _fold(self, row: Row) -> None:
        self._check_sentences(row["sentences"])
        fold = FoldRecord(**row)
        try:
            Node.from_record(fold)
        except (KeyError, TypeError, ValueError) as exc:
            raise _bad(self._line, f"no shape of a fold: {row['shape']!r:.60}") from exc
        self._folds.append(fold)
        if self._entries:
            self._parted[self._entries[-1].branch] = None

    async def _text(self, row: Row) -> None:
        self._check_sentences(row["sentences"])
        text = TextRecord(**row)
        if self._heads.get(text.branch) != text.born:
            raise _bad(self._line, f"a text must stand behind the entry it was born at, {text.born} of branch {text.branch}")
        self._texts.append(text)

    def _check_sentences(self, rows: Sequence[Any]) -> None:
        try:
            sound = all(isinstance(sentence.text, str) for sentence in unpack_sentences(rows))
            sound = sound and all(isinstance(row[1], list) and all(isinstance(source, str) for source in row[1]) for row in rows)
        except (IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise _bad(self._line, f"no sentences with their sources: {rows!r:.60}")

    async def _checkpoint(self, row: Row) -> None:
        if self._heads.get(row["branch"]) != row["seq"]:
            raise _bad(self._line, f"a checkpoint must stand behind its entry, {row['seq']} of branch {row['branch']}")
        await self._flush()
        hot = await self._replay(self._branches[row["branch"]].name)
        await hot.checkpoint()
        self._parted.pop(row["branch"], None)
        self._hot = None  # the next one begins at this snapshot

    async def _replay(self, branch: str) -> Hot:
        """The branch as far as it was written: proof that what was read makes a story."""
        if self._hot is None or self._hot.name != branch:
            self._hot = Hot(Shared(self._record.key, self._store, self._counter, self._record), branch)
        try:
            await self._hot.refresh()
        except TalekeeperError:
            raise
        except Exception as exc:
            raise _bad(self._line, f"the log up to here does not make a story ({type(exc).__name__}: {exc})") from exc
        return self._hot

    async def _flush(self) -> None:
        """Writes what has come together: entries first, then what was born behind them."""
        if self._entries or self._folds:
            await self._write(entries=self._entries, folds=self._folds)
        if self._texts:
            await self._write(texts=self._texts)
        self._entries, self._folds, self._texts = [], [], []

    async def _write(self, **parts: Any) -> None:
        try:
            await self._store.write(Commit(story=self._record.id, rev=self._record.rev, **parts))
        except (Conflict, InvalidInput) as exc:
            raise _bad(self._line, f"the lines up to here do not fit together: {exc}") from exc

    async def _finish(self) -> None:
        if not self._heads:
            await self._begin()
        await self._flush()
        for branch in self._branches.values():
            self._progress(f"branch {branch.name}")
            await self._replay(branch.name)
            if branch.id in self._parted:
                await self._store_folds(branch)
        spending = Spending(**self._header["spending"])
        await self._write(config=self._header["config"], spending=spending, health=self._header["health"], touch=True)

    async def _store_folds(self, branch: Branch) -> None:
        """Stores what the folds that came are made of, without a snapshot: the original has none there."""
        head = self._heads[branch.id]
        replay = Replay(self._keeper, self._record, branch, await snapshot_before(self._store, self._record, branch, head))
        await replay.go(head)
        derived = await replay.derive()
        if derived is not None:
            await self._write(folds=derived.folds)


def _problem_of_mark(entry: Entry) -> str | None:
    """What is wrong with a mark. One that was forgotten has nothing left to be wrong."""
    extra = entry.extra or {}
    if not entry.text:
        return None
    kinds = {"topic": str, "rank": int | float, "keep": int, "target": list, "sources": list}
    kinds |= {"lasting": int | float} if "lasting" in extra else {}
    kinds |= {"drops": list} if "drops" in extra else {}
    wrong = [name for name, kind in kinds.items() if not isinstance(extra.get(name), kind)]
    if wrong:
        return f"a mark needs {wrong[0]!r} of another kind than {extra.get(wrong[0])!r:.40}"
    if not _are_rows(extra["sources"], str, str, int) or not all(isinstance(name, str) for name in extra["target"]):
        return f"a mark's sources must each be an id, a revision and a number: {extra['sources']!r:.60}"
    if not _are_rows([row for row in extra.get("drops", ()) if row], str, int, int | float, int, int):
        return f"no marks that could have been dropped: {extra['drops']!r:.60}"
    try:
        data = json.loads(entry.text)
    except ValueError:
        data = None
    return None if isinstance(data, dict) else "the text of a mark must be a JSON object"


def _are_rows(rows: Sequence[Any], *types: Any) -> bool:
    """Whether each is a list of values of these types."""
    return all(isinstance(row, list) and len(row) == len(types) and all(map(isinstance, row, types)) for row in rows)


def _is_about(extra: Mapping[str, Any]) -> bool:
    """Whether what stands beside a turn's text has the right types."""
    names = (*extra.get("mentions", ()), *extra.get("cites", ())) if _lists(extra) else (None,)
    return all(isinstance(name, str) for name in (*names, extra.get("when", "")))


def _lists(extra: Mapping[str, Any]) -> bool:
    return isinstance(extra.get("mentions", []), list) and isinstance(extra.get("cites", []), list)


def _is_position(value: object, heads: Mapping[int, int]) -> bool:
    return _are_rows([value], int, int) and 1 <= value[1] <= heads.get(value[0], 0)  # type: ignore[index]
