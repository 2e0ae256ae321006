"""A story out of a file, all of it or nothing: until the last line was read the new story is marked as unfinished and cannot be opened,
and a line that does not fit takes it away again.

Each line is held against what came before it, and what was written is replayed: proof that it makes a story.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from talekeeper import rim
from talekeeper.errors import Conflict, InvalidInput, TalekeeperError
from talekeeper.formats.jsonl import (
    PAGE,
    Row,
    are_sentences,
    bad_line,
    check_header,
    is_about,
    is_position,
    is_shape,
    parse,
    problem_of_mark,
)
from talekeeper.live.hot import Hot
from talekeeper.live.shared import UNFINISHED, Shared, seats_of
from talekeeper.model import AUTHOR_KINDS, HEARD_KINDS, MemoryKey
from talekeeper.ports import MAIN, Branch, Commit, Entry, FoldRecord, Spending, StoryRecord, TextRecord
from talekeeper.story.replay import Replay, snapshot_before

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper

Progress: TypeAlias = Callable[[str], None]


async def import_story(
    keeper: Keeper, lines: Iterable[str], *, key: MemoryKey | Callable[[MemoryKey], MemoryKey] | None = None,
    progress: Progress | None = None,
) -> MemoryKey:  # fmt: skip
    """Makes the story that the lines tell, and returns its key: the old one, the one given, or what that makes of the old one.

    Raises `InvalidInput` with the number of the line that does not fit, or where there is such a story already; nothing is left then."""
    rows = parse(lines)
    number, kind, header = next(rows, (1, "", {}))
    check_header(number, kind, header)
    old = MemoryKey(**header["key"])
    key = rim.key(key(old) if callable(key) else old if key is None else key)
    if await keeper.store.load(key) is not None:
        raise InvalidInput(f"there is a story under the key {key.composite()!r} already: delete it first, or choose another key (--story)")
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
            raise bad_line(self._line + 1, "the file ends too early: its last line is missing")
        if row != dict(self._counts):
            raise bad_line(self._line, f"the file is not whole: it had {row}, and has {dict(self._counts)}")
        if next(rows, None) is not None:
            raise bad_line(self._line + 1, "there is more behind the last line")
        await self._finish()

    # -- branches and channels -------------------------------------------------------------------------------------------

    def _frame(self, kind: str, row: Row) -> None:
        if self._heads or kind == "story":
            raise bad_line(self._line, f"a line of type {kind!r} cannot stand here")
        if kind == "branch":
            self._branch(Branch(**row))
        else:
            hearers = tuple(row["hearers"])
            known = all(isinstance(seat, str) and seat in self._seats for seat in hearers)
            known = known and list(hearers) == sorted(set(hearers))
            if row["id"] in self._channels or hearers in self._channels.values() or not known:
                raise bad_line(self._line, f"no channel of this story: {row['hearers']!r:.60}")
            self._channels[row["id"]] = hearers

    def _branch(self, branch: Branch) -> None:
        known = self._branches
        if branch.id in known or any(branch.name == other.name for other in known.values()):
            raise bad_line(self._line, f"there are two branches {branch.name!r}")
        if (branch.parent is None and branch.at) or (branch.parent is not None and branch.parent not in known) or branch.at < 0:
            raise bad_line(self._line, f"the branch {branch.name!r} leaves its parent where there is none")
        if not known and (branch.id, branch.parent) != (1, None):
            raise bad_line(self._line, "the first branch must be number 1")
        known[branch.id] = branch

    async def _begin(self) -> None:
        """All branches and channels are known: entries may come."""
        if not self._branches:
            raise bad_line(self._line, "entries come behind the branches")
        if all(branch.name != MAIN for branch in self._branches.values()):
            raise bad_line(self._line, f"none of the branches before it is called {MAIN!r}: the story could not be opened without a name")
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
            raise bad_line(self._line, problem)
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
            return problem_of_mark(entry)
        if "\0" in entry.text or not is_about(extra):
            return "a text without NUL, names as lists of strings and a time of the story as a string are needed"
        if entry.kind in AUTHOR_KINDS and not isinstance(extra.get("target"), str):
            return f"an entry of kind {entry.kind!r} needs a target"
        if entry.kind in AUTHOR_KINDS - {"override"} and not is_position(extra.get("at"), self._heads):
            return f"an entry of kind {entry.kind!r} needs the place of its target"
        return None

    async def _fold(self, row: Row) -> None:
        self._check_sentences(row["sentences"])
        fold = FoldRecord(**row)
        if not is_shape(fold.shape):
            raise bad_line(self._line, f"no shape of a fold: {fold.shape!r:.60}")
        self._folds.append(fold)
        if self._entries:
            self._parted[self._entries[-1].branch] = None

    async def _text(self, row: Row) -> None:
        self._check_sentences(row["sentences"])
        text = TextRecord(**row)
        if self._heads.get(text.branch) != text.born:
            raise bad_line(self._line, f"a text must stand behind the entry it was born at, {text.born} of branch {text.branch}")
        self._texts.append(text)

    def _check_sentences(self, rows: Sequence[Any]) -> None:
        if not are_sentences(rows):
            raise bad_line(self._line, f"no sentences with their sources: {rows!r:.60}")

    async def _checkpoint(self, row: Row) -> None:
        if self._heads.get(row["branch"]) != row["seq"]:
            raise bad_line(self._line, f"a checkpoint must stand behind its entry, {row['seq']} of branch {row['branch']}")
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
            raise bad_line(self._line, f"the log up to here does not make a story ({type(exc).__name__}: {exc})") from exc
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
            raise bad_line(self._line, f"the lines up to here do not fit together: {exc}") from exc

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
