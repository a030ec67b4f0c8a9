"""Text messages through Twilio."""

from apps.providers.sms.client import MOST_CHARACTERS, Client
from apps.providers.sms.errors import (
    NO_MOBILE,
    OPTED_OUT,
    CallbackRefused,
    Permanent,
    RateLimited,
    Retryable,
    SmsError,
    UnknownOutcome,
)
from apps.providers.sms.message import Message, segments
from apps.providers.sms.settings import Settings
from apps.providers.sms.upstream import sms_upstream
from apps.providers.sms.webhook import StatusUpdate, read_status, sign

__all__ = [
    "MOST_CHARACTERS",
    "NO_MOBILE",
    "OPTED_OUT",
    "CallbackRefused",
    "Client",
    "Message",
    "Permanent",
    "RateLimited",
    "Retryable",
    "Settings",
    "SmsError",
    "StatusUpdate",
    "UnknownOutcome",
    "read_status",
    "segments",
    "sign",
    "sms_upstream",
]
