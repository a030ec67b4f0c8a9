"""Bulk actions that the dashboard's own process drives: an app may have no worker at the moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from faena.bulk.carrier import BulkCarrier

if TYPE_CHECKING:
    from faena.app import Faena


class Carrying:
    """Drives bulk actions while there are some; a process that serves none has no task for it."""

    def __init__(self, app: Faena) -> None:
        self._carrier = BulkCarrier(app.bulk)
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """A bulk action begins, or was seen under way."""
        self._carrier.notify()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._carrier.run(is_until_idle=True))

    async def close(self) -> None:
        """Leave them to others."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
