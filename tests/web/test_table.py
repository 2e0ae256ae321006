"""The web table, as people use it: in Chromium, against a real server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect
from tests.web.conftest import NewPage

Shot = Callable[[Page, str], Awaitable[None]]
SECRET = "The steward counts his coins with his left hand."


async def begin(page: Page) -> None:
    """The Tidelamp with Nell in our hands, at her first turn."""
    await page.locator(".scenario summary", has_text="The Tidelamp").click()
    chosen = page.locator(".scenario[open]")
    await chosen.locator("input[name=seed]").fill("7")
    await chosen.get_by_role("button", name="Begin").click()
    await expect(page.locator("#answer")).to_be_visible()


async def rounds(page: Page, count: int) -> None:
    """Rounds in which Nell does what is nearest."""
    for _ in range(count):
        if not await page.locator("#answer").is_visible():
            await page.locator("#step").click()
        await page.locator(".choice").first.click()
        await expect(page.locator("#step")).to_be_visible()


async def whisper(page: Page, to: str, text: str) -> None:
    await page.get_by_role("button", name="Whisper", exact=True).click()
    await page.get_by_label(to, exact=True).check()
    await page.locator("#whisper").fill(text)
    await page.locator("#composer .primary").click()
    await expect(page.locator("article.whisper", has_text=text)).to_be_visible()


async def view_as(page: Page, name: str) -> None:
    await page.locator(".seat", has_text=name).click()
    await expect(page.locator(".seat", has_text=name)).to_have_attribute("aria-pressed", "true")


async def test_a_whisper_is_seen_by_its_hearer_and_found_in_no_other_view(new_page: NewPage, shot: Shot) -> None:
    page = await new_page()
    await begin(page)
    await shot(page, "first-turn")
    await whisper(page, "Nell Tarn", SECRET)
    await rounds(page, 2)
    await expect(page.locator("article.whisper")).to_contain_text(SECRET)
    await shot(page, "whisper")
    await view_as(page, "Nell Tarn")
    await expect(page.locator("#turns")).to_contain_text(SECRET)
    await view_as(page, "Osric Vey")
    await expect(page.locator("#turns")).not_to_contain_text(SECRET)
    for tab in ("prompt", "memory", "ledger", "moments"):
        await page.locator(f"#tab-{tab}").click()
        await expect(page.locator(f"#panel[data-tab={tab}]")).to_be_visible()
        await page.wait_for_timeout(300)
        assert SECRET not in await page.locator("#panel").inner_text()


async def test_undo_and_fork_and_every_panel_shows_that_point(new_page: NewPage, shot: Shot) -> None:
    page = await new_page()
    await begin(page)
    await rounds(page, 2)
    told = await page.locator("article[data-id]").count()
    await rounds(page, 1)
    await page.locator("#undo").click()
    await expect(page.locator("article[data-id]")).to_have_count(told)
    shown = told - 4
    await page.locator("#scrub").fill(str(shown - 1))
    await expect(page.locator("article[data-id]")).to_have_count(shown)
    await expect(page.locator(".past")).to_be_visible()
    await shot(page, "past")
    await page.locator("#fork").click()
    await expect(page.locator(".branch[aria-pressed=true]")).not_to_have_text("main")
    await expect(page.locator("article[data-id]")).to_have_count(shown)
    await rounds(page, 1)
    await page.get_by_role("button", name="main", exact=True).click()
    await expect(page.locator("article[data-id]")).to_have_count(told)


async def test_a_memory_is_pinned_edited_and_forgotten_and_all_is_there_after_a_reload(new_page: NewPage, shot: Shot) -> None:
    page = await new_page()
    await begin(page)
    await rounds(page, 4)
    await page.locator("#tab-memory").click()
    fold = page.locator(".fold").first
    await fold.locator(".sentence").first.hover()
    await expect(page.locator("article.lit")).not_to_have_count(0)
    await shot(page, "memory")
    await fold.get_by_role("button", name="edit").first.click()
    await page.get_by_label("The memory").fill("Marlo hired us, and it rained.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".fold-text", has_text="Marlo hired us, and it rained.")).to_be_visible()
    turn = page.locator("article.someone[data-id]").last
    await turn.hover()
    await turn.get_by_role("button", name="Pin").click()
    await expect(page.locator("article.pinned")).to_have_count(1)
    gone = page.locator("article.someone[data-id]").nth(-2)
    words, told = await gone.inner_text(), await page.locator("article[data-id]").count()
    await gone.hover()
    await gone.get_by_role("button", name="Forget").click()
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    await expect(page.locator("article[data-id]")).to_have_count(told - 1)
    before = await page.locator("article[data-id] p").all_inner_texts()
    await page.reload()
    await expect(page.locator("article[data-id]")).to_have_count(told - 1)
    assert await page.locator("article[data-id] p").all_inner_texts() == before
    assert words not in "\n".join(before)
    await expect(page.locator("article.pinned")).to_have_count(1)
    await expect(page.locator("#panel")).to_contain_text("Marlo hired us, and it rained.")


async def test_two_browsers_play_one_story(new_page: NewPage) -> None:
    one = await new_page()
    await begin(one)
    two = await new_page("/" + "#" + one.url.partition("#")[2])
    await expect(two.locator("#answer")).to_be_visible()
    await two.locator("#answer").fill("I whistle a low note and wait.")
    await two.locator("#answer").press("Enter")
    await expect(one.locator("article[data-id]", has_text="I whistle a low note and wait.")).to_be_visible()
    await expect(one.locator("#step")).to_be_visible()
    assert await one.locator("article[data-id] p").all_inner_texts() == await two.locator("article[data-id] p").all_inner_texts()


async def test_story_text_is_text(new_page: NewPage) -> None:
    page = await new_page()
    await begin(page)
    await page.locator("#answer").fill("<img src=x onerror=alert(1)><b>bold</b>")
    await page.locator("#answer").press("Enter")
    await expect(page.locator("article.someone", has_text="<b>bold</b>")).to_be_visible()
    assert await page.locator("#turns img, #turns b").count() == 0


async def test_it_is_there_in_the_dark_on_a_phone_and_by_keyboard(new_page: NewPage, shot: Shot) -> None:
    page = await new_page(scheme="dark")
    await expect(page.locator(".scenario").first).to_be_visible()
    await shot(page, "home")
    await begin(page)
    await rounds(page, 2)
    await page.locator("#tab-leaks").click()
    await expect(page.locator(".matrix")).to_be_visible()
    await shot(page, "dark")
    await page.locator("#scroll").focus()
    await page.keyboard.press("n")
    await expect(page.locator("#answer")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    phone = await new_page("/" + "#" + page.url.partition("#")[2], width=390, height=844)
    await expect(phone.locator("#answer")).to_be_visible()
    await shot(phone, "phone")
    await phone.get_by_role("button", name="Memory", exact=True).click()
    await expect(phone.locator("#panel")).to_be_visible()
    await shot(phone, "phone-memory")
    assert await phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
