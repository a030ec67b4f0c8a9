"""What an installation needs before programs call it: tables, organisations, people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid4

from psycopg.errors import UniqueViolation

from apps.campotech.database import migrate
from apps.campotech.security import digest_of, new_token
from apps.campotech.system import System
from apps.providers.afip import parse_cuit

ROLES: Final = ("owner", "dispatcher", "technician")
_TABLES: Final = """
    SELECT name FROM unnest(ARRAY['faena.tasks', 'campotech.organizations']) AS name
    WHERE to_regclass(name) IS NULL
"""
_ORGANIZATION: Final = """
    INSERT INTO campotech.organizations
        (id, name, cuit, token_digest, phone_number_id, vat_condition, point_of_sale)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_USER: Final = """
    INSERT INTO campotech.users (id, organization_id, name, role, email, phone)
    SELECT %s, id, %s, %s, %s, %s FROM campotech.organizations WHERE id = %s
"""
_CUSTOMER: Final = """
    INSERT INTO campotech.customers (id, organization_id, name, phone, email)
    SELECT %s, id, %s, %s, %s FROM campotech.organizations WHERE id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A business that begins to work with CampoTech."""

    name: str
    cuit: str
    phone_number_id: str | None = None
    """Its number at WhatsApp; None: it neither writes nor is written to."""
    vat_condition: int = 1
    """1: registered, issues A and B; else: issues C."""
    point_of_sale: int = 1
    """The one that it has opened at AFIP for web services."""

    def __post_init__(self) -> None:
        """Refuse what the tax office would refuse with each invoice."""
        _check_name(self.name)
        object.__setattr__(self, "cuit", parse_cuit(self.cuit))
        if not 1 <= self.point_of_sale <= 99_998:
            raise ValueError(f"point_of_sale must be 1 to 99998, got {self.point_of_sale}")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A new organisation."""

    id: UUID
    token: str = field(repr=False)
    """What its programs show; it is stored nowhere, so it is told once."""


async def migrate_all(system: System) -> None:
    """Bring the database to the newest release: Faena's schema, and CampoTech's."""
    await migrate.upgrade(system.pg)


async def require_tables(system: System) -> None:
    """ValueError that says what to do, if the database was never migrated."""
    async with system.pg.transaction() as connection:
        found = await connection.execute(_TABLES)
        missing = await found.fetchone()
    if missing is not None:
        raise ValueError(
            f"the table {missing[0]} must be there; run `python -m apps.campotech migrate` first"
        )


async def admit(system: System, organization: Organization) -> Admitted:
    """Store an organisation; ValueError if its CUIT or number belongs to another one."""
    made = Admitted(uuid4(), new_token())
    given = organization
    try:
        async with system.pg.transaction() as connection:
            await connection.execute(
                _ORGANIZATION,
                [
                    made.id,
                    given.name,
                    given.cuit,
                    digest_of(made.token),
                    given.phone_number_id,
                    given.vat_condition,
                    given.point_of_sale,
                ],
            )
    except UniqueViolation as taken:
        name = "phone_number_id" if "phone" in (taken.diag.constraint_name or "") else "cuit"
        value = getattr(given, name)
        raise ValueError(f"{name} must be that of no other organisation, got {value}") from None
    return made


async def add_user(
    system: System,
    organization: UUID,
    name: str,
    role: str,
    *,
    email: str | None = None,
    phone: str | None = None,
) -> UUID:
    """Store somebody who works there."""
    _check_name(name)
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    user = uuid4()
    await _add(system, organization, _USER, [user, name, role, email, phone, organization])
    return user


async def add_customer(
    system: System,
    organization: UUID,
    name: str,
    *,
    phone: str | None = None,
    email: str | None = None,
) -> UUID:
    """Store a customer of it, a final consumer."""
    _check_name(name)
    customer = uuid4()
    await _add(system, organization, _CUSTOMER, [customer, name, phone, email, organization])
    return customer


async def _add(system: System, organization: UUID, query: str, values: list[object]) -> None:
    async with system.pg.transaction() as connection:
        stored = await connection.execute(query.encode(), values)
    if not stored.rowcount:
        raise ValueError(f"the organisation must be known, got {organization}")


def _check_name(name: str) -> None:
    if not name.strip():
        raise ValueError(f"name must have a letter, got {name!r}")
