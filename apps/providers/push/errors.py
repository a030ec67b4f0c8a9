"""How a message to a device can fail.

    PushError
    ├── Retryable          it was not sent: call again
    ├── Permanent          it would be refused again
    │   └── Unregistered   the app is no longer on the device: forget its token
    ├── RateLimited        call again after `retry_after`
    └── UnknownOutcome     it may have been sent; with a `collapse_key` a second one replaces it

No message contains a key, a token or what was to be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class PushError(Exception):
    """Base of all that a client raises."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        """Firebase's, such as UNREGISTERED; None if it gave none."""


class Retryable(PushError):
    """It was not sent."""


class Permanent(PushError):
    """A wrong message, token or account."""


class Unregistered(Permanent):
    """There is no such device any more."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What is left of an answer that asks to wait, shaped as errors of HTTP clients have it."""

    status_code: int
    headers: Mapping[str, str]


class RateLimited(PushError):
    """Too many messages, to all devices or to this one."""

    def __init__(self, message: str, *, retry_after: str | None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after
        """Seconds or an HTTP date, as it was said; None if it was not."""
        self.response = Answered(429, {"retry-after": retry_after} if retry_after else {})


class UnknownOutcome(PushError):
    """It was sent, and no clear answer came."""
