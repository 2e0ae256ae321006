"""Whether a text speaks of someone: whole words, by any of their names. "Elena" is Elena Swift; "Al" is not in "wall"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from talekeeper.model import Seat

_TITLES = frozenset(
    re.findall(
        r"\w+",
        "the a an of and der die das von zu le la les de du des el los las del y captain sir lady lord master mistress king queen "
        "prince princess duke duchess count countess baron baroness brother sister father mother old young uncle aunt doctor dr "
        "mr mrs ms miss saint st herr frau monsieur madame señor señora don doña ",
    )
)
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


@lru_cache(maxsize=512)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    forms = [_form(name) for name in sorted(names, key=len, reverse=True) if name.strip()]
    return re.compile("|".join(forms) if forms else r"(?!)", re.IGNORECASE)


def _form(name: str) -> str:
    escaped = r"\s+".join(re.escape(word) for word in name.split())
    return escaped if _SPACELESS.search(name) else rf"(?<!\w){escaped}(?!\w)"
