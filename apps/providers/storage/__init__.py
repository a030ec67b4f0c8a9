"""Objects by key: files, the memory of this process, or buckets."""

from apps.providers.storage.client import LONGEST, MOST_BYTES, Client
from apps.providers.storage.errors import NotFound, Permanent, Retryable, StorageError
from apps.providers.storage.key import check_key
from apps.providers.storage.settings import Settings
from apps.providers.storage.upstream import storage_upstream

__all__ = [
    "LONGEST",
    "MOST_BYTES",
    "Client",
    "NotFound",
    "Permanent",
    "Retryable",
    "Settings",
    "StorageError",
    "check_key",
    "storage_upstream",
]
