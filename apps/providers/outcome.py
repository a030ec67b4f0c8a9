"""What the failure of a call means, whatever the service.

    Failure
    ├── Retryable        nothing was done: call again
    ├── RateLimited      it asked to wait: call again after `retry_after`
    ├── Permanent        refused, and it would be again
    └── UnknownOutcome   it was sent, and no clear answer came: it may have been done

Each service has classes of its own below these, with the same names; what they add is said there.
No message contains a secret, a person's data, or what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class Failure(Exception):
    """A call that did not end well."""

    def __init__(
        self,
        message: str,
        *,
        code: int | str | None = None,
        items: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        """The service's own, such as UNREGISTERED or 21610; None if it gave none."""
        self.items = dict(items or {})
        """What the call has used all the same, for the price list."""


class Retryable(Failure):
    """Nothing was done."""


class RateLimited(Failure):
    """It asked to wait."""

    def __init__(
        self, message: str, *, retry_after: str | float | None = None, **known: Any
    ) -> None:
        super().__init__(message, **known)
        self.retry_after = retry_after
        """Seconds or an HTTP date, as it was said; None if it was not."""


class Permanent(Failure):
    """It refused, and would again."""


class UnknownOutcome(Failure):
    """It was sent, and no clear answer came."""


SORTING: Final[Mapping[type[Failure], str]] = {
    Retryable: "retryable",
    RateLimited: "rate_limited",
    Permanent: "permanent",
    UnknownOutcome: "unknown",
}
"""What they mean to an upstream."""
