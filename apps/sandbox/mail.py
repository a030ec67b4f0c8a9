"""A stand-in for a mail server, with a mailbox: aiosmtpd behind rules, a ledger and faults.

Operations are MAIL, RCPT and DATA. Of the faults, `status` is the code of the reply (4xx or 5xx),
`cut` drops the connection before the command is done, `lost` after a mail was taken.

A mail is refused if a line does not end with CRLF or is too long, or a header is missing. With
`users`, whoever sends must log in; with `tls`, the connection must be encrypted first.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, ClassVar, Final

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from starlette.routing import BaseRoute

from apps.sandbox.stand_in import HOST, StandIn

_BARE: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_MOST_LINE: Final = 998
_MOST_BYTES: Final = 32 * 2**20
_HEADERS: Final = ("From", "To", "Date", "Message-ID", "MIME-Version")
_REFUSED: Final = re.compile(r"[45]\d\d ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A mail in the mailbox."""

    sender: str
    recipients: tuple[str, ...]
    message: EmailMessage
    raw: bytes
    was_encrypted: bool


class _Conversation(SMTP):
    def cut(self) -> None:
        transport: Any = self.transport
        if transport is not None:
            transport.abort()

    async def ended(self) -> None:
        """Wait for the task that aiosmtpd has made for it."""
        if self._handler_coroutine is not None:
            await self._handler_coroutine


class MailServer(StandIn):
    """A server that keeps what it is given."""

    name: ClassVar[str] = "mail"

    def __init__(
        self,
        *,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        is_encrypted: bool = False,
    ) -> None:
        """`users` are names and passwords; `is_encrypted`: from the beginning, without STARTTLS."""
        super().__init__()
        self._users, self._tls, self._is_encrypted = users or {}, tls, is_encrypted
        self._sessions: set[_Conversation] = set()
        self.mailbox: list[Received] = []
        self.unknown: set[str] = set()
        """Addresses that nobody has."""

    def routes(self) -> Sequence[BaseRoute]:
        """None: it speaks SMTP."""
        return []

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[str]:
        """Serve it on loopback; its address, as smtp://127.0.0.1:2525."""
        logging.getLogger("mail.log").setLevel(logging.CRITICAL)  # it tells of each cut connection
        loop, outer = asyncio.get_running_loop(), self._tls if self._is_encrypted else None
        server = await loop.create_server(self._session, HOST, port, ssl=outer)
        try:
            yield f"smtp://{HOST}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await self._end_sessions()
            await server.wait_closed()

    def _session(self) -> SMTP:
        session = _Conversation(
            self,
            loop=asyncio.get_running_loop(),
            hostname="mail.example",
            data_size_limit=_MOST_BYTES,
            tls_context=None if self._is_encrypted else self._tls,
            require_starttls=self._tls is not None and not self._is_encrypted,
            auth_require_tls=not self._is_encrypted,
            authenticator=self._authenticate,
        )
        self._sessions.add(session)
        return session

    async def _end_sessions(self) -> None:
        for one in self._sessions:
            one.cut()
        await asyncio.gather(*(one.ended() for one in self._sessions), return_exceptions=True)
        self._sessions.clear()

    def _authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, given: Any
    ) -> AuthResult:
        if not isinstance(given, LoginPassword):
            return AuthResult(success=False, handled=False)
        wanted = self._users.get(given.login.decode(errors="replace"))
        is_right = wanted is not None and wanted.encode() == given.password
        return AuthResult(success=is_right, handled=False, auth_data=given.login)

    async def handle_MAIL(  # noqa: N802 - aiosmtpd finds it by its name
        self,
        server: _Conversation,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """A mail begins."""

        def work() -> str:
            if self._users and not session.authenticated:
                return "530 5.7.0 Authentication required"
            envelope.mail_from, envelope.mail_options = address, options
            return "250 2.1.0 OK"

        return await self._reply("MAIL", server, work, address)

    async def handle_RCPT(  # noqa: N802 - as above
        self,
        server: _Conversation,
        _session: Session,
        envelope: Envelope,
        address: str,
        _options: list[str],
    ) -> str:
        """It has another recipient."""

        def work() -> str:
            if address in self.unknown:
                return "550 5.1.1 No such user here"
            envelope.rcpt_tos.append(address)
            return "250 2.1.5 OK"

        return await self._reply("RCPT", server, work, address)

    async def handle_DATA(  # noqa: N802 - as above
        self, server: _Conversation, session: Session, envelope: Envelope
    ) -> str:
        """Here it is."""
        raw = bytes(envelope.original_content or b"")
        message: Any = message_from_bytes(raw, policy=default)

        def work() -> str:
            if fault := _fault(raw, message):
                return fault
            received = Received(
                sender=envelope.mail_from or "",
                recipients=tuple(envelope.rcpt_tos),
                message=message,
                raw=raw,
                was_encrypted=self._is_encrypted or session.ssl is not None,
            )
            self.mailbox.append(received)
            return "250 2.0.0 Taken"

        return await self._reply("DATA", server, work, str(message["Message-ID"]))

    async def _reply(
        self, operation: str, server: _Conversation, work: Callable[[], str], subject: str
    ) -> str:
        began_at, faults = time.monotonic(), self.faults.of(operation)
        if slow := faults.get("slow"):
            await asyncio.sleep(slow.seconds)
        outcome, reply = "cut", ""
        if "cut" not in faults:
            status = faults.get("status")
            reply = f"{status.status} Not now" if status else work()
            outcome = "status" if status else "refused" if _REFUSED.match(reply) else "ok"
        is_lost = "lost" in faults and outcome == "ok"
        more = {"is_lost": True} if is_lost else {"reply": reply} if reply else {}
        self.ledger.note(operation, outcome, began_at=began_at, subject=subject, **more)
        if is_lost or outcome == "cut":
            server.cut()
        return reply


def _fault(raw: bytes, message: EmailMessage) -> str:
    if _BARE.search(raw):
        return "550 5.6.11 Lines must end with CRLF"
    if any(len(line) > _MOST_LINE for line in raw.split(b"\r\n")):
        return "500 5.5.2 Line too long"
    missing = [one for one in _HEADERS if message[one] is None]
    return f"550 5.6.0 No {missing[0]}" if missing else ""
