"""What people do at the table, by mouse."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect
from tests.web.conftest import NewPage

TOLD = "article[data-id]"


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
    """A page at that story, between two rounds."""
    page = await new_page(story, **more)
    await expect(page.locator("#step")).to_be_visible()
    await expect(page.locator(TOLD)).not_to_have_count(0)
    return page


async def rounds(page: Page, count: int) -> None:
    """Rounds in which we do what is nearest."""
    for _ in range(count):
        await expect(page.locator("#answer, #step")).to_have_count(1)
        if await page.locator("#step").count():
            await page.locator("#step").click()
        told = await page.locator(TOLD).count()
        await page.locator(".choice").first.click()
        await expect(page.locator("#step")).to_be_visible()
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
    await expect(page.locator("#turns .loading")).to_have_count(0)


async def open_tab(page: Page, tab: str) -> str:
    """The words in that panel, when it stands."""
    await page.locator(f"#tab-{tab}").click()
    panel = page.locator(f"#panel[data-tab={tab}]:not(:has(.loading))")
    await expect(panel).to_be_visible()
    return await panel.inner_text()


async def budget(page: Page, tokens: int) -> None:
    await page.locator("#budget").fill(str(tokens))
    await expect(page.locator("#panel")).to_contain_text("Only to look")


async def scrub(page: Page, number: int) -> None:
    """Goes to the turn of that number on the timeline."""
    await page.locator("#scrub").fill(str(number))
    await expect(page.locator(".past")).to_be_visible()


async def texts(page: Page) -> list[str]:
    """Every line that is shown."""
    return await page.locator(f"{TOLD} .words").all_inner_texts()
