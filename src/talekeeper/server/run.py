"""Listening, and going down without cutting anyone off."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from talekeeper.errors import InvalidInput
from talekeeper.server.door import House
from talekeeper.server.gate import is_loopback

GRACE = 10
"""Seconds that requests have to come to their end when the server goes down."""
CONNECTIONS = 1000
HEAD = 10.0
"""Seconds in which a connection has to come up with a whole request, so that idle ones do not use up what there is."""
STALLED = 60.0
"""Seconds after which a reader who takes nothing in is given up."""


def listen(host: str, port: int, *, guarded: bool) -> socket.socket:
    """A socket to listen on. Without tokens that is on this machine only."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as exc:
        raise InvalidInput(f"the host {host!r} is not known: {exc.strerror}") from exc
    family, kind, protocol, _, address = found[0]
    if not guarded and not all(is_loopback(str(row[4][0])) for row in found):
        raise InvalidInput(
            f"without tokens the server listens on this machine only, not on {host!r}: make a token with "
            "`talekeeper tokens new --dm --tokens tokens.toml`, then start it with --tokens tokens.toml"
        )
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections have it from here
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALLED * 1000))
    try:
        made.bind(address)
    except OSError as exc:
        made.close()
        raise InvalidInput(f"cannot listen on {host}, port {port}: {exc.strerror}; choose another with --port") from exc
    return made


def address_of(made: socket.socket) -> str:
    """The address that a browser can open."""
    host, port = made.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Lines(logging.Formatter):
    """A record as one line: when, how bad, what, and what it is about; a traceback behind it."""

    _KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        about = {name: value for name, value in record.__dict__.items() if name not in self._KNOWN}
        words = " ".join([record.getMessage(), *(f"{name}={value!r}" for name, value in about.items())])
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S%z')} {record.levelname} {record.name}: {words}{trace}"


def log_to(stream: TextIO) -> None:
    """Writes down there what goes wrong. The library itself never does: whose program it is decides."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines())
    for name in ("talekeeper", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(logging.WARNING)


class _Server(uvicorn.Server):
    """Ends the streams before it waits for connections to end: they would not by themselves. And turns away who does not come to the
    point, which uvicorn leaves to others."""

    def __init__(self, config: uvicorn.Config, house: House, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._house = house
        self._ready = ready
        self._beside: list[asyncio.Future[Any]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
            # What counts tokens takes a second to load: now, and not within the first request.
            counting = asyncio.to_thread(self._house.keeper.counter.count, "Once upon a time")
            self._beside = [asyncio.create_task(self._turn_away()), asyncio.ensure_future(counting)]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)

    async def _turn_away(self) -> None:
        """Closes connections on which no whole request has come since the last one was answered."""
        since: dict[H11Protocol, tuple[RequestResponseCycle | None, float]] = {}
        while True:
            await asyncio.sleep(HEAD / 4)
            now = time.monotonic()
            there = [one for one in self.server_state.connections if isinstance(one, H11Protocol)]
            idle = [one for one in there if getattr(one.cycle, "response_complete", True)]  # none has come yet, or it is answered
            since = {one: since[one] if one in since and since[one][0] is one.cycle else (one.cycle, now) for one in idle}
            for one, (_, began) in since.items():
                if now - began >= HEAD:
                    one.transport.abort()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Told to stop: once, in peace; by a second Ctrl-C, at once. The process then ends by itself, after it has closed its file."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._house.hub.close()
        self._house.arrivals.end()


async def serve(app: FastAPI, made: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serves an app of `create_app` until the process is told to stop."""
    config = uvicorn.Config(
        app, access_log=False, log_config=None, log_level=logging.WARNING, server_header=False, proxy_headers=False, lifespan="off",
        http="h11", ws="none", limit_concurrency=CONNECTIONS, timeout_keep_alive=5, timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    made.listen(1024)
    house: House = app.state.house
    try:
        await _Server(config, house, ready).serve(sockets=[made])
    finally:
        await house.rooms.close()
