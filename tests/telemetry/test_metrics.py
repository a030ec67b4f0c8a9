"""Metrics: the page that Prometheus scrapes."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as modern

from faena import Faena, Job, Metrics, Retry
from faena.errors import ConfigError
from faena.telemetry.measured import Exemplar, Measured
from faena.telemetry.metrics.exposition import Exposition
from faena.telemetry.metrics.family import families
from faena.telemetry.metrics.metric import Facts
from tests._support.eventually import eventually
from tests._support.valkey import Server, free_port
from tests._support.working import obliterate, serving

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


async def after_some_work(app: Faena) -> Page:
    """Four jobs: two fail once and complete, one dies, one is delayed."""
    queue = app.queue("mail", retry=Retry.fixed("0s", attempts=2))

    @queue.task
    async def send(number: int, job: Job) -> None:
        if number == 0 or job.attempt == 1:
            raise ConnectionError("not yet")

    await send.enqueue_many([0, 1, 2])
    await send.enqueue(3, delay="1h")

    async def is_over() -> bool:
        counts = await queue.counts()
        return (counts["completed"], counts["dead"]) == (2, 1)

    async with serving(app) as worker:
        await eventually(is_over)
    return read(await app.metrics(measured=worker.measured))


COUNTED = {"enqueued": 4, "completed": 2, "retried": 3, "dlq_added": 1, "failed": 4, "stalled": 0}


async def test_other_systems_find_the_same_numbers_under_their_names(
    valkey: Server, namespace: str
) -> None:
    app = Faena("moved", valkey.url, namespace=namespace, metrics=Metrics(aliases=True))
    page = await after_some_work(app)
    await obliterate(app)
    for name, number in COUNTED.items():
        assert of(page, f"queue_{name}_total", queue="mail") == number, name
    assert of(page, "queue_delayed", queue="mail") == 1
    assert of(page, "queue_length", queue="mail", state="waiting") == 0
    assert of(page, "jobs_processed_total", queue="mail", status="completed") == 2
    assert of(page, "bullmq_jobs_processed_total", queue="mail", status="failed") == 4
    assert of(page, "bullmq_queue_depth", queue="mail") == 1
    labels = {"queue": "mail", "job_name": "send"}
    assert of(page, "job_duration_seconds_bucket", **labels, le="60.0") == 6
    assert of(page, "queue_process_time_count", queue="mail") == 6
    in_s = of(page, "faena_job_run_seconds_sum", queue="mail", task="send")
    assert of(page, "queue_process_time_sum", queue="mail") == pytest.approx(1000 * in_s)


async def test_a_flood_of_tenants_makes_no_flood_of_labels(valkey: Server, namespace: str) -> None:
    app = Faena("flood", valkey.url, namespace=namespace, metrics=Metrics(tenants=3))
    send = mail(app)
    for number in range(40):
        await send.enqueue_many([0], tenant=f"tenant-{number}")
    await send.enqueue_many([0] * 5, tenant='größte/{}"')
    page = read(await app.metrics())
    bare = Faena("flood", valkey.url, namespace=namespace, metrics=Metrics(tenants=0))
    mail(bare)
    none = read(await bare.metrics())
    await bare.close()
    await obliterate(app)
    found = {dict(labels)["tenant"]: n for (name, labels), n in page.items() if "live" in name}
    assert len(found) == 4
    assert (found['größte/{}"'], found["(all others)"]) == (5, 38)
    assert not [name for name, _ in none if "tenant" in name]


async def test_a_broker_that_is_away_costs_its_own_numbers_only(valkey: Server) -> None:
    app = Faena("lonely", f"redis://127.0.0.1:{free_port()}/0", patience="1s")
    mail(app)
    measured = Measured()
    measured.started = 1
    seen = await app.metrics(measured={("mail", "send"): measured})
    page = read(seen)
    await app.close()
    assert of(page, "faena_broker_up") == 0
    assert of(page, "faena_attempts_started_total", queue="mail", task="send") == 1
    assert not [name for name, _ in page if name.startswith("faena_queue")]
    assert seen.problem


def test_names_that_become_equal_on_the_page_are_added_up() -> None:
    measured = {("mail", name): Measured() for name in ("a\ud800", "a\udfff")}
    for one in measured.values():
        one.started = 2
    found = families(Facts(measured=measured), aliases=False)
    (family,) = [one for one in found if one.name == "faena_attempts_started"]
    assert family.samples == {("mail", "a?"): 4}


async def test_an_attempt_of_a_trace_is_an_example_of_the_others(app: Faena) -> None:
    measured = Measured()
    measured.runs.add(30_000)
    measured.exemplar = Exemplar("0af7651916cd43dd8448eb211c80319c", 30_000, 1_700_000_000.0)
    page = await app.metrics(measured={("mail", "send"): measured}, openmetrics=True)
    (line,) = [one for one in page.body.decode().splitlines() if "trace_id" in one]
    assert line.startswith("faena_job_run_seconds_bucket")
    assert 'le="0.04"' in line
    assert '# {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.03 1700000000.0' in line
    assert (
        "trace_id" not in (await app.metrics(measured={("mail", "send"): measured})).body.decode()
    )


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
