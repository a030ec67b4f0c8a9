"""Errors as `application/problem+json` (RFC 9457): what is wrong, and nothing that was sent."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from faena.errors import FaenaError, Overloaded, PayloadError, StoreUnavailable

KIND: Final = "application/problem+json"
_TITLES: Final = {
    400: "Bad request",
    401: "Who are you?",
    403: "Not yours",
    404: "Not found",
    405: "Not this method",
    409: "It is another one",
    410: "No longer there",
    413: "Too large",
    422: "Not valid",
    429: "Too many",
    500: "Our fault",
    502: "A service refused",
    503: "Not now",
}


class BadField(BaseModel):
    """A part of a request that is not valid."""

    field: str
    problem: str


class ProblemContent(BaseModel):
    """Why a request was refused."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[BadField] | None = None
    """Every bad field; what was given is not repeated."""


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problems that a route may answer with, for its documentation."""
    return {one: {"model": ProblemContent, "description": _TITLES[one]} for one in statuses}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def add_handlers(web: FastAPI) -> None:
    """Have all errors answered in this format."""
    web.add_exception_handler(Problem, _answer)
    web.add_exception_handler(RequestValidationError, _invalid)
    web.add_exception_handler(HTTPException, _refused)
    web.add_exception_handler(FaenaError, _unavailable)
    web.add_exception_handler(Exception, _failed)


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The content of an answer."""
    title = _TITLES.get(status, "Error")
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}


async def _answer(_request: Request, error: Any) -> Response:
    content = problem(error.status, error.detail)
    return JSONResponse(content, error.status, error.headers, media_type=KIND)


async def _invalid(_request: Request, error: Any) -> Response:
    """Every bad field with its path; never what was given."""
    fields = [
        {"field": ".".join(str(part) for part in one["loc"][1:]) or "body", "problem": one["msg"]}
        for one in error.errors()
    ]
    content = problem(422, f"{len(fields)} bad fields", errors=fields)
    return JSONResponse(content, 422, media_type=KIND)


async def _refused(_request: Request, error: Any) -> Response:
    content = problem(error.status_code, str(error.detail))
    return JSONResponse(content, error.status_code, error.headers, media_type=KIND)


async def _unavailable(_request: Request, error: Any) -> Response:
    if isinstance(error, PayloadError):
        return JSONResponse(problem(422, str(error)), 422, media_type=KIND)
    if not isinstance(error, StoreUnavailable | Overloaded):
        raise error
    wait_s = max(1, round(getattr(error, "retry_after", None) or 5))
    content = problem(503, "try again later")
    return JSONResponse(content, 503, {"retry-after": str(wait_s)}, media_type=KIND)


async def _failed(_request: Request, _error: Exception) -> Response:
    """What happened is in the log only."""
    content = problem(500, "this request could not be dealt with")
    return JSONResponse(content, 500, media_type=KIND)
