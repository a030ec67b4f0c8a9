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

from typing import Any

from apps.providers import outcome


class MercadoPagoError(outcome.Failure):
    """A call to MercadoPago that did not end well."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        codes: tuple[str, ...] = (),
        **known: Any,
    ) -> None:
        super().__init__(message, **known)
        self.status = status
        """Of HTTP; None if there was no answer."""
        self.codes = codes
        """The error's name and the codes of its causes, such as `("bad_request", "2063")`."""


class Retryable(MercadoPagoError, outcome.Retryable):
    """Nothing was done: ask again."""


class RateLimited(MercadoPagoError, outcome.RateLimited):
    """It asked to wait."""


class Permanent(MercadoPagoError, outcome.Permanent):
    """It refused this request, and would again."""


class Invalid(Permanent, ValueError):
    """What was to be sent is against the rules; it was not sent."""


class Unauthorized(Permanent):
    """The token is wrong, expired, or may not do this."""


class NotFound(Permanent):
    """There is no such thing."""


class Conflict(Permanent):
    """The idempotency key was used with another body, or the state forbids it."""


class UnknownOutcome(MercadoPagoError, outcome.UnknownOutcome):
    """A write was sent and no clear answer came: it may have been done."""


class WebhookRefused(MercadoPagoError):
    """A notification that is not MercadoPago's, too old or not readable: answer 401, do nothing."""
