"""Turns: telling, listing, and what the author does to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from talekeeper import model
from talekeeper.errors import Conflict, UnknownTurn
from talekeeper.model import HEARD_KINDS
from talekeeper.server import limits, schemas
from talekeeper.server.door import (
    Authored,
    Entered,
    IdempotencyKey,
    IfMatch,
    LookingAt,
    Route,
    SeatQuery,
    TurnPath,
    Visit,
)
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import Problem, forbidden, invalid
from talekeeper.server.stream import Passing
from talekeeper.server.views import View
from talekeeper.story.story import Story

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["turns"])
TRIES = 8
_FOR_THE_DM = ("location", "voice", "when", "id")


def version_of(tag: str | None) -> str | None:
    """The version in an If-Match header."""
    return tag.strip('"') if tag is not None and tag != "*" else None


async def stamp(response: Response, view: View) -> None:
    """Says which version the story has by now."""
    response.headers["Story-Version"] = await view.version()


# -- telling -----------------------------------------------------------------------------------------------------------


@router.post("/stories/{story}/turns", status_code=201, summary="Append a turn")
async def append(
    visit: Entered, body: schemas.NewTurn, response: Response, seat: SeatQuery = None, key: IdempotencyKey = None, if_match: IfMatch = None
) -> schemas.Turn:
    """The turn is durable when the answer comes. A player speaks for the token's own seat, to those present or to seats it has met."""
    view = visit.view(seat)
    if not visit.grant.dm and await visit.house.rooms.plays(visit.story):
        raise Problem(409, "a-game", "This is a game: act when it is your turn, or whisper. There are routes for both.")
    speaker = await _speaker(visit, view, body)
    if body.id is not None and key is not None:
        raise invalid("Send either an id or an Idempotency-Key.")
    turn = await _append(visit.story, view, speaker, body, body.id or visit.told_once(key), version_of(if_match))
    await stamp(response, view)
    return await view.turn(turn)


async def _speaker(visit: Visit, view: View, body: schemas.NewTurn) -> str:
    """Who speaks, where the token may speak so."""
    speaker = body.speaker if body.speaker is not None else view.seat
    if visit.grant.dm:
        if speaker is None:
            raise invalid("Say who speaks.")
        return speaker
    if speaker is None or speaker != view.seat:
        raise forbidden("This token speaks for its own seat only.")
    if body.kind not in ("said", "whisper", "thought") or any(getattr(body, name) is not None for name in _FOR_THE_DM):
        raise forbidden(f"A player says, whispers and thinks; events, notes, {', '.join(_FOR_THE_DM)} are for the dm.")
    if body.heard_by and not set(body.heard_by) <= await view.met():
        raise invalid("heard_by names someone whom this seat has not met lately: list the seats to see whom it has.")
    return speaker


async def _append(story: Story, view: View, speaker: str, body: schemas.NewTurn, id: str | None, version: str | None) -> model.Turn:
    """Appends, bound to the version of the view where one is named: what others do unheard is no reason to refuse."""
    if version is not None and view.seat is not None and id is not None and await _is_told(story, id):
        version = None  # this is a retry: whether it is the same is looked at below
    for attempt in range(TRIES):
        expected = story.version if version is not None else None
        if version is not None and version != await view.version():
            raise Conflict(f"this view of the story is not at version {version}")
        try:
            return await story.append(
                speaker, body.text, heard_by=body.heard_by, location=body.location, kind=body.kind, voice=body.voice,
                mentions=body.mentions, when=body.when, id=id, expected_version=expected,
            )  # fmt: skip
        except Conflict:
            if view.seat is None or attempt == TRIES - 1:
                raise
    raise AssertionError("unreachable")


async def _is_told(story: Story, id: str) -> bool:
    try:
        await story.turn(id)
    except UnknownTurn:
        return False
    return True


@router.post("/stories/{story}/notes", status_code=201, summary="Add to the canon")
async def note(visit: Authored, body: schemas.NewNote, key: IdempotencyKey = None) -> schemas.Turn:
    """A sheet, lore, an author's note: shown word for word as long as it fits. Everyone knows it unless `heard_by` says who."""
    turn = await visit.story.note(body.text, heard_by=body.heard_by, mentions=body.mentions, id=visit.told_once(key))
    return await visit.view().turn(turn)


@router.post("/stories/{story}/sessions", status_code=201, summary="Begin a new session")
async def session(visit: Authored, body: schemas.Session | None = None, key: IdempotencyKey = None) -> schemas.Turn:
    """Everyone hears of it, and memory goes on."""
    turn = await visit.story.begin_session(body.title if body is not None else None, id=visit.told_once(key))
    return await visit.view().turn(turn)


@router.post("/stories/{story}/regenerate", status_code=201, summary="Tell the newest turn again")
async def regenerate(visit: Authored, body: schemas.Retelling, key: IdempotencyKey = None, if_match: IfMatch = None) -> schemas.Turn:
    """Same speaker, same hearers; the old one stays as a swipe."""
    turn = await visit.story.regenerate(
        body.text, voice=body.voice, mentions=body.mentions, when=body.when, id=visit.told_once(key), expected_version=version_of(if_match)
    )
    return await visit.view().turn(turn)


@router.get("/stories/{story}/swipes", summary="Other tellings of the newest turn")
async def swipes(visit: Authored) -> schemas.Turns:
    """The turns that stood where the newest one stands; that one is the last."""
    return schemas.Turns(turns=await visit.view().shown(await visit.story.swipes()), more=False)


# -- looking -----------------------------------------------------------------------------------------------------------


@router.get("/stories/{story}/turns", summary="List turns")
async def list_turns(
    view: LookingAt,
    kinds: Annotated[list[model.Kind], Query(default_factory=list, description="Only these kinds; an author's are for the dm.")],
    ids: Annotated[
        list[schemas.Name],
        Query(default_factory=list, max_length=limits.PAGE, description="Exactly these turns, as far as they are there."),
    ],
    speaker: Annotated[schemas.Name | None, Query(description="Only what this seat said.")] = None,
    location: Annotated[schemas.Name | None, Query(description="Only what happened there.")] = None,
    after: Annotated[schemas.Name | None, Query(description="Only what came after this turn.")] = None,
    before: Annotated[schemas.Name | None, Query(description="Only what came before this turn.")] = None,
    limit: Annotated[int, Query(ge=1, le=limits.PAGE)] = 50,
    newest: Annotated[bool, Query(description="The newest that fit, instead of the oldest. They come in order either way.")] = False,
) -> schemas.Turns:
    """A page of what this view shows. Pass the id of the last one as `after`, or with `newest` that of the first one as `before`."""
    if ids:
        return schemas.Turns(turns=await view.shown(await _found(view, ids)), more=False)
    if view.seat is not None and not set(kinds) <= HEARD_KINDS:
        raise forbidden("An author's entries are not in the view of a seat.")
    return await view.page(kinds=kinds or None, speaker=speaker, location=location, after=after, before=before, limit=limit, newest=newest)


async def _found(view: View, names: list[str]) -> list[model.Turn]:
    found: dict[str, model.Turn] = {}
    for name in dict.fromkeys(names):
        try:
            turn = await view.find(name)
        except (Problem, UnknownTurn):
            continue
        found[turn.id] = turn
    return sorted(found.values(), key=lambda turn: turn.seq)


@router.get("/stories/{story}/turns/{turn}", summary="One turn")
async def get_turn(view: LookingAt, turn: TurnPath) -> schemas.Turn:
    return await view.turn(await view.find(turn))


@router.get("/stories/{story}/pins", summary="List what is pinned")
async def list_pins(view: LookingAt) -> schemas.Turns:
    """The turns that stay word for word in the contexts of those who heard them, as far as this view has them."""
    return schemas.Turns(turns=await view.pins(), more=False)


# -- the author's hand -------------------------------------------------------------------------------------------------


@router.patch("/stories/{story}/turns/{turn}", summary="Edit a turn")
async def edit(visit: Authored, turn: TurnPath, body: schemas.Edit, response: Response, if_match: IfMatch = None) -> schemas.Turn:
    """Changes what it says for all who heard it, in every memory made from it. A rewind undoes it."""
    view = visit.view()
    old = await view.find(turn)
    version = version_of(if_match)
    if old.text != body.text or version is not None:
        old = await visit.story.edit(old, body.text, expected_version=version)
    await stamp(response, view)
    return await view.turn(old)


@router.delete("/stories/{story}/turns/{turn}", status_code=204, summary="Forget a turn")
async def forget(visit: Authored, turn: TurnPath) -> None:
    """Removes it for good, with every memory made from it, on all branches. There is no undo."""
    found = await visit.view().find(turn)
    await visit.story.forget(found)
    visit.house.hub.tell(visit.story.key, Passing("forgotten", {"id": found.id}, found.audience))


@router.put("/stories/{story}/turns/{turn}/pin", summary="Pin a turn")
async def pin(visit: Authored, turn: TurnPath) -> schemas.Turn:
    """Keeps it word for word in the context of everyone who heard it."""
    return await _pin(visit, turn, wanted=True)


@router.delete("/stories/{story}/turns/{turn}/pin", summary="Take a pin back")
async def unpin(visit: Authored, turn: TurnPath) -> schemas.Turn:
    return await _pin(visit, turn, wanted=False)


async def _pin(visit: Visit, name: str, *, wanted: bool) -> schemas.Turn:
    view = visit.view()
    turn = await view.find(name)
    if any(pinned.id == turn.id for pinned in await visit.story.pins()) != wanted:
        await (visit.story.pin(turn) if wanted else visit.story.unpin(turn))
    return await view.turn(turn)


@router.post("/stories/{story}/turns/{turn}/reveal", status_code=201, summary="Tell others of a turn")
async def reveal(visit: Authored, turn: TurnPath, body: schemas.Reveal, key: IdempotencyKey = None) -> schemas.Turn:
    """Who heard it never changes: this is a new turn that cites the old one, in its words or in others."""
    old = await visit.view().find(turn)
    told = await visit.story.reveal(old, body.to, text=body.text, speaker=body.speaker, id=visit.told_once(key))
    return await visit.view().turn(told)
