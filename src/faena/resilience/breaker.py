"""When calls to an upstream stop, and how they begin again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from faena.errors import ConfigError, shown
from faena.options.fields import check_choice, derive
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.numbers import check_real, keep_whole

_SHORTEST_US: Final = 100_000
_MOST_VOLUME: Final = 1_000_000
_MOST_PROBES: Final = 1_000
_DURATIONS: Final = ("window", "open", "longest", "ramp")


@known_fields("breaker")
@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A circuit breaker: closed, open, half-open, recovering, closed again.

    It opens when, of at least `volume` calls in the last `window`, the share `errors` has failed,
    or the share `slow` took longer than `slow_after`; and when nine tenths of the last `volume`
    calls have failed.
    After `open` it lets `probes` calls through. If they succeed, more and more calls are allowed
    during `ramp`; if one fails, it opens again for twice as long, up to `longest`.
    """

    errors: float = 0.5
    """The share of failed calls that opens it, above 0 and up to 1."""

    volume: int = 20
    """How many calls must have ended in the window before it may open."""

    window: Duration = "1m"
    """The time that is looked at."""

    open: Duration = "30s"
    """How long no call is made before the first probe."""

    longest: Duration = "10m"
    """The longest it may become when the breaker opens again and again."""

    probes: int = 1
    """How many calls must succeed before it recovers, and how many are made at once."""

    ramp: Duration = "30s"
    """How long it takes to recover: calls double ten times in this time, then all are allowed."""

    slow: float | None = None
    """The share of slow calls that opens it; None for no such rule."""

    slow_after: Duration | None = None
    """From when on a call is slow; given with `slow`."""

    per: Literal["upstream", "tenant"] = "upstream"
    """Whether there is one breaker for all calls, or one for those of each tenant."""

    window_us: int = field(init=False, repr=False, compare=False)
    open_us: int = field(init=False, repr=False, compare=False)
    longest_us: int = field(init=False, repr=False, compare=False)
    ramp_us: int = field(init=False, repr=False, compare=False)
    slow_after_us: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derive(self, "errors", _share("errors", self.errors))
        keep_whole(self, "volume", least=1, most=_MOST_VOLUME, what="breaker volume")
        keep_whole(self, "probes", least=1, most=_MOST_PROBES, what="breaker probes")
        check_choice("breaker per", self.per, ("upstream", "tenant"))
        for name in _DURATIONS:
            us = to_us(f"breaker {name}", getattr(self, name), least_us=_SHORTEST_US)
            derive(self, f"{name}_us", us)
        if self.longest_us < self.open_us:
            raise ConfigError(
                f"breaker longest must be at least open ({self.open}), got {shown(self.longest)}",
                field="longest",
                value=self.longest,
            )
        self._check_slow()

    def _check_slow(self) -> None:
        if (self.slow is None) != (self.slow_after is None):
            missing = "slow" if self.slow is None else "slow_after"
            raise ConfigError(
                "breaker slow and slow_after must be given together, "
                f"got no {missing}; such as slow=0.5, slow_after='10s'",
                field=missing,
            )
        if self.slow is not None:
            derive(self, "slow", _share("slow", self.slow))
        after = self.slow_after
        after_us = None if after is None else to_us("breaker slow_after", after, least_us=1_000)
        derive(self, "slow_after_us", after_us)


def _share(name: str, value: object) -> float:
    """Above 0, for a share of none would open at the first call that is made."""
    return check_real(f"breaker {name}", value, least=0.001, most=1)
