"""What runs in a worker process beside the work, and is started and stopped with it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Hear = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundServices:
    """Services, and what they are told."""

    services: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    """Each runs until it is cancelled; one that fails ends the worker."""

    on_outbox: Callable[[str], None] = lambda _: None
    """Hears of shards with something to be carried."""

    hears: Mapping[str, Hear] = field(default_factory=dict[str, Hear])
    """Channels by name, and who is told (queue, job) of a message."""
