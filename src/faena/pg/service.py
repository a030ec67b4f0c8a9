"""What workers do for PostgreSQL beside their jobs; whatever fails there stops no job."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from faena.errors import FaenaError

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0

_log = logging.getLogger("faena.pg")


async def serve(pg: Postgres) -> None:
    """Relay the outbox until cancelled."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            await _relay(pg)
        except* FaenaError as errors:
            _log.warning("PostgreSQL is tried again in %.0f s: %s", wait_s, errors.exceptions[0])
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


async def _relay(pg: Postgres) -> None:
    from faena.pg.lag import Lag  # noqa: PLC0415 - these need Postgres itself
    from faena.pg.refill import Refill  # noqa: PLC0415
    from faena.pg.relay import OutboxRelay  # noqa: PLC0415
    from faena.pg.settlement import Settlements  # noqa: PLC0415

    await pg.outbox.publish()
    runtime, recipient = await pg.app.runtime(), f"@{await pg.outbox.name()}"
    engine = runtime.engine  # not the patient one: a transaction may be open meanwhile
    settlements = Settlements(pg, engine, recipient)
    refill = Refill(pg, engine, settlements, recipient)
    lag = Lag(pg, engine, pg.outbox.late_s)
    relay = OutboxRelay(pg, settlements, refill, lag, recipient)
    runtime.relay.outlets[recipient] = settlements.notify
    async with asyncio.TaskGroup() as both:
        both.create_task(settlements.run())
        both.create_task(relay.run())
