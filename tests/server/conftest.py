"""A table that is served: two players and a dm of one tenant, and the dm of another, each with a token."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import NOW

import talekeeper as tk
from talekeeper.server.app import create_app
from talekeeper.server.auth import Grant, Tokens, digest
from talekeeper.server.limits import Limits

TOKENS = {name: f"tk_{name * 12:.40}" for name in ("owner", "rogue", "bard", "twins", "other", "guest", "meter", "nell")}
GRANTS = {
    "owner": Grant("owner", "acme", dm=True),
    "rogue": Grant("rogue", "acme", seats=frozenset({"rogue"}), stories=frozenset({"ana.ash-crown"})),
    "bard": Grant("bard", "acme", seats=frozenset({"bard"})),
    "twins": Grant("twins", "acme", seats=frozenset({"rogue", "bard"})),
    "other": Grant("other", "umbra", dm=True),
    "guest": Grant("guest", "acme", dm=True, stories=frozenset({"ana.guest-story"})),
    "meter": Grant("meter", "", metrics=True),
    "nell": Grant("nell", "acme", seats=frozenset({"nell"})),
}
STORY = "/stories/ana.ash-crown"
SEATS: list[dict[str, Any]] = [
    {"id": "dm", "role": "dm", "token_limit": 600},
    {"id": "rogue", "token_limit": 400},
    {"id": "bard", "name": "Lark", "token_limit": 400},
    {"id": "spy", "role": "npc"},
]
UNHURRIED = Limits(rate=1e6, burst=1_000_000)


def tokens(limits: Limits = UNHURRIED) -> Tokens:
    return Tokens({digest(TOKENS[name]): grant for name, grant in GRANTS.items()}, limits)


class Client:
    """Speaks for one token."""

    def __init__(self, http: httpx.AsyncClient, token: str | None) -> None:
        self.http = http
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        if body is not None:
            more["json"] = body
        return await self.http.request(method, path, headers={**self.headers, **(headers or {})}, **more)

    async def get(self, path: str, **params: Any) -> Any:
        """What is there; it must be."""
        answer = await self("GET", path, params=params or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def do(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """What comes of it; it must succeed."""
        answer = await self(method, path, body, **more)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def refused(self, status: int, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """The problem that it is answered with."""
        answer = await self(method, path, body, **more)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == status
        assert problem["detail"].endswith(".")
        return problem

    async def tell(self, text: str, speaker: str = "dm", **more: Any) -> Any:
        return await self.do("POST", f"{STORY}/turns", {"speaker": speaker, "text": text, **more})


class Table:
    """A served keeper, and a client for each token."""

    def __init__(self, keeper: tk.Keeper, http: httpx.AsyncClient, app: Any) -> None:
        self.keeper, self.http, self.app = keeper, http, app
        self.owner, self.rogue, self.bard = self.client("owner"), self.client("rogue"), self.client("bard")

    def client(self, name: str | None) -> Client:
        return Client(self.http, TOKENS[name] if name else None)

    @property
    def key(self) -> tk.MemoryKey:
        return tk.MemoryKey("acme", "ana", "ash-crown")


@asynccontextmanager
async def served(target: str, *, limits: Limits = UNHURRIED, guarded: bool = True, **settings: Any) -> AsyncIterator[Table]:
    async with tk.open(target, **{"counter": tk.Heuristic(), "clock": lambda: NOW, "durable": False, **settings}) as keeper:
        app = create_app(keeper, tokens=tokens(limits) if guarded else None, tenant="acme", limits=limits)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8765/api/v1") as http:
            yield Table(keeper, http, app)
        await app.state.house.rooms.close()


@pytest.fixture
async def table(target: str) -> AsyncIterator[Table]:
    """A table with its story, on each store in turn."""
    async with served(target) as made:
        await made.owner.do("POST", "/stories", {"user": "ana", "name": "ash-crown", "seats": SEATS})
        yield made


@pytest.fixture
def tokens_file(tmp_path: Path) -> Path:
    """The same tokens in a file."""
    rows = []
    for name, grant in GRANTS.items():
        lines = [f'name = "{name}"', f'hash = "{digest(TOKENS[name])}"', f'tenant = "{grant.tenant}"']
        lines += [f"{field} = {sorted(values)!r}" for field, values in (("seats", grant.seats), ("stories", grant.stories)) if values]
        lines += [f"{field} = true" for field in ("dm", "metrics") if getattr(grant, field)]
        rows.append("[[token]]\n" + "\n".join(lines))
    path = tmp_path / "tokens.toml"
    path.write_text("\n\n".join([*rows, "[limits]\nrate = 10000.0\nburst = 10000"]) + "\n")
    path.chmod(0o600)
    return path


class Server:
    """`talekeeper serve`, to be started, killed and started again."""

    def __init__(self, folder: Path, tokens: Path | None) -> None:
        self.folder, self.tokens = folder, tokens
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.port = 0

    def start(self, *args: str) -> Server:
        tokens = ["--tokens", str(self.tokens)] if self.tokens else []
        command = [
            sys.executable,
            "-m",
            "talekeeper",
            "serve",
            "--port",
            str(self.port),
            "--file",
            str(self.folder / "s.db"),
            *tokens,
            *args,
        ]
        env = {name: value for name, value in os.environ.items() if not name.startswith("TALEKEEPER_")}
        self.process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()[1]
            said += line
        self.url = json.loads(said)["url"]
        self.port = int(self.url.rpartition(":")[2])
        return self

    def stop(self, sig: int = signal.SIGTERM) -> tuple[int, float]:
        """Its exit code, and how long it took to go."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(sig)
        self.process.communicate(timeout=30)
        return self.process.returncode, time.monotonic() - began

    @asynccontextmanager
    async def client(self, name: str | None) -> AsyncIterator[Client]:
        async with httpx.AsyncClient(base_url=f"{self.url}/api/v1", timeout=20) as http:
            yield Client(http, TOKENS[name] if name else None)


@pytest.fixture
def server(tmp_path: Path, tokens_file: Path) -> Iterator[Server]:
    made = Server(tmp_path, tokens_file).start()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()
