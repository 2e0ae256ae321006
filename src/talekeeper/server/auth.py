"""Who may do what: bearer tokens, and what each of them grants.

A token grants one tenant, and within it all stories or some, and there either everything (`dm`) or the views of some seats. What a
request says of itself never widens that. Tokens are long random strings, so a plain SHA-256 of one is enough to keep; the file may hold
the tokens themselves where nobody but its owner can read it.

    [[token]]
    name = "ana"                            # how logs call it
    hash = "sha256:9f86d081…"               # or token = "tk_…", in a file that only its owner can read
    tenant = "acme"
    stories = ["ana.ash-crown"]             # all of the tenant's where it is left out
    seats = ["rogue"]                       # or dm = true

    [limits]                                # see `Limits`; all of it may be left out
    rate = 50.0

The file is read again when it changes, limits included. A file that cannot be read or understood grants nothing to anyone (I10).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import stat
import time
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from talekeeper import rim
from talekeeper.errors import InvalidInput
from talekeeper.server.limits import Limits

log = logging.getLogger("talekeeper.server")
PREFIX = "tk_"
SHORTEST = 32
"""A token of fewer characters could be guessed."""
LOOK_AGAIN = 1.0
"""Seconds between two looks at whether the file has changed."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows. `stories=None`: all of the tenant's. A grant without `dm` and without `seats` opens no story."""

    name: str
    tenant: str
    dm: bool = False
    seats: frozenset[str] = frozenset()
    stories: frozenset[str] | None = None
    metrics: bool = False

    def opens(self, story: str) -> bool:
        """Whether the story of that id is among those granted."""
        return (self.dm or bool(self.seats)) and (self.stories is None or story in self.stories)


def new_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What is kept of a token."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    """All tokens that are known, by their digests."""

    def __init__(self, grants: Mapping[str, Grant], limits: Limits | None = None) -> None:
        self._grants = dict(grants)
        self.limits = limits or Limits()

    @property
    def readable(self) -> bool:
        """Whether it is known who may do what."""
        return True

    def find(self, token: str) -> Grant | None:
        """What the token grants; None where it is none of ours. Takes as long for any token."""
        wanted = digest(token)
        found = None
        for known, grant in self._grants.items():
            if hmac.compare_digest(known.encode(), wanted.encode()):
                found = grant
        return found


class TokenFile(Tokens):
    """The tokens in a file, as they are now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked = time.monotonic()
        self._readable = True
        self._seen = self._stamp()
        super().__init__(*read_tokens(path))

    @property
    def readable(self) -> bool:
        self._refresh()
        return self._readable

    def find(self, token: str) -> Grant | None:
        self._refresh()
        return super().find(token)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_mode

    def _refresh(self) -> None:
        if time.monotonic() - self._looked < LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        seen = self._stamp()
        if seen == self._seen and self._readable:
            return
        self._seen = seen
        try:
            self._grants, self.limits = read_tokens(self._path)
            self._readable = True
        except (InvalidInput, OSError) as exc:
            self._grants, self._readable = {}, False
            log.error("tokens cannot be read", extra={"file": str(self._path), "error": str(exc)})


# -- the file ----------------------------------------------------------------------------------------------------------


def read_tokens(path: Path) -> tuple[dict[str, Grant], Limits]:
    """The tokens and limits of a file. Raises `InvalidInput` where it cannot be trusted or understood."""
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInput(f"others may write to {str(path)!r}: run chmod go-w on it")
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{str(path)!r} is not TOML: {exc}") from exc
    _only(content, {"token", "limits"}, f"{str(path)!r}")
    rows = content.get("token", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"tokens are written as [[token]] in {str(path)!r}")
    if any("token" in row for row in rows) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInput(f"{str(path)!r} holds tokens in plain text and others may read it: run chmod 600 on it, or keep hashes")
    return _grants(rows), _limits(content.get("limits", {}))


def _grants(rows: Iterable[Mapping[str, Any]]) -> dict[str, Grant]:
    grants: dict[str, Grant] = {}
    for number, row in enumerate(rows, 1):
        key, grant = _grant(row, f"token {number} ({str(row.get('name', 'without a name'))!r:.60})")
        if key in grants or any(grant.name == other.name for other in grants.values()):
            raise InvalidInput(f"two tokens have the name {grant.name!r}, or are the same")
        grants[key] = grant
    return grants


@dataclass(frozen=True, slots=True)
class _Row:
    """The fields of a token in the file."""

    name: str
    tenant: str = ""
    hash: str = ""
    token: str = ""
    dm: bool = False
    metrics: bool = False
    seats: list[str] = field(default_factory=list)
    stories: list[str] | None = None


_KINDS: Mapping[str, tuple[Any, str]] = {
    "name": (str, "a string"), "tenant": (str, "a string"), "hash": (str, "a string"), "token": (str, "a string"),
    "dm": (bool, "true or false"), "metrics": (bool, "true or false"), "seats": (list, "a list of strings"),
    "stories": (list, "a list of strings"),
}  # fmt: skip


def _grant(given: Mapping[str, Any], which: str) -> tuple[str, Grant]:
    _only(given, set(_KINDS), which)
    for name, value in given.items():
        kind, words = _KINDS[name]
        if not isinstance(value, kind) or (kind is list and not all(isinstance(one, str) for one in value)):
            raise InvalidInput(f"{name!r} of {which} must be {words}")
    if not given.get("name"):
        raise InvalidInput(f"{which} needs a name")
    row = _Row(**given)
    if bool(row.hash) == bool(row.token):
        raise InvalidInput(f"{which} needs either a hash or a token; make one with: talekeeper tokens new")
    if not row.tenant and (row.dm or row.seats):
        raise InvalidInput(f"{which} needs a tenant")
    if row.dm == bool(row.seats) and not row.metrics:
        raise InvalidInput(f"{which} needs seats = […] or dm = true, one of the two")
    for seat in row.seats:
        rim.name(seat, f"a seat of {which}")
    stories = frozenset(row.stories) if row.stories is not None else None
    return _key(row, which), Grant(row.name, row.tenant, row.dm, frozenset(row.seats), stories, row.metrics)


def _key(row: _Row, which: str) -> str:
    if row.token:
        return digest(long_enough(row.token, which))
    kind, _, value = row.hash.partition(":")
    if kind != "sha256" or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise InvalidInput(f"the hash of {which} must be sha256: and 64 hexadecimal digits; make one with: talekeeper tokens new")
    return row.hash


def long_enough(token: str, which: str) -> str:
    """The token, if it cannot be guessed."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(f"{which} must have at least {SHORTEST} ASCII characters; make one with: talekeeper tokens new")
    return token


def _limits(given: object) -> Limits:
    if not isinstance(given, dict):
        raise InvalidInput("limits are written as a table: [limits]")
    known = {one.name: one.default for one in fields(Limits)}
    _only(given, set(known), "[limits]")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0 or (isinstance(known[name], int) and value % 1):
            raise InvalidInput(f"{name!r} in [limits] must be a number above 0, such as {known[name]}")
    return Limits(**given)


def _only(given: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise InvalidInput(f"{where} has no {unknown[0]!r}; there are: {', '.join(sorted(known))}")


def add_to_file(path: Path, grant: Grant, token: str) -> None:
    """Writes what is kept of a token behind the others in the file, and makes the file if it is not there."""
    known = read_tokens(path)[0].values() if path.exists() else ()
    if any(other.name == grant.name for other in known):
        raise InvalidInput(f"there is a token {grant.name!r} in {str(path)!r} already: choose another --name")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(handle, "a", encoding="utf-8") as file:
        file.write(("\n" if file.tell() else "") + as_toml(grant, token))


def as_toml(grant: Grant, token: str) -> str:
    """A token as it stands in a file."""
    rows = [("name", _quoted(grant.name)), ("hash", _quoted(digest(token))), ("tenant", _quoted(grant.tenant))]
    if grant.stories is not None:
        rows.append(("stories", f"[{', '.join(_quoted(story) for story in sorted(grant.stories))}]"))
    if grant.seats:
        rows.append(("seats", f"[{', '.join(_quoted(seat) for seat in sorted(grant.seats))}]"))
    rows += [(name, "true") for name in ("dm", "metrics") if getattr(grant, name)]
    return "[[token]]\n" + "".join(f"{name} = {value}\n" for name, value in rows)


def _quoted(text: str) -> str:
    inner = "".join(f"\\u{ord(one):04x}" if ord(one) < 32 or ord(one) == 127 else f"\\{one}" if one in '"\\' else one for one in text)
    return f'"{inner}"'
