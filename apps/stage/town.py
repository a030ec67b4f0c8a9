"""The businesses of a stage: organisations with their customers, known to the tax office, to
WhatsApp and to us."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from apps.campotech.security import digest_of, new_token
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

PLATFORM: Final = "30500010912"
"""The CUIT of CampoTech itself, to which all businesses have delegated."""
_TRADES: Final = ("Plomería", "Electricidad", "Gas", "Cerrajería", "Climatización", "Pinturería")
_FAMILIES: Final = ("Rossi", "Pérez", "Gómez", "Fernández", "Bianchi", "Sosa", "Molina", "Quiroga")
_NAMES: Final = ("Ana", "Bruno", "Carla", "Diego", "Elena", "Fabián", "Gisela", "Hugo")
_WEIGHTS: Final = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_CUSTOMERS: Final = 3
_ORGANIZATION: Final = """
    INSERT INTO campotech.organizations (id, name, cuit, token_digest, phone_number_id)
    VALUES (%s, %s, %s, %s, %s)
"""
_USER: Final = """
    INSERT INTO campotech.users (id, organization_id, name, role, email, phone)
    VALUES (%s, %s, %s, 'owner', %s, %s)
"""
_CUSTOMER: Final = """
    INSERT INTO campotech.customers (id, organization_id, name, phone) VALUES (%s, %s, %s, %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """Somebody who has things repaired."""

    id: UUID
    name: str
    phone: str

    @property
    def digits(self) -> str:
        """The number as WhatsApp writes it."""
        return self.phone.removeprefix("+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Business:
    """One organisation."""

    number: int
    id: UUID
    name: str
    cuit: str
    token: str = field(repr=False)
    phone_number_id: str
    owner: UUID
    customers: tuple[Customer, ...]

    @property
    def tenant(self) -> str:
        """What its jobs are called by."""
        return str(self.id)

    @property
    def headers(self) -> dict[str, str]:
        """What its programs show."""
        return {"authorization": f"Bearer {self.token}"}


def invent(number: int, chance: random.Random) -> Business:
    """A business that nobody knows yet; the same for the same number and seed."""

    def new_id() -> UUID:
        return UUID(int=chance.getrandbits(128), version=4)

    def person(index: int) -> Customer:
        name = f"{chance.choice(_NAMES)} {chance.choice(_FAMILIES)}"
        return Customer(id=new_id(), name=name, phone=f"+549115{number:05}{index:02}")

    return Business(
        number=number,
        id=new_id(),
        name=f"{chance.choice(_TRADES)} {chance.choice(_FAMILIES)} {number}",
        cuit=cuit_of(number),
        token=new_token(),
        phone_number_id=f"1000{number:06}",
        owner=new_id(),
        customers=tuple(person(index) for index in range(_CUSTOMERS)),
    )


async def settle(system: System, sandbox: Sandbox, businesses: list[Business]) -> None:
    """Let the tax office, WhatsApp and the database know them."""
    for one in businesses:
        sandbox.afip.registry.register(int(one.cuit), (1,))
        sandbox.afip.delegate(one.cuit, PLATFORM)
        sandbox.whatsapp.numbers.add(one.phone_number_id)
    async with system.pg.transaction("town") as connection, connection.cursor() as cursor:
        await cursor.executemany(_ORGANIZATION, [_organization(one) for one in businesses])
        await cursor.executemany(_USER, [_owner(one) for one in businesses])
        people = [[p.id, one.id, p.name, p.phone] for one in businesses for p in one.customers]
        await cursor.executemany(_CUSTOMER, people)


def _organization(one: Business) -> list[Any]:
    return [one.id, one.name, one.cuit, digest_of(one.token), one.phone_number_id]


def _owner(one: Business) -> list[Any]:
    mail, phone = f"owner{one.number}@campotech.example", f"+549114{one.number:07}"
    return [one.owner, one.id, f"Owner {one.number}", mail, phone]


def cuit_of(number: int) -> str:
    """A CUIT for each number, with its check digit; those that would need a 10 are passed over."""
    body = 70_000_000 + number * 2
    for each in (body, body + 1):
        digits = f"30{each:08}"
        total = sum(int(one) * weight for one, weight in zip(digits, _WEIGHTS, strict=True))
        if -total % 11 != 10:
            return f"{digits}{-total % 11}"
    raise ValueError(f"number must have a CUIT, got {number}")
