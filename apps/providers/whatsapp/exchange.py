"""One request and its answer: sent with the token, read up to a size, sorted if it went wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from apps.providers.whatsapp.error_code import Code, Kind, code_of
from apps.providers.whatsapp.errors import (
    Blocked,
    OutsideWindow,
    PairLimited,
    Permanent,
    RateLimited,
    Retryable,
    Unauthorized,
    UnknownOutcome,
    WhatsAppError,
)
from apps.providers.whatsapp.fields import Fields, Unreadable, decode
from apps.providers.whatsapp.settings import Settings

MOST_BYTES: Final = 1024 * 1024
USAGE: Final = "x-business-use-case-usage"

UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_TRACE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_USUAL_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 3600.0
_CLASSES: Final[Mapping[Kind, type[WhatsAppError]]] = {
    "retryable": Retryable,
    "unauthorized": Unauthorized,
    "blocked": Blocked,
    "outside_window": OutsideWindow,
    "permanent": Permanent,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of WhatsApp."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    file: tuple[str, bytes, str] | None = None
    """Name, content and type of a file."""
    is_send: bool = False
    """Whether a customer sees it: then the lack of an answer leaves it open whether they do."""


class Exchange:
    """Sends requests for one number."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings, self._http = settings, http

    async def ask(self, request: Request) -> Fields:
        """The object of a good answer; everything else is raised."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response, body = await self._send(request)
        except UNSENT as error:
            raise Retryable(f"whatsapp could not be reached ({type(error).__name__})") from None
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, Unreadable) as error:
            raise unclear(request, f"did not answer in full ({type(error).__name__})") from None
        if not response.is_success:
            raise refusal(request, response, body)
        try:
            return Fields(decode(body))
        except Unreadable as error:
            raise unclear(request, f"answered what cannot be read: {error}") from None

    async def _send(self, request: Request) -> tuple[httpx.Response, bytes]:
        settings = self._settings
        headers = {
            "authorization": f"Bearer {settings.access_token}",
            "accept-encoding": "identity",
        }
        if request.body is not None:
            headers["content-type"] = "application/json"
        async with self._http.stream(
            request.method,
            settings.base_url.rstrip("/") + request.path,
            params=request.query,
            content=None if request.body is None else json.dumps(request.body),
            data=request.form,
            files=None if request.file is None else {"file": request.file},
            headers=headers,
            timeout=settings.timeout_s,
            follow_redirects=False,
        ) as response:
            return response, await read_up_to(response, MOST_BYTES)


async def read_up_to(response: httpx.Response, most: int) -> bytes:
    """The body, unless it is larger."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most:
            raise Unreadable("it is too large")
    return bytes(body)


def unclear(request: Request, what: str) -> WhatsAppError:
    """The error of a request without a clear answer: what no customer sees can be asked again."""
    kind = UnknownOutcome if request.is_send else Retryable
    return kind(f"whatsapp {what}")


def refusal(request: Request, response: httpx.Response, body: bytes) -> WhatsAppError:
    """What an answer means that is not a good one: its code counts, then its status."""
    status = response.status_code
    try:
        error = Fields(decode(body)).inner("error")
        number, trace_id = error.whole("code"), error.text_or_empty("fbtrace_id")
        is_transient = error.is_true("is_transient")
    except Unreadable:
        return _by_status(request, response)
    code = code_of(number)
    if code is None and not is_transient:
        return _by_status(request, response, number)
    code = code or Code("retryable", "it says that this will pass")
    message = f"whatsapp answered {status} with code {number}: {code.meaning}"
    known: dict[str, Any] = {"status": status, "code": number, "trace_id": _plain(trace_id)}
    if code.kind in {"rate_limited", "pair_limited"}:
        limited = PairLimited if code.kind == "pair_limited" else RateLimited
        return limited(message, retry_after=_wait(response, code), **known)
    return _CLASSES[code.kind](message, **known)


def _by_status(
    request: Request, response: httpx.Response, code: int | None = None
) -> WhatsAppError:
    status = response.status_code
    message = f"whatsapp answered {status}{'' if code is None else f' with code {code}'}"
    if status == 429:
        wait = _wait(response, Code("rate_limited", "", _USUAL_WAIT_S))
        return RateLimited(message, retry_after=wait, status=status, code=code)
    if status in {401, 403}:
        return Unauthorized(message, status=status, code=code)
    if 400 <= status < 500 and status != 408:
        return Permanent(message, status=status, code=code)
    kind = UnknownOutcome if request.is_send and status != 408 else Retryable
    return kind(message, status=status, code=code)


def _wait(response: httpx.Response, code: Code) -> float:
    """How long to wait: as a header says, or as is usual."""
    said = response.headers.get("retry-after", "")
    if said.isascii() and said.isdigit():
        return min(float(said), _LONGEST_WAIT_S)
    return min(_regained_s(response.headers.get(USAGE, "")) or code.wait_s, _LONGEST_WAIT_S)


def _regained_s(usage: str) -> float:
    """Until when calls of the account are refused, in seconds; 0 if it does not say."""
    try:
        found = decode(usage.encode())
        accounts = Fields(found)
        uses = [use for name in found for use in accounts.objects(name)]
        return max((use.whole("estimated_time_to_regain_access") for use in uses), default=0) * 60
    except Unreadable:
        return 0


def _plain(trace_id: str) -> str:
    return trace_id if _TRACE.fullmatch(trace_id) else ""
