"""Listening, and going down without cutting anyone off."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from talekeeper.errors import InvalidInput
from talekeeper.server.door import House
from talekeeper.server.gate import is_loopback

GRACE = 10
"""Seconds that requests have to come to their end when the server goes down."""
CONNECTIONS = 1000


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


class _Server(uvicorn.Server):
    """Ends the streams before it waits for connections to end: they would not by themselves."""

    def __init__(self, config: uvicorn.Config, house: House, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._house = house
        self._ready = ready
        self._warming: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
            self._warming = asyncio.create_task(self._house.rooms.warm_up())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Told to stop: once, in peace; by a second Ctrl-C, at once. The process then ends by itself, after it has closed its file."""
        self._house.hub.close()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


async def serve(app: FastAPI, made: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serves an app of `create_app` until the process is told to stop."""
    config = uvicorn.Config(
        app, access_log=False, log_config=None, log_level=logging.WARNING, server_header=False, proxy_headers=False, lifespan="off",
        ws="none", limit_concurrency=CONNECTIONS, timeout_keep_alive=5, timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    made.listen(1024)
    house: House = app.state.house
    try:
        await _Server(config, house, ready).serve(sockets=[made])
    finally:
        await house.rooms.close()
