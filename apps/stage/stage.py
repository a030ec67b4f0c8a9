"""Brings a CampoTech up and down again: Valkey, PostgreSQL, stand-ins, API, workers, businesses."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from apps.campotech import registry
from apps.campotech.api.operators import PATH, for_operators
from apps.campotech.database import migrate
from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.sandbox.afip import Afip
from apps.sandbox.sandbox import Sandbox
from apps.stage import town
from apps.stage.crew import Crew
from apps.stage.town import PLATFORM, Business

_OTHERS: Final = ("FAENA_", "REDIS_", "CAMPOTECH_", "WORKER_", "AFIP_", "MP_", "WHATSAPP_")
"""Settings of somebody else's installation: a stage has its own."""
_UP_WITHIN_S: Final = 300.0
_LOOK_EVERY_S: Final = 0.1
_CONNECTIONS: Final = httpx.Limits(max_connections=64, max_keepalive_connections=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What kind of stage."""

    organizations: int
    speed: float
    seed: int = 0
    lease: str = "5s"
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """More settings of CampoTech."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything that is up."""

    wanted: Wanted
    directory: Path
    url: str
    """Of the API."""
    admin: dict[str, str]
    """What an administrator shows."""
    sandbox: Sandbox
    system: System
    """To look at what happens; it serves no queue."""
    crew: Crew
    businesses: list[Business]
    http: httpx.AsyncClient

    async def link(self) -> str:
        """A link to the dashboard, which lets one person in."""
        return await for_operators(self.system).link(f"{self.url}{PATH}")

    async def rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """What the database says."""
        async with self.system.pg.transaction("stage") as connection:
            return await (await connection.execute(query.encode(), given)).fetchall()


@asynccontextmanager
async def open_stage(
    wanted: Wanted, directory: Path, tell: Callable[[str], None]
) -> AsyncGenerator[Stage]:
    """Bring everything up, and tell how it goes."""
    for name in [one for one in os.environ if one.startswith(_OTHERS)]:
        del os.environ[name]
    sandbox = Sandbox(afip=Afip())
    credential = sandbox.afip.issue_certificate(PLATFORM, points_of_sale=())
    async with sandbox.serving() as outside:
        tell(f"the tax office, MercadoPago, WhatsApp and OpenAI are played at {outside}")
        port = _free_port()
        environ = {
            **sandbox.environment(outside),
            "CAMPOTECH_DIRECTORY": str(directory / ".faena"),
            "CAMPOTECH_SECRETS": secrets.token_hex(32),
            "CAMPOTECH_ADMIN_TOKEN": secrets.token_hex(16),
            "CAMPOTECH_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "CAMPOTECH_DASHBOARD_LINK": "true",
            "CAMPOTECH_SPEED": f"{wanted.speed:g}",
            "CAMPOTECH_LEASE": wanted.lease,
            "STORAGE_URL": (directory / "files").as_uri(),
            "AFIP_CERTIFICATE": credential.certificate_pem.decode(),
            "AFIP_KEY": credential.key_pem.decode(),
            **wanted.environ,
        }
        async with System(Settings.from_env(environ)) as system:
            crew = Crew(directory, {**os.environ, **environ})
            try:
                async with _opened(wanted, directory, system, sandbox, crew, port, tell) as stage:
                    yield stage
            finally:
                await crew.leave()


@asynccontextmanager
async def _opened(
    wanted: Wanted,
    directory: Path,
    system: System,
    sandbox: Sandbox,
    crew: Crew,
    port: int,
    tell: Callable[[str], None],
) -> AsyncGenerator[Stage]:
    await migrate.upgrade(system.pg)
    await system.pg.outbox.publish()
    tell("Valkey and PostgreSQL are up, all tables are made")
    chance = random.Random(wanted.seed)
    businesses = [town.invent(number, chance) for number in range(1, wanted.organizations + 1)]
    await town.settle(system, sandbox, businesses)
    crew.start("api", "api", str(port))
    for pool in registry.POOLS:
        crew.start(pool, "worker", pool)
    admin = {"authorization": f"Bearer {system.settings.admin_token}"}
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(
        base_url=url, limits=_CONNECTIONS, timeout=60, trust_env=False
    ) as http:
        stage = Stage(
            wanted=wanted,
            directory=directory,
            url=url,
            admin=admin,
            sandbox=sandbox,
            system=system,
            crew=crew,
            businesses=businesses,
            http=http,
        )
        await _until_up(stage)
        tell(f"{len(businesses):,} businesses; the API answers at {url}; all workers serve")
        yield stage


async def _until_up(stage: Stage) -> None:
    """Until the API answers and each queue has a worker."""
    async with asyncio.timeout(_UP_WITHIN_S):
        while not (await _is_answering(stage.http) and await _is_served(stage.system)):
            stage.crew.check()
            await asyncio.sleep(_LOOK_EVERY_S)


async def _is_answering(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/api/health")).status_code == 200
    except httpx.TransportError:
        return False


async def _is_served(system: System) -> bool:
    views = [await queue.overview() for queue in system.queues.values()]
    return all(view.workers for view in views)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
