"""A real browser before a real server: Chromium of the system, and `talekeeper serve` in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync".split()
ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "test-artefacts"
expect.set_options(timeout=25_000)  # a busy machine, and a server that has just started
NewPage = Callable[..., Awaitable[Page]]


@pytest.fixture
def served(tmp_path: Path, socket_enabled: None) -> Iterator[str]:
    """The address of a server with an empty file of stories."""
    command = [sys.executable, "-m", "talekeeper", "serve", "--file", str(tmp_path / "web.db"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        assert process.stdout is not None
        try:
            said = ""
            while "}" not in said:
                said += process.stdout.readline()
            yield json.loads(said)["url"]
        finally:
            process.terminate()


@pytest.fixture
async def browser(socket_enabled: None) -> AsyncIterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "the page is tested in a real browser: run scripts/test as root once, or apt install chromium"
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        await started.close()


@pytest.fixture
async def new_page(browser: Browser, served: str) -> AsyncIterator[NewPage]:
    """Opens a page in a browser of its own; whatever goes wrong in it fails the test."""
    wrong: list[str] = []

    async def make(path: str = "/", *, width: int = 1360, height: int = 860, scheme: str = "light") -> Page:
        context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page = await context.new_page()
        page.set_default_timeout(25_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        await page.goto(served + path)
        return page

    yield make
    assert wrong == []


@pytest.fixture
def shot() -> Callable[[Page, str], Awaitable[None]]:
    """Keeps a picture of the page, to look at."""

    async def take(page: Page, name: str) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        await page.screenshot(path=ARTEFACTS / f"{name}.png")

    return take
