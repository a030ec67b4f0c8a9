"""One request and its answer: sent with the token, read up to a size, sorted if it went wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from apps.providers.mercadopago.errors import (
    Conflict,
    MercadoPagoError,
    NotFound,
    Permanent,
    RateLimited,
    Retryable,
    Unauthorized,
    UnknownOutcome,
)
from apps.providers.mercadopago.fields import Fields, Unreadable, decode
from apps.providers.mercadopago.settings import Settings

MOST_BYTES: Final = 2 * 1024 * 1024
"""A page of a hundred payments has a few hundred thousand bytes."""

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NOT_DONE: Final = frozenset({408, 423, 424})
"""It did not arrive whole, its key is locked, or another service failed before it began."""
_UNDER_WAY: Final = frozenset({"refund_in_progress", "401001"})
"""A 409 that means: the first request with this key has not ended yet."""
_REFUSALS: Final[Mapping[int, type[Permanent]]] = {
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
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
    def is_write(self) -> bool:
        """Whether it changes something: then the lack of an answer leaves it open what was done."""
        return self.method != "GET"


class Exchange:
    """Sends requests to one account."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._http = settings, http

    async def ask(self, request: Request) -> Any:
        """The JSON value of a good answer; everything else is raised."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response, body = await self._send(request)
        except _UNSENT as error:
            raise Retryable(f"mercadopago could not be reached ({type(error).__name__})") from None
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, Unreadable) as error:
            raise unclear(request, f"did not answer in full ({type(error).__name__})") from None
        if not response.is_success:
            raise _refusal(request, response, body)
        try:
            return decode(body)
        except Unreadable as error:
            raise unclear(request, f"answered what cannot be read: {error}") from None

    async def _send(self, request: Request) -> tuple[httpx.Response, bytes]:
        settings = self._settings
        async with self._http.stream(
            request.method,
            settings.base_url.rstrip("/") + request.path,
            params=request.query,
            content=None if request.body is None else json.dumps(request.body),
            headers=self._headers(request),
            timeout=settings.timeout_s,
            follow_redirects=False,
        ) as response:
            return response, await _read(response)

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


def unclear(request: Request, what: str) -> MercadoPagoError:
    """The error of a request without a clear answer: a read can be asked again at once."""
    kind = UnknownOutcome if request.is_write else Retryable
    return kind(f"mercadopago {what}")


async def _read(response: httpx.Response) -> bytes:
    """The body, unless it is larger than any answer is."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_BYTES:
            raise Unreadable("the answer is too large")
    return bytes(body)


def _refusal(request: Request, response: httpx.Response, body: bytes) -> MercadoPagoError:
    status, codes = response.status_code, _codes(body)
    message = " ".join(["mercadopago answered", str(status), *codes])
    if status == 429:
        return RateLimited(message, retry_after=response.headers.get("retry-after"), codes=codes)
    if status >= 500 or status < 400:
        kind = UnknownOutcome if request.is_write else Retryable
    elif status in _NOT_DONE or (status == 409 and _UNDER_WAY.intersection(codes)):
        kind = Retryable
    else:
        kind = _REFUSALS.get(status, Permanent)
    return kind(message, status=status, codes=codes)


def _codes(body: bytes) -> tuple[str, ...]:
    """The error's name and the codes of its causes: words of the protocol, never free text."""
    try:
        found = Fields(decode(body))
        given = [found.text_or_empty("error")]
        given += [Fields(one).text_or_empty("code") for one in found.items("cause")]
    except Unreadable:
        return ()
    return tuple(one for one in given if _CODE.fullmatch(one))
