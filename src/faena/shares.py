"""What the tenants of a queue were given of its service, minute by minute.

The scripts count what each lane starts; here it is only read, in bounded pages, so the minute that
still runs may have gone on between two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from faena.engine import Engine
from faena.engine.survey import Survey
from faena.lanes import tenant_of

_MINUTE_US: Final = 60_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What the tenants of a queue were given in one minute."""

    at: int
    """The server's instant at which the minute began."""
    is_over: bool
    """False for the minute that still runs."""
    given: Mapping[str, float]
    """Jobs started, divided by the tenant's weight; "" stands for the jobs without a tenant."""

    @property
    def fairness(self) -> float | None:
        """Jain's index: 1 when all were given the same, 1/n when one of n had everything; None when
        nobody was. It speaks of those that were served, whether they wanted more or not.
        """
        squares = sum(number * number for number in self.given.values())
        return sum(self.given.values()) ** 2 / (len(self.given) * squares) if squares else None

    def of(self, tenant: str | None) -> float:
        """A tenant's part of the whole: 0 to 1."""
        total = sum(self.given.values())
        return self.given.get(tenant or "", 0.0) / total if total else 0.0


async def shares_of(engine: Engine, homes: Sequence[str], minutes: int) -> list[Shares]:
    """The last full minutes of a queue's homes, oldest first, and the one that runs."""
    this = (await engine.overview(homes[0]))[0] // _MINUTE_US
    surveys = [Survey(engine, home) for home in homes]
    return [await _minute(surveys, this - back, this) for back in range(minutes, -1, -1)]


async def _minute(surveys: Sequence[Survey], minute: int, this: int) -> Shares:
    given: dict[str, float] = {}
    for survey in surveys:
        async for page in survey.numbers(f"shares:{minute}"):
            for lane, number in page.items():
                tenant = tenant_of(lane) or ""
                given[tenant] = given.get(tenant, 0.0) + number / 1000
    return Shares(at=minute * _MINUTE_US, is_over=minute < this, given=given)
