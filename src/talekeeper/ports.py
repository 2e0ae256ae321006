"""The doors to the outside: where stories are kept, who counts tokens, who summarises, what time it is.

The store keeps what happened (entries of the log), and beside it what was derived from it (folds, model texts, what was
gathered, snapshots, the search index). Everything derived can be made again from the log, with one exception: what a model wrote.

Positions: a *branch* is a segment of the log that left its parent after `at`; its own entries are numbered `at + 1`, `at + 2`, …
without gaps. Branch numbers are never reused and a branch never loses its tail, so (branch, seq) names an entry for ever.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from talekeeper.errors import InvalidInput, UnknownBranch
from talekeeper.model import MemoryKey

Message: TypeAlias = Mapping[str, str]
"""One chat message: `{"role": "system" | "user" | "assistant", "content": "…"}`."""

ChatModel: TypeAlias = Callable[[Sequence[Message]], Awaitable[str]]
"""Any chat model: an async callable from messages to text. It may raise; it may hang; it is never trusted."""

_NONE: Mapping[Any, Any] = MappingProxyType({})


class TokenCounter(Protocol):
    """Counts tokens: the same text always alike, an empty one as 0.

    `id` is stored with each count, and what another counter has counted is counted again: it changes when the counts do. `additive`
    promises that the counts of lines, each with its newline, add up to the count of the text; without it, contexts are counted as a whole,
    which takes longer."""

    @property
    def id(self) -> str: ...
    @property
    def additive(self) -> bool: ...
    def count(self, text: str) -> int: ...


Clock: TypeAlias = Callable[[], float]
"""Seconds since the epoch, for the log's own records; no clock ever reaches a context (I4)."""

wall_clock: Clock = time.time


class Position(NamedTuple):
    """Where an entry stands: its branch and its number on the way from the story's first turn."""

    branch: int
    seq: int


class Entry(NamedTuple):
    """One entry of the log as it is stored. `id` is None where the id follows from the position."""

    branch: int
    seq: int
    kind: str
    speaker: str
    voice: str
    text: str
    channel: int
    location: str | None
    tokens: int
    counter: str
    time: float
    id: str | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def position(self) -> Position:
        return Position(self.branch, self.seq)


new_entry: Callable[[tuple[Any, ...]], Entry] = partial(tuple.__new__, Entry)
"""An entry of all its fields, in fewer steps: one is made for every append and every row that is read."""


class Outline(NamedTuple):
    """An entry without its words: enough to rank it by. `blank`: there are none, because it was forgotten, or never had any."""

    branch: int
    seq: int
    kind: str
    voice: str
    channel: int
    tokens: int
    blank: bool
    id: str | None = None
    extra: Mapping[str, Any] | None = None


def targets(extra: Mapping[str, Any] | None) -> Sequence[str]:
    """What an entry is about, as its `extra` has it: nothing, one id, or several, each of them once."""
    target = extra.get("target", ()) if extra else ()
    return (target,) if isinstance(target, str) else tuple(dict.fromkeys(target))


MAIN = "main"
"""The branch that is opened where nobody names one: every story has it from its beginning, and for ever."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A segment of the log: `parent` is None where it begins at the beginning. The branch that bears a name is the one that name stands for
    now; a name is all that ever changes of a branch."""

    id: int
    name: str
    parent: int | None = None
    at: int = 0


def check_branches(known: Mapping[int, Branch], changed: Sequence[Branch]) -> None:
    """Raises what forbids a commit with these branches in a story that has the known ones: a branch that hangs in the air could never
    be read again, and of two of one name one could not be reached."""
    after = dict(known)
    for branch in changed:
        if branch.id not in after:
            if branch.parent is None and branch.at:
                raise InvalidInput(f"the branch {branch.name!r} begins behind entry {branch.at} of no branch: it needs a parent")
            if branch.parent is not None and branch.parent not in after:
                raise UnknownBranch(f"the branch {branch.name!r} cannot leave branch number {branch.parent}: there is none")
        after[branch.id] = branch
    bearers = Counter(branch.name for branch in after.values())
    for branch in changed:
        if bearers[branch.name] > 1:
            raise InvalidInput(f"two branches would have the name {branch.name!r}")


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """A fold's place in the tree and its extractive text. `key` is the hash of its sources: same key, same record, for ever."""

    key: str
    shape: Mapping[str, Any]
    sentences: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A text that a model wrote for the fold `key`, valid on every path that contains (branch, born)."""

    key: str
    branch: int
    born: int
    sentences: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class GatheredRecord:
    """What the gathering `name` found over the fold `key` after that was stored. A cache: reading the fold's turns gives the same."""

    key: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the log adds up to at (branch, seq). A cache: replaying the log gives the same."""

    branch: int
    seq: int
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spending:
    """What summarising has cost, to be added to the story's account."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failures: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, self.failures + other.failures
        )


@dataclass(frozen=True, slots=True)
class StoryRecord:
    """A story without its log. `rev` grows with every change that is not a plain append; appends show in the branch's head."""

    id: int
    key: MemoryKey
    rev: int
    config: Mapping[str, Any]
    branches: Mapping[int, Branch]
    channels: Mapping[int, tuple[str, ...]]
    spending: Spending = Spending()
    health: Mapping[str, Any] = field(default_factory=dict)


class Head(NamedTuple):
    """The two numbers that tell whether a hot story is still fresh: the story's revision and the branch's last entry."""

    rev: int
    seq: int


@dataclass(frozen=True, slots=True)
class Span:
    """Entries `first` … `last` of one branch, both ends included, as far as the branch has them: `last` may be far behind its head."""

    branch: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Read:
    """What to fetch of one story. Empty fields ask for nothing, and what there is not is left out, be it the whole story."""

    story: int
    spans: Sequence[Span] = ()
    positions: Sequence[Position] = ()
    outlines: Sequence[Position] = ()
    """Of these entries the outlines alone, without their words."""
    ids: Sequence[str] = ()
    """Entries by the ids that their callers gave them."""
    folds: Sequence[str] = ()
    """Folds by their keys, with their texts and with what was gathered over them."""
    snapshot_on: Sequence[Span] = ()
    """A path, as spans from the newest to the oldest, to find the newest snapshot on."""
    targeting: Sequence[str] = ()
    """Ids of turns and keys of folds, to find the entries that are about them."""
    all_folds: bool = False
    """All folds of the story, whatever `folds` names."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was fetched, as lists.

    `entries`: those of the spans, then of the positions, of the ids, and those whose `extra["target"]` (a string, or a list of them) is one
    of `targeting`, on any branch. Each part is in the order in which it was asked for; the entries of one span and of one target are in
    that of branches and numbers. What is asked for twice comes twice.
    `outlines`: of the positions asked for, in no particular order.
    `folds`: in the order of the keys; in no particular order where all are asked for. `texts` and `gathered`: what models wrote for these
    folds and what was gathered over them, in no particular order.
    `snapshot`: the newest one on the given path (spans newest first).
    """

    entries: Sequence[Entry] = ()
    outlines: Sequence[Outline] = ()
    folds: Sequence[FoldRecord] = ()
    texts: Sequence[TextRecord] = ()
    gathered: Sequence[GatheredRecord] = ()
    snapshot: Snapshot | None = None


class Extent(NamedTuple):
    """What someone has looked through before erasing: so many folds that the story had, and so many entries that target one of `about`.
    Both only grow, but for erasures."""

    folds: int
    about: Sequence[str] = ()
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Erase:
    """What leaves the store physically: entries are replaced by what is left of them (ids and targets that are not left can be found no
    more, and such an id is free again), folds go with their model texts and with what was gathered over them, and all of the story's
    snapshots go if `snapshots` says so. Of the positions in `index` all index rows go; the terms that they were made of are there for
    stores that need them. What is not there is passed over.

    The write raises `Conflict` where there is more by now than the `extent` has, since it may have to go as well."""

    entries: Sequence[Entry] = ()
    folds: Sequence[str] = ()
    index: Mapping[Position, Collection[str]] = field(default_factory=dict)
    snapshots: bool = False
    extent: Extent | None = None


class Commit(NamedTuple):
    """One atomic write to one story: all of it, or nothing. (A named tuple, because one is made for every append.)

    `rev` is the revision the writer last saw. The write raises `Conflict` when the story has another by now, when an entry's place is
    taken or is not right behind its branch's head, when an entry's id is taken, and when a branch in `heads` has another head or is not
    there. It raises `UnknownBranch` when an entry is for a branch that is not there.
    `touch` makes a new revision; nothing else does. Branches come before heads and entries: a commit may fill a branch that it makes. A new
    branch leaves one that is there already or comes before it in the commit, unless it begins at 0, and no two have one name: else the
    write raises what `check_branches` does. One that is there already gets its new name.
    `channels` are added. `config` and `health` take the place of the old ones, `spending` is added to the story's.
    `erase` comes first. Folds, snapshots (by branch and number) and index rows (by position) are cached by key: writing one that is there
    already changes nothing, and an index row of an entry that is not there is dropped. A text is written once per (key, branch): the second
    writer's is dropped. So is what was gathered, per (key, name), and where there is no such fold: it may have been erased since.
    """

    story: int
    rev: int
    entries: Sequence[Entry] = ()
    touch: bool = False
    heads: Mapping[int, int] = _NONE
    channels: Mapping[int, tuple[str, ...]] = _NONE
    branches: Sequence[Branch] = ()
    config: Mapping[str, Any] | None = None
    folds: Sequence[FoldRecord] = ()
    texts: Sequence[TextRecord] = ()
    gathered: Sequence[GatheredRecord] = ()
    snapshot: Snapshot | None = None
    index: Mapping[Position, Collection[str]] = _NONE  # type: ignore[assignment]
    erase: Erase | None = None
    spending: Spending | None = None
    health: Mapping[str, Any] | None = None


ENTRIES_ONLY = Commit(0, 0)[3:]
"""What follows the entries in a commit that is nothing but entries."""


class Postings(NamedTuple):
    """The entries of one branch that contain a term and were heard by one channel: their numbers, ascending. A column, because a common
    word has thousands of them."""

    branch: int
    channel: int
    seqs: Sequence[int]


class Store(Protocol):
    """Keeps stories. Safe for concurrent use from one event loop; any number of processes may share what is behind it.

    Durable: when `write` returns, the data survives the death of the process. Atomic: a reader sees a commit wholly or not at all.
    Exact: whatever is made of JSON values comes back as it was, and so does every `str` of an entry. What was derived is the store's own
    once it was written: whoever changes it afterwards changes nothing here. Keys never meet: everything below the key is addressed by the
    story's number, which is never reused.

    Errors are those of `talekeeper.errors`; a failed write has changed nothing. `head` and `write` raise `UnknownStory` for a story that is
    not there (it was deleted), `read` and `search` find nothing of it. `StoreError` and its kinds are for what the place itself cannot do:
    it is full, busy, damaged, or a story has outgrown it. A caller who is cancelled may have written or not. Limits: no text has a NUL
    byte in it, that of an entry has at most 100 KB, and its number fits 32 bits.
    """

    async def create(self, key: MemoryKey, config: Mapping[str, Any]) -> StoryRecord:
        """The story under the key, made with `config` and the branch 1 "main" if it was not there (then `config` is ignored)."""
        ...

    async def load(self, key: MemoryKey) -> StoryRecord | None:
        """The story under the key, if there is one."""
        ...

    async def keys(self, tenant_id: str | None = None) -> list[MemoryKey]:
        """The keys of all stories, or of a tenant's, sorted."""
        ...

    async def head(self, story: int, branch: int) -> Head:
        """The revision, and the branch's last entry (its `at` where it has none). Cheap: asked before every context.

        Raises `UnknownStory` where the story was deleted, and `UnknownBranch`."""
        ...

    async def read(self, request: Read) -> Found:
        """What the request names, from one consistent state."""
        ...

    async def write(self, commit: Commit) -> int:
        """Makes the commit durable and returns the story's revision after it."""
        ...

    async def search(self, story: int, terms: Sequence[str]) -> list[list[Postings]]:
        """For each term, in their order, the indexed entries that contain it: per branch and channel that has any, once, in no particular
        order. Terms are any texts, and a term is found by itself alone, to the letter."""
        ...

    async def delete(self, key: MemoryKey) -> bool:
        """Removes the story and everything of it, physically. False where there was none."""
        ...

    async def close(self) -> None:
        """Finishes what was accepted and lets go of the resources; once more does nothing. Further calls raise `StoreClosed`."""
        ...
