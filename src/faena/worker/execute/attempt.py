"""One attempt: a claimed job in the hands of its handler."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from faena.declaring.handler import Handler
from faena.engine.scripts import Claim
from faena.job import Job
from faena.retry import Retry


class Stop(Enum):
    """Why a running attempt was told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    LOST = "lost"
    SHUTDOWN = "shutdown"


class Call(Protocol):
    """A function that is to be called: for one attempt, or for those of a batch."""

    handler: Handler
    payload: Any
    """What the function is given; a list of it for a batch."""
    job: Any
    """The same of the job."""


class Attempt:
    """What the executor knows of a running job."""

    __slots__ = (
        "claim",
        "expires_s",
        "fresh_until",
        "handler",
        "interrupt",
        "job",
        "payload",
        "retry",
        "started",
        "stop",
        "task",
        "timeout_s",
        "timer",
    )

    def __init__(
        self,
        claim: Claim,
        handler: Handler,
        job: Job,
        timeout_s: float,
        retry: Retry | None = None,
        started: float | None = None,
    ) -> None:
        self.claim = claim
        self.handler = handler
        self.retry = retry or handler.retry
        self.job = job
        self.timeout_s = timeout_s
        self.payload: Any = None
        self.fresh_until = math.inf
        """The monotonic instant until which it may begin without asking for its lease."""
        self.expires_s: float | None = None
        """How long from now on it may wait for its call; None for any time."""
        self.started = time.monotonic() if started is None else started
        self.stop: Stop | None = None
        """Set once, by whoever was first to end it early."""
        self.task: asyncio.Task[Any] | None = None
        """The task that runs it, once one does."""
        self.timer: asyncio.TimerHandle | None = None
        self.interrupt: Callable[[], object] | None = None
        """How a thread or a process is stopped; None for a coroutine, whose task is cancelled.
        False is its answer when the function goes on for other jobs."""

    def end_early(self, why: Stop) -> bool:
        """Tell the handler to stop, and whether that is to end it. The first reason stands."""
        if self.stop is not None:
            return False
        self.stop = why
        self.job.cancelled = True
        if why is Stop.LOST:
            self.job.detach()
        if self.interrupt is not None:
            return self.interrupt() is not False
        if self.task is not None:
            self.task.cancel()
        return True

    def disarm(self) -> None:
        """The attempt is over: its time limit no longer matters."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
