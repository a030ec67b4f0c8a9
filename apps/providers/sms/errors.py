"""How a call to Twilio can fail.

    SmsError
    ├── Retryable        nothing was sent: call again
    ├── Permanent        it would be refused again; `code` is Twilio's, such as `OPTED_OUT`
    ├── RateLimited      nothing was sent: call again after `retry_after`
    └── UnknownOutcome   the message may have been sent: look for it with `find` before the next try

No message contains the token, a number or a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

OPTED_OUT: Final = 21610
"""The recipient has answered STOP."""
NO_MOBILE: Final = 21614
"""The number takes no messages."""


class SmsError(Exception):
    """Base of all that a client raises."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        """Of Twilio's error dictionary; None if it gave none."""


class Retryable(SmsError):
    """Nothing was sent."""


class Permanent(SmsError):
    """A wrong number, text or account."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What is left of an answer that asks to wait, shaped as errors of HTTP clients have it."""

    status_code: int
    headers: Mapping[str, str]


class RateLimited(SmsError):
    """Too many requests at once. Twilio has not processed it."""

    def __init__(self, message: str, *, retry_after: str | None, code: int | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after
        """Seconds or an HTTP date, as it was said; None if it was not."""
        self.response = Answered(429, {"retry-after": retry_after} if retry_after else {})


class UnknownOutcome(SmsError):
    """The request was sent, and no clear answer came."""


class CallbackRefused(SmsError):
    """A callback that Twilio has not signed, or that cannot be read: answer 403, do nothing."""
