"""When a queue slows down its producers, and when it refuses jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from faena.errors import ConfigError
from faena.options.fields import derive
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.numbers import keep_whole

_MANY: Final = 1_000_000_000
_BOUNDS: Final = ("soft", "hard", "tenant_soft", "tenant_hard")


@known_fields("backpressure")
@dataclass(frozen=True, slots=True, kw_only=True)
class Backpressure:
    """How many live jobs (waiting, delayed and running) a queue may have.

    At least one of the four bounds must be given; None sets no bound.
    """

    soft: int | None = None
    """Depth from which receipts tell the producer how long to wait."""

    hard: int | None = None
    """Depth from which jobs are refused with `Overloaded`; greater than `soft`."""

    tenant_soft: int | None = None
    """Like `soft`, for the live jobs of each tenant; the queue must have lanes."""

    tenant_hard: int | None = None
    """Like `hard`, for the live jobs of each tenant; greater than `tenant_soft`."""

    max_delay: Duration = "5s"
    """The suggested wait just below `hard`; it grows linearly from zero at `soft`. Without a hard
    bound, it is the wait from the soft bound on."""

    max_delay_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bounds = {name: getattr(self, name) for name in _BOUNDS}
        for name, bound in bounds.items():
            if bound is not None:
                least = 0 if name.endswith("soft") else 1
                keep_whole(self, name, least=least, most=_MANY, what=f"backpressure {name}")
        if not any(bound is not None for bound in bounds.values()):
            raise ConfigError(
                "backpressure must be given a bound, such as hard=500 or tenant_hard=50, got none",
                field="backpressure",
            )
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
