"""How Meta's Graph API says no."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from apps.sandbox import stand_in

_STATUSES: Final[Mapping[int, int]] = {
    0: 401,
    190: 401,
    3: 500,
    10: 403,
    131005: 403,
    4: 429,
    80007: 429,
    130429: 429,
    131048: 429,
    131056: 429,
    368: 403,
    131031: 403,
    2: 503,
    131000: 500,
    131016: 500,
    132001: 404,
}
"""Where it is not 400."""

TITLES: Final[Mapping[int, str]] = {
    2: "API Service",
    4: "API Too Many Calls",
    10: "Permission Denied",
    100: "Invalid parameter",
    130429: "Rate limit hit",
    131000: "Something went wrong",
    131008: "Required parameter is missing",
    131009: "Parameter value is not valid",
    131026: "Message undeliverable",
    131047: "Re-engagement message",
    131053: "Media upload error",
    131056: "(Business Account, Consumer Account) pair rate limit hit",
    132000: "Number of parameters does not match the expected number of params",
    132001: "Template name does not exist in the translation",
    132012: "Parameter format does not match format in the created template",
    132015: "Template is paused",
    132016: "Template is disabled",
    190: "Invalid OAuth access token",
}
_CODES: Final[Mapping[int, int]] = {401: 190, 403: 10, 404: 100, 429: 130429, 500: 131000, 503: 2}
"""Which code a service in trouble gives with a status."""


class Refused(stand_in.Refused):
    """A request that is against the rules."""

    def __init__(self, code: int, details: str, *, subcode: int | None = None) -> None:
        super().__init__(details)
        self.code, self.subcode = code, subcode

    @property
    def response(self) -> Response:
        """The answer."""
        return graph_error(self.code, str(self), subcode=self.subcode)

    @property
    def detail(self) -> dict[str, Any]:
        """Code and words."""
        return {"code": self.code, "details": str(self)}


def graph_error(
    code: int, details: str, *, status: int | None = None, subcode: int | None = None
) -> Response:
    """An answer in the Graph API's format of errors."""
    error: dict[str, Any] = {
        "message": f"(#{code}) {title_of(code)}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
        "fbtrace_id": f"A{secrets.token_urlsafe(16)}",
    }
    if subcode is not None:
        error["error_subcode"] = subcode
    return JSONResponse({"error": error}, status or _STATUSES.get(code, 400))


def trouble(status: int) -> Response:
    """The answer of a service that is in trouble."""
    code = _CODES.get(status, 131000 if status >= 500 else 100)
    return graph_error(code, "the service is in trouble", status=status)


def title_of(code: int) -> str:
    """What Meta calls a code."""
    return TITLES.get(code, "An error")
