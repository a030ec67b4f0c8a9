"""The application, for uvicorn and for tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from apps.campotech.api import intake, jobs, payment, status, webhook
from apps.campotech.api.problem import add_handlers

if TYPE_CHECKING:
    from apps.campotech.system import System


def create(system: System) -> FastAPI:
    """An application for one CampoTech, which stays open: who made it closes it."""

    @asynccontextmanager
    async def lifespan(_web: FastAPI) -> AsyncGenerator[None]:
        await system.pg.outbox.publish()
        yield

    web = FastAPI(title="CampoTech", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    web.state.system = system
    add_handlers(web)
    for router in (intake.router, jobs.router, payment.router, webhook.router, status.router, status.admin):
        web.include_router(router)
    return web
