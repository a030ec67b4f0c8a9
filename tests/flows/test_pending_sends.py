"""What a job is sent with: the ends of those before it."""

from __future__ import annotations

import msgspec

from faena.engine.calls.flows import Made, PendingSend
from faena.engine.envelope import body_of, facts_in
from faena.flows.pending_sends import Parent, inputs_of, job_of
from faena.job import Spec

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
