"""Commands that serve stories over HTTP, and say who may ask for them."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from talekeeper.cli.app import SERVING, Desk, command, command_group, main
from talekeeper.cli.play import FIRST, rounds_file
from talekeeper.cli.screen import in_quotes, safe
from talekeeper.cli.voices import brains_of, chosen_voices, voices
from talekeeper.errors import how_to_install

if TYPE_CHECKING:
    from fastapi import FastAPI

    from talekeeper.keeper import Keeper
    from talekeeper.server.auth import Tokens
    from talekeeper.table.cast.config import Config
    from talekeeper.table.playing.seating import Table

_tokens_file = click.option(
    "--tokens", "tokens_file", type=click.Path(path_type=Path, dir_okay=False), envvar="TALEKEEPER_TOKENS", show_envvar=True,
    metavar="FILE", help="The file that says which token grants what.",
)  # fmt: skip


@command(main, "serve", SERVING, ("file", "tenant", "json"))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, metavar="N", help="0: any that is free.")
@_tokens_file
@voices
@click.option("--scenario", "packs", multiple=True, metavar="FILE", help="An adventure of your own that can be played. May be repeated.")
async def serve(
    desk: Desk, host: str, port: int, tokens_file: Path | None, model: str | None, base_url: str | None, config: Path | None,
    packs: tuple[str, ...],
) -> None:  # fmt: skip
    """Serve the stories of the file over HTTP.

    Without tokens it serves only this machine, where everyone is the dm of the tenant's stories. The file is created if there is none.
    Instead of a file of tokens, TALEKEEPER_TOKEN may hold one token, for the dm. Games are played with the models that are named, or by
    the built-in storyteller.

    \b
    Example:
      talekeeper serve --file saga.db
      talekeeper serve --host 0.0.0.0 --tokens tokens.toml
    """
    run = need_serve()
    run.log_to(sys.stderr)
    settings = chosen_voices(model, base_url, config)
    _check(settings, packs)
    tokens = _tokens(desk, tokens_file)
    with run.listen(host, port, guarded=tokens is not None) as made:
        url = run.address_of(made)
        who = "bearers of a token" if tokens is not None else f"anyone on this machine, as the dm of {in_quotes(desk.tenant)}"
        said = f"serving {in_quotes(str(desk.file))} on {url} to {who}; stop with Ctrl-C"
        async with desk.keeper(make=True, summarizer=settings.summarizer()) as keeper:
            await run.serve(
                _app(desk, keeper, settings, tokens=tokens, packs=packs), made,
                ready=lambda: desk.show({"url": url, "file": str(desk.file), "tokens": tokens is not None}, lambda: [said]),
            )  # fmt: skip


def need_serve() -> ModuleType:
    """The module that serves; says what is missing, where it is."""
    try:
        from talekeeper.server import run
    except ModuleNotFoundError as exc:
        raise click.ClickException(f"serving needs the extra serve ({exc.name} is missing): {how_to_install('serve')}") from exc
    return run


def _check(settings: Config, packs: Collection[str]) -> None:
    """What cannot be played is said now, and not when someone wants to."""
    from talekeeper.table.packs import load

    for pack in (FIRST, *packs):
        brains_of(settings)(load(pack))


def _app(desk: Desk, keeper: Keeper, settings: Config, *, tokens: Tokens | None = None, packs: Collection[str] = ()) -> FastAPI:
    from talekeeper.server.app import create_app

    return create_app(
        keeper, tokens=tokens, tenant=desk.tenant, brains=brains_of(settings), packs=packs, summarizer=settings.summarizer(),
        rounds=rounds_file(desk),
    )  # fmt: skip


async def show_table(desk: Desk, settings: Config, seat: Callable[[Keeper], Awaitable[Table]], *, open_page: bool) -> None:
    """Serves this machine with the table that `seat` gives, and opens its page."""
    import asyncio
    import webbrowser

    run = need_serve()
    run.log_to(sys.stderr)
    with run.listen("127.0.0.1", 0, guarded=False) as made:
        async with desk.keeper(make=True, summarizer=settings.summarizer()) as keeper:
            table = await seat(keeper)
            url = _page_of(table, run.address_of(made))
            said = [f"the table is at {url}", "stop with Ctrl-C; the story waits for you"]

            def ready() -> None:
                desk.show({"url": url, "file": str(desk.file)}, lambda: said)
                if open_page:
                    asyncio.get_running_loop().run_in_executor(None, webbrowser.open, url)

            await run.serve(_app(desk, keeper, settings, packs=[table.setup.pack]), made, ready=ready)


def _page_of(table: Table, address: str) -> str:
    """The page with this story open, in the view of whoever plays, or of the first of them: it shows no secrets."""
    from talekeeper.ports import MAIN
    from talekeeper.server.ids import story_id

    asked = {"story": story_id(table.story.key)}
    if table.story.branch != MAIN:
        asked["branch"] = table.story.branch
    if table.setup.humans:
        asked["seat"] = table.setup.humans[0]
    return f"{address}/#{urlencode(asked)}"


def _tokens(desk: Desk, file: Path | None) -> Tokens | None:
    from talekeeper.server.auth import Grant, TokenFile, Tokens, digest, long_enough

    alone = os.environ.get("TALEKEEPER_TOKEN")
    if alone and file is not None:
        raise click.UsageError("tokens come from --tokens or from TALEKEEPER_TOKEN, not from both")
    if alone:
        token = long_enough(alone, "TALEKEEPER_TOKEN")
        return Tokens({digest(token): Grant("TALEKEEPER_TOKEN", desk.tenant, dm=True, metrics=True)})
    return TokenFile(file) if file is not None else None


@command_group(main, "tokens", SERVING)
def tokens() -> None:
    """Make tokens: they say who may do what on a server.

    \b
    Example:
      talekeeper tokens new --dm --tenant acme --tokens tokens.toml
    """


@command(tokens, "new", SERVING, ("story", "tenant", "user", "json"), free=("story", "user"))
@click.option("--dm", is_flag=True, help="It may see and do everything in these stories.")
@click.option("--seat", "seats", multiple=True, metavar="SEAT", help="It shows the view of this seat, and speaks for it. May be repeated.")
@click.option("--metrics", is_flag=True, help="It may ask for /metrics.")
@click.option("--name", metavar="NAME", help="How logs call it.")
@_tokens_file
def new(desk: Desk, dm: bool, seats: tuple[str, ...], metrics: bool, name: str | None, tokens_file: Path | None) -> None:
    """Make a token, and print it. It cannot be shown again: only its hash is kept.

    It opens the stories of --tenant, or with --story (and --user) only that one.

    \b
    Example:
      talekeeper tokens new --dm --tenant acme --tokens tokens.toml
      talekeeper tokens new --seat rogue --tenant acme --user ana --story ash-crown --tokens tokens.toml
    """
    from talekeeper import rim
    from talekeeper.server.auth import Grant, add_to_file, as_toml, new_token
    from talekeeper.server.ids import story_id

    if dm == bool(seats) and not (metrics and not dm):
        raise click.UsageError("a token is for a --seat (or several), or for the --dm, or for --metrics alone")
    rim.key(desk.key)
    seats = rim.names(seats, "--seat")
    stories = frozenset({story_id(desk.key)}) if "story" in desk.chosen else None
    called = rim.name(name, "--name") if name is not None else f"{'dm' if dm else seats[0] if seats else 'metrics'}-{secrets.token_hex(2)}"
    grant, token = Grant(called, desk.tenant, dm, frozenset(seats), stories, metrics), new_token()
    if tokens_file is not None:
        add_to_file(tokens_file, grant, token)
        after = [f"added to {in_quotes(str(tokens_file))} as {in_quotes(called)}"]
    else:
        after = ["", "Put this into the file of tokens:", "", *as_toml(grant, token).splitlines()]
    desk.show({"token": token, "name": called, "entry": as_toml(grant, token)}, lambda: [token, *map(safe, after)])
