"""How the system is: for load balancers, for the tax office's queue, for what it costs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from apps.campotech.api.caller import administrator, system_of
from apps.campotech.api.problem import Problem
from faena.errors import ArgumentError, ConfigError, FaenaError

router: Final = APIRouter(prefix="/api")
admin: Final = APIRouter(prefix="/api/admin", dependencies=[Depends(administrator)])
_INVOICES: Final = """
    SELECT count(*) FILTER (WHERE status IN ('pending', 'sending')),
        count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'issued' AND issued_at > now() - interval '1 day')
    FROM campotech.invoices
"""


@router.get("/health")
async def health(request: Request) -> Response:
    """200 while the critical features work, at least somehow; else 503."""
    system = system_of(request)
    database, cache = await _database(request), await _cache(request)
    try:
        view = await system.app.features()
        overall = view.overall
        features = {
            name: {"status": one.state, "message": one.message, "since": _instant(one.since)}
            for name, one in view.features.items()
        }
    except FaenaError:
        overall, features = "offline", {}
    if "offline" in (database["status"], cache["status"]):
        overall = "offline"
    content = {
        "status": overall,
        "timestamp": datetime.now(UTC).isoformat(),
        "features": features,
        "database": database,
        "cache": cache,
    }
    return JSONResponse(content, 503 if overall == "offline" else 200)


@admin.get("/afip-status")
async def afip_status(request: Request) -> dict[str, Any]:
    """The breaker, its limits, and how many invoices wait."""
    system = system_of(request)
    view = await system.upstreams.afip.view()
    async with system.pg.transaction("status") as connection:
        row = await (await connection.execute(_INVOICES)).fetchone()
    pending, failed, issued = row or (0, 0, 0)
    return {
        "status": "healthy" if view.state == "closed" and view.panic is None else "degraded",
        "circuitBreaker": {
            "state": view.state,
            "openings": view.openings,
            "errorRate": view.error_rate,
            "panic": None if view.panic is None else view.panic.reason,
        },
        "invoices": {"pending": pending, "failed": failed, "submittedLast24h": issued},
        "rateLimits": [{"limit": str(one.limit), "used": one.used} for one in view.limits],
    }


@admin.get("/costs")
async def costs(request: Request, month: str | None = None) -> dict[str, Any]:
    """What calls have cost in a month, by service and day, with budgets, forecast and the
    organisations that cost most."""
    try:
        report = await system_of(request).app.cost_report(month=month)
    except (ArgumentError, ConfigError) as error:
        raise Problem(422, str(error)) from None
    return report.to_dict()


async def _database(request: Request) -> dict[str, str]:
    try:
        async with system_of(request).pg.transaction("health") as connection:
            await connection.execute("SELECT 1")
    except FaenaError:
        return {"status": "offline", "message": "the database does not answer"}
    return {"status": "healthy"}


async def _cache(request: Request) -> dict[str, Any]:
    found = await system_of(request).app.health()
    if found.is_reachable:
        return {"status": "healthy", "latencyMs": found.latency_ms}
    return {"status": "offline", "message": "the broker does not answer"}


def _instant(us: int | None) -> str | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC).isoformat()
