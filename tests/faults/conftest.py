"""A server of the test's own, and workers to be killed.

A file whose queues or server are others names its own `queues` or `server`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from tests._support.crew import Crew
from tests._support.lane_shop import QUEUE, LanePlan
from tests._support.shop import Plan, QueuePlan, open_shop
from tests._support.valkey import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(unix=True) as server:
        yield server


@pytest.fixture
def queues() -> dict[str, QueuePlan]:
    return {"q": QueuePlan()}


@pytest.fixture
def crew(server: Server, queues: dict[str, QueuePlan], tmp_path: Path) -> Iterator[Crew]:
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    with Crew(plan) as crew:
        yield crew


@pytest.fixture
async def app(crew: Crew) -> AsyncIterator[Faena]:
    async with open_shop(crew.plan, crew.ledger) as app:
        yield app


@pytest.fixture
def lane_plan_for(server: Server, tmp_path: Path) -> Callable[..., LanePlan]:
    def plan(queue: QueuePlan | None = None, **options: Any) -> LanePlan:
        queues = {QUEUE: queue or QueuePlan()}
        return LanePlan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues, **options)

    return plan
