"""Where notices go: signed, pinned, retried as jobs, without a secret in sight."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from apps.sandbox.fault import Fault
from apps.sandbox.mail import MailServer

from faena import Alerts, Chat, Faena, Log, Mail, Thresholds, Webhook
from faena.engine.calls.alerts import Change, Notice
from faena.errors import ConfigError
from faena.options.channels import Channel
from faena.telemetry.alerts.delivery import deliver
from faena.telemetry.alerts.failure import Refused, Undelivered
from faena.telemetry.alerts.outgoing import is_global, post
from faena.testing import harness
from tests._support.alert_watch import SECRET, watching
from tests._support.notice_receiver import NoticeReceiver
from tests._support.valkey import Server

NOTICE = Notice(
    *("ops", "critical", 1_700_000_060_000_000),
    [Change("firing", "depth", "mail", "critical", 1_700_000_000_000_000, "9 jobs wait")],
)


def webhook(url: str, **more: Any) -> Webhook:
    return Webhook(name="ops", url=url, **{"secret": SECRET, "allow_private": True, **more})


async def send(channel: Channel, environ: dict[str, str] | None = None) -> None:
    await deliver("shop", "n-1", NOTICE, channel, environ or {})


async def test_a_webhook_is_signed_over_its_raw_bytes_and_the_instant() -> None:
    async with NoticeReceiver() as hook:
        await send(webhook(hook.url))
        (request,) = hook.requests
    signed = request.headers["Faena-Timestamp"].encode() + b"." + request.body
    digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["Faena-Signature"] == f"sha256={digest}"
    assert request.headers["Faena-Notice"] == "n-1"
    assert request.path == "/hook?team=ops"
    assert request.document == {
        "id": "n-1",
        "app": "shop",
        "severity": "critical",
        "at": "2023-11-14T22:14:20Z",
        "title": "[shop] critical: depth of mail fires",
        "alerts": [
            {
                "change": "firing",
                "rule": "depth",
                "subject": "mail",
                "severity": "critical",
                "since": "2023-11-14T22:13:20Z",
                "text": "9 jobs wait",
            }
        ],
    }


async def test_a_chat_gets_a_text() -> None:
    async with NoticeReceiver() as hook:
        await send(Chat(name="room", url=hook.url, allow_private=True))
        (request,) = hook.requests
    assert request.document == {
        "text": "[shop] critical: depth of mail fires\n\n- depth of mail fires: 9 jobs wait; for 1m"
    }


async def test_a_mail_has_an_id_that_stays(caplog: pytest.LogCaptureFixture) -> None:
    server = MailServer()
    async with server.serving() as address:
        mail = Mail(
            name="team",
            host="127.0.0.1",
            port=urlsplit(address).port or 0,
            tls="none",
            sender="faena@example.org",
            to=["ana@example.org", "luis@example.org", "gone@example.org"],
        )
        server.unknown.add("gone@example.org")
        await send(mail)
        server.unknown.update(mail.to)
        with pytest.raises(Refused, match="accept every recipient, got 550"):
            await send(mail)
        server.unknown.clear()
        server.faults.add(Fault(kind="status", status=451, operation="MAIL", times=1))
        with pytest.raises(Undelivered, match="got 451"):
            await send(mail)
    (received,) = server.mailbox
    assert received.recipients == ("ana@example.org", "luis@example.org")
    assert received.message["Message-ID"] == "<n-1@example.org>"
    assert received.message["Subject"] == "[shop] critical: depth of mail fires"
    assert "9 jobs wait" in received.message.get_content()
    assert "refused for 1 of 3 recipients" in caplog.text


async def test_the_log_has_the_severity_of_the_notice(caplog: pytest.LogCaptureFixture) -> None:
    await send(Log())
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("faena.alerts", logging.ERROR)
    assert "depth of mail fires" in record.getMessage()


async def test_secrets_come_from_the_environment_if_they_are_not_given() -> None:
    async with NoticeReceiver() as hook:
        channel = Webhook(name="on-call", allow_private=True)
        environ = {"FAENA_ALERTS_ON_CALL_URL": hook.url, "FAENA_ALERTS_ON_CALL_SECRET": SECRET}
        await send(channel, environ)
        assert len(hook.requests) == 1
        with pytest.raises(ConfigError, match="set FAENA_ALERTS_ON_CALL_SECRET"):
            await send(channel, {"FAENA_ALERTS_ON_CALL_URL": hook.url})
        with pytest.raises(ConfigError, match="at least 16 characters") as short:
            await send(channel, {**environ, "FAENA_ALERTS_ON_CALL_SECRET": "pssst"})
    assert "pssst" not in str(short.value)
    assert SECRET not in repr(webhook("https://example.org/token-in-here"))
    assert "token-in-here" not in repr(webhook("https://example.org/token-in-here"))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("::1", "fe80::1%eth0", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ],
)
def test_addresses_inside_are_not_global(address: str) -> None:
    assert not is_global(address)


def test_addresses_outside_are_global() -> None:
    assert is_global("1.1.1.1")
    assert is_global("2606:4700:4700::1111")


async def test_a_name_that_leads_inside_is_refused_before_it_is_called() -> None:
    async with NoticeReceiver() as hook:
        port = urlsplit(hook.url).port
        with pytest.raises(Undelivered, match="must be global, got a private or local one"):
            await post(f"https://127.0.0.1:{port}/", b"{}", {}, allow_private=False)
        with pytest.raises(Undelivered, match="must be global"):
            await post(f"https://localhost:{port}/", b"{}", {}, allow_private=False)
        with pytest.raises(ConfigError, match="with the scheme https"):
            await post(hook.url, b"{}", {}, allow_private=False)
        assert hook.requests == []


@pytest.mark.parametrize("inside", [0, 1])
async def test_no_address_of_a_name_may_be_inside(
    monkeypatch: pytest.MonkeyPatch, inside: int
) -> None:
    """A name of somebody else may have one of each kind."""
    found = ["1.1.1.1", "1.0.0.1"]
    found[inside] = "127.0.0.1"

    async def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 443)) for one in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    with pytest.raises(Undelivered, match="must be global"):
        await post("https://hook.example.org/", b"{}", {}, allow_private=False)


async def test_a_redirect_is_not_followed() -> None:
    async with NoticeReceiver() as inside, NoticeReceiver() as hook:
        hook.status, hook.location = 302, inside.url
        with pytest.raises(Undelivered, match="got status 302"):
            await send(webhook(hook.url))
        assert inside.requests == []


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_what_may_be_accepted_later_is_tried_again(status: int) -> None:
    async with NoticeReceiver(status=status) as hook:
        with pytest.raises(Undelivered) as failed:
            await send(webhook(hook.url))
    assert not isinstance(failed.value, Refused)


@pytest.mark.parametrize("status", [400, 401, 404, 410])
async def test_what_will_not_be_accepted_is_refused(status: int) -> None:
    async with NoticeReceiver(status=status) as hook:
        with pytest.raises(Refused, match=f"got status {status}"):
            await send(webhook(hook.url))


async def test_nobody_at_home_and_no_answer_are_said_without_the_address() -> None:
    async with NoticeReceiver(status=0) as hook:
        with pytest.raises(Undelivered) as failed:
            await send(webhook(hook.url))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/token-in-here"
        with pytest.raises(Undelivered, match="ConnectionRefusedError") as refused:
            await send(webhook(url))
    assert "127.0.0.1" not in f"{failed.value}{refused.value}"
    assert "token" not in str(refused.value)


async def test_an_unreachable_channel_is_retried_as_a_job_and_holds_up_no_other(
    valkey: Server,
) -> None:
    def declare(app: Faena) -> None:
        queue = app.queue("mail", alerts=Thresholds(depth=(1, 5), wait=(None, None)))

        @queue.task(name="work")
        async def work() -> None: ...

    async with watching(valkey.url, declare) as watch:
        watch.hook.status = 503
        work = watch.app.queues["mail"].tasks["work"]
        await work.enqueue()
        await watch.judge()
        for _ in range(4):
            await work.enqueue()
        await watch.judge("1s")
        await watch.judge()
        assert len(watch.mail.mailbox) == 2
        counts = await watch.app.queues["alerts"].counts()
        assert counts["delayed"] + counts["blocked"] + counts["ready"] == 2
        watch.hook.status, before = 200, len(watch.hook.requests)
        await watch.tested.drain("alerts", through="15m")
        assert len(watch.hook.requests) - before == 2
        assert watch.hook.told()[-2:] == [
            "depth mail warning firing",
            "depth mail critical escalated",
        ]


async def test_no_secret_is_on_the_broker_or_in_the_log(
    valkey: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def declare(app: Faena) -> None:
        queue = app.queue("mail", alerts=Thresholds(depth=(1, 5)))

        @queue.task(name="work")
        async def work() -> None: ...

    caplog.set_level(logging.DEBUG)
    async with watching(valkey.url, declare) as watch:
        watch.hook.status = 503
        await watch.app.queues["mail"].tasks["work"].enqueue()
        await watch.judge()
        with valkey.client() as client:
            stored = b"".join(client.dump(name) or b"" for name in client.scan_iter(count=1000))
        assert b"depth" in stored
        for secret in (SECRET, "team=ops"):
            assert secret.encode() not in stored
            assert secret not in caplog.text


async def test_a_refused_notice_is_dead_at_once(valkey: Server) -> None:
    def declare(app: Faena) -> None:
        queue = app.queue("mail", alerts=Thresholds(depth=(1, 5)))

        @queue.task(name="work")
        async def work() -> None: ...

    async with watching(valkey.url, declare) as watch:
        watch.hook.status = 400
        await watch.app.queues["mail"].tasks["work"].enqueue()
        await watch.judge()
        assert (await watch.app.queues["alerts"].counts())["dead"] == 1
        assert len(watch.hook.requests) == 1
        told = await watch.judge("2m")
        assert not [one for one in told if "dead" in one or " alerts " in one]


async def test_channels_take_what_they_are_for(valkey: Server) -> None:
    async with NoticeReceiver() as all_of_it, NoticeReceiver() as pager, NoticeReceiver() as afip:
        channels = [
            webhook(all_of_it.url),
            Webhook(
                name="pager", url=pager.url, secret=SECRET, allow_private=True, severity="critical"
            ),
            Webhook(
                name="afip",
                url=afip.url,
                secret=SECRET,
                allow_private=True,
                subjects=["afip.*"],
                rules=["depth"],
            ),
        ]
        app = Faena("shop", valkey.url, alerts=Alerts(channels=channels, rules={"wait": None}))
        for name in ("afip.invoice", "mail"):
            queue = app.queue(name, alerts=Thresholds(depth=(1, 3)))

            @queue.task(name=f"{name}.work")
            async def work() -> None: ...

        async with harness(app, url=valkey.url) as tested:
            await app.queues["afip.invoice"].tasks["afip.invoice.work"].enqueue()
            for _ in range(3):
                await app.queues["mail"].tasks["mail.work"].enqueue()
            await (await app.evaluator()).run_once()
            await tested.drain("alerts")
    assert len(all_of_it.requests) == 2  # one of each severity
    assert sorted(all_of_it.told()) == [
        "depth afip.invoice warning firing",
        "depth mail critical firing",
    ]
    assert pager.told() == ["depth mail critical firing"]
    assert afip.told() == ["depth afip.invoice warning firing"]
