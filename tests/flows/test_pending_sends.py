"""What a job is sent with: the ends of those before it."""

from __future__ import annotations

import time
from typing import Any, cast

import msgspec
import pytest

from faena.engine.calls.flows import Made, PendingSend
from faena.engine.envelope import NewJob, body_of, facts_in
from faena.engine.scripts import Answer
from faena.flows.pending_sends import Parent, PendingSends, _parts, inputs_of, job_of
from faena.job import Spec
from faena.options import Durability
from faena.producing.batcher import BATCH_BYTES, Sent

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


class Answering:
    """A list with one pending send, and a queue that has one answer to it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.done_at: list[str] = []
        self.pending = PendingSends(cast("Any", self), cast("Any", self))

    async def pending_sends(self, _shard: str, start: int) -> tuple[int, list[PendingSend]]:
        is_over = start > 0 or self.done_at
        return 0, [] if is_over else [PendingSend("f:f:2:f.2", "q", "f.2", MADE.pack(), [])]

    async def enqueue(self, *_: Any) -> Sent:
        return Sent([self._answer], Durability())

    async def done(self, _shard: str, names: list[str]) -> None:
        self.done_at += names


@pytest.mark.parametrize(
    ("answer", "done"),
    [
        (Answer("CREATED"), ["f:f:2:f.2"]),
        (Answer("DUPLICATE"), ["f:f:2:f.2"]),
        (Answer("OVERLOADED", 1_000_000), []),
        (Answer("LATE", 0), []),
    ],
)
async def test_a_job_that_its_queue_does_not_take_yet_is_sent_again(
    answer: Answer, done: list[str]
) -> None:
    queue = Answering(answer)
    assert await queue.pending.run("q") is None
    assert queue.done_at == done


def test_the_clock_of_a_queue_is_learnt_only_from_an_answer_that_came_soon() -> None:
    pending, late = Answering(Answer()).pending, [Answer("LATE", 90_000_000)]
    pending._learn_clock("q", 0, time.monotonic() - 11, late)  # whoever asked has slept
    assert pending._skews == {}
    pending._learn_clock("q", 0, time.monotonic() + 3600, late)
    assert pending._skews == {"q": 90_000_000}


def test_no_call_carries_more_than_it_may_but_one_job() -> None:
    jobs = [NewJob(str(size), b"x" * (BATCH_BYTES * size // 10), {}) for size in (6, 6, 6, 3, 12)]
    parts = [[int(job.id) for job in part] for part in _parts(jobs)]
    assert parts == [[6], [6], [6, 3], [12]]
