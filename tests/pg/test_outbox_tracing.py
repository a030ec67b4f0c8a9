"""The outbox keeps the trace in which a transaction enqueued its job."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena import Faena, Job
from faena.pg import Postgres
from faena.telemetry.tracing.trace_header import origin_of
from tests._support.eventually import eventually
from tests._support.spans import Spans
from tests._support.valkey import Server
from tests._support.working import Working, obliterate

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def app(valkey: Server, namespace: str, spans: Spans) -> AsyncIterator[Faena]:
    app = Faena("shop", valkey.url, namespace=namespace, tracing=spans.provider)
    yield app
    await obliterate(app)


async def test_jobs_of_a_transaction_run_in_its_trace_and_sql_may_name_one(
    app: Faena, pg: Postgres, spans: Spans, working: Working
) -> None:
    seen: dict[int, dict[str, str]] = {}

    @app.queue("invoices").task
    async def issue(number: int, job: Job) -> None:
        seen[number] = dict(job.headers)

    given = {"x": "y"}
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        with spans.tracer.start_as_current_span("request") as request:
            await pg.outbox.enqueue(connection, issue, 1)
            await pg.outbox.enqueue(connection, issue, 2, headers={"traceparent": GIVEN})
            await pg.outbox.enqueue_many(connection, issue, [3], headers=given)
        await connection.execute(
            "SELECT faena.enqueue('invoices', 'issue', '4',"
            " headers => jsonb_build_object('traceparent', %s::text))",
            [GIVEN],
        )
        await pg.outbox.enqueue(connection, issue, 5)
    async with working(app):
        await eventually(lambda: len(seen) == 5)
    context = request.get_span_context()
    own = f"{context.trace_id:032x}", f"{context.span_id:016x}", True
    assert origin_of(seen[1]) == origin_of(seen[3]) == own
    assert seen[3]["x"] == "y"
    assert given == {"x": "y"}, "it is the caller's"
    assert seen[2] == seen[4] == {"traceparent": GIVEN}
    assert seen[5] == {}
    traces = {
        one.parent.trace_id if one.parent else 0 for one in spans.named("job.attempt invoices")
    }
    assert traces == {context.trace_id, int(GIVEN[3:35], 16), 0}
