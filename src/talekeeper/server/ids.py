"""Addresses: where the API is, a story's `user.name`, and the ids that make a retried request the same one."""

from __future__ import annotations

import hashlib
import re

from talekeeper.model import MemoryKey
from talekeeper.rim import MAX_NAME
from talekeeper.server.auth import Grant

PREFIX = "/api/v1"
STORY_PATTERN = r"^[A-Za-z0-9_~-]+\.[A-Za-z0-9_~-]+$"
STORY_LENGTH = 5000
_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_ESCAPED = re.compile(r"~([0-9a-f]{2})")


def story_id(key: MemoryKey) -> str:
    """The story's id within its tenant. Whatever is not a letter, a digit, `-` or `_` is written as `~` and two digits per byte."""
    return f"{_written(key.user_id)}.{_written(key.session_id)}"


def story_key(tenant: str, story: str) -> MemoryKey | None:
    """The key behind an id; None where it is none."""
    parts = [_read(part) for part in story.split(".")]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    key = MemoryKey(tenant, parts[0], parts[1])
    return key if story_id(key) == story and all(len(part) <= MAX_NAME and part.strip() for part in parts if part is not None) else None


def _written(part: str) -> str:
    return "".join(chr(byte) if _PLAIN.match(bytes([byte])) else f"~{byte:02x}" for byte in part.encode())


def _read(part: str) -> str | None:
    try:
        return re.sub(_ESCAPED, lambda found: chr(int(found[1], 16)), part).encode("latin-1").decode()
    except UnicodeError:
        return None


def turn_id(grant: Grant, story: MemoryKey, key: str) -> str:
    """The id of the turn that a request with this idempotency key tells. The same again after a restart; nobody else's request has it."""
    parts = repr((grant.tenant, grant.name, story.user_id, story.session_id, key))
    return f"k-{hashlib.sha256(parts.encode()).hexdigest()[:32]}"
