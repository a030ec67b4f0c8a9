"""A notice that a receiver has accepted is not sent again, however the receiver says goodbye."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from faena import Mail
from faena.engine.calls.alerts import Change, Notice
from faena.telemetry.alerts import mail as mail_module
from faena.telemetry.alerts.failure import Undelivered
from faena.telemetry.alerts.mail import mail_of, send_mail
from faena.telemetry.alerts.outgoing import exchange, post
from tests._support.eventually import PATIENCE_S
from tests._support.notice_receiver import NoticeReceiver
from tests._support.tls import Authority

NOTICE = Notice(
    *("ops", "critical", 1_700_000_060_000_000),
    [Change("firing", "depth", "mail", "critical", 1_700_000_000_000_000, "9 jobs wait")],
)


def team(port: int) -> Mail:
    return Mail(
        name="team",
        host="127.0.0.1",
        port=port,
        tls="none",
        sender="faena@example.org",
        to=["ana@example.org"],
    )


Session = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(session: Session) -> AsyncIterator[int]:
    """A server of few words; its port."""
    sessions = set[asyncio.Task[None] | None]()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sessions.add(asyncio.current_task())
        with suppress(OSError, asyncio.IncompleteReadError):
            await session(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(one for one in sessions if one), return_exceptions=True)


async def test_a_receiver_that_answers_and_keeps_the_connection_open_has_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS has a goodbye of its own; a client that waits for the other's may wait for long."""
    authority, given, is_over = Authority(tmp_path), list[bytes](), threading.Event()

    def serve(listener: socket.socket) -> None:
        """In a thread, since event loops answer goodbyes by themselves."""
        accepted, _ = listener.accept()
        with authority.server_context().wrap_socket(accepted, server_side=True) as session:
            while not b"".join(given).endswith(b"{}"):
                given.append(session.recv(65_536))
            session.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            is_over.wait(PATIENCE_S)

    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(serve, listener))
        try:
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            await post(url, b"{}", {}, allow_private=True)
        finally:
            is_over.set()
            await serving
    assert b"".join(given).count(b"POST / ") == 1


@pytest.mark.parametrize("goodbye", [b"421 busy\r\n", b"500 what\r\n", b"", b"221 bye\r\n"])
async def test_a_mail_that_was_accepted_is_so_whatever_is_said_to_a_goodbye(
    goodbye: bytes,
) -> None:
    accepted: list[bytes] = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail\r\n")
        while verb := (await reader.readline())[:4].upper():
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                accepted.append(await reader.readuntil(b"\r\n.\r\n"))
            elif verb == b"QUIT":
                writer.write(goodbye)
                return
            writer.write(b"250 fine\r\n")

    async with listening(session) as port:
        mail = team(port)
        await send_mail(mail_of("shop", "n-1", NOTICE, mail), mail, None)
    assert len(accepted) == 1


async def test_a_mail_server_that_never_ends_its_first_line_holds_no_thread() -> None:
    """A thread that waits for it would keep the worker from ending."""
    is_there, is_left = asyncio.Event(), asyncio.Event()

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220")
        is_there.set()
        with suppress(ConnectionResetError):
            await reader.read()
        is_left.set()

    async with listening(session) as port:
        mail = team(port)
        sending = asyncio.create_task(send_mail(mail_of("shop", "n-1", NOTICE, mail), mail, None))
        await is_there.wait()
        sending.cancel()
        async with asyncio.timeout(mail_module.TIMEOUT_S * 0.9):
            await is_left.wait()
        await asyncio.wait({sending})


async def test_a_mail_may_take_so_long_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_module, "WHOLE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mail = team(silent.getsockname()[1])
        with pytest.raises(Undelivered, match="TimeoutError"):
            await send_mail(mail_of("shop", "n-1", NOTICE, mail), mail, None)


async def test_an_address_that_nobody_answers_at_is_not_the_only_one() -> None:
    """Names may have an address that cannot be reached from here, such as one of IPv6."""
    async with NoticeReceiver() as hook:
        parts = urlsplit(hook.url)
        head = b"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        assert await exchange(parts, ["127.0.0.9", "127.0.0.1"], head) == 200
        with pytest.raises(OSError, match=r"refused|failed"):
            await exchange(parts, ["127.0.0.9", "127.0.0.8"], head)
        assert len(hook.requests) == 1
