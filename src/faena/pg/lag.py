"""Tells by an event that jobs wait in the outbox for too long, and when they do no more.

Which of the two was told last is in the database, so it is told once, whichever relay notices.
"""

from __future__ import annotations

import time
from typing import Final

from faena.engine import Engine
from faena.engine.calls import pg as calls
from faena.pg.postgres import Postgres

_EVERY_S: Final = 5.0
_LOOK: Final = """
    SELECT count(*), extract(epoch FROM clock_timestamp() - min(created_at))
    FROM (SELECT DISTINCT queue FROM faena.tasks) known, LATERAL (
        SELECT created_at FROM faena.outbox job
        WHERE sent_at IS NULL AND refused IS NULL AND job.queue = known.queue
        ORDER BY number LIMIT 10000) oldest
"""
_NOTE: Final = """
    UPDATE faena.identity SET is_late = %(late)s WHERE is_late <> %(late)s RETURNING name
"""


class Lag:
    """Looks every few seconds how old the oldest pending job is."""

    def __init__(self, pg: Postgres, engine: Engine, late_s: float) -> None:
        self._pg, self._engine, self._late_s = pg, engine, late_s
        self._looked_at = -_EVERY_S

    async def run_once(self) -> None:
        """Tell of a change, if it is time to look."""
        if time.monotonic() < self._looked_at + _EVERY_S:
            return
        self._looked_at = time.monotonic()
        async with self._pg.transaction("outbox") as connection:
            found = await connection.execute(_LOOK.encode())
            number, age = await found.fetchone() or (0, None)
            is_late = age is not None and float(age) >= self._late_s
            noted = await connection.execute(_NOTE.encode(), {"late": is_late})
            changed = await noted.fetchone()
            if changed is not None:  # before it commits: what was told twice does less harm
                event = "outbox_late" if is_late else "outbox_on_time"
                why = f"{number} jobs wait, the oldest for {float(age or 0):.0f} s"
                await calls.tell(self._engine, event, changed[0], why if is_late else "")
