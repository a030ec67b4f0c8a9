"""Processes are killed at each of their steps: what they do behind the scenes is done once."""

from __future__ import annotations

import os
import secrets
import signal
import traceback
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.campotech.upkeep.comparison import ALL, ZONE
from apps.campotech.upkeep.scheduled import message_of
from apps.sandbox.afip import Credential
from apps.sandbox.sandbox import Sandbox

from apps.campotech.messages import Reconciliation
from faena.testing import run_inline
from tests._support import killed_step
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.payments.test_take import paid, pay
from tests.apps.campotech.upkeep.test_reconciliation import foreign, issue, lost

TODAY = datetime.now(ZONE).date()
SUMS = (
    "SELECT looked_at, repaired, differing, finished_at IS NOT NULL FROM campotech.reconciliations"
)
FAILED = 200
MONDAY = datetime(2025, 11, 10, 9, tzinfo=UTC)
TOLD = "SELECT count(*) FROM faena.outbox WHERE task = 'push'"


async def reconcile(environ: dict[str, str], given: dict[str, Any]) -> None:
    """One attempt of a run, in a process of its own."""
    async with System(Settings.from_env(environ)) as system:
        await run_inline(system.reconciling.reconcile, Reconciliation(**given))


async def report(environ: dict[str, str], target: UUID | None) -> None:
    """One attempt of the weekly reports, of all organisations or of one; roll-ups are there."""
    metadata = {"after": str(ALL)} if target is None else {"rollups": "fresh"}
    async with System(Settings.from_env(environ)) as system:
        task = system.scheduled.tasks["weekly_report"]
        message = message_of("weekly_report", MONDAY, target=target, metadata=metadata)
        await run_inline(task, message)


def environment(
    world: Sandbox, database: str, tmp_path: Path, platform: Credential
) -> dict[str, str]:
    return {
        **world.environment(world.url),
        "CAMPOTECH_DATABASE_URL": database,
        "CAMPOTECH_SECRETS": secrets.token_hex(32),
        "STORAGE_URL": (tmp_path / "files").as_uri(),
        "AFIP_CERTIFICATE": platform.certificate_pem.decode(),
        "AFIP_KEY": platform.key_pem.decode(),
    }


async def kill_at_each_step(work: Any, log: Path, *args: Any) -> int:
    """Run it in processes that die before their first step, their second … until one lives; how
    many have died. What one of them has committed, the next ones find."""
    driver = Forked(drive, work, *args, log=log)
    await eventually(lambda: driver.code is not None, within=300)
    assert driver.code is not None
    assert 0 < driver.code < FAILED, f"see {log}"
    return driver.code


def drive(work: Any, *args: Any) -> int:
    """Fork a process for each step, from one that has imported everything."""
    for fatal in range(1, FAILED):
        child = os.fork()
        if child == 0:
            try:
                killed_step.run(work, fatal, *args)
            except BaseException:  # noqa: BLE001 - told by the exit code
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != -signal.SIGKILL:
            return FAILED if status else fatal - 1
    return FAILED


def wanted(kind: str) -> dict[str, Any]:
    return {
        "org_id": ALL,
        "idempotency_key": "reconciliation-of-the-killed",
        "created_at": datetime.now(UTC),
        "reconciliation_type": kind,
        "date_from": TODAY - timedelta(days=1),
        "date_to": TODAY,
    }


async def test_payments_are_taken_in_and_counted_once_whoever_dies(
    office: Office, database: str, tmp_path: Path, platform: Credential
) -> None:
    invoice = await office.business.invoice()
    for _ in range(3):
        await pay(office.system, office.world, invoice, 100_00)
    await pay(office.system, office.world, "nobody's", 1_00)
    environ = environment(office.world, database, tmp_path, platform)
    log = tmp_path / "killed.log"
    assert await kill_at_each_step(reconcile, log, environ, wanted("payments")) > 20
    assert await office.rows(SUMS) == [(4, 3, 1, True)]
    assert await paid(office.business, invoice) == 300_00
    query = "SELECT count(*) FROM campotech.audit_logs WHERE action = 'payment'"
    assert await office.rows(query) == [(3,)]


async def test_invoices_are_repaired_listed_and_told_once_whoever_dies(
    office: Office, database: str, tmp_path: Path, platform: Credential
) -> None:
    await issue(office, 1)
    await foreign(office)
    invoice = await lost(office)
    before = await office.rows("SELECT count(*) FROM faena.outbox WHERE task = 'request_cae'")
    environ = environment(office.world, database, tmp_path, platform)
    log = tmp_path / "killed.log"
    assert await kill_at_each_step(reconcile, log, environ, wanted("invoices")) > 20
    assert await office.rows(SUMS) == [(2, 1, 1, True)]
    query = "SELECT status FROM campotech.invoices WHERE id = %s"
    assert await office.rows(query, invoice) == [("issued",)]
    assert await office.rows(TOLD) == [(1,)]
    after = await office.rows("SELECT count(*) FROM faena.outbox WHERE task = 'request_cae'")
    assert after[0][0] == before[0][0] + 1
    logs = "SELECT action, count(*) FROM campotech.audit_logs GROUP BY 1 ORDER BY 1"
    assert await office.rows(logs) == [("cae given", 2), ("reconciliation", 1)]


async def test_each_organisation_gets_one_job_whoever_dies(
    office: Office, other: Business, database: str, tmp_path: Path, platform: Credential
) -> None:
    environ = environment(office.world, database, tmp_path, platform)
    assert await kill_at_each_step(report, tmp_path / "killed.log", environ, None) > 5
    query = "SELECT tenant FROM faena.outbox WHERE task = 'weekly_report' ORDER BY 1"
    assert await office.rows(query) == sorted([(str(office.id),), (str(other.id),)])


async def test_a_report_is_stored_and_mailed_once_whoever_dies(
    office: Office, database: str, tmp_path: Path, platform: Credential
) -> None:
    environ = environment(office.world, database, tmp_path, platform)
    for one in (office.system.rollups.jobs, office.system.rollups.revenue_per_day):
        await one.run(MONDAY.date())
    assert await kill_at_each_step(report, tmp_path / "killed.log", environ, office.id) > 5
    assert await office.rows("SELECT week FROM campotech.reports") == [(date(2025, 11, 3),)]
    query = "SELECT count(*) FROM faena.outbox WHERE task = 'email'"
    assert await office.rows(query) == [(1,)]
