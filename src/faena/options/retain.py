"""What is kept of finished jobs, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, field

from faena.errors import ConfigError
from faena.options.fields import derive, optional_us, optional_whole
from faena.values.duration import Duration
from faena.values.keywords import known_fields


@known_fields("retain")
@dataclass(frozen=True, slots=True, kw_only=True)
class Retain:
    """How long finished jobs are kept, by age, number and size: the first bound reached applies.

    Each of the three states needs at least one bound, or the broker would fill up. An age of "0s"
    or a count of 0 keeps none; None sets no bound. In a queue with several shards, the bounds apply
    to each shard.
    """

    completed: Duration | None = "24h"
    """Age after which a completed job and its result are removed."""

    completed_count: int | None = 1_000
    """The most completed jobs kept; the oldest are removed first."""

    completed_bytes: int | None = None
    """The most bytes of payloads and results of completed jobs."""

    dead: Duration | None = "30d"
    """Age after which a dead job is removed from the dead-letter desk."""

    dead_count: int | None = 10_000
    """The most dead jobs kept; the oldest are removed first."""

    dead_bytes: int | None = None
    """The most bytes of payloads of dead jobs."""

    cancelled: Duration | None = "24h"
    """Age after which a cancelled job is removed."""

    cancelled_count: int | None = 1_000
    """The most cancelled jobs kept; the oldest are removed first."""

    cancelled_bytes: int | None = None
    """The most bytes of payloads of cancelled jobs."""

    completed_us: int | None = field(init=False, repr=False, compare=False)
    dead_us: int | None = field(init=False, repr=False, compare=False)
    cancelled_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for state in ("completed", "dead", "cancelled"):
            age = optional_us(f"retain {state}", getattr(self, state))
            bounds = [age]
            for unit in ("count", "bytes"):
                name = f"{state}_{unit}"
                bounds.append(optional_whole(f"retain {name}", getattr(self, name), least=0))
                derive(self, name, bounds[-1])
            if bounds == [None, None, None]:
                raise ConfigError(
                    f"retain must bound {state} jobs by age, count or bytes, got none",
                    field=state,
                )
            derive(self, f"{state}_us", age)
