"""Errors as answers: a status, when to try again, and a body in `application/problem+json`.

Bodies say what a caller can do about it. They hold no payload, no address of the broker and no
traceback.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from faena.errors import (
    ArgumentError,
    FaenaError,
    InvalidTransition,
    JobConflict,
    JobNotFound,
    NotDeclared,
    Overloaded,
    PayloadError,
    ResultTimeout,
    StoreError,
)

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_STORE_S: Final = 5


class Kind(msgspec.Struct, frozen=True):
    """What is said of errors of one class."""

    status: int
    code: str
    words: str | None = None
    """Instead of the error's own, where those are for operators."""


KINDS: Final[dict[type[FaenaError], Kind]] = {
    PayloadError: Kind(422, "payload"),
    ArgumentError: Kind(422, "invalid"),
    JobConflict: Kind(409, "conflict"),
    InvalidTransition: Kind(409, "transition"),
    JobNotFound: Kind(404, "not_found"),
    Overloaded: Kind(429, "overloaded"),
    ResultTimeout: Kind(504, "not_finished"),
    NotDeclared: Kind(503, "not_ready", "the queue is not ready yet: try again later"),
    StoreError: Kind(503, "unavailable", "jobs cannot be accepted now: try again later"),
}


def problem(status: int, code: str, words: str, *, retry_after: float = 0, **more: Any) -> Response:
    """An answer that says no."""
    body = {"title": code.replace("_", " "), "status": status, "code": code, "detail": words}
    headers = {"Retry-After": str(max(1, math.ceil(retry_after)))} if retry_after else None
    content = msgspec.json.encode(body | more)
    return Response(content, status, headers, media_type=MEDIA_TYPE)


def problem_of(error: FaenaError) -> Response | None:
    """The answer for an error; None for one that is the program's own."""
    kind = next((KINDS[one] for one in type(error).__mro__ if one in KINDS), None)
    if kind is None:
        return None
    more: dict[str, Any] = {}
    if isinstance(error, PayloadError) and error.fields:
        more["fields"] = [{"path": path, "reason": reason} for path, reason in error.fields]
    if isinstance(error, ArgumentError):
        more["field"] = error.field
    wait = error.retry_after if isinstance(error, Overloaded) else 0
    wait = _RETRY_STORE_S if isinstance(error, StoreError) else wait
    words = error.rule if isinstance(error, ArgumentError) else kind.words or str(error)
    return problem(kind.status, kind.code, words, retry_after=wait, **more)


async def _handle(_request: Request, error: Exception) -> Response:
    answer = problem_of(error) if isinstance(error, FaenaError) else None
    if answer is None:
        raise error
    return answer


def exception_handlers() -> dict[Any, Any]:
    """For `Starlette(exception_handlers=…)` and `FastAPI(exception_handlers=…)`."""
    return dict.fromkeys(KINDS, _handle)
