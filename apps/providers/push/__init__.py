"""Notices to devices, through Firebase Cloud Messaging."""

from apps.providers.push.client import Client
from apps.providers.push.errors import (
    Permanent,
    PushError,
    RateLimited,
    Retryable,
    UnknownOutcome,
    Unregistered,
)
from apps.providers.push.notice import Notice
from apps.providers.push.settings import Settings
from apps.providers.push.upstream import push_upstream

__all__ = [
    "Client",
    "Notice",
    "Permanent",
    "PushError",
    "RateLimited",
    "Retryable",
    "Settings",
    "UnknownOutcome",
    "Unregistered",
    "push_upstream",
]
