"""One question to Google's maps and its answer: read up to a size, sorted if it went wrong.

The key is part of the address, which httpx logs and names in its errors: it is taken out of the one
and the others are not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import httpx

from apps.providers.maps.errors import (
    MapsError,
    Permanent,
    RateLimited,
    Retryable,
    UnknownOutcome,
)
from apps.providers.maps.settings import Settings

_MOST_BYTES: Final = 4 * 2**20
"""A route has its steps, which are many and are not read."""
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_CONNECT_S: Final = 5.0


class _WithoutQuery(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                one.copy_with(query=None) if isinstance(one, httpx.URL) else one
                for one in record.args
            )
        return True


_WITHOUT_QUERY: Final = _WithoutQuery()


class Exchange:
    """Asks with one key."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._http = settings, http
        logging.getLogger("httpx").addFilter(_WITHOUT_QUERY)  # adding it again does nothing

    async def ask(self, service: str, query: Mapping[str, str]) -> bytes:
        """What is answered; its own status is not looked at."""
        settings = self._settings
        common = {
            "language": settings.language,
            "region": settings.region,
            "units": "metric",
            "key": settings.key,
        }
        try:
            async with (
                asyncio.timeout(settings.timeout_s),
                self._http.stream(
                    "GET",
                    f"{settings.base_url.rstrip('/')}/maps/api/{service}/json",
                    params={**query, **common},
                    timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_S),
                    follow_redirects=False,
                ) as response,
            ):
                body = await _read(response)
        except _UNSENT:
            raise Retryable("maps could not be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            raise UnknownOutcome("maps did not answer in full") from None
        if not response.is_success:
            raise _refusal(response)
        return body


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            raise httpx.RemoteProtocolError("the answer is too large")
    return bytes(body)


def _refusal(response: httpx.Response) -> MapsError:
    status = response.status_code
    if status == 429:
        pause = response.headers.get("retry-after")
        return RateLimited("maps asked to wait", retry_after=pause)
    if status >= 500 or status < 400 or status == 408:
        return Retryable(f"maps answered with status {status}")
    return Permanent(f"maps refused the question with status {status}")
