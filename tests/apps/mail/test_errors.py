"""What a server's replies mean, and its silence."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from apps.providers.mail import (
    Client,
    Mail,
    MailError,
    Permanent,
    Retryable,
    UnknownOutcome,
    mail_upstream,
)
from apps.sandbox.mail import MailServer

from apps.sandbox import Fault
from faena import Faena
from tests._support.eventually import eventually
from tests.apps.mail.conftest import settings_of

MAIL = Mail(to=["ana@example.com"], subject="Hola", text="secreto", key="job-7")


async def failed(client: Client) -> MailError:
    with pytest.raises(MailError) as caught:
        await client.send(MAIL)
    return caught.value


@pytest.mark.parametrize("operation", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(
    ("status", "kind"), [(421, Retryable), (451, Retryable), (550, Permanent), (554, Permanent)]
)
async def test_each_reply_has_its_meaning(
    operation: str, status: int, kind: type[MailError], client: Client, server: MailServer
) -> None:
    server.faults.add(Fault(kind="status", status=status, operation=operation))
    error = await failed(client)
    assert (type(error), error.code) == (kind, status)
    assert server.mailbox == []


@pytest.mark.parametrize(
    ("kind", "operation", "meaning"),
    [
        ("cut", "MAIL", Retryable),
        ("cut", "RCPT", Retryable),
        ("cut", "DATA", UnknownOutcome),
        ("lost", "DATA", UnknownOutcome),
    ],
)
async def test_a_cut_connection_is_in_doubt_only_when_the_mail_was_handed_in(
    kind: str, operation: str, meaning: type[MailError], client: Client, server: MailServer
) -> None:
    server.faults.add(Fault(kind=kind, operation=operation))
    assert type(await failed(client)) is meaning
    assert len(server.mailbox) == (1 if kind == "lost" else 0)


async def test_a_mail_that_is_sent_again_can_be_recognised(
    client: Client, server: MailServer
) -> None:
    server.faults.add(Fault(kind="lost", operation="DATA", times=1))
    await failed(client)
    await client.send(MAIL)
    assert {str(one.message["Message-ID"]) for one in server.mailbox} == {"<job-7@campo.example>"}
    assert len(server.mailbox) == 2


@pytest.mark.parametrize(("operation", "kind"), [("MAIL", Retryable), ("DATA", UnknownOutcome)])
async def test_a_late_reply_is_no_reply(
    operation: str, kind: type[MailError], server: MailServer
) -> None:
    server.faults.add(Fault(kind="slow", seconds=60, operation=operation))
    hasty = Client(dataclasses.replace(settings_of(server.url), timeout_s=1))
    assert type(await failed(hasty)) is kind


async def test_a_cancelled_mail_leaves_no_thread_behind(server: MailServer) -> None:
    server.faults.add(Fault(kind="slow", seconds=60, operation="MAIL"))
    patient = Client(settings_of(server.url, timeout_s=600))
    sending = asyncio.create_task(patient.send(MAIL))
    await eventually(lambda: threads() == 1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await eventually(lambda: threads() == 0)


def threads() -> int:
    """How many threads wait for a mail server."""
    import sys

    frames = sys._current_frames()
    own = [one.ident for one in threading.enumerate() if one is not threading.main_thread()]
    return sum(
        any(frame.name == "run" and "delivery.py" in frame.filename for frame in stack)
        for stack in (traceback.extract_stack(frames[one]) for one in own if one in frames)
    )


async def test_a_server_that_cannot_be_reached_has_taken_nothing(server: MailServer) -> None:
    nobody = dataclasses.replace(settings_of(server.url), port=9)
    assert type(await failed(Client(nobody))) is Retryable


@asynccontextmanager
async def saying(*lines: bytes) -> AsyncIterator[str]:
    """A server that says what it says, whatever it is told, and then waits."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for line in lines:
            writer.write(line)
            await reader.readline()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([b"554 go away\r\n"], Permanent),
        ([b"421 later\r\n"], Retryable),
        ([b"220-x\r\n" * 20_000 + b"220 x\r\n", b"250 x\r\n", b"550 no\r\n"], Retryable),
        ([b"220-x\r\n" * 90 + b"220 x\r\n", b"250 x\r\n", b"550 no\r\n"], Permanent),
        ([b"220 " + b"x" * 100_000 + b"\r\n"], Permanent),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], Retryable),
        ([b"\xff\xfe\r\n"], Retryable),
    ],
)
async def test_a_server_may_say_anything(lines: list[bytes], kind: type[MailError]) -> None:
    before = len(asyncio.all_tasks())
    async with saying(*lines) as url:
        assert type(await failed(Client(settings_of(url, timeout_s=20)))) is kind
        await eventually(lambda: len(asyncio.all_tasks()) == before)


async def test_no_error_tells_passwords_addresses_or_mails(
    server: MailServer, client: Client
) -> None:
    for operation, kind in (("RCPT", "status"), ("DATA", "cut"), ("MAIL", "cut")):
        server.faults.add(Fault(kind=kind, operation=operation, times=1))
        error = await failed(client)
        shown = "".join(traceback.format_exception(error)) + str(error)
        for secret in ("ana@", "secreto"):
            assert secret not in shown


def test_the_upstream_knows_what_errors_mean() -> None:
    upstream = mail_upstream(Faena("shop"))
    for error, kind in (
        (Retryable("x"), "retryable"),
        (Permanent("x"), "permanent"),
        (UnknownOutcome("x"), "unknown"),
    ):
        meaning = upstream.sorts(error)
        assert meaning is not None
        assert meaning.kind == kind


GOOD = (
    b"From: a@b.c\r\nTo: a@b.c\r\nDate: x\r\nMessage-ID: <1@b.c>\r\nMIME-Version: 1.0\r\n\r\nx\r\n"
)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (GOOD, b"250"),
        (GOOD.replace(b"Date: x\r\n", b""), b"550"),
        (GOOD.replace(b"Message-ID: <1@b.c>\r\n", b""), b"550"),
        (GOOD + b"bare\nline\r\n", b"550"),
        (GOOD + b"x" * 999 + b"\r\n", b"500"),
    ],
)
async def test_the_stand_in_refuses_mails_that_servers_refuse(
    raw: bytes, code: bytes, server: MailServer
) -> None:
    host, port = server.url.removeprefix("smtp://").split(":")
    commands = b"EHLO x\r\nMAIL FROM:<a@b.co>\r\nRCPT TO:<a@b.co>\r\nDATA\r\n"

    def talk() -> list[bytes]:
        with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
            wire.sendall(commands)
            while not replies.readline().startswith(b"354"):
                pass
            wire.sendall(raw + b".\r\nQUIT\r\n")
            return replies.read().splitlines()

    replies = await asyncio.to_thread(talk)
    assert replies[0][:3] == code
    assert len(server.mailbox) == (code == b"250")
