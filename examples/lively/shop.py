"""The queues of the shop and what their handlers do.

The outside world is played by the errands themselves: each says how long it takes and how often the
upstream fails it, so that the verdict knows beforehand how often every handler must start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from faena import (
    Discard,
    Faena,
    Job,
    Limit,
    Middleware,
    Priority,
    Queue,
    RateLimited,
    Retain,
    Retry,
    Task,
)

ATTEMPTS = 4
_RETRY = Retry.exponential(base="300ms", cap="2s", attempts=ATTEMPTS, floor="0s")
_RETAIN = Retain(
    completed="1h", completed_count=None, dead_count=None, cancelled="1h", cancelled_count=None
)


@dataclass(frozen=True)
class Errand:
    """The payload of every task here."""

    takes_ms: int
    fails: int = 0
    """Attempts that the upstream lets fail before one works."""
    is_void: bool = False
    """There is nothing to do it with; trying again will not help."""
    busy_until: float = 0.0
    """Until then (unix seconds) the upstream answers "too many requests"."""


async def request_cae(errand: Errand, job: Job) -> str:
    """Ask the tax authority for an invoice's authorisation."""
    await _call_upstream(errand, job, "AFIP does not answer")
    return f"CAE-{job.id}"


async def take_payment(errand: Errand, job: Job) -> None:
    """Book what the payment provider tells us."""
    await _call_upstream(errand, job, "the ledger is locked")


async def send_message(errand: Errand, job: Job) -> None:
    """Send a WhatsApp message; the provider may ask everybody to wait."""
    wait_s = errand.busy_until - time.time()
    if wait_s > 0:
        raise RateLimited(retry_after=wait_s)
    await _call_upstream(errand, job, "WhatsApp hung up")


def render_pdf(errand: Errand) -> int:
    """Render an invoice: a plain function, so it runs in a thread."""
    if errand.is_void:
        raise Discard("the invoice has no lines")
    time.sleep(errand.takes_ms / 1000)
    return errand.takes_ms * 100


async def transcribe(errand: Errand, job: Job) -> str:
    """Write down a voice message, step by step."""
    for step in range(20):
        job.progress(step * 5)
        await asyncio.sleep(errand.takes_ms / 20_000)
    return "the boiler in Belgrano leaks again"


async def count_visit(errand: Errand) -> None:
    """Feed the statistics."""
    await asyncio.sleep(errand.takes_ms / 1000)


async def _call_upstream(errand: Errand, job: Job, complaint: str) -> None:
    await asyncio.sleep(errand.takes_ms / 1000)
    if job.attempt <= errand.fails:
        raise ConnectionError(complaint)


@dataclass(frozen=True)
class Shop:
    """The app and its tasks."""

    app: Faena
    request_cae: Task[Errand, str]
    take_payment: Task[Errand, None]
    send_message: Task[Errand, None]
    render_pdf: Task[Errand, int]
    transcribe: Task[Errand, str]
    count_visit: Task[Errand, None]

    @property
    def queues(self) -> list[Queue]:
        return list(self.app.queues.values())


def open_shop(url: str, middleware: Sequence[Middleware] = ()) -> Shop:
    """Declare everything; producers and workers call this alike."""
    app = Faena("campotech", url, middleware=middleware)
    queue = partial(app.queue, lease="2s", retain=_RETAIN, retry=_RETRY)
    webhooks = queue("payment.webhook", priority=Priority.HIGH, concurrency=4)
    afip = queue("afip.invoice", priority=Priority.HIGH, concurrency=3, limits=[Limit("25/s")])
    messages = queue("whatsapp.outbound", priority=Priority.HIGH, concurrency=4)
    return Shop(
        app=app,
        take_payment=webhooks.task(take_payment),
        request_cae=afip.task(request_cae),
        send_message=messages.task(send_message),
        transcribe=queue("voice.transcription", concurrency=2).task(transcribe),
        render_pdf=queue("invoice.pdf", concurrency=2).task(render_pdf),
        count_visit=queue("analytics", priority=Priority.BULK, concurrency=4).task(count_visit),
    )
