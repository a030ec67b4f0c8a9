"""A process that judges alerts, by a clock that the test moves for all, and dies at one step."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from faena import Alerts, Faena, Thresholds, Webhook
from faena.telemetry.alerts.evaluator import Evaluator
from tests._support.ledger import Ledger
from tests._support.schedule_process import FileClock

NAMESPACE = "watched"
QUEUES = ("mail", "print", "sms")
BOUND = 3
_PAUSE_S = 0.01
STEPS = ("after:begin", "before:evaluate", "after:evaluate", "before:enqueue", "after:enqueue")
STEPS += ("before:sent", "after:sent")
"""Where processes die, one after the other."""


class AlertPlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    ledger: str
    clock: str
    hook: str


def open_watched(plan: AlertPlan, clock: FileClock) -> Faena:
    """Queues that nobody serves, whose depth is watched."""
    channel = Webhook(name="ops", url=plan.hook, secret="x" * 16, allow_private=True)
    off = {"wait": None, "silent": None}
    alerts = Alerts(channels=[channel], rules=off, interval="1s")
    app = Faena(
        "watched", plan.url, namespace=NAMESPACE, clock=clock, patience="60s", alerts=alerts
    )
    for name in QUEUES:
        queue = app.queue(name, alerts=Thresholds(depth=(BOUND, None)))

        @queue.task(name=f"{name}.work")
        async def work() -> None: ...

    return app


def deadly(evaluator: Evaluator, ledger: Ledger, fatal: str) -> None:
    """Have it die at a step, which it writes to the ledger before."""

    def die(step: str) -> None:
        if step == fatal:
            ledger.write("died", step)
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(name: str, step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def run(*args: Any, **named: Any) -> Any:
            die(f"before:{name}")
            answer = await step(*args, **named)
            if not isinstance(answer, int):  # else it was not its turn
                die(f"after:{name}")
            return answer

        return run

    calls: Any = evaluator._calls
    for name in ("begin", "evaluate", "sent"):
        setattr(calls, name, wrapped(name, getattr(calls, name)))
    sources: Any = evaluator._sources
    object.__setattr__(sources, "enqueue", wrapped("enqueue", sources.enqueue))


async def judge(plan: AlertPlan, fatal: str) -> None:
    clock, ledger = FileClock(plan.clock), Ledger(plan.ledger)
    async with open_watched(plan, clock) as app:
        evaluator = await app.evaluator()
        deadly(evaluator, ledger, fatal)
        ledger.write("up")
        while True:
            await evaluator.run_once()
            await asyncio.sleep(_PAUSE_S)


def main(plan: AlertPlan, fatal: str) -> None:
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(judge(plan, fatal))
