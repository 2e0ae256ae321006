"""Commands that look at stories and change nothing: lists, the log, what a seat remembers and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from talekeeper.cli.app import BACK, BEGIN, FILE, KEEPING, REMEMBERING, Desk, command, main, names, words_or_stdin
from talekeeper.cli.screen import bar, bold, colour, columns, count, dim, hang, in_quotes, one_line, pad, rule, safe, shade, table

if TYPE_CHECKING:
    from talekeeper.keeper import Keeper
    from talekeeper.model import BranchInfo, Context, Fold, Item, MemoryKey, Recollection, Stats, Turn
    from talekeeper.ports import Message, StoryRecord
    from talekeeper.story.story import Story

# -- lists -------------------------------------------------------------------------------------------------------------


@command(main, "stories", KEEPING, FILE)
async def stories(desk: Desk) -> None:
    """List the stories in the file; for a game, also its adventure and round.

    \b
    Example:
      talekeeper stories --file saga.db
    """
    async with desk.keeper() as keeper:
        rows = [await _story_row(keeper, key) for key in await keeper.keys()]

    def lines() -> Iterator[str]:
        if not rows:
            yield f"no stories in {in_quotes(str(desk.file))} yet; {BEGIN}"
            return
        heads = ["tenant", "user", "story", "seats", "entries", "branches"]
        cells = [[*(safe(str(row[head])) for head in heads), safe(_game(row))] for row in rows]
        yield from table(cells, [*heads, "game"], "lllrrrl")

    desk.show(rows, lines)


async def _story_row(keeper: Keeper, key: MemoryKey) -> dict[str, Any]:
    from talekeeper.live.shared import is_finished, seats_of
    from talekeeper.table.playing.seating import glimpse

    record = await keeper.store.load(key)
    own = await lengths(keeper, record)
    seats = seats_of(record.config) if record is not None else []
    named = {"tenant": key.tenant_id, "user": key.user_id, "story": key.session_id}
    game = await glimpse(await keeper.story(key)) if record is not None and is_finished(record) else None
    played = {"adventure": game.adventure if game else None, "round": game.round if game else None}
    return {**named, "seats": len(seats), "entries": sum(own), "branches": len(own), **played}


async def lengths(keeper: Keeper, record: StoryRecord | None) -> list[int]:
    """How many entries each branch of a story that `branches` shows has of its own."""
    from talekeeper.live.shared import nothing_told_on

    if record is None:
        return []
    heads = [(branch, (await keeper.store.head(record.id, branch.id)).seq) for branch in record.branches.values()]
    return [head - branch.at for branch, head in heads if not nothing_told_on(branch, head)]


def _game(row: Mapping[str, Any]) -> str:
    """Which adventure a story is, and how far it has come."""
    return f"{row['adventure']}, round {row['round']:,}" if row["adventure"] else ""


def seat_rows(story: Story) -> list[str]:
    """The seats of a story as a table."""
    presence = story.presence()
    rows = [[safe(seat.id), seat.role, safe(seat.label), f"{seat.token_limit:,}", safe(_where(presence, seat.id))] for seat in story.seats]
    return table(rows, ["seat", "role", "called", "limit", "where"], "lllr")


def _where(presence: Mapping[str, str | None], seat: str) -> str:
    return "" if seat not in presence else presence[seat] or "(gone)"


@command(main, "seats", REMEMBERING)
async def seats(desk: Desk) -> None:
    """List the seats of a story, and where they are.

    \b
    Example:
      talekeeper seats
    """
    async with desk.open() as story:
        presence = story.presence()
        found = [{"seat": seat, "where": presence.get(seat.id), "gone": presence.get(seat.id, "") is None} for seat in story.seats]
        desk.show(found, lambda: seat_rows(story))


@command(main, "branches", BACK)
async def branches(desk: Desk) -> None:
    """Show the branches of a story, and what a rewind left behind.

    \b
    Example:
      talekeeper branches
    """
    async with desk.open() as story:
        found = await story.branches()
        desk.show(found, lambda: branch_lines(found))


def branch_lines(found: Sequence[BranchInfo], parent: str | None = None, stem: str = "") -> Iterator[str]:
    """Every branch below the one it left, with the number of its last common entry."""
    below = [branch for branch in found if branch.parent == parent]
    for at, branch in enumerate(below):
        last = at == len(below) - 1
        joint = "" if parent is None else "└─ " if last else "├─ "
        name = bold(safe(branch.name)) if branch.current else safe(branch.name)
        told = f"entries {branch.forked_at + 1:,} to {branch.head:,}" if branch.head > branch.forked_at else f"at entry {branch.head:,}"
        yield f"{stem}{joint}{name}  {dim(told)}{'  *' if branch.current else ''}"
        yield from branch_lines(found, branch.name, stem if parent is None else stem + ("   " if last else "│  "))


# -- the log -----------------------------------------------------------------------------------------------------------

_MARKS = {"event": "*", "enter": "→", "leave": "←"} | {kind: kind for kind in ("note", "edit", "pin", "unpin", "override", "mark")}
_HEAD, _VOICE = 7, 14


def log_lines(turns: Sequence[Turn], seats: int) -> Iterator[str]:
    """Turns in order, with a line where the place changes."""
    place: str | None = None
    for turn in turns:
        if turn.location and turn.location != place:
            place = turn.location
            yield " " * (_HEAD + _VOICE + 2) + dim(f"· {one_line(place, 60)} ·")
        yield from turn_lines(turn, seats, place)


def turn_lines(turn: Turn, seats: int, place: str | None = None) -> list[str]:
    """A turn: number, voice, words, who heard it where not everyone did, and where it was if that is not known."""
    number = dim(f"{turn.seq:>{_HEAD - 2}}") + "  "
    if turn.kind == "session":
        return [f"{number}{bold(rule(one_line(turn.text, 60), min(60, columns() - _HEAD)))}"]
    who = _MARKS.get(turn.kind) or one_line(turn.voice or turn.speaker, _VOICE)
    manner = {"whisper": "(whispering) ", "thought": "(thinking) "}.get(turn.kind, "")
    text = f"{manner}{f'({turn.when}) ' if turn.when else ''}{turn.text}"
    if turn.target:
        text = f"{turn.target}{': ' if turn.text else ''}{turn.text}"
    line = hang(number + bold(pad(who, _VOICE)) + "  ", text, _HEAD + _VOICE + 2)
    told = [f"heard by {', '.join(turn.audience) or 'no one'}"] if len(turn.audience) < seats else []
    told += [f"at {turn.location}"] if turn.location and turn.location != place and turn.kind not in ("enter", "leave") else []
    told += [f"edited, revision {turn.revision}"] if turn.revision else []
    return [line, *([" " * (_HEAD + _VOICE + 2) + dim(one_line("; ".join(told)))] if told else [])]


@command(main, "log", REMEMBERING)
@click.option("--seat", metavar="SEAT", help="Only what this seat heard.")
@click.option("--kinds", metavar="A,B", help="Only these kinds: said, whisper, thought, event, note, session, enter, leave, edit, pin …")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="N", help="Only what came after entry N.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many.")
@click.option("--newest", is_flag=True, help="With --limit: the newest ones.")
async def log(desk: Desk, seat: str | None, kinds: str | None, after: int, limit: int | None, newest: bool) -> None:
    """Print the log, or what one seat heard of it.

    \b
    Example:
      talekeeper log --seat rogue --limit 20 --newest
    """
    if newest and limit is None:
        raise click.UsageError("--newest needs --limit: how many of them?")
    async with desk.open() as story:
        found = await story.turns(seat=seat, kinds=names(kinds), after=after, limit=limit, newest=newest)
        desk.show(found, lambda: log_lines(found, len(story.seats)))


# -- memory ------------------------------------------------------------------------------------------------------------


@command(main, "context", REMEMBERING)
@click.argument("seat")
@click.option("--budget", type=click.IntRange(min=0), metavar="N", help="At most so many tokens. Default: the seat's limit.")
@click.option("--query", metavar="TEXT", help="Bring back turns that answer this.")
@click.option("--why", is_flag=True, help="Show what the budget was spent on, and what was left out.")
async def context(desk: Desk, seat: str, budget: int | None, query: str | None, why: bool) -> None:
    """Print what a seat remembers, as it would go into its prompt.

    \b
    Example:
      talekeeper context rogue --budget 500 --query "Who gave me the key?"
      talekeeper context rogue --budget 500 --why
    """
    async with desk.open() as story:
        found = await story.context(seat, budget=budget, query=query)
        turns = {block.name: len(await story.sources(block)) for block in found.blocks} if why else {}
    lines = why_lines(found, turns) if why else [safe(found.text.rstrip("\n"))]
    desk.show(found, lambda: lines)
    _warn_of_the_floor(found)


def _warn_of_the_floor(found: Context) -> None:
    if any(out.reason == "below floor" for out in found.left_out):
        from talekeeper.context.plan import FLOOR

        said = f"a budget of {found.budget} is too small for all of it, however short: from {FLOOR} up nothing is left out"
        click.echo(dim(said), err=True)


def why_lines(found: Context, turns: Mapping[str, int], room: int | None = None) -> list[str]:
    """Where a budget went: a bar, a table of the blocks, and what was left out and why."""
    room = min(columns() if room is None else room, 100)
    used = f"{found.tokens:,} of {found.budget:,} tokens"
    share = found.tokens * 100 // max(1, found.budget)
    sizes = [block.tokens for block in found.blocks]
    rows = [
        [
            f"{colour(shade(at), at)} {safe(block.name)}", f"{block.tokens:,}", f"{block.tokens * 100 / max(1, found.budget):.0f}%",
            f"{len(block.items):,}", f"{turns.get(block.name, 0):,}", _made_of(block.items),
        ]
        for at, block in enumerate(found.blocks)
    ]  # fmt: skip
    out = [f"{bold(safe(found.seat))}  {used} ({share}%), counted by {safe(found.counter)}", bar(sizes, found.budget, room), ""]
    out += table(rows, ["  block", "tokens", "share", "items", "turns", "made of"], "lrrrr")
    out += ["", dim(f"stable: the first {found.stable_tokens:,} tokens stay as they are while the story goes on")]
    if found.left_out:
        out += ["", bold("left out")]
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for one in found.left_out:
            turns_before, tokens_before = sums.get((one.block, one.reason), (0, 0))
            sums[one.block, one.reason] = turns_before + one.turn_count, tokens_before + one.tokens
        left = [
            [f"  {safe(block)}", count(heard, "turn"), count(tokens, "token"), _REASONS.get(reason, reason)]
            for (block, reason), (heard, tokens) in sums.items()
        ]
        out += table(left, ["  block", "turns", "raw", "why"], "lrr")
    return out


_KINDS = {"turn": ("raw turn", "raw turns"), "fold": ("fold", "folds"), "digest": ("digest", "digests"), "entry": ("entry", "entries")}
_REASONS = {
    "folded": "folded: told shorter; recall finds the words",
    "clipped": "clipped: too long for what was left",
    "no room": "no room: others answered better",
    "below floor": "below the floor: raise the budget",
}


def _made_of(items: Sequence[Item]) -> str:
    numbers: Counter[str] = Counter(item.kind for item in items)
    parts = [count(numbers[kind], *words) for kind, words in _KINDS.items() if numbers[kind]]
    clipped = sum(item.clipped for item in items)
    return ", ".join(parts) + (f", {clipped} clipped" if clipped else "")


@command(main, "recall", REMEMBERING)
@click.argument("seat")
@click.argument("query", nargs=-1)
@click.option("--limit", type=click.IntRange(min=1), default=5, show_default=True, metavar="N")
async def recall(desk: Desk, seat: str, query: tuple[str, ...], limit: int) -> None:
    """Find the turns a seat heard that answer a question.

    \b
    Example:
      talekeeper recall rogue "the promise at the bridge" --limit 3
    """
    wanted = words_or_stdin(query, "query")
    async with desk.open() as story:
        hits = await story.recall(seat, wanted, limit=limit)
    desk.show(hits, lambda: hit_lines(hits) or [f"{safe(seat)} heard nothing of that"])


def hit_lines(hits: Sequence[Recollection], room: int | None = None) -> list[str]:
    """Turns with what they scored, best first. A phrase that was found word for word says so."""
    from talekeeper.recall.ranking import PHRASE_BONUS

    lines = []
    for hit in hits:
        exact = hit.score >= PHRASE_BONUS
        score = colour(f"{'exact' if exact else f'{hit.score:.1f}':>6}", 1 if exact else 0)
        who = hit.turn.voice if hit.turn.kind in ("said", "whisper", "thought") else hit.turn.kind
        lines.append(hang(f"{score}  {dim(f'{hit.turn.seq:>5}')}  ", f"{who}: {hit.turn.text}", 15, room))
    return lines


@command(main, "brief", REMEMBERING)
@click.argument("seat")
@click.option("--budget", type=click.IntRange(min=0), metavar="N", help="At most so many tokens. Default: the seat's limit.")
async def brief(desk: Desk, seat: str, budget: int | None) -> None:
    """Print what a newcomer may be told.

    That is what every player character heard, and nothing else, whoever asks.

    \b
    Example:
      talekeeper brief bard --budget 300
    """
    async with desk.open() as story:
        found = await story.brief(seat, budget=budget)
    desk.show(found, lambda: [safe(found.text.rstrip("\n"))] if found.text or found.left_out else ["nothing yet that everyone heard"])
    _warn_of_the_floor(found)


@command(main, "folds", REMEMBERING)
@click.argument("seat")
@click.option("--budget", type=click.IntRange(min=0), metavar="N", help="As for this budget. Default: the seat's limit.")
async def folds(desk: Desk, seat: str, budget: int | None) -> None:
    """List the folds that a seat's memory stands on, oldest first.

    \b
    Example:
      talekeeper folds rogue --budget 500
    """
    async with desk.open() as story:
        found = await story.folds(seat, budget=budget)
    rows = [_fold_json(fold) for fold in found]
    desk.show(rows, lambda: fold_lines(found) or [f"nothing is folded for {safe(seat)} at this budget: everything is raw"])


def _fold_json(fold: Fold) -> dict[str, Any]:
    from talekeeper.model import to_json

    return {**to_json(fold), "text": fold.text}


def fold_lines(found: Sequence[Fold]) -> list[str]:
    lines = []
    for fold in found:
        about = [
            f"level {fold.level}",
            count(fold.turn_count, "turn"),
            fold.made_by,
            *([one_line(fold.location, 30)] if fold.location else []),
        ]
        lines += [f"{colour(fold.id, 0)}  {dim(', '.join(about))}", hang("", fold.text or "(forgotten)", 2)]
    return lines


# -- how it is doing -----------------------------------------------------------------------------------------------------


@command(main, "health", KEEPING)
async def health(desk: Desk) -> None:
    """Say how the summarizer of a story is doing. Memory is complete whatever it says.

    This command uses no model. It also shows how the last process with a model ended, which the file remembers.

    \b
    Example:
      talekeeper health
    """
    from talekeeper.model import Health, to_json
    from talekeeper.story.inside import last_model

    async with desk.keeper(summarizer=_never_asked) as keeper:  # only so that what waits for a model is counted
        story = await desk.find(keeper)
        pending, ended = (await story.health()).pending, await last_model(story)
    here, last = Health(), None if ended is None else {**ended._asdict(), "pending": pending}
    line = f"{here.state.value}: folds are made by the {here.summarizer} summarizer, {here.pending} waiting"
    desk.show({**to_json(here), "last_model": last}, lambda: [line, *([_told_of_the_last(last)] if last else [])])


async def _never_asked(messages: Sequence[Message]) -> str:
    raise AssertionError("nothing is folded by looking")


def _told_of_the_last(last: Mapping[str, Any]) -> str:
    failed = f" after {count(last['failures'], 'failure')}: {one_line(last['reason'])}" if last["failures"] else ""
    waiting = f"{count(last['pending'], 'fold waits', 'folds wait')} for a model" if last["pending"] else "nothing waits for a model"
    return f"the last process that had a model ended {one_line(last['state'])}{failed}; {waiting}"


@command(main, "stats", KEEPING)
async def stats(desk: Desk) -> None:
    """Say what a story holds, and what it has cost.

    \b
    Example:
      talekeeper stats
    """
    async with desk.open() as story:
        found = await story.stats()
        limits = {seat.id: seat.token_limit for seat in story.seats}
    desk.show(found, lambda: _stat_lines(found, limits))


def _stat_lines(found: Stats, limits: Mapping[str, int]) -> Iterator[str]:
    told = [count(found.turns, "turn"), count(found.tokens, "token"), count(found.sessions, "new session")]
    yield ", ".join([*told, count(found.channels, "channel"), count(found.branches, "branch", "branches")])
    yield f"{count(found.folds, 'fold')}, shared {found.folds_shared:,} times over"
    if found.model_calls or found.model_failures:
        spent = f"{found.model_tokens_in:,} tokens in, {found.model_tokens_out:,} out, {count(found.model_failures, 'failure')}"
        yield f"{count(found.model_calls, 'model call')}: {spent}"
        saved = f"about {count(found.model_calls_saved, 'more call')} and {count(found.model_tokens_saved, 'token')}"
        yield f"saved, since seats share what they heard together: {saved}"
    yield ""
    rows = []
    for seat, heard in found.seats.items():
        limit = limits[seat]
        rows.append(
            [safe(seat), f"{heard['turns']:,}", f"{heard['tokens']:,}", f"{limit:,}", bar([min(heard["tokens"], limit)], limit, 24)]
        )
    yield from table(rows, ["seat", "turns heard", "tokens", "limit", "of the limit"], "lrrr")
