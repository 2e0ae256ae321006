"""Players for the benchmark of the server: each plays one story over real HTTP, and remembers all that it was told.

The client speaks over bare sockets, so that the machine's time goes to the server that is measured and not to a library.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

API = "/api/v1"
TENANT, USER = "bench", "bench"
PATIENCE = 600.0
"""Seconds until an answer, or the end of a round, is given up."""
GLANCE = 10.0
"""Seconds without an event after which a player looks by itself whether the round is over."""


class Refused(Exception):
    """The server did not do what it was asked to."""


class Line:
    """A connection that is kept, for one request after another."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._head = f"Host: {self._host}:{self._port}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What comes of it; raises `Refused` where that is not a success."""
        async with asyncio.timeout(PATIENCE):
            status, headers, reader = await self._send(method, path, body)
            content = await reader.readexactly(int(headers.get("content-length", 0)))
            if headers.get("connection") == "close":
                await self.close()
        if status >= 300:
            raise Refused(f"{method} {path.partition('?')[0]}: {status} {content[:300].decode(errors='replace')}")
        return json.loads(content) if content else None

    async def follow(self, path: str, last: str | None) -> AsyncGenerator[dict[str, str], None]:
        """The events of a stream, until it ends."""
        status, _, reader = await self._send("GET", path, None, f"Last-Event-ID: {last}\r\n" if last else "")
        if status != 200:
            raise Refused(f"GET {path}: {status}")
        rest = b""
        while size := int(await reader.readline() or b"0", 16):
            rest += (await reader.readexactly(size + 2))[:-2]
            *frames, rest = rest.split(b"\n\n")
            for frame in frames:
                yield dict(row.split(": ", 1) for row in frame.decode().splitlines() if ": " in row)

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _send(self, method: str, path: str, body: Any, more: str = "") -> tuple[int, Mapping[str, str], asyncio.StreamReader]:
        content = json.dumps(body).encode() if body is not None else b""
        kind = "Content-Type: application/json\r\n" if body is not None else ""
        request = f"{method} {API}{path} HTTP/1.1\r\n{self._head}{more}{kind}Content-Length: {len(content)}\r\n\r\n".encode() + content
        fresh = self._streams is None
        try:
            return await self._exchange(request)
        except (ConnectionError, asyncio.IncompleteReadError):
            await self.close()  # a line that was idle for long is closed by the server
            if fresh:
                raise
            return await self._exchange(request)

    async def _exchange(self, request: bytes) -> tuple[int, Mapping[str, str], asyncio.StreamReader]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        await writer.drain()
        status, *rows = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows if row)}
        return int(status.split()[1]), headers, reader


@dataclass
class Diary:
    """What one player has seen."""

    rounds: int = 0
    requests: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    """Seconds from what a person did to the end of the round."""
    errors: list[str] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)
    heard: list[str] = field(default_factory=list)
    lost: int = 0
    turns: int = 0


class Player:
    """Plays one story as its dm and as one of the party: begins rounds, takes one of the choices, listens."""

    def __init__(self, url: str, token: str, name: str, scenario: str, party: list[str], seed: int) -> None:
        self.diary = Diary()
        self._line, self._ear = Line(url, token), Line(url, token)
        self.name, self.scenario, self.party, self.seed = name, scenario, party, seed
        self.me = party[0]
        self._story = f"/stories/{USER}.{name}"
        self._past = "0"
        self._rested = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Begins the story, and listens."""
        game = {"user": USER, "name": self.name, "scenario": self.scenario, "party": self.party, "humans": [self.me], "seed": self.seed}
        await self._ask("POST", "/games", game)
        self._following = asyncio.create_task(self._follow())

    async def take_up(self) -> None:
        """Goes on with a story that has a past, and listens."""
        self._past = (await self._ask("GET", f"{self._story}/turns?limit=1&newest=true"))["turns"][-1]["id"]
        self._following = asyncio.create_task(self._follow())

    async def play(self, until: float, think: float) -> None:
        """Round after round until that time (the last one is finished), with so many seconds of thought before each answer."""
        while time.monotonic() < until:
            try:
                await self._round(think)
            except (Refused, OSError, EOFError, TimeoutError, ValueError) as exc:
                self.diary.errors.append(f"{type(exc).__name__}: {exc}")
                await asyncio.sleep(1)

    async def _round(self, think: float) -> None:
        if (await self._ask("GET", f"{self._story}/play"))["waiting"] != self.me:
            await self._until_rested("POST", f"{self._story}/step")
        while (await self._ask("GET", f"{self._story}/play"))["waiting"] == self.me:
            await asyncio.sleep(think)
            choices = (await self._ask("GET", f"{self._story}/scene?seat={self.me}"))["choices"]
            text = choices[(self.seed + self.diary.rounds) % min(3, len(choices))]["text"]
            began = time.monotonic()
            await self._until_rested("POST", f"{self._story}/act?seat={self.me}", {"text": text})
            self.diary.answers.append(time.monotonic() - began)
            self.diary.did[text] += 1
        self.diary.rounds += 1

    async def _until_rested(self, method: str, path: str, body: Any = None) -> None:
        """Asks for something, and waits for the end of the round that this begins."""
        self._rested.clear()
        await self._ask(method, path, body)
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GLANCE):
                        await self._rested.wait()
                found = await self._ask("GET", f"{self._story}/play")
                if not found["running"]:
                    break
        if found["failed"]:
            raise Refused(f"the round failed: {found['failed']}")

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        began = time.monotonic()
        found = await self._line.ask(method, path, body)
        self.diary.requests.append(time.monotonic() - began)
        return found

    async def _follow(self) -> None:
        """Listens to the story from its beginning; a line that ends is taken up where it was."""
        last = self._past
        while True:
            try:
                async with aclosing(self._ear.follow(f"{self._story}/events", last)) as frames:
                    async for frame in frames:
                        last = frame.get("id", last)
                        if frame.get("event") == "turn":
                            self.diary.heard.append(json.loads(frame["data"])["id"])
                        elif frame.get("event") == "rested":
                            self._rested.set()
            except (OSError, EOFError, Refused) as exc:
                self.diary.errors.append(f"{type(exc).__name__}: {exc}")
                await asyncio.sleep(1)
            await self._ear.close()

    async def look_back(self) -> None:
        """Reads the log of what was played, and counts what was done or heard and is not in it, or is in it and was not heard."""
        log: list[Any] = []
        while True:
            last = log[-1]["id"] if log else self._past
            page = await self._line.ask("GET", f"{self._story}/turns?limit=200" + (f"&after={last}" if last != "0" else ""))
            log += page["turns"]
            if not page["more"]:
                break
        for _ in range(50):  # what was told last may be on its way
            if len(self.diary.heard) >= len(log):
                break
            await asyncio.sleep(0.2)
        written = Counter(turn["text"] for turn in log if turn["speaker"] == self.me)
        unwritten = sum((self.diary.did - written).values())
        ids = [turn["id"] for turn in log]
        unheard = 0 if self.diary.heard == ids else max(1, len(set(ids) ^ set(self.diary.heard)))
        self.diary.turns, self.diary.lost = len(log), unwritten + unheard

    async def leave(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._line.close()
        await self._ear.close()
