"""The services behind push, mail and SMS; an installation may lack some of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import httpx

from apps.campotech.settings import Settings
from apps.campotech.upstreams import Upstreams
from apps.providers import mail, push, sms

_ABSENT = "this installation has no {name}"


class Channels:
    """Clients and upstreams."""

    refused = (push.Permanent, mail.Permanent, sms.Permanent)
    unknown = (push.UnknownOutcome, mail.UnknownOutcome, sms.UnknownOutcome)

    def __init__(self, upstreams: Upstreams, settings: Settings, http: httpx.AsyncClient) -> None:
        self.push_upstream = upstreams.push
        self.mail_upstream = upstreams.mail
        self.sms_upstream = upstreams.sms
        self._push = settings.push and push.Client(settings.push, http)
        self._mail = settings.mail and mail.Client(settings.mail)
        self._sms = settings.sms and sms.Client(settings.sms, http)

    @property
    def has_mail(self) -> bool:
        """Whether there is a mail server."""
        return self._mail is not None

    @property
    def has_sms(self) -> bool:
        """Whether there is an account for SMS."""
        return self._sms is not None

    @property
    def has_push(self) -> bool:
        """Whether there is a project at Firebase."""
        return self._push is not None

    async def push(self, notice: push.Notice) -> None:
        """Tell a device."""
        if self._push is None:
            raise push.Permanent(_ABSENT.format(name="push"))
        await self._push.send(notice)

    async def mail(self, one: mail.Mail) -> None:
        """Send a mail."""
        if self._mail is None:
            raise mail.Permanent(_ABSENT.format(name="mail"))
        await self._mail.send(one)

    async def text(self, to: str, body: str, *, since: datetime | None) -> Mapping[str, int]:
        """Send an SMS, unless one with these words has gone out `since`; what it costs."""
        if self._sms is None:
            raise sms.Permanent(_ABSENT.format(name="sms"))
        if since is not None:
            found = await self._sms.find(to, since=since)
            if any(one.body == body and not one.has_failed for one in found):
                return {"segment": 0}
        return (await self._sms.send(to, body)).items
