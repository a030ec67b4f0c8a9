"""What a job is sent with: the ends of those before it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from faena.engine.calls.flows import FlowCalls, Made, PendingSend
from faena.engine.envelope import NewJob, body_of, facts_in
from faena.flows import pending_sends
from faena.flows.pending_sends import Parent, PendingSends, _parts, inputs_of, job_of
from faena.job import Spec
from faena.options import Backpressure
from faena.producing.batcher import BATCH_BYTES, Sent
from faena.producing.client import Client
from faena.producing.sender import Sender
from faena.sharding.router import Routers
from tests._support.rig import Rig

MADE = Made("q", 5, {"tells": "f:q:f:2", "lane": "@acme"}, '{"task":"noop","payload":[1]}', "f.2")


def sent(*parents: Parent, **counts: int) -> tuple[dict[str, str], Spec]:
    pending = PendingSend("f:f:2:f.2", "q", "f.2", MADE.pack(), [])
    job = job_of(pending, by=77, parents=inputs_of(parents), group=counts)
    assert job.id == "f.2"
    return facts_in(job.spec), msgspec.json.decode(body_of(job.spec), type=Spec)


def test_results_and_errors_travel_as_they_were_written() -> None:
    facts, spec = sent(
        Parent("a", "completed", b'{"n":9007199254740993}'),
        Parent("b", "completed", b""),
        Parent("c", "dead", b'{"name":"Boom"}'),
        Parent("d", "skipped", b""),
    )
    assert facts["tells"] == "f:q:f:2"
    assert facts["lane"] == "@acme"
    assert facts["by"] == "77"
    assert bytes(spec.payload) == b"[1]"
    assert {name: one.state for name, one in spec.parents.items()} == {
        "a": "completed",
        "b": "completed",
        "c": "dead",
        "d": "skipped",
    }
    assert spec.parents["a"].value() == {"n": 9007199254740993}
    assert spec.parents["b"].value() is None
    assert spec.parents["c"].value() is None
    assert bytes(spec.parents["c"].error) == b'{"name":"Boom"}'


def test_results_that_are_too_large_together_stay_behind() -> None:
    half = msgspec.json.encode("x" * (5 << 20))
    _, spec = sent(Parent("a", "completed", half), Parent("b", "completed", half))
    assert [(one.state, one.value()) for one in spec.parents.values()] == [
        ("completed", None),
        ("completed", None),
    ]


def test_the_same_pending_send_is_the_same_job() -> None:
    first, _ = sent()
    second, _ = sent(Parent("a", "completed", b"1"))
    assert first["digest"] == second["digest"]


def test_a_callback_is_told_the_counts_of_its_group() -> None:
    _, spec = sent(total=3, completed=2, dead=1)
    assert spec.group == {"total": 3, "completed": 2, "dead": 1}


class Sending:
    """A callback of a group that the queue `q` is to be sent."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._calls = FlowCalls(rig.engine)
        client = Client(rig.engine, Routers(rig.engine, {}))
        self._pending = PendingSends(self._calls, client)

    async def list(self) -> None:
        made = Made("q", 5, {"tells": "g:q:g:complete"}, MADE.body, "g.complete")
        await self._calls.open_group("q", "g", {"complete": made.pack()})
        await self._calls.seal_group("q", "g", 0)

    async def list_again(self) -> None:
        """As if whoever sent it died before it was struck off."""
        await self._rig.engine.command("ZADD", "q", "pending_sends", 1, "g:g:complete:g.complete")

    async def run(self) -> tuple[bool, bool]:
        """Run what is pending; whether the job is there, and whether it is still to be sent."""
        assert await self._pending.run("q") is None
        return "g.complete" in await self._rig.states(), await self._calls.has_outbox("q")


@pytest.fixture
async def sending(rig: Rig) -> Sending:
    sending = Sending(rig)
    await sending.list()
    return sending


async def test_a_job_that_has_come_is_struck_off(sending: Sending, rig: Rig) -> None:
    assert await sending.run() == (True, False)
    await sending.list_again()
    assert await sending.run() == (True, False)
    assert (await rig.counters())["enqueued"] == 1


async def test_a_full_queue_takes_the_job_of_a_flow(sending: Sending, rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(hard=1))
    await rig.add("first")
    assert [one.code for one in await rig.add("refused")] == ["OVERLOADED"]
    assert await sending.run() == (True, False)


async def test_a_job_that_is_sent_too_late_is_sent_again(
    sending: Sending, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _send_with(patch, lambda: rig.clock.go(21))
        assert await sending.run() == (False, True)
    assert await sending.run() == (True, False)


@pytest.mark.parametrize(("slept_s", "is_learnt"), [(0, True), (11, False)])
async def test_the_clock_of_a_queue_is_learnt_only_from_an_answer_that_came_soon(
    sending: Sending,
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    slept_s: int,
    is_learnt: bool,
) -> None:
    passed_s = 0
    monkeypatch.setattr(pending_sends, "time", SimpleNamespace(monotonic=lambda: passed_s))

    def sleep_ahead() -> None:
        nonlocal passed_s
        passed_s += slept_s
        rig.clock.go(90)

    _send_with(monkeypatch, sleep_ahead, then=lambda: rig.clock.go(-90))
    assert await sending.run() == (False, True)
    assert await sending.run() == (is_learnt, not is_learnt)


def _send_with(
    patch: pytest.MonkeyPatch, do: Callable[[], object], then: Callable[[], object] = int
) -> None:
    """Have something happen before and after jobs are sent."""
    enqueue = Sender.enqueue

    async def around(self: Sender, queue: str, *rest: Any) -> Sent:
        do()
        sent = await enqueue(self, queue, *rest)
        then()
        return sent

    patch.setattr(Sender, "enqueue", around)


def test_no_call_carries_more_than_it_may_but_one_job() -> None:
    jobs = [NewJob(str(size), b"x" * (BATCH_BYTES * size // 10), {}) for size in (6, 6, 6, 3, 12)]
    parts = [[int(job.id) for job in part] for part in _parts(jobs)]
    assert parts == [[6], [6], [6, 3], [12]]
