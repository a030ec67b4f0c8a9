"""How a worker process runs, and what it serves."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from faena.declaring.handler import Handler
from faena.options import QueueOptions
from faena.options.fields import check_choice
from faena.pool import SERVES
from faena.sharding.table import Shard
from faena.values.names import check_label
from faena.values.numbers import check_real, keep_whole

_LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A queue and what a worker needs to serve it."""

    options: QueueOptions
    handlers: Mapping[str, Handler]

    shards: Callable[[], Awaitable[Sequence[Shard]]] | None = None
    """Tells where its jobs live now; None when that is always the one shard of the queue's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one worker process runs."""

    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """What leases, logs and the dead-letter desk call it."""

    concurrency: int | None = None
    """Jobs of all queues together at a time; None adds up the queues' own."""

    grace_s: float = 30.0
    """How long running jobs may go on after a stop was asked for."""

    memory_limit: int | None = None
    """Bytes of resident memory after which the worker finishes and leaves to be restarted."""

    rate_max: int | None = None
    """Claims this process may make in `rate_s` seconds; None for no limit of its own."""

    rate_s: float = 60.0
    """The seconds that `rate_max` is of."""

    stuck_s: float = 15.0
    """How long the event loop may stand still beyond the longest timeout of the jobs it runs."""

    leaves_when_stuck: bool = False
    """End the process, for a supervisor to replace it, when its loop is stuck; else only say so."""

    until_empty: bool = False
    """Stop when no queue has anything ready, delayed or running."""

    serves: str = "all"
    """Which shards of its queues: "all", "shared" by tenants, or "dedicated" to one of them."""

    def __post_init__(self) -> None:
        check_label("worker name", self.name)
        check_choice("serves", self.serves, SERVES)
        bounds = {"concurrency": 10_000, "memory_limit": 10**15, "rate_max": 10**9}
        for what, most in bounds.items():
            if getattr(self, what) is not None:
                keep_whole(self, what, least=1, most=most)
        for what in ("grace_s", "rate_s", "stuck_s"):
            check_real(what, getattr(self, what), least=0, most=_LONGEST_S)
