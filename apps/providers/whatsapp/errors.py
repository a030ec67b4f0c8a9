"""What goes wrong with WhatsApp.

WhatsAppError
├── Retryable         nothing was sent: try again
│   └── MediaGone         the address of a file has expired: ask for a new one
├── RateLimited       too many calls, of everybody: wait `retry_after` seconds
│   └── PairLimited       too many messages to one recipient: others need not wait
├── Permanent         it refused this message, and would again
│   ├── Invalid           what was to be sent is against the rules; it was not sent
│   ├── Unauthorized      the token or its permissions, not the message
│   ├── Blocked           Meta has stopped this account or template: stop, until a person has looked
│   ├── OutsideWindow     the customer last wrote more than 24 h ago: send a template instead
│   └── MediaTooLarge     a file is larger than we take
└── UnknownOutcome    a message was sent and no clear answer came: the customer may have it

The API has no idempotency, and no way to look a message up by an id of ours. So after an
UnknownOutcome the caller must decide: to send again is to risk that the customer gets it twice, not
to is to risk that they never do. With `callback_data` the decision can wait: it comes back with
every status of the message (`biz_opaque_callback_data`), so a status that carries it says that the
message went out, though its id was never told.

Messages hold statuses and codes, never a token, a number or what was sent.
"""

from __future__ import annotations

from typing import Any

from apps.providers import outcome


class WhatsAppError(outcome.Failure):
    """A call to WhatsApp that did not end well; its `code` says more than the status."""

    def __init__(
        self, message: str, *, status: int | None = None, trace_id: str = "", **known: Any
    ) -> None:
        super().__init__(message, **known)
        self.status = status
        """Of HTTP; None if there was no answer."""
        self.trace_id = trace_id
        """What Meta's support asks for."""


class Retryable(WhatsAppError, outcome.Retryable):
    """Nothing was sent: try again."""


class MediaGone(Retryable):
    """The address of a file has expired: ask for a new one."""


class RateLimited(WhatsAppError, outcome.RateLimited):
    """Too many calls: wait the seconds that WhatsApp said, or that are usual for its code."""


class PairLimited(RateLimited):
    """Too many messages to one recipient: others need not wait."""


class Permanent(WhatsAppError, outcome.Permanent):
    """It refused this message, and would again."""


class Invalid(Permanent, ValueError):
    """What was to be sent is against the rules; it was not sent."""


class Unauthorized(Permanent):
    """The token is wrong, expired, or may not do this."""


class Blocked(Permanent):
    """Meta has stopped this account or template: stop, until a person has looked."""


class OutsideWindow(Permanent):
    """The customer last wrote more than 24 h ago: send a template instead."""


class MediaTooLarge(Permanent):
    """A file is larger than we take."""


class UnknownOutcome(WhatsAppError, outcome.UnknownOutcome):
    """A message was sent and no clear answer came: the customer may have it."""


class WebhookRefused(WhatsAppError):
    """A webhook that is not Meta's, or not readable: answer 403, do nothing."""
