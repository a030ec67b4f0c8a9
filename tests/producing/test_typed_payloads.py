"""Typed payloads on their whole way: checked at enqueue, stored byte for byte, checked again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena import Discard, Faena, Job, Middleware, Retry
from faena.errors import JobFailed, PayloadError
from faena.job import JobView, Spec
from faena.middleware import Enqueue
from faena.producing.handle import Handle
from faena.testing import Harness, harness
from tests._support.deployment import deployed
from tests._support.eventually import eventually
from tests._support.search import searching
from tests._support.valkey import Server
from tests._support.working import serving

URL = "redis://localhost"  # never dialled: the harness takes its place


class Line(pydantic.BaseModel):
    sku: str
    price: Decimal
    amount: int = pydantic.Field(ge=1)


class Order(pydantic.BaseModel):
    id: UUID
    lines: list[Line]
    placed_at: datetime


class Parcel(msgspec.Struct):
    weight: float
    address: str | None = None
    within: timedelta = timedelta(days=2)


@dataclass
class Refund:
    cents: int
    reasons: tuple[str, ...]


class Ping(TypedDict):
    host: str
    port: NotRequired[int]


UNIT = UUID("00000000-0000-4000-8000-000000000007")
ORDER = Order(
    id=UNIT,
    lines=[Line(sku="a", price=Decimal("9.90"), amount=2)],
    placed_at=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
)

VALUES = [
    (Order, ORDER),
    (Parcel, Parcel(weight=0.1, address="Calle 1")),
    (Refund, Refund(cents=2**62, reasons=("late", "broken"))),
    (Ping, {"host": "a.example"}),
    (list[Parcel], [Parcel(weight=1.0), Parcel(weight=2.0)]),
    (dict[str, Refund], {"x": Refund(cents=1, reasons=())}),
    (Any, {"a": [1, 2.5, None, True, "ñ\x00"], "b": {}, "c": []}),
    (int, 2**63),
    (datetime, datetime(2030, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda value: str(value)[:20])
async def test_a_payload_and_a_result_of_any_kind_come_back_as_they_were(
    kind: Any, value: Any
) -> None:
    app = Faena("shop", URL)
    seen: list[Any] = []

    async def echo(payload: Any) -> Any:
        seen.append(payload)
        return payload

    echo.__annotations__ = {"payload": kind, "return": kind}
    task = app.queue("q").task(echo)
    async with harness(app) as h:
        receipt = await task.enqueue(value)
        (await h.drain()).check()
        assert await receipt.handle.result() == value
    assert seen == [value]
    assert type(seen[0]) is type(value)


async def test_plain_data_becomes_what_the_handler_declares() -> None:
    app = Faena("shop", URL)

    @app.queue("q").task
    async def take(order: Order) -> str:
        return type(order).__name__

    plain = json.loads(ORDER.model_dump_json())
    async with harness(app) as h:
        await take.enqueue(plain)
        assert [ran.result for ran in await h.drain()] == ["Order"]
        await h.assert_enqueued(take, payload=ORDER)


async def test_enqueue_lists_every_bad_field_with_its_path_and_writes_nothing(
    valkey: Server,
) -> None:
    app = Faena("shop", URL)
    queue = app.queue("q")

    @queue.task
    async def take_order(order: Order) -> None: ...

    @queue.task
    async def take_parcels(parcels: list[Parcel]) -> None: ...

    bad_order = {"id": "7", "lines": [{"sku": "a", "price": "x", "amount": 0}]}
    bad_parcels = [{"weight": "heavy"}, {"weight": 1.0, "address": 5}]
    async with harness(app, url=valkey.url):
        with pytest.raises(PayloadError) as order_error:
            await take_order.enqueue(bad_order)  # type: ignore[arg-type]
        with pytest.raises(PayloadError) as parcels_error:
            await take_parcels.enqueue(bad_parcels)  # type: ignore[arg-type]
        with valkey.client() as client:
            assert client.dbsize() == 0
    paths = [path for path, _ in order_error.value.fields]
    assert paths == ["id", "lines[0].price", "lines[0].amount", "placed_at"]
    assert str(order_error.value).startswith("payload must be Order, got 4 bad fields: id ")
    assert parcels_error.value.fields == (
        ("[0].weight", "expected float, got str"),
        ("[1].address", "expected str | null, got int"),
    )


# -- a schema that has changed ------------------------------------------------------------------


RAN: list[Any] = []


async def _new_async(payload: Parcel) -> None:
    RAN.append(payload)


def _new_sync(payload: Parcel) -> None:
    RAN.append(payload)


@pytest.mark.parametrize("run", ["async", "thread", "process"])
async def test_a_stored_payload_that_no_longer_fits_is_dead_at_once_with_its_fields(
    run: Any,
) -> None:
    old, new = Faena("old", URL), Faena("new", URL)

    @old.queue("q").task(name="ship")
    async def ship(parcel: dict[str, str]) -> None: ...

    handler = _new_async if run == "async" else _new_sync
    new.queue("q", retry=Retry.fixed("1s", attempts=5)).task(name="ship", run=run)(handler)
    RAN.clear()
    async with harness(old) as h:
        receipt = await ship.enqueue({"weight": "2 kg", "address": "Calle 1"})
        async with deployed(new, h) as later:
            report = await later.drain(through="1h")
            assert report.counts == {"dead": 1}
        view = await receipt.handle.view()
        assert view is not None
        (error,) = view.errors
        assert (view.state, error.name, error.code) == ("dead", "PayloadError", "PAYLOAD")
        assert view.attempts_made == 0, "no handler ran"
        assert error.fields == (("weight", "expected float, got str"),)
        assert bytes(view.payload) == b'{"weight":"2 kg","address":"Calle 1"}'
        with pytest.raises(JobFailed, match="weight expected float, got str"):
            await receipt.handle.result()
    assert RAN == []


async def test_a_spec_that_is_no_spec_is_dead_at_once_and_stops_nobody() -> None:
    class Vandal(Middleware):
        async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
            spec.payload = msgspec.Raw(b'{"weight": ')
            return await call_next(queue, spec)

    app, vandal = Faena("shop", URL), Faena("vandal", URL, middleware=[Vandal()])

    @app.queue("q").task(name="ship")
    async def ship(parcel: Parcel) -> None: ...

    @vandal.queue("q").task(name="ship")
    async def break_it(parcel: Parcel) -> None: ...

    async with harness(app) as h:
        async with deployed(vandal, h):
            await break_it.enqueue(Parcel(weight=1.0))
        await ship.enqueue(Parcel(weight=1.0))
        assert (await h.drain()).counts == {"dead": 1, "completed": 1}


# -- tasks and versions that a worker does not know ---------------------------------------------


async def test_a_job_of_an_unknown_task_waits_for_a_worker_that_knows_it() -> None:
    old, new = Faena("old", URL), Faena("new", URL)
    old.queue("q")

    @new.queue("q").task
    async def novelty(number: int) -> int:
        return number + 1

    async with harness(old) as h, deployed(new, h) as later:
        receipt = await novelty.enqueue(1)
        for _ in range(10):
            assert (await h.drain()).counts == {"parked": 1}
            h.clock.advance("15s")
        view = await receipt.handle.view()
        assert view is not None
        assert (view.attempts_made, view.losses, view.errors) == (0, 0, ())
        (await later.drain()).check()
        assert await receipt.handle.result() == 2


async def test_a_job_of_a_newer_version_waits_for_a_worker_of_that_version() -> None:
    old, new = Faena("old", URL), Faena("new", URL)

    @old.queue("q").task(name="ship", version=1)
    async def ship_1(parcel: dict[str, Any]) -> str:
        return "old"

    @new.queue("q").task(name="ship", version=2)
    async def ship_2(parcel: Parcel) -> str:
        return "new"

    async with harness(old) as h, deployed(new, h) as later:
        newer = await ship_2.enqueue(Parcel(weight=1.0))
        older = await ship_1.enqueue({"weight": 2.0})
        assert (await h.drain()).counts == {"parked": 1, "completed": 1}
        assert await older.handle.result() == "old"
        assert (await later.drain(through="1m")).counts == {"completed": 1}
        assert await newer.handle.result() == "new"


async def test_a_real_worker_counts_what_it_parks_in_the_minutes_statistics(
    valkey: Server, namespace: str
) -> None:
    producer = Faena("producer", valkey.url, namespace=namespace)
    worker = Faena("worker", valkey.url, namespace=namespace)
    queue = producer.queue("q")
    worker.queue("q")

    @queue.task
    async def novelty() -> None: ...

    async def are_parked() -> bool:
        return (await queue.counts())["delayed"] == 7

    async with producer, worker:
        await novelty.enqueue_many([novelty.draft()] * 7)
        async with serving(worker):
            await eventually(are_parked)
        with valkey.client() as client:
            minutes = client.keys(f"{namespace}:{{q}}:stats:*")
            parked = [client.hget(minute, "parked") for minute in minutes]
        assert sum(int(number) for number in parked if number) == 7
        await queue.obliterate()


# -- G17: byte for byte -------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-(2**64), 2**64),
    st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**40]),
    st.floats(allow_nan=False, allow_infinity=False),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "\x00", "\r\n", "\u2028", "😀", '"\\', "010\n{}"]
)
VALUES_OF_JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
FORMS = st.sampled_from(
    [
        {"ensure_ascii": True},
        {"ensure_ascii": False},
        {"indent": 1},
        {"separators": (" ,\t", "\n: ")},
    ]
)


class Foreign(Middleware):
    """A producer that writes JSON in its own way."""

    def __init__(self) -> None:
        self.raw: bytes | None = None

    async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
        if self.raw is not None:
            spec.payload = msgspec.Raw(self.raw)
        return await call_next(queue, spec)


class Journey:
    """Sends a payload from enqueue to its second death and looks at its bytes on every station."""

    def __init__(self) -> None:
        self.foreign = Foreign()
        self.app = Faena("shop", URL, middleware=[self.foreign])
        self.stations: list[tuple[str, bytes]] = []
        self.received: list[Any] = []
        self.task = self.app.queue("q").task(name="die")(self._die)

    async def _die(self, payload: Any, job: Job) -> None:
        self.received.append(payload)
        await self._look(self.task.handle(job.id))
        raise Discard("as the test wants")

    async def _look(self, handle: Handle[Any]) -> JobView:
        view = await handle.view()
        assert view is not None
        self.stations.append((view.state.value, bytes(view.payload)))
        return view

    async def travel(self, h: Harness, value: Any) -> None:
        self.stations.clear()
        self.received.clear()
        handle = (await self.task.enqueue(value)).handle
        for turn in range(2):
            await self._look(handle)
            assert (await h.drain()).counts == {"dead": 1}
            await self._look(handle)
            if turn == 0:
                await handle.rerun()

    @property
    def states(self) -> list[str]:
        return [state for state, _ in self.stations]


FUZZ = searching(120)


@contextmanager
def travelling(journey: Journey) -> Iterator[Callable[[Any], None]]:
    """`journey.travel` as a plain function, which is what hypothesis calls."""
    with asyncio.Runner() as runner:
        context = harness(journey.app)
        h = runner.run(context.__aenter__())
        try:
            yield lambda value: runner.run(journey.travel(h, value))
        finally:
            runner.run(context.__aexit__(None, None, None))


def test_a_payload_is_the_same_to_the_byte_through_two_deaths() -> None:
    journey = Journey()
    with travelling(journey) as travel:

        @FUZZ
        @given(VALUES_OF_JSON)
        def check(value: Any) -> None:
            travel(value)
            given_bytes = msgspec.json.encode(value)
            assert journey.states == ["ready", "running", "dead", "ready", "running", "dead"]
            assert {raw for _, raw in journey.stations} == {given_bytes}
            assert journey.received == [value, value]
            assert repr(journey.received[0]) == repr(value)

        check()


def test_the_json_of_another_producer_keeps_its_spelling_through_two_deaths() -> None:
    journey = Journey()
    with travelling(journey) as travel:

        @FUZZ
        @given(VALUES_OF_JSON, FORMS)
        def check(value: Any, form: dict[str, Any]) -> None:
            journey.foreign.raw = json.dumps(value, **form).encode()
            travel(None)
            assert {raw for _, raw in journey.stations} == {journey.foreign.raw}
            assert journey.received == [value, value]

        check()
