"""Mails arrive as they were written, over plain and encrypted connections."""

from __future__ import annotations

import dataclasses
import ssl

import pytest
from apps.providers.mail import (
    MOST_BYTES,
    Attachment,
    Client,
    Mail,
    Permanent,
    Retryable,
    Settings,
    mail_upstream,
)
from apps.sandbox.mail import MailServer

from apps.sandbox import Fault
from faena import Faena
from faena.testing import harness
from tests.apps.mail.conftest import SENDER, settings_of

ANA, LEO = "ana@example.com", "leo.o'neil+x@sub.example.org"
MAIL = Mail(to=[ANA], subject="Su factura", text="Adjuntamos su factura de mañana.\n")


async def test_a_mail_arrives_as_it_was_written(client: Client, server: MailServer) -> None:
    pdf = Attachment(name="factura ñ.pdf", content=bytes(range(256)) * 9, type="application/pdf")
    mail = Mail(
        to=[ANA, LEO, ANA],
        subject="Su factura Nº 7 — ¡gracias! 😀 " + "larga " * 30,
        text="Señora Ana:\r\n.\n..punto\rfin\n" + "x" * 2000,
        html="<p>Hola, <b>Ana</b></p>",
        reply_to="soporte@campo.example",
        attachments=[pdf],
        key="job-7",
    )
    assert await client.send(mail) == "<job-7@campo.example>"
    (received,) = server.mailbox
    message = received.message
    assert (received.sender, received.recipients) == (SENDER, (ANA, LEO))
    assert message["Subject"] == mail.subject
    assert message["Message-ID"] == "<job-7@campo.example>"
    assert message["From"].addresses[0].display_name == "Campo Ñandú"
    assert message["Reply-To"] == "soporte@campo.example"
    plain = message.get_body(("plain",))
    lines = ["Señora Ana:", ".", "..punto", "fin", "x" * 2000]
    assert plain.get_content().splitlines() == lines
    assert message.get_body(("html",)).get_content().strip() == "<p>Hola, <b>Ana</b></p>"
    (attached,) = message.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == (pdf.name, pdf.content)
    assert attached.get_content_type() == "application/pdf"


async def test_a_mail_without_a_key_has_an_id_of_its_own(
    client: Client, server: MailServer
) -> None:
    first, second = await client.send(MAIL), await client.send(MAIL)
    assert first != second
    assert [str(one.message["Message-ID"]) for one in server.mailbox] == [first, second]


@pytest.mark.parametrize("is_encrypted", [False, True])
async def test_passwords_and_mails_travel_encrypted(
    is_encrypted: bool, certificate: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    server = MailServer(users={"campo": "secreto"}, tls=certificate, is_encrypted=is_encrypted)
    security = "tls" if is_encrypted else "starttls"
    async with server.serving() as url:
        known = settings_of(url, security=security, user="campo", password="secreto")
        await Client(known, tls=trust).send(MAIL)
        (received,) = server.mailbox
        assert received.was_encrypted
        wrong = dataclasses.replace(known, password="otro")
        with pytest.raises(Permanent, match="code 535") as caught:
            await Client(wrong, tls=trust).send(MAIL)
        assert "otro" not in str(caught.value)
        with pytest.raises(Permanent, match="certificate cannot be trusted"):
            await Client(known).send(MAIL)
    assert len(server.mailbox) == 1


async def test_what_should_be_encrypted_is_not_sent_in_plain(
    server: MailServer, trust: ssl.SSLContext
) -> None:
    with pytest.raises(Permanent, match="lacks STARTTLS"):
        await Client(settings_of(server.url, security="starttls"), tls=trust).send(MAIL)
    with pytest.raises(Retryable):
        await Client(settings_of(server.url, security="tls"), tls=trust).send(MAIL)
    assert server.ledger.entries == []


async def test_a_server_that_wants_a_password_refuses_strangers(
    certificate: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    server = MailServer(users={"campo": "secreto"}, tls=certificate)
    async with server.serving() as url:
        with pytest.raises(Permanent, match="code 530"):
            await Client(settings_of(url, security="starttls"), tls=trust).send(MAIL)
        with pytest.raises(Permanent, match="code 530"):
            await Client(settings_of(url)).send(MAIL)
    assert server.mailbox == []


async def test_all_recipients_get_a_mail_or_none(client: Client, server: MailServer) -> None:
    server.unknown.add(LEO)
    with pytest.raises(Permanent, match="1 of 2 recipients") as caught:
        await client.send(dataclasses.replace(MAIL, to=[ANA, LEO]))
    assert (caught.value.code, caught.value.refused) == (550, (LEO,))
    assert LEO not in str(caught.value)
    assert server.mailbox == []


HOSTILE = [
    "a\r\nBcc: eva@example.com",
    "a\nBcc: eva@example.com",
    "a\rBcc: eva@example.com",
    "a\x00b",
    "a\u2028Bcc: eva@example.com",
    "a\x0bb",
    "a\x85b",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_can_become_a_header(text: str) -> None:
    with pytest.raises(ValueError, match="subject must be one line"):
        dataclasses.replace(MAIL, subject=text)
    for wrong in ({"to": [f"{ANA}{text}"]}, {"to": [text]}, {"reply_to": text}):
        with pytest.raises(ValueError, match="must be an address"):
            dataclasses.replace(MAIL, **wrong)
    with pytest.raises(ValueError, match="the name of an attachment"):
        Attachment(name=text, content=b"")
    with pytest.raises(ValueError, match="the type of an attachment"):
        Attachment(name="a.pdf", content=b"", type=f"application/{text}")
    with pytest.raises(ValueError, match="key must be"):
        dataclasses.replace(MAIL, key=text)
    with pytest.raises(ValueError, match="sender_name must be one line"):
        Settings(host="mail.example", sender=SENDER, sender_name=text)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ana",
        "@example.com",
        "ana@",
        "ana@localhost",
        "Ana <ana@example.com>",
        "ana@example.com, eva@example.com",
        "ana@example.com>",
        '"ana b"@example.com',
        "añá@example.com",
        "ana@exámple.com",
        "ana@example..com",
        ".ana@example.com",
        "ana@-example.com",
        "ana@example.com ",
        "a" * 250 + "@example.com",
    ],
)
def test_an_address_is_one_plain_address(address: str) -> None:
    with pytest.raises(ValueError, match="to must be an address"):
        dataclasses.replace(MAIL, to=[address])


def test_a_mail_has_recipients_but_not_too_many() -> None:
    for wrong in ([], [ANA] * 51, ANA):
        with pytest.raises(ValueError, match="to must be a list"):
            dataclasses.replace(MAIL, to=wrong)


@pytest.mark.parametrize("name", ["", "../a.pdf", "a\\b.pdf", 'a"b.pdf'])
def test_the_name_of_an_attachment_is_no_path(name: str) -> None:
    with pytest.raises(ValueError, match="name of an attachment"):
        Attachment(name=name, content=b"")


@pytest.mark.parametrize("kind", ["message/rfc822", "multipart/mixed", "pdf", "text/", "A/B"])
def test_an_attachment_is_no_mail_of_its_own(kind: str) -> None:
    with pytest.raises(ValueError, match="type of an attachment"):
        Attachment(name="a", content=b"", type=kind)


@pytest.mark.parametrize(
    "text",
    [
        "\r\n.\r\nMAIL FROM:<eva@example.com>\r\nRCPT TO:<ana@example.com>\r\nDATA\r\n\r\nx",
        "\n.\nMAIL FROM:<eva@example.com>\n",
        "\r.\rMAIL FROM:<eva@example.com>\r",
        "\n.\r\nMAIL FROM:<eva@example.com>",
        ".",
        "..",
        "\ud800",
        "",
    ],
)
async def test_no_text_becomes_another_mail(text: str, client: Client, server: MailServer) -> None:
    odd = Attachment(name="a.bin", content=b"\r\n.\r\nQUIT\r\n\n.\n")
    await client.send(dataclasses.replace(MAIL, text=text, html=text, attachments=[odd]))
    (received,) = server.mailbox
    (attached,) = received.message.iter_attachments()
    assert attached.get_content() == odd.content
    assert [one.operation for one in server.ledger.entries] == ["MAIL", "RCPT", "DATA"]


async def test_a_mail_that_is_too_large_is_not_sent(client: Client, server: MailServer) -> None:
    large = Attachment(name="a.bin", content=bytes(MOST_BYTES))
    with pytest.raises(Permanent, match="at most"):
        await client.send(dataclasses.replace(MAIL, attachments=[large]))
    assert server.ledger.entries == []


def test_settings_do_not_show_the_password_and_must_make_sense() -> None:
    environ = {
        "SMTP_HOST": "mail.example",
        "SMTP_PORT": "465",
        "SMTP_SECURITY": "tls",
        "SMTP_FROM": SENDER,
        "SMTP_USER": "campo",
        "SMTP_PASSWORD": "secreto",
    }
    settings = Settings.from_env(environ)
    assert (settings.port, settings.security, settings.domain) == (465, "tls", "campo.example")
    assert "secreto" not in repr(settings)
    assert Settings.from_env({"SMTP_HOST": "h", "SMTP_FROM": SENDER}).port == 587
    for name in ("SMTP_HOST", "SMTP_FROM"):
        with pytest.raises(ValueError, match=f"{name} must be set"):
            Settings.from_env({key: value for key, value in environ.items() if key != name})
    with pytest.raises(ValueError, match="SMTP_PORT must be a number"):
        Settings.from_env({**environ, "SMTP_PORT": "x"})
    for wrong in (
        {"sender": "campo"},
        {"security": "ssl"},
        {"security": "none"},
        {"password": None},
        {"password": "ñ"},
        {"host": ""},
        {"port": 70_000},
    ):
        with pytest.raises(ValueError, match="must"):
            dataclasses.replace(settings, **wrong)


def test_a_mail_does_not_show_what_it_says() -> None:
    assert repr(dataclasses.replace(MAIL, key="k")) == "Mail(attachments=(), key='k')"


async def test_jobs_wait_for_a_server_in_trouble_and_end_with_wrong_addresses(
    client: Client, server: MailServer
) -> None:
    app = Faena("shop")
    upstream, queue = mail_upstream(app), app.queue("mails")

    @queue.task(upstreams=[upstream])
    async def send(to: str) -> str:
        return await client.send(Mail(to=[to], subject="Hola", text="Hola"))

    server.faults.add(Fault(kind="status", status=451, operation="RCPT", times=1))
    server.unknown.add(LEO)
    async with harness(app) as h:
        await send.enqueue(ANA)
        assert (await h.drain()).counts == {"retried": 1}
        assert (await h.drain(through="5m")).counts == {"completed": 1}
        await send.enqueue(LEO)
        assert (await h.drain()).counts == {"dead": 1}
