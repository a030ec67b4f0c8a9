"""What the tax office asks for before it listens: certificates of organisations, and tickets."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from apps.campotech.security import Vault
from apps.providers.afip import Credentials, LoginRefused, Ticket
from faena.pg import Postgres

_LOAD: Final = """
    SELECT token, sign, generated_at, expires_at FROM campotech.afip_tickets
    WHERE cuit = %s AND service = %s
"""
_SAVE: Final = """
    INSERT INTO campotech.afip_tickets (cuit, service, token, sign, generated_at, expires_at)
    VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (cuit, service) DO UPDATE SET token = excluded.token, sign = excluded.sign,
        generated_at = excluded.generated_at, expires_at = excluded.expires_at
"""
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_CERTIFICATE: Final = """
    SELECT owner.id, one.certificate, one.sealed_key
    FROM campotech.organizations owner
    JOIN campotech.certificates one ON one.organization_id = owner.id
    WHERE owner.cuit = %s
"""


class PostgresTickets:
    """Tickets in the database, where all workers find them."""

    def __init__(self, pg: Postgres) -> None:
        self._pg = pg

    async def load(self, cuit: str, service: str) -> Ticket | None:
        """The ticket that was saved last."""
        async with self._pg.transaction("ticket") as connection:
            row = await (await connection.execute(_LOAD, [cuit, service])).fetchone()
        if row is None:
            return None
        token, sign, generated_at, expires_at = row
        return Ticket(
            cuit=cuit,
            service=service,
            token=token,
            sign=sign,
            generated_at=generated_at,
            expires_at=expires_at,
        )

    async def save(self, ticket: Ticket) -> None:
        """Keep it in place of the one before."""
        times = [ticket.generated_at, ticket.expires_at]
        given = [ticket.cuit, ticket.service, ticket.token, ticket.sign, *times]
        async with self._pg.transaction("ticket") as connection:
            await connection.execute(_SAVE, given)

    @asynccontextmanager
    async def lock(self, cuit: str, service: str) -> AsyncGenerator[None]:
        """Held by one asker at a time, of all processes; gone with the process that holds it."""
        async with self._pg.transaction("ticket") as connection:
            name = f"ticket {service} {cuit}"
            await connection.execute(_LOCK, [name])
            yield


class Certificates:
    """Certificates of organisations, whose keys only this system can read.

    An organisation without one has delegated its invoices to ours, most likely.
    """

    def __init__(self, pg: Postgres, vault: Vault, own: Credentials | None) -> None:
        self._pg, self._vault, self._own = pg, vault, own

    async def find(self, cuit: str) -> Credentials:
        """Those to sign with for a CUIT."""
        async with self._pg.transaction("certificate") as connection:
            row = await (await connection.execute(_CERTIFICATE, [cuit])).fetchone()
        if row is None:
            return self._delegate()
        owner, certificate, sealed = row
        key = self._vault.open(owner, bytes(sealed))
        return Credentials(certificate_pem=certificate.encode(), key_pem=key)

    def _delegate(self) -> Credentials:
        if self._own is None:
            raise LoginRefused(
                "the organisation must upload its certificate of AFIP", operation="loginCms"
            )
        return self._own
