"""`@queue.batch`: what it reads from a handler, and what it refuses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from faena import Discard, Faena, Job, Queue, Snooze
from faena.errors import BatchError, ConfigError, PayloadError
from faena.worker.execute.batch import endings_of


@dataclass
class Mail:
    to: str


@pytest.fixture
def queue() -> Queue:
    return Faena("shop", "redis://localhost").queue("mail", concurrency=1000)


async def send(mails: list[Mail]) -> None: ...


async def send_with_jobs(mails: list[Mail], jobs: list[Job]) -> list[int | Exception]:
    return [len(jobs) for _ in mails]


def no_arguments() -> None: ...


def no_list(mail: Mail) -> None: ...


def only_jobs(jobs: list[Job]) -> None: ...


def jobs_first(jobs: list[Job], mails: list[Mail]) -> None: ...


def one_job(mails: list[Mail], job: Job) -> None: ...


def three(mails: list[Mail], jobs: list[Job], more: int) -> None: ...


def splat(*mails: Mail) -> None: ...


def no_list_back(mails: list[Mail]) -> int:
    return len(mails)


def test_a_task_is_typed_by_one_job(queue: Queue) -> None:
    task = queue.batch(size=10, wait="1s", per_tenant=True, name="bulk")(send_with_jobs)
    handler = task.handler
    assert (handler.name, handler.runner, handler.run) == ("bulk", "batch", "async")
    assert handler.payload is not None
    assert handler.payload.decode(b'{"to":"ana"}') == Mail("ana")
    assert handler.result.encode(7) == b"7"
    with pytest.raises(PayloadError, match="expected int"):
        handler.result.encode("seven")
    options = handler.batch
    assert options is not None
    assert (options.size, options.wait_us, options.per_tenant) == (10, 1_000_000, True)


def test_size_and_wait_have_defaults_and_may_be_given_without_their_names(queue: Queue) -> None:
    plain = queue.batch()(send).handler.batch
    short = queue.batch(7, timedelta(0), name="other")(send).handler.batch
    assert plain is not None
    assert short is not None
    assert (plain.size, plain.wait_us, plain.per_tenant) == (50, 200_000, False)
    assert (short.size, short.wait_us) == (7, 0)


def returning(hint: Any) -> Callable[..., Any]:
    def handler(mails: Sequence[Any]) -> Any: ...

    handler.__annotations__["return"] = hint
    return handler


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (list[str], "a"),
        (list[str] | None, "a"),
        (Sequence[str | BaseException], "a"),
        (list[str | Snooze | Discard], "a"),
        (list[int | str | ValueError], "a"),
        (list[str | None], "a"),
        (tuple[str, ...], "a"),
        (list, {"any": "thing"}),
        (list[Any], [1]),
        (Any, 1.5),
        (None, None),
        (list[Exception | None], None),
    ],
    ids=str,
)
def test_a_result_is_an_entry_without_the_exceptions(queue: Queue, hint: Any, value: Any) -> None:
    codec = queue.batch(name="it")(returning(hint)).handler.result
    assert codec.decode(codec.encode(value)) == value


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "size over 1,000": ({"size": 1001}, "size must be a whole number from 1 to 1000, got 1001"),
    "size 0": ({"size": 0}, "from 1 to 1000, got 0"),
    "negative size": ({"size": -5}, "from 1 to 1000, got -5"),
    "size that is no whole number": ({"size": 2.5}, "from 1 to 1000, got 2.5"),
    "size that is a text": ({"size": "50"}, "from 1 to 1000, got '50'"),
    "size that is a truth": ({"size": True}, "from 1 to 1000, got True"),
    "size that is the function": (
        {"size": send},
        r"options first, such as @queue\.batch\(size=50\), got <function send",
    ),
    "negative wait": (
        {"wait": timedelta(seconds=-1)},
        "wait must be a duration from 0s to 10m, got",
    ),
    "long wait": ({"wait": "11m"}, "wait must be a duration from 0s to 10m, got '11m'"),
    "wait without a unit": (
        {"wait": 5},
        "wait must be a timedelta, or a string .*, got 5",
    ),
    "per_tenant": ({"per_tenant": "yes"}, "per_tenant must be a bool, got 'yes'"),
    "unknown option": ({"per_tennant": True}, "batch option .*; did you mean 'per_tenant'"),
    "timeout": ({"timeout": "0s"}, "timeout must be a duration from 1ms"),
    "name": ({"name": "Send Mail"}, "task name must be"),
    "place": ({"run": "fiber"}, "run must be .*, got 'fiber'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_before_anything_is_registered(queue: Queue, case: str) -> None:
    options, expected = BAD[case]
    with pytest.raises(ConfigError, match=expected):
        queue.batch(**options)
    assert queue.tasks == {}


def test_a_batch_without_a_size_fits_into_any_queue() -> None:
    queue = Faena("shop", "redis://localhost").queue("mail")
    batch = queue.batch()(send).handler.batch
    assert batch is not None
    assert (batch.size, queue.options.concurrency) == (5, 5)


def test_a_batch_must_fit_into_the_queues_slots() -> None:
    queue = Faena("shop", "redis://localhost").queue("mail", concurrency=20)
    expected = "at most 20, the concurrency of queue mail, got 21"
    with pytest.raises(ConfigError, match=expected):
        queue.batch(size=21)
    assert queue.tasks == {}
    queue.batch(size=20)(send)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (no_arguments, "must take a list of payloads, .*, got no parameter"),
        (no_list, "must take a list of payloads, .*, got a parameter mail: 'Mail'"),
        (only_jobs, "got a parameter jobs"),
        (jobs_first, "got a parameter jobs"),
        (one_job, "got a parameter job: 'Job'"),
        (three, "got a parameter more: 'int'"),
        (splat, r"got a parameter \*mails"),
        (no_list_back, "must return a list with an entry for each payload, or None, got <class"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_handler_of_another_shape_is_refused(
    queue: Queue, function: Callable[..., Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        queue.batch()(function)
    assert queue.tasks == {}


def test_a_name_is_taken_by_batches_and_plain_tasks_alike(queue: Queue) -> None:
    queue.batch(name="send")(send)
    with pytest.raises(ConfigError, match="registered twice"):
        queue.task(name="send")(send)
    with pytest.raises(ConfigError, match="registered twice"):
        queue.batch(name="send")(send)


def test_nothing_else_than_a_function_can_be_a_batch_handler(queue: Queue) -> None:
    with pytest.raises(ConfigError, match="a task must be a function"):
        queue.batch()(functools.partial(send, []))  # type: ignore[call-overload]


def test_endings_are_one_for_each_job_or_none_for_all() -> None:
    error = ValueError()
    assert endings_of(None, 2) == [None, None]
    assert endings_of([1, error], 2) == [1, error]
    assert endings_of((1, 2), 2) == (1, 2)
    wanted = "must return None or a list with an entry for each of its 2 payloads, got"
    for value, got in (([1], "1"), ([1, 2, 3], "3"), ("ab", "str"), ({1: 2}, "dict"), (7, "int")):
        with pytest.raises(BatchError, match=f"{wanted} {got}"):
            endings_of(value, 2)
