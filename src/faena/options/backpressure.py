"""When a queue slows its producers down, and when it refuses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from faena.duration import Duration, to_us
from faena.errors import ConfigError
from faena.number import check_whole
from faena.options.fields import derive

_MANY: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backpressure:
    """How deep a queue (waiting, delayed and running jobs together) may become."""

    soft: int = 100
    """Depth from which a producer is told how long it should wait."""

    hard: int = 500
    """Depth from which jobs are refused with `Overloaded`; more than `soft`."""

    max_delay: Duration = "5s"
    """The suggested wait just below `hard`; it grows evenly from nothing at `soft`."""

    max_delay_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_whole("backpressure soft", self.soft, least=0, most=_MANY)
        check_whole("backpressure hard", self.hard, least=1, most=_MANY)
        if self.soft >= self.hard:
            raise ConfigError(
                f"backpressure soft must be less than hard ({self.hard}), got {self.soft}",
                field="soft",
                value=self.soft,
            )
        derive(self, "max_delay_us", to_us("backpressure max_delay", self.max_delay))
