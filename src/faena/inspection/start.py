"""When a job should start: exactly where only time and limits keep it, else by the pace of late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from faena.inspection.instant import instant
from faena.values.view import View

if TYPE_CHECKING:
    from faena.inspection.explanation import Explanation

_MINUTE_US: Final = 60_000_000
_LIMITS: Final = frozenset({"limit", "tenant_limit", "key_limit"})
_FULL: Final = frozenset({"slots", "max_running", "tenant_max_running"})
"""Gates that a running job opens when it ends."""


class Pace(NamedTuple):
    """Jobs started a minute: of late, and in the slowest and the fastest of the last minutes."""

    mean: float
    slowest: float
    fastest: float

    @classmethod
    def of(cls, claimed: Sequence[int], now: int) -> Pace | None:
        """By the claims of this minute and those before; None if nothing was claimed lately."""
        this, *over = claimed or (0,)
        mean = (this + sum(over[:1])) / ((_MINUTE_US + now % _MINUTE_US) / _MINUTE_US)
        some = [mean, *(float(one) for one in over if one)]
        return cls(mean, min(some), max(some)) if mean else None

    def after(self, now: int, jobs: int) -> tuple[int, int, int]:
        """When so many have started: by the mean, at the earliest, at the latest."""
        mean, slowest, fastest = (now + int(jobs / one * _MINUTE_US) for one in self)
        return mean, fastest, slowest


class ExpectedStart(View, frozen=True, kw_only=True):
    """When a job should start. Instants are the server's microseconds."""

    basis: str
    """next (nothing keeps it), clock (delays and holds), limits, upstream, pace, unknown or never.
    """
    at: int | None = None
    """The instant; None if it is unknown."""
    earliest: int | None = None
    """Gates do not let it start before, as things stand; None if none of them has an instant."""
    between: tuple[int, int] | None = None
    """Of an estimate by pace: at the fastest and at the slowest pace of the last minutes."""
    is_estimate: bool = False
    """Whether `at` depends on how fast others are served that come first, or may; else only on
    workers with free slots."""
    words: str


def expected_start(told: Explanation) -> ExpectedStart | None:
    """The start of a job that waits; None for any other."""
    if not told.is_waiting:
        return None
    floor = max((told.at, told.sure_at, *(gate.until or 0 for gate in told.gates)))
    earliest = floor if floor > told.at else None
    if told.expires_at is not None and told.expires_at <= floor:
        return ExpectedStart(basis="never", words="never: it expires first")
    stop = next((one for one in told.reasons if one.is_stop), None)
    if stop is not None:
        return _unknown(stop.words, earliest)
    if told.ahead or any(gate.name in _FULL for gate in told.gates):
        return _behind_others(told, floor)
    return _by_time(told, floor)


def _by_time(told: Explanation, at: int) -> ExpectedStart:
    behind = _others(told)
    if at <= told.at:
        words = f"as soon as a worker has a free slot{behind}"
        is_estimate = bool(behind)
        return ExpectedStart(basis="next", at=at, earliest=at, is_estimate=is_estimate, words=words)
    if told.upstreams or any(gate.name == "behind" for gate in told.gates):
        words = f"not before {instant(at)}"
        basis = "upstream" if told.upstreams else "clock"
        is_estimate = bool(told.others)
        return ExpectedStart(basis=basis, at=at, earliest=at, is_estimate=is_estimate, words=words)
    basis = "limits" if at == told.sure_at else "clock"
    words = f"{instant(at)}{', by limits' if basis == 'limits' else ''}{behind}"
    return ExpectedStart(basis=basis, at=at, earliest=at, is_estimate=bool(behind), words=words)


def _others(told: Explanation) -> str:
    """What may still come first: a job that is delayed takes its place when it is due."""
    if not told.others:
        return ""
    return f", or later: {told.others} other job{'s' * (told.others > 1)} may come first"


def _behind_others(told: Explanation, floor: int) -> ExpectedStart:
    by_limits = max(floor, told.likely_at)
    is_closed = any(gate.name in _LIMITS for gate in told.gates)
    is_full = any(gate.name in _FULL for gate in told.gates)
    by_pace = None if is_closed and not is_full else _by_pace(told, floor, by_limits, is_full)
    if by_pace is not None:
        return by_pace
    if told.likely_at > told.at and not is_full:
        is_exact = by_limits == told.sure_at and not told.others
        words = f"{'' if is_exact else 'about '}{instant(by_limits)}, by limits"
        return ExpectedStart(
            basis="limits", at=by_limits, earliest=floor, is_estimate=not is_exact, words=words
        )
    why = "nothing was started in the last minutes"
    return _unknown(why, floor if floor > told.at else None)


def _by_pace(told: Explanation, floor: int, by_limits: int, is_full: bool) -> ExpectedStart | None:
    """After so many jobs as come first, and after one that must end where all places are taken."""
    whose, jobs, pace = told.pace
    if pace is None:
        return None
    times = (gate.until or 0 for gate in told.gates if gate.name not in _LIMITS)
    opens_at = max((told.at, *times))
    mean, fastest, slowest = pace.after(opens_at, jobs + is_full)
    at, first, last = max(mean, by_limits), max(fastest, floor), max(slowest, by_limits)
    if by_limits > mean:
        words = f"about {instant(at)}, by limits"
        return ExpectedStart(basis="limits", at=at, earliest=floor, is_estimate=True, words=words)
    come = "1 job" if jobs == 1 else f"{jobs} jobs"
    words = (
        f"about {instant(at)}, an estimate by the pace of the {whose}: {come} ahead at "
        f"{pace.mean:.3g} a minute; between {instant(first)} and {instant(last)}"
    )
    return ExpectedStart(
        basis="pace",
        at=at,
        earliest=floor,
        between=(first, last),
        is_estimate=True,
        words=words,
    )


def _unknown(why: str, earliest: int | None) -> ExpectedStart:
    bound = "" if earliest is None else f", not before {instant(earliest)}"
    return ExpectedStart(basis="unknown", earliest=earliest, words=f"unknown{bound}: {why}")
