"""What Firebase's refusals mean."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from apps.providers.http import Answer
from apps.providers.push import errors
from apps.providers.reading import typed_or_none

_CODE: Final = re.compile(r"[A-Z_]{1,40}")
_NOT_DONE: Final = frozenset({408, 503})


class _Error(msgspec.Struct):
    status: str = ""
    details: list[dict[str, Any]] = []


class _Refusal(msgspec.Struct):
    error: _Error


def code_of(body: bytes) -> str | None:
    """Firebase's own code of a refusal, else Google's general one."""
    if (said := typed_or_none(body, _Refusal)) is None:
        return None
    error = said.error
    given = [one.get("errorCode") for one in error.details]
    found = (one for one in (*given, error.status) if isinstance(one, str))
    return next((one for one in found if _CODE.fullmatch(one)), None)


def refusal(answer: Answer, code: str | None) -> errors.PushError:
    """What a refusal means. Firebase says UNAVAILABLE before it has taken a message, but INTERNAL
    at any time."""
    status = answer.status
    words = f"status {status}{f' ({code})' if code else ''}"
    if status == 429:
        return errors.RateLimited(
            "firebase asked to wait", retry_after=answer.retry_after, code=code
        )
    if status in _NOT_DONE or status < 400:
        return errors.Retryable(f"firebase answered with {words}", code=code)
    if status >= 500:
        return errors.UnknownOutcome(f"firebase answered with {words}", code=code)
    if code == "UNREGISTERED":
        return errors.Unregistered("the app is no longer on the device", code=code)
    return errors.Permanent(f"firebase refused the message with {words}", code=code)
