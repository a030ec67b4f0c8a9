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

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an upstream needs of the answer: its status, and how long to wait."""

    status_code: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class WhatsAppError(Exception):
    """A call to WhatsApp that did not end well."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: int | None = None,
        trace_id: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        """Of HTTP; None if there was no answer."""
        self.code = code
        """WhatsApp's own; it says more than the status."""
        self.trace_id = trace_id
        """What Meta's support asks for."""


class Retryable(WhatsAppError):
    """Nothing was sent: try again."""


class MediaGone(Retryable):
    """The address of a file has expired: ask for a new one."""


class RateLimited(WhatsAppError):
    """Too many calls: wait."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float,
        status: int | None = None,
        code: int | None = None,
        trace_id: str = "",
    ) -> None:
        super().__init__(message, status=status, code=code, trace_id=trace_id)
        self.retry_after = retry_after
        """In seconds: what WhatsApp said, or what is usual for its code."""

    @property
    def response(self) -> Answered:
        """The answer, as those who sort errors look for it."""
        return Answered(status_code=429, headers={"retry-after": f"{self.retry_after:.0f}"})


class PairLimited(RateLimited):
    """Too many messages to one recipient: others need not wait."""


class Permanent(WhatsAppError):
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


class UnknownOutcome(WhatsAppError):
    """A message was sent and no clear answer came: the customer may have it."""


class WebhookRefused(WhatsAppError):
    """A webhook that is not Meta's, or not readable: answer 403, do nothing."""
