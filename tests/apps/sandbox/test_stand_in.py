"""Stand-ins keep a ledger of every request, and play the faults that they are told to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import httpx
import pytest
from apps.sandbox.stand_in import Reply
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox import Fault, StandIn


class Counter(StandIn):
    """A service that counts."""

    name: ClassVar[str] = "counter"

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def routes(self) -> Sequence[BaseRoute]:
        return [Route("/add", self._add, methods=["POST"])]

    async def _add(self, request: Request) -> Response:
        number = int((await request.json())["number"])
        return await self.play("add", lambda is_wrong: self._count(number, is_wrong))

    async def _count(self, number: int, is_wrong: bool) -> Reply:
        self.total += number
        shown = -1 if is_wrong else self.total
        return Reply(response=JSONResponse({"total": shown}), subject=str(number))


@pytest.fixture
async def counter() -> AsyncIterator[Counter]:
    counter = Counter()
    async with counter.serving() as counter.url:
        yield counter


async def add(counter: Counter, number: int = 1) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(f"{counter.url}/add", json={"number": number})


def outcomes(counter: Counter) -> list[str]:
    return [one.outcome for one in counter.ledger.entries]


async def test_a_request_is_noted_with_what_it_was_about(counter: Counter) -> None:
    assert (await add(counter, 3)).json() == {"total": 3}
    (entry,) = counter.ledger.of("add", "ok")
    assert entry.subject == "3"
    assert entry.began_at <= entry.ended_at
    assert counter.ledger.of("add", "refused") == counter.ledger.of("take") == []


async def test_a_status_comes_instead_of_the_work(counter: Counter) -> None:
    counter.faults.add(Fault(kind="status", status=429, seconds=7, times=1))
    response = await add(counter)
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    assert (await add(counter)).status_code == 200
    assert (counter.total, outcomes(counter)) == (1, ["status", "ok"])


async def test_a_cut_connection_leaves_nothing_done(counter: Counter) -> None:
    counter.faults.add(Fault(kind="cut", times=1))
    with pytest.raises(httpx.RemoteProtocolError):
        await add(counter)
    assert (counter.total, outcomes(counter)) == (0, ["cut"])


async def test_a_lost_answer_leaves_the_work_done(counter: Counter) -> None:
    counter.faults.add(Fault(kind="lost", times=1))
    with pytest.raises(httpx.RemoteProtocolError):
        await add(counter)
    assert counter.total == 1
    (entry,) = counter.ledger.of("add", "ok")
    assert entry.detail == {"is_lost": True}


async def test_wrong_data_are_answered_on_demand(counter: Counter) -> None:
    counter.faults.add(Fault(kind="wrong", every=2))
    assert [(await add(counter)).json()["total"] for _ in range(4)] == [1, -1, 3, -1]


async def test_a_slow_answer_comes_late(counter: Counter) -> None:
    counter.faults.add(Fault(kind="slow", seconds=0.05))
    await add(counter)
    (entry,) = counter.ledger.entries
    assert entry.ended_at - entry.began_at >= 0.05


async def test_faults_of_other_operations_and_past_ones_are_not_played(counter: Counter) -> None:
    counter.faults.add(Fault(kind="cut", operation="take"))
    counter.faults.add(Fault(kind="cut", until=time.monotonic()))
    await add(counter)
    assert len(counter.faults.rules) == 1
    counter.faults.clear()
    assert counter.faults.rules == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "odd"},
        {"kind": "cut", "every": 0},
        {"kind": "cut", "times": 0},
        {"kind": "slow", "seconds": -1},
        {"kind": "status", "status": 200},
    ],
)
def test_a_fault_that_could_not_be_played_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Fault(**wrong)  # pyright: ignore[reportArgumentType]
