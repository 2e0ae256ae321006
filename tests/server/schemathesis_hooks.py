"""Teaches Schemathesis to send lines of JSON, and what cannot be sent."""

from __future__ import annotations

import json
import re
from typing import Any

import schemathesis

_HALVES = re.compile("[\ud800-\udfff]")


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@schemathesis.hook
def filter_body(ctx: Any, body: Any) -> bool:
    """Two halves of a surrogate pair are one character when they arrive: a text that was made to be too long is no longer."""
    return _HALVES.search(json.dumps(body, ensure_ascii=False, default=str)) is None
