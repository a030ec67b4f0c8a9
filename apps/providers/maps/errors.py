"""How a question to Google's maps can fail.

    MapsError
    ├── Retryable        it was not answered: ask again
    ├── Permanent        it would be refused again
    │   └── NoRoute      there is no such place, or no way between the places
    ├── RateLimited      ask again after `retry_after`
    └── UnknownOutcome   it was sent and not answered: ask again, but it may have to be paid

No message contains the key or an address. `items` is what a question has used all the same.
"""

from __future__ import annotations

from apps.providers import outcome


class MapsError(outcome.Failure):
    """Base of all that a client raises; `code` is the status of the answer."""


class Retryable(MapsError, outcome.Retryable):
    """It was not answered, and nothing is to be paid."""


class Permanent(MapsError, outcome.Permanent):
    """A wrong key or question, or a quota of the day that is used up."""


class NoRoute(Permanent):
    """A place was not found, or there is no way."""


class RateLimited(MapsError, outcome.RateLimited):
    """Too many questions in a short time; OVER_QUERY_LIMIT does not say for how long."""


class UnknownOutcome(MapsError, outcome.UnknownOutcome):
    """It was sent, and the answer was lost or cannot be read."""
