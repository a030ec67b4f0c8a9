"""A conversation waits for a person until somebody says that one has answered."""

from __future__ import annotations

from uuid import UUID, uuid4

import httpx
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from tests.apps.campotech.business import Business

WAITS = "SELECT needs_person FROM campotech.conversations WHERE id = %s"


async def waiting(business: Business) -> UUID:
    ((made,),) = await business.rows(
        "INSERT INTO campotech.conversations (id, organization_id, phone, needs_person) "
        "VALUES (%s, %s, %s, true) RETURNING id",
        uuid4(),
        business.id,
        business.phone,
    )
    return made


async def test_somebody_who_has_answered_lets_the_model_answer_again(
    api: httpx.AsyncClient, business: Business
) -> None:
    one = await waiting(business)
    said = [(await api.post(f"/api/v1/conversations/{one}/answered")).json() for _ in range(2)]
    assert [each["status"] for each in said] == ["answered", "known"]
    assert await business.rows(WAITS, one) == [(False,)]


async def test_a_conversation_of_another_organisation_is_unknown(
    api: httpx.AsyncClient, system: System, sandbox: Sandbox
) -> None:
    other = await Business.make(system, sandbox, number="2")
    theirs = await waiting(other)
    answers = [await api.post(f"/api/v1/conversations/{one}/answered") for one in (theirs, uuid4())]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert await other.rows(WAITS, theirs) == [(True,)]
