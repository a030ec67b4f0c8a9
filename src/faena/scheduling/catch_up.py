"""Catch-up: which instants of a schedule are fired after an outage, and which are only reported.

An instant is *missed* if it is not fired within a minute, or before the next one. The option
`missed` of the schedule says how many missed instants are still fired: none, the latest, or a
number of the latest. Every missed instant is reported. All other instants are fired.
"""

from __future__ import annotations

from typing import Final

from faena.scheduling.options import Terms

GRACE_US: Final = 60_000_000
"""How late an instant may be fired without counting as missed."""

TOLD: Final = 20
"""The most missed instants that are named one by one."""

COUNTED: Final = 1_000
"""The most missed instants that are counted."""


def chosen(terms: Terms, due: int, last: int, now: int) -> int | None:
    """The next instant to fire, of those from `due` to `last`."""
    most = terms.most_missed
    if most == 0:
        return None if now - last > GRACE_US else last
    if most == 1:
        return last
    ahead = due
    for _ in range(most):
        following = terms.following(ahead)
        if following is None or following > last:
            return due
        ahead = following
    first = last
    for _ in range(most - 1):
        first = latest(terms, due, first - 1)
    return first


def missed(terms: Terms, due: int, fire: int, now: int) -> tuple[tuple[int, ...], int]:
    """The missed instants up to `fire`, and their number."""
    found: list[int] = []
    number, instant = 0, due
    while instant < fire and number < COUNTED:
        found.append(instant)
        number += 1
        instant = terms.following(instant) or fire
    following = terms.following(fire)
    if now - fire > GRACE_US or (following is not None and following <= now):
        found.append(fire)
        number += 1
    return tuple(found[:TOLD]), number


def latest(terms: Terms, due: int, now: int) -> int:
    """The last instant between `due`, which is an instant itself, and `now`.

    Found by bisection, so a long outage with frequent instants costs little: as time goes on,
    "another instant follows before `now`" can only change from true to false.
    """
    following = terms.following(due)
    if following is None or following > now:
        return due
    low, high = following, now  # something fires at `low`, and nothing after `high` until now
    while True:
        following = terms.following(low)
        if following is None or following > now:
            return low
        middle = (following + high) // 2
        beyond = terms.following(middle)
        if beyond is None or beyond > now:
            low, high = following, middle
        else:
            low = beyond
