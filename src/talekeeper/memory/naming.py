"""Who is meant by a name: whole words, by any of their names. "Elena" is Elena Swift; "Al" is not in "wall"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from talekeeper.kept import kept
from talekeeper.model import Seat, Turn
from talekeeper.story.inside import read_once
from talekeeper.story.remembering import Remembering
from talekeeper.summarize.words import listed, normalise

_TITLES = frozenset({
    "the", "a", "an", "of", "and", "der", "die", "das", "von", "zu", "le", "la", "les", "de", "du", "des", "el", "los", "las", "del",
    "y", "captain", "sir", "lady", "lord", "master", "mistress", "king", "queen", "prince", "princess", "duke", "duchess", "count",
    "countess", "baron", "baroness", "brother", "sister", "father", "mother", "old", "young", "uncle", "aunt", "doctor", "dr", "mr",
    "mrs", "ms", "miss", "madam", "madame", "saint", "st", "herr", "frau", "monsieur", "señor", "señora", "don", "doña",
})  # fmt: skip
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def names_of(seat: Seat) -> tuple[str, ...]:
    """All that the seat is called: its label, its id, its aliases, and each part of its name that is not a title."""
    full = dict.fromkeys((seat.label, seat.id.replace("_", " ").replace("-", " "), *seat.aliases))
    parts = (part for name in (seat.label, *seat.aliases) for part in name.split() if _stands_alone(part))
    return tuple(dict.fromkeys((*full, *parts)))


def _stands_alone(part: str) -> bool:
    return part[:1].isupper() and len(part) > 1 and part.casefold().rstrip(".") not in _TITLES


def named_in(text: str, names: Iterable[str]) -> bool:
    """Whether any of the names stands in the text as words of their own."""
    return _pattern(tuple(names)).search(text) is not None


@kept(512)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    forms = [_form(name) for name in sorted(names, key=len, reverse=True) if name.strip()]
    return re.compile("|".join(forms) if forms else r"(?!)", re.IGNORECASE)


def _form(name: str) -> str:
    escaped = r"\s+".join(re.escape(word) for word in name.split())
    return escaped if _SPACELESS.search(name) else rf"(?<!\w){escaped}(?!\w)"


@kept(4096)
def key_of(name: str) -> str:
    """The words that tell a name from others, for comparing: "hob grist" of "Sergeant Hob Grist". A name of titles alone keeps them."""
    if _SPACELESS.search(name):
        return name.strip()
    norms = [norm for piece in name.split() if (norm := normalise(piece))]
    return " ".join([norm for norm in norms if not _is_title(norm)] or norms)


def _is_title(norm: str) -> bool:
    return norm in _TITLES or norm in listed("person")


class Cast:
    """Which seat is meant by a key: by one of its names, else by a part of one, or by more than one, that is no other seat's."""

    def __init__(self, seats: Iterable[Seat]) -> None:
        self._names = [
            (seat.id, frozenset(key.split())) for seat in seats for name in (seat.label, seat.id, *seat.aliases) if (key := key_of(name))
        ]
        self._known: dict[str, str | None] = {}

    def seat(self, key: str) -> str | None:
        """The id of the seat, if it is plain."""
        if key not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            self._known[key] = self._look(frozenset(key.split()))
        return self._known[key]

    def _look(self, words: frozenset[str]) -> str | None:
        for fits in (frozenset.__eq__, frozenset.__lt__, frozenset.__gt__):
            found = {seat for seat, name in self._names if fits(words, name)}
            if found:
                return found.pop() if len(found) == 1 else None
        return None


cast_of = kept(256)(Cast)
"""The same cast for the same seats."""


class SpeakersRead:
    """Who was heard. A `Gathering`."""

    name = "speakers.1"

    def read(self, turns: Sequence[Turn]) -> list[str]:
        """Those who speak, come or go in some turns."""
        return sorted({turn.speaker for turn in turns if turn.speaker})

    def merge(self, parts: Sequence[list[str]]) -> list[str]:
        """All of them; there are no more than seats."""
        return sorted({speaker for part in parts for speaker in part})


async def met_seats(story: Remembering, seat: str, *more: str | None) -> tuple[Seat, ...]:
    """The seats that this one has heard, itself, and some more: that there are others must not show in what it is told (I3)."""
    known = {*await read_once(story, ("speakers", seat), lambda: story.gather(seat, SpeakersRead())), seat, *more}
    return tuple(other for other in story.seats if other.id in known)
