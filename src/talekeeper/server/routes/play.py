"""Games: a scenario becomes a story, rounds are played, and what the game knows is shown by seat."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from talekeeper.server import game_schemas as games
from talekeeper.server import schemas
from talekeeper.server.door import (
    Authored,
    Entered,
    Granted,
    IdempotencyKey,
    IfMatch,
    InHouse,
    Looking,
    LookingAt,
    Route,
    new_key,
)
from talekeeper.server.ids import PREFIX
from talekeeper.server.problems import forbidden, invalid
from talekeeper.server.room import Room
from talekeeper.server.routes.turns import stamp, version_of
from talekeeper.server.views import View, story_row
from talekeeper.story.replay import Past
from talekeeper.table.brain import Scene
from talekeeper.table.playing.flight import DM
from talekeeper.table.playing.seating import Setup, Table
from talekeeper.table.rules.ledger import ledger as known_ledger
from talekeeper.table.rules.plan import open_objectives
from talekeeper.table.shown.scene import condition
from talekeeper.table.shown.scene import scene as scene_of
from talekeeper.table.world.gamestate import GameState
from talekeeper.table.world.scenario import Scenario

router = APIRouter(prefix=PREFIX, route_class=Route, tags=["play"])


async def enter_room(visit: Entered) -> Room:
    return await visit.house.rooms.find(visit.story)


async def host(visit: Authored) -> Room:
    return await visit.house.rooms.find(visit.story)


InRoom = Annotated[Room, Depends(enter_room)]
Hosting = Annotated[Room, Depends(host)]


# -- beginning ---------------------------------------------------------------------------------------------------------


@router.get("/scenarios", summary="List the scenarios")
async def scenarios(house: InHouse) -> games.Scenarios:
    house.rooms.expect()
    return games.Scenarios(scenarios=[_scenario(name, one) for name, one in house.rooms.scenarios().items()])


def _scenario(name: str, one: Scenario) -> games.Scenario:
    heroes = [games.Hero.model_validate(hero) for hero in one.heroes.values()]
    return games.Scenario(id=name, title=one.title, tagline=one.tagline, mood=one.mood, premise=list(one.premise), heroes=heroes)


@router.post("/games", status_code=201, summary="Begin a game")
async def begin_game(house: InHouse, grant: Granted, body: games.NewGame, response: Response) -> schemas.StoryRow:
    """A story is made from a scenario, with its seats, and waits for its first round."""
    key = new_key(grant, body.user, body.name)
    if len(set(body.party)) < len(body.party) or len(set(body.humans)) < len(body.humans):
        raise invalid("Somebody is named twice: each of the party once, please.")
    house.rooms.expect()
    await house.rooms.begin(key, Setup(body.scenario, tuple(body.party), tuple(body.humans), body.seed))
    row = story_row(key)
    response.headers["Location"] = f"{PREFIX}/stories/{row.id}"
    return row


# -- looking -----------------------------------------------------------------------------------------------------------


@router.get("/stories/{story}/play", summary="How the game stands")
async def play(room: InRoom, view: LookingAt) -> games.Play:
    """Who plays, whose turn it is, and the round in flight. In the past nothing is in flight, and nobody is waited for."""
    if isinstance(view.book, Past):
        return await _played(room, view.book, view.seat)
    return await _play(room, view.seat)


async def _played(room: Room, book: Past, seat: str | None) -> games.Play:
    table, state, setup = room.table, await room.table.state_at(book), await room.table.setup_at(book)
    return games.Play(
        scenario=setup.pack, title=table.scenario.title, round=await table.round_now(book), party=_party(table, setup, state, seat),
        running=False, auto=False, waiting=None, ending=state.ending, told=await _is_told(room, seat, book), failed="", lines=[],
    )  # fmt: skip


async def _play(room: Room, seat: str | None) -> games.Play:
    table, state = room.table, await room.table.state()
    waiting = room.waiting or None
    heard = [line for line in room.lines if seat is None or seat in line.hearers]
    return games.Play(
        scenario=table.setup.pack, title=table.scenario.title, round=await table.round_now(),
        party=_party(table, table.setup, state, seat), running=room.running, auto=room.auto,
        waiting=waiting if seat in (None, DM, waiting) else None, ending=state.ending, told=await _is_told(room, seat),
        failed=room.failed if seat is None else "",
        lines=[games.FlightLine(line=line.key, role=line.role, seat=line.seat, text=line.text, ended=line.ended) for line in heard],
    )  # fmt: skip


async def _is_told(room: Room, seat: str | None, book: Past | None = None) -> bool:
    """Whoever is not of the party has not heard it."""
    return seat in (None, DM, *room.table.setup.party) and await room.table.is_told(book)


def _party(table: Table, setup: Setup, state: GameState, seat: str | None) -> list[games.Player]:
    """Of others, a seat knows who plays them; how they are it sees in its scene, if they are there."""
    return [
        games.Player(
            id=one, name=table.scenario.heroes[one].name, calling=table.scenario.heroes[one].calling, human=one in setup.humans,
            condition=condition(state, one) if seat in (None, DM, one) else "",
        )
        for one in setup.party
    ]  # fmt: skip


@router.get("/stories/{story}/scene", summary="Where a seat is, and what it could do")
async def scene(room: InRoom, view: LookingAt) -> games.Scene:
    """What the seat sees, carries, owes and knows, and its choices. For the dm: the party's place, and everything."""
    state = await room.table.state_at(view.book)
    return games.Scene.model_validate(scene_of(room.table.scenario, state, _eyes(room, view), room.table.setup.seed))


def _eyes(room: Room, view: View) -> str:
    if view.seat is not None and view.seat not in (DM, *room.table.setup.party):
        raise invalid("Only those of the party and the dm have a scene.")
    return view.seat or DM


@router.get("/stories/{story}/ledger", summary="What is owed, held and lost")
async def ledger(room: InRoom, view: LookingAt) -> games.Ledger:
    """In the view of a seat: what it heard of promises and saw of things and deaths. The same as a terminal's `/ledger`."""
    table, state, eyes = room.table, await room.table.state_at(view.book), _eyes(room, view)
    found = known_ledger(state, table.scenario, () if eyes == DM else (eyes,))
    goals = [table.scenario.objectives[id] for id in open_objectives(table.scenario, state)]
    return games.Ledger(
        promises=[games.Vow.model_validate(one) for one in found.promises],
        items=[games.Held(item=item, holder=holder) for item, holder in found.items],
        deaths=[games.Death(who=who, how=how) for who, how in found.deaths],
        goals=[games.Goal(id=one.id, title=one.title, hint=one.hint[0]) for one in goals],
        done=[table.scenario.objectives[id].title for id in state.objectives],
    )  # fmt: skip


@router.get("/stories/{story}/secrets", summary="Who knows which secret")
async def secrets(visit: Authored, room: Hosting, view: LookingAt) -> games.Secrets:
    """A matrix of the scenario's secrets and those of the party who know them."""
    state = await room.table.state_at(view.book)
    party = [schemas.Seat(id=one, name=room.table.scenario.name(one), location=None) for one in room.table.setup.party]
    known = {one.id: [seat for seat in state.party if seat in state.knows.get(one.id, ())] for one in room.table.scenario.secrets.values()}
    return games.Secrets(
        seats=party, secrets=[games.Secret(id=id, text=room.table.scenario.secrets[id].text, known=who) for id, who in known.items()]
    )


# -- playing -----------------------------------------------------------------------------------------------------------


@router.post("/stories/{story}/step", status_code=202, summary="Play a round")
async def step(visit: Authored, room: Hosting, body: games.Step | None = None, key: IdempotencyKey = None) -> games.Play:
    """Begins a round, as far as the next person's turn. Follow it with the stream of events; it is written at its end."""
    await room.step(body.nudge if body is not None else None, visit.told_once(key))
    return await _play(room, None)


@router.post("/stories/{story}/act", status_code=202, summary="Act, when it is your turn")
async def act(visit: Entered, room: InRoom, view: Looking, body: games.Act, key: IdempotencyKey = None) -> games.Play:
    """What a person does. The dm may answer for whoever is waited for. A text that begins with a slash is refused: in a terminal that is
    a command, and no part of the story."""
    request = visit.told_once(key)
    if room.did(request, body.text):
        return await _play(room, view.seat)
    seat = view.seat or room.waiting
    if not seat:
        raise invalid("Nobody's turn is being waited for: play a round first.")
    if seat not in room.table.setup.humans:
        raise invalid("This seat is played by the AI: have it taken over first.")
    if body.text.lstrip().startswith("/"):
        raise invalid("What begins with a slash is for the table, and is not told: there are routes for that.")
    await room.act(seat, body.text, request, hosts=view.seat in (None, DM))
    return await _play(room, view.seat)


@router.post("/stories/{story}/auto", summary="Let it play, or pause")
async def auto(room: Hosting, body: games.Auto) -> games.Play:
    """Rounds follow each other as far as the next person's turn. A pause takes effect at the end of the round."""
    await room.play(body.on)
    return await _play(room, None)


@router.post("/stories/{story}/finish", status_code=202, summary="Bring it to an end")
async def finish(visit: Authored, room: Hosting, key: IdempotencyKey = None) -> games.Play:
    """The epilogue is told, wherever the story is."""
    await room.finish(visit.told_once(key))
    return await _play(room, None)


@router.post("/stories/{story}/undo", summary="Take rounds back")
async def undo(
    visit: Authored, room: Hosting, response: Response, body: games.Undo | None = None, key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> games.Play:  # fmt: skip
    """The story, the game and every memory go back. What was played stays as a branch. Bound to the version that you saw, a round that
    someone else has taken back meanwhile is not followed by another."""
    request = visit.told_once(key)
    async with room.hold() as table:
        if not room.did(request):
            await table.undo(body.rounds if body is not None else 1, expected_version=version_of(if_match))
            room.note(request)
    await stamp(response, visit.view())
    return await _play(room, None)


@router.put("/stories/{story}/people", summary="Say who is played by a person")
async def people(room: Hosting, body: games.People) -> games.Play:
    """Takes a seat over, or hands it to the AI. It stands in the log, and a rewind takes it back."""
    async with room.hold() as table:
        await table.seat_people(body.humans)
    return await _play(room, None)


@router.post("/stories/{story}/whisper", status_code=201, summary="Whisper")
async def whisper(visit: Entered, view: Looking, body: games.Whisper, key: IdempotencyKey = None) -> schemas.Turn:
    """Words for some ears only, at once and outside of any round. A player whispers for the own seat, to those whom it sees."""
    speaker = body.speaker or view.seat
    if not visit.grant.dm and speaker != view.seat:
        raise forbidden("This token whispers for its own seat only.")
    if speaker is None:
        raise invalid("Say who whispers.")
    room = await enter_room(visit)
    async with room.hold() as table:
        if not visit.grant.dm:
            _must_reach(body.to, scene_of(table.scenario, await table.state(), _eyes(room, view), table.setup.seed))
        turn = await table.whisper(speaker, body.to, body.text, id=visit.told_once(key))
    seen = visit.view() if visit.grant.dm else view
    return await seen.turn(await seen.find(turn.id))


def _must_reach(ears: Collection[str], scene: Scene) -> None:
    if scene.condition == "dead":
        raise invalid("The dead do not whisper.")
    if not set(ears) <= {one.id for one in scene.here}:
        raise invalid("You can whisper to those who are here with you, and to nobody else.")
