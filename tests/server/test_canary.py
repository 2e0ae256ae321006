"""A secret with a word in it that is nowhere else, put wherever a secret can be; then every route of the API, in every way that can be
thought of, as a player who is not to know it. The same questions by the dm do find it, or the test would prove nothing."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from tests.server.conftest import TOKENS, Client, Table, served
from tests.server.test_play import GAME, LAMP, rested
from tests.stories import deed

import talekeeper as tk
from talekeeper.server.limits import Limits
from talekeeper.server.stream import Stream
from talekeeper.server.views import View

CANARY = "quetzalcoatlus"
QUICK = Limits(rate=1e6, burst=1_000_000, stream_seconds=0.02)
KEY = tk.MemoryKey("acme", "ana", "lamp")


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    """A game in the middle of a round, with secrets of the dm, of Osric and of one whom Nell has never met."""
    async with served(":memory:", limits=QUICK) as made:
        owner = made.owner
        await owner.do("POST", "/games", {**GAME, "humans": ["nell", "osric"]})
        await hide(made)
        await owner.do("POST", f"{LAMP}/step", {"nudge": f"a {CANARY} in the sky"})
        await rested(owner)
        await made.client("nell").do("POST", f"{LAMP}/act", {"text": "I look around."})
        assert (await rested(owner))["waiting"] == "osric"
        await owner.do("POST", f"{LAMP}/whisper", {"speaker": "dm", "to": ["osric"], "text": f"The {CANARY} is awake."})
        yield made


async def hide(table: Table) -> None:
    """Puts the word into everything that can be said, called, marked, changed, undone or removed without Nell's knowledge."""
    owner, story = table.owner, await table.keeper.story(KEY)
    secret = {"speaker": "dm", "heard_by": ["osric"]}
    for number in range(60):
        await story.append("dm", deed(number), heard_by=["nell"] if number % 3 else ["osric"], mentions=[] if number % 3 else [CANARY])
    told = await owner.do("POST", f"{LAMP}/turns", {**secret, "text": f"Beware of the {CANARY}.", "location": f"the {CANARY}'s nest"})
    await owner.do("POST", f"{LAMP}/turns", {**secret, "text": "Hush.", "voice": f"The {CANARY}", "when": f"the day of the {CANARY}"})
    await owner.do("POST", f"{LAMP}/notes", {"text": f"Nobody has seen a {CANARY}.", "heard_by": ["osric"], "mentions": [CANARY]})
    await owner.do("POST", f"{LAMP}/turns", {"speaker": "osric", "kind": "thought", "text": f"A {CANARY}! Me, of all people."})
    await owner.do("PUT", f"{LAMP}/seats/stranger", {"role": "npc", "name": f"Tamer of {CANARY}", "aliases": [CANARY]})
    await owner.do("PUT", f"{LAMP}/seats/{CANARY}", {"role": "npc"})
    await owner.do("POST", f"{LAMP}/seats/stranger/enter", {"location": CANARY, "text": f"The {CANARY} lands."})
    await owner.do("POST", f"{LAMP}/turns/{told['id']}/reveal", {"to": ["stranger"], "text": f"Word of the {CANARY} spreads."})
    await owner.do("PUT", f"{LAMP}/turns/{told['id']}/pin")
    last = await owner.do("POST", f"{LAMP}/turns", {**secret, "text": "It is quiet."})
    await owner.do("PATCH", f"{LAMP}/turns/{last['id']}", {"text": f"The {CANARY} screams."})
    gone = await owner.do("POST", f"{LAMP}/turns", {**secret, "text": f"The {CANARY} is forgotten."})
    await owner.do("DELETE", f"{LAMP}/turns/{gone['id']}")
    await owner.do("POST", f"{LAMP}/turns", {"speaker": "dm", "text": f"All see the {CANARY}."})
    await owner.do("POST", f"{LAMP}/rewind", {"to": last["id"]})
    await owner.do("POST", f"{LAMP}/fork", {"name": f"what-if-{CANARY}"})
    await story.mark(f"moment:{CANARY}", {"summary": f"a {CANARY}"}, of=[await story.turn(told["id"])])
    await story.mark("moment", {"type": "discovery", "summary": f"saw a {CANARY}"}, of=[await story.turn(told["id"])], rank=1.0)
    theirs = [turn.id for turn in await story.turns(seat="osric") if "nell" not in turn.audience]
    for fold in await story.folds("osric", budget=128):
        while fold.level:
            fold = await story.fold(fold.children[0])
        if set(await story.sources(fold)) <= set(theirs):
            await owner.do("PUT", f"{LAMP}/memories/{fold.id}", {"text": f"What the {CANARY} did."})
            break
    else:
        raise AssertionError("nothing to write over")
    other = {"user": "ana", "name": f"the-{CANARY}", "seats": [{"id": "dm", "role": "dm"}, {"id": "osric"}]}
    await owner.do("POST", "/stories", other)
    await table.client("other").do("POST", "/stories", {**other, "name": CANARY, "seats": [{"id": "nell"}]})


class Prober:
    """Makes up requests for every route from its description, out of everything that there is."""

    def __init__(self, described: Any, pool: dict[str, list[Any]]) -> None:
        self._described, self._pool = described, pool

    def requests(self) -> Iterator[tuple[str, str, str, dict[str, Any], Any]]:
        """Method, route, path, parameters, body."""
        for route, methods in self._described["paths"].items():
            for method, about in methods.items():
                yield from self._about(method.upper(), route, about)

    def _about(self, method: str, route: str, about: Any) -> Iterator[tuple[str, str, str, dict[str, Any], Any]]:
        given = about.get("parameters", [])
        names = [one["name"] for one in given if one["in"] == "path"]
        queries = {one["name"]: self._values(one["name"], one["schema"]) for one in given if one["in"] == "query"}
        needed = {one["name"]: queries[one["name"]][0] for one in given if one["in"] == "query" and one.get("required")}
        asked = [{}, *({name: value} for name, values in queries.items() for value in values)]
        bodies = list(self._bodies(about.get("requestBody")))
        for values in itertools.product(*(self._pool[name] for name in names)):
            path = route
            for name, value in zip(names, values, strict=True):
                path = path.replace(f"{{{name}}}", str(value))
            few = asked if values == tuple(self._pool[name][0] for name in names) or len(asked) < 12 else asked[:3]
            for query, body in itertools.product(few, bodies):
                yield method, route, path, {**needed, **query}, body

    def _values(self, name: str, schema: Any) -> list[Any]:
        """What to ask with; of a parameter that is new here, something of its type."""
        kinds = {part.get("type") for part in schema.get("anyOf", [schema])}
        return self._pool.get(name) or ([2] if kinds & {"integer", "number"} else [True] if "boolean" in kinds else ["nothing"])

    def _bodies(self, about: Any) -> Iterator[Any]:
        if about is None:
            yield None
            return
        schema = next(iter(about["content"].values()))["schema"]
        for part in schema.get("anyOf", [schema]):
            if "$ref" in part:
                shape = self._described["components"]["schemas"][part["$ref"].rpartition("/")[2]]
                fields = {name: self._values(f"body.{name}", about) for name, about in shape["properties"].items()}
                needed = {name: values[0] for name, values in fields.items() if name in shape.get("required", ())}
                yield needed
                yield from ({**needed, name: value} for name, values in fields.items() for value in values)
            else:
                yield None if part.get("type") == "null" else "{}"


async def everything(table: Table) -> dict[str, list[Any]]:
    """All ids that there are, the player's own first, and values for every field."""
    story = await table.keeper.story(KEY)
    turns = await story.turns()
    mine = [turn.id for turn in turns if "nell" in turn.audience]
    theirs = [turn.id for turn in turns if "nell" not in turn.audience]
    folds = {fold.id for seat in ("nell", "osric", "dm") for budget in (128, 600) for fold in await story.folds(seat, budget=budget)}
    folds |= {child for fold in folds for child in (await story.fold(fold)).children if not child.startswith("t-")}
    own = [fold.id for fold in await story.folds("nell", budget=128)]
    branches = [branch.name for branch in await story.branches()]
    some = [*mine[:2], mine[-1], *theirs[:2], *theirs[-4:], "1", "7", "0"]
    texts = ["I wait.", CANARY[:4]]
    return {
        "story": ["ana.lamp", f"ana.the-{CANARY}", f"ana.{CANARY}"], "turn": some, "memory": [*own[:2], *sorted(folds)],
        "seat_id": ["nell", "osric", "stranger", CANARY], "seat": ["nell", "osric", "dm", "stranger"], "branch": ["main", *branches],
        "at": some, "after": some, "before": some, "ids": some, "limit": [200], "newest": ["true"], "depth": [2], "budget": [128, 4000],
        "query": ["What do you know?", "beware nest", CANARY], "prefix": ["", "moment:"], "topic": ["moment", f"moment:{CANARY}", "table:game"],
        "kinds": ["whisper", "thought", "note", "edit", "mark"], "speaker": ["osric", "dm"], "location": [f"the {CANARY}'s nest"],
        "body.text": texts, "body.speaker": ["nell", "osric", "dm"], "body.to": [["osric"], ["nell"]], "body.heard_by": [["osric"], ["stranger"]],
        "body.name": ["another", "lamp"], "body.user": ["ana"], "body.seats": [[{"id": "nell"}]], "body.scenario": ["tidelamp"],
        "body.party": [["nell"]], "body.humans": [["nell"]], "body.seed": [0], "body.kind": ["said", "whisper", "thought", "event", "note"],
        "body.mentions": [["key"]], "body.location": [CANARY], "body.voice": ["The sea"], "body.when": ["now"], "body.id": [theirs[0]],
        "body.role": ["dm"], "body.aliases": [["key"]], "body.token_limit": [100], "body.fold_at": [0.5], "body.keep": [3],
        "body.title": ["More"], "body.at": [theirs[0]], "body.nudge": ["more"], "body.on": [True], "body.rounds": [1],
    }  # fmt: skip


async def ask(client: Client, probe: tuple[str, str, str, dict[str, Any], Any]) -> httpx.Response:
    method, _, path, params, body = probe
    url = path if path.startswith("/api/") else f"http://localhost:8765{path}"
    return await client(method, url.removeprefix("/api/v1"), body, params=params)


async def test_a_player_does_not_find_the_secret_of_another_on_any_route(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "talekeeper")
    prober = Prober(await table.owner.get("/openapi.json"), await everything(table))
    nell, found, asked, shown = table.client("nell"), [], Counter[str](), set[str]()
    story = await table.keeper.story(KEY)
    view = View(story, "nell", table.app.state.house.rooms.places)
    live = Stream(table.app.state.house.hub, story, view, lambda: True, 3600).frames("nell", "0")
    frames: list[str] = []

    async def listen() -> None:
        nonlocal frames
        async for frame in live:
            frames += [frame]

    listening = asyncio.create_task(listen())
    for probe in prober.requests():
        answer = await ask(nell, probe)
        asked[probe[1]] += 1
        assert answer.status_code < 500, (probe, answer.text)
        if answer.status_code < 300:
            shown.add(f"{probe[0]} {probe[1]}")
        if CANARY in answer.text + str(answer.headers) and not echoes(probe, answer):
            found.append((probe, answer.text))
    await table.owner.do("POST", f"{LAMP}/act", {"text": "I nod."})
    await rested(table.owner)
    await asyncio.sleep(0.1)
    listening.cancel()
    assert not found, found[0]
    assert len(frames) > 40
    assert CANARY not in "".join(frames)
    assert min(asked.values()) >= 1
    assert sum(asked.values()) > 1000
    readable = (
        "turns",
        "turns/{turn}",
        "context",
        "recall",
        "memories",
        "memories/{memory}",
        "marks",
        "topics",
        "events",
        "stats",
        "play",
        "scene",
    )
    assert {f"GET /api/v1/stories/{{story}}/{name}" for name in readable} <= shown
    logged = "".join(str(record.__dict__) for record in caplog.records)
    assert not [token for token in TOKENS.values() if token in logged]
    assert CANARY not in logged


def echoes(probe: Any, answer: httpx.Response) -> bool:
    """Whether the answer only has back what the question said: the path, a parameter, the body's own words."""
    _, _, path, params, body = probe
    return answer.status_code in (404, 422) and CANARY in f"{path}{params}{body}" and "detail" in answer.text


async def test_the_dm_does_find_it_where_a_player_must_not(table: Table) -> None:
    prober = Prober(await table.owner.get("/openapi.json"), await everything(table))
    seen = set()
    for method, route, path, params, body in prober.requests():
        for seat in ({}, {"seat": "osric"}):
            if method == "GET" and route not in seen:
                answer = await ask(table.owner, (method, route, path, {**params, **seat}, body))
                seen |= {route} if answer.status_code == 200 and CANARY in answer.text else set()
    story = "/api/v1/stories/{story}"
    assert {route for route in seen if route.startswith(story)} >= {
        story, f"{story}/turns", f"{story}/turns/{{turn}}", f"{story}/context", f"{story}/recall", f"{story}/memories", f"{story}/marks",
        f"{story}/memories/{{memory}}", f"{story}/topics", f"{story}/branches", f"{story}/events", f"{story}/export", f"{story}/seats",
    }  # fmt: skip
    assert "/api/v1/stories" in seen
