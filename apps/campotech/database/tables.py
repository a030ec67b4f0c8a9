"""Partitions, retention and roll-ups of the tables: in which parts rows are, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from faena.pg import FOREVER, Archive, Postgres, Rollup

Interval = Literal["month", "week", "day"]
TENANT: Final = "organization_id"
_ZONE: Final = "America/Argentina/Buenos_Aires"
_PARTITIONED: Final[tuple[tuple[str, Interval, str, list[str | tuple[str, ...]]], ...]] = (
    ("jobs", "month", "created_at", [("assigned_to", "status"), (TENANT, "status")]),
    ("whatsapp_messages", "week", "created_at", ["conversation_id"]),
    ("technician_locations", "day", "recorded_at", []),
    ("audit_logs", "month", "created_at", []),
    ("notification_logs", "week", "created_at", []),
)
_LOCATION_DAYS: Final = """
    INSERT INTO campotech.location_days
    SELECT organization_id, user_id, (recorded_at AT TIME ZONE 'UTC')::date, count(*)
    FROM faena_expired GROUP BY 1, 2, 3
    ON CONFLICT (organization_id, user_id, day)
    DO UPDATE SET pings = location_days.pings + excluded.pings
"""


@dataclass(frozen=True, slots=True)
class Rollups:
    """Aggregates that reports read."""

    jobs: Rollup
    revenue: Rollup
    revenue_per_day: Rollup


def declare(pg: Postgres, archive: Archive, *, ahead: int | None = None) -> Rollups:
    """Declare all of it; opens no connection. `ahead` is for tests: fewer partitions."""
    _partition(pg, ahead)
    _retain(pg, archive)
    return _roll_up(pg)


def _partition(pg: Postgres, ahead: int | None) -> None:
    for name, every, by, indexes in _PARTITIONED:
        pg.partitioned(
            f"campotech.{name}", every=every, by=by, ahead=ahead, tenant=TENANT, indexes=indexes
        )


def _retain(pg: Postgres, archive: Archive) -> None:
    pg.retain("campotech.jobs", keep="2y", then=archive)
    pg.retain("campotech.whatsapp_messages", keep="1y", then=archive)
    pg.retain("campotech.technician_locations", keep="90d", then="delete", aggregate=_LOCATION_DAYS)
    pg.retain(
        "campotech.technician_positions",
        keep="90d",
        by="recorded_at",
        tenant=TENANT,
        then="delete",
    )
    pg.retain("campotech.audit_logs", keep="3y", legal="3y", then=archive)
    pg.retain("campotech.notification_logs", keep="6mo", then=archive)
    pg.retain("campotech.customers", keep=FOREVER, tenant=TENANT)
    pg.retain("campotech.invoices", keep=FOREVER, legal="10y", tenant=TENANT)  # AFIP: 10 years
    pg.retain("campotech.ratings", keep=FOREVER, tenant=TENANT)


def _roll_up(pg: Postgres) -> Rollups:
    return Rollups(
        pg.rollup(
            "campotech.jobs_per_day",
            of="campotech.jobs",
            every="day",
            group=[TENANT, "status"],
            measures={"jobs": "count(*)"},
            tz=_ZONE,
        ),
        _revenue(pg, "month"),
        _revenue(pg, "day"),
    )


def _revenue(pg: Postgres, every: Interval) -> Rollup:
    return pg.rollup(
        f"campotech.revenue_per_{every}",
        of="campotech.invoices",
        by="issued_at",
        every=every,
        group=[TENANT, "kind"],
        measures={"invoices": "count(*)", "total_cents": "sum(total_cents)"},
        tz=_ZONE,
    )
