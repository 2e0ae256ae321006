"""`talekeeper.toml`: which model speaks for whom, and how long it is waited for.

    [models]
    default = "openai:gpt-5-mini"                                        every role that is not named
    keeper  = { model = "local:smollm2", max_tokens = 200 }              the same, with settings
    pc      = "builtin"                                                  the built-in storyteller
    summarizer = "local:smollm2"                                         who makes folds
    base_url = "http://localhost:8080/v1"                                a server that speaks OpenAI's protocol, for hosted models

    [timeouts]
    silence = 60                                                         seconds without a word

Keys never stand in the file: `key_from` names the environment variable that holds one.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from talekeeper import rim
from talekeeper.errors import InvalidInput, quoted
from talekeeper.ports import ChatModel
from talekeeper.table.brain import Brain
from talekeeper.table.cast.brain import BUILT_IN, ROLES, Mishap, ModelBrain
from talekeeper.table.cast.models import MAX_TOKENS, Model, Patience, chat, find

FILE = "talekeeper.toml"
VOICES = (*ROLES, "summarizer", "default")
_SHARED = ("base_url", "key_from")
_OWN = ("model", "max_tokens")


@dataclass(frozen=True, slots=True)
class Voice:
    """One role's model, with its settings: those that are ours, and those that go to the provider."""

    model: str
    base_url: str | None = None
    key_from: str | None = None
    max_tokens: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def built_in(self) -> bool:
        return self.model == BUILT_IN

    def find(self) -> Model:
        """The model itself. Raises `ModelUnavailable` where something is missing."""
        own_url = None if self.model.startswith("local:") else self.base_url
        return find(self.model, base_url=own_url, key_from=self.key_from if own_url else None, **dict(self.settings))


@dataclass(frozen=True, slots=True)
class Config:
    """Who speaks for whom."""

    voices: Mapping[str, Voice] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
    path: Path | None = None

    def voice(self, role: str) -> Voice | None:
        """The role's voice; None where the built-in storyteller has it. The summarizer has no default: none is a choice, too."""
        found = self.voices.get(role) or (self.voices.get("default") if role != "summarizer" else None)
        return None if found is None or found.built_in else found

    def with_model(self, model: str, base_url: str | None = None) -> Config:
        """The same with one model for every role that is not named, as `--model` and `--base-url` say."""
        return replace(self, voices={**self.voices, "default": Voice(model, base_url)})

    def brain(self, fallback: Brain | None, notice: Callable[[Mishap], None] | None = None) -> ModelBrain:
        """The cast. Raises `ModelUnavailable` where one of its models cannot be used."""
        voices = {role: voice for role in ROLES if (voice := self.voice(role)) is not None}
        found = {voice: voice.find() for voice in dict.fromkeys(voices.values())}
        lengths = {role: voice.max_tokens for role, voice in voices.items() if voice.max_tokens is not None}
        more: dict[str, Any] = {} if notice is None else {"notice": notice}
        models = {role: found[voice] for role, voice in voices.items()}
        return ModelBrain(models, fallback, lengths=lengths, patience=self.patience, **more)

    def summarizer(self) -> ChatModel | None:
        """Who makes folds, for `talekeeper.open(summarizer=…)`; None leaves them extractive."""
        voice = self.voice("summarizer")
        return None if voice is None else chat(voice.find(), max_tokens=voice.max_tokens or MAX_TOKENS, patience=self.patience)


def load(path: Path | None = None, directory: Path | None = None) -> Config:
    """What the file says: the one that is named, or `talekeeper.toml` in the directory (by default the working directory), if any."""
    file = path or (directory or Path.cwd()) / FILE
    try:
        raw = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if path is None:
            return Config()
        raise InvalidInput(f"there is no configuration at {str(path)!r}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise InvalidInput(f"{file.name} cannot be read: {exc}") from exc
    try:
        return replace(read(raw), path=file)
    except InvalidInput as exc:
        raise InvalidInput(f"{file.name}: {exc}") from exc


def read(raw: Mapping[str, Any]) -> Config:
    """A configuration out of a parsed file. What it does not know, it refuses."""
    _known(raw, ("models", "timeouts"), "section")
    models, timeouts = _table(raw, "models"), _table(raw, "timeouts")
    _known(models, (*VOICES, *_SHARED), "role or setting", "in [models]")
    shared = {name: _text(models[name], name) for name in _SHARED if name in models}
    voices = {role: _voice(role, models[role], shared) for role in VOICES if role in models}
    names = [one.name for one in fields(Patience)]
    _known(timeouts, names, "setting", "in [timeouts]")
    waiting: dict[str, Any] = {name: _seconds(name, value) for name, value in timeouts.items()}
    return Config(voices, Patience(**waiting))


def _voice(role: str, raw: object, shared: Mapping[str, str]) -> Voice:
    if isinstance(raw, str):
        return Voice(_text(raw, role), shared.get("base_url"), shared.get("key_from"))
    if not isinstance(raw, Mapping) or "model" not in raw:
        raise InvalidInput(f'{role} must be a model such as "openai:gpt-5-mini", or {{ model = "…", … }}, not {quoted(raw)}')
    texts = {name: _text(raw.get(name, shared.get(name)), f"{role}.{name}") for name in _SHARED if name in raw or name in shared}
    most = rim.whole(raw["max_tokens"], f"{role}.max_tokens", least=16) if "max_tokens" in raw else None
    settings = tuple((name, _setting(value, f"{role}.{name}")) for name, value in raw.items() if name not in (*_OWN, *_SHARED))
    return Voice(_text(raw["model"], f"{role}.model"), texts.get("base_url"), texts.get("key_from"), most, settings)


def _table(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = raw.get(name, {})
    if not isinstance(table, Mapping):
        raise InvalidInput(f"[{name}] must be a table, not {quoted(table)}")
    return table


def _known(raw: Mapping[str, Any], names: Collection[str], what: str, where: str = "") -> None:
    for name in raw:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
            raise InvalidInput(f"unknown {what} {quoted(name)}{f' {where}' if where else ''}; {hint}")


def _text(value: object, what: str) -> str:
    return rim.name(value, what)


def _setting(value: object, what: str) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise InvalidInput(f"{what} must be text, a number or true or false, not {quoted(value)}")
    return value


def _seconds(name: str, value: object) -> float | int:
    if name == "attempts":
        return rim.whole(value, "attempts", least=1)
    least = 0 if name == "pause" else 0.001
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise InvalidInput(f"{name} must be a number of seconds above {0 if name != 'pause' else 'or equal to 0'}, not {quoted(value)}")
    return float(value)
