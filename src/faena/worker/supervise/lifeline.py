"""The socket between a worker process and its supervisor; it closes when either of them dies.

    worker → supervisor    serving N   all parts have started; its pool wants N processes
                           alive       now and then, from a thread that only a blocked GIL stops
    supervisor → worker    hurry       release running jobs now
    end of file            the supervisor has died: stop gracefully

The worker finds the socket in an environment variable and removes the variable, so that no process
that it starts uses the same socket.
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
        """The lifeline that this process was started with; None without a supervisor."""
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
        """Call back, in the running loop, when the supervisor says `hurry` or has died."""
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

    def report_serving(self, instances: int) -> None:
        """Report that the worker serves, and from now on that it is alive."""
        self._say(f"serving {instances}")
        threading.Thread(target=self._live, name="faena-lifeline", daemon=True).start()

    def _live(self) -> None:
        while not self._closed.wait(ALIVE_EVERY_S):
            self._say("alive")

    def _say(self, words: str) -> None:
        # Never wait here: the supervisor may be dead or frozen.
        with contextlib.suppress(OSError):
            self._end.send(f"{words}\n".encode())
