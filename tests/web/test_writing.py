"""What someone writes: it stays where it is, goes to whom it is meant for, and nothing else happens by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.async_api import Page, expect
from tests.web.conftest import Api, NewPage, NewStory, Server
from tests.web.hands import TOLD, begin, rested, sit, view_as
from tests.web.test_line import TOKENS, sit_down, token_file

# -- keys and the focus ------------------------------------------------------------------------------------------------


async def test_whoever_writes_on_while_the_page_is_drawn_anew_presses_no_keys(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    """The box goes away when what is in it is sent, and comes back; what is typed meanwhile is no command."""
    story = await new_story()
    page = await sit(new_page, story)
    before = (await api("GET", f"/stories/{story}/play"))["round"]
    await page.locator("#step").click()
    await page.locator("#answer").fill("I sing.")
    await page.locator("#answer").press("Enter")
    await expect(page.locator("#answer")).to_have_count(0)
    await page.keyboard.type("unp")
    await rested(page)
    await page.keyboard.type("unp")
    await page.wait_for_timeout(300)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    play = await api.rested(story)
    assert (play["round"], play["auto"], play["waiting"]) == (before + 1, False, None)
    await api("POST", f"/stories/{story}/step")
    await expect(page.locator("#answer")).to_be_focused()  # they were writing, and go on


async def test_the_focus_and_the_caret_outlast_what_happens_meanwhile(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    await page.locator("#step").click()
    await page.locator("#answer").fill("I go home.")
    await page.locator("#answer").evaluate("one => one.setSelectionRange(2, 2)")
    await page.locator("#answer").evaluate("one => { one.dataset.old = 'yes'; }")
    await api("POST", f"/stories/{story}/auto", {"on": True})
    await expect(page.locator("#answer:not([data-old])")).to_be_focused()
    await page.keyboard.type("never ")
    await expect(page.locator("#answer")).to_have_value("I never go home.")
    await api("POST", f"/stories/{story}/auto", {"on": False})


async def test_single_keys_are_for_those_who_read(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    told = await page.locator(TOLD).count()
    await page.locator("#mode-whisper").focus()
    await page.keyboard.type("nu2")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator(".seat[data-seat='']")).to_have_attribute("aria-pressed", "true")
    await page.keyboard.press("Escape")
    await page.keyboard.press("u")
    await page.keyboard.type("nder the bridge ")  # a blank presses what has the focus: the way out
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator(TOLD)).to_have_count(told)
    assert (await api("GET", f"/stories/{story}/play"))["running"] is False
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    for words in ("undo the last round; asks first", "let it play on, or pause", "play the next round", "/whisper", "Esc"):
        await expect(page.get_by_role("dialog")).to_contain_text(words)


# -- what is too long, and what is not sent yet ------------------------------------------------------------------------


async def test_what_is_too_long_is_counted_and_refused_and_not_cut(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await page.locator("#step").click()
    box, count = page.locator("#answer"), page.locator("#answer-count")
    await box.fill("x" * 3000)
    await expect(count).to_be_empty()
    await box.fill("x" * 3900)
    await expect(count).to_have_text("3,900 of 4,000 characters")
    await box.fill("x" * 4321)
    await expect(count).to_have_text("4,321 of 4,000 characters: too long to send")
    await box.press("Enter")
    await expect(page.locator(".toast.bad")).to_contain_text("This has 4,321 characters, and 4,000 can be sent at once.")
    assert len(await box.input_value()) == 4321
    await expect(box).to_be_focused()
    await box.fill("x" * 4000)
    await box.press("Enter")
    await expect(page.locator("article.said[data-id]", has_text="x" * 4000)).to_have_count(1)


async def test_a_draft_outlasts_a_reload_and_is_gone_when_it_is_sent(new_page: NewPage, new_story: NewStory) -> None:
    page = await sit(new_page, await new_story())
    await page.locator("#step").click()
    await page.locator("#answer").fill("Half a sent")
    await page.locator("#mode-whisper").click()
    await page.get_by_role("checkbox", name="Osric Vey").check()
    await page.locator("#whisper").fill("Later.")
    await page.reload()
    await expect(page.locator("#answer")).to_have_value("Half a sent")
    await page.locator("#mode-whisper").click()
    await expect(page.locator("#whisper")).to_have_value("Later.")
    await expect(page.get_by_role("checkbox", name="Osric Vey")).to_be_checked()
    await page.locator("#mode-act").click()
    await page.locator("#answer").press("Enter")
    await rested(page)
    await page.reload()
    await page.locator("#step").click()
    await expect(page.locator("#answer")).to_have_value("")


# -- whispers, and whose turn it is ------------------------------------------------------------------------------------


async def at_the_table(
    new_page: NewPage, own_server: Callable[..., Server], folder: Path, humans: tuple[str, ...] = ("nell",), seats: str = '"nell"'
) -> tuple[Page, Page]:
    """The dm, and the player of those seats, at one story that has just begun."""
    tokens = token_file(folder)
    tokens.write_text(tokens.read_text().replace('["nell"]', f"[{seats}]"))
    server = own_server("--tokens", str(tokens))
    dm = await new_page(server=server.url, refused=("401",))
    await sit_down(dm, TOKENS["owner"])
    await dm.locator(".scenario[data-scenario=tidelamp] summary").click()
    for one in humans:
        await dm.locator(f".scenario[open] select[name={one}]").select_option("human")
    await begin_here(dm)
    nell = await new_page(server=server.url, refused=("401",))
    await sit_down(nell, TOKENS["nell"])
    await nell.locator(".row").click()
    return dm, nell


async def begin_here(page: Page) -> None:
    await page.locator(".scenario[open] input[name=seed]").fill("7")
    await page.locator(".scenario[open]").get_by_role("button", name="Begin").click()
    await expect(page.locator("#answer")).to_be_visible()


async def test_a_player_whispers_to_those_who_are_there(new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path) -> None:
    dm, nell = await at_the_table(new_page, own_server, tmp_path)
    await expect(nell.locator("#answer")).to_be_visible()
    await expect(nell.locator("#mode-nudge")).to_have_count(0)
    await nell.locator("#mode-whisper").click()
    await nell.locator("#whisper").fill("Watch the steward's hands.")
    await nell.locator("#whisper").press("Enter")
    await expect(nell.locator(".toast.bad")).to_contain_text("tick a name")
    await nell.get_by_role("checkbox", name="Osric Vey").check()
    await nell.locator("#whisper").press("Enter")
    await expect(nell.locator("article.whisper", has_text="Watch the steward's hands.")).to_be_visible()
    await expect(nell.locator("#answer")).to_be_visible()  # and it is still her turn
    await nell.locator("#answer").fill("/whisper Ibbi Not a word to Osric.")
    await nell.locator("#answer").press("Enter")
    await expect(nell.locator("#whisper")).to_have_value("Not a word to Osric.")
    await expect(nell.get_by_role("checkbox", name="Ibbi Sandlark")).to_be_checked()
    await nell.locator("#whisper").press("Enter")
    await expect(nell.locator("article.whisper")).to_have_count(2)
    for typed, left, ears in (
        ("/whisper Osric and Ibbi to both of you", "to both of you", {"osric", "ibbi"}), ("/whisper Osrik to nobody", "Osrik to nobody", set()),
        ("/whisper Ibbi and then we run", "and then we run", {"ibbi"}),
    ):  # fmt: skip
        await nell.locator("#mode-act").click()
        await nell.locator("#answer").fill(typed)
        await nell.locator("#answer").press("Enter")
        await expect(nell.locator("#whisper")).to_have_value(left)
        ticked = await nell.locator("input[type=checkbox]:checked").evaluate_all("boxes => boxes.map((box) => box.value)")
        assert set(ticked) == ears
    await view_as(dm, "osric")
    await expect(dm.locator("article.whisper .words")).to_have_text(["Watch the steward's hands."])


async def test_who_plays_a_hero_whispers_as_that_hero(new_page: NewPage) -> None:
    page = await new_page()
    await begin(page, name="whispering-hero")
    await page.locator("#mode-whisper").click()
    await expect(page.locator("#whisperer")).to_have_count(0)
    await expect(page.get_by_role("checkbox", name="Nell Tarn")).to_have_count(0)
    await page.get_by_role("checkbox", name="Osric Vey").check()
    await page.locator("#whisper").fill("Stay close.")
    await page.locator("#composer .primary").click()
    await expect(page.locator("article.whisper .who")).to_have_text("Nell Tarn")


async def test_whoever_waits_is_told_what_for(new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path) -> None:
    dm, nell = await at_the_table(new_page, own_server, tmp_path, ("nell", "osric"))
    await nell.locator("#answer").fill("I hum.")
    await nell.locator("#answer").press("Enter")
    await expect(dm.locator("#take-turn")).to_have_text("View as Osric Vey")  # it looks through Nell's eyes
    await expect(nell.locator(".waiting")).to_have_text("Waiting for the others.")
    await dm.locator("#take-turn").click()
    await dm.locator("#answer").fill("I hum, too.")
    await dm.locator("#answer").press("Enter")
    await rested(dm)
    await expect(nell.locator(".waiting")).to_have_text("It is not your turn. The DM plays the next round.")
    await dm.locator("[data-key=plays-osric]").click()
    await expect(dm.locator("[data-key=plays-osric]")).to_have_text("AI")
    await nell.reload()
    await expect(nell.locator(".waiting")).to_have_text("It is nobody's turn: the DM plays the next round.")
    await dm.locator("#step").click()
    await expect(nell.locator("#answer")).to_be_visible()


async def test_who_plays_two_heroes_is_told_whose_turn_it_is(new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path) -> None:
    dm, player = await at_the_table(new_page, own_server, tmp_path, ("nell", "osric"), '"nell", "osric"')
    await player.locator("#answer").fill("I hum.")
    await player.locator("#answer").press("Enter")
    await expect(player.locator(".waiting")).to_contain_text("It is the turn of Osric Vey.")
    await player.locator("#take-turn").click()
    await player.locator("#answer").fill("I hum, too.")
    await player.locator("#answer").press("Enter")
    await rested(dm)
    await expect(player.locator(".waiting")).to_have_text("It is nobody's turn: the DM plays the next round.")
