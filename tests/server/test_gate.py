"""The gate: hosts, origins, tokens, rates, sizes, times; and what is asked for without a token."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest
from tests.server.conftest import SEATS, STORY, TOKENS, Client, Table, served

import talekeeper as tk
from talekeeper.server.app import create_app
from talekeeper.server.auth import TokenFile
from talekeeper.server.gate import is_loopback
from talekeeper.server.limits import Buckets, Limits
from talekeeper.stores import InMemoryStore

ROOT = "http://localhost:8765"


async def test_without_a_token_nothing_is_answered_whatever_is_asked_for(table: Table) -> None:
    stranger = table.client(None)
    answers = [
        await stranger.refused(401, "GET", path)
        for path in ("/me", STORY, "/stories/ana.nothing", "/nowhere", f"{ROOT}/metrics", f"{ROOT}/elsewhere")
    ]
    assert len({str(answer) for answer in answers}) == 1
    for header in ("", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKENS['owner']}", TOKENS["owner"], f"Bearer {TOKENS['owner']}x"):
        answer = await table.http.get("/me", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (await table.http.get("/me", headers={"Authorization": f"bearer  {TOKENS['owner']}"})).status_code == 200
    assert (await table.http.get(f"/me?token={TOKENS['owner']}")).status_code == 401


async def test_me_says_what_a_token_allows(table: Table) -> None:
    assert await table.owner.get("/me") == {"name": "owner", "tenant": "acme", "dm": True, "seats": [], "stories": None}
    assert await table.rogue.get("/me") == {
        "name": "rogue",
        "tenant": "acme",
        "dm": False,
        "seats": ["rogue"],
        "stories": ["ana.ash-crown"],
    }


async def test_probes_and_the_description_need_no_token(table: Table) -> None:
    stranger = table.client(None)
    assert await stranger.get(f"{ROOT}/health/live") == {"status": "ok"}
    assert await stranger.get(f"{ROOT}/health/ready") == {"status": "ok"}
    described = await stranger.get("/openapi.json")
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method in methods.values():
            assert method["summary"], path


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/", "/page/app.js", "/api/v1/openapi.json", "/page/nothing.js"])
async def test_a_head_is_the_answer_without_its_body(table: Table, path: str) -> None:
    whole, head = [await table.http.request(method, f"{ROOT}{path}") for method in ("GET", "HEAD")]
    assert (head.status_code, head.headers, head.content) == (whole.status_code, whole.headers, b"")
    assert whole.content
    assert (await table.owner("HEAD", STORY)).status_code == 405, "the API has none"


async def test_it_is_not_ready_when_the_stories_cannot_be_read() -> None:
    async with served(":memory:") as table:
        await table.keeper.store.close()
        stranger = table.client(None)
        assert await stranger.get(f"{ROOT}/health/live") == {"status": "ok"}
        assert (await stranger.refused(503, "GET", f"{ROOT}/health/ready"))["type"] == "urn:talekeeper:not-ready"
        assert (await table.owner.refused(503, "GET", STORY))["type"] == "urn:talekeeper:closing"


async def test_it_is_not_ready_when_its_tokens_cannot_be_read(tokens_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.server.auth.LOOK_AGAIN", 0.0)
    async with tk.open(":memory:") as keeper:
        app = create_app(keeper, tokens=TokenFile(tokens_file))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ROOT) as http:
            assert (await http.get("/health/ready")).status_code == 200
            tokens_file.write_text("[[")
            assert (await http.get("/health/ready")).status_code == 503
            assert (await http.get("/api/v1/me", headers={"Authorization": f"Bearer {TOKENS['owner']}"})).status_code == 401


async def test_limits_are_those_of_the_file_as_it_is_now(tokens_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("talekeeper.server.auth.LOOK_AGAIN", 0.0)
    async with tk.open(":memory:") as keeper:
        app = create_app(keeper, tokens=TokenFile(tokens_file))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"{ROOT}/api/v1") as http:
            owner = Client(http, TOKENS["owner"])
            await owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
            text = tokens_file.read_text()
            tokens_file.write_text(text.replace("burst = 10000", "burst = 10000\nbody = 60"))
            await owner.refused(413, "POST", f"{STORY}/turns", {"speaker": "dm", "text": "A sentence that is too long by now."})
            tokens_file.write_text(text.replace("rate = 10000.0\nburst = 10000", "rate = 0.01\nburst = 2"))
            assert [(await owner("GET", "/me")).status_code for _ in range(3)] == [200, 200, 429]
            tokens_file.write_text(text)
            assert (await owner("GET", "/me")).status_code == 200


async def test_metrics_are_for_those_who_were_granted_them_and_tell_no_names(table: Table) -> None:
    await table.owner.tell("The bell tolls.")
    await table.rogue.get(f"{STORY}/turns")
    await table.client(None).refused(401, "GET", "/me")
    await table.owner.refused(403, "GET", f"{ROOT}/metrics")
    answer = await table.client("meter")("GET", f"{ROOT}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'talekeeper_requests_total{method="POST",route="/api/v1/stories/{story}/turns",status="201"} 1' in lines
    assert 'talekeeper_request_seconds_count{method="GET",route="/api/v1/stories/{story}/turns"} 1' in lines
    assert 'talekeeper_refused_total{reason="no-token"} 1' in lines
    assert "talekeeper_streams 0" in lines
    assert all(re.fullmatch(r'#.*|[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [0-9.]+', line) for line in lines)
    assert not any(word in answer.text for word in ("ash-crown", "acme", "rogue", "bell"))


async def test_a_meter_opens_no_story(table: Table) -> None:
    await table.client("meter").refused(404, "GET", STORY)
    assert await table.client("meter").get("/stories") == {"stories": []}


# -- without tokens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "LOCALHOST", "127.0.0.1:1", "127.9.9.9", "[::1]:8765", "[::1]"])
async def test_without_tokens_it_answers_to_names_of_this_machine(host: str) -> None:
    async with served(":memory:", guarded=False) as table:
        assert (await table.http.get("/me", headers={"Host": host})).json()["dm"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "192.168.1.7:8765"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"X-Forwarded-For": "10.0.0.1"}, 403),
        ({"Forwarded": "for=10.0.0.1"}, 403),
    ],
)
async def test_without_tokens_it_refuses_what_comes_from_elsewhere(headers: dict[str, str], status: int) -> None:
    async with served(":memory:", guarded=False) as table:
        for path in ("/me", "/openapi.json", f"{ROOT}/health/live"):
            answer = await table.http.get(path, headers=headers)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"
        assert (await table.http.get("/me", headers={"Origin": ROOT, "Sec-Fetch-Site": "same-origin"})).status_code == 200


@pytest.mark.parametrize(
    ("host", "mine"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("", False)]
)
def test_only_this_machine_is_this_machine(host: str, mine: bool) -> None:
    assert is_loopback(host) is mine


async def test_no_answer_lets_other_origins_read_it(table: Table) -> None:
    answer = await table.owner("GET", "/me", headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert (await table.owner("OPTIONS", "/me", headers={"Origin": "http://evil.example"})).status_code == 405


# -- how much ----------------------------------------------------------------------------------------------------------


async def test_a_token_has_its_rate_and_others_have_theirs() -> None:
    async with served(":memory:", limits=Limits(rate=0.5, burst=5)) as table:
        assert [(await table.owner("GET", "/me")).status_code for _ in range(7)] == [200] * 5 + [429] * 2
        answer = await table.owner("GET", "/me")
        assert int(answer.headers["retry-after"]) in (1, 2)
        assert answer.json()["type"] == "urn:talekeeper:too-many-requests"
        assert (await table.rogue("GET", "/me")).status_code == 200
        assert (await table.client(None)("GET", f"{ROOT}/health/live")).status_code == 200


async def test_who_needs_no_token_has_no_rate() -> None:
    async with served(":memory:", limits=Limits(rate=0.5, burst=5), guarded=False) as table:
        assert {(await table.client(None)("GET", "/me")).status_code for _ in range(12)} == {200}


async def test_who_guesses_tokens_is_slowed_down_and_nobody_else() -> None:
    async with served(":memory:", limits=Limits(guesses=3)) as table:
        stranger, guesser = table.client(None), Client(table.http, "tk_wrong")
        assert {(await stranger("GET", "/me")).status_code for _ in range(5)} == {401}, "who comes without one is asked for it"
        assert [(await guesser("GET", "/me")).status_code for _ in range(5)] == [401] * 3 + [429] * 2
        assert (await table.owner("GET", "/me")).status_code == 200


def test_a_bucket_fills_up_again_and_forgets_who_has_not_asked_for_long() -> None:
    now = [0.0]
    buckets = Buckets(room=10, clock=lambda: now[0])
    assert [buckets.take("a", 2.0, 3) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now[0] = 0.5
    assert buckets.take("a", 2.0, 3) == 0.0
    assert buckets.take("a", 2.0, 3) == 0.5
    assert buckets.take("a", 4.0, 3) == 0.25, "what is allowed now counts"
    for number in range(20):
        buckets.take(f"other {number}", 2.0, 3)
    assert [buckets.take("a", 2.0, 3) for _ in range(3)] == [0.0] * 3


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_large_is_not_read(table: Table, declared: bool) -> None:
    async def parts() -> Any:
        for _ in range(40):
            yield b" " * 50_000

    content: Any = b" " * 1_000_001 if declared else parts()
    answer = await table.http.post(f"{STORY}/turns", content=content, headers={**table.owner.headers, "Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["type"] == "urn:talekeeper:too-large"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"text": 3, "speaker": "dm"}', b'{"text": "\\ud800", "speaker": "dm"}',
        b'{"text": "a\\u0000b", "speaker": "dm"}', b'{"text": "x", "speaker": "dm", "admin": true}', b"[" * 100_000,
        b'{"text": "x", "speaker": "dm", "heard_by": ' + str(["a"] * 65).replace("'", '"').encode() + b"}",
        b'{"text": " ", "speaker": "dm"}', b'{"text": "x", "speaker": "nobody"}', b'{"text": NaN, "speaker": "dm"}',
        b'{"text": ' + b"9" * 5000 + b', "speaker": "dm"}', b'{"text": "' + b"x" * 102_401 + b'", "speaker": "dm"}',
    ],
)  # fmt: skip
async def test_what_cannot_be_understood_changes_nothing(table: Table, body: bytes) -> None:
    answer = await table.http.post(f"{STORY}/turns", content=body, headers={**table.owner.headers, "Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await table.owner.get(STORY))["version"] == "1.0"


async def test_a_number_in_quotes_is_no_number(table: Table) -> None:
    problem = await table.owner.refused(422, "PUT", f"{STORY}/seats/rogue", {"token_limit": "500"})
    assert [one["at"] for one in problem["errors"]] == ["body.token_limit"]


async def test_whoever_forgot_the_content_type_is_told(table: Table) -> None:
    answer = await table.http.post(f"{STORY}/turns", content=b'{"text": "x", "speaker": "dm"}', headers=table.owner.headers)
    assert (answer.status_code, answer.json()["errors"][0]["at"]) == (422, "body")
    assert "Content-Type: application/json" in answer.json()["detail"]


async def test_an_address_that_does_not_take_a_method_says_which_it_takes(table: Table) -> None:
    answer = await table.owner("PUT", f"{STORY}/turns")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert (await table.owner.refused(404, "GET", "/nowhere"))["type"] == "urn:talekeeper:no-such-route"


class SlowStore(InMemoryStore):
    """A store that takes its time, from when it is told to."""

    pause = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def read(self, request: Any) -> Any:
        await asyncio.sleep(self.pause)
        return await super().read(request)

    async def write(self, commit: Any) -> int:
        await asyncio.sleep(self.pause)
        rev = await super().write(commit)
        self.told += [entry.text for entry in commit.entries]
        return rev


async def test_what_takes_too_long_is_answered_and_what_was_begun_is_brought_to_its_end() -> None:
    store = SlowStore()
    limits = Limits(seconds=0.2, rate=1e6, burst=1000)
    async with served(store, limits=limits) as table:  # type: ignore[arg-type]
        await table.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        await table.owner.tell("Night falls.")
        store.pause = 0.5
        body, headers = {"speaker": "dm", "text": "The bell tolls."}, {"Idempotency-Key": "bell"}
        problem = await table.owner.refused(503, "POST", f"{STORY}/turns", body, headers=headers)
        assert problem["type"] == "urn:talekeeper:too-slow"
        await table.owner.refused(503, "GET", f"{STORY}/turns")
        async with asyncio.timeout(10):
            while "The bell tolls." not in store.told:
                await asyncio.sleep(0.01)
        store.pause = 0.0
        await table.owner.do("POST", f"{STORY}/turns", body, headers=headers)
        assert [turn["text"] for turn in (await table.owner.get(f"{STORY}/turns"))["turns"]] == ["Night falls.", "The bell tolls."]


class BrokenStore(InMemoryStore):
    async def keys(self, tenant_id: str | None = None) -> Any:
        raise ZeroDivisionError("the secret of the dm")


async def test_an_unforeseen_error_is_logged_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with served(BrokenStore()) as table:  # type: ignore[arg-type]
        problem = await table.owner.refused(500, "GET", "/stories")
        assert "secret" not in str(problem)
        incident = problem["detail"].split()[-1].rstrip(".")
        assert any(getattr(record, "incident", "") == incident for record in caplog.records)
