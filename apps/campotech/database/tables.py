"""Partitions, retention and roll-ups of the tables: in which parts rows are, and how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from faena.pg import FOREVER, Archive, Postgres, Rollup

TENANT: Final = "organization_id"
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


def declare(pg: Postgres, archive: Archive) -> Rollups:
    """Declare all of it; opens no connection."""
    _partition(pg)
    _retain(pg, archive)
    return _roll_up(pg)


def _partition(pg: Postgres) -> None:
    pg.partitioned(
        "campotech.jobs",
        every="month",
        tenant=TENANT,
        indexes=[("assigned_to", "status"), (TENANT, "status")],
    )
    pg.partitioned(
        "campotech.whatsapp_messages", every="week", tenant=TENANT, indexes=["conversation_id"]
    )
    pg.partitioned("campotech.technician_locations", by="recorded_at", every="day", tenant=TENANT)
    pg.partitioned("campotech.audit_logs", every="month", tenant=TENANT)
    pg.partitioned("campotech.notification_logs", every="week", tenant=TENANT)


def _retain(pg: Postgres, archive: Archive) -> None:
    pg.retain("campotech.jobs", keep="2y", then=archive)
    pg.retain("campotech.whatsapp_messages", keep="1y", then=archive)
    pg.retain("campotech.technician_locations", keep="90d", then="delete", aggregate=_LOCATION_DAYS)
    pg.retain("campotech.audit_logs", keep="3y", legal="3y", then=archive)
    pg.retain("campotech.notification_logs", keep="6mo", then=archive)
    pg.retain("campotech.customers", keep=FOREVER, tenant=TENANT)
    pg.retain("campotech.invoices", keep=FOREVER, legal="10y", tenant=TENANT)  # AFIP: 10 years
    pg.retain("campotech.ratings", keep=FOREVER, tenant=TENANT)


def _roll_up(pg: Postgres) -> Rollups:
    zone = "America/Argentina/Buenos_Aires"
    return Rollups(
        pg.rollup(
            "campotech.jobs_per_day",
            of="campotech.jobs",
            every="day",
            group=[TENANT, "status"],
            measures={"jobs": "count(*)"},
            tz=zone,
        ),
        pg.rollup(
            "campotech.revenue_per_month",
            of="campotech.invoices",
            by="issued_at",
            every="month",
            group=[TENANT, "kind"],
            measures={"invoices": "count(*)", "total_cents": "sum(total_cents)"},
            tz=zone,
        ),
    )
