"""What a program says about its history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from faena.errors import ConfigError, shown
from faena.options.fields import check_choice, check_is, derive
from faena.pg.archive.term import parse_term
from faena.pg.partition.interval import Every
from faena.values.duration import Duration, to_us
from faena.values.keywords import known_fields
from faena.values.names import check_name
from faena.values.numbers import keep_whole

_MEBIBYTE: Final = 1_048_576
_DAY_US: Final = 86_400_000_000
_LONGEST_US: Final = 100 * 366 * _DAY_US


@known_fields("history")
@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Which jobs have a history, what is in it and for how long."""

    queues: Sequence[Any] | None = None
    """The queues whose jobs have one, or their names; None: all queues that the app declares."""

    keep: Duration = "365d"
    """How long rows are kept: a partition goes when all of it is older. 1d to 100 years; a year of
    "2y" has 366 days, and a month of "6mo" has 31."""

    payloads: bool = False
    """Whether payloads and results are kept, of at most 64 KiB each. They may be confidential."""

    every: Every = "month"
    """The time that one partition covers: month, week or day."""

    room: int = 64 << 20
    """The most bytes that wait in the broker, for each shard of a queue, while PostgreSQL is away:
    64 KiB to 64 GiB. What finds no room is counted, and reported as a gap."""

    late: Duration = "1m"
    """How long an ended job may wait to be stored before the event `history_late` tells so."""

    keep_us: int = field(init=False, repr=False, compare=False)
    late_us: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        derive(self, "queues", _names(self.queues))
        check_is("payloads", self.payloads, bool)
        check_choice("every", self.every, ("month", "week", "day"))
        keep_whole(self, "room", least=65_536, most=65_536 * _MEBIBYTE)
        derive(self, "keep_us", _kept_us(self.keep))
        derive(self, "late_us", to_us("late", self.late, least_us=100_000, most_us=_DAY_US))

    def kept(self) -> timedelta:
        """How long rows are kept."""
        return timedelta(microseconds=self.keep_us)

    def settings(self) -> dict[str, int | None]:
        """What the broker must know."""
        return {"room": self.room, "payloads": 1 if self.payloads else None}


def _kept_us(keep: Any) -> int:
    """Also terms as those of `pg.retain`."""
    found = parse_term(keep)
    given = timedelta(days=found.longest_days) if found is not None else keep
    return to_us("keep", given, least_us=_DAY_US, most_us=_LONGEST_US)


def _names(queues: Any) -> tuple[str, ...] | None:
    if queues is None:
        return None
    if isinstance(queues, str) or not isinstance(queues, Iterable):
        raise ConfigError(
            f"queues must be a list of queues or their names, got {shown(queues)}",
            field="queues",
            value=queues,
        )
    return tuple(check_name("queue", getattr(one, "name", one)) for one in queues)
