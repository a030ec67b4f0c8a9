"""One worker process as its supervisor sees it: started, serving, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from faena.worker.serve import reporter
from faena.worker.serve.member import Member
from faena.worker.serve.totals import Totals
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
        member: Member | None,
    ) -> None:
        """Use `start`."""
        self._process = process
        self.member = member
        """What its reports go to, if the supervisor serves."""
        self._reader, self._writer = line
        self._on_serving = on_serving
        self._started = self._heard = time.monotonic()
        self.pid = process.pid
        self.serving = asyncio.Event()
        self._ending = asyncio.create_task(self._wait())

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        on_serving: Callable[[int], None],
        totals: Totals | None = None,
    ) -> WorkerProcess:
        """Start a process in its own session, so that only the supervisor gets Ctrl-C.

        It reports what it measures if there are `totals` to add that to.
        """
        variables = [lifeline.VARIABLE, *([reporter.VARIABLE] if totals is not None else [])]
        pairs = {name: socket.socketpair() for name in variables}
        try:
            process = await _start(argv, {name: theirs for name, (_, theirs) in pairs.items()})
        except BaseException:
            for ours, _ in pairs.values():
                ours.close()
            raise
        finally:
            for _, theirs in pairs.values():
                theirs.close()
        line = await asyncio.open_connection(sock=pairs[lifeline.VARIABLE][0])
        member = None
        if totals is not None:
            member = Member(pairs[reporter.VARIABLE][0], totals, process.pid)
        return cls(process, line, on_serving, member)

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
            if self.member is not None:
                await self.member.end()

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


async def _start(
    argv: Sequence[str], ends: Mapping[str, socket.socket]
) -> asyncio.subprocess.Process:
    """A process that finds its ends of sockets in its environment."""
    numbers = {name: end.fileno() for name, end in ends.items()}
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        env={**os.environ, **{name: str(number) for name, number in numbers.items()}},
        pass_fds=tuple(numbers.values()),
        start_new_session=True,
    )


def describe(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    reason = f" ({_REASONS[code]})" if code in _REASONS else ""
    return f"ended with code {code}{reason}"
