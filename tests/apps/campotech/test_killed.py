"""Workers are killed while invoices are issued, and answers of the tax office are lost: its ledger
has one CAE for each invoice, and the numbers of each business have no gaps."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import defaultdict
from pathlib import Path
from uuid import UUID

from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.sandbox.afip import Credential
from apps.sandbox.sandbox import Sandbox

from apps.sandbox import Fault
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.valkey import Server
from tests.apps.campotech.business import PLATFORM, Business

BUSINESSES, EACH, KILLS = 4, 8, 4
QUEUES = ["afip.invoice", "invoice.pdf", "job.notification", "whatsapp.outbound"]
REQUEST = "FECAESolicitar"
LEFT = "SELECT count(*) FROM campotech.invoices WHERE status <> 'issued' OR pdf_key IS NULL"


def serve(environ: dict[str, str]) -> None:
    """A worker of CampoTech, in a process of its own."""

    async def work() -> None:
        async with System(Settings.from_env(environ)) as system:
            await system.app.run_worker(queues=QUEUES)

    asyncio.run(work())


async def enqueue(system: System, business: Business) -> list[UUID]:
    """Invoices and their jobs, in transactions of their own."""
    made: list[UUID] = []
    for _ in range(EACH):
        invoice = await business.invoice()
        async with system.pg.transaction() as connection:
            await system.pg.outbox.enqueue(
                connection,
                system.issuing.request_cae,
                business.message(invoice),
                tenant=str(business.id),
            )
        made.append(invoice)
    return made


async def issued(system: System) -> int:
    async with system.pg.transaction() as connection:
        row = await (await connection.execute(LEFT)).fetchone()
    return BUSINESSES * EACH - int(row[0] if row else 0)


async def test_each_invoice_has_one_cae_whoever_dies(
    server: Server,
    namespace: str,
    database: str,
    sandbox: Sandbox,
    platform: Credential,
    tmp_path: Path,
) -> None:
    environ = _environ(sandbox, server, namespace, database, tmp_path, platform)
    sandbox.afip.registry.register(int(PLATFORM), ()).services.add("wsfe")
    async with System(Settings.from_env(environ)) as system:
        await system.pg.outbox.publish()
        businesses = [
            await Business.make(system, sandbox, number=str(n)) for n in range(1, BUSINESSES + 1)
        ]
        sandbox.afip.faults.add(Fault(kind="lost", operation=REQUEST, every=5, times=4))
        sandbox.afip.faults.add(Fault(kind="slow", seconds=0.02))
        invoices = [one for each in businesses for one in await enqueue(system, each)]
        workers = [_start(environ, tmp_path, n) for n in (1, 2)]
        for number in range(KILLS):
            aim = 1 + number * len(invoices) // (KILLS + 1)
            await eventually(lambda aim=aim: _has(system, aim))
            workers[number % 2].kill()
            workers[number % 2] = _start(environ, tmp_path, 10 + number)
        await eventually(lambda: _has(system, len(invoices)))
        for one in workers:
            one.kill()
        await _obliterate(system)
    numbers: dict[str, list[int]] = defaultdict(list)
    for entry in sandbox.afip.ledger.of(REQUEST, "ok"):
        cuit, _, _, number = entry.subject.split("/")
        numbers[cuit].append(int(number))
    assert numbers == {one.cuit: list(range(1, EACH + 1)) for one in businesses}


def _environ(
    sandbox: Sandbox,
    server: Server,
    namespace: str,
    database: str,
    tmp_path: Path,
    platform: Credential,
) -> dict[str, str]:
    return {
        **os.environ,
        **sandbox.environment(sandbox.url),
        "CAMPOTECH_BROKER_URL": server.url,
        "CAMPOTECH_NAMESPACE": namespace,
        "CAMPOTECH_DATABASE_URL": database,
        "CAMPOTECH_SECRETS": secrets.token_hex(32),
        "CAMPOTECH_SPEED": "300",
        "CAMPOTECH_LEASE": "2s",
        "STORAGE_URL": (tmp_path / "files").as_uri(),
        "AFIP_CERTIFICATE": platform.certificate_pem.decode(),
        "AFIP_KEY": platform.key_pem.decode(),
    }


async def _has(system: System, number: int) -> bool:
    return await issued(system) >= number


def _start(environ: dict[str, str], tmp_path: Path, number: int) -> Forked:
    return Forked(serve, environ, log=tmp_path / f"worker-{number}.log")


async def _obliterate(system: System) -> None:
    for queue in system.app.queues.values():
        await queue.obliterate(force=True)
