"""How a question to Google's maps can fail.

    MapsError
    ├── Retryable        it was not answered: ask again
    ├── Permanent        it would be refused again
    │   └── NoRoute      there is no such place, or no way between the places
    ├── RateLimited      ask again after `retry_after`
    └── UnknownOutcome   it was sent and not answered: ask again, but it may have to be paid

No message contains the key or an address. `items` is what a question has used all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class MapsError(Exception):
    """Base of all that a client raises."""

    def __init__(
        self, message: str, *, code: str | None = None, items: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        """The status of the answer, such as REQUEST_DENIED."""
        self.items = dict(items or {})


class Retryable(MapsError):
    """It was not answered, and nothing is to be paid."""


class Permanent(MapsError):
    """A wrong key or question, or a quota of the day that is used up."""


class NoRoute(Permanent):
    """A place was not found, or there is no way."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What is left of an answer that asks to wait, shaped as errors of HTTP clients have it."""

    status_code: int
    headers: Mapping[str, str]


class RateLimited(MapsError):
    """Too many questions in a short time."""

    def __init__(self, message: str, *, retry_after: str | None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after
        """Seconds or an HTTP date; mostly None, for OVER_QUERY_LIMIT says none."""
        self.response = Answered(429, {"retry-after": retry_after} if retry_after else {})


class UnknownOutcome(MapsError):
    """It was sent, and the answer was lost or cannot be read."""
