"""A table in the terminal: what people see and type while they play.

Only what a person at this terminal may hear is shown; what AI companions whisper among themselves stays theirs. A line that begins with
a slash is for the table, everything else is what the character does.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from talekeeper.cli.keyboard import Keyboard, Quit
from talekeeper.cli.look import branch_lines, why_lines
from talekeeper.cli.screen import Status, bold, colour, columns, dim, hang, one_line, rule, safe, width
from talekeeper.errors import InvalidInput

if TYPE_CHECKING:
    from talekeeper.story import Story
    from talekeeper.table.playing import Beat, Game
    from talekeeper.table.scenario import Scenario
    from talekeeper.table.table import Table

HELP = (
    ("/look", "where you are, who is here, what you could do"),
    ("/why [SEAT]", "what was in the last prompt: blocks, tokens, what was left out"),
    ("/memory SEAT", "what someone remembers now"),
    ("/knows SEAT THING", "whether someone has heard of something, and when"),
    ("/whisper SEAT TEXT", "say something that only they hear"),
    ("/nudge TEXT", "a wish to the game master, for the next scene only"),
    ("/undo [N]", "take back the last round, or several"),
    ("/fork [NAME]", "go on in a branch of the story, and leave this one as it is"),
    ("/branches", "all lines of the story"),
    ("/switch NAME", "go to another of them, and on there"),
    ("/recap", "the story so far, as your character knows it"),
    ("/moments", "what will be told of you"),
    ("/ledger", "promises, items, deaths, and who knows which secret"),
    ("/save", "where this story is kept (it is saved after every round)"),
    ("/end", "an ending, now"),
    ("/quit", "leave; the story waits for you"),
)


SHOWN_CHOICES, TRIES, RECALLED = 6, 3, 5
DM, MAIN = "dm", "main"


_MEANT = {"inventory": "/look", "i": "/look", "inv": "/look", "save": "/save", "quit": "/quit", "exit": "/quit", "undo": "/undo"}
"""What people type at a game without thinking of a slash."""
_DICE = re.compile(r"\d")
"""What was thrown for is worth a line; of the rest the narrator tells."""


class Prose:
    """Writes text as it comes, wrapped at words; control characters are shown, never sent."""

    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._room = (columns() if sys.stdout.isatty() else 1 << 30) - width(indent)
        self._at = 0
        self._word = ""
        self.begun = False

    def write(self, text: str) -> None:
        for character in safe(text):
            if character.isspace():
                self._put()
                if character == "\n" and self.begun:
                    self._break()
            else:
                self._word += character

    def close(self) -> None:
        self._put()
        if self.begun:
            click.echo("")

    def _put(self) -> None:
        if not self._word:
            return
        wide = width(self._word)
        if self._at and self._at + 1 + wide > self._room:
            self._break()
        lead = " " if self._at else self._indent
        click.echo(lead + self._word, nl=False)
        sys.stdout.flush()
        self._at += wide + (1 if self._at else 0)
        self._word, self.begun = "", True

    def _break(self) -> None:
        click.echo("")
        self._at = 0


def greet(table: Table, number: int) -> None:
    """What one sees first: the story, and who one is, or where one was."""
    scenario, humans = table.scenario, table.setup.humans
    click.echo("\n" + bold(rule(safe(scenario.title))))
    if number > 1:
        branch = "" if table.story.branch == MAIN else f", branch {table.story.branch}"
        click.echo(dim(f"Round {number:,}{safe(branch)}"))
    else:
        click.echo(dim(hang("", scenario.tagline, 0)))
        for line in _cast(scenario, table.setup.party, humans):
            click.echo(hang("", line, 0))
    if humans:
        click.echo(dim("\nSay what you do in your own words, or a choice's number. /help shows what else you can do."))


def _cast(scenario: Scenario, party: Sequence[str], humans: Sequence[str]) -> Iterator[str]:
    """Who the people at this terminal are, and who comes along."""
    called = {one: f"{scenario.name(one)}, {hero.calling}" if (hero := scenario.heroes[one]).calling else hero.name for one in party}
    if humans:
        yield ""
    for one in humans:
        yield f"You are {called[one]}. {scenario.heroes[one].look}"
    others = [called[one] for one in party if one not in humans]
    if others:
        yield f"{'With you' if humans else 'The party'}: {'; '.join(others)}."


async def _beats(kept: Iterable[Beat]) -> AsyncIterator[Beat]:
    for beat in kept:
        yield beat


class Terminal:
    """Plays a game with the people at this terminal."""

    def __init__(self, game: Game, keyboard: Keyboard, where: str, *, pace: float = 0.0) -> None:
        self._game = game
        self._keyboard = keyboard
        self._where = where
        self._pace = pace
        self._nudge: str | None = None
        self._prose: Prose | None = None
        self._speech = ""
        self._shown: set[str] = set()
        self._status = Status()
        self._offered: Beat | None = None
        self._table_commands: dict[str, Callable[[list[str]], Awaitable[None]]] = {
            form.split()[0][1:]: getattr(self, f"_on_{form.split()[0][1:]}") for form, _ in HELP
        }

    @property
    def _table(self) -> Any:
        return self._game.table

    def _may_see(self, hearers: Sequence[str]) -> bool:
        humans = self._table.setup.humans
        return not humans or any(human in hearers for human in humans)

    # -- playing -----------------------------------------------------------------------------------------------------------

    async def run(self, rounds: int | None = None) -> None:
        """Plays until so many rounds were played. Raises `Quit` where the person leaves."""
        played = 0
        await self._take_up()
        while rounds is None or played < rounds:
            if self._game.waiting is None:
                if (await self._table.state()).ending and self._table.setup.humans:
                    click.echo(dim("\nThe story is over. /recap, /moments and /undo still work; /quit leaves."))
                    await self._command(await self._keyboard.line("> "))
                    continue
                await self._show(self._game.round(self._take_nudge()))
            while self._game.waiting is not None:
                await self._turn(self._game.waiting)
            played += 1

    async def _take_up(self) -> None:
        """What a person who comes back wants to know: the moments so far, what was told last, and what was said in this round."""
        humans = self._table.setup.humans
        if not humans:
            return
        moments = await self._moments(humans[0])
        if moments:
            click.echo("\n" + dim("So far"))
            for moment in moments[-RECALLED:]:
                click.echo(hang("  ·", moment, 4))
        if await self._table.round_now() > 1:
            told = await self._table.story.turns(seat=humans[0], speaker=DM, kinds=("said",), limit=1, newest=True)
            click.echo("".join(f"\n{hang('', turn.text, 0)}" for turn in told))
        if self._game.waiting is not None:
            await self._show(_beats(self._game.so_far()))

    async def _moments(self, seat: str) -> list[str]:
        """What will be told of a seat, as sentences."""
        from talekeeper.memory.moments import adventure_moments

        return [" ".join(moment.summary.split()) for moment in await adventure_moments(self._table.story, seat)]

    @property
    def kept(self) -> str:
        """Where the story is, and on which branch it goes on."""
        branch = self._table.story.branch
        return f"The story is kept in {self._where}" + ("." if branch == MAIN else f", on the branch {branch}.")

    def _take_nudge(self) -> str | None:
        nudge, self._nudge = self._nudge, None
        return nudge

    async def _show(self, beats: Any) -> None:
        """Lets a round be seen. Where a model breaks off, the round goes on from the step that failed, a few times."""
        from talekeeper.errors import ModelFailed

        for attempt in range(TRIES):
            try:
                with self._status as status:
                    status("the game master thinks …")
                    async for beat in beats:
                        await self._beat(beat)
                self._shown.clear()
                return
            except ModelFailed as exc:
                self._end_speech()
                click.echo(click.style(one_line(f"{exc}: that was not told. Nothing is lost."), fg="red"), err=True)
                if attempt + 1 == TRIES:
                    raise
                beats = self._game.round()
            finally:
                self._end_speech()

    async def _beat(self, beat: Beat) -> None:
        if beat.text and beat.text in self._shown:
            return  # of a round that was cut short and is taken up
        if beat.kind == "speech" and self._may_see(beat.hearers):
            self._speech += beat.text
            if self._prose is None:
                self._status.clear()
                self._speaker(beat)
                self._prose = Prose()
            self._prose.write(beat.text)
            if self._pace:
                await asyncio.sleep(self._pace)
        elif beat.kind == "end":
            self._shown.add(self._speech.strip())
            self._end_speech()
            self._status("…")
        elif beat.kind == "ruling" and self._may_see(beat.hearers) and _DICE.search(beat.text):
            self._end_speech()
            self._shown.add(beat.text)
            click.echo(dim(hang("", f"  ⚂ {beat.text}", 2)))
        elif beat.kind == "refused" and beat.text and self._may_see(beat.hearers):
            self._end_speech()
            click.echo(dim(hang("", f"  ✗ Not so: {beat.text}. It is told again.", 2)))

    def _speaker(self, beat: Beat) -> None:
        if beat.role == "pc":
            click.echo(bold(colour(safe(self._table.scenario.name(beat.seat)), self._table.setup.party.index(beat.seat))))
        elif beat.role == "epilogue":
            click.echo("\n" + rule("Epilogue"))
        else:
            click.echo("")

    def _end_speech(self) -> None:
        self._speech = ""
        if self._prose is not None:
            self._prose.close()
            self._prose = None

    async def _turn(self, waiting: Beat) -> None:
        scene = waiting.scene or {}
        name = safe(self._table.scenario.name(waiting.seat))
        choices = [choice["text"] for choice in scene.get("choices", ())]
        if self._offered is not waiting:
            self._offered = waiting
            click.echo(dim(f"\n{scene.get('place_name', '')}  ·  {scene.get('time', '')}"))
            self._offer(choices[:SHOWN_CHOICES])
        text = (await self._keyboard.line(f"{name} > ")).strip()
        text = _MEANT.get(text.casefold().rstrip(".!"), text)
        if text.startswith("/"):
            await self._command(text)
        elif text.isdigit() and 1 <= int(text) <= len(choices):
            await self._show(self._game.answer(choices[int(text) - 1]))
        elif text:
            await self._show(self._game.answer(text))

    def _offer(self, choices: Sequence[str]) -> None:
        for number, choice in enumerate(choices, 1):
            click.echo(f"  {dim(str(number))} {safe(choice)}")

    # -- for the table -------------------------------------------------------------------------------------------------------

    async def _command(self, line: str) -> None:
        from talekeeper.errors import TalekeeperError

        if not line.startswith("/"):
            return
        try:
            name, *words = shlex.split(line[1:]) or [""]
        except ValueError:
            name, *words = line[1:].split()
        if name == "help":
            for form, text in HELP:
                click.echo(f"  {form:<20} {dim(text)}")
            return
        work = self._table_commands.get(name)
        if work is None:
            click.echo(f"there is no /{safe(name)}; /help shows what there is")
            return
        try:
            await work(words)
        except TalekeeperError as exc:
            click.echo(click.style(one_line(str(exc)), fg="red"))

    def _seat(self, words: list[str]) -> str:
        """The seat that is named, by id or name; without a name, the one whose turn it is."""
        people = {seat.id: seat for seat in self._table.story.seats}
        if not words:
            return self._game.waiting.seat if self._game.waiting else next(iter(self._table.setup.party))
        wanted = words.pop(0).casefold()
        for seat in people.values():
            if wanted in (seat.id.casefold(), seat.label.casefold(), *(alias.casefold() for alias in seat.aliases)):
                return str(seat.id)
        raise InvalidInput(f"nobody here is called {wanted!r}; there are: {', '.join(people)}")

    async def _on_look(self, words: list[str]) -> None:
        scene = (self._game.waiting.scene if self._game.waiting else None) or {}
        click.echo(hang("", scene.get("look", ""), 0))
        for title, key in (("Here", "here"), ("Ways", "exits"), ("Lying here", "lying"), ("You have", "items")):
            if scene.get(key):
                click.echo(hang(dim(title), ", ".join(one["name"] for one in scene[key]), 12))
        self._offer([choice["text"] for choice in scene.get("choices", ())])
        for goal in scene.get("goals", ()):
            click.echo(hang(dim("Goal"), f"{goal['title']}. {goal['hint']}", 12))

    async def _on_why(self, words: list[str]) -> None:
        wanted = self._seat(words) if words else None
        asks = [(name, ask) for name, ask in self._table.asked.items() if wanted is None or ask.seat == wanted]
        if not asks:
            click.echo("nothing was asked of them yet")
            return
        name, ask = asks[-1]
        turns = {block.name: len(await self._table.story.sources(block)) for block in ask.context.blocks}
        click.echo(bold(f"the last prompt of {safe(name)}, round {ask.round}"))
        for line in why_lines(ask.context, turns):
            click.echo(line)

    async def _on_memory(self, words: list[str]) -> None:
        context = await self._table.story.context(self._seat(words), budget=2000)
        click.echo(safe(context.text))

    async def _on_knows(self, words: list[str]) -> None:
        seat = self._seat(words)
        thing = " ".join(words)
        hits = await self._table.story.recall(seat, thing, limit=3) if thing else []
        if not hits:
            click.echo(f"{seat} has heard nothing of that")
        for hit in hits:
            click.echo(hang(dim(f"{hit.turn.seq}"), f"{hit.turn.voice}: {hit.turn.text}" if hit.turn.voice else hit.turn.text, 6))

    async def _on_whisper(self, words: list[str]) -> None:
        speaker = self._seat([])
        to = self._seat(words)
        await self._table.whisper(speaker, [to], " ".join(words))
        click.echo(dim(f"only {to} heard that"))

    async def _on_nudge(self, words: list[str]) -> None:
        self._nudge = " ".join(words) or None
        click.echo(dim("the game master will hear of it, once" if self._nudge else "nothing to wish for"))

    async def _on_undo(self, words: list[str]) -> None:
        number = await self._table.undo(int(words[0]) if words and words[0].isdigit() else 1)
        await self._game.look()
        click.echo(dim(f"back before round {number}; what was played stays as a branch (/branches)"))

    async def _on_fork(self, words: list[str]) -> None:
        if len(words) > 1:
            raise InvalidInput("a branch has a name of one word: /fork NAME")
        await self._go_to(await self._table.story.fork(name=words[0] if words else None))

    async def _on_switch(self, words: list[str]) -> None:
        if len(words) != 1:
            raise InvalidInput("which branch? /switch NAME; /branches shows all of them")
        await self._go_to(await self._table.story.switch(words[0]))
        await self._take_up()

    async def _go_to(self, story: Story) -> None:
        self._game.table = self._table.on(story)
        await self._table.note_branch()
        await self._game.look()
        click.echo(
            dim(f"now on {safe(story.branch)}, before round {await self._table.round_now():,}; /branches shows all, /switch goes back")
        )
        await self._take_up()

    async def _on_branches(self, words: list[str]) -> None:
        for line in branch_lines(await self._table.story.branches()):
            click.echo(line)

    async def _on_recap(self, words: list[str]) -> None:
        context = await self._table.story.context(self._seat(words), budget=800)
        click.echo(safe(context.text))

    async def _on_moments(self, words: list[str]) -> None:
        found = await self._moments(self._seat(words))
        for moment in found:
            click.echo(hang("·", moment, 2))
        if not found:
            click.echo(dim("nothing yet"))

    async def _on_ledger(self, words: list[str]) -> None:
        from talekeeper.table.ledger import known_to, ledger

        lines = ledger(known_to(self._table.setup.humans, await self._table.state()), self._table.scenario).lines
        for line in lines:
            click.echo(hang("", line, 0))
        if not lines:
            click.echo(dim("nothing yet: no promise, no item, no death, no secret"))

    async def _on_save(self, words: list[str]) -> None:
        click.echo(dim(f"saved in {self._where}, branch {self._table.story.branch}, after every round"))

    async def _on_end(self, words: list[str]) -> None:
        await self._show(self._game.finish())
        raise Quit

    async def _on_quit(self, words: list[str]) -> None:
        raise Quit
