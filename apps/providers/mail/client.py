"""Mail over SMTP. Nothing is retried here.

    client = Client(Settings.from_env(os.environ))
    await client.send(Mail(to=["ana@example.com"], subject="Su factura", text="…", key=job.id))

A mail is sent in a thread. When the caller is cancelled, or the time is over, its connection is
ended.
"""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from uuid import uuid4

from apps.providers.mail.delivery import Delivery
from apps.providers.mail.letter import Mail, Writer, compose
from apps.providers.mail.settings import Settings


class Client:
    """Hands mail in."""

    def __init__(self, settings: Settings, *, tls: ssl.SSLContext | None = None) -> None:
        """`tls` says whom to trust; by default, whom the system trusts."""
        self._settings = settings
        self._tls = tls or ssl.create_default_context()

    async def send(self, mail: Mail) -> str:
        """Send a mail to all of its recipients or to none; its Message-ID."""
        settings = self._settings
        message_id = f"<{mail.key or uuid4().hex}@{settings.domain}>"
        writer = Writer(
            address=settings.sender,
            name=settings.sender_name,
            message_id=message_id,
            at=datetime.now(UTC),
        )
        recipients = list(dict.fromkeys(mail.to))
        delivery = Delivery(settings, self._tls, recipients, compose(mail, writer))
        try:
            async with asyncio.timeout(settings.timeout_s):
                await asyncio.to_thread(delivery.run)
        except TimeoutError:
            raise delivery.unanswered() from None
        finally:
            delivery.give_up()
        return message_id
