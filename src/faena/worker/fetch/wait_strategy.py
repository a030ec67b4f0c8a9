"""How an idle worker waits: with an eager claim if it serves one shard, else with a wake listener.

When shards come or go, one replaces the other. An eager claim ends only when the outcome of its
last claim is known. Afterwards every fetcher runs an exchange, because the replaced one may have
popped a wake marker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from faena.worker.fetch.eager_claim import EagerClaim
from faena.worker.fetch.fetcher import Fetcher
from faena.worker.fetch.wake_listener import WakeListener


class WaitStrategy:
    """Chooses and runs the way to wait for work, as a worker's fetchers come and go."""

    def __init__(
        self,
        fetchers: Mapping[str, Fetcher],
        wake_listener: Callable[[], WakeListener],
        eager_claim: Callable[[Fetcher], EagerClaim],
    ) -> None:
        self._fetchers = fetchers
        self._new_listener = wake_listener
        self._new_claim = eager_claim
        self._changed = asyncio.Event()
        self._alone: Fetcher | None = None
        self._on_duty: WakeListener | EagerClaim | None = None

    def idle_changed(self) -> None:
        """A fetcher has nothing left to claim."""
        if self._on_duty is not None:
            self._on_duty.idle_changed()

    def shards_changed(self) -> None:
        """Fetchers were opened or closed."""
        if self._on_duty is not None and self._find_alone() is not self._alone:
            self._changed.set()

    def _find_alone(self) -> Fetcher | None:
        """The fetcher that claims, if there is only one."""
        serving = [one for one in self._fetchers.values() if not one.is_closing]
        return serving[0] if len(serving) == 1 else None

    async def run(self) -> None:
        """Wait for work until cancelled."""
        while True:
            self._changed.clear()
            self._alone = self._find_alone()
            alone = self._alone
            self._on_duty = self._new_listener() if alone is None else self._new_claim(alone)
            await self._stand(self._on_duty)
            for fetcher in self._fetchers.values():
                fetcher.request_exchange()

    async def _stand(self, on_duty: WakeListener | EagerClaim) -> None:
        """Return when it was replaced; if cancelled, wait for its end unless cancelled again."""
        changing = asyncio.create_task(self._changed.wait())
        waiting = asyncio.create_task(on_duty.run())
        waiting.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await asyncio.wait({waiting, changing}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            if not waiting.cancelling():
                waiting.cancel()
            await asyncio.wait({waiting})
            raise
        finally:
            changing.cancel()
            waiting.cancel()
        if not waiting.cancelled():
            waiting.result()
