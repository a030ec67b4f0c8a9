"""CampoTech's thresholds fire, and operators are told where the environment says."""

from __future__ import annotations

from uuid import uuid4

import pytest
from apps.campotech.pace import Pace
from apps.campotech.registry import Flags
from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.providers import mail as mails
from apps.sandbox.sandbox import Sandbox

from apps.campotech import alerting, registry, thresholds
from faena import Chat, Faena, Log, Mail, Webhook
from faena.testing import Harness, harness
from tests._support.notice_receiver import NoticeReceiver
from tests.apps.campotech.business import Business

SECRET = "a secret of more than sixteen"
ACCOUNT = mails.Settings(host="127.0.0.1", port=25, sender="ops@campotech.example", security="none")
MINUTE_US = 60_000_000


async def judge(tested: Harness, after: str = "1m") -> list[str]:
    """One evaluation; what fires then, the worst first."""
    tested.clock.advance(after)
    await (await tested.app.evaluator()).run_once()
    return [
        f"{one.rule} {one.subject} {one.severity}" for one in (await tested.app.alerts()).firing
    ]


async def wait_for_cae(business: Business, number: int) -> None:
    """So many invoices that wait; nobody asks for their CAE."""
    task = business.system.issuing.request_cae
    await task.enqueue_many(
        [business.message(uuid4()) for _ in range(number)], tenant=str(business.id)
    )


async def test_the_depths_of_the_specification_fire_ease_and_resolve(
    system: System, harnessed: Harness, business: Business, caplog: pytest.LogCaptureFixture
) -> None:
    await wait_for_cae(business, 49)
    assert await judge(harnessed, "1s") == []
    await wait_for_cae(business, 1)
    assert await judge(harnessed, "30s") == ["depth afip.invoice warning"]
    await wait_for_cae(business, 50)
    assert await judge(harnessed, "30s") == [
        "depth afip.invoice critical",
        "wait afip.invoice warning",
    ]
    await harnessed.drain("alerts")
    assert "warning: depth of afip.invoice fires" in caplog.text
    assert "100 jobs wait (warning from 50, critical from 100)" in caplog.text
    await system.queues["afip.invoice"].drain()
    assert await judge(harnessed) == []
    await harnessed.drain("alerts")
    assert "depth of afip.invoice is resolved" in caplog.text


async def test_operators_are_told_by_webhook_chat_and_mail(
    environ: dict[str, str], sandbox: Sandbox
) -> None:
    """A CampoTech that is set up by its environment alone."""
    async with NoticeReceiver() as hook:
        told = {
            "CAMPOTECH_ALERT_WEBHOOK_URL": hook.url,
            "CAMPOTECH_ALERT_WEBHOOK_SECRET": SECRET,
            "CAMPOTECH_ALERT_CHAT_URL": hook.url.replace("/hook", "/chat"),
            "CAMPOTECH_ALERT_MAIL_TO": "ana@campotech.example",
            "CAMPOTECH_ALERT_MAIL_SEVERITY": "critical",
        }
        async with System(Settings.from_env({**environ, **told})) as system:
            business = await Business.make(system, sandbox)
            async with harness(system.app) as tested:
                await wait_for_cae(business, 50)
                await judge(tested)
                await tested.drain("alerts")
                assert sorted(one.path for one in hook.requests) == [
                    "/chat?team=ops",
                    "/hook?team=ops",
                ]
                assert sandbox.mail.mailbox == []
                await wait_for_cae(business, 50)
                await judge(tested)
                await tested.drain("alerts")
    (mail,) = sandbox.mail.mailbox
    assert mail.recipients == ("ana@campotech.example",)
    assert "critical" in str(mail.message["Subject"])


@pytest.mark.parametrize("row", registry.ROWS, ids=[row.name for row in registry.ROWS])
def test_each_queue_is_judged_by_its_thresholds(row: registry.Row) -> None:
    queue = registry.declare(Faena("campotech"), Pace(), Flags())[row.name]
    known = thresholds.thresholds_of(row.name)
    assert queue.options.alerts is not None
    assert queue.options.alerts.given == {
        "depth": tuple(known.depth),
        "wait": (known.wait_ms.warning * 1000, known.wait_ms.critical * 1000),
        "error_rate": (5, 15),
        "stalled": (5, 20),
    }


@pytest.mark.parametrize(
    ("speed", "waits"), [(1, (60e6, 300e6)), (6, (10e6, 50e6)), (1_000, (1e6, 5e6))]
)
def test_waits_are_shorter_at_another_speed_but_no_instant(
    speed: float, waits: tuple[float, float]
) -> None:
    queue = registry.declare(Faena("campotech"), Pace(speed), Flags())["afip.invoice"]
    assert queue.options.alerts is not None
    assert queue.options.alerts.given["wait"] == waits


def test_the_log_is_told_unless_the_environment_says_more() -> None:
    assert alerting.from_env({}, ACCOUNT) == (Log(),)
    environ = {
        "CAMPOTECH_ALERT_WEBHOOK_URL": "https://pager.example/faena",
        "CAMPOTECH_ALERT_WEBHOOK_SECRET": SECRET,
        "CAMPOTECH_ALERT_WEBHOOK_SEVERITY": "critical",
        "CAMPOTECH_ALERT_CHAT_URL": "https://chat.example/token",
        "CAMPOTECH_ALERT_MAIL_TO": "ana@campotech.example, luis@campotech.example",
    }
    log, webhook, chat, mail = alerting.from_env(environ, ACCOUNT)
    assert isinstance(log, Log)
    assert isinstance(webhook, Webhook)
    assert isinstance(chat, Chat)
    assert isinstance(mail, Mail)
    assert (webhook.severity, chat.severity, mail.severity) == ("critical", "warning", "warning")
    assert (mail.to, mail.host, mail.sender) == (
        ("ana@campotech.example", "luis@campotech.example"),
        *("127.0.0.1", "ops@campotech.example"),
    )


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"WEBHOOK_URL": "http://pager.example"}, "CAMPOTECH_ALERT_WEBHOOK_URL must begin with"),
        ({"WEBHOOK_URL": "https://pager.example"}, "CAMPOTECH_ALERT_WEBHOOK_SECRET is wrong"),
        ({"CHAT_URL": "chat.example"}, "CAMPOTECH_ALERT_CHAT_URL must begin with"),
        (
            {"CHAT_URL": "https://chat.example/x", "CHAT_SEVERITY": "loud"},
            "CAMPOTECH_ALERT_CHAT_SEVERITY must be warning or critical, got 'loud'",
        ),
        ({"MAIL_TO": "ana"}, "CAMPOTECH_ALERT_MAIL_TO is wrong"),
    ],
)
def test_what_cannot_work_is_refused_by_its_variable(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        alerting.from_env({f"CAMPOTECH_ALERT_{key}": one for key, one in environ.items()}, ACCOUNT)


def test_mail_needs_a_mail_server() -> None:
    with pytest.raises(ValueError, match="SMTP_HOST must be set with CAMPOTECH_ALERT_MAIL_TO"):
        alerting.from_env({"CAMPOTECH_ALERT_MAIL_TO": "ana@campotech.example"}, None)
