"""One worker process as its supervisor sees it: started, serving, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from faena.worker.supervise import lifeline

OVER_MEMORY: Final = os.EX_TEMPFAIL
"""The exit code of a worker that stopped at its memory limit, to be restarted."""

_REASONS: Final = {
    OVER_MEMORY: "its memory was over the limit",
    os.EX_SOFTWARE: "its event loop was stuck",
}


class WorkerProcess:
    """A child process and its lifeline."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        line: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        on_serving: Callable[[int], None],
    ) -> None:
        """Use `start`."""
        self._process = process
        self._reader, self._writer = line
        self._on_serving = on_serving
        self._started = self._heard = time.monotonic()
        self.pid = process.pid
        self.serving = asyncio.Event()
        self._ending = asyncio.create_task(self._wait())

    @classmethod
    async def start(
        cls, argv: Sequence[str], *, on_serving: Callable[[int], None]
    ) -> WorkerProcess:
        """Start a process in its own session, so that only the supervisor gets Ctrl-C."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                environ = {**os.environ, lifeline.VARIABLE: str(theirs.fileno())}
                process = await asyncio.create_subprocess_exec(
                    *argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    env=environ,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        return cls(process, await asyncio.open_connection(sock=ours), on_serving)

    # -- its life ---------------------------------------------------------------------------------

    @property
    def lived_s(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started

    @property
    def silent_s(self) -> float:
        """Seconds since its last message; 0 before it serves."""
        return time.monotonic() - self._heard if self.serving.is_set() else 0.0

    async def ended(self) -> int:
        """Wait for its end; returns the exit code, negative for a signal."""
        return await asyncio.shield(self._ending)

    async def ended_within(self, limit_s: float) -> bool:
        """Wait for its end for at most `limit_s`; returns whether it ended."""
        done, _ = await asyncio.wait({self._ending}, timeout=limit_s)
        return bool(done)

    async def served_within(self, limit_s: float) -> bool:
        """Wait until it serves; False when it ended before, or took too long."""
        serving = asyncio.create_task(self.serving.wait())
        await asyncio.wait(
            {serving, self._ending}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
        )
        serving.cancel()
        return self.serving.is_set() and not self._ending.done()

    async def _wait(self) -> int:
        listening = asyncio.create_task(self._listen())
        try:
            return await self._process.wait()
        finally:
            listening.cancel()
            self._writer.close()

    async def _listen(self) -> None:
        with contextlib.suppress(OSError):
            async for line in self._reader:
                self._heard = time.monotonic()
                word, _, number = line.decode(errors="replace").strip().partition(" ")
                if word == "serving" and number.isdigit():
                    self.serving.set()
                    self._on_serving(int(number))

    # -- its end ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask it to stop gracefully."""
        self._signal(signal.SIGTERM)

    def hurry(self) -> None:
        """Ask it to release its running jobs and stop now."""
        with contextlib.suppress(OSError):
            self._writer.write(b"hurry\n")
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def describe(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    reason = f" ({_REASONS[code]})" if code in _REASONS else ""
    return f"ended with code {code}{reason}"
