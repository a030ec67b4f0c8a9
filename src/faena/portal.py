"""The door for code without an event loop: a thread with a loop of its own, and nothing else.

receipt = app.sync.run(task.enqueue({"to": "ana"}))
result = app.sync.run(receipt.handle.result(timeout="30s"))
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from faena.errors import ConfigError

T = TypeVar("T")


class Portal:
    """Runs coroutines for threads that have no event loop."""

    def __init__(self, close_app: Callable[[], Awaitable[None]]) -> None:
        self._close_app = close_app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the portal's loop and wait for it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            coroutine.close()
            raise ConfigError("app.sync must be used outside an event loop: await the call itself")
        return asyncio.run_coroutine_threadsafe(coroutine, self._started()).result()

    def close(self) -> None:
        """End the thread and its connections; the next call starts anew."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._pid == os.getpid():
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    async def _end(self) -> None:
        await self._close_app()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():  # a forked child has no thread
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="faena-portal", daemon=True).start()
                if self._pid != os.getpid():
                    atexit.register(self.close)
                self._loop, self._pid = loop, os.getpid()
            return self._loop
