"""When a failed attempt is retried, and when a job is given up.

A policy is a curve (how long to wait after the n-th attempt) with common rules: how many attempts,
how much jitter, the shortest wait, and the exceptions that bury a job at once. It has no clock and
no randomness of its own: the caller passes `random`, so tests are deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple, Never, Protocol, TypeAlias, TypedDict, Unpack

import msgspec

from faena.errors import ConfigError, shown, unknown_name
from faena.values.duration import LONGEST_US, Duration, to_us
from faena.values.numbers import check_real, keep_whole

MOST_ATTEMPTS: Final = 1_000

Random: TypeAlias = Callable[[], float]
"""Returns numbers from 0 up to, but not including, 1."""

DelayFunction: TypeAlias = Callable[[int, BaseException | None], Duration]
"""A user's own curve: from the attempt that just failed (from 1) and its error to a duration."""


class Delay(NamedTuple):
    """How long to wait; `fault` describes the error of a custom function, if it failed."""

    us: int
    fault: str | None


class Curve(Protocol):
    """The wait after the `attempt`-th failure, before jitter."""

    def delay_us(self, attempt: int, error: BaseException | None) -> int: ...


@dataclass(frozen=True, slots=True)
class Exponential:
    """base, base·factor, base·factor², … up to cap."""

    base_us: int
    factor: float
    cap_us: int

    def delay_us(self, attempt: int, error: BaseException | None) -> int:  # noqa: ARG002 - a Curve
        try:
            grown = self.base_us * self.factor ** (attempt - 1)
        except OverflowError:
            return self.cap_us
        return int(min(grown, self.cap_us))


@dataclass(frozen=True, slots=True)
class Steps:
    """One wait per attempt; the last one repeats."""

    waits_us: tuple[int, ...]

    def delay_us(self, attempt: int, error: BaseException | None) -> int:  # noqa: ARG002 - a Curve
        return self.waits_us[min(attempt, len(self.waits_us)) - 1]


@dataclass(frozen=True, slots=True)
class Custom:
    """A user's function; what it returns is checked at every call."""

    function: DelayFunction

    def delay_us(self, attempt: int, error: BaseException | None) -> int:
        return to_us("retry delay", self.function(attempt, error))


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy as it travels with a job: everything but functions and classes."""

    attempts: int
    jitter: float
    floor_us: int
    steps: tuple[int, ...] = ()
    growth: tuple[int, float, int] | None = None
    """Base, factor and cap, instead of steps."""

    def policy(self, give_up_on: tuple[type[BaseException], ...]) -> Retry:
        """The policy, with the errors that the job's task gives up on."""
        floor = timedelta(microseconds=self.floor_us)
        curve = Exponential(*self.growth) if self.growth else Steps(self.steps)
        return Retry(curve, self.attempts, jitter=self.jitter, floor=floor, give_up_on=give_up_on)


_FALLBACK: Final = Exponential(base_us=1_000_000, factor=2.0, cap_us=300_000_000)


class Rules(TypedDict, total=False):
    """What every way of building a policy accepts; see the fields of `Retry`."""

    jitter: float
    floor: Duration
    give_up_on: tuple[type[BaseException], ...] | type[BaseException]


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy; build one with a class method such as `Retry.exponential()`."""

    curve: Curve
    """The wait after each attempt, before jitter."""

    attempts: int = 3
    """How often the handler may run in total, including the first time: 1 to 1000."""

    jitter: float = field(default=0.2, kw_only=True)
    """The random part of each wait, added or subtracted: 0 (none) to 1. 0.2 is ±20 %."""

    floor: Duration = field(default="1s", kw_only=True)
    """The shortest wait, after jitter. "0s" sets no minimum."""

    give_up_on: tuple[type[BaseException], ...] = field(default=(), kw_only=True)
    """Exceptions (or subclasses of them) that bury the job at once; a single one needs no tuple."""

    floor_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_curve(self.curve)
        keep_whole(self, "attempts", least=1, most=MOST_ATTEMPTS, what="retry attempts")
        check_real("retry jitter", self.jitter, least=0, most=1)
        object.__setattr__(self, "give_up_on", _exceptions(self.give_up_on))
        object.__setattr__(self, "floor_us", to_us("retry floor", self.floor))

    @classmethod
    def exponential(
        cls,
        *,
        base: Duration = "1s",
        factor: float = 2,
        cap: Duration = "5m",
        attempts: int = 3,
        **rules: Unpack[Rules],
    ) -> Retry:
        """1s, 2s, 4s, … up to five minutes; factor 1 to 100."""
        base_us, cap_us = to_us("retry base", base), to_us("retry cap", cap)
        if base_us > cap_us:
            raise ConfigError(
                f"retry base must be at most the cap of {cap!r}, got {shown(base)}",
                field="retry base",
                value=base,
            )
        growth = check_real("retry factor", factor, least=1, most=100)
        policy = cls._with(Exponential(base_us, growth, cap_us), attempts, rules)
        if policy.floor_us > cap_us:
            raise ConfigError(
                f"retry floor must be at most the cap of {cap!r}, got {shown(policy.floor)}"
                f"{'' if 'floor' in rules else ', the default; give floor= too'}",
                field="retry floor",
                value=policy.floor,
            )
        return policy

    @classmethod
    def fixed(cls, wait: Duration = "30s", *, attempts: int = 3, **rules: Unpack[Rules]) -> Retry:
        """The same wait after every attempt."""
        return cls._with(Steps((to_us("retry wait", wait),)), attempts, rules)

    @classmethod
    def steps(cls, *waits: Duration, attempts: int | None = None, **rules: Unpack[Rules]) -> Retry:
        """One wait per attempt; the last one repeats. By default, each wait is used once."""
        if not waits:
            raise ConfigError("retry steps must be at least one duration, got none", field="steps")
        waits_us = tuple(to_us("retry step", wait) for wait in waits)
        return cls._with(Steps(waits_us), len(waits) + 1 if attempts is None else attempts, rules)

    @classmethod
    def custom(cls, function: DelayFunction, *, attempts: int = 3, **rules: Unpack[Rules]) -> Retry:
        """`function(attempt, error)` returns the wait; if it fails, 1s, 2s, 4s, … is used."""
        if not callable(function):
            raise ConfigError(
                f"retry function must be callable with (attempt, error), got {shown(function)}",
                field="function",
                value=function,
            )
        return cls._with(Custom(function), attempts, rules)

    @classmethod
    def never(cls, **rules: Never) -> Retry:
        """One attempt: a failure buries the job. Takes no options."""
        for name, value in rules.items():
            raise ConfigError(
                f"Retry.never takes no options, got {shown(name)}: there is one attempt and no "
                f"wait; use Retry.fixed, Retry.steps or Retry.exponential",
                field=name,
                value=value,
            )
        return cls(Steps((0,)), attempts=1)

    @classmethod
    def _with(cls, curve: Curve, attempts: int, rules: Rules) -> Retry:
        known = ("attempts", *Rules.__annotations__)
        for name in rules:
            if name not in known:
                raise unknown_name("retry option", name, known)
        given: dict[str, Any] = {**rules, "give_up_on": _exceptions(rules.get("give_up_on", ()))}
        return cls(curve, attempts, **given)

    def terms(self) -> Terms:
        """The policy as it travels with a job; raises ConfigError when it cannot."""
        curve = self.curve
        if self.give_up_on or not isinstance(curve, Exponential | Steps):
            what = "give_up_on" if self.give_up_on else "a custom function"
            raise ConfigError(
                f"retry of one job must be exponential, fixed or steps, got {what}, which cannot "
                "be stored with the job: set it on the task or the queue",
                field="retry",
            )
        rules = (self.attempts, float(self.jitter), self.floor_us)
        if isinstance(curve, Steps):
            return Terms(*rules, steps=curve.waits_us)
        return Terms(*rules, growth=(curve.base_us, curve.factor, curve.cap_us))

    def exhausted(self, attempt: int) -> bool:
        """Was the `attempt`-th attempt (from 1) the last one?"""
        return attempt >= self.attempts

    def gives_up(self, error: BaseException) -> bool:
        """Does this error bury the job, whatever attempts remain?"""
        return isinstance(error, self.give_up_on)

    def delay(self, attempt: int, error: BaseException | None = None, *, random: Random) -> Delay:
        """The wait after the `attempt`-th failure (from 1), and whether a custom curve failed."""
        fault = None
        try:
            planned = self.curve.delay_us(attempt, error)
        except Exception as failure:  # noqa: BLE001 - a bug in a user's function must not cost the job its retry
            planned = _FALLBACK.delay_us(attempt, error)
            fault = f"{type(failure).__name__}: {failure}"
        swing = planned * self.jitter * (random() * 2 - 1)
        return Delay(max(self.floor_us, int(planned + swing)), fault)

    def delay_us(self, attempt: int, error: BaseException | None = None, *, random: Random) -> int:
        """The wait alone, for a caller that does not report faults of custom functions."""
        return self.delay(attempt, error, random=random).us

    def promised_us(self, retry_after_us: int, *, random: Random) -> int:
        """The wait that an upstream asked for; jitter only adds, so a retry is never too early."""
        promised = min(max(retry_after_us, 0), LONGEST_US)
        return max(self.floor_us, promised + int(promised * self.jitter * random()))


def _check_curve(given: Any) -> None:
    if not callable(getattr(given, "delay_us", None)):
        raise ConfigError(
            f"retry curve must have a delay_us method (or use Retry.fixed, Retry.steps, "
            f"Retry.custom), got {shown(given)}",
            field="curve",
            value=given,
        )


def _exceptions(given: Any) -> tuple[type[BaseException], ...]:
    kinds = (given,) if _is_exception(given) else given
    if isinstance(kinds, tuple) and all(_is_exception(kind) for kind in kinds):
        return kinds
    raise ConfigError(
        f"retry give_up_on must be an exception class or a tuple of them, got {shown(given)}",
        field="give_up_on",
        value=given,
    )


def _is_exception(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
