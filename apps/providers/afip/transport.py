"""One HTTP request with a SOAP envelope, and what can be known when it fails.

Errors of the HTTP client hold the request, and with it the ticket: none of them is kept as a cause.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import httpx

_MOST_BYTES: Final = 4 * 1024 * 1024
_UNSENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)


class Unsent(Exception):
    """The request did not leave."""


class Unanswered(Exception):
    """The request may have arrived; no whole answer came."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    content: bytes = field(repr=False)
    retry_after: str | None = None


class Transport:
    """Posts envelopes."""

    def __init__(self, http: httpx.AsyncClient, timeout: timedelta) -> None:
        self._http = http
        self._timeout_s = timeout.total_seconds()

    async def post(self, url: str, action: str, envelope: bytes) -> Answer:
        """Send it and read the answer, both within the timeout."""
        failure: Exception
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._exchange(url, action, envelope)
        except TimeoutError:
            failure = Unanswered(f"no answer came within {self._timeout_s:g} s")
        except _UNSENT as error:
            failure = Unsent(f"no connection could be made ({type(error).__name__})")
        except (httpx.RequestError, httpx.StreamError, _TooLarge) as error:
            failure = Unanswered(f"no whole answer came ({type(error).__name__.lstrip('_')})")
        raise failure  # here, so that the client's error is not its context

    async def _exchange(self, url: str, action: str, envelope: bytes) -> Answer:
        headers = {"content-type": "text/xml; charset=utf-8", "soapaction": f'"{action}"'}
        async with self._http.stream(
            "POST",
            url,
            content=envelope,
            headers=headers,
            timeout=self._timeout_s,
            follow_redirects=False,
        ) as response:
            content = await _limited(response)
            return Answer(response.status_code, content, response.headers.get("retry-after"))


class _TooLarge(Exception):
    """More than any answer of AFIP's has."""


async def _limited(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise _TooLarge
    return bytes(content)
