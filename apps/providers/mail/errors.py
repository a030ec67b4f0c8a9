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


class MailError(Exception):
    """Base of all that a client raises."""

    def __init__(
        self, message: str, *, code: int | None = None, refused: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        """Of the server's reply; None if there was none."""
        self.refused = tuple(refused)


class Retryable(MailError):
    """It was not taken."""


class Permanent(MailError):
    """A wrong account, address or mail."""


class UnknownOutcome(MailError):
    """It was handed in, and no acknowledgement came."""
