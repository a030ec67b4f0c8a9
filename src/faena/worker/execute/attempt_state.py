"""One attempt: a claimed job that is run by its handler."""

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
from faena.resilience.call_group import Permits
from faena.resilience.permits import Permit
from faena.retry import Retry


class Stop(Enum):
    """Why a running attempt was told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    LOST = "lost"
    SHUTDOWN = "shutdown"


class Call(Protocol):
    """A call of a handler: for one attempt, or for those of a batch."""

    handler: Handler
    payload: Any
    """The payload; for a batch, a list of them."""
    job: Any
    """The job; for a batch, a list of them."""


class Attempt:
    """The state of a running job in the executor."""

    __slots__ = (
        "called",
        "claim",
        "expires_s",
        "fresh_until",
        "handler",
        "interrupt",
        "job",
        "payload",
        "permits",
        "probe",
        "retry",
        "spent",
        "started",
        "stop",
        "task",
        "timeout_s",
        "timer",
        "used",
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
        self.permits: Permits | None = None
        """What it may call, where its task names upstreams."""
        self.probe = ""  # the name of its permit, if its call is a probe
        self.called: dict[str, Permit | None] | None = None
        """The upstreams that its handler has called itself; None while it has called none."""
        self.used: dict[str, dict[str, int]] | None = None
        """What its handler says that calls have used, by upstream and item, if it does."""
        self.spent: dict[str, int] | None = None
        """What its handler says that calls have cost, by upstream, if it does."""
        self.fresh_until = math.inf
        """The monotonic instant until which it may start without a check of its lease."""
        self.expires_s: float | None = None
        """How many seconds it may wait for its call; None: no bound."""
        self.started = time.monotonic() if started is None else started
        self.stop: Stop | None = None
        """Why it was told to stop; the first reason is kept."""
        self.task: asyncio.Task[Any] | None = None
        """The asyncio task that runs it, once there is one."""
        self.timer: asyncio.TimerHandle | None = None
        self.interrupt: Callable[[], object] | None = None
        """Stops a thread or a process; None for a coroutine, whose task is cancelled instead.
        Returns False when the call continues for other jobs."""

    @property
    def tenant(self) -> str:
        """Whose job it is; empty for none's."""
        return self.job.tenant or ""

    @property
    def is_timed_out(self) -> bool:
        """Whether it was stopped because it took too long."""
        return self.stop is Stop.TIMEOUT

    @property
    def task_name(self) -> str:
        """The task of its job."""
        return self.handler.name

    def end_early(self, why: Stop) -> bool:
        """Tell the handler to stop; returns whether that can end it. The first reason is kept."""
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
        """Cancel the time limit: the attempt has ended."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
