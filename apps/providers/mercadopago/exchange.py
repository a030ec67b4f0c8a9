"""One request and its answer: sent with the token, read up to a size, sorted if it went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx

from apps.providers import http
from apps.providers.mercadopago import errors
from apps.providers.mercadopago.fields import Fields
from apps.providers.mercadopago.settings import Settings
from apps.providers.reading import Unreadable, decode

T = TypeVar("T")

MOST_BYTES: Final = 2 * 1024 * 1024
"""A page of a hundred payments has a few hundred thousand bytes."""

_NOT_DONE: Final = frozenset({408, 423, 424})
"""It did not arrive whole, its key is locked, or another service failed before it began."""
_UNDER_WAY: Final = frozenset({"refund_in_progress", "401001"})
"""A 409 that means: the first request with this key has not ended yet."""
_REFUSALS: Final[Mapping[int, type[errors.Permanent]]] = {
    401: errors.Unauthorized,
    403: errors.Unauthorized,
    404: errors.NotFound,
    409: errors.Conflict,
}
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of MercadoPago."""

    method: str
    path: str
    query: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None
    key: str | None = None
    """The idempotency key."""

    @property
    def unclear(self) -> type[errors.MercadoPagoError]:
        """What the lack of a clear answer means: a read can be asked again at once."""
        return errors.Retryable if self.method == "GET" else errors.UnknownOutcome


class Exchange:
    """Sends requests to one account."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient) -> None:
        self._settings = settings
        self._exchange = http.Exchange(
            "mercadopago", client, settings.timeout_s, MOST_BYTES, unsent=errors.Retryable
        )

    async def ask(self, request: Request, read: Callable[[Any], T]) -> T:
        """What `read` finds in a good answer; everything else is raised."""
        answer = await self._exchange.ask(
            request.method,
            self._settings.base_url.rstrip("/") + request.path,
            unclear=request.unclear,
            params=request.query,
            content=None if request.body is None else json.dumps(request.body),
            headers=self._headers(request),
        )
        if not answer.is_success:
            raise _refusal(request, answer)
        try:
            return read(decode(answer.body, has_decimals=True))
        except Unreadable as error:
            what = f"mercadopago answered what cannot be read: {error}"
            raise request.unclear(what) from None

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {
            "authorization": f"Bearer {self._settings.access_token}",
            "accept": "application/json",
            "accept-encoding": "identity",
        }
        if request.body is not None:
            headers["content-type"] = "application/json"
        if request.key is not None:
            headers["x-idempotency-key"] = request.key
        return headers


def _refusal(request: Request, answer: http.Answer) -> errors.MercadoPagoError:
    status, codes = answer.status, _codes(answer.body)
    message = " ".join(["mercadopago answered", str(status), *codes])
    if status == 429:
        return errors.RateLimited(
            message, retry_after=answer.retry_after, status=status, codes=codes
        )
    if status >= 500 or status < 400:
        kind = request.unclear
    elif status in _NOT_DONE or (status == 409 and _UNDER_WAY.intersection(codes)):
        kind = errors.Retryable
    else:
        kind = _REFUSALS.get(status, errors.Permanent)
    return kind(message, status=status, codes=codes)


def _codes(body: bytes) -> tuple[str, ...]:
    """The error's name and the codes of its causes: words of the protocol, never free text."""
    try:
        found = Fields(decode(body, has_decimals=True))
        given = [found.text_or_empty("error")]
        given += [Fields(one).text_or_empty("code") for one in found.items("cause")]
    except Unreadable:
        return ()
    return tuple(one for one in given if _CODE.fullmatch(one))
