"""A mail, checked so that nothing in it can become a header, a command or another mail.

What goes into headers must be printable, which line ends are not. Texts are encoded as
quoted-printable and attachments as base64, so the mail has lines of ASCII that end with CRLF only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from apps.providers.mail.errors import Permanent

MOST_BYTES: Final = 20 * 2**20
"""Of a mail as it is sent; attachments become a third larger."""
MOST_RECIPIENTS: Final = 50

_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+"
)
_MOST_ADDRESS: Final = 254
_MOST_LINE: Final = 500
_TYPE: Final = re.compile(r"(application|audio|image|text|video)/[a-z0-9][a-z0-9.+-]{0,100}")
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{1,200}")
_BARE: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)")


def check_address(what: str, value: str) -> str:
    """An address such as ana@example.com, without a name."""
    if len(value) > _MOST_ADDRESS or not _ADDRESS.fullmatch(value):
        raise ValueError(f"{what} must be an address such as ana@example.com")
    return value


def check_line(what: str, value: str) -> str:
    """What may stand in a header."""
    if len(value) > _MOST_LINE or not value.isprintable():
        raise ValueError(f"{what} must be one line of at most {_MOST_LINE} printable characters")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with a mail."""

    name: str
    content: bytes = field(repr=False)
    type: str = "application/octet-stream"

    def __post_init__(self) -> None:
        """Refuse names that are paths, and types that are mails themselves."""
        check_line("the name of an attachment", self.name)
        if not self.name or set(self.name) & set('/\\"'):
            raise ValueError("the name of an attachment must be that of a file")
        if not _TYPE.fullmatch(self.type):
            raise ValueError("the type of an attachment must be one such as application/pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """What is sent to whom."""

    to: Sequence[str] = field(repr=False)
    subject: str = field(repr=False)
    text: str = field(repr=False)
    html: str | None = field(default=None, repr=False)
    """The same for programs that show it."""
    reply_to: str | None = field(default=None, repr=False)
    attachments: Sequence[Attachment] = ()
    key: str | None = None
    """Becomes the Message-ID: a mail that is sent again with the same key can be recognised."""

    def __post_init__(self) -> None:
        """Refuse what could become something else on its way."""
        if isinstance(self.to, str) or not 1 <= len(self.to) <= MOST_RECIPIENTS:
            raise ValueError(f"to must be a list of 1 to {MOST_RECIPIENTS} addresses")
        for one in self.to:
            check_address("to", one)
        check_line("subject", self.subject)
        if self.reply_to is not None:
            check_address("reply_to", self.reply_to)
        if self.key is not None and not _KEY.fullmatch(self.key):
            raise ValueError("key must be 1 to 200 letters, digits, dots, hyphens, _ and ~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and when."""

    address: str
    name: str
    message_id: str
    at: datetime


def compose(mail: Mail, writer: Writer) -> bytes:
    """The mail as it is sent."""
    message = EmailMessage(policy=SMTP)
    user, _, domain = writer.address.rpartition("@")
    message["From"] = Address(writer.name, user, domain)
    message["To"] = ", ".join(mail.to)
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(writer.at)
    message["Message-ID"] = writer.message_id
    message["Auto-Submitted"] = "auto-generated"
    if mail.reply_to is not None:
        message["Reply-To"] = mail.reply_to
    message.set_content(_writable(mail.text), cte="quoted-printable")
    if mail.html is not None:
        message.add_alternative(_writable(mail.html), subtype="html", cte="quoted-printable")
    for one in mail.attachments:
        kind, _, subtype = one.type.partition("/")
        message.add_attachment(one.content, maintype=kind, subtype=subtype, filename=one.name)
    return _checked(message.as_bytes())


def _writable(text: str) -> str:
    """Half a surrogate cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def _checked(sent: bytes) -> bytes:
    if len(sent) > MOST_BYTES:
        raise Permanent(f"a mail must have at most {MOST_BYTES} bytes")
    if not sent.isascii() or _BARE.search(sent):
        raise Permanent("a mail must be lines of ASCII")  # else servers see two mails in it
    return sent
