"""The demonstration: a short story, told to three who do not hear the same, and what each of them remembers of it.

It needs no model, no key and no network. Everything that is shown comes from the public API; nothing is made up for the show.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click

import talekeeper as tk
from talekeeper.cli.look import branch_lines, hit_lines, why_lines
from talekeeper.cli.screen import bar, bold, colour, columns, count, dim, for_a_shell, pad, rule, safe, use_colour, wrap
from talekeeper.model import SpokenKind

KEY = tk.MemoryKey("local", "local", "main")
SEATS = (
    tk.Seat("dm", role="dm", token_limit=2000),
    tk.Seat("rogue", name="Wren", token_limit=1000),
    tk.Seat("bard", name="Corin", token_limit=1000),
)
BUDGET = 320
SECRET = "Who lit the false light?"


class Beat(NamedTuple):
    """One step of the script: words, or someone who comes or goes."""

    who: str
    text: str
    do: Literal["tell", "enter", "leave", "session"] = "tell"
    place: str | None = None
    kind: SpokenKind = "said"
    heard_by: Sequence[str] | None = None
    voice: str | None = None


def _enter(who: str, place: str, text: str) -> Beat:
    return Beat(who, text, "enter", place)


def _aside(who: str, text: str) -> Beat:
    return Beat(who, text, kind="thought")


SCRIPT = (
    Beat("", "Greyharbour is a town of salt and lamps. The Lantern Guild pays for every light that burns along its coast.", kind="note"),
    Beat("", "For the storyteller alone: Maud lit the false light, and Piers Vale paid her for it.", kind="note", heard_by=["dm"]),
    _enter("rogue", "Salt Lantern", "Wren ducks in out of the rain."),
    _enter("bard", "Salt Lantern", "Corin follows, his lute under his coat."),
    Beat("dm", "The Salt Lantern is warm and nearly empty. Maud, who keeps it, is wiping a cup that is clean already."),
    Beat("bard", "I shake out my cloak by the fire. A song for a bowl of soup?"),
    Beat("dm", "Soup first. Songs have been unlucky here since the Petrel went down with eleven hands.", voice="Maud"),
    Beat("rogue", "I take the table by the door and count the ways out. Two, and a trapdoor behind the bar."),
    Beat("dm", "At the next table sits Captain Aldous Thorne, once master of the Petrel. He pays for his ale with a coin of black silver."),
    Beat("bard", "Captain! What does a sailor without a ship drink to?"),
    Beat("dm", "To whoever lit the wrong light that night. I will give forty marks for the name.", voice="Thorne"),
    Beat("rogue", "Forty marks. I catch Corin's eye, and nod."),
    Beat("bard", "Then I promise you that name, Captain, by the new moon. For both of us, on my mother's lute."),
    Beat("dm", "Thorne spits in his palm, shakes your hands and goes out into the rain."),
    Beat("dm", "As you pass the bar, Maud presses an iron key into your hand. 'The cellar. After midnight. Alone.'", kind="whisper",
         heard_by=["rogue"]),
    _aside("rogue", "She knows something. And she picked me, not the singer."),
    Beat("bard", "I play The Drowned Bell, all nine verses of it."),
    Beat("dm", "By the ninth verse old fishermen are weeping into their beards, and the hat on the floor holds three marks."),
    Beat("bard", "Corin yawns, bows to the room and climbs the stairs to bed.", "leave"),
    Beat("dm", "The clock strikes midnight. The iron key turns without a sound."),
    _enter("rogue", "cellar", "Wren lifts the trapdoor and goes down into the dark."),
    Beat("dm", "Between the barrels stands a lantern of red glass, still crusted with salt. Maud sits beside it, her hands in her lap."),
    Beat("dm", "It was I who lit the false light. Piers Vale paid me twelve marks to hang it on the wrong rock.", voice="Maud"),
    Beat("rogue", "Vale. That is Corin's brother."),
    Beat("dm", "He wanted the wreck for its black silver. If you tell, they hang me and not him.", voice="Maud"),
    Beat("rogue", "Give me twenty marks, then, and your name stays down here with the lantern."),
    Beat("dm", "She counts twenty marks into your palm. Neither of you says good night."),
    _aside("rogue", "Corin gave his word for both of us. He must never learn what I have sold."),
    Beat("", "The second evening", "session"),
    _enter("rogue", "Salt Lantern", "Wren comes down late, with shadows under her eyes."),
    _enter("bard", "Salt Lantern", "Corin is at breakfast, in a splendid mood."),
    Beat("bard", "Did you learn anything in the night?"),
    Beat("rogue", "Nothing. The cellar is locked, and Maud sleeps like a stone."),
    Beat("dm", "Thorne's boy brings a note. Three days are left until the new moon."),
    Beat("bard", "A false light drinks oil like any other. Let us ask at the lighthouse who bought some."),
    _enter("rogue", "lighthouse", "Wren climbs the two hundred steps without a word."),
    _enter("bard", "lighthouse", "Corin arrives out of breath, counting aloud."),
    Beat("dm", "Hesper, the keeper, opens her ledger: twelve measures of red oil, sold to a P. Vale in the week of the wreck."),
    Beat("bard", "Vale? Why, half the coast is called Vale. I am called Vale."),
    Beat("rogue", "Half the coast, I say, and close the ledger."),
    Beat("bard", "Then I swear that I will not sing again until the Petrel has her justice."),
    Beat("dm", "Far out, where no ship should be, someone lights a red lantern."),
)  # fmt: skip


async def play(file: Path | None, *, pause: bool, quiet: bool = False) -> dict[str, Any]:
    """Tells the story, into that file or into one that is gone afterwards, and shows what is remembered. Returns what was shown."""
    with _place(file) as path:
        async with tk.open(path, counter=tk.Heuristic()) as keeper:  # so that it reads the same wherever it is shown
            if await keeper.store.load(KEY) is not None:
                raise tk.InvalidInput(f"there is a story {KEY.session_id!r} in {str(path)!r} already: choose another file")
            story = await keeper.story(KEY, seats=SEATS)
            stage = _Stage(pause, quiet)
            return await _show(story, stage, None if file is None else path)


@contextmanager
def _place(file: Path | None) -> Iterator[Path]:
    if file is not None:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="talekeeper-demo-") as directory:
        yield Path(directory) / "demo.db"


async def _show(story: tk.Story, stage: _Stage, file: Path | None) -> dict[str, Any]:
    await stage.title("THE SALT LANTERN", f"a story in {len(SCRIPT)} beats, for three who do not hear the same")
    await _tell(story, stage)
    contexts = await _remember(story, stage)
    secrets = await _compare(story, stage)
    await _explain(story, stage)
    hits = await _recall(story, stage)
    branches = await _go_back(story, stage)
    await stage.end(file)
    return {"file": file and str(file), "contexts": contexts, "only_the_rogue_knows": secrets, "recall": hits, "branches": branches}


# -- the six acts ------------------------------------------------------------------------------------------------------


async def _tell(story: tk.Story, stage: _Stage) -> None:
    await stage.act("The story", "Each line is a turn of one log. The letters on the left say who hears it: Dungeon master, Wren, Corin.")
    place: str | None = None
    for beat in SCRIPT:
        turn = await _append(story, beat)
        if turn is None:
            continue
        if turn.location and turn.location != place:
            place = turn.location
            await stage.scene(place)
        await stage.turn(turn)


async def _append(story: tk.Story, beat: Beat) -> tk.Turn | None:
    if beat.do == "session":
        return await story.begin_session(beat.text)
    if beat.do == "enter":
        return await story.enter(beat.who, beat.place or "", text=beat.text)
    if beat.do == "leave":
        return await story.leave(beat.who, text=beat.text)
    return await story.append(beat.who, beat.text, kind=beat.kind, heard_by=beat.heard_by, voice=beat.voice)


async def _remember(story: tk.Story, stage: _Stage) -> dict[str, str]:
    await stage.act(
        "What each remembers",
        f"Every seat gets its own memory, here in {BUDGET} tokens: what is new word for word, what is old folded, nothing left out.",
    )
    contexts = {}
    for seat in story.seats:
        context = await story.context(seat.id, budget=BUDGET)
        heard = (await story.stats()).seats[seat.id]
        contexts[seat.id] = context.text
        await stage.memory(seat, context, heard)
    return contexts


async def _compare(story: tk.Story, stage: _Stage) -> list[str]:
    await stage.act(
        "What Wren knows and Corin does not", "No one had to mark these as secret. Corin was not there, so it is not in his memory."
    )
    corin = {turn.id for turn in await story.turns(seat="bard")}
    secrets = [turn for turn in await story.turns(seat="rogue", kinds=["said", "whisper", "thought"]) if turn.id not in corin]
    for turn in secrets:
        await stage.turn(turn)
    return [turn.text for turn in secrets]


async def _explain(story: tk.Story, stage: _Stage) -> None:
    await stage.act("Why this and not something else", f'Asked "{SECRET}", this is where Wren\'s {BUDGET} tokens go.')
    context = await story.context("rogue", budget=BUDGET, query=SECRET)
    turns = {block.name: len(await story.sources(block)) for block in context.blocks}
    await stage.lines(why_lines(context, turns, stage.room - 2))


async def _recall(story: tk.Story, stage: _Stage) -> dict[str, list[str]]:
    await stage.act("The same question, three answers", f'"{SECRET}" finds turns that the one who asks has heard, best first.')
    found = {}
    for seat in ("dm", "rogue", "bard"):
        hits = await story.recall(seat, SECRET, limit=2)
        found[seat] = [hit.turn.text for hit in hits]
        await stage.line(f"  {bold(_name(seat))}")
        await stage.lines(hit_lines(hits, stage.room - 2))
    return found


async def _go_back(story: tk.Story, stage: _Stage) -> list[str]:
    await stage.act("Going back", "The author changes a word, thinks better of it, and then wonders what would have been.")
    ledger = (await story.recall("dm", "twelve measures of red oil", limit=1))[0].turn
    head, before = story.head, await _memories(story)
    edited = await story.edit(ledger, ledger.text.replace("red oil", "whale oil"))
    await stage.deed(f"edit {ledger.seq}", f"{edited.text}")
    await story.rewind(head)
    same = "to the byte" if await _memories(story) == before else "but not quite"
    await stage.deed(f"rewind {head}", f"The oil is red again, and every memory is what it was, {same}.")
    midnight = next(turn for turn in await story.turns() if turn.location == "cellar").seq - 2
    await story.rewind(midnight)
    await stage.deed(f"rewind {midnight}", f"Before the cellar. Wren has {await _how_often(story, 'Piers')} heard of Piers Vale.")
    turn = await story.append("rogue", "I leave the key on the bar, and go to bed like an honest woman.")
    await stage.deed("append", f"{turn.voice}: {turn.text}")
    other = await story.switch(max(await story.branches(), key=lambda branch: branch.head).name)
    await stage.deed(
        f"switch {other.branch}", f"The other evening is still there. Wren has {await _how_often(other, 'Piers')} heard of him."
    )
    await story.adopt(other.branch)
    await story.rewind(head)
    await stage.deed(f"adopt {other.branch}", "So it was, then, with red oil in the ledger; and what would have been stays beside it.")
    branches = await story.branches()
    await stage.line()
    await stage.lines(list(branch_lines(branches)))
    return [branch.name for branch in branches]


async def _memories(story: tk.Story) -> list[str]:
    return [(await story.context(seat.id, budget=budget)).text for seat in story.seats for budget in (BUDGET, 2000)]


async def _how_often(story: tk.Story, word: str) -> str:
    number = sum(word in turn.text for turn in await story.turns(seat="rogue"))
    return {0: "never", 1: "once"}.get(number, f"{number} times")


def _name(seat: str) -> str:
    return {"dm": "the dungeon master", "rogue": "Wren", "bard": "Corin"}[seat]


# -- the stage ---------------------------------------------------------------------------------------------------------

_TINT = {"dm": 3, "rogue": 1, "bard": 2}
_INDENT, _VOICE = 10, 8


class _Stage:
    """Where it is shown: one column of at most a page's width, slowly where someone is watching."""

    def __init__(self, pause: bool, quiet: bool) -> None:
        self.room = min(columns(), 92)
        self._pause = pause
        self._quiet = quiet
        self._acts = 0
        self._colour = use_colour()

    async def line(self, text: str = "", wait: float = 0.05) -> None:
        if not self._quiet:
            click.echo(text, color=self._colour)
            if self._pause:
                await asyncio.sleep(wait)

    async def lines(self, texts: Sequence[str]) -> None:
        for text in texts:
            for part in text.split("\n"):
                await self.line(f"  {part}" if part else "")

    async def title(self, name: str, about: str) -> None:
        await self.line()
        await self.line(f"  {bold(name)}")
        await self.line(f"  {dim(about)}", 0.6)

    async def act(self, name: str, about: str) -> None:
        self._acts += 1
        await self.line("", 0.6)
        await self.line(bold(rule(f"{self._acts}  {name}", self.room)))
        for text in wrap(about, self.room - 2):
            await self.line(f"  {dim(text)}")
        await self.line("", 0.6)

    async def deed(self, command: str, text: str) -> None:
        """Something the author does, and what comes of it."""
        for at, part in enumerate(wrap(safe(text), self.room - 20)):
            await self.line(f"  {bold(pad(command if at == 0 else '', 16))}  {part}", 0.6)

    async def scene(self, place: str) -> None:
        await self.line(" " * _INDENT + dim(f"· {place} ·"), 0.3)

    async def turn(self, turn: tk.Turn) -> None:
        if turn.kind == "session":
            await self.line(" " * _INDENT + dim(rule(turn.text, 40)), 0.6)
            return
        ears = " ".join(colour(mark, _TINT[seat]) if seat in turn.audience else dim("·") for seat, mark in zip(_TINT, "DWC", strict=True))
        voice = {"note": "canon", "enter": "", "leave": "", "event": ""}.get(turn.kind, turn.voice)
        speaks = turn.kind in ("said", "whisper", "thought") and turn.speaker in _TINT
        head = f"  {ears}   {colour(pad(voice, _VOICE), _TINT[turn.speaker]) if speaks else dim(pad(voice, _VOICE))} "
        manner = {"whisper": "(whispers) ", "thought": "(thinks) "}.get(turn.kind, "")
        body = wrap(safe(manner + turn.text), self.room - _INDENT - _VOICE - 1)
        for at, text in enumerate(body):
            shown = text if speaks else dim(text)
            await self.line((head if at == 0 else " " * (_INDENT + _VOICE + 1)) + shown, 0.35 if at == len(body) - 1 else 0)

    async def memory(self, seat: tk.Seat, context: tk.Context, heard: Mapping[str, int]) -> None:
        """A seat's context in a frame, with how much of its budget it takes."""
        name = "Dungeon master" if seat.role == "dm" else seat.label
        said = f"heard {count(heard['turns'], 'turn')}, {heard['tokens']:,} tokens; remembers them in {context.tokens}"
        await self.line(f"  {colour(bold(name), _TINT[seat.id])}  {dim(said)}")
        await self.line(f"  {bar([block.tokens for block in context.blocks], context.budget, self.room - 4)}")
        for text in context.text.splitlines():
            heading = text.startswith("## ")
            for at, part in enumerate(wrap(safe(text), self.room - 8)):
                body = bold(part) if heading else part
                await self.line(f"  {dim('│')} {'' if at == 0 else '  '}{body}", 0.03)
        await self.line("", 0.5)

    async def end(self, file: Path | None) -> None:
        await self.line()
        await self.line(bold(rule("", self.room)))
        name = for_a_shell(str(file)) if file is not None else "demo.db"
        await self.line(dim("  Look around in it:" if file is not None else "  To keep the story and look around in it:"))
        first = [] if file is not None else [f"talekeeper demo {name}"]
        for text in [*first, f"talekeeper -f {name} log --seat bard", f"talekeeper -f {name} context rogue --budget 400 --why"]:
            await self.line(f"    {text}")
        await self.line()
