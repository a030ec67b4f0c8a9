"""An installation is prepared: tables, organisations, their users and customers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from uuid import uuid4

import pytest
from apps.campotech.security import digest_of
from apps.campotech.setup import Organization
from apps.campotech.system import System

from apps.campotech import setup
from tests._support.postgres import Cluster
from tests.apps.campotech.business import next_cuit


async def test_an_organisation_is_known_by_the_token_that_was_told(system: System) -> None:
    cuit = next_cuit()
    made = await setup.admit(system, Organization(name="Rossi", cuit=cuit, phone_number_id="17"))
    async with system.pg.transaction() as connection:
        stored = await connection.execute(
            "SELECT id, cuit, phone_number_id FROM campotech.organizations WHERE token_digest = %s",
            [digest_of(made.token)],
        )
        assert await stored.fetchall() == [(made.id, cuit, "17")]


async def test_a_cuit_and_a_number_belong_to_one_organisation(system: System) -> None:
    first = Organization(name="Rossi", cuit=next_cuit(), phone_number_id="17")
    await setup.admit(system, first)
    with pytest.raises(ValueError, match="cuit must be that of no other organisation"):
        await setup.admit(system, dataclasses.replace(first, phone_number_id="18"))
    with pytest.raises(ValueError, match="phone_number_id must be that of no other"):
        await setup.admit(system, dataclasses.replace(first, cuit=next_cuit()))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": " "}, "name must have a letter"),
        ({"cuit": "30-70000002-3"}, "check digit"),
        ({"point_of_sale": 0}, "point_of_sale must be 1 to 99998, got 0"),
    ],
)
def test_an_organisation_that_the_tax_office_would_refuse_is_refused(
    wrong: dict[str, object], why: str
) -> None:
    right = Organization(name="Rossi", cuit="30-70000002-4")
    assert right.cuit == "30700000024"
    with pytest.raises(ValueError, match=why):
        dataclasses.replace(right, **wrong)


async def test_people_belong_to_an_organisation_that_is_known(system: System) -> None:
    made = await setup.admit(system, Organization(name="Rossi", cuit=next_cuit()))
    user = await setup.add_user(system, made.id, "Luis", "technician", phone="+5491155550102")
    customer = await setup.add_customer(system, made.id, "Ana", email="ana@campotech.example")
    async with system.pg.transaction() as connection:
        people = await connection.execute(
            "SELECT id, name, organization_id FROM campotech.users UNION ALL "
            "SELECT id, name, organization_id FROM campotech.customers"
        )
        found = await people.fetchall()
    assert found == [(user, "Luis", made.id), (customer, "Ana", made.id)]
    with pytest.raises(ValueError, match="the organisation must be known"):
        await setup.add_customer(system, uuid4(), "Ana")
    with pytest.raises(ValueError, match="role must be one of owner"):
        await setup.add_user(system, made.id, "Luis", "boss")


async def test_a_database_without_tables_is_refused_until_it_is_migrated(
    system: System, cluster: Cluster, tmp_path: Path
) -> None:
    name = f"bare_{uuid4().hex[:12]}"
    given = dataclasses.replace(
        system.settings, database_url=cluster.create(name), directory=tmp_path / "bare"
    )
    try:
        async with System(given) as bare:
            with pytest.raises(ValueError, match=r"python -m apps\.campotech migrate"):
                await setup.require_tables(bare)
            await setup.migrate_all(bare)
            await setup.require_tables(bare)
    finally:
        cluster.drop(name)
