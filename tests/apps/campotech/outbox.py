"""Sends what is in the outbox, as workers do by themselves."""

from __future__ import annotations

from apps.campotech.system import System

from faena.pg.relay import OutboxRelay
from faena.pg.settlement import Settlements
from faena.testing import Harness


async def relay(system: System) -> int:
    """How many jobs were sent."""
    pg, engine = system.pg, (await system.app.runtime()).engine
    name = f"@{await pg.outbox.name()}"
    relay = OutboxRelay(pg, Settlements(pg, engine, name), name)
    async with await pg.connect(await pg.url(), autocommit=True) as connection:
        return await relay.run_once(connection) or 0


async def settle(system: System, harnessed: Harness) -> None:
    """Run jobs and send the outbox until nothing is left to do now."""
    while True:
        report = await harnessed.drain(schedules=False)
        report.check()
        if not await relay(system) and not report.runs:
            return
