"""What can be seen of a story: by one of its seats, or by its author.

Everything that leaves the server passes through here, and what is shown depends on the view alone, never on who asks: a dm who looks
through a seat's eyes gets the bytes that the player gets. A seat's view is made of what the seat heard (I3). It has numbers of its own,
no audiences (someone may listen unseen), and of a speaker who lent someone a voice it shows the voice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from talekeeper import model
from talekeeper.errors import UnknownFold, UnknownTurn
from talekeeper.model import HEARD_KINDS
from talekeeper.server import schemas
from talekeeper.server.ids import story_id
from talekeeper.server.problems import unknown
from talekeeper.story.following import EVERYTHING
from talekeeper.story.inside import heard_by_then
from talekeeper.story.replay import Past
from talekeeper.story.story import Story

Places: TypeAlias = "Callable[[Story | Past], Awaitable[Mapping[str, str]]]"
"""How the places of a story are called."""
LOOK_BACK = 500
"""Among how many of the newest turns a seat looks for those whom it has met."""


class View:
    """A story, or its past, as the seat may see it; `seat=None`: as its author does."""

    def __init__(self, book: Story | Past, seat: str | None, places: Places) -> None:
        self.book = book
        self.seat = seat
        self.places = places

    # -- turns -------------------------------------------------------------------------------------------------------------

    async def find(self, name: str) -> model.Turn:
        """The turn of that id (for the author also: of that number). One that the seat did not hear is not there."""
        if self.seat is None:
            return await self.book.turn(int(name) if name.isascii() and name.isdigit() else name)
        try:
            turn = await self.book.turn(name)
        except UnknownTurn:
            raise unknown("turn") from None
        if self.seat not in turn.audience:
            raise unknown("turn")
        return turn

    async def place(self, name: str) -> int:
        """The number in the log of the turn that is named; 0 is the beginning."""
        return 0 if name == "0" else (await self.find(name)).seq

    async def shown(self, turns: Sequence[model.Turn]) -> list[schemas.Turn]:
        """Turns as this view shows them."""
        pinned = {turn.id for turn in await self.book.pins()}
        places = await self.places(self.book)
        numbers = [turn.seq for turn in turns]
        if self.seat is not None:
            numbers = await heard_by_then(self.book, self.seat, numbers)
        return [
            schemas.Turn(
                **turn._asdict() | await self._as_heard(turn),
                number=number, pinned=turn.id in pinned, place_name=places.get(turn.location or ""),
            )
            for turn, number in zip(turns, numbers, strict=True)
        ]  # fmt: skip

    async def turn(self, turn: model.Turn) -> schemas.Turn:
        return (await self.shown([turn]))[0]

    async def _as_heard(self, turn: model.Turn) -> dict[str, Any]:
        """What a seat sees otherwise than the author."""
        if self.seat is None:
            return {}
        told = turn.text.casefold()
        return {
            "speaker": turn.speaker if self._recognises(turn) else "",
            "mentions": [name for name in turn.mentions if name.casefold() in told],
            "cites": [name for name in turn.cites if await self._heard(name)],
            "audience": None,
        }

    async def pins(self) -> list[schemas.Turn]:
        """The turns that are pinned, in order."""
        return await self.shown([turn for turn in await self.book.pins() if self.seat is None or self.seat in turn.audience])

    def _recognises(self, turn: model.Turn) -> bool:
        """Whether the seat knows who spoke: it did itself, or it heard the voice of that one."""
        label = next((seat.label for seat in self.book.seats if seat.id == turn.speaker), None)
        return turn.speaker == self.seat or turn.voice == label

    async def _heard(self, name: str) -> bool:
        try:
            return self.seat in (await self.book.turn(name)).audience
        except UnknownTurn:
            return False

    async def page(
        self, *, kinds: Collection[str] | None, speaker: str | None, location: str | None, after: str | None, before: str | None,
        limit: int, newest: bool,
    ) -> schemas.Turns:  # fmt: skip
        """A page of the log, in order."""
        first = (await self.find(after)).seq if after is not None else 0
        last = (await self.find(before)).seq if before is not None else None
        found: list[model.Turn] = []
        while len(found) <= limit:
            more = await self.book.turns(
                seat=self.seat, kinds=kinds, speaker=speaker, location=location, after=first, before=last, limit=limit + 1, newest=newest
            )
            shown = [turn for turn in more if speaker is None or self.seat is None or self._recognises(turn)]
            found = shown + found if newest else found + shown
            if len(more) <= limit:
                break
            first, last = (first, more[0].seq) if newest else (more[-1].seq, last)
        turns = found[-limit:] if newest else found[:limit]
        return schemas.Turns(turns=await self.shown(turns), more=len(found) > limit)

    async def timeline(self, most: int) -> schemas.Timeline:
        """The view's turns from the first to the newest, at most so many of them."""
        turns = await self.book.turns(seat=self.seat)
        return schemas.Timeline(
            turns=len(turns), points=[schemas.Point.model_validate(one) for one in await self.shown(outline(turns, most))]
        )

    # -- the story ---------------------------------------------------------------------------------------------------------

    async def version(self) -> str:
        """Changes with everything that happens in this view. Of a seat's view it is the newest entry that the seat heard of."""
        if self.seat is None:
            return self.book.version
        found = await self.book.turns(seat=self.seat, kinds=EVERYTHING, limit=1, newest=True)
        return found[0].id if found else "0"

    async def count(self) -> int:
        """How many turns can be heard in this view."""
        if self.seat is None:
            return self.book.turn_count
        newest = await self.book.turns(seat=self.seat, limit=1, newest=True)
        return (await heard_by_then(self.book, self.seat, [newest[0].seq]))[0] if newest else 0

    async def seats(self) -> list[schemas.Seat]:
        """The seats: all of them, or the seat itself and those whom it has met."""
        places = self.book.presence()
        if self.seat is None:
            return [_seat(seat, places.get(seat.id)) for seat in self.book.seats]
        met = await self.met()
        own = [_seat(seat, places.get(seat.id)) for seat in self.book.seats if seat.id == self.seat]
        return own + [
            schemas.Seat(id=seat.id, name=seat.label, location=None) for seat in self.book.seats if seat.id in met and seat.id != self.seat
        ]

    async def met(self) -> set[str]:
        """The seats whose own voices the seat has heard lately, and itself."""
        heard = await self.book.turns(seat=self.seat, kinds=HEARD_KINDS, limit=LOOK_BACK, newest=True)
        return {turn.speaker for turn in heard if turn.speaker and self._recognises(turn)} | {self.seat or ""}

    # -- memories ----------------------------------------------------------------------------------------------------------

    async def memory(self, name: str, depth: int = 0) -> schemas.Memory:
        """A fold, with those below it as deep as is asked for. One that is not in the seat's memory is not there."""
        try:
            fold = await self.book.fold(name, seat=self.seat)
        except UnknownFold:
            raise unknown("memory") from None
        return await self.remembered(fold, depth)

    async def remembered(self, fold: model.Fold, depth: int = 0) -> schemas.Memory:
        below = [await self.memory(child, depth - 1) for child in fold.children] if depth and fold.level else None
        return schemas.Memory.model_validate(fold).model_copy(update={"below": below})


def story_row(key: model.MemoryKey) -> schemas.StoryRow:
    """A story as it is listed."""
    return schemas.StoryRow(id=story_id(key), user=key.user_id, name=key.session_id)


def outline(turns: Sequence[model.Turn], most: int) -> list[model.Turn]:
    """At most so many of the turns, the last among them: of every stretch a session's beginning, or a whisper, or else its last."""
    if len(turns) <= most:
        return list(turns)
    edges = [number * (len(turns) - 1) // (most - 1) for number in range(most)]
    stretches = [turns[first:last] for first, last in pairwise(edges)]
    return [*(max(reversed(stretch), key=lambda turn: _WEIGHT.get(turn.kind, 0)) for stretch in stretches), turns[-1]]


_WEIGHT = {"whisper": 1, "session": 2}


def _seat(seat: model.Seat, place: str | None) -> schemas.Seat:
    return schemas.Seat(
        id=seat.id, name=seat.label, role=seat.role, aliases=list(seat.aliases), token_limit=seat.token_limit, fold_at=seat.fold_at,
        keep=seat.keep, location=place,
    )  # fmt: skip
