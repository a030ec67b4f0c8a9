"""What all requests of one dashboard share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faena.web.access.gate import Gate
from faena.web.advised import Advised
from faena.web.audit import Trail
from faena.web.callers import Callers
from faena.web.carrying import Carrying
from faena.web.census import Census
from faena.web.live import Hub
from faena.web.recent import Recent
from faena.web.standing import Standings
from faena.web.template import Templates

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.web.operation.operation import Operation
    from faena.web.route import Route
    from faena.web.veil import Veil


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One app's dashboard."""

    app: Faena
    gate: Gate
    trail: Trail
    hub: Hub
    recent: Recent
    standings: Standings
    advised: Advised
    operations: Mapping[str, Operation]
    callers: Callers
    census: Census
    veil: Veil
    templates: Templates
    carrying: Carrying
    environment: str
    """What kind of installation this is, as its pages say: production, development …"""
    places: Mapping[str, Route]
    """The pages by their path."""
