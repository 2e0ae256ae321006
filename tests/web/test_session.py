"""A whole session at the table, as the tutorial tells it. Its pictures are those of docs/web.md."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.async_api import expect
from tests.web.conftest import ROOT, SECRET, NewPage, Server, Shot
from tests.web.hands import TOLD, begin, budget, open_tab, rounds, scrub, texts, view_as, whisper

PICTURES = ["home", "first-turn", "whisper", "view-as", "prompt", "memory", "past", "branches", "phone"]


async def test_a_session_of_ten_rounds(new_page: NewPage, own_server: Callable[..., Server], shot: Shot) -> None:
    server = own_server()
    page = await new_page(server=server.url)
    await page.locator(".scenario[data-scenario=tidelamp] summary").click()
    await expect(page.locator(".scenario[open] .heroes li")).to_have_count(4)
    await page.locator(".scenario[open] form").evaluate("one => one.scrollIntoView({ block: 'end' })")
    await shot(page, "home", docs=True)
    await page.locator(".scenario[data-scenario=tidelamp] summary").click()
    await begin(page, name="ten-rounds")
    await shot(page, "first-turn", docs=True)

    await view_as(page, "")
    await whisper(page, "Nell Tarn", SECRET)
    await page.locator("article.whisper").evaluate("one => one.scrollIntoView({ block: 'center' })")
    await page.locator("article.whisper .hearers").hover()
    await shot(page, "whisper", docs=True)
    await rounds(page, 10)
    told = await texts(page)
    assert len(told) > 60
    assert SECRET in told

    await view_as(page, "osric")
    await expect(page.locator(TOLD).first).to_be_visible()
    await shot(page, "view-as", docs=True)
    for tab in ("prompt", "memory", "ledger", "moments", "leaks"):
        assert SECRET not in await open_tab(page, tab)
    assert SECRET not in await page.locator("body").inner_text()
    await view_as(page, "nell")
    await expect(page.locator("#turns")).to_contain_text(SECRET)
    await view_as(page, "")

    await open_tab(page, "prompt")
    await budget(page, 1200)
    await expect(page.locator(".bar .part")).not_to_have_count(0)
    await shot(page, "prompt", docs=True)
    await open_tab(page, "memory")
    await page.locator(".fold .sentence").first.click()
    await expect(page.locator("article.lit").first).to_be_in_viewport()
    await shot(page, "memory", docs=True)
    await page.keyboard.press("Escape")

    numbers = [int(words.split()[1]) for words in await page.locator(f"{TOLD} .foot > .muted").all_text_contents()]
    await scrub(page, numbers[len(numbers) // 2])
    await expect(page.locator(TOLD)).to_have_count(len(numbers) // 2 + 1)
    await expect(page.locator("[data-key=keep-limit]")).to_have_count(0)  # the panel is there too: the past is not to be changed
    await shot(page, "past", docs=True)
    await page.locator("#fork").click()
    await expect(page.locator(".branch[aria-pressed=true]")).to_have_text("fork-1")
    await rounds(page, 1)
    await page.locator("#undo").click()
    await expect(page.locator(".toast").first).to_contain_text("taken back")
    await expect(page.locator(".branch")).to_have_count(3)
    await rounds(page, 1)
    await expect(page.locator(".toast")).to_have_count(0)
    await shot(page, "branches", docs=True)

    await page.locator(".branch[data-branch=main]").click()
    await expect(page.locator(TOLD)).to_have_count(len(told))
    await page.reload()
    await expect(page.locator(TOLD)).to_have_count(len(told))
    assert await texts(page) == told
    await expect(page.locator(".branch")).to_have_count(3)
    phone = await new_page("local.ten-rounds", server=server.url, width=390, height=844, touch=True)
    await phone.locator("#step").tap()
    await expect(phone.locator("#answer")).to_be_visible()
    await shot(phone, "phone", docs=True)


def test_the_tutorial_shows_the_pictures_that_are_taken_here() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(images/([\w-]+)\.png\)", (ROOT / "docs" / "web.md").read_text())
    taken = {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}
    assert sorted(shown) == sorted(PICTURES)
    assert set(shown) <= taken
    assert "TALEKEEPER_IMAGES=docs" in (ROOT / "CONTRIBUTING.md").read_text()
