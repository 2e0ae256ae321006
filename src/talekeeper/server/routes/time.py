"""Time travel: branches, rewinding, forking, going over to another line. And the stream of what happens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from talekeeper.model import BranchInfo
from talekeeper.server import limits, schemas
from talekeeper.server.door import Authored, Entered, IdempotencyKey, IfMatch, Looking, Route, Visit, begun
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import slow_down
from talekeeper.server.routes.turns import stamp, version_of
from talekeeper.server.stream import MEDIA_TYPE, Passing, Stream

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["time"])


@router.get("/stories/{story}/timeline", summary="The whole story at a glance")
async def timeline(
    view: Looking, points: Annotated[int, Query(ge=2, le=limits.POINTS, description="At most so many.")] = 200
) -> schemas.Timeline:
    """Where to go back to: turns from the first to the newest, evenly spread where there are more than can be shown."""
    return await view.timeline(points)


@router.get("/stories/{story}/branches", summary="List the branches")
async def list_branches(visit: Authored) -> schemas.Branches:
    return schemas.Branches(branches=[schemas.Branch.model_validate(branch) for branch in await visit.story.branches()])


@router.post("/stories/{story}/rewind", summary="Go back")
async def rewind(visit: Authored, body: schemas.Rewind, response: Response, if_match: IfMatch = None) -> schemas.Branches:
    """Goes back to just after a turn. What came after stays as a branch; `switch` takes it up again."""
    await visit.story.rewind(await visit.view().place(body.to), expected_version=version_of(if_match))
    await stamp(response, visit.view())
    return await _branches(visit)


@router.post("/stories/{story}/switch", summary="Go over to another line")
async def switch(visit: Authored, body: schemas.Switch) -> schemas.Branches:
    """Everyone goes along: from now on that line bears the name of this branch, and what bore it stays under another.
    `main` keeps its name: a branch that goes over to it goes on from its end."""
    await visit.story.adopt(body.to)
    return await _branches(visit)


@router.post("/stories/{story}/fork", status_code=201, summary="Begin a branch")
async def fork(visit: Authored, body: schemas.Fork, key: IdempotencyKey = None) -> schemas.Branch:
    """Begins a branch after a turn, and leaves this one as it is. Read and write it with `?branch=`."""
    at = visit.story.head if body.at is None else await visit.view().place(body.at)
    request = visit.told_once(key)
    name = body.name or (f"fork-{request[2:10]}" if request is not None else None)
    made = await _branch(visit, name) if request is not None else None  # by the same request, when it was sent before
    if made is None or (body.at is not None and made.forked_at != at):
        made = await _branch(visit, (await visit.story.fork(at=at, name=name)).branch)
    visit.house.hub.tell(visit.story.key, Passing("branches", {}))
    return schemas.Branch.model_validate(made)


async def _branch(visit: Visit, name: str | None) -> BranchInfo | None:
    return next((branch for branch in await visit.story.branches() if branch.name == name), None)


async def _branches(visit: Visit) -> schemas.Branches:
    visit.house.hub.tell(visit.story.key, Passing("branches", {}))
    return await list_branches(visit)


# -- what happens ------------------------------------------------------------------------------------------------------

_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "examples": ["turn"]},
        "id": {"type": "string", "description": "The place to come back to.", "examples": ["t-5d1f0c9b7a3e2468"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
    "required": ["event", "data"],
}


@router.get(
    "/stories/{story}/events", summary="Follow a story", response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": _EVENT}}, "description": "The stream."}},
)  # fmt: skip
async def events(
    request: Request,
    visit: Entered,
    view: Looking,
    after: Annotated[
        str | None, Query(max_length=limits.NAME, description="A turn's id, or `0`: begin with what came after it. By default from now on.")
    ] = None,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=limits.NAME, description="The id of the last event you got.")
    ] = None,
) -> StreamingResponse:
    """What happens in this view, as server-sent events. Nothing is lost by a broken line or a restart: come back with `Last-Event-ID`.

    | event | data | |
    |---|---|---|
    | `hello` | branch, seat | the line stands; its id is a place to come back to |
    | `turn` | the turn | something was told |
    | `edited`, `pinned`, `unpinned` | the turn as it is now | |
    | `rewound` | `to`: a turn's id, or null | everything after that turn is undone |
    | `overridden` | `memory`, `text` | the author wrote over a memory |
    | `marked` | `id` | something was marked |
    | `forgotten` | `id` | a turn is gone for good; sent to those who listen at that moment |
    | `round`, `line`, `rested`, `auto` | `line`, `role`, `seat`, `text`, `ended` | of a game: the round in flight, line by line; each \
    `line` has its whole text so far |
    | `branches`, `seats`, `memories` | | for the dm: they have changed, look at them again |
    | `reset` | branch, seat | the id you came with is not known here: load what you show anew |
    | `deleted` | | the story is gone |
    """
    house = visit.house
    if house.hub.count_of(visit.grant.name) >= house.limits.streams:
        raise slow_down(5, "event streams")
    stream = Stream(house.hub, visit.story, view, request.scope["granted"], house.limits.stream_seconds)
    frames = await begun(stream.frames(visit.grant.name, last or after))  # and counted, before anyone else is let in
    return StreamingResponse(frames, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
