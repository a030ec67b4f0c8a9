"""The options of a task whose handler is called once for many jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from faena.errors import ConfigError
from faena.options.fields import check_is, derive
from faena.options.task import TaskOptions
from faena.values.duration import Duration, to_us
from faena.values.numbers import keep_whole

DEFAULT_SIZE: Final = 50
_MOST: Final = 1_000
_LONGEST_WAIT_US: Final = 600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(TaskOptions):
    """How jobs of one task are gathered into batches; `timeout` applies to the whole call."""

    size: int = DEFAULT_SIZE
    """The most jobs in one call: 1 to 1,000, and at most the queue's `concurrency`. Default: 50, or
    the concurrency if that is less."""

    wait: Duration = "200ms"
    """How long the first job waits for others: up to 10m; with "0s", not at all."""

    per_tenant: bool = False
    """Whether each call gets jobs of one tenant only."""

    wait_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        TaskOptions.__post_init__(
            self
        )  # no super(): with slots, dataclass replaces the class defined here
        keep_whole(self, "size", least=1, most=_MOST)
        derive(self, "wait_us", to_us("wait", self.wait, most_us=_LONGEST_WAIT_US))
        check_is("per_tenant", self.per_tenant, bool)


def check_batch(queue: str, batch: BatchOptions, most: int) -> None:
    """Refuse batches that a worker could not fill."""
    if batch.size > most:
        raise ConfigError(
            f"size of a batch must be at most {most}, the concurrency of queue {queue}, "
            f"got {batch.size}",
            field="size",
            value=batch.size,
        )
