"""Stories, their seats, and who is where."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from talekeeper import model
from talekeeper.live.shared import is_finished
from talekeeper.server import ids, limits, schemas
from talekeeper.server.auth import Grant
from talekeeper.server.door import (
    Authored,
    Entered,
    Granted,
    House,
    IdempotencyKey,
    InHouse,
    LookingAt,
    Route,
    SeatPath,
    StoryPath,
    Visit,
    find_story,
    new_key,
)
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import Problem, forbidden, unknown
from talekeeper.server.stream import Passing
from talekeeper.server.views import View, story_row

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["stories"])


@router.get("/me", summary="What this token allows")
async def me(grant: Granted) -> schemas.Me:
    stories = sorted(grant.stories) if grant.stories is not None else None
    return schemas.Me(name=grant.name, tenant=grant.tenant, dm=grant.dm, seats=sorted(grant.seats), stories=stories)


@router.get("/stories", summary="List the stories")
async def list_stories(
    house: InHouse,
    grant: Granted,
    after: Annotated[str | None, Query(max_length=ids.STORY_LENGTH, description="The id of the last story of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=limits.PAGE)] = 100,
) -> schemas.Stories:
    """The stories that this token opens, in order of their ids; one whose import is under way is no story yet."""
    rows = sorted((ids.story_id(key), key) for key in await house.keeper.keys(grant.tenant))
    found: list[schemas.StoryRow] = []
    for story, key in rows:
        if len(found) == limit:
            break
        if (after is None or story > after) and await _open_to(house, grant, story, key):
            found.append(story_row(key))
    return schemas.Stories(stories=found)


async def _open_to(house: House, grant: Grant, story: str, key: model.MemoryKey) -> bool:
    if not grant.opens(story):
        return False
    if grant.dm:
        record = await house.keeper.store.load(key)
        return record is not None and is_finished(record)
    try:
        await find_story(house, grant, story)
    except Problem:
        return False
    return True


@router.post("/stories", status_code=201, summary="Begin a story")
async def begin(house: InHouse, grant: Granted, body: schemas.NewStory, response: Response) -> schemas.Story:
    """Begins a story with its seats. The same again changes nothing; another story of that name is a conflict."""
    key = new_key(grant, body.user, body.name)
    story = ids.story_id(key)
    seats = [_noun(seat.id, seat) for seat in body.seats]
    begun = await house.keeper.store.load(key) is None
    if not begun and (await house.keeper.story(key)).seats != tuple(seats):
        raise Problem(
            409, "story-exists", "There is a story of that name already, with other seats. Choose another name, or change its seats."
        )
    made = await house.keeper.story(key, seats=seats)
    response.headers["Location"] = f"{PREFIX}/stories/{story}"
    visit = Visit(house, grant, made, story)
    return await _story(visit, visit.view())


def _noun(id: str, seat: schemas.SeatIn) -> model.Seat:
    return model.Seat(id, seat.role, seat.name, tuple(seat.aliases), seat.token_limit, seat.fold_at, seat.keep)


async def _story(visit: Visit, view: View) -> schemas.Story:
    row = story_row(visit.story.key)
    return schemas.Story(
        id=row.id, user=row.user, name=row.name, branch=visit.story.branch, version=await view.version(), seat=view.seat,
        seats=await view.seats(), turns=await view.count(), game=await visit.house.rooms.plays(visit.story),
    )  # fmt: skip


@router.get("/stories/{story}", summary="A story, as this view shows it")
async def get_story(visit: Entered, view: LookingAt) -> schemas.Story:
    return await _story(visit, view)


@router.delete("/stories/{story}", status_code=204, summary="Remove a story for good")
async def delete_story(house: InHouse, grant: Granted, story: StoryPath) -> None:
    """Everything of it is removed, and cannot be brought back."""
    if not grant.dm:
        await find_story(house, grant, story)
        raise forbidden("This is for the story's dm.")
    key = ids.story_key(grant.tenant, story)
    if key is None or not grant.opens(story) or not await house.keeper.delete(key):  # also one that cannot be opened
        raise unknown("story")
    await house.rooms.drop(key)
    house.hub.wake(key)


# -- seats -------------------------------------------------------------------------------------------------------------


@router.get("/stories/{story}/seats", summary="List the seats", response_model=list[schemas.Seat])
async def list_seats(view: LookingAt) -> list[schemas.Seat]:
    """All seats with their settings; in the view of a seat: its own, and whom it has met lately."""
    return await view.seats()


@router.put("/stories/{story}/seats/{seat_id}", summary="Seat someone, or change a seat")
async def put_seat(visit: Authored, seat_id: SeatPath, body: schemas.SeatIn) -> schemas.Seat:
    """Who is new remembers from now on. A seat keeps its role."""
    story = await visit.house.keeper.story(visit.story.key, seats=[_noun(seat_id, body)], branch=visit.story.branch)
    visit.house.hub.tell(story.key, Passing("seats", {"seat": seat_id}))
    return next(seat for seat in await replace(visit, story=story).view().seats() if seat.id == seat_id)


@router.post("/stories/{story}/seats/{seat_id}/enter", status_code=201, summary="Someone comes to a place")
async def enter(visit: Authored, seat_id: SeatPath, body: schemas.Move, key: IdempotencyKey = None) -> schemas.Turn | None:
    """Those who are there hear of it, and those whom it comes from hear it leave. Null where it is there already, and there is no text."""
    turn = await visit.story.enter(_seated(visit, seat_id), body.location, text=body.text, id=visit.told_once(key))
    return await visit.view().turn(turn) if turn is not None else None


@router.post("/stories/{story}/seats/{seat_id}/leave", status_code=201, summary="Someone goes")
async def leave(visit: Authored, seat_id: SeatPath, body: schemas.Going | None = None, key: IdempotencyKey = None) -> schemas.Turn | None:
    """It hears nothing more until it enters again. Null, and nothing is told, where it is gone already."""
    text = body.text if body is not None else None
    turn = await visit.story.leave(_seated(visit, seat_id), text=text, id=visit.told_once(key))
    return await visit.view().turn(turn) if turn is not None else None


def _seated(visit: Visit, seat: str) -> str:
    if seat not in {one.id for one in visit.story.seats}:
        raise unknown("seat")
    return seat
