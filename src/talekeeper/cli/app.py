"""The frame of the command line: which story is meant, how a command runs, what is shown, what an error looks like.

A command is an async function of a `Desk`. It opens what it needs there, and ends with `desk.show(value, lines)`: the value for
`--json`, the lines for people. Errors are one line on stderr; 1: it could not be done, 2: it was not understood.
"""

from __future__ import annotations

import atexit
import errno
import functools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec

import click

from talekeeper import __version__
from talekeeper.cli.screen import one_line, use_colour
from talekeeper.errors import TalekeeperError

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper
    from talekeeper.model import MemoryKey
    from talekeeper.ports import ChatModel
    from talekeeper.story.story import Story

Options = ParamSpec("Options")

PLAYING, TELLING, REMEMBERING, BACK, KEEPING, SERVING = "Playing", "Telling", "Remembering", "Going back, changing", "Keeping", "Serving"
SECTIONS = (PLAYING, TELLING, REMEMBERING, BACK, KEEPING, SERVING)
BEGIN = "begin a game with talekeeper play, or a story of your own with talekeeper init"
STOPPED, _FAILED, _MISUSED = 130, 1, 2


class Command(click.Command):
    """A command with its section of the overview; options that say which story is meant stand apart."""

    section: str

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        common: list[tuple[str, str]] = []
        own: list[tuple[str, str]] = []
        apart = _COMMON if any(param.name == "story" for param in self.params) else ()
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                (common if param.name in apart else own).append(record)
        for title, records in (("Options", own), ("Which story", common)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Group(click.Group):
    """Commands that belong together, with their section of the overview."""

    section: str


class App(click.Group):
    """The `talekeeper` command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            names = [name for name, command in self.commands.items() if getattr(command, "section", "") == section]
            with formatter.section(section):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(90)) for name in names])

    def main(self, args: Sequence[str] | None = None, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Runs and ends the process. Whatever can be foreseen to go wrong is one line and an exit code."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        _prepare_streams()
        try:
            code = super().main(args, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.Abort:
            with suppress(ValueError):  # not the main thread
                signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))  # pressed again while threads end: at once, then
                atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # and once they have: it ends anyway
            _fail("stopped", STOPPED)
        except click.UsageError as exc:
            command = exc.ctx.command_path if exc.ctx is not None else "talekeeper"
            message = re.sub("a valid integer( range)?", "a whole number", exc.format_message().rstrip("."))
            _fail(f"{message}{' See' if message.endswith('?') else '; see'} {command} --help", _MISUSED)
        except click.ClickException as exc:
            _fail(exc.format_message(), _FAILED)
        except BrokenPipeError:
            sys.stderr.close()  # nobody is listening any more
            sys.exit(_FAILED)
        except Exception as exc:
            _fail(_foreseen(exc), _FAILED)
        sys.exit(code if isinstance(code, int) else 0)


def _foreseen(exc: Exception) -> str:
    """What to tell of an error that can be helped; anything else is a bug, and is raised again."""
    if isinstance(exc, TalekeeperError):
        return str(exc)
    if isinstance(exc, OSError) and exc.strerror:
        advice = {
            errno.ENOENT: "; check the path",
            errno.EACCES: "; check its permissions",
            errno.ENOSPC: "; make room, then try again",
        }.get(exc.errno or 0, "")
        return f"{exc.strerror}: {exc.filename!r}{advice}" if exc.filename is not None else exc.strerror
    raise exc


def _fail(message: str, code: int) -> NoReturn:
    label = click.style("error:", fg="red", bold=True) if use_colour(sys.stderr) else "error:"
    click.echo(f"{label} {one_line(message)}", err=True)
    sys.exit(code)


def _prepare_streams() -> None:
    """Input that is closed has nothing in it, and messages that are closed go nowhere; what is shown must go somewhere. A terminal that
    cannot show a character shows its code instead."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  # as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        _fail("standard output is closed, so nothing was done: send it to a file, or to /dev/null", _FAILED)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


# -- which story -------------------------------------------------------------------------------------------------------

_COMMON = {
    "file": (("--file", "-f"), "PATH", "The story file.", "talekeeper.db"),
    "story": (("--story",), "NAME", "The story in it: its session id.", "main"),
    "tenant": (("--tenant",), "NAME", "The tenant it belongs to.", "local"),
    "user": (("--user",), "NAME", "The user it belongs to.", "local"),
    "branch": (("--branch",), "NAME", "The branch to be on.", "main"),
    "json": (("--json",), None, "One JSON value on stdout.", None),
}
STORY = tuple(_COMMON)
WHOLE_STORY = tuple(name for name in STORY if name != "branch")
FILE = ("file", "json")
NO_STORY = ("json",)
"""What a command may be about: a branch of a story, all of its branches, the file, or none of them."""


def _note_down(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Options may stand before or after the command; the later one counts."""
    if param.name == "file" and value == "":
        raise click.BadParameter("the file's name is empty; leave the option out for talekeeper.db", ctx, param)
    if param.name != "file" and isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        raise click.BadParameter("it is not UTF-8", ctx, param)
    root = ctx.find_root()
    noted: dict[str, Any] = root.obj if isinstance(root.obj, dict) else {}
    if value not in (None, False):
        noted[str(param.name)] = value
    root.obj = noted


def common_options(
    call: Callable[..., Any], of: Sequence[str] = STORY, *, env: bool = False, free: Sequence[str] = ()
) -> Callable[..., Any]:
    """Adds the options that say which story is meant. `env`: they can also be set in the environment. `free`: those without a default."""
    for name in reversed(of):
        flags, metavar, text, default = _COMMON[name]
        envvar = f"TALEKEEPER_{name.upper()}" if env and metavar else None
        note = f"  [default: {default}]" if default and name not in free else ""
        call = click.option(
            *flags, name, metavar=metavar, is_flag=metavar is None, envvar=envvar, show_envvar=True, default=None, expose_value=False,
            callback=_note_down, help=text + note,
        )(call)  # fmt: skip
    return call


@dataclass(frozen=True)
class Desk:
    """Where a command works: the file, the key, the branch, and how to show what it found."""

    file: Path
    story: str
    tenant: str
    user: str
    branch: str
    json: bool
    chosen: frozenset[str] = frozenset()

    @classmethod
    def of(cls, ctx: click.Context) -> Desk:
        noted: dict[str, Any] = ctx.find_root().obj or {}
        values: dict[str, Any] = {name: noted.get(name, default) for name, (*_, default) in _COMMON.items()}
        return cls(**{**values, "file": Path(values["file"]).expanduser(), "json": bool(values["json"]), "chosen": frozenset(noted)})

    @property
    def key(self) -> MemoryKey:
        from talekeeper.model import MemoryKey

        return MemoryKey(self.tenant, self.user, self.story)

    @asynccontextmanager
    async def keeper(self, *, make: bool = False, summarizer: ChatModel | None = None) -> AsyncIterator[Keeper]:
        """The open file. Only `make` makes one that is not there. `summarizer`: a model that makes folds."""
        import talekeeper as tk

        if not make:
            self.check_file()
        async with tk.open(self.file, summarizer=summarizer) as keeper:
            yield keeper

    def check_file(self) -> None:
        if not self.file.exists():
            raise click.ClickException(f"no story file at {str(self.file)!r}; {BEGIN}, or name another file with --file")
        if self.file.is_dir():
            raise click.ClickException(f"{str(self.file)!r} is a directory: name a file in it")
        if self.file.is_file() and not self.file.stat().st_size and not Path(f"{self.file}-wal").exists():
            raise click.ClickException(f"{str(self.file)!r} is empty, and no story file; {BEGIN} in it, or name another with --file")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Story]:
        """The story that is meant, on its branch."""
        async with self.keeper() as keeper:
            yield await self.find(keeper)

    async def find(self, keeper: Keeper) -> Story:
        await self.check_story(keeper)
        return await keeper.story(self.key, branch=self.branch)

    async def check_story(self, keeper: Keeper) -> None:
        if await keeper.store.load(self.key) is not None:
            return
        keys = await keeper.keys()
        mine = [key.session_id for key in keys if (key.tenant_id, key.user_id) == (self.tenant, self.user)]
        others = [f"{key.session_id} of {key.tenant_id}/{key.user_id}" for key in keys]
        known = f"there are: {', '.join((mine or others)[:8])}" if keys else "there is none yet"
        choice = "choose with --story" if mine or not keys else "choose with --story, --tenant and --user"
        whose = "" if mine or not keys else f" of {self.tenant}/{self.user}"
        raise click.ClickException(
            f"no story {self.story!r}{whose} in {str(self.file)!r} ({known}); {choice}, or run talekeeper init --story NAME"
        )

    def show(self, value: object, lines: Callable[[], Iterable[str]]) -> None:
        """The value as JSON, or the lines."""
        with _heard():
            if self.json:
                from talekeeper.model import to_json

                # ASCII: whatever a story says, it cannot reach the terminal as anything but letters.
                click.echo(json.dumps(to_json(value), indent=2).replace("\x7f", "\\u007f"))
                return
            colour = use_colour()
            for line in lines():
                click.echo(line, color=colour)


@contextmanager
def _heard() -> Iterator[None]:
    """Where what is shown gets nowhere, that is said: what the command was asked for is done all the same."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # what is left of it goes nowhere, too
        raise click.ClickException(f"standard output takes no more ({exc.strerror}): all is done but this answer") from exc


Outcome = int | None | Coroutine[Any, Any, int | None]


def command(
    group: click.Group, name: str, section: str, about: Sequence[str] = STORY, *, free: Sequence[str] = ()
) -> Callable[[Callable[Concatenate[Desk, Options], Outcome]], Command]:
    """Makes a command of a function, mostly an async one, of a desk and the command's own options. It returns the exit code. For `free` see
    `common_options`."""

    def decorate(work: Callable[Concatenate[Desk, Options], Outcome]) -> Command:
        @functools.wraps(work)
        def call(*args: Options.args, **options: Options.kwargs) -> int | None:
            import asyncio
            import logging

            logging.getLogger("talekeeper").addHandler(logging.NullHandler())
            outcome = work(Desk.of(click.get_current_context()), *args, **options)
            return asyncio.run(outcome) if isinstance(outcome, Coroutine) else outcome

        made = click.command(name, cls=Command)(common_options(call, about, free=free))
        made.section = section
        group.add_command(made)
        return made

    return decorate


def command_group(parent: click.Group, name: str, section: str) -> Callable[[Callable[[], None]], Group]:
    """Makes a group of commands, which shows its help by itself. Nothing of the function counts but its docstring, which is that help."""

    def decorate(described: Callable[[], None]) -> Group:
        def call(ctx: click.Context) -> None:
            if ctx.invoked_subcommand is None:
                click.echo(ctx.get_help())

        made = click.group(name, cls=Group, help=described.__doc__, invoke_without_command=True)(click.pass_context(call))
        made.section = section
        parent.add_command(made)
        return made

    return decorate


def turn_ref(text: str) -> int | str:
    """A turn as it is named on the command line: by its number, or by its id."""
    return int(text) if is_number(text) else text


def is_number(text: str) -> bool:
    """Whether it is a whole number as anyone would write it; Python refuses to read very long ones."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def names(text: str | None) -> list[str] | None:
    """a,b,c as a list; None where nothing was given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def words_or_stdin(words: Iterable[str], what: str = "text") -> str:
    """The words as one text; without any, or for a single "-", what stands on standard input."""
    given = list(words)
    if given and given != ["-"]:
        return " ".join(given)
    if sys.stdin.isatty():
        click.echo(f"reading the {what} from here; end it with Ctrl-D", err=True)
    try:
        with heeding_ctrl_c():
            read = sys.stdin.read().removeprefix("\ufeff").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as exc:
        raise click.ClickException(f"standard input is not UTF-8 text: {exc.reason} at byte {exc.start}") from exc
    if not read:
        raise click.ClickException(f"there is no {what}: write it behind the command, or send it to standard input")
    return read


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """While somebody is waited for, Ctrl-C is raised at once: the event loop, which cannot run meanwhile, would only note it for later."""
    import asyncio

    noted = signal.getsignal(signal.SIGINT)
    if not callable(noted) or threading.current_thread() is not threading.main_thread():
        yield  # it is ignored, or somebody else's
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # it came just before
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, noted)


def end_in_peace() -> None:
    """From now on, being told to end (SIGTERM) is as good as Ctrl-C: what was made aside is removed."""
    with suppress(ValueError):  # not the main thread
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def confirm(question: str, yes: bool) -> None:
    """Goes on only with a yes."""
    if yes:
        return
    try:
        with heeding_ctrl_c():
            agreed = click.confirm(question, err=True)
    except click.Abort as exc:
        click.echo("", err=True)  # the question stands on that line
        if isinstance(exc.__context__, KeyboardInterrupt):
            raise
        raise click.ClickException("no answer, so nothing was changed; pass --yes to go on without being asked") from None
    if not agreed:
        raise click.ClickException("nothing was changed")


@click.group(
    cls=App, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)  # fmt: skip
@functools.partial(common_options, env=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Memory for long stories told by language models.

    A story is a log of turns, and each seat remembers what it heard. The file holds any number of stories.

    \b
    Example:
      talekeeper init --seat dm:dm --seat rogue --seat bard
      talekeeper append dm "The innkeeper slides you a key." --heard-by rogue
      talekeeper context rogue --budget 500 --query "Who gave me the key?"
      talekeeper demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
