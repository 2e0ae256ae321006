"""Nothing on the page is in anyone's way: every state of it is looked at with axe, in the light and in the dark, large and small."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from tests.web.conftest import Api, Looked, NewPage, NewStory, Shot
from tests.web.hands import budget, open_tab, rested, scrub, sit, view_as

TABS = ("prompt", "memory", "ledger", "moments", "leaks")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_table_at_a_desk(new_page: NewPage, new_story: NewStory, accessible: Looked, shot: Shot, scheme: str) -> None:
    page = await new_page(await new_story(), scheme=scheme)
    await expect(page.locator("#step")).to_be_visible()
    for tab in TABS:
        await open_tab(page, tab)
        await accessible(page, f"{tab}, {scheme}", "#inspect")
        await shot(page, f"{tab}-{scheme}")
    await open_tab(page, "memory")
    await budget(page, 700)
    await page.locator(".fold.level-0 > .below > summary").first.click()
    await expect(page.locator(".sources li").first).to_be_visible()
    await page.locator(".fold").first.get_by_role("button", name="History").click()
    await expect(page.locator(".versions li").first).to_be_visible()
    await page.locator(".fold .sentence").first.click()
    await accessible(page, f"memory down to its turns, {scheme}", "#inspect", "#lit", "article.lit", "#time")
    await shot(page, f"memory-tree-{scheme}")
    await page.locator(".fold").first.get_by_role("button", name="Edit").click()
    await accessible(page, f"a memory being edited, {scheme}", "#inspect")
    await page.get_by_role("button", name="Cancel").click()
    await page.locator("#step").click()
    await expect(page.locator("#answer")).to_be_visible()
    await accessible(page, f"someone's turn, {scheme}", "#composer", "#rail")
    await page.locator("#mode-whisper").click()
    await accessible(page, f"whispering, {scheme}", "#composer")
    await page.keyboard.press("Escape")
    turn = page.locator("article.said[data-id]").last
    await turn.hover()
    await accessible(page, f"a turn's tools, {scheme}", "article:hover")
    await turn.get_by_role("button", name="Forget").click()
    await accessible(page, f"forgetting, {scheme}", "dialog")
    await shot(page, f"dialog-{scheme}")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await accessible(page, f"the keys, {scheme}", "dialog")
    await page.keyboard.press("Escape")
    await scrub(page, 30)
    await accessible(page, f"the past, {scheme}", "#composer", "#time", "#rail")
    await page.locator("#fork").click()
    await expect(page.locator(".branch")).to_have_count(2)
    await accessible(page, f"the table, {scheme}")
    await page.locator(".brand").click()
    await page.locator(".scenario summary").first.click()
    await accessible(page, f"the first page, {scheme}")
    await shot(page, f"home-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_table_in_a_hand(new_page: NewPage, new_story: NewStory, accessible: Looked, shot: Shot, scheme: str) -> None:
    phone = await new_page(await new_story(), width=390, height=844, touch=True, scheme=scheme)
    await expect(phone.locator("#step")).to_be_visible()
    await accessible(phone, f"a phone, {scheme}")
    for pane in ("rail", "time", "inspect"):
        await phone.locator(f"[data-to={pane}]").tap()
        await accessible(phone, f"a phone's {pane}, {scheme}", "#table")
    for tab in TABS:
        await open_tab(phone, tab)
        await accessible(phone, f"a phone's {tab}, {scheme}", "#inspect")
    await shot(phone, f"phone-leaks-{scheme}")


async def test_what_is_told_is_read_out_once_and_what_stands_there_already_is_not(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    log = page.get_by_role("log")
    await expect(log).to_have_attribute("aria-live", "polite")
    await expect(log.locator("p")).to_have_count(0)
    await page.locator("#step").click()
    await expect(page.locator("#answer")).to_be_visible()
    before = await log.locator("p").all_inner_texts()
    assert before, "what leads up to one's turn is heard before one acts"
    await page.locator("#answer").fill("I count the crows.")
    await page.locator("#answer").press("Enter")
    await rested(page)
    await expect(log.locator("p", has_text="Nell Tarn: I count the crows.")).to_have_count(1)
    heard = await log.locator("p").all_inner_texts()
    assert heard[: len(before)] == before
    told = (await api("GET", f"/stories/{story}/turns", newest=True, limit=len(heard)))["turns"]
    assert [turn["text"].split() for turn in told] == [
        text.removeprefix(f"{turn['voice']}: ").split() for turn, text in zip(told, heard, strict=True)
    ]
    await page.locator("#scroll").evaluate("one => { one.scrollTop = 0; }")
    await view_as(page, "osric")
    await expect(log.locator("p")).to_have_count(0)
