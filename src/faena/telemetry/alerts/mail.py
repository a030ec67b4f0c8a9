"""A notice as a mail, sent in a thread, since smtplib blocks."""

from __future__ import annotations

import asyncio
import logging
import smtplib
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from faena.engine.calls.alerts import Notice
from faena.options.channels import Mail
from faena.telemetry.alerts.failure import Refused, Undelivered
from faena.telemetry.alerts.message import text, title

TIMEOUT_S: Final = 10.0
_PERMANENT: Final = range(500, 600)

_log = logging.getLogger("faena.alerts")


def mail_of(app: str, name: str, notice: Notice, channel: Mail) -> EmailMessage:
    """Its Message-ID follows from the notice's id: a mail that is sent again is the same mail."""
    mail = EmailMessage()
    mail["From"], mail["To"] = channel.sender, ", ".join(channel.to)
    mail["Subject"] = title(app, notice)
    mail["Date"] = format_datetime(datetime.fromtimestamp(notice.at / 1e6, UTC))
    mail["Message-ID"] = f"<{name}@{channel.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text(app, notice))
    return mail


async def send_mail(mail: EmailMessage, channel: Mail, password: str | None) -> None:
    """Return when the server has accepted it for everybody."""
    try:
        await asyncio.to_thread(_send, mail, channel, password)
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted(code for code, _ in error.recipients.values())
        raise _failure("accept every recipient", codes[0] if codes else 0) from None
    except smtplib.SMTPResponseException as error:
        raise _failure("accept the mail", error.smtp_code) from None
    except (OSError, smtplib.SMTPException) as error:
        told = f"the mail server must be reachable, got {type(error).__name__}"
        raise Undelivered(told) from None


def _failure(what: str, code: int) -> Undelivered:
    kind = Refused if code in _PERMANENT else Undelivered
    return kind(f"the mail server must {what}, got {code}")


def _send(mail: EmailMessage, channel: Mail, password: str | None) -> None:
    tls = ssl.create_default_context()
    if channel.tls == "tls":
        server = smtplib.SMTP_SSL(channel.host, channel.port, timeout=TIMEOUT_S, context=tls)
    else:
        server = smtplib.SMTP(channel.host, channel.port, timeout=TIMEOUT_S)
    try:
        if channel.tls == "starttls":
            server.starttls(context=tls)
        if channel.user is not None and password is not None:
            server.login(channel.user, password)
        refused = server.send_message(mail)
    finally:  # whatever is said to a goodbye, a mail that was accepted was accepted
        with suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()
    if refused:  # to send it again would send it twice to the others
        _log.warning("an alert was refused for %d of %d recipients", len(refused), len(channel.to))
