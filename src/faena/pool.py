"""Worker pools: named groups of queues with their own processes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from faena.errors import ConfigError, shown
from faena.options.fields import check_choice
from faena.values.names import check_name
from faena.values.numbers import keep_whole

SERVES = ("all", "shared", "dedicated")
"""Which shards of a queue a worker may serve."""

_SIZE = re.compile(r"([0-9]{1,9})\s*(Ki|Mi|Gi|KB|MB|GB)")
_LEAST = 16 << 20
"""Less than any Python process uses: with such a bound, it would be restarted forever."""
_UNITS = {
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Processes that serve the same queues."""

    name: str
    """Its name for `--pool` and WORKER_POOL."""

    queues: tuple[str, ...]
    """The queues its workers serve; at least one."""

    instances: int = 1
    """The number of processes: 1 to 100."""

    concurrency: int | None = None
    """Jobs of all queues together that one process runs at a time; None: the sum of the queues'
    `concurrency`."""

    memory: str | None = None
    """Resident memory above which a process finishes its jobs and is restarted: "512Mi", at least
    "16Mi"; None: no limit."""

    serves: str = "all"
    """Which shards of the queues: "all", "shared" (not those of dedicated tenants) or "dedicated"
    (only those)."""

    memory_bytes: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("pool", self.name)
        if not self.queues:
            raise ConfigError(f"pool {self.name} must have at least one queue, got none")
        keep_whole(self, "instances", least=1, most=100)
        if self.concurrency is not None:
            keep_whole(self, "concurrency", least=1, most=10_000)
        check_choice("serves", self.serves, SERVES)
        size = None if self.memory is None else read_size("memory", self.memory)
        object.__setattr__(self, "memory_bytes", size)


def read_size(what: str, value: Any) -> int:
    """The bytes of a string such as "512Mi" or "1GB": a whole number and a unit."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = int(found.group(1)) * _UNITS[found.group(2)] if found else 0
    if size < _LEAST:
        raise ConfigError(
            f'{what} must be a size with a unit, at least "16Mi", such as "512Mi" or "1Gi", '
            f"got {shown(value)}",
            field=what,
            value=value,
        )
    return size
