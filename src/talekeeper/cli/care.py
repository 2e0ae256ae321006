"""Commands that care for story files: examine, copy, measure; and the demonstration."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from talekeeper.cli.app import (
    KEEPING,
    NO_STORY,
    WHOLE_STORY,
    Desk,
    command,
    command_group,
    end_in_peace,
    heeding_ctrl_c,
    is_number,
    main,
)  # fmt: skip
from talekeeper.cli.play import ROUNDS, need_play
from talekeeper.cli.screen import Status, colour, count, for_a_shell, hang, in_quotes
from talekeeper.cli.serving import need_serve
from talekeeper.errors import StoreCorrupt

if TYPE_CHECKING:
    from talekeeper.bench.targets import Judged
    from talekeeper.doctor import Finding
    from talekeeper.model import MemoryKey

# -- doctor ------------------------------------------------------------------------------------------------------------


@command(main, "doctor", KEEPING, WHOLE_STORY)
@click.option("--all", "everything", is_flag=True, help="Examine every story in the file.")
async def doctor(desk: Desk, everything: bool) -> int:
    """Examine a story, and the file it is in. Changes nothing; exits with 1 if anything is wrong.

    The log is read from end to end, everything derived from it is made anew and compared with what is stored, and every seat's
    memory is checked against what that seat heard.

    \b
    Example:
      talekeeper doctor
      talekeeper doctor --all --json
    """
    from talekeeper.doctor import examine, examine_file

    with Status() as status:
        status("the file")
        desk.check_file()
        findings = examine_file(desk.file)
        keys: list[MemoryKey] = []
        if not findings:
            async with desk.keeper() as keeper:
                if not everything:
                    with suppress(StoreCorrupt):  # that is a finding
                        await desk.check_story(keeper)
                keys = await keeper.keys() if everything else [desk.key]
                for key in keys:
                    findings += await examine(keeper, key, status)
    wrong = any(finding.severity == "error" for finding in findings)
    desk.show({"stories": keys, "findings": findings, "ok": not wrong}, lambda: _diagnosis(keys, findings))
    return int(wrong)


def _diagnosis(keys: Sequence[MemoryKey], findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        at = 5 if finding.severity == "error" else 3
        yield hang(f"{colour(finding.severity, at)}  {finding.code}  ", f"{finding.where}: {finding.message}", 15)
    looked = f"the file and {count(len(keys), 'story', 'stories')}" if keys else "the file"
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        yield f"{looked} examined: {count(errors, 'error')}; keep a copy of the file before you change anything"
    else:
        yield f"{looked} examined: nothing wrong" + (f", {count(len(findings), 'warning')}" if findings else "")


# -- copies ------------------------------------------------------------------------------------------------------------


@command(main, "export", KEEPING, WHOLE_STORY)
@click.argument("target", required=False, type=click.Path(path_type=Path, allow_dash=True), metavar="[FILE]")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
async def export(desk: Desk, target: Path | None, force: bool) -> None:
    """Write a story as lines of JSON, losing nothing.

    Without FILE, or for -, it goes to standard output.

    \b
    Example:
      talekeeper export ash-crown.jsonl
    """
    from talekeeper.formats import export_story

    if target == Path("-"):
        target = None
    if target is None and desk.json:
        raise click.UsageError("--json needs a FILE to export to: standard output cannot have both")
    async with desk.keeper() as keeper:
        await desk.check_story(keeper)
        with Status() as status, _new_file(target, force, desk.file) as out:
            written = await _pour(export_story(keeper, desk.key), out, status)
    if target is not None:
        desk.show({"file": str(target), "lines": written}, lambda: [f"{count(written, 'line')} written to {in_quotes(str(target))}"])


async def _pour(lines: AsyncIterator[str], out: IO[str], status: Status) -> int:
    written = 0
    async for line in lines:
        out.write(line)
        written += 1
        if written % 1000 == 0:
            status(f"{written:,} lines")
    return written


@contextmanager
def _new_file(path: Path | None, force: bool, source: Path) -> Iterator[IO[str]]:
    """A file that is there, whole, or not at all; standard output for None. A pipe or a device is written to, and never replaced."""
    if path is None:
        yield sys.stdout
    elif path.exists() and not path.is_file() and not path.is_dir():
        with path.open("w", encoding="utf-8", newline="\n") as out:
            yield out
    else:
        _check_target(path, force, source)
        with _beside(path.resolve()) as part:  # a link goes on leading where it led
            with part.open("w", encoding="utf-8", newline="\n") as out:
                yield out
            part.replace(path.resolve())


_COMPANIONS = [f"{own}{ending}" for own in ("", ROUNDS) for ending in ("-wal", "-shm", "-journal")] + [ROUNDS]
"""What stands beside a story file and belongs to it: SQLite's files, the rounds in flight, and theirs."""


def _check_target(path: Path, force: bool, source: Path) -> None:
    if path.is_dir():
        raise click.ClickException(f"{str(path)!r} is a directory: name a file in it")
    if path.exists() and path.samefile(source):
        raise click.ClickException(f"{str(path)!r} is the story file itself: name another to export to")
    if path.resolve() in {Path(f"{source.resolve()}{ending}") for ending in _COMPANIONS}:
        raise click.ClickException(f"{str(path)!r} is a place for a part of the story file: name another to export to")
    if path.exists() and not force:
        raise click.ClickException(f"there is a file {str(path)!r} already; choose another name, or pass --force")
    if not path.parent.is_dir():
        raise click.ClickException(f"there is no directory {str(path.parent)!r}: make it first, or choose another")


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Where a file can be made that is to become this one: beside it, and in the way of nobody who makes another."""
    end_in_peace()
    try:
        folder = tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.", suffix=".part")
    except PermissionError as exc:
        where = str(path.parent)
        raise click.ClickException(f"no file can be made in the directory {where!r}: check its permissions, or choose another") from exc
    with folder as name:
        yield Path(name) / path.name


@contextmanager
def _made_whole(desk: Desk) -> Iterator[Desk]:
    """The desk. Where its file is not there yet: one with a file of its own, which takes that place once everything is in it."""
    if desk.file.exists() or not desk.file.parent.is_dir():
        yield desk
        return
    with _beside(desk.file) as part:
        yield replace(desk, file=part)
        if desk.file.exists():
            raise click.ClickException(f"somebody else has just made {str(desk.file)!r}: import it again, into that file")
        part.replace(desk.file)


@command(main, "import", KEEPING, WHOLE_STORY, free=("story", "tenant", "user"))
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
def import_(desk: Desk, source: Path) -> None:
    """Read a story that was exported. The story file is made if it is not there.

    The story gets the key that it had; --story, --tenant and --user each name another. All of it is read, or nothing.

    \b
    Example:
      talekeeper import ash-crown.jsonl --story copy
    """
    import asyncio

    with Status() as status, click.open_file(str(source), encoding="utf-8") as lines, _made_whole(desk) as making:
        key = asyncio.run(_take_in(making, lines, status))  # whose threads have ended when it has: nothing writes any more
    named = f" (use --tenant {for_a_shell(key.tenant_id)} --user {for_a_shell(key.user_id)})"
    whose = "" if (key.tenant_id, key.user_id) == ("local", "local") else named
    said = f"the story {in_quotes(key.session_id)} is in {in_quotes(str(desk.file))}{whose}"
    desk.show({"file": str(desk.file), "key": key}, lambda: [said])


async def _take_in(desk: Desk, lines: IO[str], status: Status) -> MemoryKey:
    from talekeeper.formats import import_story

    named = {"session_id": "story", "tenant_id": "tenant", "user_id": "user"}
    parts = {part: getattr(desk, option) for part, option in named.items() if option in desk.chosen}
    async with desk.keeper(make=True) as keeper:
        return await import_story(keeper, _each(lines), key=lambda old: replace(old, **parts), progress=status)


def _each(lines: IO[str]) -> Iterator[str]:
    """The lines, which may have to be waited for."""
    while True:
        with heeding_ctrl_c():
            line = lines.readline()
        if not line:
            return
        yield line


# -- demonstration and measurement ---------------------------------------------------------------------------------------


@command(main, "demo", KEEPING, NO_STORY)
@click.argument("target", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--fast", is_flag=True, help="Do not pause.")
async def demo(desk: Desk, target: Path | None, fast: bool) -> None:
    """Tell a short story, and show what each seat remembers of it.

    With FILE the story is kept there, to look at with the other commands.

    \b
    Example:
      talekeeper demo --fast
      talekeeper demo demo.db
    """
    from talekeeper.demo import play

    told = await play(target, pause=not fast and not desk.json and sys.stdout.isatty(), quiet=desk.json)
    if desk.json:
        desk.show(told, lambda: ())


@command_group(main, "bench", KEEPING)
def bench() -> None:
    """Measure Talekeeper, beside other libraries.

    \b
    Example:
      talekeeper bench engine --quick
      talekeeper bench retention --data DIR
      talekeeper bench table --rounds 100
    """


@contextmanager
def _measuring() -> Iterator[Status]:
    """Shows how far a benchmark has come. When it is told to end, nothing of it stays."""
    end_in_peace()
    with Status() as status:
        yield status


def _tell(desk: Desk, report: Judged, check: bool) -> int:
    """Shows what a benchmark found; 1 where a target that counts was missed."""
    desk.show(report.to_json(), lambda: [report.table()])
    return int(check and bool(report.missed()))


def _numbers(of: str) -> Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]:
    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        parts = [part.replace("_", "") for part in value.split(",")]
        if not all(is_number(part) and int(part) > 0 for part in parts):
            raise click.BadParameter(f"write numbers of {of}, such as 100,1000,10000")
        return tuple(sorted({int(part) for part in parts}))

    return parse


def _given(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were named; the others have the defaults of the benchmark."""
    return {name: value for name, value in chosen.items() if value is not None}


_number, _seconds = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)
_check = click.option("--check", is_flag=True, help="Exit with 1 where a target is missed.")
_directory = click.option(
    "--directory", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR", help="Where the files are made."
)


@command(bench, "engine", KEEPING, NO_STORY)
@click.option("--quick", is_flag=True, help="A look within 20 seconds: short stories, no peers.")
@_check
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Draw the results.")
@click.option("--sizes", callback=_numbers("turns"), metavar="A,B", help="Lengths of story, in turns.")
@click.option("--rounds", type=_number, metavar="N", help="How often each system gets its turn.")
@click.option("--batch", type=_number, metavar="N", help="Turns in a round.")
@click.option("--peers/--no-peers", default=None, help="Measure other libraries too, as far as they are installed.")
@click.option("--peer-turns", type=_number, metavar="N", help="The longest story that peers get.")
@click.option("--batch-seconds", type=_seconds, metavar="S", help="The most time a batch may take.")
@click.option("--resumes", type=_number, metavar="N", help="How often resuming is measured.")
@click.option("--stories", type=_number, metavar="N", help="How many stories append at once.")
@click.option("--volleys", type=_number, metavar="N", help="How often they do.")
@click.option("--starts", type=_number, metavar="N", help="How often the import is measured.")
@click.option("--seed", type=int, metavar="N", help="Of the generated stories.")
@_directory
def engine(desk: Desk, /, quick: bool, check: bool, plot: Path | None, **chosen: Any) -> int:
    """Measure what one turn costs, beside a bare SQLite row and other libraries.

    \b
    Example:
      talekeeper bench engine --quick --check
      talekeeper bench engine --sizes 1000,100000 --no-peers --plot engine.svg
    """
    from talekeeper.bench.engine import Options, run

    options = replace(Options.quick() if quick else Options(), **_given(chosen))
    if plot is not None and not plot.parent.is_dir():
        raise click.ClickException(f"there is no directory {str(plot.parent)!r}: make it first, or choose another")
    with _measuring() as status:
        report = run(options, status)
    if plot is not None:
        plot.write_text(report.svg(), encoding="utf-8")
    return _tell(desk, report, check)


@command(bench, "retention", KEEPING, NO_STORY)
@click.option("--data", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where locomo.json.gz and crd3.json.gz are.")
@click.option("--suite", "suites", multiple=True, type=click.Choice(["locomo", "crd3"]), help="Only this one. May be repeated.")
@click.option("--budgets", callback=_numbers("tokens"), metavar="A,B", help="Sizes of context, in tokens (500,1000,2000,4000).")
@_check
def retention(desk: Desk, /, data: Path, suites: tuple[str, ...], budgets: tuple[int, ...] | None, check: bool) -> int:
    """Measure how much of a long history is still in a context.

    It replays histories that come with questions and the turns that answer them, and looks for these turns in contexts made with the
    question and without, beside plain BM25 and the last turns that fit. No model, no judge. The data does not come with
    Talekeeper: see docs/retention.md.

    \b
    Example:
      talekeeper bench retention --data DIR --check
      talekeeper bench retention --data DIR --suite locomo --budgets 1000,4000 --json
    """
    from talekeeper.bench.histories import SUITES
    from talekeeper.bench.retention import BUDGETS, Options, run

    with _measuring() as status:
        report = run(Options(data=data, suites=suites or SUITES, budgets=budgets or BUDGETS), status)
    return _tell(desk, report, check)


@command(bench, "server", KEEPING, NO_STORY)
@click.option("--stories", type=_number, metavar="N", help="How many are played at once.  [default: 100]")
@click.option("--seconds", type=_seconds, metavar="S", help="For how long.  [default: 600]")
@click.option("--think", type=click.FloatRange(min=0), metavar="S", help="How long people think before they answer.  [default: 0]")
@click.option("--past", type=click.IntRange(min=0), metavar="N", help="Rounds that were played in each story before.  [default: 100]")
@_check
@click.option("--seed", type=int, metavar="N", help="Of the games.")
@_directory
def server(desk: Desk, /, check: bool, **chosen: Any) -> int:
    """Play many stories at once against a server of its own, and see that nothing is lost.

    \b
    Example:
      talekeeper bench server --stories 10 --seconds 20
      talekeeper bench server --check --json
    """
    need_play()
    need_serve()
    from talekeeper.bench.server import Options, run

    with _measuring() as status:
        report = run(Options(**_given(chosen)), status)
    return _tell(desk, report, check)


@command(bench, "table", KEEPING, NO_STORY)
@click.option("--rounds", type=_number, metavar="N", help="How many are played.  [default: 300]")
@click.option("--scenario", metavar="NAME|FILE", help="Which adventure.  [default: tidelamp]")
@click.option("--party", type=_number, metavar="N", help="How many of its heroes take part.  [default: 3]")
@_check
@click.option("--seed", type=int, metavar="N", help="Of the game.  [default: 1]")
@_directory
def table(desk: Desk, /, check: bool, **chosen: Any) -> int:
    """Measure what a game costs that plays by itself, with every prompt made in full.

    \b
    Example:
      talekeeper bench table --rounds 100
      talekeeper bench table --check --json
    """
    need_play()
    from talekeeper.bench.table import Options, run

    with _measuring() as status:
        report = run(Options(**_given(chosen)), status)
    return _tell(desk, report, check)
