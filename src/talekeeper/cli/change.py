"""Commands that change what was told: going back, branching, editing, forgetting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING

import click

from talekeeper.cli.app import BACK, KEEPING, STORY, Desk, command, confirm, main, turn_ref, words_or_stdin
from talekeeper.cli.look import fold_lines, lengths, turn_lines
from talekeeper.cli.play import drop_rounds, need_play, rounds_file
from talekeeper.cli.screen import Status, count, for_a_shell, in_quotes, one_line, safe
from talekeeper.cli.voices import KINDS, check_named, model_options

if TYPE_CHECKING:
    from talekeeper.model import Health, Stats, Turn
    from talekeeper.ports import ChatModel
    from talekeeper.story.story import Story

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def _show_turn(desk: Desk, story: Story, turn: Turn, said: str) -> None:
    desk.show(turn, lambda: [said, *turn_lines(turn, len(story.seats))])


@command(main, "rewind", BACK)
@click.argument("turn")
async def rewind(desk: Desk, turn: str) -> None:
    """Go back to just after a turn.

    The turn is given by its number or its id; 0 is the beginning. What came after stays as a branch of its own, and talekeeper adopt
    takes it up again.

    \b
    Example:
      talekeeper rewind 12
    """
    async with desk.open() as story:
        before = {branch.name for branch in await story.branches()}
        head = await story.rewind(turn_ref(turn))
        kept = await _left_behind(story, before)
    said = [f"{in_quotes(desk.branch)} is at entry {head}"]
    if kept:
        said[0] += f"; what came after is the branch {in_quotes(kept)}"
        said.append(f"take it back with: talekeeper adopt {for_a_shell(kept)}{_same_story(desk)}")
    desk.show({"branch": desk.branch, "head": head, "kept": kept}, lambda: said)


async def _left_behind(story: Story, before: Set[str]) -> str | None:
    """The name of the branch that was not there before."""
    return next((branch.name for branch in await story.branches() if branch.name not in before), None)


def _same_story(desk: Desk) -> str:
    """The options with which another command is about what this one was."""
    chosen = [name for name in STORY if name in desk.chosen and name != "json"]
    return "".join(f" --{name} {for_a_shell(str(getattr(desk, name)))}" for name in chosen)


@command(main, "adopt", BACK)
@click.argument("name", metavar="BRANCH")
async def adopt(desk: Desk, name: str) -> None:
    """Take up another branch as this one, such as what a rewind left behind.

    It takes this branch's name, and what had the name so far stays as a branch of its own, if anything was told on it: adopt that one to
    undo this. `talekeeper branches` shows which there are.

    \b
    Example:
      talekeeper adopt side
    """
    async with desk.open() as story:
        before = {branch.name for branch in await story.branches()}
        head = await story.adopt(name)
        kept = await _left_behind(story, before)
    if name == desk.branch:
        said = f"{in_quotes(name)} is the branch that you are on: nothing changed"
    else:
        said = f"{in_quotes(desk.branch)} goes on from entry {head} of {in_quotes(name)}"
        said += f"; what it was is the branch {in_quotes(kept)}" if kept else ""
    desk.show({"branch": desk.branch, "head": head, "adopted": name, "kept": kept}, lambda: [said])


@command(main, "fork", BACK)
@click.argument("name")
@click.option("--at", metavar="TURN", help="After this turn, given by number or id. Default: now.")
async def fork(desk: Desk, name: str, at: str | None) -> None:
    """Begin a new branch; this one goes on as it was.

    \b
    Example:
      talekeeper fork what-if --at 5
      talekeeper append rogue "I give the key back." --branch what-if
    """
    async with desk.open() as story:
        made = await story.fork(at=None if at is None else turn_ref(at), name=name)
        value = {"branch": made.branch, "from": desk.branch, "head": made.head}
    desk.show(value, lambda: [f"the branch {in_quotes(name)} begins after entry {value['head']}; use it with --branch {for_a_shell(name)}"])


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
        confirm(f"Forget turn {found.seq}, “{one_line(found.text, 50)}”, for good?", yes)
        await story.forget(found)
    desk.show({"forgotten": found.id, "seq": found.seq}, lambda: [f"turn {found.seq} is forgotten"])


@command(main, "pin", BACK)
@click.argument("turn")
async def pin(desk: Desk, turn: str) -> None:
    """Keep a turn word for word in every context of those who heard it.

    Pinned turns take their room in the budget before anything else.

    \b
    Example:
      talekeeper pin 2
    """
    async with desk.open() as story:
        pinned = await _pinned(story)
        found = await story.pin(turn_ref(turn))
        _show_turn(desk, story, found, "it is pinned already: nothing changed" if found.id in pinned else "pinned")


async def _pinned(story: Story) -> set[str]:
    return {turn.id for turn in await story.pins()}


@command(main, "unpin", BACK)
@click.argument("turn")
async def unpin(desk: Desk, turn: str) -> None:
    """Take a pin back.

    \b
    Example:
      talekeeper unpin 2
    """
    async with desk.open() as story:
        pinned = await _pinned(story)
        found = await story.unpin(turn_ref(turn))
        _show_turn(desk, story, found, "no longer pinned" if found.id in pinned else "it was not pinned: nothing changed")


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
@model_options(f"Who writes them: {KINDS}. Default: no model.")
async def fold(desk: Desk, model: str | None, base_url: str | None) -> int:
    """Make all folds that are due, and store them.

    Contexts never wait for this: what is not stored yet is made when it is needed. With --model, a language model writes those that are
    worth it, as it would in the background. The command says what that cost, and talekeeper stats counts it.

    \b
    Example:
      talekeeper fold
    """
    from talekeeper.story.inside import stored

    summarizer = _summarizer(model, base_url)
    with Status() as status:
        status("opening the story")
        async with desk.keeper(summarizer=summarizer) as keeper:
            story = await desk.find(keeper)
            before, spent = await stored(story), await story.stats()
            written = await _settle(story, status, model)
            after, health = await stored(story), await story.health()
            cost = _cost(spent, await story.stats())
    if health.pending and not written:
        left = count(health.pending, "fold that waits", "folds that wait")
        raise click.ClickException(f"{model} wrote none of the {left} for a model, which stay extractive: {health.reason}")
    made, through = after.folds - before.folds, after.entries - before.entries
    value = {"folds": made, "entries": through, "pending": health.pending, "summarizer": health.summarizer}
    said = [f"{count(made, 'fold')} made over {count(through, 'new entry', 'new entries')}" if through else "nothing was due"]
    if model is not None:
        value |= {"model": {"name": model, "folds": written, **cost}}
        said = [*said[: bool(through)], *_written_lines(model, written, cost, health)]
    desk.show(value, lambda: said)
    return int(health.pending > 0)


def _summarizer(model: str | None, base_url: str | None) -> ChatModel | None:
    """The model as one who makes folds. Where something is missing that it needs, that is said before anything is opened."""
    check_named(model, base_url)
    if model is None:
        return None
    from talekeeper.table.cast import chat

    return chat(model, base_url=base_url)


async def _settle(story: Story, status: Status, model: str | None) -> int:
    """Has everything made that is due, and tells how far it is; returns how many folds a model wrote."""
    waiting, written = (await story.health()).pending, 0

    def tell(before: Health, after: Health) -> None:
        nonlocal written
        written += before == after
        trouble = f"; {after.reason}" if after.failures else ""
        status(f"{model} writes: {written:,} of {count(max(waiting, written), 'fold')}{trouble}")

    status(f"{model} writes {count(waiting, 'fold')}" if waiting else "folding")
    unwatch = story.watch(tell)
    try:
        await story.settle()
    finally:
        unwatch()
    return written


def _cost(before: Stats, after: Stats) -> dict[str, int]:
    """What models have cost between the two."""
    parts = {"calls": "model_calls", "tokens_in": "model_tokens_in", "tokens_out": "model_tokens_out", "failures": "model_failures"}
    return {name: getattr(after, part) - getattr(before, part) for name, part in parts.items()}


def _written_lines(model: str, written: int, cost: Mapping[str, int], health: Health) -> Iterator[str]:
    if not cost["calls"] and not written:
        yield f"nothing is due that {safe(model)} would write"
        return
    spent = f"{count(cost['calls'], 'call')}, {cost['tokens_in']:,} tokens in, {cost['tokens_out']:,} out"
    failed = f", {count(cost['failures'], 'failure')}" if cost["failures"] else ""
    yield f"{count(written, 'fold')} written by {safe(model)}: {spent}{failed}"
    if health.pending:
        yield f"{count(health.pending, 'fold waits', 'folds wait')} for a model: {one_line(health.reason)}"


@command(main, "delete", KEEPING)
@yes_option
async def delete(desk: Desk, yes: bool) -> None:
    """Remove a story and everything in it, for good.

    \b
    Example:
      talekeeper delete --story old-campaign --yes
    """
    async with desk.keeper() as keeper:
        await desk.check_story(keeper)
        own = await lengths(keeper, await keeper.store.load(desk.key))
        if rounds_file(desk).exists():
            need_play()
        told = f"{count(sum(own), 'entry', 'entries')}" + (f" on {len(own):,} branches" if len(own) > 1 else "")
        confirm(f"Delete the story {in_quotes(desk.story)} with its {told}, for good?", yes)
        await drop_rounds(desk)
        await keeper.delete(desk.key)
    desk.show({"deleted": desk.key}, lambda: [f"the story {in_quotes(desk.story)} is gone"])
