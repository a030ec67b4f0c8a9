"""What can go wrong with AFIP, as one small tree.

    AfipError
    ├── Retryable         nothing was done; try again, after `retry_after` seconds if given
    │   ├── TicketHeld    WSAA gave out a ticket that we do not have, and gives no other for a while
    │   └── ClockSkewed   WSAA finds our clock wrong
    ├── RateLimited       asked to wait: `retry_after`
    ├── Permanent         refused, and would be again: `remarks` has AFIP's codes and texts
    │   ├── Invalid       no voucher or CUIT can be like that; AFIP was not asked
    │   ├── LoginRefused  by WSAA: certificate, rights or request, see `code`
    │   ├── NotAuthorized the services do not accept a ticket that is new
    │   └── Rejected      a voucher was refused
    │       └── NumberTaken  its number is not the next one: it may be ours, see `Client.recover`
    └── UnknownOutcome    a CAE was asked for and nobody knows whether it was given

Messages are in our words, with codes: neither tickets nor keys nor what AFIP wrote gets into them.
Every error can be pickled.
"""

from __future__ import annotations

from typing import Any

from apps.providers import outcome
from apps.providers.afip.answers import Remark


class AfipError(outcome.Failure):
    """Base of the tree; `operation` is what was asked for, such as `FECAESolicitar`."""

    def __init__(self, message: str, *, operation: str = "", **known: Any) -> None:
        super().__init__(message, **known)
        self.operation = operation


class Retryable(AfipError, outcome.Retryable):
    """Nothing was done; the same may succeed later."""

    def __init__(
        self, message: str, *, operation: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, operation=operation)
        self.retry_after = retry_after
        """Seconds before which asking again is of no use; None where that is not known."""


class TicketHeld(Retryable):
    """WSAA has given out a ticket for this certificate and service, and it is lost to us."""


class ClockSkewed(Retryable):
    """WSAA takes our request for one of the future or of the past: the clock is wrong."""


class RateLimited(AfipError, outcome.RateLimited):
    """Asked to wait before the request was looked at."""


class Permanent(AfipError, outcome.Permanent):
    """Refused; the same request would be refused again."""

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        remarks: tuple[Remark, ...] = (),
        **known: Any,
    ) -> None:
        super().__init__(message, operation=operation, **known)
        self.remarks = remarks

    @property
    def codes(self) -> tuple[int, ...]:
        """Those of the remarks."""
        return tuple(one.code for one in self.remarks)


class Invalid(Permanent, ValueError):
    """What was given can be no voucher, or no CUIT; AFIP was not asked."""


class LoginRefused(Permanent):
    """WSAA refuses the certificate, the request, or the service; `code` is that of its fault."""


class NotAuthorized(Permanent):
    """A ticket that is new is not accepted: most likely the CUIT is not delegated."""


class Rejected(Permanent):
    """The voucher was refused; no CAE was given."""


class NumberTaken(Rejected):
    """The number is not the next one of its series, or its date is before that of the last one.

    After a request whose answer was lost it may be that very request which has taken the number.
    """


class UnknownOutcome(AfipError, outcome.UnknownOutcome):
    """A CAE was asked for, and no answer says whether it was given: ask `Client.recover`."""
