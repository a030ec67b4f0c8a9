"""The process that runs a health check is killed: another goes on, and both had said the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._support.eventually import eventually
from tests._support.feature_app import FeaturePlan, open_features, serve
from tests._support.ledger import Ledger
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcess


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[FeaturePlan]:
    with Server("appendonly no", unix=True) as server:
        yield FeaturePlan(server.url, str(tmp_path / "ledger"), str(tmp_path / "stall"))


async def test_another_process_takes_a_check_over(plan: FeaturePlan, tmp_path: Path) -> None:
    ledger = Ledger(plan.ledger)
    workers = [WorkerProcess(serve, plan, tmp_path / "log") for _ in range(3)]
    app = open_features(plan)
    try:
        await eventually(lambda: [one.kind for one in ledger.entries()].count("finish") >= 2)
        plan.stall_checks()

        def is_stalled() -> bool:
            return ledger.entries()[-1].kind == "start"

        await eventually(is_stalled)
        runner = ledger.entries()[-1].pid
        (killed,) = [one for one in workers if one.pid == runner]
        killed.kill()
        plan.end_stall()
        number = len(ledger.entries())

        def goes_on() -> bool:
            later = ledger.entries()[number:]
            return any(one.kind == "finish" and one.pid != runner for one in later)

        await eventually(goes_on)
        await app.features.follow()
        await eventually(lambda: app.features["tracking.realtime"].is_healthy)
    finally:
        for worker in workers:
            worker.kill()
        await app.close()


async def test_processes_agree_on_a_state(plan: FeaturePlan, tmp_path: Path) -> None:
    """A check that times out in one of them is what this process hears of, too."""
    plan.stall_checks()
    workers = [WorkerProcess(serve, plan, tmp_path / "log") for _ in range(2)]
    app = open_features(plan)
    feature = app.features["tracking.realtime"]
    try:
        await app.features.follow()
        await eventually(lambda: feature.state == "offline")
        assert (feature.now.message, feature.now.reason) == (None, "no answer within 1s")
        plan.end_stall()
        await eventually(lambda: feature.is_healthy)
    finally:
        for worker in workers:
            worker.kill()
        await app.close()
