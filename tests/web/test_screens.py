"""Small screens, wide ones, and none that runs scripts: what is shown keeps to its place."""

from __future__ import annotations

from playwright.async_api import Browser, expect
from tests.web.conftest import Api, NewPage, NewStory, Server
from tests.web.hands import sit


async def test_long_names_and_what_is_said_are_in_nobodys_way_on_a_phone(new_page: NewPage, api: Api) -> None:
    story = (await api("POST", "/games", {"name": "A" * 80, "scenario": "tidelamp", "party": ["nell"], "humans": ["nell"]}))["id"]
    phone = await new_page(width=390, height=844, touch=True, refused=("404",))
    row = phone.locator(".row", has_text="A" * 80)
    await expect(row.locator(".faces .dot")).to_be_in_viewport(ratio=1)
    assert await phone.locator(".home-scroll").evaluate("one => one.scrollWidth <= one.clientWidth")
    await row.tap()
    await phone.locator("#step").tap()
    await expect(phone.locator("#answer")).to_be_visible()
    await phone.evaluate("story => { location.hash = `story=${story}&branch=nowhere`; }", story)
    await expect(phone.locator(".toast")).to_be_visible()
    await expect(phone.locator("#answer")).to_be_visible()
    said, composer, top = [await phone.locator(one).bounding_box() for one in (".toast", "#composer", "#top")]
    assert said is not None
    assert composer is not None
    assert top is not None
    assert top["y"] + top["height"] <= said["y"]
    assert said["y"] + said["height"] <= composer["y"]


async def test_nothing_reaches_beyond_its_column_whatever_the_width(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    for width in (360, 390, 768, 900, 1000, 1121, 1440):
        await page.set_viewport_size({"width": width, "height": 800})
        for pane in ("rail", "time", "inspect"):
            if width <= 860:
                await page.locator(f"[data-to={pane}]").click()
            beyond = await page.locator(f"#{pane}, #{pane} > *, #top").evaluate_all(
                "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline').map((one) => one.className || one.id)"
            )
            assert beyond == [], (width, pane)


async def test_without_scripts_the_page_says_what_it_needs(browser: Browser, served: Server) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(served.url)
    assert await page.locator("noscript").is_visible()
    assert not await page.get_by_text("Opening the book").is_visible()
    await context.close()


async def test_a_tap_shows_who_heard_a_turn_and_covers_nothing(new_page: NewPage, new_story: NewStory) -> None:
    phone = await sit(new_page, await new_story(), width=390, height=844, touch=True)
    turn = phone.locator("article.said[data-id]").last
    await turn.locator(".words").tap()
    await expect(turn.locator(".foot")).to_contain_text("heard by Nell Tarn")
    words, foot, then = [await turn.locator(one).bounding_box() for one in (".words", ".foot", ".hearers")]
    assert words is not None
    assert foot is not None
    assert then is not None
    assert words["y"] + words["height"] <= foot["y"]
    assert then["y"] < words["y"]
    await turn.locator(".words").tap()
    await expect(turn.locator(".foot")).to_be_hidden()
