"""Why a job that was enqueued in a transaction is not in its queue, or not any more."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Faena, Retain
from faena.pg import History, Postgres
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working

NOTHING = Retain(completed_count=0, dead_count=0, cancelled_count=0)


def _declare(app: Faena, **options: Any) -> Task[int, None]:
    @app.queue("work", **options).task
    async def note(number: int) -> None: ...

    return note


async def _enqueue(pg: Postgres, task: Task[int, None]) -> str:
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        return await pg.outbox.enqueue(connection, task, 1)


async def test_a_row_that_was_not_sent_says_so_and_a_relay_sends_it(
    app: Faena, pg: Postgres, working: Working
) -> None:
    task = _declare(app)
    job = await _enqueue(pg, task)
    handle = app.queues["work"].handle(job)
    told = await handle.explain()
    assert (told.state, told.source, told.reasons[0].code) == (None, "outbox", "outbox")
    assert "has not been sent to the broker" in str(told)
    assert told.next == ("a relay of the app sends it",)
    async with working(app):

        async def has_completed() -> bool:
            return (await handle.explain()).reasons[0].code == "completed"

        await eventually(has_completed)


@pytest.mark.parametrize(
    ("change", "code"),
    [("refused = 'too large'", "outbox_refused"), ("sent_at = now()", "outbox_sent")],
)
async def test_a_row_that_is_not_sent_again_says_why(
    app: Faena, pg: Postgres, change: str, code: str
) -> None:
    job = await _enqueue(pg, _declare(app))
    async with pg.transaction() as connection:
        await connection.execute(f"UPDATE faena.outbox SET {change}".encode())
    told = await app.queues["work"].handle(job).explain()
    assert told.reasons[0].code == code
    assert len(told.next) == 1


@pytest.mark.parametrize("job", ["';--", "%s", "{0}", "x" * 128])
async def test_an_id_that_was_chosen_to_do_harm_is_unknown(
    app: Faena, pg: Postgres, job: str
) -> None:
    await _enqueue(pg, _declare(app))
    told = await app.queues["work"].handle(job).explain()
    assert (told.source, told.reasons[0].code) == ("nowhere", "unknown")


async def test_a_database_that_cannot_be_asked_says_nothing(app: Faena, bare_database: str) -> None:
    async with Postgres(app, bare_database, relay=False):
        _declare(app)
        told = await app.queues["work"].handle("job").explain()
        assert told.reasons[0].code == "unknown"


async def test_a_job_that_retention_removed_is_told_out_of_the_history(
    app: Faena, database: str, working: Working
) -> None:
    async with Postgres(app, database, history=History()):
        task = _declare(app, retain=NOTHING)
        async with working(app):
            handle = (await task.enqueue(1)).handle

            async def is_past() -> bool:
                return (await handle.explain()).source == "history"

            await eventually(is_past)
        told = await handle.explain()
        assert [one.code for one in told.reasons] == ["completed"]
        assert "it completed 20" in str(told)
