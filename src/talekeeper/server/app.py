"""The app: the gate, the routes, and what Prometheus and load balancers ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from fastapi.security import HTTPBearer

from talekeeper import __version__
from talekeeper.errors import TalekeeperError
from talekeeper.keeper import Keeper
from talekeeper.model import MemoryKey
from talekeeper.ports import ChatModel
from talekeeper.server import metrics, page, problems, schemas
from talekeeper.server.auth import Grant, Tokens
from talekeeper.server.door import House, house_of
from talekeeper.server.gate import Gate
from talekeeper.server.ids import PREFIX
from talekeeper.server.limits import Limits
from talekeeper.server.problems import Problem, forbidden
from talekeeper.server.rooms import Rooms
from talekeeper.server.routes import care, memory, play, stories, time, turns
from talekeeper.server.stream import Hub
from talekeeper.table.playing.seating import Brains
from talekeeper.table.storyteller import Storyteller
from talekeeper.table.world.scenario import Scenario

_SCHEMAS = "#/components/schemas/{model}"
_ABOUT = """Memory for long stories told by language models.

A story is a log of turns; each seat remembers what it heard, and nothing else. A token is a story's `dm`, who sees and does everything, or
shows the views of some seats. What a view shows never depends on what its seat did not hear: not its numbers, ids, versions or errors.

Turns, memories and contexts can be asked for `at` an earlier turn. POST requests that tell something take an `Idempotency-Key`; send it
again after a failure, and nothing is told twice. `If-Match` with a story's `version` binds a change to what you saw.
Errors are problem details (RFC 9457) that say what to do."""
_TAGS = [
    {"name": "stories", "description": "Stories, their seats, and who is where."},
    {"name": "turns", "description": "The log: telling, listing, editing, forgetting."},
    {"name": "memory", "description": "Contexts, recall, and the memories behind them."},
    {"name": "time", "description": "Branches, going back, and the stream of what happens."},
    {"name": "play", "description": "Games: rounds, people and what the game knows."},
    {"name": "care", "description": "Health, statistics, copies."},
]


def create_app(
    keeper: Keeper, *, tokens: Tokens | None = None, tenant: str = "local", limits: Limits | None = None,
    brains: Callable[[Scenario], Brains] = Storyteller, packs: Collection[str] = (), summarizer: ChatModel | None = None,
    rounds: Path | None = None,
) -> FastAPI:  # fmt: skip
    """The page and its API over an open keeper. Without `tokens` it answers requests from this machine only, as the dm of `tenant`.

    `brains`: who plays in games; `packs`: files of scenarios that can be played beside those that come with Talekeeper; `summarizer`:
    who writes the games' memories of places and people; `rounds`: a file for rounds that wait for a person, so that they outlast the
    process."""
    hub = Hub()
    house = House(keeper, tokens, hub, Rooms(keeper, hub, brains, packs, summarizer=summarizer, kept=rounds), limits)
    app = _App(
        title="Talekeeper", version=__version__, description=_ABOUT, openapi_url=f"{PREFIX}/openapi.json", docs_url=None, redoc_url=None,
        openapi_tags=_TAGS, generate_unique_id_function=lambda route: route.name, lifespan=_lifespan,
    )  # fmt: skip
    app.state.house = house
    answers = _answers(400, 401, 403, 404, 409, 412, 413, 422, 429, 503)
    # For the description of the API only: the gate has looked at the token by then.
    bearer = [Depends(HTTPBearer(auto_error=False, description="A token of `talekeeper tokens new`."))]
    for module in (stories, turns, memory, time, play, care):
        app.include_router(module.router, responses=answers, dependencies=bearer)
    _add_upkeep(app)
    page.install(app)
    problems.install(app)
    app.add_middleware(
        Gate, tokens=tokens, local=Grant("local", tenant, dm=True, metrics=True), limits=lambda: house.limits,
        metrics=house.metrics, arrivals=house.arrivals,
    )  # fmt: skip
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await app.state.house.rooms.close()


def _answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": _SCHEMAS.format(model="Problem")}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


class _App(FastAPI):
    """An app whose description has the form of its problems."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            made = super().openapi()
            problem = schemas.Problem.model_json_schema(ref_template=_SCHEMAS)
            made["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        assert self.openapi_schema is not None
        return self.openapi_schema


def _add_upkeep(app: FastAPI) -> None:
    @app.get("/health/live", tags=["care"], summary="Whether the process answers")
    async def live() -> schemas.Status:
        return schemas.Status()

    @app.get("/health/ready", tags=["care"], summary="Whether it can serve", responses=_answers(503))
    async def ready(request: Request) -> schemas.Status:
        """The stories can be read, and it is known who may."""
        house = house_of(request)
        try:
            async with asyncio.timeout(2):
                await house.keeper.store.load(MemoryKey("talekeeper", "health", "ready"))
        except (TalekeeperError, TimeoutError):
            raise Problem(503, "not-ready", "The stories cannot be read.", headers={"Retry-After": "5"}) from None
        if house.hub.closing or (house.tokens is not None and not house.tokens.readable):
            raise Problem(503, "not-ready", "The server is going down, or its tokens cannot be read.", headers={"Retry-After": "5"})
        return schemas.Status()

    @app.get("/metrics", tags=["care"], summary="For Prometheus", response_class=PlainTextResponse, responses=_answers(401, 403, 429))
    async def numbers(request: Request) -> Response:
        """Needs a token with `metrics = true`: the numbers are those of all tenants."""
        if not request.scope["grant"].metrics:
            raise forbidden("This needs a token with metrics = true.")
        return Response(house_of(request).metrics.text(streams=house_of(request).hub.count), media_type=metrics.MEDIA_TYPE)
