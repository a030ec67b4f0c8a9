"""When a queue slows its producers down, and when it refuses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from faena.duration import Duration, to_us
from faena.errors import ConfigError
from faena.number import check_whole
from faena.options.fields import derive, optional_whole

_MANY: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backpressure:
    """How deep a queue (waiting, delayed and running jobs together) may become."""

    soft: int = 100
    """Depth from which a producer is told how long it should wait."""

    hard: int = 500
    """Depth from which jobs are refused with `Overloaded`; more than `soft`."""

    tenant_soft: int | None = None
    """The same for the live jobs of each tenant, where the queue has lanes; None sets no bound."""

    tenant_hard: int | None = None

    max_delay: Duration = "5s"
    """The suggested wait just below `hard`; it grows evenly from nothing at `soft`."""

    max_delay_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_whole("backpressure soft", self.soft, least=0, most=_MANY)
        check_whole("backpressure hard", self.hard, least=1, most=_MANY)
        optional_whole("backpressure tenant_soft", self.tenant_soft, least=0)
        optional_whole("backpressure tenant_hard", self.tenant_hard, least=1)
        _check_rising("soft", self.soft, "hard", self.hard)
        _check_rising("tenant_soft", self.tenant_soft, "tenant_hard", self.tenant_hard)
        derive(self, "max_delay_us", to_us("backpressure max_delay", self.max_delay))


def _check_rising(low: str, soft: int | None, high: str, hard: int | None) -> None:
    if soft is not None and hard is not None and soft >= hard:
        raise ConfigError(
            f"backpressure {low} must be less than {high} ({hard}), got {soft}",
            field=low,
            value=soft,
        )
