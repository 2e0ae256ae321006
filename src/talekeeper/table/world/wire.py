"""Commands and events as JSON: one object with a `type` and the fields of a frozen dataclass.

What comes in was written by a model, a player or an older log, so it is read once, here, with every problem named and every string
bounded, and trusted afterwards.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from talekeeper.errors import InvalidInput, WrongType

NAME_LENGTH = 120
TEXT_LENGTH = 1200
MOST_NAMES = 24
_MOST_NUMBER = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """Something with a `type` that is written as JSON: a command or an event."""

    type: ClassVar[str] = ""


R = TypeVar("R", bound=Record)


def prose(default: str | None = None) -> Any:
    """A field for sentences rather than for an id or a name."""
    metadata = {"most": TEXT_LENGTH}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


def write(record: Record) -> dict[str, Any]:
    """The record as a JSON object; fields that have their default are left out."""
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value != _default(record, name)}
    return {"type": record.type, **kept}


def _default(record: Record, name: str) -> object:
    return next(one.default for one in fields(record) if one.name == name)


def read(kinds: Mapping[str, type[R]], raw: object, what: str) -> R:
    """The record that a JSON object stands for. Raises one `InvalidInput` that names all its problems."""
    if not isinstance(raw, Mapping):
        raise WrongType(f"a {what} must be a JSON object, not {type(raw).__name__}")
    kind = _kind(kinds, raw, what)
    wanted = {one.name: one for one in fields(kind)}
    problems = [f"it has no field {name!r}" for name in raw if name not in wanted and name != "type"]
    values: dict[str, Any] = {}
    for name, one in wanted.items():
        if name in raw and raw[name] is not None:
            try:
                values[name] = _value(raw[name], one)
            except InvalidInput as exc:
                problems.append(f"{name} {exc}")
        elif one.default is MISSING:
            problems.append(f"{name} is missing")
    if problems:
        raise InvalidInput(f"{what} {kind.type}: {'; '.join(problems)} (fields: {', '.join(wanted) or 'none'})")
    return kind(**values)


def _kind(kinds: Mapping[str, type[R]], raw: Mapping[Any, Any], what: str) -> type[R]:
    name = raw.get("type")
    if isinstance(name, str) and name in kinds:
        return kinds[name]
    close = difflib.get_close_matches(str(name), kinds, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(kinds)}"
    raise InvalidInput(f"no {what} of the type {str(name)[:NAME_LENGTH]!r}; {hint}")


def _value(value: object, one: Field[Any]) -> object:
    if one.type == "bool":
        if not isinstance(value, bool):
            raise WrongType(f"must be true or false, not {value!r}"[:200])
        return value
    if one.type == "int":
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST_NUMBER:
            raise WrongType(f"must be a whole number between -{_MOST_NUMBER} and {_MOST_NUMBER}, not {value!r}"[:200])
        return value
    if one.type == "str":
        return _string(value, int(one.metadata.get("most", NAME_LENGTH)))
    return _strings(value)


def _string(value: object, most: int) -> str:
    if not isinstance(value, str):
        raise WrongType(f"must be a string, not {type(value).__name__}")
    if len(value) > most:
        raise InvalidInput(f"has {len(value)} characters, at most {most} are taken")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidInput("has characters that cannot be stored")
    return value.strip()


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        raise WrongType(f"must be a list of strings, not {type(value).__name__}")
    if len(value) > MOST_NAMES:
        raise InvalidInput(f"has {len(value)} entries, at most {MOST_NAMES} are taken")
    return tuple(dict.fromkeys(_string(entry, NAME_LENGTH) for entry in value))


def schema(kinds: Mapping[str, type[Record]]) -> dict[str, Any]:
    """A JSON schema that admits exactly these records, so that a model can be held to it. Strings and lists are bounded."""
    return {"anyOf": [_object(kind) for kind in kinds.values()]}


def _object(kind: type[Record]) -> dict[str, Any]:
    properties: dict[str, Any] = {"type": {"const": kind.type, "type": "string"}}
    properties |= {one.name: _schema_of(one) for one in fields(kind)}
    required = ["type", *(one.name for one in fields(kind) if one.default is MISSING)]
    about = (kind.__doc__ or "").strip().split("\n")[0]
    return {"type": "object", "description": about, "properties": properties, "required": required, "additionalProperties": False}


def _schema_of(one: Field[Any]) -> dict[str, Any]:
    if one.type == "bool":
        return {"type": "boolean"}
    if one.type == "int":
        return {"type": "integer", "minimum": -_MOST_NUMBER, "maximum": _MOST_NUMBER}
    if one.type == "str":
        return {"type": "string", "maxLength": one.metadata.get("most", NAME_LENGTH)}
    return {"type": "array", "maxItems": MOST_NAMES, "items": {"type": "string", "maxLength": NAME_LENGTH}}
