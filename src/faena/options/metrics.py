"""What the pages of metrics of an app have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from faena.options.fields import check_is
from faena.values.keywords import known_fields
from faena.values.numbers import keep_whole

MOST_TENANTS: Final = 50


@known_fields("metrics")
@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What the pages of metrics of an app have."""

    tenants: int = MOST_TENANTS
    """How many tenants of each queue are named, those with the most live jobs; the others are added
    up. With 0 none is, and pages cost less in queues with very many tenants."""

    broker: bool = True
    """Whether pages of workers have the broker's numbers too. Turn it off where there are hundreds
    of workers, and scrape one program that has `metrics_endpoint`."""

    aliases: bool = False
    """Whether numbers are there a second time, under the names of CampoTech, CEP and ZapHub."""

    def __post_init__(self) -> None:
        keep_whole(self, "tenants", least=0, most=MOST_TENANTS)
        check_is("broker", self.broker, bool)
        check_is("aliases", self.aliases, bool)
