"""Reads what Firebase answers, and what its refusals mean."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx
import msgspec

from apps.providers.push.errors import (
    Permanent,
    PushError,
    RateLimited,
    Retryable,
    UnknownOutcome,
    Unregistered,
)

_MOST_BYTES: Final = 2**18
_CODE: Final = re.compile(r"[A-Z_]{1,40}")
_NOT_DONE: Final = frozenset({408, 503})


class _Error(msgspec.Struct):
    status: str = ""
    details: list[dict[str, Any]] = []


class _Refusal(msgspec.Struct):
    error: _Error


async def read_answer(response: httpx.Response) -> bytes:
    """The body, unless it is larger than any answer is."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            raise httpx.RemoteProtocolError("the answer is too large")
    return bytes(body)


def code_of(body: bytes) -> str | None:
    """Firebase's own code of a refusal, else Google's general one."""
    try:
        error = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    given = [one.get("errorCode") for one in error.details]
    found = (one for one in (*given, error.status) if isinstance(one, str))
    return next((one for one in found if _CODE.fullmatch(one)), None)


def refusal(response: httpx.Response, code: str | None) -> PushError:
    """What a refusal means. Firebase says UNAVAILABLE before it has taken a message, but INTERNAL
    at any time."""
    status = response.status_code
    words = f"status {status}{f' ({code})' if code else ''}"
    if status == 429:
        pause = response.headers.get("retry-after")
        return RateLimited("firebase asked to wait", retry_after=pause, code=code)
    if status in _NOT_DONE or status < 400:
        return Retryable(f"firebase answered with {words}", code=code)
    if status >= 500:
        return UnknownOutcome(f"firebase answered with {words}", code=code)
    if code == "UNREGISTERED":
        return Unregistered("the app is no longer on the device", code=code)
    return Permanent(f"firebase refused the message with {words}", code=code)
