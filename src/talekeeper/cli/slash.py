"""The commands of the table: what a line that begins with a slash does.

None of it is played: nothing is said or done in the story, but for a whisper, a branch, a step back and an ending. What a person may look
into is what their own characters know, unless they `/peek`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from talekeeper import rim
from talekeeper.cli.keyboard import Quit
from talekeeper.cli.look import branch_lines, why_lines
from talekeeper.cli.screen import alarm, bold, dim, hang, one_line, safe
from talekeeper.context.recipe import CANON_PART
from talekeeper.errors import InvalidInput, TalekeeperError
from talekeeper.model import to_json

if TYPE_CHECKING:
    from talekeeper.model import Context
    from talekeeper.story.story import Story
    from talekeeper.table.brain import Part
    from talekeeper.table.playing.rounds import Beat, Game
    from talekeeper.table.playing.seating import Table
    from talekeeper.table.world.scenario import Scenario

HELP = (
    ("/look", "where you are, who is here, what you could do"),
    ("/why [NAME]", "what was in the last prompt, or will be in the next: blocks, tokens, what was left out"),
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
    ("/ledger [NAME]", "promises, items, deaths, and the secrets that you know"),
    ("/peek", "look behind the screen: /memory, /knows, /recap, /moments and /ledger show everyone's, secrets too; again: no more"),
    ("/save", "where this story is kept (it is saved after every round)"),
    ("/end", "an ending, now"),
    ("/quit", "leave; the story waits for you"),
)
_TAKES = {form.split()[0][1:]: form.split()[1:] for form, _ in HELP}
"""Each command, with what may stand behind it."""
DM = "dm"
LONGEST_NAME = 4
"""In words."""
_MEANT = {"inventory": "look", "inv": "look", "i": "look", "exit": "quit", "q": "quit", "bye": "quit", "branch": "branches"}
"""What people type at a game without thinking of a slash, besides the commands themselves."""
_HEADINGS = {CANON_PART.name: "What everyone knows"}
_PLACE = re.compile(r"\((\w+)\)")
_MOMENT = re.compile(r"- Turn [0-9]+ \(\w+\): ")


def _readable(line: str, scenario: Scenario) -> str:
    """A line of a prompt as a person reads it."""
    line = _PLACE.sub(lambda found: f"({scenario.name(found[1])})" if found[1] in scenario.places else found[0], line)
    line = re.sub(r"^  \| ", "", _MOMENT.sub("· ", line, count=1))
    return re.sub(r"^\[([^\]]+)\]", r"\1", re.sub(r"^[-*] ", "· ", line))


def offer(choices: Sequence[str]) -> None:
    """Shows choices with their numbers."""
    for number, choice in enumerate(choices, 1):
        click.echo(hang(f"  {dim(str(number))} ", choice, 3 + len(str(number))))


def remark(text: str, style: Callable[[str], str] = dim, *, err: bool = False) -> None:
    """Says something that is not of the story, wrapped at words as the story is."""
    click.echo(style(hang("", one_line(text), 0)), err=err)


class Slash:
    """The commands of a game. Each is a method `_on_…`, and stands in `HELP`.

    `show` lets a round be seen; `take_up` says where the story is that one goes on with."""

    def __init__(
        self, game: Game, where: str, *, show: Callable[[AsyncIterator[Beat]], Awaitable[None]], take_up: Callable[[], Awaitable[None]]
    ) -> None:
        self._game = game
        self._where = where
        self._show = show
        self._take_up = take_up
        self._nudge: str | None = None
        self._peeks = False
        self._commands: dict[str, Callable[[list[str]], Awaitable[None]]] = {name: getattr(self, f"_on_{name}") for name in _TAKES}

    @property
    def _table(self) -> Table:
        return self._game.table

    async def run(self, line: str) -> None:
        """Does what a line asks for that begins with a slash; any other is none of its business."""
        if not line.startswith("/"):
            return
        name, *words = line[1:].split() or ["help"]
        name = name.casefold()
        if name == "help":
            for form, text in HELP:
                click.echo(hang(f"  {form}", text, 23))
            return
        work = self._commands.get(name)
        if work is None:
            remark(f"there is no /{name}; /help shows what there is", str)
            return
        try:
            if words and not _TAKES[name]:
                raise InvalidInput(f"/{name} stands alone: type it without “{' '.join(words)}” if you mean it")
            await work(words)
        except TalekeeperError as exc:
            remark(str(exc), alarm)

    def meant(self, text: str) -> str:
        """The command that a single word without a slash most likely means; empty if it is none."""
        word = text.casefold().rstrip(".!?")
        return _MEANT.get(word) or (word if word == "help" or word in self._commands else "")

    def take_nudge(self) -> str | None:
        """The wish for the next scene, once."""
        nudge, self._nudge = self._nudge, None
        return nudge

    async def moments(self, seat: str) -> list[str]:
        """What will be told of a seat, as sentences."""
        from talekeeper.memory.moments import adventure_moments

        return [" ".join(moment.summary.split()) for moment in await adventure_moments(self._table.story, seat)]

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
        raise await self._stranger(words[0])

    async def _stranger(self, called: str) -> InvalidInput:
        """What is said of someone who is not known, and of someone of whom one may not know that they are somewhere."""
        known = ", ".join(self._table.scenario.name(one) for one in await self._known())
        return InvalidInput(f"nobody here is called {called!r}; you know {known}")

    async def _known(self) -> list[str]:
        """The party, and those whom it has met: of the others a list would tell too much."""
        state = await self._table.state()
        places = {state.where.get(one) for one in state.party}
        npcs = self._table.scenario.npcs
        return [*state.party, *(one for one in npcs if state.flags.get(f"met.{one}") or state.where.get(one) in places)]

    async def _own(self, words: list[str]) -> str:
        """The seat that is named, if a person here may look into it. Where several people share a terminal, it says whose view it is."""
        seat, called = await self._seat(words)
        if self._is_hidden(seat):
            raise InvalidInput(f"what {called} knows is not for your eyes; /peek lets you look behind the screen")
        if len(self._table.setup.humans) > 1:
            remark(f"what {self._table.scenario.name(seat)} knows:")
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
        offer([choice["text"] for choice in scene["choices"]])
        for goal in scene["goals"]:
            click.echo(hang(dim("Goal"), f"{goal['title']}. {goal['hint']}", 12))

    async def _scene(self) -> Mapping[str, Any]:
        """What one who plays here sees: where their turn is waited for, as it was when it came."""
        from talekeeper.table.shown.scene import scene

        if self._game.waiting is not None and self._game.waiting.scene is not None:
            return self._game.waiting.scene
        table, (seat, _) = self._table, await self._seat([])
        found: Mapping[str, Any] = to_json(scene(table.scenario, await table.state(), seat, table.setup.seed))
        return found

    async def _on_why(self, words: list[str]) -> None:
        from talekeeper.table.storyteller import Storyteller

        anyone = not words
        seat, called = await self._seat(words)
        asks = [(name, ask) for name, ask in self._table.asked.items() if anyone or ask.seat == seat]
        if asks:
            name, ask = asks[-1]
            context, which = ask.context, f"the last prompt of {name}, round {ask.round}"
            if isinstance(self._table.brain(ask.role), Storyteller):
                remark("No model was asked: the built-in storyteller tells this. A model would be sent this:")
        elif seat == DM or seat in self._table.setup.party:
            role: Part = "dm" if seat == DM else "pc"
            context, which = await self._game.next_prompt(seat), f"the next prompt of {role}:{seat}"
            sent = "A model would be sent this" if isinstance(self._table.brain(role), Storyteller) else "This would be sent"
            remark(
                f"Nothing was asked of {'the game master' if seat == DM else called} since this table was set. {sent} next, as things are:"
            )
        else:
            raise InvalidInput(f"{called} has no prompt: the game master speaks for all who are not of the party; see /why {DM}")
        click.echo(bold(safe(which)))
        turns = {block.name: len(await self._table.story.sources(block)) for block in context.blocks}
        for line in why_lines(context, turns):
            click.echo(line)

    async def _on_memory(self, words: list[str]) -> None:
        self._tell(await self._table.story.context(await self._own(words), budget=2000))

    def _tell(self, context: Context, without: Sequence[str] = ()) -> None:
        """A context as a person reads it: plain headings, places and people by name."""
        told = [block for block in context.blocks if block.name not in without]
        for block in told:
            click.echo(bold(_HEADINGS.get(block.name) or block.heading.strip("#[] \n").capitalize()))
            for line in "".join(item.text for item in block.items).splitlines():
                click.echo(hang("", _readable(line, self._table.scenario), 2) if line.strip() else "")
        if not told:
            click.echo(dim("nothing yet"))

    async def _on_knows(self, words: list[str]) -> None:
        if len(words) < 2:
            raise InvalidInput("who, and what? /knows NAME THING")
        eyes, name = await self._seat([])
        seat, called = await self._seat(words)
        hits = await self._table.story.recall(seat, " ".join(words), limit=12) if words else []
        sees_all = self._peeks or not self._table.setup.humans or seat == eyes
        seen = [hit.turn for hit in hits if sees_all or eyes in hit.turn.audience][:3]
        if not seen:
            you = f"{name} knows" if len(self._table.setup.humans) > 1 else "you know"
            remark(f"{called} has heard nothing of that" + ("" if sees_all else f", as far as {you}"), str)
        for turn in seen:
            click.echo(hang(dim(f"{turn.seq}"), f"{turn.voice}: {turn.text}" if turn.voice else turn.text, 6))

    async def _on_whisper(self, words: list[str]) -> None:
        speaker, _ = await self._seat([])
        if len(words) < 2:
            raise InvalidInput("to whom, and what? /whisper NAME TEXT")
        named = list(words)
        to, called = await self._seat(words)
        state = await self._table.state()
        if to in state.where and to not in state.here(state.where[speaker]):
            if to not in await self._known():
                raise await self._stranger(named[0])
            raise InvalidInput(f"{called} is not here")
        if not words:
            raise InvalidInput(f"what do you whisper to {called}? /whisper NAME TEXT")
        if to == speaker:
            raise InvalidInput("that is you")
        await self._table.whisper(speaker, [to], " ".join(words))
        remark(f"{called} heard that, and nobody else but the game master")

    async def _on_nudge(self, words: list[str]) -> None:
        from talekeeper.table.storyteller import Storyteller

        if not words:
            raise InvalidInput("what do you wish for? /nudge TEXT")
        self._nudge = rim.text(" ".join(words), "the nudge")
        if isinstance(self._table.brain("dm"), Storyteller):
            remark("the built-in storyteller begins the next scene with the line of its own that comes nearest, if it has any")
        else:
            remark("the game master will hear of it, once")

    async def _on_undo(self, words: list[str]) -> None:
        if len(words) > 1 or not all(re.fullmatch("[1-9][0-9]{0,3}", word) for word in words):
            raise InvalidInput("/undo takes back the last round, /undo 3 the last three")
        number = await self._table.undo(int(words[0]) if words else 1)
        await self._game.look()
        remark(f"back before round {number}; what was played stays as a branch (/branches)")

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
        remark(f"now on {story.branch}, before round {await self._table.round_now():,}; /branches shows all, /switch goes back")
        await self._take_up()

    async def _on_branches(self, words: list[str]) -> None:
        for line in branch_lines(await self._table.story.branches()):
            click.echo(line)

    async def _on_recap(self, words: list[str]) -> None:
        self._tell(await self._table.story.context(await self._own(words), budget=800), without=(CANON_PART.name,))

    async def _on_moments(self, words: list[str]) -> None:
        found = await self.moments(await self._own(words))
        for moment in found:
            click.echo(hang("·", moment, 2))
        if not found:
            click.echo(dim("nothing yet"))

    async def _on_ledger(self, words: list[str]) -> None:
        from talekeeper.table.rules.ledger import ledger

        everyone = self._peeks or not self._table.setup.humans
        people = (await self._own(words),) if words or not everyone else ()
        lines = ledger(await self._table.state(), self._table.scenario, people).lines
        for line in lines:
            click.echo(hang("", line, 0))
        if not lines:
            remark("nothing yet: no promise, no item, no death, no secret")

    async def _on_peek(self, words: list[str]) -> None:
        self._peeks = not self._peeks
        shown = "/memory, /knows, /recap, /moments and /ledger show everyone's, secrets too; /peek again hides them"
        remark(f"you look behind the screen: {shown}" if self._peeks else "you look at your own again")

    async def _on_save(self, words: list[str]) -> None:
        remark(f"saved in {self._where}, branch {self._table.story.branch}, after every round")

    async def _on_end(self, words: list[str]) -> None:
        await self._show(self._game.finish())
        raise Quit

    async def _on_quit(self, words: list[str]) -> None:
        raise Quit
