"""Errors as problem details (RFC 9457), and the one place that says which error becomes which answer.

What an error says may name seats, numbers and versions that are not everyone's business. Whoever is not the dm of the story gets the
words that stand here, which are the same whatever others did (I3).
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from talekeeper import errors
from talekeeper.server.ids import PREFIX

log = logging.getLogger("talekeeper.server")
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """Something that the asker can be told. `code` is for programs, `detail` for people: what happened, and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, more: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def body(self) -> dict[str, Any]:
        title = HTTPStatus(self.status).phrase
        return {"type": f"urn:talekeeper:{self.code}", "title": title, "status": self.status, "detail": self.detail, **self.more}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, {"Cache-Control": "no-store", **self.headers}, MEDIA_TYPE)


def unknown(what: str) -> Problem:
    """What is not there, or is not for the asker: the two cannot be told apart."""
    return Problem(
        404, f"unknown-{what}", f"There is no such {what} here, or it is not yours to see. Look it up in the list of what there is."
    )


def forbidden(detail: str) -> Problem:
    return Problem(403, "forbidden", detail)


def invalid(detail: str) -> Problem:
    return Problem(422, "invalid", detail)


def slow_down(seconds: float, of: str = "requests") -> Problem:
    wait = max(1, int(seconds + 0.999))
    return Problem(
        429, "too-many-requests", f"Too many {of} with this token: wait {wait} s, then go on.", headers={"Retry-After": str(wait)}
    )


_AGAIN = {"Retry-After": "1"}
_TREE: Mapping[type[errors.TalekeeperError], tuple[int, str, str]] = {
    errors.UnknownStory: (404, "unknown-story", "There is no such story here. List the stories to see which there are."),
    errors.UnknownTurn: (404, "unknown-turn", "There is no such turn here. List the turns to see which there are."),
    errors.UnknownFold: (404, "unknown-memory", "There is no such memory here. List the memories to see which there are."),
    errors.UnknownBranch: (404, "unknown-branch", "There is no such branch here. List the branches to see which there are."),
    errors.UnknownSeat: (422, "unknown-seat", "There is no such seat here. List the seats to see which there are."),
    errors.DuplicateId: (409, "duplicate-id", "That id or key belongs to another turn, or to one that was undone: use a new one."),
    errors.NameTaken: (409, "name-taken", "There is a game or a branch of that name already. Choose another name."),
    errors.InvalidInput: (422, "invalid", "The story cannot take that as it stands. Nothing was changed."),
    errors.BudgetTooSmall: (422, "budget-too-small", "What is pinned needs more tokens than the budget has: raise it."),
    errors.Conflict: (409, "conflict", "Someone else was first. Read again, then retry."),
    errors.StoreBusy: (503, "busy", "The stories are being written to elsewhere. Retry in a moment."),
    errors.StoreClosed: (503, "closing", "The server is going down. Retry in a moment."),
    errors.StoreFull: (507, "no-space", "The server has no space left; nothing was changed. Tell whoever runs it."),
    errors.StoreReadOnly: (503, "read-only", "The server may not write to its stories; nothing was changed. Tell whoever runs it."),
    errors.ModelUnavailable: (503, "no-model", "The server has no model for that. Tell whoever runs it."),
    errors.ModelFailed: (502, "model-failed", "The model gave nothing usable, and nothing was changed. Retry."),
    errors.TalekeeperError: (500, "store", "The server cannot use its stories; nothing was changed. Tell whoever runs it."),
}  # fmt: skip
_OF_THE_LIBRARY = (errors.UnknownFold, errors.DuplicateId, errors.Conflict)
"""Their own words advise whoever calls the library, and help nobody who speaks HTTP."""


def from_error(error: errors.TalekeeperError, *, in_full: bool, bound: bool) -> Problem:
    """The answer to an error. `in_full`: with its own words. `bound`: the request named the version that it was made for."""
    kind = next(kind for kind in type(error).__mro__ if kind in _TREE)
    status, code, words = _TREE[kind]
    if isinstance(error, errors.Conflict) and bound:
        status, code, words = 412, "moved-on", "The story is not at the version that you named. Read again, then retry."
    elif status >= 500:
        log.error("request failed", extra={"error": f"{type(error).__name__}: {error}"})
    in_full = in_full and status < 500 and not isinstance(error, _OF_THE_LIBRARY)
    detail = _sentence(str(error)) if in_full else words
    more = {"needed": error.needed, "budget": error.budget} if isinstance(error, errors.BudgetTooSmall) else {}
    return Problem(status, code, detail, headers=_AGAIN if status == 503 else None, more=more)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


# -- handlers ----------------------------------------------------------------------------------------------------------


def install(app: FastAPI) -> None:
    """Makes every error of the app an answer of this form."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(errors.TalekeeperError, _known)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(TimeoutError, _late)
    app.add_exception_handler(Exception, _unforeseen)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return error.response()


async def _known(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.TalekeeperError)
    grant = request.scope.get("grant")
    in_full = grant is not None and grant.dm
    return from_error(error, in_full=in_full, bound="if-match" in request.headers).response()


async def _not_understood(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    rows = {(_place(one["loc"]), str(one["msg"])): None for one in error.errors()[:20]}
    found = [{"at": at, "message": message} for at, message in rows]
    if any(one["type"] == "json_invalid" for one in error.errors()):
        words = "The body is not JSON."
    elif any(one["loc"] == ("body",) for one in error.errors()) and "json" not in request.headers.get("content-type", ""):
        words = "The body was not taken for JSON: send the header Content-Type: application/json."
    else:
        words = "The request does not have the form that is described in the API."
    return Problem(422, "invalid", f"{words} Nothing was changed.", more={"errors": found}).response()


def _place(path: Sequence[object]) -> str:
    return ".".join(str(part) for part in path)[:200]


_WORDS = {
    404: ("no-such-route", f"There is nothing at this address. The API is described at {PREFIX}/openapi.json."),
    405: ("no-such-method", "This address does not take that method. The header Allow says which it takes."),
    400: ("unreadable", "The body cannot be read: send it as JSON in UTF-8, with numbers and nesting within reason."),
    408: ("too-slow", "The rest of the body did not come within ten seconds. Send the request again."),
    413: ("too-large", "The body is too large."),
    503: ("closing", "The server is going down. Retry in a moment."),
}  # fmt: skip


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, words = _WORDS.get(error.status_code, ("http", str(error.detail)))
    headers = {"Allow": _methods(request)} if error.status_code == 405 else dict(error.headers or {})
    return Problem(error.status_code, code, words, headers=headers).response()


def _methods(request: Request) -> str:
    """What can be done at an address, by the description of the API."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    found = [ways for path, ways in paths.items() if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.url.path)]
    return ", ".join(sorted({way.upper() for ways in found for way in ways}))


async def _late(request: Request, error: Exception) -> JSONResponse:
    return Problem(503, "too-slow", "That took too long and was given up. Retry with the same Idempotency-Key.", headers=_AGAIN).response()


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    incident = secrets.token_hex(6)
    log.error("unforeseen error", extra={"incident": incident}, exc_info=error)
    return Problem(500, "bug", f"Something went wrong that should not. Report it with this number: {incident}.").response()
