"""How a call to OpenAI can fail.

    OpenAIError
    ├── Retryable        it was not answered: call again
    │   └── Unfit        it was answered, and paid, with what cannot be used: call again
    ├── Permanent        it would be refused again
    ├── RateLimited      call again after `retry_after`
    └── UnknownOutcome   it was sent and not answered; it may have to be paid

No message contains the key, what was asked or what was answered. `items` is what the call has used
all the same, for the price list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import openai

from apps.providers import outcome
from apps.providers.http import UNSENT

_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")
_AGAIN: Final = frozenset({408, 409})
_QUOTA: Final = "insufficient_quota"


class OpenAIError(outcome.Failure):
    """Base of all that a client raises."""


class Retryable(OpenAIError, outcome.Retryable):
    """It was not answered, and nothing is to be paid."""


class Unfit(Retryable):
    """The answer was cut short, or does not fit the type that was asked for."""


class Permanent(OpenAIError, outcome.Permanent):
    """A wrong key, model or request, a used-up quota, or a model that declines to answer."""


class RateLimited(OpenAIError, outcome.RateLimited):
    """Too many requests or tokens in a minute; it was not processed."""


class UnknownOutcome(OpenAIError, outcome.UnknownOutcome):
    """The request was sent, and the answer was lost or cannot be read."""


def translate(error: openai.OpenAIError) -> OpenAIError:
    """What an error of the SDK means."""
    if isinstance(error, openai.APIStatusError):
        return _of_status(error)
    if isinstance(error, openai.APIConnectionError):
        if isinstance(error.__cause__, UNSENT):
            return Retryable("openai could not be reached")
        is_late = isinstance(error, openai.APITimeoutError)
        return UnknownOutcome(
            "openai did not answer in time" if is_late else "the connection to openai was lost"
        )
    return UnknownOutcome("openai's answer cannot be read")


def _of_status(error: openai.APIStatusError) -> OpenAIError:
    status = error.status_code
    code = error.code if error.code and _CODE.fullmatch(error.code) else None
    words = f"status {status}{f' ({code})' if code else ''}"
    if status == 429 and _QUOTA not in (code, error.type):
        pause = _pause(error.response.headers)
        return RateLimited("openai asked to wait", retry_after=pause, code=code)
    if status in _AGAIN or status >= 500 or status < 400:
        return Retryable(f"openai answered with {words}", code=code)
    return Permanent(f"openai refused the request with {words}", code=code)


def _pause(headers: Mapping[str, str]) -> str | None:
    """The more exact of the two headers."""
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.isascii() and milliseconds.isdigit() and len(milliseconds) <= 12:
        return str(int(milliseconds) / 1000)
    return headers.get("retry-after")
