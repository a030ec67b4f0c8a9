"""Stops a worker gracefully.

    no more claims → handlers end, or their jobs are released at the deadline → last settlements

A stop uses no attempts: jobs that do not end in time return to their position.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from faena.worker.execute.gatherer import Gatherer
from faena.worker.fetch.fetchers import Fetchers
from faena.worker.fetch.hold_broadcast import HoldBroadcast

_LAST_CALLS_S = 10.0
_HANDLERS_END_S = 1.0


class GracefulStop:
    """The stop of one worker: when it was requested, and what it does."""

    def __init__(
        self,
        fetchers: Fetchers,
        gatherer: Gatherer,
        hold_broadcast: HoldBroadcast,
        *,
        grace_s: float,
    ) -> None:
        """`grace_s` is how long handlers may run before their jobs are released."""
        self._fetchers = fetchers
        self._gatherer = gatherer
        self._hold_broadcast = hold_broadcast
        self._grace_s = grace_s
        self._hurried = asyncio.Event()
        self.requested = asyncio.Event()

    def request(self) -> None:
        """Stop; on a second call, release running jobs immediately."""
        if self.requested.is_set():
            self.hurry()
        self.requested.set()

    def hurry(self) -> None:
        """Wait for no handler."""
        self._hurried.set()

    async def wind_down(
        self, waking: asyncio.Task[None], checking: Sequence[asyncio.Task[None]]
    ) -> None:
        """End the claims, then the handlers, then the settlements, as far as there is time."""
        for task in checking:
            task.cancel()
        fetchers = self._fetchers
        fetchers.close()
        self._gatherer.close()
        waking.cancel()
        await asyncio.wait({waking}, timeout=_LAST_CALLS_S)
        fetchers.request_exchanges()
        ending = fetchers.ending()
        hurrying = asyncio.create_task(self._hurried.wait())
        await asyncio.wait(
            {ending, hurrying}, timeout=self._grace_s, return_when=asyncio.FIRST_COMPLETED
        )
        hurrying.cancel()
        fetchers.hand_back()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_CALLS_S):
                await ending

    async def end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """End what still runs, also after a failure."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fetchers.cancel()
        await self._fetchers.end_handlers(_HANDLERS_END_S)
        await self._hold_broadcast.finish(_LAST_CALLS_S)
