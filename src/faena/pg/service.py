"""What workers do for PostgreSQL beside their jobs; whatever fails there stops no job."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from faena.errors import FaenaError

if TYPE_CHECKING:
    from faena.pg.lag import Lag
    from faena.pg.postgres import Postgres
    from faena.pg.refill import Refill

_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 10.0
_WATCH_S: Final = 1.0

_log = logging.getLogger("faena.pg")


async def serve(pg: Postgres) -> None:
    """Relay the outbox, and delete old records of effects, until cancelled."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            await _relay(pg)
        except* FaenaError as errors:
            _log.warning("PostgreSQL is tried again in %.0f s: %s", wait_s, errors.exceptions[0])
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


async def _relay(pg: Postgres) -> None:
    from faena.pg.effect_upkeep import keep_effects  # noqa: PLC0415 - these need Postgres itself
    from faena.pg.lag import Lag  # noqa: PLC0415
    from faena.pg.refill import Refill  # noqa: PLC0415
    from faena.pg.relay import OutboxRelay  # noqa: PLC0415
    from faena.pg.settlement import Settlements  # noqa: PLC0415

    await pg.outbox.publish()
    runtime, recipient = await pg.app.runtime(), f"@{await pg.outbox.name()}"
    engine = runtime.engine  # not the patient one: a transaction may be open meanwhile
    settlements = Settlements(pg, engine, recipient)
    refill = Refill(pg, engine, settlements, recipient)
    runtime.relay.outlets[recipient] = settlements.notify
    async with asyncio.TaskGroup() as all_of_it:
        all_of_it.create_task(settlements.run())
        all_of_it.create_task(_watch(refill, Lag(pg, engine, pg.outbox.late_s)))
        all_of_it.create_task(OutboxRelay(pg, settlements, recipient).run())
        if pg.keep_effects is not None:
            all_of_it.create_task(keep_effects(pg, pg.keep_effects))


async def _watch(refill: Refill, lag: Lag) -> None:
    """Look after the broker and the lag, beside the relay: a commit must not wait for that."""
    while True:
        try:
            await refill.run_once()
            await lag.run_once()
        except FaenaError as error:
            _log.warning("the outbox is watched later: %s", error)
        await asyncio.sleep(_WATCH_S)
