"""Has somebody wait for work: a lookout where a worker serves one home, a waker where there are
more, or none.

When homes come or go one relieves the other. A lookout ends only once the fate of its last claim is
known, and everybody looks afterwards: a marker may have been popped for the one that was relieved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from faena.worker.fetch.eager_claim import Lookout
from faena.worker.fetch.fetcher import Fetcher
from faena.worker.fetch.wake_listener import Waker


class Vigil:
    """Whoever waits for work on behalf of a worker's fetchers, which come and go."""

    def __init__(
        self,
        fetchers: Mapping[str, Fetcher],
        waker: Callable[[], Waker],
        lookout: Callable[[Fetcher], Lookout],
    ) -> None:
        self._fetchers = fetchers
        self._new_waker = waker
        self._new_lookout = lookout
        self._changed = asyncio.Event()
        self._alone: Fetcher | None = None
        self._on_duty: Waker | Lookout | None = None

    def idle_changed(self) -> None:
        """A fetcher has nothing left to claim."""
        if self._on_duty is not None:
            self._on_duty.idle_changed()

    def homes_changed(self) -> None:
        """Fetchers were opened or closed."""
        if self._on_duty is not None and self._find_alone() is not self._alone:
            self._changed.set()

    def _find_alone(self) -> Fetcher | None:
        """The only fetcher that claims, if there is but one."""
        serving = [one for one in self._fetchers.values() if not one.is_closing]
        return serving[0] if len(serving) == 1 else None

    async def run(self) -> None:
        """Wait for work until cancelled."""
        while True:
            self._changed.clear()
            self._alone = self._find_alone()
            alone = self._alone
            self._on_duty = self._new_waker() if alone is None else self._new_lookout(alone)
            await self._stand(self._on_duty)
            for fetcher in self._fetchers.values():
                fetcher.poke()

    async def _stand(self, on_duty: Waker | Lookout) -> None:
        """Return once it was relieved; cancelled, wait for its end unless cancelled again."""
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
