"""Tells users and customers by push, mail and SMS, each notification once as far as can be told.

Of the three, a push that is sent again replaces the first one, a mail has the same Message-ID, and
Twilio is asked whether it has a message before it gets it a second time. What cannot be pushed is
mailed: no device, one that has lost the app, Firebase out, or the feature switched off.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_OID, uuid5

from apps.campotech.messages.base import Schema
from apps.campotech.messages.dispatched import UserNotification
from apps.campotech.messages.fields import Id, Name, Words
from apps.campotech.messaging import notification_log
from apps.campotech.messaging.channel import Channels
from apps.campotech.messaging.notification_log import SENT, Begun, Channel, Note
from apps.campotech.messaging.recipient import Person, find_customer, find_user, forget_device
from apps.providers import push, sms
from apps.providers.mail import Mail
from faena import Discard, Job
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_UNREACHABLE: Final = "unreachable"
_BY_MAIL: Final = "by email"
_KIND: Final = "user"


class CustomerNotice(Schema):
    """A notification that was noted for a customer, and is sent as a mail or an SMS."""

    organization_id: Id
    notification_id: Id
    customer_id: Id
    kind: Name
    title: Name
    body: Words


class Delivery:
    """`push`, `sms`, `email` (users) and `tell_customer` of the queue `job.notification`."""

    def __init__(self, system: System, channels: Channels) -> None:
        self._system, self._pg, self.channels = system, system.pg, channels
        queue = system.queues["job.notification"]
        self.email = queue.task(name="email", upstreams=[channels.mail_upstream])(self._email)
        self.sms = queue.task(name="sms", upstreams=[channels.sms_upstream])(self._sms)
        self.push = queue.task(
            name="push", upstreams=[channels.push_upstream], fallback=self.email
        )(self._push)
        self.mail_customer = queue.task(name="mail_customer", upstreams=[channels.mail_upstream])(
            self._mail_customer
        )
        self.text_customer = queue.task(name="text_customer", upstreams=[channels.sms_upstream])(
            self._text_customer
        )

    # -- tasks ------------------------------------------------------------------------------------

    async def _push(self, told: UserNotification, job: Job) -> str:
        """What became of it."""
        user = await self._user(told, job)
        begun = await notification_log.begin(self._pg, _note(job, user, "push"))
        if begun.is_over:
            return begun.status
        is_off = not self.channels.has_push or self._system.features.push.uses_fallback
        if user.push_token is None or is_off:
            return await self._mail_instead(told, job, begun)
        notice = push.Notice(
            token=user.push_token,
            title=told.title,
            body=told.body,
            data=_texts(told.data),
            collapse_key=begun.id.hex,
            is_urgent=True,
        )
        try:
            async with self._noting(begun), self.channels.push_upstream.call():
                await self.channels.push(notice)
        except push.Unregistered:
            async with self._pg.transaction("notification") as connection:
                await forget_device(connection, user)
            return await self._mail_instead(told, job, begun)
        return SENT

    async def _email(self, told: UserNotification, job: Job) -> str:
        user = await self._user(told, job)
        return await self._mail(_note(job, user, "email"), user, told.title, told.body)

    async def _sms(self, told: UserNotification, job: Job) -> str:
        user = await self._user(told, job)
        return await self._text(_note(job, user, "sms"), user, f"{told.title}: {told.body}")

    async def _mail_customer(self, told: CustomerNotice) -> str:
        customer = await self._customer(told)
        return await self._mail(_noted(told, "email"), customer, told.title, told.body)

    async def _text_customer(self, told: CustomerNotice) -> str:
        customer = await self._customer(told)
        return await self._text(_noted(told, "sms"), customer, told.body)

    # -- channels ---------------------------------------------------------------------------------

    async def _mail(self, note: Note, person: Person, subject: str, text: str) -> str:
        begun = await notification_log.begin(self._pg, note)
        if begun.is_over:
            return begun.status
        if person.email is None or not self.channels.has_mail:
            await notification_log.end(self._pg, begun, _UNREACHABLE)
            return _UNREACHABLE
        try:
            line = " ".join(subject.split())[:200]
            mail = Mail(to=[person.email], subject=line, text=text, key=f"n-{begun.id.hex}")
        except ValueError as error:
            await notification_log.end(self._pg, begun, "failed")
            raise Discard(str(error)) from None
        async with self._noting(begun), self.channels.mail_upstream.call():
            await self.channels.mail(mail)
        return SENT

    async def _text(self, note: Note, person: Person, text: str) -> str:
        begun = await notification_log.begin(self._pg, note)
        if begun.is_over:
            return begun.status
        if person.phone is None or not self.channels.has_sms:
            await notification_log.end(self._pg, begun, _UNREACHABLE)
            return _UNREACHABLE
        body = " ".join(text.split())[: sms.MOST_CHARACTERS]
        estimate = {"segment": sms.segments(body)}
        async with self._noting(begun), self.channels.sms_upstream.call(estimate=estimate) as call:
            since = begun.at if begun.was_tried else None
            call.spend(await self.channels.text(person.phone, body, since=since))
        return SENT

    # -- around them ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _noting(self, begun: Begun) -> AsyncGenerator[None]:
        """What is not known is looked for by the next attempt, or replaced by it."""
        try:
            yield
        except push.Unregistered:
            raise
        except self.channels.refused:
            await notification_log.end(self._pg, begun, "failed")
            raise
        except self.channels.unknown:
            await notification_log.end(self._pg, begun, "unknown")
            raise
        await notification_log.end(self._pg, begun, SENT)

    async def _mail_instead(self, told: UserNotification, job: Job, begun: Begun) -> str:
        async with self._pg.transaction("notification") as connection:
            if await notification_log.change(connection, begun, _BY_MAIL):
                await self._hand_on(connection, told, job, begun)
        return _BY_MAIL

    async def _hand_on(
        self, connection: Connection, told: UserNotification, job: Job, begun: Begun
    ) -> None:
        options: dict[str, Any] = {} if job.tenant is None else {"tenant": job.tenant}
        await self._pg.outbox.enqueue(
            connection, self.email, told, id=f"mail-{begun.id.hex}", **options
        )

    async def _user(self, told: UserNotification, job: Job) -> Person:
        """Whom it is for: only a user of the organisation that the job is for."""
        async with self._pg.transaction("notification") as connection:
            found = await find_user(connection, told.user_id)
        named = {one for one in (told.organization_id, job.tenant) if one is not None}
        if found is None or not named <= {str(found.organization)}:
            raise Discard("userId must be that of a user of this organisation")
        return found

    async def _customer(self, told: CustomerNotice) -> Person:
        async with self._pg.transaction("notification") as connection:
            found = await find_customer(connection, told.organization_id, told.customer_id)
        if found is None:
            raise Discard(f"no customer {told.customer_id} in this organisation")
        return found


def _note(job: Job, person: Person, channel: Channel) -> Note:
    return Note(
        id=uuid5(NAMESPACE_OID, f"{job.queue}/{channel}/{job.origin}"),
        organization=person.organization,
        recipient=str(person.id),
        channel=channel,
        kind=_KIND,
    )


def _noted(told: CustomerNotice, channel: Channel) -> Note:
    return Note(
        id=told.notification_id,
        organization=told.organization_id,
        recipient=str(told.customer_id),
        channel=channel,
        kind=told.kind,
    )


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    """Firebase takes texts only."""
    return {name: one if isinstance(one, str) else str(one) for name, one in data.items()}
