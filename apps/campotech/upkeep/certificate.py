"""Warns owners before the certificate of the tax office ends: 30, 7 and 1 days before, once each.

What was said is written down with the end that it was about, so a new certificate begins anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from apps.campotech.upkeep.comparison import ZONE
from apps.campotech.upkeep.owner import tell_owners
from apps.campotech.upkeep.page import Asked, Page, Work
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

DAYS: Final = (30, 7, 1, 0)
"""0: it has ended."""
_SOON: Final = """
    SELECT organization_id FROM campotech.certificates
    WHERE expires_at <= %(until)s AND organization_id > %(after)s
        AND (warned_of IS DISTINCT FROM expires_at OR warned_days > 0)
    ORDER BY 1 LIMIT %(most)s
"""
_FIND: Final = """
    SELECT expires_at, CASE WHEN warned_of = expires_at THEN warned_days END
    FROM campotech.certificates WHERE organization_id = %s FOR UPDATE
"""
_WARNED: Final = """
    UPDATE campotech.certificates SET warned_days = %s, warned_of = expires_at
    WHERE organization_id = %s
"""


class Warnings(Work):
    """The work `cert_expiry_check`."""

    kind: ClassVar[str] = "cert_expiry_check"

    def __init__(self, system: System) -> None:
        self._system = system

    async def page(self, transaction: Connection, page: Page) -> list[UUID]:
        """Those whose certificates end soon."""
        until = page.now + timedelta(days=max(DAYS))
        given = {"until": until, "after": page.after, "most": page.most}
        rows = await (await transaction.execute(_SOON, given)).fetchall()
        return [row[0] for row in rows]

    async def do(self, transaction: Connection, asked: Asked) -> dict[str, Any]:
        """Warn, unless that was said before."""
        organization, now = asked.organization, asked.now
        row = await (await transaction.execute(_FIND, [organization])).fetchone()
        if row is None:
            return {"warned": None}
        expires, said = row
        due = stage(expires, now)
        if due is None or (said is not None and said <= due):
            return {"warned": None}
        await transaction.execute(_WARNED, [due, organization])
        await tell_owners(self._system, transaction, organization, _words(expires, due))
        return {"warned": due}


def stage(expires: datetime, now: datetime) -> int | None:
    """Which warning is due; None: it is too early for any."""
    left = expires - now
    due = [days for days in DAYS if left <= timedelta(days=days)]
    return min(due) if due else None


def _words(expires: datetime, due: int) -> tuple[str, str]:
    day = expires.astimezone(ZONE).strftime("%d/%m/%Y")
    if due == 0:
        return "Certificado de AFIP vencido", f"Venció el {day}: subí uno nuevo para facturar"
    return "Certificado de AFIP por vencer", f"Vence el {day}: renovalo para seguir facturando"
