"""Whatever stands in the address: the page shows what there is, says what there is not, and offers a way on."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from playwright.async_api import Error, Page, Route, expect
from tests.web.conftest import Api, NewPage, NewStory
from tests.web.hands import TOLD, sit, view_as


async def go(page: Page, address: str) -> None:
    await page.evaluate("address => { location.hash = address; }", address)


async def told(page: Page, *words: str) -> None:
    """What was said, each in a toast of its own; they are dismissed."""
    for word in words:
        await expect(page.locator(".toast.bad").first).to_contain_text(word)
        await page.locator(".toast.bad").first.get_by_role("button", name="Dismiss").click()
    await expect(page.locator(".toast")).to_have_count(0)


async def test_an_address_that_names_what_is_not_there_shows_the_story_as_it_is(new_page: NewPage, new_story: NewStory) -> None:
    story = await new_story()
    page = await sit(new_page, story, refused=("404", "422"))
    whole = await page.locator(TOLD).count()
    for odd, said in (
        ("branch=nowhere", ["a branch that is not there. This is the main line"]),
        (f"branch={'x' * 2000}", ["a branch"]),
        ("branch=%00", ["a branch"]),
        ("seat=nobody", ["a seat that is not there. This is the story as it is now."]),
        (f"seat={'x' * 2000}", ["a seat"]),
        ("at=99999", ["a turn that is not there"]),
        ("at=" + "9" * 90, ["a turn"]),
        ("at=garbage&tab=memory", ["a turn"]),
        (f"at={'x' * 2000}", ["a turn"]),
        ("branch=nowhere&seat=nobody&at=garbage", ["a branch", "a seat"]),
        ("tab=constructor", []),
    ):
        await go(page, f"story={story}&{odd}")
        await told(page, *said)
        await expect(page.locator(TOLD)).to_have_count(whole)
        await expect(page.locator("#step")).to_be_visible()
        await expect(page.locator("#panel .loading")).to_have_count(0)
        assert await page.evaluate("location.hash.split('&').length") <= 2, "the address is that of what is shown"
    await go(page, f"story={story}&at=0")
    await expect(page.locator("#turns .empty-title")).to_have_text("Before the first line")
    await page.get_by_role("button", name="Back to now").click()
    await expect(page.locator(TOLD)).to_have_count(whole)


async def test_what_is_refused_late_is_not_laid_to_where_one_is_by_then(new_page: NewPage, new_story: NewStory) -> None:
    """The parts of a story that were asked for at an address are answered when the page has left it already."""
    story = await new_story()
    page = await new_page(refused=("404",))
    loading, there, asked, told_so = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def held(route: Route) -> None:
        line, odd = "/events?" in route.request.url, "seat=nobody" in route.request.url
        if line and odd:
            there.set()
            await asked.wait()
        elif odd:
            asked.set()
            await told_so.wait()
        elif "/turns?" in route.request.url:
            loading.set()
            await there.wait()
        with suppress(Error):  # it was given up meanwhile
            await route.continue_()

    await page.route(f"**/stories/{story}**", held)
    await go(page, f"story={story}")
    await loading.wait()
    await go(page, f"story={story}&seat=nobody")
    await expect(page.locator(".toast.bad")).to_contain_text("a seat that is not there")
    told_so.set()
    await expect(page.locator(TOLD)).not_to_have_count(0)
    await expect(page.locator(".toast.bad")).to_have_count(1)


@pytest.mark.parametrize("part", ["?branch=main", "/play?branch=main"])
async def test_who_leaves_while_a_story_is_being_opened_asks_for_nothing_more(new_page: NewPage, new_story: NewStory, part: str) -> None:
    story = await new_story()
    page = await new_page()
    await expect(page.locator(".scenario").first).to_be_visible()
    left, asked = asyncio.Event(), []
    page.on("request", lambda request: asked.append(request.url))

    async def held(route: Route) -> None:
        await left.wait()
        await route.continue_()

    await page.route(f"**/stories/{story}{part}", held)
    async with page.expect_request(lambda request: request.url.endswith(story + part)):
        await go(page, f"story={story}")
    await page.locator(".brand").click()
    await expect(page.locator(".scenario").first).to_be_visible()
    asked.clear()
    async with page.expect_response(lambda answer: answer.url.endswith(story + part)):
        left.set()
    await page.evaluate("fetch('/api/v1/me')")  # time enough to ask for more
    assert [url for url in asked if "branch=" in url] == []  # what the list of stories asks for names none


UNHURRIED = """() => {
  const soon = window.setTimeout;
  window.setTimeout = (work, time, ...more) => soon(work, time === 20 ? 800 : time, ...more);
}"""


async def test_what_happens_in_a_story_as_one_leaves_it_is_not_asked_for_elsewhere(
    new_page: NewPage, new_story: NewStory, api: Api
) -> None:
    """What happened is about to be looked up when the page is at no story any more."""
    story = await new_story()
    page = await sit(new_page, story)
    await page.evaluate(UNHURRIED)
    await api("POST", f"/stories/{story}/turns", {"speaker": "dm", "text": "A bell, far out."})
    await expect(page.locator(TOLD).last).to_contain_text("A bell, far out.")
    await page.locator(".brand").click()
    await expect(page.locator(".scenario").first).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await asyncio.sleep(1)
    assert [url for url in asked if "branch=" in url] == []


async def test_an_address_of_no_story_leads_to_those_that_there_are(new_page: NewPage) -> None:
    page = await new_page(refused=("404", "422"))
    for odd in (
        "nothing",
        "local.a~zz",
        "local.~ff",
        "..",
        "../me",
        "a/b",
        "a%3Fb",
        "%F0%9F%98%80",
        "q" * 6000,
        "local.none&branch=x&seat=y&at=z",
    ):
        await go(page, f"story={odd}")
        await told(page, "There is no such story here.")
        await expect(page.locator(".scenario").first).to_be_visible()
    await go(page, "rubbish")
    await expect(page.locator(".scenario").first).to_be_visible()


@pytest.mark.parametrize("way", ["Try again", "All stories"])
async def test_a_story_that_the_server_cannot_show_says_so_and_lets_one_go(new_page: NewPage, new_story: NewStory, way: str) -> None:
    page = await new_page(refused=("500",))
    await page.route("**/turns?**", lambda route: route.fulfill(status=500, json={"type": "urn:talekeeper:bug", "detail": "It is broken."}))
    await go(page, f"story={await new_story()}")
    await expect(page.locator(".empty-title")).to_have_text("This story cannot be opened")
    await expect(page.locator(".empty")).to_contain_text("It is broken.")
    await page.unroute("**/turns?**")
    await page.get_by_role("button", name=way).click()
    await expect(page.locator(TOLD if way == "Try again" else ".scenario").first).to_be_visible()


async def test_back_leads_out_of_a_view_and_not_out_of_the_story(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    whole = await page.locator(TOLD).count()
    await view_as(page, "nell")
    await page.locator("#scrub").fill("5")
    await expect(page.locator(".past")).to_be_visible()
    await page.go_back()
    await expect(page.locator(".past")).to_have_count(0)
    await expect(page.locator(".seat[data-seat=nell]")).to_have_attribute("aria-pressed", "true")
    await page.go_back()
    await expect(page.locator(".seat[data-seat='']")).to_have_attribute("aria-pressed", "true")
    await expect(page.locator(TOLD)).to_have_count(whole)
    await page.go_forward()
    await expect(page.locator(".seat[data-seat=nell]")).to_have_attribute("aria-pressed", "true")


async def test_back_closes_a_panel_on_a_phone(new_page: NewPage, new_story: NewStory) -> None:
    phone = await new_page(width=390, height=844, touch=True)
    await expect(phone.locator(".scenario").first).to_be_visible()
    await go(phone, f"story={await new_story()}")
    await expect(phone.locator("#step")).to_be_visible()
    await phone.locator("[data-to=inspect]").tap()
    await phone.locator("[data-to=time]").tap()
    await phone.reload()
    await expect(phone.locator("#scrub")).to_be_visible()
    await phone.go_back()
    await expect(phone.locator("#panel")).to_be_visible()
    await phone.go_back()
    await expect(phone.locator("#turns")).to_be_visible()
    await phone.go_back()
    await expect(phone.locator(".scenario").first).to_be_visible()
