"""A table in the terminal: what people see and type while they play.

Only what a person at this terminal may hear is shown; what AI companions whisper among themselves stays theirs. A line that begins with
a slash is for the table (see `slash`), everything else is what the character does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from talekeeper.cli.keyboard import Keyboard
from talekeeper.cli.screen import Prose, Status, alarm, bold, colour, dim, hang, rule, safe
from talekeeper.cli.slash import DM, Slash, offer, remark
from talekeeper.errors import Conflict, InvalidInput, ModelFailed
from talekeeper.ports import MAIN

if TYPE_CHECKING:
    from talekeeper.table.playing.rounds import Beat, Game
    from talekeeper.table.playing.seating import Table
    from talekeeper.table.world.scenario import Scenario

SHOWN_CHOICES, TRIES, RECALLED = 6, 3, 5
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_WORDS = re.compile(r"\S+\s*|\s+")
_DICE = re.compile(r"\d")
"""What was thrown for is worth a line; of the rest the narrator tells."""


def greet(table: Table, number: int) -> None:
    """What one sees first: the story, and who one is, or where one was."""
    scenario, humans = table.scenario, table.setup.humans
    click.echo("\n" + bold(rule(safe(scenario.title))))
    if number > 1:
        branch = "" if table.story.branch == MAIN else f", branch {table.story.branch}"
        click.echo(dim(f"Round {number:,}{safe(branch)}"))
    else:
        click.echo(dim(hang("", scenario.tagline, 0)))
        click.echo("".join(f"\n{hang('', part, 0)}\n" for part in scenario.premise))
        for line in _cast(scenario, table.setup.party, humans):
            click.echo(hang("", line, 0))
    if humans:
        click.echo("\n" + dim(hang("", "Say what you do in your own words, or a choice's number. /help shows what else you can do.", 0)))


def _cast(scenario: Scenario, party: Sequence[str], humans: Sequence[str]) -> Iterator[str]:
    """Who the people at this terminal are, and who comes along."""
    called = {one: f"{scenario.name(one)}, {hero.calling}" if (hero := scenario.heroes[one]).calling else hero.name for one in party}
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
        self._prose: Prose | None = None
        self._speech = ""
        self._shown: set[str] = set()
        self._status = Status()
        self._offered: Beat | None = None
        self._typed = ""
        self._slash = Slash(game, where, show=self._show, take_up=self._take_up)

    @property
    def _table(self) -> Table:
        return self._game.table

    def _may_see(self, hearers: Sequence[str]) -> bool:
        humans = self._table.setup.humans
        return not humans or any(human in hearers for human in humans)

    async def run(self, rounds: int | None = None) -> None:
        """Plays until so many rounds were played, or the story is over, which a person may look back at. Raises `Quit` where they leave."""
        played, humans = 0, self._table.setup.humans
        await self._take_up()
        while rounds is None or played < rounds:
            if await self._is_over():
                if not humans:
                    break
                click.echo("")
                remark("The story is over. /look, /recap, /moments and /ledger look back, /undo takes the ending back, /quit leaves.")
                await self._slash.run(await self._keyboard.line("> "))
                continue
            try:
                if self._game.waiting is None:
                    await self._show(self._game.round(self._slash.take_nudge()))
                while self._game.waiting is not None:
                    await self._turn(self._game.waiting)
                played += 1
            except Conflict:
                await self._go_on_from_here()
        if not await self._is_over():
            click.echo("")
            remark(f"So far for now ({played} round{'s' * (played != 1)}). {self.kept} Play again to go on.")
        elif not humans:
            click.echo("")
            remark("The story is over. Without --auto you can look back at it, and take the ending back.")

    async def _is_over(self) -> bool:
        """Whether its ending has been told, as the arc had it: nobody plays on then."""
        return self._game.waiting is None and bool((await self._table.state()).ending)

    async def _go_on_from_here(self) -> None:
        """Somebody else has played this story on: says what was not told, and where the story is now."""
        lost = f" Not told, so say it again if you still want to: {self._typed}" if self._typed else ""
        remark(f"The story has moved on since this round began: it goes on from where it is now.{lost}", alarm)
        self._typed = ""
        self._shown.clear()
        await self._game.look()
        await self._take_up()

    async def _take_up(self) -> None:
        """What a person who comes back wants to know: the moments so far, what was told last, and what was said in this round."""
        humans = self._table.setup.humans
        if not humans:
            return
        moments = await self._slash.moments(humans[0])
        if moments:
            click.echo("\n" + dim("So far"))
            for moment in moments[-RECALLED:]:
                click.echo(hang("  ·", moment, 4))
        if await self._table.round_now() > 1:
            told = await self._table.story.turns(seat=humans[0], speaker=DM, kinds=("said",), limit=1, newest=True)
            click.echo("".join(f"\n{hang('', turn.text, 0)}" for turn in told))
        if await self._table.is_told() and not (await self._table.state()).ending:
            click.echo("")
            remark("That was the epilogue. The story goes on all the same; /undo takes the ending back, /quit leaves it.")
        if self._game.waiting is not None:
            await self._show(_beats(self._game.so_far()))

    @property
    def kept(self) -> str:
        """Where the story is, and on which branch it goes on."""
        branch = self._table.story.branch
        return f"The story is kept in {self._where}" + ("." if branch == MAIN else f", on the branch {branch}.")

    async def _show(self, beats: AsyncIterator[Beat]) -> None:
        """Lets a round be seen. Where a model breaks off, the round goes on from the step that failed, a few times."""
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
                remark(f"{exc}: that was not told. Nothing is lost.", alarm, err=True)
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
            for word in _WORDS.findall(beat.text) if self._pace else (beat.text,):
                self._prose.write(word)
                await asyncio.sleep(self._pace)
        elif beat.kind == "end":
            self._shown.add(self._speech.strip())
            self._end_speech()
            self._status("…")
        elif beat.kind == "ruling" and self._may_see(beat.hearers):
            self._ruling(beat)
        elif beat.kind == "refused" and beat.text and self._may_see(beat.hearers):
            self._end_speech()
            click.echo(dim(hang("", f"  ✗ Not so: {beat.text}. It is told again.", 2)))

    def _ruling(self, beat: Beat) -> None:
        """The dice; and where a person's own words or deed were taken to be not for everyone, who knows of them."""
        known = self._who_knows(beat) if beat.private and beat.seat in self._table.setup.humans else ""
        if known and known not in self._shown:
            self._end_speech()
            self._shown.add(known)
            remark(known)
        if _DICE.search(beat.text):
            self._end_speech()
            self._shown.add(beat.text)
            click.echo(dim(hang("", f"  ⚂ {beat.text}", 2)))

    def _who_knows(self, beat: Beat) -> str:
        """In the words that follow `/whisper`; what was done unseen nobody has heard."""
        from talekeeper.table.shown.prose import listed

        others = [self._table.scenario.name(one) for one in beat.hearers if one not in (beat.seat, DM)]
        if not others:
            return "nobody but the game master knows of that"
        return f"{listed(others)} {'knows' if len(others) == 1 else 'know'} of that, and nobody else but the game master"

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
            offer(choices[:SHOWN_CHOICES])
        text = (await self._keyboard.line(f"{name} > ")).strip()
        if text.startswith("/"):
            await self._slash.run(text)
        elif _NUMBER.fullmatch(text) and not 1 <= int(text) <= len(choices):
            hint = f"choose 1 to {len(choices)}; /look shows all of them" if choices else "there is nothing to choose from: say what you do"
            remark(hint, str)
        elif meant := self._slash.meant(text):
            remark(f"did you mean /{meant}? What {name} does needs more than a word", str)
        elif not text:
            remark(f"say what {name} does, or a choice's number; /look shows what is here, /help what else you can do")
        else:
            await self._answer(waiting.seat, choices[int(text) - 1] if _NUMBER.fullmatch(text) else text)

    async def _answer(self, seat: str, text: str) -> None:
        """What a seat does. Where it cannot be told, that is said, and the seat's turn is still waited for."""
        self._typed = text
        try:
            await self._show(self._game.answer(text))
            self._typed = ""
        except InvalidInput as exc:
            if self._game.waiting is None or self._game.waiting.seat != seat:
                raise
            self._offered = self._game.waiting
            remark(str(exc) if str(exc).endswith(".") else f"{exc}. It is still your turn.", alarm)
