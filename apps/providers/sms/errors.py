"""How a call to Twilio can fail.

    SmsError
    ├── Retryable        nothing was sent: call again
    ├── Permanent        it would be refused again; `code` is Twilio's, such as `OPTED_OUT`
    ├── RateLimited      nothing was sent: call again after `retry_after`
    └── UnknownOutcome   the message may have been sent: look for it with `find` before the next try

No message contains the token, a number or a text.
"""

from __future__ import annotations

from typing import Final

from apps.providers import outcome

OPTED_OUT: Final = 21610
"""The recipient has answered STOP."""
NO_MOBILE: Final = 21614
"""The number takes no messages."""


class SmsError(outcome.Failure):
    """Base of all that a client raises; `code` is that of Twilio's error dictionary."""


class Retryable(SmsError, outcome.Retryable):
    """Nothing was sent."""


class Permanent(SmsError, outcome.Permanent):
    """A wrong number, text or account."""


class RateLimited(SmsError, outcome.RateLimited):
    """Too many requests at once. Twilio has not processed it."""


class UnknownOutcome(SmsError, outcome.UnknownOutcome):
    """The request was sent, and no clear answer came."""


class CallbackRefused(SmsError):
    """A callback that Twilio has not signed, or that cannot be read: answer 403, do nothing."""
