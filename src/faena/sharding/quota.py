"""What the parts of a queue's limit owe each other when the number of its shards changes.

A shard that has claimed more in a window than its new part allows has used up what is another's
now. The oldest of those claims are counted there as well, until they leave the window: so no
window of the whole queue ever holds more claims than its limit, also while it grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from faena.engine.calls.transfer import Claims
from faena.engine.settings import read_limits
from faena.errors import ConfigError


def part(whole: int, shards: int, shard: int) -> int:
    """What a shard has of a bound; as the scripts divide it."""
    return whole // shards + (shard < whole % shards) if shard < shards else 0


def check_stays(settings: Mapping[str, str], queue: str) -> None:
    """Refuse to move tenants whose keys have limits: what a key has used stays where it is."""
    if settings.get("keyed"):
        raise ConfigError(
            f"tenants of queue {queue} cannot move while it has key_limits: set it to None first",
            field="key_limits",
            value=settings["keyed"],
        )


def check_divisible(settings: Mapping[str, str], shards: int) -> None:
    """Refuse when a bound on the queue, as it stands on the server, leaves a shard nothing."""
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
    """The oldest claims, as many as there are beyond `most`."""
    left = sum(one.number for one in claims) - most
    owed: list[Claims] = []
    for one in claims:
        if left <= 0:
            break
        owed.append(Claims(one.instant, min(one.number, left)))
        left -= one.number
    return owed


def share_out(claims: Iterable[Claims], rooms: Mapping[str, int]) -> dict[str, list[Claims]]:
    """Who counts which claims: nobody more than it has room for, while another has some."""
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
