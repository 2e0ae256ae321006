"""Care: health, statistics, copies."""

from __future__ import annotations

import json
import tempfile
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from talekeeper.errors import InvalidInput
from talekeeper.formats import export_story, import_story
from talekeeper.model import MemoryKey
from talekeeper.server import ids, schemas
from talekeeper.server.door import Authored, Entered, Granted, InHouse, Looking, Route, begun
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import Problem, forbidden
from talekeeper.server.views import story_row

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["care"])
LINES = "application/x-ndjson"


@router.get("/stories/{story}/health", summary="How the summarizer is doing")
async def health(visit: Authored) -> schemas.Health:
    """Memory is complete whatever this says."""
    return schemas.Health.model_validate(await visit.story.health())


@router.get("/stories/{story}/stats", summary="What there is, and what it has cost")
async def stats(visit: Entered, view: Looking) -> schemas.Stats:
    """In the view of a seat: what it has heard."""
    found = await visit.story.stats()
    if view.seat is not None:
        return schemas.Stats.model_validate(found.seats[view.seat])
    return schemas.Stats.model_validate(found)


# -- copies ------------------------------------------------------------------------------------------------------------

_LINES: dict[str, Any] = {LINES: {"schema": {"type": "string"}}}


@router.get(
    "/stories/{story}/export", summary="The story as lines of JSON", response_class=StreamingResponse,
    responses={200: {"content": _LINES, "description": "Lines; the last one is of the type `end`, or else it is not all of it."}},
)  # fmt: skip
async def export(visit: Authored) -> StreamingResponse:
    """Everything: branches, edits, pins, ids, what models wrote. `POST /import` makes a story of it."""
    lines = await begun(export_story(visit.house.keeper, visit.story.key))
    return StreamingResponse(lines, media_type=LINES, headers={"Content-Disposition": f'attachment; filename="{visit.id[:100]}.jsonl"'})


@router.post(
    "/import", status_code=201, summary="Make a story of exported lines",
    openapi_extra={"requestBody": {"required": True, "content": _LINES}},
)  # fmt: skip
async def import_(
    request: Request,
    house: InHouse,
    grant: Granted,
    response: Response,
    story: Annotated[
        str | None,
        Query(pattern=ids.STORY_PATTERN, max_length=ids.STORY_LENGTH, description="The id it gets; by default the one that it had."),
    ] = None,
) -> schemas.StoryRow:
    """All of it is read, or nothing. It becomes a story of this token's tenant, whatever the lines say."""
    if not grant.dm:
        raise forbidden("This needs a dm's token.")
    with tempfile.TemporaryFile(prefix="talekeeper-") as file:
        async for part in request.stream():
            await run_in_threadpool(file.write, part)
        file.seek(0)
        key = _key(grant.tenant, story, file.readline(1_000_000))
        if not grant.opens(ids.story_id(key)):
            raise forbidden("This token does not open the story of that id: name another with ?story=.")
        if await house.keeper.store.load(key) is not None:
            raise Problem(409, "story-exists", "There is a story of that id already: delete it, or name another with ?story=.")
        file.seek(0)
        await import_story(house.keeper, (line.decode() for line in file), key=key)
    row = story_row(key)
    response.headers["Location"] = f"{PREFIX}/stories/{row.id}"
    return row


def _key(tenant: str, story: str | None, header: bytes) -> MemoryKey:
    """The key that the story gets: the tenant is the token's."""
    if story is not None:
        key = ids.story_key(tenant, story)
        if key is None:
            raise InvalidInput(f"{story!r} is no story's id: it has the form user.name")
        return key
    try:
        given = json.loads(header)["key"]
        return MemoryKey(tenant, str(given["user_id"]), str(given["session_id"]))
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise InvalidInput("line 1: this is no exported story: its first line says what it is") from exc
