"""Lets processes drive bulk actions that no other one drives: workers, and the dashboard.

Each looks for bulk actions under way: at once when one begins, and now and then, because the
process that drove one may have died. One at a time drives each; the others look again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import Final

from faena.bulk.bulks import Bulks
from faena.errors import FaenaError

_EVERY_S: Final = 60.0
_SOON_S: Final = 2.0
"""Between two looks while one is under way: the lease of its driver may expire soon."""

_log = logging.getLogger("faena.bulk")


class BulkCarrier:
    """Drives bulk actions in one process."""

    def __init__(self, bulks: Bulks, *, every_s: float = _EVERY_S, soon_s: float = _SOON_S) -> None:
        self._bulks = bulks
        self._every_s, self._soon_s = every_s, soon_s
        self._notified = asyncio.Event()
        self._driving: dict[str, asyncio.Task[None]] = {}

    def notify(self, _shard: str = "", _bulk: str = "") -> None:
        """A bulk action begins, or goes on."""
        self._notified.set()

    async def run(self, *, is_until_idle: bool = False) -> None:
        """Look again and again; with `is_until_idle`, until none is under way."""
        try:
            while True:
                self._notified.clear()
                is_any = await self._look()
                if is_until_idle and not is_any and not self._notified.is_set():
                    return
                wait_s = (self._soon_s if is_any else self._every_s) * (0.8 + random.random())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._notified.wait()
        finally:
            for task in self._driving.values():
                task.cancel()
            await asyncio.gather(*self._driving.values(), return_exceptions=True)

    async def _look(self) -> bool:
        """Drive those that this process does not drive yet; returns whether any is under way."""
        try:
            found = await self._bulks.under_way()
        except FaenaError as error:
            _log.warning("bulk actions could not be read: %s", error)
            return True
        for ident in found:
            if ident not in self._driving:
                task = self._driving[ident] = asyncio.create_task(self._drive(ident))
                task.add_done_callback(lambda _, ident=ident: self._driving.pop(ident))
        return bool(found)

    async def _drive(self, ident: str) -> None:
        try:
            await self._bulks.carry_on(ident)
        except FaenaError as error:
            _log.warning("bulk action %s was interrupted: %s", ident, error)
        except Exception:  # noqa: BLE001 - the border of a service
            _log.exception("bulk action %s was interrupted", ident)
