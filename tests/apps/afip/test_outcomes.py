"""What the client makes of failures: done, not done, or unknown, and how that is found out."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from apps.providers.afip import (
    AfipError,
    Authorized,
    Client,
    Different,
    MemoryTicketStore,
    NotIssued,
    NumberTaken,
    Permanent,
    RateLimited,
    Rejected,
    Remark,
    Retryable,
    Settings,
    TicketHeld,
    UnknownOutcome,
    VatLine,
    VatRate,
    Voucher,
)
from apps.sandbox.afip import Afip
from apps.sandbox.fault import Kind

from apps.sandbox import Fault
from tests.apps.afip.speech import CUIT, Clock

REQUEST = "FECAESolicitar"
CONSULT = "FECompConsultar"
LAST = "FECompUltimoAutorizado"


@asynccontextmanager
async def silence() -> AsyncGenerator[str]:
    """A server that takes everything and answers nothing."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


def play(afip: Afip, kind: Kind, operation: str = REQUEST, **options: float) -> None:
    afip.faults.add(Fault(kind=kind, operation=operation, times=1, **options))  # pyright: ignore[reportArgumentType]


async def test_a_lost_answer_is_recovered_with_its_cae(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "lost")
    with pytest.raises(UnknownOutcome) as caught:
        await client.request_cae(CUIT, voucher)
    assert caught.value.operation == REQUEST
    recovered = await client.recover(CUIT, voucher)
    (record,) = afip.register.records
    assert recovered == Authorized(cae=record.cae, expires_on=record.expires_on, number=1)
    (entry,) = afip.ledger.of(REQUEST, "ok")
    assert (entry.subject, entry.detail["is_lost"]) == (f"{CUIT}/1/6/1", True)


async def test_a_request_that_never_arrived_can_be_sent_again(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "cut")
    with pytest.raises(UnknownOutcome):
        await client.request_cae(CUIT, voucher)
    recovered = await client.recover(CUIT, voucher)
    assert recovered == NotIssued(number=1, last_number=0)
    assert recovered.is_next
    await client.request_cae(CUIT, voucher)
    assert [one.subject for one in afip.ledger.of(REQUEST)] == [f"{CUIT}/1/6/1"] * 2
    assert len(afip.register.records) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
async def test_a_status_without_a_fault_leaves_a_cae_unknown(
    client: Client, afip: Afip, voucher: Voucher, status: int
) -> None:
    play(afip, "status", status=status)
    with pytest.raises(UnknownOutcome, match=f"status {status}"):
        await client.request_cae(CUIT, voucher)


@pytest.mark.parametrize("code", [500, 501, 502])
@pytest.mark.parametrize("is_done", [True, False])
async def test_trouble_inside_of_the_office_leaves_a_cae_unknown(
    client: Client, afip: Afip, voucher: Voucher, code: int, is_done: bool
) -> None:
    afip.break_down(REQUEST, code, is_done=is_done)
    with pytest.raises(UnknownOutcome, match=f"{code}"):
        await client.request_cae(CUIT, voucher)
    assert isinstance(await client.recover(CUIT, voucher), Authorized if is_done else NotIssued)


async def test_a_request_that_takes_too_long_leaves_a_cae_unknown(
    settings: Settings, http: httpx.AsyncClient, clock: Clock, voucher: Voucher
) -> None:
    store = MemoryTicketStore()
    await Client(settings, http, tickets=store, now=clock).last_authorized(CUIT, 1, voucher.kind)
    async with silence() as url:
        hasty = replace(settings, wsfe_url=url, timeout=timedelta(milliseconds=200))
        client = Client(hasty, http, tickets=store, now=clock)
        with pytest.raises(UnknownOutcome, match=r"no answer came within 0\.2 s"):
            await client.request_cae(CUIT, voucher)
        with pytest.raises(Retryable, match=r"no answer came within 0\.2 s"):
            await client.last_authorized(CUIT, 1, voucher.kind)


async def test_a_server_that_cannot_be_reached_did_nothing(
    settings: Settings, http: httpx.AsyncClient, clock: Clock, voucher: Voucher
) -> None:
    store = MemoryTicketStore()
    await Client(settings, http, tickets=store, now=clock).last_authorized(CUIT, 1, voucher.kind)
    nowhere = replace(settings, wsfe_url="http://127.0.0.1:1/")
    with pytest.raises(Retryable, match="no connection could be made"):
        await Client(nowhere, http, tickets=store, now=clock).request_cae(CUIT, voucher)


async def test_a_cae_that_cannot_be_one_is_not_believed(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "wrong")
    with pytest.raises(UnknownOutcome, match="CAE has not fourteen digits"):
        await client.request_cae(CUIT, voucher)
    recovered = await client.recover(CUIT, voucher)
    assert isinstance(recovered, Authorized)
    assert recovered.cae == afip.register.records[0].cae


async def test_a_cae_of_no_voucher_differs_from_the_record(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    afip.wrong_cae = "other"
    play(afip, "wrong")
    answer = await client.request_cae(CUIT, voucher)
    issued = await client.consult(CUIT, 1, voucher.kind, 1)
    assert issued is not None
    assert issued.code == afip.register.records[0].cae != answer.cae


async def test_a_record_that_does_not_add_up_is_not_believed(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    await client.request_cae(CUIT, voucher)
    play(afip, "wrong", CONSULT)
    with pytest.raises(Retryable, match="not the sum of its parts"):
        await client.recover(CUIT, voucher)
    assert isinstance(await client.recover(CUIT, voucher), Authorized)


async def test_a_number_told_too_high_is_refused_and_recovered(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "wrong", LAST)
    number = await client.last_authorized(CUIT, 1, voucher.kind) + 1
    too_high = replace(voucher, number=number)
    with pytest.raises(NumberTaken):
        await client.request_cae(CUIT, too_high)
    recovered = await client.recover(CUIT, too_high)
    assert recovered == NotIssued(number=2, last_number=0)
    assert not recovered.is_next


async def test_a_second_request_for_the_same_voucher_may_be_ones_own(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    first = await client.request_cae(CUIT, voucher)
    with pytest.raises(NumberTaken) as caught:
        await client.request_cae(CUIT, voucher)
    assert isinstance(caught.value, Rejected)
    assert caught.value.codes == (10016,)
    assert await client.recover(CUIT, voucher) == first


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"net_cents": 20_000, "vat": (VatLine.of(VatRate.TWENTY_ONE, 20_000),)}, "total"),
        ({"exempt_cents": 10_000, "net_cents": 0, "vat": ()}, "exempt"),
    ],
)
async def test_a_number_of_another_voucher_is_told(
    client: Client, voucher: Voucher, changes: dict[str, object], wanted: str
) -> None:
    await client.request_cae(CUIT, replace(voucher, **changes))  # pyright: ignore[reportArgumentType]
    recovered = await client.recover(CUIT, voucher)
    assert isinstance(recovered, Different)
    assert wanted in recovered.differences
    assert recovered.issued.first_number == 1


async def test_another_day_or_receiver_is_another_voucher(client: Client, voucher: Voucher) -> None:
    await client.request_cae(CUIT, voucher)
    tomorrow = replace(voucher, date=voucher.date + timedelta(days=1))
    recovered = await client.recover(CUIT, tomorrow)
    assert isinstance(recovered, Different)
    assert recovered.differences == ("date",)


async def test_a_voucher_issued_between_two_questions_is_found(
    settings: Settings, afip: Afip, clock: Clock, voucher: Voucher
) -> None:
    """The first request arrives late: after the question for the voucher, before that for the last
    number."""
    answers: list[Authorized] = []

    async def arrive(request: httpx.Request) -> None:
        if LAST in request.headers["soapaction"] and not answers:
            answers.append(await client.request_cae(CUIT, voucher))

    hooks = {"request": [arrive]}
    async with httpx.AsyncClient(trust_env=False, event_hooks=hooks) as http:
        client = Client(settings, http, now=clock)
        assert [await client.recover(CUIT, voucher)] == answers
    assert [one.outcome for one in afip.ledger.of(CONSULT)] == ["refused", "ok"]


async def test_an_office_that_contradicts_itself_is_asked_again_later(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    """The last number says that there is a voucher, and there is none."""
    play(afip, "wrong", LAST)
    with pytest.raises(Retryable, match="contradicts itself"):
        await client.recover(CUIT, voucher)
    assert isinstance(await client.recover(CUIT, voucher), NotIssued)


@pytest.mark.parametrize(
    ("kind", "options"), [("cut", {}), ("lost", {}), ("status", {"status": 503})]
)
async def test_questions_may_be_asked_again_whatever_happened(
    client: Client, afip: Afip, voucher: Voucher, kind: Kind, options: dict[str, int]
) -> None:
    for operation, asking in (
        (LAST, lambda: client.last_authorized(CUIT, 1, voucher.kind)),
        (CONSULT, lambda: client.consult(CUIT, 1, voucher.kind, 1)),
        ("FEDummy", client.dummy),
    ):
        play(afip, kind, operation, **options)
        with pytest.raises(Retryable, match=f"{operation} failed"):
            await asking()
        await asking()


@pytest.mark.parametrize("operation", [LAST, CONSULT])
async def test_trouble_inside_of_the_office_lets_questions_be_asked_again(
    client: Client, afip: Afip, voucher: Voucher, operation: str
) -> None:
    afip.break_down(operation, 501, times=2)
    for _ in range(2):
        with pytest.raises(Retryable, match="501: internal error of the database"):
            await client.recover(CUIT, voucher)
    assert await client.recover(CUIT, voucher) == NotIssued(number=1, last_number=0)


async def test_a_wait_that_is_asked_for_is_told(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "status", status=429, seconds=7)
    with pytest.raises(RateLimited) as caught:
        await client.request_cae(CUIT, voucher)
    assert caught.value.retry_after == "7"


async def test_a_refusal_by_status_is_permanent(
    client: Client, afip: Afip, voucher: Voucher
) -> None:
    play(afip, "status", status=403)
    with pytest.raises(Permanent, match="refused with status 403"):
        await client.request_cae(CUIT, voucher)


async def test_an_expired_ticket_is_replaced_before_a_cae_is_asked_for_again(
    client: Client, afip: Afip, clock: Clock, voucher: Voucher
) -> None:
    """The office's clock is ahead: its token is over before ours says so."""
    await client.request_cae(CUIT, voucher)
    clock.advance(hours=11, minutes=54)
    ahead = clock.at
    afip_clock = Clock()
    afip_clock.at = ahead + timedelta(minutes=6)
    afip._invoicing._now = afip_clock
    answer = await client.request_cae(CUIT, replace(voucher, number=2))
    assert answer.number == 2
    outcomes = [(one.outcome, one.detail["codes"]) for one in afip.ledger.of(REQUEST)]
    assert outcomes == [("ok", []), ("refused", [600]), ("ok", [])]


def test_errors_survive_a_journey_to_another_process() -> None:
    remark = Remark(10016, "no")
    for error in (
        NumberTaken("taken", operation=REQUEST, remarks=(remark,)),
        TicketHeld("held", operation="loginCms", retry_after=600),
        RateLimited("wait", retry_after="7"),
        UnknownOutcome("who knows", operation=REQUEST),
    ):
        copied = pickle.loads(pickle.dumps(error))
        assert isinstance(copied, AfipError)
        assert (type(copied), copied.args, vars(copied)) == (type(error), error.args, vars(error))
