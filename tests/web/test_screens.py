"""Small screens, wide ones, and none that runs scripts: what is shown keeps to its place."""

from __future__ import annotations

import pytest
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


async def test_a_box_to_tick_is_as_large_beside_a_long_name_as_beside_a_short_one(new_page: NewPage, api: Api) -> None:
    seats = [
        {"id": "dm", "role": "dm"},
        {"id": "a", "name": "Ann"},
        {"id": "b", "name": "Bartholomew of the house of Longshanks, the third of that name"},
    ]
    story = (await api("POST", "/stories", {"user": "ana", "name": "names", "seats": seats}))["id"]
    phone = await new_page(story, width=390, height=844, touch=True)
    await phone.locator("#mode-whisper").tap()
    short, long = [await phone.locator(f"#ear-{seat}").bounding_box() for seat in "ab"]
    assert short is not None
    assert long is not None
    assert (long["width"], long["height"]) == (short["width"], short["height"])


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


@pytest.mark.parametrize(("width", "height", "touch"), [(800, 400, True), (844, 390, True), (1280, 400, False), (640, 260, True)])
async def test_there_is_always_a_box_to_answer_in(new_page: NewPage, api: Api, width: int, height: int, touch: bool) -> None:
    game = {"name": f"low-{width}-{height}", "scenario": "tidelamp", "party": ["nell", "osric"], "humans": ["nell"]}
    story = (await api("POST", "/games", game))["id"]
    await api("POST", f"/stories/{story}/step")
    await api.rested(story)
    page = await new_page(story, width=width, height=height, touch=touch)
    await expect(page.locator("#answer")).to_be_in_viewport(ratio=1)
    await expect(page.locator("#composer .primary")).to_be_in_viewport(ratio=1)
    await page.locator("#answer").fill("I wait.\n" * 20)
    await expect(page.locator("#composer .primary")).to_be_in_viewport(ratio=1)
    assert await page.locator("#scroll").evaluate("one => one.clientHeight") >= 60
    if height > 300:
        await page.locator("#mode-whisper").click()
        await expect(page.locator("#whisper")).to_be_in_viewport(ratio=1)


COVERED = """turn => {
  const strip = turn.querySelector(".foot").getBoundingClientRect();
  const covered = [];
  for (const words of document.querySelectorAll("article .words, article .who, .place span")) {
    const range = document.createRange();
    range.selectNodeContents(words);
    for (const line of range.getClientRects()) {
      const over = Math.min(line.bottom, strip.bottom) - Math.max(line.top, strip.top);
      if (over > 4 && line.left < strip.right && line.right > strip.left) covered.push([words.innerText.slice(0, 40), over]);
    }
  }
  return covered;
}"""


async def test_the_tools_of_a_turn_cover_no_words(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    for kind in ("event", "said", "told", "whisper"):
        turn = page.locator(f"article.{kind}[data-id]").last
        await turn.hover()
        await expect(turn.locator(".foot")).to_be_visible()
        assert await turn.evaluate(COVERED) == [], kind
    last = page.locator("article[data-id]").last
    await last.hover()
    await expect(last.get_by_role("button", name="Forget")).to_be_in_viewport(ratio=1)


async def test_a_phone_exports_too(new_page: NewPage, new_story: NewStory) -> None:
    phone = await sit(new_page, await new_story(), width=390, height=844, touch=True)
    async with phone.expect_download():
        await phone.get_by_role("button", name="Export the story").tap()
    assert await phone.locator("#top").evaluate("one => one.scrollWidth <= one.clientWidth")
