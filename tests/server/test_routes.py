"""What can be done over HTTP, as the dm and as a player. On every store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.conftest import SEATS, STORY, Client, Table, served
from tests.stories import deed

import talekeeper as tk
from talekeeper.live.shared import UNFINISHED
from talekeeper.server import ids


async def texts(client: Client, path: str = STORY, **params: Any) -> list[str]:
    return [turn["text"] for turn in (await client.get(f"{path}/turns", **{"limit": 200, **params}))["turns"]]


async def fill(table: Table, count: int = 60) -> list[str]:
    return [(await table.owner.tell(deed(number)))["id"] for number in range(count)]


# -- stories and seats -------------------------------------------------------------------------------------------------


async def test_a_story_is_begun_listed_looked_at_and_removed(table: Table) -> None:
    body = {"user": "ben", "name": "Das Märchen / 1", "seats": [{"id": "dm", "role": "dm"}, {"id": "Ö", "name": "Öse"}]}
    answer = await table.owner("POST", "/stories", body)
    made = answer.json()
    assert (answer.status_code, made["user"], made["name"], made["version"]) == (201, "ben", "Das Märchen / 1", "1.0")
    assert answer.headers["location"] == f"/api/v1/stories/{made['id']}"
    assert await table.owner.do("POST", "/stories", body) == made
    assert await table.owner.get(f"/stories/{made['id']}") == made
    assert (await table.owner.refused(409, "POST", "/stories", {**body, "seats": [{"id": "x"}]}))["type"] == "urn:talekeeper:story-exists"
    assert [row["id"] for row in (await table.owner.get("/stories"))["stories"]] == ["ana.ash-crown", made["id"]]
    assert [row["id"] for row in (await table.owner.get("/stories", limit=1))["stories"]] == ["ana.ash-crown"]
    assert [row["id"] for row in (await table.owner.get("/stories", after="ana.ash-crown"))["stories"]] == [made["id"]]
    assert (await table.owner("DELETE", f"/stories/{made['id']}")).status_code == 204
    await table.owner.refused(404, "GET", f"/stories/{made['id']}")
    await table.owner.refused(404, "DELETE", f"/stories/{made['id']}")


async def test_what_an_import_left_that_was_killed_is_no_story_and_can_be_removed(table: Table) -> None:
    record = await table.keeper.store.load(table.key)
    assert record is not None
    await table.keeper.store.create(tk.MemoryKey(table.key.tenant_id, "ana", "half"), {**record.config, UNFINISHED: "x"})
    await table.owner.refused(404, "GET", "/stories/ana.half")
    assert [row["id"] for row in (await table.owner.get("/stories"))["stories"]] == ["ana.ash-crown"]
    assert (await table.owner("DELETE", "/stories/ana.half")).status_code == 204
    assert [key.session_id for key in await table.keeper.keys()] == ["ash-crown"]


@pytest.mark.parametrize("user", ["ana", "a.b", "a/b", "~2f", "é", "…", "a b", "A", "%2F", "日本"])
def test_ids_of_stories_are_plain_and_mean_one_story(user: str) -> None:
    key = tk.MemoryKey("acme", user, "x~y")
    story = ids.story_id(key)
    assert story.isascii()
    assert ids.story_key("acme", story) == key
    assert ids.story_key("other", story) == tk.MemoryKey("other", user, "x~y")


@pytest.mark.parametrize("story", ["ana", "ana.", ".ana", "a.b.c", "~41.b", "~2F.b", "~zz.b", "~ff.b", "a." + "x" * 201, "~20.b"])
def test_what_is_no_id_of_a_story_means_none(story: str) -> None:
    assert ids.story_key("acme", story) is None


async def test_seats_join_are_changed_and_keep_their_roles(table: Table) -> None:
    seat = await table.owner.do("PUT", f"{STORY}/seats/smith", {"role": "npc", "name": "Old Tam", "token_limit": 900})
    assert seat == {
        "id": "smith",
        "name": "Old Tam",
        "role": "npc",
        "aliases": [],
        "token_limit": 900,
        "fold_at": 0.8,
        "keep": 3,
        "location": None,
    }
    assert (await table.owner.do("PUT", f"{STORY}/seats/smith", {"role": "npc", "keep": 5}))["keep"] == 5
    await table.owner.refused(422, "PUT", f"{STORY}/seats/smith", {"role": "dm"})
    assert [one["id"] for one in await table.owner.get(f"{STORY}/seats")] == ["dm", "rogue", "bard", "spy", "smith"]
    await table.owner.do("POST", f"{STORY}/seats/smith/enter", {"location": "forge", "text": "Tam comes in."})
    assert (await table.owner.get(f"{STORY}/seats"))[-1]["location"] == "forge"
    assert await table.owner.do("POST", f"{STORY}/seats/smith/enter", {"location": "forge"}) is None
    gone = await table.owner.do("POST", f"{STORY}/seats/smith/leave")
    assert (gone["kind"], gone["location"]) == ("leave", "forge")
    assert await table.owner.do("POST", f"{STORY}/seats/smith/leave") is None
    await table.owner.refused(404, "POST", f"{STORY}/seats/nobody/enter", {"location": "forge"})


# -- telling -----------------------------------------------------------------------------------------------------------


async def test_a_turn_is_appended_with_everything_that_can_be_said_of_it(table: Table) -> None:
    body = {
        "speaker": "dm", "text": "The clock strikes.", "kind": "event", "heard_by": ["rogue"], "mentions": ["clock"], "location": "tower",
        "voice": "The tower", "when": "midnight", "id": "clock",
    }  # fmt: skip
    answer = await table.owner("POST", f"{STORY}/turns", body)
    turn = answer.json()
    assert answer.status_code == 201
    assert answer.headers["story-version"] == (await table.owner.get(STORY))["version"]
    assert (turn["id"], turn["audience"], turn["voice"], turn["when"], turn["location"]) == (
        "clock",
        ["dm", "rogue"],
        "The tower",
        "midnight",
        "tower",
    )
    assert await table.owner.get(f"{STORY}/turns/clock") == turn
    assert await table.owner.get(f"{STORY}/turns/1") == turn
    assert (await table.owner.refused(422, "POST", f"{STORY}/turns", {"text": "Who?"}))["detail"] == "Say who speaks."
    problem = await table.owner.refused(422, "POST", f"{STORY}/turns", {"text": "Who?", "speaker": "rouge"})
    assert (problem["type"], "did you mean 'rogue'" in problem["detail"]) == ("urn:talekeeper:unknown-seat", True)
    problem = await table.owner.refused(422, "POST", f"{STORY}/turns", {"text": 3, "speaker": "dm"})
    assert [error["at"] for error in problem["errors"]] == ["body.text"]


async def test_a_player_speaks_for_the_own_seat_and_to_those_it_has_met(table: Table) -> None:
    said = await table.rogue.do("POST", f"{STORY}/turns", {"text": "I hide."})
    assert (said["speaker"], said["audience"], said["number"]) == ("rogue", None, 1)
    assert (await table.owner.get(f"{STORY}/turns/1"))["audience"] == ["bard", "dm", "rogue", "spy"]
    for body in (
        {"speaker": "bard"}, {"speaker": "dm"}, {"speaker": ""}, {"speaker": "nobody"}, {"kind": "note"}, {"kind": "event"}, {"voice": "DM"},
        {"location": "crypt"}, {"when": "noon"}, {"id": "mine"},
    ):  # fmt: skip
        await table.rogue.refused(403, "POST", f"{STORY}/turns", {"text": "Mine.", **body})
    problems = [
        await table.rogue.refused(422, "POST", f"{STORY}/turns", {"text": "Psst.", "kind": "whisper", "heard_by": [seat]})
        for seat in ("bard", "spy", "nobody")
    ]  # fmt: skip
    assert problems[0] == problems[1] == problems[2]
    await table.owner.tell("Hello.", speaker="bard")
    await table.rogue.do("POST", f"{STORY}/turns", {"text": "Psst.", "kind": "whisper", "heard_by": ["bard"]})
    assert (await table.owner.get(f"{STORY}/turns/3"))["audience"] == ["bard", "dm", "rogue"]
    assert (await texts(table.bard))[-1] == "Psst."


async def test_a_token_of_several_seats_says_which_it_means(table: Table) -> None:
    twins = table.client("twins")
    await table.owner.tell("For the rogue.", heard_by=["rogue"])
    assert "one of bard, rogue" in (await twins.refused(422, "GET", f"{STORY}/turns"))["detail"]
    assert await texts(twins, seat="rogue") == ["For the rogue."]
    assert await texts(twins, seat="bard") == []
    await twins.refused(403, "GET", f"{STORY}/turns?seat=spy")
    assert (await twins.do("POST", f"{STORY}/turns?seat=bard", {"text": "La."}))["speaker"] == "bard"
    await twins.refused(403, "POST", f"{STORY}/turns?seat=bard", {"text": "La.", "speaker": "rogue"})


async def test_notes_and_sessions_are_told(table: Table) -> None:
    note = await table.owner.do("POST", f"{STORY}/notes", {"text": "The crown burns liars.", "heard_by": ["rogue"]})
    assert (note["kind"], note["audience"]) == ("note", ["dm", "rogue"])
    assert (await table.owner.do("POST", f"{STORY}/sessions"))["text"] == "A new session begins."
    assert (await table.owner.do("POST", f"{STORY}/sessions", {"title": "Two"}))["text"] == "Two"
    assert await texts(table.rogue, kinds="session") == ["A new session begins.", "Two"]


async def test_an_idempotency_key_makes_a_retried_request_the_same(table: Table) -> None:
    key = {"Idempotency-Key": "7f3c"}
    calls: list[tuple[str, Any]] = [
        (f"{STORY}/turns", {"speaker": "dm", "text": "The bell tolls."}),
        (f"{STORY}/notes", {"text": "Bells are iron."}),
        (f"{STORY}/sessions", {"title": "Two"}),
        (f"{STORY}/seats/rogue/enter", {"location": "tower"}),
        (f"{STORY}/seats/rogue/leave", {}),
        (f"{STORY}/turns/1/reveal", {"to": ["bard"]}),
        (f"{STORY}/regenerate", {"text": "Word of it spreads."}),
        (f"{STORY}/fork", {}),
    ]
    for number, (path, body) in enumerate(calls):
        own = {"Idempotency-Key": f"key-{number}"}
        first = await table.owner.do("POST", path, body, headers=own)
        before = (await table.owner.get(STORY))["version"]
        assert await table.owner.do("POST", path, body, headers=own) == first
        assert (await table.owner.get(STORY))["version"] == before
    first = await table.rogue.do("POST", f"{STORY}/turns", {"text": "Mine."}, headers=key)
    other = await table.owner.do("POST", f"{STORY}/turns", {"text": "Mine.", "speaker": "rogue"}, headers=key)
    assert first["id"] != other["id"], "two tokens may use the same key"
    await table.rogue.refused(409, "POST", f"{STORY}/turns", {"text": "Something else."}, headers=key)
    again = {"text": "Something else.", "speaker": "rogue"}
    assert "use a new one" in (await table.owner.refused(409, "POST", f"{STORY}/turns", again, headers=key))["detail"], (
        "no id made of a key"
    )
    await table.owner.refused(422, "POST", f"{STORY}/turns", {"text": "x", "speaker": "dm", "id": "x"}, headers=key)
    await table.owner.refused(422, "POST", f"{STORY}/turns", {"text": "x", "speaker": "dm"}, headers={"Idempotency-Key": "a b"})


async def test_a_change_can_be_bound_to_what_was_seen(table: Table) -> None:
    await fill(table, 3)
    seen = (await table.owner.get(STORY))["version"]
    await table.owner.tell("One more.")
    for method, path, body in (
        ("POST", f"{STORY}/turns", {"speaker": "dm", "text": "x"}),
        ("PATCH", f"{STORY}/turns/1", {"text": "x"}),
        ("POST", f"{STORY}/rewind", {"to": "1"}),
        ("POST", f"{STORY}/regenerate", {"text": "x"}),
    ):
        assert (await table.owner.refused(412, method, path, body, headers={"If-Match": f'"{seen}"'}))["type"] == "urn:talekeeper:moved-on"
    assert (await texts(table.owner))[-1] == "One more."
    version = (await table.owner.get(STORY))["version"]
    answer = await table.owner("POST", f"{STORY}/turns", {"speaker": "dm", "text": "And on."}, headers={"If-Match": f'"{version}"'})
    assert answer.status_code == 201
    await table.owner.do("PATCH", f"{STORY}/turns/1", {"text": "So."}, headers={"If-Match": answer.headers["story-version"]})
    await table.owner.refused(422, "PUT", f"{STORY}/turns/1/pin", headers={"If-Match": f'"{version}"'})


async def test_a_players_version_is_that_of_the_players_view(table: Table) -> None:
    await table.owner.tell("For both.")
    seen = (await table.rogue.get(STORY))["version"]
    await table.owner.tell("For the bard.", heard_by=["bard"])
    assert (await table.rogue.get(STORY))["version"] == seen
    bound = {"If-Match": f'"{seen}"', "Idempotency-Key": "1"}
    first = await table.rogue.do("POST", f"{STORY}/turns", {"text": "I listen."}, headers=bound)
    assert await table.rogue.do("POST", f"{STORY}/turns", {"text": "I listen."}, headers=bound) == first, "a retry is no conflict"
    problem = await table.rogue.refused(412, "POST", f"{STORY}/turns", {"text": "I wait."}, headers={"If-Match": f'"{seen}"'})
    assert problem["detail"] == "The story is not at the version that you named. Read again, then retry."
    now = (await table.rogue.get(STORY))["version"]
    await table.owner.do("PATCH", f"{STORY}/turns/1", {"text": "For both of you."})
    assert (await table.rogue.get(STORY))["version"] != now


# -- looking -----------------------------------------------------------------------------------------------------------


async def test_turns_are_listed_in_pages_in_both_directions(table: Table) -> None:
    await fill(table, 25)
    for newest in (False, True):
        found: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await table.rogue.get(f"{STORY}/turns", limit=10, newest=newest, **cursor)
            told = [turn["text"] for turn in page["turns"]]
            found = told + found if newest else found + told
            if not page["more"]:
                break
            cursor = {"before": page["turns"][0]["id"]} if newest else {"after": page["turns"][-1]["id"]}
        assert found == [deed(number) for number in range(25)]
    await table.owner.refused(422, "GET", f"{STORY}/turns?limit=201")
    await table.owner.refused(422, "GET", f"{STORY}/turns?limit=0")


async def test_turns_are_filtered(table: Table) -> None:
    await table.owner.tell("In the tower.", location="tower")
    await table.owner.tell("La la.", speaker="bard")
    await table.owner.tell("Psst.", speaker="bard", kind="whisper", heard_by=["rogue"])
    turn = await table.owner.tell("Ahem.", speaker="spy", voice="A cough")
    assert await texts(table.rogue, speaker="bard") == ["La la.", "Psst."]
    assert await texts(table.rogue, kinds="whisper") == ["Psst."]
    assert await texts(table.rogue, location="tower") == ["In the tower."]
    assert await texts(table.rogue, speaker="spy") == []
    assert await texts(table.owner, speaker="spy") == ["Ahem."]
    assert await texts(table.owner, ids=[turn["id"], "1", "nothing", "1"]) == ["In the tower.", "Ahem."]
    await table.owner.do("PUT", f"{STORY}/turns/1/pin")
    assert [one["kind"] for one in (await table.owner.get(f"{STORY}/turns", kinds="pin"))["turns"]] == ["pin"]
    await table.rogue.refused(403, "GET", f"{STORY}/turns?kinds=pin")
    await table.owner.refused(422, "GET", f"{STORY}/turns?kinds=song")


async def test_a_parameter_that_is_not_known_or_there_twice_is_refused(table: Table) -> None:
    assert "There are: after, at, before" in (await table.owner.refused(422, "GET", f"{STORY}/turns?seats=rogue"))["detail"]
    assert "more than once" in (await table.owner.refused(422, "GET", f"{STORY}/turns?seat=rogue&seat=bard"))["detail"]
    assert "There are: none" in (await table.owner.refused(422, "GET", "/me?x=1"))["detail"]
    await table.owner.get(f"{STORY}/turns?kinds=said&kinds=whisper&ids=1&ids=2")


async def test_a_filter_that_leaves_out_much_still_fills_its_page(table: Table) -> None:
    for number in range(30):
        await table.owner.tell(deed(number), speaker="spy", **({"voice": "A stranger"} if number % 5 else {}))
    page = await table.rogue.get(f"{STORY}/turns", speaker="spy", limit=4)
    assert [turn["text"] for turn in page["turns"]] == [deed(number) for number in (0, 5, 10, 15)]
    assert page["more"]
    page = await table.rogue.get(f"{STORY}/turns", speaker="spy", limit=4, newest=True)
    assert [turn["text"] for turn in page["turns"]] == [deed(number) for number in (10, 15, 20, 25)]


async def test_an_answer_that_the_asker_has_is_not_sent_again(table: Table) -> None:
    await table.owner.tell("The bell tolls.")
    first = await table.rogue("GET", f"{STORY}/turns")
    again = await table.rogue("GET", f"{STORY}/turns", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    await table.owner.tell("Again.", heard_by=["rogue"])
    assert (await table.rogue("GET", f"{STORY}/turns", headers={"If-None-Match": first.headers["etag"]})).status_code == 200


# -- memory ------------------------------------------------------------------------------------------------------------


async def test_a_context_comes_with_blocks_sources_and_what_was_left_out(table: Table) -> None:
    await fill(table)
    found = await table.rogue.get(f"{STORY}/context", budget=300, query="brass key")
    story = await table.keeper.story(table.key)
    wanted = await story.context("rogue", budget=300, query="brass key")
    assert found == json.loads(json.dumps(tk.to_json(wanted)))
    assert found["tokens"] <= 300
    assert {block["name"] for block in found["blocks"]} >= {"story", "recent"}
    assert found["left_out"]
    assert (await table.owner.get(f"{STORY}/context", seat="rogue"))["budget"] == 400
    await table.owner.refused(422, "GET", f"{STORY}/context")
    await table.owner.refused(404, "GET", f"{STORY}/context?seat=nobody")
    await table.owner.do("PUT", f"{STORY}/turns/1/pin")
    problem = await table.rogue.refused(422, "GET", f"{STORY}/context?budget=3")
    assert problem["type"] == "urn:talekeeper:budget-too-small"
    assert (await table.rogue("GET", f"{STORY}/context?budget={problem['needed']}")).status_code == 200


async def test_recall_finds_turns(table: Table) -> None:
    await fill(table, 10)
    found = (await table.rogue.get(f"{STORY}/recall", query="mark7x", limit=3))["found"]
    assert [hit["turn"]["number"] for hit in found] == [8]
    assert found[0]["score"] > 0
    await table.rogue.refused(422, "GET", f"{STORY}/recall")
    await table.rogue.refused(422, "GET", f"{STORY}/recall?query={'x' * 4001}")


async def test_memories_are_a_tree_down_to_the_turns(table: Table) -> None:
    told = await fill(table, 200)
    roots = (await table.rogue.get(f"{STORY}/memories", budget=200))["memories"]
    story = await table.keeper.story(table.key)
    assert [root["id"] for root in roots] == [fold.id for fold in await story.folds("rogue", budget=200)]

    async def leaves(memory: dict[str, Any]) -> list[str]:
        if memory["level"] == 0:
            assert memory["below"] is None
            return list(memory["children"])
        whole = await table.rogue.get(f"{STORY}/memories/{memory['id']}", depth=1)
        assert [child["id"] for child in whole["below"]] == memory["children"]
        return [turn for child in whole["below"] for turn in await leaves(child)]

    sources = [turn for root in roots for turn in await leaves(root)]
    assert sources == told[: len(sources)]
    assert len(sources) > 100
    deep = (await table.rogue.get(f"{STORY}/memories", budget=200, depth=2))["memories"][0]
    assert deep["below"][0]["level"] == deep["level"] - 1
    assert set(deep["sentences"][0]["sources"]) <= set(told)
    found = await table.rogue.get(f"{STORY}/turns", ids=deep["sentences"][0]["sources"])
    assert found["turns"]


async def test_a_memory_is_written_over_and_has_a_history(table: Table) -> None:
    await fill(table)
    (first, *_) = (await table.rogue.get(f"{STORY}/memories"))["memories"]
    made = await table.owner.do("PUT", f"{STORY}/memories/{first['id']}", {"text": "Not much happened."})
    assert (made["made_by"], made["text"]) == ("author", "Not much happened.")
    assert (await table.rogue.get(f"{STORY}/memories"))["memories"][0]["id"] == made["id"]
    assert "Not much happened." in (await table.rogue.get(f"{STORY}/context"))["text"]
    told = (await table.rogue.get(f"{STORY}/memories/{made['id']}/history"))["memories"]
    assert [(one["made_by"], one["text"]) for one in told] == [("extractive", first["text"]), ("author", "Not much happened.")]
    problem = await table.owner.refused(404, "PUT", f"{STORY}/memories/nothing", {"text": "x"})
    assert "List the memories" in problem["detail"]
    await table.owner.do("POST", f"{STORY}/rewind", {"to": "60"})
    assert (await table.rogue.get(f"{STORY}/memories"))["memories"][0] == first


async def test_marks_are_listed_by_topic(table: Table) -> None:
    story = await table.keeper.story(table.key)
    turn = await story.append("dm", "The goblin falls.", heard_by=["rogue"])
    await story.mark("moment", {"type": "combat_victory", "summary": "Beat the goblin."}, of=[turn], rank=0.9)
    (mark,) = (await table.rogue.get(f"{STORY}/marks", topic="moment"))["marks"]
    assert (mark["data"]["summary"], mark["sources"], mark["turn"], mark["rank"]) == ("Beat the goblin.", [turn.id], 1, 0.9)
    assert await table.rogue.get(f"{STORY}/topics") == {"topics": ["moment"]}
    assert await table.bard.get(f"{STORY}/topics") == {"topics": []}
    assert (await table.bard.get(f"{STORY}/marks", topic="moment"))["marks"] == []


async def test_a_brief_is_for_the_dm_to_hand_out(table: Table) -> None:
    await fill(table, 10)
    assert "mark3x" in (await table.owner.get(f"{STORY}/brief", seat="spy", budget=2000))["text"]
    await table.owner.refused(422, "GET", f"{STORY}/brief")
    await table.bard.refused(403, "GET", f"{STORY}/brief")


async def test_every_panel_shows_an_earlier_moment_and_changes_nothing(table: Table) -> None:
    told = await fill(table, 50)
    panels = ["/turns?limit=200", "/context?budget=300", "/recall?query=ferryman", "/memories?budget=150", "/seats", ""]
    then = {panel: await table.rogue.get(STORY + panel) for panel in panels}
    await table.owner.tell("Come here.", heard_by=["rogue"])
    await table.owner.do("PATCH", f"{STORY}/turns/{told[3]}", {"text": "Edited later."})
    await table.owner.do("POST", f"{STORY}/seats/rogue/enter", {"location": "mill"})
    now = {panel: await table.rogue.get(STORY + panel) for panel in panels}
    for _ in range(2):
        for panel in panels:
            assert await table.rogue.get(f"{STORY}{panel}{'&' if '?' in panel else '?'}at={told[-1]}") == then[panel], panel
    assert {panel: await table.rogue.get(STORY + panel) for panel in panels} == now
    assert now != then
    assert (await table.owner.get(f"{STORY}/turns", at="0"))["turns"] == []
    assert len((await table.owner.get(f"{STORY}/turns", at="7"))["turns"]) == 7
    await table.owner.refused(404, "GET", f"{STORY}/turns?at=999")


async def test_the_past_of_a_story_that_was_made_anew_is_that_of_the_new_one(table: Table) -> None:
    await fill(table, 5)
    assert len(await texts(table.owner, at="3")) == 3
    await table.owner.do("DELETE", STORY)
    await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
    for number in range(5):
        await table.owner.tell(f"Anew {number}.")
    assert await texts(table.owner, at="3") == ["Anew 0.", "Anew 1.", "Anew 2."]


# -- the author's hand, and time ---------------------------------------------------------------------------------------


async def test_turns_are_edited_pinned_revealed_and_forgotten(table: Table) -> None:
    turn = await table.owner.tell("The key is brass.", heard_by=["rogue"])
    where = f"{STORY}/turns/{turn['id']}"
    edited = await table.owner.do("PATCH", where, {"text": "The key is iron."})
    assert (edited["text"], edited["revision"]) == ("The key is iron.", 1)
    assert (await table.owner.do("PATCH", where, {"text": "The key is iron."}))["revision"] == 1, "nothing to change"
    for _ in range(2):
        assert (await table.owner.do("PUT", f"{where}/pin"))["pinned"]
    assert (await table.rogue.get(where))["pinned"]
    for _ in range(2):
        assert not (await table.owner.do("DELETE", f"{where}/pin"))["pinned"]
    assert (await table.owner.get(STORY))["version"] == "1.4"
    told = await table.owner.do("POST", f"{where}/reveal", {"to": ["bard"]})
    assert (told["text"], told["cites"], told["audience"]) == ("DM: The key is iron.", [turn["id"]], ["bard", "dm"])
    assert (await table.owner("DELETE", where)).status_code == 204
    await table.owner.refused(404, "GET", where)
    await table.owner.refused(404, "DELETE", where)
    assert await texts(table.rogue) == []


async def test_pins_are_listed_for_those_who_heard_them_and_as_they_were(table: Table) -> None:
    first, second = await table.owner.tell("The bell tolls."), await table.owner.tell("A key of bone.", heard_by=["rogue"])
    for turn in (second, first):
        await table.owner.do("PUT", f"{STORY}/turns/{turn['id']}/pin")
    last = await table.owner.tell("Night falls.")
    await table.owner.do("DELETE", f"{STORY}/turns/{first['id']}/pin")

    async def pinned(client: Client, **params: Any) -> list[str]:
        return [turn["text"] for turn in (await client.get(f"{STORY}/pins", **params))["turns"] if turn["pinned"]]

    assert (await pinned(table.owner), await pinned(table.rogue), await pinned(table.bard)) == (["A key of bone."], ["A key of bone."], [])
    assert await pinned(table.owner, at=last["id"]) == ["The bell tolls.", "A key of bone."]
    assert await pinned(table.bard, at=last["id"]) == ["The bell tolls."]
    assert await pinned(table.owner, at=first["id"]) == []


async def test_a_story_counts_what_can_be_heard_and_not_what_the_author_did(table: Table) -> None:
    turn = await table.owner.tell("The bell tolls.")
    await table.owner.tell("A key of bone.", heard_by=["rogue"])
    await table.owner.do("PATCH", f"{STORY}/turns/{turn['id']}", {"text": "The great bell tolls."})
    await table.owner.do("PUT", f"{STORY}/turns/{turn['id']}/pin")
    counts = [(await client.get(STORY))["turns"] for client in (table.owner, table.rogue, table.bard)]
    assert counts == [2, 2, 1]
    assert (await table.owner.get(STORY, at=turn["id"]))["turns"] == 1
    assert (await table.owner.tell("Night falls."))["number"] == 5, "edits and pins have numbers, too"


async def test_the_newest_turn_is_told_again(table: Table) -> None:
    await table.owner.tell("Morning comes.")
    again = await table.owner.do("POST", f"{STORY}/regenerate", {"text": "Morning comes, late."})
    assert [turn["text"] for turn in (await table.owner.get(f"{STORY}/swipes"))["turns"]] == ["Morning comes.", "Morning comes, late."]
    assert (await texts(table.rogue), again["number"]) == (["Morning comes, late."], 1)


async def test_a_story_goes_back_forks_and_goes_over_to_another_line(table: Table) -> None:
    told = await fill(table, 6)
    branches = (await table.owner.do("POST", f"{STORY}/rewind", {"to": told[2]}))["branches"]
    assert [(branch["name"], branch["head"], branch["current"]) for branch in branches] == [("main~1", 6, False), ("main", 3, True)]
    await table.rogue.do("POST", f"{STORY}/turns", {"text": "Another way."})
    assert (await texts(table.rogue))[-1] == "Another way."
    await table.owner.do("POST", f"{STORY}/switch", {"to": "main~1"})
    assert await texts(table.rogue) == [deed(number) for number in range(6)]
    fork = await table.owner.do("POST", f"{STORY}/fork", {"at": told[3], "name": "what-if"})
    assert (fork["forked_at"], fork["name"]) == (4, "what-if")
    await table.owner.do("POST", f"{STORY}/turns?branch=what-if", {"speaker": "dm", "text": "What if?"})
    assert (await texts(table.owner, branch="what-if"))[-1] == "What if?"
    assert (await texts(table.owner))[-1] == deed(5)
    await table.owner.refused(409, "POST", f"{STORY}/fork", {"name": "what-if"})
    await table.owner.refused(404, "GET", f"{STORY}/turns?branch=nothing")
    await table.owner.refused(404, "POST", f"{STORY}/switch", {"to": "nothing"})
    await table.owner.refused(404, "POST", f"{STORY}/rewind", {"to": "nothing"})
    await table.owner.do("POST", f"{STORY}/rewind", {"to": "0"})
    assert await texts(table.owner) == []


async def test_a_timeline_goes_from_the_first_turn_to_the_newest_and_shows_what_stands_out(table: Table) -> None:
    told = await fill(table, 30)
    await table.owner.tell("For one ear.", kind="whisper", heard_by=["bard"])
    await table.owner.do("POST", f"{STORY}/sessions", {"title": "Two"})
    await fill(table, 30)
    whole = await table.owner.get(f"{STORY}/timeline")
    assert (whole["turns"], [point["number"] for point in whole["points"]]) == (62, list(range(1, 63)))
    thin = (await table.owner.get(f"{STORY}/timeline", points=12))["points"]
    assert (len(thin), thin[-1]["number"]) == (12, 62)
    assert [point["kind"] for point in thin].count("session") == 1
    assert [point["number"] for point in thin] == sorted(point["number"] for point in thin)
    heard = await table.rogue.get(f"{STORY}/timeline")
    assert (heard["turns"], heard["points"][0]["id"]) == (61, told[0])
    assert "whisper" not in {point["kind"] for point in heard["points"]}
    assert await table.owner.get(f"{STORY}/timeline", seat="rogue") == heard


# -- care --------------------------------------------------------------------------------------------------------------


async def test_health_and_stats(table: Table) -> None:
    await fill(table, 3)
    await table.owner.tell("For the bard.", heard_by=["bard"])
    assert (await table.owner.get(f"{STORY}/health"))["state"] == "healthy"
    stats = await table.owner.get(f"{STORY}/stats")
    assert (stats["turns"], stats["seats"]["rogue"]["turns"], stats["channels"]) == (4, 3, 2)
    mine = await table.rogue.get(f"{STORY}/stats")
    assert {name: value for name, value in mine.items() if value is not None} == stats["seats"]["rogue"]


async def test_a_story_is_exported_and_made_again(table: Table) -> None:
    told = await fill(table, 40)
    await table.owner.do("PATCH", f"{STORY}/turns/{told[1]}", {"text": "Edited."})
    await table.owner.do("POST", f"{STORY}/rewind", {"to": told[30]})
    answer = await table.owner("GET", f"{STORY}/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.text.splitlines()[-1])["type"] == "end"
    problem = await table.owner.refused(409, "POST", "/import", content=answer.content)
    assert problem["type"] == "urn:talekeeper:story-exists"
    made = await table.owner("POST", "/import?story=ben.copy~201", content=answer.content)
    assert made.json() == {"id": "ben.copy~201", "user": "ben", "name": "copy 1"}
    copy = "/stories/ben.copy~201"
    for path in ("/turns?limit=200", "/context?seat=rogue&budget=300", "/branches", "/memories?seat=bard&budget=150"):
        assert await table.owner.get(copy + path) == await table.owner.get(STORY + path)
    await table.owner.do("DELETE", STORY)
    assert (await table.owner.do("POST", "/import", content=answer.content))["id"] == "ana.ash-crown"


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"not json", b"\xff\xff", b"[" * 2000, b'{"type":"story","key":{"user_id":1}}'])
async def test_what_is_no_exported_story_is_not_imported(table: Table, content: bytes) -> None:
    for path in ("/import", "/import?story=ben.new"):
        await table.owner.refused(422, "POST", path, content=content)
    assert len((await table.owner.get("/stories"))["stories"]) == 1


async def test_a_damaged_export_is_not_imported_and_says_which_line(table: Table) -> None:
    await fill(table, 20)
    lines = (await table.owner("GET", f"{STORY}/export")).text.splitlines(keepends=True)
    for damaged in (lines[:-1], lines[:5] + lines[6:], [*lines, lines[-1]], [line.replace('"seq":7', '"seq":8') for line in lines]):
        problem = await table.owner.refused(422, "POST", "/import?story=ben.new", content="".join(damaged))
        assert problem["detail"].startswith("Line ")
    assert len((await table.owner.get("/stories"))["stories"]) == 1


async def test_one_server_without_tokens_is_the_dm_of_one_tenant() -> None:
    async with served(":memory:", guarded=False) as table:
        stranger = table.client(None)
        await stranger.do("POST", "/stories", {"name": "x", "seats": [{"id": "dm", "role": "dm"}]})
        await table.keeper.story(tk.MemoryKey("umbra", "ana", "y"), seats=[tk.Seat("dm", role="dm")])
        assert [row["id"] for row in (await stranger.get("/stories"))["stories"]] == ["local.x"]
        assert (await table.keeper.keys("acme"))[0].user_id == "local"
