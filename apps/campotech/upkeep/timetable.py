"""When what is done behind the scenes: times of Argentina, or intervals where time goes faster.

| schedule              | when            | what                                                   |
|-----------------------|-----------------|--------------------------------------------------------|
| job-reminder          | hourly          | reminders that are due soon and missing are set        |
| invoice-overdue-check | daily 08:00     | customers and owners are told of overdue invoices      |
| daily-reconciliation  | daily 02:30     | the day before is compared with what providers have    |
| cert-expiry-check     | daily 07:00     | owners are told 30, 7 and 1 days before                |
| weekly-report         | Mondays 06:00   | figures of the week before                             |
| clean-…               | hourly … weekly | what nobody needs any more                             |

A schedule only starts the work: a message with an id made of the instant, so once for each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from apps.campotech.upkeep.comparison import ZONE
from faena import Job

if TYPE_CHECKING:
    from apps.campotech.system import System

Start = Callable[[datetime], Awaitable[object]]


class Times(NamedTuple):
    """When something is due."""

    cron: str
    every: str
    """At another speed than that of the clock on the wall: how often."""


TIMES: Final = {
    "job_reminder": Times("5 * * * *", "1h"),
    "invoice_overdue_check": Times("0 8 * * *", "24h"),
    "daily_reconciliation": Times("30 2 * * *", "24h"),
    "cert_expiry_check": Times("0 7 * * *", "24h"),
    "weekly_report": Times("0 6 * * MON", "168h"),
    "expired_otps": Times("15 * * * *", "1h"),
    "orphaned_files": Times("10 4 * * *", "24h"),
    "expired_idempotency": Times("20 4 * * *", "24h"),
    "completed_jobs": Times("30 4 * * *", "24h"),
    "old_audit_logs": Times("40 4 * * SUN", "168h"),
}


def declare(system: System) -> None:
    """Declare all of them on the queue `scheduler`."""
    for kind in system.scheduled.tasks:
        _add(system, kind, kind, system.scheduled.starter(kind))
    for kind in TIMES.keys() - system.scheduled.tasks.keys():
        _add(system, f"clean_{kind}", kind, system.cleaning.starter(kind))


def _add(system: System, name: str, kind: str, start: Start) -> None:
    async def fire(job: Job) -> None:
        await start(job.instant or job.started_at)

    times, schedule = TIMES[kind], name.replace("_", "-")
    task = system.queues["scheduler"].task(name=f"start_{name}")(fire)
    if system.pace.speed == 1:
        system.app.cron(times.cron, tz=ZONE.key, name=schedule)(task)
    else:
        system.app.every(system.pace.interval(times.every), name=schedule)(task)
