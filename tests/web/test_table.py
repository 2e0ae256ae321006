"""The web table, as people use it: in Chromium, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import httpx
from playwright.async_api import Route, expect
from tests.web.conftest import HERE, SECRET, Api, NewPage, NewStory, Server, Shot
from tests.web.hands import TOLD, begin, budget, open_tab, rested, rounds, scrub, sit, texts, undo_by_key, until, view_as

# -- coming and going --------------------------------------------------------------------------------------------------


async def test_a_story_is_begun_left_resumed_exported_and_imported(new_page: NewPage, tmp_path: Path) -> None:
    page = await new_page(refused=("409", "422"))  # the name is taken; what is no story
    await begin(page, "quiet_snow", name="Schnee & Stille")
    await rounds(page, 1)
    told = await texts(page)
    async with page.expect_download() as waited:
        await page.locator("#export").click()
    file = tmp_path / "schnee.jsonl"
    await (await waited.value).save_as(file)
    await page.locator(".brand").click()
    await page.locator(".row", has_text="Schnee & Stille").click()
    await expect(page.locator(TOLD)).to_have_count(len(told))
    assert await texts(page) == told
    await page.locator(".brand").click()
    await page.locator("#import").set_input_files(file)
    await page.get_by_role("dialog").get_by_label("Name").fill("Schnee, noch einmal")
    await page.get_by_role("dialog").get_by_role("button", name="Import").click()
    await expect(page.locator(TOLD)).to_have_count(len(told))
    await expect(page.locator("#top")).to_contain_text("Schnee, noch einmal")
    await rounds(page, 1)
    await page.locator(".brand").click()
    file.write_text("this is no story\n")
    await page.locator("#import").set_input_files(file)
    await expect(page.locator(".toast.bad")).to_contain_text("This cannot be imported.")


async def test_a_story_that_is_not_there_says_so(new_page: NewPage) -> None:
    page = await new_page("local.nothing", refused=("404",))
    await expect(page.locator(".toast.bad")).to_contain_text("There is no such story here.")
    await expect(page.locator(".scenario").first).to_be_visible()


async def test_undo_takes_one_turn_back_whatever_is_looked_at(new_page: NewPage, api: Api) -> None:
    seats = [{"id": "dm", "role": "dm"}, {"id": "rogue", "name": "Ann"}, {"id": "bard", "name": "Bo"}]
    story = (await api("POST", "/stories", {"name": "plain-undo", "seats": seats}))["id"]
    for number in range(6):
        whisper = {"kind": "whisper", "heard_by": ["bard"]} if number in (1, 2, 4) else {}
        await api("POST", f"/stories/{story}/turns", {"speaker": "dm", "text": f"Turn {number}.", **whisper})
    page = await new_page(story)
    await expect(page.locator(TOLD)).to_have_count(6)
    await view_as(page, "rogue")
    await page.keyboard.press("Escape")
    await page.keyboard.press("u")
    await view_as(page, "")
    await expect(page.locator(TOLD)).to_have_count(6)
    await page.keyboard.press("Escape")
    await undo_by_key(page)
    await expect(page.locator(TOLD)).to_have_count(5)
    await scrub(page, 2)
    await page.keyboard.press("u")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page.locator(TOLD)).to_have_count(5)
    assert (await api("GET", f"/stories/{story}"))["turns"] == 5


async def test_a_story_without_a_game_is_told_and_whispered_and_undone(new_page: NewPage, api: Api) -> None:
    seats = [{"id": "dm", "role": "dm"}, {"id": "rogue", "name": "Ann"}, {"id": "bard", "name": "Bo"}]
    story = (await api("POST", "/stories", {"name": "plain", "seats": seats}))["id"]
    page = await new_page(story)
    await expect(page.locator("#turns .empty-title")).to_contain_text("A blank page")
    await page.locator("#answer").fill("The road goes on.")
    await page.locator("#answer").press("Enter")
    await expect(page.locator(TOLD)).to_have_count(1)
    await page.locator("#mode-whisper").click()
    await page.get_by_role("checkbox", name="Ann").check()
    await page.locator("#whisper").fill("Not to Bo.")
    await page.locator("#whisper").press("Enter")
    await expect(page.locator("article.whisper")).to_have_count(1)
    assert "Not to Bo." in await open_tab(page, "leaks")
    await view_as(page, "bard")
    await expect(page.locator(TOLD)).to_have_count(1)
    await view_as(page, "")
    await page.locator("#undo").click()
    await expect(page.locator(TOLD)).to_have_count(1)


async def test_names_are_there_whatever_comes_first_and_whoever_comes_later(new_page: NewPage, api: Api) -> None:
    seats = [{"id": "dm", "role": "dm"}, {"id": "mira", "name": "Mira of the Mill", "role": "npc"}]
    story = (await api("POST", "/stories", {"name": "names", "seats": seats}))["id"]
    await api("POST", f"/stories/{story}/turns", {"speaker": "mira", "text": "Flour is dear."})
    page = await new_page()
    told = asyncio.Event()

    async def held(route: Route) -> None:
        await told.wait()
        await route.continue_()

    await page.route(f"**/stories/{story}/seats?**", held)
    await page.evaluate("story => { location.hash = `story=${story}`; }", story)
    await expect(page.locator(TOLD)).to_have_count(1)
    told.set()
    await expect(page.locator(f"{TOLD} .who")).to_have_text("Mira of the Mill")
    await expect(page.locator(f"{TOLD} .hearers")).to_have_attribute("title", "heard by Mira of the Mill")
    await api("PUT", f"/stories/{story}/seats/jon", {"name": "Jon the Carter", "role": "npc"})
    await api("POST", f"/stories/{story}/turns", {"speaker": "jon", "text": "So is hay."})
    await expect(page.locator(f"{TOLD} .who")).to_have_text(["Mira of the Mill", "Jon the Carter"])


async def test_who_plays_sees_what_their_hero_sees_from_the_first_line(new_page: NewPage, own_server: Callable[..., Server]) -> None:
    server = own_server()
    page = await new_page(server=server.url)
    await begin(page, name="own-eyes")
    await expect(page.locator(".seat[data-seat=nell]")).to_have_attribute("aria-pressed", "true")
    async with httpx.AsyncClient(base_url=f"{server.url}/api/v1") as http:
        for to, text in (("osric", SECRET), ("nell", "For you.")):
            answer = await http.post("/stories/local.own-eyes/whisper", json={"speaker": "dm", "to": [to], "text": text})
            assert answer.is_success, answer.text
    await expect(page.locator("article.whisper", has_text="For you.")).to_be_visible()
    assert SECRET not in await page.locator("body").inner_text()
    await page.locator(".brand").click()
    await page.locator(".row", has_text="own-eyes").click()  # and so they do when they come back
    await expect(page.locator(".seat[data-seat=nell]")).to_have_attribute("aria-pressed", "true")
    await view_as(page, "")
    await expect(page.locator("article.whisper", has_text=SECRET)).to_be_visible()


async def test_how_far_a_story_is_is_the_same_number_everywhere(new_page: NewPage, own_server: Callable[..., Server]) -> None:
    page = await new_page(server=own_server().url)
    await begin(page, name="how-far")
    await rounds(page, 2)
    await expect(page.locator(".now")).to_contain_text("now")
    far = (await page.locator(".now strong").inner_text()).lower()
    assert far.startswith("turn ")
    await page.locator(".brand").click()
    await expect(page.locator(".row", has_text="how-far").locator(".muted")).to_have_text(far)
    await expect(page.locator(".row", has_text="how-far").locator(".faces .dot")).to_have_count(3)
    await page.locator(".row", has_text="how-far").click()
    await expect(page.locator(".now strong")).to_have_text(far, ignore_case=True)


async def test_a_story_needs_a_name_and_the_page_says_so(new_page: NewPage) -> None:
    page = await new_page()
    await page.locator(".scenario[data-scenario=tidelamp] summary").click()
    name = page.locator(".scenario[open] input[name=name]")
    for blank in ("", "   "):
        await name.fill(blank)
        await page.locator(".scenario[open]").get_by_role("button", name="Begin").click()
        await expect(name).to_be_focused()
        assert "Give the story a name" in await name.evaluate("one => one.validationMessage")
    await expect(page.locator("#table")).to_have_count(0)
    await name.fill("  named at last  ")
    await page.locator(".scenario[open]").get_by_role("button", name="Begin").click()
    await expect(page.locator("#top")).to_contain_text("named at last")


# -- playing -----------------------------------------------------------------------------------------------------------


async def test_seats_are_taken_over_and_the_ai_plays_pauses_and_steps(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    told = await page.locator(TOLD).count()
    await page.locator("[data-key=plays-nell]").click()
    await expect(page.locator("[data-key=plays-nell]")).to_have_text("AI")
    await page.locator("#step-once").click()
    await expect(page.locator(TOLD).nth(told)).to_be_visible()  # a whole round without anybody's answer
    await page.locator("#auto").click()
    await expect(page.locator("#auto")).to_have_text("Pause")
    rounds_before = int((await page.locator(".now strong").inner_text()).split()[1])
    await expect(page.locator(f".now strong:not(:text-is('Turn {rounds_before}'))")).to_be_visible()
    await page.locator("#auto").click()
    await expect(page.locator("#auto")).to_have_text("Play")
    await expect(page.locator("#step")).to_be_visible()
    await page.locator("[data-key=plays-osric]").click()
    await expect(page.locator("[data-key=plays-osric]")).to_have_text("you")
    await page.locator("#step").click()
    await expect(page.locator(".turn-of")).to_contain_text("Osric Vey")
    await page.locator("#answer").fill("I sit down, and say nothing.")
    await page.locator("#answer").press("Enter")
    await expect(page.locator("article.said[data-id]", has_text="I sit down, and say nothing.")).to_be_visible()


async def test_what_is_said_can_be_read_while_it_is_said(new_page: NewPage, own_server: Callable[..., Server], shot: Shot) -> None:
    server = own_server(program=[str(HERE / "slow.py")])
    page = await new_page(server=server.url)
    await begin(page)
    await page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => { for (const one of document.querySelectorAll("article.flight.speaking .words")) window.seen.push(one.textContent); })
        .observe(document.getElementById("turns"), { childList: true, subtree: true, characterData: true }); }"""
    )
    await page.locator(".choice").first.click()
    await page.wait_for_function("() => window.seen.length")  # it is over soon, so a look that comes late must not miss it
    await shot(page, "speaking")
    await rested(page)
    seen = await page.evaluate("window.seen")
    assert any(later.startswith(earlier) and len(later) > len(earlier) for earlier, later in pairwise(seen)), seen
    assert len(set(await page.locator(TOLD).evaluate_all("all => all.map((one) => one.dataset.id)"))) == await page.locator(TOLD).count()


async def test_an_end_that_was_told_is_not_told_again(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    told = await page.locator(TOLD).count()
    await page.locator("#finish").click()
    await page.get_by_role("dialog").get_by_role("button", name="Tell the end").click()
    await expect(page.locator("#composer")).to_contain_text("The end has been told. Play on if you like, or undo it.")
    await expect(page.locator("#finish")).to_be_disabled()
    await page.locator("#undo").click()
    await expect(page.locator(TOLD)).to_have_count(told)
    await expect(page.locator("#finish")).to_be_enabled()


async def test_a_line_for_the_table_is_done_or_refused_and_never_told(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    told = await texts(page)
    await page.locator("#step").click()

    async def typed(line: str) -> None:
        await page.locator("#answer").fill(line)
        await page.locator("#answer").press("Enter")

    await typed("/xyzzy")
    await expect(page.locator(".toast.bad")).to_contain_text("There is no /xyzzy here.")
    await expect(page.locator("#answer")).to_have_value("/xyzzy")
    await typed("/undo the door")
    await expect(page.locator(".toast.bad").last).to_contain_text("/undo stands alone")
    await typed("/end")
    await expect(page.locator(".toast.bad").last).to_contain_text("/end cannot be done here just now.")
    await typed("/Ledger")
    await expect(page.locator("#tab-ledger")).to_have_attribute("aria-selected", "true")
    await expect(page.locator("#answer")).to_have_value("")
    await typed("/nudge more rain")
    await expect(page.locator("#nudge")).to_have_value("more rain")
    await page.locator("#mode-act").click()
    await typed("/undo")
    await rested(page)
    now = await texts(page)
    assert len(now) < len(told)
    assert now == told[: len(now)]


async def test_two_browsers_play_one_story(new_page: NewPage, new_story: NewStory) -> None:
    story = await new_story()
    one, two = await new_page(story), await new_page(f"#story={story}&seat=nell")
    await one.locator("#step").click()
    await two.locator("#answer").fill("I whistle a low note and wait.")
    await two.locator("#answer").press("Enter")
    for page in (one, two):
        await expect(page.locator(TOLD, has_text="I whistle a low note and wait.")).to_be_visible()
        await rested(page)
    assert (await texts(one))[-1] == (await texts(two))[-1]
    await one.locator("#undo").click()
    await expect(two.locator(TOLD, has_text="I whistle a low note and wait.")).to_have_count(0)


async def test_story_text_is_text(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await page.locator("#step").click()
    await page.locator("#answer").fill("<img src=x onerror=alert(1)><b>bold</b>")
    await page.locator("#answer").press("Enter")
    await expect(page.locator("article.said[data-id]", has_text="<b>bold</b>")).to_be_visible()
    assert await page.locator("#turns img, #turns b").count() == 0


# -- memory ------------------------------------------------------------------------------------------------------------


async def test_a_whisper_is_found_in_no_other_view(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await expect(page.locator("article.whisper")).to_contain_text(SECRET)
    assert SECRET in await open_tab(page, "leaks")
    await page.locator("tr.whispered").click()
    await expect(page.locator("article.whisper.lit")).to_be_in_viewport()
    knows = page.locator("tr.whispered").get_by_role("img")
    assert [await knows.nth(at).get_attribute("aria-label") for at in range(3)] == [
        "Nell Tarn knows", "Osric Vey does not know", "Ibbi Sandlark does not know",
    ]  # fmt: skip
    for seat in ("osric", "ibbi"):
        await view_as(page, seat)
        await expect(page.locator(TOLD).first).to_be_visible()
        for tab in ("prompt", "memory", "ledger", "moments", "leaks"):
            await open_tab(page, tab)
            assert SECRET not in await page.locator("body").inner_text()
        await open_tab(page, "memory")
        await page.locator("#recall").fill("the steward's left hand")
        await page.locator("#recall").press("Enter")
        await expect(page.locator(".found > *")).to_have_count(1)
        assert SECRET not in await page.locator(".found").inner_text()
    await view_as(page, "nell")
    await open_tab(page, "memory")
    await page.locator("#recall").fill("Who counts coins with his left hand?")
    await page.locator("#recall").press("Enter")
    await expect(page.locator(".found")).to_contain_text(SECRET)


async def test_a_memory_is_pinned_edited_and_forgotten_and_all_is_there_after_a_reload(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await open_tab(page, "memory")
    await budget(page, 700)
    told = await page.locator(TOLD).count()
    fold = page.locator(".fold").first
    old = await fold.locator(".fold-text").inner_text()
    await fold.get_by_role("button", name="Edit").click()
    await page.get_by_label("The memory").fill("Marlo hired us, and it rained.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".fold-text", has_text="Marlo hired us, and it rained.")).to_be_visible()
    mine = page.locator(".fold", has_text="Marlo hired us, and it rained.").last
    await mine.get_by_role("button", name="History").click()
    await expect(mine.locator(".versions li").first).to_contain_text(old[:40])
    await expect(mine.locator(".versions .current")).to_contain_text("written by hand")

    turn = page.locator("article.said[data-id]").last
    await turn.hover()
    await turn.get_by_role("button", name="Pin").click()
    await expect(page.locator("article.pinned")).to_have_count(1)
    await expect(page.locator("#panel")).to_contain_text("Unpin")

    said = await texts(page, "article.said[data-id]")
    words = next(text for text in reversed(said[:-1]) if said.count(text) == 1)  # one that nobody said twice
    gone = page.locator("article.said[data-id]").nth(said.index(words))
    await gone.hover()
    await gone.get_by_role("button", name="Forget").click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    await expect(page.locator(TOLD)).to_have_count(told)
    await gone.hover()
    await gone.get_by_role("button", name="Forget").click()
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    await expect(page.locator(TOLD)).to_have_count(told - 1)

    before = await texts(page)
    assert words not in before
    await page.reload()
    await expect(page.locator(TOLD)).to_have_count(told - 1)
    assert await texts(page) == before
    await expect(page.locator("article.pinned")).to_have_count(1)
    await budget(page, 700)
    await expect(page.locator("#panel")).to_contain_text("Marlo hired us, and it rained.")
    assert words not in await page.locator("#panel").inner_text()


async def test_a_sentence_of_a_summary_lights_up_the_turns_it_came_from(new_page: NewPage, new_story: NewStory, shot: Shot) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    await open_tab(page, "memory")
    await budget(page, 700)
    sentence = page.locator(".fold .sentence").nth(1)
    words = (await sentence.inner_text()).partition("“")[2].partition("”")[0] or await sentence.inner_text()
    await sentence.hover()
    await expect(page.locator("article.lit")).not_to_have_count(0)
    assert any(words[:25] in text for text in await texts(page, "article.lit"))
    await page.locator("#rail .seats").first.hover()
    await expect(page.locator("article.lit")).to_have_count(0)
    await page.locator(".fold.level-0 > .below > summary").first.click()
    await page.locator(".sources li").first.click()
    await expect(page.locator("article.lit")).to_be_in_viewport()
    await page.keyboard.press("Escape")
    await expect(page.locator("article.lit")).to_have_count(0)

    phone = await new_page(f"#story={story}&tab=memory", width=390, height=844, touch=True)
    await phone.locator("[data-to=inspect]").tap()
    await phone.locator("#budget").fill("700")
    await phone.locator(".fold .sentence").first.tap()
    await expect(phone.locator("article.lit").first).to_be_in_viewport()
    await shot(phone, "phone-lit")
    await phone.get_by_role("button", name="Back to the memory").tap()
    await expect(phone.locator(".fold .sentence").first).to_be_in_viewport()


async def test_what_is_being_written_is_not_drawn_away(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    await open_tab(page, "memory")
    await budget(page, 700)
    await page.locator(".fold").first.get_by_role("button", name="Edit").click()
    await page.get_by_label("The memory").fill("Half a thou")
    await page.locator("#step").click()
    await page.locator("#answer").fill("I am still thinking ab")
    await api("POST", f"/stories/{story}/whisper", {"speaker": "dm", "to": ["ibbi"], "text": "Meanwhile."})
    await expect(page.locator("article.whisper", has_text="Meanwhile.")).to_be_visible()
    await page.wait_for_timeout(600)
    await expect(page.get_by_label("The memory")).to_have_value("Half a thou")
    await expect(page.locator("#answer")).to_have_value("I am still thinking ab")
    await page.locator("#mode-whisper").click()
    await page.get_by_role("checkbox", name="Osric Vey").check()
    await page.locator("#whisperer").select_option("nell")
    await page.locator("#mode-nudge").click()
    await page.locator("#mode-whisper").click()
    await expect(page.get_by_role("checkbox", name="Osric Vey")).to_be_checked()
    await expect(page.locator("#whisperer")).to_have_value("nell")
    await page.locator("#mode-act").click()
    await expect(page.locator("#answer")).to_have_value("I am still thinking ab")


# -- time --------------------------------------------------------------------------------------------------------------


async def test_every_panel_shows_the_point_that_is_looked_at(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    """What a panel shows of the past is what it showed when that was now."""
    story = await new_story()
    page = await sit(new_page, story)
    head = int((await page.locator(".now strong").inner_text()).split()[1])
    then = {tab: await open_tab(page, tab) for tab in ("prompt", "memory", "ledger", "moments", "leaks")}
    told, where = await texts(page), await page.locator("#rail .scene").inner_text()
    await api.rounds(story, 3)
    await api("POST", f"/stories/{story}/whisper", {"speaker": "dm", "to": ["osric"], "text": "Later."})
    await expect(page.locator("article.whisper", has_text="Later.")).to_be_visible()
    now = {tab: await open_tab(page, tab) for tab in then}
    assert {tab for tab in then if then[tab] != now[tab]} >= {"prompt", "memory", "leaks"}
    await scrub(page, head)
    await expect(page.locator(TOLD)).to_have_count(len(told))
    assert await texts(page) == told
    await expect(page.locator("#rail .scene")).to_have_text(" ".join(where.split()), use_inner_text=True)
    for tab in then:
        await page.locator(f"#tab-{tab}").click()
        await expect(page.locator(f"#panel[data-tab={tab}]")).to_have_text(
            " ".join(then[tab].split()).replace("make this its limit", ""), use_inner_text=True
        )
    await page.locator("#now").click()
    await expect(page.locator("article.whisper", has_text="Later.")).to_be_visible()


async def test_the_past_shows_who_played_then_and_where(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    await expect(page.locator(".place").first).to_contain_text("The Crooked Eel")
    plays = page.locator(".seats li", has=page.locator("[data-seat=osric]")).locator(".plays")
    await expect(plays).to_have_text("AI")
    await plays.click()
    await expect(plays).to_have_text("you")
    await scrub(page, 30)
    await expect(plays).to_have_text("AI")
    await expect(plays).to_be_disabled()
    await page.locator("#now").click()
    await expect(plays).to_have_text("you")


async def test_undo_and_continue_from_here(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    told = await page.locator(TOLD).count()
    await rounds(page, 1)
    await page.locator("#undo").click()
    await expect(page.locator(TOLD)).to_have_count(told)
    await expect(page.locator(".branch")).to_have_count(2)
    turn = page.locator(TOLD).nth(told - 9)
    await turn.hover()
    await turn.get_by_role("button", name="Look").click()
    await expect(page.locator(TOLD)).to_have_count(told - 8)
    await page.get_by_role("button", name="Next turn").click()
    await expect(page.locator(TOLD)).to_have_count(told - 7)
    await page.locator("#fork-here").click()
    await expect(page.locator(".branch[aria-pressed=true]")).to_have_text("fork-1")
    await expect(page.locator(TOLD)).to_have_count(told - 7)
    await rounds(page, 1)
    await page.locator(".branch[data-branch=main]").click()
    await expect(page.locator(TOLD)).to_have_count(told)


# -- anyone ------------------------------------------------------------------------------------------------------------


async def test_it_is_played_by_keyboard_alone(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await expect(page.locator("#step")).to_be_visible()
    press = page.keyboard.press
    told = await page.locator(TOLD).count()
    await press("n")
    await expect(page.locator("#answer")).to_be_visible()
    await press("a")
    await expect(page.locator("#answer")).to_be_focused()
    await page.keyboard.type("I count the doors.")
    await press("Enter")
    await expect(page.locator("article.said[data-id]", has_text="I count the doors.")).to_be_visible()
    await rested(page)
    await press("Escape")
    await press("w")
    await expect(page.locator("#whisper")).to_be_focused()
    await press("Escape")
    await undo_by_key(page)
    await expect(page.locator(TOLD)).to_have_count(told)
    await press("2")
    await expect(page.locator(".seat[data-seat=osric]")).to_have_attribute("aria-pressed", "true")
    await press("0")
    await expect(page.locator("article.whisper")).to_have_count(1)
    await press("k")
    await press("k")
    await expect(page.locator(TOLD).nth(-2)).to_be_focused()
    await press("Tab")
    await press("Enter")
    await expect(page.locator("article.pinned")).to_have_count(1)
    await press("Escape")
    await press("m")
    await expect(page.locator("#tab-prompt")).to_be_focused()
    await press("ArrowRight")
    await expect(page.locator("#tab-memory")).to_be_focused()
    await expect(page.locator("#panel[data-tab=memory]")).to_be_visible()
    await press("Escape")
    await press("t")
    await expect(page.locator("#scrub")).to_be_focused()
    await press("ArrowLeft")
    await press("ArrowLeft")
    await expect(page.locator(TOLD)).to_have_count(told - 2)
    await press("Escape")
    await expect(page.locator(TOLD)).to_have_count(told)
    await press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_it_is_played_on_a_phone(new_page: NewPage, new_story: NewStory, shot: Shot) -> None:
    phone = await new_page(await new_story(), width=390, height=844, touch=True)
    await phone.locator("#step").tap()
    await expect(phone.locator("#answer")).to_be_visible()
    await phone.locator(".choice").first.tap()
    await rested(phone)
    for pane, inside in (("rail", "#rail .controls"), ("inspect", "#panel"), ("time", "#scrub"), ("story", "#turns")):
        await phone.locator(f"[data-to={pane}]").tap()
        await expect(phone.locator(inside)).to_be_visible()
        assert await phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), pane
        await shot(phone, f"phone-{pane}")
    turn = phone.locator("article.said[data-id]").last
    await turn.locator(".words").tap()
    await expect(turn.locator(".foot")).to_contain_text("heard by Nell Tarn")
    await turn.get_by_role("button", name="Pin").tap()
    await expect(phone.locator("article.pinned")).to_have_count(1)


async def test_no_branch_is_drawn_backwards(new_page: NewPage, new_story: NewStory) -> None:
    """Each begins where it leaves the line that went on, also where it was taken back to its own beginning."""
    page = await sit(new_page, await new_story())

    async def drawn() -> dict[str, list[float]]:
        ends = "all => all.map((one) => [one.parentNode.dataset.lane, ['x1', 'x2'].map((end) => parseFloat(one.getAttribute(end)))])"
        return dict(await page.locator(".lane .own").evaluate_all(ends))

    await page.locator("#undo").click()
    await expect(page.locator(".branch")).to_have_text(["main", "main~1"])

    async def parted() -> bool:
        found = await drawn()
        assert found["main"][0] == 0, "what goes on is drawn from the beginning"
        return found["main"][1] == found["main~1"][0] < found["main~1"][1]

    await until(parted)  # and what was taken back from where it left
    await scrub(page, 40)
    await page.locator("#fork").click()
    await expect(page.locator(".branch[aria-pressed=true]")).to_have_text("fork-1")
    await rounds(page, 1)
    await page.locator("#undo").click()
    await expect(page.locator(".branch")).to_have_text(["main", "main~1", "fork-1", "fork-1~1"])

    async def parted_again() -> bool:
        found = await drawn()
        assert found["main"][0] == 0
        assert all(first <= last for first, last in found.values()), found
        return 0 < found["fork-1"][0] <= found["fork-1"][1] == found["fork-1~1"][0] < found["main~1"][0]

    await until(parted_again)  # the branches may be known before the turns of the one that is looked at
    for _ in range(3):
        assert await parted_again(), "and so it stays"
        await page.wait_for_timeout(100)


async def test_the_branch_that_one_goes_to_is_in_sight(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    for name in "abcdefgh":
        await api("POST", f"/stories/{story}/fork", {"at": "40", "name": name})
    page = await sit(new_page, story)
    await page.locator(".branch[data-branch=h]").click()
    await expect(page.locator(".branch[data-branch=h][aria-pressed=true]")).to_be_in_viewport()
    await rounds(page, 1)  # and stays there while the story goes on
    await expect(page.locator(".branch[data-branch=h]")).to_be_in_viewport()
    await page.locator(".branch[data-branch=main]").click()
    await expect(page.locator(".branch[data-branch=main][aria-pressed=true]")).to_be_in_viewport()
