"""Hands over work by the names that the web application uses, such as `invoice:generate`.

    await system.dispatch("invoice:generate", {"jobId": …, "organizationId": …})
    await system.dispatch("rating:request", data, connection=connection)    # with what you write

A name has a queue, a task and a tier (`tiers.py`): the tier says how urgent a job is and how it is
tried again. The same idempotency key is the same job. In a transaction of the caller's the job is
written to the outbox, where it is tried again as its task or queue says.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.invoicing.pending import message_of
from apps.campotech.keys import dispatch_key, key_of
from apps.campotech.messages import DISPATCHED
from apps.campotech.messages.dispatched import Dispatched, InvoiceAfipSubmit, OfOrganization
from apps.campotech.messages.dispatched import UserNotification as News
from apps.campotech.messaging.recipient import find_user
from apps.campotech.once import enqueue_once
from apps.campotech.tiers import DISPATCH, Kind
from apps.campotech.upkeep import scheduled
from apps.campotech.upkeep.comparison import ZONE
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_LONGEST_KEY: Final = 512


class Undispatchable(ValueError):
    """What was given can be no such work: one sentence for who asked."""


class Handed(NamedTuple):
    """Work that was handed over."""

    queue: str
    task: str
    id: str
    is_new: bool | None
    """None in a transaction: that is known when it has committed."""


class _Way(NamedTuple):
    """How some data become a job."""

    payload: Any
    tenant: str | None
    id: str | None = None
    """Of work that has its own, whatever key is given."""


class Dispatcher:
    """`system.dispatch`."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._ways: Mapping[str, Callable[[Connection, Any], Awaitable[_Way]]] = {
            "notification:push": self._of_user,
            "notification:sms": self._of_user,
            "notification:email": self._of_user,
            "invoice:afip-submit": self._of_invoice,
            "report:generate": self._of_report,
        }
        self._tasks = {
            name: system.queues[kind.queue].tasks[kind.task] for name, kind in DISPATCH.items()
        }

    async def __call__(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        priority: int | str | None = None,
        delay: timedelta | str | None = None,
        connection: Connection | None = None,
    ) -> Handed:
        """Hand over some work; raises Undispatchable for what can be none, and does nothing then.

        With a `connection` the job is part of its transaction.
        """
        kind, read = _kind_of(name), _read(name, data)
        options: dict[str, Any] = {} if delay is None else {"delay": delay}
        options["priority"] = kind.tier.priority if priority is None else priority
        if connection is not None:
            way = await self._way(connection, name, read)
            return await self._write(connection, name, way, idempotency_key, options)
        async with self._system.pg.transaction("dispatch") as reading:
            way = await self._way(reading, name, read)
        options |= _named(name, way, idempotency_key, on_conflict="keep")
        receipt = await self._tasks[name].enqueue(
            way.payload, **options, retry=kind.tier.retry(self._system.pace)
        )
        return Handed(kind.queue, kind.task, receipt.id, receipt.status == "created")

    async def _write(
        self,
        connection: Connection,
        name: str,
        way: _Way,
        key: str | None,
        options: dict[str, Any],
    ) -> Handed:
        kind, task = DISPATCH[name], self._tasks[name]
        named = _named(name, way, key)
        made, is_written = await enqueue_once(
            self._system, connection, task, way.payload, **options, **named
        )
        return Handed(kind.queue, kind.task, made, is_new=None if is_written else False)

    # -- what becomes of the data -----------------------------------------------------------------

    async def _way(self, connection: Connection, name: str, data: Dispatched) -> _Way:
        special = self._ways.get(name)
        if special is not None:
            return await special(connection, data)
        tenant = str(_uuid("organizationId", data)) if isinstance(data, OfOrganization) else None
        return _Way(data, tenant)

    async def _of_user(self, connection: Connection, data: News) -> _Way:
        """At the expense of the user's own organisation."""
        found = await find_user(connection, data.user_id)
        if found is None or data.organization_id not in (None, str(found.organization)):
            raise Undispatchable("userId must be that of a user of the organisation")
        return _Way(data, str(found.organization))

    async def _of_invoice(self, connection: Connection, data: InvoiceAfipSubmit) -> _Way:
        """The very job that the API makes: an invoice has one CAE, whoever asks for it."""
        whose, which = _uuid("organizationId", data), _uuid("invoiceId", data)
        one = await invoices.find(connection, whose, which)
        if one is None:
            raise Undispatchable("invoiceId must be an invoice of the organisation")
        message = message_of(
            one.id,
            one.organization_id,
            one.customer_id,
            one.kind,
            one.point_of_sale,
            one.total_cents,
            one.created_at,
        )
        return _Way(message, str(whose), str(key_of(message)))

    async def _of_report(self, _connection: Connection, data: OfOrganization) -> _Way:
        """The last week that is over: the same message on the same day."""
        whose = _uuid("organizationId", data)
        today = datetime.combine(datetime.now(ZONE).date(), time(), ZONE).astimezone(UTC)
        return _Way(scheduled.message_of("weekly_report", today, target=whose), str(whose))


def _kind_of(name: str) -> Kind:
    found = DISPATCH.get(name)
    if found is None:
        near = difflib.get_close_matches(str(name), DISPATCH, n=1, cutoff=0)
        raise Undispatchable(f"name must be that of some work, got {name!r}: {near[0]!r} is one")
    return found


def _read(name: str, data: Mapping[str, Any]) -> Dispatched:
    try:
        return DISPATCHED[name].model_validate(dict(data))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        said = first["msg"][:1].lower() + first["msg"][1:]
        raise Undispatchable(f"{field} of {name}: {said}") from None


def _named(name: str, way: _Way, key: str | None, **more: Any) -> dict[str, Any]:
    """The tenant of a job and its id; a job without one is a new one each time."""
    named: dict[str, Any] = {} if way.tenant is None else {"tenant": way.tenant}
    if key is not None and not 1 <= len(key) <= _LONGEST_KEY:
        raise Undispatchable(f"an idempotency key must have 1 to {_LONGEST_KEY} characters")
    if way.id is not None:
        return {**named, "id": way.id, **more}
    if key is not None:
        return {**named, "id": str(dispatch_key(way.tenant or "platform", name, key)), **more}
    return named


def _uuid(field: str, data: Dispatched) -> UUID:
    value = data.model_dump(by_alias=True)[field]
    try:
        return UUID(value)
    except ValueError:
        raise Undispatchable(f"{field} must be a UUID") from None
