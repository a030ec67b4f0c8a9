"""Who is told: users of the application, and customers of an organisation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg.rows import class_row

from apps.campotech.messaging.notification_log import Channel
from faena.pg import Connection

_ARGENTINE: Final = re.compile(r"\+54[0-9]{10,11}")
_USER: Final = """
    SELECT id, organization_id AS organization, name, email, phone, push_token
    FROM campotech.users WHERE id = %s
"""
_CUSTOMER: Final = """
    SELECT id, organization_id AS organization, name, email, phone
    FROM campotech.customers WHERE organization_id = %s AND id = %s
"""
_FORGET: Final = "UPDATE campotech.users SET push_token = NULL WHERE id = %s AND push_token = %s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody, and how to reach them."""

    id: UUID
    organization: UUID
    name: str
    email: str | None = None
    phone: str | None = None
    push_token: str | None = None


def channel_of(number: str | None, phone: str | None, email: str | None) -> Channel | None:
    """The best way to reach a customer; `number` is the organisation's at WhatsApp."""
    if number is not None and _ARGENTINE.fullmatch(phone or ""):
        return "whatsapp"
    if email is not None:
        return "email"
    return None if phone is None else "sms"


async def find_user(connection: Connection, user: str) -> Person | None:
    """A user by id."""
    try:
        named = UUID(user)
    except ValueError:
        return None
    async with connection.cursor(row_factory=class_row(Person)) as cursor:
        await cursor.execute(_USER, [named])
        return await cursor.fetchone()


async def find_customer(
    connection: Connection, organization: UUID, customer: UUID
) -> Person | None:
    """A customer of an organisation."""
    async with connection.cursor(row_factory=class_row(Person)) as cursor:
        await cursor.execute(_CUSTOMER, [organization, customer])
        return await cursor.fetchone()


async def forget_device(connection: Connection, user: Person) -> None:
    """The app is no longer on the device, unless there is another one by now."""
    await connection.execute(_FORGET, [user.id, user.push_token])
