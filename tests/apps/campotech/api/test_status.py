"""The API tells how the system is: features, the tax office, costs."""

from __future__ import annotations

import httpx
import pytest
from apps.campotech.system import System

from faena.testing import Harness
from tests.apps.campotech.business import Business


async def test_health_names_the_features_and_the_servers(
    system: System, harnessed: Harness, api: httpx.AsyncClient
) -> None:
    answer = await api.get("/api/health")
    found = answer.json()
    assert (answer.status_code, found["status"]) == (200, "healthy")
    assert set(found["features"]) == {
        "ai.whatsapp",
        "ai.voice",
        "payments.mercadopago",
        "invoicing.afip",
        "tracking.realtime",
        "notifications.push",
    }
    assert found["banner"] is None
    assert found["database"]["status"] == found["cache"]["status"] == "healthy"


async def test_an_outage_of_afip_degrades_and_does_not_stop(
    system: System, harnessed: Harness, api: httpx.AsyncClient
) -> None:
    await harnessed.open_breaker(system.upstreams.afip)
    answer = await api.get("/api/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    invoicing = answer.json()["features"]["invoicing.afip"]
    assert invoicing["message"] == "AFIP no responde; las facturas esperan"
    limited = "Algunas funciones están temporalmente limitadas: Facturación AFIP"
    assert answer.json()["banner"] == limited


@pytest.fixture
def admin(system: System) -> dict[str, str]:
    return {"authorization": f"Bearer {system.settings.admin_token}"}


async def test_administrators_see_the_queue_of_the_tax_office(
    api: httpx.AsyncClient, business: Business, admin: dict[str, str]
) -> None:
    await business.invoice()
    found = (await api.get("/api/admin/afip-status", headers=admin)).json()
    assert found["status"] == "healthy"
    assert found["invoices"] == {"pending": 1, "failed": 0, "submittedLast24h": 0}
    assert [one["limit"] for one in found["rateLimits"]] == ["60/min", "1000/h", "10000/day"]


async def test_administrators_see_costs_and_wrong_months_are_refused(
    system: System, harnessed: Harness, api: httpx.AsyncClient, admin: dict[str, str]
) -> None:
    await harnessed.spend(system.upstreams.openai, "2 USD")
    found = (await api.get("/api/admin/costs", headers=admin)).json()
    assert found["spent"][0]["text"] == "2.00 USD"
    wrong = await api.get("/api/admin/costs?month=2026-13", headers=admin)
    assert wrong.status_code == 422


@pytest.mark.parametrize("path", ["/api/admin/afip-status", "/api/admin/costs"])
async def test_organisations_are_no_administrators(api: httpx.AsyncClient, path: str) -> None:
    assert (await api.get(path)).status_code == 401
