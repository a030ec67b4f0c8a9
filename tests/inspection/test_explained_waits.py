"""Every reason for which a job waits: what is said, when it should start, and that what comes next
makes it run. The clock stands still unless a test moves it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from faena.inspection.reason import REASONS
from faena.limits import Limit
from faena.outcomes import Completed, Limited, Retried, Snoozed
from tests._support.explained import explain, runs
from tests._support.rig import BOOM, SECOND, T0, Rig

Step = Callable[[Rig, dict[str, str]], Awaitable[object]]
HOUR = 3600
SLOTS = "1 4.0 lib slots=1 host"


def _options(**options: Any) -> Step:
    return lambda rig, _: rig.declare(**options)


def _add(*ids: str, **facts: Any) -> Step:
    return lambda rig, _: rig.add(*ids, **facts)


def _claim(number: int = 1) -> Step:
    async def step(rig: Rig, leases: dict[str, str]) -> None:
        call = rig.next_call()
        for claim in (await rig.turn(number, call=call)).claimed:
            leases[claim.id] = claim.lease

    return step


def _end(job: str, outcome: Any) -> Step:
    return lambda rig, leases: rig.turn(0, (job, leases.pop(job), outcome))


def _go(seconds: float) -> Step:
    async def step(rig: Rig, _: dict[str, str]) -> None:
        rig.clock.go(seconds)

    return step


def _sign_in(about: str = "") -> Step:
    return lambda rig, _: rig.turn(is_sweep=True, about=about)


def _tenant(**changes: str) -> Step:
    return lambda rig, _: rig.engine.tenant("q", "@a", changes, by="ana")


@dataclass(frozen=True)
class Case:
    """How a job comes to wait, what is said of it, and what is done next."""

    code: str
    arrange: list[Step]
    words: str
    basis: str
    at: float | None = None
    """The expected start, in seconds from the beginning; None: unknown."""
    follow: list[Step] = field(default_factory=list[Step])
    job: str = "job"
    next: str = ""


ONE = Limit("1/min")
LANE: dict[str, Any] = {"lane": "@a"}
KEY: dict[str, Any] = {"lane": "@a", "key": "k/1/a/k"}
DONE = Completed()
PARKED = Snoozed(9 * SECOND, "no worker here knows task 'x'", is_parked=True)

CASES = [
    Case("next", [_add("job")], "it is next", "next", 0),
    Case("line", [_add("first", "job")], "1 job comes first", "unknown", None),
    Case("line", [_add("x"), _claim(), _end("x", DONE), _add("first", "job")],
         "1 job comes first", "pace", 80, []),
    Case("turn", [_add("first", lane="@a"), _add("job", lane="@b")],
         "1 tenant comes before its own", "unknown", None),
    Case("unserved", [_go(HOUR), _add("job")], "no worker serves q", "unknown", None,
         [_sign_in()], next="start a worker for queue q"),
    Case("slots", [_sign_in(SLOTS), _add("x", "job"), _claim()],
         "all 1 slots of its workers are taken", "pace", 80, [_end("x", DONE)]),
    Case("no_handler", [_add("job"), _claim(), _end("job", PARKED)],
         "it is parked (no worker here knows task 'x'; parked once)", "unknown", None, [_go(9)],
         next="start a worker that has this task; it is tried again at the given time"),
    Case("parked", [_add("job"), _claim(),
                    _end("job", Snoozed(9 * SECOND, "fallback: down", is_parked=True))],
         "it is parked (fallback: down; parked once)", "unknown", None, [_go(9)]),
    Case("upstream", [_add("job"), _claim(),
                      _end("job", Snoozed(9 * SECOND, "upstream afip: open", is_parked=True))],
         "it is parked (upstream afip: open; parked once)", "clock", 9, [_go(9)],
         next="a worker asks upstream afip again"),
    Case("delayed", [_add("job", delay=5 * SECOND)], "it is not due yet", "clock", 5, [_go(5)]),
    Case("delayed", [_add("job", delay=5 * SECOND)], "it is not due yet", "clock", 5,
         [lambda rig, _: rig.engine.promote("q", ["job"])]),
    Case("retry", [_add("job"), _claim(), _end("job", Retried(7 * SECOND, BOOM))],
         "attempt 1 failed (Boom: it broke), and the next one waits", "clock", 7, [_go(7)]),
    Case("snoozed", [_add("job"), _claim(), _end("job", Snoozed(7 * SECOND, "closed"))],
         "it was snoozed (closed)", "clock", 7, [_go(7)]),
    Case("retry", [_add("job"), _claim(), _end("job", Snoozed(0, "closed")), _go(1), _claim(),
                   _end("job", Retried(7 * SECOND, BOOM))],
         "attempt 1 failed (Boom: it broke), and the next one waits", "clock", 8, [_go(7)]),
    Case("expires", [_add("job", expires=T0 + 60 * SECOND)], "it has not expired", "next", 0),
    Case("order", [_add("first", "job", lane="@a", chain="a/a"), _claim()],
         "job first runs", "unknown", None, [_end("first", DONE)], next="job first ends"),
    Case("order", [_add("first", "job", lane="@a", chain="a/a"), _claim(),
                   _end("first", Retried(9 * SECOND, BOOM))],
         "job first waits for its next attempt", "clock", 9, [_go(9)]),
    Case("unique", [_add("first", unique="u", mode="last"), _claim(),
                    _add("job", unique="u", mode="last")],
         "job first runs", "unknown", None, [_end("first", DONE)], next="job first ends"),
    Case("held", [_add("job"), lambda rig, _: rig.engine.hold("q", "deploy", None, "ana")],
         "the queue is held (deploy)", "unknown", None,
         [lambda rig, _: rig.engine.release("q", "deploy")],
         next="an operator resumes it, or the hold ends"),
    Case("held", [_add("job"), lambda rig, _: rig.engine.hold("q", "deploy", 60 * SECOND, "ana")],
         "the queue is held (deploy)", "clock", 60, [_go(60)]),
    Case("rate_limited", [_add("job"), _claim(), _end("job", Limited(20 * SECOND))],
         "the queue is held (rate_limited)", "clock", 20, [_go(20)]),
    Case("max_running", [_options(max_running=1), _add("x", "job"), _claim()],
         "the queue is running 1 job, its maximum", "pace", 80, [_end("x", DONE)]),
    Case("limit", [_options(limits=[ONE]), _add("x", "job"), _claim(), _end("x", DONE)],
         "the queue's limit of 1/min is used up", "limits", 60, [_go(60)]),
    Case("limit", [_options(limits=[Limit("100/10s", cost="tokens")]), _add("x", cost="tokens:90"),
                   _add("job", cost="tokens:20"), _claim(), _end("x", DONE)],
         "the queue's limit of 100/10s of tokens has no room", "limits", 10, [_go(10)]),
    Case("too_costly", [_options(limits=[Limit("100/10s", cost="tokens")]),
                        _add("job", cost="tokens:200")],
         "costs more than the limit of 100/10s of tokens allows", "unknown", None,
         [_options(limits=[Limit("300/10s", cost="tokens")])],
         next="raise the limit 100/10s of tokens, or cancel the job"),
    Case("tenant_held", [_add("job", **LANE), _tenant(held_until="0", reason="unpaid")],
         "its tenant is held (unpaid)", "unknown", None, [_tenant(held_until="")]),
    Case("tenant_held", [_add("job", **LANE), _tenant(held_until=str(T0 + 30 * SECOND))],
         "its tenant is held ()", "clock", 30, [_go(30)]),
    Case("tenant_max_running", [_options(tenant_max_running=1), _add("x", "job", **LANE), _claim()],
         "its tenant is running 1 job, its maximum", "pace", 80, [_end("x", DONE)]),
    Case("tenant_limit", [_options(tenant_limits=[ONE]), _add("x", "job", **LANE), _claim(),
                          _end("x", DONE)],
         "its tenant's limit of 1/min is used up", "limits", 60, [_go(60)]),
    Case("tenant_limit", [_options(tenant_limits=[ONE]), _add("x", "y", "job", **LANE), _claim(),
                          _end("x", DONE)],
         "its tenant's limit of 1/min is used up", "limits", 120,
         [_go(60), _claim(), _end("y", DONE), _go(60)]),
    Case("key_limit", [_options(key_limits=[ONE]), _add("x", "job", **KEY),
                       _claim(2), _end("x", DONE)],
         "its key's limit of 1/min is used up", "limits", 60, [_go(60)]),
    Case("key_limit", [_options(key_limits=[ONE]), _add("x", "y", "job", **KEY),
                       _claim(3), _end("x", DONE)],
         "its key's limit of 1/min is used up", "limits", 120,
         [_go(60), _claim(), _end("y", DONE), _go(60)]),
]  # fmt: skip


def _named(case: Case) -> str:
    return f"{case.code}: {case.words}"


@pytest.mark.parametrize("case", CASES, ids=_named)
async def test_a_job_that_waits_says_why_and_what_comes_next_makes_it_run(
    rig: Rig, case: Case
) -> None:
    leases: dict[str, str] = {}
    await rig.turn(is_sweep=True)
    for step in case.arrange:
        await step(rig, leases)
    told = await explain(rig, case.job)
    reasons = {one.code: one for one in told.reasons}
    assert case.code in reasons, told
    assert case.words in reasons[case.code].words
    assert case.words in str(told)
    assert case.next in reasons[case.code].next
    assert told.next, "a job that waits waits for something"
    start = told.expected_start
    assert start is not None
    at = None if case.at is None else T0 + round(case.at * SECOND)
    assert (start.basis, start.at) == (case.basis, at), start.words
    assert start.is_estimate == (case.basis == "pace")
    for step in case.follow:
        await step(rig, leases)
    assert await runs(rig, case.job)


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.basis in {"clock", "limits"}], ids=_named
)
async def test_no_job_runs_before_the_instant_at_which_gates_of_time_let_it(
    rig: Rig, case: Case
) -> None:
    leases: dict[str, str] = {}
    await rig.turn(is_sweep=True)
    for step in case.arrange:
        await step(rig, leases)
    start = (await explain(rig, case.job)).expected_start
    assert start is not None
    assert start.at is not None
    assert start.earliest == start.at
    while rig.clock.now < start.at - SECOND:
        assert not await runs(rig, case.job)
        rig.clock.go(1)
    rig.clock.now = start.at - 1
    assert not await runs(rig, case.job)
    rig.clock.now = start.at
    assert await runs(rig, case.job)


async def test_a_limit_that_jobs_before_it_will_use_up_counts(rig: Rig) -> None:
    await rig.declare(limits=[Limit("2/min")])
    await rig.turn(is_sweep=True)
    await rig.run("x", DONE)
    await rig.add("a", "b", "c", "job")
    told = await explain(rig, "job")
    start = told.expected_start
    assert start is not None
    assert told.gates == (), "now it has room for one more"
    assert start.earliest == T0 + 120 * SECOND, "x and a, then b and c, then the job"
    assert not await runs(rig, "job")
    for second in (60, 120):
        rig.clock.now = T0 + second * SECOND - 1
        assert not await runs(rig, "job")
        rig.clock.now = T0 + second * SECOND
        assert await runs(rig, "job") == (second == 120)


async def test_explaining_changes_nothing(rig: Rig) -> None:
    await rig.declare(limits=[ONE], tenant_limits=[ONE], key_limits=[ONE], max_running=1)
    await rig.add("x", "job", **KEY)
    await rig.turn(2)
    await rig.remember()
    await explain(rig, "job")
    await explain(rig, "x")
    await explain(rig, "nobody")
    assert await rig.is_untouched()


async def test_why_the_job_waits_that_it_waits_for_is_told_too(rig: Rig) -> None:
    await rig.turn(is_sweep=True)
    await rig.engine.hold("q", "deploy", None, "ana")
    await rig.add("first", "job", lane="@a", chain="a/a")
    told = await explain(rig, "job")
    (first,) = told.waits_for
    assert (first.id, "held" in {one.code for one in first.reasons}) == ("first", True)


async def test_a_job_that_expires_before_it_may_start_never_does(rig: Rig) -> None:
    await rig.turn(is_sweep=True)
    await rig.add("job", expires=T0 + 60 * SECOND)
    await rig.engine.hold("q", "deploy", 90 * SECOND, "ana")
    start = (await explain(rig, "job")).expected_start
    assert start is not None
    assert (start.basis, start.at) == ("never", None)
    rig.clock.go(90)
    assert not await runs(rig, "job")


def test_every_reason_that_a_shard_tells_is_in_the_table() -> None:
    assert {case.code for case in CASES} <= set(REASONS)
