"""Story times: what a text says of when, and whether two times are near each other. Pure, and without any clock.

A story's time is whatever its author writes: "2023-05-08T13:56", "8 May 2023", "Day 3, dusk", "episode 12". Two kinds of it can be
compared: dates of a calendar, by days, and counts of something ("day 3"), by being the same.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

from talekeeper.kept import kept
from talekeeper.summarize.words import Pattern

NEAR_DAYS = 7

_MONTHS = """
january jan januar janvier enero января
february feb februar février febrero февраля
march mar märz mars marzo марта
april apr avril abril апреля
may mai mayo мая
june jun juni juin junio июня
july jul juli juillet julio июля
august aug août agosto августа
september sep sept septembre septiembre сентября
october oct oktober octobre octubre октября
november nov novembre noviembre ноября
december dec dezember décembre diciembre декабря
"""
_MONTH = {name: number for number, names in enumerate(_MONTHS.split("\n")) for name in names.split()}
_NAMES = "|".join(sorted(_MONTH, key=len, reverse=True))
_YEAR = r"(?P<y{0}>[12]\d{{3}})"
_DAY = r"(?P<d{0}>[0-3]?\d)"
_DATE = Pattern(
    "|".join([
        rf"{_YEAR.format(1)}[-/.](?P<m1>[01]?\d)[-/.]{_DAY.format(1)}(?!\d)",
        rf"{_YEAR.format(2)}\s?年\s?(?P<m2>[01]?\d)\s?月(?:\s?{_DAY.format(2)}\s?日)?",
        rf"\b{_DAY.format(3)}(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?(?P<m3>{_NAMES})\b\.?,?\s+(?:de\s+)?{_YEAR.format(3)}\b",
        rf"\b(?P<m4>{_NAMES})\b\.?\s+{_DAY.format(4)}(?:st|nd|rd|th)?,?\s+{_YEAR.format(4)}\b",
        rf"\b(?P<m5>{_NAMES})\b\.?,?\s+(?:of\s+|de\s+)?{_YEAR.format(5)}\b",
    ]),
    re.IGNORECASE,
)  # fmt: skip
_COUNT = Pattern(r"\b([^\W\d_]{2,})\s+#?(\d{1,6})\b")


class Times(NamedTuple):
    """What a text says of when: runs of days by number, and counts such as ("day", 3)."""

    days: tuple[tuple[int, int], ...]
    counts: frozenset[tuple[str, int]]

    def __bool__(self) -> bool:
        return bool(self.days or self.counts)


@kept(1024)
def times_in(text: str) -> Times:
    """The times that a text names."""
    if not any(sign.isdecimal() for sign in text):
        return Times((), frozenset())
    dates = [run for match in _DATE.finditer(text) if (run := _days(match)) is not None]
    rest = _DATE.sub(" ", text).casefold()
    counts = frozenset((each[1], int(each[2])) for each in _COUNT.finditer(rest) if each[1] not in _MONTH)
    return Times(tuple(dates), counts)


def _days(match: re.Match[str]) -> tuple[int, int] | None:
    """The first and the last day of a date: a month without a day is all of its days."""
    named = {name[0]: value for name, value in match.groupdict().items() if value}
    month = int(named["m"]) if named["m"].isdigit() else _MONTH[named["m"].casefold()]
    year = int(named["y"])
    try:
        if "d" in named:
            day = date(year, month, int(named["d"])).toordinal()
            return day, day
        first = date(year, month, 1).toordinal()
        return first, date(year + month // 12, month % 12 + 1, 1).toordinal() - 1
    except ValueError:
        return None  # no such day


def near(one: Times, other: Times) -> bool:
    """Whether two times have a count in common, or dates within a week of each other."""
    if not one.counts.isdisjoint(other.counts):
        return True
    return any(a <= d + NEAR_DAYS and c <= b + NEAR_DAYS for a, b in one.days for c, d in other.days)
