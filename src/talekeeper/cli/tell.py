"""Commands that tell a story: its seats, its turns, who is where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from talekeeper.cli.app import TELLING, Desk, command, is_number, main, names, words_or_stdin
from talekeeper.cli.look import seat_rows, turn_lines
from talekeeper.cli.screen import count, in_quotes, safe

if TYPE_CHECKING:
    from talekeeper.model import Turn
    from talekeeper.story.story import Story

SPOKEN = ("said", "whisper", "thought", "event", "note")
"""The kinds of `model.SpokenKind`, which `--help` does not wait for."""


def read_seat(spec: str) -> dict[str, Any]:
    """What ID[:ROLE[:LIMIT]] says of a seat."""
    id, *rest = spec.split(":")
    if len(rest) > 2 or not id or not (len(rest) < 2 or is_number(rest[1])):
        raise click.BadParameter(
            f"{spec[:200]!r} is no seat: write ID, ID:ROLE or ID:ROLE:LIMIT, such as bard:pc:4000", param_hint="'--seat'"
        )
    if "," in id:
        raise click.BadParameter(
            f"{id[:200]!r} has a comma, which stands between seats in a list: choose another id", param_hint="'--seat'"
        )
    given: dict[str, Any] = {"id": id}
    if rest and rest[0]:
        given["role"] = rest[0]
        if rest[0] not in ("dm", "pc", "npc"):
            raise click.BadParameter(f"{rest[0][:200]!r} is no role: a seat is dm, pc or npc", param_hint="'--seat'")
    return {**given, "token_limit": int(rest[1])} if len(rest) > 1 else given


@command(main, "init", TELLING)
@click.option(
    "--seat", "seats", multiple=True, metavar="ID[:ROLE[:LIMIT]]", help="A seat: its id, its role (dm, pc, npc), its token limit."
)
async def init(desk: Desk, seats: tuple[str, ...]) -> None:
    """Begin a story, or let seats join one.

    Without --seat a new story has a dm and a hero. A seat that joins later remembers from then on. For a seat that exists, only what you
    write behind its id is changed.

    \b
    Example:
      talekeeper init --seat dm:dm --seat rogue --seat bard:pc:4000
    """
    from talekeeper import rim
    from talekeeper.live.shared import seats_of
    from talekeeper.model import Seat

    given = [read_seat(spec) for spec in seats]
    rim.key(desk.key)  # before a file is made
    rim.seats([Seat(**one) for one in given])
    async with desk.keeper(make=True) as keeper:
        record = await keeper.store.load(desk.key)
        if not given and record is None:
            given = [read_seat("dm:dm"), read_seat("hero")]
        before = {seat.id: seat for seat in seats_of(record.config)} if record is not None else {}
        wanted = [replace(before[one["id"]], **one) if one["id"] in before else Seat(**one) for one in given]
        story = await keeper.story(desk.key, seats=wanted or None, branch=desk.branch)
        joined = [seat.id for seat in wanted if seat.id not in before]
        changed = [seat.id for seat in wanted if before.get(seat.id, seat) != seat]
        value = {
            "file": str(desk.file), "key": desk.key, "made": record is None, "seats": story.seats, "joined": joined, "changed": changed,
        }  # fmt: skip
        title = f"{'made' if record is None else 'found'} the story {in_quotes(desk.story)} in {in_quotes(str(desk.file))}"
        title += f": {count(len(story.seats), 'seat')}" + (f"; {_news(joined, changed)}" if wanted and record is not None else "")
        desk.show(value, lambda: [title, *seat_rows(story)])


def _news(joined: Sequence[str], changed: Sequence[str]) -> str:
    """What has become of the seats of a story that was there."""
    told = [f"{', '.join(map(safe, seats))} {what}" for seats, what in ((joined, "joined"), (changed, "changed")) if seats]
    return ", ".join(told) or "nothing changed"


def _check_id(own_id: str | None) -> None:
    """An id by which a command can name the turn later."""
    if own_id is not None and is_number(own_id):
        raise click.BadParameter(f"{own_id} would be taken for the number of a turn: put a letter into the id", param_hint="'--id'")


def _show(desk: Desk, story: Story, turn: Turn | None, unmoved: str = "") -> None:
    """The turn; where there is none because nobody moved, that."""
    desk.show(turn, lambda: [unmoved] if turn is None else turn_lines(turn, len(story.seats)))


@command(main, "append", TELLING)
@click.argument("speaker")
@click.argument("text", nargs=-1)
@click.option("--heard-by", metavar="A,B", help="Who hears it, besides the speaker and the DM. Default: those present.")
@click.option("--at", metavar="PLACE", help="Where it happens. Default: where the speaker is.")
@click.option("--kind", type=click.Choice(SPOKEN), default="said", show_default=True)
@click.option("--voice", metavar="NAME", help="The name to show, where the speaker speaks for someone else.")
@click.option("--when", metavar="TIME", help="Story time, shown with the turn.")
@click.option("--mentions", metavar="A,B", help="Names that this turn is about.")
@click.option("--id", "own_id", metavar="ID", help="Your own id; appending it again changes nothing.")
async def append(
    desk: Desk, speaker: str, text: tuple[str, ...], heard_by: str | None, at: str | None, kind: Any, voice: str | None, when: str | None,
    mentions: str | None, own_id: str | None,
) -> None:  # fmt: skip
    """Append a turn. It is durable when the command returns.

    SPEAKER is a seat; '' with --kind event is the world itself. Without TEXT, or with -, the text is read from standard input.

    \b
    Example:
      talekeeper append dm "The innkeeper slides you a key." --heard-by rogue --at tavern
      talekeeper append '' "Far away, a bell tolls." --kind event
    """
    if kind == "whisper" and heard_by is None:
        raise click.UsageError("a whisper needs --heard-by: who hears it?")
    if not speaker and kind not in ("event", "note"):
        raise click.UsageError("nobody speaks: name a seat, or add --kind event")
    _check_id(own_id)
    words = words_or_stdin(text)
    async with desk.open() as story:
        turn = await story.append(
            speaker,
            words,
            heard_by=names(heard_by),
            location=at,
            kind=kind,
            voice=voice,
            when=when,
            mentions=names(mentions) or (),
            id=own_id,
        )
        _show(desk, story, turn)


@command(main, "note", TELLING)
@click.argument("text", nargs=-1)
@click.option("--heard-by", metavar="A,B", help="Who knows it. Default: everyone.")
@click.option("--mentions", metavar="A,B", help="Names that this note is about.")
@click.option("--id", "own_id", metavar="ID", help="Your own id; adding it again changes nothing.")
async def note(desk: Desk, text: tuple[str, ...], heard_by: str | None, mentions: str | None, own_id: str | None) -> None:
    """Add to the canon: a character sheet, lore, an author's note.

    \b
    Example:
      talekeeper note "The Ash Crown burns whoever lies while wearing it." --heard-by dm
    """
    _check_id(own_id)
    words = words_or_stdin(text)
    async with desk.open() as story:
        _show(desk, story, await story.note(words, heard_by=names(heard_by), mentions=names(mentions) or (), id=own_id))


@command(main, "enter", TELLING)
@click.argument("seat")
@click.argument("place")
@click.option("--text", metavar="TEXT", help="What those who are there see.")
async def enter(desk: Desk, seat: str, place: str, text: str | None) -> None:
    """Someone comes to a place, and hears what happens there from now on.

    \b
    Example:
      talekeeper enter rogue tavern
    """
    async with desk.open() as story:
        _show(desk, story, await story.enter(seat, place, text=text), f"{safe(seat)} is there already: nothing changed")


@command(main, "leave", TELLING)
@click.argument("seat")
@click.option("--text", metavar="TEXT", help="What those who are there see.")
async def leave(desk: Desk, seat: str, text: str | None) -> None:
    """Someone goes, and hears nothing until they enter again.

    \b
    Example:
      talekeeper leave bard --text "The bard slips out by the kitchen."
    """
    async with desk.open() as story:
        _show(desk, story, await story.leave(seat, text=text), f"{safe(seat)} is gone already: nothing changed")


@command(main, "session", TELLING)
@click.argument("title", nargs=-1)
async def session(desk: Desk, title: tuple[str, ...]) -> None:
    """Begin a new session of the same story.

    \b
    Example:
      talekeeper session "Session 2: the road north"
    """
    async with desk.open() as story:
        _show(desk, story, await story.begin_session(" ".join(title) or None))
