"""Customers enough: WhatsApp takes a message to the same number every six seconds only."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from apps.load.scene import Scene

_FIRST: Final = 9_000_000
"""The numbers of Buenos Aires that nobody else on a stage has begin here."""
_MAKE: Final = """
    INSERT INTO campotech.customers (id, organization_id, name, phone)
    SELECT gen_random_uuid(), owner.id, 'Cliente ' || n,
        '+54911' || 10000000 + %(first)s + (owner.place - 1) * %(each)s + n
    FROM generate_series(0, %(each)s - 1) n
    CROSS JOIN unnest(%(owners)s::uuid[]) WITH ORDINALITY AS owner (id, place)
    RETURNING id, organization_id
"""
_KNOWN: Final = "SELECT count(*) FROM campotech.customers"


async def make_customers(scene: Scene, each: int) -> list[list[UUID]]:
    """So many new ones for each business of the stage."""
    businesses = scene.stage.businesses
    ((known,),) = await scene.stage.rows(_KNOWN)
    given = {"first": _FIRST + known, "each": each, "owners": [one.id for one in businesses]}
    made: dict[UUID, list[UUID]] = {one.id: [] for one in businesses}
    async with scene.stage.system.pg.transaction("customers") as connection:
        for customer, owner in await (await connection.execute(_MAKE, given)).fetchall():
            made[owner].append(customer)
    return [made[one.id] for one in businesses]
