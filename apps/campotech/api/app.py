"""The application, for uvicorn and for tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

from apps.campotech.api import (
    archives,
    conversation,
    intake,
    jobs,
    payment,
    queues,
    status,
    tracking,
    webhook,
)
from apps.campotech.api.body import BoundedBody
from apps.campotech.api.description import describe
from apps.campotech.api.gate import Gate
from apps.campotech.api.live import Tracking
from apps.campotech.api.operators import PATH, for_operators
from apps.campotech.api.problem import add_handlers
from apps.campotech.api.vitals import Doctor
from apps.campotech.tracking.hub import Bounds

if TYPE_CHECKING:
    from apps.campotech.system import System

_FOR_EACH_CONNECTION: Final = 4
"""Requests inside for each connection to the database: more would only wait."""


_ROUTERS: Final = (
    intake.router,
    jobs.router,
    archives.router,
    tracking.router,
    payment.router,
    conversation.router,
    webhook.router,
    status.router,
    status.admin,
    queues.router,
)


_BOUNDS: Final = Bounds()


def create(system: System, bounds: Bounds = _BOUNDS) -> FastAPI:
    """An application for one CampoTech, which stays open: who made it closes it."""

    @asynccontextmanager
    async def lifespan(_web: FastAPI) -> AsyncGenerator[None]:
        await system.pg.outbox.publish()
        yield
        await operators.close()

    operators = for_operators(system)
    web = FastAPI(
        title="CampoTech",
        version="1",
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    web.state.system, web.state.tracking = system, Tracking(system, bounds)
    web.state.doctor = Doctor(system)
    web.add_middleware(BoundedBody)
    web.add_middleware(Gate, most=_FOR_EACH_CONNECTION * system.pg.pool_size)
    add_handlers(web)
    describe(web)
    for router in _ROUTERS:
        web.include_router(router)
    web.mount(PATH, operators)
    return web
