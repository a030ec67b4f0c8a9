"""One request to Twilio and its answer: read up to a size, sorted if it went wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import httpx
import msgspec

from apps.providers.sms.errors import (
    Permanent,
    RateLimited,
    Retryable,
    SmsError,
    UnknownOutcome,
)
from apps.providers.sms.settings import Settings

_MOST_BYTES: Final = 2**20
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_CONNECT_S: Final = 5.0


class _Refusal(msgspec.Struct):
    code: int | None = None


class _WithoutQuery(logging.Filter):
    """httpx logs the address of each request; here its query has the number of a person."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                one.copy_with(query=None) if isinstance(one, httpx.URL) else one
                for one in record.args
            )
        return True


_WITHOUT_QUERY: Final = _WithoutQuery()


class Exchange:
    """Sends requests for one account."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._http = settings, http
        logging.getLogger("httpx").addFilter(_WITHOUT_QUERY)  # adding it again does nothing

    async def post(self, path: str, form: Mapping[str, str]) -> bytes:
        """What is answered to a form."""
        return await self._ask("POST", path, form=form)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """What is answered to a question."""
        return await self._ask("GET", path, query=query)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        form: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        settings = self._settings
        unclear = UnknownOutcome if method == "POST" else Retryable
        base = f"{settings.base_url.rstrip('/')}/2010-04-01/Accounts/{settings.account_sid}"
        try:
            async with (
                asyncio.timeout(settings.timeout_s),
                self._http.stream(
                    method,
                    f"{base}/{path}",
                    data=form,
                    params=query,
                    auth=(settings.account_sid, settings.auth_token),
                    timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_S),
                    follow_redirects=False,
                ) as response,
            ):
                body = await _read(response)
        except _UNSENT:
            raise Retryable("twilio could not be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            raise unclear("twilio did not answer in full") from None
        if not response.is_success:
            raise _refusal(response, body, unclear)
        return body


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            raise httpx.RemoteProtocolError("the answer is too large")
    return bytes(body)


def _refusal(response: httpx.Response, body: bytes, unclear: type[SmsError]) -> SmsError:
    status, code = response.status_code, _code(body)
    words = f"status {status}{f' (code {code})' if code else ''}"
    if status == 429:
        pause = response.headers.get("retry-after")
        return RateLimited("twilio asked to wait", retry_after=pause, code=code)
    if status >= 500:
        return unclear(f"twilio answered with {words}", code=code)
    if status < 400 or status == 408:
        return Retryable(f"twilio answered with {words}", code=code)
    return Permanent(f"twilio refused the request with {words}", code=code)


def _code(body: bytes) -> int | None:
    try:
        return msgspec.json.decode(body, type=_Refusal).code
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
