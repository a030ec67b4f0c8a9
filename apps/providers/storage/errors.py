"""How a call to a store can fail.

    StorageError
    ├── Retryable      call again: to put the same object twice is the same as once
    └── Permanent      it would be refused again
        └── NotFound   there is no such object

There is no unknown outcome, for every call may be repeated. Services of S3 say 503 when they are
asked too often, which is retryable. No message contains a key of the account or a content.
"""

from apps.providers import outcome


class StorageError(outcome.Failure):
    """Base of all that a client raises."""


class Retryable(StorageError, outcome.Retryable):
    """The store did not answer, or was in trouble."""


class Permanent(StorageError, outcome.Permanent):
    """A wrong key or account, or an object that is too large."""


class NotFound(Permanent):
    """There is no such object."""
