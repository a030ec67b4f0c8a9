"""An app with alerts whose clock stands still, a webhook receiver and a mail server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from apps.sandbox.mail import MailServer

from faena import Alerts, Faena, Mail, Webhook
from faena.testing import Harness, harness
from tests._support.notice_receiver import NoticeReceiver

SECRET: Final = "a secret of more than sixteen"


class Watch:
    """One test of alerts."""

    def __init__(self, tested: Harness, hook: NoticeReceiver, mail: MailServer) -> None:
        self.app, self.clock = tested.app, tested.clock
        self.tested, self.hook, self.mail = tested, hook, mail

    async def judge(self, after: str = "30s") -> list[str]:
        """One evaluation, and the delivery of its notices; what the receiver was told of it."""
        self.clock.advance(after)
        before = len(self.hook.told())
        await (await self.app.evaluator()).run_once()
        await self.tested.drain("alerts")
        return self.hook.told()[before:]

    def subjects(self) -> list[str]:
        """The titles of the mails that have arrived."""
        return [str(one.message["Subject"]) for one in self.mail.mailbox]


@asynccontextmanager
async def watching(
    url: str, declare: Callable[[Faena], Any], *, options: dict[str, Any] | None = None, **more: Any
) -> AsyncGenerator[Watch]:
    """`options` are those of `Alerts` beside the channels, `more` those of the app."""
    mail = MailServer()
    async with NoticeReceiver() as hook, mail.serving() as address:
        host, port = urlsplit(address).hostname or "", urlsplit(address).port or 0
        channels = [
            Webhook(name="ops", url=hook.url, secret=SECRET, allow_private=True),
            Mail(
                name="team",
                host=host,
                port=port,
                tls="none",
                sender="a@x.example",
                to=["b@x.example"],
            ),
        ]
        alerts = Alerts(channels=channels, **(options or {}))
        app = Faena("shop", url, alerts=alerts, **more)
        declare(app)
        async with harness(app, url=url) as tested:
            yield Watch(tested, hook, mail)
