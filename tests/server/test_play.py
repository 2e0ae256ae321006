"""Games over HTTP: rounds run by themselves, whoever listens; each seat sees what it heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.server.conftest import STORY, Client, Table

import talekeeper as tk
from talekeeper.memory.moments import KeeperResponse
from talekeeper.server.app import create_app
from talekeeper.server.rooms import AT_ONCE
from talekeeper.table.playing.seating import resume
from talekeeper.table.rules.ledger import ledger
from talekeeper.table.storyteller import Storyteller

GAME = {"user": "ana", "name": "lamp", "scenario": "tidelamp", "party": ["nell", "osric"], "humans": ["nell"], "seed": 7}
LAMP = "/stories/ana.lamp"


@pytest.fixture
async def owner(table: Table) -> Client:
    await table.owner.do("POST", "/games", GAME)
    return table.owner


async def rested(client: Client, **params: Any) -> Any:
    """The game when nothing is in flight any more."""
    while (found := await client.get(f"{LAMP}/play", **params))["running"]:
        await asyncio.sleep(0.02)
    assert not found["failed"]
    return found


async def play(client: Client, text: str = "I look around.") -> Any:
    """A round with Nell's answer in it."""
    if not (await rested(client))["waiting"]:
        await client.do("POST", f"{LAMP}/step")
    assert (await rested(client))["waiting"] == "nell"
    await client.do("POST", f"{LAMP}/act", {"text": text})
    return await rested(client)


async def test_a_round_waits_for_its_person_and_is_written_at_its_end(owner: Client) -> None:
    await owner.do("POST", f"{LAMP}/step", {"nudge": "more rain"})
    waiting = await rested(owner)
    assert (waiting["round"], waiting["waiting"]) == (1, "nell")
    assert [line["role"] for line in waiting["lines"]] == ["dm"], "who comes late finds what was said"
    assert len((await owner.get(f"{LAMP}/turns"))["turns"]) == 1
    choices = (await owner.get(f"{LAMP}/scene", seat="nell"))["choices"]
    after = await play(owner, choices[0]["text"])
    assert (after["round"], after["lines"], after["waiting"]) == (2, [], None)
    turns = (await owner.get(f"{LAMP}/turns"))["turns"]
    assert choices[0]["text"] in [turn["text"] for turn in turns if turn["speaker"] == "nell"]


async def test_a_line_for_the_table_is_never_told(owner: Client) -> None:
    await owner.do("POST", f"{LAMP}/step")
    await rested(owner)
    for line in ("/undo", " /UNDO 3", "/", "/xyzzy and so on"):
        refused = await owner.refused(422, "POST", f"{LAMP}/act", {"text": line})
        assert "What begins with a slash is for the table" in refused["detail"]
    assert (await play(owner, "I look at the sign: 3/4 of it is gone."))["round"] == 2
    assert not any("/" in turn["text"][:2] for turn in (await owner.get(f"{LAMP}/turns"))["turns"])


async def test_it_plays_by_itself_until_it_is_paused(owner: Client) -> None:
    await owner.do("PUT", f"{LAMP}/people", {"humans": []})
    assert (await owner.do("POST", f"{LAMP}/auto", {"on": True}))["auto"]
    while (await owner.get(f"{LAMP}/play"))["round"] < 3:
        await asyncio.sleep(0.05)
    await owner.refused(409, "POST", f"{LAMP}/step")
    await owner.do("POST", f"{LAMP}/auto", {"on": False})
    stopped = (await rested(owner))["round"]
    await asyncio.sleep(1)
    assert (await rested(owner))["round"] == stopped


async def test_a_whisper_is_for_some_ears_and_the_round_goes_on_after_it(owner: Client, table: Table) -> None:
    await owner.do("POST", f"{LAMP}/step")
    await rested(owner)
    await owner.do("POST", f"{LAMP}/whisper", {"speaker": "dm", "to": ["nell"], "text": "The steward lies."})
    await play(owner, "I smile at the steward.")
    for seat, heard in (("nell", True), ("osric", False)):
        texts = [turn["text"] for turn in (await owner.get(f"{LAMP}/turns", seat=seat))["turns"]]
        assert ("The steward lies." in texts) is heard
    assert "I smile at the steward." in texts


async def test_a_player_whispers_to_those_who_are_there_and_to_nobody_else(owner: Client, table: Table) -> None:
    whisper = f"{LAMP}/whisper"
    nell = table.client("nell")
    told = await nell.do("POST", whisper, {"to": ["osric"], "text": "Keep your hands off the lamp."})
    assert (told["kind"], told["speaker"], told["audience"]) == ("whisper", "nell", None)
    assert (await owner.get(f"{LAMP}/turns/{told['id']}"))["audience"] == ["dm", "nell", "osric"]
    assert "Keep your hands off the lamp." in [turn["text"] for turn in (await owner.get(f"{LAMP}/turns", seat="osric"))["turns"]]
    seen = {one["id"] for one in (await owner.get(f"{LAMP}/scene", seat="nell"))["here"]}
    elsewhere = min({seat["id"] for seat in await owner.get(f"{LAMP}/seats")} - seen - {"dm", "nell"})
    refused = [await nell.refused(422, "POST", whisper, {"to": ["osric", who], "text": "Psst."}) for who in (elsewhere, "nobody")]
    assert refused[0] == refused[1]
    assert "those who are here" in refused[0]["detail"]
    await nell.refused(403, "POST", whisper, {"speaker": "osric", "to": ["nell"], "text": "Psst."})
    await owner.refused(422, "POST", whisper, {"to": ["nell"], "text": "Psst."})


async def test_what_is_sent_again_is_done_once(owner: Client) -> None:
    again = [{"Idempotency-Key": name} for name in ("whisper", "step", "act", "undo")]
    whisper = {"speaker": "dm", "to": ["nell"], "text": "The steward lies."}
    told = [await owner.do("POST", f"{LAMP}/whisper", whisper, headers=again[0]) for _ in range(3)]
    assert len({turn["id"] for turn in told}) == 1
    for _ in range(2):
        await owner.do("POST", f"{LAMP}/step", headers=again[1])
        assert (await rested(owner))["waiting"] == "nell"
    for _ in range(2):
        await owner.do("POST", f"{LAMP}/act", {"text": "I sing of the sea."}, headers=again[2])
        assert (await rested(owner))["round"] == 2
    await play(owner)
    await owner.do("POST", f"{LAMP}/step")
    await rested(owner)
    await owner.do("POST", f"{LAMP}/act", {"text": "I sing of the sea."}, headers=again[2])
    assert (await rested(owner))["waiting"] == "nell", "a late retry is no answer to the next question"
    sung = [turn for turn in (await owner.get(f"{LAMP}/turns"))["turns"] if turn["text"] == "I sing of the sea."]
    assert len(sung) == 1
    rounds = [(await owner.do("POST", f"{LAMP}/undo", headers=again[3]))["round"] for _ in range(2)]
    assert rounds[0] == rounds[1]


async def test_undo_takes_the_round_back_and_seats_can_be_taken_over(owner: Client) -> None:
    await play(owner)
    before = (await owner.get(f"{LAMP}/turns"))["turns"]
    await play(owner, "I sing.")
    assert (await owner.do("POST", f"{LAMP}/undo"))["round"] == 2
    assert (await owner.get(f"{LAMP}/turns"))["turns"] == before
    taken = await owner.do("PUT", f"{LAMP}/people", {"humans": ["osric"]})
    assert [one["human"] for one in taken["party"]] == [False, True]
    await owner.do("POST", f"{LAMP}/step")
    assert (await rested(owner))["waiting"] == "osric"
    await owner.refused(422, "PUT", f"{LAMP}/people", {"humans": ["nobody"]})
    await owner.do("POST", f"{LAMP}/rewind", {"to": "2"})
    assert [one["human"] for one in (await rested(owner))["party"]] == [True, False], "who plays is in the log"


async def test_an_epilogue_is_known_to_those_who_heard_it_until_the_story_goes_on(owner: Client) -> None:
    await play(owner)
    before = (await owner.get(f"{LAMP}/turns", newest=True))["turns"][-1]["id"]
    assert not (await owner.get(f"{LAMP}/play"))["told"]
    await owner.do("POST", f"{LAMP}/finish")
    assert (await rested(owner))["told"]
    await owner.refused(422, "POST", f"{LAMP}/finish")
    assert [(await rested(owner, seat=seat))["told"] for seat in ("dm", "nell", "marlo")] == [True, True, False]
    assert not (await owner.get(f"{LAMP}/play", at=before))["told"], "it was not told by then"
    assert not (await play(owner))["told"]


async def test_two_who_take_the_same_round_back_take_back_one(owner: Client) -> None:
    await play(owner)
    await play(owner, "I sing.")
    seen = {"If-Match": (await owner.get(LAMP))["version"]}
    both = await asyncio.gather(*(owner("POST", f"{LAMP}/undo", headers={**seen, "Idempotency-Key": name}) for name in "ab"))
    done, refused = sorted(both, key=lambda answer: answer.status_code)
    assert (done.status_code, refused.status_code, refused.json()["type"]) == (200, 412, "urn:talekeeper:moved-on")
    assert (await rested(owner))["round"] == 2
    first = next(name for name, answer in zip("ab", both, strict=True) if answer is done)
    again = await owner("POST", f"{LAMP}/undo", headers={**seen, "Idempotency-Key": first})
    assert (again.status_code, again.json()["round"]) == (200, 2), "a retry is no second one"
    now = done.headers["Story-Version"]
    assert now == (await owner.get(LAMP))["version"]
    assert (await owner.do("POST", f"{LAMP}/undo", headers={"If-Match": now}))["round"] == 1
    await owner.refused(412, "POST", f"{LAMP}/undo", headers={"If-Match": now})
    await owner.refused(422, "POST", f"{LAMP}/undo")


async def test_the_game_is_shown_as_it_was_and_by_seat(owner: Client) -> None:
    await play(owner)
    now = await owner.get(f"{LAMP}/scene")
    assert await owner.get(f"{LAMP}/scene", at="2") != now
    assert (await owner.get(f"{LAMP}/ledger"))["goals"]
    matrix = await owner.get(f"{LAMP}/secrets")
    known = {one["id"]: one["known"] for one in matrix["secrets"]}
    assert known["nells_debt"] == ["nell"]
    debt = next(one["text"] for one in matrix["secrets"] if one["id"] == "nells_debt")
    assert debt in (await owner.get(f"{LAMP}/scene", seat="nell"))["secrets"]
    assert debt not in (await owner.get(f"{LAMP}/scene", seat="osric"))["secrets"]
    for path in ("scene", "ledger"):
        assert debt not in str(await owner.get(f"{LAMP}/{path}", seat="osric"))


async def test_a_ledger_is_the_same_here_and_in_a_terminal(owner: Client, table: Table) -> None:
    await owner.do("PUT", f"{LAMP}/people", {"humans": ["nell", "osric"]})
    await owner.do("POST", f"{LAMP}/step")
    for seat, text in (("nell", "I promise Marlo that I will be careful."), ("osric", "I take the bottle of brandy.")):
        assert (await rested(owner))["waiting"] == seat
        await owner.do("POST", f"{LAMP}/act", {"text": text})
    await rested(owner)
    played = await resume(table.keeper, tk.MemoryKey("acme", "ana", "lamp"), Storyteller)
    for seats in (("nell",), ("osric",), ()):
        shown = await owner.get(f"{LAMP}/ledger", **({"seat": seats[0]} if seats else {}))
        known = ledger(await played.state(), played.scenario, seats)
        assert [(one["item"], one["holder"]) for one in shown["items"]] == list(known.items)
        assert [(one["by"], one["to"], one["text"], one["state"]) for one in shown["promises"]] == [
            (one.by, one.to, one.text, one.state) for one in known.promises
        ]
        assert ("a bottle of brandy", "Osric Vey") in known.items
        assert [one.by for one in known.promises] == ["Nell Tarn"]


async def test_who_plays_is_shown_as_it_was(owner: Client) -> None:
    await play(owner)
    then = (await owner.get(f"{LAMP}/turns", newest=True, limit=1))["turns"][0]["id"]
    await owner.do("PUT", f"{LAMP}/people", {"humans": ["osric"]})
    await owner.do("POST", f"{LAMP}/step")
    now = await rested(owner)
    assert (now["waiting"], now["round"], [one["human"] for one in now["party"]]) == ("osric", 2, [False, True])
    past = await owner.get(f"{LAMP}/play", at=then)
    assert (past["waiting"], past["round"], [one["human"] for one in past["party"]]) == (None, 2, [True, False])
    assert (past["lines"], past["running"], past["title"]) == ([], False, now["title"])
    assert (await owner.get(f"{LAMP}/play", at="0"))["round"] == 1


async def test_places_are_called_by_their_names(owner: Client, table: Table) -> None:
    await play(owner)
    shown = await owner.get(f"{LAMP}/turns", newest=True)
    assert {(turn["location"], turn["place_name"]) for turn in shown["turns"] if turn["location"]} == {("crooked_eel", "the Crooked Eel")}
    assert {point["place_name"] for point in (await owner.get(f"{LAMP}/timeline"))["points"]} == {None, "the Crooked Eel"}
    turn = await owner.tell("The bell tolls.", location="crooked_eel")
    assert turn["place_name"] is None, "it is no game's place"
    assert ((await owner.get(LAMP))["game"], (await owner.get(STORY))["game"]) == (True, False)


async def test_games_that_were_not_played_for_longest_are_put_away_and_taken_up(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.server.rooms.ROOMS", 2)
    owner, rooms = table.owner, table.app.state.house.rooms
    for name in ("one", "two", "three", "lamp"):
        await owner.do("POST", "/games", {**GAME, "name": name})
        await owner.do("POST", f"/stories/ana.{name}/step")
        while (found := await owner.get(f"/stories/ana.{name}/play"))["running"]:
            await asyncio.sleep(0.02)
        assert found["waiting"] == "nell"
    assert [key.session_id for key, _ in rooms._rooms] == ["three", "lamp"]
    found = await owner.get("/stories/ana.one/play")
    assert (found["waiting"], [line["role"] for line in found["lines"]]) == ("nell", ["dm"]), "the round is where it was"
    await owner.do("POST", "/stories/ana.one/act", {"text": "I look around."})
    while (found := await owner.get("/stories/ana.one/play"))["running"]:
        await asyncio.sleep(0.02)
    assert (found["round"], found["failed"], len(rooms._rooms)) == (2, "", 2)


async def test_a_player_begins_no_round_but_acts_on_when_the_story_moved(owner: Client, table: Table) -> None:
    nell = table.client("nell")
    problem = await nell.refused(409, "POST", f"{LAMP}/act", {"text": "I wake everybody."})
    assert problem["type"] == "urn:talekeeper:nobodys-turn"
    assert not (await rested(owner))["lines"], "nothing has begun"
    await owner.do("POST", f"{LAMP}/step")
    assert (await rested(owner))["waiting"] == "nell"
    await owner.do("POST", f"{LAMP}/turns", {"speaker": "dm", "text": "Lightning strikes the tower."})
    assert (await rested(owner))["waiting"] is None, "the round goes back before what was told meanwhile"
    await nell.do("POST", f"{LAMP}/act", {"text": "I look around."})
    assert (await rested(owner))["round"] == 2, "her turn had come"
    await nell.refused(409, "POST", f"{LAMP}/act", {"text": "I look around again."})


async def test_a_round_in_flight_outlasts_what_others_do_beside_it(owner: Client, table: Table) -> None:
    await owner.do("POST", f"{LAMP}/step")
    before = await rested(owner)
    nell = table.client("nell")
    for body in ({"text": "Not my turn."}, {"text": "I wonder.", "kind": "thought"}, {"text": "Psst.", "heard_by": ["osric"]}):
        assert (await nell.refused(409, "POST", f"{LAMP}/turns", body))["type"] == "urn:talekeeper:a-game"
    first = (await owner.get(f"{LAMP}/turns"))["turns"][0]["id"]
    for method in ("PUT", "DELETE"):
        await owner.do(method, f"{LAMP}/turns/{first}/pin")
    await owner.do("POST", f"{LAMP}/turns", {"speaker": "osric", "text": "What a place.", "kind": "thought"})
    assert await rested(owner) == before
    await nell.do("POST", f"{LAMP}/act", {"text": "I look around."})
    assert (await rested(owner))["round"] == 2


async def test_of_two_people_the_first_acts_first_when_a_round_begins_anew(table: Table) -> None:
    owner, nell = table.owner, table.client("nell")
    await owner.do("POST", "/games", {**GAME, "humans": ["nell", "osric"]})
    await owner.do("POST", f"{LAMP}/step")
    assert (await rested(owner))["waiting"] == "nell"
    await nell.do("POST", f"{LAMP}/act", {"text": "I look around."})
    assert (await rested(owner))["waiting"] == "osric"
    await owner.do("POST", f"{LAMP}/turns", {"speaker": "dm", "text": "Lightning strikes the tower."})
    assert (await rested(owner))["waiting"] is None
    assert (await owner.refused(409, "POST", f"{LAMP}/act?seat=osric", {"text": "I run."}))["type"] == "urn:talekeeper:someones-turn"
    assert not (await rested(owner))["lines"], "nothing has begun"
    await nell.do("POST", f"{LAMP}/act", {"text": "I look around."})
    assert (await rested(owner))["waiting"] == "osric"


async def test_of_two_acts_at_once_one_is_taken(owner: Client) -> None:
    await owner.do("POST", f"{LAMP}/step")
    assert (await rested(owner))["waiting"] == "nell"
    answers = await asyncio.gather(*(owner("POST", f"{LAMP}/act", {"text": f"I count to {number}."}) for number in range(3)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409]
    await rested(owner)
    told = [turn["text"] for turn in (await owner.get(f"{LAMP}/turns"))["turns"] if turn["speaker"] == "nell"]
    assert len(told) == 1


async def test_a_key_that_was_used_for_other_words_is_refused(owner: Client) -> None:
    await owner.do("POST", f"{LAMP}/step")
    await rested(owner)
    key = {"Idempotency-Key": "one"}
    for _ in range(2):
        await owner.do("POST", f"{LAMP}/act", {"text": "I look around."}, headers=key)
        await rested(owner)
    assert (await owner.refused(409, "POST", f"{LAMP}/act", {"text": "I dance."}, headers=key))["type"] == "urn:talekeeper:duplicate-id"


async def test_a_fork_is_played_by_itself(owner: Client) -> None:
    await play(owner)
    branch = (await owner.do("POST", f"{LAMP}/fork", {"at": "2", "name": "what-if"}))["name"]
    assert (await owner.get(f"{LAMP}/play", branch=branch))["round"] == 1
    assert (await owner.refused(409, "POST", f"{LAMP}/fork", {"name": branch}))["type"] == "urn:talekeeper:name-taken"
    await owner.do("POST", f"{LAMP}/step", params={"branch": branch})
    assert (await rested(owner, branch=branch))["waiting"] == "nell"
    assert (await rested(owner))["waiting"] is None


async def test_what_is_no_game_is_refused(owner: Client, table: Table) -> None:
    await owner.refused(422, "GET", "/stories/ana.ash-crown/play")
    assert (await owner.refused(409, "POST", "/games", GAME))["type"] == "urn:talekeeper:name-taken"
    assert "named twice" in (await owner.refused(422, "POST", "/games", {**GAME, "name": "x", "party": ["nell", "nell"]}))["detail"]
    await owner.refused(422, "POST", "/games", {**GAME, "name": "x", "scenario": "/etc/passwd"})
    await owner.refused(422, "POST", f"{LAMP}/act", {"text": "I act."})
    await table.rogue.refused(404, "POST", f"{LAMP}/step")
    assert "tidelamp" in [one["id"] for one in (await owner.get("/scenarios"))["scenarios"]]


async def test_the_page_needs_no_token_and_holds_nobodys_words(table: Table) -> None:
    answer = await table.http.get("http://localhost:8765/")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (await table.http.get("http://localhost:8765/page/__init__.py")).status_code == 404


class Mute:
    """A model that says nothing until it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Event()

    async def speak(self, ask: Any) -> AsyncIterator[str]:
        self.asked += 1
        await self.let.wait()
        yield "At last."

    async def rule(self, ask: Any) -> KeeperResponse:
        return KeeperResponse("It works.")


async def test_games_that_wait_for_a_model_hold_up_nobody() -> None:
    mute = Mute()
    async with tk.open(":memory:") as keeper:
        app = create_app(keeper, brains=lambda scenario: mute)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost/api/v1") as http:
            client = Client(http, None)
            for number in range(3 * AT_ONCE):
                await client.do("POST", "/games", {**GAME, "name": f"lamp-{number}", "humans": []})
                await client.do("POST", f"/stories/ana.lamp-{number}/step")
            while mute.asked < 3 * AT_ONCE:
                await asyncio.sleep(0.01)
            mute.let.set()
            for number in range(3 * AT_ONCE):
                while (found := await client.get(f"/stories/ana.lamp-{number}/play"))["running"]:
                    await asyncio.sleep(0.02)
                assert (found["failed"], found["round"]) == ("", 2)
        await app.state.house.rooms.close()


async def test_a_whisper_to_nobody_who_is_here_is_not_taken_and_the_turn_is_still_there(owner: Client, table: Table) -> None:
    await owner.do("POST", f"{LAMP}/step")
    assert (await rested(owner))["waiting"] == "nell"
    refused = await owner.refused(422, "POST", f"{LAMP}/act", {"text": "I whisper to Osrik that larkspur is the word."})
    assert (refused["type"], refused["detail"]) == (
        "urn:talekeeper:unclear", "There is no Osrik here. Did you mean Osric? Nobody has heard it: say it in another way.",
    )  # fmt: skip
    assert (await rested(owner))["waiting"] == "nell"
    for absent in ("quill", "dorrit"):
        refused = await owner.refused(422, "POST", f"{LAMP}/whisper", {"speaker": "nell", "to": [absent], "text": "Larkspur."})
        assert "is not here, so nobody would hear it" in refused["detail"]
    await owner.do("POST", f"{LAMP}/whisper", {"speaker": "dm", "to": ["nell"], "text": "The steward lies."})
    await play(owner, "I whisper to Osric that thyme is the word.")
    heard = [turn for turn in (await owner.get(f"{LAMP}/turns"))["turns"] if "thyme" in turn["text"] or "arkspur" in turn["text"]]
    assert [set(turn["audience"]) for turn in heard] == [{"dm", "nell", "osric"}]
