"""How a mail can fail.

    MailError
    ├── Retryable        it was not taken: send it again
    ├── Permanent        it would be refused again; `refused` are the recipients that were
    └── UnknownOutcome   it was handed in whole and not acknowledged: it may arrive. Sent again with
                         the same `key`, it has the same Message-ID

SMTP has no word for a rate limit: servers say 4xx, which is retryable. No message contains the
password, an address, or a word of the mail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.providers import outcome


class MailError(outcome.Failure):
    """Base of all that a client raises; `code` is that of the server's reply."""

    def __init__(self, message: str, *, refused: Sequence[str] = (), **known: Any) -> None:
        super().__init__(message, **known)
        self.refused = tuple(refused)


class Retryable(MailError, outcome.Retryable):
    """It was not taken."""


class Permanent(MailError, outcome.Permanent):
    """A wrong account, address or mail."""


class UnknownOutcome(MailError, outcome.UnknownOutcome):
    """It was handed in, and no acknowledgement came."""
