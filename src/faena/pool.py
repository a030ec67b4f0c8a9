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
"""What workers may serve of a queue that lives in several shards."""

_SIZE = re.compile(r"([0-9]{1,9})\s*(Ki|Mi|Gi|KB|MB|GB)")
_LEAST = 16 << 20
"""Less than any Python process has: one with such a bound would be replaced for ever."""
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
    """What `--pool` and WORKER_POOL call it."""

    queues: tuple[str, ...]
    """The queues its workers serve; at least one."""

    instances: int = 1
    """Processes: 1 to 100."""

    concurrency: int | None = None
    """Jobs of all queues together in one process; None adds up the queues' own."""

    memory: str | None = None
    """Resident memory after which a process finishes and is restarted: "512Mi", at least "16Mi";
    None: no limit."""

    serves: str = "all"
    """Which shards of the queues: "all", "shared" (without those that tenants have of their own) or
    "dedicated" (only those)."""

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
    """Bytes of a text such as "512Mi" or "1GB": a whole number with its unit."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = int(found.group(1)) * _UNITS[found.group(2)] if found else 0
    if size < _LEAST:
        raise ConfigError(
            f'{what} must be a size with its unit, at least "16Mi", such as "512Mi" or "1Gi", '
            f"got {shown(value)}",
            field=what,
            value=value,
        )
    return size
