"""Mail over SMTP."""

from apps.providers.mail.client import Client
from apps.providers.mail.errors import MailError, Permanent, Retryable, UnknownOutcome
from apps.providers.mail.letter import MOST_BYTES, MOST_RECIPIENTS, Attachment, Mail
from apps.providers.mail.settings import Settings
from apps.providers.mail.upstream import mail_upstream

__all__ = [
    "MOST_BYTES",
    "MOST_RECIPIENTS",
    "Attachment",
    "Client",
    "Mail",
    "MailError",
    "Permanent",
    "Retryable",
    "Settings",
    "UnknownOutcome",
    "mail_upstream",
]
