"""What happens when a job is enqueued while another one holds the same unique key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from faena.errors import ConfigError, shown
from faena.values.duration import Duration, to_us
from faena.values.ids import Label, as_label
from faena.values.names import check_label


class UniqueMode(StrEnum):
    """Which jobs are duplicates, and which of the two is kept."""

    WHILE_WAITING = "while_waiting"
    WHILE_LIVE = "while_live"
    THROTTLE = "throttle"
    DEBOUNCE = "debounce"
    KEEP_LAST = "keep_last"


@dataclass(frozen=True, slots=True)
class Unique:
    """A unique key within its queue, and its mode; build one with a class method."""

    mode: UniqueMode
    """How long the key is held, and what happens to a second job meanwhile."""

    key: str
    """What makes two jobs the same."""

    ttl_us: int = 0
    """How long the key is held (throttle, debounce); 0 for modes that depend on the job's state."""

    delay_us: int = 0
    """How long a debounced job waits after the latest call; 0 otherwise."""

    def __post_init__(self) -> None:
        check_label("unique key", self.key)

    @classmethod
    def while_waiting(cls, key: Label) -> Unique:
        """A second job is a duplicate until the first starts."""
        return cls(UniqueMode.WHILE_WAITING, as_label("unique key", key))

    @classmethod
    def while_live(cls, key: Label) -> Unique:
        """A second job is a duplicate until the first has finished."""
        return cls(UniqueMode.WHILE_LIVE, as_label("unique key", key))

    @classmethod
    def throttle(cls, key: Label, ttl: Duration) -> Unique:
        """A second job is a duplicate for `ttl` after the first was enqueued, finished or not."""
        ttl_us = to_us("unique ttl", ttl, least_us=1_000)
        return cls(UniqueMode.THROTTLE, as_label("unique key", key), ttl_us=ttl_us)

    @classmethod
    def debounce(cls, key: Label, ttl: Duration, delay: Duration | None = None) -> Unique:
        """Each call replaces the waiting job and restarts its delay.

        The job runs `delay` (by default `ttl`) after the latest call, and the key is free once it
        starts. A delay longer than `ttl` is refused.
        """
        ttl_us = to_us("unique ttl", ttl, least_us=1_000)
        delay_us = ttl_us if delay is None else to_us("unique delay", delay, least_us=1_000)
        if delay_us > ttl_us:
            raise ConfigError(
                f"unique delay must be at most the ttl of {ttl!r}, got {shown(delay)}",
                field="unique delay",
                value=delay,
            )
        label = as_label("unique key", key)
        return cls(UniqueMode.DEBOUNCE, label, ttl_us=ttl_us, delay_us=delay_us)

    @classmethod
    def replace(cls, key: Label) -> Unique:
        """Each call replaces the waiting job, also before a retry; a running job stays."""
        return cls(UniqueMode.DEBOUNCE, as_label("replace", key))

    @classmethod
    def keep_last(cls, key: Label) -> Unique:
        """While one job runs, one more may wait; the latest call decides its payload."""
        return cls(UniqueMode.KEEP_LAST, as_label("unique key", key))

    @classmethod
    def of(cls, value: Any) -> Unique:
        """Read an option; a plain key means `while_live`."""
        if isinstance(value, Unique):
            return value
        if isinstance(value, Label) and not isinstance(value, bool):
            return cls.while_live(value)
        raise ConfigError(
            f"unique must be a key or a Unique such as Unique.throttle('key', '10m'), "
            f"got {shown(value)}",
            field="unique",
            value=value,
        )
