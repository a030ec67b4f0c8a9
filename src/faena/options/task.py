"""The options of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from faena.errors import ConfigError, shown
from faena.options.cost import estimates
from faena.options.fields import attempt_us, check_choice, check_is, derive
from faena.options.priority import priority_of
from faena.retry import MOST_ATTEMPTS, Retry
from faena.values.duration import Duration
from faena.values.names import check_name
from faena.values.numbers import keep_whole

Run: TypeAlias = Literal["async", "thread", "process"]

_RUNS: Final = ("async", "thread", "process")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """How the jobs of one task run."""

    name: str
    """The name by which jobs find their handler; unique in its queue."""

    timeout: Duration | None = None
    """How long one attempt may run; None: as the queue, else the priority says."""

    retry: Retry | None = None
    """Its retry policy; None: the queue's."""

    attempts: int | None = None
    """The most attempts of its jobs, 1 to 1000, with the waits of the queue's policy; None: as many
    as that says. Not together with `retry`, which has its own."""

    run: Run | None = None
    """Where the handler runs; None picks async for `async def` and a thread for `def`."""

    priority: int | None = None
    """The default priority of its jobs; None: the queue's."""

    version: int = 1
    """The version of the payload's type; a worker parks jobs of a newer version than its own."""

    cost: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    """Default estimates of its jobs, for the queue's limits by cost."""

    upstreams: tuple[Any, ...] = ()
    """The upstreams that its jobs call: a job starts only when a call is allowed."""

    cheaper: Any = None
    """A coroutine function like the task's own, which runs instead while a budget of an upstream is
    used up beyond its `soft` share."""

    frugal_priority: int | None = None
    """The priority of its jobs while a budget of an upstream is used up beyond its `soft` share: a
    job that was more urgent goes back with it once, so that others spend first. None: unchanged."""

    fallback: Any = None
    """What is done instead when an upstream takes no calls or attempts are used up: a function, a
    task, `Escalate(task)`, `Manual(text)`, or a `Fallback` of one of them with its terms."""

    timeout_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("task name", self.name)
        keep_whole(self, "version", least=1, most=1_000_000)
        self._check_retry()
        if self.run is not None:
            check_choice("run", self.run, _RUNS)
        derive(self, "cost", estimates(self.cost))
        derive(self, "upstreams", _listed(self.upstreams))
        if self.priority is not None:
            derive(self, "priority", priority_of(self.priority))
        if self.frugal_priority is not None:
            derive(self, "frugal_priority", priority_of(self.frugal_priority))
        derive(self, "timeout_us", attempt_us(self.timeout))

    def _check_retry(self) -> None:
        if self.retry is not None:
            check_is("retry", self.retry, Retry)
        if self.attempts is None:
            return
        keep_whole(self, "attempts", least=1, most=MOST_ATTEMPTS)
        if self.retry is not None:
            raise ConfigError(
                f"attempts and retry must not both be given: use "
                f"retry=Retry.exponential(attempts={self.attempts}) or another policy",
                field="attempts",
                value=self.attempts,
            )


def _listed(upstreams: Any) -> tuple[Any, ...]:
    if isinstance(upstreams, list | tuple):
        return tuple(upstreams)
    raise ConfigError(
        f"upstreams must be a list such as [afip], got {shown(upstreams)}",
        field="upstreams",
        value=upstreams,
    )
