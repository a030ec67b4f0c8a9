"""The page of metrics in a web program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Route

from faena import Faena
from faena.contrib.metrics import metrics_endpoint
from faena.errors import ConfigError
from tests._support.eventually import eventually
from tests._support.working import serving


def starlette(endpoint: Any) -> Any:
    return Starlette(routes=[Route("/metrics", endpoint)])


def fastapi(endpoint: Any) -> Any:
    web = FastAPI()
    web.add_route("/metrics", endpoint)
    return web


def client(web: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://shop")


@pytest.mark.parametrize("within", [starlette, fastapi, lambda endpoint: endpoint])
async def test_a_program_without_a_worker_tells_the_numbers_of_all_queues(
    app: Faena, within: Callable[[Any], Any]
) -> None:
    app.queue("mail")
    async with client(within(metrics_endpoint(app))) as web:
        page = await web.get("/metrics")
        modern = await web.get("/metrics", headers={"accept": "application/openmetrics-text"})
        head = await web.head("/metrics")
        posted = await web.post("/metrics")
    assert page.status_code == modern.status_code == head.status_code == 200
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'faena_queue_depth{app="' in page.text
    assert modern.headers["content-type"].startswith("application/openmetrics-text")
    assert modern.text.endswith("# EOF\n")
    assert (head.text, posted.status_code) == ("", 405)


async def test_a_worker_of_the_program_adds_what_it_has_measured(app: Faena) -> None:
    queue = app.queue("mail")

    @queue.task
    async def send(number: int) -> None:
        pass

    async with serving(app) as worker, client(metrics_endpoint(app, worker=worker)) as web:
        await send.enqueue(1)

        async def is_there() -> bool:
            return "faena_job_run_seconds_count" in (await web.get("/metrics")).text

        await eventually(is_there)


async def test_with_a_token_only_who_has_it_reads_the_page(app: Faena) -> None:
    async with client(metrics_endpoint(app, token="s3cret")) as web:
        refused = [
            (await web.get("/", headers=given)).status_code
            for given in ({}, {"authorization": "Bearer other"}, {"authorization": "s3cret"})
        ]
        read = await web.get("/", headers={"authorization": "Bearer s3cret"})
    assert (refused, read.status_code) == ([401] * 3, 200)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"token": ""}, "token must be a non-empty string"), ({"worker": 1}, "worker must be")],
)
def test_what_cannot_be_is_refused(app: Faena, given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        metrics_endpoint(app, **given)
