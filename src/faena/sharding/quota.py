"""Divides the limits of a queue again when the number of its shards changes.

A shard that has claimed more in a window than its new part allows has used a part of another
shard's quota. The oldest of these claims are counted in that shard as well, until they leave the
window. So no window of the whole queue ever has more claims than its limit, even during a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from faena.engine.calls.transfer import Claims
from faena.engine.settings import read_limits
from faena.errors import ConfigError


def part(whole: int, shards: int, shard: int) -> int:
    """A shard's part of a bound, divided as the scripts do."""
    return whole // shards + (shard < whole % shards) if shard < shards else 0


def check_stays(settings: Mapping[str, str], queue: str) -> None:
    """Refuse to move tenants of a queue with key limits: the counted claims do not move."""
    if settings.get("keyed"):
        raise ConfigError(
            f"tenants of queue {queue} cannot move while it has key_limits: set it to None first",
            field="key_limits",
            value=settings["keyed"],
        )


def check_divisible(settings: Mapping[str, str], shards: int) -> None:
    """Refuse if a bound of the queue, as stored on the server, leaves nothing for a shard."""
    if shards > 1 and settings.get("costs"):
        raise ConfigError(
            f"shards must be 1 with a limit by cost on the queue, got {shards}: "
            f"use tenant_limits by cost instead",
            field="shards",
        )
    if shards > 1 and settings.get("keyed"):
        raise ConfigError(
            f"shards must be 1 with key_limits, got {shards}", field="shards", value=shards
        )
    bounds = [(name, int(settings[name])) for name in ("max_running", "hard") if name in settings]
    bounds += [("limits", limit.max) for limit in read_limits(settings.get("limits", ""))]
    for name, most in bounds:
        if 0 < most < shards:
            raise ConfigError(
                f"{name} must be at least {shards}, one for each shard, got {most}",
                field="shards",
                value=shards,
            )


def beyond(claims: Sequence[Claims], most: int) -> list[Claims]:
    """The oldest claims, as many as exceed `most`."""
    left = sum(one.number for one in claims) - most
    owed: list[Claims] = []
    for one in claims:
        if left <= 0:
            break
        owed.append(Claims(one.instant, min(one.number, left)))
        left -= one.number
    return owed


def share_out(claims: Iterable[Claims], rooms: Mapping[str, int]) -> dict[str, list[Claims]]:
    """Distribute claims over shards; none exceeds its room while another has some."""
    left = dict(rooms)
    shared: dict[str, list[Claims]] = {shard: [] for shard in rooms}
    for one in sorted(claims):
        number = one.number
        while number and left:
            shard = max(left, key=lambda name: left[name])
            taken = min(number, left[shard]) if left[shard] > 0 else number
            shared[shard].append(Claims(one.instant, taken))
            left[shard] -= taken
            number -= taken
    return shared
