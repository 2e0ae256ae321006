"""What people do at the table, by mouse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Page, expect
from tests.web.conftest import PATIENCE, NewPage

TOLD = "article[data-id]"
NEWEST = """async () => {
  const { story, branch = "main", seat } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const asked = new URLSearchParams({ branch, newest: true, limit: 1, ...(seat ? { seat } : {}) });
  const token = sessionStorage.getItem("talekeeper.token");
  const answer = await fetch(`/api/v1/stories/${encodeURIComponent(story)}/turns?${asked}`, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  return (await answer.json()).turns[0].id;
}"""
STANDS = """() => {
  const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const panel = document.getElementById("panel");
  const [tab, story, branch, seat] = JSON.parse(panel?.dataset.where ?? "[]");
  return tab === (asked.tab ?? "prompt") && story === asked.story && branch === (asked.branch ?? "main") && seat === (asked.seat ?? "") && !panel.querySelector(".loading");
}"""


async def begin(page: Page, scenario: str = "tidelamp", seed: int = 7, name: str | None = None) -> None:
    """A scenario with its first hero in our hands, at the first turn."""
    await page.locator(f".scenario[data-scenario={scenario}] summary").click()
    chosen = page.locator(".scenario[open]")
    await chosen.locator("input[name=seed]").fill(str(seed))
    if name is not None:
        await chosen.locator("input[name=name]").fill(name)
    await chosen.get_by_role("button", name="Begin").click()
    await expect(page.locator("#answer")).to_be_visible()


async def sit(new_page: NewPage, story: str, **more: Any) -> Page:
    """A page at that story, between two rounds, with all that belongs to it."""
    page = await new_page(story, **more)
    await rested(page)
    await expect(page.locator(".seat[data-seat=dm]")).to_have_count(1)
    await expect(page.locator(".now")).to_contain_text("Turn")
    return page


async def rested(page: Page) -> None:
    """Waits until the round is over and all of it stands there: who has played it may know of its end before its last lines come."""
    await expect(page.locator("#step")).to_be_visible()
    await expect(page.locator(f"article[data-id='{await page.evaluate(NEWEST)}']")).to_be_attached()
    await expect(page.locator(".flight")).to_have_count(0)
    await expect(page.locator("#step")).to_be_visible()


async def rounds(page: Page, count: int) -> None:
    """Rounds in which we do what is nearest."""
    for _ in range(count):
        await expect(page.locator("#answer, #step")).to_have_count(1)
        if await page.locator("#step").count():
            await page.locator("#step").click()
        told = await page.locator(TOLD).count()
        await page.locator(".choice").first.click()
        await rested(page)
        await expect(page.locator(TOLD).nth(told)).to_be_visible()


async def whisper(page: Page, to: str, text: str) -> None:
    await page.locator("#mode-whisper").click()
    await page.get_by_role("checkbox", name=to).check()
    await page.locator("#whisper").fill(text)
    await page.locator("#composer .primary").click()
    await expect(page.locator("article.whisper", has_text=text)).to_be_visible()


async def view_as(page: Page, seat: str) -> None:
    await page.locator(f".seat[data-seat='{seat}']").click()
    await expect(page.locator(f".seat[data-seat='{seat}']")).to_have_attribute("aria-pressed", "true")
    await page.wait_for_function(STANDS)


async def open_tab(page: Page, tab: str) -> str:
    """The words in that panel, when it stands."""
    await page.locator(f"#tab-{tab}").click()
    await page.wait_for_function(STANDS)
    return await page.locator("#panel").inner_text()


async def undo_by_key(page: Page) -> None:
    """It asks first: whoever only believed to be writing takes nothing back."""
    await page.keyboard.press("u")
    await expect(page.get_by_role("dialog").get_by_role("button", name="Keep it")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")


async def budget(page: Page, tokens: int) -> None:
    await page.locator("#budget").fill(str(tokens))
    await expect(page.locator("#panel")).to_contain_text("Only to look")


async def scrub(page: Page, number: int) -> None:
    """Goes to the turn of that number on the timeline."""
    await page.locator("#scrub").fill(str(number))
    await expect(page.locator(".past")).to_be_visible()


async def texts(page: Page, which: str = TOLD) -> list[str]:
    """Every line that is shown. Found and read in one go: what is drawn anew in between has lost its paragraphs."""
    read = "which => [...document.querySelectorAll(which)].map((one) => one.innerText)"
    found: list[str] = await page.evaluate(read, f"{which} .words")
    return found


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Waits for something that `expect` has no words for."""
    end = time.monotonic() + PATIENCE / 1000
    while not await true():
        assert time.monotonic() < end, "it does not come"
        await asyncio.sleep(0.05)
