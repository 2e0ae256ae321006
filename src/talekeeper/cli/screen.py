"""What a terminal gets to see: safe text, measured and wrapped; rules, tables and bars.

Story text comes from players and models: control characters are shown, never sent. Nothing here knows what a story is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import click

WIDEST = 100
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_STYLES = re.compile("\x1b\\[[0-9;]*m")
_SHADES = "█▓▒░"


def safe(text: str) -> str:
    """The text with every character that could move a cursor, ring a bell or turn lines around shown as its code."""
    return _UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 256 else f"\\u{ord(found[0]):04x}", text)


def in_quotes(text: str) -> str:
    """The text as a name in a sentence."""
    return f"'{safe(text)}'"


def for_a_shell(text: str) -> str:
    """The text as it can be copied into a command."""
    return safe(shlex.quote(text))


def one_line(text: str, most: int = 1 << 30) -> str:
    """The text on one line, cut where it is too wide."""
    return cut(" ".join(safe(text).split()), most)


def cut(text: str, most: int) -> str:
    if width(text) <= most:
        return text
    taken, room = "", most - 1
    for character in text:
        room -= width(character)
        if room < 0:
            break
        taken += character
    return f"{taken.rstrip()}…"


def width(text: str) -> int:
    """How many columns the text takes; styles take none."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(map(_columns, _STYLES.sub("", text)))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns() -> int:
    """How wide to write: the terminal, but not wider than a page."""
    return max(40, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))


def wrap(text: str, room: int) -> list[str]:
    """Lines of at most that many columns; words are kept whole where they can be. Scripts without spaces break anywhere."""
    lines: list[str] = []
    for paragraph in text.expandtabs(4).split("\n"):
        line, size = "", 0
        for piece in _pieces(paragraph, room):
            wide = width(piece)
            if line and size + width(piece.rstrip()) > room:
                lines.append(line.rstrip())
                line, size = "", 0
                piece = piece.lstrip()
                wide = width(piece)
            line, size = line + piece, size + wide
        lines.append(line.rstrip())
    return lines


def _pieces(paragraph: str, room: int) -> Iterator[str]:
    """Words with the blanks behind them; single characters of words that have no blanks or are too long for a line."""
    for word in re.findall(r"\S+\s*|\s+", paragraph):
        if width(word) > room or any(unicodedata.east_asian_width(character) in "WF" for character in word):
            yield from word
        else:
            yield word


def pad(text: str, room: int) -> str:
    return text + " " * max(0, room - width(text))


def hang(head: str, text: str, indent: int, room: int | None = None) -> str:
    """A paragraph behind a head of `indent` columns. Wrapped on a terminal only, so that other programs see whole lines."""
    if room is None:
        room = columns() if sys.stdout.isatty() else 1 << 30
    lines = wrap(safe(text), max(20, room - indent))
    return "\n".join([pad(head, indent) + lines[0], *(" " * indent + line for line in lines[1:])]).rstrip()


def rule(title: str = "", room: int | None = None) -> str:
    """A line across the page, with a title in it."""
    room = columns() if room is None else room
    return f"── {title} {'─' * max(3, room - width(title) - 4)}" if title else "─" * room


def table(rows: Sequence[Sequence[object]], heads: Sequence[str], right: str = "") -> list[str]:
    """Aligned columns under dim heads, a line for each row; `right` has an "r" for each column to be set to the right."""
    cells = [[str(cell).replace("\n", "\\n").replace("\t", "\\t") for cell in row] for row in rows]
    wide = [max(width(head), *(width(row[at]) for row in cells)) if cells else width(head) for at, head in enumerate(heads)]

    def line(row: Sequence[str]) -> str:
        parts = [
            " " * (wide[at] - width(cell)) + cell if at < len(right) and right[at] == "r" else pad(cell, wide[at])
            for at, cell in enumerate(row)
        ]
        return "  ".join(parts).rstrip()

    return [dim(line(list(heads))), *(line(row) for row in cells)]


def bar(parts: Sequence[int], whole: int, room: int) -> str:
    """The parts of a whole as one bar, each in its own shade; dots for what is free. What is there at all shows."""
    whole = max(whole, sum(parts), 1)
    drawn, filled, ends = "", 0, 0.0
    for at, part in enumerate(parts):
        ends += part / whole * room
        size = max(1 if part else 0, round(ends) - filled)
        drawn += colour(shade(at) * size, at)
        filled += size
    return drawn + dim("·" * (room - filled))


def shade(at: int) -> str:
    return _SHADES[at % len(_SHADES)]


_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


def colour(text: str, at: int) -> str:
    return _styled(text, fg=_COLOURS[at % len(_COLOURS)])


def dim(text: str) -> str:
    return _styled(text, dim=True)


def bold(text: str) -> str:
    return _styled(text, bold=True)


def alarm(text: str) -> str:
    return _styled(text, fg="red")


def _styled(text: str, **how: Any) -> str:
    return text if is_plain() else click.style(text, **how)


def is_plain() -> bool:
    """Whether there is to be nothing but text."""
    return bool(os.environ.get("NO_COLOR")) or is_dumb()


def is_dumb() -> bool:
    """Whether the terminal can do nothing but show text."""
    return os.environ.get("TERM") == "dumb"


def count(number: int, thing: str, things: str | None = None) -> str:
    """3 turns, 1 turn, 1,204 tokens."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def use_colour(stream: object = None) -> bool:
    """Whether colours are welcome: on a terminal, unless NO_COLOR says otherwise."""
    isatty = getattr(stream or sys.stdout, "isatty", lambda: False)
    return bool(isatty()) and not is_plain()


class Status:
    """One line on stderr that says what is going on, and is gone afterwards. Silent where stderr is no terminal, or one that cannot take
    a line back."""

    def __init__(self) -> None:
        self._shown = False

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty() and not is_dumb():
            self._shown = True
            sys.stderr.write(f"\r\x1b[2K{dim(one_line(text, columns() - 1)) if use_colour(sys.stderr) else one_line(text, columns() - 1)}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def __enter__(self) -> Status:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()


class Prose:
    """Writes text as it comes, wrapped at words; control characters are shown, never sent."""

    def __init__(self) -> None:
        self._room = columns() if sys.stdout.isatty() else 1 << 30
        self._at = 0
        self._word = ""
        self._begun = False

    def write(self, text: str) -> None:
        for character in safe(text):
            if character.isspace():
                self._put()
                if character == "\n" and self._begun:
                    self._break()
            else:
                self._word += character

    def close(self) -> None:
        self._put()
        if self._begun:
            click.echo("")

    def _put(self) -> None:
        if not self._word:
            return
        wide = width(self._word)
        if self._at and self._at + 1 + wide > self._room:
            self._break()
        click.echo(" " + self._word if self._at else self._word, nl=False)
        sys.stdout.flush()
        self._at += wide + (1 if self._at else 0)
        self._word, self._begun = "", True

    def _break(self) -> None:
        click.echo("")
        self._at = 0
