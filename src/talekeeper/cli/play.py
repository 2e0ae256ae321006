"""Playing at the table, in a terminal or in a browser."""

from __future__ import annotations

import importlib
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from talekeeper.cli.app import NO_STORY, PLAYING, STOPPED, Desk, Outcome, command, command_group, main, names
from talekeeper.cli.screen import Status, bold, count, dim, hang, safe
from talekeeper.cli.voices import brains_of, chosen_voices, voices
from talekeeper.errors import StoreReadOnly, how_to_install

if TYPE_CHECKING:
    from talekeeper.cli.keyboard import Keyboard
    from talekeeper.keeper import Keeper
    from talekeeper.table.cast.config import Config
    from talekeeper.table.playing.rounds import Game
    from talekeeper.table.playing.seating import Setup, Table

FIRST = "tidelamp"
"""What is played where nobody chooses."""
LONGEST = 60
"""So many rounds are played where nobody is asked: as a rule, an adventure comes to its ending in half of them."""


def need_play() -> None:
    """The table needs the turn graph's packages; says which, where they are missing."""
    from importlib.util import find_spec

    if find_spec("langgraph") is None or find_spec("langgraph.checkpoint.sqlite") is None:
        raise click.ClickException(f"playing needs the extra play: {how_to_install('play')}")


ROUNDS = ".table"


def rounds_file(desk: Desk) -> Path:
    """Where rounds that wait for a person are kept, beside the story file."""
    return desk.file.with_name(f"{desk.file.name}{ROUNDS}")


async def drop_rounds(desk: Desk) -> None:
    """Removes what the desk's story has in the file of rounds that wait for a person."""
    file = rounds_file(desk)
    if not file.exists():
        return
    from talekeeper.table.playing.rounds import Rounds

    async with Rounds(file) as rounds:
        await rounds.drop(desk.key)


@command(main, "play", PLAYING)
@click.option("--scenario", metavar="NAME|FILE", help="Which adventure. Default: you are asked, or the first one shipped.")
@click.option("--party", metavar="A,B", help="Which of its heroes take part. Default: the first three.")
@click.option("--human", "humans", metavar="A,B", help="Which of them are played by people here. Default: the first.")
@click.option("--auto", is_flag=True, help="Nobody here plays: all seats play by themselves.")
@click.option(
    "--rounds", type=click.IntRange(min=1), metavar="N", help=f"Stop after so many rounds. Default: {LONGEST} with --auto, else none."
)
@click.option(
    "--seed", type=int, default=None, metavar="S", help="Same seed, same choices, same story. Default: 1 with --auto, else a new one."
)
@voices
@click.option("--web", is_flag=True, help="In a browser: serves this machine on a free port, and opens the page.")
@click.option("--no-open", is_flag=True, help="With --web: only say where the page is.")
def play(
    desk: Desk, scenario: str | None, party: str | None, humans: str | None, auto: bool, rounds: int | None, seed: int | None,
    model: str | None, base_url: str | None, config: Path | None, web: bool, no_open: bool,
) -> Outcome:  # fmt: skip
    """Play a story with a game master that remembers. An existing story goes on where it was left.

    \b
    Example:
      talekeeper play --story heist
      talekeeper play --story second --party nell,bartle --human bartle
      talekeeper play --story third --auto --rounds 3 --seed 7
      talekeeper play --story heist --web
    """
    need_play()
    if web and rounds is not None:
        raise click.UsageError("--rounds is for the terminal: in the browser you play as long as you like")
    if desk.json and not auto and not web:
        raise click.UsageError("--json cannot ask anybody: add --auto")
    if party is not None and not names(party):
        raise click.UsageError("--party names nobody: leave it out for the first three heroes")
    if no_open and not web:
        raise click.UsageError("--no-open needs --web")
    settings = chosen_voices(model, base_url, config)
    wish = Wish(scenario, names(party), [] if auto else names(humans), seed)
    from talekeeper.cli.keyboard import Keyboard

    keyboard = Keyboard()
    try:
        if web:
            return _in_the_browser(desk, settings, keyboard.attend(_asked(desk, wish, keyboard)), open_page=not no_open)
        return keyboard.attend(_in_the_terminal(desk, settings, wish, keyboard, rounds))
    except KeyboardInterrupt:
        return STOPPED


@dataclass(frozen=True)
class Wish:
    """What was asked for on the command line; None: nothing was said about it."""

    scenario: str | None
    party: list[str] | None
    humans: list[str] | None
    seed: int | None

    @property
    def auto(self) -> bool:
        return self.humans == []

    def check(self, story: str, table: Table) -> None:
        """Says so where a story that is there was begun in another way. Who is played by a person can be changed, and is not looked at."""
        from talekeeper.table.packs import load

        setup = table.setup
        for option, is_other, is_now in (
            ("scenario", self.scenario is not None and load(self.scenario).id != table.scenario.id, table.scenario.id),
            ("party", self.party is not None and tuple(self.party) != setup.party, ",".join(setup.party)),
            ("seed", self.seed is not None and self.seed != setup.seed, setup.seed),
        ):
            if is_other:
                raise click.ClickException(
                    f"the story {story!r} is there already, with --{option} {is_now}: leave --{option} out to go on with it, "
                    "or begin another one with --story NAME"
                )

    def setup(self) -> Setup:
        """How a new game begins."""
        from talekeeper.table.packs import load
        from talekeeper.table.playing.seating import Setup

        pack = self.scenario or FIRST
        seats = tuple(self.party or list(load(pack).heroes)[:3])
        seed = 1 if self.auto else secrets.randbelow(1 << 31)
        return Setup(pack, seats, tuple(seats[:1] if self.humans is None else self.humans), seed if self.seed is None else self.seed)


async def _in_the_browser(desk: Desk, settings: Config, wish: Wish, *, open_page: bool) -> None:
    from talekeeper.cli.serving import show_table

    await show_table(desk, settings, lambda keeper: _seated(desk, keeper, settings, wish), open_page=open_page)


async def _in_the_terminal(desk: Desk, settings: Config, wish: Wish, keyboard: Keyboard, rounds: int | None) -> int | None:
    import asyncio

    from talekeeper.cli.keyboard import Quit

    kept = ""
    try:
        with Status() as status:
            status("setting the table …")
            graph = asyncio.create_task(asyncio.to_thread(importlib.import_module, "talekeeper.table.playing.rounds"))  # slow: people read
            from talekeeper.cli.terminal import Terminal, greet

            wish = await _asked(desk, wish, keyboard, status)
            async with desk.keeper(make=True) as keeper:
                table = await _seated(desk, keeper, settings, wish)
                kept = f" The story is kept in {desk.file}."
                status.clear()
                begun = await table.round_now()
                if not desk.json:
                    greet(table, begun)
                    status("setting the table …")
                playing = await graph
                status.clear()
                async with playing.Game(table, rounds_file(desk)) as game:
                    if desk.json:
                        return await _quietly(desk, game, rounds or 1)
                    limit = rounds if rounds is not None or not wish.auto else LONGEST
                    pace = 0.008 if sys.stdout.isatty() and settings.voice("dm") is None else 0.0
                    terminal = Terminal(game, keyboard, str(desk.file), pace=pace)
                    try:
                        await terminal.run(limit)
                    finally:
                        kept = f" {terminal.kept}"
    except (Quit, asyncio.CancelledError) as left:
        click.echo(dim(hang("", f"Until next time.{kept}", 0)), err=desk.json)
        if isinstance(left, asyncio.CancelledError):
            raise
    return None


async def _seated(desk: Desk, keeper: Keeper, settings: Config, wish: Wish) -> Table:
    """The table under the desk's key: taken up where it was left, or begun."""
    from talekeeper.table.playing.seating import begin, branch_played, resume

    if getattr(keeper.store, "read_only", False):
        raise StoreReadOnly(f"{str(desk.file)!r} may be read but not written, so it cannot be played: check its permissions")
    brains, summarizer = brains_of(settings), settings.summarizer()
    if await keeper.store.load(desk.key) is None:
        return await begin(keeper, desk.key, wish.setup(), brains, summarizer=summarizer)
    branch = desk.branch if "branch" in desk.chosen else await branch_played(await keeper.story(desk.key))
    table = await resume(keeper, desk.key, brains, branch=branch, summarizer=summarizer)
    wish.check(desk.story, table)
    await table.note_branch()
    if wish.auto:
        table.setup = replace(table.setup, humans=())  # for now only: whoever plays it next is asked again
    elif wish.humans is not None or not table.setup.humans:
        await table.seat_people(table.setup.party[:1] if wish.humans is None else wish.humans)
    return table


async def _asked(desk: Desk, wish: Wish, keyboard: Keyboard, status: Status | None = None) -> Wish:
    """The wish with an adventure: the one that the person wants, where a story begins and somebody can be asked. A wish that cannot be
    granted is refused before a file is made for it."""
    from talekeeper.table.packs import load, shipped
    from talekeeper.table.playing.seating import scenario_of

    if not desk.file.exists():
        scenario_of(wish.setup())
    packs = sorted(shipped(), key=lambda name: name != FIRST)
    if wish.scenario or len(packs) == 1 or not sys.stdin.isatty() or await _is_there(desk):
        return wish
    if status is not None:
        status.clear()
    for number, name in enumerate(packs, 1):
        pack = load(name)
        click.echo(f"  {dim(str(number))} {bold(safe(pack.title))}\n" + hang("", pack.tagline, 4))
    while (typed := (await keyboard.line("Which adventure [1]: ")).strip() or "1") not in map(str, range(1, len(packs) + 1)):
        click.echo(f"choose 1 to {len(packs)}")
    return replace(wish, scenario=packs[int(typed) - 1])


async def _is_there(desk: Desk) -> bool:
    if not desk.file.exists():
        return False
    async with desk.keeper() as keeper:
        return await keeper.store.load(desk.key) is not None


async def _quietly(desk: Desk, game: Game, rounds: int) -> int:
    """So many rounds without a word, then the turns as JSON."""
    before = game.table.story.head
    with Status() as status:
        for number in range(rounds):
            if (await game.table.state()).ending:
                break
            status(f"round {number + 1} of {rounds}")
            async for _ in game.round():
                pass
    turns = await game.table.story.turns(after=before)
    desk.show(turns, lambda: ())
    return 0


# -- adventures ------------------------------------------------------------------------------------------------------------


@command_group(main, "scenario", PLAYING)
def scenario_group() -> None:
    """Adventures: see which are shipped, check one of your own.

    \b
    Example:
      talekeeper scenario list
      talekeeper scenario check my-adventure.toml
    """


@command(scenario_group, "list", PLAYING, NO_STORY)
def list_scenarios(desk: Desk) -> None:
    """List the adventures that come with Talekeeper.

    \b
    Example:
      talekeeper scenario list
    """
    from talekeeper.table.packs import load, shipped

    found = [load(name) for name in shipped()]
    rows = [
        {"id": one.id, "title": one.title, "tagline": one.tagline, "heroes": list(one.heroes), "places": len(one.places),
         "npcs": len(one.npcs), "objectives": len(one.objectives)}
        for one in found
    ]  # fmt: skip
    desk.show(rows, lambda: [f"{bold(safe(one.id))}  {safe(one.title)}\n{hang('', one.tagline, 4)}" for one in found])


@command(scenario_group, "check", PLAYING, NO_STORY)
@click.argument("pack", metavar="FILE|NAME")
def check_scenario(desk: Desk, pack: str) -> int:
    """Check an adventure: everything that is wrong with it, at once, with the place in the file. Warnings do not keep it from being
    played.

    \b
    Example:
      talekeeper scenario check tidelamp
    """
    from talekeeper.table.packs import check

    found = check(pack)
    grave = sum(problem.grave for problem in found)
    sums = [count(number, thing) for number, thing in ((grave, "problem"), (len(found) - grave, "warning")) if number]
    desk.show(found, lambda: [*(safe(str(problem)) for problem in found), ", ".join(sums) or "nothing is wrong with it"])
    return 1 if grave else 0
