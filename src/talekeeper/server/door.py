"""What a request is about, and whether its token opens it. Every route gets its story and its view from here.

The order is always the same: is the story granted and there (else 404, one as the other), then may the asker do this at all (else 403,
whatever is there), then the rest. So an answer never tells of something that the asker may not see.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_origin

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute

from talekeeper.errors import UnknownStory
from talekeeper.keeper import Keeper
from talekeeper.model import MemoryKey
from talekeeper.ports import MAIN
from talekeeper.server import ids, limits
from talekeeper.server.auth import Grant, Tokens
from talekeeper.server.gate import Arrivals
from talekeeper.server.limits import Limits
from talekeeper.server.metrics import Metrics
from talekeeper.server.problems import Problem, forbidden, invalid, unknown
from talekeeper.server.rooms import Rooms
from talekeeper.server.schemas import Name
from talekeeper.server.stream import Hub
from talekeeper.server.views import View
from talekeeper.story.replay import Past
from talekeeper.story.story import Story

PASTS = 16
"""How many moments of the past are kept at hand, for those who go back and forth on a timeline."""


@dataclass
class House:
    """What all requests share."""

    keeper: Keeper
    tokens: Tokens | None
    hub: Hub
    rooms: Rooms
    fixed: Limits | None = None
    """Limits that stand whatever the tokens' file says."""
    metrics: Metrics = field(default_factory=Metrics)
    arrivals: Arrivals = field(default_factory=Arrivals)
    pasts: OrderedDict[tuple[Any, ...], Past] = field(default_factory=OrderedDict)

    @property
    def limits(self) -> Limits:
        """How much anyone may ask for at this moment: the file may have changed."""
        return self.fixed or (self.tokens.limits if self.tokens is not None else Limits())


def house_of(request: Request) -> House:
    return request.app.state.house  # type: ignore[no-any-return]


async def _house(request: Request) -> House:
    return house_of(request)  # what is not async would be called in a thread, and a busy server is slow to come back from there


async def _grant(request: Request) -> Grant:
    return request.scope["grant"]  # type: ignore[no-any-return]


InHouse = Annotated[House, Depends(_house)]
Granted = Annotated[Grant, Depends(_grant)]

StoryPath = Annotated[
    str,
    Path(pattern=ids.STORY_PATTERN, max_length=ids.STORY_LENGTH, description="The story's id: `user.name`.", examples=["ana.ash-crown"]),
]
TurnPath = Annotated[
    str, Path(min_length=1, max_length=limits.NAME, description="The turn's id; for the dm also its number.", examples=["1"])
]
SeatPath = Annotated[str, Path(min_length=1, max_length=limits.NAME, description="The seat's id.", examples=["rogue"])]
MemoryPath = Annotated[str, Path(min_length=1, max_length=limits.NAME, description="The memory's id.")]
SeatQuery = Annotated[
    Name | None,
    Query(description="Whose view. By default the token's own seat; for the dm everything, or through the eyes of the seat named here."),
]
BranchQuery = Annotated[Name, Query(description="The line of the story; others than `main` are for the dm.")]
AtQuery = Annotated[
    Name | None,
    Query(description="A turn's id (for the dm also its number; `0`: the beginning): everything as it stood just after it."),
]
BudgetQuery = Annotated[int | None, Query(ge=0, le=limits.BUDGET, description="At most so many tokens; by default the seat's limit.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=limits.NAME, pattern=r"^[!-~]+$",
        description="A name for this request: sent again, also after a crash on either side, it does nothing twice.",
    ),
]  # fmt: skip
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", max_length=limits.NAME, pattern=r'^"?[!#-~]+"?$',
        description="The story's `version` as you saw it: if anything happened since that you could know of, nothing is done (412).",
    ),
]  # fmt: skip


# -- routes ------------------------------------------------------------------------------------------------------------


class Route(APIRoute):
    """A route whose answers carry an ETag, that does not take for ever, and that refuses what it would not look at: an If-Match, a
    parameter that it does not know or that is there twice."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()
        bindable = any(parameter.alias == "If-Match" for parameter in _parameters(self.dependant, "header_params"))
        known = {one.alias: get_origin(one.field_info.annotation) is list for one in _parameters(self.dependant, "query_params")}

        async def call(request: Request) -> Response:
            _check_query(request, known)
            if request.method == "GET":
                async with asyncio.timeout(house_of(request).limits.seconds):
                    return _tagged(request, await handle(request))
            if "if-match" in request.headers and not bindable:
                raise Problem(422, "not-bindable", "This request cannot be bound to a version: send it without If-Match.")
            return await _to_its_end(_done(request, handle), house_of(request).limits.seconds)

        return call


async def _done(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    """The answer, after those who follow the story were told that something has been done to it."""
    response = await handle(request)
    visit: Visit | None = getattr(request.state, "visit", None)
    if visit is not None:
        visit.house.hub.wake(visit.story.key)
    return response


def _parameters(dependant: Any, kind: str) -> list[Any]:
    return [*getattr(dependant, kind), *(one for inner in dependant.dependencies for one in _parameters(inner, kind))]


def _check_query(request: Request, known: Mapping[str, bool]) -> None:
    """Refuses parameters that are not known, and those that are there twice: who reads only one of them may have meant the other."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in dict.fromkeys(names):
        if name not in known:
            raise invalid(f"There is no parameter {name!r:.60} here. There are: {', '.join(sorted(known)) or 'none'}.")
        if names.count(name) > 1 and not known[name]:
            raise invalid(f"The parameter {name!r} is there more than once.")


async def _to_its_end(work: Awaitable[Response], seconds: float) -> Response:
    """What was begun is brought to its end, also where the asker no longer waits for it."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.add_done_callback(lambda late: late.exception() if not late.cancelled() else None)
        raise TimeoutError
    return task.result()


def _tagged(request: Request, response: Response) -> Response:
    """The answer with its ETag; without a body where the asker has it already. The tag follows from what is shown, and nothing else."""
    if response.status_code != 200 or isinstance(response, StreamingResponse):
        return response
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:32]}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


async def begun(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """An answer in pieces, of which the first is there: what goes wrong before it can still be told."""
    first = await anext(pieces)

    async def all_of_it() -> AsyncIterator[str]:
        yield first
        async for piece in pieces:
            yield piece

    return all_of_it()


# -- stories -----------------------------------------------------------------------------------------------------------


@dataclass
class Visit:
    """A request that may enter its story."""

    house: House
    grant: Grant
    story: Story
    id: str

    def view(self, seat: str | None = None) -> View:
        """The view that is asked for, where it is granted."""
        there = {one.id for one in self.story.seats}
        if self.grant.dm:
            if seat is not None and seat not in there:
                raise unknown("seat")
            return View(self.story, seat, self.house.rooms.places)
        mine = sorted(self.grant.seats & there)
        if seat is None and len(mine) > 1:
            raise invalid(f"This token has several seats: say whose view it is with ?seat=, one of {', '.join(mine)}.")
        if seat is not None and seat not in mine:
            raise forbidden("This token does not show that view: other seats need a dm's token.")
        return View(self.story, seat or mine[0], self.house.rooms.places)

    def told_once(self, key: str | None) -> str | None:
        """The id of the turn that a request with this idempotency key tells."""
        return ids.turn_id(self.grant, self.story.key, key) if key is not None else None


async def find_story(house: House, grant: Grant, story: str, branch: str = MAIN) -> Story:
    """The story, where it is granted and there."""
    key = ids.story_key(grant.tenant, story)
    if key is None or not grant.opens(story):
        raise unknown("story")
    if branch != MAIN and not grant.dm:
        raise forbidden("Branches other than main are for the dm.")
    try:
        found = await house.keeper.story(key, branch=branch)
    except UnknownStory:
        raise unknown("story") from None
    if not grant.dm and not grant.seats & {seat.id for seat in found.seats}:
        raise unknown("story")
    return found


def new_key(grant: Grant, user: str, name: str) -> MemoryKey:
    """The key of a story to be begun, where the token may begin it."""
    key = MemoryKey(grant.tenant, user, name)
    if not grant.dm or not grant.opens(ids.story_id(key)):
        raise forbidden("This token may not begin this story: that needs a dm's token for it.")
    return key


async def enter(request: Request, house: InHouse, grant: Granted, story: StoryPath, branch: BranchQuery = MAIN) -> Visit:
    """The visit to the story, noted with the request as well. (No generator: what is done to a story has a task of its own, which may
    outlive the request's, and FastAPI would not clean up in another task than it began in.)"""
    found = await find_story(house, grant, story, branch)
    request.state.visit = visit = Visit(house, grant, found, story)
    return visit


Entered = Annotated[Visit, Depends(enter)]


async def author(visit: Entered) -> Visit:
    if not visit.grant.dm:
        raise forbidden("This is for the story's dm.")
    return visit


Authored = Annotated[Visit, Depends(author)]


async def look(visit: Entered, seat: SeatQuery = None) -> View:
    return visit.view(seat)


async def look_at(visit: Entered, seat: SeatQuery = None, at: AtQuery = None) -> View:
    view = visit.view(seat)
    return view if at is None else View(await _past(visit, view, at), view.seat, view.places)


async def look_as(view: Annotated[View, Depends(look_at)]) -> View:
    """The view of a seat: there is no memory without someone who remembers."""
    if view.seat is None:
        raise invalid("Say whose memory it is with ?seat=.")
    return view


Looking = Annotated[View, Depends(look)]
LookingAt = Annotated[View, Depends(look_at)]
LookingAs = Annotated[View, Depends(look_as)]


async def _past(visit: Visit, view: View, at: str) -> Story | Past:
    """The story as it stood just after that turn, which the view must have; the dm may name any."""
    story, pasts = visit.story, visit.house.pasts
    number = await (visit.view() if visit.grant.dm else view).place(at)
    if number == story.head:
        return story
    key = (story.key, story.version.partition(".")[0], number)
    found = pasts.pop(key, None)
    if found is None or not await _lasts(found):
        found = await story.at(number)
    pasts[key] = found
    while len(pasts) > PASTS:
        pasts.popitem(last=False)
    return found


async def _lasts(past: Past) -> bool:
    """Whether that story is still there: another may have been made in its place."""
    try:
        await past.pins()
    except UnknownStory:
        return False
    return True
