"""How a worker process runs, and what it serves."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from faena.declaring.handler import Handler
from faena.errors import ConfigError, shown
from faena.limits import Limit
from faena.options import QueueOptions
from faena.options.fields import check_choice, derive
from faena.pool import SERVES
from faena.sharding.routing_table import Shard
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.names import check_label
from faena.values.numbers import keep_whole

_LONGEST_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A queue, with everything a worker needs to serve it."""

    options: QueueOptions
    handlers: Mapping[str, Handler]

    shards: Callable[[], Awaitable[Sequence[Shard]]] | None = None
    """Returns the shards of the queue; None: always the one shard with the queue's name."""


@known_fields("worker")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one worker process runs."""

    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """The worker's name in leases, logs and at the dead-letter desk."""

    concurrency: int | None = None
    """Running jobs at a time, over all queues; None: the sum of the queues' concurrency."""

    grace: Duration = "30s"
    """How long running jobs may continue after a stop was requested: up to 1d."""

    memory_limit: int | None = None
    """Bytes of resident memory above which the worker stops, to be restarted."""

    rate: Limit | str | None = None
    """A limit on the claims of this process, such as "100/min"; None: no limit."""

    stuck: Duration = "15s"
    """How long the event loop may be blocked beyond the longest timeout of its jobs: up to 1d."""

    leaves_when_stuck: bool = False
    """If the loop is stuck, exit so that a supervisor can replace the process; else only log it."""

    until_empty: bool = False
    """Stop when no queue has ready, delayed or running jobs."""

    serves: str = "all"
    """Which shards to serve: "all", "shared" by tenants, or "dedicated" to one tenant each."""

    grace_s: float = field(init=False, repr=False, compare=False)
    stuck_s: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_label("worker name", self.name)
        check_choice("serves", self.serves, SERVES)
        for what, most in {"concurrency": 10_000, "memory_limit": 10**15}.items():
            if getattr(self, what) is not None:
                keep_whole(self, what, least=1, most=most)
        derive(self, "grace_s", to_us("grace", self.grace, most_us=_LONGEST_US) / 1e6)
        derive(self, "stuck_s", to_us("stuck", self.stuck, most_us=_LONGEST_US) / 1e6)
        derive(self, "rate", None if self.rate is None else _rate(self.rate))


def _rate(given: Any) -> Limit:
    limit = given if isinstance(given, Limit) else _read(given)
    if limit.cost is not None:
        raise ConfigError(f"rate must be a limit on claims, got {limit}", field="rate", value=given)
    return limit


def _read(given: Any) -> Limit:
    try:
        return Limit(given)
    except ConfigError:
        raise ConfigError(
            f"rate must be one or more in a window such as '50/s' or '1000/h', got {shown(given)}",
            field="rate",
            value=given,
        ) from None
