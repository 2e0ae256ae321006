"""Story times: what a text says of when, in several ways of writing it, and what is near."""

from __future__ import annotations

from datetime import date

import pytest

from talekeeper.recall.times import near, times_in

MAY_8 = date(2023, 5, 8).toordinal()


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-08T13:56", "8 May 2023", "on the 8th of May 2023", "May 8, 2023", "may 8th 2023", "8. Mai 2023", "8 mai 2023",
        "8 de mayo de 2023", "8 мая 2023", "2023年5月8日", "2023/5/8", "What happened on 8 May, 2023?",
    ],
)  # fmt: skip
def test_a_day_is_read_however_it_is_written(text: str) -> None:
    assert times_in(text).days == ((MAY_8, MAY_8),)


@pytest.mark.parametrize(
    ("text", "last"), [("in May 2023", date(2023, 5, 31)), ("December 2023", date(2023, 12, 31)), ("2024年2月", date(2024, 2, 29))]
)
def test_a_month_is_all_of_its_days(text: str, last: date) -> None:
    assert times_in(text).days == ((last.replace(day=1).toordinal(), last.toordinal()),)


@pytest.mark.parametrize("text", ["", "no time at all", "31 February 2023", "they may 2 times", "4,711 crowns", "12:30"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert not times_in(text).days
    assert not times_in(text).counts


def test_counts_of_days_and_chapters_are_times_too() -> None:
    assert times_in("Day 3, dusk").counts == {("day", 3)}
    assert near(times_in("Day 3, dusk"), times_in("what happened on day 3?"))
    assert not near(times_in("Day 3, dusk"), times_in("what happened on day 4?"))
    assert not near(times_in("Day 3"), times_in("chapter 3"))


@pytest.mark.parametrize(("when", "query", "expected"), [
    ("2023-05-08T13:56", "in May 2023", True), ("2023-06-05", "in May 2023", True), ("2023-06-15", "in May 2023", False),
    ("2023-05-15", "8 May 2023", True), ("2023-05-16", "8 May 2023", False), ("2023-05-01", "8 May 2023", True), ("dusk", "8 May 2023", False),
])  # fmt: skip
def test_near_is_within_a_week(when: str, query: str, expected: bool) -> None:
    assert near(times_in(when), times_in(query)) is expected
