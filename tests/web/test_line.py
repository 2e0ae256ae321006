"""When the line breaks, when a token is refused, when someone else was first: the page says so, and what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from playwright.async_api import Browser, Error, Page, Response, Route, expect
from tests.web.conftest import Api, Looked, NewPage, NewStory, Server, Shot
from tests.web.hands import TOLD, begin, rested, rounds, sit, texts, until

TOKENS = {name: f"tk_{name * 12:.40}" for name in ("owner", "nell")}


class Wire:
    """What lies between a browser and a server, to be cut."""

    def __init__(self, to: int) -> None:
        self.to, self.port = to, 0
        self.ends: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def mend(self) -> str:
        self.server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self.port}"

    async def cut(self) -> None:
        assert self.server is not None
        self.server.close()
        for end in list(self.ends):
            end.transport.abort()
        self.ends.clear()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        self.ends |= {writer, back}
        await asyncio.gather(self._carry(reader, back), self._carry(there, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        writer.close()


async def test_a_page_outlives_its_server(new_page: NewPage, own_server: Callable[..., Server], shot: Shot) -> None:
    server = own_server()
    page = await new_page(server=server.url, refused=("ERR_",))
    await begin(page)
    await page.locator("#answer").fill("I hold my breath.")
    server.stop()
    await expect(page.locator(".banner")).to_contain_text("The server does not answer.")
    await page.locator("#answer").press("Enter")
    await expect(page.locator(".toast.bad")).to_contain_text("What you wrote is still here")
    await shot(page, "server-gone")
    server.start()
    await expect(page.locator(".banner")).to_have_count(0)
    await expect(page.locator("#answer, #step")).to_have_count(1)
    if await page.locator("#step").count():  # a round that was not written is played again
        await page.locator("#step").click()
    await expect(page.locator("#answer")).to_have_value("I hold my breath.")
    await page.locator("#answer").press("Enter")
    await expect(page.locator("article.said[data-id]", has_text="I hold my breath.")).to_have_count(1)


async def test_what_was_told_while_the_line_was_down_is_there_when_it_is_back(
    new_page: NewPage, new_story: NewStory, api: Api, served: Server, socket_enabled: None
) -> None:
    story = await new_story()
    wire = Wire(served.port)
    page = await sit(new_page, story, server=await wire.mend(), refused=("ERR_",))
    await wire.cut()
    await expect(page.locator(".banner")).to_be_visible()
    await api("POST", f"/stories/{story}/whisper", {"speaker": "dm", "to": ["ibbi"], "text": "While you were away."})
    await api.rounds(story, 1)
    await wire.mend()
    await expect(page.locator("article.whisper", has_text="While you were away.")).to_be_visible()
    await expect(page.locator(".banner")).to_have_count(0)
    told = (await api("GET", f"/stories/{story}/turns", limit="200"))["turns"]
    await expect(page.locator(TOLD).last).to_have_attribute("data-id", told[-1]["id"])
    assert (await texts(page))[-1].split() == told[-1]["text"].split()
    await wire.cut()


async def test_a_page_that_is_opened_before_the_server_waits_for_it(new_page: NewPage, own_server: Callable[..., Server]) -> None:
    server = own_server()
    page = await new_page(server=server.url, refused=("ERR_", "404"))
    await expect(page.locator(".scenario").first).to_be_visible()
    server.stop()
    await page.evaluate("location.hash = 'story=local.x'")
    await expect(page.locator(".empty-title")).to_have_text("The server does not answer")
    server.start()
    await expect(page.locator(".scenario").first).to_be_visible()


async def test_someone_else_was_first(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await new_page(story, refused=("ERR_FAILED", "409"))
    await expect(page.locator("#step")).to_be_visible()
    await page.context.route("**/events?**", lambda route: route.abort())  # it does not hear of it
    await page.reload()
    await expect(page.locator("#step")).to_be_visible()
    await api("POST", f"/stories/{story}/step")
    await api.rested(story)
    await page.locator("#step").click()
    await expect(page.locator(".toast.bad")).to_contain_text("send again if you still mean it")
    await expect(page.locator("#answer")).to_be_visible()


async def test_a_round_that_someone_else_took_back_is_not_followed_by_another(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    one, two = await sit(new_page, story), await new_page(story, refused=("ERR_FAILED", "412"))
    await two.context.route("**/events?**", lambda route: route.abort())  # it has not heard of it yet
    await two.reload()
    await expect(two.locator("#step")).to_be_visible()
    before = (await api("GET", f"/stories/{story}/play"))["round"]
    await one.locator("#undo").click()
    await expect(one.locator(".toast")).to_contain_text("taken back")
    await two.locator("#undo").click()
    await expect(two.locator(".toast.bad")).to_contain_text("Someone else was faster, so nothing was done.")
    assert (await api("GET", f"/stories/{story}/play"))["round"] == before - 1
    left = len((await api("GET", f"/stories/{story}/turns", limit=120, newest=True))["turns"])
    for page in (one, two):
        await expect(page.locator(TOLD)).to_have_count(left)  # what is shown is up to date, and can be taken back
    await two.locator("#undo").click()
    await expect(two.locator(".toast:not(.bad)")).to_contain_text("taken back")
    await expect(one.locator(f"{TOLD}:nth-of-type({left})")).to_have_count(0)
    await one.locator("#undo").click()
    await one.locator("#undo").click(delay=20)  # one's own are bound to each other
    await expect(one.locator(".toast.bad")).to_have_count(0)


async def test_an_undo_in_someones_view_is_bound_to_the_whole_story(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    """Much of a round is not heard by everyone; whoever looks through their eyes takes it back all the same."""
    story = await new_story()
    page = await new_page(f"#story={story}&seat=osric")
    await expect(page.locator("#step")).to_be_visible()
    before = (await api("GET", f"/stories/{story}/play"))["round"]
    played: list[int] = []

    async def heard(answer: Response) -> None:
        if "/play?" in answer.url:
            with suppress(Error):  # the page may have closed
                played.append((await answer.json())["round"])

    page.on("response", heard)
    await api.rounds(story, 2)

    async def knows() -> bool:
        return before + 2 in played

    await until(knows)
    await rested(page)
    for _ in range(3):
        await page.locator("#undo").click()
        await expect(page.locator(".toast")).to_contain_text("The last round is taken back.")
        await page.locator(".toast").get_by_role("button", name="Dismiss").click()
    assert (await api("GET", f"/stories/{story}/play"))["round"] == before - 1


async def test_a_turn_that_someone_else_took_back_is_not_followed_by_another(new_page: NewPage, api: Api) -> None:
    story = (await api("POST", "/stories", {"name": "undone-twice", "seats": [{"id": "dm", "role": "dm"}, {"id": "ann"}]}))["id"]
    for number in range(4):
        await api("POST", f"/stories/{story}/turns", {"speaker": "dm", "text": f"Turn {number}."})
    page = await new_page(story, refused=("ERR_FAILED", "412"))
    await page.context.route("**/events?**", lambda route: route.abort())
    await page.reload()
    await expect(page.locator(TOLD)).to_have_count(4)
    await api("POST", f"/stories/{story}/rewind", {"to": "3"})
    await page.locator("#undo").click()
    await expect(page.locator(".toast.bad")).to_contain_text("Someone else was faster, so nothing was done.")
    await expect(page.locator(TOLD)).to_have_count(3)
    assert (await api("GET", f"/stories/{story}"))["turns"] == 3


# -- tokens ------------------------------------------------------------------------------------------------------------


def token_file(folder: Path) -> Path:
    file = folder / "tokens.toml"
    grants = {"owner": "dm = true", "nell": 'seats = ["nell"]'}
    file.write_text(
        "\n".join(f'[[token]]\nname = "{name}"\ntoken = "{TOKENS[name]}"\ntenant = "local"\n{more}\n' for name, more in grants.items())
    )
    file.chmod(0o600)
    return file


async def sit_down(page: Page, token: str) -> None:
    await page.locator("#token").fill(token)
    await page.get_by_role("button", name="Sit down").click()


async def test_a_token_is_asked_for_and_shows_what_is_its_own(
    new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path, accessible: Looked, shot: Shot, browser: Browser
) -> None:
    file = token_file(tmp_path)
    server = own_server("--tokens", str(file))
    dm = await new_page(server=server.url, refused=("401",))
    await accessible(dm, "the door")
    await sit_down(dm, "tk_" + "wrong" * 8)
    await expect(dm.locator(".failed")).to_contain_text("token")
    await shot(dm, "token")
    await accessible(dm, "a refused token")
    await sit_down(dm, TOKENS["owner"])
    await begin(dm, name="with tokens")
    await rounds(dm, 1)

    nell = await new_page(server=server.url, refused=("401", "403"))
    await sit_down(nell, TOKENS["nell"])
    await nell.locator(".row", has_text="with tokens").click()
    await expect(nell.locator(TOLD).first).to_be_visible()
    await expect(nell.locator("#undo, #export, .branch, #fork, [data-seat=osric]")).to_have_count(0)
    for odd in ("seat=osric", "branch=elsewhere", "branch=elsewhere&seat=osric&at=1"):  # not hers to see: her own view is shown
        await nell.evaluate("odd => { location.hash = location.hash.split('&')[0] + '&' + odd; }", odd)
        await expect(nell.locator(".toast.bad").first).to_contain_text("not yours to see")
        await nell.locator(".toast.bad").first.get_by_role("button", name="Dismiss").click()
        await expect(nell.locator(TOLD).first).to_be_visible()
    await accessible(nell, "a player's table")
    await shot(nell, "player")
    await dm.locator("#step").click()
    await nell.locator("#answer").fill("I look at Osric's boots.")
    await nell.locator("#answer").press("Enter")
    await expect(dm.locator("article.said[data-id]", has_text="I look at Osric's boots.")).to_be_visible()
    await expect(nell.locator("article.said[data-id]", has_text="I look at Osric's boots.")).to_be_visible()

    file.write_text(file.read_text().replace(TOKENS["nell"], "tk_" + "other" * 8))  # taken back while she plays
    await expect(nell.locator("#token")).to_be_visible()
    await sit_down(nell, "tk_" + "other" * 8)
    await expect(nell.locator("article.said[data-id]", has_text="I look at Osric's boots.")).to_be_visible()


async def test_a_server_with_narrow_limits_is_given_time(new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path) -> None:
    file = token_file(tmp_path)
    file.write_text(file.read_text() + "\n[limits]\nrate = 5.0\nburst = 6\n")
    server = own_server("--tokens", str(file))
    page = await new_page(server=server.url, refused=("401", "429"))
    refused: list[str] = []
    page.on("response", lambda answer: refused.append(json.dumps(answer.url)) if answer.status == 429 else None)
    await sit_down(page, TOKENS["owner"])
    await begin(page)
    await expect(page.locator("#panel .bar")).to_be_visible()
    assert refused, "the limits were not felt"


async def test_a_token_is_kept_as_long_as_the_tab_and_no_longer(
    new_page: NewPage, own_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = own_server("--tokens", str(token_file(tmp_path)))
    page = await new_page(server=server.url, refused=("401",), width=390, height=844, touch=True)
    await sit_down(page, TOKENS["owner"])
    await expect(page.locator(".scenario").first).to_be_visible()
    await page.reload()
    await expect(page.locator(".scenario").first).to_be_visible()
    another = await page.context.new_page()
    await another.goto(server.url)
    await expect(another.locator("#token")).to_be_visible()
    await begin(page, name="left by phone")
    await page.locator("#answer").fill("Nobody else is to read this.")
    await page.locator("#leave").tap()
    await expect(page.locator("#token")).to_be_visible()
    assert "Nobody else" not in await page.evaluate("JSON.stringify(sessionStorage)")


async def test_an_answer_that_comes_late_takes_nothing_back(new_page: NewPage, new_story: NewStory, api: Api) -> None:
    story = await new_story()
    page = await sit(new_page, story)
    await page.locator("#step").click()
    await expect(page.locator("#answer")).to_be_visible()
    early = await api("GET", f"/stories/{story}/play")
    assert early["lines"]
    released, arrived = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        if (await api("GET", f"/stories/{story}/play"))["running"]:  # else it was asked for too late to be answered from before
            await released.wait()
            await route.fulfill(json=early)
        else:
            await route.continue_()
        arrived.set()

    await page.route("**/play?*", late, times=1)
    await page.locator("#answer").fill("I count the crows.")
    await page.locator("#answer").press("Enter")
    await api.rested(story)
    told = (await api("GET", f"/stories/{story}/turns", newest=True, limit=1))["turns"][0]
    await expect(page.locator(f"article[data-id='{told['id']}']")).to_be_attached()
    for line in early["lines"]:
        await expect(page.locator(".flight", has_text=line["text"].split("\n")[0][:40])).to_have_count(0)
    await page.evaluate(
        """() => {
          window.shown = [];
          const look = () => window.shown.push(...[...document.querySelectorAll(".flight .words")].map((line) => line.innerText));
          new MutationObserver(look).observe(document.getElementById("turns"), { childList: true, subtree: true });
        }"""
    )
    released.set()
    await arrived.wait()
    await rested(page)
    shown = {" ".join(words.split()) for words in await page.evaluate("() => window.shown")}
    assert not shown & {" ".join(line["text"].split()) for line in early["lines"]}, "what became a turn is not in flight again"
