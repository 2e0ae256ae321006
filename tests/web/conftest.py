"""A real browser before a real server: Chromium of the system, and `talekeeper serve` in a process of its own.

Both are started once for all tests. Every test plays a story of its own: most of them a copy of one that was played for ten rounds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Page, Playwright, async_playwright, expect

FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync".split()
ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "test-artefacts"
PATIENCE = 25_000
"""Milliseconds: a busy machine, and a server that has just started."""
expect.set_options(timeout=PATIENCE)

NewPage = Callable[..., Awaitable[Page]]
Shot = Callable[..., Awaitable[None]]
NewStory = Callable[[], Awaitable[str]]
Looked = Callable[..., Awaitable[None]]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all, since they share the browser; and time, where the machine has other things to do."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.timeout(400))
            item.add_marker(pytest.mark.enable_socket)
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1"]))


@dataclass
class Server:
    """`talekeeper serve`, to be stopped and started again where it was."""

    file: Path
    options: list[str] = field(default_factory=list)
    program: Sequence[str] = ("-m", "talekeeper")
    port: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, *self.program, "serve", "--file", str(self.file), "--port", str(self.port), "--json", *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        assert self.process.stdout is not None
        said = ""
        while "}" not in said:
            line = self.process.stdout.readline()
            assert line, f"the server did not start: {said}"
            said += line
        self.port = int(json.loads(said)["url"].rpartition(":")[2])

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            assert self.process.stdout is not None
            self.process.stdout.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("web") / "web.db")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server of the test's own, to be started, stopped and broken."""
    made: list[Server] = []

    def make(*options: str, **settings: Any) -> Server:
        made.append(Server(tmp_path / "own.db", list(options), **settings))
        made[-1].start()
        return made[-1]

    yield make
    for server in made:
        server.stop()


# -- the browser -------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    async with async_playwright() as started:
        yield started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(playwright: Playwright) -> AsyncIterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "the page is tested in a real browser: run scripts/test as root once, or apt install chromium"
    started = await playwright.chromium.launch(executable_path=found, args=FLAGS)
    yield started
    await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def new_page(browser: Browser, served: Server, own_server: Callable[..., Server]) -> AsyncIterator[NewPage]:
    """Opens a page in a browser of its own (closed before any server is stopped), at a story or wherever; whatever goes wrong in it fails the test, and so does whatever
    stands in its console in red, unless the test provokes it: `refused` has what such a line contains."""
    wrong: list[str] = []
    contexts = []

    async def make(
        where: str = "", *, server: str | None = None, width: int = 1360, height: int = 860, scheme: str = "light", touch: bool = False,
        refused: tuple[str, ...] = (),
    ) -> Page:  # fmt: skip
        context = await browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", has_touch=touch, is_mobile=touch  # type: ignore[arg-type]
        )  # fmt: skip
        contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: wrong.append(str(error)))

        def heard(said: ConsoleMessage) -> None:
            if said.type == "error" and not any(known in said.text for known in refused):
                wrong.append(f"{said.text} {said.location['url']}")

        page.on("console", heard)
        await page.goto((server or served.url) + "/" + (f"#story={where}" if where and not where.startswith("#") else where))
        return page

    yield make
    for context in contexts:
        await context.close()
    assert wrong == []


@pytest.fixture
def shot() -> Shot:
    """Keeps a picture of the page, to look at. With TALEKEEPER_IMAGES=docs those of the documentation are taken anew."""

    async def take(page: Page, name: str, *, docs: bool = False) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        await page.screenshot(path=ARTEFACTS / f"{name}.png")
        if docs and os.environ.get("TALEKEEPER_IMAGES") == "docs":
            shutil.copy(ARTEFACTS / f"{name}.png", ROOT / "docs" / "images" / f"{name}.png")

    return take


@pytest.fixture
def accessible() -> Looked:
    """Looks at the page with axe, or at the parts of it that are named: nothing may be in anyone's way."""
    axe = Axe()

    async def look(page: Page, state: str, *within: str) -> None:
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], "resultTypes": ["violations"]}
        found = (await axe.run(page, list(within) or None, options=options)).response["violations"]
        said = [
            f"{one['id']}: {one['help']}: {node['html'][:160]}: {node['failureSummary'][24:200]}" for one in found for node in one["nodes"]
        ]
        assert said == [], f"{state}: " + "\n".join(said)

    return look


# -- stories -----------------------------------------------------------------------------------------------------------


class Api:
    """The public API, to bring a story to where a test begins."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def __call__(self, method: str, path: str, body: Any = None, **params: str | float | bool) -> Any:
        sent: Any = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        answer = await self.http.request(method, path, params=params, **sent)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def rounds(self, story: str, count: int) -> None:
        """Rounds in which the person at the table does what is nearest."""
        for _ in range(count):
            if not (await self.rested(story))["waiting"]:
                await self("POST", f"/stories/{story}/step")
            seat = (await self.rested(story))["waiting"]
            if seat:
                choices = (await self("GET", f"/stories/{story}/scene", seat=seat))["choices"]
                await self("POST", f"/stories/{story}/act", {"text": choices[0]["text"]})
                await self.rested(story)

    async def rested(self, story: str) -> Any:
        while (found := await self("GET", f"/stories/{story}/play"))["running"]:
            await asyncio.sleep(0.05)
        return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(served: Server) -> AsyncIterator[Api]:
    async with httpx.AsyncClient(base_url=f"{served.url}/api/v1", timeout=PATIENCE / 1000) as http:
        yield Api(http)


SAGA = {"name": "saga", "scenario": "tidelamp", "party": ["nell", "osric", "ibbi"], "humans": ["nell"], "seed": 7}
SECRET = "The steward counts his coins with his left hand."


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def saga(api: Api) -> bytes:
    """A story of ten rounds with a whisper in it, as it is exported."""
    story = (await api("POST", "/games", SAGA))["id"]
    await api.rounds(story, 4)
    await api("POST", f"/stories/{story}/whisper", {"speaker": "dm", "to": ["nell"], "text": SECRET})
    await api.rounds(story, 6)
    return (await api.http.get(f"/stories/{story}/export")).content


_names = itertools.count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def new_story(api: Api, saga: bytes) -> NewStory:
    """A copy of the saga, to do with as one likes."""

    async def make() -> str:
        story = f"local.copy-{next(_names)}"
        await api("POST", "/import", saga, story=story)
        return story

    return make
