"""A worker process whose program has a feature with a health check that the test decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from faena import Faena
from tests._support.ledger import Ledger


class FeaturePlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    ledger: str
    stall: str
    """A check does not end while this file is there."""

    def stall_checks(self) -> None:
        Path(self.stall).touch()

    def end_stall(self) -> None:
        Path(self.stall).unlink()

    @property
    def is_stalled(self) -> bool:
        return Path(self.stall).exists()


def open_features(plan: FeaturePlan) -> Faena:
    """An app with a feature; its check is written to the ledger when it begins and ends."""
    app = Faena("features", plan.url, patience="60s")
    app.queue("any")
    app.feature("tracking.realtime", fallback="polling")
    ledger = Ledger(plan.ledger)

    @app.health_check("tracking.realtime", every="1s", timeout="1s", failures=1)
    async def ask() -> bool:
        ledger.write("start")
        while plan.is_stalled:  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.01)
        ledger.write("finish")
        return True

    return app


def serve(plan: FeaturePlan) -> None:
    """Run a worker until it is killed."""
    asyncio.run(open_features(plan).run_worker())
