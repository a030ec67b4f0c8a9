"""The daily comparison with providers: of the day before, in the transaction that records it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.campotech.keys import key_of
from apps.campotech.messages import Reconciliation, SchedulerMessage
from apps.campotech.upkeep.comparison import ALL, ZONE
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_DAYS: Final = {"payments": 0, "messages": 1, "invoices": 0}
"""How many days before the day itself: a message is left to WhatsApp for a day. The tax office,
which takes longest, comes last."""


async def start(
    system: System, transaction: Connection, message: SchedulerMessage, organization: UUID | None
) -> list[str]:
    """Compare with all three; the ids of the jobs."""
    at = message.scheduled_for
    day = (at - system.pace.of("24h")).astimezone(ZONE).date()
    made: list[str] = []
    for kind, earlier in _DAYS.items():
        given: dict[str, Any] = {
            "org_id": organization or ALL,
            "idempotency_key": f"daily-{kind}-{at:%Y%m%dT%H%M%S.%f}",
            "created_at": at,
            "reconciliation_type": kind,
            "date_from": day - timedelta(days=earlier),
            "date_to": day,
        }
        wanted = Reconciliation(**given)
        made.append(
            await system.pg.outbox.enqueue(
                transaction, system.reconciling.reconcile, wanted, id=str(key_of(wanted))
            )
        )
    return made
