"""A real Prometheus scrapes real pages: our rules have no error there, and each chart has data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from deploy.monitoring.dashboard import DASHBOARDS
from deploy.monitoring.page import ROOT
from deploy.monitoring.rule import RECORDED

from faena import Budget, Faena, Job, Price, Retry
from faena.contrib.metrics import metrics_endpoint
from tests._support.eventually import eventually
from tests._support.prometheus import Prometheus, needed
from tests._support.served import served
from tests._support.valkey import Server
from tests._support.working import serving

UP = 'count(up{job=~"faena.*"} == 1) == 2'
TRACE = "0af7651916cd43dd8448eb211c80319c"
RULES = ROOT / "prometheus" / "faena.rules.yml"
CHOSEN = {"$app": "shop", "$queue": ".*", "$upstream": ".*", "$__rate_interval": "5m"}


@pytest.fixture
async def app() -> AsyncIterator[Faena]:
    """On a server with a bound for its memory."""
    lines = ("appendonly no", "maxmemory 256mb", "maxmemory-policy noeviction")
    with Server(*lines, unix=True) as server:
        async with Faena("shop", server.url) as app:
            yield app


def declare(app: Faena) -> Any:
    provider = app.upstream(
        "provider",
        limits=["1000/s"],
        prices=[Price("call", "1 USD")],
        budgets=[Budget("100000 USD"), Budget("5000 USD", each_tenant=True)],
    )
    app.feature("voice", fallback="manual")
    queue = app.queue("mail", fair=True, retry=Retry.fixed("0s", attempts=2), concurrency=4)

    @queue.task(upstreams=[provider])
    async def send(number: int, job: Job) -> None:
        if number % 5 == 0 and job.attempt == 1:
            raise ConnectionError("not yet")

    return send


def asked(query: str) -> str:
    for name, value in CHOSEN.items():
        query = query.replace(name, value)
    return query


async def test_each_chart_has_data_of_a_real_worker(app: Faena, tmp_path: Path) -> None:
    needed()
    send = declare(app)
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    async with (
        serving(app) as worker,
        served(metrics_endpoint(app)) as exporter,
        served(metrics_endpoint(app, worker=worker)) as page,
    ):
        targets = {"faena": exporter, "faena-worker": page}
        with Prometheus(tmp_path, targets=targets, rules=RULES) as prometheus:

            async def found(path: str, **words: str) -> Any:
                return await asyncio.to_thread(prometheus.get, path, **words)

            async def has_data(query: str) -> bool:
                tenant = f"tenant-{len(query)}"
                await send.enqueue_many(range(3), tenant=tenant, headers=headers)
                told = await found("query", query=asked(query))
                assert told["status"] == "success", f"{query}: {told}"
                return bool(told["data"]["result"])

            shown = [query for one in DASHBOARDS for query in one.queries()]
            for query in [UP, *(one.name for one in RECORDED), *shown]:
                await eventually(lambda query=query: has_data(query))
            told = await found("rules")
            rules = [rule for group in told["data"]["groups"] for rule in group["rules"]]
            assert len(rules) > len(RECORDED)
            assert {rule["lastError"]: rule["query"] for rule in rules if "lastError" in rule} == {}
            assert {rule["health"] for rule in rules} == {"ok"}
            ever = {"start": "0", "end": "2000000000"}
            traced = await found("query_exemplars", query="faena_job_run_seconds_bucket", **ever)
    labels = {one["labels"]["trace_id"] for each in traced["data"] for one in each["exemplars"]}
    assert labels == {TRACE}


async def test_two_pages_with_the_same_numbers_are_counted_once(app: Faena, tmp_path: Path) -> None:
    needed()
    send = declare(app)
    await send.enqueue_many([1] * 7, tenant="a")
    endpoint = metrics_endpoint(app)
    async with served(endpoint) as one, served(endpoint) as two:
        targets = {"one": one, "two": two}
        with Prometheus(tmp_path, targets=targets, rules=RULES) as prometheus:

            async def scraped() -> bool:
                both = await asyncio.to_thread(prometheus.query, "count(faena_queue_depth) == 2")
                return bool(both)

            await eventually(scraped)
            overview = DASHBOARDS[0].panels[0].queries[0].text
            (ready,) = await asyncio.to_thread(prometheus.query, asked(overview))
    assert ready["value"][1] == "7"


def test_a_prometheus_that_is_missing_fails_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("FAENA_REQUIRED", raising=False)
    with pytest.raises(pytest.skip.Exception, match="prometheus is not installed"):
        needed()
    monkeypatch.setenv("FAENA_REQUIRED", "other prometheus")
    with pytest.raises(pytest.fail.Exception, match="prometheus is not installed"):
        needed()
