"""How the nouns of the port become rows and search tokens of the SQLite store, and back."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from talekeeper.errors import StoreCorrupt, StoreError
from talekeeper.ports import Branch, Entry, FoldRecord, GatheredRecord, Outline, Postings, TextRecord, new_entry

STORY_BITS, BRANCH_BITS, SEQ_BITS = 21, 18, 24
MAX_STORY, MAX_BRANCH, MAX_SEQ = (1 << STORY_BITS) - 1, (1 << BRANCH_BITS) - 1, (1 << SEQ_BITS) - 1
FIRST_BRANCH = 1

Row = tuple[Any, ...]
T = TypeVar("T")

_new_outline = partial(tuple.__new__, Outline)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value: {value!r}")


encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
decode = json.JSONDecoder().decode


def decode_as(kind: type[T], text: str) -> T:
    """The value of a text, which must be of that kind: what is no JSON and what is other JSON are the same damage."""
    value = decode(text)
    if type(value) is not kind:
        raise json.JSONDecodeError(f"expected a {kind.__name__}", "", 0)
    return value


def pack(story: int, branch: int, seq: int) -> int:
    """The number under which an entry is kept. Raises `StoreError` where it does not fit any more."""
    if not (0 < story <= MAX_STORY and 0 <= branch <= MAX_BRANCH and 0 <= seq <= MAX_SEQ):
        raise StoreError(
            f"entry {seq} of branch {branch} of story {story} does not fit: a file holds {MAX_STORY} stories, "
            f"a story {MAX_BRANCH} branches, a branch {MAX_SEQ} entries; begin a new one"
        )
    return story << BRANCH_BITS + SEQ_BITS | branch << SEQ_BITS | seq


def span(story: int, branch: int, first: int = 0, last: int = MAX_SEQ) -> tuple[int, int]:
    """The range of numbers that entries `first` … `last` of a branch have; an empty range where there can be none."""
    if not (0 < story <= MAX_STORY and 0 <= branch <= MAX_BRANCH):
        return 1, 0
    start = story << BRANCH_BITS + SEQ_BITS | branch << SEQ_BITS
    return start + max(first, 0), start + min(last, MAX_SEQ)


def whole(story: int) -> tuple[int, int]:
    """The range of numbers that all entries of a story have."""
    return story << BRANCH_BITS + SEQ_BITS, (story + 1 << BRANCH_BITS + SEQ_BITS) - 1


def entry_row(pos: int, entry: Entry) -> Row:
    extra = entry.extra
    return (pos, *entry[2:12], encode(extra)) if extra else (pos, *entry[2:12], None)


def entries_of(rows: Iterable[Row]) -> list[Entry]:
    """Entries from their rows. What they have beside their text is often the same for many: it is parsed once, and shared."""
    parsed = _Parsed()
    return [new_entry((row[0] >> SEQ_BITS & MAX_BRANCH, row[0] & MAX_SEQ, *row[1:11], parsed[row[11]])) for row in rows]


def outlines_of(rows: Iterable[Row]) -> list[Outline]:
    parsed = _Parsed()
    return [
        _new_outline((pos >> SEQ_BITS & MAX_BRANCH, pos & MAX_SEQ, kind, voice, channel, tokens, blank == 1, own_id, parsed[extra]))
        for pos, kind, voice, channel, tokens, blank, own_id, extra in rows
    ]


class _Parsed(dict[str | None, Any]):
    """What entries have beside their text, each distinct one parsed once."""

    def __missing__(self, extra: str | None) -> Any:
        value = self[extra] = None if extra is None else decode_as(dict, extra)
        return value


def branch_row(story: int, branch: Branch) -> Row:
    return story, branch.id, branch.name, branch.parent, branch.at


def fold_of(row: Row) -> FoldRecord:
    key, shape, sentences = row
    return FoldRecord(key, decode_as(dict, shape), decode_as(list, sentences))


def text_of(row: Row) -> TextRecord:
    key, branch, born, sentences = row
    return TextRecord(key, branch, born, decode_as(list, sentences))


def gathered_of(row: Row) -> GatheredRecord:
    key, name, value = row
    return GatheredRecord(key, name, decode(value))


_PLAIN = re.compile(r"[a-z0-9_\x80-\U0010ffff ]*")
_LONGEST = 64


def token(story: int, term: str) -> str:
    """What stands for a story's term in the index: the term itself, or a hash where FTS5 would split, fold or clip it."""
    if term and " " not in term and len(term) <= _LONGEST and _PLAIN.fullmatch(term):
        return f"{story:x}.{term}"
    return f"{story:x}.-{hashlib.blake2b(term.encode(), digest_size=16).hexdigest()}"


def tokens(story: int, channel: int, terms: Iterable[str]) -> str:
    """The text to index for an entry: each of its terms once."""
    unique = dict.fromkeys(terms)
    text = " ".join(unique)
    blanks, longest = text.count(" "), max(map(len, unique), default=0)
    if blanks == len(unique) - 1 and "" not in unique and longest <= _LONGEST and _PLAIN.fullmatch(text):
        return f"{story:x}." + f".{channel} {story:x}.".join(unique) + f".{channel}"  # quick: that is how nearly all of them are
    return " ".join(f"{token(story, term)}.{channel}" for term in unique)


def postings(channel: int, offsets: str) -> list[Postings]:
    """Postings from the numbers of entries, counted from where the story's first branch begins and joined with commas."""
    numbers: list[int] = decode(f"[{offsets}]")
    numbers.sort()
    if numbers[0] < 0:
        raise StoreCorrupt("the file is damaged: its index names what is no entry of the story; run `talekeeper doctor`, restore a backup")
    if numbers[-1] <= MAX_SEQ:
        return [Postings(FIRST_BRANCH, channel, array("I", numbers))]
    branches = groupby(numbers, key=lambda number: number >> SEQ_BITS)
    return [Postings(FIRST_BRANCH + branch, channel, array("I", [number & MAX_SEQ for number in each])) for branch, each in branches]
