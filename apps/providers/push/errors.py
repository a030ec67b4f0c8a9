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

from apps.providers import outcome


class PushError(outcome.Failure):
    """Base of all that a client raises; `code` is Firebase's, such as UNREGISTERED."""


class Retryable(PushError, outcome.Retryable):
    """It was not sent."""


class Permanent(PushError, outcome.Permanent):
    """A wrong message, token or account."""


class Unregistered(Permanent):
    """There is no such device any more."""


class RateLimited(PushError, outcome.RateLimited):
    """Too many messages, to all devices or to this one."""


class UnknownOutcome(PushError, outcome.UnknownOutcome):
    """It was sent, and no clear answer came."""
