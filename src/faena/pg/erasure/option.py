"""What a program says about erasure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from faena.options.fields import derive
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.names import check_name
from faena.values.numbers import keep_whole

_HOUR_US: Final = 3_600_000_000


@known_fields("erasure")
@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """How requests to erase a tenant's data are carried out."""

    queue: str = "erasures"
    """The queue of its jobs; created if the app has none of this name."""

    rows: int = 1000
    """The most rows that are deleted in one transaction: 1 to 100,000."""

    wait: Duration = "30s"
    """How long it waits before it looks again for live jobs, or for an archiver at work."""

    lease: Duration = "1m"
    """How long an archiver is silent before it counts as dead; not less than archivers have."""

    wait_us: int = field(init=False, repr=False, compare=False)
    lease_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("queue", self.queue)
        keep_whole(self, "rows", least=1, most=100_000)
        derive(self, "wait_us", to_us("wait", self.wait, least_us=1000, most_us=24 * _HOUR_US))
        derive(self, "lease_us", to_us("lease", self.lease, least_us=1000, most_us=_HOUR_US))
