"""How MercadoPago says no."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import JSONResponse, Response

from apps.sandbox import stand_in

_NAMES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    422: "unprocessable_entity",
    423: "resource_locked",
    424: "failed_dependency",
    429: "too_many_requests",
}


class Refused(stand_in.Refused):
    """A request that is against the rules."""

    def __init__(
        self, status: int, message: str, *, code: int | None = None, error: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.error = status, code, error

    @property
    def response(self) -> Response:
        """The answer."""
        cause = [] if self.code is None else [cause_of(self.code, str(self))]
        return error_response(self.status, str(self), error=self.error, cause=cause)

    @property
    def detail(self) -> dict[str, Any]:
        """Status and words."""
        return {"status": self.status, "message": str(self)}


def cause_of(code: int, description: str) -> dict[str, Any]:
    """One entry of `cause`."""
    return {"code": code, "description": description, "data": None}


def error_response(
    status: int,
    message: str,
    *,
    error: str | None = None,
    cause: list[dict[str, Any]] | None = None,
) -> Response:
    """An answer in MercadoPago's format of errors."""
    name = error or _NAMES.get(status, "internal_error")
    body = {"message": message, "error": name, "status": status, "cause": cause or []}
    return JSONResponse(body, status)
