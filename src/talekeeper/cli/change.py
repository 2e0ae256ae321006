"""Commands that change what was told: going back, branching, editing, forgetting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from talekeeper.cli.app import BACK, KEEPING, Desk, command, confirm, main, turn_ref, words_or_stdin
from talekeeper.cli.look import fold_lines, turn_lines
from talekeeper.cli.play import drop_rounds, need_play, rounds_file
from talekeeper.cli.screen import Status, count, one_line, safe

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper
    from talekeeper.model import Turn
    from talekeeper.story import Story

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def _show_turn(desk: Desk, story: Story, turn: Turn, said: str) -> None:
    desk.show(turn, lambda: [said, *turn_lines(turn, len(story.seats))])


@command(main, "rewind", BACK)
@click.argument("turn")
async def rewind(desk: Desk, turn: str) -> None:
    """Go back to just after a turn.

    The turn is given by its number or its id; 0 is the beginning. What came after stays as a branch of its own.

    \b
    Example:
      talekeeper rewind 12
    """
    async with desk.open() as story:
        before = {branch.name for branch in await story.branches()}
        head = await story.rewind(turn_ref(turn))
        kept = [branch.name for branch in await story.branches() if branch.name not in before]
    said = f"{safe(desk.branch)!r} is at entry {head}" + (f"; what came after is the branch {safe(kept[0])!r}" if kept else "")
    desk.show({"branch": desk.branch, "head": head, "kept": kept[0] if kept else None}, lambda: [said])


@command(main, "fork", BACK)
@click.argument("name")
@click.option("--at", metavar="TURN", help="After this turn, given by number or id. Default: now.")
async def fork(desk: Desk, name: str, at: str | None) -> None:
    """Begin a branch of its own; this one goes on as it was.

    \b
    Example:
      talekeeper fork what-if --at 5
      talekeeper append rogue "I give the key back." --branch what-if
    """
    async with desk.open() as story:
        made = await story.fork(at=None if at is None else turn_ref(at), name=name)
        value = {"branch": made.branch, "from": desk.branch, "head": made.head}
    desk.show(value, lambda: [f"the branch {safe(name)!r} begins after entry {value['head']}; use it with --branch {safe(name)}"])


@command(main, "edit", BACK)
@click.argument("turn")
@click.argument("text", nargs=-1)
async def edit(desk: Desk, turn: str, text: tuple[str, ...]) -> None:
    """Change what a turn says, for all who heard it. A rewind undoes it.

    \b
    Example:
      talekeeper edit 2 "The innkeeper slides you a rusty key."
    """
    words = words_or_stdin(text)
    async with desk.open() as story:
        _show_turn(desk, story, await story.edit(turn_ref(turn), words), "now it reads")


@command(main, "regenerate", BACK)
@click.argument("text", nargs=-1)
async def regenerate(desk: Desk, text: tuple[str, ...]) -> None:
    """Tell the newest turn anew; the old one stays on a branch.

    \b
    Example:
      talekeeper regenerate "The innkeeper says nothing, and slides you a key."
    """
    words = words_or_stdin(text)
    async with desk.open() as story:
        _show_turn(desk, story, await story.regenerate(words), "told anew")


@command(main, "forget", BACK)
@click.argument("turn")
@yes_option
async def forget(desk: Desk, turn: str, yes: bool) -> None:
    """Remove a turn for good.

    It goes from all branches, with everything that was made from it. There is no undo.

    \b
    Example:
      talekeeper forget 13 --yes
    """
    async with desk.open() as story:
        found = await story.turn(turn_ref(turn))
        confirm(f"Forget turn {found.seq}, {one_line(found.text, 50)!r}, for good?", yes)
        await story.forget(found)
    desk.show({"forgotten": found.id, "seq": found.seq}, lambda: [f"turn {found.seq} is forgotten"])


@command(main, "pin", BACK)
@click.argument("turn")
async def pin(desk: Desk, turn: str) -> None:
    """Keep a turn word for word in every context.

    In the contexts of those who heard it, that is. It takes of the budget first.

    \b
    Example:
      talekeeper pin 2
    """
    async with desk.open() as story:
        _show_turn(desk, story, await story.pin(turn_ref(turn)), "pinned")


@command(main, "unpin", BACK)
@click.argument("turn")
async def unpin(desk: Desk, turn: str) -> None:
    """Take a pin back.

    \b
    Example:
      talekeeper unpin 2
    """
    async with desk.open() as story:
        _show_turn(desk, story, await story.unpin(turn_ref(turn)), "no longer pinned")


@command(main, "override", BACK)
@click.argument("fold")
@click.argument("text", nargs=-1)
async def override(desk: Desk, fold: str, text: tuple[str, ...]) -> None:
    """Put your own text in the place of a fold. `talekeeper folds` lists their ids.

    It holds until one of the fold's turns changes; a rewind undoes it.

    \b
    Example:
      talekeeper override 5f0c2ab84d1e6a7790b3c8d2 "They met at the tavern, and trusted no one."
    """
    words = words_or_stdin(text)
    async with desk.open() as story:
        made = await story.override(fold, words)
    desk.show(made, lambda: fold_lines([made]))


@command(main, "fold", KEEPING)
async def fold(desk: Desk) -> None:
    """Make all folds that are due, and store them.

    Contexts never wait for this: what is not stored yet is made when it is needed.

    \b
    Example:
      talekeeper fold
    """
    with Status() as status:
        status("opening the story")
        async with desk.keeper() as keeper:
            story = await desk.find(keeper)
            before = await _stored(keeper, story)
            status("folding")
            await story.settle()
            after, health = await _stored(keeper, story), await story.health()
    made, through = after["folds"] - before["folds"], after["entries"] - before["entries"]
    value = {"folds": made, "entries": through, "pending": health.pending, "summarizer": health.summarizer}
    said = f"{count(made, 'fold')} made over {count(through, 'new entry', 'new entries')}" if through else "nothing was due"
    desk.show(value, lambda: [said + (f"; {health.pending} wait for a model" if health.pending else "")])


async def _stored(keeper: Keeper, story: Story) -> dict[str, int]:
    """How far the stored folds reach on this branch."""
    from talekeeper.ports import Read, Span
    from talekeeper.shared import path_to

    record = await keeper.store.load(story.key)
    assert record is not None
    branch = next(branch for branch in record.branches.values() if branch.name == story.branch)
    path = path_to(record.branches, branch.id, story.head)
    on = [Span(number, first, min(last, story.head)) for number, first, last in path.segments]
    snapshot = (await keeper.store.read(Read(record.id, snapshot_on=on))).snapshot
    return {"folds": snapshot.state["folds"][0], "entries": snapshot.seq} if snapshot else {"folds": 0, "entries": 0}


@command(main, "delete", KEEPING)
@yes_option
async def delete(desk: Desk, yes: bool) -> None:
    """Remove a story with everything of it, for good.

    \b
    Example:
      talekeeper delete --story old-campaign --yes
    """
    async with desk.keeper() as keeper:
        story = await desk.find(keeper)
        if rounds_file(desk).exists():
            need_play()
        confirm(f"Delete the story {safe(desk.story)!r} with its {count(story.head, 'entry', 'entries')}, for good?", yes)
        await drop_rounds(desk)
        await keeper.delete(desk.key)
    desk.show({"deleted": desk.key}, lambda: [f"the story {safe(desk.story)!r} is gone"])
