"""A notice as a mail, sent in a thread, since smtplib blocks."""

from __future__ import annotations

import asyncio
import logging
import smtplib
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final

from faena.engine.calls.alerts import Notice
from faena.options.channels import Mail
from faena.telemetry.alerts.failure import Refused, Undelivered
from faena.telemetry.alerts.message import text, title

TIMEOUT_S: Final = 10.0
"""How long each answer may take."""
WHOLE_S: Final = 45.0
"""How long all of it may take; less than the job's timeout."""
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


class _Line:
    """The connection of one mail, which the event loop can cut while a thread waits on it."""

    def __init__(self) -> None:
        self.server: smtplib.SMTP | None = None
        self.is_cut = False

    def cut(self) -> None:
        """End the thread's wait; nothing happens once it is done."""
        self.is_cut = True
        sock = None if self.server is None else self.server.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _Server(smtplib.SMTP):
    """One that can be cut off before it has said a word: `SMTP` waits for that when it is made."""

    def __init__(self, line: _Line, host: str, port: int, **more: Any) -> None:
        self._line = line
        super().__init__(host, port, **more)

    def getreply(self) -> tuple[int, bytes]:
        """Wait for a reply."""
        self._line.server = self
        if self._line.is_cut:
            self.close()
            raise smtplib.SMTPServerDisconnected
        return super().getreply()


class _EncryptedServer(_Server, smtplib.SMTP_SSL):
    """The same, encrypted from the beginning."""


async def send_mail(mail: EmailMessage, channel: Mail, password: str | None) -> None:
    """Return when the server has accepted it for everybody.

    A server that says a letter now and then never lets a single wait be too long. Its thread would
    stay, and the process could not end.
    """
    line = _Line()
    try:
        async with asyncio.timeout(WHOLE_S):
            await asyncio.to_thread(_send, mail, channel, password, line)
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted(code for code, _ in error.recipients.values())
        raise _failure("accept every recipient", codes[0] if codes else 0) from None
    except smtplib.SMTPResponseException as error:
        raise _failure("accept the mail", error.smtp_code) from None
    except (OSError, smtplib.SMTPException) as error:
        told = f"the mail server must be reachable, got {type(error).__name__}"
        raise Undelivered(told) from None
    finally:
        line.cut()


def _failure(what: str, code: int) -> Undelivered:
    kind = Refused if code in _PERMANENT else Undelivered
    return kind(f"the mail server must {what}, got {code}")


def _send(mail: EmailMessage, channel: Mail, password: str | None, line: _Line) -> None:
    tls, where = ssl.create_default_context(), (channel.host, channel.port)
    server: smtplib.SMTP
    if channel.tls == "tls":
        server = _EncryptedServer(line, *where, timeout=TIMEOUT_S, context=tls)
    else:
        server = _Server(line, *where, timeout=TIMEOUT_S)
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
