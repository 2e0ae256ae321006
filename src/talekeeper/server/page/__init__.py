"""The page: plain ES modules and styles, served as they are. It is a client of the API and knows nothing else.

It may load nothing from anywhere but here, and runs no script that is not a file of its own.
"""

from __future__ import annotations

from importlib import resources

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.exceptions import HTTPException

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def install(app: FastAPI) -> None:
    """Serves the page at `/` and its parts under `/page/`."""
    folder = resources.files(__name__)
    parts = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.rpartition(".")[2] in _TYPES}

    def answer(name: str) -> Response:
        if name not in parts:
            raise HTTPException(404)
        kind = _TYPES[name.rpartition(".")[2]]
        return Response(parts[name], media_type=f"{kind}; charset=utf-8", headers={"Content-Security-Policy": _POLICY})

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return answer("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        return answer(name)
