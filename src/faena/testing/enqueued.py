"""Checks which jobs were enqueued, and describes them when a test fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

import msgspec

from faena.app import Faena
from faena.errors import ConfigError, shown, unknown_name
from faena.job import JobView
from faena.options import priority_of
from faena.states import State
from faena.task import Task
from faena.testing.clock import Clock
from faena.values.duration import Duration, describe, to_us

_LONGEST_PAYLOAD = 200
_MOST_SHOWN = 20


class Filters(TypedDict, total=False):
    """What a test expects of a job; omitted values match anything."""

    payload: Any
    """Equal to this, after both are encoded and decoded by the task's codec."""
    where: Callable[[Any], object]
    """A function that must be true for the payload as the handler receives it."""
    tenant: str | None
    key: str | None
    id: str
    priority: int | str
    headers: Mapping[str, str]
    """Headers that it must have."""
    state: State | str
    due_in: Duration
    """Delayed, and ready after exactly this time from now."""


Check = Callable[[JobView], bool]


def check_task(app: Faena, task: Any) -> None:
    """Refuse what is no task, such as its name."""
    if not isinstance(task, Task):
        known = [f"{queue.name}/{name}" for queue in app.queues.values() for name in queue.tasks]
        raise ConfigError(
            f"task must be a task, as @queue.task returns it, got {shown(task)}; "
            f"app {app.name} has {', '.join(sorted(known)) or 'none'}",
            field="task",
            value=task,
        )


def checks_of(task: Task[Any, Any], filters: Filters, clock: Clock) -> list[Check]:
    """One check for each expected value; values that no job can have are refused."""
    for name in filters:
        if name not in Filters.__annotations__:
            known = Filters.__annotations__
            raise unknown_name("expectation", name, known, field="expectation", value=name)
    checks: list[Check] = [lambda job: (job.queue, job.task) == (task.queue, task.name)]
    if "where" in filters:
        where = filters["where"]
        checks.append(lambda job: bool(where(_payload(task, job))))
    if "headers" in filters:
        headers = filters["headers"]
        checks.append(lambda job: headers.items() <= job.headers.items())
    for name, value in _plain(task, filters, clock).items():
        checks.append(partial(_is_equal, name, value))
    return checks


def _plain(task: Task[Any, Any], filters: Filters, clock: Clock) -> dict[str, Any]:
    """Field of a job → the value that it must equal."""
    wanted: dict[str, Any] = dict(filters)
    for other in ("where", "headers"):
        wanted.pop(other, None)
    if "payload" in wanted:
        spec = task.spec(task.draft(wanted["payload"]))
        wanted["payload"] = msgspec.json.decode(spec.payload)
    if "priority" in wanted:
        wanted["priority"] = priority_of(wanted["priority"])
    if "state" in wanted:
        state, known = str(wanted["state"]), [one.value for one in State]
        if state not in known:
            raise unknown_name("state", state, known, field="state", value=state)
    if "due_in" in wanted:
        wanted["due_at"] = clock() + to_us("due_in", wanted.pop("due_in"))
    return wanted


def _is_equal(name: str, value: Any, job: JobView) -> bool:
    found = msgspec.json.decode(job.payload) if name == "payload" else getattr(job, name)
    return found == value


def _payload(task: Task[Any, Any], job: JobView) -> Any:
    codec = task.handler.payload
    return None if codec is None else codec.decode(bytes(job.payload))


def describe_all(jobs: Sequence[JobView], clock: Clock) -> str:
    """All jobs, one line each, for the message of a failed test."""
    if not jobs:
        return "nothing was enqueued"
    lines = [f"  {_describe(job, clock)}" for job in jobs[:_MOST_SHOWN]]
    if len(jobs) > _MOST_SHOWN:
        lines.append(f"  … and {len(jobs) - _MOST_SHOWN} more")
    return "these were enqueued:\n" + "\n".join(lines)


def _describe(job: JobView, clock: Clock) -> str:
    facts = [f"{job.queue}/{job.task}", job.state.value]
    if job.due_at is not None:
        facts.append(f"due_in={describe(job.due_at - clock())!r}")
    for name in ("tenant", "key"):
        value = getattr(job, name)
        if value is not None:
            facts.append(f"{name}={value!r}")
    facts.append(f"priority={job.priority}")
    if job.headers:
        facts.append(f"headers={job.headers}")
    facts.append(f"payload={_short(bytes(job.payload))}")
    return " ".join(facts)


def _short(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_PAYLOAD else text[:_LONGEST_PAYLOAD] + "…"


def describe_filters(task: Task[Any, Any], filters: Filters) -> str:
    """The task and the expected values, for the message of a failed test."""
    facts = "".join(f" {name}={value!r}" for name, value in filters.items())
    return f"{task.queue}/{task.name}{facts}"
