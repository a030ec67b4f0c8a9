"""What comparisons with providers have in common: a period, and how it is gone through.

A comparison is made of parts. `read` asks the provider, which may take long and fail; what it
found is then written in one transaction with the position, so a part counts once or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, Final, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

from apps.campotech.messages import Reconciliation
from faena.pg import Connection

ZONE: Final = ZoneInfo("America/Argentina/Buenos_Aires")
ALL: Final = UUID(int=0)
"""In place of an organisation: all of them. Messages about the platform itself have it, too."""

Position = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Period:
    """Which records are compared."""

    first: date
    last: date
    organization: UUID | None
    """None: all of them."""
    is_full: bool
    """Also those that look settled."""
    now: datetime

    @classmethod
    def of(cls, message: Reconciliation, now: datetime) -> Period:
        """What a message asks for."""
        organization = None if message.org_id == ALL else message.org_id
        is_full = message.full_reconciliation
        return cls(message.date_from, message.date_to, organization, is_full, now)

    @property
    def begin(self) -> datetime:
        """Its first instant."""
        return midnight(self.first)

    @property
    def end(self) -> datetime:
        """The first instant after it."""
        return midnight(self.last + timedelta(days=1))

    def includes(self, organization: UUID) -> bool:
        """Whether the records of an organisation are compared."""
        return self.organization in (None, organization)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What no program may repair."""

    problem: str
    subject: str
    """Which record, such as `invoice …` or `B 00001-00000017`."""
    organization: UUID | None = None
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""
        whose = {} if self.organization is None else {"organization": str(self.organization)}
        return {"problem": self.problem, "subject": self.subject, **whose, **self.detail}


@dataclass(slots=True)
class Found:
    """What came of one part."""

    looked_at: int = 0
    repaired: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])


async def nothing(_connection: Connection) -> Found:
    """Write nothing: there was nothing to compare."""
    return Found()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part that was read."""

    then: Position | None
    """Where the next part begins; None: this was the last one."""
    write: Callable[[Connection], Awaitable[Found]] = nothing
    pause: timedelta | None = None
    """How long the provider is left alone after it."""


class Comparison(Protocol):
    """With one provider."""

    async def read(self, period: Period, position: Position) -> Part:
        """The part that begins at a position; {} is the beginning."""
        ...


def midnight(day: date) -> datetime:
    """When a day begins in Argentina."""
    return datetime.combine(day, time(), ZONE)
