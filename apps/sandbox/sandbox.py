"""All stand-ins behind one address, with faults and ledgers for programs in other processes.

    GET    /sandbox/{service}/ledger     what it was asked; `?operation=` and `?outcome=` choose
    POST   /sandbox/{service}/faults     play a fault: {"kind": "status", "status": 503, "lasts": 2}
    DELETE /sandbox/{service}/faults     play none

A path below `/{service}` is one of the service itself.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from apps.sandbox.afip import WSAA_PATH, WSFE_PATH, Afip
from apps.sandbox.fault import Fault
from apps.sandbox.mercadopago import MercadoPago
from apps.sandbox.openai import OpenAI
from apps.sandbox.stand_in import StandIn, serving
from apps.sandbox.whatsapp import ApprovedTemplate, WhatsApp

TEMPLATES: Final = (
    ApprovedTemplate(name="invoice_ready", parameters=3),
    ApprovedTemplate(name="invoice_overdue", parameters=3),
    ApprovedTemplate(name="job_scheduled", parameters=2),
    ApprovedTemplate(name="job_reminder", parameters=2),
    ApprovedTemplate(name="job_en_camino", parameters=1),
    ApprovedTemplate(name="job_completed", parameters=1),
    ApprovedTemplate(name="job_cancelled", parameters=1),
    ApprovedTemplate(name="rating_request", parameters=1),
)
"""Those of CampoTech."""


class Sandbox:
    """The outside world on loopback."""

    def __init__(self, *, afip: Afip | None = None) -> None:
        self.afip = afip or Afip()
        self.mercadopago = MercadoPago()
        self.whatsapp = WhatsApp(templates=TEMPLATES)
        self._openai_key = f"sk-{secrets.token_hex(16)}"
        self.openai = OpenAI(self._openai_key)
        self.verify_token = secrets.token_hex(16)
        all_of_them: tuple[StandIn, ...] = (
            self.afip,
            self.mercadopago,
            self.whatsapp,
            self.openai,
        )
        self.services = {one.name: one for one in all_of_them}

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[str]:
        """Serve all of it on loopback; its address."""
        control = Mount(
            "/sandbox/{service}",
            routes=[
                Route("/ledger", self._ledger, methods=["GET"]),
                Route("/faults", self._faults, methods=["POST", "DELETE"]),
            ],
        )
        mounts = [Mount(f"/{name}", one.http) for name, one in self.services.items()]
        async with serving(Starlette(routes=[control, *mounts]), port) as url:
            yield url

    def environment(self, url: str) -> dict[str, str]:
        """What a program must be told to use these services instead of the real ones."""
        return {
            "AFIP_ENVIRONMENT": "testing",
            "AFIP_WSAA_URL": f"{url}/afip{WSAA_PATH}",
            "AFIP_WSFE_URL": f"{url}/afip{WSFE_PATH}",
            "MP_ACCESS_TOKEN": self.mercadopago.access_token,
            "MP_WEBHOOK_SECRET": self.mercadopago.webhook_secret,
            "MP_BASE_URL": f"{url}/mercadopago",
            "MP_ALIAS": "campo.tech.mp",
            "WHATSAPP_ACCESS_TOKEN": self.whatsapp.access_token,
            "WHATSAPP_PHONE_NUMBER_ID": self.whatsapp.phone_number_id,
            "WHATSAPP_APP_SECRET": self.whatsapp.app_secret,
            "WHATSAPP_VERIFY_TOKEN": self.verify_token,
            "WHATSAPP_BASE_URL": f"{url}/whatsapp/v23.0",
            "OPENAI_API_KEY": self._openai_key,
            "OPENAI_BASE_URL": f"{url}/openai/v1",
        }

    async def _ledger(self, request: Request) -> Response:
        service = self.services.get(request.path_params["service"])
        if service is None:
            return JSONResponse({"error": "no such service"}, 404)
        wanted = request.query_params
        found = service.ledger.where(
            lambda one: (
                wanted.get("operation") in (None, one.operation)
                and wanted.get("outcome") in (None, one.outcome)
            )
        )
        return JSONResponse([one.as_dict() for one in found])

    async def _faults(self, request: Request) -> Response:
        service = self.services.get(request.path_params["service"])
        if service is None:
            return JSONResponse({"error": "no such service"}, 404)
        if request.method == "DELETE":
            service.faults.clear()
            return Response(status_code=204)
        given: dict[str, Any] = await request.json()
        lasts = given.pop("lasts", None)
        try:
            until = None if lasts is None else time.monotonic() + float(lasts)
            service.faults.add(Fault(**given, until=until))
        except (TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 422)
        return Response(status_code=201)
