"""A table in the terminal: what people see and type while they play.

Only what a person at this terminal may hear is shown; what AI companions whisper among themselves stays theirs. A line that begins with
a slash is for the table, everything else is what the character does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from talekeeper import rim
from talekeeper.cli.keyboard import Keyboard, Quit
from talekeeper.cli.look import branch_lines, why_lines
from talekeeper.cli.screen import Prose, Status, alarm, bold, colour, dim, hang, one_line, rule, safe
from talekeeper.errors import Conflict, InvalidInput, TalekeeperError

if TYPE_CHECKING:
    from talekeeper.model import Context
    from talekeeper.story import Story
    from talekeeper.table.playing import Beat, Game
    from talekeeper.table.scenario import Scenario
    from talekeeper.table.table import Table

HELP = (
    ("/look", "where you are, who is here, what you could do"),
    ("/why [NAME]", "what was in the last prompt: blocks, tokens, what was left out"),
    ("/memory [NAME]", "what you remember now"),
    ("/knows NAME THING", "whether someone has heard of something, as far as you know"),
    ("/whisper NAME TEXT", "say something that only they hear, and the game master"),
    ("/nudge TEXT", "a wish to the game master, for the next scene only"),
    ("/undo [N]", "take back the last round, or several"),
    ("/fork [NAME]", "go on in a branch of the story, and leave this one as it is"),
    ("/branches", "all lines of the story"),
    ("/switch NAME", "go to another of them, and on there"),
    ("/recap [NAME]", "the story so far, as your character knows it"),
    ("/moments [NAME]", "what will be told of you"),
    ("/ledger", "promises, items, deaths, and the secrets that you know"),
    ("/peek", "look behind the screen: /memory, /knows, /recap, /moments and /ledger show everyone's, secrets too; again: no more"),
    ("/save", "where this story is kept (it is saved after every round)"),
    ("/end", "an ending, now"),
    ("/quit", "leave; the story waits for you"),
)
_TAKES = {form.split()[0][1:]: form.split()[1:] for form, _ in HELP}
"""Each command, with what may stand behind it."""
SHOWN_CHOICES, TRIES, RECALLED = 6, 3, 5
DM, MAIN = "dm", "main"
LONGEST_NAME = 4
"""In words."""


_MEANT = {"inventory": "look", "inv": "look", "i": "look", "exit": "quit", "q": "quit", "bye": "quit", "branch": "branches"}
"""What people type at a game without thinking of a slash, besides the commands themselves."""
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


_HEADINGS = {"canon": "What everyone knows"}
_PLACE = re.compile(r"\((\w+)\)")
_MOMENT = re.compile(r"- Turn [0-9]+ \(\w+\): ")


def _readable(line: str, scenario: Scenario) -> str:
    """A line of a prompt as a person reads it."""
    line = _PLACE.sub(lambda found: f"({scenario.name(found[1])})" if found[1] in scenario.places else found[0], line)
    line = re.sub(r"^  \| ", "", _MOMENT.sub("· ", line, count=1))
    return re.sub(r"^\[([^\]]+)\]", r"\1", re.sub(r"^[-*] ", "· ", line))


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
        self._peeks = False
        self._prose: Prose | None = None
        self._speech = ""
        self._shown: set[str] = set()
        self._status = Status()
        self._offered: Beat | None = None
        self._typed = ""
        self._table_commands: dict[str, Callable[[list[str]], Awaitable[None]]] = {name: getattr(self, f"_on_{name}") for name in _TAKES}

    @property
    def _table(self) -> Table:
        return self._game.table

    def _may_see(self, hearers: Sequence[str]) -> bool:
        humans = self._table.setup.humans
        return not humans or any(human in hearers for human in humans)

    # -- playing -----------------------------------------------------------------------------------------------------------

    async def run(self, rounds: int | None = None) -> None:
        """Plays until so many rounds were played, or the story is over, which a person may look back at. Raises `Quit` where they leave."""
        played, humans = 0, self._table.setup.humans
        await self._take_up()
        while rounds is None or played < rounds:
            if await self._is_over():
                if not humans:
                    break
                click.echo(
                    dim("\nThe story is over. /look, /recap, /moments and /ledger look back, /undo takes the ending back, /quit leaves.")
                )
                await self._command(await self._keyboard.line("> "))
                continue
            try:
                if self._game.waiting is None:
                    await self._show(self._game.round(self._take_nudge()))
                while self._game.waiting is not None:
                    await self._turn(self._game.waiting)
                played += 1
            except Conflict:
                await self._go_on_from_here()
        if not humans and await self._is_over():
            click.echo(dim("\nThe story is over. Without --auto you can look back at it, and take the ending back."))

    async def _is_over(self) -> bool:
        """Whether its ending has been told, as the arc had it: nobody plays on then."""
        return self._game.waiting is None and bool((await self._table.state()).ending)

    async def _go_on_from_here(self) -> None:
        """Somebody else has played this story on: says what was not told, and where the story is now."""
        lost = f" Not told, so say it again if you still want to: {self._typed}" if self._typed else ""
        click.echo(alarm(one_line(f"The story has moved on since this round began: it goes on from where it is now.{lost}")))
        self._typed = ""
        self._shown.clear()
        await self._game.look()
        await self._take_up()

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
        if await self._table.is_told() and not (await self._table.state()).ending:
            click.echo(
                dim(hang("", "\nThat was the epilogue. The story goes on all the same; /undo takes the ending back, /quit leaves it.", 0))
            )
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

    async def _show(self, beats: AsyncIterator[Beat]) -> None:
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
                click.echo(alarm(one_line(f"{exc}: that was not told. Nothing is lost.")), err=True)
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
        if text.startswith("/"):
            await self._command(text)
        elif _NUMBER.fullmatch(text) and not 1 <= int(text) <= len(choices):
            click.echo(
                f"choose 1 to {len(choices)}; /look shows all of them" if choices else "there is nothing to choose from: say what you do"
            )
        elif meant := self._meant(text):
            click.echo(f"did you mean /{meant}? What {name} does needs more than a word")
        elif not text:
            click.echo(dim(f"say what {name} does, or a choice's number; /look shows what is here, /help what else you can do"))
        else:
            self._typed = choices[int(text) - 1] if _NUMBER.fullmatch(text) else text
            try:
                await self._show(self._game.answer(self._typed))
                self._typed = ""
            except InvalidInput as exc:
                if self._game.waiting is not waiting:
                    raise
                click.echo(alarm(one_line(f"{exc}. Say it again, without that.")))

    def _meant(self, text: str) -> str:
        """The command that a single word without a slash most likely means; empty if it is none."""
        word = text.casefold().rstrip(".!?")
        return _MEANT.get(word) or (word if word == "help" or word in self._table_commands else "")

    def _offer(self, choices: Sequence[str]) -> None:
        for number, choice in enumerate(choices, 1):
            click.echo(f"  {dim(str(number))} {safe(choice)}")

    # -- for the table -------------------------------------------------------------------------------------------------------

    async def _command(self, line: str) -> None:
        if not line.startswith("/"):
            return
        name, *words = line[1:].split() or ["help"]
        name = name.casefold()
        if name == "help":
            for form, text in HELP:
                click.echo(hang(f"  {form}", text, 23))
            return
        work = self._table_commands.get(name)
        if work is None:
            click.echo(f"there is no /{safe(name)}; /help shows what there is")
            return
        try:
            if words and not _TAKES[name]:
                raise InvalidInput(f"/{name} stands alone: type it without “{' '.join(words)}” if you mean it")
            await work(words)
        except TalekeeperError as exc:
            click.echo(alarm(one_line(str(exc))))

    async def _seat(self, words: list[str]) -> tuple[str, str]:
        """The seat that is named by the first words, by id or name, and how it is called; without words, the one whose turn it is."""
        name = self._table.scenario.name
        if not words:
            seat = self._game.waiting.seat if self._game.waiting else (*self._table.setup.humans, *self._table.setup.party)[0]
            return seat, name(seat)
        called = {spelt.casefold(): (seat.id, spelt) for seat in self._table.story.seats for spelt in (*seat.aliases, seat.label)}
        called |= {seat.id.casefold(): (seat.id, name(seat.id)) for seat in self._table.story.seats}
        for length in range(min(LONGEST_NAME, len(words)), 0, -1):
            wanted = " ".join(words[:length]).strip('"“”:,').casefold()
            if wanted in called:
                del words[:length]
                return called[wanted]
        raise InvalidInput(f"nobody here is called {words[0]!r}; you know {', '.join(name(one) for one in await self._known())}")

    async def _known(self) -> list[str]:
        """The party, and those whom it has met: of the others a list would tell too much."""
        state = await self._table.state()
        places = {state.where.get(one) for one in state.party}
        npcs = self._table.scenario.npcs
        return [*state.party, *(one for one in npcs if state.flags.get(f"met.{one}") or state.where.get(one) in places)]

    async def _own(self, words: list[str]) -> str:
        """The seat that is named, if a person here may look into it."""
        seat, called = await self._seat(words)
        if self._is_hidden(seat):
            raise InvalidInput(f"what {called} knows is not for your eyes; /peek lets you look behind the screen")
        return seat

    def _is_hidden(self, seat: str) -> bool:
        humans = self._table.setup.humans
        return bool(humans) and seat not in humans and not self._peeks

    async def _on_look(self, words: list[str]) -> None:
        scene = await self._scene()
        click.echo(hang("", scene["look"], 0))
        for title, key in (("Here", "here"), ("Ways", "exits"), ("Lying here", "lying"), ("You have", "items")):
            if scene[key]:
                click.echo(hang(dim(title), ", ".join(one["name"] for one in scene[key]), 12))
        if scene["over"]:
            return  # there is nothing left to be done
        self._offer([choice["text"] for choice in scene["choices"]])
        for goal in scene["goals"]:
            click.echo(hang(dim("Goal"), f"{goal['title']}. {goal['hint']}", 12))

    async def _scene(self) -> Mapping[str, Any]:
        """What one who plays here sees: where their turn is waited for, as it was when it came."""
        from talekeeper.model import to_json
        from talekeeper.table.scene import scene

        if self._game.waiting is not None and self._game.waiting.scene is not None:
            return self._game.waiting.scene
        table, (seat, _) = self._table, await self._seat([])
        found: Mapping[str, Any] = to_json(scene(table.scenario, await table.state(), seat, table.setup.seed))
        return found

    async def _on_why(self, words: list[str]) -> None:
        from talekeeper.table.storyteller import Storyteller

        wanted = (await self._seat(words))[0] if words else None
        asks = [(name, ask) for name, ask in self._table.asked.items() if wanted is None or ask.seat == wanted]
        if not asks:
            click.echo("nothing was asked of them yet")
            return
        name, ask = asks[-1]
        turns = {block.name: len(await self._table.story.sources(block)) for block in ask.context.blocks}
        if isinstance(self._table.brain(ask.role), Storyteller):
            click.echo(dim("No model was asked: the built-in storyteller tells this. A model would be sent this:"))
        click.echo(bold(f"the last prompt of {safe(name)}, round {ask.round}"))
        for line in why_lines(ask.context, turns):
            click.echo(line)

    async def _on_memory(self, words: list[str]) -> None:
        self._tell(await self._table.story.context(await self._own(words), budget=2000))

    def _tell(self, context: Context, without: Sequence[str] = ()) -> None:
        """A context as a person reads it: plain headings, places and people by name."""
        for block in context.blocks:
            if block.name not in without:
                click.echo(bold(_HEADINGS.get(block.name) or block.heading.strip("#[] \n").capitalize()))
                for line in "".join(item.text for item in block.items).splitlines():
                    click.echo(hang("", _readable(line, self._table.scenario), 2) if line.strip() else "")

    async def _on_knows(self, words: list[str]) -> None:
        if len(words) < 2:
            raise InvalidInput("who, and what? /knows NAME THING")
        seat, called = await self._seat(words)
        hits = await self._table.story.recall(seat, " ".join(words), limit=12) if words else []
        seen = [hit.turn for hit in hits if not self._is_hidden(seat) or self._may_see(hit.turn.audience)][:3]
        if not seen:
            click.echo(f"{safe(called)} has heard nothing of that" + (", as far as you know" if self._is_hidden(seat) else ""))
        for turn in seen:
            click.echo(hang(dim(f"{turn.seq}"), f"{turn.voice}: {turn.text}" if turn.voice else turn.text, 6))

    async def _on_whisper(self, words: list[str]) -> None:
        speaker, _ = await self._seat([])
        if len(words) < 2:
            raise InvalidInput("to whom, and what? /whisper NAME TEXT")
        to, called = await self._seat(words)
        if not words:
            raise InvalidInput(f"what do you whisper to {called}? /whisper NAME TEXT")
        if to == speaker:
            raise InvalidInput("that is you")
        await self._table.whisper(speaker, [to], " ".join(words))
        click.echo(dim(f"{safe(called)} heard that, and nobody else but the game master"))

    async def _on_nudge(self, words: list[str]) -> None:
        from talekeeper.table.storyteller import Storyteller

        if not words:
            raise InvalidInput("what do you wish for? /nudge TEXT")
        self._nudge = rim.text(" ".join(words), "the nudge")
        if isinstance(self._table.brain("dm"), Storyteller):
            click.echo(dim("the built-in storyteller begins the next scene with the line of its own that comes nearest, if it has any"))
        else:
            click.echo(dim("the game master will hear of it, once"))

    async def _on_undo(self, words: list[str]) -> None:
        if len(words) > 1 or not all(re.fullmatch("[1-9][0-9]{0,3}", word) for word in words):
            raise InvalidInput("/undo takes back the last round, /undo 3 the last three")
        number = await self._table.undo(int(words[0]) if words else 1)
        await self._game.look()
        click.echo(dim(f"back before round {number}; what was played stays as a branch (/branches)"))

    async def _on_fork(self, words: list[str]) -> None:
        if len(words) > 1:
            raise InvalidInput("a branch has a name of one word: /fork NAME")
        await self._go_to(await self._table.story.fork(name=words[0] if words else None))

    async def _on_switch(self, words: list[str]) -> None:
        if len(words) != 1:
            raise InvalidInput("which branch? /switch NAME; /branches shows all of them")
        await self._go_to(await self._table.story.switch(await self._branch(words[0])))

    async def _branch(self, typed: str) -> str:
        """The branch that is meant: in upper or lower case, unless there are two that differ in nothing else."""
        there: list[str] = [branch.name for branch in await self._table.story.branches()]
        close = [name for name in there if name.casefold() == typed.casefold()]
        if typed in there or not close:
            return typed
        if len(close) > 1:
            raise InvalidInput(f"which of them? There are {' and '.join(close)}")
        return close[0]

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
        self._tell(await self._table.story.context(await self._own(words), budget=800), without=("canon",))

    async def _on_moments(self, words: list[str]) -> None:
        found = await self._moments(await self._own(words))
        for moment in found:
            click.echo(hang("·", moment, 2))
        if not found:
            click.echo(dim("nothing yet"))

    async def _on_ledger(self, words: list[str]) -> None:
        from talekeeper.table.ledger import ledger

        people = () if self._peeks else self._table.setup.humans
        lines = ledger(await self._table.state(), self._table.scenario, people).lines
        for line in lines:
            click.echo(hang("", line, 0))
        if not lines:
            click.echo(dim("nothing yet: no promise, no item, no death, no secret"))

    async def _on_peek(self, words: list[str]) -> None:
        self._peeks = not self._peeks
        shown = "/memory, /knows, /recap, /moments and /ledger show everyone's, secrets too; /peek again hides them"
        click.echo(dim(f"you look behind the screen: {shown}" if self._peeks else "you look at your own again"))

    async def _on_save(self, words: list[str]) -> None:
        click.echo(dim(f"saved in {self._where}, branch {self._table.story.branch}, after every round"))

    async def _on_end(self, words: list[str]) -> None:
        await self._show(self._game.finish())
        raise Quit

    async def _on_quit(self, words: list[str]) -> None:
        raise Quit
