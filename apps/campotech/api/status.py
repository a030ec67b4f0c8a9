"""How the system is: for load balancers, for people, for the tax office's queue, for what it costs.

Figures for administrators are read on the replica, if there is one that is fresh enough.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import administrator, system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.api.vitals import Doctor
from faena.errors import ArgumentError, ConfigError

Level = Literal["healthy", "degraded", "offline"]
router: Final = APIRouter(prefix="/api", tags=["health"])
admin: Final = APIRouter(
    prefix="/api/admin",
    tags=["administration"],
    dependencies=[Depends(administrator)],
    responses=answers(401, 503),
)
_INVOICES: Final = """
    SELECT count(*) FILTER (WHERE status IN ('pending', 'sending')),
        count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'issued' AND issued_at > now() - interval '1 day')
    FROM campotech.invoices
"""
_NAMES: Final = {
    "ai.whatsapp": "IA de WhatsApp",
    "ai.voice": "Reportes por voz",
    "payments.mercadopago": "Pagos online",
    "invoicing.afip": "Facturación AFIP",
    "tracking.realtime": "Seguimiento en vivo",
    "notifications.push": "Avisos en el teléfono",
}
_LEVELS: Final[dict[str, Level]] = {
    "healthy": "healthy",
    "degraded": "degraded",
    "offline": "offline",
}
_BANNER: Final = "Algunas funciones están temporalmente limitadas: "


class PartHealth(Answer):
    """How a server is."""

    status: Literal["healthy", "offline"]
    message: str | None = None
    latency_ms: float | None = None


class FeatureHealth(Answer):
    """How a feature is."""

    status: Level
    name: str
    """For people."""
    message: str | None
    """What users are told; null: nothing."""
    since: datetime | None


class Health(Answer):
    """How the system is."""

    status: Level
    timestamp: datetime
    banner: str | None
    """What users are shown while features do less; null: nothing."""
    features: dict[str, FeatureHealth]
    database: PartHealth
    cache: PartHealth


class BreakerState(Answer):
    """Whether calls go out."""

    state: str
    openings: int
    error_rate: float | None
    panic: str | None


class InvoiceCounts(Answer):
    """How many invoices wait, have failed, were issued."""

    pending: int
    failed: int
    submitted_last24h: Annotated[int, Field(alias="submittedLast24h")]


class RateUse(Answer):
    """A limit, and how much of it is used."""

    limit: str
    used: float


class AfipStatus(Answer):
    """How the tax office's queue is."""

    status: Literal["healthy", "degraded"]
    circuit_breaker: BreakerState
    invoices: InvoiceCounts
    rate_limits: list[RateUse]


_OFFLINE: Final[dict[int | str, dict[str, Any]]] = {
    503: {"model": Health, "description": "A critical feature, or a server, does not work"}
}


@router.get("/health", responses=_OFFLINE)
async def health(request: Request, response: Response) -> Health:
    """200 while the critical features work, at least somehow; else 503. At most a second old."""
    doctor: Doctor = request.app.state.doctor
    seen = await doctor.ask()
    features = {
        name: FeatureHealth(
            status=_LEVELS[one.state],
            name=_NAMES.get(name, name),
            message=one.message,
            since=_instant(one.since),
        )
        for name, one in (seen.features.features if seen.features else {}).items()
    }
    response.status_code = 503 if seen.overall == "offline" else 200
    return Health(
        status=_LEVELS[seen.overall],
        timestamp=seen.at,
        banner=_banner(features),
        features=features,
        database=_part("database", answers=seen.has_database),
        cache=_part("broker", answers=seen.features is not None, latency_ms=seen.broker_ms),
    )


@admin.get("/afip-status")
async def afip_status(request: Request) -> AfipStatus:
    """The breaker, its limits, and how many invoices wait."""
    system = system_of(request)
    view = await system.upstreams.afip.view()
    async with system.pg.reading() as connection:
        row = await (await connection.execute(_INVOICES)).fetchone()
    pending, failed, issued = row or (0, 0, 0)
    return AfipStatus(
        status="healthy" if view.state == "closed" and view.panic is None else "degraded",
        circuit_breaker=BreakerState(
            state=view.state,
            openings=view.openings,
            error_rate=view.error_rate,
            panic=None if view.panic is None else view.panic.reason,
        ),
        invoices=InvoiceCounts(pending=pending, failed=failed, submitted_last24h=issued),
        rate_limits=[RateUse(limit=str(one.limit), used=one.used) for one in view.limits],
    )


@admin.get("/costs", responses=answers(422))
async def costs(
    request: Request, month: Annotated[str | None, Query(max_length=7)] = None
) -> dict[str, Any]:
    """What calls have cost in a month, by service and day, with budgets, forecast and the
    organisations that cost most."""
    try:
        report = await system_of(request).app.cost_report(month=month)
    except (ArgumentError, ConfigError) as error:
        raise Problem(422, str(error)) from None
    return report.to_dict()


def _banner(features: dict[str, FeatureHealth]) -> str | None:
    limited = [one.name for one in features.values() if one.status != "healthy"]
    return _BANNER + ", ".join(limited) if limited else None


def _part(server: str, *, answers: bool, latency_ms: float | None = None) -> PartHealth:
    if answers:
        return PartHealth(status="healthy", latency_ms=latency_ms)
    return PartHealth(status="offline", message=f"the {server} does not answer")


def _instant(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)
