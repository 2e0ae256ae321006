"""Which models speak: the options that name them, and what the configuration adds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from talekeeper.cli.screen import dim, hang, one_line

if TYPE_CHECKING:
    from talekeeper.table.brain import Brain
    from talekeeper.table.cast.brain import Mishap
    from talekeeper.table.cast.config import Config
    from talekeeper.table.world.scenario import Scenario

KINDS = "openai:…, anthropic:…, google:…, ollama:…, local:PATH"


def model_options(model: str, config: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --model and --base-url, and --config where that has a say. The texts tell what the model and the configuration are for."""

    def add(call: Callable[..., Any]) -> Callable[..., Any]:
        if config is not None:
            call = click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help=config)(call)
        call = click.option("--base-url", metavar="URL", help="A server that speaks OpenAI's protocol.")(call)
        return click.option("--model", metavar="NAME", help=model)(call)

    return add


voices = model_options(f"{KINDS}. Default: the built-in storyteller.", "Models per role. Default: talekeeper.toml, if it is here.")
"""The options of commands that play."""


def check_named(model: str | None, base_url: str | None) -> None:
    """Says so where a server is named, and none of its models."""
    if base_url is not None and model is None:
        raise click.UsageError("--base-url needs --model: which of its models?")


def chosen_voices(model: str | None, base_url: str | None, config: Path | None) -> Config:
    """Which models speak, as the options and the configuration say."""
    from talekeeper.table.cast.config import load

    check_named(model, base_url)
    settings = load(config)
    return settings if model is None else settings.with_model(model, base_url)


def brains_of(settings: Config) -> Callable[[Scenario], Brain]:
    """Who plays: the models of the settings, with the built-in storyteller behind them."""
    from talekeeper.table.cast.brain import ROLES
    from talekeeper.table.storyteller import Storyteller

    if not any(settings.voice(role) for role in ROLES):
        return Storyteller
    return lambda scenario: settings.brain(Storyteller(scenario), _mishap)


def _mishap(mishap: Mishap) -> None:
    """A model failed: the game goes on, and says so."""
    click.echo(dim(hang("", one_line(f"[{mishap.role}: {mishap.reason}]"), 0)), err=True)
