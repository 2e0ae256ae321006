"""The histories that the retention benchmark replays, read from the user's own files. None come with Talekeeper.

A folder has `locomo.json` and `crd3.json`, or one of them, packed with gzip or not; what is in them stands in docs/retention.md. Files are
checked as they are read: what is missing or of the wrong type is named by file and place.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from talekeeper.bench.evidence import Check, Together, Verbatim, forms, plain
from talekeeper.errors import InvalidInput
from talekeeper.recall.terms import words

T = TypeVar("T")

SUITES = ("locomo", "crd3")
_LEAST_WORDS = 8
"""A shorter turn says nothing by itself: it may stand in a context by chance."""
_LEAST_TERMS = 3


class Turn(NamedTuple):
    """A line of a history."""

    id: str
    speaker: str
    text: str
    time: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what must be in a context then."""

    text: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Turns, the questions about them, and what should be in a context though nobody asks."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    unasked: tuple[Check, ...]


def load(directory: Path, suites: Sequence[str]) -> dict[str, list[History]]:
    """The suites that are in the directory, or in the one folder within it that has any. `InvalidInput` where one cannot be read."""
    found = {suite: path for suite in suites if (path := _file(_folder(directory), suite)) is not None}
    missing = [f"{suite}.json.gz" for suite in suites if suite not in found]
    if missing and (not found or set(suites) != set(SUITES)):
        raise InvalidInput(f"no {' and no '.join(missing)} in {str(directory)!r}; docs/retention.md says what belongs there")
    return {suite: list(_READERS[suite](_Place(_decode(path), path.name))) for suite, path in found.items()}


def _folder(directory: Path) -> Path:
    if not directory.is_dir():
        raise InvalidInput(f"no directory {str(directory)!r}")
    inner = [each for each in sorted(directory.iterdir()) if each.is_dir() and any(_file(each, suite) for suite in SUITES)]
    if any(_file(directory, suite) for suite in SUITES) or not inner:
        return directory
    if len(inner) > 1:
        raise InvalidInput(f"{str(directory)!r} has data in {' and in '.join(each.name for each in inner)}: name one of them")
    return inner[0]


def _file(directory: Path, suite: str) -> Path | None:
    return next((path for end in ("json.gz", "json") if (path := directory / f"{suite}.{end}").is_file()), None)


def _decode(path: Path) -> Any:
    try:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read: {exc}") from exc


class _Place(NamedTuple):
    """A value within a file, and where it stands."""

    value: Any
    where: str

    def get(self, name: str, kind: type[T] | tuple[type[T], ...]) -> T:
        """A field of the object that is here."""
        value = self._field(name)
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            wanted = "/".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            raise InvalidInput(f"{self.where}: {name!r} should be of type {wanted}, and is {value!r:.60}")
        return value

    def each(self, name: str) -> Iterator[_Place]:
        """The places of the list in that field."""
        rows: list[Any] = self.get(name, list)
        for number, row in enumerate(rows):
            yield _Place(row, f"{self.where}, {name}[{number}]")

    def _field(self, name: str) -> Any:
        if not isinstance(self.value, dict) or name not in self.value:
            raise InvalidInput(f"{self.where}: {name!r} is missing")
        return self.value[name]


def _turn(place: _Place) -> Turn:
    time = place.value.get("time") if isinstance(place.value, dict) else None
    return Turn(place.get("id", str), place.get("speaker", str), place.get("text", str), None if time is None else place.get("time", str))


# -- conversations with questions ----------------------------------------------------------------------------------------


def _read_locomo(file: _Place) -> Iterator[History]:
    for each in file.each("conversations"):
        turns = [(_turn(turn), turn) for turn in each.each("turns")]
        said = {turn.id: _said(turn, place) for turn, place in turns}
        questions = [_question(place, said) for place in each.each("questions") if place.get("scored", bool)]
        asked = tuple(question for question in questions if question.checks)
        unasked = tuple(check for question in asked for check in question.checks)
        yield History(each.get("id", str), tuple(turn for turn, _ in turns), asked, unasked)


def _said(turn: Turn, place: _Place) -> str:
    """The words that count as evidence: what was said, without what stands beside it, such as the caption of a photo."""
    said = plain(place.get("said", str)) if "said" in place.value else ""
    return said or plain(turn.text)


def _question(place: _Place, said: Mapping[str, str]) -> Question:
    evidence: list[Any] = place.get("evidence", list)
    unknown = [each for each in evidence if each not in said]
    if unknown:
        raise InvalidInput(f"{place.where}: evidence names {unknown[0]!r}, which is no turn of the conversation")
    return Question(place.get("question", str), tuple(Verbatim((said[each],)) for each in dict.fromkeys(evidence)))


# -- a campaign with summaries -------------------------------------------------------------------------------------------


def _read_crd3(file: _Place) -> Iterator[History]:
    turns = tuple(_turn(place) for place in file.each("turns"))
    facts: dict[str, list[_Place]] = defaultdict(list)
    for fact in file.each("facts"):
        facts[fact.get("chunk", str)].append(fact)
    questions = [_cue(chunk, facts[chunk.get("id", str)], turns) for chunk in file.each("chunks") if chunk.get("story", bool)]
    unasked = tuple(Together(_terms(fact)) for each in facts.values() for fact in each if fact.get("scored", bool))
    yield History("campaign", turns, tuple(question for question in questions if question is not None), unasked)


def _terms(fact: _Place) -> dict[str, float]:
    terms: dict[str, Any] = fact.get("terms", dict)
    within = _Place(terms, f"{fact.where}, terms")
    return {term: float(within.get(term, (int, float))) for term in terms}


def _cue(chunk: _Place, facts: Sequence[_Place], turns: Sequence[Turn]) -> Question | None:
    """The first sentence of a summary asks for the rest of it: for what it has in new words, and for a turn that it was made from."""
    if len(facts) < 2:
        return None
    cue = facts[0].get("text", str)
    known = set(words(cue))
    sought = {term: weight for fact in facts[1:] if fact.get("scored", bool) for term, weight in _terms(fact).items()}
    new = {term: weight for term, weight in sought.items() if known.isdisjoint(forms(term))}
    if len(new) < _LEAST_TERMS:
        return None
    spoken = [plain(turn.text) for turn in turns[chunk.get("start", int) : chunk.get("end", int) + 1]]
    long = tuple(text for text in spoken if text.count(" ") >= _LEAST_WORDS - 1)
    return Question(cue, (Together(new), *([Verbatim(long)] if long else [])))


_READERS = {"locomo": _read_locomo, "crd3": _read_crd3}
