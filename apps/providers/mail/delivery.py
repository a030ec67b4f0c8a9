"""One mail over one connection, in a thread: smtplib, step by step.

    connect · EHLO · STARTTLS · AUTH · MAIL · RCPT … · DATA | the mail · the reply

Up to the bar nothing was taken, whatever happens. After it, only a reply tells.
"""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from apps.providers.mail.errors import MailError, Permanent, Retryable, UnknownOutcome
from apps.providers.mail.settings import Settings

_MOST_REPLIES: Final = 64 * 1024
"""Bytes of all replies of a server."""


class Delivery:
    """A mail that is under way."""

    def __init__(
        self, settings: Settings, tls: ssl.SSLContext, recipients: Sequence[str], sent: bytes
    ) -> None:
        self._settings, self._tls = settings, tls
        self._recipients, self._sent = recipients, sent
        self._connection: _Connection | None = None
        self._is_given_up = False
        self.is_handed_in = False
        """Whether the server may have all of the mail."""

    def run(self) -> None:
        """Send it; raises what became of it instead."""
        with self._translated(), _connected(self._settings, self._tls) as connection:
            self._connection = connection
            if self._is_given_up:
                raise smtplib.SMTPServerDisconnected("nobody waits")
            self._enter(connection)
            self._address(connection)
            self._hand_in(connection)

    def give_up(self) -> None:
        """Have the thread end: nobody waits for it any more."""
        self._is_given_up = True
        opened = self._connection and self._connection.sock
        if opened:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def _enter(self, connection: _Connection) -> None:
        settings = self._settings
        connection.ehlo_or_helo_if_needed()
        if settings.security == "starttls":
            connection.starttls(context=self._tls)
            connection.ehlo_or_helo_if_needed()
        if settings.user is not None and settings.password is not None:
            connection.login(settings.user, settings.password)

    def _address(self, connection: _Connection) -> None:
        """All recipients or none: whoever gets a mail twice cannot tell why."""
        _expect(connection.mail(self._settings.sender), 250)
        replies = {one: connection.rcpt(one)[0] for one in self._recipients}
        refused = [one for one, code in replies.items() if code not in (250, 251)]
        if refused:
            code = max(replies[one] for one in refused)
            words = f"{len(refused)} of {len(replies)} recipients were refused with code {code}"
            kind = Permanent if code >= 500 else Retryable
            raise kind(words, code=code, refused=refused)

    def _hand_in(self, connection: _Connection) -> None:
        _expect(connection.docmd("DATA"), 354)
        body = b"\r\n" + self._sent
        stuffed = body.replace(b"\r\n.", b"\r\n..")[2:]
        self.is_handed_in = True
        connection.send(stuffed.removesuffix(b"\r\n") + b"\r\n.\r\n")
        _expect(connection.getreply(), 250)
        with contextlib.suppress(smtplib.SMTPException, OSError):
            connection.quit()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except MailError:
            raise
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code) from None
        except smtplib.SMTPNotSupportedError:
            raise Permanent("the mail server lacks STARTTLS or AUTH") from None
        except ssl.SSLCertVerificationError:
            raise Permanent("the mail server's certificate cannot be trusted") from None
        except (smtplib.SMTPException, OSError):
            raise self.unanswered() from None

    def unanswered(self) -> MailError:
        """What it means that no reply came."""
        if self.is_handed_in:
            return UnknownOutcome("the mail server did not acknowledge the mail")
        return Retryable("the mail server could not be reached, or did not answer")


class _Replies:
    """What a server says, up to a size: smtplib would collect a reply without end."""

    def __init__(self, file: Any) -> None:
        self._file, self._left = file, _MOST_REPLIES

    def readline(self, most: int) -> bytes:
        line: bytes = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the replies are too large")
        return line

    def close(self) -> None:
        self._file.close()


class _Connection(smtplib.SMTP):
    file: Any

    def getreply(self) -> tuple[int, bytes]:
        """With an end."""
        if self.file is None and self.sock is not None:
            self.file = _Replies(self.sock.makefile("rb"))
        return super().getreply()


class _EncryptedConnection(_Connection, smtplib.SMTP_SSL):
    """Encrypted from the beginning."""


@contextmanager
def _connected(settings: Settings, tls: ssl.SSLContext) -> Generator[_Connection]:
    """The name for EHLO is given, or a name server would be asked for it."""
    where, wait_s = (settings.host, settings.port, settings.domain), settings.timeout_s
    if settings.security == "tls":
        connection = _EncryptedConnection(*where, timeout=wait_s, context=tls)
    else:
        connection = _Connection(*where, timeout=wait_s)
    try:
        yield connection
    finally:
        connection.close()


def _expect(reply: tuple[int, bytes], code: int) -> None:
    if reply[0] != code:
        raise _refusal(reply[0])


def _refusal(code: int) -> MailError:
    words = f"the mail server answered with code {code}"
    return Permanent(words, code=code) if code >= 500 else Retryable(words, code=code)
