"""Mails what outside services have cost, each morning, to those whom `CAMPOTECH_COSTS_TO` names.

The mail of a day has one Message-ID: a job that runs again sends what mail programs know already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from apps.campotech.upkeep.comparison import ZONE
from apps.providers.mail import Mail
from faena import CostReport

if TYPE_CHECKING:
    from apps.campotech.system import System

AT: Final = "08:00"
_NAMES: Final = {"day": "hoy", "month": "este mes"}


class Costs:
    """The schedule `mail_costs` of the queue `scheduler`."""

    def __init__(self, system: System) -> None:
        self._system = system

        @system.app.daily_cost_report(at=AT, timezone=ZONE.key, queue=system.queues["scheduler"])
        async def mail_costs(report: CostReport) -> None:
            await self.mail(report)

        self.report = mail_costs

    async def mail(self, report: CostReport) -> bool:
        """Whether it was sent: only to somebody, and with a mail server."""
        to, channels = self._system.settings.costs_to, self._system.delivery.channels
        if not to or not channels.has_mail:
            return False
        mail = Mail(
            to=to,
            subject=f"Costos del {report.period}: {_sum(report)}",
            text=text_of(report),
            key=f"costs-{report.period}",
        )
        async with self._system.upstreams.mail.call():
            await channels.mail(mail)
        return True


def text_of(report: CostReport) -> str:
    """In words: the day, each service, the month, and how much of each budget is used."""
    month = ", ".join(map(str, report.month_spent)) or "0"
    forecast = ", ".join(map(str, report.forecast or ())) or "-"
    lines = [f"Total del {report.period}: {_sum(report)}"]
    lines += [f"  {one.upstream}: {one.spent}" for one in report.services]
    lines += [f"Este mes: {month} (previsto: {forecast})", "Presupuestos:"]
    lines += [
        f"  {one.upstream or 'total'} ({_NAMES[one.per]}): {one.spent} de {one.amount}, "
        f"{one.percent:.0f} %"
        for one in report.budgets
    ]
    return "\n".join(lines)


def _sum(report: CostReport) -> str:
    return ", ".join(map(str, report.spent)) or "0"
