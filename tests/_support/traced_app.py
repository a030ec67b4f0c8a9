"""An app that sets up OpenTelemetry as programs do: where it is declared, so that children have it.

Its handlers log and make spans in a coroutine, in a thread and in a process.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from opentelemetry import trace

from faena import Faena, Job, Retry
from tests._support.spans import provider_to

if spans := os.environ.get("SPANS"):
    trace.set_tracer_provider(provider_to(spans, holds="HOLDS" in os.environ))

app = Faena("traced")
mail = app.queue(
    "mail", lease="2s", timeout="60s", retry=Retry.fixed("20ms", attempts=2, floor="0s")
)
tracer = trace.get_tracer("own")
log = logging.getLogger("shop")


@mail.task
def wait(held: str, job: Job) -> None:
    """The first delivery does not end; its worker must be killed."""
    if not job.losses:
        Path(held).touch()
        time.sleep(3600)


@mail.task
async def here(card: str) -> None:
    with tracer.start_as_current_span("own here"):
        log.info("said here", extra={"colour": "red"})


@mail.task
def thread(card: str) -> None:
    with tracer.start_as_current_span("own thread"):
        log.info("said thread")


@mail.task(run="process")
def process(card: str) -> None:
    with tracer.start_as_current_span("own process"):
        log.info("said process")


@mail.batch(size=2, wait="10m", run="process")
def pack(cards: list[str]) -> None:
    with tracer.start_as_current_span("own pack"):
        log.info("said pack")


@mail.task
async def fail(card: str) -> None:
    try:
        int(card)
    except ValueError:
        raise LookupError("no luck\nat all") from None
