"""Services that run in a worker process beside its jobs, and start and stop with the worker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Hear = Callable[[str, str], None]
Service = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundServices:
    """The services of one worker, and the callbacks that notify them."""

    services: Sequence[Service] = ()
    """Each runs until it is cancelled; one that fails ends the worker."""

    on_outbox: Callable[[str], None] = lambda _: None
    """Called with the name of a shard that has messages to relay."""

    hears: Mapping[str, Hear] = field(default_factory=dict[str, Hear])
    """Channel name → callback, called with (queue, job) for each message."""
