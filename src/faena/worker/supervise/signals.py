"""Handles signals as callbacks on the event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

Handlers = Mapping[signal.Signals, Callable[[], None]]


@contextmanager
def handling(handlers: Handlers) -> Generator[None]:
    """Handle these signals on the running loop inside the `with` block."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def stopping(stop: Callable[[], None], *, is_supervised: bool) -> Handlers:
    """SIGTERM and SIGINT call `stop`; a second call of it stops immediately.

    A supervised worker calls it only once: an init system may signal both the supervisor and the
    worker, and the two signals of one stop must not hurry it. Its supervisor sends `hurry` instead.
    """
    seen: list[bool] = []

    def on_signal() -> None:
        if not (is_supervised and seen):
            seen.append(True)
            stop()

    return {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
