"""The history of jobs in PostgreSQL: what is stored, found, counted and erased."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from faena import Discard, Faena, Retain
from faena.engine.calls.history import HistoryCalls
from faena.errors import ConfigError, StoreUnavailable
from faena.pg import History, Postgres
from faena.pg.history.partition import Keeper
from faena.pg.history.store import Store
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working

NOTHING = Retain(completed_count=0, dead_count=0, cancelled_count=0)


@pytest.fixture
async def kept(app: Faena, database: str) -> AsyncIterator[Postgres]:
    """With payloads."""
    async with Postgres(app, database, history=History(payloads=True)) as pg:
        yield pg


def declare(app: Faena, **options: Any) -> Task[dict[str, Any], str]:
    options = {"retain": NOTHING, **options}

    @app.queue("mail", **options).task
    async def send(letter: dict[str, Any]) -> str:
        if "error" in letter:
            raise Discard(letter["error"], code=letter.get("code"))
        return f"to {letter.get('to')}"

    return send


async def rows(pg: Postgres, what: str = "id, state, tenant") -> list[tuple[Any, ...]]:
    async with pg.transaction() as connection:
        sql = f"SELECT {what} FROM faena.history ORDER BY finished_at, id"
        return await (await connection.execute(sql.encode())).fetchall()


async def test_workers_store_what_ends_though_the_broker_keeps_nothing(
    app: Faena, kept: Postgres, working: Working
) -> None:
    send = declare(app)
    before = datetime.now(UTC)
    receipt = await send.enqueue({"to": "ana"}, tenant="acme", key="k1", priority=5)
    async with working(app):
        await eventually(lambda: rows(kept))
    (job,) = await kept.history.job("mail", receipt.id)
    assert (job.id, job.queue, job.task, job.state) == (receipt.id, "mail", "send", "completed")
    assert (job.tenant, job.key, job.priority, job.attempts) == ("acme", "k1", 5, 1)
    assert (job.payload, job.result) == ({"to": "ana"}, "to ana")
    assert job.enqueued_at
    assert job.started_at
    assert before - timedelta(minutes=1) < job.enqueued_at <= job.started_at <= job.finished_at
    assert job.wait_s == pytest.approx((job.started_at - job.enqueued_at).total_seconds())
    assert job.run_s == pytest.approx((job.finished_at - job.started_at).total_seconds())
    assert job.worker


async def test_payloads_are_not_kept_unless_asked_for(
    app: Faena, database: str, working: Working
) -> None:
    async with Postgres(app, database, history=History()) as pg:
        send = declare(app)
        await send.enqueue({"to": "secret"})
        async with working(app):
            await eventually(lambda: rows(pg))
        assert await rows(pg, "payload, result") == [(None, None)]


async def test_only_the_queues_that_are_named_have_a_history(
    app: Faena, database: str, working: Working
) -> None:
    async with Postgres(app, database, history=History(queues=["mail"])) as pg:
        send = declare(app)

        @app.queue("other").task
        async def note() -> None: ...

        await note.enqueue()
        receipt = await send.enqueue({})
        async with working(app):
            await eventually(lambda: rows(pg))
        assert await rows(pg, "id") == [(receipt.id,)]
        assert not await (await app.runtime()).engine.command("EXISTS", "other", "history")


async def test_a_program_without_history_turns_it_off_when_it_serves(
    app: Faena, kept: Postgres, working: Working
) -> None:
    send = declare(app)
    await send.enqueue({})
    async with working(app):
        await eventually(lambda: rows(kept))
    engine = (await app.runtime()).engine
    assert await engine.command("HGET", "mail", "conf", "history:room")
    connection = app._links.connection  # pyright: ignore[reportPrivateUsage]
    other = Faena("other", connection.url, namespace=connection.namespace)
    declare(other)
    async with working(other):
        await eventually(lambda: _is_off(app))
    await other.close()


async def _is_off(app: Faena) -> bool:
    engine = (await app.runtime()).engine
    return not await engine.command("HEXISTS", "mail", "conf", "history:room")


async def test_hostile_texts_are_stored_as_far_as_postgresql_can(
    app: Faena, kept: Postgres, working: Working
) -> None:
    send = declare(app)
    letters: list[dict[str, Any]] = [
        {"error": "nul \0 in it"},
        {"error": "x" * 300_000},
        {"to": "nul \0", "nested": ["\0"]},
        {"to": 10**400},
        {"to": "\U0001f600 \u2028"},
    ]
    for letter in letters:
        await send.enqueue(letter)
    async with working(app):
        await eventually(lambda: _has(kept, len(letters)))
    found = await rows(kept, "message, payload, result")
    assert found[0][0] == "nul \ufffd in it"
    assert found[1][0] == "x" * 2_000, "as long as its worker makes it"
    assert found[2][1] == {"to": "nul \ufffd", "nested": ["\ufffd"]}
    assert found[4][1:] == ({"to": "\U0001f600 \u2028"}, "to \U0001f600 \u2028")


async def _has(pg: Postgres, number: int) -> bool:
    return len(await rows(pg)) >= number


# -- search --------------------------------------------------------------------------------------


async def _filled(pg: Postgres, number: int = 30) -> None:
    """Jobs of three tenants that ended a minute apart; every fifth is dead."""
    async with pg.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO faena.history (id, queue, finished_at, state, task, tenant, priority,
                attempts, losses, wait_us, run_us, error, code, message, origin, payload)
            SELECT 'j' || lpad(n::text, 4, '0'), 'mail', date_trunc('day', now())
                    - n / 2 * interval '1 minute',
                CASE WHEN n %% 5 = 0 THEN 'dead' ELSE 'completed' END, 'send' || n %% 2,
                't' || n %% 3, 10, 1, 0, n * 1000000, 2000000,
                CASE WHEN n %% 5 = 0 THEN 'Timeout' END, CASE WHEN n %% 5 = 0 THEN 'E_1' END,
                CASE WHEN n %% 5 = 0 THEN '100%% of it took too long: ' || n END, 'x',
                jsonb_build_object('to', 'p' || n, 'size', n)
            FROM generate_series(1, %s) n
            """,
            [number],
        )


@pytest.fixture
async def filled(kept: Postgres) -> Postgres:
    from faena.pg.history.partition import Keeper

    yesterday = datetime.now(UTC).date() - timedelta(days=40)
    await Keeper(kept, kept.history.options).ensure(since=yesterday)
    await _filled(kept)
    return kept


async def _all(pg: Postgres, limit: int = 7, **fields: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    for _ in range(100):
        page = await pg.history.search(limit=limit, cursor=cursor, **fields)
        found += [one.id for one in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("no end")


async def test_pages_show_each_row_once_newest_first_and_end(filled: Postgres) -> None:
    found = await _all(filled)
    assert len(found) == len({*found}) == 30
    times = dict(await rows(filled, "id, finished_at"))
    assert found == sorted(found, key=lambda job: (times[job], job), reverse=True)
    assert await _all(filled, limit=30) == await _all(filled, limit=1) == found


async def test_what_can_be_searched_for(filled: Postgres) -> None:
    assert await _all(filled, id="j0007") == ["j0007"]
    assert await _all(filled, queue="other") == []
    assert {*await _all(filled, task="send1")} == {f"j{n:04d}" for n in range(1, 31, 2)}
    assert {*await _all(filled, state="dead")} == {f"j{n:04d}" for n in range(5, 31, 5)}
    assert await _all(filled, error="TOOK too long: 15") == ["j0015"]
    assert len(await _all(filled, error="e_1")) == 6
    assert await _all(filled, error="E%1") == []
    assert len(await _all(filled, error="100% of")) == 6
    assert await _all(filled, payload={"to": "p3", "size": 3}) == ["j0003"]
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = midnight - timedelta(minutes=2), midnight - timedelta(minutes=1)
    assert {*await _all(filled, since=since, until=until)} == {"j0004", "j0005"}


async def test_a_search_for_one_tenant_shows_nothing_of_another(filled: Postgres) -> None:
    for tenant in ("t0", "t1", "t2"):
        page = await filled.history.search(tenant=tenant, limit=4)
        while page.cursor:
            assert {one.tenant for one in page.jobs} == {tenant}
            page = await filled.history.search(tenant=tenant, limit=4, cursor=page.cursor)
    page = await filled.history.search(tenant="t1", limit=4)
    with pytest.raises(ConfigError, match="cursor must come from a search"):
        await filled.history.search(tenant="t2", limit=4, cursor=page.cursor)
    assert await _all(filled, tenant="t") == []
    assert await _all(filled, tenant="t1", id="j0002") == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"state": "deed"}, "state must be one that jobs end in, got 'deed'; did you mean 'dead'"),
        ({"since": datetime(2026, 1, 1)}, "since must be a datetime with a time zone"),  # noqa: DTZ001
        ({"task": "a\0"}, "task must be a text without NUL"),
        ({"payload": 5}, "payload must be fields and their values, got 5"),
        ({"tenants": "a"}, "tenant"),
        ({"limit": 0}, "limit must be"),
    ],
)
async def test_a_wrong_search_is_refused(kept: Postgres, wrong: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await kept.history.search(**wrong)


async def test_a_queue_is_given_itself_or_by_its_name(app: Faena, filled: Postgres) -> None:
    found = await filled.history.search(queue=app.queue("mail"))
    assert found == await filled.history.search(queue="mail")
    assert found.jobs


@pytest.mark.parametrize(("keep", "days"), [("1y", 366), ("6mo", 186), ("2w", 14), ("90d", 90)])
def test_terms_are_those_of_a_retention(keep: str, days: int) -> None:
    assert History(keep=keep).kept() == timedelta(days=days)


async def test_a_queue_that_is_not_declared_is_told(
    app: Faena, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    app.queue("mail")
    async with Postgres(app, database, history=History(queues=["mail", "mial"])) as pg:
        task = asyncio.create_task(pg.history.serve())
        await eventually(lambda: bool(caplog.records))
        task.cancel()
        await asyncio.wait([task])
    (told,) = [one.getMessage() for one in caplog.records if "does not declare" in one.getMessage()]
    assert told.startswith("the history is of queue mial, which the app does not declare; did you")


async def test_statistics_of_tasks(filled: Postgres) -> None:
    even, odd = await filled.history.statistics(queue="mail")
    assert (even.task, even.number, even.states) == ("send0", 15, {"completed": 12, "dead": 3})
    assert even.error_rate == pytest.approx(3 / 15)
    assert even.wait.mean == pytest.approx(16.0)
    assert (even.wait.p50, even.run.p99) == (16.0, 2.0)
    assert odd.wait.p50 == 15.0
    assert even.wait.p95 == pytest.approx(28.6)
    assert await filled.history.statistics(queue="mail", tenant="nobody") == []


async def test_statistics_by_window(filled: Postgres) -> None:
    windows = await filled.history.statistics(window="5m", task="send0")
    assert sum(one.number for one in windows) == 15
    starts = [one.start for one in windows if one.start]
    assert starts == sorted(starts)
    assert {one.minute % 5 for one in starts} == {0}


# -- erasure -------------------------------------------------------------------------------------


async def test_a_tenant_is_erased_and_others_stay(filled: Postgres) -> None:
    declare(filled.app)
    assert await filled.history.erase(tenant="t1") == 10
    assert {tenant for _, _, tenant in await rows(filled)} == {"t0", "t2"}
    assert await filled.history.erase(tenant="t1") == 0


async def test_what_still_waits_in_the_broker_is_not_stored_after_an_erasure(
    app: Faena, kept: Postgres
) -> None:
    send = declare(app)
    for tenant in ("gone", "stays"):
        receipt = await send.enqueue({"to": tenant}, tenant=tenant)
        await receipt.handle.cancel()
    await kept.history.erase(tenant="gone")
    assert [tenant for *_, tenant in await rows(kept)] == ["stays"]
    assert (await kept.history.view()).entries == 0
    receipt = await send.enqueue({}, tenant="gone")
    await receipt.handle.cancel()
    await kept.history.read_now()
    assert [one for one, *_ in await rows(kept)][1:] == [receipt.id], "it ended later"


# -- declaring -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"queues": "mail"}, "queues must be a list of queues or their names, got 'mail'"),
        ({"keep": "1h"}, "keep must be a duration from 1d"),
        ({"payloads": 1}, "payloads must be a bool"),
        ({"every": "year"}, "every must be 'month' or 'week' or 'day', got 'year'"),
        ({"room": 5}, "room must be"),
        ({"late": "-1s"}, "late must be"),
        ({"keeps": "1y"}, "keep"),
    ],
)
def test_a_wrong_history_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        History(**wrong)


async def test_without_a_history_there_is_none_to_ask(pg: Postgres) -> None:
    assert not pg.has_history
    with pytest.raises(ConfigError, match="the app must have a history: write"):
        _ = pg.history


async def test_jobs_run_while_postgresql_is_away(app: Faena, working: Working) -> None:
    absent = "postgresql://postgres@127.0.0.1:1/none"
    async with Postgres(app, absent, history=History(), relay=False, patience="1s") as pg:
        send = declare(app)
        receipt = await send.enqueue({"to": "ana"})
        async with working(app):
            await eventually(lambda: _is_gone(app, receipt.id))
        with pytest.raises(StoreUnavailable):
            await send.handle(receipt.id).view()
        assert pg.has_history


async def _is_gone(app: Faena, job: str) -> bool:
    (found,) = await (await app.runtime()).engine.look("mail", [job])
    return found is None


async def test_a_job_of_another_queue_with_the_same_id_and_instant_is_on_the_next_page(
    filled: Postgres,
) -> None:
    async with filled.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.history (id, queue, finished_at, state, task, priority, attempts,"
            " losses, origin) SELECT id, 'aside', finished_at, state, task, priority, attempts,"
            " losses, origin FROM faena.history"
        )
    for limit in (1, 7):
        assert len(await _all(filled, limit=limit)) == 60


async def test_an_erasure_waits_for_readers_that_are_writing(app: Faena, kept: Postgres) -> None:
    send = declare(app)
    receipt = await send.enqueue({}, tenant="gone")
    await receipt.handle.cancel()
    engine = (await app.runtime()).engine
    await Keeper(kept, kept.history.options).ensure()
    async with kept.transaction() as connection:
        entries = await HistoryCalls(engine).read("mail")
        await Store(kept.history.options, engine.namespace).put(connection, "mail", entries)
        erasing = asyncio.create_task(kept.history.erase(tenant="gone"))
        await eventually(lambda: _is_waiting(kept, erasing))
    assert await erasing == 1
    assert await rows(kept) == []


async def _is_waiting(pg: Postgres, task: asyncio.Task[int]) -> bool:
    async with pg.transaction() as connection:
        found = await connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return task.done() or await found.fetchone() == (1,)


async def test_an_erasure_forgets_shards_that_have_the_name_of_the_tenant(kept: Postgres) -> None:
    declare(kept.app)
    async with kept.transaction() as connection:
        for shard in ("mail/@a%2Fb", "mail/@a", "mail"):
            await connection.execute(
                "INSERT INTO faena.history_shards (namespace, shard, entry, stored)"
                " VALUES ('x', %s, '1-1', 1)",
                [shard],
            )
    await kept.history.erase(tenant="a/b")
    async with kept.transaction() as connection:
        found = await connection.execute("SELECT shard FROM faena.history_shards ORDER BY 1")
        assert await found.fetchall() == [("mail",), ("mail/@a",)]
