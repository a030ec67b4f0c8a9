"""One trace of two jobs, the first of which needs two attempts, and a log line that knows its job.

python -m examples.traces
"""

import asyncio
import logging
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import faena.logging
from faena import Faena, Job, Retry

spans = InMemorySpanExporter()  # a program would export to its collector
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
log = logging.getLogger("shop")

app = Faena("traces")
mail = app.queue("mail", retry=Retry.fixed("100ms", attempts=3, floor="0s", jitter=0))
printer = app.queue("print")


@printer.task
def stamp(number: int) -> None:
    log.info("stamped", extra={"number": number})


@mail.task
async def send(number: int, job: Job) -> None:
    if job.attempt == 1:
        raise ConnectionRefusedError("the post is closed")
    await stamp.enqueue(number)


def show(found: Sequence[ReadableSpan], parent: int | None = None, depth: int = 0) -> None:
    """Print spans as a tree."""
    for span in sorted(found, key=lambda one: one.start_time or 0):
        if (span.parent.span_id if span.parent else None) == parent:
            outcome = (span.attributes or {}).get("faena.outcome", "")
            print(f"{'  ' * depth}{span.name} {outcome}".rstrip())
            show(found, span.context.span_id, depth + 1)


async def main() -> None:
    faena.logging.configure("json")
    async with app:
        with trace.get_tracer("shop").start_as_current_span("GET /orders/7"):
            await send.enqueue(7, tenant="acme")
        await app.run_worker(until_empty=True)
    show(spans.get_finished_spans())


if __name__ == "__main__":
    asyncio.run(main())
