"""Operators are told why a job waits for an upstream, and what happens to upstreams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from faena import Breaker, Budget, Event, Faena, Price, Receipt, Retry
from faena.errors import ConfigError
from faena.inspection.explanation import Explanation
from faena.states import State
from tests._support.eventually import eventually
from tests._support.working import Working

SLOW = Breaker(volume=4, open="10m")
ONCE = Retry.fixed("10ms", attempts=2)


async def _waiting(receipt: Receipt[Any], words: str) -> Explanation:
    """The explanation of a job once it says so."""
    told: list[Explanation] = []

    async def says_so() -> bool:
        told[:] = [await receipt.handle.explain()]
        return words in str(told[0])

    try:
        await eventually(says_so)
    except AssertionError:
        pytest.fail(f"{told[0]} must say {words!r}")
    return told[0]


def _codes(told: Explanation) -> set[str]:
    """Why it waits, beside the jobs that come first and the workers that are there."""
    return {one.code for one in told.reasons} - {"line", "turn", "slots", "expires"}


async def _fail_all(app: Faena, options: dict[str, Any], tenant: str | None = None) -> Receipt[Any]:
    """The last job of a queue whose calls fail."""
    down = app.upstream("afip", **options)

    @app.queue("invoices", concurrency=1, retry=ONCE).task(upstreams=[down])
    async def request(_number: int) -> None:
        raise ConnectionRefusedError("down")

    return (await request.enqueue_many(list(range(9)), tenant=tenant))[-1]


async def test_for_an_open_breaker_how_many_calls_failed_and_when_a_probe_goes(
    shop: Faena, working: Working
) -> None:
    last = await _fail_all(shop, {"breaker": SLOW})
    async with working(shop):
        told = await _waiting(last, "upstream afip is open, 4 of 4 calls failed")
    assert "the queue is held (upstream afip is open" in str(told)
    assert "the next probe goes in " in str(told)
    (view,) = told.upstreams
    assert view.next_probe_at == view.opens_at
    assert told.expected_at is None or told.expected_at >= told.at
    assert told.is_earliest == (told.expected_at is not None)
    assert told.to_dict()["upstreams"][0]["failed"] == 4
    assert "breaker" in _codes(told)
    assert "the next probe of upstream afip succeeds" in told.next
    start = told.expected_start
    assert start is not None
    assert start.basis in {"upstream", "pace", "unknown"}
    assert start.earliest is None or start.earliest > told.at


async def test_for_a_tenants_own_breaker_whose_it_is(shop: Faena, working: Working) -> None:
    breaker = Breaker(volume=4, open="10m", per="tenant")
    last = await _fail_all(shop, {"breaker": breaker}, tenant="acme")
    async with working(shop):
        told = await _waiting(last, "upstream afip is open for tenant acme, 4 of 4 calls failed")
    assert any(gate.name == "tenant_held" for gate in told.gates)


async def test_for_a_limit_when_it_has_room(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", limits=["2/10m"])

    @shop.queue("invoices").task(upstreams=[afip])
    async def request(_number: int) -> None: ...

    last = (await request.enqueue_many([1, 2, 3]))[-1]
    async with working(shop):
        told = await _waiting(last, "its limit of 2/10m is used up, room in ")
    assert told.upstreams[0].limits[0].used == 2
    assert "upstream_limit" in _codes(told)
    assert "the limit of upstream afip has room again" in told.next


async def _spend_all(app: Faena, **options: Any) -> Receipt[Any]:
    """The last job of a queue, for which there is no money; the first has spent one dollar."""
    ai = app.upstream("ai", prices=[Price("call", "1 USD")], **options)

    @app.queue("answers", concurrency=1).task(upstreams=[ai])
    async def answer(_number: int) -> None: ...

    return (await answer.enqueue_many([1, 2], tenant="acme"))[-1]


USED_UP = "of 1.00 USD per month is used up: 1.00 USD spent, 0.00 USD reserved; the month ends in "


@pytest.mark.parametrize("is_each", [False, True])
async def test_for_a_budget_how_much_is_spent_and_when_it_is_asked_again(
    shop: Faena, working: Working, is_each: bool
) -> None:
    budget = Budget("1 USD", per="month", each_tenant=is_each)
    last = await _spend_all(shop, budgets=[budget])
    own = "its tenant budget" if is_each else "its budget"
    async with working(shop):
        told = await _waiting(last, f"upstream ai is closed; {own} {USED_UP}")
    assert "; a worker asks again in " in str(told)
    assert "budget" in _codes(told)
    assert "the period of the budget of ai ends, or the budget is raised" in told.next
    (gate,) = [one for one in told.gates if one.name in {"held", "tenant_held"}]
    (view,) = told.upstreams
    assert gate.until == view.budgets[0].ends_at, "not the minute after which a worker asks again"
    assert told.expected_at is None or told.expected_at >= view.budgets[0].ends_at
    assert told.to_dict()["upstreams"][0]["budgets"][0]["spent"]["micro"] == 10**6


async def test_for_the_total_of_a_currency(shop: Faena, working: Working) -> None:
    shop.total_budgets([Budget("1 USD", per="month")])
    last = await _spend_all(shop)
    async with working(shop):
        await _waiting(last, f"upstream ai is closed; the total budget {USED_UP}")


async def test_for_money_that_is_only_reserved(shop: Faena, working: Working) -> None:
    ai = shop.upstream(
        "ai", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD", per="month")]
    )
    free = asyncio.Event()

    @shop.queue("answers", concurrency=2).task(upstreams=[ai])
    async def answer(_number: int) -> None:
        await free.wait()

    last = (await answer.enqueue_many([1, 2]))[-1]
    async with working(shop):
        told = await _waiting(last, "its budget of 1.00 USD per month has no room until calls")
        assert "under way have ended: 0.00 USD spent, 1.00 USD reserved" in str(told)
        free.set()


async def test_for_a_panic_who_called_it_and_why(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip")

    @shop.queue("invoices").task(upstreams=[afip])
    async def request() -> None: ...

    await afip.panic(reason="certificates expired", by="ana")
    receipt = await request.enqueue()
    async with working(shop):
        told = await _waiting(
            receipt, "upstream afip is in panic, called by ana: certificates expired"
        )
    assert told.expected_at is None, "an operator must end it"
    assert "panic" in _codes(told)
    assert "an operator ends the panic of afip" in told.next
    assert "for another" not in str(told), "the hold is looked at each minute, but what of it"


async def test_for_a_job_that_is_put_off_alone(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip")
    queue = shop.queue("mixed")

    @queue.task(upstreams=[afip])
    async def request() -> None: ...

    @queue.task
    async def other() -> None: ...

    await afip.panic(reason="closed", by="ana", lasting="1h")
    receipt = await request.enqueue()
    async with working(shop):
        told = await _waiting(receipt, "it is parked (upstream afip is in panic, called by ana")
    assert "parked once" in str(told)
    assert told.state is State.DELAYED


async def test_a_hold_of_that_name_for_no_upstream_stays_as_it_is(shop: Faena) -> None:
    queue = shop.queue("mail")

    @queue.task
    async def send() -> None: ...

    await queue.pause(reason="upstream nowhere")
    receipt = await send.enqueue()
    told = await receipt.handle.explain()
    assert "the queue is held (upstream nowhere)" in str(told)
    assert "held" in _codes(told)
    assert told.upstreams == ()


# -- events ----------------------------------------------------------------------------------------


async def _take(app: Faena, number: int, **given: Any) -> list[Event]:
    events = app.events(**given)
    async with aclosing(events), asyncio.timeout(60):
        return [await anext(events) for _ in range(number)]


def _said(events: Sequence[Event]) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(one.name, one.value, one.by, one.reason) for one in events]


async def test_events_tell_what_happens_to_upstreams(shop: Faena) -> None:
    shop.queue("mail")
    afip = shop.upstream("afip", breaker=Breaker(volume=1), panic_after=1)
    with pytest.raises(ConnectionRefusedError):
        async with afip.call():
            raise ConnectionRefusedError("down")
    first, second = await _take(shop, 2, since="start")
    assert _said([first, second]) == [
        ("upstream_open", "afip", "faena", "1 of 1 calls failed"),
        ("upstream_panic", "afip", "faena", "the breaker has opened 1 times in a row"),
    ]
    assert (first.queue, first.job, first.tenant) == ("", None, None)
    await afip.end_panic(by="ana")
    (third,) = await _take(shop, 1, since=second.cursor)
    assert _said([third])[0][:3] == ("upstream_panic_ended", "afip", "ana")
    (again, _) = await _take(shop, 2, since=first.cursor, details=True)
    assert _said([again]) == _said([second]), "a cursor continues inside an entry"


async def test_events_of_a_tenants_breaker_name_the_tenant(shop: Faena) -> None:
    shop.queue("mail")
    afip = shop.upstream("afip", breaker=Breaker(volume=1, per="tenant"))
    with pytest.raises(ConnectionRefusedError):
        async with afip.call(tenant="acme"):
            raise ConnectionRefusedError("down")
    (event,) = await _take(shop, 1, since="start")
    assert (event.name, event.value, event.tenant, event.by) == (
        *("upstream_open", "afip", "acme", None),
    )


async def test_they_come_beside_those_of_jobs_and_by_kind(shop: Faena) -> None:
    queue, afip = shop.queue("mail"), shop.upstream("afip")

    @queue.task
    async def send() -> None: ...

    await send.enqueue()
    await afip.panic(reason="stop", by="ana")
    both = await _take(shop, 2, since="start")
    assert {event.name for event in both} == {"enqueued", "upstream_panic"}
    (one,) = await _take(shop, 1, since="start", kinds="upstream_panic")
    assert one.by == "ana"
    (mail,) = await _take(shop, 1, queue="mail", since="start")
    assert mail.name == "enqueued", "an upstream belongs to no queue"
    with pytest.raises(ConfigError, match="did you mean 'upstream_open'"):
        shop.events(kinds="upstream_opened")


# -- what time alone ends --------------------------------------------------------------------------


async def _closed_in_time(app: Faena, working: Working, name: str) -> list[str]:
    """The events up to the last one, while a worker runs and no call is made."""
    events: list[str] = []
    async with working(app), asyncio.timeout(60), aclosing(app.events(since="start")) as found:
        async for event in found:
            if event.name.startswith(("upstream", "feature")):
                events.append(event.name)
            if event.name == name:
                return events
    raise AssertionError(events)


async def test_a_breaker_closes_in_time_while_a_worker_runs(shop: Faena, working: Working) -> None:
    breaker = Breaker(volume=1, open="100ms", ramp="300ms")
    afip = shop.upstream("afip", breaker=breaker)
    shop.feature("invoicing", upstreams=[afip])
    failures = [ConnectionRefusedError("down")]

    @shop.queue("invoices", retry=ONCE).task(upstreams=[afip])
    async def request() -> None:
        if failures:
            raise failures.pop()

    await request.enqueue()
    told = await _closed_in_time(shop, working, "upstream_closed")
    assert [one for one in told if one.startswith("upstream")] == [
        *("upstream_open", "upstream_half_open", "upstream_recovering", "upstream_closed"),
    ], "the job has made two calls, and none closed it"
    assert (await afip.view()).state == "closed"


async def test_a_worker_ends_what_was_under_way_before_it_began(
    shop: Faena, working: Working
) -> None:
    afip = shop.upstream("afip")

    @shop.queue("invoices").task(upstreams=[afip])
    async def request() -> None: ...

    await afip.panic(reason="stop", by="ana", lasting="100ms")
    told = await _closed_in_time(shop, working, "upstream_panic_ended")
    assert told == ["upstream_panic", "upstream_panic_ended"]
