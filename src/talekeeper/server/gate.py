"""The gate: what every request has to pass before anything else looks at it.

Without tokens the server is for whoever sits at this machine and for nobody else. It then listens on the loopback interface only, and
also refuses what a browser or a proxy may carry there from outside: other Host names (DNS rebinding), other origins (forged requests) and
forwarded requests. With tokens, the bearer of one gets what it grants, at its rate. Everything that is refused is refused here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from talekeeper.server.auth import Grant, Tokens
from talekeeper.server.ids import PREFIX
from talekeeper.server.limits import Buckets, Limits
from talekeeper.server.metrics import Metrics
from talekeeper.server.problems import Problem, slow_down

IMPORT = f"{PREFIX}/import"
OPEN = frozenset({"/health/live", "/health/ready", f"{PREFIX}/openapi.json"})
"""What may be asked for without a token: nothing in it is anyone's. Neither is there in the page, which asks for one."""
PAGE = "/page/"
_HEADERS = (
    (b"cache-control", b"private, no-cache"), (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)  # fmt: skip
_CLOSE = {"Connection": "close"}
"""For whoever does not send on. (Not for whoever sends too much: a connection that is closed while they send takes the answer along.)"""
BODY = 10.0
"""Seconds within which more of a body has to come."""


class Arrivals:
    """The bodies that are on their way: nobody waits for one for ever, and once the server goes down, nobody does at all."""

    def __init__(self) -> None:
        self._timers: set[asyncio.Timeout] = set()
        self._ended = False

    async def next(self, receive: Receive) -> Message:
        """What comes next of a body."""
        try:
            async with asyncio.timeout(0 if self._ended else BODY) as timer:
                self._timers.add(timer)
                try:
                    return await receive()
                finally:
                    self._timers.discard(timer)
        except TimeoutError:
            raise HTTPException(503 if self._ended else 408, headers=_CLOSE | ({"Retry-After": "1"} if self._ended else {})) from None

    def end(self) -> None:
        """The server goes down."""
        self._ended = True
        for timer in self._timers:
            if not timer.expired():
                timer.reschedule(0)


class Gate:
    """ASGI middleware around the whole app. It leaves the `grant` in the scope, and `granted`, which says whether it still holds."""

    def __init__(
        self, app: ASGIApp, *, tokens: Tokens | None, local: Grant, limits: Callable[[], Limits], metrics: Metrics, arrivals: Arrivals
    ) -> None:
        self._app = app
        self._arrivals = arrivals
        self._tokens, self._local = tokens, local
        self._limits = limits
        self._metrics = metrics
        self._rates = Buckets()
        self._guesses = Buckets()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no websockets here
        began, asked = time.perf_counter(), scope["method"]
        status = 500
        if asked == "HEAD" and is_open(scope["path"]):
            scope, send = {**scope, "method": "GET"}, _bodiless(send)

        async def count(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(row for row in _HEADERS if row[0] not in given)]
            await send(message)

        try:
            await self._admit(scope, receive, count)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            streamed = route.endswith("/events") and status == 200
            self._metrics.answered(asked, route, status, None if streamed else time.perf_counter() - began)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            if self._tokens is None:
                self._check_local(headers)
            if not is_open(scope["path"]):
                scope["grant"], scope["granted"] = self._grant(scope, headers)
                self._check_rate(scope["grant"])
            receive = self._measured(scope, headers, receive)
        except Problem as problem:
            self._metrics.refused(problem.code)
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    # -- who ---------------------------------------------------------------------------------------------------------------

    def _grant(self, scope: Scope, headers: dict[str, str]) -> tuple[Grant, Callable[[], bool]]:
        if self._tokens is None:
            return self._local, lambda: True
        tokens = self._tokens
        kind, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        grant = tokens.find(token) if kind.lower() == "bearer" and token else None
        if grant is None:
            address = scope["client"][0] if scope.get("client") else ""
            guesses = self._limits().guesses
            wait = self._guesses.take(address, guesses / 100, guesses) if token else 0.0  # who comes without one does not guess
            if wait:
                raise slow_down(wait)
            raise Problem(
                401, "no-token", "This needs a token: send the header Authorization: Bearer … with one that is valid here.",
                headers={"WWW-Authenticate": 'Bearer realm="talekeeper"'},
            )  # fmt: skip
        return grant, lambda: tokens.find(token) == grant

    @staticmethod
    def _check_local(headers: dict[str, str]) -> None:
        """Only this machine, only directly, only by a name of its own."""
        host = headers.get("host", "")
        if not is_loopback(_without_port(host)):
            raise Problem(
                421, "wrong-host", "Without tokens this server answers to localhost only. Start it with --tokens to serve others."
            )
        if any(name in headers for name in ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")):
            raise Problem(
                403, "forwarded", "Without tokens this server takes no forwarded requests. Start it with --tokens to serve others."
            )
        origin = headers.get("origin")
        if (origin is not None and origin not in (f"http://{host}", f"https://{host}")) or headers.get("sec-fetch-site") == "cross-site":
            raise Problem(403, "other-origin", "Without tokens this server answers its own pages only.")

    # -- how much ------------------------------------------------------------------------------------------------------------

    def _check_rate(self, grant: Grant) -> None:
        """Tokens have a rate. Whoever sits at this machine has none: they would only keep themselves waiting."""
        limits = self._limits()
        wait = self._rates.take(grant.name, limits.rate, limits.burst) if self._tokens is not None else 0.0
        if wait:
            raise slow_down(wait)

    def _measured(self, scope: Scope, headers: dict[str, str], receive: Receive) -> Receive:
        """What is received, up to the limit."""
        most = self._limits().upload if scope["path"] == IMPORT else self._limits().body
        declared = headers.get("content-length", "0")
        too_large = f"The body is too large: at most {most} bytes are taken here."
        if not declared.isdigit() or int(declared) > most:
            raise Problem(413, "too-large", too_large)
        taken, whole = 0, False

        async def measured() -> Message:
            nonlocal taken, whole
            message = await (receive() if whole else self._arrivals.next(receive))
            whole = not message.get("more_body", False)  # what comes behind it is that the asker has gone
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, too_large)
            return message

        return measured


def _bodiless(send: Send) -> Send:
    """Only how the answer begins: what is asked with HEAD."""

    async def begin(message: Message) -> None:
        await send(message if message["type"] == "http.response.start" else {**message, "body": b""})

    return begin


def is_open(path: str) -> bool:
    """Whether it may be asked for without a token."""
    return path in OPEN or path == "/" or path.startswith(PAGE)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether the name or address stands for this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
