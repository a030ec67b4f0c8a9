"""Has the queue of notices served while there are any: an idle worker sends few commands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from faena.errors import FaenaError

_AFTER_ERROR_S: Final = 5.0

_log = logging.getLogger("faena.alerts")


class NoticeSender:
    """The sender of one worker. Whoever judged alerts and saw notices has them sent."""

    def __init__(self, serve: Callable[[], Awaitable[None]]) -> None:
        """`serve` runs jobs of the queue until it is empty."""
        self._serve = serve
        self._needed = asyncio.Event()

    def notify(self) -> None:
        """There are notices to send."""
        self._needed.set()

    async def run(self) -> None:
        """Serve whenever there are some, until cancelled."""
        while True:
            await self._needed.wait()
            self._needed.clear()
            try:
                await self._serve()
            except FaenaError as error:
                _log.warning("notices of alerts are sent later: %s", error)
                await asyncio.sleep(_AFTER_ERROR_S)
