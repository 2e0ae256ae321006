"""I3, over HTTP: whatever happens that a seat did not hear, every answer that its token can get stays the same to the byte.

The matrix asks for every GET route of the API, with parameters that work and parameters that do not, as a player. Then something happens
that the player's seat does not hear of, and it asks again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.server.conftest import SEATS, STORY, Client, Table, served
from tests.stories import deed

from talekeeper.server.limits import Limits
from talekeeper.testing.models import MoodyModel

QUICK = Limits(rate=1e6, burst=1_000_000, stream_seconds=0.02)


async def talk(table: Table, count: int = 40) -> None:
    """A story in which the rogue hears some things alone, some with the bard, and some not at all."""
    owner = table.owner
    await owner.do("POST", f"{STORY}/notes", {"text": "The Ash Crown burns liars.", "mentions": ["Ash Crown"]})
    await owner.do("POST", f"{STORY}/seats/rogue/enter", {"location": "tavern"})
    for number in range(count):
        hearers = (["rogue"], ["rogue", "bard"], ["bard", "spy"])[number % 3]
        await owner.tell(deed(number), heard_by=hearers, mentions=["brass key", "Captain Voss", f"label {number}"])
    await owner.tell("Psst.", speaker="spy", voice="A stranger", heard_by=["rogue"], kind="whisper")
    await owner.tell("I know.", speaker="bard", heard_by=["rogue"])
    secret = await owner.tell("The duke is dead.", heard_by=["bard"])
    await owner.do("POST", f"{STORY}/turns/{secret['id']}/reveal", {"to": ["rogue"], "text": "Word has it that the duke is dead."})
    story = await table.keeper.story(table.key)
    heard = await story.turns(seat="rogue")
    await story.mark("moment", {"type": "discovery", "summary": "The key was found."}, of=[heard[4]], rank=0.8)
    await owner.do("PATCH", f"{STORY}/turns/{heard[5].id}", {"text": "It was otherwise."})
    await owner.do("PUT", f"{STORY}/turns/{heard[6].id}/pin")


class Matrix:
    """Everything that can be asked for, as the rogue."""

    def __init__(self, table: Table, heard: list[str], unheard: list[str], folds: list[str], foreign: list[str]) -> None:
        self.table = table
        self.heard, self.unheard, self.folds, self.foreign = heard, unheard, folds, foreign

    @classmethod
    async def of(cls, table: Table) -> Matrix:
        story = await table.keeper.story(table.key)
        turns = await story.turns()
        heard = [turn.id for turn in turns if "rogue" in turn.audience]
        unheard = [turn.id for turn in turns if "rogue" not in turn.audience]
        folds = [fold.id for fold in await story.folds("rogue", budget=200)]
        larger = [found for fold in folds if (found := await story.fold(fold)).level]
        below = [child for fold in larger for child in fold.children]
        foreign = [fold.id for seat in ("bard", "spy", "dm") for fold in await story.folds(seat, budget=128)]
        return cls(table, heard, unheard, [*folds, *below], [fold for fold in foreign if fold not in folds])

    def requests(self) -> dict[str, list[str]]:
        """For each GET route what to ask for."""
        early, late, secret = self.heard[3], self.heard[-3], self.unheard[0]
        ats = ["", f"&at={early}", f"&at={late}", "&at=0", f"&at={secret}", "&at=nothing"]
        budgets = [f"?budget={budget}{at}" for budget in (128, 200, 400, 4000) for at in ats]
        turns = [*self.heard[:6], *self.heard[-6:], *self.unheard[:3], *self.unheard[-3:], "nothing", "1", "t-0123456789abcdef"]
        pages = [
            "", "?limit=3", "?limit=3&newest=true", f"?limit=5&after={early}", f"?limit=5&newest=true&before={late}", "?kinds=whisper",
            "?kinds=edit", "?speaker=dm", "?speaker=spy", "?speaker=bard", "?speaker=nobody", "?location=tavern", "?location=crypt",
            f"?after={secret}", "?after=nothing", "?seat=bard", "?seat=nobody", "?seat=rogue", "?branch=main~1", "?branch=nothing",
            "?" + "&".join(f"ids={turn}" for turn in turns), *[f"?limit=200{at}" for at in ats],
        ]  # fmt: skip
        folds = [*self.folds[:5], *self.foreign[:5], "nothing", "0" * 24]
        story = "/api/v1/stories/{story}"
        return {
            "/api/v1/me": [""],
            "/api/v1/scenarios": [""],
            "/api/v1/stories": ["", "?limit=1", "?after=ana.ash-crown"],
            story: [f"?{at[1:]}" if at else "" for at in ats],
            f"{story}/seats": [f"?{at[1:]}" if at else "" for at in ats],
            f"{story}/turns": pages,
            f"{story}/turns/{{turn}}": [f"/{turn}" for turn in turns],
            f"{story}/swipes": [""],
            f"{story}/context": ["", *budgets, "?query=brass%20key", f"?query=Captain%20Voss&budget=300&at={late}"],
            f"{story}/recall": [f"?query={query}{at}" for query in ("brass%20key", "ferryman", "duke", "zebra", "") for at in ats],
            f"{story}/brief": ["", "?seat=rogue"],
            f"{story}/memories": ["", *budgets, "?budget=150&depth=2"],
            f"{story}/memories/{{memory}}": [f"/{fold}?depth={depth}{at}" for fold in folds for depth in (0, 3) for at in ats[:3]],
            f"{story}/memories/{{memory}}/history": [f"/{fold}" for fold in folds],
            f"{story}/topics": ["", "?prefix=mo", f"?at={early}"],
            f"{story}/marks": ["?topic=moment", "?topic=nothing", "?topic=secret", f"?topic=moment&at={late}"],
            f"{story}/pins": ["", f"?at={early}", "?seat=bard"],
            f"{story}/branches": [""],
            f"{story}/timeline": ["", "?points=2", "?points=7", "?points=1000", "?seat=bard", "?branch=main~1"],
            f"{story}/events": ["?after=0", "", f"?after={late}", f"?after={secret}", "?after=nothing", "?seat=bard"],
            f"{story}/health": [""],
            f"{story}/stats": ["", "?seat=rogue", "?seat=bard"],
            f"{story}/export": [""],
            f"{story}/play": ["", f"?at={early}"],
            f"{story}/scene": [""],
            f"{story}/ledger": [""],
            f"{story}/secrets": [""],
        }  # fmt: skip

    async def answers(self, client: Client, every: int = 1) -> dict[str, tuple[int, dict[str, str], str]]:
        """Every answer: status, headers and body. Or of each route every so many."""
        found = {}
        for route, tails in self.requests().items():
            for tail in tails[::every]:
                path = route.replace("{story}", "ana.ash-crown").replace("/api/v1", "", 1)
                for name in ("/{turn}", "/{memory}"):
                    path = path.replace(name, tail.partition("?")[0], 1) if name in path else path
                path += ("?" + tail.partition("?")[2] if "?" in tail else "") if "{turn}" in route or "{memory}" in route else tail
                answer = await client("GET", path)
                found[path] = (answer.status_code, dict(answer.headers), answer.text)
        return found


async def spread(table: Table) -> list[Callable[[], Awaitable[Any]]]:
    """Things to happen that the rogue does not hear of."""
    owner = table.owner
    story = await table.keeper.story(table.key)
    theirs = [turn.id for turn in await story.turns() if "rogue" not in turn.audience]

    async def unheard(text: str, **more: Any) -> Any:
        return await owner.tell(text, **{"heard_by": ["bard"], **more})

    async def overridden() -> None:
        mine = {turn.id for turn in await story.turns(seat="rogue")}
        for fold in await story.folds("bard", budget=128):
            while fold.level and set(await story.sources(fold)) & mine:
                fold = await story.fold(fold.children[-1])
            if not set(await story.sources(fold)) & mine:
                await owner.do("PUT", f"{STORY}/memories/{fold.id}", {"text": "Nobody else knows."})
                return
        raise AssertionError("nothing to write over")

    async def flood() -> None:
        for number in range(30):
            await unheard(deed(number), mentions=["brass key"], location="crypt")

    async def rewound() -> None:
        last = await unheard("This stays.")
        await unheard("This will be undone.")
        await owner.do("POST", f"{STORY}/rewind", {"to": last["id"]})

    async def redone() -> None:
        last = await unheard("So far.")
        await unheard("One way.")
        await owner.do("POST", f"{STORY}/rewind", {"to": last["id"]})
        await unheard("Another way.")
        branches = (await owner.get(f"{STORY}/branches"))["branches"]
        left = [branch["name"] for branch in branches if branch["name"].startswith("main~")][-1]
        await owner.do("POST", f"{STORY}/switch", {"to": left})

    async def retold() -> None:
        await unheard("The ferryman lies.")
        await owner.do("POST", f"{STORY}/regenerate", {"text": "The ferryman tells the truth."})

    async def marked() -> None:
        turn = await story.append("dm", "Only the bard sees the crown.", heard_by=["bard"])
        await story.mark("moment", {"type": "discovery", "summary": "The crown was seen."}, of=[turn], rank=1.0)
        await story.mark("secret", {"x": 1}, of=[turn])

    async def others() -> None:
        await owner.do("POST", "/stories", {"user": "ana", "name": "another", "seats": [{"id": "dm", "role": "dm"}, {"id": "spy"}]})
        await owner.do("POST", "/stories/ana.another/turns", {"speaker": "spy", "text": "The brass key is mine."})
        await table.client("other").do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": [{"id": "rogue"}]})
        await table.client("other").tell("The brass key is gone.", speaker="rogue")

    return [
        lambda: unheard("The brass key opens the crypt."),
        lambda: owner.do("POST", f"{STORY}/notes", {"text": "Captain Voss is a spy.", "heard_by": ["spy"]}),
        lambda: unheard("Nobody hears me think.", speaker="bard", kind="thought"),
        flood,
        lambda: owner.do("PATCH", f"{STORY}/turns/{theirs[0]}", {"text": "The brass key was never there."}),
        lambda: owner.do("PUT", f"{STORY}/turns/{theirs[1]}/pin"),
        lambda: owner.do("DELETE", f"{STORY}/turns/{theirs[2]}"),
        lambda: owner.do("POST", f"{STORY}/turns/{theirs[3]}/reveal", {"to": ["spy"]}),
        overridden,
        lambda: owner.do("POST", f"{STORY}/seats/spy/enter", {"location": "crypt"}),
        lambda: owner.do("POST", f"{STORY}/seats/spy/leave"),
        rewound,
        redone,
        retold,
        marked,
        lambda: owner.do("POST", f"{STORY}/fork", {"name": "what-if"}),
        lambda: owner.do("POST", f"{STORY}/turns?branch=what-if", {"speaker": "dm", "text": "What if the rogue had known?"}),
        lambda: owner.do("PUT", f"{STORY}/seats/stranger", {"role": "npc", "name": "A stranger"}),
        lambda: owner.do("PUT", f"{STORY}/seats/bard", {"name": "Lark", "token_limit": 200, "aliases": ["the Loud"]}),
        others,
        lambda: table.bard.do("POST", f"{STORY}/turns", {"text": "I think I am alone.", "kind": "thought"}),
    ]  # fmt: skip


@pytest.fixture
async def told(target: str) -> AsyncIterator[Table]:
    async with served(target, limits=QUICK) as table:
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        await talk(table)
        yield table


async def test_nothing_that_a_seat_did_not_hear_changes_any_answer_by_a_byte(told: Table) -> None:
    matrix = await Matrix.of(told)
    before = await matrix.answers(told.rogue)
    assert {status for status, _, _ in before.values()} == {200, 403, 404, 422}
    for number, happen in enumerate(await spread(told)):
        await happen()
        for path, answer in (await matrix.answers(told.rogue, every=7)).items():
            assert before[path] == answer, f"after change {number}, {path} tells of it"
    assert await matrix.answers(told.rogue) == before


async def test_nothing_does_where_a_model_makes_memories(target: str) -> None:
    async with served(target, limits=QUICK, summarizer=MoodyModel()) as table:
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        await talk(table, 60)
        story = await table.keeper.story(table.key)
        await story.settle()
        matrix = await Matrix.of(table)
        before = await matrix.answers(table.rogue)
        assert '"made_by":"model"' in str(before)
        for number in range(60):
            await table.owner.tell(deed(number), heard_by=["bard"])
        await story.settle()
        after = await matrix.answers(table.rogue)
        assert {path: (before[path], after[path]) for path in before if before[path] != after[path]} == {}


async def test_two_stories_that_a_seat_heard_alike_are_alike_to_it() -> None:
    seen = []
    for extra in (0, 7):
        async with served(":memory:", limits=QUICK) as table:
            seats = SEATS if not extra else [SEATS[0], {"id": "ghost", "role": "npc"}, *SEATS[1:]]
            await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": seats})
            for number in range(45):
                for more in range(extra if number % 4 == 0 else 0):
                    await table.owner.tell(deed(number * 10 + more), heard_by=["bard", "ghost"], location="crypt", mentions=["brass key"])
                await table.owner.tell(deed(number), heard_by=["rogue"] if number % 3 else ["rogue", "bard"])
            matrix = await Matrix.of(table)
            matrix.unheard, matrix.foreign = [f"nothing-{number}" for number in range(6)], [f"nothing-{number}" for number in range(5)]
            answers = await matrix.answers(table.rogue)
            seen.append([(status, nameless(text)) for status, _, text in answers.values()])
    assert len(seen[0]) > 100
    for one, other in zip(*seen, strict=True):
        assert one == other


def nameless(text: str) -> str:
    """The text with every id replaced by the order in which it first appears."""
    order: dict[str, int] = {}
    return re.sub(r"\b(t-[0-9a-f]{16}|k-[0-9a-f]{32}|[0-9a-f]{24,32})\b", lambda found: f"id{order.setdefault(found[0], len(order))}", text)


async def test_the_matrix_asks_for_every_route_there_is(told: Table) -> None:
    paths = (await told.owner.get("/openapi.json"))["paths"]
    wanted = {path for path, methods in paths.items() if "get" in methods and path.startswith("/api/")}
    assert set((await Matrix.of(told)).requests()) == wanted


async def test_what_is_not_heard_and_what_is_not_there_cannot_be_told_apart(told: Table) -> None:
    matrix = await Matrix.of(told)

    async def same(paths: list[str]) -> None:
        answers = [await told.rogue("GET", path) for path in paths]
        assert len({(answer.status_code, str(sorted(answer.headers.items())), answer.text) for answer in answers}) == 1, paths

    await same([f"{STORY}/turns/{turn}" for turn in (*matrix.unheard, "nothing", "t-0123456789abcdef", "7")])
    await same([f"{STORY}/memories/{fold}" for fold in (*matrix.foreign, "nothing", "0" * 24)])
    await same([f"{STORY}/context?at={turn}" for turn in (*matrix.unheard, "nothing")])
    await same([f"{STORY}/turns?seat={seat}" for seat in ("bard", "spy", "dm", "nobody")])
    await same([f"{STORY}/turns?branch={branch}" for branch in ("main~1", "nothing")])
    await same([f"/stories/{story}/turns" for story in ("ana.another", "ana.nothing", "umbra.x", "a~2fb.c")])


async def test_the_dm_sees_through_a_seats_eyes_what_the_player_sees(told: Table) -> None:
    matrix = await Matrix.of(told)
    for path, (status, headers, text) in (await matrix.answers(told.rogue)).items():
        if (
            status != 200
            or path in ("/me", "/scenarios", "/stories", "/stories?limit=1", "/stories?after=ana.ash-crown")
            or "seat=" in path
        ):
            continue
        answer = await told.owner("GET", path + ("&" if "?" in path else "?") + "seat=rogue")
        assert (answer.status_code, dict(answer.headers), answer.text) == (200, headers, text), path


async def test_a_seats_view_shows_voices_and_not_who_lent_them(told: Table) -> None:
    turns = (await told.rogue.get(f"{STORY}/turns", limit=200))["turns"]
    stranger = next(turn for turn in turns if turn["text"] == "Psst.")
    assert (stranger["speaker"], stranger["voice"], stranger["kind"]) == ("", "A stranger", "whisper")
    assert next(turn for turn in turns if turn["text"] == "I know.")["speaker"] == "bard"
    assert {turn["audience"] for turn in turns} == {None}
    assert [turn["number"] for turn in turns] == list(range(1, len(turns) + 1))
    assert all(not turn["cites"] for turn in turns)
    assert next(turn for turn in turns if turn["text"] == deed(0))["mentions"] == ["Captain Voss"]
    assert {seat["id"] for seat in await told.rogue.get(f"{STORY}/seats")} == {"rogue", "dm", "bard"}
    assert (await told.rogue.get(f"{STORY}/turns", speaker="spy"))["turns"] == []
    everything = (await told.owner.get(f"{STORY}/turns", limit=200))["turns"]
    assert next(turn for turn in everything if turn["text"] == "Psst.")["speaker"] == "spy"


REFUSED: list[tuple[str, str, Any]] = [
    ("POST", "/stories", {"name": "mine", "seats": [{"id": "rogue"}]}),
    ("DELETE", STORY, None),
    ("PUT", f"{STORY}/seats/rogue", {"token_limit": 9}),
    ("POST", f"{STORY}/seats/rogue/enter", {"location": "crypt"}),
    ("POST", f"{STORY}/seats/rogue/leave", {}),
    ("POST", f"{STORY}/notes", {"text": "I am the king."}),
    ("POST", f"{STORY}/sessions", {}),
    ("POST", f"{STORY}/regenerate", {"text": "x"}),
    ("PATCH", f"{STORY}/turns/TURN", {"text": "x"}),
    ("DELETE", f"{STORY}/turns/TURN", None),
    ("PUT", f"{STORY}/turns/TURN/pin", None),
    ("DELETE", f"{STORY}/turns/TURN/pin", None),
    ("POST", f"{STORY}/turns/TURN/reveal", {"to": ["bard"]}),
    ("PUT", f"{STORY}/memories/FOLD", {"text": "x"}),
    ("POST", f"{STORY}/rewind", {"to": "0"}),
    ("POST", f"{STORY}/switch", {"to": "main~1"}),
    ("POST", f"{STORY}/fork", {}),
    ("POST", "/import", None),
    ("POST", "/games", {"name": "mine", "scenario": "tidelamp", "party": ["nell"]}),
    ("POST", f"{STORY}/step", {}),
    ("POST", f"{STORY}/auto", {"on": True}),
    ("POST", f"{STORY}/finish", None),
    ("POST", f"{STORY}/undo", {}),
    ("PUT", f"{STORY}/people", {"humans": []}),
    ("POST", f"{STORY}/whisper", {"speaker": "dm", "to": ["rogue"], "text": "x"}),
]


async def test_what_is_for_the_dm_is_refused_to_players_whatever_it_is_done_to(told: Table) -> None:
    matrix = await Matrix.of(told)
    version = (await told.owner.get(STORY))["version"]
    for method, path, body in REFUSED:
        answers = [
            await told.rogue.refused(403, method, path.replace("TURN", turn).replace("FOLD", fold), body)
            for turn, fold in ((matrix.heard[0], matrix.folds[0]), (matrix.unheard[0], matrix.foreign[0]), ("nothing", "nothing"))
        ]
        assert answers[0] == answers[1] == answers[2]
    assert (await told.owner.get(STORY))["version"] == version


async def test_every_change_of_the_api_is_refused_to_players_or_is_a_turn_of_their_own(told: Table) -> None:
    paths = (await told.owner.get("/openapi.json"))["paths"]
    changes = {(method.upper(), path) for path, methods in paths.items() for method in methods if method != "get"}
    names = {"TURN": "{turn}", "FOLD": "{memory}", "ana.ash-crown": "{story}", "seats/rogue": "seats/{seat_id}"}
    refused = {(method, re.sub("|".join(names), lambda found: names[found[0]], f"/api/v1{path}")) for method, path, _ in REFUSED}
    assert changes - refused == {("POST", "/api/v1/stories/{story}/turns"), ("POST", "/api/v1/stories/{story}/act")}


GAME = {"user": "ana", "name": "lamp", "scenario": "tidelamp", "party": ["nell", "osric"], "humans": ["nell"], "seed": 7}
LAMP = "/stories/ana.lamp"


async def test_a_game_tells_a_seat_nothing_of_what_it_did_not_hear(target: str) -> None:
    async with served(target, limits=QUICK) as table:
        owner, nell = table.owner, table.client("nell")
        await owner.do("POST", "/games", GAME)
        await owner.do("POST", f"{LAMP}/step")
        while (await owner.get(f"{LAMP}/play"))["running"]:
            await asyncio.sleep(0.02)

        async def known() -> list[tuple[int, str]]:
            paths = ("play", "scene", "ledger", "turns?limit=200", "context", "events?after=0", "seats", "stats", "topics", "", "secrets")
            answers = [await nell("GET", f"{LAMP}/{path}".rstrip("/")) for path in paths]
            return [(answer.status_code, answer.text) for answer in answers]

        before = await known()
        assert [status for status, _ in before] == [200] * 10 + [403]
        assert (await nell.get(f"{LAMP}/play"))["waiting"] == "nell"
        for text in ("The steward lies.", "Keep the lamp from Nell."):
            await owner.do("POST", f"{LAMP}/whisper", {"speaker": "dm", "to": ["osric"], "text": text})
            assert await known() == before
        await nell.refused(403, "GET", f"{LAMP}/play?seat=osric")
        await nell.do("POST", f"{LAMP}/act", {"text": "I look around."})


# -- tenants -----------------------------------------------------------------------------------------------------------


async def test_two_tenants_never_meet(told: Table) -> None:
    stranger = told.client("other")
    assert await stranger.get("/stories") == {"stories": []}
    for method, path, body in (
        ("GET", STORY, None),
        ("GET", f"{STORY}/export", None),
        ("DELETE", STORY, None),
        ("POST", f"{STORY}/rewind", {"to": "0"}),
    ):
        assert (await stranger.refused(404, method, path, body))["type"] == "urn:talekeeper:unknown-story"
    await stranger.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": [{"id": "rogue"}, {"id": "thief"}]})
    await stranger.tell("Nothing here.", speaker="thief")
    assert len((await stranger.get(f"{STORY}/turns"))["turns"]) == 1
    assert {seat["id"] for seat in (await stranger.get(STORY))["seats"]} == {"rogue", "thief"}
    lines = (await told.owner("GET", f"{STORY}/export")).text
    made = await stranger.do("POST", "/import?story=ana.copy", content=lines)
    assert made["id"] == "ana.copy"
    assert {key.tenant_id for key in await told.keeper.keys() if key.session_id == "copy"} == {"umbra"}
    assert "ana.copy" not in str(await told.owner.get("/stories"))
    await stranger.do("DELETE", STORY)
    assert (await told.owner.get(STORY))["turns"] > 40


async def test_a_dm_of_some_stories_is_a_stranger_to_the_others(told: Table) -> None:
    guest = told.client("guest")
    await guest.refused(404, "GET", STORY)
    await guest.refused(403, "POST", "/stories", {"user": "ana", "name": "other-story", "seats": [{"id": "dm", "role": "dm"}]})
    await guest.do("POST", "/stories", {"user": "ana", "name": "guest-story", "seats": [{"id": "dm", "role": "dm"}]})
    assert [row["id"] for row in (await guest.get("/stories"))["stories"]] == ["ana.guest-story"]
    lines = (await told.owner("GET", f"{STORY}/export")).text
    await guest.refused(403, "POST", "/import", content=lines)
    await guest.refused(409, "POST", "/import?story=ana.guest-story", content=lines)


async def test_players_see_the_stories_that_they_sit_in(told: Table) -> None:
    await told.owner.do(
        "POST", "/stories", {"user": "ana", "name": "second", "seats": [{"id": "dm", "role": "dm"}, {"id": "bard"}, {"id": "rogue"}]}
    )
    await told.owner.do("POST", "/stories", {"user": "ben", "name": "third", "seats": [{"id": "dm", "role": "dm"}]})
    assert [row["id"] for row in (await told.bard.get("/stories"))["stories"]] == ["ana.ash-crown", "ana.second"]
    assert [row["id"] for row in (await told.rogue.get("/stories"))["stories"]] == ["ana.ash-crown"]
    await told.rogue.refused(404, "GET", "/stories/ana.second")
    await told.bard.refused(404, "GET", "/stories/ben.third")
