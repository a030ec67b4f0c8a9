"""Signals become calls on the event loop, where everything else happens too."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

Handlers = Mapping[signal.Signals, Callable[[], None]]


@contextmanager
def handling(handlers: Handlers) -> Generator[None]:
    """Answer these signals on the running loop while the block lasts."""
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def stopping(stop: Callable[[], None], *, is_supervised: bool) -> Handlers:
    """SIGTERM and SIGINT call `stop`, which hurries when it is called again.

    A supervised worker calls it once, however many come: an init system may signal it beside its
    supervisor, and two that mean one stop must not hurry it. Its supervisor says so in words.
    """
    seen: list[bool] = []

    def on_signal() -> None:
        if not (is_supervised and seen):
            seen.append(True)
            stop()

    return {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
