"""Tickets are shared, reused until shortly before they expire, and asked for by one at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from apps.providers.afip import (
    Client,
    ClockSkewed,
    Credentials,
    LoginRefused,
    MemoryTicketStore,
    NotAuthorized,
    Retryable,
    Settings,
    Ticket,
    TicketHeld,
    TicketStore,
)
from apps.providers.afip.wsaa import access_request
from apps.sandbox.afip import Afip
from apps.sandbox.fault import Kind

from apps.sandbox import Fault
from tests.apps.afip.speech import CUIT, NOON, OTHER, Clock

KIND = 6


def logins(afip: Afip, outcome: str | None = None) -> int:
    return len(afip.ledger.of("loginCms", outcome))


async def test_a_ticket_is_reused_until_shortly_before_it_expires(
    client: Client, afip: Afip, clock: Clock
) -> None:
    for _ in range(3):
        await client.last_authorized(CUIT, 1, KIND)
    clock.advance(hours=11, minutes=54, seconds=59)
    await client.last_authorized(CUIT, 1, KIND)
    assert logins(afip) == 1
    clock.advance(seconds=1)
    await client.last_authorized(CUIT, 1, KIND)
    assert logins(afip, "ok") == 2


async def test_many_callers_ask_for_one_ticket(client: Client, afip: Afip) -> None:
    afip.faults.add(Fault(kind="slow", operation="loginCms", seconds=0.05))
    await asyncio.gather(*(client.last_authorized(CUIT, 1, KIND) for _ in range(20)))
    assert logins(afip) == 1


async def test_clients_share_a_store(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock
) -> None:
    store: TicketStore = MemoryTicketStore()
    clients = [Client(settings, http, tickets=store, now=clock) for _ in range(3)]
    await asyncio.gather(*(one.last_authorized(CUIT, 1, KIND) for one in clients))
    assert logins(afip) == 1
    ticket = await store.load(CUIT, "wsfe")
    assert ticket is not None
    assert (ticket.cuit, ticket.service) == (CUIT, "wsfe")
    assert (ticket.generated_at, ticket.expires_at) == (NOON, NOON + timedelta(hours=12))


class CountedStore(MemoryTicketStore):
    loads = 0

    async def load(self, cuit: str, service: str) -> Ticket | None:
        self.loads += 1
        return await super().load(cuit, service)


async def test_the_store_is_not_asked_again_for_a_ticket_that_is_good(
    settings: Settings, http: httpx.AsyncClient, clock: Clock
) -> None:
    store = CountedStore()
    await Client(settings, http, tickets=store, now=clock).last_authorized(CUIT, 1, KIND)
    client, before = Client(settings, http, tickets=store, now=clock), store.loads
    for _ in range(3):
        await client.last_authorized(CUIT, 1, KIND)
    assert store.loads == before + 1


async def test_a_ticket_that_others_have_renewed_meanwhile_is_taken_from_the_store(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock
) -> None:
    store = MemoryTicketStore()
    first, second = (Client(settings, http, tickets=store, now=clock) for _ in range(2))
    await first.last_authorized(CUIT, 1, KIND)
    await first.last_authorized(CUIT, 1, KIND)  # known to the first now
    clock.advance(hours=12)
    await second.last_authorized(CUIT, 1, KIND)
    assert await first.last_authorized(CUIT, 1, KIND) == 0
    assert logins(afip, "ok") == 2


async def test_a_lost_ticket_is_held_until_the_guard_window_is_over(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock
) -> None:
    settings = replace(settings, guard_window=timedelta(minutes=10))
    await Client(settings, http, now=clock).last_authorized(CUIT, 1, KIND)
    forgetful = Client(settings, http, now=clock)
    with pytest.raises(TicketHeld) as caught:
        await forgetful.last_authorized(CUIT, 1, KIND)
    assert (caught.value.retry_after, caught.value.operation) == (600, "loginCms")
    clock.advance(minutes=4)
    with pytest.raises(TicketHeld) as again:
        await forgetful.last_authorized(CUIT, 1, KIND)
    assert again.value.retry_after == 360
    assert logins(afip) == 2  # the office was not asked a third time
    clock.advance(minutes=6)
    assert await forgetful.last_authorized(CUIT, 1, KIND) == 0


async def test_a_ticket_that_somebody_else_saves_ends_the_wait(
    settings: Settings, http: httpx.AsyncClient, clock: Clock
) -> None:
    theirs, ours = MemoryTicketStore(), MemoryTicketStore()
    await Client(settings, http, tickets=theirs, now=clock).last_authorized(CUIT, 1, KIND)
    client = Client(settings, http, tickets=ours, now=clock)
    with pytest.raises(TicketHeld):
        await client.last_authorized(CUIT, 1, KIND)
    found = await theirs.load(CUIT, "wsfe")
    assert found is not None
    await ours.save(found)
    assert await client.last_authorized(CUIT, 1, KIND) == 0


async def test_a_ticket_that_is_not_accepted_is_replaced_once(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock
) -> None:
    store = MemoryTicketStore()
    old = Ticket(
        cuit=CUIT,
        service="wsfe",
        token="b2xk",
        sign="b2xk",
        generated_at=NOON,
        expires_at=NOON + timedelta(hours=12),
    )
    await store.save(old)
    client = Client(settings, http, tickets=store, now=clock)
    await asyncio.gather(*(client.last_authorized(CUIT, 1, KIND) for _ in range(5)))
    assert logins(afip) == 1
    assert len(afip.ledger.of("FECompUltimoAutorizado", "ok")) == 5
    assert await store.load(CUIT, "wsfe") != old


async def test_a_new_ticket_that_is_not_accepted_is_an_error(client: Client, afip: Afip) -> None:
    afip.registry.register(int(OTHER), (1,))
    with pytest.raises(NotAuthorized) as caught:
        await client.last_authorized(OTHER, 1, KIND)
    assert caught.value.codes == (600,)
    assert "No apareció CUIT" in caught.value.remarks[0].message
    assert "apareció" not in str(caught.value)
    assert (logins(afip), len(afip.ledger.of("FECompUltimoAutorizado"))) == (1, 1)


async def test_a_new_delegation_is_known_with_a_new_ticket(
    client: Client, afip: Afip, clock: Clock
) -> None:
    await client.last_authorized(CUIT, 1, KIND)
    afip.registry.register(int(OTHER), (1,))
    afip.delegate(OTHER, to=CUIT)
    with pytest.raises(TicketHeld):
        await client.last_authorized(OTHER, 1, KIND)
    assert await client.last_authorized(CUIT, 1, KIND) == 0  # the ticket is still good for this
    clock.advance(minutes=10)
    assert await client.last_authorized(OTHER, 1, KIND) == 0
    assert logins(afip, "ok") == 2


@pytest.mark.parametrize("code", ["wsaa.unavailable", "wsn.unavailable", "wsaa.internalError"])
async def test_a_login_that_is_down_is_left_alone_for_a_minute(
    client: Client, afip: Afip, clock: Clock, code: str
) -> None:
    afip.break_down("loginCms", code)
    for wanted in (60, 30):
        with pytest.raises(Retryable, match="out of order") as caught:
            await client.last_authorized(CUIT, 1, KIND)
        assert caught.value.retry_after == wanted
        clock.advance(seconds=30)
    assert logins(afip) == 1
    assert await client.last_authorized(CUIT, 1, KIND) == 0


@pytest.mark.parametrize(
    "code", ["coe.notAuthorized", "cms.cert.expired", "xml.bad", "wsn.notFound", "cms.new.reason"]
)
async def test_a_refusal_of_the_login_is_permanent(
    client: Client, afip: Afip, clock: Clock, code: str
) -> None:
    afip.break_down("loginCms", code)
    for _ in range(2):
        with pytest.raises(LoginRefused) as caught:
            await client.last_authorized(CUIT, 1, KIND)
        assert caught.value.code == code
        assert code in str(caught.value)
    assert logins(afip) == 1
    clock.advance(minutes=1)
    assert await client.last_authorized(CUIT, 1, KIND) == 0


async def test_another_certificate_is_tried_at_once(
    settings: Settings, http: httpx.AsyncClient, afip: Afip, clock: Clock, credentials: Credentials
) -> None:
    key, certificate = afip.issue_certificate(CUIT, until=NOON - timedelta(seconds=1))
    in_use = [Credentials(certificate_pem=certificate, key_pem=key)]

    async def find(_cuit: str) -> Credentials:
        return in_use[-1]

    client = Client(settings, http, credentials=find, now=clock)
    with pytest.raises(LoginRefused, match=r"cms\.cert\.expired"):
        await client.last_authorized(CUIT, 1, KIND)
    in_use.append(credentials)
    assert await client.last_authorized(CUIT, 1, KIND) == 0


async def test_a_clock_that_is_wrong_is_told(
    settings: Settings, http: httpx.AsyncClient, afip: Afip
) -> None:
    fast = Clock()
    fast.advance(minutes=10, seconds=1)
    with pytest.raises(ClockSkewed, match=r"xml\.generationTime\.invalid") as caught:
        await Client(settings, http, now=fast).last_authorized(CUIT, 1, KIND)
    assert caught.value.retry_after == 60
    slow = Clock()
    slow.advance(minutes=-11)
    with pytest.raises(ClockSkewed, match=r"xml\.expirationTime\.expired"):
        await Client(settings, http, now=slow).last_authorized(CUIT, 1, KIND)


async def test_a_clock_may_be_some_minutes_off(
    settings: Settings, http: httpx.AsyncClient, afip: Afip
) -> None:
    off = Clock()
    off.advance(minutes=9)
    assert await Client(settings, http, now=off).last_authorized(CUIT, 1, KIND) == 0


@pytest.mark.parametrize("kind", ["cut", "lost", "status"])
async def test_a_login_without_an_answer_may_be_tried_again(
    client: Client, afip: Afip, clock: Clock, kind: Kind
) -> None:
    afip.faults.add(Fault(kind=kind, operation="loginCms", times=1))
    with pytest.raises(Retryable) as caught:
        await client.last_authorized(CUIT, 1, KIND)
    assert caught.value.retry_after is None
    if kind == "lost":  # the ticket exists, and nobody has it
        with pytest.raises(TicketHeld):
            await client.last_authorized(CUIT, 1, KIND)
        clock.advance(minutes=10)
    assert await client.last_authorized(CUIT, 1, KIND) == 0


async def test_a_ticket_that_is_made_and_not_given_is_held(
    client: Client, afip: Afip, clock: Clock
) -> None:
    afip.break_down("loginCms", "wsaa.internalError", is_done=True)
    with pytest.raises(Retryable, match=r"wsaa\.internalError"):
        await client.last_authorized(CUIT, 1, KIND)
    clock.advance(minutes=1)
    with pytest.raises(TicketHeld):
        await client.last_authorized(CUIT, 1, KIND)


async def test_a_wrong_ticket_is_found_out_when_it_is_used(client: Client, afip: Afip) -> None:
    afip.faults.add(Fault(kind="wrong", operation="loginCms", times=1))
    with pytest.raises(NotAuthorized):
        await client.last_authorized(CUIT, 1, KIND)


def test_a_request_for_access_is_made_out_for_the_past() -> None:
    content = access_request("wsfe", NOON).decode()
    assert "<generationTime>2026-11-17T11:50:00-03:00</generationTime>" in content
    assert "<expirationTime>2026-11-17T12:10:00-03:00</expirationTime>" in content
    assert "<source>" not in content
