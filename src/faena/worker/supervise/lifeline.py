"""The tie between a worker process and its supervisor: a socket that ends with either of them.

    worker → supervisor    serving N   every part is at work; its pool wants N processes
                           alive       now and then, from a thread that nothing but a lost GIL stops
    supervisor → worker    hurry       hand running jobs back at once
    end of file            the supervisor is dead, however it died: finish, then leave

The worker finds its end in an environment variable and removes that, so that no process it starts
takes the line for its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, MutableMapping
from typing import Final

from faena.errors import ConfigError

VARIABLE: Final = "FAENA_LIFELINE"
ALIVE_EVERY_S: Final = 5.0


class Lifeline:
    """The worker's end."""

    def __init__(self, end: socket.socket) -> None:
        end.set_inheritable(False)
        end.setblocking(False)
        self._end = end
        self._closed = threading.Event()

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> Lifeline | None:
        """The line this process was started with; None when nobody supervises it."""
        number = environ.pop(VARIABLE, None)
        if number is None:
            return None
        try:
            return cls(socket.socket(fileno=int(number)))
        except (ValueError, OSError) as error:
            raise ConfigError(
                f"{VARIABLE} must be the number of an open socket, got {number!r}: unset it",
                field=VARIABLE,
                value=number,
            ) from error

    def watch(self, *, on_hurry: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Call back, in the running loop, when the supervisor speaks or is gone."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                said = self._end.recv(4096)
            except BlockingIOError:
                return
            except OSError:
                said = b""
            if b"hurry" in said:
                on_hurry()
            elif not said:
                loop.remove_reader(self._end)
                on_lost()

        loop.add_reader(self._end, read)

    def tell_serving(self, instances: int) -> None:
        """Say that work is being served, and from now on that this process lives."""
        self._say(f"serving {instances}")
        threading.Thread(target=self._live, name="faena-lifeline", daemon=True).start()

    def _live(self) -> None:
        while not self._closed.wait(ALIVE_EVERY_S):
            self._say("alive")

    def _say(self, words: str) -> None:
        # A supervisor that is dead or frozen hears nothing, and nothing here must wait for it.
        with contextlib.suppress(OSError):
            self._end.send(f"{words}\n".encode())
