"""Metrics: the page that Prometheus scrapes."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as modern

from faena import Faena, Metrics
from faena.errors import ConfigError
from faena.telemetry.metrics.exposition import Exposition
from tests._support.eventually import eventually
from tests._support.working import serving

Page = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(page: Exposition) -> Page:
    """All samples by name and labels, without `app`; each must be there once."""
    text = page.body.decode()
    is_modern = page.content_type.startswith("application/openmetrics-text")
    parse = modern.text_string_to_metric_families if is_modern else None
    found: Page = {}
    for family in (parse or parser.text_string_to_metric_families)(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "app"}
            assert "app" in sample.labels, sample
            key = (sample.name, tuple(sorted(labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def of(page: Page, name: str, **labels: str) -> float:
    return page[name, tuple(sorted(labels.items()))]


def mail(app: Faena, **options: Any) -> Any:
    queue = app.queue("mail", **options)

    @queue.task
    async def send(number: int) -> None:
        pass

    return send


@pytest.mark.parametrize("openmetrics", [False, True])
async def test_a_page_has_depth_and_totals_of_every_queue(app: Faena, openmetrics: bool) -> None:
    send = mail(app)
    app.queue("print")
    await send.enqueue_many(range(5))
    await send.enqueue(5, delay="1h")
    page = read(await app.metrics(openmetrics=openmetrics))
    assert of(page, "faena_jobs", queue="mail", state="ready") == 5
    assert of(page, "faena_jobs", queue="mail", state="delayed") == 1
    assert of(page, "faena_queue_depth", queue="mail") == 6
    assert of(page, "faena_queue_depth", queue="print") == 0
    assert of(page, "faena_jobs_enqueued_total", queue="mail") == 6
    assert of(page, "faena_jobs_enqueued_total", queue="print") == 0
    assert of(page, "faena_broker_up") == 1


async def test_a_worker_adds_what_it_has_measured(app: Faena) -> None:
    send = mail(app)
    await send.enqueue_many(range(10))
    async with serving(app) as worker:

        async def is_measured() -> bool:
            page = read(await app.metrics(measured=worker.measured))
            name = "faena_job_run_seconds_count"
            return page.get((name, (("queue", "mail"), ("task", "send")))) == 10

        await eventually(is_measured)
        page = read(await app.metrics(measured=worker.measured))
    assert of(page, "faena_attempts_started_total", queue="mail", task="send") == 10
    ended = {"queue": "mail", "task": "send", "outcome": "completed"}
    assert of(page, "faena_attempts_ended_total", **ended) == 10
    for kind in ("wait", "run", "total"):
        name = f"faena_job_{kind}_seconds"
        assert of(page, f"{name}_bucket", queue="mail", task="send", le="+Inf") == 10


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tenants": 51}, "tenants must be"),
        ({"tenants": -1}, "tenants must be"),
        ({"broker": "no"}, "broker must be a bool"),
        ({"aliases": 1}, "aliases must be a bool"),
        ({"alias": True}, "aliases"),
    ],
)
def test_options_that_cannot_be_are_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Metrics(**given)
