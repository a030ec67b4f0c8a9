"""A failure in a process of its own is judged as one beside the worker."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from faena import Retry, Task
from faena.errors import FaenaError
from faena.outcomes import Buried, Limited, Outcome, Snoozed
from faena.testing import attempt
from faena.worker.execute import remote_errors as remote
from tests._support import process_app, unpicklable
from tests._support.unpicklable import KINDS, ProviderDown, Sealed, WithLock


def same(outcome: Outcome) -> Any:
    """An outcome without what differs between two runs: lines, and who called."""
    if isinstance(outcome, Limited):
        return msgspec.structs.replace(outcome, delay_us=0)
    error = getattr(outcome, "error", None)
    if error is None:
        return outcome
    stack = re.sub(r"line \d+, in (apart|beside)|Lock object at \w+", "…", error.stack or "")
    stack = stack.replace("+ Exception Group Traceback", "…")
    return error.name, error.message, error.code, error.fields, stack, type(outcome)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_failure_in_a_process_ends_the_attempt_as_one_beside_the_worker(kind: str) -> None:
    beside, apart = await asyncio.gather(
        attempt(unpicklable.beside, kind), attempt(unpicklable.apart, kind)
    )
    assert same(apart.outcome) == same(beside.outcome)
    assert isinstance(apart.raised, type(beside.raised)) or kind == "in a function"


def policy(task: Task[Any, Any], monkeypatch: pytest.MonkeyPatch, retry: Retry) -> None:
    monkeypatch.setattr(task, "handler", replace(task.handler, retry=retry))


@pytest.mark.parametrize(
    ("kind", "given_up_on"),
    [
        ("two arguments", ProviderDown),
        ("a lock", ProviderDown),
        ("in a function", WithLock),
        ("in a function", LookupError),
        ("endless", ProviderDown),
        ("refusing", ConnectionError),
        ("sealed", Sealed),
        ("a group", ExceptionGroup),
        ("unicode", ValueError),
    ],
)
async def test_a_class_is_given_up_on_whatever_process_raised_it(
    kind: str, given_up_on: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(unpicklable.apart, monkeypatch, Retry.fixed("1h", give_up_on=(given_up_on,)))
    assert isinstance((await attempt(unpicklable.apart, kind)).outcome, Buried)


@pytest.mark.parametrize(("number", "ending"), [(2, "retried"), (3, "dead")])
async def test_a_job_that_kills_its_processes_has_no_more_attempts_than_deliveries(
    number: int, ending: str
) -> None:
    ran = await attempt(process_app.pack, "die", number=number, attempts=10)
    assert (ran.ending, ran.error and ran.error.code) == (ending, "WORKER_LOST")


async def test_a_policy_sees_the_attributes_that_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def wait(_number: int, error: BaseException | None) -> Any:
        seen.append(error)
        return getattr(error, "wait", "1h")

    policy(unpicklable.apart, monkeypatch, Retry.custom(wait, jitter=0))
    outcome = (await attempt(unpicklable.apart, "a lock")).outcome
    assert getattr(outcome, "delay_us", None) == 7_000_000
    assert (seen[0].provider, hasattr(seen[0], "lock")) == ("afip", False)
    assert "in misbehave" in str(seen[0].__cause__)


async def test_endings_that_a_batch_returns_come_out_of_a_process_as_they_are() -> None:
    (nap,) = [await attempt(unpicklable.together, "nap")]
    assert nap.outcome == Snoozed(3 * 3_600_000_000, "")
    gone = (await attempt(unpicklable.together, "nowhere")).outcome
    assert isinstance(gone, Buried)
    assert (gone.error.name, gone.error.message) == ("Nowhere", "ana is not in the book")


def test_an_attribute_that_is_large_or_of_a_class_of_the_user_s_stays_in_the_child() -> None:
    error = FaenaError("as asked", op="test")
    for name, value in {
        "big": "x" * 100_000,
        "own": unpicklable,
        "deep": [[[[[[[[1]]]]]]]],
    }.items():
        setattr(error, name, value)
    failure = remote.describe(error)
    assert dict(failure.attributes) == {"op": "test"}


def test_a_class_that_lets_nobody_make_one_is_still_told_by_isinstance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> BaseException:
        raise TypeError("no constructor")

    failure = remote.describe(ProviderDown("afip", 500))
    monkeypatch.setattr(remote, "_new", refuse)
    error = remote.rebuild(failure)
    assert isinstance(error, ProviderDown)
    assert error.code == "HTTP_500"


@pytest.mark.parametrize("kind", ["object", "large"])
async def test_a_result_that_cannot_leave_the_process_is_dropped_and_the_job_completed(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran = await attempt(unpicklable.odd, kind)
    assert (ran.ending, ran.result) == ("completed", None)
    assert "its result was dropped: result must be" in ran.log[0]
    assert "results of task odd are dropped" in caplog.text
