"""What goes wrong with MercadoPago.

MercadoPagoError
├── Retryable         nothing was done, or nothing was asked to be done: ask again
├── RateLimited       it asked to wait; `retry_after` is what it said
├── Permanent         it refused this request, and would again
│   ├── Invalid           what was to be sent is against the rules; it was not sent
│   ├── Unauthorized      401 and 403: the token, not the request
│   ├── NotFound          there is no such payment, refund or chargeback
│   └── Conflict          the idempotency key was used with another body, or the state forbids it
└── UnknownOutcome    a write was sent and no clear answer came: it may have been done

After an UnknownOutcome a refund is repeated with **the same key**: it is done once. For a
preference there is no key; look for it by its `external_reference`, or make another: it is only a
link.

Messages hold statuses and the service's own codes, never a token, a key or what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an upstream needs of the answer: its status, and how long to wait."""

    status_code: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class MercadoPagoError(Exception):
    """A call to MercadoPago that did not end well."""

    def __init__(
        self, message: str, *, status: int | None = None, codes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        """Of HTTP; None if there was no answer."""
        self.codes = codes
        """The error's name and the codes of its causes, such as `("bad_request", "2063")`."""


class Retryable(MercadoPagoError):
    """Nothing was done: ask again."""


class RateLimited(MercadoPagoError):
    """It asked to wait."""

    def __init__(
        self, message: str, *, retry_after: str | None = None, codes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, status=429, codes=codes)
        self.retry_after = retry_after
        """The header as it came: seconds or an HTTP date; None if there was none."""

    @property
    def response(self) -> Answered:
        """The answer, as those who sort errors look for it."""
        headers = {} if self.retry_after is None else {"retry-after": self.retry_after}
        return Answered(status_code=429, headers=headers)


class Permanent(MercadoPagoError):
    """It refused this request, and would again."""


class Invalid(Permanent, ValueError):
    """What was to be sent is against the rules; it was not sent."""


class Unauthorized(Permanent):
    """The token is wrong, expired, or may not do this."""


class NotFound(Permanent):
    """There is no such thing."""


class Conflict(Permanent):
    """The idempotency key was used with another body, or the state forbids it."""


class UnknownOutcome(MercadoPagoError):
    """A write was sent and no clear answer came: it may have been done."""


class WebhookRefused(MercadoPagoError):
    """A notification that is not MercadoPago's, too old or not readable: answer 401, do nothing."""
